//! One file per system, each with the same functions under the same names.
//!
//! Where a system lacks something, its file answers with a value and a sentence.

#[cfg(unix)]
mod unix;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;

#[cfg(not(target_os = "linux"))]
#[path = "unported.rs"]
mod system;

pub(crate) use system::{
    device_facts, evict, flush, lock_range, lock_volume, open, preallocate, probe, probe_file, read_at, residency,
    sync_directory, try_lock, unlock, write_at,
};
