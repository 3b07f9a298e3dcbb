//! Verification across runs: what one run wrote and another compares.

mod common;

use common::*;
use std::fs;
use std::os::unix::fs::FileExt;

const JOB: &str = "run --name tale --rw randwrite --bs 4k --size 1m --filename data --overwrite_existing data --verify \
                   sha256 --no-history --no-evidence --direct 0 --ioengine psync";

fn job(more: &str) -> Vec<&str> {
    JOB.split_whitespace().chain(more.split_whitespace()).collect()
}

/// Goal: a run that was cut short can be compared later, as far as it came, and a block of another run is not taken
/// for one of its own.
/// Method: 100 of 256 writes with a saved state; a later run compares those 100. Then an earlier write is put in the
/// place of one of them, as a disk does that lost it.
#[test]
fn a_saved_state_says_how_far_to_compare_and_whose_blocks() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    sandbox.run(&job("--number_ios 100 --do_verify=false")).assert_code(0);
    let earlier = fs::read(sandbox.path("data")).expect("content");
    let wrote = sandbox.run(&job("--number_ios 100 --do_verify=false --verify_state_save"));
    wrote.assert_code(0);
    assert!(sandbox.path("local-tale-0-verify.state").exists(), "{wrote:?}");
    let (ran, record) = sandbox.record(&job("--verify_only --verify_state_load"));
    ran.assert_code(0);
    let done = &record.phases[0].jobs[0];
    assert_eq!((done.verified_block_count, done.verify_failure_count), (100, 0));
    assert_eq!(totals(&record.phases[0], trueio_model::OpKind::Read), (100, 100 * 4096));
    // The same write of the run before: header, place and checksum are right, and it is not this run's.
    let block = earlier.chunks(4096).position(|block| block.starts_with(b"TRUEIO")).expect("a written block");
    let file = fs::OpenOptions::new().write(true).open(sandbox.path("data")).expect("the file");
    file.write_all_at(&earlier[block * 4096..][..4096], block as u64 * 4096).expect("a write");
    let (ran, record) = sandbox.record(&job("--verify_only --verify_state_load --verify_dump"));
    ran.assert_code(1);
    assert_eq!(record.phases[0].jobs[0].verify_failure_count, 1);
    let dump = fs::read(sandbox.path(&format!("data.{}.received", block * 4096))).expect("the block is kept");
    assert_eq!(dump, earlier[block * 4096..][..4096]);
    // Without the state nobody knows whose it should be.
    sandbox.run(&job("--number_ios 100 --verify_only")).assert_code(0);
    let other = sandbox.run(&job("--randseed 7 --verify_only --verify_state_load"));
    other.assert_code(1);
    assert!(other.out_joined().contains("they write other blocks"), "{other:?}");
}

/// Goal: after a crash only what was synced can be asked for; and all of that is.
/// Method: 100 writes in order with a sync call after each 30, whose state is saved. Then a write after the last call is
/// lost, as a power cut may do with it, and later one before it, which nothing may lose.
#[test]
fn only_what_was_synced_is_compared_where_that_is_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 1 << 20);
    let words = "--rw write --number_ios 100 --fdatasync 30 --verify_policy fsynced";
    let (wrote, record) = sandbox.record(&job(&format!("{words} --verify_state_save")));
    wrote.assert_code(0);
    assert_eq!(record.phases[0].jobs[0].verified_block_count, 90, "the last ten were not synced");
    let file = fs::OpenOptions::new().write(true).open(sandbox.path("data")).expect("the file");
    let lose = |block: u64| file.write_all_at(&[0; 4096], block * 4096).expect("a write");
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
    // A state that does not say what was synced.
    sandbox.run(&job("--rw write --number_ios 100 --fdatasync 30 --verify_state_save")).assert_code(0);
    let line = "--rw write --fdatasync 30 --verify_only --verify_state_load --verify_policy fsynced";
    let unknown = sandbox.run(&job(line));
    unknown.assert_code(1);
    assert!(unknown.out_joined().contains("does not say what was synced"), "{unknown:?}");
}

/// Goal: a job that compares what was synced does not pass where that is nothing.
#[test]
fn nothing_synced_is_nothing_compared_and_no_success() {
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
    // Who only keeps the state compares nothing, and says nothing of it.
    sandbox.run(&job(&format!("{words} --do_verify=false --verify_state_save"))).assert_code(0);
}
