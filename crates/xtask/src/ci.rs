//! Every check of the repository, with its time and result.
//!
//! All steps run, whatever fails before them. A step that cannot run here is skipped and says why;
//! where `CI=true`, that is a failure, because nobody would read the reason. At the end stand a table
//! and the sums: each test counts as one, and so does each step that is not a test run.

use crate::workspace::{self, cargo, command, has_program};
use crate::{fio_plot, gate, lab, layers, nightly, node, python, setup};
use anyhow::{Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// Format, layers, clippy, unit tests: under three minutes when warm.
    Quick,
    /// And all tests.
    Test,
    /// And everything else.
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

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Well; what there is to say.
    Passed(String),
    /// Badly; why.
    Failed(String),
    /// Not run.
    Skipped {
        /// Why.
        reason: String,
        /// True if it may be skipped where `CI=true`, too.
        is_optional: bool,
    },
}

impl Outcome {
    /// Not run, and CI must not accept that.
    pub(crate) fn skipped(reason: &str) -> Self {
        Outcome::Skipped { reason: reason.into(), is_optional: false }
    }

    /// Not run, and that is nobody's fault.
    pub(crate) fn optional(reason: &str) -> Self {
        Outcome::Skipped { reason: reason.into(), is_optional: true }
    }

    /// Findings, one a line, and whether they are good; an error is a failure.
    pub(crate) fn from_lines(lines: Result<(Vec<String>, bool)>) -> Self {
        match lines {
            Ok((lines, true)) => Outcome::Passed(lines.join("; ")),
            Ok((lines, false)) => Outcome::Failed(lines.join("; ")),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }

    /// What CI makes of it.
    fn judged(self, is_ci: bool) -> Self {
        match self {
            Outcome::Skipped { reason, is_optional: false } if is_ci => {
                Outcome::Failed(format!("skipped, which CI=true does not allow: {reason}"))
            }
            other => other,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (word, text) = match self {
            Outcome::Passed(text) => ("passed", text),
            Outcome::Failed(text) => ("FAILED", text),
            Outcome::Skipped { reason, .. } => ("skipped", reason),
        };
        if text.is_empty() { f.write_str(word) } else { write!(f, "{word}: {text}") }
    }
}

/// Tests that passed, failed, were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// A step that was run.
struct Step {
    name: String,
    elapsed: Duration,
    outcome: Outcome,
    /// What it adds to the sums, if it is not one.
    tests: Option<Counts>,
}

/// The checks so far.
struct Report {
    is_ci: bool,
    steps: Vec<Step>,
}

impl Report {
    fn step(&mut self, name: &str, body: impl FnOnce() -> Outcome) {
        self.counted_step(name, || (body(), None));
    }

    fn counted_step(&mut self, name: &str, body: impl FnOnce() -> (Outcome, Option<Counts>)) {
        println!("\n=== {name}");
        let begin = Instant::now();
        let (outcome, tests) = body();
        let outcome = outcome.judged(self.is_ci);
        println!("--- {name}: {outcome}");
        self.steps.push(Step { name: name.into(), elapsed: begin.elapsed(), outcome, tests });
    }

    /// The table and the sums.
    fn closing(&self) -> (String, Counts) {
        let mut sums = Counts::default();
        let width = self.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
        let mut text = format!("\n{:width$}  {:>8}  result\n", "step", "time");
        for Step { name, elapsed, outcome, tests } in &self.steps {
            text += &format!("{name:width$}  {:>6.1} s  {outcome}\n", elapsed.as_secs_f64());
            let tests = tests.unwrap_or_default();
            sums.passed += tests.passed;
            sums.failed += tests.failed;
            sums.skipped += tests.skipped;
            // A test run counts by its tests, but one that failed without a failed test still failed.
            let is_counted = tests != Counts::default();
            match outcome {
                Outcome::Passed(_) if !is_counted => sums.passed += 1,
                Outcome::Failed(_) if tests.failed == 0 => sums.failed += 1,
                Outcome::Skipped { .. } => sums.skipped += 1,
                _ => {}
            }
        }
        text += &format!("\n{} passed, {} failed, {} skipped", sums.passed, sums.failed, sums.skipped);
        (text, sums)
    }
}

/// Runs the checks; `false` if one failed.
pub(crate) fn run(extent: Extent) -> Result<bool> {
    let mut report = Report { is_ci: std::env::var("CI").is_ok_and(|value| value == "true"), steps: Vec::new() };
    let is_ci = report.is_ci;
    report.step("format", || of(cargo().args(["fmt", "--all", "--check"])));
    report.step("layers", || match layers::run(layers::Mode::Strict) {
        Ok(true) => Outcome::Passed(String::new()),
        Ok(false) => Outcome::Failed("see above".into()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    });
    if extent != Extent::All {
        report.step("clippy", clippy);
    }
    let mut required = Vec::new();
    if extent == Extent::Quick {
        report.counted_step("unit tests", || tests(&["--lib", "--bins"], &[]));
    } else {
        report.step("set-up", set_up);
        // Where a skipped test is a failure: what was got above must be used.
        if is_ci {
            required = needs_met();
        }
        // The lab has a step of its own.
        report.counted_step("tests", || tests(&["--exclude", "trueio-lab"], &required));
        if extent == Extent::Test {
            let mut unit_tests = cargo();
            unit_tests.args(["test", "--package", "trueio-lab", "--lib", "--bins"]);
            report.counted_step("unit tests of the lab", || counted(&mut unit_tests, &[]));
            report.counted_step("tests of bindings/node", || node::tests(is_ci, &required));
            report.counted_step("tests of bindings/python", || python::tests(&required));
        }
    }
    if extent == Extent::All {
        whole(&mut report, &required);
    }
    let (text, sums) = report.closing();
    println!("{text}");
    Ok(sums.failed == 0)
}

fn clippy() -> Outcome {
    of(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// The cases of the lab, all or those whose name contains `case`; `false` if one failed or there can
/// be no machine here.
pub(crate) fn run_lab(case: Option<&str>) -> Result<bool> {
    let mut report = Report { is_ci: true, steps: Vec::new() };
    lab::set_up();
    report.counted_step("lab", || lab::run(case, true, &mut |line| println!("{line}")));
    let (text, sums) = report.closing();
    println!("{text}");
    // The sums count a step without a test as one.
    let cases =
        report.steps.iter().filter_map(|step| step.tests).map(|tests| tests.passed + tests.failed + tests.skipped);
    if sums.failed == 0 && cases.sum::<u64>() == 0 {
        bail!("no case of the lab has `{}` in its name", case.unwrap_or_default());
    }
    Ok(sums.failed == 0)
}

/// Says how a step ended that was asked for alone; `false` if badly.
pub(crate) fn print_alone((outcome, _): (Outcome, Option<Counts>)) -> bool {
    println!("{outcome}");
    !matches!(outcome, Outcome::Failed(_))
}

/// What tests can need and this machine has.
pub(crate) fn needs_met() -> Vec<&'static str> {
    setup::needs().into_iter().filter(|(_, why_not)| why_not.is_none()).map(|(name, _)| name).collect()
}

/// The steps that only the whole has.
fn whole(report: &mut Report, required: &[&str]) {
    let is_ci = report.is_ci;
    // The lab's machines run this program, and the gates count what it does.
    let build = ["build", "--release", "--package", "trueio-cli", "--package", "trueio-lab", "--bins"];
    report.step("release build", || of(cargo().args(build)));
    // What the lab then still has to build would wait for the steps beside it: cargo builds for one at a time.
    report.step("build of the lab's cases", || {
        lab::set_up();
        of(cargo().args(["test", "--package", "trueio-lab", "--no-run"]))
    });
    // The lab's machines need one processor, and mostly wait for modelled disks: the other one does meanwhile what measures
    // nothing, when they leave it something. What the lab says is shown when those steps are over.
    let lab = std::thread::spawn(move || {
        let begin = Instant::now();
        let mut said = String::new();
        let ended = lab::run(None, is_ci, &mut |line| said += &format!("{line}\n"));
        (ended, said, begin.elapsed())
    });
    let beside = std::thread::scope(|scope| {
        let steps = || {
            yield_to_others();
            beside_the_lab(report, required);
        };
        scope.spawn(steps).join()
    });
    if beside.is_err() {
        report.step("steps beside the lab", || Outcome::Failed("xtask panicked".into()));
    }
    report.counted_step("lab, beside the steps since its build", || match lab.join() {
        Ok(((outcome, counts), said, elapsed)) => {
            println!("{said}it took {} s", elapsed.as_secs());
            (outcome, counts)
        }
        Err(_) => (Outcome::Failed("xtask panicked".into()), None),
    });
    let program = workspace::target_dir().map(|target| target.join("release/trueio"));
    report.step("generated pages", || with_program(&program, generated_pages));
    report.step("fio-plot draws results", || with_program(&program, fio_plot::run));
    report.step("gate: instructions", || with_program(&program, gate::instructions));
    report.step("gate: memory", || with_program(&program, gate::memory));
}

/// Steps that measure nothing.
fn beside_the_lab(report: &mut Report, required: &[&str]) {
    let is_ci = report.is_ci;
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
    report.counted_step("tests of direct under Wine", tests_under_wine);
    report.counted_step("tests of direct under Miri", nightly::miri);
    report.counted_step("tests of direct with AddressSanitizer", || nightly::address_sanitizer(required));
    report.step("fuzz targets", nightly::fuzz_targets);
    report.counted_step("tests of bindings/node", || node::tests(is_ci, required));
    report.counted_step("tests of bindings/python", || python::tests(required));
}

/// From now on the calling thread, and the programs that it starts, run when nobody else wants to.
fn yield_to_others() {
    let level = libc::sched_param { sched_priority: 0 };
    // SAFETY: `level` outlives the call; 0 is the calling thread. That it fails is no harm: then the two share the processors.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const level) };
}

fn with_program(program: &Result<PathBuf>, check: fn(&Path) -> Outcome) -> Outcome {
    match program {
        Ok(program) => check(program),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// A command that passes or fails; its output is the developer's to read.
pub(crate) fn of(command: &mut Command) -> Outcome {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Outcome::Passed(String::new()),
        Ok(status) => Outcome::Failed(format!("{status}")),
        Err(error) => Outcome::Failed(format!("{}: {error}", command.get_program().to_string_lossy())),
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

/// All tests, or those in `extent`. `required` are the needs whose lack makes a test fail, not skip.
fn tests(extent: &[&str], required: &[&str]) -> (Outcome, Option<Counts>) {
    let mut test = cargo();
    test.args(["test", "--workspace", "--no-fail-fast"]).args(extent);
    if !required.is_empty() {
        println!("a test that is skipped for want of {} fails", required.join(", "));
        test.env("TRUEIO_REQUIRE", required.join(","));
    }
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        // Many wait for loads of a second, not for a processor: with one a processor half of the time is idle.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        test.env("RUST_TEST_THREADS", (2 * processors).to_string());
    }
    counted(&mut test, &[])
}

/// The Windows side of `crates/direct`, as far as Wine goes. Wine is nobody's duty to install.
fn tests_under_wine() -> (Outcome, Option<Counts>) {
    let target = "x86_64-pc-windows-gnu";
    let missing: Vec<&str> =
        ["wine", "x86_64-w64-mingw32-gcc"].into_iter().filter(|program| !has_program(program)).collect();
    if !missing.is_empty() {
        return (Outcome::optional(&format!("no {}", missing.join(", no "))), None);
    }
    let runner = workspace::root().join("crates/direct/tests/wine/run.sh");
    let mut test = cargo();
    test.args(["test", "--package", "trueio-direct", "--target", target, "--lib", "--tests", "--no-fail-fast"]);
    test.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", runner);
    counted(&mut test, &[])
}

/// Runs a `cargo test` and counts.
/// `names` are those of the tests to run, or their beginnings; none: all.
pub(crate) fn counted(test: &mut Command, names: &[&str]) -> (Outcome, Option<Counts>) {
    counted_to(test, names, &mut |line| println!("{line}"))
}

/// The same; `say` gets each line that is worth reading.
pub(crate) fn counted_to(test: &mut Command, names: &[&str], say: &mut dyn FnMut(&str)) -> (Outcome, Option<Counts>) {
    // So that a skipped test's reason is heard although it passes.
    test.args(["--", "--show-output"]).args(names);
    let mut child = match test.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return (Outcome::Failed(format!("cargo: {error}")), None),
    };
    let mut listener = TestListener::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            // Windows programs end their lines with CR LF.
            let line = line.trim_end_matches('\r');
            if listener.hears(line) {
                say(line);
            }
        }
    }
    ended(child, listener.counts)
}

/// Waits for a test run whose tests have been counted.
pub(crate) fn ended(mut child: Child, counts: Counts) -> (Outcome, Option<Counts>) {
    let words = format!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    let outcome = match child.wait() {
        Ok(status) if status.success() && counts.failed == 0 => Outcome::Passed(words),
        Ok(status) => Outcome::Failed(format!("{words}; {status}")),
        Err(error) => Outcome::Failed(error.to_string()),
    };
    (outcome, Some(counts))
}

/// Reads what test programs print: counts, and drops the words of tests that passed, which
/// `--show-output` adds, but for those of tests that were skipped.
#[derive(Default)]
struct TestListener {
    counts: Counts,
    is_in_successes: bool,
    /// True if the test whose words are read was counted as skipped.
    is_counted: bool,
    /// Skipped in the test program whose words are read.
    skipped_here: u64,
}

impl TestListener {
    /// Takes a line; true if it is worth printing.
    fn hears(&mut self, line: &str) -> bool {
        if line == "successes:" {
            self.is_in_successes = true;
        } else if line == "failures:" {
            self.is_in_successes = false;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.is_in_successes = false;
            let number = |word: &str| -> u64 {
                // `test result: ok. 5 passed; 0 failed; 1 ignored; …`
                let pieces = result.split(['.', ';']).map(str::trim);
                pieces.filter_map(|piece| piece.strip_suffix(word)?.trim().parse().ok()).next().unwrap_or(0)
            };
            // A skipped test returned, so the test program counts it as passed.
            let skipped = std::mem::take(&mut self.skipped_here);
            self.counts.passed += number("passed").saturating_sub(skipped);
            self.counts.failed += number("failed");
            self.counts.skipped += number("ignored") + skipped;
        } else if self.is_in_successes {
            if line.starts_with("---- ") {
                self.is_counted = false;
            }
            let is_skip = line.trim_start().get(..7).is_some_and(|word| word.eq_ignore_ascii_case("skipped"));
            // A test may lack several things; it is one test.
            if is_skip && !self.is_counted {
                self.is_counted = true;
                self.skipped_here += 1;
            }
            return is_skip;
        }
        !self.is_in_successes
    }
}

/// The option table's page is compared in a test of `crates/job`; here the built program is asked.
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
    if !has_program("rustup") {
        return Outcome::skipped("no rustup, so the target cannot be installed");
    }
    // Does nothing if it is there.
    let got = command("rustup").args(["target", "add", target]).stdin(Stdio::null()).output();
    match got {
        Ok(output) if output.status.success() => {
            of(cargo().args(["check", "--package", "trueio-direct", "--target", target]))
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Outcome::skipped(&format!("rustup cannot install the target: {}", said.lines().last().unwrap_or("")))
        }
        Err(error) => Outcome::skipped(&format!("rustup: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &str) -> (Counts, Vec<&str>) {
        let mut listener = TestListener::default();
        let printed = text.lines().filter(|line| listener.hears(line)).collect();
        (listener.counts, printed)
    }

    #[test]
    fn tests_are_summed_over_all_test_programs() {
        let (counts, _) = heard(
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
        );
        assert_eq!(counts, Counts { passed: 8, failed: 2, skipped: 1 });
    }

    #[test]
    fn a_test_that_says_skipped_is_not_counted_as_passed_and_its_reason_is_shown() {
        let text = "test a ... ok\ntest b ... ok\n\nsuccesses:\n\n---- a stdout ----\nSkipped(root): not root\nskipped: no loop\n\n\
            ---- b stdout ----\nmany words\n\n\nsuccesses:\n    a\n    b\n\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        let (counts, printed) = heard(text);
        assert_eq!(counts, Counts { passed: 1, failed: 0, skipped: 1 });
        assert!(printed.contains(&"Skipped(root): not root"));
        assert!(!printed.contains(&"many words"));
    }

    #[test]
    fn the_words_of_a_failed_test_are_shown() {
        let text = "successes:\n\n---- a stdout ----\nnoise\n\nfailures:\n\n---- b stdout ----\npanicked\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        let (_, printed) = heard(text);
        assert!(printed.contains(&"panicked") && !printed.contains(&"noise"));
    }

    #[test]
    fn a_skipped_step_fails_in_ci_unless_it_is_optional() {
        assert!(matches!(Outcome::skipped("x").judged(true), Outcome::Failed(_)));
        assert!(matches!(Outcome::skipped("x").judged(false), Outcome::Skipped { .. }));
        assert!(matches!(Outcome::optional("x").judged(true), Outcome::Skipped { .. }));
    }

    /// Goal: the closing line tells what was run, however it failed.
    /// Method: one step of each ending, a test run with tests, and one that did not even compile.
    #[test]
    fn the_closing_line_counts_tests_and_steps() {
        let step = |outcome, tests| Step { name: "s".into(), elapsed: Duration::ZERO, outcome, tests };
        let mut report = Report { is_ci: false, steps: Vec::new() };
        report.steps.push(step(Outcome::Passed(String::new()), None));
        report.steps.push(step(Outcome::optional("why"), None));
        let counts = Counts { passed: 7, failed: 0, skipped: 2 };
        report.steps.push(step(Outcome::Passed(String::new()), Some(counts)));
        let last = |report: &Report| report.closing().0.lines().last().unwrap_or_default().to_owned();
        assert_eq!(last(&report), "8 passed, 0 failed, 3 skipped");
        report.steps.push(step(Outcome::Failed("did not compile".into()), Some(Counts::default())));
        report.steps.push(step(Outcome::Failed("b".into()), Some(Counts { passed: 1, failed: 2, skipped: 0 })));
        assert_eq!(last(&report), "9 passed, 3 failed, 3 skipped");
    }
}
