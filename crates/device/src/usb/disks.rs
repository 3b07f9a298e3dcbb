//! Lists the USB disks of the machine, from sysfs.
//!
//! A disk is an interface of class 8 (mass storage). A disk without a driver has no block device but is listed too.
//!
//! Cannot see: a disk that the kernel did not configure (no interface appears in sysfs); mounts in
//! other mount namespaces; which of two disks with the same serial number is which, except by port.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-bus-usb`, `Documentation/ABI/testing/sysfs-bus-usb`
//! (`bos_descriptors`, `port`, `peer`), `drivers/scsi/scsi_sysfs.c` (`iodone_cnt` and its kin are
//! hexadecimal).

use super::descriptors::{parse_can_superspeed, parse_descriptors};
use crate::mounts::mounts;
use crate::numbers::{device_number_at, devices_of};
use crate::system::{System, why_not};
use std::collections::BTreeMap;
use trueio_model::{
    Fact, ScsiState, UsbAlternate, UsbBlock, UsbDisk, UsbFacts, UsbInterface, UsbNode, UsbReport, UsbTransport,
};

pub(super) const DEVICES: &str = "/sys/bus/usb/devices";
/// The minimum speed of a USB 3 link, in Mbit/s.
pub(super) const SUPERSPEED_MBIT_PER_S: f64 = 5000.0;

/// Reads every USB disk and the tree of devices; lists the directories read.
pub fn usb_report(system: &System) -> UsbReport {
    let names = system.list(DEVICES);
    let tree = tree(system, &names);
    let disks: Vec<UsbDisk> = tree
        .iter()
        .flat_map(|node| &node.interfaces)
        .filter(|interface| interface.class.value.as_deref() == Some("08"))
        .filter_map(|interface| usb_disk(system, &interface.name))
        .collect();
    let mut looked = Vec::new();
    let mut unseen = Vec::new();
    if names.is_empty() {
        looked.push(format!("{DEVICES} is empty or does not exist: the kernel has no USB, or no controller was found"));
    } else {
        let hubs = tree.iter().filter(|node| node.parent.is_none()).count();
        looked.push(format!(
            "{DEVICES}: {} on {}, {} of mass storage (class 08)",
            counted(tree.len() - hubs, "device"),
            counted(hubs, "bus"),
            counted(disks.len(), "interface")
        ));
    }
    for disk in &disks {
        if disk.usb.offers.value.is_none() {
            unseen.push(format!("the alternate settings of {}: {}", disk.usb.interface, disk.usb.offers.source));
        }
    }
    for node in tree.iter().filter(|node| node.parent.is_some() && node.interfaces.is_empty()) {
        unseen.extend(hidden(system, node));
    }
    if mounts(system).is_err() {
        unseen.push("mount points: /proc/self/mountinfo cannot be read".to_owned());
    }
    UsbReport { disks, tree, looked, unseen, switches: Vec::new() }
}

/// Returns the disks that are not authorized. Such a device has no interface, so it is not among the disks of a report.
/// It is returned with the interface that it would have.
pub fn unauthorized_disks(system: &System, report: &UsbReport) -> Vec<UsbDisk> {
    let nodes = report.tree.iter().filter(|node| node.parent.is_some() && node.interfaces.is_empty());
    nodes.filter_map(|node| unauthorized(system, &node.name)).collect()
}

fn unauthorized(system: &System, device: &str) -> Option<UsbDisk> {
    if system.read(&format!("{DEVICES}/{device}/authorized")).ok()? != "0" {
        return None;
    }
    let path = format!("{DEVICES}/{device}/descriptors");
    let found = parse_descriptors(&system.read_bytes(&path).ok()?).ok()?;
    // The kernel would choose the first configuration.
    let configuration = found.configuration(None)?;
    let number = configuration.settings.iter().find(|setting| setting.class == 8)?.interface;
    let interface = format!("{device}:{}.{number}", configuration.value);
    let mut usb = facts(system, device, &interface, &[]);
    usb.offers = Fact::known(found.storage_settings(None, number), path);
    Some(UsbDisk { usb, blocks: Vec::new() })
}

/// Describes a device that offers mass storage but has no interface, with the reason. It is listed nowhere else.
fn hidden(system: &System, node: &UsbNode) -> Option<String> {
    let bytes = system.read_bytes(&format!("{DEVICES}/{}/descriptors", node.name)).ok()?;
    let found = parse_descriptors(&bytes).ok()?;
    let is_disk = found.configurations.iter().flat_map(|c| &c.settings).any(|setting| setting.class == 8);
    let path = format!("{DEVICES}/{}/authorized", node.name);
    let why = match system.read(&path).as_deref() {
        Ok("0") => format!("it is not authorized ({path} is 0)"),
        _ => "the kernel did not configure it".to_owned(),
    };
    let name = node.product.value.as_deref().unwrap_or("no name");
    is_disk.then(|| format!("the disk in {} ({name}): {why}, so it has no interface and no block device", node.name))
}

/// `1 device`, `3 buses`.
fn counted(count: usize, what: &str) -> String {
    match (count, what.ends_with('s')) {
        (1, _) => format!("1 {what}"),
        (_, true) => format!("{count} {what}es"),
        (_, false) => format!("{count} {what}s"),
    }
}

/// Reads the mass-storage interface with this name (`2-1:1.0`) and its block devices; `None` if it does not exist.
pub fn usb_disk(system: &System, interface: &str) -> Option<UsbDisk> {
    let directory = format!("{DEVICES}/{interface}");
    let device = interface.split_once(':')?.0.to_owned();
    if !system.exists(&directory) {
        return None;
    }
    let blocks = blocks(system, &directory);
    let usb = facts(system, &device, interface, &blocks);
    Some(UsbDisk { usb, blocks })
}

/// The interface of a disk that offers UAS, as a program needs it that drives the disk itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UasInterface {
    /// The device's node of usbfs.
    pub node: String,
    /// Number of the interface.
    pub number: u8,
    /// The alternate setting that is UAS.
    pub setting: u8,
    /// Addresses of the endpoints: command, status, data-in, data-out.
    pub endpoints: [u8; 4],
    /// Streams that the device offers; 0 below SuperSpeed.
    pub stream_count: u32,
}

/// Returns the interface of a disk that offers UAS.
///
/// # Errors
/// A sentence: it does not, or what could not be read.
pub fn uas_interface(system: &System, disk: &UsbDisk) -> Result<UasInterface, String> {
    let device = &disk.usb.device;
    let d = |file: &str| format!("{DEVICES}/{device}/{file}");
    let number = |file: &str| -> Result<u16, String> {
        let fact: Fact<u16> = system.number(&d(file));
        fact.value.ok_or(fact.source)
    };
    let (bus, address) = (number("busnum")?, number("devnum")?);
    let path = d("descriptors");
    let bytes = system.read_bytes(&path).map_err(|error| why_not(&path, &error))?;
    let found = parse_descriptors(&bytes).map_err(|error| format!("{path} cannot be parsed: {error}"))?;
    let interface = disk.usb.interface.rsplit('.').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let configuration = found.configuration(system.number(&d("bConfigurationValue")).value);
    let settings = configuration.map(|configuration| configuration.settings.as_slice()).unwrap_or_default();
    let setting = settings.iter().find(|s| s.interface == interface && s.class == 8 && s.alternate.is_uas());
    let Some(setting) = setting else { return Err(format!("{} does not offer UAS", disk.usb.interface)) };
    Ok(UasInterface {
        node: format!("/dev/bus/usb/{bus:03}/{address:03}"),
        number: interface,
        setting: setting.alternate.number,
        endpoints: setting.pipe_addresses,
        stream_count: setting.alternate.stream_count,
    })
}

/// Returns how a block device (`sda`) is attached, if it is a USB disk: from the path of its device.
pub fn usb_facts_of_block(system: &System, name: &str) -> Option<UsbFacts> {
    let real = system.resolve(&format!("/sys/block/{name}")).ok()?;
    // …/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb: the last interface before the host.
    let parts: Vec<&str> = real.split('/').collect();
    let host = parts.iter().position(|part| is_host(part))?;
    let interface = parts[..host].last().filter(|part| is_interface(part))?;
    usb_disk(system, interface).map(|disk| disk.usb)
}

/// Returns whether a name is `host` followed by a number.
fn is_host(name: &str) -> bool {
    name.strip_prefix("host").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns whether a name has the form `2-1:1.0`: device, configuration, interface.
fn is_interface(name: &str) -> bool {
    name.split_once(':').is_some_and(|(device, rest)| device.contains('-') && rest.contains('.'))
}

fn facts(system: &System, device: &str, interface: &str, blocks: &[UsbBlock]) -> UsbFacts {
    let d = |file: &str| format!("{DEVICES}/{device}/{file}");
    let i = |file: &str| format!("{DEVICES}/{interface}/{file}");
    let vendor = system.text(&d("idVendor"));
    let product = system.text(&d("idProduct"));
    let id = match (&vendor.value, &product.value) {
        (Some(vendor), Some(product)) => {
            Fact::known(format!("{vendor}:{product}"), format!("{}, {}", d("idVendor"), d("idProduct")))
        }
        (None, _) => Fact::unknown(vendor.source.clone()),
        _ => Fact::unknown(product.source.clone()),
    };
    let link: Fact<f64> = system.number(&d("speed"));
    let driver = driver(system, &format!("{DEVICES}/{interface}"));
    let transport = match driver.value.as_deref() {
        Some("uas") => UsbTransport::Uas,
        Some("usb-storage") => UsbTransport::Bot,
        Some(_) => UsbTransport::Other,
        None => UsbTransport::None,
    };
    let queue_depth = match blocks.first() {
        Some(block) => block.queue_depth.clone(),
        None => Fact::unknown("there is no block device"),
    };
    UsbFacts {
        device: device.to_owned(),
        interface: interface.to_owned(),
        id,
        release: system.text(&d("bcdDevice")),
        manufacturer: system.text(&d("manufacturer")),
        product: system.text(&d("product")),
        serial: system.text(&d("serial")),
        usb_version: system.text(&d("version")),
        port_mbit_per_s: port_speed(system, device, &link),
        can_superspeed: can_superspeed(system, device, &link),
        link_mbit_per_s: link,
        driver,
        transport,
        offers: offers(system, device, &i("bInterfaceNumber")),
        queue_depth,
    }
}

/// Returns the last component of a `driver` link.
pub(super) fn driver(system: &System, directory: &str) -> Fact<String> {
    let link = format!("{directory}/driver");
    match std::fs::read_link(system.locate(&link)) {
        Ok(target) => match target.file_name().and_then(|name| name.to_str()) {
            Some(name) => Fact::known(name.to_owned(), link),
            None => Fact::unknown(format!("{link} has no target")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Fact::unknown(format!("no driver is bound: {link} does not exist"))
        }
        Err(error) => Fact::unknown(why_not(&link, &error)),
    }
}

/// Returns the alternate settings of the interface in the current configuration.
fn offers(system: &System, device: &str, number_path: &str) -> Fact<Vec<UsbAlternate>> {
    let path = format!("{DEVICES}/{device}/descriptors");
    let number = system.fact(number_path, |text| u8::from_str_radix(text, 16).ok());
    let Some(number) = number.value else { return Fact::unknown(number.source) };
    let configuration = system.number(&format!("{DEVICES}/{device}/bConfigurationValue")).value;
    match system.read_bytes(&path) {
        Err(error) => Fact::unknown(why_not(&path, &error)),
        Ok(bytes) => match parse_descriptors(&bytes) {
            Ok(found) => Fact::known(found.storage_settings(configuration, number), path),
            Err(error) => Fact::unknown(format!("{path} cannot be parsed: {error}")),
        },
    }
}

/// Returns the highest speed of the port. The kernel represents a USB 3 port as two ports, one at each hub of a pair;
/// the link `peer` leads from one to the other.
fn port_speed(system: &System, device: &str, link: &Fact<f64>) -> Fact<f64> {
    let Some(parent) = parent_of(device) else { return Fact::unknown("a root hub has no port") };
    let own_path = format!("{DEVICES}/{parent}/speed");
    let own: Fact<f64> = system.number(&own_path);
    let peer_link = format!("{DEVICES}/{device}/port/peer");
    // …/usb2/2-0:1.0/usb2-port1: the hub is two levels up.
    let peer = system.resolve(&peer_link).ok().and_then(|real| {
        let hub = real.rsplitn(3, '/').nth(2)?;
        system.number::<f64>(&format!("{hub}/speed")).value
    });
    match (own.value, peer) {
        (Some(own), Some(peer)) if peer > own => Fact::known(peer, peer_link),
        (Some(own), _) => Fact::known(own, own_path),
        // The port supports at least the speed of the link.
        (None, Some(peer)) => Fact::known(link.value.map_or(peer, |link| link.max(peer)), peer_link),
        (None, None) => Fact::unknown(own.source),
    }
}

/// Returns the hub of a device: `1-4.2` is plugged into `1-4`, which is plugged into `usb1`.
fn parent_of(device: &str) -> Option<String> {
    if let Some((parent, _)) = device.rsplit_once('.') {
        return Some(parent.to_owned());
    }
    device.split_once('-').map(|(bus, _)| format!("usb{bus}"))
}

fn can_superspeed(system: &System, device: &str, link: &Fact<f64>) -> Fact<bool> {
    if link.value.is_some_and(|speed| speed >= SUPERSPEED_MBIT_PER_S) {
        return Fact::known(true, link.source.clone());
    }
    let path = format!("{DEVICES}/{device}/bos_descriptors");
    match system.read_bytes(&path) {
        Ok(bytes) => match parse_can_superspeed(&bytes) {
            Ok(can) => Fact::known(can, path),
            Err(error) => Fact::unknown(format!("{path} cannot be parsed: {error}")),
        },
        Err(error) => {
            let version_path = format!("{DEVICES}/{device}/version");
            match system.read(&version_path).ok().and_then(|text| text.parse::<f64>().ok()) {
                // A device below USB 2.01 has no capability descriptors (USB 3.2, 9.6.2).
                Some(version) if version < 2.01 => Fact::known(false, version_path),
                _ => Fact::unknown(format!("{} (kernels before 6.9 do not provide it)", why_not(&path, &error))),
            }
        }
    }
}

fn blocks(system: &System, interface: &str) -> Vec<UsbBlock> {
    let mounted = mounted(system);
    let mut found = Vec::new();
    for host in system.list(interface).into_iter().filter(|name| is_host(name)) {
        let host = format!("{interface}/{host}");
        for target in system.list(&host).into_iter().filter(|name| name.starts_with("target")) {
            for address in system.list(&format!("{host}/{target}")) {
                let unit = format!("{host}/{target}/{address}");
                for name in system.list(&format!("{unit}/block")) {
                    found.push(block(system, &unit, &address, &name, &mounted));
                }
            }
        }
    }
    found
}

fn block(
    system: &System,
    unit: &str,
    address: &str,
    name: &str,
    mounted: &BTreeMap<(u32, u32), Vec<String>>,
) -> UsbBlock {
    let directory = format!("{unit}/block/{name}");
    let sectors: Fact<u64> = system.number(&format!("{directory}/size"));
    let hexadecimal = |file: &str| {
        system.fact(&format!("{unit}/{file}"), |text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok())
    };
    let mut numbers: Vec<(u32, u32)> = device_number_at(system, &directory).into_iter().collect();
    for entry in system.list(&directory) {
        let partition = format!("{directory}/{entry}");
        if system.exists(&format!("{partition}/partition")) {
            numbers.extend(device_number_at(system, &partition));
        }
    }
    let vendor = system.text(&format!("{unit}/vendor")).value.filter(|vendor| vendor != "ATA");
    let model = system.text(&format!("{unit}/model"));
    let words = [vendor, model.value].into_iter().flatten().collect::<Vec<_>>().join(" ");
    UsbBlock {
        name: name.to_owned(),
        address: address.to_owned(),
        model: Fact { value: (!words.is_empty()).then_some(words), source: model.source },
        size_bytes: Fact { value: sectors.value.map(|n| n * 512), source: sectors.source },
        queue_depth: system.number(&format!("{unit}/queue_depth")),
        state: system.fact(&format!("{unit}/state"), ScsiState::parse),
        done_count: hexadecimal("iodone_cnt"),
        error_count: hexadecimal("ioerr_cnt"),
        timeout_count: hexadecimal("iotmo_cnt"),
        mounts: numbers.iter().filter_map(|number| mounted.get(number)).flatten().cloned().collect(),
    }
}

/// Returns the mount points by device number.
fn mounted(system: &System) -> BTreeMap<(u32, u32), Vec<String>> {
    let mut all: BTreeMap<(u32, u32), Vec<String>> = BTreeMap::new();
    for mount in mounts(system).unwrap_or_default() {
        for number in devices_of(system, &mount) {
            let points = all.entry(number).or_default();
            let point = mount.mount_point.display().to_string();
            if !points.contains(&point) {
                points.push(point);
            }
        }
    }
    all
}

/// Returns all devices, each hub followed by the devices plugged into it.
fn tree(system: &System, names: &[String]) -> Vec<UsbNode> {
    let mut nodes: Vec<UsbNode> = names
        .iter()
        .filter(|name| !name.contains(':'))
        .map(|name| {
            let d = |file: &str| format!("{DEVICES}/{name}/{file}");
            let parent = if name.starts_with("usb") { None } else { parent_of(name) };
            let interfaces = names
                .iter()
                .filter(|other| is_interface_of(other, name))
                .map(|interface| UsbInterface {
                    name: interface.clone(),
                    class: system.text(&format!("{DEVICES}/{interface}/bInterfaceClass")),
                    driver: driver(system, &format!("{DEVICES}/{interface}")).value,
                })
                .collect();
            let controller = parent.is_none().then(|| controller(system, name));
            UsbNode {
                name: name.clone(),
                parent,
                bus: system.number(&d("busnum")),
                number: system.number(&d("devnum")),
                link_mbit_per_s: system.number(&d("speed")),
                product: system.text(&d("product")),
                controller,
                port_count: system.number(&d("maxchild")).value.unwrap_or(0),
                interfaces,
            }
        })
        .collect();
    nodes.sort_by_key(|node| order(&node.name));
    nodes
}

/// Returns the driver of the host controller of a root hub: of its parent device.
pub(super) fn controller(system: &System, root_hub: &str) -> Fact<String> {
    match system.resolve(&format!("{DEVICES}/{root_hub}")) {
        Ok(real) => driver(system, real.rsplit_once('/').map_or("", |(parent, _)| parent)),
        Err(error) => Fact::unknown(why_not(&format!("{DEVICES}/{root_hub}"), &error)),
    }
}

/// Returns whether an interface belongs to a device: `2-1:1.0` to `2-1`, `2-0:1.0` to the root hub `usb2`.
fn is_interface_of(interface: &str, device: &str) -> bool {
    let Some((owner, _)) = interface.split_once(':') else { return false };
    owner == device || (owner.strip_suffix("-0").is_some_and(|bus| device == format!("usb{bus}")))
}

/// Returns the sort key of a device: bus, then ports from the root outwards, as numbers, so that port 10 follows port 9.
fn order(name: &str) -> Vec<u32> {
    let path = name.strip_prefix("usb").unwrap_or(name);
    path.split(['-', '.']).map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_ordered_behind_the_hub_it_is_plugged_into() {
        let mut names = ["2-10", "usb2", "2-9", "1-4.2", "usb1", "1-4"];
        names.sort_by_key(|name| order(name));
        assert_eq!(names, ["usb1", "1-4", "1-4.2", "usb2", "2-9", "2-10"]);
        assert_eq!(parent_of("1-4.2").as_deref(), Some("1-4"));
        assert_eq!(parent_of("1-4").as_deref(), Some("usb1"));
        assert_eq!(parent_of("usb1"), None);
        assert!(is_interface_of("2-0:1.0", "usb2") && is_interface_of("2-1:1.0", "2-1"));
        assert!(!is_interface_of("2-1:1.0", "2-1.1"));
    }

    #[test]
    fn counts_are_written_as_people_do() {
        assert_eq!((counted(1, "bus"), counted(2, "bus")), ("1 bus".to_owned(), "2 buses".to_owned()));
        assert_eq!((counted(0, "disk"), counted(1, "disk")), ("0 disks".to_owned(), "1 disk".to_owned()));
    }
}
