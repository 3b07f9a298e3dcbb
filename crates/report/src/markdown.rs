//! A record as Markdown: the answer, the table, the reasons. For issues, pull requests and chats.

use crate::answer::answer;
use crate::badge::Badge;
use crate::course::whole_course;
use crate::limits::limit_line;
use crate::standing::PastRun;
use crate::summary::summary;
use crate::text::{clean, few_ios, figure};
use crate::words::{outcome_sentence, title_of};
use trueio_model::{RunRecord, Statement, StatementKind, units};

/// Formats a record as Markdown (GitHub's tables), ending with a line feed. `past` are earlier runs of the same device.
pub fn markdown(record: &RunRecord, past: &[PastRun]) -> String {
    let (name, about) = title_of(record);
    let mut out = format!("## {} {}\n\n", escaped(&name), escaped(&about));
    let id: String = record.id.chars().take(8).collect();
    let (tool, course) = (&record.tool.name, whole_course(record));
    let line = format!("{tool} {}, {}, record {id}, {course}", record.kind, record.started_at);
    out.push_str(&format!("{}\n\n", escaped(&line)));
    if let Some(sentence) = outcome_sentence(&record.outcome) {
        out.push_str(&format!("**{}**\n\n", escaped(&sentence)));
    }
    let answer = answer(record, past);
    out.push_str(&format!("**{}** {}", escaped(&answer.headline), escaped(&answer.evidence)));
    let is_limit = |statement: &&Statement| statement.kind() == StatementKind::Limit;
    for statement in answer.statements.iter().filter(|statement| !is_limit(statement)) {
        out.push_str(&format!(" {}", escaped(statement.sentence())));
    }
    for limit in &answer.limits {
        out.push_str(&format!("\n\n{}", escaped(&limit_line(limit))));
    }
    out.push_str(
        "\n\n| load | rate | bandwidth | p50 | p99 | p99.9 | max | evidence |\n|---|--:|--:|--:|--:|--:|--:|---|\n",
    );
    let rows = summary(record);
    for row in &rows {
        let absent = || if row.is_withheld { "x" } else { "–" }.to_owned();
        let absent_latency = || if row.withholds_latencies() { "x" } else { "–" }.to_owned();
        let ns = |value: Option<u64>| value.map_or_else(absent_latency, units::format_duration_ns);
        let [p50, p99, p999] = row.quantiles.map(|q| ns(q.map(|q| q.value_ns)));
        let mark = Badge::of(answer.phases[row.phase_index].verdict);
        let few = row.shown_io_count().and_then(few_ios).map_or_else(String::new, |few| format!(" ({few})"));
        out.push_str(&format!(
            "| {} | {} | {} | {p50} | {p99} | {p999} | {} | {} {} |\n",
            escaped(&row.label),
            row.ios_per_s.map_or_else(absent, |rate| format!("{} /s{few}", figure(rate))),
            row.bytes_per_s.map_or_else(absent, units::format_bandwidth),
            ns(row.latency_ns_max),
            mark.symbol,
            mark.word,
        ));
    }
    out.push('\n');
    for limit in answer.statements.iter().filter(is_limit) {
        let load = limit.rests_on().first().map_or("", |ground| ground.load.as_str());
        out.push_str(&format!("- {}: {}\n", escaped(load), escaped(limit.sentence())));
    }
    for finding in &answer.findings {
        let mark = Badge::of(finding.verdict);
        out.push_str(&format!(
            "- {} {}: {} → {}\n",
            mark.symbol,
            mark.word,
            escaped(&finding.sentence),
            escaped(&finding.next_step)
        ));
        for detail in &finding.details {
            out.push_str(&format!("  - {}\n", escaped(&format!("{}: {}", detail.loads.join(", "), detail.sentence))));
        }
    }
    if let Some(hint) = &answer.accept_hint {
        out.push_str(&format!("\n{}\n", escaped(hint)));
    }
    out
}

/// Escapes text so that Markdown does not interpret it, on one line.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A name with an at-sign would notify a user.
            '@' => out.push_str("&#64;"),
            other => out.push(other),
        }
    }
    out
}
