//! Calls that are the same on macOS and FreeBSD: opening with `O_EXLOCK`, disks that are character devices.
//!
//! Never run by the project's tests: the code is type-checked and linked only. Each call cites its manual page.

use super::unix;
use crate::types::{DeviceError, DeviceFacts, OpenError, OpenOptions, SyncMode};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// Opens `path` with `options` and `extra` flags, and returns its kind. Only [`give_up`] removes a file that was
/// created here.
///
/// `O_EXLOCK` takes an advisory lock in the same step. `O_NONBLOCK` makes it fail instead of wait, and is removed
/// afterwards. Source: open(2) of both systems.
pub(crate) fn open(path: &Path, options: &OpenOptions, extra: OFlags) -> Result<(File, FileType), OpenError> {
    let io_error = |errno: Errno| OpenError::Io { path: path.to_owned(), source: errno.into() };
    if !options.create_new {
        // Checked before opening, because opening a pipe waits for its other end.
        refuse_unfit(path, FileType::from_raw_mode(rustix::fs::stat(path).map_err(io_error)?.st_mode))?;
    }
    let mut flags = base_flags(options) | extra;
    if options.create_new {
        flags |= OFlags::CREATE | OFlags::EXCL;
    }
    if options.exclusive {
        flags |= OFlags::from_bits_retain(libc::O_EXLOCK as _) | OFlags::NONBLOCK;
    }
    #[allow(clippy::useless_conversion)] // the mode is 16 bits wide on these systems
    let mode = Mode::from_raw_mode(options.mode.try_into().unwrap_or(0o600));
    let fd = rustix::fs::open(path, flags, mode).map_err(|errno| match errno {
        Errno::AGAIN | Errno::BUSY => OpenError::Busy { path: path.to_owned(), source: errno.into() },
        errno => io_error(errno),
    })?;
    let file = File::from(fd);
    let checked = (|| {
        if options.exclusive {
            let flags = rustix::fs::fcntl_getfl(&file).map_err(io_error)?;
            rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK).map_err(io_error)?;
        }
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(io_error)?.st_mode);
        refuse_unfit(path, kind)?;
        Ok(kind)
    })();
    match checked {
        Ok(kind) => Ok((file, kind)),
        Err(error) => Err(give_up(path, options, &file, error)),
    }
}

/// Removes the file if it was created here, and returns the error.
pub(crate) fn give_up(path: &Path, options: &OpenOptions, file: &File, error: OpenError) -> OpenError {
    if options.create_new {
        unix::remove_made(path, file);
    }
    error
}

/// Returns the kind of a file without data at offsets. Character devices may be disks on these systems.
pub(crate) fn unfit_kind(kind: FileType) -> Option<&'static str> {
    if kind == FileType::CharacterDevice { None } else { unix::unfit_kind(kind) }
}

fn refuse_unfit(path: &Path, kind: FileType) -> Result<(), OpenError> {
    match unfit_kind(kind) {
        Some(kind) => Err(OpenError::NotAFile { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

fn base_flags(options: &OpenOptions) -> OFlags {
    let access = match (options.read, options.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    let sync = match options.sync {
        SyncMode::None => 0,
        SyncMode::Dsync => libc::O_DSYNC,
        SyncMode::Sync => libc::O_SYNC,
    };
    access | OFlags::from_bits_retain(sync as _) | OFlags::CLOEXEC | OFlags::NOCTTY
}

/// Opens the file at `path` for reading, or for writing without read permission; also returns its kind.
pub(crate) fn open_to_ask(path: &Path) -> Result<(File, FileType), Errno> {
    let kind = FileType::from_raw_mode(rustix::fs::stat(path)?.st_mode);
    let flags = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    if unfit_kind(kind).is_some() {
        // Not opened: the caller refuses it by its kind.
        return Ok((File::from(rustix::fs::open("/dev/null", flags, Mode::empty())?), kind));
    }
    let fd = match rustix::fs::open(path, flags | OFlags::RDONLY, Mode::empty()) {
        Err(Errno::ACCESS) => rustix::fs::open(path, flags | OFlags::WRONLY, Mode::empty()),
        other => other,
    }?;
    Ok((File::from(fd), kind))
}

/// Returns the length of a file, or the capacity that `disk` reports for a disk, in bytes.
pub(crate) fn size_bytes(file: &File, disk: fn(&File) -> Result<DeviceFacts, DeviceError>) -> io::Result<u64> {
    let metadata = file.metadata()?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    disk(file).map(|facts| facts.size_bytes).map_err(io::Error::other)
}

/// Returns the name of the filesystem of the file ("apfs", "zfs"). Source: fstatfs(2).
pub(crate) fn filesystem_name(file: &File) -> io::Result<String> {
    let statfs = rustix::fs::fstatfs(file)?;
    let bytes: Vec<u8> = statfs.f_fstypename.iter().map(|c| *c as u8).take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
