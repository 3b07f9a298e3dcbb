//! How to measure a load again: the command that was typed, as a whole, with options that remove what spoiled its figures.

use crate::page::command_line;
use crate::text::clean;
use trueio_model::RunRecord;

/// A measurement that can be repeated.
#[derive(Debug, Clone)]
pub struct Again {
    /// What repeats it, without the first word of a sentence: ``run `trueio baseline /mnt` again``.
    pub words: String,
    /// Which command it was: `run`, `baseline`, `fio`; empty if the words are all that is known.
    kind: String,
    /// The words of the command line; empty if they are unknown.
    command: Vec<String>,
    /// Where it measured.
    pub(crate) target: Option<String>,
}

impl Again {
    /// Returns a measurement that the words describe.
    pub fn of(words: String) -> Self {
        Self { words, kind: String::new(), command: Vec::new(), target: None }
    }

    /// Returns the measurement of a record: the command as it was typed.
    pub(crate) fn of_record(record: &RunRecord) -> Self {
        let mut command: Vec<String> = record.command.iter().map(|word| clean(word).into_owned()).collect();
        if let Some(program) = command.first_mut() {
            // The path of the program says nothing of the measurement.
            *program = program.rsplit('/').next().unwrap_or_default().to_owned();
        }
        let kind = if is_typed(record) { record.kind.clone() } else { String::new() };
        let words = match kind.is_empty() {
            true => format!("run `trueio {}` again", record.kind),
            false => format!("run `{}` again", command_line(&command)),
        };
        let target = record.targets.first().map(|target| clean(&target.path).into_owned());
        Self { words, kind, command, target }
    }

    /// Returns the command with an option, as a clause: ``run `trueio run JOB.toml --direct require` ``. The option replaces an earlier
    /// one; `value` is empty for a switch, and `without` are switches that do not go with it. `None` for a command that has no such options.
    pub(crate) fn with(&self, options: &[(&str, &str)], without: &[&str]) -> Option<String> {
        let mut words = self.command.clone();
        let is_fio = self.kind == "fio";
        // The jobs of a file have options of their own, and only the file changes them.
        let has_job_file = is_fio && words.iter().skip(1).any(|word| !word.starts_with('-') && word != "fio");
        if has_job_file || !["run", "baseline", "fio"].contains(&self.kind.as_str()) {
            return None;
        }
        without.iter().for_each(|name| words.retain(|word| !is_option(word, name)));
        for (name, value) in options {
            let at = words.iter().position(|word| is_option(word, name));
            if let Some(at) = at {
                let has_next = !value.is_empty() && !words[at].contains('=') && at + 1 < words.len();
                words.drain(at..=at + usize::from(has_next));
            }
            match (value.is_empty(), is_fio) {
                (true, _) => words.push(format!("--{name}")),
                (false, true) => words.push(format!("--{name}={value}")),
                (false, false) => words.extend([format!("--{name}"), (*value).to_owned()]),
            }
        }
        Some(format!("run `{}`", command_line(&words)))
    }

    /// Returns the command that measures each load for a time, in seconds.
    pub(crate) fn for_seconds(&self, seconds: f64) -> Option<String> {
        let runtime = format!("{seconds}s");
        match self.kind.as_str() {
            "baseline" => self.with(&[("runtime", &runtime)], &[]),
            "fio" => self.with(&[("runtime", &runtime), ("time_based", "")], &[]),
            _ => self.with(&[("runtime", &runtime), ("time-based", "")], &[]),
        }
    }

    /// Returns the command with direct I/O; `None` if it has no option for it.
    pub(crate) fn direct(&self) -> Option<String> {
        match self.kind.as_str() {
            "fio" => self.with(&[("direct", "1")], &["buffered"]),
            "run" => self.with(&[("direct", "require")], &[]),
            _ => None,
        }
    }

    /// Returns true for the baseline, which has its own options.
    pub(crate) fn is_baseline(&self) -> bool {
        self.kind == "baseline"
    }

    /// Returns what measures the level that lasts, of a rate that was not constant.
    pub(crate) fn steadier(&self) -> String {
        let lasting = match self.kind.as_str() {
            "baseline" => self.with(&[("thorough", "")], &["quick"]),
            "run" => self.with(&[("steady_state", "")], &[]),
            _ => None,
        };
        lasting.map_or_else(
            || format!("measure longer, then {}", self.words),
            |command| format!("{command}, which measures the level that lasts"),
        )
    }
}

/// Returns true if the record has the command line that was typed for it, and not that of a program that contains this one.
fn is_typed(record: &RunRecord) -> bool {
    let program = record.command.first().and_then(|program| program.rsplit('/').next());
    program.is_some_and(|program| ["trueio", "fio"].contains(&program)) && record.command.len() > 1
}

/// Returns true if a word of a command line is an option, with its value or without; `-` and `_` are the same.
fn is_option(word: &str, name: &str) -> bool {
    let named = word.split_once('=').map_or(word, |(named, _)| named);
    named.strip_prefix("--").is_some_and(|named| named.replace('_', "-") == name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(kind: &str, command: &str) -> Again {
        let command = command.split(' ').map(str::to_owned).collect();
        Again { words: String::new(), kind: kind.to_owned(), command, target: None }
    }

    #[test]
    fn an_option_replaces_an_earlier_one_and_stands_in_the_language_of_the_command() {
        let direct = |kind, command| again(kind, command).with(&[("direct", "require")], &[]);
        for (kind, command, expected) in [
            ("run", "trueio run JOB.toml", "run `trueio run JOB.toml --direct require`"),
            ("run", "trueio run --direct off --bs 4k", "run `trueio run --bs 4k --direct require`"),
            ("run", "trueio run --direct=off --bs 4k", "run `trueio run --bs 4k --direct require`"),
            ("fio", "fio --name=a --direct=0", "run `fio --name=a --direct=require`"),
        ] {
            assert_eq!(direct(kind, command).as_deref(), Some(expected));
        }
        assert_eq!(direct("fio", "trueio fio jobs.fio"), None, "the file has the option");
        assert_eq!(direct("", "trueio run"), None);
        let longer = |kind, command| again(kind, command).for_seconds(21.0).expect("a command");
        assert_eq!(
            longer("run", "trueio run --time_based --runtime 5s /mnt"),
            "run `trueio run /mnt --runtime 21s --time-based`"
        );
        assert_eq!(longer("fio", "fio --name=a --runtime=5"), "run `fio --name=a --runtime=21s --time_based`");
        assert_eq!(longer("baseline", "trueio --quick /mnt"), "run `trueio --quick /mnt --runtime 21s`");
        assert_eq!(
            again("baseline", "trueio baseline --quick /mnt").steadier(),
            "run `trueio baseline /mnt --thorough`, which measures the level that lasts"
        );
    }
}
