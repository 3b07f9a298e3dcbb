//! USB disks: how they are attached, what they offer, why they run on the transport they run on.
//!
//! There are two transports. BOT (bulk-only transport, the driver `usb-storage`) carries one command
//! at a time. UAS (USB Attached SCSI, the driver `uas`) carries many, and lets the disk choose the
//! order. A disk offers either or both as *alternate settings* of one interface, and the kernel's
//! rules choose.

use crate::Fact;
use serde::{Deserialize, Serialize};

/// How commands travel to a USB disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsbTransport {
    /// USB Attached SCSI: many commands at once.
    Uas,
    /// Bulk-only transport: one command at a time.
    Bot,
    /// No driver is bound: there is no block device.
    None,
    /// A driver that is neither `uas` nor `usb-storage`.
    Other,
}

impl UsbTransport {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uas => "UAS",
            Self::Bot => "BOT",
            Self::None => "none",
            Self::Other => "other",
        }
    }
}

impl std::fmt::Display for UsbTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One alternate setting of a mass-storage interface, from the device's own descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsbAlternate {
    /// Number of the setting.
    pub number: u8,
    /// Interface subclass (6 is SCSI).
    pub subclass: u8,
    /// Interface protocol (0x50 is BOT, 0x62 is UAS).
    pub protocol: u8,
    /// UAS pipe usages found, sorted: 1 command, 2 status, 3 data-in, 4 data-out. The kernel needs
    /// all four.
    pub pipes: Vec<u8>,
    /// Streams that the status pipe has; 0 below SuperSpeed.
    pub stream_count: u32,
}

impl UsbAlternate {
    /// SCSI over UAS with all four pipes.
    pub fn is_uas(&self) -> bool {
        self.claims_uas() && self.pipes == [1, 2, 3, 4]
    }

    /// SCSI over UAS by its numbers alone.
    pub fn claims_uas(&self) -> bool {
        (self.subclass, self.protocol) == (6, 0x62)
    }

    /// Bulk-only, of any command set.
    pub fn is_bot(&self) -> bool {
        self.protocol == 0x50
    }
}

/// How a USB disk is attached, as the record of a run keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbFacts {
    /// The kernel's name of the device: bus and ports (`2-1`, `1-4.2`).
    pub device: String,
    /// The kernel's name of the mass-storage interface (`2-1:1.0`).
    pub interface: String,
    /// Vendor and product, four hexadecimal digits each (`152d:0578`).
    pub id: Fact<String>,
    /// The device's release in binary-coded decimal (`0100`).
    pub release: Fact<String>,
    /// The device's own name of its maker.
    pub manufacturer: Fact<String>,
    /// The device's own name.
    pub product: Fact<String>,
    /// The device's serial number, which USB gives on both transports.
    pub serial: Fact<String>,
    /// USB version that the device says it follows on this link (`3.20`, `2.10`).
    pub usb_version: Fact<String>,
    /// Speed of the link, in Mbit/s (480 is USB 2, 5000 and more is USB 3).
    pub link_mbit_per_s: Fact<f64>,
    /// The best the port can do, in Mbit/s.
    pub port_mbit_per_s: Fact<f64>,
    /// Can the device do SuperSpeed. Known for certain from a SuperSpeed link or from its
    /// capability descriptors; see [`UsbFacts::speaks_as_superspeed`] where it is not.
    pub can_superspeed: Fact<bool>,
    /// The driver that is bound to the interface; not known where none is.
    pub driver: Fact<String>,
    /// The transport in use, which follows from the driver.
    pub transport: UsbTransport,
    /// What the interface offers.
    pub offers: Fact<Vec<UsbAlternate>>,
    /// Commands that the transport keeps in flight.
    pub queue_depth: Fact<u32>,
}

impl UsbFacts {
    /// Does the device offer UAS; `None` if its descriptors could not be read.
    pub fn offers_uas(&self) -> Option<bool> {
        self.offers.value.as_ref().map(|all| all.iter().any(UsbAlternate::is_uas))
    }

    /// On a slower link: does it give itself the USB version that the standard wants of a SuperSpeed device there (2.10;
    /// USB 3.2, 9.6.1). Devices below USB 3 say 2.00 or 2.01 as a rule, but nothing forbids them more, so this is no proof.
    pub fn speaks_as_superspeed(&self) -> bool {
        let version = self.usb_version.value.as_deref().and_then(|text| text.trim().parse::<f64>().ok());
        version.is_some_and(|version| version >= 2.1)
    }

    /// Does the device offer BOT; `None` if its descriptors could not be read.
    pub fn offers_bot(&self) -> Option<bool> {
        self.offers.value.as_ref().map(|all| all.iter().any(UsbAlternate::is_bot))
    }
}

/// A block device behind a USB interface: one per logical unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbBlock {
    /// Kernel name (`sda`).
    pub name: String,
    /// SCSI address (`0:0:0:0`).
    pub address: String,
    /// Vendor and model that the logical unit gives.
    pub model: Fact<String>,
    /// Size, in bytes.
    pub size_bytes: Fact<u64>,
    /// Commands in flight at most.
    pub queue_depth: Fact<u32>,
    /// State of the SCSI device (`running`, `offline`).
    pub state: Fact<String>,
    /// Commands completed since it was attached.
    pub done_count: Fact<u64>,
    /// Commands that ended with an error.
    pub error_count: Fact<u64>,
    /// Commands that timed out.
    pub timeout_count: Fact<u64>,
    /// Where it or its partitions are mounted, as this process sees it.
    pub mounts: Vec<String>,
}

/// A mass-storage interface and everything behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbDisk {
    /// How it is attached.
    pub usb: UsbFacts,
    /// Its block devices; empty while no driver is bound.
    pub blocks: Vec<UsbBlock>,
}

/// A device of the USB tree, disk or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbNode {
    /// The kernel's name: `usb2` is a root hub, `2-1` what is in its first port.
    pub name: String,
    /// The hub it is plugged into; `None` for a root hub.
    pub parent: Option<String>,
    /// Bus number.
    pub bus: Fact<u32>,
    /// Device number on the bus.
    pub number: Fact<u32>,
    /// Speed of its link, in Mbit/s.
    pub link_mbit_per_s: Fact<f64>,
    /// What it calls itself.
    pub product: Fact<String>,
    /// Of a root hub: the host controller's driver.
    pub controller: Option<Fact<String>>,
    /// Ports of a hub; 0 of anything else.
    pub port_count: u32,
    /// Its interfaces.
    pub interfaces: Vec<UsbInterface>,
}

/// An interface of a device of the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbInterface {
    /// The kernel's name (`2-1:1.0`).
    pub name: String,
    /// Interface class, hexadecimal (`08` is mass storage).
    pub class: Fact<String>,
    /// The driver that is bound, if one is.
    pub driver: Option<String>,
}

/// Every USB disk of a machine, and how it was looked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbReport {
    /// The disks, by bus and port.
    pub disks: Vec<UsbDisk>,
    /// The whole tree, root hubs first, each followed by what is plugged into it.
    pub tree: Vec<UsbNode>,
    /// How it was looked: one sentence a place.
    pub looked: Vec<String>,
    /// What could not be seen and why; what root would show.
    pub unseen: Vec<String>,
    /// Switches of `trueio` that are under way or were interrupted, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<String>,
}

/// What one of the kernel's rules says of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsbAnswer {
    /// The rule lets UAS through.
    Allows,
    /// The rule alone keeps the disk from UAS.
    Forbids,
    /// The fact it needs could not be read.
    NotSeen,
    /// It does not concern this disk.
    DoesNotApply,
}

/// One rule of the kernel's decision, asked of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbRule {
    /// Its short name (`user_quirk`).
    pub name: String,
    /// What it says of this disk.
    pub answer: UsbAnswer,
    /// The fact, in a sentence.
    pub fact: String,
    /// Who says so.
    pub source: String,
}

/// Trouble of one kind, counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbTrouble {
    /// `reset`, `abort`, `io_error`, …
    pub kind: String,
    /// How often.
    pub count: u64,
    /// Seconds since boot of the last one.
    pub last_s: Option<f64>,
    /// The last line, as the kernel wrote it.
    pub example: String,
}

/// One thing that can be changed, with everything needed to do and to undo it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbWay {
    /// What it brings, and what it risks.
    pub what: String,
    /// Commands that do it now.
    pub commands: Vec<String>,
    /// The entry for the kernel's quirk string, if one is needed.
    pub quirk: Option<String>,
    /// How to keep it over a restart.
    pub persist: Vec<String>,
    /// How to undo it.
    pub undo: Vec<String>,
}

/// Why a USB disk runs on the transport it runs on, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsbExplanation {
    /// The disk.
    pub disk: UsbDisk,
    /// The kernel's rules, in the order in which they are asked.
    pub rules: Vec<UsbRule>,
    /// What the rules lead to; `None` if a fact that is missing decides.
    pub expected: Option<UsbTransport>,
    /// The rule that decided, by name.
    pub decided_by: Option<String>,
    /// The answer in a sentence, the difference to what is found included.
    pub conclusion: String,
    /// Trouble that the kernel's log tells of.
    pub troubles: Vec<UsbTrouble>,
    /// What is known of this bridge and this link.
    pub notes: Vec<String>,
    /// Facts of the disk that its transport hides or falsifies.
    pub hidden: Vec<String>,
    /// What can be changed.
    pub ways: Vec<UsbWay>,
    /// What could not be seen and why.
    pub unseen: Vec<String>,
}
