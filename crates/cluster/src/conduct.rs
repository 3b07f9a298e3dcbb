//! One rank's run: its phases, each begun together with the other ranks.

use crate::Limit;
use crate::member::{After, Member, Role};
use crate::merge;
use crate::message::{Done, OwnSpan};
use crate::sample::{RankSample, Sample};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trueio_model::{JobPlan, Outcome, RunRecord};
use trueio_run::{Event, Observer, Request, Session};

/// The longest wait for work whose length is unknown.
const DAY: Duration = Duration::from_secs(86_400);

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
            Event::Progress(_) | Event::Preparing { .. } => {
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
    let head = session.record().clone();
    match &mut member.role {
        Role::First(first) => first.gather_heads(&mut member.shared, head),
        Role::Other(other) => other.send_head(&mut member.shared, &head),
    }
    let count = member.shared.phase_count;
    for index in 0..count {
        let done = run_phase(&mut session, index, member, observer, samples);
        let jobs: Vec<&JobPlan> = session.record().plan.jobs.iter().filter(|job| job.phase as usize == index).collect();
        // A rank without a job waits for the others, whose work it does not know.
        let length = if jobs.is_empty() { None } else { length_of(&jobs) };
        let measuring = Limit::new(length.unwrap_or(DAY) + member.shared.limit.length());
        let is_last = index + 1 == count || jobs.iter().any(|job| job.scheduling.ends_run);
        if member.finish_phase(index, done, measuring, is_last) == After::End {
            break;
        }
        for (job, by_rank) in std::mem::take(&mut member.shared.reached) {
            session.set_reached(&job, by_rank);
        }
        // What this phase wrote does not burden the next one of another rank.
    }
    match &mut member.role {
        Role::First(first) => Some(merge::merge(&member.shared, first)),
        Role::Other(_) => None,
    }
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
    let mut together = Together { member, inner, samples, is_in_rounds, has_started, span, late_ns };
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
    let mut done =
        Done { phase: None, span: None, targets: Vec::new(), outcome: Outcome::Complete, reached: BTreeMap::new() };
    if let Some(reason) = &member.shared.stopping {
        done.outcome = Outcome::Interrupted { signal: reason.clone() };
    } else if !has_jobs {
        wait_through(member);
    } else {
        let (is_in_rounds, has_started, span, late_ns) = (false, false, None, 0);
        let mut together = Together { member, inner: observer, samples, is_in_rounds, has_started, span, late_ns };
        match session.run_phase(index, |_| {}, &mut together) {
            Ok(phase) => {
                done.outcome = phase.outcome.clone();
                done.span = together.span;
                session.keep(phase.clone());
                observer.notify(Event::PhaseEnds(session.record()));
                done.phase = Some(Box::new(phase));
            }
            Err(outcome) => done.outcome = outcome,
        }
    }
    done.targets.clone_from(&session.record().targets);
    done.reached = session.reached();
    done
}
