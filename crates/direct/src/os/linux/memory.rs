//! Memory for transfers: pages of the system's, and pages that are there before a read.
//!
//! Source: mmap(2), madvise(2).

use super::filesystem;
use crate::os::unix;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::fs::File;
use std::ptr::NonNull;

/// Maps zeroed pages for `length` bytes at a multiple of `align`, and requests huge ones; [`None`] if there is no such memory. A huge page is
/// one page fault and one segment of a request, instead of 512 with pages of 4 KiB. If the kernel refuses, the memory works with small ones.
///
/// Not the allocator's: what is skipped for the alignment is given back here. The allocator keeps it, and zeroes and so occupies it when it uses
/// the memory again: 2 MiB took 4 MiB.
///
/// Source: mmap(2); madvise(2), `MADV_HUGEPAGE`.
pub(crate) fn map_huge_pages(length: usize, align: usize) -> Option<NonNull<u8>> {
    if cfg!(miri) {
        return None;
    }
    let page = unix::page_size_bytes() as usize;
    let whole = length.checked_next_multiple_of(page)?;
    let align = align.max(page);
    let all = whole.checked_add(align)?;
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, where the kernel finds room.
    let base = unsafe { mmap_anonymous(std::ptr::null_mut(), all, protection, flags) }.ok()?;
    let skipped = base.addr().next_multiple_of(align) - base.addr();
    // SAFETY: whole pages of the new mapping, which nothing else knows; `skipped` is below `align`. An error of unmapping leaves them reserved
    // and untouched; the advice changes no contents.
    unsafe {
        let start = base.add(skipped);
        if skipped > 0 {
            let _ = munmap(base, skipped);
        }
        let _ = munmap(start.add(whole), all - skipped - whole);
        let _ = madvise(start, whole, Advice::LinuxHugepage);
        NonNull::new(start.cast())
    }
}

/// Gives back what [`map_huge_pages`] returned for `length` bytes.
///
/// # Safety
/// Once, and nothing uses the memory any more.
pub(crate) unsafe fn unmap_huge_pages(start: NonNull<u8>, length: usize) {
    let whole = length.next_multiple_of(unix::page_size_bytes() as usize);
    // SAFETY: the caller's; whole pages of a mapping of this length.
    let unmapped = unsafe { munmap(start.as_ptr().cast(), whole) };
    debug_assert!(unmapped.is_ok(), "{unmapped:?}");
}

/// Faults in the pages of `memory`, which a read is to fill. Where that is refused (before Linux 5.14), the read does it, as ever.
///
/// Needed where [`reads_need_present_memory`] holds.
///
/// Source: madvise(2), `MADV_POPULATE_WRITE`.
pub(crate) fn make_present(memory: &mut [u8]) {
    if memory.is_empty() {
        return;
    }
    let page = unix::page_size_bytes() as usize;
    let skipped = memory.as_ptr().addr() % page;
    let start = memory.as_mut_ptr().wrapping_sub(skipped);
    // SAFETY: the pages of a slice that the caller may change; the call changes no contents.
    let _ = unsafe { madvise(start.cast(), memory.len() + skipped, Advice::LinuxPopulateWrite) };
}

/// Returns whether a direct read into pages that are not present goes through the page cache: on btrfs, which makes direct reads
/// with page faults disabled. Measured with Linux 6.18: each read into new memory left its pages in the cache, none into memory in use.
pub(crate) fn reads_need_present_memory(file: &File) -> bool {
    // fstatfs(2) is not supported under Miri.
    !cfg!(miri) && rustix::fs::fstatfs(file).is_ok_and(|filesystem| filesystem::is_btrfs(&filesystem))
}
