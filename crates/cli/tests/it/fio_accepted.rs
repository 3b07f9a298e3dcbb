//! What fio runs, this program runs, too: the same exit code, the same errors of jobs, and as many I/Os and bytes, side by
//! side with the installed fio.
//!
//! Limits: differences of fio 3.42 from 3.33 are not tested. In mixed jobs only the sum of reads and writes is compared,
//! because each is drawn.

use crate::common::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// How a run ended, and of each job its name, its error and what it transferred.
type Ending = (Option<i32>, Vec<(String, u64, [u64; 4])>);

/// Returns the ending of a run; fio may print lines before its document, or none at all.
fn ending(ran: &Ran) -> Ending {
    let document: Option<Value> = ran.out.find('{').and_then(|begin| serde_json::from_str(&ran.out[begin..]).ok());
    let jobs = document.as_ref().and_then(|document| document["jobs"].as_array()).cloned().unwrap_or_default();
    let of = |job: &Value| {
        let sum = |ops: &[&str], key| ops.iter().map(|op| job[*op][key].as_u64().unwrap_or(0)).sum::<u64>();
        let data = ["read", "write"];
        let counts = [(&data[..], "total_ios"), (&data, "io_bytes"), (&["trim"], "total_ios"), (&["trim"], "io_bytes")];
        let name = job["jobname"].as_str().unwrap_or_default().to_owned();
        (name, job["error"].as_u64().unwrap_or(u64::MAX), counts.map(|(ops, key)| sum(ops, key)))
    };
    (ran.code, jobs.iter().map(of).collect())
}

/// A folder with two files of 1 MiB, `a` and `b`, and a job file.
fn sandbox(job: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        sandbox.data_file(name, 1 << 20);
    }
    sandbox.write("j.fio", job);
    sandbox
}

/// Runs a line, each program in a folder of its own, and returns ours after it was compared with the installed fio's.
#[track_caller]
fn compared(job: &str, line: &str) -> (Sandbox, Ran) {
    let ours = sandbox(job);
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ran = ours.run(&words);
    let beside = sandbox(job);
    if let Some(mut fio) = real_fio(&beside, line) {
        let theirs = Ran::of(fio.output().expect("fio starts"));
        let (ours, mut theirs) = (ending(&ran), ending(&theirs));
        if ours.1.is_empty() && ours.0 != Some(0) {
            // Refused before the jobs, where fio fails in them.
            theirs.1.clear();
        }
        assert_eq!(ours, theirs, "{line}: {ran:?}");
    }
    (ours, ran)
}

/// Runs a line that fails in both before anything is printed.
#[track_caller]
fn ends_alike(line: &str) -> Ran {
    compared("", &format!("--output-format=json {line}")).1
}

#[test]
fn spellings_that_fio_accepts_are_accepted() {
    for words in [
        "--buffered=0 --direct=0",
        "--direct=0 --buffered=0",
        "--ioengine=mmap --direct=1",
        "--rw=rw --rwmixread=70 --rwmixwrite=50",
        "--allow_mounted_write=1 --rw=write",
        "--eta=bogus",
        "--debug=foo",
        "--random_generator=lfsr --norandommap --rw=randread",
        "--random_distribution=zipf:0 --rw=randread",
        "--random_distribution=zipf:200 --rw=randwrite",
        "--file_service_type=zipf:0 --filename=b --rw=randread",
        "--flow=8 --flow_watermark=100 --name=k --filename=b --size=256k --flow=-1",
        "--cpumask=1 --cpus_allowed=0",
        "--cpus_allowed=0 --cpumask=1",
        "--rw=write --verify=meta --verify_backlog_batch=4",
        "--rw=write --verify_pattern=0xff --dedupe_percentage=30",
    ] {
        let ran = ends_alike(&format!("--name=j --filename=a --size=256k {words}"));
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
    }
    assert_eq!(ends_alike("--name=j --rw=write --filesize=128k --offset=4k").code, Some(0));
    assert_eq!(ends_alike("--name=j --rw=write --size=64k --filesize=128k --offset=4k").code, Some(0));
    assert_eq!(ends_alike("--name=j --size=64k --rw=write --file_append=1 --io_size=256k").code, Some(0));
    assert_eq!(ends_alike("--name=j --size=256k --rw=write --rate_min=1k --rate_iops_min=1").code, Some(1));
    assert_eq!(ends_alike("--name=j --size=256k --rw=write --rate=20m --rate_min=21m").code, Some(1));
    assert_eq!(ends_alike("--name=j --size=256k --rw=write --rate=20m --rate_min=1k").code, Some(0));
}

/// Goal: `verify=null` compares nothing, so a job that reads needs no verified data.
#[test]
fn a_job_that_compares_nothing_may_read_anything() {
    for words in ["--filename=n --rw=read", "--filename=n --rw=randread", "--filename=a --rw=read"] {
        let ran = ends_alike(&format!("--name=j --size=64k --verify=null {words}"));
        assert_eq!(ending(&ran), (Some(0), vec![("j".to_owned(), 0, [16, 64 << 10, 0, 0])]), "{words}: {ran:?}");
    }
    // A job that compares still needs what another one wrote.
    let pair = "--name=w --size=64k --filename=n --rw=write --verify=null --name=r --stonewall --size=64k --filename=n --rw=read";
    assert_eq!(ends_alike(&format!("{pair} --verify=null")).code, Some(0));
    assert_eq!(ends_alike(&format!("{pair} --verify=md5")).code, Some(1));
}

/// Goal: blocks begin within the `size` of a file's region. In a longer file the last one is read whole, in a file that ends
/// there it is left out; a job that writes stays within its region.
#[test]
fn the_last_block_of_a_region_is_read_whole_where_the_file_goes_on() {
    let count = |words: &str| ending(&ends_alike(&format!("--name=j --size=50000 {words}"))).1[0].2[0];
    assert_eq!(count("--filename=n --rw=read"), 12);
    assert_eq!(count("--filename=a --rw=randread"), 12);
    for words in [
        "--filename=a --rw=read",
        "--filename=a:b --rw=read",
        "--filename=a --rw=rw --rwmixread=100",
        "--filename=a --rw=read --offset=64k",
        "--filename=a --rw=read --offset=970k",
    ] {
        assert_eq!(count(words), 13, "{words}");
    }
    for (words, ios) in [
        ("--filename=a --rw=read --offset=998576", 12),
        ("--filename=a --rw=read --loops=2", 25),
        ("--filename=a --rw=read --io_size=128k", 32),
        ("--filename=a --rw=read --io_size=32k", 8),
        ("--filename=a --rw=read --bs=3000", 17),
        ("--filename=n --rw=rw --rwmixread=0", 12),
        ("--filename=n --rw=rw --rwmixread=100", 12),
        ("--filename=n --rw=rw --rwmixread=100 --bs=8k,4k", 6),
        ("--filename=n --rw=rw --rwmixread=50", 13),
    ] {
        assert_eq!(count(words), ios, "{words}");
    }
    // The parts of all files together hold a block at least.
    assert_eq!(count("--filename=a:b --rw=read --bs=32k"), 2);
    for words in ["--filename=a --bs=64k", "--filename=a:b --size=65537 --bs=65537", "--filename=a --bs=64k --rw=write"]
    {
        assert_eq!(ends_alike(&format!("--name=j --rw=read --size=50000 {words}")).code, Some(1), "{words}");
    }
    let sandbox = sandbox("");
    let before = fs::read(sandbox.path("a")).expect("the file");
    let words = ["fio", "--name=j", "--size=50000", "--filename=a", "--rw=write"];
    sandbox.run(&words).assert_code(0);
    let after = fs::read(sandbox.path("a")).expect("the file");
    assert!(before[50_000..] == after[50_000..], "data after `size` is replaced");
}

#[test]
fn nothing_to_parse_is_parsed_and_a_section_needs_no_name() {
    let (_, ran) = compared("", "--parse-only");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, ran) = compared("[]\nrw=read\nfilename=a\n", "j.fio --output-format=json");
    assert_eq!(ending(&ran).1, [(String::new(), 0, [256, 1 << 20, 0, 0])], "{ran:?}");
}

#[test]
fn a_job_with_commands_is_printed_without_running_them() {
    let (sandbox, ran) = compared("[j]\nrw=read\nfilename=a\nexec_prerun=touch made\n", "--showcmd j.fio");
    assert!(ran.code == Some(0) && ran.out.contains("exec_prerun"), "{ran:?}");
    assert!(!sandbox.path("made").exists());
    let ran = sandbox.run(&["fio", "--parse-only", "j.fio"]);
    assert_eq!(ran.code, Some(1), "what a run would refuse is refused: {ran:?}");
}

#[test]
fn a_job_that_reads_may_open_its_files_late_if_they_exist() {
    let options = "--create_on_open=1 --size=256k";
    assert_eq!(ends_alike(&format!("--name=j --filename=a {options} --rw=read")).code, Some(0));
    for rw in ["read", "randrw"] {
        let (refused, ran) = compared("", &format!("--output-format=json --name=j --filename=n {options} --rw={rw}"));
        assert_eq!(ran.code, Some(1), "{rw}: {ran:?}");
        assert!(!refused.path("n").exists(), "{rw}");
        // With a queue fio's job succeeds, and transfers nothing, or what it wrote; here it has data to read.
        let line =
            format!("fio --output-format=json --name=j --filename=n {options} --rw={rw} --ioengine=libaio --iodepth=4");
        let sandbox = sandbox("");
        let ran = sandbox.run(&line.split(' ').collect::<Vec<_>>());
        assert!(ran.code == Some(0) && ran.out.contains("`create_on_open` has no effect"), "{rw}: {ran:?}");
        assert_eq!(fs::metadata(sandbox.path("n")).expect("the file").len(), 256 << 10, "{rw}");
    }
}

/// Goal: each block is visited once, also without a map.
/// Method: random writes to a file without content; no block is left a hole.
#[test]
fn a_generator_that_visits_each_block_once_leaves_none_out() {
    let words = "--rw=randwrite --size=1m --bs=4k --fallocate=none --norandommap";
    let holes = |sandbox: &Sandbox| {
        let content = fs::read(sandbox.path("n")).expect("the file");
        256 - content.chunks(4096).filter(|block| block.iter().any(|byte| *byte != 0)).count()
    };
    let line = |generator: &str| format!("--output-format=json --name=j --filename=n {words} {generator}");
    assert_eq!(holes(&compared("", &line("--random_generator=lfsr")).0), 0);
    assert!(holes(&compared("", &line("")).0) > 0, "blocks repeat, so others are left out");
}

#[test]
fn a_verify_interval_need_not_fit_into_the_blocks() {
    for words in ["--bs=4k --verify_interval=3000", "--bs=4k --verify_interval=8192", "--bs=16k --verify_interval=12k"]
    {
        let line = format!("--name=j --filename=n --rw=write --size=1m --verify=md5 --verify_async=1 {words}");
        assert_eq!(ends_alike(&line).code, Some(0), "{words}");
    }
}

/// Goal: a block that differs ends a job as in fio: after it no further one is read, and the error is EILSEQ.
#[test]
fn the_first_block_that_differs_ends_the_job() {
    let line =
        "--output-format=json --name=j --filename=a --rw=read --verify=md5 --name=k --stonewall --filename=b --rw=read";
    let (_, ran) = compared("", line);
    let job = |name: &str, error, ios: u64| (name.to_owned(), error, [ios, ios * 4096, 0, 0]);
    assert_eq!(ending(&ran), (Some(1), vec![job("j", 84, 1), job("k", 0, 256)]), "{ran:?}");
    // `continue_on_error=verify` compares all of them, and the run fails nevertheless.
    let sandbox = sandbox("");
    let ran = sandbox.run(&[
        "fio",
        "--name=j",
        "--filename=a",
        "--rw=read",
        "--verify=md5",
        "--continue_on_error=verify",
        "--output-format=json",
    ]);
    assert_eq!(ending(&ran).1, [job("j", 84, 256)], "{ran:?}");
}

#[test]
fn readonly_refuses_writes_and_trims_of_engines_without_files_too() {
    for words in ["--ioengine=null --rw=write", "--ioengine=null --rw=randtrim", "--ioengine=filedelete --rw=write"] {
        let ran = ends_alike(&format!("--readonly --name=j --size=1m {words}"));
        assert!(ran.code == Some(1) && ran.err.contains("--readonly"), "{words}: {ran:?}");
    }
    assert_eq!(ends_alike("--readonly --name=j --size=1m --ioengine=null --rw=read").code, Some(0));
}

/// Goal: without latencies, bandwidth and IOPS over time are reported as fio reports them.
#[test]
fn reduced_timestamps_leave_bandwidth_over_time() {
    let line = "--name=j --filename=a --rw=read --time_based --runtime=1200ms --rate_iops=100 --gtod_reduce=1 --output-format=json";
    let of = |ran: &Ran| {
        let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
        let document: Value = serde_json::from_str(&ran.out[begin..]).expect("JSON");
        let read = document["jobs"][0]["read"].clone();
        let positive =
            ["bw_min", "bw_max", "bw_mean", "bw_samples", "iops_min", "iops_max", "iops_mean", "iops_samples"]
                .map(|key| read[key].as_f64().is_some_and(|value| value > 0.0));
        (positive, ["slat_ns", "clat_ns", "lat_ns"].map(|key| read[key]["N"].as_u64()))
    };
    let ours = sandbox("");
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ours = of(&ours.run(&words));
    assert_eq!(ours, ([true; 8], [Some(0); 3]));
    let beside = sandbox("");
    if let Some(mut fio) = real_fio(&beside, line) {
        assert_eq!(of(&Ran::of(fio.output().expect("fio starts"))), ours);
    }
}

/// Goal: a job that ends within its ramp reports what it did, as in fio.
/// Method: 256 reads are done long before a minute.
#[test]
fn a_job_that_ends_within_its_ramp_is_reported() {
    let ran = ends_alike("--name=j --filename=a --rw=read --ramp_time=60");
    assert_eq!(ending(&ran), (Some(0), vec![("j".to_owned(), 0, [256, 1 << 20, 0, 0])]), "{ran:?}");
}

/// Goal: an I/O above `max_latency` is the last one, and the error of its job is ETIMEDOUT; later jobs run.
/// Method: the first read comes from the disk, and takes more than a microsecond.
#[test]
fn the_first_io_above_max_latency_ends_its_job() {
    let line = "--name=j --filename=a --rw=read --max_latency=1us --name=k --stonewall --filename=b --rw=read";
    let ran = ends_alike(line);
    let job = |name: &str, error, ios: u64| (name.to_owned(), error, [ios, ios * 4096, 0, 0]);
    assert_eq!(ending(&ran), (Some(1), vec![job("j", 110, 1), job("k", 0, 256)]), "{ran:?}");
}

/// Goal: a low rate in a job's first two seconds does not end it, and a later one does, as in fio.
/// Method: pauses of 50 ms allow at most 20 I/Os a second.
#[test]
fn a_minimum_rate_applies_when_the_job_has_settled() {
    for (seconds, expected) in [(1, (Some(0), 0)), (6, (Some(1), 5))] {
        let line = format!(
            "--name=j --filename=a --rw=read --thinktime=50ms --rate_iops_min=200 --time_based --runtime={seconds} \
             --output-format=json"
        );
        let of = |ran: &Ran| (ran.code, ending(ran).1.first().map_or(0, |job| job.1));
        let ours = sandbox("");
        let ran = ours.run(&["fio"].into_iter().chain(line.split_whitespace()).collect::<Vec<_>>());
        assert_eq!(of(&ran), expected, "{seconds} s: {ran:?}");
        let beside = sandbox("");
        if let Some(mut fio) = real_fio(&beside, &line) {
            let theirs = Ran::of(fio.output().expect("fio starts"));
            assert_eq!(of(&theirs), expected, "{seconds} s: {theirs:?}");
        }
    }
}

/// Goal: trims of ranges with dirty cached pages succeed, as in fio.
/// Method: buffered writes before and beside the trims of a loop device that the run claims.
#[test]
fn trims_over_dirty_pages_of_a_block_device_succeed() {
    if lacks("loop") {
        return;
    }
    let verified = "--rw=write --number_ios=64 --verify=md5 --trim_percentage=100 --trim_backlog=1";
    let beside = "--rw=randwrite --number_ios=64 --name=u --filename=LOOP --bs=4k --rw=randtrim --number_ios=64";
    for (words, counts) in [
        // (Trims count, as in fio HEAD: 32 writes, as many trims; the blocks are read back.)
        (verified, vec![[64, 256 << 10, 32, 128 << 10]]),
        ("--rw=randtrimwrite --norandommap --loops=3", vec![[768, 3 << 20, 768, 3 << 20]]),
        (beside, vec![[64, 256 << 10, 0, 0], [0, 0, 64, 256 << 10]]),
    ] {
        let sandbox = sandbox("");
        let device = Loop::new(&sandbox, "disk", 1 << 20);
        let line = format!("fio --output-format=json --name=t --filename=LOOP --bs=4k {words}");
        let line = line.replace("LOOP", &device.device);
        let ran = sandbox.run(&line.split_whitespace().collect::<Vec<_>>());
        let (code, jobs) = ending(&ran);
        let done: Vec<_> = jobs.iter().map(|(_, error, counts)| (*error, *counts)).collect();
        let expected: Vec<_> = counts.into_iter().map(|counts| (0, counts)).collect();
        assert_eq!((code, done), (Some(0), expected), "{words}: {ran:?}");
    }
}

/// Goal: a job that reads more than its file holds transfers as much as fio's, and the file stays as it is. fio replaces it
/// by a longer one.
#[test]
fn a_named_file_that_is_shorter_than_the_size_is_read_again() {
    let before = fs::read(sandbox("").path("a")).expect("the file");
    for words in [
        "--rw=read --size=4m",
        "--rw=randread --size=4m",
        "--rw=read --offset=512k --size=1m",
        "--rw=read --size=4m --io_size=2m",
        "--rw=read --size=1m",
    ] {
        let line = format!("--output-format=json --name=j --filename=a --bs=64k {words}");
        let (folder, ran) = compared("", &line);
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        assert!(fs::read(folder.path("a")).expect("the file") == before, "{words}: it was changed");
    }
    // fio fails where its file would end, because `--readonly` forbids to extend it; ours extends nothing.
    let folder = sandbox("");
    let ran = folder.run(&["fio", "--name=j", "--filename=a", "--bs=64k", "--rw=read", "--size=4m", "--readonly"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fs::read(folder.path("a")).expect("the file") == before, "it was changed");
}

#[test]
fn a_file_of_the_name_that_a_job_generates_is_extended_for_reading() {
    let folder = sandbox("");
    folder.write("j.0.0", "data of an earlier run".repeat(1000));
    let ran = folder.run(&["fio", "--name=j", "--size=256k", "--rw=read", "--output-format=json"]);
    assert_eq!(ending(&ran), (Some(0), vec![("j".to_owned(), 0, [64, 256 << 10, 0, 0])]), "{ran:?}");
    let content = fs::read(folder.path("j.0.0")).expect("the file");
    assert_eq!(content.len(), 256 << 10);
    assert!(content.starts_with("data of an earlier run".repeat(1000).as_bytes()), "what was there stays");
}

#[test]
fn files_of_one_name_are_parts_of_one_file() {
    let line = "--output-format=json --name=j --filename_format=file$jobnum --nrfiles=3 --size=3m --bs=64k";
    for rw in ["write", "randwrite"] {
        let (folder, ran) = compared("", &format!("{line} --rw={rw}"));
        assert_eq!(ending(&ran).1, [("j".to_owned(), 0, [48, 3 << 20, 0, 0])], "{rw}: {ran:?}");
        assert_eq!(fs::metadata(folder.path("file0")).expect("the file").len(), 1 << 20, "{rw}");
    }
}

/// Goal: another user may read a new file, as one of fio's; one of a native job may not be read.
#[test]
fn new_files_have_fios_mode() {
    let mode =
        |folder: &Sandbox, name: &str| fs::metadata(folder.path(name)).expect("the file").permissions().mode() & 0o777;
    let folder = sandbox("");
    folder.write("umask", "");
    for words in ["--rw=write", "--rw=read", "--rw=write --fallocate=none", "--rw=write --loops=2 --unlink_each_loop=1"]
    {
        let (made, ran) = compared("", &format!("--output-format=json --name=j --filename=n --size=64k {words}"));
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        // The sandbox's own files have mode 0666 less the umask.
        assert_eq!(mode(&made, "n"), mode(&folder, "umask") & 0o644, "{words}");
    }
    let ran = folder.run(&["run", "--rw=write", "--filename=n", "--size=64k", "--direct=off", "--unlink=false"]);
    assert_eq!(mode(&folder, "n"), 0o600, "{ran:?}");
}

/// Returns the I/Os and bytes of an operation of the first job of a document.
fn counts(ran: &Ran, op: &str) -> [u64; 2] {
    let document: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    ["total_ios", "io_bytes"].map(|key| document["jobs"][0][op][key].as_u64().expect("a number"))
}

/// Goal: `verify_only` reads each block once, and expects its last write.
/// Method: the jobs of fio's `numberio_overlap.py`: twice as much as the file holds, in order, at random, and drawn again, in one
/// and two files. Then a byte changes in each block.
#[test]
fn verify_only_compares_the_last_write_to_each_block_once() {
    for (words, reads) in [
        ("--rw=write --filename=a", Some(1 << 20)),
        ("--rw=randwrite --filename=a", Some(1 << 20)),
        ("--rw=write --filename=a:b --size=2m --io_size=4m", Some(2 << 20)),
        ("--rw=randwrite --filename=a --norandommap", None),
        ("--rw=randrw --filename=a --norandommap", None),
        ("--rw=write --filename=a --ioengine=io_uring --iodepth=8", Some(1 << 20)),
    ] {
        let folder = sandbox("");
        let line = format!("fio --output-format=json --name=j --bs=4k --size=1m --io_size=2m {words} --verify=crc32c");
        let run = |more: &str| {
            let line = format!("{line} {more}");
            folder.run(&line.split_whitespace().collect::<Vec<_>>())
        };
        let wrote = run("--do_verify=0");
        let bytes = if words.contains("4m") { 4 << 20 } else { 2 << 20 };
        assert_eq!((wrote.code, counts(&wrote, "read")[1] + counts(&wrote, "write")[1]), (Some(0), bytes), "{words}");
        let ran = run("--verify_only=1 --do_verify=1");
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        if let Some(reads) = reads {
            assert_eq!([counts(&ran, "read")[1], counts(&ran, "write")[1]], [reads; 2], "{words}");
        }
        let mut content = fs::read(folder.path("a")).expect("the file");
        content.iter_mut().skip(2000).step_by(4096).for_each(|byte| *byte ^= 1);
        folder.write("a", content);
        assert_eq!(run("--verify_only=1 --do_verify=1").code, Some(1), "{words}");
    }
}

/// Goal: a job finds the blocks that another job of its run changed without `verify` after they were written.
/// Method: the jobs of fio's `verify.py` that change a block in between.
#[test]
fn blocks_that_a_job_between_them_changed_are_found() {
    let verify = "rw=write\nverify=md5\nverify_fatal=1\nverify_only\nstonewall\n";
    let folder = sandbox(&format!(
        "[global]\nfilename=f\nfilesize=1m\nbs=4k\n[layout]\nrw=write\nverify=md5\n[before]\n{verify}\
         [mangle]\nrw=randwrite\nnumber_ios=1\nstonewall\n[after]\n{verify}[read]\nrw=read\nverify=md5\nverify_fatal=1\nstonewall\n"
    ));
    let ran = folder.run(&["fio", "--output-format=json", "j.fio"]);
    let errors: Vec<u64> = ending(&ran).1.iter().map(|job| job.1).collect();
    assert_eq!((ran.code, errors), (Some(2), vec![0, 0, 0, 84, 84]), "{ran:?}");
}

/// Goal: clones that share a file may verify in between; they do so at the end.
#[test]
fn clones_that_share_a_file_read_back_at_the_end() {
    let line = "fio --name=j --filename=a --bs=4k --rw=write --verify=md5 --numjobs=2 --verify_backlog=8 --verify_backlog_batch=4";
    // fio's own jobs compare blocks while the other one writes them, so it may fail.
    let ran = sandbox("").run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Goal: of a job that reads and writes, only what it wrote is compared later, and that all of it.
/// Method: its blocks as they were written, and with a byte of each changed.
#[test]
fn verify_only_compares_what_a_mixed_job_wrote() {
    for rw in ["rw", "randrw"] {
        let folder = sandbox("");
        let line =
            format!("fio --output-format=json --name=j --filename=a --bs=4k --rw={rw} --verify=md5 --randseed=3");
        let run = |more: &str| {
            let line = format!("{line} {more}");
            folder.run(&line.split_whitespace().collect::<Vec<_>>())
        };
        let wrote = run("");
        let writes = |ran: &Ran| counts(ran, "write");
        assert_eq!((wrote.code, writes(&wrote)[0] > 0), (Some(0), true), "{rw}");
        for depth in ["", "--ioengine=libaio --iodepth=8"] {
            let ran = run(&format!("--verify_only=1 {depth}"));
            assert_eq!((ran.code, counts(&ran, "read")), (Some(0), [256, 1 << 20]), "{rw}: {ran:?}");
            assert_eq!(writes(&ran), writes(&wrote), "as fio, it counts the writes that it compares");
        }
        let mut content = fs::read(folder.path("a")).expect("the file");
        content.iter_mut().skip(2000).step_by(4096).for_each(|byte| *byte ^= 1);
        folder.write("a", content);
        let ran = run("--verify_only=1");
        let (code, jobs) = ending(&ran);
        assert_eq!((code, jobs[0].1), (Some(1), 84), "{rw}: {ran:?}");
    }
}
/// Goal: next to `buffer_compress_percentage`, the compressible part of each piece holds the pattern, or zeros, as in fio.
#[test]
fn compressible_content_holds_the_pattern_or_zeros() {
    for (words, filler) in [
        ("--buffer_pattern=0xdead --buffer_compress_percentage=50", [0xde, 0xad]),
        ("--zero_buffers=1 --buffer_compress_percentage=50", [0, 0]),
        ("--zero_buffers=1 --buffer_compress_percentage=100", [0, 0]),
        ("--buffer_pattern=0xdead --buffer_compress_percentage=100", [0xde, 0xad]),
    ] {
        let line = format!("--output-format=json --name=j --filename=n --rw=write --bs=4k --size=64k {words}");
        let holds = |folder: &Sandbox| {
            let content = fs::read(folder.path("n")).expect("the file");
            content.chunks(512).all(|piece| piece[256..].chunks(2).all(|two| two == filler))
        };
        let (ours, ran) = compared("", &line);
        assert!(ran.code == Some(0) && holds(&ours), "{words}: {ran:?}");
        let beside = sandbox("");
        if let Some(mut fio) = real_fio(&beside, &line) {
            assert!(fio.output().expect("fio starts").status.success());
            assert!(holds(&beside), "fio: {words}");
        }
    }
}

/// Goal: without a search for a depth, `latency_depth` is the depth that the job was given, also of an engine that blocks.
#[test]
fn latency_depth_is_the_given_depth() {
    for (words, depth) in [("--ioengine=psync --iodepth=32", 32), ("--ioengine=libaio --iodepth=8", 8), ("", 1)] {
        let line = format!("--output-format=json --name=j --filename=a --rw=read {words}");
        let of = |ran: &Ran| {
            let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
            let document: Value = serde_json::from_str(&ran.out[begin..]).expect("JSON");
            document["jobs"][0]["latency_depth"].as_u64()
        };
        assert_eq!(of(&compared("", &line).1), Some(depth), "{words}");
        let beside = sandbox("");
        if let Some(mut fio) = real_fio(&beside, &line) {
            assert_eq!(of(&Ran::of(fio.output().expect("fio starts"))), Some(depth), "fio: {words}");
        }
    }
}

/// Goal: a job that skips whole blocks is verified, also where it comes to the end of its file and begins again.
/// Method: the number of writes is fio's without `verify`; each block that was written is read back once. Skips of a part of a block are
/// refused, because one block may cover a part of another one.
#[test]
fn writes_with_skips_of_whole_blocks_are_verified() {
    let line = "--output-format=json --name=j --filename=n --size=256k --bs=4k --verify=md5";
    let counts = |ran: &Ran| {
        let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
        let document: Value = serde_json::from_str(&ran.out[begin..]).expect("JSON");
        let job = &document["jobs"][0];
        (ran.code, job["read"]["total_ios"].as_u64(), job["write"]["total_ios"].as_u64())
    };
    for words in ["--rw=write:4096", "--rw=write:8k", "--rw=write:-8k", "--rw=write:4k --loops=2"] {
        let folder = sandbox("");
        let words = format!("fio {line} {words}");
        let ran = folder.run(&words.split_whitespace().collect::<Vec<_>>());
        let (code, reads, writes) = counts(&ran);
        let content = fs::read(folder.path("n")).expect("the file");
        let written = content.chunks(4096).filter(|block| block.iter().any(|byte| *byte != 0)).count() as u64;
        // What each loop wrote is read back when it ends.
        let compared = Some(written * if words.contains("loops") { 2 } else { 1 });
        assert_eq!((code, reads), (Some(0), compared), "{words}: {ran:?}");
        let beside = sandbox("");
        // With `verify` fio 3.33 begins some of these passes again.
        if let Some(mut fio) = real_fio(&beside, &words.trim_start_matches("fio ").replace("--verify=md5", "")) {
            assert_eq!(counts(&Ran::of(fio.output().expect("fio starts"))).2, writes, "{words}");
        }
    }
    let folder = sandbox("");
    let words = format!("fio {line} --rw=write:2k");
    let ran = folder.run(&words.split_whitespace().collect::<Vec<_>>());
    assert!(ran.code == Some(1) && ran.err.contains("within another one"), "{ran:?}");
}

/// Runs a line in both programs, whose sizes and counts are drawn, and compares the exit codes.
#[track_caller]
fn codes_alike(line: &str) -> Ran {
    let line = format!("--output-format=json {line}");
    let (ours, beside) = (sandbox(""), sandbox(""));
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ran = ours.run(&words);
    if let Some(mut fio) = real_fio(&beside, &line) {
        assert_eq!(ran.code, Ran::of(fio.output().expect("fio starts")).code, "{line}: {ran:?}");
    }
    ran
}

/// Goal: jobs that write the same file with headers accept each other's blocks, and still find a block that neither wrote.
#[test]
fn a_shared_file_is_verified_by_all_its_writers() {
    let line = "--name=j --filename=n --size=256k --numjobs=2 --rw=randwrite --verify=md5";
    // fio runs these, too, but now and then one of its jobs reads a block that the other is writing, and fails.
    for words in ["", "--do_verify=0", "--bsrange=512-16k"] {
        let words: Vec<&str> =
            std::iter::once("fio").chain(line.split_whitespace()).chain(words.split_whitespace()).collect();
        sandbox("").run(&words).assert_code(0);
    }
    let sandbox = Sandbox::new();
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    sandbox.run(&words).assert_code(0);
    let path = sandbox.path("n");
    let mut content = fs::read(&path).expect("the file");
    content[8200] ^= 1;
    fs::write(&path, content).expect("it is written");
    let read = "--output-format=json --name=r --filename=n --size=256k --rw=read --verify=md5";
    let words: Vec<&str> = std::iter::once("fio").chain(read.split_whitespace()).collect();
    let ran = sandbox.run(&words);
    assert_eq!(ending(&ran), (Some(1), vec![("r".to_owned(), 84, [3, 3 * 4096, 0, 0])]), "{ran:?}");
}

/// Goal: blocks of several sizes are verified by each of their pieces: when a job reads what another one wrote, and when
/// one is overwritten in part.
#[test]
fn blocks_of_several_sizes_are_verified_by_their_pieces() {
    let write = "--name=w --filename=n --size=1m --rw=randwrite --verify=crc32c --bsrange=1k-16k";
    assert_eq!(codes_alike(&format!("{write} --norandommap --loops=2")).code, Some(0));
    assert_eq!(codes_alike(&format!("{write} --norandommap --verify_backlog=16")).code, Some(0));
    let read = "--name=r --stonewall --filename=n --size=1m --rw=randread --verify=crc32c --bssplit=1k/50:8k/50";
    assert_eq!(codes_alike(&format!("{write} --do_verify=0 {read}")).code, Some(0));
}

/// Goal: a job that writes verifiable blocks saves how far it came, by default and in fio's format, and a job that reads
/// compares as much.
#[test]
fn a_verify_state_is_saved_by_default_and_a_reading_job_loads_it() {
    let write = "--name=a/b --filename=n --size=256k --rw=randwrite --verify=md5 --number_ios=20 --do_verify=0";
    let sandbox = Sandbox::new();
    let run = |line: &str| {
        let words: Vec<&str> = ["fio", "--output-format=json"].into_iter().chain(line.split_whitespace()).collect();
        sandbox.run(&words)
    };
    fs::create_dir(sandbox.path("aux")).expect("a directory");
    run(&format!("--aux-path=aux {write}")).assert_code(0);
    let state = fs::read(sandbox.path("aux/local-a.b-0-verify.state")).expect("the state");
    let word = |at: usize| u64::from_le_bytes(state[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!((word(0), word(8), word(32), state.len()), (7, 152, 20, 176));
    let read = write.replace("randwrite", "randread").replace(" --number_ios=20 --do_verify=0", "");
    let ran = run(&format!("--aux-path=aux {read} --verify_state_load=1"));
    assert_eq!(ending(&ran), (Some(0), vec![("a/b".to_owned(), 0, [20, 20 * 4096, 0, 0])]), "{ran:?}");
    let ran = run(&format!("{read} --verify_state_load=1"));
    assert!(ran.code == Some(1) && ran.err.contains("local-a.b-0-verify.state"), "{ran:?}");
    assert_eq!(run(&format!("{write} --verify_state_save=0")).code, Some(0));
    assert!(!sandbox.path("local-a.b-0-verify.state").exists());
}

/// Goal: a job that writes nothing saves a state, too.
#[test]
fn a_job_that_writes_nothing_saves_a_state() {
    for words in ["--rw=write --create_only=1", "--rw=rw --rwmixread=100", "--rw=read --do_verify=0"] {
        let line = format!("--output-format=json --name=j --filename=n --size=64k --verify=null {words}");
        let (ours, _) = compared("", &line);
        let theirs = sandbox("");
        let name = "local-j-0-verify.state";
        assert_eq!(ours.path(name).exists(), !words.contains("rw=read"), "{words}");
        if let Some(mut fio) = real_fio(&theirs, &line) {
            fio.output().expect("fio starts");
            assert_eq!(theirs.path(name).exists(), ours.path(name).exists(), "{words}");
        }
    }
}

/// Goal: a block that differs is kept in the directory of `--aux-path`, as fio does.
/// Method: a byte of what was written is changed, beyond the header.
#[test]
fn a_block_that_differs_is_kept_in_the_directory_of_aux_path() {
    let job = "--name=j --filename=n --size=64k --bs=4k --verify=md5 --output-format=json";
    for (words, name) in [("--aux-path=aux", "aux/n.8192.received"), ("", "n.8192.received")] {
        let (write, read) = (format!("{job} --rw=write"), format!("{words} {job} --rw=read --verify_dump=1"));
        let dumps = |run: &dyn Fn(&Sandbox, &str) -> Option<Ran>| {
            let sandbox = sandbox("");
            fs::create_dir(sandbox.path("aux")).expect("a directory");
            assert_eq!(run(&sandbox, &write)?.code, Some(0));
            let mut content = fs::read(sandbox.path("n")).expect("what was written");
            content[8192 + 2000] ^= 1;
            fs::write(sandbox.path("n"), &content).expect("it is written");
            let ran = run(&sandbox, &read)?;
            assert_eq!(ran.code, Some(1), "{ran:?}");
            assert_eq!(fs::read(sandbox.path(name)).expect("the block"), content[8192..][..4096], "{ran:?}");
            let names = ["aux/n.8192.received", "n.8192.received"];
            Some(names.into_iter().filter(|name| sandbox.path(name).exists()).collect::<Vec<_>>())
        };
        let ours = |sandbox: &Sandbox, line: &str| {
            Some(sandbox.run(&std::iter::once("fio").chain(line.split_whitespace()).collect::<Vec<_>>()))
        };
        let fios =
            |sandbox: &Sandbox, line: &str| Some(Ran::of(real_fio(sandbox, line)?.output().expect("fio starts")));
        assert_eq!(dumps(&ours).expect("it ran"), [name]);
        assert!(dumps(&fios).is_none_or(|names| names == [name]));
    }
}

/// Goal: files of `verify_dump` have fio's names: a wrong header is in one of its own, and what should be there is next to what was read
/// where it can be known, which is of a pattern.
/// Method: a byte of the last of four pieces is changed, in its header or beyond it.
#[test]
fn dumps_of_blocks_that_differ_have_the_names_of_fios() {
    for (verify, at, names) in [
        ("md5", 2000, &["n.11264.received"][..]),
        ("md5 --verify_pattern=0xabcd", 2000, &["n.11264.expected", "n.11264.received"]),
        ("pattern --verify_pattern=0xabcd", 2000, &["n.8192.expected", "n.8192.received"]),
        ("md5 --verify_pattern=0xabcd", 2, &["n.11264.hdr_fail"]),
    ] {
        let job = "--name=j --filename=n --size=64k --bs=4k --output-format=json --verify_interval=1k";
        let job = format!("{job} --verify={verify}");
        let dumps = |run: &dyn Fn(&Sandbox, &str) -> Option<Ran>| {
            let sandbox = sandbox("");
            run(&sandbox, &format!("{job} --rw=write"))?;
            let written = fs::read(sandbox.path("n")).expect("what was written");
            let mut content = written.clone();
            content[8192 + 3072 + at % 1024] ^= 1;
            fs::write(sandbox.path("n"), &content).expect("it is written");
            let ran = run(&sandbox, &format!("{job} --rw=read --verify_dump=1"))?;
            assert!(matches!(ran.code, Some(1 | 84)), "{ran:?}");
            let is_dump = |name: &String| ["received", "expected", "hdr_fail"].iter().any(|end| name.ends_with(end));
            let entries = fs::read_dir(sandbox.root()).expect("the folder").map(|entry| entry.expect("an entry"));
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(is_dump);
            let found: BTreeMap<_, _> =
                names.map(|name| (name.clone(), fs::read(sandbox.path(&name)).expect("a dump"))).collect();
            Some((found, written, content))
        };
        let ours = |sandbox: &Sandbox, line: &str| {
            Some(sandbox.run(&std::iter::once("fio").chain(line.split_whitespace()).collect::<Vec<_>>()))
        };
        let fios =
            |sandbox: &Sandbox, line: &str| Some(Ran::of(real_fio(sandbox, line)?.output().expect("fio starts")));
        let (found, written, changed) = dumps(&ours).expect("it ran");
        assert_eq!(found.keys().collect::<Vec<_>>(), names, "{verify}");
        for (name, bytes) in found {
            let whole = if name.ends_with("expected") { &written } else { &changed };
            let begin: usize = name.split('.').nth(1).and_then(|number| number.parse().ok()).expect("an offset");
            assert_eq!(bytes, whole[begin..][..bytes.len()], "{verify}: {name}");
        }
        // (An older fio takes a block without headers for pieces, and has another offset.)
        if !verify.starts_with("pattern")
            && let Some((found, ..)) = dumps(&fios)
        {
            // What random content should be, fio makes again from its seed.
            let names_of_fio = found.keys().filter(|name| verify != "md5" || !name.ends_with("expected"));
            assert_eq!(names_of_fio.collect::<Vec<_>>(), names, "{verify}");
        }
    }
}

/// Goal: a job of `verify_only` that is `time_based` compares one pass, and no steps that the job that wrote did not come to.
#[test]
fn a_time_based_job_that_only_verifies_makes_one_pass() {
    let job = "--name=j --filename=n --size=64k --bs=4k --rw=randwrite --norandommap --verify=md5 --time_based --output-format=json";
    let sandbox = sandbox("");
    let written = format!("fio {job} --runtime=1");
    assert_eq!(sandbox.run(&written.split_whitespace().collect::<Vec<_>>()).code, Some(0));
    let compared = format!("fio {job} --runtime=60 --verify_only");
    let ran = sandbox.run(&compared.split_whitespace().collect::<Vec<_>>());
    let (code, jobs) = ending(&ran);
    assert_eq!((code, jobs[0].1), (Some(0), 0), "{ran:?}");
}

#[test]
fn a_sequence_of_blocks_is_read_in_its_order() {
    let line = "--name=j --filename=a --rw=randread --bs=4k --size=48k --io_size=24k";
    let offsets = |words: &str| {
        let sandbox = sandbox("");
        let words: Vec<&str> =
            ["fio", "--debug=io"].into_iter().chain(line.split_whitespace()).chain(words.split_whitespace()).collect();
        let ran = sandbox.run(&words);
        let queued = ran.out.lines().filter(|text| text.contains("queue:"));
        let offset =
            |text: &str| text.split("off=0x").nth(1).and_then(|rest| rest.split([',', ' ']).next()).map(str::to_owned);
        queued.filter_map(offset).collect::<Vec<_>>()
    };
    let sequence = "--random_distribution=sequence:2,0,1";
    assert_eq!(offsets(sequence), ["2000", "0", "1000", "2000", "0", "1000"]);
    assert_eq!(
        offsets(&format!("{sequence} --random_sequence_stride=1")),
        ["2000", "0", "1000", "5000", "3000", "4000"]
    );
    let sandbox = sandbox("");
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ran = sandbox.run(&[&words[..], &["--random_distribution=sequence:12"]].concat());
    assert!(ran.code == Some(1) && ran.err.contains("not block 12"), "{ran:?}");
}

/// Goal: the exit code is the number of failed jobs, as in fio.
#[test]
fn each_failed_job_counts_in_the_exit_code() {
    let line = "--name=j --filename=a --rw=read --verify=md5 --numjobs=3";
    assert_eq!(ends_alike(line).code, Some(3));
}

#[test]
fn memory_is_faulted_in_by_the_engine_page_fault() {
    let sandbox = Sandbox::new();
    let line = "fio --output-format=json --name=j --ioengine=page_fault --size=1m --rw=randrw --bs=4k";
    let words: Vec<&str> = line.split_whitespace().collect();
    let ran = sandbox.run(&words);
    assert_eq!(ending(&ran), (Some(0), vec![("j".to_owned(), 0, [256, 1 << 20, 0, 0])]), "{ran:?}");
    assert!(!sandbox.path("j.0.0").exists(), "it needs no file");
}

/// Goal: the workers of a job are in its control group while it runs, the group is removed after it unless it is kept, and one
/// that was there stays.
#[test]
fn a_job_runs_in_the_control_group_that_it_names() {
    if lacks("root") {
        return;
    }
    let existing = match ControlGroup::create("blkio", &[]) {
        Ok(group) => group,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let name = existing.path.file_name().unwrap().to_str().unwrap().to_owned();
    let root = existing.path.parent().unwrap().to_owned();
    let sandbox = sandbox("");
    let job = "--filename=a --rw=read --time_based --runtime=30 --rate_iops=100";
    for (group, is_kept, remains) in
        [(name.clone(), false, true), (format!("{name}-new"), false, false), (format!("{name}-kept"), true, true)]
    {
        let path = root.join(&group);
        let line =
            format!("fio --name=j {job} --cgroup={group} --cgroup_nodelete={} --name=k {job}", u8::from(is_kept));
        let running = Running::start(&mut sandbox.command(&line.split_whitespace().collect::<Vec<_>>()));
        let tasks = || fs::read_to_string(path.join("tasks")).unwrap_or_default().lines().count();
        running.wait_until("a worker is in the group", || tasks() > 0);
        running.wait_for_worker("k");
        assert_eq!(tasks(), 1, "{group}: the worker of `j`, and not that of `k`");
        running.signal(libc::SIGINT);
        let (ran, _) = running.wait();
        assert_eq!(ran.code, Some(128), "{ran:?}");
        assert_eq!(path.exists(), remains, "{group}");
        if is_kept {
            fs::remove_dir(&path).expect("an empty group");
        }
    }
    let ran = sandbox.run(&["fio", "--name=j", "--filename=a", "--rw=read", "--cgroup=../x"]);
    assert!(ran.code == Some(1) && ran.err.contains("no path below the hierarchy"), "{ran:?}");
    let ran = sandbox.run(&["fio", "--name=j", "--filename=a", "--rw=read", &format!("--cgroup={name}/none/x")]);
    assert!(ran.code == Some(1) && ran.err.contains("creating the control group"), "{ran:?}");
}

/// Goal: what fio's group of jobs has in common is shared: jobs repeat each other's blocks only with the option.
#[test]
fn jobs_repeat_blocks_of_each_other_with_dedupe_global() {
    let options = "--rw=write --size=1m --dedupe_percentage=50 --dedupe_mode=working_set \
                   --dedupe_working_set_percentage=10 --refill_buffers";
    for (global, is_shared) in [(0, false), (1, true)] {
        let line = format!(
            "--output-format=json --dedupe_global={global} {options} --name=x --filename=x --name=y --filename=y"
        );
        let (sandbox, ran) = compared("", &line);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let blocks = |name: &str| -> std::collections::HashSet<Vec<u8>> {
            fs::read(sandbox.path(name)).unwrap().chunks(4096).map(<[u8]>::to_vec).collect()
        };
        let shared = blocks("x").intersection(&blocks("y")).count();
        assert_eq!(shared > 5, is_shared, "{shared} blocks in both with dedupe_global={global}");
    }
}

/// Goal: the blocks of a file are exchanged as with fio, and its content stays.
#[test]
fn a_file_is_defragmented() {
    let sandbox = sandbox("");
    let before = fs::read(sandbox.path("a")).unwrap();
    // fio allocates as many blocks as `filesize` has, and fails without it.
    let job = "--name=j --filename=a --filesize=1m --rw=write --bs=64k --ioengine=e4defrag --donorname=d";
    let line = format!("fio {job} --output-format=json");
    let ran = sandbox.run(&line.split_whitespace().collect::<Vec<_>>());
    if ran.err.contains("not on ext4") {
        return println!("skipped: the build directory is not on ext4");
    }
    assert_eq!(ending(&ran), (Some(0), vec![("j".to_owned(), 0, [16, 1 << 20, 0, 0])]), "{ran:?}");
    assert!(fs::read(sandbox.path("a")).unwrap() == before && !sandbox.path("d").exists());
    if let Some(mut fio) = real_fio(&sandbox, &line["fio ".len()..]) {
        let theirs = Ran::of(fio.output().expect("fio starts"));
        if theirs.code == Some(0) || !theirs.err.contains("e4defrag") {
            assert_eq!(ending(&theirs), ending(&ran), "{theirs:?}");
        }
    }
}

/// Goal: jobs that are no clones share a file with a backlog, as in fio.
#[test]
fn jobs_that_share_a_file_may_have_a_backlog() {
    let job = "--filename=n --rw=write --size=256k --verify=crc32c --verify_backlog=8";
    let ran = sandbox("").run(&format!("fio --name=x {job} --name=y {job}").split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Goal: what one job wrote as fixed content, a later one compares with the same pattern, and finds where it differs.
#[test]
fn fixed_content_is_compared_with_the_pattern_of_a_later_job() {
    let read = "--name=y --stonewall --filename=c --rw=read --size=256k --verify=pattern";
    for (write, pattern, code) in
        [("--buffer_pattern=0xab", "0xab", 0), ("--zero_buffers", "0x00", 0), ("--buffer_pattern=0xabcd", "0xabcd", 0)]
    {
        let line = format!("--name=x --filename=c --rw=write --size=256k {write} {read} --verify_pattern={pattern}");
        assert_eq!(ends_alike(&line).code, Some(code), "{write}");
    }
    let line =
        format!("--name=x --filename=c --rw=write --size=256k --buffer_pattern=0xab {read} --verify_pattern=0xac");
    let ran = ends_alike(&line);
    assert!(ran.code == Some(1), "another pattern is not what was written: {ran:?}");
}
