//! Cuts of power as text, and what they mean for the commits of a later run.

use crate::json::head;
use crate::layout::{Page, Paint, Style};
use crate::markdown::escaped;
use crate::text::clean;
use crate::words::{machine_lines, target_lines};
use trueio_model::{
    Document, POWERCUT_FORMAT, POWERCUT_VERSION, PowerLoss, PowercutMethod, PowercutReach, PowercutRecord,
    PowercutVerdict, units,
};

/// The reason why a text could not be read as a record of cuts of power.
#[derive(Debug, thiserror::Error)]
pub enum PowercutError {
    /// The text is something else.
    #[error("this is no record of cuts of power")]
    NotAPowercut,
    /// A newer trueio wrote it.
    #[error("this record has version {0}; this program reads up to version {POWERCUT_VERSION}")]
    Newer(u64),
    /// Format and version are right, the rest is invalid.
    #[error("this record of cuts of power is damaged")]
    Damaged(#[source] serde_json::Error),
}

/// Reads a record of cuts of power. Never panics, whatever the text.
///
/// # Errors
/// [`PowercutError`], which describes the text.
pub fn parse_powercut(text: &str) -> Result<PowercutRecord, PowercutError> {
    let (format, version) = head(text).ok_or(PowercutError::NotAPowercut)?;
    match (format.as_str(), version) {
        (POWERCUT_FORMAT, version) if version > u64::from(POWERCUT_VERSION) => Err(PowercutError::Newer(version)),
        (POWERCUT_FORMAT, 1..) => PowercutRecord::from_json(text).map_err(PowercutError::Damaged),
        _ => Err(PowercutError::NotAPowercut),
    }
}

/// Formats the record as indented JSON, without a line feed at its end.
pub fn powercut_json(record: &PowercutRecord) -> String {
    crate::json::indented(record)
}

/// Formats a verdict with a line for each way of writing, as it is printed after each cut.
pub fn powercut_verdicts(verdict: PowercutVerdict, sentence: &str, methods: &[PowercutMethod]) -> String {
    let word = match verdict {
        PowercutVerdict::Kept => "Kept",
        PowercutVerdict::Lost => "Lost",
        _ => "Cannot tell",
    };
    let mut text = format!("{word}: {}\n", clean(sentence));
    for method in methods {
        text.push_str(&format!(
            "{:<24} {:<12} {}\n",
            clean(&method.name),
            method.verdict.word(),
            clean(&method.sentence)
        ));
    }
    text
}

/// Returns what the cuts of a record do not prove; `None` if they reached the disk.
pub fn powercut_limit(record: &PowercutRecord) -> Option<String> {
    let reason = clean(&record.reach_reason);
    (record.reach == PowercutReach::Memory)
        .then(|| format!("Not the disk: {reason}, so these cuts test page cache and filesystem only."))
}

/// Formats the record as text for a terminal, ending with a line feed.
pub fn powercut_terminal(record: &PowercutRecord, style: &Style) -> String {
    let mut page = Page::new(style);
    let title = page.paint(Paint::Bold, &format!("{} powercut", clean(&record.tool.name)));
    let id: String = record.id.chars().take(8).collect();
    let when = record.started_at.replace('T', " ").replace('Z', " UTC");
    page.out.push_str(&format!("{title}  {}  record {}\n\n", clean(&when), clean(&id)));
    for (name, text) in target_lines(&record.target).into_iter().chain(machine_lines(&record.environment)) {
        page.fact(name, &text);
    }
    page.out.push('\n');
    page.out.push_str(&powercut_verdicts(record.verdict, &record.sentence, &record.methods));
    page.out.extend(powercut_limit(record).map(|limit| format!("{limit}\n")));
    page.finish()
}

/// Formats the record as Markdown, ending with a line feed.
pub fn powercut_markdown(record: &PowercutRecord) -> String {
    let count = record.cuts;
    let mut out = format!(
        "## {} powercut: {}\n\n{count} cut{} of `{}`, {}: {}\n\n",
        escaped(&record.tool.name),
        record.verdict.word(),
        if count == 1 { "" } else { "s" },
        escaped(&record.target.path),
        escaped(&record.started_at),
        escaped(&record.sentence)
    );
    out.extend(powercut_limit(record).map(|limit| format!("{}\n\n", escaped(&limit))));
    out.push_str("| method | verdict | cuts at risk | acknowledged | at risk | lost |\n|---|---|--:|--:|--:|--:|\n");
    for method in &record.methods {
        let figures = &method.figures;
        let counts = [figures.cuts_at_risk, figures.acknowledged, figures.at_risk, figures.lost_count()];
        let [cuts, acknowledged, at_risk, lost] = counts.map(units::format_count);
        let (name, word) = (escaped(&method.name), method.verdict.word());
        out.push_str(&format!("| {name} | {word} | {cuts} | {acknowledged} | {at_risk} | {lost} |\n"));
    }
    out
}

/// Returns the sentence about commits that follows from earlier cuts.
pub(crate) fn power_loss_sentence(found: &PowerLoss) -> String {
    let cuts = if found.cuts == 1 { "1 cut".to_owned() } else { format!("{} cuts", units::format_count(found.cuts)) };
    let date = |text: &str| text.split('T').next().unwrap_or_default().to_owned();
    let figures = if found.is_kept {
        format!("none of {} acknowledged writes at risk was lost", units::format_count(found.at_risk))
    } else {
        format!(
            "{} of {} acknowledged writes were lost ({})",
            units::format_count(found.lost),
            units::format_count(found.acknowledged),
            found.methods.join(", ")
        )
    };
    let on = date(&found.started_at);
    let mut text = match (found.reach, found.is_kept) {
        (PowercutReach::Disk, true) => {
            format!("Commits survive power loss: proved by {cuts} on {on} (level E4); {figures}.")
        }
        (PowercutReach::Disk, false) => {
            format!("Commits survive power loss: disproved by {cuts} on {on} (level E4); {figures}.")
        }
        (PowercutReach::Memory, is_kept) => {
            let word = if is_kept { "proves" } else { "disproves" };
            let reason = &found.reach_reason;
            format!("{cuts} on {on}: {figures}. This {word} page cache and filesystem only, not the disk: {reason}.")
        }
    };
    if let Some(other) = &found.opposed_by {
        text.push_str(&format!(" The test on {} showed the opposite.", date(other)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the sentence states number, date and level, and that a kill of a virtual machine proves nothing of the disk.
    #[test]
    fn the_sentence_states_cuts_date_level_and_what_was_not_reached() {
        let disk = PowerLoss {
            record_id: "a1".into(),
            started_at: "2026-12-03T20:28:32Z".into(),
            is_kept: true,
            reach: PowercutReach::Disk,
            reach_reason: String::new(),
            cuts: 10,
            methods: vec!["direct-fdatasync".into()],
            at_risk: 48_210,
            acknowledged: 60_000,
            lost: 0,
            opposed_by: None,
        };
        assert_eq!(
            power_loss_sentence(&disk),
            "Commits survive power loss: proved by 10 cuts on 2026-12-03 (level E4); none of 48,210 acknowledged writes at risk was \
             lost."
        );
        let lost = PowerLoss {
            is_kept: false,
            cuts: 1,
            lost: 17,
            opposed_by: Some("2026-11-01T00:00:00Z".into()),
            ..disk.clone()
        };
        assert_eq!(
            power_loss_sentence(&lost),
            "Commits survive power loss: disproved by 1 cut on 2026-12-03 (level E4); 17 of 60,000 acknowledged writes were lost \
             (direct-fdatasync). The test on 2026-11-01 showed the opposite."
        );
        let (reach, reach_reason) = (PowercutReach::Memory, "the machine is virtual".to_owned());
        let text = power_loss_sentence(&PowerLoss { reach, reach_reason, ..disk });
        assert!(text.ends_with("page cache and filesystem only, not the disk: the machine is virtual."), "{text}");
        assert!(!text.contains("E4") && !text.contains("Commits survive"), "{text}");
    }
}
