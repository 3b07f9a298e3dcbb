//! Checks, gates and benchmarks of the project: `cargo xtask …`.
//!
//! CI and developers use the same commands, so there is one program for both. It is small, because it is
//! built before every check, and uses only the command line of `trueio` and the record that it writes.

mod arm;
mod bench;
mod ci;
mod cluster;
mod commits;
mod deny;
mod dependencies;
mod dist;
mod dist_folder;
mod duckdb;
mod fio_jobs;
mod fio_plot;
mod fio_suite;
mod fuzz;
mod gate;
mod lab;
mod layers;
mod machete;
mod manifests;
mod nightly;
mod node;
mod packages;
mod pages;
mod process;
mod publish;
mod python;
mod setup;
mod site;
mod step;
mod types;
mod workspace;

use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask ci [quick|test|all|deep]  every check, as CI runs it (default: all)
    quick   format, layers, subjects of unpushed commits, clippy, unit tests
    test    quick, and all tests
    all     test, and the lab, release build, docs, generated pages, gates, a quarter of the deep tier, chosen by the
            commit's hash, and its steps whose folder changed in the last 30 commits
    deep    all, and the whole deep tier: every case of the lab, Miri, sanitizers, fuzz targets, Wine, other systems,
            packages; writes the commit at which each step passed to crates/xtask/deep-steps.txt
cargo xtask gate [--self PROGRAM]   user instructions an I/O (callgrind) and memory, against their bars
cargo xtask lab cluster             ranks on four hosts of this machine, under the launchers that are installed; as root
cargo xtask lab [CASE]              virtual machines with real kernels and disks (docs/dev/lab.md); only
                                    the cases whose name contains CASE
cargo xtask node [program|recipes]  bindings/node and bindings/node-program, or only that: build, fetch what the tests need, test; recipes: bundlers
cargo xtask python                  bindings/python: build a wheel, install it, test
cargo xtask notebook [--write]      the notebook of examples/, executed and rendered, with a screenshot (--write keeps it in
                                    docs/images/)
cargo xtask dist [--twice] [--target TRIPLE] [--self PROGRAM]  packages of the program: static binaries, .deb, .rpm, tarballs, SBOM,
                                    templates of Homebrew, Nix and a container (--twice builds each binary twice and
                                    compares; --target makes those of one binary; --self, alone, packs this one,
                                    installs, uses and removes it)
cargo xtask dist-bindings           packages of both bindings, with binaries for all systems that can be
                                    linked here; others are named with the reason (half an hour)
cargo xtask fio-jobs FOLDER [--self PROGRAM]  the job files below FOLDER, with fio (`FIO` names another one) and with `trueio fio`:
                                    parsed as they are, run with bounded sizes and times
cargo xtask fio-plot [--self PROGRAM]  fio-plot from PyPI draws what `trueio fio` writes
cargo xtask fio-suite TREE [--self PROGRAM] [SUITE…]  fio's own black-box suites, from its source tree, with fio
                                    and with `trueio fio` (half an hour); only those whose names contain SUITE
cargo xtask manifests               the manifests in deploy/ and the schemas of Kubernetes
cargo xtask pages [--write] [--self PROGRAM]  each kind of page in headless Chromium: sideways scrolling, cut or overlapping
                                    text, console, network; screenshots in target/pages/
                                    (--write captures terminals and pages into docs/images/)
cargo xtask sanitize                crates/direct and crates/engine under Miri and with AddressSanitizer,
                                    crates/engine with ThreadSanitizer, too (nightly compiler)
cargo xtask arm                     content and checksums of crates/engine on an emulated 64-bit Arm processor (Neon)
cargo xtask fuzz [TARGET] [--hours N]  the fuzz targets from their kept corpora (nightly compiler), each for N
                                    hours (default: a minute)
cargo xtask deny                    dependencies against the table of docs/dependencies.md, and against deny.toml:
                                    advisories, licences, duplicate versions, sources (needs cargo-deny)
cargo xtask publish [STEP]          crates/direct as a package: features, oldest-compiler, public-api,
                                    dry-run, c-library (default: all)
cargo xtask site [--write] [--self PROGRAM]  the documentation as a site in target/site/book (mdBook); a screenshot
                                    of it (--write keeps it in docs/images/)
cargo xtask types [--write]         the documents' types of Python and Node against docs/schema/
cargo xtask public-api [--write]    its public names against crates/direct/public-api.txt
cargo xtask layers                  dependencies between crates against the rows of ARCHITECTURE.md
cargo xtask bench engine [OPTIONS]  this engine and the installed fio, side by side
    --reps N          pairs of runs a case (default 7)
    --seconds S       length of a run (default 2)
    --cases A,B       only these (default: all; `--cases list` prints them)
    --markdown FILE   also write the table between the markers in FILE
    --self PROGRAM    measure this trueio instead of building one
    environment: FIO=PROGRAM names another fio
cargo xtask bench growth [--whole] [--markdown FILE] [--self PROGRAM]  how cost grows with I/Os, workers, files,
                                    depth, logs, phases, history (--whole: the largest sizes, too)
cargo xtask bench starts [--markdown FILE] [--self PROGRAM]  how far apart the first I/Os of 64 workers are
cargo xtask bench ranks [OPTIONS]     skew of the starts of ranks, and a rank next to a run alone
cargo xtask bench evidence [OPTIONS]  a run with evidence and without, side by side (root)
    --reps N, --seconds S, --self PROGRAM as above
cargo xtask bench fio-agreement [OPTIONS]  do `trueio fio` and the installed fio report the same of
                                    the same jobs? (root); options as for `bench engine`
cargo xtask bench syscall-trace [OPTIONS]  a run plain, with its system calls recorded, and under
                                    strace, side by side (root); options as above
cargo xtask bench node [--rounds N] [--markdown FILE]  @trueio/direct-io and @ronomon/direct-io, side by side
cargo xtask bench python [--rounds N]        trueio.direct.aio and run_in_executor, side by side";

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

/// Runs the command; `false` if a check failed or a limit was missed.
fn dispatch(args: &[&str]) -> Result<bool> {
    match args {
        // Of any command: some would build a release first.
        _ if args.is_empty() || args.iter().any(|arg| matches!(*arg, "help" | "--help" | "-h")) => {
            println!("{USAGE}");
            Ok(true)
        }
        ["ci"] => ci::run(ci::Extent::All),
        ["ci", "steps-of-the-release", extent, path] => ci::steps_of_the_release(extent.parse()?, Path::new(path)),
        ["ci", extent] => ci::run(extent.parse()?),
        ["gate"] => gate::run(&workspace::build_release()?),
        ["gate", "--self", program] => gate::run(&std::fs::canonicalize(program)?),
        ["lab"] => ci::run_lab(None),
        ["lab", "cluster"] => cluster::run(),
        ["lab", case] => ci::run_lab(Some(case)),
        ["node"] => {
            let passed = ci::print_alone(node::tests(true, &ci::needs_met()));
            Ok(ci::print_alone(node::tests_of_program()) && passed)
        }
        ["node", "recipes"] => Ok(ci::print_alone(node::recipes())),
        ["node", "program"] => Ok(ci::print_alone(node::tests_of_program())),
        ["types"] => types::run(false),
        ["types", "--write"] => types::run(true),
        ["notebook"] => Ok(ci::print_alone((python::notebook(false), None))),
        ["notebook", "--write"] => Ok(ci::print_alone((python::notebook(true), None))),
        ["python"] => Ok(ci::print_alone(python::tests(&[]))),
        ["sanitize"] => {
            let steps: [fn() -> _; 5] = [
                nightly::miri,
                nightly::miri_of_engine,
                || nightly::address_sanitizer(&[]),
                || nightly::address_sanitizer_of_engine(&[]),
                || nightly::thread_sanitizer_of_engine(&[]),
            ];
            let passed = steps.map(|step| ci::print_alone(step()));
            Ok(passed.into_iter().all(|passed| passed))
        }
        ["fuzz", rest @ ..] => Ok(ci::print_alone((fuzz::from_arguments(rest)?, None))),
        ["arm"] => Ok(ci::print_alone(arm::tests())),
        ["deny"] => Ok(ci::print_alone((deny::run(), None))),
        ["duckdb"] => Ok(ci::print_alone((duckdb::run(&workspace::build_release()?), None))),
        ["duckdb", "--self", program] => Ok(ci::print_alone((duckdb::run(&std::fs::canonicalize(program)?), None))),
        ["manifests"] => Ok(ci::print_alone((manifests::run(), None))),
        ["fio-plot"] => Ok(ci::print_alone((fio_plot::run(&workspace::build_release()?), None))),
        ["fio-plot", "--self", program] => Ok(ci::print_alone((fio_plot::run(&std::fs::canonicalize(program)?), None))),
        ["fio-suite", tree, "--self", program, only @ ..] => {
            fio_suite::run(Path::new(tree), Some(Path::new(program)), only)
        }
        ["fio-suite", tree, only @ ..] => fio_suite::run(Path::new(tree), None, only),
        ["fio-jobs", folder, "--self", program] => fio_jobs::run(Path::new(folder), Some(Path::new(program))),
        ["fio-jobs", folder] => fio_jobs::run(Path::new(folder), None),
        ["pages"] => Ok(ci::print_alone((pages::run(&workspace::build_release()?, false), None))),
        ["pages", "--self", program] => {
            Ok(ci::print_alone((pages::run(&std::fs::canonicalize(program)?, false), None)))
        }
        ["pages", "--write", "--self", program] => {
            Ok(ci::print_alone((pages::run(&std::fs::canonicalize(program)?, true), None)))
        }
        ["pages", "--write"] => Ok(ci::print_alone((pages::run(&workspace::build_release()?, true), None))),
        ["publish"] => {
            let passed = publish::STEPS.map(|(name, step)| {
                println!("=== {name}");
                ci::print_alone(step())
            });
            Ok(passed.into_iter().all(|passed| passed))
        }
        ["publish", name] => match publish::STEPS.iter().find(|(known, _)| known == name) {
            Some((_, step)) => Ok(ci::print_alone(step())),
            None => bail!("`{name}` is not a step: {}", publish::STEPS.map(|(known, _)| known).join(", ")),
        },
        ["public-api"] => Ok(ci::print_alone((publish::public_api(false), None))),
        ["public-api", "--write"] => Ok(ci::print_alone((publish::public_api(true), None))),
        ["layers"] => layers::run(),
        ["bench", "engine", rest @ ..] => bench::run(rest),
        ["bench", "growth", rest @ ..] => bench::growth::run(rest),
        ["bench", "starts", rest @ ..] => bench::starts::run(rest),
        ["bench", "fio-agreement", rest @ ..] => bench::agreement::run(rest),
        ["bench", "syscall-trace", rest @ ..] => bench::syscalls::run(rest),
        ["bench", "node", rest @ ..] => node::bench(rest),
        ["bench", "python", rest @ ..] => python::bench(rest),
        ["site"] => site::run(&workspace::build_release()?, false),
        ["site", "--write"] => site::run(&workspace::build_release()?, true),
        ["site", "--self", program] => site::run(&std::fs::canonicalize(program)?, false),
        ["site", "--write", "--self", program] => site::run(&std::fs::canonicalize(program)?, true),
        ["dist", "--self", program] => Ok(ci::print_alone((packages::in_ci(&std::fs::canonicalize(program)?), None))),
        ["dist", rest @ ..] => packages::from_arguments(rest),
        ["dist-bindings"] => dist::run_all(),
        ["bench", "ranks", rest @ ..] => bench::ranks::run(rest),
        ["bench", "evidence", rest @ ..] => bench::evidence::run(rest),
        _ => bail!("`cargo xtask {}` is not a command\n\n{USAGE}", args.join(" ")),
    }
}
