//! How the workers of a phase begin and end together.
//!
//! A worker that arrives wakes no other worker: it raises a count, and the last one wakes the thread that measures the
//! phase. That thread lets all workers go with one call. So a phase with N workers makes some N calls of futex(2) for its
//! start, and not N².
//!
//! Source: futex(2), `FUTEX_WAIT`, `FUTEX_WAKE`.

use rustix::thread::futex::{self, Flags, Timespec};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How often a job that waits for another looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until `word` is no longer `value`, a thread wakes its waiters, or `limit` has passed. May return earlier.
fn wait_on(word: &AtomicU32, value: u32, limit: Option<Duration>) {
    let limit = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    // Every caller reads the word again, whatever ended the wait.
    let _ = futex::wait(word, Flags::PRIVATE, value, limit.as_ref());
}

/// Wakes all threads that wait on `word`.
fn wake_all(word: &AtomicU32) {
    // The call fails only for words that are not aligned or not mapped.
    let _ = futex::wake(word, Flags::PRIVATE, i32::MAX as u32);
}

/// A number of arrivals that one thread waits for.
#[derive(Debug, Default)]
struct Arrivals {
    count: AtomicU32,
    /// The number that is waited for; 0 if no thread waits.
    awaited: AtomicU32,
}

impl Arrivals {
    /// One more has arrived; wakes the waiting thread if it is the last.
    fn add(&self) {
        let count = self.count.fetch_add(1, SeqCst) + 1;
        // Of this reading and the waiter's reading of the count, one comes after the other's store.
        if count == self.awaited.load(SeqCst) {
            wake_all(&self.count);
        }
    }

    fn count(&self) -> u32 {
        self.count.load(SeqCst)
    }

    /// Waits until `awaited` have arrived, or `limit` has passed; true if they have.
    fn wait(&self, awaited: u32, limit: Option<Duration>) -> bool {
        self.awaited.store(awaited, SeqCst);
        let until = limit.map(|limit| Instant::now() + limit);
        loop {
            let count = self.count();
            if count >= awaited {
                return true;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            wait_on(&self.count, count, left);
        }
    }
}

/// A gate that is closed until it is opened, for good.
#[derive(Debug, Default)]
struct Latch {
    is_open: AtomicU32,
}

impl Latch {
    fn opened() -> Self {
        Self { is_open: AtomicU32::new(1) }
    }

    /// Waits until it is open.
    fn pass(&self) {
        while self.is_open.load(SeqCst) == 0 {
            wait_on(&self.is_open, 0, None);
        }
    }

    /// Lets all threads go that wait, and those that come later.
    fn open(&self) {
        self.is_open.store(1, SeqCst);
        wake_all(&self.is_open);
    }
}

/// Lets all workers of a phase begin together, after the last of them is ready, and lets the thread that
/// measures the phase look at the machine after the last I/O and before anything else is done.
#[derive(Debug)]
pub struct Start {
    ready: Arrivals,
    begin: Latch,
    finished: Arrivals,
    /// Workers wait after their last I/O until it is open.
    end: Latch,
    /// More workers begin than there are processors.
    is_crowded: AtomicBool,
    /// Workers that made way for others.
    made_way: AtomicU32,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            ready: Arrivals::default(),
            begin: Latch::default(),
            finished: Arrivals::default(),
            end: Latch::opened(),
            is_crowded: AtomicBool::new(false),
            made_way: AtomicU32::new(0),
        }
    }
}

impl Start {
    /// A start that no worker has reached yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, and workers wait at their end too, until [`Start::release`].
    pub fn holding_end() -> Self {
        Self { end: Latch::default(), ..Self::default() }
    }

    /// A worker is ready; returns when the start is opened.
    pub(crate) fn reached(&self) {
        self.ready.add();
        self.begin.pass();
    }

    /// A worker has done its last measured I/O; returns when the end is released.
    pub(crate) fn finished(&self) {
        self.finished.add();
        self.end.pass();
    }

    /// A worker will not come to the end, and to the start neither if `is_before` it (it panicked): no thread waits for it.
    pub fn abandon(&self, is_before: bool) {
        if is_before {
            self.ready.add();
        }
        self.finished.add();
    }

    /// Waits until `workers` are ready (or have failed to become so).
    pub fn wait_for(&self, workers: u32) {
        self.ready.wait(workers, None);
    }

    /// Lets all workers begin.
    pub fn open(&self) {
        let workers = self.ready.count() as usize;
        let is_crowded = workers > 1 && std::thread::available_parallelism().is_ok_and(|count| workers > count.get());
        self.is_crowded.store(is_crowded, Relaxed);
        self.begin.open();
    }

    /// More workers begin than there are processors, so each makes way for the others after its first I/O. Otherwise the
    /// first one that gets a processor keeps it for a time slice (some 3 ms), and the last of 64 workers on two processors
    /// begins 90 ms after the first.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Relaxed)
    }

    /// Lets workers go first that have not begun.
    pub(crate) fn make_way(&self) {
        self.made_way.fetch_add(1, Relaxed);
        std::thread::yield_now();
    }

    /// Waits until `workers` have done their last measured I/O, or `limit` has passed; true if
    /// they have.
    pub fn wait_finished(&self, workers: u32, limit: Duration) -> bool {
        self.finished.wait(workers, Some(limit))
    }

    /// How many are ready, and how many have finished.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> (u32, u32) {
        (self.ready.count(), self.finished.count())
    }

    /// How many made way for others.
    #[cfg(test)]
    fn made_way(&self) -> u32 {
        self.made_way.load(Relaxed)
    }

    /// Lets workers go on from their end.
    pub fn release(&self) {
        self.end.open();
    }
}

/// Where jobs wait for the workers of another job to end (`wait_for`).
#[derive(Debug)]
pub struct Gate {
    /// Workers that have not ended.
    there: AtomicU32,
}

impl Gate {
    /// The gate of a job with `workers` workers.
    pub fn new(workers: u32) -> Self {
        Self { there: AtomicU32::new(workers) }
    }

    /// A worker of the job has ended, in whatever way.
    pub fn leave(&self) {
        let before = self.there.fetch_update(SeqCst, SeqCst, |there| there.checked_sub(1));
        if before == Ok(1) {
            wake_all(&self.there);
        }
    }

    /// Workers that have not ended.
    pub fn count(&self) -> u32 {
        self.there.load(SeqCst)
    }

    /// Waits until all of them have, or until `stop` is set.
    pub(crate) fn wait(&self, stop: &AtomicBool) {
        loop {
            let there = self.count();
            if there == 0 || stop.load(Relaxed) {
                return;
            }
            wait_on(&self.there, there, Some(LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::choose_clock;
    use crate::context::WorkerContext;
    use crate::recorder::Progress;
    use crate::worker::run_worker;
    use trueio_model::{EngineKind, FilePlan, JobPlan, Prepare};

    /// Goal: no worker begins before the last one is ready, all begin when the start is opened, and no thread misses
    /// being woken.
    /// Method: 200 rounds of eight workers, whose arrivals meet the waiting thread at all moments.
    #[test]
    fn workers_begin_after_the_last_is_ready_and_end_together() {
        const WORKERS: u32 = 8;
        for _ in 0..200 {
            let (start, begun, ended) = (Start::holding_end(), AtomicU32::new(0), AtomicU32::new(0));
            std::thread::scope(|scope| {
                for _ in 0..WORKERS {
                    scope.spawn(|| {
                        start.reached();
                        begun.fetch_add(1, Relaxed);
                        start.finished();
                        ended.fetch_add(1, Relaxed);
                    });
                }
                start.wait_for(WORKERS);
                assert_eq!(begun.load(Relaxed), 0, "none begins before the start is opened");
                start.open();
                assert!(start.wait_finished(WORKERS, Duration::from_secs(60)));
                assert_eq!((begun.load(Relaxed), ended.load(Relaxed)), (WORKERS, 0), "they wait at their end");
                start.release();
            });
            assert_eq!(ended.load(Relaxed), WORKERS);
        }
    }

    /// Goal: of more workers than processors, each lets the others begin after its first I/O, and once; of fewer, or with
    /// I/Os in flight, or if the system calls are those of the I/Os, none does.
    /// Method: workers of a job of 1,000 I/Os without a device; who makes way is counted.
    #[test]
    fn workers_that_outnumber_the_processors_make_way_once() {
        let processors = std::thread::available_parallelism().expect("a number").get() as u32;
        let made_way = |workers: u32, depth: u32, trace_syscalls: bool| {
            let mut plan = JobPlan::plain(EngineKind::Null, 4096 * 1000);
            plan.files.push(FilePlan {
                path: String::new(),
                prepare: Prepare::Nothing,
                remove_after: false,
                offset_bytes: 0,
                size_bytes: 4096 * 1000,
                extends_from: None,
            });
            plan.queue.depth = depth;
            plan.trace_syscalls = trace_syscalls;
            let (stop, start, progress, clock) =
                (AtomicBool::new(false), Start::new(), Progress::default(), choose_clock());
            std::thread::scope(|scope| {
                for _ in 0..workers {
                    let worker = || run_worker(&WorkerContext::new(&plan, &[], &stop, &start, &progress, clock));
                    scope.spawn(move || assert_eq!(worker().ops[0].io_count, 1000));
                }
                start.wait_for(workers);
                start.open();
            });
            start.made_way()
        };
        assert_eq!(made_way(2 * processors + 1, 1, false), 2 * processors + 1, "each");
        assert_eq!(made_way(2 * processors + 1, 4, false), 0, "I/Os are in flight");
        assert_eq!(made_way(2 * processors + 1, 1, true), 0, "system calls are traced");
        assert_eq!(made_way(1, 1, false), 0, "one alone");
    }

    #[test]
    fn an_end_that_no_worker_reaches_is_waited_for_until_the_limit() {
        let start = Start::new();
        start.finished();
        assert!(!start.wait_finished(2, Duration::from_millis(1)));
        start.finished();
        assert!(start.wait_finished(2, Duration::ZERO));
    }

    #[test]
    fn a_job_waits_for_all_workers_of_another_or_until_it_is_stopped() {
        let (gate, stop) = (Gate::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait(&stop));
            gate.leave();
            assert!(!waiting.is_finished(), "one worker is still there");
            gate.leave();
        });
        gate.leave();
        assert_eq!(gate.count(), 0, "it does not go below zero");
        let gate = Gate::new(1);
        stop.store(true, Relaxed);
        gate.wait(&stop);
    }
}
