//! One file per system, with the same functions.
//!
//! Where a system has no such call, the function returns an error with a message.

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

#[cfg(target_os = "android")]
compile_error!("trueio-direct does not support Android yet: its calls were never checked there");
#[cfg(target_os = "netbsd")]
compile_error!("trueio-direct does not support NetBSD: its O_DIRECT, flush and disk calls are not written");
#[cfg(not(any(
    target_os = "linux",
    target_os = "macos",
    target_os = "freebsd",
    target_os = "android",
    target_os = "netbsd",
    windows
)))]
compile_error!("trueio-direct supports Linux, macOS, FreeBSD and Windows only");

#[cfg(target_os = "linux")]
pub(crate) use linux::{make_present, reads_need_present_memory, shared_block, write_offset_now};
pub(crate) use system::{
    adopt, allocate_part, device_facts, evict, extend, flush, lock_range, lock_volume, map_huge_pages, open,
    open_buffered, open_to_read, preallocate, probe, probe_file, read_at, read_uncached, read_vectored_at, residency,
    set_nocache, size_bytes, sync_directory, try_lock, unlock, unmap_huge_pages, unnamed_file, write_at, write_back,
    write_special, write_vectored_at,
};
#[cfg(unix)]
pub(crate) use unix::{appends, disk_key, is_same_file, next_data, number_of_kind, remove_made, set_length};
#[cfg(windows)]
pub(crate) use windows::{appends, disk_key, is_same_file, next_data, number_of_kind, remove_made, set_length};

/// Whether a read may have failed because its range includes space that is reserved for buffered writes.
pub(crate) fn may_collide(error: &std::io::Error) -> bool {
    #[cfg(target_os = "linux")]
    return error.raw_os_error() == Some(libc::EIO);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = error;
        false
    }
}

/// The alignment of an open file grows on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn shared_block(_file: &std::fs::File) -> Option<u32> {
    None
}

/// Direct reads need present memory on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn reads_need_present_memory(_file: &std::fs::File) -> bool {
    false
}

/// See [`reads_need_present_memory`].
#[cfg(not(target_os = "linux"))]
pub(crate) fn make_present(_memory: &mut [u8]) {}

/// See [`shared_block`].
#[cfg(not(target_os = "linux"))]
pub(crate) fn write_offset_now(_file: &std::fs::File) -> Option<u32> {
    None
}
