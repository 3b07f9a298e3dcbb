//! The origin of a value, for `explain` and the record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Origin {
    /// The option table's default: the option is not set.
    Default,
    /// A line of a job file. `line` counts from 1.
    File {
        /// The file as it was named on the command line.
        path: String,
        /// The line, from 1.
        line: u32,
    },
    /// A flag on the command line, as typed (`--iodepth`).
    Flag {
        /// The flag's spelling.
        flag: String,
    },
    /// A preset of this program, such as `baseline`.
    Preset {
        /// The preset's name.
        name: String,
    },
    /// The plan derived it; the reason states from what.
    Derived {
        /// One sentence.
        reason: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{path}:{line}"),
            Origin::Flag { flag } => f.write_str(flag),
            Origin::Preset { name } => write!(f, "preset {name}"),
            Origin::Derived { reason } => f.write_str(reason),
        }
    }
}

/// A value and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it was set.
    pub origin: Origin,
}

impl<T> Sourced<T> {
    /// Joins a value to its origin.
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}
