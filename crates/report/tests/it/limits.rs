//! Limits: what confirmed figures, others, and intervals decide of them, and where outputs have them.

use crate::answer::clean;
use crate::fixture;
use trueio_model::{
    CheckOutcome, Estimate, JudgedLimit, Limit, LimitOutcome, LimitSet, Mark, OpKind, Reference, RunRecord, SeriesRow,
    Verdict,
};
use trueio_report::{
    Document, Format, Style, answer, check_limits, html, json, limit_line, parse, reference_of, screen, terminal,
};

const STYLE: Style = Style { width: 80, color: false, unicode: true };

/// A clean baseline, whose first load reads at 1,000 per second, between 990 and 1,010.
fn record(conditions: &[&str], reference: Option<Reference>) -> RunRecord {
    let mut record = clean();
    let elapsed_ns = record.phases[0].jobs[0].elapsed_ns;
    let op = &mut record.phases[0].jobs[0].ops[0];
    op.ios_per_s = Some(Estimate { value: 1000.0, low: 990.0, high: 1010.0 });
    op.io_count = elapsed_ns / 1_000_000;
    let conditions = conditions.iter().map(|text| (*text).to_owned()).collect();
    record.plan.limits = Some(Box::new(LimitSet { conditions, reference }));
    record
}

fn load(record: &RunRecord) -> String {
    record.phases[0].jobs[0].name.clone()
}

/// Returns what is decided of a limit of the first load.
fn judged(record: &RunRecord) -> JudgedLimit {
    let name = load(record);
    let found: Vec<JudgedLimit> = answer(record, &[]).limits.into_iter().filter(|limit| limit.load == name).collect();
    let [one] = found.as_slice() else { panic!("{found:?}") };
    one.clone()
}

#[test]
fn a_confirmed_figure_decides_a_limit_outside_of_its_interval() {
    use LimitOutcome::{Met, Missed, Undecided};
    let cases = [
        ("IOPS < 1100", Missed),
        ("IOPS < 900", Met),
        ("IOPS < 1005", Undecided),
        ("IOPS > 900", Missed),
        ("IOPS > 1100", Met),
        ("IOPS > 995", Undecided),
        ("IOPS <= 1010", Missed),
        ("IOPS >= 990", Missed),
        ("max > 1h", Met),
        ("max > 1ns", Missed),
    ];
    for (condition, expected) in cases {
        let found = judged(&record(&[condition], None));
        assert_eq!(found.outcome, expected, "{found:?}");
        assert_eq!(found.next_step.is_empty(), expected != Undecided, "{found:?}");
    }
    let name = load(&clean());
    let missed = judged(&record(&["IOPS < 1100"], None));
    assert_eq!(
        missed.sentence,
        format!("{name}: IOPS 1,000 per second (990 per second to 1,010 per second) is below 1,100 per second")
    );
    let undecided = judged(&record(&["IOPS < 1005"], None));
    assert!(undecided.sentence.contains("may be on either side of 1,005 per second"), "{undecided:?}");
    assert!(
        undecided.next_step.starts_with("measure for about ")
            && undecided.next_step.contains(" s: run `trueio baseline /mnt/data --runtime "),
        "{undecided:?}"
    );
    let at = judged(&record(&["IOPS < 1000.0001"], None));
    assert!(at.next_step.starts_with("an hour would not decide it"), "{at:?}");
}

#[test]
fn a_figure_that_is_not_confirmed_or_has_no_interval_leaves_its_limit_undecided() {
    for outcome in [CheckOutcome::Suspect, CheckOutcome::Contradicted] {
        let mut staged = record(&["IOPS < 1100"], None);
        let check = fixture::finding("foreign_io", outcome, "dd wrote 335 MiB", Some(23));
        staged.phases[0].checks.push(check);
        staged.phases[0].verdict = Verdict::of(&staged.phases[0].checks);
        let found = judged(&staged);
        assert_eq!(found.outcome, LimitOutcome::Undecided);
        assert!(found.sentence.contains("dd wrote 335 MiB"), "{found:?}");
        let step = &answer(&staged, &[]).findings[0].next_step;
        assert_eq!(&found.next_step, step, "what would decide it is the step of the finding");
    }
    let mut unseen = record(&["IOPS < 1100"], None);
    unseen.phases[0].checks.clear();
    unseen.phases[0].verdict = Verdict::Unverified;
    let found = judged(&unseen);
    assert_eq!((found.outcome, found.sentence.contains("is unverified")), (LimitOutcome::Undecided, true), "{found:?}");
    assert!(found.next_step.contains("`trueio doctor`"), "{found:?}");

    let mut short = record(&["IOPS < 1100"], None);
    short.phases[0].jobs[0].ops[0].ios_per_s = None;
    short.phases[0].jobs[0].series.clear();
    let found = judged(&short);
    assert!(found.sentence.ends_with("has no interval: the run is too short for one"), "{found:?}");
    assert_eq!(found.outcome, LimitOutcome::Undecided);
}

/// Goal: a rate without an interval decides a limit only if each part of the run is on the same side of it.
/// Method: a rate that rises from 900 to 1,100 in steps that last as long as a part; a last row that is short is no part.
#[test]
fn a_rate_without_an_interval_decides_a_limit_beyond_each_part_of_the_run() {
    use LimitOutcome::{Met, Missed, Undecided};
    let staged = |condition: &str, rows: u64| {
        let mut staged = record(&[condition], None);
        let job = &mut staged.phases[0].jobs[0];
        let like = job.series[0];
        let row = |index: u64, span_ns: u64, count: u64| SeriesRow {
            end_ns: (index + 1) * 1_000_000_000,
            span_ns,
            read_count: count,
            read_bytes: count * 4096,
            ..like
        };
        job.series = (0..rows).map(|index| row(index, 1_000_000_000, 900 + index * 200 / (rows - 1))).collect();
        job.series.push(row(rows, 1_000_000, 100_000));
        job.ops[0].ios_per_s = None;
        judged(&staged)
    };
    for (condition, expected) in [
        ("IOPS < 899", Met),
        ("IOPS < 1101", Missed),
        ("IOPS < 1000", Undecided),
        ("IOPS < 901", Undecided),
        ("IOPS > 1101", Met),
        ("bandwidth < 1MiB/s", Met),
        ("bandwidth > 1MiB/s", Missed),
    ] {
        let found = staged(condition, 8);
        assert_eq!((found.outcome, found.low, found.high), (expected, None, None), "{found:?}");
        assert!(found.sentence.contains("in each of 8 parts of the run)"), "{found:?}");
        assert_eq!(found.next_step.is_empty(), expected != Undecided, "{found:?}");
    }
    let few = staged("IOPS < 899", 7);
    assert_eq!((few.outcome, few.sentence.contains("parts")), (Undecided, false), "{few:?}");
}

#[test]
fn a_relative_limit_is_judged_by_both_intervals_and_the_hint_is_not_a_longer_run() {
    let base = record(&[], None);
    let at = |value: f64, width: f64, condition: &str| {
        let mut now = record(&[condition], Some(reference_of(&base)));
        now.phases[0].jobs[0].ops[0].ios_per_s = Some(Estimate { value, low: value - width, high: value + width });
        let elapsed_ns = now.phases[0].jobs[0].elapsed_ns;
        now.phases[0].jobs[0].ops[0].io_count = (value * elapsed_ns as f64 / 1e9) as u64;
        judged(&now)
    };
    let missed = at(900.0, 5.0, "IOPS < 95%");
    assert_eq!(missed.outcome, LimitOutcome::Missed, "{missed:?}");
    assert!(
        missed.sentence.contains("is below 950 per second, 95.0 % of record 3f9c21ab (1,000 per second"),
        "{missed:?}"
    );
    assert_eq!(at(1000.0, 5.0, "IOPS < 95%").outcome, LimitOutcome::Met);
    let spans = at(952.0, 5.0, "IOPS < 95%");
    assert_eq!(spans.outcome, LimitOutcome::Undecided);
    assert!(spans.next_step.contains("`trueio compare A.toml B.toml`"), "{spans:?}");
    assert!(!spans.next_step.contains("--runtime"), "{spans:?}");
    // The reference is narrow enough; this run is not.
    let wide = at(970.0, 30.0, "IOPS < 95%");
    assert!(wide.next_step.contains("--runtime"), "{wide:?}");

    let mut doubtful = base;
    doubtful.phases[0].verdict = Verdict::Unverified;
    doubtful.phases[0].checks.clear();
    let found = judged(&record(&["IOPS < 95%"], Some(reference_of(&doubtful))));
    assert_eq!(found.outcome, LimitOutcome::Undecided);
    assert!(found.sentence.contains("is unverified in record 3f9c21ab"), "{found:?}");
}

#[test]
fn a_rate_without_an_operation_is_the_sum_and_a_latency_is_each() {
    let mut mixed = clean();
    let phase = mixed
        .phases
        .iter()
        .position(|phase| phase.jobs[0].ops.len() == 2 && phase.jobs[0].ops.iter().all(|op| op.op != OpKind::Sync));
    let phase = phase.expect("a mix");
    for op in &mut mixed.phases[phase].jobs[0].ops {
        op.ios_per_s = Some(Estimate { value: 100.0, low: 99.0, high: 101.0 });
    }
    let name = mixed.phases[phase].jobs[0].name.clone();
    let conditions = ["IOPS < 1", "read IOPS < 1", "max > 1ns"].map(|text| format!("{name}: {text}")).to_vec();
    mixed.plan.limits = Some(Box::new(LimitSet { conditions, reference: None }));
    let found: Vec<_> =
        answer(&mixed, &[]).limits.iter().map(|limit| (limit.condition.clone(), limit.operation, limit.low)).collect();
    assert_eq!(found[0], (format!("{name}: IOPS < 1"), None, Some(198.0)));
    assert_eq!(found[1], (format!("{name}: read IOPS < 1"), Some(OpKind::Read), Some(99.0)));
    assert_eq!(found[2..].iter().map(|one| one.1).collect::<Vec<_>>(), [Some(OpKind::Read), Some(OpKind::Write)]);
}

#[test]
fn a_plan_refuses_limits_that_no_load_can_decide() {
    let record = clean();
    let refused = |condition: &str, reference: Option<&Reference>| {
        let limit = Limit::parse(condition).expect("a limit");
        check_limits(&[limit], &record.plan, reference).err().map(|error| error.to_string())
    };
    assert_eq!(refused("p99 > 10ms", None), None);
    assert!(
        refused("nothing: p99 > 10ms", None)
            .is_some_and(|text| text.contains("there is no load `nothing`; the loads are `"))
    );
    assert!(refused("cpu > 1us", None).is_some_and(|text| text.contains("`trueio compare` compares it")));
    assert!(refused("IOPS < 95%", None).is_some_and(|text| text.contains("`--against newest`")));
    let name = load(&record);
    assert!(refused(&format!("{name}: trim p99 > 1ms"), None).is_some_and(|text| text.contains("no load trims")));
    let mut reference = reference_of(&record);
    assert_eq!(refused("IOPS < 95%", Some(&reference)), None);
    reference.loads[0].shape = "randread 8k q1".to_owned();
    let other = refused("IOPS < 95%", Some(&reference)).expect("another load");
    assert!(other.contains("there it is randread 8k q1"), "{other}");
}

#[test]
fn every_output_has_each_limit_and_a_stored_record_has_them_again() {
    let whole = record(&["IOPS < 1100", "IOPS < 900", "IOPS < 1005"], None);
    let name = load(&whole);
    let again = parse(&json(&whole)).expect("a record");
    let answered = answer(&again, &[]);
    assert_eq!(answered.limits, answer(&whole, &[]).limits);
    assert_eq!(answered.worst_limit(), Some(LimitOutcome::Missed));
    let of_load: Vec<&JudgedLimit> = answered.limits.iter().filter(|limit| limit.load == name).collect();
    assert_eq!(of_load.len(), 3);

    let junit = Document::Record(Box::new(again.clone())).render(Format::Junit, &[]).expect("JUnit");
    let case = |condition: &str| {
        let from =
            junit.split(&format!("{name}: {condition}\"")).nth(1).unwrap_or_else(|| panic!("{condition}: {junit}"));
        from.split("</testcase>").next().expect("a case").to_owned()
    };
    assert!(case("IOPS &lt; 1100").contains("<failure message=\""), "{junit}");
    assert!(!case("IOPS &lt; 900").contains("<failure") && !case("IOPS &lt; 900").contains("<skipped"), "{junit}");
    assert!(case("IOPS &lt; 1005").contains("<skipped message=\"undecided: "), "{junit}");

    // A case has the name of its load once, and those of several operations differ.
    let named = record(&[&format!("{name}: IOPS < 1100")], None);
    let junit = Document::Record(Box::new(named)).render(Format::Junit, &[]).expect("JUnit");
    assert!(junit.contains(&format!("name=\"{name}: IOPS &lt; 1100\"")), "{junit}");
    let every = record(&["max > 1ns"], None);
    let junit = Document::Record(Box::new(every)).render(Format::Junit, &[]).expect("JUnit");
    let names: Vec<&str> = junit.split(" name=\"").skip(2).filter_map(|rest| rest.split('"').next()).collect();
    let distinct: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("max &gt; 1ns (write)")), "{names:?}");

    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wide = Style { width: 400, ..STYLE };
    let details = terminal(&again, &wide);
    for limit in &of_load {
        assert!(joined(&details).contains(&joined(&limit_line(limit))), "{details}");
    }
    // One screen has each condition with a sentence, the missed ones first, and each load that does not meet it.
    let text = joined(&screen(&again, &wide, "trueio report 3f9c21ab", &[]));
    let open = answered.limits.iter().filter(|limit| limit.outcome != LimitOutcome::Met);
    assert!(open.clone().count() > 4, "more than a handful");
    for limit in open {
        let line = limit_line(&JudgedLimit { next_step: String::new(), ..limit.clone() });
        assert!(text.contains(&joined(&line)) && text.contains(&joined(&limit.next_step)), "{line}: {text}");
    }
    let mut busy = record(&["IOPS < 1100", "p99 > 1ms"], None);
    let check = fixture::finding("foreign_io", CheckOutcome::Suspect, "dd wrote 335 MiB", Some(23));
    busy.phases[0].checks.push(check);
    busy.phases[0].verdict = Verdict::of(&busy.phases[0].checks);
    busy.phases.truncate(1);
    let lines = joined(&screen(&busy, &wide, "add -v", &[]));
    assert_eq!(lines.matches("limit undecided: ").count(), 2, "{lines}");
    assert_eq!(lines.matches("] → ").count(), 1, "the step once: {lines}");
    assert_eq!(text.matches("limit met: ").count(), 3, "{text}");
    assert!(text.contains("other figures are farther from it"), "{text}");
    assert!(text.rfind("limit missed: ") < text.find("limit undecided: "), "{text}");
    assert!(text.rfind("limit undecided: ") < text.find("limit met: "), "{text}");
    let page = html(&again);
    assert!(page.contains("limit missed: "), "the page has them");
    let value: serde_json::Value = serde_json::from_str(&json(&again)).expect("JSON");
    assert_eq!(value["answer"]["limits"][0]["outcome"], "missed");
    let marks: Vec<Mark> = answered.figures.iter().map(|figure| figure.verdict).collect();
    assert!(marks.iter().all(|mark| *mark == Mark::Confirmed));
}
