//! The part of every rank but 0.

use super::wait::{Reports, Wait};
use super::{After, Refused, Shared};
use crate::Limit;
use crate::budget::RENEWALS_MAX;
use crate::clock::ping;
use crate::figures::{Head, TIME_NS_MAX};
use crate::message::{Done, Hello, Name, Offset, PhaseCount, PingCount, Reason, ToHub, ToRank};
use crate::sample::Sample;
use crate::star::link::{Link, LinkError};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::time::Duration;
use trueio_model::{ClockOffset, Outcome, RunRecord, error_line};

/// How often a wait looks whether a signal came.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A connection to rank 0.
#[derive(Debug)]
pub(crate) struct Other {
    link: Link,
    clock: ClockOffset,
    has_told: bool,
    /// A message that arrived while this rank measured.
    early: Option<ToRank>,
    end: Option<u8>,
    /// Why rank 0 is gone.
    orphaned: Option<String>,
    reports: Reports,
}

impl Other {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link,
            clock: ClockOffset::default(),
            has_told: false,
            early: None,
            end: None,
            orphaned: None,
            reports: Reports::none(),
        }
    }

    /// Sends a message; if rank 0 is gone, the run ends here.
    fn send(&mut self, shared: &mut Shared, message: &ToHub) {
        if let Err(error) = self.link.send(message) {
            self.lose(shared, &error);
        }
    }

    fn lose(&mut self, shared: &mut Shared, error: &LinkError) {
        let reason = format!("rank 0 is gone: {}", error_line(error));
        if self.end.is_none() {
            self.orphaned.get_or_insert_with(|| reason.clone());
        }
        shared.stop_here(reason);
        self.end.get_or_insert(1);
    }

    /// Returns why rank 0 is gone; `None`: it was there to the end.
    pub(crate) fn orphaned(&self) -> Option<&str> {
        self.orphaned.as_deref()
    }

    /// Waits for a message of rank 0, within its budget: a limit, which the work of rank 0, or of a rank for which it waits, renews. Answers
    /// pings meanwhile. `None`: the run is ending, or rank 0 is gone.
    fn wait(&mut self, shared: &mut Shared, limit: Limit) -> Option<ToRank> {
        if let Some(message) = self.early.take() {
            return Some(message);
        }
        let mut wait = Wait::for_first(limit, answer_of(shared));
        loop {
            match self.next(shared, &wait)? {
                ToRank::Working { done } => drop(wait.renew(done)),
                ToRank::Ping { count } => self.ping(shared, count),
                message => return Some(message),
            }
        }
    }

    /// Waits for the next message; `None`: the run is ending, or rank 0 is gone.
    fn next(&mut self, shared: &mut Shared, wait: &Wait) -> Option<ToRank> {
        while self.end.is_none() {
            // Messages without end do not renew it.
            if wait.is_over() {
                self.lose(shared, &LinkError::Late(wait.seconds()));
            } else if self.link.is_readable() {
                return self.receive(shared);
            } else {
                self.tell_signal(shared);
                let mut waiting = [PollFd::new(&self.link, PollFlags::IN)];
                let _ = rustix::event::poll(&mut waiting, Some(&LOOK));
            }
        }
        None
    }

    /// Receives a message that has arrived; `None`: it ends the run, or rank 0 is gone.
    fn receive(&mut self, shared: &mut Shared) -> Option<ToRank> {
        let limit = self.link.limit();
        match self.link.receive(limit) {
            Ok(ToRank::Stop { reason }) => shared.stop_here(reason.to_string()),
            Ok(ToRank::End { code }) => self.end = Some(code),
            Ok(message) => return Some(message),
            Err(error) => self.lose(shared, &error),
        }
        None
    }

    /// Compares the clocks.
    fn ping(&mut self, shared: &mut Shared, count: PingCount) {
        let limit = self.link.limit();
        self.send(shared, &ToHub::Pinging);
        match ping(&mut self.link, &shared.clock, count, limit.begin()) {
            Ok(offset) => {
                self.clock = offset;
                self.send(shared, &ToHub::Clock(Offset(offset)));
            }
            Err(error) => self.lose(shared, &error),
        }
    }

    /// Sends a signal of this rank to rank 0, once.
    fn tell_signal(&mut self, shared: &mut Shared) {
        if let Some(signal) = shared.own_signal().filter(|_| !self.has_told) {
            self.has_told = true;
            self.send(shared, &ToHub::Stopping { signal: Name::cut(&signal) });
        }
    }

    fn answer(&mut self, shared: &mut Shared) -> Result<(), Refused> {
        let limit = answer_of(shared);
        match self.wait(shared, limit) {
            Some(ToRank::Go { phase_count, neighbours, processes, host_stride }) => {
                if !processes.is_empty() {
                    Shared::set_peers(&processes);
                }
                let phase_count = phase_count.get() as usize;
                (shared.phase_count, shared.neighbours, shared.host_stride) = (phase_count, neighbours, host_stride);
                Ok(())
            }
            Some(ToRank::Refused) => {
                let code = self.end(shared);
                Err(Refused { code, text: None })
            }
            _ => {
                let text = shared.stopping.clone().map(|reason| format!("rank {} ends: {reason}", shared.rank));
                Err(Refused { code: self.end.unwrap_or(1), text })
            }
        }
    }

    pub(crate) fn agree(&mut self, shared: &mut Shared, hello: Hello) -> Result<(), Refused> {
        self.send(shared, &ToHub::Hello(Box::new(hello)));
        self.answer(shared)
    }

    pub(crate) fn planned(&mut self, shared: &mut Shared, plan: Result<usize, String>) -> Result<(), Refused> {
        let message = match plan {
            Ok(count) => ToHub::Planned { refusal: None, phase_count: PhaseCount::clamped(count as u64) },
            Err(text) => ToHub::Planned { refusal: Some(Reason::cut(&text)), phase_count: PhaseCount::default() },
        };
        self.send(shared, &message);
        self.answer(shared)
    }

    pub(crate) fn send_head(&mut self, shared: &mut Shared, head: &RunRecord) {
        self.send(shared, &ToHub::Head(Box::new(Head::own(head.clone()))));
    }

    pub(crate) fn meet(&mut self, shared: &mut Shared) {
        if shared.stopping.is_none() {
            self.send(shared, &ToHub::Ready);
            self.reports = Reports::none();
            // The slowest rank may still fill its files, and renews the time.
            let limit = answer_of(shared);
            self.wait(shared, limit);
        }
    }

    pub(crate) fn start(&mut self, shared: &mut Shared) -> u64 {
        if shared.stopping.is_some() {
            return 0;
        }
        self.send(shared, &ToHub::Armed);
        let limit = answer_of(shared);
        match self.wait(shared, limit) {
            Some(ToRank::Start { at_ns }) if at_ns.abs_diff(0) <= TIME_NS_MAX as u64 => {
                shared.wait_for_start(at_ns - self.clock.offset_ns)
            }
            _ => 0,
        }
    }

    pub(crate) fn look(&mut self, shared: &mut Shared) {
        self.tell_signal(shared);
        // Rank 0 may have measured already, and wait for results; it may still end the run after that.
        while shared.stopping.is_none() && self.end.is_none() && self.link.is_readable() {
            match self.receive(shared) {
                Some(ToRank::Working { .. }) | None => {}
                Some(ToRank::Ping { count }) => self.ping(shared, count),
                message => self.early = message,
            }
        }
    }

    /// Reports that the work of this rank came forward, in a unit that grows, if rank 0 may wait for it: before the measured part,
    /// or after rank 0 has measured.
    pub(crate) fn report_work(&mut self, shared: &mut Shared, done: u64, is_before: bool) {
        let is_awaited = is_before || self.early.is_some();
        let goes_on = shared.stopping.is_none() && self.end.is_none();
        if is_awaited && goes_on && self.reports.count() < RENEWALS_MAX && self.reports.next(shared.limit).is_some() {
            self.send(shared, &ToHub::Working { done });
        }
    }

    pub(crate) fn send_sample(&mut self, shared: &mut Shared, sample: Sample) {
        if shared.stopping.is_none() && self.end.is_none() {
            self.send(shared, &ToHub::Sample(Box::new(sample)));
        }
    }

    pub(crate) fn finish_phase(&mut self, shared: &mut Shared, done: Done, length: Option<Duration>) -> After {
        let measuring = Limit::new(length.unwrap_or_default() + answer_of(shared).length());
        self.tell_signal(shared);
        if shared.stopping.is_none() && done.outcome.0 == Outcome::Complete {
            self.wait(shared, measuring);
        }
        self.send(shared, &ToHub::Done(Box::new(done)));
        if shared.stopping.is_some() {
            return After::End;
        }
        match self.wait(shared, measuring) {
            Some(ToRank::Next { reached }) => {
                self.reports = Reports::none();
                shared.reached = reached;
                After::Next
            }
            _ => After::End,
        }
    }

    /// Tells rank 0 that this rank cannot go on.
    pub(crate) fn fail(&mut self, shared: &mut Shared, outcome: &Outcome) {
        if shared.stopping.is_none() {
            let outcome = outcome.clone();
            self.send(shared, &ToHub::Done(Box::new(Done::without_figures(outcome))));
        }
    }

    /// Sends a value when rank 0 asks for it, and returns what rank 0 made of all; `None`: the run is ending.
    pub(crate) fn combine(&mut self, shared: &mut Shared, own: String, measuring: Limit) -> Option<String> {
        let measuring = Limit::new(measuring.length() + shared.limit.length());
        self.tell_signal(shared);
        if shared.stopping.is_some() {
            return None;
        }
        let Some(ToRank::Collect) = self.wait(shared, measuring) else { return None };
        self.send(shared, &ToHub::Value(own));
        match self.wait(shared, measuring) {
            Some(ToRank::Value(made)) => Some(made),
            _ => None,
        }
    }

    pub(crate) fn end(&mut self, shared: &mut Shared) -> u8 {
        // Rank 0 merges, prints and stores, and reports that this comes forward.
        let mut wait = Wait::for_first(answer_of(shared), answer_of(shared));
        self.early = None;
        while self.end.is_none() {
            // What is still under way (`Stop`, `Collect`) no longer matters, and gives no more time.
            if let Some(ToRank::Working { done }) = self.next(shared, &wait) {
                wait.renew(done);
            }
        }
        self.end.unwrap_or(1)
    }
}

/// Returns the longest wait for an answer of rank 0: twice its own limit, after which it loses another rank, and answers.
fn answer_of(shared: &Shared) -> Limit {
    Limit::new(shared.limit.length() * 2)
}
