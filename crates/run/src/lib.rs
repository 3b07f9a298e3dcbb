//! A plan becomes a record.
//!
//! [`run`] does what a [`Plan`] says, phase by phase: prepares the files, watches the disks
//! idle, starts the workers together, waits, counts again, and lets the evidence judge. Whatever
//! happens (a signal, a full disk, an I/O error, a worker that panics) there is a record, with
//! everything measured until then, and no file of ours is left behind.
//!
//! Files that are to be removed have no name from the moment they are made: they are created under
//! a new name, opened, and unlinked at once, and every later open goes through the descriptor. The
//! kernel frees them when the process is gone, even if it was killed.
//!
//! Cannot do: plan, print, store. Those are others' work; progress goes to an [`Observer`].

mod files;
mod identity;
mod interrupt;
mod merge;
mod phase;
mod settle;

pub use files::FileError;
pub use interrupt::{signal_received, watch_signals};

use files::Prepared;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use trueio_device::System;
use trueio_engine::{choose_clock, measure_ruler};
use trueio_model::{
    CpuTime, Fact, JobSpec, Outcome, PhaseRecord, Plan, Prepare, RECORD_FORMAT, RECORD_VERSION, RunRecord, SteadyState,
    TargetFacts, TargetKind, ToolFacts,
};

/// What is to be run, and what shall stand in the record beside the figures.
#[derive(Debug)]
pub struct Request {
    /// What kind of run (`baseline`, `run`).
    pub kind: String,
    /// The command line.
    pub command: Vec<String>,
    /// What was asked.
    pub spec: Vec<JobSpec>,
    /// What will be done.
    pub plan: Plan,
    /// Whether evidence is collected. Without it every verdict rests on the calls alone (E0).
    pub has_evidence: bool,
}

/// Sees how a run goes on. Every method may do nothing.
pub trait Observer {
    /// A file is being written before it is measured.
    fn preparing(&mut self, path: &str, done_bytes: u64, size_bytes: u64) {
        let _ = (path, done_bytes, size_bytes);
    }
    /// A phase begins: its position, from 0, of how many, and its name.
    fn phase_begins(&mut self, index: usize, count: usize, name: &str) {
        let _ = (index, count, name);
    }
    /// A round begins, counted from 0, on the way to a steady state; `so_far` tells of those before.
    fn settling(&mut self, round: u32, rounds_max: u32, so_far: &SteadyState) {
        let _ = (round, rounds_max, so_far);
    }
    /// The rounds are over; the measured part begins.
    fn settled(&mut self, state: &SteadyState) {
        let _ = state;
    }
    /// The phase goes on, or a round of it.
    fn progress(&mut self, tick: &Tick) {
        let _ = tick;
    }
    /// The phase is over and judged.
    fn phase_ends(&mut self, phase: &PhaseRecord) {
        let _ = phase;
    }
}

/// How a phase stands, a few times a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    /// The share that is done, from 0 to 1.
    pub fraction: f64,
    /// Bytes a second since the last tick.
    pub bytes_per_s: f64,
    /// I/Os a second since the last tick.
    pub ios_per_s: f64,
    /// Median latency of late, of the slowest worker, in nanoseconds.
    pub latency_ns_p50: u64,
    /// 99th percentile of late, of the slowest worker, in nanoseconds.
    pub latency_ns_p99: u64,
    /// What is left, in nanoseconds; `None`: not known.
    pub left_ns: Option<u64>,
}

/// CPU time of the process with all its threads, io-wq and SQPOLL included.
pub(crate) fn process_cpu() -> CpuTime {
    // SAFETY: the kernel fills the structure that is handed to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
}

/// Runs a plan. Never fails: what went wrong stands in the record's outcome.
///
/// `stop` ends the run early when it becomes true; [`watch_signals`] gives one that signals set.
pub fn run(request: Request, stop: &AtomicBool, observer: &mut dyn Observer) -> RunRecord {
    let began = Instant::now();
    let (started_unix_s, started_at) = identity::now();
    let clock = choose_clock();
    let ruler = measure_ruler(clock);
    let system = System::live();
    let environment = trueio_device::environment(&system);
    let mut record = RunRecord {
        format: RECORD_FORMAT.to_owned(),
        version: RECORD_VERSION,
        id: identity::random_id(),
        started_unix_s,
        started_at,
        kind: request.kind,
        command: request.command,
        tool: ToolFacts {
            name: "trueio".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        },
        spec: request.spec,
        plan: request.plan,
        targets: Vec::new(),
        environment,
        ruler,
        phases: Vec::new(),
        outcome: Outcome::Complete,
    };
    let outcome = run_phases(&mut record, request.has_evidence, clock, &system, began, stop, observer);
    record.outcome = outcome;
    record
}

/// All phases, in order; returns how the run ended.
fn run_phases(
    record: &mut RunRecord,
    has_evidence: bool,
    clock: trueio_engine::AnyClock,
    system: &System,
    began: Instant,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Outcome {
    let plan = record.plan.clone();
    let mut prepared = Prepared::default();
    let phase_count = plan.jobs.iter().map(|job| job.phase as usize + 1).max().unwrap_or(0);
    for index in 0..phase_count {
        let jobs: Vec<_> = plan.jobs.iter().filter(|job| job.phase as usize == index).cloned().collect();
        if jobs.is_empty() {
            continue;
        }
        for job in &jobs {
            if let Err(error) = prepared.claim(job) {
                return failed(&error);
            }
            for file in job.files.iter().filter(|file| file.prepare != Prepare::Nothing) {
                // The fill is as large as the largest job that shares the file needs it.
                let end_bytes = plan
                    .jobs
                    .iter()
                    .flat_map(|job| &job.files)
                    .filter(|other| other.path == file.path)
                    .map(|other| other.offset_bytes + other.size_bytes)
                    .max()
                    .unwrap_or(0);
                match prepared.prepare(file, end_bytes, job.seed, stop, observer) {
                    Ok(()) => remember_target(&mut record.targets, system, &prepared, &file.path),
                    Err(FileError::Stopped) => return stopped(),
                    Err(error) => return failed(&error),
                }
            }
        }
        let setting = phase::Setting { system, prepared: &prepared, clock, stop, began, has_evidence };
        match setting.run(&jobs, index, phase_count, plan.idle_baseline_ns, record, observer) {
            Ok(phase) => {
                observer.phase_ends(&phase);
                let outcome = phase.outcome.clone();
                record.phases.push(phase);
                if outcome != Outcome::Complete {
                    return outcome;
                }
            }
            Err(error) => return failed(&error),
        }
    }
    Outcome::Complete
}

/// An error and its causes in one line, as an outcome.
fn failed(error: &dyn std::error::Error) -> Outcome {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        reason = format!("{reason}: {cause}");
        source = cause.source();
    }
    Outcome::Failed { reason }
}

/// The outcome of a run that was asked to stop.
pub(crate) fn stopped() -> Outcome {
    Outcome::Interrupted { signal: signal_received().unwrap_or("request").to_owned() }
}

/// Adds a file's target to the record, unless one that tells the same is there.
///
/// A file without a name lies where its directory says, and inherits what is said of new files
/// there (journalled data, no copy on write).
fn remember_target(targets: &mut Vec<TargetFacts>, system: &System, prepared: &Prepared, path: &str) {
    let directory = Path::new(path).parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_anonymous = prepared.is_anonymous(path);
    let Ok(mut facts) = trueio_device::target_facts(system, if is_anonymous { directory } else { Path::new(path) })
    else {
        return;
    };
    path.clone_into(&mut facts.path);
    if is_anonymous {
        facts.kind = TargetKind::File;
        facts.size_bytes = match std::fs::metadata(prepared.door(path)) {
            Ok(metadata) => Fact::known(metadata.len(), "stat"),
            Err(error) => Fact::unknown(format!("stat: {error}")),
        };
        if let Some(layer) = facts.stack.first_mut() {
            "file".clone_into(&mut layer.kind);
            path.clone_into(&mut layer.name);
        }
    }
    let tells_the_same = |known: &TargetFacts| {
        known.kind == facts.kind
            && known.disks == facts.disks
            && known.direct == facts.direct
            && known.filesystem.as_ref().map(|f| &f.mount_point) == facts.filesystem.as_ref().map(|f| &f.mount_point)
    };
    if !targets.iter().any(|known| known.path == facts.path || tells_the_same(known)) {
        targets.push(facts);
    }
}
