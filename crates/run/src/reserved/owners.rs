//! Outputs in directories of other users: what a file of a stranger must not decide.

use super::*;
use crate::Before;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use trueio_job::Content;
use trueio_testkit::{NOBODY, Sysctl, as_user, lacks};

/// Another user without rights.
const OTHER: u32 = 65_532;

/// A directory that every user may enter, with this mode and owner.
fn directory(mode: u32, owner: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    chown(folder.path(), Some(owner), Some(owner)).expect("root may");
    set_mode(folder.path(), mode);
    folder
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").mode() & 0o7777
}

/// Creates a file as a user.
fn planted(path: &Path, mode: u32, uid: u32) {
    as_user(uid, || {
        fs::write(path, "planted").expect("a file");
        set_mode(path, mode);
    });
}

/// An access control list with the entries (tag, permissions, user), as the kernel stores it.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, user) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(user.to_le_bytes());
    }
    bytes
}

/// Owner, a named user, group, mask and others.
fn acl_for(user: u32, others: u16) -> Vec<u8> {
    let none = u32::MAX;
    acl(&[(1, 6, none), (2, 6, user), (4, 6, none), (16, 6, none), (32, others, none)])
}

/// Goal: `touch out.json; chmod 4777 out.json` as a user, then a run as root or another user, must not lead to a program of
/// the victim that the user can write.
#[test]
fn a_file_of_another_user_is_refused_with_every_mode_directory_and_protection() {
    if lacks("root") {
        return;
    }
    for protection in ["0", "2"] {
        let _setting = Sysctl::set("fs/protected_regular", protection);
        for (directory_mode, owner) in [(0o777, NOBODY), (0o777, 0), (0o1777, 0), (0o2777, NOBODY)] {
            for mode in [0o4777, 0o2777, 0o6777, 0o666, 0o644, 0o600] {
                let folder = directory(directory_mode, owner);
                let path = folder.path().join("out.json");
                planted(&path, mode, NOBODY);
                for victim in [0, OTHER] {
                    let error = as_user(victim, || ReservedOutput::reserve(&path).map(drop).expect_err("a refusal"));
                    let expected = format!("it belongs to another user (UID {NOBODY})");
                    assert!(error.to_string().starts_with(&expected), "{mode:o}: {error}");
                }
                assert_eq!(fs::read(&path).expect("it exists"), b"planted");
            }
        }
    }
}

#[test]
fn set_id_and_sticky_bits_are_never_carried_and_others_only_from_ones_own_file() {
    if lacks("root") {
        return;
    }
    for user in [0, OTHER] {
        for (before, after) in [(0o6777, 0o777), (0o2755, 0o755), (0o1644, 0o644), (0o640, 0o640), (0o400, 0o400)] {
            let folder = directory(0o755, user);
            let path = folder.path().join("out.json");
            planted(&path, before, user);
            as_user(user, || ReservedOutput::reserve(&path).expect("reserved").write(b"{}").expect("written"));
            assert_eq!(mode_of(&path), after, "{before:o}");
            // The same for an output that is written in place.
            planted_again(&path, before, user);
            as_user(user, || ReservedOutput::reserve(&path).expect("reserved").write_in_place().map(drop))
                .expect("placed");
            assert_eq!(mode_of(&path), after, "{before:o}");
        }
    }
}

fn planted_again(path: &Path, mode: u32, user: u32) {
    fs::remove_file(path).expect("removed");
    planted(path, mode, user);
}

#[test]
fn a_file_that_others_may_write_in_a_sticky_directory_is_refused() {
    if lacks("root") {
        return;
    }
    for protection in ["0", "2"] {
        let _setting = Sysctl::set("fs/protected_regular", protection);
        let folder = directory(0o1777, 0);
        let path = folder.path().join("out.json");
        for (mode, is_refused) in [(0o660, true), (0o602, true), (0o644, false)] {
            planted(&path, mode, 0);
            let reserved = ReservedOutput::reserve(&path).map(drop);
            assert_eq!(reserved.is_err(), is_refused, "{mode:o}: {reserved:?}");
            fs::remove_file(&path).expect("removed");
        }
    }
}

/// Goal: in a directory of another user, its default list and its group give no rights to a new output.
#[test]
fn a_new_output_has_the_mode_of_a_new_file_whatever_its_directory_gives() {
    if lacks("root") {
        return;
    }
    for (mode, list) in [(0o777, false), (0o2777, false), (0o2777, true)] {
        let folder = directory(mode, NOBODY);
        if list {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(folder.path(), "system.posix_acl_default", &acl_for(NOBODY, 6), flags)
                .expect("a list");
        }
        let path = |name: &str| folder.path().join(name);
        let reserved = ReservedOutput::reserve(path("out.json")).expect("reserved");
        assert_eq!(mode_of(&path("out.json")), 0o666 & !umask(), "before the run");
        assert!(rustix::fs::getxattr(path("out.json"), ACL, &mut [0; 0]).is_err(), "before the run: no list");
        reserved.write(b"{}").expect("written");
        // What a file has that was created there in another way.
        planted(&path("old.json"), 0o606, 0);
        ReservedOutput::reserve(path("old.json")).expect("reserved").write(b"{}").expect("written");
        assert_eq!(mode_of(&path("old.json")), 0o606 & !umask(), "an older file");
        let log = crate::create_output(path("log"), Content::Log, Before::Missing).expect("a log");
        crate::create_output(path("printed"), Content::Printed, Before::Missing).expect("an output");
        drop(create_next_to(&path("next")).map(|(_, next)| fs::rename(next, path("next"))).expect("a file"));
        for name in ["out.json", "log", "printed", "next"] {
            let found = fs::metadata(path(name)).expect("it exists");
            assert_eq!((found.uid(), found.gid()), (0, rustix::process::getegid().as_raw()), "{name}");
            assert_eq!(found.mode() & 0o7777, 0o666 & !umask(), "{name}");
            assert!(rustix::fs::getxattr(path(name), ACL, &mut [0; 0]).is_err(), "{name}: no list");
            let written = as_user(NOBODY, || fs::File::options().write(true).open(path(name)).map(drop));
            assert!(umask() & 0o022 != 0o022 || written.is_err(), "{name}");
        }
        // A later phase writes to its end.
        drop(log);
        crate::create_output(path("log"), Content::Log, Before::Missing).expect("written before");
    }
}

/// Goal: the permissions of the users in a list are not given to the file's group.
#[test]
fn the_permissions_of_a_list_and_of_another_group_are_not_given_to_the_group() {
    if lacks("root") {
        return;
    }
    let folder = directory(0o755, 0);
    let path = folder.path().join("out.json");
    planted(&path, 0o600, 0);
    rustix::fs::setxattr(&path, ACL, &acl_for(NOBODY, 0), rustix::fs::XattrFlags::empty()).expect("a list");
    assert_eq!(mode_of(&path), 0o660);
    ReservedOutput::reserve(&path).expect("reserved").write(b"{}").expect("written");
    assert_eq!(mode_of(&path), 0o600);
    set_mode(&path, 0o640);
    chown(&path, None, Some(OTHER)).expect("root may");
    ReservedOutput::reserve(&path).expect("reserved").write(b"{}").expect("written");
    assert_eq!(mode_of(&path), 0o600);
}

#[test]
fn links_and_pipes_of_another_user_lead_no_output_anywhere() {
    if lacks("root") {
        return;
    }
    let (folder, target) = (directory(0o777, NOBODY), directory(0o755, 0));
    let path = |name: &str| folder.path().join(name);
    as_user(NOBODY, || {
        symlink(target.path(), path("results")).expect("a link");
        symlink("/dev/null", path("null")).expect("a link");
        symlink("/dev/fd/1", path("one")).expect("a link");
        rustix::fs::mknodat(CWD, path("pipe"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).expect("a pipe");
    });
    let _reader = fs::File::options().read(true).write(true).open(path("pipe")).expect("a reader");
    for (name, reason) in [
        ("results/out.json", "is a symbolic link of another user"),
        ("null", "is a symbolic link of another user"),
        ("one", "is a symbolic link of another user"),
        ("pipe", "it is a pipe of another user"),
    ] {
        let error = ReservedOutput::reserve(path(name)).map(drop).expect_err(name).to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
    assert_eq!(fs::read_dir(target.path()).expect("a directory").count(), 0);
    // The user's own links and pipes are followed.
    as_user(NOBODY, || drop(ReservedOutput::reserve(path("null")).expect("a stream")));
    as_user(NOBODY, || drop(ReservedOutput::reserve(path("pipe")).expect("a stream")));
}

/// Goal: an owner of the directory who exchanges names all the time leads no output into another file.
#[test]
fn a_loop_of_renames_in_the_directory_of_another_user_changes_no_other_file() {
    if lacks("root") {
        return;
    }
    let (folder, precious) = (directory(0o777, NOBODY), directory(0o755, 0));
    let (path, file) = (folder.path().join("out.json"), precious.path().join("file"));
    fs::write(&file, "precious").expect("a file");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            as_user(NOBODY, || {
                let other = folder.path().join("other");
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = fs::remove_file(&other);
                    let _ = symlink(&file, &other);
                    let _ = fs::rename(&other, &path);
                    let _ = fs::write(&other, "theirs");
                    let _ = fs::rename(&other, &path);
                    let _ = fs::remove_file(&path);
                }
            });
        });
        for _ in 0..300 {
            let _ = ReservedOutput::reserve(&path).and_then(|reserved| reserved.write(b"{}"));
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(fs::read(&file).expect("it exists"), b"precious");
    assert_eq!(fs::read_dir(precious.path()).expect("a directory").count(), 1);
}
