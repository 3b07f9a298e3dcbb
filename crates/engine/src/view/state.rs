//! The state of a worker's loop.

use super::{Batch, Outcome, Payload, Queue, Schedule, StepQueue};
use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::context::WorkerContext;
use crate::engines::{Completion, Engine};
use crate::operations::operations_and_single;
use crate::priority::PriorityRecorder;
use crate::recorder::{Recorder, WorkerReport};
use crate::target::TargetFile;
use crate::usage::usage_between;
use std::ops::Range;
use trueio_model::{EngineKind, OpKind, ThreadUsage};

/// The state of a worker's loop.
#[derive(Debug)]
pub(crate) struct LoopState<'a> {
    pub(crate) context: &'a WorkerContext<'a>,
    pub(crate) steps: StepQueue,
    pub(crate) queue: Queue,
    pub(crate) payload: Payload,
    pub(crate) completions: Box<[Completion]>,
    pub(crate) batch: Batch,
    pub(crate) time: Schedule,
    pub(crate) recorder: Recorder,
    pub(crate) outcome: Outcome,
    /// The only operation that the job does, if there is one.
    pub(crate) single_op: Option<OpKind>,
    /// What the thread had used when the measured part began.
    pub(crate) usage_from: ThreadUsage,
    /// Parts of files that were emptied, until all stages are notified.
    pub(crate) emptied: Vec<(u16, Range<u64>)>,
}

impl<'a> LoopState<'a> {
    /// The state before the start. The engine was made over `pool`'s region. `fault`: why the job cannot begin.
    pub(crate) fn new<E: Engine>(
        context: &'a WorkerContext<'a>,
        clock: &dyn Clock,
        pool: Buffers,
        steps: StepQueue,
        fault: Option<String>,
    ) -> Self {
        let plan = context.plan;
        let depth = plan.queue.depth as usize;
        assert!(depth > 0 && (!E::BLOCKS || depth == 1), "the plan gives blocking engines one slot");
        let (ops, single_op) = operations_and_single(plan);
        let complete_max = match plan.queue.complete_max {
            0 => depth,
            most => (most as usize).min(depth),
        };
        let mut recorder = Recorder::new(&ops, plan.is_paced());
        recorder.priorities = PriorityRecorder::new(plan);
        let shares_time = E::KIND == EngineKind::IoUring
            && plan.queue.submit_batch.is_none()
            && single_op == Some(OpKind::Read)
            && context.log.is_none()
            && context.trace.is_none()
            && plan.priorities.is_empty()
            && context.files.iter().all(is_buffered);
        Self {
            context,
            steps,
            queue: Queue::new(depth),
            payload: Payload::new(plan, context.worker, E::KIND, pool, ops.contains(&OpKind::Write)),
            completions: vec![Completion::NONE; complete_max].into(),
            batch: Batch::new(&plan.queue, shares_time),
            time: Schedule::new(clock),
            recorder,
            outcome: Outcome::new(fault),
            single_op,
            usage_from: ThreadUsage::default(),
            emptied: Vec::new(),
        }
    }

    /// Returns the completions that the loop waits for when the queue is full.
    pub(crate) fn complete_min(&self) -> usize {
        (self.context.plan.queue.complete_min.max(1) as usize).min(self.completions.len())
    }

    /// Returns what was counted so far. Only right after the end of an interval.
    pub(crate) fn report_so_far(&self, elapsed_ns: u64, has_submission: bool) -> WorkerReport {
        let (ops, series) = self.recorder.so_far(has_submission);
        WorkerReport {
            ops,
            series,
            elapsed_ns,
            threads: usage_between(&self.usage_from, &self.context.usage(), elapsed_ns),
            queue: has_submission.then_some(self.recorder.queue),
            failures: self.outcome.failures.clone(),
            ..WorkerReport::empty()
        }
    }
}

/// Returns true if a file was opened without O_DIRECT.
fn is_buffered(target: &TargetFile) -> bool {
    rustix::fs::fcntl_getfl(&*target.file).is_ok_and(|flags| !flags.contains(rustix::fs::OFlags::DIRECT))
}
