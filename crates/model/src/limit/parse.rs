//! Reads limits. An error names the column and what was expected there.

use super::{Limit, LimitFigure, LimitSign, LimitUnit, LimitValue};
use crate::{OpKind, units};
use std::fmt;

/// A limit that cannot be read: where, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitError {
    /// As it was written.
    pub text: String,
    /// The character that does not fit, from 1.
    pub column: usize,
    /// What was expected there.
    pub reason: String,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, column {}: {}", self.text, self.column, self.reason)
    }
}

impl std::error::Error for LimitError {}

const OPERATIONS: [OpKind; 4] = [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::Sync];

impl Limit {
    /// Reads a limit.
    ///
    /// # Errors
    /// [`LimitError`] names the column and what was expected there.
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        let fail = |(rest, reason): (&str, String)| {
            let column = text.chars().count() - rest.chars().count() + 1;
            LimitError { text: text.to_owned(), column, reason }
        };
        // The name of a load may contain `:` and spaces, but no sign.
        let end = text.find(['<', '>']).unwrap_or(text.len());
        let (load, rest) = match text[..end].rfind(':') {
            Some(colon) => (Some(text[..colon].trim()), &text[colon + 1..]),
            None => (None, text),
        };
        if load.is_some_and(str::is_empty) {
            return Err(fail((text, "the name of a load is expected before `:`".to_owned())));
        }
        let (operation, figure, rest) = figure(rest).map_err(fail)?;
        let (sign, rest) = sign(rest).map_err(fail)?;
        let value = value(figure, sign, rest).map_err(fail)?;
        Ok(Self { text: text.trim().to_owned(), load: load.map(str::to_owned), operation, figure, sign, value })
    }
}

/// The rest of a text at which it does not fit, and what was expected.
type Misfit<'a> = (&'a str, String);

/// Reads the operation, if there is one, and the figure.
fn figure(text: &str) -> Result<(Option<OpKind>, LimitFigure, &str), Misfit<'_>> {
    let (first, after) = word(text);
    let operation = OPERATIONS.into_iter().find(|operation| first.eq_ignore_ascii_case(&operation.to_string()));
    let (name, rest) = match operation {
        // `read p99` and `read-p99` are the same.
        Some(_) => word(after.trim_start().strip_prefix(['-', '_']).unwrap_or(after)),
        None => (first, after),
    };
    let begin = &text[text.len() - rest.len() - name.len()..];
    let Some(figure) = LimitFigure::named(name) else {
        let found = if name.is_empty() { "nothing".to_owned() } else { format!("`{name}`") };
        return Err((begin, format!("a figure is expected, not {found}: {}", LimitFigure::names())));
    };
    match (operation, figure) {
        (Some(operation), LimitFigure::Commits | LimitFigure::Cpu) => {
            Err((begin, format!("`{name}` is one figure, without `{operation}`")))
        }
        _ => Ok((operation, figure, rest)),
    }
}

/// Splits the first word off.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(text.len()))
}

fn sign(text: &str) -> Result<(LimitSign, &str), Misfit<'_>> {
    const SIGNS: [(&str, LimitSign); 4] =
        [(">=", LimitSign::AtLeast), ("<=", LimitSign::AtMost), (">", LimitSign::Above), ("<", LimitSign::Below)];
    let text = text.trim_start();
    let found = SIGNS.into_iter().find_map(|(name, sign)| Some((sign, text.strip_prefix(name)?)));
    found.ok_or_else(|| {
        let found = text.chars().next().map_or_else(|| "the end".to_owned(), |c| format!("`{c}`"));
        (text, format!("`>` or `<` is expected, not {found}"))
    })
}

fn value(figure: LimitFigure, sign: LimitSign, text: &str) -> Result<LimitValue, Misfit<'_>> {
    let text = text.trim();
    let signed = text.chars().next().filter(|c| matches!(c, '+' | '-' | '−'));
    let digits = &text[signed.map_or(0, char::len_utf8)..];
    let end = digits.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(digits.len());
    let (number, unit) = (digits[..end].replace(',', ""), digits[end..].trim());
    let Ok(amount) = number.parse::<f64>() else {
        return Err((digits, format!("a number is expected, {}", example(figure))));
    };
    let share = match (unit, signed) {
        ("%", Some('+')) => 1.0 + amount / 100.0,
        ("%", Some(_)) => 1.0 - amount / 100.0,
        // No change, as `+0%`.
        ("%", None) if amount == 0.0 => 1.0,
        ("%", None) => amount / 100.0,
        ("x" | "×", None) => amount,
        ("x" | "×", Some(_)) => return Err((text, "a factor has no sign: `1.05x` or `0.95x`".to_owned())),
        (_, Some(sign)) => {
            return Err((&digits[end..], format!("`%` is expected: `{sign}{number}` is a change of a reference")));
        }
        (_, None) => return absolute(figure, (text, &number, unit)).map(LimitValue::Absolute),
    };
    if !(share.is_finite() && share > 0.0 && share < 1e6) {
        return Err((text, "nothing can change by so much".to_owned()));
    }
    if unit == "%" && signed.is_none() && sign.holds(1.0, share) && share != 1.0 {
        let change = if sign.is_above() { '+' } else { '-' };
        let meant = if amount < 100.0 { format!("`{change}{number}%` is a change") } else { "a share below it".into() };
        let reason = format!("`{number}%` is a share of the reference, and equal figures would fail; {meant}");
        return Err((text, reason));
    }
    Ok(LimitValue::Share(share))
}

/// Reads a value in the unit of a figure.
fn absolute<'a>(figure: LimitFigure, (text, number, unit): (&'a str, &str, &str)) -> Result<f64, Misfit<'a>> {
    let row = figure.row();
    let misfit = |reason: String| (text, reason);
    let needs_unit = |what: &str| misfit(format!("{what} needs its unit: {}", example(figure)));
    let whole = format!("{number}{unit}");
    match row.unit {
        LimitUnit::Time if unit.is_empty() => Err(needs_unit("a time")),
        LimitUnit::Time => units::parse_duration_ns(&whole)
            .map(|ns| ns as f64)
            .map_err(|reason| misfit(format!("{} is a time: {reason}", row.name))),
        LimitUnit::BytesPerSecond if unit.is_empty() => Err(needs_unit("a bandwidth")),
        LimitUnit::BytesPerSecond => units::parse_bytes(whole.strip_suffix("/s").unwrap_or(&whole))
            .map(|bytes| bytes as f64)
            .map_err(|reason| misfit(format!("{} is bytes per second: {reason}", row.name))),
        LimitUnit::PerSecond if matches!(unit, "" | "/s") => number.parse().map_err(|_| needs_unit("it")),
        LimitUnit::PerSecond => {
            Err(misfit(format!("{} is a number per second and has no unit `{unit}`, {}", row.name, example(figure))))
        }
    }
}

/// Returns values of a figure, for a message.
fn example(figure: LimitFigure) -> &'static str {
    match figure.row().unit {
        LimitUnit::Time => "`10ms`, `500us`, or of a reference `105%`, `+5%`, `1.05x`",
        LimitUnit::BytesPerSecond => "`500m`, `2GiB/s`, or of a reference `95%`, `-5%`, `0.95x`",
        LimitUnit::PerSecond => "`50000`, or of a reference `95%`, `-5%`, `0.95x`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quantity;
    use LimitValue::{Absolute, Share};
    use proptest::prelude::*;

    const P99: LimitFigure = LimitFigure::Of(Quantity::P99);
    const IOPS: LimitFigure = LimitFigure::Of(Quantity::Iops);
    const BANDWIDTH: LimitFigure = LimitFigure::Of(Quantity::Bandwidth);

    #[test]
    fn limits_are_read_with_loads_operations_units_and_shares() {
        use LimitSign::{Above, AtLeast, AtMost, Below};
        let cases = [
            ("p99 > 10ms", None, None, P99, Above, Absolute(1e7)),
            (" IOPS < 50000 ", None, None, IOPS, Below, Absolute(50_000.0)),
            ("iops<50,000/s", None, None, IOPS, Below, Absolute(50_000.0)),
            ("commits < 1000", None, None, LimitFigure::Commits, Below, Absolute(1000.0)),
            ("p99.9 >= 500us", None, None, LimitFigure::Of(Quantity::P999), AtLeast, Absolute(5e5)),
            ("bw <= 2GiB/s", None, None, BANDWIDTH, AtMost, Absolute(2_147_483_648.0)),
            ("bandwidth < 100MB/s", None, None, BANDWIDTH, Below, Absolute(1e8)),
            ("bandwidth < 4k", None, None, BANDWIDTH, Below, Absolute(4096.0)),
            ("read p99 > 1 ms", None, Some(OpKind::Read), P99, Above, Absolute(1e6)),
            ("Write-IOPS < 5", None, Some(OpKind::Write), IOPS, Below, Absolute(5.0)),
            ("sync mean > 1ms", None, Some(OpKind::Sync), LimitFigure::Of(Quantity::Mean), Above, Absolute(1e6)),
            ("log: max > 1s", Some("log"), None, LimitFigure::Of(Quantity::Max), Above, Absolute(1e9)),
            ("a:b c : read IOPS < 1", Some("a:b c"), Some(OpKind::Read), IOPS, Below, Absolute(1.0)),
            ("IOPS < 95%", None, None, IOPS, Below, Share(0.95)),
            ("iops < −3 %", None, None, IOPS, Below, Share(0.97)),
            ("p99 > +5%", None, None, P99, Above, Share(1.05)),
            ("p99 > 105%", None, None, P99, Above, Share(1.05)),
            ("cpu > 1.25x", None, None, LimitFigure::Cpu, Above, Share(1.25)),
            ("median > 0%", None, None, LimitFigure::Of(Quantity::P50), Above, Share(1.0)),
            ("iops < -0%", None, None, IOPS, Below, Share(1.0)),
        ];
        for (text, load, operation, figure, sign, value) in cases {
            let read = Limit::parse(text).unwrap_or_else(|error| panic!("{error}"));
            let expected = (text.trim(), load, operation, figure, sign);
            assert_eq!((read.text.as_str(), read.load.as_deref(), read.operation, read.figure, read.sign), expected);
            match (read.value, value) {
                (Absolute(a), Absolute(b)) | (Share(a), Share(b)) => assert!((a - b).abs() < 1e-9, "{text}: {a}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn an_error_names_the_column_and_what_was_expected() {
        let cases = [
            ("", 1, "a figure is expected, not nothing"),
            ("p98 > 5ms", 1, "not `p98`: IOPS, bandwidth, commits, mean, p50, p99, p99.9, max, cpu"),
            ("read > 5ms", 6, "a figure is expected, not nothing"),
            ("read commits < 5", 6, "`commits` is one figure, without `read`"),
            (": p99 > 5ms", 1, "the name of a load is expected before `:`"),
            ("p99 = 5ms", 5, "`>` or `<` is expected, not `=`"),
            ("p99", 4, "not the end"),
            ("p99 > 5", 7, "a time needs its unit: `10ms`"),
            ("p99 > 5MiB", 7, "p99 is a time: `MiB` is not a unit of time; use ns, us, ms, s"),
            ("bw < 500", 6, "a bandwidth needs its unit: `500m`"),
            ("bw < 5ms", 6, "bandwidth is bytes per second: `ms` is not a unit of size"),
            ("IOPS < 50k", 8, "IOPS is a number per second and has no unit `k`, `50000`"),
            ("commits < 5ms", 11, "commits is a number per second and has no unit `ms`"),
            ("p99 > fast", 7, "a number is expected, `10ms`"),
            ("p99 > 5%", 7, "`5%` is a share of the reference, and equal figures would fail; `+5%` is a change"),
            ("iops < 120%", 8, "equal figures would fail; a share below it"),
            ("p99 > +5", 9, "`%` is expected: `+5` is a change of a reference"),
            ("p99 > +1.2x", 7, "a factor has no sign"),
            ("iops < -100%", 8, "nothing can change by so much"),
        ];
        for (text, column, reason) in cases {
            let error = Limit::parse(text).expect_err(text);
            assert_eq!(error.column, column, "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}") {
            if let Err(error) = Limit::parse(&text) {
                prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1, "{}", error);
            }
        }
    }
}
