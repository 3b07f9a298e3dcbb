//! A comparison as JUnit XML, which CI services show as tests.
//!
//! Each gate is a test case: a regression that is shown is a failure, and an undecided gate is skipped with
//! its reason. Without gates each answer is a test case, so that it is visible; none of them fails.
//!
//! Source: the schema that Jenkins' xunit plugin publishes (`junit-10.xsd`); GitLab and GitHub actions read
//! the same.

use super::words;
use crate::junit::escaped;
use trueio_model::{Comparison, Conclusion, GateVerdict};

/// Formats the comparison as JUnit XML, ending with a line feed.
pub fn comparison_junit(comparison: &Comparison) -> String {
    struct Case {
        name: String,
        /// Name, message and text of the inner element.
        inside: Option<(&'static str, String)>,
        out: String,
    }
    let mut cases = Vec::new();
    for gate in &comparison.gates {
        let part = if gate.part.is_empty() { String::new() } else { format!("{}: ", gate.part) };
        cases.push(Case {
            name: format!("{part}{}: {}", words::letter(gate.side), gate.condition),
            inside: match gate.verdict {
                GateVerdict::Shown => Some(("failure", gate.sentence.clone())),
                GateVerdict::CannotTell => Some(("skipped", format!("undecided: {}", gate.sentence))),
                GateVerdict::Absent => None,
            },
            out: gate.sentence.clone(),
        });
    }
    if comparison.gates.is_empty() {
        for part in &comparison.parts {
            for answer in &part.answers {
                let conclusion = words::conclusion(answer, comparison.margin);
                let of = if part.name.is_empty() { String::new() } else { format!("{}: ", part.name) };
                cases.push(Case {
                    name: format!("{of}{} {}", words::letter(answer.side), words::metric_title(answer.metric)),
                    inside: (answer.conclusion == Conclusion::CannotTell)
                        .then(|| ("skipped", answer.reason.clone().unwrap_or_else(|| conclusion.clone()))),
                    out: match &answer.ratio {
                        Some(r) => {
                            format!(
                                "{conclusion}: {}, between {} and {}",
                                words::change(r.estimate),
                                words::change(r.low),
                                words::change(r.high)
                            )
                        }
                        None => conclusion,
                    },
                });
            }
        }
    }
    // A comparison that did not complete is an error of its own, which no gate hides.
    let error = match &comparison.outcome {
        trueio_model::Outcome::Failed { reason } => Some(reason.clone()),
        _ => None,
    };
    let count = |element: &str| cases.iter().filter(|c| c.inside.as_ref().is_some_and(|i| i.0 == element)).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str(&format!(
        "<testsuites>\n<testsuite name=\"trueio compare\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" timestamp=\"{}\">\n",
        cases.len() + usize::from(error.is_some()),
        count("failure"),
        u8::from(error.is_some()),
        count("skipped"),
        escaped(comparison.started_at.trim_end_matches('Z')),
    ));
    for case in &cases {
        out.push_str(&format!("<testcase classname=\"trueio.compare\" name=\"{}\">\n", escaped(&case.name)));
        if let Some((element, message)) = &case.inside {
            out.push_str(&format!("<{element} message=\"{}\"/>\n", escaped(message)));
        }
        out.push_str(&format!("<system-out>{}</system-out>\n</testcase>\n", escaped(&case.out)));
    }
    if let Some(reason) = error {
        let message = escaped(&reason);
        out.push_str(&format!(
            "<testcase classname=\"trueio.compare\" name=\"the comparison\">\n<error message=\"{message}\"/>\n</testcase>\n"
        ));
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}
