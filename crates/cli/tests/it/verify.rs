//! Verification across runs: what one run wrote and another compares.

use crate::common::*;
use std::fs;
use std::os::unix::fs::FileExt;

const JOB: &str = "run --name tale --rw randwrite --bs 4k --size 1m --filename data --overwrite_existing data --verify \
                   sha256 --no-history --no-evidence --direct 0 --ioengine psync";

fn job(more: &str) -> Vec<&str> {
    JOB.split_whitespace().chain(more.split_whitespace()).collect()
}

/// Goal: the blocks that an interrupted run wrote can be compared later, and a block of another run is detected.
/// Method: 100 of 256 writes with a saved state; a later run compares those 100. Then one block is replaced by its earlier
/// content, as on a disk that lost the write.
#[test]
fn a_saved_state_limits_the_comparison_to_the_blocks_of_its_run() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    sandbox.run(&job("--number_ios 100 --do_verify=false")).assert_code(0);
    let earlier = fs::read(sandbox.path("data")).expect("content");
    let wrote = sandbox.run(&job("--number_ios 100 --do_verify=false --verify_state_save --replace"));
    wrote.assert_code(0);
    assert!(sandbox.path("local-tale-0-verify.state").exists(), "{wrote:?}");
    let (ran, record) = sandbox.record(&job("--verify_only --verify_state_load"));
    ran.assert_code(0);
    let done = &record.phases[0].jobs[0];
    assert_eq!((done.verified_block_count, done.verify_failure_count), (100, 0));
    assert_eq!(totals(&record.phases[0], trueio_model::OpKind::Read), (100, 100 * 4096));
    // The same write of the previous run: header, offset and checksum are valid, but it is not of this run.
    let block = earlier.chunks(4096).position(|block| block.starts_with(b"TRUEIO")).expect("a written block");
    let file = fs::OpenOptions::new().write(true).open(sandbox.path("data")).expect("the file");
    file.write_all_at(&earlier[block * 4096..][..4096], block as u64 * 4096).expect("a write");
    let (ran, record) = sandbox.record(&job("--verify_only --verify_state_load --verify_dump"));
    ran.assert_code(1);
    assert_eq!(record.phases[0].jobs[0].verify_failure_count, 1);
    let dump = fs::read(sandbox.path(&format!("data.{}.hdr_fail", block * 4096))).expect("the block is kept");
    assert_eq!(dump, earlier[block * 4096..][..4096]);
    // Without the state, blocks of both runs are valid.
    sandbox.run(&job("--number_ios 100 --verify_only")).assert_code(0);
    let other = sandbox.run(&job("--randseed 7 --verify_only --verify_state_load"));
    other.assert_code(1);
    assert!(other.out_joined().contains("they write other blocks"), "{other:?}");
}

/// Goal: after a crash exactly the synced data is compared.
/// Method: 100 writes in order with a sync call after every 30, with a saved state. Then a write after the last call is
/// lost, which a power cut may cause, and later one before it, which must be detected.
#[test]
fn with_verify_policy_fsynced_only_synced_data_is_compared() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    let words = "--rw write --number_ios 100 --fdatasync 30 --verify_policy fsynced";
    let (wrote, record) = sandbox.record(&job(&format!("{words} --verify_state_save")));
    wrote.assert_code(0);
    assert_eq!(record.phases[0].jobs[0].verified_block_count, 90, "the last ten were not synced");
    // Closed again: a file that another process has open for writing is refused.
    let lose = |block: u64| {
        let file = fs::OpenOptions::new().write(true).open(sandbox.path("data")).expect("the file");
        file.write_all_at(&[0; 4096], block * 4096).expect("a write");
    };
    let compare = |more: &str| {
        let line = format!("--rw write --fdatasync 30 --verify_only --verify_state_load {more}");
        let (ran, record) = sandbox.record(&job(&line));
        let done = &record.phases[0].jobs[0];
        (ran.code, done.verified_block_count, done.verify_failure_count)
    };
    lose(95);
    assert_eq!(compare("--verify_policy fsynced"), (Some(0), 90, 0));
    assert_eq!(compare(""), (Some(1), 100, 1), "the other policy compares all");
    lose(40);
    assert_eq!(compare("--verify_policy fsynced"), (Some(1), 90, 1));
    // With a flag every write is durable when it ends, and all are compared.
    let (all, record) = sandbox.record(&job("--rw write --number_ios 100 --sync dsync --verify_policy fsynced"));
    all.assert_code(0);
    assert_eq!(record.phases[0].jobs[0].verified_block_count, 100);
    // A state without information about synced data.
    sandbox.run(&job("--rw write --number_ios 100 --fdatasync 30 --verify_state_save --replace")).assert_code(0);
    let line = "--rw write --fdatasync 30 --verify_only --verify_state_load --verify_policy fsynced";
    let unknown = sandbox.run(&job(line));
    unknown.assert_code(1);
    assert!(unknown.out_joined().contains("does not say what was synced"), "{unknown:?}");
}

/// Goal: a job that compares what was synced does not pass where that is nothing.
#[test]
fn without_synced_data_nothing_is_compared_and_the_run_fails() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    let words = "--rw write --number_ios 20 --fdatasync 30 --verify_policy fsynced";
    let (ran, record) = sandbox.record(&job(&format!("{words} --verify_state_save")));
    ran.assert_code(1);
    assert!(ran.out_joined().contains("nothing was synced before the job ended"), "{ran:?}");
    assert_eq!(record.phases[0].jobs[0].verified_block_count, 0);
    let load = sandbox.run(&job(&format!("{words} --verify_only --verify_state_load")));
    load.assert_code(1);
    assert!(load.out_joined().contains("says that nothing was synced"), "{load:?}");
    // A run that only saves the state compares nothing, and prints nothing about it.
    sandbox.run(&job(&format!("{words} --do_verify=false --verify_state_save --replace"))).assert_code(0);
}

/// Goal: a comparison of a file that was cut off fails, also where the job would otherwise read less: by its size, or by its state.
/// Method: 64 KiB are written and compared; then the file has half of them.
#[test]
fn a_file_that_was_cut_off_is_not_compared_in_part() {
    let sandbox = Sandbox::new();
    let line = |more: &str| {
        let line = format!("fio --name=a --filename=f --bs=4k --verify=crc32c {more}");
        let words: Vec<&str> = line.split_whitespace().collect();
        sandbox.run(&words)
    };
    line("--rw=write --size=64k --verify_state_save=1").assert_code(0);
    let by_size = ["--rw=read --size=64k", "--rw=read --filesize=64k", "--rw=write --verify_only=1 --size=64k"];
    let by_state = ["--rw=read --verify_state_load=1", "--rw=write --verify_only=1 --verify_state_load=1"];
    by_size.iter().chain(&by_state).for_each(|job| line(job).assert_code(0));
    fs::File::options()
        .write(true)
        .open(sandbox.path("f"))
        .and_then(|file| file.set_len(32 << 10))
        .expect("half of it");
    for (job, sentence) in by_size.map(|job| (job, "ends beyond `f`, whose size is 32 KiB")).into_iter().chain(
        by_state.map(|job| (job, "the verify state of `a` says that 16 I/Os were written, and this job ends after 8")),
    ) {
        let ran = line(job);
        assert_eq!(ran.code, Some(1), "{job}: {ran:?}");
        assert!(ran.err.contains(sentence), "{job}: {ran:?}");
    }
    // What is there is right.
    line("--rw=read --size=32k").assert_code(0);
}
