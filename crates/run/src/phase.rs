//! One phase: jobs that run at the same time, and the evidence about them.

use crate::bandwidth::Meter;
use crate::criterion::{Judge, Judges};
use crate::files::{FileError, Prepared, acting};
use crate::iologs::Iologs;
use crate::logs::{Logs, SharedFiles};
use crate::merge::merge;
use crate::strace::Strace;
use crate::worker::{HOST, run_worker};
use crate::{Observer, Tick, process_cpu, stopped};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_device::System;
use trueio_engine::{
    AnyClock, Flow, Gate, Progress, Snapshot, SpanJudge, Start, TargetFile, WorkerContext, WorkerReport,
};
use trueio_evidence::{
    Observation, PhaseFacts, SyscallWatch, Watch, describe_failure, explain_failure, judge, target_of,
};
use trueio_model::{
    CpuTime, EngineKind, FilePlan, JobPlan, JobRecord, OpKind, OpMix, Outcome, PhaseRecord, Prepare, RunRecord,
    SyscallTrace, TargetFacts, error_line,
};

/// How often progress is told.
const TICK: Duration = Duration::from_millis(200);
/// A worker's stack; it calls little and keeps its buffers elsewhere.
const STACK_BYTES: usize = 256 << 10;

/// How a phase comes to its end.
struct Ending<'a> {
    start: &'a Start,
    /// The flag of a phase in which a job ends the others.
    over: &'a AtomicBool,
    /// The run's flag.
    stop: &'a AtomicBool,
}

impl Ending<'_> {
    /// As [`Start::wait_finished`]; a request to stop the run reaches a phase with a flag of its own, too.
    fn wait(&self, workers: u32, limit: Duration) -> bool {
        self.over.fetch_or(self.stop.load(Relaxed), Relaxed);
        self.start.wait_finished(workers, limit)
    }
}

/// What all phases of a run share.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) system: &'a System,
    pub(crate) prepared: &'a Prepared,
    pub(crate) shared_logs: &'a SharedFiles,
    pub(crate) clock: AnyClock,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) began: Instant,
    pub(crate) has_evidence: bool,
    /// What is known of the run's targets.
    pub(crate) targets: &'a [TargetFacts],
}

/// What was counted around the measured part.
pub(crate) struct Counted {
    begin_ns: u64,
    elapsed: Duration,
    cpu: CpuTime,
    observation: Option<Observation>,
    syscalls: Option<SyscallTrace>,
    /// Why the phase was not measured in the way that was asked for.
    fault: Option<String>,
}

/// Who looks at the measured part.
#[derive(Debug, Default)]
pub(crate) struct Witnesses<'a> {
    /// Counters and requests.
    pub(crate) watch: Option<&'a mut Watch>,
    /// System calls.
    pub(crate) syscalls: Option<SyscallWatch>,
    /// strace, which is asked for to be measured.
    pub(crate) has_strace: bool,
    /// Where each I/O is written down.
    pub(crate) logs: Option<&'a Logs>,
    /// Where each I/O is written down for a replay.
    pub(crate) iologs: Option<&'a Iologs>,
    /// What a record of the run so far is made of, for whoever wants results meanwhile.
    pub(crate) so_far: Option<(&'a RunRecord, &'a str)>,
}

impl Setting<'_> {
    /// Runs a phase's jobs and judges them.
    #[expect(clippy::too_many_lines, reason = "until it is split")]
    pub(crate) fn run(
        &self,
        jobs: &[JobPlan],
        index: usize,
        count: usize,
        idle_baseline_ns: u64,
        record: &RunRecord,
        observer: &mut dyn Observer,
    ) -> Result<PhaseRecord, FileError> {
        let name = jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join("+");
        observer.phase_begins(index, count, &name);
        let mut opened = Vec::new();
        for job in jobs {
            opened.push(self.prepared.open(job)?);
        }
        for (job, (files, _)) in jobs.iter().zip(&opened) {
            if job.invalidate {
                drop_cached_pages(job, files);
            }
        }
        for job in jobs.iter().filter(|job| job.pre_read) {
            for file in &job.files {
                acting(job.user, || self.read_into_cache(file))?;
            }
        }
        let mut watch = self.has_evidence.then(|| {
            let mut watch = Watch::new(self.system, &record.targets, &self.doors(jobs));
            let reads = |job: &JobPlan| !matches!(job.pattern.mix, OpMix::Only(OpKind::Write | OpKind::Trim));
            if jobs.iter().any(|job| job.engine.touches_files() && reads(job)) {
                watch.sample_content();
            }
            let touches_disks = jobs.iter().any(|job| job.engine.touches_files());
            watch.baseline(Duration::from_nanos(if touches_disks { idle_baseline_ns } else { 0 }));
            watch
        });
        // Log files are numbered by worker over the whole run.
        let earlier = record.plan.jobs.iter().take_while(|job| job.phase != jobs[0].phase);
        let logs = Logs::start(jobs, 1 + earlier.map(|job| job.workers).sum::<u32>(), self.shared_logs)?;
        let iologs = Iologs::start(jobs, observer)?;
        // Jobs of a phase all say the same; the plan made sure.
        let settled = match jobs.first().and_then(|job| job.steady_state) {
            Some(plan) => {
                let settled = self.settle(jobs, &opened, plan, observer);
                observer.settled(&settled.0);
                Some(settled)
            }
            None => None,
        };
        let (steady_state, settled) = settled.unzip();
        let witnesses = Witnesses {
            watch: watch.as_mut(),
            syscalls: jobs.iter().any(|job| job.trace_syscalls).then(SyscallWatch::new),
            has_strace: jobs.iter().any(|job| job.strace),
            logs: logs.as_ref(),
            iologs: iologs.as_ref(),
            so_far: Some((record, &name)),
        };
        let (reports, counted) = match settled {
            None | Some(Outcome::Complete) => self.measure(jobs, &opened, witnesses, observer),
            // What cannot be repeated cannot be measured.
            Some(_) => (jobs.iter().map(|_| Vec::new()).collect(), self.nothing_counted()),
        };
        for (job, (files, _)) in jobs.iter().zip(&opened).filter(|(job, _)| job.handling.remakes_each_pass) {
            self.prepared.remade(job, files);
        }
        let log_fault = logs.and_then(|logs| logs.finish().err());
        let log_fault = iologs.and_then(|iologs| iologs.finish().err()).or(log_fault);
        let mut phase = PhaseRecord {
            name: name.clone(),
            begin_ns: counted.begin_ns,
            elapsed_ns: counted.elapsed.as_nanos() as u64,
            cpu: counted.cpu,
            worker_cpu: CpuTime::default(),
            steady_state,
            jobs: Vec::new(),
            devices: Vec::new(),
            residency: Vec::new(),
            trace: None,
            syscalls: counted.syscalls,
            verdict: trueio_model::Verdict::Supported,
            level: trueio_model::EvidenceLevel::E0,
            checks: Vec::new(),
            outcome: settled.unwrap_or(Outcome::Complete),
        };
        let mut samples = Vec::new();
        for ((job, mut reports), (_, notes)) in jobs.iter().zip(reports).zip(opened) {
            samples.push(reports.iter_mut().map(|report| std::mem::take(&mut report.samples)).collect());
            let (mut job_record, cpu, fatal, was_stopped) = merge(job, reports, notes);
            self.explain(jobs, &mut job_record);
            phase.worker_cpu.user_ns += cpu.user_ns;
            phase.worker_cpu.system_ns += cpu.system_ns;
            if was_stopped && self.stop.load(Relaxed) && phase.outcome == Outcome::Complete {
                phase.outcome = stopped();
            }
            if let Some(reason) = fatal.or_else(|| io_failure(job, &job_record)) {
                phase.outcome = Outcome::Failed { reason: format!("job `{}`: {reason}", job.name) };
            }
            phase.jobs.push(job_record);
        }
        if let (Some(error), Outcome::Complete) = (log_fault, &phase.outcome) {
            phase.outcome = Outcome::Failed { reason: error_line(&error) };
        }
        if let Some(reason) = counted.fault {
            phase.outcome = Outcome::Failed { reason };
        }
        let mut observation = counted.observation.unwrap_or_default();
        for (path, _, _) in &mut observation.residency {
            *path = self.name_of(jobs, path);
        }
        for map in &mut observation.maps {
            map.path = self.name_of(jobs, &map.path);
        }
        for sample in &mut observation.samples {
            sample.path = self.name_of(jobs, &sample.path);
        }
        let traced = observation.traced.take().map(|mut traced| {
            traced.places.iter_mut().for_each(|place| place.path = self.name_of(jobs, &place.path));
            traced
        });
        let facts = PhaseFacts {
            targets: self.targets,
            jobs,
            records: &phase.jobs,
            observation: &observation,
            trace: None,
            elapsed_ns: phase.elapsed_ns,
            cpu: phase.cpu,
            worker_cpu: phase.worker_cpu,
            ruler: Some(&record.ruler),
            environment: Some(&record.environment),
            steady_state: phase.steady_state.as_ref(),
            accepted_checks: &record.plan.accepted_checks,
        };
        let trace = traced.map(|traced| traced.assess(&facts, &samples));
        let (verdict, level, checks) = judge(&PhaseFacts { trace: trace.as_ref(), ..facts });
        phase.trace = trace;
        phase.verdict = verdict;
        phase.level = level;
        phase.checks = checks;
        phase.devices = observation.devices;
        phase.residency = observation.residency;
        Ok(phase)
    }

    /// Reads a file's region through the page cache, so that it is there.
    fn read_into_cache(&self, plan: &FilePlan) -> Result<(), FileError> {
        use std::os::unix::fs::FileExt;
        if plan.prepare == Prepare::Nothing {
            return Ok(());
        }
        let failed = |source| FileError::PreRead { path: plan.path.clone(), source };
        let file = std::fs::File::open(self.prepared.door(&plan.path)).map_err(failed)?;
        let mut buffer = vec![0; 1 << 20];
        let end = plan.offset_bytes + plan.size_bytes;
        let mut at = plan.offset_bytes;
        while at < end && !self.stop.load(Relaxed) {
            let wanted = buffer.len().min((end - at) as usize);
            match file.read_at(&mut buffer[..wanted], at) {
                Ok(0) => break,
                Ok(read) => at += read as u64,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// For a phase that was not measured.
    fn nothing_counted(&self) -> Counted {
        let begin_ns = self.began.elapsed().as_nanos() as u64;
        Counted {
            begin_ns,
            elapsed: Duration::ZERO,
            cpu: CpuTime::default(),
            observation: None,
            syscalls: None,
            fault: None,
        }
    }

    /// The phase's files with the paths through which they can be opened.
    fn doors(&self, jobs: &[JobPlan]) -> Vec<FilePlan> {
        // A file that is made again while the job runs is not the one that could be watched.
        let kept = jobs.iter().filter(|job| !job.handling.remakes_each_pass);
        let files = kept.flat_map(|job| &job.files).filter(|file| file.prepare != Prepare::Nothing);
        files
            .map(|file| FilePlan {
                path: self.prepared.door(&file.path).to_string_lossy().into_owned(),
                ..file.clone()
            })
            .collect()
    }

    /// Explains a job's failed I/Os and names their files as the plan does: the user knows an anonymous file by that
    /// name.
    pub(crate) fn explain(&self, jobs: &[JobPlan], job: &mut JobRecord) {
        for failure in &mut job.failures {
            let path = self.name_of(jobs, &failure.path);
            failure.explanation = explain_failure(failure, target_of(self.targets, &path));
            failure.path = path;
        }
    }

    /// The plan's name of a file that was opened through `door`.
    fn name_of(&self, jobs: &[JobPlan], door: &str) -> String {
        if door.is_empty() {
            // An engine without files: only the simulated one fails I/Os.
            return "the simulated disk".to_owned();
        }
        let mut files = jobs.iter().flat_map(|job| &job.files);
        let named = files.find(|file| self.prepared.door(&file.path).to_string_lossy() == door);
        named.map_or_else(|| door.to_owned(), |file| file.path.clone())
    }

    /// Runs the workers; counts just before the measured part and just after it.
    #[expect(clippy::too_many_lines, reason = "until it is split")]
    pub(crate) fn measure(
        &self,
        jobs: &[JobPlan],
        opened: &[(Vec<TargetFile>, Vec<String>)],
        witnesses: Witnesses<'_>,
        observer: &mut dyn Observer,
    ) -> (Vec<Vec<WorkerReport>>, Counted) {
        let Witnesses { mut watch, mut syscalls, has_strace, logs, iologs, so_far } = witnesses;
        let start = Start::holding_end();
        // A job that ends others must not be taken for a signal.
        let over = AtomicBool::new(false);
        let has_end = jobs.iter().any(|job| job.scheduling.ends_others || job.scheduling.ends_others_on_error);
        let stop = if has_end { &over } else { self.stop };
        let sample_window = watch.as_ref().and_then(|watch| watch.sample_window());
        let workers: u32 = jobs.iter().map(|job| job.workers).sum();
        let progress: Vec<Progress> = (0..workers).map(|_| Progress::default()).collect();
        // Only where somebody wants results meanwhile.
        let status = observer.status_every().zip(so_far);
        let snapshots: Vec<Snapshot> =
            (0..if status.is_some() { workers } else { 0 }).map(|_| Snapshot::default()).collect();
        // The workers' threads by their numbers, 0 for one that could not be made.
        let numbers: Vec<AtomicI32> = (0..workers).map(|_| AtomicI32::new(0)).collect();
        let judges = Judges::of(jobs);
        let zones: Vec<_> = jobs.iter().map(|job| self.prepared.zones(job)).collect();
        let gates: Vec<Gate> = jobs.iter().map(|job| Gate::new(job.workers)).collect();
        let position = |name: &String| jobs.iter().position(|job| job.name == *name);
        let waits_for: Vec<Vec<&Gate>> = jobs
            .iter()
            .map(|job| job.control.waits_for.iter().filter_map(|name| Some(&gates[position(name)?])).collect())
            .collect();
        let ends_with: Vec<Vec<&Gate>> = (0..jobs.len()).map(|of| io_beside(jobs, of, &gates)).collect();
        let mut flows: Vec<(u64, Flow)> = Vec::new();
        for id in jobs.iter().filter_map(|job| Some(job.control.flow?.id)) {
            if !flows.iter().any(|(known, _)| *known == id) {
                flows.push((id, Flow::default()));
            }
        }
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            let mut next = 0;
            let all_gates = gates.iter().zip(&waits_for).zip(&ends_with).zip(&zones);
            for ((job, (files, _)), (((gate, waits_for), ends_with), zones)) in jobs.iter().zip(opened).zip(all_gates) {
                let mut of_job = Vec::new();
                for worker in 0..job.workers {
                    let context = WorkerContext {
                        plan: job,
                        worker,
                        files,
                        stop,
                        start: &start,
                        progress: &progress[next],
                        clock: self.clock,
                        // Page faults of a mapping are not I/Os that could be looked for.
                        sample_window: sample_window.as_deref().filter(|_| {
                            job.engine.touches_files()
                                && job.engine != EngineKind::Mmap
                                && job.command.is_none()
                                && !job.handling.remakes_each_pass
                        }),
                        log: logs.filter(|_| !job.output.logs.is_empty()).map(|logs| logs.door(next as u32)),
                        iolog: iologs
                            .filter(|_| job.output.logs.iolog.is_some() || job.output.shows_any())
                            .map(|iologs| iologs.door(next as u32)),
                        snapshot: snapshots.get(next),
                        judge: judges.get(next).map(|judge| judge as &dyn SpanJudge),
                        zones,
                        waits_for,
                        ends_with,
                        gate: Some(gate),
                        host: HOST,
                        passed: Cell::default(),
                        flow: job
                            .control
                            .flow
                            .and_then(|plan| flows.iter().find(|(id, _)| *id == plan.id).map(|(_, flow)| flow)),
                    };
                    let number = &numbers[next];
                    let judge = judges.get(next);
                    next += 1;
                    let body = move || {
                        number.store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
                        let result = catch_unwind(AssertUnwindSafe(|| run_worker(&context)));
                        if result.is_err() {
                            context.abandon();
                        }
                        result.ok()
                    };
                    let builder =
                        std::thread::Builder::new().name(format!("{}-{worker}", job.name)).stack_size(STACK_BYTES);
                    let thread = builder.spawn_scoped(scope, body);
                    if thread.is_err() {
                        if let Some(judge) = judge {
                            judge.leaves(0);
                        }
                        gate.leave();
                        start.abandon(true);
                    }
                    of_job.push(thread);
                }
                threads.push(of_job);
            }
            start.wait_for(workers);
            if let Some(logs) = logs {
                logs.begin();
            }
            let delay = |job: &JobPlan| job.limits.ramp_ns + job.limits.start_delay_ns;
            let head = Duration::from_nanos(jobs.iter().map(delay).min().unwrap_or(0));
            if head > Duration::ZERO {
                start.open();
                // A finished or stopped phase ends the wait early.
                let end = Instant::now() + head;
                let left = || end.saturating_duration_since(Instant::now());
                let ending = Ending { start: &start, over: &over, stop: self.stop };
                while !ending.wait(workers, left().min(TICK)) && left() > Duration::ZERO {}
            }
            let mut fault = None;
            let strace = if has_strace {
                let attached = Strace::attach(&numbers_of(&numbers));
                attached.map_err(|reason| fault = Some(format!("strace could not follow this process: {reason}"))).ok()
            } else {
                None
            };
            if let Some(watch) = &mut watch {
                watch.before();
            }
            if let Some(syscalls) = &mut syscalls {
                // Asked for by job: of the others nothing is recorded.
                let mut rest = &numbers[..];
                let of_job = jobs.iter().filter_map(|job| {
                    let (own, after) = rest.split_at(job.workers as usize);
                    rest = after;
                    let is_alone = jobs.iter().filter(|other| other.engine == job.engine).count() == 1;
                    let own = numbers_of(own);
                    let helpers = if is_alone { helpers_of(job.engine, &own, &numbers) } else { Vec::new() };
                    job.trace_syscalls.then(|| (job.name.clone(), [own, helpers].concat()))
                });
                syscalls.begin(&of_job.collect::<Vec<_>>());
            }
            observer.measuring();
            let begin_ns = self.began.elapsed().as_nanos() as u64;
            let mark = self.clock.mark();
            let begin = Instant::now();
            let cpu_before = process_cpu();
            start.open();
            let status =
                status.map(|(every, (record, name))| Status { every, record, name, begin_ns, snapshots: &snapshots });
            let ending = Ending { start: &start, over: &over, stop: self.stop };
            let since = begin - self.began;
            let meter = observer.bandwidth_every().map(|every| Meter::new(jobs, &progress, every, begin, since));
            self.follow(jobs, &ending, &progress, begin, status.as_ref(), meter, observer);
            let cpu_after = process_cpu();
            let elapsed = begin.elapsed();
            observer.measured();
            let mut observation = watch.as_mut().map(|watch| watch.after());
            if let Some(observation) = &mut observation {
                let marks = mark.zip(self.clock.mark());
                observation.clock_drift = marks.and_then(|(from, to)| self.clock.drift(from, to));
            }
            let syscalls = syscalls.map(|syscalls| syscalls.end(elapsed));
            if let Some(strace) = strace {
                strace.detach();
            }
            start.release();
            let mut reports: Vec<Vec<WorkerReport>> =
                threads.into_iter().map(|of_job| of_job.into_iter().map(collect_report).collect()).collect();
            for (worker, report) in reports.iter_mut().flatten().enumerate() {
                report.criterion = judges.get(worker).map(Judge::record);
            }
            let cpu = CpuTime {
                user_ns: cpu_after.user_ns - cpu_before.user_ns,
                system_ns: cpu_after.system_ns - cpu_before.system_ns,
            };
            (reports, Counted { begin_ns, elapsed, cpu, observation, syscalls, fault })
        })
    }

    /// Waits for the last measured I/O and tells how it goes.
    #[expect(clippy::too_many_arguments, reason = "one caller, which has them all")]
    fn follow(
        &self,
        jobs: &[JobPlan],
        ending: &Ending<'_>,
        progress: &[Progress],
        begin: Instant,
        status: Option<&Status<'_>>,
        mut meter: Option<Meter<'_>>,
        observer: &mut dyn Observer,
    ) {
        let workers = jobs.iter().map(|job| job.workers).sum();
        let mut status_due = status.map(|status| begin + status.every);
        let runtime = jobs.iter().filter_map(|job| job.limits.runtime_ns).max();
        let all_bytes: u64 = jobs
            .iter()
            .map(|job| job.limits.io_bytes.saturating_mul(job.limits.loops).saturating_mul(u64::from(job.workers)))
            .fold(0, u64::saturating_add);
        let mut last = (begin, 0, 0);
        let mut tick_due = Instant::now() + TICK;
        loop {
            let due = meter.as_ref().map_or(tick_due, |meter| tick_due.min(meter.due()));
            let is_over = ending.wait(workers, due.saturating_duration_since(Instant::now()));
            let now = Instant::now();
            if let Some(meter) = &mut meter {
                let span = if is_over { meter.rest(now) } else { meter.look(now) };
                span.inspect(|span| observer.bandwidth(span));
            }
            if is_over {
                return;
            }
            if now < tick_due {
                continue;
            }
            tick_due = now + TICK;
            let sum = |of: fn(&Progress) -> u64| progress.iter().map(of).sum::<u64>();
            let most = |of: fn(&Progress) -> u64| progress.iter().map(of).max().unwrap_or(0);
            let ios = sum(|p| p.io_count.load(Relaxed));
            let bytes = sum(Progress::byte_count);
            let seconds = (now - last.0).as_secs_f64().max(1e-9);
            let elapsed_ns = (now - begin).as_nanos() as u64;
            let by_time = runtime.map(|ns| elapsed_ns as f64 / ns as f64);
            let is_time_based = jobs.iter().all(|job| job.limits.is_time_based || job.tolerance.ends_when_full);
            let by_bytes = (!is_time_based).then(|| bytes as f64 / all_bytes.max(1) as f64);
            let fraction = by_time.unwrap_or(0.0).max(by_bytes.unwrap_or(0.0)).min(1.0);
            let left_ns = (fraction > 0.0).then(|| (elapsed_ns as f64 * (1.0 - fraction) / fraction) as u64);
            observer.progress(&Tick {
                fraction,
                bytes_per_s: bytes.saturating_sub(last.2) as f64 / seconds,
                ios_per_s: ios.saturating_sub(last.1) as f64 / seconds,
                latency_ns_p50: most(|p| p.latency_ns_p50.load(Relaxed)),
                latency_ns_p99: most(|p| p.latency_ns_p99.load(Relaxed)),
                left_ns,
            });
            last = (now, ios, bytes);
            if let (Some(status), Some(due)) = (status, &mut status_due)
                && now >= *due
            {
                observer.status(&status.so_far(jobs, elapsed_ns));
                while *due <= now {
                    *due += status.every.max(TICK);
                }
            }
        }
    }
}

/// The gates of the jobs with whose I/O the job number `of` ends: not of those that wait for it.
fn io_beside<'g>(jobs: &[JobPlan], of: usize, gates: &'g [Gate]) -> Vec<&'g Gate> {
    if !jobs[of].cpu_load.is_some_and(|load| load.ends_with_io) {
        return Vec::new();
    }
    let mut waiting = vec![jobs[of].name.as_str()];
    // As often as there may be one that waits for one that waits.
    for _ in jobs {
        for job in jobs {
            let waits = job.control.waits_for.iter().any(|name| waiting.contains(&name.as_str()));
            if waits && !waiting.contains(&job.name.as_str()) {
                waiting.push(&job.name);
            }
        }
    }
    let beside = |(job, gate): (&JobPlan, &'g Gate)| {
        (job.engine.does_io() && !waiting.contains(&job.name.as_str())).then_some(gate)
    };
    jobs.iter().zip(gates).filter_map(beside).collect()
}

/// Threads that an engine has beside its workers `own`: they are called after it, or still after the worker that made
/// them if they have not run yet. `all` are the workers of the phase. Whose they are cannot be told where several jobs
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

/// The threads that there are.
fn numbers_of(numbers: &[AtomicI32]) -> Vec<i32> {
    numbers.iter().map(|number| number.load(Relaxed)).filter(|number| *number > 0).collect()
}

/// What is needed to tell the results so far.
struct Status<'a> {
    every: Duration,
    record: &'a RunRecord,
    name: &'a str,
    begin_ns: u64,
    snapshots: &'a [Snapshot],
}

impl Status<'_> {
    /// The run so far, with what the workers tell now. Workers answer at the end of their rows, ten times a
    /// second; one that waits longer for an I/O is there as it was before, and one that has ended as it was then.
    fn so_far(&self, jobs: &[JobPlan], elapsed_ns: u64) -> RunRecord {
        self.snapshots.iter().for_each(Snapshot::ask);
        let until = Instant::now() + TICK;
        let mut reports = self.snapshots.iter().map(|snapshot| {
            let answer = snapshot.wait(until.saturating_duration_since(Instant::now()));
            answer.unwrap_or_else(|| WorkerReport::failed(String::new()))
        });
        let mut phase = PhaseRecord {
            name: self.name.to_owned(),
            begin_ns: self.begin_ns,
            elapsed_ns,
            cpu: CpuTime::default(),
            worker_cpu: CpuTime::default(),
            steady_state: None,
            jobs: Vec::new(),
            devices: Vec::new(),
            residency: Vec::new(),
            trace: None,
            syscalls: None,
            verdict: trueio_model::Verdict::Suspect,
            level: trueio_model::EvidenceLevel::E0,
            checks: Vec::new(),
            outcome: Outcome::Complete,
        };
        for job in jobs {
            let of_job = reports.by_ref().take(job.workers as usize).collect();
            phase.jobs.push(merge(job, of_job, Vec::new()).0);
        }
        let mut record = self.record.clone();
        record.phases.push(phase);
        record
    }
}

/// A worker's report, or one that says why there is none.
fn collect_report(thread: std::io::Result<std::thread::ScopedJoinHandle<'_, Option<WorkerReport>>>) -> WorkerReport {
    match thread {
        Ok(thread) => match thread.join() {
            Ok(Some(report)) => report,
            Ok(None) | Err(_) => WorkerReport::failed("the worker panicked; this is a bug of trueio".to_owned()),
        },
        Err(error) => WorkerReport::failed(format!("starting a thread failed: {error}")),
    }
}

/// The sentence about a job's first failed I/O or block that differed; any is an error of the run, but for those that
/// the job was told to ignore.
pub(crate) fn io_failure(job: &JobPlan, record: &JobRecord) -> Option<String> {
    if let Some(failure) = job.unexpected(&record.failures).next() {
        return Some(format!("a {}", describe_failure(failure, &failure.explanation)));
    }
    (record.verify_failure_count > 0).then(|| {
        let first = record.verify_failures.first();
        let detail = first.map_or_else(String::new, |f| {
            format!("; the first: offset {} of `{}`: expected {}, found {}", f.offset, f.path, f.expected, f.found)
        });
        format!(
            "{} of {} blocks did not read back as written{detail}",
            record.verify_failure_count, record.verified_block_count
        )
    })
}

/// Drops the cached pages of a job's files, so that it begins without them. Dirty pages stay: they
/// are flushed first where the file is ours to flush (a failure only leaves pages where they were,
/// and the page-cache check sees that).
fn drop_cached_pages(job: &JobPlan, files: &[TargetFile]) {
    for (file, plan) in files.iter().zip(&job.files) {
        let _ = file.file.sync_data();
        let _ = trueio_direct::evict(&file.file, plan.offset_bytes, plan.size_bytes);
    }
}
