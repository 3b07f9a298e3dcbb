//! What the figures of an answer decide of the limits of a run (`--fail-if`, `[limits]`).
//!
//! A limit is judged from the figure's 95 % interval. It is undecided if the figure is not confirmed, if it has no interval, or if the
//! interval includes the limit; the next step then is what would decide it. A relative limit is judged from the intervals of both
//! figures.
//!
//! A rate that changes as slowly as the run lasts has no interval. Then the rates of eight equal parts of the run decide, if all of them are
//! on one side of the limit: between them lies the figure. Cannot see: what is slower than the run.

use crate::again::Again;
use crate::summary::{Interval, Row, name_of, shape_of};
use crate::text::figure;
use trueio_model::{
    AnsweredFigure, AnsweredFinding, JobPlan, JudgedLimit, Limit, LimitFigure, LimitOutcome, LimitUnit, LimitValue,
    Mark, OpKind, Plan, Quantity, Reference, ReferenceLoad, RunRecord, SeriesRow,
};

/// A run for longer than this is not proposed.
const RUNTIME_NS_MAX: f64 = 3600e9;

/// Parts of a run whose rates decide where there is no interval.
const PART_COUNT: usize = 8;

/// A figure that a limit concerns, possibly the sum of several.
#[derive(Debug, Clone, PartialEq)]
struct Measured {
    operation: Option<OpKind>,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: Mark,
    cause: String,
    is_shown: bool,
}

/// Judges the limits of a record by the figures of its answer.
pub(crate) fn judged(
    record: &RunRecord,
    rows: &[Row],
    figures: &[AnsweredFigure],
    findings: &[AnsweredFinding],
) -> Vec<JudgedLimit> {
    let Some(set) = record.plan.limits.as_deref() else { return Vec::new() };
    let judge = Judge { record, rows, findings, reference: set.reference.as_ref() };
    let mut all = Vec::new();
    for condition in &set.conditions {
        let limit = match Limit::parse(condition) {
            Ok(limit) => limit,
            // A record of a later version may have limits that this one cannot read.
            Err(error) => {
                all.push(unread(condition, error.to_string()));
                continue;
            }
        };
        let before = all.len();
        for load in loads(figures).iter().filter(|load| limit.load.as_ref().is_none_or(|name| *name == load[0].load)) {
            all.extend(measured(&limit, load).iter().map(|one| judge.judge(&limit, &load[0].load, one)));
        }
        if all.len() == before {
            all.push(unread(condition, format!("the run has no {}", limit.name())));
        }
    }
    all
}

/// Returns a limit that concerns no figure of the run.
fn unread(condition: &str, reason: String) -> JudgedLimit {
    JudgedLimit {
        condition: condition.to_owned(),
        load: String::new(),
        operation: None,
        outcome: LimitOutcome::Undecided,
        value: None,
        low: None,
        high: None,
        threshold: None,
        unit: String::new(),
        sentence: reason,
        next_step: "run it to its end, with a load that has the figure".to_owned(),
    }
}

/// Splits figures into those of each load. A load may have the name of another one, of a later phase.
fn loads(figures: &[AnsweredFigure]) -> Vec<Vec<&AnsweredFigure>> {
    let mut all: Vec<Vec<&AnsweredFigure>> = Vec::new();
    for figure in figures {
        let is_of = |load: &&mut Vec<&AnsweredFigure>| {
            let is_repeated =
                |one: &&AnsweredFigure| (one.operation, one.quantity) == (figure.operation, figure.quantity);
            load[0].load == figure.load && !load.iter().any(is_repeated)
        };
        match all.last_mut().filter(is_of) {
            Some(load) => load.push(figure),
            None => all.push(vec![figure]),
        }
    }
    all
}

/// Returns the figures of a load that a limit concerns: of a rate without an operation the sum of all transfers, of a latency each.
fn measured(limit: &Limit, load: &[&AnsweredFigure]) -> Vec<Measured> {
    let of = |quantity: Quantity, is_of: &dyn Fn(OpKind) -> bool| -> Vec<&AnsweredFigure> {
        load.iter().copied().filter(|one| one.quantity == Some(quantity) && one.operation.is_some_and(is_of)).collect()
    };
    let single = |one: &&AnsweredFigure| Measured {
        operation: one.operation,
        value: one.value,
        low: one.low,
        high: one.high,
        verdict: one.verdict,
        cause: one.cause.clone(),
        is_shown: one.is_shown,
    };
    match (limit.figure, limit.operation) {
        (LimitFigure::Commits, _) => of(Quantity::Iops, &|op| op == OpKind::Sync).iter().map(single).collect(),
        (LimitFigure::Of(quantity), Some(operation)) => {
            of(quantity, &|op| op == operation).iter().map(single).collect()
        }
        (LimitFigure::Of(quantity @ (Quantity::Iops | Quantity::Bandwidth)), None) => {
            sum(&of(quantity, &|op| op != OpKind::Sync)).into_iter().collect()
        }
        (LimitFigure::Of(quantity), None) => of(quantity, &|_| true).iter().map(single).collect(),
        (LimitFigure::Cpu, _) => Vec::new(),
    }
}

/// Adds rates. The sum of the ends of intervals is an interval, a wide one.
fn sum(figures: &[&AnsweredFigure]) -> Option<Measured> {
    let first = figures.first()?;
    let all = |of: fn(&AnsweredFigure) -> Option<f64>| figures.iter().map(|one| of(one)).sum::<Option<f64>>();
    Some(Measured {
        operation: first.operation.filter(|_| figures.len() == 1),
        value: all(|one| one.value),
        low: all(|one| one.low),
        high: all(|one| one.high),
        verdict: first.verdict,
        cause: first.cause.clone(),
        is_shown: figures.iter().all(|one| one.is_shown),
    })
}

/// What limits are judged with.
struct Judge<'a> {
    record: &'a RunRecord,
    rows: &'a [Row],
    findings: &'a [AnsweredFinding],
    reference: Option<&'a Reference>,
}

/// The value of a limit in the unit of the figure: what it may be, and how it is written.
struct Threshold {
    value: f64,
    low: f64,
    high: f64,
    words: String,
}

impl Judge<'_> {
    fn judge(&self, limit: &Limit, load: &str, one: &Measured) -> JudgedLimit {
        let (outcome, threshold, found, next_step) = match self.decided(limit, load, one) {
            Ok((outcome, threshold, words, next_step)) => (outcome, Some(threshold), words, next_step),
            Err((words, next_step)) => (LimitOutcome::Undecided, None, words, next_step),
        };
        // The operation is named if the load has others.
        let name = match (limit.figure, limit.operation, one.operation) {
            (LimitFigure::Of(_), None, Some(operation)) if self.has_several(load) => {
                format!("{operation} {}", limit.name())
            }
            _ => limit.name(),
        };
        JudgedLimit {
            condition: limit.text.clone(),
            load: load.to_owned(),
            operation: one.operation,
            outcome,
            value: one.value,
            low: one.low,
            high: one.high,
            threshold,
            unit: match limit.figure.row().unit {
                LimitUnit::PerSecond => "1/s",
                LimitUnit::BytesPerSecond => "B/s",
                LimitUnit::Time => "ns",
            }
            .to_owned(),
            sentence: format!("{}: {name} {found}", self.name_of(load)),
            next_step,
        }
    }

    /// Returns the name of a load as the other sentences have it.
    fn name_of(&self, load: &str) -> String {
        let phases = self.record.phases.iter().enumerate();
        let mut jobs = phases.flat_map(|(index, phase)| phase.jobs.iter().map(move |job| (index, job)));
        jobs.find(|(_, job)| job.name == load)
            .map_or_else(|| load.to_owned(), |(index, job)| name_of(self.record, index, job))
    }

    /// Returns true if a load has operations of several kinds.
    fn has_several(&self, load: &str) -> bool {
        let jobs = self.record.phases.iter().flat_map(|phase| &phase.jobs);
        jobs.filter(|job| job.name == load).any(|job| job.ops.len() > 1)
    }

    /// Returns the outcome, the threshold, what follows the name of the figure in the sentence, and the next step.
    ///
    /// # Errors
    /// The figure, or the one to which the limit refers, does not stand: why, and the next step.
    fn decided(
        &self,
        limit: &Limit,
        load: &str,
        one: &Measured,
    ) -> Result<(LimitOutcome, f64, String, String), (String, String)> {
        let unit = limit.figure.row().unit;
        self.stands(load, one, unit)?;
        let known = interval(limit, one);
        let of_parts = if known.is_none() { self.rates_of_parts(limit, load, one.operation) } else { None };
        let interval = known.or(of_parts).ok_or_else(|| {
            let value = one.value.map_or_else(|| "is unknown".to_owned(), |value| unit.show(value));
            (format!("{value} has no interval: the run is too short for one"), self.interval_step(limit, load, one))
        })?;
        let threshold = self.threshold(limit, load, unit)?;
        let ends = [threshold.low, threshold.high].map(|end| limit.sign.judge(interval, end));
        let outcome = if ends[0] == ends[1] { ends[0] } else { LimitOutcome::Undecided };
        let side = if limit.sign.is_above() { "above" } else { "below" };
        let relation = match outcome {
            LimitOutcome::Missed => format!("is {side}"),
            LimitOutcome::Met => format!("is not {side}"),
            LimitOutcome::Undecided => "may be on either side of".to_owned(),
        };
        let next_step = match outcome {
            LimitOutcome::Undecided if of_parts.is_some() => self.interval_step(limit, load, one),
            LimitOutcome::Undecided => self.next_step(limit, load, one, interval, &threshold),
            LimitOutcome::Met | LimitOutcome::Missed => String::new(),
        };
        let found = of_parts.map_or_else(
            || shown(one, unit),
            |(low, high)| {
                let range = format!("{} to {}", unit.show(low), unit.show(high));
                format!("{} ({range} in each of {PART_COUNT} parts of the run)", shown(one, unit))
            },
        );
        let words = format!("{found} {relation} {}", threshold.words);
        Ok((outcome, threshold.value, words, next_step))
    }

    /// Returns the lowest and the highest rate of equal parts of a run; `None` of other figures, and without a series of its load that is
    /// long enough.
    fn rates_of_parts(&self, limit: &Limit, load: &str, operation: Option<OpKind>) -> Option<(f64, f64)> {
        let count: fn(&SeriesRow, Option<OpKind>) -> u64 = match limit.figure {
            LimitFigure::Of(Quantity::Iops) | LimitFigure::Commits => ios_of,
            LimitFigure::Of(Quantity::Bandwidth) => bytes_of,
            _ => return None,
        };
        let mut jobs = self.record.phases.iter().flat_map(|phase| &phase.jobs).filter(|job| job.name == load);
        // Two loads of one name cannot be distinguished.
        let job = jobs.next().filter(|_| jobs.next().is_none())?;
        let longest_ns = job.series.iter().map(|row| row.span_ns).max()?;
        let rows: Vec<&SeriesRow> = job.series.iter().filter(|row| row.span_ns > longest_ns / 2).collect();
        if rows.len() < PART_COUNT {
            return None;
        }
        let rates = (0..PART_COUNT).map(|part| {
            let rows = &rows[part * rows.len() / PART_COUNT..(part + 1) * rows.len() / PART_COUNT];
            let span_ns: u64 = rows.iter().map(|row| row.span_ns).sum();
            rows.iter().map(|row| count(row, operation)).sum::<u64>() as f64 * 1e9 / span_ns.max(1) as f64
        });
        crate::plot::bounds(rates)
    }

    /// # Errors
    /// The figure is withheld or not confirmed.
    fn stands(&self, load: &str, one: &Measured, unit: LimitUnit) -> Result<(), (String, String)> {
        if one.verdict == Mark::Confirmed && one.is_shown {
            return Ok(());
        }
        let because = if one.cause.is_empty() { String::new() } else { format!(" ({})", one.cause) };
        let words = match one.is_shown {
            true => format!("{} is {}{because}", shown(one, unit), one.verdict.word()),
            false if one.verdict == Mark::Withheld => format!("is withheld{because}"),
            false => format!("is withheld: {}{because}", one.verdict.word()),
        };
        let name = self.name_of(load);
        let finding = self.findings.iter().find(|finding| finding.loads.iter().any(|found| found.load == name));
        let next_step = finding.map_or_else(
            || {
                format!(
                    "measure a disk whose counters can be read (`trueio doctor` prints what is missing), then {}",
                    Again::of_record(self.record).words
                )
            },
            |finding| finding.next_step.clone(),
        );
        Err((words, next_step))
    }

    /// # Errors
    /// The reference has no such figure, or it does not stand.
    fn threshold(&self, limit: &Limit, load: &str, unit: LimitUnit) -> Result<Threshold, (String, String)> {
        let share = match limit.value {
            LimitValue::Absolute(value) => {
                return Ok(Threshold { value, low: value, high: value, words: unit.show(value) });
            }
            LimitValue::Share(share) => share,
        };
        let another = "name another record: `--against ID` (`trueio history` lists them)".to_owned();
        let Some(reference) = self.reference else {
            return Err(("has no reference".to_owned(), another));
        };
        let id: String = reference.record_id.chars().take(8).collect();
        let own = loads(&reference.figures);
        let found = own.iter().filter(|of| of[0].load == load).find_map(|of| measured(limit, of).into_iter().next());
        let Some(base) = found else {
            return Err((format!("is not in record {id}"), another));
        };
        let because = if base.cause.is_empty() { String::new() } else { format!(" ({})", base.cause) };
        if base.verdict != Mark::Confirmed || !base.is_shown {
            return Err((format!("is {}{because} in record {id}", base.verdict.word()), another));
        }
        let (Some((low, high)), Some(value)) = (interval(limit, &base), base.value) else {
            return Err((format!("has no interval in record {id}"), another));
        };
        Ok(Threshold {
            value: value * share,
            low: low * share,
            high: high * share,
            words: format!(
                "{}, {} % of record {id} ({})",
                unit.show(value * share),
                figure(share * 100.0),
                shown(&base, unit)
            ),
        })
    }

    /// Returns what decides a limit that is within the interval.
    fn next_step(
        &self,
        limit: &Limit,
        load: &str,
        one: &Measured,
        (low, high): (f64, f64),
        threshold: &Threshold,
    ) -> String {
        let Some(value) = one.value.filter(|_| low.is_finite() && high.is_finite()) else {
            return self.interval_step(limit, load, one);
        };
        if (threshold.low..=threshold.high).contains(&value) && threshold.low < threshold.high {
            // A stored record cannot be measured any longer.
            return "no longer run can decide it, because the record itself may be on either side: measure both in turn \
                    (`trueio compare A.toml B.toml`), or record a longer reference"
                .to_owned();
        }
        let (gap, half) = if value > threshold.value {
            (value - threshold.high, value - low)
        } else {
            (threshold.low - value, high - value)
        };
        // The width of an interval falls with the square root of the time; a fifth more is a reserve.
        let factor = 1.2 * (half / gap.max(f64::MIN_POSITIVE)).powi(2);
        self.longer(self.elapsed_ns(load) * factor.max(1.5), "for about")
    }

    /// Returns the longest measured time of a load, in nanoseconds.
    fn elapsed_ns(&self, load: &str) -> f64 {
        let jobs = self.record.phases.iter().flat_map(|phase| &phase.jobs);
        jobs.filter(|job| job.name == load).map(|job| job.elapsed_ns).max().unwrap_or(0) as f64
    }

    /// Returns the command that measures a figure without an interval for so long that it may have one: a lower bound, because how far
    /// that interval is from the limit is unknown.
    fn interval_step(&self, limit: &Limit, load: &str, one: &Measured) -> String {
        let elapsed_ns = self.elapsed_ns(load);
        let quantile = match limit.figure {
            LimitFigure::Of(Quantity::P50) => Some(0),
            LimitFigure::Of(Quantity::P99) => Some(1),
            LimitFigure::Of(Quantity::P999) => Some(2),
            _ => None,
        };
        let job_of = |row: &Row| self.record.phases.get(row.phase_index)?.jobs.get(row.job_index);
        let is_it = |row: &&Row| Some(row.op) == one.operation && job_of(row).is_some_and(|job| job.name == load);
        let missing_ns = self.rows.iter().filter(is_it).filter_map(|row| match row.intervals[quantile?] {
            Interval::Needs(missing_ns) => Some(missing_ns),
            _ => None,
        });
        let wanted_ns = elapsed_ns + missing_ns.max().unwrap_or(0) as f64;
        self.longer(wanted_ns.max(elapsed_ns * 4.0), "for at least")
    }

    /// Returns the command that measures for a time.
    fn longer(&self, wanted_ns: f64, how_long: &str) -> String {
        if wanted_ns.is_nan() || wanted_ns > RUNTIME_NS_MAX {
            return "an hour would not decide it, because the figure is at the limit: move the limit away from it"
                .to_owned();
        }
        let seconds = (wanted_ns / 1e9).ceil().max(1.0);
        let again = Again::of_record(self.record);
        match again.for_seconds(seconds) {
            Some(command) => format!("measure {how_long} {seconds} s: {command}"),
            None => format!("measure {how_long} {seconds} s: set the runtime of the load, then {}", again.words),
        }
    }
}

/// Returns the interval of a figure, with infinite ends where they are unknown; `None` if it has none. A maximum has no error.
fn interval(limit: &Limit, one: &Measured) -> Option<(f64, f64)> {
    if limit.figure == LimitFigure::Of(Quantity::Max) {
        return one.value.map(|value| (value, value));
    }
    match (one.low, one.high) {
        (None, None) => None,
        (low, high) => Some((low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY))),
    }
}

/// Returns the operations of a row of a series; without an operation all transfers.
fn ios_of(row: &SeriesRow, operation: Option<OpKind>) -> u64 {
    match operation {
        Some(OpKind::Read) => row.read_count,
        Some(OpKind::Write) => row.write_count,
        Some(OpKind::Trim) => row.trim_count,
        Some(OpKind::Sync) => row.other_count.saturating_sub(row.trim_count),
        None => [row.read_count, row.write_count, row.trim_count].into_iter().fold(0, u64::saturating_add),
    }
}

/// Returns the bytes of a row of a series; without an operation those of all transfers.
fn bytes_of(row: &SeriesRow, operation: Option<OpKind>) -> u64 {
    match operation {
        Some(OpKind::Read) => row.read_bytes,
        Some(OpKind::Write) => row.write_bytes,
        Some(OpKind::Trim) => row.trim_bytes,
        Some(OpKind::Sync) => 0,
        None => [row.read_bytes, row.write_bytes, row.trim_bytes].into_iter().fold(0, u64::saturating_add),
    }
}

/// Returns a figure with its interval: `12.1 ms (11.8 ms to 12.4 ms)`.
fn shown(one: &Measured, unit: LimitUnit) -> String {
    let value = one.value.map_or_else(|| "unknown".to_owned(), |value| unit.show(value));
    match (one.low, one.high) {
        (Some(low), Some(high)) => format!("{value} ({} to {})", unit.show(low), unit.show(high)),
        (Some(low), None) => format!("{value} (at least {})", unit.show(low)),
        _ => value,
    }
}

/// Returns a limit with its outcome, as every output prints it: `limit missed: reads: p99 …`.
pub fn limit_line(limit: &JudgedLimit) -> String {
    let next = if limit.next_step.is_empty() { String::new() } else { format!(" → {}", limit.next_step) };
    format!("limit {}: {} [{}]{next}", limit.outcome.word(), limit.sentence, limit.condition)
}

/// Returns the lines of all limits for one screen, those with the worst outcome first. Each condition is there: each load that misses it or
/// leaves it undecided has a line, and the loads that meet it share one, with the sentence of the load that is nearest to the limit. Each next
/// step is there once.
pub(crate) fn limit_lines(limits: &[JudgedLimit]) -> Vec<String> {
    let mut lines: Vec<(LimitOutcome, String)> = Vec::new();
    let (mut seen, mut steps): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for limit in limits {
        if seen.contains(&limit.condition.as_str()) {
            continue;
        }
        seen.push(&limit.condition);
        let (met, open): (Vec<&JudgedLimit>, Vec<&JudgedLimit>) = limits
            .iter()
            .filter(|one| one.condition == limit.condition)
            .partition(|one| one.outcome == LimitOutcome::Met);
        for one in open {
            // A step that an earlier line has is not repeated.
            let line = match steps.contains(&one.next_step.as_str()) {
                true => limit_line(&JudgedLimit { next_step: String::new(), ..one.clone() }),
                false => limit_line(one),
            };
            steps.push(&one.next_step);
            lines.push((one.outcome, line));
        }
        let nearest = met.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        lines.extend(nearest.map(|one| {
            let line = limit_line(one);
            let others = match met.len() - 1 {
                0 => String::new(),
                1 => "; 1 other figure is farther from it".to_owned(),
                count => format!("; {count} other figures are farther from it"),
            };
            (one.outcome, line + &others)
        }));
    }
    lines.sort_by_key(|(outcome, _)| std::cmp::Reverse(*outcome));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Returns how far a figure is from its limit, as the logarithm of their ratio; infinite if one of them is unknown or zero.
fn distance(limit: &JudgedLimit) -> f64 {
    let ratio = limit.value.zip(limit.threshold).map(|(value, threshold)| (value / threshold).ln().abs());
    ratio.filter(|distance| !distance.is_nan()).unwrap_or(f64::INFINITY)
}

/// A limit that a run cannot keep or miss.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitRefusal {
    /// No load has the name.
    #[error("`{condition}`: there is no load `{load}`; the loads are {known}")]
    NoLoad {
        /// The limit.
        condition: String,
        /// The name in it.
        load: String,
        /// The names of all loads.
        known: String,
    },
    /// No load has the operation.
    #[error("`{condition}`: no load {operation}s, so there is no {figure}")]
    NoOperation {
        /// The limit.
        condition: String,
        /// The operation.
        operation: OpKind,
        /// The figure.
        figure: String,
    },
    /// Only comparisons have the figure.
    #[error("`{condition}`: a run has no limit of CPU time per I/O; `trueio compare` compares it")]
    OfComparisons {
        /// The limit.
        condition: String,
    },
    /// There is no reference.
    #[error(
        "`{condition}` is relative, and there is nothing to which it refers: name a record with `--against ID`, or `--against newest`"
    )]
    NoReference {
        /// The limit.
        condition: String,
    },
    /// The reference lacks the load, or it does something else there.
    #[error("`{condition}`: record {record} has no load `{load}` that does the same ({shape}{found})")]
    OtherLoad {
        /// The limit.
        condition: String,
        /// The ID of the reference.
        record: String,
        /// The name of the load.
        load: String,
        /// What it does.
        shape: String,
        /// What the reference's does.
        found: String,
    },
}

/// Checks limits against a plan, before it runs.
///
/// # Errors
/// The first limit that no figure of the plan can decide.
pub fn check_limits(limits: &[Limit], plan: &Plan, reference: Option<&Reference>) -> Result<(), LimitRefusal> {
    limits.iter().try_for_each(|limit| check(limit, plan, reference))
}

fn check(limit: &Limit, plan: &Plan, reference: Option<&Reference>) -> Result<(), LimitRefusal> {
    let condition = limit.text.clone();
    let is_of = |job: &&JobPlan| limit.load.as_ref().is_none_or(|name| *name == job.name);
    let jobs: Vec<&JobPlan> = plan.jobs.iter().filter(is_of).collect();
    if let (true, Some(load)) = (jobs.is_empty(), limit.load.clone()) {
        let mut known: Vec<String> = plan.jobs.iter().map(|job| format!("`{}`", job.name)).collect();
        known.dedup();
        return Err(LimitRefusal::NoLoad { condition, load, known: known.join(", ") });
    }
    let operation = match limit.figure {
        LimitFigure::Cpu => return Err(LimitRefusal::OfComparisons { condition }),
        LimitFigure::Commits => Some(OpKind::Sync),
        LimitFigure::Of(_) => limit.operation,
    };
    if let Some(operation) = operation
        && !jobs.iter().any(|job| may_do(job, operation))
    {
        return Err(LimitRefusal::NoOperation { condition, operation, figure: limit.name() });
    }
    if let LimitValue::Absolute(_) = limit.value {
        return Ok(());
    }
    let Some(reference) = reference else { return Err(LimitRefusal::NoReference { condition }) };
    let has_same =
        |job: &&JobPlan| reference.loads.iter().any(|load| load.name == job.name && load.shape == shape_of(job));
    match jobs.iter().find(|job| !has_same(job)) {
        None => Ok(()),
        Some(other) => {
            let of = reference.loads.iter().find(|load| load.name == other.name);
            Err(LimitRefusal::OtherLoad {
                condition,
                record: reference.record_id.chars().take(8).collect(),
                load: other.name.clone(),
                shape: shape_of(other),
                found: of.map_or_else(String::new, |of| format!("; there it is {}", of.shape)),
            })
        }
    }
}

/// Returns false if a job certainly does no operation of a kind.
fn may_do(job: &JobPlan, operation: OpKind) -> bool {
    use trueio_model::OpMix;
    if job.replay.is_some() || !job.engine.does_io() {
        return true;
    }
    let writes = !matches!(job.pattern.mix, OpMix::Only(OpKind::Read));
    match (operation, job.pattern.mix) {
        (OpKind::Sync, OpMix::Only(OpKind::Sync)) => true,
        (OpKind::Sync, _) => writes && (job.flush.is_between() || job.flush.is_at_end()),
        (OpKind::Trim, OpMix::Only(op)) => op == OpKind::Trim,
        (OpKind::Trim, OpMix::ReadWrite { .. }) => false,
        (_, OpMix::ReadWrite { .. }) => true,
        (operation, OpMix::Only(op)) => op == operation,
    }
}

/// Returns a record as the reference of relative limits.
pub fn reference_of(record: &RunRecord) -> Reference {
    let loads = record.plan.jobs.iter().map(|job| ReferenceLoad { name: job.name.clone(), shape: shape_of(job) });
    Reference {
        record_id: record.id.clone(),
        started_at: record.started_at.clone(),
        loads: loads.collect(),
        figures: crate::answer::answer(record, &[]).figures,
    }
}
