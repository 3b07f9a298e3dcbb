//! A pool of aligned buffers that several threads share: a guard owns its buffer and returns it on drop.
//!
//! The number of buffers is fixed, so the pool limits memory and the number of transfers in flight.
//! [`SharedBufferPool::take`] waits for a buffer, [`SharedBufferPool::try_acquire`] does not.
//!
//! Limits: waiting threads are not served in order of arrival, and a thread that takes all buffers and then waits
//! for one more waits forever.

use crate::buffer::{BufferError, BufferPool};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

struct Shared {
    pool: BufferPool,
    /// Numbers of the free buffers.
    free: Mutex<Vec<usize>>,
    returned: Condvar,
}

impl Shared {
    fn free(&self) -> MutexGuard<'_, Vec<usize>> {
        // No code that can panic runs under the lock; the list is whole in any case.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fixed number of aligned buffers that threads take and return.
///
/// A clone is another handle of the same pool. The memory is one allocation and is freed when the last handle and the
/// last buffer are dropped.
///
/// ```
/// use trueio_direct::SharedBufferPool;
///
/// let pool = SharedBufferPool::new(2, 8192, 4096)?;
/// std::thread::scope(|scope| {
///     for mark in 1..=4u8 {
///         let pool = pool.clone();
///         scope.spawn(move || pool.acquire().fill(mark));
///     }
/// });
/// assert_eq!(pool.free_count(), 2);
/// let (one, other) = (pool.acquire(), pool.acquire());
/// assert!(pool.try_acquire().is_none());
/// drop((one, other));
/// # Ok::<(), trueio_direct::BufferError>(())
/// ```
#[derive(Clone)]
pub struct SharedBufferPool {
    shared: Arc<Shared>,
}

impl SharedBufferPool {
    /// Allocates `count` buffers of `size_bytes` bytes, each at a multiple of `align` bytes: see [`BufferPool::new`].
    ///
    /// # Errors
    /// [`BufferError`]: `count` or `size_bytes` is zero, `align` is not a power of two, or there is no such memory.
    pub fn new(count: usize, size_bytes: usize, align: usize) -> Result<Self, BufferError> {
        let pool = BufferPool::new(count, size_bytes, align)?;
        let free = Mutex::new((0..count).rev().collect());
        Ok(Self { shared: Arc::new(Shared { pool, free, returned: Condvar::new() }) })
    }

    /// Acquires a buffer; waits until one is returned if all are taken.
    pub fn acquire(&self) -> PooledBuffer {
        let mut free = self.shared.free();
        loop {
            if let Some(index) = free.pop() {
                return self.lend(index);
            }
            free = self.shared.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Acquires a buffer; returns [`None`] if all are taken.
    pub fn try_acquire(&self) -> Option<PooledBuffer> {
        let index = self.shared.free().pop()?;
        Some(self.lend(index))
    }

    /// Acquires a buffer; waits at most `timeout`, and returns [`None`] if none was returned until then.
    pub fn acquire_timeout(&self, timeout: Duration) -> Option<PooledBuffer> {
        let deadline = Instant::now().checked_add(timeout);
        let mut free = self.shared.free();
        loop {
            if let Some(index) = free.pop() {
                return Some(self.lend(index));
            }
            let Some(deadline) = deadline else {
                free = self.shared.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            free = self.shared.returned.wait_timeout(free, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lend(&self, index: usize) -> PooledBuffer {
        PooledBuffer { shared: Arc::clone(&self.shared), index }
    }

    /// Returns the number of buffers that are not taken. Another thread may take one at any time.
    pub fn free_count(&self) -> usize {
        self.shared.free().len()
    }

    /// Returns the number of buffers, taken or not.
    pub fn count(&self) -> usize {
        self.shared.pool.count()
    }

    /// Returns the size of one buffer, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.shared.pool.size_bytes()
    }

    /// Returns the address and the length of the whole allocation, for interfaces that register memory (io_uring).
    pub fn region(&self) -> (*mut u8, usize) {
        self.shared.pool.region()
    }
}

impl fmt::Debug for SharedBufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBufferPool")
            .field("pool", &self.shared.pool)
            .field("free_count", &self.free_count())
            .finish()
    }
}

/// A buffer of a [`SharedBufferPool`]; it goes back to the pool on drop.
///
/// It holds what its last user left in it. Zero it where that matters.
pub struct PooledBuffer {
    shared: Arc<Shared>,
    index: usize,
}

impl PooledBuffer {
    /// Returns the number of this buffer in its pool: buffer `i` begins `i * stride` bytes after the
    /// [region](SharedBufferPool::region) does.
    pub fn index(&self) -> usize {
        self.index
    }

    fn address(&self) -> *mut u8 {
        self.shared.pool.buffer_ptr(self.index)
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the buffer is initialised, lives as long as `shared`, and belongs to this guard alone, because its
        // number is not in the list of free buffers. Nothing calls `slice` or `slice_mut` of the pool.
        unsafe { std::slice::from_raw_parts(self.address(), self.shared.pool.size_bytes()) }
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.shared.pool.size_bytes()) }
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for PooledBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.shared.free().push(self.index);
        self.shared.returned.notify_one();
    }
}

impl fmt::Debug for PooledBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledBuffer")
            .field("index", &self.index)
            .field("address", &self.address())
            .field("len", &self.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Goal: at most `count` buffers are taken at a time, no two guards share one, and all return.
    /// Method: eight threads mark a buffer of three, let others run, and look for their mark.
    #[test]
    fn no_buffer_is_lent_twice_at_a_time() {
        let pool = SharedBufferPool::new(3, 100, 64).unwrap();
        let taken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for mark in 1..=8u8 {
                let (pool, taken) = (pool.clone(), &taken);
                scope.spawn(move || {
                    for _ in 0..50 {
                        let mut buffer = pool.acquire();
                        assert!(taken.fetch_add(1, Ordering::SeqCst) < 3);
                        buffer.fill(mark);
                        std::thread::yield_now();
                        assert!(buffer.iter().all(|byte| *byte == mark));
                        taken.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(pool.free_count(), 3);
    }

    #[test]
    fn a_waiting_thread_gets_the_buffer_that_is_returned() {
        let pool = SharedBufferPool::new(1, 16, 16).unwrap();
        let mut held = pool.acquire();
        held[0] = 7;
        assert!(pool.try_acquire().is_none());
        assert!(pool.acquire_timeout(Duration::ZERO).is_none());
        let waiting = std::thread::spawn({
            let pool = pool.clone();
            move || pool.acquire()[0]
        });
        drop(held);
        assert_eq!(waiting.join().unwrap(), 7);
        assert!(pool.acquire_timeout(Duration::MAX).is_some());
    }

    #[test]
    fn a_buffer_outlives_the_handles_of_its_pool() {
        let pool = SharedBufferPool::new(2, 1000, 512).unwrap();
        let mut buffer = pool.acquire();
        drop(pool);
        buffer.fill(1);
        assert_eq!((buffer.len(), buffer.as_ptr().addr() % 512), (1000, 0));
    }

    #[test]
    fn a_thread_that_panics_returns_its_buffer() {
        let pool = SharedBufferPool::new(1, 16, 16).unwrap();
        let panicking = pool.clone();
        let panicked = std::thread::spawn(move || {
            let _buffer = panicking.acquire();
            panic!("a panic on purpose");
        });
        assert!(panicked.join().is_err());
        assert_eq!(pool.free_count(), 1);
    }
}
