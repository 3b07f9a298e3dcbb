//! Disks that fail while they are used: a region that cannot be read, a plug that is pulled, a disk
//! that stops answering, one that lies about flushes. The record of a run reports it.
//!
//! The cases share a machine; a disk that does not come back belongs to one case alone.

use crate::common::{check, failure_reason, failures, io_count, record_in, record_of};
use std::time::{Duration, Instant};
use trueio_lab::sim::Behaviour;
use trueio_lab::{Disk, Machine, Spec, on};
use trueio_model::{CheckOutcome, OpKind};

/// Each with the errno that Linux returns for a medium error: NVMe distinguishes it (BLK_STS_MEDIUM).
const DISKS: [(&str, i32); 4] =
    [("stick", libc::EIO), ("fast", libc::ENODATA), ("virt", libc::EIO), ("plain", libc::EIO)];

fn machine() -> Spec {
    let kept = |disk: Disk| disk.behaving(Behaviour::default());
    Spec::new()
        .disk(Disk::usb("stick"))
        .disk(Disk::usb("liar"))
        .disk(Disk::usb("sleeper"))
        .disk(Disk::usb("channels"))
        .disk(kept(Disk::nvme("fast").sectors(4096, 4096)))
        .disk(kept(Disk::virtio("virt")))
        .disk(kept(Disk::virtio("narrow").ring(8)))
        .disk(kept(Disk::scsi("plain")))
        .disk(Disk::usb("usb-gone"))
        .disk(kept(Disk::nvme("nvme-gone")))
        .disk(kept(Disk::virtio("virtio-gone")))
        .disk(kept(Disk::scsi("scsi-gone")))
}

#[test]
fn a_region_that_cannot_be_read_ends_the_run_with_errno_and_offset() {
    on(&machine(), |machine| {
        for (name, errno) in DISKS {
            let device = machine.device(name);
            machine.simulated(name).behave(|disk| disk.unreadable = Some(1 << 20..(1 << 20) + 4096));
            let job = "--rw read --bs 4k --size 2m --direct require --no-history --json -";
            let ran = machine.trueio(&format!("run {job} --filename {device}"));
            machine.simulated(name).behave(|disk| disk.unreadable = None);
            let record = record_of(&ran.assert_code(1));
            let found = failures(&record);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!((found[0].errno, found[0].offset), (errno, 1 << 20), "{name}");
            assert_eq!(io_count(&record, OpKind::Read), 256, "{name}");
        }
    });
}

#[test]
fn a_region_that_cannot_be_written_ends_the_run_with_errno_and_offset() {
    on(&machine(), |machine| {
        for (name, errno) in DISKS {
            let device = machine.device(name);
            machine.simulated(name).behave(|disk| disk.unwritable = Some(1 << 20..(1 << 20) + 4096));
            let job = "--rw write --bs 4k --size 2m --direct require --no-history --json -";
            let ran = machine.trueio(&format!("run {job} --filename {device} --overwrite_existing {device}"));
            machine.simulated(name).behave(|disk| disk.unwritable = None);
            let record = record_of(&ran.assert_code(1));
            let found = failures(&record);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!((found[0].errno, found[0].offset), (errno, 1 << 20), "{name}");
        }
    });
}

/// Starts reading a disk in the background, for a minute if nothing happens.
fn start_reading(machine: &mut Machine, name: &str) {
    let device = machine.device(name);
    let job = "--rw randread --bs 4k --iodepth 4 --time_based --runtime 60s --direct require --no-history";
    machine.ok(&format!(
        "rm -f /tmp/code; (trueio run {job} --json /tmp/record.json --filename {device} > /tmp/out 2>&1; echo $? > /tmp/code) &"
    ));
    let begin = machine.simulated(name).counts().reads;
    let deadline = Instant::now() + Duration::from_secs(60);
    while machine.simulated(name).counts().reads < begin + 200 {
        assert!(Instant::now() < deadline, "`{name}` is not read: {}", machine.ok("cat /tmp/out"));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the run that was started; its exit code.
fn wait_for_end(machine: &mut Machine) -> i32 {
    let ran = machine
        .sh("for i in $(seq 1000); do [ -s /tmp/code ] && exec cat /tmp/code; sleep 0.1; done; cat /tmp/out; exit 1");
    ran.assert_code(0).out.trim().parse().expect("a number")
}

#[test]
fn a_disk_unplugged_during_a_run_leaves_a_record() {
    on(&machine(), |machine| {
        for name in ["usb-gone", "nvme-gone", "virtio-gone", "scsi-gone"] {
            start_reading(machine, name);
            machine.unplug(name).unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert_eq!(wait_for_end(machine), 1, "{name}");
            let record = record_in(machine, "/tmp/record.json");
            assert!(failure_reason(&record).contains("failed"), "{name}: {:?}", record.outcome);
            assert!(io_count(&record, OpKind::Read) >= 100, "{name}");
            let errors: Vec<i32> = failures(&record).iter().map(|failure| failure.errno).collect();
            // 0: a device that is gone has a size of zero, so a read moves nothing.
            let gone = [libc::EIO, libc::ENODEV, libc::ENXIO, 0];
            assert!(!errors.is_empty() && errors.iter().all(|errno| gone.contains(errno)), "{name}: {errors:?}");
        }
    });
}

/// Goal: a disk that answers no more does not hold the program for ever.
/// Method: it stops answering under a run; the kernel aborts and resets until it gives up (here after
/// seconds, by default after minutes), and the run ends with what it had.
#[test]
fn a_disk_that_hangs_ends_the_run_when_the_kernel_gives_up() {
    on(&machine(), |machine| {
        let device = machine.device("sleeper");
        let name = device.trim_start_matches("/dev/");
        machine.ok(&format!("cd /sys/block/{name}/device && echo 2 > timeout && echo 2 > eh_timeout"));
        start_reading(machine, "sleeper");
        machine.simulated("sleeper").behave(|disk| disk.hangs_after = Some(0));
        assert_eq!(wait_for_end(machine), 1);
        machine.simulated("sleeper").behave(|disk| disk.hangs_after = None);
        let record = record_in(machine, "/tmp/record.json");
        assert!(failure_reason(&record).contains("os error"), "{:?}", record.outcome);
        assert!(io_count(&record, OpKind::Read) >= 100);
        let log = machine.ok("dmesg");
        assert!(log.contains("uas_eh_"), "the kernel did not try to recover:\n{log}");
    });
}

/// Goal: only a power loss distinguishes a disk that keeps flushed data from one that lies about flushes.
/// Method: the same synced sector on an honest disk and on a liar; the power is cut; both are plugged in.
#[test]
fn a_disk_that_ignores_flushes_loses_synced_data_and_a_correct_one_keeps_it() {
    on(&machine(), |machine| {
        for (name, lies) in [("stick", false), ("liar", true)] {
            machine.simulated(name).behave(|disk| {
                (disk.lies_about_flushes, disk.lies_about_fua) = (lies, lies);
            });
            let device = machine.device(name);
            let write = |word: &str, sector: u32, flag: &str| {
                format!("printf {word} | dd of={device} bs=512 seek={sector} count=1 conv=sync{flag} 2>&1 && sync")
            };
            machine.ok(&write("synced", 8, ",fsync"));
            // `sync` writes the page cache of a device out and flushes no disk.
            machine.ok(&write("unsynced", 64, ""));
            assert!(machine.simulated(name).cut_power() > 0, "{name}");
            machine.simulated(name).plug();
            let device = machine.device(name);
            let read = |machine: &mut Machine, sector: u32| {
                machine.ok(&format!("dd if={device} bs=512 skip={sector} count=1 2>/dev/null | tr -d ' \\0'"))
            };
            assert_eq!(read(machine, 8), if lies { "" } else { "synced" }, "{name}");
            assert_eq!(read(machine, 64), "", "{name}");
        }
    });
}

/// Goal: the latency × channels model reaches the program, so that a ratio means something here.
/// Method: 4 ms and 4 channels. One at a time cannot exceed 250 reads a second, a queue cannot exceed
/// 1000 and must reach more than twice the single reads, however slow the emulation.
#[test]
fn a_queue_is_served_by_all_channels_of_a_simulated_disk() {
    on(&machine(), |machine| {
        machine.simulated("channels").behave(|disk| (disk.latency, disk.channels) = (Duration::from_millis(4), 4));
        let device = machine.device("channels");
        let mut rate = |depth: u32| {
            let job = format!("--rw randread --bs 4k --iodepth {depth} --time_based --runtime 3s --direct require");
            let ran = machine.trueio(&format!("run {job} --no-history --no-evidence --json - --filename {device}"));
            let record = record_of(&ran.assert_code(0));
            io_count(&record, OpKind::Read) as f64 / (record.phases[0].elapsed_ns as f64 / 1e9)
        };
        let (single, queue) = (rate(1), rate(16));
        assert!(single < 255.0 && queue < 1020.0 && queue > 2.0 * single, "{single:.0} and {queue:.0} reads a second");
    });
}

/// Goal: where the disk holds fewer requests than the job's queue has, its limit is named with its file: the queue of a SCSI disk, and
/// the ring of a virtio disk. Of disks that hold enough, no limit is named.
/// Method: disks of 20 ms with 64 channels keep a queue of 16 full, however slow the emulation.
#[test]
fn the_queue_of_a_disk_that_is_shorter_than_the_jobs_is_named() {
    on(&machine(), |machine| {
        for name in ["plain", "virt", "narrow"] {
            machine.simulated(name).behave(|disk| (disk.latency, disk.channels) = (Duration::from_millis(20), 64));
        }
        let mut queue = |name: &str, depth: Option<u32>| {
            let device = machine.device(name);
            if let Some(depth) = depth {
                let file = format!("/sys/block/{}/device/queue_depth", device.trim_start_matches("/dev/"));
                machine.sh(&format!("echo {depth} > {file}")).assert_code(0);
            }
            let job = "--rw randread --bs 4k --ioengine io_uring --iodepth 16 --number_ios 1200 --direct require";
            let record = record_of(&machine.trueio(&format!("run {job} --no-history --json - --filename {device}")));
            check(&record, "achieved_depth").clone()
        };
        // What waits for the disk was submitted (to the kernel's workers, where the ring is full), and is in flight for the engine.
        for (name, depth, words) in [
            ("plain", Some(4), ["At most 4 requests are in flight at sd", "(queue_depth of SCSI: `/sys/block/sd"]),
            (
                "narrow",
                None,
                ["At most 8 requests are in flight at vd", "(nr_tags, the ring of virtio: `/sys/block/vd"],
            ),
        ] {
            let found = queue(name, depth);
            assert!(words.iter().all(|words| found.sentence.contains(words)), "{found:#?}");
        }
        for (name, depth) in [("plain", Some(32)), ("virt", None)] {
            let found = queue(name, depth);
            assert_eq!(found.outcome, CheckOutcome::Passed, "{found:#?}");
            assert!(!found.sentence.contains("At most"), "{found:#?}");
        }
    });
}
