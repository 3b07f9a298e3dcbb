//! Times within a phase at which its figures were disturbed.

use crate::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a phase's measured time in which the disk or this program was disturbed. Adjoining samples of one cause are one
/// span, so a phase without a disturbance has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DisturbedSpan {
    /// Its begin, in nanoseconds since the measured part began.
    pub from_ns: u64,
    /// Its end, in nanoseconds since the measured part began.
    pub until_ns: u64,
    /// [`Cause::Neighbour`]: others used the disk. [`Cause::Tool`]: the workers waited for a processor.
    /// [`Cause::Device`]: the disk or the processors throttled for heat.
    pub cause: Cause,
    /// What was seen, in a few words: `others wrote 12 MiB`.
    pub what: String,
}
