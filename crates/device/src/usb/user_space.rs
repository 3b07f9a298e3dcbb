//! What a driver of UAS in user space must keep to on a device: the flags that the kernel's driver would use.
//!
//! The flags are those of the installed `uas.ko` and of the copy of its table ([`super::unusual_uas`]) together, with the
//! kernel's rules for chips that share an ID, and with the user's entry in `usb-storage.quirks`, which replaces them as in the
//! kernel.
//!
//! The user's flag `u` does not bar the device: on a kernel that lacks the module `uas`, it is the way to BOT.

use super::bridges;
use super::decision::{Rules, numbers, quirk_string, rules_of_thumb};
use super::modules::{Driver, built_in_flags};
use super::quirks::{self, IGNORE_DEVICE, IGNORE_UAS};
use super::unusual_uas;
use crate::system::System;
use trueio_model::{UsbAnswer, UsbDisk};

/// What holds for a device that is driven with UAS in user space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverFlags {
    /// The flags, `US_FL_…`.
    pub flags: u64,
    /// Why the kernel does not use UAS on it; `None`: it does.
    pub barred: Option<String>,
    /// What the user should know of it, one sentence each.
    pub notes: Vec<String>,
}

/// Returns the flags of a disk, and whether the kernel bars it from UAS.
pub fn driver_flags(system: &System, disk: &UsbDisk) -> DriverFlags {
    let numbers = numbers(system, disk);
    let device = &numbers.matched;
    let id = format!("{:04x}:{:04x}", device.vendor, device.product);
    let mut rules = Rules::default();
    let (thumb, hiksemi) = rules_of_thumb(&mut rules, disk, &numbers);
    let of_copy = built_in_flags(&unusual_uas::TABLE, device);
    let installed = Driver::find(system, "uas").table;
    let of_module = installed.value.as_ref().map_or(0, |table| built_in_flags(table, device));
    let built_in = of_copy | of_module | thumb | hiksemi;
    let quirks = quirk_string(system).value.unwrap_or_default();
    let entry = quirks::entry_letters(&quirks, device.vendor, device.product);
    let flags = quirks::applied(built_in, entry.as_deref());
    let mut notes: Vec<String> = bridges::notes_of_reports(device.vendor, device.product).map(str::to_owned).collect();
    let barred = match &entry {
        Some(letters) if flags & IGNORE_DEVICE != 0 => {
            Some(format!("the quirk string has `{id}:{letters}`, whose flag i keeps every driver from it"))
        }
        Some(letters) if flags & IGNORE_UAS != 0 => {
            notes.push(format!(
                "the quirk string has `{id}:{letters}`, whose flag u keeps the kernel from UAS on this device"
            ));
            // The entry hides a rule of the kernel's own that bars it as well.
            barred_by(&rules, of_copy, of_module, &id, &installed.source)
        }
        // The entry has removed the flag.
        Some(_) => None,
        None => barred_by(&rules, of_copy, of_module, &id, &installed.source),
    };
    DriverFlags { flags, barred, notes }
}

fn barred_by(rules: &Rules, of_copy: u64, of_module: u64, id: &str, module: &str) -> Option<String> {
    if let Some(rule) = rules.found.iter().find(|rule| rule.answer == UsbAnswer::Forbids) {
        return Some(format!("Linux does not use UAS on {id}: {}", rule.fact));
    }
    let source = match (of_module & IGNORE_UAS != 0, of_copy & IGNORE_UAS != 0) {
        (true, _) => module,
        (false, true) => unusual_uas::SOURCE,
        (false, false) => return None,
    };
    Some(format!("Linux does not use UAS on {id}, because it is known to fail ({source})"))
}
