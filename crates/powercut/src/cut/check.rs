//! Reads back what one region must hold after a cut.
//!
//! Every acknowledged write that no later one replaced must be there, whole. Where a write was under way, its block may hold
//! that write, the acknowledged one before it, a mixture of both, or nothing readable; an older value is a loss there, too.
//! Only blocks that were written are read.

use super::log::{Epoch, RegionLog};
use super::region::Region;
use super::stamp::{SectorContent, Stamp};
use crate::sector::BLOCK_BYTES;
use serde::{Deserialize, Serialize};
use std::io;

/// Blocks of one read: 1 MiB.
const PIECE_BLOCKS: u64 = 256;
/// Failures in a row after which the disk is gone.
const FAILURES_MAX: u32 = 16;
/// Losses that are described one by one.
const LOSSES_MAX: usize = 16;

/// A region that is read back.
pub trait Readback {
    /// Reads the blocks of positions from `position` on. Returns which exist: a position beyond the end of a file, or whose
    /// file is missing, does not.
    ///
    /// # Errors
    /// The kernel's error.
    fn read(&mut self, position: u64, data: &mut [u8]) -> io::Result<Vec<bool>>;
}

/// How an acknowledged write was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// The block holds an earlier write.
    Older,
    /// Some sectors of the block hold it, some do not.
    Torn,
    /// The block holds zeros.
    Zeros,
    /// The block holds the content of another block.
    OtherBlock,
    /// The block or its file does not exist.
    Missing,
    /// The block holds something that was never written there.
    Changed,
    /// The block cannot be read.
    Unreadable,
}

impl LossKind {
    /// All kinds.
    pub const ALL: [LossKind; 7] = [
        LossKind::Older,
        LossKind::Torn,
        LossKind::Zeros,
        LossKind::OtherBlock,
        LossKind::Missing,
        LossKind::Changed,
        LossKind::Unreadable,
    ];

    /// Returns the name in documents.
    pub fn name(self) -> &'static str {
        match self {
            LossKind::Older => "older",
            LossKind::Torn => "torn",
            LossKind::Zeros => "zeros",
            LossKind::OtherBlock => "other_block",
            LossKind::Missing => "missing",
            LossKind::Changed => "changed",
            LossKind::Unreadable => "unreadable",
        }
    }

    /// Returns the words after a number of blocks: `held an older value`.
    pub fn words(self) -> &'static str {
        match self {
            LossKind::Older => "held an older value",
            LossKind::Torn => "were torn",
            LossKind::Zeros => "held zeros",
            LossKind::OtherBlock => "held the content of another block",
            LossKind::Missing => "did not exist",
            LossKind::Changed => "held something else",
            LossKind::Unreadable => "could not be read",
        }
    }
}

/// Lost writes by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCounts(pub std::collections::BTreeMap<LossKind, u64>);

impl LossCounts {
    /// Returns the number of losses of one kind.
    pub fn of(&self, kind: LossKind) -> u64 {
        self.0.get(&kind).copied().unwrap_or(0)
    }

    /// Returns the number of losses.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Adds the losses of another cut.
    pub fn add(&mut self, other: &LossCounts) {
        other.0.iter().for_each(|(kind, count)| *self.0.entry(*kind).or_default() += count);
    }
}

/// One acknowledged write that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// How.
    pub kind: LossKind,
    /// Sequence number of the write, from 1.
    pub sequence: u64,
    /// Its position in the region.
    pub position: u64,
    /// Its epoch, if that is still known.
    pub epoch: Option<Epoch>,
}

/// What one region held after a cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Acknowledged writes that no later one replaced: each was read.
    pub acknowledged: u64,
    /// Those of them that may still have been in a volatile cache.
    pub at_risk: u64,
    /// Those of them that are lost, by kind.
    pub lost: LossCounts,
    /// The first losses, by position.
    pub losses: Vec<Loss>,
    /// Blocks with a write that was not acknowledged, and is there.
    pub newer: u64,
    /// Blocks whose last write was under way, and which hold neither it nor the write before.
    pub damaged_under_way: u64,
}

/// A check that could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// It was ended.
    #[error("it was interrupted")]
    Stopped,
    /// Reads fail one after the other.
    #[error("the disk no longer answers")]
    Gone(#[source] io::Error),
}

/// Reads back a region. Writes that were acknowledged before `safe_ms` were not at risk. `go_on` gets the number of blocks that were
/// read, and returns false to end the check.
///
/// # Errors
/// As [`CheckError`].
pub fn check(
    stamp: Stamp,
    region: &Region,
    log: &RegionLog,
    safe_ms: u64,
    readback: &mut dyn Readback,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Checked, CheckError> {
    let mut reading =
        Reading { stamp, region, log, safe: log.safe_through(safe_ms), found: Checked::default(), failures: 0 };
    let mut data = Vec::new();
    let mut position = 0;
    while position < region.position_count {
        let is_written = |position: &u64| region.last_at(*position, log.issued()) > 0;
        let Some(from) = (position..region.position_count).find(is_written) else { break };
        let most = region.position_count.min(from + PIECE_BLOCKS);
        let count = (from..most).take_while(is_written).count() as u64;
        data.resize(count as usize * BLOCK_BYTES, 0);
        reading.piece(from, &mut data, readback)?;
        if !go_on(count) {
            return Err(CheckError::Stopped);
        }
        position = from + count;
    }
    Ok(reading.found)
}

struct Reading<'a> {
    stamp: Stamp,
    region: &'a Region,
    log: &'a RegionLog,
    safe: u64,
    found: Checked,
    failures: u32,
}

impl Reading<'_> {
    fn piece(&mut self, from: u64, data: &mut [u8], readback: &mut dyn Readback) -> Result<(), CheckError> {
        if let Ok(present) = readback.read(from, data) {
            self.failures = 0;
            for ((position, block), is_present) in (from..).zip(data.chunks_exact(BLOCK_BYTES)).zip(present) {
                self.block(position, is_present.then_some(block));
            }
            return Ok(());
        }
        for (position, block) in (from..).zip(data.chunks_exact_mut(BLOCK_BYTES)) {
            match readback.read(position, block) {
                Ok(present) => {
                    self.failures = 0;
                    self.block(position, present[0].then_some(block));
                }
                Err(error) if self.failures + 1 >= FAILURES_MAX => return Err(CheckError::Gone(error)),
                Err(_) => {
                    self.failures += 1;
                    self.judge(position, Some(LossKind::Unreadable), false);
                }
            }
        }
        Ok(())
    }

    /// Judges a block; `None`: it does not exist.
    fn block(&mut self, position: u64, block: Option<&[u8]>) {
        let expected = self.region.last_at(position, self.log.acknowledged());
        let newest = self.region.last_at(position, self.log.issued());
        let Some(block) = block else { return self.judge(position, Some(LossKind::Missing), false) };
        let sectors = self.stamp.examine(self.region.id, position, block);
        let is_good = |sector: &SectorContent| matches!(sector, SectorContent::Of { sequence } if *sequence >= expected.max(1) && *sequence <= newest);
        let is_old = |sector: &SectorContent| match sector {
            SectorContent::Of { sequence } => *sequence < expected,
            content => *content == SectorContent::EarlierRun,
        };
        let good = sectors.iter().filter(|sector| is_good(sector)).count();
        let old = sectors.iter().filter(|sector| is_old(sector)).count();
        let kind = if good == sectors.len() {
            None
        } else if old == sectors.len() {
            Some(LossKind::Older)
        } else if sectors.iter().all(|sector| *sector == SectorContent::Zeros) {
            Some(LossKind::Zeros)
        } else if sectors.contains(&SectorContent::Elsewhere) {
            Some(LossKind::OtherBlock)
        } else if good > 0 {
            Some(LossKind::Torn)
        } else {
            Some(LossKind::Changed)
        };
        let is_newer =
            sectors.iter().any(|sector| matches!(sector, SectorContent::Of { sequence } if *sequence > expected));
        if kind.is_none() && is_newer {
            self.found.newer += 1;
        }
        self.judge(position, kind, old > 0);
    }

    /// Counts a block. `is_old`: a part of it is older than the acknowledged write, which no write under way explains.
    fn judge(&mut self, position: u64, kind: Option<LossKind>, is_old: bool) {
        let sequence = self.region.last_at(position, self.log.acknowledged());
        let is_under_way = self.region.last_at(position, self.log.issued()) > sequence;
        if sequence == 0 {
            return;
        }
        self.found.acknowledged += 1;
        // A loss is not seen with certainty where a write was under way.
        self.found.at_risk += u64::from(sequence > self.safe && !is_under_way);
        let Some(kind) = kind else { return };
        if is_under_way && !is_old {
            self.found.damaged_under_way += 1;
            return;
        }
        *self.found.lost.0.entry(kind).or_default() += 1;
        if self.found.losses.len() < LOSSES_MAX {
            let epoch = self.log.epoch_of(sequence);
            self.found.losses.push(Loss { kind, sequence, position, epoch });
        }
    }
}
