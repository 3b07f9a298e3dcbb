//! Checks whether the read blocks contain anything but zeros.
//!
//! Examines up to 32 blocks of 4 KiB of each file or device that the phase reads, read with direct I/O before
//! it. Blocks that were never written (thin-provisioned volumes, trimmed SSDs, fresh disk images) read as
//! zeros, often without access to a medium.
//!
//! Cannot see: whether zeros were really written. `holes` checks files with holes.
//!
//! Threshold: at least half of the examined blocks. Suspect.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::{Check, CheckOutcome};

pub(crate) const NAME: &str = "zero_blocks";

const SOURCE: &str = "blocks sampled before the phase";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if !facts.works().any(|work| work.job.engine.touches_files() && work.reads()) {
        return not_applicable(NAME, "Nothing is read.");
    }
    let samples = &facts.observation.samples;
    let worst = samples.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let Some(worst) = worst else {
        return not_seen(NAME, SOURCE, "No block could be sampled: the files do not support direct I/O.");
    };
    let found = format!("{} of {} blocks", worst.zero_count, worst.block_count);
    let (outcome, sentence) = if share(worst) >= 0.5 {
        let sentence = format!(
            "{:.0} % of the sampled blocks of `{}` contain only zeros. If they were never written, the device may \
             return zeros without reading its medium. Write them first.",
            share(worst) * 100.0,
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
    let percent = share(worst) * 100.0;
    check.with_brief(format!("{percent:.0} % zeros")).explaining(Some(share(worst)))
}

fn share(sample: &crate::sample::ContentSample) -> f64 {
    sample.zero_count as f64 / sample.block_count.max(1) as f64
}
