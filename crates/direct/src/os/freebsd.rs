//! FreeBSD: `O_DIRECT` on files is a hint, and disks have no cache.
//!
//! open(2): the system "will attempt to avoid caching the data", and where it cannot, "minimize the
//! impact". UFS releases the buffer after use; OpenZFS ignores the flag before 2.3, and is direct from 2.3 on. No call
//! reports which applies, so a file is granted at most [`Granted::NotKept`], which [`Policy::Require`] refuses. Disks
//! (`/dev/ada0`, character devices since FreeBSD 4) transfer directly to and from the caller's memory:
//! [`Granted::Direct`].
//!
//! Never run by the project's tests, only type-checked and linked.
//!
//! Source: open(2), fsync(2), posix_fallocate(2), posix_fadvise(2), mincore(2), `<sys/disk.h>`.

use super::{bsd, unix};
use crate::alignment::{Alignment, AlignmentSource};
use crate::types::{
    Answer, DeviceError, DeviceFacts, DirectFile, FlushLevel, Flushed, Granted, LockError, LockMode, OpenError,
    OpenOptions, Policy, Probe, ProbeError, Residency, Special, Support, settle, tidy_serial,
};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Getter, NoArg, Opcode, ioctl, opcode};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;

pub(crate) use unix::{read_at, read_vectored_at, sync_directory, try_lock, unlock, write_at, write_vectored_at};

// Source: `<sys/disk.h>`; DISK_IDENT_SIZE is 256.
const DIOCGSECTORSIZE: Opcode = opcode::read::<u32>(b'd', 128);
const DIOCGMEDIASIZE: Opcode = opcode::read::<i64>(b'd', 129);
const DIOCGFLUSH: Opcode = opcode::none(b'd', 135);
const DIOCGIDENT: Opcode = opcode::read::<[u8; 256]>(b'd', 137);
const DIOCGSTRIPESIZE: Opcode = opcode::read::<i64>(b'd', 139);

pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<DirectFile, OpenError> {
    let direct = OFlags::from_bits_retain(libc::O_DIRECT as _);
    let extra = if options.policy == Policy::Off { OFlags::empty() } else { direct };
    let (file, kind, refusal) = match bsd::open(path, options, extra) {
        // open(2) documents no refusal of O_DIRECT; after one, the attempt without the flag decides.
        Err(OpenError::Io { source, .. })
            if options.policy != Policy::Off && source.raw_os_error() == Some(libc::EINVAL) =>
        {
            let (file, kind) = bsd::open(path, options, OFlags::empty())?;
            (file, kind, Some(Errno::INVAL))
        }
        Err(error) => return Err(error),
        Ok((file, kind)) => (file, kind, None),
    };
    let granted = (|| {
        if kind == FileType::CharacterDevice && sector_bytes(&file).is_err() {
            return Err(OpenError::NotAFile { path: path.to_owned(), kind: "character device" });
        }
        if options.policy == Policy::Off && kind != FileType::CharacterDevice {
            return Ok((
                Granted::Buffered,
                Alignment::not_needed(),
                "the policy is off, so the file uses the page cache".to_owned(),
            ));
        }
        let outlook = outlook(&file, kind, refusal);
        let best = if kind == FileType::CharacterDevice { Granted::Direct } else { Granted::NotKept };
        // A disk has no cache, so every policy grants direct I/O.
        let policy = if best == Granted::Direct { Policy::Require } else { options.policy };
        let granted = settle(path, policy, &outlook.support, best, refusal.map(io::Error::from))?;
        Ok((granted, outlook.alignment, outlook.reason))
    })();
    match granted {
        Ok((granted, alignment, reason)) => Ok(DirectFile::new(file, granted, alignment, reason)),
        Err(error) => Err(bsd::give_up(path, options, &file, error)),
    }
}

struct Outlook {
    support: Support,
    reason: String,
    alignment: Alignment,
}

fn outlook(file: &File, kind: FileType, refusal: Option<Errno>) -> Outlook {
    if kind == FileType::CharacterDevice {
        let bytes = sector_bytes(file).ok().filter(|bytes| bytes.is_power_of_two());
        return Outlook {
            support: Support::Direct,
            reason: "a disk of FreeBSD has no cache".to_owned(),
            alignment: bytes.map_or_else(Alignment::unknown, |b| Alignment::uniform(b, AlignmentSource::SectorSize)),
        };
    }
    if let Some(errno) = refusal {
        let reason = format!("the file refuses O_DIRECT (errno {})", errno.raw_os_error());
        return Outlook {
            support: Support::Refused { reason: reason.clone() },
            reason,
            alignment: Alignment::not_needed(),
        };
    }
    let filesystem = bsd::filesystem_name(file).unwrap_or_else(|_| "the filesystem".to_owned());
    let reason =
        format!("{filesystem} takes O_DIRECT as a hint not to keep pages, and FreeBSD does not report its effect");
    // OpenZFS 2.3 requires whole pages of memory, UFS whole sectors; 4,096 satisfies both.
    let alignment = Alignment::uniform(crate::ASSUMED_ALIGNMENT_BYTES, AlignmentSource::Assumed);
    Outlook { support: Support::Unknown { reason: reason.clone() }, reason, alignment }
}

pub(crate) fn probe(path: &Path) -> Result<Probe, ProbeError> {
    let (file, kind) = bsd::open_to_ask(path).map_err(|errno| ProbeError::Io { path: None, source: errno.into() })?;
    match bsd::unfit_kind(kind) {
        Some(kind) => Err(ProbeError::NotAFile { path: None, kind }),
        None => probe_file(&file),
    }
}

/// FreeBSD has no files without a name; [`crate::probe_directory`] then creates one with a name.
pub(crate) fn unnamed_file(_folder: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn probe_file(file: &File) -> Result<Probe, ProbeError> {
    let failed = |errno: Errno| ProbeError::Io { path: None, source: errno.into() };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file).map_err(failed)?.st_mode);
    if let Some(kind) = bsd::unfit_kind(kind) {
        return Err(ProbeError::NotAFile { path: None, kind });
    }
    if kind == FileType::CharacterDevice && sector_bytes(file).is_err() {
        return Err(ProbeError::NotAFile { path: None, kind: "character device" });
    }
    let filesystem = match kind {
        FileType::RegularFile => {
            bsd::filesystem_name(file).unwrap_or_else(|_| "a filesystem without a name".to_owned())
        }
        _ => "the disk".to_owned(),
    };
    let Outlook { support, reason, alignment } = outlook(file, kind, None);
    Ok(Probe {
        read_support: support.clone(),
        read_alignment: alignment.clone(),
        support,
        reason,
        alignment,
        atomic_write: None,
        atomic_write_answer: Answer::No,
        uncached_buffered: Answer::No,
        filesystem,
    })
}

/// On a disk, writes have reached the device when they return, and `DIOCGFLUSH` flushes its cache. On ZFS `fsync`
/// commits the intent log and flushes the devices. UFS writes the data to the device without a flush, so it supports
/// neither a barrier nor a device flush.
///
/// Source: fsync(2), fdatasync(2), `<sys/disk.h>`; OpenZFS `zil_commit`.
pub(crate) fn flush(file: &File, level: FlushLevel) -> io::Result<Flushed> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode);
    if kind == FileType::CharacterDevice {
        // SAFETY: DIOCGFLUSH takes no argument.
        unsafe { ioctl(file, NoArg::<DIOCGFLUSH>::new()) }?;
        return Ok(Flushed { level: FlushLevel::Device, device_cache_flushed: true, call: "DIOCGFLUSH" });
    }
    let is_zfs = bsd::filesystem_name(file).is_ok_and(|name| name == "zfs");
    match level {
        FlushLevel::Data => {
            rustix::fs::fdatasync(file)?;
            Ok(Flushed { level, device_cache_flushed: is_zfs, call: "fdatasync" })
        }
        FlushLevel::File => {
            rustix::fs::fsync(file)?;
            Ok(Flushed { level, device_cache_flushed: is_zfs, call: "fsync" })
        }
        FlushLevel::Barrier | FlushLevel::Device if is_zfs => {
            rustix::fs::fsync(file)?;
            Ok(Flushed { level: FlushLevel::Device, device_cache_flushed: true, call: "fsync" })
        }
        FlushLevel::Barrier | FlushLevel::Device => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this filesystem does not flush the device; open the disk, or use ZFS",
        )),
    }
}

pub(crate) fn write_special(_file: &File, _buffer: &[u8], _offset: u64, _special: Special) -> io::Result<usize> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "FreeBSD has no flags for a single write"))
}

pub(crate) fn read_uncached(_file: &File, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "FreeBSD has no flags for a single read"))
}

/// Opens the file again for writing, without `O_DIRECT`. Source: open(2), `O_EMPTY_PATH` (FreeBSD 14).
pub(crate) fn open_buffered(file: &File) -> io::Result<File> {
    let sync = rustix::fs::fcntl_getfl(file)? & OFlags::from_bits_retain((libc::O_SYNC | libc::O_DSYNC) as _);
    let empty_path = OFlags::from_bits_retain(libc::O_EMPTY_PATH as _);
    let again = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY | empty_path | sync;
    Ok(rustix::fs::openat(file, c"", again, rustix::fs::Mode::empty())?.into())
}

/// FreeBSD has no cheap count of the cached pages of a range.
pub(crate) fn open_to_read(_file: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nothing is allocated in advance on this system.
pub(crate) fn allocate_part(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Ok(())
}

/// Writes the file to the device and drops the pages of a range.
pub(crate) fn write_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
    rustix::fs::fdatasync(file)?;
    // Not required for the contents.
    let _ = evict(file, offset, len);
    Ok(())
}

/// FreeBSD has no call that makes a file longer and never shorter, except for one that writes.
pub(crate) fn extend(_file: &File, _length: u64) -> io::Result<bool> {
    Ok(false)
}

/// Never makes the file shorter. posix_fallocate(2) returns its error instead of setting `errno`. ZFS cannot reserve space, and returns EINVAL or
/// EOPNOTSUPP.
pub(crate) fn preallocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let offset = i64::try_from(offset).map_err(io::Error::other)?;
    let len = i64::try_from(len).map_err(io::Error::other)?;
    // SAFETY: only numbers are passed.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset, len) } {
        0 => Ok(()),
        libc::EINVAL | libc::EOPNOTSUPP => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "this filesystem cannot reserve space"))
        }
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Takes over an open file: `F_GETFL` reports `O_DIRECT`. Source: fcntl(2).
pub(crate) fn adopt(file: File) -> Result<DirectFile, ProbeError> {
    let flags = rustix::fs::fcntl_getfl(&file).map_err(|errno| ProbeError::Io { path: None, source: errno.into() })?;
    let probe = probe_file(&file)?;
    let (granted, alignment, reason) = match probe.support {
        Support::Direct => (Granted::Direct, probe.alignment, probe.reason),
        _ if flags.contains(OFlags::from_bits_retain(libc::O_DIRECT as _)) => {
            (Granted::NotKept, probe.alignment, probe.reason)
        }
        _ => (Granted::Buffered, Alignment::not_needed(), "the file was opened without O_DIRECT".to_owned()),
    };
    DirectFile::adopted(file, granted, alignment, reason).map_err(|source| ProbeError::Io { path: None, source })
}

/// By default `mincore` counts mapped pages instead of cached ones, and a new mapping has none. Source: mincore(2),
/// `vm.mincore_mapped`.
pub(crate) fn residency(file: &File, offset: u64, len: u64) -> io::Result<Residency> {
    unix::has_pages(file)?;
    let mut mapped_only: libc::c_int = 1;
    let mut length = size_of::<libc::c_int>();
    // SAFETY: the buffer is one `int`, and `length` is its size.
    let code = unsafe {
        libc::sysctlbyname(
            c"vm.mincore_mapped".as_ptr(),
            (&raw mut mapped_only).cast(),
            &raw mut length,
            std::ptr::null(),
            0,
        )
    };
    if code == 0 && mapped_only != 0 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "mincore counts mapped pages only; with `sysctl vm.mincore_mapped=0` it counts cached ones",
        ));
    }
    unix::residency_by_mincore(file, offset, len, file.metadata()?.len())
}

/// FreeBSD makes superpages by itself.
pub(crate) fn map_huge_pages(_length: usize, _align: usize) -> Option<NonNull<u8>> {
    None
}

/// Never called: nothing is mapped here.
///
/// # Safety
/// None.
pub(crate) unsafe fn unmap_huge_pages(_start: NonNull<u8>, _length: usize) {}

pub(crate) fn set_nocache(_file: &File, _nocache: bool) -> io::Result<()> {
    let sentence = "F_NOCACHE exists on macOS only; open the file with a policy for direct I/O";
    Err(io::Error::new(io::ErrorKind::Unsupported, sentence))
}

pub(crate) fn evict(file: &File, offset: u64, len: u64) -> io::Result<()> {
    unix::has_pages(file)?;
    let offset = i64::try_from(offset).map_err(io::Error::other)?;
    let len = i64::try_from(len).map_err(io::Error::other)?;
    // SAFETY: only numbers are passed. The error is returned, not set: posix_fadvise(2).
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, len, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn sector_bytes(file: &File) -> Result<u32, Errno> {
    // SAFETY: DIOCGSECTORSIZE fills one `u_int`.
    unsafe { ioctl(file, Getter::<DIOCGSECTORSIZE, u32>::new()) }
}

pub(crate) fn device_facts(file: &File) -> Result<DeviceFacts, DeviceError> {
    let failed = |call| move |errno: Errno| DeviceError::Io { call, source: errno.into() };
    match FileType::from_raw_mode(rustix::fs::fstat(file).map_err(failed("fstat"))?.st_mode) {
        FileType::BlockDevice | FileType::CharacterDevice => {}
        FileType::RegularFile => return Err(DeviceError::NotADevice { kind: "regular file" }),
        kind => return Err(DeviceError::NotADevice { kind: unix::unfit_kind(kind).unwrap_or("file") }),
    }
    // SAFETY: each call fills the one value of the type that its code carries.
    let (size, stripe, ident) = unsafe {
        (
            ioctl(file, Getter::<DIOCGMEDIASIZE, i64>::new()).map_err(failed("DIOCGMEDIASIZE"))?,
            ioctl(file, Getter::<DIOCGSTRIPESIZE, i64>::new()).ok(),
            ioctl(file, Getter::<DIOCGIDENT, [u8; 256]>::new()).ok(),
        )
    };
    let serial = ident.and_then(|bytes| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        tidy_serial(&bytes[..end])
    });
    Ok(DeviceFacts {
        size_bytes: u64::try_from(size).unwrap_or(0),
        logical_sector_bytes: sector_bytes(file).map_err(failed("DIOCGSECTORSIZE"))?,
        // The stripe is the physical sector of a disk, and the chunk of a RAID; 0 means unknown.
        physical_sector_bytes: stripe.and_then(|bytes| u32::try_from(bytes).ok()).filter(|bytes| *bytes > 0),
        minimum_io_bytes: None,
        optimal_io_bytes: None,
        is_rotational: None,
        serial_source: serial.as_ref().map(|_| "DIOCGIDENT"),
        serial,
    })
}

pub(crate) fn lock_range(_file: &File, _mode: Option<LockMode>, _offset: u64, _len: u64) -> Result<(), LockError> {
    // fcntl(2) offers F_SETLK only, which belongs to the process and is lost with any descriptor.
    Err(LockError::Unsupported("FreeBSD has no range locks that belong to the open file; lock the whole file"))
}

/// Returns the length of a file or the capacity of a disk, in bytes.
pub(crate) fn size_bytes(file: &File) -> io::Result<u64> {
    bsd::size_bytes(file, device_facts)
}

pub(crate) fn lock_volume(_file: &File, _lock: bool) -> Result<(), LockError> {
    Err(LockError::Unsupported("a volume can be locked on Windows only"))
}
