//! The mounts in this process's namespace, and the mount of a path.
//!
//! Source: proc_pid_mountinfo(5), Linux `Documentation/filesystems/proc.rst` 3.5. Spaces, tabs, newlines and backslashes
//! are written as octal escapes (`\040`).

use crate::error::DeviceError;
use crate::identity::{DeviceNumber, PathIdentity, parse_number};
use crate::system::System;
use std::path::{Path, PathBuf};
use trueio_model::FilesystemKind;

/// One line of mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The mount ID, equal to `stx_mnt_id` of statx(2).
    pub id: u64,
    /// The filesystem's device; major 0 if it has none, or several.
    pub device: (u32, u32),
    /// The mounted part of the filesystem (`/` unless it is a bind mount or a subvolume).
    pub root: String,
    /// The mount point.
    pub mount_point: PathBuf,
    /// The filesystem's type (`ext4`).
    pub kind: FilesystemKind,
    /// The source (`/dev/vda1`, `tmpfs`, `server:/export`).
    pub source: String,
    /// Options of the mount.
    pub mount_options: String,
    /// Options of the filesystem.
    pub super_options: String,
    /// The upper directory of an overlay, in the mount namespace of the process that mounted it.
    pub(crate) upper_directory: Option<PathBuf>,
}

impl Mount {
    /// Returns both kinds of options as one comma-separated line, without duplicates.
    pub fn options(&self) -> String {
        let mut all: Vec<&str> = Vec::new();
        for option in self.mount_options.split(',').chain(self.super_options.split(',')) {
            if !option.is_empty() && !all.contains(&option) {
                all.push(option);
            }
        }
        all.join(",")
    }

    /// Whether the source may be the path of a device or a file that the filesystem is on: the filesystem has no device number.
    pub(crate) fn may_have_source(&self) -> bool {
        self.device.0 == 0 && self.source.starts_with('/')
    }

    /// Returns the value of a `name=value` option of the filesystem.
    pub(crate) fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Returns the mounts in this process's namespace, in the kernel's order (later ones cover earlier ones).
///
/// # Errors
/// `/proc/self/mountinfo` cannot be read.
pub fn mounts(system: &System) -> Result<Vec<Mount>, DeviceError> {
    let path = "/proc/self/mountinfo";
    let text = system.read(path).map_err(|source| DeviceError::Kernel { path: path.to_owned(), source })?;
    Ok(text.lines().filter_map(parse_line).collect())
}

/// Returns the names of the filesystems that are on no disk (`tmpfs`, `nfs4`, `fuse`): their sources are texts. Users without privileges can
/// mount some of them, with any text.
pub(crate) fn kinds_without_disk(system: &System) -> Vec<String> {
    let text = system.read("/proc/filesystems").unwrap_or_default();
    text.lines().filter_map(|line| Some(line.strip_prefix("nodev")?.trim().to_owned())).collect()
}

/// Parses one line; `None` if it is invalid.
///
/// ```text
/// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
/// (1)(2)(3)   (4)   (5)      (6)     (7)   (8) (9)   (10)         (11)
/// ```
pub(crate) fn parse_line(line: &str) -> Option<Mount> {
    // A field that is only a hyphen (8) ends the optional fields (7). No mount point equals it, because mount points
    // begin with a slash.
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ');
    let id = front.next()?.parse().ok()?;
    let _parent = front.next()?;
    let device = parse_number(front.next()?)?;
    let root = unescape(front.next()?);
    let mount_point = PathBuf::from(unescape(front.next()?));
    let mount_options = front.next()?.to_owned();
    let mut back = back.split(' ');
    let kind = FilesystemKind::from(back.next()?);
    let source = unescape(back.next()?);
    let super_options = back.next().unwrap_or("");
    // Commas within a value are escaped.
    let upper_directory = super_options.split(',').find_map(|option| option.strip_prefix("upperdir="));
    let upper_directory = upper_directory.map(|escaped| PathBuf::from(unescape(escaped)));
    let super_options = unescape(super_options);
    Some(Mount { id, device, root, mount_point, kind, source, mount_options, super_options, upper_directory })
}

/// Decodes octal escapes such as `\040`.
pub(crate) fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let octal = bytes.get(i + 1..i + 4).filter(|digits| bytes[i] == b'\\' && is_octal_byte(digits));
        if let Some(digits) = octal {
            out.push(digits.iter().fold(0, |value, digit| value * 8 + (digit - b'0')));
            i += 4;
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn is_octal_byte(digits: &[u8]) -> bool {
    digits[0] <= b'3' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
}

/// Returns the mount of a path.
///
/// Uses `stx_mnt_id` if the kernel provides it. Otherwise uses, of the mounts of the path's filesystem, the one with the
/// longest mount point, and the last of equals. If no mount has the path's device number (each btrfs subvolume has its
/// own), all mounts are candidates.
pub(crate) fn mount_of<'a>(mounts: &'a [Mount], identity: &PathIdentity) -> Option<&'a Mount> {
    let by_id = identity.mount_id.and_then(|id| mounts.iter().find(|mount| mount.id == id));
    by_id.or_else(|| longest(mounts, &identity.path, Some(identity.filesystem))).or_else(|| {
        // Only with major 0 may stat and mountinfo have different device numbers.
        longest(mounts, &identity.path, None)
    })
}

fn longest<'a>(mounts: &'a [Mount], path: &Path, device: Option<DeviceNumber>) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| device.is_none_or(|device| mount.device == device) && path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.as_os_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::TargetKind;

    fn identity(path: &str, filesystem: DeviceNumber, mount_id: Option<u64>) -> PathIdentity {
        let kind = Some(TargetKind::File);
        PathIdentity { path: path.into(), kind, filesystem, device: (0, 0), size_bytes: 0, mount_id }
    }

    fn parse(text: &str) -> Vec<Mount> {
        text.lines().map(|line| parse_line(line).expect(line)).collect()
    }

    #[test]
    fn a_line_is_read_with_its_escapes_and_any_number_of_optional_fields() {
        let lines = parse(
            "36 35 98:0 / /mnt/my\\040disk rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,errors=continue\n\
             37 35 0:40 /@home /home rw - btrfs /dev/disk\\134x rw,subvol=/@home",
        );
        assert_eq!(lines[0].mount_point, PathBuf::from("/mnt/my disk"));
        assert_eq!(lines[0].options(), "rw,noatime,errors=continue");
        assert_eq!((lines[1].root.as_str(), lines[1].source.as_str()), ("/@home", "/dev/disk\\x"));
        assert_eq!(lines[1].super_option("subvol"), Some("/@home"));
        assert_eq!(parse_line("not a mount"), None);
    }

    #[test]
    fn an_escape_that_is_none_is_left_alone() {
        assert_eq!(unescape("a\\9b\\04"), "a\\9b\\04");
        assert_eq!(unescape("\\303\\251"), "é");
    }

    #[test]
    fn the_mount_of_a_path_is_the_kernels_word_then_the_longest_then_the_latest() {
        let all = parse(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
             2 1 8:2 / /home rw - ext4 /dev/sda2 rw\n\
             3 2 8:3 / /home rw - ext4 /dev/sda3 rw\n\
             4 1 0:50 /@ /data rw - btrfs /dev/sdb rw",
        );
        let id = |found: Option<&Mount>| found.map(|mount| mount.id);
        assert_eq!(id(mount_of(&all, &identity("/home/a", (8, 2), Some(2)))), Some(2));
        assert_eq!(id(mount_of(&all, &identity("/home/a", (8, 3), None))), Some(3), "what covers is found by device");
        assert_eq!(id(mount_of(&all, &identity("/homer", (8, 1), None))), Some(1), "a prefix ends at a slash");
        assert_eq!(id(mount_of(&all, &identity("/data/x", (0, 77), None))), Some(4), "a subvolume has its own number");
    }
}
