//! The failed I/Os that a job tolerates.

use crate::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No space left on the device, as in errno(3).
const ENOSPC: i32 = 28;
/// The quota is exceeded, as in errno(3).
const EDQUOT: i32 = 122;

/// Returns true for the errors of a write without free space.
pub(super) fn is_full(errno: i32) -> bool {
    matches!(errno, ENOSPC | EDQUOT)
}

/// The failed I/Os after which a job continues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tolerance {
    /// All failed reads; the run still fails.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reads: bool,
    /// All failed writes and trims; the run still fails.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub writes: bool,
    /// Errors to ignore, which do not fail the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredError>,
    /// A write that fails for lack of space ends the job and is not a failure: `ignored` contains these errors, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ends_when_full: bool,
}

impl Tolerance {
    /// True if nothing is tolerated.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// An error to ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredError {
    /// Reads, or writes with trims.
    pub op: OpKind,
    /// Its number, as in errno(3).
    pub errno: i32,
}
