//! A disk with a volatile cache that loses its power: the pure part of `trueio powercut disk`.
//!
//! A write stays in the cache until a flush; a write with FUA is stored at once. When the cache is full, the oldest writes are stored, as
//! disks do at any time. A cut of power stores a subset of the cached writes by seed, one of them perhaps in part, and loses the rest.

use crate::replay::{LostPart, draw};
use crate::sector::SECTOR_BYTES;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::collections::VecDeque;
use std::io;

/// What a cache is in front of.
pub trait Medium {
    /// Reads bytes.
    ///
    /// # Errors
    /// The kernel's error.
    fn read(&mut self, offset: u64, data: &mut [u8]) -> io::Result<()>;
    /// Writes bytes.
    ///
    /// # Errors
    /// The kernel's error.
    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()>;
}

/// A write in the cache.
#[derive(Debug)]
struct Cached {
    offset: u64,
    data: Vec<u8>,
}

impl Cached {
    fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }
}

/// What a cut lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutLoss {
    /// Writes that were in the cache.
    pub at_risk: u64,
    /// Those of them that are lost, whole or in part.
    pub lost: u64,
}

/// A medium behind a cache. All offsets and lengths are whole sectors of 512 bytes.
#[derive(Debug)]
pub struct LosableCache<M> {
    medium: M,
    cached: VecDeque<Cached>,
    used_bytes: usize,
    size_bytes: usize,
}

impl<M: Medium> LosableCache<M> {
    /// Puts an empty cache of a size in front of a medium.
    pub fn new(medium: M, size_bytes: usize) -> Self {
        Self { medium, cached: VecDeque::new(), used_bytes: 0, size_bytes }
    }

    /// Returns the medium, without what is cached.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// Reads what was written last, from the cache or from the medium.
    ///
    /// # Errors
    /// That of the medium.
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        self.medium.read(offset, data)?;
        let end = offset + data.len() as u64;
        for write in &self.cached {
            let (from, to) = (write.offset.max(offset), write.end().min(end));
            if from < to {
                let part = &write.data[(from - write.offset) as usize..(to - write.offset) as usize];
                data[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
            }
        }
        Ok(())
    }

    /// Writes. With FUA the data are on the medium when this returns.
    ///
    /// # Errors
    /// That of the medium.
    pub fn write(&mut self, offset: u64, data: &[u8], is_fua: bool) -> io::Result<()> {
        if is_fua {
            // Earlier writes to these sectors must not be stored after it.
            let end = offset + data.len() as u64;
            let overlaps = |write: &Cached| write.offset < end && offset < write.end();
            if let Some(last) = self.cached.iter().rposition(overlaps) {
                self.store(last + 1)?;
            }
            return self.medium.write(offset, data);
        }
        self.used_bytes += data.len();
        self.cached.push_back(Cached { offset, data: data.to_vec() });
        while self.used_bytes > self.size_bytes && !self.cached.is_empty() {
            self.store(1)?;
        }
        Ok(())
    }

    /// Stores everything that is cached.
    ///
    /// # Errors
    /// That of the medium; what was not stored is still cached.
    pub fn flush(&mut self) -> io::Result<()> {
        self.store(self.cached.len())
    }

    /// Cuts the power: stores a part of the cached writes by seed. The cache is empty then.
    ///
    /// # Errors
    /// That of the medium.
    pub fn cut(&mut self, seed: u64) -> io::Result<CutLoss> {
        let sector = SECTOR_BYTES as u64;
        let writes: Vec<(usize, u64)> =
            self.cached.iter().enumerate().map(|(index, write)| (index, write.data.len() as u64 / sector)).collect();
        let loss = draw(&writes, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        for (index, write) in std::mem::take(&mut self.cached).into_iter().enumerate() {
            let lost = loss.get(&index);
            if lost == Some(&LostPart::Whole) {
                continue;
            }
            for (at, part) in write.data.chunks(SECTOR_BYTES).enumerate() {
                let is_lost = matches!(lost, Some(LostPart::Sectors(sectors)) if sectors.contains(&(at as u64)));
                if !is_lost {
                    self.medium.write(write.offset + at as u64 * sector, part)?;
                }
            }
        }
        self.used_bytes = 0;
        Ok(CutLoss { at_risk: writes.len() as u64, lost: loss.len() as u64 })
    }

    /// Stores the oldest writes.
    fn store(&mut self, count: usize) -> io::Result<()> {
        for _ in 0..count {
            let Some(oldest) = self.cached.front() else { break };
            self.medium.write(oldest.offset, &oldest.data)?;
            self.used_bytes -= oldest.data.len();
            self.cached.pop_front();
        }
        Ok(())
    }
}
