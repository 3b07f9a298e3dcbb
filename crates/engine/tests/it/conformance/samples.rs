//! The I/Os that are sampled for the trace.

use super::ways::{Way, all};
use crate::common::{Job, MIB, MS, Open, S, assert_clean, filled, folder};
use std::sync::atomic::{AtomicU32, Ordering::Release};
use std::time::Duration;
use trueio_engine::Start;
use trueio_model::{EngineKind, OpKind, OpMix, SampledIo};

/// `CLOCK_MONOTONIC`, in nanoseconds.
fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * S + now.tv_nsec as u64
}

/// Goal: in open windows each engine samples I/Os with timestamps around them, and otherwise
/// none.
/// Method: window 3 is open from the start and closed after 40 ms of 160; window 4 opens after 100 ms. The
/// simulated engine is left out, because its virtual time cannot be compared with a trace.
#[test]
fn ios_are_sampled_in_open_windows_only_and_lie_within_them() {
    let folder = folder();
    for way in all().filter(|w| w.kind != EngineKind::Simulated) {
        let path = filled(folder.path(), way.name, MIB);
        // On a busy machine the first window may be over before the worker has its turn: then it is longer.
        for (stretch, is_last) in [(1, false), (4, false), (16, false), (64, true)] {
            let job = if way.kind.touches_files() { way.job().on(&[&path], MIB, Open::ReadWrite) } else { way.job() };
            let job = job.time(160 * stretch * MS).with(|plan| plan.limits.loops = 1);
            if sees_both_windows(&way, &job, stretch as u32, is_last) {
                break;
            }
        }
    }
}

/// Runs a job with two windows; returns whether it began within the first.
fn sees_both_windows(way: &Way, job: &Job, stretch: u32, is_last: bool) -> bool {
    let window = AtomicU32::new(3);
    let start = Start::new();
    let (began, report, closed, opened) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| job.run_sampled(&start, Some(&window)));
        let began = monotonic_ns();
        start.open();
        std::thread::sleep(Duration::from_millis(40) * stretch);
        window.store(0, Release);
        let closed = monotonic_ns();
        std::thread::sleep(Duration::from_millis(60) * stretch);
        let opened = monotonic_ns();
        window.store(4, Release);
        (began, worker.join().expect("the worker does not panic"), closed, opened)
    });
    assert_clean(&report, way.name);
    assert!(!report.samples.is_empty(), "{}", way.name);
    for sample in &report.samples {
        let SampledIo { window, op, offset, length, issued_ns, done_ns, .. } = *sample;
        assert!(issued_ns <= done_ns && done_ns <= monotonic_ns(), "{}: {sample:?}", way.name);
        assert_eq!((op, length), (OpKind::Read, 4096), "{}", way.name);
        assert!(offset + u64::from(length) <= job.plan.files[0].size_bytes, "{}: {sample:?}", way.name);
        // A worker that was not running when the window closed may see it late, but never early.
        match window {
            3 => assert!(issued_ns >= began, "{}: {sample:?}", way.name),
            4 => assert!(issued_ns >= opened, "{}: {sample:?}", way.name),
            _ => panic!("{}: {sample:?}", way.name),
        }
    }
    let of = |number| report.samples.iter().filter(move |sample| sample.window == number);
    assert!(of(3).count() <= 128 && of(4).count() <= 128, "{}", way.name);
    assert!(job.run().samples.is_empty(), "{}: no window is open", way.name);
    let is_seen = of(3).any(|sample| sample.issued_ns < closed);
    assert!(is_seen || !is_last, "{}: the first window saw nothing", way.name);
    is_seen
}

/// Sync calls, and writes that a flag makes durable, are sampled in the order in which they were done.
#[test]
fn a_sync_call_is_sampled_after_the_writes_that_it_follows() {
    let folder = folder();
    for way in all().filter(|w| w.kind.touches_files() && w.kind != EngineKind::Mmap) {
        let path = filled(folder.path(), way.name, MIB);
        let job = way.job().on(&[&path], MIB, Open::ReadWrite).with(|plan| {
            plan.pattern.mix = OpMix::Only(OpKind::Write);
            plan.flush.fdatasync_every = 4;
        });
        // On a busy machine the clocks cannot be read together now and then, and that sample is not kept.
        let mut has_all = false;
        for _ in 0..20 {
            let start = Start::new();
            start.open();
            let report = job.run_sampled(&start, Some(&AtomicU32::new(1)));
            assert_clean(&report, way.name);
            let is_sync = |&i: &usize| report.samples[i].op == OpKind::Sync;
            let syncs: Vec<usize> = (0..report.samples.len()).filter(is_sync).collect();
            let mut first = 0;
            has_all = syncs.len() > 2;
            for sync in syncs {
                let (writes, sync_call) = (&report.samples[first..sync], &report.samples[sync]);
                assert!(writes.iter().all(|write| write.done_ns <= sync_call.issued_ns), "{}", way.name);
                has_all &= writes.len() == 4;
                first = sync + 1;
            }
            if has_all {
                break;
            }
        }
        assert!(has_all, "{}: no run has a sample of each write and sync call", way.name);
    }
}
