//! Checks whether the blocks that are read hold anything but zeros.
//!
//! - **Reads** up to 32 blocks of 4 KiB of each file or device that the phase reads, with direct I/O, before it.
//! - **Sees** what was never written: thin-provisioned volumes, trimmed SSDs and blank disks return zeros, often without reading a
//!   medium.
//! - **Misses** whether the zeros were written. Without direct I/O it is not seen.
//! - **Thresholds**: half of the blocks; of a job that reads in order, of those that it reached. Suspect.
//! - **Cost**: 32 reads, at most 200 ms on a slow disk.
//! - **By hand**: a new sparse image on a loop device reads at memory speed:
//!
//!   ```sh
//!   truncate -s 1G blank && losetup --find --show --direct-io=on blank
//!   fio --name=blank --filename=/dev/loop0 --rw=randread --bs=4k --direct=1 --readonly --runtime=2 --time_based
//!   ```

use crate::checks::holes::read_end;
use crate::facts::{PhaseFacts, Work, finding, not_applicable, not_seen};
use crate::sample::ContentSample;
use trueio_model::{Check, CheckOutcome};

pub(crate) const NAME: &str = "zero_blocks";

const SOURCE: &str = "blocks sampled before the phase";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if !facts.works().any(|work| work.job.engine.touches_files() && work.reads()) {
        return not_applicable(NAME, "Nothing is read.");
    }
    let works: Vec<_> = facts.works().collect();
    let samples = facts.observation.samples.iter().filter_map(|sample| Read::of(sample, &works));
    let worst = samples.max_by(|a, b| a.share().total_cmp(&b.share()));
    let Some(worst) = worst else {
        return not_seen(
            NAME,
            SOURCE,
            "No sampled block was read: the files do not support direct I/O, or only a small part was read.",
        );
    };
    let found = format!("{} of {} blocks", worst.zeros, worst.blocks);
    let (outcome, sentence) = if worst.share() >= 0.5 {
        let sentence = format!(
            "{:.0} % of the sampled blocks of `{}` contain only zeros. If they were never written, the device may \
             return zeros without reading its medium. Write them first.",
            worst.share() * 100.0,
            worst.path
        );
        (CheckOutcome::Suspect, sentence)
    } else {
        (CheckOutcome::Passed, "The sampled blocks contain data.".to_owned())
    };
    let check = finding(NAME, outcome, SOURCE, "blocks that were written", found, sentence);
    if outcome == CheckOutcome::Passed {
        return check;
    }
    let percent = worst.share() * 100.0;
    check.with_brief(format!("{percent:.0} % zeros")).explaining(Some(worst.share()))
}

/// The blocks of a sample that were read.
struct Read<'a> {
    path: &'a str,
    blocks: usize,
    /// How many of them contain only zeros.
    zeros: usize,
}

impl<'a> Read<'a> {
    /// Returns `None` if there is none: also of a file that is only written, whose blocks are those before that.
    fn of(sample: &'a ContentSample, works: &[Work<'_>]) -> Option<Self> {
        let has_file = |work: &Work<'_>| work.job.files.iter().any(|file| file.path == sample.path);
        if !works.iter().any(|work| work.reads() && has_file(work)) {
            return None;
        }
        let end = read_end(works, &sample.path).unwrap_or(u64::MAX);
        let read = || sample.blocks.iter().filter(|(at, _)| *at < end);
        let (blocks, zeros) = (read().count(), read().filter(|(_, is_zero)| *is_zero).count());
        (blocks > 0).then_some(Self { path: &sample.path, blocks, zeros })
    }

    fn share(&self) -> f64 {
        self.zeros as f64 / self.blocks as f64
    }
}
