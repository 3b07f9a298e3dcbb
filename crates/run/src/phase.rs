//! One phase: jobs that run at the same time, and the evidence about them.

use crate::files::{FileError, Prepared};
use crate::merge::merge;
use crate::{Observer, Tick, process_cpu, stopped};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_device::System;
use trueio_engine::{AnyClock, Progress, Start, TargetFile, WorkerContext, WorkerReport, run_worker};
use trueio_evidence::{Observation, PhaseFacts, Watch, judge};
use trueio_model::{
    CpuTime, EngineKind, FilePlan, JobPlan, OpKind, OpMix, Outcome, PhaseRecord, Prepare, RunRecord, TargetFacts,
};

/// How often progress is told.
const TICK: Duration = Duration::from_millis(200);
/// A worker's stack; it calls little and keeps its buffers elsewhere.
const STACK_BYTES: usize = 256 << 10;

/// What all phases of a run share.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) system: &'a System,
    pub(crate) prepared: &'a Prepared,
    pub(crate) clock: AnyClock,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) began: Instant,
    pub(crate) has_evidence: bool,
}

/// What was counted around the measured part.
pub(crate) struct Counted {
    begin_ns: u64,
    elapsed: Duration,
    cpu: CpuTime,
    observation: Option<Observation>,
}

impl Setting<'_> {
    /// Runs a phase's jobs and judges them.
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
        let (reports, counted) = match settled {
            None | Some(Outcome::Complete) => self.measure(jobs, &opened, watch.as_mut(), observer),
            // What cannot be repeated cannot be measured.
            Some(_) => (jobs.iter().map(|_| Vec::new()).collect(), self.nothing_counted()),
        };
        let mut phase = PhaseRecord {
            name,
            begin_ns: counted.begin_ns,
            elapsed_ns: counted.elapsed.as_nanos() as u64,
            cpu: counted.cpu,
            worker_cpu: CpuTime::default(),
            steady_state,
            jobs: Vec::new(),
            devices: Vec::new(),
            residency: Vec::new(),
            trace: None,
            verdict: trueio_model::Verdict::Supported,
            level: trueio_model::EvidenceLevel::E0,
            checks: Vec::new(),
            outcome: settled.unwrap_or(Outcome::Complete),
        };
        let mut samples = Vec::new();
        for ((job, mut reports), (_, notes)) in jobs.iter().zip(reports).zip(opened) {
            samples.push(reports.iter_mut().map(|report| std::mem::take(&mut report.samples)).collect());
            let (mut job_record, cpu, fatal, was_stopped) = merge(job, reports, notes);
            // Our own anonymous files are known to the user by the name in the plan.
            job_record.failures.iter_mut().for_each(|f| f.path = self.name_of(jobs, &f.path));
            phase.worker_cpu.user_ns += cpu.user_ns;
            phase.worker_cpu.system_ns += cpu.system_ns;
            if was_stopped && phase.outcome == Outcome::Complete {
                phase.outcome = stopped();
            }
            if let Some(reason) = fatal.or_else(|| io_failure(&job_record)) {
                phase.outcome = Outcome::Failed { reason: format!("job `{}`: {reason}", job.name) };
            }
            phase.jobs.push(job_record);
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
        let targets: Vec<TargetFacts> = record.targets.clone();
        let facts = PhaseFacts {
            targets: &targets,
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

    /// For a phase that was not measured.
    fn nothing_counted(&self) -> Counted {
        let begin_ns = self.began.elapsed().as_nanos() as u64;
        Counted { begin_ns, elapsed: Duration::ZERO, cpu: CpuTime::default(), observation: None }
    }

    /// The phase's files with the paths through which they can be opened.
    fn doors(&self, jobs: &[JobPlan]) -> Vec<FilePlan> {
        let files = jobs.iter().flat_map(|job| &job.files).filter(|file| file.prepare != Prepare::Nothing);
        files
            .map(|file| FilePlan {
                path: self.prepared.door(&file.path).to_string_lossy().into_owned(),
                ..file.clone()
            })
            .collect()
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
    pub(crate) fn measure(
        &self,
        jobs: &[JobPlan],
        opened: &[(Vec<TargetFile>, Vec<String>)],
        mut watch: Option<&mut Watch>,
        observer: &mut dyn Observer,
    ) -> (Vec<Vec<WorkerReport>>, Counted) {
        let start = Start::holding_end();
        let sample_window = watch.as_ref().and_then(|watch| watch.sample_window());
        let workers: u32 = jobs.iter().map(|job| job.workers).sum();
        let progress: Vec<Progress> = (0..workers).map(|_| Progress::default()).collect();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            let mut next = 0;
            for (job, (files, _)) in jobs.iter().zip(opened) {
                let mut of_job = Vec::new();
                for worker in 0..job.workers {
                    let context = WorkerContext {
                        plan: job,
                        worker,
                        files,
                        stop: self.stop,
                        start: &start,
                        progress: &progress[next],
                        clock: self.clock,
                        // Page faults of a mapping are not I/Os that could be looked for.
                        sample_window: sample_window
                            .as_deref()
                            .filter(|_| job.engine.touches_files() && job.engine != EngineKind::Mmap),
                    };
                    next += 1;
                    let start = &start;
                    let body = move || {
                        let result = catch_unwind(AssertUnwindSafe(|| run_worker(&context)));
                        if result.is_err() {
                            start.abandon();
                        }
                        result.ok()
                    };
                    let builder =
                        std::thread::Builder::new().name(format!("{}-{worker}", job.name)).stack_size(STACK_BYTES);
                    let thread = builder.spawn_scoped(scope, body);
                    if thread.is_err() {
                        start.abandon();
                    }
                    of_job.push(thread);
                }
                threads.push(of_job);
            }
            start.wait_for(workers);
            let delay = |job: &JobPlan| job.limits.ramp_ns + job.limits.start_delay_ns;
            let head = Duration::from_nanos(jobs.iter().map(delay).min().unwrap_or(0));
            if head > Duration::ZERO {
                start.open();
                // A finished or stopped phase ends the wait early.
                start.wait_finished(workers, head);
            }
            if let Some(watch) = &mut watch {
                watch.before();
            }
            let begin_ns = self.began.elapsed().as_nanos() as u64;
            let mark = self.clock.mark();
            let begin = Instant::now();
            let cpu_before = process_cpu();
            start.open();
            self.follow(jobs, workers, &start, &progress, begin, observer);
            let cpu_after = process_cpu();
            let elapsed = begin.elapsed();
            let mut observation = watch.as_mut().map(|watch| watch.after());
            if let Some(observation) = &mut observation {
                let marks = mark.zip(self.clock.mark());
                observation.clock_drift = marks.and_then(|(from, to)| self.clock.drift(from, to));
            }
            start.release();
            let reports = threads.into_iter().map(|of_job| of_job.into_iter().map(collect_report).collect()).collect();
            let cpu = CpuTime {
                user_ns: cpu_after.user_ns - cpu_before.user_ns,
                system_ns: cpu_after.system_ns - cpu_before.system_ns,
            };
            (reports, Counted { begin_ns, elapsed, cpu, observation })
        })
    }

    /// Waits for the last measured I/O and tells how it goes.
    fn follow(
        &self,
        jobs: &[JobPlan],
        workers: u32,
        start: &Start,
        progress: &[Progress],
        begin: Instant,
        observer: &mut dyn Observer,
    ) {
        let runtime = jobs.iter().filter_map(|job| job.limits.runtime_ns).max();
        let all_bytes: u64 = jobs
            .iter()
            .map(|job| job.limits.io_bytes.saturating_mul(job.limits.loops).saturating_mul(u64::from(job.workers)))
            .fold(0, u64::saturating_add);
        let mut last = (begin, 0, 0);
        while !start.wait_finished(workers, TICK) {
            let sum = |of: fn(&Progress) -> u64| progress.iter().map(of).sum::<u64>();
            let most = |of: fn(&Progress) -> u64| progress.iter().map(of).max().unwrap_or(0);
            let now = Instant::now();
            let ios = sum(|p| p.io_count.load(Relaxed));
            let bytes = sum(|p| p.byte_count.load(Relaxed));
            let seconds = (now - last.0).as_secs_f64().max(1e-9);
            let elapsed_ns = (now - begin).as_nanos() as u64;
            let by_time = runtime.map(|ns| elapsed_ns as f64 / ns as f64);
            let is_time_based = jobs.iter().all(|job| job.limits.is_time_based);
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
        }
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

/// The sentence about a job's first failed I/O or block that differed; any is an error of the run.
pub(crate) fn io_failure(record: &trueio_model::JobRecord) -> Option<String> {
    if let Some(failure) = record.failures.first() {
        let times = if failure.count > 1 { format!(" ({} times)", failure.count) } else { String::new() };
        return Some(format!(
            "a {} of {} bytes at offset {} of `{}` failed{times}: {}",
            failure.op, failure.length, failure.offset, failure.path, failure.explanation
        ));
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
