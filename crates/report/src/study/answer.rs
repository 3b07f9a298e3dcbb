//! The answer of a study.
//!
//! Its sentences are those of the study, which take only samples that count. A row whose figures the evidence contradicts has none.

use super::words;
use crate::powercut::power_loss_sentence;
use crate::verdicts::Mark;
use trueio_model::{
    AnsweredFigure, DocumentAnswer, DurabilityKind, Ground, Objection, Statement, StatementKind, Statistic,
    StudyMetric, StudyRecord, StudyRow, Verdict,
};

/// Answers a study.
pub fn study_answer(study: &StudyRecord) -> DocumentAnswer {
    let modes = || study.modes.iter();
    let of_mode =
        |mode: &str, text: &str| if study.modes.len() > 1 { format!("{mode}: {text}") } else { text.to_owned() };
    DocumentAnswer {
        headline: modes().flat_map(|mode| mode.answers.iter().map(move |text| of_mode(&mode.name, text))).collect(),
        figures: modes().flat_map(|mode| mode.rows.iter().flat_map(move |row| figures(&mode.name, row))).collect(),
        statements: power_loss(study).into_iter().collect(),
        doubts: modes()
            .flat_map(|mode| words::doubts(mode).into_iter().map(move |text| of_mode(&mode.name, &text)))
            .collect(),
        next_steps: Vec::new(),
    }
}

/// Returns the word of a row.
pub(crate) fn row_mark(row: &StudyRow) -> Mark {
    Mark::of(row.verdict.unwrap_or(Verdict::Unverified), &row.checks)
}

/// Returns what objects to a row.
pub(crate) fn row_objections(row: &StudyRow) -> Vec<Objection> {
    let is_shown = row_mark(row).is_shown();
    let objecting = row.checks.iter().filter(|check| check.objects());
    objecting.map(|check| Objection::of(&if is_shown { check.clone() } else { check.of_withheld() })).collect()
}

/// Returns what earlier cuts of power show of the rows that asked for stable storage: it rests on those that are confirmed.
pub(super) fn power_loss(study: &StudyRecord) -> Option<Statement> {
    let found = study.power_loss.as_deref()?;
    let asks = |row: &&StudyRow| {
        row.durability.as_ref().is_some_and(|d| matches!(d.is, DurabilityKind::Shown | DurabilityKind::Declared))
    };
    let rows = study.modes.iter().flat_map(|mode| mode.rows.iter().filter(asks).map(move |row| (mode, row)));
    let grounds =
        rows.map(|(mode, row)| Ground { load: format!("{}: {}", mode.name, row.name), verdict: row_mark(row) });
    let confirmed = grounds.filter(|ground| ground.verdict == Mark::Confirmed).collect();
    Statement::on(StatementKind::PowerLoss, power_loss_sentence(found), confirmed)
}

/// Returns the unit in which documents of studies hold a metric; empty for a count.
fn unit_of(metric: StudyMetric) -> &'static str {
    match metric {
        StudyMetric::Bandwidth => "B/s",
        StudyMetric::Iops => "1/s",
        StudyMetric::DiskBusy => "ratio",
        StudyMetric::DiskRequests | StudyMetric::DiskMerges | StudyMetric::Flushes | StudyMetric::Errors => "",
        _ => "s",
    }
}

fn figures(mode: &str, row: &StudyRow) -> Vec<AnsweredFigure> {
    let verdict = row_mark(row);
    let is_shown = verdict.is_shown();
    let cause = row.checks.iter().find(|check| check.objects()).map_or_else(String::new, |check| check.brief.clone());
    let of = |figure: &trueio_model::StudyFigure| {
        let shown = |value: f64| Some(value).filter(|value| is_shown && value.is_finite());
        let mut name: Vec<String> = figure.op.map(|op| op.to_string()).into_iter().collect();
        name.push(figure.metric.name().to_owned());
        if figure.statistic != Statistic::Median {
            name.push(figure.statistic.name().to_owned());
        }
        AnsweredFigure {
            load: format!("{mode}: {}", row.name),
            operation: figure.op,
            quantity: None,
            name: name.join(" "),
            value: shown(figure.value),
            unit: unit_of(figure.metric).to_owned(),
            low: figure.interval.and_then(|(low, _)| shown(low)),
            high: figure.interval.and_then(|(_, high)| shown(high)),
            sample_count: u64::from(figure.samples),
            verdict,
            cause: cause.clone(),
            is_shown,
        }
    };
    row.figures.iter().map(of).collect()
}
