//! One file per system, each with the same functions under the same names.
//!
//! Where a system lacks something, its file answers with a value and a sentence.

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
mod bsd;
#[cfg(unix)]
mod unix;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;

#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod system;

#[cfg(target_os = "freebsd")]
#[path = "freebsd.rs"]
mod system;

#[cfg(windows)]
#[path = "windows.rs"]
mod system;

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd", windows)))]
compile_error!("trueio-direct knows Linux, macOS, FreeBSD and Windows");

pub(crate) use system::{
    device_facts, evict, flush, lock_range, lock_volume, open, preallocate, prefer_huge_pages, probe, probe_file,
    read_at, read_uncached, read_vectored_at, residency, set_nocache, size_bytes, sync_directory, try_lock, unlock,
    unnamed_file, write_at, write_special, write_vectored_at,
};
