//! The kernel's choice of a USB transport, rule by rule: what `trueio usb explain` says that the
//! rules lead to is what the kernel did.

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
fn each_kind_of_disk_runs_on_what_the_replayed_rules_lead_to() {
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
            .disk(Disk::usb("bulk").offering(Offers::Bot))
            .disk(Disk::usb("pipeless").saying(|usb| usb.has_pipe_usages = false))
            .disk(Disk::usb("norelsys").ids(0x2537, 0x1068))
            .disk(Disk::usb("via").ids(0x2109, 0x0715))
            .disk(asmedia("asm1051", 18, 5))
            .disk(asmedia("asm1053", 18, 4))
            .disk(asmedia("asm1153", 0, 5))
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
                ("slow1051", "bot", "asmedia"),
                ("seagate", "uas", "-"),
                ("hiksemi", "bot", "hiksemi"),
                ("realtek", "uas", "-"),
            ] {
                machine.device(name);
                assert_decided(machine, name, transport, rule);
            }
        });
    }
}

#[test]
fn a_controller_without_streams_leads_to_bot() {
    on(&Spec::new().without_streams().disk(Disk::usb("stick")), |machine| {
        machine.device("stick");
        assert_decided(machine, "stick", "bot", "streams");
    });
}

#[test]
fn without_the_module_the_disk_has_no_driver_at_all() {
    let spec = Spec::new().without_module("uas").disk(Disk::usb("stick")).disk(Disk::usb("bulk").offering(Offers::Bot));
    on(&spec, |machine| {
        machine.device("bulk");
        assert_decided(machine, "stick", "none", "module");
        let list = machine.trueio("usb list --table").assert_code(0);
        assert!(list.out.contains("no driver"), "{list:?}");
    });
}

#[test]
fn the_users_quirk_and_an_interface_that_is_not_authorized_lead_to_what_the_kernel_did() {
    let spec = Spec::new().disk(Disk::usb("quirky")).disk(Disk::usb("barred").ids(0x152d, 0x0562));
    on(&spec, |machine| {
        let (quirky, barred) = (machine.device("quirky"), machine.device("barred"));
        assert_decided(machine, "quirky", "uas", "-");
        let usb_device = |device: &str| {
            format!("$(readlink -f /sys/block/{}/device/../../../..)", device.trim_start_matches("/dev/"))
        };
        // The kernel asks for the quirk when the device is configured: it is taken away and given back.
        machine.ok(&format!(
            "d={}; n=$(cat $d/idVendor):$(cat $d/idProduct); echo $n:u > /sys/module/usb_storage/parameters/quirks; \
             echo 0 > $d/authorized; sleep 0.5; echo 1 > $d/authorized",
            usb_device(&quirky)
        ));
        machine.device("quirky");
        assert_decided(machine, "quirky", "bot", "user_quirk");

        machine.ok(&format!("d={}; i=$(echo $d/*:1.0); echo 0 > $i/authorized; sleep 0.5", usb_device(&barred)));
        assert_decided(machine, "barred", "none", "authorized");
    });
}
