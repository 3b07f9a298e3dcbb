//! Many ranks of one run: each measures on its host, and rank 0 makes one record of all of them.
//!
//! The launcher that the site has starts the ranks (`mpirun`, `srun`, `mpiexec.hydra`, a Job); [`launcher`] finds rank and
//! size. Everything else goes over one TCP connection from each rank to rank 0 ([`star`]): agreement on the jobs, clock
//! comparisons, the common start, results, and that a rank ended. [`run`] is a rank's part of a run.
//!
//! Cannot do: start processes on other hosts, or find out more of a rank's host than that rank reports.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod agreement;
mod budget;
mod checks;
mod clock;
mod conduct;
mod digest;
mod figures;
pub mod frame;
mod guard;
pub mod launcher;
mod limit;
mod member;
mod merge;
mod message;
mod names;
pub mod range;
mod ready;
mod sample;
mod shared;
pub mod star;
mod streams;
#[cfg(test)]
mod testing;
pub mod token;
mod weight;

pub use checks::NAMES as CHECKS;
pub use clock::Clock;
pub use conduct::{OnSample, begin_together, run, wait_through};
pub use digest::digest;
pub use guard::guarded;
pub use launcher::{Launched, Unreachable, connect};
pub use limit::Limit;
pub use member::{EXIT_UNREACHABLE, Member, Refused, host_name};
pub use names::{Place, for_rank};
pub use ready::ready;
pub use sample::{JobSample, RankSample, Sample};
pub use shared::SharedFiles;
