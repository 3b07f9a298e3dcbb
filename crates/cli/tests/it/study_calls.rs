//! The faithful modes of studies against the procedures of their sources: every call counted by the kernel's
//! tracepoints, with its flags, sizes, offsets and flushes. And `access-pattern` end to end.
//!
//! Limits: neither the order of calls of different kinds nor the data that a flush covers is checked.

use crate::common::*;
use std::collections::BTreeMap;
use trueio_model::{StudyRecord, StudyRow, SyscallIo, SyscallPlaces, SyscallRow, SyscallTrace};

/// True if calls cannot be recorded here.
fn lacks_tracing() -> bool {
    lacks("root") || lacks("tracing")
}

#[track_caller]
fn traced(row: &StudyRow) -> &SyscallTrace {
    let trace = row.syscalls.as_ref().expect("it was asked for");
    assert_eq!((&trace.missing, trace.lost_event_count), (&None, 0), "{}", row.name);
    trace
}

#[track_caller]
fn only<'a>(trace: &'a SyscallTrace, name: &str) -> &'a SyscallRow {
    let rows: Vec<_> = trace.calls(name).collect();
    assert_eq!(rows.len(), 1, "{name}: {trace:#?}");
    rows[0]
}

#[track_caller]
fn io(call: &SyscallRow) -> (&SyscallIo, SyscallPlaces) {
    let io = call.io.as_ref().expect("I/O");
    (io, io.places.expect("places"))
}

/// Returns the counts of the calls that make data durable, by name.
fn flushes(trace: &SyscallTrace) -> BTreeMap<&str, u64> {
    let calls = trace.jobs.iter().flat_map(|job| &job.calls).filter(|call| call.is_flush());
    calls.map(|call| (call.name.as_str(), call.count)).collect()
}

fn at<'a>(row: &'a StudyRow, axis: &str) -> &'a str {
    row.key.iter().find(|(name, _)| name == axis).map_or("", |(_, value)| value.as_str())
}

fn studied(sandbox: &Sandbox, name: &str, target: &str, arguments: &str) -> (Ran, StudyRecord) {
    let json = sandbox.aside("study.json");
    let mut all = vec!["study", name, target, "--no-journal", "--json", json.to_str().expect("UTF-8")];
    all.extend(arguments.split_whitespace());
    let ran = sandbox.run(&all);
    ran.assert_code(0);
    (ran, trueio_report::parse_study(&std::fs::read_to_string(&json).expect("a record")).expect("a study"))
}

/// Goal: the faithful mode of `access-pattern` makes the calls that the source's strace logs show.
/// Method: its three rows at 4 MiB, recorded by our trace, two of them under strace, as published.
#[test]
fn the_study_of_access_patterns_makes_the_calls_that_the_source_logged() {
    if lacks("strace") || lacks_tracing() {
        return;
    }
    let sandbox = Sandbox::new();
    let (_, record) = studied(&sandbox, "access-pattern", ".", "--mode faithful --trace-syscalls --set size=4m");
    let rows = &record.modes[0].rows;
    let trace = |row: usize| traced(&rows[row]);
    for (row, is_random) in [(0, true), (1, false)] {
        let trace = trace(row);
        let (of_write, places) = io(only(trace, "write"));
        assert_eq!(of_write.asked.counts, [(4096, 1024)]);
        assert_eq!(of_write.opened, [("O_RDWR|O_DIRECT".to_owned(), 1024)], "{}", rows[row].name);
        assert_eq!((places.unique_count, places.begin_bytes, places.end_bytes), (1024, 0, 4 << 20));
        assert_eq!(trace.count("lseek"), 1024 - places.sequential_count);
        assert_eq!(places.sequential_count > 512, !is_random, "{}", rows[row].name);
    }
    let libaio = trace(2);
    for name in ["io_submit", "io_getevents"] {
        assert_eq!(only(libaio, name).io.as_ref().expect("I/O").returned.sum, 1024);
    }
    // fio made none.
    assert!((0..3).all(|row| flushes(trace(row)).is_empty()));
}

/// Goal: `--quick` end to end on ext4 (on a loop device: `studies.rs`): every row has its samples, the sum of slat and clat is
/// checked in all of them, and the calls of each engine are printed.
#[test]
fn the_study_of_access_patterns_runs_quick_on_ext4() {
    if lacks("strace") || lacks("loop") || lacks_tracing() {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk", 64 << 20);
    let name = device.device.as_str();
    device.make_ext4();
    let mount = Mount::ext4(&sandbox, "mount", name);
    let directory = mount.path.to_str().expect("UTF-8");
    // Small, with enough time to complete on a busy machine.
    let raw = "--quick --samples 1 --set size=1m --set runtime=60s";
    let (ran, record) = studied(&sandbox, "access-pattern", directory, raw);
    let counts: Vec<(&str, usize)> = record.modes.iter().map(|mode| (mode.name.as_str(), mode.rows.len())).collect();
    assert_eq!(counts, [("faithful", 3), ("improved", 20), ("calls", 18)]);
    for mode in &record.modes {
        for row in &mode.rows {
            assert_eq!((row.samples.len(), &row.failure), (1, &None), "{} {}", mode.name, row.name);
            assert_eq!(row.syscalls.is_some(), row.name.contains("recorded"), "{} {}", mode.name, row.name);
            assert_eq!(row.samples[0].io_count, 256, "{} {}", mode.name, row.name);
        }
        let sum = mode.answers.iter().find(|answer| answer.contains("here:")).expect("the sum is checked");
        assert!(sum.contains("so within 1.00 % in all samples that have these figures"), "{sum}");
    }
    let text = ran.out_joined();
    for sentence in [
        // 2.00, or 2.01 with the memory of the first I/O.
        "randwrite libaio depth 1 recorded: 2.0",
        "libaio without strace against sync under it, as published",
        "Published 1.71 times",
        "printed as KB/s, which is KiB/s",
        "the clat and lat of 56 ms in the text are 56 µs",
    ] {
        assert!(text.contains(sentence), "`{sentence}` is not in\n{text}");
    }
}

/// Goal: rows that need a missing program are left out with a note, and the others run.
/// Method: a `PATH` without strace.
#[test]
fn rows_that_need_strace_are_skipped_with_a_note_without_it() {
    let sandbox = Sandbox::new();
    let json = sandbox.aside("study.json");
    let arguments = "study access-pattern . --no-journal --mode faithful --set size=1m --json";
    let mut all: Vec<&str> = arguments.split_whitespace().collect();
    all.push(json.to_str().expect("UTF-8"));
    let output = sandbox.command(&all).env("PATH", sandbox.root()).output().expect("the program starts");
    let ran = Ran::of(output);
    ran.assert_code(0);
    let record = trueio_report::parse_study(&std::fs::read_to_string(&json).expect("a record")).expect("a study");
    let names: Vec<&str> = record.modes[0].rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["write libaio depth 1 alone"]);
    let text = ran.out_joined();
    assert!(
        text.contains(
            "Left out here: randwrite sync depth 1 strace, write sync depth 1 strace: `strace` cannot be started"
        ),
        "{text}"
    );
}

/// Goal: the faithful mode of `write-flags` makes the calls of benchmark.js.
/// Method: its quick rows (3 block sizes, 12 methods, fewer writes): number and size of the writes, in order from the
/// beginning, O_DIRECT, O_DSYNC and O_SYNC where the method has them, fdatasync or fsync after each write or once, and none
/// where there was none.
#[test]
fn the_study_of_write_flags_makes_the_writes_and_flushes_of_the_source() {
    if lacks_tracing() {
        return;
    }
    let sandbox = Sandbox::new();
    let arguments = "--quick --mode faithful --trace-syscalls --no-evidence";
    let (_, record) = studied(&sandbox, "write-flags", ".", arguments);
    let rows = &record.modes[0].rows;
    assert_eq!(rows.len(), 36);
    for row in rows {
        let (trace, method) = (traced(row), at(row, "method"));
        let block = trueio_model::units::parse_bytes(at(row, "block")).expect("a size");
        let write = only(trace, "pwrite64");
        let (of_write, places) = io(write);
        let count = row.samples[0].io_count;
        assert!(count >= 8 && write.count == count && write.error_count() == 0, "{}: {write:?}", row.name);
        assert_eq!(of_write.returned.counts, [(block, count)], "{}", row.name);
        assert_eq!((places.begin_bytes, places.end_bytes), (0, count * block), "{}", row.name);
        assert_eq!((places.sequential_count, places.unique_count), (count - 1, count), "{}", row.name);
        let [(opened, _)] = &of_write.opened[..] else { panic!("{}: {:?}", row.name, of_write.opened) };
        for flag in ["O_DIRECT", "O_DSYNC", "O_SYNC"] {
            assert_eq!(opened.split('|').any(|set| set == flag), method.contains(flag), "{}: {opened}", row.name);
        }
        let method = method.trim_end_matches(" + O_DIRECT");
        let expected = match method {
            "FDATASYNC" => Some(("fdatasync", count)),
            "FSYNC" => Some(("fsync", count)),
            "AMORTIZED_FDATASYNC" => Some(("fdatasync", 1)),
            "AMORTIZED_FSYNC" => Some(("fsync", 1)),
            _ => None,
        };
        assert_eq!(flushes(trace), expected.into_iter().collect(), "{}", row.name);
    }
}

/// Goal: the faithful mode of `cache-bypass` makes the calls of the published loop, and `as-published` makes them fail as
/// they did.
/// Method: 128 calls of 128 KiB at offsets drawn with repetition, O_SYNC always, O_DIRECT where direct, no flush; with the
/// published buffer every direct call returns EINVAL.
#[test]
fn the_study_of_the_cache_makes_the_calls_of_the_published_loop() {
    if lacks_tracing() {
        return;
    }
    let sandbox = Sandbox::new();
    let call_of = |row: &StudyRow| if at(row, "operation") == "read" { "pread64" } else { "pwrite64" };
    let arguments = "--quick --mode faithful,as-published --trace-syscalls --no-evidence";
    let (_, record) = studied(&sandbox, "cache-bypass", ".", arguments);
    for mode in &record.modes {
        assert_eq!(mode.rows.len(), 4);
        for row in &mode.rows {
            let trace = traced(row);
            let call = only(trace, call_of(row));
            let io = call.io.as_ref().expect("I/O");
            let is_direct = at(row, "path") == "direct";
            assert_eq!((call.count, &io.asked.counts[..]), (128, &[(131_072, 128)][..]), "{}", row.name);
            let [(opened, 128)] = &io.opened[..] else { panic!("{}: {:?}", row.name, io.opened) };
            assert!(opened.contains("O_SYNC") && opened.contains("O_DIRECT") == is_direct, "{}: {opened}", row.name);
            assert!(flushes(trace).is_empty(), "{}", row.name);
            if is_direct && mode.name == "as-published" {
                let [error] = call.errors[..] else { panic!("{}: {:?}", row.name, call.errors) };
                assert_eq!((error.errno, error.count, io.returned.sum), (libc::EINVAL, 128, 0), "{}", row.name);
            } else {
                let places = io.places.expect("places");
                assert_eq!((call.error_count(), io.returned.sum), (0, 128 * 131_072), "{}", row.name);
                assert!(places.unique_count < 128 && places.sequential_count < 32, "{}: {places:?}", row.name);
            }
        }
    }
}

/// Goal: the faithful mode of `file-writers` writes as the source's writers did, and flushes nothing.
/// Method: its quick rows (8 MiB): io.Copy's 32 KiB in order (O_DIRECT's download 8 KiB, as brk0v/directio), O_DIRECT
/// where the source has it, one io_uring submission per block; dd is another program, so its calls are not recorded.
#[test]
fn the_study_of_file_writers_writes_as_the_source_did_and_flushes_nothing() {
    if lacks_tracing() {
        return;
    }
    let sandbox = Sandbox::new();
    let arguments = "--quick --mode faithful --samples 1 --trace-syscalls --no-evidence";
    let (_, record) = studied(&sandbox, "file-writers", ".", arguments);
    let rows = &record.modes[0].rows;
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let all = ["io_uring download", "io_uring overwrite", "io_uring-direct overwrite", "control download"];
    let more = ["control overwrite", "o_direct download", "o_direct overwrite", "dd overwrite"];
    assert_eq!(names, [all, more].concat());
    let bytes = 8u64 << 20;
    for row in rows {
        let writer = at(row, "writer");
        if writer == "dd" {
            assert_eq!(row.syscalls, None);
            continue;
        }
        let trace = traced(row);
        assert!(flushes(trace).is_empty(), "{}", row.name);
        if writer.starts_with("io_uring") {
            let handed = &only(trace, "io_uring_enter").io.as_ref().expect("I/O").returned;
            assert_eq!(handed.sum, bytes / 32_768, "{}", row.name);
            assert!(handed.counts.iter().all(|(ios, _)| *ios <= 1), "{}: {handed:?}", row.name);
            continue;
        }
        let (of_write, places) = io(only(trace, "write"));
        let is_direct = writer == "o_direct";
        let block = if is_direct && at(row, "operation") == "download" { 8192 } else { 32_768 };
        assert_eq!(of_write.returned.counts, [(block, bytes / block)], "{}", row.name);
        assert_eq!(of_write.opened.len(), 1, "{}", row.name);
        assert_eq!(of_write.opened[0].0.contains("O_DIRECT"), is_direct, "{}", row.name);
        assert_eq!((places.begin_bytes, places.end_bytes), (0, bytes), "{}", row.name);
        assert_eq!(places.sequential_count, bytes / block - 1, "{}", row.name);
    }
}
