//! Regions that end where a device ends, and files that stay within what was given, as in fio.

use crate::common::*;
use serde_json::Value;
use std::fs;

/// Returns the bytes read and written by each job, in the order of the document.
#[track_caller]
fn bytes(sandbox: &Sandbox, line: &str) -> Vec<(u64, u64)> {
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ran = sandbox.run(&[&words[..], &["--output-format=json"]].concat());
    assert_eq!(ran.code, Some(0), "{line}: {ran:?}");
    let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let of = |job: &Value, op: &str| job[op]["io_bytes"].as_u64().expect("a count");
    document["jobs"].as_array().expect("jobs").iter().map(|job| (of(job, "read"), of(job, "write"))).collect()
}

/// Goal: a line for a larger device uses what the device has, in fio's order of clones.
/// Method: the values are those of fio's HEAD on a loop device of 64 MiB.
#[test]
fn a_region_ends_where_the_device_ends() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 64 << 20);
    const MIB: u64 = 1 << 20;
    let reads = |mib: &[u64]| mib.iter().map(|mib| (mib * MIB, 0)).collect::<Vec<_>>();
    let of = |words: &str| bytes(&sandbox, &format!("--name=a --filename={} --bs=1M {words}", disk.device));
    assert_eq!(of("--filesize=64M --rw=read --numjobs=4 --offset_increment=10M"), reads(&[64, 34, 44, 54]));
    assert_eq!(of("--rw=read --size=4g"), reads(&[64]));
    assert_eq!(of("--rw=read --size=64M --offset=10M"), reads(&[54]));
    assert_eq!(of("--rw=read --size=50% --offset=10% --numjobs=4 --offset_increment=10M"), reads(&[32, 27, 32, 32]));
    assert_eq!(
        of("--rw=write --size=16M --numjobs=4 --offset_increment=30%"),
        [16, 6, 16, 16].map(|mib| (0, mib * MIB))
    );
}

/// Goal: strided zones transfer `size` also on a shorter device, in zones that begin again, as fio's HEAD does.
#[test]
fn strided_zones_begin_again_where_the_device_ends() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 4 << 20);
    let of = |words: &str| {
        let zones = "--zonemode=strided --zonesize=64k --zoneskip=64k";
        bytes(&sandbox, &format!("--name=a --filename={} {zones} {words}", disk.device))
    };
    for rw in ["read", "randread"] {
        assert_eq!(of(&format!("--rw={rw} --size=8M")), [(8 << 20, 0)], "{rw}");
    }
    assert_eq!(of("--rw=read --size=8M --io_size=1M"), [(1 << 20, 0)]);
    assert_eq!(of("--rw=read"), [(4 << 20, 0)]);
}

/// Goal: `falloc` extends an existing empty file, also to read it, as fio does.
#[test]
fn falloc_reads_an_empty_file_that_it_extends() {
    let sandbox = Sandbox::new();
    sandbox.write("f", "");
    assert_eq!(bytes(&sandbox, "--name=a --filename=f --ioengine=falloc --rw=read --size=64k"), [(64 << 10, 0)]);
    assert_eq!(fs::metadata(sandbox.path("f")).expect("the file").len(), 64 << 10);
}

/// Goal: a clone that begins after `filesize` on a longer file fails alone, and the others run.
/// Method: the values are those of fio's HEAD: exit code 2 without `size`, and 1 with it.
#[test]
fn a_clone_beyond_filesize_leaves_the_others_alone() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 4 << 20);
    for (size, code) in [("", 2), ("--size=2M", 1)] {
        let line =
            format!("fio --name=a --filename=f --rw=read --numjobs=4 --offset_increment=1M --filesize=2M {size}");
        let words: Vec<&str> = line.split_whitespace().chain(["--output-format=json"]).collect();
        let ran = sandbox.run(&words);
        assert_eq!(ran.code, Some(code), "{line}: {ran:?}");
        let document: Value = serde_json::from_str(&ran.out).expect("a document");
        let read: Vec<_> =
            document["jobs"].as_array().expect("jobs").iter().map(|job| &job["read"]["io_bytes"]).collect();
        assert_eq!(read, [2 << 20, 1 << 20], "{line}");
    }
}

/// Goal: jobs that all begin after the end of their file count in the exit code, and each is reported.
/// Method: the codes are those of fio's HEAD.
#[test]
fn all_clones_beyond_the_end_of_a_file_are_counted() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 64 << 10);
    for (line, code) in [
        ("--filename=f --rw=read --offset=64k --numjobs=3", 3),
        ("--filename=f --rw=read --offset=128k --numjobs=2", 2),
        ("--filename=f --rw=read --offset=64k", 1),
        ("--filename=n --rw=write --size=100% --numjobs=2", 2),
    ] {
        let words: Vec<&str> = ["fio", "--name=a"].into_iter().chain(line.split_whitespace()).collect();
        let ran = sandbox.run(&words);
        assert_eq!(ran.code, Some(code), "{line}: {ran:?}");
        assert_eq!(ran.err.matches("was not started").count(), code as usize, "{line}: {ran:?}");
    }
}

#[test]
fn no_clone_writes_a_file_beyond_its_filesize() {
    let sandbox = Sandbox::new();
    let line = "--name=a --filename=n --filesize=1m --rw=randwrite --numjobs=4 --offset_increment=256k";
    let written = bytes(&sandbox, line);
    assert_eq!(written, [1024, 256, 512, 768].map(|kib| (0, kib << 10)));
    assert_eq!(fs::metadata(sandbox.path("n")).expect("the file").len(), 1 << 20);
    sandbox.write("f", "x".repeat(64 << 10));
    assert_eq!(bytes(&sandbox, "--name=a --filename=f --rw=read --size=100% --offset=32k"), [(32 << 10, 0)]);
}

#[test]
fn only_a_run_needs_the_length_of_zones() {
    let sandbox = Sandbox::new();
    for zones in ["--size=8z", "--offset=2z --size=1g", "--io_size=8z", "--offset_increment=1z --numjobs=2"] {
        let line =
            format!("--parse-only --name=a --zonemode=zbd --rw=write --direct=1 --bs=64k --filename=missing {zones}");
        let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
        let ran = sandbox.run(&words);
        assert_eq!((ran.code, &ran.err[..]), (Some(0), ""), "{zones}");
        let ran = sandbox.run(&[&words[..1], &words[2..]].concat());
        assert_eq!(ran.code, Some(1), "{zones}");
    }
    // fio, too, looks for the mode only when it runs.
    let old = ["fio", "--parse-only", "--name=a", "--rw=read", "--size=1m", "--zonesize=256k", "--zoneskip=2g"];
    assert_eq!(sandbox.run(&old).code, Some(0));
    assert_eq!(sandbox.run(&[&old[..1], &old[2..]].concat()).code, Some(1));
}
