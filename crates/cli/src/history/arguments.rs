//! The command line of `trueio history`.

use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use std::path::PathBuf;

/// What the command is for.
pub(crate) const ABOUT: &str = "What was measured before: list, show, tag, compare, export";

/// The command's subcommands. Without one it lists.
pub(crate) fn arguments(command: Command) -> Command {
    let id = || Arg::new("id").value_name("ID").required(true).help("An id, or its beginning");
    let tags = || Arg::new("tags").value_name("TAG").required(true).num_args(1..).help("One or several words");
    list_flags(command)
        .args_conflicts_with_subcommands(true)
        .after_help("docs/history.md describes what is kept, and how a device is recognised under another name.")
        .subcommand(list_flags(Command::new("list")).about("The runs, newest first (as `trueio history` alone)"))
        .subcommand(
            Command::new("devices").about("The devices that were measured, and what they are known by").arg(json()),
        )
        .subcommand(
            Command::new("show")
                .about("A run with its tags, note, device and figures")
                .arg(id())
                .arg(json().help("Print everything that is kept of it, as JSON that `import` reads")),
        )
        .subcommand(Command::new("tag").about("Gives a run tags").arg(id()).arg(tags()))
        .subcommand(Command::new("untag").about("Takes tags from a run").arg(id()).arg(tags()))
        .subcommand(
            Command::new("note")
                .about("Replaces a run's note")
                .arg(id())
                .arg(Arg::new("text").value_name("TEXT").required(true).help("The note; an empty one takes it away")),
        )
        .subcommand(
            Command::new("delete")
                .about("Forgets runs for good")
                .arg(Arg::new("ids").value_name("ID").required(true).num_args(1..).help("Ids, or their beginnings")),
        )
        .subcommand(
            Command::new("compare")
                .about(
                    "Compare a run with the last one before it that did the same on the same device (`trueio compare`)",
                )
                .arg(Arg::new("id").value_name("ID").help("An id, or its beginning; without it, the newest run"))
                .arg(
                    Arg::new("rest")
                        .value_name("FLAGS")
                        .num_args(0..)
                        .last(true)
                        .help("Flags of `trueio compare`, after --: -- --fail-if 'p99 > +5%' --json -"),
                ),
        )
        .subcommand(trend())
        .subcommand(import())
        .subcommand(export())
}

fn trend() -> Command {
    other_filters(Command::new("trend"))
        .about("A device's figures over its runs, and where their level changed")
        .arg(Arg::new("of").value_name("DEVICE").help(
            "A path on it, its number, or a part of its model, serial number or UUID; without it, the device of \
                     the newest run",
        ))
        .arg(
            Arg::new("metric")
                .long("metric")
                .value_name("METRIC")
                .action(ArgAction::Append)
                .value_delimiter(',')
                .value_parser(["iops", "bandwidth", "p50", "p99", "p99.9", "cpu"])
                .help("What to follow [default: iops,p99]"),
        )
        .arg(json())
        .arg(
            Arg::new("html")
                .long("html")
                .value_name("FILE")
                .help("Write a self-contained page with plots, too")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
}

fn import() -> Command {
    Command::new("import")
        .about("Keeps records (JSON files), results of fio (its JSON, 3.x), and what `export` wrote as .jsonl")
        .arg(
            Arg::new("files")
                .value_name("FILE")
                .required(true)
                .num_args(1..)
                .help("Files; - for standard input")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(Arg::new("tag").long("tag").value_name("TAG").action(ArgAction::Append).help("Give them this tag"))
}

fn export() -> Command {
    filters(Command::new("export"))
        .about("Writes figures as a table (CSV, Parquet), or whole runs (JSON lines) that `import` reads")
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
                .help("The format, whatever the file's name ends with"),
        )
}

fn json() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of text")
}

/// Which runs, of which device.
fn filters(command: Command) -> Command {
    other_filters(
        command.arg(
            Arg::new("device")
                .long("device")
                .value_name("DEVICE")
                .help_heading("Which runs")
                .help("On this device: a path on it, its number, or a part of its model, serial number or UUID"),
        ),
    )
}

/// Which runs.
fn other_filters(command: Command) -> Command {
    let flag = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading("Which runs")
    };
    command
        .arg(flag("tag", "TAG", "With this tag; given twice, with both").action(ArgAction::Append))
        .arg(flag("kind", "KIND", "Of this kind: baseline, run, fio, …"))
        .arg(flag("since", "WHEN", "Since a date (UTC), or so long ago: 2026-11-20, 7d, 12h"))
}

fn list_flags(command: Command) -> Command {
    filters(command)
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("COUNT")
                .help("How many, newest first")
                .default_value("20")
                .value_parser(value_parser!(usize)),
        )
        .arg(json())
}
