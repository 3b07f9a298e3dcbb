//! The tests of `bindings/node` and `bindings/node-program`, as steps of `cargo xtask ci`.
//!
//! The compiled half is built with cargo, the dependencies of the tests are fetched with `npm ci` (scripts of packages
//! are not run), and `node --test` runs the tests. Each test counts as one.
//!
//! Limit: the installed Node is used, or that of apt (18 or later); no newer one is fetched.

use crate::setup;
use crate::step::{Counts, Outcome, ended};
use crate::workspace::{self, command};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds, fetches and runs the tests. A test that lacks one of the `required` needs fails instead of skipping.
pub(crate) fn tests(is_ci: bool, required: &[&str]) -> (Outcome, Option<Counts>) {
    match setup::install(&[("nodejs", "node"), ("npm", "npm")]) {
        Ok(what) => println!("{what}"),
        Err(why_not) => return (Outcome::skipped(&why_not), None),
    }
    let folder = folder();
    for (what, begun) in [("the build", build(&folder)), ("`npm ci`", fetch(&folder.join("test")))] {
        if let Err(why) = begun {
            return (Outcome::Failed(format!("{what}: {why}")), None);
        }
    }
    let mut names: Vec<String> = std::fs::read_dir(folder.join("test"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".test.js"))
        .map(|name| format!("test/{name}"))
        .collect();
    names.sort();
    let mut test = command("node");
    test.current_dir(&folder).args(["--test", "--test-reporter=spec"]).args(names).env("NO_COLOR", "1");
    if is_ci {
        // Node's headers come with Node; upstream's library is compiled against them.
        test.env("TRUEIO_REQUIRE", [required, &["node-headers"]].concat().join(","));
    }
    counted(&mut test)
}

/// Uses the recipes of the binding's README for bundlers and single executables, and Bun. What npm cannot fetch is optional.
pub(crate) fn recipes() -> (Outcome, Option<Counts>) {
    match setup::install(&[("nodejs", "node"), ("npm", "npm")]) {
        Ok(what) => println!("{what}"),
        Err(why_not) => return (Outcome::skipped(&why_not), None),
    }
    let folder = folder();
    if let Err(why) = build(&folder) {
        return (Outcome::Failed(format!("the build: {why}")), None);
    }
    if let Err(why) = fetch(&folder.join("test/recipes")) {
        return (Outcome::optional(&format!("npm does not fetch the bundlers: {why}")), None);
    }
    let mut test = command("node");
    test.current_dir(&folder).args(["--test", "--test-reporter=spec", "test/recipes/recipes.test.js"]);
    counted(test.env("NO_COLOR", "1"))
}

/// Packs, installs and tests the npm package of the program, `bindings/node-program`.
pub(crate) fn tests_of_program() -> (Outcome, Option<Counts>) {
    match setup::install(&[("nodejs", "node"), ("npm", "npm")]) {
        Ok(what) => println!("{what}"),
        Err(why_not) => return (Outcome::skipped(&why_not), None),
    }
    // As the tests of the workspace build it; debug information is most of it, and would be compressed.
    let stripped = || -> Result<PathBuf, String> {
        succeeds(workspace::cargo().args(["build", "--quiet", "--package", "trueio-cli"]))?;
        let target = workspace::target_dir().map_err(|error| format!("{error:#}"))?;
        let folder = target.join("node-program");
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let program = folder.join("trueio");
        succeeds(command("strip").arg("-o").arg(&program).arg(target.join("debug/trueio")))?;
        Ok(program)
    };
    let program = match stripped() {
        Ok(program) => program,
        Err(why) => return (Outcome::Failed(why), None),
    };
    let mut test = command("node");
    test.current_dir(workspace::root().join("bindings/node-program"))
        .env("NO_COLOR", "1")
        .env("TRUEIO_TEST_PROGRAM", program);
    counted(test.args(["--test", "--test-reporter=spec", "test/package.test.js"]))
}

/// The directory of the binding.
pub(crate) fn folder() -> PathBuf {
    workspace::root().join("bindings/node")
}

/// Measures the binding against upstream's package; returns `false` if a row is slower.
pub(crate) fn bench(options: &[&str]) -> anyhow::Result<bool> {
    let folder = folder();
    let prepare = || {
        succeeds(command("node").current_dir(&folder).args(["scripts/build.js", "--release"]))?;
        fetch(&folder.join("test"))
    };
    prepare().map_err(anyhow::Error::msg)?;
    // Paths in options are relative to the caller's directory; this runs in the root of the repository.
    let mut bench = command("node");
    bench.arg("bindings/node/scripts/bench.js").args(options).stdin(Stdio::null());
    Ok(bench.status()?.success())
}

fn build(folder: &Path) -> Result<(), String> {
    succeeds(command("node").current_dir(folder).arg("scripts/build.js"))
}

/// Fetches the packages of the lock file, unless they are installed.
fn fetch(folder: &Path) -> Result<(), String> {
    let time = |name: &str| std::fs::metadata(folder.join(name)).and_then(|metadata| metadata.modified());
    // npm writes the first of these at its end.
    if let (Ok(fetched), Ok(locked)) = (time("node_modules/.package-lock.json"), time("package-lock.json"))
        && fetched >= locked
    {
        return Ok(());
    }
    succeeds(command("npm").current_dir(folder).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]))
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(format!("{}: {error}", command.get_program().to_string_lossy())),
    }
}

/// Runs a `node --test` and counts.
fn counted(test: &mut Command) -> (Outcome, Option<Counts>) {
    let mut child = match test.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return (Outcome::Failed(format!("node: {error}")), None),
    };
    let (mut counts, mut failures) = (Counts::default(), Vec::new());
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            count(&mut counts, &line);
            // Each comes again, with its output, in the list at the end.
            if line.trim_start().starts_with('✖') && counts == Counts::default() {
                failures.push(line.trim().to_owned());
            }
            println!("{line}");
        }
    }
    if counts == Counts::default() {
        let why = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        return (Outcome::Failed(format!("node ran no test; {why}")), None);
    }
    ended(child, counts, &failures)
}

/// Takes a line of the closing sums of `--test-reporter=spec`: `ℹ pass 28`.
fn count(counts: &mut Counts, line: &str) {
    let Some((word, number)) = line.strip_prefix("ℹ ").and_then(|rest| rest.split_once(' ')) else { return };
    let Ok(number) = number.trim().parse::<u64>() else { return };
    match word {
        "pass" => counts.passed += number,
        "fail" | "cancelled" => counts.failed += number,
        "skipped" | "todo" => counts.skipped += number,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_node_are_counted_and_nothing_else_is() {
        let mut counts = Counts::default();
        let text = "✔ ℹ pass 99 (1ms)\nℹ tests 12\nℹ suites 0\nℹ pass 7\nℹ fail 2\nℹ cancelled 1\nℹ skipped 2\nℹ todo 0\n\
            ℹ duration_ms 1087.93";
        text.lines().for_each(|line| count(&mut counts, line));
        assert_eq!(counts, Counts { passed: 7, failed: 3, skipped: 2 });
    }
}
