//! Shares of I/Os by part of a region and by file, for skewed distributions, compared with the installed fio.
//!
//! Both tools log the issued I/Os (`write_iolog` on `null`), and the shares are counted. Limit: differences of fio 3.42 from
//! 3.33 are not tested.

use crate::common::*;
use std::collections::BTreeMap;
use std::fs;

const IOS: u64 = 20_000;

/// Counts the I/Os of a log by file and by part of `part` bytes.
fn counted(log: &str, part: u64) -> BTreeMap<(usize, u64), u64> {
    let mut counted = BTreeMap::new();
    let mut names = Vec::new();
    for line in log.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, name, "add"] => names.push(name.to_owned()),
            [_, name, "read" | "write", offset, _] => {
                let file = names.iter().position(|known| known == name).expect("it was added");
                let offset: u64 = offset.parse().expect("an offset");
                *counted.entry((file, offset / part)).or_default() += 1;
            }
            _ => {}
        }
    }
    counted
}

/// Returns our counts and fio's; `None` without an installed fio.
#[track_caller]
fn both(line: &str, part: u64) -> Option<[BTreeMap<(usize, u64), u64>; 2]> {
    let sandbox = Sandbox::new();
    let with_log =
        |name: &str| format!("--name=s --ioengine=null --thread --rw=randread --bs=4k {line} --write_iolog={name}");
    let ours = with_log("ours.log");
    let words: Vec<&str> = std::iter::once("fio").chain(ours.split_whitespace()).collect();
    let ran = sandbox.run(&words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let read = |name: &str| counted(&fs::read_to_string(sandbox.path(name)).expect("a log"), part);
    let ours = read("ours.log");
    let mut command = real_fio(&sandbox, &with_log("theirs.log"))?;
    let ran = Ran::of(command.output().expect("fio starts"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    Some([ours, read("theirs.log")])
}

/// Compares two shares of samples of `IOS`: they may differ by five standard deviations of their difference, and by `also`.
#[track_caller]
fn near(ours: u64, theirs: u64, also: f64, what: &str) {
    let [ours, theirs] = [ours, theirs].map(|hits| hits as f64 / IOS as f64);
    let middle = (ours + theirs) / 2.0;
    let slack = 5.0 * (2.0 * middle * (1.0 - middle) / IOS as f64).sqrt() + also + 2.0 / IOS as f64;
    assert!((ours - theirs).abs() <= slack, "{what}: {ours} here, {theirs} in fio");
}

/// Goal: zones in bytes have fio's positions and shares, in each file from the beginning of its region.
/// Method: parts of 512 KiB are counted; parts outside of zones have none.
#[test]
fn zones_of_bytes_have_fios_offsets_and_shares() {
    for zones in [
        "--size=16m --random_distribution=zoned_abs:50/2m:30/4m:20/8m",
        "--size=16m --offset=8m --random_distribution=zoned_abs:50/2m:50/2m",
        "--size=16m --nrfiles=2 --random_distribution=zoned_abs:90/512k:10/2m",
        "--size=16m --random_distribution=zoned_abs:50/5k:50/5k",
        "--size=16m --random_distribution=zoned_abs:70/1m:30/15m",
    ] {
        // fio ends when it has transferred the size.
        let Some([ours, theirs]) = both(&format!("{zones} --io_size=80000k"), 512 << 10) else { return };
        assert_eq!(ours.values().sum::<u64>(), IOS, "{zones}");
        assert_eq!(theirs.values().sum::<u64>(), IOS, "{zones}");
        assert!(ours.keys().eq(theirs.keys()), "{zones}: {ours:?} {theirs:?}");
        for (place, hits) in &ours {
            near(*hits, theirs[place], 0.0, &format!("{zones} {place:?}"));
        }
    }
    // The block within each zone.
    let tiny = "--size=16m --random_distribution=zoned_abs:50/5k:50/5k --io_size=80000k";
    if let Some([ours, theirs]) = both(tiny, 4096) {
        assert!(ours.keys().eq(theirs.keys()), "{ours:?} {theirs:?}");
    }
}

/// Goal: files have the same shares as in fio.
/// Method: with a centre, which selects the most popular file; without one, that file and its share depend on fio's seed.
/// fio's zipf is an approximation, and its normal is inexact in the tails, so two percentage points are tolerated.
#[test]
fn files_get_the_shares_of_fios_distributions() {
    for files in [4, 10, 100] {
        for drawn in [
            "zipf:1.2:0",
            "zipf:0.8:0.3",
            "zipf:1.1:0.5",
            "zipf:0:0",
            "pareto:0.2:0",
            "pareto:0.4:0.3",
            "normal:20",
            "normal:60",
            "normal",
            "gauss:5",
        ] {
            let line =
                format!("--nrfiles={files} --size=400m --norandommap --number_ios={IOS} --file_service_type={drawn}");
            let Some([ours, theirs]) = both(&line, u64::MAX) else { return };
            assert_eq!(ours.values().sum::<u64>(), IOS, "{line}");
            let of = |counted: &BTreeMap<(usize, u64), u64>, file| counted.get(&(file, 0)).copied().unwrap_or(0);
            for file in 0..files {
                near(of(&ours, file), of(&theirs, file), 0.02, &format!("{files} {drawn}, file {file}"));
            }
        }
    }
}

/// Goal: without a centre the share of the most popular file does not depend on the seed; the bytes of a job are unchanged.
/// Method: a job that writes each block once; a finished file is written again, as in fio.
#[test]
fn a_drawn_file_starts_its_next_pass_and_the_job_ends_by_bytes() {
    let line = "--nrfiles=4 --size=80000k --file_service_type=zipf:1.2";
    let Some([ours, theirs]) = both(line, u64::MAX) else { return };
    for counted in [&ours, &theirs] {
        assert_eq!(counted.values().sum::<u64>(), IOS, "{counted:?}");
        let most = counted.values().max().expect("files");
        assert!(*most > 3 * IOS / 4 / 2 && counted.len() == 4, "{counted:?}");
    }
    // H(1024) / H(4096) of 1.2 is 0.9348.
    let most = ours.values().max().expect("files");
    near(*most, (0.9348 * IOS as f64) as u64, 0.0, "the most popular file");
}
