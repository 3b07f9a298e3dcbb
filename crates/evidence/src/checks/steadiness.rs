//! Checks whether the rate was constant during the phase.
//!
//! Reads the I/Os completed per interval of 100 ms, summed over the jobs while all of them ran. It looks for
//! a lasting change of level (a full write cache, exhausted burst credits, other I/O) and for drift (a line
//! fitted through five equal parts). If the rate falls to a level and then stays within 2 % of it for a second or longer, it
//! behaves as under a limit, and the sentence says so. If the job sets a steady state, it reports whether that was reached.
//!
//! Cannot see: cycles longer than the phase; the mean of a longer phase; changes in phases of less than 2 s.
//! One stall is not a change of level: the percentiles show it.
//!
//! Thresholds: a change of level by a third (p at most 0.01, by shuffled blocks), or a drift of more than 25
//! % of the mean: suspect. A steady state that the job sets and that was not reached: suspect. `steady_state`
//! applies the SNIA rule itself (range 20 %, excursion 10 % over five rounds); a run of a few seconds on a
//! shared machine would rarely meet it.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use trueio_model::units::{format_bandwidth, format_bytes, format_count};
use trueio_model::{Check, CheckOutcome, EngineKind, SeriesRow, SteadyState};
use trueio_stats::{ChangePoint, WindowFit, change_points};

pub(crate) const NAME: &str = "steadiness";

const SOURCE: &str = "I/Os completed per interval";
const SPAN_NS_MIN: u64 = 2_000_000_000;
const ROW_COUNT_MIN: usize = 10;
const PARTS: usize = 5;
const DRIFT_SHARE_MAX: f64 = 0.25;
const CHANGE_P_MAX: f64 = 0.01;
const CHANGE_RATIO_MIN: f64 = 4.0 / 3.0;
/// A plateau is at least as long, and at most as uneven: a throttle lets the same amount pass in each interval.
const PLATEAU_ROWS_MIN: usize = 10;
const PLATEAU_SPREAD_MAX: f64 = 0.02;

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
        return not_applicable(NAME, "The engine null uses no device.");
    }
    let rows = Rows::of(facts);
    let span_ns = rows.row_ns * rows.rows.len() as u64;
    if span_ns < SPAN_NS_MIN || rows.rows.len() < ROW_COUNT_MIN {
        let seconds = span_ns as f64 / 1e9;
        return not_seen(
            NAME,
            SOURCE,
            format!("The phase was too short ({seconds:.1} s of intervals; 2 s are needed)."),
        );
    }
    let rates = rows.rates();
    let expected = "one level, at most 25 % drift";
    let report = |outcome, found: String, sentence: String| finding(NAME, outcome, SOURCE, expected, found, sentence);
    let parts: Vec<f64> =
        (0..PARTS).map(|part| mean(&rates[rates.len() * part / PARTS..rates.len() * (part + 1) / PARTS])).collect();
    let Some(fit) = WindowFit::of(&parts) else {
        return not_seen(NAME, SOURCE, "No I/O completed.");
    };
    let measured =
        format!("range {:.0} %, drift {:+.0} % over {PARTS} parts", fit.range * 100.0, fit.excursion * 100.0);
    let changes = change_points(&rates, CHANGE_P_MAX, CHANGE_RATIO_MIN);
    if !changes.is_empty() {
        let described: Vec<String> = changes.iter().map(|change| rows.describe(change)).collect();
        let cause = match rows.plateau(&rates, &changes) {
            Some(spread) => format!(
                "The rate then stayed within ±{:.1} %, as under a limit: exhausted burst credits of a cloud volume, or a \
                 throttle.",
                spread * 100.0
            ),
            None => cause(facts, &changes).to_owned(),
        };
        return report(
            CheckOutcome::Suspect,
            measured,
            format!("The rate changed permanently: {}. {cause}", described.join("; ")),
        );
    }
    if fit.excursion.abs() > DRIFT_SHARE_MAX {
        let way = if fit.excursion > 0.0 { "rose" } else { "fell" };
        let sentence = format!(
            "The rate {way} by {:.0} % of its mean from start to end; a longer run would show a different mean.",
            fit.excursion.abs() * 100.0
        );
        return report(CheckOutcome::Suspect, measured, sentence);
    }
    let sentence = match facts.steady_state {
        Some(state) => {
            format!("The phase was steady before it was measured (SNIA rule, {} rounds).", state.rounds.len())
        }
        None => "The rate stayed at one level.".to_owned(),
    };
    report(CheckOutcome::Passed, measured, sentence)
}

fn given_up(state: &SteadyState) -> String {
    let rounds = state.rounds.len();
    let unknown = state.variables.iter().any(|variable| variable.range_percent.is_none());
    let why = if unknown {
        "A round had too few I/Os for a 99th percentile; use longer rounds."
    } else {
        "The device was still changing while it was measured."
    };
    format!("No steady state after {rounds} rounds. {why}")
}

/// `throughput range 31 %, drift -12 %; latency_p99 …`, over the last window.
fn drift(state: &SteadyState) -> String {
    let percent = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |value| format!("{value:+.0} %"));
    let described = state.variables.iter().map(|variable| {
        let range = variable.range_percent.map_or_else(|| "unknown".to_owned(), |range| format!("{range:.0} %"));
        format!("{} range {range}, drift {}", variable.name, percent(variable.excursion_percent))
    });
    described.collect::<Vec<_>>().join("; ")
}

/// Returns common causes of such changes; a guess, and worded as one.
fn cause(facts: &PhaseFacts<'_>, changes: &[ChangePoint]) -> &'static str {
    let writes = facts.works().any(|work| work.writes());
    let falls = changes.iter().all(|change| change.after < change.before);
    match (falls, writes) {
        (true, true) => "Possible causes: a full write cache, exhausted burst credits, throttling.",
        (true, false) => "Possible causes: exhausted burst credits, throttling, other I/O on the same device.",
        (false, _) => "Possible causes: other I/O that started or stopped, a cache that warmed up.",
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The series of all jobs on one grid.
struct Rows {
    /// Length of each interval, in nanoseconds.
    row_ns: u64,
    /// (I/Os, bytes) of each interval, oldest first.
    rows: Vec<(f64, f64)>,
}

impl Rows {
    /// Sums the jobs' series over a grid of the longest interval among them. The grid ends where the first
    /// job ended, without an incomplete last interval.
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

    /// Returns bytes per interval, or I/Os if no interval has bytes.
    fn rates(&self) -> Vec<f64> {
        let has_bytes = self.rows.iter().any(|row| row.1 > 0.0);
        self.rows.iter().map(|row| if has_bytes { row.1 } else { row.0 }).collect()
    }

    /// Returns the spread around the last level, as a share, if the rate fell to it and was flat from then on: the middle
    /// 90 % of at least [`PLATEAU_ROWS_MIN`] intervals lie within it.
    fn plateau(&self, rates: &[f64], changes: &[ChangePoint]) -> Option<f64> {
        let last = changes.last().filter(|change| change.after < change.before && change.after > 0.0)?;
        let mut distances: Vec<f64> = rates[last.index..].iter().map(|rate| (rate / last.after - 1.0).abs()).collect();
        if distances.len() < PLATEAU_ROWS_MIN {
            return None;
        }
        distances.sort_by(f64::total_cmp);
        let spread = distances[(distances.len() * 9).div_ceil(10) - 1];
        (spread <= PLATEAU_SPREAD_MAX).then_some(spread)
    }

    /// `from 1.9 GiB/s to 400 MiB/s after 20.1 s and 38 GiB`.
    fn describe(&self, change: &ChangePoint) -> String {
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
