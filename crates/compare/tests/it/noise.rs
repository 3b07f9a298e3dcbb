//! Goal: on the noise of a real machine, comparisons are wrong no more often than they say, find what is there, and
//! stay right where runs one after the other do not.
//!
//! Method: the bench plays back recorded series (`crates/stats/tests/data`): every slice takes the next rows, wherever the
//! experiment began, so what is slow and what is fast comes in the order in which the machine was. A known cost is
//! added to side B. Each experiment is a whole comparison with all its looks. `docs/statistics.md` holds the figures
//! that these tests print (`--nocapture`).
//!
//! Cannot see: noise that other machines have and this one did not.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use trueio_compare::{Bench, Interleaved, Sample, Settings, Shape, SliceOrder, interleave};
use trueio_model::{Answer, Conclusion, EvidenceLevel, Histogram, Metric, Outcome, Verdict};

const BUSY: &str = include_str!("../../../stats/tests/data/noise-busy.txt");
const QUIETER: &str = include_str!("../../../stats/tests/data/noise-quieter.txt");

/// A recorded row: 100 ms.
#[derive(Clone, Copy)]
struct Row {
    ios: u64,
    p50_ns: u64,
    p99_ns: u64,
}

fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut fields = line.split(' ').map(|field| field.parse::<u64>().expect("a number"));
        let mut next = || fields.next().expect("three fields");
        Row { ios: next(), p50_ns: next(), p99_ns: next() }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

/// Plays back recorded rows.
struct Playback<'a> {
    rows: &'a [Row],
    at: usize,
    elapsed_ns: u64,
    /// What each side's I/Os cost more: 0.05 for 5 % longer.
    costs: Vec<f64>,
    /// From this time on everything is twice as slow.
    neighbour_from_ns: u64,
}

impl<'a> Playback<'a> {
    fn new(rows: &'a [Row], start: u64, costs: &[f64]) -> Self {
        let at = (start % rows.len() as u64) as usize;
        Self { rows, at, elapsed_ns: 0, costs: costs.to_vec(), neighbour_from_ns: u64::MAX }
    }

    fn next(&mut self) -> Row {
        let row = self.rows[self.at % self.rows.len()];
        self.at += 1;
        self.elapsed_ns += 100_000_000;
        row
    }
}

impl Bench for Playback<'_> {
    fn slice(&mut self, side: usize, order: &SliceOrder) -> Result<(Sample, Histogram), Outcome> {
        let mut factor = 1.0 + self.costs[side];
        if self.elapsed_ns >= self.neighbour_from_ns {
            factor *= 2.0;
        }
        self.next(); // the head and what lies between slices
        let begin_ns = self.elapsed_ns;
        let count = (order.slice_ns / 100_000_000).max(1);
        let mut ios = 0.0;
        let mut buckets = Vec::new();
        for _ in 0..count {
            let row = self.next();
            ios += row.ios as f64 / factor;
            // Of each row only two percentiles were kept; a distribution that has them.
            let long = (row.ios as f64 / factor * 0.015).ceil();
            let scaled = |ns: u64| (ns as f64 * factor) as u64;
            buckets.push((
                scaled(row.p50_ns),
                scaled(row.p50_ns) + 1,
                (row.ios as f64 / factor - long).max(1.0) as u64,
            ));
            buckets.push((scaled(row.p99_ns), scaled(row.p99_ns) + 1, long as u64));
        }
        buckets.sort_unstable();
        let iops = ios / (count as f64 * 0.1);
        let sample = Sample {
            begin_ns,
            iops,
            bytes_per_s: iops * 4096.0,
            cpu_ns_per_io: None,
            io_count: ios as u64,
            buckets,
            shape: Shape { ops: [true, false, false], ..Shape::default() },
            verdict: Verdict::Supported,
            mark: trueio_model::Mark::Confirmed,
            level: EvidenceLevel::E2,
            objections: Vec::new(),
        };
        Ok((sample, Histogram::new()))
    }

    fn elapsed_ns(&self) -> u64 {
        self.elapsed_ns
    }
}

fn settings(seed: u64, sides: usize, budget_s: u64) -> Settings {
    let until = vec![Metric::Iops];
    Settings { sides, seed, slice_ns: None, budget_ns: budget_s * 1_000_000_000, margin: 0.05, until }
}

fn answer(found: &Interleaved, metric: Metric) -> &Answer {
    found.answers.iter().find(|answer| answer.metric == metric).expect("every metric has an answer")
}

/// Whole comparisons from many parts of the recorded series.
fn experiments(rows: &[Row], count: u64, budget_s: u64, cost: f64) -> Vec<Interleaved> {
    let mut random = SplitMix64::seed_from_u64(budget_s);
    (0..count)
        .map(|seed| {
            let mut bench = Playback::new(rows, random.next_u64(), &[0.0, cost]);
            interleave(&mut bench, &settings(seed, 2, budget_s), &mut |_| {})
        })
        .collect()
}

fn share(of: &[Interleaved], is: impl Fn(&Interleaved) -> bool) -> f64 {
    of.iter().filter(|found| is(found)).count() as f64 / of.len() as f64
}

#[test]
fn of_400_comparisons_of_equals_at_most_5_percent_name_a_winner() {
    for (name, text) in [("busy", BUSY), ("quieter", QUIETER)] {
        let rows = rows(text);
        let found = experiments(&rows, 200, 60, 0.0);
        for metric in [Metric::Iops, Metric::P50, Metric::P99] {
            let wrong = share(&found, |f| answer(f, metric).conclusion.is_difference());
            let same = share(&found, |f| answer(f, metric).conclusion == Conclusion::Same);
            println!("A against A, {name}, {metric}: wrong winner {:.1} %, same {:.1} %", wrong * 100.0, same * 100.0);
            // 200 experiments: the standard error of 5 % is 1.5 %; the bar is two and a half of them up.
            assert!(wrong <= 0.05 + 2.5 * 0.0154, "{name} {metric}: {wrong}");
        }
        let rounds: f64 = found.iter().map(|f| f.rounds.len() as f64).sum::<f64>() / found.len() as f64;
        println!("  rounds: {rounds:.0} of {} on average", found[0].round_max);
    }
}

#[test]
fn what_is_slower_is_found_and_the_interval_holds_the_truth() {
    for (name, text) in [("busy", BUSY), ("quieter", QUIETER)] {
        let rows = rows(text);
        for (percent, least_found) in [(2.0, 0.0), (5.0, 0.2), (10.0, 0.7)] {
            let found = experiments(&rows, 60, 60, percent / 100.0);
            let truth = 1.0 / (1.0 + percent / 100.0);
            let slower = share(&found, |f| {
                matches!(answer(f, Metric::Iops).conclusion, Conclusion::Worse | Conclusion::WorseSizeUnclear)
            });
            let faster = share(&found, |f| {
                matches!(answer(f, Metric::Iops).conclusion, Conclusion::Better | Conclusion::BetterSizeUnclear)
            });
            let same = share(&found, |f| answer(f, Metric::Iops).conclusion == Conclusion::Same);
            let covered = share(&found, |f| {
                answer(f, Metric::Iops).ratio.is_none_or(|r| r.low <= truth * 1.0005 && truth * 0.9995 <= r.high)
            });
            let rounds: f64 = found.iter().map(|f| f.rounds.len() as f64).sum::<f64>() / found.len() as f64;
            println!(
                "B {percent} % slower, {name}: slower {:.0} %, same at 5 % {:.0} %, faster {:.0} %, interval holds the truth {:.0} %, {rounds:.0} rounds",
                slower * 100.0,
                same * 100.0,
                faster * 100.0,
                covered * 100.0
            );
            assert!(slower >= least_found, "{name} {percent} %: {slower}");
            assert!(faster <= 0.05, "{name} {percent} %: {faster}");
            // 60 experiments: the standard error of 95 % is 2.8 %.
            assert!(covered >= 0.95 - 2.5 * 0.028, "{name} {percent} %: {covered}");
        }
    }
}

/// Goal: what people do today, A for half of the time and then B, with a t-test over the seconds, is wrong far more often.
/// Method: the same series, the same time; Welch's t at 5 % on the logarithm of slices of 0.3 s.
#[test]
fn runs_one_after_the_other_name_a_winner_among_equals_in_more_than_a_third() {
    for (name, text) in [("busy", BUSY), ("quieter", QUIETER)] {
        let rows = rows(text);
        let mut random = SplitMix64::seed_from_u64(4);
        let mut wrong = 0;
        for _ in 0..400 {
            let start = (random.next_u64() % rows.len() as u64) as usize;
            let side = |from: usize| -> Vec<f64> {
                let value =
                    |i: usize| (0..3).map(|j| rows[(start + from + i * 3 + j) % rows.len()].ios).sum::<u64>() as f64;
                (0..100).map(|i| value(i).max(1.0).ln()).collect()
            };
            let (a, b) = (side(0), side(300));
            let moments = |x: &[f64]| {
                let mean = x.iter().sum::<f64>() / x.len() as f64;
                (mean, x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (x.len() - 1) as f64 / x.len() as f64)
            };
            let ((mean_a, var_a), (mean_b, var_b)) = (moments(&a), moments(&b));
            wrong += u32::from((mean_a - mean_b).abs() / (var_a + var_b).sqrt() > 1.98);
        }
        let wrong = f64::from(wrong) / 400.0;
        println!("A then A, t-test over slices, {name}: wrong winner {:.0} %", wrong * 100.0);
        assert!(wrong > 0.33, "{name}: {wrong}");
    }
}

/// Goal: a neighbour that makes everything twice as slow in the second half changes no answer.
/// Method: the neighbour starts at 30 s of 60. With slices in sequence, A would run in the first half and B in the
/// second.
#[test]
fn a_busy_neighbour_during_one_half_leaves_the_answer_right_and_misleads_runs_one_after_the_other() {
    let rows = rows(BUSY);
    let mut random = SplitMix64::seed_from_u64(8);
    let (mut interleaved_wrong, mut sequential_wrong) = (0u32, 0u32);
    for seed in 0..100 {
        let start = random.next_u64();
        let mut bench = Playback::new(&rows, start, &[0.0, 0.0]);
        bench.neighbour_from_ns = 30_000_000_000;
        let found = interleave(&mut bench, &settings(seed, 2, 60), &mut |_| {});
        interleaved_wrong += u32::from(answer(&found, Metric::Iops).conclusion.is_difference());

        let mut bench = Playback::new(&rows, start, &[0.0, 0.0]);
        bench.neighbour_from_ns = 30_000_000_000;
        let order = SliceOrder { slice_ns: 300_000_000, head_ns: 0, seed: 0 };
        let mut half = |until_ns: u64| {
            let mut sum = (0.0, 0.0);
            while bench.elapsed_ns() < until_ns {
                let (sample, _) = bench.slice(0, &order).expect("recorded");
                sum = (sum.0 + sample.iops, sum.1 + 1.0);
            }
            sum.0 / sum.1
        };
        let (a, b) = (half(30_000_000_000), half(60_000_000_000));
        sequential_wrong += u32::from((b / a).ln().abs() > 0.05f64.ln_1p());
    }
    println!(
        "a neighbour in the second half: wrong winner interleaved {interleaved_wrong} %, one after the other {sequential_wrong} %"
    );
    assert!(interleaved_wrong <= 10, "{interleaved_wrong}");
    assert!(sequential_wrong >= 90, "{sequential_wrong}");
}

#[test]
fn a_grid_of_equals_names_a_winner_no_more_often_than_one_comparison() {
    let rows = rows(BUSY);
    let mut random = SplitMix64::seed_from_u64(6);
    let wrong = (0..80)
        .filter(|&seed| {
            let mut bench = Playback::new(&rows, random.next_u64(), &[0.0; 6]);
            let found = interleave(&mut bench, &settings(seed, 6, 120), &mut |_| {});
            found.answers.iter().any(|a| a.metric == Metric::Iops && a.conclusion.is_difference())
        })
        .count() as f64
        / 80.0;
    println!("five equals and a sixth: some winner in {:.0} % of experiments", wrong * 100.0);
    // The standard error of 5 % is 2.4 %.
    assert!(wrong <= 0.05 + 2.5 * 0.024, "{wrong}");
}

#[test]
fn the_same_seed_gives_the_same_comparison() {
    let rows = rows(BUSY);
    let run = || interleave(&mut Playback::new(&rows, 77, &[0.0, 0.03]), &settings(5, 2, 30), &mut |_| {});
    let (a, b) = (run(), run());
    assert_eq!(a.answers, b.answers);
    assert_eq!(a.places, b.places);
    assert!(a.places.iter().any(|p| p == &[0, 1]) && a.places.iter().any(|p| p == &[1, 0]), "both orders occur");
}

/// Goal: however many sides share the allowed error, each gets an answer in the least time, and less time is kept, too.
/// Method: the least time of these slices, each with the 100 ms that the recorded rows have between two; then no time at all.
#[test]
fn each_side_gets_an_answer_in_the_least_time_and_less_time_is_kept() {
    let rows = rows(QUIETER);
    for sides in 2..=6 {
        let costs = [&[0.0][..], &vec![1.0; sides - 1]].concat();
        let least_ns = trueio_compare::least_time_ns(&settings(7, sides, 0), 70_000_000);
        for budget_ns in [least_ns, 0] {
            let mut bench = Playback::new(&rows, 3, &costs);
            let found = interleave(&mut bench, &Settings { budget_ns, ..settings(7, sides, 0) }, &mut |_| {});
            assert_eq!(found.outcome, Outcome::Complete);
            if budget_ns == 0 {
                assert_eq!(found.rounds.len(), 1, "the pilot and one round");
                let note = |note: &String| note.contains("are needed to show a difference");
                assert!(found.notes.iter().any(note), "{:?}", found.notes);
                continue;
            }
            assert!(bench.elapsed_ns() <= budget_ns, "{} of {budget_ns} ns", bench.elapsed_ns());
            // The noise may hide the difference; that the rounds are too few must not.
            for answer in found.answers.iter().filter(|answer| answer.metric == Metric::Iops) {
                assert!(answer.ratio.is_some(), "{sides} sides: {answer:?}");
            }
        }
    }
}

/// Goal: a panic in a slice, or between two, ends a comparison with the rounds before it, and their answers.
/// Method: the observer or the bench panics after ten rounds.
#[test]
fn a_panic_leaves_the_rounds_before_it() {
    struct Panics<'a>(Playback<'a>, u32);
    impl Bench for Panics<'_> {
        fn slice(&mut self, side: usize, order: &SliceOrder) -> Result<(Sample, Histogram), Outcome> {
            // Two to warm up, and ten rounds of two.
            self.1 += 1;
            assert!(self.1 <= 22, "staged in a slice");
            self.0.slice(side, order)
        }

        fn elapsed_ns(&self) -> u64 {
            self.0.elapsed_ns()
        }
    }
    let settings = Settings { budget_ns: 600_000_000_000, until: vec![Metric::P99], ..settings(7, 2, 600) };
    let noise = rows(QUIETER);
    for (is_observer, text) in [(true, "staged between two"), (false, "staged in a slice")] {
        let mut bench = Panics(Playback::new(&noise, 7, &[0.0, 0.0]), 0);
        let mut observer =
            |standing: &trueio_compare::Standing| assert!(!is_observer || standing.round < 10, "staged between two");
        let found = interleave(&mut bench, &settings, &mut observer);
        assert_eq!(found.rounds.len(), 10);
        assert!(matches!(&found.outcome, Outcome::Failed { reason } if reason.contains(text)), "{:?}", found.outcome);
        let iops = answer(&found, Metric::Iops);
        assert!(iops.reason.as_ref().is_some_and(|reason| reason.starts_with("10 pairs")), "{iops:?}");
    }
}
