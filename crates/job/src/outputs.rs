//! Outputs against inputs: nothing that is written beside the jobs may replace what somebody measures or reads, or
//! mix with another output.
//!
//! There is one check ([`check_outputs`]), over everything that a command and all phases of its plan read and write:
//! targets, logs that are replayed, job files and what they include, states, documents, logs, what programs print. Two
//! names are one file if the device and inode behind them say so, or the plain path of what does not exist yet. An
//! output is missing or a regular file, never a disk ([`FactsSource::obstacle`]). What an earlier run wrote under its
//! name is replaced, as fio does it.
//!
//! `verify_dump` is not here: its files are made under names that are free, or not at all.
//!
//! Cannot see: what is made under a name after the plan was made. Who opens an output of a job follows no link, and
//! takes nothing away from what is no regular file.

use crate::facts::{FactsSource, FileUse, Identity, Role};
use crate::refusal::Rule;
use std::collections::BTreeMap;
use trueio_model::{JobPlan, LogKind};

/// Every file of a plan's jobs.
pub(crate) fn files_of(jobs: &[JobPlan], sends_logs: bool) -> Vec<FileUse> {
    let mut files = Vec::new();
    let mut number = 1;
    for job in jobs {
        let who = format!("job `{}`", job.name);
        let option = |name: &str| format!("`{name}` of {who}");
        files.extend(job.files.iter().map(|file| FileUse::new(&file.path, &who, Role::Target)));
        files.extend(job.replay.iter().map(|replay| FileUse::new(&replay.log, option("read_iolog"), Role::Input)));
        if let Some(printed) = job.exec.as_ref().and_then(|exec| exec.output_files()) {
            files.extend(printed.map(|path| FileUse::new(path, format!("the program of {who}"), Role::Output)));
        }
        if let Some(verify) = &job.verify {
            let states = |name, role| {
                (0..job.workers).map(move |worker| FileUse::new(job.verify_state_file(worker), option(name), role))
            };
            if verify.loads_state {
                files.extend(states("verify_state_load", Role::Input));
            }
            if verify.saves_state {
                files.extend(states("verify_state_save", Role::Output));
            }
        }
        let logs = &job.output.logs;
        files.extend(logs.iolog.iter().map(|path| FileUse::new(path, option("write_iolog"), Role::Output)));
        let role = if logs.is_shared { Role::SharedLog } else { Role::Output };
        let workers = if sends_logs || logs.is_empty() { 0 } else { job.workers };
        for worker in 0..if logs.is_shared { workers.min(1) } else { workers } {
            let of_worker = LogKind::ALL.into_iter().filter_map(|kind| {
                let option = match kind {
                    LogKind::Bw => "write_bw_log",
                    LogKind::Iops => "write_iops_log",
                    LogKind::Slat | LogKind::Clat | LogKind::Lat => "write_lat_log",
                    LogKind::Histogram => "write_hist_log",
                };
                Some(FileUse::new(logs.file(kind, number + worker)?, format!("`{option}` of {who}"), role))
            });
            files.extend(of_worker);
        }
        number += job.workers;
    }
    files
}

/// Refuses outputs that would replace what is measured or read, that are one file, or that cannot be written.
///
/// # Errors
/// The first of them.
pub fn check_outputs(files: &[FileUse], facts: &dyn FactsSource) -> Result<(), Rule> {
    if !files.iter().any(|file| file.role.is_written()) {
        return Ok(());
    }
    // Inputs first, so that the message names what would be lost.
    let mut known: BTreeMap<Identity, &FileUse> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.role.is_written()) {
        known.entry(facts.identity(&file.path)).or_insert(file);
    }
    for output in files.iter().filter(|file| file.role.is_written()) {
        let (what, path) = (output.by.clone(), output.path.clone());
        let identity = facts.identity(&path);
        match known.get(&identity) {
            Some(other) if (output.role, other.role) == (Role::SharedLog, Role::SharedLog) => continue,
            Some(other) => {
                let (other_path, who) = (other.path.clone(), format!("{} {}", other.by, other.role.verb()));
                return Err(Rule::OutputReplaces { what, path, other: other_path, who });
            }
            None => {}
        }
        let reason = facts.obstacle(&path, output.role == Role::Document).or_else(|| match identity {
            // A file below a loop device, or swap.
            Identity::Inode { .. } => Some(facts.in_use(&path).ok()?.uses.first()?.sentence()),
            Identity::Name(_) => None,
        });
        if let Some(reason) = reason {
            return Err(Rule::OutputImpossible { what, path, reason });
        }
        known.insert(identity, output);
    }
    Ok(())
}
