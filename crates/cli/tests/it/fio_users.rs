//! `uid` and `gid`: jobs that act as another user.

use crate::common::{Ran, Sandbox, lacks};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use trueio_engine::availability;
use trueio_model::{EngineKind, UserPlan};
use trueio_run::{Access, may_use};

/// The user `nobody` of most systems. Any user but root would do.
const NOBODY: UserPlan = UserPlan { uid: 65_534, gid: 65_533 };
const AS_NOBODY: &str = "--uid=65534 --gid=65533";

#[track_caller]
fn refused(sandbox: &Sandbox, line: &str, words: &str) {
    let ran = sandbox.fio(line);
    assert_eq!(ran.code, Some(1), "{line}\n{}", ran.out);
    let text = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(words), "{line}\n{}", ran.err);
}

/// Creates a directory that the user `nobody` owns and can reach; if that is not possible, prints the reason and returns
/// `None`.
fn home() -> Option<tempfile::TempDir> {
    if lacks("root") {
        return None;
    }
    let home = tempfile::Builder::new().prefix("trueio-nobody-").tempdir().expect("a directory");
    chown(home.path(), Some(NOBODY.uid), Some(NOBODY.gid)).expect("it is ours");
    match may_use(NOBODY, home.path(), Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Some(home),
        Err(error) => {
            eprintln!("skipped: the user `nobody` cannot use {}: {error}", home.path().display());
            None
        }
    }
}

/// Creates a set-user-ID file of the user `nobody`. The kernel clears that bit when an unprivileged process writes to the
/// file (chmod(2), capabilities(7) `CAP_FSETID`).
fn marked(path: &Path) {
    fs::write(path, [7; 1 << 16]).expect("a file");
    chown(path, Some(NOBODY.uid), Some(NOBODY.gid)).expect("it is ours");
    fs::set_permissions(path, fs::Permissions::from_mode(0o4777)).expect("it is ours");
}

fn is_marked(path: &Path) -> bool {
    fs::metadata(path).expect("it is there").mode() & 0o4000 != 0
}

/// Goal: the job's user creates the files, and the I/O is done with that user's rights, on each engine.
/// Method: the owner of the files; and the set-user-ID bit of an existing file, which only privileged writes preserve.
#[test]
fn files_are_created_and_io_is_done_as_the_jobs_user() {
    let Some(home) = home() else { return };
    let sandbox = Sandbox::new();
    let home = home.path().display();
    for state in availability().into_iter().filter(|state| state.works) {
        let engine = state.engine;
        if !engine.touches_files() || matches!(engine, EngineKind::Command) {
            continue;
        }
        let name = engine.name();
        let job = format!("--name={name} --ioengine={name} --rw=write --bs=4k --size=64k");
        let line = format!("{job} --directory={home}");
        sandbox.fio_done(&format!("{line} {AS_NOBODY}"));
        let made = fs::metadata(format!("{home}/{name}.0.0")).expect("it is kept");
        assert_eq!((made.uid(), made.gid(), made.len()), (NOBODY.uid, NOBODY.gid, 1 << 16), "{name}");
        sandbox.fio_done(&format!("{line} {AS_NOBODY} --rw=randread"));
        if engine == EngineKind::Mmap {
            // Writes to a mapping do not clear the bit.
            continue;
        }
        let path = PathBuf::from(format!("{home}/marked-{name}"));
        for (who, stays) in [("", true), (AS_NOBODY, false)] {
            marked(&path);
            sandbox.fio_done(&format!("{job} --filename={} {who}", path.display()));
            assert_eq!(is_marked(&path), stays, "{name} {who}");
        }
    }
    let names = "--ioengine=filecreate --nrfiles=3 --filesize=4k --name=n";
    sandbox.fio_done(&format!("{names} --directory={home} {AS_NOBODY}"));
    // Only the group, in a directory that permits it.
    sandbox.fio_done(&format!("--name=g --rw=write --size=4k --directory={home} --gid={}", NOBODY.gid));
    let made = fs::metadata(format!("{home}/g.0.0")).expect("it is kept");
    assert_eq!((made.uid(), made.gid()), (0, NOBODY.gid));
}

/// Goal: only the job acts as another user: parallel and later jobs keep their rights.
/// Method: root's jobs, one parallel and one after it; files without a name; a program; evidence.
#[test]
fn other_jobs_and_the_evidence_keep_their_rights() {
    let Some(home) = home() else { return };
    let sandbox = Sandbox::new();
    let marked_path = home.path().join("marked");
    marked(&marked_path);
    let home = home.path().display();
    let roots = format!("--filename={} --rw=write --size=64k", marked_path.display());
    let ran = sandbox.fio_done(&format!(
            "--output-format=json --name=a --directory={home} --rw=randwrite --size=64k --unlink=1 --numjobs=2 --verify=crc32c \
             --verify_async=2 {AS_NOBODY} --name=b {roots} --name=c {roots} --stonewall"
        ),
    );
    assert!(is_marked(&marked_path), "root wrote it");
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["jobs"].as_array().map(Vec::len), Some(4));
    assert!(!fs::exists(format!("{home}/a.0.0")).expect("root may ask"));
    // The facts of the file are the same for both writers.
    let checks = |who: &[&str]| {
        let directory = format!("directory={home}");
        let mut words =
            vec!["run", "--no-history", "--name=r", "--rw=randwrite", "--size=1m", "--direct=off", "--numjobs=2"];
        let flag = format!("--{directory}");
        words.push(&flag);
        words.extend(who);
        let (ran, record) = sandbox.record(&words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let phase = &record.phases[0];
        let known = phase.checks.iter().filter(|check| check.outcome != trueio_model::CheckOutcome::NotApplicable);
        let known: Vec<String> = known.map(|check| check.name.clone()).collect();
        assert_eq!(ran.out_joined().contains("as user 65534 (group 65533)"), !who.is_empty(), "{}", ran.out);
        (record.plan.jobs[0].user, known)
    };
    let (ours, theirs) = (checks(&[]), checks(&["--uid=65534", "--gid=65533"]));
    assert_eq!((ours.0, theirs.0), (None, Some(NOBODY)));
    assert_eq!(ours.1, theirs.1);
    // The program runs as that user, and this process ends it.
    let program = "--name=p --ioengine=exec --allow-exec";
    sandbox.fio_done(&format!("{program} --program=id --arguments=-u {AS_NOBODY}"));
    assert_eq!(fs::read_to_string(sandbox.path("p.stdout")).expect("it is ours").trim(), "65534");
    sandbox.fio_done(&format!("{program} --program=sleep --arguments=1000 --runtime=1 {AS_NOBODY}"));
}

/// Goal: a file that the job's user may not use is refused before anything is created, with the user and the path:
/// `user_may_not`.
#[test]
fn files_without_permission_of_the_jobs_user_are_refused_by_name() {
    let Some(home) = home() else { return };
    let sandbox = Sandbox::new();
    let secret = home.path().join("secret");
    fs::write(&secret, [7; 1 << 16]).expect("a file");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).expect("it is ours");
    // `nobody` is not in root's group, although the program is.
    let line = format!("--name=a --filename={} {AS_NOBODY}", secret.display());
    for (rw, verb) in [("read", "read"), ("randwrite", "write")] {
        let words = format!("user 65534 (group 65533) may not {verb} `{}`: Permission denied", secret.display());
        refused(&sandbox, &format!("{line} --rw={rw}"), &words);
    }
    assert_eq!(fs::read(&secret).expect("it is ours"), [7; 1 << 16]);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).expect("it is ours");
    sandbox.fio_done(&format!("{line} --rw=read"));
    refused(&sandbox, &format!("{line} --rw=write"), "may not write");
    let roots = home.path().join("roots");
    fs::create_dir(&roots).expect("a directory");
    for job in ["--rw=write --size=4k", "--ioengine=filecreate --nrfiles=2 --filesize=4k"] {
        let words =
            format!("user 65534 (group 65533) may not create files in `{}`: Permission denied", roots.display());
        refused(&sandbox, &format!("--name=a --directory={} {job} {AS_NOBODY}", roots.display()), &words);
    }
    assert_eq!(fs::read_dir(&roots).expect("it is ours").count(), 0);
}

/// Goal: without the privilege to change users a job is refused, and nothing is created: `user_not_permitted`. The user who
/// runs the program is permitted.
#[test]
fn acting_as_another_user_without_the_privilege_is_refused_first() {
    let sandbox = Sandbox::new();
    let without_rights = |line: &str| {
        let mut words = vec!["fio"];
        words.extend(line.split_whitespace());
        let mut command = sandbox.command(&words);
        let drop = || {
            // capabilities(7); without root there are none, and the calls fail.
            const CAP_SETGID: libc::c_ulong = 6;
            const CAP_SETUID: libc::c_ulong = 7;
            // SAFETY: plain system calls with integer arguments.
            unsafe {
                libc::prctl(libc::PR_CAPBSET_DROP, CAP_SETUID, 0, 0, 0);
                libc::prctl(libc::PR_CAPBSET_DROP, CAP_SETGID, 0, 0, 0);
            }
            Ok(())
        };
        // SAFETY: the closure makes system calls and allocates nothing.
        unsafe { command.pre_exec(drop) };
        Ran::of(command.output().expect("it starts"))
    };
    let job = "--name=a --rw=write --size=4k";
    for who in ["--uid=65534", "--gid=65533", AS_NOBODY] {
        let ran = without_rights(&format!("{job} {who}"));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let text = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("this process may not act as another user: Operation not permitted"), "{}", ran.err);
        assert!(text.contains("CAP_SETUID") && text.contains("sudo -u"), "{}", ran.err);
    }
    assert_eq!(sandbox.listing(), [""; 0]);
    // SAFETY: plain calls.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let ran = without_rights(&format!("{job} --uid={uid} --gid={gid} --output-format=json"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("has no effect: the program is run by that user"), "{}", ran.out);
}

/// Goal: commands before and after a job's phase have the rights of the job's user, as in fio.
#[test]
fn commands_before_and_after_a_job_run_as_its_user() {
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    let line = format!("--allow-exec --name=a --ioengine=null --size=4k --rw=read {AS_NOBODY}");
    let mut words = vec!["fio"];
    words.extend(line.split_whitespace());
    words.extend(["--exec_prerun=id -u; id -G", "--exec_postrun=id -u; id -G"]);
    let ran = sandbox.run(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for file in ["a.prerun.txt", "a.postrun.txt"] {
        let text = fs::read_to_string(sandbox.path(file)).expect("what it printed");
        assert_eq!(text, "65534\n65533\n", "{file}");
    }
}
