//! `--debug=parse`: the options in the order read, in fio's lines: `parse    PID handle_option=NAME, ptr=VALUE`.
//!
//! Global options are printed once, before the first job that they apply to. A limit of `steadystate` has a line of its own. fio's
//! other lines about its own parser (types, lines of files, copies of options) are left out.
//!
//! Source: what fio 3.33 prints.

use crate::language::FioRequest;
use std::fmt::Write;
use trueio_job::value::{Value, ValueKind};
use trueio_model::{CriterionVariable, FioWord};

/// Returns the lines of all jobs, or of the job at the position that `--debug` names. Clones have no lines of their own.
pub(super) fn lines(request: &FioRequest, process: u32) -> String {
    let only = request.settings.debug_job;
    let mut text = String::new();
    let mut print = |word: &FioWord| {
        let value = if word.text.is_empty() { "(null)" } else { &word.text };
        let lines = [Some(format!("handle_option={}, ptr={value}", word.name)), limit(word)];
        for line in lines.iter().flatten() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:<8} {process:<5} {line}", "parse");
        }
    };
    request.globals.iter().for_each(&mut print);
    let mut before: Vec<&FioWord> = Vec::new();
    for (index, job) in request.jobs.iter().enumerate() {
        let Some(fio) = job.fio.as_ref().filter(|fio| only.map_or(fio.clone == 0, |only| only == index)) else {
            continue;
        };
        let (of_all, own): (Vec<&FioWord>, Vec<&FioWord>) = fio.given.iter().partition(|word| word.is_global);
        // Each job has the global options of the jobs before it in its file, and may have more.
        let printed = of_all.iter().zip(&before).take_while(|(word, other)| word == other).count();
        of_all.iter().skip(printed).chain(&own).for_each(|word| print(word));
        before = of_all;
    }
    text
}

/// Returns the line about the limit of `steadystate`.
fn limit(word: &FioWord) -> Option<String> {
    if word.name != "steadystate" {
        return None;
    }
    let Ok(Value::Criterion(criterion)) = ValueKind::Criterion.read(&word.text) else { return None };
    let limit = criterion.limit;
    Some(match criterion.variable {
        _ if criterion.is_percent => format!("set steady state threshold to {limit:.6}%"),
        CriterionVariable::Ios => format!("set steady state IOPS threshold to {limit:.6}"),
        CriterionVariable::Bytes => format!("set steady state BW threshold to {limit:.0}"),
        CriterionVariable::Latency => format!("set steady state latency threshold to {limit:.0} nsec"),
    })
}
