//! A comparison as JUnit XML, which CI services show as tests.
//!
//! Each gate is a test case: a regression that is shown is a failure, and an undecided gate is skipped with
//! its reason. Without gates each answer is a test case, so that it is visible; none of them fails.
//!
//! Source: the schema that Jenkins' xunit plugin publishes (`junit-10.xsd`); GitLab and GitHub actions read
//! the same.

use super::answer::shown;
use super::words;
use crate::junit::{Case, CaseResult, document, unfinished};
use trueio_model::{Comparison, Conclusion, GateVerdict, Outcome};

/// Formats the comparison as JUnit XML, ending with a line feed.
pub fn comparison_junit(comparison: &Comparison) -> String {
    let comparison = &*shown(comparison);
    let of_gates = comparison.gates.iter().map(|gate| {
        let part = if gate.part.is_empty() { String::new() } else { format!("{}: ", gate.part) };
        Case {
            name: format!("{part}{}: {}", words::letter(gate.side), gate.condition),
            result: match gate.verdict {
                GateVerdict::Shown => CaseResult::Failed(gate.sentence.clone()),
                GateVerdict::CannotTell => CaseResult::Skipped(format!("undecided: {}", gate.sentence)),
                GateVerdict::Absent => CaseResult::Passed,
            },
            out: gate.sentence.clone(),
            seconds: None,
        }
    });
    let mut cases: Vec<Case> = of_gates.collect();
    let answers = comparison.parts.iter().flat_map(|part| part.answers.iter().map(move |answer| (part, answer)));
    for (part, answer) in answers.filter(|_| comparison.gates.is_empty()) {
        let conclusion = words::conclusion(part, answer, comparison.margin);
        let of = if part.name.is_empty() { String::new() } else { format!("{}: ", part.name) };
        cases.push(Case {
            name: format!("{of}{} {}", words::letter(answer.side), words::metric_title(answer.metric)),
            result: match words::concluded(part, answer) {
                Conclusion::CannotTell => {
                    let why = words::no_winner(part, answer.side).or_else(|| answer.reason.clone());
                    CaseResult::Skipped(why.unwrap_or_else(|| conclusion.clone()))
                }
                _ => CaseResult::Passed,
            },
            out: match &answer.ratio {
                Some(ratio) => format!(
                    "{conclusion}: {}, between {} and {}",
                    words::change_of(ratio),
                    words::change(ratio.low),
                    words::change(ratio.high)
                ),
                None => conclusion,
            },
            seconds: None,
        });
    }
    // A comparison that failed is an error of its own, which no gate hides; one that was interrupted has answers.
    if let Outcome::Failed { .. } = comparison.outcome {
        cases.extend(unfinished("the comparison", &comparison.outcome));
    }
    document("trueio compare", "compare", Some(&comparison.started_at), &cases)
}
