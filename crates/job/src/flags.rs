//! Flags on the command line: pairs of name and value, parsed with the option table.
//!
//! The program's argument parser (not a dependency here) passes its result; these functions check it, so that
//! the same rules apply to a flag and to a line of a job file.

use crate::table::{overlay, row, spec_value, suggestion, value_hint};
use std::collections::BTreeMap;
use trueio_model::{JobSpec, Origin, SpecValue};

/// A flag that the option table does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FlagError {
    /// The flag as typed (`--iodepth`).
    pub flag: String,
    /// The error in it.
    pub message: String,
    /// A remedy, if there is one.
    pub hint: Option<String>,
}

/// Applies flags to every job: a flag has precedence. `flags` are (name, value) pairs in the order typed, the
/// name with or without dashes; of the same flag twice the later one applies.
///
/// # Errors
/// The first flag that is not an option or whose value is invalid; `specs` are unchanged.
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

/// Builds one job from flags alone.
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
                // The later flag applies, also over the alternative that it replaces.
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
    fn a_flag_overrides_the_file_and_is_the_origin() {
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
    fn the_later_of_two_equal_flags_applies() {
        let spec = spec_from_flags("a", [("bs", "4k"), ("blocksize", "8k")]).unwrap();
        assert_eq!(spec.options["bs"].text, "8k");
    }

    #[test]
    fn a_wrong_flag_changes_nothing_and_suggests_an_option() {
        let mut spec = JobSpec::new("a");
        let error = apply_flags(std::slice::from_mut(&mut spec), [("--bs", "4k"), ("--iodpeth", "3")]).unwrap_err();
        assert_eq!(error.to_string(), "`--iodpeth` is not an option");
        assert_eq!(error.hint.as_deref(), Some("did you mean `iodepth`?"));
        assert!(spec.options.is_empty());
        let error = spec_from_flags("a", [("--iodepth", "many")]).unwrap_err();
        assert_eq!(error.to_string(), "`--iodepth`: `many` is not a whole number from 1 to 32768");
    }
}
