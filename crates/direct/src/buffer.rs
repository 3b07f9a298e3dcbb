//! Memory for direct I/O: an aligned buffer, and a pool of them.
//!
//! A `Vec<u8>` has an alignment of one byte. The allocator often places a large one 16 bytes into a page, and direct
//! I/O from it fails. These two types guarantee their alignment.
//!
//! Both are zeroed. The pages of an [`AlignedBuffer`] are allocated when they are first touched, so its first transfer
//! causes page faults; few of them where the system provides huge pages on request (Linux, from 2 MiB on). A
//! [`BufferPool`] is one allocation, so that it can be registered with the kernel (io_uring) in one piece. All its
//! pages are touched in advance, so that the first I/O causes no page fault.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Why an aligned allocation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// A buffer of no bytes, or a pool of no buffers.
    #[error("a buffer has at least one byte, and a pool at least one buffer")]
    Empty,
    /// An alignment that is zero or not a power of two.
    #[error("an alignment of {align} bytes is not a power of two")]
    AlignmentNotPowerOfTwo {
        /// The requested alignment, in bytes.
        align: usize,
    },
    /// More bytes than this machine can address.
    #[error("{count} buffers of {size_bytes} bytes, aligned to {align}, exceed the address space")]
    TooLarge {
        /// Number of buffers.
        count: usize,
        /// Size of each buffer, in bytes.
        size_bytes: usize,
        /// Alignment of each buffer, in bytes.
        align: usize,
    },
    /// The allocator returned no memory.
    #[error("the allocator has no {size_bytes} bytes aligned to {align}")]
    OutOfMemory {
        /// The requested size in total, in bytes.
        size_bytes: usize,
        /// The requested alignment, in bytes.
        align: usize,
    },
}

/// From this size on allocators take fresh pages from the system (glibc: `M_MMAP_THRESHOLD`).
const FRESH_PAGES_FROM_BYTES: usize = 128 << 10;

/// The huge page of x86-64, and of aarch64 with pages of 4 KiB. Buffers of this size or larger are mapped at a multiple of it where huge
/// pages can be requested, so that at least one fits. A write of 1 MiB past the cache takes half of the processor time from one:
/// the kernel hands it to the device as one segment instead of 256.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// One zeroed allocation, freed on drop.
struct Region {
    /// The first byte at a multiple of `align`.
    start: NonNull<u8>,
    length: usize,
    align: usize,
    origin: Origin,
}

/// How the memory of a region is freed.
enum Origin {
    /// Pages of the system's.
    Mapped,
    /// The allocation: room for the region wherever the first aligned byte lies.
    Allocated { base: NonNull<u8>, layout: Layout },
}

// SAFETY: a `Region` owns its memory alone, as a `Box<[u8]>` would.
unsafe impl Send for Region {}
// SAFETY: through a shared reference the safe interface only reads the memory.
unsafe impl Sync for Region {}

impl Region {
    fn new(count: usize, size_bytes: usize, align: usize) -> Result<Self, BufferError> {
        if !align.is_power_of_two() {
            return Err(BufferError::AlignmentNotPowerOfTwo { align });
        }
        if count == 0 || size_bytes == 0 {
            return Err(BufferError::Empty);
        }
        let too_large = BufferError::TooLarge { count, size_bytes, align };
        let length = size_bytes.checked_mul(count).ok_or(too_large.clone())?;
        if length >= HUGE_PAGE_BYTES
            && let Some(start) = crate::os::map_huge_pages(length, align.max(HUGE_PAGE_BYTES))
        {
            return Ok(Self { start, length, align, origin: Origin::Mapped });
        }
        // Large memory is aligned here and not by the allocator: for zeroed memory with a large alignment, Rust allocates any
        // memory and writes zeros, although fresh pages are zero already. For 1 GiB that took 0.27 s instead of 3 µs.
        // Small memory comes from pages that are in use, and one more page costs more than the zeros.
        let layout = if length < FRESH_PAGES_FROM_BYTES {
            Layout::from_size_align(length, align)
        } else {
            Layout::from_size_align(length.checked_add(align - 1).ok_or(too_large.clone())?, 1)
        };
        let layout = layout.map_err(|_| too_large)?;
        // SAFETY: the layout's size is not zero, checked above.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base).ok_or(BufferError::OutOfMemory { size_bytes: length, align })?;
        let skipped = base.as_ptr().addr().next_multiple_of(align) - base.as_ptr().addr();
        // SAFETY: none are skipped if the allocator aligned; else at most `align - 1`, which the allocation has more than `length`.
        let start = unsafe { base.add(skipped) };
        assert!(start.as_ptr().addr().is_multiple_of(align));
        Ok(Self { start, length, align, origin: Origin::Allocated { base, layout } })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `start` points to `length` initialised bytes that live as long as `self`; a mutable view
        // needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.origin {
            // SAFETY: `map_huge_pages` returned it for this length, and it is given back once.
            Origin::Mapped => unsafe { crate::os::unmap_huge_pages(self.start, self.length) },
            // SAFETY: `base` came from `alloc_zeroed` with this very layout and is freed once.
            Origin::Allocated { base, layout } => unsafe { dealloc(base.as_ptr(), layout) },
        }
    }
}

/// A zeroed buffer whose address is a multiple of a given power of two.
///
/// ```
/// use trueio_direct::AlignedBuffer;
///
/// let mut buffer = AlignedBuffer::new(8192, 4096)?;
/// assert_eq!(buffer.as_ptr() as usize % 4096, 0);
/// buffer[..5].copy_from_slice(b"hello");
/// assert_eq!(buffer.len(), 8192);
/// # Ok::<(), trueio_direct::BufferError>(())
/// ```
pub struct AlignedBuffer {
    region: Region,
}

impl AlignedBuffer {
    /// Allocates `len` zeroed bytes at an address that is a multiple of `align`. `len` need not be a multiple
    /// of `align`.
    ///
    /// # Errors
    /// [`BufferError`]: `len` is zero, `align` is not a power of two, or the allocation failed.
    pub fn new(len: usize, align: usize) -> Result<Self, BufferError> {
        Region::new(1, len, align).map(|region| Self { region })
    }

    /// Returns the address of the first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.region.start.as_ptr()
    }

    /// Returns the address of the first byte, for writing.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.region.start.as_ptr()
    }

    /// Returns the requested alignment, in bytes.
    pub fn align_bytes(&self) -> usize {
        self.region.align
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.region.bytes()
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.region.bytes_mut()
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for AlignedBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer")
            .field("address", &self.as_ptr())
            .field("len", &self.len())
            .field("align_bytes", &self.align_bytes())
            .finish()
    }
}

/// A fixed number of aligned buffers of one size, in one contiguous, pre-touched allocation.
///
/// Buffers begin [`stride_bytes`](Self::stride_bytes) apart: their size rounded up to their alignment. The memory never
/// moves, so its addresses can be registered with the kernel for the lifetime of the pool.
///
/// ```
/// use trueio_direct::BufferPool;
///
/// let mut pool = BufferPool::new(32, 4096, 4096)?;
/// pool.slice_mut(7).fill(0xff);
/// assert_eq!(pool.slice(7)[0], 0xff);
/// assert_eq!(pool.slice(8)[0], 0);
/// assert_eq!(pool.region().1, 32 * 4096);
/// # Ok::<(), trueio_direct::BufferError>(())
/// ```
pub struct BufferPool {
    region: Region,
    count: usize,
    size_bytes: usize,
    stride_bytes: usize,
}

/// Distance at which pages are touched: the smallest page size of the supported systems.
const TOUCH_STRIDE_BYTES: usize = 4096;

impl BufferPool {
    /// Allocates `count` zeroed buffers of `size_bytes` bytes, each at a multiple of `align` bytes.
    ///
    /// # Errors
    /// [`BufferError`]: `count` or `size_bytes` is zero, `align` is not a power of two, or the allocation failed.
    pub fn new(count: usize, size_bytes: usize, align: usize) -> Result<Self, BufferError> {
        if !align.is_power_of_two() {
            return Err(BufferError::AlignmentNotPowerOfTwo { align });
        }
        let stride_bytes =
            size_bytes.checked_next_multiple_of(align).ok_or(BufferError::TooLarge { count, size_bytes, align })?;
        let mut region = Region::new(count, stride_bytes, align)?;
        // Zeroed memory may still be one shared page of zeros. A write that the compiler cannot remove
        // allocates each page now, not inside the first timed I/O.
        for byte in region.bytes_mut().iter_mut().step_by(TOUCH_STRIDE_BYTES) {
            // SAFETY: `byte` is a valid, exclusive reference to a `u8`.
            unsafe { std::ptr::write_volatile(byte, 0) };
        }
        Ok(Self { region, count, size_bytes, stride_bytes })
    }

    /// Returns the number of buffers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the usable size of one buffer, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Returns the distance from the start of one buffer to the start of the next, in bytes.
    pub fn stride_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// Returns the address of buffer `index`, for interfaces that take raw memory.
    ///
    /// While the kernel writes there, the caller must hold neither [`slice`](Self::slice) nor
    /// [`slice_mut`](Self::slice_mut) of the same buffer.
    ///
    /// # Panics
    /// If `index` is not below [`count`](Self::count).
    pub fn buffer_ptr(&self, index: usize) -> *mut u8 {
        assert!(index < self.count, "buffer {index} of a pool of {}", self.count);
        // SAFETY: index * stride lies within the allocation of count * stride bytes.
        unsafe { self.region.start.as_ptr().add(index * self.stride_bytes) }
    }

    /// Returns buffer `index`, [`size_bytes`](Self::size_bytes) long.
    ///
    /// # Panics
    /// If `index` is not below [`count`](Self::count).
    pub fn slice(&self, index: usize) -> &[u8] {
        // SAFETY: the buffer lies within the region, is initialised, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.buffer_ptr(index), self.size_bytes) }
    }

    /// Returns buffer `index`, [`size_bytes`](Self::size_bytes) long, for writing.
    ///
    /// # Panics
    /// If `index` is not below [`count`](Self::count).
    pub fn slice_mut(&mut self, index: usize) -> &mut [u8] {
        // SAFETY: as in `slice`, and `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(self.buffer_ptr(index), self.size_bytes) }
    }

    /// Returns the whole allocation: its address, and its length of `count * stride_bytes` bytes.
    pub fn region(&self) -> (*mut u8, usize) {
        (self.region.start.as_ptr(), self.region.length)
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("count", &self.count)
            .field("size_bytes", &self.size_bytes)
            .field("stride_bytes", &self.stride_bytes)
            .field("align_bytes", &self.region.align)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_keeps_its_alignment_when_the_size_is_not_a_multiple_of_it() {
        let pool = BufferPool::new(5, 1000, 512).unwrap();
        assert_eq!(pool.stride_bytes(), 1024);
        for index in 0..5 {
            assert_eq!(pool.buffer_ptr(index).addr() % 512, 0);
            assert_eq!(pool.slice(index).len(), 1000);
        }
        assert_eq!(pool.region().1, 5 * 1024);
    }

    #[test]
    fn buffers_of_a_pool_do_not_overlap() {
        let mut pool = BufferPool::new(4, 100, 64).unwrap();
        for index in 0..4 {
            let mark = u8::try_from(index).unwrap() + 1;
            pool.slice_mut(index).fill(mark);
        }
        for index in 0..4 {
            let mark = u8::try_from(index).unwrap() + 1;
            assert!(pool.slice(index).iter().all(|byte| *byte == mark));
        }
    }

    #[test]
    #[should_panic(expected = "buffer 4 of a pool of 4")]
    fn an_index_beyond_the_pool_panics() {
        let _ = BufferPool::new(4, 100, 64).unwrap().buffer_ptr(4);
    }

    #[test]
    fn invalid_sizes_and_alignments_are_errors() {
        assert_eq!(AlignedBuffer::new(0, 512).unwrap_err(), BufferError::Empty);
        assert_eq!(BufferPool::new(0, 512, 512).unwrap_err(), BufferError::Empty);
        assert_eq!(BufferPool::new(1, 0, 512).unwrap_err(), BufferError::Empty);
        assert_eq!(AlignedBuffer::new(1, 0).unwrap_err(), BufferError::AlignmentNotPowerOfTwo { align: 0 });
        assert_eq!(AlignedBuffer::new(1, 513).unwrap_err(), BufferError::AlignmentNotPowerOfTwo { align: 513 });
        assert!(matches!(AlignedBuffer::new(usize::MAX, 512), Err(BufferError::TooLarge { .. })));
        assert!(matches!(BufferPool::new(usize::MAX, 4096, 512), Err(BufferError::TooLarge { .. })));
        assert!(matches!(BufferPool::new(2, usize::MAX, 512), Err(BufferError::TooLarge { .. })));
    }

    /// As with io_uring: one buffer is written through its address while others are borrowed. Miri checks this.
    #[test]
    fn a_buffer_may_be_written_by_its_address_while_others_are_borrowed() {
        let mut pool = BufferPool::new(3, 100, 64).unwrap();
        let (last, (start, length)) = (pool.buffer_ptr(2), pool.region());
        let first = pool.slice_mut(0);
        first.fill(1);
        // SAFETY: buffer 2 does not overlap buffer 0, and no reference to it exists.
        unsafe { std::ptr::write_bytes(last, 3, 100) };
        first[99] = 9;
        assert_eq!((pool.slice(0)[99], pool.slice(1)[0], pool.slice(2)[99]), (9, 0, 3));
        // SAFETY: the region is one initialised allocation, and no reference to it is held now.
        let whole = unsafe { std::slice::from_raw_parts(start, length) };
        assert_eq!((whole.len(), whole[256]), (3 * 128, 3));
    }

    #[test]
    fn a_buffer_goes_to_another_thread_and_is_freed_there() {
        let mut buffer = AlignedBuffer::new(5000, 256).unwrap();
        buffer[4999] = 7;
        let sum = std::thread::spawn(move || buffer.iter().map(|byte| u32::from(*byte)).sum::<u32>());
        assert_eq!(sum.join().unwrap(), 7);
    }

    #[test]
    fn every_alignment_is_kept_and_every_byte_is_inside() {
        for exponent in 0..=16 {
            let (align, length) = (1usize << exponent, (1usize << exponent) + 3);
            let mut buffer = AlignedBuffer::new(length, align).unwrap();
            assert_eq!((buffer.as_ptr().addr() % align, buffer.len(), buffer.align_bytes()), (0, length, align));
            buffer.fill(0xa5);
            assert_eq!(buffer[length - 1], 0xa5);
        }
    }

    #[test]
    fn a_fresh_buffer_is_zeroed() {
        assert!(AlignedBuffer::new(10_000, 4096).unwrap().iter().all(|byte| *byte == 0));
    }
}
