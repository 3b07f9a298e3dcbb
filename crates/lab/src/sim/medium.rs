//! The storage of a simulated disk: a persistent medium, a volatile cache, and faults.
//!
//! A write goes to the cache (if there is one) and from there to the medium on a flush, if the write has FUA set, or
//! when the cache is full: the oldest block is then written out first. A power cut empties the cache. A read returns
//! cached blocks first, as on a real disk, so only a power cut shows what is on the medium.
//!
//! Cannot do: tear a sector, reorder what leaves a full cache, keep a part of the cache at a cut.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

/// Why the medium cannot execute a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The blocks do not exist.
    OutOfRange,
    /// The block with this number cannot be read or written.
    Medium(u64),
}

/// A fault of a disk on UAS, which meets one command that reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UasFault {
    /// The command pipe stalls.
    StallCommand,
    /// The status pipe stalls.
    StallStatus,
    /// The data-in pipe stalls.
    StallDataIn,
    /// The data-out pipe stalls.
    StallDataOut,
    /// The command is carried out, and its status is not sent.
    LoseStatus,
    /// The status has the tag of no command.
    WrongTag,
    /// An earlier write failed; this command is not carried out.
    DeferredError,
    /// The disk takes no more commands now.
    TaskSetFull,
    /// The disk restarts: it forgets all commands and reports that with the next one. It keeps its cache.
    ResetItself,
    /// The disk has the data of a write, and does not carry it out before [`Behaviour::carries_out_held`]. It never answers.
    HoldWrite,
}

impl UasFault {
    const ANY: [UasFault; 7] = {
        use UasFault::{DeferredError, LoseStatus, ResetItself, StallCommand, StallStatus, TaskSetFull, WrongTag};
        [StallCommand, StallStatus, LoseStatus, WrongTag, DeferredError, TaskSetFull, ResetItself]
    };
    pub(super) const OF_WRITES: [UasFault; 8] = Self::any_and(UasFault::HoldWrite);
    pub(super) const OF_READS: [UasFault; 8] = Self::any_and(UasFault::StallDataIn);

    const fn any_and(other: UasFault) -> [UasFault; 8] {
        let [a, b, c, d, e, f, g] = Self::ANY;
        [a, b, c, d, e, f, g, other]
    }
}

/// How a disk behaves. All may be changed while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behaviour {
    /// How many blocks the volatile cache holds; zero: there is no cache.
    pub cache_blocks: u64,
    /// True if it reports flushes that it did not execute.
    pub lies_about_flushes: bool,
    /// True if it treats a FUA write as any other.
    pub lies_about_fua: bool,
    /// Bytes that cannot be read.
    pub unreadable: Option<Range<u64>>,
    /// Bytes that cannot be written.
    pub unwritable: Option<Range<u64>>,
    /// How long one read or write takes.
    pub latency: Duration,
    /// How many the disk works on at the same time; the others wait.
    pub channels: usize,
    /// The number of commands after which it stops answering; `None`: it always answers.
    pub hangs_after: Option<u64>,
    /// Faults on UAS, the next in front. Each is removed when a command has met it.
    pub uas_faults: Vec<UasFault>,
    /// True if the writes that [`UasFault::HoldWrite`] holds are carried out, before the next command. A reset drops them.
    pub carries_out_held: bool,
}

impl Behaviour {
    /// Removes the next fault if it is one of these.
    pub(super) fn take_fault(&mut self, of: &[UasFault]) -> Option<UasFault> {
        let is_next = self.uas_faults.first().is_some_and(|fault| of.contains(fault));
        is_next.then(|| self.uas_faults.remove(0))
    }
}

impl Default for Behaviour {
    /// An honest disk with a cache of 4096 blocks that takes no time.
    fn default() -> Self {
        Self {
            cache_blocks: 4096,
            lies_about_flushes: false,
            lies_about_fua: false,
            unreadable: None,
            unwritable: None,
            latency: Duration::ZERO,
            channels: 1,
            hangs_after: None,
            uas_faults: Vec::new(),
            carries_out_held: false,
        }
    }
}

/// The counts of commands to a disk since its creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands of any kind.
    pub commands: u64,
    /// Commands that read.
    pub reads: u64,
    /// Commands that wrote.
    pub writes: u64,
    /// Of those, the ones with FUA.
    pub fua_writes: u64,
    /// Commands to flush.
    pub flushes: u64,
    /// Blocks that power cuts have lost.
    pub lost_blocks: u64,
    /// The most commands that were with the disk at one time.
    pub depth_max: u64,
    /// Task management functions on UAS.
    pub functions: u64,
    /// Resets of a USB disk by its host.
    pub resets: u64,
}

/// The medium with its cache.
#[derive(Debug)]
pub struct Medium {
    bytes: Vec<u8>,
    block_bytes: usize,
    cache: BTreeMap<u64, Box<[u8]>>,
    /// Cached blocks, the one that entered first in front.
    order: VecDeque<u64>,
    /// How it behaves.
    pub behaviour: Behaviour,
    /// The counts of commands.
    pub counts: Counts,
}

impl Medium {
    /// A medium of zeros.
    pub fn new(block_bytes: usize, blocks: u64, behaviour: Behaviour) -> Self {
        let bytes = vec![0; block_bytes * usize::try_from(blocks).expect("it fits into memory")];
        let counts = Counts::default();
        Self { bytes, block_bytes, cache: BTreeMap::new(), order: VecDeque::new(), behaviour, counts }
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        (self.bytes.len() / self.block_bytes) as u64
    }

    /// The size of a block.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Blocks that only the cache holds.
    pub fn dirty_blocks(&self) -> u64 {
        self.cache.len() as u64
    }

    /// Returns the content of the medium without the cache: the content after a power cut.
    pub fn on_medium(&self) -> &[u8] {
        &self.bytes
    }

    /// A hash of all that can be read.
    pub fn fingerprint(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.bytes.hash(&mut hasher);
        // Cached blocks that equal the medium do not change the hash.
        for (block, content) in &self.cache {
            let offset = *block as usize * self.block_bytes;
            if self.bytes[offset..offset + self.block_bytes] != content[..] {
                (block, content).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// True if the disk does not answer this command; counts it.
    pub(super) fn takes_and_hangs(&mut self, depth: u64) -> bool {
        self.counts.commands += 1;
        self.counts.depth_max = self.counts.depth_max.max(depth);
        self.hangs()
    }

    /// True if the disk does not answer any more.
    pub(super) fn hangs(&self) -> bool {
        self.behaviour.hangs_after.is_some_and(|after| self.counts.commands > after)
    }

    /// Reads blocks.
    ///
    /// # Errors
    /// If they do not exist, or one cannot be read.
    pub fn read(&mut self, first: u64, count: u64) -> Result<Vec<u8>, Failure> {
        self.counts.reads += 1;
        let range = self.range(first, count)?;
        self.fault(&self.behaviour.unreadable, &range)?;
        let mut bytes = self.bytes[range].to_vec();
        for (block, cached) in self.cache.range(first..first + count) {
            let offset = (block - first) as usize * self.block_bytes;
            bytes[offset..offset + self.block_bytes].copy_from_slice(cached);
        }
        Ok(bytes)
    }

    /// Writes whole blocks.
    ///
    /// # Errors
    /// If they do not exist, or one cannot be written; then nothing is written.
    pub fn write(&mut self, first: u64, bytes: &[u8], is_fua: bool) -> Result<(), Failure> {
        self.counts.writes += 1;
        self.counts.fua_writes += u64::from(is_fua);
        let count = (bytes.len() / self.block_bytes) as u64;
        let range = self.range(first, count)?;
        self.fault(&self.behaviour.unwritable, &range)?;
        let is_through = is_fua && !self.behaviour.lies_about_fua || self.behaviour.cache_blocks == 0;
        if is_through {
            self.bytes[range].copy_from_slice(bytes);
            for block in first..first + count {
                if self.cache.remove(&block).is_some() {
                    self.order.retain(|cached| *cached != block);
                }
            }
            return Ok(());
        }
        for (block, content) in (first..).zip(bytes.chunks_exact(self.block_bytes)) {
            if self.cache.insert(block, content.into()).is_none() {
                self.order.push_back(block);
            }
            if self.cache.len() as u64 > self.behaviour.cache_blocks {
                self.destage();
            }
        }
        Ok(())
    }

    /// Writes the cache to the medium, unless the disk lies about flushes.
    pub fn flush(&mut self) {
        self.counts.flushes += 1;
        if !self.behaviour.lies_about_flushes {
            while self.destage() {}
        }
    }

    /// Empties the cache, as a loss of power does; the number of blocks that are lost.
    pub fn cut_power(&mut self) -> u64 {
        let lost = self.dirty_blocks();
        self.cache.clear();
        self.order.clear();
        self.counts.lost_blocks += lost;
        lost
    }

    /// Writes the oldest cached block to the medium; returns false if there is none.
    fn destage(&mut self) -> bool {
        let Some(block) = self.order.pop_front() else { return false };
        let content = self.cache.remove(&block).expect("what has an order is in the cache");
        let offset = block as usize * self.block_bytes;
        self.bytes[offset..offset + self.block_bytes].copy_from_slice(&content);
        true
    }

    /// The bytes of blocks that exist.
    fn range(&self, first: u64, count: u64) -> Result<Range<usize>, Failure> {
        let end = first.checked_add(count).filter(|end| *end <= self.blocks()).ok_or(Failure::OutOfRange)?;
        Ok(first as usize * self.block_bytes..end as usize * self.block_bytes)
    }

    /// The first block of `range` that touches what is bad.
    fn fault(&self, bad: &Option<Range<u64>>, range: &Range<usize>) -> Result<(), Failure> {
        let (start, end) = (range.start as u64, range.end as u64);
        match bad {
            Some(bad) if bad.start < end && start < bad.end => {
                Err(Failure::Medium(bad.start.max(start) / self.block_bytes as u64))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(cache_blocks: u64) -> Medium {
        Medium::new(512, 64, Behaviour { cache_blocks, ..Behaviour::default() })
    }

    fn first_byte(medium: &mut Medium, block: u64) -> u8 {
        medium.read(block, 1).unwrap()[0]
    }

    #[test]
    fn a_power_cut_loses_what_was_not_flushed_and_brings_back_what_was_there_before() {
        let mut medium = medium(8);
        medium.write(0, &[1; 1024], false).unwrap();
        medium.flush();
        medium.write(0, &[2; 512], false).unwrap();
        assert_eq!(first_byte(&mut medium, 0), 2);
        assert_eq!(medium.cut_power(), 1);
        assert_eq!((first_byte(&mut medium, 0), first_byte(&mut medium, 1)), (1, 1));
    }

    #[test]
    fn a_fua_write_survives_and_replaces_what_the_cache_held() {
        let mut medium = medium(8);
        medium.write(3, &[1; 512], false).unwrap();
        medium.write(3, &[2; 512], true).unwrap();
        assert_eq!((medium.cut_power(), first_byte(&mut medium, 3)), (0, 2));
    }

    #[test]
    fn a_full_cache_carries_its_oldest_block_to_the_medium() {
        let mut medium = medium(2);
        for block in 0..3 {
            medium.write(block, &[7; 512], false).unwrap();
        }
        assert_eq!(medium.cut_power(), 2);
        let bytes: Vec<u8> = (0..3).map(|block| first_byte(&mut medium, block)).collect();
        assert_eq!(bytes, [7, 0, 0]);
    }

    #[test]
    fn without_a_cache_everything_is_kept() {
        let mut medium = medium(0);
        medium.write(0, &[1; 512], false).unwrap();
        assert_eq!((medium.cut_power(), first_byte(&mut medium, 0)), (0, 1));
    }

    #[test]
    fn a_disk_that_lies_loses_what_it_said_it_had_kept() {
        let mut medium = medium(8);
        medium.behaviour.lies_about_flushes = true;
        medium.behaviour.lies_about_fua = true;
        medium.write(0, &[1; 512], true).unwrap();
        medium.flush();
        assert_eq!((medium.cut_power(), first_byte(&mut medium, 0)), (1, 0));
        assert_eq!((medium.counts.flushes, medium.counts.fua_writes), (1, 1));
    }

    #[test]
    fn a_bad_range_fails_by_the_first_bad_block_and_nothing_is_written() {
        let mut medium = medium(8);
        medium.behaviour.unreadable = Some(1024..1025);
        medium.behaviour.unwritable = Some(2048..4096);
        assert_eq!(medium.read(0, 4), Err(Failure::Medium(2)));
        assert!(medium.read(3, 1).is_ok());
        assert_eq!(medium.write(3, &[1; 1024], false), Err(Failure::Medium(4)));
        assert_eq!(first_byte(&mut medium, 3), 0);
        assert_eq!(medium.read(60, 5), Err(Failure::OutOfRange));
        assert_eq!(medium.read(u64::MAX, 2), Err(Failure::OutOfRange));
    }
}
