//! Checks whether a limit of a control group determines the figures.
//!
//! Reads the limits of this process's control groups on the block devices under the target (`blkio.throttle.*` of version
//! 1, `io.max`, `io.latency` and `io.cost` of version 2), and what the limited group transferred during the phase
//! (`blkio.throttle.io_service_bytes`, `io.stat`), with the time in which its tasks waited for I/O (`io.pressure`). A disk below a loop device's file counts, too.
//!
//! Cannot see: groups above the mounted ones, as in a container; limits of a hypervisor, a cloud volume or an array
//! (`steadiness` reports a rate that falls to a flat plateau); targets of `io.latency` of neighbouring groups.
//!
//! Thresholds: the group transferred at least half of what a limit allows, or `io.cost` delayed its I/O for more than 5 % of
//! the time: suspect. A kernel throttles in slices of about 100 ms, so a job that issues bursts waits at a mean far below the limit.
//! A limit that is further away is a note. Never contradicted: the figures are those of the disk under this limit.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/blkio-controller.rst`; `block/blk-throttle.c`.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use crate::observation::LimitedIo;
use trueio_model::units::format_duration_ns;
use trueio_model::{Check, CheckOutcome, IoLimit, IoLimitKind, OpKind};

pub(crate) const NAME: &str = "io_limits";

const SOURCE: &str = "blkio.throttle files, io.max, io.latency, io.stat of the control groups";
const NEAR_SHARE: f64 = 0.5;
const DELAYED_SHARE_MAX: f64 = 0.05;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if !facts.jobs.iter().any(|job| job.engine.touches_files()) {
        return not_applicable(NAME, facts.why_no_calls());
    }
    let targets = facts.own_targets();
    if let Some(why) = targets.iter().find(|target| target.io_limits.value.is_none()) {
        return not_seen(NAME, SOURCE, format!("The limits of control groups are unknown: {}.", why.io_limits.source));
    }
    let mut limits: Vec<&IoLimit> = Vec::new();
    for limit in targets.iter().flat_map(|target| target.io_limits.value.iter().flatten()) {
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    let uses: Vec<Use<'_>> = limits.iter().map(|limit| Use::of(facts, limit)).collect();
    let found: Vec<String> = uses.iter().map(Use::found).collect();
    let limiting: Vec<String> = uses.iter().filter_map(Use::doubt).collect();
    let (outcome, sentence) = if let Some(first) = uses.iter().find(|one| one.doubt().is_some()) {
        let brief = format!("limited to {}", first.limit.format_rate(first.limit.value as f64));
        let check = finding(
            NAME,
            CheckOutcome::Suspect,
            SOURCE,
            "no limit near the measured rate",
            found.join("; "),
            limiting.join(" "),
        );
        return check.with_brief(if first.per_s.is_some() { brief } else { "limited by a control group".to_owned() });
    } else if uses.is_empty() {
        (CheckOutcome::Passed, "No control group limits I/O on the devices under the target.".to_owned())
    } else {
        let notes: Vec<String> = uses.iter().map(Use::note).collect();
        (CheckOutcome::Passed, notes.join(" "))
    };
    finding(NAME, outcome, SOURCE, "no limit near the measured rate", found.join("; "), sentence)
}

/// A limit and its use in the phase.
struct Use<'a> {
    limit: &'a IoLimit,
    /// Of the limited kind, per second; `None` if the kind has no rate.
    per_s: Option<f64>,
    /// Part of the time for which `io.cost` delayed the group's I/O.
    delayed: Option<f64>,
    /// The same as a time, in nanoseconds.
    delayed_ns: u64,
    /// Part of the time in which a task of the group waited for I/O (`io.pressure`).
    stalled: Option<f64>,
}

impl<'a> Use<'a> {
    fn of(facts: &PhaseFacts<'_>, limit: &'a IoLimit) -> Self {
        let counted: Option<&LimitedIo> = facts.observation.limited.iter().find(|one| one.limit == *limit);
        let delayed_ns = counted.and_then(|one| one.delayed_ns);
        let span_ns = counted.map_or(facts.elapsed_ns, |one| one.span_ns).max(1);
        let moved = |kind| match (counted.and_then(|one| one.moved), kind) {
            (Some(moved), _) => Some(moved),
            // Not counted: what the calls reported is an upper limit of what reached the device.
            (None, IoLimitKind::ReadBytes) => Some(facts.works().map(|work| work.bytes(OpKind::Read)).sum()),
            (None, IoLimitKind::WriteBytes) => Some(facts.works().map(|work| work.bytes(OpKind::Write)).sum()),
            (None, IoLimitKind::ReadCount) => Some(facts.works().map(|work| work.count(OpKind::Read)).sum()),
            (None, IoLimitKind::WriteCount) => Some(facts.works().map(|work| work.count(OpKind::Write)).sum()),
            (None, IoLimitKind::LatencyTarget | IoLimitKind::CostWeight) => None,
        };
        let has_rate = !matches!(limit.kind, IoLimitKind::LatencyTarget | IoLimitKind::CostWeight);
        let per_s = moved(limit.kind).filter(|_| has_rate).map(|moved| moved as f64 * 1e9 / span_ns as f64);
        let delayed = delayed_ns.map(|delayed_ns| delayed_ns as f64 / span_ns as f64);
        let stalled = counted.and_then(|one| one.stalled_ns).map(|stalled_ns| stalled_ns as f64 / span_ns as f64);
        Self { limit, per_s, delayed, delayed_ns: delayed_ns.unwrap_or(0), stalled }
    }

    fn head(&self) -> String {
        format!("The control group `{}` limits {}", self.limit.group, self.limit.describe())
    }

    fn found(&self) -> String {
        let stalled = self.stalled.map(|share| format!(", waited for I/O {:.0} % of the time", share * 100.0));
        let rate = self.per_s.map(|per_s| format!("{} under a limit of ", self.limit.format_rate(per_s)));
        format!("{}{}{}", rate.unwrap_or_default(), self.limit.describe(), stalled.unwrap_or_default())
    }

    /// Returns a sentence if the limit may determine the figures.
    fn doubt(&self) -> Option<String> {
        if let Some(per_s) = self.per_s.filter(|per_s| *per_s >= self.limit.value as f64 * NEAR_SHARE) {
            let rate = self.limit.format_rate(per_s);
            return Some(format!("{}; its processes reached {rate}, so the figures describe this limit.", self.head()));
        }
        self.delayed.filter(|share| *share > DELAYED_SHARE_MAX).map(|_| {
            let delayed = format_duration_ns(self.delayed_ns);
            format!("{}; io.cost delayed its I/O for {delayed}, so the figures describe this limit.", self.head())
        })
    }

    fn note(&self) -> String {
        match self.per_s {
            Some(0.0) => format!("{}; its processes did no such I/O.", self.head()),
            Some(per_s) => {
                format!("{}, far above the {} that its processes reached.", self.head(), self.limit.format_rate(per_s))
            }
            None => format!("{}.", self.head()),
        }
    }
}
