//! Gives back the pages of the program's own code that a stage of a run needed and the next one does not.
//!
//! The kernel maps sixteen pages around each one that is touched, and counts them as this process's memory. Of a small
//! run most of its memory is so: code that read the command line and planned, and will not run again. The pages
//! stay in the page cache; what runs again is mapped again at the next touch, some 0.5 µs for sixteen pages.
//! Called before workers start and after they ended, never between.
//!
//! Source: madvise(2), MADV_DONTNEED; Linux `mm/memory.c`, `do_fault_around`. Without it the peak of a small job was
//! 9.1 MiB of at most 8 (`cargo xtask gate`).

/// Unmaps the code of this program; what is still needed comes back by itself.
#[cfg(target_os = "linux")]
pub(crate) fn release_code() {
    unsafe extern "C" {
        // Both are defined by the linker: the program's first byte, and the end of its code.
        static __executable_start: u8;
        static etext: u8;
    }
    let page = rustix::param::page_size();
    let begin = (&raw const __executable_start).addr().next_multiple_of(page);
    let end = (&raw const etext).addr() / page * page;
    if begin >= end {
        return;
    }
    // SAFETY: the range is this program's own file mapping, read-only and executable, which nothing writes; after
    // MADV_DONTNEED a touch reads the same bytes from the file. A refusal leaves everything as it was.
    unsafe {
        libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_DONTNEED);
    }
}

/// Elsewhere nothing is done.
#[cfg(not(target_os = "linux"))]
pub(crate) fn release_code() {}
