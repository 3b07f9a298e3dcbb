//! Finds the numbers of block devices: in sysfs, by path, and of mounted filesystems.

use crate::identity::{DeviceNumber, parse_number};
use crate::mounts::Mount;
use crate::system::System;
use std::path::Path;
use trueio_model::FilesystemKind;

/// Reads the device number in `<directory>/dev`.
pub(crate) fn device_number_at(system: &System, directory: &str) -> Option<DeviceNumber> {
    parse_number(&system.read(&format!("{directory}/dev")).ok()?)
}

/// Returns the block devices of a mounted filesystem; empty if it has none.
///
/// btrfs lists its devices in sysfs. Other filesystems have the device number in mountinfo, or device paths as the
/// mount's source (bcachefs: several, separated by colons).
pub(crate) fn devices_of(system: &System, mount: &Mount) -> Vec<DeviceNumber> {
    let named: Vec<DeviceNumber> = if mount.device.0 != 0 {
        vec![mount.device]
    } else if mount.source.starts_with('/') {
        mount.source.split(':').filter_map(|path| device_number_of(system, path)).collect()
    } else {
        Vec::new()
    };
    if mount.kind != FilesystemKind::Btrfs {
        return named;
    }
    for filesystem in system.list("/sys/fs/btrfs") {
        let members: Vec<DeviceNumber> = btrfs_devices(system, &filesystem);
        if members.iter().any(|member| named.contains(member)) {
            return members;
        }
    }
    named
}

/// Returns the devices of a mounted btrfs, by its UUID.
pub(crate) fn btrfs_devices(system: &System, uuid: &str) -> Vec<DeviceNumber> {
    let directory = format!("/sys/fs/btrfs/{uuid}/devices");
    system.list(&directory).iter().filter_map(|name| device_number_at(system, &format!("{directory}/{name}"))).collect()
}

/// Returns the device number of a path such as `/dev/mapper/home`. If the node does not exist (a container has few),
/// finds the kernel's name in sysfs.
pub(crate) fn device_number_of(system: &System, path: &str) -> Option<DeviceNumber> {
    if let Ok(identity) = system.identify(Path::new(path))
        && identity.device != (0, 0)
    {
        return Some(identity.device);
    }
    let name = path.strip_prefix("/dev/")?;
    if let Some(mapped) = name.strip_prefix("mapper/") {
        return system.list("/sys/block").iter().find_map(|disk| {
            let is_it = system.read(&format!("/sys/block/{disk}/dm/name")).is_ok_and(|found| found == mapped);
            if is_it { device_number_at(system, &format!("/sys/block/{disk}")) } else { None }
        });
    }
    // The kernel writes a slash in a name (`cciss/c0d0`) as an exclamation mark.
    let name = name.replace('/', "!");
    parse_number(&system.read(&format!("/sys/class/block/{name}/dev")).ok()?)
}
