//! Converts the errors of the library to exceptions.
//!
//! The classes are written in Python (`trueio/direct/_errors.py`), where their attributes can be typed
//! and documented. All are subclasses of `OSError` with an errno: that of the system call, or, if none was made, the one
//! that it would have returned.

use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::io;
use std::path::{Path, PathBuf};
use trueio_direct::{
    AtomicError, BufferError, CopyError, DeviceError, LockError, Misaligned, OpenError, ProbeError, TransferError,
};

/// The source of an error's number.
pub(crate) enum Number {
    /// The system returned it.
    System(i32),
    /// We chose it, by its name in Python's `errno`.
    Named(&'static str),
}

/// The parts of an exception.
pub(crate) struct Problem {
    class: &'static str,
    number: Number,
    message: String,
    path: Option<PathBuf>,
    attributes: Vec<(&'static str, Attribute)>,
}

/// An attribute of an exception, in addition to its message.
pub(crate) enum Attribute {
    Number(u64),
    Word(String),
    Flag(bool),
    Path(PathBuf),
}

impl Problem {
    pub(crate) fn new(class: &'static str, number: Number, message: String) -> Self {
        Self { class, number, message, path: None, attributes: Vec::new() }
    }

    fn on(mut self, path: Option<&Path>) -> Self {
        self.path = path.map(Path::to_owned);
        self
    }

    fn with(mut self, name: &'static str, value: Attribute) -> Self {
        self.attributes.push((name, value));
        self
    }

    fn with_progress(self, offset: u64, wanted: usize, done: usize) -> Self {
        self.with("offset", Attribute::Number(offset))
            .with("wanted", Attribute::Number(wanted as u64))
            .with("done", Attribute::Number(done as u64))
    }
}

/// Makes the exception.
pub(crate) fn raise(py: Python<'_>, problem: Problem) -> PyErr {
    make(py, problem).map_or_else(|error| error, PyErr::from_value)
}

fn make(py: Python<'_>, problem: Problem) -> PyResult<Bound<'_, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let attributes = PyDict::new(py);
    for (name, value) in problem.attributes {
        match value {
            Attribute::Number(value) => attributes.set_item(name, value)?,
            Attribute::Word(value) => attributes.set_item(name, value)?,
            Attribute::Flag(value) => attributes.set_item(name, value)?,
            Attribute::Path(value) => attributes.set_item(name, std::ffi::OsString::from(value))?,
        }
    }
    let (system, named) = match problem.number {
        Number::System(number) => (Some(number), None),
        Number::Named(name) => (None, Some(name)),
    };
    let path = problem.path.map(std::ffi::OsString::from);
    MAKE.import(py, "trueio.direct._errors", "_make")?.call1((
        problem.class,
        system,
        named,
        problem.message,
        path,
        attributes,
    ))
}

/// Returns the number that the system returned, or that of the kind of error.
fn number_of(error: &io::Error) -> Number {
    match (error.raw_os_error(), error.kind()) {
        (Some(number), _) => Number::System(number),
        (None, io::ErrorKind::InvalidInput) => Number::Named("EINVAL"),
        (None, io::ErrorKind::Unsupported) => Number::Named("ENOTSUP"),
        (None, io::ErrorKind::StorageFull) => Number::Named("ENOSPC"),
        (None, io::ErrorKind::WouldBlock) => Number::Named("EAGAIN"),
        (None, io::ErrorKind::AlreadyExists) => Number::Named("EEXIST"),
        (None, io::ErrorKind::NotFound) => Number::Named("ENOENT"),
        (None, io::ErrorKind::IsADirectory) => Number::Named("EISDIR"),
        (None, io::ErrorKind::NotADirectory) => Number::Named("ENOTDIR"),
        (None, io::ErrorKind::PermissionDenied) => Number::Named("EACCES"),
        (None, _) => Number::Named("EIO"),
    }
}

/// Returns an error and its causes in one sentence, without the number that Rust appends, because `errno` has it.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    match text.rfind(" (os error ") {
        Some(at) if text.ends_with(')') => text[..at].to_owned(),
        _ => text,
    }
}

/// An error of the system as Python itself would raise it: `FileNotFoundError` and its like.
fn plain(py: Python<'_>, source: &io::Error, path: Option<&Path>, message: String) -> PyErr {
    let class = if source.kind() == io::ErrorKind::Unsupported { "UnsupportedError" } else { "OSError" };
    raise(py, Problem::new(class, number_of(source), message).on(path))
}

/// An error of the system on an open file.
pub(crate) fn io(py: Python<'_>, error: &io::Error) -> PyErr {
    plain(py, error, None, whole(error))
}

/// An error of the system on a path.
pub(crate) fn io_on(py: Python<'_>, error: &io::Error, path: &Path) -> PyErr {
    plain(py, error, Some(path), whole(error))
}

fn not_a_file(py: Python<'_>, kind: &'static str, path: Option<&Path>, message: String) -> PyErr {
    let (class, number) = match kind {
        "directory" => ("DirectoryError", "EISDIR"),
        "pipe" | "socket" => ("NotAFileError", "ESPIPE"),
        _ => ("NotAFileError", "ENOTBLK"),
    };
    let problem = Problem::new(class, Number::Named(number), message).on(path);
    raise(py, problem.with("kind", Attribute::Word(kind.to_owned())))
}

/// A file was not opened.
pub(crate) fn open(py: Python<'_>, error: &OpenError) -> PyErr {
    let path = error.path();
    let system = |fallback| error.raw_os_error().map_or(Number::Named(fallback), Number::System);
    match error {
        OpenError::NothingAsked { .. } => PyValueError::new_err(error.to_string()),
        OpenError::NotAFile { kind, .. } => not_a_file(py, kind, Some(path), error.to_string()),
        OpenError::Refused { .. } => {
            raise(py, Problem::new("RefusedError", system("EINVAL"), whole(error)).on(Some(path)))
        }
        OpenError::Buffers { .. } => {
            raise(py, Problem::new("SilentlyBufferedError", Number::Named("ENOTSUP"), whole(error)).on(Some(path)))
        }
        OpenError::Busy { .. } => raise(py, Problem::new("BusyError", system("EBUSY"), whole(error)).on(Some(path))),
        OpenError::Io { source, .. } => plain(py, source, Some(path), whole(source)),
        other => plain(py, &io::Error::other("unknown"), Some(path), whole(other)),
    }
}

/// A probe gave no answer.
pub(crate) fn probe(py: Python<'_>, error: &ProbeError) -> PyErr {
    match error {
        ProbeError::NotAFile { path, kind } => not_a_file(py, kind, path.as_deref(), error.to_string()),
        ProbeError::Io { path, source } => plain(py, source, path.as_deref(), whole(source)),
        other => plain(py, &io::Error::other("unknown"), None, whole(other)),
    }
}

/// A transfer that alignment forbids.
pub(crate) fn misaligned(py: Python<'_>, wrong: &Misaligned) -> PyErr {
    let problem = Problem::new("MisalignedError", Number::Named("EINVAL"), wrong.to_string())
        .with("part", Attribute::Word(wrong.part.to_string()))
        .with("value", Attribute::Number(wrong.value))
        .with("needed_bytes", Attribute::Number(wrong.needed_bytes.into()))
        .with("write", Attribute::Flag(wrong.write))
        .with("needed_by", Attribute::Word(wrong.source_of_need.to_string()));
    raise(py, problem)
}

/// A transfer was not completed. `hint` is what that is likely to mean.
pub(crate) fn transfer(py: Python<'_>, error: &TransferError, hint: Option<String>) -> PyErr {
    let mut message = whole(error);
    if let Some(hint) = hint {
        message += &format!("; likely cause: {hint}");
    }
    let problem = match error {
        TransferError::Misaligned(wrong) => return misaligned(py, wrong),
        TransferError::EndOfFile { offset, wanted, done } => {
            Problem::new("EndOfFileError", Number::Named("ENODATA"), message).with_progress(*offset, *wanted, *done)
        }
        TransferError::Appends { offset, wanted } => {
            Problem::new("TransferError", Number::Named("EINVAL"), message).with_progress(*offset, *wanted, 0)
        }
        TransferError::NothingAccepted { offset, wanted, done } => {
            Problem::new("TransferError", Number::Named("EIO"), message).with_progress(*offset, *wanted, *done)
        }
        TransferError::StoppedMisaligned { offset, wanted, done, .. } => {
            Problem::new("TransferError", Number::Named("EINVAL"), message).with_progress(*offset, *wanted, *done)
        }
        TransferError::Io { offset, wanted, done, source, .. }
        | TransferError::PartOfBlock { offset, wanted, done, source, .. } => {
            let unsupported = source.kind() == io::ErrorKind::Unsupported;
            let class = if unsupported { "UnsupportedError" } else { "TransferError" };
            Problem::new(class, number_of(source), message).with_progress(*offset, *wanted, *done)
        }
        _ => Problem::new("TransferError", Number::Named("EIO"), message).with_progress(0, 0, error.done()),
    };
    raise(py, problem)
}

/// A write is not atomic here.
pub(crate) fn atomic(py: Python<'_>, error: &AtomicError) -> PyErr {
    match error {
        AtomicError::Transfer(error) => transfer(py, error, None),
        AtomicError::Torn { offset, length, done } => {
            let problem = Problem::new("TransferError", Number::Named("EIO"), error.to_string());
            raise(py, problem.with_progress(*offset, *length, *done))
        }
        _ => raise(py, Problem::new("AtomicLimitError", Number::Named("EINVAL"), error.to_string())),
    }
}

/// A file was not copied from the first of `paths` to the second.
pub(crate) fn copy(py: Python<'_>, error: &CopyError, paths: &(PathBuf, PathBuf)) -> PyErr {
    let (number, done) = match error {
        CopyError::Open(error) => return open(py, error),
        CopyError::Exists { path } => {
            let problem = Problem::new("OSError", Number::Named("EEXIST"), error.to_string());
            return raise(py, problem.on(Some(path)));
        }
        CopyError::Io { source, done, .. } => match error.raw_os_error() {
            Some(number) => (Number::System(number), *done),
            None if source.kind() == io::ErrorKind::OutOfMemory => return PyMemoryError::new_err(whole(error)),
            None => (number_of(source), *done),
        },
        CopyError::Stopped { done } => (Number::Named("ECANCELED"), *done),
        // The file is the same, or one of the two is too short.
        _ => (Number::Named("EINVAL"), 0),
    };
    let problem = Problem::new("CopyError", number, whole(error)).on(Some(&paths.0));
    let problem = problem.with("filename2", Attribute::Path(paths.1.clone()));
    raise(py, problem.with("done", Attribute::Number(done)))
}

/// No lock was given.
pub(crate) fn lock(py: Python<'_>, error: &LockError) -> PyErr {
    let system = |source: &io::Error| number_of(source);
    match error {
        LockError::Held(source) => raise(py, Problem::new("LockHeldError", system(source), whole(error))),
        LockError::Unsupported(_) => {
            raise(py, Problem::new("UnsupportedError", Number::Named("ENOTSUP"), whole(error)))
        }
        LockError::Io(source) => plain(py, source, None, whole(error)),
        other => plain(py, &io::Error::other("unknown"), None, whole(other)),
    }
}

/// Nothing is known of a disk.
pub(crate) fn device(py: Python<'_>, error: &DeviceError) -> PyErr {
    match error {
        DeviceError::NotADevice { kind } => {
            let problem = Problem::new("NotADeviceError", Number::Named("ENOTBLK"), error.to_string());
            raise(py, problem.with("kind", Attribute::Word((*kind).to_owned())))
        }
        DeviceError::Io { source, .. } => plain(py, source, None, whole(error)),
        other => plain(py, &io::Error::other("unknown"), None, whole(other)),
    }
}

/// No aligned memory was given.
pub(crate) fn buffer(error: &BufferError) -> PyErr {
    match error {
        BufferError::TooLarge { .. } | BufferError::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
