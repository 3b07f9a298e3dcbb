//! Verification across jobs: others may write to the files that a job verifies, at the same time or before it.
//!
//! What a job compares must have been written, whole, by jobs that leave what it looks for; else an honest disk would be
//! accused. Files are told apart by what they are, not by how their paths are spelled.
//!
//! Cannot see: what other programs write, and whether an existing file that no job writes holds what is looked for.

use super::job::Run;
use crate::facts::Identity;
use crate::refusal::{Refusal, Rule};
use std::collections::BTreeMap;
use trueio_model::{Checksum, FilePlan, JobPlan, OpKind, OpMix, Order, Prepare};

/// A part of a file: from a byte on, up to another.
type Part = (u64, u64);

/// Refuses jobs whose verification could not tell right from wrong because of the others.
pub(super) fn check_verify(run: &mut Run<'_>, jobs: &[JobPlan]) -> Result<(), Refusal> {
    if jobs.len() < 2 && !jobs.iter().any(compares_what_it_reads) || jobs.iter().all(|job| job.verify.is_none()) {
        return Ok(());
    }
    let mut users: BTreeMap<Identity, Vec<(&JobPlan, &FilePlan)>> = BTreeMap::new();
    for job in jobs {
        for file in &job.files {
            users.entry(run.facts.identity(&file.path)).or_default().push((job, file));
        }
    }
    // In the order of the jobs, so that the first one is refused.
    for job in jobs.iter().filter(|job| job.verify.is_some()) {
        for file in &job.files {
            let users = users.get(&run.facts.identity(&file.path)).map_or(&[][..], |users| users);
            let others = || users.iter().filter(|(other, _)| other.name != job.name && other.modifies_files());
            let part = |file: &FilePlan| (file.offset_bytes, file.offset_bytes.saturating_add(file.size_bytes));
            let mut beside = others().filter(|(other, _)| other.phase == job.phase);
            if let Some((other, as_other)) = beside.find(|(_, as_other)| overlap(part(file), part(as_other))) {
                let name = match as_other.path == file.path {
                    true => format!("`{}`", file.path),
                    false => format!("`{}`, which is `{}`,", as_other.path, file.path),
                };
                let reason = format!("job `{}` writes to {name} at the same time", other.name);
                return Err(refuse(job, reason, "let one wait for the other: `stonewall = true`"));
            }
            // A job that only reads compares every block; one that writes, too, those that it knows for its own.
            if compares_what_it_reads(job) {
                let before: Vec<_> = others().filter(|(other, _)| other.phase < job.phase).copied().collect();
                check_before(run, job, file, &before)?;
            }
        }
    }
    Ok(())
}

fn refuse(job: &JobPlan, reason: String, hint: &'static str) -> Refusal {
    Refusal { job: Some(job.name.clone()), origin: None, rule: Box::new(Rule::VerifyImpossible { reason, hint }) }
}

fn compares_what_it_reads(job: &JobPlan) -> bool {
    let Some(verify) = &job.verify else { return false };
    verify.is_offline || matches!(job.pattern.mix, OpMix::Only(OpKind::Read))
}

/// Refuses a job whose blocks nobody has written before it in a way that can be compared. `before` are those that wrote
/// to the file in earlier phases, in their order.
fn check_before(
    run: &mut Run<'_>,
    job: &JobPlan,
    file: &FilePlan,
    before: &[(&JobPlan, &FilePlan)],
) -> Result<(), Refusal> {
    // Below the write pointers of zones is what somebody wrote there, and nothing else.
    let reads_written_only = job.zones.is_some_and(|zones| !zones.reads_beyond);
    let checksum = job.verify.as_ref().map(|verify| verify.checksum);
    // A writer that does not verify is known by its blocks: they have no header, or are not what is expected.
    let tells_writers = match reads_written_only {
        true => checksum.is_some_and(|checksum| checksum != Checksum::Null),
        false => checksum.is_some_and(Checksum::has_header),
    };
    let needed = part_used(job, file);
    // What was there before the run is taken at the user's word.
    let mut written: Vec<Part> = if file.prepare == Prepare::UseExisting { vec![(0, u64::MAX)] } else { Vec::new() };
    let mut last_without = None;
    for (other, as_other) in before.iter().filter(|(other, _)| !other.handling.creates_only) {
        if other.verify.is_some() {
            written.extend(part_written(other, as_other));
            last_without = last_without.filter(|_| part_written(other, as_other).is_none());
        } else if tells_writers && overlap(needed, (as_other.offset_bytes, as_other.offset_bytes + as_other.size_bytes))
        {
            written.clear();
            last_without = Some(other.name.as_str());
        }
    }
    let is_comparable = match reads_written_only {
        true => last_without.is_none(),
        false => covers(written, needed),
    };
    if !is_comparable {
        let reason = match last_without {
            Some(other) => format!("job `{other}`, before it, writes to `{}` without `verify`", file.path),
            None => format!("no job before it writes verifiable blocks to all of `{}` that it reads", file.path),
        };
        let hint =
            "put a job before it that writes all of the same `filename` with `verify`, and `stonewall = true` here";
        return Err(refuse(job, reason, hint));
    }
    let may_end_early = |other: &JobPlan| other.verify.is_some() && other.limits.runtime_ns.is_some();
    let reads_all = file.prepare != Prepare::UseExisting && !reads_written_only;
    if let Some((other, _)) = before.iter().find(|(other, _)| reads_all && may_end_early(other)) {
        let sentence =
            format!("blocks that `{}` has not written when its `runtime` ends count as wrong in `verify`", other.name);
        run.note(&job.name, &sentence);
    }
    Ok(())
}

/// The bytes of a job's pass, and of its files.
fn pass_bytes(job: &JobPlan) -> (u64, u64) {
    let pattern = &job.pattern;
    let sizes = match pattern.mix {
        OpMix::Only(OpKind::Read) => &pattern.read_sizes,
        _ => &pattern.write_sizes,
    };
    let block = sizes.max_bytes().max(1);
    let by_count = job.limits.io_count.map_or(u64::MAX, |count| count.saturating_mul(block));
    let all = job.files.iter().map(|file| file.size_bytes - file.size_bytes % block).fold(0, u64::saturating_add);
    (job.limits.io_bytes.min(by_count), all)
}

/// The beginning of a file's region, if a job gets no further: in order, in one file.
fn beginning(job: &JobPlan, file: &FilePlan, bytes: u64) -> Option<Part> {
    let is_in_order = job.pattern.order == Order::Sequential && job.pattern.steps.is_none() && job.files.len() == 1;
    is_in_order.then(|| (file.offset_bytes, file.offset_bytes.saturating_add(bytes)))
}

/// What of a file a job may compare.
fn part_used(job: &JobPlan, file: &FilePlan) -> Part {
    let (bytes, all) = pass_bytes(job);
    let whole = (file.offset_bytes, file.offset_bytes.saturating_add(all.min(file.size_bytes)));
    if bytes >= all { whole } else { beginning(job, file, bytes).unwrap_or(whole) }
}

/// What of a file has what can be compared when a job that verifies has ended; `None`: nobody knows.
fn part_written(job: &JobPlan, file: &FilePlan) -> Option<Part> {
    let trims = job.verify.as_ref().is_some_and(|verify| verify.trim.is_some());
    // Of zones some are written often and others not at all, and what is behind a capacity never is.
    if trims || job.zones.is_some() || job.pattern.mix != OpMix::Only(OpKind::Write) {
        return None;
    }
    let (bytes, all) = pass_bytes(job);
    if bytes >= all {
        return Some((file.offset_bytes, file.offset_bytes.saturating_add(file.size_bytes)));
    }
    beginning(job, file, bytes)
}

fn overlap(one: Part, other: Part) -> bool {
    one.0 < other.1 && other.0 < one.1
}

/// Whether parts together hold another.
fn covers(mut parts: Vec<Part>, needed: Part) -> bool {
    parts.sort_unstable();
    let reached =
        parts.into_iter().fold(needed.0, |reached, (from, to)| if from <= reached { reached.max(to) } else { reached });
    reached >= needed.1
}
