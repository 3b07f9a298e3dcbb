//! The kinds of operation: reads, writes, trims and sync calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kinds of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A trim (discard, hole punch).
    Trim,
    /// A sync call.
    Sync,
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Trim => "trim",
            OpKind::Sync => "sync",
        })
    }
}
