//! A study as text for a terminal, its progress line, and the source's row format.

use super::answer::power_loss;
use super::words::{self, Line};
use crate::layout::{Page, Paint, Style};
use crate::text::{clean, width_of};
use crate::verdicts::Mark;
use trueio_model::{Contrast, StudyMode, StudyRecord};

/// Renders the study as text, ending with a line feed.
pub fn study_terminal(study: &StudyRecord, style: &Style) -> String {
    let mut page = Page::new(style);
    head(&mut page, study);
    for mode in &study.modes {
        mode_of(&mut page, study, mode);
    }
    let power_loss: Vec<String> = power_loss(study).iter().map(|one| one.sentence().to_owned()).collect();
    page.list("Power loss", &power_loss);
    page.list("Implausible published figures", &words::impossible(study));
    page.list("Units that the source labels wrongly", &study.source.corrections);
    page.list("Limits of the source's method", &study.source.doubts);
    page.outcome(&study.outcome);
    page.finish()
}

/// Formats `34/126  improved  64k FDATASYNC  38 s left`.
pub fn study_progress(mode: &str, row: &str, done: usize, count: usize, left_ns: Option<u64>) -> String {
    let left = left_ns.map_or_else(String::new, |ns| {
        let seconds = ns.div_ceil(1_000_000_000);
        if seconds < 120 { format!("  {seconds} s left") } else { format!("  {} min left", seconds.div_ceil(60)) }
    });
    format!("{}/{count}  {}  {}{left}", done + 1, clean(mode), clean(row))
}

/// Formats the rows as the source prints them, of the first mode that has such rows. `None` if the study has
/// no such format.
pub fn study_rows(study: &StudyRecord) -> Option<String> {
    let mode = study.modes.iter().find(|mode| mode.rows.iter().any(|row| row.as_published.is_some()))?;
    Some(mode.rows.iter().filter_map(|row| Some(format!("{}\n", clean(row.as_published.as_ref()?)))).collect())
}

fn head(page: &mut Page, study: &StudyRecord) {
    let title = page.paint(
        Paint::Bold,
        &format!("{} study {}{}", clean(&study.tool.name), clean(&study.study), words::quick(study)),
    );
    let when = study.started_at.replace('T', " ").replace('Z', " UTC");
    page.out.push_str(&format!("{title}  {}\n", clean(&when)));
    page.sentence(&study.title);
    page.sentence(&study.question);
    page.out.push('\n');
    let source = &study.source;
    let from = format!("{}, {}, {}; on {}", source.title, source.by, source.date, source.setting);
    page.fact("published", &from);
    let lines = study.targets.iter().flat_map(crate::words::target_lines);
    for (name, text) in lines.chain(crate::words::machine_lines(&study.environment)) {
        page.fact(name, &text);
    }
    if study.is_quick {
        let words = "Quick: smaller than the published experiment; each part lists the differences.";
        page.item(words);
    }
}

fn mode_of(page: &mut Page, study: &StudyRecord, mode: &StudyMode) {
    page.heading(&words::titled(study, &format!("{}: {}", mode.name, mode.title)));
    page.item(&words::method(mode));
    table(page, study, mode);
    page.list("No figure", &words::failures(mode));
    contrasts(page, study, mode);
    page.list(&words::titled(study, "Conclusions"), &mode.answers);
    page.list("System calls of the last sample", &words::syscalls(mode));
    page.list("Evidence", &words::doubts(mode));
    let (heading, notes) = words::notes(mode);
    page.list(heading, &notes);
}

fn table(page: &mut Page, study: &StudyRecord, mode: &StudyMode) {
    let lines = words::lines(study, mode);
    let has_durability = mode.rows.iter().any(|row| row.durability.is_some());
    let has_figures = lines.iter().any(|line| line.figure_name() != lines[0].figure_name());
    let mut head = vec!["", "figure", "published", "here", "95 % interval", "evidence", "stable storage", "flushes"];
    let keeps = [true, has_figures, true, true, true, true, has_durability, words::has_flushes(&mode.rows)];
    if !has_figures && let Some(first) = lines.first() {
        page.out.push_str(&format!("\n  {}\n", clean(&first.figure_name())));
    }
    head = head.into_iter().zip(keeps).filter(|(_, keep)| *keep).map(|(text, _)| text).collect();
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(str::to_owned).collect()];
    let mut paints = vec![Paint::Bold];
    for line in &lines {
        let cells = cells(line);
        rows.push(cells.into_iter().zip(keeps).filter(|(_, keep)| *keep).map(|(text, _)| text).collect());
        paints.push(match line.mark() {
            _ if line.row.failure.is_some() => Paint::Bad,
            Some(mark) if !mark.is_shown() => Paint::Bad,
            Some(mark) if mark > Mark::Unverified => Paint::Doubtful,
            _ => Paint::Plain,
        });
    }
    let widths: Vec<usize> =
        (0..rows[0].len()).map(|at| rows.iter().map(|row| width_of(&row[at])).max().unwrap_or(0)).collect();
    for (row, paint) in rows.iter().zip(paints) {
        let mut text = String::from("  ");
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - width_of(cell));
            // Figures are right-aligned, names left-aligned.
            let is_figure = ["published", "here"].contains(&rows[0][at].as_str());
            text.push_str(&if is_figure { format!("{pad}{cell}  ") } else { format!("{cell}{pad}  ") });
        }
        let text = page.paint(paint, text.trim_end());
        page.line(&text);
    }
    for mark in words::marks(study, mode, &lines) {
        page.item(&mark);
    }
}

fn contrasts(page: &mut Page, study: &StudyRecord, mode: &StudyMode) {
    let mut titles: Vec<&str> = Vec::new();
    for contrast in &mode.contrasts {
        if !titles.contains(&contrast.title.as_str()) {
            titles.push(&contrast.title);
        }
    }
    if titles.is_empty() {
        return;
    }
    page.heading(&words::titled(study, "Published and measured here"));
    for title in titles {
        let of_title: Vec<&Contrast> = mode.contrasts.iter().filter(|c| c.title == title).collect();
        page.item(&format!("{title}:"));
        for contrast in of_title {
            page.sub_item(&contrast.sentence);
        }
    }
}

/// Returns all cells of a line, including columns that are omitted later if empty.
fn cells(line: &Line<'_>) -> Vec<String> {
    let row = line.row;
    let verdict = line.mark().map_or_else(String::new, |mark| format!("{} {}", mark.symbol(), mark.word()));
    let only_first = |text: String| if line.is_first { text } else { String::new() };
    vec![
        only_first(clean(&row.name).into_owned()),
        line.figure_name(),
        line.published_text(),
        line.here_text(),
        line.interval_text(),
        only_first(verdict),
        only_first(words::durability_word(row).to_owned()),
        only_first(words::flushes(row)),
    ]
}
