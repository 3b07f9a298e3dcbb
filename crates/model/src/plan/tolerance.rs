//! What a job bears: failed I/Os after which it goes on.

use crate::OpKind;
use serde::{Deserialize, Serialize};

/// No space left on the device, as in errno(3).
const ENOSPC: i32 = 28;
/// The quota is used up, as in errno(3).
const EDQUOT: i32 = 122;

/// True for the errors of a write for which nothing is free.
pub(super) fn is_full(errno: i32) -> bool {
    matches!(errno, ENOSPC | EDQUOT)
}

/// Failed I/Os after which a job goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tolerance {
    /// All failed reads; the run fails all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reads: bool,
    /// All failed writes and trims; the run fails all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub writes: bool,
    /// Those that were announced, for which the run does not fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredError>,
    /// A write for which nothing is free is the job's end, and no failure: `ignored` has its errors, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ends_when_full: bool,
}

impl Tolerance {
    /// True if nothing is tolerated.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// An error that was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredError {
    /// Reads, or writes with trims.
    pub op: OpKind,
    /// Its number, as in errno(3).
    pub errno: i32,
}
