//! How far what was written has come when a flush returns.
//!
//! Four levels, each with one promise that can be stated; systems differ in which they can keep
//! alone, and a stronger call stands in for a weaker one, never the reverse: a level that cannot be
//! kept is an error. [`Flushed`] says what was called.
//!
//! The table stands with [`FlushLevel`].
//!
//! Cannot see: whether the drive obeys. A filesystem mounted with `nobarrier`, a controller that
//! declares its cache safe, and a drive that lies all make `Device` an empty word; only power loss
//! shows it.
//!
//! Source: fsync(2) (Linux: "includes … flushing the disk cache if present"); macOS fsync(2), fcntl(2);
//! FreeBSD fsync(2); Microsoft, "FlushFileBuffers".

use std::fs::File;
use std::io;
use std::path::Path;

/// What a flush is to promise, and the call that keeps it:
///
/// | level   | Linux       | macOS            | FreeBSD: ZFS | FreeBSD: UFS | FreeBSD: disk | Windows            |
/// |---------|-------------|------------------|--------------|--------------|---------------|--------------------|
/// | Barrier | `fdatasync` | `F_BARRIERFSYNC` | `fsync`      | none         | `DIOCGFLUSH`  | `FlushFileBuffers` |
/// | Data    | `fdatasync` | `fsync`          | `fdatasync`  | `fdatasync`  | `DIOCGFLUSH`  | `FlushFileBuffers` |
/// | File    | `fsync`     | `fsync`          | `fsync`      | `fsync`      | `DIOCGFLUSH`  | `FlushFileBuffers` |
/// | Device  | `fsync`     | `F_FULLFSYNC`    | `fsync`      | none         | `DIOCGFLUSH`  | `FlushFileBuffers` |
///
/// None of them binds a drive that lies, a controller that declares its cache safe, a filesystem
/// mounted with `nobarrier`, or an overlay mounted `volatile`; and on tmpfs and ramfs there is nothing to
/// flush and nothing lasts.
///
/// `Device` includes `File`, which includes `Data`. `Barrier` is about order alone: `Device` includes
/// it everywhere, `Data` and `File` include it on Linux and Windows, where they flush the device too,
/// and not on macOS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlushLevel {
    /// What was written before reaches the medium before what is written after.
    Barrier,
    /// The data, and the metadata needed to read it back, have been given to the device.
    Data,
    /// All metadata of the file too (times, permissions).
    File,
    /// The device has been told to empty its volatile cache. The default here and in the bindings.
    #[default]
    Device,
}

/// What a flush did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    /// The level that was reached: never below the one asked for.
    pub level: FlushLevel,
    /// Whether the call is also specified to flush the device's volatile cache.
    pub device_cache_flushed: bool,
    /// What was called ("fdatasync").
    pub call: &'static str,
}

/// Flushes what was written to `file` as far as `level`, and waits for it.
///
/// The name of a new or renamed file is not part of its data: see [`sync_directory`].
///
/// # Errors
/// What the system said, and [`io::ErrorKind::Unsupported`] where it has no call that keeps the
/// promise. After an error, what was written before may be lost even if a later flush succeeds:
/// Linux reports a failed write-back once and marks the pages clean.
pub fn flush(file: &File, level: FlushLevel) -> io::Result<Flushed> {
    let flushed = crate::os::flush(file, level)?;
    assert!(flushed.level >= level, "a flush fell short of its level and did not say so");
    Ok(flushed)
}

/// Makes the names in a directory durable: after a file was made, renamed or removed in it.
///
/// # Errors
/// What the system said; [`io::ErrorKind::Unsupported`] on Windows, which has no such call.
pub fn sync_directory(path: impl AsRef<Path>) -> io::Result<()> {
    crate::os::sync_directory(path.as_ref())
}

/// Reserves space for bytes `offset .. offset + len` of `file`, and makes the file that long if it
/// is shorter. Contents that exist are not changed; new bytes read as zeros. After an error the file has the length
/// that it had (a filesystem may have made it longer before its space ran out).
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where the filesystem cannot reserve (nothing is written in its
/// place: pretending would be slow and would not be a reservation); [`io::ErrorKind::StorageFull`]
/// where there is no space; [`io::ErrorKind::InvalidInput`] for a length of zero.
pub fn preallocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a reservation of zero bytes"));
    }
    if offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the reservation ends beyond the largest file offset"));
    }
    let before = file.metadata()?;
    crate::os::preallocate(file, offset, len).inspect_err(|_| {
        let is_longer = |now: std::fs::Metadata| now.len() > before.len() && now.len() <= offset + len;
        if before.is_file() && file.metadata().is_ok_and(is_longer) {
            // The caller gets the error of the reservation; a second one would hide it.
            let _ = file.set_len(before.len());
        }
    })
}
