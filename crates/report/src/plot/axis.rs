//! The axes of plots: where a value is, and which marks have a label.

use std::ops::Range;
use trueio_model::units;

/// The largest value of an axis: its end, a round number above it, is a number too.
const VALUE_MAX: f64 = 1e300;

/// The mapping of values to an axis, and its marks.
pub(crate) struct Axis {
    pub(crate) range: Range<f64>,
    is_logarithmic: bool,
    /// Labelled marks: value and label.
    pub(crate) marks: Vec<(f64, String)>,
    /// Unlabelled marks.
    pub(crate) fine_marks: Vec<f64>,
}

impl Axis {
    /// Returns the position of `value`, from 0 to 1.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let on = |v: f64| if self.is_logarithmic { v.max(f64::MIN_POSITIVE).log10() } else { v };
        let (low, high) = (on(self.range.start), on(self.range.end));
        ((on(value) - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Creates an axis from zero to a round number above `max`.
    pub(crate) fn from_zero(max: f64) -> Self {
        let max = max.min(VALUE_MAX);
        let step = round_step(max.max(f64::MIN_POSITIVE) / 4.0);
        let count = (max / step).ceil().clamp(1.0, 10.0) as u32;
        // A twentieth of the axis stays free above the highest value.
        let count = if max > step * f64::from(count) * 0.95 { count + 1 } else { count };
        let marks = (0..=count).map(|i| (step * f64::from(i), plain_number(step * f64::from(i)))).collect();
        Self { range: 0.0..step * f64::from(count), is_logarithmic: false, marks, fine_marks: Vec::new() }
    }

    /// Creates an axis from 1 to `count`.
    pub(crate) fn of_rounds(count: usize) -> Self {
        let step = (count / 8).max(1);
        let marks = (1..=count).step_by(step).map(|i| (i as f64, i.to_string())).collect();
        Self { range: 1.0..(count.max(2)) as f64, is_logarithmic: false, marks, fine_marks: Vec::new() }
    }

    /// Creates an axis in percent around zero that contains `low..=high`, with equally spaced marks.
    pub(crate) fn of_change(low: f64, high: f64) -> Self {
        let (low, high) = (low.clamp(-VALUE_MAX, -1.0), high.clamp(1.0, VALUE_MAX));
        let step = round_step((high - low) / 5.0);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let label = |v: f64| match v {
            v if v > 0.0 => format!("+{} %", plain_number(v)),
            v if v < 0.0 => format!("−{} %", plain_number(-v)),
            _ => "0".to_owned(),
        };
        let marks = (first..=last).map(|i| (step * i as f64, label(step * i as f64))).collect();
        Self { range: step * first as f64..step * last as f64, is_logarithmic: false, marks, fine_marks: Vec::new() }
    }

    /// Creates an axis from 0 to exactly `seconds`.
    pub(crate) fn of_time(seconds: f64) -> Self {
        let seconds = if seconds.is_finite() { seconds.max(1e-6) } else { 1.0 };
        let (unit, name) = match seconds {
            s if s >= 7_200.0 => (3_600.0, "h"),
            s if s >= 300.0 => (60.0, "min"),
            s if s >= 0.5 => (1.0, "s"),
            _ => (1e-3, "ms"),
        };
        let end = seconds / unit;
        let step = round_step(end / 5.0);
        let count = (end / step + 1e-9).floor() as u32;
        let marks = (0..=count)
            .map(|i| {
                let value = step * f64::from(i);
                let label = plain_number(value);
                (value * unit, if i == count { format!("{label} {name}") } else { label })
            })
            .collect();
        Self { range: 0.0..seconds, is_logarithmic: false, marks, fine_marks: Vec::new() }
    }

    /// Creates a logarithmic axis of durations in nanoseconds that contains `low..=high` and ends at 1, 2 or
    /// 5.
    pub(crate) fn of_latency(low: f64, high: f64) -> Self {
        let (low, high) = (low.max(1.0), high.max(2.0));
        let mut start = 1.0;
        let mut end = f64::INFINITY;
        let mut steps = Vec::new();
        for decade in 0..20 {
            for factor in [1.0, 2.0, 5.0] {
                let value = factor * 10f64.powi(decade);
                steps.push(value);
                if value <= low {
                    start = value;
                }
                if value >= high && end.is_infinite() {
                    end = value;
                }
            }
        }
        if !end.is_finite() {
            end = high;
        }
        if end <= start {
            end = start * 10.0;
        }
        let decades = (end / start).log10();
        // If there are few decades, 2 and 5 are labelled, too.
        let labelled = |v: f64| decades <= 2.4 || (v.log10() - v.log10().round()).abs() < 1e-6;
        let inside = |v: &f64| *v >= start * 0.999_999 && *v <= end * 1.000_001;
        let marks: Vec<(f64, String)> =
            steps.iter().copied().filter(inside).filter(|&v| labelled(v)).map(|v| (v, plain_duration(v))).collect();
        let fine_marks = (0..20)
            .flat_map(|decade| (2..10).map(move |digit| f64::from(digit) * 10f64.powi(decade)))
            .filter(inside)
            .filter(|v| !marks.iter().any(|m| (m.0 - v).abs() < v * 1e-6))
            .collect();
        Self { range: start..end, is_logarithmic: true, marks, fine_marks }
    }

    /// Creates a logarithmic axis of rates that contains `low..=high` and ends at 1, 2 or 5; labels such as `10k`.
    pub(crate) fn of_rate(low: f64, high: f64) -> Self {
        Self::logarithmic(low, high, short_count)
    }

    /// Creates a logarithmic axis of bytes per second, with marks at powers of two in binary units: `64 MiB/s`, `1 GiB/s`.
    pub(crate) fn of_bytes(low: f64, high: f64) -> Self {
        let (low, high) = (low.clamp(1.0, VALUE_MAX), high.clamp(2.0, VALUE_MAX));
        let (from, to) = (low.log2().floor() as i32, high.log2().ceil() as i32);
        let to = if to <= from { from + 1 } else { to };
        // About five labels, at equal distances.
        let step = ((to - from) / 5).max(1);
        let marks = (from..=to).filter(|power| (power - from) % step == 0).map(|power| {
            let value = 2f64.powi(power);
            (value, binary_rate(value))
        });
        Self {
            range: 2f64.powi(from)..2f64.powi(to),
            is_logarithmic: true,
            marks: marks.collect(),
            fine_marks: Vec::new(),
        }
    }

    /// Creates a logarithmic axis of durations in seconds, with labels such as `20 ms`.
    pub(crate) fn of_seconds(low: f64, high: f64) -> Self {
        Self::logarithmic(low, high, |seconds| plain_duration(seconds * 1e9))
    }

    /// Creates a logarithmic axis of ratios around 1, with labels such as `×2` and `×0.5`.
    pub(crate) fn of_ratio(low: f64, high: f64) -> Self {
        let mut axis = Self::logarithmic(low.min(0.9), high.max(1.1), |v| format!("×{}", plain_number(v)));
        if !axis.marks.iter().any(|mark| mark.0 == 1.0) {
            axis.marks.push((1.0, "×1".to_owned()));
            axis.marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        axis
    }

    /// Creates a logarithmic axis with a mark at each of these values.
    pub(crate) fn of_values(mut marks: Vec<(f64, String)>) -> Self {
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let low = marks.first().map_or(1.0, |mark| mark.0).max(1e-9);
        let high = marks.last().map_or(2.0, |mark| mark.0).max(low * 1.01);
        Self { range: low..high, is_logarithmic: true, marks, fine_marks: Vec::new() }
    }

    /// Creates a logarithmic axis that contains `low..=high`, with marks at 1, 2 and 5 times powers of ten; with more than
    /// two and a half decades at powers of ten.
    fn logarithmic(low: f64, high: f64, label: fn(f64) -> String) -> Self {
        let low = low.clamp(1e-9, VALUE_MAX);
        let high = high.min(VALUE_MAX).max(low * 1.01);
        let powers = (low.log10().floor() as i32 - 1)..=(high.log10().ceil() as i32 + 1);
        let steps: Vec<f64> =
            powers.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power))).collect();
        let start = steps.iter().copied().rev().find(|step| *step <= low).unwrap_or(low);
        let end = steps.iter().copied().find(|step| *step >= high && *step > start).unwrap_or(high);
        let decades = (end / start).log10();
        let is_labelled = |v: f64| decades <= 2.5 || (v.log10() - v.log10().round()).abs() < 1e-6;
        let inside = |v: &f64| *v >= start * 0.999_999 && *v <= end * 1.000_001;
        let marks: Vec<(f64, String)> =
            steps.iter().copied().filter(inside).filter(|v| is_labelled(*v)).map(|v| (v, label(v))).collect();
        let fine_marks = steps.iter().copied().filter(inside).filter(|v| !is_labelled(*v)).collect();
        Self { range: start..end, is_logarithmic: true, marks, fine_marks }
    }

    /// Creates an axis of times in seconds since 1970-01-01 UTC, with days, or hours of a short span.
    pub(crate) fn of_dates(first_s: u64, last_s: u64) -> Self {
        let span = last_s.saturating_sub(first_s).max(1);
        let pad = span as f64 * 0.02;
        let count = 3;
        let marks = (0..=count).map(|i| {
            let at = first_s + span * i / count;
            let text = trueio_model::format_utc(at);
            // `2026-11-20T20:28:32Z`: the day, or the time if all are within two days.
            let label = if span > 2 * 86_400 { &text[..10] } else { &text[11..16] };
            (at as f64, label.to_owned())
        });
        Self {
            range: first_s as f64 - pad..last_s.max(first_s + 1) as f64 + pad,
            is_logarithmic: false,
            marks: marks.collect(),
            fine_marks: Vec::new(),
        }
    }

    /// Creates an axis of percentiles, spaced by the logarithm of the share above them: 90, 99, 99.9 at equal
    /// distances. Values are log10(1 / (1 − q)), and `end` is one of them.
    pub(crate) fn of_percentiles(end: f64) -> Self {
        let mut marks = vec![(0.5f64, "50".to_owned()), (0.9, "90".to_owned()), (0.99, "99".to_owned())];
        let mut nines = String::from("99.");
        for decade in 3..19 {
            nines.push('9');
            marks.push((1.0 - 10f64.powi(-decade), nines.clone()));
        }
        // 1 − q of long percentiles is not exact in binary; the position is.
        let marks: Vec<(f64, String)> = marks
            .into_iter()
            .enumerate()
            .map(|(i, (_, label))| (if i == 0 { 2f64.log10() } else { i as f64 }, label))
            .filter(|m| m.0 <= end)
            .collect();
        let fine_marks = (0..19)
            .flat_map(|decade| (2..10).rev().map(move |tenths| f64::from(decade) + 1.0 - f64::from(tenths).log10()))
            .filter(|place| *place < end)
            .collect();
        Self { range: 0.0..end.max(0.4), is_logarithmic: false, marks, fine_marks }
    }
}

/// Returns the smallest 1, 2 or 5 times a power of ten that is not below `least`.
pub(crate) fn round_step(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|f| f * power).find(|s| *s >= least * 0.999_999).unwrap_or(10.0 * power)
}

/// Formats a round number without unnecessary digits: `0`, `0.5`, `1,200`.
pub(crate) fn plain_number(value: f64) -> String {
    if value >= 1.0 && value.fract().abs() < 1e-6 {
        return units::format_count(value as u64);
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a round duration: `20 µs`, `1 ms`.
pub(crate) fn plain_duration(ns: f64) -> String {
    let (unit, name) = match ns {
        v if v >= 1e9 => (1e9, "s"),
        v if v >= 1e6 => (1e6, "ms"),
        v if v >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    format!("{} {name}", plain_number(ns / unit))
}

/// Formats a round rate: `500`, `20k`, `1M`.
pub(crate) fn short_count(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{}G", plain_number(v / 1e9)),
        v if v >= 1e6 => format!("{}M", plain_number(v / 1e6)),
        v if v >= 1e3 => format!("{}k", plain_number(v / 1e3)),
        v => plain_number(v),
    }
}

/// Formats a power of two bytes per second: `512 KiB/s`, `1 GiB/s`.
fn binary_rate(value: f64) -> String {
    const UNITS: [&str; 5] = ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"];
    let mut unit = 0;
    let mut value = value;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", plain_number(value), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_the_largest_values_have_ends() {
        let most = f64::MAX;
        let axes = [
            Axis::from_zero(most),
            Axis::of_change(-most, most),
            Axis::of_rate(1.0, most),
            Axis::of_rate(most, most),
            Axis::of_bytes(most, most),
            Axis::of_seconds(most, most),
            Axis::of_ratio(most, most),
        ];
        for axis in axes {
            let positions = [f64::MIN, 0.0, 1.0, most].map(|value| axis.position(value));
            assert!(axis.range.end.is_finite() && positions.iter().all(|position| (0.0..=1.0).contains(position)));
            assert!(axis.marks.len() < 400, "{} marks", axis.marks.len());
        }
    }

    #[test]
    fn percentiles_are_spaced_by_the_share_above_them() {
        let axis = Axis::of_percentiles(4.2);
        let labels: Vec<&str> = axis.marks.iter().map(|m| m.1.as_str()).collect();
        assert_eq!(labels, ["50", "90", "99", "99.9", "99.99"]);
        let at = |i: usize| axis.position(axis.marks[i].0);
        assert!((at(2) - at(1) - (at(3) - at(2))).abs() < 1e-9);
        assert!((at(4) - at(3) - (at(2) - at(1))).abs() < 1e-9);
        // Between 0 and 90 % the fine marks are 10, 20, … 80 %; 0.8 leaves a fifth above.
        assert!((axis.fine_marks[0] + 0.9f64.log10()).abs() < 1e-9);
        assert!((axis.fine_marks[7] - 5f64.log10()).abs() < 1e-9);
    }

    #[test]
    fn a_latency_axis_ends_at_round_values_around_the_data_and_labels_decades() {
        let axis = Axis::of_latency(71_234.0, 9_800_000.0);
        assert_eq!(axis.range, 50_000.0..10_000_000.0);
        let labels: Vec<&str> = axis.marks.iter().map(|m| m.1.as_str()).collect();
        assert_eq!(labels[..3], ["50 µs", "100 µs", "200 µs"]);
        let wide = Axis::of_latency(7_000.0, 19_800_000.0);
        let labels: Vec<&str> = wide.marks.iter().map(|m| m.1.as_str()).collect();
        assert_eq!(labels, ["10 µs", "100 µs", "1 ms", "10 ms"]);
        let narrow = Axis::of_latency(60_000.0, 180_000.0);
        let labels: Vec<&str> = narrow.marks.iter().map(|m| m.1.as_str()).collect();
        assert_eq!(labels, ["50 µs", "100 µs", "200 µs"]);
        assert!(Axis::of_latency(0.0, 0.0).range.end > 1.0);
        assert!(Axis::of_latency(5.0, u64::MAX as f64).range.end.is_finite());
    }

    #[test]
    fn a_linear_axis_has_a_few_round_marks_and_contains_its_maximum() {
        for max in [0.003, 0.9, 1.0, 3.2, 49.9, 371_000.0, 1e12] {
            let axis = Axis::from_zero(max);
            assert!(axis.range.end >= max, "{max}");
            assert!((3..=7).contains(&axis.marks.len()), "{max}: {:?}", axis.marks);
        }
    }

    #[test]
    fn bandwidth_marks_are_round_in_their_unit() {
        let labels = |low, high| Axis::of_bytes(low, high).marks.into_iter().map(|mark| mark.1).collect::<Vec<_>>();
        assert_eq!(labels(9e5, 1.2e7), ["512 KiB/s", "1 MiB/s", "2 MiB/s", "4 MiB/s", "8 MiB/s", "16 MiB/s"]);
        assert!(labels(1e3, 1e10).len() <= 8);
        assert_eq!(labels(0.0, 0.0), ["1 B/s", "2 B/s"]);
    }

    #[test]
    fn rates_and_ratios_end_at_round_values_around_the_data() {
        let axis = Axis::of_rate(612.0, 371_000.0);
        assert_eq!(axis.range, 500.0..500_000.0);
        let labels: Vec<&str> = axis.marks.iter().map(|m| m.1.as_str()).collect();
        assert_eq!(labels, ["1k", "10k", "100k"]);
        let ratio = Axis::of_ratio(0.95, 3.0);
        assert!(ratio.marks.iter().any(|m| m.1 == "×1"));
        assert!(Axis::of_rate(0.0, 0.0).range.end.is_finite());
    }

    #[test]
    fn dates_are_days_or_times_of_a_day() {
        let labels =
            |last| Axis::of_dates(1_795_206_512, last).marks.into_iter().map(|mark| mark.1).collect::<Vec<_>>();
        assert_eq!(labels(1_795_206_512 + 8 * 86_400)[0], "2026-11-20");
        assert_eq!(labels(1_795_206_512 + 3_600)[0], "20:28");
    }
}
