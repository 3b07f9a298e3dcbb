//! Verification across jobs: other jobs may write to the files that a job verifies, at the same time or
//! before it.
//!
//! The blocks that a job compares must have been written completely, by jobs whose content it expects;
//! otherwise a correct disk would be reported. Files are identified by device and inode, not by the spelling
//! of their paths.
//!
//! Cannot see: writes of other programs, and whether an existing file that no job writes has the expected
//! content.

use super::job::Run;
use crate::facts::Identity;
use crate::refusal::{Case, Refusal, Rule};
use std::collections::BTreeMap;
use trueio_model::{
    BlockSizes, Checksum, ContentKind, EngineKind, FilePlan, JobPlan, OpKind, OpMix, Order, Prepare, Verify,
};

/// A part of a file: from a byte on, up to another.
type Part = (u64, u64);

/// Refuses jobs whose verification could give wrong results because of the other jobs.
pub(super) fn check_verify(run: &mut Run<'_>, jobs: &mut [JobPlan]) -> Result<(), Refusal> {
    let sharing = sharing_jobs(run, jobs)?;
    for (job, name) in sharing {
        if let Some(verify) = &mut jobs[job].verify {
            verify.is_shared = true;
        }
        let sentence = format!(
            "`verify` accepts any write of the parallel jobs to `{name}`: a lost write is not found if another job wrote \
             the same block"
        );
        run.note(&jobs[job].name, &sentence);
    }
    Ok(())
}

/// Returns the jobs that verify blocks of a file to which parallel jobs write, too, with the file's path.
fn sharing_jobs(run: &mut Run<'_>, jobs: &[JobPlan]) -> Result<Vec<(usize, String)>, Refusal> {
    let mut sharing: Vec<(usize, String)> = Vec::new();
    if jobs.len() < 2 && !jobs.iter().any(compares_what_it_reads) || jobs.iter().all(|job| comparison(job).is_none()) {
        return Ok(sharing);
    }
    let mut users: BTreeMap<Identity, Vec<(&JobPlan, &FilePlan)>> = BTreeMap::new();
    for job in jobs {
        for file in &job.files {
            users.entry(run.facts.identity(&file.path)).or_default().push((job, file));
        }
    }
    // In the order of the jobs, so that the first one is refused.
    for (index, job) in jobs.iter().enumerate().filter(|(_, job)| comparison(job).is_some()) {
        for file in &job.files {
            let users = users.get(&run.facts.identity(&file.path)).map_or(&[][..], |users| users);
            let others = || users.iter().filter(|(other, _)| other.name != job.name && changes_content(other));
            let part = |file: &FilePlan| (file.offset_bytes, file.offset_bytes.saturating_add(file.size_bytes));
            let parallel = || {
                let others = users.iter().filter(|(other, _)| other.name != job.name && other.phase == job.phase);
                others.filter(|(_, as_other)| overlap(part(file), part(as_other)))
            };
            let is_offline = |other: &JobPlan| other.verify.as_ref().is_some_and(|verify| verify.is_offline);
            let is_clashing =
                |other: &JobPlan, as_other: &FilePlan| changes_content(other) && !accepts(job, file, other, as_other);
            let mut clashing = parallel().filter(|(other, as_other)| is_clashing(other, as_other));
            if let Some((other, as_other)) = clashing.next() {
                let name = match as_other.path == file.path {
                    true => format!("`{}`", file.path),
                    false => format!("`{}`, which is `{}`,", as_other.path, file.path),
                };
                let reason = format!("job `{}` writes to {name} at the same time", other.name);
                return Err(refuse(job, reason, Case::VerifyShared));
            }
            let is_sharing = parallel().any(|(other, _)| changes_content(other) || is_offline(other));
            if is_sharing && sharing.last().is_none_or(|(last, _)| *last != index) {
                sharing.push((index, file.path.clone()));
            }
            // A job that only reads compares every block; a job that writes also does, for the blocks that it
            // wrote itself.
            if compares_what_it_reads(job) {
                let before: Vec<_> = others().filter(|(other, _)| other.phase < job.phase).copied().collect();
                check_before(run, job, file, &before)?;
            }
        }
    }
    Ok(sharing)
}

/// Returns true if blocks of a file may hold other data after the job: `e4defrag` moves them, and their data stays.
fn changes_content(job: &JobPlan) -> bool {
    job.modifies_files() && job.engine != EngineKind::E4defrag
}

/// Returns how a job compares blocks; `None`: it does not (`verify=null`).
fn comparison(job: &JobPlan) -> Option<&Verify> {
    job.verify.as_ref().filter(|verify| verify.checksum != Checksum::Null)
}

/// Returns true if a job's verification gives right results while `other` writes to the same blocks: it compares
/// nothing, or only after all parallel jobs have ended their I/O, and both write the same kind of blocks.
fn accepts(job: &JobPlan, file: &FilePlan, other: &JobPlan, as_other: &FilePlan) -> bool {
    let Some(verify) = comparison(job) else { return true };
    let writes = job.pattern.mix != OpMix::Only(OpKind::Read);
    if !writes || verify.is_offline || verify.backlog > 0 || verify.trim.is_some() {
        return false;
    }
    if !verify.reads_back {
        return true;
    }
    let is_plain = |job: &JobPlan| job.zones.is_none() && job.replay.is_none();
    // A block, or a piece of one with a header of its own, is overwritten whole or not at all.
    let unit = match (&job.pattern.write_sizes, &other.pattern.write_sizes) {
        _ if verify.compares_pieces() => verify.interval_bytes,
        (BlockSizes::Fixed(size), BlockSizes::Fixed(theirs)) if size == theirs => *size,
        _ => return false,
    };
    let is_aligned = file.offset_bytes.abs_diff(as_other.offset_bytes).is_multiple_of(unit.max(1));
    let is_alike = |theirs: &Verify| verify.writes_like(theirs) && theirs.trim.is_none() && is_aligned;
    is_plain(job) && is_plain(other) && other.verify.as_ref().is_some_and(is_alike)
}

fn refuse(job: &JobPlan, reason: String, case: Case) -> Refusal {
    Refusal { job: Some(job.name.clone()), origin: None, rule: Box::new(Rule::VerifyImpossible { reason, case }) }
}

fn compares_what_it_reads(job: &JobPlan) -> bool {
    let Some(verify) = comparison(job) else { return false };
    verify.is_offline || matches!(job.pattern.mix, OpMix::Only(OpKind::Read))
}

/// Refuses a job if no earlier job has written its blocks in a comparable way. `before` are the jobs that
/// wrote to the file in earlier phases, in their order.
fn check_before(
    run: &mut Run<'_>,
    job: &JobPlan,
    file: &FilePlan,
    before: &[(&JobPlan, &FilePlan)],
) -> Result<(), Refusal> {
    // Below the write pointers of zones there is only written data.
    let reads_written_only = job.zones.is_some_and(|zones| !zones.reads_beyond);
    // Blocks of a writer that does not verify are recognisable: they have no header, or differ from the
    // expected content.
    let tells_writers = comparison(job).is_some_and(|verify| reads_written_only || verify.checksum.has_header());
    let needed = part_used(job, file);
    // The content before the run is assumed to be as the user sets.
    let mut written: Vec<Part> = if file.prepare == Prepare::UseExisting { vec![(0, u64::MAX)] } else { Vec::new() };
    let mut last_without = None;
    for (other, as_other) in before.iter().filter(|(other, _)| !other.handling.creates_only) {
        if comparison(other).is_some() || writes_its_pattern(job, other) {
            written.extend(part_written(other, as_other));
            last_without = last_without.filter(|_| part_written(other, as_other).is_none());
        } else if tells_writers && overlap(needed, (as_other.offset_bytes, as_other.offset_bytes + as_other.size_bytes))
        {
            // In zones, what it wrote is all that is read.
            if reads_written_only {
                written.clear();
            }
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
        return Err(refuse(job, reason, Case::VerifyUnwritten));
    }
    if let Some(other) = last_without {
        let sentence = format!(
            "blocks of `{}` that job `{other}`, before it, writes without `verify` count as wrong in `verify`",
            file.path
        );
        run.note(&job.name, &sentence);
    }
    let may_end_early = |other: &JobPlan| comparison(other).is_some() && other.limits.runtime_ns.is_some();
    let reads_all = file.prepare != Prepare::UseExisting && !reads_written_only;
    if let Some((other, _)) = before.iter().find(|(other, _)| reads_all && may_end_early(other)) {
        let sentence =
            format!("blocks that `{}` has not written when its `runtime` ends count as wrong in `verify`", other.name);
        run.note(&job.name, &sentence);
    }
    Ok(())
}

/// Returns true if all that `other` writes is the `verify_pattern` of a job that compares whole blocks with it.
fn writes_its_pattern(job: &JobPlan, other: &JobPlan) -> bool {
    let Some(verify) = job.verify.as_ref().filter(|verify| verify.checksum == Checksum::Pattern) else { return false };
    let Some(pattern) = verify.pattern.as_ref().filter(|pattern| pattern.offset_places.is_empty()) else {
        return false;
    };
    let is_alike = match other.content.kind {
        ContentKind::Pattern => other.content.pattern == pattern.bytes,
        ContentKind::Zero => pattern.bytes.iter().all(|byte| *byte == 0),
        ContentKind::Random => false,
    };
    // The pattern begins again with each buffer, and with each block that is compared.
    let (read, written) = (&job.pattern.read_sizes, &other.pattern.write_sizes);
    let is_whole = |sizes: &BlockSizes| match sizes {
        BlockSizes::Fixed(bytes) => bytes.is_multiple_of(pattern.bytes.len().max(1) as u64),
        _ => pattern.bytes.len() == 1,
    };
    is_alike && other.source.is_none() && verify.pattern_interval_bytes == 0 && is_whole(read) && is_whole(written)
}

/// The bytes that a job transfers, compared with those of its files.
struct Reach {
    /// Bytes that it transfers at most.
    transferred_bytes: u64,
    /// Bytes of all whole blocks of its files.
    file_bytes: u64,
}

/// Returns how far a job gets in its files.
fn reach_of(job: &JobPlan) -> Reach {
    let pattern = &job.pattern;
    let sizes = match pattern.mix {
        OpMix::Only(OpKind::Read) => &pattern.read_sizes,
        _ => &pattern.write_sizes,
    };
    let block = sizes.max_bytes().max(1);
    let by_count = job.limits.io_count.map_or(u64::MAX, |count| count.saturating_mul(block));
    let file_bytes =
        job.files.iter().map(|file| file.size_bytes - file.size_bytes % block).fold(0, u64::saturating_add);
    Reach { transferred_bytes: job.limits.io_bytes.min(by_count), file_bytes }
}

/// Returns the beginning of a file's region, for a job that gets no further: sequential, in one file.
fn beginning(job: &JobPlan, file: &FilePlan, bytes: u64) -> Option<Part> {
    let is_in_order = job.pattern.order == Order::Sequential && job.pattern.steps.is_none() && job.files.len() == 1;
    is_in_order.then(|| (file.offset_bytes, file.offset_bytes.saturating_add(bytes)))
}

/// Returns the part of a file that a job may compare.
fn part_used(job: &JobPlan, file: &FilePlan) -> Part {
    let Reach { transferred_bytes, file_bytes } = reach_of(job);
    let whole = (file.offset_bytes, file.offset_bytes.saturating_add(file_bytes.min(file.size_bytes)));
    if transferred_bytes >= file_bytes { whole } else { beginning(job, file, transferred_bytes).unwrap_or(whole) }
}

/// Returns the part of a file that is comparable when a verifying job has ended; `None`: unknown.
fn part_written(job: &JobPlan, file: &FilePlan) -> Option<Part> {
    let trims = job.verify.as_ref().is_some_and(|verify| verify.trim.is_some());
    // Some zones are written several times and others not at all, and the range beyond a capacity never is.
    if trims || job.zones.is_some() || job.pattern.mix != OpMix::Only(OpKind::Write) {
        return None;
    }
    let Reach { transferred_bytes, file_bytes } = reach_of(job);
    if transferred_bytes >= file_bytes {
        return Some((file.offset_bytes, file.offset_bytes.saturating_add(file.size_bytes)));
    }
    beginning(job, file, transferred_bytes)
}

fn overlap(one: Part, other: Part) -> bool {
    one.0 < other.1 && other.0 < one.1
}

/// Returns true if parts together contain another part.
fn covers(mut parts: Vec<Part>, needed: Part) -> bool {
    parts.sort_unstable();
    let reached =
        parts.into_iter().fold(needed.0, |reached, (from, to)| if from <= reached { reached.max(to) } else { reached });
    reached >= needed.1
}
