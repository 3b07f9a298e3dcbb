//! How a worker's job ends: failures, notes, and why it ended.

use crate::recorder::FAILURES_MAX;
use crate::request::Request;
use trueio_model::{IoFailure, JobPlan};

/// The outcome of a job, in the making.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// No further I/O is issued.
    pub(crate) is_done: bool,
    pub(crate) was_stopped: bool,
    /// When the deadline or the request to stop ended the job; 0 if its limits did.
    pub(crate) ended: u64,
    pub(crate) failures: Vec<IoFailure>,
    pub(crate) fatal: Option<String>,
    pub(crate) notes: Vec<String>,
    /// The last request for a snapshot that was answered.
    pub(crate) answered: u32,
}

impl Outcome {
    /// `fault`: why the job cannot begin, if it cannot.
    pub(crate) fn new(fault: Option<String>) -> Self {
        Self {
            is_done: fault.is_some(),
            was_stopped: false,
            ended: 0,
            failures: Vec::new(),
            fatal: fault,
            notes: Vec::new(),
            answered: 0,
        }
    }

    /// Ends the job for this reason, unless it had another one.
    pub(crate) fn fail(&mut self, sentence: String) {
        self.fatal.get_or_insert(sentence);
        self.is_done = true;
    }

    /// Ends the job at `now`, unless it has ended.
    pub(crate) fn end_at(&mut self, now: u64) {
        if !self.is_done {
            self.is_done = true;
            self.ended = now;
        }
    }

    /// Returns true if an I/O failed in a way that the job does not ignore, or the worker did.
    pub(crate) fn has_failed(&self, plan: &JobPlan) -> bool {
        self.fatal.is_some() || plan.unexpected(&self.failures).next().is_some()
    }

    /// Keeps the first failure of its kind with its details, and counts the others.
    #[cold]
    pub(crate) fn note_failure(&mut self, request: &Request, errno: i32, returned: u64, address: u64, path: String) {
        if let Some(known) = self.failures.iter_mut().find(|f| f.op == request.op && f.errno == errno) {
            known.count += 1;
            return;
        }
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(IoFailure {
                op: request.op,
                errno,
                path,
                offset: request.offset,
                length: u64::from(request.length),
                address,
                returned,
                count: 1,
                // The runner has the facts of the target.
                explanation: String::new(),
            });
        }
    }
}
