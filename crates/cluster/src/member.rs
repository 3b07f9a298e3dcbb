//! A rank of a run: agreement before it, and the steps that all ranks take together.
//!
//! Rank 0 collects one message of each rank at each step. A rank whose connection ends, or that does not answer within the
//! limit, is lost: it is named in the record, and the run stops with what was measured. The others wait as long for rank 0, which
//! reports that work comes forward, its own and that of ranks that it waits for. Between the agreed start and the end of its measured part a
//! rank sends nothing else, unless a signal ends the run, or its results so far were asked for.

mod first;
mod other;
mod wait;

pub(crate) use first::{Collected, CollectedPhase, First};
pub(crate) use other::Other;

use crate::clock::Clock;
use crate::launcher::{KeySpace, Launched};
use crate::message::{Done, Hello, JobText, Name, OwnSpan, ProcessId, Reason};
use crate::range::cut;
use crate::sample::{RankSample, Sample};
use crate::star::{self, Star, StarError};
use crate::{Limit, Place};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use trueio_model::{JobSpec, Outcome};

/// A request that the ranks refused together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The exit code of all ranks.
    pub code: u8,
    /// Why; `None` on other ranks than 0, which print nothing.
    pub text: Option<String>,
}

/// One rank of a run.
#[derive(Debug)]
pub struct Member {
    pub(crate) shared: Shared,
    pub(crate) role: Role,
    space: Option<Box<dyn KeySpace>>,
}

/// What both roles have.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) host: String,
    pub(crate) boot_id: String,
    pub(crate) launcher: String,
    pub(crate) clock: Clock,
    pub(crate) limit: Limit,
    /// Ends this rank's workers.
    pub(crate) stop: Option<&'static AtomicBool>,
    /// Why the run ends early; set once.
    pub(crate) stopping: Option<String>,
    pub(crate) phase_count: usize,
    /// Ranks on this kernel.
    pub(crate) neighbours: u32,
    /// Ranks to the nearest one of another host.
    pub(crate) host_stride: u32,
    /// How many I/Os each rank has reached in jobs that others follow.
    pub(crate) reached: BTreeMap<String, Vec<u64>>,
}

impl Shared {
    /// Returns the signal that was sent to this rank, if the run is not ending already.
    pub(crate) fn own_signal(&self) -> Option<String> {
        let is_stopped = self.stop.is_some_and(|stop| stop.load(Relaxed));
        (is_stopped && self.stopping.is_none()).then(|| trueio_run::signal_received().unwrap_or("a request").to_owned())
    }

    /// Ends this rank's workers.
    pub(crate) fn stop_here(&mut self, reason: String) {
        if self.stopping.is_none() {
            self.stopping = Some(reason);
        }
        if let Some(stop) = self.stop {
            stop.store(true, Relaxed);
        }
    }

    /// Lets evidence count the I/O of these processes, ranks on this kernel, as that of the run.
    pub(crate) fn set_peers(processes: &[ProcessId]) {
        let processes: Vec<_> = processes.iter().map(|process| process.get()).collect();
        trueio_evidence::set_peers(&processes);
    }

    /// Waits until an instant of this rank's clock; returns how much later it goes on, in nanoseconds.
    pub(crate) fn wait_for_start(&self, at_ns: i64) -> u64 {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        // A rank that spins on a processor that another one needs delays that one.
        self.clock.wait_until(at_ns, processors >= self.neighbours);
        (self.clock.now_ns() - at_ns).max(0) as u64
    }
}

/// A rank's part in the star.
#[derive(Debug)]
pub(crate) enum Role {
    First(First),
    Other(Other),
}

/// How a phase goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum After {
    Next,
    End,
}

impl Member {
    /// Connects this process to the other ranks; `None`: it is alone. `notify` gets a sentence when ranks are late or not accepted.
    ///
    /// # Errors
    /// A rank is missing or there twice, or rank 0 cannot be reached.
    pub fn join(launched: Launched, limit: Limit, notify: &dyn Fn(&str)) -> Result<Option<Self>, StarError> {
        Self::join_with(launched, limit, Clock::monotonic(), notify)
    }

    /// The same with another clock, for tests.
    ///
    /// # Errors
    /// As [`Member::join`].
    pub fn join_with(
        launched: Launched,
        limit: Limit,
        clock: Clock,
        notify: &dyn Fn(&str),
    ) -> Result<Option<Self>, StarError> {
        let (space, rank, size, launcher, star) = match launched {
            Launched::Alone => return Ok(None),
            Launched::InKeySpace(mut space) => {
                let star = star::through_key_space(space.as_mut(), limit, notify)
                    .inspect_err(|_| space.abort(EXIT_UNREACHABLE))?;
                let (rank, size, launcher) = (space.rank(), space.size(), space.launcher());
                (Some(space), rank, size, launcher, star)
            }
            Launched::ByVariables(rendezvous) => {
                let star = star::by_variables(&rendezvous, limit, notify)?;
                (None, rendezvous.rank, rendezvous.size, "variables".to_owned(), star)
            }
        };
        let shared = Shared {
            rank,
            size,
            host: host_name(),
            boot_id: boot_id(),
            launcher,
            clock,
            limit,
            stop: None,
            stopping: None,
            phase_count: 0,
            neighbours: 1,
            host_stride: 1,
            reached: BTreeMap::new(),
        };
        let role = match star {
            Star::Hub(hub) => Role::First(First::new(hub)),
            Star::Spoke(link) => Role::Other(Other::new(link)),
        };
        Ok(Some(Self { shared, role, space }))
    }

    /// Returns the rank, from 0.
    pub fn rank(&self) -> u32 {
        self.shared.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.shared.size
    }

    /// Returns this rank's place among the others; known after [`Member::agree`].
    pub fn place(&self) -> Place {
        let Shared { rank, size, host, host_stride, .. } = &self.shared;
        Place { rank: *rank, size: *size, host: host.clone(), host_stride: *host_stride }
    }

    /// Returns why rank 0 is gone, on a rank that outlived it.
    pub fn orphaned(&self) -> Option<&str> {
        match &self.role {
            Role::First(_) => None,
            Role::Other(other) => other.orphaned(),
        }
    }

    /// Returns true for rank 0, which prints and stores the results.
    pub fn is_first(&self) -> bool {
        self.shared.rank == 0
    }

    /// Agrees with the other ranks on the command and its jobs; `jobs` is an error if this rank could not read them.
    ///
    /// # Errors
    /// The ranks refused.
    pub fn agree(&mut self, kind: &str, jobs: Result<&[JobSpec], String>) -> Result<(), Refused> {
        let hello = Hello {
            version: Name::cut(env!("CARGO_PKG_VERSION")),
            host: Name::cut(&self.shared.host),
            boot_id: Name::cut(&self.shared.boot_id),
            process: ProcessId::own(),
            size: self.shared.size,
            kind: Name::cut(kind),
            jobs: jobs.map(JobText::of).map_err(|text| Reason::cut(&text)),
        };
        match &mut self.role {
            Role::First(first) => first.agree(&mut self.shared, hello),
            Role::Other(other) => other.agree(&mut self.shared, hello),
        }
    }

    /// Agrees that all ranks could plan the jobs. `plan` is the number of this rank's phases, or its refusal.
    ///
    /// # Errors
    /// The ranks refused.
    pub fn planned(&mut self, plan: Result<usize, String>) -> Result<(), Refused> {
        match &mut self.role {
            Role::First(first) => first.planned(&mut self.shared, plan),
            Role::Other(other) => other.planned(&mut self.shared, plan),
        }
    }

    /// Waits until the workers of all ranks are ready, and compares the clocks.
    pub(crate) fn meet(&mut self) {
        match &mut self.role {
            Role::First(first) => first.meet(&mut self.shared),
            Role::Other(other) => other.meet(&mut self.shared),
        }
    }

    /// Waits for the agreed start; returns how late this rank was.
    pub(crate) fn start(&mut self) -> u64 {
        match &mut self.role {
            Role::First(first) => first.start(&mut self.shared),
            Role::Other(other) => other.start(&mut self.shared),
        }
    }

    /// Looks for messages without waiting: whether the run is ending.
    pub(crate) fn look(&mut self) {
        match &mut self.role {
            Role::First(first) => first.look(&mut self.shared),
            Role::Other(other) => other.look(&mut self.shared),
        }
    }

    /// Reports that the work of this rank came forward to those that may wait for it: how far, in a unit that grows.
    pub(crate) fn report_work(&mut self, done: u64, is_before: bool) {
        match &mut self.role {
            Role::First(first) => first.report_work(&mut self.shared),
            Role::Other(other) => other.report_work(&mut self.shared, done, is_before),
        }
    }

    /// Sends the results so far to rank 0, which has its own.
    pub(crate) fn send_sample(&mut self, sample: Sample) {
        if let Role::Other(other) = &mut self.role {
            other.send_sample(&mut self.shared, sample);
        }
    }

    /// Returns the latest results so far of each other rank that have come since the last call.
    pub(crate) fn take_samples(&mut self) -> Vec<RankSample> {
        match &mut self.role {
            Role::First(first) => first.take_samples(),
            Role::Other(_) => Vec::new(),
        }
    }

    /// Sends or collects the results of phase `index`. `length` is how long ranks may still measure; `None`: that depends on their
    /// work, of which they report how far it came.
    pub(crate) fn finish_phase(&mut self, index: usize, done: Done, length: Option<Duration>, is_last: bool) -> After {
        match &mut self.role {
            Role::First(first) => first.finish_phase(&mut self.shared, index, done, length, is_last),
            Role::Other(other) => other.finish_phase(&mut self.shared, done, length),
        }
    }

    /// Lets `stop` end this rank's work, and other ranks set it when the run ends early.
    pub fn watch(&mut self, stop: &'static AtomicBool) {
        self.shared.stop = Some(stop);
    }

    /// Returns the time of this rank's clock, in nanoseconds.
    pub fn now_ns(&self) -> i64 {
        self.shared.clock.now_ns()
    }

    /// Returns the host of each rank; empty on other ranks than 0.
    pub fn hosts(&self) -> BTreeMap<u32, String> {
        match &self.role {
            Role::First(first) => first.hosts(),
            Role::Other(_) => BTreeMap::new(),
        }
    }

    /// Returns what is to be added to times of another rank's clock for rank 0's, in nanoseconds; 0 on other ranks than 0.
    pub fn offset_ns(&self, rank: u32) -> i64 {
        match &self.role {
            Role::First(first) => first.offset_ns(rank),
            Role::Other(_) => 0,
        }
    }

    /// Returns how the run ends early, if it does: on rank 0 by which rank's failure or signal.
    pub fn early_end(&self) -> Option<Outcome> {
        let reason = self.shared.stopping.clone()?;
        Some(match &self.role {
            Role::First(First { failure: Some(outcome), .. }) => outcome.clone(),
            _ => Outcome::Interrupted { signal: reason },
        })
    }

    /// Ends the run on all ranks, because this one cannot go on.
    pub fn fail(&mut self, outcome: &Outcome) {
        match &mut self.role {
            Role::First(first) => first.fail(&mut self.shared, outcome),
            Role::Other(other) => other.fail(&mut self.shared, outcome),
        }
    }

    /// Collects a value of each rank on rank 0, which combines them into one. All ranks return that one, equal to the last bit. Nothing is sent
    /// before rank 0 gets here. `within` is how much longer than an answer other ranks may take; `is_valid` is false for a value that no rank
    /// sends, which ends the run. `None`: the run is ending.
    pub fn combine<T: Serialize + DeserializeOwned, R: Serialize + DeserializeOwned>(
        &mut self,
        own: &T,
        within: Duration,
        is_valid: impl Fn(&T) -> bool,
        make: impl FnOnce(&Self, BTreeMap<u32, T>) -> R,
    ) -> Option<R> {
        let own = serde_json::to_string(own).expect("values of ranks are JSON");
        let limit = Limit::new(within + self.shared.limit.length());
        let made = match &mut self.role {
            Role::Other(other) => other.combine(&mut self.shared, own, limit)?,
            Role::First(first) => {
                let values = first.collect(&mut self.shared, own, limit)?;
                let read = |(rank, text): (u32, String)| match serde_json::from_str::<T>(&text) {
                    Ok(value) if is_valid(&value) => Ok((rank, value)),
                    Ok(_) => Err(format!("{}: it sent a value that is out of range", first.name_of(rank))),
                    Err(error) => {
                        let why = cut(&error.to_string());
                        Err(format!("{}: it sent a value that cannot be read: {why}", first.name_of(rank)))
                    }
                };
                let values = values.into_iter().map(read).collect::<Result<_, String>>();
                let made = values.map(|values| serde_json::to_string(&make(self, values)).expect("it is JSON"));
                let Role::First(first) = &mut self.role else { unreachable!("a rank keeps its role") };
                first.answer(&mut self.shared, made)?
            }
        };
        // Rank 0 reads its own text, too: a number may change by its last bit on the way.
        serde_json::from_str(&made).ok()
    }

    /// Ends the run on all ranks with rank 0's exit code, which is returned.
    pub fn end(mut self, code: u8) -> u8 {
        let code = match &mut self.role {
            Role::First(first) => first.end(code),
            Role::Other(other) => other.end(&mut self.shared),
        };
        if let Some(mut space) = self.space.take() {
            // The results are complete; a launcher that does not answer changes nothing about them.
            let _ = space.finish(Limit::new(std::time::Duration::from_secs(5)));
        }
        code
    }
}

/// Exit code of a process that cannot reach the other ranks (EX_TEMPFAIL of sysexits.h).
pub const EXIT_UNREACHABLE: u8 = 75;

impl OwnSpan {
    /// A span that begins and ends now.
    pub(crate) fn at(now_ns: i64) -> Self {
        Self { begin_ns: now_ns, end_ns: now_ns, late_ns: 0 }
    }
}

/// Returns this host's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the identifier of the running kernel; empty: unknown.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod silent;
#[cfg(test)]
mod tests;
