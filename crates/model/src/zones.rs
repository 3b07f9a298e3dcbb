//! Zoned devices: zones that can only be written in order, from their write pointer on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a job uses the zones of its files (`zonemode = zbd`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ZonePlan {
    /// Length of a zone, in bytes.
    pub zone_bytes: u64,
    /// Writable bytes of an emulated zone; a device reports its own.
    pub capacity_bytes: u64,
    /// The files have no zones: the run keeps emulated write pointers, which start at the zones' first bytes.
    pub is_emulated: bool,
    /// Zones skipped after each, in sequential jobs.
    pub skip_zones: u64,
    /// Reads may go anywhere, not only to written blocks.
    pub reads_beyond: bool,
    /// Maximum number of partly written zones of all workers together; 0: the device's limit.
    pub open_max: u32,
    /// The same of each worker; 0: not limited.
    pub worker_open_max: u32,
    /// The device's own limits are ignored.
    pub ignores_device_limits: bool,
    /// Zones are reset before they are full.
    pub early_resets: Option<EarlyResets>,
    /// The rest of a zone that is less than a block is written by a smaller write; otherwise the zone is finished
    /// without it.
    pub writes_remainder: bool,
}

impl ZonePlan {
    /// Emulated zones without limits.
    pub fn emulated(zone_bytes: u64, capacity_bytes: u64) -> Self {
        Self {
            zone_bytes,
            capacity_bytes,
            is_emulated: true,
            skip_zones: 0,
            reads_beyond: false,
            open_max: 0,
            worker_open_max: 0,
            ignores_device_limits: false,
            early_resets: None,
            writes_remainder: false,
        }
    }
}

/// Zones that are reset before they are full, as a garbage collector would.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EarlyResets {
    /// The share of the region's capacity that must be written first, 0 to 1.
    pub threshold: f64,
    /// Above that share, every Nth write resets its zone first.
    pub every: u64,
}

/// What a job did with zones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ZoneUse {
    /// Zones reset in the measured part, without those that were trimmed.
    pub reset_count: u64,
    /// Zones finished in the measured part although they were not full.
    pub finish_count: u64,
    /// Length of a zone, in bytes.
    pub zone_bytes: u64,
    /// Zones of the files.
    pub zone_count: u64,
    /// Those of them that can only be written in order.
    pub sequential_count: u64,
    /// The source of the zones' positions.
    pub source: String,
}
