//! From rounds of slices to answers.
//!
//! For each metric and each side but the first: the logarithm of the ratio in every round, their
//! Hodges-Lehmann estimate and its interval; where slices are too short for a quantile, or a slice has no
//! value, whole rounds are resampled. Several sides share the allowed error by Holm's steps, for each metric.
//!
//! Limits: the metrics are not independent. Each metric is wrong in at most the stated share of comparisons; among
//! six metrics, some error is more likely.

use crate::sample::Sample;
use std::cell::RefCell;
use std::collections::BTreeMap;
use trueio_model::{Answer, Basis, Conclusion, Metric, Needs, Ratio, Verdict};
use trueio_stats::{
    Decision, Interval, bca, decide, hodges_lehmann, hodges_lehmann_estimate, holm_alphas, noise_floor, pairs_needed,
    quantile_within, sign_flip_p,
};

/// Samples that are drawn where pairs are resampled.
const DRAWS: usize = 2_000;
/// The share of slices that may be too short for their own quantile.
const SHORT_MAX: f64 = 0.1;
/// The share of contradicted slices from which on a side is contradicted.
pub(crate) const CONTRADICTED_MIN: f64 = 0.05;

/// The question about the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The margin: 0.05 for 5 %.
    pub margin: f64,
    /// How often an interval may miss at this look, all sides together.
    pub alpha: f64,
    /// How much wider intervals are now than at the last look.
    pub widening: f64,
    /// How long a round takes, in nanoseconds.
    pub round_ns: u64,
    /// What is resampled and flipped depends on this alone.
    pub seed: u64,
    /// True for the answers that are given: p and noise floor, which decide nothing, are worked out only then.
    pub is_final: bool,
}

/// The answers for every side but the first and every metric of `metrics`, in that order.
///
/// `rounds` holds one sample a side, in the sides' order; a round with another number of samples counts as
/// not there.
pub fn answers(rounds: &[Vec<Sample>], sides: usize, metrics: &[Metric], question: &Question) -> Vec<Answer> {
    let rounds: Vec<&[Sample]> = rounds.iter().map(Vec::as_slice).filter(|round| round.len() == sides).collect();
    let contradicted: Vec<Option<String>> = (0..sides).map(|side| contradiction(&rounds, side)).collect();
    let mut found: Vec<Vec<Answer>> = vec![Vec::new(); sides.saturating_sub(1)];
    for &metric in metrics {
        let series: Vec<Series<'_>> = (1..sides).map(|side| Series::of(&rounds, side, metric)).collect();
        // Resampling is slow, and Holm's steps need the same interval more than once.
        let known: RefCell<BTreeMap<(usize, u64), Option<Interval>>> = RefCell::default();
        let intervals = |index: usize, alpha: f64| {
            let key = (index, alpha.to_bits());
            if let Some(interval) = known.borrow().get(&key) {
                return *interval;
            }
            let interval = series[index].interval(alpha, question.seed);
            known.borrow_mut().insert(key, interval);
            interval
        };
        let alphas = holm_alphas(series.len(), question.alpha, |index, alpha| {
            intervals(index, alpha).is_some_and(|interval| interval.excludes(0.0))
        });
        for (index, (series, alpha)) in series.iter().zip(alphas).enumerate() {
            let side = index + 1;
            let objection = [0, side].into_iter().find_map(|side| contradicted[side].clone());
            found[index].push(series.answer(side, intervals(index, alpha), alpha, objection, question));
        }
    }
    found.into_iter().flatten().collect()
}

/// Why a side's figures do not stand; `None` if they do.
fn contradiction(rounds: &[&[Sample]], side: usize) -> Option<String> {
    let slices = || rounds.iter().map(|round| &round[side]);
    let bad: Vec<&Sample> = slices().filter(|s| s.verdict == Verdict::Contradicted).collect();
    if bad.is_empty() || (bad.len() as f64) < CONTRADICTED_MIN * rounds.len() as f64 {
        return None;
    }
    let checks: std::collections::BTreeSet<&str> =
        bad.iter().flat_map(|s| &s.objections).map(|objection| objection.check.as_str()).collect();
    let checks: Vec<&str> = checks.into_iter().collect();
    Some(format!("{} of {} slices are withheld because of {}", bad.len(), rounds.len(), checks.join(", ")))
}

/// The conclusion that a decision on a ratio is, for a metric.
pub(crate) fn conclusion_of(decision: Decision, metric: Metric) -> Conclusion {
    let up = metric.is_more_better();
    match decision {
        Decision::Larger if up => Conclusion::Better,
        Decision::Larger => Conclusion::Worse,
        Decision::Smaller if up => Conclusion::Worse,
        Decision::Smaller => Conclusion::Better,
        Decision::LargerSizeUnclear if up => Conclusion::BetterSizeUnclear,
        Decision::LargerSizeUnclear => Conclusion::WorseSizeUnclear,
        Decision::SmallerSizeUnclear if up => Conclusion::WorseSizeUnclear,
        Decision::SmallerSizeUnclear => Conclusion::BetterSizeUnclear,
        Decision::WithinMargin => Conclusion::Same,
        Decision::Unclear => Conclusion::CannotTell,
    }
}

/// One metric of one side compared with the first.
struct Series<'a> {
    rounds: &'a [&'a [Sample]],
    side: usize,
    metric: Metric,
    /// The logarithm of each round's ratio; `None` if they are to be resampled instead.
    log_ratios: Option<Vec<f64>>,
    /// Why there can be no answer at all.
    obstacle: Option<String>,
}

impl<'a> Series<'a> {
    fn of(rounds: &'a [&'a [Sample]], side: usize, metric: Metric) -> Self {
        let obstacle = obstacle(rounds, side, metric);
        let is_short = |of: usize| {
            rounds.iter().filter(|round| !round[of].supports(metric)).count() as f64 > SHORT_MAX * rounds.len() as f64
        };
        let log_ratios = if is_short(0) || is_short(side) {
            None
        } else {
            rounds.iter().map(|round| Some((round[side].value(metric)? / round[0].value(metric)?).ln())).collect()
        };
        Self { rounds, side, metric, log_ratios, obstacle }
    }

    /// The interval of the logarithm of the ratio; `None` if there is none at this α.
    fn interval(&self, alpha: f64, seed: u64) -> Option<Interval> {
        if self.obstacle.is_some() {
            return None;
        }
        match &self.log_ratios {
            Some(log_ratios) => hodges_lehmann(log_ratios, alpha),
            None if self.metric.quantile().is_some() => self.resampled_quantiles(alpha, seed),
            None => bca(self.rounds.len(), alpha, DRAWS, seed, |counts| {
                let total = |side: usize| {
                    let of = |sample: &Sample| match self.metric {
                        Metric::Bandwidth => sample.bytes_per_s,
                        // Per I/O: a slice without one adds its CPU time to nothing.
                        Metric::CpuPerIo => sample.cpu_ns_per_io.unwrap_or(0.0),
                        _ => sample.iops,
                    };
                    self.rounds.iter().zip(counts).map(|(round, n)| of(&round[side]) * f64::from(*n)).sum::<f64>()
                };
                Some((total(self.side) / total(0)).ln())
            }),
        }
    }

    /// The quantile of all latencies of the drawn rounds together, on both sides.
    fn resampled_quantiles(&self, alpha: f64, seed: u64) -> Option<Interval> {
        let q = self.metric.quantile()?;
        // The fewest I/Os that all rounds together must hold are those of one slice.
        let least = trueio_stats::slice_least_count(q)?;
        let of_side = |side: usize| -> Option<Pooled> {
            let pooled = Pooled::of(self.rounds.iter().map(|round| &round[side]));
            (pooled.total() >= least).then_some(pooled)
        };
        let (mut first, mut this) = (of_side(0)?, of_side(self.side)?);
        bca(self.rounds.len(), alpha, DRAWS, seed, |counts| {
            Some((this.quantile(counts, q)? / first.quantile(counts, q)?).ln())
        })
    }

    fn answer(
        &self,
        side: usize,
        interval: Option<Interval>,
        alpha: f64,
        objection: Option<String>,
        question: &Question,
    ) -> Answer {
        let pairs = self.rounds.len();
        let mut answer = Answer {
            side,
            metric: self.metric,
            conclusion: Conclusion::CannotTell,
            ratio: None,
            basis: Basis::Nothing,
            reason: None,
            needs: None,
            noise_floor: question.is_final.then(|| self.noise_floor()).flatten(),
        };
        if let Some(reason) = objection.or_else(|| self.obstacle.clone()) {
            answer.reason = Some(reason);
            return answer;
        }
        let needs = |pair_count: u64| Needs { pair_count, time_ns: pair_count.saturating_mul(question.round_ns) };
        let Some(interval) = interval.filter(is_shown) else {
            let least = match &self.log_ratios {
                Some(_) => trueio_stats::least_pairs(alpha).unwrap_or(usize::MAX),
                None => trueio_stats::BCA_PAIRS_MIN,
            };
            answer.reason = Some(match least.checked_sub(pairs).filter(|more| *more > 0) {
                Some(more) => {
                    answer.needs = Some(needs(more as u64));
                    let (unit, are) = if pairs == 1 { ("pair", "is") } else { ("pairs", "are") };
                    format!("{pairs} {unit} {are} too few, {least} are needed")
                }
                None if self.log_ratios.is_none() && self.metric.quantile().is_some() => {
                    "there are too few I/Os beyond this percentile".to_owned()
                }
                None => "there is no interval for these figures at this look".to_owned(),
            });
            return answer;
        };
        answer.basis = if self.log_ratios.is_some() { Basis::PairRatios } else { Basis::ResampledPairs };
        answer.ratio = Some(Ratio {
            estimate: interval.estimate.exp(),
            low: interval.low.exp(),
            high: interval.high.exp(),
            alpha,
            p: self
                .log_ratios
                .as_ref()
                .filter(|_| question.is_final)
                .and_then(|log_ratios| sign_flip_p(log_ratios, question.seed)),
            pair_count: pairs as u32,
        });
        answer.conclusion = conclusion_of(decide(&interval, question.margin), self.metric);
        if answer.conclusion == Conclusion::CannotTell {
            answer.needs = pairs_needed(&interval, question.margin, pairs, question.widening).map(needs);
            answer.reason = Some(format!(
                "the interval holds both no difference and one of more than {} %",
                figure_percent(question.margin)
            ));
        }
        answer
    }

    /// What the first side differs from itself by.
    fn noise_floor(&self) -> Option<f64> {
        self.log_ratios.as_ref()?;
        let values: Option<Vec<f64>> =
            self.rounds.iter().map(|round| Some(round[0].value(self.metric)?.ln())).collect();
        noise_floor(&values?)
    }
}

/// True if the ends of the interval of a ratio are numbers: e^700 is the last that is one.
pub(crate) fn is_shown(log_ratio: &Interval) -> bool {
    [log_ratio.estimate, log_ratio.low, log_ratio.high].iter().all(|v| v.abs() < 600.0)
}

/// A margin in percent without needless digits.
pub(crate) fn figure_percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Why two sides have no ratio of this metric, whatever their figures.
fn obstacle(rounds: &[&[Sample]], side: usize, metric: Metric) -> Option<String> {
    if rounds.is_empty() {
        return Some("nothing was measured".to_owned());
    }
    let has = |of: usize| rounds.iter().any(|round| round[of].value(metric).is_some());
    match (has(0), has(side)) {
        (false, false) => return Some("neither side has this figure".to_owned()),
        (false, true) => return Some("the first side does not have this figure".to_owned()),
        (true, false) => return Some("this side does not have this figure".to_owned()),
        (true, true) => {}
    }
    metric.quantile()?;
    let shape = |of: usize| {
        let mut joined = crate::sample::Shape::default();
        for sample in rounds.iter().map(|round| &round[of]) {
            joined.is_from_intended |= sample.shape.is_from_intended;
            joined.has_syncs |= sample.shape.has_syncs;
            joined.ops.iter_mut().zip(sample.shape.ops).for_each(|(a, b)| *a |= b);
        }
        joined
    };
    shape_obstacle(shape(0), shape(side))
}

/// Why latencies of these shapes are not of one kind.
pub(crate) fn shape_obstacle(first: crate::sample::Shape, this: crate::sample::Shape) -> Option<String> {
    let sentence = if first.is_from_intended != this.is_from_intended {
        "latencies of one side count from the due time of each I/O, those of the other from its submission"
    } else if first.ops != this.ops {
        "the sides do not make the same kinds of I/O"
    } else if first.has_syncs != this.has_syncs {
        "one side makes durable by sync calls of their own, whose time is not in its I/Os' latencies; compare I/Os a second"
    } else {
        return None;
    };
    Some(sentence.to_owned())
}

/// The latencies of one side's slices, ready to be put together over and over.
struct Pooled {
    /// Every bucket that occurs: (smallest, largest).
    edges: Vec<(u64, u64)>,
    /// For each slice: which buckets, and how many.
    slices: Vec<Vec<(u32, u64)>>,
    /// How many, by bucket: of the slices last put together.
    counts: Vec<u64>,
}

impl Pooled {
    fn of<'s>(samples: impl Iterator<Item = &'s Sample> + Clone) -> Self {
        let mut index: BTreeMap<(u64, u64), u32> =
            samples.clone().flat_map(|s| &s.buckets).map(|b| ((b.0, b.1), 0)).collect();
        index.values_mut().zip(0..).for_each(|(place, i)| *place = i);
        let slices = samples.map(|s| s.buckets.iter().map(|b| (index[&(b.0, b.1)], b.2)).collect()).collect();
        let edges: Vec<(u64, u64)> = index.into_keys().collect();
        Self { counts: vec![0; edges.len()], edges, slices }
    }

    fn total(&self) -> u64 {
        self.slices.iter().flatten().fold(0, |sum: u64, (_, n)| sum.saturating_add(*n))
    }

    fn quantile(&mut self, times: &[u32], q: f64) -> Option<f64> {
        self.counts.fill(0);
        for (slice, &times) in self.slices.iter().zip(times).filter(|(_, times)| **times > 0) {
            for &(bucket, n) in slice {
                let count = &mut self.counts[bucket as usize];
                *count = count.saturating_add(n.saturating_mul(u64::from(times)));
            }
        }
        let total = self.counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let buckets = self.edges.iter().zip(&self.counts).filter(|(_, n)| **n > 0).map(|(e, n)| (e.0, e.1, *n));
        quantile_within(buckets, total, q).filter(|v| *v > 0.0)
    }
}

/// The typical value of a metric over slices: of rates and CPU time the geometric mean, of latencies that of the
/// slices if they support it, otherwise of all I/Os together. `None` if there is none.
pub(crate) fn typical<'s>(samples: impl Iterator<Item = &'s Sample> + Clone, metric: Metric) -> Option<f64> {
    let count = samples.clone().count();
    let short = samples.clone().filter(|s| !s.supports(metric)).count();
    if count == 0 {
        return None;
    }
    if let (true, Some(q)) = (short as f64 > SHORT_MAX * count as f64, metric.quantile()) {
        let mut pooled = Pooled::of(samples);
        return (pooled.total() >= trueio_stats::slice_least_count(q)?)
            .then(|| pooled.quantile(&vec![1; count], q))
            .flatten();
    }
    let logs: Option<Vec<f64>> = samples.map(|s| Some(s.value(metric)?.ln())).collect();
    // The same kind of average as the ratio's: robust, in logarithms.
    hodges_lehmann_estimate(&logs?).map(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Shape;
    use proptest::prelude::*;
    use trueio_model::{EvidenceLevel, Histogram};

    fn sample(values: &[u64]) -> Sample {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&v| histogram.record(v));
        Sample {
            begin_ns: 0,
            iops: values.len() as f64,
            bytes_per_s: values.len() as f64 * 4096.0,
            cpu_ns_per_io: Some(1_000.0),
            io_count: values.len() as u64,
            buckets: histogram.buckets().collect(),
            shape: Shape::default(),
            verdict: Verdict::Supported,
            mark: trueio_model::Mark::Confirmed,
            level: EvidenceLevel::E2,
            objections: Vec::new(),
        }
    }

    fn question() -> Question {
        Question { margin: 0.05, alpha: 0.05, widening: 1.0, round_ns: 1, seed: 1, is_final: true }
    }

    proptest! {
        /// Slices that are put together have the quantiles of all their I/Os, each as often as its slice was drawn.
        #[test]
        fn pooled_quantiles_are_those_of_all_ios_sorted(
            slices in prop::collection::vec(prop::collection::vec(1u64..1_000_000_000, 1..60), 1..6),
            times in prop::collection::vec(0u32..4, 6),
            q in 0.01f64..0.999,
        ) {
            let samples: Vec<Sample> = slices.iter().map(|s| sample(s)).collect();
            let times = &times[..slices.len()];
            let mut all: Vec<u64> =
                slices.iter().zip(times).flat_map(|(s, &n)| s.iter().copied().flat_map(move |v| (0..n).map(move |_| v))).collect();
            all.sort_unstable();
            match Pooled::of(samples.iter()).quantile(times, q) {
                None => prop_assert!(all.is_empty()),
                Some(found) => {
                    let rank = ((q * all.len() as f64 * (1.0 - 1e-12)).ceil() as usize).max(1);
                    let truth = all[rank - 1] as f64;
                    prop_assert!((found - truth).abs() <= truth / 128.0 + 1.0, "{} for {}", found, truth);
                }
            }
        }
    }

    #[test]
    fn slices_without_an_io_are_resampled_and_divide_nothing() {
        let mut rounds: Vec<Vec<Sample>> =
            (0..40).map(|i| vec![sample(&[100 + i; 50]), sample(&[100 + i; 50])]).collect();
        rounds[7][1] = sample(&[]);
        rounds[7][1].cpu_ns_per_io = None;
        let found = answers(&rounds, 2, &[Metric::Iops], &question());
        assert_eq!(found[0].basis, Basis::ResampledPairs);
        assert!(found[0].ratio.is_some_and(|r| r.low > 0.5 && r.high < 1.5), "{found:?}");
        // All of them without one: no ratio, and a reason.
        let empty: Vec<Vec<Sample>> = (0..40).map(|_| vec![sample(&[]), sample(&[])]).collect();
        for answer in answers(&empty, 2, &Metric::ALL[..3], &question()) {
            assert_eq!((answer.conclusion, answer.ratio), (Conclusion::CannotTell, None));
            assert_eq!(answer.reason.as_deref(), Some("neither side has this figure"));
        }
    }

    #[test]
    fn latencies_of_different_kinds_are_not_compared_and_rates_are() {
        let mut rounds: Vec<Vec<Sample>> = (0..20).map(|_| vec![sample(&[100; 50]), sample(&[200; 50])]).collect();
        rounds.iter_mut().for_each(|round| round[1].shape.has_syncs = true);
        let found = answers(&rounds, 2, &[Metric::Iops, Metric::P50], &question());
        assert!(found[0].ratio.is_some());
        assert!(found[1].ratio.is_none() && found[1].reason.as_deref().is_some_and(|r| r.contains("sync calls")));
    }

    #[test]
    fn one_contradicted_slice_in_ten_leaves_no_winner_and_one_in_a_hundred_does() {
        for (count, has_winner) in [(10, false), (100, true)] {
            let mut rounds: Vec<Vec<Sample>> =
                (0..count).map(|_| vec![sample(&[100; 50]), sample(&[100; 25])]).collect();
            rounds[3][0].verdict = Verdict::Contradicted;
            let found = answers(&rounds, 2, &[Metric::Iops], &question());
            assert_eq!(found[0].conclusion == Conclusion::Worse, has_winner, "{found:?}");
        }
    }
}
