//! The answer: a sentence about a class, a database, a limit or a winner rests on confirmed figures, in every output.

use crate::fixture;

use trueio_model::{
    Arrivals, Cause, Check, CheckOutcome, Decision, Mark, Pace, PhaseRecord, Quantity, RunRecord, StatementKind,
    Verdict,
};
use trueio_report::{Document, Format, Style, answer, html, json, mark, parse, reasons, screen, shape_of, terminal};

const STYLE: Style = Style { width: 80, color: false, unicode: true };

pub(crate) fn finding(name: &str, brief: &str, percent: Option<u8>) -> Check {
    fixture::finding(name, CheckOutcome::Suspect, brief, percent)
}

/// Gives a phase one finding; a contradiction withholds its figures.
pub(crate) fn stage(phase: &mut PhaseRecord, check: Check) {
    phase.checks.retain(|known| !known.objects() && known.name != check.name);
    phase.checks.push(check);
    phase.verdict = Verdict::of(&phase.checks);
}

pub(crate) fn contradicted(check: Check) -> Check {
    Check { outcome: CheckOutcome::Contradicted, ..check }
}

/// A baseline of which every load is confirmed.
pub(crate) fn clean() -> RunRecord {
    let mut record = fixture::baseline(2);
    for phase in &mut record.phases {
        phase.checks.iter_mut().filter(|check| check.objects()).for_each(|check| check.outcome = CheckOutcome::Passed);
        phase.verdict = Verdict::Supported;
    }
    record
}

/// Every finding that a load can have, each of another cause or word, doubting and contradicting.
fn findings() -> Vec<Check> {
    let doubts = [
        finding("memory_backed", "the device is in memory", None),
        finding("io_limits", "limited to 1 MiB/s", None),
        finding("processor_wait", "waited for a processor 89 % of the time", Some(89)),
        finding("foreign_io", "dd wrote 335 MiB", Some(23)),
        finding("steadiness", "fell from 4.1 to 2.9 GiB/s after 2.0 s", Some(17)),
        finding("heat", "too hot", None),
        finding("page_cache", "99 % from memory", Some(99)),
        finding("stops", "stopped for 2.1 s", Some(70)),
        finding("flushes", "no flush was executed", None),
        finding("call_results", "3 of 9 I/Os failed", None),
    ];
    doubts.iter().cloned().chain(doubts.iter().cloned().map(contradicted)).collect()
}

/// The records of the repository, and a record of each finding of each load alone and of all loads together.
pub(crate) fn records() -> Vec<RunRecord> {
    let mut all = vec![fixture::baseline(6), fixture::baseline(2), fixture::troubled(), fixture::small()];
    for version in ["v1", "v2", "v3"] {
        let path = format!("{}/../store/tests/records/{version}.json", env!("CARGO_MANIFEST_DIR"));
        all.push(parse(&std::fs::read_to_string(path).expect("a kept record")).expect("a record"));
    }
    let clean = fixture::baseline(2);
    for check in findings() {
        let mut whole = clean.clone();
        whole.phases.iter_mut().for_each(|phase| stage(phase, check.clone()));
        all.push(whole);
        for index in [0, 2, 6] {
            let mut one = clean.clone();
            stage(&mut one.phases[index], check.clone());
            all.push(one);
        }
    }
    let mut unseen = clean.clone();
    for phase in &mut unseen.phases {
        phase.checks.clear();
        phase.verdict = Verdict::Unverified;
    }
    all.push(unseen);
    let as_run = all.clone().into_iter().map(|record| RunRecord { kind: "run".to_owned(), ..record });
    let both = as_run.collect::<Vec<_>>();
    all.extend(both);
    all
}

/// Every output as text, on one line each.
pub(crate) fn outputs(record: &RunRecord) -> Vec<(&'static str, String)> {
    let document = Document::Record(Box::new(record.clone()));
    let of = |format| document.render(format, &[]).expect("a record has it");
    // The page holds the record itself at its end.
    let page = html(record);
    let page = page.split("<script").next().unwrap_or_default().replace("<p>", " ");
    let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // The rest of the JSON is the record, whose checks have sentences of their own.
    let whole: serde_json::Value = serde_json::from_str(&json(record)).expect("JSON");
    vec![
        ("json", one_line(whole["answer"].to_string())),
        ("csv", one_line(of(Format::Csv))),
        ("screen", one_line(screen(record, &STYLE, "add -v", &[]))),
        ("terminal", one_line(terminal(record, &STYLE))),
        ("markdown", one_line(of(Format::Markdown))),
        ("junit", one_line(of(Format::Junit))),
        ("page", one_line(page)),
    ]
}

/// Words of sentences about a class, a database and a limit.
const WORDS: [&str; 9] = [
    "like a",
    "as fast as a",
    "faster than a",
    "slower than a",
    "etcd",
    "A database",
    "limits it",
    "limits the rate",
    "a full write cache looks like that",
];

/// Goal: no sentence about a class, a database or a limit stands next to a figure that is not confirmed, in any output.
/// Method: each finding, in each load and in all of them. Where no load is confirmed, no output has such words; and where some are, each
/// statement names the loads on which it rests, and these are confirmed.
#[test]
fn no_statement_stands_next_to_a_figure_that_is_not_confirmed() {
    for record in records() {
        let answered = answer(&record, &[]);
        let of = |load: &str| record.phases.iter().find(|phase| phase.name == load).expect("its phase");
        for statement in &answered.statements {
            assert!(!statement.rests_on().is_empty());
            for ground in statement.rests_on() {
                let verdict = mark(of(&ground.load));
                assert_eq!((ground.verdict, verdict), (Mark::Confirmed, Mark::Confirmed), "{statement:?}");
            }
        }
        let is_none_confirmed = record.phases.iter().all(|phase| mark(phase) != Mark::Confirmed);
        let commits = record.phases.iter().find(|phase| phase.name == "append-4k-fdatasync");
        let is_commit_open = commits.is_some_and(|phase| mark(phase) != Mark::Confirmed);
        for (output, text) in outputs(&record) {
            for word in WORDS.iter().filter(|_| is_none_confirmed) {
                assert!(!text.contains(word), "`{word}` in {output}:\n{text}");
            }
            for word in ["etcd", "commits like", "per second. "].iter().filter(|_| is_commit_open) {
                assert!(!text.contains(word), "`{word}` in {output}:\n{text}");
            }
        }
        if is_none_confirmed && record.kind == "baseline" {
            assert!(matches!(answered.decision, Some(Decision::CannotTell | Decision::No)), "{}", answered.headline);
            assert!(!answered.headline.starts_with("Yes"));
        }
    }
}

/// Goal: one mark, one meaning: a word is that of a figure that every output shows, or of one that none shows. Method: each finding in each
/// load. The screen, the details, Markdown, the page's tile of commits, CSV, metrics and JUnit against [`Mark::is_shown`].
#[test]
fn a_word_is_that_of_figures_that_every_output_shows_or_that_none_shows() {
    for record in records() {
        let document = Document::Record(Box::new(record.clone()));
        let of = |format| document.render(format, &[]).expect("a record has it");
        let (csv, prom, junit, markdown) =
            (of(Format::Csv), of(Format::Prometheus), of(Format::Junit), of(Format::Markdown));
        let screen = screen(&record, &STYLE, "add -v", &[]);
        let rows: Vec<&str> = screen.lines().filter(|line| line.contains(" p99 ") || line.contains(" I/O")).collect();
        let details = terminal(&record, &Style { width: 300, ..STYLE });
        let answered = answer(&record, &[]);
        let mut row = rows.iter();
        for (index, phase) in record.phases.iter().enumerate() {
            let mark = mark(phase);
            let word = format!("{} {}", mark.symbol(), mark.word());
            for job in &phase.jobs {
                // A job without a name has its shape.
                let name = match job.name.as_str() {
                    "job" => shape_of(&record.plan.jobs[index]),
                    name => name.to_owned(),
                };
                let figures = answered.figures.iter().filter(|figure| figure.load == job.name);
                assert!(figures.clone().all(|one| one.is_shown == mark.is_shown() && one.verdict == mark));
                assert!(figures.clone().all(|one| one.value.is_none() || mark.is_shown()), "{}", job.name);
                if rows.len() == record.phases.len() {
                    let line = row.next().expect("a line a load");
                    assert!(line.contains(&word), "{word}: {line}");
                    assert_eq!(line.contains(" x  "), !mark.is_shown(), "{line}");
                }
                let line = details.lines().find(|line| line.starts_with(&name)).expect("its row");
                assert_eq!(line.contains("  x "), !mark.is_shown(), "{line}");
                let is_of = |line: &&str| line.contains(&format!("job=\"{}\"", job.name));
                let rates = prom.lines().filter(is_of).filter(|line| line.starts_with("trueio_operations_per_second"));
                assert_eq!(rates.count() > 0, mark.is_shown(), "{}: {prom}", job.name);
                let is_of = |line: &&str| line.split(',').nth(3) == Some(phase.name.as_str());
                for line in csv.lines().filter(is_of) {
                    assert_eq!(line.split(',').nth(10).is_some_and(|rate| !rate.is_empty()), mark.is_shown(), "{line}");
                }
                let start = format!("| {} |", name.replace('_', "\\_"));
                for line in markdown.lines().filter(|line| line.starts_with(&start)) {
                    assert!(line.contains(mark.word()) && line.contains("| x |") != mark.is_shown(), "{line}");
                }
            }
            let case = junit.split("<testcase ").find(|case| case.contains(&format!("name=\"{}\"", phase.name)));
            assert_eq!(case.expect("a case").contains("<failure"), !mark.is_shown(), "{}: {junit}", phase.name);
        }
    }
}

/// Goal: a device in memory, and a limit of a control group, are no class, whatever their figures.
#[test]
fn a_device_in_memory_and_a_limited_one_are_like_no_class() {
    for check in
        [finding("memory_backed", "the device is in memory", None), finding("io_limits", "limited to 1 MiB/s", None)]
    {
        let mut record = fixture::baseline(2);
        record.phases.iter_mut().for_each(|phase| stage(phase, check.clone()));
        let answered = answer(&record, &[]);
        assert_eq!(answered.statements, []);
        let brief = &check.brief;
        assert_eq!(
            answered.headline,
            format!(
                "Cannot tell: no load is confirmed (seq-read-1m: {brief}). Durable commits: not the disk: {brief}."
            )
        );
    }
}

/// Goal: figures that are withheld keep their place on the page, with the reason.
#[test]
fn withheld_commits_stay_on_the_page_with_their_reason() {
    let waited = contradicted(finding("processor_wait", "waited for a processor 89 % of the time", Some(89)));
    let mut record = fixture::baseline(2);
    stage(&mut record.phases[6], waited);
    let page = html(&record);
    let tile = page.split("<section class=\"tile\">").find(|tile| tile.contains("<h3>Durable commits</h3>"));
    let tile = tile.expect("its tile");
    assert!(tile.contains("withheld: waited for a processor 89 % of the time"), "{tile}");
    let text = screen(&record, &STYLE, "add -v", &[]).replace("\n  ", " ");
    assert!(text.contains("Durable commits: withheld: waited for a processor 89 %"), "{text}");
}

/// Goal: what is true of one load is not stated of a group. Method: two loads waited for a processor, 89 % and 7 % of the time; a third
/// one was stopped, which is of the same cause.
#[test]
fn a_finding_of_several_loads_has_the_words_of_each() {
    let waited = |percent: u8| {
        finding("processor_wait", &format!("waited for a processor {percent} % of the time"), Some(percent))
    };
    let mut record = fixture::baseline(2);
    stage(&mut record.phases[2], waited(7));
    stage(&mut record.phases[3], waited(89));
    let sentence =
        answer(&record, &[]).findings.iter().find(|one| one.cause == Cause::Tool).expect("it").sentence.clone();
    assert_eq!(
        sentence,
        "waited for a processor 89 % of the time; can explain at most 89 % of rand-read-4k-q32; rand-read-4k-q1: waited for a \
         processor 7 % of the time (at most 7 %)"
    );
    stage(&mut record.phases[4], finding("stops", "stopped for 2.1 s", Some(70)));
    let found = answer(&record, &[]).findings;
    let found = found.iter().find(|one| one.cause == Cause::Tool).expect("it");
    assert_eq!(found.loads.len(), 3);
    for load in &found.loads {
        let phase = record.phases.iter().find(|phase| phase.name == load.load).expect("its phase");
        assert!(
            phase
                .checks
                .iter()
                .any(|check| check.brief == load.brief && check.explained_percent == load.explained_percent)
        );
    }
    for record in records() {
        for reason in reasons(&record) {
            let first = &reason.found[0];
            let of_first = reason.headline();
            let same = reason
                .found
                .iter()
                .filter(|load| (&load.brief, load.explained_percent) == (&first.brief, first.explained_percent));
            let others = reason.found.len() - same.count();
            assert_eq!(
                others > 0,
                of_first[first.brief.len()..].contains("; ")
                    && of_first.matches("; ").count() > 1 + first.brief.matches("; ").count(),
                "{of_first}"
            );
        }
    }
}

/// Goal: the JSON has each figure ready to use. Method: the values are those of the table, with their unit, interval, sample and verdict.
#[test]
fn the_json_of_a_record_has_its_answer_with_every_figure() {
    let mut record = fixture::baseline(6);
    stage(&mut record.phases[6], contradicted(finding("flushes", "no flush was executed", None)));
    let text = json(&record);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let figures = value["answer"]["figures"].as_array().expect("figures");
    let of = |load: &str, quantity: &str| {
        let is_it = |one: &&serde_json::Value| one["load"] == load && one["quantity"] == quantity;
        figures.iter().find(is_it).unwrap_or_else(|| panic!("{load} {quantity}")).clone()
    };
    let p99 = of("rand-read-4k-q1", "p99");
    assert_eq!((p99["unit"].as_str(), p99["verdict"].as_str()), (Some("ns"), Some("confirmed")));
    assert!(
        p99["value"].as_f64().is_some_and(|ns| ns > 70_000.0) && p99["sample_count"].as_u64() == Some(80_520),
        "{p99}"
    );
    // A mean needs no interval.
    assert!(of("rand-read-4k-q1", "mean")["value"].as_f64().is_some_and(|ns| ns > 1_000.0), "{value:#}");
    assert!(of("seq-read-1m", "bandwidth")["value"].as_f64().is_some_and(|rate| (3.2e9..3.6e9).contains(&rate)));
    let withheld = of("append-4k-fdatasync", "iops");
    assert_eq!((&withheld["value"], &withheld["is_shown"]), (&serde_json::Value::Null, &false.into()));
    assert_eq!(
        (withheld["verdict"].as_str(), withheld["cause"].as_str()),
        (Some("withheld"), Some("no flush was executed"))
    );
    assert_eq!(parse(&text).expect("a record"), record, "the answer is derived");
    let answered = answer(&record, &[]);
    assert!(answered.figures.iter().all(
        |one| Some(one.unit.as_str()) == one.quantity.map(Quantity::unit) && (one.value.is_some() <= one.is_shown)
    ));
    assert_eq!(answered.figures.iter().filter(|one| one.quantity == Some(Quantity::Iops)).count(), 9);
    assert_eq!(value["answer"], serde_json::to_value(&answered).expect("JSON"));
    let kinds: Vec<StatementKind> = answered.statements.iter().map(|one| one.kind()).collect();
    assert!(kinds.contains(&StatementKind::Class) && !kinds.contains(&StatementKind::Database), "{kinds:?}");
}

/// Goal: a baseline begins with yes, no or cannot tell. Method: a disk as fast as its kind, a slow one, one with failed I/Os, and a run of
/// which most loads are disturbed.
#[test]
fn a_baseline_begins_with_yes_no_or_cannot_tell() {
    let begin = |record: &RunRecord| {
        let text = screen(record, &STYLE, "add -v", &[]);
        let answered = answer(record, &[]);
        assert!(text.replace("\n  ", " ").starts_with(&answered.headline), "{text}");
        answered.headline
    };
    let clean = fixture::baseline(2);
    assert_eq!(begin(&clean), "Yes: as fast as an NVMe SSD. Durable commits: 612 per second.");
    let mut slow = clean.clone();
    for op in &mut slow.phases[0].jobs[0].ops {
        (op.io_count, op.byte_count) = (op.io_count / 20, op.byte_count / 20);
    }
    assert!(begin(&slow).starts_with("No: slower than an NVMe SSD: sequential read "), "{}", begin(&slow));
    let mut failed = clean.clone();
    stage(&mut failed.phases[3], contradicted(finding("call_results", "3 of 9 I/Os failed", None)));
    assert!(begin(&failed).starts_with("No: rand-read-4k-q32 failed: 3 of 9 I/Os failed."), "{}", begin(&failed));
    let mut busy = clean.clone();
    for phase in &mut busy.phases[1..6] {
        stage(phase, finding("foreign_io", "dd wrote 335 MiB", Some(23)));
    }
    assert_eq!(
        begin(&busy),
        "Cannot tell: 5 of 7 loads are not confirmed (seq-write-1m: dd wrote 335 MiB). Durable commits: 612 per second."
    );
    // A run of jobs has no question of yes or no.
    let run = RunRecord { kind: "run".to_owned(), ..clean };
    assert_eq!(answer(&run, &[]).decision, None);
    assert!(!screen(&run, &STYLE, "add -v", &[]).starts_with("Yes"));
}

/// The staged situations of one record, each with its name; those of two records are in `comparison.rs`.
pub(crate) fn situations() -> Vec<(&'static str, RunRecord)> {
    let all = |check: Check| {
        let mut record = clean();
        record.phases.iter_mut().for_each(|phase| stage(phase, check.clone()));
        record
    };
    let some = |indices: &[usize], check: Check| {
        let mut record = clean();
        indices.iter().for_each(|index| stage(&mut record.phases[*index], check.clone()));
        record
    };
    let mut neighbour = finding("foreign_io", "dd wrote 335 MiB", Some(23));
    neighbour.culprits = vec!["dd (pid 812)".to_owned()];
    let mut quota =
        some(&[0, 3], contradicted(finding("processor_wait", "waited for a processor 89 % of the time", Some(89))));
    stage(&mut quota.phases[6], finding("processor_wait", "waited for a processor 41 % of the time", Some(41)));
    let mut one = clean();
    one.phases.truncate(1);
    one.plan.jobs.truncate(1);
    one.kind = "run".to_owned();
    let mut paced = one.clone();
    paced.plan.jobs[0].pace =
        Some(Pace { ios_per_s: Some(3_000.0), bytes_per_s: None, of_writes: None, arrivals: Arrivals::Poisson });
    for op in &mut paced.phases[0].jobs[0].ops {
        // The stop is charged to every I/O that was due in it.
        op.latency.from_intended = op.latency.total.clone();
        op.latency.from_intended.record_many(2_100_000_000, op.io_count / 20);
    }
    stage(&mut paced.phases[0], finding("stops", "stopped for 2.1 s", Some(97)));
    vec![
        ("memory", all(finding("memory_backed", "the device is in memory", None))),
        ("cgroup", all(finding("io_limits", "limited to 1 MiB/s", None))),
        ("starved", all(finding("processor_wait", "waited for a processor 12 % of the time", Some(12)))),
        ("neighbour", some(&[2, 6], neighbour)),
        ("stopped", some(&[6], finding("stops", "stopped for 2.1 s", Some(70)))),
        ("quota", quota),
        ("clean", clean()),
        ("one", one),
        ("paced", paced),
    ]
}

/// Goal: the screen of each staged situation at 80 columns and 24 lines, whole. `TRUEIO_BLESS=1` rewrites them; read the difference.
#[test]
fn the_screens_of_staged_situations_fit_80_by_24() {
    for (name, record) in situations() {
        let text = screen(&record, &STYLE, "trueio report -v 3f9c21ab", &[]);
        assert!(text.lines().count() <= 23 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let steps = answer(&record, &[]).next_steps;
        assert!(steps.first().is_none_or(|step| joined.contains(step)), "the next step is whole: {text}");
        crate::outputs::assert_expected(&format!("screen-{name}.txt"), &text);
    }
}

/// Goal: the contradictions of a check are accepted when a record is printed again, too.
#[test]
fn an_accepted_check_shows_the_figures_of_a_stored_record() {
    let mut record = clean();
    stage(&mut record.phases[6], contradicted(finding("flushes", "no flush was executed", None)));
    let line = |record: &RunRecord| {
        let text = screen(record, &STYLE, "add -v", &[]);
        text.lines().find(|line| line.starts_with("  append-4k-fdatasync")).expect("its line").to_owned()
    };
    assert!(!line(&record).contains("612 commits/s"), "{}", line(&record));
    record.accept("processor_wait");
    assert_eq!(record.phases[6].verdict, Verdict::Contradicted, "another check");
    record.accept("flushes");
    assert_eq!(record.phases[6].verdict, Verdict::Suspect);
    assert!(line(&record).contains("612 commits/s") && line(&record).contains("* not the disk"), "{}", line(&record));
}

/// Goal: a headline that cannot tell says why. Method: only the load of one read at a time, which many disks serve as fast.
#[test]
fn the_latency_of_one_read_at_a_time_does_not_decide_what_a_disk_is() {
    let mut record = clean();
    record.phases.retain(|phase| phase.name == "rand-read-4k-q1");
    let headline = answer(&record, &[]).headline;
    assert_eq!(headline, "Cannot tell: the latency of one read at a time does not decide it.");
}

/// Goal: one number for the commits, in headline, table and sentences. Method: writes whose last one has no sync call.
#[test]
fn commits_are_the_sync_calls_everywhere() {
    let mut record = clean();
    let ops = record.phases.iter_mut().flat_map(|phase| &mut phase.jobs).flat_map(|job| &mut job.ops);
    for op in ops.filter(|op| op.op == trueio_model::OpKind::Sync) {
        op.io_count -= op.io_count / 10;
    }
    let text = screen(&record, &STYLE, "add -v", &[]);
    let found: Vec<&str> = text
        .split(' ')
        .zip(text.split(' ').skip(1))
        .filter(|(_, next)| next.starts_with("commits"))
        .map(|(count, _)| count)
        .collect();
    let count = found.iter().find(|word| word.parse::<u64>().is_ok()).expect("a rate");
    for words in [
        format!("Durable commits: {count} per second"),
        format!(" {count} commits/s"),
        format!("at most {count} commits per second"),
    ] {
        assert!(text.replace("\n  ", " ").contains(&words), "`{words}`: {text}");
    }
}

/// Goal: the sync calls of writes that a flag makes durable are not the commits. Method: one call for a hundred of these writes.
#[test]
fn commits_by_a_flag_are_the_writes() {
    let headline = |every| {
        let mut record = clean();
        let plan = record.plan.jobs.iter_mut().find(|plan| plan.name == "append-4k-fdatasync").expect("the plan");
        (plan.write_flags.dsync, plan.flush.fdatasync_every) = (every > 1, every);
        let ops = record.phases.iter_mut().flat_map(|phase| &mut phase.jobs).flat_map(|job| &mut job.ops);
        ops.filter(|op| op.op == trueio_model::OpKind::Sync).for_each(|op| op.io_count /= every);
        answer(&record, &[]).headline
    };
    assert!(headline(1).contains("Durable commits: 612 per second."), "{}", headline(1));
    assert!(headline(100).contains("Durable commits: 612 per second."), "{}", headline(100));
}

/// Goal: a renderer lays out an answer. Method: no file of an output reads the checks of a record, or derives a word of them; what does is
/// listed here, with the answer that it makes.
#[test]
fn renderers_read_answers_and_no_checks() {
    const DERIVE: [&str; 9] = [
        "answer.rs",
        "verdicts.rs",
        "statements.rs",
        "words.rs",
        "comparison/answer.rs",
        "study/answer.rs",
        "study/words.rs",
        // Tables of the checks of an answered phase.
        "html/phases.rs",
        "html/shared.rs",
    ];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut read_count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(&root).expect("below").to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !DERIVE.contains(&name.as_str()) {
                let text = std::fs::read_to_string(&path).expect("a source file");
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                for words in [".checks", "worst(&", "reasons(record)", "finding_words("] {
                    assert!(!code.contains(words), "`{words}` in {name}: an output lays out an answer");
                }
                read_count += 1;
            }
        }
    }
    assert!(read_count > 30, "{read_count} files");
}
