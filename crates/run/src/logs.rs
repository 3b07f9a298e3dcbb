//! The interface to a writer of logs, which receives each I/O of a phase while its workers run.
//!
//! This crate defines no format of a log: the program passes a [`LogWriter`] with the request
//! ([`Reporting::logs`](crate::Reporting::logs)).

use std::fmt::Debug;
use std::io;
use trueio_engine::{IssuedIo, LogChannel};
use trueio_model::{JobPlan, OutputPlan};

/// A log that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the log `{path}` cannot be written")]
pub struct LogError {
    path: String,
    #[source]
    source: io::Error,
}

impl LogError {
    /// The error of the log at `path`.
    pub fn new(path: String, source: io::Error) -> Self {
        Self { path, source }
    }
}

/// Writes the logs of a run's jobs.
pub trait LogWriter: Debug + Send + Sync {
    /// Opens the logs of a phase; `None` if its jobs have none. `first_worker` is the number of the phase's first
    /// worker in the run, from 1.
    ///
    /// # Errors
    /// A file that cannot be created.
    fn begin_phase(&self, jobs: &[JobPlan], first_worker: u32) -> Result<Option<Box<dyn PhaseLogs>>, LogError>;
}

/// The logs of one phase. Workers are counted from 0.
pub trait PhaseLogs: Debug {
    /// Returns the channel for the I/Os that a worker completes.
    fn completed(&self, worker: u32) -> Option<LogChannel>;

    /// Returns the channel for the I/Os that a worker issues.
    fn issued(&self, worker: u32) -> Option<LogChannel<IssuedIo>>;

    /// The workers begin now.
    fn workers_begin(&self);

    /// All workers have ended: writes the rest.
    ///
    /// # Errors
    /// The first log that could not be written.
    fn finish(self: Box<Self>) -> Result<(), LogError>;
}

/// Whether the I/Os that a job completes are logged.
pub(crate) fn logs_completed(output: &OutputPlan) -> bool {
    !output.logs.is_empty()
}

/// Whether the I/Os that a job issues are logged.
pub(crate) fn logs_issued(output: &OutputPlan) -> bool {
    output.logs.iolog.is_some() || output.shows_any()
}

/// Opens the logs of a phase.
///
/// # Errors
/// As [`LogWriter::begin_phase`]; jobs with logs in a run without a writer.
pub(crate) fn begin_phase(
    writer: Option<&dyn LogWriter>,
    jobs: &[JobPlan],
    first_worker: u32,
) -> Result<Option<Box<dyn PhaseLogs>>, LogError> {
    let mut logging = jobs.iter().filter(|job| logs_completed(&job.output) || logs_issued(&job.output));
    match (writer, logging.next()) {
        (_, None) => Ok(None),
        (Some(writer), _) => writer.begin_phase(jobs, first_worker),
        (None, Some(job)) => {
            let reason = "this run has no writer of logs (`Reporting::logs`)";
            Err(LogError::new(format!("of job {}", job.name), io::Error::other(reason)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::EngineKind;

    #[test]
    fn a_job_with_logs_needs_a_writer() {
        let mut job = JobPlan::plain(EngineKind::Null, 1 << 20);
        assert!(matches!(begin_phase(None, std::slice::from_ref(&job), 1), Ok(None)));
        job.output.logs.bw = Some("prefix".to_owned());
        let error = begin_phase(None, &[job], 1).expect_err("no writer");
        assert!(std::error::Error::source(&error).is_some_and(|source| source.to_string().contains("no writer")));
    }
}
