//! Types of filesystems, and those that accept `O_DIRECT` and buffer.
//!
//! Source: statfs(2), proc_pid_mountinfo(5); behaviour was measured on Linux 6.18 (tests/it/filesystems.rs).

use rustix::fs::FileType;
use std::fs::File;

pub(super) const BTRFS_MAGIC: u64 = 0x9123_683e;
const ECRYPTFS_MAGIC: u64 = 0xf15f;
const EXT_MAGIC: u64 = 0xef53;
const TMPFS_MAGIC: u64 = 0x0102_1994;
pub(super) const XFS_MAGIC: u64 = 0x5846_5342;
const ZFS_MAGIC: u64 = 0x2fc1_2fc1;

/// Names of filesystems by the number in `statfs.f_type`. Source: statfs(2), Linux
/// `include/uapi/linux/magic.h`.
const FILESYSTEM_NAMES: &[(u64, &str)] = &[
    (EXT_MAGIC, "ext4"),
    (XFS_MAGIC, "XFS"),
    (BTRFS_MAGIC, "btrfs"),
    (TMPFS_MAGIC, "tmpfs"),
    (ZFS_MAGIC, "ZFS"),
    (ECRYPTFS_MAGIC, "eCryptfs"),
    (0x8584_58f6, "ramfs"),
    (0x794c_7630, "overlayfs"),
    (0x6969, "NFS"),
    (0x6573_5546, "FUSE"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0xf2f5_2010, "F2FS"),
    (0xca45_1a4e, "bcachefs"),
    (0x4d44, "FAT"),
    (0x2011_bab0, "exFAT"),
    (0x7366_746e, "NTFS"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x4750_4653, "GPFS"),
    (0x9fa0, "procfs"),
    (0x6265_6572, "sysfs"),
    (0x958_458f6, "hugetlbfs"),
    (0x7371_7368, "squashfs"),
    (0xe0f5_e1e2, "EROFS"),
];

/// Whether the filesystem is ext2, ext3 or ext4.
pub(super) fn is_ext(statfs: &rustix::fs::StatFs) -> bool {
    magic_of(statfs) == EXT_MAGIC
}

/// Whether the filesystem is XFS.
pub(super) fn is_xfs(statfs: &rustix::fs::StatFs) -> bool {
    magic_of(statfs) == XFS_MAGIC
}

pub(super) fn is_btrfs(statfs: &rustix::fs::StatFs) -> bool {
    magic_of(statfs) == BTRFS_MAGIC
}

fn magic_of(statfs: &rustix::fs::StatFs) -> u64 {
    // The field is signed or not, and 32 or 64 bits wide, by architecture.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
    let magic = (statfs.f_type as u64) & 0xffff_ffff;
    magic
}

pub(super) struct Filesystem {
    pub(super) magic: Option<u64>,
    pub(super) name: String,
}

impl Filesystem {
    pub(super) fn of(file: &File, kind: FileType) -> Self {
        if kind == FileType::BlockDevice {
            return Self { magic: None, name: "the block device".to_owned() };
        }
        match rustix::fs::fstatfs(file) {
            Ok(statfs) => {
                let magic = magic_of(&statfs);
                let known = FILESYSTEM_NAMES.iter().find(|(number, _)| *number == magic);
                let name =
                    known.map_or_else(|| format!("a filesystem of type {magic:#x}"), |(_, name)| (*name).to_owned());
                Self { magic: Some(magic), name }
            }
            Err(_) => Self { magic: None, name: "a filesystem that statfs cannot name".to_owned() },
        }
    }

    /// Returns why direct transfers on this filesystem are expected to be buffered, where statx has no answer;
    /// [`None`] if it is not known to buffer.
    pub(super) fn buffers(&self, file: &File) -> Option<String> {
        match self.magic? {
            BTRFS_MAGIC => {
                let has_checksums =
                    !rustix::fs::ioctl_getflags(file).is_ok_and(|flags| flags.contains(rustix::fs::IFlags::NOCOW));
                has_checksums.then(|| {
                    "btrfs accepts O_DIRECT, uses the page cache for writes with checksums, and buffers misaligned transfers"
                        .to_owned()
                })
            }
            TMPFS_MAGIC => Some("the files of tmpfs are in the page cache; O_DIRECT has no effect".to_owned()),
            ECRYPTFS_MAGIC => Some("eCryptfs encrypts in the page cache".to_owned()),
            ZFS_MAGIC => {
                let version = std::fs::read_to_string("/sys/module/zfs/version").ok()?;
                is_zfs_before_2_3(&version).then(|| {
                    format!(
                        "OpenZFS {} accepts O_DIRECT and ignores it; OpenZFS supports it from 2.3 on",
                        version.trim()
                    )
                })
            }
            EXT_MAGIC => {
                let device = rustix::fs::fstat(file).ok()?.st_dev;
                let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
                has_journalled_data(&mounts, rustix::fs::major(device), rustix::fs::minor(device))
                    .then(|| "ext4 is mounted with data=journal and buffers direct transfers".to_owned())
            }
            _ => None,
        }
    }
}

/// Returns whether an OpenZFS version ("2.2.7-1") is older than 2.3, the first with direct I/O. Returns `false` for
/// unknown text.
fn is_zfs_before_2_3(version: &str) -> bool {
    let mut numbers = version.trim().split(['.', '-']).map(|part| part.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < (2, 3),
        _ => false,
    }
}

/// Returns whether a mount of device `major:minor` in `mountinfo` has the option `data=journal`. In each line the third
/// field is the device, and the last one contains the options of the filesystem.
fn has_journalled_data(mountinfo: &str, major: u32, minor: u32) -> bool {
    let device = format!("{major}:{minor}");
    mountinfo.lines().any(|line| {
        let mut fields = line.split(' ');
        fields.nth(2) == Some(&device)
            && fields.next_back().is_some_and(|options| options.split(',').any(|option| option == "data=journal"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zfs_is_direct_from_version_2_3_and_where_its_version_is_unknown() {
        assert!(is_zfs_before_2_3("2.2.7-1ubuntu1\n"));
        assert!(is_zfs_before_2_3("0.8.6-1"));
        assert!(!is_zfs_before_2_3("2.3.0-1"));
        assert!(!is_zfs_before_2_3("2.10.1"));
        assert!(!is_zfs_before_2_3("unknown"));
        assert!(!is_zfs_before_2_3(""));
    }

    #[test]
    fn journalled_data_is_found_for_the_right_device_only() {
        let mounts = "36 25 7:3 / /mnt rw,relatime shared:1 - ext4 /dev/loop3 rw,data=journal\n\
                      37 25 7:4 / /srv rw - ext4 /dev/loop4 rw,data=ordered\n";
        assert!(has_journalled_data(mounts, 7, 3));
        assert!(!has_journalled_data(mounts, 7, 4));
        assert!(!has_journalled_data(mounts, 7, 5));
        assert!(!has_journalled_data("", 7, 3));
    }
}
