//! Metadata engines: the outputs count as fio does, and the record counts files.
//!
//! Limit: fio 3.33 has no engines for directories; these are compared with its counts of files.

use crate::common::*;
use serde_json::Value;
use std::fs;

const ENGINES: [&str; 6] = ["filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete"];

/// Runs the installed fio in a separate directory; `None` without one, and if it lacks the engine.
fn theirs(line: &str) -> Option<Ran> {
    if line.contains("ioengine=dir") {
        return None;
    }
    let sandbox = Sandbox::new();
    let ran = Ran::of(real_fio(&sandbox, line)?.output().expect("fio starts"));
    assert_eq!(ran.code, Some(0), "{line}\n{}", ran.err);
    Some(ran)
}

fn document(ran: &Ran) -> Value {
    let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
    serde_json::from_str(&ran.out[begin..]).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
}

/// Bytes, KiB, I/Os and completion latencies of a job, in one direction.
fn counts(job: &Value, direction: &str) -> [u64; 4] {
    let of = &job[direction];
    [&of["io_bytes"], &of["io_kbytes"], &of["total_ios"], &of["clat_ns"]["N"]].map(|n| n.as_u64().expect("a count"))
}

/// Goal: the counts of bytes, I/Os and latencies are fio's, for every option that limits a job.
/// Method: each line with both; what fio 3.33 counted is written here, too, for machines without it.
#[test]
fn ios_and_bytes_of_metadata_operations_are_counted_as_in_fio() {
    let all: &[(&str, &str, [u64; 4])] = &[
        ("--filesize=4k --nrfiles=50 --bs=1k --rw=write", "write", [204_800, 200, 200, 50]),
        ("--filesize=4k --nrfiles=50", "read", [204_800, 200, 50, 50]),
        ("--filesize=6k --nrfiles=10 --rw=randwrite", "write", [40_960, 40, 10, 10]),
        ("--size=202k --nrfiles=50 --bs=1k --rw=randread", "read", [204_800, 200, 200, 50]),
        ("--size=200k", "read", [204_800, 200, 50, 1]),
        ("--filesize=4k --nrfiles=50 --size=80k --rw=write", "write", [81_920, 80, 20, 20]),
        ("--filesize=4k --nrfiles=50 --io_size=50k --bs=3000 --rw=write", "write", [54_000, 52, 18, 18]),
        ("--filesize=4k --nrfiles=50 --number_ios=70 --rw=write", "write", [204_800, 200, 50, 50]),
        ("--filesize=4k --nrfiles=50 --bs=1k --number_ios=122 --rw=write", "write", [124_928, 122, 122, 50]),
        (
            "--filesize=4k --nrfiles=50 --bs=1k --number_ios=22 --file_service_type=sequential --rw=write",
            "write",
            [22_528, 22, 22, 6],
        ),
        ("--filesize=4k --nrfiles=20 --numjobs=2 --group_reporting --rw=write", "write", [163_840, 160, 40, 40]),
    ];
    let again: &[(&str, &str, [u64; 4])] = &[
        ("--filesize=4k --nrfiles=50 --loops=3 --rw=write", "write", [614_400, 600, 150, 150]),
        ("--filesize=4k --nrfiles=50 --io_size=400k", "read", [409_600, 400, 100, 100]),
        ("--filesize=4k --nrfiles=50 --loops=2 --number_ios=20", "read", [163_840, 160, 40, 40]),
    ];
    for engine in ENGINES {
        // `stat` can be repeated on existing names.
        let more = if engine.ends_with("stat") { again } else { &[] };
        // What is counted is the same code for all of them.
        let few = if engine == "filecreate" { all.len() } else { 4 };
        for (line, direction, known) in all[..few].iter().chain(more) {
            let line = format!("--name=n --ioengine={engine} {line} --output-format=json");
            let sandbox = Sandbox::new();
            let ran = sandbox.fio(&line);
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
            for (who, ran) in [("ours", Some(ran)), ("fio", theirs(&line))] {
                let Some(ran) = ran else { continue };
                let document = document(&ran);
                let job = &document["jobs"][0];
                assert_eq!(counts(job, direction), *known, "{who} {line}");
                let of = &job[direction];
                let (bytes, ios) = (of["bw_bytes"].as_f64().expect("a rate"), of["iops"].as_f64().expect("a rate"));
                assert!((bytes / ios / (known[0] as f64 / known[2] as f64) - 1.0).abs() < 0.01, "{who} {line} {of}");
                if who == "ours" {
                    assert_eq!(document["trueio"]["names"][0]["names"].as_u64(), Some(known[3]), "{line}");
                }
            }
        }
    }
}

/// Goal: the other formats have the same counts.
#[test]
fn terse_and_normal_text_count_metadata_operations_as_fio_does() {
    let line = "--name=n --ioengine=filecreate --filesize=4k --nrfiles=50 --bs=1k --rw=write";
    let both = |more: &str| {
        let line = format!("{line} {more}");
        [Some(Sandbox::new().fio(&line)), theirs(&line)].into_iter().flatten().collect::<Vec<Ran>>()
    };
    for ran in both("--output-format=terse --terse-version=3") {
        assert_eq!(ran.out.lines().next_back().and_then(|line| line.split(';').nth(46)), Some("200"), "{}", ran.out);
    }
    for ran in both("") {
        assert!(ran.out.contains("issued rwts: total=0,200,0,0"), "{}", ran.out);
        assert!(ran.out.contains("io=200KiB (205kB)"), "{}", ran.out);
        let banner = "n: (g=0): rw=write, bs=(R) 1024B-1024B, (W) 1024B-1024B, (T) 1024B-1024B, ioengine=filecreate, iodepth=1\n";
        assert!(ran.out.starts_with(banner), "{}", ran.out);
    }
    let text = Sandbox::new().fio(line).out;
    assert!(text.contains(", 50 names, "), "{text}");
}

/// Goal: jobs as in fio's examples: many jobs that share nothing but the options.
#[test]
fn jobs_like_those_of_fios_examples_count_alike() {
    for (engine, globals) in [
        ("filecreate", "create_on_open=1\nfallocate=none\nopenfiles=1\n"),
        ("filestat", "numjobs=1\nthread\n"),
        ("filedelete", "unlink=0\n"),
        ("dircreate", "create_on_open=1\nfallocate=none\nopenfiles=1\n"),
        ("dirdelete", "unlink=0\n"),
    ] {
        let sandbox = Sandbox::new();
        let text = format!("[global]\nioengine={engine}\nfilesize=4k\nnrfiles=30\n{globals}\n[t0]\n[t1]\n[t2]\n");
        let file = sandbox.write("names.fio", text).display().to_string();
        let line = format!("{file} --output-format=json");
        let ran = sandbox.fio(&line);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{engine}");
        let fios = if engine.starts_with("dir") { None } else { real_fio(&sandbox, &line) };
        let fios = fios.map(|mut command| Ran::of(command.output().expect("fio starts")));
        for (who, ran) in [("ours", Some(ran)), ("fio", fios)] {
            let Some(ran) = ran else { continue };
            let document = document(&ran);
            let jobs = document["jobs"].as_array().expect("jobs");
            assert_eq!(jobs.len(), 3, "{who} {engine}");
            for job in jobs {
                assert_eq!(counts(job, "read"), [122_880, 120, 30, 30], "{who} {engine}");
            }
        }
    }
}

/// Goal: a record of metadata operations has no transferred bytes: it counts names, of a byte each, also in fio's jobs.
#[test]
fn the_record_counts_names() {
    let sandbox = Sandbox::new();
    sandbox.write("names.fio", "[n]\nioengine=filecreate\nfilesize=4k\nnrfiles=30\nbs=1k\nrw=write\n");
    let (ran, record) = sandbox.record(&["run", "--no-history", "names.fio"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(totals(&record.phases[0], trueio_model::OpKind::Write), (30, 30));
    assert_eq!(fs::read_dir(sandbox.root()).expect("a directory").count(), 1, "{:?}", sandbox.listing());
}

/// Goal: the call is the one that the job names, and fio's where it names none.
/// Method: strace shows the calls about the names; the other two are not made. A call may be shown in two pieces, so a
/// few may be missed.
#[test]
fn stat_type_selects_the_stat_call() {
    if lacks("strace") {
        return;
    }
    let sandbox = Sandbox::new();
    // Ours are numbers, fio's end with them.
    let is_name = |line: &str| {
        let name = line.split('"').nth(1).unwrap_or("");
        name.rsplit("s.0.").next().is_some_and(|end| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let kind = |line: &str| match line {
        _ if line.contains("statx(") => "statx",
        _ if line.contains("AT_SYMLINK_NOFOLLOW") => "lstat",
        _ => "stat",
    };
    for (word, asked) in
        [("", "stat"), ("--stat_type=stat", "stat"), ("--stat_type=lstat", "lstat"), ("--stat_type=statx", "statx")]
    {
        let line = format!("--thread --name=s --ioengine=filestat --nrfiles=100 --filesize=4k {word}");
        let mut programs = vec![vec![env!("CARGO_BIN_EXE_trueio"), "fio"]];
        if real_fio(&sandbox, &line).is_some() {
            programs.push(vec!["fio"]);
        }
        for program in programs {
            let mut strace = std::process::Command::new("strace");
            strace.args(["-f", "-qq", "-e", "trace=newfstatat,statx", "-e", "signal=none"]).args(&program);
            strace.args(line.split_whitespace()).current_dir(sandbox.root());
            let ran = Ran::of(strace.output().expect("strace"));
            assert_eq!(ran.code, Some(0), "{program:?} {line}: {ran:?}");
            let calls: Vec<&str> = ran.err.lines().filter(|line| is_name(line)).map(kind).collect();
            let count = calls.iter().filter(|call| **call == asked).count();
            assert!(count > 50, "{program:?} {line}: {count}\n{}", ran.err);
            if program.len() > 1 {
                assert!(calls.iter().all(|call| *call == asked), "{line}\n{}", ran.err);
            }
        }
    }
}
