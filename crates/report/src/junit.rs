//! A record as JUnit XML, which CI services show as tests: each load is a test case, and one that the evidence contradicts is
//! a failure.
//!
//! Source: the schema that Jenkins' xunit plugin publishes (`junit-10.xsd`).

use crate::verdicts::row_words;
use crate::words::check_sentence;
use trueio_model::{Outcome, RunRecord, Verdict};

/// Formats the record as JUnit XML, ending with a line feed.
pub(crate) fn record_junit(record: &RunRecord) -> String {
    let error = match &record.outcome {
        Outcome::Failed { reason } => Some(reason.clone()),
        Outcome::Interrupted { signal } => Some(format!("interrupted by {signal}")),
        Outcome::Complete => None,
    };
    let failures = record.phases.iter().filter(|phase| phase.verdict == Verdict::Contradicted).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str(&format!(
        "<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{}\" skipped=\"0\" timestamp=\"{}\">\n",
        escaped(&format!("{} {}", record.tool.name, record.kind)),
        record.phases.len() + usize::from(error.is_some()),
        u8::from(error.is_some()),
        escaped(record.started_at.trim_end_matches('Z')),
    ));
    for phase in &record.phases {
        let seconds = phase.elapsed_ns as f64 / 1e9;
        out.push_str(&format!(
            "<testcase classname=\"trueio.{}\" name=\"{}\" time=\"{seconds:.3}\">\n",
            escaped(&record.kind),
            escaped(&phase.name)
        ));
        let sentences: Vec<String> = phase.checks.iter().filter(|check| check.objects()).map(check_sentence).collect();
        let words = row_words(phase);
        if phase.verdict == Verdict::Contradicted {
            out.push_str(&format!(
                "<failure message=\"{}\"/>\n",
                escaped(&format!("{words}. {}", sentences.join(" ")))
            ));
        }
        out.push_str(&format!(
            "<system-out>{}</system-out>\n</testcase>\n",
            escaped(&format!("{words}. {}", sentences.join(" ")))
        ));
    }
    if let Some(reason) = error {
        let kind = escaped(&record.kind);
        let message = escaped(&reason);
        out.push_str(&format!(
            "<testcase classname=\"trueio.{kind}\" name=\"the run\">\n<error message=\"{message}\"/>\n</testcase>\n"
        ));
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}

/// Escapes text for an attribute or an element. Characters that XML 1.0 does not allow are replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in crate::text::clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
