//! Sentences of a comparison.

use crate::text::{counted, few_ios, figure};
use crate::words::level_words;
use trueio_model::{
    Answer, Cause, Comparison, Conclusion, EvidenceLevel, GateVerdict, Ground, Mark, Method, Metric, Part, Ratio, Side,
    Statement, StatementKind, units,
};

pub(super) use trueio_model::side_letter as letter;

/// Returns a metric's name in tables.
pub(super) fn metric_title(metric: Metric) -> &'static str {
    match metric {
        Metric::Bandwidth => "bandwidth",
        Metric::Iops => "IOPS",
        Metric::P50 => "latency p50",
        Metric::P99 => "latency p99",
        Metric::P999 => "latency p99.9",
        Metric::CpuPerIo => "CPU per I/O",
    }
}

/// Formats a metric's value with its unit.
pub(super) fn value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Bandwidth => units::format_bandwidth(value),
        Metric::Iops => format!("{} 1/s", figure(value)),
        _ if value < 1000.0 => format!("{} ns", figure(value)),
        _ => units::format_duration_ns(value.round().min(u64::MAX as f64) as u64),
    }
}

/// Returns a side's value of a metric, ready to be printed: `–` without one, `x` if it is withheld.
pub(super) fn figure_of(side: &Side, metric: Metric) -> String {
    if !side.mark().is_shown() {
        return "x".to_owned();
    }
    side.figures.iter().find(|f| f.metric == metric).map_or_else(|| "–".to_owned(), |f| value(metric, f.value))
}

/// Returns what a side is, and the number of its I/Os if they are few; empty if neither is known.
pub(super) fn detail_of(side: &Side) -> String {
    let few = few_ios(side.latency.count());
    let parts: Vec<&str> = [side.detail.as_str()].into_iter().chain(few.as_deref()).filter(|s| !s.is_empty()).collect();
    parts.join(", ")
}

/// Returns the title of the column of changes: how they are computed.
pub(super) fn ratio_title(comparison: &Comparison, side: usize) -> String {
    let how = if comparison.method == Method::Records { "by intervals" } else { "paired" };
    format!("{} to A, {how}", letter(side))
}

/// Returns the mean number of bytes of an I/O of each of two sides, if they differ.
fn block_sizes(part: &Part, side: usize) -> Option<(f64, f64)> {
    /// Means of random sizes differ by less.
    const SAME_MAX: f64 = 1.05;
    let mean = |side: usize| {
        let of = |metric: Metric| part.sides.get(side)?.figures.iter().find(|figure| figure.metric == metric);
        let mean = of(Metric::Bandwidth)?.value / of(Metric::Iops)?.value;
        Some(mean).filter(|mean| mean.is_finite() && *mean > 0.0)
    };
    let (first, this) = (mean(0)?, mean(side)?);
    let ratio = if first > this { first / this } else { this / first };
    (ratio > SAME_MAX).then_some((first, this))
}

/// Smaller differences of figure and change are those of their roundings and of the two methods.
const DIVERGENCE_MIN: f64 = 0.05;

/// Formats a ratio as a change: `+5.2 %`, `−3.1 %`, `×4.0` from a doubling on.
pub(super) fn change(ratio: f64) -> String {
    if !(ratio.is_finite() && ratio > 0.0) {
        return "–".to_owned();
    }
    if ratio >= 2.0 {
        return format!("×{}", figure(ratio));
    }
    let percent = (ratio - 1.0) * 100.0;
    let text = if percent.abs() >= 9.95 { format!("{:.0}", percent.abs()) } else { format!("{:.1}", percent.abs()) };
    let sign = if text.chars().all(|c| c == '0' || c == '.') {
        "±"
    } else if percent < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{text} %")
}

/// Formats a ratio's estimate as a change, or its end next to 1 if the interval does not show the size.
pub(super) fn change_of(ratio: &Ratio) -> String {
    ratio.least().map_or_else(|| change(ratio.estimate), |least| format!("at least {}", change(least)))
}

/// Formats a share in percent without unnecessary digits.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the conclusion of an answer. Between sides of which one is not confirmed there is none.
pub(super) fn concluded(part: &Part, answer: &Answer) -> Conclusion {
    if part.without_a_winner(answer.side).is_empty() { answer.conclusion } else { Conclusion::CannotTell }
}

/// Returns the worst word of a side and the first one.
pub(super) fn worst_of(part: &Part, side: usize) -> Mark {
    let marks = [0, side].into_iter().filter_map(|index| Some(part.sides.get(index)?.mark()));
    marks.max().unwrap_or(Mark::Unverified)
}

/// Describes a conclusion.
pub(super) fn conclusion(part: &Part, answer: &Answer, margin: f64) -> String {
    if !part.without_a_winner(answer.side).is_empty() {
        return worst_of(part, answer.side).word().to_owned();
    }
    let (better, worse) = match answer.metric {
        Metric::CpuPerIo => ("less CPU", "more CPU"),
        _ => ("faster", "slower"),
    };
    let margin = percent(margin);
    match answer.conclusion {
        Conclusion::Better => format!("{better} by more than {margin}"),
        Conclusion::BetterSizeUnclear => format!("{better}, size unclear"),
        Conclusion::Worse => format!("{worse} by more than {margin}"),
        Conclusion::WorseSizeUnclear => format!("{worse}, size unclear"),
        Conclusion::Same => format!("no difference larger than {margin}"),
        Conclusion::CannotTell => "undecided so far".to_owned(),
    }
}

/// Returns why there is no winner between a side and the first one; `None` if there may be one.
pub(super) fn no_winner(part: &Part, side: usize) -> Option<String> {
    part.obstacle_to_a_winner(side, |index| side_name(part, index))
}

/// Returns `B (after)`.
pub(super) fn side_name(part: &Part, index: usize) -> String {
    part.sides.get(index).map_or_else(String::new, |side| format!("{} ({})", letter(index), side.name))
}

/// Returns sides as a statement rests on them.
fn grounds(part: &Part, sides: &[usize]) -> Vec<Ground> {
    let of = |index: &usize| {
        let side = part.sides.get(*index)?;
        Some(Ground { load: letter(*index), verdict: side.mark() })
    };
    sides.iter().filter_map(of).collect()
}

/// Describes how many more pairs would decide the answer; empty if unknown.
pub(super) fn needs(answer: &Answer) -> String {
    let Some(needs) = answer.needs.filter(|n| n.pair_count > 0) else { return String::new() };
    let pairs = counted(needs.pair_count, "more pair");
    if needs.time_ns == 0 {
        return format!("about {pairs} would decide it");
    }
    format!("about {pairs} ({}) would decide it", units::format_duration_ns(needs.time_ns))
}

/// Returns the sentence that compares one side with the first. It names a winner only between sides that are confirmed, or unverified with
/// a clause that states it.
pub(super) fn headline(comparison: &Comparison, part: &Part, side: usize) -> String {
    if let Some(reason) = no_winner(part, side) {
        return format!("No winner is named: {reason}.");
    }
    winner(comparison, part, side).map_or_else(
        || format!("{} cannot be compared with {}.", side_name(part, side), side_name(part, 0)),
        |made| made.sentence().to_owned(),
    )
}

/// Returns the statement that compares one side with the first; `None` between sides of which one is not confirmed.
pub(super) fn winner(comparison: &Comparison, part: &Part, side: usize) -> Option<Statement> {
    let (this, first) = (side_name(part, side), side_name(part, 0));
    let compared = match block_sizes(part, side) {
        Some(sizes) => compared_by_both(comparison, part, side, sizes),
        None => compared(comparison, part, side, &this, &first),
    };
    Statement::on(StatementKind::Winner, compared, grounds(part, &[0, side]))
}

/// Compares sides of different block sizes by bandwidth and by IOPS: each may have another winner.
fn compared_by_both(comparison: &Comparison, part: &Part, side: usize, sizes: (f64, f64)) -> String {
    let verb = if comparison.method == Method::Records { "was" } else { "is" };
    let by = |metric: Metric| {
        let name = metric_title(metric);
        let Some(answer) = part.answers.iter().find(|a| a.side == side && a.metric == metric) else {
            return format!("not compared by {name}");
        };
        let figures = answer.ratio.as_ref().map_or_else(String::new, |ratio| {
            format!(" ({}, between {} and {})", change_of(ratio), change(ratio.low), change(ratio.high))
        });
        match answer.conclusion {
            Conclusion::Better | Conclusion::BetterSizeUnclear => format!("faster by {name}{figures}"),
            Conclusion::Worse | Conclusion::WorseSizeUnclear => format!("slower by {name}{figures}"),
            Conclusion::Same => format!("equal by {name}{figures}"),
            Conclusion::CannotTell => format!("undecided by {name}{figures}"),
        }
    };
    let size = |mean: f64| units::format_bytes(mean.round() as u64);
    format!(
        "Compared with {}, {} {verb} {} and {}; their block sizes differ: {} and {}.",
        side_name(part, 0),
        side_name(part, side),
        by(Metric::Bandwidth),
        by(Metric::Iops),
        size(sizes.0),
        size(sizes.1)
    )
}

fn compared(comparison: &Comparison, part: &Part, side: usize, this: &str, first: &str) -> String {
    let of = |metric: Metric| part.answers.iter().find(|a| a.side == side && a.metric == metric);
    let verb = if comparison.method == Method::Records { "was" } else { "is" };
    let described = |answer: &Answer| {
        let ratio = answer.ratio.as_ref()?;
        let is_decided = !matches!(answer.conclusion, Conclusion::Same | Conclusion::CannotTell);
        if let Some(least) = ratio.least().filter(|_| is_decided) {
            return Some(format!("{} at least {}", metric_title(answer.metric), change(least)));
        }
        Some(format!(
            "{} {}, between {} and {}",
            metric_title(answer.metric),
            change(ratio.estimate),
            change(ratio.low),
            change(ratio.high)
        ))
    };
    let rate = of(Metric::Iops).filter(|a| a.ratio.is_some()).or_else(|| of(Metric::Bandwidth));
    let Some(answer) = rate else { return format!("{this} cannot be compared with {first}.") };
    match (answer.conclusion, described(answer)) {
        (Conclusion::CannotTell, Some(figures)) => {
            format!("It is undecided so far whether {this} {verb} faster than {first}: {figures}.")
        }
        (Conclusion::CannotTell, None) => {
            let reason = answer.reason.clone().unwrap_or_else(|| "there is no interval".to_owned());
            format!("It is undecided whether {this} {verb} faster than {first}: {reason}.")
        }
        (Conclusion::Same, Some(figures)) => {
            format!(
                "There {verb} no difference larger than {} between {this} and {first}: {figures}.",
                percent(comparison.margin)
            )
        }
        (Conclusion::Better | Conclusion::BetterSizeUnclear, Some(figures)) => {
            format!("{this} {verb} faster than {first}: {figures}.")
        }
        (Conclusion::Worse | Conclusion::WorseSizeUnclear, Some(figures)) => {
            format!("{this} {verb} slower than {first}: {figures}.")
        }
        (_, None) => format!("{this} cannot be compared with {first}."),
    }
}

/// Describes the method in one sentence.
pub(super) fn method(comparison: &Comparison) -> String {
    match &comparison.method {
        Method::Records => "Records of earlier runs; intervals are computed from blocks of each run's time \
                            series."
            .to_owned(),
        Method::Interleaved { seed, slice_ns, head_ns, round_count, round_max, look_count, look_max } => format!(
            "{} of at most {round_max}; each round runs one slice of {} per side in random order and discards the {} \
             before it; {look_count} of {} taken; seed {seed}.",
            counted(u64::from(*round_count), "round"),
            units::format_duration_ns(*slice_ns),
            units::format_duration_ns(*head_ns),
            counted(u64::from(*look_max), "look"),
        ),
    }
}

/// Describes what the intervals mean.
pub(super) fn meaning(comparison: &Comparison) -> String {
    // docs/statistics.md, "Records of earlier runs".
    if comparison.method == Method::Records {
        return "Intervals describe these runs only: where the rate drifts, they miss the runs' true ratio in up to 13 % of \
                comparisons."
            .to_owned();
    }
    format!(
        "For each metric, at most {} of comparisons name a wrong winner, for any number of sides and looks. Each \
         interval contains the true ratio at least as often.",
        percent(comparison.alpha)
    )
}

/// Returns the reasons of undecided answers, each once with its metrics.
pub(super) fn reasons(part: &Part) -> Vec<String> {
    let mut found: Vec<(usize, String, Vec<&'static str>)> = Vec::new();
    for answer in part.answers.iter().filter(|answer| concluded(part, answer) == Conclusion::CannotTell) {
        let withheld = no_winner(part, answer.side);
        // A longer run decides nothing about another thing.
        let needs = if withheld.is_some() { String::new() } else { needs(answer) };
        let mut text = withheld.or_else(|| answer.reason.clone()).unwrap_or_default();
        if !needs.is_empty() {
            text = if text.is_empty() { needs } else { format!("{text}; {needs}") };
        }
        let title = metric_title(answer.metric);
        match found.iter_mut().find(|f| f.0 == answer.side && f.1 == text) {
            Some(known) => known.2.push(title),
            None => found.push((answer.side, text, vec![title])),
        }
    }
    found
        .into_iter()
        .filter(|f| !f.1.is_empty())
        .map(|(side, text, metrics)| {
            // What concerns every metric needs no list of them.
            let of_side = part.answers.iter().filter(|answer| answer.side == side).count();
            let of = if metrics.len() == of_side { String::new() } else { format!(", {}", metrics.join(", ")) };
            format!("{}{of}: {text}", letter(side))
        })
        .collect()
}

/// Returns why the figures of an answer tell something else than the change next to them; `None` if they do not: the ratio
/// of the figures is within the interval of the change, or near its estimate.
pub(super) fn divergence(comparison: &Comparison, part: &Part, answer: &Answer) -> Option<String> {
    let figure = |side: usize| {
        let figures = &part.sides.get(side)?.figures;
        figures
            .iter()
            .find(|figure| figure.metric == answer.metric)
            .map(|figure| figure.value)
            .filter(|value| *value > 0.0)
    };
    let ratio = answer.ratio.as_ref().filter(|ratio| ratio.estimate.is_finite() && ratio.estimate > 0.0)?;
    let whole = figure(answer.side)? / figure(0)?;
    if !whole.is_finite() {
        return None;
    }
    let is_between = (ratio.low..=ratio.high).contains(&whole);
    let is_near = (whole / ratio.estimate).ln().abs() <= comparison.margin.max(DIVERGENCE_MIN).ln_1p();
    if is_between || is_near {
        return None;
    }
    let why = match comparison.method {
        Method::Interleaved { .. } => {
            "the figures are of all slices together, the change is the middle of the slices' changes, so a few slices with \
             other values make the difference"
        }
        Method::Records => {
            "the figures are of the whole runs, the change is of their time series, so a few intervals with other values \
             make the difference"
        }
    };
    Some(format!("the figures differ by {}, but the change is {}: {why}", change(whole), change_of(ratio)))
}

/// Returns the divergences of a part's answers, with side and metric.
pub(super) fn divergences(comparison: &Comparison, part: &Part) -> Vec<String> {
    let of_answer = |answer: &Answer| {
        let text = divergence(comparison, part, answer)?;
        Some(format!("{}, {}: {text}", letter(answer.side), metric_title(answer.metric)))
    };
    part.answers.iter().filter_map(of_answer).collect()
}

/// Returns which of many sides was best, as measured, of those that are confirmed or unverified; `None` for two sides, or without a rate.
pub(super) fn best(part: &Part) -> Option<Statement> {
    let of = |side: &Side, metric: Metric| side.figures.iter().find(|f| f.metric == metric).map(|f| f.value);
    let may_win = |(_, side): &(usize, &Side)| side.mark().permits_a_winner();
    let sides: Vec<(usize, &Side)> = part.sides.iter().enumerate().filter(may_win).collect();
    let found = |metric: Metric, is_more_better: bool| {
        let values = sides.iter().filter_map(|(index, side)| Some((*index, of(side, metric)?)));
        let (index, value) =
            values.max_by(|a, b| if is_more_better { a.1.total_cmp(&b.1) } else { b.1.total_cmp(&a.1) })?;
        Some((side_name(part, index), self::value(metric, value)))
    };
    let (most, rate) = found(Metric::Iops, true).filter(|_| part.sides.len() > 2 && sides.len() > 1)?;
    let rate = rate.trim_end_matches(" 1/s").to_owned();
    let shortest = found(Metric::P99, false).map_or_else(String::new, |(side, latency)| match side == most {
        true => format!(" and the shortest latency p99, {latency}"),
        false => format!("; {side} had the shortest latency p99, {latency}"),
    });
    let of = match part.sides.len() - sides.len() {
        0 => format!("Of {} sides", sides.len()),
        _ => format!("Of the {} sides that are not disturbed, unsteady or withheld,", sides.len()),
    };
    let text = format!("{of} {most} had the most IOPS, {rate}{shortest}.");
    let indices: Vec<usize> = sides.iter().map(|(index, _)| *index).collect();
    Statement::on(StatementKind::Winner, text, grounds(part, &indices))
}

/// Returns what was found of each side, for the first screen: `B (after) is disturbed: 3 of 8 slices: dd wrote 335 MiB.` The names of the
/// checks and the levels are in the details.
pub(super) fn found_of_sides(part: &Part) -> Vec<String> {
    let of_side = |(index, side): (usize, &Side)| {
        let is = match side.mark() {
            mark if mark.permits_a_winner() => String::new(),
            mark => format!(" is {}", mark.word()),
        };
        let found: Vec<String> = side.reasons.iter().map(|reason| without_check(reason)).collect();
        (!found.is_empty()).then(|| format!("{}{is}: {}", side_name(part, index), found.join(" ")))
    };
    part.sides.iter().enumerate().filter_map(of_side).collect()
}

/// Returns a reason without the name of its check: `foreign_io (1 of 8 slices): dd wrote` becomes `1 of 8 slices: dd wrote`.
pub(super) fn without_check(reason: &str) -> String {
    let Some((check, rest)) = reason.split_once([' ', ':']) else { return reason.to_owned() };
    if Cause::usual_of(check).is_none() {
        return reason.to_owned();
    }
    let rest = rest.trim_start();
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((slices, rest)) => format!("{slices}{rest}"),
        None => rest.to_owned(),
    }
}

/// Returns the sentences of the checks that object to each side, for the details.
pub(super) fn doubts(part: &Part) -> Vec<(String, Vec<String>)> {
    part.sides
        .iter()
        .enumerate()
        .filter(|(_, side)| !side.reasons.is_empty())
        .map(|(index, side)| {
            let word = side.mark().word();
            (format!("{} ({}) {word} {}", letter(index), side.name, side.level), side.reasons.clone())
        })
        .collect()
}

/// Explains the evidence levels of a part's sides; `None` without a side. What would raise them depends on what a comparison does
/// not keep of its sides, so of a level the usual step is named.
pub(super) fn levels(part: &Part) -> Option<String> {
    let mut levels: Vec<EvidenceLevel> = part.sides.iter().map(|side| side.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let step = |level| match level {
        EvidenceLevel::E0 => Some("evidence, on a local disk"),
        EvidenceLevel::E1 | EvidenceLevel::E2 => Some("direct I/O, as root"),
        EvidenceLevel::E3 | EvidenceLevel::E4 => None,
    };
    let text: Vec<String> = levels.iter().map(|level| level_words(*level, step(*level))).collect();
    (!text.is_empty()).then(|| format!("Evidence level: {}.", text.join("; ")))
}

/// Returns the differences between the sides' settings and machines.
pub(super) fn differences(comparison: &Comparison) -> Vec<String> {
    let line =
        |d: &trueio_model::Circumstance| format!("{}: {} in A, {} in {}", d.name, d.first, d.this, letter(d.side));
    comparison.differences.iter().map(line).collect()
}

/// Describes the noise floor: how much equal sides differ here.
pub(super) fn noise(part: &Part) -> Option<String> {
    let mut floors: Vec<String> = Vec::new();
    for metric in Metric::ALL {
        let floor = part.answers.iter().find(|a| a.metric == metric).and_then(|a| a.noise_floor);
        floors.extend(floor.filter(|f| *f > 0.0).map(|floor| format!("{} {}", metric_title(metric), percent(floor))));
    }
    (!floors.is_empty()).then(|| {
        format!(
            "A compared with itself over the same number of rounds differs by up to: \
                          {}.",
            floors.join(", ")
        )
    })
}

/// Describes a gate's verdict.
pub(super) fn gate_word(verdict: GateVerdict) -> &'static str {
    match verdict {
        GateVerdict::Shown => "FAILED",
        GateVerdict::Absent => "passed",
        GateVerdict::CannotTell => "undecided",
    }
}

/// Describes the system calls of a side, if they were recorded.
pub(super) fn syscalls(index: usize, side: &Side) -> Vec<crate::words::Item> {
    let Some(trace) = &side.syscalls else { return Vec::new() };
    let mut items = crate::syscalls::of_trace(&side.name, trace);
    items.iter_mut().for_each(|(item, _)| *item = format!("{} {item}", letter(index)));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_whose_size_is_unsure_is_given_as_its_least() {
        let of = |estimate, low, high| change_of(&Ratio { estimate, low, high, alpha: 0.05, p: None, pair_count: 6 });
        assert_eq!(of(3.74, 1.16, 16.8), "at least +16 %");
        assert_eq!(of(1.0 / 3.74, 1.0 / 16.8, 1.0 / 1.16), "at least −14 %");
        assert_eq!(of(3.74, 2.9, 4.5), "×3.74");
        assert_eq!(of(1.1, 0.6, 1.9), "+10 %", "neither faster nor slower");
    }

    #[test]
    fn a_change_has_a_sign_and_a_doubling_is_a_factor() {
        let cases = [
            (1.0523, "+5.2 %"),
            (0.9, "−10 %"),
            (0.9999, "±0.0 %"),
            (1.5, "+50 %"),
            (2.0, "×2.00"),
            (41.3, "×41.3"),
            (0.0, "–"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ];
        for (ratio, text) in cases {
            assert_eq!(change(ratio), text);
        }
        assert_eq!((letter(1), letter(30)), ("B".to_owned(), "side 31".to_owned()));
        assert_eq!(percent(0.05), "5 %");
    }
}
