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

mod bandwidth;
mod credentials;
mod criterion;
mod descriptors;
mod files;
mod follow;
mod identity;
mod interrupt;
mod iologs;
mod logs;
mod measure;
mod merge;
mod output_file;
mod packed;
mod phase;
mod setting;
mod settle;
mod shown;
mod source;
mod strace;
mod worker;

pub use bandwidth::BandwidthSpan;
pub use credentials::{Access, Acting, become_user, may_use, user_of};
pub use files::FileError;
pub use interrupt::{signal_received, watch_signals};
pub use logs::LogError;
pub use output_file::{create_output, open_output};
pub use packed::{InflateError, inflate_log};
pub use source::{Body, BodyServer, SourceError, open_body, source_length};
pub use strace::why_no_strace;
pub use worker::{HOST, run_worker};

use files::{Prepared, Sharing};
use logs::SharedFiles;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_device::System;
use trueio_engine::{AnyClock, choose_clock, measure_ruler};
use trueio_model::{
    CpuTime, Fact, JobPlan, JobSpec, Outcome, PhaseRecord, Plan, Prepare, RECORD_FORMAT, RECORD_VERSION, RunRecord,
    SteadyState, TargetFacts, TargetKind, ToolFacts, error_line,
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
    /// What comes before a phase, whose position counts from 0; its files are prepared. An error is why the run cannot
    /// go on: the phase then does not begin.
    ///
    /// # Errors
    /// The observer's own.
    fn before_phase(&mut self, index: usize) -> Result<(), String> {
        let _ = index;
        Ok(())
    }
    /// What comes after a phase, however it ended: once for each call of [`before_phase`](Self::before_phase).
    fn after_phase(&mut self, index: usize) {
        let _ = index;
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
    /// The measured part of the phase, or of a round of it, begins now: nothing that takes long.
    fn measuring(&mut self) {}
    /// It is over: nothing that takes long, for the workers wait.
    fn measured(&mut self) {}
    /// The phase goes on, or a round of it.
    fn progress(&mut self, tick: &Tick) {
        let _ = tick;
    }
    /// How often results so far are wanted while a phase runs; `None`: never.
    fn status_every(&self) -> Option<Duration> {
        None
    }
    /// The run so far: the phases that are over, and the one that runs, not judged, up to now.
    fn status(&mut self, so_far: &RunRecord) {
        let _ = so_far;
    }
    /// How long a span is whose bandwidth is wanted; `None`: of none.
    fn bandwidth_every(&self) -> Option<Duration> {
        None
    }
    /// A span of the phase is over, or what is left of one when the phase is.
    fn bandwidth(&mut self, span: &BandwidthSpan) {
        let _ = span;
    }
    /// Where lines about single I/Os go ([`OutputPlan::shows_any`](trueio_model::OutputPlan::shows_any)); `None`:
    /// standard output.
    fn shown_in(&mut self) -> Option<File> {
        None
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

/// CPU time of the process with all its threads, io-wq and SQPOLL included, and of programs that it started and
/// that have ended.
pub(crate) fn process_cpu() -> CpuTime {
    let mut sum = CpuTime::default();
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        // SAFETY: the kernel fills the structure that is handed to it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut usage);
            usage
        };
        let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
        sum.user_ns += ns(usage.ru_utime);
        sum.system_ns += ns(usage.ru_stime);
    }
    sum
}

/// Runs a plan. Never fails: what went wrong stands in the record's outcome.
///
/// `stop` ends the run early when it becomes true; [`watch_signals`] gives one that signals set.
pub fn run(request: Request, stop: &AtomicBool, observer: &mut dyn Observer) -> RunRecord {
    let mut session = Session::new(request, stop);
    let outcome = session.run_all(observer).err().unwrap_or(Outcome::Complete);
    session.finish(outcome)
}

/// A plan whose phases are run one by one, in any order and as often as wanted, on files that are prepared
/// once: for who interleaves phases to compare them. [`run`] is one of these, from the first phase to the last.
///
/// The files that it creates are gone when it is dropped.
#[derive(Debug)]
pub struct Session<'a> {
    record: RunRecord,
    has_evidence: bool,
    clock: AnyClock,
    system: System,
    prepared: Prepared,
    shared_logs: SharedFiles,
    began: Instant,
    stop: &'a AtomicBool,
}

impl<'a> Session<'a> {
    /// Measures the tool itself and looks at the machine; touches no target yet.
    pub fn new(request: Request, stop: &'a AtomicBool) -> Self {
        let began = Instant::now();
        let (started_unix_ms, started_at) = identity::now();
        let clock = choose_clock();
        let ruler = measure_ruler(clock);
        let system = System::live();
        let environment = trueio_device::environment(&system);
        let record = RunRecord {
            format: RECORD_FORMAT.to_owned(),
            version: RECORD_VERSION,
            id: identity::random_id(),
            started_unix_s: started_unix_ms / 1000,
            started_unix_ms,
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
        let has_evidence = request.has_evidence;
        Self {
            record,
            has_evidence,
            clock,
            system,
            prepared: Prepared::default(),
            shared_logs: SharedFiles::default(),
            began,
            stop,
        }
    }

    /// The record so far: what was asked, planned and seen of the targets, and the phases that were kept.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// From now on the contradictions of these checks only make a phase suspect, instead of those that the plan named:
    /// for phases whose point is what the checks object to.
    pub fn accept(&mut self, checks: &[String]) {
        self.record.plan.accepted_checks = checks.to_vec();
    }

    /// How many phases the plan has.
    pub fn phase_count(&self) -> usize {
        self.record.plan.jobs.iter().map(|job| job.phase as usize + 1).max().unwrap_or(0)
    }

    /// Claims the devices and prepares the files of phase `index`, if that has not been done.
    ///
    /// # Errors
    /// The outcome of a run that cannot go on.
    pub fn prepare(&mut self, index: usize, observer: &mut dyn Observer) -> Result<(), Outcome> {
        let jobs = &self.record.plan.jobs;
        descriptors::provide(jobs).map_err(|reason| Outcome::Failed { reason })?;
        for job in jobs.iter().filter(|job| job.phase as usize == index) {
            self.prepared.claim(job).map_err(|error| failed(&error))?;
            self.prepared.make_directories(job).map_err(|error| failed(&error))?;
            for file in job.files.iter().filter(|file| file.prepare != Prepare::Nothing) {
                let sharing = Sharing::of(jobs, &file.path, job.phase);
                match self.prepared.prepare(file, job.user, sharing, job.seed, self.stop, observer) {
                    Ok(()) => {
                        remember_target(&mut self.record.targets, &self.system, &self.prepared, &file.path);
                    }
                    Err(FileError::Stopped) => return Err(stopped()),
                    Err(error) => return Err(failed(&error)),
                }
            }
            self.prepared.learn_zones(job, jobs).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Runs phase `index` once, as `change` alters its jobs (their seeds, their length), and judges it. Its files
    /// are prepared if they are not.
    ///
    /// # Errors
    /// The outcome of a run that cannot go on. A phase that failed while it ran is returned with its own outcome.
    pub fn run_phase(
        &mut self,
        index: usize,
        change: impl Fn(&mut JobPlan),
        observer: &mut dyn Observer,
    ) -> Result<PhaseRecord, Outcome> {
        let phase = self.phase(index, change, self.has_evidence, observer)?;
        observer.phase_ends(&phase);
        Ok(phase)
    }

    /// The same to warm up: without evidence, and nothing of it is told but how it ended.
    ///
    /// # Errors
    /// The outcome of a run that cannot go on, that of the phase included.
    pub fn warm_up(&mut self, index: usize, change: impl Fn(&mut JobPlan)) -> Result<(), Outcome> {
        struct Silent;
        impl Observer for Silent {}
        let unwatched = |job: &mut JobPlan| {
            change(job);
            (job.trace_syscalls, job.strace) = (false, false);
        };
        match self.phase(index, unwatched, false, &mut Silent)?.outcome {
            Outcome::Complete => Ok(()),
            outcome => Err(outcome),
        }
    }

    fn phase(
        &mut self,
        index: usize,
        change: impl Fn(&mut JobPlan),
        has_evidence: bool,
        observer: &mut dyn Observer,
    ) -> Result<PhaseRecord, Outcome> {
        self.prepare(index, observer)?;
        let mut jobs: Vec<JobPlan> =
            self.record.plan.jobs.iter().filter(|job| job.phase as usize == index).cloned().collect();
        jobs.iter_mut().for_each(change);
        let setting = setting::Setting {
            system: &self.system,
            prepared: &self.prepared,
            shared_logs: &self.shared_logs,
            clock: self.clock,
            stop: self.stop,
            began: self.began,
            has_evidence,
            targets: &self.record.targets,
        };
        let position = phase::Position { index, count: self.phase_count() };
        let result = match observer.before_phase(index) {
            Err(_) if self.stop.load(Relaxed) => Err(stopped()),
            Err(reason) => Err(Outcome::Failed { reason }),
            Ok(()) => setting.run(&jobs, position, &self.record, observer).map_err(|error| failed(&error)),
        };
        observer.after_phase(index);
        result
    }

    /// Flushes what phase `index` has written, outside any measured time, so that it does not burden the next one.
    ///
    /// # Errors
    /// The outcome of a run that cannot go on: what was written did not reach the disk.
    pub fn settle(&self, index: usize) -> Result<(), Outcome> {
        for job in self.record.plan.jobs.iter().filter(|job| job.phase as usize == index) {
            self.prepared.flush(job).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// The record of a run that ended like this.
    pub fn finish(mut self, outcome: Outcome) -> RunRecord {
        self.record.outcome = outcome;
        self.record
    }

    /// All phases, in order, kept in the record.
    fn run_all(&mut self, observer: &mut dyn Observer) -> Result<(), Outcome> {
        for index in 0..self.phase_count() {
            if !self.record.plan.jobs.iter().any(|job| job.phase as usize == index) {
                continue;
            }
            let phase = self.run_phase(index, |_| {}, observer)?;
            let outcome = phase.outcome.clone();
            self.record.phases.push(phase);
            if outcome != Outcome::Complete {
                return Err(outcome);
            }
            if self.record.plan.jobs.iter().any(|job| job.phase as usize == index && job.scheduling.ends_run) {
                break;
            }
        }
        Ok(())
    }
}

/// An error and its causes in one line, as an outcome.
fn failed(error: &dyn std::error::Error) -> Outcome {
    Outcome::Failed { reason: error_line(error) }
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
