//! The part of rank 0: collects one message of each rank at each step.

use super::wait::{Reports, Wait};
use super::{After, Refused, Shared};
use crate::Limit;
use crate::clock::{answer_pings, ping_count};
use crate::limit::Until;
use crate::message::{Done, Ended, Hello, Name, PhaseCount, PingCount, ProcessId, Reason, ToHub, ToRank};
use crate::names::host_stride;
use crate::sample::{RankSample, Sample};
use crate::star::hub::{Hub, Message};
use crate::star::link::LinkError;
use std::any::Any;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use trueio_model::{ClockOffset, EngineKind, Outcome, RunRecord};

/// How often a wait looks whether a signal came.
const LOOK: Duration = Duration::from_millis(100);
/// How long rank 0 waits for the results of a phase after it was interrupted.
const INTERRUPTED: Limit = Limit::new(Duration::from_secs(10));
/// Shortest and longest time from the agreement on a start to the start.
const MARGIN_NS: i64 = 50_000_000;
const MARGIN_NS_MAX: i64 = 10_000_000_000;

/// Everything that rank 0 knows of the phases.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) hellos: BTreeMap<u32, Hello>,
    pub(crate) heads: BTreeMap<u32, RunRecord>,
    pub(crate) phases: Vec<CollectedPhase>,
}

/// The results of one phase.
#[derive(Debug, Default)]
pub(crate) struct CollectedPhase {
    pub(crate) index: usize,
    /// The agreed start in rank 0's clock.
    pub(crate) start_ns: i64,
    pub(crate) before: BTreeMap<u32, ClockOffset>,
    pub(crate) after: BTreeMap<u32, ClockOffset>,
    pub(crate) done: BTreeMap<u32, Done>,
}

/// A step in which rank 0 collects a message of each rank.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// How long it waits.
    limit: Limit,
    /// A rank that comes forward with its work renews its time.
    is_renewed: bool,
    /// The messages stay until the end of the run.
    is_kept: bool,
    /// They are collected if the run is ending, too.
    is_final: bool,
}

impl Step {
    /// An answer.
    fn answer(limit: Limit) -> Self {
        Self { limit, is_renewed: false, is_kept: false, is_final: false }
    }

    /// An answer that stays.
    fn kept(limit: Limit) -> Self {
        Self { is_kept: true, ..Self::answer(limit) }
    }

    /// The end of work whose length is not known.
    fn work(limit: Limit) -> Self {
        Self { is_renewed: true, ..Self::answer(limit) }
    }

    /// The results of a phase.
    fn results(limit: Limit) -> Self {
        Self { is_kept: true, is_final: true, ..Self::work(limit) }
    }
}

/// Rank 0.
#[derive(Debug)]
pub(crate) struct First {
    pub(crate) hub: Hub,
    pub(crate) collected: Collected,
    /// Of the phase under way.
    current: CollectedPhase,
    /// The latest results so far of each rank, until they are taken: nothing grows if nobody takes them.
    samples: BTreeMap<u32, Sample>,
    /// Of the work of all ranks, to those that wait for it.
    reports: Reports,
    /// Each rank has got the processes of the ranks on its kernel.
    has_named_peers: bool,
    /// When the ranks were connected.
    began: Instant,
    /// How the run ended, if not as planned: the first failure or signal.
    pub(crate) failure: Option<Outcome>,
}

impl First {
    pub(crate) fn new(hub: Hub) -> Self {
        Self {
            hub,
            collected: Collected::default(),
            current: CollectedPhase::default(),
            samples: BTreeMap::new(),
            reports: Reports::none(),
            has_named_peers: false,
            began: Instant::now(),
            failure: None,
        }
    }

    /// Names a rank for a message: `rank 3 (host4)`.
    pub(super) fn name_of(&self, rank: u32) -> String {
        match self.collected.hellos.get(&rank) {
            Some(hello) => format!("rank {rank} ({})", hello.host_in_message()),
            None => format!("rank {rank}"),
        }
    }

    /// Ends the run on all ranks.
    fn stop_all(&mut self, shared: &mut Shared, outcome: Outcome) {
        if shared.stopping.is_some() {
            return;
        }
        let reason = match &outcome {
            Outcome::Interrupted { signal } => signal.clone(),
            Outcome::Failed { reason } => reason.clone(),
            Outcome::Complete => "the run is over".to_owned(),
        };
        self.failure = Some(outcome);
        self.hub.broadcast(&ToRank::Stop { reason: Reason::cut(&reason) });
        shared.stop_here(reason);
    }

    /// How long a rank may take for what it sends after the run was ended: a user who ended it does not wait as long as one who lost a rank.
    fn last_wait(&self, shared: &Shared) -> Limit {
        match self.failure {
            Some(Outcome::Interrupted { .. }) => shared.limit.min(INTERRUPTED),
            _ => shared.limit,
        }
    }

    /// Handles losses since the number `known`.
    fn notice_lost(&mut self, shared: &mut Shared, known: usize) {
        if let Some(lost) = self.hub.lost().get(known).cloned() {
            let reason = format!("{}: {}", self.name_of(lost.rank), lost.reason);
            self.stop_all(shared, Outcome::Failed { reason });
        }
    }

    /// Collects one message of each living rank for which `pick` returns a value. Ends early if the run is ending, unless
    /// the step is final.
    fn gather<T>(
        &mut self,
        shared: &mut Shared,
        step: Step,
        pick: impl Fn(ToHub) -> Result<T, ToHub>,
    ) -> BTreeMap<u32, T> {
        self.hub.begin_step();
        let mut found = BTreeMap::new();
        let limit = if shared.stopping.is_some() { self.last_wait(shared).min(step.limit) } else { step.limit };
        let mut waits: BTreeMap<u32, Wait> =
            self.hub.living().into_iter().map(|rank| (rank, Wait::begin(limit))).collect();
        let mut is_stopping = shared.stopping.is_some();
        loop {
            if let Some(signal) = shared.own_signal() {
                self.stop_all(shared, Outcome::Interrupted { signal });
            }
            if shared.stopping.is_some() && !std::mem::replace(&mut is_stopping, true) {
                // What is left to do is an answer.
                waits.values_mut().for_each(|wait| *wait = Wait::begin(self.last_wait(shared)));
            }
            let is_awaited = |rank: &u32| !found.contains_key(rank) && !self.current.done.contains_key(rank);
            let awaited: Vec<u32> = self.hub.living().into_iter().filter(is_awaited).collect();
            if awaited.is_empty() || (is_stopping && !step.is_final) {
                return found;
            }
            let known = self.hub.lost().len();
            let mut is_forward = false;
            for rank in self.hub.readable(&awaited, LOOK) {
                // All that has arrived, so that a rank in time is not taken for a late one.
                while !found.contains_key(&rank)
                    && let Some(Message { content, weight }) = self.hub.receive::<ToHub>(rank)
                {
                    match pick(content) {
                        Ok(value) => {
                            if step.is_kept {
                                self.hub.keep(rank, weight);
                            }
                            found.insert(rank, value);
                        }
                        Err(ToHub::Working { done }) if step.is_renewed && !is_stopping => {
                            is_forward |= waits.get_mut(&rank).is_some_and(|wait| wait.renew(done));
                        }
                        Err(message) => self.handle(shared, rank, message, weight),
                    }
                }
            }
            for (rank, wait) in waits.iter().filter(|(rank, wait)| awaited.contains(rank) && wait.is_over()) {
                if !found.contains_key(rank) && !self.current.done.contains_key(rank) {
                    let seconds = wait.seconds();
                    self.hub.lose(*rank, format!("it did not answer within {seconds} s and was cut off"));
                }
            }
            if is_forward {
                self.pass_on_work(shared);
            }
            self.notice_lost(shared, known);
        }
    }

    /// Reports to the ranks that this one, or one for which they wait, came forward with its work.
    fn pass_on_work(&mut self, shared: &Shared) {
        if shared.stopping.is_none()
            && let Some(count) = self.reports.next(shared.limit)
        {
            self.hub.broadcast(&ToRank::Working { done: count.into() });
        }
    }

    /// Reports that the work of this rank came forward.
    pub(crate) fn report_work(&mut self, shared: &mut Shared) {
        let known = self.hub.lost().len();
        self.pass_on_work(shared);
        self.notice_lost(shared, known);
    }

    /// Handles a message that was not awaited.
    fn handle(&mut self, shared: &mut Shared, rank: u32, message: ToHub, weight: u64) {
        match message {
            ToHub::Stopping { signal } => self.stop_all(shared, Outcome::Interrupted { signal: signal.to_string() }),
            ToHub::Sample(sample) => {
                // A view keeps a history for each name.
                let Sample { elapsed_ns, mut jobs } = *sample;
                jobs.retain(|job| self.has_job(&job.name));
                self.samples.insert(rank, Sample { elapsed_ns, jobs });
            }
            // A rank that failed before the measured part sends its end instead.
            // Complete results are awaited: others are of a run that the ranks did not agree on.
            ToHub::Done(done) if done.outcome.0 == Outcome::Complete && shared.stopping.is_none() => {
                let known = self.hub.lost().len();
                self.hub.lose(rank, "it sent results before they were due");
                self.notice_lost(shared, known);
            }
            ToHub::Done(done) => {
                if let Some(reason) = failure_of(&done) {
                    let reason = format!("{}: {reason}", self.name_of(rank));
                    self.stop_all(shared, Outcome::Failed { reason });
                }
                if let Ended(Outcome::Interrupted { signal }) = &done.outcome {
                    self.stop_all(shared, Outcome::Interrupted { signal: signal.clone() });
                }
                self.hub.keep(rank, weight);
                self.current.done.insert(rank, *done);
            }
            // Sent before the rank knew that the run is ending.
            _ => {}
        }
    }

    fn refuse(&mut self, text: String) -> Refused {
        self.hub.broadcast(&ToRank::Refused);
        Refused { code: 2, text: Some(text) }
    }

    fn broken(&mut self, shared: &Shared) -> Refused {
        let text = shared.stopping.clone().unwrap_or_default();
        Refused { code: 1, text: Some(format!("the run did not begin\n  because: {text}")) }
    }

    fn go(&mut self, shared: &mut Shared) {
        let kernels: BTreeMap<u32, Name> =
            self.collected.hellos.iter().map(|(rank, hello)| (*rank, hello.boot_id.clone())).collect();
        let mut processes: BTreeMap<Name, Vec<ProcessId>> = BTreeMap::new();
        for hello in self.collected.hellos.values().filter(|hello| !hello.boot_id.is_empty()) {
            processes.entry(hello.boot_id.clone()).or_default().push(hello.process);
        }
        let is_first = !std::mem::replace(&mut self.has_named_peers, true);
        if is_first {
            Shared::set_peers(processes.get(&kernels[&0]).map_or(&[][..], |own| own));
        }
        let of = |rank: u32| kernels.values().filter(|id| Some(*id) == kernels.get(&rank)).count() as u32;
        shared.neighbours = of(0);
        let by_rank: Vec<&str> = kernels.values().map(|id| &**id).collect();
        shared.host_stride = host_stride(&by_rank);
        let (phase_count, host_stride) = (PhaseCount::clamped(shared.phase_count as u64), shared.host_stride);
        for rank in self.hub.living() {
            // A kernel has few ranks; they are named once.
            let processes =
                if is_first { processes.get(&kernels[&rank]).cloned().unwrap_or_default() } else { Vec::new() };
            let message = ToRank::Go { phase_count, neighbours: of(rank), processes, host_stride };
            if let Some(Err(error)) = self.hub.link(rank).map(|link| link.send(&message)) {
                self.hub.lose(rank, trueio_model::error_line(&error));
            }
        }
    }

    pub(crate) fn agree(&mut self, shared: &mut Shared, own: Hello) -> Result<(), Refused> {
        self.hub.add_own(&own);
        let hellos = self.gather(shared, Step::kept(shared.limit), |message| match message {
            ToHub::Hello(hello) => Ok(*hello),
            other => Err(other),
        });
        self.collected.hellos = hellos;
        self.collected.hellos.insert(0, own);
        if shared.stopping.is_some() {
            return Err(self.broken(shared));
        }
        if let Some(text) = crate::agreement::difference(&self.collected.hellos) {
            return Err(self.refuse(text));
        }
        self.go(shared);
        Ok(())
    }

    pub(crate) fn planned(&mut self, shared: &mut Shared, plan: Result<usize, String>) -> Result<(), Refused> {
        let plans = self.gather(shared, Step::answer(shared.limit), |message| match message {
            ToHub::Planned { refusal: Some(text), .. } => Ok(Err(text.to_string())),
            ToHub::Planned { refusal: None, phase_count } => Ok(Ok(phase_count.get() as usize)),
            other => Err(other),
        });
        if shared.stopping.is_some() {
            return Err(self.broken(shared));
        }
        shared.phase_count = 0;
        // A job begins a phase at most.
        let job_count = self.collected.hellos.get(&0).and_then(|own| own.jobs.as_ref().ok()).map_or(0, Vec::len);
        let phases_max = plan.as_ref().map_or(0, |own| *own).max(job_count);
        let mut first_refusal = None;
        for (rank, plan) in std::iter::once((0, plan)).chain(plans) {
            match plan {
                Ok(count) if count > phases_max => {
                    let text = format!("it plans {count} phases, and the jobs of all ranks have at most {phases_max}");
                    first_refusal.get_or_insert((rank, text));
                }
                Ok(phase_count) => shared.phase_count = shared.phase_count.max(phase_count),
                Err(text) if first_refusal.is_none() => first_refusal = Some((rank, text)),
                Err(_) => {}
            }
        }
        if let Some((rank, text)) = first_refusal {
            let text = format!("{}: {}", self.name_of(rank), text.trim_start_matches("error: "));
            return Err(self.refuse(text));
        }
        self.go(shared);
        Ok(())
    }

    pub(crate) fn gather_heads(&mut self, shared: &mut Shared, own: RunRecord) {
        self.hub.add_own(&own);
        let heads = self.gather(shared, Step::kept(shared.limit), |message| match message {
            ToHub::Head(head) => Ok(head.into_inner()),
            other => Err(other),
        });
        self.collected.heads = heads;
        self.collected.heads.insert(0, own);
    }

    /// Compares the clocks of all ranks, one after another: together they would wait for each other.
    fn compare_clocks(&mut self, shared: &mut Shared) -> BTreeMap<u32, ClockOffset> {
        self.hub.begin_step();
        let (count, until) = (ping_count(shared.size), shared.limit.begin());
        let mut offsets = BTreeMap::from([(0, ClockOffset::default())]);
        for rank in self.hub.living() {
            let known = self.hub.lost().len();
            let (offset, others) = self.compare_clock(shared, rank, count, until);
            offsets.extend(offset.map(|offset| (rank, offset)));
            // Not before the pings are over: a message to the rank would be taken for an answer.
            others.into_iter().for_each(|message| self.handle(shared, rank, message.content, message.weight));
            self.notice_lost(shared, known);
            if shared.stopping.is_some() {
                break;
            }
        }
        offsets
    }

    /// Compares the clock of one rank; `None`: the rank is lost. Returns other messages that it sent meanwhile, too.
    fn compare_clock(
        &mut self,
        shared: &Shared,
        rank: u32,
        count: PingCount,
        until: Until,
    ) -> (Option<ClockOffset>, Vec<Message<ToHub>>) {
        let mut others = Vec::new();
        let sent = self.hub.link(rank).map(|link| link.send(&ToRank::Ping { count }));
        if let Some(Err(error)) = sent {
            self.hub.lose(rank, trueio_model::error_line(&error));
        }
        loop {
            match self.next_of(shared, rank, until) {
                Some(Message { content: ToHub::Pinging, .. }) => break,
                Some(other) => others.push(other),
                None => return (None, others),
            }
        }
        let answered = self.hub.link(rank).map(|link| answer_pings(link, &shared.clock, count.get(), until));
        if let Some(Err(error)) = answered {
            self.hub.lose(rank, trueio_model::error_line(&error));
        }
        match self.next_of(shared, rank, until) {
            Some(Message { content: ToHub::Clock(offset), .. }) => (Some(offset.0), others),
            other => {
                others.extend(other);
                (None, others)
            }
        }
    }

    /// Waits for the next message of one rank; `None`: the rank is lost.
    fn next_of(&mut self, shared: &Shared, rank: u32, until: Until) -> Option<Message<ToHub>> {
        loop {
            if let Some(message) = self.hub.receive(rank) {
                return Some(message);
            }
            self.hub.link(rank)?;
            if until.is_over() {
                let late = LinkError::Late(shared.limit.seconds());
                self.hub.lose(rank, trueio_model::error_line(&late));
                return None;
            }
            self.hub.readable(&[rank], LOOK);
        }
    }

    pub(crate) fn meet(&mut self, shared: &mut Shared) {
        // A rank may fill its files for long, and reports that it does.
        self.gather(shared, Step::work(shared.limit), |message| match message {
            ToHub::Ready => Ok(()),
            other => Err(other),
        });
        if shared.stopping.is_none() {
            self.current.before = self.compare_clocks(shared);
        }
        if shared.stopping.is_none() {
            self.hub.broadcast(&ToRank::Proceed);
        }
    }

    pub(crate) fn start(&mut self, shared: &mut Shared) -> u64 {
        if shared.stopping.is_some() {
            return 0;
        }
        self.gather(shared, Step::answer(shared.limit), |message| match message {
            ToHub::Armed => Ok(()),
            other => Err(other),
        });
        if shared.stopping.is_some() {
            return 0;
        }
        // Of the phase before.
        self.samples.clear();
        let slowest = self.current.before.values().map(|clock| clock.round_trip_ns_median).max().unwrap_or(0);
        // A broadcast takes about 20 µs for each rank.
        let margin_ns = MARGIN_NS.max(i64::from(shared.size) * 100_000).max(slowest.saturating_mul(10) as i64);
        let margin_ns = margin_ns.min(MARGIN_NS_MAX);
        self.current.start_ns = shared.clock.now_ns() + margin_ns;
        self.hub.broadcast(&ToRank::Start { at_ns: self.current.start_ns });
        shared.wait_for_start(self.current.start_ns)
    }

    pub(crate) fn look(&mut self, shared: &mut Shared) {
        if let Some(signal) = shared.own_signal() {
            self.stop_all(shared, Outcome::Interrupted { signal });
        }
        let known = self.hub.lost().len();
        let living: Vec<u32> =
            self.hub.living().into_iter().filter(|rank| !self.current.done.contains_key(rank)).collect();
        // While files are prepared, other ranks may be ready already: that message stays where it is.
        if !self.is_measuring() {
            return;
        }
        for rank in self.hub.readable(&living, Duration::ZERO) {
            while let Some(Message { content, weight }) = self.hub.receive(rank) {
                self.handle(shared, rank, content, weight);
            }
        }
        self.notice_lost(shared, known);
    }

    pub(crate) fn take_samples(&mut self) -> Vec<RankSample> {
        let taken = std::mem::take(&mut self.samples).into_iter();
        let host = |rank: u32| self.collected.hellos.get(&rank).map_or_else(String::new, Hello::host_in_message);
        taken.map(|(rank, sample)| RankSample { rank, host: host(rank), sample }).collect()
    }

    /// Whether the ranks measure: no message is awaited then.
    fn is_measuring(&self) -> bool {
        self.current.start_ns != 0
    }

    pub(crate) fn finish_phase(
        &mut self,
        shared: &mut Shared,
        index: usize,
        own: Done,
        length: Option<Duration>,
        is_last: bool,
    ) -> After {
        if let Some(signal) = shared.own_signal() {
            self.stop_all(shared, Outcome::Interrupted { signal });
        }
        if let Some(reason) = failure_of(&own) {
            let reason = format!("{}: {reason}", self.name_of(0));
            self.stop_all(shared, Outcome::Failed { reason });
        }
        if shared.stopping.is_none() {
            self.hub.broadcast(&ToRank::Collect);
        }
        self.hub.add_own(&own);
        let measuring = Limit::new(length.unwrap_or_default() + shared.limit.length());
        let results = self.gather(shared, Step::results(measuring), |message| match message {
            ToHub::Done(done) => Ok(*done),
            other => Err(other),
        });
        self.current.index = index;
        self.current.done.extend(results);
        self.refuse_impossible(shared);
        self.current.done.insert(0, own);
        let failed = self.current.done.iter().find_map(|(rank, done)| Some((*rank, failure_of(done)?)));
        if let Some((rank, reason)) = failed {
            let reason = format!("{}: {reason}", self.name_of(rank));
            self.stop_all(shared, Outcome::Failed { reason });
        }
        if shared.stopping.is_none() {
            self.current.after = self.compare_clocks(shared);
        }
        self.collected.phases.push(std::mem::take(&mut self.current));
        if shared.stopping.is_some() {
            return After::End;
        }
        if is_last {
            self.hub.broadcast(&ToRank::Over);
            return After::End;
        }
        let reached = self.reached(shared.size);
        self.hub.broadcast(&ToRank::Next { reached: reached.clone() });
        shared.reached = reached;
        After::Next
    }

    /// Gives up ranks whose results contradict their plan, or whose phase took longer than the run has.
    fn refuse_impossible(&mut self, shared: &mut Shared) {
        let own = self.collected.heads.get(&0).map(|head| &head.plan.jobs);
        let has_own_time = own.is_some_and(|jobs| jobs.iter().any(|job| job.engine == EngineKind::Simulated));
        let (age_s, known) = (self.began.elapsed().as_secs(), self.hub.lost().len());
        let check = |(rank, done): (&u32, &Done)| {
            let phase = done.phase.as_ref()?;
            let plan = self.collected.heads.get(rank).map_or(&[][..], |head| &head.plan.jobs);
            let by_age = if has_own_time { Ok(()) } else { phase.check_age(age_s) };
            Some((*rank, by_age.and_then(|()| phase.check_plan(plan)).err()?))
        };
        let refused: Vec<_> = self.current.done.iter().filter_map(check).collect();
        for (rank, why) in refused {
            self.current.done.remove(&rank);
            self.hub.lose(rank, why.to_string());
        }
        self.notice_lost(shared, known);
    }

    /// Returns whether the ranks agreed on a job of this name: all have the same jobs.
    fn has_job(&self, name: &str) -> bool {
        let jobs = self.collected.hellos.get(&0).and_then(|own| own.jobs.as_ref().ok());
        jobs.is_some_and(|jobs| jobs.iter().any(|job| job.name == name))
    }

    /// Returns how many I/Os each rank has reached in jobs that others follow: in the last phase, and what it had reached
    /// before.
    fn reached(&self, size: u32) -> BTreeMap<String, Vec<u64>> {
        let mut reached: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let Some(phase) = self.collected.phases.last() else { return reached };
        for (rank, done) in &phase.done {
            for (job, ios) in done.reached.iter().filter(|(job, _)| self.has_job(job)) {
                let by_rank = reached.entry(job.clone()).or_insert_with(|| vec![0; size as usize]);
                if let Some(place) = by_rank.get_mut(*rank as usize) {
                    *place = ios.get();
                }
            }
        }
        reached
    }

    /// Ends the run because this rank cannot go on.
    pub(crate) fn fail(&mut self, shared: &mut Shared, outcome: &Outcome) {
        let outcome = match outcome {
            Outcome::Failed { reason } => Outcome::Failed { reason: format!("{}: {reason}", self.name_of(0)) },
            other => other.clone(),
        };
        self.stop_all(shared, outcome);
    }

    /// Ends the run on all ranks after a panic of this process. What the phase under way had collected is kept.
    pub(crate) fn fail_by(&mut self, shared: &mut Shared, panic: &(dyn Any + Send)) {
        let reason = format!("{}: {}", self.name_of(0), trueio_run::panic_text(panic));
        self.stop_all(shared, Outcome::Failed { reason });
        let current = std::mem::take(&mut self.current);
        if !current.done.is_empty() {
            self.collected.phases.push(current);
        }
    }

    /// Collects a value of each rank, as JSON; `None`: the run is ending.
    pub(crate) fn collect(
        &mut self,
        shared: &mut Shared,
        own: String,
        measuring: Limit,
    ) -> Option<BTreeMap<u32, String>> {
        if let Some(signal) = shared.own_signal() {
            self.stop_all(shared, Outcome::Interrupted { signal });
        }
        if shared.stopping.is_some() {
            return None;
        }
        self.hub.broadcast(&ToRank::Collect);
        let mut values = self.gather(shared, Step::work(measuring), |message| match message {
            ToHub::Value(text) => Ok(text),
            other => Err(other),
        });
        let known = self.hub.lost().len();
        values.retain(|rank, text| self.hub.admits(*rank, text));
        self.notice_lost(shared, known);
        // Nothing is measured until the next start.
        self.current.start_ns = 0;
        if shared.stopping.is_some() {
            return None;
        }
        values.insert(0, own);
        Some(values)
    }

    /// Sends what was made of the values of all ranks, or ends the run; returns it.
    pub(crate) fn answer(&mut self, shared: &mut Shared, made: Result<String, String>) -> Option<String> {
        match made {
            Ok(made) => {
                self.hub.broadcast(&ToRank::Value(made.clone()));
                Some(made)
            }
            Err(reason) => {
                self.stop_all(shared, Outcome::Failed { reason });
                None
            }
        }
    }

    /// Returns the host of each rank.
    pub(crate) fn hosts(&self) -> BTreeMap<u32, String> {
        self.collected.hellos.iter().map(|(rank, hello)| (*rank, hello.host.to_string())).collect()
    }

    /// Returns what is to be added to times of a rank's clock, in nanoseconds, by the comparison at the last meeting.
    pub(crate) fn offset_ns(&self, rank: u32) -> i64 {
        self.current.before.get(&rank).map_or(0, |clock| clock.offset_ns)
    }

    pub(crate) fn end(&mut self, code: u8) -> u8 {
        self.hub.broadcast(&ToRank::End { code });
        code
    }
}

/// Returns why a rank's phase failed; `None`: it did not, or was only stopped.
fn failure_of(done: &Done) -> Option<String> {
    match &done.outcome.0 {
        Outcome::Failed { reason } => Some(reason.clone()),
        Outcome::Complete | Outcome::Interrupted { .. } => None,
    }
}
