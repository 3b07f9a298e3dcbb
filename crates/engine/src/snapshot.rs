//! A worker's results on request, while it still runs.
//!
//! A request raises a number; the worker reads it at the end of its next interval, copies
//! what it has counted so far, and goes on. Without a request nothing is copied.

use crate::recorder::WorkerReport;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Where a worker leaves its results.
#[derive(Debug, Default)]
pub struct Snapshot {
    wanted: AtomicU32,
    given: Mutex<Given>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Given {
    /// The question that was answered last.
    answered: u32,
    /// The answer is that to all questions: the worker has ended, or has no figures.
    is_settled: bool,
    report: Option<WorkerReport>,
}

impl Snapshot {
    fn lock(&self) -> MutexGuard<'_, Given> {
        self.given.lock().expect("no thread panics while holding a snapshot")
    }

    /// Asks for the results so far.
    pub fn ask(&self) {
        self.wanted.fetch_add(1, Relaxed);
    }

    /// The results since the last question, or earlier ones if the worker does not answer within `limit` (it
    /// waits for an I/O); `None` if there never were any. One that has ended, or has no figures, is not waited for.
    pub fn wait(&self, limit: Duration) -> Option<WorkerReport> {
        let wanted = self.wanted.load(Relaxed);
        let is_open = |given: &mut Given| !given.is_settled && given.answered != wanted;
        let answered = self.changed.wait_timeout_while(self.lock(), limit, is_open);
        answered.expect("no thread panics while holding a snapshot").0.report.clone()
    }

    /// The number of the question, if it is another one than `answered`.
    pub(crate) fn question(&self, answered: u32) -> Option<u32> {
        let wanted = self.wanted.load(Relaxed);
        (wanted != answered).then_some(wanted)
    }

    /// The worker's answer.
    pub(crate) fn give(&self, question: u32, report: WorkerReport) {
        let mut given = self.lock();
        (given.answered, given.report) = (question, Some(report));
        drop(given);
        self.changed.notify_all();
    }

    /// The worker's answer to all questions from now on.
    pub(crate) fn settle(&self, report: WorkerReport) {
        let mut given = self.lock();
        (given.is_settled, given.report) = (true, Some(report));
        drop(given);
        self.changed.notify_all();
    }
}
