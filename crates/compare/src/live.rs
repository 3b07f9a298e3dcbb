//! All sides in short slices, in random order, round after round, until the answer is clear.
//!
//! What a machine does in one hour it does not do in the next; what it does in one second it mostly does in
//! the next. So the sides take turns every fraction of a second: in each round every side has one slice,
//! in an order that is drawn from a seed. The ratio within a round is free of everything that changes more
//! slowly than a round takes. Before each slice a head is run and discarded, in which queues fill and caches
//! turn over.
//!
//! The answers are looked at at most five times, at equal distances, with bounds that make up for looking
//! (O'Brien and Fleming). The line that is shown meanwhile, and the answer after an interrupt, use a bound
//! that holds however often one looks.
//!
//! Source: measured for this project (`docs/statistics.md`); A. Abedi and T. Brecht, "Conducting Repeatable Experiments in
//! Highly Variable Cloud Computing Environments", ICPE 2017, for randomised interleaved trials.

use crate::answer::{Question, answers};
use crate::sample::Sample;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use trueio_model::{Answer, Conclusion, Histogram, Metric, Outcome};
use trueio_run::contained;
use trueio_stats::{LOOKS_MAX, normal_share_below, obrien_fleming, obrien_fleming_alpha};

/// The shortest slice.
const SLICE_NS_MIN: u64 = 300_000_000;
/// The longest that is chosen by itself.
const SLICE_NS_MAX: u64 = 1_000_000_000;
/// I/Os that a slice should hold: what p99 needs.
const SLICE_IOS: f64 = 1_000.0;
/// The fewest rounds that have an answer at all for two sides, and between two looks.
const ROUNDS_MIN: u32 = 6;
/// Most rounds; more would not improve the answer.
const ROUNDS_MAX: u32 = 20_000;
/// How far from zero a Brownian motion's last value must lie, by its standard deviation, if it is looked at all the time:
/// P(max |W(t)| > 2.2414) = 5 % for t from 0 to 1.
const ANY_TIME: f64 = 2.241_4;

/// Runs slices. Implemented by the real thing, and by recorded noise in tests.
pub trait Bench {
    /// Runs one slice of `side` and gives its figures and latencies.
    ///
    /// # Errors
    /// How the comparison ends: interrupted, or failed.
    fn slice(&mut self, side: usize, slice: &SliceOrder) -> Result<(Sample, Histogram), Outcome>;
    /// Nanoseconds since it began.
    fn elapsed_ns(&self) -> u64;
}

/// How a slice is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceOrder {
    /// Its measured length, in nanoseconds.
    pub slice_ns: u64,
    /// What is run before and discarded, in nanoseconds.
    pub head_ns: u64,
    /// Where its offsets come from: another for each slice.
    pub seed: u64,
}

/// What is to be compared, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How many sides.
    pub sides: usize,
    /// The seed of everything random.
    pub seed: u64,
    /// The length of a slice, in nanoseconds; `None`: chosen.
    pub slice_ns: Option<u64>,
    /// How long it may take, in nanoseconds.
    pub budget_ns: u64,
    /// The margin: 0.05 for 5 %.
    pub margin: f64,
    /// It goes on until the answers of these are clear on every side.
    pub until: Vec<Metric>,
}

/// How a comparison stands, after each round.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Rounds done.
    pub round: u32,
    /// Rounds that the time allows.
    pub round_max: u32,
    /// What is left at most, in nanoseconds.
    pub left_ns: u64,
    /// The answer of each side but the first for the first of the metrics that decide, with intervals that
    /// hold however often one looks.
    pub answers: Vec<Answer>,
}

/// What was run, and the result.
#[derive(Debug)]
pub struct Interleaved {
    /// The rounds: one sample a side, in the sides' order.
    pub rounds: Vec<Vec<Sample>>,
    /// For each round, the position of each side in it.
    pub places: Vec<Vec<u32>>,
    /// Each side's latencies.
    pub latencies: Vec<Histogram>,
    /// For each side but the first, every metric.
    pub answers: Vec<Answer>,
    /// How the slices were run (the seed is the comparison's).
    pub order: SliceOrder,
    /// Rounds that the time would have allowed.
    pub round_max: u32,
    /// Looks that were taken, of how many.
    pub looks: (u32, u32),
    /// Sentences for the user.
    pub notes: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Interleaved {
    /// What is left of a comparison that ended before its first round.
    pub fn unmeasured(settings: &Settings, outcome: Outcome) -> Self {
        Self {
            rounds: Vec::new(),
            places: Vec::new(),
            latencies: vec![Histogram::new(); settings.sides],
            answers: final_answers(&[], settings.sides, question(settings, 0.05, 1.0, 0)),
            order: order_of(settings.slice_ns.unwrap_or(SLICE_NS_MIN), settings.seed),
            round_max: 0,
            looks: (0, 0),
            notes: Vec::new(),
            outcome,
        }
    }
}

/// Compares by interleaving. A panic ends it as a failure, with the rounds before.
pub fn interleave(bench: &mut dyn Bench, settings: &Settings, observer: &mut dyn FnMut(&Standing)) -> Interleaved {
    let mut found = Interleaved::unmeasured(settings, Outcome::Complete);
    if let Err(reason) = contained(|| rounds(bench, settings, observer, &mut found)) {
        found.outcome = Outcome::Failed { reason };
        // What panicked may be the answers themselves.
        if let Ok(answers) = contained(|| answers_so_far(&found, settings, 0)) {
            found.answers = answers;
        }
        found.looks.0 += 1;
    }
    found
}

/// Runs the rounds into `found`.
fn rounds(bench: &mut dyn Bench, settings: &Settings, observer: &mut dyn FnMut(&Standing), found: &mut Interleaved) {
    let mut random = SplitMix64::seed_from_u64(settings.seed);
    // One slice a side that is not counted: it warms up, and shows how long slices must be and how long they take.
    let before_ns = bench.elapsed_ns();
    let mut slowest = f64::INFINITY;
    for side in 0..settings.sides {
        let order = SliceOrder { seed: random.next_u64(), ..found.order };
        match bench.slice(side, &order) {
            Ok((sample, _)) => slowest = slowest.min(sample.iops),
            Err(outcome) => {
                found.outcome = outcome;
                return;
            }
        }
    }
    let pilot_ns = bench.elapsed_ns() - before_ns;
    let round_min = round_min(settings.sides);
    let left_ns = settings.budget_ns.saturating_sub(bench.elapsed_ns());
    if settings.slice_ns.is_none() && slowest.is_finite() {
        let wanted_ns = (SLICE_IOS / slowest.max(1.0) * 1e9) as u64;
        // Longer slices must leave the time for the rounds that an answer needs.
        let sides = (settings.sides as u64).max(1);
        let overhead_ns = (pilot_ns / sides).saturating_sub(SLICE_NS_MIN);
        let longest_ns = (left_ns / (u64::from(round_min) * sides)).saturating_sub(overhead_ns);
        let longest_ns = longest_ns.clamp(SLICE_NS_MIN, SLICE_NS_MAX);
        found.order = order_of(wanted_ns.clamp(SLICE_NS_MIN, longest_ns), settings.seed);
    }
    let longer_ns = found.order.slice_ns.saturating_sub(settings.slice_ns.unwrap_or(SLICE_NS_MIN));
    let round_ns = (pilot_ns + settings.sides as u64 * longer_ns).max(1);
    let by_time = u32::try_from(left_ns / round_ns).unwrap_or(u32::MAX);
    found.round_max = by_time.clamp(1, ROUNDS_MAX);
    if by_time < round_min {
        found
            .notes
            .push(format!("the time allows {by_time} rounds; at least {round_min} are needed to show a difference"));
    }
    found.looks.1 = (found.round_max / round_min).clamp(1, LOOKS_MAX);

    let started_ns = bench.elapsed_ns();
    let mut is_cut_short = false;
    loop {
        match round(bench, settings.sides, found.order, &mut random) {
            Ok((samples, places, latencies)) => {
                found.rounds.push(samples);
                found.places.push(places);
                found.latencies.iter_mut().zip(&latencies).for_each(|(all, one)| all.merge(one));
            }
            Err(outcome) => {
                found.outcome = outcome;
                is_cut_short = true;
                break;
            }
        }
        let done = found.rounds.len() as u32;
        let per_round_ns = (bench.elapsed_ns() - started_ns) / u64::from(done);
        let next_look = found.looks.0 + 1;
        let look_at = (u64::from(next_look) * u64::from(found.round_max)).div_ceil(u64::from(found.looks.1)) as u32;
        // Slices that take longer than the pilot's must not make it last longer.
        let is_late = bench.elapsed_ns().saturating_add(per_round_ns) > settings.budget_ns;
        if done < look_at && !is_late {
            let z = any_time(done, found.round_max);
            let now = question(settings, 2.0 * normal_share_below(-z), z / 1.96, per_round_ns);
            let left_ns = u64::from(found.round_max.saturating_sub(done)) * per_round_ns;
            observer(&standing(found, settings, &now, left_ns));
            continue;
        }
        found.looks.0 = next_look;
        // A look that comes early because time is up is the last one: nothing will be looked at again.
        let look = if is_late { found.looks.1 } else { next_look };
        let alpha = obrien_fleming_alpha(look, found.looks.1).unwrap_or(0.05);
        let widening = obrien_fleming(look, found.looks.1).unwrap_or(1.96) / 1.96;
        let now = question(settings, alpha, widening, per_round_ns);
        let deciding = answers(&found.rounds, settings.sides, &settings.until, &now);
        let is_last = look >= found.looks.1;
        let is_decided = is_last || deciding.iter().all(|answer| is_settled(answer, settings.margin));
        // The answers of the last round are those that the comparison ends with.
        let left = if is_decided { 0 } else { found.round_max.saturating_sub(done) };
        observer(&standing(found, settings, &now, u64::from(left) * per_round_ns));
        if is_decided {
            found.answers = final_answers(&found.rounds, settings.sides, now);
            break;
        }
    }
    if is_cut_short {
        found.answers = answers_so_far(found, settings, bench.elapsed_ns() - started_ns);
        found.looks.0 += 1;
    }
}

/// Returns the answers of a comparison that ends between two looks. `elapsed_ns` is the time of its rounds.
fn answers_so_far(found: &Interleaved, settings: &Settings, elapsed_ns: u64) -> Vec<Answer> {
    let done = (found.rounds.len() as u32).max(1);
    let z = any_time(done, found.round_max);
    let now = question(settings, 2.0 * normal_share_below(-z), z / 1.96, elapsed_ns / u64::from(done));
    final_answers(&found.rounds, settings.sides, now)
}

/// How the comparison stands after a round: the first metric's answers to `now`.
fn standing(found: &Interleaved, settings: &Settings, now: &Question, left_ns: u64) -> Standing {
    let first = &settings.until[..1.min(settings.until.len())];
    Standing {
        round: found.rounds.len() as u32,
        round_max: found.round_max,
        left_ns,
        answers: answers(&found.rounds, settings.sides, first, now),
    }
}

/// The fewest rounds in which each of several sides can have an answer at a single look: the sides share the
/// allowed error, and an interval at a smaller one needs more pairs.
fn round_min(sides: usize) -> u32 {
    let shared = 0.05 / sides.saturating_sub(1).max(1) as f64;
    let pairs = trueio_stats::least_pairs(shared).and_then(|pairs| u32::try_from(pairs).ok());
    pairs.unwrap_or(ROUNDS_MAX).clamp(ROUNDS_MIN, ROUNDS_MAX)
}

/// Returns the least time that a comparison with an answer can take, in nanoseconds: a round to warm up, and the fewest rounds.
/// `pause_ns` is what lies between two slices.
pub fn least_time_ns(settings: &Settings, pause_ns: u64) -> u64 {
    let order = order_of(settings.slice_ns.unwrap_or(SLICE_NS_MIN), settings.seed);
    let slices = (u64::from(round_min(settings.sides)) + 1).saturating_mul(settings.sides as u64);
    slices.saturating_mul(order.slice_ns.saturating_add(order.head_ns).saturating_add(pause_ns))
}

fn order_of(slice_ns: u64, seed: u64) -> SliceOrder {
    SliceOrder { slice_ns, head_ns: (slice_ns / 10).max(20_000_000), seed }
}

fn question(settings: &Settings, alpha: f64, widening: f64, round_ns: u64) -> Question {
    Question { margin: settings.margin, alpha, widening, round_ns, seed: settings.seed, is_final: false }
}

/// All metrics, with everything that is shown.
fn final_answers(rounds: &[Vec<Sample>], sides: usize, question: Question) -> Vec<Answer> {
    answers(rounds, sides, &Metric::ALL, &Question { is_final: true, ..question })
}

/// The critical value that holds however often one looks: of the shape of O'Brien and Fleming's, and never
/// below what a single look would need.
fn any_time(done: u32, max: u32) -> f64 {
    ANY_TIME * (f64::from(max.max(done)) / f64::from(done)).sqrt()
}

/// One slice of every side, in an order that is drawn.
type Round = (Vec<Sample>, Vec<u32>, Vec<Histogram>);

fn round(bench: &mut dyn Bench, sides: usize, order: SliceOrder, random: &mut SplitMix64) -> Result<Round, Outcome> {
    let mut turns: Vec<usize> = (0..sides).collect();
    for i in (1..sides).rev() {
        let other = ((u128::from(random.next_u64()) * (i as u128 + 1)) >> 64) as usize;
        turns.swap(i, other);
    }
    let mut slots: Vec<Option<(Sample, u32, Histogram)>> = vec![None; sides];
    for (place, &side) in turns.iter().enumerate() {
        let (sample, latency) = bench.slice(side, &SliceOrder { seed: random.next_u64(), ..order })?;
        slots[side] = Some((sample, place as u32, latency));
    }
    let mut round: Round = Default::default();
    for (sample, place, latency) in slots.into_iter().flatten() {
        round.0.push(sample);
        round.1.push(place);
        round.2.push(latency);
    }
    Ok(round)
}

/// True if more rounds would not change the answer about a side.
fn is_settled(answer: &Answer, margin: f64) -> bool {
    match (answer.conclusion, &answer.ratio) {
        (Conclusion::Better | Conclusion::Worse | Conclusion::Same, _) => true,
        // A direction is known, and its size as precisely as the margin requires.
        (Conclusion::BetterSizeUnclear | Conclusion::WorseSizeUnclear, Some(ratio)) => {
            (ratio.high / ratio.low).ln() / 2.0 <= margin.ln_1p()
        }
        // Contradicted or without figures: time does not help.
        (Conclusion::CannotTell, None) => answer.needs.is_none(),
        _ => false,
    }
}
