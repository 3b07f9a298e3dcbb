//! Checks outputs against inputs: no output may replace a measured or read file, or be the same file as
//! another output.
//!
//! There is one check ([`check_outputs`]), over everything that a command and all phases of its plan read and
//! write: targets, replayed logs, job files with their includes, states, documents, logs, outputs of
//! programs. Two names are one file if device and inode are equal, or for missing files the plain paths. An
//! output is missing or a regular file, never a disk ([`FactsSource::obstacle`]). An output of an earlier run
//! with the same name is replaced if the command line permits it, as fio's language always does, and a file with other
//! content is not ([`FactsSource::holds_other`]).
//!
//! `verify_dump` is not checked here: its files are created under free names, or not at all.
//!
//! Limits: files that are created after the plan was made are not known. So an output of a job is opened without
//! following links, its identity and content are checked again through the descriptor, and only then is it truncated.

use crate::facts::{Content, FactsSource, FileUse, Identity, Role};
use crate::refusal::Rule;
use std::collections::BTreeMap;
use trueio_model::{FileId, JobPlan, LogKind};

/// Returns every file of a plan's jobs.
pub(crate) fn files_of(jobs: &[JobPlan], sends_logs: bool) -> Vec<FileUse> {
    let mut files = Vec::new();
    let mut number = 1;
    for job in jobs {
        files.extend(files_of_job(job, number, sends_logs));
        number += job.workers;
    }
    files
}

/// Returns every file of a job, whose first worker has this number in the run.
fn files_of_job(job: &JobPlan, number: u32, sends_logs: bool) -> Vec<FileUse> {
    let mut files = Vec::new();
    let user = format!("job `{}`", job.name);
    let option = |name: &str| format!("`{name}` of {user}");
    files.extend(job.files.iter().map(|file| FileUse::new(&file.path, &user, Role::Target)));
    files.extend(job.replay.iter().map(|replay| FileUse::new(&replay.log, option("read_iolog"), Role::Input)));
    if let Some(printed) = job.exec.as_ref().and_then(|exec| exec.output_files()) {
        files.extend(
            printed.map(|path| FileUse::new(path, format!("the program of {user}"), Role::Output(Content::Printed))),
        );
    }
    if let Some(verify) = &job.verify {
        let states = |name, role| {
            (0..job.workers).map(move |worker| FileUse::new(job.verify_state_file(worker), option(name), role))
        };
        if verify.loads_state {
            files.extend(states("verify_state_load", Role::Input));
        }
        if verify.saves_state {
            files.extend(states("verify_state_save", Role::Output(Content::VerifyState)));
        }
    }
    let logs = &job.output.logs;
    files.extend(logs.iolog.iter().map(|path| FileUse::new(path, option("write_iolog"), Role::Output(Content::Iolog))));
    let workers = if sends_logs || logs.is_empty() { 0 } else { job.workers };
    for worker in 0..if logs.is_shared { workers.min(1) } else { workers } {
        let of_worker = LogKind::ALL.into_iter().filter_map(|kind| {
            let option = match kind {
                LogKind::Bw => "write_bw_log",
                LogKind::Iops => "write_iops_log",
                LogKind::Slat | LogKind::Clat | LogKind::Lat => "write_lat_log",
                LogKind::Histogram => "write_hist_log",
            };
            let content = if logs.is_packed(kind) { Content::PackedLog } else { Content::Log };
            let role = if logs.is_shared { Role::SharedLog(content) } else { Role::Output(content) };
            Some(FileUse::new(logs.file(kind, number + worker)?, format!("`{option}` of {user}"), role))
        });
        files.extend(of_worker);
    }
    files
}

/// Records which existing files the outputs of jobs replace. The run compares them before it writes.
pub(crate) fn record_replaced(jobs: &mut [JobPlan], sends_logs: bool, facts: &dyn FactsSource) {
    let mut number = 1;
    for job in jobs {
        let outputs = files_of_job(job, number, sends_logs).into_iter().filter(|file| file.role.content().is_some());
        let identity = |path: &str| match facts.identity(path) {
            Identity::Inode { device, inode } => Some(FileId { device, inode }),
            Identity::Name(_) => None,
        };
        let replaced = outputs.filter_map(|file| identity(&file.path).map(|id| (file.path, id))).collect();
        number += job.workers;
        job.output.replaced = replaced;
    }
}

/// Refuses outputs that would replace a measured or read file, that are one file, or that cannot be written.
///
/// An output of a job replaces an existing file, with content of its kind, only if `may_replace`; a document, which the
/// command line names, replaces any regular file.
///
/// # Errors
/// The first of them.
pub fn check_outputs(files: &[FileUse], may_replace: bool, facts: &dyn FactsSource) -> Result<(), Rule> {
    if !files.iter().any(|file| file.role.is_written()) {
        return Ok(());
    }
    // Inputs first, so that the message names the file that would be lost.
    let mut known: BTreeMap<Identity, &FileUse> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.role.is_written()) {
        known.entry(facts.identity(&file.path)).or_insert(file);
    }
    for output in files.iter().filter(|file| file.role.is_written()) {
        let (what, path) = (output.by.clone(), output.path.clone());
        let identity = facts.identity(&path);
        match known.get(&identity) {
            Some(other) if output.role == other.role && matches!(output.role, Role::SharedLog(_)) => continue,
            Some(other) => {
                let (other_path, other_use) = (other.path.clone(), format!("{} {}", other.by, other.role.verb()));
                return Err(Rule::OutputReplaces { what, path, other: other_path, other_use });
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
        if let Some(content) = output.role.content() {
            match facts.holds_other(&path, content) {
                Ok(false) => {}
                Ok(true) => return Err(Rule::OutputUnrecognised { what, path, content: content.name() }),
                Err(reason) => {
                    let reason = format!("its content cannot be checked: {reason}");
                    return Err(Rule::OutputImpossible { what, path, reason });
                }
            }
            if !may_replace && matches!(identity, Identity::Inode { .. }) {
                return Err(Rule::OutputExists { what, path });
            }
        }
        known.insert(identity, output);
    }
    Ok(())
}
