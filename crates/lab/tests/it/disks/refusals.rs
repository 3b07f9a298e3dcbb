//! Writing to a disk in use is refused with the rule's name, and nothing is written: the disks'
//! own counters say so. Each case names the device as that which may be overwritten.

use super::{EXT4, assert_unwritten, shelf, writes_to};
use std::time::{Duration, Instant};
use trueio_lab::{Machine, on};

/// Erases what a case has left, so that the next finds a bare disk.
fn wipe(machine: &mut Machine, device: &str) {
    machine.ok(&format!(
        "dd if=/dev/zero of={device} bs=1M count=8 conv=fsync 2>/dev/null && \
         dd if=/dev/zero of={device} bs=1M seek=60 count=4 conv=fsync 2>/dev/null; blockdev --rereadpt {device}"
    ));
}

/// One partition of 40 MiB.
fn partition(machine: &mut Machine, device: &str, partition: &str) {
    machine.ok(&format!("printf 'label: gpt\\n1MiB,40MiB\\n' | sfdisk -q {device}"));
    machine.ok(&format!("for i in $(seq 100); do [ -b {partition} ] && exit; sleep 0.05; done; exit 1"));
}

#[test]
fn a_mounted_partition_of_an_nvme_disk_and_its_whole_disk_are_refused() {
    on(&shelf(), |machine| {
        let disk = machine.device("fast");
        let part = format!("{disk}p1");
        partition(machine, &disk, &part);
        machine.ok(&format!("{EXT4} {part} && mount {part} /mnt"));
        for (target, words) in [(&part, ""), (&disk, ""), (&disk, "--overwrite_signature gpt")] {
            let ran = assert_unwritten(machine, "fast", |machine| writes_to(machine, target, words));
            ran.assert_refused(&["rule: target_mounted", "`/mnt`"]);
        }
        machine.ok("umount /mnt");
        // What is not mounted any more is still a filesystem.
        let ran = assert_unwritten(machine, "fast", |machine| writes_to(machine, &part, ""));
        ran.assert_refused(&["rule: signature_not_named", "ext4"]);
        let ran = assert_unwritten(machine, "fast", |machine| writes_to(machine, &disk, ""));
        ran.assert_refused(&["rule: signature_not_named", "gpt"]);
        wipe(machine, &disk);
    });
}

/// Goal: the case above does not pass only because nothing can be written at all.
#[test]
fn a_bare_disk_that_is_named_is_written() {
    on(&shelf(), |machine| {
        for name in ["fast", "native", "stick"] {
            let device = machine.device(name);
            let before = machine.simulated(name).counts().writes;
            writes_to(machine, &device, "").assert_code(0);
            assert!(machine.simulated(name).counts().writes >= before + 16, "{name}");
        }
    });
}

#[test]
fn a_filesystem_that_is_mounted_in_another_namespace_is_refused() {
    on(&shelf(), |machine| {
        let disk = machine.device("virt");
        machine.ok(&format!("{EXT4} {disk}"));
        let hidden = "mkdir -p /tmp/hidden && unshare -m sh -c 'mount {disk} /tmp/hidden; echo $$ > /tmp/pid; exec sleep 300' \
                      > /dev/null 2>&1 & for i in $(seq 100); do [ -s /tmp/pid ] && exit; sleep 0.05; done; exit 1";
        machine.ok(&hidden.replace("{disk}", &disk));
        assert!(!machine.ok("cat /proc/mounts").contains(&disk), "the mount is not hidden");
        let ran = assert_unwritten(machine, "virt", |machine| writes_to(machine, &disk, "--overwrite_signature ext4"));
        machine.ok("kill $(cat /tmp/pid); while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.05; done; rm /tmp/pid");
        ran.assert_refused(&["rule: target_mounted"]);
        wipe(machine, &disk);
    });
}

#[test]
fn swap_on_a_scsi_disk_is_refused() {
    on(&shelf(), |machine| {
        let disk = machine.device("emulated");
        machine.ok(&format!("mkswap {disk} && swapon {disk}"));
        let ran =
            assert_unwritten(machine, "emulated", |machine| writes_to(machine, &disk, "--overwrite_signature swap"));
        machine.ok(&format!("swapoff {disk}"));
        ran.assert_refused(&["rule: target_is_swap"]);
        let ran = assert_unwritten(machine, "emulated", |machine| writes_to(machine, &disk, ""));
        ran.assert_refused(&["rule: signature_not_named", "swap"]);
        wipe(machine, &disk);
    });
}

#[test]
fn a_disk_under_a_device_mapper_table_and_a_mounted_table_are_refused() {
    on(&shelf(), |machine| {
        let disk = machine.device("forced");
        machine.ok(&format!("dmsetup create lab-linear --table '0 65536 linear {disk} 0'"));
        let ran = assert_unwritten(machine, "forced", |machine| writes_to(machine, &disk, ""));
        ran.assert_refused(&["rule: target_carries_device", "dm-"]);
        machine.ok(&format!("{EXT4} /dev/mapper/lab-linear && mount /dev/mapper/lab-linear /mnt"));
        let ran = assert_unwritten(machine, "forced", |machine| writes_to(machine, "/dev/mapper/lab-linear", ""));
        ran.assert_refused(&["rule: target_mounted", "`/mnt`"]);
        // What is mounted stands on the disk, too, and is the nearer danger.
        let ran = assert_unwritten(machine, "forced", |machine| writes_to(machine, &disk, ""));
        ran.assert_refused(&["rule: target_"]);
        machine.ok("umount /mnt && dmsetup remove lab-linear");
        wipe(machine, &disk);
    });
}

#[test]
fn members_of_a_running_raid_are_refused_and_so_are_those_of_a_stopped_one() {
    on(&shelf(), |machine| {
        let (one, other) = (machine.device("emulated"), machine.device("forced"));
        machine.ok(&format!(
            "mdadm --create /dev/md0 --run --assume-clean --level=1 --raid-devices=2 --metadata=1.2 {one} {other} 2>&1"
        ));
        for (name, device) in [("emulated", &one), ("forced", &other)] {
            let ran = assert_unwritten(machine, name, |machine| writes_to(machine, device, ""));
            ran.assert_refused(&["rule: target_carries_device", "md0"]);
        }
        machine.ok("mdadm --stop /dev/md0 2>&1");
        let ran = assert_unwritten(machine, "emulated", |machine| writes_to(machine, &one, ""));
        ran.assert_refused(&["rule: signature_not_named", "linux_raid_member"]);
        machine.ok(&format!("mdadm --zero-superblock {one} {other}"));
        wipe(machine, &one);
        wipe(machine, &other);
    });
}

#[test]
fn a_physical_volume_is_refused_with_its_volume_group_active_and_inactive() {
    on(&shelf(), |machine| {
        let disk = machine.device("emulated");
        machine.ok(&format!("(lvm pvcreate -y {disk} && lvm vgcreate lab {disk}) 2>&1"));
        machine.ok("lvm lvcreate -y -Zn -L 16M -n volume lab 2>&1");
        let ran = assert_unwritten(machine, "emulated", |machine| writes_to(machine, &disk, ""));
        ran.assert_refused(&["rule: target_carries_device", "dm-"]);
        // A volume that is not in use and has no signature may be written.
        let volume = machine.ok("readlink -f /dev/lab/volume").trim().to_owned();
        writes_to(machine, "/dev/lab/volume", "").assert_refused(&["rule: target_is_link", &volume]);
        writes_to(machine, &volume, "").assert_code(0);
        machine.ok("lvm vgchange -an lab 2>&1");
        let ran = assert_unwritten(machine, "emulated", |machine| writes_to(machine, &disk, ""));
        ran.assert_refused(&["rule: signature_not_named", "LVM2_member"]);
        wipe(machine, &disk);
    });
}

/// Goal: a disk that another program claims with `O_EXCL`, which sysfs does not show, is refused.
/// Method: a first run writes to the disk, which it has claimed; a second one may not.
#[test]
fn a_disk_that_another_run_writes_to_is_refused() {
    on(&shelf(), |machine| {
        let disk = machine.device("virt");
        let before = machine.simulated("virt").counts().writes;
        let job = "run --rw write --bs 4k --size 64k --time_based --runtime 60s --direct require --no-history";
        machine.ok(&format!(
            "trueio {job} --filename {disk} --overwrite_existing {disk} > /tmp/first 2>&1 & echo $! > /tmp/pid"
        ));
        let deadline = Instant::now() + Duration::from_secs(60);
        while machine.simulated("virt").counts().writes < before + 100 {
            assert!(Instant::now() < deadline, "the first run does not write: {}", machine.ok("cat /tmp/first"));
            std::thread::sleep(Duration::from_millis(20));
        }
        let second = writes_to(machine, &disk, "");
        machine.ok("kill -INT $(cat /tmp/pid); while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.05; done");
        second.assert_refused(&["rule: target_claimed"]);
        writes_to(machine, &disk, "").assert_code(0);
    });
}
