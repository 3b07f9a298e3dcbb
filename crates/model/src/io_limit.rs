//! Limits that control groups of a process put on a device's I/O.

use crate::units::{format_bandwidth, format_bytes, format_count, format_duration_ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A limit of one control group on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoLimit {
    /// The control group's path in its hierarchy (`/jobs/backup`; `/` is the root).
    pub group: String,
    /// Kernel name of the device (`vda`, `dm-0`).
    pub device: String,
    /// Major and minor number of the device.
    pub device_number: (u32, u32),
    /// What is limited.
    pub kind: IoLimitKind,
    /// The limit, in the unit of its kind.
    pub value: u64,
    /// The file that contains the limit.
    pub source: String,
}

/// What a control group limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoLimitKind {
    /// Bytes read per second.
    ReadBytes,
    /// Bytes written per second.
    WriteBytes,
    /// Reads per second.
    ReadCount,
    /// Writes per second.
    WriteCount,
    /// Target of `io.latency`, in nanoseconds: the kernel slows groups with a longer target if this one misses it.
    LatencyTarget,
    /// Weight under `io.cost` (100: the default): groups that use the device at the same time share it by weight, and all
    /// together get what the cost model allows.
    CostWeight,
}

impl IoLimit {
    /// Describes the limit: `reads of vda to 1.00 MiB/s`.
    pub fn describe(&self) -> String {
        let (device, value) = (&self.device, self.value);
        match self.kind {
            IoLimitKind::ReadBytes => format!("reads of {device} to {}", format_bandwidth(value as f64)),
            IoLimitKind::WriteBytes => format!("writes to {device} to {}", format_bandwidth(value as f64)),
            IoLimitKind::ReadCount => format!("reads of {device} to {} per second", format_count(value)),
            IoLimitKind::WriteCount => format!("writes to {device} to {} per second", format_count(value)),
            IoLimitKind::LatencyTarget => {
                format!("others on {device} if its own I/Os take more than {} (io.latency)", format_duration_ns(value))
            }
            IoLimitKind::CostWeight => format!("its use of {device} to weight {value} (io.cost)"),
        }
    }

    /// Formats a rate in the unit of the limit; the kinds without a rate give bytes.
    pub fn format_rate(&self, per_s: f64) -> String {
        match self.kind {
            IoLimitKind::ReadBytes | IoLimitKind::WriteBytes => format_bandwidth(per_s),
            IoLimitKind::ReadCount | IoLimitKind::WriteCount => format!("{} per second", format_count(per_s as u64)),
            IoLimitKind::LatencyTarget | IoLimitKind::CostWeight => format_bytes(per_s as u64),
        }
    }
}
