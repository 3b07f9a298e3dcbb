//! Checks whether a limit of a control group determines the figures.
//!
//! - **Reads** the limits of this process's control groups on the devices under the target, also on the disk of a loop device's file:
//!   `blkio.throttle.*_device` of its own group (version 1), `io.max`, `io.latency` and the weight under `io.cost` of every group up to
//!   the root (version 2); rates again five times a second. What the limited group transferred (`blkio.throttle.io_service_bytes`,
//!   `io.stat`), and `io.pressure`: no kernel counts how long a limit delayed a group.
//! - **Misses** limits that come and go within 0.2 s; groups above the mounted ones, as in a container; `io.latency` targets of
//!   neighbouring groups; limits of a hypervisor, a cloud volume or an array (`steadiness` names a flat plateau).
//! - **Thresholds**: half of what a limit allows, or delays by `io.cost` for more than 5 % of the time, are suspect. Throttling comes
//!   in slices of about 100 ms, so bursts wait at a mean far below the limit: a tenth of it is suspect if I/Os took ten times as long
//!   as the disk's requests and at least 10 ms. A limit that was set for a part of the phase is compared with the rate of that part,
//!   and explains no more. A limit that is further away, or under which jobs kept their own rates without waiting, is a note. Never
//!   contradicted: the disk performs like this under the limit.
//! - **Cost**: five small files per target while planning and two reads per limit and phase (version 1), four small files for each
//!   group (version 2); the limits again five times a second.
//! - **By hand**: `mkdir /sys/fs/cgroup/blkio/slow; echo "254:0 1048576" > /sys/fs/cgroup/blkio/slow/blkio.throttle.read_bps_device;
//!   echo $$ > /sys/fs/cgroup/blkio/slow/cgroup.procs`, then a run.
//!
//! Version 1 ignores limits of groups above. Without direct I/O, bursts are suspect if the group waited for I/O (`io.pressure`) for
//! half of the time beyond that in which the disk was busy; waits for processors in a quarter of the time may explain them instead. A
//! rate above the limit is explained only for the time in which it was near it; for less than 5 % of the time a limit is a note. Jobs
//! of direct I/O did not wait if, of 48 traced requests or more, at most one in forty came from a thread of the kernel, which submits
//! what was throttled (at the limit 9 %, as tried); or if 99 % of the I/Os took less than 10 ms, and 95 % less than 1 ms or the disk
//! at least half of the mean.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/blkio-controller.rst`; `block/blk-throttle.c`.

use crate::checks::{latency_origin, pace};
use crate::facts::{PhaseFacts, Way, finding, not_applicable, not_seen};
use crate::limit_course::LimitSpan;
use crate::observation::LimitedIo;
use trueio_model::units::format_duration_ns;
use trueio_model::{Check, CheckOutcome, IoLimit, IoLimitKind, OpKind, SeriesRow};

pub(crate) const NAME: &str = "io_limits";

const SOURCE: &str = "blkio.throttle files, io.max, io.latency, io.stat of the control groups";
const NEAR_SHARE: f64 = 0.5;
const DELAYED_SHARE_MAX: f64 = 0.05;
/// A mean rate above that share of the limit was not under it all the time,
const ABOVE_SHARE: f64 = 1.25;
/// unless it moved no more above it than the limit allows in this time: the kernel lets a group that was idle begin with a burst.
const BURST_S: f64 = 0.5;
/// An interval above that share of it was not.
const FREE_SHARE: f64 = 2.0;
/// For a shorter part of the time a limit is a note.
const APPLIED_SHARE_MIN: f64 = 0.05;
/// What throttling shows itself by at a rate below half of the limit.
const BURSTS_SHARE: f64 = 0.1;
const THROTTLED_NS_MIN: f64 = 10_000_000.0;
const THROTTLED_RATIO_MIN: f64 = 10.0;
/// A throttled I/O waits for a tick of the kernel's timer at least: 1 ms at 1,000 Hz.
const JIFFY_NS_MIN: f64 = 1_000_000.0;
/// The traced requests that can show that none was throttled, and the part of them that may come from threads of the kernel.
const TRACED_COUNT_MIN: u64 = 48;
const BY_KERNEL_SHARE_MAX: f64 = 0.025;
const STALLED_SHARE_MIN: f64 = 0.5;
const WAITED_SHARE_MAX: f64 = 0.25;
/// A limit that was set for all but this time was set all the time: its begin and end are known to 0.1 s each.
const PARTIAL_NS_MIN: u64 = 250_000_000;

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
    // Those that were set later.
    for span in facts.observation.limit_spans.iter().flatten() {
        if !limits.contains(&&span.limit) {
            limits.push(&span.limit);
        }
    }
    let uses: Vec<Use<'_>> = limits.iter().map(|limit| Use::of(facts, limit)).collect();
    let found: Vec<String> = uses.iter().map(Use::found).collect();
    let limiting: Vec<String> = uses.iter().filter_map(Use::doubt).collect();
    let (outcome, sentence) = if let Some(first) = uses.iter().find(|one| one.doubt().is_some()) {
        let brief = format!("limited to {}", first.limit.format_rate(first.limit.value as f64));
        let time = first.part.as_ref().map(|part| format!(" for {:.1} s", part.length_ns as f64 / 1e9));
        let brief = brief + &time.unwrap_or_default();
        let check = finding(
            NAME,
            CheckOutcome::Suspect,
            SOURCE,
            "no limit near the measured rate",
            found.join("; "),
            limiting.join(" "),
        );
        let check =
            check.with_brief(if first.per_s.is_some() { brief } else { "limited by a control group".to_owned() });
        return check.explaining(first.applied);
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
    /// Part of the time in which the limit can have applied, if the rate was above it.
    applied: Option<f64>,
    /// How I/Os waited before the disk, in words; `None` if they did not.
    throttled: Option<String>,
    /// True if the jobs kept a rate of their own, and their I/Os did not wait before the disk.
    is_own_pace: bool,
    /// The part of the phase in which the limit was set; `None` if it was all of it.
    part: Option<Part>,
}

/// A part of a phase in which a limit was set.
struct Part {
    /// When it began, in nanoseconds since the measured part began.
    from_ns: u64,
    length_ns: u64,
    /// Its share of the phase.
    share: f64,
    /// What the calls transferred of the limited kind, per second; `None` if no interval lies within it.
    per_s: Option<f64>,
}

impl Part {
    /// Returns `None` if the limit was set all the time, or if that is unknown.
    fn of(facts: &PhaseFacts<'_>, limit: &IoLimit) -> Option<Self> {
        let spans = facts.observation.limit_spans.as_ref()?;
        let spans: Vec<&LimitSpan> = spans.iter().filter(|span| span.limit == *limit).collect();
        let from_ns = spans.first()?.from_ns;
        if !is_partial(facts, &spans) {
            return None;
        }
        let length_ns = length_of(&spans);
        // By the middle of an interval: under a limit it may last until a late I/O.
        let is_within = |row: &&SeriesRow| {
            let middle_ns = row.end_ns.saturating_sub(row.span_ns / 2);
            spans.iter().any(|span| (span.first_seen_ns..=span.last_seen_ns).contains(&middle_ns))
        };
        let rows = facts.records.iter().flat_map(|record| &record.series).filter(is_within);
        let (amount, row_ns) = rows.fold((0, 0), |(amount, ns), row| (amount + of_kind(limit, row), ns + row.span_ns));
        // Rows of several jobs lie next to each other.
        let jobs = facts.records.iter().filter(|record| !record.series.is_empty()).count();
        let per_s = (row_ns > 0).then(|| amount as f64 * 1e9 * jobs as f64 / row_ns as f64);
        Some(Self { from_ns, length_ns, share: length_ns as f64 / facts.elapsed_ns.max(1) as f64, per_s })
    }
}

fn length_of(spans: &[&LimitSpan]) -> u64 {
    spans.iter().map(|span| span.until_ns.saturating_sub(span.from_ns)).sum()
}

fn is_partial(facts: &PhaseFacts<'_>, spans: &[&LimitSpan]) -> bool {
    length_of(spans) + PARTIAL_NS_MIN < facts.elapsed_ns
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
        let burst_per_s = limit.value as f64 * BURST_S * 1e9 / span_ns as f64;
        let is_above = per_s.is_some_and(|per_s| per_s > limit.value as f64 * ABOVE_SHARE + burst_per_s);
        let applied = if is_above { applied_share(facts, limit) } else { None };
        let throttled = throttled_words(facts, stalled);
        let part = Part::of(facts, limit).filter(|part| part.per_s.is_some());
        let applied = part.as_ref().map_or(applied, |part| Some(part.share));
        let delayed_ns = delayed_ns.unwrap_or(0);
        let is_own_pace = is_own_pace(facts, limit);
        Self { limit, per_s, delayed, delayed_ns, stalled, applied, throttled, is_own_pace, part }
    }

    fn head(&self) -> String {
        format!("The control group `{}` limits {}", self.limit.group, self.limit.describe())
    }

    fn found(&self) -> String {
        let stalled = self.stalled.map(|share| format!(", waited for I/O {:.0} % of the time", share * 100.0));
        let rate = self.per_s.map(|per_s| format!("{} under a limit of ", self.limit.format_rate(per_s)));
        format!("{}{}{}", rate.unwrap_or_default(), self.limit.describe(), stalled.unwrap_or_default())
    }

    /// `The control group `/jobs` limited reads of vda to 4 KiB/s for 0.7 s, from 0.2 s on; its processes reached 3.9 KiB/s then`, and
    /// whether the limit may determine the figures of that time.
    fn of_part(&self) -> Option<(String, bool)> {
        let Part { from_ns, length_ns, share, per_s } = self.part.as_ref()?;
        let (per_s, limit) = ((*per_s)?, self.limit.value as f64);
        let sentence = format!(
            "The control group `{}` limited {} for {:.1} s, from {:.1} s on; its processes reached {} then",
            self.limit.group,
            self.limit.describe(),
            *length_ns as f64 / 1e9,
            *from_ns as f64 / 1e9,
            self.limit.format_rate(per_s)
        );
        // With the burst that an idle group begins with.
        let most = limit * ABOVE_SHARE + limit * BURST_S * 1e9 / (*length_ns).max(1) as f64;
        let is_near = (limit * NEAR_SHARE..=most).contains(&per_s) && !self.is_own_pace;
        let is_throttled = self.throttled.is_some() && (limit * BURSTS_SHARE..limit).contains(&per_s);
        Some((sentence, *share >= APPLIED_SHARE_MIN && (is_near || is_throttled)))
    }

    /// Returns a sentence if the limit may determine the figures.
    fn doubt(&self) -> Option<String> {
        if let Some((sentence, is_doubt)) = self.of_part() {
            return is_doubt.then(|| format!("{sentence}, so the figures describe this limit for that time."));
        }
        let at_least = |share: f64| self.per_s.filter(|per_s| *per_s >= self.limit.value as f64 * share);
        if self.is_own_pace {
            return None;
        }
        if let Some(per_s) = at_least(NEAR_SHARE) {
            let rate = self.limit.format_rate(per_s);
            return match self.applied {
                None => {
                    Some(format!("{}; its processes reached {rate}, so the figures describe this limit.", self.head()))
                }
                Some(share) if share >= APPLIED_SHARE_MIN => Some(format!(
                    "{}; its processes reached {rate} on average, so it applied for at most {:.0} % of the time and was lifted, or \
                     set, meanwhile.",
                    self.head(),
                    share * 100.0
                )),
                Some(_) => None,
            };
        }
        if let (Some(per_s), Some(throttled)) = (at_least(BURSTS_SHARE), &self.throttled) {
            let rate = self.limit.format_rate(per_s);
            return Some(format!(
                "{}; its processes reached {rate}, and {throttled}: it was throttled in bursts.",
                self.head()
            ));
        }
        self.delayed.filter(|share| *share > DELAYED_SHARE_MAX).map(|_| {
            let delayed = format_duration_ns(self.delayed_ns);
            format!("{}; io.cost delayed its I/O for {delayed}, so the figures describe this limit.", self.head())
        })
    }

    fn note(&self) -> String {
        if let Some((sentence, _)) = self.of_part() {
            return format!("{sentence}.");
        }
        match self.per_s {
            Some(per_s) if self.applied.is_some() => {
                let rate = self.limit.format_rate(per_s);
                format!("{}, which did not apply: its processes reached {rate}.", self.head())
            }
            Some(per_s) if self.is_own_pace => format!(
                "{}, which did not apply: the jobs kept the rate that they set, {}, and their I/Os did not wait before the disk.",
                self.head(),
                self.limit.format_rate(per_s)
            ),
            Some(0.0) => format!("{}; its processes did no such I/O.", self.head()),
            Some(per_s) => {
                format!("{}, far above the {} that its processes reached.", self.head(), self.limit.format_rate(per_s))
            }
            None => format!("{}.", self.head()),
        }
    }
}

/// Returns true if the jobs that do what is limited do direct I/O at rates of their own and kept them, and nothing shows that I/Os waited for
/// the limit: their own threads submitted them, or they were too short for that, or not long and mostly the disk's.
fn is_own_pace(facts: &PhaseFacts<'_>, limit: &IoLimit) -> bool {
    let op = match limit.kind {
        IoLimitKind::ReadBytes | IoLimitKind::ReadCount => OpKind::Read,
        IoLimitKind::WriteBytes | IoLimitKind::WriteCount => OpKind::Write,
        IoLimitKind::LatencyTarget | IoLimitKind::CostWeight => return false,
    };
    if !facts.disks().iter().any(|disk| disk.name == limit.device) {
        return false;
    }
    let works = facts.call_works();
    let mut limited = works.iter().filter(|work| work.count(op) > 0).peekable();
    let is_seen_free = facts.traced().is_ok_and(|trace| {
        let (all, by_kernel) = (trace.ours.count, trace.ours_by_kernel.count);
        trace.lost_event_count == 0 && all >= TRACED_COUNT_MIN && by_kernel as f64 <= all as f64 * BY_KERNEL_SHARE_MAX
    });
    limited.peek().is_some()
        && limited.all(|work| {
            let Some(total) = work.op(op).map(|record| &record.latency.total) else { return false };
            // Of few I/Os the slowest one.
            let below = |share, most_ns: f64| {
                pace::quantile(total, share).or(total.max_ns()).is_some_and(|ns| (ns as f64) < most_ns)
            };
            let disk_ns = latency_origin::counted_ns(facts, op).unwrap_or(0.0);
            let is_of_disk = total.mean_ns().is_some_and(|mean_ns| disk_ns >= mean_ns / 2.0);
            let is_free = is_seen_free || below(0.99, THROTTLED_NS_MIN) && (below(0.95, JIFFY_NS_MIN) || is_of_disk);
            work.job.is_paced() && pace::is_kept(*work) && facts.way(work.job) == Way::Direct && is_free
        })
}

/// Returns the part of the time in which the rate of the limited kind was near the limit or below; `None` without intervals.
fn applied_share(facts: &PhaseFacts<'_>, limit: &IoLimit) -> Option<f64> {
    let (mut near_ns, mut all_ns) = (0, 0);
    for row in facts.records.iter().flat_map(|record| &record.series) {
        let per_s = of_kind(limit, row) as f64 * 1e9 / row.span_ns.max(1) as f64;
        near_ns += if per_s <= limit.value as f64 * FREE_SHARE { row.span_ns } else { 0 };
        all_ns += row.span_ns;
    }
    (all_ns > 0).then(|| near_ns as f64 / all_ns as f64)
}

/// Returns what an interval contains of the limited kind.
fn of_kind(limit: &IoLimit, row: &SeriesRow) -> u64 {
    match limit.kind {
        IoLimitKind::ReadBytes => row.read_bytes,
        IoLimitKind::WriteBytes => row.write_bytes,
        IoLimitKind::ReadCount => row.read_count,
        IoLimitKind::WriteCount => row.write_count,
        IoLimitKind::LatencyTarget | IoLimitKind::CostWeight => 0,
    }
}

/// Returns how I/Os waited before the disk: their latencies against the disk's requests, or the group's waits for I/O against the time in
/// which the disk was busy. `None` if they did not, or if waits for a processor may explain it.
fn throttled_words(facts: &PhaseFacts<'_>, stalled: Option<f64>) -> Option<String> {
    let works = facts.call_works();
    let waited_ns: u64 =
        works.iter().filter_map(|work| work.record.threads.waiting).map(|waiting| waiting.wait_ns).sum();
    let time_ns: u64 = works.iter().map(|work| work.record.threads.elapsed_ns).sum();
    if waited_ns as f64 > time_ns as f64 * WAITED_SHARE_MAX {
        return None;
    }
    let direct = works.iter().filter(|work| facts.way(work.job) == Way::Direct).flat_map(|work| &work.record.ops);
    let mut means =
        direct.filter_map(|op| Some((op.latency.total.mean_ns()?, latency_origin::counted_ns(facts, op.op)?)));
    if works.iter().all(|work| facts.way(work.job) == Way::Direct) {
        let is_throttled = |(call, disk): &(f64, f64)| *call >= THROTTLED_NS_MIN && *call >= disk * THROTTLED_RATIO_MIN;
        let (call, disk) = means.find(is_throttled)?;
        let [call, disk] = [call, disk].map(|ns| format_duration_ns(ns.round() as u64));
        return Some(format!("an I/O took {call}, of which the disk {disk}"));
    }
    let devices = facts.devices();
    let busy = devices.iter().map(|delta| delta.measured.busy_ms as f64 * 1e6 / delta.measured_ns.max(1) as f64);
    let busy = busy.fold(0.0, f64::max);
    let stalled = stalled.filter(|stalled| !devices.is_empty() && stalled - busy >= STALLED_SHARE_MIN)?;
    Some(format!(
        "waited for I/O for {:.0} % of the time, while the disk was busy for {:.0} %",
        stalled * 100.0,
        busy * 100.0
    ))
}
