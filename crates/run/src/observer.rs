//! What a run reports while it goes on.
//!
//! Events are sent by the thread that follows the workers, never by a worker.

use crate::neighbours::Watched;
use crate::{BandwidthSpan, LogWriter};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trueio_engine::{TraceChannel, WorkerReport};
use trueio_model::{RunRecord, SteadyState, VerifyFailure};

/// Receives the events of a run.
pub trait Observer {
    /// Handles one event. The default ignores it.
    ///
    /// Workers wait while [`Event::MeasuringBegins`] and [`Event::MeasuringEnds`] are handled.
    fn notify(&mut self, event: Event<'_>) {
        let _ = event;
    }
}

/// One event of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// A file is being written before it is measured.
    Preparing {
        /// Its path, as the plan has it.
        path: &'a str,
        /// How much of it is written, in bytes.
        done_bytes: u64,
        /// Its size, in bytes.
        size_bytes: u64,
    },
    /// The files of a phase are prepared, and the phase begins next.
    BeforePhase {
        /// Position of the phase, from 0.
        index: usize,
        /// `None`; a reason that is set here ends the run before the phase.
        failure: &'a mut Option<String>,
    },
    /// A phase ended, successfully or not: sent once for each [`Event::BeforePhase`].
    AfterPhase {
        /// Position of the phase, from 0.
        index: usize,
    },
    /// A phase begins.
    PhaseBegins {
        /// Position of the phase, from 0.
        index: usize,
        /// Number of phases.
        count: usize,
        /// The phase's name.
        name: &'a str,
    },
    /// A round before the steady state begins.
    RoundBegins {
        /// Position of the round, from 0.
        round: u32,
        /// Largest number of rounds.
        rounds_max: u32,
        /// Result of the rounds until now.
        so_far: &'a SteadyState,
    },
    /// The last round ended; the measured part begins next.
    RoundsEnd {
        /// Result of all rounds.
        state: &'a SteadyState,
    },
    /// All workers of a phase, or of a round, are ready. They wait while this is handled.
    WorkersReady {
        /// Whether a ramp or a delay of all jobs comes before the measured part: the workers begin with it.
        has_head: bool,
    },
    /// The measured part of a phase, or of a round, begins now.
    MeasuringBegins,
    /// The measured part of a phase, or of a round, ended.
    MeasuringEnds,
    /// Progress of a phase or round, a few times a second.
    Progress(&'a Tick),
    /// The run so far: completed phases, and the current one without a verdict
    /// ([`Reporting::interim_every`], [`Reporting::interim_asked`]).
    Interim(&'a RunRecord),
    /// Bandwidth of a span of the phase; the last span may be shorter ([`Reporting::bandwidth_every`]).
    Bandwidth(&'a BandwidthSpan<'a>),
    /// A phase ended and has its verdict: it is the last one of the run so far.
    PhaseEnds(&'a RunRecord),
    /// The phase waits until the disks are idle (`Plan::idle_wait_ns`): what keeps them busy.
    WaitingForIdle(&'a str),
    /// What the disks did in the last second ([`Reporting::watches_disks`]).
    Watched(&'a Watched),
}

/// Reports that a run makes only if they are requested.
#[derive(Debug, Clone, Default)]
pub struct Reporting {
    /// Interval of [`Event::Interim`]; `None`: no such event.
    pub interim_every: Option<Duration>,
    /// A flag that asks for one [`Event::Interim`] and is then cleared; `None`: there is no such flag.
    pub interim_asked: Option<&'static AtomicBool>,
    /// Length of the spans of [`Event::Bandwidth`]; `None`: no such event.
    pub bandwidth_every: Option<Duration>,
    /// Reads the disks' counters once a second while a phase is measured, for [`Event::Watched`].
    pub watches_disks: bool,
    /// Leaves out of the results what verifications found and expected: bytes of files, and checksums that are stored in them.
    pub hides_contents: bool,
    /// Receives every I/O of the run; `None`: there is no trace.
    pub trace: Option<TraceChannel>,
    /// Writes the logs of the jobs; `None`: a job with a log fails the run.
    pub logs: Option<Arc<dyn LogWriter>>,
}

impl Reporting {
    /// Returns reports as they may be shown: with [`Self::hides_contents`] without what verifications found.
    pub(crate) fn shown(&self, mut reports: Vec<WorkerReport>) -> Vec<WorkerReport> {
        if self.hides_contents {
            reports.iter_mut().flat_map(|report| &mut report.verify_failures).for_each(VerifyFailure::hide);
        }
        reports
    }
}

/// Progress of a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    /// The share that is done, from 0 to 1.
    pub fraction: f64,
    /// Measured time so far, in nanoseconds.
    pub elapsed_ns: u64,
    /// Bytes a second since the last tick.
    pub bytes_per_s: f64,
    /// I/Os a second since the last tick.
    pub ios_per_s: f64,
    /// Recent median latency of the slowest worker, in nanoseconds.
    pub latency_ns_p50: u64,
    /// Recent 99th percentile of the slowest worker, in nanoseconds.
    pub latency_ns_p99: u64,
    /// Estimated time left, in nanoseconds; `None`: unknown.
    pub left_ns: Option<u64>,
}
