//! A study as Markdown: what follows, and every figure next to the published one.

use super::answer::power_loss;
use super::words::{self, metric_title};
use crate::badge::Badge;
use crate::markdown::escaped;
use trueio_model::StudyRecord;

/// Formats the study as Markdown (GitHub's tables), ending with a line feed.
pub fn study_markdown(study: &StudyRecord) -> String {
    let mut out = format!(
        "## {} study {}{}: {}\n\n",
        escaped(&study.tool.name),
        escaped(&study.study),
        words::quick(study),
        escaped(&study.title)
    );
    out.push_str(&format!("{}\n", escaped(&study.question)));
    if let Some(sentence) = crate::words::outcome_sentence(&study.outcome) {
        out.push_str(&format!("\n**{}**\n", escaped(&sentence)));
    }
    if let Some(statement) = power_loss(study) {
        out.push_str(&format!("\n{}\n", escaped(statement.sentence())));
    }
    for mode in &study.modes {
        let title = words::titled(study, &format!("{}: {}", mode.name, mode.title));
        out.push_str(&format!("\n### {}\n\n", escaped(&title)));
        mode.answers.iter().for_each(|answer| out.push_str(&format!("- {}\n", escaped(answer))));
        let lines = words::lines(study, mode);
        if lines.is_empty() {
            continue;
        }
        out.push_str("\n| row | figure | published | here | 95 % interval | evidence |\n|---|---|--:|--:|---|---|\n");
        for line in &lines {
            let mark = line.mark().map(Badge::of);
            out.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                escaped(&line.row.name),
                escaped(&if line.figure_name().is_empty() {
                    metric_title(line.metric).to_owned()
                } else {
                    line.figure_name()
                }),
                escaped(&line.published_text()),
                escaped(&line.here_text()),
                escaped(&line.interval_text()),
                mark.map_or_else(String::new, |mark| format!("{} {}", mark.symbol, mark.word)),
            ));
        }
        out.push('\n');
        words::doubts(mode).iter().for_each(|doubt| out.push_str(&format!("- {}\n", escaped(doubt))));
    }
    out.push_str(&format!(
        "\nPublished: {}, {}, {}\n",
        escaped(&study.source.title),
        escaped(&study.source.by),
        escaped(&study.source.date)
    ));
    out
}
