//! A run's line in the list: what is available without reading its record.

use trueio_model::ForeignRun;
use trueio_model::{Mark, Outcome, PhaseRecord, PowercutRecord, RunRecord, TargetFacts, run_words, units};

/// Whose document a run's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A record of trueio, with its evidence.
    Trueio,
    /// A result of fio: its word, without evidence.
    Fio,
    /// Cuts of power of trueio.
    Powercut,
}

impl Source {
    /// All of them.
    const ALL: [Source; 3] = [Source::Trueio, Source::Fio, Source::Powercut];

    /// The source of a name; one that a later program wrote is a document of trueio that cannot be read.
    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|source| source.name() == name).unwrap_or(Source::Trueio)
    }

    /// The name in files and databases.
    pub fn name(self) -> &'static str {
        match self {
            Source::Trueio => "trueio",
            Source::Fio => "fio",
            Source::Powercut => "powercut",
        }
    }
}

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The record's id, 32 hexadecimal digits.
    pub id: String,
    /// When the run began, in seconds since 1970-01-01 UTC; of fio, when it ended.
    pub started_unix_s: u64,
    /// The same for people.
    pub started_at: String,
    /// `baseline`, `run`, …; `fio` for a result of fio.
    pub kind: String,
    /// The targets' paths, joined by `, `.
    pub target: String,
    /// The disks under them, joined by `, `; empty if there were none.
    pub disk: String,
    /// The worst verdict of its phases (`supported`, `suspect`, `contradicted`); empty if nothing
    /// was measured, and for a result of fio: it was not checked. Of cuts of power `kept`, `lost` or `cannot tell`.
    pub verdict: String,
    /// What the end of the run said of its worst phase: `disturbed: dd wrote 335 MiB`. Empty if nothing was measured, for a
    /// result of fio, and for a record of an earlier version that cannot be read any more.
    pub words: String,
    /// `complete`, `interrupted` or `failed`.
    pub outcome: String,
    /// One line: phases, and the best figures that the evidence supports.
    pub summary: String,
    /// Whose document it is.
    pub source: Source,
    /// The user's words; empty if there are none.
    pub note: String,
    /// The user's tags, sorted.
    pub tags: Vec<String>,
    /// The devices it was on, by their numbers in this history. Empty if they cannot be identified.
    pub devices: Vec<i64>,
}

/// The id under which a result of fio is kept: the same text has the same.
pub fn foreign_id(text: &str) -> String {
    format!("{:032x}", twox_hash::XxHash3_128::oneshot(text.as_bytes()))
}

impl Entry {
    /// The list's line for a record.
    pub(crate) fn of_record(record: &RunRecord) -> Self {
        let paths: Vec<&str> = record.targets.iter().map(|t| t.path.as_str()).collect();
        Self {
            id: record.id.to_ascii_lowercase(),
            started_unix_s: record.started_unix_s,
            started_at: record.started_at.clone(),
            kind: record.kind.clone(),
            target: paths.join(", "),
            disk: disks_of(&record.targets),
            verdict: record.phases.iter().map(|p| p.verdict).max().map_or_else(String::new, |v| v.to_string()),
            words: run_words(&record.phases),
            outcome: match &record.outcome {
                Outcome::Complete => "complete",
                Outcome::Interrupted { .. } => "interrupted",
                Outcome::Failed { .. } => "failed",
            }
            .to_owned(),
            summary: summary_of(record),
            source: Source::Trueio,
            note: String::new(),
            tags: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// The list's line for cuts of power.
    pub(crate) fn of_powercut(record: &PowercutRecord) -> Self {
        Self {
            id: record.id.to_ascii_lowercase(),
            started_unix_s: record.started_unix_s,
            started_at: record.started_at.clone(),
            kind: "powercut".to_owned(),
            target: record.target.path.clone(),
            disk: disks_of(std::slice::from_ref(&record.target)),
            verdict: record.verdict.word().to_owned(),
            words: String::new(),
            outcome: "complete".to_owned(),
            summary: record.sentence.clone(),
            source: Source::Powercut,
            note: String::new(),
            tags: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// The list's line for a result of fio.
    pub(crate) fn of_fio(run: &ForeignRun) -> Self {
        let mut targets: Vec<&str> = Vec::new();
        for job in &run.jobs {
            for name in ["filename", "directory"] {
                if let Some(target) = job.option(run, name)
                    && !targets.contains(&target)
                {
                    targets.push(target);
                }
            }
        }
        let count = run.jobs.len();
        let mut summary = format!("{}, {count} job{}", run.version, if count == 1 { "" } else { "s" });
        let ops = || run.jobs.iter().flat_map(|job| &job.ops);
        push_best(
            &mut summary,
            ops().filter_map(|op| op.bytes_per_s).fold(0.0, f64::max),
            ops().filter_map(|op| op.ios_per_s).fold(0.0, f64::max),
        );
        Self {
            id: foreign_id(&run.json),
            started_unix_s: run.timestamp_unix_s,
            started_at: trueio_model::format_utc(run.timestamp_unix_s),
            kind: "fio".to_owned(),
            target: targets.join(", "),
            disk: String::new(),
            verdict: String::new(),
            words: String::new(),
            outcome: if run.jobs.iter().any(|job| job.error != 0) { "failed" } else { "complete" }.to_owned(),
            summary,
            source: Source::Fio,
            note: String::new(),
            tags: Vec::new(),
            devices: Vec::new(),
        }
    }
}

/// The disks under targets, joined by `, `.
fn disks_of(targets: &[TargetFacts]) -> String {
    let mut disks: Vec<String> = Vec::new();
    for disk in targets.iter().flat_map(|t| &t.disks) {
        let text = match &disk.model.value {
            Some(model) => format!("{} ({model})", disk.name),
            None => disk.name.clone(),
        };
        if !disks.contains(&text) {
            disks.push(text);
        }
    }
    disks.join(", ")
}

/// Phases, and the best bandwidth and rate of those that nothing contradicts: a list has no room
/// for the reason that must appear next to a contradicted figure.
fn summary_of(record: &RunRecord) -> String {
    let count = record.phases.len();
    let mut text = format!("{count} phase{}", if count == 1 { "" } else { "s" });
    let is_shown = |phase: &PhaseRecord| Mark::of(phase.verdict, &phase.checks).is_shown();
    let withheld = record.phases.iter().filter(|phase| !is_shown(phase)).count();
    if withheld > 0 {
        text.push_str(&format!(", {withheld} withheld"));
    }
    let jobs = record.phases.iter().filter(|phase| is_shown(phase)).flat_map(|p| &p.jobs);
    let (mut bytes_per_s, mut ios_per_s, mut io_count) = (0.0f64, 0.0f64, 0);
    for job in jobs.filter(|j| j.elapsed_ns > 0) {
        let seconds = job.elapsed_ns as f64 / 1e9;
        for op in &job.ops {
            bytes_per_s = bytes_per_s.max(op.byte_count as f64 / seconds);
            ios_per_s = ios_per_s.max(op.io_count as f64 / seconds);
            io_count = io_count.max(op.io_count);
        }
    }
    push_best(&mut text, bytes_per_s, ios_per_s);
    // As in reports.
    match io_count {
        1 => text.push_str(", 1 I/O"),
        2..1_000 => text.push_str(&format!(", {io_count} I/Os")),
        _ => {}
    }
    text
}

fn push_best(text: &mut String, bytes_per_s: f64, ios_per_s: f64) {
    if ios_per_s > 0.0 {
        let rate = units::format_count(ios_per_s.round() as u64);
        text.push_str(&format!(", up to {} and {rate} IOPS", units::format_bandwidth(bytes_per_s)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a result that an earlier version imported has the same id.
    /// Method: the value of XXH3 (128 bits, seed 0) of an empty text in xxHash's own test vectors.
    #[test]
    fn the_id_of_a_foreign_result_is_the_xxh3_of_its_text() {
        assert_eq!(foreign_id(""), "99aa06d3014798d86001c324468d497f");
    }
}
