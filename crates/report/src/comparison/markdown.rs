//! A comparison as Markdown, for the summary of a pull request.

use super::answer::shown;
use super::words;
use crate::badge::Badge;
use crate::markdown::escaped;
use trueio_model::{Comparison, GateVerdict};

/// Formats the comparison as Markdown (GitHub's tables), ending with a line feed.
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let comparison = &*shown(comparison);
    let mut out = String::from("## trueio compare\n\n");
    for gate in &comparison.gates {
        let mark = match gate.verdict {
            GateVerdict::Shown => "❌",
            GateVerdict::Absent => "✅",
            GateVerdict::CannotTell => "❔",
        };
        let part = if gate.part.is_empty() { String::new() } else { format!("{}: ", gate.part) };
        let text = format!("{part}{}: {}", gate.condition, gate.sentence);
        out.push_str(&format!("- {mark} {}: {}\n", words::gate_word(gate.verdict), escaped(&text)));
    }
    if !comparison.gates.is_empty() {
        out.push('\n');
    }
    for part in &comparison.parts {
        if !part.name.is_empty() {
            out.push_str(&format!("### {}\n\n", escaped(&part.name)));
        }
        for (index, side) in part.sides.iter().enumerate() {
            let mark = Badge::of(side.mark());
            let verdict = format!("{} {} {}", mark.symbol, mark.word, side.level);
            let detail = words::detail_of(side);
            let name = if detail.is_empty() { side.name.clone() } else { format!("{}, {detail}", side.name) };
            out.push_str(&format!("- **{}** {}: {verdict}\n", words::letter(index), escaped(&name)));
        }
        if let Some(sentence) = words::levels(part) {
            out.push_str(&format!("\n{}\n", escaped(&sentence)));
        }
        if let Some(sentence) = words::best(part) {
            out.push_str(&format!("\n{}\n", escaped(sentence.sentence())));
        }
        for side in 1..part.sides.len() {
            out.push_str(&format!("\n{}\n\n", escaped(&words::headline(comparison, part, side))));
            let letter = words::letter(side);
            let title = words::ratio_title(comparison, side);
            out.push_str(&format!("| | A | {letter} | {title} | between | |\n|---|--:|--:|--:|---|---|\n"));
            for answer in part.answers.iter().filter(|a| a.side == side) {
                let (ratio, interval) = match &answer.ratio {
                    Some(r) => (words::change_of(r), format!("{} and {}", words::change(r.low), words::change(r.high))),
                    None => ("–".to_owned(), "–".to_owned()),
                };
                let figure = |index: usize| {
                    part.sides.get(index).map_or_else(String::new, |side| words::figure_of(side, answer.metric))
                };
                out.push_str(&format!(
                    "| {} | {} | {} | {ratio} | {interval} | {} |\n",
                    words::metric_title(answer.metric),
                    figure(0),
                    figure(side),
                    words::conclusion(part, answer, comparison.margin),
                ));
            }
        }
        out.push('\n');
        for reason in words::reasons(part).iter().chain(&words::divergences(comparison, part)) {
            out.push_str(&format!("- {}\n", escaped(reason)));
        }
        for (side, reasons) in words::doubts(part) {
            out.push_str(&format!("- {}\n", escaped(&side)));
            for reason in reasons {
                out.push_str(&format!("  - {}\n", escaped(&reason)));
            }
        }
    }
    for text in words::differences(comparison).iter().chain(&comparison.notes) {
        out.push_str(&format!("- {}\n", escaped(text)));
    }
    if let Some(sentence) = crate::words::outcome_sentence(&comparison.outcome) {
        out.push_str(&format!("\n**{}**\n", escaped(&sentence)));
    }
    out.push_str(&format!("\n{} {}\n", escaped(&words::method(comparison)), words::meaning(comparison)));
    out
}
