//! A block device that a process of this machine serves: who uses it, and what that process needs of the system.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Returns whether something has a block device mounted, claimed or stacked upon. Opening it may read it, so the thread that
/// serves it must not call this.
pub fn is_claimed(device: &Path) -> bool {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device);
    opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// Prepares this process for serving a disk: its memory is never paged out, its own allocations do not wait for writes to the
/// disk that it serves, and it is not chosen when memory runs out. Returns a sentence for each that failed.
///
/// # Source
/// mlockall(2); prctl(2), `PR_SET_IO_FLUSHER` (Linux 5.6); proc(5), `oom_score_adj`.
pub fn protect_process() -> Vec<String> {
    let mut failed = Vec::new();
    // SAFETY: plain call.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
        failed.push(format!("its memory may be paged out: mlockall: {}", io::Error::last_os_error()));
    }
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: plain call with numbers.
    if unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) } != 0 {
        let error = io::Error::last_os_error();
        failed.push(format!("it may wait for its own disk when memory is short: PR_SET_IO_FLUSHER: {error}"));
    }
    if let Err(error) = fs::write("/proc/self/oom_score_adj", "-1000") {
        failed.push(format!("it may be killed when memory runs out: /proc/self/oom_score_adj: {error}"));
    }
    failed
}
