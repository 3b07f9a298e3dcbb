//! The words of a check without the figures of the load that it is about.
//!
//! A figure that is withheld is hidden in every sentence, too: its rate, its bandwidth and its latencies. Amounts of bytes, shares of the
//! time and lengths of stops are what the counters show, and stay.

/// Checks whose words have the rate or a latency of the load itself.
const OF_FIGURES: [&str; 7] =
    ["latency_floor", "steadiness", "declared_values", "clock_and_cpu", "latency_origin", "pace", "flushes"];

/// Units of latencies and rates.
const UNITS: [&str; 9] = ["ns", "µs", "ms", "B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", "IOPS"];

/// Replaces each latency and rate in the words of a check by `x`: in those of [`OF_FIGURES`] all, in others the times of a request and of
/// an I/O (`2.1 ms per I/O`).
pub(super) fn without_figures(check: &str, text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_of_figures = OF_FIGURES.contains(&check);
    // The unit with what follows it, such as a comma.
    let end_of_unit = |at: usize| {
        let word: &str = words.get(at)?;
        let is_each = words.get(at + 1) == Some(&"per")
            && words.get(at + 2).is_some_and(|of| of.starts_with("request") || of.starts_with("I/O"));
        let units = UNITS.iter().filter(|_| is_of_figures || is_each).chain(["s"].iter().filter(|_| is_each));
        let mut ends = units.filter_map(|unit| word.strip_prefix(unit));
        ends.find(|end| end.chars().all(|c| !c.is_alphanumeric() && c != '/'))
    };
    let mut shown: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let number = before_number(word);
        // Of a range, the unit stands once: `from 4.1 to 2.9 GiB/s`.
        let range_end = (words.get(at + 1) == Some(&"to")
            && words.get(at + 2).is_some_and(|to| before_number(to).is_some()))
        .then(|| end_of_unit(at + 3))
        .flatten();
        match (number, range_end, end_of_unit(at + 1)) {
            (Some(before), Some(end), _) => {
                shown.extend([format!("{before}x"), "to".to_owned(), format!("x{end}")]);
                at += 4;
            }
            (Some(before), None, Some(end)) => {
                shown.push(format!("{before}x{end}"));
                at += 2;
            }
            _ => {
                shown.push((*word).to_owned());
                at += 1;
            }
        }
    }
    shown.join(" ")
}

/// Returns what stands before the digits of a number, such as a bracket; `None` if the word is no number.
fn before_number(word: &str) -> Option<&str> {
    let at = word.find(|c: char| c.is_ascii_digit())?;
    let (before, number) = word.split_at(at);
    let is_number = number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    (is_number && !before.contains(char::is_alphanumeric)).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_and_rates_are_hidden_and_amounts_and_shares_stay() {
        for (check, text, shown) in [
            ("latency_floor", "349 ns: too fast for a disk", "x: too fast for a disk"),
            ("steadiness", "fell from 4.1 to 2.9 GiB/s after 2.0 s", "fell from x to x after 2.0 s"),
            ("steadiness", "fell from 1,204 MiB/s to 980 KiB/s.", "fell from x to x."),
            (
                "declared_values",
                "It rotates, and a read takes (median 12.1 µs), in 4 KiB.",
                "It rotates, and a read takes (median x), in 4 KiB.",
            ),
            (
                "processor_wait",
                "The disk took 90.1 µs per request and the job counted 2.1 s per I/O; throttled for 350 ms of 89 %.",
                "The disk took x per request and the job counted x per I/O; throttled for 350 ms of 89 %.",
            ),
            ("foreign_io", "dd wrote 335 MiB at 12 MiB/s", "dd wrote 335 MiB at 12 MiB/s"),
            ("holes", "96 % never written", "96 % never written"),
            ("steadiness", "", ""),
        ] {
            assert_eq!(without_figures(check, text), shown, "{check}");
        }
    }
}
