//! Shares of the I/Os with priorities of their own: which I/O has which, and how long each took.
//!
//! The engine draws when it writes an I/O's entry (`sqe.ioprio`, `iocb.aio_reqprio`) and remembers by slot what it
//! drew; the worker reads it when the I/O is complete. So neither requests nor the loop contain it, and a job
//! without such shares pays nothing.
//!
//! The same plan, seed and worker draw the same, in the order in which I/Os are submitted; offsets and sizes
//! are drawn elsewhere and stay what they are without priorities.
//!
//! Cannot see: whether a scheduler heeds a priority. The kernel takes it with the request, no more.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::{Histogram, IoPriority, JobPlan, LatencySet, OpKind, PriorityRecord, PriorityShare, mix64};

/// Draws priorities.
#[derive(Debug)]
pub(crate) struct Chooser {
    shares: Box<[PriorityShare]>,
    rng: Xoshiro256PlusPlus,
    /// What was drawn last for each slot: 0, or a share's number from 1.
    of_slot: Box<[u8]>,
}

impl Chooser {
    /// `None` without shares.
    pub(crate) fn new(shares: &[PriorityShare], seed: u64, depth: u32) -> Option<Box<Self>> {
        assert!(shares.len() < usize::from(u8::MAX), "the option's reader allows fewer");
        (!shares.is_empty()).then(|| {
            // Offsets come from the seed itself: what is drawn here has nothing to do with them.
            let rng = Xoshiro256PlusPlus::seed_from_u64(mix64(seed ^ 0x7072_696f));
            Box::new(Self { shares: shares.into(), rng, of_slot: vec![0; depth as usize].into() })
        })
    }

    /// Draws for an I/O; the kernel's number, 0 for the thread's own priority.
    #[cold]
    pub(crate) fn choose(&mut self, slot: u32, op: OpKind, length: u32) -> u16 {
        let mut left = None;
        let mut chosen = (0, 0);
        for (share, number) in self.shares.iter().zip(1..) {
            if share.op != op || share.length_bytes.is_some_and(|bytes| bytes != length) {
                continue;
            }
            let drawn = left.get_or_insert_with(|| self.rng.random_range(0..100_u8));
            if *drawn < share.percent {
                chosen = (number, share.priority.value());
                break;
            }
            *drawn -= share.percent;
        }
        self.of_slot[slot as usize] = chosen.0;
        chosen.1
    }

    /// The number of the share that the slot's I/O belongs to; 0: none.
    pub(crate) fn share_of(&self, slot: u32) -> u8 {
        self.of_slot[slot as usize]
    }
}

/// How long I/Os took, by priority.
#[derive(Debug)]
pub(crate) struct PriorityRecorder {
    kinds: Vec<(OpKind, PriorityRecord)>,
    /// The kind of the thread's own priority, of reads and of writes; then that of each share.
    of_thread: [Option<usize>; 2],
    of_share: Box<[usize]>,
}

impl PriorityRecorder {
    /// `None` if the job has no shares.
    pub(crate) fn new(plan: &JobPlan) -> Option<Box<Self>> {
        if plan.priorities.is_empty() {
            return None;
        }
        let mut kinds: Vec<(OpKind, PriorityRecord)> = Vec::new();
        let mut kind = |op: OpKind, priority: IoPriority| {
            let known = kinds.iter().position(|(known, record)| *known == op && record.priority == priority);
            known.unwrap_or_else(|| {
                kinds.push((op, PriorityRecord { priority, latency: empty(plan.is_paced()) }));
                kinds.len() - 1
            })
        };
        let own = of_thread(plan);
        let of_thread = [OpKind::Read, OpKind::Write]
            .map(|op| plan.priorities.iter().any(|share| share.op == op).then(|| kind(op, own)));
        let of_share = plan.priorities.iter().map(|share| kind(share.op, share.priority)).collect();
        Some(Box::new(Self { kinds, of_thread, of_share }))
    }

    fn kind(&self, op: OpKind, share: u8) -> Option<usize> {
        match (share.checked_sub(1), op) {
            (Some(share), _) => self.of_share.get(usize::from(share)).copied(),
            (None, OpKind::Read) => self.of_thread[0],
            (None, OpKind::Write) => self.of_thread[1],
            (None, _) => None,
        }
    }

    /// Counts an I/O of a share: total and completion latency, and from when it was due, if it was.
    #[cold]
    pub(crate) fn record(
        &mut self,
        op: OpKind,
        share: u8,
        total_ns: u64,
        completion_ns: u64,
        from_due_ns: Option<u64>,
    ) {
        let Some(kind) = self.kind(op, share) else { return };
        let latency = &mut self.kinds[kind].1.latency;
        latency.total.record(total_ns);
        latency.completion.record(completion_ns);
        if let Some(ns) = from_due_ns {
            latency.from_intended.record(ns);
        }
    }

    /// The priority of an I/O of a share.
    pub(crate) fn priority(&self, op: OpKind, share: u8) -> Option<IoPriority> {
        Some(self.kinds[self.kind(op, share)?].1.priority)
    }

    /// Forgets what was counted.
    pub(crate) fn clear(&mut self) {
        for (_, PriorityRecord { latency, .. }) in &mut self.kinds {
            [&mut latency.total, &mut latency.completion, &mut latency.from_intended]
                .into_iter()
                .for_each(Histogram::clear);
        }
    }

    /// What was counted of an operation.
    pub(crate) fn of(&self, op: OpKind) -> Vec<PriorityRecord> {
        self.kinds.iter().filter(|(of, _)| *of == op).map(|(_, record)| record.clone()).collect()
    }
}

/// The priority that the job gives its threads; `None` if it sets none.
pub(crate) fn of_thread(plan: &JobPlan) -> IoPriority {
    let own = plan.scheduling.io_priority;
    own.map_or_else(IoPriority::default, |(class, level)| IoPriority { class, level, hint: plan.scheduling.io_hint })
}

/// With counters for what [`PriorityRecorder::record`] records.
fn empty(is_paced: bool) -> LatencySet {
    LatencySet {
        submission: Histogram::new(),
        completion: Histogram::reserved(),
        total: Histogram::reserved(),
        from_intended: if is_paced { Histogram::reserved() } else { Histogram::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(op: OpKind, length_bytes: Option<u32>, percent: u8, level: u8) -> PriorityShare {
        PriorityShare { op, length_bytes, percent, priority: IoPriority { class: 2, level, hint: 0 } }
    }

    /// Goal: each share gets its part of the I/Os that it is of, and no others get any.
    /// Method: 100,000 draws of a fixed seed; a part may be off by 5 deviations of the binomial distribution.
    #[test]
    fn shares_are_drawn_in_their_proportions_and_by_kind_and_size() {
        let shares = [
            share(OpKind::Read, Some(4096), 30, 1),
            share(OpKind::Read, Some(4096), 20, 2),
            share(OpKind::Read, Some(8192), 100, 3),
            share(OpKind::Write, None, 1, 4),
        ];
        let mut chooser = Chooser::new(&shares, 7, 4).expect("there are shares");
        let draws = 100_000_u32;
        let mut count = |op, length| {
            let mut counts = [0_u32; 5];
            for i in 0..draws {
                let value = chooser.choose(i % 4, op, length);
                let share = chooser.share_of(i % 4);
                let expected = share.checked_sub(1).map_or(0, |at| shares[usize::from(at)].priority.value());
                assert_eq!(value, expected);
                counts[usize::from(share)] += 1;
            }
            counts
        };
        let is_near = |count: u32, percent: u32| {
            let (mean, p) = (f64::from(draws * percent) / 100.0, f64::from(percent) / 100.0);
            (f64::from(count) - mean).abs() <= 5.0 * (f64::from(draws) * p * (1.0 - p)).sqrt()
        };
        let small = count(OpKind::Read, 4096);
        assert!(is_near(small[1], 30) && is_near(small[2], 20), "{small:?}");
        assert_eq!(small[3..], [0, 0]);
        assert_eq!(count(OpKind::Read, 8192), [0, 0, 0, draws, 0]);
        assert_eq!(count(OpKind::Read, 512), [draws, 0, 0, 0, 0]);
        let writes = count(OpKind::Write, 123);
        assert!(is_near(writes[4], 1) && writes[1..4] == [0; 3], "{writes:?}");
    }

    #[test]
    fn the_same_seed_draws_the_same_and_no_shares_draw_nothing() {
        let shares = [share(OpKind::Read, None, 50, 0)];
        let draw = |seed| {
            let mut chooser = Chooser::new(&shares, seed, 1).expect("there are shares");
            (0..64).map(|_| chooser.choose(0, OpKind::Read, 512)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(Chooser::new(&[], 1, 1).is_none());
    }
}
