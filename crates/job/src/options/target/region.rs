//! The region of a file: the part that a job uses, as its options set it.
//!
//! One function, [`region`], derives it from the size of the target, the options `size`, `filesize`, `offset`,
//! `offset_increment` and their percentages, and the number of the region. Numbers of zones are bytes here: they were converted
//! with the length of the target's zones.
//!
//! With the rules of fio (`region_rules = fio`) a region ends where the target ends, so that a job of a command line that was
//! written for a larger disk runs; a file that the job may extend has no end. With our own rules such a job is refused.
//!
//! Source: fio 3.42, `get_start_offset` and `setup_files` of `filesetup.c`; results of fio's HEAD in
//! `crates/fio/tests/it/regions/fio-head.txt`.

use crate::option::OptionRow;
use crate::options::target::rows::{FILESIZE, OFFSET, RegionRules, SIZE};
use crate::value::Extent;

/// The end of the largest region, in bytes.
const END_BYTES_MAX: u64 = i64::MAX as u64;

/// What a job sets about its region in one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) rules: RegionRules,
    pub(crate) offset: Extent,
    pub(crate) offset_increment: Extent,
    /// The number of increments from `offset` to the region: fio's number of the clone.
    pub(crate) number: u64,
    /// The offset is a multiple of this if it is a percentage. `None` and 0: of a block.
    pub(crate) offset_align: Option<u64>,
    /// The file's share of `size`.
    pub(crate) size: Option<Extent>,
    /// The size of this file alone; it takes precedence over `size`.
    pub(crate) own: Option<OwnSize>,
    /// What the regions of further workers add, in bytes.
    pub(crate) spread_bytes: u64,
    /// The smallest block, in bytes.
    pub(crate) block_bytes_min: u64,
    /// The largest block, in bytes.
    pub(crate) block_bytes_max: u64,
}

/// The size that a job sets for one file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OwnSize {
    /// The length of the region, in bytes.
    Region(u64),
    /// fio's `filesize`: the length of the whole file. A file that exists and whose length is in this range is used as it is.
    File { least: u64, most: u64, drawn: u64 },
}

/// A target that exists, or that exists when the job begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Present {
    pub(crate) size_bytes: u64,
    /// True if the job may extend it.
    pub(crate) may_grow: bool,
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) offset_bytes: u64,
    pub(crate) size_bytes: u64,
    /// What the target lacks of the region that was asked for, in bytes: the region ends where the target ends.
    pub(crate) lacking_bytes: u64,
}

/// Why a target has no region.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoRegion {
    /// A percentage of a target that does not exist, or is empty.
    PercentOfNothing(&'static OptionRow),
    /// Neither a size nor a target that has one.
    SizeMissing,
    /// The region would end beyond the target.
    Beyond { option: &'static OptionRow, offset_bytes: u64, size_bytes: u64 },
    /// The region would end beyond 2^63 bytes.
    TooLarge,
}

/// Returns the region of a target; `None`: it does not exist yet.
///
/// The region of a target that the job may not extend ends at most where the target ends.
pub(crate) fn region(target: Option<Present>, wanted: &Wanted) -> Result<Region, NoRegion> {
    let offset_bytes = offset(target, wanted)?;
    let size_bytes = match wanted.rules {
        RegionRules::Exact => exact_size(target, wanted, offset_bytes)?,
        RegionRules::Fio => fio_size(target, wanted, offset_bytes)?,
    };
    let end = offset_bytes.checked_add(size_bytes).filter(|end| *end <= END_BYTES_MAX);
    let limit = target.filter(|target| !target.may_grow).map(|target| target.size_bytes);
    let option = if matches!(wanted.own, Some(OwnSize::File { .. })) { FILESIZE.row() } else { SIZE.row() };
    let beyond = NoRegion::Beyond { option, offset_bytes, size_bytes };
    // (The I/Os of a log have their own offsets.)
    let is_clipped = wanted.rules == RegionRules::Fio && !matches!(wanted.own, Some(OwnSize::Region(_)));
    match (end, limit) {
        (Some(end), Some(limit)) if end <= limit => Ok(Region { offset_bytes, size_bytes, lacking_bytes: 0 }),
        (Some(_), None) => Ok(Region { offset_bytes, size_bytes, lacking_bytes: 0 }),
        (None, None) => Err(NoRegion::TooLarge),
        (_, Some(limit)) if is_clipped && offset_bytes < limit => {
            let left_bytes = limit - offset_bytes;
            Ok(Region { offset_bytes, size_bytes: left_bytes, lacking_bytes: size_bytes - left_bytes })
        }
        (_, Some(_)) => Err(beyond),
    }
}

/// Returns the beginning of the region.
fn offset(target: Option<Present>, wanted: &Wanted) -> Result<u64, NoRegion> {
    let is_fios = wanted.rules == RegionRules::Fio;
    let is_percent = |extent: Extent| matches!(extent, Extent::Percent(1..));
    let rounds = is_percent(wanted.offset) || is_percent(wanted.offset_increment);
    if rounds && target.is_none() && !is_fios {
        return Err(NoRegion::PercentOfNothing(OFFSET.row()));
    }
    // As in fio, a percentage of a file that does not exist yet is 0.
    let base_bytes = target.map_or(0, |target| target.size_bytes);
    let bytes = |extent: Extent| match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => percent_of(base_bytes, percent),
    };
    let shift = bytes(wanted.offset_increment).checked_mul(wanted.number);
    let offset = shift.and_then(|shift| shift.checked_add(bytes(wanted.offset))).ok_or(NoRegion::TooLarge)?;
    if !rounds {
        return Ok(offset);
    }
    match wanted.offset_align {
        None if !is_fios => Ok(offset - offset % wanted.block_bytes_max.max(1)),
        None | Some(0) => offset.checked_next_multiple_of(wanted.block_bytes_min.max(1)).ok_or(NoRegion::TooLarge),
        Some(align) => offset.checked_next_multiple_of(align).ok_or(NoRegion::TooLarge),
    }
}

/// Returns the length that our own rules give: what is set, or what the target has.
fn exact_size(target: Option<Present>, wanted: &Wanted, offset_bytes: u64) -> Result<u64, NoRegion> {
    let there = |missing| target.map(|target| target.size_bytes).ok_or(missing);
    match (wanted.own, wanted.size) {
        (Some(OwnSize::Region(bytes) | OwnSize::File { drawn: bytes, .. }), _) | (None, Some(Extent::Bytes(bytes))) => {
            Ok(bytes.saturating_add(wanted.spread_bytes))
        }
        (None, Some(Extent::Percent(percent))) => {
            let there = there(NoRegion::PercentOfNothing(SIZE.row()))?;
            Ok(match wanted.offset {
                // The offset may be rounded up; the region still ends at the end of the target.
                Extent::Percent(_) => percent_of(there, percent).min(there.saturating_sub(offset_bytes)),
                Extent::Bytes(_) => percent_of(there, percent),
            })
        }
        (None, None) => match there(NoRegion::SizeMissing)? {
            there if offset_bytes >= there && there > 0 => {
                let (option, size_bytes) = (OFFSET.row(), wanted.block_bytes_max);
                Err(NoRegion::Beyond { option, offset_bytes, size_bytes })
            }
            there => Ok(there - offset_bytes.min(there)),
        },
    }
}

/// Returns the length that fio's rules give, before the end of the target is looked at.
fn fio_size(target: Option<Present>, wanted: &Wanted, offset_bytes: u64) -> Result<u64, NoRegion> {
    let there = target.map_or(0, |target| target.size_bytes);
    let rest = |end_bytes: u64, option| match end_bytes.checked_sub(offset_bytes).filter(|rest| *rest > 0) {
        Some(rest) => Ok(rest),
        None => Err(NoRegion::Beyond { option, offset_bytes, size_bytes: wanted.block_bytes_max }),
    };
    let whole = match (wanted.own, wanted.size) {
        (Some(OwnSize::Region(bytes)), _) => return Ok(bytes),
        (Some(OwnSize::File { least, most, .. }), _) if (least..=most).contains(&there) => rest(there, OFFSET.row())?,
        (Some(OwnSize::File { drawn, .. }), _) => rest(drawn, FILESIZE.row())?,
        (None, Some(Extent::Bytes(bytes))) => return Ok(bytes),
        (None, Some(_)) if there == 0 => return Err(NoRegion::PercentOfNothing(SIZE.row())),
        (None, None) if there == 0 => return Err(NoRegion::SizeMissing),
        (None, _) => rest(there, OFFSET.row())?,
    };
    match wanted.size {
        Some(Extent::Percent(percent)) if percent != 100 => {
            let bytes = percent_of(offset_bytes + whole, percent).min(whole);
            Ok(bytes - bytes % wanted.block_bytes_min.max(1))
        }
        _ => Ok(whole),
    }
}

/// Returns a percentage of a number of bytes.
pub(crate) fn percent_of(bytes: u64, percent: u8) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::mix64;

    /// Draws what a job sets, and a target; small numbers, so that the cases meet.
    fn drawn(seed: u64) -> (Option<Present>, Wanted) {
        let mut state = mix64(seed);
        let mut below = |count: u64| {
            state = mix64(state.wrapping_add(1));
            state % count
        };
        let target = match below(4) {
            0 => None,
            kind => Some(Present { size_bytes: below(40) * 512, may_grow: kind == 1 }),
        };
        let [offset, offset_increment, size] = [(); 3].map(|()| match below(2) {
            0 => Extent::Bytes(below(40) * 512),
            _ => Extent::Percent(below(101) as u8),
        });
        let rules = if below(2) == 0 { RegionRules::Exact } else { RegionRules::Fio };
        let (one, other) = (1 + below(40) * 512, 1 + below(40) * 512);
        let (least, most) = (one.min(other), one.max(other));
        let own = match below(3) {
            0 => Some(OwnSize::File { least, most, drawn: least + below(most - least + 1) }),
            1 if rules == RegionRules::Exact => Some(OwnSize::Region(least)),
            _ => None,
        };
        let wanted = Wanted {
            rules,
            offset,
            offset_increment,
            number: below(9),
            offset_align: [None, Some(0), Some(4096)][below(3) as usize],
            size: Some(size).filter(|_| below(4) > 0),
            own,
            spread_bytes: 0,
            block_bytes_min: 512,
            block_bytes_max: 1024,
        };
        (target, wanted)
    }

    /// Goal: whatever the options and the number of the clone, no region leaves the target that may not grow, `filesize`, or the
    /// length that `size` gives.
    /// Method: 200,000 drawn cases; at least one in forty has a region in each kind of target.
    #[test]
    fn no_clone_leaves_what_was_given() {
        let mut found = [0; 3];
        for seed in 0..200_000 {
            let (target, wanted) = drawn(seed);
            let Ok(Region { offset_bytes, size_bytes, lacking_bytes }) = region(target, &wanted) else { continue };
            let case = format!("seed {seed}: {target:?} {wanted:?} gives {offset_bytes}+{size_bytes}");
            let end = offset_bytes + size_bytes;
            let there = target.map_or(0, |target| target.size_bytes);
            found[target.map_or(0, |target| 1 + usize::from(target.may_grow))] += 1;
            if target.is_some_and(|target| !target.may_grow) {
                assert!(end <= there, "{case}: beyond the end");
            } else {
                assert_eq!(lacking_bytes, 0, "{case}");
            }
            match (wanted.own, wanted.size, wanted.rules) {
                (Some(OwnSize::File { most, .. }), _, RegionRules::Fio) => {
                    assert!(end <= most.max(there), "{case}: beyond `filesize`");
                }
                (None, Some(Extent::Bytes(bytes)), _) => assert!(size_bytes <= bytes, "{case}: more than `size`"),
                (None, Some(Extent::Percent(_)) | None, RegionRules::Fio) => assert!(end <= there, "{case}: grows"),
                _ => {}
            }
            if wanted.rules == RegionRules::Exact {
                assert_eq!(lacking_bytes, 0, "{case}: our own rules refuse");
            }
        }
        assert!(found.iter().all(|count| *count > 5_000), "{found:?}");
    }
}
