//! One rank's run: its phases, each begun together with the other ranks.

use crate::figures::Measured;
use crate::member::{After, Member, Role};
use crate::merge;
use crate::message::{Done, Ended, IoCount, OwnSpan};
use crate::sample::{RankSample, Sample};
use crate::streams::PhaseFiles;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trueio_job::options::limits::rows::{RAMP_TIME, RUNTIME, STARTDELAY};
use trueio_model::{BlockSizes, JobPlan, JobSpec, Outcome, RunRecord, units};
use trueio_run::{Event, Observer, Request, Session};

/// Receives the results so far of other ranks.
pub type OnSample<'a> = &'a mut dyn FnMut(RankSample);

/// Passes events on, and meets the other ranks where the measured part begins.
struct Together<'a> {
    member: &'a mut Member,
    inner: &'a mut dyn Observer,
    samples: &'a mut dyn FnMut(RankSample),
    /// Rounds before the measured part are each rank's own.
    is_in_rounds: bool,
    has_started: bool,
    span: Option<OwnSpan>,
    late_ns: u64,
    work: Work,
}

/// How often the work of this rank came forward.
#[derive(Default)]
struct Work {
    /// How far it was at the last event: bytes of a file, or millionths of the phase.
    reached: u64,
    count: u64,
}

impl Work {
    /// Returns how often it came forward, this event included; `None`: with this one it did not.
    fn advance(&mut self, event: &Event<'_>) -> Option<u64> {
        let reached = match event {
            Event::Preparing { done_bytes, .. } => *done_bytes,
            Event::Progress(tick) => (tick.fraction.clamp(0.0, 1.0) * 1e6) as u64,
            // The plan bounds the wait.
            Event::WaitingForIdle(_) => self.reached.wrapping_add(1),
            _ => self.reached,
        };
        // The next file begins again.
        let is_forward = reached != self.reached;
        self.count += u64::from(is_forward);
        self.reached = reached;
        is_forward.then_some(self.count)
    }
}

impl Observer for Together<'_> {
    fn notify(&mut self, event: Event<'_>) {
        let is_measured = !self.is_in_rounds;
        match &event {
            Event::RoundBegins { .. } => self.is_in_rounds = true,
            Event::RoundsEnd { .. } => self.is_in_rounds = false,
            Event::WorkersReady { has_head } if is_measured => {
                self.member.meet();
                if *has_head {
                    self.late_ns = self.member.start();
                    self.has_started = true;
                }
            }
            Event::Progress(_) | Event::Preparing { .. } | Event::WaitingForIdle(_) => {
                if let Some(done) = self.work.advance(&event) {
                    self.member.report_work(done, self.span.is_none());
                }
                self.member.look();
                self.member.take_samples().into_iter().for_each(&mut *self.samples);
            }
            // Not before the agreed start: rank 0 reads nothing until then.
            Event::Interim(record) if self.span.is_some_and(|span| span.end_ns == span.begin_ns) => {
                self.member.send_sample(Sample::of(record));
            }
            _ => {}
        }
        let begins = matches!(event, Event::MeasuringBegins) && is_measured;
        let ends = matches!(event, Event::MeasuringEnds) && is_measured;
        if ends && let Some(span) = &mut self.span {
            span.end_ns = self.member.shared.clock.now_ns();
        }
        self.inner.notify(event);
        if begins {
            if !self.has_started {
                self.late_ns = self.member.start();
            }
            let span = OwnSpan::at(self.member.shared.clock.now_ns());
            self.span = Some(OwnSpan { late_ns: self.late_ns, ..span });
        }
    }
}

/// Returns the planned length of a phase with what comes before it; `None`: it depends on the work.
fn length_of(jobs: &[&JobPlan]) -> Option<Duration> {
    let length = |job: &&JobPlan| {
        let runtime_ns = job.limits.runtime_ns?;
        Some(Duration::from_nanos(runtime_ns + job.limits.ramp_ns + job.limits.start_delay_ns))
    };
    jobs.iter().map(length).collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// Runs this rank's part. Rank 0 returns the record of all ranks, the others `None`.
///
/// `stop` ends the run early on all ranks when it becomes true. `samples` receives the results so far of other ranks, if these were asked
/// for them (`Reporting::interim_every`): on rank 0, while it measures.
pub fn run(
    request: Request,
    member: &mut Member,
    stop: &'static AtomicBool,
    observer: &mut dyn Observer,
    samples: OnSample<'_>,
) -> Option<RunRecord> {
    member.shared.stop = Some(stop);
    let mut session = Session::new(request, stop);
    let ran = catch_unwind(AssertUnwindSafe(|| run_phases(&mut session, member, observer, samples)));
    let (shared, first) = match (&mut member.role, ran) {
        (Role::First(first), Ok(())) => (&member.shared, first),
        (Role::First(first), Err(panic)) => {
            first.fail_by(&mut member.shared, panic.as_ref());
            (&member.shared, first)
        }
        (Role::Other(_), Ok(())) => return None,
        // Rank 0 names this rank, whose connection ends.
        (Role::Other(_), Err(panic)) => resume_unwind(panic),
    };
    let own = session.record().clone();
    // What other ranks sent is merged here: what is known is not lost by a bug in that.
    let merged = catch_unwind(AssertUnwindSafe(|| merge::merge(shared, first)));
    // The others wait for the end of printing and storing.
    member.report_work(0, false);
    let shared = &member.shared;
    Some(merged.unwrap_or_else(|panic| merge::without_others(shared, own, panic.as_ref())))
}

/// Runs the phases of this rank.
fn run_phases(session: &mut Session<'_>, member: &mut Member, observer: &mut dyn Observer, samples: OnSample<'_>) {
    let head = session.record().clone();
    match &mut member.role {
        Role::First(first) => first.gather_heads(&mut member.shared, head),
        Role::Other(other) => other.send_head(&mut member.shared, &head),
    }
    let count = member.shared.phase_count;
    for index in 0..count {
        let begin_ns = member.now_ns();
        let done = run_phase(session, index, member, observer, samples);
        let jobs: Vec<&JobPlan> = session.record().plan.jobs.iter().filter(|job| job.phase as usize == index).collect();
        let length = match jobs.is_empty() {
            // All ranks have the same jobs, of which this one runs none now.
            true => longest_of(&session.record().spec),
            // Another rank may take twice as long for the same work, and reports that it comes forward if it takes longer.
            false => length_of(&jobs).or(Some(Duration::from_nanos((member.now_ns() - begin_ns).max(0) as u64))),
        };
        let is_last = index + 1 == count || jobs.iter().any(|job| job.scheduling.ends_run);
        if member.finish_phase(index, done, length, is_last) == After::End {
            break;
        }
        for (job, mut by_rank) in std::mem::take(&mut member.shared.reached) {
            // Others follow the rank with the most, which has no more than its jobs have.
            let most = session.record().plan.jobs.iter().find(|plan| plan.name == job).map_or(u64::MAX, ios_max);
            by_rank.iter_mut().for_each(|ios| *ios = (*ios).min(most));
            session.set_reached(&job, by_rank);
        }
        // What this phase wrote does not burden the next one of another rank.
    }
}

/// Returns the largest number of I/Os of a job; `u64::MAX`: only time ends it.
fn ios_max(job: &JobPlan) -> u64 {
    let limits = &job.limits;
    let sizes = [&job.pattern.read_sizes, &job.pattern.write_sizes, &job.pattern.trim_sizes];
    let smallest = sizes.into_iter().map(BlockSizes::min_bytes).filter(|bytes| *bytes > 0).min().unwrap_or(1);
    let of_worker = match limits.io_count {
        Some(count) => count,
        None if limits.is_time_based => return u64::MAX,
        None => limits.io_bytes.div_ceil(smallest).saturating_mul(limits.loops.max(1)),
    };
    of_worker.saturating_mul(u64::from(job.workers))
}

/// Returns the longest planned time of a job with what comes before it; `None`: all end with their work.
fn longest_of(specs: &[JobSpec]) -> Option<Duration> {
    let time = |spec: &JobSpec, name: &str| units::parse_duration_ns(&spec.options.get(name)?.text).ok();
    let length = |spec: &JobSpec| {
        let runtime_ns = time(spec, RUNTIME.name).filter(|ns| *ns > 0)?;
        let before = [RAMP_TIME.name, STARTDELAY.name].map(|name| time(spec, name).unwrap_or(0));
        Some(before.into_iter().fold(runtime_ns, u64::saturating_add))
    };
    specs.iter().filter_map(length).max().map(Duration::from_nanos)
}

/// Does work whose measured part begins on all ranks together, and looks for the end of the run meanwhile. Returns its result, and the
/// measured part in this rank's clock (`MeasuringBegins` to `MeasuringEnds`), if there was one.
///
/// A rank without work in it calls [`wait_through`].
pub fn begin_together<T>(
    member: &mut Member,
    inner: &mut dyn Observer,
    work: impl FnOnce(&mut dyn Observer) -> T,
) -> (T, Option<(i64, i64)>) {
    let (is_in_rounds, has_started, span, late_ns) = (false, false, None, 0);
    let mut none = |_: RankSample| ();
    let samples = &mut none;
    let mut together =
        Together { member, inner, samples, is_in_rounds, has_started, span, late_ns, work: Work::default() };
    let result = work(&mut together);
    (result, together.span.map(|span| (span.begin_ns, span.end_ns)))
}

/// Takes part in a beginning of other ranks.
pub fn wait_through(member: &mut Member) {
    member.meet();
    member.start();
}

/// Runs one phase, or waits through it if this rank has no job in it.
fn run_phase(
    session: &mut Session<'_>,
    index: usize,
    member: &mut Member,
    observer: &mut dyn Observer,
    samples: OnSample<'_>,
) -> Done {
    let has_jobs = session.has_work(index);
    let mut done = Done::without_figures(Outcome::Complete);
    if let Some(reason) = &member.shared.stopping {
        done.outcome = Ended(Outcome::Interrupted { signal: reason.clone() });
    } else if !has_jobs {
        wait_through(member);
    } else {
        let (is_in_rounds, has_started, span, late_ns) = (false, false, None, 0);
        let mut together = Together {
            member,
            inner: observer,
            samples,
            is_in_rounds,
            has_started,
            span,
            late_ns,
            work: Work::default(),
        };
        let files = RefCell::new(PhaseFiles::of(session.record(), &together.member.shared.boot_id));
        // Before the measured part: the files are there, and may be gone after it.
        match session.run_phase(index, |job| files.borrow_mut().add(job), &mut together) {
            Ok(phase) => {
                done.streams = files.into_inner().streams(&phase.jobs);
                done.outcome = Ended(phase.outcome.clone());
                done.span = together.span;
                session.keep(phase.clone());
                observer.notify(Event::PhaseEnds(session.record()));
                done.phase = Some(Box::new(Measured::own(phase)));
            }
            Err(outcome) => done.outcome = Ended(outcome),
        }
    }
    done.targets.clone_from(&session.record().targets);
    done.reached = session.reached().into_iter().map(|(job, ios)| (job, IoCount::clamped(ios))).collect();
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::EngineKind;

    /// Goal: a rank that claims 2^48 I/Os does not keep the others busy for ever in a job that goes on until all have done as many.
    #[test]
    fn a_job_has_no_more_ios_than_its_bytes_loops_and_workers() {
        let mut job = JobPlan::plain(EngineKind::Null, 1 << 20);
        (job.limits.io_bytes, job.limits.loops, job.workers) = (10 << 20, 2, 3);
        let block =
            [&job.pattern.read_sizes, &job.pattern.write_sizes].map(|sizes| sizes.min_bytes()).into_iter().min();
        assert_eq!(ios_max(&job), (10 << 20) / block.expect("sizes") * 2 * 3);
        job.limits.is_time_based = true;
        assert_eq!(ios_max(&job), u64::MAX);
        job.limits.io_count = Some(5);
        assert_eq!(ios_max(&job), 15);
    }
}
