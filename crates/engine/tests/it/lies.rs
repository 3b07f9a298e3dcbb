//! Faulty disks, modelled by engines on memory: lost, misplaced and corrupted I/Os that no real machine shows on
//! demand.

use crate::common::{Job, KIB, MIB, MS, S, assert_clean, assert_consistent, op};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use trueio_direct::BufferPool;
use trueio_engine::{
    Buffers, Clock, Completion, Engine, EngineError, Progress, Request, Start, VirtualClock, WorkerContext,
    WorkerReport, choose_clock, run_worker_on,
};
use trueio_model::{BlockSizes, Checksum, EngineKind, Flush, OpKind, OpMix};

/// The fault of the disk. I/Os and sync calls are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lie {
    None,
    /// This write, and every later one, is answered and thrown away.
    DropsWritesFrom(u64),
    /// This write alone is answered and thrown away.
    DropsWrite(u64),
    /// This write goes one block too far.
    Misdirects(u64),
    /// The engine itself fails at this I/O.
    Breaks(u64),
    /// The worker's thread panics at this I/O.
    Panics(u64),
    /// This sync call fails.
    SyncFails(u64),
    /// Submission takes 10 ms, and completions arrive only when they are reaped: buffered I/O
    /// through libaio.
    SubmitsSlowly,
    /// No fault: I/Os in flight together may be executed in any order, here the last first.
    Reorders,
    /// No fault: as io_uring with deferred completions, which become visible only to a call that waits. A wait takes 1 ms
    /// and returns all that is in flight.
    AnswersWaits,
}

/// A disk in memory.
struct Disk {
    content: Rc<RefCell<Vec<u8>>>,
    lie: Lie,
    count: u64,
    writes: u64,
    syncs: u64,
    noted: Vec<(u32, Request, *mut u8)>,
    ready: Vec<Completion>,
    clock: VirtualClock,
}

impl Engine for Disk {
    // One that touches files: its writes carry data.
    const KIND: EngineKind = EngineKind::Psync;
    const BLOCKS: bool = false;

    unsafe fn queue(&mut self, slot: u32, request: &Request, buffer: *mut u8) {
        self.noted.push((slot, *request, buffer));
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        if self.lie == Lie::Reorders { Ok(()) } else { self.carry_out() }
    }

    fn has_ready(&mut self) -> bool {
        self.lie == Lie::AnswersWaits
    }

    fn reap(&mut self, min: usize, _: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        if self.lie == Lie::AnswersWaits {
            if min == 0 {
                return Ok(0);
            }
            self.clock.advance_to(self.clock.now() + MS);
        }
        if self.lie == Lie::Reorders {
            self.noted.reverse();
            self.carry_out()?;
        }
        let count = self.ready.len().min(out.len());
        for (out, done) in out.iter_mut().zip(self.ready.drain(..count)) {
            *out = done;
        }
        Ok(count)
    }

    fn sync_file(&mut self, _: u16, _: bool) -> i64 {
        self.syncs += 1;
        if self.lie == Lie::SyncFails(self.syncs - 1) { -i64::from(libc::EIO) } else { 0 }
    }
}

impl Disk {
    fn carry_out(&mut self) -> Result<(), EngineError> {
        for (slot, request, buffer) in self.noted.drain(..) {
            let at = self.count;
            self.count += 1;
            if self.lie == Lie::Breaks(at) {
                return Err(EngineError {
                    engine: Self::KIND,
                    attempted: "to go on".to_owned(),
                    source: std::io::Error::from_raw_os_error(libc::ENODEV),
                });
            }
            assert_ne!(self.lie, Lie::Panics(at), "as asked for");
            if self.lie == Lie::SubmitsSlowly {
                self.clock.advance_to(self.clock.now() + 10 * MS);
            }
            let length = request.length as usize;
            let mut offset = request.offset as usize;
            let mut content = self.content.borrow_mut();
            match request.op {
                OpKind::Read => {
                    // SAFETY: the worker submits `length` bytes that this engine owns until the completion.
                    unsafe { std::slice::from_raw_parts_mut(buffer, length) }
                        .copy_from_slice(&content[offset..offset + length]);
                }
                _ => {
                    let write = self.writes;
                    self.writes += 1;
                    let is_lost = match self.lie {
                        Lie::DropsWritesFrom(first) => write >= first,
                        Lie::DropsWrite(one) => write == one,
                        _ => false,
                    };
                    if self.lie == Lie::Misdirects(write) {
                        offset = (offset + length) % content.len();
                    }
                    if !is_lost {
                        // SAFETY: as above.
                        let data = unsafe { std::slice::from_raw_parts(buffer, length) };
                        content[offset..offset + length].copy_from_slice(data);
                    }
                }
            }
            self.ready.push(Completion { slot, result: i64::from(request.length) });
        }
        Ok(())
    }
}

fn disk(lie: Lie) -> Disk {
    let (content, clock) = (memory(), VirtualClock::default());
    Disk { content, lie, count: 0, writes: 0, syncs: 0, noted: Vec::new(), ready: Vec::new(), clock }
}

fn run(job: &Job, content: &Rc<RefCell<Vec<u8>>>, lie: Lie) -> WorkerReport {
    let start = Start::new();
    start.open();
    let progress = Progress::default();
    let context = WorkerContext::new(&job.plan, &[], &job.stop, &start, &progress, choose_clock());
    let clock = VirtualClock::default();
    let disk = Disk { clock: clock.clone(), content: content.clone(), ..disk(lie) };
    let pool = Buffers::of_pool(BufferPool::new(job.plan.queue.depth as usize, 4096, 4096).unwrap(), 0);
    run_worker_on(&context, disk, clock, pool)
}

/// Goal: an engine never receives a buffer that is shorter than its I/O.
/// Method: the pool's buffers have 4 KiB, and reads, writes or both have more; trims use no buffer. Then a pool of one
/// buffer for a queue of four.
#[test]
fn a_pool_that_does_not_hold_the_plans_ios_is_refused_before_the_first() {
    let long = BlockSizes::Fixed(8192);
    let is_refused = |job: Job| catch_unwind(AssertUnwindSafe(|| run(&job, &memory(), Lie::None))).is_err();
    let reads = || writes().op(OpKind::Read).with(|plan| plan.verify = None);
    assert!(!is_refused(reads().with(|plan| plan.pattern.write_sizes = long.clone())), "a job that only reads");
    assert!(is_refused(reads().with(|plan| plan.pattern.read_sizes = long.clone())));
    assert!(is_refused(writes().with(|plan| plan.pattern.write_sizes = long.clone())));
    assert!(is_refused(reads().with(|plan| {
        plan.pattern.mix = OpMix::ReadWrite { read_percent: 50 };
        plan.pattern.write_sizes = long.clone();
    })));
    let job = reads();
    let (start, progress) = (Start::new(), Progress::default());
    let context = WorkerContext::new(&job.plan, &[], &job.stop, &start, &progress, choose_clock());
    let pool = Buffers::of_pool(BufferPool::new(1, 4096, 4096).unwrap(), 0);
    let is_refused =
        catch_unwind(AssertUnwindSafe(|| run_worker_on(&context, disk(Lie::None), VirtualClock::default(), pool)));
    assert!(is_refused.is_err());
}

fn memory() -> Rc<RefCell<Vec<u8>>> {
    Rc::new(RefCell::new(vec![0; MIB as usize]))
}

fn writes() -> Job {
    Job::new(EngineKind::Psync).depth(4).op(OpKind::Write).verify(Checksum::Crc32c)
}

/// Goal: a disk that loses writes is found although the same data stood there before.
/// Method: with the same seed a run writes the same content to the same offsets. The first run is correct; in the
/// second all or some writes are thrown away, so that the first one's blocks are read back.
#[test]
fn lost_writes_are_found_although_an_earlier_run_with_the_same_seed_wrote_the_same() {
    let content = memory();
    assert_clean(&run(&writes(), &content, Lie::None), "honest");
    let report = run(&writes(), &content, Lie::DropsWritesFrom(0));
    assert_eq!((report.verified_block_count, report.verify_failure_count), (256, 256));
    assert!(report.verify_failures[0].expected.contains("this worker"), "{:?}", report.verify_failures[0]);

    assert_clean(&run(&writes(), &content, Lie::None), "honest again");
    let report = run(&writes(), &content, Lie::DropsWrite(77));
    assert_eq!((report.verified_block_count, report.verify_failure_count), (256, 1));
}

#[test]
fn a_lost_write_of_the_second_pass_is_found_although_the_first_pass_wrote_there() {
    let content = memory();
    let report = run(&writes().with(|p| p.limits.loops = 2), &content, Lie::DropsWrite(300));
    assert_eq!((report.verified_block_count, report.verify_failure_count), (256, 1));
    let failure = &report.verify_failures[0];
    assert!(failure.expected.contains("write 301"), "{failure:?}");
    assert!(failure.found.contains("older block"), "{failure:?}");
}

/// Goal: a verified job never has two writes to one block in flight, because their order is not guaranteed.
/// Method: 16 blocks, five in flight, two passes, on a disk that does the last first. Where the first
/// pass ends within five requests, the second may bring the same block: with 50 seeds it does.
#[test]
fn a_disk_that_reorders_what_is_in_flight_is_not_blamed_for_it() {
    for seed in 0..50 {
        let mut job = writes().region(64 * KIB).depth(5).seed(seed);
        job.plan.limits.loops = 2;
        let report = run(&job, &memory(), Lie::Reorders);
        assert_clean(&report, "reordered");
        assert_eq!(report.verified_block_count, 16);
    }
}

/// Goal: blocks are read back with the job's queue depth: the worker waits only with a full queue.
/// Method: a disk whose waits take 1 ms, for all that is in flight. 256 blocks, four in flight, are 64 waits; a worker that
/// waits for each block takes 256.
#[test]
fn a_block_is_not_waited_for_while_the_queue_has_room() {
    let report = run(&writes(), &memory(), Lie::AnswersWaits);
    assert_clean(&report, "deferred");
    assert_eq!(report.verified_block_count, 256);
    let read_back = report.read_back.as_ref().expect("blocks were read back");
    assert_eq!((read_back.reads.io_count, read_back.elapsed_ns), (256, 64 * MS));
}

#[test]
fn a_misdirected_write_is_found_where_it_is_missing_and_where_it_is_too_much() {
    let report = run(&writes(), &memory(), Lie::Misdirects(255));
    // The last write: its own offset stays empty, and the next block is overwritten.
    assert_eq!(report.verify_failure_count, 2, "{:?}", report.verify_failures);
    let text = format!("{:?}", report.verify_failures);
    assert!(text.contains("never arrived") && text.contains("wrong place"), "{text}");
}

#[test]
fn an_engine_that_fails_ends_the_run_and_everything_until_then_is_kept() {
    let report = run(&writes(), &memory(), Lie::Breaks(100));
    let fatal = report.fatal.as_deref().expect("a reason");
    assert!(fatal.contains("to go on failed: No such device"), "{fatal}");
    assert_consistent(&report, "broken");
    assert_eq!(op(&report, OpKind::Write).io_count, 100);
    assert_eq!(report.verified_block_count, 0, "nothing is verified on an engine that is gone");
}

#[test]
fn a_failed_sync_call_is_fatal_and_the_error_warns_that_earlier_writes_are_not_safe() {
    for lie in [Lie::SyncFails(0), Lie::SyncFails(2)] {
        let mut job = writes();
        job.plan.flush.fsync_every = 32;
        // Not even a job that goes on after errors goes on after this one.
        job.plan.continue_on_error = true;
        let report = run(&job, &memory(), lie);
        let fatal = report.fatal.as_deref().expect("a reason");
        assert!(fatal.contains("no earlier write is known to be safe"), "{fatal}");
        let syncs = if lie == Lie::SyncFails(0) { 0 } else { 2 };
        let sync = op(&report, OpKind::Sync);
        assert_eq!((sync.io_count, sync.error_count), (syncs, 1));
        assert_eq!(op(&report, OpKind::Write).io_count, 32 * (syncs + 1));
        assert_eq!((report.failures[0].op, report.failures[0].errno), (OpKind::Sync, libc::EIO));
    }
}

#[test]
fn a_deadline_is_noticed_while_a_deep_queue_is_being_filled() {
    let job = Job::new(EngineKind::Psync).depth(64).time(250 * MS);
    let report = run(&job, &memory(), Lie::SubmitsSlowly);
    assert_clean(&report, "deep");
    // 25 submissions of 10 ms reach the deadline; to fill the queue would take 640 ms.
    assert_eq!((op(&report, OpKind::Read).io_count, report.elapsed_ns), (25, 250 * MS));
}

#[test]
fn a_failed_sync_at_the_end_is_fatal_too() {
    for (name, flush) in [
        ("fsync of", Flush { end_fsync: true, ..Flush::default() }),
        ("fsync of", Flush { fsync_on_close: true, ..Flush::default() }),
        ("fdatasync of", Flush { end_fdatasync: true, ..Flush::default() }),
    ] {
        let report = run(&writes().with(|p| p.flush = flush), &memory(), Lie::SyncFails(0));
        assert!(report.fatal.is_some_and(|f| f.starts_with(name)), "{flush:?}");
        assert_eq!(report.verified_block_count, 0);
    }
}

/// Goal: memory that the kernel may still write to is never freed.
/// Method: a worker panics with I/Os in flight. Nothing to see here but that it unwinds; under a checking
/// allocator a double free would show.
#[test]
fn a_panic_with_io_in_flight_unwinds() {
    let result = std::panic::catch_unwind(|| run(&writes(), &memory(), Lie::Panics(50)));
    assert!(result.is_err());
}

#[test]
fn a_stopped_job_is_not_verified_and_is_reported_as_stopped() {
    let job = writes().time(S);
    job.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let report = run(&job, &memory(), Lie::None);
    assert!(report.was_stopped);
    assert_eq!((report.verified_block_count, report.fatal), (0, None));
}

#[test]
fn a_block_smaller_than_the_region_is_not_needed_to_end() {
    // 1,000 KiB are not a multiple of the 256 KiB that four slots hold: the last round is not full.
    let report = run(&writes().region(1_000 * KIB), &memory(), Lie::None);
    assert_clean(&report, "uneven");
    assert_eq!(op(&report, OpKind::Write).io_count, 250);
}
