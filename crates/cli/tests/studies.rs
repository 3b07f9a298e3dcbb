//! Each study of the program end to end, quick and with one sample, on ext4 and on a loop device; and what it must find.
//!
//! `usb-transport` needs a USB disk: it is run in the lab.

mod common;

use common::*;
use trueio_model::{CheckOutcome, DurabilityKind, Outcome, StudyMode, StudyRecord, StudyRow, Verdict};

/// The studies that need nothing but a place, with what makes them still smaller.
const STUDIES: [(&str, &[&str]); 2] = [
    ("write-flags", &["--set", "size=1m", "--set", "number_ios=8"]),
    ("cache-bypass", &["--set", "size=8m", "--set", "number_ios=64"]),
];

fn run(sandbox: &Sandbox, name: &str, target: &str, more: &[&str]) -> (Ran, StudyRecord) {
    let json = sandbox.aside(&format!("{name}.json"));
    let mut arguments = vec!["study", name, target, "--quick", "--samples", "1", "--json", json.to_str().unwrap()];
    arguments.extend(more);
    if target != "." {
        arguments.extend(["--overwrite", target]);
    }
    let ran = sandbox.run(&arguments);
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{name}: {e}: {ran:?}"));
    (ran, trueio_report::parse_study(&text).expect("a study's record"))
}

fn assert_sound(name: &str, ran: &Ran, record: &StudyRecord) {
    ran.assert_code(0);
    assert_eq!(record.outcome, Outcome::Complete, "{name}");
    assert!(record.is_quick && record.modes.len() >= 2, "{name}");
    for mode in &record.modes {
        assert!(!mode.scale.is_empty(), "{name} {}: what is smaller is not said", mode.name);
        for row in &mode.rows {
            assert_eq!(row.failure, None, "{name} {} {}", mode.name, row.name);
            assert_eq!(row.samples.len(), 1, "{name} {} {}", mode.name, row.name);
            assert!(row.verdict.is_some() && !row.checks.is_empty(), "{name} {} {}: no evidence", mode.name, row.name);
            assert!(
                row.samples[0].io_count > 0 && row.samples[0].error_count == 0,
                "{name} {} {}",
                mode.name,
                row.name
            );
        }
    }
    assert!(record.modes[0].rows.iter().any(|row| !row.published.is_empty()), "{name}: theirs is not beside ours");
}

#[test]
fn each_study_runs_quick_on_the_filesystem_and_leaves_nothing() {
    for (name, more) in STUDIES {
        let sandbox = Sandbox::new();
        let (ran, record) = run(&sandbox, name, ".", more);
        assert_sound(name, &ran, &record);
        assert_eq!(sandbox.listing(), [""; 0], "{name}");
    }
}

#[test]
fn each_study_runs_quick_on_a_loop_device() {
    if lacks("root") {
        return;
    }
    for (name, more) in STUDIES {
        let sandbox = Sandbox::new();
        let device = Loop::new(&sandbox, name, 64 << 20);
        let (ran, record) = run(&sandbox, name, &device.device, more);
        assert_sound(name, &ran, &record);
    }
}

fn mode<'a>(record: &'a StudyRecord, name: &str) -> &'a StudyMode {
    record.modes.iter().find(|mode| mode.name == name).expect("the mode was run")
}

fn row<'a>(mode: &'a StudyMode, name: &str) -> &'a StudyRow {
    mode.rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("there is no row `{name}`"))
}

#[test]
fn write_flags_tells_which_methods_asked_for_stable_storage() {
    let sandbox = Sandbox::new();
    let (_, record) =
        run(&sandbox, "write-flags", ".", &["--set", "size=1m", "--set", "number_ios=8", "--mode", "improved"]);
    for row in &mode(&record, "improved").rows {
        let asks = row.durability.as_ref().expect("it writes").is != DurabilityKind::NotAsked;
        let method = &row.key[1].1;
        let is_bare = method == "BUFFERED" || method == "O_DIRECT";
        assert_eq!(asks, !is_bare, "{}", row.name);
    }
}

/// Stages the published mistake and shows it refused; the same loop with an aligned buffer is silent.
#[test]
fn cache_bypass_as_published_fails_every_direct_call_and_says_what_the_loop_would_have_said() {
    let sandbox = Sandbox::new();
    let small = &["--set", "size=8m", "--set", "number_ios=64"];
    let (_, honest) = run(&sandbox, "cache-bypass", ".", &[small, &["--mode", "faithful"][..]].concat());
    for name in ["read direct", "write direct"] {
        let row = row(mode(&honest, "faithful"), name);
        assert_eq!((row.samples[0].error_count, row.samples[0].io_count), (0, 64), "{name}");
    }
    let (ran, staged) = run(&sandbox, "cache-bypass", ".", &[small, &["--as-published"][..]].concat());
    let published = mode(&staged, "as-published");
    for name in ["read direct", "write direct"] {
        let row = row(published, name);
        if row.samples[0].error_count == 0 {
            println!("skipped: this disk takes a buffer 16 bytes behind a page");
            return;
        }
        assert_eq!(row.samples[0].error_count, 64, "{name}: every call fails");
        assert_eq!(row.verdict, Some(Verdict::Contradicted));
        assert!(row.figures.is_empty(), "{name}: a figure of calls that failed");
        assert!(row.checks.iter().any(|c| c.name == "call_results" && c.outcome == CheckOutcome::Contradicted));
        assert!(row.failure.as_ref().is_some_and(|why| why.contains("is not a multiple of")), "{:?}", row.failure);
    }
    for name in ["read normal", "write normal"] {
        assert_eq!(row(published, name).samples[0].error_count, 0, "{name}: the page cache takes any buffer");
    }
    // The failure is what the mode is for.
    ran.assert_code(0);
    assert!(ran.out_joined().contains("64 of 64 calls failed"), "{ran:?}");
}

#[test]
fn cache_bypass_tells_a_warm_cache_from_a_cold_one() {
    let sandbox = Sandbox::new();
    let (_, record) =
        run(&sandbox, "cache-bypass", ".", &["--set", "size=8m", "--set", "number_ios=64", "--mode", "improved"]);
    let improved = mode(&record, "improved");
    // The counters of the disk are everybody's: a neighbour's reads stand in for those that a warm cache saved. What this
    // process caused to be read is its own.
    let outcome = |row: &StudyRow| {
        let check = row.checks.iter().find(|check| check.name == "process_read_bytes");
        check.expect("each row is checked").outcome
    };
    if outcome(row(improved, "read normal")) == CheckOutcome::NotSeen {
        println!("skipped: what a process reads from disks is not counted here");
        return;
    }
    let served = |row: &StudyRow| matches!(outcome(row), CheckOutcome::Suspect | CheckOutcome::Contradicted);
    assert!(served(row(improved, "read normal")), "the warm cache was not seen");
    assert!(!served(row(improved, "read direct")), "{:?}", row(improved, "read direct").checks);
    assert!(!served(row(improved, "read normal, cold")), "{:?}", row(improved, "read normal, cold").checks);
}

#[test]
fn cache_bypass_knows_which_published_figures_cannot_be() {
    let study = trueio_study::embedded("cache-bypass").unwrap();
    let (mut impossible, mut possible) = (0, 0);
    for entry in &study.published.entries {
        let is_read = entry.place["operation"] == "read";
        let is_marked = !is_read && entry.value < 1.0;
        assert_eq!(entry.impossible.is_some(), is_read || is_marked, "{entry:?}");
        if entry.impossible.is_some() { impossible += 1 } else { possible += 1 }
    }
    assert_eq!((impossible, possible), (12, 8));
}
