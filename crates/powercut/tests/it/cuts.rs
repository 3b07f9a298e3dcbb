//! Disks that lose their power, honest and not, as a model in memory: an honest one is never accused, each lie is found.
//!
//! The model has a volatile cache in front of a medium. A cut comes at a random call, also within a write, which is then torn at
//! a random sector. A random part of the cache is stored before that, in the order in which each block was written.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use trueio_powercut::cut::{
    Cut, LossKind, Medium, Method, Phase, Readback, Region, RegionLog, Stamp, Step, Tally, Verdict, Writer, check,
    disk_standing, lay_out,
};
use trueio_powercut::{BLOCK_BYTES, SECTOR_BYTES};

/// What a disk does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Disk {
    Honest,
    /// Honest, and without a volatile cache.
    NoCache,
    /// A flush returns 0 and stores nothing.
    FlushIgnored,
    /// A write with FUA stays in the cache.
    FuaIgnored,
    /// Every Nth flush is skipped.
    FlushSkipped(u64),
    /// A flush leaves one random block in the cache: it is stored after later ones.
    Reordered,
    /// Writes return 0 and are not stored.
    Dropped,
    /// A cut tears one block that was flushed.
    Torn,
    /// A cut leaves zeros in one block that was flushed.
    Zeros,
    /// A cut brings back the value before of one block that was flushed.
    Older,
}

/// A block that was written and is not stored yet.
struct Cached {
    block: u64,
    data: Vec<u8>,
}

struct Model {
    disk: Disk,
    random: Xoshiro256PlusPlus,
    stored: BTreeMap<u64, Vec<u8>>,
    /// What was stored before, of the blocks that were flushed last.
    before: BTreeMap<u64, Vec<u8>>,
    cache: Vec<Cached>,
    flushes: u64,
    /// Calls until the cut.
    calls_left: u64,
}

fn cut_off() -> io::Error {
    io::Error::from_raw_os_error(19)
}

impl Model {
    fn new(disk: Disk, seed: u64) -> Self {
        Self {
            disk,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            stored: BTreeMap::new(),
            before: BTreeMap::new(),
            cache: Vec::new(),
            flushes: 0,
            calls_left: 0,
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit.max(1)
    }

    fn store(&mut self, entry: Cached) {
        if let Some(old) = self.stored.insert(entry.block, entry.data) {
            self.before.insert(entry.block, old);
        }
    }

    /// Stores a random part of the cache; for each block, what was written first comes first.
    fn store_some(&mut self) {
        let mut kept = Vec::new();
        let mut is_kept = std::collections::BTreeSet::new();
        for entry in std::mem::take(&mut self.cache) {
            if is_kept.contains(&entry.block) || self.random.next_u64().is_multiple_of(2) {
                is_kept.insert(entry.block);
                kept.push(entry);
            } else {
                self.store(entry);
            }
        }
        self.cache = kept;
    }

    fn write(&mut self, block: u64, data: &[u8], is_durable: bool) -> io::Result<()> {
        if self.calls_left == 0 {
            // The cut comes within the write, or before it.
            let sectors = self.below(9) as usize;
            if sectors > 0 && self.disk != Disk::Dropped && !self.cache.iter().any(|entry| entry.block == block) {
                let old = self.stored.get(&block).cloned().unwrap_or_else(|| vec![0xa5; BLOCK_BYTES]);
                let at = sectors * SECTOR_BYTES;
                self.stored.insert(block, [&data[..at], &old[at..]].concat());
            }
            return Err(cut_off());
        }
        self.calls_left -= 1;
        let entry = Cached { block, data: data.to_vec() };
        match self.disk {
            Disk::Dropped => {}
            Disk::NoCache => self.store(entry),
            Disk::FuaIgnored => self.cache.push(entry),
            _ if is_durable => {
                self.cache.retain(|other| other.block != block);
                self.store(entry);
            }
            _ => self.cache.push(entry),
        }
        // A cache that fills up stores what came first.
        if self.cache.len() > 400 {
            let entry = self.cache.remove(0);
            self.store(entry);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.calls_left == 0 {
            self.store_some();
            return Err(cut_off());
        }
        self.calls_left -= 1;
        self.flushes += 1;
        match self.disk {
            Disk::FlushIgnored => return Ok(()),
            Disk::FlushSkipped(nth) if self.flushes.is_multiple_of(nth) => return Ok(()),
            _ => {}
        }
        let mut cached = std::mem::take(&mut self.cache);
        if self.disk == Disk::Reordered && !cached.is_empty() && self.below(4) == 0 {
            let index = self.below(cached.len() as u64) as usize;
            let block = cached[index].block;
            self.cache = cached.extract_if(.., |entry| entry.block == block).collect();
        }
        cached.into_iter().for_each(|entry| self.store(entry));
        Ok(())
    }

    /// Takes the power away.
    fn cut(&mut self) {
        self.store_some();
        self.cache.clear();
        let flushed: Vec<u64> = self.before.keys().copied().collect();
        if !flushed.is_empty() {
            let block = flushed[self.below(flushed.len() as u64) as usize];
            let before = self.before[&block].clone();
            let now = self.stored.get_mut(&block).expect("it is stored");
            match self.disk {
                Disk::Torn => now[SECTOR_BYTES * 3..].copy_from_slice(&before[SECTOR_BYTES * 3..]),
                Disk::Zeros => now.fill(0),
                Disk::Older => *now = before,
                _ => {}
            }
        }
        self.before.clear();
    }
}

/// A region of the model, written as its method does.
struct Part<'a> {
    model: &'a mut Model,
    region: Region,
}

impl Medium for Part<'_> {
    fn write(&mut self, position: u64, data: &[u8]) -> io::Result<()> {
        let is_durable = matches!(self.region.method, Method::DirectDsync | Method::DirectRwfDsync);
        self.model.write(self.region.start + position, data, is_durable)
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.region.method {
            Method::DirectFdatasync | Method::BufferedFdatasync | Method::BufferedFsync => self.model.flush(),
            _ => Ok(()),
        }
    }
}

impl Readback for Part<'_> {
    fn read(&mut self, position: u64, data: &mut [u8]) -> io::Result<Vec<bool>> {
        for (block, data) in (self.region.start + position..).zip(data.chunks_exact_mut(BLOCK_BYTES)) {
            match self.model.stored.get(&block) {
                Some(stored) => data.copy_from_slice(stored),
                None => data.fill(0xa5),
            }
        }
        Ok(vec![true; data.len() / BLOCK_BYTES])
    }
}

const METHODS: [Method; 3] = [Method::DirectFdatasync, Method::DirectDsync, Method::Direct];

/// Writes until the cut, cuts, checks, and adds the result.
fn one_cut(model: &mut Model, run: u64, tally: &mut Tally) {
    let regions = lay_out(&METHODS, 1024, 64).expect("room");
    let stamp = Stamp { run };
    let logs: Vec<Mutex<RegionLog>> = regions.iter().map(|_| Mutex::default()).collect();
    let mut writers: Vec<Writer> = regions.iter().map(|region| Writer::new(stamp, *region)).collect();
    model.calls_left = 1 + model.below(300);
    let mut now = 0;
    loop {
        let index = model.below(regions.len() as u64) as usize;
        let phase = if model.below(20) == 0 { Phase::Burst } else { Phase::Steady };
        let mut part = Part { model, region: regions[index] };
        let step = writers[index].step(&mut part, phase, &logs[index], &mut || {
            now += 1;
            now
        });
        match step {
            Ok(step) => assert!(matches!(step, Step::Written(_)), "{step:?}"),
            Err(_) => break,
        }
    }
    model.cut();
    let mut cut = Cut::default();
    for (region, log) in regions.iter().zip(&logs) {
        let mut part = Part { model, region: *region };
        let log = log.lock().expect("no panic");
        let checked = check(stamp, region, &log, 0, &mut part, &mut |_| true).expect("it can be read");
        cut.checked.insert(region.method, checked);
    }
    tally.add(&cut);
}

/// Cuts a disk until it is found to lose data, at most this often.
fn cuts_until_lost(disk: Disk, most: u64) -> Tally {
    let mut model = Model::new(disk, 47);
    let mut tally = Tally::new(Some(disk != Disk::NoCache));
    for run in 1..=most {
        one_cut(&mut model, run, &mut tally);
        if disk_standing(&tally.standings()).verdict == Verdict::Lost {
            break;
        }
    }
    tally
}

#[track_caller]
fn verdict_of(tally: &Tally, method: Method) -> Verdict {
    tally.standings().into_iter().find(|standing| standing.method == Some(method)).expect("it was tested").verdict
}

/// Goal: an honest disk is never accused.
/// Method: 10,000 cuts at random moments; without a sync writes are lost, so the cuts reach the cache.
#[test]
fn an_honest_disk_is_kept_after_ten_thousand_cuts() {
    let tally = cuts_until_lost(Disk::Honest, 10_000);
    assert_eq!(tally.cuts(), 10_000, "{:?}", tally.standings());
    for method in [Method::DirectFdatasync, Method::DirectDsync] {
        assert_eq!(verdict_of(&tally, method), Verdict::Kept, "{:?}", tally.standings());
    }
    assert_eq!(verdict_of(&tally, Method::Direct), Verdict::Counted);
}

/// Goal: each lie is found, and by the methods that it concerns.
#[test]
fn each_lie_is_found() {
    let synced = [Method::DirectFdatasync, Method::DirectDsync];
    for (disk, most, methods) in [
        (Disk::FlushIgnored, 10, &synced[..1]),
        (Disk::FuaIgnored, 10, &synced[1..]),
        (Disk::FlushSkipped(1000), 10_000, &synced[..1]),
        (Disk::Reordered, 1_000, &synced[..1]),
        (Disk::Dropped, 10, &synced[..]),
        (Disk::Torn, 200, &[]),
        (Disk::Zeros, 200, &[]),
        (Disk::Older, 200, &[]),
    ] {
        let tally = cuts_until_lost(disk, most);
        let standings = tally.standings();
        assert_eq!(disk_standing(&standings).verdict, Verdict::Lost, "{disk:?}: {standings:?}");
        for method in methods {
            assert_eq!(verdict_of(&tally, *method), Verdict::Lost, "{disk:?}: {standings:?}");
        }
        let lost = |method: &Method| verdict_of(&tally, *method) == Verdict::Lost;
        assert!(methods.is_empty() || synced.iter().filter(|method| lost(method)).count() == methods.len(), "{disk:?}");
        println!("{disk:?}: found after {} cuts", tally.cuts());
    }
}

/// Goal: each kind of loss is named.
#[test]
fn a_loss_is_described_by_what_the_block_holds() {
    for (disk, words) in [
        (Disk::Torn, LossKind::Torn.words()),
        (Disk::Zeros, LossKind::Zeros.words()),
        (Disk::Older, LossKind::Older.words()),
    ] {
        let tally = cuts_until_lost(disk, 200);
        let lost = tally.standings().into_iter().find(|standing| standing.verdict == Verdict::Lost).expect("a loss");
        assert!(lost.sentence.contains(words), "{disk:?}: {}", lost.sentence);
    }
}

#[test]
fn a_disk_without_a_volatile_cache_proves_nothing() {
    for has_cache in [Some(false), None] {
        let mut model = Model::new(Disk::NoCache, 47);
        let mut tally = Tally::new(has_cache);
        (1..=200).for_each(|run| one_cut(&mut model, run, &mut tally));
        assert_eq!(disk_standing(&tally.standings()).verdict, Verdict::CannotTell, "{:?}", tally.standings());
    }
}

/// A region in memory, of which nothing is lost.
struct Memory {
    stored: Vec<u8>,
    reads: u64,
}

impl Medium for Memory {
    fn write(&mut self, position: u64, data: &[u8]) -> io::Result<()> {
        self.stored[position as usize * BLOCK_BYTES..][..BLOCK_BYTES].copy_from_slice(data);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Readback for Memory {
    fn read(&mut self, position: u64, data: &mut [u8]) -> io::Result<Vec<bool>> {
        let count = data.len() / BLOCK_BYTES;
        self.reads += count as u64;
        data.copy_from_slice(&self.stored[position as usize * BLOCK_BYTES..][..data.len()]);
        Ok(vec![true; count])
    }
}

/// Goal: a million acknowledged writes are verified in at most 10 s per GiB, and only blocks that were written are read.
#[test]
fn a_million_acknowledged_writes_are_verified_in_seconds() {
    let order = trueio_powercut::cut::Order::Overwrite;
    let region = Region { id: 0, method: Method::DirectFdatasync, start: 0, position_count: 1 << 18, order };
    let mut memory = Memory { stored: vec![0; (1 << 18) * BLOCK_BYTES], reads: 0 };
    let (stamp, log) = (Stamp { run: 9 }, Mutex::<RegionLog>::default());
    let mut writer = Writer::new(stamp, region);
    while log.lock().expect("no panic").acknowledged() < 1_000_000 {
        writer.step(&mut memory, Phase::Burst, &log, &mut || 0).expect("memory takes it");
    }
    let log = log.into_inner().expect("no panic");
    let began = std::time::Instant::now();
    let checked = check(stamp, &region, &log, 0, &mut memory, &mut |_| true).expect("it can be read");
    let per_gib = began.elapsed().as_secs_f64();
    println!("1,000,000 acknowledged writes to 1 GiB: verified in {per_gib:.2} s");
    assert_eq!((checked.acknowledged, checked.lost.total(), memory.reads), (1 << 18, 0, 1 << 18));
    assert!(per_gib < 10.0, "{per_gib}");
}
