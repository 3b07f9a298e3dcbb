//! `trueio usb`: which transport each USB disk runs on, why, and how to change it.
//!
//! `list` and `explain` only read; `list` needs no privileges, `explain` reads the kernel's log if it
//! may. `switch` changes something, and prints its plan first. `trueio_device::usb` interprets the facts; this
//! folder prints them.

mod explain;
mod list;
mod other;
mod studied;
mod switch;

use crate::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use std::path::PathBuf;
use std::process::ExitCode;
pub(crate) use studied::Transports;
use trueio_device::System;

/// What `trueio usb` is for.
pub(crate) const ABOUT: &str = "USB disks: UAS or BOT, why, and how to change it";

/// The command line of `trueio usb`.
pub(crate) fn arguments(command: Command) -> Command {
    command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            recorded(Command::new("list"))
                .about("Every USB disk: driver, link, what it offers, queue depth, block devices, mounts")
                .arg(switch("tree", "Print the tree of buses, hubs and devices only").conflicts_with("table"))
                .arg(switch("table", "Print the table of disks only"))
                .arg(switch("json", "Print every fact with its source, as JSON").conflicts_with_all(["tree", "table"])),
        )
        .subcommand(
            recorded(Command::new("explain"))
                .about("Why a disk runs on UAS or BOT: the kernel's rules, trouble, what can be changed")
                .arg(disk("A disk: /dev/sdX, sdX, a port (2-1), or a serial number; all if none is named"))
                .arg(switch("json", "Print the rules and facts with their sources, as JSON")),
        )
        .subcommand(switch::arguments())
}

/// `trueio usb …`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("list", arguments)) => list::command(arguments),
        Some(("explain", arguments)) => explain::command(arguments),
        Some(("switch", arguments)) => switch::command(arguments),
        _ => unreachable!("clap demands one of the commands above"),
    }
}

fn disk(help: &'static str) -> Arg {
    Arg::new("disk").value_name("DISK").help(help).value_hint(ValueHint::AnyPath)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// The folder of a recorded machine, for tests and for trees from other machines.
fn recorded(command: Command) -> Command {
    command.arg(
        Arg::new("recorded")
            .long("recorded")
            .value_name("FOLDER")
            .help("Look at a recorded copy of /proc and /sys instead of this machine")
            .hide(true)
            .value_hint(ValueHint::DirPath)
            .value_parser(value_parser!(PathBuf)),
    )
}

/// The live machine, or the recorded one.
fn system(matches: &ArgMatches) -> Result<System, Failure> {
    match matches.get_one::<PathBuf>("recorded") {
        None => Ok(System::live()),
        Some(folder) => System::recorded(folder)
            .map_err(|e| Failure::refused(format!("`{}` is no recorded machine\n  because: {e}", folder.display()))),
    }
}
