//! The length of a pass over the files of a job, compared with the installed fio: bytes, no block twice, and a job that
//! runs again on the files that it left.
//!
//! Limit: differences of fio 3.42 from 3.33 are not tested.

use crate::common::*;
use serde_json::Value;
use std::collections::HashSet;
use std::fs;

/// Bytes that each job of a command line moved, by its name.
#[track_caller]
fn bytes(ran: &Ran) -> Vec<(String, u64)> {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
    let document: Value = serde_json::from_str(&ran.out[begin..]).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    let of = |job: &Value, op: &str| job[op]["io_bytes"].as_u64().expect("bytes");
    let job = |job: &Value| (job["jobname"].as_str().expect("a name").to_owned(), of(job, "read") + of(job, "write"));
    document["jobs"].as_array().expect("jobs").iter().map(job).collect()
}

/// Goal: a job transfers as many bytes as in fio, also if its files end in partial blocks.
/// Method: a matrix of sizes and orders on `null`, all jobs of one call, side by side.
#[test]
fn a_pass_over_files_transfers_as_much_as_fios() {
    let sandbox = Sandbox::new();
    let sizes = [
        "--size=10m --nrfiles=100",
        "--size=300k --nrfiles=7",
        "--size=1000000 --nrfiles=3",
        "--size=1000000 --nrfiles=3 --file_service_type=sequential",
        "--size=1000000 --nrfiles=3 --file_service_type=random",
        "--size=1000000 --nrfiles=3 --openfiles=2",
        "--size=1m --bs=48k",
        "--size=1m --bs=48k --nrfiles=5",
        "--size=1000000 --nrfiles=3 --number_ios=100",
        "--size=1000000 --nrfiles=3 --io_size=2m",
        "--size=1000000 --nrfiles=3 --io_size=500k",
        "--filesize=64k --nrfiles=4 --size=1m",
        "--filesize=256k --nrfiles=4 --size=4m",
        "--filesize=64k --nrfiles=4 --size=102k",
        "--filesize=1m --size=2m",
        "--filesize=1m --size=2m --number_ios=400",
        "--filesize=1m --size=256k --io_size=100%",
        "--filesize=1m --size=256k --io_size=10%",
        "--filesize=1m --size=256k --io_size=25% --loops=2",
    ];
    let orders = ["read", "write", "randread", "randwrite", "rw", "randrw", "randread --norandommap"];
    let mut jobs = Vec::new();
    for size in sizes {
        jobs.extend(orders.iter().map(|order| format!("{size} --rw={order}")));
    }
    let more = [
        "--size=1000000 --nrfiles=3 --loops=3 --rw=write",
        "--size=1000000 --nrfiles=3 --loops=3 --rw=randread",
        "--filesize=1m --size=2m --loops=2 --rw=write",
        "--size=1000000 --nrfiles=3 --bsrange=4k-64k --rw=write",
        "--size=1000000 --nrfiles=3 --bsrange=4k-64k --rw=randwrite",
        // (Whole blocks: fio ends where it draws a block that ends beyond the file, which depends on the job's number.)
        "--size=1000k --rw=randread --random_distribution=zipf:1.2",
        "--size=1m --rw=read:8k",
        "--size=1020k --rw=read:8k",
        "--size=1m --rw=read:4k",
        "--size=1m --rw=read:8k --loops=2",
        "--size=1m --rw=read:8k --io_size=1m",
        "--size=1m --rw=write:8k --nrfiles=2",
        "--size=3m --rw=write:8k --nrfiles=3",
        // Loops are rounded up together, and count I/Os together.
        "--size=1000000 --rw=randread --norandommap --loops=3",
        "--size=1000000 --rw=randread --norandommap --loops=7 --bs=64k",
        "--size=1234567 --rw=randread --norandommap --bs=3000 --loops=2 --nrfiles=3",
        "--size=1000000 --rw=randrw --loops=3",
        "--size=1000000 --rw=rw --loops=3 --nrfiles=3",
        "--size=1m --rw=read --number_ios=100 --loops=3",
        "--size=1m --rw=read --number_ios=1000 --loops=3",
        "--size=1m --rw=read --number_ios=1000 --io_size=8m --loops=3",
        "--size=1m --rw=randwrite --norandommap --number_ios=77 --loops=2",
        // Limits for a loop, and more or less than a pass.
        "--size=1234567 --rw=read --bs=48k --io_size=500k --loops=3",
        "--size=1234567 --rw=read --bs=48k --io_size=4m",
        "--size=1234567 --rw=read --bs=48k --io_size=4m --loops=2",
        "--size=1234567 --rw=read --bs=48k --io_size=4m --loops=3",
        "--size=1234567 --rw=read --bs=48k --io_size=4m --loops=5",
        "--size=1234567 --rw=randread --bs=64k --nrfiles=3 --io_size=4m --loops=3",
        "--size=1m --rw=randread --norandommap --io_size=1536k --loops=3",
        "--size=1m --rw=read --io_size=1026k",
        "--size=1m --rw=read --io_size=1028k",
        "--size=1m --rw=read --bs=48k --io_size=1040k",
        // Skips, up to the block that would end beyond the file.
        "--size=1000000 --rw=read:8k --bs=8k",
        "--size=1000000 --rw=read:8k --bs=8k --loops=3",
        "--size=1234567 --rw=read:8k --bs=48k",
        "--size=1m --rw=read:8k --bs=8k --nrfiles=3",
        "--size=777k --rw=read:4k --nrfiles=3",
        "--size=1234567 --rw=write:4k --bs=64k",
        "--size=1234567 --rw=write:4k --bs=64k --io_size=1500000",
        "--size=1000000 --rw=read:-8k --bs=8k",
        "--size=777k --rw=read:-8k --bs=48k --nrfiles=3",
        // Trims before writes, whose trims are not counted here.
        "--size=1000000 --rw=trimwrite --bs=48k --loops=3",
        "--size=1000000 --rw=randtrimwrite --bs=48k --loops=3",
        "--size=1000000 --rw=randtrimwrite --bs=48k --norandommap --loops=3",
        // Sizes and places.
        "--size=2000k --rw=randread --bsrange=4k-64k --blockalign=4k --loops=3",
        "--size=1234567 --rw=randwrite --bssplit=4k/60:8k/20:16k/20 --loops=3",
        "--size=1000000 --rw=read --bs=48k --zonemode=strided --zonesize=96k --zonerange=200k",
    ];
    jobs.extend(more.map(str::to_owned));
    let mut line = "--output-format=json --ioengine=null --thread".to_owned();
    for (at, job) in jobs.iter().enumerate() {
        line += &format!(" --name=j{at} {job}");
    }
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ours = bytes(&sandbox.run(&words));
    assert_eq!(ours.len(), jobs.len());
    assert_eq!(ours[0].1, 2500 * 4096);
    let Some(mut command) = real_fio(&sandbox, &line) else { return };
    let theirs = bytes(&Ran::of(command.output().expect("fio starts")));
    let unlike: Vec<_> = (jobs.iter().zip(&ours).zip(&theirs)).filter(|((_, ours), theirs)| ours != theirs).collect();
    assert!(unlike.is_empty(), "{unlike:#?}");
}

/// Goal: what each loop wrote is read back when it ends, as in fio; `file_append` ends with the first loop.
/// Method: the number of reads and writes, next to those of the installed fio.
#[test]
fn each_loop_is_read_back_as_in_fio() {
    let sandbox = Sandbox::new();
    let counts = |ran: &Ran| {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
        let document: Value = serde_json::from_str(&ran.out[begin..]).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
        ["read", "write"].map(|op| document["jobs"][0][op]["total_ios"].as_u64().expect("a count"))
    };
    for (job, expected) in [
        ("--rw=randwrite --size=1m --verify=md5", [768, 768]),
        ("--rw=write --size=50000 --verify=crc32c", [36, 36]),
        ("--rw=write --size=1m --io_size=64k --verify=meta", [48, 48]),
        ("--rw=randwrite --size=1m --nrfiles=3 --verify=xxhash", [765, 765]),
        ("--rw=randwrite --size=1m --verify=md5 --verify_backlog=16", [768, 768]),
        ("--rw=write --size=1m --verify_pattern=0xff --ioengine=libaio --iodepth=4", [768, 768]),
        ("--rw=write --size=1m --verify=md5 --do_verify=0", [0, 768]),
        ("--rw=write --size=1m --file_append=1", [0, 256]),
    ] {
        let line =
            format!("--name=l --loops=3 --filename_format=l.$filenum --verify_state_save=0 --output-format=json {job}");
        let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
        let remove = || (0..3).for_each(|file| drop(fs::remove_file(sandbox.path(&format!("l.{file}")))));
        assert_eq!(counts(&sandbox.run(&words)), expected, "{job}");
        remove();
        if let Some(mut command) = real_fio(&sandbox, &line) {
            assert_eq!(counts(&Ran::of(command.output().expect("fio starts"))), expected, "fio {job}");
            remove();
        }
    }
}

/// Goal: no block of a file is written twice in one pass, and what was written is compared whole.
#[test]
fn no_block_repeats_in_a_pass_over_several_files() {
    let sandbox = Sandbox::new();
    for (order, count) in [("write", 2500), ("randwrite --verify=crc32c", 2500), ("randread", 2500)] {
        let line = format!("--name=n --size=10m --nrfiles=100 --rw={order} --write_iolog=seen");
        let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
        let ran = sandbox.run(&words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let log = fs::read_to_string(sandbox.path("seen")).expect("the log");
        let is_io = |line: &&str| matches!(line.split(' ').nth(2), Some("read" | "write"));
        let seen: Vec<&str> = log.lines().filter(is_io).map(|line| &line[line.find(' ').expect("a time")..]).collect();
        assert_eq!((seen.len(), seen.iter().collect::<HashSet<_>>().len()), (count, count), "{order}");
    }
}

/// Goal: engines that change lengths run again on the files that they left, and keep data beyond their region.
#[test]
fn an_ftruncate_job_runs_twice_as_in_fio() {
    let sandbox = Sandbox::new();
    let run = |line: &str, path: &str| {
        let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
        let ran = sandbox.run(&words);
        (ran.code, fs::metadata(sandbox.path(path)).map_or(0, |file| file.len()), ran.err)
    };
    for (engine, rest) in [("ftruncate", 4096), ("falloc", 0)] {
        for size in [1_u64 << 20, 1 << 20, 2 << 20] {
            let line = |file: &str| format!("--name=a --filename={file} --ioengine={engine} --size={size} --rw=write");
            let (code, length, err) = run(&line(engine), engine);
            assert_eq!((code, length), (Some(0), size - rest), "{engine} {err}");
            if let Some(mut command) = real_fio(&sandbox, &line("theirs")) {
                assert!(command.output().expect("fio starts").status.success());
                assert_eq!(fs::metadata(sandbox.path("theirs")).expect("its file").len(), length, "{engine}");
            }
        }
        let _ = fs::remove_file(sandbox.path("theirs"));
    }
    sandbox.data_file("long", 1 << 20);
    let (code, length, err) = run("--name=a --filename=long --ioengine=ftruncate --size=64k --rw=write", "long");
    assert_eq!((code, length), (Some(1), 1 << 20), "{err}");
    assert!(err.contains("after the region"), "{err}");
}

/// Goal: blocks of several sizes are as many as fio's, in the mean: near the end of a file more and smaller ones.
/// Method: many small files, where that is a tenth of all. The two draw other numbers: five deviations
/// of their difference are let through, where the sizes of I/Os have a deviation of 0.55 of their mean.
#[test]
fn blocks_of_several_sizes_are_as_many_as_fios() {
    let sandbox = Sandbox::new();
    let orders = ["write", "randread", "randread --norandommap", "randwrite --blockalign=4k", "randtrimwrite"];
    let mut line = "--output-format=json --ioengine=null --thread --bsrange=4k-64k --size=64m --nrfiles=256".to_owned();
    for (at, order) in orders.iter().enumerate() {
        line += &format!(" --name=j{at} --rw={order}");
    }
    let count = |ran: Ran| -> Vec<f64> {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
        let document: Value = serde_json::from_str(&ran.out[begin..]).expect("JSON");
        let of = |job: &Value, op: &str| job[op]["total_ios"].as_f64().expect("a count");
        let jobs = document["jobs"].as_array().expect("jobs");
        jobs.iter().map(|job| of(job, "read") + of(job, "write")).collect()
    };
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ours = count(sandbox.run(&words));
    let Some(mut command) = real_fio(&sandbox, &line) else { return };
    let theirs = count(Ran::of(command.output().expect("fio starts")));
    for ((order, ours), theirs) in orders.iter().zip(ours).zip(theirs) {
        let slack = 5.0 * 2.0_f64.sqrt() * 0.55 / (theirs.sqrt());
        assert!((ours / theirs - 1.0).abs() <= slack, "{order}: {ours} here, {theirs} in fio, slack {slack}");
    }
}

/// Goal: on files that are unlike, too, a job transfers as much as fio's, to the byte.
/// Method: files of three lengths, of which none is a multiple of the others, read through psync by both.
#[test]
fn a_pass_over_unlike_files_transfers_as_much_as_fios() {
    let sandbox = Sandbox::new();
    for (name, length) in [("x", 1_000_000), ("y", 300_000), ("z", 65_536)] {
        fs::write(sandbox.path(name), vec![b'a'; length]).expect("a file");
    }
    let jobs = [
        "--rw=read:8k --bs=8k",
        "--rw=read:8k --bs=8k --loops=2",
        "--rw=read:8k --bs=4k",
        "--rw=read:24k --bs=8k",
        "--rw=read:8k --bs=8k --file_service_type=sequential",
        "--rw=read:-8k --bs=8k",
        "--rw=read --bs=48k --loops=3",
        "--rw=read --bs=48k --io_size=3m --loops=3",
        "--rw=read --bs=4k --number_ios=50 --loops=3",
        "--rw=read --bsrange=4k-64k --loops=3",
        "--rw=randread --bs=8k --loops=3",
        "--rw=randread --bs=8k --norandommap --loops=3",
        "--rw=randread --bsrange=4k-64k",
    ];
    let mut line = "--output-format=json --ioengine=psync --thread --filename=x:y:z".to_owned();
    for (at, job) in jobs.iter().enumerate() {
        line += &format!(" --name=j{at} {job}");
    }
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ours = bytes(&sandbox.run(&words));
    assert_eq!((ours.len(), ours[0].1), (jobs.len(), 167 * 8192));
    let Some(mut command) = real_fio(&sandbox, &line) else { return };
    let theirs = bytes(&Ran::of(command.output().expect("fio starts")));
    let unlike: Vec<_> = (jobs.iter().zip(&ours).zip(&theirs)).filter(|((_, ours), theirs)| ours != theirs).collect();
    assert!(unlike.is_empty(), "{unlike:#?}");
}

/// Goal: a job that reads a file shorter than its `size` or `filesize` transfers as much as fio's, which makes the file longer, and ours does not.
/// Method: a file of 50,000 bytes for each job, read by both; the bytes of some jobs are those of fio's HEAD.
#[test]
fn a_pass_over_files_that_are_too_short_transfers_as_much_as_fios() {
    let sandbox = Sandbox::new();
    let jobs = [
        ("--size=50000 --filesize=100k", 53_248),
        ("--filesize=100k", 102_400),
        ("--size=101k", 102_400),
        ("--size=60000 --filesize=100k", 61_440),
        ("--size=99000 --filesize=100k", 102_400),
        ("--size=100k --filesize=100k --loops=2", 204_800),
        ("--size=200k --filesize=100k", 102_400),
        ("--size=100k --io_size=120k", 122_880),
    ];
    let mut line = "--output-format=json --ioengine=psync --thread --bs=4k".to_owned();
    let mut expected = Vec::new();
    for rw in ["read", "randread"] {
        for (job, bytes) in jobs {
            let name = format!("{rw}{}", expected.len());
            fs::write(sandbox.path(&name), vec![b'a'; 50_000]).expect("a file");
            line += &format!(" --name={name} --filename={name} --rw={rw} {job}");
            expected.push((name, bytes));
        }
    }
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    assert_eq!(bytes(&sandbox.run(&words)), expected);
    let Some(mut command) = real_fio(&sandbox, &line) else { return };
    assert_eq!(bytes(&Ran::of(command.output().expect("fio starts"))), expected);
}
