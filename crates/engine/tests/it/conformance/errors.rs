//! Failed and short I/Os, and what a job does after them.

use super::ways::{by_calls, with_queue};
use crate::common::{Job, KIB, MIB, Open, assert_consistent, file_plan, filled, folder, has_direct, op, target, tmpfs};
use trueio_model::{BlockSizes, EngineKind, OpKind};

#[test]
fn a_short_read_is_reported_with_its_length_and_offset() {
    let folder = folder();
    for way in by_calls() {
        let path = filled(folder.path(), way.name, 512 * KIB + 1000);
        let job = way.job().on(&[&path], MIB, Open::ReadOnly).sequential().depth(1);
        let report = job.run();
        assert_consistent(&report, way.name);
        let read = op(&report, OpKind::Read);
        assert_eq!((read.io_count, read.short_count, read.error_count), (129, 1, 0), "{}", way.name);
        assert_eq!(read.byte_count, 512 * KIB + 1000, "{}", way.name);
        let failure = &report.failures[0];
        assert_eq!(
            (failure.errno, failure.returned, failure.offset, failure.length),
            (0, 1000, 512 * KIB, 4096),
            "{}",
            way.name
        );
    }
}

#[test]
fn a_read_after_the_end_is_an_error_and_not_a_fast_io() {
    let folder = folder();
    for way in by_calls() {
        let path = filled(folder.path(), way.name, 0);
        let report = way.job().on(&[&path], MIB, Open::ReadOnly).depth(1).run();
        let read = op(&report, OpKind::Read);
        assert_eq!((read.io_count, read.error_count), (0, 1), "{}", way.name);
        assert!(read.latency.total.is_empty(), "{}", way.name);
        let [failure] = &report.failures[..] else { panic!("{}: {:?}", way.name, report.failures) };
        assert_eq!((failure.errno, failure.returned, failure.length), (0, 0, 4096), "{}", way.name);
    }
}

#[test]
fn mmap_refuses_a_file_shorter_than_its_region_instead_of_a_signal() {
    let folder = folder();
    let path = filled(folder.path(), "short", 4096);
    let report = Job::new(EngineKind::Mmap).on(&[&path], MIB, Open::ReadWrite).run();
    let fatal = report.fatal.expect("a refusal");
    assert!(fatal.contains("mapping 1048576 bytes") && fatal.contains("which has 4096"), "{fatal}");
}

#[test]
fn a_misaligned_direct_io_ends_the_job_with_the_failed_request() {
    let folder = folder();
    let path = filled(folder.path(), "direct", MIB);
    if !has_direct(&path) {
        return;
    }
    for way in by_calls() {
        for (what, size, offset) in [("length", 4096 + 512 + 1, 0), ("offset", 4096, 100)] {
            for op_kind in [OpKind::Read, OpKind::Write] {
                let mut job = way.job().on(&[&path], MIB, Open::Direct).op(op_kind).sequential();
                job = job.sizes(BlockSizes::Fixed(size)).with(|p| {
                    p.files = vec![file_plan("direct", offset, MIB / 2)];
                });
                let report = job.run();
                assert_eq!(report.fatal, None, "{}", way.name);
                let [failure] = &report.failures[..] else { panic!("{}: {:?}", way.name, report.failures) };
                assert_eq!((failure.errno, failure.op, failure.length), (libc::EINVAL, op_kind, size), "{}", way.name);
                let wrong = if what == "length" { failure.length } else { failure.offset };
                assert_ne!(wrong % 512, 0, "{}, {op_kind}, {what}: {failure:?}", way.name);
                assert_eq!(op(&report, op_kind).io_count, 0, "{}", way.name);
            }
        }
        let report = way.job().on(&[&path], MIB, Open::Direct).with(|p| p.buffer_alignment_bytes = 1).run();
        match &report.failures[..] {
            // The allocator may have returned an aligned address, and some kernels accept any.
            [] => {}
            [failure] => {
                assert_ne!(failure.address % 512, 0, "{}", way.name);
                assert_eq!(failure.errno, libc::EINVAL, "{}", way.name);
            }
            more => panic!("{}: {more:?}", way.name),
        }
    }
}

#[test]
fn a_full_filesystem_ends_the_run_with_enospc_and_everything_before_is_kept() {
    for way in by_calls() {
        // One each: a closed ring releases its registered files, and their space, asynchronously.
        let Some(tmpfs) = tmpfs(MIB) else { return };
        let path = filled(&tmpfs.path, "full", 0);
        let job = way.job().on(&[&path], 2 * MIB, Open::ReadWrite).op(OpKind::Write).sequential();
        let report = job.run();
        assert_consistent(&report, way.name);
        assert_eq!(report.fatal, None, "{}", way.name);
        let failure = &report.failures[0];
        assert_eq!(failure.errno, libc::ENOSPC, "{}: {failure:?}", way.name);
        let done = op(&report, OpKind::Write).byte_count;
        assert!((MIB / 2..=MIB).contains(&done), "{}: {done}", way.name);
    }
}

#[test]
fn a_write_to_a_file_opened_for_reading_fails_with_ebadf() {
    let folder = folder();
    let path = filled(folder.path(), "readonly", MIB);
    for way in by_calls() {
        let report = way.job().on(&[&path], MIB, Open::ReadOnly).op(OpKind::Write).depth(1).run();
        assert_eq!((report.failures.len(), report.failures[0].errno), (1, libc::EBADF), "{}", way.name);
        assert_eq!((report.failures[0].count, &report.failures[0].path), (1, &path.display().to_string()));
        assert_eq!(op(&report, OpKind::Write).error_count, 1, "{}", way.name);
    }
    let report = Job::new(EngineKind::Mmap).on(&[&path], MIB, Open::ReadOnly).op(OpKind::Write).run();
    assert!(report.fatal.is_some_and(|f| f.contains("mapping") && f.contains("Permission denied")));
}

#[test]
fn a_job_that_goes_on_after_errors_counts_every_one() {
    let folder = folder();
    let path = filled(folder.path(), "readonly", MIB);
    for way in by_calls() {
        let mut job = way.job().on(&[&path], MIB, Open::ReadOnly).op(OpKind::Write).depth(way.depth);
        job.plan.continue_on_error = true;
        let report = job.run();
        let write = op(&report, OpKind::Write);
        assert_eq!((write.io_count, write.error_count), (0, 256), "{}", way.name);
        assert_eq!((report.failures.len(), report.failures[0].count), (1, 256), "{}", way.name);
    }
}

/// Goal: a request that the kernel rejects does not take its neighbours with it.
/// Method: batches of eight, every second request to a file that cannot be written. `io_submit` stops
/// at the first bad one of a batch, `io_uring_enter` may.
#[test]
fn a_rejected_request_in_a_batch_fails_alone() {
    let folder = folder();
    for way in with_queue() {
        let good = filled(folder.path(), "good", MIB);
        let bad = filled(folder.path(), "bad", MIB);
        let mut job = way.job().on(&[&good, &bad], MIB, Open::ReadWrite).op(OpKind::Write).depth(16);
        job.files[1] = target(&bad, MIB, Open::ReadOnly);
        job.plan.queue.submit_batch = Some(8);
        job.plan.continue_on_error = true;
        let report = job.run();
        assert_consistent(&report, way.name);
        assert_eq!(report.fatal, None, "{}", way.name);
        let write = op(&report, OpKind::Write);
        assert_eq!((write.io_count, write.error_count), (256, 256), "{}", way.name);
        assert_eq!(report.failures[0].path, bad.display().to_string(), "{}", way.name);
    }
}
