//! Outputs compared whole. After an intended change, run with `TRUEIO_BLESS=1` and read the difference.

use crate::fixture;

use std::path::PathBuf;
use trueio_model::{
    CheckOutcome, DirectPolicy, EngineKind, Histogram, Mark, Outcome, RECORD_VERSION, RunRecord, SyncMode, Verdict,
};
use trueio_report::{ReadError, Style, answer, json, parse, screen, summary, terminal};

fn plain(width: usize) -> Style {
    Style { width, color: false, unicode: true }
}

/// Compares with `tests/expected/<name>`, or writes it if `TRUEIO_BLESS` is set.
pub(crate) fn assert_expected(name: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name);
    if std::env::var_os("TRUEIO_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((i, (a, e))) = actual.lines().zip(expected.lines()).enumerate().find(|(_, (a, e))| a != e) {
        panic!("{name}, line {}:\n  now      {a}\n  expected {e}\n(TRUEIO_BLESS=1 accepts the new text)", i + 1);
    }
    assert_eq!(actual.lines().count(), expected.lines().count(), "{name} has another number of lines");
}

#[test]
fn a_baseline_is_rendered_at_100_and_80_columns() {
    let record = fixture::baseline(6);
    assert_expected("baseline-100.txt", &terminal(&record, &plain(100)));
    assert_expected("baseline-80.txt", &terminal(&record, &plain(80)));
}

#[test]
fn a_failed_run_reports_each_failure() {
    assert_expected("troubled-100.txt", &terminal(&fixture::troubled(), &plain(100)));
}

#[test]
fn no_line_is_longer_than_the_terminal_from_72_columns_on() {
    for record in [fixture::baseline(6), fixture::troubled()] {
        for width in [72, 80, 96, 100, 132] {
            for line in terminal(&record, &plain(width)).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn without_unicode_the_text_is_ascii_and_keeps_its_columns() {
    let record = fixture::baseline(6);
    let ascii = terminal(&record, &Style { unicode: false, ..plain(100) });
    let unicode = terminal(&record, &plain(100));
    assert!(ascii.is_ascii());
    for (a, u) in ascii.lines().zip(unicode.lines()) {
        assert_eq!(a.len(), u.chars().count(), "{a}\n{u}");
    }
}

#[test]
fn colour_adds_no_information() {
    let record = fixture::troubled();
    let mut colored = terminal(&record, &Style { color: true, ..plain(100) });
    assert!(colored.contains("\x1b[1;31mx withheld"));
    while let Some(begin) = colored.find("\x1b[") {
        let end = begin + colored[begin..].find('m').unwrap();
        colored.replace_range(begin..=end, "");
    }
    assert_eq!(colored, terminal(&record, &plain(100)));
}

/// Goal: a figure of few I/Os has their number next to it in every output. Method: every load with 1, 37 and 100,000 I/Os.
#[test]
fn the_sample_size_stands_next_to_a_figure_of_few_ios() {
    for (count, words) in [(1, Some("1 I/O")), (37, Some("37 I/Os")), (100_000, None)] {
        let mut record = fixture::baseline(6);
        for op in record.phases.iter_mut().flat_map(|phase| &mut phase.jobs).flat_map(|job| &mut job.ops) {
            (op.io_count, op.byte_count) = (count, count * 4096);
        }
        let rows = summary(&record).iter().filter(|row| row.op != trueio_model::OpKind::Sync).count();
        let (html, markdown) = (trueio_report::html(&record), trueio_report::markdown(&record, &[]));
        let texts = [
            terminal(&record, &plain(100)),
            markdown,
            html.split("<script").next().unwrap_or_default().replace("&#x2f;", "/"),
        ];
        for (index, text) in texts.iter().enumerate() {
            match words {
                Some(words) => assert!(text.matches(words).count() >= rows, "output {index}:\n{text}"),
                None => assert!(!text.contains(" I/Os)") && !text.contains(", 1 I/O"), "output {index}:\n{text}"),
            }
        }
        let answer = trueio_report::answer(&record, &[]);
        assert!(answer.figures.iter().all(|figure| figure.sample_count == count), "{:?}", answer.figures);
    }
}

/// Goal: a contradicted figure never appears without its reason, whatever the width and the phase: between the table and
/// everything else, and the way to accept it after all reasons.
#[test]
fn the_reason_of_each_contradicted_row_follows_the_table() {
    let mut record = fixture::baseline(2);
    for phase in &mut record.phases {
        phase.verdict = Verdict::Contradicted;
        phase.checks[1].outcome = CheckOutcome::Contradicted;
        phase.checks[1].sentence = format!("The reason of {}.", phase.name);
    }
    for width in [60, 100] {
        let wrapped = terminal(&record, &plain(width));
        let text = wrapped.split_whitespace().collect::<Vec<_>>().join(" ");
        let (last_row, other_sections) = (text.rfind("x withheld E").unwrap(), text.find("Not checked").unwrap());
        let accept = text.find(&format!("--accept {}", record.phases[0].checks[1].name)).unwrap();
        for phase in &record.phases {
            let reason = text.find(&format!("The reason of {}.", phase.name)).unwrap();
            assert!(last_row < reason && reason < accept && accept < other_sections, "{wrapped}");
        }
    }
    for phase in &mut record.phases {
        phase.checks.clear();
    }
    assert!(terminal(&record, &plain(100)).contains("does not contain the check"));
}

#[test]
fn a_percentile_that_the_sample_cannot_support_is_a_dash_with_a_footnote() {
    let record = fixture::troubled();
    let row = summary(&record).into_iter().find(|r| r.label == "rand-read-4k-q1").unwrap();
    assert_eq!(row.io_count, 300);
    assert!(row.quantiles[0].is_some() && row.quantiles[1].is_none() && row.quantiles[2].is_none());
    assert!(terminal(&record, &plain(100)).contains("at least: p99 368, p99.9 3,688."));
    assert!(!terminal(&fixture::baseline(60), &plain(100)).contains("too few I/Os"));
}

#[test]
fn with_a_pace_latency_counts_from_the_due_time_and_a_note_reports_it() {
    let mut record = fixture::baseline(2);
    let op = &mut record.phases[2].jobs[0].ops[0];
    op.latency.from_intended.record_many(250_000, 10_000);
    let row = &summary(&record)[2];
    assert!(row.is_from_intended);
    assert_eq!(row.latency_ns_max, Some(250_000));
    let text = terminal(&record, &plain(100));
    assert!(text.contains("Latencies of rand-read-4k-q1 count from the time each I/O was due."));
}

#[test]
fn a_single_flush_at_the_end_is_a_sentence_and_not_a_row_unless_it_failed() {
    let mut record = fixture::baseline(2);
    let mut flush = record.phases[6].jobs[0].ops[1].clone();
    flush.io_count = 1;
    flush.latency.total = Histogram::new();
    flush.latency.total.record(970_000);
    record.phases[1].jobs[0].ops.push(flush);
    let labels = |record: &RunRecord| summary(record).into_iter().map(|r| r.label).collect::<Vec<_>>();
    assert_eq!(labels(&record), labels(&fixture::baseline(2)));
    let text = terminal(&record, &plain(100));
    assert!(
        text.contains(
            "The fsync at the end, which is part of the measured time, took: seq-write-1m 970 \
                           µs."
        ),
        "{text}"
    );
    record.phases[1].jobs[0].ops[1].error_count = 1;
    assert!(labels(&record).contains(&"seq-write-1m sync".to_owned()));
}

/// Goal: where only the sync at the end makes the rate the disk's, the latencies of the write calls are not called the disk's.
/// Method: buffered writes with a sync at the end; the same with direct I/O, and with a call that makes each write durable.
#[test]
fn latencies_of_writes_to_memory_are_withheld_and_the_rate_is_not() {
    let ending = |direct: DirectPolicy, sync: SyncMode| {
        let mut record = fixture::baseline(2);
        let flush = record.phases[6].jobs[0].ops[1].clone();
        record.phases[1].jobs[0].ops.push(flush);
        (record.plan.jobs[1].direct, record.plan.jobs[1].sync) = (direct, sync);
        record
    };
    let record = ending(DirectPolicy::Off, SyncMode::None);
    let row = &summary(&record)[1];
    assert!(row.has_memory_latency && row.ios_per_s.is_some() && row.bytes_per_s.is_some());
    assert_eq!((row.quantiles, row.mean_ns, row.latency_ns_max), ([None; 3], None, None));
    let note = "Latencies of seq-write-1m are withheld: the write calls returned once the data was in memory.";
    assert!(terminal(&record, &plain(120)).contains(note));
    assert!(screen(&record, &plain(80), "add -v", &[]).contains("p99  memory"));
    let figures: Vec<_> = answer(&record, &[]).figures.into_iter().filter(|one| one.load == "seq-write-1m").collect();
    let shown: Vec<&str> = figures.iter().filter(|one| one.is_shown).map(|one| one.name.as_str()).collect();
    assert_eq!(shown, ["iops", "bandwidth"]);
    let hidden: Vec<_> = figures.iter().filter(|one| !one.is_shown).collect();
    assert!(hidden.iter().all(|one| one.verdict == Mark::NotTheDisk && one.cause.contains("in memory")), "{hidden:#?}");
    for (direct, sync) in [(DirectPolicy::Require, SyncMode::None), (DirectPolicy::Off, SyncMode::Dsync)] {
        let row = &summary(&ending(direct, sync))[1];
        assert!(!row.has_memory_latency && row.latency_ns_max.is_some());
    }
}

#[test]
fn a_run_without_a_phase_reports_that_nothing_was_measured() {
    let mut record = fixture::baseline(2);
    record.phases.clear();
    record.outcome = Outcome::Failed { reason: "`/mnt/data` is full (ENOSPC)".into() };
    let text = terminal(&record, &plain(80));
    assert!(text.contains("Nothing was measured.") && text.contains("FAILED: `/mnt/data` is full"));
    assert!(!text.contains("too few"));
}

#[test]
fn a_record_cannot_control_the_terminal() {
    let mut record = fixture::troubled();
    let evil = "\x1b]0;title\x07\x1b[2J\r\u{202e}";
    record.targets[0].path.push_str(evil);
    record.kind.push_str(evil);
    record.environment.system.push_str(evil);
    record.phases[3].checks[1].sentence.push_str(evil);
    record.phases[0].jobs[0].name.push_str(evil);
    record.outcome = Outcome::Failed { reason: evil.into() };
    let text = terminal(&record, &plain(100));
    assert!(!text.contains(['\x1b', '\x07', '\r', '\u{202e}']), "{text}");
}

#[test]
fn json_read_back_is_the_same_record() {
    for record in [fixture::baseline(6), fixture::troubled()] {
        assert_eq!(parse(&json(&record)).unwrap(), record);
    }
}

#[test]
fn json_begins_with_its_format_and_keeps_an_interval_on_one_line() {
    let text = json(&fixture::baseline(2));
    assert!(text.starts_with("{\n  \"format\": \"trueio-record\",\n  \"version\": 3,\n"));
    let rows = text.lines().filter(|l| l.trim_start().starts_with("{\"end_ns\":")).count();
    assert_eq!(rows, 7 * 20, "a row a line");
}

#[test]
fn a_record_of_version_1_can_be_read() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../store/tests/records/v1.json");
    let record = parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    // It is converted to today's names: the engine that was called `sync` is `psync`.
    assert_eq!((record.version, record.phases.len()), (RECORD_VERSION, 7));
    let log = record.plan.jobs.iter().find(|job| job.name.starts_with("append")).unwrap();
    let value = log.values.iter().find(|value| value.name == "ioengine").unwrap();
    assert_eq!((log.engine, &*value.value), (EngineKind::Psync, "psync"));
    assert!(record.plan.jobs.iter().all(|job| job.engine != EngineKind::Sync));
    let row = summary(&record).into_iter().find(|r| r.label == "randread 4k q32").unwrap();
    assert_eq!(row.io_count, 742_000);
    assert_eq!(row.quantiles[0].unwrap().count, 742_000);
}

#[test]
fn a_text_that_is_no_record_is_described_in_the_error() {
    let text = json(&fixture::baseline(1));
    let error = |text: &str| parse(text).unwrap_err();
    assert!(matches!(error(""), ReadError::NotJson(_)));
    assert!(matches!(error("3;fio-3.42;a;0;0"), ReadError::NotJson(_)));
    assert!(matches!(error("{\"format\": \"trueio"), ReadError::NotJson(_)));
    assert!(matches!(error("[1, 2]"), ReadError::NotARecord { .. }));
    assert!(matches!(error("7"), ReadError::NotARecord { .. }));
    assert!(error("{\"fio version\": \"fio-3.42\"}").to_string().contains("`format` is absent"));
    assert!(error("{\"format\": \"other\", \"version\": 1}").to_string().contains("\"other\""));
    let newer = error(&text.replacen("\"version\": 3", "\"version\": 4, \"brand_new\": []", 1));
    assert_eq!(
        newer.to_string(),
        "this record has version 4; this program reads up to version 3 (a newer trueio reads it)"
    );
    for version in ["0", "-1", "\"1\"", "1.5", "null"] {
        let error = error(&text.replacen("\"version\": 3", &format!("\"version\": {version}"), 1));
        assert!(matches!(error, ReadError::NoVersion { .. }), "{version}: {error}");
    }
    let damaged = error(&text.replacen("\"started_unix_s\"", "\"started\"", 1));
    assert!(matches!(damaged, ReadError::Damaged { version: 3, .. }));
    assert!(std::error::Error::source(&damaged).unwrap().to_string().contains("started_unix_s"));
    let with_unknown_field = text.replacen("\"version\": 3,", "\"version\": 3, \"added_later\": {\"a\": [1]},", 1);
    assert!(parse(&with_unknown_field).is_ok());
}

#[test]
fn an_empty_record_renders() {
    let record: RunRecord = {
        let mut record = fixture::baseline(1);
        record.targets.clear();
        record.plan.jobs.clear();
        for op in record.phases.iter_mut().flat_map(|p| &mut p.jobs).flat_map(|j| &mut j.ops) {
            op.latency.total = Histogram::new();
            op.io_count = 0;
        }
        record
    };
    assert!(terminal(&record, &plain(80)).contains("too few I/Os"));
}

/// A contradiction of a disk's declaration is reported once, however many phases found it, and an agreement
/// is not.
#[test]
fn a_doubtful_declaration_of_a_disk_is_a_note_although_the_check_passed() {
    let mut record = fixture::baseline(6);
    let check = |sentence: &str| trueio_model::Check {
        name: "declared_values".to_owned(),
        outcome: CheckOutcome::Passed,
        cause: trueio_model::Cause::Device,
        brief: String::new(),
        explained_percent: None,
        culprits: Vec::new(),
        source: String::new(),
        expected: String::new(),
        found: String::new(),
        sentence: sentence.to_owned(),
        is_accepted: false,
    };
    for phase in record.phases.iter_mut().take(3) {
        phase.checks.push(check("vda declares that it rotates, and that is remarkable."));
        phase.checks.push(check("The measured latencies agree with the declared `rotational` flag."));
    }
    let text = terminal(&record, &plain(100));
    assert_eq!(text.matches("vda declares that it rotates").count(), 1, "{text}");
    assert!(!text.contains("agrees with what the disk says"));
}
