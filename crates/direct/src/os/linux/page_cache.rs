//! The pages of a file in Linux's page cache: written back, counted and dropped.
//!
//! Source: sync_file_range(2), posix_fadvise(2), mincore(2), Linux `mm/filemap.c` (`cachestat`, Linux 6.5).

use crate::os::unix;
use crate::types::Residency;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;

/// Writes the pages of a range to the device, waits for that, and drops them: what a direct write does. Unlike
/// fdatasync(2), it neither flushes the device's cache nor commits the filesystem's journal.
pub(crate) fn write_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
    if cfg!(miri) {
        return file.sync_data();
    }
    let page = unix::page_size_bytes();
    let start = crate::round_down(offset, page);
    let end = crate::round_up(offset + len, page).unwrap_or(i64::MAX as u64);
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: only numbers are passed.
    let code = unsafe { libc::sync_file_range(file.as_raw_fd(), start as _, (end - start) as _, flags) };
    if code != 0 {
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // A filter of system calls (containers), or a filesystem without pages of its own.
            Some(libc::ENOSYS | libc::EPERM | libc::EINVAL | libc::ESPIPE) => rustix::fs::fdatasync(file)?,
            _ => return Err(error),
        }
    }
    // Not required for the contents: a direct transfer drops the pages of its range itself.
    let _ = evict(file, start, end - start);
    Ok(())
}

/// `struct cachestat_range` and `struct cachestat`. Source: Linux `include/uapi/linux/mman.h`.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}
const _: () = assert!(size_of::<CachestatRange>() == 16 && size_of::<Cachestat>() == 40);

/// `cachestat` has the number 451 wherever numbers are shared by all architectures.
/// Source: Linux `include/uapi/asm-generic/unistd.h`.
#[cfg(not(any(target_arch = "mips", target_arch = "mips64", target_arch = "mips32r6", target_arch = "mips64r6")))]
const SYS_CACHESTAT: Option<libc::c_long> = Some(451);
#[cfg(any(target_arch = "mips", target_arch = "mips64", target_arch = "mips32r6", target_arch = "mips64r6"))]
const SYS_CACHESTAT: Option<libc::c_long> = None;

pub(crate) fn residency(file: &File, offset: u64, len: u64) -> io::Result<Residency> {
    unix::has_pages(file)?;
    let size_bytes = super::size_bytes(file)?;
    let page = unix::page_size_bytes();
    let (start, end) = unix::page_range(offset, len, size_bytes, page);
    let file_pages = (end - start).div_ceil(page);
    // The kernel takes a length of zero as "to the end", but here the range is empty.
    if let Some(number) = SYS_CACHESTAT.filter(|_| file_pages > 0) {
        let range = CachestatRange { offset: start, length: end - start };
        let mut counted = Cachestat::default();
        // SAFETY: both structures have the kernel's layout (asserted above) and outlive the call.
        let code =
            unsafe { libc::syscall(number, file.as_raw_fd(), &raw const range, &raw mut counted, 0 as libc::c_uint) };
        if code == 0 {
            return Ok(Residency {
                cached_pages: counted.cached,
                dirty_pages: Some(counted.dirty),
                writeback_pages: Some(counted.writeback),
                evicted_pages: Some(counted.evicted),
                page_size_bytes: page,
                file_pages,
                source: "cachestat",
            });
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // Before Linux 6.5, and on hugetlbfs.
            Some(libc::ENOSYS | libc::EOPNOTSUPP) => {}
            // A filter of system calls (containers), or a file that is neither ours nor writable. For such a file
            // mincore reports all pages as resident, to reveal nothing: Linux `mm/mincore.c`.
            Some(libc::EPERM) if may_be_counted(file) => {}
            _ => return Err(error),
        }
    }
    if file_pages > 0 && !may_be_counted(file) {
        return Err(io::Error::from(Errno::PERM));
    }
    unix::residency_by_mincore(file, offset, len, size_bytes)
}

/// Returns whether the kernel reveals the residency of this file: it is ours, or open for writing.
fn may_be_counted(file: &File) -> bool {
    let is_ours = rustix::fs::fstat(file).is_ok_and(|stat| {
        let user = rustix::process::geteuid();
        user.is_root() || user.as_raw() == stat.st_uid
    });
    is_ours || rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.intersects(OFlags::RDWR | OFlags::WRONLY))
}

pub(crate) fn evict(file: &File, offset: u64, len: u64) -> io::Result<()> {
    unix::has_pages(file)?;
    Ok(rustix::fs::fadvise(file, offset, NonZeroU64::new(len), rustix::fs::Advice::DontNeed)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::linux::{flush, read_at, write_at};
    use crate::types::FlushLevel;
    use trueio_testkit::{folder, skip};

    /// Goal: `mincore` and `cachestat` agree.
    /// Method: every other page of a file is read after eviction, without read-ahead; both count half.
    #[test]
    fn mincore_counts_what_cachestat_counts() {
        let folder = folder();
        let file = File::options().read(true).write(true).create_new(true).open(folder.path().join("data")).unwrap();
        let page = unix::page_size_bytes();
        write_at(&file, &vec![7; 64 * page as usize - 5], 0).unwrap();
        flush(&file, FlushLevel::Data).unwrap();
        evict(&file, 0, 0).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
        for index in (0..64).step_by(2) {
            read_at(&file, &mut [0], index * page).unwrap();
        }
        let counted = residency(&file, 0, 0).unwrap();
        if counted.source != "cachestat" || counted.cached_pages != 32 {
            return skip("cachestat", &format!("{counted:?}"));
        }
        let by_mincore = unix::residency_by_mincore(&file, 0, 0, 64 * page - 5).unwrap();
        assert_eq!((by_mincore.cached_pages, by_mincore.file_pages), (32, 64));
        let part = unix::residency_by_mincore(&file, 3 * page, 2 * page, 64 * page - 5).unwrap();
        assert_eq!((part.cached_pages, part.file_pages), (1, 2));
    }
}
