//! Failed I/Os and blocks that did not read back as written.

use crate::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// I/Os that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoFailure {
    /// Which operation.
    pub op: OpKind,
    /// The error number; 0 for a transfer that was short.
    pub errno: i32,
    /// The first one's file.
    pub path: String,
    /// The first one's offset, in bytes.
    pub offset: u64,
    /// The first one's length, in bytes.
    pub length: u64,
    /// The first one's buffer address.
    pub address: u64,
    /// What the first one returned, in bytes; only meaningful for a short transfer.
    pub returned: u64,
    /// How many there were.
    pub count: u64,
    /// What went wrong and what to do, in words.
    pub explanation: String,
}

/// A block that did not read back as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyFailure {
    /// The file.
    pub path: String,
    /// The block's offset, in bytes.
    pub offset: u64,
    /// The block's length, in bytes.
    pub length: u64,
    /// What was expected, in words.
    pub expected: String,
    /// What was found, in words.
    pub found: String,
}

impl VerifyFailure {
    /// Replaces what was expected and found, which may hold bytes of the file.
    pub fn hide(&mut self) {
        "what the job wrote".clone_into(&mut self.expected);
        "something else, which is not shown".clone_into(&mut self.found);
    }
}
