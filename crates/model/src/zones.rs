//! Zoned devices: zones that can only be written in order, from their write pointer on.

use serde::{Deserialize, Serialize};

/// How a job uses the zones of its files (`zonemode = zbd`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ZonePlan {
    /// Length of a zone, in bytes.
    pub zone_bytes: u64,
    /// Bytes of a zone that can be written, where zones are emulated; a device says its own.
    pub capacity_bytes: u64,
    /// The files have no zones: the run keeps write pointers for them, which begin at the zones' starts.
    pub is_emulated: bool,
    /// Zones left out after each, in sequential jobs.
    pub skip_zones: u64,
    /// Reads go anywhere, not only to what was written.
    pub reads_beyond: bool,
    /// Zones that are partly written at a time, at most, of all workers together; 0: as many as the device allows.
    pub open_max: u32,
    /// The same of each worker; 0: not limited.
    pub worker_open_max: u32,
    /// What the device says of its limits does not count.
    pub ignores_device_limits: bool,
    /// Zones are reset before they are full.
    pub early_resets: Option<EarlyResets>,
    /// What is left of a zone and is less than a block is written by a smaller write; otherwise the zone is finished
    /// without.
    pub writes_remainder: bool,
}

impl ZonePlan {
    /// Zones of files that have none, without limits.
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EarlyResets {
    /// The part of the region's capacity, 0 to 1, that must have been written.
    pub threshold: f64,
    /// Beyond it, the zone of each so manieth write is reset before the write.
    pub every: u64,
}

/// What a job did with zones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ZoneUse {
    /// Zones reset in the measured part, those that were trimmed not counted.
    pub reset_count: u64,
    /// Zones finished in the measured part: closed though there was room.
    pub finish_count: u64,
    /// Length of a zone, in bytes.
    pub zone_bytes: u64,
    /// Zones of the files.
    pub zone_count: u64,
    /// Those of them that can only be written in order.
    pub sequential_count: u64,
    /// Who says where the zones are.
    pub source: String,
}
