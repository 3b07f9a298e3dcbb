//! The specification of a job: options by name, each with its origin, before planning.

use crate::Origin;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One option's value as given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpecValue {
    /// The value in the option table's canonical text (`"4k"`, `"randread"`, `"true"`). The table's
    /// row has already accepted it.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

/// One job as specified: every option is optional, each has its origin.
///
/// Keys are the names of the option table in `trueio-job`. That table is the only list of options, so this document has
/// no fields of its own that could differ from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSpec {
    /// The job's name: the key of its `[job.NAME]` table.
    pub name: String,
    /// Option name to value.
    pub options: BTreeMap<String, SpecValue>,
    /// The job in fio's terms, if it was written in fio's language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<Box<FioJob>>,
}

/// A job in fio's terms: fio counts each clone of `numjobs` as a job, and reports jobs in groups.
///
/// [`JobSpec::name`] is unique in a run; `name` here is fio's and may occur several times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FioWord {
    /// fio's first name of the option (`rw`, not `readwrite`).
    pub name: String,
    /// The name as typed, if it is another one (`readwrite`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spelled: Option<String>,
    /// The text as typed.
    pub text: String,
    /// Whether it was given in `[global]`, or before the first `--name`.
    pub is_global: bool,
    /// Where it was written.
    pub origin: Origin,
}

/// Reads the value of a switch of fio's language: nothing is on, and of whole numbers, also negative ones, all but 0 are; `None`: it
/// is neither. Source: `check_int` in parse.c of fio 3.42.
pub fn switch_of(text: &str) -> Option<bool> {
    if text.is_empty() { Some(true) } else { whole_number(text).map(|number| number != 0) }
}

/// Reads the value of an option of fio's language that is 0 or 1. As in fio, which compares with the largest value only, a negative
/// number is on. `None`: it is another value.
pub fn bounded_switch_of(text: &str) -> Option<bool> {
    whole_number(text).filter(|number| *number <= 1).map(|number| number != 0)
}

/// Reads a whole number of 32 bits with a sign or without one, decimal or hexadecimal.
fn whole_number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((digits, 10), |digits| (digits, 16));
    let number = u32::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))?;
    Some(if text.starts_with('-') { -i64::from(number) } else { number.into() })
}

impl FioJob {
    /// Returns the effective setting of an option, by fio's first name of it: the job's last one, otherwise the last global
    /// one.
    pub fn word(&self, name: &str) -> Option<&FioWord> {
        self.given.iter().rev().find(|word| word.name == name)
    }

    /// Returns true if a switch is on: given without a value, or with a number other than 0.
    pub fn is_on(&self, name: &str) -> bool {
        self.word(name).is_some_and(|word| switch_of(&word.text) == Some(true))
    }
}

impl JobSpec {
    /// An empty specification: every option at its default.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), options: BTreeMap::new(), fio: None }
    }

    /// Sets an option, replacing an earlier value.
    pub fn set(&mut self, option: &str, text: impl Into<String>, origin: Origin) {
        self.options.insert(option.to_owned(), SpecValue { text: text.into(), origin });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(name: &str, text: &str, is_global: bool) -> FioWord {
        FioWord { name: name.into(), spelled: None, text: text.into(), is_global, origin: Origin::Default }
    }

    #[test]
    fn of_an_option_said_twice_the_jobs_own_word_counts_and_a_switch_needs_no_value() {
        let given = vec![word("bs", "4K", true), word("group_reporting", "", true), word("bs", "8k", false)];
        let job = FioJob { given, ..FioJob::default() };
        assert_eq!(job.word("bs").map(|word| word.text.as_str()), Some("8k"));
        assert!(job.is_on("group_reporting") && !job.is_on("thread"));
        let switches = ["", "1", "16", "0x10", "0", "0x0", "yes", "-1", "1s"].map(switch_of);
        let on = Some(true);
        assert_eq!(switches, [on, on, on, on, Some(false), Some(false), None, on, None]);
        let bounded = ["", "1", "2", "0x1", "-0", "-5", "--1", "4294967296"].map(bounded_switch_of);
        assert_eq!(bounded, [None, on, None, on, Some(false), on, None, None]);
    }

    #[test]
    fn a_specification_of_an_earlier_version_has_no_word_of_fio() {
        let spec: JobSpec = serde_json::from_str(r#"{"name":"a","options":{}}"#).expect("a document");
        assert_eq!(spec, JobSpec::new("a"));
        assert_eq!(serde_json::to_string(&spec).expect("JSON"), r#"{"name":"a","options":{}}"#);
    }
}
