//! What is written is what is read back: places, headers, checksums, overlaps, mixed sizes.

use super::ways::{Way, by_calls, headers, on_files};
use crate::common::{Header, KIB, Loop, MIB, Open, assert_clean, filled, folder, has_direct, header, op};
use std::collections::BTreeMap;
use std::time::Duration;
use trueio_engine::Start;
use trueio_model::{BlockSizes, Checksum, ContentKind, Distribution, EngineKind, OpKind, Order, Steps, Zones};

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

/// Goal: blocks whose offsets follow from others are verified with their last write, all of them, if each is overwritten whole.
/// Method: several passes, up to 16 I/Os in flight, and as many compared blocks as have a header in the file.
#[test]
fn offsets_that_follow_from_others_verify_if_blocks_stay_whole() {
    let folder = folder();
    let zones = Zones { zone_bytes: 16 * KIB, range_bytes: 32 * KIB, skip_bytes: 8 * KIB };
    let all = [
        ("percentage_random", Steps { sequential_percent: 50, ..Steps::default() }),
        ("randwrite:4", Steps { random_every: 4, ..Steps::default() }),
        ("identical", Steps { random_every: 3, repeats: true, ..Steps::default() }),
        ("blockalign", Steps { align_bytes: 4 * KIB, ..Steps::default() }),
        ("strided", Steps { zones: Some(zones), ..Steps::default() }),
        ("trimwrite", Steps { trims_first: true, ..Steps::default() }),
    ];
    for way in on_files() {
        // A mapping is not trimmed.
        for (name, steps) in all.into_iter().filter(|(_, steps)| way.kind != EngineKind::Mmap || !steps.trims_first) {
            let path = folder.path().join("steps");
            std::fs::File::create(&path).unwrap().set_len(256 * KIB).unwrap();
            let depth = if way.kind.holds_a_queue() { 16 } else { 1 };
            let mut job = way.job().on(&[&path], 256 * KIB, Open::ReadWrite).op(OpKind::Write).depth(depth);
            job = job.verify(Checksum::Crc32c).with(|p| {
                p.limits.loops = 5;
                p.pattern.steps = steps;
                let each_block_once = steps.leaves_offsets_alone();
                p.pattern.order = Order::Random { distribution: Distribution::Uniform, each_block_once };
            });
            let report = job.run();
            assert_clean(&report, &format!("{}, {name}", way.name));
            assert_eq!(op(&report, OpKind::Write).io_count, 5 * 64, "{}, {name}", way.name);
            let written = headers(&path).iter().flatten().count() as u64;
            assert!(written > 16, "{}, {name}: {written}", way.name);
            assert_eq!(report.verified_block_count, written, "{}, {name}", way.name);
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
