//! Limits of threads that a plan would exceed.
//!
//! A worker is a thread. The kernel limits the threads of a user (`ulimit -u`, unless the process is privileged) and those
//! of a control group (`pids.max`). A phase that needs more than is left is refused while planning, instead of failing
//! at the thread that cannot be started any more.
//!
//! Cannot see: limits of groups above a container, and threads that others start until the run begins.
//!
//! Source: getrlimit(2) `RLIMIT_NPROC`, Linux `Documentation/admin-guide/cgroup-v2.rst` "PID".

use rustix::process::{Resource, getrlimit, getuid};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs;
use std::os::unix::fs::MetadataExt;
use trueio_device::System;
use trueio_model::JobPlan;

/// Threads in addition to the workers: those of this process that watch, write logs and ask the kernel.
const OTHERS: u64 = 8;
/// Phases with fewer workers are not examined: counting threads takes longer than starting so few of them.
const EXAMINED_FROM: u64 = 32;

/// Checks that the workers of each phase can be started.
///
/// # Errors
/// A sentence with the number of workers and the limit.
pub(crate) fn check_threads(jobs: &[JobPlan]) -> Result<(), String> {
    let phases = jobs.iter().map(|job| job.phase).max().map_or(0, |last| last + 1);
    let of_phase = |phase| jobs.iter().filter(|job| job.phase == phase).map(|job| u64::from(job.workers)).sum::<u64>();
    let workers = (0..phases).map(of_phase).max().unwrap_or(0);
    if workers < EXAMINED_FROM {
        return Ok(());
    }
    let sentence = |of: &str, limit: u64, used: u64, remedy: &str| {
        Err(format!(
            "a phase has {workers} workers, each a thread, and {of} may have {limit} threads, of which {used} exist; use \
             fewer workers, or {remedy}"
        ))
    };
    if let Some((limit, used)) = limit_of_user()
        && used + workers + OTHERS > limit
    {
        return sentence("this user", limit, used, "raise the limit (`ulimit -u`, LimitNPROC= of a service)");
    }
    if let Some((limit, used)) = trueio_device::thread_limit(&System::live())
        && used + workers + OTHERS > limit
    {
        return sentence("the control group of this process", limit, used, "raise its `pids.max`");
    }
    Ok(())
}

/// Returns the limit of this user's threads, and how many there are; `None` without a limit.
fn limit_of_user() -> Option<(u64, u64)> {
    let limit = getrlimit(Resource::Nproc).current?;
    let may_exceed = CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_ADMIN;
    // The kernel exempts the first user namespace's root, too (Linux `kernel/fork.c`, `is_rlimit_overlimit`).
    if getuid().is_root() || capabilities(None).is_ok_and(|own| own.effective.intersects(may_exceed)) {
        return None;
    }
    Some((limit, threads_of(getuid().as_raw())))
}

/// Counts the threads of a user in this namespace of processes. A process that ends meanwhile does not count.
fn threads_of(user: u32) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let threads = processes.filter_map(|process| {
        let is_process = process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        if !is_process || process.metadata().ok()?.uid() != user {
            return None;
        }
        let status = fs::read_to_string(process.path().join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse::<u64>().ok()
    });
    threads.sum()
}
