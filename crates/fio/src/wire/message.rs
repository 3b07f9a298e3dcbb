//! The messages and their content.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trueio_cluster::range::cut;
use trueio_model::RunRecord;

/// The version of this protocol.
pub const PROTOCOL: u32 = 5;

/// The sender's version and machine; the first message of each side.
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
    /// Returns the reason if the versions of the two sides differ.
    pub fn objection(&self, other: &Hello) -> Option<String> {
        if (self.protocol, &self.version) == (other.protocol, &other.version) {
            return None;
        }
        let of = |hello: &Hello| format!("trueio {} (protocol {})", cut(&hello.version), hello.protocol);
        Some(format!("both sides must be of one version: here is {}, there is {}", of(self), of(other)))
    }
}

/// A message to a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToServer {
    /// The sender's version and machine.
    Hello(Hello),
    /// The jobs. The server plans them, and waits.
    Jobs(Box<Jobs>),
    /// Starts the run.
    Start,
    /// Ends the run, with the results so far.
    Stop,
}

/// A message to a client.
// Without a tag: a tagged enum buffers each message, and doubles the code that reads a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToClient {
    /// The token of a client over TCP is the server's.
    Admitted,
    /// The sender's version and machine.
    Hello(Hello),
    /// The refusal: nothing was done.
    Refused {
        /// The server's complete message.
        text: String,
    },
    /// The jobs are planned and can start.
    Planned(Planned),
    /// The run goes on, and there is nothing else to send.
    Alive,
    /// The progress of the run.
    Progress(Progress),
    /// The results so far.
    Interim(Box<RunRecord>),
    /// A part of a log.
    Log(LogPart),
    /// The results. The last message.
    Done {
        /// The record of the run.
        record: Box<RunRecord>,
        /// A failure outside of the jobs' I/O, such as a command of a job.
        problem: Option<String>,
    },
}

/// The jobs of a run, and its options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    /// Job files, in order: names in `texts`.
    pub files: Vec<String>,
    /// Job files that are stored at the server.
    pub files_there: Vec<String>,
    /// Texts of job files and of what they include, by name.
    pub texts: BTreeMap<String, String>,
    /// Variables that the job files use, with the client's values.
    pub variables: BTreeMap<String, String>,
    /// The only sections that are run; empty: all.
    pub sections: Vec<String>,
    /// Whether jobs that would change anything are refused. The server may refuse them anyway.
    pub is_readonly: bool,
    /// Whether jobs may run commands, if the server allows it, too.
    pub allows_exec: bool,
    /// Whether notes are errors.
    pub are_warnings_fatal: bool,
    /// The number of this server among those of the client, from 0: each has a random stream of its own.
    pub place: u32,
    /// Interval of interim results, in nanoseconds.
    pub status_interval_ns: Option<u64>,
}

/// The plan of a run, for the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// A line for each job, as fio prints it before the jobs start.
    pub lines: Vec<String>,
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The phase: its number and its jobs.
    pub phase: String,
    /// The share of the phase that is done, from 0 to 1.
    pub fraction: f64,
    /// Recent bytes per second.
    pub bytes_per_s: f64,
    /// Recent I/Os per second.
    pub ios_per_s: f64,
    /// Recent median latency, in nanoseconds.
    pub latency_ns_p50: u64,
    /// Recent 99th percentile of latency, in nanoseconds.
    pub latency_ns_p99: u64,
    /// Remaining time in nanoseconds, if known.
    pub left_ns: Option<u64>,
}

/// A part of a log, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPart {
    /// The prefix of the job's logs (`write_bw_log=PREFIX`).
    pub prefix: String,
    /// The rest of this log's name, after the prefix: `_bw.1.log`.
    pub suffix: String,
    /// Its next lines; empty if it has none.
    pub text: String,
}
