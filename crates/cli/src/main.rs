//! The `trueio` program: thin commands over the crates.
//!
//! Data goes to stdout, messages to stderr. Exit codes: 0 done, 1 the run failed or was interrupted, 2 the
//! request was refused or malformed, 3 a limit is undecided, 75 a launcher started several processes that cannot reach each other. docs/ci.md
//! lists them with their precedence.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod arguments;
mod baseline;
mod capacity;
mod claimed;
mod compare;
mod completions;
mod doctor;
mod examples;
mod failure;
mod fio;
mod flags;
mod history;
mod hpc;
mod kept;
mod limits;
mod live;
mod man;
mod output;
mod powercut;
mod progress;
mod ranks;
mod request;
mod run;
mod schema;
mod selftest;
mod study;
mod traced;
mod usb;

use failure::Failure;
use std::process::ExitCode;
use trueio_report::clean;

/// Lets every allocation from 32 KiB on be a mapping of its own, as large ones are anyway.
///
/// The counters of a worker's latencies are 36 KiB of zeros, of which it uses one or two pages. In a heap, glibc writes the
/// zeros, so a thousand workers would occupy 300 KiB each; in a mapping, pages that are not used do not exist.
fn map_larger_allocations() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a plain call, before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 10);
    }
}

fn main() -> ExitCode {
    map_larger_allocations();
    if let Some(code) = completions::answer() {
        return code;
    }
    // fio's language has its own grammar, and options that resemble ours.
    if let Some(arguments) = fio::arguments() {
        return trueio_fio::command::run(&arguments, &fio::PROGRAM);
    }
    if std::env::args_os().len() == 1 {
        return output::print_all(arguments::START).map_or_else(|failure| failure.show(), |()| ExitCode::SUCCESS);
    }
    let matches = match arguments::parse(std::env::args_os()) {
        Ok(matches) => matches,
        Err(error) => {
            // `--help` and `--version` are results, everything else is a malformed request.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            if let Some(word) = std::env::args_os().find(|word| arguments::has_line_feed(word)) {
                return Failure::refused(format!("`{}` has a line feed", clean(&word.to_string_lossy()))).show();
            }
            if !arguments::print_unknown(&error, &std::env::args_os().collect::<Vec<_>>()) {
                arguments::print(&error);
            }
            return ExitCode::from(code);
        }
    };
    arguments::apply_color(&matches);
    if let Err(failure) = arguments::check_names(&matches) {
        return failure.show();
    }
    let result = match matches.subcommand() {
        Some(("baseline", arguments)) => baseline::command(arguments),
        Some(("capacity", arguments)) => ranks::refuse_several("capacity").and_then(|()| capacity::command(arguments)),
        Some(("powercut", arguments)) => ranks::refuse_several("powercut").and_then(|()| powercut::command(arguments)),
        Some(("run", arguments)) => run::command(arguments),
        Some(("ior", arguments)) => hpc::command(hpc::Program::Ior, arguments),
        Some(("mdtest", arguments)) => hpc::command(hpc::Program::Mdtest, arguments),
        Some(("compare", arguments)) => compare::command(arguments),
        Some(("explain", arguments)) => run::explain(arguments),
        Some(("device", arguments)) => doctor::device(arguments),
        Some(("doctor", arguments)) => doctor::command(arguments),
        Some(("reference", _)) => output::print_all(&trueio_job::render_reference()).map(|()| ExitCode::SUCCESS),
        Some(("schema", arguments)) => schema::command(arguments),
        Some(("completions", arguments)) => completions::command(arguments),
        Some(("man", arguments)) => man::command(arguments),
        Some(("history", arguments)) => history::command(arguments),
        Some(("report", arguments)) => history::report(arguments),
        Some(("selftest", arguments)) => selftest::command(arguments),
        Some(("study", arguments)) => ranks::refuse_several("study").and_then(|()| study::command(arguments)),
        Some(("usb", arguments)) => usb::command(arguments),
        _ => unreachable!("clap demands one of the commands above"),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.show(),
    }
}
