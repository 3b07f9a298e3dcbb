//! Requests traced on loop devices: what E3 proves, what it flags, and that it leaves nothing.
//!
//! Needs root and loop devices. The loop devices are private, so no other process uses them.

use crate::support::*;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;
use trueio_model::{CheckOutcome, DirectPolicy, EvidenceLevel, JobPlan, OpKind, OpMix, Prepare, SyncMode, Verdict};

const SIZE: u64 = 8 * MIB;
const BLOCKS: u64 = SIZE / 4096;

fn plan(path: &Path, kind: OpKind, direct: DirectPolicy) -> JobPlan {
    let mut job = job(path.to_str().expect("a plain name"), OpMix::Only(kind), SIZE);
    job.direct = direct;
    job.files[0].prepare = Prepare::UseExisting;
    job
}

/// Returns true if requests can be traced.
fn can_trace() -> bool {
    match trueio_evidence::why_not_traced() {
        None => true,
        Some(why) => {
            skip("root", &why);
            false
        }
    }
}

/// A filesystem on a private loop device with a stored file, where requests can be traced.
fn mounted_file(kind: &str, options: &str) -> Option<(Mount, std::path::PathBuf)> {
    let mount = if can_trace() { mounted(kind, options)? } else { return None };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    Some((mount, path))
}

/// 200 blocks through the page cache, with an fdatasync after each.
fn log(path: &Path) -> Judgement {
    let mut job = plan(path, OpKind::Write, DirectPolicy::Off);
    job.flush.fdatasync_every = 1;
    stage(job, |calls| {
        let file = open(path, 0);
        for block in 0..200 {
            let mut page = [7u8; 4096];
            calls.transfer(OpKind::Write, &file, path, page.as_mut_ptr(), 4096, block * 4096);
            calls.fdatasync(&file);
        }
    })
}

#[test]
fn direct_transfers_are_found_at_their_disk_offsets_and_nothing_is_flagged() {
    let _alone = alone();
    for kind in ["ext4", "xfs"] {
        let options = "noatime";
        let size = if kind == "xfs" { 512 * MIB } else { 128 * MIB };
        let Some((_mount, path)) = place_of_size(kind, options, size) else { continue };
        for op in [OpKind::Read, OpKind::Write] {
            let judgement = stage(plan(&path, op, DirectPolicy::Require), |calls| {
                calls.blocks(op, &open(&path, libc::O_DIRECT), &path, BLOCKS);
            });
            assert_eq!(judgement.verdict, Verdict::Supported, "{kind} {op}:\n{}", judgement.report());
            assert_eq!(judgement.level, EvidenceLevel::E3, "{kind} {op}:\n{}", judgement.report());
            judgement.assert("traced_requests", CheckOutcome::Passed, "at its offset on the disk");
            let trace = judgement.trace.as_ref().expect("a trace");
            assert_followed_below(&judgement);
            // The number depends on how busy the machine is: a stall may fill a window.
            let found = &trace.transfers;
            assert_eq!(found.matched_count, found.sampled_count, "{kind} {op}:\n{}", judgement.report());
            assert_eq!(trace.others.count, 0, "{kind} {op}:\n{}", judgement.report());
            judgement.assert_listed("direct transfers on ext4 and XFS, traced request by request", &[]);
            let [parts] = trace.latency[..] else { panic!("{kind} {op}: {:?}", trace.latency) };
            assert_eq!((parts.op, parts.io_count), (op, found.matched_count));
            let sum = parts.scheduler.mean_ns + parts.device.mean_ns + parts.rest.mean_ns;
            assert!(parts.total.mean_ns - sum <= 3 && parts.device.mean_ns > 0, "{parts:?}");
        }
    }
}

/// Asserts that what was found on a loop device was found on the disk of its file, too, and that the sentence says so; or why its file was not
/// followed, as in a container whose root is an overlay.
fn assert_followed_below(judgement: &Judgement) {
    let trace = judgement.trace.as_ref().expect("a trace");
    let below = trace.below.as_ref().expect("a loop device");
    if let Some(why) = &below.missing {
        judgement.assert("traced_requests", CheckOutcome::Passed, "Requests were not followed below loop");
        return judgement.assert("traced_requests", CheckOutcome::Passed, why);
    }
    let sum = &below.transfers;
    assert!(sum.matched_count > 0 && sum.missing_count == 0, "{sum:?}\n{}", judgement.report());
    judgement.assert("traced_requests", CheckOutcome::Passed, "were also found at the places of its file on");
    if judgement.check("flush_order").outcome == CheckOutcome::Passed {
        assert!(below.syncs.durable_count() > 0 && below.syncs.failed_count() == 0, "{}", judgement.report());
        judgement.assert("flush_order", CheckOutcome::Passed, "were also durable on");
    }
}

/// A loop device whose file is on a filesystem of another loop device, which always can be followed. Fields drop in their order.
struct Nested {
    upper: Loop,
    lower: Mount,
}

/// The file of the upper device has all its space, written or only reserved.
fn nested(options: &str, loop_options: &[&str], is_written: bool) -> Option<Nested> {
    let lower = if can_trace() { mounted("ext4", options)? } else { return None };
    let image = lower.path.join("image");
    if is_written {
        drop(stored_file(&image, SIZE));
    } else {
        let file = File::create_new(&image).expect("a file");
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SIZE).expect("fallocate");
        file.sync_all().expect("fsync");
    }
    let upper = Loop::try_over(&image, loop_options).map_err(|why| skip("loop", &why)).ok()?;
    Some(Nested { upper, lower })
}

impl Nested {
    /// Stages direct transfers of the upper device: reads, or durable writes.
    fn stage(&self, op: OpKind) -> Judgement {
        let path = self.upper.path();
        let mut job = plan(path, op, DirectPolicy::Require);
        let mut flags = libc::O_DIRECT;
        if op == OpKind::Write {
            job.sync = SyncMode::Dsync;
            flags |= libc::O_DSYNC;
        }
        stage(job, |calls| calls.blocks(op, &open(path, flags), path, 256))
    }

    fn lower_name(&self) -> &str {
        self.lower.below.as_ref().expect("a loop device").name()
    }
}

/// Goal: a loop device is followed to the places of its file on the disk below, and its flushes to that disk's; through the page cache of the
/// file, requests below are missing, which is counted, and no finding follows from it.
#[test]
fn requests_of_a_loop_device_are_found_on_the_disk_of_its_file() {
    let _alone = alone();
    for op in [OpKind::Read, OpKind::Write] {
        let Some(stack) = nested("noatime", DIRECT, true) else { return };
        let judgement = stack.stage(op);
        let below = judgement.trace.as_ref().and_then(|trace| trace.below.as_ref()).expect("a loop device");
        assert_eq!(below.loops, [stack.upper.name()]);
        assert_eq!(below.files[0], stack.upper.backing.display().to_string());
        let sum = &below.transfers;
        assert!(sum.matched_count > 0 && sum.missing_count == 0, "{op} {below:?}\n{}", judgement.report());
        judgement.assert("traced_requests", CheckOutcome::Passed, "were also found at the places of its file on");
        if op == OpKind::Write {
            assert!(below.syncs.durable_count() > 0 && below.syncs.failed_count() == 0, "{below:?}");
            judgement.assert("flush_order", CheckOutcome::Passed, "were also durable on");
        }
        judgement.assert_listed("direct transfers of a loop device, followed to the disk of its file", &[]);
    }
    let Some(stack) = nested("noatime", BUFFERED, true) else { return };
    let mut file = File::open(&stack.upper.backing).expect("the file");
    std::io::copy(&mut file, &mut std::io::sink()).expect("its content is cached now");
    let judgement = stack.stage(OpKind::Read);
    let below = judgement.trace.as_ref().and_then(|trace| trace.below.as_ref()).expect("a loop device");
    assert!(below.transfers.missing_count > 0 && below.transfers.matched_count == 0, "{below:?}");
    judgement.assert("traced_requests", CheckOutcome::Passed, ", 0 were also found");
    judgement.assert("memory_backed", CheckOutcome::Suspect, "uses the page cache of its backing file");
}

/// The false result: space of the file that was never written is read as zeros, and no disk is asked.
#[test]
fn reads_of_a_loop_device_that_reach_no_disk_below_are_suspect() {
    let _alone = alone();
    let Some(stack) = nested("noatime", DIRECT, false) else { return };
    let judgement = stack.stage(OpKind::Read);
    judgement.assert("traced_requests", CheckOutcome::Suspect, "Those missing did not reach that disk: a request of");
    judgement.assert_listed("reads of a loop device whose file is only reserved, traced", &["traced_requests"]);
}

/// The false result: a loop device completes flushes, but the filesystem of its file sends none to the disk.
#[test]
fn flushes_of_a_loop_device_that_reach_no_disk_below_are_contradicted() {
    let _alone = alone();
    let Some(stack) = nested("nobarrier,noatime", DIRECT, true) else { return };
    let judgement = stack.stage(OpKind::Write);
    let words = format!("but {} received none after the data", stack.lower_name());
    judgement.assert("flush_order", CheckOutcome::Contradicted, &words);
    judgement.assert("traced_requests", CheckOutcome::Passed, "were also found");
    let situation = "durable writes of a loop device whose file is on ext4 without barriers, traced";
    judgement.assert_listed(situation, &["flush_order"]);
}

fn place_of_size(kind: &str, options: &str, size: u64) -> Option<(Mount, std::path::PathBuf)> {
    if !can_trace() {
        return None;
    }
    let below = Loop::create(size, DIRECT).map_err(|why| skip("loop", &why)).ok()?;
    let mount = Mount::on(kind, below, options).map_err(|why| skip(kind, &why)).ok()?;
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    Some((mount, path))
}

#[test]
fn synced_writes_on_a_filesystem_with_barriers_are_flushed_after_their_data() {
    let _alone = alone();
    let Some((_mount, path)) = mounted_file("ext4", "noatime") else { return };
    let judgement = log(&path);
    judgement.assert("flush_order", CheckOutcome::Passed, "before its call returned");
    assert_eq!(judgement.verdict, Verdict::Supported, "{}", judgement.report());
    assert_eq!(judgement.level, EvidenceLevel::E3, "{}", judgement.report());
    let syncs = &judgement.trace.as_ref().expect("a trace").syncs;
    assert!(syncs.flushed_count > 0 && syncs.failed_count() == 0, "{}", judgement.report());
    judgement.assert_listed("synced writes on ext4 with barriers, traced", &[]);
}

/// The false result: `fdatasync` returns, but the disk received no flush of its volatile cache.
#[test]
fn each_synced_write_without_barriers_is_reported_not_durable() {
    let _alone = alone();
    let Some((_mount, path)) = mounted_file("ext4", "nobarrier,noatime") else { return };
    let judgement = log(&path);
    judgement.assert("flush_order", CheckOutcome::Contradicted, "no flush was issued and completed in between");
    assert_eq!(judgement.level, EvidenceLevel::E3, "{}", judgement.report());
    let syncs = &judgement.trace.as_ref().expect("a trace").syncs;
    assert!(syncs.unflushed_count > 0 && syncs.durable_count() == 0, "{}", judgement.report());
    judgement.assert_listed("synced writes on ext4 without barriers, traced", &["flush_order"]);
}

#[test]
fn direct_writes_with_o_dsync_are_flushed_or_carry_forced_unit_access() {
    let _alone = alone();
    for (options, is_honest) in [("noatime", true), ("nobarrier,noatime", false)] {
        let Some((_mount, path)) = mounted_file("ext4", options) else { return };
        let mut job = plan(&path, OpKind::Write, DirectPolicy::Require);
        job.sync = SyncMode::Dsync;
        let judgement = stage(job, |calls| {
            calls.blocks(OpKind::Write, &open(&path, libc::O_DIRECT | libc::O_DSYNC), &path, 200);
        });
        let outcome = if is_honest { CheckOutcome::Passed } else { CheckOutcome::Contradicted };
        judgement.assert("flush_order", outcome, "");
        judgement.assert("traced_requests", CheckOutcome::Passed, "");
        if is_honest {
            assert_followed_below(&judgement);
            assert_eq!(judgement.objections(), [], "{}", judgement.report());
            judgement.assert_listed("direct writes with `O_DSYNC`", &[]);
        } else {
            judgement.assert_listed("direct writes with `O_DSYNC` on ext4 without barriers", &["flush_order"]);
        }
    }
}

/// The false result: a layer completes sync calls itself (such as libeatmydata). Nothing is written.
#[test]
fn suppressed_sync_calls_are_reported_to_return_before_the_data_was_written() {
    let _alone = alone();
    let Some((_mount, path)) = mounted_file("ext4", "noatime") else { return };
    let mut job = plan(&path, OpKind::Write, DirectPolicy::Off);
    job.flush.fdatasync_every = 1;
    let nothing = File::open("/dev/null").expect("/dev/null");
    let judgement = stage(job, |calls| {
        let file = open(&path, 0);
        for block in 0..100 {
            let mut page = [7u8; 4096];
            calls.transfer(OpKind::Write, &file, &path, page.as_mut_ptr(), 4096, block * 4096);
            calls.swallowed_sync(&nothing);
        }
    });
    judgement.assert("flush_order", CheckOutcome::Contradicted, "no request had written it");
    judgement.assert_listed("sync calls that return without doing anything (libeatmydata)", &["flush_order"]);
}

/// Goal: bytes of another process on the same disk are attributed to it by name, and I/O on another disk is
/// ignored. Method: a named thread of another process (`dd`) writes a file next to ours, or one on another
/// loop device, while we read.
#[test]
fn other_io_on_the_same_disk_is_named_with_its_bytes_and_io_on_another_disk_is_not() {
    let _alone = alone();
    let Some((mount, path)) = mounted_file("ext4", "noatime") else { return };
    let Some(other) = mounted("ext4", "noatime") else { return };
    for (folder, is_beside) in [(&mount.path, true), (&other.path, false)] {
        let neighbour = folder.join("neighbour");
        drop(stored_file(&neighbour, SIZE));
        let of = format!("of={}", neighbour.display());
        let dd = || {
            let arguments = [of.as_str(), "if=/dev/zero", "bs=64k", "count=128", "conv=notrunc", "oflag=direct"];
            let _ = std::process::Command::new("dd").args(arguments).output().expect("dd");
        };
        let judgement = with_neighbour(dd, |times| {
            stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
                let file = open(&path, libc::O_DIRECT);
                // Several windows, however slowly `dd` starts.
                let (began, before) = (std::time::Instant::now(), times.load(Ordering::Relaxed));
                while began.elapsed() < std::time::Duration::from_secs(2) || times.load(Ordering::Relaxed) < before + 4
                {
                    calls.blocks(OpKind::Read, &file, &path, 256);
                }
            })
        });
        let trace = judgement.trace.as_ref().expect("a trace");
        if is_beside {
            judgement.assert("foreign_io", CheckOutcome::Suspect, "outside the measured files: dd");
            judgement.assert_listed("`dd` writes another file of the same disk", &["foreign_io"]);
            assert!(trace.others.count >= 8, "{}", judgement.report());
            // Each request of the other process carries 64 KiB, and none of ours is counted among them.
            assert_eq!(trace.others.bytes, trace.others.count * 65536, "{}", judgement.report());
        } else {
            judgement.assert("foreign_io", CheckOutcome::Passed, "");
            assert_eq!((trace.others.count, trace.disks.len()), (0, 1), "{}", judgement.report());
            judgement.assert_listed("`dd` writes a file of another disk", &[]);
        }
        assert_eq!(trace.transfers.missing_count, 0, "{}", judgement.report());
    }
}

/// Reads for 1.6 s of a phase of a minute, whose second window opens after two seconds at the earliest, and looks at the counters; `dd` writes `of`
/// again and again once the first window is closed.
fn read_between_windows(path: &Path, of: Option<&Path>) -> Judgement {
    let second = std::time::Duration::from_secs(1);
    stage_for(60 * second, plan(path, OpKind::Read, DirectPolicy::Require), |calls| {
        let began = std::time::Instant::now();
        let file = open(path, libc::O_DIRECT);
        while calls.open_window() == 1 {
            calls.blocks(OpKind::Read, &file, path, 8);
        }
        let neighbour = || match of {
            Some(of) => {
                let of = format!("of={}", of.display());
                let arguments = [of.as_str(), "if=/dev/zero", "bs=64k", "count=128", "conv=notrunc", "oflag=direct"];
                let _ = std::process::Command::new("dd").args(arguments).output().expect("dd");
            }
            None => std::thread::sleep(second / 10),
        };
        with_neighbour(neighbour, |_| {
            while began.elapsed() < second * 8 / 5 {
                calls.blocks(OpKind::Read, &file, path, 8);
                calls.look();
            }
        });
    })
}

/// Goal: a neighbour that comes and goes between two windows of a long phase is named where counters show it, and counts for no sum; without one
/// nobody is named. Method: on a busy machine `dd` may not run at the right time, so the phase is repeated.
#[test]
fn a_neighbour_between_two_windows_is_named_by_a_window_that_counters_ask_for() {
    const TRIES_MAX: usize = 5;
    let _alone = alone();
    let Some((mount, path)) = mounted_file("ext4", "noatime") else { return };
    let neighbour = mount.path.join("neighbour");
    drop(stored_file(&neighbour, SIZE));
    let is_named = |judgement: &Judgement| {
        let trace = judgement.trace.as_ref().expect("a trace");
        // A thread that waited for a processor may have seen the second window.
        assert!(trace.window_count > 1 || trace.others.count == 0, "{}", judgement.report());
        trace.other_processes.iter().any(|process| process.name == "dd" && process.write_bytes > 0)
    };
    let mut tries = (0..TRIES_MAX).map(|_| read_between_windows(&path, Some(&neighbour)));
    let judgement = tries.find(is_named).expect("dd is named in one of the phases");
    judgement.assert("foreign_io", CheckOutcome::Suspect, "dd (");
    judgement.assert_listed("`dd` writes between two traced windows of a long phase", &["foreign_io"]);
    let alone = read_between_windows(&path, None);
    assert!(!is_named(&alone), "{}", alone.report());
}

/// Goal: a program that uses the disk of a loop device's file is named, with that disk. Method: `dd` reads another file there past the page cache while
/// we read the loop device. Other programs may use that disk, too.
#[test]
fn a_program_that_uses_the_disk_below_a_loop_device_is_named() {
    let _alone = alone();
    let Some((_mount, path)) = mounted_file("ext4", "noatime") else { return };
    let folder = trueio_testkit::folder();
    let other = folder.path().join("other");
    // Long enough that starting `dd` takes little of the time.
    drop(stored_file(&other, 32 * SIZE));
    let of = format!("if={}", other.display());
    let dd = || {
        let arguments = [of.as_str(), "of=/dev/null", "bs=64k", "iflag=direct"];
        let _ = std::process::Command::new("dd").args(arguments).output().expect("dd");
    };
    let judgement = with_neighbour(dd, |times| {
        stage_with_users_below(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
            let file = open(&path, libc::O_DIRECT);
            let (began, before) = (std::time::Instant::now(), times.load(Ordering::Relaxed));
            while began.elapsed() < std::time::Duration::from_secs(2) || times.load(Ordering::Relaxed) < before + 2 {
                calls.blocks(OpKind::Read, &file, &path, 256);
            }
        })
    });
    let below = judgement.trace.as_ref().and_then(|trace| trace.below.as_ref()).expect("a trace");
    let [disk] = &below.disks[..] else { return println!("the disk below is not known: {below:?}") };
    judgement.assert("foreign_io", CheckOutcome::Suspect, &format!("Other processes used {disk}, below loop"));
    assert!(below.other_processes.iter().any(|process| process.name == "dd"), "{below:?}");
}

/// Goal: a program that reads the measured file itself is named. Method: `dd` reads it past the page cache while we do.
#[test]
fn a_program_that_reads_the_measured_file_is_named() {
    let _alone = alone();
    let Some((_mount, path)) = mounted_file("ext4", "noatime") else { return };
    let of = format!("if={}", path.display());
    let dd = || {
        let arguments = [of.as_str(), "of=/dev/null", "bs=64k", "count=128", "iflag=direct"];
        let _ = std::process::Command::new("dd").args(arguments).output().expect("dd");
    };
    let judgement = with_neighbour(dd, |times| {
        stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
            let file = open(&path, libc::O_DIRECT);
            let (began, before) = (std::time::Instant::now(), times.load(Ordering::Relaxed));
            while began.elapsed() < std::time::Duration::from_secs(2) || times.load(Ordering::Relaxed) < before + 4 {
                calls.blocks(OpKind::Read, &file, &path, 256);
            }
        })
    });
    judgement.assert("foreign_io", CheckOutcome::Suspect, "at the same time, also in the measured files: dd (");
    let trace = judgement.trace.as_ref().expect("a trace");
    let dd = &trace.other_processes[0];
    assert_eq!((dd.name.as_str(), dd.write_bytes, dd.in_files_bytes), ("dd", 0, dd.read_bytes), "{dd:?}");
    judgement.assert_listed("`dd` reads the measured file", &["foreign_io"]);
}

/// Reads past the page cache, with a pause after every few blocks, while a neighbour runs again and again.
///
/// What a neighbour wrote counts from a twentieth of our own bytes in the traced windows, and a busy machine gives the neighbour little of each:
/// the pauses keep our own bytes few, and the reads go on until it has run many times.
fn read_beside(path: &Path, neighbour: impl Fn() + Send + Sync) -> Judgement {
    with_neighbour(neighbour, |times| {
        stage(plan(path, OpKind::Read, DirectPolicy::Require), |calls| {
            let file = open(path, libc::O_DIRECT);
            let (began, before) = (std::time::Instant::now(), times.load(Ordering::Relaxed));
            while began.elapsed() < std::time::Duration::from_secs(3) || times.load(Ordering::Relaxed) < before + 40 {
                calls.blocks(OpKind::Read, &file, path, 8);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        })
    })
}

/// Goal: write-back is named by what it does and by the program that wrote to the page cache, though a thread of the kernel submits its
/// requests, the program has ended, and the one that waits for the disk (`sync`) is another one.
/// Method: a shell runs `dd` through the page cache, waits for it, and becomes `sync`.
#[test]
fn write_back_is_named_by_the_program_that_dirtied_the_pages() {
    let _alone = alone();
    let Some((mount, path)) = mounted_file("ext4", "noatime") else { return };
    let neighbour = mount.path.join("neighbour");
    drop(stored_file(&neighbour, SIZE));
    let script = r#"dd if=/dev/zero of="$0" bs=64k count=128 conv=notrunc 2>/dev/null; exec sync -f "$0""#;
    let shell = || {
        let _ = std::process::Command::new("sh").args(["-c", script]).arg(&neighbour).output().expect("sh");
    };
    let judgement = read_beside(&path, shell);
    let by = "outside the measured files at the same time: write-back of dirty pages, by dd (";
    judgement.assert("foreign_io", CheckOutcome::Suspect, by);
    judgement.assert("foreign_io", CheckOutcome::Suspect, ", which has ended, dirtied about");
    let trace = judgement.trace.as_ref().expect("a trace");
    assert!(trace.write_back.iter().all(|process| process.name == "dd"), "{:?}", trace.write_back);
    judgement.assert_listed("`dd` writes another file through the page cache", &["foreign_io"]);
}

/// Goal: a program that writes the measured file through the page cache is named. Method: `dd` does so while we read past it, so that our own
/// reads write its pages back.
#[test]
fn a_program_that_writes_the_measured_file_through_the_page_cache_is_named() {
    let _alone = alone();
    let Some((_mount, path)) = mounted_file("ext4", "noatime") else { return };
    let of = format!("of={}", path.display());
    let dd = || {
        let arguments = [of.as_str(), "if=/dev/urandom", "bs=64k", "count=128", "conv=notrunc"];
        let _ = std::process::Command::new("dd").args(arguments).output().expect("dd");
    };
    let judgement = read_beside(&path, dd);
    let words = "Other programs wrote the measured files at the same time, through the page cache: dd (";
    judgement.assert("foreign_io", CheckOutcome::Suspect, words);
    judgement.assert_listed("`dd` writes the measured file through the page cache", &["foreign_io"]);
}

/// Goal: the start of the partition is added to the filesystem's own offsets. Method: a loop device with a
/// partition table, a filesystem in its only partition, at 1 MiB.
#[test]
fn offsets_in_a_partition_are_found_on_its_disk() {
    let _alone = alone();
    if !can_trace() {
        return;
    }
    let mount =
        match Loop::create_partitioned(128 * MIB).and_then(|below| Mount::in_partition("ext4", below, "noatime")) {
            Ok(mount) => mount,
            Err(why) => return skip("partition", &why),
        };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    let judgement = stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, BLOCKS);
    });
    judgement.assert("traced_requests", CheckOutcome::Passed, "");
    assert_eq!(judgement.level, EvidenceLevel::E3, "{}", judgement.report());
}

#[test]
fn disk_offsets_of_a_block_device_and_of_a_fragmented_file_are_known() {
    let _alone = alone();
    if !can_trace() {
        return;
    }
    match Loop::create(64 * MIB, DIRECT) {
        Err(why) => skip("loop", &why),
        Ok(device) => {
            let path = device.path().to_owned();
            let mut job = plan(&path, OpKind::Write, DirectPolicy::Require);
            job.flush.fdatasync_every = 4;
            let judgement = stage(job, |calls| {
                let file = open(&path, libc::O_DIRECT);
                for _ in 0..50 {
                    calls.blocks(OpKind::Write, &file, &path, 4);
                    calls.fdatasync(&file);
                }
            });
            judgement.assert("traced_requests", CheckOutcome::Passed, "");
            judgement.assert("flush_order", CheckOutcome::Passed, "");
        }
    }
    let Some((mount, path)) = mounted_file("ext4", "noatime") else { return };
    let pieces = mount.path.join("pieces");
    let file = File::create_new(&pieces).expect("a file");
    let other = File::create_new(mount.path.join("between")).expect("a file");
    for block in 0..64 {
        for file in [&file, &other] {
            std::os::unix::fs::FileExt::write_all_at(file, &[9; 65536], block * 65536).expect("room");
            file.sync_data().expect("fdatasync");
        }
    }
    drop(path);
    let mut job = plan(&pieces, OpKind::Read, DirectPolicy::Require);
    job.files[0].size_bytes = 64 * 65536;
    let judgement = stage(job, |calls| calls.blocks(OpKind::Read, &open(&pieces, libc::O_DIRECT), &pieces, 1024));
    judgement.assert("traced_requests", CheckOutcome::Passed, "");
}

/// Transfers that the page cache, a hole or another disk completes have no request at their offset.
#[test]
fn reads_that_never_reach_the_disk_are_contradicted_request_by_request() {
    let _alone = alone();
    let Some((mount, _)) = mounted_file("ext4", "noatime") else { return };
    let reserved = mount.path.join("reserved");
    let file = File::create_new(&reserved).expect("a file");
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SIZE).expect("fallocate");
    file.sync_all().expect("fsync");
    let judgement = stage(plan(&reserved, OpKind::Read, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Read, &open(&reserved, libc::O_DIRECT), &reserved, BLOCKS);
    });
    judgement.assert("traced_requests", CheckOutcome::Contradicted, "did not reach their offset");
    judgement.assert("holes", CheckOutcome::Contradicted, "");
    judgement.assert_listed("reads of preallocated space, traced request by request", &["traced_requests"]);
}

/// Goal: durable writes of a loop device that declares no volatile cache, and so gets no flush, are not durable on the disk of its file; nor
/// are those of a device above it.
/// Method: the declaration is written to the device, and to the one below; its twin, with the cache declared, is tested above.
#[test]
fn durable_writes_above_a_loop_device_that_declares_no_cache_are_suspect() {
    let _alone = alone();
    for is_upper in [true, false] {
        let Some(stack) = nested("noatime", DIRECT, true) else { return };
        let name = if is_upper { stack.upper.name() } else { stack.lower_name() };
        let declare = |text: &str| std::fs::write(format!("/sys/block/{name}/queue/write_cache"), text);
        if let Err(error) = declare("write through") {
            return skip("root", &error.to_string());
        }
        let judgement = stack.stage(OpKind::Write);
        // The declaration outlives the file of the device, and the next user of that device would have it.
        declare("write back").expect("it was written before");
        let words =
            format!("{name} is a loop device that declares no volatile write cache, so no flush reaches its file");
        judgement.assert("flushes", CheckOutcome::Suspect, &words);
        if is_upper {
            let words = "declares no volatile cache and completed a write";
            judgement.assert("flush_order", CheckOutcome::Contradicted, words);
            let situation = "durable writes of a loop device that declares no write cache, traced";
            judgement.assert_listed(situation, &["flush_order", "flushes"]);
        }
    }
}

#[test]
fn with_unknown_disk_offsets_the_level_stays_and_the_reason_is_reported() {
    let _alone = alone();
    let Some((below, _)) = mounted_file("ext4", "noatime") else { return };
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| {
        let path = below.path.join(name);
        std::fs::create_dir(&path).expect("a directory");
        path.to_str().expect("UTF-8").to_owned()
    });
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let overlay = Mount::create("overlay", "overlay", &options).expect("an overlay");
    let path = overlay.path.join("data");
    drop(stored_file(&path, SIZE));
    let judgement = stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, BLOCKS);
    });
    judgement.assert("traced_requests", CheckOutcome::NotSeen, "the extent map of overlay does not give disk offsets");
    assert_eq!(judgement.level, EvidenceLevel::E2, "{}", judgement.report());
}

/// A btrfs on as many loop devices as its profile needs.
struct Btrfs {
    // Unmounted before the devices are detached.
    mount: Mount,
    _devices: Vec<Loop>,
}

fn btrfs(profile: &str, device_count: usize) -> Result<Btrfs, String> {
    let devices = (0..device_count).map(|_| Loop::create(256 * MIB, DIRECT)).collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<&str> = devices.iter().map(|device| device.device.as_str()).collect();
    tool("mkfs.btrfs", &[&["-q", "-f", "-d", profile, "-m", profile], &paths[..]].concat())?;
    let members = paths.iter().map(|path| format!("device={path}")).collect::<Vec<_>>().join(",");
    Ok(Btrfs { mount: Mount::create("btrfs", paths[0], &format!("noatime,{members}"))?, _devices: devices })
}

/// Goal: btrfs' chunk map leads to the disk, for each profile that needs its own arithmetic.
/// Method: reads, and writes in place (without copy on write), of blocks larger than a strip.
#[test]
fn direct_transfers_on_btrfs_are_found_on_its_disks() {
    let _alone = alone();
    if !can_trace() {
        return;
    }
    for (profile, device_count) in [("single", 1), ("raid1", 2), ("raid0", 3), ("raid10", 4), ("raid5", 3)] {
        let btrfs = match btrfs(profile, device_count) {
            Ok(btrfs) => btrfs,
            Err(why) => return skip("btrfs", &why),
        };
        let folder = btrfs.mount.path.join("in-place");
        std::fs::create_dir(&folder).expect("a directory");
        tool("chattr", &["+C", folder.to_str().expect("UTF-8")]).expect("chattr");
        let path = folder.join("data");
        drop(stored_file(&path, SIZE));
        for op in [OpKind::Read, OpKind::Write] {
            let judgement = stage(plan(&path, op, DirectPolicy::Require), |calls| {
                calls.blocks(op, &open(&path, libc::O_DIRECT), &path, BLOCKS);
            });
            let trace = judgement.trace.as_ref().expect("a trace");
            let found = &trace.transfers;
            assert!(found.matched_count > 0, "{profile} {op}: {found:?}\n{}", judgement.report());
            assert_eq!(found.matched_count, found.sampled_count, "{profile} {op}: {found:?}\n{}", judgement.report());
            judgement.assert("traced_requests", CheckOutcome::Passed, "at its offset on the disk");
            assert_eq!(trace.disks.len(), device_count, "{profile} {op}");
            if op == OpKind::Read {
                assert_eq!(judgement.level, EvidenceLevel::E3, "{profile}:\n{}", judgement.report());
                judgement
                    .assert_listed("direct transfers on btrfs of one to four disks, traced request by request", &[]);
            }
        }
    }
}

/// With copy on write each block gets a new place: a write that is not found there is unknown, and no write is flagged. A read of
/// preallocated space is flagged, as on other filesystems.
#[test]
fn copied_writes_of_btrfs_are_not_flagged_and_reads_that_reach_no_disk_are() {
    let _alone = alone();
    if !can_trace() {
        return;
    }
    let Some(mount) = mounted("btrfs", "noatime") else { return };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    let judgement = stage(plan(&path, OpKind::Write, DirectPolicy::Require), |calls| {
        let file = open(&path, libc::O_DIRECT);
        for _ in 0..3 {
            calls.blocks(OpKind::Write, &file, &path, 512);
        }
    });
    let trace = judgement.trace.as_ref().expect("a trace");
    assert_eq!(trace.transfers.missing_count, 0, "{}", judgement.report());
    assert!(trace.transfers.sampled_count > 0 && trace.inseparable.is_some(), "{trace:?}");

    let reserved = mount.path.join("reserved");
    let file = File::create_new(&reserved).expect("a file");
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SIZE).expect("fallocate");
    file.sync_all().expect("fsync");
    let judgement = stage(plan(&reserved, OpKind::Read, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Read, &open(&reserved, libc::O_DIRECT), &reserved, BLOCKS);
    });
    judgement.assert("traced_requests", CheckOutcome::Contradicted, "of the btrfs was traced in that time");
    judgement.assert_listed("reads of preallocated space on btrfs, traced request by request", &["traced_requests"]);
}

/// Returns the names of our instances, as another process of this machine sees them.
fn instances() -> Vec<String> {
    let script = "mkdir -p $1 && mount -t tracefs none $1 && ls $1/instances";
    let folder = folder();
    let at = folder.path().join("tracefs");
    let output = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", at.to_str().expect("a plain name")])
        .output()
        .expect("unshare");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    names.lines().filter(|name| name.starts_with("trueio-")).map(str::to_owned).collect()
}

/// Runs a script with the folder of this process's instance as `$one`, and returns what it prints.
fn in_instance(script: &str) -> String {
    let script =
        format!("mkdir -p $1 && mount -t tracefs none $1 && for one in $1/instances/trueio-$2-*; do {script}; done");
    let folder = folder();
    let at = folder.path().join("tracefs");
    let process = std::process::id().to_string();
    let output = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, "sh", at.to_str().expect("a plain name"), &process])
        .output()
        .expect("unshare");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Makes the buffers of this process's instance hold a page of events on each processor.
fn shrink_buffers() {
    in_instance("echo 1 > $one/buffer_size_kb");
}

/// Keeps the calling thread on processors.
fn stay_on(cpus: impl IntoIterator<Item = usize>) {
    let mut set = rustix::thread::CpuSet::new();
    cpus.into_iter().for_each(|cpu| set.set(cpu));
    rustix::thread::sched_setaffinity(None, &set).expect("usable processors");
}

/// Reads another file of the same disk on one processor, in a queue of eight, until it is over.
fn read_on_processor(path: &Path, cpu: usize, is_over: &std::sync::atomic::AtomicBool) {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                stay_on([cpu]);
                let file = open(path, libc::O_DIRECT);
                let mut block = trueio_direct::AlignedBuffer::new(4096, 4096).expect("a buffer");
                for number in (0..SIZE / 4096).cycle() {
                    if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    std::os::unix::fs::FileExt::read_exact_at(&file, &mut block, number * 4096).expect("a read");
                }
            });
        }
    });
}

/// Goal: a trace that lost events on one processor contradicts no honest reads on another one, and does not hide what another check finds.
/// Method: the buffer of the last processor is shrunk; there a neighbour reads another file of the disk in a queue, while the file's own
/// reads stay on the first processor, whose buffer is large. The reads are of stored data, then of space that was never written.
#[test]
fn events_that_another_processor_lost_contradict_no_honest_reads() {
    let _alone = alone();
    let usable = rustix::thread::sched_getaffinity(None).expect("processors");
    let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| usable.is_set(*cpu)).collect();
    let (Some(first), Some(last)) = (cpus.first(), cpus.last().filter(|_| cpus.len() > 1)) else {
        return skip("processors", "one processor has no other");
    };
    let Some((mount, path)) = mounted_file("ext4", "noatime") else { return };
    let other = mount.path.join("other");
    drop(stored_file(&other, SIZE));
    let dropped = format!("for n in {first} {last}; do sed -n 's/^dropped events: //p' $one/per_cpu/cpu$n/stats; done");
    let read = |path: &Path| {
        let counts = std::cell::RefCell::new(String::new());
        let judgement = stage(plan(path, OpKind::Read, DirectPolicy::Require), |calls| {
            in_instance(&format!("echo 1 > $one/per_cpu/cpu{last}/buffer_size_kb"));
            let is_over = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| read_on_processor(&other, *last, &is_over));
                stay_on([*first]);
                let end = std::time::Instant::now() + std::time::Duration::from_secs(2);
                while std::time::Instant::now() < end {
                    calls.blocks(OpKind::Read, &open(path, libc::O_DIRECT), path, 256);
                }
                stay_on(cpus.iter().copied());
                is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            *counts.borrow_mut() = in_instance(&dropped);
        });
        let counts = counts.into_inner();
        let counts: Vec<u64> = counts.lines().map(|line| line.trim().parse().expect("a count")).collect();
        (judgement, counts)
    };
    let lossy = |path: &Path| (0..10).map(|_| read(path)).find(|(_, counts)| counts[0] == 0 && counts[1] > 0);
    let Some((judgement, counts)) = lossy(&path) else {
        return skip("tracing", "the machine is too slow to lose events");
    };
    let trace = judgement.trace.as_ref().expect("a trace");
    println!("lost on the first and last processor: {counts:?}; {:?}", trace.transfers);
    assert!(trace.lost_event_count > 0, "{trace:#?}");
    assert_eq!(trace.transfers.missing_count, 0, "a window with a loss proves nothing: {}", judgement.report());
    let own = |judgement: &Judgement| {
        let all = judgement.objections().into_iter().map(|(name, _)| name.to_owned());
        all.filter(|name| !["foreign_io", "block_layer_bytes"].contains(&name.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(own(&judgement), [""; 0], "{}", judgement.report());
    let situation = "direct reads while the trace loses events of a neighbour on another processor";
    judgement.assert_listed(situation, &[]);

    let reserved = mount.path.join("reserved");
    let file = File::create_new(&reserved).expect("a file");
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SIZE).expect("fallocate");
    file.sync_all().expect("fsync");
    let (judgement, _) = read(&reserved);
    judgement.assert("holes", CheckOutcome::Contradicted, "");
    let situation = "reads of preallocated space while the trace loses events of a neighbour on another processor";
    judgement.assert_listed(situation, &["holes"]);
}

/// Goal: a trace that lost events contradicts nothing, and does not hide what another check finds.
/// Method: the buffers are shrunk once tracing has begun, so that each window with more than about a hundred events loses some; stored
/// data is read, then space that was never written. A run that is too slow for a loss is repeated.
#[test]
fn lost_events_contradict_no_honest_reads() {
    let _alone = alone();
    let Some((mount, path)) = mounted_file("ext4", "noatime") else { return };
    let read = |path: &Path| {
        stage_once(plan(path, OpKind::Read, DirectPolicy::Require), |calls| {
            shrink_buffers();
            let end = std::time::Instant::now() + std::time::Duration::from_secs(2);
            while std::time::Instant::now() < end {
                calls.blocks(OpKind::Read, &open(path, libc::O_DIRECT), path, 256);
            }
        })
    };
    let losses = |judgement: &Judgement| judgement.trace.as_ref().expect("a trace").lost_event_count;
    let lossy = |path: &Path| (0..10).map(|_| read(path)).find(|judgement| losses(judgement) > 0);
    let Some(judgement) = lossy(&path) else { return skip("tracing", "the machine is too slow to lose events") };
    let trace = judgement.trace.as_ref().expect("a trace");
    assert_eq!(trace.transfers.missing_count, 0, "a window with a loss proves nothing: {}", judgement.report());
    assert_eq!(judgement.objections(), [], "{}", judgement.report());
    judgement.assert_listed("direct reads while the kernel's trace loses events", &[]);

    let reserved = mount.path.join("reserved");
    let file = File::create_new(&reserved).expect("a file");
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SIZE).expect("fallocate");
    file.sync_all().expect("fsync");
    let Some(judgement) = lossy(&reserved) else { return skip("tracing", "the machine is too slow to lose events") };
    judgement.assert("holes", CheckOutcome::Contradicted, "");
    judgement.assert_listed("reads of preallocated space while the kernel's trace loses events", &["holes"]);
}

/// Goal: no instance and no mount stays, and the next run removes the instance of a killed process. Method:
/// this program runs itself, prepares a trace, starts it and is killed.
#[test]
fn a_trace_leaves_nothing_and_the_next_one_removes_the_instance_of_a_killed_process() {
    const CHILD: &str = "TRUEIO_TEST_TRACE_AND_WAIT";
    let _alone = alone();
    if let Ok(path) = std::env::var(CHILD) {
        let path = Path::new(&path);
        stage(plan(path, OpKind::Read, DirectPolicy::Require), |_| {
            println!("tracing");
            std::thread::sleep(std::time::Duration::from_secs(60));
        });
        return;
    }
    let Some((_mount, path)) = mounted_file("ext4", "noatime") else { return };
    let own = format!("trueio-{}-", std::process::id());
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").expect("mountinfo").matches("tracefs").count();
    let mounts_before = mounts();
    let judgement = stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
        calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, 64);
        assert!(instances().iter().any(|name| name.starts_with(&own)), "an instance while it is traced");
    });
    assert_eq!(judgement.level, EvidenceLevel::E3, "{}", judgement.report());
    assert!(!instances().iter().any(|name| name.starts_with(&own)), "{:?}", instances());
    assert_eq!(mounts(), mounts_before);

    let mut child = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "trace::a_trace_leaves_nothing_and_the_next_one_removes_the_instance_of_a_killed_process",
            "--nocapture",
        ])
        .env(CHILD, &path)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a child");
    let mut output = std::io::BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    while !line.contains("tracing") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut output, &mut line).expect("a line") > 0, "the child ended early");
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("it ends");
    let childs = format!("trueio-{}-", child.id());
    assert!(instances().iter().any(|name| name.starts_with(&childs)), "SIGKILL leaves an empty instance");
    assert_eq!(trueio_evidence::why_not_traced(), None);
    assert!(!instances().iter().any(|name| name.starts_with(&childs)), "{:?}", instances());
}

/// Goal: without root everything else works, the level is E2, and the finding names the missing privilege.
/// Method: a thread changes to the user `nobody` (the raw system call changes one thread only) and runs the
/// phase.
#[test]
fn an_ordinary_user_gets_level_e2_and_the_finding_names_what_root_adds() {
    let _alone = alone();
    // SAFETY: a plain call without arguments.
    if unsafe { libc::geteuid() } != 0 {
        return skip("root", "only root can change its user");
    }
    let Some(mount) = mounted("ext4", "noatime") else { return };
    let path = mount.path.join("data");
    drop(stored_file(&path, SIZE));
    for (path, mode) in [(&mount.path, 0o755), (&path, 0o666)] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("chmod");
    }
    let judgement = std::thread::scope(|scope| {
        let nobody = scope.spawn(|| {
            const NOBODY: libc::c_long = 65_534;
            // SAFETY: changes the credentials of this thread alone, which ends with the phase.
            let result = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
            File::open(&path).ok()?;
            Some(stage(plan(&path, OpKind::Read, DirectPolicy::Require), |calls| {
                calls.blocks(OpKind::Read, &open(&path, libc::O_DIRECT), &path, BLOCKS);
            }))
        });
        nobody.join().expect("the phase")
    });
    let Some(judgement) = judgement else {
        return skip("path", "the build directory is closed to other users");
    };
    judgement.assert("traced_requests", CheckOutcome::NotSeen, "only to root (CAP_SYS_ADMIN)");
    judgement.assert("traced_requests", CheckOutcome::NotSeen, "looks for each sampled transfer at its offset");
    assert_eq!(judgement.objections(), [], "{}", judgement.report());
    assert_eq!(judgement.level, EvidenceLevel::E2, "{}", judgement.report());
}
