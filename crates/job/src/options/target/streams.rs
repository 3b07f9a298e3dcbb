//! Regions of its own for each worker of a job, at equal distances in each file (`offset_increment`).
//!
//! A file's planned region holds those of all workers: the first worker's begins at `offset`, each further one
//! `offset_increment` after the one before. Each has the job's `size`.

use crate::input::{Decisions, JobInput};
use crate::option::OptionRow;
use crate::options::content::rows::{SOURCE, VERIFY};
use crate::options::engine::rows::{COMMAND, NUMJOBS};
use crate::options::pattern::rows::{RANDOM_DISTRIBUTION, READ_IOLOG, ZONEMODE};
use crate::options::target::rows::{FILE_APPEND, OFFSET_INCREMENT, REGION_NUMBER, SHARED_FILE, SIZE};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::{Extent, write_bytes};
use crate::values::Values;

/// Returns by how many bytes the planned region of a file exceeds that of one worker.
pub(crate) fn spread_bytes(values: &Values) -> u64 {
    increment_bytes(values).saturating_mul(u64::from(values.get(NUMJOBS)) - 1)
}

/// Returns the distance between the starts of two regions; 0 for one in percent, which is refused.
pub(crate) fn increment_bytes(values: &Values) -> u64 {
    match values.get(OFFSET_INCREMENT) {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(_) => 0,
    }
}

/// Checks what regions of their own need. `block_bytes` is the smallest block.
///
/// # Errors
/// An option that sets offsets in another way, a size in percent, or a distance that is no multiple of the block.
pub(crate) fn check(job: &JobInput<'_>, decisions: &mut Decisions, block_bytes: u64) -> Result<(), Refusal> {
    if job.get(OFFSET_INCREMENT) == Extent::Bytes(0) {
        return Ok(());
    }
    let increment = increment_bytes(job);
    if job.get(NUMJOBS) == 1 {
        if !job.is_set(REGION_NUMBER) {
            decisions.note_unused(job, &[OFFSET_INCREMENT.row()], "the job has one worker");
        }
        return Ok(());
    }
    let others: [&'static OptionRow; 8] = [
        VERIFY.row(),
        SOURCE.row(),
        COMMAND.row(),
        READ_IOLOG.row(),
        ZONEMODE.row(),
        RANDOM_DISTRIBUTION.row(),
        FILE_APPEND.row(),
        SHARED_FILE.row(),
    ];
    if let Some(other) = others.into_iter().find(|row| job.is_set(*row)) {
        let rule = Rule::Contradiction {
            one: job.quote(OFFSET_INCREMENT),
            other: job.quote(other),
            reason: "only plain jobs have a region for each worker",
            case: Case::RegionsOfOthers,
        };
        return Err(job.refuse(OFFSET_INCREMENT, rule));
    }
    let refuse =
        |reason: String| Err(job.refuse(OFFSET_INCREMENT, Rule::BadValue { option: OFFSET_INCREMENT.name, reason }));
    if matches!(job.get(SIZE), Some(Extent::Percent(_))) || matches!(job.get(OFFSET_INCREMENT), Extent::Percent(_)) {
        return refuse("it must be in bytes, and `size` in bytes or left out".to_owned());
    }
    if !increment.is_multiple_of(block_bytes.max(1)) {
        let (increment, block) = (write_bytes(increment), write_bytes(block_bytes));
        return refuse(format!("{increment} is not a multiple of the block of {block}"));
    }
    let is_beyond = increment.checked_mul(u64::from(job.get(NUMJOBS))).is_none_or(|end| end > i64::MAX as u64);
    if is_beyond { refuse("the last region ends beyond 2^63 bytes".to_owned()) } else { Ok(()) }
}
