//! A worker's I/O buffers, in the kind of memory that the job sets, each optionally a few bytes after an aligned
//! address.
//!
//! Buffers that begin after an aligned address are what a program gives that takes its memory from
//! `malloc`, or from byte 1 of an array. Direct I/O refuses them, and a study of it needs them.
//!
//! Mappings and segments are touched when they are made, as a pool is: no I/O pays for a page's first use. A segment
//! of System V shared memory is marked for removal as soon as it is attached, so it is gone with the process in
//! whatever way that ends.
//!
//! Cannot see: whether the kernel joins small pages into huge ones by itself (transparent huge pages).
//!
//! Sources: mmap(2) `MAP_HUGETLB`, shmget(2) `SHM_HUGETLB`, shmctl(2) `IPC_RMID`.

use std::io;
use trueio_direct::BufferPool;
use trueio_model::{Handling, Memory};

/// Pages are touched this far apart: the smallest page of the systems supported.
const TOUCH_STRIDE_BYTES: usize = 4096;

/// What keeps the memory.
#[derive(Debug)]
enum Keeper {
    Pool(#[expect(dead_code, reason = "it is kept until the buffers go")] BufferPool),
    Mapping,
    Segment,
}

/// The buffers.
#[derive(Debug)]
pub struct Buffers {
    start: *mut u8,
    /// Of the whole region, in bytes.
    length: usize,
    count: usize,
    size_bytes: usize,
    stride_bytes: usize,
    offset: usize,
    keeper: Keeper,
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: both were made by `mapped` at this address, and no reference into them is left.
        unsafe {
            match self.keeper {
                Keeper::Pool(_) => {}
                Keeper::Mapping => drop(libc::munmap(self.start.cast(), self.length)),
                Keeper::Segment => drop(libc::shmdt(self.start.cast())),
            }
        }
    }
}

impl Buffers {
    /// `count` buffers of `size_bytes`, each from its byte number `offset_bytes` on and that much longer, at multiples of
    /// `align`.
    ///
    /// # Errors
    /// A sentence: there is no such memory.
    pub fn new(
        handling: &Handling,
        count: usize,
        size_bytes: usize,
        align: usize,
        offset_bytes: u32,
    ) -> Result<Self, String> {
        let failed = |why: &dyn std::fmt::Display| format!("{count} buffers of {size_bytes} bytes: {why}");
        let size_bytes = size_bytes + offset_bytes as usize;
        if handling.memory == Memory::Malloc {
            let pool = BufferPool::new(count, size_bytes, align).map_err(|error| failed(&error))?;
            return Ok(Self::of_pool(pool, offset_bytes));
        }
        let too_large = || failed(&"more than can be addressed");
        let stride_bytes = size_bytes.checked_next_multiple_of(align).ok_or_else(too_large)?;
        let page = if handling.memory.is_huge() { handling.huge_page_bytes as usize } else { align.max(4096) };
        let length = stride_bytes.checked_mul(count).and_then(|length| length.checked_next_multiple_of(page));
        let length = length.ok_or_else(too_large)?;
        let (start, keeper) = mapped(handling, length).map_err(|error| {
            let pages = match handling.memory.is_huge() {
                true => format!(
                    " ({} free huge pages of {} bytes are needed: /sys/kernel/mm/hugepages)",
                    length / page,
                    handling.huge_page_bytes
                ),
                false => String::new(),
            };
            failed(&format!("{error}{pages}"))
        })?;
        let offset = offset_bytes as usize;
        let mut buffers = Self { start, length, count, size_bytes, stride_bytes, offset, keeper };
        // A mapping begins at a page; what needs more than that is refused and not moved.
        if !buffers.start.addr().is_multiple_of(align) {
            return Err(failed(&format!("the mapping is not at a multiple of {align} bytes")));
        }
        for at in (0..length).step_by(TOUCH_STRIDE_BYTES) {
            // SAFETY: within the mapping, which no other code uses yet.
            unsafe { buffers.start.add(at).write_volatile(0) };
        }
        buffers.size_bytes = size_bytes;
        Ok(buffers)
    }

    /// A pool's buffers, each from its byte number `offset_bytes` on.
    pub fn of_pool(pool: BufferPool, offset_bytes: u32) -> Self {
        let offset = offset_bytes as usize;
        assert!(offset < pool.size_bytes(), "a buffer has bytes after its offset");
        let (start, length) = pool.region();
        Self {
            start,
            length,
            count: pool.count(),
            size_bytes: pool.size_bytes(),
            stride_bytes: pool.stride_bytes(),
            offset,
            keeper: Keeper::Pool(pool),
        }
    }

    /// The whole region: its address, and its length in bytes.
    pub fn region(&self) -> (*mut u8, usize) {
        (self.start, self.length)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The bytes of each buffer that I/O may use.
    #[inline(always)]
    pub(crate) fn io_bytes(&self) -> usize {
        self.size_bytes - self.offset
    }

    /// The address of buffer `index`. No slice of it may exist while the kernel uses it.
    #[inline(always)]
    pub(crate) fn buffer_ptr(&self, index: usize) -> *mut u8 {
        assert!(index < self.count, "buffer {index} of {}", self.count);
        // SAFETY: the region holds `count` buffers, and `offset` is less than the size of one.
        unsafe { self.start.add(index * self.stride_bytes + self.offset) }
    }

    /// Returns buffer `index`.
    #[inline(always)]
    pub(crate) fn slice_mut(&mut self, index: usize) -> &mut [u8] {
        // SAFETY: within the region, which is initialised and lives as long as `self`; `&mut self` excludes every other
        // view.
        unsafe { std::slice::from_raw_parts_mut(self.buffer_ptr(index), self.io_bytes()) }
    }
}

/// Memory of `length` bytes, as the kernel gives it.
fn mapped(handling: &Handling, length: usize) -> io::Result<(*mut u8, Keeper)> {
    // mmap(2), shmget(2): the page's size as its logarithm, from bit 26 on.
    let huge = (handling.huge_page_bytes.max(1).ilog2() as i32) << 26;
    let flags = match handling.memory {
        Memory::Malloc | Memory::Mmap => libc::MAP_PRIVATE,
        Memory::MmapShared => libc::MAP_SHARED,
        Memory::MmapHuge => libc::MAP_PRIVATE | libc::MAP_HUGETLB | huge,
        Memory::Shm => return segment(length, 0),
        Memory::ShmHuge => return segment(length, libc::SHM_HUGETLB | huge),
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of nothing; nothing else is replaced by it.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags | libc::MAP_ANONYMOUS, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok((start.cast(), Keeper::Mapping))
}

/// A segment of System V shared memory without a key: no other process can find it.
fn segment(length: usize, flags: i32) -> io::Result<(*mut u8, Keeper)> {
    // SAFETY: plain calls; the segment is ours alone, and attaching it replaces nothing.
    unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, length, libc::IPC_CREAT | 0o600 | flags);
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        let start = libc::shmat(id, std::ptr::null(), 0);
        let error = io::Error::last_os_error();
        libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
        if start.addr() == usize::MAX {
            return Err(error);
        }
        Ok((start.cast(), Keeper::Segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the entry of /proc/self/smaps for the mapping at an address: its first line, and the size of its pages in KiB.
    fn about(start: *mut u8) -> (String, u64) {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let begins = format!("{:x}-", start.addr());
        let mut lines = text.lines().skip_while(|line| !line.starts_with(&begins));
        let first = lines.next().unwrap_or_default().to_owned();
        let page = lines.find_map(|line| line.strip_prefix("KernelPageSize:"));
        (first, page.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0))
    }

    #[test]
    fn buffers_are_in_the_kind_of_memory_that_was_asked_for() {
        for (memory, sharing, name) in
            [(Memory::Mmap, "p", ""), (Memory::MmapShared, "s", "/dev/zero"), (Memory::Shm, "s", "/SYSV")]
        {
            let handling = Handling { memory, ..Handling::default() };
            let mut buffers = Buffers::new(&handling, 3, 5000, 4096, 3).unwrap();
            for index in 0..3 {
                assert_eq!(buffers.buffer_ptr(index).addr() % 4096, 3);
                assert_eq!(buffers.slice_mut(index).len(), 5000);
                buffers.slice_mut(index).fill(index as u8 + 1);
            }
            assert!((0..3).all(|index| buffers.slice_mut(index).iter().all(|byte| *byte == index as u8 + 1)));
            let (line, page_kib) = about(buffers.region().0);
            let words: Vec<&str> = line.split_whitespace().collect();
            // Neighbouring private mappings are shown as one, which may begin before ours.
            if memory != Memory::Mmap {
                assert!(words[1].ends_with(sharing) && line.contains(name), "{memory:?}: {line}");
                assert_eq!(page_kib, 4, "{memory:?}");
            }
        }
    }

    /// Runs under Miri, too, which detects an access beyond a buffer or past a borrow.
    #[test]
    fn a_buffers_pointer_and_slice_are_the_same_bytes_and_no_other_buffers() {
        for memory in [Memory::Malloc, Memory::Mmap] {
            let handling = Handling { memory, ..Handling::default() };
            let mut buffers = Buffers::new(&handling, 3, 512, 512, 3).unwrap();
            for index in 0..3 {
                // SAFETY: the buffer has that many bytes, and there is no slice of it.
                unsafe { buffers.buffer_ptr(index).write_bytes(index as u8 + 1, buffers.io_bytes()) };
            }
            for index in 0..3 {
                assert!(buffers.slice_mut(index).iter().all(|byte| *byte == index as u8 + 1), "{memory:?} {index}");
            }
        }
    }

    #[test]
    fn huge_pages_are_huge_or_it_says_what_is_missing() {
        for memory in [Memory::MmapHuge, Memory::ShmHuge] {
            let handling = Handling { memory, huge_page_bytes: 2 << 20, ..Handling::default() };
            match Buffers::new(&handling, 4, 4096, 4096, 0) {
                Ok(buffers) => {
                    assert_eq!(about(buffers.region().0).1, 2048, "{memory:?}");
                    assert_eq!(buffers.region().1, 2 << 20, "whole pages");
                }
                Err(sentence) => {
                    println!("skipped: no huge pages here: {sentence}");
                    assert!(sentence.contains("1 free huge pages of 2097152 bytes are needed"), "{sentence}");
                }
            }
        }
    }
}
