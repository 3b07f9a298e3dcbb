//! Makes a failing loss small: no write or sector of the result can be stored without the failure going away.
//!
//! Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002), `ddmin`.

use super::choice::{Loss, LostPart};
use std::collections::BTreeMap;

/// A part of a loss: a write, or a sector of one.
type Atom = (usize, Option<u64>);

fn atoms_of(loss: &Loss) -> Vec<Atom> {
    let of = |(index, part): (&usize, &LostPart)| match part {
        LostPart::Whole => vec![(*index, None)],
        LostPart::Sectors(sectors) => sectors.iter().map(|sector| (*index, Some(*sector))).collect(),
    };
    loss.iter().flat_map(of).collect()
}

fn loss_of(atoms: &[Atom]) -> Loss {
    let mut loss: Loss = BTreeMap::new();
    for (index, sector) in atoms {
        match (sector, loss.get_mut(index)) {
            (Some(sector), Some(LostPart::Sectors(sectors))) => sectors.push(*sector),
            (Some(sector), _) => drop(loss.insert(*index, LostPart::Sectors(vec![*sector]))),
            (None, _) => drop(loss.insert(*index, LostPart::Whole)),
        }
    }
    loss
}

/// Returns a smaller loss that fails, too. `fails` is called at most `calls` times, and returns `None` to end the search.
pub fn shrink(loss: &Loss, calls: usize, fails: &mut dyn FnMut(&Loss) -> Option<bool>) -> Loss {
    let mut atoms = atoms_of(loss);
    let (mut parts, mut left) = (2, calls);
    while !atoms.is_empty() {
        let length = atoms.len().div_ceil(parts.min(atoms.len()));
        let mut is_smaller = false;
        let mut at = 0;
        while at < atoms.len() {
            if left == 0 {
                return loss_of(&atoms);
            }
            left -= 1;
            let kept: Vec<Atom> = [&atoms[..at], &atoms[(at + length).min(atoms.len())..]].concat();
            match fails(&loss_of(&kept)) {
                None => return loss_of(&atoms),
                Some(true) => (atoms, is_smaller) = (kept, true),
                Some(false) => at += length,
            }
        }
        match (is_smaller, length) {
            // No single one can be left out.
            (false, 1) => break,
            (true, _) => parts = parts.min(atoms.len()).max(2),
            (false, _) => parts *= 2,
        }
    }
    loss_of(&atoms)
}
