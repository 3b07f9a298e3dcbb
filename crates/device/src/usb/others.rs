//! Other systems: which transport they say a USB disk is on, from what their own tools print.
//!
//! | system | asked | says UAS | says BOT |
//! |---|---|---|---|
//! | macOS | `ioreg -r -c IOUSBHostDevice -l -w 0` | a node of class `IOUSBMassStorageUASDriver` above the medium | `IOUSBMassStorageDriver`, or `IOUSBMassStorageInterfaceNub` alone |
//! | Windows | `Get-CimInstance Win32_PnPEntity …`, as CSV: [`WINDOWS_COMMAND`] | service `UASPStor` | service `USBSTOR` |
//! | FreeBSD | `dmesg` | never: there is no driver | `umass0: SCSI over Bulk-Only` |
//!
//! Cannot see: anything but the transport in use and the names, and on FreeBSD what the message
//! buffer has lost. None of these systems lets it be chosen ([`switch_refusal`]). The parsers were
//! held to published output (FreeBSD), to published names and paths in the documented frame (Windows) and to the documented
//! form (macOS), not to a machine of ours: `tests/usb/other-systems/README.md`.
//!
//! Source: `ioreg(8)`; Microsoft, "USB device class drivers included in Windows" (`Uaspstor.sys`,
//! `Usbstor.sys`); umass(4).

use std::collections::BTreeMap;
use trueio_model::UsbTransport;

/// What is asked on macOS.
pub const MACOS_COMMAND: [&str; 7] = ["ioreg", "-r", "-c", "IOUSBHostDevice", "-l", "-w", "0"];
/// What is asked on Windows: entities that one of the two drivers serves, as CSV.
pub const WINDOWS_COMMAND: [&str; 4] = [
    "powershell",
    "-NoProfile",
    "-Command",
    "Get-CimInstance Win32_PnPEntity -Filter \"Service='UASPStor' OR Service='USBSTOR'\" | \
     Select-Object Service,Name,PNPDeviceID | ConvertTo-Csv -NoTypeInformation",
];
/// What is asked on FreeBSD.
pub const FREEBSD_COMMAND: [&str; 1] = ["dmesg"];

/// A USB disk as another system tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignDisk {
    /// The system's name of the disk (`disk4`, `da0`); `None` where it does not say.
    pub disk: Option<String>,
    /// `vendor:product`, hexadecimal, if it is said.
    pub id: Option<String>,
    /// What the device calls itself.
    pub name: Option<String>,
    /// Its serial number, if it is said.
    pub serial: Option<String>,
    /// The transport in use.
    pub transport: UsbTransport,
    /// The driver that says so.
    pub driver: String,
}

/// Why the transport cannot be switched on a system, by the name that Rust gives it.
pub fn switch_refusal(os: &str) -> &'static str {
    match os {
        "macos" => "macOS chooses IOUSBMassStorageUASDriver for every disk that offers UAS, and has no setting for it",
        "windows" => {
            "Windows chooses uaspstor.sys for every disk that offers UAS on a controller with streams; another driver \
             can be chosen in the Device Manager only"
        }
        "freebsd" => "FreeBSD has no UAS driver: umass(4) drives every USB disk with BOT",
        _ => "it is not known how this system chooses",
    }
}

/// Reads what `ioreg` prints: a tree of nodes by indent, each with properties.
///
/// Only a node's own class counts: the root node lists every class there is, with how often it is in
/// use, and is full of drivers that drive nothing.
pub fn parse_macos(text: &str) -> Vec<ForeignDisk> {
    /// A node that is open: its depth and what was learnt at it.
    struct Node {
        depth: usize,
        class: String,
        properties: BTreeMap<String, String>,
    }
    let mut open: Vec<Node> = Vec::new();
    let mut found: Vec<ForeignDisk> = Vec::new();
    for line in text.lines() {
        if let Some(depth) = line.find("+-o ") {
            open.retain(|node| node.depth < depth);
            let class = line.split("<class ").nth(1).and_then(|rest| rest.split([',', '>']).next()).unwrap_or_default();
            open.push(Node { depth, class: class.trim().to_owned(), properties: BTreeMap::new() });
            continue;
        }
        let Some((key, value)) = property(line) else { continue };
        if key == "BSD Name" {
            let has = |class: &str| open.iter().any(|node| node.class == class);
            let (transport, driver) = if has("IOUSBMassStorageUASDriver") {
                (UsbTransport::Uas, "IOUSBMassStorageUASDriver")
            } else if has("IOUSBMassStorageDriver") {
                (UsbTransport::Bot, "IOUSBMassStorageDriver")
            } else if has("IOUSBMassStorageInterfaceNub") {
                (UsbTransport::Bot, "IOUSBMassStorageInterfaceNub")
            } else {
                continue;
            };
            // A partition lies below its disk: only the whole disk is listed.
            let is_whole = value.strip_prefix("disk").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
            let device = open.iter().rev().find(|node| node.properties.contains_key("idVendor"));
            let of = |key: &str| device.and_then(|node| node.properties.get(key)).cloned();
            let number = |key: &str| of(key).and_then(|text| text.parse::<u16>().ok());
            if is_whole && !found.iter().any(|disk| disk.disk.as_deref() == Some(&value)) {
                found.push(ForeignDisk {
                    disk: Some(value),
                    id: number("idVendor").zip(number("idProduct")).map(|(v, p)| format!("{v:04x}:{p:04x}")),
                    name: of("USB Product Name"),
                    serial: of("USB Serial Number"),
                    transport,
                    driver: driver.to_owned(),
                });
            }
        } else if let Some(node) = open.last_mut() {
            node.properties.entry(key).or_insert(value);
        }
    }
    found
}

/// `| |   "USB Product Name" = "Elements"` or `"idVendor" = 4136`.
fn property(line: &str) -> Option<(String, String)> {
    let (_, rest) = line.split_once('"')?;
    let (key, rest) = rest.split_once('"')?;
    let value = rest.trim_start().strip_prefix('=')?.trim();
    let value = value.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(value);
    Some((key.to_owned(), value.to_owned()))
}

/// Reads what [`WINDOWS_COMMAND`] prints.
pub fn parse_windows(text: &str) -> Vec<ForeignDisk> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(head) = lines.next().map(csv) else { return Vec::new() };
    let column =
        |name: &str| head.iter().position(|found| found.trim_start_matches('\u{feff}').eq_ignore_ascii_case(name));
    let (Some(service), Some(path)) = (column("Service"), column("PNPDeviceID")) else { return Vec::new() };
    lines
        .filter_map(|line| {
            let cells = csv(line);
            let driver = cells.get(service)?;
            let transport = if driver.eq_ignore_ascii_case("UASPStor") {
                UsbTransport::Uas
            } else if driver.eq_ignore_ascii_case("USBSTOR") {
                UsbTransport::Bot
            } else {
                return None;
            };
            // USB\VID_152D&PID_0578\0123456789: an instance that Windows made up holds `&`. To the serial number of a
            // UAS disk it puts a prefix of its own.
            let mut parts = cells.get(path)?.split('\\').skip(1);
            let ids = parts.next()?.to_ascii_uppercase();
            let after = |key: &str| Some(ids.split(key).nth(1)?.get(..4)?.to_ascii_lowercase());
            let serial = parts.next().filter(|instance| !instance.contains('&'));
            let serial = serial.map(|serial| serial.strip_prefix("MSFT30").unwrap_or(serial)).filter(|s| !s.is_empty());
            Some(ForeignDisk {
                disk: None,
                id: after("VID_").zip(after("PID_")).map(|(v, p)| format!("{v}:{p}")),
                name: column("Name").and_then(|name| cells.get(name)).filter(|name| !name.is_empty()).cloned(),
                serial: serial.map(str::to_owned),
                transport,
                driver: driver.clone(),
            })
        })
        .collect()
}

/// The cells of one line; quotes are doubled inside quotes.
fn csv(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cells.last_mut().expect("never empty").push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().expect("never empty").push(c),
        }
    }
    cells
}

/// Reads FreeBSD's message buffer. A disk that was attached again is listed once, as it is now.
pub fn parse_freebsd(text: &str) -> Vec<ForeignDisk> {
    /// What is known of `umassN`.
    #[derive(Default)]
    struct Bridge {
        name: Option<String>,
        is_bulk_only: bool,
    }
    let mut bridges: BTreeMap<String, Bridge> = BTreeMap::new();
    let mut found: BTreeMap<String, ForeignDisk> = BTreeMap::new();
    for line in text.lines() {
        let Some((subject, rest)) = line.split_once(' ') else { continue };
        if let Some(unit) = subject.strip_suffix(':') {
            let rest = rest.trim();
            if unit.starts_with("umass") {
                let bridge = bridges.entry(unit.to_owned()).or_default();
                bridge.is_bulk_only |= rest.contains("over Bulk-Only");
                // `<Maker Model, class 0/0, rev …> on usbus0`, or the name of its interface alone: `<MSC Bulk-Only Transfer>`.
                if let Some((name, _)) = rest.strip_prefix('<').and_then(|rest| rest.rsplit_once('>')) {
                    bridge.name = name.split(", class").next().map(str::to_owned);
                }
            } else if let Some(disk) = found.get_mut(unit)
                && let Some(serial) = rest.strip_prefix("Serial Number ")
            {
                disk.serial = Some(serial.to_owned());
            }
        } else if let Some(sim) = rest.strip_prefix("at umass-sim").and_then(|rest| rest.split(' ').next())
            && subject.starts_with("da")
        {
            // `da0 at umass-sim0 bus 0 …`: the simulated adapter of umass0.
            let Some(bridge) = bridges.get(&format!("umass{sim}")).filter(|bridge| bridge.is_bulk_only) else {
                continue;
            };
            let disk = ForeignDisk {
                disk: Some(subject.to_owned()),
                id: None,
                name: bridge.name.clone(),
                serial: None,
                transport: UsbTransport::Bot,
                driver: "umass".to_owned(),
            };
            found.insert(subject.to_owned(), disk);
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk in two words and its transport.
    fn brief(disks: &[ForeignDisk]) -> Vec<(Option<&str>, Option<&str>, UsbTransport)> {
        disks.iter().map(|disk| (disk.disk.as_deref(), disk.id.as_deref(), disk.transport)).collect()
    }

    #[test]
    fn macos_tells_the_transport_by_the_class_above_the_medium() {
        let disks = parse_macos(include_str!("../../tests/usb/other-systems/macos-ioreg.txt"));
        use UsbTransport::{Bot, Uas};
        assert_eq!(
            brief(&disks),
            [(Some("disk4"), Some("152d:0578"), Uas), (Some("disk5"), Some("0781:5581"), Bot)],
            "partitions and the classes that the root lists are not disks"
        );
        assert_eq!(disks[0].name.as_deref(), Some("External Disk"));
        assert_eq!(disks[0].serial.as_deref(), Some("0123456789ABCDEF"));
        assert_eq!(disks[1].driver, "IOUSBMassStorageDriver");
    }

    #[test]
    fn windows_tells_the_transport_by_the_service() {
        let disks = parse_windows(include_str!("../../tests/usb/other-systems/windows-pnp.csv"));
        use UsbTransport::{Bot, Uas};
        let found = [(None, Some("152d:0578"), Uas), (None, Some("14cd:1212"), Bot), (None, Some("0781:5581"), Bot)];
        assert_eq!(brief(&disks), found);
        assert_eq!(disks[0].serial.as_deref(), Some("0123456789ABCDEF"), "without the prefix of Windows");
        assert_eq!(disks[1].serial.as_deref(), Some("0123456789AB"));
        assert_eq!(disks[2].serial, None, "an instance that Windows made up is no serial number");
        assert_eq!(disks[2].name.as_deref(), Some("USB Mass Storage Device, \"stick\""));
    }

    #[test]
    fn freebsd_has_bulk_only_and_says_so() {
        let disks = parse_freebsd(include_str!("../../tests/usb/other-systems/freebsd-dmesg.txt"));
        assert_eq!(brief(&disks), [(Some("da1"), None, UsbTransport::Bot)]);
        assert_eq!(disks[0].name.as_deref(), Some("vendor 0x0d7d USB DISK 2.0"));
        assert_eq!(disks[0].serial.as_deref(), Some("0123456789AB"));
        // Two disks behind one bridge, which gives its interface's name instead of its own.
        let disks = parse_freebsd(include_str!("../../tests/usb/other-systems/freebsd-two-disks.txt"));
        use UsbTransport::Bot;
        assert_eq!(brief(&disks), [(Some("da1"), None, Bot), (Some("da2"), None, Bot)]);
        for disk in disks {
            assert_eq!(disk.name.as_deref(), Some("MSC Bulk-Only Transfer"));
            assert_eq!(disk.serial.as_deref(), Some("RANDOM0123456789AB"));
        }
    }

    #[test]
    fn other_text_gives_no_disk() {
        for text in [
            "",
            "nonsense\n",
            "\"Service\"\n\"x\"\n",
            "+-o \n  \"BSD Name\" = \"disk0\"\n",
            "da0 at umass-sim0 bus 0\n",
        ] {
            assert_eq!(
                (parse_macos(text).len(), parse_windows(text).len(), parse_freebsd(text).len()),
                (0, 0, 0),
                "{text}"
            );
        }
    }

    #[test]
    fn each_system_says_why_it_cannot_be_switched() {
        for (os, words) in [
            (
                "macos",
                "macOS chooses IOUSBMassStorageUASDriver for every disk that offers UAS, and has no setting for it",
            ),
            ("windows", "another driver can be chosen in the Device Manager only"),
            ("freebsd", "FreeBSD has no UAS driver: umass(4) drives every USB disk with BOT"),
            ("plan9", "it is not known how this system chooses"),
        ] {
            assert!(switch_refusal(os).contains(words), "{os}: {}", switch_refusal(os));
        }
    }
}
