//! Runs a plan and returns its record.
//!
//! [`run`] carries out a [`Plan`], phase by phase: prepares the files, watches the disks
//! idle, starts the workers together, waits, reads the counters again, and judges the evidence. Whatever
//! happens (a signal, a full disk, an I/O error, a worker that panics), the result is a record with
//! everything measured until then, and no created file is left.
//!
//! Files that are to be removed have no name as soon as they are created: they are created under
//! a new name, opened, and unlinked at once, and every later open goes through the descriptor. The
//! kernel frees them when the process is gone, even if it was killed.
//!
//! Cannot do: plan, print, store. Other crates do; progress goes to an [`Observer`].

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod bandwidth;
mod control_group;
mod credentials;
mod criterion;
mod descriptors;
mod file_error;
mod files;
mod fill;
mod follow;
mod held;
mod identity;
mod interrupt;
mod limits;
mod logs;
pub mod machine;
mod measure;
mod merge;
mod name_roots;
mod neighbours;
mod observer;
mod output_file;
mod panics;
mod phase;
pub mod planning;
mod printed;
mod reached;
mod replayed;
mod reserved;
mod second_look;
mod setting;
mod settle;
mod sharing;
mod source;
mod stops;
mod strace;
mod targets;
mod usb_disks;
mod worker;

pub use bandwidth::{BandwidthSpan, JobBytes};
pub use credentials::{Access, Acting, become_user, may_use, user_of};
pub use file_error::FileError;
pub use identity::{now, random_id, tool_facts};
pub use interrupt::{
    BY_KEY, HeldSignals, before_abrupt_exit, end_by_key, hold_signals, ignore_hangup, signal_received, watch_signals,
    watch_status_signal,
};
pub use logs::{LogError, LogWriter, PhaseLogs};
pub use merge::{SeriesSum, SumOverflow, add_record, conclude_sum};
pub use neighbours::Watched;
pub use observer::{Event, Observer, Reporting, Tick};
pub use output_file::{Before, GrowingFile, OutputFile, create_output};
pub use panics::{contained, panic_text};
pub use printed::PrintedFile;
pub use reserved::{AsideOutput, PlacedOutput, ReservedOutput};
pub use source::{Body, BodyServer, SourceError, open_body, source_length};
pub use strace::why_no_strace;
pub use targets::Targets;
pub use usb_disks::{UsbClaim, claim_usb_disk};
pub use worker::{HOST, run_worker};

use files::Prepared;
use name_roots::NameRoots;
use reached::Reached;
use sharing::Sharing;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_device::System;
use trueio_engine::{AnyClock, choose_clock, measure_ruler};
use trueio_model::{
    CpuTime, Fact, JobPlan, JobSpec, LayerKind, Outcome, PhaseRecord, Plan, Prepare, RECORD_FORMAT, RECORD_VERSION,
    RunRecord, TargetFacts, TargetKind, error_line,
};

/// What to run, and what the record contains next to the figures.
#[derive(Debug)]
pub struct Request {
    /// What kind of run (`baseline`, `run`).
    pub kind: String,
    /// The words of the command line, the program first; the record keeps them.
    pub command: Vec<String>,
    /// The jobs as they were set, before planning; the record keeps them.
    pub spec: Vec<JobSpec>,
    /// What will be done.
    pub plan: Plan,
    /// The existing targets, open since planning ([`planning::planned_and_claimed`]); by default the run opens them
    /// before its first phase.
    pub targets: Targets,
    /// Whether evidence is collected. Without it every verdict rests on the calls alone (E0).
    pub has_evidence: bool,
    /// Which optional reports the observer gets.
    pub reporting: Reporting,
}

/// CPU time of the process with all its threads, io-wq and SQPOLL included, and of programs that it started and
/// that have ended.
pub(crate) fn process_cpu() -> CpuTime {
    let mut sum = CpuTime::default();
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        // SAFETY: the kernel fills the structure that the call passes.
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

/// Variable with checks, separated by commas, whose contradictions only make a phase suspect, as with `--accept`: for
/// test suites on machines that other programs keep busy. Other names have no effect.
pub const ACCEPT_VARIABLE: &str = "TRUEIO_ACCEPT";

/// Adds the checks of [`ACCEPT_VARIABLE`].
fn with_accepted_here(mut checks: Vec<String>) -> Vec<String> {
    let names = std::env::var(ACCEPT_VARIABLE).unwrap_or_default();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !checks.iter().any(|check| check == name) {
            checks.push(name.to_owned());
        }
    }
    checks
}

/// Runs a plan. Never fails: the record's outcome holds the error.
///
/// `stop` ends the run early when it becomes true; [`watch_signals`] gives one that signals set.
pub fn run(request: Request, stop: &AtomicBool, observer: &mut dyn Observer) -> RunRecord {
    run_looking_again(request, Duration::ZERO, stop, observer)
}

/// Runs a plan as [`run`] does. If most phases were disturbed, the disturbed ones are measured once more, for at most `limit` in all; a
/// limit of zero measures none again.
pub fn run_looking_again(
    request: Request,
    limit: Duration,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> RunRecord {
    let mut session = Session::new(request, stop);
    let mut run = || {
        session.run_all(observer)?;
        if limit.is_zero() { Ok(()) } else { session.look_again(limit, observer) }
    };
    let outcome = contained(&mut run).unwrap_or_else(bug).err().unwrap_or(Outcome::Complete);
    session.finish(outcome)
}

/// A plan whose phases are run one by one, in any order and repeatedly, on files that are prepared
/// once: for comparisons, which interleave phases. [`run`] is one of these, from the first phase to the last.
///
/// The files that it creates are gone when it is dropped.
#[derive(Debug)]
pub struct Session<'a> {
    record: RunRecord,
    has_evidence: bool,
    reporting: Reporting,
    clock: AnyClock,
    system: System,
    prepared: Prepared,
    names: NameRoots,
    reached: Reached,
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
            id: random_id(),
            started_unix_s: started_unix_ms / 1000,
            started_unix_ms,
            started_at,
            kind: request.kind,
            command: request.command,
            tool: tool_facts(),
            spec: request.spec,
            plan: Plan { accepted_checks: with_accepted_here(request.plan.accepted_checks), ..request.plan },
            targets: Vec::new(),
            environment,
            ruler,
            phases: Vec::new(),
            outcome: Outcome::Complete,
            cluster: None,
            power_loss: None,
            answer: None,
        };
        let has_evidence = request.has_evidence;
        Self {
            record,
            has_evidence,
            reporting: request.reporting,
            clock,
            system,
            prepared: Prepared::of(request.targets),
            names: NameRoots::default(),
            reached: Reached::default(),
            began,
            stop,
        }
    }

    /// Returns the record so far: specification, plan, facts of the targets, and the phases that were kept.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Sets the checks whose contradictions only make later phases suspect; replaces those of the plan. For phases that do on purpose what
    /// the checks contradict. The checks of [`ACCEPT_VARIABLE`] remain.
    pub fn accept(&mut self, checks: &[String]) {
        self.record.plan.accepted_checks = with_accepted_here(checks.to_vec());
    }

    /// How many phases the plan has.
    pub fn phase_count(&self) -> usize {
        self.record.plan.jobs.iter().map(|job| job.phase as usize + 1).max().unwrap_or(0)
    }

    /// Opens the existing targets of all phases and claims the devices, if planning has not done so; compares those of
    /// phase `index` with what they were, and prepares its files, if that has not been done.
    ///
    /// # Errors
    /// The outcome of a run that cannot go on.
    pub fn prepare(&mut self, index: usize, observer: &mut dyn Observer) -> Result<(), Outcome> {
        let jobs = &self.record.plan.jobs;
        self.prepared.begin(&self.record.plan).map_err(|reason| Outcome::Failed { reason })?;
        for job in jobs.iter().filter(|job| job.phase as usize == index) {
            self.prepared.check(job).map_err(|error| failed(&error))?;
            self.prepared.make_directories(job).map_err(|error| failed(&error))?;
            let filling = fill::Filling::of(job);
            for file in job.files.iter().filter(|file| file.prepare != Prepare::Nothing) {
                let sharing = Sharing::of(jobs, &file.path, job.phase);
                match self.prepared.prepare(file, job.user, sharing, &filling, self.stop, observer) {
                    Ok(()) => {
                        remember_target(&mut self.record.targets, &self.system, &self.prepared, &file.path);
                    }
                    Err(FileError::Stopped) => return Err(stopped()),
                    Err(error) => return Err(failed(&error)),
                }
            }
            self.prepared.learn_zones(job, jobs).map_err(|error| failed(&error))?;
            match self.names.begin(job, self.stop, observer) {
                Ok(()) => {}
                Err(FileError::Stopped) => return Err(stopped()),
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }

    /// Returns true if a job of phase `index` has I/Os to do here: one that follows an earlier job (`repeat_ios_of`,
    /// `complete_ios_of`) may have none.
    pub fn has_work(&mut self, index: usize) -> bool {
        let jobs = self.record.plan.jobs.iter().filter(|job| job.phase as usize == index);
        self.reached.jobs(jobs).next().is_some()
    }

    /// Returns how many I/Os the jobs that others follow have reached here, by name.
    pub fn reached(&self) -> BTreeMap<String, u64> {
        self.reached.own()
    }

    /// Sets how many I/Os the ranks of a run have reached in a job, by rank.
    pub fn set_reached(&mut self, job: &str, by_rank: Vec<u64>) {
        self.reached.set(job, by_rank);
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
        let has_evidence = self.has_evidence;
        contained(|| self.phase(index, change, has_evidence, observer)).unwrap_or_else(bug)
    }

    /// Runs phase `index` to warm up: without evidence and events; only its outcome is returned.
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
        self.wait_until_idle(observer)?;
        let planned = self.record.plan.jobs.iter().filter(|job| job.phase as usize == index);
        let mut jobs: Vec<JobPlan> = self.reached.jobs(planned).map(Cow::into_owned).collect();
        jobs.iter_mut().for_each(change);
        let setting = setting::Setting {
            system: &self.system,
            prepared: &self.prepared,
            clock: self.clock,
            stop: self.stop,
            began: self.began,
            has_evidence,
            reporting: &self.reporting,
            targets: &self.record.targets,
        };
        let position = phase::Position { index, count: self.phase_count() };
        let mut failure = None;
        observer.notify(Event::BeforePhase { index, failure: &mut failure });
        let result = match failure {
            Some(_) if self.stop.load(Relaxed) => Err(stopped()),
            Some(reason) => Err(Outcome::Failed { reason }),
            None => contained(|| setting.run(&jobs, position, &self.record, observer).map_err(|error| failed(&error)))
                .unwrap_or_else(bug),
        };
        observer.notify(Event::AfterPhase { index });
        result
    }

    /// Waits for idle disks, if the request sets it.
    fn wait_until_idle(&self, observer: &mut dyn Observer) -> Result<(), Outcome> {
        let Some(limit) = self.record.plan.idle_wait_ns.map(Duration::from_nanos) else { return Ok(()) };
        let mut lookout = neighbours::Lookout::before(&self.system, &self.record.targets);
        lookout.wait_until_idle(limit, self.stop, |words| observer.notify(Event::WaitingForIdle(words))).map_err(
            |words| {
                let limit = trueio_model::units::format_duration_ns(limit.as_nanos() as u64);
                Outcome::Failed { reason: format!("the disk was not idle within {limit} (--wait-idle): {words}") }
            },
        )
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

    /// Adds a phase to the record.
    pub fn keep(&mut self, phase: PhaseRecord) {
        self.reached.add(&phase, &self.record.plan.jobs);
        self.record.phases.push(phase);
    }

    /// Returns the record of a run with this outcome.
    pub fn finish(mut self, outcome: Outcome) -> RunRecord {
        self.record.outcome = outcome;
        self.record
    }

    /// Runs all phases in order, and adds them to the record.
    fn run_all(&mut self, observer: &mut dyn Observer) -> Result<(), Outcome> {
        let mut failure = None;
        for index in 0..self.phase_count() {
            let mut jobs = self.record.plan.jobs.iter().filter(|job| job.phase as usize == index).peekable();
            if jobs.peek().is_none() {
                continue;
            }
            if failure.is_some() && !jobs.all(|job| job.scheduling.starts_after_failure) {
                break;
            }
            if !self.has_work(index) {
                continue;
            }
            let phase = self.run_phase(index, |_| {}, observer)?;
            let outcome = phase.outcome.clone();
            if is_by_key(&outcome) && !has_figures(&phase) {
                // An orderly end before the first I/O: there is nothing to judge, and no figure is missing.
                return Err(outcome);
            }
            self.keep(phase);
            observer.notify(Event::PhaseEnds(&self.record));
            match outcome {
                Outcome::Complete => {}
                Outcome::Failed { .. } => failure = failure.or(Some(outcome)),
                outcome => return Err(outcome),
            }
            if self.record.plan.jobs.iter().any(|job| job.phase as usize == index && job.scheduling.ends_run) {
                break;
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

/// Returns the outcome of a phase or run that panicked.
fn bug<T>(reason: String) -> Result<T, Outcome> {
    Err(Outcome::Failed { reason })
}

/// An error and its causes in one line, as an outcome.
fn failed(error: &(dyn std::error::Error + 'static)) -> Outcome {
    Outcome::Failed { reason: error_line(error) }
}

/// Returns true if the key of the live view ended it.
fn is_by_key(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Interrupted { signal } if signal == BY_KEY)
}

/// Returns true if an I/O of a phase has ended.
fn has_figures(phase: &PhaseRecord) -> bool {
    let ops = phase.jobs.iter().flat_map(|job| &job.ops);
    ops.map(|op| op.io_count + op.error_count + op.short_count).sum::<u64>() > 0
}

/// Returns the outcome of a stopped run.
pub(crate) fn stopped() -> Outcome {
    Outcome::Interrupted { signal: signal_received().unwrap_or("request").to_owned() }
}

/// Adds a file's target to the record, unless an equal one is there.
///
/// A file without a name lies on the filesystem of its directory, and inherits the flags of new files
/// there (journalled data, no copy on write).
fn remember_target(targets: &mut Vec<TargetFacts>, system: &System, prepared: &Prepared, path: &str) {
    if let Some(disk) = prepared.usb_disk(path) {
        let facts = disk.facts();
        if !targets.iter().any(|known| known.path == facts.path) {
            targets.push(facts);
        }
        return;
    }
    let directory = Path::new(path).parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_anonymous = prepared.is_anonymous(path);
    let Ok(mut facts) = trueio_device::target_facts(system, if is_anonymous { directory } else { Path::new(path) })
    else {
        return;
    };
    path.clone_into(&mut facts.path);
    if is_anonymous {
        facts.kind = TargetKind::File;
        facts.size_bytes = match std::fs::metadata(prepared.evidence_path(path)) {
            Ok(metadata) => Fact::known(metadata.len(), "stat"),
            Err(error) => Fact::unknown(format!("stat: {error}")),
        };
        if let Some(layer) = facts.stack.first_mut() {
            layer.kind = LayerKind::File;
            path.clone_into(&mut layer.name);
        }
    }
    let has_same_facts = |known: &TargetFacts| {
        known.kind == facts.kind
            && known.disks == facts.disks
            && known.direct == facts.direct
            && known.filesystem.as_ref().map(|f| &f.mount_point) == facts.filesystem.as_ref().map(|f| &f.mount_point)
    };
    if !targets.iter().any(|known| known.path == facts.path || has_same_facts(known)) {
        targets.push(facts);
    }
}
