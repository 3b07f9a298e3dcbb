//! Compares the size of buffered jobs' files with the memory that this process may use.
//!
//! - **Reads** the files' sizes, and the machine's memory or a lower limit of its control groups (`memory.limit_in_bytes`, `memory.max`
//!   and `memory.high` of every group up to the root).
//! - **Misses** the disk's own cache, and pages that processes of other control groups brought into memory (`page_cache` counts them).
//! - **Thresholds**: smaller is suspect, unless the disk transferred all bytes and a sync call covers the writes: their time then
//!   includes the way to the disk.
//! - **By hand**: read a file of a tenth of your memory twice.

use crate::checks::block_layer_bytes::has_arrived;
use crate::facts::{PhaseFacts, Way, finding, not_applicable, not_seen};
use trueio_model::units::format_bytes;
use trueio_model::{Check, CheckOutcome, Environment, OpKind};

pub(crate) const NAME: &str = "working_set";

const SOURCE: &str = "/proc/meminfo, memory.limit_in_bytes or memory.max and memory.high of the control groups";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works = facts.file_works();
    if works.is_empty() {
        return not_applicable(NAME, facts.why_no_calls());
    }
    let cached: Vec<_> = works
        .into_iter()
        .filter(|work| facts.way(work.job) == Way::Buffered && (work.reads() || !work.syncs_every_write()))
        .collect();
    if cached.is_empty() {
        let sentence = "Memory does not serve this phase; the size of the disk's own cache is unknown.";
        return not_applicable(NAME, sentence);
    }
    let Some(memory) = facts.environment.and_then(Environment::usable_memory_bytes) else {
        return not_seen(NAME, SOURCE, "The size of memory is unknown.");
    };
    let mut regions: Vec<(&str, u64)> = Vec::new();
    for file in cached.iter().flat_map(|work| &work.job.files) {
        if !regions.iter().any(|(path, _)| *path == file.path) {
            regions.push((&file.path, file.size_bytes));
        }
    }
    let size: u64 = regions.iter().map(|region| region.1).sum();
    let [read, written] = [OpKind::Read, OpKind::Write].map(|op| cached.iter().map(|work| work.bytes(op)).sum::<u64>());
    let is_synced = cached.iter().all(|work| !work.writes() || work.syncs());
    let report = |outcome, sentence: &str| {
        let limited = facts.environment.and_then(|environment| environment.memory_limit_bytes) == Some(memory);
        let whose = if limited { "memory that the control group allows" } else { "memory" };
        let found = format!("{} of files, {} of {whose}", format_bytes(size), format_bytes(memory));
        finding(NAME, outcome, SOURCE, "files larger than memory", found, sentence)
    };
    if size >= memory {
        return report(CheckOutcome::Passed, "The files are larger than the memory that this process may use.");
    }
    let of_reads = facts.counted(|counters| counters.read_bytes).ours();
    let of_writes = facts.counted(|counters| counters.write_bytes).ours();
    // Where others use the disk, the kernel's count of what it read for this process shows whose the bytes are.
    let of_process = facts.observation.process_read_bytes.unwrap_or(0);
    let all_reads = facts.counted(|counters| counters.read_bytes).raw;
    let is_read = has_arrived(read, of_reads, 0) || has_arrived(read, of_process.min(all_reads), 0);
    let has_all = facts.why_no_counters().is_none() && is_read && has_arrived(written, of_writes, 0);
    if is_synced && has_all && read + written > 0 {
        let sentence = match (read, written) {
            (_, 0) => "The files fit in memory, but the disk read every requested byte.",
            (0, _) => "The files fit in memory, but the disk wrote every byte, and the time includes the sync calls.",
            _ => {
                "The files fit in memory, but the disk read and wrote every byte, and the time includes the sync calls."
            }
        };
        return report(CheckOutcome::Passed, sentence);
    }
    report(CheckOutcome::Suspect, "The files fit in memory: the page cache may serve most of the I/O.")
        .with_brief("files fit in memory")
}
