//! One phase: jobs that run at the same time, and the evidence about them.

use crate::file_error::{FileError, acting};
use crate::files::OpenedFiles;
use crate::logs::{self, LogError};
use crate::measure::{Counted, OpenJob, Witnesses};
use crate::merge::{Merged, merge};
use crate::setting::Setting;
use crate::{Event, Observer, stopped};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use trueio_engine::{TargetFile, WorkerReport};
use trueio_evidence::{
    Observation, PhaseFacts, SyscallWatch, Watch, describe_failure, explain_failure, judge, target_of,
};
use trueio_model::{
    CpuTime, DelayStart, DirectPolicy, FilePlan, JobPlan, JobRecord, OpKind, OpMix, Outcome, PhaseRecord, Prepare,
    RunRecord, SampledIo, SteadyState, error_line,
};

/// The position of a phase in its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// From 0.
    pub(crate) index: usize,
    pub(crate) count: usize,
}

/// Returns the time since the first phase began, in nanoseconds, if there was one. `elapsed` is the time since the run
/// began.
fn since_first_phase(record: &RunRecord, elapsed: Duration) -> Option<u64> {
    let first = record.phases.first()?;
    // A phase's measured part begins when the shortest delay and ramp of its jobs are over.
    let of_first = record.plan.jobs.iter().take_while(|job| job.phase == record.plan.jobs[0].phase);
    let head_ns = of_first.map(|job| job.limits.start_delay_ns + job.limits.ramp_ns).min().unwrap_or(0);
    Some((elapsed.as_nanos() as u64).saturating_sub(first.begin_ns.saturating_sub(head_ns)))
}

/// Returns the jobs of a later phase without the part of their delays that has passed since the first phase began, for
/// jobs that count it from there; `None`: no job does.
fn without_passed_delays(plans: &[JobPlan], passed_ns: u64) -> Option<Vec<JobPlan>> {
    let counts = |job: &JobPlan| job.limits.start_delay_ns > 0 && job.limits.delays_from == DelayStart::Run;
    if !plans.iter().any(counts) {
        return None;
    }
    let mut plans = plans.to_vec();
    for job in plans.iter_mut().filter(|job| counts(job)) {
        job.limits.start_delay_ns = job.limits.start_delay_ns.saturating_sub(passed_ns);
    }
    Some(plans)
}

/// The samples of each worker of each job.
type Samples = Vec<Vec<Vec<SampledIo>>>;

impl Setting<'_> {
    /// Runs a phase's jobs and judges them.
    pub(crate) fn run(
        &self,
        plans: &[JobPlan],
        position: Position,
        record: &RunRecord,
        observer: &mut dyn Observer,
    ) -> Result<PhaseRecord, FileError> {
        let name = plans.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join("+");
        observer.notify(Event::PhaseBegins { index: position.index, count: position.count, name: &name });
        let delayed = since_first_phase(record, self.began.elapsed()).and_then(|ns| without_passed_delays(plans, ns));
        let plans = delayed.as_deref().unwrap_or(plans);
        let jobs = self.open(plans)?;
        let mut watch = self.has_evidence.then(|| self.watch(plans, record.plan.idle_baseline_ns));
        // Log files are numbered by worker over the whole run.
        let earlier = record.plan.jobs.iter().take_while(|job| job.phase != plans[0].phase);
        let first_worker = 1 + earlier.map(|job| job.workers).sum::<u32>();
        let logs = logs::begin_phase(self.reporting.logs.as_deref(), plans, first_worker)?;
        // The plan gives all jobs of a phase the same rule.
        let settled = plans.first().and_then(|job| job.steady_state).map(|rule| {
            let settled = self.settle(&jobs, rule, observer);
            observer.notify(Event::RoundsEnd { state: &settled.0 });
            settled
        });
        let (steady_state, settled) = settled.unzip();
        let witnesses = Witnesses {
            watch: watch.as_mut(),
            syscalls: plans.iter().any(|job| job.trace_syscalls).then(SyscallWatch::new),
            has_strace: plans.iter().any(|job| job.strace),
            logs: logs.as_deref(),
            first_worker,
            so_far: Some((record, &name)),
        };
        let (reports, counted) = match settled {
            None | Some(Outcome::Complete) => self.measure(&jobs, witnesses, observer),
            // A workload that cannot be repeated cannot be measured.
            Some(_) => (jobs.iter().map(|_| Vec::new()).collect(), self.nothing_counted()),
        };
        for job in jobs.iter().filter(|job| job.plan.handling.remakes_each_pass) {
            self.prepared.remade(job.plan, &job.files);
        }
        let log_fault = logs.and_then(|logs| logs.finish().err());
        let mut phase = new_phase(name, &counted, steady_state, settled.unwrap_or(Outcome::Complete));
        let samples = self.add_jobs(&mut phase, plans, jobs, reports);
        conclude(&mut phase, log_fault, counted.fault);
        self.judge(&mut phase, plans, counted.observation.unwrap_or_default(), &samples, record);
        phase.syscalls = counted.syscalls;
        Ok(phase)
    }

    /// Opens the files of all jobs and brings the page cache into the state that each job sets.
    fn open<'p>(&self, plans: &'p [JobPlan]) -> Result<Vec<OpenJob<'p>>, FileError> {
        let mut jobs = Vec::new();
        for plan in plans {
            let OpenedFiles { targets, notes, open_ns } = self.prepared.open(plan)?;
            jobs.push(OpenJob { plan, files: targets.into(), notes, open_ns });
        }
        for job in jobs.iter_mut().filter(|job| job.plan.invalidate) {
            job.notes.extend(drop_cached_pages(job.plan, &job.files));
        }
        for job in plans.iter().filter(|job| job.pre_read) {
            for file in &job.files {
                acting(job.user, || self.read_into_cache(file))?;
            }
        }
        Ok(jobs)
    }

    /// Starts to watch the disks of a phase and counts what they do while it is idle.
    fn watch(&self, plans: &[JobPlan], idle_baseline_ns: u64) -> Watch {
        let mut watch = Watch::new(self.system, self.targets, &self.openable(plans));
        let reads = |job: &JobPlan| !matches!(job.pattern.mix, OpMix::Only(OpKind::Write | OpKind::Trim));
        if plans.iter().any(|job| job.engine.touches_files() && reads(job)) {
            watch.sample_content();
        }
        let dirties =
            |job: &JobPlan| job.direct != DirectPolicy::Require && job.pattern.mix != OpMix::Only(OpKind::Read);
        if plans.iter().any(|job| job.engine.touches_files() && dirties(job)) {
            watch.expect_dirty_pages();
        }
        // A disk that is driven in user space is claimed: no other program can use it.
        let is_shared = |job: &JobPlan| job.engine.touches_files() && !job.engine.drives_usb_disks();
        let touches_disks = plans.iter().any(is_shared);
        watch.baseline(Duration::from_nanos(if touches_disks { idle_baseline_ns } else { 0 }));
        watch
    }

    /// Adds the record of each job to the phase and sets the phase's outcome. Returns the samples of each job's
    /// workers.
    fn add_jobs(
        &self,
        phase: &mut PhaseRecord,
        plans: &[JobPlan],
        jobs: Vec<OpenJob<'_>>,
        reports: Vec<Vec<WorkerReport>>,
    ) -> Samples {
        let mut samples = Vec::new();
        for (job, mut reports) in jobs.into_iter().zip(reports) {
            samples.push(reports.iter_mut().map(|report| std::mem::take(&mut report.samples)).collect());
            let Merged { mut record, cpu, fatal, was_stopped } =
                merge(job.plan, self.reporting.shown(reports), job.notes);
            self.explain(plans, &mut record);
            record.open_ns = job.open_ns;
            let began = Instant::now();
            drop(job.files);
            record.close_ns = job.open_ns.map(|_| began.elapsed().as_nanos() as u64);
            phase.worker_cpu.user_ns += cpu.user_ns;
            phase.worker_cpu.system_ns += cpu.system_ns;
            if was_stopped && self.stop.load(Relaxed) && phase.outcome == Outcome::Complete {
                phase.outcome = stopped();
            }
            if let Some(reason) = fatal.or_else(|| io_failure(job.plan, &record)) {
                phase.outcome = Outcome::Failed { reason: format!("job `{}`: {reason}", job.plan.name) };
            }
            phase.jobs.push(record);
        }
        samples
    }

    /// Judges a phase by the observation of it.
    fn judge(
        &self,
        phase: &mut PhaseRecord,
        plans: &[JobPlan],
        mut observation: Observation,
        samples: &Samples,
        record: &RunRecord,
    ) {
        for (path, _, _) in &mut observation.residency {
            *path = self.name_of(plans, path);
        }
        for map in observation.maps.iter_mut().chain(&mut observation.maps_after) {
            map.path = self.name_of(plans, &map.path);
        }
        for sample in &mut observation.samples {
            sample.path = self.name_of(plans, &sample.path);
        }
        let traced = observation.traced.take().map(|mut traced| {
            traced.files.iter_mut().for_each(|file| file.path = self.name_of(plans, &file.path));
            traced.runs_programs = plans.iter().any(|plan| plan.command.is_some());
            traced
        });
        let facts = PhaseFacts {
            targets: self.targets,
            jobs: plans,
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
        phase.disturbances = facts.disturbances(traced.as_ref());
        let trace = traced.map(|traced| facts.match_trace(&traced, samples));
        let (verdict, level, checks) = judge(&PhaseFacts { trace: trace.as_ref(), ..facts });
        (phase.verdict, phase.level, phase.checks, phase.trace) = (verdict, level, checks, trace);
        phase.devices = observation.devices;
        phase.residency = observation.residency;
    }

    /// Reads a file's region into the page cache.
    fn read_into_cache(&self, plan: &FilePlan) -> Result<(), FileError> {
        use std::os::unix::fs::FileExt;
        if plan.prepare == Prepare::Nothing {
            return Ok(());
        }
        let failed = |source| FileError::PreRead { path: plan.path.clone(), source };
        let file = std::fs::File::open(self.prepared.held_path(&plan.path)).map_err(failed)?;
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

    /// The phase's files with the paths through which they can be opened.
    fn openable(&self, jobs: &[JobPlan]) -> Vec<FilePlan> {
        // A file that the job creates again cannot be watched: the watch would read the first one.
        let kept = jobs.iter().filter(|job| !job.handling.remakes_each_pass && !job.engine.drives_usb_disks());
        let files = kept.flat_map(|job| &job.files).filter(|file| file.prepare != Prepare::Nothing);
        files
            .map(|file| FilePlan {
                path: self.prepared.evidence_path(&file.path).to_string_lossy().into_owned(),
                ..file.clone()
            })
            .collect()
    }

    /// Explains a job's failed I/Os and names their files as the plan does: messages to the user use that
    /// name.
    pub(crate) fn explain(&self, jobs: &[JobPlan], job: &mut JobRecord) {
        for failure in &mut job.failures {
            let path = self.name_of(jobs, &failure.path);
            failure.explanation = explain_failure(failure, target_of(self.targets, &path));
            failure.path = path;
        }
    }

    /// Returns the plan's name of a file that was opened at `path`.
    fn name_of(&self, jobs: &[JobPlan], path: &str) -> String {
        if path.is_empty() {
            // An engine that opens no files: of names, or the simulated one.
            let names = jobs.iter().find(|job| job.names.is_some()).and_then(|job| job.files.first());
            if let Some(directory) = names {
                return directory.path.clone();
            }
            return "the simulated disk".to_owned();
        }
        let mut files = jobs.iter().flat_map(|job| &job.files);
        let named = files.find(|file| self.prepared.evidence_path(&file.path).to_string_lossy() == path);
        named.map_or_else(|| path.to_owned(), |file| file.path.clone())
    }

    /// Returns the counts of a phase that was not measured: zeros.
    fn nothing_counted(&self) -> Counted {
        Counted::nothing(self.began.elapsed().as_nanos() as u64)
    }
}

/// Returns the record of a phase before its jobs are added.
pub(crate) fn new_phase(
    name: String,
    counted: &Counted,
    steady_state: Option<SteadyState>,
    outcome: Outcome,
) -> PhaseRecord {
    PhaseRecord {
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
        syscalls: None,
        disturbances: Vec::new(),
        verdict: trueio_model::Verdict::Unverified,
        level: trueio_model::EvidenceLevel::E0,
        checks: Vec::new(),
        outcome,
    }
}

/// Lets a fault outside the jobs fail their phase.
fn conclude(phase: &mut PhaseRecord, log_fault: Option<LogError>, fault: Option<String>) {
    // A signal that ends the run is no reason to leave out that a log was lost.
    if let (Some(error), Outcome::Complete | Outcome::Interrupted { .. }) = (log_fault, &phase.outcome) {
        phase.outcome = Outcome::Failed { reason: error_line(&error) };
    }
    if let Some(reason) = fault {
        phase.outcome = Outcome::Failed { reason };
    }
}

/// The sentence about a job's first failed I/O or block that differed; any is an error of the run, but for those that
/// the job ignores.
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

/// Flushes a job's files and drops their cached pages, so that the job starts without them. Returns a note about the first file
/// that had dirty pages: the flush takes its time before the job. If the flush fails, dirty pages stay in the cache, and the page-cache
/// check reports them.
fn drop_cached_pages(job: &JobPlan, files: &[TargetFile]) -> Option<String> {
    let mut note = None;
    for (file, plan) in files.iter().zip(&job.files).filter(|(file, _)| file.disk.is_none()) {
        let found = trueio_direct::residency(&file.file, plan.offset_bytes, plan.size_bytes);
        let dirty = found.map_or(0, |found| found.dirty_pages.unwrap_or(0).saturating_mul(found.page_size_bytes));
        if file.file.sync_data().is_ok() && dirty > 0 {
            note.get_or_insert_with(|| {
                format!(
                    "`{}`: {} of dirty pages were written to the disk before the job, so that all cached pages could be dropped; \
                     fio drops the clean ones only",
                    plan.path,
                    trueio_model::units::format_bytes(dirty)
                )
            });
        }
        let _ = trueio_direct::evict(&file.file, plan.offset_bytes, plan.size_bytes);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::EngineKind;

    #[test]
    fn a_delay_from_the_start_of_the_run_is_shorter_in_later_phases() {
        let job = |start_delay_ns, delays_from| {
            let mut job = JobPlan::plain(EngineKind::Null, 1 << 20);
            (job.limits.start_delay_ns, job.limits.delays_from) = (start_delay_ns, delays_from);
            job
        };
        let plans = [job(900, DelayStart::Run), job(1_500, DelayStart::Run), job(900, DelayStart::Phase)];
        let delays = |passed_ns| {
            let jobs = without_passed_delays(&plans, passed_ns).expect("two of them count from there");
            jobs.iter().map(|job| job.limits.start_delay_ns).collect::<Vec<_>>()
        };
        assert_eq!(delays(0), [900, 1_500, 900]);
        assert_eq!(delays(1_000), [0, 500, 900]);
        assert!(without_passed_delays(&plans[2..], 1_000).is_none());
    }
}
