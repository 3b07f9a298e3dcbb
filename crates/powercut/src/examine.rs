//! Keeps, writes and reads back the blocks of a layout, and narrows down where a disk ends.
//!
//! Nothing is read back before everything is written. A block that could not be read while the content was kept is not
//! written: it might come back.

use crate::layout::{Extent, Layout};
use crate::pattern::{Content, Pattern};
use crate::sector::{BLOCK_BYTES, SECTOR_BYTES};
use std::collections::BTreeMap;
use std::io;
use trueio_model::CapacityCounts;

/// Blocks of one transfer: 1 MiB.
const PIECE_BLOCKS: u64 = 256;
/// Failures in a row after which the rest of a part is not tried: each may take the kernel's timeout.
const FAILURES_MAX: u32 = 16;
/// Blocks that one round of [`Examination::narrow`] writes.
const POINTS: u64 = 1024;

/// A disk under test. Lengths are multiples of [`BLOCK_BYTES`].
pub trait Disk {
    /// Reads blocks from `block` on.
    ///
    /// # Errors
    /// The kernel's error.
    fn read(&mut self, block: u64, data: &mut [u8]) -> io::Result<()>;
    /// Writes blocks from `block` on.
    ///
    /// # Errors
    /// The kernel's error.
    fn write(&mut self, block: u64, data: &[u8]) -> io::Result<()>;
    /// Flushes the disk's cache.
    ///
    /// # Errors
    /// The kernel's error.
    fn flush(&mut self) -> io::Result<()>;
}

/// Keeps what blocks held before they are written.
pub trait Keeper {
    /// Adds blocks.
    ///
    /// # Errors
    /// They could not be kept.
    fn keep(&mut self, block: u64, data: &[u8]) -> io::Result<()>;
    /// Makes everything that was added durable.
    ///
    /// # Errors
    /// It is not durable.
    fn commit(&mut self) -> io::Result<()>;
}

/// What an examination is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It reads what the blocks hold, and keeps it.
    Keep,
    /// It writes the blocks.
    Write,
    /// It reads them back.
    Read,
    /// It narrows down where the disk ends.
    Narrow,
}

/// Follows an examination, and may end it.
pub trait Watch {
    /// Reports progress, in blocks.
    fn progress(&mut self, stage: Stage, done: u64, total: u64);
    /// Returns true if the examination is to end.
    fn is_stopped(&self) -> bool;
}

/// An examination that ended without findings.
#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    /// The watch ended it.
    #[error("it was interrupted")]
    Stopped,
    /// The content of the disk could not be kept.
    #[error("the journal could not be written")]
    Keep(#[source] io::Error),
    /// The disk did not flush its cache.
    #[error("the disk did not flush its cache")]
    Flush(#[source] io::Error),
    /// The disk answers nothing any more, not even for its first block.
    #[error("the disk no longer answers")]
    Gone(#[source] io::Error),
}

/// Why a block was not written, or not read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unreadable,
    Unwritable,
    /// Too many before it had failed.
    Untried,
}

/// An ascending run of blocks that were read back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// The first block that did not hold what was written.
    pub first_bad: Option<u64>,
    /// The last intact block before it, or of all.
    pub last_intact: Option<u64>,
    /// Intact blocks after the first bad one.
    pub intact_after: u64,
}

impl Span {
    fn add(&mut self, block: u64, is_intact: bool) {
        match (is_intact, self.first_bad) {
            (true, None) => self.last_intact = Some(block),
            (true, Some(_)) => self.intact_after += 1,
            (false, None) => self.first_bad = Some(block),
            (false, Some(_)) => {}
        }
    }
}

/// What the blocks held when they were read back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Blocks by content.
    pub counts: CapacityCounts,
    /// The region at the start and the middle.
    pub before_end: Span,
    /// The region at the end, which is written first.
    pub end: Span,
    /// Greatest common divisor of the distances between sectors and the place where they were found; 0: none was found
    /// elsewhere.
    pub distance_sectors: u64,
}

impl Findings {
    /// Returns the last intact block and the first bad one, if no intact block follows: there the disk ends.
    ///
    /// Intact blocks of the region at the end do not count if others of it are bad: a cache that keeps what was written first
    /// holds them. It cannot hold the whole region.
    fn step(&self) -> Option<(Option<u64>, u64)> {
        match (self.before_end.first_bad, self.end.first_bad) {
            (Some(bad), Some(_)) if self.before_end.intact_after == 0 => Some((self.before_end.last_intact, bad)),
            (None, Some(bad)) if self.end.intact_after == 0 => {
                Some((self.end.last_intact.or(self.before_end.last_intact), bad))
            }
            // All of the end is untried, after failures.
            (Some(bad), None) if self.before_end.intact_after == 0 && self.end.last_intact.is_none() => {
                Some((self.before_end.last_intact, bad))
            }
            _ => None,
        }
    }

    /// Returns the size at which the disk wraps, in bytes: all distances are multiples of it.
    ///
    /// A disk that stores everything beyond an end in an area of its own has distances with a common divisor, too. But on a
    /// disk that wraps, the write of the region at the start replaces the first block after that size.
    pub fn wraps_at(&self, layout: &Layout) -> Option<u64> {
        let size = self.distance_sectors * SECTOR_BYTES as u64;
        let wrapped = layout.first_written_from(size.div_ceil(BLOCK_BYTES as u64))?;
        let first_bad = self.before_end.first_bad.or(self.end.first_bad)?;
        (size > 0 && first_bad <= wrapped).then_some(size)
    }

    /// Returns where to look for the end of the disk, with [`Examination::narrow`]; `None` if it is known, or there is none.
    pub fn narrowable(&self, layout: &Layout) -> Option<(Option<u64>, u64)> {
        if self.wraps_at(layout).is_some() { None } else { self.step() }
    }

    fn add(&mut self, block: u64, end: u64, is_intact: bool) {
        if block < end { self.before_end.add(block, is_intact) } else { self.end.add(block, is_intact) }
    }

    fn count_failed(&mut self, fate: Fate) {
        match fate {
            Fate::Unreadable => self.counts.unreadable += 1,
            Fate::Unwritable => self.counts.unwritable += 1,
            Fate::Untried => {}
        }
    }

    fn count_read(&mut self, content: Content) {
        match content {
            Content::Intact => self.counts.intact += 1,
            Content::Zeros => self.counts.zeros += 1,
            Content::Older => self.counts.older += 1,
            Content::Changed => self.counts.changed += 1,
            Content::Elsewhere { distance_sectors } => {
                self.counts.other_block += 1;
                self.distance_sectors = gcd(self.distance_sectors, distance_sectors);
            }
        }
    }
}

/// Returns the greatest common divisor; `gcd(0, n)` is `n`.
fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// What became of each block of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    Untried,
}

/// Transfers pieces whole, and block by block where that fails.
#[derive(Debug, Default)]
struct Tries {
    failures_in_a_row: u32,
    last_error: Option<io::Error>,
}

impl Tries {
    /// Returns the outcome of each block. `data` has the blocks of the piece.
    fn transfer(
        &mut self,
        piece: Extent,
        data: &mut [u8],
        mut transfer: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    ) -> Vec<Outcome> {
        let is_hopeless = self.failures_in_a_row >= FAILURES_MAX;
        if !is_hopeless && piece.count > 1 && transfer(piece.start, data).is_ok() {
            self.failures_in_a_row = 0;
            return vec![Outcome::Done; piece.count as usize];
        }
        let mut one = |(block, data): (u64, &mut [u8])| {
            if self.failures_in_a_row >= FAILURES_MAX {
                return Outcome::Untried;
            }
            match transfer(block, data) {
                Ok(()) => {
                    self.failures_in_a_row = 0;
                    Outcome::Done
                }
                Err(error) => {
                    self.failures_in_a_row += 1;
                    self.last_error = Some(error);
                    Outcome::Failed
                }
            }
        };
        (piece.start..).zip(data.chunks_exact_mut(BLOCK_BYTES)).map(&mut one).collect()
    }
}

/// Progress of a stage.
struct Progress<'a> {
    watch: &'a mut dyn Watch,
    stage: Stage,
    done: u64,
    total: u64,
}

impl Progress<'_> {
    fn add(&mut self, count: u64) -> Result<(), ExamineError> {
        self.done += count;
        self.watch.progress(self.stage, self.done, self.total);
        if self.watch.is_stopped() { Err(ExamineError::Stopped) } else { Ok(()) }
    }
}

/// A test of a disk.
#[derive(Debug)]
pub struct Examination {
    layout: Layout,
    pattern: Pattern,
    /// By their first block: blocks that are not written, or not read back.
    fates: BTreeMap<u64, (u64, Fate)>,
    /// How often the region at the start was written again.
    generation: u32,
}

impl Examination {
    /// Prepares a test; touches nothing.
    pub fn new(layout: Layout, run: u64) -> Self {
        Self { layout, pattern: Pattern { run }, fates: BTreeMap::new(), generation: 0 }
    }

    /// Returns the layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Reads all blocks of the layout, and keeps them. Those that cannot be read are not written later.
    ///
    /// # Errors
    /// As [`ExamineError`].
    pub fn keep(
        &mut self,
        disk: &mut dyn Disk,
        keeper: &mut dyn Keeper,
        watch: &mut dyn Watch,
    ) -> Result<(), ExamineError> {
        let mut progress = Progress { watch, stage: Stage::Keep, done: 0, total: self.layout.written_count() };
        let mut data = Vec::new();
        for part in self.layout.clone().parts() {
            let mut tries = Tries::default();
            for piece in part.iter().flat_map(|extent| extent.pieces(PIECE_BLOCKS)) {
                data.resize(piece.count as usize * BLOCK_BYTES, 0);
                let outcomes = tries.transfer(piece, &mut data, |block, data| disk.read(block, data));
                for run in runs(piece, &outcomes) {
                    match run {
                        (extent, Outcome::Done) => {
                            keeper.keep(extent.start, part_of(&data, piece, extent)).map_err(ExamineError::Keep)?;
                        }
                        (extent, Outcome::Failed) => self.set_fate(extent, Fate::Unreadable),
                        (extent, Outcome::Untried) => self.set_fate(extent, Fate::Untried),
                    }
                }
                progress.add(piece.count)?;
            }
        }
        keeper.commit().map_err(ExamineError::Keep)
    }

    /// Writes all blocks of the layout, and flushes the disk's cache.
    ///
    /// # Errors
    /// As [`ExamineError`].
    pub fn write(&mut self, disk: &mut dyn Disk, watch: &mut dyn Watch) -> Result<(), ExamineError> {
        let mut progress = Progress { watch, stage: Stage::Write, done: 0, total: self.layout.written_count() };
        for part in self.layout.clone().parts() {
            let mut tries = Tries::default();
            for piece in part.iter().flat_map(|extent| extent.pieces(PIECE_BLOCKS)) {
                for (extent, fate) in self.fates_in(piece) {
                    if fate.is_none() {
                        self.write_extent(disk, extent, 0, &mut tries);
                    }
                }
                progress.add(piece.count)?;
            }
        }
        disk.flush().map_err(ExamineError::Flush)
    }

    fn write_extent(&mut self, disk: &mut dyn Disk, extent: Extent, generation: u32, tries: &mut Tries) {
        let mut data = vec![0; extent.count as usize * BLOCK_BYTES];
        for (block, content) in (extent.start..).zip(data.chunks_exact_mut(BLOCK_BYTES)) {
            self.pattern.fill(block, generation, content);
        }
        let outcomes = tries.transfer(extent, &mut data, |block, data| disk.write(block, data));
        for run in runs(extent, &outcomes) {
            match run {
                (_, Outcome::Done) => {}
                (extent, Outcome::Failed) => self.set_fate(extent, Fate::Unwritable),
                (extent, Outcome::Untried) => self.set_fate(extent, Fate::Untried),
            }
        }
    }

    /// Reads all blocks back.
    ///
    /// # Errors
    /// As [`ExamineError`].
    pub fn read(&mut self, disk: &mut dyn Disk, watch: &mut dyn Watch) -> Result<Findings, ExamineError> {
        let mut progress = Progress { watch, stage: Stage::Read, done: 0, total: self.layout.written_count() };
        let mut findings = Findings::default();
        let mut failure = None;
        let mut parts = self.layout.clone().parts();
        parts.reverse();
        for part in parts {
            let mut tries = Tries::default();
            for piece in part.iter().flat_map(|extent| extent.pieces(PIECE_BLOCKS)) {
                for (extent, fate) in self.fates_in(piece) {
                    match fate {
                        Some(fate) => self.add_failed(extent, fate, &mut findings),
                        None => self.read_extent(disk, extent, &mut tries, &mut findings),
                    }
                }
                progress.add(piece.count)?;
            }
            failure = failure.or(tries.last_error);
        }
        match failure {
            Some(_) if self.fate_of(0).is_none() => {
                disk.read(0, &mut [0; BLOCK_BYTES]).map_err(ExamineError::Gone)?;
            }
            _ => {}
        }
        Ok(findings)
    }

    fn add_failed(&self, extent: Extent, fate: Fate, findings: &mut Findings) {
        for block in extent.start..extent.end() {
            findings.count_failed(fate);
            if fate != Fate::Untried {
                findings.add(block, self.layout.end.start, false);
            }
        }
    }

    fn read_extent(&self, disk: &mut dyn Disk, extent: Extent, tries: &mut Tries, findings: &mut Findings) {
        let mut data = vec![0; extent.count as usize * BLOCK_BYTES];
        let outcomes = tries.transfer(extent, &mut data, |block, data| disk.read(block, data));
        for ((block, content), outcome) in (extent.start..).zip(data.chunks_exact(BLOCK_BYTES)).zip(outcomes) {
            match outcome {
                Outcome::Done => {
                    let content = self.pattern.examine(block, 0, content);
                    findings.count_read(content);
                    findings.add(block, self.layout.end.start, content == Content::Intact);
                }
                Outcome::Failed => self.add_failed(Extent { start: block, count: 1 }, Fate::Unreadable, findings),
                Outcome::Untried => {}
            }
        }
    }

    /// Narrows down where a disk ends, between its last intact block and the first bad one, exclusive; returns both. In each
    /// round, evenly spaced blocks between them are kept and written, the region at the start is written again, which replaces
    /// what a cache holds, and they are read back. `None`: an intact block follows a bad one, so the disk has no such end.
    ///
    /// # Errors
    /// As [`ExamineError`].
    pub fn narrow(
        &mut self,
        disk: &mut dyn Disk,
        mut keeper: Option<&mut dyn Keeper>,
        watch: &mut dyn Watch,
        step: (Option<u64>, u64),
    ) -> Result<Option<(Option<u64>, u64)>, ExamineError> {
        let (mut intact, mut bad) = step;
        loop {
            let from = intact.map_or(0, |block| block + 1);
            let points = points_between(from, bad);
            if points.is_empty() {
                return Ok(Some((intact, bad)));
            }
            let mut progress = Progress {
                watch: &mut *watch,
                stage: Stage::Narrow,
                done: 0,
                total: self.layout.start.count + 2 * points.len() as u64,
            };
            let keeper: Option<&mut dyn Keeper> = match &mut keeper {
                Some(keeper) => Some(&mut **keeper),
                None => None,
            };
            let written = self.write_points(disk, keeper, &points, &mut progress)?;
            self.replace_cache(disk, &mut progress)?;
            let mut span = Span::default();
            let mut data = vec![0; BLOCK_BYTES];
            for (&block, is_written) in points.iter().zip(written) {
                let is_intact = is_written
                    && disk.read(block, &mut data).is_ok()
                    && self.pattern.examine(block, self.generation, &data) == Content::Intact;
                span.add(block, is_intact);
                progress.add(1)?;
            }
            if span.intact_after > 0 {
                return Ok(None);
            }
            intact = span.last_intact.or(intact);
            bad = span.first_bad.unwrap_or(bad);
        }
    }

    /// Keeps and writes single blocks; returns which were written.
    fn write_points(
        &mut self,
        disk: &mut dyn Disk,
        keeper: Option<&mut dyn Keeper>,
        points: &[u64],
        progress: &mut Progress<'_>,
    ) -> Result<Vec<bool>, ExamineError> {
        self.generation += 1;
        let mut data = vec![0; BLOCK_BYTES];
        let mut may_write = vec![true; points.len()];
        if let Some(keeper) = keeper {
            for (&block, may_write) in points.iter().zip(&mut may_write) {
                *may_write = disk.read(block, &mut data).is_ok();
                if *may_write {
                    keeper.keep(block, &data).map_err(ExamineError::Keep)?;
                }
            }
            keeper.commit().map_err(ExamineError::Keep)?;
        }
        for (&block, is_written) in points.iter().zip(&mut may_write) {
            self.pattern.fill(block, self.generation, &mut data);
            *is_written = *is_written && disk.write(block, &data).is_ok();
            progress.add(1)?;
        }
        Ok(may_write)
    }

    /// Writes the region at the start again, so that no cache holds what was written before.
    fn replace_cache(&mut self, disk: &mut dyn Disk, progress: &mut Progress<'_>) -> Result<(), ExamineError> {
        disk.flush().map_err(ExamineError::Flush)?;
        let mut tries = Tries::default();
        for piece in self.layout.start.pieces(PIECE_BLOCKS) {
            for (extent, fate) in self.fates_in(piece) {
                if fate.is_none() {
                    self.write_extent(disk, extent, self.generation, &mut tries);
                }
            }
            progress.add(piece.count)?;
        }
        disk.flush().map_err(ExamineError::Flush)
    }

    fn set_fate(&mut self, extent: Extent, fate: Fate) {
        if let Some((&start, &(count, known))) = self.fates.range(..extent.start).next_back()
            && start + count == extent.start
            && known == fate
        {
            self.fates.insert(start, (count + extent.count, fate));
            return;
        }
        self.fates.insert(extent.start, (extent.count, fate));
    }

    fn fate_of(&self, block: u64) -> Option<Fate> {
        let (&start, &(count, fate)) = self.fates.range(..=block).next_back()?;
        (block < start + count).then_some(fate)
    }

    /// Returns the extents of a piece with the same fate; `None`: nothing has failed.
    fn fates_in(&self, piece: Extent) -> Vec<(Extent, Option<Fate>)> {
        let fates: Vec<_> = (piece.start..piece.end()).map(|block| self.fate_of(block)).collect();
        runs(piece, &fates)
    }
}

/// Returns the extents of a piece whose blocks have the same value.
fn runs<T: Copy + PartialEq>(piece: Extent, values: &[T]) -> Vec<(Extent, T)> {
    let mut at = piece.start;
    let extent = |run: &[T]| {
        let extent = Extent { start: at, count: run.len() as u64 };
        at = extent.end();
        (extent, run[0])
    };
    values.chunk_by(|one, other| one == other).map(extent).collect()
}

/// Returns the bytes of an extent within those of a piece.
fn part_of(data: &[u8], piece: Extent, extent: Extent) -> &[u8] {
    let from = (extent.start - piece.start) as usize * BLOCK_BYTES;
    &data[from..from + extent.count as usize * BLOCK_BYTES]
}

/// Returns at most [`POINTS`] evenly spaced blocks of `from..to`, ascending.
fn points_between(from: u64, to: u64) -> Vec<u64> {
    let between = to.saturating_sub(from);
    let count = between.min(POINTS);
    (0..count).map(|index| from + (u128::from(between) * u128::from(index) / u128::from(count)) as u64).collect()
}
