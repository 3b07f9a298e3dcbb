//! A study as text for a terminal, the line that stands there while it runs, and the source's row format.

use super::words::{self, Line};
use crate::Style;
use crate::terminal::to_ascii;
use crate::text::{clean, width_of, wrap};
use trueio_model::{Contrast, StudyMode, StudyRecord, Verdict};

/// The study as text, ending with a line feed.
pub fn study_terminal(study: &StudyRecord, style: &Style) -> String {
    let mut page = Page { style: Style { width: style.width.max(40), ..*style }, out: String::new() };
    page.head(study);
    for mode in &study.modes {
        page.mode(study, mode);
    }
    page.list("Published figures that cannot have measured what they say", &words::impossible(study));
    page.list("Units that the source misnames", &study.source.corrections);
    page.list("What the source's method cannot show", &study.source.doubts);
    if let Some(sentence) = crate::words::outcome_sentence(&study.outcome) {
        page.out.push('\n');
        let mut text = String::new();
        wrap(&mut text, "", 2, &sentence, page.style.width);
        let text = page.paint("1;31", text.trim_end());
        page.out.push_str(&format!("{text}\n"));
    }
    if style.unicode { page.out } else { to_ascii(&page.out) }
}

/// `improved 34/126  64k FDATASYNC  38 s left`.
pub fn study_progress(mode: &str, row: &str, done: usize, count: usize, left_ns: Option<u64>) -> String {
    let left = left_ns.map_or_else(String::new, |ns| {
        let seconds = ns.div_ceil(1_000_000_000);
        if seconds < 120 { format!("  {seconds} s left") } else { format!("  {} min left", seconds.div_ceil(60)) }
    });
    format!("{}/{count}  {}  {}{left}", done + 1, clean(mode), clean(row))
}

/// The rows as the source prints them, of the first mode that has such rows. `None` if the study has no such format.
pub fn study_rows(study: &StudyRecord) -> Option<String> {
    let mode = study.modes.iter().find(|mode| mode.rows.iter().any(|row| row.as_published.is_some()))?;
    Some(mode.rows.iter().filter_map(|row| Some(format!("{}\n", clean(row.as_published.as_ref()?)))).collect())
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

    fn head(&mut self, study: &StudyRecord) {
        let title = self.paint("1", &format!("{} study {}", clean(&study.tool.name), clean(&study.study)));
        let when = study.started_at.replace('T', " ").replace('Z', " UTC");
        self.out.push_str(&format!("{title}  {}\n", clean(&when)));
        wrap(&mut self.out, "", 2, &study.title, self.style.width);
        wrap(&mut self.out, "", 2, &study.question, self.style.width);
        self.out.push('\n');
        let source = &study.source;
        let from = format!("{}, {}, {}; on {}", source.title, source.by, source.date, source.setting);
        wrap(&mut self.out, &format!("  {:<12}", "published"), 14, &from, self.style.width);
        let lines = study.targets.iter().flat_map(crate::words::target_lines);
        for (name, text) in lines.chain(crate::words::machine_lines(&study.environment)) {
            wrap(&mut self.out, &format!("  {name:<12}"), 14, &text, self.style.width);
        }
        if study.is_quick {
            let words = "Quick: smaller than what was published, as said with each part.";
            wrap(&mut self.out, "  ", 4, words, self.style.width);
        }
    }

    fn mode(&mut self, study: &StudyRecord, mode: &StudyMode) {
        self.heading(&format!("{}: {}", mode.name, mode.title));
        wrap(&mut self.out, "  ", 4, &words::method(mode), self.style.width);
        self.table(study, mode);
        self.list("No figure", &words::failures(mode));
        self.contrasts(mode);
        self.list("What follows", &mode.answers);
        self.list("System calls, of the last sample", &words::syscalls(mode));
        self.list("Evidence", &words::objections(mode));
        self.list("Method", &mode.notes);
    }

    fn table(&mut self, study: &StudyRecord, mode: &StudyMode) {
        let lines = words::lines(study, mode);
        let has_durability = mode.rows.iter().any(|row| row.durability.is_some());
        let has_figures = lines.iter().any(|line| line.figure_name() != lines[0].figure_name());
        let mut head = vec!["", "figure", "published", "here", "95 % interval", "evidence", "stable storage"];
        let keeps = [true, has_figures, true, true, true, true, has_durability];
        if !has_figures && let Some(first) = lines.first() {
            self.out.push_str(&format!("\n  {}\n", clean(&first.figure_name())));
        }
        head = head.into_iter().zip(keeps).filter(|(_, keep)| *keep).map(|(text, _)| text).collect();
        let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(str::to_owned).collect()];
        let mut codes = vec!["1"];
        for line in &lines {
            let cells = cells(line);
            rows.push(cells.into_iter().zip(keeps).filter(|(_, keep)| *keep).map(|(text, _)| text).collect());
            codes.push(match line.row.verdict {
                _ if line.row.failure.is_some() => "31",
                Some(Verdict::Contradicted) => "31",
                Some(Verdict::Suspect) => "33",
                _ => "",
            });
        }
        let widths: Vec<usize> =
            (0..rows[0].len()).map(|at| rows.iter().map(|row| width_of(&row[at])).max().unwrap_or(0)).collect();
        for (row, code) in rows.iter().zip(codes) {
            let mut text = String::from("  ");
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width - width_of(cell));
                // Figures to the right, names to the left.
                let is_figure = ["published", "here"].contains(&rows[0][at].as_str());
                text.push_str(&if is_figure { format!("{pad}{cell}  ") } else { format!("{cell}{pad}  ") });
            }
            let text = self.paint(code, text.trim_end());
            self.out.push_str(&format!("{text}\n"));
        }
        for mark in words::marks(&lines) {
            wrap(&mut self.out, "  ", 4, mark, self.style.width);
        }
    }

    fn contrasts(&mut self, mode: &StudyMode) {
        let mut titles: Vec<&str> = Vec::new();
        for contrast in &mode.contrasts {
            if !titles.contains(&contrast.title.as_str()) {
                titles.push(&contrast.title);
            }
        }
        if titles.is_empty() {
            return;
        }
        self.heading("Theirs and ours");
        for title in titles {
            let of_title: Vec<&Contrast> = mode.contrasts.iter().filter(|c| c.title == title).collect();
            wrap(&mut self.out, "  ", 4, &format!("{title}:"), self.style.width);
            for contrast in of_title {
                wrap(&mut self.out, "    ", 6, &contrast.sentence, self.style.width);
            }
        }
    }
}

/// All cells of a line, before columns that say nothing are left out.
fn cells(line: &Line<'_>) -> Vec<String> {
    let row = line.row;
    let verdict = row.verdict.map_or_else(String::new, |verdict| verdict.to_string());
    let only_first = |text: String| if line.is_first { text } else { String::new() };
    vec![
        only_first(clean(&row.name).into_owned()),
        line.figure_name(),
        line.published_text(),
        line.here_text(),
        line.interval_text(),
        only_first(verdict),
        only_first(words::durability_word(row).to_owned()),
    ]
}
