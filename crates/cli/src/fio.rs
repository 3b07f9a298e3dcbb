//! `trueio fio`, and the program called under the name `fio`: hands the arguments to `trueio_fio`.

use crate::failure::Failure;
use crate::live::{INTERIM, Live};
use crate::progress::Line;
use crate::{examples, flags, limits, output, ranks};
use std::fmt::Debug;
use std::path::Path;
use trueio_fio::command::{Program, ProgressLine};
use trueio_fio::language::OwnHelp;
use trueio_model::Plan;
use trueio_run::machine::IDLE_BASELINE_NS;
use trueio_run::{Event, Observer};

/// What the command is for.
pub(crate) const ABOUT: &str = "fio's own command line and job files";

/// What the command takes from this program.
pub(crate) const PROGRAM: Program = Program {
    command_line: flags::as_typed,
    print: |text| output::print_all(text).map_err(Failure::into_text),
    history: output::history,
    join: || ranks::join().map_err(|failure| failure.show()),
    has_limits: || own_words().0.iter().any(|(name, _)| *name != LIVE),
    own_help,
    set_limits: |plan| set_limits(plan).map_err(Failure::into_text),
    refuse_several: || ranks::refuse_several("fio --client or --server").map_err(|failure| failure.show()),
    wants_live: || match own_words().0.iter().any(|(name, _)| *name == LIVE) {
        true => Live::check().map(|()| true),
        false => Ok(false),
    },
    live_every: INTERIM,
    live: || Ok(Box::new(View(Live::start()?))),
    progress_line: |has_idle| Box::new(Line::new().without_idle(!has_idle)),
};

/// fio's arguments, if the program was called for them: `trueio fio …`, or under the name `fio`.
pub(crate) fn arguments() -> Option<Vec<String>> {
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    if Path::new(&called).file_name().is_some_and(|name| name == "fio") {
        return Some(words);
    }
    match words.split_first() {
        Some((command, rest)) if command == "fio" => Some(split(rest).1),
        _ => None,
    }
}

/// The options of `trueio fio` with a value that fio does not have.
const OWN: [&str; 2] = ["--fail-if", "--against"];
/// The one without a value.
const LIVE: &str = "--live";

/// Splits the options of `trueio fio` with their values from fio's words. No option of fio begins with one of these names.
fn split(words: &[String]) -> (Vec<(&'static str, String)>, Vec<String>) {
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        if word == LIVE {
            own.push((LIVE, String::new()));
            continue;
        }
        match OWN.into_iter().find(|known| *known == name) {
            Some(known) => {
                own.push((known, value.map(str::to_owned).or_else(|| words.next().cloned()).unwrap_or_default()))
            }
            None => rest.push(word.clone()),
        }
    }
    (own, rest)
}

/// Returns the options of this command line that fio does not have; none if the program is called `fio`.
fn own_words() -> (Vec<(&'static str, String)>, Vec<String>) {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if is_subcommand(words.iter()) { split(&words[1..]) } else { (Vec::new(), words) }
}

/// Returns true if the words of the command line begin with `fio`; under the name `fio`, they have no such word.
fn is_subcommand<W: AsRef<std::ffi::OsStr>>(mut words: impl Iterator<Item = W>) -> bool {
    words.next().is_some_and(|first| first.as_ref() == "fio")
}

/// Returns the options that fio does not have, and examples; `None` if the program is called `fio`.
fn own_help() -> Option<OwnHelp> {
    if !is_subcommand(std::env::args_os().skip(1)) {
        return None;
    }
    let command = limits::options(clap::Command::new("fio")).arg(flags::live());
    let described = command.get_arguments().filter_map(|argument| {
        let takes_value = argument.get_action().takes_values();
        let value = argument.get_value_names().and_then(|names| names.first()).filter(|_| takes_value);
        let value = value.map_or_else(String::new, |value| format!("={value}"));
        Some((format!("--{}{value}", argument.get_long()?), argument.get_help()?.to_string()))
    });
    Some(OwnHelp { options: described.collect(), examples: examples::text_of("fio") })
}

fn set_limits(plan: &mut Plan) -> Result<(), Failure> {
    let (own, _) = own_words();
    let of =
        |name: &str| own.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value).collect::<Vec<_>>();
    let limits = limits::read(of(OWN[0]).into_iter())?;
    limits::set_words(plan, "fio", limits, of(OWN[1]).last().map(|name| name.as_str()))?;
    // A short job has no idle baseline, as scripts run hundreds of them; without one no figure is confirmed, and no limit decided.
    if plan.limits.is_some() {
        plan.idle_baseline_ns = IDLE_BASELINE_NS;
    }
    Ok(())
}

impl ProgressLine for Line {
    fn show(&self, text: &str) {
        self.show(text);
    }

    fn clear(&self) {
        self.clear();
    }
}

/// The view on the whole terminal, which is given back when this is dropped.
struct View(Live);

impl Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("View")
    }
}

impl Observer for View {
    fn notify(&mut self, event: Event<'_>) {
        self.0.notify(event);
    }
}

impl ProgressLine for View {
    fn show(&self, text: &str) {
        self.0.show_line(text.to_owned());
    }

    fn clear(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_options_are_taken_out_of_the_words_of_fio() {
        let words =
            ["--name=a", "--live", "--fail-if", "p99 > 10ms", "--fail-if=IOPS < 5", "--against=newest", "j.fio"];
        let (own, rest) = split(&words.map(str::to_owned));
        assert_eq!(rest, ["--name=a", "j.fio"]);
        let expected =
            [("--live", ""), ("--fail-if", "p99 > 10ms"), ("--fail-if", "IOPS < 5"), ("--against", "newest")];
        assert_eq!(own, expected.map(|(name, value)| (name, value.to_owned())));
    }
}
