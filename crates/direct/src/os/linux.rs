//! Linux: `O_DIRECT`, and `statx` to learn its effect.
//!
//! Since Linux 6.1 a filesystem can report whether a file supports direct I/O and at which alignment
//! (`STATX_DIOALIGN`). The answer has three forms:
//!
//! | answer              | meaning                                                              |
//! |---------------------|----------------------------------------------------------------------|
//! | bit set, numbers    | direct I/O, at these alignments                                      |
//! | bit set, zeros      | no direct I/O: `open` accepts the flag, transfers use the page cache |
//! | bit not set         | unknown: an older kernel, or a filesystem that does not report it    |
//!
//! In the last form the answer comes from the type of the filesystem where that is known to buffer (btrfs, tmpfs,
//! OpenZFS before 2.3, ext4 mounted with `data=journal`); otherwise it is unknown.
//!
//! Limits: what a FUSE daemon, a network server or a hypervisor does is not visible.
//!
//! Source: statx(2), open(2) NOTES on `O_DIRECT`; behaviour of the filesystems named was measured
//! on Linux 6.18 (tests/it/filesystems.rs).

mod disk;
mod filesystem;
mod memory;
mod page_cache;

use super::unix;
use crate::alignment::{Alignment, AlignmentSource};
use crate::types::{
    Answer, AtomicWrite, DirectFile, FlushLevel, Flushed, Granted, LockError, LockMode, OpenError, OpenOptions, Policy,
    Probe, ProbeError, Special, Support, SyncMode, settle,
};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use filesystem::{BTRFS_MAGIC, Filesystem, XFS_MAGIC};

pub(crate) use disk::device_facts;
pub(crate) use memory::{make_present, map_huge_pages, reads_need_present_memory, unmap_huge_pages};
pub(crate) use page_cache::{evict, residency, write_back};
pub(crate) use unix::{
    lock_range, read_at, read_vectored_at, sync_directory, try_lock, unlock, write_at, write_vectored_at,
};

/// `STATX_WRITE_ATOMIC` (Linux 6.11) and `STATX_DIO_READ_ALIGN` (Linux 6.14), which rustix 1.1 does
/// not name. Source: Linux `include/uapi/linux/stat.h`.
const STATX_WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);
const STATX_DIO_READ_ALIGN: StatxFlags = StatxFlags::from_bits_retain(0x2_0000);

/// `RWF_ATOMIC` (Linux 6.11) and `RWF_DONTCACHE` (Linux 6.14). Source: Linux
/// `include/uapi/linux/fs.h`.
const RWF_ATOMIC: rustix::io::ReadWriteFlags = rustix::io::ReadWriteFlags::from_bits_retain(0x40);
const RWF_DONTCACHE: rustix::io::ReadWriteFlags = rustix::io::ReadWriteFlags::from_bits_retain(0x80);

// ---------------------------------------------------------------------------------------------
// Opening

pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<DirectFile, OpenError> {
    let io_error = |source: io::Error| OpenError::Io { path: path.to_owned(), source };
    if options.create_new {
        return create(path, options);
    }
    // Checked before opening, because opening a pipe waits for its other end and opening a tape winds it.
    let kind = FileType::from_raw_mode(rustix::fs::stat(path).map_err(|errno| io_error(errno.into()))?.st_mode);
    if let Some(kind) = unix::unfit_kind(kind) {
        return Err(OpenError::NotAFile { path: path.to_owned(), kind });
    }
    let mut flags = base_flags(options);
    if options.exclusive && kind == FileType::BlockDevice {
        flags |= OFlags::EXCL;
    }
    let opened = open_existing(path, flags, options.policy).map_err(|errno| match errno {
        Errno::BUSY => OpenError::Busy { path: path.to_owned(), source: errno.into() },
        errno => io_error(errno.into()),
    })?;
    finish(path, options, opened)
}

/// Creates a file without the flag, and opens it again with the flag. In one step, a filesystem that refuses the flag
/// creates the file, fails with `EINVAL`, and leaves the file.
fn create(path: &Path, options: &OpenOptions) -> Result<DirectFile, OpenError> {
    let io_error = |errno: Errno| OpenError::Io { path: path.to_owned(), source: errno.into() };
    let base = base_flags(options);
    let made = rustix::fs::open(path, base | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(options.mode))
        .map_err(io_error)?;
    let opened = with_direct(&made, base, options.policy).map_err(io_error).and_then(|direct| {
        // The unused descriptor is closed with `made`, or here.
        let (file, refusal) = match direct {
            WithDirect::Reopened(file) => (file, None),
            WithDirect::Same(refusal) => (
                made.try_clone().map(File::from).map_err(|source| OpenError::Io { path: path.to_owned(), source })?,
                refusal,
            ),
        };
        finish(path, options, Opened { file, refusal })
    });
    if opened.is_err() {
        unix::remove_made(path, &made);
    }
    opened
}

/// An open file and, if direct I/O was wanted and refused, the refusal.
struct Opened {
    file: File,
    refusal: Option<Errno>,
}

fn base_flags(options: &OpenOptions) -> OFlags {
    let access = match (options.read, options.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    // libc's numbers: in rustix 1.1.6 `OFlags::DSYNC` is O_SYNC on Linux, which waits for more metadata.
    let sync = match options.sync {
        SyncMode::None => 0,
        SyncMode::Dsync => libc::O_DSYNC,
        SyncMode::Sync => libc::O_SYNC,
    };
    access | OFlags::from_bits_retain(sync as _) | OFlags::CLOEXEC | OFlags::NOCTTY
}

fn open_existing(path: &Path, flags: OFlags, policy: Policy) -> Result<Opened, Errno> {
    let plain = |refusal| {
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Opened { file: fd.into(), refusal })
    };
    if policy == Policy::Off {
        return plain(None);
    }
    match rustix::fs::open(path, flags | OFlags::DIRECT, Mode::empty()) {
        Ok(fd) => Ok(Opened { file: fd.into(), refusal: None }),
        // A filesystem refuses the flag with EINVAL (open(2)); EOPNOTSUPP would be possible. With any other cause
        // the attempt without the flag fails, too.
        Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) => plain(Some(errno)),
        Err(errno) => Err(errno),
    }
}

/// A file that was created without the flag, after the attempt to add it.
enum WithDirect {
    /// Opened again with the flag.
    Reopened(File),
    /// The same file: with the flag set, or without it and with the refusal.
    Same(Option<Errno>),
}

/// Adds the flag to the open file `made`, unless the policy is off.
fn with_direct(made: &OwnedFd, flags: OFlags, policy: Policy) -> Result<WithDirect, Errno> {
    if policy == Policy::Off {
        return Ok(WithDirect::Same(None));
    }
    match rustix::fs::open(descriptor_path(made), flags | OFlags::DIRECT, Mode::empty()) {
        Ok(fd) => return Ok(WithDirect::Reopened(fd.into())),
        Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) => return Ok(WithDirect::Same(Some(errno))),
        // No /proc, or a mode that forbids a second open: set the flag on the open file.
        Err(_) => {}
    }
    match rustix::fs::fcntl_setfl(made, flags | OFlags::DIRECT) {
        Ok(()) => Ok(WithDirect::Same(None)),
        Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) => Ok(WithDirect::Same(Some(errno))),
        Err(errno) => Err(errno),
    }
}

fn descriptor_path(fd: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()))
}

/// Checks, classifies and locks what was opened.
fn finish(path: &Path, options: &OpenOptions, opened: Opened) -> Result<DirectFile, OpenError> {
    let Opened { file, refusal } = opened;
    let io_error = |source: io::Error| OpenError::Io { path: path.to_owned(), source };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(|errno| io_error(errno.into()))?.st_mode);
    if let Some(kind) = unix::unfit_kind(kind) {
        // Replaced between the first check and the open.
        return Err(OpenError::NotAFile { path: path.to_owned(), kind });
    }
    if options.exclusive && kind == FileType::RegularFile {
        try_lock(&file, LockMode::Exclusive).map_err(|error| match error {
            LockError::Held(source) => OpenError::Busy { path: path.to_owned(), source },
            LockError::Io(source) => io_error(source),
            LockError::Unsupported(sentence) => io_error(io::Error::new(io::ErrorKind::Unsupported, sentence)),
        })?;
    }
    if options.policy == Policy::Off {
        let reason = "the policy is off, so the file uses the page cache".to_owned();
        return Ok(DirectFile::new(file, Granted::Buffered, Alignment::not_needed(), reason));
    }
    let outlook = outlook(&file, kind, refusal.map_or(Flag::Accepted, Flag::Refused));
    let found = if options.write { outlook.whole } else { outlook.reading };
    let granted = settle(path, options.policy, &found.support, Granted::Direct, refusal.map(io::Error::from))?;
    let alignment = if granted == Granted::Buffered { Alignment::not_needed() } else { found.alignment };
    Ok(DirectFile::new(file, granted, alignment, found.reason))
}

// ---------------------------------------------------------------------------------------------
// Probing

pub(crate) fn probe(path: &Path) -> Result<Probe, ProbeError> {
    let failed = |errno: Errno| ProbeError::Io { path: None, source: errno.into() };
    let kind = FileType::from_raw_mode(rustix::fs::stat(path).map_err(failed)?.st_mode);
    if let Some(kind) = unix::unfit_kind(kind) {
        return Err(ProbeError::NotAFile { path: None, kind });
    }
    let flags = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    // Never for writing: udev probes a disk again when a descriptor with write access is closed. Without read
    // permission, statx still works on an O_PATH descriptor.
    let fd = match rustix::fs::open(path, flags | OFlags::RDONLY, Mode::empty()) {
        Err(Errno::ACCESS | Errno::PERM) => rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()),
        other => other,
    };
    probe_file(&File::from(fd.map_err(failed)?))
}

pub(crate) fn unnamed_file(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::from_raw_mode(0o600))?.into())
}

pub(crate) fn probe_file(file: &File) -> Result<Probe, ProbeError> {
    let failed = |errno: Errno| ProbeError::Io { path: None, source: errno.into() };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file).map_err(failed)?.st_mode);
    if let Some(kind) = unix::unfit_kind(kind) {
        return Err(ProbeError::NotAFile { path: None, kind });
    }
    // Opened again with the flag: setting it on the given file would change it for every user of the descriptor.
    // For reading only, as in `probe`.
    let again = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let flag = match rustix::fs::open(descriptor_path(file), again, Mode::empty()) {
        Ok(_) => Flag::Accepted,
        Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) => Flag::Refused(errno),
        Err(errno) => Flag::NotAsked(errno),
    };
    let outlook = outlook(file, kind, flag);
    Ok(Probe {
        read_support: outlook.reading.support,
        read_alignment: outlook.reading.alignment,
        support: outlook.whole.support,
        reason: outlook.whole.reason,
        alignment: outlook.whole.alignment,
        atomic_write: outlook.atomic_write,
        atomic_write_answer: outlook.atomic_write_answer,
        uncached_buffered: uncached_buffered(file),
        filesystem: outlook.filesystem,
    })
}

/// Takes an open file: `F_GETFL` returns whether it has `O_DIRECT`, a probe the effect of that.
pub(crate) fn adopt(file: File) -> Result<DirectFile, ProbeError> {
    let flags = rustix::fs::fcntl_getfl(&file).map_err(|errno| ProbeError::Io { path: None, source: errno.into() })?;
    let probe = probe_file(&file)?;
    let is_read_only = !flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    let (support, alignment) =
        if is_read_only { (probe.read_support, probe.read_alignment) } else { (probe.support, probe.alignment) };
    let buffered = |reason| (Granted::Buffered, Alignment::not_needed(), reason);
    let (granted, alignment, reason) = match support {
        _ if !flags.contains(OFlags::DIRECT) => buffered("the file was opened without O_DIRECT".to_owned()),
        Support::Direct => (Granted::Direct, alignment, probe.reason),
        Support::Unknown { reason } => (Granted::Unconfirmed, alignment, reason),
        Support::SilentlyBuffered { reason } | Support::Refused { reason } => buffered(reason),
    };
    DirectFile::adopted(file, granted, alignment, reason).map_err(|source| ProbeError::Io { path: None, source })
}

/// Result of opening the file with `O_DIRECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flag {
    Accepted,
    Refused(Errno),
    /// The file could not be opened.
    NotAsked(Errno),
}

/// What a file offers, before the policy is applied.
struct Outlook {
    /// For reads and writes.
    whole: Found,
    /// For a file opened only for reading.
    reading: Found,
    atomic_write: Option<AtomicWrite>,
    atomic_write_answer: Answer,
    filesystem: String,
}

/// What one direction of transfers offers.
#[derive(Clone)]
struct Found {
    support: Support,
    reason: String,
    alignment: Alignment,
}

/// The answer of `statx` about direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DioAnswer {
    /// Direct, at these alignments in bytes.
    Aligned { memory: u32, write_offset: u32, read_offset: u32 },
    /// Not direct: the answer was zeros.
    Zero,
    /// No answer.
    Missing,
}

fn dio_answer(statx: &Statx) -> DioAnswer {
    if statx.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return DioAnswer::Missing;
    }
    let (memory, write_offset) = (statx.stx_dio_mem_align, statx.stx_dio_offset_align);
    if memory == 0 || write_offset == 0 {
        return DioAnswer::Zero;
    }
    let reads_differ = statx.stx_mask & STATX_DIO_READ_ALIGN.bits() != 0;
    let read_offset = match statx.stx_dio_read_offset_align {
        // statx(2): zero means that reads have the same limit as writes.
        bytes if reads_differ && bytes != 0 => bytes,
        _ => write_offset,
    };
    DioAnswer::Aligned { memory, write_offset, read_offset }
}

fn atomic_answer(statx: &Statx) -> (Answer, Option<AtomicWrite>) {
    if statx.stx_mask & STATX_WRITE_ATOMIC.bits() == 0 {
        return (Answer::Unknown, None);
    }
    if statx.stx_atomic_write_unit_max == 0 {
        return (Answer::No, None);
    }
    let limits = AtomicWrite {
        min_bytes: statx.stx_atomic_write_unit_min,
        max_bytes: statx.stx_atomic_write_unit_max,
        max_fast_bytes: statx.stx_atomic_write_unit_max_opt,
        segments_max: statx.stx_atomic_write_segments_max,
    };
    (Answer::Yes, Some(limits))
}

fn outlook(file: &File, kind: FileType, flag: Flag) -> Outlook {
    let filesystem = Filesystem::of(file, kind);
    let asked = StatxFlags::DIOALIGN | STATX_DIO_READ_ALIGN | STATX_WRITE_ATOMIC;
    let statx = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, asked);
    let answer = statx.as_ref().map_or(DioAnswer::Missing, dio_answer);
    let (atomic_write_answer, atomic_write) = statx.as_ref().map_or((Answer::Unknown, None), atomic_answer);
    let whole = classify(file, kind, &filesystem, answer, flag);
    let reading = match &whole.support {
        Support::SilentlyBuffered { .. } if filesystem.magic == Some(BTRFS_MAGIC) => btrfs_reads(file),
        _ => whole.clone(),
    };
    Outlook { whole, reading, atomic_write, atomic_write_answer, filesystem: filesystem.name }
}

/// Reads of btrfs are direct in whole blocks; only writes use the page cache, because of checksums.
fn btrfs_reads(file: &File) -> Found {
    let alignment = btrfs_block(file).unwrap_or_else(Alignment::unknown);
    let reason = "btrfs reads past the page cache in whole blocks, except compressed data".to_owned();
    Found { support: Support::Direct, reason, alignment }
}

fn classify(file: &File, kind: FileType, filesystem: &Filesystem, answer: DioAnswer, flag: Flag) -> Found {
    let name = &filesystem.name;
    if let Flag::Refused(errno) = flag {
        let reason = format!("{name} refuses O_DIRECT (errno {})", errno.raw_os_error());
        return Found {
            support: Support::Refused { reason: reason.clone() },
            reason,
            alignment: Alignment::not_needed(),
        };
    }
    let found = |support, reason: &str, alignment| Found { support, reason: reason.to_owned(), alignment };
    let buffered =
        |reason: String| found(Support::SilentlyBuffered { reason: reason.clone() }, &reason, Alignment::not_needed());
    match answer {
        DioAnswer::Aligned { memory, write_offset, read_offset } => {
            let alignment = Alignment {
                memory_bytes: Some(memory),
                write_offset_bytes: Some(write_offset),
                read_offset_bytes: Some(read_offset),
                source: AlignmentSource::Statx,
            };
            found(Support::Direct, &format!("statx reports direct I/O on {name}"), alignment)
        }
        DioAnswer::Zero => buffered(format!(
            "statx reports no direct I/O on {name} (alignments of zero), although it accepts O_DIRECT"
        )),
        DioAnswer::Missing => {
            if let Some(why) = filesystem.buffers(file) {
                return buffered(why);
            }
            let (alignment, origin) = alignment_without_statx(file, kind, filesystem);
            if alignment.source == AlignmentSource::XfsDioInfo {
                return found(Support::Direct, "XFS supports direct I/O (XFS_IOC_DIOINFO)", alignment);
            }
            if kind == FileType::BlockDevice {
                // Block devices support O_DIRECT since Linux 2.4.10 and cannot ignore it.
                return found(Support::Direct, "a block device supports direct I/O in units of its sector", alignment);
            }
            if filesystem.magic == Some(BTRFS_MAGIC) {
                let reason = "btrfs supports direct I/O in whole blocks on files without checksums";
                return found(Support::Direct, reason, alignment);
            }
            let taken = match flag {
                Flag::NotAsked(errno) => format!("could not be opened with O_DIRECT (errno {})", errno.raw_os_error()),
                Flag::Accepted | Flag::Refused(_) => "accepts O_DIRECT".to_owned(),
            };
            let reason = format!("{name} {taken}, and statx does not report the effect; {origin}");
            found(Support::Unknown { reason: reason.clone() }, &reason, alignment)
        }
    }
}

/// Returns the size of the blocks that files of this filesystem can share, in bytes, if a direct write of a part of a shared one is
/// accepted and buffered: on XFS. Source: Linux `fs/xfs/xfs_file.c`, `xfs_file_dio_write_unaligned`.
pub(crate) fn shared_block(file: &File) -> Option<u32> {
    if cfg!(miri) {
        // fstatfs(2) is not supported there.
        return None;
    }
    let filesystem = rustix::fs::fstatfs(file).ok().filter(filesystem::is_xfs)?;
    u32::try_from(filesystem.f_bsize).ok().filter(|bytes| *bytes > 0)
}

/// Returns the alignment of the offset of a direct write that the kernel reports now, in bytes.
pub(crate) fn write_offset_now(file: &File) -> Option<u32> {
    let statx = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN | STATX_DIO_READ_ALIGN).ok()?;
    match dio_answer(&statx) {
        DioAnswer::Aligned { write_offset, .. } => Some(write_offset),
        DioAnswer::Zero | DioAnswer::Missing => None,
    }
}

/// `struct dioattr` of XFS: alignment of memory, smallest and largest transfer, in bytes.
/// Source: Linux `fs/xfs/libxfs/xfs_fs.h`; xfsctl(3).
#[repr(C)]
#[derive(Default)]
struct XfsDioInfo {
    memory: u32,
    transfer_min: u32,
    transfer_max: u32,
}
const _: () = assert!(size_of::<XfsDioInfo>() == 12);

fn alignment_without_statx(file: &File, kind: FileType, filesystem: &Filesystem) -> (Alignment, &'static str) {
    if filesystem.magic == Some(XFS_MAGIC) && kind == FileType::RegularFile {
        const XFS_IOC_DIOINFO: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<XfsDioInfo>(b'X', 30);
        // SAFETY: XFS_IOC_DIOINFO on a file of XFS fills exactly one `struct dioattr`.
        let info = unsafe { rustix::ioctl::ioctl(file, rustix::ioctl::Getter::<XFS_IOC_DIOINFO, XfsDioInfo>::new()) };
        if let Ok(XfsDioInfo { memory, transfer_min, .. }) = info
            && memory.is_power_of_two()
            && transfer_min.is_power_of_two()
        {
            let alignment = Alignment {
                memory_bytes: Some(memory),
                write_offset_bytes: Some(transfer_min),
                read_offset_bytes: Some(transfer_min),
                source: AlignmentSource::XfsDioInfo,
            };
            return (alignment, "XFS reports the alignment");
        }
    }
    let sector = if kind == FileType::BlockDevice {
        rustix::fs::ioctl_blksszget(file).ok()
    } else {
        rustix::fs::fstat(file).ok().and_then(|stat| {
            let text = queue_attribute(stat.st_dev, "logical_block_size")?;
            text.parse::<u32>().ok()
        })
    };
    if let Some(bytes) = sector.filter(|bytes| bytes.is_power_of_two()) {
        let alignment = Alignment::uniform(bytes, AlignmentSource::SectorSize);
        return (alignment, "the alignment is that of the device's logical sector");
    }
    if filesystem.magic == Some(BTRFS_MAGIC)
        && let Some(alignment) = btrfs_block(file)
    {
        return (alignment, "the alignment is that of the filesystem's block");
    }
    (Alignment::unknown(), "the device reports no alignment either")
}

/// btrfs may use several devices, so their sectors do not apply; a transfer that is not a multiple of its block is buffered.
fn btrfs_block(file: &File) -> Option<Alignment> {
    let bytes = u32::try_from(rustix::fs::fstatfs(file).ok()?.f_bsize).ok()?;
    bytes.is_power_of_two().then(|| Alignment::uniform(bytes, AlignmentSource::FilesystemBlock))
}

/// Reads an attribute of the request queue of a disk, or of the disk that a partition is on.
fn queue_attribute(device: u64, name: &str) -> Option<String> {
    let root = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // A partition has no queue; its directory is in that of its disk.
    [format!("{root}/queue/{name}"), format!("{root}/../queue/{name}")]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok())
        .map(|text| text.trim().to_owned())
}

/// Aligned memory for a read of a file that may be direct.
#[repr(align(4096))]
struct Block([u8; 4096]);

/// Returns whether kernel and filesystem support `RWF_DONTCACHE`. It reads beyond the end of the file: the kernel checks
/// the flags before the size, and transfers nothing.
fn uncached_buffered(file: &File) -> Answer {
    let Ok(flags) = rustix::fs::fcntl_getfl(file) else { return Answer::Unknown };
    if flags.contains(OFlags::WRONLY) {
        return Answer::Unknown;
    }
    // Near the largest offset, and aligned in case the file is direct.
    let offset = (i64::MAX as u64) - (1 << 20) + 1;
    let mut block = Block([0; 4096]);
    let mut parts = [io::IoSliceMut::new(&mut block.0)];
    match rustix::io::preadv2(file, &mut parts, offset, RWF_DONTCACHE) {
        Ok(0) => Answer::Yes,
        Err(Errno::OPNOTSUPP) => Answer::No,
        _ => Answer::Unknown,
    }
}

// ---------------------------------------------------------------------------------------------
// Flush, space, cache

pub(crate) fn flush(file: &File, level: FlushLevel) -> io::Result<Flushed> {
    // Both calls wait for the data and send the device a flush request, unless the filesystem is mounted with
    // `nobarrier` (fsync(2)). No weaker call has the promise of a barrier: sync_file_range(2) starts writeback and
    // promises nothing.
    if level <= FlushLevel::Data {
        rustix::fs::fdatasync(file)?;
        Ok(Flushed { level: FlushLevel::Data, device_cache_flushed: true, call: "fdatasync" })
    } else {
        rustix::fs::fsync(file)?;
        Ok(Flushed { level: FlushLevel::Device, device_cache_flushed: true, call: "fsync" })
    }
}

pub(crate) fn write_special(file: &File, buffer: &[u8], offset: u64, special: Special) -> io::Result<usize> {
    let flags = match special {
        Special::Atomic => RWF_ATOMIC,
        Special::Uncached => RWF_DONTCACHE,
        Special::Dsync => rustix::io::ReadWriteFlags::DSYNC,
    };
    Ok(rustix::io::pwritev2(file, &[io::IoSlice::new(buffer)], offset, flags)?)
}

pub(crate) fn read_uncached(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::preadv2(file, &mut [io::IoSliceMut::new(buffer)], offset, RWF_DONTCACHE)?)
}

/// Reserves the space and then extends the file. In one step, a filesystem extends the file before its space runs out.
pub(crate) fn preallocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    refuse_without_room(file, len)?;
    // Not posix_fallocate: where the filesystem cannot reserve space, the C library writes zeros.
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, offset, len) {
        // NFS has only the second step.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), offset, len)?),
        Err(errno) => Err(errno.into()),
    }
}

/// Refuses a reservation that cannot succeed on ext4, which keeps the part that it reserved until its space ran out:
/// the filesystem would be full, and the file no longer. XFS reserves up to 32 GiB at once or nothing.
fn refuse_without_room(file: &File, len: u64) -> io::Result<()> {
    let statfs = rustix::fs::fstatfs(file)?;
    if !filesystem::is_ext(&statfs) {
        return Ok(());
    }
    // The range may be reserved in part already; `st_blocks` counts 512 bytes each: stat(2).
    let stat = rustix::fs::fstat(file)?;
    let missing = len.saturating_sub(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512));
    #[allow(clippy::unnecessary_cast)] // the fields are 32 or 64 bits wide, by architecture
    let free = (statfs.f_bfree as u64).saturating_mul(u64::try_from(statfs.f_bsize).unwrap_or(0));
    if missing > free { Err(Errno::NOSPC.into()) } else { Ok(()) }
}

/// Makes the file `length` bytes long if it is shorter, atomically: fallocate never makes a file shorter. The last block is
/// reserved; it counts as a hole. Returns `false` where the filesystem does not support that.
pub(crate) fn extend(file: &File, length: u64) -> io::Result<bool> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), length - 1, 1) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NODEV | Errno::PERM) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens the file again for writing, without `O_DIRECT`. Setting the flag of the given descriptor would change it for
/// each of its users. Unlinked files can be opened, too: proc_pid_fd(5).
pub(crate) fn open_buffered(file: &File) -> io::Result<File> {
    if cfg!(miri) {
        // Descriptors of the interpreted program are not in /proc.
        return file.try_clone();
    }
    let flags = rustix::fs::fcntl_getfl(file)?;
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        return Err(Errno::BADF.into());
    }
    open_again(file, OFlags::WRONLY | flags & OFlags::from_bits_retain(libc::O_SYNC as _))
}

/// Opens the file of `file` a second time for reading through the page cache, without read-ahead: a read adds no page to the cache that it
/// does not cover.
pub(crate) fn open_to_read(file: &File) -> io::Result<File> {
    let opened = open_again(file, OFlags::RDONLY)?;
    rustix::fs::fadvise(&opened, 0, None, rustix::fs::Advice::Random)?;
    Ok(opened)
}

fn open_again(file: &File, flags: OFlags) -> io::Result<File> {
    let again = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = rustix::fs::open(descriptor_path(file), again, Mode::empty())?;
    let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    if identity(rustix::fs::fstat(file)?) != identity(rustix::fs::fstat(&opened)?) {
        return Err(io::Error::other(format!("`{}` is another file", descriptor_path(file).display())));
    }
    Ok(opened.into())
}

/// Allocates the blocks of a part before it is written through the page cache. *(XFS)*
///
/// A buffered write of XFS delays the allocation, and reserves space beyond the end of the file in advance. A direct read of
/// reserved space that a later write has made a part of the file fails with EIO (`iomap_dio_iter`, "Direct I/O collision
/// with buffered writes"; measured on Linux 6.18). An allocated block is not delayed.
pub(crate) fn allocate_part(file: &File, offset: u64, len: u64) -> io::Result<()> {
    if cfg!(miri) || !rustix::fs::fstatfs(file).is_ok_and(|statfs| filesystem::is_xfs(&statfs)) {
        return Ok(());
    }
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, offset, len) {
        // A realtime or zoned XFS does not support it.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::INVAL) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

pub(crate) fn set_nocache(_file: &File, _nocache: bool) -> io::Result<()> {
    let sentence = "F_NOCACHE exists on macOS only; open the file with a policy for direct I/O";
    Err(io::Error::new(io::ErrorKind::Unsupported, sentence))
}

/// Returns the length of a file or the capacity of a disk, in bytes.
pub(crate) fn size_bytes(file: &File) -> io::Result<u64> {
    // std's call, because Miri does not support `fstat` through the C library.
    let metadata = file.metadata()?;
    if metadata.file_type().is_block_device() {
        return Ok(disk::size_bytes(file)?);
    }
    Ok(metadata.len())
}

pub(crate) fn lock_volume(_file: &File, _lock: bool) -> Result<(), LockError> {
    Err(LockError::Unsupported("a volume can be locked on Windows only; on Linux open the disk with `exclusive`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    use trueio_testkit::{loop_of, on_loop, skip};

    /// Classifies a file in `folder` without an answer of statx, as on a kernel before 6.1.
    fn without_statx(folder: &Path) -> Found {
        let file = File::create_new(folder.join("silent")).unwrap();
        let filesystem = Filesystem::of(&file, FileType::RegularFile);
        classify(&file, FileType::RegularFile, &filesystem, DioAnswer::Missing, Flag::Accepted)
    }

    #[test]
    fn ext4_without_statx_is_unknown_at_the_sector_of_its_device() {
        for sector in [512, 4096] {
            let mount = match on_loop("ext4", 64 << 20, sector, "") {
                Ok(mount) => mount,
                Err(reason) => return skip("loop", &reason),
            };
            let Found { support, reason, alignment } = without_statx(&mount.path);
            assert!(matches!(support, Support::Unknown { .. }), "{reason}");
            assert_eq!(alignment, Alignment::uniform(sector, AlignmentSource::SectorSize));
        }
    }

    #[test]
    fn data_journal_without_statx_is_found_in_the_mount_options() {
        match on_loop("ext4", 64 << 20, 512, "data=journal") {
            Ok(mount) => {
                let Found { support, reason, .. } = without_statx(&mount.path);
                assert!(matches!(support, Support::SilentlyBuffered { .. }), "{reason}");
            }
            Err(reason) => skip("loop", &reason),
        }
    }

    #[test]
    fn xfs_without_statx_answers_through_its_own_ioctl() {
        match on_loop("xfs", 512 << 20, 4096, "") {
            Ok(mount) => {
                let Found { support, reason, alignment } = without_statx(&mount.path);
                assert_eq!(support, Support::Direct, "{reason}");
                assert_eq!(alignment.source, AlignmentSource::XfsDioInfo);
                assert_eq!(alignment.write_offset_bytes, Some(4096));
            }
            Err(reason) => skip("xfs", &reason),
        }
    }

    #[test]
    fn a_disk_without_statx_is_direct_at_its_sector() {
        match loop_of(16 << 20, 4096) {
            Ok(below) => {
                let file = File::open(below.path()).unwrap();
                let filesystem = Filesystem::of(&file, FileType::BlockDevice);
                let Found { support, alignment, .. } =
                    classify(&file, FileType::BlockDevice, &filesystem, DioAnswer::Missing, Flag::Accepted);
                assert_eq!(support, Support::Direct);
                assert_eq!(alignment, Alignment::uniform(4096, AlignmentSource::SectorSize));
            }
            Err(reason) => skip("loop", &reason),
        }
    }

    /// An answer of statx with the given mask and direct-I/O numbers.
    fn statx_of(mask: StatxFlags, memory: u32, offset: u32, read_offset: u32) -> Statx {
        // SAFETY: `Statx` is a plain structure of integers, for which zeros are valid.
        let mut statx: Statx = unsafe { std::mem::zeroed() };
        statx.stx_mask = mask.bits();
        statx.stx_dio_mem_align = memory;
        statx.stx_dio_offset_align = offset;
        statx.stx_dio_read_offset_align = read_offset;
        statx
    }

    #[test]
    fn a_missing_answer_of_statx_is_unknown_whatever_its_numbers() {
        assert_eq!(dio_answer(&statx_of(StatxFlags::empty(), 512, 512, 512)), DioAnswer::Missing);
    }

    #[test]
    fn alignments_of_zero_mean_no_direct_io() {
        assert_eq!(dio_answer(&statx_of(StatxFlags::DIOALIGN, 0, 0, 0)), DioAnswer::Zero);
    }

    #[test]
    fn reads_have_their_own_alignment_only_if_statx_reports_one() {
        let both = StatxFlags::DIOALIGN | STATX_DIO_READ_ALIGN;
        let aligned = |read_offset| DioAnswer::Aligned { memory: 512, write_offset: 4096, read_offset };
        assert_eq!(dio_answer(&statx_of(both, 512, 4096, 512)), aligned(512));
        assert_eq!(dio_answer(&statx_of(both, 512, 4096, 0)), aligned(4096));
        assert_eq!(dio_answer(&statx_of(StatxFlags::DIOALIGN, 512, 4096, 512)), aligned(4096));
    }

    #[test]
    fn atomic_limits_are_unknown_zero_or_reported() {
        let mut statx = statx_of(StatxFlags::empty(), 0, 0, 0);
        assert_eq!(atomic_answer(&statx), (Answer::Unknown, None));
        statx.stx_mask = STATX_WRITE_ATOMIC.bits();
        assert_eq!(atomic_answer(&statx), (Answer::No, None));
        statx.stx_atomic_write_unit_min = 4096;
        statx.stx_atomic_write_unit_max = 65536;
        statx.stx_atomic_write_segments_max = 1;
        let limits = AtomicWrite { min_bytes: 4096, max_bytes: 65536, max_fast_bytes: 0, segments_max: 1 };
        assert_eq!(atomic_answer(&statx), (Answer::Yes, Some(limits)));
    }
}
