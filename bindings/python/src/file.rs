//! An open file, what was granted for it, and its transfers.
//!
//! `close` takes the file away at once for every later call; a transfer that another thread has under way
//! ends first, and only then is the descriptor closed. So a number that was closed is never used again by
//! a thread that was slow.

use crate::argument::{Lent, count, path, word};
use crate::error;
use crate::fact::{Alignment, Flushed, Transfer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex, PoisonError};
use trueio_direct::{FlushLevel, Granted, OpenOptions, Policy, SyncMode};

const POLICIES: [(&str, Policy); 3] = [("require", Policy::Require), ("prefer", Policy::Prefer), ("off", Policy::Off)];
const SYNC_MODES: [(&str, SyncMode); 3] =
    [("none", SyncMode::None), ("dsync", SyncMode::Dsync), ("sync", SyncMode::Sync)];
const LEVELS: [(&str, FlushLevel); 4] = [
    ("barrier", FlushLevel::Barrier),
    ("data", FlushLevel::Data),
    ("file", FlushLevel::File),
    ("device", FlushLevel::Device),
];

/// What a word for a flush level means.
pub(crate) fn flush_level(level: &str) -> PyResult<FlushLevel> {
    word("level", level, &LEVELS)
}

/// What a flush did, with the level's own word.
pub(crate) fn flushed(flushed: trueio_direct::Flushed) -> Flushed {
    let level = match flushed.level {
        FlushLevel::Barrier => "barrier",
        FlushLevel::Data => "data",
        FlushLevel::File => "file",
        FlushLevel::Device => "device",
    };
    Flushed { level, device_cache_flushed: flushed.device_cache_flushed, call: flushed.call }
}

/// An open file, what was granted for it, and what its transfers must keep to. Made by `open`.
///
/// Threads may share it: every transfer has an offset of its own, there is no position. `with` closes it at
/// the end; so does forgetting it. After that every call raises ValueError.
#[pyclass(frozen, module = "trueio.direct")]
pub(crate) struct DirectFile {
    file: Mutex<Option<Arc<trueio_direct::DirectFile>>>,
    name: Py<PyAny>,
    mode: &'static str,
    granted: &'static str,
    reason: String,
    alignment: Alignment,
}

impl DirectFile {
    /// The open file, kept open for as long as this is held.
    pub(crate) fn open_file(&self) -> PyResult<Arc<trueio_direct::DirectFile>> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.clone().ok_or_else(|| PyValueError::new_err("I/O operation on closed file"))
    }
}

#[pymethods]
impl DirectFile {
    /// The path as it was given to `open`.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyAny> {
        self.name.clone_ref(py)
    }

    /// How it was opened: "r", "r+", "x" or "x+".
    #[getter]
    fn mode(&self) -> &'static str {
        self.mode
    }

    /// What opening really gave: "direct", "unconfirmed" (the flag was accepted, its effect is
    /// unknown: FUSE, network filesystems), "not-kept" (the kernel was asked not to keep pages; macOS, files of
    /// FreeBSD) or "buffered".
    #[getter]
    fn granted(&self) -> &'static str {
        self.granted
    }

    /// Why that was granted and who says so, as a sentence without a full stop.
    #[getter]
    fn reason(&self) -> &str {
        &self.reason
    }

    /// What transfers must keep to. Where the page cache is used: nothing.
    #[getter]
    fn alignment(&self) -> Alignment {
        self.alignment.clone()
    }

    /// True once `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// The descriptor, for `os.preadv`, `os.fstat` and their like; it stays this object's own. *(not on Windows,
    /// where it raises UnsupportedError)*
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        let file = self.open_file()?;
        #[cfg(unix)]
        {
            let _ = py;
            Ok(std::os::fd::AsRawFd::as_raw_fd(file.file()))
        }
        #[cfg(not(unix))]
        {
            let _ = file;
            let message = "a file of Windows has a handle and no descriptor".to_owned();
            Err(error::raise(py, error::Problem::new("UnsupportedError", error::Number::Named("ENOTSUP"), message)))
        }
    }

    /// Closes the file. A transfer that another thread has under way ends first. Closing twice is no error.
    fn close(&self, py: Python<'_>) {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(file));
    }

    /// Fills `buffer`, any writable contiguous buffer, with the bytes of the file from `offset` on, with as many
    /// calls of the system as it takes.
    ///
    /// Raises MisalignedError before the call if address, length or offset does not suit the file's alignment,
    /// EndOfFileError if the file is shorter (what was read until then is in the buffer), and TransferError with
    /// the system's errno for what the system says.
    fn read_exact_at(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
    ) -> PyResult<Transfer> {
        let (file, offset) = (self.open_file()?, count("offset", offset)?);
        let lent = Lent::for_writing(buffer)?;
        let span = lent.span();
        // SAFETY: `lent` outlives the call, and was made for writing.
        let result = py.detach(|| file.read_exact_at(unsafe { span.bytes_mut() }, offset));
        result.map(Transfer::from).map_err(|error| error::transfer(py, &error, file.likely_cause(&error)))
    }

    /// Reads from `offset` into `buffer`, any writable contiguous buffer, until it is full or the file ends.
    ///
    /// `bytes` of the result is smaller than the buffer only where the file ended. Raises MisalignedError and
    /// TransferError as `read_exact_at`, never EndOfFileError.
    fn read_at(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, offset: &Bound<'_, PyAny>) -> PyResult<Transfer> {
        let (file, offset) = (self.open_file()?, count("offset", offset)?);
        let lent = Lent::for_writing(buffer)?;
        let span = lent.span();
        // SAFETY: `lent` outlives the call, and was made for writing.
        let result = py.detach(|| file.read_at(unsafe { span.bytes_mut() }, offset));
        result.map(Transfer::from).map_err(|error| error::transfer(py, &error, file.likely_cause(&error)))
    }

    /// Writes all of `buffer`, any contiguous buffer, at `offset`, with as many calls of the system as it takes.
    ///
    /// Raises MisalignedError before the call if address, length or offset does not suit the file's alignment,
    /// and TransferError with the system's errno for what the system says; what was written until then stays
    /// written.
    fn write_all_at(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, offset: &Bound<'_, PyAny>) -> PyResult<Transfer> {
        let (file, offset) = (self.open_file()?, count("offset", offset)?);
        let lent = Lent::for_reading(buffer)?;
        let span = lent.span();
        // SAFETY: `lent` outlives the call.
        let result = py.detach(|| file.write_all_at(unsafe { span.bytes() }, offset));
        result.map(Transfer::from).map_err(|error| error::transfer(py, &error, file.likely_cause(&error)))
    }

    /// The length of the file, or the capacity of the disk, in bytes.
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        let file = self.open_file()?;
        py.detach(|| file.size()).map_err(|error| error::io(py, &error))
    }

    /// Checks a transfer of `buffer` at `offset` against the file's alignment, and makes none. Raises
    /// MisalignedError naming the first of address, length and offset that is wrong.
    #[pyo3(signature = (buffer, offset, *, write))]
    fn check(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, offset: &Bound<'_, PyAny>, write: bool) -> PyResult<()> {
        let (file, offset) = (self.open_file()?, count("offset", offset)?);
        let lent = if write { Lent::for_reading(buffer)? } else { Lent::for_writing(buffer)? };
        let span = lent.span();
        trueio_direct::check_transfer(file.alignment(), span.address(), span.length(), offset, write)
            .map_err(|wrong| error::misaligned(py, &wrong))
    }

    /// Makes what was written durable as far as `level`: see the function `flush`.
    #[pyo3(signature = (level = "device"))]
    fn flush(&self, py: Python<'_>, level: &str) -> PyResult<Flushed> {
        let (file, level) = (self.open_file()?, flush_level(level)?);
        py.detach(|| file.flush(level)).map(flushed).map_err(|error| error::io(py, &error))
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().open_file()?;
        Ok(slf)
    }

    #[pyo3(signature = (*error))]
    fn __exit__(&self, py: Python<'_>, error: &Bound<'_, PyTuple>) {
        let _ = error;
        self.close(py);
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name.bind(py).repr()?;
        let state = if self.closed() { ", closed" } else { "" };
        Ok(format!("<DirectFile {name} mode='{}' granted='{}'{state}>", self.mode, self.granted))
    }
}

/// Opens a file or a disk and says what was really granted.
///
/// `mode`: "r" to read, "r+" to read and write, "x" to make a new file and write it, "x+" to make one and read
/// it too. There is no "w": nothing that exists is ever shortened or replaced here.
///
/// `policy`: "require" gives direct I/O or raises, "prefer" gives what can be had and says what that is in
/// `granted`, "off" uses the page cache.
///
/// `sync`: what every write waits for: "none", "dsync" (its data is durable), "sync" (all metadata too).
///
/// `exclusive`: nobody else may use it meanwhile; how far that binds others depends on the system. Raises
/// BusyError where somebody else has it.
///
/// `permissions` of a new file (None: 0o600), reduced by the process's umask.
///
/// Raises RefusedError or SilentlyBufferedError under "require", NotAFileError (DirectoryError) for what holds
/// no data at offsets, and what `os.open` would raise for the rest.
#[pyfunction]
#[pyo3(signature = (path, mode = "r", *, policy = "require", sync = "none", exclusive = false, permissions = None))]
pub(crate) fn open(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    mode: &str,
    policy: &str,
    sync: &str,
    exclusive: bool,
    permissions: Option<&Bound<'_, PyAny>>,
) -> PyResult<DirectFile> {
    let name = path;
    let path = self::path(name)?;
    let (mode, write, create_new, read) = match mode {
        "r" => ("r", false, false, true),
        "r+" => ("r+", true, false, true),
        "x" => ("x", true, true, false),
        "x+" => ("x+", true, true, true),
        _ => {
            return Err(PyValueError::new_err(format!(
                "mode must be 'r', 'r+', 'x' or 'x+', not '{mode}': bytes only, and nothing is ever truncated"
            )));
        }
    };
    let permissions = permissions.map_or(Ok(0o600), |value| count("permissions", value))?;
    let Some(permissions) = u32::try_from(permissions).ok().filter(|bits| *bits <= 0o7777) else {
        return Err(PyValueError::new_err(format!("permissions must be at most 0o7777, and are {permissions:#o}")));
    };
    let options = OpenOptions::new()
        .read(read)
        .write(write)
        .create_new(create_new)
        .policy(word("policy", policy, &POLICIES)?)
        .sync(word("sync", sync, &SYNC_MODES)?)
        .exclusive(exclusive)
        .mode(permissions);
    let file = py.detach(|| options.open(&path)).map_err(|error| error::open(py, &error))?;
    let granted = match file.granted() {
        Granted::Direct => "direct",
        Granted::Unconfirmed => "unconfirmed",
        Granted::NotKept => "not-kept",
        _ => "buffered",
    };
    Ok(DirectFile {
        name: name.clone().unbind(),
        mode,
        granted,
        reason: file.reason().to_owned(),
        alignment: Alignment(file.alignment().clone()),
        file: Mutex::new(Some(Arc::new(file))),
    })
}
