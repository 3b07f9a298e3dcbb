//! Flags on the command line: pairs of name and value, read through the option table.
//!
//! The program's argument parser (not a dependency here) hands over what it found; these functions
//! judge it, so that a flag and a line of a job file are held to the same rules.

use crate::table::{overlay, row, spec_value, suggestion, value_hint};
use std::collections::BTreeMap;
use trueio_model::{JobSpec, Origin, SpecValue};

/// A flag that the option table does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FlagError {
    /// The flag as typed (`--iodepth`).
    pub flag: String,
    /// What is wrong with it.
    pub message: String,
    /// What to do, if there is something to say.
    pub hint: Option<String>,
}

impl miette::Diagnostic for FlagError {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.hint.as_ref().map(|hint| Box::new(hint) as Box<dyn std::fmt::Display>)
    }
}

/// Lays flags over every job: a flag is the last word. `flags` are (name, value) pairs in the order
/// typed, the name with or without dashes; of the same flag twice the later one counts.
///
/// # Errors
/// The first flag that is not an option or whose value is not acceptable; `specs` are unchanged.
pub fn apply_flags<N: AsRef<str>, V: AsRef<str>>(
    specs: &mut [JobSpec],
    flags: impl IntoIterator<Item = (N, V)>,
) -> Result<(), FlagError> {
    let level = read_flags(flags)?;
    for spec in specs {
        overlay(spec, &level);
    }
    Ok(())
}

/// One job made of flags alone.
///
/// # Errors
/// As [`apply_flags`].
pub fn spec_from_flags<N: AsRef<str>, V: AsRef<str>>(
    name: &str,
    flags: impl IntoIterator<Item = (N, V)>,
) -> Result<JobSpec, FlagError> {
    let mut spec = JobSpec::new(name);
    apply_flags(std::slice::from_mut(&mut spec), flags)?;
    Ok(spec)
}

fn read_flags<N: AsRef<str>, V: AsRef<str>>(
    flags: impl IntoIterator<Item = (N, V)>,
) -> Result<BTreeMap<&'static str, SpecValue>, FlagError> {
    let mut level: BTreeMap<&'static str, SpecValue> = BTreeMap::new();
    for (name, value) in flags {
        let name = name.as_ref().trim_start_matches('-');
        let flag = format!("--{name}");
        let Some(row) = row(name).or_else(|| row(&name.replace('-', "_"))) else {
            let (message, hint) = (format!("`{flag}` is not an option"), suggestion(name));
            return Err(FlagError { flag, message, hint });
        };
        // A switch without a value is true, as in `--time_based`.
        let text = if row.is_switch() && value.as_ref().is_empty() { "true" } else { value.as_ref() };
        match spec_value(row, text, Origin::Flag { flag: flag.clone() }) {
            Ok(value) => {
                // The later flag wins, also over the alternative that it replaces.
                for replaced in row.replaces {
                    level.remove(replaced);
                }
                level.insert(row.name, value);
            }
            Err(message) => {
                let hint = value_hint(row, text, &message);
                return Err(FlagError { flag: flag.clone(), message: format!("`{flag}`: {message}"), hint });
            }
        }
    }
    Ok(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_overrides_the_file_and_says_that_it_did() {
        let mut spec = JobSpec::new("a");
        spec.set("bssplit", "4k/50:8k/50", Origin::File { path: "a.toml".into(), line: 3 });
        spec.set("iodepth", "4", Origin::File { path: "a.toml".into(), line: 4 });
        apply_flags(std::slice::from_mut(&mut spec), [("--bs", "64K"), ("iodepth", "32")]).unwrap();
        assert_eq!(spec.options["bs"].text, "64k");
        assert_eq!(spec.options["iodepth"].origin, Origin::Flag { flag: "--iodepth".into() });
        assert!(!spec.options.contains_key("bssplit"), "a nearer `bs` replaces `bssplit`");
    }

    #[test]
    fn fios_aliases_hyphens_and_bare_switches_are_understood() {
        let spec =
            spec_from_flags("a", [("--blocksize", "8k"), ("--time-based", ""), ("readwrite", "randrw")]).unwrap();
        assert_eq!(spec.options["bs"].text, "8k");
        assert_eq!(spec.options["time_based"].text, "true");
        assert_eq!(spec.options["rw"].text, "randrw");
    }

    #[test]
    fn of_the_same_flag_twice_the_later_counts() {
        let spec = spec_from_flags("a", [("bs", "4k"), ("blocksize", "8k")]).unwrap();
        assert_eq!(spec.options["bs"].text, "8k");
    }

    #[test]
    fn a_wrong_flag_changes_nothing_and_says_what_was_meant() {
        let mut spec = JobSpec::new("a");
        let error = apply_flags(std::slice::from_mut(&mut spec), [("--bs", "4k"), ("--iodpeth", "3")]).unwrap_err();
        assert_eq!(error.to_string(), "`--iodpeth` is not an option");
        assert_eq!(error.hint.as_deref(), Some("did you mean `iodepth`?"));
        assert!(spec.options.is_empty());
        let error = spec_from_flags("a", [("--iodepth", "many")]).unwrap_err();
        assert_eq!(error.to_string(), "`--iodepth`: `many` is not a whole number from 1 to 32768");
    }
}
