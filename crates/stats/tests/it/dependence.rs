//! Goal: wherever a run has an interval of a percentile, of the mean or of the rate, it contains the true value in 95 % of runs,
//! however much the I/Os depend on each other, and is at most 1.3 times as wide as one that is made of the figure's true spread. The
//! interval that takes I/Os as independent is not. Where there is only a bound, the percentile is not below it.
//!
//! Method: runs of a queue (M/D/1), of latencies that are alike (AR(1), from I/O to I/O and from row to row of 100 ms), of bursts, and of
//! the recorded noise of a machine in stretches of a second in random order. The true percentiles come from 20 million I/Os of the same
//! kind; the ideal width is 2 · 1.96 standard deviations of the figure over all runs. Noise as slow as the run may have no interval, but no narrow one.
//! Runs without an interval are not counted, so a run that passes for independent by chance counts against the method.
//! `docs/dev/statistics.md` holds the rows that `TRUEIO_COVERAGE_RUNS=4000 TRUEIO_BLESS=1` prints (`--nocapture`), and each test compares them: of 400 runs, it
//! allows for four standard errors.
//!
//! Cannot see: noise that is much slower than the run. No run shows it.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use trueio_model::{Histogram, SliceRecorder};
use trueio_stats::{
    NoInterval, dependence, interval_ranks, mean_interval, normal_quantile, quantile_interval, quantile_within,
    rate_interval,
};

const INTERVAL_NS: f64 = 1e8;
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
const NOISE: &str = include_str!("../data/noise-busy.txt");
const QUIETER_NOISE: &str = include_str!("../data/noise-quieter.txt");
const DOCUMENTED: &str = include_str!("../../../../docs/dev/statistics.md");
/// Not the seed with which the method's constants were chosen.
const SEED: u64 = 0x5EED_2026_1128;
const RUNS: u64 = 400;
/// Runs of the rows of the documentation.
const DOCUMENTED_RUNS: f64 = 4_000.0;
/// The column of the width, after those of intervals, bounds and coverage.
const WIDTH: usize = 3;
/// Normal quantiles of an ideal interval, on both sides.
const IDEAL: f64 = 2.0 * 1.959_964;

struct Draws(SplitMix64, &'static [f64]);

/// 65,536 values of a standard normal variable at equal steps of probability.
static NORMAL: std::sync::LazyLock<Vec<f64>> =
    std::sync::LazyLock::new(|| (0..65_536).map(|i| normal_quantile((f64::from(i) + 0.5) / 65_536.0)).collect());

impl Draws {
    fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed), &NORMAL)
    }

    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    fn normal(&mut self) -> f64 {
        self.1[(self.0.next_u64() >> 48) as usize]
    }
}

/// Makes the next I/O: nanoseconds to its completion from the one before, and its latency.
type Next = Box<dyn FnMut(&mut Draws) -> (f64, f64)>;

/// A server of 100 µs with random arrivals at a load.
fn queue(load: f64) -> Next {
    const SERVICE_NS: f64 = 1e5;
    let mut wait_ns = 0.0;
    Box::new(move |draws| {
        let gap_ns = draws.exponential() * SERVICE_NS / load;
        let before = wait_ns;
        wait_ns = f64::max(wait_ns + SERVICE_NS - gap_ns, 0.0);
        (gap_ns + wait_ns - before, wait_ns + SERVICE_NS)
    })
}

/// One I/O after another of about 100 µs; bursts of `burst` I/Os take `slower` times as long, `quiet` I/Os apart in the mean.
fn bursts(slower: f64, burst: u32, quiet: f64) -> Next {
    let mut left = 0;
    Box::new(move |draws| {
        if left > 0 {
            left -= 1;
        } else if draws.unit() < 1.0 / quiet {
            left = burst;
        }
        let latency_ns = 1e5 * (0.3 * draws.normal()).exp() * if left > 0 { slower } else { 1.0 };
        (latency_ns, latency_ns)
    })
}

/// One I/O each 130 µs; the logarithms of latencies are an AR(1) process from I/O to I/O.
fn alike(memory: f64) -> Next {
    let mut state = 0.0;
    Box::new(move |draws| {
        state = memory * state + (1.0 - memory * memory).sqrt() * draws.normal();
        (1.3e5, 1.3e5 * (0.5 * state).exp())
    })
}

/// As [`alike`], but what is alike are rows of 100 ms, of 100 I/Os each: half of the spread is that of the rows.
fn alike_rows(memory: f64) -> Next {
    let (mut state, mut left) = (0.0, 0);
    Box::new(move |draws| {
        if left == 0 {
            left = 100;
            state = memory * state + (1.0 - memory * memory).sqrt() * draws.normal();
        }
        left -= 1;
        (1e6, 1e6 * (0.3 * state + 0.3 * draws.normal()).exp())
    })
}

/// Recorded rows of 100 ms (I/Os, p50, p99), ten in a row, then ten from elsewhere. One I/O after another, as they were recorded, each lognormal with
/// the row's percentiles, and `thinner` times as long: every row has its share of the time, however few I/Os it has.
fn recorded_noise(noise: &str, thinner: f64) -> Next {
    let row = |line: &str| -> [f64; 3] {
        let mut fields = line.split(' ').map(|field| field.parse::<f64>().expect("a number"));
        let [ios, p50_ns, p99_ns] = [(); 3].map(|()| fields.next().expect("three fields"));
        [ios, p50_ns, (p99_ns / p50_ns).ln().max(0.01) / 2.326]
    };
    let rows = noise.lines().filter(|line| !line.starts_with('#')).map(row);
    let rows: Vec<[f64; 3]> = rows.filter(|row| row[0] > 0.0 && row[1] > 0.0).collect();
    let (mut at, mut rows_left, mut left_ns) = (0, 0, 0.0);
    Box::new(move |draws| {
        while left_ns <= 0.0 {
            if rows_left == 0 {
                at = (draws.unit() * (rows.len() - 10) as f64) as usize;
                rows_left = 10;
            } else {
                at += 1;
            }
            rows_left -= 1;
            left_ns += INTERVAL_NS;
        }
        let [_, p50_ns, spread] = rows[at];
        let latency_ns = thinner * p50_ns * (draws.normal() * spread).exp();
        left_ns -= latency_ns;
        (latency_ns, latency_ns)
    })
}

/// One I/O after another of about 100 µs, which rises and falls by a share with a period, from a random phase on.
fn waves(period_s: f64, height: f64) -> Next {
    let (mut now_ns, mut phase) = (0.0, None);
    Box::new(move |draws| {
        let phase = *phase.get_or_insert_with(|| draws.unit());
        let turn = std::f64::consts::TAU * (now_ns / 1e9 / period_s + phase);
        let latency_ns = 1e5 * (0.3 * draws.normal()).exp() * (1.0 + height * turn.sin());
        now_ns += latency_ns;
        (latency_ns, latency_ns)
    })
}

/// One I/O after another of about 100 µs or twice as long: the machine changes between the two at random, after `stay_s` in the mean.
fn regimes(stay_s: f64) -> Next {
    let (mut is_slow, mut left_ns) = (false, 0.0);
    Box::new(move |draws| {
        if left_ns <= 0.0 {
            is_slow = if left_ns == 0.0 { draws.unit() < 0.5 } else { !is_slow };
            left_ns = draws.exponential() * stay_s * 1e9;
        }
        let latency_ns = 1e5 * (0.3 * draws.normal()).exp() * if is_slow { 2.0 } else { 1.0 };
        left_ns -= latency_ns;
        (latency_ns, latency_ns)
    })
}

/// How often a figure had an interval, it contained the truth, and the independent one did.
#[derive(Default, Clone)]
struct Seen {
    given: u32,
    covered: u32,
    width: f64,
    independent_covered: u32,
    bounded: u32,
    bound_held: u32,
    /// The figure itself, of each run.
    figures: Vec<f64>,
}

impl Seen {
    fn add(&mut self, figure: f64, interval: Option<(f64, f64)>, truth: f64) {
        self.figures.push(figure);
        if let Some((low, high)) = interval {
            self.given += 1;
            self.covered += u32::from((low..=high).contains(&truth));
            self.width += high - low;
        }
    }

    /// The width of an interval that is made of the true spread of the figure.
    fn ideal(&self) -> f64 {
        let n = self.figures.len() as f64;
        let mean = self.figures.iter().sum::<f64>() / n;
        IDEAL * (self.figures.iter().map(|of| (of - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
    }
}

/// A run as the tool records it.
struct Run {
    total: Histogram,
    slices: SliceRecorder,
    span_ns: u64,
    /// I/Os and nanoseconds of each interval.
    rows: Vec<(u64, u64)>,
}

/// Makes a run.
fn one_run(make: fn() -> Next, length_s: u64, seed: u64) -> Run {
    let mut draws = Draws::new(seed);
    let mut next = make();
    // The queue fills, the noise is somewhere.
    (0..2_000).for_each(|_| _ = next(&mut draws));
    let (mut total, mut interval, mut slices) = (Histogram::new(), Histogram::new(), SliceRecorder::new());
    let (mut now_ns, mut end_ns, mut rows) = (0.0, INTERVAL_NS, Vec::new());
    let until_ns = length_s as f64 * 1e9;
    loop {
        let (step_ns, latency_ns) = next(&mut draws);
        now_ns += step_ns;
        if now_ns > until_ns {
            now_ns = until_ns;
            break;
        }
        while now_ns >= end_ns {
            slices.end_interval(&interval);
            rows.push((interval.count(), INTERVAL_NS as u64));
            interval.drain_into(&mut total);
            end_ns += INTERVAL_NS;
        }
        interval.record(latency_ns as u64);
    }
    slices.end_interval(&interval);
    rows.push((interval.count(), (now_ns + INTERVAL_NS - end_ns) as u64));
    interval.drain_into(&mut total);
    Run { total, slices, span_ns: now_ns as u64, rows }
}

/// The true percentiles, mean and rate.
fn truth_of(make: fn() -> Next) -> ([f64; 4], f64, f64) {
    const IOS: u32 = 20_000_000;
    let mut truth = Histogram::new();
    let mut draws = Draws::new(1);
    let (mut next, mut sum_ns) = (make(), 0.0);
    for _ in 0..IOS {
        let (step_ns, latency_ns) = next(&mut draws);
        sum_ns += step_ns;
        truth.record(latency_ns as u64);
    }
    let quantiles = QUANTILES.map(|q| within(&truth, q));
    (quantiles, truth.mean_ns().expect("not empty"), f64::from(IOS) / sum_ns * 1e9)
}

fn within(histogram: &Histogram, q: f64) -> f64 {
    quantile_within(histogram.buckets(), histogram.count(), q).expect("not empty")
}

fn experiment(name: &str, make: fn() -> Next, lengths_s: &[u64]) {
    let runs = std::env::var("TRUEIO_COVERAGE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let (truths, true_mean, true_rate) = truth_of(make);
    let (mut is_useful, mut bad) = (false, Vec::new());
    for &length_s in lengths_s {
        let (mut seen, mut mean, mut rate) = ([(); 4].map(|()| Seen::default()), Seen::default(), Seen::default());
        for run in 0..runs {
            let seed = (run ^ SEED).wrapping_mul(0xD1B5_4A32_D192_ED03);
            let Run { total, slices, span_ns, rows } = one_run(make, length_s, seed);
            let found = dependence(&slices.finish(), span_ns);
            for ((q, truth), seen) in QUANTILES.into_iter().zip(truths).zip(&mut seen) {
                let interval = quantile_interval(&total, q, found.as_ref(), span_ns, 0.05);
                let ends = interval.ok().map(|(low, high)| (low as f64, high as f64));
                seen.add(within(&total, q), ends, truth);
                if let Err(NoInterval::Short { at_least_ns: Some(ns), .. }) = interval {
                    seen.bounded += 1;
                    seen.bound_held += u32::from(ns as f64 <= truth);
                }
                let ranks = interval_ranks(total.count(), q).expect("enough I/Os");
                let at = |rank| total.value_at_rank(rank).expect("a rank") as f64;
                let is_in = at(ranks.lower) * (1.0 - 1.0 / 128.0) <= truth && truth <= at(ranks.upper);
                seen.independent_covered += u32::from(is_in && interval.is_ok());
            }
            mean.add(total.mean_ns().expect("I/Os"), mean_interval(&total, found.as_ref(), 0.05), true_mean);
            let per_s = total.count() as f64 / span_ns as f64 * 1e9;
            rate.add(per_s, rate_interval(&rows), true_rate);
        }
        is_useful = f64::from(seen[0].given) >= 0.4 * runs as f64;
        let names = QUANTILES.map(|q| format!("p{}", (q * 1e5).round() / 1e3)).into_iter();
        for (figure, seen) in names.chain(["mean".to_owned(), "rate".to_owned()]).zip(seen.iter().chain([&mean, &rate]))
        {
            if let Err(why) = judge(&format!("| {name} | {length_s} s | {figure} | "), seen) {
                bad.push(format!("{length_s} s, {figure}: {why}"));
            }
        }
    }
    // The method must be of use: of the longest runs, most have an interval of the median.
    assert!(is_useful || name.starts_with("slow"), "{name}");
    assert!(bad.is_empty(), "{name}: {bad:#?}");
}

/// By how much a percentage of `of` runs may differ from the documented one: a point for rounding and another system's logarithms, and of fewer
/// runs four standard errors.
fn chance(percent: f64, of: f64, is_short: bool) -> f64 {
    let share = (percent / 100.0).clamp(0.02, 0.98);
    1.0 + if is_short { 400.0 * (share * (1.0 - share) / of.max(1.0)).sqrt() } else { 0.0 }
}

/// Prints the row of a figure, and compares it with the limits and the documentation.
fn judge(begin: &str, seen: &Seen) -> Result<(), String> {
    let runs = seen.figures.len() as f64;
    let percent = |part: u32, whole: f64| 100.0 * f64::from(part) / whole.max(1.0);
    let held = percent(seen.bound_held, seen.bounded.into());
    let is = |words: &str| begin.contains(words);
    if seen.bounded > 0 && held < if is("| slow") { 90.0 } else { 95.0 } {
        return Err(format!("{} of {} bounds hold", seen.bound_held, seen.bounded));
    }
    let (given, bounded) = (percent(seen.given, runs), percent(seen.bounded, runs));
    let covered = percent(seen.covered, seen.given.into());
    let independent = percent(seen.independent_covered, seen.given.into());
    let ideal = seen.ideal();
    // A rate without spread has no ideal.
    if ideal < 1e-6 * seen.figures[0] {
        return if seen.covered == seen.given { Ok(()) } else { Err(format!("{begin}without spread")) };
    }
    let width = seen.width / f64::from(seen.given.max(1)) / ideal;
    let has_independent = !begin.ends_with("mean | ") && !begin.ends_with("rate | ");
    let independent = if has_independent { format!("{independent:.0} %") } else { String::new() };
    // Of few intervals, the share that contains the truth proves nothing.
    let row = match given >= 5.0 {
        true => format!("{begin}{given:.0} % | {bounded:.0} % | {covered:.1} % | {width:.2} | {independent} |"),
        false => format!("{begin}{given:.0} % | {bounded:.0} % | | | |"),
    };
    println!("{row}");
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        return Ok(());
    }
    // Where nearly all runs have an interval, few are near the limit of what a run shows, or chosen by a lucky estimate. An interval of I/Os that are
    // independent is narrower than a bucket, whose upper edge it contains.
    let (covered_min, width_max) = match () {
        () if given >= 85.0 => (92.5, if is("independent") || is("noise") { 1.4 } else { 1.3 }),
        () if given >= 50.0 => (91.0, 1.5),
        () => (85.0, f64::INFINITY),
    };
    if !is("| slow") && given >= 5.0 && (covered < covered_min || width > width_max) {
        return Err(row);
    }
    if is("| slow") && f64::from(seen.given - seen.covered) > 0.1 * runs {
        return Err(row);
    }
    let numbers = |cells: &str| -> Vec<f64> {
        cells.split('|').filter_map(|cell| cell.trim().trim_end_matches(" %").parse().ok()).collect()
    };
    let documented = DOCUMENTED.lines().find_map(|line| line.strip_prefix(begin)).map(numbers);
    let here = numbers(&row[begin.len()..]);
    let is_documented = |there: &Vec<f64>| {
        there.iter().zip(&here).enumerate().all(|(column, (there, here))| {
            let limit = match column {
                0 | 1 => chance(*there, runs, runs < DOCUMENTED_RUNS),
                WIDTH => 0.2 * there + 1.0 / f64::from(seen.given.max(1)).sqrt(),
                _ => chance(*there, seen.given.into(), runs < DOCUMENTED_RUNS),
            };
            (there - here).abs() <= limit
        })
    };
    // What hardly a run has is not listed.
    let is_rare = given < 10.0 && documented.is_none();
    if is_rare || documented.as_ref().is_some_and(is_documented) {
        Ok(())
    } else {
        Err(format!("docs/dev/statistics.md has {documented:?}: {row}"))
    }
}

#[test]
fn intervals_of_queues_contain_the_truth() {
    experiment("M/D/1, load 0.7", || queue(0.7), &[30]);
    experiment("M/D/1, load 0.8", || queue(0.8), &[30]);
    experiment("M/D/1, load 0.9", || queue(0.9), &[30]);
}

#[test]
fn intervals_of_latencies_that_are_alike_contain_the_truth() {
    experiment("AR(1) 0.9", || alike(0.9), &[30]);
    experiment("AR(1) 0.98", || alike(0.98), &[30]);
}

/// Goal: a dependence of a second is seen, and one as long as the run leads to no interval.
#[test]
fn intervals_of_rows_that_are_alike_contain_the_truth_or_there_are_none() {
    experiment("rows, AR(1) 0.9", || alike_rows(0.9), &[30, 120]);
    experiment("rows, AR(1) 0.98", || alike_rows(0.98), &[600]);
}

#[test]
fn intervals_of_bursts_contain_the_truth() {
    experiment("bursts, 8 × slower for 60 of 2,000", || bursts(8.0, 60, 1_940.0), &[30]);
    experiment("bursts, 3 × slower for 300 of 6,000", || bursts(3.0, 300, 5_700.0), &[30]);
}

#[test]
fn intervals_of_recorded_noise_contain_the_truth() {
    let lengths = [30, 60];
    experiment("recorded noise, busy", || recorded_noise(NOISE, 5.0), &lengths);
    experiment("recorded noise, quieter", || recorded_noise(QUIETER_NOISE, 5.0), &lengths);
}

/// Goal: noise as slow as the run does not lead to a narrow interval: a run has one that contains the truth, or none, in 90 % of cases.
/// Method: waves whose period is that of the run, 1.5 and twice as long, and as small as the standard error of the figure or larger; a machine of two
/// speeds; rows that are alike over 5 and 20 s.
#[test]
fn intervals_of_slow_noise_contain_the_truth_or_there_are_none() {
    experiment("slow: waves of 30 s, 0.4 %", || waves(30.0, 0.004), &[30]);
    experiment("slow: waves of 30 s, 50 %", || waves(30.0, 0.5), &[30]);
    experiment("slow: waves of 45 s, 0.4 %", || waves(45.0, 0.004), &[30]);
    experiment("slow: waves of 45 s, 2 %", || waves(45.0, 0.02), &[30]);
    experiment("slow: waves of 60 s, 2 %", || waves(60.0, 0.02), &[30]);
    experiment("slow: waves of 60 s, 50 %", || waves(60.0, 0.5), &[30]);
    experiment("slow: two speeds, 5 s each", || regimes(5.0), &[30]);
    experiment("slow: rows, AR(1) 0.98", || alike_rows(0.98), &[30]);
    experiment("slow: rows, AR(1) 0.995", || alike_rows(0.995), &[30]);
}

/// Goal: on I/Os that are independent, every percentile up to p99.9 has an interval.
#[test]
fn intervals_of_independent_ios_contain_the_truth_too() {
    fn independent() -> Next {
        Box::new(|draws| {
            let latency_ns = 1e5 * (0.5 * draws.normal()).exp();
            (latency_ns, latency_ns)
        })
    }
    experiment("independent", independent, &[30]);
}
