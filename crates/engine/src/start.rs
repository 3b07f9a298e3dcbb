//! How the workers of a phase begin and end together.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// How often a job that waits for another looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Lets all workers of a phase begin together, after the last of them is ready, and lets a thread
/// measures the phase look at the machine after the last I/O and before anything else is done.
#[derive(Debug, Default)]
pub struct Start {
    state: Mutex<StartState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct StartState {
    ready: u32,
    is_open: bool,
    finished: u32,
    /// Workers wait after their last I/O until the end is released.
    holds_end: bool,
}

impl Start {
    /// A start that no worker has reached yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, and workers wait at their end too, until [`Start::release`].
    pub fn holding_end() -> Self {
        let start = Self::default();
        start.lock().holds_end = true;
        start
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, StartState> {
        self.state.lock().expect("no thread panics while holding the start")
    }

    /// Waits while `condition` holds.
    fn wait_while(&self, condition: impl Fn(&StartState) -> bool) {
        let state = self.lock();
        drop(self.changed.wait_while(state, |s| condition(s)).expect("no thread panics while holding the start"));
    }

    /// A worker is ready; returns when the start is opened.
    pub(crate) fn reached(&self) {
        self.lock().ready += 1;
        self.changed.notify_all();
        self.wait_while(|s| !s.is_open);
    }

    /// A worker has done its last measured I/O; returns when the end is released.
    pub(crate) fn finished(&self) {
        self.lock().finished += 1;
        self.changed.notify_all();
        self.wait_while(|s| s.holds_end);
    }

    /// A worker will not come to the end, and to the start neither if `is_before` it (it panicked): no thread waits for it.
    pub fn abandon(&self, is_before: bool) {
        let mut state = self.lock();
        state.ready += u32::from(is_before);
        state.finished += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until `workers` are ready (or have failed to become so).
    pub fn wait_for(&self, workers: u32) {
        self.wait_while(|s| s.ready < workers);
    }

    /// Lets everybody go.
    pub fn open(&self) {
        self.lock().is_open = true;
        self.changed.notify_all();
    }

    /// Waits until `workers` have done their last measured I/O, or `limit` has passed; true if
    /// they have.
    pub fn wait_finished(&self, workers: u32, limit: Duration) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, limit, |s| s.finished < workers);
        waited.expect("no thread panics while holding the start").0.finished >= workers
    }

    /// How many are ready, and how many have finished.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> (u32, u32) {
        let state = self.lock();
        (state.ready, state.finished)
    }

    /// Lets workers go on from their end.
    pub fn release(&self) {
        self.lock().holds_end = false;
        self.changed.notify_all();
    }
}

/// Where jobs wait for the workers of another job to end (`wait_for`).
#[derive(Debug)]
pub struct Gate {
    /// Workers that have not ended.
    there: Mutex<u32>,
    changed: Condvar,
}

impl Gate {
    /// The gate of a job with `workers` workers.
    pub fn new(workers: u32) -> Self {
        Self { there: Mutex::new(workers), changed: Condvar::new() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, u32> {
        self.there.lock().expect("no thread panics while holding a gate")
    }

    /// A worker of the job has ended, in whatever way.
    pub fn leave(&self) {
        let mut there = self.lock();
        *there = there.saturating_sub(1);
        drop(there);
        self.changed.notify_all();
    }

    /// Workers that have not ended.
    pub fn count(&self) -> u32 {
        *self.lock()
    }

    /// Waits until all of them have, or until `stop` is set.
    pub(crate) fn wait(&self, stop: &AtomicBool) {
        let mut there = self.lock();
        while *there > 0 && !stop.load(Relaxed) {
            there = self.changed.wait_timeout(there, LOOK).expect("no thread panics while holding a gate").0;
        }
    }
}
