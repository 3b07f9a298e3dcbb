//! `trueio usb serve`: the disk is driven with UAS in user space where the kernel has no driver for it.

use crate::served;

use crate::common::record_in;
use crate::served::{end, ended, serve, serve_by};
use std::time::{Duration, Instant};
use trueio_lab::sim::{Offers, Speed, UasFault};
use trueio_lab::{Disk, Machine, Ran, Spec, Tool, on};

/// Two kinds of disks with UAS, and no driver for them: `uas` is missing.
fn spec(kernel: &str) -> Spec {
    // Debian's 6.1 has no ublk.
    let spec = if kernel == "6.1" { Spec::new() } else { Spec::new().module("ublk_drv") };
    spec.kernel(kernel)
        .without_module("uas")
        .shelved_module("uas")
        .module("nbd")
        .module("ext4")
        .tool(Tool::MKFS_EXT4)
        .disk(Disk::qemu_uas("emulated"))
        .disk(Disk::usb("stick").offering(Offers::Uas))
        .disk(Disk::usb("both").ids(0x152d, 0x0578))
        .disk(Disk::usb("slow").offering(Offers::Uas).at(Speed::High))
        .disk(Disk::usb("bulk").offering(Offers::Bot))
}

/// What a host does about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recovery {
    /// Sends the command again, or nothing.
    None,
    /// Task management.
    Functions,
    /// A reset of the port.
    Reset,
}

/// Goal: the data is right after each fault, and the recovery is the one that the fault needs, and no other.
/// Method: one fault at a time meets a read or a write of a served disk; the disk counts what its host does.
fn faults_cost_no_data(machine: &mut Machine, disks: &[&str], through: &str) {
    use Recovery::{Functions, None, Reset};
    use UasFault::{
        DeferredError, LoseStatus, ResetItself, StallCommand, StallDataIn, StallDataOut, StallStatus, TaskSetFull,
        WrongTag,
    };
    let both = [
        (StallCommand, Reset),
        (StallStatus, Reset),
        (WrongTag, Reset),
        (LoseStatus, Functions),
        (TaskSetFull, None),
        (DeferredError, None),
    ];
    machine.device("bulk");
    for name in disks {
        let (device, process) = serve(machine, &format!("{} --timeout 3s {through}", name.to_uppercase()));
        // A reset by the disk itself, with all written data flushed: no write is in doubt.
        let (of_reads, of_writes) = ([(StallDataIn, Reset), (ResetItself, Functions)], [(StallDataOut, Reset)]);
        for (is_read, of_kind) in [(true, &of_reads[..]), (false, &of_writes[..])] {
            for (fault, recovery) in both.into_iter().chain(of_kind.iter().copied()) {
                machine.ok(&format!(
                    "dd if=/dev/urandom of=/tmp/data bs=4k count=64 2>/dev/null; \
                     dd if=/tmp/data of={device} bs=256k conv=fsync 2>/dev/null"
                ));
                let before = machine.simulated(name).counts();
                machine.simulated(name).behave(|disk| disk.uas_faults.push(fault));
                let read = format!(
                    "echo 3 > /proc/sys/vm/drop_caches; dd if={device} bs=256k count=1 2>/dev/null | cmp - /tmp/data"
                );
                if !is_read {
                    machine.ok(&format!(
                        "dd if=/dev/urandom of=/tmp/data bs=64k seek=1 count=2 conv=notrunc 2>/dev/null; \
                         dd if=/tmp/data of={device} bs=256k oflag=direct 2>/dev/null"
                    ));
                }
                let ran = machine.sh(&read);
                assert_eq!(ran.code, 0, "{name}, {fault:?}: {ran:?}\n{}", machine.ok("cat /tmp/said"));
                assert_eq!(machine.simulated(name).uas_faults(), [], "{name}, {fault:?}: it was met");
                // A flush fails once after a deferred error, which reports the loss of a write.
                let flushed = machine.sh(&format!("dd if=/tmp/data of={device} bs=64k count=1 conv=fsync 2>/dev/null"));
                assert_eq!(flushed.code != 0, fault == DeferredError, "{name}, {fault:?}: {flushed:?}");
                let after = machine.simulated(name).counts();
                let found = if after.resets > before.resets {
                    Reset
                } else if after.functions > before.functions {
                    Functions
                } else {
                    None
                };
                assert_eq!(found, recovery, "{name}, {fault:?}: {before:?}, {after:?}");
            }
        }
        let said = end(machine, &process);
        assert!(said.contains("timeouts"), "recoveries are reported: {said}");
    }
}

/// Goal: a device that never answers ends the server in bounded time, after every step of recovery, and the kernel gets
/// errors; one that is repaired by a reset goes on.
fn a_silent_device_ends_in_bounded_time(machine: &mut Machine) {
    let (device, process) = serve(machine, "STICK --timeout 1s");
    let before = machine.simulated("stick").counts();
    machine.simulated("stick").behave(|disk| disk.hangs_after = Some(0));
    let begin = Instant::now();
    // The first read is given up after two resets, and the server at the second one: an error, or the end of a device that has no size any more.
    for _ in 0..2 {
        assert_eq!(machine.ok(&format!("dd if={device} bs=4k count=1 iflag=direct 2>/dev/null | wc -c")), "0");
    }
    ended(machine, &process);
    // Twice a command, a query, an abort and a reset of the unit of 1 s each.
    let took = begin.elapsed();
    assert!(took > Duration::from_secs(7) && took < Duration::from_secs(60), "{took:?}");
    machine.simulated("stick").behave(|disk| disk.hangs_after = None);
    let (said, after) = (machine.ok("cat /tmp/said"), machine.simulated("stick").counts());
    assert!(said.contains("the device does not answer"), "{said}");
    assert!(after.functions >= before.functions + 6 && after.resets >= before.resets + 2, "{before:?}, {after:?}");
    // It can be served again.
    let (device, process) = serve(machine, "STICK");
    machine.ok(&format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null"));
    end(machine, &process);
}

/// A server whose thread takes no turn and cannot be killed, as one that hangs in the kernel: the control group `freezer` holds it.
struct Held {
    process: String,
}

/// Goal: if the server's thread hangs in the kernel and cannot be killed, the watchdog ends the block device: its I/O fails.
/// Method: it takes 63 s, so another case runs in between. A read waits all the time.
fn hold_a_server(machine: &mut Machine) -> Held {
    machine.ok("for i in $(seq 200); do trueio usb list --json | grep -q BOTH && break; sleep 0.1; done");
    let (device, process) = serve(machine, "BOTH --timeout 1s");
    // The kernel's own limit comes later.
    let queue = device.replace("/dev/", "/sys/block/") + "/queue/io_timeout";
    machine.ok(&format!(
        "mv /tmp/said /tmp/said-held; echo 600000 > {queue}; \
         mkdir -p /tmp/freezer && mount -t cgroup -o freezer freezer /tmp/freezer && mkdir /tmp/freezer/held && \
         echo {process} > /tmp/freezer/held/tasks && echo FROZEN > /tmp/freezer/held/freezer.state; \
         (dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; echo $? > /tmp/held) > /dev/null 2>&1 &"
    ));
    Held { process }
}

impl Held {
    fn assert_io_failed(self, machine: &mut Machine) {
        let ended = "for i in $(seq 1000); do [ -s /tmp/held ] && exit 0; sleep 0.1; done; exit 1";
        let ran = machine.sh_within(Duration::from_secs(150), ended);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_ne!(machine.ok("cat /tmp/held"), "0", "the read that waited");
        // The limit is 60 s and three times that of a command.
        let said = machine.ok("cat /tmp/said-held");
        assert!(said.contains("the server made no progress for 63s"), "{said}");
        let process = self.process;
        machine.ok(&format!("kill -0 {process}; echo THAWED > /tmp/freezer/held/freezer.state"));
        served::ended(machine, &process);
        machine.ok("umount /tmp/freezer");
        nothing_is_connected(machine);
    }
}

#[test]
fn a_fault_costs_no_data_and_a_disk_or_a_server_that_hangs_is_given_up() {
    on(&spec("6.1"), |machine| {
        machine.device("bulk");
        let held = hold_a_server(machine);
        faults_cost_no_data(machine, &["stick", "slow"], "");
        a_silent_device_ends_in_bounded_time(machine);
        held.assert_io_failed(machine);
    });
}

/// Goal: a filesystem on the served disk keeps its data across an orderly end, on each kind of disk.
fn filesystems_keep_their_data(machine: &mut Machine, through: &str) {
    machine.device("bulk");
    // A disk that takes its time has several commands at once.
    machine.simulated("stick").behave(|behaviour| {
        behaviour.latency = std::time::Duration::from_millis(10);
        behaviour.channels = 8;
    });
    for serial in ["EMULATED", "STICK", "SLOW"] {
        let (device, process) = serve(machine, &format!("{serial} {through}"));
        let explained = machine.trueio(&format!("usb switch {serial} bot --dry-run"));
        assert_eq!(explained.code, 2, "a served disk is not switched: {explained:?}");
        machine.ok(&format!(
            "mkfs.ext4 -q -F {device} && mkdir -p /mnt && mount -t ext4 {device} /mnt && \
                     dd if=/dev/urandom of=/mnt/data bs=64k count=100 2>/dev/null && sync && \
                     md5sum < /mnt/data > /tmp/sum && umount /mnt"
        ));
        let said = end(machine, &process);
        assert!(said.contains("UAS in user space"), "{said}");
        if serial == "STICK" {
            let stick = machine.simulated("stick");
            assert_eq!(stick.dirty_blocks(), 0, "the last flush");
            assert!(stick.counts().depth_max > 4, "many commands at once: {:?}", stick.counts());
        }
        // Served again, without its caches: what is read comes from the disk.
        let (device, process) = serve(machine, &format!("{serial} --read-only {through}"));
        machine.ok(&format!("mount -t ext4 -o ro,noload {device} /mnt && md5sum < /mnt/data | cmp - /tmp/sum"));
        machine.sh(&format!("dd if=/dev/zero of={device} bs=4k count=1 oflag=direct")).assert_code(1);
        machine.ok("umount /mnt");
        end(machine, &process);
    }
}

/// Goal: what a program wrote to the block device without a flush is on the disk after an orderly end.
fn pending_writes_reach_the_disk(machine: &mut Machine, through: &str) {
    let (device, process) = serve(machine, &format!("STICK {through}"));
    machine.ok(&format!(
        "dd if=/dev/urandom of=/tmp/data bs=64k count=16 2>/dev/null; dd if=/tmp/data of={device} bs=64k 2>/dev/null"
    ));
    end(machine, &process);
    assert_eq!(machine.simulated("stick").dirty_blocks(), 0, "the last flush");
    let (device, process) = serve(machine, &format!("STICK {through}"));
    machine.ok(&format!("dd if={device} bs=64k count=16 iflag=direct 2>/dev/null | cmp - /tmp/data"));
    // A table with one partition of Linux, from block 2048, of 4096 blocks.
    machine.ok(&format!(
        "dd if=/dev/zero of={device} bs=64k count=16 2>/dev/null; \
         printf '\\0\\0\\0\\0\\203\\0\\0\\0\\0\\010\\0\\0\\0\\020\\0\\0' | dd of={device} bs=1 seek=446 conv=notrunc 2>/dev/null; \
         printf '\\125\\252' | dd of={device} bs=1 seek=510 conv=notrunc 2>/dev/null"
    ));
    end(machine, &process);
    // No other program opens the device here; the partition is there when the device is announced.
    let (device, process) = serve(machine, &format!("STICK {through}"));
    assert_eq!(machine.ok(&format!("cat /sys/block/*/{}p1/size", device.trim_start_matches("/dev/"))), "4096");
    end(machine, &process);
}

#[test]
fn a_filesystem_on_a_served_disk_keeps_its_data() {
    on(&spec("6.1"), |machine| {
        filesystems_keep_their_data(machine, "");
        pending_writes_reach_the_disk(machine, "");
        disks_outlive_a_suspend(machine, "");
    });
}

/// Starts a server where netlink does not show the kernel's NBD client, so that it uses ioctls: in a network namespace of its own.
fn serve_by_ioctls(machine: &mut Machine, arguments: &str) -> (String, String) {
    let served = serve_by(machine, "unshare -n", arguments);
    machine.ok("grep -q 'a suspend of the machine will end the block device' /tmp/said");
    served
}

/// Goal: where netlink does not show the kernel's NBD client, a disk is served by ioctls, with the same behaviour.
#[test]
fn without_netlink_a_disk_is_served_by_ioctls() {
    on(&spec("6.1"), |machine| {
        machine.device("bulk");
        let (device, process) = serve_by_ioctls(machine, "STICK");
        machine.ok(&format!(
            "mkfs.ext4 -q -F {device} && mkdir -p /mnt && mount -t ext4 {device} /mnt && \
             dd if=/dev/urandom of=/mnt/data bs=64k count=100 2>/dev/null && sync && md5sum < /mnt/data > /tmp/sum && umount /mnt; \
             dd if=/dev/urandom of=/tmp/data bs=64k count=16 2>/dev/null; dd if=/tmp/data of={device} bs=64k seek=900 2>/dev/null"
        ));
        end(machine, &process);
        // Killed while it waits for the disk, and before the signal to end or after it.
        for is_asked_before in [false, true] {
            let (device, process) = serve_by_ioctls(machine, "STICK --timeout 120s");
            machine.ok(&format!("dd if={device} bs=64k skip=900 count=16 iflag=direct 2>/dev/null | cmp - /tmp/data"));
            kill_while_the_kernel_waits(machine, &device, &process, is_asked_before);
        }
        let (device, process) = serve_by_ioctls(machine, "STICK --read-only");
        machine.ok(&format!(
            "mount -t ext4 -o ro,noload {device} /mnt && md5sum < /mnt/data | cmp - /tmp/sum; umount /mnt"
        ));
        end(machine, &process);
    });
}

/// Goal: random writes of several sizes to a file on a served disk, in a deep queue, are read back without a difference, on each kind of disk.
/// Method: passes until the time is over, three at least.
fn random_writes_are_read_back(machine: &mut Machine, through: &str, limit: Duration) {
    machine.device("bulk");
    let begin = Instant::now();
    let (mut passes, mut blocks) = (0, 0);
    while begin.elapsed() < limit || passes < 3 {
        let (device, process) = serve(machine, &format!("{} {through}", ["EMULATED", "STICK", "SLOW"][passes % 3]));
        machine.ok(&format!("mkfs.ext4 -q -F {device} && mkdir -p /mnt && mount -t ext4 {device} /mnt"));
        let job = "--rw randwrite --bsrange 4k-64k --blockalign 4k --size 8m --iodepth 16 --ioengine io_uring --direct require \
                   --verify crc32c --end_fsync --filename /mnt/data";
        let command = format!(
            "trueio run --no-history --no-evidence --json /tmp/record.json {job} > /tmp/out 2>&1; cat /tmp/out"
        );
        let ran = machine.sh_within(Duration::from_secs(200), &command);
        assert_eq!(machine.sh("test -s /tmp/record.json").code, 0, "{ran:?}");
        let record = record_in(machine, "/tmp/record.json");
        let jobs = || record.phases.iter().flat_map(|phase| &phase.jobs);
        assert_eq!(jobs().map(|job| job.verify_failure_count).sum::<u64>(), 0, "{ran:?}");
        let verified: u64 = jobs().map(|job| job.verified_block_count).sum();
        assert!(verified > 0, "{ran:?}");
        machine.ok("umount /mnt; rm /tmp/record.json");
        (passes, blocks) = (passes + 1, blocks + verified);
        let said = end(machine, &process);
        // The line is printed if anything was seen. A command that was sent again is no loss.
        assert!(!said.contains("the disk had") || said.contains("0 timeouts and 0 protocol errors"), "{said}");
    }
    println!("{passes} passes of 8 MiB, {blocks} blocks compared, no difference, in {:.0?}", begin.elapsed());
}

/// 20 s, and `TRUEIO_LAB_SECONDS=600` by hand.
#[test]
fn random_writes_to_a_served_disk_are_read_back_without_a_difference() {
    let given = std::env::var("TRUEIO_LAB_SECONDS");
    let limit = Duration::from_secs(given.map_or(20, |text| text.parse().expect("a number of seconds")));
    on(&spec("6.1"), |machine| random_writes_are_read_back(machine, "", limit));
}

/// Suspends the machine up to where it would be switched off: all devices are suspended and resumed.
const SUSPEND: &str = "echo 2 > /sys/module/suspend/parameters/pm_test_delay; echo core > /sys/power/pm_test && echo mem > /sys/power/state";

/// Goal: a served disk outlives a suspend of the machine. The kernel refuses one while a request to the disk waits: the process
/// that waits cannot be frozen after the server was. Then everything goes on.
fn disks_outlive_a_suspend(machine: &mut Machine, through: &str) {
    for serial in ["EMULATED", "STICK"] {
        let (device, process) = serve(machine, &format!("{serial} --timeout 5s {through}"));
        let is_right = format!("dd if={device} bs=64k count=16 iflag=direct 2>/dev/null | cmp - /tmp/data");
        let before = machine.simulated("stick").counts().functions;
        machine.ok(&format!(
            "dd if=/dev/urandom of=/tmp/data bs=64k count=16 2>/dev/null; \
             dd if=/tmp/data of={device} bs=64k oflag=direct conv=fsync 2>/dev/null; \
             {SUSPEND} && {is_right}"
        ));
        if serial == "STICK" {
            // The interface was set up again at once, not when a command was late.
            assert_eq!(machine.simulated("stick").counts().functions, before);
            machine.simulated("stick").behave(|disk| disk.hangs_after = Some(0));
            machine.ok(&format!(
                "echo 2000 > /sys/power/pm_freeze_timeout; rm -f /tmp/read; \
                 (dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; echo $? > /tmp/read) > /dev/null 2>&1 & \
                 sleep 1; ! echo mem > /sys/power/state 2> /tmp/busy && grep -q busy /tmp/busy"
            ));
            machine.simulated("stick").behave(|disk| disk.hangs_after = None);
            machine.ok("for i in $(seq 600); do [ -s /tmp/read ] && exit 0; sleep 0.1; done; exit 1");
            assert_eq!(machine.ok("cat /tmp/read"), "0", "the read that waited");
        }
        machine.ok(&format!("dd if={device} of=/dev/null bs=64k count=1 iflag=direct 2>/dev/null && {is_right}"));
        let said = end(machine, &process);
        assert!(said.contains("the machine was suspended"), "{said}");
    }
}

/// The last ones, because the others share a machine with another kernel.
#[test]
fn on_linux_6_12_a_disk_is_served_and_measured_as_on_6_1() {
    on(&spec("6.12"), |machine| {
        filesystems_keep_their_data(machine, "--through ublk");
        pending_writes_reach_the_disk(machine, "--through ublk");
        faults_cost_no_data(machine, &["stick"], "--through ublk");
        random_writes_are_read_back(machine, "--through ublk", Duration::ZERO);
        flushed_data_outlives_a_loss_of_power(machine, "--through ublk");
        for through in ["ublk", "nbd"] {
            disks_outlive_a_suspend(machine, &format!("--through {through}"));
        }
        // The default of a kernel that has it.
        let (device, process) = serve(machine, "STICK");
        assert!(device.starts_with("/dev/ublkb"), "{device}");
        let said = end(machine, &process);
        assert!(said.contains("this kernel can crash"), "{said}");
        // Its driver needs io_uring, the other does not.
        machine.ok("echo 2 > /proc/sys/kernel/io_uring_disabled");
        let forced = machine.trueio("usb serve STICK --through ublk");
        forced.assert_refused(&["the kernel's ublk driver cannot be used", "`--through nbd` does not"]);
        let (device, process) = serve(machine, "STICK");
        machine.ok("echo 0 > /proc/sys/kernel/io_uring_disabled; grep -q 'nbd is used' /tmp/said");
        assert!(device.starts_with("/dev/nbd"), "{device}");
        machine.ok(&format!("dd if={device} of=/dev/null bs=64k count=16 iflag=direct 2>/dev/null"));
        end(machine, &process);
        let list = machine.trueio("usb list --json").json();
        let disks = list["disks"].as_array().expect("disks");
        let stick = disks.iter().find(|disk| disk["usb"]["serial"]["value"] == "STICK").expect("the disk");
        let port = stick["usb"]["device"].as_str().expect("a name");
        machine.ok(&format!(
            "trueio run --ioengine uas --filename usb:{port} --overwrite_existing usb:{port} --rw randwrite --bs 16k --iodepth 8 \
             --size 4m --verify crc32c --sync dsync --no-history --json - > /tmp/record 2> /tmp/why || grep -q '\"complete\"' /tmp/record"
        ));
        let counts = machine.simulated("stick").counts();
        assert!(counts.fua_writes >= 256, "each write is durable: {counts:?}");
    });
}

fn refused(ran: Ran, words: &[&str]) {
    ran.assert_refused(words);
}

/// Goal: each bad input ends in one sentence, and nothing stays claimed.
#[test]
fn bad_input_ends_in_one_sentence_and_nothing_stays_claimed() {
    on(&spec("6.1"), |machine| {
        machine.device("bulk");
        refused(machine.trueio("usb serve NOTHING"), &["is not a USB disk"]);
        refused(machine.trueio("usb serve BULK"), &["does not offer UAS"]);
        refused(machine.trueio("usb serve STICK --lun 3"), &["the device has the logical units 0"]);
        refused(machine.trueio("usb serve STICK --resumable 0s"), &["a server needs 1 s or longer"]);
        refused(machine.trueio("usb serve STICK --resumable 5s --through nbd"), &["`--resumable` needs ublk"]);
        refused(
            machine.trueio("usb serve STICK --resumable 5s"),
            &["/dev/ublk-control", "`modprobe ublk_drv` loads it"],
        );
        refused(machine.trueio("usb serve STICK --resume"), &["no server of this disk left a block device behind"]);
        let (_, process) = serve(machine, "STICK");
        refused(machine.trueio("usb serve STICK"), &["driver usbfs"]);
        refused(machine.trueio("usb serve STICK --resume"), &["driver usbfs"]);
        end(machine, &process);
        // With little memory for transfers the requests are shorter.
        let parameter = "/sys/module/usbcore/parameters/usbfs_memory_mb";
        machine.ok(&format!("cat {parameter} > /tmp/mib; echo 1 > {parameter}"));
        let (device, process) = serve(machine, "STICK");
        machine.ok(&format!("dd if={device} of=/dev/null bs=1M count=8 iflag=direct 2>/dev/null"));
        end(machine, &process);
        machine.ok(&format!("cat /tmp/mib > {parameter}"));
        // Given back each time: the kernel's driver binds when it comes.
        machine.ok("modprobe uas");
        machine.device("stick");
        refused(machine.trueio("usb serve STICK"), &["the kernel drives", "with UAS already"]);
        machine.ok("rmmod uas");
    });
}

/// Goal: when the server is killed under load, the kernel gets errors, what was flushed is on the disk, and the disk can be
/// served again.
#[test]
fn a_killed_server_loses_no_flushed_data_and_the_kernel_gets_errors() {
    on(&spec("6.1"), |machine| {
        machine.device("bulk");
        let (device, process) = serve(machine, "STICK");
        machine.ok(&format!(
            "mkfs.ext4 -q -F {device} && mkdir -p /mnt && mount -t ext4 {device} /mnt && \
             dd if=/dev/urandom of=/mnt/kept bs=64k count=40 conv=fsync 2>/dev/null && md5sum < /mnt/kept > /tmp/sum"
        ));
        // Writes that are under way when the server dies: at least 8 more MiB have reached the disk.
        machine.ok("(while dd if=/dev/zero of=/mnt/load bs=64k count=160 conv=fsync 2>/dev/null; do :; done; echo ended > /tmp/load) \
             > /dev/null 2>&1 &");
        machine.ok("while ! [ -s /mnt/load ]; do sleep 0.1; done");
        machine.ok(&format!("kill -KILL {process}"));
        ended(machine, &process);
        // Not silent, and no hang: the writer gets an error, and so does a direct read.
        machine.ok("while ! [ -s /tmp/load ]; do sleep 0.1; done");
        let read = machine.sh(&format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct"));
        assert_ne!(read.code, 0, "{read:?}");
        machine.ok("umount /mnt || umount -l /mnt");
        let (device, process) = serve(machine, "STICK");
        machine.ok(&format!("mount -t ext4 {device} /mnt && md5sum < /mnt/kept | cmp - /tmp/sum && umount /mnt"));
        end(machine, &process);
    });
}

/// Kills a server while a thread of the kernel waits for room in its socket with the lock that ends of the device wait for. The
/// writer gets an error.
fn kill_while_the_kernel_waits(machine: &mut Machine, device: &str, process: &str, is_asked_before: bool) {
    // The disk does not answer, so every slot is taken and no request is read.
    machine.simulated("stick").behave(|disk| disk.hangs_after = Some(0));
    machine.ok(&format!(
        "rm -f /tmp/load; (dd if=/dev/zero of={device} bs=1M count=40 conv=fsync 2>/dev/null; echo $? > /tmp/load) \
         > /dev/null 2>&1 & n=0; while [ $n -lt 5 ]; do \
         if grep -qs sock_alloc_send_pskb /proc/[0-9]*/stack; then n=$((n+1)); else n=0; fi; sleep 0.2; done"
    ));
    if is_asked_before {
        // A thread of the server waits then: for what is cached, or for the lock.
        machine.ok(&format!(
            "kill -TERM {process}; for i in $(seq 100); do \
             grep -qsE 'blkdev_fsync|nbd_ioctl|blkdev_get' /proc/{process}/task/*/stack && [ $i -gt 10 ] && exit 0; sleep 0.1; done; exit 1"
        ));
    }
    machine.ok(&format!("kill -KILL {process}"));
    ended(machine, process);
    machine.ok("for i in $(seq 600); do [ -s /tmp/load ] && exit 0; sleep 0.1; done; exit 1");
    assert_ne!(machine.ok("cat /tmp/load"), "0", "the writer gets an error");
    machine.simulated("stick").behave(|disk| disk.hangs_after = None);
}

/// Waits until no device of the kernel's NBD client is connected any more.
fn nothing_is_connected(machine: &mut Machine) {
    machine.ok("for i in $(seq 100); do ls /sys/block/nbd*/pid > /dev/null 2>&1 || exit 0; sleep 0.1; done; ls /sys/block/nbd*/pid >&2; exit 1");
}

/// Goal: a server that is killed while the kernel waits to send it a request ends nevertheless, and the writer gets an error,
/// whether a signal asked the server to end before or not. No device stays connected.
#[test]
fn a_killed_server_ends_although_the_kernel_waits_to_send_a_request() {
    on(&spec("6.1"), |machine| {
        machine.device("bulk");
        for is_asked_before in [false, true] {
            // With a limit that the case does not reach.
            let (device, process) = serve(machine, "STICK --timeout 120s");
            // The first one to open it reads its partitions.
            machine.ok(&format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null"));
            kill_while_the_kernel_waits(machine, &device, &process, is_asked_before);
            nothing_is_connected(machine);
        }
        let (device, process) = serve(machine, "STICK");
        machine.ok(&format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null"));
        end(machine, &process);
        nothing_is_connected(machine);
    });
}

/// Goal: if the server and its keeper are killed together, requests under way end with an error at their time limit, and new ones
/// at once.
/// Method: the limit of the block device is shortened, because the default is 10 minutes.
#[test]
fn requests_end_although_server_and_keeper_were_killed() {
    on(&spec("6.1"), |machine| {
        machine.device("bulk");
        let (device, process) = serve(machine, "STICK --timeout 120s");
        let queue = device.replace("/dev/", "/sys/block/") + "/queue/io_timeout";
        assert_eq!(machine.ok(&format!("cat {queue}")), "2220000", "60 s and 18 times the limit of a command");
        machine.ok(&format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; echo 4000 > {queue}"));
        machine.simulated("stick").behave(|disk| disk.hangs_after = Some(0));
        let keeper = machine.ok(
            "for file in /proc/[0-9]*/cmdline; do grep -qs give-bac[k] $file && echo $file | cut -d/ -f3; done; true",
        );
        machine.ok(&format!(
            "rm -f /tmp/read; (dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; echo $? > /tmp/read) > /dev/null 2>&1 & \
             sleep 1; kill -KILL {keeper} {process}"
        ));
        ended(machine, &process);
        machine.ok("! [ -s /tmp/read ]; for i in $(seq 300); do [ -s /tmp/read ] && exit 0; sleep 0.1; done; exit 1");
        assert_ne!(machine.ok("cat /tmp/read"), "0", "the read that waited");
        assert_ne!(machine.sh(&format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct")).code, 0);
        machine.simulated("stick").behave(|disk| disk.hangs_after = None);
        // Another one is served by another device.
        let (other, process) = serve(machine, "STICK");
        assert_ne!(other, device);
        machine.ok(&format!("dd if={other} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null"));
        end(machine, &process);
    });
}

/// Goal: when a served disk loses its power, the server ends with the reason, and what was flushed or written with FUA is
/// there afterwards.
/// Method: the simulated disk forgets its cache; a write that was not flushed is lost, so there was one.
fn flushed_data_outlives_a_loss_of_power(machine: &mut Machine, through: &str) {
    machine.device("bulk");
    let (device, process) = serve(machine, &format!("STICK {through}"));
    // The last block of a letter is the one that counts; each is written past the page cache.
    let write = |machine: &mut Machine, letter: &str, block: u32, flags: &str| {
        machine.ok(&format!(
            "head -c 4096 /dev/zero | tr '\\0' {letter} | dd of={device} bs=4k seek={block} oflag=direct{flags} 2>/dev/null"
        ));
    };
    for block in 0..3 {
        write(machine, "o", block, " conv=fsync");
    }
    write(machine, "f", 0, " conv=fsync");
    machine.ok(&format!(
        "trueio run --no-history --no-evidence --filename {device} --overwrite_existing {device} --rw write --bs 4k --offset 4k \
         --size 4k --direct require --sync dsync --buffer_pattern 0x64 > /dev/null"
    ));
    write(machine, "u", 2, "");
    assert!(machine.simulated("stick").dirty_blocks() > 0, "the last write is in the cache");
    assert!(machine.simulated("stick").cut_power() > 0, "blocks were lost");
    machine.ok(&format!("while kill -0 {process} 2>/dev/null; do dd if={device} of=/dev/null bs=4k count=1 iflag=direct; sleep 0.1; done; true"));
    let said = machine.ok("cat /tmp/said");
    assert!(said.contains("the device was unplugged"), "{said}");
    machine.simulated("stick").plug();
    machine.ok("for i in $(seq 200); do trueio usb list --json | grep -q STICK && break; sleep 0.1; done");
    let (device, process) = serve(machine, &format!("STICK {through}"));
    let found = machine.ok(&format!(
        "for block in 0 1 2; do dd if={device} bs=4k skip=$block count=1 iflag=direct 2>/dev/null | head -c 1; done"
    ));
    assert_eq!(found, "fdo", "flushed, durable, lost");
    end(machine, &process);
}

#[test]
fn a_served_disk_that_loses_power_keeps_what_was_flushed() {
    on(&spec("6.1"), |machine| flushed_data_outlives_a_loss_of_power(machine, ""));
}

/// Goal: a served disk is measured by its block device as any other disk: the server is no user of it.
#[test]
fn a_served_disk_is_measured_and_verified_by_its_block_device() {
    on(&spec("6.1"), |machine| {
        machine.device("bulk");
        let (device, process) = serve(machine, "STICK");
        machine
            .ok(&format!("dd if=/dev/zero of={device} bs=64k count=1 conv=fsync 2>/dev/null; rm -f /tmp/record.json"));
        let accept =
            "TRUEIO_ACCEPT=achieved_depth,clock_and_cpu,processor_wait,steadiness,stops,zero_blocks,latency_floor";
        let command = format!(
            "{accept} trueio run --no-history --json /tmp/record.json --filename {device} --overwrite_existing {device} --rw randwrite \
             --bs 16k --size 8m --iodepth 8 --ioengine io_uring --direct require --verify crc32c --end_fsync"
        );
        let ran = machine.sh_within(Duration::from_secs(120), &command);
        assert_eq!(ran.code, 0, "{ran:?}");
        let record = record_in(machine, "/tmp/record.json");
        let job = &record.phases[0].jobs[0];
        assert_eq!((job.verified_block_count, job.verify_failure_count), (512, 0), "{ran:?}");
        assert_eq!(machine.simulated("stick").dirty_blocks(), 0, "the flush reached the disk");
        let command = format!(
            "{accept} trueio baseline --quick {device} --overwrite {device} --no-history --json /tmp/record.json"
        );
        let ran = machine.sh_within(Duration::from_secs(200), &command);
        let record = record_in(machine, "/tmp/record.json");
        assert_eq!(record.outcome, trueio_model::Outcome::Complete, "{ran:?}");
        end(machine, &process);
        // While a program writes to it, it is refused.
        let (device, process) = serve(machine, "STICK");
        machine.ok(&format!("sleep 1000 >> {device} & sleep 1"));
        machine
            .trueio(&format!("run --no-history --filename {device} --overwrite_existing {device} --rw write --size 1m"))
            .assert_refused(&["is open for writing in `sleep`"]);
        machine.ok("kill $(pidof sleep); sleep 1");
        end(machine, &process);
    });
}

/// Goal: without `--foreground` the command ends when the block device is there, and nothing of the server refers to its terminal; its messages, and
/// those of its keeper, are in the kernel's log. A closed terminal does not end it.
#[test]
fn a_server_in_the_background_leaves_its_terminal() {
    on(&spec("6.1"), |machine| {
        machine.device("bulk");
        for is_killed in [false, true] {
            let ran = machine.trueio("usb serve STICK --timeout 3s");
            assert_eq!(ran.code, 0, "{ran:?}");
            let device = ran.out.trim().to_owned();
            assert!(device.starts_with("/dev/nbd") && ran.err.contains("unmount /dev/nbd"), "{ran:?}");
            let process = ran.err.split("`kill ").nth(1).and_then(|rest| rest.split('`').next()).expect("its number");
            let is_there = format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null");
            machine.ok(&is_there);
            // After a turn of the server. Its session is its own.
            machine.ok(&format!(
                "sleep 2; for process in {process} $(cat /proc/{process}/task/*/children); do \
                 for n in 1 2; do [ \"$(readlink /proc/$process/fd/$n)\" = /dev/null ] || exit 1; done; done; \
                 [ $(cut -d' ' -f6 /proc/{process}/stat) = {process} ] && kill -HUP {process} && kill -HUP {process} && sleep 0.5 && {is_there}"
            ));
            if is_killed {
                machine.ok(&format!("kill -KILL {process}"));
                ended(machine, process);
                nothing_is_connected(machine);
                machine.ok(&format!(
                    "dmesg | grep -q 'trueio: usb serve 2-.*: every I/O of {device} fails: its server has died'"
                ));
            } else {
                machine.simulated("stick").behave(|disk| disk.uas_faults.push(UasFault::WrongTag));
                machine.ok(&format!("{is_there}; kill -TERM {process}"));
                ended(machine, process);
                machine.ok("dmesg | grep -q 'trueio: usb serve 2-.*: the disk had .* 1 protocol errors'");
            }
        }
        // A failure is reported where the command was called, and nothing goes on.
        let ran = machine.trueio("usb serve STICK --lun 3");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        machine.ok("! grep -qs detache[d] /proc/[0-9]*/cmdline");
    });
}

/// Goal: a disk that runs on BOT, as on a kernel without UAS, is taken over with its cache flushed, and comes back to the
/// kernel's driver when the server is killed.
#[test]
fn a_disk_on_bot_is_taken_over_and_comes_back_when_the_server_is_killed() {
    on(&spec("6.1"), |machine| {
        // The quirk makes usb-storage take the disk, as a kernel without UAS does.
        let quirks = "/sys/module/usb_storage/parameters/quirks";
        machine.ok("for i in $(seq 200); do trueio usb list --json | grep -q BOTH && break; sleep 0.1; done");
        let list = machine.trueio("usb list --json").json();
        let disks = list["disks"].as_array().expect("disks");
        let of = |disk: &&serde_json::Value| disk["usb"]["serial"]["value"] == "BOTH";
        let usb = disks.iter().find(of).expect("the disk")["usb"].clone();
        let interface = usb["interface"].as_str().expect("a name").to_owned();
        machine.ok(&format!("echo 152d:0578:u > {quirks}; echo {interface} > /sys/bus/usb/drivers_probe"));
        let before = machine.device("both");
        machine.ok(&format!("echo trueio | dd of={before} bs=512 conv=sync 2>/dev/null"));
        let (device, process) = serve(machine, "BOTH");
        assert_eq!(machine.simulated("both").dirty_blocks(), 0, "flushed before the driver was disconnected");
        assert_eq!(machine.ok(&format!("head -c 6 {device}")), "trueio");
        machine.ok(&format!("! [ -e {before} ]"));
        // After a suspend the kernel binds its driver to the interface again, whose block device appears a second later.
        machine.ok(&format!("{SUSPEND}; sleep 3"));
        let found = machine.ok(&format!(
            "basename $(readlink /sys/bus/usb/devices/{interface}/driver); ls /sys/bus/usb/devices/{interface} | grep host; ls {before} 2>/dev/null; true"
        ));
        assert_eq!(found, "usbfs", "{}", machine.ok("cat /tmp/said; dmesg | tail -n 90"));
        assert_eq!(machine.ok(&format!("echo 3 > /proc/sys/vm/drop_caches; head -c 6 {device}")), "trueio");
        machine.ok(&format!("kill -KILL {process}"));
        ended(machine, &process);
        let after = machine.device("both");
        assert_eq!(machine.ok(&format!("head -c 6 {after}")), "trueio");
        machine.ok(&format!("echo > {quirks}"));
    });
}

/// Goal: a disk that is unplugged while it is served ends the server with its reason, and the kernel gets errors.
#[test]
fn an_unplugged_disk_ends_the_server_with_its_reason() {
    on(&spec("6.1"), |machine| {
        machine.device("bulk");
        let (device, process) = serve(machine, "STICK");
        machine.simulated("stick").unplug();
        machine.ok(&format!("while kill -0 {process} 2>/dev/null; do dd if={device} of=/dev/null bs=4k count=1 iflag=direct; sleep 0.1; done; true"));
        let said = machine.ok("cat /tmp/said");
        assert!(said.contains("the device was unplugged"), "{said}");
        // The block device has no size any more.
        assert_eq!(machine.ok(&format!("dd if={device} bs=4k count=1 iflag=direct 2>/dev/null | wc -c")), "0");
        // Plugged in again, it can be served again.
        machine.simulated("stick").plug();
        machine.ok("for i in $(seq 200); do trueio usb list --json | grep -q STICK && break; sleep 0.1; done");
        let (_, process) = serve(machine, "STICK");
        end(machine, &process);
    });
}
