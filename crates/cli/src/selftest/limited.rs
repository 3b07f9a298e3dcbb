//! A control group that limits the disk: this process enters it, and leaves it when the guard is dropped.
//!
//! Needs root and control groups of version 1 (`blkio`): those of version 2 forbid a process in a group that divides its
//! resources among others. A shell that waits for the end of a pipe removes the group if this process is killed.

use super::stage;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// More bytes than the samples of the file's content have: the job reads.
const BEGUN_BYTES: u64 = 192 << 10;
/// How long the limit holds from then on.
const LIMITED: Duration = Duration::from_millis(700);

const ROOT: &str = "/sys/fs/cgroup/blkio";
/// Removes the group `$1` once its input ends; the kernel releases a group shortly after its last process.
const REMOVE: &str =
    "read -r _; i=0; while [ -d \"$1\" ] && ! rmdir \"$1\" && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done";

/// This process in a control group that limits reads of a disk, until dropped.
pub(super) struct LimitedGroup {
    path: PathBuf,
    /// The group that this process was in.
    home: PathBuf,
    remover: Child,
    /// The limited device (`7:0`).
    number: String,
}

impl LimitedGroup {
    /// Enters a new group that limits reads of the device `number` (`7:0`).
    pub(super) fn enter(number: String, bytes_per_s: u64) -> io::Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let is_blkio = |line: &&str| line.split(':').nth(1).is_some_and(|all| all.split(',').any(|one| one == "blkio"));
        let missing = || io::Error::other("no control group of version 1 for blkio");
        let own = own.lines().find(is_blkio).and_then(|line| line.splitn(3, ':').nth(2)).ok_or_else(missing)?;
        let home = Path::new(ROOT).join(own.trim_start_matches('/'));
        let path = Path::new(ROOT).join(format!("trueio-selftest-{}", std::process::id()));
        fs::create_dir(&path)?;
        let mut remover = Command::new("sh");
        remover.args(["-c", REMOVE, "sh"]).arg(&path).stdin(Stdio::piped()).stderr(Stdio::null());
        let remover = remover.spawn().inspect_err(|_| drop(fs::remove_dir(&path)))?;
        let group = Self { path, home, remover, number };
        group.set(bytes_per_s)?;
        fs::write(group.path.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(group)
    }

    /// Sets another limit.
    pub(super) fn set(&self, bytes_per_s: u64) -> io::Result<()> {
        self.setter(bytes_per_s)()
    }

    /// Sets another limit in the middle of a run of 2 s, in a thread.
    pub(super) fn set_meanwhile(&self, bytes_per_s: u64) -> io::Result<()> {
        let set = self.setter(bytes_per_s);
        let body = move || {
            std::thread::sleep(LIMITED);
            // Without effect, the row is missed.
            let _ = set();
        };
        stage::once_read("limit", BEGUN_BYTES, body)
    }

    fn setter(&self, bytes_per_s: u64) -> impl Fn() -> io::Result<()> + Send + 'static {
        let (path, line) = (self.path.join("blkio.throttle.read_bps_device"), format!("{} {bytes_per_s}", self.number));
        move || fs::write(&path, &line)
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        let _ = fs::write(self.home.join("cgroup.procs"), std::process::id().to_string());
        drop(self.remover.stdin.take());
        let _ = self.remover.wait();
    }
}
