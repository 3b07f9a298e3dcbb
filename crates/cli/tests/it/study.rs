//! `trueio study`: end to end, interrupted and resumed, and what it refuses.

use crate::common::*;
use trueio_model::{DurabilityKind, Outcome, StudyMetric, StudyRecord};

fn study(path: &std::path::Path) -> StudyRecord {
    trueio_report::parse_study(&std::fs::read_to_string(path).unwrap()).expect("a study's record")
}

/// A study that takes a second: three ways of writing, one of which flushes.
const TINY: &str = r#"
format = 1
title = "three ways"
question = "which is fast?"
row_format = "{way<8}|{bandwidth MB/s>12}"
[source]
title = "a test"
by = "nobody"
date = "2020"
setting = "a machine"
[published]
keys = { way = "way" }
[[published.figure]]
column = "seconds"
metric = "elapsed"
unit = "s"
[[limit]]
metric = "elapsed"
bytes = 1000000000
mb_per_s_max = 600
why = "the cable carries 600 MB/s"
[set]
rw = "write"
bs = "4k"
size = "1m"
ioengine = "psync"
iodepth = 1
number_ios = 64
[[axis]]
key = "way"
value = [
    { name = "cached", set = { direct = "off" } },
    { name = "flushed", set = { direct = "off", fdatasync = 1 } },
    { name = "late", set = { direct = "off", end_fdatasync = true } },
]
[mode.faithful]
title = "as it was"
place = 1
set = { fallocate = "none" }
[mode.improved]
title = "as it should be"
place = 2
samples = 6
order = "shuffled"
[[contrast]]
title = "a flush after each write"
axis = "way"
of = "flushed"
against = "cached"
metric = "elapsed"
[[answer]]
kind = "durability"
among = "way"
by = "block"
metric = "bandwidth"
"#;
const FIGURES: &str = "way,seconds\ncached,0.1\nflushed,90\nlate,2\n";

fn tiny(sandbox: &Sandbox) -> String {
    let folder = sandbox.aside("tiny");
    std::fs::create_dir_all(&folder).unwrap();
    // `by` must be an axis: a second one with a single value.
    let definition =
        TINY.replace("[mode.faithful]", "[[axis]]\nkey = \"block\"\nvalue = [{ name = \"4k\" }]\n[mode.faithful]");
    std::fs::write(folder.join("study.toml"), definition).unwrap();
    std::fs::write(folder.join("published.csv"), FIGURES).unwrap();
    format!("{}/", folder.display())
}

#[test]
fn a_study_runs_both_modes_reports_differences_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let (folder, json, html) = (tiny(&sandbox), sandbox.aside("s.json"), sandbox.aside("s.html"));
    let ran = sandbox.run(&["study", &folder, ".", "--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()]);
    ran.assert_code(0);
    assert_eq!(sandbox.listing(), [""; 0], "the study left a file");
    let record = study(&json);
    assert_eq!(record.outcome, Outcome::Complete);
    let [faithful, improved] = &record.modes[..] else { panic!("{:?}", record.modes.len()) };
    for (mode, samples) in [(faithful, 1), (improved, 6)] {
        assert_eq!(mode.rows.len(), 3);
        for row in &mode.rows {
            assert_eq!(row.failure, None, "{}", row.name);
            assert_eq!(row.samples.len(), samples, "{}", row.name);
            assert!(row.verdict.is_some() && !row.checks.is_empty(), "{}: no evidence", row.name);
            for sample in &row.samples {
                assert_eq!(
                    (sample.io_count, sample.byte_count, sample.error_count),
                    (64, 64 * 4096, 0),
                    "{}",
                    row.name
                );
                assert_eq!(
                    sample.sync_count,
                    if row.name.contains("flushed") { 64 } else { u64::from(row.name.contains("late")) }
                );
            }
            let asks = row.durability.as_ref().expect("it writes").is != DurabilityKind::NotAsked;
            assert_eq!(asks, !row.name.contains("cached"), "{}", row.name);
        }
    }
    let interval = |row: &trueio_model::StudyRow| {
        row.figures.iter().find(|f| f.metric == StudyMetric::Elapsed).and_then(|f| f.interval)
    };
    assert!(faithful.rows.iter().all(|row| interval(row).is_none()), "one sample has no interval");
    assert!(improved.rows.iter().all(|row| interval(row).is_some_and(|(low, high)| low <= high)));
    // Each round has every row once, in an order of its own.
    let mut order: Vec<(u32, u32, &str)> = improved
        .rows
        .iter()
        .flat_map(|row| row.samples.iter().map(|s| (s.place, s.round, row.name.as_str())))
        .collect();
    order.sort_unstable();
    assert!(order.chunks(3).enumerate().all(|(round, rows)| rows.iter().all(|r| r.1 as usize == round)), "{order:?}");
    // 1 GB in 0.1 s is beyond the limit; 90 s and 2 s are not.
    assert_eq!(record.source.impossible.len(), 1);
    let text = ran.out_joined();
    for sentence in ["600 MB/s", "as it should be", "Published 900 times", "Did not request it", "three ways"] {
        assert!(text.contains(sentence), "`{sentence}` is not in\n{text}");
    }
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(
        page.contains("<svg") && page.contains("id=\"study\"") && !page.contains("src="),
        "no plots, or not self-contained"
    );
}

#[test]
fn rows_are_printed_as_the_source_prints_them() {
    let sandbox = Sandbox::new();
    let folder = tiny(&sandbox);
    let ran = sandbox.run(&["study", &folder, "--format", "rows", "--mode", "faithful", "--no-evidence"]);
    ran.assert_code(0);
    let rows: Vec<&str> = ran.out.lines().collect();
    assert_eq!(rows.len(), 3, "{ran:?}");
    for (row, name) in rows.iter().zip(["cached", "flushed", "late"]) {
        let (way, figure) = row.split_once('|').unwrap();
        assert_eq!(way, format!("{name:<8}"));
        assert_eq!(figure.len(), 12);
        assert!(figure.trim().parse::<f64>().unwrap() > 0.0);
    }
}

/// Lines of the journals: one for each sample, and one to begin with.
fn journalled(sandbox: &Sandbox) -> usize {
    let Ok(folder) = std::fs::read_dir(sandbox.aside("trueio/studies")) else { return 0 };
    let journals = folder.flatten().filter_map(|journal| std::fs::read_to_string(journal.path()).ok());
    journals.map(|text| text.lines().count()).sum()
}

#[test]
fn an_interrupted_study_stores_its_samples_and_continues_with_resume() {
    let sandbox = Sandbox::new();
    let (folder, json) = (tiny(&sandbox), sandbox.aside("s.json"));
    let json = json.to_str().unwrap();
    // Long enough to be stopped in the middle: the flushed row alone takes some seconds.
    let long = ["study", &folder, ".", "--mode", "improved", "--samples", "400", "--json", json];
    let running = Running::start(&mut sandbox.command(&long));
    running.wait_until("a few samples", || journalled(&sandbox) > 6);
    running.signal(libc::SIGINT);
    let (ran, by_signal) = running.wait();
    assert_eq!(by_signal, None);
    ran.assert_code(1);
    assert!(ran.err.contains("--resume"), "{ran:?}");
    let first = study(std::path::Path::new(json));
    assert!(matches!(first.outcome, Outcome::Interrupted { .. }));
    let taken: usize = first.modes[0]
        .rows
        .iter()
        .map(|row| row.samples.iter().filter(|s| s.outcome == Outcome::Complete).count())
        .sum();
    assert!(taken > 0 && taken < 1200, "{taken}");
    assert_eq!(sandbox.listing(), [""; 0]);

    // An attempt elsewhere, interrupted later, is not in the way of going on here.
    let elsewhere = sandbox.aside("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let other = ["study", &folder, elsewhere.to_str().unwrap(), "--mode", "improved", "--samples", "400"];
    let before = journalled(&sandbox);
    let running = Running::start(&mut sandbox.command(&other));
    running.wait_until("a few samples elsewhere", || journalled(&sandbox) > before + 2);
    running.signal(libc::SIGINT);
    running.wait().0.assert_code(1);

    // Other arguments are another run.
    sandbox.run(&["study", &folder, ".", "--mode", "faithful", "--resume"]).assert_refused(&["list of modes differs"]);

    let before = journalled(&sandbox);
    let running = Running::start(sandbox.command(&long).arg("--resume"));
    running.wait_until("more samples", || journalled(&sandbox) > before + 6);
    // While one goes on, another may not write into the same journal.
    sandbox.run(&[&long[..], &["--resume"]].concat()).assert_refused(&["is in use", ".jsonl"]);
    running.signal(libc::SIGINT);
    running.wait().0.assert_code(1);
    let second = study(std::path::Path::new(json));
    // Only complete samples count: otherwise the interrupted one would not be measured again.
    let whole = |study: &StudyRecord| {
        let samples = study.modes[0].rows.iter().flat_map(|row| &row.samples);
        samples.filter(|sample| sample.outcome == Outcome::Complete).count()
    };
    assert!(whole(&second) > taken + 2, "{} after {taken}", whole(&second));
    assert_eq!(second.modes[0].order_seed, first.modes[0].order_seed, "the order must be that of the first attempt");
    let note = second.modes[0].notes.iter().find(|n| n.contains("from an earlier attempt")).expect("a note");
    assert!(note.starts_with(&format!("{taken} samples")), "{note}");
}

/// Goal: the progress line shows the remaining time after the first sample.
#[test]
fn the_progress_line_shows_samples_and_the_remaining_time() {
    let sandbox = Sandbox::new();
    let folder = tiny(&sandbox);
    let command = sandbox.command(&["study", &folder, ".", "--mode", "improved", "--no-evidence", "--no-journal"]);
    let (text, code) = on_terminal(command, 100);
    assert_eq!(code, Some(0), "{text}");
    let last = text.split("18/18").nth(1).unwrap_or_else(|| panic!("the last sample is not shown: {text}"));
    assert!(last.trim_start().starts_with("improved") && last.contains(" s left"), "{text}");
    let first =
        text.split("1/18").nth(1).and_then(|rest| rest.split("2/18").next()).expect("the first sample is shown");
    assert!(!first.contains("left"), "nothing is known yet: {first}");
}

/// Goal: an attempt that cannot be gone on with now is not lost.
#[test]
fn samples_of_an_earlier_attempt_survive_a_refusal() {
    let sandbox = Sandbox::new();
    let folder = tiny(&sandbox);
    let file = sandbox.data_file("target", 1 << 20);
    let name = file.to_str().unwrap();
    let long = ["study", &folder, name, "--overwrite", name, "--mode", "improved", "--samples", "400"];
    let running = Running::start(&mut sandbox.command(&long));
    running.wait_until("a few samples", || journalled(&sandbox) > 3);
    running.signal(libc::SIGINT);
    running.wait().0.assert_code(1);
    let kept = journalled(&sandbox);
    // The target is too small by now.
    std::fs::File::options().write(true).open(&file).unwrap().set_len(4096).unwrap();
    sandbox.run(&[&long[..], &["--resume"]].concat()).assert_refused(&[]);
    assert_eq!(journalled(&sandbox), kept, "the journal is lost");
}

#[test]
fn an_existing_target_of_a_study_is_not_written_unless_it_is_named_again() {
    let sandbox = Sandbox::new();
    let folder = tiny(&sandbox);
    let file = sandbox.data_file("precious", 1 << 20);
    let before = hash(&std::fs::read(&file).unwrap());
    let name = file.to_str().unwrap();
    sandbox
        .run(&["study", &folder, name])
        .assert_refused(&["would overwrite it", &format!("add `--overwrite {name}`")]);
    sandbox.run(&["study", &folder, name, "--overwrite", "other"]).assert_refused(&["spelled the same"]);
    sandbox.run(&["study", &folder, ".", "--overwrite", "."]).assert_refused(&["overwrites nothing"]);
    assert_eq!(hash(&std::fs::read(&file).unwrap()), before);
    let ran = sandbox.run(&["study", &folder, name, "--overwrite", name, "--mode", "faithful", "--no-evidence"]);
    ran.assert_code(0);
    assert_ne!(hash(&std::fs::read(&file).unwrap()), before, "it was named, and not written");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 20, "its size changed");
}

#[test]
fn an_unknown_study_is_refused_with_a_hint() {
    let sandbox = Sandbox::new();
    let folder = tiny(&sandbox);
    sandbox.run(&["study", "no-such"]).assert_refused(&["unknown study `no-such`", "write-flags"]);
    sandbox.run(&["study", "./no-such/"]).assert_refused(&["study.toml"]);
    sandbox.run(&["study", &folder, "--mode", "best"]).assert_refused(&["no mode `best`", "faithful, improved"]);
    sandbox.run(&["study", &folder, "./nowhere"]).assert_refused(&["does not exist"]);
    sandbox.run(&["study", &folder, "--set", "filename=/etc/passwd"]).assert_refused(&["--overwrite"]);
    sandbox.run(&["study", &folder, "--resume"]).assert_refused(&["no interrupted attempt"]);
    assert_eq!(sandbox.listing(), [""; 0]);
}

#[test]
fn a_failed_row_is_reported_and_the_others_are_measured() {
    let sandbox = Sandbox::new();
    let folder = tiny(&sandbox);
    let path = std::path::Path::new(&folder).join("study.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    // Nothing is written into the simulated disk; its third I/O fails.
    let broken = text.replace(
        "{ name = \"late\", set = { direct = \"off\", end_fdatasync = true } }",
        "{ name = \"late\", set = { ioengine = \"simulated\", simulated = \"service=1ms,fail=3\" } }",
    );
    assert_ne!(broken, text);
    std::fs::write(&path, broken).unwrap();
    let ran = sandbox.run(&["study", &folder, "--mode", "faithful"]);
    ran.assert_code(1);
    assert!(ran.out.contains("No figure") && ran.out.contains("failed"), "{ran:?}");
    assert!(ran.out_joined().contains("1 row(s) failed"), "{ran:?}");
    assert!(ran.err.contains("--resume"), "{ran:?}");
    // What was measured is kept, what failed is tried again.
    let json = sandbox.aside("again.json");
    let again = sandbox.run(&["study", &folder, "--mode", "faithful", "--resume", "--json", json.to_str().unwrap()]);
    again.assert_code(1);
    let record = study(&json);
    assert!(record.modes[0].notes.iter().any(|note| note.starts_with("2 samples are from an earlier attempt")));
    assert!(record.modes[0].rows.iter().any(|row| row.failure.is_some() && row.samples.len() == 1));
}

#[test]
fn the_list_describes_every_study() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["study", "list"]);
    ran.assert_code(0);
    for one in trueio_study::EMBEDDED {
        let mut lines = ran.out.lines().skip_while(|line| *line != one.name).take_while(|line| !line.is_empty());
        let quick = lines.find_map(|line| line.trim().strip_prefix("--quick")).expect(one.name);
        let seconds = quick.trim().strip_suffix(" s at most").and_then(|text| text.parse::<u64>().ok());
        assert!(seconds.is_some_and(|seconds| (1..120).contains(&seconds)), "{}: {quick}", one.name);
    }
    let json = sandbox.run(&["study", "list", "--json", "-"]);
    let all: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(all.as_array().unwrap().len(), trueio_study::EMBEDDED.len());
}
