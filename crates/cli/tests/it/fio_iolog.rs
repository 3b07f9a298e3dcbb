//! fio's iologs: trueio replays fio's logs, and fio replays ours, with the same I/Os and bytes.
//!
//! Without an installed fio, stored logs of fio 3.33 are used.

use crate::common;

use crate::common::Sandbox;
use serde_json::Value;
use std::fs;

/// Returns the operations and bytes of reads, writes and sync calls.
fn totals(document: &str) -> [(u64, u64); 3] {
    let document: Value = serde_json::from_str(document).unwrap_or_else(|error| panic!("{error}: {document}"));
    let job = &document["jobs"][0];
    ["read", "write", "sync"].map(|name| {
        let of = |key: &str| job[name][key].as_u64().unwrap_or(0);
        (of("total_ios"), of("io_bytes"))
    })
}

/// Returns the same for a log, counted line by line.
fn totals_of_log(text: &str) -> [(u64, u64); 3] {
    let mut totals = [(0, 0); 3];
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split(' ').collect();
        let place = match words[2] {
            "read" => 0,
            "write" => 1,
            "sync" | "datasync" => 2,
            _ => continue,
        };
        totals[place].0 += 1;
        totals[place].1 += if place < 2 { words[4].parse::<u64>().expect(line) } else { 0 };
    }
    totals
}

/// Runs the installed fio; `None` without one.
fn real_fio(sandbox: &Sandbox, line: &str) -> Option<String> {
    sandbox.real_fio_done(line).map(|ran| ran.out)
}

/// Goal: a log that fio wrote is replayed with the same operations and bytes, on engines of any depth.
#[test]
fn iologs_of_fio_are_replayed() {
    let sandbox = Sandbox::new();
    let job = "--name=w --filename=f --size=256k --rw=randrw --bssplit=4k/50:8k/50 --fdatasync=4 --write_iolog=log";
    if real_fio(&sandbox, job).is_none() {
        sandbox.data_file("f", 1 << 18);
        let log = "fio version 3 iolog\n18 f add\n169 f open\n172 f write 0 4096\n190 f read 45056 8192\n\
                   205 f datasync 28672 0\n1951 f write 24576 4096\n2000 f close\n";
        sandbox.write("log", log);
    }
    let expected = totals_of_log(&fs::read_to_string(sandbox.path("log")).unwrap());
    assert!(expected.iter().all(|(count, _)| *count > 0), "{expected:?}");
    for engine in ["--ioengine=psync", "--ioengine=posixaio --iodepth=8"] {
        let ran = sandbox.fio(&format!("--name=r --read_iolog=log {engine} --output-format=json"));
        ran.assert_code(0);
        assert_eq!(totals(&ran.out), expected, "{engine}");
        let document: Value = serde_json::from_str(&ran.out).unwrap();
        let latency = &document["jobs"][0]["write"]["lat_ns"];
        assert!(latency["percentile"].is_object(), "it counts from the line's time, with percentiles: {latency}");
    }
}

/// Goal: fio and trueio replay our logs with the same operations and bytes.
#[test]
fn fio_replays_our_iologs() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 1 << 18);
    for engine in ["psync", "libaio --iodepth=4"] {
        let job = format!(
            "--name=w --filename=f --size=256k --rw=randrw --bs=4k --fsync=5 --ioengine={engine} --write_iolog=log \
             --output-format=json"
        );
        let wrote = sandbox.fio(&job);
        wrote.assert_code(0);
        let text = fs::read_to_string(sandbox.path("log")).unwrap();
        assert!(text.starts_with("fio version 3 iolog\n0 f add\n0 f open\n"), "{text}");
        assert!(text.ends_with(" f close\n"), "{text}");
        let times: Vec<u64> =
            text.lines().skip(1).map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
        assert!(times.is_sorted(), "{text}");
        let expected = totals(&wrote.out);
        assert_eq!(totals_of_log(&text), expected, "the log has what was done");
        let replayed = sandbox.fio("--name=r --read_iolog=log --replay_no_stall=1 --output-format=json");
        replayed.assert_code(0);
        assert_eq!(totals(&replayed.out), expected);
        if let Some(out) = real_fio(&sandbox, "--name=r --read_iolog=log --output-format=json") {
            let theirs = totals(&out);
            assert_eq!(theirs[..2], expected[..2], "fio replays it");
        }
    }
}

/// Goal: a log has no more rights than its job, and cannot extend a file; a refusal touches nothing.
#[test]
fn an_invalid_log_is_refused_with_its_line_before_anything_is_touched() {
    let sandbox = Sandbox::new();
    let file = sandbox.data_file("f", 8192);
    let before = fs::read(&file).unwrap();
    let begin = "fio version 3 iolog\n0 f add\n0 f open\n";
    for (lines, arguments, sentences) in [
        ("0 f write 0 4096\n0 f write 4096 x\n", "", &["`log`", "line 5", "the length `x` is not a whole number"][..]),
        ("0 f write 4096 8192\n", "", &["size_beyond_target"][..]),
        ("0 f write 0 4096\n", "--readonly", &["--readonly"][..]),
        ("0 g read 0 4096\n", "", &["line 4", "`g` was not added"][..]),
        ("0 f write 0 4096\n", "--time_based --runtime=1s", &["a log is replayed once"][..]),
        ("0 f write 0 4096\n", "--merge_blktrace_file=m", &["blkparse"][..]),
    ] {
        sandbox.write("log", format!("{begin}{lines}"));
        let ran = sandbox.fio(&format!("--name=r --read_iolog=log {arguments}"));
        ran.assert_code(1);
        for sentence in sentences {
            assert!(ran.err.contains(sentence), "{sentence}: {}", ran.err);
        }
        assert_eq!(fs::read(&file).unwrap(), before, "{lines}");
        assert!(!sandbox.path("g").exists());
    }
    // In TOML the log's files are written only if they are named.
    sandbox.write("log", format!("{begin}0 f write 0 4096\n"));
    sandbox.write("job.toml", "[job.a]\nread_iolog = \"log\"\n");
    let ran = sandbox.run(&["run", "job.toml", "--no-history"]);
    ran.assert_code(2);
    assert!(ran.err.contains("existing_target_not_named"), "{}", ran.err);
    assert_eq!(fs::read(&file).unwrap(), before);
    sandbox.write("job.toml", "[job.a]\nread_iolog = \"log\"\noverwrite_existing = \"f\"\n");
    sandbox.run(&["run", "job.toml", "--no-history"]).assert_code(0);
    assert_ne!(fs::read(&file).unwrap()[..4096], before[..4096]);
    assert_eq!(fs::read(&file).unwrap()[4096..], before[4096..]);
}

/// Goal: standard input is accepted if it is a file, which can be read twice; a pipe is refused with a hint.
#[test]
fn a_log_on_standard_input_is_replayed_if_it_is_a_file() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 8192);
    let log = sandbox.write("log", "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 1 0\nf read 4096 512\n");
    let arguments = ["fio", "--name=r", "--read_iolog=-", "--output-format=json"];
    let output = sandbox.command(&arguments).stdin(fs::File::open(log).unwrap()).output().unwrap();
    assert_eq!(totals(&String::from_utf8_lossy(&output.stdout))[0], (2, 4608));
    let mut child = sandbox.command(&arguments);
    let mut child = child.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take());
    let refused = child.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(common::joined(&text).contains("instead: save it to a file"), "{text}");
}

/// Goal: compressed logs have fio's format: fio prints ours, and trueio prints fio's, line for line.
#[test]
fn compressed_logs_are_read_by_fio_and_fios_by_us() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 1 << 18);
    let job = |name: &str| {
        format!(
            "--name=a --filename=f --size=256k --io_size=16m --rw=randrw --bs=4k --ioengine=psync --log_compression=64k \
             --write_lat_log={name} --write_bw_log={name} --log_store_compressed=1 --log_offset=1"
        )
    };
    let ran = sandbox.fio(&format!("{} --output=out", job("ours")));
    ran.assert_code(0);
    for log in ["ours_lat.1.log.fz", "ours_clat.1.log.fz", "ours_bw.1.log.fz"] {
        let printed = sandbox.fio(&format!("--inflate-log={log}"));
        printed.assert_code(0);
        assert_eq!(printed.out.lines().count(), 4096, "{log}");
        let is_whole = |line: &str| line.split(", ").filter(|field| field.parse::<u64>().is_ok()).count() == 6;
        assert!(printed.out.lines().all(is_whole), "{log}");
        assert!(fs::metadata(sandbox.path(log)).unwrap().len() < printed.out.len() as u64 / 2, "it is compressed");
        if let Some(theirs) = real_fio(&sandbox, &format!("--inflate-log={log}")) {
            assert_eq!(theirs, printed.out, "{log}");
        }
    }
    if real_fio(&sandbox, &job("theirs")).is_some() {
        for log in ["theirs_lat.1.log.fz", "theirs_slat.1.log.fz", "theirs_bw.1.log.fz"] {
            let expected = real_fio(&sandbox, &format!("--inflate-log={log}")).unwrap_or_default();
            assert_eq!(sandbox.fio(&format!("--inflate-log={log}")).out, expected, "{log}");
        }
    }
    for (name, content) in [("text", &b"0, 1, 0, 4096, 0\n"[..]), ("cut", &[0x78, 0x9c, 0x03])] {
        sandbox.write(name, content);
        let refused = sandbox.fio(&format!("--inflate-log={name}"));
        refused.assert_code(1);
        assert!(refused.err.contains("not a compressed log of fio"), "{}", refused.err);
    }
    sandbox.fio("--inflate-log=gone").assert_code(1);
}
