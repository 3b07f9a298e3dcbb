//! Options as their user writes them: in a job file, as a flag, or in another program's language.
//!
//! A refusal is written once, with the names and the notation of job files: `` `size` ``, `` `size = "1g"` ``. Before it is
//! printed, [`in_language`] replaces each of these by the words of the language of the request.
//!
//! Limits: only text between backticks is replaced, if it is an option of the table. Values of a refusal that are not options
//! (paths, names) are passed in `values` and stay, also if a file is called `size`.

use crate::option::OptionRow;
use crate::table::row;
use trueio_model::{JobSpec, Origin};

/// The language of a request.
pub trait Language {
    /// Returns an option as the user of a job writes it, with its backticks; `None`: as in a job file.
    ///
    /// `job` is the refused job; `None` if the refusal is about all jobs. `value` is a value in the option's canonical text, or
    /// an example of one.
    fn write(&self, job: Option<&str>, row: &'static OptionRow, value: Option<&str>) -> Option<String>;
}

/// TOML job files and flags: an option that was set by a flag is written as that flag, and one that was not set is written as a
/// flag if there is no job file.
#[derive(Debug, Clone, Copy)]
pub struct Native<'a>(pub &'a [JobSpec]);

impl Language for Native<'_> {
    fn write(&self, job: Option<&str>, row: &'static OptionRow, value: Option<&str>) -> Option<String> {
        let spec = spec_of(self.0, job)?;
        let is_file = |origin: &Origin| matches!(origin, Origin::File { .. });
        let flag = match spec.options.get(row.name).map(|given| &given.origin) {
            Some(Origin::Flag { flag }) => flag.clone(),
            Some(origin) if is_file(origin) => return None,
            _ if !spec.options.values().any(|given| matches!(given.origin, Origin::Flag { .. })) => return None,
            _ if spec.options.values().any(|given| is_file(&given.origin)) => return None,
            _ => row.flag(),
        };
        Some(match value {
            Some(value) if !(row.is_switch() && value == "true") => format!("`{flag} {value}`"),
            _ => format!("`{flag}`"),
        })
    }
}

/// Returns the specification of a job; of the first one, if the refusal is about all jobs.
pub fn spec_of<'a>(specs: &'a [JobSpec], job: Option<&str>) -> Option<&'a JobSpec> {
    match job {
        Some(job) => specs.iter().find(|spec| spec.name == job),
        None => specs.first(),
    }
}

/// Returns a text with its options written by `write`, which gets an option and its value, if there is one.
///
/// `values` are not options, whatever they are. The origin of an option that became a flag is left out after it: the flag is
/// its origin.
pub fn in_language(
    text: &str,
    values: &[&str],
    write: impl Fn(&'static OptionRow, Option<&str>) -> Option<String>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, quoted)) = rest.split_once('`') {
        let Some((span, after)) = quoted.split_once('`') else { break };
        out.push_str(before);
        rest = after;
        let is_option = !values.contains(&span) && !before.ends_with("engine ");
        match option_of(span).filter(|_| is_option).and_then(|(row, value)| write(row, value)) {
            Some(written) => {
                out.push_str(&written);
                rest = without_flag(rest);
            }
            None => out.extend(["`", span, "`"]),
        }
    }
    out.push_str(rest);
    out
}

/// Returns the option that a text in the notation of job files names, and its value.
fn option_of(span: &str) -> Option<(&'static OptionRow, Option<&str>)> {
    let (name, value) = match span.split_once(" = ") {
        Some((name, value)) => (name, Some(value)),
        None => (span, None),
    };
    let row = row(name).filter(|row| row.name == name)?;
    let unquoted = |value: &'_ str| value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
    Some((row, value.map(|value| if unquoted(value) { &value[1..value.len() - 1] } else { value })))
}

/// Removes the origin at the beginning of a text, ` (--size)`.
fn without_flag(text: &str) -> &str {
    let origin = text.strip_prefix(" (-").and_then(|rest| rest.split_once(')'));
    origin.filter(|(flag, _)| !flag.contains(' ')).map_or(text, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dashed(row: &'static OptionRow, value: Option<&str>) -> Option<String> {
        let value = value.map(|value| format!("={value}")).unwrap_or_default();
        Some(format!("`--{}{value}`", row.name))
    }

    #[test]
    fn options_are_replaced_and_other_words_stay() {
        for (text, expected) in [
            ("set `size`, such as `size = \"1g\"`", "set `--size`, such as `--size=1g`"),
            ("`iodepth = 4` (--iodepth), but", "`--iodepth=4`, but"),
            ("`iodepth = 4` (a.toml:3), but", "`--iodepth=4` (a.toml:3), but"),
            ("the engine `sync` cannot, `sync` is set", "the engine `sync` cannot, `--sync` is set"),
            ("`bs` exists: set `bs`", "`bs` exists: set `bs`"),
            ("`trueio doctor` and `--replace` and `nothing = 3`", "`trueio doctor` and `--replace` and `nothing = 3`"),
            ("an open ` stays", "an open ` stays"),
        ] {
            assert_eq!(in_language(text, &["bs"], dashed), expected);
        }
    }

    #[test]
    fn what_a_flag_set_is_written_as_that_flag_and_a_job_file_keeps_its_notation() {
        let mut flags = JobSpec::new("a");
        flags.set("bs", "4k", Origin::Flag { flag: "--blocksize".into() });
        let mut file = flags.clone();
        file.name = "b".into();
        file.set("size", "1m", Origin::File { path: "b.toml".into(), line: 2 });
        let specs = [flags, file];
        let write = |job: &str, name: &str, value: Option<&str>| {
            Native(&specs).write(Some(job), row(name).expect("an option"), value)
        };
        assert_eq!(write("a", "bs", None).as_deref(), Some("`--blocksize`"));
        assert_eq!(write("a", "size", Some("1g")).as_deref(), Some("`--size 1g`"));
        assert_eq!(write("a", "stonewall", Some("true")).as_deref(), Some("`--stonewall`"));
        assert_eq!(write("b", "bs", Some("8k")).as_deref(), Some("`--blocksize 8k`"));
        assert_eq!(write("b", "size", None), None);
        assert_eq!(write("b", "rw", None), None);
    }
}
