//! Checks how long the workers were ready to run and waited for a processor.
//!
//! - **Reads** each worker's time in the run queue (`/proc/thread-self/schedstat`) and involuntary switches, the time for which its
//!   control group was throttled (`cpu.stat`), and the mean latency of the disks' requests (`/sys/block/DISK/stat`).
//! - **Sees** a tool that does not get its processor, and names the cause: other programs, a CPU quota, more workers than processors,
//!   or the kernel's own work for this I/O (interrupts; below loop devices, dm and md the kernel's threads).
//! - **Misses** waits of kernel and helper threads; which I/Os waited; stolen time (`clock_and_cpu`). Not seen with `--trace-syscalls`.
//! - **Model**: with one I/O in flight, waiting can explain the waited share of the rate; with a queue at most the part of it that the
//!   disk did not hold; of a paced job it is compared with the sum of latencies. Of a percentile it can explain what the time waited
//!   pays for: if 20 of 10,000 reads of 0.2 ms took 5 ms, 48 ms of waiting can explain 96 % of p99.9, and 40 ms nothing.
//! - **Thresholds**: more than 5 % of the rate, or of a paced job's latency, is suspect, more than 1 % a note. Waits of more than 1 %
//!   of the time are suspect if they can explain more than 5 % of p50, p99 or p99.9, and more than its 95 % interval. A direct job of
//!   1 s or more contradicts ("starved") if its workers waited for more than half of the time and the disk held less than half of the
//!   I/Os that it could have held.
//! - **Cost**: 10 µs per worker, outside of the measured loop.
//! - **By hand**: `taskset -c 0 nice -n -19 sh -c 'while :; do :; done' &`, then `taskset -c 0 trueio run --rw randread --bs 4k
//!   --ioengine psync --runtime 3s --time_based --direct require`.
//!
//! A worker that holds one I/O at a time does nothing else while it waits, and nothing is in flight. With a queue, I/Os in flight
//! continue: waiting costs rate only as far as the disk runs out of them. By Little's law the disk held on average (I/Os per second) ×
//! (its mean latency) of the job's I/Os; the part of the queue (at most as deep as the disk's own) that it did not hold is an upper
//! limit of the loss, and the waited share is another. The lower one counts. A job with a rate or pauses loses no rate as long as it
//! keeps up, and never contradicts. `wait_percentiles.rs` has the limit for percentiles.
//!
//! A switch to a thread that has just become ready takes 0.6 to 1.1 µs on an idle processor (Linux 6.18, virtual machine); `SWITCH_NS`
//! of each run is no waiting. Who used the processors meanwhile is the rest of `/proc/stat` without the workers, interrupts and, below
//! loop devices, dm and md, the kernel's threads, which carry the job's own I/O.
//!
//! Source: Linux `Documentation/scheduler/sched-stats.rst`. The run queue's time includes throttled time (measured on Linux 6.18: under
//! a quota of 2 % a busy thread waited for 1.97 of 2.01 s, of which its group was throttled for 1.94).

use super::wait_percentiles::{Explained, most_explained};
use crate::facts::{PhaseFacts, Way, Work, finding, not_applicable, not_seen};
use crate::room::Room;
use trueio_model::units::{format_count, format_duration_ns};
use trueio_model::{Check, CheckOutcome, DeviceCounters, LayerKind, OpKind, OpRecord, ProcessorWait};

pub(crate) const NAME: &str = "processor_wait";

const SOURCE: &str = "/proc/thread-self/schedstat, cpu.stat of the control group";

/// Upper limit of the time from ready to running on an idle processor.
const SWITCH_NS: u64 = 2_000;
const NOTED_SHARE: f64 = 0.01;
const SUSPECT_SHARE: f64 = 0.05;
const CONTRADICTED_SHARE: f64 = 0.50;
/// A smaller part of the waits is not named as a throttled control group's.
const THROTTLED_SHARE_MIN: f64 = 0.1;
/// In a shorter phase a few time slices of another program weigh too much to withhold the figures.
const CONTRADICTED_NS_MIN: u64 = 1_000_000_000;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let works: Vec<Work<'_>> = facts.works().filter(|work| work.job.engine.touches_files()).collect();
    if works.is_empty() {
        return not_applicable(NAME, facts.why_no_calls());
    }
    if works.iter().all(|work| work.job.trace_syscalls) {
        let sentence = "The calls of the workers are traced, so the workers make none of their own, and how long they waited is \
                        unknown.";
        return not_seen(NAME, SOURCE, sentence);
    }
    let mut jobs: Vec<Waiting<'_>> = works.into_iter().filter_map(|work| Waiting::of(facts, work)).collect();
    // The worst first.
    jobs.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    let Some(worst) = jobs.first() else {
        let sentence = "The kernel does not count how long the workers' threads waited for a processor.";
        return not_seen(NAME, SOURCE, sentence);
    };
    let (outcome, sentence) = worst.judge(facts);
    let mut found = vec![format!(
        "waited {} of {} in {} runs",
        format_duration_ns(worst.waited_ns),
        format_duration_ns(worst.time_ns),
        format_count(worst.counted.run_count)
    )];
    found.push(format!("{} involuntary switches", format_count(worst.counted.involuntary_switch_count)));
    if let Some(throttled_ns) = facts.observation.throttled_ns {
        found.push(format!("control group throttled {}", format_duration_ns(throttled_ns)));
    }
    if let Some(steal) = facts.observation.steal_share {
        found.push(format!("stolen {:.1} %", steal * 100.0));
    }
    let check =
        finding(NAME, outcome, SOURCE, "less than 5 % of the rate and of each percentile", found.join(", "), sentence);
    if outcome == CheckOutcome::Passed {
        return check;
    }
    let brief = match worst.waited_share() {
        share if share >= 0.01 => format!("waited for a processor {:.0} % of the time", share * 100.0),
        _ => format!("waited for a processor for {}", format_duration_ns(worst.waited_ns)),
    };
    match worst.percentile {
        // A part of the percentile, and not of the load's rate: the words say how much of what.
        Some(percentile) if worst.explained <= SUSPECT_SHARE => {
            check.with_brief(format!("{brief} (≤ {:.0} % of {})", percentile.share * 100.0, percentile.name))
        }
        _ => check.with_brief(brief).explaining(Some(worst.explained)),
    }
}

/// A job's waiting and what it can explain.
struct Waiting<'a> {
    work: Work<'a>,
    counted: ProcessorWait,
    /// Without the switches themselves.
    waited_ns: u64,
    /// The workers' measured times together.
    time_ns: u64,
    /// What waiting can explain at most, from 0 to 1: a part of the rate, or of the latency if the job is paced.
    explained: f64,
    /// The printed percentile of which waiting can explain most.
    percentile: Option<Explained>,
    /// Mean latency of the disks' requests, and the part of the queue that the disks held, from 0 to 1.
    disk: Option<(f64, f64)>,
}

impl<'a> Waiting<'a> {
    /// Returns `None` if the workers' waiting is unknown or nothing was measured.
    fn of(facts: &PhaseFacts<'_>, work: Work<'a>) -> Option<Self> {
        let threads = &work.record.threads;
        let counted = threads.waiting?;
        let time_ns = threads.elapsed_ns;
        if time_ns == 0 {
            return None;
        }
        let switches_ns = counted.run_count.saturating_mul(SWITCH_NS);
        let waited_ns = counted.wait_ns.saturating_sub(switches_ns).min(time_ns);
        let waited_share = waited_ns as f64 / time_ns as f64;
        let disk = disk_share(facts, work).map(|(disk_ns, held)| {
            // Others' requests may be slower than ours. While a worker without a queue waits, it has no I/O in flight.
            (disk_ns, if has_queue(work) { held } else { held.min(1.0 - waited_share) })
        });
        let explained = if has_pauses(work) {
            let latency_ns = latency_sum(work);
            if latency_ns > 0.0 { (waited_ns as f64 / latency_ns).min(1.0) } else { 0.0 }
        } else if let (true, Some((_, held))) = (has_queue(work), disk) {
            waited_share.min(1.0 - held)
        } else {
            waited_share
        };
        let percentile = explained_percentile(work, waited_ns);
        Some(Self { work, counted, waited_ns, time_ns, explained, percentile, disk })
    }

    /// Returns what waiting can explain at most of the figure that it affects most, from 0 to 1. Of percentiles it counts if the
    /// workers waited for a noted part of the time.
    fn weight(&self) -> f64 {
        let percentile = self.percentile.filter(|_| self.waited_share() > NOTED_SHARE);
        self.explained.max(percentile.map_or(0.0, |percentile| percentile.share))
    }

    fn judge(&self, facts: &PhaseFacts<'_>) -> (CheckOutcome, String) {
        let name = &self.work.job.name;
        let waited = format!("waited for a processor in {:.0} % of the measured time", self.waited_share() * 100.0);
        let what = if has_pauses(self.work) { "mean latency" } else { "rate" };
        if let Some((disk_ns, held)) = self.disk.filter(|(_, held)| self.is_starved(facts, *held)) {
            let seen_ns = latency_sum(self.work) / io_count(self.work).max(1) as f64;
            let sentence = format!(
                "starved: the workers of `{name}` {waited}: {}. The disk took {} per request and the job counted {} per \
                 I/O; the disk held {:.0} % of the I/Os that it could have held. The figures describe the processors, \
                 not the disk.",
                self.cause(facts),
                format_duration_ns(disk_ns.round() as u64),
                format_duration_ns(seen_ns.round() as u64),
                held * 100.0
            );
            return (CheckOutcome::Contradicted, sentence);
        }
        let percent = self.explained * 100.0;
        let of_percentile = self.percentile.filter(|percentile| percentile.share > SUSPECT_SHARE).map(|percentile| {
            let value = format_duration_ns(percentile.value_ns);
            format!("{:.0} % of the {} of {} calls ({value})", percentile.share * 100.0, percentile.name, percentile.op)
        });
        if self.weight() > SUSPECT_SHARE {
            // A percentile only if the rate alone is not doubtful: it says nothing more.
            let of_percentile = of_percentile.filter(|_| self.explained <= SUSPECT_SHARE);
            let figures = of_percentile.unwrap_or_else(|| format!("{percent:.0} % of the {what}"));
            let sentence =
                format!("The workers of `{name}` {waited}, which can explain up to {figures}: {}.", self.cause(facts));
            return (CheckOutcome::Suspect, sentence);
        }
        let percentile = of_percentile.map_or_else(String::new, |percentile| format!(", and up to {percentile}"));
        let sentence = if self.explained > NOTED_SHARE {
            format!("The workers of `{name}` {waited}; this explains at most {percent:.1} % of the {what}{percentile}.")
        } else {
            format!("Waiting for a processor explains at most 1 % of the {what}{percentile}.")
        };
        (CheckOutcome::Passed, sentence)
    }

    fn waited_share(&self) -> f64 {
        self.waited_ns as f64 / self.time_ns as f64
    }

    /// Returns true if the figure is mostly the wait for a processor, and the disks' own figures show it. `held` is the
    /// part of the queue that the disks held.
    fn is_starved(&self, facts: &PhaseFacts<'_>, held: f64) -> bool {
        facts.way(self.work.job) == Way::Direct
            && !has_pauses(self.work)
            && self.work.record.elapsed_ns >= CONTRADICTED_NS_MIN
            && self.waited_share() > CONTRADICTED_SHARE
            && held < CONTRADICTED_SHARE
    }

    /// Returns what kept the workers from running.
    fn cause(&self, facts: &PhaseFacts<'_>) -> String {
        let throttled_ns = facts.observation.throttled_ns.unwrap_or(0);
        let quota = facts.environment.and_then(|environment| environment.cpu.quota);
        let quota = quota.map_or_else(String::new, |quota| format!(" of {quota:.2} processors"));
        let throttled = format!(
            "their control group used up its CPU quota{quota} and was throttled for {}",
            format_duration_ns(throttled_ns)
        );
        if throttled_ns > self.waited_ns / 2 {
            return throttled;
        }
        let others = self.other_cause(facts);
        match throttled_ns as f64 > self.waited_ns as f64 * THROTTLED_SHARE_MIN {
            true => format!("{others}, and {throttled}"),
            false => others,
        }
    }

    /// Returns who used the processors.
    fn other_cause(&self, facts: &PhaseFacts<'_>) -> String {
        let workers: u32 = facts.jobs.iter().map(|job| job.workers).sum();
        let usable = facts.environment.map_or(u32::MAX, |environment| environment.cpu.usable_count);
        if workers > usable {
            return format!("{workers} workers and other programs shared {usable} usable processors");
        }
        // Without the kernel's work for this I/O.
        let by_kernel = facts.observation.processors.map_or(0, |used| used.interrupts_ns + used.kernel_threads_ns);
        let by_others = facts.observation.processors.map_or(u64::MAX, |used| {
            used.busy_ns.saturating_sub(facts.worker_cpu.total_ns()).saturating_sub(by_kernel)
        });
        if by_others < by_kernel && by_others < self.waited_ns / 2 {
            let (name, time) = (kernel_carrier(facts), format_duration_ns(by_kernel));
            return format!("the kernel's own work for this I/O ({name}) used the processors for {time}");
        }
        "other programs used the processors".to_owned()
    }
}

/// Returns what in the kernel carries the I/O: `loop0 and interrupts`.
fn kernel_carrier(facts: &PhaseFacts<'_>) -> String {
    let mut layers = facts.own_targets().into_iter().flat_map(|target| &target.stack);
    let layer = layers.find(|layer| layer.kind == LayerKind::Loop || layer.kind.is_stacked());
    let name = layer.map(|layer| layer.name.split(' ').next().unwrap_or_default());
    name.map_or_else(|| "interrupts".to_owned(), |name| format!("{name} and interrupts"))
}

/// Returns true if the job's rate or pauses are set, so that waiting need not cost any rate.
fn has_pauses(work: Work<'_>) -> bool {
    work.job.is_paced() || work.job.think.is_some()
}

/// Returns true if the job's I/Os continue while a worker waits.
fn has_queue(work: Work<'_>) -> bool {
    work.depth() > u64::from(work.job.workers.max(1))
}

/// Returns the printed percentile of the job's operations of which waiting can explain most.
fn explained_percentile(work: Work<'_>, waited_ns: u64) -> Option<Explained> {
    // A worker that waits delays all its I/Os that are in flight.
    let delayed = (work.depth() / u64::from(work.job.workers.max(1))).max(1);
    let waited_ns = waited_ns as f64 * delayed as f64;
    let of = |record: &OpRecord| {
        let is_paced = !record.latency.from_intended.is_empty();
        let printed = if is_paced { &record.latency.from_intended } else { &record.latency.total };
        most_explained(record.op, printed, waited_ns)
    };
    work.record.ops.iter().filter_map(of).max_by(|a, b| a.share.total_cmp(&b.share))
}

fn io_count(work: Work<'_>) -> u64 {
    work.record.ops.iter().filter(|op| op.op != OpKind::Sync).map(|op| op.io_count).sum()
}

/// Returns the sum of the latencies of all I/Os and sync calls.
fn latency_sum(work: Work<'_>) -> f64 {
    work.record.ops.iter().map(|op| op.latency.total.mean_ns().unwrap_or(0.0) * op.latency.total.count() as f64).sum()
}

/// Returns the mean latency of the disks' requests of the job's kind, and the part of the queue that the disks held of
/// the job's I/Os, from 0 to 1. `None` for buffered jobs, whose I/Os are not those of the disk, and without counters.
fn disk_share(facts: &PhaseFacts<'_>, work: Work<'_>) -> Option<(f64, f64)> {
    if facts.way(work.job) != Way::Direct || facts.why_no_counters().is_some() || work.record.elapsed_ns == 0 {
        return None;
    }
    type Value = fn(&DeviceCounters) -> u64;
    let kinds: [(OpKind, Value, Value); 2] = [
        (OpKind::Read, |counters| counters.read_ms, |counters| counters.read_count),
        (OpKind::Write, |counters| counters.write_ms, |counters| counters.write_count),
    ];
    let (mut busy_ns, mut ios) = (0.0, 0);
    for (op, ms, requests) in kinds {
        let count = work.count(op);
        if count == 0 {
            continue;
        }
        let (ms, requests) = (facts.counted(ms).raw, facts.counted(requests).raw);
        if requests == 0 {
            return None;
        }
        busy_ns += ms as f64 * 1e6 / requests as f64 * count as f64;
        ios += count;
    }
    if ios == 0 {
        return None;
    }
    // The disk cannot hold more than its own queue.
    let own_queue = Room::of(facts, u64::from(work.job.workers)).map_or(u64::MAX, |room| room.requests);
    let room = work.depth().min(own_queue).max(1);
    let held = busy_ns / work.record.elapsed_ns as f64 / room as f64;
    Some((busy_ns / ios as f64, held.min(1.0)))
}
