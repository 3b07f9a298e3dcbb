//! `trueio usb serve` through the kernel's ublk driver: what happens when the server or the disk goes.

use crate::served::{end, ended, serve};
use std::time::{Duration, Instant};
use trueio_lab::sim::{Offers, UasFault};
use trueio_lab::{Disk, Machine, Spec, Tool, on};

/// Two kinds of disks with UAS, and no driver for them: `uas` is missing. Debian's 6.1 has no ublk.
fn spec() -> Spec {
    Spec::new()
        .kernel("6.12")
        .without_module("uas")
        .module("ublk_drv")
        .module("ext4")
        .tool(Tool::MKFS_EXT4)
        .disk(Disk::qemu_uas("emulated"))
        .disk(Disk::usb("stick").offering(Offers::Uas))
        .disk(Disk::usb("bulk").offering(Offers::Bot))
}

/// Waits until a command succeeds.
fn wait_until(machine: &mut Machine, command: &str) {
    machine.ok(&format!("for i in $(seq 900); do {command} && exit 0; sleep 0.1; done; exit 1"));
}

/// Waits until the keeper of a server that was killed has ended.
fn keeper_ended(machine: &mut Machine) {
    wait_until(machine, "! grep -qs give-bac[k] /proc/[0-9]*/cmdline");
}

/// Kills a server that has a request for each tag of its device, and waits until it has ended.
///
/// The disk does not answer meanwhile, so that no request is being sent to the server: a kernel before Linux 6.15 can crash
/// otherwise.
fn kill_with_every_request_under_way(machine: &mut Machine, device: &str, process: &str) {
    machine.simulated("stick").behave(|disk| disk.hangs_after = Some(0));
    let block = device.trim_start_matches("/dev/");
    wait_until(machine, &format!("[ $(awk '{{print $1 + $2}}' /sys/block/{block}/inflight) -ge 31 ]"));
    machine.ok(&format!("sleep 0.5; kill -KILL {process}"));
    ended(machine, process);
    machine.simulated("stick").behave(|disk| disk.hangs_after = None);
}

/// Makes a filesystem on a device, mounts it, and writes a file to it, whose checksum is kept.
fn mount_with_data(machine: &mut Machine, device: &str) {
    machine.ok(&format!(
        "mkfs.ext4 -q -F {device} && mkdir -p /mnt && mount -t ext4 {device} /mnt && \
         dd if=/dev/urandom of=/mnt/kept bs=64k count=40 conv=fsync 2>/dev/null && md5sum < /mnt/kept > /tmp/sum"
    ));
}

/// Goal: a ublk device without `--resumable` ends with its server, in whichever way that ends: every I/O fails, nothing hangs,
/// flushed data is on the disk, and no device is left.
/// Method: the server is killed with every request under way, which the kernel notices only at a timeout; and its disk is
/// unplugged under load.
#[test]
fn a_ublk_device_ends_with_its_server() {
    on(&spec(), devices_end_with_their_servers);
}

fn devices_end_with_their_servers(machine: &mut Machine) {
    let load = "(while dd if=/dev/zero of=/mnt/load bs=64k count=160 conv=fsync 2>/dev/null; do :; done; echo ended > /tmp/load) \
                > /dev/null 2>&1 &";
    let is_gone = "! ls /dev/ublk[bc][0-9]* > /dev/null 2>&1";
    for is_unplugged in [false, true] {
        let (device, process) = serve(machine, "STICK --through ublk --timeout 120s");
        mount_with_data(machine, &device);
        machine.ok(&format!("rm -f /tmp/load; {load}"));
        machine.ok("while ! [ -s /mnt/load ]; do sleep 0.1; done");
        if is_unplugged {
            machine.simulated("stick").unplug();
        } else {
            kill_with_every_request_under_way(machine, &device, &process);
        }
        ended(machine, &process);
        wait_until(machine, "[ -s /tmp/load ]");
        assert_ne!(machine.sh(&format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct")).code, 0, "{device}");
        machine.ok("umount /mnt || umount -l /mnt");
        wait_until(machine, is_gone);
        keeper_ended(machine);
        if is_unplugged {
            let said = machine.ok("cat /tmp/said");
            assert!(said.contains("the device was unplugged"), "{said}");
            machine.simulated("stick").plug();
            wait_until(machine, "trueio usb list --json | grep -q STICK");
        }
        // The journal is replayed.
        let (device, process) = serve(machine, "STICK");
        machine.ok(&format!("mount -t ext4 {device} /mnt && md5sum < /mnt/kept | cmp - /tmp/sum && umount /mnt"));
        end(machine, &process);
    }
}

/// Goal: a resumable device whose server is killed waits, and goes on with another server: the filesystem stays mounted,
/// no write fails, and nothing is lost.
#[test]
fn a_ublk_device_whose_server_was_killed_goes_on_with_another() {
    on(&spec(), |machine| {
        machine.device("bulk");
        for serial in ["STICK", "EMULATED"] {
            goes_on_with_another_server(machine, serial);
        }
    });
}

/// Writes the same content to four files in turn, until `/tmp/stop` is there; then `/tmp/load` has the number of writes, or `failed`.
fn start_load(machine: &mut Machine) {
    machine.ok("rm -f /tmp/load /tmp/stop; \
         (n=0; while ! [ -e /tmp/stop ]; do n=$((n+1)); dd if=/tmp/data of=/mnt/load$((n%4)) bs=64k conv=fsync 2>/dev/null \
         || { echo failed > /tmp/load; exit; }; done; echo $n > /tmp/load) > /dev/null 2>&1 &");
}

/// Stops the load after four writes or more.
fn stop_load(machine: &mut Machine) {
    wait_until(machine, "[ -s /mnt/load0 ]");
    machine.ok("touch /tmp/stop");
    wait_until(machine, "[ -s /tmp/load ]");
    assert_ne!(machine.ok("cat /tmp/load"), "failed", "no write failed");
}

fn goes_on_with_another_server(machine: &mut Machine, serial: &str) {
    let (device, mut process) = serve(machine, &format!("{serial} --resumable 60s --timeout 120s"));
    mount_with_data(machine, &device);
    machine.ok("dd if=/dev/urandom of=/tmp/data bs=64k count=160 2>/dev/null");
    for _ in 0..2 {
        if serial == "STICK" {
            start_load(machine);
            machine.ok("while ! [ -s /mnt/load1 ]; do sleep 0.1; done");
            kill_with_every_request_under_way(machine, &device, &process);
        } else {
            // QEMU's disk answers always: killed without requests, which come then.
            machine.ok(&format!("sync; sleep 1; kill -KILL {process}"));
            ended(machine, &process);
            start_load(machine);
        }
        // It waits: it is there, and a read has not ended.
        machine.ok(&format!(
            "rm -f /tmp/read; echo 3 > /proc/sys/vm/drop_caches; \
             (dd if={device} of=/tmp/first bs=4k count=1 iflag=direct 2>/dev/null; echo $? > /tmp/read) > /dev/null 2>&1 &"
        ));
        machine.ok("sleep 1; ! [ -s /tmp/read ] && ! [ -s /tmp/load ]");
        // A server that cannot answer what the device may send is refused, and the device waits on.
        let parameter = "/sys/module/usbcore/parameters/usbfs_memory_mb";
        machine.ok(&format!("cat {parameter} > /tmp/mib; echo 1 > {parameter}"));
        let small = machine.trueio(&format!("usb serve {serial} --resume"));
        small.assert_refused(&["sends up to", "are possible now"]);
        machine.ok(&format!("cat /tmp/mib > {parameter}; ! [ -s /tmp/read ]"));
        let (same, next) = serve(machine, &format!("{serial} --resume"));
        assert_eq!(same, device);
        process = next;
        wait_until(machine, "[ -s /tmp/read ]");
        assert_eq!(machine.ok("cat /tmp/read"), "0", "the read that waited");
        stop_load(machine);
    }
    machine.ok("sync; echo 3 > /proc/sys/vm/drop_caches; md5sum < /mnt/kept | cmp - /tmp/sum; umount /mnt");
    let said = end(machine, &process);
    assert!(said.contains("UAS in user space"), "{said}");
    assert_eq!(machine.simulated("stick").dirty_blocks(), 0, "the last flush");
    keeper_ended(machine);
    machine.ok("! [ -e /run/trueio/usb-serve/*.json ] && ! ls /dev/ublk[bc][0-9]* > /dev/null 2>&1");
    let (device, process) = serve(machine, &format!("{serial} --read-only"));
    machine.ok(&format!(
        "mount -t ext4 -o ro,noload {device} /mnt && md5sum < /mnt/kept | cmp - /tmp/sum && \
         for n in 0 1 2 3; do cmp /mnt/load$n /tmp/data || exit 1; done; umount /mnt"
    ));
    end(machine, &process);
    let again = machine.trueio(&format!("usb serve {serial} --resume"));
    again.assert_refused(&["no server of this disk left a block device behind"]);
}

/// Goal: a write that the disk took from a server that died is not carried out after a newer one of the next server.
/// Method: the disk holds the write until the newer one was answered. The reset of the port must have dropped it by then.
#[test]
fn a_write_of_a_server_that_was_killed_does_not_replace_a_newer_one() {
    on(&spec(), old_writes_do_not_replace_newer_ones);
}

fn old_writes_do_not_replace_newer_ones(machine: &mut Machine) {
    let (device, process) = serve(machine, "STICK --resumable 60s --timeout 120s");
    machine.ok("for of in old new; do yes $of | dd of=/tmp/$of bs=4k count=1 iflag=fullblock 2>/dev/null; done");
    machine.simulated("stick").behave(|disk| disk.uas_faults.push(UasFault::HoldWrite));
    machine.ok(&format!(
        "rm -f /tmp/written; (dd if=/tmp/old of={device} bs=4k oflag=direct 2>/dev/null; echo $? > /tmp/written) > /dev/null 2>&1 &"
    ));
    let begin = Instant::now();
    while !machine.simulated("stick").uas_faults().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the disk was sent no write");
        std::thread::sleep(Duration::from_millis(50));
    }
    machine.ok(&format!("sleep 1; ! [ -s /tmp/written ] && kill -KILL {process}"));
    ended(machine, &process);
    let (same, process) = serve(machine, "STICK --resume");
    assert_eq!(same, device);
    // It was not answered, so it is sent again. Then comes the newer one.
    wait_until(machine, "[ -s /tmp/written ]");
    assert_eq!(machine.ok("cat /tmp/written"), "0", "the write that waited");
    machine.ok(&format!("dd if=/tmp/new of={device} bs=4k oflag=direct 2>/dev/null"));
    machine.simulated("stick").behave(|disk| disk.carries_out_held = true);
    machine.ok(&format!("dd if={device} bs=4k count=1 iflag=direct 2>/dev/null | cmp - /tmp/new"));
    end(machine, &process);
}

/// Goal: I/O of a resumable device fails when its time is over, and at once when the disk was unplugged meanwhile.
#[test]
fn a_ublk_device_waits_no_longer_than_asked_for_and_not_for_a_disk_that_was_unplugged() {
    on(&spec(), devices_do_not_wait_for_ever);
}

fn devices_do_not_wait_for_ever(machine: &mut Machine) {
    for is_unplugged in [false, true] {
        let wait = if is_unplugged { "600s" } else { "3s" };
        let (device, process) = serve(machine, &format!("STICK --resumable {wait}"));
        machine.ok(&format!("kill -KILL {process}"));
        ended(machine, &process);
        machine.ok(&format!(
            "rm -f /tmp/read; (dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; echo $? > /tmp/read) \
             > /dev/null 2>&1 &"
        ));
        if is_unplugged {
            machine.ok("sleep 1; ! [ -s /tmp/read ]");
            machine.simulated("stick").unplug();
        }
        wait_until(machine, "[ -s /tmp/read ]");
        assert_ne!(machine.ok("cat /tmp/read"), "0", "the read that waited");
        wait_until(machine, "! ls /dev/ublk[bc][0-9]* > /dev/null 2>&1");
        keeper_ended(machine);
        if is_unplugged {
            machine.simulated("stick").plug();
            wait_until(machine, "trueio usb list --json | grep -q STICK");
        }
        let again = machine.trueio("usb serve STICK --resume");
        again.assert_refused(&["no server of this disk left a block device behind"]);
        let (device, process) = serve(machine, "STICK");
        machine.ok(&format!("dd if={device} of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null"));
        end(machine, &process);
    }
}
