//! A record as text for a terminal.
//!
//! What the target is, one table with a row an operation, the reasons in words, what could not be
//! seen, errors, notes, and what the tool itself cost. The table has one unit a column, so that
//! figures can be compared down the column; where it does not fit the width, each row becomes two
//! lines. A contradicted phase has no figures: its rows are crossed out, and the reasons follow before
//! anything else is printed.
//!
//! Colour repeats what the words say and adds nothing. Whether to use it (`NO_COLOR`, a pipe) is
//! the caller's decision.

use crate::summary::{Row, Scale, summary};
use crate::syscalls::syscalls;
use crate::text::{clean, figure, width_of, wrap};
use crate::words::{
    check_sentence, failed_ios, footnotes, levels, machine_lines, manners, not_seen, notes, outcome_sentence,
    ruler_sentences, steady_states, target_lines, verification, withheld,
};
use trueio_model::{Check, CheckOutcome, Environment, Histogram, RunRecord, TargetFacts, Verdict, units};

/// How text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal. Less than 40 is treated as 40; a figure is never cut off.
    pub width: usize,
    /// Use ANSI colours.
    pub color: bool,
    /// Use characters beyond ASCII (`µs`, `–`); without it they are written `us`, `-`.
    pub unicode: bool,
}

/// The record as text, ending with a line feed.
pub fn terminal(record: &RunRecord, style: &Style) -> String {
    let mut page = Page { style: Style { width: style.width.max(40), ..*style }, out: String::new() };
    page.header(record);
    page.table(record);
    page.reasons(record);
    page.steady_states(record);
    page.syscalls(record);
    page.not_seen(record);
    page.errors(record);
    page.jobs(record);
    page.notes(record);
    page.ruler(record);
    page.outcome(record);
    if style.unicode { page.out } else { to_ascii(&page.out) }
}

/// What a target and its machine are, as text: the head of every terminal page.
pub fn target(target: &TargetFacts, environment: &Environment, style: &Style) -> String {
    let mut page = Page { style: Style { width: style.width.max(40), ..*style }, out: String::new() };
    for (name, text) in target_lines(target).into_iter().chain(machine_lines(environment)) {
        page.fact(name, &text);
    }
    if style.unicode { page.out } else { to_ascii(&page.out) }
}

/// Our own marks in ASCII, one character for one, so that columns stay where they are.
pub(crate) fn to_ascii(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            'µ' => 'u',
            '–' | '−' => '-',
            '→' => '>',
            '×' => 'x',
            '≥' => '>',
            '…' => '.',
            '\u{a0}' => ' ',
            '\u{fffd}' => '?',
            other => other,
        })
        .collect()
}

/// ANSI colours, as the numbers of their escape sequence.
#[derive(Clone, Copy)]
enum Paint {
    Bold,
    Dim,
    Good,
    Doubtful,
    Bad,
}

impl Paint {
    fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Supported => Paint::Good,
            Verdict::Suspect => Paint::Doubtful,
            Verdict::Contradicted => Paint::Bad,
        }
    }
}

struct Page {
    style: Style,
    out: String,
}

impl Page {
    fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            _ if !self.style.color || text.is_empty() => return text.to_owned(),
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Good => "32",
            Paint::Doubtful => "33",
            Paint::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    fn heading(&mut self, text: &str) {
        let text = self.paint(Paint::Bold, text);
        self.out.push('\n');
        self.out.push_str(&text);
        self.out.push('\n');
    }

    /// A sentence under a heading, indented by two.
    fn item(&mut self, text: &str) {
        wrap(&mut self.out, "  ", 4, text, self.style.width);
    }

    /// A sentence that belongs to the item above.
    fn sub_item(&mut self, text: &str) {
        wrap(&mut self.out, "    ", 6, text, self.style.width);
    }

    /// A named line of the header.
    fn fact(&mut self, name: &str, text: &str) {
        const NAME_WIDTH: usize = 14;
        let first = format!("  {name:<0$}", NAME_WIDTH - 2);
        wrap(&mut self.out, &first, NAME_WIDTH, text, self.style.width);
    }

    fn header(&mut self, record: &RunRecord) {
        let title = format!("{} {}", clean(&record.tool.name), clean(&record.kind));
        let title = self.paint(Paint::Bold, &title);
        self.out.push_str(&title);
        let id: String = record.id.chars().take(8).collect();
        let when = record.started_at.replace('T', " ").replace('Z', " UTC");
        self.out.push_str(&format!("  {}  record {}\n", clean(&when), clean(&id)));
        if let Some(sentence) = outcome_sentence(&record.outcome) {
            let sentence = self.paint(Paint::Bad, &clean(&sentence));
            self.out.push_str(&sentence);
            self.out.push('\n');
        }
        self.out.push('\n');
        let lines = record.targets.iter().flat_map(target_lines).chain(machine_lines(&record.environment));
        for (name, text) in lines {
            self.fact(name, &text);
        }
    }

    fn table(&mut self, record: &RunRecord) {
        self.out.push('\n');
        let rows = summary(record);
        let scale = Scale::of(&rows);
        let cells: Vec<Cells> = rows.iter().map(|row| Cells::of(row, record, scale)).collect();
        let heads: [(&str, &str); FIGURES] = [
            ("bandwidth", "MiB/s"),
            ("IOPS", "1/s"),
            ("lat p50", scale.unit),
            ("p99", scale.unit),
            ("p99.9", scale.unit),
            ("max", scale.unit),
            ("CPU/IO", "µs"),
        ];
        let name_width = cells.iter().map(|c| width_of(&c.name)).max().unwrap_or(0);
        let mut widths = heads.map(|(a, b)| width_of(a).max(width_of(b)));
        for row in &cells {
            for (width, cell) in widths.iter_mut().zip(&row.figures) {
                *width = (*width).max(width_of(cell));
            }
        }
        let verdict_width = cells.iter().map(|c| width_of(&c.verdict)).max().unwrap_or(0);
        let figures_width: usize = widths.iter().map(|w| w + 2).sum();
        let is_wide = name_width + figures_width + 2 + verdict_width <= self.style.width;
        // In the narrow layout the name stands on a line of its own, the figures below it.
        let indent = if is_wide { name_width } else { 0 };

        for line in 0..2 {
            let mut text = " ".repeat(indent);
            for ((a, b), width) in heads.iter().zip(widths) {
                text.push_str(&format!("  {:>width$}", if line == 0 { a } else { b }));
            }
            if line == 0 && is_wide {
                text.push_str("  evidence");
            }
            let text = self.paint(if line == 0 { Paint::Bold } else { Paint::Dim }, text.trim_end());
            self.out.push_str(&text);
            self.out.push('\n');
        }
        for (i, row) in cells.iter().enumerate() {
            let mut figures = String::new();
            for (cell, width) in row.figures.iter().zip(widths) {
                figures.push_str(&format!("  {cell:>width$}"));
            }
            let verdict = self.paint(row.paint, &row.verdict);
            if is_wide {
                let name = &row.name;
                self.out.push_str(&format!("{name:name_width$}{figures}  {verdict}\n"));
            } else {
                let name = self.paint(Paint::Bold, &row.name);
                self.out.push_str(&format!("{name}  {verdict}\n{}\n", figures.trim_end()));
            }
            let phase_index = rows[i].phase_index;
            if rows.get(i + 1).is_none_or(|next| next.phase_index != phase_index) {
                self.contradictions(record, phase_index);
            }
        }
        for (index, phase) in record.phases.iter().enumerate() {
            if !rows.iter().any(|r| r.phase_index == index) {
                let text = format!("{}: nothing was measured", phase.name);
                self.item(&text);
                self.contradictions(record, index);
            }
        }
        if record.phases.is_empty() {
            self.item("Nothing was measured.");
        }
        self.footnotes(record, &rows);
        self.levels(record);
    }

    /// What the levels beside the verdicts mean; only those that occur.
    fn levels(&mut self, record: &RunRecord) {
        let Some(text) = levels(record) else { return };
        let mut out = String::new();
        wrap(&mut out, "", 2, &text, self.style.width);
        let out = self.paint(Paint::Dim, out.trim_end());
        self.out.push('\n');
        self.out.push_str(&out);
        self.out.push('\n');
    }

    /// The reasons of a contradicted phase, directly below its figures.
    fn contradictions(&mut self, record: &RunRecord, phase_index: usize) {
        let phase = &record.phases[phase_index];
        if phase.verdict != Verdict::Contradicted {
            return;
        }
        let mut has_reason = false;
        for check in phase.checks.iter().filter(|c| c.outcome == CheckOutcome::Contradicted) {
            let text = format!("contradicted by {}: {}", check.name, check_sentence(check));
            self.sub_item(&text);
            has_reason = true;
        }
        if let Some(text) = withheld(phase) {
            self.sub_item(&text);
        }
        if !has_reason {
            self.sub_item("contradicted; the record does not hold the check that says so");
        }
    }

    fn footnotes(&mut self, record: &RunRecord, rows: &[Row]) {
        for text in footnotes(record, rows) {
            self.out.push('\n');
            wrap(&mut self.out, "", 2, &text, self.style.width);
        }
    }

    /// The sentences of suspect checks, and of phases that did not end as planned.
    fn reasons(&mut self, record: &RunRecord) {
        let mut is_first = true;
        // What was said in full, and of which phase: a target that is doubtful is so in all of them.
        let mut told: Vec<(String, &str)> = Vec::new();
        for phase in &record.phases {
            let doubts = |c: &&Check| c.outcome == CheckOutcome::Suspect || c.is_accepted;
            let suspect: Vec<&Check> = phase.checks.iter().filter(doubts).collect();
            let outcome = outcome_sentence(&phase.outcome);
            if suspect.is_empty() && outcome.is_none() && phase.verdict != Verdict::Suspect {
                continue;
            }
            if std::mem::take(&mut is_first) {
                self.heading("Reasons");
            }
            self.item(&format!("{} ({} {}):", phase.name, phase.verdict, phase.level));
            for check in &suspect {
                let accepted = if check.is_accepted { " (contradicts; accepted by --accept)" } else { "" };
                let text = format!("{}{accepted}: {}", check.name, check_sentence(check));
                match told.iter().find(|t| t.0 == text) {
                    Some((_, phase)) => self.sub_item(&format!("{}: as said of {phase}", check.name)),
                    None => {
                        self.sub_item(&text);
                        told.push((text, &phase.name));
                    }
                }
            }
            if let Some(sentence) = outcome {
                self.sub_item(&sentence);
            } else if suspect.is_empty() {
                self.sub_item("the record does not hold the check that says so");
            }
        }
    }

    /// How phases came to a steady state.
    fn steady_states(&mut self, record: &RunRecord) {
        let sentences = steady_states(record);
        if !sentences.is_empty() {
            self.heading("Steady state");
        }
        for sentence in sentences {
            self.item(&sentence);
        }
    }

    /// The system calls of each job, where they were recorded.
    fn syscalls(&mut self, record: &RunRecord) {
        let items = syscalls(record);
        if !items.is_empty() {
            self.heading("System calls");
        }
        for (item, sub_items) in items {
            self.item(&item);
            for sub_item in sub_items {
                self.sub_item(&sub_item);
            }
        }
    }

    /// What no check could see, each once.
    fn not_seen(&mut self, record: &RunRecord) {
        let sentences = not_seen(record);
        if !sentences.is_empty() {
            self.heading("Not seen");
        }
        for sentence in sentences {
            self.item(&sentence);
        }
    }

    fn errors(&mut self, record: &RunRecord) {
        for (heading, items) in [("Failed I/Os", failed_ios(record)), ("Verification", verification(record))] {
            if !items.is_empty() {
                self.heading(heading);
            }
            for (item, sub_items) in items {
                self.item(&item);
                for sub_item in sub_items {
                    self.sub_item(&sub_item);
                }
            }
        }
    }

    fn jobs(&mut self, record: &RunRecord) {
        let sentences = manners(record);
        if !sentences.is_empty() {
            self.heading("How");
        }
        for sentence in sentences {
            self.item(&sentence);
        }
    }

    fn notes(&mut self, record: &RunRecord) {
        let notes = notes(record);
        if !notes.is_empty() {
            self.heading("Notes");
        }
        for note in notes {
            self.item(&note);
        }
    }

    fn ruler(&mut self, record: &RunRecord) {
        self.heading("The tool itself, here");
        for sentence in ruler_sentences(record) {
            self.item(&sentence);
        }
    }

    fn outcome(&mut self, record: &RunRecord) {
        if let Some(sentence) = outcome_sentence(&record.outcome) {
            let mut text = String::new();
            wrap(&mut text, "", 2, &sentence, self.style.width);
            let text = self.paint(Paint::Bad, text.trim_end());
            self.out.push('\n');
            self.out.push_str(&text);
            self.out.push('\n');
        }
    }
}

/// Figures of a row.
const FIGURES: usize = 7;

/// A row of the table, as text.
struct Cells {
    name: String,
    figures: [String; FIGURES],
    verdict: String,
    paint: Paint,
}

impl Cells {
    fn of(row: &Row, record: &RunRecord, scale: Scale) -> Self {
        let phase = &record.phases[row.phase_index];
        // A mark in each column: an empty one would look like a figure that there is not.
        let absent = || if row.is_withheld { "x".to_owned() } else { String::new() };
        let number = |value: Option<f64>| value.map_or_else(absent, figure);
        let [p50, p99, p999] = row.quantiles.map(|q| match q {
            Some(q) => scale.show(q.value_ns),
            None if row.is_withheld => "x".to_owned(),
            None => "–".to_owned(),
        });
        let clipped = row.histogram(record).is_some_and(|h: &Histogram| h.overflow_count() > 0);
        Cells {
            name: clean(&row.label).into_owned(),
            figures: [
                number(row.bytes_per_s.map(|b| b / (1u64 << 20) as f64)),
                match row.ios_per_s {
                    Some(rate) if rate >= 99.95 => units::format_count(rate.round() as u64),
                    other => number(other),
                },
                p50,
                p99,
                p999,
                row.latency_ns_max.map_or_else(absent, |ns| scale.show(ns)),
                number(row.cpu_ns_per_io.map(|ns| ns / 1e3)),
            ],
            verdict: {
                let verdict = match phase.verdict {
                    Verdict::Contradicted => "CONTRADICTED".to_owned(),
                    other => other.to_string(),
                };
                format!("{verdict} {}{}", phase.level, if clipped { ", over 73 min" } else { "" })
            },
            paint: Paint::of(phase.verdict),
        }
    }
}
