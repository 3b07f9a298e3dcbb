//! The messages, and what they carry.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trueio_model::RunRecord;

/// The version of this protocol.
pub const PROTOCOL: u32 = 1;

/// Who is there; the first message of each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the sender.
    pub protocol: u32,
    /// The version of the sender's program.
    pub version: String,
    /// The name of the sender's machine.
    pub machine: String,
}

impl Hello {
    /// Why these two do not understand each other, if they do not.
    pub fn objection(&self, other: &Hello) -> Option<String> {
        if (self.protocol, &self.version) == (other.protocol, &other.version) {
            return None;
        }
        let of = |hello: &Hello| format!("trueio {} (protocol {})", hello.version, hello.protocol);
        Some(format!("both sides must be of one version: here is {}, there is {}", of(self), of(other)))
    }
}

/// To a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ToServer {
    /// Who is there.
    Hello(Hello),
    /// What is to be run. The server plans it, and waits.
    Jobs(Box<Jobs>),
    /// Run it.
    Start,
    /// End the run, with the results until now.
    Stop,
}

/// To a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ToClient {
    /// Who is there.
    Hello(Hello),
    /// Nothing was done, and why: the server's whole text.
    Refused {
        /// For people.
        text: String,
    },
    /// It can be run.
    Planned(Planned),
    /// How it goes.
    Progress(Progress),
    /// The results so far.
    Interim(Box<RunRecord>),
    /// A part of a log.
    Log(LogPart),
    /// The results. The last message.
    Done {
        /// What was done.
        record: Box<RunRecord>,
        /// What went wrong beside the jobs: a command of theirs.
        problem: Option<String>,
    },
}

/// What is to be run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    /// Job files, in order: names in `texts`.
    pub files: Vec<String>,
    /// Job files that lie at the server.
    pub files_there: Vec<String>,
    /// Texts of job files and of what they include, by name.
    pub texts: BTreeMap<String, String>,
    /// Variables that they ask for, as the client has them.
    pub variables: BTreeMap<String, String>,
    /// The only sections that are run; empty: all.
    pub sections: Vec<String>,
    /// Whether jobs that would change anything are refused. The server may refuse them anyway.
    pub is_readonly: bool,
    /// Whether jobs may run commands, if the server allows it, too.
    pub allows_exec: bool,
    /// Whether notes are errors.
    pub are_warnings_fatal: bool,
    /// How often results so far are wanted, in nanoseconds.
    pub status_interval_ns: Option<u64>,
}

/// What is going to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// A line for each job, as fio writes it before they start.
    pub lines: Vec<String>,
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The phase: its number and its jobs.
    pub phase: String,
    /// The share of the phase that is done, from 0 to 1.
    pub fraction: f64,
    /// Bytes a second of late.
    pub bytes_per_s: f64,
    /// I/Os a second of late.
    pub ios_per_s: f64,
    /// Median latency of late, in nanoseconds.
    pub latency_ns_p50: u64,
    /// 99th percentile of late, in nanoseconds.
    pub latency_ns_p99: u64,
    /// What is left, in nanoseconds, if that is known.
    pub left_ns: Option<u64>,
}

/// A part of a log, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPart {
    /// What the job calls its logs (`write_bw_log=PREFIX`).
    pub prefix: String,
    /// What the name of this one has behind it: `_bw.1.log`.
    pub suffix: String,
    /// Its next lines; empty if it has none.
    pub text: String,
}
