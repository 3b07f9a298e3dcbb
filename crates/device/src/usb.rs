//! USB disks: their properties, the transports they offer, and why the kernel chose the present one.
//!
//! Everything is read through [`crate::System`], so recorded machines are supported, too. Nothing is written and no
//! device is opened: no privileges are needed, and facts that only root can read are listed as unseen.
//!
//! Cannot see: how a disk is attached inside its enclosure; the cable, except by the negotiated speed; the effect of a
//! hub on the signal.

mod bridges;
mod decision;
mod descriptors;
mod disks;
mod explain;
mod kernel_log;
mod module_build;
mod modules;
mod others;
pub mod quirks;
mod unusual_uas;
mod user_space;

pub use decision::{Decision, FlagsInForce, QUIRKS, decide, quirk_string};
pub use descriptors::{Configuration, DescriptorError, Descriptors, Setting, parse_can_superspeed, parse_descriptors};
pub use disks::{UasInterface, uas_interface, unauthorized_disks, usb_disk, usb_facts_of_block, usb_report};
pub use explain::{PERSIST_FILE, explain};
pub use kernel_log::{LogLine, kernel_log, parse_log, troubles};
pub use module_build::{ModuleBuild, compare_builds, parse_module_build};
pub use modules::{Driver, MatchedDevice, TableEntry, TableError, built_in_flags, parse_table};
pub use others::{
    FREEBSD_COMMAND, ForeignDisk, MACOS_COMMAND, WINDOWS_COMMAND, parse_freebsd, parse_macos, parse_windows,
    switch_refusal,
};
pub use user_space::{DriverFlags, driver_flags};
