//! Chooses what is lost at a crash: of few writes every subset, of many the telling ones first, then random ones by seed.

use super::log::{Point, WriteLog};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// How much of a write is lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LostPart {
    /// All of it.
    Whole,
    /// These sectors of it, counted from its first one, in order; at least one is stored.
    Sectors(Vec<u64>),
}

/// The writes that are lost, by their index in the log. All others before the crash are stored.
pub type Loss = BTreeMap<usize, LostPart>;

/// Sectors of a write of which random ones are lost; of a longer one the begin or the end is.
const TORN_SECTORS_MAX: u64 = 1024;

/// Returns up to `most` different losses at a point; the same for the same seed. The second value is whether they are every subset of
/// whole writes.
pub fn choices(log: &WriteLog, point: &Point, most: usize, seed: u64) -> (Vec<Loss>, bool) {
    let at_risk = log.at_risk(point);
    let writes: Vec<(usize, u64)> = at_risk.iter().map(|index| (*index, log.entries[*index].sector_count)).collect();
    let count = at_risk.len();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ (point.end as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut found: Vec<Loss> = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    let mut add = |loss: Loss| {
        if found.len() < most && known.insert(loss.clone()) {
            found.push(loss);
        }
        found.len() < most
    };
    let whole =
        |lost: &mut dyn Iterator<Item = usize>| -> Loss { lost.map(|index| (index, LostPart::Whole)).collect() };
    let is_exhaustive = count < 20 && 1usize << count <= most;
    if is_exhaustive {
        for subset in 0..1usize << count {
            add(whole(&mut (0..count).filter(|bit| subset >> bit & 1 == 1).map(|bit| at_risk[bit])));
        }
    } else {
        add(Loss::new());
        add(whole(&mut at_risk.iter().copied()));
        let mut order: Vec<usize> = (0..count).collect();
        for index in (1..count).rev() {
            order.swap(index, (random.next_u64() % (index as u64 + 1)) as usize);
        }
        // One write is lost, or all but one: most mistakes show in one of them.
        for at in order.into_iter().take(most / 3) {
            add(whole(&mut std::iter::once(at_risk[at])));
            add(whole(&mut at_risk.iter().copied().filter(|index| *index != at_risk[at])));
        }
    }
    // A set that was drawn before is drawn again only so often.
    for _ in 0..most.saturating_mul(4) {
        if count == 0 || !add(draw(&writes, &mut random)) {
            break;
        }
    }
    (found, is_exhaustive)
}

/// Draws a loss of writes, each by its number and its sectors: a share of them whole, and at most one in part.
pub fn draw(writes: &[(usize, u64)], random: &mut Xoshiro256PlusPlus) -> Loss {
    let share = [10, 50, 90][(random.next_u64() % 3) as usize];
    let mut loss = Loss::new();
    for (number, _) in writes {
        if random.next_u64() % 100 < share {
            loss.insert(*number, LostPart::Whole);
        }
    }
    let long: Vec<&(usize, u64)> = writes.iter().filter(|(_, sector_count)| *sector_count > 1).collect();
    if !long.is_empty() {
        let (number, sector_count) = *long[(random.next_u64() % long.len() as u64) as usize];
        loss.insert(number, torn(sector_count, random));
    }
    loss
}

/// Draws the lost sectors of a write: its begin, its end, or any.
fn torn(sector_count: u64, random: &mut Xoshiro256PlusPlus) -> LostPart {
    let shown = sector_count.min(TORN_SECTORS_MAX);
    let cut = 1 + random.next_u64() % (shown - 1);
    LostPart::Sectors(match random.next_u64() % 3 {
        0 => (0..cut).collect(),
        1 => (sector_count - cut..sector_count).collect(),
        _ => {
            let some: Vec<u64> = (0..shown).filter(|_| random.next_u64().is_multiple_of(2)).collect();
            if some.is_empty() || some.len() as u64 == sector_count { vec![cut - 1] } else { some }
        }
    })
}
