//! Simulated USB disks, as Linux sees them: which driver takes which, and that data survive both
//! transports. What `trueio usb` makes of them is tested elsewhere; this is about the disks.

use crate::common;

use std::time::Duration;
use trueio_lab::sim::{Offers, Speed};
use trueio_lab::{Disk, Machine, Spec, on};
use trueio_model::{CheckOutcome, UsbTransport};

fn machine() -> Spec {
    Spec::new()
        // A model of its own, so that its quirk does not apply to the other disks.
        .disk(Disk::usb("both").ids(0x1209, 0x0002))
        .disk(Disk::usb("both-slow").at(Speed::High))
        .disk(Disk::usb("only-bot").offering(Offers::Bot))
        .disk(Disk::usb("only-uas").offering(Offers::Uas))
        .disk(Disk::usb("no-usages").saying(|usb| usb.has_pipe_usages = false))
        .disk(Disk::usb("few-streams").saying(|usb| usb.streams_log2 = 4))
        .disk(Disk::qemu_bot("qemu-bot"))
        .disk(Disk::qemu_uas("qemu-uas"))
}

/// The USB interface of a disk, for example `2-1:1.0`.
fn interface(machine: &mut Machine, device: &str) -> String {
    let name = device.trim_start_matches("/dev/");
    machine.ok(&format!("basename $(readlink -f /sys/block/{name}/device/../../..)"))
}

/// Driver, link in Mbit/s, queue depth.
fn attachment(machine: &mut Machine, name: &str) -> (String, String, String) {
    let device = machine.device(name);
    let interface = interface(machine, &device);
    let path = format!("/sys/bus/usb/devices/{interface}");
    let driver = machine.ok(&format!("basename $(readlink -f {path}/driver)"));
    let speed = machine.ok(&format!("cat {path}/../speed"));
    let depth = machine.ok(&format!("cat /sys/block/{}/device/queue_depth", device.trim_start_matches("/dev/")));
    (driver, speed, depth)
}

#[test]
fn linux_binds_each_disk_to_the_driver_of_its_transport() {
    on(&machine(), |machine| {
        let expected = [
            ("both", "uas", "5000", "30"),
            ("both-slow", "uas", "480", "30"),
            ("only-bot", "usb-storage", "5000", "1"),
            ("only-uas", "uas", "5000", "30"),
            ("no-usages", "usb-storage", "5000", "1"),
            ("few-streams", "uas", "5000", "14"),
            ("qemu-bot", "usb-storage", "5000", "1"),
            ("qemu-uas", "uas", "5000", "14"),
        ];
        for (name, driver, speed, depth) in expected {
            assert_eq!(attachment(machine, name), (driver.into(), speed.into(), depth.into()), "{name}");
        }
    });
}

/// Goal: the properties that `usb list` prints for each disk equal those that the kernel shows.
/// Method: driver, link and depth as read by hand, the offers as the disks were made; JSON, table and tree.
#[test]
fn usb_list_shows_every_disk_with_its_transport_link_depth_and_offers() {
    on(&machine(), |machine| {
        let offers = [
            ("both", "BOT + UAS, 32 streams"),
            ("both-slow", "BOT + UAS"),
            ("only-bot", "BOT"),
            ("only-uas", "UAS, 32 streams"),
            ("no-usages", "BOT + UAS without its pipes"),
            ("few-streams", "BOT + UAS, 16 streams"),
            ("qemu-bot", "BOT"),
            ("qemu-uas", "UAS, 16 streams"),
        ];
        let seen: Vec<_> = offers.map(|(name, _)| (attachment(machine, name), machine.device(name))).to_vec();
        let document = machine.trueio("usb list --json").assert_code(0).json();
        let table = machine.trueio("usb list --table").assert_code(0).out.clone();
        let tree = machine.trueio("usb list --tree").assert_code(0).out.clone();
        let disks = document["disks"].as_array().expect("disks");
        assert_eq!(disks.len(), offers.len());
        for ((name, offered), ((driver, speed, depth), device)) in offers.iter().zip(&seen) {
            let block = device.trim_start_matches("/dev/");
            let disk = disks.iter().find(|disk| disk["blocks"][0]["name"] == block).unwrap_or_else(|| panic!("{name}"));
            let usb = &disk["usb"];
            assert_eq!(usb["driver"]["value"], driver.as_str(), "{name}");
            assert_eq!(usb["transport"], if driver == "uas" { "uas" } else { "bot" }, "{name}");
            assert_eq!(usb["link_mbit_per_s"]["value"].as_f64(), speed.parse().ok(), "{name}");
            assert_eq!(disk["blocks"][0]["queue_depth"]["value"].as_u64(), depth.parse().ok(), "{name}");
            assert_eq!(usb["serial"]["value"], name.to_uppercase().as_str(), "{name}");
            let line = table.lines().find(|line| line.split_whitespace().next() == Some(block));
            let line = line.unwrap_or_else(|| panic!("{name} is not in\n{table}"));
            assert!(line.contains(offered) && line.contains(&format!("({driver})")), "{name}: {line}");
        }
        assert!(tree.contains("Bus 02") && tree.contains("Mass Storage, uas, 5000M"), "{tree}");
        assert!(tree.contains("Mass Storage, usb-storage, 5000M"), "{tree}");
    });
}

/// Goal: `trueio device`, the record of a run and its evidence use the same facts: the transport stands in table, JSON
/// and record, and BOT that hides what the disk is, and a link that slows it, are doubted. A disk on UAS at full speed
/// is not.
/// Method: a short run on each. Linux 6.1 does not show the capabilities of a disk at USB 2, so the USB version that it
/// reports is printed.
#[test]
fn device_command_record_and_evidence_contain_the_transport() {
    on(&machine(), |machine| {
        for (name, transport, outcome, words) in [
            ("both", UsbTransport::Uas, CheckOutcome::Passed, "the transport hides nothing"),
            (
                "only-bot",
                UsbTransport::Bot,
                CheckOutcome::Suspect,
                "Linux reports every BOT disk as rotating with sectors of 512 bytes",
            ),
            ("both-slow", UsbTransport::Uas, CheckOutcome::Suspect, "declares USB 2.10 on a link of 480 Mbit/s"),
        ] {
            let device = machine.device(name);
            let interface = interface(machine, &device);
            let table = machine.trueio(&format!("device {device}")).assert_code(0).out;
            assert!(table.contains(&format!("{transport} at {interface}")), "{name}: {table}");
            let facts = machine.trueio(&format!("device {device} --json")).assert_code(0).json();
            let of_device = &facts["disks"][0]["usb"];
            assert_eq!(of_device["transport"], transport.name().to_lowercase(), "{name}: {of_device}");

            let job =
                format!("run --rw randread --bs 4k --number_ios 64 --direct require --filename {device} --no-history");
            let ran = machine.trueio(&format!("{job} --json -")).assert_code(0);
            let record = common::record_of(&ran);
            let usb = record.targets[0].disks[0].usb.as_ref().expect("a USB disk");
            assert_eq!((usb.transport, usb.interface.as_str()), (transport, interface.as_str()), "{name}");
            assert_eq!(serde_json::to_value(usb).expect("facts")["offers"], of_device["offers"], "{name}");
            let found = common::check(&record, "usb_link");
            assert_eq!(found.outcome, outcome, "{name}: {found:?}");
            assert!(found.sentence.contains(words), "{name}: {found:?}");
            if outcome == CheckOutcome::Suspect {
                let ran = machine.trueio(&format!("{job} -v")).assert_code(0);
                let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(text.contains(words), "{name}: {ran:?}");
            }
        }
    });
}

/// Writes two MiB through the page cache and reads them back from the disk, then blocks by a queue,
/// each verified.
fn assert_data_survive(machine: &mut Machine, device: &str) {
    machine.ok(&format!(
        "dd if=/dev/urandom of=/tmp/data bs=1M count=2 2>/dev/null && dd if=/tmp/data of={device} bs=1M conv=fsync 2>/dev/null && \
         echo 3 > /proc/sys/vm/drop_caches && dd if={device} bs=1M count=2 2>/dev/null | cmp - /tmp/data"
    ));
    let verify =
        "run --rw randwrite --bs 4k --size 2m --iodepth 16 --direct require --verify crc32c --no-history --no-evidence";
    machine.trueio(&format!("{verify} --filename {device} --overwrite_existing {device}")).assert_code(0);
}

#[test]
fn data_is_stored_correctly_on_every_transport() {
    on(&machine(), |machine| {
        for name in ["both", "both-slow", "only-bot", "only-uas"] {
            // The machine has one processor: only a disk that takes its time ever sees a queue.
            machine.simulated(name).behave(|disk| (disk.latency, disk.channels) = (Duration::from_millis(2), 4));
            let device = machine.device(name);
            assert_data_survive(machine, &device);
            let depth = machine.simulated(name).counts().depth_max;
            assert_eq!(depth > 1, name != "only-bot", "{name}: {depth} commands at once");
        }
    });
}

/// The quirk string makes the kernel ignore UAS for this model, and the interface is bound from one driver to
/// the other, as usb.md has it.
#[test]
fn a_disk_with_both_transports_is_moved_between_the_drivers() {
    on(&machine(), |machine| {
        for (from, to, quirk) in [("uas", "usb-storage", "1209:0002:u"), ("usb-storage", "uas", "")] {
            let device = machine.device("both");
            let interface = interface(machine, &device);
            let drivers = "/sys/bus/usb/drivers";
            machine.ok(&format!(
                "echo '{quirk}' > /sys/module/usb_storage/parameters/quirks && sync && \
                 echo {interface} > {drivers}/{from}/unbind && echo {interface} > {drivers}/{to}/bind"
            ));
            assert_eq!(attachment(machine, "both").0, to);
            let device = machine.device("both");
            assert_data_survive(machine, &device);
        }
    });
}
