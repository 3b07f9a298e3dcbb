//! The content of fio's documents, computed from a record once for all formats: which jobs are reported together, and
//! their figures.

use super::FioOutput;
use super::buckets::middles;
use std::collections::BTreeMap;
use trueio_model::{
    BlockSizes, CriterionPlan, CriterionRecord, DeviceCounters, EngineKind, FioJob, Grouping, Histogram, IoPriority,
    JobPlan, JobRecord, JobSpec, OpKind, OpRecord, Outcome, PhaseRecord, QueueCounts, RunRecord, SeriesRow,
    ThreadUsage, Unified,
};

/// fio's error number of a verification that failed.
const EILSEQ: i32 = 84;
/// The error number of a job that never ran.
const ECANCELED: i32 = 125;
/// The error number of a failure without a number.
const EIO: i32 = 5;

/// The content of a document.
pub(super) struct Document<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) options: &'a FioOutput,
    /// Whether the run is in progress.
    pub(super) is_interim: bool,
    pub(super) entries: Vec<Entry<'a>>,
    pub(super) disks: Vec<Disk>,
    /// When the run ended: milliseconds since 1970.
    pub(super) ended_unix_ms: u64,
    /// Duration of the whole run, in seconds, at least 1.
    pub(super) elapsed_s: u64,
    /// The server that it ran on, by the name and the port that its client used.
    pub(super) server: Option<(&'a str, u16)>,
}

/// A job, a worker of one, or a group of jobs.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) group: u32,
    pub(super) plan: &'a JobPlan,
    /// The position of the first job in the plan.
    pub(super) first: usize,
    /// The position of the last one.
    pub(super) last: usize,
    /// Number of workers.
    pub(super) workers: u32,
    /// When its measured part began: milliseconds since 1970.
    pub(super) began_unix_ms: u64,
    pub(super) error: i32,
    /// Failed I/Os, and the number of the first one's error.
    pub(super) failure_count: u64,
    /// They are reported: the job is set to continue after some of them.
    pub(super) reports_failures: bool,
    pub(super) first_error: i32,
    /// Zones that were reset; `None` if none could be.
    pub(super) zone_resets: Option<u64>,
    /// Read, write, trim.
    pub(super) ops: [Figures; 3],
    /// All three as one, if requested.
    pub(super) mixed: Option<Figures>,
    pub(super) sync: Figures,
    pub(super) threads: ThreadUsage,
    /// Shares in percent.
    pub(super) depth: [f64; 7],
    pub(super) submit: [f64; 7],
    pub(super) complete: [f64; 7],
    /// Completion latencies of all I/Os, sync calls excluded: shares in percent, by fio's limits.
    pub(super) latency: [f64; LATENCY_CLASSES],
    /// The phases that the figures come from.
    pub(super) phase: Option<&'a PhaseRecord>,
    /// The queue depth that the search of a job with a latency target found.
    depth_found: Option<u32>,
    /// How steady it became, if it ends when it is steady.
    pub(super) criterion: Option<&'a CriterionRecord>,
    /// The rule; jobs without I/O, which a group may begin with, have none.
    pub(super) criterion_plan: Option<CriterionPlan>,
    /// Jobs of several runs or groups together: no options, plan and evidence are those of all.
    pub(super) is_sum: bool,
}

/// fio's limits of the distribution of latencies: 10 in nanoseconds, 10 in microseconds, 12 in
/// milliseconds.
pub(super) const LATENCY_CLASSES: usize = 32;
pub(super) const LATENCY_LIMITS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// A latency target, and the queue depth that the search found.
pub(super) struct Target {
    pub(super) target_ns: u64,
    pub(super) window_us: u64,
    pub(super) percent: f64,
    pub(super) depth: u32,
}

/// One direction.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) io_count: u64,
    pub(super) byte_count: u64,
    pub(super) short_count: u64,
    /// Metadata operations, which fio counts as I/Os and bytes.
    pub(super) name_count: u64,
    /// The longest worker's time, in nanoseconds; 0 without I/O.
    pub(super) elapsed_ns: u64,
    pub(super) slat: Histogram,
    pub(super) clat: Histogram,
    pub(super) lat: Histogram,
    /// Completion and total latencies by priority, where I/Os had several: the threads' own first.
    pub(super) priorities: Vec<(IoPriority, Histogram, Histogram)>,
    /// KiB a second over time.
    pub(super) bw: Samples,
    /// I/Os a second over time.
    pub(super) iops: Samples,
    /// Bytes a second of the whole group.
    pub(super) group_bytes_per_s: f64,
}

impl Figures {
    pub(super) fn bytes_per_s(&self) -> f64 {
        rate(self.byte_count, self.elapsed_ns)
    }

    pub(super) fn ios_per_s(&self) -> f64 {
        rate(self.io_count, self.elapsed_ns)
    }

    /// Milliseconds; at least 1 if anything was done.
    pub(super) fn runtime_ms(&self) -> u64 {
        (self.elapsed_ns.saturating_add(500_000) / 1_000_000).max(u64::from(self.elapsed_ns > 0))
    }

    /// Its part of the group's bandwidth over time, in percent.
    pub(super) fn share_percent(&self) -> f64 {
        let group = self.group_bytes_per_s / 1024.0;
        if group > 0.0 { (self.bw.mean * 100.0 / group).min(100.0) } else { 0.0 }
    }

    fn add(&mut self, other: &Figures) {
        self.io_count = self.io_count.saturating_add(other.io_count);
        self.byte_count = self.byte_count.saturating_add(other.byte_count);
        self.short_count = self.short_count.saturating_add(other.short_count);
        self.name_count = self.name_count.saturating_add(other.name_count);
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.slat.merge(&other.slat);
        self.clat.merge(&other.clat);
        self.lat.merge(&other.lat);
        for (priority, clat, lat) in &other.priorities {
            self.add_priority(*priority, clat, lat);
        }
    }

    fn add_priority(&mut self, priority: IoPriority, clat: &Histogram, lat: &Histogram) {
        match self.priorities.iter_mut().find(|(known, ..)| *known == priority) {
            Some((_, of_clat, of_lat)) => {
                of_clat.merge(clat);
                of_lat.merge(lat);
            }
            None => self.priorities.push((priority, clat.clone(), lat.clone())),
        }
    }

    /// The latencies of each priority of which there were I/Os, if there are two or more: with `lat_percentiles` the
    /// total ones, else the completion latencies.
    pub(super) fn by_priority(&self, is_total: bool) -> Vec<(IoPriority, &Histogram)> {
        let each = self.priorities.iter().map(|(priority, clat, lat)| (*priority, if is_total { lat } else { clat }));
        let found: Vec<_> = each.filter(|(_, histogram)| !histogram.is_empty()).collect();
        if found.len() < 2 { Vec::new() } else { found }
    }
}

/// A sum that does not overflow, whatever values a record contains.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

fn rate(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns > 0 { count as f64 * 1e9 / elapsed_ns as f64 } else { 0.0 }
}

/// A figure over time: one value for each whole span.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    pub(super) dev: f64,
    pub(super) count: u64,
}

impl Samples {
    fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(0.0, f64::max),
            mean,
            dev: if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 },
            count: values.len() as u64,
        }
    }
}

/// A disk over all phases.
pub(super) struct Disk {
    pub(super) name: String,
    pub(super) counters: DeviceCounters,
    pub(super) util_percent: f64,
}

/// A job of the plan with its record; none if it never ran.
struct Unit<'a> {
    plan: &'a JobPlan,
    index: usize,
    phase: Option<&'a PhaseRecord>,
    job: Option<&'a JobRecord>,
    /// Number of workers of `job`.
    workers: u32,
    group: u32,
    /// The job's name in fio.
    name: &'a str,
    /// Reported with its neighbours of the group.
    is_grouped: bool,
    /// fio's `continue_on_error` is set, to whatever errors.
    continues: bool,
    /// `verify_only` is set: the writes that it compares are counted.
    counts_compared: bool,
}

impl<'a> Document<'a> {
    pub(super) fn of(record: &'a RunRecord, options: &'a FioOutput) -> Self {
        Self::so_far(record, options, options.is_interim)
    }

    /// The same for a run that may be in progress.
    pub(super) fn so_far(record: &'a RunRecord, options: &'a FioOutput, is_interim: bool) -> Self {
        let started_ms = match record.started_unix_ms {
            0 => record.started_unix_s.saturating_mul(1000),
            ms => ms,
        };
        let ended_ns = record.phases.iter().map(|p| p.begin_ns.saturating_add(p.elapsed_ns)).max().unwrap_or(0);
        let mut entries: Vec<Entry<'a>> =
            entries_of(units_of(record)).iter().map(|units| entry(units, started_ms, is_interim)).collect();
        let mut groups: BTreeMap<(u32, usize), (u64, u64)> = BTreeMap::new();
        for entry in &entries {
            for (op, figures) in entry.directions() {
                let of = groups.entry((entry.group, op)).or_default();
                of.0 = of.0.saturating_add(figures.byte_count);
                of.1 = of.1.max(figures.elapsed_ns);
            }
        }
        for entry in &mut entries {
            let group = entry.group;
            for (op, figures) in entry.directions_mut() {
                let (bytes, elapsed_ns) = groups[&(group, op)];
                figures.group_bytes_per_s = rate(bytes, elapsed_ns);
            }
        }
        Self {
            record,
            options,
            is_interim,
            entries,
            disks: disks(record),
            ended_unix_ms: started_ms.saturating_add(ended_ns / 1_000_000),
            elapsed_s: ended_ns.div_ceil(1_000_000_000).max(1),
            server: None,
        }
    }

    /// All jobs of several runs as one; `None` if there are not several.
    pub(super) fn sum_of(documents: &[&Document<'a>]) -> Option<Entry<'a>> {
        let units: Vec<Unit<'a>> = documents.iter().flat_map(|document| units_of(document.record)).collect();
        if documents.iter().map(|document| document.entries.len()).sum::<usize>() < 2 {
            return None;
        }
        let first = &documents.iter().find(|document| !document.entries.is_empty())?.entries[0];
        let is_interim = documents.iter().any(|document| document.is_interim);
        let mut sum = entry(&units, 0, is_interim);
        (sum.name, sum.group, sum.began_unix_ms, sum.is_sum) = ("All clients", 0, first.began_unix_ms, true);
        for (_, figures) in sum.directions_mut() {
            figures.group_bytes_per_s = figures.bytes_per_s();
        }
        Some(sum)
    }

    /// The job's own options as typed, or those of its specification.
    pub(super) fn options_of(&self, index: usize) -> Vec<(&'a str, &'a str)> {
        let Some(spec) = spec_of(self.record, index) else { return Vec::new() };
        match &spec.fio {
            Some(fio) => {
                let name = fio.is_from_command_line && !fio.given.iter().any(|word| word.name == "name");
                let own = in_fios_order(fio, false);
                name.then_some(("name", fio.name.as_str())).into_iter().chain(own).collect()
            }
            None => spec.options.iter().map(|(name, value)| (name.as_str(), value.text.as_str())).collect(),
        }
    }

    /// The global options that apply to the last job.
    pub(super) fn global_options(&self) -> Vec<(&'a str, &'a str)> {
        let last = self.record.spec.iter().filter_map(|spec| spec.fio.as_ref()).next_back();
        last.map_or(Vec::new(), |fio| in_fios_order(fio, true))
    }

    /// Whether the disks are shown: not if a job sets `disk_util=0`.
    pub(super) fn shows_disks(&self) -> bool {
        let mut jobs = self.record.spec.iter().filter_map(|spec| spec.fio.as_ref());
        !jobs.any(|fio| fio.word("disk_util").is_some_and(|word| word.text == "0"))
    }

    /// A number that the jobs of a group share, by fio's option name. As in fio, the last job's value counts.
    pub(super) fn number_of(&self, group: u32, name: &str) -> Option<u64> {
        let last = self.entries.iter().rfind(|entry| entry.group == group)?.last;
        spec_of(self.record, last)?.fio.as_ref()?.word(name)?.text.parse().ok()
    }

    /// The queue depth that a job was given; a blocking engine uses 1 of it.
    pub(super) fn given_depth(&self, index: usize) -> Option<u32> {
        let fio = spec_of(self.record, index)?.fio.as_ref()?;
        fio.word("iodepth").and_then(|word| word.text.parse().ok())
    }

    /// The job's description.
    pub(super) fn description(&self, index: usize) -> Option<&'a str> {
        let fio = spec_of(self.record, index)?.fio.as_ref()?;
        fio.word("description").map(|word| word.text.as_str())
    }
}

/// A job's own options, or those for all jobs. From a job file fio prints options that set the meaning of units first
/// and file names last; from the command line it prints them in the order typed.
fn in_fios_order(fio: &FioJob, is_global: bool) -> Vec<(&str, &str)> {
    let words = fio.given.iter().filter(|word| word.is_global == is_global);
    let mut found: Vec<(&str, &str)> = words.map(|word| (word.name.as_str(), word.text.as_str())).collect();
    if !fio.is_from_command_line {
        found.sort_by_key(|(name, _)| match *name {
            "kb_base" | "unit_base" => 0,
            "filename" => 2,
            _ => 1,
        });
    }
    found
}

/// The specification of a job of the plan.
fn spec_of(record: &RunRecord, index: usize) -> Option<&JobSpec> {
    let name = &record.plan.jobs.get(index)?.name;
    let is_it = |spec: &&JobSpec| spec.name == *name;
    // Without clones both lists have one order: thousands of jobs are not searched for each of them.
    record.spec.get(index).filter(is_it).or_else(|| record.spec.iter().find(is_it))
}

impl Entry<'_> {
    /// Read, write, trim and all of them as one, numbered.
    fn directions(&self) -> impl Iterator<Item = (usize, &Figures)> {
        self.ops.iter().chain(&self.mixed).enumerate()
    }

    fn directions_mut(&mut self) -> impl Iterator<Item = (usize, &mut Figures)> {
        self.ops.iter_mut().chain(&mut self.mixed).enumerate()
    }

    /// Number of metadata operations, and their rate per second; `None` if the engine transfers data.
    pub(super) fn names(&self) -> Option<(u64, f64)> {
        self.plan.output.names?;
        let names = total(self.ops.iter().map(|figures| figures.name_count));
        let elapsed_ns = self.ops.iter().map(|figures| figures.elapsed_ns).max().unwrap_or(0);
        Some((names, rate(names, elapsed_ns)))
    }

    /// Whether percentiles of the total latency are requested.
    pub(super) fn has_lat_percentiles(&self) -> bool {
        self.plan.output.lat_percentiles && !self.plan.output.hides_lat
    }

    /// Which histograms have percentiles: slat, clat, lat. A latency that is not reported has none. With a rate, the
    /// latency that counts from the time an I/O was due always has them.
    pub(super) fn percentiles(&self) -> [bool; 3] {
        let output = &self.plan.output;
        [
            output.slat_percentiles && !output.hides_slat,
            output.clat_percentiles && !output.hides_clat,
            self.has_lat_percentiles() || self.plan.is_paced(),
        ]
    }

    /// Whether sync calls have percentiles: if any latency has, even one that is not reported.
    pub(super) fn has_sync_percentiles(&self) -> bool {
        let output = &self.plan.output;
        output.clat_percentiles || output.lat_percentiles || self.plan.is_paced()
    }

    /// The values that fio prints about the search for a queue depth, whether there was one or not.
    pub(super) fn latency_target(&self, given_depth: Option<u32>) -> Target {
        let plan = self.plan.control.latency_target;
        Target {
            target_ns: plan.map_or(0, |target| target.target_ns),
            window_us: plan.map_or(0, |target| target.window_ns / 1_000),
            percent: plan.map_or(100.0, |target| target.percent),
            depth: self.depth_found.or(given_depth).unwrap_or(self.plan.queue.depth),
        }
    }

    /// What is reported of each direction.
    pub(super) fn reported(&self) -> Vec<(&'static str, &Figures)> {
        let each = ["read", "write", "trim"].into_iter().zip(&self.ops);
        match (self.plan.output.unified, &self.mixed) {
            (Unified::Mixed, Some(mixed)) => vec![("mixed", mixed)],
            (_, Some(mixed)) => each.chain([("mixed", mixed)]).collect(),
            (_, None) => each.collect(),
        }
    }
}

/// The plan's jobs with their records (not those with `stats=0`). A job that is reported by worker is one unit for each
/// worker.
fn units_of(record: &RunRecord) -> Vec<Unit<'_>> {
    let mut phases: Vec<u32> = record.plan.jobs.iter().map(|job| job.phase).collect();
    phases.sort_unstable();
    phases.dedup();
    let mut units = Vec::new();
    let (mut group, mut before) = (0, None);
    for (index, plan) in record.plan.jobs.iter().enumerate() {
        if before.is_some_and(|phase| phase != plan.phase) || (before.is_some() && plan.output.new_group) {
            group += 1;
        }
        before = Some(plan.phase);
        let position = phases.binary_search(&plan.phase).unwrap_or(usize::MAX);
        let phase = record.phases.get(position);
        let within = record.plan.jobs[..index].iter().filter(|job| job.phase == plan.phase).count();
        let job = phase.and_then(|phase| phase.jobs.get(within));
        let fio = spec_of(record, index).and_then(|spec| spec.fio.as_ref());
        let (name, group) = fio.map_or((plan.name.as_str(), group), |fio| (fio.name.as_str(), fio.group));
        let is_grouped = plan.output.grouping == Grouping::Group || fio.is_some_and(|fio| fio.is_on("group_reporting"));
        if fio.is_some_and(|fio| fio.word("stats").is_some_and(|word| word.text == "0")) {
            continue;
        }
        let continues = fio
            .and_then(|fio| fio.word("continue_on_error"))
            .is_some_and(|word| !["none", "0"].contains(&word.text.as_str()));
        let is_offline = plan.verify.as_ref().is_some_and(|verify| verify.is_offline);
        // A job that reads, with a saved state, compares without being one that writes.
        let counts_compared = is_offline && fio.is_none_or(|fio| fio.is_on("verify_only"));
        let unit = |job, workers| Unit {
            plan,
            index,
            phase,
            job,
            workers,
            group,
            name,
            is_grouped,
            continues,
            counts_compared,
        };
        match job {
            Some(job) if !job.workers.is_empty() => units.extend(job.workers.iter().map(|job| unit(Some(job), 1))),
            job => units.push(unit(job, plan.workers)),
        }
    }
    units
}

/// Returns the number of jobs that failed, each clone by itself, as fio's exit code.
pub(crate) fn failed_jobs(record: &RunRecord) -> usize {
    units_of(record).iter().filter(|unit| error_of(unit) != 0).count()
}

/// Returns which units are one entry: as in fio, a job that sets `group_reporting` joins the one before it in its group.
fn entries_of(units: Vec<Unit<'_>>) -> Vec<Vec<Unit<'_>>> {
    let mut entries: Vec<Vec<Unit<'_>>> = Vec::new();
    for unit in units {
        match entries.last_mut() {
            Some(last) if last[0].group == unit.group && unit.is_grouped => {
                last.push(unit);
            }
            _ => entries.push(vec![unit]),
        }
    }
    entries
}

/// Adds up the units that are reported as one entry.
fn entry<'a>(units: &[Unit<'a>], started_ms: u64, is_interim: bool) -> Entry<'a> {
    let output = &units[0].plan.output;
    let mut entry = empty_entry(units, started_ms);
    let mut queue = QueueCounts::default();
    for unit in units {
        entry.criterion_plan = entry.criterion_plan.or(unit.plan.control.criterion);
        // In an interim document, a job without results has not begun.
        if entry.error == 0 && !(is_interim && unit.job.is_none()) {
            entry.error = error_of(unit);
        }
        let Some(job) = unit.job else { continue };
        entry.add_failures(job);
        entry.add_ops(job, unit.plan);
        if unit.counts_compared {
            entry.count_compared(job, unit.plan);
        }
        // With several workers the smallest depth: all of them keep the target with it.
        let found = job.depth_searches.iter().map(|search| search.depth).chain(entry.depth_found).min();
        entry.depth_found = found;
        entry.criterion = entry.criterion.or(job.criterion.as_ref());
        entry.threads.add(&threads_of(job, unit));
        queue.add(&queue_of(job, unit.plan));
    }
    if output.unified != Unified::No {
        let mut mixed = Figures::default();
        entry.ops.iter().for_each(|figures| mixed.add(figures));
        entry.mixed = Some(mixed);
    }
    if !output.hides_bw {
        entry.add_samples(units);
    }
    entry.depth = shares(&queue.depth, total(queue.depth.iter().copied()), 0.1);
    entry.submit = shares(&queue.submit, total(queue.submit.iter().copied()), 0.1);
    entry.complete = shares(&queue.complete, total(queue.complete.iter().copied()), 0.1);
    if !output.hides_clat {
        entry.latency = latency_shares(&entry.ops);
    }
    entry
}

/// Returns the entry of units before their results are added.
fn empty_entry<'a>(units: &[Unit<'a>], started_ms: u64) -> Entry<'a> {
    let (first, last) = (&units[0], &units[units.len() - 1]);
    Entry {
        name: first.name,
        group: first.group,
        plan: first.plan,
        first: first.index,
        last: last.index,
        workers: units.iter().map(|unit| unit.workers).sum(),
        began_unix_ms: started_ms.saturating_add(first.phase.map_or(0, |phase| phase.begin_ns / 1_000_000)),
        error: 0,
        failure_count: 0,
        reports_failures: first.plan.goes_on_after_some() || first.continues,
        first_error: 0,
        zone_resets: None,
        ops: Default::default(),
        mixed: None,
        sync: Figures::default(),
        threads: ThreadUsage::default(),
        depth: [0.0; 7],
        submit: [0.0; 7],
        complete: [0.0; 7],
        latency: [0.0; LATENCY_CLASSES],
        phase: first.phase,
        depth_found: None,
        criterion: None,
        criterion_plan: None,
        is_sum: false,
    }
}

impl Entry<'_> {
    /// Adds the failed I/Os of a job.
    fn add_failures(&mut self, job: &JobRecord) {
        if self.first_error == 0 {
            self.first_error = job.failures.first().map_or(0, |failure| or_eio(failure.errno));
        }
        if self.first_error == 0 && job.verify_failure_count > 0 {
            self.first_error = EILSEQ;
        }
        let failures = total(job.failures.iter().map(|failure| failure.count));
        self.failure_count = self.failure_count.saturating_add(failures).saturating_add(job.verify_failure_count);
    }

    /// Adds the I/Os of a job and the resets of its zones.
    fn add_ops(&mut self, job: &JobRecord, plan: &JobPlan) {
        if let Some(zones) = &job.zones {
            // A trim of a zone is a reset too, and fio counts it as one.
            let trims = job.ops.iter().filter(|op| op.op == OpKind::Trim).map(|op| op.io_count);
            *self.zone_resets.get_or_insert(0) += zones.reset_count + total(trims);
        }
        for op in &job.ops {
            let figures = match op.op {
                OpKind::Read => &mut self.ops[0],
                OpKind::Write => &mut self.ops[1],
                OpKind::Trim => &mut self.ops[2],
                OpKind::Sync => &mut self.sync,
            };
            // As in fio, reading back between loops takes no part of the time of the job's own I/Os.
            let elapsed_ns = job.elapsed_ns.saturating_sub(job.read_back.as_ref().map_or(0, |back| back.loops_ns));
            add_op(figures, op, elapsed_ns, plan.is_paced(), plan);
        }
        if let Some(back) = &job.read_back {
            // fio counts the read back as reads, and its time after the time of the job's own reads: without the writes between
            // two loops, but with those between two batches of a backlog.
            let reads_itself = job.ops.iter().any(|op| op.op == OpKind::Read && op.io_count > 0);
            let has_backlog = back.within_count > 0 && plan.verify.as_ref().is_some_and(|verify| verify.backlog > 0);
            let own_ns = job.elapsed_ns.saturating_sub(back.loops_ns);
            let within_ns = if reads_itself || has_backlog { own_ns } else { 0 };
            let elapsed_ns = within_ns.saturating_add(back.loops_ns).saturating_add(back.elapsed_ns);
            add_op(&mut self.ops[0], &back.reads, elapsed_ns, false, plan);
        }
    }

    /// Adds the writes that a job with `verify_only` compares, which fio counts as writes in no time.
    fn count_compared(&mut self, job: &JobRecord, plan: &JobPlan) {
        let each_bytes = match plan.pattern.write_sizes {
            BlockSizes::Fixed(bytes) => bytes,
            _ => self.ops[0].byte_count.checked_div(self.ops[0].io_count).unwrap_or(0),
        };
        let (writes, count) = (&mut self.ops[1], job.verified_block_count);
        writes.io_count = writes.io_count.saturating_add(count);
        writes.byte_count = writes.byte_count.saturating_add(count.saturating_mul(each_bytes));
    }

    /// Adds bandwidth and IOPS over time.
    fn add_samples(&mut self, units: &[Unit<'_>]) {
        let output = &units[0].plan.output;
        let records: Vec<(&JobRecord, &JobPlan)> =
            units.iter().filter_map(|unit| Some((unit.job?, unit.plan))).collect();
        for (op, figures) in self.directions_mut().filter(|(_, figures)| figures.io_count > 0) {
            let samples = |span_ns, of: fn(&SeriesRow, &JobPlan, usize) -> u64| {
                windows(&records, span_ns, |row, plan| of(row, plan, op))
            };
            let bytes = samples(output.bw_average_ns, bytes_of_row);
            if bytes.iter().all(|&bytes| bytes == 0.0) {
                // The read back has no time series.
                continue;
            }
            figures.bw = Samples::of(&bytes.iter().map(|bytes| bytes / 1024.0).collect::<Vec<_>>());
            figures.iops = Samples::of(&samples(output.iops_average_ns, ios_of_row));
        }
    }
}

fn or_eio(errno: i32) -> i32 {
    if errno == 0 { EIO } else { errno }
}

/// The error number that a job ended with.
fn error_of(unit: &Unit<'_>) -> i32 {
    let Some(job) = unit.job else { return ECANCELED };
    if job.verify_failure_count > 0 {
        return EILSEQ;
    }
    // As in fio, neither the lack of space that ends `fill_device` nor the short write before it counts.
    let unexpected: Vec<_> = unit.plan.unexpected(&job.failures).collect();
    let mut failures = job.failures.iter().filter(|failure| match failure.errno {
        0 => unexpected.contains(failure),
        errno => !unit.plan.is_ended_by(failure.op, errno),
    });
    if let Some(failure) = failures.next() {
        // As in fio, also an error after which the job continued (`continue_on_error`), which fails nothing.
        return or_eio(failure.errno);
    }
    match unit.phase.map(|phase| &phase.outcome) {
        Some(Outcome::Failed { reason }) if reason.starts_with(&format!("job `{}`:", unit.plan.name)) => {
            let number = reason.rsplit_once("(os error ").and_then(|(_, rest)| rest.split_once(')'));
            number.and_then(|(number, _)| number.parse().ok()).map_or(EIO, or_eio)
        }
        _ => 0,
    }
}

/// I/Os and bytes as fio counts them.
pub(super) fn counts_of(op: &OpRecord, plan: &JobPlan) -> (u64, u64) {
    match plan.output.names {
        Some(counts) if op.op != OpKind::Sync => counts.of(op.io_count),
        _ => (op.io_count, op.byte_count),
    }
}

fn add_op(figures: &mut Figures, op: &OpRecord, elapsed_ns: u64, is_paced: bool, plan: &JobPlan) {
    let (io_count, byte_count) = counts_of(op, plan);
    figures.io_count = figures.io_count.saturating_add(io_count);
    figures.byte_count = figures.byte_count.saturating_add(byte_count);
    if plan.output.names.is_some() && op.op != OpKind::Sync {
        figures.name_count = figures.name_count.saturating_add(op.io_count);
    }
    figures.short_count = figures.short_count.saturating_add(op.short_count);
    if op.io_count > 0 {
        figures.elapsed_ns = figures.elapsed_ns.max(elapsed_ns);
    }
    let total =
        if is_paced && !op.latency.from_intended.is_empty() { &op.latency.from_intended } else { &op.latency.total };
    let output = &plan.output;
    if !output.hides_slat {
        figures.slat.merge(&op.latency.submission);
    }
    if !output.hides_clat {
        figures.clat.merge(&op.latency.completion);
    }
    for of in &op.priorities {
        let intended = &of.latency.from_intended;
        let total = if is_paced && !intended.is_empty() { intended } else { &of.latency.total };
        let none = Histogram::new();
        let clat = if output.hides_clat { &none } else { &of.latency.completion };
        figures.add_priority(of.priority, clat, if output.hides_lat { &none } else { total });
    }
    // A sync call has one latency, which is always reported.
    if !output.hides_lat || op.op == OpKind::Sync {
        figures.lat.merge(total);
    }
}

/// The resource usage of the threads. Records of earlier versions have the CPU time of the phase only.
fn threads_of(job: &JobRecord, unit: &Unit<'_>) -> ThreadUsage {
    let mut threads = job.threads;
    if threads.elapsed_ns == 0 {
        threads.elapsed_ns = job.elapsed_ns.saturating_mul(u64::from(unit.workers));
        if let Some(phase) = unit.phase.filter(|phase| phase.jobs.len() == 1) {
            threads.user_ns = phase.worker_cpu.user_ns;
            threads.system_ns = phase.worker_cpu.system_ns;
        }
    }
    threads
}

/// A worker that blocks has one I/O in flight, which is submitted and reaped alone. fio's `null` at a depth of 1 blocks,
/// too, and counts neither a submission nor a reap.
fn queue_of(job: &JobRecord, plan: &JobPlan) -> QueueCounts {
    if let Some(queue) = job.queue {
        return queue;
    }
    let count = total(job.ops.iter().filter(|op| op.op != OpKind::Sync).map(|op| op.io_count));
    let mut queue = QueueCounts::default();
    if plan.queue.depth == 1 {
        queue.depth[0] = count;
        if plan.engine != EngineKind::Null {
            queue.submit[1] = count;
            queue.complete[1] = count;
        }
    }
    queue
}

fn bytes_of_row(row: &SeriesRow, plan: &JobPlan, op: usize) -> u64 {
    if let Some(counts) = plan.output.names {
        return counts.of(count_of_row(row, op)).1;
    }
    match op {
        0 => row.read_bytes,
        1 => row.write_bytes,
        2 => row.trim_bytes,
        _ => total([row.read_bytes, row.write_bytes, row.trim_bytes].into_iter()),
    }
}

fn ios_of_row(row: &SeriesRow, plan: &JobPlan, op: usize) -> u64 {
    let count = count_of_row(row, op);
    plan.output.names.map_or(count, |counts| counts.of(count).0)
}

fn count_of_row(row: &SeriesRow, op: usize) -> u64 {
    match op {
        0 => row.read_count,
        1 => row.write_count,
        2 => row.trim_count,
        _ => total([row.read_count, row.write_count, row.trim_count].into_iter()),
    }
}

/// The rate per second in each whole span, summed over all series. Intervals are 100 ms or longer, and a span is the
/// smallest number of whole intervals that covers its length. A remainder at the end is not a whole span.
fn windows(jobs: &[(&JobRecord, &JobPlan)], span_ns: u64, of: impl Fn(&SeriesRow, &JobPlan) -> u64) -> Vec<f64> {
    let mut sums: Vec<f64> = Vec::new();
    for (job, plan) in jobs {
        let (mut position, mut count, mut length_ns) = (0, 0u64, 0u64);
        for row in &job.series {
            count = count.saturating_add(of(row, plan));
            length_ns = length_ns.saturating_add(row.span_ns);
            // Ticks become nanoseconds with an error of less than a millisecond.
            if length_ns.saturating_add(1_000_000) >= span_ns.max(1) {
                if sums.len() == position {
                    sums.push(0.0);
                }
                sums[position] += rate(count, length_ns);
                position += 1;
                (count, length_ns) = (0, 0);
            }
        }
    }
    sums
}

/// Shares in percent. The share of a count above zero is at least `least`.
fn shares(counts: &[u64; 7], total: u64, least: f64) -> [f64; 7] {
    counts.map(|count| share(count, total, least))
}

fn share(count: u64, total: u64, least: f64) -> f64 {
    if count == 0 || total == 0 { 0.0 } else { (count as f64 * 100.0 / total as f64).max(least) }
}

/// The distribution of the completion latencies over fio's classes.
fn latency_shares(ops: &[Figures; 3]) -> [f64; LATENCY_CLASSES] {
    let mut counts = [0u64; LATENCY_CLASSES];
    for figures in ops {
        for (middle, count) in middles(&figures.clat) {
            let class = &mut counts[latency_class(middle)];
            *class = class.saturating_add(count);
        }
    }
    let all = total(counts.iter().copied());
    counts.map(|count| share(count, all, 0.01))
}

/// The class of a latency: below 2 ns, below 4 ns … below 2 s, the rest.
fn latency_class(ns: u64) -> usize {
    let within = |value: u64| LATENCY_LIMITS.iter().position(|limit| value < *limit);
    match ns {
        0..1_000 => within(ns).unwrap_or(9),
        1_000..1_000_000 => 10 + within(ns / 1_000).unwrap_or(9),
        1_000_000..1_000_000_000 => 20 + within(ns / 1_000_000).unwrap_or(9),
        1_000_000_000..2_000_000_000 => 30,
        _ => 31,
    }
}

/// The disks' counters, added over the phases.
fn disks(record: &RunRecord) -> Vec<Disk> {
    let mut disks: Vec<(Disk, u64)> = Vec::new();
    for delta in record.phases.iter().flat_map(|phase| &phase.devices) {
        let position = disks.iter().position(|(disk, _)| disk.name == delta.disk).unwrap_or_else(|| {
            let disk = Disk { name: delta.disk.clone(), counters: DeviceCounters::default(), util_percent: 0.0 };
            disks.push((disk, 0));
            disks.len() - 1
        });
        let (disk, measured_ns) = &mut disks[position];
        let (sum, more) = (&mut disk.counters, &delta.measured);
        sum.read_count = sum.read_count.saturating_add(more.read_count);
        sum.read_bytes = sum.read_bytes.saturating_add(more.read_bytes);
        sum.write_count = sum.write_count.saturating_add(more.write_count);
        sum.write_bytes = sum.write_bytes.saturating_add(more.write_bytes);
        sum.busy_ms = sum.busy_ms.saturating_add(more.busy_ms);
        sum.weighted_ms = sum.weighted_ms.saturating_add(more.weighted_ms);
        sum.read_merge_count = sum.read_merge_count.saturating_add(more.read_merge_count);
        sum.write_merge_count = sum.write_merge_count.saturating_add(more.write_merge_count);
        sum.read_ms = sum.read_ms.saturating_add(more.read_ms);
        sum.write_ms = sum.write_ms.saturating_add(more.write_ms);
        *measured_ns = measured_ns.saturating_add(delta.measured_ns);
        disk.util_percent =
            if *measured_ns > 0 { (disk.counters.busy_ms as f64 * 1e8 / *measured_ns as f64).min(100.0) } else { 0.0 };
    }
    disks.into_iter().map(|(disk, _)| disk).collect()
}
