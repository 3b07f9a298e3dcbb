//! The end of a run on a terminal: it fits, the answer is last, and nothing rests on colour or on characters beyond ASCII.

use crate::fixture;

use trueio_model::{Cause, Check, CheckOutcome, Histogram, OpKind, RunRecord, Verdict};
use trueio_report::{Style, answer, screen, screen_phase, screen_table};

const STYLE: Style = Style { width: 80, color: false, unicode: true };

/// Gives each phase a finding that objects, of every cause in turn.
fn disturbed() -> RunRecord {
    let mut record = fixture::baseline(2);
    for (phase, name) in record.phases.iter_mut().zip([
        "steadiness",
        "foreign_io",
        "processor_wait",
        "page_cache",
        "holes",
        "heat",
        "call_results",
    ]) {
        phase.checks = vec![Check {
            name: name.to_owned(),
            outcome: if name == "call_results" { CheckOutcome::Contradicted } else { CheckOutcome::Suspect },
            cause: Cause::usual_of(name).expect("a check"),
            source: String::new(),
            expected: String::new(),
            found: String::new(),
            sentence: "A sentence that is long enough to be wrapped if it were printed here, which it is not."
                .to_owned(),
            brief: "a few words".to_owned(),
            explained_percent: Some(20),
            culprits: Vec::new(),
            is_accepted: false,
        }];
        phase.verdict = Verdict::of(&phase.checks);
    }
    record
}

#[test]
fn it_fits_a_terminal_of_24_lines_and_80_columns_with_the_answer_last() {
    for record in [fixture::baseline(7), disturbed(), fixture::troubled()] {
        let text = screen(&record, &STYLE, "trueio report 3f9c21ab", &[]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= 23, "{} lines and the prompt:\n{text}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(lines.last(), Some(&"Details: trueio report 3f9c21ab"));
        let loads = record.phases.iter().flat_map(|phase| &phase.jobs).count();
        let is_load = |line: &&&str| line.contains("  p99 ") || line.contains(" I/Os  ");
        assert_eq!(lines.iter().filter(is_load).count(), loads, "one line a load:\n{text}");
    }
}

#[test]
fn a_baseline_names_its_loads_as_flags_do_and_compares_them_with_device_classes() {
    let text = screen(&fixture::baseline(7), &STYLE, "add -v", &[]);
    let joined = text.replace("\n  ", " ");
    for words in [
        "nvme0n1  Example NVMe SSD 1TB, nvme, 932 GiB, ext4 on /mnt/data",
        " seq-read-1m ",
        " rand-read-4k-q1 ",
        " rand-mix-4k-q32 ",
        " append-4k-fdatasync     612 commits/s",
        "  + confirmed",
        "6 of 7 loads confirmed by ",
        "like an NVMe SSD; commits like a consumer SSD.",
        "makes at most 612 commits per second",
        "Details: add -v",
    ] {
        assert!(joined.contains(words), "`{words}` is missing\n{text}");
    }
}

/// Goal: the sentence about commits says what is not proved. Method: no flush was counted, because the disk declares no volatile cache.
#[test]
fn commits_on_a_disk_that_declares_no_cache_are_not_proved() {
    let mut record = fixture::baseline(7);
    let words = "That a power cut loses none of them is declared by the device (no volatile write cache), not proved.";
    let shown = |record: &RunRecord| answer(record, &[]).statements.iter().any(|one| one.sentence().contains(words));
    assert!(!shown(&record));
    let unseen = Check {
        name: "flushes".to_owned(),
        outcome: CheckOutcome::NotSeen,
        source: "queue/write_cache".to_owned(),
        ..disturbed().phases[0].checks[0].clone()
    };
    record.phases.iter_mut().for_each(|phase| phase.checks.push(unseen.clone()));
    assert!(shown(&record));
}

/// Goal: a stop shows in the p99 of a job that commits at a rate. Method: the writes, which count from the time that they were due, took
/// 2.18 s; the sync calls after them are as fast as before.
#[test]
fn the_p99_is_that_of_the_slowest_operation_from_its_due_time() {
    let mut record = fixture::baseline(7);
    let mut jobs = record.phases.iter_mut().flat_map(|phase| &mut phase.jobs);
    let job = jobs.find(|job| job.ops.iter().any(|op| op.op == OpKind::Sync)).expect("commits");
    let write = job.ops.iter_mut().find(|op| op.op == OpKind::Write).expect("writes");
    let mut late = Histogram::new();
    late.record_many(2_180_000_000, write.latency.total.count());
    write.latency.from_intended = late;
    let text = screen(&record, &STYLE, "add -v", &[]);
    let line = text.lines().find(|line| line.starts_with("  append-4k-fdatasync")).expect("its line");
    assert!(line.contains("p99 2.18 s") || line.contains("p99  2.18 s"), "{line}");
}

/// Goal: a figure of few I/Os stands next to their number. Method: a read of 0.2 s; 37 of them; as many as there were.
#[test]
fn the_sample_size_stands_next_to_a_figure_of_few_ios() {
    let line_of = |io_count: u64| {
        let mut record = fixture::baseline(7);
        for op in record.phases.iter_mut().flat_map(|phase| &mut phase.jobs).flat_map(|job| &mut job.ops) {
            (op.io_count, op.byte_count) = (io_count, io_count * 4096);
            op.latency.total = Histogram::new();
            op.latency.total.record_many(200_000_000, io_count);
            op.percentiles.clear();
        }
        let text = screen(&record, &STYLE, "add -v", &[]);
        text.lines().find(|line| line.starts_with("  rand-read-4k-q1")).expect("its line").to_owned()
    };
    assert!(line_of(1).contains("      1 I/O  + confirmed"), "{}", line_of(1));
    assert!(line_of(37).contains("    37 I/Os  + confirmed"), "{}", line_of(37));
    assert!(line_of(100_000).contains(" p99 "), "{}", line_of(100_000));
}

#[test]
fn reasons_stand_with_their_step_and_a_withheld_figure_is_crossed_out() {
    let record = disturbed();
    let text = screen(&record, &STYLE, "add -v", &[]);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("`{what}` is missing\n{text}"));
    assert!(at("# calls") < at("Details"));
    assert!(text.contains("more, see the details"), "what does not fit is counted\n{text}");
    assert!(at("→ read the failed I/Os") > at("# calls"));
    assert!(at("--accept call_results") > at("# calls"));
    let withheld = text.lines().find(|line| line.starts_with("  append-4k-fdatasync")).expect("its row");
    assert!(withheld.contains(" x ") && !withheld.contains("/s"), "{withheld}");
}

#[test]
fn the_table_alone_has_one_line_a_load_and_a_phase_has_its_own() {
    let record = fixture::baseline(2);
    let table = screen_table(&record, &STYLE);
    assert_eq!(table.lines().count(), 7, "{table}");
    let whole = screen(&record, &STYLE, "add -v", &[]);
    for (index, line) in table.lines().enumerate() {
        assert!(whole.contains(line), "{line}\n{whole}");
        assert_eq!(screen_phase(&record, index, &STYLE).trim_end(), line);
    }
}

#[test]
fn colour_and_characters_beyond_ascii_add_nothing() {
    let record = disturbed();
    let plain = screen(&record, &STYLE, "add -v", &[]);
    let mut coloured = screen(&record, &Style { color: true, ..STYLE }, "add -v", &[]);
    assert!(coloured.contains("\x1b["));
    while let Some(begin) = coloured.find("\x1b[") {
        let end = begin + coloured[begin..].find('m').expect("its end");
        coloured.replace_range(begin..=end, "");
    }
    assert_eq!(coloured, plain);
    let ascii = screen(&record, &Style { unicode: false, ..STYLE }, "add -v", &[]);
    assert!(ascii.is_ascii(), "{ascii}");
    assert_eq!(ascii.lines().count(), plain.lines().count());
}
