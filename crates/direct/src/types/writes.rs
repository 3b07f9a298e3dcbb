//! Limits of atomic writes, and the flags of a single write.

/// Limits of atomic writes, which a power loss cannot tear (`RWF_ATOMIC`). *(Linux 6.11 or later)*
///
/// The length of an atomic write is a power of two from `min_bytes` to `max_bytes`. Its offset is a multiple of
/// its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicWrite {
    /// Smallest length, in bytes.
    pub min_bytes: u32,
    /// Largest length, in bytes.
    pub max_bytes: u32,
    /// Largest length without a slower path (copy on write in software), in bytes. 0 if not reported; `max_bytes`
    /// applies then, by statx(2).
    pub max_fast_bytes: u32,
    /// Most buffers of one vectored atomic write.
    pub segments_max: u32,
}

/// Flag of a single write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Atomic,
    Uncached,
    Dsync,
}
