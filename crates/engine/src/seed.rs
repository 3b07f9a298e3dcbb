//! Seeds: every random choice of a worker derives from the job's seed.

use trueio_model::JobPlan;

/// One step of SplitMix64: turns any seed into well mixed bits.
pub(crate) fn mix64(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the seed of one worker of a job.
pub(crate) fn worker_seed(plan: &JobPlan, worker: u32) -> u64 {
    mix64(plan.seed ^ mix64(u64::from(worker)))
}
