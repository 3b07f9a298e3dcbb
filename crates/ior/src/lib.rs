//! The command lines of IOR and mdtest, for scripts that have them.
//!
//! Their options become jobs ([`ior::Ior::read`], [`mdtest::Mdtest::read`]), which [`job_file`] writes as a job file; the
//! record of a run is printed in their formats, so that what reads their output goes on. An option that this program does
//! not have is refused with the reason and with what to use instead. What it has, but does in another way, is noted.
//!
//! Cannot do: other interfaces than POSIX, configuration files, JSON and CSV as IOR writes them.
//!
//! Source: ior 4.0 and mdtest 4.0 (their `--help`, `ior-output.c`, `mdtest.c`).

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod figures;
pub mod ior;
mod job_file;
pub mod mdtest;
#[cfg(test)]
mod public_parsers;
mod words;
pub mod written;

pub use figures::warnings;
pub use job_file::job_file;

use trueio_model::JobSpec;

/// The jobs of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    /// The jobs.
    pub jobs: Vec<JobSpec>,
    /// What the program does in another way, one sentence each.
    pub notes: Vec<String>,
}

/// A job that a command line of `program` sets; the origin of each option is the program's own option.
fn job(name: &str, program: &str, options: &[(&str, &str)]) -> JobSpec {
    let mut spec = JobSpec::new(name);
    let language = if program == "ior" { &written::IOR } else { &written::MDTEST };
    for (option, value) in options {
        let flag = language.word(option).unwrap_or(program).to_owned();
        spec.set(option, *value, trueio_model::Origin::Flag { flag });
    }
    spec
}
