//! The identity of a path, from `stat`: its kind, and the device that it belongs to.

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use trueio_model::TargetKind;

/// Major and minor number of a device.
pub(crate) type DeviceNumber = (u32, u32);

/// The result of `stat` for a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathIdentity {
    /// The canonical path, without symbolic links.
    pub(crate) path: PathBuf,
    /// `None`: a pipe, a socket …
    pub(crate) kind: Option<TargetKind>,
    /// The device number of its filesystem. Anonymous (major 0) if the filesystem has no device or several: in btrfs,
    /// each subvolume has one.
    pub(crate) filesystem: DeviceNumber,
    /// The device number of a device; (0, 0) for anything else.
    pub(crate) device: DeviceNumber,
    /// Size of a file, in bytes; 0 for a device.
    pub(crate) size_bytes: u64,
    /// The mount of the path: the first column of mountinfo. Linux 5.8.
    pub(crate) mount_id: Option<u64>,
}

/// Calls `statx` of the running kernel. Numbers are those of what the path itself opens: the text of a link in procfs
/// (`/proc/self/fd/3`) may be the path of another file by now.
pub(crate) fn live(path: &Path) -> io::Result<PathIdentity> {
    let asked = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let stat = rustix::fs::statx(CWD, path, AtFlags::empty(), asked)?;
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let kind = match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
        FileType::Directory => Some(TargetKind::Directory),
        FileType::RegularFile => Some(TargetKind::File),
        FileType::BlockDevice => Some(TargetKind::BlockDevice),
        FileType::CharacterDevice => Some(TargetKind::CharacterDevice),
        _ => None,
    };
    let has_mount_id = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    Ok(PathIdentity {
        path,
        kind,
        filesystem: (stat.stx_dev_major, stat.stx_dev_minor),
        device: (stat.stx_rdev_major, stat.stx_rdev_minor),
        size_bytes: stat.stx_size,
        mount_id: has_mount_id.then_some(stat.stx_mnt_id),
    })
}

/// Parses the file `paths` of a recorded machine. The error is the invalid line.
pub(crate) fn parse_recorded(text: &str) -> Result<BTreeMap<PathBuf, PathIdentity>, String> {
    let mut paths = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let identity = parse_line(line).ok_or_else(|| line.to_owned())?;
        paths.insert(identity.path.clone(), identity);
    }
    Ok(paths)
}

fn parse_line(line: &str) -> Option<PathIdentity> {
    let mut columns = line.splitn(5, ' ').map(str::trim);
    let kind = match columns.next()? {
        "file" => TargetKind::File,
        "directory" => TargetKind::Directory,
        "block" => TargetKind::BlockDevice,
        "character" => TargetKind::CharacterDevice,
        _ => return None,
    };
    let filesystem = parse_number(columns.next()?)?;
    let device = match columns.next()? {
        "-" => (0, 0),
        text => parse_number(text)?,
    };
    let size_bytes = columns.next()?.parse().ok()?;
    let path = PathBuf::from(columns.next()?);
    Some(PathIdentity { path, kind: Some(kind), filesystem, device, size_bytes, mount_id: None })
}

/// Parses `254:0`.
pub(crate) fn parse_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
