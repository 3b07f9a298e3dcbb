//! Pure functions on measurements: what a sample says, and what it cannot say.
//!
//! One method a file, each with its source. Nothing here reads a clock, a file or a random number;
//! the same histogram gives the same answer on every machine.
//!
//! Cannot see: whether the sample is independent. The intervals are exact for independent draws;
//! I/Os of one run depend on each other (a busy second follows a busy second), so an interval says
//! how well this sample pins its own quantile down, not how far the next run will be from it.

mod binomial;
mod change_point;
mod moments;
mod quantile;
mod steady;

pub use binomial::{Ranks, interval_ranks, least_share_above, minimum_count};
pub use change_point::{ChangePoint, SEGMENT_MIN, change_points};
pub use moments::{mean_ns, stddev_ns};
pub use quantile::{Quantile, quantile};
pub use steady::{SteadyRule, WindowFit};
