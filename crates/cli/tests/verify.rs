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
