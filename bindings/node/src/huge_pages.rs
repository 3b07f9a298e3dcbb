//! Whether the next block of memory is to be a huge page.
//!
//! Usually a huge page is there after a tenth of a millisecond, in which the kernel clears it. Where memory is fragmented the kernel
//! moves pages first, and a virtual machine may get its memory from the host only now: 5 ms were measured, ten times what 512 small
//! pages take. So a page that was slow pauses them: the next blocks are mapped in the same way, with small pages. They do not come from the
//! allocator, which keeps what is freed there: next to fresh huge pages, that took a program of 240 MiB up to 337 MiB.

use std::time::Duration;

/// A page that takes longer is slow.
const SLOW: Duration = Duration::from_millis(2);
/// How many blocks are allocated without one after a slow page.
const PAUSE: u32 = 32;

/// The blocks that are still to be allocated without huge pages.
pub(crate) struct HugePages {
    paused: u32,
}

impl HugePages {
    pub(crate) const fn new() -> Self {
        Self { paused: 0 }
    }

    /// Returns true if the next block is to be a huge page.
    pub(crate) fn are_due(&mut self) -> bool {
        let is_due = self.paused == 0;
        self.paused = self.paused.saturating_sub(1);
        is_due
    }

    /// Takes note of how long the first access to a huge page took.
    pub(crate) fn came_after(&mut self, taken: Duration) {
        if taken > SLOW {
            self.paused = PAUSE;
        }
    }
}

/// Requests small pages for the `length` bytes of whole pages at `start`, and changes no contents. If the system has no such request, nothing
/// is done.
///
/// Source: madvise(2), `MADV_NOHUGEPAGE`.
pub(crate) fn decline(start: *mut u8, length: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the advice changes neither contents nor protection, whatever is mapped there.
    let _ = unsafe { libc::madvise(start.cast(), length, libc::MADV_NOHUGEPAGE) };
    #[cfg(not(target_os = "linux"))]
    let _ = (start, length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_page_pauses_huge_pages_and_a_fast_one_does_not() {
        let mut pages = HugePages::new();
        pages.came_after(Duration::from_micros(300));
        assert!(pages.are_due() && pages.are_due());
        pages.came_after(Duration::from_millis(5));
        let blocks = (0..PAUSE).filter(|_| pages.are_due()).count();
        assert_eq!(blocks, 0, "none during the pause");
        assert!(pages.are_due(), "tried again after it");
    }
}
