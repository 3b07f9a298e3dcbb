//! The end of a run on a terminal: of a baseline the answer first, then one line a load, reasons by cause with the next step, and what
//! the evidence is.
//!
//! ```text
//! Cannot tell: 2 of 3 loads are not confirmed (rand-read-4k-q1: dd wrote 335 MiB). Durable commits: 3,685 per second.
//! vda  virtio, 256 GiB, ext4 on /                    3 loads, 58 s (52 s planned)
//!
//!   seq-read-1m                3.05 GiB/s  ▇▇▇▇▅▅▅▅  p99 3.59 ms  ~ unsteady
//!   rand-read-4k-q1           10,674 IOPS  ▇▆▆▆▆▅▃▃  p99  770 µs  ! disturbed
//!   append-4k-fdatasync   3,685 commits/s  ▆▇▇▆▇▆▇▇  p99  659 µs  + confirmed
//!
//! ! neighbour  dd wrote 335 MiB; can explain at most 23 % of rand-read-4k-q1
//!              → stop `dd` (pid 812), then run `trueio baseline` again
//!
//! 1 of 3 loads confirmed by the disk's own counters and by traced requests.
//! Commits like a consumer SSD.
//! Details: trueio report 2028c53e
//! ```
//!
//! It fits 24 lines at 80 columns for up to ten loads. Everything else is in [`terminal`](crate::terminal).

mod live;

pub use live::{Current, current_line, remaining_line};

use crate::answer::answer;
use crate::course::course;
use crate::layout::{Page, Paint, Style};
use crate::limits::limit_lines;
use crate::ranks::ranks_within;
use crate::standing::PastRun;
use crate::summary::{Row, UNNAMED, commits, name_of, plan_of, shape_of, summary};
use crate::text::{clean, few_ios, fitted, padded, width_of, wrap};
use crate::verdicts::Mark;
use trueio_model::{
    AnsweredFinding, AnsweredPhase, Decision, JobPlan, JobRecord, OpKind, RunAnswer, RunRecord, SeriesRow,
    StatementKind, units,
};

/// Lines of the smallest terminal, without the line of the next prompt.
const LINE_COUNT: usize = 23;
/// Columns of a sparkline.
pub(crate) const SPARK_WIDTH: usize = 8;
/// The figure of I/Os of this size or more is bandwidth.
const LARGE_BYTES: u64 = 128 << 10;

/// A load: a job of a phase, all its operations together.
struct Line {
    phase_index: usize,
    name: String,
    figure: String,
    spark: String,
    /// The 99th percentile, or the number of I/Os if they are too few for one.
    p99: String,
    words: String,
    mark: Mark,
}

/// Renders the end of a run, ending with a line feed. `details` is how to get the details: `trueio report 2028c53e`. `past` are
/// earlier runs of the same device, in any order.
pub fn screen(record: &RunRecord, style: &Style, details: &str, past: &[PastRun]) -> String {
    let answer = answer(record, past);
    let mut page = Page::new(style);
    if let Some(decision) = answer.decision {
        headline(&mut page, decision, &answer.headline);
    }
    head(&mut page, record);
    page.out.push('\n');
    table(&mut page, record);
    // Empty for a run of one process.
    page.tree("Ranks", &ranks_within(record, RANKS_MAX));
    let count = |text: &str| text.lines().count();
    let findings = &answer.findings;
    // An empty line before the tail, and one before the findings, of which two are always shown.
    let lines_of = |finding: &AnsweredFinding| count(&finding_text(&page, finding));
    let least = if findings.is_empty() { 1 } else { 3 + findings.iter().take(2).map(lines_of).sum::<usize>() };
    let left = LINE_COUNT.saturating_sub(count(&page.out) + least);
    let end = tail(&answer, style, details, left);
    let left = LINE_COUNT.saturating_sub(count(&page.out) + count(&end) + 2);
    reason_lines(&mut page, findings, left);
    page.out.push('\n');
    page.out.push_str(&end);
    page.finish()
}

/// Ranks of a phase that are listed on one screen.
const RANKS_MAX: usize = 4;

/// Renders only the table: one line a load.
pub fn screen_table(record: &RunRecord, style: &Style) -> String {
    let mut page = Page::new(style);
    table(&mut page, record);
    page.finish()
}

/// Renders the lines of one phase, which stay on the terminal while the next ones run.
pub fn screen_phase(record: &RunRecord, phase_index: usize, style: &Style) -> String {
    let mut page = Page::new(style);
    let lines = lines(record, style.unicode);
    print_lines(&mut page, lines.iter().filter(|line| line.phase_index == phase_index));
    page.finish()
}

/// Prints the answer of a baseline, which begins with yes, no or cannot tell.
fn headline(page: &mut Page, decision: Decision, text: &str) {
    let paint = match decision {
        Decision::Yes => Paint::Good,
        Decision::No => Paint::Bad,
        Decision::CannotTell => Paint::Doubtful,
    };
    let mut wrapped = String::new();
    wrap(&mut wrapped, "", 2, text, page.style.width);
    page.out.push_str(&wrapped.replacen(decision.word(), &page.paint(paint, decision.word()), 1));
}

fn head(page: &mut Page, record: &RunRecord) {
    let name = page.paint(Paint::Bold, &clean(&device_name(record)));
    let left = device_words(record);
    let right = course(record);
    let used = width_of(&clean(&device_name(record))) + 2 + width_of(&left);
    let gap = page.style.width.saturating_sub(used + width_of(&right));
    if gap >= 2 {
        page.line(&format!("{name}  {}{}{}", clean(&left), " ".repeat(gap), clean(&right)));
    } else {
        page.line(&format!(
            "{name}  {}",
            fitted(&clean(&left), page.style.width.saturating_sub(used - width_of(&left)))
        ));
        page.line(&clean(&right));
    }
    if let Some(sentence) = crate::words::outcome_sentence(&record.outcome) {
        page.sentence(&sentence);
    }
}

/// Returns the disks' names, or the path of a target without a known disk.
fn device_name(record: &RunRecord) -> String {
    let mut names: Vec<&str> = Vec::new();
    for disk in record.targets.iter().flat_map(|target| &target.disks) {
        if !names.contains(&disk.name.as_str()) {
            names.push(&disk.name);
        }
    }
    match (names.len(), record.targets.first()) {
        (0, Some(target)) => target.path.clone(),
        (0, None) => "no device".to_owned(),
        (1..=3, _) => names.join(" + "),
        (count, _) => format!("{} and {} more", names[0], count - 1),
    }
}

/// `virtio, 256 GiB, ext4 on /`.
fn device_words(record: &RunRecord) -> String {
    let Some(target) = record.targets.first() else { return String::new() };
    let mut parts = Vec::new();
    if let Some(disk) = target.disks.first() {
        parts.extend(disk.model.value.clone());
        parts.extend(disk.transport.value.as_ref().map(ToString::to_string));
        parts.extend(disk.size_bytes.value.map(units::format_bytes));
    }
    match &target.filesystem {
        Some(filesystem) => parts.push(format!("{} on {}", filesystem.kind, filesystem.mount_point)),
        None if !target.disks.is_empty() => {}
        None => parts.push("no disk visible".to_owned()),
    }
    parts.join(", ")
}

fn table(page: &mut Page, record: &RunRecord) {
    let lines = lines(record, page.style.unicode);
    print_lines(page, lines.iter());
    if lines.is_empty() {
        page.line("  Nothing was measured.");
    }
}

/// Columns of a figure, and of the 99th percentile. The widths do not depend on the lines, so that lines that are printed
/// one by one stand below each other.
pub(crate) const FIGURE_WIDTH: usize = 16;
pub(crate) const P99_WIDTH: usize = 7;
pub(crate) const NAME_WIDTH: usize = 20;

fn print_lines<'a>(page: &mut Page, lines: impl Iterator<Item = &'a Line>) {
    // Two spaces before and between the columns; `p99 ` before its figure.
    const CELL_WIDTH: usize = 4 + P99_WIDTH;
    const USED: usize = 2 + NAME_WIDTH + 1 + FIGURE_WIDTH + 2 + SPARK_WIDTH + 2 + CELL_WIDTH + 2;
    for line in lines {
        let name = padded(&fitted(&line.name, NAME_WIDTH), NAME_WIDTH);
        let room = page.style.width.saturating_sub(USED);
        let word = format!("{} {}", line.mark.symbol(), line.mark.word());
        // A word and its reason, or only the word: half a reason says nothing.
        let words = if width_of(&line.words) <= room { &line.words } else { &word };
        let words = page.paint(Paint::of_mark(line.mark), words);
        page.line(&format!(
            "  {name} {:>FIGURE_WIDTH$}  {:SPARK_WIDTH$}  {:>CELL_WIDTH$}  {words}",
            line.figure, line.spark, line.p99
        ));
    }
}

fn lines(record: &RunRecord, unicode: bool) -> Vec<Line> {
    let rows = summary(record);
    let mut lines = Vec::new();
    for (phase_index, phase) in record.phases.iter().enumerate() {
        for (job_index, job) in phase.jobs.iter().enumerate() {
            let of: Vec<&Row> =
                rows.iter().filter(|row| row.phase_index == phase_index && row.job_index == job_index).collect();
            lines.push(Line::of(record, phase_index, job, &of, unicode));
        }
    }
    lines
}

impl Line {
    fn of(record: &RunRecord, phase_index: usize, job: &JobRecord, rows: &[&Row], unicode: bool) -> Self {
        let phase = &record.phases[phase_index];
        let judgement = AnsweredPhase::of(phase);
        let mark = judgement.verdict;
        let shown = figure_of(record, phase_index, job, rows);
        let is_withheld = !mark.is_shown();
        let quantile = |row: &&Row| row.quantiles[1].map(|quantile| quantile.value_ns);
        // The slowest operation. With a pace, each counts from the time it was due: a stop delays the writes, and not the sync calls.
        let p99_ns = rows.iter().filter_map(quantile).max();
        let words = format!("{} {}", mark.symbol(), judgement.words);
        Self {
            phase_index,
            name: clean(&name_of(record, phase_index, job)).into_owned(),
            figure: if is_withheld { "x".to_owned() } else { shown.text },
            spark: if is_withheld { String::new() } else { spark(&job.series, shown.is_bytes, unicode) },
            p99: match p99_ns {
                Some(ns) => p99_cell(&units::format_duration_ns(ns)),
                None if is_withheld => p99_cell("x"),
                // Of the copy to memory; the rate contains the sync.
                None if rows.iter().any(|row| row.has_memory_latency) => p99_cell("memory"),
                None => few_ios(shown.io_count).unwrap_or_else(|| p99_cell("–")),
            },
            words: clean(&words).into_owned(),
            mark,
        }
    }
}

/// `p99  770 µs`.
fn p99_cell(value: &str) -> String {
    format!("p99 {value:>P99_WIDTH$}")
}

/// The figure that describes a load.
struct Shown {
    text: String,
    is_bytes: bool,
    /// I/Os that it rests on.
    io_count: u64,
}

/// Chooses the figure of a load: commits per second if it syncs after each write, bandwidth for large or sequential I/O,
/// else IOPS.
fn figure_of(record: &RunRecord, phase_index: usize, job: &JobRecord, rows: &[&Row]) -> Shown {
    let plan = plan_of(record, phase_index, job);
    let rate = |of: &[&&Row]| of.iter().filter_map(|row| row.ios_per_s).sum::<f64>();
    let count = |per_s: f64| {
        if per_s >= 99.95 { units::format_count(per_s.round() as u64) } else { crate::text::figure(per_s) }
    };
    let syncs: Vec<&&Row> = rows.iter().filter(|row| row.op == OpKind::Sync).collect();
    if !syncs.is_empty() && plan.is_some_and(commits) {
        let io_count = syncs.iter().map(|row| row.io_count).sum();
        return Shown { text: format!("{} commits/s", count(rate(&syncs))), is_bytes: false, io_count };
    }
    let transfers: Vec<&&Row> = rows.iter().filter(|row| row.op != OpKind::Sync).collect();
    let (bytes, ios) = transfers
        .iter()
        .fold((0.0, 0.0), |sum, row| (sum.0 + row.bytes_per_s.unwrap_or(0.0), sum.1 + row.ios_per_s.unwrap_or(0.0)));
    let mean = if ios > 0.0 { bytes / ios } else { 0.0 };
    let io_count = transfers.iter().map(|row| row.io_count).sum();
    if bytes > 0.0 && mean >= LARGE_BYTES as f64 {
        return Shown { text: units::format_bandwidth(bytes), is_bytes: true, io_count };
    }
    Shown { text: format!("{} IOPS", count(ios)), is_bytes: false, io_count }
}

/// Returns the name of a planned load as the user typed it, of a single job without a name its shape; and whether its figure will
/// be bandwidth.
pub fn load_words(plan: &JobPlan) -> (String, bool) {
    let name = if plan.name == UNNAMED { shape_of(plan) } else { plan.name.clone() };
    let sizes = &plan.pattern;
    let longest = sizes.read_sizes.max_bytes().max(sizes.write_sizes.max_bytes());
    (name, longest >= LARGE_BYTES && !commits(plan))
}

/// Draws the rate of a series over time, from zero to its maximum: each column has the mean rate of an equal part of the time.
///
/// There are as many columns as intervals, at most [`SPARK_WIDTH`], without those of less than a tenth of the longest one: the last
/// interval may have a single I/O in a microsecond, whose rate says nothing. Its I/Os count in the last column, by its length.
fn spark(series: &[SeriesRow], is_bytes: bool, unicode: bool) -> String {
    let count = |row: &SeriesRow| {
        let ios = row.read_count.saturating_add(row.write_count).saturating_add(row.other_count);
        let bytes = row.read_bytes.saturating_add(row.write_bytes);
        if is_bytes { bytes } else { ios }
    };
    let longest = series.iter().map(|row| row.span_ns).max().unwrap_or(0);
    let columns = series.iter().filter(|row| row.span_ns.max(1) >= longest / 10).count().min(SPARK_WIDTH);
    let total = series.iter().map(|row| row.span_ns.max(1) as f64).sum::<f64>();
    let mut counts = vec![0.0; columns];
    let mut begin = 0.0;
    for row in series {
        let (span, count) = (row.span_ns.max(1) as f64 / total * columns as f64, count(row) as f64);
        let end = begin + span;
        for (column, sum) in counts.iter_mut().enumerate() {
            let shared = end.min(column as f64 + 1.0) - begin.max(column as f64);
            *sum += count * (shared / span).clamp(0.0, 1.0);
        }
        begin = end;
    }
    spark_of(&counts, unicode)
}

/// Draws rates of equal spans, oldest first, in at most [`SPARK_WIDTH`] columns.
pub(crate) fn spark_of(rates: &[f64], unicode: bool) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];
    let columns = rates.len().min(SPARK_WIDTH);
    let means: Vec<f64> = (0..columns)
        .map(|column| {
            let part = &rates[rates.len() * column / columns..rates.len() * (column + 1) / columns];
            part.iter().sum::<f64>() / part.len() as f64
        })
        .collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let glyphs = if unicode { BLOCKS } else { ASCII };
    let level = |mean: &f64| if most > 0.0 { ((mean / most * 8.0).ceil() as usize).clamp(1, 8) - 1 } else { 0 };
    means.iter().map(|mean| glyphs[level(mean)]).collect()
}

/// Prints findings within `left` lines, each with its next step whole, and how many more there are.
fn reason_lines(page: &mut Page, findings: &[AnsweredFinding], left: usize) {
    if findings.is_empty() {
        return;
    }
    page.out.push('\n');
    let texts: Vec<String> = findings.iter().map(|finding| finding_text(page, finding)).collect();
    // A line for those that do not fit; the first one is always printed.
    let mut used = 1;
    let fits = |text: &&String| {
        used += text.lines().count();
        used <= left
    };
    let shown = texts.iter().take_while(fits).count().max(1);
    texts.iter().take(shown).for_each(|text| page.out.push_str(text));
    if texts.len() > shown {
        page.line(&format!("{}and {} more, see the details", " ".repeat(MARK_WIDTH), texts.len() - shown));
    }
}

/// Columns of the symbol and the cause of a finding.
const MARK_WIDTH: usize = 14;

fn finding_text(page: &Page, finding: &AnsweredFinding) -> String {
    let first = format!("{:<MARK_WIDTH$}", format!("{} {}", finding.verdict.symbol(), finding.cause));
    let (mut text, mut step) = (String::new(), String::new());
    wrap(&mut text, "", MARK_WIDTH, &finding.sentence, page.style.width - MARK_WIDTH);
    // At most two lines: the loads that follow are in the details.
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let hang = " ".repeat(MARK_WIDTH);
    let mut out = format!("{}{}\n", page.paint(Paint::of_mark(finding.verdict), &first), lines.first().unwrap_or(&""));
    if let [_, second, rest @ ..] = lines.as_slice() {
        let second = if rest.is_empty() {
            (*second).to_owned()
        } else {
            fitted(&format!("{second} {}", rest[0]), page.style.width - MARK_WIDTH)
        };
        out.push_str(&format!("{hang}{second}\n"));
    }
    wrap(&mut step, &format!("{hang}→ "), MARK_WIDTH + 2, &finding.next_step, page.style.width);
    out + &step
}

/// Returns the last sentences, within `left` lines as far as some can be left out: what is confirmed, whether that is good,
/// how it compares with earlier runs, what it is good for, what limits it, and where the details are.
fn tail(answer: &RunAnswer, style: &Style, details: &str, left: usize) -> String {
    let first = |kind| answer.statements.iter().find(|statement| statement.kind() == kind);
    let stated = |kind| first(kind).map(|statement| statement.sentence().to_owned());
    // With the rank by which they are kept if there is no room for all.
    let limits = limit_lines(&answer.limits).into_iter().map(|line| (0, Some(line)));
    let sentences = [
        (0, Some(answer.evidence.clone())),
        (1, stated(StatementKind::PowerLoss)),
        (1, stated(StatementKind::Class)),
        (2, stated(StatementKind::Past)),
        (4, stated(StatementKind::Limit)),
        (3, stated(StatementKind::Database)),
        (1, answer.accept_hint.clone()),
        (0, Some(format!("Details: {details}"))),
    ];
    let sentences: Vec<(u8, Option<String>)> = limits.chain(sentences).collect();
    let rendered = |most: u8| {
        let mut page = Page::new(style);
        let kept = sentences.iter().filter(|(rank, _)| *rank <= most);
        kept.filter_map(|(_, sentence)| sentence.as_ref()).for_each(|sentence| page.sentence(sentence));
        page.out
    };
    let fits = |most: &u8| rendered(*most).lines().count() <= left;
    rendered((1..=4).rev().find(fits).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(spans_and_counts: &[(u64, u64)]) -> Vec<SeriesRow> {
        let mut end_ns = 0;
        let row = |&(span_ns, read_count): &(u64, u64)| {
            end_ns += span_ns;
            SeriesRow {
                end_ns,
                span_ns,
                read_count,
                read_bytes: 0,
                write_count: 0,
                write_bytes: 0,
                other_count: 0,
                trim_count: 0,
                trim_bytes: 0,
                latency_ns_p50: 0,
                latency_ns_p99: 0,
                latency_ns_max: 0,
            }
        };
        spans_and_counts.iter().map(row).collect()
    }

    /// Goal: the shape of a sparkline does not depend on how short the last interval is.
    /// Method: equal intervals at a constant rate, then one of a microsecond with one I/O (a rate a thousand times higher), or none.
    #[test]
    fn a_very_short_last_interval_does_not_change_a_sparkline() {
        for (count, columns) in [(1, 1), (3, 3), (8, 8), (20, 8)] {
            let even = vec![(500_000_000, 500_000); count];
            assert_eq!(spark(&rows(&even), false, false), "#".repeat(columns));
            for last in [(1_000, 1_000), (1_000, 0), (0, 1), (49_000_000, 0)] {
                let ended = [even.clone(), vec![last]].concat();
                let drawn = spark(&rows(&ended), false, false);
                let (steady, end) = drawn.split_at(columns - 1);
                assert_eq!(steady, "#".repeat(columns - 1), "{last:?}: {drawn}");
                assert!(["#", "*"].contains(&end), "{last:?}: {drawn}");
            }
        }
    }

    #[test]
    fn a_sparkline_has_the_rate_of_equal_parts_of_the_time() {
        assert_eq!(spark(&rows(&[(100, 100), (100, 50), (100, 0)]), false, false), "#-_");
        // The second interval is as long as the first and the third together, with as many I/Os.
        assert_eq!(spark(&rows(&[(100, 100), (200, 200), (100, 100)]), false, false), "###");
        assert_eq!(spark(&rows(&[(50, 0), (100, 100)]), false, false), ":#");
        assert_eq!(spark(&[], false, false), "");
    }
}
