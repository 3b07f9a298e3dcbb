//! The kernel's choice of a USB transport, rule by rule: the transport that `trueio usb explain` derives from the rules
//! is the one that the kernel chose.

use serde_json::Value;
use trueio_lab::sim::{Offers, Speed};
use trueio_lab::{Disk, Machine, Spec, on};

/// What the kernel did with a disk, what the rules lead to, and which rule decided.
fn explained(machine: &mut Machine, serial: &str) -> (String, String, String) {
    let ran = machine.trueio(&format!("usb explain {serial} --json")).assert_code(0);
    let document = ran.json();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let one = &document[0];
    (text(&one["disk"]["usb"]["transport"]), text(&one["expected"]), text(&one["decided_by"]))
}

#[track_caller]
fn assert_decided(machine: &mut Machine, serial: &str, transport: &str, rule: &str) {
    let serial = serial.to_uppercase();
    let found = explained(machine, &serial);
    let wanted = (transport.to_owned(), transport.to_owned(), rule.to_owned());
    assert_eq!(found, wanted, "{serial}: {}", machine.trueio(&format!("usb explain {serial}")).out);
}

#[test]
fn each_kind_of_disk_uses_the_transport_of_the_replayed_rules() {
    for kernel in ["6.1", "6.12"] {
        let asmedia = |name: &str, power: u8, log2: u8| {
            Disk::usb(name).ids(0x174c, 0x55aa).saying(|usb| {
                usb.max_power = power;
                usb.streams_log2 = log2;
            })
        };
        let spec = Spec::new()
            .kernel(kernel)
            .disk(Disk::usb("both"))
            .disk(Disk::usb("uas-only").ids(0x152d, 0x0561).offering(Offers::Uas))
            .disk(Disk::usb("bulk").offering(Offers::Bot))
            .disk(Disk::usb("pipeless").saying(|usb| usb.has_pipe_usages = false))
            .disk(Disk::usb("norelsys").ids(0x2537, 0x1068))
            .disk(Disk::usb("via").ids(0x2109, 0x0715))
            .disk(asmedia("asm1051", 18, 5))
            .disk(asmedia("asm1053", 18, 4))
            .disk(asmedia("asm1153", 0, 5))
            .disk(Disk::usb("asm5106").ids(0x174c, 0x5106).saying(|usb| usb.max_power = 18))
            .disk(Disk::usb("slow1051").ids(0x174c, 0x55aa).at(Speed::High).saying(|usb| usb.max_power = 18))
            .disk(Disk::usb("seagate").ids(0x0bc2, 0x1234))
            .disk(Disk::usb("hiksemi").ids(0x0bda, 0x9210).saying(|usb| {
                "HIKSEMI".clone_into(&mut usb.manufacturer);
                "MD202".clone_into(&mut usb.product);
            }))
            .disk(Disk::usb("realtek").ids(0x0bda, 0x9210));
        on(&spec, |machine| {
            for (name, transport, rule) in [
                ("both", "uas", "-"),
                ("bulk", "bot", "offers"),
                ("pipeless", "bot", "offers"),
                ("norelsys", "bot", "built_in_table"),
                ("via", "bot", "built_in_table"),
                ("asm1051", "bot", "asmedia"),
                ("asm1053", "uas", "-"),
                ("asm1153", "uas", "-"),
                ("asm5106", "bot", "asmedia"),
                ("slow1051", "bot", "asmedia"),
                ("seagate", "uas", "-"),
                ("hiksemi", "bot", "hiksemi"),
                ("realtek", "uas", "-"),
            ] {
                machine.device(name);
                assert_decided(machine, name, transport, rule);
            }
            assert_slow_link_is_named(machine, kernel);
            assert_quirks_decide(machine);
            assert_authorization_decides(machine);
        });
    }
}

/// A USB 3 disk on a USB 2 link: known from 6.9 on, before that guessed from the USB version that it reports.
fn assert_slow_link_is_named(machine: &mut Machine, kernel: &str) {
    let words = if kernel == "6.1" { "reports USB 2.10, as USB 3 disks do" } else { "a USB 3 disk on a link of 480" };
    let explained = machine.trueio("usb explain SLOW1051").assert_code(0).out;
    assert!(explained.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "Linux {kernel}: {explained}");
}

/// Returns the sysfs directory of the USB device of a block device.
fn usb_device(machine: &mut Machine, name: &str) -> String {
    let device = machine.device(name);
    machine.ok(&format!("readlink -f /sys/block/{}/device/../../../..", device.trim_start_matches("/dev/")))
}

/// The user's flag `u`, on a disk that can do BOT and on one that cannot.
fn assert_quirks_decide(machine: &mut Machine) {
    let quirks = "/sys/module/usb_storage/parameters/quirks";
    for (name, entry, transport) in [("both", "1209:0001:u", "bot"), ("uas-only", "152d:0561:u", "none")] {
        let folder = usb_device(machine, name);
        // The kernel asks for the quirk when the device is configured: it is taken away and given back.
        machine.ok(&format!(
            "echo {entry} > {quirks}; echo 0 > {folder}/authorized; sleep 0.5; echo 1 > {folder}/authorized; sleep 1"
        ));
        if transport != "none" {
            machine.device(name);
        }
        assert_decided(machine, name, transport, "user_quirk");
        // And back again, once the entry is gone.
        machine.ok(&format!(
            "echo > {quirks}; echo 0 > {folder}/authorized; sleep 0.5; echo 1 > {folder}/authorized; sleep 1"
        ));
        machine.device(name);
        assert_decided(machine, name, "uas", "-");
    }
}

/// A device and an interface that are not authorized: the suggested commands help, and the suggested undo reverts them.
fn assert_authorization_decides(machine: &mut Machine) {
    let device = usb_device(machine, "realtek");
    let port = device.rsplit('/').next().expect("a name").to_owned();
    for name in [port.clone(), format!("{port}:1.0")] {
        machine.ok(&format!("echo 0 > /sys/bus/usb/devices/{name}/authorized; sleep 0.5"));
        assert_decided(machine, "realtek", "none", "authorized");
        let explained = machine.trueio(&format!("usb explain {port} --json")).assert_code(0).json();
        let lines = |kind: &str| -> String {
            let lines = explained[0]["ways"][0][kind].as_array().expect("commands");
            lines.iter().map(|line| format!("{}\n", line.as_str().expect("a command"))).collect()
        };
        assert_eq!(lines("undo"), format!("echo 0 > /sys/bus/usb/devices/{name}/authorized\n"));
        machine.ok(&lines("commands"));
        machine.device("realtek");
        assert_decided(machine, "realtek", "uas", "-");
        machine.ok(&format!("{}sleep 0.5", lines("undo")));
        assert_decided(machine, "realtek", "none", "authorized");
        machine.ok(&lines("commands"));
        machine.device("realtek");
    }
}

#[test]
fn a_controller_without_streams_leads_to_bot() {
    for kernel in ["6.1", "6.12"] {
        let disks = Spec::new().disk(Disk::usb("stick")).disk(Disk::usb("slow").at(Speed::High));
        on(&disks.kernel(kernel).without_streams(), |machine| {
            machine.device("stick");
            assert_decided(machine, "stick", "bot", "streams");
            assert!(machine.ok("dmesg").contains("does not support streams"));
            // A link of USB 2 has none and needs none.
            machine.device("slow");
            assert_decided(machine, "slow", "uas", "-");
        });
    }
}

/// Goal: without uas a disk that offers it has no driver at all, whether modprobe may not load the module or it is
/// missing; the suggested commands help.
#[test]
fn without_the_module_the_disk_has_no_driver_at_all() {
    for kernel in ["6.1", "6.12"] {
        let spec = Spec::new()
            .kernel(kernel)
            .without_module("uas")
            .shelved_module("uas")
            .disk(Disk::usb("stick"))
            .disk(Disk::usb("bulk").offering(Offers::Bot));
        on(&spec, |machine| {
            machine.device("bulk");
            machine.ok("mkdir -p /etc/modprobe.d; echo blacklist uas > /etc/modprobe.d/forum.conf");
            assert_decided(machine, "stick", "none", "module");
            let ran = machine.trueio("usb explain STICK").assert_code(0);
            let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("/etc/modprobe.d/forum.conf line 1"), "{ran:?}");
            machine.ok("rm /etc/modprobe.d/forum.conf");

            machine.ok("f=$(find /lib/modules -name 'uas.ko*'); echo $f > /tmp/path; mv $f /tmp/module");
            assert_decided(machine, "stick", "none", "module");
            let list = machine.trueio("usb list --table").assert_code(0);
            assert!(list.out.contains("no driver"), "{list:?}");

            machine.ok("mv /tmp/module $(cat /tmp/path); modprobe uas");
            machine.device("stick");
            assert_decided(machine, "stick", "uas", "-");
        });
    }
}
