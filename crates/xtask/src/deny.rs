//! Checks the dependencies by cargo-deny: advisories, licences, duplicate versions, sources.
//!
//! deny.toml holds what is accepted, with reasons. Checked are the lock files of all that is shipped: the workspace's and
//! that of `bindings/python`. Advisories need the database of RustSec; if it cannot be
//! fetched, the other checks still count, and the outcome states that advisories were not checked.
//!
//! Limit: an advisory about Rust's standard library or about C code in a crate is found only if the crate has it.

use crate::step::Outcome;
use crate::workspace::{command, has_program};
use std::process::{Command, Stdio};

/// The checks that need no database.
const WITHOUT_DATABASE: [&str; 3] = ["bans", "licenses", "sources"];
/// Manifests, with what deny.toml holds that does not apply to them.
const MANIFESTS: [(&str, &[&str]); 2] =
    [("Cargo.toml", &["license-exception-not-encountered"]), ("bindings/python/Cargo.toml", &UNUSED)];
const UNUSED: [&str; 3] = ["unmatched-skip", "unnecessary-skip", "license-not-encountered"];

/// Runs the four checks on each lock file; skipped without cargo-deny.
pub(crate) fn run() -> Outcome {
    if !has_program("cargo-deny") {
        return Outcome::optional("no cargo-deny (`cargo install cargo-deny --locked`)");
    }
    let first = MANIFESTS.map(|(manifest, unused)| of(&mut check(manifest, unused, &WITHOUT_DATABASE)));
    let fetched = fetch();
    let advisories = match &fetched {
        Ok(()) => MANIFESTS.map(|(manifest, _)| of(&mut check(manifest, &[], &["advisories"]))).to_vec(),
        Err(_) => Vec::new(),
    };
    judge(&[first.to_vec(), advisories].concat(), fetched)
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
fn fetch() -> Result<(), String> {
    let output = deny("Cargo.toml").args(["fetch", "db"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cargo-deny: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim_end().lines().last().unwrap_or_default();
    Err(format!("their database cannot be fetched: {last}"))
}

fn check(manifest: &str, unused: &[&str], checks: &[&str]) -> Command {
    let mut check = deny(manifest);
    check.arg("check").args(unused.iter().flat_map(|code| ["--allow", *code])).args(checks);
    check
}

fn deny(manifest: &str) -> Command {
    let mut deny = command("cargo-deny");
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
    /// Method: a licence less, and a version less among the exceptions; then the configuration as it is. Needs cargo-deny.
    #[test]
    fn a_licence_or_a_second_version_that_is_not_allowed_is_found() {
        if !has_program("cargo-deny") {
            println!("skipped: no cargo-deny");
            return;
        }
        let whole = std::fs::read_to_string(crate::workspace::root().join("deny.toml")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let is_accepted = |config: &str| {
            let path = folder.path().join("deny.toml");
            std::fs::write(&path, config).unwrap();
            let mut deny = command("cargo-deny");
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
