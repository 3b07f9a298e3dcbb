//! Follows the measured part of a phase: progress, results so far, bandwidth.

use crate::bandwidth::Meter;
use crate::merge::merge;
use crate::neighbours::Lookout;
use crate::stops::{BEAT, Heartbeat};
use crate::{Event, Observer, Reporting, Tick};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_engine::{Progress, Snapshot, Start, WorkerReport};
use trueio_evidence::{Course, Stop, Timeline, Watch};
use trueio_model::{CpuTime, EvidenceLevel, JobPlan, Outcome, PhaseRecord, RunRecord, Verdict};

/// Interval of progress events.
pub(crate) const TICK: Duration = Duration::from_millis(200);

/// How a phase comes to its end.
pub(crate) struct Ending<'a> {
    pub(crate) start: &'a Start,
    /// The flag of a phase in which a job ends the others.
    pub(crate) over: &'a AtomicBool,
    /// The run's flag.
    pub(crate) stop: &'a AtomicBool,
}

impl Ending<'_> {
    /// As [`Start::wait_finished`]; a request to stop the run reaches a phase with a flag of its own, too.
    pub(crate) fn wait(&self, workers: u32, limit: Duration) -> bool {
        self.over.fetch_or(self.stop.load(Relaxed), Relaxed);
        self.start.wait_finished(workers, limit)
    }
}

/// The figures at the last tick.
#[derive(Debug)]
struct Last {
    at: Instant,
    ios: u64,
    bytes: u64,
}

/// The workers of a phase while they are measured.
pub(crate) struct Follower<'a> {
    pub(crate) plans: &'a [&'a JobPlan],
    pub(crate) ending: Ending<'a>,
    pub(crate) progress: &'a [Progress],
    /// When the measured part began.
    pub(crate) begin: Instant,
    /// Begun before the workers were let go.
    pub(crate) heartbeat: Heartbeat,
    pub(crate) status: Option<Status<'a>>,
    pub(crate) meter: Option<Meter<'a>>,
    pub(crate) lookout: Option<Lookout<'a>>,
    pub(crate) timeline: Option<Timeline>,
}

/// What the thread that followed a phase saw.
pub(crate) struct Followed {
    /// Spans in which this thread could not run.
    pub(crate) stops: Vec<Stop>,
    /// What disturbed or limited the phase, and when.
    pub(crate) course: Course,
}

impl Follower<'_> {
    /// Waits for the last measured I/O and reports progress meanwhile.
    pub(crate) fn follow(mut self, observer: &mut dyn Observer) -> Followed {
        let workers = self.plans.iter().map(|job| job.workers).sum();
        let mut status_due = self.status.as_ref().and_then(|status| Some(self.begin + status.reporting.interim_every?));
        let mut last = Last { at: self.begin, ios: 0, bytes: 0 };
        let mut looked_bytes = 0;
        // Until here nothing was waited for.
        self.heartbeat.slept(Duration::ZERO);
        let mut tick_due = Instant::now() + TICK;
        loop {
            let due = self.meter.as_ref().map_or(tick_due, |meter| tick_due.min(meter.due()));
            let from = Instant::now();
            let limit = due.saturating_duration_since(from).min(BEAT);
            let is_over = self.ending.wait(workers, limit);
            let now = Instant::now();
            self.heartbeat.slept(limit);
            if let Some(meter) = &mut self.meter {
                let span = if is_over { meter.rest(now) } else { meter.look(now) };
                span.inspect(|span| observer.notify(Event::Bandwidth(span)));
            }
            if is_over || now >= tick_due {
                self.timeline.iter_mut().for_each(|timeline| timeline.look(|| self.begin.elapsed().as_nanos() as u64));
            }
            if is_over {
                // As in fio, an interval that ends with the run has its results, too.
                if let Some(status) = &self.status
                    && status.is_due(now, &mut status_due)
                {
                    let so_far = status.so_far(self.plans, (now - self.begin).as_nanos() as u64);
                    observer.notify(Event::Interim(&so_far));
                }
                let course = self.timeline.map_or_else(Course::default, Timeline::end);
                return Followed { stops: self.heartbeat.stops, course };
            }
            if now < tick_due {
                continue;
            }
            tick_due = now + TICK;
            observer.notify(Event::Progress(&self.tick(now, &mut last)));
            if let Some(lookout) = &mut self.lookout
                && let Some(watched) = lookout.watch(self.plans, last.bytes - looked_bytes)
            {
                looked_bytes = last.bytes;
                observer.notify(Event::Watched(&watched));
            }
            if self.lookout.is_some() {
                self.heartbeat.skip();
            }
            if let Some(status) = &self.status
                && status.is_due(now, &mut status_due)
            {
                let so_far = status.so_far(self.plans, (now - self.begin).as_nanos() as u64);
                observer.notify(Event::Interim(&so_far));
                self.heartbeat.skip();
            }
        }
    }

    /// Returns the figures since `last`, which becomes now.
    fn tick(&self, now: Instant, last: &mut Last) -> Tick {
        let sum = |of: fn(&Progress) -> u64| self.progress.iter().map(of).sum::<u64>();
        let most = |of: fn(&Progress) -> u64| self.progress.iter().map(of).max().unwrap_or(0);
        let ios = sum(|p| p.io_count.load(Relaxed));
        let bytes = sum(Progress::byte_count);
        let seconds = (now - last.at).as_secs_f64().max(1e-9);
        let elapsed_ns = (now - self.begin).as_nanos() as u64;
        let fraction = self.fraction(elapsed_ns, bytes);
        let left_ns = (fraction > 0.0).then(|| (elapsed_ns as f64 * (1.0 - fraction) / fraction) as u64);
        let tick = Tick {
            fraction,
            elapsed_ns,
            bytes_per_s: bytes.saturating_sub(last.bytes) as f64 / seconds,
            ios_per_s: ios.saturating_sub(last.ios) as f64 / seconds,
            latency_ns_p50: most(|p| p.latency_ns_p50.load(Relaxed)),
            latency_ns_p99: most(|p| p.latency_ns_p99.load(Relaxed)),
            left_ns,
        };
        *last = Last { at: now, ios, bytes };
        tick
    }

    /// Returns the share of the phase that is done, by time or by bytes.
    fn fraction(&self, elapsed_ns: u64, bytes: u64) -> f64 {
        let runtime = self.plans.iter().filter_map(|job| job.limits.runtime_ns).max();
        let all_bytes: u64 = self
            .plans
            .iter()
            .map(|job| job.limits.io_bytes.saturating_mul(job.limits.loops).saturating_mul(u64::from(job.workers)))
            .fold(0, u64::saturating_add);
        let by_time = runtime.map(|ns| elapsed_ns as f64 / ns as f64);
        let is_time_based = self.plans.iter().all(|job| job.limits.is_time_based || job.tolerance.ends_when_full);
        let by_bytes = (!is_time_based).then(|| bytes as f64 / all_bytes.max(1) as f64);
        by_time.unwrap_or(0.0).max(by_bytes.unwrap_or(0.0)).min(1.0)
    }
}

/// What the results so far are made of.
pub(crate) struct Status<'a> {
    pub(crate) reporting: &'a Reporting,
    pub(crate) record: &'a RunRecord,
    pub(crate) name: &'a str,
    pub(crate) begin_ns: u64,
    pub(crate) snapshots: &'a [Snapshot],
    /// The disks' counters, if they are read.
    pub(crate) watch: Option<&'a Watch>,
}

impl Status<'_> {
    /// Returns true if results so far are to be reported now: their time `due` has come, which is then set to the next
    /// one, or the flag asks for them, which is then cleared.
    fn is_due(&self, now: Instant, due: &mut Option<Instant>) -> bool {
        let is_asked = self.reporting.interim_asked.is_some_and(|asked| asked.swap(false, Relaxed));
        let (Some(every), Some(due)) = (self.reporting.interim_every, due.as_mut()) else { return is_asked };
        let is_time = now >= *due;
        while *due <= now {
            *due += every.max(TICK);
        }
        is_asked || is_time
    }

    /// Returns the run so far. Workers answer at the end of their intervals, ten times a second; of one that waits
    /// longer for an I/O the last answer is used, of one that has ended its final report.
    pub(crate) fn so_far(&self, plans: &[&JobPlan], elapsed_ns: u64) -> RunRecord {
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
            devices: self.watch.map_or_else(Vec::new, Watch::devices_so_far),
            residency: Vec::new(),
            trace: None,
            syscalls: None,
            disturbances: Vec::new(),
            verdict: Verdict::Unverified,
            level: EvidenceLevel::E0,
            checks: Vec::new(),
            outcome: Outcome::Complete,
        };
        for job in plans {
            let of_job = reports.by_ref().take(job.workers as usize).collect();
            phase.jobs.push(merge(job, self.reporting.shown(of_job), Vec::new()).record);
        }
        let mut record = self.record.clone();
        record.phases.push(phase);
        record
    }
}
