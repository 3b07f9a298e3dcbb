//! Options that change the submitted I/Os but not their number: buffer alignment and content, ordering, and file
//! positions.

use crate::common::{
    Job, KIB, MIB, Open, assert_clean, assert_consistent, engines_with_priorities, filled, folder, has_direct, op,
    share, skip, target,
};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use trueio_direct::BufferPool;
use trueio_engine::{
    Completion, Engine, EngineSetup, IoUringEngine, LibaioEngine, Request, Start, TargetFile, TrimCall, availability,
};
use trueio_model::{Advice, BlockSizes, Checksum, ContentKind, EngineKind, OpKind, UringOptions, WriteFlags};

/// The reading end of a pipe as a job's file: a read completes when the test writes.
fn pipe_target(reader: std::io::PipeReader) -> TargetFile {
    TargetFile {
        file: Arc::new(OwnedFd::from(reader).into()),
        path: "pipe".to_owned(),
        trim_call: TrimCall::PunchHole,
        end_bytes: 0,
        lock: None,
        disk: None,
    }
}

/// The engines on files that work here.
fn engines() -> Vec<EngineKind> {
    availability().into_iter().filter(|a| a.works && a.engine.touches_files()).map(|a| a.engine).collect()
}

fn depth_of(engine: EngineKind) -> u32 {
    if engine.holds_a_queue() { 4 } else { 1 }
}

#[test]
fn buffers_that_begin_one_byte_late_carry_the_same_data_through_the_page_cache() {
    let folder = folder();
    for engine in engines() {
        let path = filled(folder.path(), engine.name(), MIB);
        let job = Job::new(engine).depth(depth_of(engine)).on(&[&path], MIB, Open::ReadWrite);
        let report = job.mixed(50).verify(Checksum::Crc32c).with(|p| p.buffer_offset_bytes = 1).run();
        assert_clean(&report, engine.name());
        assert!(report.verified_block_count > 0, "{}", engine.name());
    }
}

/// Goal: the loop of the published 0.112 s, made by an engine: direct calls of 128 KiB from a misaligned buffer.
/// Method: 64 of them with `continue_on_error`. The kernel refuses each, whatever its age: 128 KiB do not lie
/// within one page. Each is counted as an error, none as an I/O, and the address is named.
#[test]
fn direct_calls_from_a_misaligned_buffer_all_fail_and_are_counted_and_explained() {
    let folder = folder();
    let path = filled(folder.path(), "direct", 8 * MIB);
    if !has_direct(&path) {
        return;
    }
    // `mmap` has no direct I/O; `splice` reads into pages of its pipe, independent of the buffer's address.
    let by_address = |engine: &EngineKind| !matches!(engine, EngineKind::Mmap | EngineKind::Splice);
    for engine in engines().into_iter().filter(by_address) {
        for op_kind in [OpKind::Read, OpKind::Write] {
            let job = Job::new(engine).depth(depth_of(engine)).on(&[&path], 8 * MIB, Open::Direct).op(op_kind);
            let job = job.sizes(BlockSizes::Fixed(128 * KIB)).with(|plan| {
                plan.buffer_offset_bytes = 1;
                plan.continue_on_error = true;
            });
            let report = job.run();
            assert_consistent(&report, engine.name());
            let record = op(&report, op_kind);
            assert_eq!((record.io_count, record.byte_count, record.error_count), (0, 0, 64), "{}", engine.name());
            let [failure] = &report.failures[..] else { panic!("{}: {:?}", engine.name(), report.failures) };
            assert_eq!((failure.errno, failure.count, failure.address % 4096), (libc::EINVAL, 64, 1));
        }
    }
}

#[test]
fn a_pattern_is_all_that_is_written_by_every_engine_and_by_each_of_its_buffers() {
    let folder = folder();
    for engine in engines() {
        let path = filled(folder.path(), engine.name(), MIB);
        let job = Job::new(engine).depth(depth_of(engine)).on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write);
        let job = job.with(|plan| {
            plan.content.kind = ContentKind::Pattern;
            plan.content.pattern = vec![0xff, 0x58];
        });
        assert_clean(&job.run(), engine.name());
        let content = std::fs::read(&path).unwrap();
        assert!(content.chunks(2).all(|pair| pair == [0xff, 0x58]), "{}", engine.name());
    }
}

/// Goal: workers that move a file's position do not move each other's.
/// Method: four threads of each engine read all of one file, shared as a run shares it, each block with a header
/// with its offset; verification finds a block from another offset.
#[test]
fn workers_of_one_file_have_positions_of_their_own() {
    let folder = folder();
    for engine in [EngineKind::Sync, EngineKind::Vsync] {
        let path = filled(folder.path(), engine.name(), MIB);
        let write = Job::new(engine).on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).verify(Checksum::Crc32c);
        assert_clean(&write.run(), engine.name());
        let shared = target(&path, MIB, Open::ReadOnly);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (path, shared) = (&path, shared.clone());
                scope.spawn(move || {
                    let mut job = Job::new(engine).on(&[path], MIB, Open::ReadOnly).verify(Checksum::Crc32c);
                    job = job.with(|plan| plan.limits.loops = 20);
                    (job.files, job.worker) = (vec![shared], worker);
                    let report = job.run();
                    assert_clean(&report, engine.name());
                    assert_eq!(report.verified_block_count, 20 * 256, "{}", engine.name());
                });
            }
        });
    }
}

/// Goal: with `drain` an I/O waits for all before it; without, it does not.
/// Method: the first read is of an empty pipe and cannot complete until something is written there; the second
/// is on a file. The order of completions shows whether it waited.
#[test]
fn a_drained_io_waits_for_those_before_it() {
    let folder = folder();
    let path = filled(folder.path(), "file", MIB);
    if !availability().iter().any(|a| a.engine == EngineKind::IoUring && a.works) {
        skip("io_uring", "it does not work here");
        return;
    }
    for drain in [false, true] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let pool = BufferPool::new(2, 4096, 4096).unwrap();
        let setup = EngineSetup {
            is_synchronous: false,
            verifies: false,
            files: &[pipe_target(reader), target(&path, MIB, Open::ReadOnly)],
            depth: 2,
            buffers: pool.region(),
            flags: WriteFlags::default(),
            uring: UringOptions {
                registered_buffers: true,
                registered_files: true,
                sqpoll: false,
                iopoll: false,
                drain,
                ..Default::default()
            },
            writes: false,
            priorities: &[],
            seed: 0,
            advice: Advice::None,
        };
        let mut engine = IoUringEngine::new(&setup).unwrap();
        for file in [0, 1] {
            let request = Request { op: OpKind::Read, file, offset: 0, length: 4096 };
            // SAFETY: a buffer of the pool for each slot, which lives until all completions were reaped.
            unsafe { engine.queue(u32::from(file), &request, pool.buffer_ptr(usize::from(file))) };
        }
        engine.submit().unwrap();
        let mut out = [Completion::NONE; 2];
        let first = engine.reap(1, Some(100_000_000), &mut out).unwrap();
        if drain {
            assert_eq!(first, 0, "nothing passes the pipe: {out:?}");
        } else {
            assert_eq!((first, out[0].slot, out[0].result), (1, 1, 4096));
        }
        writer.write_all(&[7; 4096]).unwrap();
        let mut done = first;
        while done < 2 {
            done += engine.reap(1, Some(1_000_000_000), &mut out[done..]).unwrap();
        }
        let order = out.map(|completion| completion.slot);
        assert_eq!(order, if drain { [0, 1] } else { [1, 0] });
    }
}

/// Goal: a worker that polls for its next due I/O sees completions meanwhile, and not only with the next submission, which would
/// add the gap between two I/Os to their latency.
/// Method: a read of a pipe completes when something is written there, after its submission. With deferred task work a look
/// at the ring does not show that, however often; a wait of no length does.
#[test]
fn a_wait_of_no_length_brings_completions_to_the_ring() {
    if !availability().iter().any(|a| a.engine == EngineKind::IoUring && a.works) {
        skip("io_uring", "it does not work here");
        return;
    }
    let (reader, mut writer) = std::io::pipe().unwrap();
    let pool = BufferPool::new(1, 4096, 4096).unwrap();
    let setup = EngineSetup {
        is_synchronous: false,
        verifies: false,
        files: &[pipe_target(reader)],
        depth: 1,
        buffers: pool.region(),
        flags: WriteFlags::default(),
        uring: UringOptions::default(),
        writes: false,
        priorities: &[],
        seed: 0,
        advice: Advice::None,
    };
    let mut engine = IoUringEngine::new(&setup).unwrap();
    let request = Request { op: OpKind::Read, file: 0, offset: 0, length: 4096 };
    // SAFETY: a buffer of the pool, which lives until the completion was reaped.
    unsafe { engine.queue(0, &request, pool.buffer_ptr(0)) };
    engine.submit().unwrap();
    writer.write_all(&[7; 4096]).unwrap();
    let mut out = [Completion::NONE; 1];
    let is_deferred = engine.notes().is_empty();
    if is_deferred {
        let seen = (0..1000).map(|_| engine.reap(0, None, &mut out).unwrap()).sum::<usize>();
        assert_eq!(seen, 0, "a look at the ring suffices, and this test shows nothing");
    }
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while engine.reap(0, Some(0), &mut out).unwrap() == 0 {
        assert!(std::time::Instant::now() < until, "the completion never came to the ring");
    }
    assert_eq!(out, [Completion { slot: 0, result: 4096 }]);
}

/// The kernel's threads of a kind (`iou-wrk`, `iou-sqp`) that serve the calling thread or process.
fn kernel_threads(prefix: &str, of: i32) -> Vec<std::path::PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let is_ours = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == format!("{prefix}-{of}"))
    };
    tasks.map(|task| task.path()).filter(is_ours).collect()
}

/// A ring over one file, and a read on it for each of `slots`.
fn ring_with_reads(path: &std::path::Path, slots: u32, uring: UringOptions) -> (BufferPool, IoUringEngine) {
    let pool = BufferPool::new(slots as usize, 4096, 4096).unwrap();
    let files = [target(path, MIB, Open::ReadOnly)];
    let setup = EngineSetup {
        is_synchronous: false,
        verifies: false,
        files: &files,
        depth: slots,
        buffers: pool.region(),
        flags: WriteFlags::default(),
        uring,
        writes: false,
        priorities: &[],
        seed: 0,
        advice: Advice::None,
    };
    let mut engine = IoUringEngine::new(&setup).unwrap();
    for slot in 0..slots {
        let request = Request { op: OpKind::Read, file: 0, offset: 0, length: 4096 };
        // SAFETY: a buffer of the pool for each slot, which lives until all completions were reaped.
        unsafe { engine.queue(slot, &request, pool.buffer_ptr(slot as usize)) };
    }
    engine.submit().unwrap();
    let mut out = vec![Completion::NONE; slots as usize];
    let mut done = 0;
    while done < slots as usize {
        done += engine.reap(1, Some(1_000_000_000), &mut out[done..]).unwrap();
    }
    assert!(out.iter().all(|completion| completion.result == 4096), "{out:?}");
    (pool, engine)
}

/// Goal: only I/Os with `IOSQE_ASYNC` are executed by kernel threads.
/// Method: cached reads are done on the spot, without such a thread; the fourth of them is to be asynchronous.
#[test]
fn every_so_manyth_io_is_given_to_the_kernels_threads() {
    let folder = folder();
    let path = filled(folder.path(), "file", MIB);
    if !availability().iter().any(|a| a.engine == EngineKind::IoUring && a.works) {
        skip("io_uring", "it does not work here");
        return;
    }
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let uring = |async_every| UringOptions { async_every, ..UringOptions::default() };
    for (slots, every, is_async) in [(8, 0, false), (3, 4, false), (4, 4, true)] {
        let engine = ring_with_reads(&path, slots, uring(every));
        assert_eq!(!kernel_threads("iou-wrk", thread).is_empty(), is_async, "{slots} reads, every {every}");
        drop(engine);
    }
}

#[test]
fn the_polling_thread_of_a_ring_runs_on_the_set_processor() {
    let folder = folder();
    let path = filled(folder.path(), "file", MIB);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        line.trim().to_owned()
    };
    if !availability().iter().any(|a| a.engine == EngineKind::IoUring && a.works) {
        skip("io_uring", "it does not work here");
        return;
    }
    let ours = allowed(&status);
    let cpu: u32 = ours.rsplit([',', '-']).next().unwrap().parse().unwrap();
    let uring = UringOptions { sqpoll: true, sqpoll_cpu: Some(cpu), ..UringOptions::default() };
    let engine = ring_with_reads(&path, 2, uring);
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let threads = [kernel_threads("iou-sqp", thread), kernel_threads("iou-sqp", std::process::id() as i32)].concat();
    let of = threads.first().expect("a polling thread");
    assert_eq!(allowed(&std::fs::read_to_string(of.join("status")).unwrap()), cpu.to_string());
    drop(engine);
}

#[test]
fn a_drained_ring_of_1024_writes_every_block_once() {
    let folder = folder();
    if !availability().iter().any(|a| a.engine == EngineKind::IoUring && a.works) {
        skip("io_uring", "it does not work here");
        return;
    }
    let path = filled(folder.path(), "deep", 8 * MIB);
    let job = Job::new(EngineKind::IoUring).depth(1024).on(&[&path], 8 * MIB, Open::ReadWrite).op(OpKind::Write);
    let job = job.sequential().verify(Checksum::Crc32c).with(|plan| plan.uring.drain = true);
    let report = job.run();
    assert_clean(&report, "drained");
    assert_eq!((op(&report, OpKind::Write).io_count, report.verified_block_count), (2048, 2048));
}

/// Goal: the engines without data transfer change a file as documented.
/// Method: its length and its allocated bytes after each.
#[test]
fn falloc_and_ftruncate_change_a_file_and_move_no_data() {
    use std::os::unix::fs::MetadataExt;
    let folder = folder();
    let after = |engine, op_kind, size: u64| {
        let path = filled(folder.path(), "metadata", size);
        let job = Job::new(engine).on(&[&path], MIB, Open::ReadWrite).op(op_kind).sequential();
        let report = job.run();
        assert_clean(&report, engine.name());
        let record = op(&report, op_kind);
        assert_eq!((record.io_count, record.byte_count), (256, MIB), "{engine:?}");
        let file = std::fs::metadata(&path).unwrap();
        (file.len(), file.blocks() * 512 >= MIB)
    };
    assert_eq!(after(EngineKind::Falloc, OpKind::Read, 0), (0, true), "allocated after the end");
    assert_eq!(after(EngineKind::Falloc, OpKind::Write, 0), (MIB, true));
    assert_eq!(after(EngineKind::Falloc, OpKind::Trim, MIB), (MIB, false), "holes");
    assert_eq!(after(EngineKind::Ftruncate, OpKind::Write, 0), (MIB - 4 * KIB, false), "the begin of the last write");
}

#[test]
fn posixaio_reports_its_number_of_threads() {
    let folder = folder();
    let path = filled(folder.path(), "file", MIB);
    let report = Job::new(EngineKind::Posixaio).depth(8).on(&[&path], MIB, Open::ReadOnly).run();
    assert_clean(&report, "posixaio");
    assert!(report.engine_notes.iter().any(|note| note.contains("8 threads")), "{:?}", report.engine_notes);
}

/// Goal: the engines of metadata operations do one operation per name as documented, and leave no files.
/// Method: while the worker waits at its end, the directory is looked into; afterwards it is gone.
#[test]
fn engines_on_names_make_ask_for_and_remove_them_and_leave_nothing() {
    let folder = folder();
    for (engine, left) in [
        (EngineKind::Filecreate, 100),
        (EngineKind::Filestat, 100),
        (EngineKind::Fileread, 100),
        (EngineKind::Filedelete, 0),
        (EngineKind::Dircreate, 100),
        (EngineKind::Dirstat, 100),
        (EngineKind::Dirdelete, 0),
    ] {
        let path = folder.path().join(engine.name());
        let mut job = Job::new(engine).op(OpKind::Write).sizes(BlockSizes::Fixed(1)).region(100);
        job.plan.files[0].path = path.display().to_string();
        let start = Start::holding_end();
        start.open();
        let report = std::thread::scope(|scope| {
            let worker = scope.spawn(|| job.run_from(&start));
            assert!(start.wait_finished(1, std::time::Duration::from_secs(20)));
            let names: Vec<_> = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap()).collect();
            assert_eq!(names.len(), left, "{engine:?}");
            let is_directory = engine.name().starts_with("dir");
            assert!(names.iter().all(|name| name.file_type().unwrap().is_dir() == is_directory), "{engine:?}");
            start.release();
            worker.join().unwrap()
        });
        assert_clean(&report, engine.name());
        assert_eq!(op(&report, OpKind::Write).io_count, 100, "{engine:?}");
        assert!(!path.exists(), "{engine:?}");
        // Existing files are not used.
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("precious"), "data").unwrap();
        let fatal = job.run().fatal.expect("a refusal");
        assert!(fatal.contains("File exists"), "{fatal}");
        assert_eq!(std::fs::read(path.join("precious")).unwrap(), b"data");
    }
}

/// Goal: a block is trimmed first and written then, at any depth, and both are counted.
/// Method: afterwards every used block contains what was written; a trim that overtook its write would have
/// left a hole.
#[test]
fn trimwrite_leaves_what_was_written() {
    let folder = folder();
    for engine in [EngineKind::Psync, EngineKind::IoUring, EngineKind::Posixaio] {
        if !engines().contains(&engine) {
            skip(engine.name(), "it does not work here");
            continue;
        }
        let path = filled(folder.path(), engine.name(), MIB);
        let job = Job::new(engine).depth(if engine.holds_a_queue() { 8 } else { 1 });
        let job = job.on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).sequential().with(|plan| {
            plan.pattern.steps.trims_first = true;
        });
        let report = job.run();
        assert_clean(&report, engine.name());
        assert_eq!((op(&report, OpKind::Trim).io_count, op(&report, OpKind::Write).io_count), (256, 256), "{engine:?}");
        let content = std::fs::read(&path).unwrap();
        let holes = content.chunks(4096).filter(|block| block.iter().all(|&byte| byte == 0)).count();
        assert_eq!(holes, 0, "{engine:?}");
        assert!(content.chunks(4096).all(|block| block != [1; 4096]), "{engine:?}: every block was written");
    }
}

/// A share of reads or writes.
/// I/Os of a file through an engine, each in a slot of its own: the result, and the share that the engine drew.
fn transfers<E: Engine>(mut engine: E, op: OpKind, pool: &BufferPool, slots: u32) -> Vec<(i64, u8)> {
    for slot in 0..slots {
        let request = Request { op, file: 0, offset: u64::from(slot) * 4096, length: 4096 };
        // SAFETY: a buffer of the pool for each slot, which lives until all completions were reaped.
        unsafe { engine.queue(slot, &request, pool.buffer_ptr(slot as usize)) };
    }
    engine.submit().unwrap();
    let mut out = vec![Completion::NONE; slots as usize];
    let mut done = 0;
    while done < slots as usize {
        done += engine.reap(1, Some(1_000_000_000), &mut out[done..]).unwrap();
    }
    out.iter().map(|completion| (completion.result, engine.share_of(completion.slot))).collect()
}

/// Goal: the kernel gets each I/O's priority, and no other I/O's, in every kind of entry.
/// Method: half of the I/Os have a class that no kernel knows. It refuses these (EINVAL), and does the others; with
/// a class that it knows it does all.
#[test]
fn the_kernel_receives_the_priority_of_each_io() {
    let folder = folder();
    let path = filled(folder.path(), "file", MIB);
    let files = [target(&path, MIB, Open::ReadWrite)];
    let slots = 64;
    for engine in engines_with_priorities() {
        for (op, class, vectored, registered_buffers) in [
            (OpKind::Read, 7, false, false),
            (OpKind::Read, 7, true, false),
            (OpKind::Read, 7, false, true),
            (OpKind::Read, 3, false, false),
            (OpKind::Write, 7, false, false),
            (OpKind::Write, 7, true, false),
            (OpKind::Write, 7, false, true),
        ] {
            let shares = [share(op, 50, class, 0)];
            let pool = BufferPool::new(slots as usize, 4096, 4096).unwrap();
            let setup = EngineSetup {
                is_synchronous: false,
                verifies: false,
                files: &files,
                depth: slots,
                buffers: pool.region(),
                flags: WriteFlags::default(),
                uring: UringOptions { vectored, registered_buffers, ..UringOptions::default() },
                writes: true,
                priorities: &shares,
                seed: 1,
                advice: Advice::None,
            };
            let results = match engine {
                EngineKind::Libaio => transfers(LibaioEngine::new(&setup).unwrap(), op, &pool, slots),
                _ => transfers(IoUringEngine::new(&setup).unwrap(), op, &pool, slots),
            };
            let drawn = results.iter().filter(|(_, share)| *share > 0).count();
            assert!((10..=54).contains(&drawn), "{drawn} of 64 by the seed");
            for (result, share) in &results {
                let expected = if *share > 0 && class == 7 { -i64::from(libc::EINVAL) } else { 4096 };
                assert_eq!(*result, expected, "{} {op} class {class}: {results:?}", engine.name());
            }
        }
    }
}

/// I/Os that complete in the ramp are not counted, and without shares there are no figures by priority.
#[test]
fn a_ramp_is_not_counted_by_priority_and_no_shares_are_no_records() {
    let folder = folder();
    for engine in engines_with_priorities() {
        let path = filled(folder.path(), engine.name(), MIB);
        let job = || Job::new(engine).depth(4).on(&[&path], MIB, Open::ReadOnly).time(30_000_000);
        let ramped = job().with(|plan| {
            plan.limits.ramp_ns = 30_000_000;
            plan.priorities = vec![share(OpKind::Read, 40, 2, 1)];
        });
        let report = ramped.run();
        let record = op(&report, OpKind::Read);
        let counted: u64 = record.priorities.iter().map(|of| of.latency.total.count()).sum();
        assert_eq!((counted, record.priorities.len()), (record.io_count, 2), "{}", engine.name());
        assert!(op(&job().run(), OpKind::Read).priorities.is_empty());
    }
}

#[test]
fn logged_ios_have_their_priorities() {
    let folder = folder();
    for engine in engines_with_priorities() {
        let path = filled(folder.path(), engine.name(), MIB);
        let job = Job::new(engine).depth(4).on(&[&path], MIB, Open::ReadOnly).ios(512);
        let (report, ios) = job.with(|plan| plan.priorities = vec![share(OpKind::Read, 40, 2, 1)]).run_logged();
        let record = op(&report, OpKind::Read);
        for of in &record.priorities {
            let logged = ios.iter().filter(|io| io.priority == of.priority).count() as u64;
            assert_eq!(logged, of.latency.total.count(), "{} {}", engine.name(), of.priority);
        }
        assert_eq!(ios.len() as u64, record.io_count);
    }
}

/// Goal: an I/O that would have to wait fails, is counted and explained; an I/O that need not wait succeeds.
/// Method: buffered reads of a file that is not in the page cache, then of the same file when it is. A system that
/// does not drop cached pages when asked (tmpfs) cannot show the first.
#[test]
fn an_io_that_may_not_wait_fails_where_it_would_have_to_and_is_done_where_not() {
    let folder = folder();
    for engine in [EngineKind::Pvsync2, EngineKind::Libaio, EngineKind::IoUring] {
        if !engines().contains(&engine) {
            skip("io_uring", "the engine does not work here");
            continue;
        }
        let path = filled(folder.path(), engine.name(), MIB);
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        // Offsets at random: nothing is read ahead of them meanwhile.
        let job = || {
            let job = Job::new(engine).on(&[&path], MIB, Open::ReadOnly);
            job.with(|plan| {
                plan.write_flags.nowait = true;
                plan.continue_on_error = true;
            })
        };
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut first = [0; 1];
        let vector = &mut [std::io::IoSliceMut::new(&mut first)];
        let is_cached = rustix::io::preadv2(&file, vector, 0, rustix::io::ReadWriteFlags::NOWAIT).is_ok();
        if is_cached {
            println!("skipped: this filesystem keeps its pages");
        } else {
            let report = job().run();
            let record = op(&report, OpKind::Read);
            assert_eq!(record.io_count + record.error_count, 256, "{}", engine.name());
            assert!(record.error_count > 0, "{}", engine.name());
            let [failure] = &report.failures[..] else { panic!("{}: {:?}", engine.name(), report.failures) };
            assert_eq!((failure.errno, failure.count), (libc::EAGAIN, record.error_count));
        }
        assert_eq!(std::fs::read(&path).unwrap().len(), MIB as usize);
        let report = job().run();
        assert_clean(&report, engine.name());
        assert_eq!(op(&report, OpKind::Read).io_count, 256);
    }
}

/// Goal: `e4defrag` gives a file other blocks, and keeps its content and its neighbours.
/// Method: the place of each block before and after, as filefrag(8) prints the extents. A block never moves to its own
/// place, which is in use until then; it may move to one that another block left, once the journal has freed it.
#[test]
fn e4defrag_moves_a_file_to_other_blocks_and_keeps_its_content() {
    let folder = folder();
    let kind = std::process::Command::new("stat").args(["-f", "-c", "%T"]).arg(folder.path()).output().unwrap();
    if !String::from_utf8_lossy(&kind.stdout).starts_with("ext") {
        return skip("ext4", "the build directory is on another filesystem");
    }
    // The place of each logical block: "  0:        0..     255:   16896000..  16896255:    256:  last,eof".
    let places = |path: &std::path::Path| {
        let printed =
            std::process::Command::new("filefrag").arg("-v").arg(path).output().expect("filefrag of e2fsprogs");
        let range = |text: &str| {
            let (first, last) = text.trim().split_once("..")?;
            Some((first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?))
        };
        let mut places = std::collections::BTreeMap::new();
        for line in String::from_utf8_lossy(&printed.stdout).lines() {
            let mut fields = line.split(':').skip(1);
            let (Some(logical), Some(physical)) = (fields.next().and_then(range), fields.next().and_then(range)) else {
                continue;
            };
            places.extend((logical.0..=logical.1).zip(physical.0..=physical.1));
        }
        places
    };
    for each in [false, true] {
        let path = filled(folder.path(), "moved", MIB);
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let (before, content) = (places(&path), std::fs::read(&path).unwrap());
        // The kernel may refuse to move blocks whose pages are cached (EBUSY); a run drops them first (`invalidate`).
        let file = std::fs::File::open(&path).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let job = Job::new(EngineKind::E4defrag).on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).sequential();
        let report = job.with(|plan| plan.handling.allocates_each_donor = each).run();
        assert_clean(&report, "e4defrag");
        let record = op(&report, OpKind::Write);
        assert_eq!((record.io_count, record.byte_count), (256, MIB));
        let after = places(&path);
        assert_eq!((before.len(), after.len()), (256, 256), "each block has a place");
        let stayed: Vec<_> = before.iter().filter(|&(block, place)| after[block] == *place).collect();
        assert!(stayed.is_empty(), "{stayed:?} of {before:?}");
        assert!(std::fs::read(&path).unwrap() == content, "the content stays");
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["moved"], "the donor has no name");
    }
    // What is not on ext4 is refused before any I/O.
    let Ok(shm) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = filled(shm.path(), "file", MIB);
    let fatal = Job::new(EngineKind::E4defrag).on(&[&path], MIB, Open::ReadWrite).op(OpKind::Write).run().fatal;
    assert!(fatal.as_ref().is_some_and(|fatal| fatal.contains("not on ext4")), "{fatal:?}");
}
