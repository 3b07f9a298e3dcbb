//! The answer of a comparison, and what of it may be shown.
//!
//! Every output takes its sentences from here, and only lays them out. A winner is a [`trueio_model::Statement`], which rests on the
//! figures of both sides.

use super::words;
use crate::again::Again;
use crate::verdicts::{Load, reasons_of};
use std::borrow::Cow;
use trueio_model::{
    AnsweredFigure, Cause, Check, Comparison, Conclusion, DocumentAnswer, Histogram, Mark, Method, Metric, Objection,
    Part, Side, Statement, units,
};

/// With more sides than this, the best ones are the answer, and not a headline for each.
pub(super) const HEADLINES_MAX: usize = 4;

/// Returns the comparison as outputs show it: without figures that are withheld, and without a change or a conclusion between sides
/// of which one is not confirmed. A comparison that has none is not copied.
pub(crate) fn shown(comparison: &Comparison) -> Cow<'_, Comparison> {
    let is_open = |part: &Part| part.sides.iter().any(|side| !side.mark().permits_a_winner());
    if !comparison.parts.iter().any(is_open) {
        return Cow::Borrowed(comparison);
    }
    let mut shown = comparison.clone();
    for part in &mut shown.parts {
        for index in 0..part.answers.len() {
            let side = part.answers[index].side;
            if part.without_a_winner(side).is_empty() {
                continue;
            }
            let answer = &mut part.answers[index];
            answer.conclusion = Conclusion::CannotTell;
            answer.needs = None;
            // A change rests on the figures of both sides.
            answer.ratio = None;
        }
        for side in part.sides.iter_mut().filter(|side| !side.mark().is_shown()) {
            // The word is that of the reasons, which stay.
            side.word = Some(side.mark());
            side.figures.clear();
            side.percentiles.clear();
            side.slices.clear();
            side.latency = Histogram::new();
        }
    }
    Cow::Owned(shown)
}

/// Answers a comparison.
pub fn comparison_answer(comparison: &Comparison) -> DocumentAnswer {
    let comparison = &*shown(comparison);
    let parts = || comparison.parts.iter();
    DocumentAnswer {
        headline: headline(comparison),
        figures: parts().flat_map(figures).collect(),
        statements: parts().flat_map(|part| statements(comparison, part)).collect(),
        doubts: doubts(comparison),
        next_steps: next_steps(comparison),
    }
}

/// Returns the headlines of all parts; of many sides the best ones.
fn headline(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for part in &comparison.parts {
        let of = if comparison.parts.len() > 1 { format!("{}: ", part.name) } else { String::new() };
        let count = part.sides.len().saturating_sub(1);
        match words::best(part).filter(|_| count > HEADLINES_MAX) {
            Some(best) => lines.push(format!("{of}{}", best.sentence())),
            None if count > HEADLINES_MAX => lines.push(format!("{of}No winner is named: see each side.")),
            None => lines.extend((1..=count).map(|side| format!("{of}{}", words::headline(comparison, part, side)))),
        }
    }
    if lines.is_empty() {
        lines.push("Nothing was measured.".to_owned());
    }
    lines
}

fn statements(comparison: &Comparison, part: &Part) -> Vec<Statement> {
    let of_sides = (1..part.sides.len()).filter_map(|side| words::winner(comparison, part, side));
    words::best(part).into_iter().chain(of_sides).collect()
}

fn unit_of(metric: Metric) -> &'static str {
    match metric {
        Metric::Bandwidth => "B/s",
        Metric::Iops => "1/s",
        Metric::P50 | Metric::P99 | Metric::P999 | Metric::CpuPerIo => "ns",
    }
}

/// Returns the figures of each side, then the change of each side compared with the first.
fn figures(part: &Part) -> Vec<AnsweredFigure> {
    let name = |index: usize| match part.name.as_str() {
        "" => words::side_name(part, index),
        part_name => format!("{part_name}: {}", words::side_name(part, index)),
    };
    let cause = |side: &Side| match side.mark() {
        Mark::Confirmed | Mark::Unverified => String::new(),
        _ => side.reasons.first().map(|reason| words::without_check(reason)).unwrap_or_default(),
    };
    let mut all = Vec::new();
    for (index, side) in part.sides.iter().enumerate() {
        for metric in Metric::ALL {
            let value = side.figures.iter().find(|figure| figure.metric == metric).map(|figure| figure.value);
            all.push(AnsweredFigure {
                load: name(index),
                operation: None,
                quantity: None,
                name: metric.name().to_owned(),
                value: value.filter(|value| value.is_finite()),
                unit: unit_of(metric).to_owned(),
                low: None,
                high: None,
                sample_count: side.latency.count(),
                verdict: side.mark(),
                cause: cause(side),
                is_shown: side.mark().is_shown(),
            });
        }
    }
    for answer in &part.answers {
        let verdict = words::worst_of(part, answer.side);
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let objecting = [0, answer.side].into_iter().filter_map(|side| part.sides.get(side));
        all.push(AnsweredFigure {
            load: name(answer.side),
            operation: None,
            quantity: None,
            name: format!("change of {}", answer.metric.name()),
            value: answer.ratio.and_then(|ratio| finite(ratio.estimate)),
            unit: "ratio".to_owned(),
            low: answer.ratio.and_then(|ratio| finite(ratio.low)),
            high: answer.ratio.and_then(|ratio| finite(ratio.high)),
            sample_count: answer.ratio.map_or(0, |ratio| u64::from(ratio.pair_count)),
            verdict,
            cause: objecting.map(cause).find(|text| !text.is_empty()).unwrap_or_default(),
            is_shown: verdict.is_shown(),
        });
    }
    all
}

/// Returns why answers are undecided, figures differ from the change next to them, and sides are not confirmed.
fn doubts(comparison: &Comparison) -> Vec<String> {
    let mut all = Vec::new();
    for part in &comparison.parts {
        let of = if part.name.is_empty() { String::new() } else { format!("{}: ", part.name) };
        let of_sides = words::found_of_sides(part);
        let of_answers = words::reasons(part).into_iter().chain(words::divergences(comparison, part));
        all.extend(of_answers.chain(of_sides).map(|text| format!("{of}{text}")));
    }
    all
}

/// Returns what to do: against what disturbs a side, then what decides what is undecided.
fn next_steps(comparison: &Comparison) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let mut add = |step: String| {
        if !steps.contains(&step) {
            steps.push(step);
        }
    };
    for side in comparison.parts.iter().flat_map(|part| &part.sides) {
        let checks: Vec<Check> = match side.mark() {
            Mark::Confirmed | Mark::Unverified => Vec::new(),
            _ => side.objections.iter().map(check_of).collect(),
        };
        let load = Load { name: &side.name, checks: &checks, has_kept_rate: false };
        let again = match comparison.method {
            Method::Records => format!("measure {} again", side.name),
            Method::Interleaved { .. } => "run `trueio compare` again".to_owned(),
        };
        for reason in reasons_of(std::iter::once(load), &Again::of(again.clone())).iter().take(1) {
            add(match (&comparison.method, reason.cause) {
                // What disturbed a run of the past cannot be stopped any more.
                (Method::Records, Cause::Neighbour) => {
                    format!("{again} while no other program uses its disk (`--wait-idle`)")
                }
                _ => reason.next_step.clone(),
            });
        }
    }
    let answers = comparison.parts.iter().flat_map(|part| &part.answers);
    let open: Vec<_> = answers.filter(|answer| answer.conclusion == Conclusion::CannotTell).collect();
    if comparison.method == Method::Records {
        if open.iter().any(|answer| answer.ratio.is_some()) {
            add("run both jobs interleaved: `trueio compare A.toml B.toml`".to_owned());
        }
        return steps;
    }
    let wanted = open.iter().filter(|answer| answer.metric == Metric::Iops).filter_map(|answer| answer.needs);
    if let Some(time_ns) = wanted.map(|needs| needs.time_ns).filter(|ns| *ns > 0).max() {
        add(format!("run {} longer to decide it (`--budget`)", units::format_duration_ns(time_ns)));
    }
    steps
}

/// Returns a check of a side, as far as a comparison keeps it.
fn check_of(found: &Objection) -> Check {
    Check {
        name: found.check.clone(),
        outcome: found.outcome,
        cause: found.cause,
        source: String::new(),
        expected: found.expected.clone(),
        found: found.found.clone(),
        sentence: found.sentence.clone(),
        brief: found.brief.clone(),
        explained_percent: None,
        culprits: Vec::new(),
        is_accepted: found.is_accepted,
    }
}
