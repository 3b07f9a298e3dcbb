//! Arguments of the caller: numbers, words, paths, buffers. Open files: `descriptor.rs`.
//!
//! A wrong type is a `TypeError`, a number out of range a `ValueError` (below zero) or an
//! `OverflowError` (above the largest number of the machine), as in Python's own functions. Nothing is truncated,
//! wrapped or guessed.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A number of bytes, of buffers, or an offset: what `operator.index` accepts, from 0 on.
pub(crate) fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let index = value.call_method0("__index__").map_err(|_| {
        let kind = value.get_type().name().map_or_else(|_| "object".to_owned(), |kind| kind.to_string());
        PyTypeError::new_err(format!("{name} must be an integer, not {kind}"))
    })?;
    if index.lt(0)? {
        return Err(PyValueError::new_err(format!("{name} must not be negative, and is {index}")));
    }
    index.extract().map_err(|_| PyOverflowError::new_err(format!("{name} does not fit into 64 bits, and is {index}")))
}

/// Like [`count`], for sizes in memory.
pub(crate) fn size(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let value = count(name, value)?;
    usize::try_from(value)
        .map_err(|_| PyOverflowError::new_err(format!("{name} exceeds the address space, and is {value}")))
}

/// One of the words of `table`.
pub(crate) fn word<T: Copy>(name: &str, value: &str, table: &[(&str, T)]) -> PyResult<T> {
    table.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<String> = table.iter().map(|(word, _)| format!("'{word}'")).collect();
        PyValueError::new_err(format!("{name} must be {}, not '{value}'", words.join(" or ")))
    })
}

/// A path as `os.fspath` takes it: text, bytes, or an object that knows its path.
pub(crate) fn path(value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path = value.py().import("os")?.call_method1("fspath", (value,))?;
    let has_zero = match path.cast::<PyBytes>() {
        Ok(bytes) => bytes.as_bytes().contains(&0),
        // Not as UTF-8: a name that is none holds lone surrogates.
        Err(_) => path.contains("\0")?,
    };
    if has_zero {
        return Err(PyValueError::new_err("embedded null character in a path"));
    }
    value.py().import("os")?.call_method1("fsdecode", (path,))?.extract()
}

/// The address that is used for an empty buffer without one: a multiple of every alignment.
const NOWHERE: usize = 1 << 30;

/// Memory that a Python object lends us for one call. While this lives the object can neither free nor move
/// it: that is the buffer protocol's promise.
pub(crate) struct Lent {
    // Released by its own drop, which needs the interpreter: so this never leaves the attached part.
    view: PyUntypedBuffer,
}

/// Address and length, to be carried into the part that runs without the interpreter.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    start: *mut u8,
    length: usize,
}

// SAFETY: an address and a number; each use documents why it is sound.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

impl Lent {
    /// Memory to be read from.
    pub(crate) fn for_reading(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(value, "bytes-like object", |_| true)
    }

    /// Memory to be written to.
    pub(crate) fn for_writing(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(value, "writable bytes-like object", |view| !view.readonly())
    }

    fn new(value: &Bound<'_, PyAny>, wanted: &str, suits: impl Fn(&PyUntypedBuffer) -> bool) -> PyResult<Self> {
        let wrong = |cause: Option<PyErr>, what: &str| {
            let kind = value.get_type().name().map_or_else(|_| "object".to_owned(), |kind| kind.to_string());
            let error = PyTypeError::new_err(format!("buffer must be a contiguous {wanted}, not {what}{kind}"));
            error.set_cause(value.py(), cause);
            error
        };
        let view = match PyUntypedBuffer::get(value) {
            Ok(view) => view,
            // The exception of a closed buffer already describes the error.
            Err(error) if error.is_instance_of::<PyValueError>(value.py()) => return Err(error),
            Err(error) => return Err(wrong(Some(error), "")),
        };
        if !suits(&view) {
            return Err(wrong(None, "a read-only "));
        }
        // Bytes of a file would become pointers to objects.
        if view.format().to_bytes().contains(&b'O') {
            return Err(wrong(None, "object pointers in a "));
        }
        if !view.is_c_contiguous() {
            return Err(wrong(None, "a non-contiguous "));
        }
        Ok(Self { view })
    }

    /// Returns the address and length.
    pub(crate) fn span(&self) -> Span {
        let start = self.view.buf_ptr().cast::<u8>();
        let length = self.view.len_bytes();
        let start = if start.is_null() { std::ptr::without_provenance_mut(NOWHERE) } else { start };
        Span { start, length }
    }
}

impl Span {
    pub(crate) fn address(self) -> usize {
        self.start.addr()
    }

    pub(crate) fn length(self) -> usize {
        self.length
    }

    /// The bytes, for reading.
    ///
    /// # Safety
    /// The [`Lent`] that this is of lives as long as the slice.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the exporter promises `length` bytes at `start` until the view is released. Another thread of
        // the program may change them meanwhile, as with every such call of Python; they are handed to the system
        // or copied, and nothing is concluded from them.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    /// The bytes, for writing.
    ///
    /// # Safety
    /// As [`Self::bytes`], and the [`Lent`] was made for writing.
    pub(crate) unsafe fn bytes_mut<'a>(self) -> &'a mut [u8] {
        // SAFETY: as in `bytes`; the exporter declared the memory writable. That no other call fills the same
        // bytes at the same time is the program's business: it would find a mixture, as with `os.preadv`.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}
