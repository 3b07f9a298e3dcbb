//! macOS has no `O_DIRECT`. `F_NOCACHE` requests that the kernel keep no new pages.
//!
//! Pages that were cached earlier are still used, and small or misaligned transfers may use the cache. So a file is
//! granted at most [`Granted::NotKept`], which [`Policy::Require`] refuses. Raw disks (`/dev/rdiskN`, character devices)
//! have no cache: [`Granted::Direct`].
//!
//! Never run by the project's tests, only type-checked and linked.
//!
//! Source: fcntl(2) (`F_NOCACHE`, `F_FULLFSYNC`, `F_BARRIERFSYNC`, `F_PREALLOCATE`), fsync(2),
//! `<sys/disk.h>`.

use super::{bsd, unix};
use crate::alignment::{Alignment, AlignmentSource};
use crate::types::{
    Answer, DeviceError, DeviceFacts, DirectFile, FlushLevel, Flushed, Granted, LockError, OpenError, OpenOptions,
    Policy, Probe, ProbeError, Residency, Special, Support, settle,
};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;

pub(crate) use unix::{lock_range, read_at, sync_directory, try_lock, unlock, write_at};

// Source: `<sys/disk.h>`.
const DKIOCGETBLOCKSIZE: Opcode = opcode::read::<u32>(b'd', 24);
const DKIOCGETBLOCKCOUNT: Opcode = opcode::read::<u64>(b'd', 25);
const DKIOCGETPHYSICALBLOCKSIZE: Opcode = opcode::read::<u32>(b'd', 77);
const DKIOCISSOLIDSTATE: Opcode = opcode::read::<u32>(b'd', 79);

pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<DirectFile, OpenError> {
    let (file, kind) = bsd::open(path, options, OFlags::empty())?;
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
        let refusal = match kind {
            FileType::CharacterDevice => None,
            _ => rustix::fs::fcntl_nocache(&file, true).err(),
        };
        let outlook = outlook(&file, kind, refusal);
        let best = if kind == FileType::CharacterDevice { Granted::Direct } else { Granted::NotKept };
        // A raw disk has no cache, so every policy grants direct I/O.
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
            reason: "a raw disk has no cache".to_owned(),
            alignment: bytes.map_or_else(Alignment::unknown, |b| Alignment::uniform(b, AlignmentSource::SectorSize)),
        };
    }
    if let Some(errno) = refusal {
        let reason = format!("the file refuses F_NOCACHE (errno {})", errno.raw_os_error());
        return Outlook {
            support: Support::Refused { reason: reason.clone() },
            reason,
            alignment: Alignment::not_needed(),
        };
    }
    let reason = "macOS has no direct I/O on files; with F_NOCACHE new pages are not kept, and pages that were cached \
                  earlier are still used"
        .to_owned();
    Outlook { support: Support::Unknown { reason: reason.clone() }, reason, alignment: Alignment::not_needed() }
}

pub(crate) fn probe(path: &Path) -> Result<Probe, ProbeError> {
    let (file, kind) = bsd::open_to_ask(path).map_err(|errno| ProbeError::Io { path: None, source: errno.into() })?;
    match bsd::unfit_kind(kind) {
        Some(kind) => Err(ProbeError::NotAFile { path: None, kind }),
        None => probe_file(&file),
    }
}

/// macOS has no files without a name; [`crate::probe_directory`] then creates one with a name.
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

/// | level      | call             | promise, from fsync(2) and fcntl(2)                                   |
/// |------------|------------------|-----------------------------------------------------------------------|
/// | Barrier    | `F_BARRIERFSYNC` | as `fsync`, and the drive writes earlier data before later data       |
/// | Data, File | `fsync`          | sent to the drive, which may keep the data in its cache and reorder it |
/// | Device     | `F_FULLFSYNC`    | the drive has flushed its cache, too                                  |
pub(crate) fn flush(file: &File, level: FlushLevel) -> io::Result<Flushed> {
    match level {
        FlushLevel::Barrier => {
            // SAFETY: F_BARRIERFSYNC takes no argument that the kernel reads or writes.
            let code = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_BARRIERFSYNC, 1 as libc::c_int) };
            if code == 0 {
                return Ok(Flushed { level, device_cache_flushed: false, call: "F_BARRIERFSYNC" });
            }
            // Filesystems without a barrier support the stronger call, or fail.
            rustix::fs::fcntl_fullfsync(file)?;
            Ok(Flushed { level: FlushLevel::Device, device_cache_flushed: true, call: "F_FULLFSYNC" })
        }
        FlushLevel::Data | FlushLevel::File => {
            rustix::fs::fsync(file)?;
            Ok(Flushed { level: FlushLevel::File, device_cache_flushed: false, call: "fsync" })
        }
        FlushLevel::Device => {
            // No fallback to fsync, whose promise is weaker.
            rustix::fs::fcntl_fullfsync(file)?;
            Ok(Flushed { level, device_cache_flushed: true, call: "F_FULLFSYNC" })
        }
    }
}

/// Reads into the first buffer that is not empty; the caller continues with the next. `preadv` exists since macOS 11 only.
pub(crate) fn read_vectored_at(file: &File, buffers: &mut [io::IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
    let Some(buffer) = buffers.iter_mut().find(|buffer| !buffer.is_empty()) else { return Ok(0) };
    read_at(file, buffer, offset)
}

/// Writes the first buffer that is not empty; the caller continues with the next.
pub(crate) fn write_vectored_at(file: &File, buffers: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
    let Some(buffer) = buffers.iter().find(|buffer| !buffer.is_empty()) else { return Ok(0) };
    write_at(file, buffer, offset)
}

pub(crate) fn write_special(_file: &File, _buffer: &[u8], _offset: u64, _special: Special) -> io::Result<usize> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "macOS has no flags for a single write"))
}

pub(crate) fn read_uncached(_file: &File, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "macOS has no flags for a single read"))
}

/// Reserves space after the blocks that the file occupies; holes before them cannot be filled. The first request is for
/// contiguous space, the second for any. A file that is shorter gets a zero as its last byte: a byte that another
/// writer writes there in the same moment may be lost, and nothing else. Source: fcntl(2), `F_PREALLOCATE`.
pub(crate) fn preallocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let stat = rustix::fs::fstat(file)?;
    let end = offset + len;
    // `st_blocks` counts 512 bytes each, whatever the filesystem's block is: stat(2).
    let missing = end.saturating_sub(u64::try_from(stat.st_blocks).unwrap_or(0) * 512);
    if missing > 0 {
        let mut store = libc::fstore_t {
            fst_flags: libc::F_ALLOCATECONTIG | libc::F_ALLOCATEALL,
            fst_posmode: libc::F_PEOFPOSMODE,
            fst_offset: 0,
            fst_length: i64::try_from(missing).map_err(io::Error::other)?,
            fst_bytesalloc: 0,
        };
        // SAFETY: `store` is a valid `fstore_t` for the length of the call, also below.
        let in_one_piece = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PREALLOCATE, &raw mut store) };
        if in_one_piece != 0 {
            store.fst_flags = libc::F_ALLOCATEALL;
            // SAFETY: as above.
            let in_any = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PREALLOCATE, &raw mut store) };
            if in_any != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    if u64::try_from(stat.st_size).map_err(io::Error::other)? < end {
        // Not ftruncate, which would cut what another writer appended meanwhile.
        write_at(file, &[0], end - 1)?;
    }
    Ok(())
}

/// macOS has no call that makes a file longer and never shorter, except for one that writes.
pub(crate) fn extend(_file: &File, _length: u64) -> io::Result<bool> {
    Ok(false)
}

/// Files of macOS accept any alignment, so they need no second descriptor.
pub(crate) fn open_buffered(_file: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A read with `F_NOCACHE` takes cached pages from the cache already.
pub(crate) fn open_to_read(_file: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nothing is allocated in advance on this system.
pub(crate) fn allocate_part(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Ok(())
}

/// See [`open_buffered`].
pub(crate) fn write_back(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Takes over an open file. `F_NOCACHE` can be set and not read back, so that a regular file counts as buffered.
pub(crate) fn adopt(file: File) -> Result<DirectFile, ProbeError> {
    let probe = probe_file(&file)?;
    let (granted, alignment, reason) = match probe.support {
        Support::Direct => (Granted::Direct, probe.alignment, probe.reason),
        _ => {
            let reason = "macOS does not report whether F_NOCACHE is set on an open file";
            (Granted::Buffered, Alignment::not_needed(), reason.to_owned())
        }
    };
    DirectFile::adopted(file, granted, alignment, reason).map_err(|source| ProbeError::Io { path: None, source })
}

pub(crate) fn residency(file: &File, offset: u64, len: u64) -> io::Result<Residency> {
    unix::has_pages(file)?;
    unix::residency_by_mincore(file, offset, len, file.metadata()?.len())
}

/// macOS provides huge pages only through a flag of its own allocation calls.
pub(crate) fn map_huge_pages(_length: usize, _align: usize) -> Option<NonNull<u8>> {
    None
}

/// Never called: nothing is mapped here.
///
/// # Safety
/// None.
pub(crate) unsafe fn unmap_huge_pages(_start: NonNull<u8>, _length: usize) {}

pub(crate) fn set_nocache(file: &File, nocache: bool) -> io::Result<()> {
    Ok(rustix::fs::fcntl_nocache(file, nocache)?)
}

/// macOS has no `posix_fadvise`. `MS_INVALIDATE` on a shared mapping drops its clean pages. Source: msync(2); vmtouch
/// does the same.
pub(crate) fn evict(file: &File, offset: u64, len: u64) -> io::Result<()> {
    unix::has_pages(file)?;
    let page = unix::page_size_bytes();
    let (start, end) = unix::page_range(offset, len, file.metadata()?.len(), page);
    let length = usize::try_from(end - start).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(());
    }
    // SAFETY: a new mapping at an address of the kernel's choice, whose memory is never read.
    let map = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            length,
            rustix::mm::ProtFlags::READ,
            rustix::mm::MapFlags::SHARED,
            file,
            start,
        )
    }?;
    // SAFETY: the mapping made above, `length` bytes long; nothing else refers to it.
    let result = unsafe {
        let result = rustix::mm::msync(map, length, rustix::mm::MsyncFlags::INVALIDATE);
        rustix::mm::munmap(map, length)?;
        result
    };
    Ok(result?)
}

fn sector_bytes(file: &File) -> Result<u32, Errno> {
    // SAFETY: DKIOCGETBLOCKSIZE fills one 32-bit number.
    unsafe { ioctl(file, Getter::<DKIOCGETBLOCKSIZE, u32>::new()) }
}

pub(crate) fn device_facts(file: &File) -> Result<DeviceFacts, DeviceError> {
    let failed = |call| move |errno: Errno| DeviceError::Io { call, source: errno.into() };
    match FileType::from_raw_mode(rustix::fs::fstat(file).map_err(failed("fstat"))?.st_mode) {
        FileType::BlockDevice | FileType::CharacterDevice => {}
        FileType::RegularFile => return Err(DeviceError::NotADevice { kind: "regular file" }),
        kind => return Err(DeviceError::NotADevice { kind: unix::unfit_kind(kind).unwrap_or("file") }),
    }
    let logical_sector_bytes = sector_bytes(file).map_err(failed("DKIOCGETBLOCKSIZE"))?;
    // SAFETY: each call fills the one number of the type that its code carries.
    let (count, physical, is_solid_state) = unsafe {
        (
            ioctl(file, Getter::<DKIOCGETBLOCKCOUNT, u64>::new()).map_err(failed("DKIOCGETBLOCKCOUNT"))?,
            ioctl(file, Getter::<DKIOCGETPHYSICALBLOCKSIZE, u32>::new()).ok(),
            ioctl(file, Getter::<DKIOCISSOLIDSTATE, u32>::new()).ok(),
        )
    };
    Ok(DeviceFacts {
        size_bytes: count.saturating_mul(u64::from(logical_sector_bytes)),
        logical_sector_bytes,
        physical_sector_bytes: physical.filter(|bytes| *bytes > 0),
        minimum_io_bytes: None,
        optimal_io_bytes: None,
        is_rotational: is_solid_state.map(|number| number == 0),
        // Only IOKit reports it, and this crate links no framework.
        serial: None,
        serial_source: None,
    })
}

/// Returns the length of a file or the capacity of a disk, in bytes.
pub(crate) fn size_bytes(file: &File) -> io::Result<u64> {
    bsd::size_bytes(file, device_facts)
}

pub(crate) fn lock_volume(_file: &File, _lock: bool) -> Result<(), LockError> {
    Err(LockError::Unsupported("a volume can be locked on Windows only"))
}
