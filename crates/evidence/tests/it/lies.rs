//! False results staged on this machine with real I/O, and correct runs that no check flags.
//!
//! Locations: the build directory, `/dev/shm`, and filesystems on loop devices (root). Disks are never opened
//! for writing. The table of docs/dev/staged-results.md lists each situation with the sentence that is printed here.

use crate::support::*;
use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use trueio_model::{Cause, CheckOutcome, DirectPolicy, EvidenceLevel, JobPlan, OpKind, OpMix, Prepare, Verdict};

const SIZE: u64 = 8 * MIB;
const BLOCKS: u64 = SIZE / 4096;

fn plan(path: &Path, kind: OpKind, direct: DirectPolicy) -> JobPlan {
    let mut job = job(path.to_str().expect("a plain name"), OpMix::Only(kind), SIZE);
    job.direct = direct;
    job.files[0].prepare = Prepare::UseExisting;
    job
}

/// Returns true if the build directory's filesystem supports direct I/O and its disk is visible.
fn build_directory_has_a_disk() -> bool {
    let folder = folder();
    let system = trueio_device::System::live();
    let facts = trueio_device::target_facts(&system, folder.path()).expect("facts of the build directory");
    let is_fit = facts.direct.support == trueio_model::DirectSupport::Direct && !facts.disks.is_empty();
    if !is_fit {
        skip("disk", "the build directory's filesystem has no direct I/O, or no disk is visible below it");
    }
    is_fit
}

/// I/O of other processes on this machine is not ours: here only our own part must be unflagged.
fn own_objections(judgement: &Judgement) -> Vec<(&str, CheckOutcome)> {
    let others = |name: &str, sentence: &str| {
        name == "foreign_io" || (name == "block_layer_bytes" && sentence.contains("other processes"))
    };
    judgement.objections().into_iter().filter(|(name, _)| !others(name, &judgement.check(name).sentence)).collect()
}

/// The highest level of evidence on a plain filesystem here.
fn best_level() -> EvidenceLevel {
    if trueio_evidence::why_not_traced().is_none() { EvidenceLevel::E3 } else { EvidenceLevel::E2 }
}

#[test]
fn a_correct_direct_read_and_write_are_not_flagged_on_this_disk() {
    let _alone = alone();
    if !build_directory_has_a_disk() {
        return;
    }
    let folder = folder();
    let path = folder.path().join("data");
    drop(stored_file(&path, SIZE));
    for kind in [OpKind::Read, OpKind::Write] {
        let judgement = stage(plan(&path, kind, DirectPolicy::Require), |calls| {
            calls.blocks(kind, &open(&path, libc::O_DIRECT), &path, BLOCKS);
        });
        assert_eq!(own_objections(&judgement), [], "{kind}:\n{}", judgement.report());
        judgement.assert("direct_granted", CheckOutcome::Passed, "");
        judgement.assert("page_cache", CheckOutcome::Passed, "left no pages");
        assert_eq!(judgement.level, best_level(), "{}", judgement.report());
        judgement.assert_listed("direct reads, and direct writes, of a stored file on this disk", &[]);
    }
}

/// Goal: a delay between program and disk is not the disk's latency.
/// Method: each 50th read of a file on a private disk is delayed by 100 ms, as a library that is preloaded can; its twin is not. A
/// task that waits for a processor can delay a completion, so the share of such waits is left out.
#[test]
fn reads_that_a_library_delays_are_disturbed() {
    let _alone = alone();
    let Some(mount) = mounted("ext4", "noatime").filter(|_| best_level() == EvidenceLevel::E3) else { return };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    let read = |delay: Option<(u64, Duration)>| {
        stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
            calls.delay = delay;
            calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, BLOCKS);
        })
    };
    let delayed = read(Some((50, Duration::from_millis(100))));
    assert_eq!(delayed.objections(), [("latency_origin", CheckOutcome::Suspect)], "{}", delayed.report());
    delayed.assert_listed("a library delays each 50th direct read by 100 ms", &["latency_origin"]);
    let honest = read(None);
    assert_eq!(honest.objections(), [], "{}", honest.report());
    honest.assert_listed("the same reads without the library", &[]);
}

/// Goal: a delay between program and disk is not the time of a commit.
/// Method: each sync call on a private disk is delayed by 12 ms, as a library that is preloaded can; its twin, which runs first, is not. The disk of the
/// device's file may be busy, and the delay is four times as long as a commit takes then.
#[test]
fn sync_calls_that_a_library_delays_are_disturbed() {
    const COMMITS: u64 = 100;
    let _alone = alone();
    let Some(mount) = mounted("ext4", "noatime").filter(|_| best_level() == EvidenceLevel::E3) else { return };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    let mut log = plan(&path, OpKind::Write, DirectPolicy::Off);
    log.flush.fdatasync_every = 1;
    let took = Cell::new(Duration::ZERO);
    let commit = |sync_delay| {
        stage(log.clone(), |calls| {
            calls.sync_delay = sync_delay;
            let file = open(&path, 0);
            let began = Instant::now();
            for block in 0..COMMITS {
                let mut page = [7u8; 4096];
                calls.transfer(OpKind::Write, &file, &path, page.as_mut_ptr(), 4096, block * 4096);
                calls.fdatasync(&file);
            }
            took.set(began.elapsed());
        })
    };
    let honest = commit(None);
    assert_eq!(honest.objections(), [], "{}", honest.report());
    honest.assert_listed("the same commits without the library", &[]);
    let delay = Duration::from_millis(12).max(4 * took.get() / COMMITS as u32);
    let delayed = commit(Some(delay));
    assert_eq!(delayed.objections(), [("latency_origin", CheckOutcome::Suspect)], "{}", delayed.report());
    delayed.assert_listed("a library delays each `fdatasync` by 12 ms", &["latency_origin"]);
}

/// No other process uses this disk, so the verdict itself can be asserted.
#[test]
fn correct_runs_on_a_private_disk_are_supported() {
    let _alone = alone();
    let Some(mount) = mounted("ext4", "noatime") else { return };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    for kind in [OpKind::Read, OpKind::Write] {
        let judgement = stage(plan(&path, kind, DirectPolicy::Require), |calls| {
            calls.blocks(kind, &open(&path, libc::O_DIRECT), &path, BLOCKS);
        });
        assert_eq!(judgement.verdict, Verdict::Supported, "{kind}:\n{}", judgement.report());
        assert_eq!(judgement.level, best_level(), "{}", judgement.report());
        judgement.assert_listed("direct reads, and direct writes, on ext4 on a private disk", &[]);
    }
    let mut log = plan(&path, OpKind::Write, DirectPolicy::Off);
    log.flush.fdatasync_every = 1;
    let judgement = stage(log, |calls| {
        let file = open(&path, 0);
        for block in 0..200 {
            let mut page = [7u8; 4096];
            calls.transfer(OpKind::Write, &file, &path, page.as_mut_ptr(), 4096, block * 4096);
            calls.fdatasync(&file);
        }
    });
    assert_eq!(judgement.verdict, Verdict::Supported, "{}", judgement.report());
    judgement.assert("flushes", CheckOutcome::Passed, "");
    judgement.assert_listed("buffered writes there, each followed by `fdatasync`", &[]);
}

#[test]
fn a_sparse_file_read_with_direct_io_is_detected_by_four_checks() {
    let _alone = alone();
    if !build_directory_has_a_disk() {
        return;
    }
    let folder = folder();
    let path = folder.path().join("sparse");
    File::create_new(&path).and_then(|file| file.set_len(SIZE)).expect("a sparse file");
    let judgement = stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, BLOCKS);
    });
    assert_eq!(judgement.verdict, Verdict::Contradicted);
    judgement.assert("call_results", CheckOutcome::Passed, "");
    judgement.assert("holes", CheckOutcome::Contradicted, "100 % of the read region is not stored");
    judgement.assert("process_read_bytes", CheckOutcome::Contradicted, "");
    assert_eq!(judgement.check("process_read_bytes").cause, Cause::Setup, "no cache served the reads");
    judgement.assert_listed("a sparse file, read with direct I/O", &["holes", "process_read_bytes"]);
}

#[test]
fn preallocated_space_that_was_never_written_counts_as_a_hole() {
    let _alone = alone();
    if !build_directory_has_a_disk() {
        return;
    }
    let folder = folder();
    let path = folder.path().join("reserved");
    let file = File::create_new(&path).expect("a new file");
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SIZE).expect("fallocate");
    let judgement = stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, BLOCKS);
    });
    judgement.assert("holes", CheckOutcome::Contradicted, "");
    assert!(judgement.check("holes").found.contains("8 MiB preallocated but never written"), "{}", judgement.report());
    judgement.assert_listed("preallocated space that was never written, read with direct I/O", &["holes"]);
}

#[test]
fn cached_reads_are_attributed_to_the_page_cache() {
    let _alone = alone();
    if !build_directory_has_a_disk() {
        return;
    }
    let folder = folder();
    let path = folder.path().join("data");
    drop(stored_file(&path, SIZE));
    // The cached share is not asserted, because the kernel may reclaim pages at any time. Up to a tenth is
    // not suspect.
    assert_eq!(std::fs::read(&path).expect("the file").len() as u64, SIZE);
    let judgement = stage(plan(&path, OpKind::Read, DirectPolicy::Off), |calls| {
        calls.blocks(OpKind::Read, &open(&path, 0), &path, BLOCKS);
    });
    assert_eq!(judgement.verdict, Verdict::Suspect, "{}", judgement.report());
    judgement.assert("process_read_bytes", CheckOutcome::Suspect, "were fetched");
    judgement.assert("page_cache", CheckOutcome::Suspect, " % of the files were in the page cache before");
    judgement.assert("working_set", CheckOutcome::Suspect, "");
    judgement.assert("direct_granted", CheckOutcome::NotApplicable, "");
    let checks = ["process_read_bytes", "page_cache", "working_set"];
    judgement.assert_listed("a file that is cached, read through the page cache", &checks);
}

#[test]
fn buffered_writes_that_were_never_flushed_are_reported_in_memory() {
    let _alone = alone();
    let Some(mount) = mounted("ext4", "noatime") else { return };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    let judgement = stage(plan(&path, OpKind::Write, DirectPolicy::Off), |calls| {
        calls.blocks(OpKind::Write, &open(&path, 0), &path, BLOCKS);
    });
    assert_eq!(judgement.verdict, Verdict::Suspect, "{}", judgement.report());
    judgement.assert("block_layer_bytes", CheckOutcome::Suspect, "stayed in the page cache");
    judgement.assert("page_cache", CheckOutcome::Suspect, "in memory only");
    judgement.assert("flushes", CheckOutcome::NotApplicable, "may not survive a power cut");
    judgement.assert_listed("buffered writes that were never flushed", &["block_layer_bytes", "page_cache"]);
}

/// The error that caused the published 0.112 s for 1 GiB: a buffer from `malloc`, every call EINVAL, results
/// ignored.
#[test]
fn a_misaligned_direct_write_is_explained_with_address_requirement_and_remedy() {
    let _alone = alone();
    if !build_directory_has_a_disk() {
        return;
    }
    let folder = folder();
    let path = folder.path().join("data");
    drop(stored_file(&path, SIZE));
    const LENGTH: usize = 128 << 10;
    let judgement = stage(plan(&path, OpKind::Write, DirectPolicy::Require), |calls| {
        let file = open(&path, libc::O_DIRECT);
        let mut buffer = vec![0u8; LENGTH + 1024];
        // 160 bytes past a multiple of 512, as `malloc` returns large blocks.
        let shift = (512 + 160 - buffer.as_ptr() as usize % 512) % 512;
        for block in 0..SIZE / LENGTH as u64 {
            let address = buffer[shift..].as_mut_ptr();
            calls.transfer(OpKind::Write, &file, &path, address, LENGTH, block * LENGTH as u64);
        }
    });
    assert_eq!(judgement.verdict, Verdict::Contradicted);
    judgement.assert("call_results", CheckOutcome::Contradicted, "64 of 64 I/Os failed");
    let sentence = &judgement.check("call_results").sentence;
    for words in ["Invalid argument", "address is 160 bytes past a multiple of 512", "align the buffers"] {
        assert!(sentence.contains(words), "`{words}` is missing in: {sentence}");
    }
    judgement.assert_listed("direct writes from a buffer of `malloc`, each of which fails", &["call_results"]);
}

#[test]
fn a_file_on_tmpfs_with_required_direct_io_is_contradicted() {
    let _alone = alone();
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return skip("tmpfs", "there is no /dev/shm") };
    let path = folder.path().join("data");
    drop(stored_file(&path, SIZE));
    let judgement = stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
        // Some kernels refuse the flag on tmpfs; the setting in the plan is judged.
        calls.blocks(OpKind::Read, &open(&path, 0), &path, BLOCKS);
    });
    assert_eq!((judgement.verdict, judgement.level), (Verdict::Contradicted, EvidenceLevel::E0));
    judgement.assert("direct_granted", CheckOutcome::Contradicted, "accepts O_DIRECT and ignores it");
    judgement.assert("memory_backed", CheckOutcome::Suspect, "no disk was measured");
    judgement.assert("block_layer_bytes", CheckOutcome::NotSeen, "tmpfs");
    judgement.assert_listed("required direct I/O on tmpfs", &["direct_granted", "memory_backed"]);
}

/// btrfs passes direct writes to files with checksums through the page cache, writes them out and drops the
/// pages again; reads of the same file are direct. Only its declaration shows the buffered writes.
#[test]
fn silently_buffered_direct_writes_on_btrfs_are_detected_and_its_direct_reads_pass() {
    let _alone = alone();
    let Some(mount) = mounted("btrfs", "noatime") else { return };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    let judgement = stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, BLOCKS);
    });
    judgement.assert("direct_granted", CheckOutcome::Passed, "These reads were direct");
    assert_eq!(judgement.verdict, Verdict::Supported, "{}", judgement.report());
    judgement.assert_listed("direct reads on btrfs", &[]);

    let judgement = stage(plan(&path, OpKind::Write, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Write, &open(&path, libc::O_DIRECT), &path, 512);
    });
    assert_eq!(judgement.verdict, Verdict::Contradicted);
    judgement.assert("direct_granted", CheckOutcome::Contradicted, "accepts O_DIRECT and ignores it");
    judgement.assert("call_results", CheckOutcome::Passed, "");
    judgement.assert_listed("required direct writes on btrfs, which buffers them", &["direct_granted"]);
}

#[test]
fn buffered_direct_writes_on_ext4_with_data_journal_are_detected_by_the_disks_counters() {
    let _alone = alone();
    let Some(mount) = mounted("ext4", "data=journal,noatime") else { return };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    // 2 MiB: more would fill the small journal, and a full journal is written out.
    let judgement = stage(plan(&path, OpKind::Write, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Write, &open(&path, libc::O_DIRECT), &path, 512);
    });
    judgement.assert("direct_granted", CheckOutcome::Contradicted, "");
    judgement.assert("block_layer_bytes", CheckOutcome::Contradicted, "did_not_reach_device");
    judgement.assert("page_cache", CheckOutcome::Contradicted, "grew");
    let checks = ["direct_granted", "block_layer_bytes", "page_cache"];
    judgement.assert_listed("required direct writes on ext4 with data=journal, which buffers them", &checks);
}

#[test]
fn missing_flushes_of_a_filesystem_without_barriers_are_detected() {
    let _alone = alone();
    let Some(mount) = mounted("ext4", "nobarrier,noatime") else { return };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    let mut job = plan(&path, OpKind::Write, DirectPolicy::Off);
    job.flush.fdatasync_every = 1;
    let judgement = stage(job, |calls| {
        let file = open(&path, 0);
        for block in 0..100 {
            let mut page = [7u8; 4096];
            calls.transfer(OpKind::Write, &file, &path, page.as_mut_ptr(), 4096, block * 4096);
            calls.fdatasync(&file);
        }
    });
    judgement.assert("flushes", CheckOutcome::Contradicted, "mounted without barriers");
    judgement.assert("block_layer_bytes", CheckOutcome::Passed, "");
    judgement.assert_listed("`fdatasync` that never becomes a flush: ext4 with nobarrier", &["flushes"]);
}

#[test]
fn a_loop_device_over_tmpfs_is_reported_as_memory() {
    let _alone = alone();
    let Ok(shm) = tempfile::tempdir_in("/dev/shm") else { return skip("tmpfs", "there is no /dev/shm") };
    let mount = match Loop::create_in(shm, 64 * MIB, BUFFERED) {
        Ok(below) => Mount::on("ext4", below, "noatime").expect("ext4 on a loop device"),
        Err(why) => return skip("loop", &why),
    };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    let judgement = stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, BLOCKS);
    });
    assert_eq!(judgement.objections(), [("memory_backed", CheckOutcome::Suspect)], "{}", judgement.report());
    judgement.assert("memory_backed", CheckOutcome::Suspect, "tmpfs on /dev/shm");
    judgement.assert_listed("a filesystem on a loop device over tmpfs", &["memory_backed"]);
}

/// Goal: other I/O on the same disk makes the phase suspect, although all our own I/O is real. Method: a
/// thread writes its own file with direct I/O before and during the phase, which reads.
#[test]
fn other_io_on_the_disk_makes_the_phase_suspect() {
    let _alone = alone();
    let Some(mount) = mounted("ext4", "noatime") else { return };
    let path = mount.path.join("data");
    let neighbour = mount.path.join("neighbour");
    drop(stored_file(&path, SIZE));
    drop(stored_file(&neighbour, SIZE));
    let writes = || Calls::default().blocks(OpKind::Write, &open(&neighbour, libc::O_DIRECT), &neighbour, 64);
    let judgement = with_neighbour(writes, |times| {
        stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
            // In turns, so that each traced window has I/O of both, however rarely the other thread gets a processor.
            for _ in 0..BLOCKS / 16 {
                let before = times.load(Ordering::Relaxed);
                calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, 16);
                while times.load(Ordering::Relaxed) == before {
                    std::thread::yield_now();
                }
            }
        })
    });
    assert_eq!(judgement.objections(), [("foreign_io", CheckOutcome::Suspect)], "{}", judgement.report());
    judgement.assert_listed("another thread writes another file of the same disk", &["foreign_io"]);
}

/// Goal: a device that was never written is suspect although it completes all reads. Method: a loop device
/// over a sparse file, read raw; then the same after it was written.
#[test]
fn a_blank_device_is_suspect_and_a_written_one_is_not() {
    let _alone = alone();
    let device = match Loop::create(8 * MIB, DIRECT) {
        Ok(device) => device,
        Err(why) => return skip("loop", &why),
    };
    let path = device.path().to_owned();
    let look = || {
        stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
            calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, BLOCKS);
        })
    };
    let judgement = look();
    judgement.assert("zero_blocks", CheckOutcome::Suspect, "100 % of the sampled blocks");
    judgement.assert("block_layer_bytes", CheckOutcome::Passed, "");
    judgement.assert_listed("a device that was never written, read with direct I/O", &["zero_blocks"]);
    let content: Vec<u8> = (0..8 * MIB).map(|i| (i % 251) as u8 | 1).collect();
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).expect("the loop device");
    std::io::Write::write_all(&mut file, &content).and_then(|()| file.sync_all()).expect("a write");
    drop(file);
    let judgement = look();
    judgement.assert("zero_blocks", CheckOutcome::Passed, "contain data");
    assert_eq!(own_objections(&judgement), [], "{}", judgement.report());
    judgement.assert_listed("the same device after it was written", &[]);
}
