//! [`AlignedBuffer`] and [`PooledBuffer`] as buffers of tokio-uring. *(feature `tokio-uring`, Linux)*
//!
//! All bytes of both count as initialised: a read fills from the first byte and returns how many, and a write takes the
//! whole buffer or the slice that is given.
//!
//! `tokio_uring::fs::File::from_std` takes a [`crate::DirectFile`]'s [`into_file`](crate::DirectFile::into_file).

use crate::buffer::AlignedBuffer;
use crate::pool::PooledBuffer;
use tokio_uring::buf::{IoBuf, IoBufMut};

macro_rules! buffers {
    ($($buffer:ty),*) => {
        $(
            // SAFETY: the bytes are memory of their own, which stays where it is when the buffer is moved, and is freed
            // when the buffer is dropped.
            unsafe impl IoBuf for $buffer {
                fn stable_ptr(&self) -> *const u8 {
                    self.as_ref().as_ptr()
                }

                fn bytes_init(&self) -> usize {
                    self.len()
                }

                fn bytes_total(&self) -> usize {
                    self.len()
                }
            }

            // SAFETY: as above.
            unsafe impl IoBufMut for $buffer {
                fn stable_mut_ptr(&mut self) -> *mut u8 {
                    self.as_mut().as_mut_ptr()
                }

                /// All bytes are initialised already.
                unsafe fn set_init(&mut self, count: usize) {
                    debug_assert!(count <= self.len());
                }
            }
        )*
    };
}

buffers!(AlignedBuffer, PooledBuffer);
