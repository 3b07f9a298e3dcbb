//! A tool that does not get its processor: the figures are not the disk's, and the verdict says so.

use crate::common::*;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_model::{Cause, CheckOutcome, RunRecord, Verdict};

/// Direct reads of 4 KiB, one at a time, for long enough to be withheld.
const READS: &[&str] = &[
    "run",
    "--rw",
    "randread",
    "--bs",
    "4k",
    "--ioengine",
    "psync",
    "--direct",
    "require",
    "--size",
    "4m",
    "--runtime",
    "1500ms",
    "--time_based",
];

#[track_caller]
fn assert_starved(ran: &Ran, record: &RunRecord, words: &str, situation: &str) {
    let phase = &record.phases[0];
    let check = phase.checks.iter().find(|check| check.name == "processor_wait").expect("the check ran");
    assert_eq!(check.outcome, CheckOutcome::Contradicted, "{check:?}\n{ran:?}");
    assert!(check.sentence.starts_with("starved: ") && check.sentence.contains(words), "{check:?}");
    assert_listed(situation, Some(check));
    assert_eq!(phase.verdict, Verdict::Contradicted);
    ran.assert_code(1);
    let waited = phase.disturbances.iter().find(|span| span.cause == Cause::Tool).expect("the time is marked");
    assert!(waited.what.starts_with("waited for a processor "), "{waited:?}");
    let length_ns: u64 = phase.disturbances.iter().map(|span| span.until_ns - span.from_ns).sum();
    assert!(length_ns >= 400_000_000, "{:?}", phase.disturbances);
    let waiting = phase.jobs[0].threads.waiting.expect("the kernel counts it");
    assert!(waiting.wait_ns > 0 && waiting.run_count > 0, "{waiting:?}");
}

/// Runs the reads with `options`, without the harness's acceptance of waits, and with what `prepare` does to the command.
fn run_reads(sandbox: &Sandbox, options: &[&str], prepare: impl FnOnce(&mut Command)) -> (Ran, RunRecord) {
    let path = sandbox.aside("record.json");
    let mut command = sandbox.command(&[READS, options, &["--json", path.to_str().expect("UTF-8")]].concat());
    command.env_remove("TRUEIO_ACCEPT");
    prepare(&mut command);
    let ran = Ran::of(command.output().expect("the program starts"));
    assert!(path.exists(), "no record was written\n{ran:?}");
    (ran, read_record(&path))
}

/// True, with the reason printed, if a test cannot be run here.
fn cannot_run(sandbox: &Sandbox) -> bool {
    let probe = sandbox.run(&["device", ".", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&probe.out).unwrap_or_default();
    let has_disk = facts["disks"].as_array().is_some_and(|disks| !disks.is_empty());
    if !has_disk || facts["direct"]["support"] != "direct" {
        println!("skipped: the build directory has no direct I/O, or no disk is visible below it");
        return true;
    }
    let counts = fs::read_to_string("/proc/thread-self/schedstat").is_ok_and(|text| !text.starts_with("0 0 0"));
    if !counts {
        println!("skipped: the kernel does not count how long threads wait for a processor");
    }
    !counts
}

/// Returns a processor that this program may use.
fn usable_processor() -> usize {
    (0..rustix::thread::CpuSet::MAX_CPU)
        .find(|cpu| rustix::thread::sched_getaffinity(None).is_ok_and(|set| set.is_set(*cpu)))
        .expect("a processor")
}

/// Keeps the calling thread on a processor.
fn stay_on(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).expect("a usable processor");
}

/// Goal: the figure of a worker that waits for its processor nearly all the time is withheld.
/// Method: the worker (nice 19) shares one processor with eight busy threads (nice 0), which leaves it 0.2 %: a read
/// from the disk needs more processor time than that at any rate that would keep the disk busy.
#[test]
fn a_worker_beside_busy_threads_is_starved() {
    let sandbox = Sandbox::new();
    if cannot_run(&sandbox) {
        return;
    }
    let cpu = usable_processor();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                stay_on(cpu);
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let pinned = cpu.to_string();
        let (ran, record) = run_reads(&sandbox, &["--nice", "19", "--cpus_allowed", &pinned], |_| ());
        let (accepted, suspect) = run_reads(&sandbox, &["--nice", "19", "--cpus_allowed", &pinned], |command| {
            command.env("TRUEIO_ACCEPT", "holes, processor_wait");
        });
        is_over.store(true, Relaxed);
        assert_starved(
            &ran,
            &record,
            "other programs used the processors",
            "eight busy threads on the worker's processor",
        );
        assert_eq!(suspect.plan.accepted_checks, ["holes", "processor_wait"]);
        assert_eq!(suspect.phases[0].verdict, Verdict::Suspect, "{accepted:?}");
        accepted.assert_code(0);
    });
}

/// Goal: a throttled control group is named, with its quota.
/// Method: the program has 4 % of a processor.
#[test]
fn a_run_within_a_small_quota_is_starved_and_the_machine_shows_the_quota() {
    let sandbox = Sandbox::new();
    if cannot_run(&sandbox) {
        return;
    }
    let files = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "4000")];
    let group = match ControlGroup::create("cpu", &files) {
        Ok(group) => group,
        Err(why) => return println!("skipped: {why}"),
    };
    let (ran, record) = run_reads(&sandbox, &[], |command| group.hold(command));
    let quota = record.environment.cpu.quota.expect("the quota is read");
    assert!((quota - 0.04).abs() < 1e-9, "{quota}");
    let words = "used up its CPU quota of 0.04 processors and was throttled for";
    assert_starved(&ran, &record, words, "a quota of 4 % of a processor");
}

/// Goal: waits that cost little rate but make the tail are named with the percentile.
/// Method: a thread takes the worker's processor (nice 19) for 3 ms of every 100 ms. It takes about 3 % of the time, and of the reads
/// those that were in flight then: more than one in 1,000. On a busy machine others take more, which can then explain the rate, too. Without
/// that thread, waits that are too few to explain a percentile leave the run as it is.
#[test]
fn waits_that_make_the_tail_are_named_with_the_percentile() {
    let sandbox = Sandbox::new();
    if cannot_run(&sandbox) {
        return;
    }
    let cpu = usable_processor();
    let is_over = AtomicBool::new(false);
    let options = ["--nice", "19", "--cpus_allowed", &cpu.to_string()];
    let (ran, record) = std::thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(cpu);
            while !is_over.load(Relaxed) {
                let begin = std::time::Instant::now();
                while begin.elapsed() < std::time::Duration::from_millis(3) {
                    std::hint::spin_loop();
                }
                std::thread::sleep(std::time::Duration::from_millis(97));
            }
        });
        let all = run_reads(&sandbox, &options, |_| ());
        is_over.store(true, Relaxed);
        all
    });
    let wait_of = |record: &RunRecord| {
        let check =
            record.phases[0].checks.iter().find(|check| check.name == "processor_wait").expect("the check ran").clone();
        let threads = &record.phases[0].jobs[0].threads;
        let waiting = threads.waiting.expect("the kernel counts it");
        // As the check: without the switches themselves.
        let waited_ns = waiting.wait_ns.saturating_sub(waiting.run_count * 2_000);
        (check, waited_ns as f64 / threads.elapsed_ns as f64)
    };
    let (check, share) = wait_of(&record);
    println!("waited {:.1} %: {}", share * 100.0, check.sentence);
    if share > 0.015 {
        assert!(check.objects(), "{check:?}\n{ran:?}");
        assert!(check.brief.starts_with("waited for a processor "), "{check:?}");
    }
    if (0.015..0.045).contains(&share) {
        assert!(check.sentence.contains(" % of the p99.9 of read calls ("), "{check:?}");
        assert!(check.brief.ends_with(" % of p99.9)") || check.brief.ends_with(" % of p99)"), "{check:?}");
    }
    let (ran, record) = run_reads(&sandbox, &[], |_| ());
    let (check, share) = wait_of(&record);
    println!("waited {:.1} %: {}", share * 100.0, check.sentence);
    if share < 0.01 {
        assert_eq!(check.outcome, CheckOutcome::Passed, "{check:?}\n{ran:?}");
    }
}
