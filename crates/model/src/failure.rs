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
    /// What of the block differs.
    #[serde(default)]
    pub part: BlockPart,
    /// The number that was found, and the one that was expected: of the header, the checksum of the content, or the first byte that
    /// differs from the pattern; `None`: another part differs, or what was found is not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<[u64; 2]>,
    /// The byte of the block at which its content differs from the pattern, counted from 0; `None`: no pattern was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern_byte: Option<u64>,
}

/// What of a block differs from what was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockPart {
    /// The content, or its length.
    #[default]
    Content,
    /// There is no header.
    Magic,
    /// The header is that of a block of another length.
    Length,
    /// The header is that of another run.
    Run,
    /// The header is that of another offset.
    Offset,
    /// The header is that of an older write.
    Sequence,
    /// The header has another kind of checksum.
    Checksum,
    /// The block was trimmed, and holds something.
    Trimmed,
}

impl BlockPart {
    /// Returns true if the header is not that of this block, so that it describes no content.
    pub fn is_header(self) -> bool {
        !matches!(self, BlockPart::Content | BlockPart::Trimmed)
    }
}

impl VerifyFailure {
    /// Replaces what was expected and found, which may hold bytes of the file.
    pub fn hide(&mut self) {
        "what the job wrote".clone_into(&mut self.expected);
        "something else, which is not shown".clone_into(&mut self.found);
        self.numbers = None;
        self.pattern_byte = None;
    }
}
