//! The input of a worker, and how it reports its progress to the others of its phase.

use crate::clock::AnyClock;
use crate::flow::Flow;
use crate::log::{IssuedIo, LogChannel, TraceChannel};
use crate::recorder::{Progress, WorkerReport};
use crate::snapshot::Snapshot;
use crate::source::BodySource;
use crate::span::SpanJudge;
use crate::start::{Gate, Start};
use crate::target::TargetFile;
use crate::usage::thread_usage;
use crate::zones::ZoneMap;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use trueio_model::{JobPlan, SourcePlan, ThreadUsage};

/// How far a worker is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Passed {
    /// It makes itself ready.
    #[default]
    Nothing,
    /// It was ready at the start.
    Start,
    /// It has done its last measured I/O.
    End,
}

/// Opens a log by its path; `-` is standard input.
pub type OpenLog = fn(&str) -> io::Result<Box<dyn io::Read + Send>>;

/// Creates a file; returns it with the reason if it has another name.
pub type CreateFile = fn(&JobPlan, &Path) -> io::Result<(File, Option<String>)>;

/// Functions outside this crate that a worker calls before and after its I/Os.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Creates a file in the current directory for what a job's verification keeps.
    pub create_file: CreateFile,
    /// Opens the body that a job with a source writes. The error is a sentence.
    pub open_body: fn(&SourcePlan) -> Result<Box<dyn BodySource>, String>,
    /// Opens a log that a job replays.
    pub open_log: OpenLog,
}

impl Default for Host {
    /// New files only, and no sources.
    fn default() -> Self {
        Self {
            create_file: |_, path| Ok((File::create_new(path)?, None)),
            open_body: |plan| Err(format!("the source `{}` cannot be fetched by the engine alone", plan.address)),
            open_log: open_file,
        }
    }
}

/// Opens a log that is a file of lines.
pub(crate) fn open_file(path: &str) -> io::Result<Box<dyn io::Read + Send>> {
    File::open(if path == "-" { "/dev/stdin" } else { path }).map(|file| Box::new(file) as _)
}

/// The input of a worker next to its plan.
#[derive(Debug)]
pub struct WorkerContext<'a> {
    /// The job.
    pub plan: &'a JobPlan,
    /// Which of the job's workers, from 0.
    pub worker: u32,
    /// The job's files, opened; empty for engines that touch none.
    pub files: &'a [TargetFile],
    /// Set to end the run early.
    pub stop: &'a AtomicBool,
    /// The phase's start.
    pub start: &'a Start,
    /// Where live figures go.
    pub progress: &'a Progress,
    /// The clock, made once for the run.
    pub clock: AnyClock,
    /// The number of the window in which requests are traced now, 0 for none; `None` if they never are.
    pub sample_window: Option<&'a AtomicU32>,
    /// Log of completed I/Os, if the job has one.
    pub log: Option<LogChannel>,
    /// Log of issued I/Os, if the job has one.
    pub iolog: Option<LogChannel<IssuedIo>>,
    /// The trace of every I/O, if the run has one.
    pub trace: Option<TraceChannel>,
    /// Where results go that are requested while the worker runs.
    pub snapshot: Option<&'a Snapshot>,
    /// Judges the worker's spans, if the job ends when it is steady.
    pub judge: Option<&'a dyn SpanJudge>,
    /// The zones of the job's files, in their order, if it writes them by the rules of zoned devices.
    pub zones: &'a [Arc<ZoneMap>],
    /// The flow that the worker belongs to.
    pub flow: Option<&'a Flow>,
    /// The gates of the jobs that must have ended before this one begins.
    pub waits_for: &'a [&'a Gate],
    /// The gates of the jobs that do I/O at the same time, if it is to end with them.
    pub ends_with: &'a [&'a Gate],
    /// The gate at which others wait for this job.
    pub gate: Option<&'a Gate>,
    /// What the runner provides.
    pub host: Host,
    /// How far the worker is; [`Self::abandon`] reads it after a panic.
    pub passed: Cell<Passed>,
}

impl<'a> WorkerContext<'a> {
    /// Returns the context of the only worker of a job that runs alone, without logs and snapshots.
    pub fn new(
        plan: &'a JobPlan,
        files: &'a [TargetFile],
        stop: &'a AtomicBool,
        start: &'a Start,
        progress: &'a Progress,
        clock: AnyClock,
    ) -> Self {
        Self {
            plan,
            worker: 0,
            files,
            stop,
            start,
            progress,
            clock,
            sample_window: None,
            log: None,
            iolog: None,
            trace: None,
            snapshot: None,
            judge: None,
            zones: &[],
            flow: None,
            waits_for: &[],
            ends_with: &[],
            gate: None,
            host: Host::default(),
            passed: Cell::default(),
        }
    }
}

impl WorkerContext<'_> {
    /// Returns true if the run is to end early.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Returns what the calling thread has used so far. A job whose system calls are traced makes none for its time in the
    /// run queue.
    pub(crate) fn usage(&self) -> ThreadUsage {
        thread_usage(!self.plan.trace_syscalls)
    }

    /// Returns the path of a file, for messages.
    pub(crate) fn path(&self, file: u16) -> String {
        self.files.get(usize::from(file)).map_or_else(String::new, |file| file.path.clone())
    }

    /// The worker is ready; returns when the phase begins.
    pub(crate) fn ready(&self) {
        self.passed.set(Passed::Start);
        self.start.reached();
    }

    /// The worker is ready; returns when it may begin.
    pub fn reached(&self) {
        self.ready();
        self.waits_for.iter().for_each(|gate| gate.wait(self.stop));
    }

    /// Ends the other jobs of the phase, if the job is set to. [`Self::finished`] does so, too; a job that shares a
    /// flow with them does it before it leaves that, so that they do not go on alone meanwhile.
    pub(crate) fn end_others(&self, has_failed: bool) {
        let scheduling = &self.plan.scheduling;
        // A job without a measured part has not ended first: it never ran at the same time as the others.
        let ends_others = scheduling.ends_others && !self.plan.handling.creates_only;
        if ends_others || scheduling.ends_others_on_error && has_failed {
            // The phase has a flag of its own where a job ends others.
            self.stop.store(true, Relaxed);
        }
    }

    /// The worker has done its last measured I/O; ends the other jobs if the job is set to, and returns when the phase's
    /// end is released.
    pub fn finished(&self, has_failed: bool) {
        self.end_others(has_failed);
        self.passed.set(Passed::End);
        if let Some(gate) = self.gate {
            gate.leave();
        }
        self.start.finished();
    }

    /// Called after a worker panicked: no thread waits for it any more, wherever it was.
    pub fn abandon(&self) {
        let passed = self.passed.replace(Passed::End);
        if passed == Passed::End {
            return;
        }
        if let Some(gate) = self.gate {
            gate.leave();
        }
        self.start.abandon(passed == Passed::Nothing);
    }

    /// Passes the start and the end of a worker that cannot run, so that no other worker waits for it.
    pub fn give_up(&self, reason: String) -> WorkerReport {
        self.publish(WorkerReport::empty);
        if let Some(judge) = self.judge {
            judge.leaves(0);
        }
        self.ready();
        self.finished(true);
        WorkerReport::failed(reason)
    }

    /// Publishes the final report; later snapshots return it.
    pub fn publish(&self, report: impl FnOnce() -> WorkerReport) {
        if let Some(snapshot) = self.snapshot {
            snapshot.settle(report());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::choose_clock;
    use std::time::Duration;
    use trueio_model::EngineKind;

    /// Goal: a worker that panics is waited for neither at the start nor at the end, and does not count instead of
    /// another one.
    /// Method: two workers; one is abandoned at each stage, then the other passes the remaining stages.
    #[test]
    fn a_worker_that_is_abandoned_counts_once_wherever_it_was() {
        let plan = JobPlan::plain(EngineKind::Null, 1 << 20);
        for passed in [Passed::Nothing, Passed::Start, Passed::End] {
            let (stop, start, progress, clock) =
                (AtomicBool::new(false), Start::new(), Progress::default(), choose_clock());
            let gate = Gate::new(2);
            let context = || WorkerContext {
                gate: Some(&gate),
                ..WorkerContext::new(&plan, &[], &stop, &start, &progress, clock)
            };
            start.open();
            let (first, second) = (context(), context());
            if passed != Passed::Nothing {
                first.reached();
            }
            if passed == Passed::End {
                first.finished(false);
            }
            first.abandon();
            first.abandon();
            start.wait_for(1);
            assert_eq!(start.counted(), (1, 1), "{passed:?}");
            assert!(!start.wait_finished(2, Duration::ZERO), "{passed:?}: the other has not ended");
            assert_eq!(gate.count(), 1, "{passed:?}: the other is still there");
            second.reached();
            second.finished(false);
            assert!(start.wait_finished(2, Duration::ZERO));
            assert_eq!((start.counted(), gate.count()), ((2, 2), 0));
        }
    }
}
