//! [`AlignedBuffer`] and [`PooledBuffer`] as buffers of compio. *(feature `compio`)*
//!
//! All bytes of both count as initialised and as content, as those of an array do: a read fills from the first byte and
//! returns how many, and a write takes the whole buffer or the slice that is given.
//!
//! compio opens files itself: give it the flag through `OpenOptions::custom_flags`, or adopt the descriptor of a
//! [`crate::DirectFile`].

use crate::buffer::AlignedBuffer;
use crate::pool::PooledBuffer;
use compio_buf::{IoBuf, IoBufMut, SetLen};
use std::mem::MaybeUninit;

macro_rules! buffers {
    ($($buffer:ty),*) => {
        $(impl IoBuf for $buffer {
            fn as_init(&self) -> &[u8] {
                self
            }
        }

        impl SetLen for $buffer {
            /// The length never changes: all bytes are initialised.
            unsafe fn set_len(&mut self, length: usize) {
                debug_assert!(length <= self.len());
            }
        }

        impl IoBufMut for $buffer {
            fn as_uninit(&mut self) -> &mut [MaybeUninit<u8>] {
                let bytes: &mut [u8] = self;
                bytes.as_uninit()
            }
        })*
    };
}

buffers!(AlignedBuffer, PooledBuffer);
