//! Is the table of `cargo xtask bench engine` in docs/dev/performance.md older than the engine? A step of `cargo xtask ci`.
//!
//! A figure that was measured before the code changed describes another program. The table names the day and the commit
//! that it was measured on. It is too old if the engine's last change came more than 30 days later, or if more than 50 commits
//! changed the engine since.
//!
//! Limits: counted by git, so a shallow clone is skipped. It does not see which change made a row false: up to 50 commits pass.

use super::table::found_between;
use crate::step::Outcome;
use crate::workspace::{command, root};
use anyhow::{Context, Result};
use std::process::Stdio;

/// What the table is about.
const ENGINE: &str = "crates/engine";
const DAYS_MAX: i64 = 30;
const COMMITS_MAX: u64 = 50;

/// Compares the table with the history.
pub(crate) fn check() -> Outcome {
    let git = |args: &[&str]| {
        let output = command("git").args(args).stdin(Stdio::null()).output().ok().filter(|out| out.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match git(&["rev-parse", "--is-shallow-repository"]).as_deref() {
        Some("false") => {}
        Some(_) => return Outcome::optional("a shallow clone does not have the engine's history"),
        None => return Outcome::optional("no git, or no repository"),
    }
    match judge(&git) {
        Ok((text, true)) => Outcome::Passed(text),
        Ok((text, false)) => Outcome::Failed(format!(
            "{text}: measure again on an idle machine (`cargo xtask bench engine --markdown docs/dev/performance.md`)"
        )),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// The standing of the table as text, and whether it is young enough.
fn judge(git: &dyn Fn(&[&str]) -> Option<String>) -> Result<(String, bool)> {
    let page = std::fs::read_to_string(root().join("docs/dev/performance.md")).context("docs/dev/performance.md")?;
    let table = found_between(&page, "bench").context("docs/dev/performance.md has no table of `bench engine`")?;
    let measured = Measured::of(table).context("the table of `bench engine` names no day")?;
    let last_day = git(&["log", "-1", "--format=%cs", "--", ENGINE]).context("git log of the engine")?;
    let last_day = day_number(&last_day).context("git log of the engine has no day")?;
    // A commit that is not in the history any more (rebased) is as good as none.
    let known = measured.commit.as_deref().filter(|commit| git(&["cat-file", "-e", commit]).is_some());
    let commits = match known {
        Some(commit) => git(&["rev-list", "--count", &format!("{commit}..HEAD"), "--", ENGINE]),
        // The rest of that day may come before or after the measurement.
        None => git(&["rev-list", "--count", &format!("--since={}T23:59:59Z", measured.day), "HEAD", "--", ENGINE]),
    };
    let commits = commits.and_then(|count| count.parse().ok()).context("git rev-list of the engine")?;
    let days = last_day - day_number(&measured.day).context("the day of the table")?;
    Ok(verdict(days, commits))
}

fn verdict(days: i64, commits: u64) -> (String, bool) {
    let text = format!(
        "the engine changed {commits} times (at most {COMMITS_MAX}) and until {} days (at most {DAYS_MAX}) after its table was measured",
        days.max(0)
    );
    (text, days <= DAYS_MAX && commits <= COMMITS_MAX)
}

/// What a table says of its own origin.
#[derive(Debug, PartialEq)]
struct Measured {
    /// As 2026-11-24.
    day: String,
    commit: Option<String>,
}

impl Measured {
    fn of(table: &str) -> Option<Self> {
        let words = || table.split([' ', ',', '.', '\n']).filter(|word| !word.is_empty());
        let day = words().find(|word| day_number(word).is_some())?.to_owned();
        let commit = words().skip_while(|word| *word != "commit").nth(1);
        let commit = commit.filter(|word| word.len() >= 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit()));
        Some(Self { day, commit: commit.map(str::to_owned) })
    }
}

/// Days since 1970-01-01 of a date such as 2026-11-24.
///
/// Source: Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
fn day_number(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let mut next = |length: usize| parts.next().filter(|part| part.len() == length)?.parse::<i64>().ok();
    let (year, month, day) = (next(4)?, next(2)?, next(2)?);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_number() {
        assert_eq!(day_number("1970-01-01"), Some(0));
        assert_eq!(day_number("2000-03-01"), Some(11_017));
        assert_eq!(day_number("2026-11-24"), Some(20_781));
        for text in ["", "2026", "26-11-24", "2026-13-01", "2026-11-24-1", "fio-3.33", "2026-1-24"] {
            assert_eq!(day_number(text), None, "{text}");
        }
    }

    #[test]
    fn the_day_and_the_commit_are_read_from_the_table() {
        let table = "\n7 pairs of 2 s, 2026-11-24, commit 0123456789ab with changes, program fedc, Linux 6.18.44.\n";
        let measured = Measured::of(table).expect("it has a day");
        assert_eq!(measured, Measured { day: "2026-11-24".into(), commit: Some("0123456789ab".into()) });
        let old = Measured::of("7 pairs of 2 s, 2026-11-20, 2 × AMD EPYC").expect("it has a day");
        assert_eq!(old, Measured { day: "2026-11-20".into(), commit: None });
        assert_eq!(Measured::of("| goal | measure |"), None);
    }

    #[test]
    fn thirty_days_and_fifty_commits_are_the_most() {
        for (days, commits, is_young) in [(-3, 0, true), (30, 50, true), (31, 0, false), (0, 51, false)] {
            assert_eq!(verdict(days, commits).1, is_young, "{days} days, {commits} commits");
        }
    }

    /// Goal: the check fails on a history that goes on.
    /// Method: the real page, and a git that counts 51 commits, or names a last change 40 days later.
    #[test]
    fn a_history_that_went_on_is_found() {
        let page = std::fs::read_to_string(root().join("docs/dev/performance.md")).expect("the page");
        let day = Measured::of(found_between(&page, "bench").expect("a table")).expect("a day").day;
        let of = |last_day: String, commits: &'static str| {
            judge(&move |args: &[&str]| match args[0] {
                "log" => Some(last_day.clone()),
                "rev-list" => Some(commits.to_owned()),
                _ => Some(String::new()),
            })
            .expect("a verdict")
            .1
        };
        assert!(of(day.clone(), "50"));
        assert!(!of(day.clone(), "51"));
        let year: u32 = day[..4].parse().expect("a year");
        assert!(!of(format!("{}-12-31", year + 1), "0"));
    }
}
