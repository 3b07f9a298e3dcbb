//! Seeds: derives the seeds of workers, files and rounds from a job's seed.
//!
//! Source: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).

/// Step between the states of SplitMix64: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns output `number` of SplitMix64 seeded with `seed`; outputs count from 1, 0 mixes `seed` itself.
#[inline]
pub fn nth_mix64(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(STEP.wrapping_mul(number));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the first output of SplitMix64: neighbouring seeds give unrelated bits.
#[inline]
pub fn mix64(seed: u64) -> u64 {
    nth_mix64(seed, 1)
}

/// Returns the seed of one worker of a job.
#[inline]
pub fn worker_seed(job_seed: u64, worker: u32) -> u64 {
    mix64(job_seed ^ mix64(u64::from(worker)))
}

/// Returns the seed of a rank's part of a job. Rank 0 has the job's own: a run of one process is rank 0.
pub fn rank_seed(job_seed: u64, rank: u32) -> u64 {
    /// Keeps the seeds of ranks apart from those of workers, which are mixed with small numbers.
    const RANKS: u64 = 1 << 40;
    if rank == 0 { job_seed } else { mix64(job_seed ^ mix64(RANKS + u64::from(rank))) }
}

/// Returns the job's seed in a round before the steady state, counted from 0.
///
/// The measured part keeps the job's own seed, which no round has: STEP is odd, so its multiples below 2^64 differ.
pub fn round_seed(job_seed: u64, round: u32) -> u64 {
    job_seed.wrapping_add(STEP.wrapping_mul(u64::from(round) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outputs of Vigna's `splitmix64.c` for seed 1234567.
    #[test]
    fn outputs_are_those_of_splitmix64() {
        let outputs: Vec<u64> = (1..=3).map(|number| nth_mix64(1_234_567, number)).collect();
        assert_eq!(outputs, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        assert_eq!(mix64(1_234_567), outputs[0]);
    }

    /// A record holds a job's seed and not those derived from it: they must not change between versions.
    #[test]
    fn derived_seeds_are_the_same_in_every_version() {
        assert_eq!(worker_seed(7, 2), mix64(7 ^ mix64(2)));
        assert_eq!([0, 3].map(|rank| rank_seed(7, rank)), [7, mix64(7 ^ mix64((1 << 40) + 3))]);
        let rounds: Vec<u64> = (0..2).map(|round| round_seed(7, round)).collect();
        assert_eq!(rounds, [0x9e37_79b9_7f4a_7c1c, 0x3c6e_f372_fe94_f831]);
    }
}
