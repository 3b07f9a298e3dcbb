//! Whether the next block of memory is to be a huge page.
//!
//! Usually a huge page is there after a tenth of a millisecond, in which the kernel clears it. Where memory is fragmented the kernel
//! moves pages first, and a virtual machine may get its memory from the host only now: 5 ms were measured, ten times what 512 small
//! pages take. So a page that was slow pauses them.

use std::time::Duration;

/// A page that takes longer is slow.
const SLOW: Duration = Duration::from_millis(2);
/// How many buffers are allocated without one after a slow page.
const PAUSE: u32 = 64;

/// The buffers that are still to be allocated without huge pages.
pub(crate) struct HugePages {
    paused: u32,
}

impl HugePages {
    pub(crate) const fn new() -> Self {
        Self { paused: 0 }
    }

    /// Returns true if the next buffer is to be in a huge page.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_page_pauses_huge_pages_and_a_fast_one_does_not() {
        let mut pages = HugePages::new();
        pages.came_after(Duration::from_micros(300));
        assert!(pages.are_due() && pages.are_due());
        pages.came_after(Duration::from_millis(5));
        let buffers = (0..PAUSE).filter(|_| pages.are_due()).count();
        assert_eq!(buffers, 0, "none during the pause");
        assert!(pages.are_due(), "tried again after it");
    }
}
