//! What a thread has used, by the kernel's account.
//!
//! Source: getrusage(2), `RUSAGE_THREAD`; Linux `Documentation/scheduler/sched-stats.rst`, `/proc/<pid>/schedstat`: time
//! on the processor, time in the run queue, times that a processor was given to the thread.

use std::io::Read;
use trueio_model::{ProcessorWait, ThreadUsage};

/// What the calling thread has used so far. `counts_waits`: also its time in the run queue, for which it reads a file.
pub fn thread_usage(counts_waits: bool) -> ThreadUsage {
    // SAFETY: the kernel fills the structure that the call passes.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let mut used = usage_of(&usage);
    used.waiting = counts_waits.then(run_queue).flatten().map(|(wait_ns, run_count)| ProcessorWait {
        wait_ns,
        run_count,
        involuntary_switch_count: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
    });
    used
}

/// Returns the calling thread's time in the run queue in nanoseconds, and how often it was given a processor. A kernel
/// without `CONFIG_SCHED_INFO` has no such file, or one of zeros. Allocates nothing.
fn run_queue() -> Option<(u64, u64)> {
    let mut text = [0; 64];
    let length = std::fs::File::open("/proc/thread-self/schedstat").ok()?.read(&mut text).ok()?;
    parse_run_queue(std::str::from_utf8(&text[..length]).ok()?)
}

fn parse_run_queue(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_whitespace().map_while(|word| word.parse::<u64>().ok());
    let (_, wait_ns, run_count) = (numbers.next()?, numbers.next()?, numbers.next()?);
    // A thread that reads this was given a processor at least once.
    (run_count > 0).then_some((wait_ns, run_count))
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
        waiting: None,
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
        waiting: from.waiting.zip(to.waiting).map(|(from, to)| to.since(&from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_queue_is_the_second_of_three_numbers() {
        assert_eq!(parse_run_queue("493854 213536 4\n"), Some((213_536, 4)));
        assert_eq!(parse_run_queue("0 0 0\n"), None, "the kernel does not count");
        assert_eq!(parse_run_queue("493854 213536"), None);
        assert_eq!(parse_run_queue(""), None);
    }

    #[test]
    fn a_thread_reads_its_own_waits_and_their_difference() {
        let before = thread_usage(true);
        let Some(waited) = before.waiting else {
            eprintln!("skipped: no /proc/thread-self/schedstat");
            return;
        };
        let between = usage_between(&before, &thread_usage(true), 1).waiting.expect("both were read");
        assert!(
            waited.run_count > 0 && between.run_count <= thread_usage(true).waiting.expect("read before").run_count
        );
        assert_eq!(usage_between(&ThreadUsage::default(), &before, 1).waiting, None, "one reading is no difference");
        assert_eq!(thread_usage(false).waiting, None);
    }
}
