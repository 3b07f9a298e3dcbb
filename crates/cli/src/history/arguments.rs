//! The command line of `trueio history`.

use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use std::path::PathBuf;

/// One-line description of the command.
pub(crate) const ABOUT: &str = "List, show, tag, compare and export earlier runs";

/// Adds the subcommands. Without one, the command lists.
pub(crate) fn arguments(command: Command) -> Command {
    let id = || Arg::new("id").value_name("ID").required(true).help("An ID, or a unique prefix of one");
    let tags = || Arg::new("tags").value_name("TAG").required(true).num_args(1..).help("One or more words");
    list_flags(command)
        .args_conflicts_with_subcommands(true)
        .after_help("docs/history.md describes what is stored, and how a device is recognised under another name.")
        .subcommand(list_flags(Command::new("list")).about("Lists the runs, newest first (default)"))
        .subcommand(Command::new("devices").about("Lists the measured devices and their identifiers").arg(json()))
        .subcommand(
            Command::new("show")
                .about("Shows a run with its tags, note, device and figures")
                .arg(id())
                .arg(json().help("Print everything that is stored of the run, as JSON for `import`")),
        )
        .subcommand(Command::new("tag").about("Adds tags to a run").arg(id()).arg(tags()))
        .subcommand(Command::new("untag").about("Removes tags from a run").arg(id()).arg(tags()))
        .subcommand(
            Command::new("note")
                .about("Sets a run's note")
                .arg(id())
                .arg(Arg::new("text").value_name("TEXT").required(true).help("The note; an empty one removes it")),
        )
        .subcommand(
            Command::new("delete")
                .about("Deletes runs permanently")
                .arg(Arg::new("ids").value_name("ID").required(true).num_args(1..).help("IDs, or unique prefixes")),
        )
        .subcommand(
            Command::new("compare")
                .about("Compares a run with the previous one of the same load on the same device (`trueio compare`)")
                .arg(Arg::new("id").value_name("ID").help("An ID, or a unique prefix [default: the newest run]"))
                .arg(crate::flags::json("Write the comparison as JSON; without FILE to standard output"))
                .arg(
                    Arg::new("rest")
                        .value_name("FLAGS")
                        .num_args(0..)
                        .last(true)
                        .help("Flags of `trueio compare`, after --: -- --fail-if 'p99 > +5%'"),
                ),
        )
        .subcommand(trend())
        .subcommand(import())
        .subcommand(export())
}

fn trend() -> Command {
    other_filters(Command::new("trend"))
        .about("Shows a device's figures over its runs, and where their level changed")
        .arg(Arg::new("of").value_name("DEVICE").help(
            "A path on it, its number, or a part of its model, serial number or UUID [default: the device of \
                     the newest run]",
        ))
        .arg(
            Arg::new("metric")
                .long("metric")
                .value_name("METRIC")
                .action(ArgAction::Append)
                .value_delimiter(',')
                .value_parser(["iops", "bandwidth", "p50", "p99", "p99.9", "cpu"])
                .help("The metrics to show [default: iops,p99]"),
        )
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("COUNT")
                .help("Maximum number of runs, the newest ones")
                .default_value("500")
                .value_parser(value_parser!(u32).range(1..)),
        )
        .arg(json())
        .arg(
            Arg::new("html")
                .long("html")
                .value_name("FILE")
                .help("Also write a self-contained page with plots")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
}

fn import() -> Command {
    Command::new("import")
        .about("Imports records (JSON files), results of fio (its JSON, 3.x), and .jsonl files of `export`")
        .arg(
            Arg::new("files")
                .value_name("FILE")
                .required(true)
                .num_args(1..)
                .help("Files; - for standard input")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(Arg::new("tag").long("tag").value_name("TAG").action(ArgAction::Append).help("Add this tag to them"))
}

fn export() -> Command {
    filters(Command::new("export"))
        .about("Exports figures as a table (CSV, Parquet), or whole runs as JSON lines for `import`")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .help("A file that ends with .csv, .parquet or .jsonl; - for standard output")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["csv", "parquet", "jsonl"])
                .help("The format, instead of that of the file's name"),
        )
}

fn json() -> Arg {
    crate::flags::json("Print JSON instead of text, or write it to FILE")
}

/// Arguments that select runs of a device.
fn filters(command: Command) -> Command {
    other_filters(
        command.arg(
            Arg::new("device")
                .long("device")
                .value_name("DEVICE")
                .help_heading("Selection")
                .help("Only on this device: a path on it, its number, or a part of its model, serial number or UUID"),
        ),
    )
}

/// Arguments that select runs.
fn other_filters(command: Command) -> Command {
    let flag = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading("Selection")
    };
    command
        .arg(flag("tag", "TAG", "Only with this tag; if repeated, with all of them").action(ArgAction::Append))
        .arg(flag("kind", "KIND", "Only of this kind: baseline, run, fio, …"))
        .arg(flag("since", "WHEN", "Only since a date (UTC) or within a duration: 2026-11-20, 7d, 12h"))
}

fn list_flags(command: Command) -> Command {
    filters(command)
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("COUNT")
                .help("Maximum number of runs, newest first")
                .default_value("20")
                .value_parser(value_parser!(usize)),
        )
        .arg(json())
}
