//! When a phase was disturbed: samples of counters while its workers are measured.
//!
//! Each [`Timeline::look`] reads the disks' counters (`/sys/block/<disk>/stat`) and the time for which the workers were in the
//! run queue (`/proc/self/task/<thread>/schedstat`), and which limits of control groups are set (`limit_course.rs`); once a second also
//! the temperature of NVMe disks and the processors' count of throttling. The difference to the last sample is judged by itself, and adjoining samples of one cause become one span.
//! Where requests are traced, windows with requests of other programs add spans, and a sample that shows others asks for a window (`trace/`).
//!
//! Cannot see: I/O of others in the direction of the jobs (without a trace), and any in a phase that reads and writes; waiting of
//! workers after the first [`THREAD_COUNT_MAX`]; heat of SATA disks, because their temperature is read by a command that other
//! commands wait for. Spans decide no verdict: the checks judge the whole phase.
//!
//! Thresholds, for each sample: others' requests (at least [`OTHER_COUNT_MIN`]) or bytes (at least [`OTHER_BYTES_MIN`]) above 10 %
//! of those in the jobs' direction; the workers waited for more than a fifth of the time; a disk at its own limit, or one
//! throttling event.
//!
//! Source: Linux `Documentation/block/stat.rst`, `Documentation/scheduler/sched-stats.rst`.

use crate::limit_course::{LimitCourse, LimitSpan};
use crate::trace::WindowRequests;
use std::fs;
use trueio_device::{System, counters, temperature, throttle_count};
use trueio_model::units::format_bytes;
use trueio_model::{Cause, DeviceCounters, DirectPolicy, DisturbedSpan, JobPlan, OpKind, OpMix, TargetFacts};

const OTHER_COUNT_MIN: u64 = 64;
const OTHER_BYTES_MIN: u64 = 1 << 20;
const OTHER_SHARE_MAX: f64 = 0.10;
const WAITED_SHARE_MAX: f64 = 0.20;
/// A shorter sample, at the end of a phase, is left out.
const SPAN_NS_MIN: u64 = 50_000_000;
const HEAT_EVERY_NS: u64 = 1_000_000_000;
/// Number of workers whose waiting is read.
const THREAD_COUNT_MAX: usize = 16;
/// Number of spans after which samples become twice as long, so that little is kept of long runs.
const SPANS_PER_LENGTH: usize = 256;

/// What the jobs of a phase do to their disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// They only read.
    Reads {
        /// Past the page cache.
        is_direct: bool,
    },
    /// They only write, past the page cache, and read nothing back.
    Writes,
    /// They read and write, or write through the page cache.
    Both,
}

impl Direction {
    /// Returns the direction of the jobs of a phase.
    pub fn of(plans: &[&JobPlan]) -> Self {
        let is_direct = plans.iter().all(|job| job.direct != DirectPolicy::Off && job.engine.touches_files());
        let only = |op: OpKind| plans.iter().all(|job| job.pattern.mix == OpMix::Only(op));
        let is_plain = plans.iter().all(|job| job.verify.is_none());
        if only(OpKind::Read) {
            Direction::Reads { is_direct }
        } else if only(OpKind::Write) && is_direct && is_plain {
            Direction::Writes
        } else {
            Direction::Both
        }
    }
}

/// The counters at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sample {
    at_ns: u64,
    disks: DeviceCounters,
    /// Time of the workers in the run queue; `None` if the kernel does not count it.
    waited_ns: Option<u64>,
}

/// What is known of a span while it grows.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    from_ns: u64,
    until_ns: u64,
    what: What,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    /// Others' I/O.
    Others { verb: &'static str, bytes: u64, count: u64 },
    /// The workers waited, out of their time.
    Waited { waited_ns: u64, time_ns: u64 },
    /// A disk or the processors throttled.
    Hot(String),
}

/// The disturbances of a phase, found while it is measured.
#[derive(Debug)]
pub struct Timeline {
    system: System,
    disks: Vec<String>,
    direction: Direction,
    threads: Vec<i32>,
    last: Sample,
    heat_due_ns: u64,
    heat_read_ns: u64,
    throttled: Option<u64>,
    length_ns_min: u64,
    /// Spans at the last change of the samples' length.
    counted: usize,
    spans: Vec<Span>,
    limits: LimitCourse,
    /// Asks for a window of traced requests where the counters show others; `None` without a trace.
    pub(crate) requests: Option<WindowRequests>,
}

/// What a [`Timeline`] found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// When the phase was disturbed, by begin.
    pub disturbances: Vec<DisturbedSpan>,
    /// When limits of control groups were set, by begin; `None` if they were not read.
    pub limits: Option<Vec<LimitSpan>>,
}

impl Timeline {
    /// Begins just before the measured part, of jobs on `disks` under `targets` whose workers are `threads`.
    pub fn begin(
        system: &System,
        disks: Vec<String>,
        targets: &[TargetFacts],
        plans: &[&JobPlan],
        threads: &[i32],
    ) -> Self {
        let mut timeline = Self {
            system: system.clone(),
            disks,
            direction: Direction::of(plans),
            threads: threads.iter().copied().take(THREAD_COUNT_MAX).collect(),
            last: Sample::default(),
            heat_due_ns: HEAT_EVERY_NS,
            heat_read_ns: 0,
            throttled: None,
            length_ns_min: SPAN_NS_MIN,
            counted: 0,
            spans: Vec::new(),
            limits: LimitCourse::begin(system, device_names(targets)),
            requests: None,
        };
        timeline.last = timeline.sample(0);
        timeline
    }

    /// Takes a sample. The clock returns the nanoseconds since the measured part began.
    pub fn look(&mut self, clock: impl Fn() -> u64) {
        let at_ns = clock();
        self.limits.look(clock);
        if at_ns < self.last.at_ns.saturating_add(self.length_ns_min) {
            return;
        }
        let now = self.sample(at_ns);
        let others = others(&self.last, &now, self.direction);
        if others.is_some() {
            self.requests.iter_mut().for_each(WindowRequests::ask);
        }
        for what in [others, waited(&self.last, &now, self.threads.len())].into_iter().flatten() {
            self.add(Span { from_ns: self.last.at_ns, until_ns: at_ns, what });
        }
        if at_ns >= self.heat_due_ns {
            let hot = self.heat();
            let from_ns = self.heat_read_ns;
            hot.into_iter().for_each(|what| self.add(Span { from_ns, until_ns: at_ns, what }));
            (self.heat_read_ns, self.heat_due_ns) = (at_ns, at_ns + HEAT_EVERY_NS);
        }
        self.last = now;
        if self.spans.len() - self.counted >= SPANS_PER_LENGTH {
            self.counted = self.spans.len();
            self.length_ns_min = (2 * self.length_ns_min).max(2 * HEAT_EVERY_NS / 5);
        }
    }

    /// Returns what was found.
    pub fn end(self) -> Course {
        let mut disturbances: Vec<DisturbedSpan> = self.spans.into_iter().map(Span::finish).collect();
        disturbances.sort_by_key(|span| span.from_ns);
        Course { disturbances, limits: Some(self.limits.end()) }
    }

    fn sample(&self, at_ns: u64) -> Sample {
        let mut disks = DeviceCounters::default();
        for one in self.disks.iter().filter_map(|disk| counters(&self.system, disk).ok()) {
            disks.read_count += one.read_count;
            disks.read_bytes += one.read_bytes;
            disks.write_count += one.write_count;
            disks.write_bytes += one.write_bytes;
        }
        let waited = self.threads.iter().map(|thread| queued_ns(&self.system, *thread));
        Sample { at_ns, disks, waited_ns: waited.sum() }
    }

    /// Returns what throttled since the last call.
    fn heat(&mut self) -> Vec<What> {
        let is_asked_cheaply = |disk: &&String| disk.starts_with("nvme");
        let hot = self.disks.iter().filter(is_asked_cheaply).filter_map(|disk| {
            let found = temperature(&self.system, disk)?;
            let limit = found.limit_millidegrees.filter(|limit| found.millidegrees >= *limit)?;
            let degrees = |millidegrees: i64| millidegrees as f64 / 1e3;
            Some(What::Hot(format!("{disk} reached its limit of {:.0} °C", degrees(limit))))
        });
        let mut hot: Vec<What> = hot.collect();
        let count = throttle_count(&self.system);
        if let (Some(before), Some(after)) = (self.throttled, count)
            && after > before
        {
            hot.push(What::Hot("the processors throttled for heat".to_owned()));
        }
        self.throttled = count;
        hot
    }

    /// Adds a span, or lets the one that it adjoins grow.
    fn add(&mut self, new: Span) {
        let adjoins = |span: &&mut Span| span.until_ns == new.from_ns && span.what.has_kind_of(&new.what);
        match self.spans.iter_mut().rev().take(8).find(adjoins) {
            Some(span) => {
                span.until_ns = new.until_ns;
                span.what.grow(new.what);
            }
            None => self.spans.push(new),
        }
    }
}

impl What {
    fn has_kind_of(&self, other: &Self) -> bool {
        match (self, other) {
            (What::Others { verb: a, .. }, What::Others { verb: b, .. }) => a == b,
            (What::Waited { .. }, What::Waited { .. }) => true,
            (What::Hot(a), What::Hot(b)) => a == b,
            _ => false,
        }
    }

    fn grow(&mut self, by: Self) {
        match (self, by) {
            (What::Others { bytes, count, .. }, What::Others { bytes: more, count: others, .. }) => {
                *bytes += more;
                *count += others;
            }
            (What::Waited { waited_ns, time_ns }, What::Waited { waited_ns: more, time_ns: time }) => {
                *waited_ns += more;
                *time_ns += time;
            }
            _ => {}
        }
    }
}

impl Span {
    fn finish(self) -> DisturbedSpan {
        let (cause, what) = match self.what {
            What::Others { verb, bytes, .. } if bytes >= OTHER_BYTES_MIN => {
                (Cause::Neighbour, format!("others {verb} {}", format_bytes(bytes)))
            }
            What::Others { verb, count, .. } => (Cause::Neighbour, format!("others {verb} in {count} requests")),
            What::Waited { waited_ns, time_ns } => {
                let percent = waited_ns as f64 / time_ns.max(1) as f64 * 100.0;
                (Cause::Tool, format!("waited for a processor {:.0} % of the time", percent.min(100.0)))
            }
            What::Hot(what) => (Cause::Device, what),
        };
        DisturbedSpan { from_ns: self.from_ns, until_ns: self.until_ns, cause, what }
    }
}

/// Returns the names of the devices under the targets, and of other layers: a layer's name begins with that of its device.
fn device_names(targets: &[TargetFacts]) -> impl Iterator<Item = &str> {
    let disks = targets.iter().flat_map(|target| &target.disks).map(|disk| disk.name.as_str());
    let layers = targets.iter().flat_map(|target| &target.stack);
    disks.chain(layers.filter_map(|layer| layer.name.split(' ').next()))
}

/// Returns the I/O against the jobs' direction between two samples, if it is considerable.
fn others(before: &Sample, after: &Sample, direction: Direction) -> Option<What> {
    let since = |of: fn(&DeviceCounters) -> u64| of(&after.disks).saturating_sub(of(&before.disks));
    let reads = (since(|c| c.read_count), since(|c| c.read_bytes));
    let writes = (since(|c| c.write_count), since(|c| c.write_bytes));
    let (verb, others, ours) = match direction {
        Direction::Reads { .. } => ("wrote", writes, reads),
        Direction::Writes => ("read", reads, writes),
        Direction::Both => return None,
    };
    let exceeds = |others: u64, ours: u64, min: u64| others >= min && others as f64 > ours as f64 * OTHER_SHARE_MAX;
    (exceeds(others.0, ours.0, OTHER_COUNT_MIN) || exceeds(others.1, ours.1, OTHER_BYTES_MIN)).then_some(What::Others {
        verb,
        bytes: others.1,
        count: others.0,
    })
}

/// Returns the waiting between two samples, if it is considerable.
fn waited(before: &Sample, after: &Sample, threads: usize) -> Option<What> {
    let waited_ns = after.waited_ns?.saturating_sub(before.waited_ns?);
    let time_ns = after.at_ns.saturating_sub(before.at_ns).saturating_mul(threads as u64);
    (waited_ns as f64 > time_ns as f64 * WAITED_SHARE_MAX).then_some(What::Waited { waited_ns, time_ns })
}

/// Returns the time of a thread of this process in the run queue.
fn queued_ns(system: &System, thread: i32) -> Option<u64> {
    let path = system.locate(&format!("/proc/self/task/{thread}/schedstat"));
    fs::read_to_string(path).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::EngineKind;

    const MS: u64 = 1_000_000;

    /// A machine made of files, whose counters a test sets.
    struct Machine {
        root: tempfile::TempDir,
        system: System,
    }

    impl Machine {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::write(root.path().join("paths"), "").unwrap();
            let system = System::recorded(root.path()).unwrap();
            let machine = Self { root, system };
            machine.count([0; 4], 0);
            machine
        }

        fn set(&self, path: &str, text: &str) {
            let path = self.system.locate(path);
            assert!(path.starts_with(self.root.path()));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// Sets requests and MiB of reads and writes, and the time of the worker in the run queue.
        fn count(&self, [reads, read_mib, writes, write_mib]: [u64; 4], queued_ms: u64) {
            let (read, write) = (read_mib << 11, write_mib << 11);
            self.set("/sys/block/nvme0n1/stat", &format!("{reads} 0 {read} 0 {writes} 0 {write} 0 0 0 0"));
            self.set("/proc/self/task/7/schedstat", &format!("1 {} 3", queued_ms * MS));
        }

        fn timeline(&self, op: OpKind) -> Timeline {
            let mut job = JobPlan::plain(EngineKind::Psync, 1 << 20);
            job.pattern.mix = OpMix::Only(op);
            job.direct = DirectPolicy::Require;
            Timeline::begin(&self.system, vec!["nvme0n1".to_owned()], &[], &[&job], &[7])
        }
    }

    fn spans(timeline: Timeline) -> Vec<(u64, u64, Cause, String)> {
        let all = timeline.end().disturbances.into_iter();
        all.map(|span| (span.from_ns / MS, span.until_ns / MS, span.cause, span.what)).collect()
    }

    /// Goal: an honest run has no span. Method: 200 ms at a time, the jobs' own I/O, a journal's few writes, a worker that
    /// waits for as long as a time slice of another program, a cool disk.
    #[test]
    fn a_run_without_a_disturbance_has_no_span() {
        let machine = Machine::new();
        machine.set("/sys/block/nvme0n1/device/hwmon3/temp1_input", "81000");
        machine.set("/sys/block/nvme0n1/device/hwmon3/temp1_max", "82000");
        let mut timeline = machine.timeline(OpKind::Read);
        for n in 1..=20 {
            machine.count([n * 10_000, n * 40, n * 20, n / 4], n * 4);
            timeline.look(|| n * 200 * MS);
        }
        assert_eq!(spans(timeline), []);
    }

    #[test]
    fn writes_within_a_phase_that_reads_are_a_span_of_the_samples_in_which_they_happened() {
        let machine = Machine::new();
        let mut timeline = machine.timeline(OpKind::Read);
        for (n, others_mib) in [(1, 0), (2, 12), (3, 24), (4, 24), (5, 24)] {
            machine.count([n * 100, n * 40, others_mib, others_mib], 0);
            timeline.look(|| n * 200 * MS);
        }
        assert_eq!(spans(timeline), [(200, 600, Cause::Neighbour, "others wrote 24 MiB".to_owned())]);
    }

    #[test]
    fn reads_within_a_phase_that_writes_are_a_span_and_small_requests_are_counted() {
        let machine = Machine::new();
        let mut timeline = machine.timeline(OpKind::Write);
        machine.count([90, 0, 200, 1], 0);
        timeline.look(|| 200 * MS);
        assert_eq!(spans(timeline), [(0, 200, Cause::Neighbour, "others read in 90 requests".to_owned())]);
    }

    #[test]
    fn workers_that_wait_for_a_processor_are_a_span() {
        let machine = Machine::new();
        let mut timeline = machine.timeline(OpKind::Read);
        for (n, queued_ms) in [(1, 10), (2, 110), (3, 260), (4, 270)] {
            machine.count([n * 100, n * 40, 0, 0], queued_ms);
            timeline.look(|| n * 200 * MS);
        }
        let what = "waited for a processor 62 % of the time".to_owned();
        assert_eq!(spans(timeline), [(200, 600, Cause::Tool, what)]);
    }

    #[test]
    fn a_disk_at_its_limit_and_throttled_processors_are_spans() {
        let machine = Machine::new();
        let throttled = "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
        machine.set("/sys/block/nvme0n1/device/hwmon3/temp1_max", "82000");
        let mut timeline = machine.timeline(OpKind::Read);
        for (n, degrees, count) in [(1, 70, 5), (2, 82, 5), (3, 84, 5), (4, 70, 6)] {
            machine.set("/sys/block/nvme0n1/device/hwmon3/temp1_input", &format!("{degrees}000"));
            machine.set(throttled, &count.to_string());
            timeline.look(|| n * 1_000 * MS);
        }
        let found = spans(timeline);
        let hot = (1_000, 3_000, Cause::Device, "nvme0n1 reached its limit of 82 °C".to_owned());
        assert_eq!(found, [hot, (3_000, 4_000, Cause::Device, "the processors throttled for heat".to_owned())]);
    }

    /// Goal: a disturbance that comes and goes for hours leaves a small record. Method: every second sample of 200 ms is
    /// disturbed for 190 ms; samples of twice the length all are, and adjoin.
    #[test]
    fn samples_of_a_long_run_become_longer() {
        let machine = Machine::new();
        let mut timeline = machine.timeline(OpKind::Read);
        for n in 1..=1_000 {
            machine.count([0; 4], n / 2 * 190);
            timeline.look(|| n * 200 * MS);
        }
        let found = spans(timeline);
        assert_eq!(found.len(), SPANS_PER_LENGTH);
        assert_eq!(found.last().unwrap().3, "waited for a processor 48 % of the time");
    }

    #[test]
    fn jobs_that_read_and_write_have_no_direction() {
        let mut job = JobPlan::plain(EngineKind::Psync, 1 << 20);
        (job.pattern.mix, job.direct) = (OpMix::Only(OpKind::Write), DirectPolicy::Off);
        assert_eq!(Direction::of(&[&job]), Direction::Both, "write-back happens at any time");
    }
}
