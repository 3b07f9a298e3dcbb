//! One suite for all engines: the same job has the same result with each of them.
//!
//! Every case runs on every engine that works here and for which it is meaningful; if one is left
//! out, the case states why. A bug found in one engine becomes a case for all.
//!
//! Exceptions: `mmap` reports no short transfer, no EOF and no ENOSPC (the process
//! would get SIGBUS, so it refuses a file shorter than its region), has no direct I/O, and fails on a
//! read-only file when it maps it, not when it writes. `null` and `simulated` use no file: they are tested
//! only where counting matters.

mod common;

use common::{
    Header, Job, KIB, Loop, MIB, MS, Open, S, assert_clean, assert_consistent, file_plan, filled, folder, has_direct,
    header, op, skip, target, tmpfs,
};
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Release};
use std::time::Duration;
use trueio_engine::{Start, TrimCall, availability};
use trueio_model::{
    Arrivals, BlockSizes, Checksum, ContentKind, EngineKind, FileSelection, Flush, OpKind, OpMix, RangeSync, SampledIo,
    SimulatedDevice,
};

/// An engine in one of the ways it is used.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    name: &'static str,
    kind: EngineKind,
    is_registered: bool,
    depth: u32,
    /// In pieces, and every third by the kernel's own threads (io_uring).
    is_asked: bool,
}

const fn way(name: &'static str, kind: EngineKind, is_registered: bool, depth: u32) -> Way {
    Way { name, kind, is_registered, depth, is_asked: false }
}

const WAYS: [Way; 15] = [
    way("psync", EngineKind::Psync, false, 1),
    way("sync", EngineKind::Sync, false, 1),
    way("vsync", EngineKind::Vsync, false, 1),
    way("pvsync", EngineKind::Pvsync, false, 1),
    way("pvsync2", EngineKind::Pvsync2, false, 1),
    way("splice", EngineKind::Splice, false, 1),
    way("posixaio", EngineKind::Posixaio, false, 4),
    way("libaio", EngineKind::Libaio, false, 4),
    way("io_uring, registered", EngineKind::IoUring, true, 4),
    way("io_uring, not registered", EngineKind::IoUring, false, 4),
    Way { is_asked: true, ..way("io_uring, in pieces, some asynchronous", EngineKind::IoUring, false, 4) },
    way("mmap", EngineKind::Mmap, false, 1),
    way("null, one at a time", EngineKind::Null, false, 1),
    way("null", EngineKind::Null, false, 4),
    way("simulated", EngineKind::Simulated, false, 4),
];

impl Way {
    fn job(&self) -> Job {
        let mut job = Job::new(self.kind).depth(self.depth);
        job.plan.uring.registered_buffers = self.is_registered;
        job.plan.uring.registered_files = self.is_registered;
        (job.plan.uring.vectored, job.plan.uring.async_every) = (self.is_asked, if self.is_asked { 3 } else { 0 });
        if self.kind == EngineKind::Simulated {
            job.plan.simulated = Some(SimulatedDevice {
                service_ns: 10_000,
                channels: 2,
                stalls: Vec::new(),
                slowdowns: Vec::new(),
                failing_ios: Vec::new(),
            });
        }
        job
    }
}

/// Every engine variant that works on this machine.
fn all() -> impl Iterator<Item = Way> {
    let works = availability();
    WAYS.into_iter().filter(move |way| {
        let found = works.iter().find(|a| a.engine == way.kind).expect("every engine is probed");
        if !found.works {
            skip(way.kind.name(), &found.reason);
        }
        found.works
    })
}

/// Those that do real I/O.
fn on_files() -> impl Iterator<Item = Way> {
    all().filter(|way| way.kind.touches_files())
}

/// Those that make a system call for each I/O, which may fail.
fn by_calls() -> impl Iterator<Item = Way> {
    on_files().filter(|way| way.kind != EngineKind::Mmap)
}

/// Those that keep several real I/Os in flight.
fn with_queue() -> impl Iterator<Item = Way> {
    on_files().filter(|way| way.kind.holds_a_queue())
}

/// The header of each 4 KiB block of a file.
fn headers(path: &Path) -> Vec<Option<Header>> {
    let content = std::fs::read(path).unwrap();
    (0..content.len()).step_by(4096).map(|at| header(&content, at)).collect()
}

#[test]
fn the_same_seed_puts_the_same_write_at_the_same_offset_on_every_engine() {
    let folder = folder();
    let mut first: Option<(Way, Vec<Option<Header>>)> = None;
    for way in on_files() {
        let path = filled(folder.path(), way.name, MIB);
        let job = way.job().on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).verify(Checksum::Crc32c);
        assert_clean(&job.run(), way.name);
        let found = headers(&path);
        match &first {
            Some((other, expected)) => assert!(found == *expected, "{} differs from {}", way.name, other.name),
            None => first = Some((way, found)),
        }
    }
}

#[test]
fn a_pass_writes_every_block_once_and_each_where_it_belongs() {
    let folder = folder();
    for way in on_files() {
        let path = filled(folder.path(), way.name, MIB);
        let job = way.job().on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).verify(Checksum::Xxhash);
        let report = job.run();
        assert_clean(&report, way.name);
        assert_eq!((op(&report, OpKind::Write).io_count, op(&report, OpKind::Write).byte_count), (256, MIB));
        let found: Vec<Header> = headers(&path).into_iter().map(|h| h.expect("a header in each block")).collect();
        for (block, header) in found.iter().enumerate() {
            assert_eq!((header.offset, header.length), (block as u64 * 4096, 4096), "{}", way.name);
        }
        let mut sequence: Vec<u64> = found.iter().map(|h| h.sequence).collect();
        assert!(!sequence.is_sorted(), "{}: random writes are in order", way.name);
        sequence.sort_unstable();
        assert_eq!(sequence, (1..=256).collect::<Vec<_>>(), "{}: each write once", way.name);
    }
}

#[test]
fn what_was_written_is_read_back_and_compared_by_both_checksums() {
    let folder = folder();
    for way in on_files() {
        for checksum in [Checksum::Crc32c, Checksum::Xxhash] {
            let path = filled(folder.path(), way.name, MIB);
            let job = way.job().on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).verify(checksum);
            let report = job.run();
            assert_clean(&report, way.name);
            assert_eq!(report.verified_block_count, 256, "{}", way.name);
            // The same by a later job that only reads.
            let report = way.job().on(&[&path], MIB, Open::ReadOnly).verify(checksum).run();
            assert_clean(&report, way.name);
            assert_eq!(report.verified_block_count, 256, "{}", way.name);
        }
    }
}

#[test]
fn a_flipped_bit_a_misplaced_block_and_a_lost_one_are_each_found_and_reported() {
    let folder = folder();
    for way in on_files() {
        let path = filled(folder.path(), way.name, MIB);
        let write = way.job().on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).verify(Checksum::Crc32c);
        assert_clean(&write.run(), way.name);
        let mut content = std::fs::read(&path).unwrap();
        content[40 * 4096 + 2000] ^= 0x10;
        content.copy_within(7 * 4096..8 * 4096, 9 * 4096);
        content[200 * 4096..201 * 4096].fill(0);
        std::fs::write(&path, &content).unwrap();
        let report = way.job().on(&[&path], MIB, Open::ReadOnly).sequential().verify(Checksum::Crc32c).run();
        assert_eq!(report.fatal, None, "{}", way.name);
        assert_eq!((report.verified_block_count, report.verify_failure_count), (256, 3), "{}", way.name);
        let found: BTreeMap<u64, &str> =
            report.verify_failures.iter().map(|f| (f.offset / 4096, f.found.as_str())).collect();
        assert!(found[&9].contains("offset 28672") && found[&9].contains("wrong place"), "{found:?}");
        assert!(found[&40].contains("not those that were written"), "{found:?}");
        assert!(found[&200].contains("never arrived"), "{found:?}");
        assert_eq!(found.len(), 3);
    }
}

/// Goal: a verify pass reads the disk and not the page cache.
/// Method: a buffered job on a loop device is held at its end, one byte of the backing file is changed
/// below the cache, and the worker is let go. `mmap` keeps its pages and is left out; it notes that.
#[test]
fn a_verify_pass_reads_the_disk_below_the_page_cache() {
    use std::os::unix::fs::FileExt;
    for way in by_calls() {
        let Some(device) = Loop::attach(MIB) else { return };
        let job = way.job().on(&[device.path()], MIB, Open::ReadWrite).op(OpKind::Write).verify(Checksum::Crc32c);
        let start = Start::holding_end();
        start.open();
        let report = std::thread::scope(|scope| {
            let worker = scope.spawn(|| job.run_from(&start));
            assert!(start.wait_finished(1, Duration::from_secs(20)));
            job.files[0].file.sync_all().unwrap();
            let backing = std::fs::OpenOptions::new().write(true).open(&device.backing).unwrap();
            backing.write_all_at(b"rotten", 100 * 4096 + 3000).unwrap();
            start.release();
            worker.join().unwrap()
        });
        assert_eq!(report.fatal, None, "{}", way.name);
        assert_eq!((report.verified_block_count, report.verify_failure_count), (256, 1), "{}", way.name);
        assert_eq!(report.verify_failures[0].offset, 100 * 4096, "{}", way.name);
        let stayed = report.engine_notes.iter().find(|note| note.contains("page cache"));
        assert_eq!(stayed, None, "{}", way.name);
    }
}

#[test]
fn several_passes_over_the_same_blocks_verify_at_every_depth() {
    let folder = folder();
    for way in on_files() {
        // 16 blocks and up to 16 in flight: where a pass ends, the next may begin with the same block.
        let path = filled(folder.path(), way.name, 64 * KIB);
        let depth = if way.kind.holds_a_queue() { 16 } else { 1 };
        let mut job = way.job().on(&[&path], 64 * KIB, Open::ReadWrite).op(OpKind::Write).depth(depth);
        job = job.verify(Checksum::Crc32c).with(|p| p.limits.loops = 40);
        let report = job.run();
        assert_clean(&report, way.name);
        assert_eq!(op(&report, OpKind::Write).io_count, 640, "{}", way.name);
        // Each with its last write.
        assert_eq!(report.verified_block_count, 16, "{}", way.name);
    }
}

#[test]
fn passes_of_mixed_sizes_verify_although_they_overlap() {
    let folder = folder();
    let sizes = BlockSizes::Weighted(vec![(4 * KIB, 60), (12 * KIB, 40)]);
    for way in on_files() {
        for is_sequential in [true, false] {
            let path = filled(folder.path(), way.name, 256 * KIB);
            let mut job = way.job().on(&[&path], 256 * KIB, Open::ReadWrite).op(OpKind::Write);
            job = job.sizes(sizes.clone()).verify(Checksum::Xxhash).with(|p| p.limits.loops = 5);
            if is_sequential {
                job = job.sequential();
            }
            let report = job.run();
            assert_clean(&report, way.name);
            assert_eq!(op(&report, OpKind::Write).byte_count, 5 * 256 * KIB);
            // The last pass is whole: at least as many blocks as the largest size makes.
            assert!(report.verified_block_count >= 256 / 12, "{}", report.verified_block_count);
        }
    }
}

#[test]
fn a_mixed_job_verifies_what_it_wrote_and_does_not_blame_blocks_that_it_did_not() {
    let folder = folder();
    for way in on_files() {
        let path = filled(folder.path(), way.name, MIB);
        let mut job = way.job().on(&[&path], MIB, Open::ReadWrite).mixed(50).verify(Checksum::Crc32c);
        job = job.with(|p| p.limits.loops = 4);
        let report = job.run();
        assert_clean(&report, way.name);
        let writes = op(&report, OpKind::Write).io_count;
        // Four deviations of 1,024 draws are 64.
        assert!(writes.abs_diff(512) < 64, "{}: {writes} writes", way.name);
        // What was written at the end, and reads of blocks written before.
        let at_end = report.read_back.as_ref().map_or(0, |back| back.reads.io_count);
        assert!(at_end > 0 && report.verified_block_count > at_end, "{}", way.name);
    }
}

#[test]
fn a_mixed_job_writes_its_own_content_and_not_what_it_read() {
    let folder = folder();
    for way in on_files() {
        let path = filled(folder.path(), way.name, MIB);
        let job = way.job().on(&[&path], MIB, Open::ReadWrite).mixed(50).with(|p| {
            p.content.kind = ContentKind::Zero;
        });
        let report = job.run();
        assert_clean(&report, way.name);
        let content = std::fs::read(&path).unwrap();
        let zeros = content.chunks(4096).filter(|b| b.iter().all(|&x| x == 0)).count() as u64;
        assert_eq!(zeros, op(&report, OpKind::Write).io_count, "{}: the file held ones", way.name);
    }
}

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
fn mixed_sizes_cover_the_region_without_gap_or_overlap() {
    let folder = folder();
    for way in on_files() {
        for sizes in [
            BlockSizes::Weighted(vec![(4 * KIB, 50), (16 * KIB, 30), (64 * KIB, 20)]),
            BlockSizes::Range { min_bytes: 4 * KIB, max_bytes: 32 * KIB },
        ] {
            let path = filled(folder.path(), "sizes", MIB);
            let job = way.job().on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).sizes(sizes);
            let report = job.verify(Checksum::Xxhash).run();
            assert_clean(&report, way.name);
            assert_eq!(op(&report, OpKind::Write).byte_count, MIB, "{}", way.name);
            let content = std::fs::read(&path).unwrap();
            let (mut at, mut lengths) = (0, std::collections::BTreeSet::new());
            while at < content.len() {
                let header = header(&content, at).unwrap_or_else(|| panic!("{}: a gap at {at}", way.name));
                assert_eq!(header.offset, at as u64, "{}", way.name);
                lengths.insert(header.length);
                at += header.length as usize;
            }
            assert_eq!(at, content.len(), "{}", way.name);
            assert!(lengths.len() >= 3, "{}: {lengths:?}", way.name);
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
fn direct_writes_verify_on_every_engine_that_can() {
    let folder = folder();
    let path = filled(folder.path(), "direct", MIB);
    if !has_direct(&path) {
        return;
    }
    for way in by_calls() {
        let job = way.job().on(&[&path], MIB, Open::Direct).op(OpKind::Write).verify(Checksum::Crc32c);
        let report = job.run();
        assert_clean(&report, way.name);
        assert_eq!(report.verified_block_count, 256, "{}", way.name);
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
        assert!((250 * MS..450 * MS).contains(&report.elapsed_ns), "{}: {} ns", way.name, report.elapsed_ns);
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
fn a_block_device_is_read_written_and_discarded_like_a_file() {
    let Some(device) = Loop::attach(4 * MIB) else { return };
    for way in on_files() {
        let open = if way.kind == EngineKind::Mmap { Open::ReadWrite } else { Open::Direct };
        let job = way.job().on(&[device.path()], 4 * MIB, open).op(OpKind::Write).verify(Checksum::Crc32c);
        assert_eq!(job.files[0].trim_call, TrimCall::Discard);
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
                assert_eq!(report.engine_notes, Vec::<String>::new(), "{}", way.name);
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
        let start = Start::new();
        start.open();
        let report = job.run_sampled(&start, Some(&AtomicU32::new(1)));
        assert_clean(&report, way.name);
        let syncs: Vec<usize> = (0..report.samples.len()).filter(|&i| report.samples[i].op == OpKind::Sync).collect();
        assert!(syncs.len() > 2, "{}: {:?}", way.name, report.samples);
        let mut first = 0;
        for sync in syncs {
            let (writes, sync_call) = (&report.samples[first..sync], &report.samples[sync]);
            assert_eq!(writes.len(), 4, "{}", way.name);
            assert!(writes.iter().all(|write| write.done_ns <= sync_call.issued_ns), "{}", way.name);
            first = sync + 1;
        }
    }
}
