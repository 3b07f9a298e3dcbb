//! `lockmem`: memory that is locked during the run, as if the machine had less.
//!
//! Limits: it is locked for the whole run, as much as the phase with the most needs; in fio each job locks its own while it runs.
//!
//! Source: fio's HOWTO, `lockmem`; mlock(2).

use crate::language::read_bytes;
use trueio_model::JobSpec;

/// Locked memory; it is unlocked when this is dropped.
#[derive(Debug)]
pub(super) struct Pinned {
    address: *mut libc::c_void,
    bytes: usize,
}

impl Pinned {
    /// Locks what the jobs set; `None`: nothing.
    ///
    /// # Errors
    /// Why the system does not lock that much.
    pub(super) fn of(jobs: &[JobSpec]) -> Result<Option<Self>, String> {
        let bytes = most(jobs);
        if bytes == 0 {
            return Ok(None);
        }
        let failed = || {
            let error = std::io::Error::last_os_error();
            format!("`lockmem`: {bytes} bytes cannot be locked: {error}\n  the limit of this user is `ulimit -l`")
        };
        let length =
            usize::try_from(bytes).map_err(|_| format!("`lockmem`: {bytes} bytes are more than an address space"))?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping of our own; nothing else refers to it.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(failed());
        }
        let pinned = Self { address, bytes: length };
        // SAFETY: the mapping exists, with this length, until `pinned` is dropped.
        match unsafe { libc::mlock(address, length) } {
            0 => Ok(Some(pinned)),
            _ => Err(failed()),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `of` at this address with this length, and no reference into it exists.
        unsafe { libc::munmap(self.address, self.bytes) };
    }
}

/// Returns the bytes that the phase with the most of them locks.
fn most(jobs: &[JobSpec]) -> u64 {
    let (mut most, mut now) = (0_u64, 0_u64);
    for job in jobs {
        if job.options.get("stonewall").is_some_and(|set| set.text == "true") {
            now = 0;
        }
        let text = job.fio.as_ref().and_then(|fio| fio.word("lockmem")).map_or("0", |word| word.text.as_str());
        now = now.saturating_add(read_bytes(text).unwrap_or(0));
        most = most.max(now);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::around::Reading;
    use crate::language::read;

    fn jobs(line: &str) -> Vec<JobSpec> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        read(&words, &Reading::default()).expect("jobs").jobs
    }

    #[test]
    fn the_phase_that_locks_most_counts_with_all_its_clones() {
        let jobs = jobs("--size=1m --name=a --lockmem=1m --numjobs=3 --name=b --name=c --stonewall --lockmem=2m");
        assert_eq!(most(&jobs), 3 << 20);
        assert_eq!(most(&jobs[3..]), 2 << 20);
    }

    #[test]
    fn memory_is_locked_until_it_is_dropped() {
        let locked = || {
            let text = std::fs::read_to_string("/proc/self/status").expect("status");
            let line = text.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("VmLck").trim().to_owned();
            line.trim_end_matches(" kB").parse::<u64>().expect("a number")
        };
        let jobs = jobs("--name=a --size=1m --lockmem=48k");
        let before = locked();
        let pinned = Pinned::of(&jobs).expect("48 KiB may be locked").expect("something");
        assert_eq!(locked() - before, 48);
        drop(pinned);
        assert_eq!(locked(), before);
    }
}
