//! The result of a step of the checks, and the commands and test runs that are steps.
//!
//! A test run counts by its tests. A test that prints a line beginning with `skipped` and returns is
//! counted as skipped, and its reason is printed.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// Passed; with details, or an empty text.
    Passed(String),
    /// Failed; with the reason.
    Failed(String),
    /// Not run.
    Skipped {
        /// The reason.
        reason: String,
        /// True if `CI=true` allows the skip.
        is_optional: bool,
    },
}

impl Outcome {
    /// Returns a skip that fails with `CI=true`.
    pub(crate) fn skipped(reason: &str) -> Self {
        Outcome::Skipped { reason: reason.into(), is_optional: false }
    }

    /// Returns a skip that CI allows.
    pub(crate) fn optional(reason: &str) -> Self {
        Outcome::Skipped { reason: reason.into(), is_optional: true }
    }

    /// Returns the outcome of findings (one per line, and whether they passed); an error is a failure.
    pub(crate) fn from_lines(lines: Result<(Vec<String>, bool)>) -> Self {
        match lines {
            Ok((lines, true)) => Outcome::Passed(lines.join("; ")),
            Ok((lines, false)) => Outcome::Failed(lines.join("; ")),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }

    /// Turns a skip into a failure if CI does not allow it.
    pub(crate) fn judged(self, is_ci: bool) -> Self {
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

/// Numbers of tests that passed, failed and were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// Runs a command whose exit status is the outcome; its output goes to the terminal.
pub(crate) fn of(command: &mut Command) -> Outcome {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Outcome::Passed(String::new()),
        Ok(status) => Outcome::Failed(format!("{status}")),
        Err(error) => Outcome::Failed(format!("{}: {error}", command.get_program().to_string_lossy())),
    }
}

/// Runs a `cargo test`, prints its output and counts its tests. `names` are prefixes of test names; empty for all.
pub(crate) fn counted(test: &mut Command, names: &[&str]) -> (Outcome, Option<Counts>) {
    counted_to(test, names, &mut |line| println!("{line}"))
}

/// Like [`counted`], but passes each line to print to `say`. `names` may be other arguments of the test programs, too.
pub(crate) fn counted_to(test: &mut Command, names: &[&str], say: &mut dyn FnMut(&str)) -> (Outcome, Option<Counts>) {
    // Shows the reason of a skipped test, which the test program counts as passed.
    test.args(["--", "--show-output"]).args(names);
    let mut child = match test.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return (Outcome::Failed(format!("cargo: {error}")), None),
    };
    let mut output = TestOutput::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            // Windows programs end their lines with CR LF.
            let line = line.trim_end_matches('\r');
            if output.should_print(line) {
                say(line);
            }
        }
    }
    ended(child, output.counts, &output.failures)
}

/// Waits for a test run to end and returns its outcome with `counts`. The reason of a failure has the first `failures`: what
/// was printed before is often cut off.
pub(crate) fn ended(mut child: Child, counts: Counts, failures: &[String]) -> (Outcome, Option<Counts>) {
    let text = format!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    let outcome = match child.wait() {
        Ok(status) if status.success() && counts.failed == 0 => Outcome::Passed(text),
        Ok(status) => {
            let failures = failures.iter().take(FAILURES_MAX).map(|failure| format!("\n    {failure}"));
            Outcome::Failed(format!("{text}; {status}{}", failures.collect::<String>()))
        }
        Err(error) => Outcome::Failed(error.to_string()),
    };
    (outcome, Some(counts))
}

/// Failures that the reason of a failed test run has.
const FAILURES_MAX: usize = 20;
/// Lines of a failed test's output from its panic, or the error that it returned, on, and characters of each, that are kept.
const FAILURE_LINES: usize = 8;
const FAILURE_LINE_CHARS: usize = 300;

/// A parser of test output: counts tests, keeps what failed tests say, and hides the output of passed tests that
/// `--show-output` adds, except that of skipped tests.
#[derive(Default)]
struct TestOutput {
    counts: Counts,
    is_in_successes: bool,
    /// True if the test whose output is read was counted as skipped.
    is_counted: bool,
    /// Skipped tests of the test program whose output is read.
    skipped_here: u64,
    /// A text for each failed test: its name, then its output from the panic or error on.
    failures: Vec<String>,
    /// Lines that the last of `failures` still takes: `None` before its panic, or outside of the output of failed tests.
    failure_lines_left: Option<usize>,
    is_in_failures: bool,
}

impl TestOutput {
    /// Reads a line; returns true if it should be printed.
    fn should_print(&mut self, line: &str) -> bool {
        if line == "successes:" {
            self.is_in_successes = true;
        } else if line == "failures:" {
            self.is_in_successes = false;
            // The second list has the names only.
            self.is_in_failures = !self.is_in_failures;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.is_in_successes = false;
            self.is_in_failures = false;
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
        } else if self.is_in_failures {
            self.keep(line);
        }
        !self.is_in_successes
    }

    /// Keeps a line of the output of failed tests, if it belongs to a panic or an error.
    fn keep(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.failures.push(name.to_owned());
            self.failure_lines_left = None;
            return;
        }
        // Calls of the test program follow, which the lines before name already.
        if line == "stack backtrace:" {
            self.failure_lines_left = Some(0);
        }
        if self.failure_lines_left.is_none() && (line.contains("panicked at") || line.starts_with("Error: ")) {
            self.failure_lines_left = Some(FAILURE_LINES);
        }
        if let (Some(left @ 1..), Some(failure)) = (self.failure_lines_left.as_mut(), self.failures.last_mut())
            && !line.trim().is_empty()
        {
            *left -= 1;
            *failure += "\n        ";
            failure.extend(line.chars().take(FAILURE_LINE_CHARS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &str) -> (Counts, Vec<&str>) {
        let mut output = TestOutput::default();
        let printed = text.lines().filter(|line| output.should_print(line)).collect();
        (output.counts, printed)
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
    fn the_reason_of_a_failed_run_has_the_names_and_panics_of_failed_tests() {
        let text = "test a ... ok\ntest b ... FAILED\ntest c ... FAILED\n\nsuccesses:\n\n---- a stdout ----\npanicked at a\n\n\
            successes:\n    a\n\nfailures:\n\n---- b stdout ----\nmany words\n\nthread 'b' panicked at b.rs:1:1:\nleft: 1\nstack backtrace:\n   0: f\n\n\
            ---- c stdout ----\nError: no file\n\nfailures:\n    b\n    c\n\n\
            test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\npanicked at the end";
        let mut output = TestOutput::default();
        text.lines().for_each(|line| _ = output.should_print(line));
        assert_eq!(
            output.failures,
            ["b\n        thread 'b' panicked at b.rs:1:1:\n        left: 1", "c\n        Error: no file"]
        );
        let child = Command::new("false").spawn().unwrap();
        let (outcome, _) = ended(child, output.counts, &output.failures);
        let Outcome::Failed(why) = outcome else { panic!("{outcome}") };
        assert_eq!(why.lines().next(), Some("1 passed, 2 failed, 0 skipped; exit status: 1"));
        assert_eq!(why.lines().count(), 6);
    }

    #[test]
    fn a_test_that_prints_skipped_is_not_counted_as_passed_and_its_reason_is_shown() {
        let text = "test a ... ok\ntest b ... ok\n\nsuccesses:\n\n---- a stdout ----\nSkipped(root): not root\nskipped: no loop\n\n\
            ---- b stdout ----\nmany words\n\n\nsuccesses:\n    a\n    b\n\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        let (counts, printed) = heard(text);
        assert_eq!(counts, Counts { passed: 1, failed: 0, skipped: 1 });
        assert!(printed.contains(&"Skipped(root): not root"));
        assert!(!printed.contains(&"many words"));
    }

    #[test]
    fn the_output_of_a_failed_test_is_shown() {
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
}
