//! The functions of the module. Each does what the function of the same name in `trueio-direct` does.

use crate::argument::{count, path, size, word};
use crate::descriptor::{OpenFile, open_file, open_file_or_none};
use crate::error;
use crate::fact::{Alignment, AtomicWrite, DeviceFacts, Flushed, Probe, Residency, Transfer};
use crate::file::{DirectFile, flush_level, flushed, read_into, transferred, write_from};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fs::File;
use std::io;
use trueio_direct::{LockError, LockMode};

const LOCK_MODES: [(&str, LockMode); 2] = [("shared", LockMode::Shared), ("exclusive", LockMode::Exclusive)];

/// Probes an existing file or disk, given as a path, a file or a descriptor: whether direct I/O is supported, the
/// source of that answer, and the required alignment. Writes nothing. If the system gives no answer, `support` is
/// "unknown", which is not an error.
///
/// Raises NotAFileError (DirectoryError) for anything that holds no data at offsets, and the exceptions of `os.open`.
#[pyfunction]
pub(crate) fn probe(py: Python<'_>, path_or_file: &Bound<'_, PyAny>) -> PyResult<Probe> {
    let result = match open_file_or_none(path_or_file)? {
        Some(file) => py.detach(|| trueio_direct::probe_file(&file)),
        None => {
            let path = path(path_or_file)?;
            py.detach(|| trueio_direct::probe(&path))
        }
    };
    result.map(Probe::from).map_err(|error| error::probe(py, &error))
}

/// Probes the support for new files in the folder at `path`, before one exists. Nothing remains there.
#[pyfunction]
pub(crate) fn probe_directory(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Probe> {
    let path = self::path(path)?;
    py.detach(|| trueio_direct::probe_directory(&path)).map(Probe::from).map_err(|error| error::probe(py, &error))
}

/// Checks a transfer before it is made. Raises MisalignedError naming the first of address, length and offset that
/// is wrong, what it is, and what is needed. A number whose alignment is unknown is not checked.
#[pyfunction]
#[pyo3(signature = (alignment, address, length, offset, *, write))]
pub(crate) fn check_transfer(
    py: Python<'_>,
    alignment: &Bound<'_, Alignment>,
    address: &Bound<'_, PyAny>,
    length: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
    write: bool,
) -> PyResult<()> {
    let (address, length, offset) = (size("address", address)?, size("length", length)?, count("offset", offset)?);
    trueio_direct::check_transfer(&alignment.get().0, address, length, offset, write)
        .map_err(|wrong| error::misaligned(py, &wrong))
}

fn multiple_of(multiple: &Bound<'_, PyAny>) -> PyResult<u64> {
    match count("multiple", multiple)? {
        0 => Err(PyValueError::new_err("multiple must be above zero")),
        multiple => Ok(multiple),
    }
}

/// Returns the greatest multiple of `multiple` that is not above `value`.
#[pyfunction]
pub(crate) fn round_down(value: &Bound<'_, PyAny>, multiple: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(trueio_direct::round_down(count("value", value)?, multiple_of(multiple)?))
}

/// Returns the least multiple of `multiple` that is not below `value`. Raises OverflowError if it exceeds 64 bits.
#[pyfunction]
pub(crate) fn round_up(value: &Bound<'_, PyAny>, multiple: &Bound<'_, PyAny>) -> PyResult<u64> {
    let (value, multiple) = (count("value", value)?, multiple_of(multiple)?);
    trueio_direct::round_up(value, multiple).ok_or_else(|| {
        pyo3::exceptions::PyOverflowError::new_err(format!("no multiple of {multiple} above {value} fits into 64 bits"))
    })
}

/// Fills `buffer` from `offset` by reading whole blocks into memory of its own and copying: any address, length and
/// offset will do.
///
/// Raises EndOfFileError if the file is shorter, else as `DirectFile.read_exact_at`.
#[pyfunction]
pub(crate) fn read_unaligned_by_copy_at(
    py: Python<'_>,
    file: &Bound<'_, DirectFile>,
    buffer: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
) -> PyResult<Transfer> {
    let file = file.get().open_file()?;
    let result = read_into(py, buffer, offset, |buffer, offset| {
        trueio_direct::read_unaligned_by_copy_at(&file, buffer, offset)
    })?;
    transferred(py, &file, result)
}

/// Writes all of `data` at `offset`, with any address, length and offset.
///
/// Whole blocks are written directly. Parts of blocks of a file are written through the page cache on a second
/// descriptor, then written to the device and evicted, so concurrent writers of one block lose nothing and the length is that
/// of a plain write. Raises TransferError if the file cannot be opened a second time for that. A part of a block of a
/// disk is read, changed and written whole: the disk must be open for reading too, calls of this process exclude each
/// other, and a power loss may tear the block.
#[pyfunction]
pub(crate) fn write_unaligned_by_read_modify_write_at(
    py: Python<'_>,
    file: &Bound<'_, DirectFile>,
    data: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
) -> PyResult<Transfer> {
    let file = file.get().open_file()?;
    let result = write_from(py, data, offset, |buffer, offset| {
        trueio_direct::write_unaligned_by_read_modify_write_at(&file, buffer, offset)
    })?;
    transferred(py, &file, result)
}

/// Writes all of `buffer` at `offset` so that a power loss leaves all of it or none. *(Linux)* An atomic write is not
/// durable: flush as for any other write. `limits` are those of `Probe.atomic_write`.
///
/// Raises AtomicLimitError for a write that the limits forbid; the write is never made in another way.
#[pyfunction]
pub(crate) fn write_atomic_at(
    py: Python<'_>,
    file: &Bound<'_, DirectFile>,
    limits: &Bound<'_, AtomicWrite>,
    buffer: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (file, limits) = (file.get().open_file()?, limits.get().limits());
    let result = write_from(py, buffer, offset, |buffer, offset| {
        trueio_direct::write_atomic_at(&file, &limits, buffer, offset)
    })?;
    result.map_err(|error| error::atomic(py, &error))
}

/// Writes all of `buffer` at `offset`, durable when it returns, as if the file had been opened with sync="dsync".
/// *(Linux)* Raises UnsupportedError elsewhere: write and flush there.
#[pyfunction]
pub(crate) fn write_dsync_at(
    py: Python<'_>,
    file: &Bound<'_, DirectFile>,
    buffer: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
) -> PyResult<Transfer> {
    let file = file.get().open_file()?;
    let result = write_from(py, buffer, offset, |buffer, offset| trueio_direct::write_dsync_at(&file, buffer, offset))?;
    transferred(py, &file, result)
}

/// Writes all of `buffer` at `offset` through the page cache; the kernel drops the pages after writeback.
/// *(Linux 6.14)* For a file without direct I/O. Does not wait for the writeback.
#[pyfunction]
pub(crate) fn write_uncached_at(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    buffer: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
) -> PyResult<Transfer> {
    let file = open_file(file)?;
    let result =
        write_from(py, buffer, offset, |buffer, offset| trueio_direct::write_uncached_at(&file, buffer, offset))?;
    result.map(Transfer::from).map_err(|error| error::transfer(py, &error, None))
}

/// Fills `buffer` from `offset` through the page cache, and leaves no page there that was not there before.
/// *(Linux 6.14)* For a file without direct I/O.
#[pyfunction]
pub(crate) fn read_uncached_at(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    buffer: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
) -> PyResult<Transfer> {
    let file = open_file(file)?;
    let result =
        read_into(py, buffer, offset, |buffer, offset| trueio_direct::read_uncached_at(&file, buffer, offset))?;
    result.map(Transfer::from).map_err(|error| error::transfer(py, &error, None))
}

/// Makes a call on an open file whose only errors are those of the system.
fn on_file<T: Send>(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    call: impl FnOnce(&File) -> io::Result<T> + Send,
) -> PyResult<T> {
    let file = open_file(file)?;
    py.detach(|| call(&file)).map_err(|error| error::io(py, &error))
}

/// Flushes what was written to `file` as far as `level`, and waits for it.
///
/// "barrier": earlier writes reach the medium before later ones. "data": the data, and the metadata needed to read it
/// back, are with the device. "file": all metadata too. "device": the device was requested to flush its volatile
/// cache. A stronger call may replace a weaker one, never the reverse; the result has the level that was reached.
/// After an error, earlier writes may be lost even if a later flush succeeds.
#[pyfunction]
#[pyo3(signature = (file, level = "device"))]
pub(crate) fn flush(py: Python<'_>, file: &Bound<'_, PyAny>, level: &str) -> PyResult<Flushed> {
    let level = flush_level(level)?;
    on_file(py, file, |file| trueio_direct::flush(file, level)).map(flushed)
}

/// Makes the names in a directory durable: after a file was made, renamed or removed in it. Raises UnsupportedError on
/// Windows, which has no such call.
#[pyfunction]
pub(crate) fn sync_directory(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<()> {
    let path = self::path(path)?;
    py.detach(|| trueio_direct::sync_directory(&path)).map_err(|error| error::io_on(py, &error, &path))
}

/// Reserves space for bytes `offset .. offset + length` of `file`, and makes it that long if it is shorter, never
/// shorter. Contents are not changed; new bytes read as zeros. Raises UnsupportedError if the filesystem cannot reserve;
/// zeros are not written instead.
#[pyfunction]
pub(crate) fn preallocate(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
    length: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (offset, length) = (count("offset", offset)?, count("length", length)?);
    on_file(py, file, |file| trueio_direct::preallocate(file, offset, length))
}

/// Counts the pages of `file` between `offset` and `offset + length` bytes that are in the page cache; a length of 0
/// means up to the end. Raises UnsupportedError on Windows, which has no such count.
#[pyfunction]
#[pyo3(signature = (file, offset = None, length = None))]
pub(crate) fn residency(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    offset: Option<&Bound<'_, PyAny>>,
    length: Option<&Bound<'_, PyAny>>,
) -> PyResult<Residency> {
    let (offset, length) = range(offset, length)?;
    on_file(py, file, |file| trueio_direct::residency(file, offset, length)).map(Residency::from)
}

/// Asks the kernel to drop the clean pages of `file` between `offset` and `offset + length` bytes from the page
/// cache; a length of 0 means up to the end. Dirty, mapped and locked pages stay: flush first, and count afterwards
/// with `residency`. Raises UnsupportedError on Windows.
#[pyfunction]
#[pyo3(signature = (file, offset = None, length = None))]
pub(crate) fn evict(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    offset: Option<&Bound<'_, PyAny>>,
    length: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (offset, length) = range(offset, length)?;
    on_file(py, file, |file| trueio_direct::evict(file, offset, length))
}

/// Returns offset and length; the default of both is 0, the whole file.
fn range(offset: Option<&Bound<'_, PyAny>>, length: Option<&Bound<'_, PyAny>>) -> PyResult<(u64, u64)> {
    let number = |name, value: Option<&Bound<'_, PyAny>>| value.map_or(Ok(0), |value| count(name, value));
    Ok((number("offset", offset)?, number("length", length)?))
}

/// Asks the kernel not to keep pages of an open file, or to keep them again. *(macOS; UnsupportedError elsewhere)*
#[pyfunction]
pub(crate) fn set_nocache(py: Python<'_>, file: &Bound<'_, PyAny>, nocache: bool) -> PyResult<()> {
    on_file(py, file, |file| trueio_direct::set_nocache(file, nocache))
}

/// Makes a call that takes or releases a lock.
fn on_locked(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    call: impl FnOnce(&OpenFile) -> Result<(), LockError> + Send,
) -> PyResult<()> {
    let file = open_file(file)?;
    py.detach(|| call(&file)).map_err(|error| error::lock(py, &error))
}

/// Locks the whole file without waiting; `mode` is "shared" or "exclusive". Unix: `flock`, owned by the open file.
/// Windows: `LockFileEx`, mandatory. Raises LockHeldError if another lock conflicts.
#[pyfunction]
pub(crate) fn try_lock(py: Python<'_>, file: &Bound<'_, PyAny>, mode: &str) -> PyResult<()> {
    let mode = word("mode", mode, &LOCK_MODES)?;
    on_locked(py, file, |file| trueio_direct::try_lock(file, mode))
}

/// Releases the lock of `try_lock`. Unix: no error if there was none.
#[pyfunction]
pub(crate) fn unlock(py: Python<'_>, file: &Bound<'_, PyAny>) -> PyResult<()> {
    on_locked(py, file, |file| trueio_direct::unlock(file))
}

/// Locks bytes `offset .. offset + length` without waiting; a length of 0 means to the end, however far the file grows.
/// `mode` is "shared" or "exclusive". Linux and macOS: a lock of the open file (`F_OFD_SETLK`), not of the process.
/// Raises LockHeldError if another lock conflicts, UnsupportedError on FreeBSD.
#[pyfunction]
pub(crate) fn try_lock_range(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    mode: &str,
    offset: &Bound<'_, PyAny>,
    length: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mode = word("mode", mode, &LOCK_MODES)?;
    let (offset, length) = (count("offset", offset)?, count("length", length)?);
    on_locked(py, file, |file| trueio_direct::try_lock_range(file, mode, offset, length))
}

/// Releases the lock of `try_lock_range`. Windows: the range must be the same.
#[pyfunction]
pub(crate) fn unlock_range(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    offset: &Bound<'_, PyAny>,
    length: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (offset, length) = (count("offset", offset)?, count("length", length)?);
    on_locked(py, file, |file| trueio_direct::unlock_range(file, offset, length))
}

/// Locks a volume that was opened as `\\.\X:`, so that no other program can open files on it. *(Windows;
/// UnsupportedError elsewhere)*
#[pyfunction]
pub(crate) fn lock_volume(py: Python<'_>, file: &Bound<'_, PyAny>) -> PyResult<()> {
    on_locked(py, file, |file| trueio_direct::lock_volume(file))
}

/// Releases the lock of `lock_volume`. *(Windows; UnsupportedError elsewhere)*
#[pyfunction]
pub(crate) fn unlock_volume(py: Python<'_>, file: &Bound<'_, PyAny>) -> PyResult<()> {
    on_locked(py, file, |file| trueio_direct::unlock_volume(file))
}

/// Returns the facts that an open disk reports: size, sectors, serial number. Without a serial number the other facts
/// are returned. Raises NotADeviceError for anything but a disk.
#[pyfunction]
pub(crate) fn device_facts(py: Python<'_>, file: &Bound<'_, PyAny>) -> PyResult<DeviceFacts> {
    let file = open_file(file)?;
    py.detach(|| trueio_direct::device_facts(&file)).map(DeviceFacts::from).map_err(|error| error::device(py, &error))
}
