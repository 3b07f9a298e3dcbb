//! What differs between the ranks in the options of jobs: `$rank`, `${rank8}` and `$host` in the names of files, and the
//! rank whose region, names and I/Os a job uses.

use trueio_job::options::limits::rows::{COMPLETE_IOS_OF, REPEAT_IOS_OF};
use trueio_job::options::target::rows::{
    NAME_DIRECTORY, RANK_PLACE, RANK_SHIFT, RANK_SHIFT_BY, RANK_SHIFT_SEED, ShiftBy,
};
use trueio_job::row;
use trueio_model::{JobSpec, Origin, mix64};

/// A rank among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its number, from 0.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
    /// Its host's name.
    pub host: String,
    /// Ranks to the nearest one of another host, from each rank; 1 if all run on one host.
    pub host_stride: u32,
}

impl Place {
    /// The place of a process that is alone, on a host of this name.
    pub fn alone(host: String) -> Self {
        Self { rank: 0, size: 1, host, host_stride: 1 }
    }

    /// Returns the rank whose region, names and I/Os a job uses: this one, or another by `rank_shift`.
    pub(crate) fn of(&self, spec: &JobSpec) -> u32 {
        let count = u64::from(RANK_SHIFT.value_in(spec));
        let shift = match RANK_SHIFT_BY.value_in(spec) {
            ShiftBy::Rank => count,
            ShiftBy::Host => count * u64::from(self.host_stride),
            ShiftBy::Random => {
                let min = count.min(u64::from(self.size) - 1);
                let drawn = mix64(RANK_SHIFT_SEED.value_in(spec) ^ mix64(u64::from(self.rank)));
                min + drawn % (u64::from(self.size) - min)
            }
        };
        ((u64::from(self.rank) + shift) % u64::from(self.size)) as u32
    }
}

/// Returns the smallest distance at which each rank comes to a rank of another kernel; 1: there is none. `kernels` has the
/// kernel of each rank.
pub(crate) fn host_stride(kernels: &[&str]) -> u32 {
    let count = kernels.len();
    let leaves_host = |shift: &usize| (0..count).all(|rank| kernels[rank] != kernels[(rank + shift) % count]);
    (1..count).find(leaves_host).unwrap_or(1) as u32
}

/// Replaces the placeholders of a rank in a name.
pub(crate) fn with_rank(text: &str, rank: u32) -> String {
    text.replace("${rank8}", &format!("{rank:08}")).replace("$rank", &rank.to_string())
}

/// Completes the options of jobs for one rank.
pub fn for_rank(specs: &mut [JobSpec], place: &Place) {
    for spec in specs {
        for (name, value) in &mut spec.options {
            if value.text.contains('$') && row(name).is_some_and(|row| row.names_path()) {
                // A colon separates paths.
                let host = place.host.replace(':', "\\:");
                value.text = with_rank(&value.text, place.rank).replace("$host", &host);
            }
        }
        let has = |name: &str| spec.options.contains_key(name);
        if [NAME_DIRECTORY.name, REPEAT_IOS_OF.name, COMPLETE_IOS_OF.name, RANK_SHIFT.name].into_iter().any(has) {
            let reason = "the rank's number and `rank_shift`".to_owned();
            spec.set(RANK_PLACE.name, place.of(spec).to_string(), Origin::Derived { reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rank: u32) -> Place {
        Place { rank, size: 4, host: "node7".into(), host_stride: 2 }
    }

    #[test]
    fn only_names_of_files_are_changed() {
        let mut spec = JobSpec::new("a");
        spec.set("filename", "/mnt/$host/data-$rank.dat:/mnt/b.${rank8}", Origin::Default);
        spec.set("rw", "read", Origin::Default);
        for_rank(std::slice::from_mut(&mut spec), &place(3));
        assert_eq!(spec.options["filename"].text, "/mnt/node7/data-3.dat:/mnt/b.00000003");
        assert_eq!(spec.options["rw"].text, "read");
        assert!(!spec.options.contains_key("rank_place"));
    }

    #[test]
    fn jobs_that_share_names_or_follow_others_get_the_rank_that_they_use() {
        for (option, by, used) in [("name_directory", "rank", "0"), ("repeat_ios_of", "host", "1")] {
            let mut spec = JobSpec::new("a");
            spec.set(option, "b", Origin::Default);
            spec.set("rank_shift", "1", Origin::Default);
            spec.set("rank_shift_by", by, Origin::Default);
            for_rank(std::slice::from_mut(&mut spec), &place(3));
            assert_eq!(spec.options["rank_place"].text, used, "{option}");
        }
    }

    #[test]
    fn the_stride_leads_each_rank_to_another_host() {
        for (kernels, stride) in [
            (&["a", "b", "c"][..], 1),
            (&["a", "a", "b", "b"], 2),
            (&["a", "b", "a", "b"], 1),
            (&["a", "a", "a", "b", "b", "b"], 3),
            (&["a", "a", "a", "b"], 1),
            (&["a", "a"], 1),
            (&["a"], 1),
        ] {
            assert_eq!(host_stride(kernels), stride, "{kernels:?}");
        }
    }
}
