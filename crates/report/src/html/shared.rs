//! What is the same in all phases of a page, shown once: options of the plan, and checks that found nothing.
//!
//! A page of 200 phases had 14 MiB, most of it the same plan and the same sentences 200 times.

use super::phases::{CheckRow, Phase, PlanRow};

/// Rows that were taken out of every phase.
pub(super) struct Shared {
    pub(super) plan: Vec<PlanRow>,
    pub(super) checks: Vec<CheckRow>,
}

impl Shared {
    /// Takes what all phases have in common out of them. Of a single job or phase everything stays where it is; a check that objects
    /// stays with its phase in any case.
    pub(super) fn take(phases: &mut [Phase]) -> Self {
        let plans: Vec<&mut Vec<PlanRow>> =
            phases.iter_mut().flat_map(|phase| &mut phase.jobs).map(|job| &mut job.plan).collect();
        let plan = common(plans, |_| true);
        let checks = common(phases.iter_mut().map(|phase| &mut phase.checks).collect(), CheckRow::is_calm);
        phases.iter_mut().for_each(|phase| phase.shared_check_count = checks.len());
        Self { plan, checks }
    }
}

/// Moves the rows that are in every list, of those that `may` be moved.
fn common<T: PartialEq>(mut lists: Vec<&mut Vec<T>>, may: impl Fn(&T) -> bool) -> Vec<T> {
    let Some((first, others)) = lists.split_first_mut().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let (moved, rest) =
        std::mem::take(*first).into_iter().partition(|row| may(row) && others.iter().all(|other| other.contains(row)));
    **first = rest;
    others.iter_mut().for_each(|other| other.retain(|row| !moved.contains(row)));
    moved
}

#[cfg(test)]
mod tests {
    use super::common;

    #[test]
    fn rows_of_every_list_are_moved_and_those_of_one_list_stay() {
        let (mut one, mut two) = (vec!['a', 'b', 'c', 'd'], vec!['d', 'c', 'a']);
        assert_eq!(common(vec![&mut one, &mut two], |row| *row != 'd'), ['a', 'c']);
        assert_eq!((one, two), (vec!['b', 'd'], vec!['d']));
        let mut alone = vec!['a'];
        assert_eq!(common(vec![&mut alone], |_| true), []);
        assert_eq!(alone, ['a']);
    }
}
