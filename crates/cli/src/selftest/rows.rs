//! What a staged lie or an honest run came to, and what that means for the whole.
//!
//! A lie is caught if every finding that it must meet was made, by name: other checks may object
//! too, but they do not stand in for the one that is meant for it. An honest run is accused if one
//! of the checks it is to leave silent objects, or if it fails.

use serde_json::{Value, json};

/// A finding of trueio about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// `refused while planning`, `run failed`, `contradicted`, `suspect`, `not printed`.
    pub(super) how: &'static str,
    /// The check or the rule.
    pub(super) by: String,
    /// Its sentence.
    pub(super) sentence: String,
}

impl Finding {
    pub(super) fn new(how: &'static str, by: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { how, by: by.into(), sentence: sentence.into() }
    }
}

/// How a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// A lie, and it was found by the checks that are meant for it.
    Caught,
    /// A lie, and it was not.
    Missed,
    /// An honest run, and no check objected.
    Silent,
    /// An honest run that was accused.
    Accused,
    /// It could not be staged on this machine; the row's last words say why.
    NotStaged,
}

impl Ending {
    pub(super) fn word(self) -> &'static str {
        match self {
            Ending::Caught => "caught",
            Ending::Missed => "MISSED",
            Ending::Silent => "honest",
            Ending::Accused => "ACCUSED",
            Ending::NotStaged => "not staged",
        }
    }
}

/// One row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// True for an honest run.
    pub(super) is_honest: bool,
    /// The lie, or what was done honestly.
    pub(super) name: String,
    /// What a tool that trusts its calls would have reported.
    pub(super) trusting: String,
    /// Findings that bear on it.
    pub(super) findings: Vec<Finding>,
    /// Other objections, by name.
    pub(super) others: Vec<String>,
    /// How it ended.
    pub(super) ending: Ending,
    /// Why it was not staged.
    pub(super) why_not: String,
}

impl Row {
    /// A lie; each of `meant` is a list of names of which one must object.
    pub(super) fn lie(name: &str, trusting: String, all: Vec<Finding>, meant: &[&[&str]]) -> Self {
        let mut findings = Vec::new();
        for names in meant {
            // In the order of the names: the first fits best.
            let found = names.iter().find_map(|name| all.iter().find(|finding| finding.by == *name));
            findings.extend(found.cloned());
        }
        let ending = if findings.len() == meant.len() { Ending::Caught } else { Ending::Missed };
        let others = names_beside(&all, &findings);
        Self { is_honest: false, name: name.to_owned(), trusting, findings, others, ending, why_not: String::new() }
    }

    /// An honest run of which the checks `silent` must say nothing.
    pub(super) fn honest(name: &str, trusting: String, all: &[Finding], silent: &[&str]) -> Self {
        let is_accusation = |finding: &&Finding| finding.how == "run failed" || silent.contains(&finding.by.as_str());
        let findings: Vec<Finding> = all.iter().filter(is_accusation).cloned().collect();
        let ending = if findings.is_empty() { Ending::Silent } else { Ending::Accused };
        let others = names_beside(all, &findings);
        Self { is_honest: true, name: name.to_owned(), trusting, findings, others, ending, why_not: String::new() }
    }

    /// What could not be staged.
    pub(super) fn not_staged(is_honest: bool, name: &str, why: &str) -> Self {
        Self {
            is_honest,
            name: name.to_owned(),
            trusting: String::new(),
            findings: Vec::new(),
            others: Vec::new(),
            ending: Ending::NotStaged,
            why_not: why.to_owned(),
        }
    }

    /// For people: a heading and what hangs under it.
    pub(super) fn text(&self, width: usize) -> String {
        const LABEL: usize = 12;
        let mut out = format!("{:10}  {}\n", self.ending.word(), self.name);
        let mut line = |label: &str, text: &str| wrap(&mut out, &format!("{:LABEL$}{label:8}  ", ""), text, width);
        match self.ending {
            Ending::NotStaged => line("because", &self.why_not),
            _ => line(if self.is_honest { "figure" } else { "trusting" }, &self.trusting),
        }
        for finding in &self.findings {
            line("trueio", &format!("{} ({}): {}", finding.how, finding.by, finding.sentence));
        }
        match self.ending {
            Ending::Missed if self.findings.is_empty() => line("trueio", "nothing that bears on it"),
            Ending::Silent if self.others.is_empty() => line("trueio", "no objection"),
            Ending::Silent => line("trueio", "no objection by the checks in question"),
            _ => {}
        }
        if !self.others.is_empty() {
            line("", &format!("also: {}", self.others.join(", ")));
        }
        out
    }

    /// For machines.
    pub(super) fn json(&self) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|finding| json!({"how": finding.how, "by": finding.by, "sentence": finding.sentence}))
            .collect();
        json!({
            "name": self.name,
            "is_honest": self.is_honest,
            "trusting": self.trusting,
            "said": findings,
            "also": self.others,
            "ending": self.ending.word().to_lowercase().replace(' ', "_"),
            "why_not_staged": self.why_not,
        })
    }
}

fn names_beside(all: &[Finding], findings: &[Finding]) -> Vec<String> {
    let beside = all.iter().filter(|one| !findings.contains(one) && one.how != "run failed");
    beside.map(|one| one.by.clone()).collect()
}

/// Appends `text`, wrapped; later lines begin under the first one's text.
fn wrap(out: &mut String, first: &str, text: &str, width: usize) {
    let hang = first.chars().count();
    out.push_str(first);
    let mut column = hang;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > hang && column + 1 + length > width {
            out.push_str(&format!("\n{:hang$}", ""));
            column = hang;
        }
        if column > hang {
            out.push(' ');
            column += 1;
        }
        out.extend(word.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }));
        column += length;
    }
    out.push('\n');
}

/// All rows together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) staged: usize,
    pub(super) caught: usize,
    pub(super) missed: usize,
    pub(super) not_staged: usize,
    pub(super) honest: usize,
    pub(super) accused: usize,
    /// Why lies were not staged, each reason once.
    pub(super) reasons: Vec<String>,
}

impl Count {
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut count = Self::default();
        for row in rows {
            match row.ending {
                Ending::Caught => count.caught += 1,
                Ending::Missed => count.missed += 1,
                Ending::Silent => count.honest += 1,
                Ending::Accused => (count.honest, count.accused) = (count.honest + 1, count.accused + 1),
                Ending::NotStaged if row.is_honest => {}
                Ending::NotStaged => {
                    count.not_staged += 1;
                    if !count.reasons.contains(&row.why_not) {
                        count.reasons.push(row.why_not.clone());
                    }
                }
            }
        }
        count.staged = count.caught + count.missed;
        count
    }

    /// True if trueio did what it promises: no lie passed, and no honest run was accused.
    pub(super) fn is_good(&self) -> bool {
        self.missed == 0 && self.accused == 0
    }

    pub(super) fn text(&self) -> String {
        let why = if self.reasons.is_empty() { String::new() } else { format!(" ({})", self.reasons.join("; ")) };
        format!(
            "{} lies staged, {} caught, {} missed, {} could not be staged here{why}\n{} honest runs, {} accused\n",
            self.staged, self.caught, self.missed, self.not_staged, self.honest, self.accused
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "staged": self.staged, "caught": self.caught, "missed": self.missed, "not_staged": self.not_staged,
            "honest": self.honest, "accused": self.accused,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(by: &str) -> Finding {
        Finding::new("suspect", by, "A sentence.")
    }

    fn lie(objections: &[&str]) -> Row {
        let all = objections.iter().map(|by| said(by)).collect();
        Row::lie("a hole", "1 IOPS".to_owned(), all, &[&["holes", "page_cache"]])
    }

    fn honest(objections: &[&str]) -> Row {
        let all: Vec<Finding> = objections.iter().map(|by| said(by)).collect();
        Row::honest("a read", "1 IOPS".to_owned(), &all, &["holes"])
    }

    #[test]
    fn a_lie_is_caught_only_by_a_check_that_is_meant_for_it() {
        assert_eq!(lie(&["holes"]).ending, Ending::Caught);
        assert_eq!(lie(&["foreign_io", "page_cache"]).ending, Ending::Caught);
        assert_eq!(lie(&["foreign_io"]).ending, Ending::Missed);
        assert_eq!(lie(&[]).ending, Ending::Missed);
        let both: &[&[&str]] = &[&["direct_impossible"], &["direct_granted"]];
        let half = Row::lie("tmpfs", String::new(), vec![said("direct_granted")], both);
        assert_eq!(half.ending, Ending::Missed, "every finding that is meant must be made");
    }

    #[test]
    fn an_honest_run_is_accused_by_the_checks_in_question_and_by_failing() {
        assert_eq!(honest(&[]).ending, Ending::Silent);
        assert_eq!(honest(&["foreign_io"]).ending, Ending::Silent);
        assert_eq!(honest(&["foreign_io", "holes"]).ending, Ending::Accused);
        let failed = Finding::new("run failed", "outcome", "EIO");
        assert_eq!(Row::honest("a read", String::new(), &[failed], &[]).ending, Ending::Accused);
    }

    #[test]
    fn one_missed_lie_or_one_accused_run_spoils_the_whole() {
        let not_staged = || Row::not_staged(false, "tmpfs", "mounting needs root");
        let good = Count::of(&[lie(&["holes"]), honest(&[]), not_staged(), not_staged()]);
        assert!(good.is_good(), "what could not be staged was not missed");
        assert_eq!(
            good.text(),
            "1 lies staged, 1 caught, 0 missed, 2 could not be staged here (mounting needs root)\n1 honest runs, 0 accused\n"
        );
        assert!(!Count::of(&[lie(&["holes"]), lie(&[])]).is_good());
        assert!(!Count::of(&[lie(&["holes"]), honest(&["holes"])]).is_good());
    }

    #[test]
    fn a_row_stays_within_its_width() {
        let text = lie(&["foreign_io", "holes"]).text(40);
        assert_eq!(
            text,
            "caught      a hole\n            trusting  1 IOPS\n            trueio    suspect (holes): A\n                      sentence.\n                      also: foreign_io\n"
        );
    }
}
