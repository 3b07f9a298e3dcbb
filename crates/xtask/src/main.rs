//! The developer's one door: `cargo xtask …`.
//!
//! What CI types is what a developer types, so there is one program for both. It is kept small (it
//! is built before anything else can begin) and knows no more of `trueio` than its command line and
//! the record that it writes.

mod bench;
mod ci;
mod commits;
mod fio_plot;
mod gate;
mod lab;
mod layers;
mod nightly;
mod node;
mod process;
mod python;
mod setup;
mod step;
mod workspace;

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask ci [quick|test|all]     every check, as CI runs it (default: all)
    quick   format, layers, subjects of unpushed commits, clippy, unit tests
    test    quick, and all tests
    all     test, and the lab, release build, docs, generated pages, cross-checks, gates, fuzz targets
cargo xtask gate                    user instructions an I/O (callgrind) and memory, against their bars
cargo xtask lab [CASE]              virtual machines with real kernels and disks (docs/lab.md); only
                                    the cases whose name contains CASE
cargo xtask node                    bindings/node: build, fetch what the tests need, test
cargo xtask python                  bindings/python: build a wheel, install it, test
cargo xtask fio-plot [--self PROGRAM]  fio-plot from PyPI draws what `trueio fio` writes
cargo xtask sanitize                crates/direct under Miri and with AddressSanitizer (nightly compiler)
cargo xtask layers [--write]        ARCHITECTURE.md against the crates: dependencies, cycles between
                                    modules, the map of modules (--write renders the map anew)
cargo xtask bench engine [OPTIONS]  this engine and the installed fio, side by side
    --reps N          pairs of runs a case (default 7)
    --seconds S       length of a run (default 2)
    --cases A,B       only these (default: all; `--cases list` prints them)
    --markdown FILE   also write the table between the markers in FILE
    --self PROGRAM    measure this trueio instead of building one
    environment: FIO=PROGRAM names another fio
cargo xtask bench evidence [OPTIONS]  a run with evidence and without, side by side (root)
    --reps N, --seconds S, --self PROGRAM as above
cargo xtask bench fio-agreement [OPTIONS]  do `trueio fio` and the installed fio say the same of
                                    the same jobs? (root); options as for `bench engine`
cargo xtask bench syscall-trace [OPTIONS]  a run plain, with its system calls recorded, and under
                                    strace, side by side (root); options as above";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs what was asked; `false` if a check failed or a bar was missed.
fn dispatch(args: &[&str]) -> Result<bool> {
    match args {
        ["ci"] => ci::run(ci::Extent::All),
        ["ci", extent] => ci::run(extent.parse()?),
        ["gate"] => gate::run(),
        ["lab"] => ci::run_lab(None),
        ["lab", case] => ci::run_lab(Some(case)),
        ["node"] => Ok(ci::print_alone(node::tests(true, &ci::needs_met()))),
        ["python"] => Ok(ci::print_alone(python::tests(&[]))),
        ["sanitize"] => {
            let is_sound = ci::print_alone(nightly::miri());
            Ok(ci::print_alone(nightly::address_sanitizer(&[])) && is_sound)
        }
        ["fio-plot"] => Ok(ci::print_alone((fio_plot::run(&workspace::build_release()?), None))),
        ["fio-plot", "--self", program] => Ok(ci::print_alone((fio_plot::run(&std::fs::canonicalize(program)?), None))),
        ["layers"] => layers::run(layers::Mode::Check),
        ["layers", "--write"] => layers::run(layers::Mode::Write),
        ["bench", "engine", rest @ ..] => bench::run(rest),
        ["bench", "fio-agreement", rest @ ..] => bench::agreement::run(rest),
        ["bench", "syscall-trace", rest @ ..] => bench::syscalls::run(rest),
        ["bench", "evidence", rest @ ..] => bench::evidence::run(rest),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(true)
        }
        _ => bail!("`cargo xtask {}` is not a command\n\n{USAGE}", args.join(" ")),
    }
}
