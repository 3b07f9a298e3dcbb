//! A comparison as text for a terminal, and its progress line.

use super::answer::shown;
use super::words;
use crate::layout::{Page, Paint, Style};
use crate::text::{clean, padded, width_of, wrap};
use trueio_model::{Comparison, Conclusion, GateVerdict, Part};

/// Renders every detail of the comparison as text, ending with a line feed.
pub fn comparison_terminal(comparison: &Comparison, style: &Style) -> String {
    let comparison = &*shown(comparison);
    let mut page = Page::new(style);
    head(&mut page, comparison);
    for part in &comparison.parts {
        part_of(&mut page, comparison, part);
    }
    if comparison.parts.is_empty() {
        page.out.push_str("\nNothing was measured.\n");
    }
    page.list("Differences between the runs", &words::differences(comparison));
    for part in &comparison.parts {
        let title = if part.name.is_empty() { "Undecided".to_owned() } else { format!("Undecided: {}", part.name) };
        page.list(&title, &words::reasons(part));
        let title = if part.name.is_empty() { String::new() } else { format!(": {}", part.name) };
        page.list(&format!("Figures that differ from the change{title}"), &words::divergences(comparison, part));
        evidence(&mut page, part);
        syscalls(&mut page, part);
    }
    page.list("Notes", &comparison.notes);
    gates(&mut page, comparison);
    let noise = comparison.parts.iter().filter_map(words::noise);
    page.aside(Paint::Dim, &std::iter::once(words::meaning(comparison)).chain(noise).collect::<Vec<_>>());
    page.outcome(&comparison.outcome);
    page.finish()
}

/// Formats the progress of a comparison as one line without a line feed: rounds, intervals, remaining time.
pub fn comparison_progress(round: u32, round_max: u32, left_ns: u64, answers: &[trueio_model::Answer]) -> String {
    let mut parts: Vec<String> = answers
        .iter()
        .take(3)
        .map(|answer| {
            let what = format!("{} {}", words::letter(answer.side), words::metric_title(answer.metric));
            match &answer.ratio {
                Some(r) => {
                    format!("{what} {} [{} … {}]", words::change_of(r), words::change(r.low), words::change(r.high))
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

fn head(page: &mut Page, comparison: &Comparison) {
    let title = page.paint(Paint::Bold, &format!("{} compare", clean(&comparison.tool.name)));
    let when = comparison.started_at.replace('T', " ").replace('Z', " UTC");
    page.out.push_str(&format!("{title}  {}\n", clean(&when)));
    page.sentence(&words::method(comparison));
    if let Some(setting) = &comparison.setting {
        page.out.push('\n');
        let lines = setting.targets.iter().flat_map(crate::words::target_lines);
        for (name, text) in lines.chain(crate::words::machine_lines(&setting.environment)) {
            page.fact(name, &text);
        }
    }
}

fn part_of(page: &mut Page, comparison: &Comparison, part: &Part) {
    if !part.name.is_empty() {
        page.heading(&part.name);
    } else {
        page.out.push('\n');
    }
    for (index, side) in part.sides.iter().enumerate() {
        let mark = side.mark();
        let verdict = format!("{} {} {}", mark.symbol(), mark.word(), side.level);
        let verdict = page.paint(Paint::of_mark(mark), &verdict);
        let detail = words::detail_of(side);
        let detail = if detail.is_empty() { detail } else { format!("  {}", clean(&detail)) };
        page.out.push_str(&format!("  {}  {}{detail}  {verdict}\n", words::letter(index), clean(&side.name)));
    }
    if let Some(sentence) = words::levels(part) {
        page.aside(Paint::Dim, &[sentence]);
    }
    if let Some(sentence) = words::best(part) {
        page.out.push('\n');
        page.sentence(sentence.sentence());
    }
    for side in 1..part.sides.len() {
        page.out.push('\n');
        page.sentence(&words::headline(comparison, part, side));
        table(page, comparison, part, side);
    }
}

fn table(page: &mut Page, comparison: &Comparison, part: &Part, side: usize) {
    let (Some(first), Some(this)) = (part.sides.first(), part.sides.get(side)) else { return };
    let letter = words::letter(side);
    let mut rows = vec![[
        String::new(),
        "A".to_owned(),
        letter.clone(),
        words::ratio_title(comparison, side),
        "between".to_owned(),
        String::new(),
    ]];
    let mut paints = vec![Paint::Bold];
    for answer in part.answers.iter().filter(|a| a.side == side) {
        let (ratio, interval) = match &answer.ratio {
            Some(r) => (words::change_of(r), format!("{} and {}", words::change(r.low), words::change(r.high))),
            None => ("–".to_owned(), "–".to_owned()),
        };
        rows.push([
            words::metric_title(answer.metric).to_owned(),
            words::figure_of(first, answer.metric),
            words::figure_of(this, answer.metric),
            ratio,
            interval,
            words::conclusion(part, answer, comparison.margin),
        ]);
        paints.push(paint_of(words::concluded(part, answer)));
    }
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(width_of(cell));
        }
    }
    let is_wide = widths.iter().map(|w| w + 2).sum::<usize>() <= page.style.width;
    for (row, paint) in rows.iter().zip(paints) {
        let [name, a, b, ratio, interval, answer] = row;
        let [w0, w1, w2, w3, w4, _] = widths;
        let name = padded(name, w0);
        let answer = page.paint(paint, answer);
        // If the line is too short for the answer, the answer is below its figures.
        let line = if is_wide {
            format!("  {name}  {a:>w1$}  {b:>w2$}  {ratio:>w3$}  {interval:>w4$}  {answer}")
        } else if answer.is_empty() {
            format!("  {name}  {a:>w1$}  {b:>w2$}  {ratio:>w3$}")
        } else {
            format!("  {name}  {a:>w1$}  {b:>w2$}  {ratio:>w3$}\n      between {interval}: {answer}")
        };
        page.line(&line);
    }
}

fn evidence(page: &mut Page, part: &Part) {
    let doubts = words::doubts(part);
    if doubts.is_empty() {
        return;
    }
    page.heading(&if part.name.is_empty() { "Evidence".to_owned() } else { format!("Evidence: {}", part.name) });
    for (side, reasons) in doubts {
        page.item(&format!("{side}:"));
        for reason in reasons {
            page.sub_item(&reason);
        }
    }
}

fn syscalls(page: &mut Page, part: &Part) {
    if part.sides.iter().all(|side| side.syscalls.is_none()) {
        return;
    }
    page.heading(if part.name.is_empty() { "System calls of the last slice" } else { "System calls" });
    for (index, side) in part.sides.iter().enumerate() {
        for (item, rows) in words::syscalls(index, side) {
            page.item(&item);
            rows.iter().for_each(|row| page.sub_item(row));
        }
    }
}

fn gates(page: &mut Page, comparison: &Comparison) {
    if !comparison.gates.is_empty() {
        page.heading("Gates");
        gate_lines(page, comparison);
    }
}

/// Prints a line for each gate.
pub(super) fn gate_lines(page: &mut Page, comparison: &Comparison) {
    for gate in &comparison.gates {
        let paint = match gate.verdict {
            GateVerdict::Shown => Paint::Bad,
            GateVerdict::Absent => Paint::Good,
            GateVerdict::CannotTell => Paint::Doubtful,
        };
        let part = if gate.part.is_empty() { String::new() } else { format!("{}: ", gate.part) };
        let word = words::gate_word(gate.verdict);
        let mut text = String::new();
        wrap(&mut text, "  ", 4, &format!("{word}: {part}{}: {}", gate.condition, gate.sentence), page.style.width);
        let text = text.replacen(word, &page.paint(paint, word), 1);
        page.out.push_str(&text);
    }
}

pub(super) fn paint_of(conclusion: Conclusion) -> Paint {
    match conclusion {
        Conclusion::Better | Conclusion::BetterSizeUnclear => Paint::Good,
        Conclusion::Worse | Conclusion::WorseSizeUnclear => Paint::Bad,
        Conclusion::Same => Paint::Bold,
        Conclusion::CannotTell => Paint::Doubtful,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{Answer, Basis, Metric, Ratio};

    #[test]
    fn the_line_shows_rounds_intervals_and_remaining_time() {
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
