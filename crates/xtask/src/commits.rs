//! Checks the subjects of commits that are not pushed yet.
//!
//! A subject is `area: do X`, at most 72 characters, and describes a change: no merge, no commit that
//! only formats, no `fixup!`. Compares with the upstream of the current branch; without one (a detached
//! checkout, a branch that was never pushed) there is nothing to compare with, and the check passes.
//!
//! Cannot see: whether the verb is imperative, and whether the commit holds one change.

use crate::step::Outcome;
use crate::workspace::command;
use std::process::Stdio;

const SUBJECT_CHARS_MAX: usize = 72;

/// Checks the commits between the upstream branch and `HEAD`.
pub(crate) fn check() -> Outcome {
    // One commit per line: its parents, a tab, its subject.
    let log = command("git").args(["log", "--format=%P%x09%s", "@{upstream}..HEAD"]).stdin(Stdio::null()).output();
    match log {
        Ok(output) if output.status.success() => judge(&String::from_utf8_lossy(&output.stdout)),
        Ok(_) => Outcome::Passed("no upstream branch to compare with".into()),
        Err(error) => Outcome::Passed(format!("git: {error}")),
    }
}

/// Judges lines of parents and subject.
fn judge(log: &str) -> Outcome {
    let mut faults = Vec::new();
    let mut count = 0;
    for (parents, subject) in log.lines().filter_map(|line| line.split_once('\t')) {
        count += 1;
        if parents.split_whitespace().count() > 1 {
            faults.push(format!("`{subject}`: a merge; rebase instead"));
        } else if let Some(fault) = fault(subject) {
            faults.push(format!("`{subject}`: {fault}"));
        }
    }
    match faults.is_empty() {
        true => Outcome::Passed(format!("{count} unpushed")),
        false => Outcome::Failed(faults.join("; ")),
    }
}

/// Returns what is wrong with a subject.
fn fault(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > SUBJECT_CHARS_MAX {
        return Some(format!("{length} characters, at most {SUBJECT_CHARS_MAX}"));
    }
    let is_area =
        |area: &str| !area.is_empty() && area.chars().all(|c| c.is_ascii_alphanumeric() || " ,./_-".contains(c));
    let Some((_, action)) = subject.split_once(": ").filter(|(area, _)| is_area(area)) else {
        return Some("not of the form `area: do X`".into());
    };
    let action = action.trim().to_lowercase();
    let is_format_only = ["fmt", "cargo fmt", "rustfmt", "reformat", "formatting", "whitespace"].iter().any(|words| {
        action.strip_prefix(words).is_some_and(|rest| rest.chars().next().is_none_or(|next| !next.is_alphanumeric()))
    }) || ["format", "run rustfmt", "run cargo fmt", "fix formatting", "format code"]
        .contains(&action.as_str());
    is_format_only.then(|| "only formats; fold it into the commit that it belongs to".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_of_the_form_area_do_x_pass() {
        for subject in [
            "engine: report a short read by its length",
            "engine/io_uring: reap in batches",
            "store, evidence: fix two tests that fail under load",
            "report: format numbers in SI units",
            "xtask: reformatted tables keep their width",
        ] {
            assert_eq!(fault(subject), None, "{subject}");
        }
    }

    #[test]
    fn long_shapeless_and_format_only_subjects_fail() {
        let long = format!("engine: {}", "x".repeat(65));
        for (subject, words) in [
            (long.as_str(), "73 characters"),
            ("Fix the build", "`area: do X`"),
            ("fixup! engine: report a short read", "`area: do X`"),
            (": nothing", "`area: do X`"),
            ("job: cargo fmt", "only formats"),
            ("workspace: rustfmt, edition 2024", "only formats"),
            ("cli: Formatting", "only formats"),
        ] {
            let fault = fault(subject).unwrap_or_default();
            assert!(fault.contains(words), "{subject}: {fault}");
        }
    }

    #[test]
    fn merges_fail_and_a_branch_without_new_commits_passes() {
        assert_eq!(judge(""), Outcome::Passed("0 unpushed".into()));
        assert_eq!(judge("abc\tjob: read tables\n"), Outcome::Passed("1 unpushed".into()));
        let Outcome::Failed(text) = judge("abc def\tjob: merge main\nabc\tdone\n") else { panic!("it passed") };
        assert_eq!(text, "`job: merge main`: a merge; rebase instead; `done`: not of the form `area: do X`");
    }
}
