//! What a run on several ranks adds to a report: the figures across ranks, and one line for each rank.

use crate::text::{clean, figure};
use crate::verdicts::mark;
use crate::words::Item;
use trueio_model::{ClusterPhase, ClusterRecord, RankSpan, RunRecord, units};
use trueio_stats::quantile;

/// Ranks of a phase that are listed: the slowest come first.
const LISTED_MAX: usize = 16;

/// Returns the figures across ranks of each phase, with a line for each rank; nothing for a run of one process.
pub(crate) fn ranks(record: &RunRecord) -> Vec<Item> {
    ranks_within(record, LISTED_MAX)
}

/// Returns the same as plain lines; empty for a run of one process.
pub fn ranks_text(record: &RunRecord) -> String {
    let lines = ranks(record)
        .into_iter()
        .flat_map(|(item, below)| std::iter::once(item).chain(below.into_iter().map(|line| format!("  {line}"))));
    lines.collect::<Vec<_>>().join("\n")
}

/// The same with a largest number of ranks for each phase.
pub(crate) fn ranks_within(record: &RunRecord, listed_max: usize) -> Vec<Item> {
    let Some(cluster) = &record.cluster else { return Vec::new() };
    let mut items: Vec<Item> =
        cluster.phases.iter().map(|phase| of_phase(record, cluster, phase, listed_max)).collect();
    let lost =
        cluster.lost.iter().map(|lost| format!("rank {} ({}): {}", lost.rank, clean(&lost.host), clean(&lost.reason)));
    let lost: Vec<String> = lost.collect();
    if !lost.is_empty() {
        items.push((
            format!("lost: {} of {} ranks; their results are incomplete", lost.len(), cluster.rank_count),
            lost,
        ));
    }
    items
}

/// Returns the figures of a phase; if they are withheld, that they are.
fn of_phase(record: &RunRecord, cluster: &ClusterRecord, phase: &ClusterPhase, listed_max: usize) -> Item {
    let is_of = |known: &&trueio_model::PhaseRecord| known.name == phase.name && !mark(known).is_shown();
    match record.phases.iter().find(is_of) {
        Some(_) => {
            (format!("{}: the figures of {} ranks are withheld", clean(&phase.name), phase.ranks.len()), Vec::new())
        }
        None => (summary(phase), lines(cluster, phase, listed_max)),
    }
}

/// The rate of a rank over its own time: bytes a second, or operations a second if it transferred nothing.
fn rate(span: &RankSpan) -> f64 {
    let seconds = (i128::from(span.end_ns) - i128::from(span.begin_ns)).max(1) as f64 / 1e9;
    if span.byte_count > 0 { span.byte_count as f64 / seconds } else { span.io_count as f64 / seconds }
}

fn rate_text(span_has_bytes: bool, rate: f64) -> String {
    if span_has_bytes { units::format_bandwidth(rate) } else { format!("{}/s", figure(rate)) }
}

/// The figures across ranks, in one sentence.
fn summary(phase: &ClusterPhase) -> String {
    let count = phase.ranks.len();
    let mut text = format!("{}: {count} {}", clean(&phase.name), if count == 1 { "rank" } else { "ranks" });
    if let Some(common) = phase.common {
        text.push_str(&format!(
            "; all measured together for {} ({:.1} %), in which they reached {}{} IOPS",
            units::format_duration_ns(common.end_ns.abs_diff(common.begin_ns)),
            common.share * 100.0,
            if common.bytes_per_s > 0.0 {
                format!("{}, ", units::format_bandwidth(common.bytes_per_s))
            } else {
                String::new()
            },
            figure(common.ios_per_s)
        ));
    }
    text.push_str(&format!(
        "; starts within {}, ends within {}",
        units::format_duration_ns(phase.start_skew_ns),
        units::format_duration_ns(phase.end_skew_ns)
    ));
    let mut rates: Vec<(f64, &RankSpan)> = phase.ranks.iter().map(|span| (rate(span), span)).collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let ([(least, slowest), .., (most, fastest)], true) = (rates.as_slice(), count > 1) {
        let has_bytes = slowest.byte_count > 0;
        let at = |part: usize| rate_text(has_bytes, rates[(rates.len() - 1) * part / 4].0);
        // Of an even number, the mean of the middle two.
        let median = f64::midpoint(rates[(rates.len() - 1) / 2].0, rates[rates.len() / 2].0);
        text.push_str(&format!(
            "; each: min {} (rank {}), quartiles {} / {} / {}, max {} (rank {}); slowest / median {:.2}",
            rate_text(has_bytes, *least),
            slowest.rank,
            at(1),
            at(2),
            at(3),
            rate_text(has_bytes, *most),
            fastest.rank,
            if median > 0.0 { least / median } else { 0.0 }
        ));
    }
    text
}

/// One line for each rank, the slowest first.
fn lines(cluster: &ClusterRecord, phase: &ClusterPhase, listed_max: usize) -> Vec<String> {
    let mut spans: Vec<&RankSpan> = phase.ranks.iter().collect();
    spans.sort_by(|a, b| rate(a).total_cmp(&rate(b)).then(a.rank.cmp(&b.rank)));
    let mut lines: Vec<String> = spans.iter().take(listed_max).map(|span| line(cluster, phase, span)).collect();
    if spans.len() > listed_max {
        lines.push(format!("and {} faster ranks; `--json` has them all", spans.len() - listed_max));
    }
    lines
}

fn line(cluster: &ClusterRecord, phase: &ClusterPhase, span: &RankSpan) -> String {
    let known = cluster.ranks.iter().find(|known| known.rank == span.rank);
    let own = known.and_then(|known| known.record.phases.iter().find(|own| own.name == phase.name));
    let mut all = trueio_model::Histogram::new();
    // Of a damaged record, what does not fit is left out.
    own.iter().flat_map(|own| &own.jobs).flat_map(|job| &job.ops).for_each(|op| {
        let _ = all.checked_merge(&op.latency.total);
    });
    let is_shown = own.is_none_or(|own| mark(own).is_shown());
    let p99 = quantile(&all, 0.99)
        .filter(|_| is_shown)
        .map_or_else(String::new, |p99| format!(", p99 {}", units::format_duration_ns(p99.value_ns)));
    let verdict = own.map_or_else(String::new, |own| format!(", {} {}", mark(own).word(), own.level));
    let clock = if span.rank == 0 {
        "its clock is the reference".to_owned()
    } else {
        format!("clock within ± {}", units::format_duration_ns(span.clock_before.bound_ns))
    };
    format!(
        "rank {} ({}): {}{p99}{verdict}; began {} µs after the agreed start, {clock}",
        span.rank,
        known.map_or_else(String::new, |known| clean(&known.host).into_owned()),
        if is_shown { rate_text(span.byte_count > 0, rate(span)) } else { "x".to_owned() },
        figure(span.begin_ns as f64 / 1e3),
    )
}

/// Columns of a heat map.
const COLUMNS_MAX: usize = 80;
/// Rows of a heat map: the slowest ranks.
const ROWS_MAX: usize = 128;

/// Draws the ranks of a phase over time as a self-contained SVG: one row for each rank, the slowest first, one cell for each
/// interval; the darker, the faster. `None`: the phase has one rank, or no time series.
pub(crate) fn heat_map(record: &RunRecord, phase_index: usize) -> Option<String> {
    const CELL: usize = 10;
    const NAMES: usize = 180;
    let cluster = record.cluster.as_ref()?;
    let phase = cluster.phases.get(phase_index).filter(|phase| phase.ranks.len() > 1)?;
    let mut spans: Vec<&RankSpan> = phase.ranks.iter().collect();
    spans.sort_by(|a, b| rate(a).total_cmp(&rate(b)).then(a.rank.cmp(&b.rank)));
    spans.truncate(ROWS_MAX);
    let begin_ns = phase.ranks.iter().map(|span| span.begin_ns).min()?;
    // A damaged record may hold any figures.
    let since_begin = |ns: i64| i128::from(ns) - i128::from(begin_ns);
    let length_ns = since_begin(phase.ranks.iter().map(|span| span.end_ns).max()?).max(1);
    let rows: Vec<(String, Vec<f64>)> = spans
        .iter()
        .map(|span| {
            let known = cluster.ranks.iter().find(|known| known.rank == span.rank);
            let own = known.and_then(|known| known.record.phases.iter().find(|own| own.name == phase.name));
            let mut cells = vec![0.0; COLUMNS_MAX];
            for row in own.iter().flat_map(|own| &own.jobs).flat_map(|job| &job.series) {
                let middle_ns = since_begin(span.begin_ns) + i128::from(row.end_ns) - i128::from(row.span_ns / 2);
                let at = (middle_ns.max(0) as f64 / length_ns as f64 * COLUMNS_MAX as f64) as usize;
                let sum = |parts: [u64; 3]| parts.into_iter().fold(0, u64::saturating_add);
                let bytes = sum([row.read_bytes, row.write_bytes, row.trim_bytes]);
                let ios = sum([row.read_count, row.write_count, row.other_count]);
                let amount = if span.byte_count > 0 { bytes } else { ios };
                // A long interval covers several cells, each with its share.
                let width = (row.span_ns as f64 / length_ns as f64 * COLUMNS_MAX as f64).round().max(1.0) as usize;
                let first = at.saturating_sub(width / 2).min(COLUMNS_MAX - 1);
                for cell in &mut cells[first..first.saturating_add(width).min(COLUMNS_MAX)] {
                    *cell += amount as f64 / width as f64;
                }
            }
            let host = known.map_or("", |known| known.host.as_str());
            (format!("rank {} ({})", span.rank, clean(host)), cells)
        })
        .collect();
    let most = rows.iter().flat_map(|(_, cells)| cells).copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let (width, height) = (NAMES + COLUMNS_MAX * CELL, (rows.len() + 2) * CELL + 4);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" fill=\"currentColor\" \
         font-size=\"9\"><title>Ranks over time, the slowest first; the darker a cell, the faster</title>\
         <text x=\"0\" y=\"9\">ranks over {}, the slowest first; the darker, the faster</text>",
        units::format_duration_ns(length_ns as u64)
    );
    for (at, (name, cells)) in rows.iter().enumerate() {
        let y = (at + 1) * CELL + 4;
        svg.push_str(&format!("<text x=\"0\" y=\"{}\">{}</text>", y + 8, crate::text::escaped_xml(name)));
        for (column, cell) in cells.iter().enumerate().filter(|(_, cell)| **cell > 0.0) {
            svg.push_str(&format!(
                "<rect x=\"{}\" y=\"{y}\" width=\"{CELL}\" height=\"{}\" fill-opacity=\"{:.2}\"/>",
                NAMES + column * CELL,
                CELL - 1,
                (cell / most).max(0.04)
            ));
        }
    }
    svg.push_str("</svg>");
    Some(svg)
}
