//! External programs: run by a job instead of its own I/O, or next to other jobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An external program that runs while other jobs measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecPlan {
    /// Its name and its arguments.
    pub arguments: Vec<String>,
    /// Time for the program to end after SIGTERM, in nanoseconds.
    pub grace_ns: u64,
    /// Prefix of the files for its output, to which `.stdout` and `.stderr` are appended; `None`: our standard
    /// error.
    pub output: Option<String>,
}

impl ExecPlan {
    /// Returns the files for its output: standard output and standard error.
    pub fn output_files(&self) -> Option<[String; 2]> {
        self.output.as_ref().map(|prefix| ["stdout", "stderr"].map(|ending| format!("{prefix}.{ending}")))
    }
}

/// An external program that does a job's I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandPlan {
    /// Its name and its arguments. `{file}` in them is replaced by the path of the job's file when it
    /// is started.
    pub arguments: Vec<String>,
}
