//! Is one side better than another, or is it noise?
//!
//! Two ways to an answer: [`interleave`] runs all sides in short slices, in random order, until the answer is clear;
//! [`compare_runs`] reads records of earlier runs and concludes what they allow. Both give a
//! [`trueio_model::Comparison`], on which limits decide for a CI service.
//!
//! Everything but [`SessionBench`] is a pure function of figures: the statistics are tested on recorded noise.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod answer;
mod assemble;
pub mod circumstances;
pub mod fio;
mod gate;
mod live;
mod records;
mod sample;
mod session;

pub use answer::{Question, answers};
pub use assemble::{Head, from_records, from_rounds};
pub use gate::{GateError, change, check_gate, metric_names, metric_of};
pub use live::{Bench, Interleaved, Settings, SliceOrder, Standing, interleave, least_time_ns};
pub use records::{Compared, Named, RecordsError, StoredRun, compare_runs};
pub use sample::{Sample, Shape};
pub use session::{Quiet, SessionBench, precondition};
