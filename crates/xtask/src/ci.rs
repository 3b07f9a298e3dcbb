//! Runs every check of the repository and prints a table with times and results.
//!
//! All steps run, even if an earlier step fails. A step that cannot run here is skipped with its reason;
//! with `CI=true` that is a failure. The sums at the end count each test, and each step that is not a
//! test run.

mod report;

use crate::bench::age;
use crate::step::{Counts, Outcome, counted, of};
use crate::workspace::{self, cargo};
use crate::{
    arm, cluster, commits, deny, dist, duckdb, fio_plot, fio_suite, fuzz, gate, lab, layers, manifests, nightly, node,
    packages, pages, publish, python, setup, site,
};
use anyhow::{Result, bail};
use report::{Lane, Report};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The extent of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// Format, layers, commit subjects, clippy, unit tests: under three minutes when warm.
    Quick,
    /// Also all tests.
    Test,
    /// Also everything else.
    All,
}

impl FromStr for Extent {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "quick" => Extent::Quick,
            "test" => Extent::Test,
            "all" => Extent::All,
            _ => bail!("`{text}` is not an extent: quick, test or all"),
        })
    }
}

/// Runs the checks; returns `false` if one failed.
pub(crate) fn run(extent: Extent) -> Result<bool> {
    let is_ci = skips_fail();
    let mut report = Report::new(is_ci);
    report.step("format", || of(cargo().args(["fmt", "--all", "--check"])));
    report.step("layers", || match layers::run() {
        Ok(true) => Outcome::Passed(String::new()),
        Ok(false) => Outcome::Failed("see above".into()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    });
    report.step("commit subjects", commits::check);
    report.step("age of the table of bench engine", age::check);
    if extent != Extent::All {
        report.step("clippy", clippy);
    }
    let mut required = Vec::new();
    if extent == Extent::Quick {
        report.counted_step("unit tests", || tests(&["--lib", "--bins"], &[]));
    } else {
        report.step("set-up", set_up);
        // A test that is skipped although its need is met fails.
        if is_ci {
            required = needs_met();
        }
        // The lab has a step of its own.
        let but_lab = ["--exclude", "trueio-lab"];
        report.step("build of the tests", || of(cargo().args(["test", "--workspace", "--no-run"]).args(but_lab)));
        let release = (extent == Extent::All).then(|| std::thread::spawn(release_build));
        report.counted_step("tests", || tests(&but_lab, &required));
        if let Some(release) = release {
            report.joined_step("release build, parallel to the tests", release);
        }
        if extent == Extent::Test {
            let mut unit_tests = cargo();
            unit_tests.args(["test", "--package", "trueio-lab", "--lib", "--bins"]);
            report.counted_step("unit tests of the lab", || counted(&mut unit_tests, &[]));
            report.counted_step("tests of bindings/node", || node::tests(is_ci, &required));
            report.counted_step("tests of bindings/node-program", node::tests_of_program);
            report.counted_step("tests of bindings/python", || python::tests(&required));
        }
    }
    if extent == Extent::All {
        whole(&mut report, is_ci, &required);
    }
    let (text, sums) = report.closing();
    println!("{text}");
    Ok(sums.failed == 0)
}

/// Returns true if a check that cannot run here is a failure: `CI=true`.
fn skips_fail() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

fn clippy() -> Outcome {
    of(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// Runs the cases of the lab, all or those whose name contains `case`; returns `false` if one failed or no machine
/// can run here.
pub(crate) fn run_lab(case: Option<&str>) -> Result<bool> {
    let mut report = Report::new(true);
    lab::set_up();
    report.counted_step("lab", || lab::run(case, true, &mut |line| println!("{line}")));
    let (text, sums) = report.closing();
    println!("{text}");
    // The sums count a step without a test as one.
    let cases = report.tests().map(|tests| tests.passed + tests.failed + tests.skipped);
    if sums.failed == 0 && cases.sum::<u64>() == 0 {
        bail!("no case of the lab has `{}` in its name", case.unwrap_or_default());
    }
    Ok(sums.failed == 0)
}

/// Prints the outcome of a single step; returns `false` if it failed.
pub(crate) fn print_alone((outcome, _): (Outcome, Option<Counts>)) -> bool {
    println!("{outcome}");
    !matches!(outcome, Outcome::Failed(_))
}

/// Returns the needs of tests that this machine meets.
pub(crate) fn needs_met() -> Vec<&'static str> {
    setup::needs().into_iter().filter(|(_, why_not)| why_not.is_none()).map(|(name, _)| name).collect()
}

/// Builds what the lab's machines and the gates run. With idle priority: many tests wait for loads of a second, and the
/// build takes the processor time that they leave. It has a directory of its own, so cargo does not wait for it.
fn release_build() -> (Outcome, Duration) {
    yield_to_others();
    let begin = Instant::now();
    let build = ["build", "--quiet", "--release", "--package", "trueio-cli", "--package", "trueio-lab", "--bins"];
    (of(cargo().args(build)), begin.elapsed())
}

/// Runs the steps that only [`Extent::All`] has.
fn whole(report: &mut Report, is_ci: bool, required: &[&str]) {
    // Build the lab's cases first: cargo builds for one caller at a time, so the lab would wait for the steps next to it.
    report.step("build of the lab's cases", || {
        lab::set_up();
        of(cargo().args(["test", "--package", "trueio-lab", "--no-run"]))
    });
    // The lab's machines need one processor and mostly wait for modelled disks, and many steps have one thread, so two
    // lanes of steps that measure nothing run next to the lab, with idle priority. Output is printed after what ran next to it.
    let lab = std::thread::spawn(move || {
        let begin = Instant::now();
        let mut text = String::new();
        let ended = lab::run(None, is_ci, &mut |line| text += &format!("{line}\n"));
        (ended, text, begin.elapsed())
    });
    let others = std::thread::scope(|scope| {
        let steps = || {
            yield_to_others();
            let lane = Lane::start("steps of the release build", &["ci", "steps-of-the-release"]);
            steps_of_the_sources(report, is_ci, required);
            match lane {
                Ok(lane) => report.join(lane),
                Err(error) => report.step("steps of the release build", || Outcome::Failed(format!("{error:#}"))),
            }
        };
        scope.spawn(steps).join()
    });
    if others.is_err() {
        report.step("steps parallel to the lab", || Outcome::Failed("xtask panicked".into()));
    }
    report.counted_step("lab, parallel to the steps since its build", || match lab.join() {
        Ok(((outcome, counts), text, elapsed)) => {
            println!("{text}it took {} s", elapsed.as_secs());
            (outcome, counts)
        }
        Err(_) => (Outcome::Failed("xtask panicked".into()), None),
    });
    let program = workspace::target_dir().map(|target| target.join("release/trueio"));
    report.step("fio's own suites", || match std::env::var_os("TRUEIO_FIO_TREE") {
        None => Outcome::optional("no source tree of fio (`TRUEIO_FIO_TREE`)"),
        Some(tree) => match fio_suite::run(Path::new(&tree), program.as_deref().ok(), &[]) {
            Ok(true) => Outcome::Passed(String::new()),
            Ok(false) => Outcome::Failed("too few pass; target/fio-suite/results has what the suites print".to_owned()),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        },
    });
    report.step("gate: instructions", || with_program(&program, gate::instructions));
    report.step("gate: vector code", || with_program(&program, gate::vector_code));
    report.step("gate: memory", || with_program(&program, gate::memory));
    report.step("gate: what options add to an I/O", || with_program(&program, gate::extras));
    report.step("gate: growth", || with_program(&program, gate::growth));
}

/// Runs the steps that test what the release build does, and writes them to `path` for [`Report::join`].
pub(crate) fn steps_of_the_release(path: &Path) -> Result<bool> {
    let mut report = Report::new(skips_fail());
    let program = workspace::target_dir().map(|target| target.join("release/trueio"));
    report.step("generated pages", || with_program(&program, generated_pages));
    report.step("pages in a browser", || with_program(&program, |program| pages::run(program, false)));
    report.step("packages of the release build", || with_program(&program, packages::in_ci));
    if std::env::var_os("TRUEIO_DIST").is_some() {
        report.step("documentation as a site", || with_program(&program, site::in_ci));
    }
    report.step("manifests of deploy", manifests::run);
    report.step("fio-plot draws results", || with_program(&program, fio_plot::run));
    report.step("DuckDB reads a trace", || with_program(&program, duckdb::run));
    report.step("ranks under launchers from wheels", || with_program(&program, cluster::in_ci));
    report.step("dependencies", deny::run);
    report.step("workflows", dist::workflows);
    report.save(path)?;
    Ok(true)
}

/// Runs the steps that compile the sources for other systems and with other tools, and the tests of the bindings.
fn steps_of_the_sources(report: &mut Report, is_ci: bool, required: &[&str]) {
    report.step("clippy", clippy);
    report.step("documentation", || {
        of(cargo().args(["doc", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings"))
    });
    for target in [
        "x86_64-pc-windows-gnu",
        "aarch64-apple-darwin",
        "x86_64-unknown-freebsd",
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-gnu",
    ] {
        report.step(&format!("direct for {target}"), || cross_check(target));
    }
    for (target, words) in
        [("aarch64-linux-android", "does not support Android"), ("x86_64-unknown-netbsd", "does not support NetBSD")]
    {
        report.step(&format!("direct is refused for {target}"), || publish::is_refused(target, words));
    }
    report.counted_step("tests of direct under Wine", tests_under_wine);
    for (name, step) in publish::STEPS {
        report.counted_step(&format!("package of direct: {name}"), step);
    }
    report.counted_step("tests of direct under Miri", nightly::miri);
    report.counted_step("tests of direct with AddressSanitizer", || nightly::address_sanitizer(required));
    // All tests of the engine, and those with ThreadSanitizer, take two to three minutes of processor time each: for a release.
    let is_whole = std::env::var_os("TRUEIO_DIST").is_some();
    let name =
        format!("{} with AddressSanitizer", if is_whole { "tests of engine" } else { "conformance suite of engine" });
    report.counted_step(&name, || nightly::address_sanitizer_of_engine(required, is_whole));
    if is_whole {
        report.counted_step("tests of engine under Miri", nightly::miri_of_engine);
        report.counted_step("tests of engine with ThreadSanitizer", || nightly::thread_sanitizer_of_engine(required));
        report.counted_step("Neon code of engine under emulation", arm::tests);
    } else {
        println!(
            "tests of engine under Miri, with ThreadSanitizer and on an emulated Arm: run with TRUEIO_DIST=1, and by \
             `cargo xtask sanitize` and `cargo xtask arm`"
        );
    }
    report.step("fuzz targets", fuzz::in_ci);
    // Not in the other lane: threads of Python and Node need a processor now and then, and the lab has ended by now.
    report.counted_step("tests of bindings/node", || node::tests(is_ci, required));
    report.counted_step("tests of bindings/node-program", node::tests_of_program);
    report.counted_step("tests of bindings/python", || python::tests(required));
    // Half an hour of linking for other systems: for a release.
    if std::env::var_os("TRUEIO_DIST").is_some() {
        let outcome = |result: Result<bool>| match result {
            Ok(true) => Outcome::Passed(String::new()),
            Ok(false) => Outcome::Failed("see above".into()),
            Err(error) => Outcome::optional(&format!("{error:#}")),
        };
        report.step("packages for other systems", || outcome(dist::run_all()));
        report.step("packages of the program, each binary built twice", || {
            match packages::from_arguments(&["--twice"]) {
                Err(error) => Outcome::Failed(format!("{error:#}")),
                done => outcome(done),
            }
        });
    }
}

/// Gives the calling thread, and the programs that it starts, idle priority.
fn yield_to_others() {
    let level = libc::sched_param { sched_priority: 0 };
    // SAFETY: `level` outlives the call; 0 is the calling thread. A failure is harmless: then both share the processors.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const level) };
}

fn with_program(program: &Result<PathBuf>, check: fn(&Path) -> Outcome) -> Outcome {
    match program {
        Ok(program) => check(program),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn set_up() -> Outcome {
    let installed = setup::install_packages();
    let (mut got, mut reasons) = (Vec::new(), Vec::new());
    for (need, why_not) in setup::needs() {
        match why_not {
            None => got.push(need),
            Some(why_not) => reasons.push(format!("{need}: {why_not}")),
        }
    }
    println!("tests can use here: {}", if got.is_empty() { "nothing special".into() } else { got.join(", ") });
    match installed {
        Ok(what) if reasons.is_empty() => Outcome::Passed(what),
        Ok(_) => Outcome::skipped(&reasons.join("; ")),
        Err(why_not) => Outcome::skipped(&[vec![why_not], reasons].concat().join("; ")),
    }
}

/// Runs all tests, or those in `extent`. A test that lacks one of the `required` needs fails instead of skipping.
fn tests(extent: &[&str], required: &[&str]) -> (Outcome, Option<Counts>) {
    let mut test = cargo();
    test.args(["test", "--workspace", "--no-fail-fast"]).args(extent);
    if !required.is_empty() {
        println!("a test that is skipped for want of {} fails", required.join(", "));
        test.env("TRUEIO_REQUIRE", required.join(","));
    }
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        // Many tests wait for loads of a second: with one test per processor half of the time is idle.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        test.env("RUST_TEST_THREADS", (2 * processors).to_string());
    }
    counted(&mut test, &[])
}

/// Runs the Windows tests of `crates/direct` under Wine, which is optional.
fn tests_under_wine() -> (Outcome, Option<Counts>) {
    let target = "x86_64-pc-windows-gnu";
    match setup::install(&[("wine", "wine"), ("gcc-mingw-w64-x86-64", "x86_64-w64-mingw32-gcc")]) {
        Ok(what) => println!("{what}"),
        Err(why_not) => return (Outcome::optional(&why_not), None),
    }
    let runner = workspace::root().join("crates/direct/tests/wine/run.sh");
    let mut test = cargo();
    test.args(["test", "--package", "trueio-direct", "--target", target, "--lib", "--tests", "--no-fail-fast"]);
    test.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", runner);
    counted(&mut test, &[])
}

/// Compares docs/job-options.md with the output of the built program; a test of `crates/job` compares it with the table.
fn generated_pages(program: &Path) -> Outcome {
    let page = match std::fs::read(workspace::root().join("docs/job-options.md")) {
        Ok(page) => page,
        Err(error) => return Outcome::Failed(format!("docs/job-options.md: {error}")),
    };
    match Command::new(program).arg("reference").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() && output.stdout == page => Outcome::Passed(String::new()),
        Ok(output) if output.status.success() => {
            Outcome::Failed("docs/job-options.md is not what `trueio reference` prints".into())
        }
        // 2: the program has no such command.
        Ok(output) if output.status.code() == Some(2) => {
            Outcome::optional("no `trueio reference`; a test of crates/job compares docs/job-options.md")
        }
        Ok(output) => Outcome::Failed(format!("`trueio reference`: {}", output.status)),
        Err(error) => Outcome::Failed(format!("`trueio reference`: {error}")),
    }
}

fn cross_check(target: &str) -> Outcome {
    match setup::add_target(target) {
        Ok(()) => of(cargo().args(["check", "--package", "trueio-direct", "--target", target])),
        Err(why_not) => Outcome::skipped(&why_not),
    }
}
