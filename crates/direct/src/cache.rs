//! Page cache residency of a file: how much is cached, and a request to drop it.
//!
//! Limits: caches below the page cache (drive, controller, hypervisor) and next to it (ZFS's ARC) are not visible.
//! `mincore` reports residency only; numbers of dirty and writeback pages come from `cachestat` (Linux 6.5), and are
//! [`None`] elsewhere.
//!
//! Source: cachestat in Linux `mm/filemap.c` (no manual page in man-pages 6.9); mincore(2);
//! posix_fadvise(2).

use crate::types::Residency;
use std::fs::File;
use std::io;

/// Counts the pages of `file` between `offset` and `offset + len` bytes that are in the page
/// cache; a `len` of 0 means up to the end. The range is widened to whole pages.
///
/// With `mincore` the file must be open for reading.
///
/// # Errors
/// The system's error; [`io::ErrorKind::Unsupported`] where it has no such count (Windows);
/// [`io::ErrorKind::IsADirectory`] for a directory and [`io::ErrorKind::InvalidInput`] for a pipe or a socket, which have no pages.
pub fn residency(file: &File, offset: u64, len: u64) -> io::Result<Residency> {
    crate::os::residency(file, offset, len)
}

/// Asks the kernel to drop the clean pages of `file` between `offset` and `offset + len` bytes from
/// the page cache; a `len` of 0 means up to the end.
///
/// Dirty pages stay, so flush first. Pages that are mapped or locked also stay, and pages that the range covers only
/// in part. Use [`residency`] afterwards to count what is left.
///
/// # Errors
/// The system's error; [`io::ErrorKind::Unsupported`] where it has no such request (Windows); for what has no pages, those of
/// [`residency`].
pub fn evict(file: &File, offset: u64, len: u64) -> io::Result<()> {
    crate::os::evict(file, offset, len)
}

/// Asks the kernel not to keep pages of an open file, or to keep them again. *(macOS)*
///
/// The setting belongs to this open file. Pages that are already cached are still used.
///
/// # Errors
/// The system's error; [`io::ErrorKind::Unsupported`] on other systems.
///
/// # Source
/// macOS fcntl(2), `F_NOCACHE`.
pub fn set_nocache(file: &File, nocache: bool) -> io::Result<()> {
    crate::os::set_nocache(file, nocache)
}
