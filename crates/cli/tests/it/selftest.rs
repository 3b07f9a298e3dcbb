//! `trueio selftest`: each false result is staged and detected, and nothing is left.
//!
//! That a missed lie ends with exit code 1 is shown in `src/selftest/rows.rs`, for no lie is missed
//! here on purpose.

use crate::common::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trueio_testkit::{assert_row, first_if_foreign, table_rows};

/// One at a time: each keeps disk and processors busy, and would be the other's neighbour.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Only files without a name, loop devices on them, and mounts could remain.
#[derive(Debug, PartialEq)]
struct Surroundings {
    names: Vec<String>,
    loops: Vec<String>,
    mounts: Vec<String>,
}

impl Surroundings {
    /// As seen from outside the program; only what has to do with `directory`.
    fn of(directory: &Path) -> Self {
        let place = directory.to_str().expect("UTF-8").to_owned();
        let loops = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let loops = loops.filter_map(|disk| fs::read_to_string(disk.path().join("loop/backing_file")).ok());
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        Self {
            names: listing(directory),
            loops: loops.filter(|file| file.contains(&place)).collect(),
            mounts: mounts.lines().filter(|line| line.contains(&place)).map(str::to_owned).collect(),
        }
    }
}

/// The kernel releases a loop device shortly after its last holder is gone.
#[track_caller]
fn assert_left(directory: &Path, before: &Surroundings) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while Surroundings::of(directory) != *before && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(Surroundings::of(directory), *before);
}

fn document(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("no JSON: {e}\n{ran:?}"))
}

fn count(document: &Value, name: &str) -> u64 {
    document["count"][name].as_u64().unwrap_or_else(|| panic!("no count `{name}`: {document}"))
}

/// No false result was missed, and no correct run was flagged. Only such rows are shown: a failure's text may be cut off.
#[track_caller]
fn assert_none_is_wrong(document: &Value) {
    let rows = document["rows"].as_array().expect("rows");
    let wrong: Vec<&Value> =
        rows.iter().filter(|row| row["ending"] == "missed" || row["ending"] == "accused").collect();
    assert!(wrong.is_empty(), "{}", serde_json::to_string(&wrong).expect("JSON"));
    assert_eq!((count(document, "missed"), count(document, "accused")), (0, 0));
}

/// The endings of all rows whose name contains `part`.
fn endings<'a>(document: &'a Value, part: &str) -> Vec<&'a str> {
    let rows = document["rows"].as_array().expect("rows");
    let named = rows.iter().filter(|row| row["name"].as_str().is_some_and(|name| name.contains(part)));
    named.map(|row| row["ending"].as_str().expect("an ending")).collect()
}

/// The table of docs/dev/staged-results.md has exactly these rows, with the sentences that were printed. A correct run that other programs
/// disturbed prints what any run prints then, so its row is not compared.
#[track_caller]
fn assert_table_is_current(document: &Value) {
    let rows = document["rows"].as_array().expect("rows");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    for row in rows.iter().filter(|row| row["ending"] != "disturbed") {
        let found = row["said"].as_array().expect("findings").iter();
        let shown = |one: &Value| {
            let (by, sentence) = (text(&one["by"]), text(&one["sentence"]));
            format!("{} (`{by}`): {}", text(&one["how"]), first_if_foreign(&by, &sentence))
        };
        let mut found: Vec<String> = found.map(shown).collect();
        if row["ending"] == "honest" {
            found.push("no finding".to_owned());
        }
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_row("docs/dev/staged-results.md", "selftest", &text(&row["name"]), &[&found]);
    }
    let staged: BTreeSet<String> = rows.iter().map(|row| text(&row["name"])).collect();
    let listed: BTreeSet<String> =
        table_rows("docs/dev/staged-results.md", "selftest").into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(listed, staged, "docs/dev/staged-results.md lists what is staged");
}

/// True if this machine has what every lie needs.
fn has_everything() -> bool {
    let tools = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];
    let is_there =
        |tool: &str| ["/usr/sbin", "/sbin", "/usr/bin"].iter().any(|path| Path::new(path).join(tool).exists());
    let missing: Vec<&str> = tools.into_iter().filter(|tool| !is_there(tool)).collect();
    if !missing.is_empty() {
        eprintln!("skipped: {} not installed", missing.join(", "));
    }
    missing.is_empty() && !lacks("loop")
}

#[test]
fn as_root_every_false_result_is_staged_and_detected_and_nothing_is_left() {
    let _alone = alone();
    if !has_everything() {
        return;
    }
    let sandbox = Sandbox::new();
    let before = Surroundings::of(sandbox.root());
    // A disk that others keep busy may be too slow for an effect, which is then not staged: each is in one of three runs.
    let mut never_staged: Option<BTreeSet<String>> = None;
    for _ in 0..3 {
        let ran = sandbox.run(&["selftest", "--json"]);
        let document = document(&ran);
        assert_none_is_wrong(&document);
        let rows = document["rows"].as_array().expect("rows");
        let not_staged = rows.iter().filter(|row| row["ending"] == "not_staged");
        let not_staged: BTreeSet<String> = not_staged.map(|row| row["name"].to_string()).collect();
        ran.assert_code(0);
        assert_eq!(count(&document, "staged"), count(&document, "caught"), "{document:#}");
        assert!(!not_staged.is_empty() || count(&document, "staged") == 36, "{document:#}");
        assert!(!not_staged.is_empty() || count(&document, "honest") + count(&document, "disturbed") >= 22);
        assert_table_is_current(&document);
        let never = never_staged.map_or(not_staged.clone(), |before| &before & &not_staged);
        never_staged = Some(never.clone());
        if never.is_empty() {
            break;
        }
    }
    assert_eq!(never_staged, Some(BTreeSet::new()));
    assert_left(sandbox.root(), &before);
    assert_eq!(sandbox.run(&["history"]).out, "", "staged false results are not stored in the history");
}

#[test]
fn a_row_shows_the_unchecked_figure_and_the_check_that_detected_it() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let before = Surroundings::of(sandbox.root());
    // The program lies below the directory, which the scratch files cover.
    let program = std::env::var("CARGO_BIN_EXE_trueio").expect("the program");
    let directory = Path::new(&program).parent().and_then(Path::to_str).expect("UTF-8");
    let ran = sandbox.run(&["selftest", directory]);
    ran.assert_code(0);
    let text = ran.out_joined();
    assert!(text.contains(" false results staged, ") && text.contains(" 0 missed, "), "{ran:?}");
    assert!(!text.contains("No such file or directory"), "{ran:?}");
    // With direct I/O here these can always be staged.
    if !text.contains("correct direct reads of a file that is stored on the disk") {
        eprintln!("skipped: the build directory has no direct I/O, or no disk is visible below it");
        return;
    }
    for words in [
        "detected every call fails and the results are ignored",
        "MiB written in 0.",
        "contradicted (call_results): 4,096 of 4,096 I/Os failed",
        "which direct I/O requires here",
        "detected a sparse file, read with direct I/O unchecked",
        "contradicted (holes): 100 % of the read region is not stored",
        "The page cache served",
        "not printed (percentiles)",
    ] {
        assert!(text.contains(words), "`{words}` is missing\n{ran:?}");
    }
    assert_left(sandbox.root(), &before);
}

#[test]
fn an_ordinary_user_stages_less_and_the_reason_is_reported() {
    let _alone = alone();
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    fs::set_permissions(sandbox.root(), fs::Permissions::from_mode(0o777)).expect("a mode");
    let mut command = sandbox.command(&["selftest", "--json"]);
    let Ok(output) = command.uid(65534).gid(65534).output() else {
        eprintln!("skipped: an ordinary user cannot reach the build directory");
        return;
    };
    let ran = Ran::of(output);
    if ran.code == Some(2) {
        eprintln!("skipped: an ordinary user cannot use the build directory: {}", ran.err);
        return;
    }
    let document = document(&ran);
    assert_none_is_wrong(&document);
    ran.assert_code(0);
    assert_eq!(endings(&document, "nobarrier"), ["not_staged"]);
    // On a busy machine others are not staged for other reasons.
    let rows = document["rows"].as_array().expect("rows");
    let needs_root = |row: &&Value| row["why_not_staged"].as_str().is_some_and(|why| why.contains("needs root"));
    let privileged: Vec<&Value> = rows.iter().filter(needs_root).collect();
    assert!(privileged.len() >= 6, "{document:#}");
    assert!(privileged.iter().all(|row| row["ending"] == "not_staged"), "{document:#}");
    assert_eq!(listing(sandbox.root()), [""; 0]);
}

/// Goal: mounts, loop devices and files end with the program, for every kind of end.
/// Method: a signal while the scratch filesystem is mounted, which only the program itself sees.
#[test]
fn a_signal_leaves_nothing_and_an_incomplete_selftest_fails() {
    let _alone = alone();
    if !has_everything() {
        return;
    }
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let sandbox = Sandbox::new();
        let before = Surroundings::of(sandbox.root());
        let mut command = sandbox.command(&["selftest", "--json"]);
        let running = Running::start(&mut command);
        // Workers are named after their jobs; this one works on a loop device.
        running.wait_for_worker("selftest-own");
        running.signal(signal);
        let (ran, by_signal) = running.wait();
        if signal == libc::SIGINT {
            assert_eq!(by_signal, None);
            ran.assert_code(1);
            assert_eq!(document(&ran)["is_complete"], false);
            assert!(ran.err.contains("interrupted by SIGINT"), "{ran:?}");
        } else {
            assert_eq!(by_signal, Some(libc::SIGKILL));
        }
        assert_left(sandbox.root(), &before);
    }
}

#[test]
fn a_directory_that_cannot_be_used_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 4096);
    sandbox.run(&["selftest", "nowhere"]).assert_refused(&["`nowhere` cannot be used", "os error 2"]);
    sandbox.run(&["selftest", "data"]).assert_refused(&["cannot be examined"]);
}
