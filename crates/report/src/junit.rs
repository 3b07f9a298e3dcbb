//! Documents as JUnit XML, which CI services show as tests.
//!
//! Of a record each load and each limit is a test case, and of a study each row: one whose figures are withheld is a failure. Of a trend each
//! series is one: a change of level for the worse is a failure, and too few runs are skipped. Those of a comparison are in
//! `comparison/junit.rs`.
//!
//! Source: the schema that Jenkins' xunit plugin publishes (`junit-10.xsd`); GitLab and GitHub actions read the same.

use crate::answer::answer;
use crate::limits::limit_line;
use crate::study::{row_mark, row_objections};
use crate::text::escaped_xml;
use crate::verdicts::Mark;
use trueio_model::{
    JudgedLimit, LimitOutcome, Objection, Outcome, RunRecord, StudyRecord, StudyRow, Trend, TrendSeries,
};

/// A test case.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) result: CaseResult,
    /// What is printed for it.
    pub(crate) out: String,
    /// How long it took.
    pub(crate) seconds: Option<f64>,
}

/// How a test case ended, with the reason.
pub(crate) enum CaseResult {
    Passed,
    Failed(String),
    Skipped(String),
    Error(String),
}

/// Formats test cases of a kind of document (`run`) as a document, ending with a line feed.
pub(crate) fn document(suite: &str, kind: &str, started_at: Option<&str>, cases: &[Case]) -> String {
    let count = |is_it: fn(&CaseResult) -> bool| cases.iter().filter(|case| is_it(&case.result)).count();
    let timestamp =
        started_at.map_or_else(String::new, |at| format!(" timestamp=\"{}\"", escaped_xml(at.trim_end_matches('Z'))));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" \
         skipped=\"{}\"{timestamp}>\n",
        escaped_xml(suite),
        cases.len(),
        count(|result| matches!(result, CaseResult::Failed(_))),
        count(|result| matches!(result, CaseResult::Error(_))),
        count(|result| matches!(result, CaseResult::Skipped(_))),
    );
    for case in cases {
        let time = case.seconds.map_or_else(String::new, |seconds| format!(" time=\"{seconds:.3}\""));
        let name = escaped_xml(&case.name);
        out.push_str(&format!("<testcase classname=\"trueio.{}\" name=\"{name}\"{time}>\n", escaped_xml(kind)));
        let inner = match &case.result {
            CaseResult::Passed => None,
            CaseResult::Failed(why) => Some(("failure", why)),
            CaseResult::Skipped(why) => Some(("skipped", why)),
            CaseResult::Error(why) => Some(("error", why)),
        };
        if let Some((element, why)) = inner {
            out.push_str(&format!("<{element} message=\"{}\"/>\n", escaped_xml(why)));
        }
        if !case.out.is_empty() {
            out.push_str(&format!("<system-out>{}</system-out>\n", escaped_xml(&case.out)));
        }
        out.push_str("</testcase>\n");
    }
    out + "</testsuite>\n</testsuites>\n"
}

/// Returns the test case of a document that did not come to its end.
pub(crate) fn unfinished(name: &str, outcome: &Outcome) -> Option<Case> {
    let reason = match outcome {
        Outcome::Failed { reason } => reason.clone(),
        Outcome::Interrupted { signal } => format!("interrupted by {signal}"),
        Outcome::Complete => return None,
    };
    Some(Case { name: name.to_owned(), result: CaseResult::Error(reason), out: String::new(), seconds: None })
}

/// Formats the record.
pub(crate) fn record_junit(record: &RunRecord) -> String {
    let answer = answer(record, &[]);
    let cases = answer.phases.iter().zip(&record.phases).map(|(judgement, phase)| {
        let words = with_reasons(&judgement.words, &judgement.objections);
        let seconds = Some(phase.elapsed_ns as f64 / 1e9);
        Case { name: judgement.phase.clone(), result: judged(judgement.verdict, &words), out: words, seconds }
    });
    let limits = answer.limits.iter().map(|limit| Case {
        name: limit_name(limit, &answer.limits),
        result: match limit.outcome {
            LimitOutcome::Met => CaseResult::Passed,
            LimitOutcome::Missed => CaseResult::Failed(limit.sentence.clone()),
            LimitOutcome::Undecided => {
                CaseResult::Skipped(format!("undecided: {}; {}", limit.sentence, limit.next_step))
            }
        },
        out: limit_line(limit),
        seconds: None,
    });
    let cases: Vec<Case> = cases.chain(limits).chain(unfinished("the run", &record.outcome)).collect();
    let suite = format!("{} {}", record.tool.name, record.kind);
    document(&suite, &record.kind, Some(&record.started_at), &cases)
}

/// Returns the name of a limit's case: its load once, and the operation if the limit concerns several of the load.
fn limit_name(limit: &JudgedLimit, all: &[JudgedLimit]) -> String {
    let names_load = limit.condition.split_once(':').is_some_and(|(name, _)| name.trim() == limit.load);
    let mut name = match limit.load.as_str() {
        "" => limit.condition.clone(),
        _ if names_load => limit.condition.clone(),
        load => format!("{load}: {}", limit.condition),
    };
    let is_same = |other: &&JudgedLimit| (&other.load, &other.condition) == (&limit.load, &limit.condition);
    if let Some(operation) = limit.operation.filter(|_| all.iter().filter(is_same).count() > 1) {
        name.push_str(&format!(" ({operation})"));
    }
    name
}

/// Formats the study.
pub(crate) fn study_junit(study: &StudyRecord) -> String {
    let of_row = |mode: &str, row: &StudyRow| {
        let mark = row_mark(row);
        let words = with_reasons(mark.word(), &row_objections(row));
        let (result, out) = match &row.failure {
            Some(why) => (CaseResult::Skipped(why.clone()), String::new()),
            None => (judged(mark, &words), words),
        };
        Case { name: format!("{mode}: {}", row.name), result, out, seconds: None }
    };
    let rows = study.modes.iter().flat_map(|mode| mode.rows.iter().map(|row| of_row(&mode.name, row)));
    let cases: Vec<Case> = rows.chain(unfinished("the study", &study.outcome)).collect();
    let suite = format!("{} study {}", study.tool.name, study.study);
    document(&suite, "study", Some(&study.started_at), &cases)
}

/// Formats the trend.
pub(crate) fn trend_junit(trend: &Trend) -> String {
    let of_series = |series: &TrendSeries| {
        let out = crate::trend::sentences(series).join(" ");
        let result = match (crate::trend::is_worse(series), series.is_enough) {
            (true, _) => CaseResult::Failed(out.clone()),
            (false, false) => CaseResult::Skipped("too few runs to show a change of level or its absence".to_owned()),
            (false, true) => CaseResult::Passed,
        };
        Case {
            name: format!("{} {} {} ({})", series.job, series.op, series.metric, series.load),
            result,
            out,
            seconds: None,
        }
    };
    let cases: Vec<Case> = trend.series.iter().map(of_series).collect();
    document(&format!("trueio history trend: {}", trend.device.label), "trend", None, &cases)
}

/// Only a figure that is withheld is a failure: a doubtful one may be right.
fn judged(mark: Mark, words: &str) -> CaseResult {
    if mark.is_shown() { CaseResult::Passed } else { CaseResult::Failed(words.to_owned()) }
}

fn with_reasons(word: &str, objections: &[Objection]) -> String {
    let sentences: Vec<String> = objections.iter().map(Objection::whole_sentence).collect();
    format!("{word}. {}", sentences.join(" "))
}
