//! A worker's results while it still runs, for whoever asks for them.
//!
//! Whoever wants them raises a number; the worker sees that at the end of its next row of the series, copies
//! what it has counted so far, and goes on. Nothing is asked and nothing copied otherwise.

use crate::recorder::WorkerReport;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Where a worker leaves its results.
#[derive(Debug, Default)]
pub struct Snapshot {
    wanted: AtomicU32,
    given: Mutex<(u32, Option<WorkerReport>)>,
    changed: Condvar,
}

impl Snapshot {
    /// Asks for the results so far.
    pub fn ask(&self) {
        self.wanted.fetch_add(1, Relaxed);
    }

    /// The results since the last question, or earlier ones if the worker does not answer within `limit` (it
    /// waits for an I/O, or has ended); `None` if there never were any.
    pub fn wait(&self, limit: Duration) -> Option<WorkerReport> {
        let wanted = self.wanted.load(Relaxed);
        let given = self.given.lock().expect("nobody panics while holding a snapshot");
        let answered = self.changed.wait_timeout_while(given, limit, |given| given.0 != wanted);
        answered.expect("nobody panics while holding a snapshot").0.1.clone()
    }

    /// The number of the question, if it is another one than `answered`.
    pub(crate) fn question(&self, answered: u32) -> Option<u32> {
        let wanted = self.wanted.load(Relaxed);
        (wanted != answered).then_some(wanted)
    }

    /// The worker's answer.
    pub(crate) fn give(&self, question: u32, report: WorkerReport) {
        *self.given.lock().expect("nobody panics while holding a snapshot") = (question, Some(report));
        self.changed.notify_all();
    }
}
