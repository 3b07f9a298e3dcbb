//! The open file of a descriptor of Node, which is never closed here.

use crate::failure::Failure;
use std::fs::File;
use std::mem::ManuallyDrop;

/// Returns the open file of a descriptor of Node, which stays open.
#[cfg(unix)]
pub(crate) fn file_of(fd: i32) -> Result<ManuallyDrop<File>, Failure> {
    use std::os::fd::FromRawFd;
    // SAFETY: the file is never dropped, so the descriptor is not closed. The caller passes an open
    // descriptor; if it is not open, every call on it fails with EBADF.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_fd(fd) }))
}

/// Returns the open file of a descriptor of Node, which stays open. The descriptor belongs to the C
/// runtime within the program, so only libuv there can look up its handle.
#[cfg(windows)]
pub(crate) fn file_of(fd: i32) -> Result<ManuallyDrop<File>, Failure> {
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
    // The C runtime returns -2 for a descriptor without a stream.
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
