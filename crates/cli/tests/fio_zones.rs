//! `zonemode=zbd` on targets without zones, each beside the installed fio: as many I/Os, and as many zones reset.
//!
//! Cannot see: devices with zones; the lab has one (`crates/lab/tests/zones.rs`).

mod common;

use common::{Sandbox, real_fio};
use serde_json::Value;

/// I/Os of reads, writes and trims of each job in fio's JSON, and zones reset where it says so.
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

/// The same of the real fio, which says its resets in words only, behind the writes.
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
        // Of a job that only reads or trims fio says nothing in words.
        let writes = ios.iter().zip(&found).filter(|(ios, _)| ios[1] > 0).map(|(_, resets)| *resets);
        assert_eq!(writes.collect::<Vec<_>>(), resets, "{line}");
        std::fs::File::create(sandbox.path("theirs")).and_then(|file| file.set_len(4 << 20)).unwrap();
        if let Some(theirs) = theirs(&sandbox, &of("theirs")) {
            assert_eq!(theirs, (ios, resets), "fio: {line}");
        }
    }
}

#[test]
fn resets_stand_in_every_output() {
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
    // The same seed gives the same places.
    let text = run("normal");
    assert!(text.contains(&format!("; {resets} zone resets")), "{resets}: {text}");
}

/// What fio passes over in silence: it ends without an I/O, and with success.
#[test]
fn a_job_that_finds_nothing_to_read_fails() {
    let sandbox = Sandbox::new();
    let line = "fio --name=r --filename=f --unlink=1 --size=4m --zonemode=zbd --zonesize=1m --rw=read";
    let ran = sandbox.run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("no zone of `f` holds data to read"), "{}", ran.err);
}
