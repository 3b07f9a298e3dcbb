//! Checks clock, processor time and memory of the measurement itself.
//!
//! - **Reads** the clock's step and cost from the tool's self-measurement, its drift against `CLOCK_MONOTONIC`, that clock's slew
//!   against `CLOCK_MONOTONIC_RAW`, the workers' CPU time, `/proc/stat` and `/proc/pressure`.
//! - **Sees** a clock too coarse for the latency, a worker that is itself the limit, a hypervisor that takes the processor away.
//! - **Misses** frequency changes, interrupts charged to other processes, load on the core's other hardware thread.
//! - **Thresholds**: clock step, or two readings, above 10 % of the median latency; workers above 90 % of their cores or quota (not for
//!   polling, cached or mapped I/O, zram and RAM disks, where that is by design); more than 5 % stolen; all tasks stalled for memory in
//!   more than 5 % of the time; a drift or slew of 0.1 %. Suspect. Waiting for processors, which the kernel counts for the whole
//!   machine, and the load average, which lags by a minute, are shown without effect.
//! - **Cost**: 30 µs for `/proc/stat`.
//! - **By hand**: `taskset -c 0` for the benchmark and for a busy loop.
//!
//! NTP adjusts by 0.05 % at most. Of zram and RAM disks the processor copies and compresses within the workers' calls, and is the
//! device. The slew is observed from before the baseline on.

use crate::checks::pace::quantile;
use crate::facts::{PhaseFacts, Way, finding, not_applicable};
use trueio_model::units::format_duration_ns;
use trueio_model::{Check, CheckOutcome, DiskFacts, EngineKind, OpKind, Transport};

pub(crate) const NAME: &str = "clock_and_cpu";

const CLOCK_SHARE_MAX: f64 = 0.10;
const CPU_SHARE_MAX: f64 = 0.90;
const STEAL_SHARE_MAX: f64 = 0.05;
const MEMORY_PRESSURE_MAX: f64 = 0.05;
const CLOCK_DRIFT_MAX: f64 = 1e-3;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if facts.jobs.iter().all(|job| job.engine == EngineKind::Simulated) {
        return not_applicable(NAME, "The engine simulated runs in virtual time.");
    }
    let cpu = cpu_share(facts);
    let mut found = Vec::new();
    if let Some(ruler) = facts.ruler {
        let step = format_duration_ns(ruler.clock_resolution_ns.round() as u64);
        let cost = format_duration_ns(ruler.clock_cost_ns.round() as u64);
        found.push(format!("clock {} step {step}, cost {cost}", ruler.clock));
    }
    if let Some(cpu) = cpu {
        found.push(format!("workers {:.0} % of their cores", cpu * 100.0));
    }
    if let Some(steal) = facts.observation.steal_share {
        found.push(format!("stolen {:.1} %", steal * 100.0));
    }
    for (what, share) in [
        ("waiting for a processor", facts.observation.cpu_pressure_share),
        ("stalled for memory", facts.observation.memory_pressure_share),
    ] {
        if let Some(share) = share {
            found.push(format!("{what} {:.1} % of the time", share * 100.0));
        }
    }
    if let Some(drift) = facts.observation.clock_drift {
        found.push(format!("clock drift {:+.0} ppm from the kernel's clock", drift * 1e6));
    }
    if let Some(slew) = facts.observation.clock_slew {
        found.push(format!("kernel's clock {:+.0} ppm from the hardware's", slew * 1e6));
    }
    if let Some(load) = facts.environment.and_then(|environment| environment.load_average.value) {
        found.push(format!("load average {:.2} at the start of the run", load[0]));
    }
    let doubts = [
        clock_doubt(facts),
        drift_doubt(facts),
        slew_doubt(facts),
        cpu.and_then(|cpu| cpu_doubt(facts, cpu)),
        steal_doubt(facts),
        memory_doubt(facts),
    ];
    let words = [
        "clock too coarse",
        "clock drifted",
        "clock drifted",
        "the tool is the limit",
        "processor stolen",
        "memory short",
    ];
    let briefs: Vec<Option<&str>> =
        doubts.iter().zip(words).map(|(doubt, words)| doubt.as_ref().map(|_| words)).collect();
    let doubts: Vec<String> = doubts.into_iter().flatten().collect();
    let (outcome, sentence) = if doubts.is_empty() {
        (
            CheckOutcome::Passed,
            match cpu.filter(|share| *share > CPU_SHARE_MAX).and(disk_in_memory(facts)) {
                Some(disk) => format!(
                    "The device is the processor: {disk} is memory, which the processor copies within the workers' calls. The clock \
                     was precise enough."
                ),
                None => "The clock was precise enough, and the workers did not use all of their processors.".to_owned(),
            },
        )
    } else {
        (CheckOutcome::Suspect, doubts.join(" "))
    };
    let source = "the tool's measured cost, getrusage, /proc/stat, /proc/pressure";
    let check = finding(NAME, outcome, source, "", found.join(", "), sentence);
    match briefs.into_iter().flatten().next() {
        Some(brief) => check.with_brief(brief),
        None => check,
    }
}

fn clock_doubt(facts: &PhaseFacts<'_>) -> Option<String> {
    let ruler = facts.ruler?;
    // The engine `null` is itself the measure of the tool's cost.
    if facts.jobs.iter().all(|job| job.engine == EngineKind::Null) {
        return None;
    }
    let median = facts
        .records
        .iter()
        .flat_map(|record| &record.ops)
        .filter(|op| op.op != OpKind::Sync)
        .filter_map(|op| quantile(&op.latency.total, 0.5))
        .min()?;
    let error = ruler.clock_resolution_ns.max(2.0 * ruler.clock_cost_ns);
    (error > median as f64 * CLOCK_SHARE_MAX).then(|| {
        format!(
            "The clock's error is {}, compared with a median latency of {}.",
            format_duration_ns(error.round() as u64),
            format_duration_ns(median)
        )
    })
}

/// Returns the workers' share of the cores available to them; `None` if they use a whole core by design.
fn cpu_share(facts: &PhaseFacts<'_>) -> Option<f64> {
    let by_design = facts.works().any(|work| {
        let job = work.job;
        matches!(job.engine, EngineKind::Null | EngineKind::Mmap | EngineKind::PageFault)
            || job.uring.sqpoll
            || job.uring.iopoll
            || job.write_flags.hipri
            || facts.way(job) == Way::Buffered
    });
    if by_design || facts.elapsed_ns == 0 {
        return None;
    }
    let workers: u64 = facts.jobs.iter().map(|job| u64::from(job.workers.max(1))).sum();
    let usable = facts.environment.map_or(workers, |environment| u64::from(environment.cpu.usable_count.max(1)));
    let quota = facts.environment.and_then(|environment| environment.cpu.quota).unwrap_or(f64::INFINITY);
    Some(facts.worker_cpu.total_ns() as f64 / (facts.elapsed_ns as f64 * (workers.min(usable) as f64).min(quota)))
}

/// Returns the name of the disk, if all disks are in memory.
fn disk_in_memory<'a>(facts: &PhaseFacts<'a>) -> Option<&'a str> {
    let disks = facts.disks();
    let is_memory = |disk: &&DiskFacts| disk.transport.value.as_ref().is_some_and(Transport::is_volatile_memory);
    disks.first().filter(|_| disks.iter().all(is_memory)).map(|disk| disk.name.as_str())
}

fn cpu_doubt(facts: &PhaseFacts<'_>, share: f64) -> Option<String> {
    (share > CPU_SHARE_MAX && disk_in_memory(facts).is_none()).then(|| {
        let whole = facts.cpu.total_ns() as f64 / facts.elapsed_ns.max(1) as f64;
        format!(
            "generator_limited: the workers used {:.0} % of their cores ({whole:.1} cores including kernel threads), \
             so this tool may be the limit, not the disk.",
            share * 100.0
        )
    })
}

fn steal_doubt(facts: &PhaseFacts<'_>) -> Option<String> {
    let steal = facts.observation.steal_share?;
    (steal > STEAL_SHARE_MAX)
        .then(|| format!("The hypervisor took {:.0} % of the processors' time (steal).", steal * 100.0))
}

fn memory_doubt(facts: &PhaseFacts<'_>) -> Option<String> {
    let share = facts.observation.memory_pressure_share?;
    (share > MEMORY_PRESSURE_MAX)
        .then(|| format!("Memory was short: all tasks were stalled for memory in {:.0} % of the time.", share * 100.0))
}

fn slew_doubt(facts: &PhaseFacts<'_>) -> Option<String> {
    let slew = facts.observation.clock_slew?;
    (slew.abs() > CLOCK_DRIFT_MAX).then(|| {
        let way = if slew > 0.0 { "fast" } else { "slow" };
        format!(
            "The kernel's clock runs {:.1} % {way} against the hardware's counter (adjtimex): all times and rates are wrong \
             by that.",
            slew.abs() * 100.0
        )
    })
}

fn drift_doubt(facts: &PhaseFacts<'_>) -> Option<String> {
    let drift = facts.observation.clock_drift?;
    (drift.abs() > CLOCK_DRIFT_MAX).then(|| {
        format!(
            "The clock used for latencies drifted {:+.2} % from the kernel's clock during the phase: its rate changed.",
            drift * 100.0
        )
    })
}
