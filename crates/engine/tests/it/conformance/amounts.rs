//! How much is done, how fast and how deep: limits, shares, files, batches, depths, rates, stops.

use super::ways::{all, headers, on_files, with_queue};
use crate::common::{Job, KIB, MIB, MS, Open, S, assert_clean, filled, folder, has_direct, op, skip};
use std::path::Path;
use std::time::Duration;
use trueio_model::{Arrivals, Checksum, EngineKind, FileSelection, OpKind};

#[test]
fn limits_are_exact() {
    let folder = folder();
    for way in all() {
        let path = filled(folder.path(), "limits", MIB);
        let job = || {
            if way.kind.touches_files() { way.job().on(&[&path], MIB, Open::ReadWrite) } else { way.job() }
        };
        let count = |job: Job| {
            let report = job.run();
            assert_clean(&report, way.name);
            (op(&report, OpKind::Read).io_count, op(&report, OpKind::Read).byte_count)
        };
        assert_eq!(count(job()), (256, MIB), "{}: the region once", way.name);
        assert_eq!(count(job().with(|p| p.limits.loops = 3)), (768, 3 * MIB), "{}: loops", way.name);
        assert_eq!(count(job().ios(1000)), (1000, 4000 * KIB), "{}: number_ios", way.name);
        assert_eq!(count(job().with(|p| p.limits.io_count = Some(100))), (100, 400 * KIB), "{}", way.name);
        let part = job().with(|p| {
            p.limits.io_bytes = 60 * KIB;
            p.limits.loops = 2;
        });
        assert_eq!(count(part), (30, 120 * KIB), "{}: io_size", way.name);
        assert_eq!(count(job().with(|p| p.limits.io_count = Some(0))), (0, 0), "{}: none", way.name);
    }
}

#[test]
fn reads_and_writes_have_the_set_shares() {
    let folder = folder();
    for way in all() {
        let path = filled(folder.path(), "mix", MIB);
        let mut job = way.job();
        if way.kind.touches_files() {
            job = job.on(&[&path], MIB, Open::ReadWrite);
        }
        let report = job.mixed(70).ios(4000).run();
        assert_clean(&report, way.name);
        let (reads, writes) = (op(&report, OpKind::Read).io_count, op(&report, OpKind::Write).io_count);
        assert_eq!(reads + writes, 4000, "{}", way.name);
        // √(4,000 · 0.7 · 0.3) = 29; four deviations.
        assert!(reads.abs_diff(2800) < 116, "{}: {reads} reads", way.name);
    }
}

#[test]
fn several_files_are_all_written_however_the_next_is_chosen() {
    let folder = folder();
    for way in on_files() {
        for selection in [FileSelection::RoundRobin, FileSelection::Sequential, FileSelection::Random] {
            let paths: Vec<_> = (0..3).map(|i| filled(folder.path(), &format!("file{i}"), 64 * KIB)).collect();
            let refs: Vec<&Path> = paths.iter().map(|p| p.as_path()).collect();
            let mut job = way.job().on(&refs, 64 * KIB, Open::ReadWrite).op(OpKind::Write).verify(Checksum::Crc32c);
            job.plan.file_selection = selection.clone();
            if selection == FileSelection::Random {
                // Drawn, so the shares differ: four times as much finds every block.
                job.plan.limits.loops = 4;
            }
            let report = job.run();
            assert_clean(&report, way.name);
            for path in &paths {
                for (block, header) in headers(path).into_iter().enumerate() {
                    let header = header.unwrap_or_else(|| panic!("{}, {selection:?}: block {block}", way.name));
                    assert_eq!(header.offset, block as u64 * 4096);
                }
            }
            let first: Vec<u64> = headers(&paths[0]).iter().map(|h| h.unwrap().sequence).collect();
            match selection {
                FileSelection::RoundRobin => assert!(first.iter().all(|s| s % 3 == 1), "{first:?}"),
                FileSelection::Sequential => assert!(first.iter().all(|s| *s <= 16), "{first:?}"),
                FileSelection::Random | FileSelection::Drawn { .. } => {}
            }
        }
    }
}

#[test]
fn every_batch_and_completion_setting_does_the_same_work() {
    let folder = folder();
    for way in all().filter(|w| w.kind.holds_a_queue() && w.depth > 1) {
        let path = filled(folder.path(), "batch", MIB);
        for (depth, batch, min, max) in [
            (16, Some(1), 1, 0),
            (16, Some(4), 1, 0),
            (16, Some(16), 16, 0),
            (16, Some(16), 8, 4),
            (16, Some(3), 5, 5),
            (16, None, 1, 0),
            (5, Some(5), 2, 1),
        ] {
            let mut job = way.job();
            if way.kind.touches_files() {
                job = job.on(&[&path], MIB, Open::ReadWrite);
            }
            job = job.op(OpKind::Write).depth(depth);
            job.plan.queue.submit_batch = batch;
            (job.plan.queue.complete_min, job.plan.queue.complete_max) = (min, max);
            if way.kind.touches_files() {
                job = job.verify(Checksum::Crc32c);
            }
            let report = job.run();
            assert_clean(&report, &format!("{}, depth {depth}, batch {batch:?}, {min} to {max}", way.name));
            let write = op(&report, OpKind::Write);
            assert_eq!(write.io_count, 256, "{}", way.name);
            job.plan.queue.low = depth / 3;
            assert_eq!(op(&job.run(), OpKind::Write).io_count, 256, "{}, low", way.name);
            assert_eq!(write.latency.submission.count(), 256, "{}: each has its submission", way.name);
        }
    }
}

/// Goal: the queue reaches the set depth.
/// Method: Little's law: latencies together, over the time, are the mean in flight. Direct reads, since
/// buffered ones complete at once. More than half in the best of several runs, since a busy machine may keep the
/// worker from submitting; and never above.
#[test]
fn direct_io_reaches_the_set_depth() {
    let folder = folder();
    let path = filled(folder.path(), "depth", 4 * MIB);
    if !has_direct(&path) {
        return;
    }
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    for way in with_queue() {
        let achieved = || {
            let report = way.job().on(&[&path], 4 * MIB, Open::Direct).depth(16).ios(2_000).run();
            assert_clean(&report, way.name);
            let achieved = op(&report, OpKind::Read).latency.total.sum_ns() as f64 / report.elapsed_ns as f64;
            assert!(achieved < 16.1, "{}: {achieved:.1} of 16", way.name);
            achieved
        };
        let tried: Vec<f64> = (0..20).map(|_| achieved()).take_while(|achieved| *achieved < 8.0).collect();
        assert!(tried.len() < 20, "{}: {tried:.1?} of 16", way.name);
    }
}

#[test]
fn a_request_to_stop_is_obeyed_within_300_ms_whatever_the_job_waits_for() {
    let folder = folder();
    for way in all() {
        let path = filled(folder.path(), way.name, MIB);
        let job = || {
            let job = if way.kind.touches_files() { way.job().on(&[&path], MIB, Open::ReadWrite) } else { way.job() };
            job.time(600 * S)
        };
        // Waiting in virtual time takes no time: there the job would end before it is stopped.
        let is_virtual = way.kind == EngineKind::Simulated;
        let jobs = [
            ("busy", if is_virtual { job().time(u64::MAX / 4) } else { job() }),
            ("paced", job().rate(0.001, Arrivals::Linear)),
            ("thinking", job().think(300 * S, 1)),
            ("delayed", job().with(|p| p.limits.start_delay_ns = 300 * S)),
        ];
        for (what, job) in jobs.iter().take(if is_virtual { 1 } else { 4 }) {
            // A busy machine may take the processor away for a while, but not every time.
            let soon = Duration::from_millis(300);
            let mut took = Vec::new();
            while took.len() < 20 && took.last().is_none_or(|last| *last >= soon) {
                job.stop.store(false, std::sync::atomic::Ordering::Relaxed);
                let (report, obeyed) = job.run_and_stop(Duration::from_millis(40));
                assert!(report.was_stopped, "{}, {what}", way.name);
                assert_clean(&report, way.name);
                took.push(obeyed);
            }
            assert!(took.last().is_some_and(|last| *last < soon), "{}, {what}: {took:?}", way.name);
        }
    }
}

#[test]
fn a_runtime_is_kept_on_the_real_clock() {
    let folder = folder();
    for way in all().filter(|w| w.kind != EngineKind::Simulated) {
        let path = filled(folder.path(), way.name, MIB);
        let job = if way.kind.touches_files() { way.job().on(&[&path], MIB, Open::ReadWrite) } else { way.job() };
        let report = job.time(250 * MS).run();
        assert_clean(&report, way.name);
        // The runtime is a whole number of ticks, which may be a nanosecond less.
        assert!((250 * MS - 1..450 * MS).contains(&report.elapsed_ns), "{}: {} ns", way.name, report.elapsed_ns);
        assert!(report.series.len() >= 3, "{}: {} rows", way.name, report.series.len());
    }
}

#[test]
fn a_rate_is_kept_on_the_real_clock() {
    let folder = folder();
    for way in all().filter(|w| w.kind != EngineKind::Simulated) {
        let path = filled(folder.path(), way.name, MIB);
        let job = if way.kind.touches_files() { way.job().on(&[&path], MIB, Open::ReadWrite) } else { way.job() };
        let report = job.time(200 * MS).rate(1_000.0, Arrivals::Linear).run();
        assert_clean(&report, way.name);
        let read = op(&report, OpKind::Read);
        // A worker that was not scheduled in time issues late, but issues all that were due.
        assert!(read.io_count + report.backlog_count == 200, "{}: {}", way.name, read.io_count);
        assert_eq!(read.latency.from_intended.count(), read.io_count, "{}", way.name);
        assert_eq!(report.pacing_lateness.count(), read.io_count, "{}", way.name);
    }
}

#[test]
fn io_uring_works_at_every_depth_and_with_a_polling_kernel_thread() {
    let folder = folder();
    for way in with_queue().filter(|w| w.kind == EngineKind::IoUring) {
        let path = filled(folder.path(), "rings", MIB);
        for depth in [1, 2, 3, 32, 200] {
            for batch in [Some(1), Some(depth), None] {
                let mut job = way.job().on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).depth(depth);
                job.plan.queue.submit_batch = batch;
                let report = job.verify(Checksum::Crc32c).run();
                assert_clean(&report, &format!("{}, depth {depth}, batch {batch:?}", way.name));
                // Whether each page could be dropped before the read-back is the system's affair.
                let is_of_engine = |note: &&String| !note.starts_with("verify: ");
                let notes: Vec<&String> = report.engine_notes.iter().filter(is_of_engine).collect();
                assert!(notes.is_empty(), "{}: {notes:?}", way.name);
            }
        }
        let mut job = way.job().on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).depth(8);
        job.plan.uring.sqpoll = true;
        let report = job.verify(Checksum::Crc32c).run();
        match &report.fatal {
            Some(reason) => skip("sqpoll", reason),
            None => assert_clean(&report, "SQPOLL"),
        }
    }
}

#[test]
fn workers_of_one_job_do_different_io() {
    let folder = folder();
    for way in on_files() {
        let order = |worker: u32| {
            let path = filled(folder.path(), "worker", MIB);
            let mut job = way.job().on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).verify(Checksum::Crc32c);
            job.worker = worker;
            assert_clean(&job.run(), way.name);
            headers(&path)
        };
        assert_ne!(order(0), order(1), "{}", way.name);
    }
}
