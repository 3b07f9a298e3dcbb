//! `trueio powercut replay --mount`: every legal crash of programs on real filesystems, whose writes QEMU logged.
//!
//! `qemu-storage-daemon` offers a file whose writes and flushes it logs (`blklogwrites`); a loop device makes a disk of it. What a program
//! acknowledged is not in such a log, so these checks ask only whether what is there is whole.

use crate::common::*;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// QEMU's storage daemon with a logged disk; ended on drop.
struct LoggedDisk {
    daemon: Child,
    device: Option<Loop>,
}

/// Returns true, after its reason is printed, if this machine lacks what a logged disk or a program needs.
fn lacks_logged_disks() -> bool {
    let is_missing =
        |program| tool(program, &["--version"]).inspect_err(|why| trueio_testkit::skip(program, why)).is_err();
    let has_fuse = Path::new("/dev/fuse").exists();
    if !has_fuse {
        trueio_testkit::skip("fuse", "there is no /dev/fuse");
    }
    lacks("loop") || !has_fuse || is_missing("qemu-storage-daemon") || is_missing("sqlite3")
}

impl LoggedDisk {
    fn create(sandbox: &Sandbox, size_mib: u64) -> Self {
        for (name, bytes) in [("disk.raw", size_mib << 20), ("writes.log", 1 << 30), ("exported", 0)] {
            fs::File::create(sandbox.path(name)).and_then(|file| file.set_len(bytes)).expect("a file");
        }
        let mut command = Command::new("qemu-storage-daemon");
        for node in [
            "driver=file,node-name=disk-file,filename=disk.raw",
            "driver=file,node-name=log-file,filename=writes.log",
            "driver=raw,node-name=disk,file=disk-file",
            "driver=blklogwrites,node-name=logged,file=disk,log=log-file,log-sector-size=512,log-super-update-interval=1",
        ] {
            command.args(["--blockdev", node]);
        }
        command.args(["--export", "type=fuse,id=e,node-name=logged,mountpoint=exported,writable=on,allow-other=off"]);
        let daemon = command.current_dir(sandbox.path("")).stdin(Stdio::null()).spawn().expect("it starts");
        let mut disk = Self { daemon, device: None };
        let begin = Instant::now();
        let exported = sandbox.path("exported");
        while fs::metadata(&exported).expect("a file").len() == 0 {
            assert!(disk.daemon.try_wait().expect("its state").is_none(), "the daemon has ended");
            assert!(begin.elapsed() < Duration::from_secs(60), "nothing is exported");
            std::thread::sleep(Duration::from_millis(10));
        }
        disk.device = Some(Loop::over(&exported, &[]));
        disk
    }

    /// Makes a filesystem, and runs a script in it. Returns the number of log entries that made the filesystem.
    fn run(mut self, sandbox: &Sandbox, filesystem: &str, options: &str, script: &str) -> u64 {
        let device = self.device.take().expect("a device");
        let mount = Mount::on(filesystem, device, options).expect("a mount");
        tool("sync", &["--file-system", &mount.path.to_string_lossy()]).expect("synced");
        let made = entry_count(&sandbox.path("writes.log"));
        let ran = Command::new("sh").args(["-euc", script]).current_dir(&mount.path).stdout(Stdio::null()).status();
        assert!(ran.expect("it runs").success(), "{script}");
        made
    }
}

impl Drop for LoggedDisk {
    fn drop(&mut self) {
        drop(self.device.take());
        // SAFETY: a plain call; the child was not waited for, so the number is its own. It ends in order, and unmounts its export.
        unsafe { libc::kill(self.daemon.id() as libc::pid_t, libc::SIGTERM) };
        self.daemon.wait().expect("it ends");
    }
}

/// The number of entries, from the superblock of a log: magic, version, number of entries.
fn entry_count(log: &Path) -> u64 {
    let mut bytes = [0; 8];
    fs::File::open(log).and_then(|file| file.read_exact_at(&mut bytes, 16)).expect("a log");
    u64::from_le_bytes(bytes)
}

fn replay(sandbox: &Sandbox, filesystem: &str, from: u64, check: &str) -> Ran {
    let from = from.to_string();
    let own = ["powercut", "replay", "writes.log", "--mount", filesystem, "--from", &from, "--check", check];
    let ran = sandbox.run(&[&own[..], &["--seed", "7", "--images", "40", "--time", "5m"]].concat());
    println!("{}{}", ran.out, ran.err);
    ran
}

/// `ok` unless the database is damaged; one that does not exist yet is not.
const IS_INTACT: &str = "test ! -s {}/db || sqlite3 {}/db 'pragma integrity_check' | grep -qx ok";

/// Goal: a correct program on a correct filesystem passes every image.
/// Method: SQLite with a rollback journal on ext4, and with a write-ahead log on XFS.
#[test]
fn databases_that_sync_are_clean_after_every_crash() {
    if lacks_logged_disks() {
        return;
    }
    for (filesystem, size_mib, mode) in [("ext4", 64, "delete"), ("xfs", 320, "wal")] {
        let sandbox = Sandbox::new();
        let script = format!(
            "for i in 1 2 3 4; do sqlite3 db 'pragma journal_mode={mode}; pragma synchronous=full; create table if not exists t(x, y); \
             insert into t values(1, randomblob(9000));'; done"
        );
        let from = LoggedDisk::create(&sandbox, size_mib).run(&sandbox, filesystem, "", &script);
        let ran = replay(&sandbox, filesystem, from, IS_INTACT);
        assert_eq!(ran.code, Some(0), "{filesystem}");
        assert!(ran.out.starts_with("Clean: "), "{filesystem}: {}", ran.out);
    }
}

/// Goal: programs that leave out a sync are caught.
/// Method: SQLite without syncs and without a journal; a file that is renamed over another one before it is synced, on an ext4 that does not
/// do it for the program.
#[test]
fn programs_that_do_not_sync_are_caught() {
    if lacks_logged_disks() {
        return;
    }
    let off = "sqlite3 db 'pragma journal_mode=off; pragma synchronous=off; create table t(x primary key, y); \
               insert into t select value, randomblob(900) from generate_series(1, 40);'; sync; \
               sqlite3 db 'pragma journal_mode=off; pragma synchronous=off; delete from t where x % 3 = 0; \
               insert into t select value + 1000, randomblob(5000) from generate_series(1, 20);'; sync";
    let rename = "for i in 1 2 3; do head -c 8192 /dev/urandom > new; mv new config; \
                  dd if=/dev/zero of=other bs=4k count=1 conv=fsync status=none; done";
    let is_whole = "test ! -e {}/config || test $(stat --format %s {}/config) = 8192";
    for (options, script, check) in [("", off, IS_INTACT), ("noauto_da_alloc", rename, is_whole)] {
        let sandbox = Sandbox::new();
        let from = LoggedDisk::create(&sandbox, 64).run(&sandbox, "ext4", options, script);
        let ran = replay(&sandbox, "ext4", from, check);
        assert_eq!(ran.code, Some(1), "{script}");
        assert!(ran.out.contains("Failed: image "), "{script}");
    }
}
