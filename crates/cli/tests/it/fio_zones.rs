//! `zonemode=zbd` on targets without zones, compared with the installed fio: the same number of I/Os and of zone resets.
//!
//! Limit: zoned devices are not tested here; the lab has one (`crates/lab/tests/it/zones.rs`).

use crate::common::{Loop, Sandbox, lacks, real_fio, tool};
use serde_json::Value;

/// Returns the reads, writes and trims of each job in fio's JSON, and the zone resets if it reports them.
fn ours(sandbox: &Sandbox, line: &str) -> (Vec<[u64; 3]>, Vec<u64>) {
    let line = format!("fio --unlink=1 {line} --output-format=json");
    let ran = sandbox.run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let jobs = document["jobs"].as_array().expect("jobs");
    let count = |job: &Value, name: &str| job[name]["total_ios"].as_u64().unwrap_or(0);
    let ios = jobs.iter().map(|job| ["read", "write", "trim"].map(|name| count(job, name))).collect();
    (ios, jobs.iter().filter_map(|job| job["zone_resets"].as_u64()).collect())
}

/// Returns the same for the installed fio, which prints resets in normal text only, after the writes.
fn theirs(sandbox: &Sandbox, line: &str) -> Option<(Vec<[u64; 3]>, Vec<u64>)> {
    let mut command = real_fio(sandbox, line)?;
    let output = command.output().expect("fio runs");
    assert!(output.status.success(), "fio {line}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = |line: &str, word: &str| Some(line.split_once(word)?.1.trim().to_owned());
    let ios = text.lines().filter_map(|line| after(line, "issued rwts: total=")).map(|numbers| {
        let mut numbers = numbers.split([',', ' ']).map(|number| number.parse().unwrap_or(0));
        [(); 3].map(|()| numbers.next().unwrap_or(0))
    });
    let resets = text.lines().filter_map(|line| after(line, "msec); ")?.split(' ').next()?.parse().ok());
    Some((ios.collect(), resets.collect()))
}

#[test]
fn zones_of_a_file_are_written_read_and_trimmed_as_often_as_fio_does() {
    let sandbox = Sandbox::new();
    for (line, expected, resets) in [
        ("--rw=write --bs=64k", vec![[0, 64, 0]], vec![0]),
        ("--rw=write --bs=64k --zonecapacity=512k --loops=2", vec![[0, 64, 0]], vec![4]),
        ("--rw=write --bs=64k --zoneskip=1m --io_size=8m", vec![[0, 128, 0]], vec![6]),
        ("--rw=read --bs=64k --read_beyond_wp=1", vec![[64, 0, 0]], vec![]),
        ("--rw=write --bs=64k --name=r --stonewall --rw=read --bs=64k", vec![[0, 64, 0], [64, 0, 0]], vec![0]),
        ("--rw=trim --bs=1m", vec![[0, 0, 4]], vec![]),
        ("--rw=write --bs=64k --size=2z --offset=1z", vec![[0, 32, 0]], vec![0]),
        ("--rw=write --bs=64k --size=3500k --offset=100k", vec![[0, 32, 0]], vec![0]),
    ] {
        let of = |file: &str| format!("--filename={file} --size=4m --zonemode=zbd --zonesize=1m --name=w {line}");
        let (ios, found) = ours(&sandbox, &of("ours"));
        assert_eq!(ios, expected, "{line}");
        // fio prints no resets for a job that only reads or trims.
        let writes = ios.iter().zip(&found).filter(|(ios, _)| ios[1] > 0).map(|(_, resets)| *resets);
        assert_eq!(writes.collect::<Vec<_>>(), resets, "{line}");
        std::fs::File::create(sandbox.path("theirs")).and_then(|file| file.set_len(4 << 20)).unwrap();
        if let Some(theirs) = theirs(&sandbox, &of("theirs")) {
            assert_eq!(theirs, (ios, resets), "fio: {line}");
        }
    }
}

#[test]
fn zone_resets_are_in_every_output() {
    let sandbox = Sandbox::new();
    let run = |format: &str| {
        let line = format!(
            "fio --name=w --filename=f --unlink=1 --size=4m --zonemode=zbd --zonesize=1m --rw=randwrite --bs=64k \
             --io_size=16m --verify=crc32c --max_open_zones=2 --output-format={format}"
        );
        let ran = sandbox.run(&line.split_whitespace().collect::<Vec<_>>());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        ran.out
    };
    let document: Value = serde_json::from_str(&run("json")).expect("JSON");
    let resets = document["jobs"][0]["zone_resets"].as_u64().expect("a number");
    // 16 fills of 4 zones.
    assert!((10..=14).contains(&resets), "{resets}");
    // The same seed gives the same offsets.
    let text = run("normal");
    assert!(text.contains(&format!("; {resets} zone resets")), "{resets}: {text}");
}

fn refused(sandbox: &Sandbox, line: &str, words: &str) {
    let ran = sandbox.run(&format!("fio {line}").split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(1), "{line}\n{}", ran.out);
    assert!(ran.err.contains(words), "{line}\n{}", ran.err);
}

#[test]
fn jobs_that_could_deadlock_or_have_different_zones_are_refused() {
    let sandbox = Sandbox::new();
    let zones = "--zonemode=zbd --zonesize=64k --size=1m --time_based=1 --runtime=1";
    let a = format!("--ioengine=null --filename=f {zones} --rw=randwrite --name=a --bs=4k");
    refused(&sandbox, &format!("{a} --zonecapacity=8k --name=b --bs=16k"), "jobs share the zones of `f`");
    refused(&sandbox, &format!("{a} --max_open_zones=1 --flow=1"), "would delay the other jobs of the flow");
    refused(&sandbox, "--ioengine=null --size=1t --zonemode=zbd --zonesize=4k --rw=write --name=a", "are kept");
}

#[test]
fn data_in_zones_is_verified_up_to_the_written_part() {
    let sandbox = Sandbox::new();
    let write =
        "--filename=f --size=256k --bs=4k --verify=crc32c --zonemode=zbd --zonesize=64k --zonecapacity=32k --name=w";
    for rw in ["write", "randwrite", "write --zoneskip=64k"] {
        let plain = format!("--unlink=1 {write} --rw={rw} --name=r --stonewall --rw=read --zonemode=none --zonesize=0");
        refused(&sandbox, &plain, "no job before it writes verifiable blocks");
        let (ios, _) = ours(&sandbox, &format!("{write} --rw={rw} --name=r --stonewall --rw=read"));
        let most = if rw.contains("skip") { 16 } else { 32 };
        assert!((1..=most).contains(&ios[1][0]), "{rw}: {ios:?}");
    }
}

#[test]
fn a_file_has_one_set_of_zones_under_every_name() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("f"), vec![0; 4 << 20]).unwrap();
    std::os::unix::fs::symlink("f", sandbox.path("g")).unwrap();
    let zones = "--zonemode=zbd --zonesize=64k --rw=randread --read_beyond_wp=1 --bs=4k";
    for other in ["g", "./f"] {
        let line = format!("fio {zones} --name=a --filename=f --size=1m --name=b --filename={other} --size=4m");
        let ran = sandbox.run(&format!("{line} --output-format=json").split_whitespace().collect::<Vec<_>>());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
        let document: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(document["jobs"][1]["read"]["total_ios"], 1024, "{line}");
    }
}

#[test]
fn a_random_reader_of_partly_written_zones_reads_until_its_runtime() {
    let sandbox = Sandbox::new();
    let write = "--filename=f --size=2m --zonemode=zbd --zonesize=128k --bs=32k --name=w --rw=write";
    let read = "--name=r --stonewall --rw=randread --offset=100k --size=1900k --time_based=1 --runtime=1";
    let ran = sandbox.run(&format!("fio {write} {read} --output-format=json").split_whitespace().collect::<Vec<_>>());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    let reads = &document["jobs"][1]["read"];
    assert!(reads["runtime"].as_u64().is_some_and(|ms| ms >= 990), "{reads}");
}

/// Goal: the claim of a device is shared by all of its names.
/// Method: two names of one device, written at the same time.
#[test]
fn two_names_of_one_device_are_written_together() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk.img", 16 << 20);
    // A separate device node, because jobs do not write through links.
    let number = tool("stat", &["-c", "%Hr %Lr", &device.device]).expect("stat");
    let (major, minor) = number.split_once(' ').expect("two numbers");
    tool("mknod", &[sandbox.path("other").to_str().expect("UTF-8"), "b", major, minor]).expect("a node");
    let (one, other) = (device.device.as_str(), sandbox.path("other").display().to_string());
    let job = |name: &str, path: &str, offset: u32| {
        format!("--name={name} --filename={path} --offset={offset}m --size=8m --rw=write --bs=64k")
    };
    for zones in ["", "--zonemode=zbd --zonesize=1m"] {
        let line = format!("fio {zones} {} {}", job("a", one, 0), job("b", &other, 8));
        let ran = sandbox.run(&line.split_whitespace().collect::<Vec<_>>());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
    }
}

/// fio ends such a job without an I/O, and with success.
#[test]
fn a_job_that_finds_nothing_to_read_fails() {
    let sandbox = Sandbox::new();
    let line = "fio --name=r --filename=f --unlink=1 --size=4m --zonemode=zbd --zonesize=1m --rw=read";
    let ran = sandbox.run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("no zone of `f` holds data to read"), "{}", ran.err);
}
