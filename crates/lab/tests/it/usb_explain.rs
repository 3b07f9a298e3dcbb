//! `trueio usb explain` and `switch` agree with the kernel where appearances mislead: names that are given again, quirk strings
//! that the kernel ignores, devices that `uas` refuses.

use serde_json::Value;
use trueio_lab::sim::Offers;
use trueio_lab::{Disk, Machine, Spec, on};

const QUIRKS: &str = "/sys/module/usb_storage/parameters/quirks";

/// Disks of different models, because a quirk names a model.
fn spec() -> Spec {
    Spec::new()
        .disk(Disk::usb("bad").ids(0x1209, 0x0010).offering(Offers::Bot))
        .disk(Disk::usb("good").ids(0x1209, 0x0011))
        .disk(Disk::usb("ignored").ids(0x1209, 0x0012))
        .disk(Disk::usb("norelsys").ids(0x2537, 0x1068))
        .disk(Disk::usb("streamless").ids(0x1209, 0x0013).saying(|usb| usb.streams_log2 = 0))
        .disk(Disk::usb("two-streams").ids(0x1209, 0x0014).saying(|usb| usb.streams_log2 = 1))
}

fn explained(machine: &mut Machine, disk: &str) -> Value {
    machine.trueio(&format!("usb explain {disk} --json")).assert_code(0).json()[0].clone()
}

/// The page of `usb explain` as one line.
fn page(machine: &mut Machine, disk: &str) -> String {
    let out = machine.trueio(&format!("usb explain {disk}")).assert_code(0).out;
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The SCSI host of a block device.
fn host(machine: &mut Machine, device: &str) -> String {
    let name = device.trim_start_matches("/dev/");
    machine.ok(&format!("readlink -f /sys/block/{name}/device | grep -o 'host[0-9]*' | head -n 1"))
}

/// The USB device of a disk, for example `2-1`; it may have no driver.
fn port(machine: &mut Machine, serial: &str) -> String {
    machine.ok(&format!("for i in $(seq 200); do trueio usb list --json | grep -q {serial} && break; sleep 0.1; done"));
    let list = machine.trueio("usb list --json").assert_code(0).json();
    let disks = list["disks"].as_array().expect("disks");
    let disk = disks.iter().find(|disk| disk["usb"]["serial"]["value"] == serial).expect("the disk");
    disk["usb"]["device"].as_str().expect("a name").to_owned()
}

/// Lets the kernel evaluate its rules for a device again.
fn probe_again(machine: &mut Machine, port: &str) {
    let file = format!("/sys/bus/usb/devices/{port}/authorized");
    machine.ok(&format!("echo 0 > {file}; sleep 0.5; echo 1 > {file}; sleep 1"));
}

/// Goal: a disk is not blamed for the errors of another that had its name and host number before.
/// Method: a disk without readable data is plugged in first; after it was unplugged, a switch gives its host and name to the
/// healthy one.
#[test]
fn errors_of_an_unplugged_disk_are_not_those_of_the_next_one_with_its_name() {
    on(&spec(), |machine| {
        for name in ["bad", "good", "ignored", "norelsys"] {
            machine.device(name);
            machine.simulated(name).unplug();
        }
        machine.ok("while ls /sys/block | grep -q '^sd'; do sleep 0.1; done");
        machine.simulated("bad").behave(|disk| disk.unreadable = Some(1 << 20..2 << 20));
        machine.simulated("bad").plug();
        let bad = machine.device("bad");
        machine.simulated("good").plug();
        let good = machine.device("good");
        assert_ne!(bad, good);
        machine.sh(&format!("dd if={bad} of=/dev/null bs=4k skip=256 count=1 iflag=direct"));
        let blamed = explained(machine, &bad);
        assert_ne!(blamed["troubles"], serde_json::json!([]), "its own errors are reported: {blamed:#}");
        let of_bad = (host(machine, &bad), bad.clone());
        machine.simulated("bad").unplug();
        machine.ok(&format!("while [ -e {bad} ]; do sleep 0.1; done"));

        machine.trueio(&format!("usb switch {good} bot")).assert_code(0);
        let now = machine.device("good");
        assert_eq!((host(machine, &now), now.clone()), of_bad, "it has the other's host and name");
        let explanation = explained(machine, &now);
        // That it was unplugged by this case is its own line.
        let troubles = explanation["troubles"].as_array().expect("a list");
        assert!(troubles.iter().all(|trouble| trouble["kind"] == "disconnect"), "{explanation:#}");
        machine.trueio(&format!("usb switch {now} uas")).assert_code(0);
        machine.simulated("bad").behave(|disk| disk.unreadable = None);
        for name in ["bad", "ignored", "norelsys"] {
            machine.simulated(name).plug();
            machine.device(name);
        }
    });
}

/// Goal: a quirk entry that the kernel ignores is ignored by `explain`, and a switch of another disk puts the string back
/// byte for byte.
/// Method: a space before the entry; the disk that it names is probed again afterwards, and stays on UAS.
#[test]
fn a_quirk_entry_that_the_kernel_ignores_stays_ignored_after_a_switch() {
    on(&spec(), |machine| {
        machine.device("ignored");
        let good = machine.device("good");
        machine.ok(&format!("printf ' 1209:0012:u,1209:0099:f' > {QUIRKS}; od -c {QUIRKS} > /tmp/before"));
        let port = port(machine, "IGNORED");
        let assert_on_uas = |machine: &mut Machine| {
            probe_again(machine, &port);
            machine.device("ignored");
            let explanation = explained(machine, &port);
            let found = (&explanation["disk"]["usb"]["transport"], &explanation["expected"]);
            assert_eq!(found, (&"uas".into(), &"uas".into()), "{explanation:#}");
        };
        assert_on_uas(machine);
        machine.trueio(&format!("usb switch {good} bot")).assert_code(0);
        machine.ok(&format!("od -c {QUIRKS} | cmp - /tmp/before"));
        assert_on_uas(machine);
        let good = machine.device("good");
        machine.trueio(&format!("usb switch {good} uas")).assert_code(0);
        machine.ok(&format!("od -c {QUIRKS} | cmp - /tmp/before; echo > {QUIRKS}"));
    });
}

/// Goal: a device whose UAS pipes have too few streams has no driver; the rule and the kernel's line are named, and the advice
/// works.
#[test]
fn a_device_without_streams_has_no_driver_and_the_advice_gives_it_one() {
    on(&spec(), |machine| {
        machine.device("good");
        for serial in ["STREAMLESS", "TWO-STREAMS"] {
            let port = port(machine, serial);
            let explanation = explained(machine, &port);
            assert_eq!(explanation["decided_by"], "device_streams", "{explanation:#}");
            assert_eq!(explanation["disk"]["usb"]["transport"], "none", "{explanation:#}");
            let text = page(machine, &port);
            assert!(text.contains("failed with error -22"), "the kernel's line is quoted: {text}");
            let commands = explanation["ways"][0]["commands"].as_array().expect("commands").clone();
            let command = commands[0].as_str().expect("a command").to_owned();
            assert!(command.starts_with("trueio usb switch") && command.ends_with(" bot"), "{explanation:#}");
            let ran = machine.sh(&command);
            assert_eq!(ran.code, 0, "{ran:?}");
            let device = machine.device(&serial.to_lowercase());
            machine.ok(&format!("head -c 512 {device} > /dev/null"));
            assert_eq!(explained(machine, &device)["disk"]["usb"]["transport"], "bot");
            probe_again(machine, &port);
        }
    });
}

/// Goal: a disk of a model that the kernel keeps on BOT, and that an entry without flags forces to UAS, is explained by the entry.
#[test]
fn a_disk_that_a_quirk_forces_to_uas_is_explained_by_the_quirk() {
    on(&spec(), |machine| {
        machine.device("norelsys");
        let port = port(machine, "NORELSYS");
        machine.ok(&format!("printf 2537:1068: > {QUIRKS}"));
        probe_again(machine, &port);
        machine.device("norelsys");
        let explanation = explained(machine, &port);
        assert_eq!(explanation["disk"]["usb"]["transport"], "uas", "{explanation:#}");
        assert_eq!(explanation["expected"], "uas", "{explanation:#}");
        let conclusion = explanation["conclusion"].as_str().expect("a sentence");
        assert!(conclusion.contains("2537:1068:"), "the entry is named: {explanation:#}");
        machine.ok(&format!("echo > {QUIRKS}"));
        probe_again(machine, &port);
        machine.device("norelsys");
    });
}

/// Goal: after a switch back to what the rules choose, no sentence says that it ends when the disk is plugged in again; an entry that is
/// kept is mentioned, and not advised again.
#[test]
fn a_switch_back_needs_nothing_to_last_and_a_kept_entry_is_not_advised_again() {
    on(&spec(), |machine| {
        let good = machine.device("good");
        let ran = machine.trueio(&format!("usb switch {good} bot")).assert_code(0);
        let text = format!("{}{}", ran.out, ran.err);
        assert!(text.contains("until the disk is plugged in again") && text.contains("--persist"), "{ran:?}");
        let good = machine.device("good");
        let ran = machine.trueio(&format!("usb switch {good} uas")).assert_code(0);
        let text = format!("{}{}", ran.out, ran.err);
        assert!(text.contains("it stays there when it is plugged in again"), "{ran:?}");
        assert!(!text.contains("this lasts until") && !text.contains("--persist"), "{ran:?}");

        machine.ok("mkdir -p /etc/modprobe.d");
        let good = machine.device("good");
        machine.trueio(&format!("usb switch {good} bot --persist")).assert_code(0);
        let good = machine.device("good");
        let text = page(machine, &good);
        assert!(text.contains("trueio-usb.conf has the entry `1209:0011:u` for this model"), "{text}");
        assert!(!text.contains("a line `options usb-storage quirks=1209:0011:u`"), "it is not advised again: {text}");
        machine.trueio(&format!("usb switch {good} uas --unpersist")).assert_code(0);
        machine.device("good");
    });
}
