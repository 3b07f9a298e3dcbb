//! Each kind of disk, honest and fake, as a model in memory.
//!
//! The model maps each sector to a place or to none, behind an optional cache. Sizes are those of real disks, divided: 1 GiB
//! with a cache of 4 MiB.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use trueio_model::CapacityKind;
use trueio_powercut::{
    BLOCK_BYTES, BLOCK_SECTORS, Disk, Examination, ExamineError, Findings, Keeper, Layout, SECTOR_BYTES, Stage,
    Verdict, Watch, judge,
};

const MIB: u64 = 1 << 20;
const GIB_SECTORS: u64 = 1 << 21;
const CACHE_BYTES: u64 = 4 * MIB;

/// Where a disk stores a sector.
#[derive(Debug, Clone, Copy)]
enum Map {
    Honest,
    /// At its number modulo this.
    Wraps(u64),
    /// From here on in no place: reads return zeros.
    Zeros(u64),
    /// From here on in no place: reads return 0xA5, as what was there before.
    Stale(u64),
    /// From here on reads and writes fail.
    Fails(u64),
    /// From here on reads fail; writes return no error.
    FailsToRead(u64),
    /// From the first on in a ring of the second's length.
    Ring(u64, u64),
    /// Every block whose number is a multiple of this is lost.
    Every(u64),
    /// It stores this number of different sectors, at any offset: it compresses and deduplicates.
    Thin(usize),
}

/// What a cache keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cache {
    None,
    /// The sectors that were written last; the oldest are stored.
    Last(usize),
    /// The sectors that were written first, for good.
    First(usize),
}

struct Model {
    map: Map,
    cache: Cache,
    stored: BTreeMap<u64, Vec<u8>>,
    cached: BTreeMap<u64, Vec<u8>>,
    order: VecDeque<u64>,
    contents: std::collections::BTreeSet<Vec<u8>>,
}

impl Model {
    fn new(map: Map, cache: Cache) -> Self {
        let (stored, cached, order) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Self { map, cache, stored, cached, order, contents: Default::default() }
    }

    fn place(&self, sector: u64) -> Option<u64> {
        match self.map {
            Map::Honest | Map::Thin(_) => Some(sector),
            Map::Wraps(size) => Some(sector % size),
            Map::Zeros(size) | Map::Stale(size) | Map::Fails(size) | Map::FailsToRead(size) => {
                (sector < size).then_some(sector)
            }
            Map::Ring(from, length) if sector >= from => Some(from + (sector - from) % length),
            Map::Ring(..) => Some(sector),
            Map::Every(nth) => (!(sector / BLOCK_SECTORS).is_multiple_of(nth)).then_some(sector),
        }
    }

    fn store(&mut self, sector: u64, data: Vec<u8>) {
        if let Map::Thin(most) = self.map {
            // Repeated bytes, and content that is stored already, need no place.
            if self.contents.len() >= most && !self.contents.contains(&data) && data.iter().any(|byte| *byte != data[0])
            {
                return;
            }
            self.contents.insert(data.clone());
        }
        if let Some(place) = self.place(sector) {
            self.stored.insert(place, data);
        }
    }

    fn write_sector(&mut self, sector: u64, data: &[u8]) {
        match self.cache {
            Cache::None => self.store(sector, data.to_vec()),
            Cache::First(most) if self.cached.len() < most || self.cached.contains_key(&sector) => {
                self.cached.insert(sector, data.to_vec());
            }
            Cache::First(_) => self.store(sector, data.to_vec()),
            Cache::Last(most) => {
                if self.cached.insert(sector, data.to_vec()).is_none() {
                    self.order.push_back(sector);
                }
                while self.order.len() > most {
                    let oldest = self.order.pop_front().expect("not empty");
                    let data = self.cached.remove(&oldest).expect("it is cached");
                    self.store(oldest, data);
                }
            }
        }
    }

    fn fails(&self, block: u64, data: &[u8], is_read: bool) -> io::Result<()> {
        let end = (block + (data.len() / BLOCK_BYTES) as u64) * BLOCK_SECTORS;
        let is_failed = match self.map {
            Map::Fails(size) => end > size,
            Map::FailsToRead(size) => is_read && end > size,
            _ => false,
        };
        if is_failed { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

impl Disk for Model {
    fn read(&mut self, block: u64, data: &mut [u8]) -> io::Result<()> {
        self.fails(block, data, true)?;
        for (sector, data) in (block * BLOCK_SECTORS..).zip(data.chunks_exact_mut(SECTOR_BYTES)) {
            let stored = || self.place(sector).and_then(|place| self.stored.get(&place));
            let filler = if matches!(self.map, Map::Stale(_)) { 0xa5 } else { 0 };
            match self.cached.get(&sector).or_else(stored) {
                Some(content) => data.copy_from_slice(content),
                None => data.fill(filler),
            }
        }
        Ok(())
    }

    fn write(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        self.fails(block, data, false)?;
        for (sector, data) in (block * BLOCK_SECTORS..).zip(data.chunks_exact(SECTOR_BYTES)) {
            self.write_sector(sector, data);
        }
        Ok(())
    }

    /// A cache that survives a loss of power need not be flushed.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Silent;

impl Watch for Silent {
    fn progress(&mut self, _: Stage, _: u64, _: u64) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

/// Tests a disk as the command does.
fn tested(disk: &mut Model, sectors: u64, is_full: bool, keeper: Option<&mut dyn Keeper>) -> (Verdict, Findings) {
    let layout = Layout::of(sectors / BLOCK_SECTORS, CACHE_BYTES, is_full, 11);
    let mut examination = Examination::new(layout, 5);
    let mut keeper = keeper;
    if let Some(keeper) = &mut keeper {
        examination.keep(disk, &mut **keeper, &mut Silent).expect("kept");
    }
    examination.write(disk, &mut Silent).expect("written");
    let findings = examination.read(disk, &mut Silent).expect("read");
    let narrowed = match findings.narrowable(examination.layout()) {
        Some(step) => examination.narrow(disk, keeper, &mut Silent, step).expect("narrowed"),
        None => None,
    };
    (judge(&findings, examination.layout(), narrowed), findings)
}

#[track_caller]
fn assert_found(map: Map, cache: Cache, kind: CapacityKind, usable_bytes: Option<u64>) {
    let (verdict, findings) = tested(&mut Model::new(map, cache), GIB_SECTORS, false, None);
    assert_eq!(verdict, Verdict { kind, usable_bytes }, "{map:?} {cache:?}: {findings:?}");
}

/// A cache as large as the one that the test excludes.
const CACHES: [Cache; 3] = {
    let sectors = (CACHE_BYTES / SECTOR_BYTES as u64) as usize;
    [Cache::None, Cache::Last(sectors), Cache::First(sectors)]
};

/// Goal: an honest disk is never accused.
/// Method: sizes around powers of two and not, sampled and whole, behind each cache.
#[test]
fn an_honest_disk_of_any_size_is_genuine() {
    let sizes = [2048, 2049, 4095, 30_001, 191_679, 191_680, 191_681, 1_000_000, GIB_SECTORS + 8, 5_000_011];
    for (size, cache) in sizes.into_iter().zip(CACHES.into_iter().cycle()) {
        let (verdict, findings) = tested(&mut Model::new(Map::Honest, cache), size, false, None);
        assert_eq!((verdict.kind, findings.counts.bad()), (CapacityKind::Genuine, 0), "{size} {findings:?}");
    }
    let (verdict, findings) = tested(&mut Model::new(Map::Honest, Cache::None), 20_000, true, None);
    assert_eq!((verdict.kind, findings.counts.intact), (CapacityKind::Genuine, 2500));
}

/// Goal: the size at which a disk wraps is exact, at powers of two, at others, and at those that are no multiple of a block.
#[test]
fn a_disk_that_wraps_is_found_with_its_size() {
    let sizes =
        [1 << 12, 1 << 18, 1 << 20, 1_000_000, 777_781, 600_001, GIB_SECTORS - GIB_SECTORS / 100, GIB_SECTORS - 803];
    for (size, cache) in sizes.into_iter().zip(CACHES.into_iter().cycle()) {
        assert_found(Map::Wraps(size), cache, CapacityKind::Wraps, Some(size * SECTOR_BYTES as u64));
    }
}

/// Goal: the end of a disk is exact to a block, whatever is read beyond it and behind each cache.
#[test]
fn a_disk_that_ends_is_found_with_its_size() {
    for (size, cache) in [GIB_SECTORS / 2, 1_234_560, 1 << 19].into_iter().zip(CACHES) {
        let usable = Some(size * SECTOR_BYTES as u64);
        assert_found(Map::Zeros(size), cache, CapacityKind::Ends, usable);
        assert_found(Map::Stale(size), cache, CapacityKind::Ends, usable);
        assert_found(Map::Fails(size), Cache::None, CapacityKind::Fails, usable);
        assert_found(Map::FailsToRead(size), cache, CapacityKind::Fails, usable);
    }
    // Within the region at the end, of which every block is written.
    let size = GIB_SECTORS - 808;
    assert_found(Map::Zeros(size), Cache::None, CapacityKind::Ends, Some(size * SECTOR_BYTES as u64));
}

/// Goal: a disk without one end is not given a usable size.
#[test]
fn a_disk_that_loses_some_blocks_has_no_usable_size() {
    assert_found(Map::Every(50), Cache::None, CapacityKind::Loses, None);
    assert_found(Map::Ring(GIB_SECTORS / 4, 5000 * BLOCK_SECTORS), Cache::None, CapacityKind::Loses, None);
}

/// Goal: a disk that has place for little, because it compresses and deduplicates, cannot hide that.
#[test]
fn a_disk_that_deduplicates_and_compresses_is_found() {
    let (verdict, findings) = tested(&mut Model::new(Map::Thin(20_000), Cache::None), GIB_SECTORS, false, None);
    assert_ne!(verdict.kind, CapacityKind::Genuine);
    assert!(findings.counts.intact <= 20_000 / BLOCK_SECTORS + 1, "{findings:?}");
}

/// Goal: a test of every block finds a single bad one, and a ring with its begin.
#[test]
fn a_full_test_finds_what_a_sample_cannot() {
    let sectors = 100_000;
    let (verdict, findings) = tested(&mut Model::new(Map::Every(9_999), Cache::None), sectors, true, None);
    assert_eq!((verdict.kind, findings.counts.zeros), (CapacityKind::Loses, 2));
    for size in [1 << 15, 50_001] {
        let (verdict, _) = tested(&mut Model::new(Map::Wraps(size), Cache::None), sectors, true, None);
        assert_eq!(verdict.usable_bytes, Some(size * SECTOR_BYTES as u64));
    }
}

/// Goal: a disk that is pulled is no fake.
#[test]
fn a_disk_that_answers_nothing_is_an_error_and_no_verdict() {
    let mut disk = Model::new(Map::Honest, Cache::None);
    let mut examination = Examination::new(Layout::of(GIB_SECTORS / BLOCK_SECTORS, CACHE_BYTES, false, 11), 5);
    examination.write(&mut disk, &mut Silent).expect("written");
    disk.map = Map::Fails(0);
    let error = examination.read(&mut disk, &mut Silent).expect_err("it is gone");
    assert!(matches!(error, ExamineError::Gone(_)), "{error:?}");
}
