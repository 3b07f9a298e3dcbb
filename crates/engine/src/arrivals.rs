//! The arrival schedule of a paced job: when each I/O is due.
//!
//! An open loop issues by the schedule, not when the last I/O completed: the i-th I/O has a due time of its own, in
//! nanoseconds, whatever the device does. If the device stalls, the I/Os that become due meanwhile are issued late, and
//! their latency from the intended start shows it.
//!
//! Poisson distances are drawn as `−ln(1 − u) / rate` in floating point and summed in nanoseconds,
//! so that a rate of 600,000 a second is one (whole microseconds would make it 1,000,000 or 500,000).

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::{Arrivals, JobPlan, OpKind, worker_seed};

/// A worker's arrival schedule: one for all I/Os, or one of reads and one of writes. The I/O that is due first then
/// comes next. If only reads or only writes have a rate, the job's mix decides, and the others replace one that is not due yet.
#[derive(Debug, Clone)]
pub(crate) struct ArrivalSchedule {
    all: Schedule,
    of_writes: Option<Schedule>,
    /// What has no rate.
    free: Option<OpKind>,
    /// A trim comes right before its write, which has the due time.
    trims_first: bool,
}

#[derive(Debug, Clone)]
struct Schedule {
    rng: Xoshiro256PlusPlus,
    is_poisson: bool,
    /// Nanoseconds per I/O, or per byte.
    ns_each: f64,
    is_per_byte: bool,
    /// When the next I/O is due, in nanoseconds since the start.
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

impl ArrivalSchedule {
    /// Returns the schedule of a worker; `None` if the job is a closed loop.
    pub(crate) fn new(plan: &JobPlan, worker: u32) -> Option<Self> {
        let pace = plan.pace?;
        let (rate, is_per_byte) = match (pace.ios_per_s, pace.bytes_per_s) {
            (Some(rate), _) => (rate, false),
            (None, rate) => (rate?, true),
        };
        let schedule = |rate: f64, seed: u64| Schedule {
            rng: Xoshiro256PlusPlus::seed_from_u64(worker_seed(plan.seed, worker) ^ seed),
            is_poisson: pace.arrivals == Arrivals::Poisson,
            ns_each: if rate > 0.0 { 1e9 / rate } else { 0.0 },
            is_per_byte,
            next_ns: 0.0,
        };
        let free = match pace.of_writes {
            Some(writes) if writes <= 0.0 => Some(OpKind::Write),
            Some(_) if rate <= 0.0 => Some(OpKind::Read),
            _ => None,
        };
        assert!(free.is_some() || rate > 0.0, "the plan holds rates above 0");
        let of_writes = pace.of_writes.map(|rate| schedule(rate, 0xca1e_2da6));
        let trims_first = plan.pattern.steps.trims_first;
        Some(Self { all: schedule(rate, 0xca1e_2da5), of_writes, free, trims_first })
    }

    /// True if reads and writes are not on one schedule.
    pub(crate) fn chooses_ops(&self) -> bool {
        self.of_writes.is_some()
    }

    /// Returns true if the next operation depends on the time at which it is chosen.
    pub(crate) fn depends_on_time(&self) -> bool {
        self.free.is_some()
    }

    /// Returns the next operation at `now_ns` of a job that reads and writes on two schedules; `drawn` is the operation
    /// drawn from its mix, and `has_both` whether the mix has both.
    pub(crate) fn next_op(&self, now_ns: u64, drawn: impl FnOnce() -> OpKind, has_both: bool) -> OpKind {
        let of_writes = self.of_writes.as_ref().unwrap_or(&self.all);
        let Some(free) = self.free else {
            return if of_writes.next_ns < self.all.next_ns { OpKind::Write } else { OpKind::Read };
        };
        let paced = if free == OpKind::Write { &self.all } else { of_writes };
        match drawn() {
            drawn if drawn != free && has_both && paced.next_ns > now_ns as f64 => free,
            drawn => drawn,
        }
    }

    /// When the next I/O, of `bytes`, is due, in nanoseconds since the start; sets the one after. `None`: whenever it comes.
    pub(crate) fn next(&mut self, op: OpKind, bytes: u32) -> Option<u64> {
        match &mut self.of_writes {
            _ if self.free == Some(op) => None,
            _ if self.trims_first && op == OpKind::Trim => Some(self.all.next_ns as u64),
            Some(writes) if op == OpKind::Write => Some(writes.next(bytes)),
            _ => Some(self.all.next(bytes)),
        }
    }

    /// Returns how many I/Os were due by `now_ns` and not issued; `mean_bytes` returns the mean size of those of an
    /// operation, or of all. With equal distances the number is exact; of Poisson arrivals it is the expected one.
    pub(crate) fn backlog(&self, now_ns: u64, mean_bytes: impl Fn(Option<OpKind>) -> f64) -> u64 {
        match &self.of_writes {
            None => self.all.backlog(now_ns, mean_bytes(None)),
            Some(writes) => {
                let of = |op, schedule: &Schedule| match self.free == Some(op) {
                    true => 0,
                    false => schedule.backlog(now_ns, mean_bytes(Some(op))),
                };
                of(OpKind::Read, &self.all) + of(OpKind::Write, writes)
            }
        }
    }
}
