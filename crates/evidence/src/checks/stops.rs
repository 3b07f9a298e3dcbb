//! Checks whether this tool was stopped during the phase.
//!
//! - **Reads** the gaps between two clock readings of the thread that follows the phase, without its own sleep and its time in the run
//!   queue. The workers' clocks confirm a stop: no I/Os meanwhile, and one that took as long, or came late. The time of suspends, steps
//!   of the time of day, `SIGCONT`, and `TracerPid` in `/proc/self/status` show the cause.
//! - **Sees** `SIGSTOP`, a debugger, a frozen control group, a paused virtual machine, a suspend. `steadiness` leaves their time out.
//! - **Misses** stops shorter than 50 ms, of a single worker, or shorter than 0.25 s of a job that pauses, without I/O in flight. A
//!   virtual machine whose clocks stand still while it is paused shows no stop, and its figures do not contain it.
//! - **Thresholds**: stops and suspends of more than 1 % of the measured time together, beyond stolen time, are suspect. Less is a
//!   note.
//! - **Cost**: fifty readings of a clock and a small file per second, about 0.1 % of a processor.
//! - **By hand**: `kill -STOP PID; sleep 0.2; kill -CONT PID` during a run.
//!
//! Intervals with I/Os cover at most a tenth of a stop, and one I/O took at least as long, or those of a job with a rate that became
//! due meanwhile were issued late. A suspend is the difference of `CLOCK_BOOTTIME` and `CLOCK_MONOTONIC`; the thread sleeps for 20 ms;
//! its time in the run queue is that of `/proc/thread-self/schedstat`.
//!
//! Source: Linux `kernel/time/timekeeping.c` (`CLOCK_BOOTTIME`), proc_pid_status(5), signal(7).

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use crate::observation::Stop;
use trueio_model::units::format_duration_ns;
use trueio_model::{Check, CheckOutcome, EngineKind, JobRecord, SeriesRow};

pub(crate) const NAME: &str = trueio_model::STOPS;

const SOURCE: &str =
    "waits of the thread that follows the phase, its run queue time, CLOCK_BOOTTIME, /proc/self/status";
const NOTED_SHARE: f64 = 0.01;
/// Of a shorter stop the latencies must contain the gap.
const LONG_NS_MIN: u64 = 250_000_000;
/// Workers that completed I/Os for a smaller part of a stop did so before it or after it.
const WENT_ON_SHARE_MIN: f64 = 0.1;
/// More stops are summed up in words.
const WORDS_MAX: usize = 3;
/// Shorter differences of two clocks are those of reading them.
const SUSPEND_NS_MIN: u64 = 10_000_000;
const CLOCK_STEP_NS_MIN: u64 = 100_000_000;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if facts.jobs.iter().all(|job| job.engine == EngineKind::Simulated) {
        return not_applicable(NAME, "The engine simulated runs in virtual time.");
    }
    let Some(all) = &facts.observation.stops else {
        return not_seen(NAME, SOURCE, "The waits of this tool were not observed.");
    };
    let stops = stops(facts);
    let suspended_ns = facts.observation.suspended_ns;
    let is_suspended = suspended_ns >= SUSPEND_NS_MIN;
    let tracer = facts.observation.tracer.as_deref();
    let mut found: Vec<String> = if stops.is_empty() { Vec::new() } else { vec![all_words(&stops)] };
    if is_suspended {
        found.push(format!("suspended for {}", format_duration_ns(suspended_ns)));
    }
    if let Some(tracer) = tracer {
        found.push(format!("traced by {tracer}"));
    }
    if facts.observation.clock_step_ns.unsigned_abs() >= CLOCK_STEP_NS_MIN {
        let step = format_duration_ns(facts.observation.clock_step_ns.unsigned_abs());
        found.push(format!("the time of day was set by {step}"));
    }
    if found.is_empty() {
        found.push("no stop".to_owned());
    }
    let report = |outcome, sentence: String| finding(NAME, outcome, SOURCE, "no stop", found.join(", "), sentence);
    let mut sentences = Vec::new();
    if is_suspended {
        sentences.push(format!("The machine was suspended for {} during the phase.", format_duration_ns(suspended_ns)));
    }
    if !stops.is_empty() {
        sentences.push(format!(
            "This tool was stopped {}: no thread of it ran and no I/O completed{}. Cause: {}. The rates and latencies of \
             that time are not the disk's.",
            all_words(&stops),
            idle_words(facts, &stops),
            cause(facts)
        ));
    }
    if sentences.is_empty() {
        let sentence = if all.is_empty() {
            "This tool was not stopped."
        } else if all.iter().all(|stop| has_completions(facts, stop)) {
            "The thread that follows the phase was stopped, but the workers went on."
        } else {
            "The thread that follows the phase was stopped. No I/O of the workers took as long: they went on, or had none in flight."
        };
        return report(CheckOutcome::Passed, sentence.to_owned());
    }
    let lost_ns = stops.iter().map(|stop| length_ns(stop)).sum::<u64>() + if is_suspended { suspended_ns } else { 0 };
    // What a hypervisor took is named by `clock_and_cpu`.
    let stolen = facts.observation.steal_share.unwrap_or(0.0);
    let share = lost_ns as f64 / facts.elapsed_ns.max(1) as f64 - stolen;
    let outcome = if share > NOTED_SHARE { CheckOutcome::Suspect } else { CheckOutcome::Passed };
    let check = report(outcome, sentences.join(" "));
    match outcome {
        CheckOutcome::Suspect => {
            check.with_brief(format!("stopped for {}", format_duration_ns(lost_ns))).explaining(Some(share))
        }
        _ => check,
    }
}

/// Returns the stops during which no worker completed an I/O.
pub(crate) fn stops<'a>(facts: &PhaseFacts<'a>) -> Vec<&'a Stop> {
    let all = facts.observation.stops.iter().flatten();
    all.filter(|stop| !has_completions(facts, stop) && (stop.least_ns >= LONG_NS_MIN || is_in_latencies(facts, stop)))
        .collect()
}

/// Returns true if an I/O that completed during or just after the stop took at least as long: the clock of a worker has the same gap.
fn is_in_latencies(facts: &PhaseFacts<'_>, stop: &Stop) -> bool {
    if facts.records.iter().any(|record| is_after_last_interval(record, stop)) || is_in_lateness(facts, stop) {
        return true;
    }
    let rows = facts.records.iter().flat_map(|record| &record.series);
    let mut after = rows.filter(|row| {
        row.end_ns >= stop.from_ns
            && row.end_ns.saturating_sub(row.span_ns) <= stop.until_ns.saturating_add(row.span_ns)
    });
    after.any(|row| row.latency_ns_max >= stop.least_ns)
}

/// Returns true if a job with a rate issued I/Os late by half of the stop or more, at least one for each stop that is as long: of those that
/// become due during a stop, half are.
fn is_in_lateness(facts: &PhaseFacts<'_>, stop: &Stop) -> bool {
    let all = facts.observation.stops.iter().flatten();
    let as_long = all.filter(|other| other.least_ns >= stop.least_ns).count() as u64;
    let lateness = facts.works().filter(|work| work.job.is_paced()).map(|work| &work.record.pacing_lateness);
    let late = lateness.flat_map(|late| late.buckets()).filter(|(lowest_ns, ..)| *lowest_ns >= stop.least_ns / 2);
    late.map(|(.., count)| count).sum::<u64>() >= as_long
}

/// Returns true if an I/O that took at least as long as the stop completed after the last whole interval of a job, which the stop reaches beyond:
/// it is the slowest of the job, and no interval contains it.
fn is_after_last_interval(record: &JobRecord, stop: &Stop) -> bool {
    let end_ns = record.series.last().map_or(0, |row| row.end_ns);
    let slowest_ns = record.ops.iter().filter_map(|op| op.latency.total.max_ns()).max().unwrap_or(0);
    let in_intervals_ns = record.series.iter().map(|row| row.latency_ns_max).max().unwrap_or(0);
    end_ns < stop.until_ns
        && record.elapsed_ns > stop.from_ns
        && slowest_ns >= stop.least_ns
        && slowest_ns > in_intervals_ns
}

/// Returns true if intervals of a job that contain I/Os cover a noted part of the stop, whenever that began and ended: the workers went
/// on. After a stop, workers may get a processor before the thread that follows the phase.
fn has_completions(facts: &PhaseFacts<'_>, stop: &Stop) -> bool {
    // Time in the run queue was before the stop or after it.
    let queued_ns = stop.until_ns.saturating_sub(stop.from_ns).saturating_sub(stop.most_ns);
    let latest_begin_ns = stop.from_ns + stop.most_ns.saturating_sub(stop.least_ns) + queued_ns;
    let earliest_end_ns = stop.until_ns.saturating_sub(queued_ns);
    let is_within =
        |end_ns: u64, span_ns: u64| end_ns <= earliest_end_ns && end_ns.saturating_sub(span_ns) >= latest_begin_ns;
    let covered_ns = |series: &[SeriesRow]| -> u64 {
        let has_ios = |row: &&SeriesRow| row.read_count + row.write_count + row.other_count + row.trim_count > 0;
        series.iter().filter(has_ios).filter(|row| is_within(row.end_ns, row.span_ns)).map(|row| row.span_ns).sum()
    };
    let most_ns = facts.records.iter().map(|record| covered_ns(&record.series)).max().unwrap_or(0);
    most_ns as f64 > stop.least_ns as f64 * WENT_ON_SHARE_MIN
}

/// The stop began at some time within a wait.
fn length_ns(stop: &Stop) -> u64 {
    stop.least_ns.midpoint(stop.most_ns)
}

/// `for 2.0 s, 1.2 s after the phase began`; of many, how often and for how long.
fn all_words(stops: &[&Stop]) -> String {
    let seconds = |ns: u64| {
        let digits = if ns < 1_000_000_000 { 2 } else { 1 };
        format!("{:.digits$} s", ns as f64 / 1e9)
    };
    if stops.len() > WORDS_MAX {
        let sum_ns = stops.iter().map(|stop| length_ns(stop)).sum();
        let longest_ns = stops.iter().map(|stop| length_ns(stop)).max().unwrap_or(0);
        return format!("{} times for {} together, at most {} each", stops.len(), seconds(sum_ns), seconds(longest_ns));
    }
    let words = stops.iter().map(|stop| {
        format!("for {}, {:.1} s after the phase began", seconds(length_ns(stop)), stop.from_ns as f64 / 1e9)
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns words that the disks were idle, if their busy time leaves room for all stops.
fn idle_words(facts: &PhaseFacts<'_>, stops: &[&Stop]) -> &'static str {
    let devices = facts.devices();
    let stopped_ns: u64 = stops.iter().map(|stop| stop.least_ns).sum();
    let is_idle = |busy_ms: u64, span_ns: u64| span_ns.saturating_sub(busy_ms.saturating_mul(1_000_000)) >= stopped_ns;
    let were_idle = devices.iter().all(|delta| is_idle(delta.measured.busy_ms, delta.measured_ns));
    if were_idle && !devices.is_empty() { ", and nothing was in flight at the disks" } else { "" }
}

/// Returns the cause of the stops, as far as it left a trace.
fn cause(facts: &PhaseFacts<'_>) -> String {
    let observation = facts.observation;
    if let Some(tracer) = &observation.tracer {
        return format!("a debugger or tracer ({tracer})");
    }
    if observation.continue_count > 0 {
        return "a signal such as SIGSTOP, followed by SIGCONT".to_owned();
    }
    if observation.clock_step_ns.unsigned_abs() >= CLOCK_STEP_NS_MIN {
        return "the virtual machine was paused, and its time of day was set afterwards".to_owned();
    }
    "a paused virtual machine, a frozen control group or a debugger".to_owned()
}
