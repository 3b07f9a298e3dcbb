//! Pitfalls of fio, each with both behaviours: the installed fio has it, `trueio fio` does not.
//!
//! Without an installed fio, only our side is tested, and a line reports that.
//!
//! Limits: pitfalls of fio 3.42 that 3.33 does not have are not tested. `cargo xtask gate` counts the instructions of the
//! start.

use crate::common::*;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

/// Runs the installed fio, if there is one.
fn theirs(sandbox: &Sandbox, line: &str) -> Option<Ran> {
    real_fio(sandbox, line).map(|mut command| Ran::of(command.output().expect("fio starts")))
}

/// Returns the document of a run; fio may print lines before it.
fn document(ran: &Ran) -> Value {
    let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
    serde_json::from_str(&ran.out[begin..]).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
}

fn ours_json(sandbox: &Sandbox, line: &str) -> Value {
    let ran = sandbox.fio(&format!("{line} --output-format=json"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
    document(&ran)
}

fn theirs_json(sandbox: &Sandbox, line: &str) -> Option<Value> {
    theirs(sandbox, &format!("{line} --output-format=json")).map(|ran| document(&ran))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no whole number: {value}"))
}

/// Not a pitfall: the reads of `verify` count as reads in both, and are separate in the record.
#[test]
fn reads_of_verification_count_as_reads_in_fios_documents() {
    let sandbox = Sandbox::new();
    let count = |document: &Value| -> Vec<u64> {
        let job = &document["jobs"][0];
        let of = |op: &str| [&job[op]["total_ios"], &job[op]["io_bytes"], &job[op]["clat_ns"]["N"]].map(number);
        ["read", "write"].into_iter().flat_map(of).collect()
    };
    for (line, reads) in [
        ("--rw=write --verify=crc32c", 256),
        ("--rw=write --verify=crc32c --ioengine=libaio --iodepth=8 --verify_async=2", 256),
        ("--rw=randwrite --verify=pattern --verify_pattern=0xab --do_verify=0", 0),
        ("--rw=randrw --verify=md5", 256),
        ("--rw=read --verify=crc32c --do_verify=1", 256),
    ] {
        let line = format!("--name=a --size=1m --bs=4k {line}");
        let folder = sandbox.aside("f");
        let written = format!("--name=a --size=1m --bs=4k --rw=write --verify=crc32c --filename={}", folder.display());
        let line = format!("{line} --filename={}", folder.display());
        ours_json(&sandbox, &written);
        let ours = ours_json(&sandbox, &line);
        assert_eq!(count(&ours)[0], reads, "{line}");
        assert_eq!(number(&ours["jobs"][0]["read"]["runtime"]) > 0, reads > 0, "{line}");
        theirs_json(&sandbox, &written);
        if let Some(theirs) = theirs_json(&sandbox, &line) {
            if line.contains("randrw") {
                // Reads and writes are drawn at random. Written blocks are read back, so the sum of reads is fixed.
                assert_eq!(count(&ours)[..3], count(&theirs)[..3], "{line}");
            } else {
                assert_eq!(count(&ours), count(&theirs), "{line}");
            }
        }
    }
}

/// Method: virtual time, so a minute passes at once.
#[test]
fn units_of_minutes_and_seconds_are_parsed() {
    let sandbox = Sandbox::new();
    for (time, ms) in [("1min", 60_000), ("1sec", 1_000), ("1.5s", 1_500), ("1500ms", 1_500), ("2", 2_000)] {
        let job = format!("--name=x --size=1g --time_based --runtime={time}");
        let read = &ours_json(&sandbox, &format!("{job} --ioengine=simulated"))["jobs"][0]["read"];
        assert_eq!(number(&read["runtime"]), ms, "{time}");
        if matches!(time, "1min" | "1sec")
            && let Some(theirs) = theirs_json(&sandbox, &format!("{job} --ioengine=null"))
        {
            let read = &theirs["jobs"][0]["read"];
            assert_eq!((number(&read["total_ios"]), number(&read["runtime"])), (0, 0), "{time}");
        }
    }
}

#[test]
fn fractions_are_parsed_and_an_invalid_unit_is_refused_with_its_position() {
    let sandbox = Sandbox::new();
    let job = "--name=x --ioengine=null --bs=1k";
    let bytes = |document: &Value| number(&document["jobs"][0]["read"]["io_bytes"]);
    assert_eq!(bytes(&ours_json(&sandbox, &format!("{job} --size=1.5m"))), 3 << 19);
    // fio reads one byte, less than a block.
    if let Some(theirs) = theirs(&sandbox, &format!("{job} --size=1.5m --output-format=json")) {
        assert!(theirs.code != Some(0) || bytes(&document(&theirs)) == 0, "{theirs:?}");
    }
    let refused = sandbox.fio("--name=x --ioengine=null --size=1m --bs=4kfoo");
    assert_eq!(refused.code, Some(1));
    let pointed = refused.err.lines().find(|line| line.contains("^^^")).expect("a mark");
    let text = refused.err.lines().find(|line| line.contains("4kfoo") && line.contains('|')).expect("the line");
    assert_eq!(pointed.find('^'), text.find("foo"), "{}", refused.err);
    if let Some(theirs) = theirs_json(&sandbox, "--name=x --ioengine=null --size=1m --bs=4kfoo") {
        assert_eq!(number(&theirs["jobs"][0]["read"]["total_ios"]), 256, "fio takes it for 4k");
    }
}

/// Goal: with a rate, a stall is part of the latency of every I/O that was due during it.
/// Method: 1,000 reads a second for 10 s; the whole program is stopped for 2 s of them or more. A fifth of the reads were due
/// in the stop and waited 1 s on average, so our 99th percentile is near 2 s; in fio only the I/O in flight waited.
#[test]
fn with_a_rate_latency_counts_from_the_intended_start_with_a_note() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 4 << 20);
    let line = "--name=a --filename=f --ioengine=psync --rw=randread --bs=4k --size=4m --rate_iops=1000 --time_based \
                --runtime=10 --thread --lat_percentiles=1 --output-format=json";
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let us = Running::start(sandbox.command(&words).arg("--write_iops_log").arg(sandbox.aside("seen")));
    let them = real_fio(&sandbox, line).map(|mut command| Running::start(&mut command));
    // fio's own start-up in the first second does not change the number of I/Os that are due in it.
    let log = sandbox.aside("seen_iops.1.log");
    us.wait_until("a second of the run", || {
        fs::read(&log).is_ok_and(|log| log.iter().filter(|b| **b == b'\n').count() > 1000)
    });
    let both = || [Some(&us), them.as_ref()].into_iter().flatten();
    both().for_each(|running| running.signal(libc::SIGSTOP));
    std::thread::sleep(Duration::from_secs(2));
    both().for_each(|running| running.signal(libc::SIGCONT));
    let p99 = |ran: &Ran| number(&document(ran)["jobs"][0]["read"]["lat_ns"]["percentile"]["99.000000"]);
    let ran = us.wait().0;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ours = p99(&ran);
    assert!(ours > 1_000_000_000, "{ours}");
    let notes = document(&ran)["trueio"].to_string();
    assert!(notes.contains("intended start"), "{notes}");
    if let Some(them) = them {
        let theirs = p99(&them.wait().0);
        assert!(theirs < ours / 4, "fio: {theirs}, ours: {ours}");
    }
}

/// fio's last bucket begins at 17 s (its `stat.h`, and axboe/fio#1668). Only our side is tested: fio would need half a
/// minute.
#[test]
fn percentiles_continue_beyond_17_s() {
    let sandbox = Sandbox::new();
    let line = "--name=a --ioengine=simulated --simulated=service=40s --rw=read --bs=4k --size=40k";
    let read = &ours_json(&sandbox, line)["jobs"][0]["read"];
    assert_eq!(number(&read["clat_ns"]["percentile"]["99.000000"]), 40_000_000_000);
    assert_eq!(number(&read["lat_ns"]["max"]), 40_000_000_000);
}

/// Goal: no percentile is above the maximum.
/// Method: one I/O per job. fio prints the middle of its bucket, which is above the maximum in about every second job.
#[test]
fn no_percentile_lies_above_the_maximum() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 1 << 20);
    let line = "--name=a --filename=f --ioengine=psync --rw=randread --bs=4k --size=1m --number_ios=1 --numjobs=40 --thread \
                --percentile_list=50:99.9999";
    let above = |document: &Value| {
        let jobs = document["jobs"].as_array().expect("jobs");
        let is_above = |job: &&Value| {
            let latency = &job["read"]["clat_ns"];
            number(&latency["percentile"]["99.999900"]) > number(&latency["max"])
        };
        (jobs.len(), jobs.iter().filter(is_above).count())
    };
    assert_eq!(above(&ours_json(&sandbox, line)), (40, 0));
    if let Some(theirs) = theirs_json(&sandbox, line) {
        assert!(above(&theirs).1 > 0, "{theirs}");
    }
}

#[test]
fn sync_calls_do_not_count_as_queue_depths() {
    let sandbox = Sandbox::new();
    let line = "--name=a --rw=write --ioengine=sync --fdatasync=1 --size=230k --bs=2300";
    let depth = |document: &Value| document["jobs"][0]["iodepth_level"]["1"].as_f64().expect("a share");
    let document = ours_json(&sandbox, line);
    assert_eq!((depth(&document), number(&document["jobs"][0]["sync"]["total_ios"])), (100.0, 102));
    if let Some(theirs) = theirs_json(&sandbox, line) {
        assert!(depth(&theirs) > 190.0, "{theirs}");
        assert_eq!(theirs["jobs"][0]["sync"]["total_ios"], 0, "3.33 does not count them");
    }
}

#[test]
fn fsync_on_close_is_counted_and_part_of_the_measured_time() {
    let sandbox = Sandbox::new();
    let line = "--name=a --rw=write --ioengine=psync --bs=64k --size=8m --fsync_on_close=1";
    let document = ours_json(&sandbox, line);
    let (sync, write) = (&document["jobs"][0]["sync"], &document["jobs"][0]["write"]);
    assert_eq!(number(&sync["lat_ns"]["N"]), 1);
    let sync_ms = number(&sync["lat_ns"]["max"]) / 1_000_000;
    assert!(number(&write["runtime"]) >= sync_ms, "{write} {sync}");
    if let Some(theirs) = theirs_json(&sandbox, &line.replace("name=a", "name=b")) {
        assert_eq!(number(&theirs["jobs"][0]["sync"]["lat_ns"]["N"]), 0, "fio does not see it");
    }
}

#[test]
fn a_read_job_does_not_truncate_a_file() {
    let sandbox = Sandbox::new();
    let line = "--name=r --rw=read --filename=u --size=64k";
    let path = sandbox.write("u", "precious");
    assert_eq!(sandbox.fio(line).code, Some(1));
    assert_eq!(fs::read(&path).expect("the file"), b"precious");
    if let Some(theirs) = theirs(&sandbox, line) {
        assert_eq!(theirs.code, Some(0));
        assert_eq!(fs::read(&path).expect("the file").len(), 64 << 10, "fio wrote over it");
    }
}

/// Goal: a mounted device is neither written nor trimmed, under any name.
/// Method: a filesystem on a loop device, mounted. fio's guard compares names: it stops at the device's own, with exit
/// code 0, and writes through a link to it.
#[test]
fn a_mounted_device_is_identified_by_its_number_and_refused_with_an_error() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 16 << 20);
    disk.make_ext4();
    let _mount = Mount::try_new("ext4", "ro", &disk.device, &sandbox.path("mounted")).expect("a mount");
    symlink(&disk.device, sandbox.path("by-id")).expect("a link");
    let before = disk.content();
    // At the end of the device, where a write does no harm but is detected.
    let job = "--ioengine=psync --direct=1 --bs=4k --size=64k --offset=15m";
    let jobs: Vec<(&str, String)> = ["write", "randtrim"]
        .into_iter()
        .flat_map(|rw| [disk.device.clone(), "by-id".to_owned()].map(|path| (rw, path)))
        .collect();
    for (rw, path) in &jobs {
        let line = format!("--name=a {job} --rw={rw} --filename={path} --overwrite_signature=ext4");
        let ran = sandbox.fio(&line);
        assert_eq!((ran.code, ran.err.contains("is mounted at")), (Some(1), true), "{line}: {}", ran.err);
    }
    assert_eq!(disk.content(), before);
    // The device by its name is refused, with exit code 0; through the link it is written.
    for (rw, path) in jobs.iter().filter(|(rw, _)| *rw == "write") {
        let Some(ran) = theirs(&sandbox, &format!("--name=a {job} --rw={rw} --filename={path}")) else { return };
        let is_by_name = *path == disk.device;
        assert_eq!((ran.err.contains("appears mounted"), ran.code), (is_by_name, Some(0)), "{path}: {ran:?}");
        assert_eq!(disk.content() == before, is_by_name, "{path}");
    }
    for (rw, path) in jobs.iter().filter(|(rw, _)| *rw == "randtrim") {
        let Some(ran) = theirs(&sandbox, &format!("--name=a {job} --rw={rw} --filename={path}")) else { return };
        // A newer kernel may fail them by itself (EBUSY).
        assert!(!ran.err.contains("appears mounted"), "fio's guard ignores trims: {ran:?}");
    }
}

#[test]
fn status_intervals_can_be_read_line_by_line() {
    let sandbox = Sandbox::new();
    let line = "--name=a --ioengine=null --rw=randread --bs=4k --size=1g --time_based --runtime=2 --rate_iops=2000 \
                --status-interval=500ms";
    let ran = sandbox.fio(&format!("{line} --output-format=jsonl"));
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.len() >= 2 && lines[0]["type"] == "interval", "{ran:?}");
    assert_eq!(lines[lines.len() - 1]["type"], "result");
    // fio's intervals are whole seconds.
    let line = line.replace("500ms", "1");
    let Some(theirs) = theirs(&sandbox, &format!("{line} --output-format=json")) else { return };
    assert!(serde_json::from_str::<Value>(&theirs.out).is_err(), "fio writes several documents in sequence");
    let ran = sandbox.fio(&format!("{line} --output-format=json"));
    let documents = serde_json::Deserializer::from_str(&ran.out).into_iter::<Value>();
    let documents: Result<Vec<Value>, _> = documents.collect();
    assert!(documents.expect("JSON").len() >= 2, "the same here with `json`");
}

/// Returns the peak memory of a program in KiB, and whether it succeeded. The memory is read while the program runs,
/// because a child's `ru_maxrss` includes the process that started it.
fn peak_kib(command: &mut Command) -> (u64, bool) {
    // Its output is not read.
    let null = std::process::Stdio::null;
    let mut child = command.stdout(null()).stderr(null()).spawn().expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        if of("Name:").is_some_and(|name| name == "trueio" || name.starts_with("fio"))
            && let Some(kib) = of("VmHWM:").and_then(|value| value.split(' ').next()?.parse::<u64>().ok())
        {
            peak = peak.max(kib);
        }
        if let Some(status) = child.try_wait().expect("our child") {
            assert!(peak > 0, "it was over before it could be looked at");
            return (peak, status.success());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Goal: the memory of logs does not grow with their lines.
/// Method: every I/O is logged, in three logs; 20 times as many I/Os (10 times in fio, which keeps all lines until the job ends).
#[test]
fn memory_does_not_grow_with_the_lines_of_a_log() {
    let sandbox = Sandbox::new();
    let line = |ios: u32| {
        format!("--name=a --ioengine=null --bs=4k --size=16g --number_ios={ios} --write_lat_log=l --thread --output=o")
    };
    let ours = |ios: u32| {
        let words = format!("fio {}", line(ios));
        let (peak, is_success) = peak_kib(&mut sandbox.command(&words.split(' ').collect::<Vec<_>>()));
        let text = fs::read(sandbox.path("l_lat.1.log")).expect("a log");
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!((is_success, lines), (true, ios as usize));
        peak
    };
    let (few, many) = (ours(50_000), ours(1_000_000));
    assert!(many < few + (16 << 10), "from {few} to {many} KiB");
    if let Some(mut command) = real_fio(&sandbox, &line(50_000)) {
        let few = peak_kib(&mut command).0;
        let many = peak_kib(&mut real_fio(&sandbox, &line(500_000)).expect("it was there")).0;
        assert!(many > few + (16 << 10), "fio: from {few} to {many} KiB");
    }
}

/// Goal: exit codes are fio's, except where fio reports success for a run that did nothing or was refused.
/// Method: the same command lines with both. The second number is fio's exit code.
#[test]
fn exit_codes_are_fios() {
    let sandbox = Sandbox::new();
    sandbox.write("good.fio", "[a]\nioengine=null\nsize=64k\n");
    sandbox.write("bad.fio", "[a]\nioengine=null\nsize=64k\nnosuchoption=1\n");
    sandbox.write("empty.fio", "");
    sandbox.write("small", "precious");
    let cases: &[(&str, i32, i32)] = &[
        ("--name=a --ioengine=null --size=1m", 0, 0),
        ("--name=a --ioengine=null --size=1m --output-format=json,terse", 0, 0),
        ("--minimal --name=a --ioengine=null --size=1m", 0, 0),
        ("good.fio", 0, 0),
        ("good.fio --name=b --ioengine=null --size=1m", 0, 0),
        ("--section=a good.fio", 0, 0),
        ("--version", 0, 0),
        ("--help", 0, 0),
        ("--cmdhelp=bs", 0, 0),
        ("--enghelp", 0, 0),
        ("--parse-only --name=a --size=1m", 0, 0),
        ("--showcmd --name=a", 0, 0),
        ("", 1, 1),
        ("nosuch.fio", 1, 1),
        ("empty.fio", 1, 1),
        ("bad.fio", 1, 1),
        ("--name=a", 1, 1),
        ("--name=a --numjobs=3", 3, 3),
        ("--name=a --numjobs=2 --name=b --stonewall --name=c --size=4k", 3, 3),
        ("--name=a --ioengine=null --size=1m --bfs=4k", 1, 1),
        ("--name=a --ioengine=null --size=1m --numjobs=x", 1, 1),
        ("--name=a --ioengine=nosuch --size=1m", 1, 1),
        ("--name=a --size=1m --rw=sideways", 1, 1),
        ("--name=a --size=64k --bs=0", 1, 1),
        ("--name=a --rw=read --size=4k --allow_file_create=0", 1, 1),
        ("--name=a --rw=read --size=4k --allow_file_create=0 --numjobs=4", 4, 4),
        ("--name=a --rw=write --size=64k --readonly", 1, 1),
        ("--enghelp=nosuch", 1, 1),
        ("--parse-only --name=a --size=1m --rw=sideways", 1, 1),
        ("--output-format=nosuch --name=a --ioengine=null --size=1m", 1, 1),
        ("--terse-version=9 --minimal --name=a --ioengine=null --size=1m", 1, 1),
        ("--name=a --ioengine=null --size=1m --status-interval=x", 1, 1),
        ("--name=a --ioengine=null --size=1m --output=nosuch/o", 1, 1),
        ("--name=a --filename=/dev/full --ioengine=psync --rw=write --size=4k", 1, 1),
        ("--name=a --ioengine=null --size=1m --time_based=2 --runtime=100ms", 0, 0),
        ("--name=a --ioengine=null --size=1m --debug=nosuch", 0, 0),
        ("--name=a --ioengine=null --size=1m --bssplit=4k/80:8k/80", 0, 0),
        // fio 3.33 has no atomic writes and runs `b`; fio 3.42 refuses its engine before a job starts, and exits with 1.
        ("--name=a --rw=write --numjobs=2 --name=b --size=4k --rw=write --ioengine=mmap --atomic=1", 1, 2),
        // fio reports success for a run that did nothing, was refused, or differed from the options.
        ("--name=a --ioengine=null --size=1g --time_based --runtime=1x", 1, 0),
        ("--name=r --rw=read --filename=small --size=64k", 1, 0),
        ("--name=a --ioengine=null --size=1m --bs=4kfoo", 1, 0),
        ("--cmdhelp=nosuch", 1, 0),
    ];
    for (line, code, fios) in cases {
        let ran = sandbox.fio(line);
        assert_eq!(ran.code, Some(*code), "{line}: {ran:?}");
        // A failure has a reason on stderr, and a success prints nothing there.
        assert_eq!(ran.err.is_empty(), *code == 0, "{line}: {ran:?}");
        if let Some(theirs) = theirs(&sandbox, line) {
            assert_eq!(theirs.code, Some(*fios), "fio {line}: {theirs:?}");
        }
        // fio's last runs write to it.
        sandbox.write("small", "precious");
    }
}

/// Goal: a script that reads steps, offsets, lengths, directions and files from `--debug=io` gets the same from both.
#[test]
fn debug_io_prints_each_io_in_fios_lines_and_notes_what_is_missing() {
    let sandbox = Sandbox::new();
    // All but the process and the address, which differ from run to run.
    let lines = |ran: &Ran| -> Vec<(String, String)> {
        let line = |line: &str| {
            let (process, rest) = line.strip_prefix("io       ")?.split_once(' ')?;
            let (step, rest) = rest.split_once(": io_u 0x")?;
            let (address, what) = rest.split_once(": ")?;
            assert!(process.parse::<u32>().is_ok() && u64::from_str_radix(address, 16).is_ok(), "{line}");
            // fio also prints the result of the engine.
            what.starts_with("off=").then(|| (step.trim().to_owned(), what.to_owned()))
        };
        ran.out.lines().filter_map(line).collect()
    };
    for job in [
        "--debug=io --name=x --filename=f --size=16k --rw=write --ioengine=psync",
        "--debug=io --name=x --filename=f --size=8k --rw=write --ioengine=psync --fdatasync=1 --bs=4k",
        "--debug=io --name=x --filename=g --size=64k --bs=16k --rw=read --ioengine=libaio --iodepth=1",
        "--debug=io,job:1 --name=x --numjobs=2 --size=8k --ioengine=null",
        "--debug=io --name=x --size=8k --rw=trim --ioengine=null",
    ] {
        let ran = sandbox.fio(job);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{job}");
        let of_ours = lines(&ran);
        assert!(of_ours.iter().any(|(step, _)| step == "complete"), "{job}: {ran:?}");
        assert!(ran.out.rfind("io_u").expect("a line") < ran.out.find("err= 0").expect("results"), "{job}");
        if let Some(theirs) = theirs(&sandbox, job) {
            // Sync calls have the offset of the last write in fio, and none here.
            let without_offset = |(step, what): (String, String)| match what.split_once("len=0x0,") {
                Some((_, what)) => (step, what.to_owned()),
                None => (step, what),
            };
            let [of_ours, of_theirs] =
                [of_ours, lines(&theirs)].map(|all| all.into_iter().map(without_offset).collect::<Vec<_>>());
            // After the last write fio makes no sync call.
            let shared = if job.contains("fdatasync") { of_ours.len() - 4 } else { of_ours.len() };
            assert_eq!(of_ours[..shared], of_theirs, "{job}");
        }
    }
    // With several in flight, each completes once, after it was issued.
    let ran = sandbox.fio("--debug=io --name=x --size=64k --filename=h --rw=randrw --ioengine=libaio --iodepth=4");
    let mut open = Vec::new();
    for line in ran.out.lines().filter(|line| line.starts_with("io ")) {
        let (step, what) = line.split_once(": ").expect("a step");
        match step.rsplit(' ').next() {
            Some("queue") => open.push(what.to_owned()),
            Some("complete") => {
                let at = open.iter().position(|issued| issued == what).unwrap_or_else(|| panic!("{line}"));
                open.remove(at);
            }
            _ => {}
        }
    }
    assert_eq!((ran.code, open.len()), (Some(0), 0), "{ran:?}");

    let ran = sandbox.fio("--debug=mutex,time --name=x --size=8k --ioengine=null");
    let note = "note: `--debug=mutex,time` prints nothing; the results hold what was done\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), note));
    let ran = sandbox.fio("--debug=help");
    assert!(ran.code == Some(0) && ran.out.starts_with("fio: dumping debug options:process,file,io,"), "{ran:?}");
    let ran = sandbox.fio("--client=127.0.0.1 --debug=io --name=x --size=8k --ioengine=null");
    assert!(ran.code == Some(1) && !ran.err.is_empty(), "{ran:?}");
}

/// Goal: blocks that begin at multiples of their size or more are compared with their last write.
/// Method: more writes than places, so each place is written again; a byte that is replaced is found. Blocks that overlap in part are refused.
#[test]
fn aligned_blocks_that_come_again_are_verified() {
    let line = |words: &str| format!("--output-format=json --name=j --filename=n --rw=randwrite --verify=md5 {words}");
    for words in [
        "--size=50000 --ba=8k",
        "--size=64k --ba=16k",
        "--size=100k --ba=12k",
        "--size=1m --ba=8k --loops=3 --iodepth=16 --ioengine=libaio",
        "--size=64k --bs=2k --ba=8k --verify_backlog=8",
    ] {
        let sandbox = Sandbox::new();
        let line = line(words);
        let run = |more: &str| sandbox.fio(&format!("{line} {more}"));
        let ran = run("");
        let jobs = document(&ran)["jobs"].clone();
        let ios = |op: &str| jobs[0][op]["total_ios"].as_u64().expect("a count");
        if words.contains("verify_backlog") {
            assert!(ran.code == Some(0) && ios("read") == 32, "each write is read back: {ran:?}");
            continue;
        }
        assert!(ran.code == Some(0) && 0 < ios("read") && ios("read") < ios("write"), "{words}: {ran:?}");
        assert_eq!(run("--verify_only=1").code, Some(0), "{words}");
        let mut content = fs::read(sandbox.path("n")).expect("the file");
        let at = content.iter().rposition(|byte| *byte != 0).expect("data");
        content[at] ^= 1;
        fs::write(sandbox.path("n"), content).expect("the file");
        assert_eq!(run("--verify_only=1").code, Some(1), "{words}");
    }
    let ran = Sandbox::new().fio("--name=j --rw=randwrite --size=64k --verify=md5 --bs=16k --ba=8k");
    assert!(ran.code == Some(1) && ran.err.contains("may begin within another"), "{ran:?}");
}

/// Goal: what `differences` lists of files that fio would not create.
#[test]
fn files_that_fio_leaves_out_are_refused_or_empty() {
    let run = |words: &str| {
        let sandbox = Sandbox::new();
        let ran = sandbox.fio(&format!("--name=j --filename=n --size=256k {words}"));
        (ran, fs::metadata(sandbox.path("n")).ok().map(|metadata| metadata.len()))
    };
    for rw in ["read", "rw", "write"] {
        let (ran, length) = run(&format!("--rw={rw} --allow_file_create=0 --create_serialize=0"));
        assert!(ran.code == Some(1) && length.is_none(), "{rw}: {ran:?}");
        assert!(
            ran.err.contains("`n` does not exist, and `--allow_file_create=0` forbids its creation"),
            "{rw}: {ran:?}"
        );
    }
    for rw in ["write", "randwrite"] {
        let (ran, length) = run(&format!("--rw={rw} --create_on_open=1 --create_only=1"));
        assert_eq!((ran.code, length), (Some(0), Some(0)), "{rw}: {ran:?}");
    }
}

/// Goal: a file that is created when it is opened grows with its writes, whatever `fallocate` and `overwrite` are.
/// Method: its last block does not fit, so the file is shorter than its size.
#[test]
fn no_space_is_allocated_for_a_file_that_is_created_on_open() {
    for (words, length) in [("", 50_000), ("--create_on_open=1", 49_152)] {
        for prepared in ["fallocate=posix", "fallocate=native", "overwrite=1"] {
            let sandbox = Sandbox::new();
            let line = format!("--name=j --filename=n --rw=write --size=50000 --{prepared} {words}");
            sandbox.fio(&line).assert_code(0);
            assert_eq!(fs::metadata(sandbox.path("n")).expect("the file").len(), length, "{line}");
        }
    }
}

/// Goal: what `differences` lists of `unlink` and of `verify_only` without a file.
#[test]
fn a_file_that_existed_is_kept_and_one_that_is_only_verified_is_laid_out() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("a"), vec![0; 1 << 20]).unwrap();
    for file in ["a", "n"] {
        let ran = sandbox.fio(&format!("--name=j --filename={file} --rw=randwrite --size=64k --unlink=1"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(fs::metadata(sandbox.path("a")).unwrap().len(), 1 << 20, "it existed before");
    assert!(fs::metadata(sandbox.path("n")).is_err(), "the run created it");
    let ran = sandbox.fio("--name=j --filename=v --rw=randwrite --size=64k --verify=null --verify_only=1");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let data = fs::read(sandbox.path("v")).unwrap();
    assert!(data.len() == 64 << 10 && data.iter().any(|byte| *byte != 0), "it is laid out");
}
