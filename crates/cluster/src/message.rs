//! The messages between a rank and rank 0.
//!
//! Each value has a type with a range ([`crate::range`], [`crate::figures`]): a message that leaves one is not read, and its sender
//! is lost.

use crate::figures::{self, COUNT_MAX, DURATION_NS_MAX, Head, Measured, PHASES_MAX, PINGS_MAX, TIME_NS_MAX};
use crate::range::{OutOfRange, Text, UpTo, within};
use crate::sample::Sample;
use crate::streams::JobStreams;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use trueio_evidence::Process;
use trueio_model::{ClockOffset, JobSpec, Outcome, TargetFacts};

/// A name: of a host, a kernel, a version, a command, a signal.
pub(crate) type Name = Text<255>;
/// A refusal or another reason.
pub(crate) type Reason = Text<{ figures::REASON_BYTES_MAX }>;
/// A number of phases.
pub(crate) type PhaseCount = UpTo<PHASES_MAX>;
/// A number of pings.
pub(crate) type PingCount = UpTo<PINGS_MAX>;
/// A number of I/Os.
pub(crate) type IoCount = UpTo<COUNT_MAX>;

/// The jobs of a rank, for a comparison: without the places where options were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobText {
    pub(crate) name: String,
    pub(crate) options: BTreeMap<String, String>,
}

impl JobText {
    pub(crate) fn of(specs: &[JobSpec]) -> Vec<Self> {
        let text = |spec: &JobSpec| JobText {
            name: spec.name.clone(),
            options: spec.options.iter().map(|(name, value)| (name.clone(), value.text.clone())).collect(),
        };
        specs.iter().map(text).collect()
    }
}

/// A process: its PID namespace, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub(crate) pid_namespace: u64,
    pub(crate) number: UpTo<{ i32::MAX as u64 }>,
}

impl ProcessId {
    /// Returns this process.
    pub(crate) fn own() -> Self {
        let Process { pid_namespace, number } = Process::own();
        Self { pid_namespace, number: UpTo::clamped(number.max(0) as u64) }
    }

    pub(crate) fn get(self) -> Process {
        Process { pid_namespace: self.pid_namespace, number: self.number.get() as i32 }
    }
}

/// A rank and its request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: Name,
    pub(crate) host: Name,
    pub(crate) boot_id: Name,
    pub(crate) process: ProcessId,
    /// The number of ranks, as its launcher gave it.
    pub(crate) size: u32,
    /// The command: `run`, `baseline`.
    pub(crate) kind: Name,
    /// The jobs, or why there are none.
    pub(crate) jobs: Result<Vec<JobText>, Reason>,
}

impl Hello {
    /// Returns the host's name for a message, in which a line feed would make a line of its own.
    pub(crate) fn host_in_message(&self) -> String {
        self.host.chars().filter(|c| !c.is_control()).collect()
    }
}

/// The measured part of a rank, in its own clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct OwnSpan {
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) late_ns: u64,
}

impl<'de> Deserialize<'de> for OwnSpan {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Sent {
            begin_ns: i64,
            end_ns: i64,
            late_ns: UpTo<DURATION_NS_MAX>,
        }
        let Sent { begin_ns, end_ns, late_ns } = Sent::deserialize(from)?;
        let check = || {
            within("the begin of a measured part in nanoseconds", begin_ns, TIME_NS_MAX)?;
            within("the end of a measured part in nanoseconds", end_ns, TIME_NS_MAX)?;
            match end_ns < begin_ns {
                true => Err(OutOfRange::new("the end of a measured part", end_ns, format_args!("at least {begin_ns}"))),
                false => Ok(Self { begin_ns, end_ns, late_ns: late_ns.get() }),
            }
        };
        check().map_err(D::Error::custom)
    }
}

/// The offset of a rank's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Offset(pub(crate) ClockOffset);

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let clock = ClockOffset::deserialize(from)?;
        figures::check_clock(&clock).map_err(D::Error::custom)?;
        Ok(Self(clock))
    }
}

/// How a rank's phase ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Ended(pub(crate) Outcome);

impl<'de> Deserialize<'de> for Ended {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let outcome = Outcome::deserialize(from)?;
        figures::check_outcome(&outcome).map_err(D::Error::custom)?;
        Ok(Self(outcome))
    }
}

/// The results of a rank in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// `None`: the rank has no job in this phase, or was stopped before it.
    pub(crate) phase: Option<Box<Measured>>,
    pub(crate) span: Option<OwnSpan>,
    /// All targets so far.
    pub(crate) targets: Vec<TargetFacts>,
    pub(crate) outcome: Ended,
    /// How many I/Os this rank has reached in jobs that others follow.
    #[serde(default)]
    pub(crate) reached: BTreeMap<String, IoCount>,
    /// Samples of what the jobs of the phase read and wrote.
    #[serde(default)]
    pub(crate) streams: Vec<JobStreams>,
}

impl Done {
    /// Results without figures.
    pub(crate) fn without_figures(outcome: Outcome) -> Self {
        let outcome = Ended(outcome);
        Self { phase: None, span: None, targets: Vec::new(), outcome, reached: BTreeMap::new(), streams: Vec::new() }
    }
}

/// A message to rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToHub {
    /// First.
    Hello(Box<Hello>),
    /// The plan is made, or refused.
    Planned { refusal: Option<Reason>, phase_count: PhaseCount },
    /// The record without phases.
    Head(Box<Head>),
    /// The rank still fills its files, or still works although rank 0 has measured; in a unit that only grows. Renews the time that rank 0
    /// waits.
    Working { done: u64 },
    /// The workers of a phase are ready.
    Ready,
    /// Pings follow, as raw bytes, and then the offset.
    Pinging,
    /// The offset of the clocks, after pings.
    Clock(Offset),
    /// Everything is counted; the measured part can begin.
    Armed,
    /// The results so far, while the rank measures; only if they were asked for.
    Sample(Box<Sample>),
    /// The phase is over.
    Done(Box<Done>),
    /// A value for [`Member::combine`](crate::Member::combine), as JSON.
    Value(String),
    /// A signal ends the run.
    Stopping { signal: Name },
}

/// A message of rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ToRank {
    /// The request is refused; rank 0 prints why.
    Refused,
    /// The request is accepted.
    Go {
        phase_count: PhaseCount,
        /// Ranks on this rank's kernel, itself included.
        neighbours: u32,
        /// Their processes, in the first of these messages.
        processes: Vec<ProcessId>,
        /// Ranks to the nearest one of another host.
        host_stride: u32,
    },
    /// The number of pings to send.
    Ping { count: PingCount },
    /// Rank 0, or a rank for which it waits, came forward with its work; in a unit that only grows. Renews the time that the others wait.
    Working { done: u64 },
    /// All ranks are ready.
    Proceed,
    /// Begin at this instant of rank 0's clock.
    Start { at_ns: i64 },
    /// Rank 0 has measured; send results.
    Collect,
    /// What rank 0 made of the values of all ranks, as JSON.
    Value(String),
    /// The next phase.
    Next {
        /// How many I/Os each rank has reached in jobs that others follow.
        reached: BTreeMap<String, Vec<u64>>,
    },
    /// The run is over as planned.
    Over,
    /// End the run now, and send what there is.
    Stop { reason: Reason },
    /// The exit code of all ranks.
    End { code: u8 },
}
