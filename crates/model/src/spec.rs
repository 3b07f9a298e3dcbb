//! What was asked: options by name, each with its origin, before any of it is resolved.

use crate::Origin;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One option's value as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecValue {
    /// The value in the option table's canonical text (`"4k"`, `"randread"`, `"true"`). The table's
    /// row has already accepted it.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

/// One job as it was asked for: every option is optional, each carries its origin.
///
/// Keys are the names of the option table in `trueio-job`; that table is the one list of what may
/// stand here, so this document has no fields of its own to fall out of step with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The job's name: the key of its `[job.NAME]` table.
    pub name: String,
    /// Option name to value.
    pub options: BTreeMap<String, SpecValue>,
    /// What fio's language said, if the job was written in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<Box<FioJob>>,
}

/// A job as fio sees it: fio counts each clone of `numjobs` as a job, and reports jobs in groups.
///
/// [`JobSpec::name`] is ours and stands once in a run; `name` here is fio's and may stand often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FioJob {
    /// fio's name of the job; its clones share it.
    pub name: String,
    /// Which clone of `numjobs`, from 0.
    pub clone: u32,
    /// How many clones there are, from 1.
    pub clones: u32,
    /// Number of the job among all clones of all jobs, from 1: the number in the names of log files.
    pub number: u32,
    /// The reporting group, from 0; `stonewall` and `new_group` begin a new one.
    pub group: u32,
    /// Whether the job was made on the command line (fio then counts `name` among its options).
    pub is_from_command_line: bool,
    /// Options as they were given, in order: those of `[global]` first. Values are the typed text after
    /// `${…}` was replaced; a flag without a value has an empty text.
    pub given: Vec<FioWord>,
}

/// One option as it was given in fio's language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FioWord {
    /// fio's first name of the option (`rw`, not `readwrite`).
    pub name: String,
    /// The text as typed.
    pub text: String,
    /// Whether it stood in `[global]`, or before the first `--name`.
    pub is_global: bool,
    /// Where it was written.
    pub origin: Origin,
}

impl FioJob {
    /// What was said last about an option, by fio's first name of it: the job's own word over a global one.
    pub fn said(&self, name: &str) -> Option<&FioWord> {
        self.given.iter().rev().find(|word| word.name == name)
    }

    /// True if a switch is on: given without a value, or with `1`.
    pub fn is_on(&self, name: &str) -> bool {
        self.said(name).is_some_and(|word| matches!(word.text.as_str(), "" | "1"))
    }
}

impl JobSpec {
    /// An empty specification: every option at its default.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), options: BTreeMap::new(), fio: None }
    }

    /// Sets an option, replacing an earlier word on it.
    pub fn set(&mut self, option: &str, text: impl Into<String>, origin: Origin) {
        self.options.insert(option.to_owned(), SpecValue { text: text.into(), origin });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(name: &str, text: &str, is_global: bool) -> FioWord {
        FioWord { name: name.into(), text: text.into(), is_global, origin: Origin::Default }
    }

    #[test]
    fn of_an_option_said_twice_the_jobs_own_word_counts_and_a_switch_needs_no_value() {
        let given = vec![word("bs", "4K", true), word("group_reporting", "", true), word("bs", "8k", false)];
        let job = FioJob { given, ..FioJob::default() };
        assert_eq!(job.said("bs").map(|word| word.text.as_str()), Some("8k"));
        assert!(job.is_on("group_reporting") && !job.is_on("thread"));
    }

    #[test]
    fn a_specification_of_an_earlier_version_has_no_word_of_fio() {
        let spec: JobSpec = serde_json::from_str(r#"{"name":"a","options":{}}"#).expect("a document");
        assert_eq!(spec, JobSpec::new("a"));
        assert_eq!(serde_json::to_string(&spec).expect("JSON"), r#"{"name":"a","options":{}}"#);
    }
}
