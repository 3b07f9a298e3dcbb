//! How much of a file is in the page cache, and how to get it out.
//!
//! Cannot see: caches below the page cache (the drive's, the controller's, the hypervisor's) and
//! beside it (ZFS's ARC). `mincore` says only "resident"; dirty and write-back pages are known from
//! `cachestat` alone (Linux 6.5), and are [`None`] elsewhere.
//!
//! Source: cachestat in Linux `mm/filemap.c` (no manual page in man-pages 6.9); mincore(2);
//! posix_fadvise(2).

use std::fs::File;
use std::io;

/// What part of a range of a file is in the page cache, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Pages in the cache.
    pub cached_pages: u64,
    /// Of these, changed and not yet being written; [`None`]: not known.
    pub dirty_pages: Option<u64>,
    /// Of these, being written to the device now; [`None`]: not known.
    pub writeback_pages: Option<u64>,
    /// Pages that were in the cache and have been evicted, as far as the kernel remembers;
    /// [`None`]: not known.
    pub evicted_pages: Option<u64>,
    /// The size of a page, in bytes.
    pub page_size_bytes: u64,
    /// How many pages the range has, up to the end of the file.
    pub file_pages: u64,
    /// Who counted: "cachestat" or "mincore".
    pub source: &'static str,
}

/// Counts the pages of `file` between `offset` and `offset + len` bytes that are in the page
/// cache; a `len` of 0 means up to the end. The range is widened to whole pages.
///
/// # Errors
/// What the system said; [`io::ErrorKind::Unsupported`] where it has no such count (Windows);
/// [`io::ErrorKind::InvalidInput`] for a folder, a pipe or a socket, which have no pages. Through `mincore` the file must be open for reading.
pub fn residency(file: &File, offset: u64, len: u64) -> io::Result<Residency> {
    crate::os::residency(file, offset, len)
}

/// Asks the kernel to drop the clean pages of `file` between `offset` and `offset + len` bytes from
/// the page cache; a `len` of 0 means up to the end.
///
/// Dirty pages stay: flush first. Pages that are mapped or locked stay too, and pages that the
/// range covers only in part. So count afterwards with [`residency`].
///
/// # Errors
/// What the system said, and [`io::ErrorKind::Unsupported`] where it has no such request (Windows).
pub fn evict(file: &File, offset: u64, len: u64) -> io::Result<()> {
    crate::os::evict(file, offset, len)
}

/// Asks the kernel not to keep pages of an open file, or to keep them again. *(macOS)*
///
/// It holds for this open file from now on. Pages that are cached already are still served.
///
/// # Errors
/// What the system said, and [`io::ErrorKind::Unsupported`] elsewhere.
///
/// # Source
/// macOS fcntl(2), `F_NOCACHE`.
pub fn set_nocache(file: &File, nocache: bool) -> io::Result<()> {
    crate::os::set_nocache(file, nocache)
}
