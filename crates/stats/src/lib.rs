//! Pure functions on measurements: what a sample shows, and what it cannot show.
//!
//! One method a file, each with its source. Nothing here reads a clock or a file, and random numbers come
//! from a seed that the caller gives: the same input gives the same answer on every machine.
//!
//! I/Os of one run depend on each other: a busy second follows a busy second. The intervals of one run's percentiles, mean and rate
//! allow for that (`dependence`, `long_run`). How far the next run will be from it no single run shows: for that there are pairs of
//! interleaved slices (`hodges_lehmann`, `sign_flip`, `bca`) and blocks of a series (`blocks`).

mod bca;
mod binomial;
mod blocks;
mod change_point;
mod decision;
mod dependence;
mod hodges_lehmann;
mod holm;
mod long_run;
mod moments;
mod noise_floor;
mod normal;
mod obrien_fleming;
mod quantile;
mod random;
mod sign_flip;
mod slice_quantile;
mod steady;
#[cfg(test)]
mod testing;

pub use bca::{BCA_PAIRS_MIN, bca};
pub use binomial::{Ranks, interval_ranks, least_share_above, minimum_count};
pub use blocks::{Blocks, autocorrelation, blocks, log_ratio_of_means};
pub use change_point::{ChangePoint, SEGMENT_MIN, change_points};
pub use decision::{Decision, decide, pairs_needed};
pub use dependence::{
    BEYOND_MIN, NoInterval, dependence, independent_beyond, joined_dependence, mean_interval, quantile_interval,
};
pub use hodges_lehmann::{Interval, hodges_lehmann, hodges_lehmann_estimate, least_pairs};
pub use holm::{holm, holm_alphas};
pub use long_run::rate_interval;
pub use moments::{mean_ns, stddev_ns};
pub use noise_floor::noise_floor;
pub use normal::{normal_quantile, normal_share_below, student_quantile};
pub use obrien_fleming::{LOOKS_MAX, obrien_fleming, obrien_fleming_alpha};
pub use quantile::{Quantile, quantile};
pub use sign_flip::sign_flip_p;
pub use slice_quantile::{quantile_within, slice_least_count, slice_quantile};
pub use steady::{SteadyRule, WindowFit, criterion};
