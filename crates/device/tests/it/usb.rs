//! USB disks of recorded machines: `usb/*/tree.txt` were printed by `usb/record.sh` in virtual
//! machines with Debian's own kernels and simulated disks.

use crate::tree::recorded;
use trueio_device::disk_facts;
use trueio_device::usb::{usb_facts_of_block, usb_report};
use trueio_model::{ScsiState, UsbDisk, UsbReport, UsbTransport};

fn report(name: &str) -> UsbReport {
    usb_report(&recorded(&format!("usb/{name}")).system)
}

/// The disk with that USB serial number.
#[track_caller]
fn disk<'a>(report: &'a UsbReport, serial: &str) -> &'a UsbDisk {
    let found = report.disks.iter().find(|disk| disk.usb.serial.value.as_deref() == Some(serial));
    found.unwrap_or_else(|| panic!("{serial} is not among {:?}", report.disks))
}

#[test]
fn a_disk_that_offers_both_is_seen_on_uas_with_all_its_facts() {
    let report = report("dual");
    assert_eq!(report.disks.len(), 1);
    let UsbDisk { usb, blocks } = &report.disks[0];
    assert_eq!((usb.device.as_str(), usb.interface.as_str()), ("2-1", "2-1:1.0"));
    assert_eq!((usb.id.value.as_deref(), usb.release.value.as_deref()), (Some("1209:0001"), Some("0100")));
    assert_eq!(usb.manufacturer.value.as_deref(), Some("trueio"));
    assert_eq!(usb.product.value.as_deref(), Some("usbsim disk"));
    assert_eq!(usb.serial.value.as_deref(), Some("SIM1"));
    assert_eq!((usb.link_mbit_per_s.value, usb.port_mbit_per_s.value), (Some(5000.0), Some(5000.0)));
    assert_eq!((usb.transport, usb.driver.value.as_deref()), (UsbTransport::Uas, Some("uas")));
    assert_eq!((usb.offers_uas(), usb.offers_bot()), (Some(true), Some(true)));
    assert_eq!(usb.offers.value.as_ref().map(|all| all[1].stream_count), Some(32));
    assert_eq!(usb.queue_depth.value, Some(30));
    assert_eq!(blocks.len(), 1);
    assert_eq!((blocks[0].name.as_str(), blocks[0].address.as_str()), ("sda", "0:0:0:0"));
    assert_eq!(blocks[0].model.value.as_deref(), Some("TRUEIO SIMDISK"));
    assert_eq!((blocks[0].size_bytes.value, blocks[0].state.value), (Some(64 << 20), Some(ScsiState::Running)));
    assert_eq!(blocks[0].mounts, [] as [&str; 0]);
    assert_eq!(report.unseen, [] as [&str; 0]);
}

#[test]
fn the_same_disk_on_bot_still_offers_uas_and_hides_its_properties() {
    let machine = recorded("usb/dual-on-bot");
    let usb = usb_facts_of_block(&machine.system, "sda").expect("a USB disk");
    assert_eq!((usb.transport, usb.offers_uas(), usb.queue_depth.value), (UsbTransport::Bot, Some(true), Some(1)));
    let (on_bot, on_uas) = (disk_facts(&machine.system, "sda"), disk_facts(&recorded("usb/dual").system, "sda"));
    let (on_bot, on_uas) = (on_bot.expect("sda"), on_uas.expect("sda"));
    assert_eq!((on_bot.physical_sector_bytes.value, on_uas.physical_sector_bytes.value), (Some(512), Some(4096)));
    assert_eq!(on_bot.usb.as_ref().map(|usb| usb.transport), Some(UsbTransport::Bot));
    assert_eq!(on_uas.usb.as_ref().map(|usb| usb.transport), Some(UsbTransport::Uas));
    assert_eq!((on_bot.serial.value.as_deref(), on_uas.serial.value.as_deref()), (None, Some("SIM1")));
}

#[test]
fn a_disk_without_a_driver_is_listed_without_a_block_device() {
    let report = report("dual-unbound");
    let UsbDisk { usb, blocks } = &report.disks[0];
    assert_eq!((usb.transport, usb.driver.value.as_deref()), (UsbTransport::None, None));
    assert!(usb.driver.source.starts_with("no driver is bound"), "{}", usb.driver.source);
    assert_eq!((blocks.len(), usb.offers_uas()), (0, Some(true)));
}

#[test]
fn four_kinds_of_disks_are_distinguished_by_their_alternate_settings() {
    let report = report("four-kinds");
    let seen = |serial: &str| {
        let usb = &disk(&report, serial).usb;
        (usb.offers_uas(), usb.offers_bot(), usb.transport, usb.link_mbit_per_s.value, usb.queue_depth.value)
    };
    use UsbTransport::{Bot, Uas};
    assert_eq!(seen("SIM0"), (Some(true), Some(true), Uas, Some(5000.0), Some(30)), "both");
    assert_eq!(seen("SIM1"), (Some(true), Some(false), Uas, Some(5000.0), Some(30)), "UAS only");
    assert_eq!(seen("SIM2"), (Some(false), Some(true), Bot, Some(5000.0), Some(1)), "BOT only");
    assert_eq!(seen("SIM3"), (Some(true), Some(true), Uas, Some(480.0), Some(30)), "both, at USB 2");
}

#[test]
fn a_usb_3_disk_on_a_usb_2_link_is_known_where_the_kernel_gives_its_capabilities() {
    // The port is USB 3: its other half is found through `peer`.
    let new = report("linux-6.12");
    let slow = &disk(&new, "SIM2").usb;
    assert_eq!((slow.link_mbit_per_s.value, slow.port_mbit_per_s.value), (Some(480.0), Some(5000.0)));
    assert_eq!(slow.can_superspeed.value, Some(true), "{}", slow.can_superspeed.source);
    assert_eq!(disk(&new, "SIM1").usb.can_superspeed.value, Some(true), "a SuperSpeed link is proof enough");
    // Linux 6.1 has no `bos_descriptors`: the fact is unknown, and its source states why.
    let old = report("four-kinds");
    let slow = &disk(&old, "SIM3").usb;
    assert_eq!(slow.can_superspeed.value, None);
    assert!(slow.can_superspeed.source.contains("bos_descriptors does not exist"), "{}", slow.can_superspeed.source);
}

#[test]
fn mounts_of_partitions_are_listed_with_their_disk_and_not_with_its_twin() {
    let report = report("twins-in-use");
    assert_eq!(disk(&report, "TWIN1").blocks[0].mounts, ["/mnt"]);
    assert_eq!(disk(&report, "TWIN2").blocks[0].mounts, [] as [&str; 0]);
}

#[test]
fn the_counters_of_a_disk_that_hung_are_read_as_hexadecimal() {
    let report = report("hung");
    let block = &disk(&report, "SIM1").blocks[0];
    assert_eq!(block.state.value, Some(ScsiState::Offline));
    assert_eq!(block.timeout_count.value, Some(1));
    assert!(block.done_count.value > Some(9), "{:?}", block.done_count);
}

/// Goal: a disk in a state that a later kernel may add is not taken for one that runs.
#[test]
fn a_state_that_is_not_known_is_not_the_running_one() {
    let state = |text| ScsiState::parse(text).map(|state| (state, state.to_string()));
    assert_eq!(state("running"), Some((ScsiState::Running, "running".into())));
    assert_eq!(state("frozen"), Some((ScsiState::Other, "other".into())));
    assert_eq!(state(""), None);
    let of_record: ScsiState = serde_json::from_str("\"frozen\"").expect("a state");
    assert_eq!(of_record, ScsiState::Other);
}

#[test]
fn a_device_that_is_not_authorized_has_no_interface_and_a_machine_without_usb_lists_what_was_read() {
    let none = report("none");
    assert_eq!((none.disks.len(), none.tree.len()), (0, 0));
    assert!(none.looked[0].contains("/sys/bus/usb/devices"), "{:?}", none.looked);
    let other = report("not-authorized");
    assert!(other.disks.iter().all(|disk| disk.usb.serial.value.as_deref() != Some("SIM1")), "{:?}", other.disks);
    assert!(other.tree.iter().any(|node| node.name == "2-1" && node.interfaces.is_empty()), "{:?}", other.tree);
}

#[test]
fn hubs_controllers_and_links_stand_in_the_tree() {
    let report = report("linux-6.12");
    let roots: Vec<_> = report.tree.iter().filter(|node| node.parent.is_none()).collect();
    assert_eq!(roots.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["usb1", "usb2"]);
    for root in roots {
        let controller = root.controller.as_ref().and_then(|fact| fact.value.as_deref());
        assert_eq!(controller, Some("xhci_hcd"));
    }
    let after: Vec<_> = report.tree.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(after, ["usb1", "1-2", "1-3", "usb2", "2-1"]);
}
