//! The part of every rank but 0.

use super::{After, Refused, Shared};
use crate::Limit;
use crate::clock::ping;
use crate::message::{Done, Hello, ToHub, ToRank};
use crate::sample::Sample;
use crate::star::link::{Link, LinkError};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::BTreeMap;
use std::time::Duration;
use trueio_model::{ClockOffset, Outcome, RunRecord, error_line};

/// How often a wait looks whether a signal came.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Longest wait of a rank that finished for the end of rank 0's work: printing and storing.
const END: Duration = Duration::from_secs(600);

/// A connection to rank 0.
#[derive(Debug)]
pub(crate) struct Other {
    link: Link,
    clock: ClockOffset,
    has_told: bool,
    /// A message that arrived while this rank measured.
    early: Option<ToRank>,
    end: Option<u8>,
}

impl Other {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, clock: ClockOffset::default(), has_told: false, early: None, end: None }
    }

    /// Sends a message; if rank 0 is gone, the run ends here.
    fn send(&mut self, shared: &mut Shared, message: &ToHub) {
        if let Err(error) = self.link.send(message) {
            self.lose(shared, &error);
        }
    }

    fn lose(&mut self, shared: &mut Shared, error: &LinkError) {
        shared.stop_here(format!("rank 0 is gone: {}", error_line(error)));
        self.end.get_or_insert(1);
    }

    /// Waits for a message of rank 0 and answers pings meanwhile; `None`: the run is ending, or rank 0 is gone.
    fn wait(&mut self, shared: &mut Shared, limit: Limit) -> Option<ToRank> {
        if let Some(message) = self.early.take() {
            return Some(message);
        }
        let until = limit.begin();
        while self.end.is_none() {
            if !self.link.is_readable() {
                self.tell_signal(shared);
                let mut waiting = [PollFd::new(&self.link, PollFlags::IN)];
                let _ = rustix::event::poll(&mut waiting, Some(&LOOK));
                if until.is_over() {
                    self.lose(shared, &LinkError::Late(limit.seconds()));
                }
                continue;
            }
            let limit = self.link.limit();
            match self.link.receive(limit) {
                Ok(ToRank::Ping { count }) => {
                    self.send(shared, &ToHub::Pinging);
                    match ping(&mut self.link, &shared.clock, count) {
                        Ok(offset) => {
                            self.clock = offset;
                            self.send(shared, &ToHub::Clock(offset));
                        }
                        Err(error) => self.lose(shared, &error),
                    }
                }
                Ok(ToRank::Stop { reason }) => {
                    shared.stop_here(reason);
                    return None;
                }
                Ok(ToRank::End { code }) => {
                    self.end = Some(code);
                    return None;
                }
                Ok(message) => return Some(message),
                Err(error) => self.lose(shared, &error),
            }
        }
        None
    }

    /// Sends a signal of this rank to rank 0, once.
    fn tell_signal(&mut self, shared: &mut Shared) {
        if let Some(signal) = shared.own_signal().filter(|_| !self.has_told) {
            self.has_told = true;
            self.send(shared, &ToHub::Stopping { signal });
        }
    }

    fn answer(&mut self, shared: &mut Shared) -> Result<(), Refused> {
        // Another rank may need long to plan, so the limit is rank 0's: it loses that rank, and answers.
        let limit = Limit::new(shared.limit.length() * 2);
        match self.wait(shared, limit) {
            Some(ToRank::Go { phase_count, neighbours, host_stride }) => {
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
            Ok(phase_count) => ToHub::Planned { refusal: None, phase_count },
            Err(text) => ToHub::Planned { refusal: Some(text), phase_count: 0 },
        };
        self.send(shared, &message);
        self.answer(shared)
    }

    pub(crate) fn send_head(&mut self, shared: &mut Shared, head: &RunRecord) {
        self.send(shared, &ToHub::Head(Box::new(head.clone())));
    }

    pub(crate) fn meet(&mut self, shared: &mut Shared) {
        if shared.stopping.is_none() {
            self.send(shared, &ToHub::Ready);
            // The slowest rank may still fill its files; rank 0 bounds that.
            self.wait(shared, DAY);
        }
    }

    pub(crate) fn start(&mut self, shared: &mut Shared) -> u64 {
        if shared.stopping.is_some() {
            return 0;
        }
        self.send(shared, &ToHub::Armed);
        let limit = Limit::new(shared.limit.length() * 2);
        match self.wait(shared, limit) {
            Some(ToRank::Start { at_ns }) => shared.wait_for_start(at_ns - self.clock.offset_ns),
            _ => 0,
        }
    }

    pub(crate) fn look(&mut self, shared: &mut Shared) {
        self.tell_signal(shared);
        // Rank 0 may have measured already, and wait for results; it may still end the run after that.
        while shared.stopping.is_none() && self.end.is_none() && self.link.is_readable() {
            let limit = shared.limit;
            let kept = self.early.take();
            self.early = self.wait(shared, limit).or(kept);
        }
    }

    pub(crate) fn send_sample(&mut self, shared: &mut Shared, sample: Sample) {
        if shared.stopping.is_none() && self.end.is_none() {
            self.send(shared, &ToHub::Sample(Box::new(sample)));
        }
    }

    pub(crate) fn finish_phase(&mut self, shared: &mut Shared, done: Done, measuring: Limit) -> After {
        self.tell_signal(shared);
        if shared.stopping.is_none() && done.outcome == trueio_model::Outcome::Complete {
            self.wait(shared, measuring);
        }
        self.send(shared, &ToHub::Done(Box::new(done)));
        if shared.stopping.is_some() {
            return After::End;
        }
        match self.wait(shared, measuring) {
            Some(ToRank::Next { reached }) => {
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
            let done = Done { phase: None, span: None, targets: Vec::new(), outcome, reached: BTreeMap::new() };
            self.send(shared, &ToHub::Done(Box::new(done)));
        }
    }

    /// Sends a value when rank 0 asks for it, and returns what rank 0 made of all; `None`: the run is ending.
    pub(crate) fn combine(&mut self, shared: &mut Shared, own: String, measuring: Limit) -> Option<String> {
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
        // What is still under way (`Stop`, `Collect`) no longer matters.
        let limit = Limit::new(END);
        while self.end.is_none() {
            self.wait(shared, limit);
        }
        self.end.unwrap_or(1)
    }
}

/// The longest wait for work whose length is unknown.
const DAY: Limit = Limit::new(Duration::from_secs(86_400));
