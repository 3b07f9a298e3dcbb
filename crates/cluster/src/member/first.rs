//! The part of rank 0: collects one message of each rank at each step.

use super::{After, Refused, Shared};
use crate::Limit;
use crate::clock::{answer_pings, ping_count};
use crate::message::{Done, Hello, ToHub, ToRank};
use crate::names::host_stride;
use crate::sample::{RankSample, Sample};
use crate::star::hub::Hub;
use std::collections::BTreeMap;
use std::time::Duration;
use trueio_model::{ClockOffset, Outcome, RunRecord};

/// How often a wait looks whether a signal came.
const LOOK: Duration = Duration::from_millis(100);
/// Shortest time from the agreement on a start to the start.
const MARGIN_NS: i64 = 50_000_000;

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

/// Rank 0.
#[derive(Debug)]
pub(crate) struct First {
    pub(crate) hub: Hub,
    pub(crate) collected: Collected,
    /// Of the phase under way.
    current: CollectedPhase,
    /// The latest results so far of each rank, until they are taken: nothing grows if nobody takes them.
    samples: BTreeMap<u32, Sample>,
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
            failure: None,
        }
    }

    /// Names a rank for a message: `rank 3 (host4)`.
    fn name_of(&self, rank: u32) -> String {
        match self.collected.hellos.get(&rank) {
            Some(hello) => format!("rank {rank} ({})", hello.host),
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
        shared.stop_here(reason.clone());
        self.hub.broadcast(&ToRank::Stop { reason });
    }

    /// Handles losses since the number `known`.
    fn notice_lost(&mut self, shared: &mut Shared, known: usize) {
        if let Some(lost) = self.hub.lost().get(known).cloned() {
            let reason = format!("{}: {}", self.name_of(lost.rank), lost.reason);
            self.stop_all(shared, Outcome::Failed { reason });
        }
    }

    /// Collects one message of each living rank for which `pick` returns a value. Ends early if the run is ending, unless
    /// `is_final`: results are collected then, too.
    fn gather<T>(
        &mut self,
        shared: &mut Shared,
        limit: Limit,
        is_final: bool,
        pick: impl Fn(ToHub) -> Result<T, ToHub>,
    ) -> BTreeMap<u32, T> {
        let until = limit.begin();
        let mut found = BTreeMap::new();
        loop {
            if let Some(signal) = shared.own_signal() {
                self.stop_all(shared, Outcome::Interrupted { signal });
            }
            let is_awaited = |rank: &u32| !found.contains_key(rank) && !self.current.done.contains_key(rank);
            let awaited: Vec<u32> = self.hub.living().into_iter().filter(is_awaited).collect();
            if awaited.is_empty() || (shared.stopping.is_some() && !is_final) {
                return found;
            }
            let known = self.hub.lost().len();
            for rank in self.hub.readable(&awaited, LOOK) {
                match self.hub.receive::<ToHub>(rank).map(&pick) {
                    Some(Ok(value)) => {
                        found.insert(rank, value);
                    }
                    Some(Err(message)) => self.handle(shared, rank, message),
                    None => {}
                }
            }
            if until.is_over() {
                for rank in awaited {
                    if !found.contains_key(&rank) {
                        self.hub.lose(rank, format!("it did not answer within {} s and was cut off", limit.seconds()));
                    }
                }
            }
            self.notice_lost(shared, known);
        }
    }

    /// Handles a message that was not awaited.
    fn handle(&mut self, shared: &mut Shared, rank: u32, message: ToHub) {
        match message {
            ToHub::Stopping { signal } => self.stop_all(shared, Outcome::Interrupted { signal }),
            ToHub::Sample(sample) => {
                self.samples.insert(rank, *sample);
            }
            // A rank that failed before the measured part sends its end instead.
            ToHub::Done(done) => {
                if let Some(reason) = failure_of(&done) {
                    let reason = format!("{}: {reason}", self.name_of(rank));
                    self.stop_all(shared, Outcome::Failed { reason });
                }
                if let Outcome::Interrupted { signal } = &done.outcome {
                    self.stop_all(shared, Outcome::Interrupted { signal: signal.clone() });
                }
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
        let kernels: BTreeMap<u32, String> =
            self.collected.hellos.iter().map(|(rank, hello)| (*rank, hello.boot_id.clone())).collect();
        let of = |rank: u32| kernels.values().filter(|id| Some(*id) == kernels.get(&rank)).count() as u32;
        shared.neighbours = of(0);
        let by_rank: Vec<&str> = kernels.values().map(String::as_str).collect();
        shared.host_stride = host_stride(&by_rank);
        let (phase_count, host_stride) = (shared.phase_count, shared.host_stride);
        for rank in self.hub.living() {
            let message = ToRank::Go { phase_count, neighbours: of(rank), host_stride };
            if let Some(Err(error)) = self.hub.link(rank).map(|link| link.send(&message)) {
                self.hub.lose(rank, trueio_model::error_line(&error));
            }
        }
    }

    pub(crate) fn agree(&mut self, shared: &mut Shared, own: Hello) -> Result<(), Refused> {
        let limit = shared.limit;
        let hellos = self.gather(shared, limit, false, |message| match message {
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
        let limit = shared.limit;
        let plans = self.gather(shared, limit, false, |message| match message {
            ToHub::Planned { refusal: Some(text), .. } => Ok(Err(text)),
            ToHub::Planned { refusal: None, phase_count } => Ok(Ok(phase_count)),
            other => Err(other),
        });
        if shared.stopping.is_some() {
            return Err(self.broken(shared));
        }
        shared.phase_count = 0;
        let mut first_refusal = None;
        for (rank, plan) in std::iter::once((0, plan)).chain(plans) {
            match plan {
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
        let limit = shared.limit;
        let heads = self.gather(shared, limit, false, |message| match message {
            ToHub::Head(head) => Ok(*head),
            other => Err(other),
        });
        self.collected.heads = heads;
        self.collected.heads.insert(0, own);
    }

    /// Compares the clocks of all ranks, one after another: together they would wait for each other.
    fn compare_clocks(&mut self, shared: &mut Shared) -> BTreeMap<u32, ClockOffset> {
        let count = ping_count(shared.size);
        let mut offsets = BTreeMap::from([(0, ClockOffset::default())]);
        for rank in self.hub.living() {
            let known = self.hub.lost().len();
            let (offset, others) = self.compare_clock(shared, rank, count);
            offsets.extend(offset.map(|offset| (rank, offset)));
            // Not before the pings are over: a message to the rank would be taken for an answer.
            others.into_iter().for_each(|message| self.handle(shared, rank, message));
            self.notice_lost(shared, known);
        }
        offsets
    }

    /// Compares the clock of one rank; `None`: the rank is lost. Returns other messages that it sent meanwhile, too.
    fn compare_clock(&mut self, shared: &Shared, rank: u32, count: u32) -> (Option<ClockOffset>, Vec<ToHub>) {
        let mut others = Vec::new();
        let sent = self.hub.link(rank).map(|link| link.send(&ToRank::Ping { count }));
        if let Some(Err(error)) = sent {
            self.hub.lose(rank, trueio_model::error_line(&error));
        }
        loop {
            match self.hub.receive(rank) {
                Some(ToHub::Pinging) => break,
                Some(other) => others.push(other),
                None => return (None, others),
            }
        }
        let answered = self.hub.link(rank).map(|link| answer_pings(link, &shared.clock));
        if let Some(Err(error)) = answered {
            self.hub.lose(rank, trueio_model::error_line(&error));
        }
        match self.hub.receive(rank) {
            Some(ToHub::Clock(offset)) => (Some(offset), others),
            other => {
                others.extend(other);
                (None, others)
            }
        }
    }

    pub(crate) fn meet(&mut self, shared: &mut Shared) {
        // A rank may fill its files for long; its process lives as long as its connection.
        self.gather(shared, DAY, false, |message| match message {
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
        let limit = shared.limit;
        self.gather(shared, limit, false, |message| match message {
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
        let margin_ns = MARGIN_NS.max(slowest as i64 * 10).max(i64::from(shared.size) * 100_000);
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
            if let Some(message) = self.hub.receive(rank) {
                self.handle(shared, rank, message);
            }
        }
        self.notice_lost(shared, known);
    }

    pub(crate) fn take_samples(&mut self) -> Vec<RankSample> {
        let taken = std::mem::take(&mut self.samples).into_iter();
        let host = |rank: u32| self.collected.hellos.get(&rank).map_or_else(String::new, |hello| hello.host.clone());
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
        measuring: Limit,
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
        let results = self.gather(shared, measuring, true, |message| match message {
            ToHub::Done(done) => Ok(*done),
            other => Err(other),
        });
        self.current.index = index;
        self.current.done.extend(results);
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

    /// Returns how many I/Os each rank has reached in jobs that others follow: in the last phase, and what it had reached
    /// before.
    fn reached(&self, size: u32) -> BTreeMap<String, Vec<u64>> {
        let mut reached: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (rank, done) in self.collected.phases.last().iter().flat_map(|phase| &phase.done) {
            for (job, ios) in &done.reached {
                let by_rank = reached.entry(job.clone()).or_insert_with(|| vec![0; size as usize]);
                by_rank[*rank as usize] = *ios;
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
        let mut values = self.gather(shared, measuring, false, |message| match message {
            ToHub::Value(text) => Ok(text),
            other => Err(other),
        });
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
        self.collected.hellos.iter().map(|(rank, hello)| (*rank, hello.host.clone())).collect()
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
    match &done.outcome {
        Outcome::Failed { reason } => Some(reason.clone()),
        Outcome::Complete | Outcome::Interrupted { .. } => None,
    }
}

/// The longest wait for work whose length is unknown.
const DAY: Limit = Limit::new(Duration::from_secs(86_400));
