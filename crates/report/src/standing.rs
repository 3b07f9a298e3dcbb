//! Where a run's figures stand: among published device classes, against the link of the disk, and in the device's own
//! history.
//!
//! A pure function of a record and earlier figures. Sentences are made of it in `statements.rs`. Only figures with a comparable
//! load are placed: direct I/O in one job, 64 I/Os or more over half a second or more. A figure that is not the disk's is not
//! placed; it is named with the reason ([`Standing::withheld`]).

use crate::classes::{ClassFigure, DeviceClass, classes_of, link_rate};
use crate::summary::{Row, commits, plan_of, shape_of, summary};
use crate::verdicts::{is_memory, mark, row_words};
use trueio_model::{BlockSizes, DirectPolicy, DiskFacts, JobPlan, Mark, OpKind, OpMix, Order, RunRecord, SyncMode};

/// Fewer I/Os than this are not placed.
const IO_COUNT_MIN: u64 = 64;
/// Shorter phases are not placed.
const ELAPSED_NS_MIN: u64 = 500_000_000;
/// From this size on, a sequential transfer counts as large.
const LARGE_BYTES: u64 = 128 << 10;
/// From this depth on, random I/O counts as deep.
const DEPTH_MIN: u64 = 16;

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
    /// The word of its load: confirmed, disturbed, unsteady or unverified.
    pub mark: Mark,
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
    /// The lowest published figure of its classes, in the figure's unit.
    pub low: f64,
    /// The highest published figure of its classes, in the figure's unit.
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
    /// The smallest value, in the figure's unit.
    pub low: f64,
    /// The median of the values, in the figure's unit.
    pub median: f64,
    /// The largest value, in the figure's unit.
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

/// Where the figures of a record stand.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    /// Each figure that can be placed, in the order of [`ClassFigure::ALL`].
    pub placements: Vec<Placement>,
    /// The figures that would be placed if they were not withheld, in the same order.
    pub withheld: Vec<Withheld>,
}

/// A figure that is withheld: it has a place and no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// Which.
    pub figure: ClassFigure,
    /// Its phase, as an index into [`RunRecord::phases`].
    pub phase_index: usize,
    /// The word of its load, with the finding: `withheld: waited for a processor 89 % of the time`.
    pub reason: String,
}

/// Places the figures of a record. `past` are earlier runs of the same device, in any order.
pub fn standing(record: &RunRecord, past: &[PastRun]) -> Standing {
    let link = link_of(record);
    let placements: Vec<Placement> =
        class_values(record).into_iter().filter_map(|value| placed(record, value, link.as_ref(), past)).collect();
    let withheld = withheld(record, &placements);
    Standing { placements, withheld }
}

/// Returns the figures whose loads are withheld and that no other load has, each once.
fn withheld(record: &RunRecord, placements: &[Placement]) -> Vec<Withheld> {
    let mut found: Vec<Withheld> = Vec::new();
    for row in summary(record) {
        let phase = &record.phases[row.phase_index];
        let plan = phase.jobs.get(row.job_index).and_then(|job| plan_of(record, row.phase_index, job));
        let Some(figure) = plan.filter(|plan| is_comparable(plan)).and_then(|plan| figure_of(plan, row.op)) else {
            continue;
        };
        let is_known = placements.iter().any(|placement| placement.value.figure == figure)
            || found.iter().any(|known| known.figure == figure);
        if !mark(phase).is_shown() && !is_known {
            found.push(Withheld { figure, phase_index: row.phase_index, reason: row_words(phase) });
        }
    }
    found.sort_by_key(|withheld| withheld.figure);
    found
}

/// Returns true if a job's I/O is that of the published figures.
fn is_comparable(plan: &JobPlan) -> bool {
    plan.engine.touches_files() && plan.direct != DirectPolicy::Off && plan.pace.is_none() && plan.think.is_none()
}

/// Returns the figures of a record that can be placed, each once, in the order of [`ClassFigure::ALL`].
pub fn class_values(record: &RunRecord) -> Vec<ClassValue> {
    let rows = summary(record);
    let mut found: Vec<ClassValue> = Vec::new();
    for index in 0..rows.len() {
        if let Some(value) = class_value(record, &rows, index)
            && !found.iter().any(|known| known.figure == value.figure)
        {
            found.push(value);
        }
    }
    found.sort_by_key(|value| value.figure);
    found
}

fn class_value(record: &RunRecord, rows: &[Row], index: usize) -> Option<ClassValue> {
    let row = &rows[index];
    let phase = record.phases.get(row.phase_index)?;
    let job = phase.jobs.get(row.job_index)?;
    let plan = plan_of(record, row.phase_index, job)?;
    let is_placed = phase.jobs.len() == 1
        && !record.targets.iter().flat_map(|target| &target.disks).any(is_memory)
        && is_comparable(plan)
        && !row.is_withheld
        && row.io_count >= IO_COUNT_MIN
        && job.elapsed_ns >= ELAPSED_NS_MIN;
    let figure = is_placed.then(|| figure_of(plan, row.op)).flatten()?;
    // The sync calls are counted, as on the first screen: the last write of a run may have none.
    let counted = match figure {
        // Writes that a flag makes durable are commits themselves, whatever else is synced from time to time.
        ClassFigure::Commits if commits(plan) => {
            let is_of_job = |other: &&Row| (other.phase_index, other.job_index) == (row.phase_index, row.job_index);
            rows.iter().filter(is_of_job).find(|other| other.op == OpKind::Sync).unwrap_or(row)
        }
        _ => row,
    };
    let value = value_of(figure, counted)?;
    (value.is_finite() && value > 0.0).then(|| ClassValue {
        figure,
        value,
        row: index,
        phase_index: row.phase_index,
        load: shape_of(plan),
        mark: mark(phase),
    })
}

/// Returns the figure of an operation that classes have, too.
fn figure_of(plan: &JobPlan, of: OpKind) -> Option<ClassFigure> {
    let depth = u64::from(plan.workers) * if plan.engine.holds_a_queue() { u64::from(plan.queue.depth) } else { 1 };
    let is_random = matches!(plan.pattern.order, Order::Random { .. });
    let OpMix::Only(op) = plan.pattern.mix else { return None };
    let sizes = if op == OpKind::Read { &plan.pattern.read_sizes } else { &plan.pattern.write_sizes };
    let BlockSizes::Fixed(bytes) = *sizes else { return None };
    if of != op {
        return None;
    }
    let is_durable = plan.flush.fdatasync_every == 1
        || plan.flush.fsync_every == 1
        || plan.sync != SyncMode::None
        || plan.write_flags.dsync;
    match op {
        OpKind::Read if !is_random && bytes >= LARGE_BYTES => Some(ClassFigure::SeqRead),
        OpKind::Write if !is_random && !is_durable && bytes >= LARGE_BYTES => Some(ClassFigure::SeqWrite),
        OpKind::Read if is_random && bytes == 4096 && depth == 1 => Some(ClassFigure::RandReadLatency),
        OpKind::Read if is_random && bytes == 4096 && depth >= DEPTH_MIN => Some(ClassFigure::RandRead),
        OpKind::Write if is_random && !is_durable && bytes == 4096 && depth >= DEPTH_MIN => {
            Some(ClassFigure::RandWrite)
        }
        OpKind::Write if is_durable && depth == 1 && (512..=8192).contains(&bytes) => Some(ClassFigure::Commits),
        _ => None,
    }
}

/// Returns the value of a figure, in its unit.
fn value_of(figure: ClassFigure, row: &Row) -> Option<f64> {
    match figure {
        ClassFigure::SeqRead | ClassFigure::SeqWrite => row.bytes_per_s,
        ClassFigure::RandReadLatency => Some(row.quantiles[0]?.value_ns as f64),
        ClassFigure::RandRead | ClassFigure::RandWrite | ClassFigure::Commits => row.ios_per_s,
    }
}

/// Returns the only disk under the targets of a record.
pub(crate) fn only_disk(record: &RunRecord) -> Option<&DiskFacts> {
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
pub(crate) fn is_only_shown(group: &str) -> bool {
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
    let is_same =
        |one: &&ClassValue| (one.figure, &one.load) == (value.figure, &value.load) && one.mark == Mark::Confirmed;
    let earlier = past.iter().filter(|run| run.id != record.id).flat_map(|run| &run.values).filter(is_same);
    let mut earlier: Vec<f64> = earlier.map(|one| one.value).collect();
    earlier.sort_by(f64::total_cmp);
    let past = match earlier.as_slice() {
        [] => None,
        all => Some(PastValues { count: all.len(), low: all[0], median: all[all.len() / 2], high: all[all.len() - 1] }),
    };
    Some(Placement { value, bands, position, link, past })
}

impl Standing {
    /// Returns the placement of a figure.
    pub fn of(&self, figure: ClassFigure) -> Option<&Placement> {
        self.placements.iter().find(|placement| placement.value.figure == figure)
    }
}

impl Placement {
    /// Returns true if the evidence confirms the figure: only then its position and its link are stated.
    pub fn is_confirmed(&self) -> bool {
        self.value.mark == Mark::Confirmed
    }

    /// Returns true if the figure is worse than the range of a group on its scale.
    pub(crate) fn is_worse_than(&self, group: &str) -> bool {
        let value = self.value.value;
        self.bands.iter().any(|band| {
            band.name == group
                && !band.contains(value)
                && if self.value.figure.is_more_better() { value < band.low } else { value > band.high }
        })
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
pub(crate) fn joined(words: &[&str], and: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} {and} {last}", all.join(", ")),
    }
}

/// Adds `a` or `an`, by the sound of the name's first letter.
pub(crate) fn with_article(group: &str) -> String {
    let is_vowel = ["NVMe", "SD ", "eMMC", "Optane"].iter().any(|start| group.starts_with(start));
    match group {
        "USB 5G" => "a USB SSD on 5 Gbit/s".to_owned(),
        "USB 10G" => "a USB SSD on 10 Gbit/s".to_owned(),
        "protected SSD" => "an SSD with power-loss protection".to_owned(),
        "network" => "a network volume".to_owned(),
        group => format!("{} {group}", if is_vowel { "an" } else { "a" }),
    }
}
