//! The command line: each command's file describes its own arguments.

use crate::failure::Failure;
use crate::{
    baseline, capacity, compare, completions, doctor, examples, fio, flags, history, hpc, man, powercut, run, schema,
    selftest, study, usb,
};
use clap::{Arg, ArgMatches, Command};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use trueio_job::table::suggestion;
use trueio_report::{Color, clean, has_colors, message, set_color};

/// What `trueio` alone prints.
pub(crate) const START: &str = "\
trueio measures storage and proves what it measured.

  trueio baseline              the disk under this directory, in about a minute
  trueio baseline --quick      the same in about ten seconds
  trueio run --rw randread --bs 4k --size 1g --runtime 10s
                               a load of your own, or of a file: trueio run JOB.toml

A baseline writes only to files that it creates itself, and removes them.
trueio --help lists all commands; trueio COMMAND --help explains one.
";

/// Parses a command line. `trueio PATH` means `trueio baseline PATH`, and `trueio --quick` means `trueio baseline --quick`.
///
/// # Errors
/// clap's; help and version are among them.
pub(crate) fn parse(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<ArgMatches, clap::Error> {
    let mut words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    if let Some(position) = path_position(&words).or_else(|| option_position(&words)) {
        words.insert(position, "baseline".into());
    }
    flags::parse(command, words)
}

/// Returns where the first word is that is no option, if it names an existing file and no command.
fn path_position(words: &[OsString]) -> Option<usize> {
    let is_option = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with('-'));
    let position = 1 + words.iter().skip(1).position(|word| !is_option(word))?;
    // `--color never PATH`: the word after it is its value.
    if words[position - 1] == "--color" {
        return path_position(&words[position..]).map(|later| position + later);
    }
    let word = &words[position];
    let is_command = || word == "help" || command().get_subcommands().any(|known| *word == known.get_name());
    (std::path::Path::new(word).exists() && !is_command()).then_some(position)
}

/// Returns where the first option is that belongs to a command, if no command is named.
fn option_position(words: &[OsString]) -> Option<usize> {
    const OWN: [&str; 6] = ["--help", "-h", "--version", "-V", "--color", "--help-all"];
    let of_program =
        |word: &OsString| word.to_str().is_some_and(|word| OWN.iter().any(|own| word.split('=').next() == Some(*own)));
    let first = words.get(1)?;
    let is_option = first.to_str().is_some_and(|word| word.starts_with('-') && word.len() > 1);
    let is_command = |word: &OsString| command().get_subcommands().any(|known| *word == known.get_name());
    (is_option && !words.iter().any(of_program) && !words.iter().skip(1).any(is_command)).then_some(1)
}

/// Applies `--color`.
pub(crate) fn apply_color(matches: &ArgMatches) {
    set_color(match matches.get_one::<String>("color").map(String::as_str) {
        Some("always") => Color::Always,
        Some("never") => Color::Never,
        _ => Color::Auto,
    });
}

/// Builds the command line as `--help` lists it, without the rows that only `--help-all` lists.
#[cfg(test)]
pub(crate) fn brief() -> Command {
    let mut command = command();
    command.build();
    command
}

/// Builds the command line with all arguments of each command.
pub(crate) fn complete() -> Command {
    flags::with_all_help(command)
}

/// Builds the command line.
fn command() -> Command {
    examples::with_examples(without_examples(), "")
}

fn without_examples() -> Command {
    let with = |name: &'static str, about: &'static str, arguments: fn(Command) -> Command| {
        arguments(Command::new(name).about(about))
    };
    Command::new("trueio")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures storage and proves what it measured")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("color")
                .long("color")
                .value_name("WHEN")
                .help("Colours: auto (on a terminal, unless NO_COLOR is set or TERM is dumb), always, never")
                .value_parser(["auto", "always", "never"])
                .default_value("auto")
                .hide_default_value(true)
                .hide_possible_values(true)
                .global(true),
        )
        .subcommand(with("baseline", baseline::ABOUT, baseline::arguments))
        .subcommand(with("run", run::ABOUT, run::arguments))
        .subcommand(with("explain", run::ABOUT_EXPLAIN, run::explain_arguments))
        .subcommand(Command::new("fio").about(fio::ABOUT))
        .subcommand(with("ior", hpc::ABOUT_IOR, |command| hpc::arguments(hpc::Program::Ior, command)))
        .subcommand(with("mdtest", hpc::ABOUT_MDTEST, |command| hpc::arguments(hpc::Program::Mdtest, command)))
        .subcommand(with("compare", compare::ABOUT, compare::arguments))
        .subcommand(with("study", study::ABOUT, study::arguments))
        .subcommand(with("capacity", capacity::ABOUT, capacity::arguments))
        .subcommand(with("powercut", powercut::ABOUT, powercut::arguments))
        .subcommand(with("device", doctor::ABOUT_DEVICE, doctor::device_arguments))
        .subcommand(with("usb", usb::ABOUT, usb::arguments))
        .subcommand(with("doctor", doctor::ABOUT, doctor::arguments))
        .subcommand(with("selftest", selftest::ABOUT, selftest::arguments))
        .subcommand(with("history", history::ABOUT, history::arguments))
        .subcommand(with("report", history::ABOUT_REPORT, history::report_arguments))
        .subcommand(Command::new("reference").about("Print every job option as Markdown: name, unit, default, meaning"))
        .subcommand(with("schema", schema::ABOUT, schema::arguments))
        .subcommand(with("completions", completions::ABOUT, completions::arguments))
        .subcommand(with("man", man::ABOUT, man::arguments))
}

/// Prints an error of the command line, which repeats words of it, or the requested help.
pub(crate) fn print(error: &clap::Error) {
    let text = |has_colors: bool| match (error.render(), has_colors) {
        (text, true) => text.ansi().to_string(),
        (text, false) => text.to_string(),
    };
    if error.use_stderr() {
        message!("{}", text(has_colors(&std::io::stderr())));
    } else {
        // A failure is not reported: there is nothing else to do.
        let _ = trueio_report::print_text(&text(has_colors(&std::io::stdout())));
    }
}

/// Refuses names with line feeds: a message that names the file would have lines of the name's choice. Other control characters are
/// replaced where they are printed.
///
/// # Errors
/// The first such name.
pub(crate) fn check_names(matches: &ArgMatches) -> Result<(), Failure> {
    check_names_of(&complete(), matches)
}

fn check_names_of(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let positions = command.get_positionals().map(|one| one.get_id().as_str());
    // A note of the history is a text of any lines.
    let positions: Vec<&str> = positions.filter(|id| *id != "text").collect();
    for id in matches.ids().map(clap::Id::as_str) {
        // Values of other options may be commands and texts of several lines.
        if !positions.contains(&id) && matches.try_get_many::<PathBuf>(id).is_err() {
            continue;
        }
        let mut words = matches.try_get_raw(id).ok().flatten().into_iter().flatten();
        if let Some(word) = words.find(|word| has_line_feed(word)) {
            let shown = word.to_string_lossy();
            return Err(Failure::refused(format!("the name `{}` has a line feed\n\nhint: rename it", clean(&shown))));
        }
    }
    match matches.subcommand() {
        Some((name, inner)) => command.find_subcommand(name).map_or(Ok(()), |one| check_names_of(one, inner)),
        None => Ok(()),
    }
}

/// Whether a word has a line feed.
pub(crate) fn has_line_feed(word: &OsStr) -> bool {
    word.as_encoded_bytes().iter().any(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Prints an unknown option or command with one suggestion, the nearest name. Returns false for other errors.
///
/// clap lists every similar spelling, and does not know the names of other tools (`--queue-depth`), which the option
/// table has.
pub(crate) fn print_unknown(error: &clap::Error, words: &[OsString]) -> bool {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let root = complete();
    let named = words.iter().skip(1).find_map(|word| root.find_subcommand(word.to_str()?));
    let typed = named.or_else(|| option_position(words).and_then(|_| root.find_subcommand("baseline")));
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let Some(flag) = text(ContextKind::InvalidArg).filter(|flag| flag.starts_with("--")) else { return false };
            let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
            let of = typed.map_or_else(String::new, |command| format!(" of `trueio {}`", command.get_name()));
            let has_table = typed.is_some_and(|command| command.get_arguments().any(|one| one.get_id() == "iodepth"));
            let known =
                typed.unwrap_or(&root).get_arguments().filter_map(|one| one.get_long()).map(|name| format!("--{name}"));
            let hint = match suggestion(name).filter(|_| has_table) {
                Some(sentence) => sentence,
                None => match nearest(&format!("--{name}"), known) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None if has_table => "`trueio reference` lists every option".to_owned(),
                    None => {
                        let of = typed.map_or_else(String::new, |command| format!(" {}", command.get_name()));
                        format!("`trueio{of} --help` lists the options")
                    }
                },
            };
            message!("error: `--{name}` is not an option{of}\n\nhint: {hint}");
        }
        ErrorKind::InvalidSubcommand => {
            let Some(word) = text(ContextKind::InvalidSubcommand) else { return false };
            let known = typed.filter(|command| command.has_subcommands()).unwrap_or(&root);
            let names = known.get_subcommands().map(|command| command.get_name().to_owned());
            let hint = match nearest(word, names) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "`trueio --help` lists the commands; a path that exists is measured: `trueio PATH`".to_owned(),
            };
            message!("error: `{word}` is neither a command nor an existing path\n\nhint: {hint}");
        }
        _ => return false,
    }
    true
}

/// Returns the name that is most like a word; `None` if none is similar.
fn nearest(word: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let (distance, name) = names.map(|name| (strsim::osa_distance(word, &name), name)).min()?;
    (distance <= 1 + name.chars().count() / 4).then_some(name)
}
