//! The identity of the device of a target, independent of its name.
//!
//! A kernel name or a path can change: after a reboot `sda` may be another disk. Three properties stay the same, in
//! this order of precision: the world-wide identifier (of a namespace, if a controller has several), model and serial
//! number, and the UUID of the filesystem. Two identities are compared by the most precise property that both have. If
//! it differs, they are different, even if a less precise one is equal: a cloned disk has the same filesystem UUID, two
//! namespaces of one controller have the same serial number.
//!
//! A target on several disks (RAID, btrfs) has all of theirs, sorted; if one of the disks lacks it,
//! the target has none of that kind.
//!
//! Cannot see: whether a manufacturer or a hypervisor assigned one number to several devices. Obvious placeholders (one
//! character repeated, `0123456789ABCDEF`, a word without a digit, as hypervisors use) are ignored; all other values are
//! trusted. A disk in a USB enclosure may report the serial number of the bridge.

use crate::TargetFacts;
use std::fmt;

/// The properties that identify a device, most precise first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdentityKind {
    /// The world-wide identifier.
    Wwid,
    /// Model and serial number.
    Serial,
    /// The filesystem's UUID.
    FilesystemUuid,
}

impl IdentityKind {
    /// All of them, most precise first.
    pub const ALL: [IdentityKind; 3] = [IdentityKind::Wwid, IdentityKind::Serial, IdentityKind::FilesystemUuid];

    /// The name in files and databases.
    pub fn name(self) -> &'static str {
        match self {
            IdentityKind::Wwid => "wwid",
            IdentityKind::Serial => "serial",
            IdentityKind::FilesystemUuid => "filesystem_uuid",
        }
    }
}

impl fmt::Display for IdentityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdentityKind::Wwid => "world-wide identifier",
            IdentityKind::Serial => "serial number",
            IdentityKind::FilesystemUuid => "filesystem UUID",
        })
    }
}

/// The properties that distinguish a device from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// The disks' world-wide identifiers, sorted and joined by ` + `.
    pub wwid: Option<String>,
    /// The disks' models and serial numbers, `model / serial`, sorted and joined by ` + `.
    pub serial: Option<String>,
    /// The filesystem's UUID.
    pub filesystem_uuid: Option<String>,
}

/// Whether two identities are one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sameness {
    /// They are equal in this property, and no more precise one is known of both.
    Same(IdentityKind),
    /// They differ in this property.
    Different(IdentityKind),
    /// No property is known of both.
    NotKnown,
}

impl DeviceIdentity {
    /// Returns the identity of the device of a target.
    pub fn of(target: &TargetFacts) -> Self {
        let disks = &target.disks;
        let all = |one: &dyn Fn(&crate::DiskFacts) -> Option<String>| {
            let mut found: Vec<String> = disks.iter().map(one).collect::<Option<_>>()?;
            found.sort();
            found.dedup();
            (!found.is_empty()).then(|| found.join(" + "))
        };
        Self {
            wwid: all(&|disk| real(disk.wwid.value.as_deref()).map(str::to_owned)),
            serial: all(&|disk| {
                let serial = real(disk.serial.value.as_deref())?;
                Some(format!("{} / {serial}", disk.model.value.as_deref().unwrap_or("no model")))
            }),
            filesystem_uuid: target
                .filesystem
                .as_ref()
                .and_then(|filesystem| filesystem.uuid.value.as_deref())
                .filter(|uuid| !uuid.trim().is_empty())
                .map(str::to_ascii_lowercase),
        }
    }

    /// The value of one kind.
    pub fn get(&self, kind: IdentityKind) -> Option<&str> {
        match kind {
            IdentityKind::Wwid => self.wwid.as_deref(),
            IdentityKind::Serial => self.serial.as_deref(),
            IdentityKind::FilesystemUuid => self.filesystem_uuid.as_deref(),
        }
    }

    /// Returns true if no property is known.
    pub fn is_empty(&self) -> bool {
        IdentityKind::ALL.iter().all(|&kind| self.get(kind).is_none())
    }

    /// Returns whether `other` is this device.
    pub fn compare(&self, other: &Self) -> Sameness {
        for kind in IdentityKind::ALL {
            if let (Some(a), Some(b)) = (self.get(kind), other.get(kind)) {
                return if a == b { Sameness::Same(kind) } else { Sameness::Different(kind) };
            }
        }
        Sameness::NotKnown
    }
}

/// Returns the identifier, unless it is a placeholder.
fn real(text: Option<&str>) -> Option<&str> {
    let text = text?.trim();
    // USB bridges are sold by the thousand with these. The part after a prefix such as `naa.` counts.
    let digits: String = text.rsplit('.').next().unwrap_or(text).chars().filter(char::is_ascii_alphanumeric).collect();
    let is_repeated = digits.chars().all(|c| digits.starts_with(c));
    let is_counting = "0123456789ABCDEF0123456789ABCDEF".contains(&digits.to_ascii_uppercase());
    let has_digit = digits.contains(|c: char| c.is_ascii_digit());
    (has_digit && !is_repeated && !(is_counting && digits.len() >= 6)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(wwid: Option<&str>, serial: Option<&str>, uuid: Option<&str>) -> DeviceIdentity {
        DeviceIdentity {
            wwid: wwid.map(Into::into),
            serial: serial.map(Into::into),
            filesystem_uuid: uuid.map(Into::into),
        }
    }

    #[test]
    fn the_most_precise_thing_that_both_have_decides() {
        let full = identity(Some("w"), Some("s"), Some("u"));
        assert_eq!(full.compare(&full), Sameness::Same(IdentityKind::Wwid));
        let other_namespace = identity(Some("w2"), Some("s"), Some("u"));
        assert_eq!(full.compare(&other_namespace), Sameness::Different(IdentityKind::Wwid));
        let old_record = identity(None, Some("s"), None);
        assert_eq!(full.compare(&old_record), Sameness::Same(IdentityKind::Serial));
        let clone = identity(None, Some("s2"), Some("u"));
        assert_eq!(old_record.compare(&clone), Sameness::Different(IdentityKind::Serial));
        assert_eq!(full.compare(&clone), Sameness::Different(IdentityKind::Serial));
        let unprivileged = identity(None, None, Some("u"));
        assert_eq!(full.compare(&unprivileged), Sameness::Same(IdentityKind::FilesystemUuid));
        assert_eq!(old_record.compare(&unprivileged), Sameness::NotKnown);
        assert_eq!(identity(None, None, None).compare(&full), Sameness::NotKnown);
        assert!(identity(None, None, None).is_empty() && !unprivileged.is_empty());
    }

    #[test]
    fn a_placeholder_is_no_identifier() {
        for placeholder in
            ["", " ", "0", "00000000", "0123456789ABCDEF", "123456789abc", "naa.0000000000000000", "----", "overlayblk"]
        {
            assert_eq!(real(Some(placeholder)), None, "{placeholder}");
        }
        for real_one in ["S5GXNX0R000000", "12345", "naa.5000c500a1b2c3d4", " WD-123 ", "disk0"] {
            assert_eq!(real(Some(real_one)), Some(real_one.trim()), "{real_one}");
        }
    }
}
