//! Detects filesystems that accept `O_DIRECT` and use the page cache.
//!
//! - **Reads** the support of each file: `statx` (`STATX_DIOALIGN`, Linux 6.1), else a table of filesystem types: tmpfs, btrfs and ext4
//!   with `data=journal` are among those that ignore the flag.
//! - **Misses** its effect where support is unknown (FUSE, network filesystems, older kernels); `block_layer_bytes` and `page_cache`
//!   decide there.
//! - **Thresholds**: `direct = require` without direct I/O contradicts; `prefer` without it, and unknown support, are suspect. Reads
//!   that the disk counted in full, and that left no page in the cache, pass: btrfs buffers direct writes to files with checksums, and
//!   reads the same files directly.
//! - **Cost**: one `statx` per target, before the run.
//! - **By hand**: `cp full /dev/shm; dd if=/dev/shm/full of=/dev/null bs=4k iflag=direct` reports success and GB/s from memory.

use crate::checks::block_layer_bytes::{bytes_before_begin, has_arrived};
use crate::checks::page_cache;
use crate::facts::{PhaseFacts, finding, not_applicable};
use trueio_model::{Check, CheckOutcome, DirectPolicy, DirectSupport, EngineKind, OpKind};

pub(crate) const NAME: &str = "direct_granted";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let mut asked = false;
    let mut worst: Option<Check> = None;
    for work in facts.works() {
        let policy = work.job.direct;
        if !work.job.engine.touches_files() || policy == DirectPolicy::Off {
            continue;
        }
        if work.job.engine == EngineKind::Mmap {
            continue;
        }
        asked = true;
        for file in &work.job.files {
            let Some(target) = facts.target_of(&file.path) else { continue };
            let found = if measured_direct_reads(facts) && target.direct.support != DirectSupport::Direct {
                against_the_word(&target.direct.reason)
            } else {
                one(policy, target.direct.support, &target.direct.reason, &file.path)
            };
            if worst.as_ref().is_none_or(|worst| rank(found.outcome) > rank(worst.outcome)) {
                worst = Some(found);
            }
        }
    }
    match worst {
        Some(worst) => worst,
        None if asked => finding(
            NAME,
            CheckOutcome::Suspect,
            "statx",
            "direct I/O",
            "not queried",
            "Whether these files support direct I/O was not queried.",
        )
        .with_brief("perhaps through the page cache"),
        None => not_applicable(NAME, "No job sets direct I/O."),
    }
}

/// Returns true if the phase only read, the job sets direct I/O, and the counters of disk and page cache show
/// that the reads were direct.
fn measured_direct_reads(facts: &PhaseFacts<'_>) -> bool {
    let works = facts.call_works();
    let read: u64 = works.iter().map(|work| work.bytes(OpKind::Read)).sum();
    let only_direct_reads =
        works.iter().all(|work| work.reads() && !work.writes() && work.job.direct != DirectPolicy::Off);
    let counted = facts.counted(|counters| counters.read_bytes).ours();
    only_direct_reads
        && read > 0
        && facts.why_no_counters().is_none()
        && has_arrived(read, counted, bytes_before_begin(&works))
        && page_cache::has_stayed(facts, read)
}

fn against_the_word(reason: &str) -> Check {
    let sentence = format!(
        "These reads were direct: the disk counted all of them and no page was left in the page cache, although the \
         filesystem does not promise it ({reason})."
    );
    finding(
        NAME,
        CheckOutcome::Passed,
        "statx, disk, page cache",
        "direct I/O",
        "direct, according to the counters",
        sentence,
    )
}

fn rank(outcome: CheckOutcome) -> u8 {
    match outcome {
        CheckOutcome::Contradicted => 2,
        CheckOutcome::Suspect => 1,
        _ => 0,
    }
}

fn one(policy: DirectPolicy, support: DirectSupport, reason: &str, path: &str) -> Check {
    let (outcome, found, sentence) = match (support, policy) {
        (DirectSupport::Direct, _) => {
            (CheckOutcome::Passed, "direct", format!("The filesystem supports direct I/O: {reason}."))
        }
        (DirectSupport::SilentlyBuffered, DirectPolicy::Require) => (
            CheckOutcome::Contradicted,
            "silently buffered",
            format!("`{path}` accepts O_DIRECT and ignores it: {reason}. The figures include the page cache."),
        ),
        (DirectSupport::SilentlyBuffered, _) => (
            CheckOutcome::Suspect,
            "silently buffered",
            format!(
                "The job prefers direct I/O, but `{path}` does not support it: {reason}. The figures include the page \
                 cache."
            ),
        ),
        (DirectSupport::Refused, DirectPolicy::Require) => (
            CheckOutcome::Contradicted,
            "refused",
            format!("The job requires direct I/O, but `{path}` refuses it: {reason}."),
        ),
        (DirectSupport::Refused, _) => (
            CheckOutcome::Suspect,
            "refused",
            format!(
                "The job prefers direct I/O, but `{path}` refuses it: {reason}. The figures include the page \
                     cache."
            ),
        ),
        (DirectSupport::Unknown, _) => (
            CheckOutcome::Suspect,
            "unknown",
            format!("`{path}` accepts O_DIRECT, but whether it has an effect is unknown: {reason}."),
        ),
    };
    let brief = match support {
        DirectSupport::Direct => "",
        DirectSupport::Unknown => "perhaps through the page cache",
        DirectSupport::SilentlyBuffered | DirectSupport::Refused => "through the page cache",
    };
    finding(NAME, outcome, "statx, filesystem type", "direct I/O", found, sentence).with_brief(brief)
}
