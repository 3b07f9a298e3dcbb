//! Finds signatures on a device: of filesystems, RAID, LVM, encryption, swap and partition tables.
//!
//! A device with a signature may contain data, so it is written only if the user names the signature. The names are
//! those of `blkid`, `lsblk --fs` and `wipefs`, as far as these have one. A search reads a few hundred kilobytes and opens nothing for writing.
//!
//! Only magic numbers are compared, never checksums, because a partly overwritten superblock may still belong to data.
//! A magic number of two bytes (minix) may match by chance, so it counts only if no other signature is found; ext and
//! the MBR are common enough to count always.
//!
//! Partitions have signatures of their own. They are read at the offsets in the disk's tables, because writing the disk
//! overwrites them, too.
//!
//! Cannot see: data without a signature, which `docs/safety.md` lists; signatures at another offset.
//!
//! Source: magic numbers, offsets and names of util-linux, `libblkid/src/superblocks/` and
//! `libblkid/src/partitions/`; Linux `drivers/md/` (`dm-thin-metadata.c`, `dm-cache-metadata.c`, `dm-era-target.c`,
//! `dm-clone-metadata.c`, `dm-writecache.c`); QEMU `block/` (`qcow.c`, `qcow2.h`, `qed.h`, `vmdk.c`, `vdi.c`, `vpc.c`, `vhdx.h`,
//! `parallels.c`). This crate's tests compare the names with those of `blkid` for the output of `mkfs.*`,
//! `mkswap` and `sfdisk`.

use crate::partitions::{Part, partitions};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A signature found on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name as in `blkid`: `ext4`, `xfs`, `crypto_LUKS`, `gpt` …
    pub kind: &'static str,
    /// Offset from the device's start, in bytes.
    pub offset: u64,
}

/// The offset of a magic number.
enum MagicOffset {
    /// Bytes from the start.
    Start(u64),
    /// Bytes before the end of the last whole sector of 512 bytes.
    End(u64),
    /// md 0.90: 64 KiB before the end, rounded down to a multiple of 64 KiB.
    MdOldSuperblock,
    /// md 1.0: at least 8 KiB before the end, on a multiple of 4 KiB.
    MdEndSuperblock,
}

struct Row(&'static str, MagicOffset, &'static [u8]);

/// `ext` stands for ext2, ext3, ext4 and jbd, which share offset and magic number: [`ext_variant`].
const TABLE: &[Row] = &[
    Row("ext", MagicOffset::Start(0x438), b"S\xef"),
    Row("xfs", MagicOffset::Start(0), b"XFSB"),
    Row("xfs_external_log", MagicOffset::Start(0), b"\xfe\xed\xba\xbe"),
    Row("btrfs", MagicOffset::Start(0x10040), b"_BHRfS_M"),
    Row("f2fs", MagicOffset::Start(0x400), b"\x10 \xf5\xf2"),
    Row("bcachefs", MagicOffset::Start(0x1018), b"\xc6\x85s\xf6f\xce\x90\xa9\xd9j`\xcf\x80=\xf7\xef"),
    Row("bcache", MagicOffset::Start(0x1018), b"\xc6\x85s\xf6N\x1aE\xca\x82e\xf5\x7fH\xbam\x81"),
    Row("ntfs", MagicOffset::Start(3), b"NTFS    "),
    Row("ReFS", MagicOffset::Start(0), b"\x00\x00\x00ReFS\x00"),
    Row("exfat", MagicOffset::Start(3), b"EXFAT   "),
    Row("vfat", MagicOffset::Start(0x36), b"FAT1"),
    Row("vfat", MagicOffset::Start(0x52), b"FAT32   "),
    Row("iso9660", MagicOffset::Start(0x8001), b"CD001"),
    Row("udf", MagicOffset::Start(0x8001), b"BEA01"),
    Row("udf", MagicOffset::Start(0x8001), b"NSR02"),
    Row("udf", MagicOffset::Start(0x8001), b"NSR03"),
    Row("squashfs", MagicOffset::Start(0), b"hsqs"),
    Row("squashfs", MagicOffset::Start(0), b"sqsh"),
    Row("erofs", MagicOffset::Start(0x400), b"\xe2\xe1\xf5\xe0"),
    Row("cramfs", MagicOffset::Start(0), b"E=\xcd("),
    Row("cramfs", MagicOffset::Start(0), b"(\xcd=E"),
    Row("romfs", MagicOffset::Start(0), b"-rom1fs-"),
    Row("jfs", MagicOffset::Start(0x8000), b"JFS1"),
    Row("reiserfs", MagicOffset::Start(0x2034), b"ReIsEr"),
    Row("reiserfs", MagicOffset::Start(0x10034), b"ReIsEr"),
    Row("reiser4", MagicOffset::Start(0x10000), b"ReIsEr4"),
    Row("nilfs2", MagicOffset::Start(0x406), b"44"),
    Row("ocfs2", MagicOffset::Start(0x400), b"OCFSV2"),
    Row("ocfs2", MagicOffset::Start(0x800), b"OCFSV2"),
    Row("ocfs2", MagicOffset::Start(0x1000), b"OCFSV2"),
    Row("ocfs2", MagicOffset::Start(0x2000), b"OCFSV2"),
    Row("ocfs", MagicOffset::Start(0x2000), b"OracleCFS"),
    Row("oracleasm", MagicOffset::Start(0x20), b"ORCLDISK"),
    Row("gfs2", MagicOffset::Start(0x10000), b"\x01\x16\x19p"),
    Row("apfs", MagicOffset::Start(0x20), b"NXSB"),
    Row("hfsplus", MagicOffset::Start(0x400), b"H+\x00\x04"),
    Row("hfsplus", MagicOffset::Start(0x400), b"HX\x00\x05"),
    Row("hfs", MagicOffset::Start(0x400), b"BD"),
    Row("ufs", MagicOffset::Start(0x55c), b"\x19\x01T\x19"),
    Row("ufs", MagicOffset::Start(0x55c), b"T\x19\x01\x00"),
    Row("ufs", MagicOffset::Start(0x255c), b"\x19\x01T\x19"),
    Row("ufs", MagicOffset::Start(0x255c), b"T\x19\x01\x00"),
    Row("ufs", MagicOffset::Start(0x1055c), b"\x19\x01T\x19"),
    Row("ufs", MagicOffset::Start(0x1055c), b"T\x19\x01\x00"),
    Row("ufs", MagicOffset::Start(0x4055c), b"\x19\x01T\x19"),
    Row("ufs", MagicOffset::Start(0x4055c), b"T\x19\x01\x00"),
    Row("minix", MagicOffset::Start(0x410), b"\x7f\x13"),
    Row("minix", MagicOffset::Start(0x410), b"\x8f\x13"),
    Row("minix", MagicOffset::Start(0x410), b"h$"),
    Row("minix", MagicOffset::Start(0x410), b"x$"),
    Row("minix", MagicOffset::Start(0x418), b"ZM"),
    Row("befs", MagicOffset::Start(0x220), b"BFS1"),
    Row("befs", MagicOffset::Start(0x220), b"1SFB"),
    Row("bfs", MagicOffset::Start(0), b"\xce\xfa\xad\x1b"),
    Row("hpfs", MagicOffset::Start(0x2000), b"I\xe8\x95\xf9"),
    Row("vxfs", MagicOffset::Start(0x400), b"\xf5\xfc\x01\xa5"),
    Row("ubi", MagicOffset::Start(0), b"UBI#"),
    Row("ubifs", MagicOffset::Start(0), b"1\x18\x10\x06"),
    Row("zonefs", MagicOffset::Start(0), b"SFOZ"),
    Row("VMFS", MagicOffset::Start(0x200000), b"^\xf1\xab/"),
    Row("VMFS_volume_member", MagicOffset::Start(0x100000), b"\x0d\xd0\x01\xc0"),
    Row("swap", MagicOffset::Start(0xff6), b"SWAPSPACE2"),
    Row("swap", MagicOffset::Start(0xff6), b"SWAP-SPACE"),
    Row("swsuspend", MagicOffset::Start(0xff6), b"S1SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0xff6), b"S2SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0xff6), b"ULSUSPEND"),
    Row("swsuspend", MagicOffset::Start(0xff6), b"LINHIB0001"),
    Row("swap", MagicOffset::Start(0x1ff6), b"SWAPSPACE2"),
    Row("swap", MagicOffset::Start(0x1ff6), b"SWAP-SPACE"),
    Row("swsuspend", MagicOffset::Start(0x1ff6), b"S1SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0x1ff6), b"S2SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0x1ff6), b"ULSUSPEND"),
    Row("swsuspend", MagicOffset::Start(0x1ff6), b"LINHIB0001"),
    Row("swap", MagicOffset::Start(0x3ff6), b"SWAPSPACE2"),
    Row("swap", MagicOffset::Start(0x3ff6), b"SWAP-SPACE"),
    Row("swsuspend", MagicOffset::Start(0x3ff6), b"S1SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0x3ff6), b"S2SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0x3ff6), b"ULSUSPEND"),
    Row("swsuspend", MagicOffset::Start(0x3ff6), b"LINHIB0001"),
    Row("swap", MagicOffset::Start(0x7ff6), b"SWAPSPACE2"),
    Row("swap", MagicOffset::Start(0x7ff6), b"SWAP-SPACE"),
    Row("swsuspend", MagicOffset::Start(0x7ff6), b"S1SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0x7ff6), b"S2SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0x7ff6), b"ULSUSPEND"),
    Row("swsuspend", MagicOffset::Start(0x7ff6), b"LINHIB0001"),
    Row("swap", MagicOffset::Start(0xfff6), b"SWAPSPACE2"),
    Row("swap", MagicOffset::Start(0xfff6), b"SWAP-SPACE"),
    Row("swsuspend", MagicOffset::Start(0xfff6), b"S1SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0xfff6), b"S2SUSPEND"),
    Row("swsuspend", MagicOffset::Start(0xfff6), b"ULSUSPEND"),
    Row("swsuspend", MagicOffset::Start(0xfff6), b"LINHIB0001"),
    Row("swsuspend", MagicOffset::Start(0), b"\xed\xc3\x02\xe9\x98V\xe5\x0c"),
    Row("crypto_LUKS", MagicOffset::Start(0), b"LUKS\xba\xbe"),
    Row("crypto_LUKS", MagicOffset::Start(0x4000), b"SKUL\xba\xbe"),
    Row("crypto_LUKS", MagicOffset::Start(0x8000), b"SKUL\xba\xbe"),
    Row("crypto_LUKS", MagicOffset::Start(0x10000), b"SKUL\xba\xbe"),
    Row("crypto_LUKS", MagicOffset::Start(0x20000), b"SKUL\xba\xbe"),
    Row("crypto_LUKS", MagicOffset::Start(0x40000), b"SKUL\xba\xbe"),
    Row("crypto_LUKS", MagicOffset::Start(0x80000), b"SKUL\xba\xbe"),
    Row("crypto_LUKS", MagicOffset::Start(0x100000), b"SKUL\xba\xbe"),
    Row("crypto_LUKS", MagicOffset::Start(0x200000), b"SKUL\xba\xbe"),
    Row("crypto_LUKS", MagicOffset::Start(0x400000), b"SKUL\xba\xbe"),
    Row("BitLocker", MagicOffset::Start(3), b"-FVE-FS-"),
    Row("LVM2_member", MagicOffset::Start(0), b"LABELONE"),
    Row("LVM2_member", MagicOffset::Start(0x200), b"LABELONE"),
    Row("LVM2_member", MagicOffset::Start(0x400), b"LABELONE"),
    Row("LVM2_member", MagicOffset::Start(0x600), b"LABELONE"),
    Row("LVM1_member", MagicOffset::Start(0), b"HM"),
    Row("DM_snapshot_cow", MagicOffset::Start(0), b"SnAp"),
    Row("DM_verity_hash", MagicOffset::Start(0), b"verity\x00\x00"),
    Row("DM_integrity", MagicOffset::Start(0), b"integrt\x00"),
    // Metadata of device-mapper's persistent-data library, in one layout; libblkid has no names for them.
    Row("DM_thin_metadata", MagicOffset::Start(0x20), b"\xbaR\x9c\x01\x00\x00\x00\x00"),
    Row("DM_cache_metadata", MagicOffset::Start(0x20), b"\x03\xc4\x18\x00\x00\x00\x00\x00"),
    Row("DM_era_metadata", MagicOffset::Start(0x20), b"{\x07\xc1~\x00\x00\x00\x00"),
    Row("DM_clone_metadata", MagicOffset::Start(0x20), b"d\x7f\xf2\x8a\x00\x00\x00\x00"),
    Row("DM_writecache", MagicOffset::Start(0), b"!\x93H#"),
    Row("stratis", MagicOffset::Start(0x204), b"!Stra0tis\x86\xff\x02^Arh"),
    Row("stratis", MagicOffset::Start(0x1204), b"!Stra0tis\x86\xff\x02^Arh"),
    Row("linux_raid_member", MagicOffset::Start(0), b"\xfcN+\xa9"),
    Row("linux_raid_member", MagicOffset::Start(0x1000), b"\xfcN+\xa9"),
    Row("linux_raid_member", MagicOffset::MdEndSuperblock, b"\xfcN+\xa9"),
    Row("linux_raid_member", MagicOffset::MdOldSuperblock, b"\xfcN+\xa9"),
    Row("ddf_raid_member", MagicOffset::End(512), b"\xde\x11\xde\x11"),
    Row("ddf_raid_member", MagicOffset::End(131584), b"\xde\x11\xde\x11"),
    Row("isw_raid_member", MagicOffset::End(1024), b"Intel Raid ISM Cfg Sig. "),
    Row("lsi_mega_raid_member", MagicOffset::End(512), b"$XIDE$"),
    Row("nvidia_raid_member", MagicOffset::End(1024), b"NVIDIA"),
    Row("adaptec_raid_member", MagicOffset::End(512), b"7\xfcM\x1e"),
    Row("silicon_medley_raid_member", MagicOffset::End(416), b"\x00\x00\x00/"),
    Row("jmicron_raid_member", MagicOffset::End(512), b"JM"),
    Row("promise_fasttrack_raid_member", MagicOffset::End(32256), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(130560), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(131072), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(8192), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(204288), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(302592), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(345600), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(376320), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(466432), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(498688), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(507392), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(486912), b"Promise Technology, Inc."),
    Row("promise_fasttrack_raid_member", MagicOffset::End(1580544), b"Promise Technology, Inc."),
    Row("hpt45x_raid_member", MagicOffset::End(5632), b"\xf3\x16xZ"),
    Row("hpt45x_raid_member", MagicOffset::End(5632), b"\xfd\x16xZ"),
    Row("hpt37x_raid_member", MagicOffset::Start(0x1220), b"\xf0\x16xZ"),
    Row("hpt37x_raid_member", MagicOffset::Start(0x1220), b"\xfd\x16xZ"),
    Row("ceph_bluestore", MagicOffset::Start(0), b"bluestore block device"),
    Row("drbd", MagicOffset::End(4036), b"\x83\x74\x02\x6b"),
    Row("drbd", MagicOffset::End(4036), b"\x83\x74\x02\x6c"),
    Row("drbd", MagicOffset::End(4036), b"\x83\x74\x02\x6d"),
    Row("vdo", MagicOffset::Start(0), b"dmvdo001"),
    // Images of virtual disks on a whole device, as oVirt puts them on logical volumes; libblkid has no names for them.
    Row("qcow", MagicOffset::Start(0), b"QFI\xfb\x00\x00\x00\x01"),
    Row("qcow2", MagicOffset::Start(0), b"QFI\xfb\x00\x00\x00\x02"),
    Row("qcow2", MagicOffset::Start(0), b"QFI\xfb\x00\x00\x00\x03"),
    Row("qed", MagicOffset::Start(0), b"QED\x00"),
    Row("VMDK", MagicOffset::Start(0), b"KDMV"),
    Row("VMDK", MagicOffset::Start(0), b"COWD"),
    Row("VMDK", MagicOffset::Start(0), b"\xbe\xba\xfe\xca\x00\x00\x00\x00"),
    Row("VMDK", MagicOffset::Start(0), b"# Disk DescriptorFile"),
    Row("VDI", MagicOffset::Start(0x40), b"\x7f\x10\xda\xbe"),
    Row("VHD", MagicOffset::Start(0), b"conectix"),
    Row("VHD", MagicOffset::End(512), b"conectix"),
    Row("VHDX", MagicOffset::Start(0), b"vhdxfile"),
    Row("Parallels", MagicOffset::Start(0), b"WithoutFreeSpace"),
    Row("Parallels", MagicOffset::Start(0), b"WithouFreSpacExt"),
    Row("gpt", MagicOffset::Start(0x200), b"EFI PART"),
    Row("gpt", MagicOffset::Start(0x1000), b"EFI PART"),
    Row("gpt", MagicOffset::End(512), b"EFI PART"),
    Row("gpt", MagicOffset::End(4096), b"EFI PART"),
    Row("mac", MagicOffset::Start(0x200), b"PM\x00\x00"),
    Row("bsd", MagicOffset::Start(0x200), b"WEV\x82"),
    Row("bsd", MagicOffset::Start(0x40), b"WEV\x82"),
    Row("sgi", MagicOffset::Start(0), b"\x0b\xe5\xa9A"),
    Row("sun", MagicOffset::Start(0x1fc), b"\xda\xbe"),
    Row("dos", MagicOffset::Start(0x1fe), b"U\xaa"),
];

/// A label of ZFS has 256 KiB; two labels are at the start of a device and two at its end. The second half of a label is
/// an array of uberblocks, one per transaction, so any of them may be the first valid one. Each begins with the magic
/// number in either byte order.
const ZFS_LABEL_BYTES: u64 = 256 << 10;
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// Names whose magic number of two bytes always counts.
const COMMON: [&str; 2] = ["ext", "dos"];

/// Signatures whose sector ends like an MBR.
const OWN_BOOT_SECTOR: [&str; 5] = ["gpt", "vfat", "ntfs", "exfat", "BitLocker"];

/// The depth to which partition tables are followed: a partition may contain the image of a disk.
const DEPTH_MAX: u32 = 2;

/// Returns the signatures on the device or file at `path` and in its partitions.
///
/// # Errors
/// It cannot be opened or read. A device that ends before the offset of a signature is not an error.
pub fn signatures(path: &Path) -> io::Result<Vec<Signature>> {
    signatures_of(&File::open(path)?)
}

/// Returns the signatures of an open device or file: its own in the table's order, each kind once, then those of its
/// partitions in the order of their offsets.
///
/// # Errors
/// It cannot be read.
pub fn signatures_of(mut device: &File) -> io::Result<Vec<Signature>> {
    // A file has no sector size.
    let sector_bytes = rustix::fs::ioctl_blksszget(device).map_or(512, u64::from);
    signatures_through(&mut device, sector_bytes)
}

/// Returns the same of a disk that is read in another way. `sector_bytes` is its logical sector.
///
/// # Errors
/// It cannot be read.
pub fn signatures_through<D: Read + Seek>(device: &mut D, sector_bytes: u64) -> io::Result<Vec<Signature>> {
    let size_bytes = device.seek(SeekFrom::End(0))?;
    let mut found = Vec::new();
    let whole = 0..size_bytes;
    let mut level = vec![whole];
    for depth in 0..=DEPTH_MAX {
        let mut next = Vec::new();
        for range in level {
            let begin = range.start;
            let mut part = Part::new(device, range);
            let marks = signatures_in(&mut part)?;
            found.extend(marks.iter().map(|mark| Signature { kind: mark.kind, offset: begin + mark.offset }));
            if depth < DEPTH_MAX {
                let within = partitions(&mut part, sector_bytes)?;
                next.extend(within.into_iter().map(|within| begin + within.start..begin + within.end));
            }
        }
        level = next;
    }
    Ok(found)
}

/// Returns the signatures of a device or image, without those of its partitions.
///
/// # Errors
/// It cannot be read.
pub fn signatures_in(device: &mut (impl Read + Seek)) -> io::Result<Vec<Signature>> {
    let size_bytes = device.seek(SeekFrom::End(0))?;
    let head = read(device, 0, (2 * ZFS_LABEL_BYTES).min(size_bytes))?;
    let mut found: Vec<Signature> = Vec::new();
    let mut doubtful: Option<Signature> = None;
    for Row(kind, place, magic) in TABLE {
        let Some(offset) = place.offset(size_bytes) else { continue };
        if found.iter().any(|signature| signature.kind == *kind) {
            continue;
        }
        let length = magic.len() as u64;
        let is_there = match head.get(offset as usize..(offset + length) as usize) {
            Some(bytes) => bytes == *magic,
            None => offset + length <= size_bytes && read(device, offset, length)? == *magic,
        };
        if !is_there {
            continue;
        }
        if magic.len() <= 2 && !COMMON.contains(kind) {
            doubtful.get_or_insert(Signature { kind, offset });
        } else {
            found.push(Signature { kind: if *kind == "ext" { ext_variant(&head) } else { kind }, offset });
        }
    }
    if found.iter().any(|signature| OWN_BOOT_SECTOR.contains(&signature.kind)) {
        found.retain(|signature| signature.kind != "dos");
    }
    if let Some(offset) = zfs_uberblock(device, &head, size_bytes)? {
        found.push(Signature { kind: "zfs_member", offset });
    }
    if found.is_empty() {
        found.extend(doubtful);
    }
    Ok(found)
}

fn read(device: &mut (impl Read + Seek), offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    device.seek(SeekFrom::Start(offset))?;
    device.read_exact(&mut bytes)?;
    Ok(bytes)
}

impl MagicOffset {
    fn offset(&self, size_bytes: u64) -> Option<u64> {
        match self {
            MagicOffset::Start(offset) => Some(*offset),
            MagicOffset::End(distance) => (size_bytes & !0x1ff).checked_sub(*distance),
            MagicOffset::MdOldSuperblock => (size_bytes & !0xffff).checked_sub(0x1_0000),
            MagicOffset::MdEndSuperblock => Some(size_bytes.checked_sub(0x2000)? & !0xfff),
        }
    }
}

/// Returns which of the filesystems with ext's magic number it is, by its features.
///
/// Source: `libblkid/src/superblocks/ext.c`: a journal's own device is jbd; without a journal and
/// without features beyond those of ext2 it is ext2; with a journal and no features beyond those of ext3,
/// ext3; otherwise ext4.
fn ext_variant(head: &[u8]) -> &'static str {
    let word = |at: usize| {
        let bytes = head.get(0x400 + at..0x400 + at + 4).unwrap_or(&[0; 4]);
        u32::from_le_bytes(bytes.try_into().expect("four bytes were taken"))
    };
    let (compatible, incompatible, read_only) = (word(0x5c), word(0x60), word(0x64));
    let (has_journal, is_journal, needs_recovery) = (compatible & 0x4 != 0, incompatible & 0x8 != 0, 0x4);
    // filetype and meta_bg; sparse_super, large_file and btree_dir.
    let (known_incompatible, known_read_only) = (0x2 | 0x10, 0x1 | 0x2 | 0x4);
    let is_old = read_only & !known_read_only == 0;
    if is_journal {
        "jbd"
    } else if !has_journal && is_old && incompatible & !known_incompatible == 0 {
        "ext2"
    } else if has_journal && is_old && incompatible & !(known_incompatible | needs_recovery) == 0 {
        "ext3"
    } else {
        "ext4"
    }
}

/// Returns the offset of the first uberblock in any of the four labels.
fn zfs_uberblock(device: &mut (impl Read + Seek), head: &[u8], size_bytes: u64) -> io::Result<Option<u64>> {
    let whole = size_bytes / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
    let at_end = |labels: u64| whole.checked_sub(labels * ZFS_LABEL_BYTES);
    let mut labels = vec![0, ZFS_LABEL_BYTES];
    labels.extend([at_end(2), at_end(1)].into_iter().flatten());
    for label in labels {
        let begin = label + ZFS_LABEL_BYTES / 2;
        let end = (label + ZFS_LABEL_BYTES).min(size_bytes);
        if begin >= end {
            continue;
        }
        let far;
        let array = match head.get(begin as usize..end as usize) {
            Some(array) => array,
            None => {
                far = read(device, begin, end - begin)?;
                &far
            }
        };
        // The smallest uberblock is 1 KiB.
        let is_uberblock = |block: &[u8]| {
            let Some(bytes) = block.first_chunk() else { return false };
            let value = u64::from_le_bytes(*bytes);
            value == ZFS_MAGIC || value.swap_bytes() == ZFS_MAGIC
        };
        if let Some(index) = array.chunks(1024).position(is_uberblock) {
            return Ok(Some(begin + index as u64 * 1024));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Large enough for the signature with the largest offset from the start, LUKS2 at 4 MiB.
    const SIZE: u64 = 5 << 20;

    fn with(offset: u64, magic: &[u8]) -> Vec<u8> {
        let mut image = vec![0; SIZE as usize];
        image[offset as usize..offset as usize + magic.len()].copy_from_slice(magic);
        image
    }

    fn found(image: Vec<u8>) -> Vec<Signature> {
        signatures_in(&mut Cursor::new(image)).expect("an image can be read")
    }

    fn kinds(image: Vec<u8>) -> Vec<&'static str> {
        found(image).into_iter().map(|signature| signature.kind).collect()
    }

    #[test]
    fn every_row_of_the_table_is_found_where_it_says_and_nothing_else_is() {
        for Row(kind, place, magic) in TABLE {
            let offset = place.offset(SIZE).expect("the image is large enough");
            let kind = if *kind == "ext" { "ext2" } else { kind };
            assert_eq!(found(with(offset, magic)), vec![Signature { kind, offset }]);
        }
    }

    /// Goal: a device with one of these looked empty.
    /// Method: the first bytes as QEMU and the kernel write them, independent of the table.
    #[test]
    fn images_of_virtual_disks_and_the_metadata_of_dm_thin_are_found() {
        let thin = 27_022_010_u64.to_le_bytes();
        for (kind, offset, bytes) in [
            ("qcow2", 0, &b"QFI\xfb\0\0\0\x02"[..]),
            ("qcow2", 0, b"QFI\xfb\0\0\0\x03"),
            ("VMDK", 0, b"KDMV\x01\0\0\0"),
            ("VMDK", 0, b"COWD\x01\0\0\0"),
            ("VMDK", 0, b"# Disk DescriptorFile\nversion=1\n"),
            ("DM_thin_metadata", 32, &thin),
        ] {
            assert_eq!(kinds(with(offset, bytes)), [kind]);
        }
    }

    #[test]
    fn a_name_can_be_written_in_a_list_of_names() {
        for Row(kind, ..) in TABLE {
            assert!(kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{kind}");
        }
    }

    #[test]
    fn any_uberblock_of_zfs_in_either_byte_order_is_found_in_each_of_the_four_labels() {
        for label in [0, 256 << 10, SIZE - (512 << 10), SIZE - (256 << 10)] {
            for (at, bytes) in [(0x2_0000, ZFS_MAGIC.to_le_bytes()), (0x2_fc00, ZFS_MAGIC.to_be_bytes())] {
                let offset = label + at;
                assert_eq!(found(with(offset, &bytes)), vec![Signature { kind: "zfs_member", offset }]);
            }
        }
    }

    /// Goal: ext2, ext3, ext4 and a journal's own device are distinguished as by `blkid`.
    /// Method: the features that `mke2fs -t` sets for each, in an otherwise empty superblock.
    #[test]
    fn the_kinds_of_ext_are_told_apart_by_their_features() {
        for (expected, compatible, incompatible, read_only) in [
            ("ext2", 0x38_u32, 0x2_u32, 0x3_u32),
            ("ext3", 0x3c, 0x2, 0x3),
            ("ext3", 0x3c, 0x6, 0x3),
            ("ext4", 0x3c, 0x2c2, 0x46b),
            ("ext4", 0x38, 0x242, 0x3),
            ("jbd", 0x4, 0x8, 0x0),
        ] {
            let mut image = with(0x438, b"\x53\xef");
            for (at, word) in [(0x45c, compatible), (0x460, incompatible), (0x464, read_only)] {
                image[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            assert_eq!(kinds(image), [expected]);
        }
    }

    #[test]
    fn two_bytes_by_chance_count_only_where_nothing_else_is_found() {
        let minix = b"\x7f\x13";
        assert_eq!(kinds(with(0x410, minix)), ["minix"]);
        let mut image = with(0x438, b"\x53\xef");
        image[0x410..0x412].copy_from_slice(minix);
        assert_eq!(kinds(image), ["ext2"], "the count of free inodes is not a signature");
    }

    #[test]
    fn what_stands_beside_each_other_is_all_found_but_a_boot_sector_is_part_of_its_filesystem() {
        let mut image = with(510, b"\x55\xaa");
        image[0x438..0x43a].copy_from_slice(b"\x53\xef");
        assert_eq!(kinds(image), ["ext2", "dos"]);
        for (offset, magic, kind) in [(0x52, &b"FAT32   "[..], "vfat"), (512, b"EFI PART", "gpt")] {
            let mut image = with(510, b"\x55\xaa");
            image[offset..offset + magic.len()].copy_from_slice(magic);
            assert_eq!(kinds(image), [kind]);
        }
    }

    /// Method: a table with one partition, which contains ext4 and a table of its own with a swap partition.
    #[test]
    fn marks_in_partitions_are_found_where_the_tables_place_them() {
        let mut image = vec![0; SIZE as usize];
        let mut write_table = |sector: usize, first: u32, count: u32| {
            let table = &mut image[sector * 512 + 446..(sector + 1) * 512];
            table[4] = 0x83;
            table[8..12].copy_from_slice(&first.to_le_bytes());
            table[12..16].copy_from_slice(&count.to_le_bytes());
            table[64..].copy_from_slice(b"\x55\xaa");
        };
        write_table(0, 2048, 4096);
        write_table(2048, 1024, 1024);
        let (outer, inner) = (2048 * 512, 3072 * 512);
        image[outer + 0x438..outer + 0x43a].copy_from_slice(b"S\xef");
        image[inner + 0xff6..inner + 0x1000].copy_from_slice(b"SWAPSPACE2");
        let mut file = tempfile::tempfile().expect("a file");
        std::io::Write::write_all(&mut file, &image).expect("an image");
        let mark = |kind, offset: usize| Signature { kind, offset: offset as u64 };
        let expected =
            [mark("dos", 510), mark("ext2", outer + 0x438), mark("dos", outer + 510), mark("swap", inner + 0xff6)];
        assert_eq!(signatures_of(&file).expect("an image can be read"), expected);
    }

    #[test]
    fn an_empty_or_tiny_device_carries_nothing() {
        for size in [0, 1, 511, 512, 4096, 70_000, 300_000, 600_000] {
            assert_eq!(found(vec![0; size]), vec![], "{size} bytes");
        }
    }
}
