//! The result of a staged false result or of a correct run, and the totals.
//!
//! A false result counts as detected if every check that is meant for it reports it, by name; findings of
//! other checks do not replace them. A correct run is a false positive if one of the checks under test flags
//! it, or if it fails; if it was flagged only for what a missing processor causes, and the evidence shows that the
//! processor was missing, it was disturbed.

use serde_json::{Value, json};

/// Checks whose findings show that the tool did not get the processor time it needed.
const PROCESSOR_CHECKS: &[&str] = &["processor_wait", "clock_and_cpu"];
/// Checks that rightly flag a correct job if the tool does not get that time: it submits late and keeps its queue short.
const DISTURBED_CHECKS: &[&str] = &["pace", "achieved_depth"];

/// A finding of trueio about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// `refused while planning`, `run failed`, `contradicted`, `suspect`, `not printed`.
    pub(super) how: &'static str,
    /// Name of the check or the rule.
    pub(super) by: String,
    /// Its sentence.
    pub(super) sentence: String,
}

impl Finding {
    pub(super) fn new(how: &'static str, by: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { how, by: by.into(), sentence: sentence.into() }
    }
}

/// The outcome of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// A false result, reported by the checks that are meant for it.
    Detected,
    /// A false result that these checks did not report.
    Missed,
    /// A correct run that no check under test flagged.
    Correct,
    /// A correct run that was flagged.
    FalsePositive,
    /// A correct run whose worker waited for its processor, and that was flagged only for what such waits cause.
    Disturbed,
    /// It could not be staged on this machine; the row gives the reason.
    NotStaged,
}

impl Ending {
    pub(super) fn word(self) -> &'static str {
        match self {
            Ending::Detected => "detected",
            Ending::Missed => "MISSED",
            Ending::Correct => "correct",
            Ending::FalsePositive => "FALSE POSITIVE",
            Ending::Disturbed => "disturbed",
            Ending::NotStaged => "not staged",
        }
    }

    /// Returns the value of `ending` in JSON; the spelling of earlier versions.
    fn key(self) -> &'static str {
        match self {
            Ending::Detected => "caught",
            Ending::Missed => "missed",
            Ending::Correct => "honest",
            Ending::FalsePositive => "accused",
            Ending::Disturbed => "disturbed",
            Ending::NotStaged => "not_staged",
        }
    }
}

/// One row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// True for a correct run.
    pub(super) is_correct: bool,
    /// Description of the false result or of the correct run.
    pub(super) name: String,
    /// The figure that a tool without these checks would report.
    pub(super) unchecked: String,
    /// Findings of the checks under test.
    pub(super) findings: Vec<Finding>,
    /// Names of other checks with findings; with their sentences if the row shows a fault.
    pub(super) others: Vec<String>,
    /// The outcome.
    pub(super) ending: Ending,
    /// The reason why it was not staged.
    pub(super) why_not: String,
}

impl Row {
    /// Builds the row of a false result; each of `meant` is a list of names, one of which must have a
    /// finding.
    pub(super) fn false_result(name: &str, unchecked: String, all: Vec<Finding>, meant: &[&[&str]]) -> Self {
        let mut findings = Vec::new();
        for names in meant {
            // In the order of the names: the first fits best.
            let found = names.iter().find_map(|name| all.iter().find(|finding| finding.by == *name));
            findings.extend(found.cloned());
        }
        let ending = if findings.len() == meant.len() { Ending::Detected } else { Ending::Missed };
        let others = others(&all, &findings, ending);
        Self { is_correct: false, name: name.to_owned(), unchecked, findings, others, ending, why_not: String::new() }
    }

    /// Turns a false result that was not reported into one that was not staged, if `why_not` gives a reason why its effect
    /// did not occur.
    pub(super) fn unless(self, why_not: Option<String>) -> Self {
        match why_not.filter(|_| self.ending == Ending::Missed) {
            Some(why) => Self { others: self.others, ..Self::not_staged(self.is_correct, &self.name, &why) },
            None => self,
        }
    }

    /// Builds the row of a correct run, which the checks `silent` must not flag.
    pub(super) fn correct(name: &str, unchecked: String, all: &[Finding], silent: &[&str]) -> Self {
        let is_flag = |finding: &&Finding| finding.how == "run failed" || silent.contains(&finding.by.as_str());
        let findings: Vec<Finding> = all.iter().filter(is_flag).cloned().collect();
        let is_disturbed = all.iter().any(|finding| PROCESSOR_CHECKS.contains(&finding.by.as_str()))
            && findings.iter().all(|finding| DISTURBED_CHECKS.contains(&finding.by.as_str()));
        let ending = match findings.is_empty() {
            true => Ending::Correct,
            false if is_disturbed => Ending::Disturbed,
            false => Ending::FalsePositive,
        };
        let others = others(all, &findings, ending);
        Self { is_correct: true, name: name.to_owned(), unchecked, findings, others, ending, why_not: String::new() }
    }

    /// Turns a correct run that was flagged into one that other programs disturbed, if they did.
    pub(super) fn disturbed_if(self, is_disturbed: bool) -> Self {
        match self.ending {
            Ending::FalsePositive if is_disturbed => Self { ending: Ending::Disturbed, ..self },
            _ => self,
        }
    }

    /// Builds the row of a job that could not be staged.
    pub(super) fn not_staged(is_correct: bool, name: &str, why: &str) -> Self {
        Self {
            is_correct,
            name: name.to_owned(),
            unchecked: String::new(),
            findings: Vec::new(),
            others: Vec::new(),
            ending: Ending::NotStaged,
            why_not: why.to_owned(),
        }
    }

    /// Formats the row as text: a heading and indented lines.
    pub(super) fn text(&self, width: usize) -> String {
        const LABEL: usize = 12;
        let mut out = format!("{:10}  {}\n", self.ending.word(), self.name);
        let mut line = |label: &str, text: &str| {
            let first = format!("{:LABEL$}{label:9} ", "");
            trueio_report::wrap(&mut out, &first, first.len(), text, width);
        };
        match self.ending {
            Ending::NotStaged => line("because", &self.why_not),
            _ => line(if self.is_correct { "figure" } else { "unchecked" }, &self.unchecked),
        }
        for finding in &self.findings {
            line("trueio", &format!("{} ({}): {}", finding.how, finding.by, finding.sentence));
        }
        match self.ending {
            Ending::Missed if self.findings.is_empty() => line("trueio", "no finding of the checks under test"),
            Ending::Correct if self.others.is_empty() => line("trueio", "no finding"),
            Ending::Correct => line("trueio", "no finding of the checks under test"),
            _ => {}
        }
        if !self.others.is_empty() {
            line("", &format!("also: {}", self.others.join(", ")));
        }
        out
    }

    /// Formats the row as JSON. The keys are those of earlier versions, for scripts that read them.
    pub(super) fn json(&self) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|finding| json!({"how": finding.how, "by": finding.by, "sentence": finding.sentence}))
            .collect();
        json!({
            "name": self.name,
            "is_honest": self.is_correct,
            "trusting": self.unchecked,
            "said": findings,
            "also": self.others,
            "ending": self.ending.key(),
            "why_not_staged": self.why_not,
        })
    }
}

/// Returns the findings that are not among `findings`.
fn others(all: &[Finding], findings: &[Finding], ending: Ending) -> Vec<String> {
    let is_fault = matches!(ending, Ending::Missed | Ending::FalsePositive);
    let others = all.iter().filter(|one| !findings.contains(one) && one.how != "run failed");
    others.map(|one| if is_fault { format!("{}: {}", one.by, one.sentence) } else { one.by.clone() }).collect()
}

/// The totals of all rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) staged: usize,
    pub(super) detected: usize,
    pub(super) missed: usize,
    pub(super) not_staged: usize,
    pub(super) correct: usize,
    pub(super) false_positives: usize,
    /// Correct runs that a busy machine disturbed; not among `correct`.
    pub(super) disturbed: usize,
    /// Reasons why false results were not staged, each once.
    pub(super) reasons: Vec<String>,
}

impl Count {
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut count = Self::default();
        for row in rows {
            match row.ending {
                Ending::Detected => count.detected += 1,
                Ending::Missed => count.missed += 1,
                Ending::Correct => count.correct += 1,
                Ending::Disturbed => count.disturbed += 1,
                Ending::FalsePositive => {
                    (count.correct, count.false_positives) = (count.correct + 1, count.false_positives + 1)
                }
                Ending::NotStaged if row.is_correct => {}
                Ending::NotStaged => {
                    count.not_staged += 1;
                    if !count.reasons.contains(&row.why_not) {
                        count.reasons.push(row.why_not.clone());
                    }
                }
            }
        }
        count.staged = count.detected + count.missed;
        count
    }

    /// Returns true if no false result was missed and no correct run was flagged.
    pub(super) fn is_good(&self) -> bool {
        self.missed == 0 && self.false_positives == 0
    }

    pub(super) fn text(&self) -> String {
        let why = if self.reasons.is_empty() { String::new() } else { format!(" ({})", self.reasons.join("; ")) };
        let disturbed = match self.disturbed {
            0 => String::new(),
            count => format!(", {count} more disturbed by other programs on the processors"),
        };
        format!(
            "{} false results staged, {} detected, {} missed, {} could not be staged here{why}\n{} correct runs, {} false positives{disturbed}\n",
            self.staged, self.detected, self.missed, self.not_staged, self.correct, self.false_positives
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "staged": self.staged, "caught": self.detected, "missed": self.missed, "not_staged": self.not_staged,
            "honest": self.correct, "accused": self.false_positives, "disturbed": self.disturbed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(by: &str) -> Finding {
        Finding::new("suspect", by, "A sentence.")
    }

    fn false_result(names: &[&str]) -> Row {
        let all = names.iter().map(|by| flag(by)).collect();
        Row::false_result("a hole", "1 IOPS".to_owned(), all, &[&["holes", "page_cache"]])
    }

    fn correct(names: &[&str]) -> Row {
        let all: Vec<Finding> = names.iter().map(|by| flag(by)).collect();
        Row::correct("a read", "1 IOPS".to_owned(), &all, &["holes"])
    }

    #[test]
    fn a_false_result_is_detected_only_by_a_check_that_is_meant_for_it() {
        assert_eq!(false_result(&["holes"]).ending, Ending::Detected);
        assert_eq!(false_result(&["foreign_io", "page_cache"]).ending, Ending::Detected);
        assert_eq!(false_result(&["foreign_io"]).ending, Ending::Missed);
        assert_eq!(false_result(&[]).ending, Ending::Missed);
        let both: &[&[&str]] = &[&["direct_impossible"], &["direct_granted"]];
        let half = Row::false_result("tmpfs", String::new(), vec![flag("direct_granted")], both);
        assert_eq!(half.ending, Ending::Missed, "every meant finding is required");
    }

    #[test]
    fn a_false_result_whose_effect_did_not_occur_is_not_staged_and_not_missed() {
        let why = || Some("the workers waited for a processor in 98 % of the measured time".to_owned());
        let row = false_result(&["foreign_io"]).unless(why());
        assert_eq!((row.ending, row.why_not.contains("98 %")), (Ending::NotStaged, true));
        assert_eq!(false_result(&["holes"]).unless(why()).ending, Ending::Detected, "it was reported all the same");
        assert_eq!(false_result(&["foreign_io"]).unless(None).ending, Ending::Missed, "its effect occurred");
        assert!(Count::of(&[false_result(&[]).unless(why())]).is_good());
    }

    #[test]
    fn a_correct_run_is_a_false_positive_if_a_check_under_test_flags_it_or_it_fails() {
        assert_eq!(correct(&[]).ending, Ending::Correct);
        assert_eq!(correct(&["foreign_io"]).ending, Ending::Correct);
        assert_eq!(correct(&["foreign_io", "holes"]).ending, Ending::FalsePositive);
        let failed = Finding::new("run failed", "outcome", "EIO");
        assert_eq!(Row::correct("a read", String::new(), &[failed], &[]).ending, Ending::FalsePositive);
    }

    #[test]
    fn a_correct_run_without_processor_time_is_disturbed_and_not_a_false_positive() {
        let of = |names: &[&str]| {
            let all: Vec<Finding> = names.iter().map(|by| flag(by)).collect();
            Row::correct("a rate", "50 IOPS".to_owned(), &all, &["pace", "holes"])
        };
        assert_eq!(of(&["pace", "processor_wait"]).ending, Ending::Disturbed);
        assert_eq!(of(&["pace", "clock_and_cpu"]).ending, Ending::Disturbed);
        assert_eq!(of(&["pace"]).ending, Ending::FalsePositive, "nothing shows that the processor was missing");
        assert_eq!(of(&["holes", "processor_wait"]).ending, Ending::FalsePositive, "no wait makes a hole");
        assert_eq!(of(&["processor_wait"]).ending, Ending::Correct);
        let count = Count::of(&[of(&["pace", "processor_wait"]), of(&[])]);
        assert!(count.is_good() && (count.correct, count.disturbed) == (1, 1));
        assert!(count.text().contains("1 correct runs, 0 false positives, 1 more disturbed"), "{}", count.text());
    }

    #[test]
    fn one_missed_false_result_or_one_false_positive_fails_the_selftest() {
        let not_staged = || Row::not_staged(false, "tmpfs", "mounting needs root");
        let good = Count::of(&[false_result(&["holes"]), correct(&[]), not_staged(), not_staged()]);
        assert!(good.is_good(), "what could not be staged was not missed");
        assert_eq!(
            good.text(),
            "1 false results staged, 1 detected, 0 missed, 2 could not be staged here (mounting needs root)\n1 correct runs, 0 false positives\n"
        );
        assert!(!Count::of(&[false_result(&["holes"]), false_result(&[])]).is_good());
        assert!(!Count::of(&[false_result(&["holes"]), correct(&["holes"])]).is_good());
    }

    #[test]
    fn a_row_stays_within_its_width() {
        let text = false_result(&["foreign_io", "holes"]).text(40);
        assert_eq!(
            text,
            "detected    a hole\n            unchecked 1 IOPS\n            trueio    suspect (holes): A\n                      sentence.\n                      also: foreign_io\n"
        );
    }
}
