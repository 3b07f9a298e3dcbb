//! What is already on a device: marks of filesystems, RAID, LVM, encryption, swap and partitions.
//!
//! A device that carries one may hold somebody's data, so it is not written unless the mark is
//! named. The table is short on purpose: a superblock that no Linux tool of the last twenty years
//! makes is not in it. It reads a few kilobytes and opens nothing for writing.
//!
//! Cannot see: data without a mark (a raw database volume, an encrypted volume with a detached
//! header), and marks that were moved by an offset.
//!
//! Source: magic numbers and offsets of util-linux, `libblkid/src/superblocks/`, checked here
//! against `mkfs.ext4`, `mkfs.xfs`, `mkfs.btrfs` and `mkswap` by this crate's tests.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A mark found on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// `ext2/3/4`, `xfs`, `LUKS`, `GPT` …
    pub kind: &'static str,
    /// Where it stands, in bytes from the device's start.
    pub offset: u64,
}

/// Where a magic number stands.
enum Place {
    /// So many bytes from the start.
    Start(u64),
    /// So many bytes before the end.
    End(u64),
    /// So many bytes from the start, and the 64 KiB at the end rounded as md 0.90 does.
    MdOldSuperblock,
    /// md 1.0: at least 8 KiB before the end, on a multiple of 4 KiB.
    MdEndSuperblock,
}

struct Row(&'static str, Place, &'static [u8]);

const TABLE: &[Row] = &[
    Row("ext2/3/4", Place::Start(0x438), b"\x53\xef"),
    Row("xfs", Place::Start(0), b"XFSB"),
    Row("btrfs", Place::Start(0x1_0040), b"_BHRfS_M"),
    Row("f2fs", Place::Start(0x400), b"\x10\x20\xf5\xf2"),
    // bcache and bcachefs share the place; the magic numbers differ.
    Row("bcachefs", Place::Start(0x1018), b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    Row("bcache", Place::Start(0x1018), b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    Row("ntfs", Place::Start(3), b"NTFS    "),
    Row("exfat", Place::Start(3), b"EXFAT   "),
    Row("fat", Place::Start(0x36), b"FAT1"),
    Row("fat", Place::Start(0x52), b"FAT32   "),
    Row("iso9660", Place::Start(0x8001), b"CD001"),
    Row("squashfs", Place::Start(0), b"hsqs"),
    Row("erofs", Place::Start(0x400), b"\xe2\xe1\xf5\xe0"),
    Row("jfs", Place::Start(0x8000), b"JFS1"),
    Row("reiserfs", Place::Start(0x1_0034), b"ReIsEr"),
    Row("ocfs2", Place::Start(0x1000), b"OCFSV2"),
    Row("gfs2", Place::Start(0x1_0000), b"\x01\x16\x19\x70"),
    Row("apfs", Place::Start(0x20), b"NXSB"),
    Row("hfs+", Place::Start(0x400), b"H+\x00\x04"),
    Row("ufs2", Place::Start(0x1_055c), b"\x19\x01\x54\x19"),
    Row("swap", Place::Start(0xff6), b"SWAPSPACE2"),
    Row("swap", Place::Start(0xff6), b"SWAP-SPACE"),
    Row("swap (64 KiB pages)", Place::Start(0xfff6), b"SWAPSPACE2"),
    Row("LUKS", Place::Start(0), b"LUKS\xba\xbe"),
    Row("BitLocker", Place::Start(3), b"-FVE-FS-"),
    // The label may be in any of the first four sectors.
    Row("LVM", Place::Start(0), b"LABELONE"),
    Row("LVM", Place::Start(0x200), b"LABELONE"),
    Row("LVM", Place::Start(0x400), b"LABELONE"),
    Row("LVM", Place::Start(0x600), b"LABELONE"),
    Row("md RAID 1.1", Place::Start(0), b"\xfc\x4e\x2b\xa9"),
    Row("md RAID 1.2", Place::Start(0x1000), b"\xfc\x4e\x2b\xa9"),
    Row("md RAID 1.0", Place::MdEndSuperblock, b"\xfc\x4e\x2b\xa9"),
    Row("md RAID 0.90", Place::MdOldSuperblock, b"\xfc\x4e\x2b\xa9"),
    Row("DDF RAID", Place::End(512), b"\xde\x11\xde\x11"),
    Row("Intel RAID", Place::End(1024), b"Intel Raid ISM Cfg Sig. "),
    Row("Ceph BlueStore", Place::Start(0), b"bluestore block device"),
    Row("DRBD", Place::End(4096 - 0x3c), b"\x83\x74\x02\x6b"),
    Row("VDO", Place::Start(0), b"dmvdo001"),
    Row("GPT", Place::Start(512), b"EFI PART"),
    Row("GPT", Place::Start(4096), b"EFI PART"),
    Row("GPT (backup)", Place::End(512), b"EFI PART"),
    Row("MBR or boot sector", Place::Start(510), b"\x55\xaa"),
];

/// Uberblocks of ZFS stand in an array of 128 KiB, one for each transaction, so any of them may be
/// the first that is there. Their first eight bytes, in either byte order.
const ZFS_UBERBLOCKS: std::ops::Range<u64> = 0x2_0000..0x4_0000;
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// The marks on the device or file at `path`, in the table's order; each kind once.
///
/// # Errors
/// It could not be opened or read. A device that ends before a mark's place is not an error.
pub fn signatures(path: &Path) -> io::Result<Vec<Signature>> {
    signatures_in(&mut File::open(path)?)
}

/// The same of anything that can be read.
///
/// # Errors
/// It could not be read.
pub fn signatures_in(device: &mut (impl Read + Seek)) -> io::Result<Vec<Signature>> {
    let size_bytes = device.seek(SeekFrom::End(0))?;
    let mut head = vec![0; ZFS_UBERBLOCKS.end.min(size_bytes) as usize];
    device.seek(SeekFrom::Start(0))?;
    device.read_exact(&mut head)?;
    let mut found: Vec<Signature> = Vec::new();
    for Row(kind, place, magic) in TABLE {
        let Some(offset) = place.offset(size_bytes) else { continue };
        if found.iter().any(|signature| signature.kind == *kind) {
            continue;
        }
        let length = magic.len() as u64;
        let is_there = match head.get(offset as usize..(offset + length) as usize) {
            Some(bytes) => bytes == *magic,
            None if offset + length <= size_bytes => {
                let mut bytes = vec![0; magic.len()];
                device.seek(SeekFrom::Start(offset))?;
                device.read_exact(&mut bytes)?;
                bytes == *magic
            }
            None => false,
        };
        if is_there {
            found.push(Signature { kind, offset });
        }
    }
    if let Some(offset) = zfs_uberblock(&head) {
        found.push(Signature { kind: "zfs", offset });
    }
    Ok(found)
}

impl Place {
    fn offset(&self, size_bytes: u64) -> Option<u64> {
        match self {
            Place::Start(offset) => Some(*offset),
            Place::End(distance) => size_bytes.checked_sub(*distance),
            Place::MdOldSuperblock => (size_bytes & !0xffff).checked_sub(0x1_0000),
            Place::MdEndSuperblock => Some(size_bytes.checked_sub(0x2000)? & !0xfff),
        }
    }
}

fn zfs_uberblock(head: &[u8]) -> Option<u64> {
    // The smallest uberblock is 1 KiB.
    ZFS_UBERBLOCKS.step_by(1024).find(|&offset| {
        let Some(bytes) = head.get(offset as usize..offset as usize + 8) else { return false };
        let value = u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken"));
        value == ZFS_MAGIC || value.swap_bytes() == ZFS_MAGIC
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const SIZE: u64 = 2 << 20;

    fn with(offset: u64, magic: &[u8]) -> Vec<u8> {
        let mut image = vec![0; SIZE as usize];
        image[offset as usize..offset as usize + magic.len()].copy_from_slice(magic);
        image
    }

    #[test]
    fn every_row_of_the_table_is_found_where_it_says_and_nothing_else_is() {
        for Row(kind, place, magic) in TABLE {
            let offset = place.offset(SIZE).expect("the image is large enough");
            let found = signatures_in(&mut Cursor::new(with(offset, magic))).expect("an image can be read");
            assert_eq!(found, vec![Signature { kind, offset }]);
        }
    }

    #[test]
    fn any_uberblock_of_zfs_in_either_byte_order_is_found() {
        for (offset, bytes) in [(0x2_0000, ZFS_MAGIC.to_le_bytes()), (0x2_fc00, ZFS_MAGIC.to_be_bytes())] {
            let found = signatures_in(&mut Cursor::new(with(offset, &bytes))).expect("an image can be read");
            assert_eq!(found, vec![Signature { kind: "zfs", offset }]);
        }
    }

    #[test]
    fn an_empty_or_tiny_device_carries_nothing() {
        for size in [0, 1, 511, 512, 4096, 70_000] {
            let found = signatures_in(&mut Cursor::new(vec![0; size])).expect("an image can be read");
            assert_eq!(found, vec![], "{size} bytes");
        }
    }
}
