//! `trueio usb`: the transport of each USB disk, its reason, and how to change it.
//!
//! `list` and `explain` only read; `list` needs no privileges, `explain` reads the kernel's log if permitted.
//! `switch` changes the transport, and prints its plan first. `serve` drives a disk itself, `build-driver` builds the kernel's driver. `trueio_device::usb` interprets the facts; this
//! folder prints them.

mod build_driver;
mod explain;
mod list;
mod other;
mod serve;
mod studied;
mod switch;
mod user_space;
mod watchdog;

use crate::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use std::path::PathBuf;
use std::process::ExitCode;
pub(crate) use studied::Transports;
use trueio_device::System;

/// One-line description of `trueio usb`.
pub(crate) const ABOUT: &str = "List USB disks, explain their transport (UAS or BOT), and switch it";

/// The command line of `trueio usb`.
pub(crate) fn arguments(command: Command) -> Command {
    command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            recorded(Command::new("list"))
                .about("Lists every USB disk: driver, link, offered transports, queue depth, block devices, mounts")
                .arg(switch("tree", "Print the tree of buses, hubs and devices only").conflicts_with("table"))
                .arg(switch("table", "Print the table of disks only"))
                .arg(
                    crate::flags::json("Print every fact with its source as JSON, or write it to FILE")
                        .conflicts_with_all(["tree", "table"]),
                ),
        )
        .subcommand(
            recorded(Command::new("explain"))
                .about("Explains why a disk runs on UAS or BOT: the kernel's rules, errors, possible changes")
                .arg(disk("A disk: /dev/sdX, sdX, a port (2-1), or a serial number; all disks by default"))
                .arg(crate::flags::json("Print the rules and facts with their sources as JSON, or write them to FILE")),
        )
        .subcommand(switch::arguments())
        .subcommand(serve::arguments())
        .subcommand(build_driver::arguments())
        .subcommand(serve::give_back_arguments())
}

/// `trueio usb …`.
pub(crate) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("list", arguments)) => list::command(arguments),
        Some(("explain", arguments)) => explain::command(arguments),
        Some(("switch", arguments)) => switch::command(arguments),
        Some(("serve", arguments)) => serve::command(arguments),
        Some(("build-driver", arguments)) => build_driver::command(arguments),
        Some(("give-back", arguments)) => serve::give_back(arguments),
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
            .help("Read a recorded copy of /proc and /sys instead of this machine")
            .hide(true)
            .value_hint(ValueHint::DirPath)
            .value_parser(value_parser!(PathBuf)),
    )
}

/// Returns the live machine, or the recorded one.
fn system(matches: &ArgMatches) -> Result<System, Failure> {
    match matches.get_one::<PathBuf>("recorded") {
        None => Ok(System::live()),
        Some(folder) => System::recorded(folder)
            .map_err(|e| Failure::refused(format!("`{}` is not a recorded machine\n  because: {e}", folder.display()))),
    }
}
