//! How many I/Os jobs have reached, for jobs that follow them (`repeat_ios_of`, `complete_ios_of`).
//!
//! Counted from the beginning of the pattern: a job that completes another one begins where that ended. In a run of several
//! ranks each number is known by rank.

use std::borrow::Cow;
use std::collections::BTreeMap;
use trueio_model::{Follow, FollowKind, JobPlan, OpKind, PhaseRecord};

/// The I/Os that followed jobs have reached.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// By job; one entry for each rank, or for this process alone.
    by_job: BTreeMap<String, Vec<u64>>,
    /// Of this process.
    own: BTreeMap<String, u64>,
}

impl Reached {
    /// Returns the jobs of a phase that have I/Os to do, with their first one and their number.
    pub(crate) fn jobs<'j>(
        &mut self,
        planned: impl Iterator<Item = &'j JobPlan>,
    ) -> impl Iterator<Item = Cow<'j, JobPlan>> {
        let mut jobs = Vec::new();
        for plan in planned {
            let mut job = Cow::Borrowed(plan);
            if let Some(follow) = &plan.follows {
                let job = job.to_mut();
                let (first, end) = self.range(follow);
                // A job without I/Os to do ends at its first position.
                self.own.insert(job.name.clone(), first);
                self.by_job.insert(job.name.clone(), vec![first]);
                job.skipped_ios = first;
                job.limits.io_count = Some(end - first);
                if end == first {
                    continue;
                }
            }
            jobs.push(job);
        }
        jobs.into_iter()
    }

    /// Returns the range of I/Os of a job that follows another one: its first, and the one after its last.
    fn range(&self, follow: &Follow) -> (u64, u64) {
        let by_rank = self.by_job.get(&follow.job).map_or(&[][..], |by_rank| by_rank);
        let of_rank = by_rank.get(follow.rank as usize).copied().unwrap_or(0);
        match follow.kind {
            FollowKind::Repeat => (0, of_rank),
            FollowKind::Complete => (of_rank, by_rank.iter().copied().max().unwrap_or(0).max(of_rank)),
        }
    }

    /// Adds the I/Os of a phase, as far as jobs of the run follow its jobs.
    pub(crate) fn add(&mut self, phase: &PhaseRecord, jobs: &[JobPlan]) {
        if jobs.iter().all(|job| job.follows.is_none()) {
            return;
        }
        for job in &phase.jobs {
            let ios: u64 = job.ops.iter().filter(|op| op.op != OpKind::Sync).map(|op| op.io_count).sum();
            let own = self.own.entry(job.name.clone()).or_insert(0);
            *own += ios;
            self.by_job.insert(job.name.clone(), vec![*own]);
        }
    }

    /// Returns the numbers of this process.
    pub(crate) fn own(&self) -> BTreeMap<String, u64> {
        self.own.clone()
    }

    /// Sets the numbers of all ranks.
    pub(crate) fn set(&mut self, job: &str, by_rank: Vec<u64>) {
        self.by_job.insert(job.to_owned(), by_rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::EngineKind;

    fn job(name: &str, follows: Option<(&str, FollowKind, u32)>) -> JobPlan {
        let follows = follows.map(|(job, kind, rank)| Follow { job: job.to_owned(), kind, rank });
        JobPlan { name: name.to_owned(), follows, ..JobPlan::plain(EngineKind::Null, 1 << 20) }
    }

    /// First I/O and number of the I/Os of a job; `None`: it has none to do.
    fn range(reached: &mut Reached, plan: &JobPlan) -> Option<(u64, u64)> {
        let job = reached.jobs(std::iter::once(plan)).next()?;
        Some((job.skipped_ios, job.limits.io_count.expect("it follows")))
    }

    #[test]
    fn a_job_repeats_the_ios_of_a_rank_or_completes_its_own_up_to_the_most() {
        let mut reached = Reached::default();
        reached.set("write", vec![10, 30, 25]);
        assert_eq!(range(&mut reached, &job("read", Some(("write", FollowKind::Repeat, 2)))), Some((0, 25)));
        let complete = |rank| job("rest", Some(("write", FollowKind::Complete, rank)));
        assert_eq!(range(&mut reached, &complete(0)), Some((10, 20)));
        assert_eq!(range(&mut reached, &complete(1)), None, "it did the most");
        assert_eq!(reached.own()["rest"], 30, "it has reached that nevertheless");
        assert_eq!(range(&mut reached, &job("read", Some(("other", FollowKind::Repeat, 0)))), None);
        let plain = job("plain", None);
        assert_eq!(reached.jobs(std::iter::once(&plain)).next().as_deref(), Some(&plain));
    }
}
