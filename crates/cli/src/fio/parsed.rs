//! `--debug=parse`: what was read, in fio's lines: `parse    PID handle_option=NAME, ptr=VALUE`, in the order read.
//!
//! What holds for all jobs stands once, before the first job that it holds for. fio's lines about its own reader (types,
//! lines of files, copies of options) are not there.
//!
//! Source: what fio 3.33 prints.

use std::fmt::Write;
use trueio_model::{FioWord, JobSpec};

/// The lines of all jobs, or of the one at a position; clones are the job that they are of.
pub(super) fn lines(jobs: &[JobSpec], only: Option<usize>, process: u32) -> String {
    let mut text = String::new();
    let mut told = 0;
    for (index, job) in jobs.iter().enumerate() {
        let Some(fio) = job.fio.as_ref().filter(|fio| only.map_or(fio.clone == 0, |only| only == index)) else {
            continue;
        };
        let (of_all, own): (Vec<&FioWord>, Vec<&FioWord>) = fio.given.iter().partition(|word| word.is_global);
        // Each job has those of the jobs before it, and may have more.
        for word in of_all.iter().skip(told).chain(&own) {
            let value = if word.text.is_empty() { "(null)" } else { &word.text };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:<8} {process:<5} handle_option={}, ptr={value}", "parse", word.name);
        }
        told = told.max(of_all.len());
    }
    text
}
