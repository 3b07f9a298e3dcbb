//! Goal: wherever a percentile has an interval, it contains the true one in at least 92 % of runs, however much the I/Os
//! depend on each other; and the old interval, which takes them as independent, does not.
//!
//! Method: runs of four kinds, 1,000 of each length: a queue (M/D/1) at a load of 0.7 and of 0.9, bursts (I/Os 8 times
//! slower for 60 of some 2,000), and the recorded noise of a machine in stretches of a second in random order. Three
//! other kinds check that the method was not fitted to these. The truth comes from 8 million I/Os of the same kind.
//! Runs without an interval are not counted, so a run that passes for independent by chance counts against the method.
//! `docs/dev/statistics.md` holds the rows that are printed here (`--nocapture`), and each test compares them.
//!
//! Cannot see: noise with ups and downs longer than the stretches. No run shows what is slower than itself.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use trueio_model::{Histogram, SliceRecorder};
use trueio_stats::{dependence, interval_ranks, normal_quantile, quantile_interval};

const INTERVAL_NS: f64 = 1e8;
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
const NOISE: &str = include_str!("../data/noise-busy.txt");
const QUIETER_NOISE: &str = include_str!("../data/noise-quieter.txt");
const DOCUMENTED: &str = include_str!("../../../../docs/dev/statistics.md");
/// Not the seed with which the method's constants were chosen.
const SEED: u64 = 0x5EED_2026_1124;

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

/// Recorded rows of 100 ms (I/Os, p50, p99), ten in a row, then ten from elsewhere. A fiftieth of the I/Os, each lognormal
/// with the row's percentiles.
fn recorded_noise(noise: &str) -> Next {
    let row = |line: &str| -> [f64; 3] {
        let mut fields = line.split(' ').map(|field| field.parse::<f64>().expect("a number"));
        let [ios, p50_ns, p99_ns] = [(); 3].map(|()| fields.next().expect("three fields"));
        [ios, p50_ns, (p99_ns / p50_ns).ln().max(0.01) / 2.326]
    };
    let rows: Vec<[f64; 3]> = noise.lines().filter(|line| !line.starts_with('#')).map(row).collect();
    let (mut at, mut rows_left, mut ios_left, mut ios) = (0, 0, 0u64, 1.0);
    Box::new(move |draws| {
        if ios_left == 0 {
            if rows_left == 0 {
                at = (draws.unit() * (rows.len() - 10) as f64) as usize;
                rows_left = 10;
            } else {
                at += 1;
            }
            rows_left -= 1;
            ios_left = (rows[at][0] / 50.0).max(1.0) as u64;
            ios = ios_left as f64;
        }
        ios_left -= 1;
        let [_, p50_ns, spread] = rows[at];
        (INTERVAL_NS / ios, p50_ns * (draws.normal() * spread).exp())
    })
}

/// How often a percentile had an interval, it contained the truth, and the independent one did.
#[derive(Default, Clone, Copy)]
struct Seen {
    given: u32,
    covered: u32,
    half_width: f64,
    independent_covered: u32,
}

/// When a run ends.
#[derive(Debug, Clone, Copy)]
enum Length {
    Ios(u64),
    Seconds(u64),
}

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ios(n) => write!(f, "{n} I/Os"),
            Self::Seconds(s) => write!(f, "{s} s"),
        }
    }
}

/// A run as the tool records it: its histogram, its slices, and the measured time.
fn one_run(make: fn() -> Next, length: Length, seed: u64) -> (Histogram, SliceRecorder, u64) {
    let mut draws = Draws::new(seed);
    let mut next = make();
    // The queue fills, the noise is somewhere.
    (0..2_000).for_each(|_| _ = next(&mut draws));
    let (mut total, mut interval, mut slices) = (Histogram::new(), Histogram::new(), SliceRecorder::new());
    let (mut now_ns, mut end_ns) = (0.0, INTERVAL_NS);
    let (ios, until_ns) = match length {
        Length::Ios(n) => (n, f64::INFINITY),
        Length::Seconds(s) => (u64::MAX, s as f64 * 1e9),
    };
    for _ in 0..ios {
        let (step_ns, latency_ns) = next(&mut draws);
        now_ns += step_ns;
        if now_ns > until_ns {
            now_ns = until_ns;
            break;
        }
        while now_ns >= end_ns {
            slices.end_interval(&interval);
            interval.drain_into(&mut total);
            end_ns += INTERVAL_NS;
        }
        interval.record(latency_ns as u64);
    }
    slices.end_interval(&interval);
    interval.drain_into(&mut total);
    (total, slices, now_ns as u64)
}

/// The true percentiles; each is known within its bucket.
fn truth_of(make: fn() -> Next) -> [f64; 4] {
    let mut truth = Histogram::new();
    let mut draws = Draws::new(1);
    let mut next = make();
    (0..8_000_000).for_each(|_| truth.record(next(&mut draws).1 as u64));
    QUANTILES.map(|q| truth.value_at_rank((q * truth.count() as f64) as u64).expect("a rank") as f64)
}

fn experiment(name: &str, make: fn() -> Next, lengths: &[Length], runs: u64) {
    let truth = truth_of(make);
    let (mut is_useful, mut bad) = (false, Vec::new());
    for &length in lengths {
        let mut seen = [Seen::default(); 4];
        for run in 0..runs {
            let seed = (run ^ SEED).wrapping_mul(0xD1B5_4A32_D192_ED03);
            let (total, slices, span_ns) = one_run(make, length, seed);
            let found = dependence(&slices.finish(), span_ns);
            for ((q, truth), seen) in QUANTILES.into_iter().zip(truth).zip(&mut seen) {
                let Ok((low, high)) = quantile_interval(&total, q, found.as_ref(), span_ns, 0.05) else {
                    continue;
                };
                let lower_edge = truth * (1.0 - 1.0 / 128.0);
                seen.given += 1;
                seen.covered += u32::from(low as f64 <= truth && lower_edge <= high as f64);
                seen.half_width += (high - low) as f64 / 2.0 / truth;
                let ranks = interval_ranks(total.count(), q).expect("enough I/Os");
                let at = |rank| total.value_at_rank(rank).expect("a rank") as f64;
                let is_in = at(ranks.lower) * (1.0 - 1.0 / 128.0) <= truth && lower_edge <= at(ranks.upper);
                seen.independent_covered += u32::from(is_in);
            }
        }
        is_useful = f64::from(seen[0].given) >= 0.9 * runs as f64;
        for (q, seen) in QUANTILES.into_iter().zip(seen) {
            let percentile = format!("p{}", (q * 1e5).round() / 1e3);
            // Of ten runs, one missing says nothing.
            if f64::from(seen.given) < 0.01 * runs as f64 {
                println!("{name}, {length}, {percentile}: {} intervals in {runs} runs", seen.given);
                continue;
            }
            let given = f64::from(seen.given);
            let [given_percent, covered, independent] =
                [(given, runs as f64), (seen.covered.into(), given), (seen.independent_covered.into(), given)]
                    .map(|(part, whole)| 100.0 * part / whole);
            let width = 100.0 * seen.half_width / given;
            println!(
                "| {name} | {length} | {percentile} | {given_percent:.1} % | {covered:.1} % | {width:.1} % | {independent:.1} % |"
            );
            if covered < 92.0 {
                bad.push(format!("{length}, {percentile}: {} of {} contain the truth", seen.covered, seen.given));
            }
            // Rounding, and another system's logarithms.
            let documented = documented(name, length, &percentile);
            if documented.is_none_or(|(given, of)| (given - given_percent).abs() > 1.0 || (of - covered).abs() > 1.0) {
                bad.push(format!("{length}, {percentile}: docs/dev/statistics.md has {documented:?}"));
            }
        }
    }
    // The method must be of use: of the longest runs, nine of ten have an interval of the median.
    assert!(is_useful, "{name}");
    assert!(bad.is_empty(), "{name}: {bad:?}");
}

/// The shares of runs with an interval and of intervals with the truth, in percent, as the documentation has them.
fn documented(name: &str, length: Length, percentile: &str) -> Option<(f64, f64)> {
    let begin = format!("| {name} | {length} | {percentile} | ");
    let row = DOCUMENTED.lines().find_map(|line| line.strip_prefix(begin.as_str()))?;
    let mut cells = row.split(" % |").map(|cell| cell.trim().parse::<f64>());
    Some((cells.next()?.ok()?, cells.next()?.ok()?))
}

#[test]
fn intervals_of_a_queue_at_a_load_of_0_7_cover_the_truth() {
    experiment("M/D/1, load 0.7", || queue(0.7), &[Length::Ios(190_000)], 1_000);
}

#[test]
fn intervals_of_a_queue_at_a_load_of_0_9_cover_the_truth() {
    experiment("M/D/1, load 0.9", || queue(0.9), &[Length::Ios(235_000)], 1_000);
}

#[test]
fn intervals_of_bursts_cover_the_truth() {
    experiment("bursts, 8 × slower for 60 of 2,000", || bursts(8.0, 60, 1_940.0), &[Length::Ios(235_000)], 1_000);
}

#[test]
fn intervals_of_recorded_noise_cover_the_truth() {
    experiment("recorded noise, busy", || recorded_noise(NOISE), &[Length::Seconds(26), Length::Seconds(45)], 1_000);
}

/// Goal: the method was not fitted to the kinds above, here and in the next two tests.
/// Method: kinds, and seeds, that were not looked at before the method's constants were fixed.
#[test]
fn intervals_of_a_held_out_queue_cover_the_truth() {
    experiment("held out: M/D/1, load 0.8", || queue(0.8), &[Length::Ios(210_000)], 1_000);
}

#[test]
fn intervals_of_held_out_bursts_cover_the_truth() {
    let name = "held out: bursts, 3 × slower for 300 of 6,000";
    experiment(name, || bursts(3.0, 300, 5_700.0), &[Length::Ios(230_000)], 1_000);
}

#[test]
fn intervals_of_held_out_noise_cover_the_truth() {
    let name = "held out: recorded noise, quieter";
    experiment(name, || recorded_noise(QUIETER_NOISE), &[Length::Seconds(26), Length::Seconds(60)], 1_000);
}

/// Goal: on I/Os that are independent, every percentile up to p99.9 has an interval.
#[test]
fn intervals_of_independent_ios_cover_the_truth_too() {
    fn independent() -> Next {
        Box::new(|draws| {
            let latency_ns = 1e5 * (0.5 * draws.normal()).exp();
            (latency_ns, latency_ns)
        })
    }
    experiment("independent (200 runs)", independent, &[Length::Ios(235_000)], 200);
}
