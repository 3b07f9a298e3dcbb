//! The end of a comparison on a terminal: the answer, one table, doubts with the next step, and the answer again.
//!
//! ```text
//! B (after) is slower than A (before): IOPS −10 %, between −12 % and −7.0 %.
//!
//!   A  before  randread 4k q1  + confirmed
//!   B  after   randread 4k q1  + confirmed
//!
//!                      A          B  B to A  between
//!   IOPS      10,000 1/s  9,009 1/s   −10 %  −12 % and −7.0 %  slower
//!   p99           180 µs     200 µs   +11 %  +8.0 % and +14 %  slower
//!
//!   B to A: paired estimate of 80 rounds; differences up to 5 % count as none.
//! Details: add -v
//! B (after) is slower than A (before): IOPS −10 %, between −12 % and −7.0 %.
//! ```
//!
//! It fits 24 lines at 80 columns. Everything else is in [`comparison_terminal`](super::comparison_terminal).

use super::answer::{HEADLINES_MAX, comparison_answer, shown};
use super::terminal::{gate_lines, paint_of};
use super::words;
use crate::layout::{Page, Paint, Style};
use crate::text::{clean, counted, fitted, padded, width_of, wrap};
use trueio_model::{Answer, Comparison, Conclusion, DocumentAnswer, Method, Metric, Part, Side};

/// Lines of the smallest terminal, without the line of the next prompt.
const LINE_COUNT: usize = 23;
/// Sides that are listed.
const SIDES_MAX: usize = 6;
/// Rows of the table of several sides or parts.
const ROWS_MAX: usize = 8;
/// Lines that an answer may take at each end.
const HEADLINE_LINES_MAX: usize = 4;

/// Renders the end of a comparison, ending with a line feed. `details` is how to get the details: `add -v`.
pub fn comparison_screen(comparison: &Comparison, style: &Style, details: &str) -> String {
    let answer = comparison_answer(comparison);
    let comparison = &*shown(comparison);
    let mut page = Page::new(style);
    let headline = headline(&page, &answer);
    page.out.push_str(&headline);
    if let Some(sentence) = crate::words::outcome_sentence(&comparison.outcome) {
        page.sentence(&sentence);
    }
    page.out.push('\n');
    table(&mut page, comparison);
    gate_lines(&mut page, comparison);
    let end = end(&page, comparison, details) + &headline;
    let used = page.out.lines().count() + end.lines().count();
    doubts(&mut page, &answer, LINE_COUNT.saturating_sub(used));
    page.out.push_str(&end);
    page.finish()
}

/// Returns the answer, cut at the sentence that does not fit.
fn headline(page: &Page, answer: &DocumentAnswer) -> String {
    let mut out = String::new();
    for (index, sentence) in answer.headline.iter().enumerate() {
        let mut text = String::new();
        wrap(&mut text, "", 2, &clean(sentence), page.style.width);
        let is_last = index + 1 == answer.headline.len();
        let room = HEADLINE_LINES_MAX - usize::from(!is_last);
        if index > 0 && out.lines().count() + text.lines().count() > room {
            out.push_str(&format!("And {} more.\n", answer.headline.len() - index));
            break;
        }
        out.push_str(&text);
    }
    out
}

fn table(page: &mut Page, comparison: &Comparison) {
    match comparison.parts.as_slice() {
        [part] if part.sides.len() == 2 => {
            sides(page, part);
            page.out.push('\n');
            of_metrics(page, comparison, part);
        }
        parts => {
            if let [part] = parts
                && part.sides.len() <= HEADLINES_MAX
            {
                sides(page, part);
                page.out.push('\n');
            }
            of_sides(page, parts);
        }
    }
}

fn sides(page: &mut Page, part: &Part) {
    // The word is the longest last column; a name that does not fit next to it is cut.
    const WORD_WIDTH: usize = 14;
    let room = page.style.width - 9 - WORD_WIDTH;
    let name = |side: &Side| fitted(&clean(&side.name), room);
    let shown = || part.sides.iter().take(SIDES_MAX);
    let width = shown().map(|side| width_of(&name(side))).max().unwrap_or(0);
    let detail_width = shown().map(|side| width_of(&clean(&words::detail_of(side))) + 2).max().unwrap_or(0);
    let fits = width + detail_width <= room;
    for (index, side) in shown().enumerate() {
        let mark = side.mark();
        let word = page.paint(Paint::of_mark(mark), &format!("{} {}", mark.symbol(), mark.word()));
        let detail =
            if fits { padded(&format!("  {}", clean(&words::detail_of(side))), detail_width) } else { String::new() };
        page.line(&format!("  {}  {}{detail}  {word}", words::letter(index), padded(&name(side), width)));
    }
}

/// Returns the name of a metric in a narrow column.
fn short_title(metric: Metric) -> &'static str {
    match metric {
        Metric::Iops => "IOPS",
        Metric::CpuPerIo => "CPU per I/O",
        other => other.name(),
    }
}

/// Returns the conclusion in one word.
fn short_conclusion(part: &Part, answer: &Answer) -> String {
    if !part.without_a_winner(answer.side).is_empty() {
        return words::worst_of(part, answer.side).word().to_owned();
    }
    let is_cpu = answer.metric == Metric::CpuPerIo;
    match answer.conclusion {
        Conclusion::Better | Conclusion::BetterSizeUnclear => {
            if is_cpu {
                "less"
            } else {
                "faster"
            }
        }
        Conclusion::Worse | Conclusion::WorseSizeUnclear => {
            if is_cpu {
                "more"
            } else {
                "slower"
            }
        }
        Conclusion::Same => "equal",
        Conclusion::CannotTell => "undecided",
    }
    .to_owned()
}

/// One line a metric, for two sides.
fn of_metrics(page: &mut Page, comparison: &Comparison, part: &Part) {
    let letter = words::letter(1);
    let head = ["", "A", &letter, &format!("{letter} to A"), "between", ""].map(str::to_owned).to_vec();
    let mut rows = vec![(head, Paint::Bold)];
    for answer in part.answers.iter().filter(|answer| answer.side == 1) {
        let (ratio, interval) = match &answer.ratio {
            Some(r) => (words::change_of(r), format!("{} and {}", words::change(r.low), words::change(r.high))),
            None => ("–".to_owned(), "–".to_owned()),
        };
        let figure = |side: usize| words::figure_of(&part.sides[side], answer.metric);
        let name = short_title(answer.metric).to_owned();
        let cells = vec![name, figure(0), figure(1), ratio, interval, short_conclusion(part, answer)];
        rows.push((cells, paint_of(words::concluded(part, answer))));
    }
    print_rows(page, &rows);
    let how = match comparison.method {
        Method::Records => "estimate of the intervals of both runs".to_owned(),
        Method::Interleaved { round_count, .. } => {
            format!("paired estimate of {}", counted(u64::from(round_count), "round"))
        }
    };
    let margin = words::percent(comparison.margin);
    page.item(&format!("{letter} to A: {how}; differences up to {margin} count as none."));
}

/// One line a side except the first, for several sides or parts.
fn of_sides(page: &mut Page, parts: &[Part]) {
    let head = ["", "IOPS", "to A", "p99", "to A", ""].map(str::to_owned).to_vec();
    let mut rows = vec![(head, Paint::Bold)];
    for part in parts {
        for (index, side) in part.sides.iter().enumerate() {
            let name = match part.name.as_str() {
                "" => format!("{}  {}", words::letter(index), clean(&side.name)),
                name => format!("{}  {}", words::letter(index), clean(name)),
            };
            let of = |metric: Metric| part.answers.iter().find(|a| a.side == index && a.metric == metric);
            let change = |metric: Metric| {
                of(metric).and_then(|answer| answer.ratio).map_or_else(|| "–".to_owned(), |r| words::change_of(&r))
            };
            let (word, paint) = match of(Metric::Iops) {
                Some(answer) => (short_conclusion(part, answer), paint_of(words::concluded(part, answer))),
                None => (side.mark().word().to_owned(), Paint::of_mark(side.mark())),
            };
            let figure = |metric: Metric| words::figure_of(side, metric).trim_end_matches(" 1/s").to_owned();
            let is_first = index == 0;
            let of_a = |text: String| if is_first { String::new() } else { text };
            let cells = vec![
                name,
                figure(Metric::Iops),
                of_a(change(Metric::Iops)),
                figure(Metric::P99),
                of_a(change(Metric::P99)),
                word,
            ];
            rows.push((cells, paint));
        }
    }
    let more = rows.len().saturating_sub(1 + ROWS_MAX);
    rows.truncate(1 + ROWS_MAX);
    print_rows(page, &rows);
    if more > 0 {
        page.item(&format!("And {more} more sides."));
    }
}

/// Prints rows: names at the left, figures at the right, the last column as it is. A name that does not fit is cut.
fn print_rows(page: &mut Page, rows: &[(Vec<String>, Paint)]) {
    let count = rows.first().map_or(0, |(cells, _)| cells.len());
    let mut widths: Vec<usize> =
        (0..count).map(|at| rows.iter().map(|(cells, _)| width_of(&cells[at])).max().unwrap_or(0)).collect();
    let others: usize = widths.iter().skip(1).map(|width| width + 2).sum();
    let room = page.style.width.saturating_sub(2 + others).max(8);
    widths[0] = widths[0].min(room);
    for (cells, paint) in rows {
        let mut line = format!("  {}", padded(&fitted(&cells[0], widths[0]), widths[0]));
        for (at, cell) in cells.iter().enumerate().skip(1) {
            let pad = " ".repeat(widths[at].saturating_sub(width_of(cell)));
            let is_last = at + 1 == cells.len();
            line.push_str("  ");
            line.push_str(&if is_last { page.paint(*paint, cell) } else { format!("{pad}{cell}") });
        }
        page.line(&line);
    }
}

/// Prints the next steps, then doubts, as many as fit into `room` lines.
fn doubts(page: &mut Page, answer: &DocumentAnswer, room: usize) {
    let mut left = room;
    let mut print = |page: &mut Page, text: String, min: usize| {
        let mut wrapped = String::new();
        wrap(&mut wrapped, "", 2, &clean(&text), page.style.width);
        let lines = wrapped.lines().count();
        if lines + min <= left {
            left -= lines;
            page.out.push_str(&wrapped);
        }
    };
    // A step is never cut; a doubt gives way to it.
    let steps: Vec<String> = answer.next_steps.iter().take(2).map(|step| format!("→ {step}")).collect();
    let reserved = steps.iter().map(|step| width_of(step).div_ceil(page.style.width.max(40) - 4)).sum();
    for doubt in &answer.doubts {
        print(page, doubt.clone(), reserved);
    }
    for step in steps {
        print(page, step, 0);
    }
}

/// Returns how the figures were measured, in a word, and where the details are.
fn end(page: &Page, comparison: &Comparison, details: &str) -> String {
    let mut out = String::new();
    let differences = words::differences(comparison).len();
    let differing = match differences {
        0 => String::new(),
        1 => "1 difference between the sides; ".to_owned(),
        count => format!("{count} differences between the sides; "),
    };
    wrap(&mut out, "", 2, &format!("Details: {differing}{details}"), page.style.width);
    out
}
