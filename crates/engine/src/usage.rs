//! What a thread has used, by the kernel's account.
//!
//! Source: getrusage(2), `RUSAGE_THREAD`.

use trueio_model::ThreadUsage;

/// What the calling thread has used so far.
pub fn thread_usage() -> ThreadUsage {
    // SAFETY: the kernel fills the structure that is handed to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    usage_of(&usage)
}

/// What the kernel accounts for, without a measured time.
pub fn usage_of(usage: &libc::rusage) -> ThreadUsage {
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    ThreadUsage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        context_switch_count: count(usage.ru_nvcsw) + count(usage.ru_nivcsw),
        major_fault_count: count(usage.ru_majflt),
        minor_fault_count: count(usage.ru_minflt),
        elapsed_ns: 0,
    }
}

/// What was used between two readings of a thread that measured for `elapsed_ns`.
pub fn usage_between(from: &ThreadUsage, to: &ThreadUsage, elapsed_ns: u64) -> ThreadUsage {
    ThreadUsage {
        user_ns: to.user_ns.saturating_sub(from.user_ns),
        system_ns: to.system_ns.saturating_sub(from.system_ns),
        context_switch_count: to.context_switch_count.saturating_sub(from.context_switch_count),
        major_fault_count: to.major_fault_count.saturating_sub(from.major_fault_count),
        minor_fault_count: to.minor_fault_count.saturating_sub(from.minor_fault_count),
        elapsed_ns,
    }
}
