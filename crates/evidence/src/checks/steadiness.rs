//! Whether the rate was the same from beginning to end.
//!
//! Reads the jobs' own rows of I/Os completed, 100 ms each, added up over the jobs for as long as
//! all of them ran. Two things are looked for: a change of level that lasts (a write cache that is
//! full, burst credits that are spent, a neighbour that comes), and a drift (the line fitted through
//! five equal parts). If the phase was asked to be steady first, it says what became of that.
//!
//! Cannot see: cycles longer than the phase; what a mean of a longer phase would be; changes in
//! phases of less than 2 s. One stall is not a change of level: it is in the percentiles.
//!
//! Thresholds: a change of level by a third (p at most 0.01, by shuffled blocks), or a drift of more
//! than 25 % of the mean: suspect. A steady state that was asked for and not attained: suspect. The
//! SNIA rule itself (range 20 %, excursion 10 % over five rounds) is what `steady_state` holds a
//! phase to; without it, a run of a few seconds on a shared machine would rarely pass.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::units::{format_bandwidth, format_bytes, format_count};
use trueio_model::{Check, CheckOutcome, EngineKind, SeriesRow, SteadyState};
use trueio_stats::{ChangePoint, WindowFit, change_points};

pub(crate) const NAME: &str = "steadiness";

const WITNESS: &str = "the I/Os completed, row by row";
const SPAN_NS_MIN: u64 = 2_000_000_000;
const ROW_COUNT_MIN: usize = 10;
const PARTS: usize = 5;
const DRIFT_SHARE_MAX: f64 = 0.25;
const CHANGE_P_MAX: f64 = 0.01;
const CHANGE_RATIO_MIN: f64 = 4.0 / 3.0;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if let Some(state) = facts.steady_state.filter(|state| !state.is_attained) {
        return finding(
            NAME,
            CheckOutcome::Suspect,
            "the rounds before the phase",
            "steady",
            drift(state),
            given_up(state),
        );
    }
    if facts.jobs.iter().all(|job| job.engine == EngineKind::Null) {
        return not_applicable(NAME, "The engine null has no device that could change.");
    }
    let rows = Rows::of(facts);
    let span_ns = rows.row_ns * rows.rows.len() as u64;
    if span_ns < SPAN_NS_MIN || rows.rows.len() < ROW_COUNT_MIN {
        let seconds = span_ns as f64 / 1e9;
        return not_seen(
            NAME,
            WITNESS,
            format!("The phase was too short to tell ({seconds:.1} s of rows; 2 s are needed)."),
        );
    }
    let rates = rows.rates();
    let expected = "one level, drift of 25 % at most";
    let report = |outcome, found: String, sentence: String| finding(NAME, outcome, WITNESS, expected, found, sentence);
    let parts: Vec<f64> =
        (0..PARTS).map(|part| mean(&rates[rates.len() * part / PARTS..rates.len() * (part + 1) / PARTS])).collect();
    let Some(fit) = WindowFit::of(&parts) else {
        return not_seen(NAME, WITNESS, "Nothing was completed that could be steady.");
    };
    let measured =
        format!("range {:.0} %, drift {:+.0} % over {PARTS} parts", fit.range * 100.0, fit.excursion * 100.0);
    let changes = change_points(&rates, CHANGE_P_MAX, CHANGE_RATIO_MIN);
    if !changes.is_empty() {
        let told: Vec<String> = changes.iter().map(|change| rows.tell(change)).collect();
        let cause = cause(facts, &changes);
        return report(
            CheckOutcome::Suspect,
            measured,
            format!("The rate changed for good: {}. {cause}", told.join("; ")),
        );
    }
    if fit.excursion.abs() > DRIFT_SHARE_MAX {
        let way = if fit.excursion > 0.0 { "rose" } else { "fell" };
        let sentence = format!(
            "The rate {way} by {:.0} % of its mean from beginning to end: a longer run would show another mean.",
            fit.excursion.abs() * 100.0
        );
        return report(CheckOutcome::Suspect, measured, sentence);
    }
    let sentence = match facts.steady_state {
        Some(state) => {
            format!("The phase was steady before it was measured (SNIA rule, {} rounds).", state.rounds.len())
        }
        None => "The rate kept its level.".to_owned(),
    };
    report(CheckOutcome::Passed, measured, sentence)
}

fn given_up(state: &SteadyState) -> String {
    let rounds = state.rounds.len();
    let unknown = state.variables.iter().any(|variable| variable.range_percent.is_none());
    let why = if unknown {
        "A round held too few I/Os for its 99th percentile: longer rounds are needed."
    } else {
        "The figures are those of a device that was still changing."
    };
    format!("No steady state was attained in {rounds} rounds. {why}")
}

/// `throughput range 31 %, drift -12 %; latency_p99 …`, over the last window.
fn drift(state: &SteadyState) -> String {
    let percent = |value: Option<f64>| value.map_or_else(|| "not known".to_owned(), |value| format!("{value:+.0} %"));
    let told = state.variables.iter().map(|variable| {
        let range = variable.range_percent.map_or_else(|| "not known".to_owned(), |range| format!("{range:.0} %"));
        format!("{} range {range}, drift {}", variable.name, percent(variable.excursion_percent))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// What changes of this kind usually are. A guess, and worded as one.
fn cause(facts: &PhaseFacts<'_>, changes: &[ChangePoint]) -> &'static str {
    let writes = facts.works().any(|work| work.writes());
    let falls = changes.iter().all(|change| change.after < change.before);
    match (falls, writes) {
        (true, true) => "A full write cache, spent burst credits or throttling look like that.",
        (true, false) => "Spent burst credits, throttling or a neighbour look like that.",
        (false, _) => "A neighbour that comes and goes, or a cache that warms up, looks like that.",
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// All jobs' rows on one grid.
struct Rows {
    /// Length of each row, in nanoseconds.
    row_ns: u64,
    /// (I/Os, bytes) of each row, oldest first.
    rows: Vec<(f64, f64)>,
}

impl Rows {
    /// Each job's rows, spread over a grid of the longest row among them; the grid ends where the
    /// first job ended, and a begun last row is left out.
    fn of(facts: &PhaseFacts<'_>) -> Self {
        let series: Vec<&[SeriesRow]> = facts.records.iter().map(|record| record.series.as_slice()).collect();
        let row_ns = series.iter().filter_map(|rows| rows.iter().map(|row| row.span_ns).max()).max().unwrap_or(0);
        let end_ns = series.iter().map(|rows| rows.last().map_or(0, |row| row.end_ns)).min().unwrap_or(0);
        let count = end_ns.checked_div(row_ns).unwrap_or(0) as usize;
        let mut rows = vec![(0.0, 0.0); count];
        if count == 0 {
            return Self { row_ns, rows };
        }
        for row in series.into_iter().flatten() {
            let begin_ns = row.end_ns.saturating_sub(row.span_ns);
            let ios = (row.read_count + row.write_count + row.other_count) as f64;
            let bytes = (row.read_bytes + row.write_bytes) as f64;
            let mut index = (begin_ns / row_ns) as usize;
            while index < count && (index as u64) * row_ns < row.end_ns {
                let (low, high) = (index as u64 * row_ns, (index as u64 + 1) * row_ns);
                let share = high.min(row.end_ns).saturating_sub(low.max(begin_ns)) as f64 / row.span_ns.max(1) as f64;
                rows[index].0 += ios * share;
                rows[index].1 += bytes * share;
                index += 1;
            }
        }
        Self { row_ns, rows }
    }

    /// Bytes a row, or I/Os where none has bytes.
    fn rates(&self) -> Vec<f64> {
        let has_bytes = self.rows.iter().any(|row| row.1 > 0.0);
        self.rows.iter().map(|row| if has_bytes { row.1 } else { row.0 }).collect()
    }

    /// `from 1.9 GiB/s to 400 MiB/s after 20.1 s and 38 GiB`.
    fn tell(&self, change: &ChangePoint) -> String {
        let per_s = 1e9 / self.row_ns as f64;
        let until = &self.rows[..change.index];
        let bytes: f64 = until.iter().map(|row| row.1).sum();
        let seconds = change.index as f64 / per_s;
        if bytes > 0.0 {
            let level = |value: f64| format_bandwidth(value * per_s);
            let done = format_bytes(bytes as u64);
            format!("from {} to {} after {seconds:.1} s and {done}", level(change.before), level(change.after))
        } else {
            let level = |value: f64| format_count((value * per_s) as u64);
            format!("from {} to {} IOPS after {seconds:.1} s", level(change.before), level(change.after))
        }
    }
}
