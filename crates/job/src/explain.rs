//! Formats a plan or a refusal as text: every value with its origin.

use crate::language::{Language, Native, in_language};
use crate::option::Section;
use crate::refusal::Refusal;
use crate::table::TABLE;
use std::fmt::Write as _;
use trueio_model::units::format_bytes;
use trueio_model::{Origin, Plan, PlanValue, Prepare};

/// Formats the plan as `trueio explain` prints it: for each job its files, and the value of each option that is set or
/// was derived, with its origin; with `has_defaults` of every option.
pub fn explain(plan: &Plan, has_defaults: bool) -> String {
    let mut out = String::new();
    let last_phase = plan.jobs.last().map_or(0, |job| job.phase);
    for (index, job) in plan.jobs.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = writeln!(out, "job {}   phase {} of {}", job.name, job.phase + 1, last_phase + 1);
        for file in &job.files {
            let what = match file.prepare {
                Prepare::UseExisting if job.engine.drives_usb_disks() => "is claimed, and driven in user space",
                Prepare::UseExisting => "exists, is used unchanged",
                Prepare::CreateFilled => "is created and filled with random content",
                Prepare::CreateAllocated => "is created, space allocated, nothing written",
                Prepare::CreateSparse => "is created as one hole, no space allocated",
                Prepare::CreateReserved => "is created empty with space allocated, the job extends it",
                Prepare::CreateEmpty => "is created empty, the job extends it",
                Prepare::Nothing => "is not opened",
            };
            let what = match file.extends_from {
                Some(there) => format!("exists with {} and is extended; the added part {what}", format_bytes(there)),
                None => what.to_owned(),
            };
            let end = match (file.prepare, file.remove_after) {
                (Prepare::UseExisting | Prepare::Nothing, _) => "",
                (_, true) => ", removed at the end",
                (_, false) => ", kept",
            };
            let region = format!("{} from {}", format_bytes(file.size_bytes), format_bytes(file.offset_bytes));
            let _ = writeln!(out, "  file {}   {region}; {what}{end}", file.path);
        }
        let is_shown = |value: &&PlanValue| has_defaults || value.origin != Origin::Default;
        let shown_values: Vec<&PlanValue> = job.values.iter().filter(is_shown).collect();
        let name_width = shown_values.iter().map(|value| value.name.len()).max().unwrap_or(0);
        let value_width =
            shown_values.iter().map(|value| shown(&value.value).chars().count()).max().unwrap_or(0).min(24);
        for section in Section::ALL {
            let rows = TABLE.iter().filter(|row| row.section == section);
            let mut values = rows
                .filter_map(|row| Some((row, shown_values.iter().find(|value| value.name == row.name)?)))
                .peekable();
            if values.peek().is_some() {
                let _ = writeln!(out, "  {}", section.title());
            }
            for (row, value) in values {
                let origin = match &value.origin {
                    Origin::Default if value.value.is_empty() => format!("default: {}", row.default_text()),
                    origin => origin.to_string(),
                };
                let line = format!("    {:name_width$}   {:value_width$}   {origin}", value.name, shown(&value.value));
                let _ = writeln!(out, "{}", line.trim_end());
            }
        }
        let hidden = job.values.len() - shown_values.len();
        if hidden > 0 {
            let _ = writeln!(out, "  {hidden} more options have their defaults; --all prints them");
        }
    }
    if !plan.notes.is_empty() {
        out.push('\n');
        for note in &plan.notes {
            let _ = writeln!(out, "note: {note}");
        }
    }
    out
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "–" } else { value }
}

/// Formats a refusal as the program prints it, with options as in a job file.
pub fn explain_refusal(refusal: &Refusal) -> String {
    explain_refusal_in(refusal, &Native(&[]))
}

/// Formats a refusal as the program prints it: what was not started, the chain of reasons, the remedy, with options as
/// `language` writes them.
pub fn explain_refusal_in(refusal: &Refusal, language: &dyn Language) -> String {
    // A line feed in a name would begin a line that this program did not write.
    let one_line = |part: &dyn std::fmt::Display| part.to_string().replace(['\n', '\r'], "\u{fffd}");
    let values = refusal.rule.values();
    let written = |text: &dyn std::fmt::Display| {
        in_language(&one_line(text), &values, |row, value| language.write(refusal.job.as_deref(), row, value))
    };
    let mut out = format!("error: {}\n  because: {}\n", one_line(refusal), written(&refusal.rule));
    if let Some(origin) = &refusal.origin {
        let _ = writeln!(out, "  set by: {}", one_line(origin));
    }
    let _ = write!(out, "  rule: {}\n\nhint: {}\n", refusal.rule.name(), written(&refusal.hint()));
    out
}
