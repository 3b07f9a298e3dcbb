//! Sync calls, ranges written out, trims, and block devices.

use super::ways::{all, on_files};
use crate::common::{KIB, Loop, MIB, Open, assert_clean, filled, folder, op, skip};
use std::os::fd::AsRawFd;
use trueio_engine::TrimCall;
use trueio_model::{BlockSizes, Checksum, EngineKind, Flush, OpKind, RangeSync};

#[test]
fn a_sync_call_follows_every_nth_write_and_one_follows_at_the_end() {
    let folder = folder();
    for way in all() {
        let path = filled(folder.path(), "sync", MIB);
        for (data_only, at_end) in [(false, false), (true, true)] {
            let mut job = way.job();
            if way.kind.touches_files() {
                job = job.on(&[&path], MIB, Open::ReadWrite);
            }
            job = job.op(OpKind::Write);
            *(if data_only { &mut job.plan.flush.fdatasync_every } else { &mut job.plan.flush.fsync_every }) = 50;
            job.plan.flush.end_fsync = at_end;
            let report = job.run();
            assert_clean(&report, way.name);
            assert_eq!(op(&report, OpKind::Write).io_count, 256, "{}", way.name);
            // After 50, 100, … 250 writes, and at the end.
            assert_eq!(op(&report, OpKind::Sync).io_count, 5 + u64::from(at_end), "{}", way.name);
        }
    }
}

/// Goal: calls on ranges are made and counted on every engine, and no sync call is made of them.
#[test]
fn a_range_is_written_out_after_every_so_many_writes() {
    let folder = folder();
    for way in all() {
        let path = filled(folder.path(), "range", MIB);
        for at_end in [false, true] {
            let mut job = way.job();
            if way.kind.touches_files() {
                job = job.on(&[&path], MIB, Open::ReadWrite);
            }
            job = job.op(OpKind::Write);
            job.plan.flush.range = Some(RangeSync { every: 50, waits_before: true, writes: true, waits_after: true });
            job.plan.flush.end_fsync = at_end;
            let report = job.run();
            assert_clean(&report, way.name);
            assert_eq!(op(&report, OpKind::Write).io_count, 256, "{}", way.name);
            assert_eq!(op(&report, OpKind::Sync).io_count, 5 + u64::from(at_end), "{}", way.name);
        }
    }
}

#[test]
fn only_an_end_sync_is_one_sync_a_file_and_lies_in_the_measured_time() {
    let folder = folder();
    let none = Flush::default();
    for way in on_files() {
        for (flush, calls) in [
            (Flush { end_fsync: true, ..none }, 2),
            (Flush { end_fdatasync: true, ..none }, 2),
            (Flush { fsync_on_close: true, ..none }, 2),
            (Flush { end_fsync: true, fsync_on_close: true, ..none }, 2),
        ] {
            let paths = [filled(folder.path(), "a", MIB), filled(folder.path(), "b", MIB)];
            let mut job = way.job().on(&[&paths[0], &paths[1]], MIB, Open::ReadWrite).op(OpKind::Write);
            job.plan.flush = flush;
            let report = job.run();
            assert_clean(&report, way.name);
            let sync = op(&report, OpKind::Sync);
            assert_eq!(sync.io_count, calls, "{}: {flush:?}", way.name);
            let least: u64 = sync.latency.total.min_ns().unwrap_or(0);
            assert!(report.elapsed_ns >= 2 * least, "{}: {flush:?}", way.name);
        }
    }
}

#[test]
fn a_trim_punches_a_hole_and_its_latency_is_that_of_the_call() {
    let folder = folder();
    for way in on_files() {
        let path = filled(folder.path(), "trim", MIB);
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let mut job = way.job().on(&[&path], MIB / 2, Open::ReadWrite).op(OpKind::Trim);
        job.files[0].end_bytes = MIB;
        let report = job.run();
        if report.failures.iter().any(|f| f.errno == libc::EOPNOTSUPP) {
            skip("punch_hole", "the filesystem punches no holes");
            return;
        }
        assert_clean(&report, way.name);
        let trim = op(&report, OpKind::Trim);
        assert_eq!((trim.io_count, trim.byte_count), (128, MIB / 2), "{}", way.name);
        // Punching takes microseconds; a system call alone takes more than this.
        assert!(trim.latency.total.min_ns().unwrap() > 100, "{}: {:?}", way.name, trim.latency.total);
        let file = std::fs::File::open(&path).unwrap();
        // SAFETY: a plain call on an open descriptor.
        let data = unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_DATA) };
        assert_eq!(data, (MIB / 2) as i64, "{}: data begins after the hole", way.name);
        assert_eq!(file.metadata().unwrap().len(), MIB, "{}: the length is kept", way.name);
    }
}

#[test]
fn a_block_device_is_read_written_and_discarded_like_a_file() {
    let Some(device) = Loop::attach(4 * MIB) else { return };
    for way in on_files() {
        let open = if way.kind == EngineKind::Mmap { Open::ReadWrite } else { Open::Direct };
        let job = way.job().on(&[device.path()], 4 * MIB, open).op(OpKind::Write).verify(Checksum::Crc32c);
        assert!(matches!(job.files[0].trim_call, TrimCall::Discard(_)));
        let report = job.with(|p| p.flush.end_fsync = true).run();
        assert_clean(&report, way.name);
        assert_eq!(report.verified_block_count, 1024, "{}", way.name);

        let trims = BlockSizes::Fixed(64 * KIB);
        let report = way.job().on(&[device.path()], 2 * MIB, open).op(OpKind::Trim).sizes(trims).run();
        if report.failures.iter().any(|f| f.errno == libc::EOPNOTSUPP) {
            skip("discard", "the loop device discards nothing");
            return;
        }
        assert_clean(&report, way.name);
        let trim = op(&report, OpKind::Trim);
        assert_eq!((trim.io_count, trim.byte_count), (32, 2 * MIB), "{}", way.name);
        assert!(trim.latency.total.min_ns().unwrap() > 100, "{}", way.name);
        let backing = std::fs::File::open(&device.backing).unwrap();
        backing.sync_all().unwrap();
        // SAFETY: a plain call on an open descriptor.
        let data = unsafe { libc::lseek(backing.as_raw_fd(), 0, libc::SEEK_DATA) };
        assert_eq!(data, (2 * MIB) as i64, "{}: the discarded part is a hole", way.name);
    }
}
