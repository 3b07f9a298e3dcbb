//! Checks whether USB transport or link limits the disk.
//!
//! - **Reads** how each USB disk is attached: driver, link, port, capabilities that the device reports.
//! - **Sees** a disk on BOT that the kernel lists as rotational with physical sectors of 512 bytes, as it does every disk on BOT; a USB
//!   3 disk on a USB 2 link. A USB 2 disk that offers only BOT passes: one command at a time is its maximum.
//! - **Misses** a bad cable, and effects of a bridge. Before Linux 6.9 there are no capability descriptors, and the disk's USB version
//!   decides: below 2.01 it has no USB 3, from 2.10 on it likely has, others are not seen.
//! - **Thresholds**: either is suspect.
//! - **By hand**: `trueio usb switch sdX bot`, and a baseline; or a USB 2 cable.
//!
//! Source: USB 3.2, 9.6.1 (`bcdUSB` of a SuperSpeed device on a USB 2 link is 2.10), 9.6.2 (from 2.01 on a device has capability
//! descriptors).

use crate::facts::{PhaseFacts, finding, not_applicable};
use trueio_model::{Check, CheckOutcome, DiskFacts, UsbFacts, UsbTransport};

pub(crate) const NAME: &str = "usb_link";

/// Minimum speed of a USB 3 link, in Mbit/s.
const SUPERSPEED_MBIT_PER_S: f64 = 5000.0;
/// Physical sector size that Linux reports for every BOT disk, in bytes.
const BOT_SECTOR_BYTES: u32 = 512;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let disks: Vec<(&DiskFacts, &UsbFacts)> =
        facts.disks().into_iter().filter_map(|disk| Some((disk, disk.usb.as_ref()?))).collect();
    if disks.is_empty() {
        return not_applicable(NAME, "There is no known USB disk under the files.");
    }
    let found: Vec<String> = disks.iter().map(|(disk, usb)| attached(disk, usb)).collect();
    let doubts: Vec<String> =
        disks.iter().flat_map(|(disk, usb)| [hides(disk, usb), is_slow(disk, usb)]).flatten().collect();
    let unknown: Vec<&str> =
        disks.iter().filter(|(_, usb)| is_unknown(usb)).map(|(disk, _)| disk.name.as_str()).collect();
    let plain: Vec<&str> = disks.iter().filter(|(_, usb)| is_plain(usb)).map(|(disk, _)| disk.name.as_str()).collect();
    let (outcome, sentence) = if doubts.is_empty() && !unknown.is_empty() {
        let sentence = format!(
            "{} is on a USB 2 link, and whether it supports USB 3 is unknown: Linux reports a disk's capabilities from \
             6.9 on, and its declared USB version is ambiguous.",
            unknown.join(", ")
        );
        (CheckOutcome::NotSeen, sentence)
    } else if doubts.is_empty() && !plain.is_empty() {
        let sentence = format!(
            "{} is a USB 2 disk that supports only BOT: it executes one command at a time, and Linux reports every \
             such disk as rotating.",
            plain.join(", ")
        );
        (CheckOutcome::Passed, sentence)
    } else if doubts.is_empty() {
        (
            CheckOutcome::Passed,
            "The USB link is as fast as disk and port allow, and the transport hides \
                                nothing."
                .to_owned(),
        )
    } else {
        (CheckOutcome::Suspect, doubts.join(" "))
    };
    let expected = "UAS, or facts that BOT does not distort; a USB 3 link for a USB 3 disk";
    let check = finding(NAME, outcome, "sysfs", expected, found.join(", "), sentence);
    if outcome == CheckOutcome::Suspect { check.with_brief(found.join(", ")) } else { check }
}

/// `sda on BOT at 480 Mbit/s`.
fn attached(disk: &DiskFacts, usb: &UsbFacts) -> String {
    let link = usb.link_mbit_per_s.value.map_or_else(|| "unknown".to_owned(), |mbit| format!("{mbit} Mbit/s"));
    format!("{} on {} at {link}", disk.name, usb.transport)
}

fn hides(disk: &DiskFacts, usb: &UsbFacts) -> Option<String> {
    let pretends = usb.transport == UsbTransport::Bot
        && !is_plain(usb)
        && !(is_bot_alone(usb) && is_unknown(usb))
        && disk.is_rotational.value == Some(true)
        && disk.physical_sector_bytes.value == Some(BOT_SECTOR_BYTES);
    let way_out = if usb.offers_uas() == Some(true) { "; it supports UAS, see `trueio usb explain`" } else { "" };
    pretends.then(|| {
        format!(
            "{} runs on BOT. Linux reports every BOT disk as rotating with sectors of 512 bytes and sends it one \
             command at a time, so its type and its speed with a deep queue are unknown{way_out}.",
            disk.name
        )
    })
}

fn is_usb_2_link(usb: &UsbFacts) -> bool {
    usb.link_mbit_per_s.value.is_some_and(|link| link < SUPERSPEED_MBIT_PER_S)
}

/// Returns true for a disk that offers only BOT, on a USB 2 link: one command at a time is its maximum there.
fn is_bot_alone(usb: &UsbFacts) -> bool {
    usb.transport == UsbTransport::Bot && usb.offers_uas() == Some(false) && is_usb_2_link(usb)
}

/// Returns true for a USB 2 disk that offers only BOT.
fn is_plain(usb: &UsbFacts) -> bool {
    is_bot_alone(usb) && usb.can_superspeed.value == Some(false)
}

/// Returns true for a disk on a USB 2 link whose capabilities and declared version do not show whether it
/// supports USB 3.
fn is_unknown(usb: &UsbFacts) -> bool {
    is_usb_2_link(usb) && usb.can_superspeed.value.is_none() && !usb.speaks_as_superspeed()
}

fn is_slow(disk: &DiskFacts, usb: &UsbFacts) -> Option<String> {
    let link = usb.link_mbit_per_s.value.filter(|_| is_usb_2_link(usb))?;
    let name = &disk.name;
    let way_out = match usb.port_mbit_per_s.value {
        Some(port) if port >= SUPERSPEED_MBIT_PER_S => "the port is USB 3, try another cable",
        _ => "use a USB 3 port",
    };
    match usb.can_superspeed.value {
        Some(true) => {
            Some(format!("{name} supports USB 3 but is on a link of {link} Mbit/s, which is the limit: {way_out}."))
        }
        None if usb.speaks_as_superspeed() => Some(format!(
            "{name} declares USB {} on a link of {link} Mbit/s, as USB 3 disks do. If it is one, the link is the \
             limit: {way_out}. This kernel does not report the capabilities that would confirm it (Linux 6.9 does).",
            usb.usb_version.value.as_deref().unwrap_or_default().trim()
        )),
        _ => None,
    }
}
