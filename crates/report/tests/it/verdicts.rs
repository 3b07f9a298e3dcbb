//! The words of verdicts and findings: one record with a finding of every kind, in every output.

use crate::fixture::{self, finding};

use trueio_model::{Cause, Check, CheckOutcome, RunRecord, Verdict};
use trueio_report::{
    Mark, Style, accept_hint, conclusion, html, json, mark, outcome_words, parse, reasons, row_words, screen, terminal,
    worst,
};

fn style(width: usize) -> Style {
    Style { width, color: false, unicode: true }
}

/// A record whose phases have one finding of every kind. The last two are unverified and confirmed.
fn every_kind() -> RunRecord {
    use CheckOutcome::{Contradicted, Passed, Suspect};
    let mut record = fixture::baseline(2);
    let mut neighbour = finding("foreign_io", Suspect, "dd wrote 335 MiB", Some(23));
    neighbour.culprits = vec!["dd (pid 812)".to_owned()];
    let mut accepted = finding("holes", Contradicted, "96 % never written", Some(96));
    accepted.is_accepted = true;
    let findings = [
        vec![finding("call_results", Contradicted, "3 of 9 I/Os failed", None)],
        vec![finding("process_read_bytes", Contradicted, "96 % from memory", Some(96)), neighbour.clone()],
        vec![accepted, finding("heat", Suspect, "too hot", None)],
        vec![neighbour, finding("processor_wait", Suspect, "waited 12 % of the time", Some(12))],
        vec![finding("steadiness", Suspect, "fell from 4.1 to 2.9 GiB/s after 2.0 s", Some(17))],
        vec![finding("block_layer_bytes", CheckOutcome::NotSeen, "", None), finding("steadiness", Passed, "", None)],
        vec![finding("block_layer_bytes", Passed, "", None)],
    ];
    for (phase, checks) in record.phases.iter_mut().zip(findings) {
        phase.verdict = Verdict::of(&checks);
        phase.checks = checks;
    }
    record
}

const WORDS: [&str; 7] = [
    "failed: 3 of 9 I/Os failed",
    "withheld: 96 % from memory",
    "not the disk: 96 % never written",
    "disturbed: dd wrote 335 MiB",
    "unsteady: fell from 4.1 to 2.9 GiB/s after 2.0 s",
    "unverified",
    "confirmed",
];

#[test]
fn each_load_gets_the_word_of_its_worst_finding() {
    let record = every_kind();
    let words: Vec<String> = record.phases.iter().map(row_words).collect();
    assert_eq!(words, WORDS);
    let verdicts: Vec<String> = record.phases.iter().map(|phase| phase.verdict.to_string()).collect();
    assert_eq!(
        verdicts,
        ["contradicted", "contradicted", "suspect", "suspect", "suspect", "unverified", "supported"],
        "the record keeps its own words"
    );
    let symbols: std::collections::BTreeSet<char> = Mark::ALL.iter().map(|one| one.symbol()).collect();
    assert_eq!(symbols.len(), Mark::ALL.len(), "no two words share a symbol");
    assert!(symbols.iter().all(char::is_ascii));
}

#[test]
fn reasons_stand_once_by_cause_with_their_loads_their_share_and_one_step() {
    let record = every_kind();
    let reasons = reasons(&record);
    let heads: Vec<(Cause, Mark, usize, Option<u8>)> = reasons
        .iter()
        .map(|reason| (reason.cause, reason.mark, reason.loads.len(), reason.explained_percent))
        .collect();
    assert_eq!(
        heads,
        [
            (Cause::Calls, Mark::Failed, 1, None),
            (Cause::Cache, Mark::Withheld, 1, Some(96)),
            (Cause::Setup, Mark::NotTheDisk, 1, Some(96)),
            (Cause::Device, Mark::Disturbed, 1, None),
            (Cause::Neighbour, Mark::Disturbed, 2, Some(23)),
            (Cause::Tool, Mark::Disturbed, 1, Some(12)),
            (Cause::Unsteady, Mark::Unsteady, 1, Some(17)),
        ]
    );
    let neighbour = &reasons[4];
    assert_eq!(neighbour.next_step, "stop `dd` (pid 812), then run `trueio baseline /mnt/data` again");
    let names = (&record.phases[1].name, &record.phases[3].name);
    assert_eq!(
        neighbour.headline(),
        format!("dd wrote 335 MiB; can explain at most 23 % of {} and {}", names.0, names.1)
    );
    assert_eq!(reasons[6].next_step, "run `trueio baseline /mnt/data --thorough`, which measures the level that lasts");
    // Accepting is advised for what contradicts and was not accepted, and nowhere else.
    let hint = accept_hint(&record).expect("two contradict");
    assert!(
        hint.starts_with(
            "Withheld (x): `--accept call_results` `--accept process_read_bytes` shows them in spite of the check. "
        ) && hint
            .ends_with("Shown because of `--accept holes` (rand-read-4k-q1: 96 % never written), and else withheld."),
        "{hint}"
    );
    assert!(reasons.iter().all(|reason| !reason.next_step.contains("--accept")));
}

/// Goal: no output reports a finding as worse or better than the record has it.
#[test]
fn every_output_reports_each_finding_as_the_record_has_it() {
    let record = every_kind();
    let text = terminal(&record, &style(300));
    let page = html(&record);
    let as_text = |page: &str| page.replace("&#x2f;", "/");
    for phase in &record.phases {
        for check in phase.checks.iter().filter(|check| check.objects()) {
            let said = format!("{} by {}", outcome_words(check), check.name);
            let word = Mark::of_finding(check).word();
            assert!(said.starts_with(word) && said.contains(", accepted") == check.is_accepted, "{said}");
            assert!(text.contains(&said), "{said}\n{text}");
            assert!(as_text(&page).contains(&said), "{said}");
        }
        let line = text.lines().find(|line| line.starts_with(&phase.name)).expect("its row");
        let mark = mark(phase);
        assert!(line.ends_with(&format!("{} {} {}", mark.symbol(), mark.word(), phase.level)), "{line}");
    }
    for wrong in ["withheld by foreign_io", "withheld by steadiness", "disturbed by call_results"] {
        assert!(!text.contains(wrong) && !page.contains(wrong), "{wrong}");
    }
    assert!(text.rfind("--accept").expect("the advice") > text.rfind("→ ").expect("the steps"), "{text}");
}

#[test]
fn a_contradiction_comes_before_a_doubt_and_the_larger_part_before_the_smaller() {
    use CheckOutcome::{Contradicted, Suspect};
    let name = |checks: &[Check]| worst(checks).map(|check| check.name.clone());
    let small = finding("foreign_io", Suspect, "2 MiB", Some(1));
    let large = finding("processor_wait", Suspect, "", Some(40));
    let cache = finding("working_set", Suspect, "", None);
    let starved = finding("processor_wait", Contradicted, "", Some(60));
    assert_eq!(name(&[small.clone(), large.clone()]).as_deref(), Some("processor_wait"));
    assert_eq!(name(&[small.clone(), large, cache.clone()]).as_deref(), Some("working_set"));
    assert_eq!(Mark::of(Verdict::Contradicted, &[small.clone(), cache, starved]), Mark::Withheld);
    assert_eq!(name(&[]), None);
    assert_eq!(Mark::of(Verdict::Suspect, &[small]), Mark::Disturbed);
    // Under a quota the workers use all of it, and wait: how long is known, and says more.
    let limit = finding("clock_and_cpu", CheckOutcome::Suspect, "the tool is the limit", None);
    let waited = finding("processor_wait", CheckOutcome::Suspect, "waited 88 % of the time", Some(88));
    let neighbour = finding("foreign_io", CheckOutcome::Suspect, "dd wrote 335 MiB", Some(23));
    assert_eq!(name(&[limit.clone(), waited]), Some("processor_wait".to_owned()));
    assert_eq!(name(&[neighbour, limit]), Some("clock_and_cpu".to_owned()), "it may explain all");
}

#[test]
fn the_conclusion_counts_what_is_confirmed_and_by_what() {
    let mut record = every_kind();
    assert_eq!(conclusion(&record), "1 of 7 loads confirmed by the disk's own counters.");
    record.phases[6].level = trueio_model::EvidenceLevel::E3;
    assert_eq!(conclusion(&record), "1 of 7 loads confirmed by the disk's own counters and by traced requests.");
    record.phases.truncate(6);
    assert_eq!(conclusion(&record), "None of 6 loads confirmed.");
    record.phases.drain(..5);
    record.phases[0].level = trueio_model::EvidenceLevel::E0;
    assert_eq!(
        conclusion(&record),
        "The load is not confirmed: no counter of a disk shows the I/O (to see more: a disk that `/sys` shows)."
    );
}

/// Goal: each level is explained where it is printed, with what would raise it, each in at most half a line of 80 columns.
/// Method: a record at each level, without privileges, and with the traces that leave it at E2 for root.
#[test]
fn a_level_is_explained_in_half_a_line_with_what_would_raise_it() {
    use trueio_model::EvidenceLevel::{E0, E1, E2, E3, E4};
    let traced = |sampled_count, count| {
        let mut trace = trueio_model::TraceRecord::default();
        trace.transfers.sampled_count = sampled_count;
        trace.ours.count = count;
        Some(trace)
    };
    let untraced =
        Some(trueio_model::TraceRecord { missing: Some("no tracefs".into()), ..trueio_model::TraceRecord::default() });
    let based_on = |level| match level {
        E0 => "only the results of the calls",
        E1 => "the disk's counters",
        E2 => "counters of disk, process and file",
        E3 => "block requests traced by their offset",
        E4 => "verified by a power cut",
    };
    for (level, is_root, baseline_ns, unseen, trace, step) in [
        (E0, true, 0, "", None, "to raise it: omit `--no-evidence`"),
        (E0, true, 1, "block_layer_bytes", None, "to raise it: a disk that `/sys` shows"),
        (E0, true, 1, "", None, "to raise it: I/O on a local disk"),
        (E1, false, 1, "traced_requests", None, "to raise it: run as root"),
        (E2, false, 1, "traced_requests", None, "to raise it: run as root"),
        (E2, true, 1, "traced_requests", traced(0, 0), "to raise it: a longer run, direct I/O"),
        (E2, true, 1, "traced_requests", traced(0, 9), "to raise it: direct I/O"),
        (E2, true, 1, "traced_requests", traced(9, 9), "to raise it: files at known disk offsets"),
        (E2, true, 1, "traced_requests", untraced, "to raise it: see `traced_requests`"),
        (E3, true, 1, "", traced(9, 9), "the highest of a run"),
        (E4, true, 1, "", None, "the highest of a run"),
    ] {
        let mut record = fixture::baseline(2);
        record.environment.is_root = is_root;
        record.plan.idle_baseline_ns = baseline_ns;
        for phase in &mut record.phases {
            phase.level = level;
            phase.trace = trace.clone();
            phase.checks.retain(|check| check.outcome != CheckOutcome::NotSeen);
            if !unseen.is_empty() {
                phase.checks.push(finding(unseen, CheckOutcome::NotSeen, "", None));
            }
        }
        for phrase in [based_on(level), step] {
            assert!(phrase.chars().count() <= 40, "`{phrase}` is longer than half a line");
        }
        // Details have the step with its reason, in a sentence of its own.
        for shown in [terminal(&record, &style(200)), html(&record)] {
            let shown =
                shown.replace("<code>", "`").replace("</code>", "`").replace("&#39;", "'").replace("&#x27;", "'");
            let is_raised = shown.contains(step) || shown.contains(&format!("To raise {level}: "));
            assert!(is_raised && shown.contains(based_on(level)), "{level} {step}\n{shown}");
        }
        let first = screen(&record, &style(80), "add -v", &[]);
        assert!(first.lines().count() <= 23 && first.lines().all(|line| line.chars().count() <= 80), "{first}");
        assert!(!first.contains("level E"), "levels are in the details: {first}");
    }
}

/// Goal: records of version 2 get causes when they are read, and a phase that nothing confirmed is no longer green.
#[test]
fn a_record_of_version_2_is_read_with_causes_and_without_false_confirmations() {
    let mut old: serde_json::Value = serde_json::from_str(&json(&every_kind())).expect("JSON");
    old["version"] = 2.into();
    for phase in old["phases"].as_array_mut().expect("a list") {
        if phase["verdict"] == "unverified" {
            phase["verdict"] = "supported".into();
        }
        for check in phase["checks"].as_array_mut().expect("a list") {
            let check = check.as_object_mut().expect("an object");
            for name in ["cause", "brief", "explained_percent", "culprits"] {
                check.remove(name);
            }
        }
    }
    let read = parse(&old.to_string()).expect("a record");
    assert_eq!(read.version, trueio_model::RECORD_VERSION);
    let marks: Vec<Mark> = read.phases.iter().map(mark).collect();
    assert_eq!(marks, every_kind().phases.iter().map(mark).collect::<Vec<_>>());
    assert_eq!(row_words(&read.phases[3]), "disturbed", "an old record has no brief");
    assert_eq!(reasons(&read).len(), 7);
}
