//! A comparison as text for a terminal, and the line that stands there while it runs.

use super::words;
use crate::Style;
use crate::terminal::to_ascii;
use crate::text::{clean, width_of, wrap};
use trueio_model::{Comparison, Conclusion, GateVerdict, Part, Verdict};

/// The comparison as text, ending with a line feed.
pub fn comparison_terminal(comparison: &Comparison, style: &Style) -> String {
    let mut page = Page { style: Style { width: style.width.max(40), ..*style }, out: String::new() };
    page.head(comparison);
    for part in &comparison.parts {
        page.part(comparison, part);
    }
    if comparison.parts.is_empty() {
        page.out.push_str("\nNothing was measured.\n");
    }
    page.list("Circumstances that differ", &words::differences(comparison));
    for part in &comparison.parts {
        let title = if part.name.is_empty() { "Cannot tell".to_owned() } else { format!("Cannot tell: {}", part.name) };
        page.list(&title, &words::reasons(part));
        page.evidence(part);
        page.syscalls(part);
    }
    page.list("Notes", &comparison.notes);
    page.gates(comparison);
    page.meaning(comparison);
    if let Some(sentence) = crate::words::outcome_sentence(&comparison.outcome) {
        page.out.push('\n');
        let mut text = String::new();
        wrap(&mut text, "", 2, &sentence, page.style.width);
        let text = page.paint("1;31", text.trim_end());
        page.out.push_str(&text);
        page.out.push('\n');
    }
    if style.unicode { page.out } else { to_ascii(&page.out) }
}

/// How a comparison goes on, as one line without a line feed: rounds, the interval closing, the time left.
pub fn comparison_progress(round: u32, round_max: u32, left_ns: u64, answers: &[trueio_model::Answer]) -> String {
    let mut parts: Vec<String> = answers
        .iter()
        .take(3)
        .map(|answer| {
            let what = format!("{} {}", words::letter(answer.side), words::metric_title(answer.metric));
            match &answer.ratio {
                Some(r) => {
                    format!(
                        "{what} {} [{} … {}]",
                        words::change(r.estimate),
                        words::change(r.low),
                        words::change(r.high)
                    )
                }
                None => format!("{what} –"),
            }
        })
        .collect();
    if answers.len() > 3 {
        parts.push(format!("and {} more", answers.len() - 3));
    }
    let left = left_ns.div_ceil(1_000_000_000);
    format!("round {round}/{round_max}  {}  {left} s left at most", parts.join("  "))
}

struct Page {
    style: Style,
    out: String,
}

impl Page {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.style.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn heading(&mut self, text: &str) {
        let text = self.paint("1", &clean(text));
        self.out.push_str(&format!("\n{text}\n"));
    }

    fn list(&mut self, heading: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.heading(heading);
        for item in items {
            wrap(&mut self.out, "  ", 4, item, self.style.width);
        }
    }

    fn head(&mut self, comparison: &Comparison) {
        let title = self.paint("1", &format!("{} compare", clean(&comparison.tool.name)));
        let when = comparison.started_at.replace('T', " ").replace('Z', " UTC");
        self.out.push_str(&format!("{title}  {}\n", clean(&when)));
        wrap(&mut self.out, "", 2, &words::method(comparison), self.style.width);
        if let Some(setting) = &comparison.setting {
            self.out.push('\n');
            let lines = setting.targets.iter().flat_map(crate::words::target_lines);
            for (name, text) in lines.chain(crate::words::machine_lines(&setting.environment)) {
                wrap(&mut self.out, &format!("  {name:<12}"), 14, &text, self.style.width);
            }
        }
    }

    fn part(&mut self, comparison: &Comparison, part: &Part) {
        if !part.name.is_empty() {
            self.heading(&part.name);
        } else {
            self.out.push('\n');
        }
        for (index, side) in part.sides.iter().enumerate() {
            let verdict = self.paint(verdict_code(side.verdict), &format!("{} {}", side.verdict, side.level));
            let detail = if side.detail.is_empty() { String::new() } else { format!("  {}", clean(&side.detail)) };
            self.out.push_str(&format!("  {}  {}{detail}  {verdict}\n", words::letter(index), clean(&side.name)));
        }
        for side in 1..part.sides.len() {
            self.out.push('\n');
            wrap(&mut self.out, "", 2, &words::headline(comparison, part, side), self.style.width);
            self.table(comparison, part, side);
        }
    }

    fn table(&mut self, comparison: &Comparison, part: &Part, side: usize) {
        let (Some(first), Some(this)) = (part.sides.first(), part.sides.get(side)) else { return };
        let letter = words::letter(side);
        let mut rows = vec![[
            String::new(),
            "A".to_owned(),
            letter.clone(),
            format!("{letter} to A"),
            "between".to_owned(),
            String::new(),
        ]];
        let mut codes = vec!["1"];
        for answer in part.answers.iter().filter(|a| a.side == side) {
            let (ratio, interval) = match &answer.ratio {
                Some(r) => {
                    (words::change(r.estimate), format!("{} and {}", words::change(r.low), words::change(r.high)))
                }
                None => ("–".to_owned(), "–".to_owned()),
            };
            rows.push([
                words::metric_title(answer.metric).to_owned(),
                words::figure_of(first, answer.metric),
                words::figure_of(this, answer.metric),
                ratio,
                interval,
                words::conclusion(answer, comparison.margin),
            ]);
            codes.push(conclusion_code(answer.conclusion));
        }
        let mut widths = [0; 6];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(width_of(cell));
            }
        }
        let is_wide = widths.iter().map(|w| w + 2).sum::<usize>() <= self.style.width;
        for (row, code) in rows.iter().zip(codes) {
            let [name, a, b, ratio, interval, answer] = row;
            let [w0, w1, w2, w3, w4, _] = widths;
            let answer = self.paint(code, answer);
            // Where the line is too short for the answer it stands below its figures.
            let line = if is_wide {
                format!("  {name:w0$}  {a:>w1$}  {b:>w2$}  {ratio:>w3$}  {interval:>w4$}  {answer}")
            } else if answer.is_empty() {
                format!("  {name:w0$}  {a:>w1$}  {b:>w2$}  {ratio:>w3$}")
            } else {
                format!("  {name:w0$}  {a:>w1$}  {b:>w2$}  {ratio:>w3$}\n      between {interval}: {answer}")
            };
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    fn evidence(&mut self, part: &Part) {
        let objections = words::objections(part);
        if objections.is_empty() {
            return;
        }
        self.heading(&if part.name.is_empty() { "Evidence".to_owned() } else { format!("Evidence: {}", part.name) });
        for (side, reasons) in objections {
            wrap(&mut self.out, "  ", 4, &format!("{side}:"), self.style.width);
            for reason in reasons {
                wrap(&mut self.out, "    ", 6, &reason, self.style.width);
            }
        }
    }

    fn syscalls(&mut self, part: &Part) {
        if part.sides.iter().all(|side| side.syscalls.is_none()) {
            return;
        }
        self.heading(if part.name.is_empty() { "System calls, of the last slice" } else { "System calls" });
        for (index, side) in part.sides.iter().enumerate() {
            for (item, rows) in words::syscalls(index, side) {
                wrap(&mut self.out, "  ", 4, &item, self.style.width);
                rows.iter().for_each(|row| wrap(&mut self.out, "    ", 6, row, self.style.width));
            }
        }
    }

    fn gates(&mut self, comparison: &Comparison) {
        if comparison.gates.is_empty() {
            return;
        }
        self.heading("Gates");
        for gate in &comparison.gates {
            let code = match gate.verdict {
                GateVerdict::Shown => "1;31",
                GateVerdict::Absent => "32",
                GateVerdict::CannotTell => "33",
            };
            let part = if gate.part.is_empty() { String::new() } else { format!("{}: ", gate.part) };
            let word = words::gate_word(gate.verdict);
            let mut text = String::new();
            wrap(&mut text, "  ", 4, &format!("{word}: {part}{}: {}", gate.condition, gate.sentence), self.style.width);
            let text = text.replacen(word, &self.paint(code, word), 1);
            self.out.push_str(&text);
        }
    }

    fn meaning(&mut self, comparison: &Comparison) {
        let mut text = String::new();
        wrap(&mut text, "", 2, &words::meaning(comparison), self.style.width);
        for noise in comparison.parts.iter().filter_map(words::noise) {
            wrap(&mut text, "", 2, &noise, self.style.width);
        }
        let text = self.paint("2", text.trim_end());
        self.out.push_str(&format!("\n{text}\n"));
    }
}

fn verdict_code(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Supported => "32",
        Verdict::Suspect => "33",
        Verdict::Contradicted => "1;31",
    }
}

fn conclusion_code(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Better | Conclusion::BetterSizeUnclear => "32",
        Conclusion::Worse | Conclusion::WorseSizeUnclear => "1;31",
        Conclusion::Same => "1",
        Conclusion::CannotTell => "33",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{Answer, Basis, Metric, Ratio};

    #[test]
    fn the_line_shows_the_interval_closing() {
        let answer = |side, ratio: Option<(f64, f64, f64)>| Answer {
            side,
            metric: Metric::Iops,
            conclusion: Conclusion::CannotTell,
            ratio: ratio.map(|(estimate, low, high)| Ratio {
                estimate,
                low,
                high,
                alpha: 0.05,
                p: None,
                pair_count: 12,
            }),
            basis: Basis::PairRatios,
            reason: None,
            needs: None,
            noise_floor: None,
        };
        let line =
            comparison_progress(12, 80, 44_200_000_000, &[answer(1, Some((1.031, 0.98, 1.084))), answer(2, None)]);
        assert_eq!(line, "round 12/80  B IOPS +3.1 % [−2.0 % … +8.4 %]  C IOPS –  45 s left at most");
    }
}
