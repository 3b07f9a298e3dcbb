//! The messages between a rank and rank 0.

use crate::sample::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trueio_model::{ClockOffset, JobSpec, Outcome, PhaseRecord, RunRecord, TargetFacts};

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

/// A rank and its request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: String,
    pub(crate) host: String,
    pub(crate) boot_id: String,
    /// The command: `run`, `baseline`.
    pub(crate) kind: String,
    /// The jobs, or why there are none.
    pub(crate) jobs: Result<Vec<JobText>, String>,
}

/// The measured part of a rank, in its own clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnSpan {
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) late_ns: u64,
}

/// The results of a rank in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// `None`: the rank has no job in this phase, or was stopped before it.
    pub(crate) phase: Option<Box<PhaseRecord>>,
    pub(crate) span: Option<OwnSpan>,
    /// All targets so far.
    pub(crate) targets: Vec<TargetFacts>,
    pub(crate) outcome: Outcome,
    /// How many I/Os this rank has reached in jobs that others follow.
    #[serde(default)]
    pub(crate) reached: BTreeMap<String, u64>,
}

/// A message to rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToHub {
    /// First.
    Hello(Box<Hello>),
    /// The plan is made, or refused.
    Planned { refusal: Option<String>, phase_count: usize },
    /// The record without phases.
    Head(Box<RunRecord>),
    /// The workers of a phase are ready.
    Ready,
    /// Pings follow, as raw bytes, and then the offset.
    Pinging,
    /// The offset of the clocks, after pings.
    Clock(ClockOffset),
    /// Everything is counted; the measured part can begin.
    Armed,
    /// The results so far, while the rank measures; only if they were asked for.
    Sample(Box<Sample>),
    /// The phase is over.
    Done(Box<Done>),
    /// A value for [`Member::combine`](crate::Member::combine), as JSON.
    Value(String),
    /// A signal ends the run.
    Stopping { signal: String },
}

/// A message of rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ToRank {
    /// The request is refused; rank 0 prints why.
    Refused,
    /// The request is accepted.
    Go {
        phase_count: usize,
        /// Ranks on this rank's kernel, itself included.
        neighbours: u32,
        /// Ranks to the nearest one of another host.
        host_stride: u32,
    },
    /// The number of pings to send.
    Ping { count: u32 },
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
    Stop { reason: String },
    /// The exit code of all ranks.
    End { code: u8 },
}
