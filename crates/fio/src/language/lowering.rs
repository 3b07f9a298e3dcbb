//! What the lowering of fio's jobs keeps: from job to job [`Lowering`], of one job [`JobWords`].

use super::options::find;
use super::problem::{FioProblem, Problems};
use super::refusals::Refused;
use super::value::{self, BadValue, KbBase, read_number, translate};
use super::{PRESET, Section, Settings, Surroundings, Word};
use std::collections::{BTreeMap, BTreeSet};
use trueio_job::option::OptionRow;
use trueio_job::options::engine::rows::IOENGINE;
use trueio_job::options::pattern::rows::{Direction, RW};
use trueio_job::options::target::rows::NRFILES;
use trueio_model::{EngineKind, JobSpec, Origin, switch_of};

/// The state that is kept from job to job.
pub(super) struct Lowering<'a> {
    pub(super) settings: &'a Settings,
    pub(super) around: &'a dyn Surroundings,
    pub(super) jobs: Vec<JobSpec>,
    /// Number of requests for each name.
    pub(super) names: BTreeMap<String, u64>,
    pub(super) group: u32,
    /// fio's names of the jobs that run at the same time as the next job.
    pub(super) together: Vec<String>,
    /// The index of the first of them.
    pub(super) phase_from: usize,
    /// fio's names of all jobs before those.
    pub(super) before: BTreeSet<String>,
    /// Number of files of all jobs so far.
    pub(super) files: u64,
    /// Number of words that the jobs keep so far.
    pub(super) given: usize,
    /// What fio warns about.
    pub(super) notes: &'a mut Vec<String>,
    /// Remarks: differences from fio's results that a user of fio expects.
    pub(super) remarks: Vec<String>,
}

impl<'a> Lowering<'a> {
    /// Begins without a job.
    pub(super) fn new(settings: &'a Settings, around: &'a dyn Surroundings, notes: &'a mut Vec<String>) -> Self {
        Self {
            settings,
            around,
            jobs: Vec::new(),
            names: BTreeMap::new(),
            group: 0,
            together: Vec::new(),
            phase_from: 0,
            before: BTreeSet::new(),
            files: 0,
            given: 0,
            notes,
            remarks: Vec::new(),
        }
    }

    /// Adds a note about a job.
    pub(super) fn note(&mut self, job: &str, sentence: String) {
        let note = format!("job `{job}`: {sentence}");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a remark: what a user of fio expects.
    pub(super) fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}

/// The words of a section, and the job that they make.
pub(super) struct JobWords<'a> {
    pub(super) section: &'a Section,
    /// What `k` means in each word.
    pub(super) bases: BTreeMap<&'static str, KbBase>,
    /// The words that a rule applies: the last of each option, and whether it is the job's own.
    pub(super) words: BTreeMap<&'static str, (&'a Word, bool)>,
    pub(super) spec: JobSpec,
}

impl JobWords<'_> {
    /// Returns the word of an option that a rule applies.
    pub(super) fn word(&self, name: &str) -> Option<&Word> {
        self.words.get(name).map(|(word, _)| *word)
    }

    /// Returns every word of an option, those of `[global]` first. For options whose words add up.
    pub(super) fn all_words(&self, name: &str) -> Vec<&Word> {
        let words = self.section.globals.iter().chain(&self.section.words);
        words.filter(|word| word.option.name() == name).collect()
    }

    /// Returns what `k` means in the word of an option.
    pub(super) fn base_of(&self, name: &str) -> KbBase {
        self.bases.get(name).copied().unwrap_or(KbBase::Binary)
    }

    /// Returns true if a switch is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.word(name).is_some_and(|word| switch_of(word.text()) == Some(true))
    }

    /// Returns the engine; `None` until it is set.
    pub(super) fn engine(&self) -> Option<EngineKind> {
        IOENGINE.value_in(&self.spec)
    }

    /// Adds a problem at an option, or at the section if the option is not set.
    pub(super) fn complain_about(
        &self,
        kind: Refused,
        name: &str,
        message: String,
        hint: Option<String>,
        problems: &mut Problems,
    ) {
        let position = match self.word(name) {
            Some(word) => Some((*word.position).clone()),
            None => self.section.position.as_deref().cloned(),
        };
        problems.push(FioProblem { kind, message, position, hint });
    }

    /// Adds a problem at the value of a word.
    pub(super) fn complain(&self, word: &Word, bad: &BadValue, problems: &mut Problems) {
        let message = format!("`{}`: {}", word.spelled(), bad.message);
        problems.add(Refused::Value, word.value_position(&bad.at), message, None);
    }

    /// Reads the value of an option through its row; `None`: it is not set, or a problem was added.
    pub(super) fn by_row(&self, name: &str, problems: &mut Problems) -> Option<String> {
        let word = self.word(name)?;
        let row = find(name)?.row()?;
        match translate(row, word.text(), self.base_of(name)) {
            Ok(text) => Some(text),
            Err(bad) => {
                let hint = value::hint(row, word.text(), &bad.message);
                let message = format!("`{}`: {}", word.spelled(), bad.message);
                problems.add(Refused::Value, word.value_position(&bad.at), message, hint);
                None
            }
        }
    }

    /// Reads a number with its origin; `None`: it is not set, or a problem was added.
    pub(super) fn number(&self, name: &str, problems: &mut Problems) -> Option<(u64, Origin)> {
        let word = self.word(name)?;
        match read_number(word.text(), self.base_of(name)) {
            Ok(number) => Some((number, word.origin())),
            Err(bad) => {
                self.complain(word, &bad, problems);
                None
            }
        }
    }

    /// Reads a count of at least one, 1 if it is not set; `None`: a problem was added.
    pub(super) fn count(&self, name: &str, problems: &mut Problems) -> Option<u64> {
        if self.word(name).is_none() {
            return Some(1);
        }
        // fio reads no files as one.
        if name == NRFILES.name && self.word(name).is_some_and(|word| word.text() == "0") {
            return Some(1);
        }
        self.by_row(name, problems)?.parse().ok()
    }
}

/// Returns the origin of fio's defaults.
pub(super) fn preset() -> Origin {
    Origin::Preset { name: PRESET.to_owned() }
}

/// Sets an option to fio's default.
pub(super) fn set_default(spec: &mut JobSpec, row: &OptionRow) {
    if let Some(text) = row.fio_default() {
        spec.set(row.name, text, preset());
    }
}

/// Returns true if the job writes or trims.
pub(super) fn writes(spec: &JobSpec) -> bool {
    RW.value_in(spec).direction != Direction::Read
}
