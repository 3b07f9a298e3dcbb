//! `trueio study file-writers`, end to end: in a directory, on a loop device, and its calls as `strace` sees them.

use crate::common::*;
use std::fs;
use std::path::Path;
use std::process::Command;
use trueio_model::{DurabilityKind, Outcome, StudyMetric, StudyMode, StudyRecord, StudyRow, Verdict};

const MIB: u64 = 1 << 20;

fn study(path: &Path) -> StudyRecord {
    trueio_report::parse_study(&fs::read_to_string(path).expect("a record")).expect("a study's record")
}

/// The study, so small that it takes seconds: its quick mode with 4 MiB instead of 8.
fn small(sandbox: &Sandbox) -> String {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/file-writers");
    let folder = sandbox.aside("file-writers");
    fs::create_dir_all(&folder).expect("a folder");
    let text = fs::read_to_string(from.join("study.toml")).expect("the study");
    let smaller = text.replace("size = \"8m\"", "size = \"4m\"");
    assert_eq!(smaller.matches("\"4m\"").count(), 1, "the quick mode has changed");
    fs::write(folder.join("study.toml"), smaller).expect("the study");
    fs::copy(from.join("published.csv"), folder.join("published.csv")).expect("the figures");
    format!("{}/", folder.display())
}

fn has_dd() -> bool {
    let found = Command::new("dd").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: `dd` is not installed, so the study leaves its rows out");
    }
    found
}

fn figure(row: &StudyRow, metric: StudyMetric) -> Option<f64> {
    row.figures.iter().find(|f| f.metric == metric && f.op.is_none()).map(|f| f.value)
}

/// What holds of every mode: each row was measured with evidence, and what was downloaded was compared.
fn assert_measured(mode: &StudyMode, bytes: u64) {
    for row in &mode.rows {
        assert_eq!(row.failure, None, "{}", row.name);
        assert!(row.verdict.is_some_and(|v| v != Verdict::Contradicted), "{}: {:?}", row.name, row.checks);
        let is_download = row.name.contains("download");
        for sample in &row.samples {
            assert_eq!((sample.byte_count, sample.error_count), (bytes, 0), "{}", row.name);
        }
        let (elapsed, waited) = (figure(row, StudyMetric::Elapsed), figure(row, StudyMetric::SourceWait));
        assert_eq!(waited.is_some(), is_download, "{}", row.name);
        assert!(waited.unwrap_or(0.0) < elapsed.expect("a time"), "{}", row.name);
    }
}

#[test]
fn the_faithful_mode_downloads_overwrites_starts_dd_and_flushes_nothing() {
    let sandbox = Sandbox::new();
    let json = sandbox.aside("s.json");
    let arguments = ["study", "file-writers", ".", "--quick", "--samples", "1", "--mode", "faithful", "--json"];
    let ran = sandbox.run(&[&arguments[..], &[json.to_str().unwrap()]].concat());
    ran.assert_code(0);
    assert_eq!(sandbox.listing(), [""; 0], "the study left a file");
    let record = study(&json);
    assert_eq!(record.outcome, Outcome::Complete);
    let [mode] = &record.modes[..] else { panic!("{} modes", record.modes.len()) };
    assert_eq!(mode.rows.len(), if has_dd() { 8 } else { 7 });
    assert_measured(mode, 8 * MIB);
    for row in &mode.rows {
        assert_eq!(row.durability.as_ref().map(|d| d.is), Some(DurabilityKind::NotAsked), "{}", row.name);
        assert_eq!(figure(row, StudyMetric::ElapsedUnsynced), None, "{}", row.name);
        let published = if row.name.starts_with("io_uring-direct") { 0 } else { 4 };
        assert_eq!(row.published.len(), published, "{}", row.name);
    }
    assert!(mode.scale.iter().any(|words| words.contains("8 MiB instead of 5 GiB")), "{:?}", mode.scale);
    let text = ran.out_joined();
    for sentence in ["source wait", "Did not request it", "o_direct", "Published 1.33 times", "a data race"] {
        assert!(text.contains(sentence), "`{sentence}` is not in\n{text}");
    }
}

#[test]
fn the_improved_mode_flushes_on_a_device_and_reports_the_cost_of_the_flush_separately() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let folder = small(&sandbox);
    let device = Loop::new(&sandbox, "backing", 16 * MIB);
    let (path, json, html) = (device.device.as_str(), sandbox.aside("s.json"), sandbox.aside("s.html"));
    let arguments = [
        "study",
        &folder,
        path,
        "--overwrite",
        path,
        "--quick",
        "--samples",
        "1",
        "--mode",
        "improved",
        "--json",
        json.to_str().unwrap(),
        "--html",
        html.to_str().unwrap(),
    ];
    // A study from a folder starts nothing unless the user lets it.
    sandbox.run(&arguments).assert_refused(&["starts other programs: dd", "--allow-exec"]);
    let ran = sandbox.run(&[&arguments[..], &["--allow-exec"]].concat());
    ran.assert_code(0);
    let record = study(&json);
    let [mode] = &record.modes[..] else { panic!("{} modes", record.modes.len()) };
    assert_eq!(mode.rows.len(), if has_dd() { 22 } else { 20 });
    assert_measured(mode, 4 * MIB);
    for row in &mode.rows {
        assert_ne!(row.durability.as_ref().map(|d| d.is), Some(DurabilityKind::NotAsked), "{}", row.name);
        let (with, without) = (figure(row, StudyMetric::Elapsed), figure(row, StudyMetric::ElapsedUnsynced));
        assert!(without.expect("it flushes") < with.expect("a time"), "{}", row.name);
        assert!(row.samples.iter().all(|sample| sample.sync_count == 1), "{}", row.name);
    }
    let deep = mode.contrasts.iter().find(|c| c.of == "io_uring" && c.place.iter().any(|(_, value)| value == "8"));
    assert!(deep.is_some_and(|contrast| contrast.ratio.is_some()), "depth 8 is set against depth 1 of plain writes");
    assert!(fs::read_to_string(&html).expect("a page").contains("<svg"));
}

/// One row of the improved mode that overwrites an existing file, and its record.
fn overwrites(sandbox: &Sandbox, file: &str, writer: &str, command: impl Fn(&mut Command)) -> (Ran, StudyRow) {
    let (folder, json) = (small(sandbox), sandbox.aside("s.json"));
    let only = format!("writer={writer}");
    let arguments = [
        &["study", &folder, file, "--overwrite", file, "--quick", "--samples", "1", "--mode", "improved"][..],
        &["--only", "operation=overwrite", "--only", "block=32k", "--only", "depth=1", "--only", &only][..],
        &["--no-journal", "--no-evidence", "--allow-exec", "--json", json.to_str().unwrap()][..],
    ];
    let mut program = sandbox.command(&arguments.concat());
    command(&mut program);
    let ran = Ran::of(program.output().expect("the program starts"));
    let mut record = study(&json);
    (ran, record.modes[0].rows.remove(0))
}

#[track_caller]
fn assert_caught(ran: &Ran, row: &StudyRow) {
    ran.assert_code(1);
    let why = row.failure.as_deref().unwrap_or_default();
    assert!(why.contains("of 128 blocks did not read back as written; the first: offset 1048576"), "{why:?}: {ran:?}");
    assert_eq!((row.verdict, row.figures.len()), (Some(Verdict::Contradicted), 0), "{ran:?}");
}

/// Goal: an overwrite with wrong content has no figure, for every writer; one with correct content has.
/// Method: another thread writes to the same offset all the time while one of our writers overwrites the file; and a
/// `dd` that changes a byte of what dd wrote.
#[test]
fn an_overwrite_with_wrong_content_is_detected_and_a_correct_one_is_not() {
    use std::os::unix::fs::{FileExt, PermissionsExt};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let sandbox = Sandbox::new();
    let file = sandbox.data_file("file", 4 * MIB as usize);
    let name = file.to_str().expect("UTF-8");
    let (ran, row) = overwrites(&sandbox, name, "control", |_| {});
    ran.assert_code(0);
    assert_eq!((row.failure.as_deref(), row.figures.is_empty()), (None, false), "{ran:?}");

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A file that is open for writing is refused, so the thread opens it when the first block was written.
        let file = &file;
        let modified = move || fs::metadata(file).and_then(|found| found.modified()).expect("a time");
        let (before, is_over) = (modified(), &is_over);
        scope.spawn(move || {
            while modified() == before && !is_over.load(Relaxed) {
                std::thread::yield_now();
            }
            let spoiler = fs::File::options().write(true).open(file).expect("the file");
            while !is_over.load(Relaxed) {
                spoiler.write_all_at(b"written by another thread", MIB).expect("a write");
            }
        });
        let (ran, row) = overwrites(&sandbox, name, "control", |_| {});
        is_over.store(true, Relaxed);
        assert_caught(&ran, &row);
    });

    let Some(dd) = ["/bin/dd", "/usr/bin/dd"].into_iter().find(|path| Path::new(path).exists()) else {
        eprintln!("skipped: `dd` is not installed");
        return;
    };
    let (ran, row) = overwrites(&sandbox, name, "dd", |_| {});
    ran.assert_code(0);
    assert_eq!((row.failure.as_deref(), row.figures.is_empty()), (None, false), "{ran:?}");
    let programs = sandbox.aside("programs");
    fs::create_dir_all(&programs).expect("a folder");
    let script = format!(
        "#!/bin/sh\n{dd} \"$@\" || exit\nfor word; do case $word in of=*) file=${{word#of=}};; esac; done\n\
         printf x | {dd} of=\"$file\" bs=1 seek=1048580 conv=notrunc\n"
    );
    fs::write(sandbox.aside("script"), script).expect("a script");
    fs::set_permissions(sandbox.aside("script"), fs::Permissions::from_mode(0o755)).expect("a mode");
    trueio_testkit::copy_program(sandbox.aside("script"), programs.join("dd"));
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let (ran, row) = overwrites(&sandbox, name, "dd", |command| {
        command.env("PATH", &path);
    });
    assert_caught(&ran, &row);
}

/// Goal: the calls of the faithful mode are those of the source.
/// Method: `strace` counts the writes of each length, by us and by dd; the lengths tell the writers apart. Sync
/// calls are made between the rows and never by a worker.
#[test]
fn the_faithful_mode_makes_the_calls_of_the_source() {
    if lacks("strace") {
        return;
    }
    let sandbox = Sandbox::new();
    let (folder, trace) = (small(&sandbox), sandbox.aside("trace"));
    let arguments =
        ["study", &folder, ".", "--quick", "--samples", "1", "--mode", "faithful", "--no-evidence", "--allow-exec"];
    let plain = sandbox.command(&arguments);
    let mut traced = Command::new("strace");
    traced
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=write,fsync,fdatasync,io_uring_setup,execve,openat",
            "-e",
            "signal=none",
            "-o",
        ])
        .arg(&trace);
    traced.arg(plain.get_program()).args(plain.get_args()).current_dir(sandbox.root());
    traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    traced.stdin(std::process::Stdio::null());
    Ran::of(traced.output().expect("strace")).assert_code(0);
    let lines = strace_lines(&trace);
    let trace = lines.join("\n");
    let count = |what: &str, end: &str| {
        let is_it = |line: &&String| {
            line.split_once(' ').is_some_and(|(_, rest)| rest.trim_start().starts_with(what)) && line.ends_with(end)
        };
        lines.iter().filter(is_it).count() as u64
    };
    let blocks = |block: u64| 4 * MIB / block;
    // control download and overwrite, o_direct overwrite.
    assert_eq!(count("write(", " = 32768"), 3 * blocks(32 << 10));
    assert_eq!(count("write(", " = 8192"), blocks(8 << 10), "o_direct download");
    if has_dd() {
        assert_eq!(count("write(1,", " = 524288"), blocks(512 << 10), "dd");
        assert!(trace.contains("\"bs=524288\", \"count=8\", \"conv=notrunc\""), "dd's arguments");
        assert!(!trace.contains("O_TRUNC|O_DIRECT"));
    }
    assert_eq!(count("io_uring_setup(1024,", ""), 3, "one ring of 1024 entries a row");
    assert_eq!(count("fsync(", ""), 0, "nothing is flushed by fsync");
    // Between rows what was written is flushed by fdatasync, and before a comparison: both outside of the time.
    let rows = if has_dd() { 8 } else { 7 };
    assert_eq!(count("fdatasync(", ""), rows + 3);
}

#[test]
fn rows_of_a_missing_program_are_skipped_with_a_note() {
    let sandbox = Sandbox::new();
    let folder = small(&sandbox);
    let arguments =
        ["study", &folder, ".", "--quick", "--samples", "1", "--mode", "faithful", "--no-evidence", "--allow-exec"];
    let ran = Ran::of(sandbox.command(&arguments).env("PATH", sandbox.root()).output().expect("the program starts"));
    ran.assert_code(0);
    assert!(ran.out_joined().contains("Left out here: dd overwrite: `dd` is not installed."), "{ran:?}");
}

/// A study whose only row is a program that never ends by itself.
fn endless(sandbox: &Sandbox) -> String {
    let folder = sandbox.aside("endless");
    fs::create_dir_all(&folder).expect("a folder");
    let text = r#"
format = 1
title = "endless"
question = "when does it end?"
programs = ["tail"]
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
[set]
rw = "write"
size = "1m"
[[axis]]
key = "way"
value = [{ name = "tail", set = { command = "tail -f {file}" } }]
[mode.faithful]
title = "as it was"
place = 1
"#;
    fs::write(folder.join("study.toml"), text).expect("the study");
    fs::write(folder.join("published.csv"), "way,seconds\ntail,1\n").expect("the figures");
    format!("{}/", folder.display())
}

/// The programs that a process has started.
fn children(pid: libc::pid_t) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<_>>()).collect()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !condition() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(120), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_program_ends_with_the_run_that_started_it_interrupted_or_killed() {
    let sandbox = Sandbox::new();
    let folder = endless(&sandbox);
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let mut command = sandbox.command(&["study", &folder, ".", "--no-evidence", "--no-journal", "--allow-exec"]);
        let running = Running::start(&mut command);
        until("the program was not started", || !children(running.id()).is_empty());
        let child = children(running.id())[0];
        running.signal(signal);
        let (ran, by_signal) = running.wait();
        assert_eq!(by_signal.is_some(), signal == libc::SIGKILL, "{ran:?}");
        until("the program goes on", || !Path::new(&format!("/proc/{child}")).exists());
    }
    assert_eq!(sandbox.listing(), [""; 0], "a file is left");
}
