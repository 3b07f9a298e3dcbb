//! Compares the bytes that the kernel fetched for this process with those that its reads returned.
//!
//! - **Reads** `read_bytes` in `/proc/self/io`, before and after: other programs cannot hide missing reads. For a mapping (`mmap`) the
//!   major faults stand next to it.
//! - **Misses** writes: `write_bytes` counts dirtied pages, and direct writes before they are checked (1,000 misaligned writes that all
//!   failed increased it by 4,096,000 bytes), so it is never used. And filesystems for which another process or the network reads.
//! - **Thresholds**: those of `block_layer_bytes`. Direct reads below them contradict; buffered ones are suspect.
//! - **Cost**: 0.4 µs per reading.
//! - **By hand**: `python3 -c 'open("full","rb").read(); print(open("/proc/self/io").read())'`, once cold, once warm.
//!
//! Source: proc_pid_io(5); Linux `submit_bio` counts for the submitting thread, which for io_uring's polling and worker threads is a
//! thread of this process.

use crate::checks::block_layer_bytes::{bytes_before_begin, has_arrived};
use crate::facts::{PhaseFacts, Way, Work, finding, not_applicable, not_seen};
use trueio_model::units::{format_bytes, format_count};
use trueio_model::{Check, CheckOutcome, EngineKind, OpKind};

pub(crate) const NAME: &str = "process_read_bytes";

const SOURCE: &str = "read_bytes of /proc/self/io";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works = facts.file_works();
    if works.is_empty() {
        return not_applicable(NAME, facts.why_no_calls());
    }
    let of = |way| -> u64 {
        works.iter().filter(|work| facts.way(work.job) == way).map(|work| work.bytes(OpKind::Read)).sum()
    };
    let (direct, buffered) = (of(Way::Direct), of(Way::Buffered));
    if direct + buffered == 0 {
        return not_applicable(NAME, "Nothing was read, and the kernel has no reliable counter for writes.");
    }
    if facts.disks().is_empty() {
        return not_seen(NAME, SOURCE, "No disk is visible under the target, so the kernel may not count its reads.");
    }
    let Some(counted) = facts.observation.process_read_bytes else {
        return not_seen(NAME, SOURCE, "The kernel does not count this process's reads (/proc/self/io).");
    };
    let report = |outcome, sentence: String| {
        let (expected, found) = (format_bytes(direct + buffered), format_bytes(counted));
        let found = format!("{found} fetched{}", faults(&works));
        finding(NAME, outcome, SOURCE, format!("{expected} fetched"), found, sentence)
    };
    let is_mapped = works.iter().all(|work| work.job.engine == EngineKind::Mmap);
    let early = bytes_before_begin(&works);
    if !has_arrived(direct, counted, early) {
        let sentence = format!(
            "The calls reported {} read with direct I/O, but the kernel fetched {} for this process.",
            format_bytes(direct),
            format_bytes(counted)
        );
        let brief = format!("the kernel fetched {} of {}", format_bytes(counted), format_bytes(direct));
        return report(CheckOutcome::Contradicted, sentence)
            .with_brief(brief)
            .explaining(Some(1.0 - counted as f64 / direct as f64));
    }
    if !has_arrived(direct + buffered, counted, early) {
        let sentence = format!(
            "Of {} read through {}, {} were fetched from storage during this phase{}.",
            format_bytes(buffered),
            if is_mapped { "a mapping" } else { "the page cache" },
            format_bytes(counted.saturating_sub(direct)),
            faults(&works)
        );
        let missing = 1.0 - counted as f64 / (direct + buffered) as f64;
        let brief = format!("{:.0} % from memory", (missing * 100.0).floor());
        return report(CheckOutcome::Suspect, sentence).with_brief(brief).explaining(Some(missing));
    }
    report(CheckOutcome::Passed, "The kernel fetched as many bytes for this process as its reads returned.".to_owned())
}

/// `, in 12 major faults for 1,200 accesses`; empty if no job reads through a mapping.
fn faults(works: &[Work<'_>]) -> String {
    let mapped = || works.iter().filter(|work| work.job.engine == EngineKind::Mmap);
    if mapped().next().is_none() {
        return String::new();
    }
    let faults: u64 = mapped().map(|work| work.record.threads.major_fault_count).sum();
    let accesses: u64 = mapped().map(|work| work.count(OpKind::Read)).sum();
    format!(", in {} major faults for {} accesses", format_count(faults), format_count(accesses))
}
