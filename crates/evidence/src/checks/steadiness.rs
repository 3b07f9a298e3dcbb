//! Checks whether the rate was constant during the phase.
//!
//! - **Reads** the I/Os completed in each 100 ms, summed over the jobs while all of them ran; the result of `steady_state`, if
//!   requested.
//! - **Sees** lasting changes of level (a full write cache, exhausted burst credits, throttling, another program that starts), with
//!   time and amount; levels that return, with their length; drifts; stalls. A rate that falls and stays within 2 % for a second is
//!   named as a limit: burst credits of a cloud volume, or a throttle.
//! - **Misses** cycles longer than the phase, and phases of less than 2 s.
//! - **Thresholds**: a change by a third (rank test, p at most 0.01); a drift of more than 25 % of the mean over five parts; no I/O for
//!   0.5 s or longer and for more than 5 % of the time (less is a note; not for jobs with a rate or pauses); no steady state. Suspect.
//! - **Cost**: about a millisecond after the phase.
//! - **By hand**: write more than the SLC cache of a consumer SSD holds; the rate falls: `trueio run --rw write --bs 1m --iodepth 8
//!   --size 100g --html page.html`.
//!
//! The time of stops (`stops`), that in which jobs with a rate make up for one, and that of a sync that ends a job, is left out. The rank test compares with shuffled blocks; the parts of a
//! drift must differ by more than two standard deviations of their count; in a stall at least 50 I/Os would usually complete. A limit
//! of a control group that was set or lifted within 0.5 s of a change is its cause. The rule of `steady_state` (SNIA) is narrower:
//! 300 ms slices of a quiet run on this project's machine deviate by 16 %.

use crate::checks::stops::stops;
use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use crate::limit_course::LimitSpan;
use std::ops::Range;
use trueio_model::units::{format_bandwidth, format_bytes, format_count};
use trueio_model::{Check, CheckOutcome, EngineKind, IoLimitKind, JobRecord, SeriesRow, SteadyState};
use trueio_stats::{ChangePoint, WindowFit, change_points};

pub(crate) const NAME: &str = "steadiness";

const SOURCE: &str = "I/Os completed per interval";
const SPAN_NS_MIN: u64 = 2_000_000_000;
const ROW_COUNT_MIN: usize = 10;
const PARTS: usize = 5;
const DRIFT_SHARE_MAX: f64 = 0.25;
const CHANGE_P_MAX: f64 = 0.01;
const CHANGE_RATIO_MIN: f64 = 4.0 / 3.0;
/// A stall is at least this many intervals without I/O, in which usually at least that many I/Os complete.
const STALL_ROWS_MIN: usize = 5;
const STALL_IO_COUNT_MIN: f64 = 50.0;
const STALL_SHARE_MAX: f64 = 0.05;
/// Fewer I/Os after a change are no level.
const LEVEL_IO_COUNT_MIN: f64 = 2.0;
/// A level that is left again is at least this many intervals long.
const EPISODE_ROWS_MIN: usize = 5;
/// How far a change of the rate may be from that of the limit that causes it, which is read five times a second.
const LIMIT_CHANGE_NS_MAX: u64 = 500_000_000;
/// A plateau is at least as long, and at most as uneven: a throttle lets the same amount pass in each interval.
const PLATEAU_ROWS_MIN: usize = 10;
const PLATEAU_SPREAD_MAX: f64 = 0.02;
const LIMIT_CHANGED: &str = "A limit of a control group was set or lifted at that time.";

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if let Some(state) = facts.steady_state.filter(|state| !state.is_attained) {
        return finding(
            NAME,
            CheckOutcome::Suspect,
            "the rounds before the phase",
            "steady",
            drift(state),
            given_up(state),
        )
        .with_brief("no steady state");
    }
    if facts.jobs.iter().all(|job| job.engine == EngineKind::Null) {
        return not_applicable(NAME, "The engine null uses no device.");
    }
    let mut rows = Rows::of(facts);
    let stalls =
        if facts.jobs.iter().any(|job| job.is_paced() || job.think.is_some()) { Vec::new() } else { rows.stalls() };
    rows.kept.retain(|index| !stalls.iter().any(|stall| stall.contains(index)));
    let rates = rows.rates();
    let expected = "one level, at most 25 % drift";
    let report = |outcome, found: String, sentence: String| finding(NAME, outcome, SOURCE, expected, found, sentence);
    if let Some(why) = rows.why_too_short(rates.len()) {
        // A phase that is long enough, of which a stall took the most.
        if !stalls.is_empty() && rows.why_too_short(rates.len() + rows_of(&stalls)).is_none() {
            return stalled(&rows, &stalls, false, report);
        }
        return not_seen(NAME, SOURCE, format!("The phase was too short ({why})."));
    }
    let parts: Vec<f64> =
        (0..PARTS).map(|part| mean(&rates[rates.len() * part / PARTS..rates.len() * (part + 1) / PARTS])).collect();
    let Some(fit) = WindowFit::of(&parts) else {
        return not_seen(NAME, SOURCE, "No I/O completed.");
    };
    let measured = format!(
        "{} in the first fifth, {} in the last; from {} to {} in all",
        rows.level(parts[0]),
        rows.level(parts[PARTS - 1]),
        rows.level(least(&parts)),
        rows.level(most(&parts))
    );
    // Beside a change or a drift of the other intervals.
    let with_stalls = |sentence: String| match stalls.is_empty() {
        true => sentence,
        false => format!("{sentence} {}", rows.stall_sentence(&stalls, false)),
    };
    let mut changes = change_points(&rates, CHANGE_P_MAX, CHANGE_RATIO_MIN);
    // A level of one I/O, or of one that hangs.
    let ios_after =
        |change: &ChangePoint| rows.kept[change.index..].iter().map(|index| rows.rows[*index].0).sum::<f64>();
    changes.retain(|change| ios_after(change) >= LEVEL_IO_COUNT_MIN);
    if !changes.is_empty() {
        let sentence = change_sentence(facts, &rows, &rates, &changes);
        return report(CheckOutcome::Suspect, measured, with_stalls(sentence))
            .with_brief(rows.change_brief(&changes))
            .explaining(Some(distance(&rates, &changes)));
    }
    if fit.excursion.abs() > DRIFT_SHARE_MAX && rows.are_unlike_by_count() {
        if let Some(episode) = Episode::of(&rates) {
            return report(CheckOutcome::Suspect, measured, with_stalls(episode.sentence(facts, &rows)))
                .with_brief(episode.brief(&rows))
                .explaining(Some((mean(&rates) - episode.usual).abs() / mean(&rates)));
        }
        let (sentence, brief) = drift_words(&rows, &parts, &fit);
        // The mean is in the middle of a drift.
        return report(CheckOutcome::Suspect, measured, with_stalls(sentence))
            .with_brief(brief)
            .explaining(Some(fit.excursion.abs() / 2.0));
    }
    if !stalls.is_empty() {
        return stalled(&rows, &stalls, true, |outcome, _, sentence| report(outcome, measured, sentence));
    }
    let sentence = match facts.steady_state {
        Some(state) => {
            format!("The phase was steady before it was measured (SNIA rule, {} rounds).", state.rounds.len())
        }
        None if rows.kept.len() < rows.rows.len() => {
            "The rate stayed at one level, apart from the time for which this tool was stopped.".to_owned()
        }
        None => "The rate stayed at one level.".to_owned(),
    };
    report(CheckOutcome::Passed, measured, sentence)
}

/// Returns a sentence about a drift, and a few words.
fn drift_words(rows: &Rows, parts: &[f64], fit: &WindowFit) -> (String, String) {
    // A line through few parts may leave the range of what was measured, so the parts themselves are named: first and last, if they
    // differ as the line does.
    let gain = (parts[PARTS - 1] - parts[0]) / fit.mean;
    let is_line = gain * fit.excursion > 0.0 && gain.abs() > DRIFT_SHARE_MAX / 2.0;
    let (from, to, way) = match is_line {
        true => (parts[0], parts[PARTS - 1], if gain > 0.0 { "rose" } else { "fell" }),
        false => (least(parts), most(parts), "varied"),
    };
    let (from, to) = (rows.level(from), rows.level(to));
    let sentence = match is_line {
        true => format!(
            "The rate {way} from {from} in the first fifth to {to} in the last one; a longer run would show a different mean."
        ),
        false => format!(
            "The rate varied from {from} in the slowest fifth to {to} in the fastest one; a longer run would show a different \
             mean."
        ),
    };
    (sentence, format!("{way} from {from} to {to}"))
}

/// Returns a job's intervals without those of the sync that ends it, in which no transfer is to complete.
fn transfers_of<'a>(facts: &PhaseFacts<'_>, record: &'a JobRecord) -> &'a [SeriesRow] {
    let flush = facts.jobs.iter().find(|job| job.name == record.name).map(|job| job.flush);
    if !flush.is_some_and(|flush| flush.is_at_end() && !flush.is_between()) {
        return &record.series;
    }
    let transfers = |row: &SeriesRow| row.read_count + row.write_count + row.trim_count > 0;
    let last = record.series.iter().rposition(transfers).map_or(0, |index| index + 1);
    &record.series[..last]
}

/// Returns the number of intervals in stalls.
fn rows_of(stalls: &[Range<usize>]) -> usize {
    stalls.iter().map(ExactSizeIterator::len).sum()
}

/// Returns the finding about stalls. `is_level` is true if the rest of the phase was judged and is at one level.
fn stalled(
    rows: &Rows,
    stalls: &[Range<usize>],
    is_level: bool,
    report: impl FnOnce(CheckOutcome, String, String) -> Check,
) -> Check {
    let count = rows_of(stalls);
    let share = count as f64 / rows.rows.len() as f64;
    let seconds = count as f64 * rows.row_ns as f64 / 1e9;
    let outcome = if share > STALL_SHARE_MAX { CheckOutcome::Suspect } else { CheckOutcome::Passed };
    let found = format!("no I/O for {seconds:.1} s");
    let check = report(outcome, found.clone(), rows.stall_sentence(stalls, is_level));
    match outcome {
        CheckOutcome::Suspect => check.with_brief(found).explaining(Some(share)),
        _ => check,
    }
}

/// Returns how far the mean is from the level that lasted, as a share of the mean; from the usual level, if the rate
/// returned to that.
fn distance(rates: &[f64], changes: &[ChangePoint]) -> f64 {
    let lasting = changes.last().map_or(0.0, |change| change.after);
    let mean = mean(rates);
    if mean > 0.0 { (mean - lasting).abs() / mean } else { 1.0 }
}

fn change_sentence(facts: &PhaseFacts<'_>, rows: &Rows, rates: &[f64], changes: &[ChangePoint]) -> String {
    let indices = changes.iter().map(|change| change.index);
    if let Some((first, last)) = passing(changes) {
        let (from, until) = (rows.seconds_before(first.index), rows.seconds_before(last.index));
        let way =
            if changes.iter().all(|change| change.after.min(change.before) >= first.before) { "rose" } else { "fell" };
        let (usual, other) = (rows.level(first.before), rows.level(first.after));
        let between =
            if changes.len() == 2 { format!("{way} from {usual} to {other}") } else { format!("left {usual}") };
        let cause = match (are_of_limits(facts, rows, indices), first.after < first.before) {
            (true, _) => LIMIT_CHANGED,
            (false, true) => "Possible causes: a stall of the disk, other I/O.",
            (false, false) => "Possible causes: other I/O that paused.",
        };
        return format!(
            "The rate {between} for {:.1} s, from {from:.1} s on, and then returned to {}. {cause}",
            until - from,
            rows.level(last.after)
        );
    }
    let described: Vec<String> = changes.iter().map(|change| rows.describe(change)).collect();
    let cause = match rows.plateau(rates, changes) {
        Some(spread) => format!(
            "The rate then stayed within ±{:.1} %, as under a limit: exhausted burst credits of a cloud volume, or a \
             throttle.",
            // "Within": not ±0.0 %, which would be exactly.
            (spread * 100.0).max(0.1)
        ),
        None => cause(facts, changes).to_owned(),
    };
    let cause = if are_of_limits(facts, rows, indices) { LIMIT_CHANGED.to_owned() } else { cause };
    let what = match changes.len() {
        1 => "once and stayed there".to_owned(),
        count => format!("{count} times and stayed at the last level"),
    };
    format!("The rate changed {what}: {}. {cause}", described.join("; "))
}

/// Returns true if at each change, which is before that kept interval, a limit of a control group on what the jobs do was set or lifted.
fn are_of_limits(facts: &PhaseFacts<'_>, rows: &Rows, mut changes: impl Iterator<Item = usize>) -> bool {
    let (reads, writes) = (facts.works().any(|work| work.reads()), facts.works().any(|work| work.writes()));
    let concerns = |span: &&LimitSpan| match span.limit.kind {
        IoLimitKind::ReadBytes | IoLimitKind::ReadCount => reads,
        IoLimitKind::WriteBytes | IoLimitKind::WriteCount => writes,
        IoLimitKind::LatencyTarget | IoLimitKind::CostWeight => false,
    };
    let spans = facts.observation.limit_spans.iter().flatten().filter(concerns);
    // A limit that was set before the phase, or is still set at its end, did not change there.
    let is_within = |at_ns: &u64| *at_ns > 0 && *at_ns + LIMIT_CHANGE_NS_MAX < facts.elapsed_ns;
    let ends: Vec<u64> = spans.flat_map(|span| [span.from_ns, span.until_ns]).filter(is_within).collect();
    let is_near = |index: usize| {
        let at_ns = (rows.seconds_before(index) * 1e9) as u64;
        ends.iter().any(|end_ns| end_ns.abs_diff(at_ns) <= LIMIT_CHANGE_NS_MAX)
    };
    changes.all(is_near)
}

/// Returns the first and the last of several changes, if the last level is again the first one.
fn passing(changes: &[ChangePoint]) -> Option<(&ChangePoint, &ChangePoint)> {
    let (first, last) = (changes.first()?, changes.last()?);
    let (low, high) = (first.before.min(last.after), first.before.max(last.after));
    (changes.len() > 1 && high < low * CHANGE_RATIO_MIN).then_some((first, last))
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

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// A time in the middle of a phase in which the rate was at another level, before and after which it was at one.
struct Episode {
    /// The intervals, of those that are kept.
    rows: Range<usize>,
    /// Means outside and inside.
    usual: f64,
    other: f64,
}

impl Episode {
    /// Returns the longest run of at least [`EPISODE_ROWS_MIN`] intervals whose rate differs from the median by a third, if the others show no
    /// drift; `None` if it touches the begin or the end.
    fn of(rates: &[f64]) -> Option<Self> {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = *sorted.get(sorted.len() / 2)?;
        let runs = [true, false].map(|is_fall| {
            let is_other = |rate: f64| {
                if is_fall { rate * CHANGE_RATIO_MIN < median } else { rate > median * CHANGE_RATIO_MIN }
            };
            longest_run(rates, is_other)
        });
        let rows = runs.into_iter().max_by_key(ExactSizeIterator::len)?;
        let is_within = rows.start > 0 && rows.end < rates.len();
        if rows.len() < EPISODE_ROWS_MIN || !is_within {
            return None;
        }
        let outside: Vec<f64> = rates[..rows.start].iter().chain(&rates[rows.end..]).copied().collect();
        let count = outside.len();
        let parts: Vec<f64> =
            (0..PARTS).map(|part| mean(&outside[count * part / PARTS..count * (part + 1) / PARTS])).collect();
        let is_steady = WindowFit::of(&parts).is_some_and(|fit| fit.excursion.abs() <= DRIFT_SHARE_MAX);
        is_steady.then(|| Self { usual: mean(&outside), other: mean(&rates[rows.clone()]), rows })
    }

    fn seconds(&self, rows: &Rows) -> (f64, f64) {
        let from = rows.seconds_before(self.rows.start);
        (from, rows.seconds_before(self.rows.end) - from)
    }

    fn sentence(&self, facts: &PhaseFacts<'_>, rows: &Rows) -> String {
        let (from, length) = self.seconds(rows);
        let (usual, other) = (rows.level(self.usual), rows.level(self.other));
        let (way, cause) = match self.other < self.usual {
            true => ("fell", "Possible causes: a throttle, a stall of the disk, other I/O."),
            false => ("rose", "Possible causes: other I/O or a limit that paused."),
        };
        let is_of_limit = are_of_limits(facts, rows, [self.rows.start, self.rows.end].into_iter());
        let cause = if is_of_limit { LIMIT_CHANGED } else { cause };
        format!(
            "The rate {way} from {usual} to {other} for {length:.1} s, from {from:.1} s on, and then returned. {cause}"
        )
    }

    fn brief(&self, rows: &Rows) -> String {
        format!("{} instead of {} for {:.1} s", rows.level(self.other), rows.level(self.usual), self.seconds(rows).1)
    }
}

/// Returns the longest run of values of which `is_other` is true.
fn longest_run(values: &[f64], is_other: impl Fn(f64) -> bool) -> Range<usize> {
    let (mut longest, mut begin) = (0..0, 0);
    for (index, value) in values.iter().enumerate() {
        if !is_other(*value) {
            begin = index + 1;
        } else if index + 1 - begin > longest.len() {
            longest = begin..index + 1;
        }
    }
    longest
}

/// The series of all jobs on one grid.
struct Rows {
    /// Length of each interval, in nanoseconds.
    row_ns: u64,
    /// (I/Os, bytes) of each interval, oldest first.
    rows: Vec<(f64, f64)>,
    /// The indices of those in which this tool was not stopped, and jobs with a rate did not make up for a stop.
    kept: Vec<usize>,
}

impl Rows {
    /// Sums the jobs' series over a grid of the longest interval among them. The grid ends where the first
    /// job ended, without an incomplete last interval.
    fn of(facts: &PhaseFacts<'_>) -> Self {
        let series: Vec<&[SeriesRow]> = facts.records.iter().map(|record| transfers_of(facts, record)).collect();
        let row_ns = series.iter().filter_map(|rows| rows.iter().map(|row| row.span_ns).max()).max().unwrap_or(0);
        let end_ns = series.iter().map(|rows| rows.last().map_or(0, |row| row.end_ns)).min().unwrap_or(0);
        let count = end_ns.checked_div(row_ns).unwrap_or(0) as usize;
        let mut rows = vec![(0.0, 0.0); count];
        let stops = stops(facts);
        let is_stopped = |index: &usize| {
            let (low, high) = (*index as u64 * row_ns, (*index as u64 + 1) * row_ns);
            stops.iter().any(|stop| low < stop.until_ns && high > stop.from_ns)
        };
        let kept: Vec<usize> = (0..count).filter(|index| !is_stopped(index)).collect();
        if count == 0 {
            return Self { row_ns, rows, kept };
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
        let mut all = Self { row_ns, rows, kept };
        if !stops.is_empty() && facts.jobs.iter().all(|job| job.is_paced()) {
            all.leave_out_catching_up();
        }
        all
    }

    /// Leaves out the intervals after each gap in which jobs with a rate issue what became due in it: from its end on, while their I/Os are above
    /// the usual number, and until the gap is made up for.
    fn leave_out_catching_up(&mut self) {
        let mut sorted: Vec<f64> = self.kept.iter().map(|index| self.rows[*index].0).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        let (mut next, mut missing) = (0, 0.0);
        let rows = &self.rows;
        self.kept.retain(|&index| {
            let skipped = &rows[next..index];
            next = index + 1;
            missing += usual * skipped.len() as f64 - skipped.iter().map(|row| row.0).sum::<f64>();
            let more = rows[index].0 - usual;
            let catches_up = missing > 0.0 && more > 0.0;
            missing = if catches_up { missing - more } else { 0.0 };
            !catches_up
        });
    }

    fn has_bytes(&self) -> bool {
        self.rows.iter().any(|row| row.1 > 0.0)
    }

    /// Returns bytes per kept interval, or I/Os if no interval has bytes.
    fn rates(&self) -> Vec<f64> {
        let has_bytes = self.has_bytes();
        self.kept.iter().map(|index| self.rows[*index]).map(|row| if has_bytes { row.1 } else { row.0 }).collect()
    }

    /// Returns true if two parts differ by more I/Os than chance explains: by two standard deviations of their count, and one I/O.
    fn are_unlike_by_count(&self) -> bool {
        let count = self.kept.len();
        let ios = |part: usize| self.kept[count * part / PARTS..count * (part + 1) / PARTS].iter();
        let ios = (0..PARTS).map(|part| ios(part).map(|index| self.rows[*index].0).sum::<f64>());
        let (least, most) = ios.fold((f64::MAX, 0.0), |(least, most): (f64, f64), n| (least.min(n), most.max(n)));
        most - least > 1.0 + 2.0 * (most + least).sqrt()
    }

    /// Returns why `count` intervals are too few.
    fn why_too_short(&self, count: usize) -> Option<String> {
        let span_ns = self.row_ns * count as u64;
        if span_ns < SPAN_NS_MIN {
            // Rounded down: 1.96 s are not 2 s.
            let tenths = span_ns / 100_000_000;
            return Some(format!("{}.{} s of intervals; 2 s are needed", tenths / 10, tenths % 10));
        }
        (count < ROW_COUNT_MIN).then(|| format!("{count} intervals; {ROW_COUNT_MIN} are needed"))
    }

    /// Returns the runs of kept intervals without I/O, also at the end.
    fn stalls(&self) -> Vec<Range<usize>> {
        // The level of the intervals with I/O: a stall may take most of the phase.
        let mut busy: Vec<f64> =
            self.kept.iter().map(|index| self.rows[*index].0).filter(|count| *count >= 1.0).collect();
        busy.sort_by(f64::total_cmp);
        let Some(usual) = busy.get(busy.len() / 2) else { return Vec::new() };
        let is_long =
            |stall: &Range<usize>| stall.len() >= STALL_ROWS_MIN && stall.len() as f64 * usual >= STALL_IO_COUNT_MIN;
        let mut stalls = Vec::new();
        let mut begin = None;
        for &index in &self.kept {
            // Less than one I/O: shares of an I/O that an interval of another length had.
            if self.rows[index].0 < 1.0 {
                begin.get_or_insert(index);
            } else {
                stalls.extend(begin.take().map(|begin| begin..index).filter(is_long));
            }
        }
        // One that hangs until the end.
        stalls.extend(begin.map(|begin| begin..self.rows.len()).filter(is_long));
        stalls
    }

    /// `No I/O completed for 2.0 s, from 1.2 s on …`.
    fn stall_sentence(&self, stalls: &[Range<usize>], is_level: bool) -> String {
        let seconds = |rows: usize| rows as f64 * self.row_ns as f64 / 1e9;
        let described: Vec<String> = stalls
            .iter()
            .map(|stall| format!("for {:.1} s, from {:.1} s on", seconds(stall.len()), seconds(stall.start)))
            .collect();
        let is_at_end = stalls.last().is_some_and(|stall| stall.end == self.rows.len());
        let (end, cause) = match is_at_end {
            true => (", until the end", "I/Os that hang, a stall of the disk"),
            false => ("", "a stall of the disk, other I/O"),
        };
        let level = match (is_level, is_at_end) {
            (false, _) => "",
            (true, true) => "; before that the rate was at one level",
            (true, false) => "; before and after that the rate was at one level",
        };
        format!("No I/O completed {}{end}{level}. Possible causes: {cause}.", described.join("; "))
    }

    /// `fell from 4.1 to 2.9 GiB/s after 2.0 s`.
    fn change_brief(&self, changes: &[ChangePoint]) -> String {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return String::new() };
        let seconds = self.seconds_before(first.index);
        if let Some((first, last)) = passing(changes) {
            let length = self.seconds_before(last.index) - seconds;
            return format!("{} instead of {} for {length:.1} s", self.level(first.after), self.level(first.before));
        }
        let way = if last.after < first.before { "fell" } else { "rose" };
        format!("{way} from {} to {} after {seconds:.1} s", self.level(first.before), self.level(last.after))
    }

    /// Returns the time before a kept interval, in seconds.
    fn seconds_before(&self, index: usize) -> f64 {
        self.kept[index] as f64 * self.row_ns as f64 / 1e9
    }

    /// `400 MiB/s`, `1,200 IOPS`, `no I/O`.
    fn level(&self, per_row: f64) -> String {
        let per_s = per_row * 1e9 / self.row_ns as f64;
        match self.has_bytes() {
            _ if per_s < 1.0 => "no I/O".to_owned(),
            true => format_bandwidth(per_s),
            false => format!("{} IOPS", format_count(per_s as u64)),
        }
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
        let bytes: f64 = self.rows[..self.kept[change.index]].iter().map(|row| row.1).sum();
        let seconds = self.seconds_before(change.index);
        let done = if bytes > 0.0 { format!(" and {}", format_bytes(bytes as u64)) } else { String::new() };
        format!("from {} to {} after {seconds:.1} s{done}", self.level(change.before), self.level(change.after))
    }
}
