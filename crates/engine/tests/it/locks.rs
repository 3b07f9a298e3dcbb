//! Locks between workers that share a file, tested by an engine that records the I/Os in flight of each worker.

use crate::common::{Job, KIB, MIB, Open, file_plan, filled, folder, target};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use trueio_direct::BufferPool;
use trueio_engine::{
    Buffers, Completion, Engine, EngineError, FileLock, Flow, MonotonicClock, Progress, Request, Start, TargetFile,
    WorkerContext, choose_clock, run_worker_on,
};
use trueio_model::{EngineKind, FileSelection, FlowPlan, Locking, OpKind};

/// The I/Os in flight of all workers on one file: (worker, whether it writes).
#[derive(Debug, Default)]
struct Seen {
    in_flight: Vec<(u32, bool)>,
    /// I/Os that began while one of another worker was in flight: two reads, and others.
    concurrent_reads: u64,
    concurrent_writes: u64,
}

/// Records the I/Os in flight, and is slow.
struct Noting {
    worker: u32,
    files: Vec<Arc<Mutex<Seen>>>,
    noted: Vec<(u32, Request)>,
}

impl Engine for Noting {
    const KIND: EngineKind = EngineKind::Psync;
    const BLOCKS: bool = false;

    unsafe fn queue(&mut self, slot: u32, request: &Request, _: *mut u8) {
        let mut seen = self.files[usize::from(request.file)].lock().unwrap();
        let writes = request.op == OpKind::Write;
        let others: Vec<bool> =
            seen.in_flight.iter().filter(|(worker, _)| *worker != self.worker).map(|(_, w)| *w).collect();
        seen.concurrent_reads += u64::from(!writes && others.contains(&false));
        seen.concurrent_writes += u64::from(others.iter().any(|other| writes || *other));
        seen.in_flight.push((self.worker, writes));
        self.noted.push((slot, *request));
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn reap(&mut self, _: usize, _: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        std::thread::sleep(Duration::from_micros(100));
        let Some((slot, request)) = self.noted.pop() else { return Ok(0) };
        let mut seen = self.files[usize::from(request.file)].lock().unwrap();
        let own = (self.worker, request.op == OpKind::Write);
        let at = seen.in_flight.iter().position(|one| *one == own).expect("it is in flight");
        seen.in_flight.swap_remove(at);
        // Every tenth fails: the lock must still be released.
        let is_bad = request.offset / (4 * KIB) % 10 == 3;
        out[0] = Completion { slot, result: if is_bad { -5 } else { i64::from(request.length) } };
        Ok(1)
    }

    fn sync_file(&mut self, _: u16, _: bool) -> i64 {
        0
    }
}

/// Runs four workers on two files; returns the reads that began during another worker's read, and the I/Os that began
/// during one that excludes them.
fn run(locking: Locking, depth: u32) -> (u64, u64) {
    let folder = folder();
    let lock = |_| match locking {
        Locking::None => None,
        _ => Some(Arc::<FileLock>::default()),
    };
    let locks: Vec<_> = (0..2).map(lock).collect();
    let seen: Vec<Arc<Mutex<Seen>>> = (0..2).map(|_| Arc::default()).collect();
    let start = Start::new();
    start.open();
    // All are there before the first begins.
    let begin = Barrier::new(4);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (folder, locks, seen, start, begin) = (folder.path(), &locks, &seen, &start, &begin);
            scope.spawn(move || {
                let open = |index: usize| {
                    let path = filled(folder, &format!("{worker}-{index}"), MIB);
                    TargetFile { lock: locks[index].clone(), ..target(&path, MIB, Open::ReadOnly) }
                };
                let files = [open(0), open(1)];
                let job = Job::new(EngineKind::Psync).depth(depth).with(|plan| {
                    plan.pattern.mix = trueio_model::OpMix::ReadWrite { read_percent: 80 };
                    plan.files = vec![plan.files[0].clone(); 2];
                    plan.limits.io_bytes = 200 * 4 * KIB;
                    plan.handling.locking = locking;
                    plan.continue_on_error = true;
                    plan.seed = u64::from(worker);
                });
                let progress = Progress::default();
                let context = WorkerContext {
                    worker,
                    ..WorkerContext::new(&job.plan, &files, &job.stop, start, &progress, choose_clock())
                };
                let engine = Noting { worker, files: seen.clone(), noted: Vec::new() };
                let pool = Buffers::of_pool(BufferPool::new(depth as usize, 4096, 4096).unwrap(), 0);
                begin.wait();
                let report = run_worker_on(&context, engine, MonotonicClock, pool);
                assert_eq!(report.fatal, None);
                let done: u64 = report.ops.iter().map(|op| op.io_count + op.error_count).sum();
                assert_eq!(done, 200, "each I/O is done, and no worker waits forever");
            });
        }
    });
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(|seen| of(&seen.lock().unwrap())).sum();
    (sum(|seen| seen.concurrent_reads), sum(|seen| seen.concurrent_writes))
}

/// Goal: two workers do I/O on one file at a time only as far as the lock lets them, at any depth, and all come to
/// their end.
/// Method: without a lock, I/Os that it would separate are in flight together.
#[test]
fn a_lock_keeps_apart_what_it_should_and_nothing_else() {
    for depth in [1, 4] {
        let (reads, others) = run(Locking::None, depth);
        assert!(reads > 0 && others > 0, "{depth}: {reads}, {others}");
        assert_eq!(run(Locking::Exclusive, depth), (0, 0), "{depth}");
        let (reads, others) = run(Locking::Readwrite, depth);
        assert_eq!(others, 0, "{depth}");
        assert!(reads > 0, "{depth}");
    }
}

/// The number of I/Os that each worker has begun, and whether the third has ended: the conditions that others wait for.
#[derive(Debug, Default)]
struct FlowProgress {
    begun: Mutex<[u64; 3]>,
    third_ended: AtomicBool,
}

/// Begins and ends I/Os when the others are where they should be.
struct Led {
    worker: usize,
    progress: Arc<FlowProgress>,
    slot: Option<(u32, i64)>,
}

impl Engine for Led {
    const KIND: EngineKind = EngineKind::Psync;
    const BLOCKS: bool = false;

    unsafe fn queue(&mut self, slot: u32, request: &Request, _: *mut u8) {
        self.progress.begun.lock().unwrap()[self.worker] += 1;
        self.slot = Some((slot, i64::from(request.length)));
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn reap(&mut self, _: usize, _: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        let Some((slot, result)) = self.slot.take() else { return Ok(0) };
        let begun = || *self.progress.begun.lock().unwrap();
        let wait = |is_so: &dyn Fn() -> bool| {
            // Longer than it takes on any machine; after that, the assertions fail.
            let limit = Instant::now() + Duration::from_secs(60);
            while !is_so() && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        match (self.worker, begun()[self.worker]) {
            // The first has done eleven I/Os on a file of its own, and then queues for the shared one.
            (0, 11) => wait(&|| begun()[1] == 2),
            // The second issues nothing until then, and then holds that file until the third has ended.
            (1, 1) => wait(&|| begun()[0] == 11 && begun()[2] == 11),
            (1, 2) => {
                wait(&|| self.progress.third_ended.load(Relaxed));
                std::thread::sleep(Duration::from_millis(100));
            }
            // The third ends when the first had time to queue.
            (2, 11) => {
                wait(&|| begun()[1] == 2);
                std::thread::sleep(Duration::from_millis(100));
            }
            _ => {}
        }
        out[0] = Completion { slot, result };
        Ok(1)
    }

    fn sync_file(&mut self, _: u16, _: bool) -> i64 {
        0
    }
}

/// Goal: a worker that gets ahead of its flow while it queues for a file does not block the others.
/// Method: of three workers the first queues for the file that the second holds. Then the third, with the same progress
/// as the first, ends, so that the first is ahead.
#[test]
fn a_worker_that_gets_ahead_of_its_flow_while_it_queues_blocks_no_other() {
    let folder = folder();
    let (start, stop, flow, flow_progress) =
        (Start::new(), AtomicBool::new(false), Flow::default(), Arc::<FlowProgress>::default());
    let (shared, left) = (Arc::<FileLock>::default(), AtomicU64::new(3));
    std::thread::scope(|scope| {
        for (worker, own, of_shared) in [(0, 11, 5), (1, 1, 20), (2, 11, 0)] {
            let (folder, start, stop, flow, flow_progress) = (folder.path(), &start, &stop, &flow, &flow_progress);
            let (shared, left) = (&shared, &left);
            scope.spawn(move || {
                let open = |name: &str, lock: &Arc<FileLock>| {
                    let path = filled(folder, &format!("{worker}-{name}"), 20 * 4 * KIB);
                    TargetFile { lock: Some(lock.clone()), ..target(&path, 20 * 4 * KIB, Open::ReadOnly) }
                };
                let blocks = [own, of_shared].into_iter().filter(|blocks| *blocks > 0);
                let files = [open("own", &Arc::default()), open("shared", shared)];
                let job = Job::new(EngineKind::Psync).sequential().with(|plan| {
                    plan.files = blocks.map(|blocks| file_plan("f", 0, blocks * 4 * KIB)).collect();
                    plan.file_selection = FileSelection::Sequential;
                    plan.limits.io_bytes = (own + of_shared) * 4 * KIB;
                    plan.handling.locking = Locking::Exclusive;
                    plan.control.flow =
                        Some(FlowPlan { id: 0, weight: 1, sleep_ns: 0, watermark: FlowPlan::usual_watermark() });
                });
                let progress = Progress::default();
                let files = &files[..job.plan.files.len()];
                let context = WorkerContext {
                    worker,
                    flow: Some(flow),
                    ..WorkerContext::new(&job.plan, files, stop, start, &progress, choose_clock())
                };
                let engine = Led { worker: worker as usize, progress: flow_progress.clone(), slot: None };
                let pool = Buffers::of_pool(BufferPool::new(1, 4096, 4096).unwrap(), 0);
                let report = run_worker_on(&context, engine, MonotonicClock, pool);
                flow_progress.third_ended.fetch_or(of_shared == 0, Relaxed);
                left.fetch_sub(1, Relaxed);
                assert!(report.fatal.is_none() && !report.was_stopped, "{}: {report:?}", context.worker);
                assert_eq!(report.ops.iter().map(|op| op.io_count).sum::<u64>(), own + of_shared);
            });
        }
        // All join the flow before one of them begins.
        start.wait_for(3);
        start.open();
        // Ends a worker that waits forever.
        let limit = Instant::now() + Duration::from_secs(120);
        while left.load(Relaxed) > 0 && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Relaxed);
    });
}
