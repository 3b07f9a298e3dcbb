//! The lock that keeps two programs apart that change the drivers of USB disks: two switches would restore each other's quirk
//! string.
//!
//! Only root can open it: a user who can open a file can also lock it, and could keep every switch from starting. Whether it
//! is held is therefore read from the kernel's list of locks, for which no permission is needed.
//!
//! Source: proc(5) `/proc/locks`.

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

const NAME: &str = "lock";

/// The folder of the lock and of the state files of switches. A restart empties it, and undoes every switch.
pub const STATES: &str = "/run/trueio/usb-switch";

/// Takes the lock in a directory, which is created if it is missing.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if another process has it; a directory that other users may write to, because they could
/// put another file in the lock's place; the system's.
pub fn take_lock(directory: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    let found = std::fs::symlink_metadata(directory)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
        let why = format!("`{}` is no directory that only this user may write to", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let file = options.open(directory.join(NAME))?;
    // One that an earlier version created.
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Whether a process has the lock. Needs no privileges.
pub fn is_locked(directory: &Path) -> bool {
    let Ok(found) = std::fs::metadata(directory.join(NAME)) else { return false };
    let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
    let identity = format!("{major:02x}:{minor:02x}:{}", found.ino());
    // `1: FLOCK  ADVISORY  WRITE 1234 00:18:5678 0 EOF`
    std::fs::read_to_string("/proc/locks").is_ok_and(|text| {
        text.lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .any(|fields| fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&identity.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Goal: no other user can open the lock, and everybody can tell whether it is held.
    #[test]
    fn the_lock_is_its_users_alone_and_seen_without_opening_it() {
        let folder = tempfile::tempdir().expect("a directory");
        let directory = folder.path().join("a/b");
        assert!(!is_locked(&directory));
        // As an earlier version left it.
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join(NAME), "").expect("a file");
        let lock = take_lock(&directory).expect("it is free");
        let mode = std::fs::metadata(directory.join(NAME)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(is_locked(&directory));
        assert_eq!(take_lock(&directory).expect_err("it is held").kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        // A process that another test starts right now has the descriptor, too, until it executes its program.
        let begin = std::time::Instant::now();
        while is_locked(&directory) {
            assert!(begin.elapsed().as_secs() < 60, "the lock is still held");
            std::thread::yield_now();
        }
        take_lock(&directory).expect("it is free again");
        for mode in [0o777, 0o775] {
            std::fs::set_permissions(&directory, PermissionsExt::from_mode(mode)).expect("a directory");
            assert_eq!(take_lock(&directory).expect_err("others may write").kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
