//! One file per system, each with the same functions under the same names.
//!
//! Where a system lacks something, its file returns a value that says so, with a sentence.

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
mod bsd;
#[cfg(unix)]
mod unix;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos as system;

#[cfg(target_os = "freebsd")]
mod freebsd;
#[cfg(target_os = "freebsd")]
use freebsd as system;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as system;

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd", windows)))]
compile_error!("trueio-direct supports Linux, macOS, FreeBSD and Windows");

pub(crate) use system::{
    adopt, device_facts, evict, flush, lock_range, lock_volume, open, preallocate, prefer_huge_pages, probe,
    probe_file, read_at, read_uncached, read_vectored_at, residency, set_nocache, size_bytes, sync_directory, try_lock,
    unlock, unnamed_file, write_at, write_special, write_vectored_at,
};
