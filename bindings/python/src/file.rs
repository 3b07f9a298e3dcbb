//! An open file, what was granted for it, and its transfers.
//!
//! After `close`, every later call fails at once. The descriptor is closed when the last running transfer has ended, so no
//! thread uses a descriptor number after it was closed.

use crate::argument::{Lent, Span, count, path, word};
use crate::descriptor::open_file;
use crate::error;
use crate::fact::{Alignment, Flushed, Transfer};
use pyo3::exceptions::{PyResourceWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex, PoisonError};
use trueio_direct::{FlushLevel, Granted, OpenOptions, Policy, SyncMode, TransferError};

pub(crate) const POLICIES: [(&str, Policy); 3] =
    [("require", Policy::Require), ("prefer", Policy::Prefer), ("off", Policy::Off)];
const SYNC_MODES: [(&str, SyncMode); 3] =
    [("none", SyncMode::None), ("dsync", SyncMode::Dsync), ("sync", SyncMode::Sync)];
const LEVELS: [(&str, FlushLevel); 4] = [
    ("barrier", FlushLevel::Barrier),
    ("data", FlushLevel::Data),
    ("file", FlushLevel::File),
    ("device", FlushLevel::Device),
];

/// Returns the flush level of a word.
pub(crate) fn flush_level(level: &str) -> PyResult<FlushLevel> {
    word("level", level, &LEVELS)
}

/// Converts the result of a transfer on `file`; an error gets its likely cause.
pub(crate) fn transferred(
    py: Python<'_>,
    file: &trueio_direct::DirectFile,
    result: Result<trueio_direct::Transfer, TransferError>,
) -> PyResult<Transfer> {
    result.map(Transfer::from).map_err(|error| error::transfer(py, &error, file.likely_cause(&error)))
}

/// Calls `read` with the memory of `buffer` and with `offset`, without the interpreter.
pub(crate) fn read_into<T: Send>(
    py: Python<'_>,
    buffer: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
    read: impl FnOnce(&mut [u8], u64) -> T + Send,
) -> PyResult<T> {
    let offset = count("offset", offset)?;
    let lent = Lent::for_writing(buffer)?;
    let span = lent.span();
    // SAFETY: `lent` outlives the call, and was made for writing.
    Ok(py.detach(|| read(unsafe { span.bytes_mut() }, offset)))
}

/// Calls `write` with the memory of `buffer` and with `offset`, without the interpreter.
pub(crate) fn write_from<T: Send>(
    py: Python<'_>,
    buffer: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
    write: impl FnOnce(&[u8], u64) -> T + Send,
) -> PyResult<T> {
    let offset = count("offset", offset)?;
    let lent = Lent::for_reading(buffer)?;
    let span = lent.span();
    // SAFETY: `lent` outlives the call.
    Ok(py.detach(|| write(unsafe { span.bytes() }, offset)))
}

/// Lends each buffer of a sequence; the spans are valid while the first part of the result lives.
fn lend_all(
    buffers: &Bound<'_, PyAny>,
    lend: impl Fn(&Bound<'_, PyAny>) -> PyResult<Lent>,
) -> PyResult<(Vec<Lent>, Vec<Span>)> {
    let lent = buffers.try_iter()?.map(|buffer| lend(&buffer?)).collect::<PyResult<Vec<_>>>()?;
    let spans = lent.iter().map(Lent::span).collect();
    Ok((lent, spans))
}

/// Converts the result of a flush.
pub(crate) fn flushed(flushed: trueio_direct::Flushed) -> Flushed {
    Flushed { level: flushed.level.name(), device_cache_flushed: flushed.device_cache_flushed, call: flushed.call }
}

/// An open file, what was granted for it, and the alignment that its transfers require. Returned by `open` and
/// `from_file`.
///
/// Threads may share it: every transfer has its own offset, and there is no position. `with` and `async with` close it at
/// the end; garbage collection closes it with a ResourceWarning. After that every call raises ValueError.
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
    /// The path that was passed to `open`, or the file that was passed to `from_file`.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyAny> {
        self.name.clone_ref(py)
    }

    /// How it was opened: "r", "r+", "w", "w+", "x" or "x+"; of `from_file` "r", "r+", or "w" if it can only be written.
    #[getter]
    fn mode(&self) -> &'static str {
        self.mode
    }

    /// What was granted: "direct", "unconfirmed" (the flag was accepted, its effect is unknown: FUSE, network
    /// filesystems), "not-kept" (the kernel was requested not to keep pages: macOS, files on FreeBSD) or
    /// "buffered". As of when the file was opened: on XFS, a write of a part of a block that became shared since (`cp --reflink`) is
    /// refused as misaligned. To ask again, open the file again.
    #[getter]
    fn granted(&self) -> &'static str {
        self.granted
    }

    /// The reason for `granted` and its source, as a sentence without a full stop.
    #[getter]
    fn reason(&self) -> &str {
        &self.reason
    }

    /// The alignment that transfers require. If the page cache is used, nothing is required.
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
    /// system calls as necessary.
    ///
    /// Raises MisalignedError before the call if address, length or offset does not suit the file's alignment,
    /// EndOfFileError if the file is shorter (the bytes read until then are in the buffer), and TransferError with
    /// the system's errno for an error of the system.
    fn read_exact_at(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
    ) -> PyResult<Transfer> {
        let file = self.open_file()?;
        let result = read_into(py, buffer, offset, |buffer, offset| file.read_exact_at(buffer, offset))?;
        transferred(py, &file, result)
    }

    /// Reads from `offset` into `buffer`, any writable contiguous buffer, until it is full or the file ends.
    ///
    /// `bytes` of the result is smaller than the buffer only where the file ended. Raises MisalignedError and
    /// TransferError as `read_exact_at`, never EndOfFileError.
    fn read_at(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, offset: &Bound<'_, PyAny>) -> PyResult<Transfer> {
        let file = self.open_file()?;
        let result = read_into(py, buffer, offset, |buffer, offset| file.read_at(buffer, offset))?;
        transferred(py, &file, result)
    }

    /// Writes all of `buffer`, any contiguous buffer, at `offset`, with as many system calls as necessary.
    ///
    /// Raises MisalignedError before the call if address, length or offset does not suit the file's alignment,
    /// and TransferError with the system's errno for an error of the system; bytes written until then stay written.
    fn write_all_at(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, offset: &Bound<'_, PyAny>) -> PyResult<Transfer> {
        let file = self.open_file()?;
        let result = write_from(py, buffer, offset, |buffer, offset| file.write_all_at(buffer, offset))?;
        transferred(py, &file, result)
    }

    /// Reads from `offset` into `buffers`, a sequence of writable contiguous buffers, one after another, until all are
    /// full or the file ends. Each must be aligned by itself, address and length.
    ///
    /// Raises MisalignedError and TransferError as `read_exact_at`, never EndOfFileError.
    fn read_vectored_at(
        &self,
        py: Python<'_>,
        buffers: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
    ) -> PyResult<Transfer> {
        let (file, offset) = (self.open_file()?, count("offset", offset)?);
        let (_lent, spans) = lend_all(buffers, Lent::for_writing)?;
        let result = py.detach(|| {
            // SAFETY: `_lent` outlives the call, and was made for writing.
            let mut parts: Vec<_> = spans.iter().map(|span| IoSliceMut::new(unsafe { span.bytes_mut() })).collect();
            file.read_vectored_at(&mut parts, offset)
        });
        transferred(py, &file, result)
    }

    /// Writes all of `buffers`, a sequence of contiguous buffers, one after another, at `offset`. Each must be aligned by
    /// itself, address and length.
    ///
    /// Raises as `write_all_at`.
    fn write_vectored_at(
        &self,
        py: Python<'_>,
        buffers: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
    ) -> PyResult<Transfer> {
        let (file, offset) = (self.open_file()?, count("offset", offset)?);
        let (_lent, spans) = lend_all(buffers, Lent::for_reading)?;
        let result = py.detach(|| {
            // SAFETY: `_lent` outlives the call.
            let mut parts: Vec<_> = spans.iter().map(|span| IoSlice::new(unsafe { span.bytes() })).collect();
            file.write_vectored_at(&mut parts, offset)
        });
        transferred(py, &file, result)
    }

    /// The length of the file, or the capacity of the disk, in bytes.
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        let file = self.open_file()?;
        py.detach(|| file.size()).map_err(|error| error::io(py, &error))
    }

    /// Sets the length of the file to `length` bytes, which need not be aligned. A shorter file loses its end, a longer one
    /// ends with zeros. Writes of other threads and programs below `length` keep their bytes.
    ///
    /// Raises OSError with EINVAL for a disk, and with EBADF if the file is not open for writing.
    fn truncate(&self, py: Python<'_>, length: &Bound<'_, PyAny>) -> PyResult<()> {
        let (file, length) = (self.open_file()?, count("length", length)?);
        py.detach(|| file.truncate(length)).map_err(|error| error::io(py, &error))
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

    /// Makes earlier writes durable up to `level`: see the function `flush`.
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

    /// `async with`: as `with`, and closes the file in the event loop's thread pool.
    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("trueio.direct.aio")?.call_method1("_entered", (slf,))
    }

    #[pyo3(signature = (*error))]
    fn __aexit__<'py>(slf: &Bound<'py, Self>, error: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let _ = error;
        slf.py().import("trueio.direct.aio")?.call_method1("close", (slf,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name.bind(py).repr()?;
        let state = if self.closed() { ", closed" } else { "" };
        Ok(format!("<DirectFile {name} mode='{}' granted='{}'{state}>", self.mode, self.granted))
    }
}

impl Drop for DirectFile {
    /// Warns about a file that was not closed, as Python's own files do.
    fn drop(&mut self) {
        if self.closed() {
            return;
        }
        Python::try_attach(|py| {
            // The exception that is being handled is not the concern of this file.
            let pending = PyErr::take(py);
            let warned = self.__repr__(py).and_then(|shown| {
                let message = std::ffi::CString::new(format!("unclosed file {shown}"))?;
                PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &message, 1)
            });
            if let Err(error) = warned {
                error.write_unraisable(py, None);
            }
            if let Some(pending) = pending {
                pending.restore(py);
            }
        });
    }
}

/// Opens a file or a disk; `granted` of the result reports what was really granted.
///
/// `mode`: as with Python's `open`, with or without "b": "r" reads, "r+" reads and writes, "x" creates a new file and writes
/// it, "w" creates a file or empties an existing one and writes it, "x+" and "w+" also read. "w" empties the file after
/// it was opened, so a refusal loses nothing. There is no "a", because every write has an offset, and no text.
///
/// `create`: with "r+", creates the file if it does not exist.
///
/// `policy`: "require" grants direct I/O or raises, "prefer" falls back to buffered I/O and reports it in `granted`,
/// "off" uses the page cache.
///
/// `sync`: what every write waits for: "none", "dsync" (its data is durable), "sync" (all metadata too).
///
/// `exclusive`: no other program may use the file meanwhile; how far the system enforces this differs. Raises
/// BusyError if another program uses it.
///
/// `permissions` of a new file (None: 0o600), reduced by the process's umask.
///
/// Raises RefusedError or SilentlyBufferedError with "require", NotAFileError (DirectoryError) for anything that holds
/// no data at offsets, and otherwise the exceptions of `os.open`.
#[pyfunction]
#[pyo3(signature = (path, mode = "r", *, create = false, policy = "require", sync = "none", exclusive = false, permissions = None))]
#[allow(clippy::too_many_arguments, reason = "they are the keyword arguments of a Python function")]
pub(crate) fn open(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    mode: &str,
    create: bool,
    policy: &str,
    sync: &str,
    exclusive: bool,
    permissions: Option<&Bound<'_, PyAny>>,
) -> PyResult<DirectFile> {
    let name = path;
    let path = self::path(name)?;
    let mode = Mode::parse(mode)?;
    if create && mode.word != "r+" {
        return Err(PyValueError::new_err(format!("create=True goes with mode 'r+', not with '{}'", mode.word)));
    }
    let permissions = permissions.map_or(Ok(0o600), |value| count("permissions", value))?;
    let Some(permissions) = u32::try_from(permissions).ok().filter(|bits| *bits <= 0o7777) else {
        return Err(PyValueError::new_err(format!("permissions must be at most 0o7777, and are {permissions:#o}")));
    };
    let options = OpenOptions::new()
        .read(mode.read)
        .write(mode.write)
        .create(create || mode.truncate)
        .create_new(mode.create_new)
        .policy(word("policy", policy, &POLICIES)?)
        .sync(word("sync", sync, &SYNC_MODES)?)
        .exclusive(exclusive)
        .mode(permissions);
    let file = py.detach(|| options.open(&path)).map_err(|error| error::open(py, &error))?;
    if mode.truncate {
        // After it was opened and locked, so that nothing is lost where that fails. As with open(2), a disk keeps its data.
        py.detach(|| if file.file().metadata()?.is_file() { file.truncate(0) } else { Ok(()) })
            .map_err(|error| error::io_on(py, &error, &path))?;
    }
    Ok(wrapped(name, mode.word, file))
}

/// A mode of `open`.
struct Mode {
    /// The mode without the letter "b".
    word: &'static str,
    read: bool,
    write: bool,
    create_new: bool,
    truncate: bool,
}

impl Mode {
    /// Parses a mode as Python's `open` does, with or without "b"; text and appending are refused.
    fn parse(mode: &str) -> PyResult<Self> {
        // "b" may stand before or after "+", and not first: Python takes "br", too, and no program uses that.
        let word = match mode.strip_suffix('b').unwrap_or(mode) {
            "rb+" => "r+",
            "wb+" => "w+",
            "xb+" => "x+",
            word => word,
        };
        let of = |word, read, write, create_new, truncate| Ok(Self { word, read, write, create_new, truncate });
        match word {
            "r" => of("r", true, false, false, false),
            "r+" => of("r+", true, true, false, false),
            "w" => of("w", false, true, false, true),
            "w+" => of("w+", true, true, false, true),
            "x" => of("x", false, true, true, false),
            "x+" => of("x+", true, true, true, false),
            _ => Err(PyValueError::new_err(format!(
                "mode must be 'r', 'r+', 'w', 'w+', 'x' or 'x+', with or without 'b', not '{mode}': a file has bytes only, \
                 and every write has an offset"
            ))),
        }
    }
}

/// Makes a DirectFile from an open file: a descriptor, or an object with `fileno()`. `granted` follows from its flags and
/// a probe.
///
/// The descriptor is duplicated: the file stays open, and both must be closed. As with every descriptor of a file,
/// closing one releases the process's record locks (`fcntl.lockf`) on that file.
///
/// Raises NotAFileError for anything that holds no data at offsets.
#[pyfunction]
pub(crate) fn from_file(py: Python<'_>, file: &Bound<'_, PyAny>) -> PyResult<DirectFile> {
    let open = open_file(file)?;
    let copy = py.detach(|| open.try_clone()).map_err(|error| error::io(py, &error))?;
    let mode = mode_of(py, &copy)?;
    let adopted = py.detach(|| trueio_direct::DirectFile::from_file(copy));
    Ok(wrapped(file, mode, adopted.map_err(|error| error::probe(py, &error))?))
}

/// Returns the mode of an open descriptor.
#[cfg(unix)]
fn mode_of(py: Python<'_>, file: &std::fs::File) -> PyResult<&'static str> {
    let (fcntl, os) = (py.import("fcntl")?, py.import("os")?);
    let number = std::os::fd::AsRawFd::as_raw_fd(file);
    let flags: i32 = fcntl.call_method1("fcntl", (number, fcntl.getattr("F_GETFL")?))?.extract()?;
    let flag = |name: &str| os.getattr(name)?.extract::<i32>();
    // The two lowest bits are one number: 0, 1 or 2.
    Ok(match flags & (flag("O_WRONLY")? | flag("O_RDWR")?) {
        0 => "r",
        mode if mode == flag("O_WRONLY")? => "w",
        _ => "r+",
    })
}

/// Windows does not report it.
#[cfg(not(unix))]
fn mode_of(_py: Python<'_>, _file: &std::fs::File) -> PyResult<&'static str> {
    Ok("r+")
}

/// Returns the word for what was granted.
pub(crate) fn granted(granted: Granted) -> &'static str {
    match granted {
        Granted::Direct => "direct",
        Granted::Unconfirmed => "unconfirmed",
        Granted::NotKept => "not-kept",
        _ => "buffered",
    }
}

fn wrapped(name: &Bound<'_, PyAny>, mode: &'static str, file: trueio_direct::DirectFile) -> DirectFile {
    DirectFile {
        name: name.clone().unbind(),
        mode,
        granted: granted(file.granted()),
        reason: file.reason().to_owned(),
        alignment: Alignment(file.alignment().clone()),
        file: Mutex::new(Some(Arc::new(file))),
    }
}
