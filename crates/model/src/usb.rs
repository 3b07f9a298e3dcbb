//! USB disks: how they are attached, which transports they offer, and why the kernel chose the present one.
//!
//! There are two transports. BOT (bulk-only transport, the driver `usb-storage`) carries one command
//! at a time. UAS (USB Attached SCSI, the driver `uas`) carries many, and lets the disk choose the
//! order. A disk offers either or both as *alternate settings* of one interface, and the kernel
//! chooses by its rules.

use crate::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The transport of commands to a USB disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Returns the usual spelling.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Returns whether the setting is SCSI over UAS with all four pipes.
    pub fn is_uas(&self) -> bool {
        self.claims_uas() && self.pipes == [1, 2, 3, 4]
    }

    /// Returns whether subclass and protocol are those of UAS, whichever pipes exist.
    pub fn claims_uas(&self) -> bool {
        (self.subclass, self.protocol) == (6, 0x62)
    }

    /// Returns whether the setting is bulk-only, with any command set.
    pub fn is_bot(&self) -> bool {
        self.protocol == 0x50
    }
}

/// How a USB disk is attached. The record of a run keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbFacts {
    /// The kernel's name of the device: bus and ports (`2-1`, `1-4.2`).
    pub device: String,
    /// The kernel's name of the mass-storage interface (`2-1:1.0`).
    pub interface: String,
    /// Vendor and product, four hexadecimal digits each (`152d:0578`).
    pub id: Fact<String>,
    /// The device's release in binary-coded decimal (`0100`).
    pub release: Fact<String>,
    /// The manufacturer's name that the device reports.
    pub manufacturer: Fact<String>,
    /// The product name that the device reports.
    pub product: Fact<String>,
    /// The device's serial number. USB reports it on both transports.
    pub serial: Fact<String>,
    /// The USB version that the device reports on this link (`3.20`, `2.10`).
    pub usb_version: Fact<String>,
    /// Speed of the link, in Mbit/s (480 is USB 2, 5000 and more is USB 3).
    pub link_mbit_per_s: Fact<f64>,
    /// The highest speed of the port, in Mbit/s.
    pub port_mbit_per_s: Fact<f64>,
    /// Whether the device supports SuperSpeed. Known from a SuperSpeed link or from the capability descriptors; if
    /// unknown, see [`UsbFacts::speaks_as_superspeed`].
    pub can_superspeed: Fact<bool>,
    /// The driver that is bound to the interface; unknown if none is.
    pub driver: Fact<String>,
    /// The transport in use, which follows from the driver.
    pub transport: UsbTransport,
    /// The alternate settings of the interface.
    pub offers: Fact<Vec<UsbAlternate>>,
    /// Commands that the transport keeps in flight.
    pub queue_depth: Fact<u32>,
}

impl UsbFacts {
    /// Returns whether the device offers UAS; `None` if its descriptors could not be read.
    pub fn offers_uas(&self) -> Option<bool> {
        self.offers.value.as_ref().map(|all| all.iter().any(UsbAlternate::is_uas))
    }

    /// Returns whether a device on a slower link reports a USB version of 2.10 or more, which USB 3.2, 9.6.1, requires
    /// of SuperSpeed devices there. Other devices usually report 2.00 or 2.01, but may report more, so this is not a
    /// proof.
    pub fn speaks_as_superspeed(&self) -> bool {
        let version = self.usb_version.value.as_deref().and_then(|text| text.trim().parse::<f64>().ok());
        version.is_some_and(|version| version >= 2.1)
    }

    /// Returns whether the device offers BOT; `None` if its descriptors could not be read.
    pub fn offers_bot(&self) -> Option<bool> {
        self.offers.value.as_ref().map(|all| all.iter().any(UsbAlternate::is_bot))
    }
}

/// The state of a SCSI device, in the kernel's spelling.
///
/// Source: Linux `drivers/scsi/scsi_sysfs.c`, `sdev_states`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScsiState {
    /// Allocated, not yet added to sysfs.
    Created,
    /// Usable.
    Running,
    /// Being removed.
    Cancel,
    /// Removed.
    Deleted,
    /// Accepts only special commands.
    Quiesce,
    /// The kernel's error handling gave the device up.
    Offline,
    /// The transport lost the device.
    TransportOffline,
    /// Commands wait.
    Blocked,
    /// Created while commands wait.
    CreatedBlocked,
    /// A state that is not in the kernel's table of today. A disk in it is not switched.
    #[serde(other)]
    Other,
}

impl ScsiState {
    /// Every state of the kernel's table.
    const ALL: [Self; 9] = [
        Self::Created,
        Self::Running,
        Self::Cancel,
        Self::Deleted,
        Self::Quiesce,
        Self::Offline,
        Self::TransportOffline,
        Self::Blocked,
        Self::CreatedBlocked,
    ];

    /// Reads the kernel's spelling; `None` if there is none.
    pub fn parse(text: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|state| state.name() == text);
        known.or((!text.is_empty()).then_some(Self::Other))
    }

    /// Returns the kernel's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Cancel => "cancel",
            Self::Deleted => "deleted",
            Self::Quiesce => "quiesce",
            Self::Offline => "offline",
            Self::TransportOffline => "transport-offline",
            Self::Blocked => "blocked",
            Self::CreatedBlocked => "created-blocked",
            Self::Other => "other",
        }
    }
}

impl std::fmt::Display for ScsiState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A block device of a USB interface: one per logical unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbBlock {
    /// Kernel name (`sda`).
    pub name: String,
    /// SCSI address (`0:0:0:0`).
    pub address: String,
    /// Vendor and model that the logical unit reports.
    pub model: Fact<String>,
    /// Size, in bytes.
    pub size_bytes: Fact<u64>,
    /// Maximum number of commands in flight.
    pub queue_depth: Fact<u32>,
    /// State of the SCSI device.
    pub state: Fact<ScsiState>,
    /// Commands completed since it was attached.
    pub done_count: Fact<u64>,
    /// Commands that ended with an error.
    pub error_count: Fact<u64>,
    /// Commands that timed out.
    pub timeout_count: Fact<u64>,
    /// Mount points of the device and its partitions in this process's mount namespace.
    pub mounts: Vec<String>,
}

impl UsbBlock {
    /// Returns the state if it is known and is not [`ScsiState::Running`].
    pub fn abnormal_state(&self) -> Option<ScsiState> {
        self.state.value.filter(|state| *state != ScsiState::Running)
    }
}

/// A mass-storage interface with its block devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbDisk {
    /// How it is attached.
    pub usb: UsbFacts,
    /// Its block devices; empty while no driver is bound.
    pub blocks: Vec<UsbBlock>,
}

/// The name of a USB disk that is driven in user space, as a job's target: `usb:2-1`, or `usb:2-1/1` for its logical unit 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsbTargetName<'a> {
    /// The kernel's name of the device: bus and ports (`2-1`, `1-4.2`).
    pub device: &'a str,
    /// The logical unit, if it is named.
    pub lun: Option<u8>,
}

impl<'a> UsbTargetName<'a> {
    /// What such a name begins with.
    pub const PREFIX: &'static str = "usb:";

    /// Parses a name; `None`: it is a path.
    pub fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix(Self::PREFIX)?;
        let (device, lun) = match rest.split_once('/') {
            None => (rest, None),
            Some((device, lun)) => (device, Some(lun.parse().ok()?)),
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (bus, ports) = device.split_once('-')?;
        (is_number(bus) && ports.split('.').all(is_number)).then_some(Self { device, lun })
    }
}

/// A device of the USB tree, disk or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbNode {
    /// The kernel's name: `usb2` is a root hub, `2-1` is the device in its first port.
    pub name: String,
    /// The hub that the device is plugged into; `None` for a root hub.
    pub parent: Option<String>,
    /// Bus number.
    pub bus: Fact<u32>,
    /// Device number on the bus.
    pub number: Fact<u32>,
    /// Speed of its link, in Mbit/s.
    pub link_mbit_per_s: Fact<f64>,
    /// The product name that the device reports.
    pub product: Fact<String>,
    /// The host controller's driver; `None` if the device is not a root hub.
    pub controller: Option<Fact<String>>,
    /// Number of ports; 0 if the device is not a hub.
    pub port_count: u32,
    /// Its interfaces.
    pub interfaces: Vec<UsbInterface>,
}

/// An interface of a device of the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbInterface {
    /// The kernel's name (`2-1:1.0`).
    pub name: String,
    /// Interface class, hexadecimal (`08` is mass storage).
    pub class: Fact<String>,
    /// The driver that is bound, if one is.
    pub driver: Option<String>,
}

/// All USB disks of a machine, and how they were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbReport {
    /// The disks, by bus and port.
    pub disks: Vec<UsbDisk>,
    /// The whole tree: each root hub followed by the devices plugged into it.
    pub tree: Vec<UsbNode>,
    /// The directories that were read, one sentence each.
    pub looked: Vec<String>,
    /// What could not be read and why, one sentence each.
    pub unseen: Vec<String>,
    /// Switches of `trueio` that are in progress or were interrupted, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<String>,
}

/// The result of one of the kernel's rules for a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsbAnswer {
    /// The rule permits UAS.
    Allows,
    /// The rule alone prevents UAS.
    Forbids,
    /// A fact that the rule needs could not be read.
    NotSeen,
    /// The rule does not concern this disk.
    DoesNotApply,
}

/// The rules by which the kernel chooses a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsbRuleName {
    /// Device and interface are authorized.
    Authorized,
    /// The device has an alternate setting for UAS.
    Offers,
    /// The module `uas` is loaded or can be loaded.
    Module,
    /// The kernel was built with UAS.
    KernelWithoutUas,
    /// The switch `support_uasp` of Synology's DSM.
    Synology,
    /// The kernel's guess which ASMedia chip a device has.
    Asmedia,
    /// The HIKSEMI MD202.
    Hiksemi,
    /// The drivers' own device tables.
    BuiltInTable,
    /// The user's quirk string.
    UserQuirk,
    /// The host controller supports scatter-gather.
    ScatterGather,
    /// The host controller supports streams.
    Streams,
    /// The device has enough streams.
    DeviceStreams,
    /// The speed of the link.
    Link,
}

impl UsbRuleName {
    /// Returns the name as it is printed and recorded.
    pub fn name(self) -> &'static str {
        match self {
            Self::Authorized => "authorized",
            Self::Offers => "offers",
            Self::Module => "module",
            Self::KernelWithoutUas => "kernel_without_uas",
            Self::Synology => "synology",
            Self::Asmedia => "asmedia",
            Self::Hiksemi => "hiksemi",
            Self::BuiltInTable => "built_in_table",
            Self::UserQuirk => "user_quirk",
            Self::ScatterGather => "scatter_gather",
            Self::Streams => "streams",
            Self::DeviceStreams => "device_streams",
            Self::Link => "link",
        }
    }
}

impl std::fmt::Display for UsbRuleName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// One rule of the kernel's decision, evaluated for a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbRule {
    /// Which rule.
    pub name: UsbRuleName,
    /// Its result for this disk.
    pub answer: UsbAnswer,
    /// The fact, in a sentence.
    pub fact: String,
    /// Where the fact was read.
    pub source: String,
}

/// Kinds of trouble that the kernel's log reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsbTroubleKind {
    /// A command was aborted.
    Abort,
    /// The driver's error handling reset the device.
    Reset,
    /// The driver's error handling could not reset the device.
    ResetFailed,
    /// A transfer of a command, its data or its status failed.
    TransferError,
    /// The device was reset on the bus.
    BusReset,
    /// The kernel gave the device up.
    Offlined,
    /// An I/O failed.
    IoError,
    /// A flush failed.
    FlushFailed,
    /// A command timed out.
    Timeout,
    /// The device was disconnected.
    Disconnect,
    /// The device did not answer, or its descriptors could not be read.
    LinkError,
    /// The link is slower than the device supports.
    SlowLink,
}

/// The count of one kind of trouble.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbTrouble {
    /// Which kind.
    pub kind: UsbTroubleKind,
    /// Number of log lines.
    pub count: u64,
    /// Time of the last line, in seconds since boot.
    pub last_s: Option<f64>,
    /// The last line, as the kernel wrote it.
    pub example: String,
}

/// One possible change, with the commands that make and undo it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbWay {
    /// Its benefit and its risk.
    pub what: String,
    /// Commands that make the change now.
    pub commands: Vec<String>,
    /// The entry for the kernel's quirk string, if one is needed.
    pub quirk: Option<String>,
    /// How to keep the change over a restart.
    pub persist: Vec<String>,
    /// How to undo it.
    pub undo: Vec<String>,
}

/// Why a USB disk runs on its present transport, and what can be changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsbExplanation {
    /// The disk.
    pub disk: UsbDisk,
    /// The kernel's rules, in the order of evaluation.
    pub rules: Vec<UsbRule>,
    /// The transport that the rules lead to; `None` if it depends on an unknown fact.
    pub expected: Option<UsbTransport>,
    /// The rule that decided; `None` if no rule forbids UAS.
    pub decided_by: Option<UsbRuleName>,
    /// The answer in a sentence, with the difference from the present transport.
    pub conclusion: String,
    /// Trouble that the kernel's log reports.
    pub troubles: Vec<UsbTrouble>,
    /// Known problems of this bridge and this link.
    pub notes: Vec<String>,
    /// Facts of the disk that its transport hides or falsifies.
    pub hidden: Vec<String>,
    /// Possible changes.
    pub ways: Vec<UsbWay>,
    /// What could not be read and why.
    pub unseen: Vec<String>,
}
