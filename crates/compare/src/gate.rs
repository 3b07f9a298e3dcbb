//! Conditions of `--fail-if`: `p99 > +5%`, `iops < -3 %`, `cpu > 1.10x`.
//!
//! A condition names a change of this side against the first that must not be. It is shown when the whole
//! interval of the ratio lies beyond the threshold, shown absent when all of it lies on this side of it, and
//! cannot be decided otherwise: a gate that fails on a point estimate fails on noise.
//!
//! Several conditions and sides share the allowed error as the comparison's metrics do: each condition is wrong
//! in at most the stated share of comparisons.

use trueio_model::{Basis, Comparison, GateResult, GateVerdict, Metric, Part};

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// As it was written.
    pub text: String,
    /// Of what.
    pub metric: Metric,
    /// True for `>`.
    pub is_above: bool,
    /// The ratio that must not be passed: 1.05 for `> +5%`.
    pub ratio: f64,
}

/// A condition that cannot be read: where, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`, column {column}: {reason}")]
pub struct GateError {
    /// As it was written.
    pub text: String,
    /// The character that does not fit, from 1.
    pub column: usize,
    /// What was expected there.
    pub reason: String,
}

/// The names by which a metric is known, and the metric.
const NAMES: &[(&str, Metric)] = &[
    ("bandwidth", Metric::Bandwidth),
    ("bw", Metric::Bandwidth),
    ("iops", Metric::Iops),
    ("p50", Metric::P50),
    ("median", Metric::P50),
    ("p99.9", Metric::P999),
    ("p999", Metric::P999),
    ("p99", Metric::P99),
    ("cpu", Metric::CpuPerIo),
];

/// The metric of a name.
pub fn metric_of(name: &str) -> Option<Metric> {
    let name = name.trim().to_ascii_lowercase();
    NAMES.iter().find(|known| known.0 == name).map(|known| known.1)
}

/// The names of all metrics, for a hint.
pub fn metric_names() -> String {
    Metric::ALL.map(|metric| metric.name()).join(", ")
}

/// Returns why a side cannot be compared with the first one.
fn not_the_disk(part: &Part, side: usize) -> String {
    let names: Vec<&str> = part.not_the_disk(side).into_iter().map(|index| part.sides[index].name.as_str()).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb} not the disk, so a change would not be one of the disk", names.join(" and "))
}

impl Gate {
    /// Reads a condition.
    ///
    /// # Errors
    /// [`GateError`] names the column and what was expected there.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let fail = |rest: &str, reason: String| {
            let column = text.chars().count() - rest.chars().count() + 1;
            Err(GateError { text: text.to_owned(), column, reason })
        };
        let rest = text.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
        let (name, after_name) = rest.split_at(end);
        let Some(metric) = metric_of(name) else {
            let found = if name.is_empty() { "nothing".to_owned() } else { format!("`{name}`") };
            return fail(rest, format!("a metric is expected, not {found}: {}", metric_names()));
        };
        let rest = after_name.trim_start();
        let is_above = match rest.chars().next() {
            Some('>') => true,
            Some('<') => false,
            other => {
                let found = other.map_or_else(|| "the end".to_owned(), |c| format!("`{c}`"));
                return fail(rest, format!("`>` or `<` is expected, not {found}"));
            }
        };
        let rest = &rest[1..];
        if rest.starts_with('=') {
            return fail(rest, "a change is a matter of more or less: write `>` or `<` without `=`".to_owned());
        }
        let rest = rest.trim_start();
        let sign = rest.starts_with(['+', '-', '−']).then(|| rest.chars().next().unwrap_or('+'));
        let digits = &rest[sign.map_or(0, char::len_utf8)..];
        let end = digits.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(digits.len());
        let (number, after_number) = digits.split_at(end);
        let Ok(value) = number.parse::<f64>() else {
            return fail(digits, "a number is expected: `+5%` is five percent more, `1.05x` the same".to_owned());
        };
        let unit = after_number.trim();
        let ratio = match unit {
            "%" => {
                let change = if matches!(sign, Some('-' | '−')) { -value } else { value };
                if sign.is_none() && value != 0.0 {
                    return fail(rest, format!("`+{number}%` or `-{number}%`: a change needs its sign"));
                }
                1.0 + change / 100.0
            }
            "x" | "×" if sign.is_none() => value,
            "x" | "×" => return fail(rest, "a factor has no sign: `1.05x` or `0.95x`".to_owned()),
            "" => return fail(after_number, "`%` or `x` is expected after the number".to_owned()),
            other => {
                return fail(
                    after_number.trim_start(),
                    format!("`%` or `x` is expected, not `{other}`: a change is relative to the first side"),
                );
            }
        };
        if !(ratio.is_finite() && ratio > 0.0 && ratio < 1e6) {
            return fail(rest, "nothing can change by so much".to_owned());
        }
        Ok(Self { text: text.trim().to_owned(), metric, is_above, ratio })
    }

    /// What the condition comes to on every side but the first of a part.
    pub fn judge(&self, comparison: &Comparison, part: &Part) -> Vec<GateResult> {
        let is_of = |answer: &&trueio_model::Answer| answer.metric == self.metric;
        let answers = part.answers.iter().filter(is_of);
        answers
            .map(|answer| {
                let side = part.sides.get(answer.side).map_or("?", |side| side.name.as_str());
                let is_forbidden = comparison.differences.iter().find(|d| d.forbids && d.side == answer.side);
                let (verdict, sentence) = match (&answer.ratio, is_forbidden) {
                    (_, Some(circumstance)) => (
                        GateVerdict::CannotTell,
                        format!("the sides are not comparable: {} differs", circumstance.name),
                    ),
                    _ if !part.not_the_disk(answer.side).is_empty() => {
                        (GateVerdict::CannotTell, not_the_disk(part, answer.side))
                    }
                    (None, _) => (
                        GateVerdict::CannotTell,
                        answer.reason.clone().unwrap_or_else(|| "there is no interval".to_owned()),
                    ),
                    (Some(ratio), _) => {
                        let beyond = |value: f64| if self.is_above { value > self.ratio } else { value < self.ratio };
                        let found = match (beyond(ratio.low), beyond(ratio.high)) {
                            (true, true) => GateVerdict::Shown,
                            (false, false) => GateVerdict::Absent,
                            _ => GateVerdict::CannotTell,
                        };
                        let changes = format!(
                            "{} {}, between {} and {}",
                            self.metric,
                            change(ratio.estimate),
                            change(ratio.low),
                            change(ratio.high)
                        );
                        if answer.basis == Basis::Blocks && found != GateVerdict::CannotTell {
                            let why = "one run a side cannot distinguish a change from drift; interleave them: --live";
                            (GateVerdict::CannotTell, format!("{changes}; {why}"))
                        } else {
                            (found, changes)
                        }
                    }
                };
                GateResult {
                    condition: self.text.clone(),
                    part: part.name.clone(),
                    side: answer.side,
                    verdict,
                    sentence: format!("{side}: {sentence}"),
                }
            })
            .collect()
    }
}

/// A ratio as a change: `+5.2 %`.
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
    // −0.00 is nothing.
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
    use proptest::prelude::*;

    #[test]
    fn conditions_are_read_with_signs_factors_and_spaces() {
        let cases = [
            ("p99 > +5%", Metric::P99, true, 1.05),
            ("p99.9>+10 %", Metric::P999, true, 1.10),
            (" IOPS < -3% ", Metric::Iops, false, 0.97),
            ("bw < −50%", Metric::Bandwidth, false, 0.5),
            ("cpu > 1.25x", Metric::CpuPerIo, true, 1.25),
            ("p50 > 0%", Metric::P50, true, 1.0),
        ];
        for (text, metric, is_above, ratio) in cases {
            let gate = Gate::parse(text).unwrap();
            assert_eq!((gate.metric, gate.is_above), (metric, is_above), "{text}");
            assert!((gate.ratio - ratio).abs() < 1e-12, "{text}");
        }
    }

    #[test]
    fn an_error_names_the_column_and_what_was_expected() {
        let cases = [
            ("", 1, "a metric is expected, not nothing"),
            ("p98 > +5%", 1, "not `p98`: bandwidth, iops, p50, p99, p99.9, cpu"),
            ("p99 = 5%", 5, "`>` or `<` is expected, not `=`"),
            ("p99", 4, "not the end"),
            ("p99 >= +5%", 6, "without `=`"),
            ("p99 > 5%", 7, "`+5%` or `-5%`: a change needs its sign"),
            ("p99 > +5", 9, "`%` or `x` is expected after the number"),
            ("p99 > +5 ms", 10, "not `ms`: a change is relative"),
            ("p99 > fast", 7, "a number is expected"),
            ("p99 > +1.2x", 7, "a factor has no sign"),
            ("iops < -100%", 8, "nothing can change by so much"),
        ];
        for (text, column, reason) in cases {
            let error = Gate::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn changes_are_written_with_sign_and_three_digits() {
        let cases = [(1.0523, "+5.23 %"), (0.5, "−50.0 %"), (3.0, "+200 %"), (1.0, "±0.00 %"), (1.123, "+12.3 %")];
        for (ratio, text) in cases {
            assert_eq!(change(ratio), text);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}") {
            if let Err(error) = Gate::parse(&text) {
                prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1, "{}", error);
            }
        }
    }
}
