//! What `index.js` needs for the ten names of `@ronomon/direct-io`.
//!
//! The messages of failures are those of `@ronomon/direct-io` 3.0.1, to the letter, with the system's number
//! beside them. One thing is different on purpose: a disk without a serial number is described all the
//! same. The arguments have been checked in JavaScript.
//!
//! File descriptors are Node's and stay Node's.

use crate::failure::Failure;
use crate::work;
use napi::bindgen_prelude::{Env, Unknown};
use napi_derive::napi;
use std::fs::File;
use std::mem::ManuallyDrop;
use trueio_direct::{
    DeviceError, LockError, LockMode, device_facts, lock_volume, set_nocache, try_lock, unlock, unlock_volume,
};

/// Flags for `fs.open`, as this system or libuv defines them; 0 where there is none.
#[napi(object)]
pub struct OpenFlags {
    /// Past the page cache.
    #[napi(js_name = "O_DIRECT")]
    pub direct: i32,
    /// Every write waits for its data.
    #[napi(js_name = "O_DSYNC")]
    pub dsync: i32,
    /// On disks: nobody else.
    #[napi(js_name = "O_EXCL")]
    pub excl: i32,
    /// Nobody else. *(macOS, FreeBSD, Windows)*
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
    // macOS has no such flag: `setF_NOCACHE` stands in for it.
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

/// What `getBlockDevice` gives, in this order.
#[napi(object)]
pub struct BlockDevice {
    /// In bytes.
    pub logical_sector_size: f64,
    /// In bytes; 0: it does not say.
    pub physical_sector_size: f64,
    /// In bytes.
    pub size: f64,
    /// Empty: it has none to tell.
    pub serial_number: String,
}

/// The open file behind a descriptor of Node's, which stays open.
#[cfg(unix)]
fn file_of(fd: i32) -> Result<ManuallyDrop<File>, Failure> {
    use std::os::fd::FromRawFd;
    // SAFETY: the file is never dropped, so the descriptor is not closed. That it is open is the user's
    // word; if it is not, every call on it fails with EBADF.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_fd(fd) }))
}

/// The open file behind a descriptor of Node's, which stays open. The descriptor belongs to the C
/// runtime within the program, so only libuv, there, knows its handle.
#[cfg(windows)]
fn file_of(fd: i32) -> Result<ManuallyDrop<File>, Failure> {
    use std::os::windows::io::FromRawHandle;
    use windows_sys::Win32::Foundation::{ERROR_INVALID_HANDLE, INVALID_HANDLE_VALUE};
    use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
    // SAFETY: a null name means the program itself; the function's name ends with a zero.
    let function = unsafe { GetProcAddress(GetModuleHandleW(std::ptr::null()), c"uv_get_osfhandle".as_ptr().cast()) };
    let Some(function) = function else {
        return Err(Failure::own("ENOTSUP", "this program does not export uv_get_osfhandle"));
    };
    // SAFETY: libuv documents `uv_os_fd_t uv_get_osfhandle(int fd)`, and uv_os_fd_t is HANDLE.
    let function: unsafe extern "C" fn(i32) -> *mut std::ffi::c_void = unsafe { std::mem::transmute(function) };
    // SAFETY: it takes any number.
    let handle = unsafe { function(fd) };
    // -2 is what the C runtime answers for a descriptor without a stream.
    if handle == INVALID_HANDLE_VALUE || handle.addr() == usize::MAX - 1 {
        return Err(Failure {
            errno: Some(ERROR_INVALID_HANDLE as i32),
            syscall: Some("uv_get_osfhandle".into()),
            message: "EBADF: bad file descriptor".into(),
            ..Failure::default()
        });
    }
    // SAFETY: the file is never dropped, so the handle is not closed.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_handle(handle) }))
}

/// Asks the disk behind `fd`.
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

/// The first question that `@ronomon/direct-io` asks a device, and which one that is not a disk fails.
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
        // Upstream lets character devices through to the first question; Windows does not look at all.
        DeviceError::NotADevice { kind } if cfg!(windows) || kind == "character device" => {
            #[cfg(unix)]
            let errno = Some(libc::ENOTTY);
            (format!("{FIRST_QUESTION} failed"), "ENOTBLK", errno, "ioctl")
        }
        DeviceError::NotADevice { .. } => {
            ("fd is not a block or character device".to_owned(), "ENOTBLK", None, "fstat")
        }
        // Windows is asked for the size in another way than upstream does.
        DeviceError::Io { call: "IOCTL_DISK_GET_LENGTH_INFO", .. } => {
            ("IOCTL_DISK_GET_DRIVE_GEOMETRY_EX failed".to_owned(), "ERR_TRUEIO_IO", errno, "ioctl")
        }
        DeviceError::Io { call, .. } => {
            let name = call.split(' ').next().unwrap_or(call);
            (format!("{name} failed"), "ERR_TRUEIO_IO", errno, if name == "fstat" { "fstat" } else { "ioctl" })
        }
        _ => ("fstat failed".to_owned(), "ERR_TRUEIO_IO", errno, "fstat"),
    };
    Failure { message, code: Some(code.into()), errno, syscall: Some(syscall.into()), ..Failure::default() }
}

/// Takes (`lock`) or gives up the advisory lock on the file behind `fd`.
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

/// Tells the kernel not to keep pages of the file behind `fd`, or to keep them again. *(macOS)*
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

/// Locks or unlocks the volume behind `fd`. *(Windows)*
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
