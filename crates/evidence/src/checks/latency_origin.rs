//! Checks whether the latency that the calls report is the disk's.
//!
//! - **Reads** the parts of the latency of traced direct transfers, sync calls and durable writes (device, I/O scheduler, rest), the mean
//!   time of the disks' requests (`/sys/block/DISK/stat`), and the mean of all transfers.
//! - **Sees** what delays I/Os between program and disk: a preloaded library, a filter of system calls, a lock of the filesystem.
//! - **Misses** who delays, and delays below the tracepoints (they are the device's), of buffered I/O, and of sync calls between windows or
//!   while other programs keep the disk busy.
//! - **Thresholds**: device and scheduler explain less than half of the mean, both as traced and as counted, and more than a third of it,
//!   at least 20 µs (200 µs of calls that make data durable: threads of a journal are woken between their requests), is neither theirs nor
//!   the processors' (running, waiting, stolen): suspect, unless another check names the delay (a limit, a stop). Needs level E3 and 30
//!   traced calls. Not for batches, pauses with I/Os in flight, queues deeper than the disk's, parallel writes to files, dm, md, or
//!   `--trace-syscalls`.
//! - **By hand**: `LD_PRELOAD` of a library whose `pread` sleeps for 2 ms in every third call, or computes for 300 µs.
//!
//! While a worker runs or waits for a processor, its I/Os in flight wait to be reaped, so the rest can contain these shares of the
//! time. An engine of single calls runs only kernel code within a call: its time in user mode explains nothing, and the shares are of
//! the time of all calls. Writes may be completed by workers of the kernel (`kworker`), whose waits count for them, if they are larger;
//! for I/Os of helper threads the share in which any task waited (`/proc/pressure/cpu`) does. The check that names the delay
//! (`NAMED_BY`) must be able to explain all but that third.

use crate::facts::{PhaseFacts, Way, Work, finding, not_applicable, not_seen};
use crate::room::Room;
use trueio_model::units::format_duration_ns;
use trueio_model::{Check, CheckOutcome, EngineKind, LatencyParts, OpKind, TargetKind};

pub(crate) const NAME: &str = "latency_origin";

/// Checks that name a delay between the program and the disk.
pub(crate) const NAMED_BY: [&str; 5] = ["achieved_depth", "clock_and_cpu", "foreign_io", "io_limits", "stops"];

const SOURCE: &str = "traced requests, the recorded latencies";
const IO_COUNT_MIN: u64 = 30;
const DISK_SHARE_MIN: f64 = 0.5;
pub(crate) const UNEXPLAINED_SHARE_MAX: f64 = 1.0 / 3.0;
const UNEXPLAINED_NS_MIN: f64 = 20_000.0;
/// Of calls that wait for several requests.
const UNEXPLAINED_BETWEEN_NS_MIN: f64 = 200_000.0;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let waits = |work: &Work<'_>| facts.way(work.job) == Way::Direct || work.syncs();
    let works: Vec<Work<'_>> = facts.call_works().into_iter().filter(waits).collect();
    if works.is_empty() {
        return not_applicable(NAME, "The phase made no direct transfers and no sync calls.");
    }
    if let Some(why) = works.iter().find_map(|work| waits_by_design(facts, *work)) {
        return not_applicable(NAME, why);
    }
    let trace = match facts.traced() {
        Ok(trace) => trace,
        Err(why) => return not_seen(NAME, SOURCE, why),
    };
    let origins = trace.latency.iter().filter(|parts| parts.io_count >= IO_COUNT_MIN);
    let origins = origins.filter_map(|parts| Origin::of(facts, &works, parts));
    let Some(worst) = origins.max_by(|a, b| a.unexplained.total_cmp(&b.unexplained)) else {
        let sentence = format!("Fewer than {IO_COUNT_MIN} calls of each operation were traced with all their parts.");
        return not_seen(NAME, SOURCE, sentence);
    };
    worst.judge()
}

/// Returns why I/Os of a job wait outside of the disk by design.
fn waits_by_design(facts: &PhaseFacts<'_>, work: Work<'_>) -> Option<String> {
    let (job, name) = (work.job, &work.job.name);
    if job.trace_syscalls {
        return Some(format!("The system calls of `{name}` are traced, which delays them."));
    }
    if let Some(layer) = facts.own_targets().into_iter().flat_map(|target| &target.stack).find(|l| l.kind.is_stacked())
    {
        return Some(format!(
            "The time in {} {} is part of the target's and not traced by itself.",
            layer.kind, layer.name
        ));
    }
    let holds_a_queue = job.engine.holds_a_queue() && work.depth() > u64::from(job.workers.max(1));
    if holds_a_queue && (job.queue.complete_min > 1 || job.queue.submit_batch.is_some_and(|batch| batch > 1)) {
        return Some(format!("`{name}` submits or reaps its I/Os in batches, so they wait for each other."));
    }
    if holds_a_queue && (job.think.is_some() || job.queue.serializes_overlap || job.queue.low > 0) {
        return Some(format!("`{name}` pauses with I/Os in flight."));
    }
    if let Some(room) = Room::of(facts, u64::from(job.workers)).filter(|room| room.requests < work.depth()) {
        let Room { requests, disks, .. } = room;
        return Some(format!(
            "`{name}` keeps more I/Os in flight than {disks} ({requests} requests), so they wait before it."
        ));
    }
    let is_file = |path: &str| facts.target_of(path).is_none_or(|target| target.kind != TargetKind::BlockDevice);
    let may_wait = work.writes() && work.depth() > 1 && job.files.iter().any(|file| is_file(&file.path));
    may_wait.then(|| format!("Parallel writes of `{name}` may wait for each other in the filesystem."))
}

/// Where the latency of one operation comes from.
struct Origin {
    op: OpKind,
    /// Mean latency of the calls, in nanoseconds.
    mean_ns: f64,
    /// Means of the traced parts, in nanoseconds.
    device_ns: u64,
    scheduler_ns: u64,
    rest_ns: u64,
    /// The part of the latency in device and scheduler, as traced or as the disks counted it, whichever is more; from 0 to 1.
    disk: f64,
    /// The part that neither these nor the processors explain, from 0 to 1.
    unexplained: f64,
    /// True if a call waits for several requests, between which threads of a journal are woken.
    waits_for_several: bool,
}

impl Origin {
    /// Returns `None` if no call of the operation was recorded.
    fn of(facts: &PhaseFacts<'_>, works: &[Work<'_>], parts: &LatencyParts) -> Option<Self> {
        let (mut sum_ns, mut count) = (0.0, 0);
        let is_durable = |work: &Work<'_>| parts.op == OpKind::Write && work.has_dsync();
        let is_traced =
            |work: &&Work<'_>| parts.op == OpKind::Sync || is_durable(work) || facts.way(work.job) == Way::Direct;
        for total in works.iter().filter(is_traced).filter_map(|work| work.op(parts.op)).map(|op| &op.latency.total) {
            sum_ns += total.mean_ns().unwrap_or(0.0) * total.count() as f64;
            count += total.count();
        }
        // The disks count no time of a sync call's requests together: the traced calls are compared with their own mean.
        let waits_for_several = parts.op == OpKind::Sync || works.iter().any(is_durable);
        let mean_ns = if waits_for_several { parts.total.mean_ns as f64 } else { sum_ns / count.max(1) as f64 };
        if count == 0 || mean_ns <= 0.0 || parts.total.mean_ns == 0 {
            return None;
        }
        let traced_ns = (parts.device.mean_ns + parts.scheduler.mean_ns) as f64;
        let disk = match counted_ns(facts, parts.op).filter(|_| !waits_for_several) {
            Some(counted_ns) => traced_ns.max(counted_ns) / mean_ns,
            None => (traced_ns / mean_ns).max(traced_ns / parts.total.mean_ns as f64),
        };
        let disk = disk.min(1.0);
        let unexplained = (1.0 - disk - processor_share(facts, works, parts.op)).max(0.0);
        Some(Self {
            op: parts.op,
            mean_ns,
            device_ns: parts.device.mean_ns,
            scheduler_ns: parts.scheduler.mean_ns,
            rest_ns: parts.rest.mean_ns,
            disk,
            unexplained,
            waits_for_several,
        })
    }

    fn judge(&self) -> Check {
        let mean = format_duration_ns(self.mean_ns.round() as u64);
        let [device, scheduler, rest] = [self.device_ns, self.scheduler_ns, self.rest_ns].map(format_duration_ns);
        let found = format!("{device} in the device, {scheduler} in the I/O scheduler, {rest} elsewhere");
        let outside = (1.0 - self.disk) * 100.0;
        let is_outside = self.disk < DISK_SHARE_MIN;
        let (least_ns, elsewhere) = match self.waits_for_several {
            true => (UNEXPLAINED_BETWEEN_NS_MIN, "in system calls, in the filesystem and its journal, or"),
            false => (UNEXPLAINED_NS_MIN, "in system calls and"),
        };
        let is_unexplained = self.unexplained > UNEXPLAINED_SHARE_MAX && self.unexplained * self.mean_ns >= least_ns;
        let report = |outcome, sentence: String| {
            finding(NAME, outcome, SOURCE, format!("half of {mean}"), found.clone(), sentence)
        };
        if is_outside && is_unexplained {
            let sentence = format!(
                "{outside:.0} % of the latency of {}s is outside the disk: of {mean} on average, the traced ones were {device} \
                 in the device and {scheduler} in the I/O scheduler. A library, a filter of system calls, a lock of the \
                 filesystem or a virtual processor may delay them.",
                self.op
            );
            return report(CheckOutcome::Suspect, sentence)
                .with_brief(format!("{outside:.0} % of the latency is outside the disk"))
                .explaining(Some(1.0 - self.disk));
        }
        let sentence = if is_outside {
            format!(
                "{outside:.0} % of the latency of {}s is outside the disk, {elsewhere} while processors were busy.",
                self.op
            )
        } else {
            format!("At least half of the latency of {}s is that of the disk.", self.op)
        };
        report(CheckOutcome::Passed, sentence)
    }
}

/// Returns the mean time of the disks' requests of one operation, from entering the I/O scheduler to the completion, in the whole phase: it contains
/// slow requests between windows. `None` without counters.
pub(crate) fn counted_ns(facts: &PhaseFacts<'_>, op: OpKind) -> Option<f64> {
    if facts.why_no_counters().is_some() {
        return None;
    }
    let (ms, requests) = match op {
        OpKind::Read => (facts.counted(|c| c.read_ms).raw, facts.counted(|c| c.read_count).raw),
        _ => (facts.counted(|c| c.write_ms).raw, facts.counted(|c| c.write_count).raw),
    };
    (requests > 0).then(|| ms as f64 * 1e6 / requests as f64)
}

/// Returns the part of a latency that the processors can explain: the workers used or waited for one. Of writes, the kernel's workers count, too; of
/// operations that helper threads complete, or if the waits are unknown, any task that waited does.
fn processor_share(facts: &PhaseFacts<'_>, works: &[Work<'_>], op: OpKind) -> f64 {
    let makes_calls = works.iter().all(|work| !work.job.engine.holds_a_queue());
    let (time_ns, cpu_ns) = match makes_calls {
        true => (calls_ns(works), facts.worker_cpu.system_ns),
        false => (works.iter().map(|work| work.record.threads.elapsed_ns).sum(), facts.worker_cpu.total_ns()),
    };
    let of_time = |ns: u64| if time_ns > 0 { ns as f64 / time_ns as f64 } else { 0.0 };
    let waited: Option<u64> = works.iter().map(|work| work.record.threads.waiting.map(|waiting| waiting.wait_ns)).sum();
    let has_helpers = |work: &Work<'_>| work.job.engine == EngineKind::Posixaio || work.job.uring.sqpoll;
    let pressure = facts.observation.cpu_pressure_share.unwrap_or(0.0);
    let kernel_ns = facts.observation.kernel_worker_wait_ns;
    let others = match (works.iter().any(has_helpers) || waited.is_none(), op) {
        (true, _) => pressure,
        (false, OpKind::Read) => 0.0,
        // Workers of the kernel complete it.
        (false, _) => kernel_ns.map_or(pressure, |kernel_ns| of_time(kernel_ns).min(pressure)),
    };
    let waited = of_time(waited.unwrap_or(0)).max(others);
    of_time(cpu_ns) + waited + facts.observation.steal_share.unwrap_or(0.0)
}

/// Returns the time of all calls, in nanoseconds.
fn calls_ns(works: &[Work<'_>]) -> u64 {
    let of_op =
        |op: &trueio_model::OpRecord| op.latency.total.mean_ns().unwrap_or(0.0) * op.latency.total.count() as f64;
    works.iter().flat_map(|work| &work.record.ops).map(of_op).sum::<f64>() as u64
}
