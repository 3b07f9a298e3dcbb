//! The calls that an engine makes and the way a file is made, seen by `strace` and `stat`, not by ourselves.

use crate::common::*;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// The lines of `strace` about these calls while a job runs.
fn calls(sandbox: &Sandbox, names: &str, arguments: &str) -> Vec<String> {
    let trace = sandbox.aside("trace");
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let plain = sandbox.command(&arguments);
    let mut traced = std::process::Command::new("strace");
    traced.args(["-f", "-qq", "-e", &format!("trace={names}"), "-e", "signal=none", "-o"]).arg(&trace);
    traced.arg(plain.get_program()).args(plain.get_args()).current_dir(sandbox.root());
    traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    traced.stdin(std::process::Stdio::null());
    Ran::of(traced.output().expect("strace")).assert_code(0);
    strace_lines(&trace)
}

/// Goal: each engine makes the calls that fio's of that name makes.
/// Method: 256 reads of 4 KiB. In order, the position is set once; at random, before nearly each read (a block
/// may by chance follow the one before).
#[test]
fn each_blocking_engine_makes_the_calls_of_its_name() {
    if lacks("strace") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    const READS: &str = "read,pread64,readv,preadv,preadv2,lseek";
    for (engine, call, seeks) in [
        ("psync", "pread64(", false),
        ("pvsync", "preadv(", false),
        ("pvsync2", "preadv2(", false),
        ("sync", "read(", true),
        ("vsync", "readv(", true),
    ] {
        for order in ["read", "randread"] {
            let job = format!(
                "run --filename data --rw {order} --bs 4k --direct 0 --no-evidence --no-history --ioengine {engine}"
            );
            let lines = calls(&sandbox, READS, &job);
            let count = |what: &str, end: &str| {
                let of_call = |line: &&String| {
                    line.split_once(' ').is_some_and(|(_, rest)| rest.trim_start().starts_with(what))
                        && line.ends_with(end)
                };
                lines.iter().filter(of_call).count()
            };
            assert_eq!(count(call, " = 4096"), 256, "{engine}, {order}");
            let sought = lines.iter().filter(|line| line.contains("lseek(") && line.contains("SEEK_SET")).count();
            match (seeks, order) {
                (false, _) => assert_eq!(sought, 0, "{engine}, {order}"),
                (true, "read") => assert_eq!(sought, 1, "{engine}, {order}"),
                (true, _) => assert!((240..=256).contains(&sought), "{engine}, {order}: {sought} of 256"),
            }
        }
    }
}

#[test]
fn the_final_sync_call_is_the_one_that_the_job_sets() {
    if lacks("strace") {
        return;
    }
    let sandbox = Sandbox::new();
    for (option, call) in [("end_fdatasync", "fdatasync("), ("end_fsync", "fsync("), ("fsync_on_close", "fsync(")] {
        let job = format!(
            "run --filename new-{option} --fallocate none --rw write --size 1m --direct 0 --invalidate=false \
             --ioengine psync --no-evidence --no-history --{option}"
        );
        let lines = calls(&sandbox, "pwrite64,fsync,fdatasync", &job);
        let last = lines.last().unwrap_or_else(|| panic!("{option}: no calls"));
        assert!(last.split_once(' ').is_some_and(|(_, rest)| rest.trim_start().starts_with(call)), "{option}: {last}");
        let syncs = lines.iter().filter(|line| line.contains("sync(")).count();
        assert_eq!(syncs, 1, "{option}: {lines:#?}");
    }
}

/// Goal: a file is made as a published program made it.
/// Method: one block of 4 KiB is written to the end of 16 MiB; what the file has then is what it was given.
#[test]
fn fallocate_decides_whether_a_new_file_is_allocated_a_hole_or_empty() {
    let sandbox = Sandbox::new();
    let made = |name: &str, fallocate: &str| {
        let job = format!(
            "run --filename {name} --fallocate {fallocate} --rw write --size 16m --number_ios 1 --end_fsync \
             --unlink=false --no-evidence --no-history"
        );
        sandbox.run(&job.split_whitespace().collect::<Vec<_>>()).assert_code(0);
        let file = fs::metadata(sandbox.path(name)).expect("the file");
        (file.len(), file.blocks() * 512)
    };
    let (length, allocated) = made("hole", "truncate");
    assert_eq!(length, 16 << 20);
    assert!(allocated < 1 << 20, "{allocated}");
    assert_eq!(made("empty", "none").0, 4096);
    let (length, allocated) = made("allocated", "native");
    assert_eq!(length, 16 << 20);
    assert!(allocated >= 16 << 20, "{allocated}");
    assert_eq!(made("posix", "posix"), (length, allocated));
    let (length, reserved) = made("reserved", "keep");
    assert_eq!(length, 4096);
    assert!(reserved >= 16 << 20, "{reserved}");
}

/// Goal: the loop of the published 0.112 s, through the program: it fails, and is not taken for a fast one.
#[test]
fn direct_writes_from_a_misaligned_buffer_fail_the_run_and_are_contradicted() {
    let sandbox = Sandbox::new();
    let job = "run --filename new --overwrite --rw randwrite --bs 128k --size 8m --direct require --sync sync \
               --norandommap --number_ios 64 --buffer_offset 1 --buffer_pattern 0x58 --continue_on_error all \
               --ioengine psync --no-history";
    let (ran, record) = sandbox.record(&job.split_whitespace().collect::<Vec<_>>());
    ran.assert_code(1);
    let phase = &record.phases[0];
    assert_eq!(phase.verdict, trueio_model::Verdict::Contradicted, "{}", ran.out);
    let failure = &phase.jobs[0].failures[0];
    assert_eq!((failure.errno, failure.count), (libc::EINVAL, 64));
    for words in [
        "write of 131072 bytes at offset ",
        " of `new` from address 0x",
        "Invalid argument (os error 22). The address is 1 byte past a multiple of ",
        ", which direct I/O requires here (",
        "): align the buffers.",
    ] {
        assert!(ran.out_joined().contains(words), "{words}: {}", ran.out);
    }
}

/// Goal: the saved state, which is needed to compare blocks after a power cut, is itself durable.
#[test]
fn a_verify_state_is_flushed_when_it_is_written() {
    if lacks("strace") {
        return;
    }
    let sandbox = Sandbox::new();
    let job = "run --rw write --size 64k --verify crc32c --verify_state_save --no-evidence --no-history";
    let lines = calls(&sandbox, "openat,fsync", job);
    let opened = lines.iter().position(|line| line.contains("-verify.state") && line.contains("O_CREAT"));
    let opened = opened.expect("it is created");
    let number = lines[opened].rsplit_once("= ").expect("a descriptor").1;
    assert!(lines[opened..].iter().any(|line| line.contains(&format!("fsync({number})"))), "{lines:?}");
}
