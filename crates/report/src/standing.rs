//! Where a run's figures stand: among published device classes, against the link of the disk, and in the device's own
//! history; and what limits them, where the evidence shows it.
//!
//! A pure function of a record and earlier figures; terminal and page print its data. Only figures with a comparable
//! load are placed: direct I/O in one job, 64 I/Os or more over half a second or more. A figure that the evidence
//! contradicts, or that came from a cache, is not placed.

use crate::classes::{ClassFigure, DeviceClass, classes_of, link_rate};
use crate::summary::{Row, plan_of, shape_of, summary};
use crate::text::counted;
use crate::words::percentile_name;
use trueio_model::{
    BlockSizes, Cause, CheckOutcome, DirectPolicy, DiskFacts, JobPlan, OpKind, OpMix, Order, PhaseRecord, RunRecord,
    SyncMode, Verdict, units,
};

/// Fewer I/Os than this are not placed.
const IO_COUNT_MIN: u64 = 64;
/// Shorter phases are not placed.
const ELAPSED_NS_MIN: u64 = 500_000_000;
/// From this size on, a sequential transfer counts as large.
const LARGE_BYTES: u64 = 128 << 10;
/// From this depth on, random I/O counts as deep.
const DEPTH_MIN: u64 = 16;
/// A figure is at its link's limit from this share of what devices reach on it.
const LINK_SHARE_MIN: f64 = 0.9;
/// Workers that are busy for this share of the time are limited by their processors.
const BUSY_SHARE_MIN: f64 = 0.9;
/// A write rate that falls by this factor, and stays, looks like a full write cache.
const FALL_MIN: f64 = 1.3;

/// A figure of a record that device classes have, too.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassValue {
    /// Which.
    pub figure: ClassFigure,
    /// Its value, in the figure's unit.
    pub value: f64,
    /// Its row of [`summary`](crate::summary()), as an index.
    pub row: usize,
    /// Its phase, as an index into [`RunRecord::phases`].
    pub phase_index: usize,
    /// The job's I/O, as [`shape_of`] describes it: only equal loads are compared over time.
    pub load: String,
    /// True if the evidence supports it; otherwise it is disturbed, unsteady or unverified.
    pub is_supported: bool,
}

/// The placed figures of an earlier run of the same device.
#[derive(Debug, Clone, PartialEq)]
pub struct PastRun {
    /// The run's ID.
    pub id: String,
    /// When it began, as text.
    pub started_at: String,
    /// Its figures.
    pub values: Vec<ClassValue>,
}

impl PastRun {
    /// Returns the placed figures of an earlier record.
    pub fn of(record: &RunRecord) -> Self {
        Self { id: record.id.clone(), started_at: record.started_at.clone(), values: class_values(record) }
    }
}

/// A group of device classes on the scale of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Its name: `NVMe SSD`.
    pub name: &'static str,
    /// The lowest published figure of its classes.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Its classes.
    pub classes: Vec<&'static DeviceClass>,
}

impl Band {
    fn contains(&self, value: f64) -> bool {
        // Published figures are rounded: a twentieth beyond the range is still in it.
        (self.low * 0.95..=self.high * 1.05).contains(&value)
    }
}

/// The position of a figure among the bands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// In the range of these groups.
    Within(Vec<&'static str>),
    /// Better than the first group's range and worse than the second's.
    Between(&'static str, &'static str),
    /// Worse than the range of the slowest group.
    WorseThan(&'static str),
    /// Better than the range of the fastest group.
    BetterThan(&'static str),
}

/// The limit of the link between disk and machine.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkLimit {
    /// Its name: `PCIe 4.0 x4`, `SATA 6 Gbit/s`.
    pub name: String,
    /// Bytes per second after line coding.
    pub bytes_per_s: f64,
    /// The highest that devices are known to reach on it, in bytes per second.
    pub reached_bytes_per_s: f64,
    /// The faster link that the device supports, if this one is slower.
    pub supported: Option<String>,
}

/// A figure in earlier runs of the same load on the same device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PastValues {
    /// Number of runs.
    pub count: usize,
    /// The smallest value.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The largest value.
    pub high: f64,
}

/// A figure and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// The figure.
    pub value: ClassValue,
    /// The groups of its scale, slowest first.
    pub bands: Vec<Band>,
    /// Its position among the groups of this device's kind.
    pub position: Position,
    /// The disk's link, for bandwidths; `None` if unknown, or if the disk has none.
    pub link: Option<LinkLimit>,
    /// The same figure in earlier runs; `None` without one.
    pub past: Option<PastValues>,
}

/// What limits a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// The link between disk and machine.
    Link,
    /// Each I/O waits for the previous one: the rate is the reciprocal of the latency.
    Latency,
    /// The processors of the workers.
    Processor,
    /// Heat: a disk or the processors slow down.
    Throttle,
    /// The disk's write cache is full.
    WriteCache,
    /// A limit of a control group.
    ControlGroup,
}

impl LimitKind {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Link => "link",
            LimitKind::Latency => "latency",
            LimitKind::Processor => "processor",
            LimitKind::Throttle => "heat",
            LimitKind::WriteCache => "write cache",
            LimitKind::ControlGroup => "control group",
        }
    }
}

/// A limit that the evidence shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Its kind.
    pub kind: LimitKind,
    /// The phase, as an index into [`RunRecord::phases`].
    pub phase_index: usize,
    /// One sentence with its figures.
    pub sentence: String,
}

/// Where the figures of a record stand.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    /// Each figure that can be placed, in the order of [`ClassFigure::ALL`].
    pub placements: Vec<Placement>,
    /// What limits the phases, in their order.
    pub limits: Vec<Limit>,
    /// What the figures are good for, one sentence each.
    pub uses: Vec<String>,
}

/// Places the figures of a record. `past` are earlier runs of the same device, in any order.
pub fn standing(record: &RunRecord, past: &[PastRun]) -> Standing {
    let link = link_of(record);
    let placements: Vec<Placement> =
        class_values(record).into_iter().filter_map(|value| placed(record, value, link.as_ref(), past)).collect();
    let limits = limits(record, &placements);
    Standing { limits, uses: uses(record, &placements), placements }
}

/// Returns the figures of a record that can be placed, each once, in the order of [`ClassFigure::ALL`].
pub fn class_values(record: &RunRecord) -> Vec<ClassValue> {
    let rows = summary(record);
    let mut found: Vec<ClassValue> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if let Some(value) = class_value(record, row, index)
            && !found.iter().any(|known| known.figure == value.figure)
        {
            found.push(value);
        }
    }
    found.sort_by_key(|value| value.figure);
    found
}

fn class_value(record: &RunRecord, row: &Row, index: usize) -> Option<ClassValue> {
    let phase = record.phases.get(row.phase_index)?;
    let job = phase.jobs.get(row.job_index)?;
    let plan = plan_of(record, row.phase_index, job)?;
    let is_comparable = phase.jobs.len() == 1
        && plan.engine.touches_files()
        && plan.direct != DirectPolicy::Off
        && plan.pace.is_none()
        && plan.think.is_none()
        && !row.is_withheld
        && !is_from_cache(phase)
        && row.io_count >= IO_COUNT_MIN
        && job.elapsed_ns >= ELAPSED_NS_MIN;
    let (figure, value) = is_comparable.then(|| figure_of(plan, row)).flatten()?;
    (value.is_finite() && value > 0.0).then(|| ClassValue {
        figure,
        value,
        row: index,
        phase_index: row.phase_index,
        load: shape_of(plan),
        is_supported: phase.verdict == Verdict::Supported,
    })
}

/// Returns true if the evidence shows that I/Os of the phase were served by memory: its figures are not the disk's.
fn is_from_cache(phase: &PhaseRecord) -> bool {
    phase.checks.iter().any(|check| check.objects() && check.cause == Cause::Cache)
}

/// Returns the figure of a row that classes have, too.
fn figure_of(plan: &JobPlan, row: &Row) -> Option<(ClassFigure, f64)> {
    let depth = u64::from(plan.workers) * if plan.engine.holds_a_queue() { u64::from(plan.queue.depth) } else { 1 };
    let is_random = matches!(plan.pattern.order, Order::Random { .. });
    let OpMix::Only(op) = plan.pattern.mix else { return None };
    let sizes = if op == OpKind::Read { &plan.pattern.read_sizes } else { &plan.pattern.write_sizes };
    let BlockSizes::Fixed(bytes) = *sizes else { return None };
    if row.op != op {
        return None;
    }
    let is_durable = plan.flush.fdatasync_every == 1
        || plan.flush.fsync_every == 1
        || plan.sync != SyncMode::None
        || plan.write_flags.dsync;
    match op {
        OpKind::Read if !is_random && bytes >= LARGE_BYTES => Some((ClassFigure::SeqRead, row.bytes_per_s?)),
        OpKind::Write if !is_random && !is_durable && bytes >= LARGE_BYTES => {
            Some((ClassFigure::SeqWrite, row.bytes_per_s?))
        }
        OpKind::Read if is_random && bytes == 4096 && depth == 1 => {
            Some((ClassFigure::RandReadLatency, row.quantiles[0]?.value_ns as f64))
        }
        OpKind::Read if is_random && bytes == 4096 && depth >= DEPTH_MIN => {
            Some((ClassFigure::RandRead, row.ios_per_s?))
        }
        OpKind::Write if is_random && !is_durable && bytes == 4096 && depth >= DEPTH_MIN => {
            Some((ClassFigure::RandWrite, row.ios_per_s?))
        }
        OpKind::Write if is_durable && depth == 1 && (512..=8192).contains(&bytes) => {
            Some((ClassFigure::Commits, row.ios_per_s?))
        }
        _ => None,
    }
}

/// Returns the only disk under the targets of a record.
fn only_disk(record: &RunRecord) -> Option<&DiskFacts> {
    let mut disks = record.targets.iter().flat_map(|target| &target.disks);
    let first = disks.next()?;
    disks.all(|disk| disk.name == first.name).then_some(first)
}

/// Returns the limit of the disk's link. Several disks have several links, and what they share is unknown.
fn link_of(record: &RunRecord) -> Option<LinkLimit> {
    let disk = only_disk(record)?;
    let (name, rate, lanes, supported) = match (&disk.link, &disk.usb) {
        (_, Some(usb)) => {
            let mbit = usb.link_mbit_per_s.value?;
            let name = if mbit < 1000.0 { format!("USB {mbit} Mbit/s") } else { format!("USB {} Gbit/s", mbit / 1e3) };
            let port = usb.port_mbit_per_s.value.filter(|port| *port > mbit);
            (name, link_rate("usb", mbit)?, 1.0, port.map(|port| format!("the port supports {} Gbit/s", port / 1e3)))
        }
        (Some(link), None) => {
            let (rate, lanes) = match link {
                trueio_model::DiskLink::Pcie { gt_per_s, lanes, .. } => {
                    (link_rate("pcie", *gt_per_s)?, f64::from(*lanes))
                }
                trueio_model::DiskLink::Sata { gbit_per_s, .. } => (link_rate("sata", *gbit_per_s)?, 1.0),
            };
            (link.name(), rate, lanes, link.supported_name().map(|name| format!("the device supports {name}")))
        }
        (None, None) => return None,
    };
    let bytes_per_s = rate.bytes_per_s * lanes;
    Some(LinkLimit { name, bytes_per_s, reached_bytes_per_s: bytes_per_s * rate.reached.unwrap_or(1.0), supported })
}

/// The kinds of device whose classes a record's figures are compared with, besides disk and SSD.
fn is_of_this_kind(record: &RunRecord, group: &str) -> bool {
    let transports: Vec<String> = record
        .targets
        .iter()
        .flat_map(|target| &target.disks)
        .filter_map(|disk| disk.transport.value.as_ref().map(ToString::to_string))
        .collect();
    let is = |names: &[&str]| transports.iter().any(|transport| names.contains(&transport.as_str()));
    match group {
        "USB stick" | "USB 5G" | "USB 10G" => is(&["usb"]),
        "SD card" | "eMMC" => is(&["mmc", "usb"]),
        "cloud" => record.environment.hypervisor.value.is_some() || is(&["virtio", "xen", "hyper-v"]),
        "network" => is(&["rbd", "nbd", "iscsi"]),
        "memory" => true,
        _ => true,
    }
}

/// Groups that are shown on the scale, but that no sentence claims: a cap is no speed.
fn is_only_shown(group: &str) -> bool {
    matches!(group, "cloud" | "memory")
}

fn bands(record: &RunRecord, figure: ClassFigure) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for class in classes_of(figure).filter(|class| is_of_this_kind(record, &class.group)) {
        match bands.iter_mut().find(|band| band.name == class.group) {
            Some(band) => {
                band.low = band.low.min(class.low);
                band.high = band.high.max(class.high);
                band.classes.push(class);
            }
            None => bands.push(Band { name: &class.group, low: class.low, high: class.high, classes: vec![class] }),
        }
    }
    let middle = |band: &Band| (band.low * band.high).sqrt();
    bands.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
    if !figure.is_more_better() {
        bands.reverse();
    }
    bands
}

/// Returns the position of a value among bands, slowest first; `None` without a band.
fn position(figure: ClassFigure, bands: &[Band], value: f64) -> Option<Position> {
    let claimed: Vec<&Band> = bands.iter().filter(|band| !is_only_shown(band.name)).collect();
    let within: Vec<&'static str> = claimed.iter().filter(|band| band.contains(value)).map(|band| band.name).collect();
    if !within.is_empty() {
        return Some(Position::Within(within));
    }
    // As fast as memory, and as nothing else: the figure is suspicious, whatever the evidence saw.
    let is_better = |band: &&&Band| match figure.is_more_better() {
        true => value > band.high,
        false => value < band.low,
    };
    let below = claimed.iter().rev().find(is_better);
    let above = claimed.iter().find(|band| !is_better(band));
    match (below, above) {
        (Some(below), Some(above)) => Some(Position::Between(below.name, above.name)),
        (None, Some(above)) => Some(Position::WorseThan(above.name)),
        (Some(below), None) => Some(Position::BetterThan(below.name)),
        (None, None) => None,
    }
}

fn placed(record: &RunRecord, value: ClassValue, link: Option<&LinkLimit>, past: &[PastRun]) -> Option<Placement> {
    let bands = bands(record, value.figure);
    let position = position(value.figure, &bands, value.value)?;
    // Faster than its link: a hypervisor emulates the link, or a cache was measured.
    let link = link.filter(|link| value.figure.is_bandwidth() && value.value <= link.bytes_per_s * 1.02).cloned();
    let is_same = |one: &&ClassValue| (one.figure, &one.load) == (value.figure, &value.load) && one.is_supported;
    let earlier = past.iter().filter(|run| run.id != record.id).flat_map(|run| &run.values).filter(is_same);
    let mut earlier: Vec<f64> = earlier.map(|one| one.value).collect();
    earlier.sort_by(f64::total_cmp);
    let past = match earlier.as_slice() {
        [] => None,
        all => Some(PastValues { count: all.len(), low: all[0], median: all[all.len() / 2], high: all[all.len() - 1] }),
    };
    Some(Placement { value, bands, position, link, past })
}

fn limits(record: &RunRecord, placements: &[Placement]) -> Vec<Limit> {
    let mut limits = Vec::new();
    for (phase_index, phase) in record.phases.iter().enumerate() {
        if phase.verdict == Verdict::Contradicted {
            continue;
        }
        let mut add = |kind, sentence: Option<String>| {
            limits.extend(sentence.map(|sentence| Limit { kind, phase_index, sentence }));
        };
        let placement = placements.iter().find(|placement| placement.value.phase_index == phase_index);
        add(LimitKind::Link, placement.and_then(at_link));
        add(LimitKind::ControlGroup, objection(phase, "io_limits"));
        add(LimitKind::Throttle, objection(phase, "heat"));
        add(LimitKind::Processor, busy_workers(record, phase_index, phase));
        add(LimitKind::WriteCache, falling_writes(phase));
        add(LimitKind::Latency, placement.and_then(|placement| one_at_a_time(phase, placement)));
    }
    limits
}

/// Returns the sentence of a check that doubts the phase.
fn objection(phase: &PhaseRecord, name: &str) -> Option<String> {
    let check = phase.checks.iter().find(|check| check.name == name)?;
    matches!(check.outcome, CheckOutcome::Suspect | CheckOutcome::Contradicted).then(|| check.sentence.clone())
}

fn at_link(placement: &Placement) -> Option<String> {
    let link = placement.link.as_ref()?;
    (placement.value.value >= link.reached_bytes_per_s * LINK_SHARE_MIN).then(|| {
        format!(
            "The link {} limits it: {} of {} (devices reach {} on it).",
            link.name,
            units::format_bandwidth(placement.value.value),
            units::format_bandwidth(link.bytes_per_s),
            units::format_bandwidth(link.reached_bytes_per_s),
        )
    })
}

fn one_at_a_time(phase: &PhaseRecord, placement: &Placement) -> Option<String> {
    match placement.value.figure {
        // By Little's law the mean, and not the median that is placed.
        ClassFigure::RandReadLatency => {
            let ops = phase.jobs.iter().flat_map(|job| &job.ops);
            let mean = ops.filter(|op| op.op == OpKind::Read).find_map(|op| op.latency.total.mean_ns())?;
            Some(format!(
                "One read at a time: the mean latency of {} limits the rate, not the bandwidth.",
                units::format_duration_ns(mean.round() as u64)
            ))
        }
        ClassFigure::Commits => Some(format!(
            "One commit at a time: a commit takes {} on average, and the next one waits for it.",
            units::format_duration_ns((1e9 / placement.value.value) as u64)
        )),
        _ => None,
    }
}

fn busy_workers(record: &RunRecord, phase_index: usize, phase: &PhaseRecord) -> Option<String> {
    let workers: u32 =
        phase.jobs.iter().filter_map(|job| plan_of(record, phase_index, job)).map(|plan| plan.workers).sum();
    let time_ns = phase.elapsed_ns as f64 * f64::from(workers);
    let cpu_ns = phase.worker_cpu.user_ns as f64 + phase.worker_cpu.system_ns as f64;
    let share = if time_ns > 0.0 { cpu_ns / time_ns } else { 0.0 };
    (share >= BUSY_SHARE_MIN).then(|| {
        format!(
            "The processor limits it: {} for {:.0} % of the time; more workers may be faster.",
            if workers == 1 {
                "the worker was busy".to_owned()
            } else {
                format!("{} were busy", counted(u64::from(workers), "worker"))
            },
            (share * 100.0).min(100.0)
        )
    })
}

/// Finds a fall of the write rate that lasts. Each side of it has a quarter of the intervals or more.
fn falling_writes(phase: &PhaseRecord) -> Option<String> {
    let job = phase.jobs.first().filter(|_| phase.jobs.len() == 1)?;
    let rows: Vec<_> = job.series.iter().filter(|row| row.span_ns > 0).collect();
    let rates: Vec<f64> = rows.iter().map(|row| row.write_bytes as f64 / row.span_ns as f64 * 1e9).collect();
    let is_writing = rows.iter().all(|row| row.read_count == 0) && rates.len() >= 20;
    let median = |rates: &[f64]| {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    };
    if !is_writing {
        return None;
    }
    // The step that explains most of the variance of the logarithms: dips weigh little.
    let logs: Vec<f64> = rates.iter().map(|rate| rate.max(1.0).ln()).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let gain = |at: usize| (mean(&logs[..at]) - mean(&logs[at..])) * (at as f64 * (logs.len() - at) as f64).sqrt();
    let quarter = rates.len() / 4;
    let at = (quarter..rates.len() - quarter).max_by(|a, b| gain(*a).total_cmp(&gain(*b)))?;
    let (before, after) = (median(&rates[..at]), median(&rates[at..]));
    // Nearly every interval before is faster than nearly every one after.
    let slow_before = rates[..at].iter().filter(|rate| **rate < (before * after).sqrt()).count();
    let fast_after = rates[at..].iter().filter(|rate| **rate > (before * after).sqrt()).count();
    let is_clear = slow_before * 10 <= at && fast_after * 10 <= rates.len() - at;
    (after > 0.0 && before / after >= FALL_MIN && is_clear).then(|| {
        format!(
            "The write rate fell from {} to {} after {} and stayed there: a full write cache looks like that.",
            units::format_bandwidth(before),
            units::format_bandwidth(after),
            units::format_duration_ns(rows[at - 1].end_ns)
        )
    })
}

/// Returns true if no flush could be counted because the disk declares no volatile write cache.
fn declares_no_cache(phase: &PhaseRecord) -> bool {
    let is_declared = |check: &trueio_model::Check| {
        check.name == "flushes" && check.outcome == CheckOutcome::NotSeen && check.source == "queue/write_cache"
    };
    phase.checks.iter().any(is_declared)
}

/// Returns what the figures are good for.
fn uses(record: &RunRecord, placements: &[Placement]) -> Vec<String> {
    let rows = summary(record);
    let mut uses = Vec::new();
    if let Some(commits) = placements.iter().find(|placement| placement.value.figure == ClassFigure::Commits) {
        let sync = rows.iter().find(|row| row.phase_index == commits.value.phase_index && row.op == OpKind::Sync);
        let latency = sync.and_then(|row| row.quantiles[1].map(|q| q.value_ns));
        let mut text = format!(
            "A database with one writer that waits for each commit makes at most {} commits per second",
            units::format_count(commits.value.value.round() as u64)
        );
        if let Some(p99) = latency {
            let name = percentile_name(0.99);
            text.push_str(&format!(" (flush {name} {})", units::format_duration_ns(p99)));
            // Source 81 of classes.toml.
            let limit = 10_000_000;
            let word = if p99 < limit { "met" } else { "missed" };
            text.push_str(&format!("; etcd's guideline of less than 10 ms at {name} is {word}"));
        }
        text.push('.');
        if record.phases.get(commits.value.phase_index).is_some_and(declares_no_cache) {
            text.push_str(
                " That a power cut loses none of them is declared by the device (no volatile write cache), not proved.",
            );
        }
        uses.push(text);
    }
    uses
}

impl Standing {
    /// Returns the placement of a figure.
    pub fn of(&self, figure: ClassFigure) -> Option<&Placement> {
        self.placements.iter().find(|placement| placement.value.figure == figure)
    }

    /// Returns one sentence that compares the run with device classes; `None` if nothing can be placed.
    pub fn sentence(&self) -> Option<String> {
        let verb = |figure| match figure {
            ClassFigure::SeqRead => Some("reads"),
            ClassFigure::SeqWrite => Some("writes"),
            ClassFigure::RandReadLatency => Some("answers a random read"),
            ClassFigure::Commits => Some("commits"),
            ClassFigure::RandRead | ClassFigure::RandWrite => None,
        };
        // Figures with one position share it.
        let mut groups: Vec<(String, Vec<&'static str>)> = Vec::new();
        for placement in &self.placements {
            let Some(verb) = verb(placement.value.figure) else { continue };
            let words = placement.position.words();
            match groups.iter_mut().find(|(known, _)| *known == words) {
                Some((_, verbs)) => verbs.push(verb),
                None => groups.push((words, vec![verb])),
            }
        }
        let parts: Vec<String> =
            groups.into_iter().map(|(words, verbs)| format!("{} {words}", joined(&verbs, "and"))).collect();
        if parts.is_empty() {
            return None;
        }
        let text = parts.join("; ");
        let mut letters = text.chars();
        letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
    }

    /// Returns one sentence that compares the run with earlier runs of the device; `None` without one of an equal load.
    /// A figure is in the range of earlier ones up to a twentieth beyond it.
    pub fn past_sentence(&self) -> Option<String> {
        let known = self.placements.iter().filter_map(|placement| Some((placement, placement.past?)));
        let known: Vec<(&Placement, PastValues)> = known.collect();
        let count = known.iter().map(|(_, past)| past.count).max()?;
        let is_within = |value: f64, past: &PastValues| (past.low * 0.95..=past.high * 1.05).contains(&value);
        let outside: Vec<String> = known
            .iter()
            .filter(|(placement, past)| !is_within(placement.value.value, past))
            .map(|(placement, past)| {
                let figure = placement.value.figure;
                let (low, high) = (figure.show(past.low), figure.show(past.high));
                let range = if low == high { low } else { format!("{low} to {high}") };
                format!("{} {}, was {range}", figure.name(), figure.show(placement.value.value))
            })
            .collect();
        let runs = if count == 1 { "The earlier run".to_owned() } else { format!("{count} earlier runs") };
        let text = match (outside.is_empty(), outside.len() == known.len()) {
            (true, _) => format!("{runs} of this device: all figures are within their range."),
            (false, true) => format!("{runs} of this device: {}.", outside.join("; ")),
            (false, false) => {
                format!("{runs} of this device: {}; the others are within their range.", outside.join("; "))
            }
        };
        Some(text)
    }
}

impl Position {
    /// Describes the position: `like an NVMe SSD`, `between a disk and a SATA SSD`.
    pub fn words(&self) -> String {
        match self {
            Position::Within(groups) => {
                let groups: Vec<String> = groups.iter().map(|group| with_article(group)).collect();
                let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
                format!("like {}", joined(&groups, "or"))
            }
            Position::Between(a, b) => format!("faster than {} and slower than {}", with_article(a), with_article(b)),
            Position::WorseThan(group) => format!("slower than {}", with_article(group)),
            Position::BetterThan(group) => format!("faster than {}", with_article(group)),
        }
    }
}

/// Formats `a, b and c`.
fn joined(words: &[&str], and: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} {and} {last}", all.join(", ")),
    }
}

/// Adds `a` or `an`, by the sound of the name's first letter.
fn with_article(group: &str) -> String {
    let is_vowel = ["NVMe", "SD ", "eMMC", "Optane"].iter().any(|start| group.starts_with(start));
    match group {
        "USB 5G" => "a USB SSD on 5 Gbit/s".to_owned(),
        "USB 10G" => "a USB SSD on 10 Gbit/s".to_owned(),
        "protected SSD" => "an SSD with power-loss protection".to_owned(),
        "network" => "a network volume".to_owned(),
        group => format!("{} {group}", if is_vowel { "an" } else { "a" }),
    }
}
