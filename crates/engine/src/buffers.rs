//! A worker's I/O buffers: those of a pool, or the same a few bytes further on.
//!
//! Buffers that begin behind an aligned address are what a program gives that takes its memory from
//! `malloc`, or from byte 1 of an array. Direct I/O refuses them, and a study of it needs them.

use trueio_direct::BufferPool;

/// The buffers.
#[derive(Debug)]
pub(crate) struct Buffers {
    pool: BufferPool,
    offset: usize,
}

impl Buffers {
    /// The pool's buffers, each from its byte number `offset_bytes` on.
    pub(crate) fn new(pool: BufferPool, offset_bytes: u32) -> Self {
        let offset = offset_bytes as usize;
        assert!(offset < pool.size_bytes(), "a buffer has bytes behind its offset");
        Self { pool, offset }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.pool.count()
    }

    /// The address of buffer `index`. While the kernel uses it, nobody may hold a slice of it.
    #[inline(always)]
    pub(crate) fn buffer_ptr(&self, index: usize) -> *mut u8 {
        // SAFETY: `offset` is less than the size of a buffer.
        unsafe { self.pool.buffer_ptr(index).add(self.offset) }
    }

    /// Buffer `index`.
    #[inline(always)]
    pub(crate) fn slice(&self, index: usize) -> &[u8] {
        &self.pool.slice(index)[self.offset..]
    }

    /// Buffer `index`, for writing.
    #[inline(always)]
    pub(crate) fn slice_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.pool.slice_mut(index)[self.offset..]
    }
}
