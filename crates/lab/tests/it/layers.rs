//! Level E3 through layers: single requests are found on the disks below dm, md, btrfs, loop devices (to the disk of their file) and NVMe multipath.
//!
//! One machine for all. Each case builds a stack of layers over its disks, runs jobs on it, and takes it down again.

use crate::common::{assert_check, assert_ended, check, record_of};
use trueio_lab::{Disk, Machine, Spec, Tool, on};
use trueio_model::{CheckOutcome, EvidenceLevel, RunRecord, TraceRecord};

/// The machine of these cases.
fn machine() -> Spec {
    Spec::new()
        .disk(Disk::virtio("a").mib(128))
        .disk(Disk::virtio("b").mib(128))
        .disk(Disk::virtio("c").mib(128))
        .disk(Disk::nvme_multipath("paths").mib(64))
        .module("ext4")
        .module("btrfs")
        .module("loop")
        .module("dm_mod")
        .module("dm-thin-pool")
        .module("raid1")
        .module("raid10")
        .tool(Tool::DMSETUP)
        .tool(Tool::MDADM)
        .tool(Tool::SFDISK)
        .tool(Tool::MKFS_EXT4)
        .tool(Tool::MKFS_BTRFS)
}

/// Runs a job on `target`; returns its record.
fn run(machine: &mut Machine, target: &str, words: &str) -> RunRecord {
    let ran = machine
        .trueio(&format!("run --bs 8k --size 8m --direct require --filename {target} --no-history --json - {words}"));
    let record = record_of(&ran);
    assert_ended(&record, ran.code, 0);
    record
}

fn trace(record: &RunRecord) -> &TraceRecord {
    record.phases[0].trace.as_ref().expect("a trace")
}

/// Random reads and durable writes of `target` are found on the disks below it, `disks` in number, each with its flush; and no other
/// check objects.
fn assert_followed(machine: &mut Machine, target: &str, disks: usize) {
    let writes = format!("--rw randwrite --number_ios 200 --sync dsync --overwrite_existing {target}");
    for words in ["--rw randread --number_ios 400", writes.as_str()] {
        let record = run(machine, target, words);
        let traced = trace(&record);
        let sum = &traced.transfers;
        let report = format!("{target} {words}: {traced:#?}\n{:#?}", check(&record, "traced_requests"));
        assert!(sum.matched_count > 0 && sum.matched_count == sum.sampled_count, "{report}");
        assert_check(&record, "traced_requests", CheckOutcome::Passed);
        assert_eq!(record.phases[0].level, EvidenceLevel::E3, "{report}");
        assert_eq!((traced.disks.len(), traced.others.count), (disks, 0), "{report}");
        // Whether a kernel thread's request belongs to the layer is known by the layer's hops.
        assert!(traced.unattributed.count * 10 < traced.ours.count, "{report}");
        if words.contains("dsync") {
            assert_check(&record, "flush_order", CheckOutcome::Passed);
            assert!(traced.syncs.durable_count() > 0 && traced.syncs.failed_count() == 0, "{report}");
        }
    }
}

/// Fills a device, so that reads of it are no reads of zeros.
fn fill(machine: &mut Machine, device: &str) {
    machine.ok(&format!("dd if=/dev/urandom of={device} bs=1M count=8 conv=fsync 2>/dev/null"));
}

/// Goal: the device mapper is followed, also onto a partition, whose hop carries the number of its disk. Method: a linear device on
/// a partition and a disk, and a striped one above it.
#[test]
fn device_mapper_stacks_are_followed_to_their_disks() {
    on(&machine(), |machine| {
        let (a, b) = (machine.device("a"), machine.device("b"));
        machine.ok(&format!("printf 'label: gpt\\n1MiB,100MiB\\n' | sfdisk -q {a} && sleep 0.5 && [ -b {a}1 ]"));
        // 4 MiB of each in turn.
        machine.ok(&format!("printf '0 8192 linear {a}1 2048\\n8192 8192 linear {b} 4096\\n' | dmsetup create lower"));
        machine
            .ok("dmsetup mknodes; echo '0 16384 linear /dev/mapper/lower 0' | dmsetup create upper; dmsetup mknodes");
        fill(machine, "/dev/mapper/upper");
        assert_followed(machine, "/dev/mapper/upper", 2);
        machine.ok(&format!(
            "dmsetup remove upper && dmsetup remove lower && \
             echo '0 32768 striped 2 128 {a}1 0 {b} 0' | dmsetup create wide && dmsetup mknodes"
        ));
        fill(machine, "/dev/mapper/wide");
        assert_followed(machine, "/dev/mapper/wide", 2);
        machine.ok(&format!(
            "dmsetup remove wide && dd if=/dev/zero of={a} bs=1M count=2 conv=fsync && blockdev --rereadpt {a}"
        ));
    });
}

/// The false result: blocks of a thin volume that were never written are read without a disk.
#[test]
fn reads_of_a_thin_volume_that_reach_no_disk_are_contradicted_one_by_one() {
    on(&machine(), |machine| {
        let (a, b) = (machine.device("a"), machine.device("b"));
        machine.ok(&format!(
            "dd if=/dev/zero of={b} bs=4k count=4 conv=fsync && \
             echo '0 200000 thin-pool {b} {a} 128 0' | dmsetup create pool && dmsetup mknodes && \
             dmsetup message pool 0 'create_thin 0' && echo '0 65536 thin /dev/mapper/pool 0' | dmsetup create thin && \
             dmsetup mknodes"
        ));
        // Every second 64 KiB is stored.
        machine.ok(
            "for i in $(seq 0 2 127); do dd if=/dev/urandom of=/dev/mapper/thin bs=64k count=1 seek=$i conv=fsync \
                    2>/dev/null; done",
        );
        let words = "--rw randread --number_ios 400 --filename /dev/mapper/thin";
        let ran = machine.trueio(&format!("run --bs 8k --size 8m --direct require --no-history --json - {words}"));
        let record = record_of(&ran);
        assert_ended(&record, ran.code, 1);
        assert_check(&record, "traced_requests", CheckOutcome::Contradicted);
        let found = check(&record, "traced_requests");
        assert!(found.sentence.contains("did not pass it on to its disks"), "{found:#?}");
        assert!(trace(&record).transfers.matched_count > 0, "the stored half was found: {:#?}", trace(&record));
        machine.ok("dmsetup remove thin && dmsetup remove pool");
    });
}

/// Mirrors: a write must be found, and flushed, on each member.
#[test]
fn arrays_of_md_are_followed_to_every_member() {
    on(&machine(), |machine| {
        let [a, b, c] = ["a", "b", "c"].map(|name| machine.device(name));
        for (level, members) in [("1", vec![&a, &b]), ("10", vec![&a, &b, &c])] {
            let list = members.iter().map(|member| member.as_str()).collect::<Vec<_>>().join(" ");
            machine.ok(&format!(
                "mdadm --create /dev/md0 --run --assume-clean --metadata=1.2 --level={level} --raid-devices={} {list} \
                 2>/dev/null && for i in $(seq 100); do [ -b /dev/md0 ] && break; sleep 0.05; done",
                members.len()
            ));
            fill(machine, "/dev/md0");
            assert_followed(machine, "/dev/md0", members.len());
            machine.ok(&format!("mdadm --stop /dev/md0 2>/dev/null && mdadm --zero-superblock {list}"));
        }
    });
}

/// The numbers of the paths are in no file: the first hops show them.
#[test]
fn requests_to_the_paths_of_an_nvme_disk_are_found() {
    on(&machine(), |machine| {
        let names = machine.ok("ls /sys/block | grep '^nvme'");
        let head = names.lines().find(|name| !name.contains('c')).expect("a head").to_owned();
        assert_eq!(names.lines().count(), 3, "a head and two paths: {names}");
        let target = format!("/dev/{head}");
        fill(machine, &target);
        machine.ok("for policy in /sys/class/nvme-subsystem/*/iopolicy; do echo round-robin > $policy; done");
        assert_followed(machine, &target, 1);
    });
}

/// btrfs by its chunk map, in place (`nodatacow`; otherwise it buffers); and a loop device, whose requests are traced themselves, and found again
/// on the disk of its file. Through the page cache of that file the writes arrive with the flush.
#[test]
fn files_of_a_btrfs_mirror_and_of_a_loop_device_are_found() {
    on(&machine(), |machine| {
        let (b, c) = (machine.device("b"), machine.device("c"));
        machine.ok(&format!(
            "mkfs.btrfs -q -f -d raid1 -m raid1 {b} {c} && mount -t btrfs -o noatime,nodatacow,device={c} {b} /mnt"
        ));
        fill(machine, "/mnt/data");
        assert_followed(machine, "/mnt/data", 2);
        machine
            .ok(&format!("umount /mnt && for d in {b} {c}; do dd if=/dev/zero of=$d bs=1M count=2 conv=fsync; done"));

        machine.ok(&format!("mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 {b} && mount {b} /mnt"));
        fill(machine, "/mnt/image");
        machine.ok("losetup /dev/loop0 /mnt/image");
        assert_followed(machine, "/dev/loop0", 1);
        let words = "--rw randwrite --number_ios 200 --sync dsync --overwrite_existing /dev/loop0";
        let record = run(machine, "/dev/loop0", words);
        let below = trace(&record).below.as_ref().expect("a loop device");
        let disk = b.trim_start_matches("/dev/");
        assert_eq!(
            (below.loops.join(","), below.files.join(","), below.disks.join(",")),
            ("loop0".into(), "/mnt/image".into(), disk.into())
        );
        assert_eq!(below.missing, None);
        assert!(below.syncs.durable_count() > 0 && below.syncs.failed_count() == 0, "{below:#?}");
        machine.ok(&format!("losetup -d /dev/loop0; umount /mnt && dd if=/dev/zero of={b} bs=1M count=2 conv=fsync"));
    });
}
