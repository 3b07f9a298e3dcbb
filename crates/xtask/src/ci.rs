//! Runs every check of the repository and prints a table with times and results.
//!
//! All steps run, even if an earlier step fails. A step that cannot run here is skipped with its reason;
//! with `CI=true` that is a failure. The sums at the end count each test, and each step that is not a
//! test run.

mod deep;
mod report;
mod room;

use crate::bench::age;
use crate::step::{Counts, Outcome, counted, counted_to, of};
use crate::workspace::{self, cargo};
use crate::{commits, deny, dist, fio_suite, gate, lab, layers, node, packages, pages, publish, python, setup};
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
    /// Also the release build, the lab, gates, pages, and the steps of the deep tier that are selected for the commit.
    All,
    /// Also the whole deep tier.
    Deep,
}

impl FromStr for Extent {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "quick" => Extent::Quick,
            "test" => Extent::Test,
            "all" => Extent::All,
            "deep" => Extent::Deep,
            _ => bail!("`{text}` is not an extent: quick, test, all or deep"),
        })
    }
}

/// Runs the checks; returns `false` if one failed.
pub(crate) fn run(extent: Extent) -> Result<bool> {
    let is_ci = skips_fail();
    let is_whole = extent >= Extent::All;
    let mut report = Report::new(is_ci);
    if is_whole {
        report.step("room", room::check);
    }
    report.step("format", || of(cargo().args(["fmt", "--all", "--check"])));
    report.step("layers", || match layers::run() {
        Ok(true) => Outcome::Passed(String::new()),
        Ok(false) => Outcome::Failed("see above".into()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    });
    report.step("commit subjects", commits::check);
    report.step("age of the table of bench engine", age::check);
    if !is_whole {
        report.step("clippy", clippy);
    }
    let mut required = Vec::new();
    if extent == Extent::Quick {
        report.counted_step("unit tests", || tests(&["--lib", "--bins"], &[], &mut Vec::new()));
    } else {
        report.step("set-up", set_up);
        // A test that is skipped although its need is met fails.
        if is_ci {
            required = needs_met();
        }
        all_tests(&mut report, &required, is_whole);
        if !is_whole {
            let mut unit_tests = cargo();
            unit_tests.args(["test", "--package", "trueio-lab", "--lib", "--bins"]);
            report.counted_step("unit tests of the lab", || counted(&mut unit_tests, &[]));
            report.counted_step("tests of bindings/node", || node::tests(is_ci, &required));
            report.counted_step("tests of bindings/node-program", node::tests_of_program);
            report.counted_step("tests of bindings/python", || python::tests(&required));
        }
    }
    if is_whole {
        match deep::Selection::new(extent == Extent::Deep) {
            Ok(mut selection) => {
                whole(&mut report, &selection, is_ci, &required);
                if extent == Extent::Deep {
                    let recorded = selection.record(&report.passed());
                    report.step("record of the deep tier", || of_result(recorded));
                }
                report.add_note(selection.summary());
            }
            Err(error) => report.step("deep tier", || Outcome::Failed(format!("{error:#}"))),
        }
    }
    let (text, sums) = report.closing();
    println!("{text}");
    Ok(sums.failed == 0)
}

/// Builds and runs all tests but the lab's, and next to them makes the release build, if `has_release`.
fn all_tests(report: &mut Report, required: &[&str], has_release: bool) {
    // The lab has a step of its own.
    let but_lab = ["--exclude", "trueio-lab"];
    report.step("build of the tests", || of(cargo().args(["test", "--workspace", "--no-run"]).args(but_lab)));
    let release = has_release.then(|| std::thread::spawn(release_build));
    let mut times = Vec::new();
    let targets = [&but_lab[..], &["--lib", "--bins", "--tests"]].concat();
    report.counted_step("tests", || tests(&targets, required, &mut times));
    report.add_note(slowest(times));
    report.counted_step("examples in the documentation", || {
        counted(cargo().args(["test", "--workspace", "--doc", "--no-fail-fast"]).args(but_lab), &[])
    });
    if let Some(release) = release {
        report.joined_step("release build, parallel to the tests", release);
    }
}

/// Returns the twenty slowest of tests with their time in seconds.
fn slowest(mut times: Vec<(f64, String)>) -> String {
    times.sort_by(|one, other| other.0.total_cmp(&one.0));
    times.truncate(20);
    times.iter().map(|(seconds, name)| format!("slow test: {seconds:>6.1} s  {name}\n")).collect()
}

fn of_result(result: Result<()>) -> Outcome {
    result.map_or_else(|error| Outcome::Failed(format!("{error:#}")), |()| Outcome::Passed(String::new()))
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

/// Runs the steps that only [`Extent::All`] and [`Extent::Deep`] have.
fn whole(report: &mut Report, selection: &deep::Selection, is_ci: bool, required: &[&str]) {
    // Build the lab's cases first: cargo builds for one caller at a time, so the lab would wait for the steps next to it.
    report.step("build of the lab's cases", || {
        lab::set_up();
        of(cargo().args(["test", "--package", "trueio-lab", "--no-run"]))
    });
    // The lab's machines need one processor and mostly wait for modelled disks, and many steps have one thread, so two
    // lanes of steps that measure nothing run next to the lab, with idle priority. Output is printed after what ran next to it.
    let mut files = vec![("lab", lab::PASS.as_slice())];
    for step in selection.steps() {
        if let deep::Run::Lab(file) = &step.run {
            files.push((step.name, std::slice::from_ref(file)));
        }
    }
    let lab = std::thread::spawn(move || {
        let run = |(name, files)| {
            let begin = Instant::now();
            let mut text = String::new();
            let ended = lab::run_files(files, is_ci, &mut |line| text += &format!("{line}\n"));
            (name, ended, text, begin.elapsed())
        };
        files.into_iter().map(run).collect::<Vec<_>>()
    });
    let is_deep = selection.is_whole();
    let others = std::thread::scope(|scope| {
        let steps = || {
            yield_to_others();
            let extent = if is_deep { "deep" } else { "all" };
            let lane = Lane::start("steps of the release build", &["ci", "steps-of-the-release", extent]);
            steps_of_the_sources(report, selection, is_ci, required);
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
    match lab.join() {
        Ok(runs) => {
            for (name, ended, text, elapsed) in runs {
                println!("{text}");
                report.ended_step(name, ended, elapsed);
            }
        }
        Err(_) => report.step("lab", || Outcome::Failed("xtask panicked".into())),
    }
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
pub(crate) fn steps_of_the_release(extent: Extent, path: &Path) -> Result<bool> {
    let mut report = Report::new(skips_fail());
    let program = workspace::target_dir().map(|target| target.join("release/trueio"));
    report.step("generated pages", || with_program(&program, generated_pages));
    report.step("pages in a browser", || with_program(&program, |program| pages::run(program, false)));
    for step in deep::Selection::new(extent == Extent::Deep)?.steps() {
        if let deep::Run::Release(check) = step.run {
            report.step(step.name, || with_program(&program, check));
        }
    }
    report.step("dependencies", deny::run);
    report.step("workflows", dist::workflows);
    report.save(path)?;
    Ok(true)
}

/// Runs the steps that compile the sources, those of the deep tier among them, and the tests of the bindings.
fn steps_of_the_sources(report: &mut Report, selection: &deep::Selection, is_ci: bool, required: &[&str]) {
    report.step("clippy", clippy);
    report.step("documentation", || {
        of(cargo().args(["doc", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings"))
    });
    for step in selection.steps() {
        if let deep::Run::Sources(check) = step.run {
            report.counted_step(step.name, || check(required));
        }
    }
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

/// Runs the tests in `extent`, and adds the time of each to `times`. A test that lacks one of the `required` needs fails
/// instead of skipping.
fn tests(extent: &[&str], required: &[&str], times: &mut Vec<(f64, String)>) -> (Outcome, Option<Counts>) {
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
    // The test programs print the time of each test only if they take the compiler for an unstable one. Set through a
    // runner, the variable does not reach the compiler.
    let runner = format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", std::env::consts::ARCH.to_uppercase());
    let has_times = cfg!(all(target_os = "linux", target_env = "gnu")) && std::env::var_os(&runner).is_none();
    if has_times {
        test.env(runner, "env RUSTC_BOOTSTRAP=1");
    }
    let flags: &[&str] = if has_times { &["-Zunstable-options", "--report-time"] } else { &[] };
    counted_to(&mut test, flags, &mut |line| {
        times.extend(time_of(line));
        println!("{line}");
    })
}

/// Returns the time in seconds and the name of a test from the line of its result: `test a::b ... ok <1.234s>`.
fn time_of(line: &str) -> Option<(f64, String)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = result.split_once('<')?.1.strip_suffix("s>")?.parse().ok()?;
    Some((seconds, name.to_owned()))
}

/// Runs the Windows tests of `crates/direct` under Wine, which is optional.
fn tests_under_wine() -> (Outcome, Option<Counts>) {
    let target = "x86_64-pc-windows-gnu";
    match setup::install(&[("wine", "wine"), ("gcc-mingw-w64-x86-64", "x86_64-w64-mingw32-gcc")]) {
        Ok(what) => println!("{what}"),
        Err(why_not) => return (Outcome::optional(&why_not), None),
    }
    if let Err(why_not) = setup::add_target(target) {
        return (Outcome::skipped(&why_not), None);
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

/// Checks `crates/direct` for each system that it supports, and that it is refused for others.
fn other_systems() -> (Outcome, Option<Counts>) {
    let supported = [
        "x86_64-pc-windows-gnu",
        "aarch64-apple-darwin",
        "x86_64-unknown-freebsd",
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-gnu",
    ];
    let refused =
        [("aarch64-linux-android", "does not support Android"), ("x86_64-unknown-netbsd", "does not support NetBSD")];
    let checks = supported.iter().map(|target| (*target, cross_check(target)));
    let refusals = refused.iter().map(|(target, words)| (*target, publish::is_refused(target, words)));
    let found = checks.chain(refusals).find(|(_, outcome)| !matches!(outcome, Outcome::Passed(_)));
    let named = |why: &str, target: &str| format!("{target}: {why}");
    let outcome = match found {
        None => Outcome::Passed(format!("{} compile, {} are refused", supported.len(), refused.len())),
        Some((target, Outcome::Skipped { reason, is_optional })) => {
            Outcome::Skipped { reason: named(&reason, target), is_optional }
        }
        Some((target, Outcome::Failed(why) | Outcome::Passed(why))) => Outcome::Failed(named(&why, target)),
    };
    (outcome, None)
}

fn cross_check(target: &str) -> Outcome {
    match setup::add_target(target) {
        Ok(()) => of(cargo().args(["check", "--package", "trueio-direct", "--target", target])),
        Err(why_not) => Outcome::skipped(&why_not),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_test_is_read_from_its_line_and_the_slowest_come_first() {
        assert_eq!(time_of("test a::b ... ok <1.234s>"), Some((1.234, "a::b".to_owned())));
        assert_eq!(time_of("test a::b ... FAILED <0.001s>"), Some((0.001, "a::b".to_owned())));
        assert!(time_of("test a::b ... ok").is_none() && time_of("test result: ok. 5 passed").is_none());
        let times = (0..30).map(|n| (f64::from(n), format!("t{n}"))).collect();
        let text = slowest(times);
        assert_eq!((text.lines().count(), text.lines().next()), (20, Some("slow test:   29.0 s  t29")));
    }
}
