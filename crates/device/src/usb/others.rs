//! The transport of a USB disk on other systems, from the output of their own tools.
//!
//! | system | command | UAS | BOT |
//! |---|---|---|---|
//! | macOS | `ioreg -r -c IOUSBHostDevice -l -w 0` | a node of class `IOUSBMassStorageUASDriver` above the medium | `IOUSBMassStorageDriver`, or `IOUSBMassStorageInterfaceNub` alone |
//! | Windows | `Get-CimInstance Win32_PnPEntity …`, as CSV: [`WINDOWS_COMMAND`] | service `UASPStor` | service `USBSTOR` |
//! | FreeBSD | `dmesg` | never: there is no driver | `umass0: SCSI over Bulk-Only` |
//!
//! Cannot see: anything but the transport in use and the names; on FreeBSD, lines that the message buffer has
//! overwritten. None of these systems lets the user choose the transport ([`switch_refusal`]). The parsers are tested
//! with published output (FreeBSD), with published names and paths in the documented format (Windows) and with the
//! documented format (macOS), not on a machine of ours: `tests/usb/other-systems/README.md`.
//!
//! Source: `ioreg(8)`; Microsoft, "USB device class drivers included in Windows" (`Uaspstor.sys`,
//! `Usbstor.sys`); umass(4).

use std::collections::BTreeMap;
use trueio_model::UsbTransport;

/// The command on macOS.
pub const MACOS_COMMAND: [&str; 7] = ["ioreg", "-r", "-c", "IOUSBHostDevice", "-l", "-w", "0"];
/// The command on Windows: lists the entities of the two drivers as CSV.
pub const WINDOWS_COMMAND: [&str; 4] = [
    "powershell",
    "-NoProfile",
    "-Command",
    "Get-CimInstance Win32_PnPEntity -Filter \"Service='UASPStor' OR Service='USBSTOR'\" | \
     Select-Object Service,Name,PNPDeviceID | ConvertTo-Csv -NoTypeInformation",
];
/// The command on FreeBSD.
pub const FREEBSD_COMMAND: [&str; 1] = ["dmesg"];

/// A USB disk as another system reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignDisk {
    /// The system's name of the disk (`disk4`, `da0`); `None` if unknown.
    pub disk: Option<String>,
    /// `vendor:product`, hexadecimal; `None` if unknown.
    pub id: Option<String>,
    /// The product name that the device reports.
    pub name: Option<String>,
    /// The serial number; `None` if unknown.
    pub serial: Option<String>,
    /// The transport in use.
    pub transport: UsbTransport,
    /// The driver, which determines the transport.
    pub driver: String,
}

/// Returns why the transport cannot be switched on a system (a value of [`std::env::consts::OS`]).
pub fn switch_refusal(os: &str) -> &'static str {
    match os {
        "macos" => "macOS chooses IOUSBMassStorageUASDriver for every disk that offers UAS, and has no setting for it",
        "windows" => {
            "Windows chooses uaspstor.sys for every disk that offers UAS on a controller with streams; another driver \
             can be chosen in the Device Manager only"
        }
        "freebsd" => "FreeBSD has no UAS driver: umass(4) drives every USB disk with BOT",
        _ => "how this system chooses the transport is unknown",
    }
}

/// Parses the output of `ioreg`: a tree of nodes by indentation, each with properties.
///
/// Only a node's own class is compared: the root node lists every class with its use count, including unused drivers.
pub fn parse_macos(text: &str) -> Vec<ForeignDisk> {
    /// A node whose children are being read: its depth and its properties.
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
            // A partition is a child of its disk; only the whole disk is listed.
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

/// Parses the output of [`WINDOWS_COMMAND`].
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
            // USB\VID_152D&PID_0578\0123456789. An instance that Windows generated contains `&`. Windows adds a prefix
            // to the serial number of a UAS disk.
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

/// Splits a CSV line into cells; inside quotes, a quote is doubled.
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

/// Parses FreeBSD's message buffer. A disk that was attached again is listed once, in its present state.
pub fn parse_freebsd(text: &str) -> Vec<ForeignDisk> {
    /// The properties of `umassN`.
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

    /// Returns a disk's names and its transport.
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
        assert_eq!(disks[2].serial, None, "an instance that Windows generated is not a serial number");
        assert_eq!(disks[2].name.as_deref(), Some("USB Mass Storage Device, \"stick\""));
    }

    #[test]
    fn freebsd_has_bulk_only_and_says_so() {
        let disks = parse_freebsd(include_str!("../../tests/usb/other-systems/freebsd-dmesg.txt"));
        assert_eq!(brief(&disks), [(Some("da1"), None, UsbTransport::Bot)]);
        assert_eq!(disks[0].name.as_deref(), Some("vendor 0x0d7d USB DISK 2.0"));
        assert_eq!(disks[0].serial.as_deref(), Some("0123456789AB"));
        // Two disks of one bridge, which reports its interface's name instead of its own.
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
            ("plan9", "how this system chooses the transport is unknown"),
        ] {
            assert!(switch_refusal(os).contains(words), "{os}: {}", switch_refusal(os));
        }
    }
}
