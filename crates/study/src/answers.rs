//! Answers of a study in sentences: which way is the fastest, which reached stable storage, which calls failed.
//!
//! The fastest way is named with those that its rounds do not tell it from, by the same paired ratios as the contrasts.
//! Rounds in which a check doubts a sample decide nothing.

use crate::conclude::{ROUNDS_MIN, ratio, shown};
use crate::definition::AnswerKind;
use crate::figures::{counts, flaws, values};
use crate::study::Study;
use std::collections::{BTreeMap, BTreeSet};
use trueio_model::{DurabilityKind, Statistic, StudyMetric, StudyRow, units, value_label};
use trueio_stats::hodges_lehmann_estimate;

/// Every answer of a mode, in sentences.
pub(crate) fn answers(study: &Study, mode: &str, rows: &[StudyRow]) -> Vec<String> {
    let answers = study.definition.answer.iter();
    let answers = answers.filter(|answer| answer.modes.is_empty() || answer.modes.iter().any(|name| name == mode));
    let answers = answers.flat_map(|answer| match answer.kind {
        AnswerKind::FailedCalls => failed_calls(rows),
        AnswerKind::Durability => durability_answers(&answer.among, rows),
        AnswerKind::BestDurable => best(&answer.among, &answer.by, answer.metric, rows, true),
        AnswerKind::Best => best(&answer.among, &answer.by, answer.metric, rows, false),
    });
    doubted_rows(rows).into_iter().chain(answers).collect()
}

/// Returns how many rows lack rounds for a claim because checks doubt theirs; `None` if no row does.
fn doubted_rows(rows: &[StudyRow]) -> Option<String> {
    let (mut row_count, mut samples_of) = (0, BTreeMap::<&str, usize>::new());
    for row in rows {
        let doubted = flaws([row]).rounds;
        let rounds: BTreeSet<u32> =
            row.samples.iter().filter(|sample| counts(sample)).map(|sample| sample.round).collect();
        if rounds.len() < ROUNDS_MIN || rounds.difference(&doubted).count() >= ROUNDS_MIN {
            continue;
        }
        row_count += 1;
        for check in row.samples.iter().flat_map(|sample| &sample.objections).filter(|check| !check.is_accepted) {
            *samples_of.entry(&check.name).or_default() += 1;
        }
    }
    let mut checks: Vec<(&str, usize)> = samples_of.into_iter().collect();
    checks.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let checks: Vec<String> = checks.iter().map(|(name, count)| format!("{name} in {}", samples(*count))).collect();
    (row_count > 0).then(|| {
        format!(
            "{row_count} of {} rows decide nothing, because fewer than {ROUNDS_MIN} of their rounds are free of doubts ({}). Their \
             figures are printed; for a claim, remove the cause (see the evidence below) and repeat the study.",
            rows.len(),
            listed(&checks, 4)
        )
    })
}

fn samples(count: usize) -> String {
    if count == 1 { "1 sample".to_owned() } else { format!("{count} samples") }
}

fn at<'a>(row: &'a StudyRow, axis: &str) -> Option<&'a str> {
    row.key.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
}

fn is_durable(row: &StudyRow) -> bool {
    row.durability.as_ref().is_some_and(|d| matches!(d.is, DurabilityKind::Shown | DurabilityKind::Declared))
}

/// Returns the best row for each value of `by`, together with the rows that cannot be told from it.
fn best(among: &str, by: &str, metric: StudyMetric, rows: &[StudyRow], durable: bool) -> Vec<String> {
    let mut values: Vec<&str> = Vec::new();
    for value in rows.iter().filter_map(|row| at(row, by)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
        .into_iter()
        .map(|value| format!("{by} {value}: {}.", best_at(among, (by, value), metric, rows, durable)))
        .collect()
}

/// A row that may be the best.
struct Candidate<'a> {
    row: &'a StudyRow,
    /// Its value of the axis, and of all further axes: a writer alone is no way if its block size varies too.
    way: String,
    /// From the rounds that no check doubts, if they suffice for a claim.
    value: f64,
    has_claim: bool,
}

impl Candidate<'_> {
    /// Returns true if the rounds of both do not show which is better.
    fn cannot_be_told_from(&self, other: &Candidate<'_>, metric: StudyMetric) -> bool {
        let (ratio, _) = ratio(self.row, other.row, None, metric, Statistic::Median);
        ratio.and_then(|ratio| ratio.interval).is_none_or(|(low, high)| low <= 1.0 && high >= 1.0)
    }
}

fn candidate<'a>(row: &'a StudyRow, among: &str, by: &str, metric: StudyMetric) -> Option<Candidate<'a>> {
    let figure =
        row.figures.iter().find(|f| f.metric == metric && f.op.is_none() && f.statistic == Statistic::Median)?;
    let flaws = flaws([row]);
    let sound = values(&row.samples, None, metric).into_iter().filter(|(round, _)| !flaws.rounds.contains(round));
    let logs: Vec<f64> = sound.filter(|(_, value)| *value > 0.0).map(|(_, value)| value.ln()).collect();
    let has_claim = logs.len() >= ROUNDS_MIN;
    let estimate = hodges_lehmann_estimate(&logs).filter(|_| has_claim);
    let first = row.key.iter().filter(|(axis, _)| axis == among);
    let further = row.key.iter().filter(|(axis, _)| axis != among && axis != by);
    let way = first.chain(further).map(|(axis, value)| value_label(axis, value)).collect::<Vec<_>>().join(" ");
    Some(Candidate { row, way, value: estimate.map_or(figure.value, f64::exp), has_claim })
}

fn best_at(among: &str, place: (&str, &str), metric: StudyMetric, rows: &[StudyRow], durable: bool) -> String {
    let (by, value) = place;
    let what = if durable { "durable way" } else { "way" };
    let here = rows.iter().filter(|row| at(row, by) == Some(value) && (!durable || is_durable(row)));
    let mut ranked: Vec<Candidate<'_>> = here.filter_map(|row| candidate(row, among, by, metric)).collect();
    let sign = if metric.is_more_better() == Some(false) { 1.0 } else { -1.0 };
    ranked.sort_by(|a, b| (sign * a.value).total_cmp(&(sign * b.value)));
    let Some(first) = ranked.first() else {
        return if durable { "no row is known to be durable" } else { "no row has a figure" }.to_owned();
    };
    let named = |of: &Candidate<'_>| format!("{}, {}", of.way, shown(metric, of.value));
    let Some(best) = ranked.iter().find(|of| of.has_claim) else {
        return format!(
            "which {what} is the fastest cannot be told, because a claim needs {ROUNDS_MIN} rounds without a doubt; the best \
             figure is {} of {}",
            shown(metric, first.value),
            first.way
        );
    };
    let tied = ranked.iter().filter(|of| of.has_claim && !std::ptr::eq(*of, best));
    let tied: Vec<String> = tied.filter(|of| best.cannot_be_told_from(of, metric)).map(named).collect();
    let lacking: Vec<String> = ranked.iter().filter(|of| !of.has_claim).map(|of| of.way.clone()).collect();
    let without = match lacking.len() {
        0 => String::new(),
        _ => format!(" (not compared: {}; doubted, or fewer than {ROUNDS_MIN} rounds)", listed(&lacking, 4)),
    };
    match tied.len() {
        0 => format!("the fastest {what} is {}{without}", named(best)),
        _ => format!(
            "the fastest {what} is one of these, which cannot be told apart: {}; {}{without}",
            named(best),
            listed(&tied, 6)
        ),
    }
}

/// At most `most` of the names.
fn listed(names: &[String], most: usize) -> String {
    match names.len() {
        n if n <= most => names.join("; "),
        n => format!("{}; and {} more", names[..most].join("; "), n - most),
    }
}

/// For rows whose calls failed: the figures that a loop without a check of return values would report.
fn failed_calls(rows: &[StudyRow]) -> Vec<String> {
    let mut out = Vec::new();
    for row in rows {
        let Some(sample) = row.samples.iter().find(|sample| sample.error_count > 0) else { continue };
        let elapsed = sample.figures.iter().find(|f| f.metric == StudyMetric::Elapsed).map(|f| f.value);
        let took = elapsed.map_or_else(|| "unknown time".to_owned(), |s| shown(StudyMetric::Elapsed, s));
        let calls = sample.io_count + sample.error_count;
        let each = elapsed
            .map_or_else(String::new, |s| format!(", {} a call", shown(StudyMetric::Elapsed, s / calls.max(1) as f64)));
        out.push(format!(
            "{}: {} of {} calls failed, in {took}{each}. A loop that ignores their return values reports that time \
             as if all data had been transferred.",
            row.name,
            units::format_count(sample.error_count),
            units::format_count(calls),
        ));
    }
    if out.is_empty() {
        out.push("No call failed: this kernel and disk accept the buffer.".to_owned());
    }
    out
}

/// Which values of an axis reached stable storage.
fn durability_answers(among: &str, rows: &[StudyRow]) -> Vec<String> {
    let kinds = [
        (DurabilityKind::Shown, "Reached stable storage, as observed at the disk"),
        (DurabilityKind::Declared, "Reached stable storage, as declared by the disk"),
        (DurabilityKind::NotAsked, "Did not request it (their writes may be lost on power failure)"),
        (DurabilityKind::Refuted, "Requested it, and the disk shows the contrary"),
        (DurabilityKind::NotShown, "Requested it, and it could not be shown"),
    ];
    let mut out = Vec::new();
    for (kind, title) in kinds {
        let mut names: Vec<(&str, usize, usize)> = Vec::new();
        for row in rows.iter().filter(|row| row.durability.is_some()) {
            let Some(name) = at(row, among) else { continue };
            let is = usize::from(row.durability.as_ref().is_some_and(|d| d.is == kind));
            match names.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, count, all)) => (*count, *all) = (*count + is, *all + 1),
                None => names.push((name, is, 1)),
            }
        }
        let listed: Vec<String> = names
            .into_iter()
            .filter(|(_, count, _)| *count > 0)
            .map(
                |(name, count, all)| {
                    if count == all { name.to_owned() } else { format!("{name} ({count} of {all} rows)") }
                },
            )
            .collect();
        if !listed.is_empty() {
            out.push(format!("{title}: {}.", listed.join(", ")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclude::tests::{pair, row, study};
    use trueio_model::{SampleFigure, StudyFigure};

    /// Rows of two axes with a bandwidth and the durability of their writes.
    fn durable_row(block: &str, method: &str, value: f64, spread: f64, is: Option<DurabilityKind>) -> StudyRow {
        let mut made = row(method, block, &[]);
        made.key = vec![("block".to_owned(), block.to_owned()), ("method".to_owned(), method.to_owned())];
        made.figures = vec![StudyFigure {
            op: None,
            metric: StudyMetric::Bandwidth,
            statistic: Statistic::Median,
            value,
            interval: Some((value / spread, value * spread)),
            samples: 6,
        }];
        // The rounds of one run against those of the others, so that their ratio varies twice as much.
        let turn = if method == "O_SYNC" { -1.0 } else { 1.0 };
        made.samples = (0..6)
            .map(|round| {
                let mut sample = made.samples[0].clone();
                let value = value * spread.powf(turn * (f64::from(round) / 2.5 - 1.0));
                sample.round = round;
                sample.figures = vec![SampleFigure { op: None, metric: StudyMetric::Bandwidth, value }];
                sample
            })
            .collect();
        made.durability = is.map(|is| trueio_model::Durability { is, source: String::new() });
        made
    }

    #[test]
    fn the_fastest_durable_way_is_reported_for_each_block_size_with_its_ties() {
        use DurabilityKind::{Declared, NotAsked, NotShown, Refuted, Shown};
        let rows = [
            durable_row("4k", "BUFFERED", 4e9, 1.01, Some(NotAsked)),
            durable_row("4k", "FSYNC", 1e6, 1.01, Some(Shown)),
            durable_row("4k", "O_SYNC", 2e6, 1.01, Some(Shown)),
            durable_row("4k", "O_DSYNC", 2.02e6, 1.01, Some(Declared)),
            durable_row("4k", "LIAR", 9e6, 1.01, Some(Refuted)),
            durable_row("64k", "FSYNC", 8e6, 1.01, Some(Shown)),
            durable_row("64k", "O_SYNC", 5e6, 1.01, Some(NotShown)),
            durable_row("1m", "FSYNC", 8e6, 1.01, Some(NotShown)),
        ];
        let durable = best("method", "block", StudyMetric::Bandwidth, &rows, true);
        assert_eq!(
            durable,
            [
                "block 4k: the fastest durable way is one of these, which cannot be told apart: O_DSYNC, 1.93 MiB/s; O_SYNC, \
                 1.91 MiB/s.",
                "block 64k: the fastest durable way is FSYNC, 7.63 MiB/s.",
                "block 1m: no row is known to be durable.",
            ]
        );
        let all = best("method", "block", StudyMetric::Bandwidth, &rows, false);
        assert!(all[0].starts_with("block 4k: the fastest way is BUFFERED, "), "{all:?}");
        // Of times the least is the best.
        let mut times = rows[1..3].to_vec();
        for row in &mut times {
            row.figures[0].metric = StudyMetric::Elapsed;
            row.figures[0].value /= 1e6;
            for figure in row.samples.iter_mut().flat_map(|sample| &mut sample.figures) {
                figure.metric = StudyMetric::Elapsed;
                figure.value /= 1e6;
            }
        }
        let shortest = best("method", "block", StudyMetric::Elapsed, &times, true);
        assert!(shortest[0].starts_with("block 4k: the fastest durable way is FSYNC, 1.00 s"), "{shortest:?}");
    }

    #[test]
    fn a_single_sample_or_a_doubted_row_names_no_fastest_way() {
        let one = |rows: &[StudyRow]| best("engine", "under", StudyMetric::Iops, rows, false).remove(0);
        let [fast, _] = pair(1, 0, false);
        assert_eq!(
            one(&[fast]),
            "under nothing: which way is the fastest cannot be told, because a claim needs 5 rounds without a doubt; the best \
             figure is 54600 IOPS of libaio."
        );
        let [doubted, _] = pair(6, 6, false);
        let [mut sound, _] = pair(6, 0, false);
        sound.key[0].1 = "psync".to_owned();
        let found = one(&[doubted, sound]);
        assert!(found.starts_with("under nothing: the fastest way is psync, "), "{found}");
        assert!(found.ends_with(" (not compared: libaio; doubted, or fewer than 5 rounds)."), "{found}");
    }

    /// Goal: on a busy machine a study reports that its rounds are doubted, and prints its figures.
    #[test]
    fn rows_whose_rounds_are_doubted_are_counted_with_the_checks() {
        let doubts = |rows: &[StudyRow]| doubted_rows(rows);
        assert_eq!(doubts(&pair(6, 0, false)), None);
        assert_eq!(doubts(&pair(6, 1, false)), None, "five sound rounds suffice");
        assert_eq!(doubts(&pair(6, 6, true)), None, "the study expects this doubt");
        assert_eq!(doubts(&pair(1, 1, false)), None, "one round makes no claim in any case");
        let found = doubts(&pair(6, 3, false)).expect("three sound rounds are too few");
        let expected = "1 of 2 rows decide nothing, because fewer than 5 of their rounds are free of doubts (foreign_io in 3 samples). ";
        assert!(found.starts_with(expected), "{found}");
        let all = answers(&study(), "faithful", &pair(6, 3, false));
        assert_eq!(all, [found], "it comes first");
    }
}
