//! What `stat` says of a path: what it is, and which device it belongs to.

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use trueio_model::TargetKind;

/// Major and minor number of a device.
pub(crate) type DeviceNumber = (u32, u32);

/// What `stat` says of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathIdentity {
    /// The path with every link followed.
    pub(crate) path: PathBuf,
    /// `None`: a pipe, a socket …
    pub(crate) kind: Option<TargetKind>,
    /// The filesystem it lies on. Anonymous (major 0) on filesystems that have no device of their
    /// own or several: btrfs gives each subvolume one.
    pub(crate) filesystem: DeviceNumber,
    /// The device that it names; (0, 0) unless it is one.
    pub(crate) device: DeviceNumber,
    /// Size of a file, in bytes; 0 of a device.
    pub(crate) size_bytes: u64,
    /// The mount it was reached through: the first column of mountinfo. Linux 5.8.
    pub(crate) mount_id: Option<u64>,
}

/// Asks the running kernel.
pub(crate) fn live(path: &Path) -> io::Result<PathIdentity> {
    let path = std::fs::canonicalize(path)?;
    let asked = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let stat = rustix::fs::statx(CWD, &path, AtFlags::empty(), asked)?;
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

/// Reads the `paths` of a recorded machine. The error is the line that was not understood.
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

/// Reads `254:0`.
pub(crate) fn parse_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
