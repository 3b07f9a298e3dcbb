//! Priorities of single I/Os.
//!
//! Source: Linux `include/uapi/linux/ioprio.h`, `block/ioprio.c`.

use crate::{LatencySet, OpKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An I/O priority of the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct IoPriority {
    /// 1 real time, 2 best effort, 3 idle; 0: that of the thread.
    pub class: u8,
    /// Within the class, 0 the highest, to 7.
    pub level: u8,
    /// A hint for the device, 0 to 1023; 0: none (Linux 6.5).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hint: u16,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(hint: &u16) -> bool {
    *hint == 0
}

impl IoPriority {
    /// Real time, the highest class.
    pub const REAL_TIME: u8 = 1;

    /// Returns the kernel's encoding: class from bit 13 on, hint from bit 3 on, level.
    pub fn value(self) -> u16 {
        u16::from(self.class & 7) << 13 | (self.hint & 0x3ff) << 3 | u16::from(self.level & 7)
    }
}

impl fmt::Display for IoPriority {
    /// `2/1`, and with a hint `2/1/3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.class, self.level)?;
        if self.hint > 0 { write!(f, "/{}", self.hint) } else { Ok(()) }
    }
}

/// A share of a job's I/Os with a priority of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PriorityShare {
    /// Reads or writes.
    pub op: OpKind,
    /// Only those of this size, in bytes; `None`: of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_bytes: Option<u32>,
    /// The share in percent, 1 to 100. Shares of one kind and size are at most 100 together; the remaining I/Os have the
    /// priority of the thread.
    pub percent: u8,
    /// Their priority.
    pub priority: IoPriority,
}

/// The I/Os of one kind that had one priority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PriorityRecord {
    /// Which priority. That of the thread is 0/0 if the job sets none.
    pub priority: IoPriority,
    /// Their total latencies; submission latencies are not recorded by priority.
    pub latency: LatencySet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_has_the_number_and_the_text_that_the_kernel_and_fio_give_it() {
        let of = |class, level, hint| IoPriority { class, level, hint };
        assert_eq!((of(2, 1, 0).value(), of(2, 1, 0).to_string().as_str()), (0x4001, "2/1"));
        assert_eq!((of(1, 7, 3).value(), of(1, 7, 3).to_string().as_str()), (0x201f, "1/7/3"));
        assert_eq!(of(3, 0, 1023).value(), 0x7ff8);
    }
}
