//! Programs of others: one that a job runs instead of I/O, one before and one behind it.

use serde::{Deserialize, Serialize};

/// Another program that runs while other jobs measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecPlan {
    /// Its name and its arguments.
    pub arguments: Vec<String>,
    /// How long it may take to end when it was asked to, in nanoseconds.
    pub grace_ns: u64,
    /// What it prints goes to files of this name, with `.stdout` and `.stderr` behind it; `None`: to our standard
    /// error.
    pub output: Option<String>,
}

impl ExecPlan {
    /// The files for what it prints: standard output and standard error.
    pub fn output_files(&self) -> Option<[String; 2]> {
        self.output.as_ref().map(|prefix| ["stdout", "stderr"].map(|ending| format!("{prefix}.{ending}")))
    }
}

/// Another program that does a job's I/O.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPlan {
    /// Its name and its arguments. `{file}` in them stands for the path of the job's file, which is known when it
    /// is started.
    pub arguments: Vec<String>,
}
