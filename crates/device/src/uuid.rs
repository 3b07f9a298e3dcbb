//! The UUID of a filesystem, which stays the same when the device gets another name.
//!
//! Sources, in this order: the kernel (`FS_IOC_GETFSUUID`, Linux 6.9, needs no privileges); sysfs, where btrfs has a
//! directory named by its UUID; udev's links in `/dev/disk/by-uuid`; on the running machine the superblock, for which
//! the device must be readable.
//!
//! Cannot see: whether the filesystem was copied to another disk with its UUID. FAT has no UUID but a short serial
//! number, which only udev's link shows.
//!
//! Source: Linux `include/uapi/linux/fs.h` (`struct fsuuid2`); util-linux `libblkid/src/superblocks/`
//! (offsets of UUIDs), compared with `mkfs.ext4` by the tests below.

use crate::identity::{DeviceNumber, PathIdentity};
use crate::mounts::Mount;
use crate::numbers::{btrfs_devices, devices_of};
use crate::signature::signatures_in;
use crate::system::System;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use trueio_model::{Fact, FilesystemKind};

/// Returns the UUID of the filesystem of `identity`.
pub(crate) fn filesystem_uuid(system: &System, identity: &PathIdentity, mount: &Mount) -> Fact<String> {
    if system.is_live()
        && let Some(uuid) = ask_kernel(&identity.path).or_else(|| ask_kernel(&mount.mount_point))
    {
        return Fact::known(uuid, "ioctl FS_IOC_GETFSUUID");
    }
    let devices = devices_of(system, mount);
    if mount.kind == FilesystemKind::Btrfs {
        let found = system.list("/sys/fs/btrfs").into_iter().find(|name| {
            let members = btrfs_devices(system, name);
            members.iter().any(|member| devices.contains(member))
        });
        if let Some(uuid) = found {
            return Fact::known(uuid.clone(), format!("/sys/fs/btrfs/{uuid}"));
        }
    }
    let Some(&device) = devices.first() else {
        return Fact::unknown(format!("the kernel does not report it, and {} has no readable device", mount.kind));
    };
    const LINKS: &str = "/dev/disk/by-uuid";
    for name in system.list(LINKS) {
        let link = format!("{LINKS}/{name}");
        if system.identify(Path::new(&link)).is_ok_and(|found| found.device == device) {
            return Fact::known(name, link);
        }
    }
    superblock(system, device)
}

fn superblock(system: &System, (major, minor): DeviceNumber) -> Fact<String> {
    if !system.is_live() {
        return Fact::unknown("no link in /dev/disk/by-uuid, and a recorded machine has no superblock to read");
    }
    let path = format!("/dev/block/{major}:{minor}");
    match File::open(&path).and_then(|mut device| uuid_in(&mut device)) {
        Ok(Some(uuid)) => Fact::known(uuid, format!("superblock of {path}")),
        Ok(None) => Fact::unknown(format!("{path} has no known superblock with a UUID")),
        Err(error) => Fact::unknown(format!("no link in /dev/disk/by-uuid, and {path} could not be read ({error})")),
    }
}

/// Reads the UUID from the kernel through an open file or directory; `None` if it does not provide it.
fn ask_kernel(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    /// `struct fsuuid2`.
    #[repr(C)]
    #[derive(Default)]
    struct FsUuid {
        length: u8,
        bytes: [u8; 16],
    }
    const GET_FS_UUID: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<FsUuid>(0x15, 0);
    // SAFETY: the request fills exactly one `struct fsuuid2`, whose layout `FsUuid` has: 17 bytes,
    // which is also the size in the request's number.
    let getter = unsafe { rustix::ioctl::Getter::<GET_FS_UUID, FsUuid>::new() };
    // SAFETY: the descriptor is open, and a filesystem without this request returns ENOTTY.
    let answer = unsafe { rustix::ioctl::ioctl(&file, getter) }.ok()?;
    // Shorter values are not UUIDs; each filesystem has its own format for them.
    (answer.length == 16).then(|| text(&answer.bytes)).flatten()
}

/// Returns the UUID in the superblock of a device or image; `None` without a known superblock.
fn uuid_in(device: &mut (impl Read + Seek)) -> io::Result<Option<String>> {
    const PLACES: [(&str, u64); 6] =
        [("ext2", 0x468), ("ext3", 0x468), ("ext4", 0x468), ("xfs", 32), ("btrfs", 0x1_0020), ("f2fs", 0x46c)];
    let found = signatures_in(device)?;
    let Some((_, offset)) = PLACES.iter().find(|(kind, _)| found.iter().any(|mark| mark.kind == *kind)) else {
        return Ok(None);
    };
    let mut bytes = [0; 16];
    device.seek(SeekFrom::Start(*offset))?;
    device.read_exact(&mut bytes)?;
    Ok(text(&bytes))
}

/// Formats a UUID as 8-4-4-4-12 hexadecimal digits; `None` for zeros.
fn text(bytes: &[u8; 16]) -> Option<String> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    (*bytes != [0; 16]).then(|| parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::process::Command;

    #[test]
    fn the_uuid_set_by_mkfs_is_read_from_the_superblock() {
        let image = tempfile::NamedTempFile::new().expect("a file");
        image.as_file().set_len(8 << 20).expect("a sparse file");
        let wanted = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        let made = Command::new("mkfs.ext4").args(["-q", "-F", "-U", wanted]).arg(image.path()).status();
        if !made.is_ok_and(|status| status.success()) {
            return eprintln!("skipped: mkfs.ext4 does not run here");
        }
        let mut device = File::open(image.path()).expect("the image");
        assert_eq!(uuid_in(&mut device).expect("it can be read").as_deref(), Some(wanted));
    }

    #[test]
    fn a_device_without_a_superblock_or_with_zeros_for_a_uuid_has_none() {
        let mut image = vec![0u8; 1 << 20];
        assert_eq!(uuid_in(&mut Cursor::new(&image)).expect("it can be read"), None);
        image[..4].copy_from_slice(b"XFSB");
        assert_eq!(uuid_in(&mut Cursor::new(&image)).expect("it can be read"), None);
        image[32] = 0xab;
        let found = uuid_in(&mut Cursor::new(&image)).expect("it can be read");
        assert_eq!(found.as_deref(), Some("ab000000-0000-0000-0000-000000000000"));
    }

    #[test]
    fn the_kernel_and_the_superblock_agree_where_both_answer() {
        let system = System::live();
        let mounts = crate::mounts(&system).expect("mounts");
        for mount in mounts
            .iter()
            .filter(|mount| matches!(mount.kind, FilesystemKind::Ext4 | FilesystemKind::Xfs | FilesystemKind::Btrfs))
        {
            let (Some(reported), Some(&device)) = (ask_kernel(&mount.mount_point), devices_of(&system, mount).first())
            else {
                continue;
            };
            if let Some(read) = superblock(&system, device).value {
                assert_eq!(reported, read, "{}", mount.mount_point.display());
            }
        }
    }
}
