//! Page cache residency of a file.

/// Page cache residency of a range of a file, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Residency {
    /// Pages in the cache.
    pub cached_pages: u64,
    /// Of these, pages that are dirty and not under writeback; [`None`] if unknown.
    pub dirty_pages: Option<u64>,
    /// Of these, pages that are under writeback; [`None`] if unknown.
    pub writeback_pages: Option<u64>,
    /// Pages that were evicted from the cache, as far as the kernel remembers; [`None`] if unknown.
    pub evicted_pages: Option<u64>,
    /// Size of a page, in bytes.
    pub page_size_bytes: u64,
    /// Number of pages of the range, up to the end of the file.
    pub file_pages: u64,
    /// Source of the counts: "cachestat" or "mincore".
    pub source: &'static str,
}
