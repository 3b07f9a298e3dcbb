//! Calls that are the same on Linux, macOS and FreeBSD.

use crate::block_locks::DiskKey;
use crate::types::{LockError, LockMode, Residency};
use rustix::fs::{FileType, FlockOperation, SeekFrom};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
#[cfg(any(target_os = "linux", target_os = "macos"))]
use std::os::fd::AsRawFd;
use std::path::Path;

/// Returns the kind of a file without data at offsets; [`None`] for regular files and block devices.
pub(crate) fn unfit_kind(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile | FileType::BlockDevice => None,
        FileType::Directory => Some("directory"),
        FileType::Fifo => Some("pipe"),
        FileType::Socket => Some("socket"),
        FileType::CharacterDevice => Some("character device"),
        FileType::Symlink => Some("symbolic link"),
        FileType::Unknown => Some("file of unknown kind"),
    }
}

/// Returns the error number for a kind of [`unfit_kind`] that open(2) has one for, if it is opened to be written.
pub(crate) fn number_of_kind(kind: &str) -> Option<i32> {
    (kind == "directory").then_some(libc::EISDIR)
}

/// Whether the file is open to append: then pwrite(2) of Linux ignores the offset (BUGS).
pub(crate) fn appends(file: &File) -> io::Result<bool> {
    Ok(rustix::fs::fcntl_getfl(file)?.contains(rustix::fs::OFlags::APPEND))
}

/// Returns the number of the disk that is open as `file`; [`None`] for a regular file.
pub(crate) fn disk_key(file: &File) -> Option<DiskKey> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    // std's call, because Miri does not support `fstat` through the C library.
    let metadata = file.metadata().ok()?;
    let kind = metadata.file_type();
    (kind.is_block_device() || kind.is_char_device()).then(|| metadata.rdev())
}

/// Sets the length of a regular file. ftruncate(2) fails with EBADF or EINVAL if the file is not open for writing; this
/// returns EBADF.
pub(crate) fn set_length(file: &File, length: u64) -> io::Result<()> {
    use rustix::fs::OFlags;
    file.set_len(length).map_err(|error| {
        let is_writable =
            rustix::fs::fcntl_getfl(file).is_ok_and(|mode| mode.intersects(OFlags::WRONLY | OFlags::RDWR));
        if error.raw_os_error() == Some(libc::EINVAL) && !is_writable { Errno::BADF.into() } else { error }
    })
}

/// Removes the file `made` at `path` after opening it failed, unless another file has taken its place.
pub(crate) fn remove_made(path: &Path, made: impl AsFd) {
    let identity = rustix::fs::fstat(made).map(|stat| (stat.st_dev, stat.st_ino));
    let now = rustix::fs::lstat(path).map(|stat| (stat.st_dev, stat.st_ino));
    if identity.is_ok() && identity == now {
        let _ = rustix::fs::unlink(path);
    }
}

/// Whether `path` leads to the file or disk that is open as `file`.
pub(crate) fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = match (rustix::fs::fstat(file)?, rustix::fs::stat(path)) {
        (open, Ok(named)) => (open, named),
        (_, Err(Errno::NOENT)) => return Ok(false),
        (_, Err(errno)) => return Err(errno.into()),
    };
    let is_device = |mode| matches!(FileType::from_raw_mode(mode), FileType::BlockDevice | FileType::CharacterDevice);
    // Two names of a device may be two inodes.
    if is_device(open.st_mode) && is_device(named.st_mode) {
        return Ok(open.st_rdev == named.st_rdev);
    }
    Ok((open.st_dev, open.st_ino) == (named.st_dev, named.st_ino))
}

/// Returns the first data of a file within `range`; an empty range at its end if there is only a hole. A filesystem
/// that does not report holes has none. Moves the file's position. Source: lseek(2).
pub(crate) fn next_data(file: &File, range: Range<u64>) -> io::Result<Range<u64>> {
    let start = match rustix::fs::seek(file, SeekFrom::Data(range.start)) {
        Ok(start) => start.min(range.end),
        Err(Errno::NXIO) => return Ok(range.end..range.end),
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY) => return Ok(range),
        Err(errno) => return Err(errno.into()),
    };
    match rustix::fs::seek(file, SeekFrom::Hole(start)) {
        Ok(end) => Ok(start..end.min(range.end).max(start)),
        // The file was cut meanwhile.
        Err(Errno::NXIO) => Ok(start..range.end),
        Err(errno) => Err(errno.into()),
    }
}

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pread(file, buffer, offset)?)
}

pub(crate) fn write_at(file: &File, buffer: &[u8], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pwrite(file, buffer, offset)?)
}

#[cfg(not(target_os = "macos"))]
pub(crate) fn read_vectored_at(file: &File, buffers: &mut [io::IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::preadv(file, buffers, offset)?)
}

#[cfg(not(target_os = "macos"))]
pub(crate) fn write_vectored_at(file: &File, buffers: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pwritev(file, buffers, offset)?)
}

pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let directory = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(rustix::fs::fsync(directory)?)
}

pub(crate) fn try_lock(file: &File, mode: LockMode) -> Result<(), LockError> {
    let operation = match mode {
        LockMode::Shared => FlockOperation::NonBlockingLockShared,
        LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    rustix::fs::flock(file, operation).map_err(|errno| LockError::from_system(errno.into()))
}

pub(crate) fn unlock(file: &File) -> Result<(), LockError> {
    rustix::fs::flock(file, FlockOperation::Unlock).map_err(|errno| LockError::from_system(errno.into()))
}

/// Refuses pipes and directories, which would otherwise be reported as files of zero pages.
pub(crate) fn has_pages(file: &File) -> io::Result<()> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode);
    match unfit_kind(kind) {
        // Every disk of FreeBSD, and the raw ones of macOS, are character devices.
        Some("character device") if !cfg!(target_os = "linux") => Ok(()),
        Some("directory") => Err(Errno::ISDIR.into()),
        Some(kind) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a {kind} has no pages in the page cache; only regular files and disks have"),
        )),
        None => Ok(()),
    }
}

/// Size of one mapping for `mincore`: 1 GiB, which is 262,144 pages of 4 KiB. The answer takes 256 KiB.
const WINDOW_BYTES: u64 = 1 << 30;

/// Counts resident pages through `mincore`. `size_bytes` is the size of the file or disk.
pub(crate) fn residency_by_mincore(file: &File, offset: u64, len: u64, size_bytes: u64) -> io::Result<Residency> {
    let page = page_size_bytes();
    let (start, end) = page_range(offset, len, size_bytes, page);
    let mut cached_pages = 0;
    let mut position = start;
    while position < end {
        let window = (end - position).min(WINDOW_BYTES);
        let pages = usize::try_from(window.div_ceil(page)).map_err(io::Error::other)?;
        let window = usize::try_from(window).map_err(io::Error::other)?;
        let mut answer = vec![0u8; pages];
        // SAFETY: a new mapping at an address of the kernel's choice; its memory is never read, so a
        // file that shrinks meanwhile cannot raise SIGBUS.
        let map = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                window,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::SHARED,
                file,
                position,
            )
        }?;
        // SAFETY: `map` is `window` bytes long and `answer` has one byte for each of its pages.
        let code = unsafe { libc::mincore(map.cast(), window, answer.as_mut_ptr().cast()) };
        let failure = io::Error::last_os_error();
        // SAFETY: the mapping made above; nothing else refers to it.
        unsafe { rustix::mm::munmap(map, window) }?;
        if code != 0 {
            return Err(failure);
        }
        cached_pages += answer.iter().filter(|byte| **byte & 1 == 1).count() as u64;
        position += window as u64;
    }
    Ok(Residency {
        cached_pages,
        dirty_pages: None,
        writeback_pages: None,
        evicted_pages: None,
        page_size_bytes: page,
        file_pages: (end - start).div_ceil(page),
        source: "mincore",
    })
}

/// Returns the range in bytes, widened to a whole page at its start and cut at the end of the file. Start and end are
/// equal if the range contains nothing of the file.
pub(crate) fn page_range(offset: u64, len: u64, size_bytes: u64, page: u64) -> (u64, u64) {
    let start = crate::round_down(offset, page);
    let end = if len == 0 { size_bytes } else { offset.saturating_add(len).min(size_bytes) };
    (start, if offset < size_bytes { end } else { start })
}

/// Returns the size of a page, in bytes.
pub(crate) fn page_size_bytes() -> u64 {
    // SAFETY: `sysconf` only reads.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).ok().filter(|size| size.is_power_of_two()).expect("every system has a page size")
}

/// Sets an open-file-description lock; `None` releases it.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) fn lock_range(file: &File, mode: Option<LockMode>, offset: u64, len: u64) -> Result<(), LockError> {
    let too_far =
        |_| LockError::Io(io::Error::new(io::ErrorKind::InvalidInput, "the range ends beyond the largest file offset"));
    // SAFETY: `flock` is a plain structure of integers, for which zeros are valid. `l_pid` must be
    // zero for open-file-description locks.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = match mode {
        Some(LockMode::Shared) => libc::F_RDLCK,
        Some(LockMode::Exclusive) => libc::F_WRLCK,
        None => libc::F_UNLCK,
    } as _;
    request.l_whence = libc::SEEK_SET as _;
    request.l_start = offset.try_into().map_err(too_far)?;
    request.l_len = len.try_into().map_err(too_far)?;
    // SAFETY: `request` is a valid `flock` structure for the length of the call.
    let code = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut request) };
    if code == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // POSIX lets a conflict be EACCES or EAGAIN: fcntl(2).
    Err(if error.raw_os_error() == Some(libc::EACCES) { LockError::Held(error) } else { LockError::from_system(error) })
}

#[cfg(test)]
mod tests {
    use super::page_range;

    #[test]
    fn a_page_range_is_widened_at_its_start_and_cut_at_the_end_of_the_file() {
        assert_eq!(page_range(0, 0, 10_000, 4096), (0, 10_000));
        assert_eq!(page_range(5000, 100, 10_000, 4096), (4096, 5100));
        assert_eq!(page_range(5000, 100_000, 10_000, 4096), (4096, 10_000));
        assert_eq!(page_range(9999, 1, 10_000, 4096), (8192, 10_000));
        assert_eq!(page_range(0, 0, 0, 4096), (0, 0));
    }

    #[test]
    fn a_page_range_beyond_the_end_of_the_file_is_empty() {
        for offset in [10_000, 20_000, u64::MAX] {
            let (start, end) = page_range(offset, u64::MAX, 10_000, 4096);
            assert_eq!(start, end);
        }
    }
}
