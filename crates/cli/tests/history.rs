//! Records that are kept: the history, reports of them, and what is said of ids that do not lead
//! to one.

mod common;

use common::*;
use std::fs;

const QUICK: &[&str] = &["run", "--ioengine", "null", "--number_ios", "10"];

fn ids(sandbox: &Sandbox) -> Vec<String> {
    let ran = sandbox.run(&["history", "--json"]);
    ran.assert_code(0);
    let rows: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    rows.as_array().expect("rows").iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn an_empty_history_says_how_to_begin_and_is_valid_json() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["history"]);
    ran.assert_code(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", "nothing was measured yet; `trueio baseline` begins\n"));
    assert_eq!(ids(&sandbox), [""; 0]);
}

#[test]
fn a_run_is_kept_and_can_be_reported_by_id_by_its_beginning_and_by_file() {
    let sandbox = Sandbox::new();
    let (ran, record) = sandbox.record(QUICK);
    let json = sandbox.aside("kept.json");
    let text = json.to_str().expect("UTF-8");
    assert_eq!(ids(&sandbox), [record.id.as_str()]);
    let listed = sandbox.run(&["history"]);
    assert!(listed.out.starts_with(&format!("{}  {}  run ", &record.id[..8], record.started_at)), "{listed:?}");

    for name in [record.id.as_str(), &record.id[..8], &record.id[..4]] {
        let reported = sandbox.run(&["report", name, "--json", text]);
        reported.assert_code(0);
        assert_eq!(reported.out, ran.out, "a report is not what the run printed");
        assert_eq!(read_record(&json), record);
    }
    let reported = sandbox.run(&["report", text, "--html", "page.html", "--hdr", "log.hdr"]);
    reported.assert_code(0);
    assert_eq!(reported.out, ran.out);
    assert!(fs::read_to_string(sandbox.path("page.html")).expect("a page").contains(&record.id[..8]));
    assert!(fs::read_to_string(sandbox.path("log.hdr")).expect("a log").contains("HIST"));
    assert_eq!(ids(&sandbox).len(), 1, "a report is no run");
}

#[test]
fn a_report_never_replaces_its_record() {
    let sandbox = Sandbox::new();
    sandbox.run(QUICK).assert_code(0);
    let id = ids(&sandbox).remove(0);
    sandbox.run(&["report", &id, "--json", "record.json"]).assert_code(0);
    let before = sandbox.listing();
    sandbox.run(&["report", "record.json", "--html", "./record.json"]).assert_refused(&["--html would replace"]);
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn the_history_is_newest_first_and_as_long_as_asked() {
    let sandbox = Sandbox::new();
    let made: Vec<String> = (0..3).map(|_| sandbox.record(QUICK).1.id).collect();
    let mut newest_first = made;
    newest_first.reverse();
    assert_eq!(ids(&sandbox), newest_first);
    assert_eq!(sandbox.run(&["history", "--limit", "2"]).out.lines().count(), 2);
    assert_eq!(sandbox.run(&["history", "--limit", "0"]).out.lines().count(), 0);
}

#[test]
fn ids_that_lead_nowhere_or_to_several_records_are_refused_with_a_hint() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["report", "abcd"])
        .assert_refused(&["begins with `abcd`", "hint: `trueio history` lists what there is"]);
    // Of 17 ids two begin with the same digit.
    for _ in 0..17 {
        sandbox.run(QUICK).assert_code(0);
    }
    let ids = ids(&sandbox);
    let shared = "0123456789abcdef"
        .chars()
        .find(|&digit| ids.iter().filter(|id| id.starts_with(digit)).count() > 1)
        .expect("17 ids and 16 digits");
    let ran = sandbox.run(&["report", &shared.to_string()]);
    ran.assert_refused(&[&format!("`{shared}`"), "hint: "]);
    sandbox.run(&["report", ""]).assert_refused(&["hint: "]);
}

#[test]
fn a_file_that_is_no_record_is_refused_with_the_reason() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello");
    sandbox.write("other.json", "{\"format\": \"something\", \"version\": 1}");
    sandbox.write("empty.json", "");
    for (file, reason) in [("notes.txt", "this is not JSON"), ("other.json", "something"), ("empty.json", "JSON")] {
        let ran = sandbox.run(&["report", file]);
        ran.assert_refused(&[&format!("`{file}` is no record that can be read"), "because: ", reason]);
    }
}

#[test]
fn a_run_that_is_not_to_be_kept_leaves_no_history() {
    let sandbox = Sandbox::new();
    let mut all = QUICK.to_vec();
    all.push("--no-history");
    sandbox.run(&all).assert_code(0);
    assert!(!sandbox.aside("trueio").exists(), "a history was made");
}

#[test]
fn a_history_that_cannot_be_written_loses_no_output() {
    let sandbox = Sandbox::new();
    // A file stands where the directory should be.
    fs::write(sandbox.aside("trueio"), "").expect("a file");
    let (ran, record) = sandbox.record(QUICK);
    ran.assert_code(0);
    assert!(ran.err.starts_with("warning: the record was not kept in the history\n  because: "), "{ran:?}");
    assert!(ran.err.contains("os error"), "the cause is missing\n{ran:?}");
    assert_eq!(only_job(&record).ops[0].io_count, 10);
}

#[test]
fn several_runs_at_the_same_time_are_all_kept() {
    let sandbox = Sandbox::new();
    let running: Vec<Running> = (0..6).map(|_| Running::start(&mut sandbox.command(QUICK))).collect();
    for run in running {
        let (ran, _) = run.wait();
        ran.assert_code(0);
        assert_eq!(ran.err, "");
    }
    assert_eq!(ids(&sandbox).len(), 6);
}
