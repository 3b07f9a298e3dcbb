//! Memory that direct I/O accepts: one aligned buffer, and a fixed pool of them.
//!
//! A `Vec<u8>` has an alignment of one byte. That a large one often begins 16 bytes into a page is
//! an accident of the allocator, and direct I/O from it fails. These two types keep the promise.
//!
//! Both are zeroed when made. A large [`AlignedBuffer`] costs nothing until it is touched: its first
//! transfer pays for the page faults, which are few where the system gives huge pages on request (Linux, from
//! 4 MiB on). The pool is one allocation, so that a kernel interface which
//! registers memory (io_uring) can take it in one piece, and every page of it has been touched, so
//! that the first I/O does not pay for a page fault.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Why no aligned memory was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// A buffer of no bytes, or a pool of no buffers.
    #[error("a buffer of zero bytes, or a pool of zero buffers, was asked for")]
    Empty,
    /// An alignment that is zero or not a power of two.
    #[error("an alignment of {align} bytes is not a power of two")]
    AlignmentNotPowerOfTwo {
        /// What was asked for, in bytes.
        align: usize,
    },
    /// More bytes than this machine can address.
    #[error("{count} buffers of {size_bytes} bytes, aligned to {align}, exceed the address space")]
    TooLarge {
        /// How many buffers.
        count: usize,
        /// How large each is, in bytes.
        size_bytes: usize,
        /// Their alignment, in bytes.
        align: usize,
    },
    /// The allocator has no such memory.
    #[error("the allocator has no {size_bytes} bytes aligned to {align}")]
    OutOfMemory {
        /// What was asked for in total, in bytes.
        size_bytes: usize,
        /// Its alignment, in bytes.
        align: usize,
    },
}

/// From this size on the system is asked for huge pages, as numpy does: two of x86-64, so that at least one fits in
/// wherever the memory begins.
const HUGE_PAGES_FROM_BYTES: usize = 4 << 20;

/// One zeroed allocation, freed on drop.
struct Region {
    /// The first byte at a multiple of `align`.
    start: NonNull<u8>,
    length: usize,
    align: usize,
    /// What the allocator gave: room for `length` bytes wherever the first aligned one lies.
    base: NonNull<u8>,
    layout: Layout,
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
        // Aligned here and not by the allocator: asked for zeroed memory of a large alignment, Rust takes any
        // and writes the zeros, while the system's fresh pages are zero already. 1 GiB took 0.27 s that way, and takes 3 µs.
        let room = length.checked_add(align - 1).ok_or(too_large.clone())?;
        let layout = Layout::from_size_align(room, 1).map_err(|_| too_large)?;
        // SAFETY: the layout's size is not zero, checked above.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base).ok_or(BufferError::OutOfMemory { size_bytes: length, align })?;
        let skipped = base.as_ptr().addr().next_multiple_of(align) - base.as_ptr().addr();
        // SAFETY: at most `align - 1` bytes are skipped, and the allocation has that many more than `length`.
        let start = unsafe { base.add(skipped) };
        assert!(start.as_ptr().addr().is_multiple_of(align));
        // Miri has no such call.
        if length >= HUGE_PAGES_FROM_BYTES && !cfg!(miri) {
            crate::os::prefer_huge_pages(start, length);
        }
        Ok(Self { start, length, align, base, layout })
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
        // SAFETY: `base` came from `alloc_zeroed` with this very layout and is freed once.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
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
    /// `len` zeroed bytes at an address that is a multiple of `align` bytes. `len` itself need not
    /// be a multiple of `align`.
    ///
    /// # Errors
    /// [`BufferError`]: `len` is zero, `align` is not a power of two, or there is no such memory.
    pub fn new(len: usize, align: usize) -> Result<Self, BufferError> {
        Region::new(1, len, align).map(|region| Self { region })
    }

    /// The address of the first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.region.start.as_ptr()
    }

    /// The address of the first byte, for writing.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.region.start.as_ptr()
    }

    /// The alignment that was asked for, in bytes.
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
/// Buffers lie [`stride_bytes`](Self::stride_bytes) apart: their size rounded up to their
/// alignment. The memory never moves, so addresses may be registered with the kernel for as long
/// as the pool lives.
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

/// Pages are touched this far apart: the smallest page of the systems supported.
const TOUCH_STRIDE_BYTES: usize = 4096;

impl BufferPool {
    /// `count` zeroed buffers of `size_bytes` bytes, each at a multiple of `align` bytes.
    ///
    /// # Errors
    /// [`BufferError`]: `count` or `size_bytes` is zero, `align` is not a power of two, or there is
    /// no such memory.
    pub fn new(count: usize, size_bytes: usize, align: usize) -> Result<Self, BufferError> {
        if !align.is_power_of_two() {
            return Err(BufferError::AlignmentNotPowerOfTwo { align });
        }
        let stride_bytes =
            size_bytes.checked_next_multiple_of(align).ok_or(BufferError::TooLarge { count, size_bytes, align })?;
        let mut region = Region::new(count, stride_bytes, align)?;
        // Zeroed memory may still be one shared page of zeros. A write the compiler cannot remove
        // gives each page its own frame now, not inside the first timed I/O.
        for byte in region.bytes_mut().iter_mut().step_by(TOUCH_STRIDE_BYTES) {
            // SAFETY: `byte` is a valid, exclusive reference to a `u8`.
            unsafe { std::ptr::write_volatile(byte, 0) };
        }
        Ok(Self { region, count, size_bytes, stride_bytes })
    }

    /// How many buffers there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The usable size of one buffer, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// From the start of one buffer to the start of the next, in bytes.
    pub fn stride_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// The address of buffer `index`, for interfaces that take raw memory.
    ///
    /// While the kernel writes there, do not hold [`slice`](Self::slice) or
    /// [`slice_mut`](Self::slice_mut) of the same buffer: that is the caller's `unsafe` promise.
    ///
    /// # Panics
    /// If `index` is not below [`count`](Self::count).
    pub fn buffer_ptr(&self, index: usize) -> *mut u8 {
        assert!(index < self.count, "buffer {index} of a pool of {}", self.count);
        // SAFETY: index * stride lies within the allocation of count * stride bytes.
        unsafe { self.region.start.as_ptr().add(index * self.stride_bytes) }
    }

    /// Buffer `index`, [`size_bytes`](Self::size_bytes) long.
    ///
    /// # Panics
    /// If `index` is not below [`count`](Self::count).
    pub fn slice(&self, index: usize) -> &[u8] {
        // SAFETY: the buffer lies within the region, is initialised, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.buffer_ptr(index), self.size_bytes) }
    }

    /// Buffer `index`, [`size_bytes`](Self::size_bytes) long, for writing.
    ///
    /// # Panics
    /// If `index` is not below [`count`](Self::count).
    pub fn slice_mut(&mut self, index: usize) -> &mut [u8] {
        // SAFETY: as in `slice`, and `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(self.buffer_ptr(index), self.size_bytes) }
    }

    /// The whole allocation: its address, and its length of `count * stride_bytes` bytes.
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
    fn a_buffer_beyond_the_pool_is_a_mistake_that_stops() {
        let _ = BufferPool::new(4, 100, 64).unwrap().buffer_ptr(4);
    }

    #[test]
    fn absurd_requests_are_errors_and_never_aborts() {
        assert_eq!(AlignedBuffer::new(0, 512).unwrap_err(), BufferError::Empty);
        assert_eq!(BufferPool::new(0, 512, 512).unwrap_err(), BufferError::Empty);
        assert_eq!(BufferPool::new(1, 0, 512).unwrap_err(), BufferError::Empty);
        assert_eq!(AlignedBuffer::new(1, 0).unwrap_err(), BufferError::AlignmentNotPowerOfTwo { align: 0 });
        assert_eq!(AlignedBuffer::new(1, 513).unwrap_err(), BufferError::AlignmentNotPowerOfTwo { align: 513 });
        assert!(matches!(AlignedBuffer::new(usize::MAX, 512), Err(BufferError::TooLarge { .. })));
        assert!(matches!(BufferPool::new(usize::MAX, 4096, 512), Err(BufferError::TooLarge { .. })));
        assert!(matches!(BufferPool::new(2, usize::MAX, 512), Err(BufferError::TooLarge { .. })));
    }

    /// As io_uring would: one buffer is written through its address while others are borrowed. Miri watches.
    #[test]
    fn a_buffer_may_be_written_by_its_address_while_others_are_borrowed() {
        let mut pool = BufferPool::new(3, 100, 64).unwrap();
        let (last, (start, length)) = (pool.buffer_ptr(2), pool.region());
        let first = pool.slice_mut(0);
        first.fill(1);
        // SAFETY: buffer 2 lies apart from buffer 0, and nobody else refers to it.
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
