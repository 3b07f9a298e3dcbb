//! When a paced I/O is due.
//!
//! An open loop issues by the calendar, not when the last I/O came back: the i-th I/O has a moment
//! of its own, in nanoseconds, whatever the device does. If the device stands still, the I/Os that
//! fall due meanwhile are issued late and their latency from the intended moment says so.
//!
//! Poisson distances are drawn as `−ln(1 − u) / rate` in floating point and summed in nanoseconds,
//! so that a rate of 600,000 a second is one (whole microseconds would make it 1,000,000 or 500,000).

use crate::pattern::worker_seed;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::{Arrivals, JobPlan, OpKind};

/// A worker's calendar: one schedule for all I/Os, or one of reads and one of writes. Which of these comes next is then said
/// by the schedules: the one whose I/O is due first.
#[derive(Debug, Clone)]
pub(crate) struct Calendar {
    all: Schedule,
    of_writes: Option<Schedule>,
}

#[derive(Debug, Clone)]
struct Schedule {
    rng: Xoshiro256PlusPlus,
    is_poisson: bool,
    /// Nanoseconds per I/O, or per byte.
    ns_each: f64,
    is_per_byte: bool,
    /// The next I/O's moment, in nanoseconds since the start.
    next_ns: f64,
}

impl Schedule {
    fn next(&mut self, bytes: u32) -> u64 {
        let due = self.next_ns;
        let distance = self.ns_each * if self.is_per_byte { f64::from(bytes) } else { 1.0 };
        let factor = if self.is_poisson { -(1.0 - self.rng.random::<f64>()).ln() } else { 1.0 };
        self.next_ns += distance * factor;
        due as u64
    }

    fn backlog(&self, now_ns: u64, mean_bytes: f64) -> u64 {
        let distance = self.ns_each * if self.is_per_byte { mean_bytes } else { 1.0 };
        ((now_ns as f64 - self.next_ns) / distance).ceil().max(0.0) as u64
    }
}

impl Calendar {
    /// The calendar of a worker; `None` if the job is a closed loop.
    pub(crate) fn new(plan: &JobPlan, worker: u32) -> Option<Self> {
        let pace = plan.pace?;
        let (rate, is_per_byte) = match (pace.ios_per_s, pace.bytes_per_s) {
            (Some(rate), _) => (rate, false),
            (None, rate) => (rate?, true),
        };
        let schedule = |rate: f64, seed: u64| {
            assert!(rate > 0.0, "the plan holds rates above 0");
            Schedule {
                rng: Xoshiro256PlusPlus::seed_from_u64(worker_seed(plan, worker) ^ seed),
                is_poisson: pace.arrivals == Arrivals::Poisson,
                ns_each: 1e9 / rate,
                is_per_byte,
                next_ns: 0.0,
            }
        };
        let of_writes = pace.of_writes.map(|rate| schedule(rate, 0xca1e_2da6));
        Some(Self { all: schedule(rate, 0xca1e_2da5), of_writes })
    }

    /// What is due next, if reads and writes have schedules of their own.
    pub(crate) fn next_op(&self) -> Option<OpKind> {
        let writes = self.of_writes.as_ref()?;
        Some(if writes.next_ns < self.all.next_ns { OpKind::Write } else { OpKind::Read })
    }

    /// When the next I/O, of `bytes`, is due, in nanoseconds since the start; sets the one after.
    pub(crate) fn next(&mut self, op: OpKind, bytes: u32) -> u64 {
        match &mut self.of_writes {
            Some(writes) if op == OpKind::Write => writes.next(bytes),
            _ => self.all.next(bytes),
        }
    }

    /// How many I/Os were due by `now_ns` and were not taken; `mean_bytes` says how large those of an operation, or all,
    /// are on average. With equal distances the number is exact; of Poisson arrivals it is the expected one.
    pub(crate) fn backlog(&self, now_ns: u64, mean_bytes: impl Fn(Option<OpKind>) -> f64) -> u64 {
        match &self.of_writes {
            None => self.all.backlog(now_ns, mean_bytes(None)),
            Some(writes) => {
                self.all.backlog(now_ns, mean_bytes(Some(OpKind::Read)))
                    + writes.backlog(now_ns, mean_bytes(Some(OpKind::Write)))
            }
        }
    }
}
