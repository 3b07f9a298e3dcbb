//! Every way of verifying: an honest disk passes, and one bit that changed below is found.

use crate::common;

use crate::common::{Job, KIB, Open, assert_clean, filled, folder, op};
use std::os::unix::fs::FileExt;
use std::path::Path;
use trueio_engine::Start;
use trueio_model::{
    BlockPattern, BlockSizes, Checksum, Distribution, EngineKind, FileSelection, JobPlan, OpKind, OpMix, Order,
    TrimVerify, Verify,
};

const BLOCKS: u64 = 64;
const SIZE: u64 = BLOCKS * 4 * KIB;

/// A job that writes 64 blocks to `path` and compares them with these `verify` settings.
fn writes(path: &Path, verify: Verify) -> Job {
    let depth = 4;
    Job::new(EngineKind::Libaio).depth(depth).on(&[path], SIZE, Open::ReadWrite).op(OpKind::Write).with(|plan| {
        plan.verify = Some(verify);
    })
}

fn pattern() -> Option<BlockPattern> {
    Some(BlockPattern { bytes: vec![0; 8].into_iter().chain([0xab, 0xcd]).collect(), offset_places: vec![0] })
}

/// Changes one byte of a file.
fn rot(path: &Path, at: u64) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x20], at).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn every_checksum_passes_what_was_written_and_finds_a_changed_byte_offline() {
    let folder = folder();
    for checksum in Checksum::ALL {
        let path = filled(folder.path(), checksum.name(), SIZE);
        let mut verify = Verify::new(checksum);
        if checksum.compares_pattern() {
            verify.pattern = pattern();
        }
        let report = writes(&path, verify.clone()).run();
        assert_clean(&report, checksum.name());
        assert_eq!(report.verified_block_count, BLOCKS, "{}", checksum.name());
        // The same job, which only looks.
        verify.is_offline = true;
        let mut offline = writes(&path, verify);
        offline.files = vec![common::target(&path, SIZE, Open::ReadOnly)];
        let report = offline.run();
        assert_clean(&report, checksum.name());
        assert_eq!((op(&report, OpKind::Read).io_count, report.verified_block_count), (BLOCKS, BLOCKS));
        assert!(report.ops.iter().all(|op| op.op == OpKind::Read), "nothing is written");
        rot(&path, 17 * 4096 + 3000);
        let report = offline.run();
        let finds = !matches!(checksum, Checksum::Meta | Checksum::Null);
        assert_eq!(report.verify_failure_count, u64::from(finds), "{}", checksum.name());
        if finds {
            assert_eq!(report.verify_failures[0].offset, 17 * 4096, "{}", checksum.name());
        }
    }
}

/// Goal: blocks are read back while the job still writes, and each once.
/// Method: how many of them within the measured time; with a batch, only that many each time.
#[test]
fn a_backlog_is_read_back_before_the_end_and_what_it_left_at_the_end() {
    let folder = folder();
    for (backlog, batch, early) in [(16, 0, 48), (16, 8, 48), (1, 0, 63)] {
        let path = filled(folder.path(), "backlog", SIZE);
        let verify = Verify { backlog, backlog_batch: batch, ..Verify::new(Checksum::Crc32c) };
        let report = writes(&path, verify).run();
        assert_clean(&report, "backlog");
        // After 16, 32 and 48 writes: with the last write the job is over. With a batch of 8 the backlog is full again
        // after 8 more: after 16, 24, … 56.
        let back = report.read_back.unwrap();
        assert_eq!((back.within_count, back.reads.io_count), (early, BLOCKS), "{backlog}, {batch}");
        assert_eq!(report.verified_block_count, BLOCKS, "{backlog}, {batch}");
    }
}

/// Goal: what each loop wrote is read back when the loop ends, and compared with the writes of that loop.
/// Method: the number of blocks that are read within the measured time; on a dishonest disk, where writes through a second name
/// of the file replace half of each block, the differences of each loop are found.
#[test]
fn each_loop_is_read_back_when_it_ends() {
    let folder = folder();
    let once = Order::Random { distribution: Distribution::Uniform, each_block_once: true };
    let range = BlockSizes::Range { min_bytes: 4 * KIB, max_bytes: 16 * KIB };
    type Change<'a> = &'a dyn Fn(&mut JobPlan);
    let cases: [(&str, Change<'_>); 6] = [
        ("in order", &|_| {}),
        ("each once", &|plan| plan.pattern.order = once.clone()),
        ("sizes", &|plan| (plan.pattern.order, plan.pattern.write_sizes) = (once.clone(), range.clone())),
        ("pages are dropped", &|plan| plan.handling.invalidates_each_pass = true),
        ("a backlog", &|plan| plan.verify.as_mut().expect("it verifies").backlog = 48),
        ("sync calls", &|plan| plan.flush.fsync_every = 5),
    ];
    for (name, change) in cases {
        for each_loop in [false, true] {
            let path = filled(folder.path(), "loops", SIZE);
            let report = writes(&path, Verify { each_loop, ..Verify::new(Checksum::Crc32c) })
                .with(|plan| {
                    (plan.limits.loops, plan.pattern.order) = (3, Order::Sequential);
                    change(plan);
                })
                .run();
            assert_clean(&report, name);
            let back = report.read_back.expect("it is read back");
            let loops = if each_loop || name == "a backlog" { 3 } else { 1 };
            assert_eq!(back.reads.byte_count, loops * SIZE, "{name} {each_loop}");
            assert_eq!(back.loops_ns > 0, each_loop, "{name}");
            if name != "sizes" && name != "a backlog" {
                assert_eq!(back.within_count, (loops - 1) * BLOCKS, "{name} {each_loop}");
            }
        }
    }
    let path = filled(folder.path(), "first", SIZE);
    let other = folder.path().join("second");
    std::fs::hard_link(&path, &other).unwrap();
    for each_loop in [false, true] {
        let verify = Verify { each_loop, ..Verify::new(Checksum::Crc32c) };
        let job = Job::new(EngineKind::Psync).on(&[&path, &other], SIZE, Open::ReadWrite).op(OpKind::Write);
        let report = job
            .with(|plan| {
                (plan.verify, plan.pattern.order) = (Some(verify), Order::Sequential);
                plan.file_selection = FileSelection::Sequential;
                (plan.files[1].offset_bytes, plan.files[1].size_bytes) = (2 * KIB, SIZE - 4 * KIB);
                (plan.limits.loops, plan.limits.io_bytes) = (3, 2 * SIZE - 4 * KIB);
            })
            .run();
        let loops = if each_loop { 3 } else { 1 };
        assert_eq!(report.verify_failure_count, loops * BLOCKS, "{each_loop}");
        assert_eq!(report.verified_block_count, loops * (2 * BLOCKS - 1), "{each_loop}");
    }
}

/// Goal: blocks that come again, that are of several sizes, or that are read among the writes are compared with their last
/// write, and with no other.
/// Method: an honest disk passes; when every byte changed after the last write, each block that is compared is found, and
/// all that was written is compared where no block is cut by a later one.
#[test]
fn the_last_write_to_each_block_is_what_counts() {
    let folder = folder();
    let drawn = |distribution| Order::Random { distribution, each_block_once: false };
    let range = BlockSizes::Range { min_bytes: 4 * KIB, max_bytes: 16 * KIB };
    let mixed = OpMix::ReadWrite { read_percent: 50 };
    type Change<'a> = &'a dyn Fn(&mut JobPlan);
    let cases: [(&str, Change<'_>); 9] = [
        ("three passes", &|plan| plan.limits.loops = 3),
        ("in order, three passes", &|plan| {
            (plan.limits.loops, plan.pattern.order) = (3, Order::Sequential);
        }),
        ("no map", &|plan| plan.pattern.order = drawn(Distribution::Uniform)),
        ("zipf", &|plan| plan.pattern.order = drawn(Distribution::Zipf { theta: 1.2, center: None })),
        ("sizes", &|plan| plan.pattern.write_sizes = range.clone()),
        ("sizes without a map", &|plan| {
            (plan.pattern.write_sizes, plan.pattern.order) = (range.clone(), drawn(Distribution::Uniform));
        }),
        ("pieces of sizes without a map", &|plan| {
            (plan.pattern.write_sizes, plan.pattern.order) = (range.clone(), drawn(Distribution::Uniform));
            plan.verify.as_mut().expect("it verifies").interval_bytes = 4 * KIB;
        }),
        ("reads and writes, two passes", &|plan| (plan.pattern.mix, plan.limits.loops) = (mixed, 2)),
        ("reads and writes of several sizes", &|plan| {
            (plan.pattern.mix, plan.pattern.write_sizes) = (mixed, range.clone());
            (plan.pattern.read_sizes, plan.limits.loops) = (range.clone(), 2);
        }),
    ];
    for (name, change) in cases {
        let path = filled(folder.path(), "last", SIZE);
        let job = writes(&path, Verify::new(Checksum::Crc32c)).with(|plan| {
            plan.pattern.order = Order::Random { distribution: Distribution::Uniform, each_block_once: true };
            change(plan);
        });
        let report = job.run();
        assert_clean(&report, name);
        let compared = report.read_back.as_ref().map_or(0, |back| back.reads.byte_count);
        match name {
            "no map" | "zipf" | "sizes without a map" => assert!((1..SIZE).contains(&compared), "{name}: {compared}"),
            // Blocks that were overwritten in part are read, too, so units are read more than once.
            _ if name.starts_with("pieces") => assert!(compared > SIZE / 2, "{name}: {compared}"),
            _ if name.starts_with("reads") => assert!((1..=SIZE).contains(&compared), "{name}: {compared}"),
            _ => assert_eq!(compared, SIZE, "{name}: each block once"),
        }
        // And the same, with a disk that changes everything after the last write.
        let start = Start::holding_end();
        start.open();
        let report = std::thread::scope(|scope| {
            let worker = scope.spawn(|| job.run_from(&start));
            assert!(start.wait_finished(1, std::time::Duration::from_secs(20)));
            job.files[0].file.sync_all().unwrap();
            (0..SIZE / 512).for_each(|sector| rot(&path, sector * 512 + 100));
            start.release();
            worker.join().unwrap()
        });
        let back = report.read_back.expect("it is read back");
        assert_eq!(report.verify_failure_count, back.reads.io_count, "{name}");
    }
}

/// Goal: in a job whose blocks come again many times, each block is compared with its last write: an honest disk passes, and
/// one that lost that write, so that an earlier one is still there, is found.
/// Method: 200,000 writes to 16,384 blocks. The worker waits for the reader of its log, which reads nothing until the file was
/// copied: at most 34 chunks of 4,096 writes are done then. At the end three of the blocks get their earlier content.
#[test]
fn an_earlier_write_in_place_of_the_last_is_found_among_many() {
    let folder = folder();
    const BLOCK: u64 = 512;
    let size = 16_384 * BLOCK;
    for stale in [0, 3] {
        let path = filled(folder.path(), "many", size);
        let mut job = Job::new(EngineKind::Psync).on(&[&path], size, Open::ReadWrite).op(OpKind::Write);
        job = job.sizes(BlockSizes::Fixed(BLOCK)).ios(200_000).verify(Checksum::Crc32c).with(|plan| {
            plan.pattern.order = Order::Random { distribution: Distribution::Uniform, each_block_once: false };
            // One pass: further ones would draw the same blocks.
            plan.limits.io_bytes = 200_000 * BLOCK;
        });
        let (channel, chunks) = trueio_engine::log_channel();
        job.log = Some(channel);
        let (start, is_over) = (Start::holding_end(), std::sync::atomic::AtomicBool::new(false));
        start.open();
        let mut replaced = Vec::new();
        let report = std::thread::scope(|scope| {
            let worker = scope.spawn(|| job.run_from(&start));
            let first = chunks.recv().expect("the worker logs");
            let earlier = std::fs::read(&path).unwrap();
            first.give_back();
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    if let Ok(chunk) = chunks.recv_timeout(std::time::Duration::from_millis(20)) {
                        chunk.give_back();
                    }
                }
            });
            assert!(start.wait_finished(1, std::time::Duration::from_secs(100)));
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            job.files[0].file.sync_all().unwrap();
            let last = std::fs::read(&path).unwrap();
            let block = |content: &[u8], number: u64| content[(number * BLOCK) as usize..][..BLOCK as usize].to_vec();
            let was_lost = |number: &u64| {
                let earlier = block(&earlier, *number);
                earlier != block(&last, *number) && earlier != vec![1; BLOCK as usize]
            };
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            for number in (0..size / BLOCK).filter(was_lost).take(stale) {
                file.write_all_at(&block(&earlier, number), number * BLOCK).unwrap();
                replaced.push(number * BLOCK);
            }
            start.release();
            worker.join().unwrap()
        });
        assert_eq!(replaced.len(), stale, "blocks were written before and after the copy");
        let back = report.read_back.as_ref().expect("it is read back");
        assert!(back.reads.io_count > 16_000, "nearly all blocks were written: {}", back.reads.io_count);
        assert_eq!(report.verified_block_count, back.reads.io_count);
        let mut found: Vec<u64> = report.verify_failures.iter().map(|failure| failure.offset).collect();
        found.sort_unstable();
        assert_eq!(found, replaced);
        assert_eq!(report.verify_failure_count, stale as u64);
    }
}

/// Goal: blocks that are read back are counted separately, and are read with the job's queue depth.
/// Method: reads in flight together wait at the same time, so their latencies sum up to more than the pass took; one at
/// a time they cannot. If a processor is busy for a short time, for both.
#[test]
fn what_is_read_back_is_counted_by_itself_and_read_as_deep_as_the_queue() {
    let folder = folder();
    let path = filled(folder.path(), "depth", 16 * SIZE);
    let overlap = |depth: u32| {
        let job = Job::new(EngineKind::Libaio).depth(depth).on(&[&path], 16 * SIZE, Open::ReadWrite).op(OpKind::Write);
        let report = job.with(|plan| plan.verify = Some(Verify::new(Checksum::Crc32c))).run();
        assert_clean(&report, "depth");
        assert!(report.ops.iter().all(|op| op.op == OpKind::Write), "the job read nothing");
        let back = report.read_back.expect("what it wrote was read back");
        assert_eq!((back.reads.io_count, back.reads.byte_count), (16 * BLOCKS, 16 * SIZE));
        assert_eq!((back.within_count, report.verified_block_count), (0, 16 * BLOCKS));
        let latencies = &back.reads.latency;
        for histogram in [&latencies.submission, &latencies.completion, &latencies.total] {
            assert_eq!(histogram.count(), 16 * BLOCKS);
        }
        assert!(back.elapsed_ns > 0);
        latencies.total.sum_ns() as f64 / back.elapsed_ns as f64
    };
    assert!(overlap(1) <= 1.0);
    // From the page cache each is there at once.
    if common::has_direct(&path) {
        let deep = overlap(16);
        assert!(deep > 2.0, "16 reads in flight wait together: {deep}");
    }
    // Reads of a backlog are within the measured time.
    let verify = Verify { backlog: 16, ..Verify::new(Checksum::Crc32c) };
    let back = writes(&path, verify).run().read_back.unwrap();
    assert_eq!((back.reads.io_count, back.within_count), (BLOCKS, 48));
    // A job that reads nothing back has no such figures.
    let job = Job::new(EngineKind::Psync).on(&[&path], SIZE, Open::ReadWrite).op(OpKind::Write);
    assert_eq!(job.run().read_back, None);
}

#[test]
fn threads_find_what_the_worker_finds_and_in_its_order() {
    let folder = folder();
    let run = |threads: u32| {
        let path = filled(folder.path(), "threads", SIZE);
        let job = writes(&path, Verify { threads, ..Verify::new(Checksum::Sha256) });
        let start = Start::holding_end();
        start.open();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| job.run_from(&start));
            assert!(start.wait_finished(1, std::time::Duration::from_secs(20)));
            job.files[0].file.sync_all().unwrap();
            [5, 40, 41, 63].iter().for_each(|block| rot(&path, block * 4096 + 100));
            start.release();
            worker.join().unwrap()
        })
    };
    let (alone, together) = (run(0), run(3));
    assert_eq!((alone.verified_block_count, alone.verify_failure_count), (BLOCKS, 4));
    assert_eq!((together.verified_block_count, together.verify_failure_count), (BLOCKS, 4));
    let offsets =
        |report: &trueio_engine::WorkerReport| report.verify_failures.iter().map(|f| f.offset).collect::<Vec<_>>();
    assert_eq!(offsets(&alone), offsets(&together));
}

#[test]
fn with_verify_fatal_the_first_difference_ends_the_job() {
    let folder = folder();
    let path = filled(folder.path(), "fatal", SIZE);
    assert_clean(&writes(&path, Verify::new(Checksum::Crc32c)).run(), "write");
    (0..BLOCKS).for_each(|block| rot(&path, block * 4096 + 100));
    for (stops_at_first, least, most) in [(false, BLOCKS, BLOCKS), (true, 1, 4)] {
        let verify = Verify { is_offline: true, stops_at_first, ..Verify::new(Checksum::Crc32c) };
        let report = writes(&path, verify).run();
        assert!((least..=most).contains(&report.verify_failure_count), "{report:?}");
    }
}

/// Goal: trimmed blocks read as zeros, and one that does not is found.
/// Method: half of the blocks are trimmed; at the end one of them gets a byte below the worker.
#[test]
fn trimmed_blocks_must_be_zeros() {
    let folder = folder();
    for is_zero in [true, false] {
        let path = filled(folder.path(), "trim", SIZE);
        let trim = TrimVerify { percent: 50, backlog: 8, batch: 0, is_zero };
        let job = writes(&path, Verify { trim: Some(trim), ..Verify::new(Checksum::Crc32c) });
        let report = job.run();
        assert_clean(&report, "trim");
        let trims = op(&report, OpKind::Trim).io_count;
        assert!((10..50).contains(&trims), "{trims} of 64 blocks");
        let content = std::fs::read(&path).unwrap();
        let zeros = content.chunks(4096).filter(|block| block.iter().all(|&byte| byte == 0)).count() as u64;
        assert_eq!(zeros, trims);
        assert_eq!(report.verified_block_count, if is_zero { BLOCKS } else { BLOCKS - trims });
        let start = Start::holding_end();
        start.open();
        let report = std::thread::scope(|scope| {
            let worker = scope.spawn(|| job.run_from(&start));
            assert!(start.wait_finished(1, std::time::Duration::from_secs(20)));
            let content = std::fs::read(&path).unwrap();
            let first = content.chunks(4096).position(|block| block.iter().all(|&byte| byte == 0)).unwrap();
            rot(&path, first as u64 * 4096 + 9);
            start.release();
            worker.join().unwrap()
        });
        assert_eq!(report.verify_failure_count, u64::from(is_zero));
        assert!(report.verify_failures.iter().all(|failure| failure.expected.contains("trimmed")));
    }
}
