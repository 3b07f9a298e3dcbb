//! Direct I/O on Linux, macOS, FreeBSD and Windows: alignment, policy, flush levels, exact
//! transfers.
//!
//! One door, one file per system: `os/{linux,macos,freebsd,windows}.rs` offer the same functions.
#![deny(missing_docs)]

mod alignment;
mod buffer;
mod cache;
mod device;
mod flush;
mod lock;
mod open;
mod os;
mod probe;
mod special;
mod transfer;
mod unaligned;

pub use alignment::{
    ASSUMED_ALIGNMENT_BYTES, Alignment, AlignmentSource, Misaligned, TransferPart, check_transfer, round_down, round_up,
};
pub use buffer::{AlignedBuffer, BufferError, BufferPool};
pub use cache::{Residency, evict, residency};
pub use device::{DeviceError, DeviceFacts, device_facts};
pub use flush::{FlushLevel, Flushed, flush, preallocate, sync_directory};
pub use lock::{LockError, LockMode, lock_volume, try_lock, try_lock_range, unlock, unlock_range, unlock_volume};
pub use open::{DirectFile, Granted, OpenError, OpenOptions, Policy, SyncMode};
pub use probe::{Answer, AtomicWrite, Probe, ProbeError, Support, probe, probe_file};
pub use special::{AtomicError, read_uncached_at, write_atomic_at, write_dsync_at, write_uncached_at};
pub use transfer::{Transfer, TransferError, read_exact_at, write_all_at};
pub use unaligned::{read_unaligned_by_copy_at, write_unaligned_by_read_modify_write_at};
