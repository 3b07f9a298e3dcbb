//! The identity of a file or block device, by which a run detects that a path refers to another one.
//!
//! The identity of a file is its filesystem, its inode and its birth time, because inode numbers are reused. The
//! identity of a block device is its number, its size and its disk sequence number. The kernel assigns a new sequence
//! number to each disk that appears under a device number (Linux 5.15), for example to a loop device that is attached
//! again or a USB disk that is plugged in again. Nothing is opened for writing, and a pipe is not opened at all.
//!
//! Cannot detect: changed content of the same file; a disk that was swapped without the kernel noticing a removal.
//!
//! Source: statx(2), open(2) `O_PATH`, proc_pid_fd(5); Linux `include/uapi/linux/fs.h` (BLKGETDISKSEQ).

use crate::same_file::OVERLAY;
use crate::signature::signatures_of;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use trueio_model::{BlockIdentity, TargetIdentity};

/// Whether a symbolic link in the last component of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The link's target is opened.
    Followed,
    /// The link itself is opened. Links in procfs (`/proc/self/fd/3`) are followed nevertheless: they stand for
    /// descriptors.
    NotFollowed,
}

/// Opens a path with `O_PATH`: for reading its identity, and for opening it again through [`path_of_descriptor`].
///
/// # Errors
/// The kernel's error.
pub fn open_name(path: &Path, links: Links) -> io::Result<File> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    if links == Links::NotFollowed && !names_descriptor(path) {
        flags |= OFlags::NOFOLLOW;
    }
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Returns the `/proc/self/fd` path that opens the file of a descriptor of this process, even if it was renamed.
pub fn path_of_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Returns whether a path is in procfs, where links stand for descriptors.
fn names_descriptor(path: &Path) -> bool {
    const PROC: u64 = 0x9fa0;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::fs::statfs(directory).is_ok_and(|found| found.f_type as u64 == PROC)
}

/// Returns the identity of what a path refers to, with the signatures of a block device; `None` if it is neither a file
/// nor a block device, or cannot be read.
pub fn target_identity(path: &Path) -> Option<TargetIdentity> {
    open_target(path).ok().map(|(_, identity)| identity)
}

/// Returns the same with the descriptor through which it was read: of a block device open for reading, so that its number
/// stays with this disk; of a file open with `O_PATH`.
///
/// # Errors
/// The target cannot be opened, or is neither a file nor a block device.
pub fn open_target(path: &Path) -> io::Result<(File, TargetIdentity)> {
    let mut file = open_name(path, Links::Followed)?;
    let mut identity = identity_of(&file)?;
    if let Some(block) = &mut identity.block {
        file = File::open(path_of_descriptor(&file))?;
        let opened = identity_of(&file)?;
        let found = opened.block.ok_or_else(|| io::Error::other("it is no block device any more"))?;
        *block = BlockIdentity { signatures: signatures_in_words(&file).ok(), ..found };
        identity.size_bytes = opened.size_bytes;
    }
    identity.link_to = std::fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_symlink() && !names_descriptor(path))
        .then(|| std::fs::canonicalize(path).ok().map(|target| target.display().to_string()))
        .flatten();
    Ok((file, identity))
}

/// Returns the identity of an open file. For a block device that is open with `O_PATH`, only the number is known.
///
/// # Errors
/// The kernel's error; [`io::ErrorKind::InvalidInput`] if it is neither a regular file nor a block device.
pub fn identity_of(file: &File) -> io::Result<TargetIdentity> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, mask)?;
    let kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
    let block = match kind {
        FileType::RegularFile => None,
        FileType::BlockDevice => Some(BlockIdentity {
            number: rustix::fs::makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
            disk_sequence: disk_sequence(file),
            signatures: None,
        }),
        FileType::Symlink => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link")),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a block device")),
    };
    // On overlayfs, the first write to a file of a lower layer copies it up, which changes its birth time.
    let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0
        && rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type as u64 != OVERLAY);
    Ok(TargetIdentity {
        device: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
        birth_ns: has_birth
            .then(|| stat.stx_btime.tv_sec.saturating_mul(1_000_000_000) + i64::from(stat.stx_btime.tv_nsec)),
        size_bytes: match block {
            None => Some(stat.stx_size),
            Some(_) => device_bytes(file),
        },
        block,
        link_to: None,
    })
}

/// Returns the identity of what a path refers to now. A missing path is [`io::ErrorKind::NotFound`].
///
/// # Errors
/// As [`identity_of`].
pub fn identity_of_name(path: &Path, links: Links) -> io::Result<TargetIdentity> {
    identity_of(&open_name(path, links)?)
}

/// Returns the signatures of a device as sorted texts, for comparison: `ext4 (at byte 1080)`.
///
/// # Errors
/// The device cannot be read.
pub fn signatures_in_words(device: &File) -> io::Result<Vec<String>> {
    let found = signatures_of(device)?;
    let mut words: Vec<String> =
        found.iter().map(|found| format!("{} (at byte {})", found.kind, found.offset)).collect();
    words.sort();
    Ok(words)
}

/// Returns the disk sequence number; `None` before Linux 5.15.
fn disk_sequence(device: &File) -> Option<u64> {
    const BLKGETDISKSEQ: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<u64>(0x12, 128);
    // SAFETY: the kernel writes one u64 or fails.
    unsafe { rustix::ioctl::ioctl(device, rustix::ioctl::Getter::<BLKGETDISKSEQ, u64>::new()) }.ok()
}

fn device_bytes(device: &File) -> Option<u64> {
    const BLKGETSIZE64: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<usize>(0x12, 114);
    // SAFETY: the kernel writes one u64 or fails.
    unsafe { rustix::ioctl::ioctl(device, rustix::ioctl::Getter::<BLKGETSIZE64, u64>::new()) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_identity_under_all_its_names_and_another_file_has_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a"), "a").expect("a file");
        std::fs::write(path("b"), "b").expect("a file");
        std::fs::hard_link(path("a"), path("hard")).expect("a link");
        std::os::unix::fs::symlink("a", path("link")).expect("a link");
        let of = |name: &str| target_identity(&path(name)).expect("a file");
        assert!(of("a").is_same(&of("hard")) && of("a").is_same(&of("link")));
        assert!(!of("a").is_same(&of("b")));
        assert_eq!(of("hard").link_to, None);
        let target = path("a").canonicalize().expect("a file").display().to_string();
        assert_eq!(of("link").link_to, Some(target));
        assert!(identity_of_name(&path("link"), Links::NotFollowed).is_err(), "a link is not a file");
        let descriptor = File::open(path("a")).expect("a file");
        let name = path_of_descriptor(&descriptor);
        let by_descriptor = identity_of_name(&name, Links::NotFollowed).expect("a descriptor is not a link");
        assert!(by_descriptor.is_same(&of("a")));
        assert_eq!(target_identity(&name).and_then(|identity| identity.link_to), None);
        // The path now refers to another file; the descriptor still refers to the first.
        std::fs::rename(path("b"), path("a")).expect("replaced");
        assert!(!identity_of(&descriptor).expect("a file").is_same(&of("a")));
        assert_eq!(target_identity(folder.path()), None, "a directory is not a target");
    }
}
