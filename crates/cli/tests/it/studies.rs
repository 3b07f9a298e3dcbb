//! Each study of the program end to end: quick as a user types it on a loop device, and quick with one sample on an ext4 that
//! is made for it; and what it must find.
//!
//! `usb-transport` needs a USB disk: it is run in the lab. `access-pattern` on ext4 is in `study_calls.rs`.

use crate::common::*;
use trueio_model::{CheckOutcome, DurabilityKind, Outcome, StudyMode, StudyRecord, StudyRow, Verdict};

fn run(sandbox: &Sandbox, name: &str, target: &str, more: &[&str]) -> (Ran, StudyRecord) {
    let json = sandbox.aside(&format!("{name}.json"));
    let mut arguments = vec!["study", name, target, "--quick", "--json", json.to_str().unwrap()];
    arguments.extend(more);
    if target.starts_with("/dev/") {
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
        assert!(!mode.scale.is_empty(), "{name} {}: the output does not list what is smaller", mode.name);
        for row in &mode.rows {
            let place = format!("{name} {} {}", mode.name, row.name);
            assert_eq!(row.failure, None, "{place}");
            assert_eq!(row.samples.len(), mode.samples as usize, "{place}");
            assert!(row.verdict.is_some() && !row.checks.is_empty(), "{place}: no evidence");
            assert!(row.samples.iter().all(|sample| sample.error_count == 0), "{place}");
            assert!(row.samples.iter().any(|sample| sample.io_count > 0), "{place}");
        }
    }
    assert!(
        record.modes[0].rows.iter().any(|row| !row.published.is_empty()),
        "{name}: the published figure is not next to ours"
    );
}

/// A loop device over memory: its requests complete at once, and are counted as on any disk. So these tests take as long as the
/// program itself, however slow and busy the disks of the machine are.
struct Memory {
    // Goes first, since it lies on the other.
    device: Loop,
    _memory: Mount,
}

impl Memory {
    fn new(sandbox: &Sandbox, mib: u64) -> Self {
        let memory = Mount::tmpfs(sandbox, "memory", &format!("{}m", mib + 8));
        let backing = memory.path.join("disk");
        std::fs::File::create(&backing).and_then(|file| file.set_len(mib << 20)).expect("a sparse file");
        Self { device: Loop::over(&backing, &[]), _memory: memory }
    }
}

/// As a user types it: `trueio study NAME DEVICE --quick --overwrite DEVICE`.
fn quick_on_a_loop_device(name: &str) -> Option<(Ran, StudyRecord)> {
    if lacks("loop") || lacks("tmpfs") {
        return None;
    }
    let sandbox = Sandbox::new();
    let disk = Memory::new(&sandbox, 32);
    let (ran, record) = run(&sandbox, name, &disk.device.device, &[]);
    assert_sound(name, &ran, &record);
    let improved = mode(&record, "improved");
    assert_eq!(improved.samples, 6, "{name}: enough for intervals");
    assert!(
        improved.rows.iter().flat_map(|row| &row.figures).any(|figure| figure.interval.is_some()),
        "{name}: no figure has an interval"
    );
    Some((ran, record))
}

/// With one sample a row on an ext4 of its own; nothing is left there.
fn quick_on_ext4(name: &str, more: &[&str]) -> Option<(Ran, StudyRecord)> {
    if lacks("loop") || lacks("tmpfs") {
        return None;
    }
    let sandbox = Sandbox::new();
    let disk = Memory::new(&sandbox, 96);
    disk.device.make_ext4();
    let mount = Mount::ext4(&sandbox, "mount", &disk.device.device);
    let before = listing_of(&mount);
    let arguments = [&["--samples", "1"], more].concat();
    let (ran, record) = run(&sandbox, name, mount.path.to_str().expect("UTF-8"), &arguments);
    assert_sound(name, &ran, &record);
    let filesystem = record.targets[0].filesystem.as_ref().map(|found| found.kind.as_str());
    assert_eq!(filesystem, Some("ext4"), "{name}");
    assert_eq!(listing_of(&mount), before, "{name} left something");
    Some((ran, record))
}

fn listing_of(mount: &Mount) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(&mount.path).expect("the mount");
    entries.map(|entry| entry.expect("an entry").file_name()).collect()
}

/// Goal: `--quick` runs on a raw device; for each method the study reports whether its writes reached stable storage, with
/// the flushes that the disk counted.
/// Method: a loop device that no other program uses counts each flush.
#[test]
fn write_flags_runs_quick_on_a_loop_device_and_counts_the_flushes_of_each_row() {
    let Some((ran, record)) = quick_on_a_loop_device("write-flags") else { return };
    for row in record.modes.iter().flat_map(|mode| &mode.rows) {
        let method = row.key[1].1.trim_end_matches(" + O_DIRECT");
        let durability = row.durability.as_ref().expect("it writes");
        for sample in &row.samples {
            let flushes = sample.flush_count.expect("a loop device counts them");
            let asked = match method {
                "BUFFERED" | "O_DIRECT" => 0,
                "AMORTIZED_FDATASYNC" => 1,
                _ => sample.io_count,
            };
            assert!(flushes >= asked, "{}: {flushes} flushes of {asked}", row.name);
        }
        let least = row.samples.iter().filter_map(|sample| sample.flush_count).min();
        if matches!(method, "BUFFERED" | "O_DIRECT") {
            assert_eq!((durability.is, least), (DurabilityKind::NotAsked, Some(0)), "{}", row.name);
        } else {
            assert_eq!(durability.is, DurabilityKind::Shown, "{}: {}", row.name, durability.source);
        }
    }
    let answers = &mode(&record, "improved").answers;
    for block in ["4k", "64k", "1m"] {
        // On a busy machine a check may doubt every round; then no way is named, and the first answer counts such rows.
        let starts = ["the fastest durable way is ", "which durable way is the fastest cannot be told"];
        let is_it =
            |answer: &&String| starts.iter().any(|start| answer.starts_with(&format!("block {block}: {start}")));
        let answer = answers.iter().find(is_it).unwrap_or_else(|| panic!("{answers:?}"));
        assert!(!answer.contains("BUFFERED"), "{answer}");
    }
    assert!(ran.out.contains("stable storage  flushes"), "{ran:?}");
}

#[test]
fn cache_bypass_runs_quick_on_a_loop_device() {
    quick_on_a_loop_device("cache-bypass");
}

#[test]
fn access_pattern_runs_quick_on_a_loop_device() {
    quick_on_a_loop_device("access-pattern");
}

#[test]
fn file_writers_runs_quick_on_a_loop_device() {
    quick_on_a_loop_device("file-writers");
}

/// On ext4 too; and its rows are printed as benchmark.js prints its own.
#[test]
fn write_flags_runs_quick_on_ext4_and_prints_rows_as_the_source_does() {
    let Some((ran, record)) = quick_on_ext4("write-flags", &["--format", "rows"]) else { return };
    let rows = &mode(&record, "faithful").rows;
    assert_eq!((rows.len(), ran.out.lines().count()), (36, 36), "{ran:?}");
    for (row, line) in rows.iter().zip(ran.out.lines()) {
        let block = trueio_model::units::parse_bytes(&row.key[0].1).expect("a size");
        let start = format!("{block:>10} | file | {:<38} | ", row.key[1].1);
        let rest = line.strip_prefix(&start).unwrap_or_else(|| panic!("`{line}` does not begin with `{start}`"));
        let rate = rest.strip_suffix(" MB/s").expect("a unit");
        if row.verdict == Some(Verdict::Contradicted) {
            assert_eq!(rate.trim(), "-", "{line}");
        } else {
            assert!(rate.len() >= 8 && rate.trim().parse::<f64>().is_ok_and(|rate| rate > 0.0), "{line}");
        }
    }
}

#[test]
fn cache_bypass_and_file_writers_run_quick_on_ext4() {
    for name in ["cache-bypass", "file-writers"] {
        quick_on_ext4(name, &[]);
    }
}

fn mode<'a>(record: &'a StudyRecord, name: &str) -> &'a StudyMode {
    record.modes.iter().find(|mode| mode.name == name).expect("the mode was run")
}

fn row<'a>(mode: &'a StudyMode, name: &str) -> &'a StudyRow {
    mode.rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("there is no row `{name}`"))
}

/// Stages the published mistake and shows it refused; the same loop with an aligned buffer is silent.
#[test]
fn cache_bypass_as_published_fails_every_direct_call_and_reports_the_published_figure() {
    let sandbox = Sandbox::new();
    let small = &["--samples", "1", "--set", "size=8m", "--set", "number_ios=64"];
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
            println!("skipped: this disk accepts a buffer 16 bytes after the start of a page");
            return;
        }
        assert_eq!(row.samples[0].error_count, 64, "{name}: every call fails");
        assert_eq!(row.verdict, Some(Verdict::Contradicted));
        assert!(row.figures.is_empty(), "{name}: a figure of calls that failed");
        assert!(row.checks.iter().any(|c| c.name == "call_results" && c.outcome == CheckOutcome::Contradicted));
        assert!(row.failure.as_ref().is_some_and(|why| why.contains("past a multiple of")), "{:?}", row.failure);
    }
    for name in ["read normal", "write normal"] {
        assert_eq!(row(published, name).samples[0].error_count, 0, "{name}: the page cache takes any buffer");
    }
    // The failure is what the mode is for.
    ran.assert_code(0);
    assert!(ran.out_joined().contains("64 of 64 calls failed"), "{ran:?}");
}

#[test]
fn cache_bypass_distinguishes_a_warm_cache_from_a_cold_one() {
    let sandbox = Sandbox::new();
    let (_, record) = run(
        &sandbox,
        "cache-bypass",
        ".",
        &["--samples", "1", "--set", "size=8m", "--set", "number_ios=64", "--mode", "improved"],
    );
    let improved = mode(&record, "improved");
    // The counters of the disk include all processes: reads of other programs may replace those that a warm cache saved. So
    // the reads of this process are checked.
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
fn cache_bypass_marks_the_impossible_published_figures() {
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

/// Goal: every published figure is kept as the source prints it, with the author's asterisk; what rests on the number of calls,
/// which the source does not print, states that where it stands.
#[test]
fn cache_bypass_states_the_number_of_calls_that_it_assumes() {
    let printed_of = |name: &str| -> Vec<String> {
        let study = trueio_study::embedded(name).expect("it is in the program");
        study.published.entries.into_iter().map(|entry| entry.printed).collect()
    };
    for (name, figures) in [
        ("cache-bypass", &["14.682 s", "14.610 s", "76.412 s", "540 s", "0.112* s", "0.041* s"][..]),
        ("file-writers", &["58,265 ms", "58,293 ms"]),
        ("write-flags", &["0.44 MB/s"]),
        ("usb-transport", &["190 MiB/s", "786 KiB/s", "192 IOPS", "1278.97 ms"]),
        ("access-pattern", &["52526 KB/s", "56.15 µs", "36.05 %"]),
    ] {
        let printed = printed_of(name);
        for figure in figures {
            assert!(printed.iter().any(|other| other == figure), "{name} has no `{figure}`: {printed:?}");
        }
    }
    let sandbox = Sandbox::new();
    let page = sandbox.aside("page.html");
    let small = ["--samples", "1", "--set", "size=1m", "--set", "number_ios=8", "--mode", "faithful"];
    let (ran, record) =
        run(&sandbox, "cache-bypass", ".", &[&small[..], &["--html", page.to_str().expect("UTF-8")]].concat());
    let html = std::fs::read_to_string(&page).expect("the page");
    for out in [&ran.out_joined(), &html] {
        for sentence in [
            "would be 7.28 GiB/s, but four lanes of PCIe 3.0 carry 3938 MB/s at most",
            "Assumed: 15,625 calls of 128 KiB, as many as the file has blocks (the source does not print its C_NUMB_ITERS); up to \
             7,871 calls would be possible.",
            "not compared, since a figure of it cannot be if it is of 15,625 calls of 128 KiB",
        ] {
            assert!(out.contains(sentence), "`{sentence}` is missing: {out}");
        }
    }
    let first = &record.source.impossible[0];
    assert_eq!((first.assumption.as_deref(), first.possible_count_max), (Some("15,625 calls of 128 KiB"), Some(7871)));
    assert_eq!(record.source.asterisk.as_deref(), Some("something went probably wrong"));
}

/// Goal: on a filesystem without direct I/O a study runs the other rows, and names those that it leaves out.
#[test]
fn write_flags_runs_on_tmpfs_without_the_rows_of_direct_io() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let memory = Mount::tmpfs(&sandbox, "memory", "64m");
    let path = memory.path.to_str().expect("UTF-8");
    let (ran, record) = run(&sandbox, "write-flags", path, &["--samples", "1", "--mode", "faithful"]);
    ran.assert_code(0);
    let faithful = mode(&record, "faithful");
    assert!(faithful.rows.len() >= 12, "{ran:?}");
    assert!(faithful.rows.iter().all(|row| row.failure.is_none() && !row.name.contains("O_DIRECT")), "{ran:?}");
    let note = faithful.notes.iter().find(|note| note.starts_with("Left out here: ")).expect("a note");
    assert!(note.contains("block 4k O_DIRECT") && note.contains("has no direct I/O"), "{note}");
}
