//! Ends jobs that have become steady by fio's definition (`steadystate`).
//!
//! Workers report what they did in each span; jobs that are reported as one group are judged as one, by what all of them
//! did. When the window is full, the criterion is evaluated after each span, and a span that meets it ends them all.
//!
//! Unlike [`crate::settle`] nothing is measured afterwards: the figures are those of the whole run, as in fio, and the
//! window was chosen because it is flat.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_engine::{SpanFigures, SpanJudge};
use trueio_model::{CriterionPlan, CriterionRecord, CriterionSpan, CriterionVariable, Grouping, JobPlan};

/// Evaluates the criterion for the workers of one group.
#[derive(Debug)]
pub(crate) struct Judge {
    plan: CriterionPlan,
    members: u32,
    is_over: AtomicBool,
    state: Mutex<JudgeState>,
}

/// The spans of a group that the criterion uses.
#[derive(Debug)]
struct JudgeState {
    /// Spans that some workers have not reported yet, by their number.
    pending: BTreeMap<u64, PendingSpan>,
    /// For each worker that has ended: the span that it would have reported next.
    left: Vec<u64>,
    window: VecDeque<CriterionSpan>,
    record: CriterionRecord,
}

/// A span that some workers have not reported yet.
#[derive(Debug, Clone, Copy, Default)]
struct PendingSpan {
    /// Workers that have reported it.
    workers: u32,
    /// I/Os of those workers, and the sum of their latencies.
    figures: SpanFigures,
    /// Sum of the workers' rates.
    ios_per_s: f64,
    bytes_per_s: f64,
}

impl Judge {
    fn new(plan: CriterionPlan) -> Self {
        let record =
            CriterionRecord { is_attained: false, value: 0.0, deviation_max: 0.0, slope: 0.0, spans: Vec::new() };
        let state = JudgeState { pending: BTreeMap::new(), left: Vec::new(), window: VecDeque::new(), record };
        Self { plan, members: 0, is_over: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Returns the result so far.
    pub(crate) fn record(&self) -> CriterionRecord {
        let state = self.lock();
        CriterionRecord { spans: state.window.iter().copied().collect(), ..state.record.clone() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, JudgeState> {
        self.state.lock().expect("no thread panics while judging")
    }

    /// Takes the spans that every running worker has reported.
    fn take_complete(&self, state: &mut JudgeState) {
        while let Some((&index, &PendingSpan { workers, figures, ios_per_s, bytes_per_s })) =
            state.pending.first_key_value()
        {
            let left = state.left.iter().filter(|from| **from <= index).count() as u32;
            if workers + left < self.members || self.is_over.load(Relaxed) {
                return;
            }
            state.pending.pop_first();
            let latency_ns =
                if figures.io_count > 0 { figures.latency_sum_ns as f64 / figures.io_count as f64 } else { 0.0 };
            state.window.push_back(CriterionSpan { ios_per_s, bytes_per_s, latency_ns });
            let length = (self.plan.window_ns / self.plan.span_ns.max(1)) as usize;
            if state.window.len() > length {
                state.window.pop_front();
            }
            if state.window.len() == length {
                self.judge(state);
            }
        }
    }

    fn judge(&self, state: &mut JudgeState) {
        let rule = &self.plan.criterion;
        let value = |span: &CriterionSpan| match rule.variable {
            CriterionVariable::Ios => span.ios_per_s,
            CriterionVariable::Bytes => span.bytes_per_s,
            CriterionVariable::Latency => span.latency_ns,
        };
        let values: Vec<f64> = state.window.iter().map(value).collect();
        // A window without I/O is not steady.
        let Some((fit, value, is_attained)) = trueio_stats::criterion(rule, &values) else { return };
        state.record.value = value;
        match rule.is_slope {
            true => state.record.slope = fit.slope * fit.mean,
            false => state.record.deviation_max = fit.deviation * fit.mean,
        }
        state.record.is_attained = is_attained;
        if is_attained {
            self.is_over.store(true, Relaxed);
        }
    }
}

impl SpanJudge for Judge {
    fn span(&self, index: u64, figures: SpanFigures) -> bool {
        let mut state = self.lock();
        let pending = state.pending.entry(index).or_default();
        let per_s = |count: u64| count as f64 * 1e9 / figures.elapsed_ns.max(1) as f64;
        pending.workers += 1;
        pending.ios_per_s += per_s(figures.io_count);
        pending.bytes_per_s += per_s(figures.byte_count);
        pending.figures.io_count += figures.io_count;
        pending.figures.latency_sum_ns += figures.latency_sum_ns;
        self.take_complete(&mut state);
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    fn leaves(&self, index: u64) {
        let mut state = self.lock();
        state.left.push(index);
        if state.left.len() < self.members as usize {
            self.take_complete(&mut state);
        }
    }
}

/// The judges of a phase, and whose spans each worker's are, job by job.
#[derive(Debug, Default)]
pub(crate) struct Judges {
    judges: Vec<Judge>,
    /// Of each worker, in the order of the jobs.
    of: Vec<Option<usize>>,
}

impl Judges {
    /// Jobs that are reported as one group are judged as one, as are the workers of a job, unless they are reported
    /// each by itself.
    pub(crate) fn of(jobs: &[&JobPlan]) -> Self {
        let mut judges = Self::default();
        let mut is_group_open = false;
        for job in jobs {
            if !job.is_measured() {
                // It does no I/O that could become steady, and no other job waits for it.
                judges.of.extend((0..job.workers).map(|_| None));
                continue;
            }
            let Some(plan) = job.control.criterion else {
                judges.of.extend((0..job.workers).map(|_| None));
                is_group_open = false;
                continue;
            };
            let is_grouped = job.output.grouping == Grouping::Group;
            if !(is_group_open && is_grouped && !job.output.new_group) {
                judges.judges.push(Judge::new(plan));
            }
            for worker in 0..job.workers {
                if job.output.grouping == Grouping::Worker && worker > 0 {
                    judges.judges.push(Judge::new(plan));
                }
                let last = judges.judges.len() - 1;
                judges.judges[last].members += 1;
                judges.of.push(Some(last));
            }
            is_group_open = is_grouped;
        }
        judges
    }

    /// The judge of a worker, numbered over all jobs.
    pub(crate) fn get(&self, worker: usize) -> Option<&Judge> {
        self.judges.get((*self.of.get(worker)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::Criterion;

    fn judge(members: u32, is_slope: bool, limit: f64) -> Judge {
        let criterion = Criterion { variable: CriterionVariable::Ios, is_slope, limit, is_percent: true };
        let plan = CriterionPlan { criterion, window_ns: 3_000, span_ns: 1_000, ramp_ns: 0 };
        Judge { members, ..Judge::new(plan) }
    }

    fn figures(io_count: u64) -> SpanFigures {
        SpanFigures { io_count, byte_count: io_count * 10, latency_sum_ns: 7 * u128::from(io_count), elapsed_ns: 1_000 }
    }

    #[test]
    fn the_last_window_is_judged_after_each_span_and_the_first_that_is_steady_ends_it() {
        let judge = judge(1, false, 10.0);
        let is_over: Vec<bool> =
            [50, 80, 100, 101, 99, 98].iter().zip(0..).map(|(n, i)| judge.span(i, figures(*n))).collect();
        assert_eq!(is_over, [false, false, false, false, true, true]);
        let record = judge.record();
        assert!(record.is_attained && record.value < 1.01 && record.slope == 0.0, "{record:?}");
        assert_eq!(record.spans.iter().map(|s| (s.ios_per_s / 1e6).round()).collect::<Vec<_>>(), [100.0, 101.0, 99.0]);
        assert_eq!((record.spans[0].latency_ns, record.spans[0].bytes_per_s), (7.0, 1e9));
    }

    #[test]
    fn a_group_is_steady_by_what_all_of_it_did_and_one_that_ends_is_not_waited_for() {
        let judge = judge(2, true, 1.0);
        // The one falls as the other rises.
        for (index, count) in [(0, 10), (1, 20)] {
            assert!(!judge.span(index, figures(count)));
            assert!(!judge.span(index, figures(30 - count)));
        }
        assert!(!judge.span(2, figures(30)), "the other has not reported this span");
        judge.leaves(2);
        assert!(judge.is_over(), "30 a span, three times");
        assert_eq!(judge.record().slope, 0.0);
    }

    /// Goal: a job without I/O is no member, and those before and after it stay one group.
    #[test]
    fn jobs_without_io_are_not_waited_for() {
        use trueio_model::EngineKind;
        let criterion = judge(0, false, 10.0).plan;
        let job = |engine, creates_only| {
            let mut job = JobPlan::plain(engine, 1 << 20);
            job.control.criterion = Some(criterion);
            job.handling.creates_only = creates_only;
            job.output.grouping = Grouping::Group;
            job
        };
        let jobs = [
            job(EngineKind::Null, false),
            job(EngineKind::Exec, false),
            job(EngineKind::Cpuio, false),
            job(EngineKind::Psync, true),
            job(EngineKind::Null, false),
        ];
        let judges = Judges::of(&jobs.iter().collect::<Vec<_>>());
        assert_eq!(judges.judges.iter().map(|judge| judge.members).collect::<Vec<_>>(), [2]);
        assert_eq!(judges.of, [Some(0), None, None, None, Some(0)]);
    }

    #[test]
    fn without_io_nothing_is_steady() {
        let judge = judge(1, true, 50.0);
        assert!((0..9).all(|index| !judge.span(index, figures(0))));
        assert!(!judge.record().is_attained);
        judge.leaves(9);
        assert!(!judge.is_over());
    }
}
