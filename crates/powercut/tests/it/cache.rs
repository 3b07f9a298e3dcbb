//! The disk with a losable cache, against a model that holds every value that a sector may have after a cut.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io;
use trueio_powercut::{LosableCache, Medium};

const SECTOR: usize = 512;
const SECTORS: usize = 32;

struct Memory(Vec<u8>);

impl Medium for Memory {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        data.copy_from_slice(&self.0[offset as usize..][..data.len()]);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write { sector: usize, count: usize, is_fua: bool },
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..SECTORS, 1usize..6, prop::bool::weighted(0.2)).prop_map(|(sector, count, is_fua)| Step::Write {
            sector,
            count: count.min(SECTORS - sector),
            is_fua
        }),
        1 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 0..60)
}

fn cache(size_sectors: usize) -> LosableCache<Memory> {
    LosableCache::new(Memory(vec![0; SECTORS * SECTOR]), size_sectors * SECTOR)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Goal: what is read is what was written last; after a cut each sector has a value that was not flushed away: that of the last flush
    /// or FUA, or a later one. Nothing of a flushed disk is lost.
    #[test]
    fn a_cut_loses_only_what_was_not_flushed(steps in steps(), size in prop_oneof![Just(4usize), Just(10_000)], seed in any::<u64>()) {
        let mut disk = cache(size);
        let mut newest = [0u8; SECTORS];
        let mut possible: Vec<BTreeSet<u8>> = vec![BTreeSet::from([0]); SECTORS];
        for (number, step) in steps.iter().enumerate() {
            let value = number as u8 + 1;
            match *step {
                Step::Write { sector, count, is_fua } => {
                    disk.write((sector * SECTOR) as u64, &vec![value; count * SECTOR], is_fua).expect("memory");
                    for at in sector..sector + count {
                        newest[at] = value;
                        if is_fua {
                            possible[at].clear();
                        }
                        possible[at].insert(value);
                    }
                }
                Step::Flush => {
                    disk.flush().expect("memory");
                    possible = newest.iter().map(|value| BTreeSet::from([*value])).collect();
                }
            }
        }
        let mut data = vec![0; SECTORS * SECTOR];
        disk.read(0, &mut data).expect("memory");
        for (sector, bytes) in data.chunks(SECTOR).enumerate() {
            prop_assert!(bytes.iter().all(|byte| *byte == newest[sector]), "sector {} before the cut", sector);
        }
        let loss = disk.cut(seed).expect("memory");
        prop_assert!(loss.lost <= loss.at_risk);
        let after = disk.medium().0.clone();
        for (sector, bytes) in after.chunks(SECTOR).enumerate() {
            prop_assert!(bytes.iter().all(|byte| *byte == bytes[0]), "sector {} is torn", sector);
            prop_assert!(possible[sector].contains(&bytes[0]), "sector {}: {} of {:?}", sector, bytes[0], possible[sector]);
        }
        disk.read(0, &mut data).expect("memory");
        prop_assert_eq!(data, after, "nothing is cached any more");
    }
}

/// Goal: cuts lose something, keep something, tear writes, and a seed repeats one.
#[test]
fn cuts_by_seed_lose_keep_and_tear() {
    let after = |seed: u64| {
        let mut disk = cache(10_000);
        for at in 0..8u64 {
            disk.write(at * 4 * SECTOR as u64, &[at as u8 + 1; 4 * SECTOR], false).expect("memory");
        }
        let loss = disk.cut(seed).expect("memory");
        let sectors: Vec<u8> = disk.medium().0.chunks(SECTOR).map(|sector| sector[0]).collect();
        (loss, sectors)
    };
    let all: Vec<_> = (0..64).map(after).collect();
    assert_eq!(all, (0..64).map(after).collect::<Vec<_>>());
    assert!(all.iter().all(|(loss, _)| loss.at_risk == 8 && loss.lost > 0));
    let is_torn =
        |sectors: &[u8]| sectors.chunks(4).any(|write| write.contains(&0) && write.iter().any(|byte| *byte > 0));
    assert!(all.iter().filter(|(_, sectors)| is_torn(sectors)).count() >= 32);
    assert!(all.iter().filter(|(_, sectors)| sectors.iter().any(|byte| *byte > 0)).count() >= 60);
    let different: BTreeSet<_> = all.iter().map(|(_, sectors)| sectors).collect();
    assert!(different.len() >= 32, "{}", different.len());
}

/// Goal: a disk that acknowledges a flush without storing loses what was flushed: the model's check can fail.
#[test]
fn without_a_flush_the_last_values_are_lost_in_some_cut() {
    let is_lost = |seed: u64| {
        let mut disk = cache(10_000);
        disk.write(0, &[7; SECTOR], false).expect("memory");
        disk.cut(seed).expect("memory");
        disk.medium().0[0] == 0
    };
    let lost = (0..64).filter(|seed| is_lost(*seed)).count();
    assert!((8..56).contains(&lost), "{lost} of 64");
}
