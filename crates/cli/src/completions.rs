//! Completion scripts of shells.
//!
//! clap_complete writes them from the commands' arguments, so the options of jobs come from the option table. The words of
//! an option are added here: a command line describes them to clap only where an option has no synonyms, because clap
//! would refuse those.

use crate::arguments;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use std::process::ExitCode;
use trueio_job::row;

pub(crate) const ABOUT: &str = "Print a completion script for a shell";

/// Adds the arguments of the command.
pub(crate) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .help("Shell that reads the script")
                .value_parser(value_parser!(Shell)),
        )
        .after_help("bash: source <(trueio completions bash)\nzsh: trueio completions zsh > DIRECTORY_OF_FPATH/_trueio")
}

/// Prints the script.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, crate::failure::Failure> {
    let shell = matches.get_one::<Shell>("shell").expect("clap requires it");
    crate::output::print_all(&script(*shell)).map(|()| ExitCode::SUCCESS)
}

/// Returns the script of a shell.
fn script(shell: Shell) -> String {
    let mut command = arguments::complete();
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |command| command.mut_args(with_words));
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "trueio", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Adds the words of an option of the table.
fn with_words(argument: Arg) -> Arg {
    let choices = row(argument.get_id().as_str()).map_or(&[][..], |row| row.choices());
    match choices {
        [] => argument,
        _ => {
            let words = choices.iter().map(|choice| PossibleValue::new(choice.name).help(choice.sentence));
            argument.value_parser(PossibleValuesParser::new(words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn the_bash_script_lists_an_option_of_the_table_and_its_words() {
        let script = script(Shell::Bash);
        assert!(script.contains("--iodepth"), "an option");
        assert!(script.contains("--sync_file_range"), "an option of another section");
        let after_direct = script.split("--direct)").nth(1).expect("`--direct` has values");
        let words = after_direct.lines().find(|line| line.contains("compgen")).unwrap_or_default();
        assert!(words.contains("require prefer off"), "{words}");
    }

    #[test]
    fn every_shell_has_a_script_with_every_command() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for command in ["baseline", "run", "completions"] {
                assert!(script.contains(command), "{shell}: {command}");
            }
        }
    }
}
