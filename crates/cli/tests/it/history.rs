//! The history: stored records, reports of them, and errors of IDs without a record.

use crate::common::*;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use trueio_model::RunRecord;

const QUICK: &[&str] = &["run", "--ioengine", "null", "--number_ios", "10", "-v"];

fn ids(sandbox: &Sandbox) -> Vec<String> {
    let ran = sandbox.run(&["history", "--json"]);
    ran.assert_code(0);
    let rows: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    rows.as_array().expect("rows").iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn an_empty_history_prints_a_hint_and_is_valid_json() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["history"]);
    ran.assert_code(0);
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("", "the history is empty; `trueio baseline` measures this directory's disk\n")
    );
    assert_eq!(ids(&sandbox), [""; 0]);
    // What only reads leaves nothing behind.
    sandbox.run(&["report", "nothing.json"]).assert_refused(&["nothing.json"]);
    sandbox.run(&["history", "export", "all.csv"]).assert_code(0);
    sandbox.run(&["history", "delete", "0123"]).assert_refused(&["no run"]);
    assert!(!sandbox.aside("trueio").exists(), "a history was made");
}

#[test]
fn a_run_is_stored_and_can_be_reported_by_id_prefix_or_file() {
    let sandbox = Sandbox::new();
    let (ran, record) = sandbox.record(QUICK);
    let json = sandbox.aside("kept.json");
    let text = json.to_str().expect("UTF-8");
    assert_eq!(ids(&sandbox), [record.id.as_str()]);
    let listed = sandbox.run(&["history"]);
    assert!(listed.out.starts_with(&format!("{}  {}  run ", &record.id[..8], record.started_at)), "{listed:?}");

    for name in [record.id.as_str(), &record.id[..8], &record.id[..4]] {
        let reported = sandbox.run(&["report", "-v", name, "--json", text]);
        reported.assert_code(0);
        assert_eq!(reported.out, ran.out, "a report is not what the run printed");
        assert_eq!(read_record(&json), record);
    }
    let reported = sandbox.run(&["report", "-v", text, "--html", "page.html", "--hdr", "log.hdr"]);
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
fn no_output_replaces_the_history_or_goes_through_a_link() {
    let sandbox = Sandbox::new();
    sandbox.run(QUICK).assert_code(0);
    let id = ids(&sandbox).remove(0);
    let history = sandbox.aside("trueio/history.sqlite3");
    let history = history.to_str().expect("UTF-8");
    let journal = format!("{history}-journal");
    let before = fs::read(history).expect("the history");
    for arguments in [
        vec!["report", &id, "--html", history],
        vec!["report", &id, "--json", history],
        vec!["history", "trend", "--html", history],
        vec!["history", "export", history, "--format", "csv"],
        vec!["run", "--ioengine", "null", "--number_ios", "1", "--json", history],
        // A journal decides what SQLite reads from the database.
        vec!["report", &id, "--html", &journal],
        vec!["history", "export", &journal, "--format", "csv"],
    ] {
        sandbox.run(&arguments).assert_refused(&["would replace", "the history"]);
        assert_eq!(fs::read(history).expect("the history"), before, "{arguments:?}");
    }
    sandbox.write("job.fio", "[a]\nioengine=null\nsize=64k\n");
    for output in [history, &journal] {
        let output = format!("--output={output}");
        for arguments in [
            &["fio", "--name=a", "--ioengine=null", "--size=64k", &output][..],
            &["fio", "--client=sock:/nowhere", "job.fio", &output],
        ] {
            let ran = sandbox.run(arguments);
            ran.assert_code(1);
            assert!(ran.err.contains("would replace") && ran.err.contains("the history"), "{ran:?}");
            assert_eq!(fs::read(history).expect("the history"), before, "{arguments:?}");
        }
    }
    assert!(!Path::new(&journal).exists());
    fs::write(sandbox.path("thesis.txt"), "precious").expect("a file");
    std::os::unix::fs::symlink("thesis.txt", sandbox.path("link")).expect("a link");
    sandbox.run(&["report", &id, "--html", "link"]).assert_refused(&["symbolic link", "name its target"]);
    assert_eq!(fs::read(sandbox.path("thesis.txt")).expect("content"), b"precious");
}

#[test]
fn the_history_is_newest_first_and_limited() {
    let sandbox = Sandbox::new();
    let made: Vec<String> = (0..3).map(|_| sandbox.record(QUICK).1.id).collect();
    let mut newest_first = made;
    newest_first.reverse();
    assert_eq!(ids(&sandbox), newest_first);
    assert_eq!(sandbox.run(&["history", "--limit", "2"]).out.lines().count(), 2);
    assert_eq!(sandbox.run(&["history", "--limit", "0"]).out.lines().count(), 0);
}

#[test]
fn unknown_and_ambiguous_ids_are_refused_with_a_hint() {
    let sandbox = Sandbox::new();
    sandbox.run(&["report", "abcd"]).assert_refused(&["begins with `abcd`", "hint: `trueio history` lists all runs"]);
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
        ran.assert_refused(&[&format!("`{file}` is not a valid record"), "because: ", reason]);
    }
}

#[test]
fn a_run_with_no_history_leaves_no_history_file() {
    let sandbox = Sandbox::new();
    let mut all = QUICK.to_vec();
    all.push("--no-history");
    sandbox.run(&all).assert_code(0);
    assert!(!sandbox.aside("trueio").exists(), "a history was made");
}

#[test]
fn a_history_that_cannot_be_written_loses_no_output() {
    let sandbox = Sandbox::new();
    // A file has the name of the directory.
    fs::write(sandbox.aside("trueio"), "").expect("a file");
    let (ran, record) = sandbox.record(QUICK);
    ran.assert_code(0);
    assert!(ran.err.starts_with("warning: the record was not stored in the history\n  because: "), "{ran:?}");
    assert!(ran.err.contains("os error"), "the cause is missing\n{ran:?}");
    assert_eq!(only_job(&record).ops[0].io_count, 10);
}

#[test]
fn parallel_runs_are_all_stored() {
    let sandbox = Sandbox::new();
    let running: Vec<Running> = (0..6).map(|_| Running::start(&mut sandbox.command(QUICK))).collect();
    for run in running {
        let (ran, _) = run.wait();
        ran.assert_code(0);
        assert_eq!(ran.err, "");
    }
    assert_eq!(ids(&sandbox).len(), 6);
}

/// Goal: what an earlier program wrote is read by this one. Method: a record of each version, as a program of that version wrote it,
/// is imported, listed, and reported in every output.
#[test]
fn a_record_of_each_version_is_imported_listed_and_reported() {
    let sandbox = Sandbox::new();
    for version in 1..=trueio_model::RECORD_VERSION {
        let kept = format!("{}/../store/tests/records/v{version}.json", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(&kept).expect("a kept record");
        let head = text.split_whitespace().collect::<String>();
        assert!(head.contains(&format!("\"version\":{version},")), "{kept}");
        sandbox.run(&["history", "import", &kept]).assert_code(0);
        let record = read_record(kept.as_ref());
        assert_eq!(record.version, trueio_model::RECORD_VERSION, "it is converted when it is read");
        let [html, csv, markdown, prom, json] =
            ["html", "csv", "markdown", "prom", "json"].map(|name| sandbox.aside(&format!("v{version}.{name}")));
        let paths = [&html, &csv, &markdown, &prom, &json].map(|path| path.to_str().expect("UTF-8"));
        let outputs =
            ["--html", paths[0], "--csv", paths[1], "--markdown", paths[2], "--prom", paths[3], "--json", paths[4]];
        let ran = sandbox.run(&[&["report", "-v", &record.id][..], &outputs].concat());
        ran.assert_code(0);
        for row in trueio_report::summary(&record) {
            assert!(ran.out.contains(row.label.as_str()), "{}: {ran:?}", row.label);
        }
        assert_eq!(read_record(&json), record, "version {version}");
        assert_eq!(fs::read_to_string(&csv).expect("CSV").lines().count(), 1 + trueio_report::summary(&record).len());
    }
    assert_eq!(ids(&sandbox).len(), 3);
}

/// A record of the disk `serial`, made of one that was kept, with another id and time.
fn crafted(sandbox: &Sandbox, name: &str, change: impl FnOnce(&mut RunRecord)) -> String {
    let text = include_str!("../../../store/tests/records/v1.json");
    let mut record = trueio_report::parse(text).expect("the kept record");
    change(&mut record);
    let path = sandbox.write(name, trueio_report::json(&record));
    path.to_str().expect("UTF-8").to_owned()
}

fn rows(sandbox: &Sandbox, arguments: &[&str]) -> Vec<serde_json::Value> {
    let mut all = vec!["history", "list", "--json"];
    all.extend(arguments);
    let ran = sandbox.run(&all);
    ran.assert_code(0);
    serde_json::from_str(&ran.out).expect("JSON")
}

#[test]
fn a_run_can_be_tagged_noted_found_shown_and_deleted() {
    let sandbox = Sandbox::new();
    let (_, record) = sandbox.record(QUICK);
    let (_, other) = sandbox.record(QUICK);
    let id = &record.id[..10];
    sandbox.run(&["history", "tag", id, "new-cable", "hot"]).assert_code(0);
    sandbox.run(&["history", "note", id, "after the update\nsecond line"]).assert_code(0);
    let found = rows(&sandbox, &["--tag", "hot", "--tag", "new-cable", "--kind", "run", "--since", "1h"]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["id"], record.id.as_str());
    assert_eq!(found[0]["tags"], serde_json::json!(["hot", "new-cable"]));
    let listed = sandbox.run(&["history", "--tag", "hot"]);
    assert!(listed.out.trim_end().ends_with("#hot  #new-cable  “after the update”"), "{listed:?}");
    let shown = sandbox.run(&["history", "show", id]);
    shown.assert_code(0);
    assert!(
        shown.out.starts_with("tags    hot, new-cable\nnote    after the update\n        second line\n\ntrueio run  "),
        "{shown:?}"
    );
    sandbox.run(&["history", "untag", id, "hot"]).assert_code(0);
    sandbox.run(&["history", "untag", id, "hot"]).assert_refused(&["has no tag `hot`"]);
    sandbox.run(&["history", "tag", id, "two words"]).assert_refused(&["cannot be a tag"]);
    for filter in [["--tag", "hot"], ["--kind", "baseline"], ["--since", "2099-01-01"]] {
        assert_eq!(rows(&sandbox, &filter).len(), 0, "{filter:?}");
        let mut all = vec!["history", "list"];
        all.extend(filter);
        assert_eq!(sandbox.run(&all).err, "no run in the history matches the selection\n");
    }
    sandbox.run(&["history", "--since", "lately"]).assert_refused(&["is neither a date nor a duration", "hint: "]);
    sandbox.run(&["history", "--device", "nonsense"]).assert_refused(&["`nonsense`", "hint: "]);
    // One that cannot be found: the other stays, too.
    sandbox.run(&["history", "delete", id, "ffff0000"]).assert_refused(&["ffff0000"]);
    assert_eq!(ids(&sandbox).len(), 2);
    sandbox.run(&["history", "delete", id, &record.id]).assert_code(0);
    assert_eq!(ids(&sandbox), [other.id]);
}

/// Goal: a device is recognised by its identity under any name, and another disk of the same name is not.
/// Method: three records: disk A as nvme0n1, disk A as nvme7n1, disk B as nvme0n1.
#[test]
fn runs_are_found_by_the_device_and_not_by_its_name() {
    let sandbox = Sandbox::new();
    for (n, name, serial) in [(1u64, "nvme0n1", "A-0417"), (2, "nvme7n1", "A-0417"), (3, "nvme0n1", "B-0552")] {
        let path = crafted(&sandbox, "one.json", |record| {
            record.id = format!("{n:032x}");
            record.started_unix_s += n;
            record.targets[0].disks[0].name = name.into();
            record.targets[0].disks[0].serial.value = Some(serial.into());
        });
        sandbox.run(&["history", "import", &path]).assert_code(0);
    }
    let starts = |device: &str| {
        let rows = rows(&sandbox, &["--device", device]);
        rows.iter().map(|r| r["id"].as_str().expect("id")[31..].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (starts("a-0417"), starts("B-0552"), starts("#2")),
        (vec!["2".to_owned(), "1".into()], vec!["3".into()], vec!["3".into()])
    );
    let listed = sandbox.run(&["history", "devices"]);
    assert!(listed.out.contains("#1   Example NVMe SSD 1TB, 932 GiB; 2 runs"), "{listed:?}");
    assert!(listed.out.contains("serial number Example NVMe SSD 1TB / A-0417"), "{listed:?}");
    sandbox.run(&["history", "--device", "Example NVMe"]).assert_refused(&["matches several devices", "#1", "#2"]);
    sandbox.run(&["history", "--device", "7"]).assert_refused(&["has no device 7"]);
    let shown = sandbox.run(&["history", "show", &format!("{:031x}2", 0)]);
    assert!(
        shown.out.starts_with("device  #1 Example NVMe SSD 1TB, 932 GiB, recognised by its serial number"),
        "{shown:?}"
    );
}

#[test]
fn one_filesystem_mounted_elsewhere_under_another_loop_device_is_the_same_device() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let first = Loop::new(&sandbox, "disk.img", 64 << 20);
    first.make_ext4();
    let run = |place: &Mount| {
        let directory = place.path.to_str().expect("UTF-8");
        let flags = ["run", "--rw", "write", "--size", "1m", "--directory", directory, "--no-evidence"];
        sandbox.run(&flags).assert_code(0);
    };
    let mount = Mount::ext4(&sandbox, "here", &first.device);
    run(&mount);
    drop(mount);
    // Another loop device over the same file: another number and another name.
    let second = Loop::over(&first.backing, &[]);
    assert_ne!(first.device, second.device);
    let elsewhere = Mount::ext4(&sandbox, "elsewhere", &second.device);
    run(&elsewhere);
    let place = elsewhere.path.to_str().expect("UTF-8").to_owned();
    let place = place.as_str();
    assert_eq!(rows(&sandbox, &["--device", place]).len(), 2);
    drop(elsewhere);
    // Another filesystem on the same device is not it.
    let third = Loop::new(&sandbox, "other.img", 64 << 20);
    third.make_ext4();
    let other = Mount::ext4(&sandbox, "elsewhere", &third.device);
    sandbox.run(&["history", "--device", place]).assert_refused(&["no run in the history was on the device under"]);
    run(&other);
    assert_eq!(rows(&sandbox, &["--device", place]).len(), 1);
}

#[test]
fn records_are_imported_once_and_an_unreadable_file_imports_nothing() {
    let sandbox = Sandbox::new();
    let good = crafted(&sandbox, "good.json", |record| record.id = "aaaa1111".into());
    let newer = sandbox.write("newer.json", "{\"format\": \"trueio-record\", \"version\": 99, \"new\": [1]}");
    let cut = fs::read_to_string(&good).expect("it was written");
    sandbox.write("cut.json", &cut[..cut.len() / 2]);
    sandbox.write("notes.txt", "hello");
    sandbox.write("old-fio.json", "{\"fio version\": \"fio-2.16\", \"jobs\": []}");
    crafted(&sandbox, "id.json", |record| record.id = "../../x".into());
    for (bad, reason) in [
        (newer.to_str().expect("UTF-8"), "this record has version 99; this program reads up to version 3"),
        ("cut.json", "this is not JSON"),
        ("notes.txt", "this is not JSON"),
        ("old-fio.json", "fio-2.16"),
        ("id.json", "its `id` is not"),
        ("missing.json", "cannot be read"),
    ] {
        sandbox.run(&["history", "import", &good, bad]).assert_refused(&[bad, reason]);
        assert_eq!(ids(&sandbox), [""; 0], "{bad}: a part was imported");
    }
    let ran = sandbox.run(&["history", "import", &good, "--tag", "from-elsewhere"]);
    ran.assert_code(0);
    assert!(ran.out.starts_with("aaaa1111  record  "), "{ran:?}");
    let again = sandbox.run(&["history", "import", &good]);
    again.assert_code(0);
    assert!(again.out.starts_with("aaaa1111  already stored  "), "{again:?}");
    assert_eq!(rows(&sandbox, &["--tag", "from-elsewhere"]).len(), 1);
    let reported = sandbox.run(&["report", "aaaa", "--json", "again.json"]);
    reported.assert_code(0);
    assert_eq!(read_record(&sandbox.path("again.json")), read_record(Path::new(&good)));
}

#[test]
fn a_result_of_fio_is_stored_without_a_verdict_and_never_reported_as_a_record() {
    let sandbox = Sandbox::new();
    let path = format!("{}/../fio/tests/results/json+-3.42.json", env!("CARGO_MANIFEST_DIR"));
    let ran = sandbox.run(&["history", "import", &path]);
    ran.assert_code(0);
    assert!(ran.out.contains("  result of fio, without evidence  "), "{ran:?}");
    let kept = rows(&sandbox, &["--kind", "fio"]);
    assert_eq!(kept.len(), 1);
    assert_eq!((&kept[0]["verdict"], &kept[0]["source"]), (&serde_json::Value::Null, &"fio".into()));
    let id = kept[0]["id"].as_str().expect("an id");
    let shown = sandbox.run(&["history", "show", id]);
    shown.assert_code(0);
    for sentence in ["fio-3.42", "fio's figures", "E0", "no verdict", "mix read", "54,220", "lat"] {
        assert!(shown.out_joined().contains(sentence), "{sentence}\n{shown:?}");
    }
    for word in ["supported", "suspect", "contradicted"] {
        assert!(!shown.out.contains(word), "{shown:?}");
    }
    assert!(sandbox.run(&["history"]).out.contains("  no evidence  "));
    sandbox.run(&["report", id]).assert_refused(&["is a result of fio", "hint: "]);
}

#[test]
fn a_complete_export_imports_as_the_same_history() {
    let (here, there) = (Sandbox::new(), Sandbox::new());
    let (_, record) = here.record(QUICK);
    let fio = format!("{}/../fio/tests/results/cli_global_two_jobs.json", env!("CARGO_MANIFEST_DIR"));
    here.run(&["history", "import", &fio]).assert_code(0);
    here.run(&["history", "tag", &record.id, "a", "b"]).assert_code(0);
    here.run(&["history", "note", &record.id, "words\n“and” signs"]).assert_code(0);
    let file = here.aside("all.jsonl");
    let path = file.to_str().expect("UTF-8");
    here.run(&["history", "export", path]).assert_code(0);
    assert_eq!(fs::read_to_string(&file).expect("the export").lines().count(), 2);
    there.run(&["history", "import", path]).assert_code(0);
    let (before, after) = (
        here.run(&["history", "export", "-", "--format", "jsonl"]),
        there.run(&["history", "export", "-", "--format", "jsonl"]),
    );
    let documents = |ran: &Ran| -> Vec<serde_json::Value> {
        ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    assert_eq!(documents(&before), documents(&after));
    assert_eq!(rows(&here, &[]), rows(&there, &[]));
    // One entry is a file, too.
    let one = here.run(&["history", "show", &record.id, "--json"]);
    let third = Sandbox::new();
    third.write("one.json", &one.out);
    third.run(&["history", "import", "one.json"]).assert_code(0);
    assert_eq!(rows(&third, &["--tag", "a"]).len(), 1);
    let newer = one
        .out
        .replace("\"version\": 1,\n  \"source\"", "\"version\": 2,\n  \"source\"")
        .replace("\"version\": 1\n}", "\"version\": 2\n}");
    assert_ne!(newer, one.out, "the version was not found\n{}", one.out);
    third.write("newer.json", newer);
    third.run(&["history", "import", "newer.json"]).assert_refused(&["version 2"]);
}

/// Both tables hold the same, and a contradicted figure has its reason next to it.
#[test]
fn a_table_of_all_figures_is_the_same_in_csv_and_parquet() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let sandbox = Sandbox::new();
    let path = crafted(&sandbox, "one.json", |record| {
        let phase = &mut record.phases[0];
        phase.verdict = trueio_model::Verdict::Contradicted;
        phase.checks[0].outcome = trueio_model::CheckOutcome::Contradicted;
        phase.checks[0].sentence = "Nothing of it, \"really\", reached the disk.\n".into();
    });
    let fio = format!("{}/../fio/tests/results/cli_global_two_jobs.json", env!("CARGO_MANIFEST_DIR"));
    sandbox.run(&["history", "import", &path, &fio]).assert_code(0);
    sandbox.run(&["history", "export", "table.csv"]).assert_code(0);
    sandbox.run(&["history", "export", "table.parquet"]).assert_code(0);
    let mut reader = csv::Reader::from_path(sandbox.path("table.csv")).expect("CSV");
    let heading: Vec<String> = reader.headers().expect("a heading").iter().map(str::to_owned).collect();
    let csv_rows: Vec<Vec<String>> =
        reader.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect();
    // The operations of all phases (the end's flush is no row), three of fio.
    let kept = trueio_report::summary(&read_record(Path::new(&path))).len();
    assert_eq!(csv_rows.len(), kept + 3);
    let file = fs::File::open(sandbox.path("table.parquet")).expect("a file");
    let parquet = SerializedFileReader::new(file).expect("Parquet");
    let parquet_rows: Vec<Vec<(String, String)>> = parquet
        .get_row_iter(None)
        .expect("rows")
        .map(|row| {
            let text = |field: &Field| match field {
                Field::Null => String::new(),
                Field::Str(text) => text.clone(),
                Field::Long(number) => number.to_string(),
                Field::Double(number) => number.to_string(),
                other => panic!("{other:?}"),
            };
            row.expect("a row").get_column_iter().map(|(name, field)| (name.clone(), text(field))).collect()
        })
        .collect();
    let csv_named: Vec<Vec<(String, String)>> =
        csv_rows.iter().map(|row| heading.iter().cloned().zip(row.iter().cloned()).collect()).collect();
    assert_eq!(parquet_rows, csv_named);
    let value = |row: &[(String, String)], name: &str| row.iter().find(|(n, _)| n == name).expect(name).1.clone();
    let record_rows: Vec<_> = csv_named.iter().filter(|row| value(row, "source") == "trueio").collect();
    assert_eq!(value(record_rows[0], "verdict"), "failed");
    assert_eq!(value(record_rows[0], "io_count"), "", "a rate would follow from it");
    assert!(value(record_rows[0], "reasons").contains("Nothing of it, \"really\", reached the disk."));
    assert_eq!(value(record_rows[0], "device_known_by"), "Example NVMe SSD 1TB / EX0000000001");
    let fio_rows: Vec<_> = csv_named.iter().filter(|row| value(row, "source") == "fio").collect();
    for row in fio_rows {
        assert_eq!((value(row, "verdict"), value(row, "evidence_level")), (String::new(), "E0".into()));
    }
    sandbox.run(&["history", "export", "table.xls"]).assert_refused(&["the format is unknown", "hint: "]);
    let history = sandbox.aside("trueio/history.sqlite3");
    let before = hash(&fs::read(&history).expect("the history"));
    let ran = sandbox.run(&["history", "export", history.to_str().expect("UTF-8"), "--format", "csv"]);
    ran.assert_refused(&["which the history uses"]);
    assert_eq!(hash(&fs::read(&history).expect("the history")), before);
}

#[test]
fn a_locked_history_loses_the_entry_after_a_timeout_and_not_the_result() {
    let sandbox = Sandbox::new();
    sandbox.run(QUICK).assert_code(0);
    let other = rusqlite::Connection::open(sandbox.aside("trueio/history.sqlite3")).expect("the history");
    other.execute_batch("BEGIN EXCLUSIVE").expect("a lock");
    let begin = Instant::now();
    let (ran, record) = sandbox.record(QUICK);
    let waited = begin.elapsed();
    ran.assert_code(0);
    assert!(ran.out.contains("null engine") && only_job(&record).ops[0].io_count == 10, "{ran:?}");
    assert!(ran.err.contains("warning: the record was not stored") && ran.err.contains("locked by another"), "{ran:?}");
    assert!(waited < Duration::from_secs(30), "{waited:?}");
    other.execute_batch("ROLLBACK").expect("it ends");
    drop(other);
    assert_eq!(ids(&sandbox).len(), 1);
    assert_eq!(sandbox.run(QUICK).err, "");
    assert_eq!(ids(&sandbox).len(), 2);
}

#[test]
fn a_full_or_read_only_disk_loses_the_entry_and_not_the_result() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let place = Mount::tmpfs(&sandbox, "home", "256k");
    let home = place.path.to_str().expect("UTF-8").to_owned();
    let run = |arguments: &[&str]| {
        Ran::of(sandbox.command(arguments).env("XDG_DATA_HOME", &home).output().expect("the program starts"))
    };
    let count = || {
        let ran = run(&["history", "--json"]);
        ran.assert_code(0);
        serde_json::from_str::<Vec<serde_json::Value>>(&ran.out).expect("JSON").len()
    };
    run(QUICK).assert_code(0);
    // Fill the rest: runs until no space is free, which loses entries and nothing else.
    let mut refused = None;
    for _ in 0..60 {
        let ran = run(QUICK);
        ran.assert_code(0);
        assert!(ran.out.contains("null engine"), "{ran:?}");
        if !ran.err.is_empty() {
            refused = Some(ran);
            break;
        }
    }
    let ran = refused.expect("the disk never filled");
    assert!(ran.err.contains("warning: the record was not stored") && ran.err.contains("no room left"), "{ran:?}");
    let kept = count();
    assert!(kept > 1);
    // Deleting runs frees space on a full disk; the other entries are complete.
    let check: String = rusqlite::Connection::open(place.path.join("trueio/history.sqlite3"))
        .and_then(|raw| raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
        .expect("a check");
    assert_eq!(check, "ok");

    place.make_read_only();
    let ran = run(QUICK);
    ran.assert_code(0);
    assert!(ran.out.contains("null engine"), "{ran:?}");
    assert!(
        ran.err.contains("warning: the record was not stored") && ran.err.contains("may not be written"),
        "{ran:?}"
    );
    assert_eq!(count(), kept, "a read-only history can be read");
    let ran = run(&["history", "tag", "0", "x"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_history_of_a_later_trueio_loses_the_entry_and_is_unchanged() {
    let sandbox = Sandbox::new();
    sandbox.run(QUICK).assert_code(0);
    let path = sandbox.aside("trueio/history.sqlite3");
    let raw = rusqlite::Connection::open(&path).expect("the history");
    raw.pragma_update(None, "user_version", 1000).expect("a later version");
    drop(raw);
    let before = hash(&fs::read(&path).expect("the history"));
    let ran = sandbox.run(QUICK);
    ran.assert_code(0);
    assert!(ran.err.contains("has version 1000; this program supports up to version"), "{ran:?}");
    let ran = sandbox.run(&["history"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert_eq!(hash(&fs::read(&path).expect("the history")), before);
}

/// `count` runs of one load on one disk, an hour apart; `change` sees each with its number.
fn import_runs(sandbox: &Sandbox, count: u64, change: impl Fn(u64, &mut RunRecord)) {
    let paths: Vec<String> = (0..count)
        .map(|n| {
            crafted(sandbox, &format!("run-{n}.json"), |record| {
                record.id = format!("{n:032x}");
                record.started_unix_s += n * 3600;
                record.started_at = trueio_model::format_utc(record.started_unix_s);
                record.phases.truncate(1);
                record.phases[0].verdict = trueio_model::Verdict::Supported;
                change(n, record);
            })
        })
        .collect();
    let mut all = vec!["history", "import"];
    all.extend(paths.iter().map(String::as_str));
    sandbox.run(&all).assert_code(0);
}

fn scaled(record: &mut RunRecord, factor: f64) {
    let op = &mut record.phases[0].jobs[0].ops[0];
    op.io_count = (op.io_count as f64 * factor) as u64;
}

/// Goal: a lasting change of level is found at its run and reported with its direction and with what
/// else changed there; noise of the same size is no change.
/// Method: 24 runs whose rate varies by ±3 % in a fixed pattern. In one history the last 12 are 20 % slower and have
/// another kernel; in the other all are alike. One run of each is contradicted, one was interrupted.
#[test]
fn a_trend_finds_a_change_of_level_and_ignores_noise() {
    let noise = |n: u64| 1.0 + [0.01, -0.03, 0.02, 0.0, -0.01, 0.03, -0.02][(n * n % 7) as usize];
    for (is_slower, changes) in [(true, 1), (false, 0)] {
        let sandbox = Sandbox::new();
        import_runs(&sandbox, 26, |n, record| {
            scaled(record, noise(n) * if is_slower && n >= 12 { 0.8 } else { 1.0 });
            if is_slower && n >= 12 {
                record.environment.system = "Linux 9.9".into();
            }
            match n {
                24 => record.phases[0].verdict = trueio_model::Verdict::Contradicted,
                25 => record.outcome = trueio_model::Outcome::Interrupted { signal: "SIGINT".into() },
                _ => {}
            }
        });
        let ran = sandbox.run(&["history", "trend", "--json", "--metric", "iops"]);
        ran.assert_code(0);
        let trend: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(trend["left_out"]["contradicted_figures"], 1);
        assert_eq!(trend["left_out"]["incomplete_runs"], 1);
        let series = &trend["series"][0];
        assert_eq!(series["points"].as_array().expect("points").len(), 24);
        let found = series["changes"].as_array().expect("changes");
        assert_eq!(found.len(), changes, "{found:?}");
        let html = sandbox.path("trend.html");
        let text = sandbox.run(&["history", "trend", "#1", "--html", html.to_str().expect("UTF-8")]);
        text.assert_code(0);
        assert!(fs::read_to_string(&html).expect("a page").contains("<svg"));
        if is_slower {
            let ratio = found[0]["ratio"].as_f64().expect("a ratio");
            assert!((ratio - 0.8).abs() < 0.02, "{ratio}");
            assert_eq!(found[0]["at"]["run_id"], format!("{:032x}", 12));
            assert!(
                text.out_joined().contains("IOPS: fell from 3,286 to 2,602 (-21 %), worse, between run "),
                "{text:?}"
            );
            assert!(
                text.out_joined().contains("between these two runs also changed: system (")
                    && text.out_joined().contains("→ Linux 9.9)"),
                "{text:?}"
            );
        } else {
            assert!(text.out_joined().contains("IOPS: no change of level of 5 % or more is shown"), "{text:?}");
        }
        assert!(text.out_joined().contains("1 figure excluded: it is withheld"), "{text:?}");
    }
}

/// Goal: a trend reads a record once; later ones read what the first one stored next to it, and no more runs than were asked for.
/// Method: 24 runs; after the first trend each record's text is replaced by one that cannot be read, and the next trend must be the same.
/// A run that is imported later is followed, too; `--limit` counts the others.
#[test]
fn a_trend_reads_each_record_once_and_at_most_as_many_as_asked_for() {
    let sandbox = Sandbox::new();
    import_runs(&sandbox, 24, |n, record| scaled(record, if n < 12 { 1.0 } else { 0.8 }));
    let trend = |args: &[&str]| -> serde_json::Value {
        let ran = sandbox.run(&[&["history", "trend", "--json", "--metric", "iops,p99,cpu"], args].concat());
        ran.assert_code(0);
        serde_json::from_str(&ran.out).expect("JSON")
    };
    let first = trend(&[]);
    assert_eq!(first["series"][0]["points"].as_array().expect("points").len(), 24);
    assert_eq!(first["series"][0]["changes"].as_array().expect("changes").len(), 1);
    let history = rusqlite::Connection::open(sandbox.aside("trueio/history.sqlite3")).expect("the history");
    assert_eq!(history.execute("UPDATE runs SET record = 'unreadable'", []).expect("rows"), 24);
    assert_eq!(trend(&[]), first);
    // Of other rules, or damaged: made again, which shows that the records cannot be read.
    history.execute("UPDATE digests SET version = 0 WHERE run_id LIKE '%0'", []).expect("rows");
    history.execute("UPDATE digests SET digest = '{' WHERE run_id LIKE '%1'", []).expect("rows");
    assert_eq!(trend(&[])["left_out"]["unreadable_runs"], 4);

    let few = trend(&["--limit", "9"]);
    assert_eq!((&few["run_count"], &few["left_out"]["older_runs"]), (&9.into(), &15.into()));
    let ids: Vec<String> = (0..24).map(|n| format!("{n:032x}")).collect();
    sandbox
        .run(&[&["history", "delete"], ids.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat())
        .assert_code(0);
    let left: i64 = history.query_row("SELECT count(*) FROM digests", [], |row| row.get(0)).expect("a count");
    assert_eq!(left, 0, "a digest outlives its run");
}

/// Goal: the list and the trend say of a run what its end said.
/// Method: three runs of one load: confirmed, disturbed by `dd`, from memory. Their words are those of `report`. Lists do not read the
/// records, which are unreadable by then.
#[test]
fn lists_and_trends_have_the_words_of_the_end_of_a_run() {
    let sandbox = Sandbox::new();
    let finding = |name: &str, brief: &str| trueio_model::Check {
        name: name.into(),
        outcome: trueio_model::CheckOutcome::Suspect,
        cause: trueio_model::Cause::usual_of(name).expect("a check"),
        source: String::new(),
        expected: String::new(),
        found: String::new(),
        sentence: "A sentence.".into(),
        brief: brief.into(),
        explained_percent: Some(23),
        culprits: Vec::new(),
        is_accepted: false,
    };
    import_runs(&sandbox, 3, |n, record| {
        let phase = &mut record.phases[0];
        phase.checks.retain(|check| !check.objects());
        let checks = [finding("foreign_io", "dd wrote 335 MiB"), finding("page_cache", "96 % from memory")];
        if let Some(check) = checks.into_iter().nth((n as usize).wrapping_sub(1)) {
            phase.checks.push(check);
            phase.verdict = trueio_model::Verdict::Suspect;
        }
    });
    let words = ["+ confirmed", "! disturbed: dd wrote 335 MiB", "* not the disk: 96 % from memory"];
    for (n, words) in words.iter().enumerate() {
        sandbox.run(&["report", &format!("{n:032x}"), "--json", "record.json"]).assert_code(0);
        let phase = &read_record(&sandbox.path("record.json")).phases[0];
        assert_eq!(format!("{} {}", trueio_report::mark(phase).symbol(), trueio_report::row_words(phase)), *words);
        fs::remove_file(sandbox.path("record.json")).expect("a record");
    }
    let trend = sandbox.run(&["history", "trend", "--metric", "iops", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&trend.out).expect("JSON");
    let points = document["series"][0]["points"].as_array().expect("points");
    for (point, words) in points.iter().zip(words) {
        assert_eq!(point["words"], words[2..], "{trend:?}");
    }
    let doubts = "IOPS: in 2 of 3 runs the evidence makes it doubtful (1 not the disk: 96 % from memory; 1 disturbed: dd wrote 335 MiB)";
    assert!(sandbox.run(&["history", "trend"]).out_joined().contains(doubts), "{trend:?}");
    // Both fit the width that `COLUMNS` sets.
    for arguments in [&["history"][..], &["history", "trend"]] {
        let output = sandbox.command(arguments).env("COLUMNS", "60").output().expect("the program starts");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }
    sandbox.run(&["history", "trend", "--html", "trend.html"]).assert_code(0);
    let page = fs::read_to_string(sandbox.path("trend.html")).expect("a page");
    let exported = sandbox.aside("all.csv");
    sandbox.run(&["history", "export", exported.to_str().expect("UTF-8")]).assert_code(0);
    let exported = fs::read_to_string(exported).expect("a table");
    for words in words {
        assert!(page.contains(&format!(" · {words} · run ")), "{words}");
        assert!(exported.contains(&format!(",{},", &words[2..])), "{words}\n{exported}");
    }

    let history = rusqlite::Connection::open(sandbox.aside("trueio/history.sqlite3")).expect("the history");
    history.execute("UPDATE runs SET record = 'unreadable'", []).expect("rows");
    for arguments in [&["history", "list"][..], &["history", "list", "--device", "#1"]] {
        let listed = sandbox.run(arguments);
        listed.assert_code(0);
        for words in words {
            assert!(listed.out.contains(&format!("  {words}  ")), "{words}\n{listed:?}");
        }
    }
    assert_eq!(rows(&sandbox, &[])[1]["words"], words[1][2..]);
    // Of a run whose words are unknown, the list has the word of its verdict.
    history.execute("DELETE FROM run_words", []).expect("rows");
    assert!(sandbox.run(&["history"]).out.contains("  ! disturbed  "));
    assert_eq!(rows(&sandbox, &[])[1]["words"], serde_json::Value::Null);
}

#[test]
fn a_trend_of_few_runs_or_of_no_device_shows_no_change() {
    let sandbox = Sandbox::new();
    sandbox.run(&["history", "trend"]).assert_refused(&["the history holds no run", "hint: "]);
    import_runs(&sandbox, 3, |_, _| {});
    let ran = sandbox.run(&["history", "trend"]);
    ran.assert_code(0);
    assert!(ran.out.contains("3 runs are too few to show a change of level or its absence; 20 are enough"), "{ran:?}");
    sandbox.run(&["history", "trend", "nothing"]).assert_refused(&["`nothing`"]);
    // The newest run was on no device: the runs of another one are not shown in its place.
    sandbox.run(QUICK).assert_code(0);
    sandbox.run(&["history", "trend"]).assert_refused(&["was on a device that cannot be recognised", "hint: "]);
    sandbox.run(&["history", "trend", "#1"]).assert_code(0);
    // A tag says which runs belong together.
    for id in ids(&sandbox).iter().take(1) {
        sandbox.run(&["history", "tag", id, "nightly"]).assert_code(0);
    }
    let ran = sandbox.run(&["history", "trend", "--tag", "nightly"]);
    ran.assert_code(0);
    assert!(ran.out.contains("1 run by tag, whatever the device: nightly"), "{ran:?}");
}

/// Goal: where the device has no identity, earlier runs are found by path and machine, and the output says so.
/// Method: 24 runs without identifiers, of which the last 12 are 20 % slower; further ones on another mount point, and on a machine
/// with another processor.
#[test]
fn runs_on_a_device_without_identity_are_followed_by_path_and_machine() {
    let sandbox = Sandbox::new();
    import_runs(&sandbox, 26, |n, record| {
        let unknown = || trueio_model::Fact::unknown("not readable");
        let target = &mut record.targets[0];
        target.filesystem.as_mut().expect("a filesystem").uuid = unknown();
        for disk in &mut target.disks {
            (disk.wwid, disk.serial) = (unknown(), unknown());
        }
        match n {
            0 => target.filesystem.as_mut().expect("a filesystem").mount_point = "/mnt/other".into(),
            1 => record.environment.cpu.model = trueio_model::Fact::known("another processor".into(), "staged"),
            _ if n >= 14 => scaled(record, 0.8),
            _ => {}
        }
    });
    let ran = sandbox.run(&["history", "trend"]);
    ran.assert_code(0);
    let said = "24 runs by path and machine, because the device has no identity: ext4 on /mnt/data";
    assert!(ran.out.contains(said), "{ran:?}");
    assert!(ran.out.contains("fell from ") || ran.out.contains("rose from "), "the change of level is found: {ran:?}");
    let ran = sandbox.run(&["history", "compare"]);
    assert!(ran.err.contains("the earlier run is found by path and machine"), "{ran:?}");
    assert!(ran.err.contains(&format!("against run {:08}", 0)), "{ran:?}");
    let newest = format!("{:032x}", 25);
    let screen = sandbox.run(&["report", &newest]);
    assert!(!screen.out.contains("of this device"), "{screen:?}");
}

/// Goal: the previous run is found by device and load, also if other runs are between.
/// Method: run 0 on disk A; then, on another disk under the same name, run 1; on disk A another load, run 2; and on
/// disk A under another name the same load as run 0, 20 % slower, run 3.
#[test]
fn a_run_is_compared_with_the_previous_one_of_the_same_load_on_the_same_device() {
    let sandbox = Sandbox::new();
    import_runs(&sandbox, 4, |n, record| match n {
        1 => record.targets[0].disks[0].serial.value = Some("OTHER-9".into()),
        2 => record.phases[0].jobs[0].name = "something else".into(),
        3 => {
            record.targets[0].disks[0].name = "nvme9n1".into();
            scaled(record, 0.8);
        }
        _ => {}
    });
    let id = |n: u64| format!("{n:032x}");
    let ran = sandbox.run(&["history", "compare", "--json"]);
    ran.assert_code(0);
    let comparison: serde_json::Value = serde_json::from_str(&ran.out).expect("one document");
    let named = sandbox.run(&["compare", &id(0), &id(3), "--json", "-"]);
    named.assert_code(0);
    let direct: serde_json::Value = serde_json::from_str(&named.out).expect("one document");
    assert_eq!(comparison["parts"], direct["parts"], "other runs than 0 and 3 were compared");
    assert!(comparison["parts"].as_array().is_some_and(|parts| !parts.is_empty()), "{}", ran.out);
    for n in [0, 1, 2] {
        let ran = sandbox.run(&["history", "compare", &id(n)]);
        ran.assert_refused(&["no earlier run on the device of run", "hint: "]);
    }
    let ran = sandbox.run(&["history", "compare", &id(3), "--", "--no-such-flag"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

/// Goal: two baselines of one device do the same load and are compared, whatever the disk's speed was when they began.
/// Method: ext4 on a loop device, whose filesystem is how it is recognised; the same baseline twice.
#[test]
fn two_baselines_of_one_device_are_compared_and_followed() {
    if lacks("root") || lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk", 256 << 20);
    device.make_ext4();
    let mount = Mount::try_new("ext4", "noatime", &device.device, &sandbox.path("mount")).expect("a mount");
    let place = mount.path.to_str().expect("UTF-8");
    let (_, first) = sandbox.record(&["baseline", place, "--quick"]);
    let (_, second) = sandbox.record(&["baseline", place, "--quick"]);
    let sizes = |record: &RunRecord| -> Vec<u64> {
        record.plan.jobs.iter().flat_map(|job| &job.files).map(|file| file.size_bytes).collect()
    };
    assert_eq!(sizes(&first), sizes(&second), "the file's size follows from the target");
    let ran = sandbox.run(&["history", "compare", "--", "--json", "-"]);
    ran.assert_code(0);
    let comparison: serde_json::Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!(comparison["parts"].as_array().map(Vec::len), Some(8), "each load is compared\n{ran:?}");
    let page = sandbox.aside("trend.html");
    let ran = sandbox.run(&["history", "trend", "--html", page.to_str().expect("UTF-8")]);
    ran.assert_code(0);
    assert!(fs::read_to_string(&page).expect("a page").contains("<svg"), "{ran:?}");
}
