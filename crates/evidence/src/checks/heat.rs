//! Checks whether disks or processors were hot enough to throttle.
//!
//! - **Reads** the temperature and limit of each disk (`hwmon`), before and after, and the thermal throttling events of the processors
//!   (`thermal_throttle`).
//! - **Misses** virtual disks and most USB bridges, which report nothing, and drives that slow down earlier (`steadiness` sees it).
//! - **Thresholds**: a disk at or above its own limit at the end; one throttling event. Suspect.
//! - **Cost**: a few small reads per disk.
//! - **By hand**: `grep . /sys/block/*/device/hwmon*/temp1_{input,max}` during a long write.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::{Check, CheckOutcome};

pub(crate) const NAME: &str = "heat";

const SOURCE: &str = "hwmon, thermal_throttle";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if !facts.jobs.iter().any(|job| job.engine.touches_files()) {
        return not_applicable(NAME, facts.why_no_calls());
    }
    let disks = facts.disks();
    let heats = facts.observation.heats.iter().filter(|heat| disks.iter().any(|disk| disk.name == heat.disk));
    let heats: Vec<_> = heats.collect();
    let throttled = facts.observation.throttle_count;
    if heats.is_empty() && throttled.is_none() {
        return not_seen(NAME, SOURCE, "Neither the disks nor the processors report temperatures.");
    }
    let degrees = |millidegrees: i64| format!("{:.0} °C", millidegrees as f64 / 1e3);
    let mut found: Vec<String> = heats
        .iter()
        .map(|heat| {
            let limit = heat.limit_millidegrees.map_or_else(String::new, |limit| format!(", limit {}", degrees(limit)));
            let (before, after) = (degrees(heat.before_millidegrees), degrees(heat.after_millidegrees));
            format!("{} {before} before, {after} after{limit}", heat.disk)
        })
        .collect();
    if let Some(count) = throttled {
        found.push(format!("processors throttled {count} times"));
    }
    let mut doubts: Vec<String> = heats
        .iter()
        .filter(|heat| heat.limit_millidegrees.is_some_and(|limit| heat.after_millidegrees >= limit))
        .map(|heat| format!("{} is at or above its own temperature limit and may have throttled.", heat.disk))
        .collect();
    if throttled.is_some_and(|count| count > 0) {
        doubts.push("The processors throttled because of heat.".to_owned());
    }
    let (outcome, sentence) = if doubts.is_empty() {
        (CheckOutcome::Passed, "All reported temperatures were below their limits.".to_owned())
    } else {
        (CheckOutcome::Suspect, doubts.join(" "))
    };
    let check = finding(NAME, outcome, SOURCE, "below the limits", found.join("; "), sentence);
    if outcome == CheckOutcome::Suspect { check.with_brief("too hot") } else { check }
}
