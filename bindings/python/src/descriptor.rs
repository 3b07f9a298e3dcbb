//! Arguments that are open files: a `DirectFile`, an object with `fileno()`, or a descriptor.

use crate::error::{self, Number, Problem};
use crate::file::DirectFile;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

/// An open file: ours, or that of any object with `fileno()`, or a descriptor.
pub(crate) enum OpenFile {
    /// Kept open by this.
    Ours(Arc<trueio_direct::DirectFile>),
    /// Never closed by us. It is not duplicated, because closing the copy would lose the process's POSIX
    /// locks on the file: fcntl_locking(2).
    Borrowed(ManuallyDrop<File>),
}

impl Deref for OpenFile {
    type Target = File;

    fn deref(&self) -> &File {
        match self {
            Self::Ours(file) => file.file(),
            Self::Borrowed(file) => file,
        }
    }
}

/// Returns the open file that `value` refers to; [`None`] if it is not an open file (a path, for example).
pub(crate) fn open_file_or_none(value: &Bound<'_, PyAny>) -> PyResult<Option<OpenFile>> {
    if let Ok(file) = value.cast::<DirectFile>() {
        return file.get().open_file().map(|file| Some(OpenFile::Ours(file)));
    }
    let number = if value.is_instance_of::<PyInt>() {
        value.clone()
    } else if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() || !value.hasattr("fileno")? {
        return Ok(None);
    } else {
        value.call_method0("fileno")?
    };
    let bad = || {
        let message = format!("{number} is not an open file descriptor");
        error::raise(value.py(), Problem::new("OSError", Number::Named("EBADF"), message))
    };
    let descriptor: i32 = number.extract().map_err(|_| bad())?;
    if descriptor < 0 {
        return Err(bad());
    }
    Ok(Some(OpenFile::Borrowed(ManuallyDrop::new(file_of(value.py(), descriptor)?))))
}

#[cfg(unix)]
fn file_of(_py: Python<'_>, descriptor: i32) -> PyResult<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: not below zero, and wrapped so that it is never closed here. That it is open, and stays so
    // for the call, is the caller's promise, as with every function of Python's `os` that takes one; a number
    // that is not open makes the system answer EBADF.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

#[cfg(windows)]
fn file_of(py: Python<'_>, descriptor: i32) -> PyResult<File> {
    use std::os::windows::io::FromRawHandle;
    // Python's descriptors are those of the C library; it knows the handle.
    let handle: isize = py.import("msvcrt")?.call_method1("get_osfhandle", (descriptor,))?.extract()?;
    // SAFETY: a handle of an open file, which the C library returned, and wrapped so that it is never
    // closed here. That it stays open for the call is the caller's promise.
    Ok(unsafe { File::from_raw_handle(handle as *mut _) })
}

/// Returns the open file that `value` refers to, or raises TypeError.
pub(crate) fn open_file(value: &Bound<'_, PyAny>) -> PyResult<OpenFile> {
    open_file_or_none(value)?.ok_or_else(|| {
        let kind = value.get_type().name().map_or_else(|_| "object".to_owned(), |kind| kind.to_string());
        PyTypeError::new_err(format!("file must be a DirectFile, a file with fileno(), or a descriptor, not {kind}"))
    })
}
