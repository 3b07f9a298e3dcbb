//! `trueio usb switch` on real kernels with simulated disks: what works, what is refused, and what
//! happens when the disk or the program goes in the middle.

use std::time::Duration;
use trueio_lab::sim::Offers;
use trueio_lab::{Disk, Machine, Spec, Tool, on};

/// What all cases share: two disks alike, one of each other offer, and all that a disk can be used by.
fn desk() -> Spec {
    Spec::new()
        .kernel("6.1")
        .module("ext4")
        .module("dm-mod")
        .module("loop")
        .tool(Tool::MKFS_EXT4)
        .tool(Tool::LVM)
        .disk(Disk::usb("one").mib(16))
        .disk(Disk::usb("two").mib(16))
        .disk(Disk::usb("bot-only").offering(Offers::Bot))
        .disk(Disk::usb("uas-only").offering(Offers::Uas))
}

/// Returns the transport from the kernel: the driver of a disk's interface.
fn driver(machine: &mut Machine, serial: &str) -> String {
    let device = machine.device(serial);
    let name = device.trim_start_matches("/dev/");
    let path = machine.ok(&format!("readlink -f /sys/block/{name}/device/../../../driver"));
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// A case on the machine of all, which finds it as after a start, whatever the one before it left.
fn at_the_desk(case: impl FnOnce(&mut Machine)) {
    on(&desk(), |machine| {
        machine.ok("cd /sys/module/usb_storage/parameters && echo > quirks && echo 1 > delay_use && \
             rm -rf /run/trueio /etc/modprobe.d");
        let device = machine.device("one");
        if driver(machine, "one") != "uas" {
            machine.trueio(&format!("usb switch {device} uas")).assert_code(0);
            machine.ok("rm -rf /run/trueio");
        }
        case(machine);
    });
}

fn quirks(machine: &mut Machine) -> String {
    machine.ok("cat /sys/module/usb_storage/parameters/quirks").trim().to_owned()
}

#[test]
fn a_disk_is_switched_to_bot_and_back_with_its_cache_flushed() {
    // The one that the other cases use comes last, and stays up for them.
    for kernel in ["6.12", "6.1"] {
        on(&desk().kernel(kernel), |machine| {
            machine.ok("echo 152d:0578:f > /sys/module/usb_storage/parameters/quirks");
            let (one, two) = (machine.device("one"), machine.device("two"));
            machine.ok(&format!("dd if=/dev/urandom of={one} bs=64k count=4 oflag=direct 2>&1"));
            assert!(machine.simulated("one").dirty_blocks() > 0, "the cache is not empty");
            let sum = machine.ok(&format!("md5sum < {one}"));

            let ran = machine.trueio(&format!("usb switch {one} bot")).assert_code(0);
            assert!(ran.out.contains("is on BOT"), "{ran:?}");
            assert_eq!(machine.simulated("one").dirty_blocks(), 0, "what was in the cache is on the medium");
            assert_eq!((driver(machine, "one"), driver(machine, "two")), ("usb-storage".into(), "uas".into()));
            assert_eq!(machine.device("two"), two, "the twin kept its name");
            assert_eq!(quirks(machine), "152d:0578:f", "the quirk string is as it was");
            let one = machine.device("one");
            assert_eq!(machine.ok(&format!("md5sum < {one}")), sum);

            // The rules now lead to another transport than the present one, which is reported.
            let ran = machine.trueio(&format!("usb explain {one}")).assert_code(0);
            assert!(ran.out.contains("but the kernel's rules lead to UAS"), "{ran:?}");

            machine.trueio("usb switch --restore").assert_code(0);
            assert_eq!(driver(machine, "one"), "usb-storage", "nothing was interrupted");
            machine.trueio(&format!("usb switch --restore {one}")).assert_code(0);
            assert_eq!(driver(machine, "one"), "uas");
            let one = machine.device("one");
            assert_eq!(machine.ok(&format!("md5sum < {one}")), sum);
            assert_eq!(machine.ok("ls /run/trueio/usb-switch"), "lock");
        });
    }
}

/// Goal: a disk that its owner mounted after the program was killed is not changed by the next run, which reports it
/// and goes on working; unmounted, it is put back where it was, with its files.
/// Method: usb-storage looks for the disk some seconds after it was bound, and in between the program is killed: once
/// the SCSI host is there, because a kill before that keeps the kernel from starting the driver's thread, and nothing
/// is bound.
#[test]
fn a_disk_mounted_after_a_kill_is_not_touched_until_it_is_unmounted() {
    at_the_desk(|machine| {
        let device = machine.device("one");
        machine.ok("mkdir -p /mnt; echo 4 > /sys/module/usb_storage/parameters/delay_use");
        machine.ok(&format!(
            "(exec trueio usb switch {device} bot > /tmp/out 2>&1) & p=$!; d=/sys/bus/usb/drivers/usb-storage/2-1:1.0; \
             until ls -d $d/host* >/dev/null 2>&1; do sleep 0.05; done; kill -9 $p; cat /tmp/out; \
             until ls $d/host*/target*/*/block/* >/dev/null 2>&1; do sleep 0.1; done; \
             echo 1 > /sys/module/usb_storage/parameters/delay_use"
        ));
        let device = machine.device("one");
        machine.ok(&format!("mkfs.ext4 -q -F {device} && mount {device} /mnt && echo here > /mnt/file && sync"));
        let ran = machine.trueio("usb switch --restore").assert_code(1);
        for words in ["first or last bytes", "is mounted at /mnt", "It was not changed, on BOT"] {
            assert!(ran.err.contains(words), "`{words}`: {ran:?}");
        }
        assert_eq!((driver(machine, "one"), quirks(machine)), ("usb-storage".to_owned(), String::new()));
        let read = "echo 3 > /proc/sys/vm/drop_caches; cat /mnt/file";
        assert_eq!(machine.ok(&format!("echo more >> /mnt/file && sync; {read}")), "here\nmore");
        assert!(machine.trueio("usb list").assert_code(0).out.contains("was interrupted at"));

        machine.ok("umount /mnt");
        let ran = machine.trueio("usb switch --restore").assert_code(0);
        assert!(ran.err.contains("on its previous transport"), "{ran:?}");
        let device = machine.device("one");
        assert_eq!((driver(machine, "one"), quirks(machine)), ("uas".to_owned(), String::new()));
        assert_eq!(machine.ok(&format!("mount {device} /mnt; {read}; umount /mnt")), "here\nmore");
        assert_eq!(machine.ok("ls /run/trueio/usb-switch"), "lock");
    });
}

#[test]
fn a_disk_that_is_mounted_swap_or_open_is_refused_and_keeps_working() {
    at_the_desk(|machine| {
        let device = machine.device("one");
        machine
            .ok(&format!("mkfs.ext4 -q -F {device} && mkdir -p /mnt && mount {device} /mnt && echo here > /mnt/file"));
        machine.trueio(&format!("usb switch {device} bot")).assert_refused(&[
            "is not switched",
            "is mounted at /mnt",
            "hint: unmount it",
        ]);
        assert_eq!(machine.ok("sync; cat /mnt/file; umount /mnt"), "here");

        // Mounted in another namespace only.
        machine.ok(&format!("unshare -m sh -c 'mount {device} /mnt; sleep 60' & sleep 2"));
        machine.trueio(&format!("usb switch {device} bot")).assert_refused(&["is mounted at /mnt"]);
        machine.ok("kill $(pidof sleep); sleep 1");

        machine.ok(&format!("mkswap {device} >/dev/null && swapon {device}"));
        machine.trueio(&format!("usb switch {device} bot")).assert_refused(&["is swap"]);
        machine.ok(&format!("swapoff {device}"));

        machine.ok(&format!("sleep 1000 < {device} & sleep 1"));
        machine.trueio(&format!("usb switch {device} bot")).assert_refused(&["is open in process", "(sleep)"]);
        machine.ok("kill $(pidof sleep); sleep 1");

        machine.ok(&format!(
            "(lvm pvcreate -ff -y {device} && lvm vgcreate lab {device} && lvm lvcreate -y -Zn -Wn -l 2 -n volume lab) 2>&1"
        ));
        machine.trueio(&format!("usb switch {device} bot")).assert_refused(&["dm-0 is stacked on"]);
        machine.ok("lvm vgremove -f lab 2>&1");

        machine.ok(&format!("losetup /dev/loop0 {device}"));
        machine.trueio(&format!("usb switch {device} bot")).assert_refused(&["loop0 is stacked on"]);
        machine.ok("losetup -d /dev/loop0; sleep 1");

        assert_eq!(driver(machine, "one"), "uas");
        machine.trueio(&format!("usb switch {device} bot")).assert_code(0);
    });
}

/// Goal: what is to count after a restart is written when the disk was switched; what cannot be kept is refused before it is
/// touched; and it is taken out again, with a switch and without one.
#[test]
fn persist_refuses_conflicts_first_and_writes_and_removes_its_line() {
    at_the_desk(|machine| {
        let file = "/etc/modprobe.d/trueio-usb.conf";
        machine.ok("mkdir -p /etc/modprobe.d");
        let stick = machine.device("one");
        machine.ok("echo options usb-storage quirks=152d:0578:u > /etc/modprobe.d/mine.conf");
        machine
            .trueio(&format!("usb switch {stick} bot --persist"))
            .assert_refused(&["`/etc/modprobe.d/mine.conf` sets the quirks of usb-storage, too"]);
        assert_eq!((driver(machine, "one"), machine.ok("ls /etc/modprobe.d")), ("uas".into(), "mine.conf".into()));
        machine.ok("rm /etc/modprobe.d/mine.conf");

        let ran = machine.trueio(&format!("usb switch {stick} bot --persist")).assert_code(0);
        assert!(ran.err.contains("update-initramfs -u"), "{ran:?}");
        assert_eq!(machine.ok(&format!("grep -v '^#' {file}")), "options usb-storage quirks=1209:0001:u");
        assert_eq!(driver(machine, "one"), "usb-storage");
        let stick = machine.device("one");
        let ran = machine.trueio(&format!("usb switch {stick} bot --persist")).assert_code(0);
        assert!(ran.err.contains("is already on BOT") && ran.err.contains("needs no change"), "{ran:?}");

        machine.trueio(&format!("usb switch {stick} uas --unpersist")).assert_code(0);
        assert_eq!((driver(machine, "one"), machine.ok("ls /etc/modprobe.d")), ("uas".into(), String::new()));
        machine.ok(&format!("echo options usb-storage quirks=1209:0001:u,152d:0578:f > {file}"));
        let stick = machine.device("one");
        machine.trueio(&format!("usb switch {stick} --unpersist")).assert_code(0);
        assert_eq!(machine.ok(&format!("grep -v '^#' {file}; rm {file}")), "options usb-storage quirks=152d:0578:f");
        assert_eq!(driver(machine, "one"), "uas", "no transport was named");
    });
}

#[test]
fn impossible_switches_are_refused_before_anything_is_touched() {
    at_the_desk(|machine| {
        let (bot, uas, stick) = (machine.device("bot-only"), machine.device("uas-only"), machine.device("one"));
        machine.trueio(&format!("usb switch {bot} uas")).assert_refused(&["does not offer UAS"]);
        machine.trueio(&format!("usb switch {uas} bot")).assert_refused(&["does not offer BOT"]);
        // Ten entries of 12 characters with commas are 119; a tenth more makes the string too long.
        let filler: Vec<String> = (0..10).map(|n| format!("152d:{n:04x}:f")).collect();
        let filler = filler.join(",");
        machine.ok(&format!("printf %s {filler} > /sys/module/usb_storage/parameters/quirks"));
        machine.trueio(&format!("usb switch {stick} bot")).assert_refused(&["the kernel accepts 127"]);
        assert_eq!(quirks(machine), filler);
        // Exactly 127: nine entries, one of 7, ours of 11, and ten commas.
        let filler: Vec<String> = (0..9).map(|n| format!("152d:{n:04x}:f")).collect();
        let filler = format!("{},0bc2:1:", filler.join(","));
        machine.ok(&format!("printf %s {filler} > /sys/module/usb_storage/parameters/quirks"));
        machine.trueio(&format!("usb switch {stick} bot")).assert_code(0);
        assert_eq!((driver(machine, "one"), quirks(machine)), ("usb-storage".to_owned(), filler));
    });
}

#[test]
fn unplugging_during_a_switch_restores_the_quirk_string() {
    at_the_desk(|machine| {
        let device = machine.device("one");
        // usb-storage probes the disk after this number of seconds: time to unplug it.
        machine.ok("echo 15 > /sys/module/usb_storage/parameters/delay_use");
        machine.ok(&format!(
            "rm -f /tmp/code /tmp/out; (trueio usb switch {device} bot; echo $? > /tmp/code) > /tmp/out 2>&1 &"
        ));
        machine.ok("until grep -qs 'binding .*usb-storage' /tmp/out; do sleep 0.1; done");
        machine.simulated("one").unplug();
        machine.ok("until [ -s /tmp/code ]; do sleep 0.1; done");
        let out = machine.ok("cat /tmp/out");
        assert_eq!(machine.ok("cat /tmp/code"), "1", "{out}");
        assert!(out.contains("was unplugged"), "{out}");
        assert_eq!(quirks(machine), "");
        machine.simulated("one").plug();
        machine.device("one");
        assert_eq!(driver(machine, "one"), "uas", "the kernel's rules choose again");
    });
}

#[test]
fn a_killed_switch_is_finished_or_undone_by_the_next_run() {
    at_the_desk(|machine| {
        let mut ended = Vec::new();
        let mut noted = 0;
        for words in ["flushing", "removing", "unbinding", "binding .*usb-storage"] {
            let device = machine.device("one");
            machine.ok(&format!(
                "rm -f /tmp/out; (exec trueio usb switch {device} bot > /tmp/out 2>&1) & echo $! > /tmp/pid"
            ));
            machine.ok(&format!(
                "until grep -qs '{words}' /tmp/out; do :; done; kill -9 $(cat /tmp/pid); sleep 0.5; cat /tmp/out"
            ));
            // The state in /run is reported until it is resolved.
            let is_noted = machine.sh("ls /run/trueio/usb-switch/*.json").code == 0;
            let list = machine.trueio("usb list").assert_code(0).out.clone();
            assert_eq!(list.contains("was interrupted at"), is_noted, "killed at `{words}`: {list}");
            noted += u32::from(is_noted);
            let ran = machine.trueio("usb switch --restore");
            let device = machine.device("one");
            let now = driver(machine, "one");
            ended.push(now.clone());
            assert_eq!(quirks(machine), "", "killed at `{words}`: {ran:?}");
            assert_eq!(driver(machine, "two"), "uas");
            machine.ok(&format!("dd if={device} of=/dev/null bs=1M count=8 iflag=direct 2>&1"));
            if now == "usb-storage" {
                machine.trueio(&format!("usb switch {device} uas")).assert_code(0);
            }
        }
        assert!(ended.iter().any(|now| now == "uas"), "{ended:?}");
        assert!(noted > 0, "no kill came in the middle");
    });
}

/// Goal: a disk that does not answer on BOT, nor then on UAS, is reported to be on neither; its state is kept, and when
/// it answers again the next run puts it where it was.
/// Method: it hangs from the binding of usb-storage until the program has given up.
#[test]
fn a_disk_that_responds_on_neither_transport_is_reported_and_restored_later() {
    at_the_desk(|machine| {
        let device = machine.device("one");
        machine.ok(&format!("rm -f /tmp/code /tmp/out; (trueio usb switch {device} bot --wait 5s; echo $? > /tmp/code) > /tmp/out 2>&1 &"));
        machine.ok("until grep -qs 'binding .*usb-storage' /tmp/out; do sleep 0.1; done");
        machine.simulated("one").behave(|behaviour| behaviour.hangs_after = Some(0));
        let limit = Duration::from_secs(300);
        assert_eq!(machine.sh_within(limit, "until [ -s /tmp/code ]; do sleep 0.5; done").code, 0);
        let out = machine.ok("cat /tmp/out");
        assert_eq!(machine.ok("cat /tmp/code"), "1", "{out}");
        for words in ["undoing: the disk did not return: after 5 s", "is on no transport", "could not be restored"] {
            assert!(out.contains(words), "`{words}` is not in {out}");
        }
        assert_eq!(quirks(machine), "", "the quirk string is restored nevertheless");
        let list = machine.trueio("usb list").assert_code(0).out.clone();
        assert!(list.contains("was interrupted at binding the old driver again"), "{list}");

        machine.simulated("one").behave(|behaviour| behaviour.hangs_after = None);
        let ran = machine.sh_within(limit, "trueio usb switch --restore");
        assert!(ran.code == 0 && ran.err.contains("on its previous transport"), "{ran:?}");
        machine.device("one");
        assert_eq!((driver(machine, "one"), quirks(machine)), ("uas".to_owned(), String::new()));
    });
}
