//! The native functions for the ten names of `@ronomon/direct-io`, called by `index.js`.
//!
//! The messages of failures are exactly those of `@ronomon/direct-io` 3.0.1, with the system's number in addition. One
//! difference is deliberate: the facts of a disk without a serial number are returned, too. `index.js` has checked
//! the arguments.
//!
//! File descriptors are Node's and stay Node's.

use crate::descriptor::file_of;
use crate::failure::Failure;
use crate::work;
use napi::bindgen_prelude::{Env, Unknown};
use napi_derive::napi;
use trueio_direct::{
    DeviceError, LockError, LockMode, device_facts, lock_volume, set_nocache, try_lock, unlock, unlock_volume,
};

/// Flags for `fs.open`, as this system or libuv defines them; 0 where there is none.
#[napi(object)]
pub struct OpenFlags {
    /// I/O past the page cache.
    #[napi(js_name = "O_DIRECT")]
    pub direct: i32,
    /// Every write waits for its data.
    #[napi(js_name = "O_DSYNC")]
    pub dsync: i32,
    /// Exclusive use of a disk.
    #[napi(js_name = "O_EXCL")]
    pub excl: i32,
    /// Exclusive use. *(macOS, FreeBSD, Windows)*
    #[napi(js_name = "O_EXLOCK")]
    pub exlock: i32,
    /// Every write waits for data and metadata.
    #[napi(js_name = "O_SYNC")]
    pub sync: i32,
}

/// The flags of this system.
#[napi]
pub fn open_flags() -> OpenFlags {
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    let direct = libc::O_DIRECT;
    // macOS has no such flag: `setF_NOCACHE` replaces it.
    #[cfg(target_os = "macos")]
    let direct = 0;
    #[cfg(target_os = "linux")]
    let exlock = 0;
    #[cfg(any(target_os = "macos", target_os = "freebsd"))]
    let exlock = libc::O_EXLOCK;
    #[cfg(unix)]
    let flags = OpenFlags { direct, dsync: libc::O_DSYNC, excl: libc::O_EXCL, exlock, sync: libc::O_SYNC };
    // libuv's own numbers, which it translates: include/uv/win.h, UV_FS_O_*.
    #[cfg(windows)]
    let flags =
        OpenFlags { direct: 0x0200_0000, dsync: 0x0400_0000, excl: 0x0400, exlock: 0x1000_0000, sync: 0x0800_0000 };
    flags
}

/// The result of `getBlockDevice`, in this order.
#[napi(object)]
pub struct BlockDevice {
    /// In bytes.
    pub logical_sector_size: f64,
    /// In bytes; 0: not reported.
    pub physical_sector_size: f64,
    /// In bytes.
    pub size: f64,
    /// Empty: not reported.
    pub serial_number: String,
}

/// Reads the facts of the disk with the descriptor `fd`.
#[napi]
pub fn get_block_device(env: Env, fd: i32, done: Unknown) -> napi::Result<()> {
    let job = move || {
        let facts = device_facts(&*file_of(fd)?).map_err(device_failure)?;
        Ok(BlockDevice {
            logical_sector_size: f64::from(facts.logical_sector_bytes),
            physical_sector_size: f64::from(facts.physical_sector_bytes.unwrap_or(0)),
            size: facts.size_bytes as f64,
            serial_number: facts.serial.unwrap_or_default(),
        })
    };
    work::start(env, &done, None, job, |_, _, device| Ok(device))
}

/// The first call that `@ronomon/direct-io` makes on a device, which fails if it is not a disk.
#[cfg(target_os = "linux")]
const FIRST_QUESTION: &str = "BLKSSZGET";
#[cfg(target_os = "macos")]
const FIRST_QUESTION: &str = "DKIOCGETBLOCKSIZE";
#[cfg(target_os = "freebsd")]
const FIRST_QUESTION: &str = "DIOCGSECTORSIZE";
#[cfg(windows)]
const FIRST_QUESTION: &str = "IOCTL_STORAGE_QUERY_PROPERTY";

fn device_failure(error: DeviceError) -> Failure {
    let errno = error.raw_os_error();
    let (message, code, errno, syscall) = match error {
        // Upstream makes its first call on character devices, too, and on Windows does not check the kind at all.
        DeviceError::NotADevice { kind } if cfg!(windows) || kind == "character device" => {
            #[cfg(unix)]
            let errno = Some(libc::ENOTTY);
            (format!("{FIRST_QUESTION} failed"), "ENOTBLK", errno, "ioctl")
        }
        DeviceError::NotADevice { .. } => {
            ("fd is not a block or character device".to_owned(), "ENOTBLK", None, "fstat")
        }
        // The size is read by another call than upstream's.
        DeviceError::Io { call: "IOCTL_DISK_GET_LENGTH_INFO", .. } => {
            ("IOCTL_DISK_GET_DRIVE_GEOMETRY_EX failed".to_owned(), "ERR_TRUEIO_IO", errno, "ioctl")
        }
        DeviceError::Io { call, .. } => {
            let name = call.split(' ').next().unwrap_or(call);
            (format!("{name} failed"), "ERR_TRUEIO_IO", errno, if name == "fstat" { "fstat" } else { "ioctl" })
        }
        _ => ("fstat failed".to_owned(), "ERR_TRUEIO_IO", errno, "fstat"),
    };
    let code = errno.is_none().then(|| code.into());
    Failure { message, code, errno, syscall: Some(syscall.into()), ..Failure::default() }
}

/// Takes (`lock`) or releases the advisory lock on the file of the descriptor `fd`.
#[napi]
pub fn set_flock(env: Env, fd: i32, lock: bool, done: Unknown) -> napi::Result<()> {
    let job = move || {
        let file = file_of(fd)?;
        let result = if lock { try_lock(&file, LockMode::Exclusive) } else { unlock(&file) };
        result.map_err(flock_failure)
    };
    work::start(env, &done, None, job, |_, _, ()| Ok(()))
}

fn flock_failure(error: LockError) -> Failure {
    let errno = error.raw_os_error();
    #[cfg(unix)]
    let message = match errno {
        Some(libc::EWOULDBLOCK) => "EWOULDBLOCK, the file is already locked",
        Some(libc::EBADF) => "EBADF, fd is an invalid file descriptor",
        Some(libc::EINTR) => "EINTR, the call was interrupted by a signal",
        Some(libc::EINVAL) => "EINVAL, fd does not refer to a file",
        Some(libc::ENOTSUP) => "ENOTSUP, fd is not of the correct type",
        _ => "unable to obtain an exclusive lock",
    };
    #[cfg(windows)]
    let message = "unable to obtain an exclusive lock";
    Failure { message: message.into(), errno, syscall: Some("flock".into()), ..Failure::default() }
}

/// Requests the kernel not to keep pages of the file of the descriptor `fd`, or to keep them again. *(macOS)*
#[napi]
pub fn set_no_cache(env: Env, fd: i32, nocache: bool, done: Unknown) -> napi::Result<()> {
    let job = move || {
        set_nocache(&*file_of(fd)?, nocache).map_err(|error| {
            #[cfg(unix)]
            let is_bad = error.raw_os_error() == Some(libc::EBADF);
            #[cfg(windows)]
            let is_bad = false;
            let message = if is_bad { "EBADF: bad file descriptor, fcntl" } else { "unexpected error, fcntl" };
            Failure { message: message.into(), ..Failure::of_io("fcntl", &error, "fcntl") }
        })
    };
    work::start(env, &done, None, job, |_, _, ()| Ok(()))
}

/// Locks or unlocks the volume of the descriptor `fd`. *(Windows)*
#[napi]
pub fn set_volume_lock(env: Env, fd: i32, lock: bool, done: Unknown) -> napi::Result<()> {
    let job = move || {
        let file = file_of(fd)?;
        let result = if lock { lock_volume(&file) } else { unlock_volume(&file) };
        result.map_err(|error| {
            let name = if lock { "FSCTL_LOCK_VOLUME" } else { "FSCTL_UNLOCK_VOLUME" };
            Failure {
                message: format!("{name} failed"),
                errno: error.raw_os_error(),
                syscall: Some("DeviceIoControl".into()),
                ..Failure::default()
            }
        })
    };
    work::start(env, &done, None, job, |_, _, ()| Ok(()))
}
