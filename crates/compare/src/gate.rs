//! Judges limits (`--fail-if`) by a comparison: `p99 > +5%`, `IOPS < 95%`, `cpu > 1.10x`, `p99 > 10ms`.
//!
//! A relative limit states a change, compared with the first side, that must not occur. The change is shown if the whole interval of the ratio
//! lies beyond the threshold, and shown not to occur if none of the interval does. Otherwise the limit cannot be decided: a gate on a
//! point estimate fails on noise. An absolute limit is judged from the slices of a side, which must be confirmed.
//!
//! Several conditions and sides share the allowed error as the comparison's metrics do: each condition is wrong
//! in at most the stated share of comparisons.

use trueio_model::{
    Basis, Comparison, GateResult, GateVerdict, Limit, LimitFigure, LimitOutcome, LimitValue, Mark, Method, Metric,
    Part, Ratio, Side, side_letter,
};
use trueio_stats::hodges_lehmann;

/// Returns the metric with this name.
pub fn metric_of(name: &str) -> Option<Metric> {
    LimitFigure::named(name).and_then(LimitFigure::metric)
}

/// Returns the names of all metrics, for a hint.
pub fn metric_names() -> String {
    Metric::ALL.map(|metric| metric.name()).join(", ")
}

/// A limit that comparisons cannot judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// Comparisons lack its figure.
    #[error("`{text}`: a comparison has no {figure}; it compares {known}")]
    NoMetric {
        /// The limit, as typed.
        text: String,
        /// The name of the figure in it.
        figure: String,
        /// What it has.
        known: String,
    },
    /// No side has the name.
    #[error("`{text}`: there is no side `{side}`; the sides are {known}")]
    NoSide {
        /// The limit, as typed.
        text: String,
        /// The name in it.
        side: String,
        /// The sides.
        known: String,
    },
}

/// Checks that a comparison of these sides can judge a limit.
///
/// # Errors
/// It lacks the figure or the side.
pub fn check_gate(limit: &Limit, sides: &[&str]) -> Result<(), GateError> {
    let text = limit.text.clone();
    if limit.operation.is_some() || limit.figure.metric().is_none() {
        return Err(GateError::NoMetric { text, figure: limit.name(), known: metric_names() });
    }
    match &limit.load {
        Some(side) if !(0..sides.len()).any(|index| is_side(side, sides[index], index)) => {
            let known: Vec<String> =
                sides.iter().enumerate().map(|(index, name)| format!("{} (`{name}`)", side_letter(index))).collect();
            Err(GateError::NoSide { text, side: side.clone(), known: known.join(", ") })
        }
        _ => Ok(()),
    }
}

fn is_side(wanted: &str, name: &str, index: usize) -> bool {
    wanted == name || wanted.eq_ignore_ascii_case(&side_letter(index))
}

/// Judges a limit on the sides that it concerns: the side that it names, else each but the first.
pub(crate) fn judge(limit: &Limit, comparison: &Comparison, part: &Part) -> Vec<GateResult> {
    let is_concerned = |index: usize, side: &Side| match &limit.load {
        Some(name) => is_side(name, &side.name, index),
        None => index > 0,
    };
    let results = match limit.value {
        LimitValue::Share(share) => relative(limit, share, comparison, part),
        LimitValue::Absolute(threshold) => absolute(limit, threshold, comparison, part),
    };
    results
        .into_iter()
        .filter(|result| part.sides.get(result.side).is_some_and(|side| is_concerned(result.side, side)))
        .collect()
}

/// Judges a limit in the unit of its metric, from the slices of each side.
fn absolute(limit: &Limit, threshold: f64, comparison: &Comparison, part: &Part) -> Vec<GateResult> {
    let Some(metric) = limit.figure.metric() else { return Vec::new() };
    let unit = limit.figure.row().unit;
    let of = |side: &Side| {
        let undecided = |why: String| (GateVerdict::CannotTell, why);
        let Some(figure) = side.figures.iter().find(|figure| figure.metric == metric) else {
            return undecided(format!("there is no {metric}"));
        };
        let value = unit.show(figure.value);
        if side.mark() != Mark::Confirmed {
            let why = side.reasons.first().map_or_else(String::new, |why| format!(" ({why})"));
            let next = match comparison.method {
                Method::Interleaved { .. } => {
                    "let what disturbs it end, or compare on a disk whose counters can be read (`trueio doctor`)"
                }
                // What disturbed a run of the past cannot be stopped any more.
                _ => {
                    "measure it again while no other program uses its disk (`--wait-idle`), or on a disk whose counters can be read (`trueio doctor`)"
                }
            };
            return undecided(format!("{metric} {value} is {}{why}; {next}", side.mark().word()));
        }
        let values: Option<Vec<f64>> = side
            .slices
            .iter()
            .map(|slice| slice.figures.iter().find(|figure| figure.metric == metric).map(|figure| figure.value.ln()))
            .collect();
        let found = values.and_then(|values| hodges_lehmann(&values, comparison.alpha));
        let Some(interval) = found.filter(|_| matches!(comparison.method, Method::Interleaved { .. })) else {
            return undecided(format!("{metric} {value} has no interval; longer slices give one: --slice, --budget"));
        };
        let (low, high) = (interval.low.exp(), interval.high.exp());
        let shown = format!("{metric} {value}, between {} and {}", unit.show(low), unit.show(high));
        match limit.sign.judge((low, high), threshold) {
            decided @ (LimitOutcome::Missed | LimitOutcome::Met) => (decided.into(), shown),
            LimitOutcome::Undecided => undecided(format!("{shown}; more slices narrow it: a larger --budget")),
        }
    };
    part.sides.iter().enumerate().map(|(index, side)| result_of(limit, part, index, of(side))).collect()
}

fn result_of(limit: &Limit, part: &Part, side: usize, (verdict, sentence): (GateVerdict, String)) -> GateResult {
    let name = part.sides.get(side).map_or("?", |side| side.name.as_str());
    let (condition, part, sentence) = (limit.text.clone(), part.name.clone(), format!("{name}: {sentence}"));
    GateResult { condition, part, side, verdict, sentence }
}

/// Judges a change against the first side.
fn relative(limit: &Limit, share: f64, comparison: &Comparison, part: &Part) -> Vec<GateResult> {
    let answers = part.answers.iter().filter(|answer| Some(answer.metric) == limit.figure.metric());
    answers
        .map(|answer| {
            let is_forbidden = comparison.differences.iter().find(|d| d.forbids && d.side == answer.side);
            let found = match (&answer.ratio, is_forbidden) {
                (_, Some(circumstance)) => {
                    (GateVerdict::CannotTell, format!("the sides are not comparable: {} differs", circumstance.name))
                }
                _ if !part.without_a_winner(answer.side).is_empty() => {
                    let name = |side: usize| part.sides[side].name.clone();
                    let why = part.obstacle_to_a_winner(answer.side, name).unwrap_or_default();
                    (GateVerdict::CannotTell, format!("{why}, so a change may not be one of the disk"))
                }
                (None, _) => (
                    GateVerdict::CannotTell,
                    answer.reason.clone().unwrap_or_else(|| "there is no interval".to_owned()),
                ),
                (Some(ratio), _) => {
                    let found = GateVerdict::from(limit.sign.judge((ratio.low, ratio.high), share));
                    let changes = format!("{} {}", answer.metric, changes(ratio));
                    if answer.basis == Basis::Blocks && found != GateVerdict::CannotTell {
                        let why = "one run a side cannot distinguish a change from drift; interleave them: --live";
                        (GateVerdict::CannotTell, format!("{changes}; {why}"))
                    } else {
                        (found, changes)
                    }
                }
            };
            result_of(limit, part, answer.side, found)
        })
        .collect()
}

/// Formats a ratio as a change with its interval; if the interval is too wide for a size, as the least change that it shows.
fn changes(ratio: &Ratio) -> String {
    let typical = ratio.least().map_or_else(|| change(ratio.estimate), |least| format!("at least {}", change(least)));
    format!("{typical}, between {} and {}", change(ratio.low), change(ratio.high))
}

/// Formats a ratio as a change: `+5.2 %`.
pub fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if !percent.is_finite() {
        return "–".to_owned();
    }
    let digits = match percent.abs() {
        p if p >= 99.95 => 0,
        p if p >= 9.995 => 1,
        _ => 2,
    };
    // −0.00 is printed without its sign.
    let text = format!("{percent:+.digits$}");
    let text = if text.trim_start_matches(['+', '-']).chars().all(|c| c == '0' || c == '.') {
        text.replace(['+', '-'], "±")
    } else {
        text.replace('-', "−")
    };
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_with_a_wide_interval_is_given_by_its_least_size() {
        let of = |estimate, low, high| changes(&Ratio { estimate, low, high, alpha: 0.05, p: None, pair_count: 6 });
        assert_eq!(of(3.74, 1.16, 16.8), "at least +16.0 %, between +16.0 % and +1580 %");
        assert_eq!(of(0.9, 0.88, 0.93), "−10.0 %, between −12.0 % and −7.00 %");
    }

    #[test]
    fn changes_are_written_with_sign_and_three_digits() {
        let cases = [(1.0523, "+5.23 %"), (0.5, "−50.0 %"), (3.0, "+200 %"), (1.0, "±0.00 %"), (1.123, "+12.3 %")];
        for (ratio, text) in cases {
            assert_eq!(change(ratio), text);
        }
    }
}
