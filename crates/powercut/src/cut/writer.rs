//! Writes one region in epochs: some blocks, then a sync, then the acknowledgement.
//!
//! Any error ends the region for good. A sync that failed is never repeated: after a failure ext4, XFS and btrfs mark pages clean,
//! so the next one returns 0 without a write (ATC'20, "Can Applications Recover from fsync Failures?").

use super::log::RegionLog;
use super::region::Region;
use super::stamp::Stamp;
use crate::sector::BLOCK_BYTES;
use std::io;
use std::sync::Mutex;

/// A region of a target, written as its method does.
pub trait Medium {
    /// Writes the block of a position.
    ///
    /// # Errors
    /// The kernel's error.
    fn write(&mut self, position: u64, data: &[u8]) -> io::Result<()>;
    /// Makes everything that was written durable; does nothing if the method has no sync.
    ///
    /// # Errors
    /// The kernel's error.
    fn sync(&mut self) -> io::Result<()>;
}

/// What the load does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Many writes per sync: more than a cache holds.
    Burst,
    /// One write per sync, directly after a burst.
    AfterBurst,
    /// One to four writes per sync.
    Steady,
    /// Nothing.
    Idle,
}

impl Phase {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Burst => "burst",
            Phase::AfterBurst => "after a burst",
            Phase::Steady => "steady",
            Phase::Idle => "idle",
        }
    }

    /// Returns the writes of an epoch; 0: none.
    fn epoch_length(self, epoch: u64) -> u64 {
        match self {
            Phase::Burst => 64,
            Phase::AfterBurst => 1,
            Phase::Steady => {
                if epoch % 16 < 12 {
                    1
                } else {
                    4
                }
            }
            Phase::Idle => 0,
        }
    }
}

/// Returns the phase at a time after the begin, in ms: 3 s of burst, 1 s after it, 4.5 s steady, 1.5 s idle, and again.
pub fn phase_at(elapsed_ms: u64) -> Phase {
    match elapsed_ms % 10_000 {
        0..3_000 => Phase::Burst,
        3_000..4_000 => Phase::AfterBurst,
        4_000..8_500 => Phase::Steady,
        _ => Phase::Idle,
    }
}

/// An error of the target, which ends the load.
#[derive(Debug, thiserror::Error)]
#[error("{method}: {call} of write {sequence} failed")]
pub struct Refused {
    /// The name of the method.
    pub method: &'static str,
    /// What failed: `the write`, `the sync`.
    pub call: &'static str,
    /// The last write that was issued.
    pub sequence: u64,
    /// The kernel's error.
    #[source]
    pub source: io::Error,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It wrote and synced an epoch; its last write.
    Written(u64),
    /// The phase has no writes.
    Idle,
    /// The region is full.
    Full,
}

/// Writes one region.
#[derive(Debug)]
pub struct Writer {
    stamp: Stamp,
    region: Region,
    epoch: u64,
    next: u64,
    data: Vec<u8>,
}

impl Writer {
    /// Prepares to write a region from its first write on.
    pub fn new(stamp: Stamp, region: Region) -> Self {
        Self { stamp, region, epoch: 0, next: 1, data: vec![0; BLOCK_BYTES] }
    }

    /// Writes and syncs an epoch. `acknowledge` is called after the sync returned.
    ///
    /// # Errors
    /// The first error of the medium; the writer must not be used again.
    pub fn step(
        &mut self,
        medium: &mut dyn Medium,
        phase: Phase,
        log: &Mutex<RegionLog>,
        now_ms: &mut dyn FnMut() -> u64,
    ) -> Result<Step, Refused> {
        let wanted = phase.epoch_length(self.epoch);
        if wanted == 0 {
            return Ok(Step::Idle);
        }
        let positions: Vec<u64> =
            (self.next..self.next + wanted).map_while(|sequence| self.region.position_of(sequence)).collect();
        if positions.is_empty() {
            return Ok(Step::Full);
        }
        let last = self.next + positions.len() as u64 - 1;
        let refused = |call, source| Refused { method: self.region.method.name(), call, sequence: last, source };
        log.lock().expect("no panic").issue(last);
        for (sequence, &position) in (self.next..).zip(&positions) {
            self.stamp.fill(self.region.id, position, sequence, &mut self.data);
            medium.write(position, &self.data).map_err(|error| refused("the write", error))?;
        }
        medium.sync().map_err(|error| refused("the sync", error))?;
        log.lock().expect("no panic").acknowledge(now_ms());
        (self.epoch, self.next) = (self.epoch + 1, last + 1);
        Ok(Step::Written(last))
    }
}
