//! Logs in fio's formats, written while the jobs run: of completions, of issued I/Os, and `--debug`'s lines.
//!
//! [`FioLogs`] is the writer that a run gets ([`trueio_run::LogWriter`]). Jobs of every language use it: the options
//! (`write_bw_log`, `write_iolog` …) are in the option table, the formats are fio's.

mod completions;
mod io_lines;
mod iologs;
mod lines;
mod packed;
mod thread;

pub use packed::{InflateError, inflate_log};

use completions::{Logs, SharedFiles};
use iologs::Iologs;
use std::fs::File;
use std::sync::Arc;
use trueio_engine::{IssuedIo, LogChannel};
use trueio_model::JobPlan;
use trueio_run::{LogError, LogWriter, PhaseLogs};

/// Writes the logs of one run.
#[derive(Debug, Default)]
pub struct FioLogs {
    shared: SharedFiles,
    io_lines: Option<Arc<File>>,
}

impl FioLogs {
    /// Returns the writer of a run.
    pub fn writer() -> Arc<dyn LogWriter> {
        Arc::new(Self::default())
    }

    /// Returns the writer of a run whose lines about single I/Os go to a file; `None`: to standard output.
    pub fn writer_with_io_lines(io_lines: Option<Arc<File>>) -> Arc<dyn LogWriter> {
        Arc::new(Self { io_lines, ..Self::default() })
    }
}

impl LogWriter for FioLogs {
    fn begin_phase(&self, jobs: &[JobPlan], first_worker: u32) -> Result<Option<Box<dyn PhaseLogs>>, LogError> {
        let logs = Logs::start(jobs, first_worker, &self.shared)?;
        let iologs = Iologs::start(jobs, self.io_lines.as_ref())?;
        Ok(Some(Box::new(OfPhase { logs, iologs })))
    }
}

/// The logs of one phase.
#[derive(Debug)]
struct OfPhase {
    logs: Option<Logs>,
    iologs: Option<Iologs>,
}

impl PhaseLogs for OfPhase {
    fn completed(&self, worker: u32) -> Option<LogChannel> {
        self.logs.as_ref().map(|logs| logs.channel(worker))
    }

    fn issued(&self, worker: u32) -> Option<LogChannel<IssuedIo>> {
        self.iologs.as_ref().map(|logs| logs.channel(worker))
    }

    fn workers_begin(&self) {
        self.logs.iter().for_each(Logs::begin);
    }

    fn finish(self: Box<Self>) -> Result<(), LogError> {
        let completions = self.logs.map_or(Ok(()), Logs::finish);
        let issued = self.iologs.map_or(Ok(()), Iologs::finish);
        issued.and(completions)
    }
}
