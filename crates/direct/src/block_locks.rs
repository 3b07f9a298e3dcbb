//! Locks on ranges of disks within this process: a block that is read, changed and written keeps its other bytes.
//!
//! A write of a part of a block of a disk reads the block, changes it and writes it whole. Without a lock, such a write
//! restores bytes of the block that another write replaced meanwhile. Reading, changing and writing takes the
//! range exclusively; a write of whole blocks shares it with others of its kind. A lock belongs to the disk and not to a
//! descriptor, so two descriptors of one disk exclude each other. Regular files need none: see `unaligned.rs`.
//!
//! Limits: other processes are not excluded, nor are writes that do not go through [`crate::DirectFile`]. A partition and
//! the whole disk are two disks here.
//!
//! Locks of different disks are in different tables, up to a coincidence of their hashes, and a table is locked for a few
//! instructions.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A disk, within this process: the number of its device.
pub(crate) type DiskKey = u64;

/// The number of tables.
const TABLES: usize = 16;

static ALL: [Table; TABLES] = [const { Table::new() }; TABLES];

/// The held ranges of the disks with one hash.
struct Table {
    held: Mutex<Vec<Held>>,
    released: Condvar,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    disk: DiskKey,
    range: Range<u64>,
    is_exclusive: bool,
}

impl Held {
    fn conflicts(&self, other: &Self) -> bool {
        self.disk == other.disk
            && (self.is_exclusive || other.is_exclusive)
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }
}

impl Table {
    const fn new() -> Self {
        Self { held: Mutex::new(Vec::new()), released: Condvar::new() }
    }

    /// No code between lock and unlock can panic half-way through a change, so a poisoned lock is sound.
    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A held range, released on drop.
#[derive(Debug)]
#[must_use = "the range is released on drop"]
pub(crate) struct RangeLock {
    held: Held,
}

impl Drop for RangeLock {
    fn drop(&mut self) {
        let table = table_of(self.held.disk);
        let mut held = table.lock();
        let index = held.iter().position(|other| *other == self.held).expect("a held range is in its table");
        held.swap_remove(index);
        drop(held);
        table.released.notify_all();
    }
}

/// Waits until no other lock on `range` of `disk` is held, and takes it.
pub(crate) fn exclusive(disk: DiskKey, range: Range<u64>) -> RangeLock {
    take(Held { disk, range, is_exclusive: true })
}

/// Waits until no exclusive lock on `range` of `disk` is held, and takes it together with others of its kind.
pub(crate) fn shared(disk: DiskKey, range: Range<u64>) -> RangeLock {
    take(Held { disk, range, is_exclusive: false })
}

fn take(wanted: Held) -> RangeLock {
    let table = table_of(wanted.disk);
    let is_taken = |held: &mut Vec<Held>| held.iter().any(|other| other.conflicts(&wanted));
    let mut held = table.released.wait_while(table.lock(), is_taken).unwrap_or_else(PoisonError::into_inner);
    held.push(wanted.clone());
    drop(held);
    RangeLock { held: wanted }
}

fn table_of(disk: DiskKey) -> &'static Table {
    // Numbers of devices differ in their lower bits; the multiplier is 2^64 divided by the golden ratio.
    let hash = disk.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
    &ALL[hash as usize % TABLES]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn only_overlapping_ranges_of_one_disk_conflict_unless_both_are_shared() {
        let held = |disk, range, is_exclusive| Held { disk, range, is_exclusive };
        let first = held(1, 0..512, true);
        assert!(first.conflicts(&held(1, 511..600, true)));
        assert!(first.conflicts(&held(1, 0..4096, false)));
        assert!(!first.conflicts(&held(1, 512..1024, true)));
        assert!(!first.conflicts(&held(2, 0..512, true)));
        assert!(!held(1, 0..512, false).conflicts(&held(1, 0..512, false)));
    }

    #[test]
    fn a_shared_range_is_taken_twice_and_an_exclusive_one_waits() {
        let (one, other) = (shared(7, 0..4096), shared(7, 512..1024));
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _lock = exclusive(7, 0..512);
                sender.send(()).unwrap();
            });
            assert!(receiver.recv_timeout(Duration::from_millis(20)).is_err(), "the range is shared by `one`");
            drop(other);
            drop(one);
            receiver.recv().unwrap();
        });
        drop(exclusive(7, 0..u64::MAX));
    }

    /// Goal: changes of one block exclude each other. Method: threads read a number, let others run, and write the
    /// number plus one; none is lost. Miri runs this, too, which detects a data race.
    #[test]
    fn changes_of_one_block_follow_one_another() {
        let (threads, rounds) = if cfg!(miri) { (3, 5) } else { (8, 500) };
        let block = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let block = &block;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let _lock = exclusive(9, 4096 * (round % 2)..8192 + 512 * thread);
                        let number = block.load(Ordering::Relaxed);
                        std::thread::yield_now();
                        block.store(number + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(block.into_inner(), threads as usize * rounds as usize);
    }
}
