//! `--debug=parse`: the options in the order read, in fio's lines: `parse    PID handle_option=NAME, ptr=VALUE`.
//!
//! Global options are printed once, before the first job that they apply to. fio's lines about its own parser (types,
//! lines of files, copies of options) are left out.
//!
//! Source: what fio 3.33 prints.

use std::fmt::Write;
use trueio_model::{FioWord, JobSpec};

/// Returns the lines of all jobs, or of the job at a position. Clones have no lines of their own.
pub(super) fn lines(jobs: &[JobSpec], only: Option<usize>, process: u32) -> String {
    let mut text = String::new();
    let mut printed = 0;
    for (index, job) in jobs.iter().enumerate() {
        let Some(fio) = job.fio.as_ref().filter(|fio| only.map_or(fio.clone == 0, |only| only == index)) else {
            continue;
        };
        let (of_all, own): (Vec<&FioWord>, Vec<&FioWord>) = fio.given.iter().partition(|word| word.is_global);
        // Each job has the global options of the jobs before it, and may have more.
        for word in of_all.iter().skip(printed).chain(&own) {
            let value = if word.text.is_empty() { "(null)" } else { &word.text };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:<8} {process:<5} handle_option={}, ptr={value}", "parse", word.name);
        }
        printed = printed.max(of_all.len());
    }
    text
}
