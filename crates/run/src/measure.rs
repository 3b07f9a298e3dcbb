//! The measured part of a phase: starts the workers together, counts just before and just after, collects reports.

use crate::bandwidth::Meter;
use crate::control_group::CreatedGroups;
use crate::criterion::{Judge, Judges};
use crate::follow::{Ending, Followed, Follower, Status, TICK};
use crate::interrupt::continue_count;
use crate::logs::{PhaseLogs, logs_completed, logs_issued};
use crate::neighbours::Lookout;
use crate::setting::Setting;
use crate::stops::Heartbeat;
use crate::strace::Strace;
use crate::usb_disks::UsbWatch;
use crate::worker::{HOST, run_worker};
use crate::{Event, Observer, Reporting, process_cpu};
use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use trueio_engine::{
    AnyClock, Flow, Gate, Progress, Snapshot, SpanJudge, Start, TargetFile, TraceChannel, WorkerContext, WorkerReport,
    ZoneMap,
};
use trueio_evidence::{Observation, SyscallWatch, Timeline, TracedJob, Watch};
use trueio_model::{CpuTime, EngineKind, JobPlan, RunRecord, SyscallTrace};

/// A worker's stack; it calls little and keeps its buffers elsewhere.
const STACK_BYTES: usize = 256 << 10;

/// What was counted around the measured part.
pub(crate) struct Counted {
    pub(crate) begin_ns: u64,
    pub(crate) elapsed: Duration,
    pub(crate) cpu: CpuTime,
    pub(crate) observation: Option<Observation>,
    pub(crate) syscalls: Option<SyscallTrace>,
    /// Why the phase was not measured as planned.
    pub(crate) fault: Option<String>,
}

impl Counted {
    /// What is counted of a phase that was not measured.
    pub(crate) fn nothing(begin_ns: u64) -> Self {
        Self {
            begin_ns,
            elapsed: Duration::ZERO,
            cpu: CpuTime::default(),
            observation: None,
            syscalls: None,
            fault: None,
        }
    }
}

/// What observes the measured part.
#[derive(Debug, Default)]
pub(crate) struct Witnesses<'a> {
    /// Counters and requests.
    pub(crate) watch: Option<&'a mut Watch>,
    /// System calls.
    pub(crate) syscalls: Option<SyscallWatch>,
    /// strace, if the job sets it.
    pub(crate) has_strace: bool,
    /// Receives each I/O.
    pub(crate) logs: Option<&'a dyn PhaseLogs>,
    /// The number in the run of the phase's first worker, from 1.
    pub(crate) first_worker: u32,
    /// The run's record and the phase's name, for results so far.
    pub(crate) so_far: Option<(&'a RunRecord, &'a str)>,
}

/// A job whose files are open.
#[derive(Debug)]
pub(crate) struct OpenJob<'p> {
    pub(crate) plan: &'p JobPlan,
    pub(crate) files: Arc<[TargetFile]>,
    /// What opening them found, for the record.
    pub(crate) notes: Vec<String>,
    /// Time of opening them.
    pub(crate) open_ns: Option<u64>,
}

/// What one worker of a phase shares with the thread that watches it.
#[derive(Debug)]
struct Shared<'a> {
    progress: &'a [Progress],
    snapshots: &'a [Snapshot],
    judges: &'a Judges,
    /// The workers' threads by their numbers, 0 for one that could not be started.
    numbers: &'a [AtomicI32],
    logs: Option<&'a dyn PhaseLogs>,
    /// The trace, and the number in the run of the phase's first worker.
    trace: Option<(&'a TraceChannel, u32)>,
    sample_window: Option<&'a AtomicU32>,
    start: &'a Start,
    stop: &'a AtomicBool,
    clock: AnyClock,
}

/// A job of a phase while its workers run.
struct RunningJob<'a> {
    plan: &'a JobPlan,
    files: &'a [TargetFile],
    zones: Vec<Arc<ZoneMap>>,
    /// The number of its first worker within the phase.
    first_worker: usize,
    gate: &'a Gate,
    waits_for: Vec<&'a Gate>,
    ends_with: Vec<&'a Gate>,
    flow: Option<&'a Flow>,
}

/// Lets the workers of a phase end if the thread that measures it panics: it joins them before the panic goes on.
struct ReleasedByPanic<'a> {
    start: &'a Start,
    stop: &'a AtomicBool,
}

impl Drop for ReleasedByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop.store(true, Relaxed);
            self.start.open();
            self.start.release();
        }
    }
}

/// A thread that runs a worker; `None` from a thread whose worker panicked.
type WorkerThread<'scope> = io::Result<ScopedJoinHandle<'scope, Option<WorkerReport>>>;

impl<'a> RunningJob<'a> {
    /// Starts the threads of the job's workers.
    fn start<'scope>(&'a self, scope: &'scope Scope<'scope, 'a>, shared: &'a Shared<'a>) -> Vec<WorkerThread<'scope>> {
        (0..self.plan.workers).map(|worker| self.start_worker(scope, shared, worker)).collect()
    }

    fn start_worker<'scope>(
        &'a self,
        scope: &'scope Scope<'scope, 'a>,
        shared: &'a Shared<'a>,
        worker: u32,
    ) -> WorkerThread<'scope> {
        let index = self.first_worker + worker as usize;
        let context = self.context(shared, worker, index);
        let number = &shared.numbers[index];
        let body = move || {
            number.store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
            let result = catch_unwind(AssertUnwindSafe(|| run_worker(&context)));
            if result.is_err() {
                context.abandon();
            }
            result.ok()
        };
        let name = format!("{}-{worker}", self.plan.name);
        let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn_scoped(scope, body);
        if thread.is_err() {
            if let Some(judge) = shared.judges.get(index) {
                judge.leaves(0);
            }
            self.gate.leave();
            shared.start.abandon(true);
        }
        thread
    }

    fn context(&'a self, shared: &'a Shared<'a>, worker: u32, index: usize) -> WorkerContext<'a> {
        let plan = self.plan;
        let output = &plan.output;
        let is_sampled = plan.engine.touches_files()
            // Page faults of a mapping are not I/Os that could be looked for.
            && plan.engine != EngineKind::Mmap
            // Its commands are no requests of the block layer.
            && !plan.engine.drives_usb_disks()
            && plan.command.is_none()
            && !plan.handling.remakes_each_pass;
        WorkerContext {
            plan,
            worker,
            files: self.files,
            stop: shared.stop,
            start: shared.start,
            progress: &shared.progress[index],
            clock: shared.clock,
            sample_window: shared.sample_window.filter(|_| is_sampled),
            log: shared.logs.filter(|_| logs_completed(output)).and_then(|logs| logs.completed(index as u32)),
            iolog: shared.logs.filter(|_| logs_issued(output)).and_then(|logs| logs.issued(index as u32)),
            trace: shared.trace.map(|(trace, first)| trace.of_worker(first + index as u32)),
            snapshot: shared.snapshots.get(index),
            judge: shared.judges.get(index).map(|judge| judge as &dyn SpanJudge),
            zones: &self.zones,
            flow: self.flow,
            waits_for: &self.waits_for,
            ends_with: &self.ends_with,
            gate: Some(self.gate),
            host: HOST,
            passed: Cell::default(),
        }
    }
}

/// Observers of the measured part, from its begin to its end.
struct Watching<'w> {
    watch: Option<&'w mut Watch>,
    syscalls: Option<SyscallWatch>,
    strace: Option<Strace>,
    fault: Option<String>,
}

impl<'w> Watching<'w> {
    /// Begins to count, just before the measured part.
    fn begin(
        watch: Option<&'w mut Watch>,
        syscalls: Option<SyscallWatch>,
        has_strace: bool,
        plans: &[&JobPlan],
        numbers: &[AtomicI32],
    ) -> Self {
        let mut watching = Self { watch, syscalls, strace: None, fault: None };
        if has_strace {
            match Strace::attach(&numbers_of(numbers)) {
                Ok(strace) => watching.strace = Some(strace),
                Err(reason) => watching.fault = Some(format!("strace could not follow this process: {reason}")),
            }
        }
        if let Some(watch) = &mut watching.watch {
            watch.before(length_of(plans));
        }
        if let Some(syscalls) = &mut watching.syscalls {
            syscalls.begin(&traced_threads(plans, numbers));
        }
        watching
    }

    /// Begins to look for disturbances of jobs that use disks. A traced worker makes no calls of ours, so its waiting is
    /// not read.
    fn timeline(&self, plans: &[&JobPlan], numbers: &[AtomicI32]) -> Option<Timeline> {
        let watch = self.watch.as_ref().filter(|_| plans.iter().any(|job| job.engine.touches_files()))?;
        let is_traced = plans.iter().any(|job| job.trace_syscalls);
        let threads = if is_traced { Vec::new() } else { numbers_of(numbers) };
        Some(watch.timeline(plans, &threads))
    }
}

/// Returns how long a phase will be measured; `None` if that depends on how fast its jobs are.
fn length_of(plans: &[&JobPlan]) -> Option<Duration> {
    let lengths = plans.iter().map(|job| job.limits.runtime_ns.filter(|_| job.limits.is_time_based));
    lengths.collect::<Option<Vec<u64>>>()?.into_iter().max().map(Duration::from_nanos)
}

/// Returns the threads of each job whose system calls are traced. Of other jobs nothing is recorded.
fn traced_threads(plans: &[&JobPlan], numbers: &[AtomicI32]) -> Vec<TracedJob> {
    let mut rest = numbers;
    let of_job = plans.iter().filter_map(|job| {
        let (own, after) = rest.split_at(job.workers as usize);
        rest = after;
        let is_alone = plans.iter().filter(|other| other.engine == job.engine).count() == 1;
        let own = numbers_of(own);
        let helpers = if is_alone { helpers_of(job.engine, &own, numbers) } else { Vec::new() };
        job.trace_syscalls.then(|| TracedJob { name: job.name.clone(), threads: [own, helpers].concat() })
    });
    of_job.collect()
}

/// Returns one flow for each flow number of a phase.
fn flows_of(plans: &[&JobPlan]) -> Vec<(u64, Flow)> {
    let mut flows: Vec<(u64, Flow)> = Vec::new();
    for id in plans.iter().filter_map(|job| Some(job.control.flow?.id)) {
        if !flows.iter().any(|(known, _)| *known == id) {
            flows.push((id, Flow::default()));
        }
    }
    flows
}

impl Setting<'_> {
    /// Joins each job with what its workers share.
    fn running<'a>(
        &self,
        jobs: &'a [OpenJob<'_>],
        plans: &[&'a JobPlan],
        gates: &'a [Gate],
        flows: &'a [(u64, Flow)],
    ) -> Vec<RunningJob<'a>> {
        let gate_of = |name: &String| Some(&gates[plans.iter().position(|job| job.name == *name)?]);
        let mut first_worker = 0;
        let mut running = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let control = &job.plan.control;
            let flow = control.flow.and_then(|flow| flows.iter().find(|(id, _)| *id == flow.id));
            running.push(RunningJob {
                plan: job.plan,
                files: &job.files,
                zones: self.prepared.zones(job.plan),
                first_worker,
                gate: &gates[index],
                waits_for: control.waits_for.iter().filter_map(gate_of).collect(),
                ends_with: gates_of_other_io(plans, index, gates),
                flow: flow.map(|(_, flow)| flow),
            });
            first_worker += job.plan.workers as usize;
        }
        running
    }

    /// Runs the workers; counts just before the measured part and just after it. Returns the reports of each job's
    /// workers.
    pub(crate) fn measure(
        &self,
        jobs: &[OpenJob<'_>],
        witnesses: Witnesses<'_>,
        observer: &mut dyn Observer,
    ) -> (Vec<Vec<WorkerReport>>, Counted) {
        let Witnesses { watch, syscalls, has_strace, logs, first_worker, so_far } = witnesses;
        let plans: Vec<&JobPlan> = jobs.iter().map(|job| job.plan).collect();
        let start = Start::holding_end();
        // A job that ends others must not be taken for a signal.
        let over = AtomicBool::new(false);
        let has_end = plans.iter().any(|job| job.scheduling.ends_others || job.scheduling.ends_others_on_error);
        let sample_window = watch.as_ref().and_then(|watch| watch.sample_window());
        let workers: u32 = plans.iter().map(|job| job.workers).sum();
        let progress: Vec<Progress> = (0..workers).map(|_| Progress::default()).collect();
        // Snapshots are needed only for results so far.
        let Reporting { interim_every, interim_asked, bandwidth_every, .. } = self.reporting;
        let status = so_far.filter(|_| interim_every.is_some() || interim_asked.is_some());
        let snapshot_count = if status.is_some() { workers } else { 0 };
        let snapshots: Vec<Snapshot> = (0..snapshot_count).map(|_| Snapshot::default()).collect();
        let numbers: Vec<AtomicI32> = (0..workers).map(|_| AtomicI32::new(0)).collect();
        let judges = Judges::of(&plans);
        let gates: Vec<Gate> = plans.iter().map(|job| Gate::new(job.workers)).collect();
        let flows = flows_of(&plans);
        let running = self.running(jobs, &plans, &gates, &flows);
        let shared = Shared {
            progress: &progress,
            snapshots: &snapshots,
            judges: &judges,
            numbers: &numbers,
            logs,
            trace: self.reporting.trace.as_ref().map(|trace| (trace, first_worker)),
            sample_window: sample_window.as_deref(),
            start: &start,
            stop: if has_end { &over } else { self.stop },
            clock: self.clock,
        };
        let _groups = CreatedGroups::of(&plans);
        std::thread::scope(|scope| {
            let _released = ReleasedByPanic { start: &start, stop: shared.stop };
            let threads: Vec<_> = running.iter().map(|job| job.start(scope, &shared)).collect();
            start.wait_for(workers);
            if let Some(logs) = logs {
                logs.workers_begin();
            }
            self.pass_head(&plans, Ending { start: &start, over: &over, stop: self.stop }, observer);
            let watching = Watching::begin(watch, syscalls, has_strace, &plans, &numbers);
            let timeline = watching.timeline(&plans, &numbers);
            observer.notify(Event::MeasuringBegins);
            let usb = UsbWatch::begin(jobs.iter().flat_map(|job| job.files.iter()));
            let begin_ns = self.began.elapsed().as_nanos() as u64;
            let mark = self.clock.mark();
            let begin = Instant::now();
            let heartbeat = Heartbeat::new(begin);
            let cpu_before = process_cpu();
            start.open();
            let follower = Follower {
                plans: &plans,
                ending: Ending { start: &start, over: &over, stop: self.stop },
                progress: &progress,
                begin,
                heartbeat,
                status: status.map(|(record, name)| Status {
                    reporting: self.reporting,
                    record,
                    name,
                    begin_ns,
                    snapshots: &snapshots,
                    watch: watching.watch.as_deref(),
                }),
                meter: bandwidth_every.map(|every| Meter::new(&plans, &progress, every, begin, begin - self.began)),
                lookout: self.reporting.watches_disks.then(|| Lookout::new(self.system, self.targets)),
                timeline,
            };
            let continued = continue_count();
            let Followed { stops, course } = follower.follow(observer);
            let cpu_after = process_cpu();
            let elapsed = begin.elapsed();
            observer.notify(Event::MeasuringEnds);
            let mut observation = watching.watch.map(|watch| watch.after());
            if let Some(observation) = &mut observation {
                let marks = mark.zip(self.clock.mark());
                observation.clock_drift = marks.and_then(|(from, to)| self.clock.drift(from, to));
                observation.continue_count = continue_count().wrapping_sub(continued);
                observation.tracer = if stops.is_empty() { None } else { trueio_device::tracer(self.system) };
                (observation.stops, observation.usb) = (Some(stops), usb.end());
                (observation.disturbances, observation.limit_spans) = (course.disturbances, course.limits);
            }
            let syscalls = watching.syscalls.map(|syscalls| syscalls.end(elapsed));
            if let Some(strace) = watching.strace {
                strace.detach();
            }
            start.release();
            let cpu = cpu_after.since(cpu_before);
            let fault = watching.fault;
            (collect_reports(threads, &judges), Counted { begin_ns, elapsed, cpu, observation, syscalls, fault })
        })
    }

    /// Lets the jobs pass what comes before the measured part: ramps and delays.
    fn pass_head(&self, plans: &[&JobPlan], ending: Ending<'_>, observer: &mut dyn Observer) {
        let workers = plans.iter().map(|job| job.workers).sum();
        let delay = |job: &&JobPlan| job.limits.ramp_ns + job.limits.start_delay_ns;
        let head = Duration::from_nanos(plans.iter().map(delay).min().unwrap_or(0));
        observer.notify(Event::WorkersReady { has_head: head > Duration::ZERO });
        if head > Duration::ZERO {
            ending.start.open();
            // A finished or stopped phase ends the wait early.
            let end = Instant::now() + head;
            let left = || end.saturating_duration_since(Instant::now());
            while !ending.wait(workers, left().min(TICK)) && left() > Duration::ZERO {}
        }
    }
}

/// Joins the threads and returns the reports of each job's workers.
fn collect_reports(threads: Vec<Vec<WorkerThread<'_>>>, judges: &Judges) -> Vec<Vec<WorkerReport>> {
    let of_job = |threads: Vec<_>| threads.into_iter().map(collect_report).collect();
    let mut reports: Vec<Vec<WorkerReport>> = threads.into_iter().map(of_job).collect();
    for (worker, report) in reports.iter_mut().flatten().enumerate() {
        report.criterion = judges.get(worker).map(Judge::record);
    }
    reports
}

/// Returns the gates of the jobs with whose I/O job number `of` ends, without those that wait for it.
fn gates_of_other_io<'g>(plans: &[&JobPlan], of: usize, gates: &'g [Gate]) -> Vec<&'g Gate> {
    if !plans[of].cpu_load.is_some_and(|load| load.ends_with_io) {
        return Vec::new();
    }
    let mut waiting = vec![plans[of].name.as_str()];
    // As often as there may be one that waits for one that waits.
    for _ in plans {
        for job in plans {
            let waits = job.control.waits_for.iter().any(|name| waiting.contains(&name.as_str()));
            if waits && !waiting.contains(&job.name.as_str()) {
                waiting.push(&job.name);
            }
        }
    }
    let other_io = |(job, gate): (&&JobPlan, &'g Gate)| {
        (job.engine.does_io() && !waiting.contains(&job.name.as_str())).then_some(gate)
    };
    plans.iter().zip(gates).filter_map(other_io).collect()
}

/// Threads that an engine has in addition to its workers `own`: they are called after it, or still after the worker that made
/// them if they have not run yet. `all` are the workers of the phase. Their job is unknown where several jobs
/// of a phase use the engine.
fn helpers_of(engine: EngineKind, own: &[i32], all: &[AtomicI32]) -> Vec<i32> {
    if engine != EngineKind::Posixaio {
        return Vec::new();
    }
    let name = |thread: i32| std::fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap_or_default();
    let prefix = format!("{}-", engine.name());
    let makers: Vec<String> = own.iter().map(|thread| name(*thread)).collect();
    let workers = numbers_of(all);
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let numbers = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    let is_helper = |thread: &i32| {
        let name = name(*thread);
        !workers.contains(thread) && (name.starts_with(&prefix) || makers.contains(&name))
    };
    numbers.filter(is_helper).collect()
}

/// Returns the IDs of the threads that were started.
fn numbers_of(numbers: &[AtomicI32]) -> Vec<i32> {
    numbers.iter().map(|number| number.load(Relaxed)).filter(|number| *number > 0).collect()
}

/// Returns a worker's report, or one with the reason why there is none.
fn collect_report(thread: WorkerThread<'_>) -> WorkerReport {
    match thread {
        Ok(thread) => match thread.join() {
            Ok(Some(report)) => report,
            Ok(None) | Err(_) => WorkerReport::failed("the worker panicked; this is a bug of trueio".to_owned()),
        },
        Err(error) => WorkerReport::failed(format!("starting a thread failed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_phase_is_known_if_each_job_ends_by_time() {
        let second = 1_000_000_000;
        let job = |runtime_ns, is_time_based| {
            let mut job = JobPlan::plain(EngineKind::Psync, 1 << 20);
            (job.limits.runtime_ns, job.limits.is_time_based) = (runtime_ns, is_time_based);
            job
        };
        let (short, long) = (job(Some(second), true), job(Some(30 * second), true));
        assert_eq!(length_of(&[&short, &long]), Some(Duration::from_secs(30)));
        assert_eq!(length_of(&[&short, &job(Some(30 * second), false)]), None, "it may end earlier, by size");
        assert_eq!(length_of(&[&job(None, false)]), None);
        assert_eq!(length_of(&[]), None);
    }
}
