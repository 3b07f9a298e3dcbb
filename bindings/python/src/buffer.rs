//! Aligned memory that Python sees through the buffer protocol, and when it may be freed.
//!
//! An export (a `memoryview`, a numpy array) holds a reference to its buffer, so the memory lives as long as its exports.
//! `close` and `release` do not wait for them: they raise `BufferError` while there are exports, as `mmap` and
//! `bytearray` do. Nothing here can be resized.

use crate::argument::size;
use crate::error;
use pyo3::exceptions::{PyBufferError, PyTimeoutError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyMemoryView, PyTuple};
use std::ffi::c_int;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A thread that waits for a buffer looks for signals (Ctrl-C) this often.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// No code between lock and unlock can panic half-way through a change, so a poisoned lock is sound.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Address and length of memory, and the number of its exports through the buffer protocol.
struct Exported<T> {
    /// Keeps the memory alive; [`None`] after it was released.
    owner: Option<T>,
    start: *mut u8,
    length: usize,
    exports: usize,
}

// SAFETY: `start` points into memory that `owner` keeps and that may be seen from any thread; all
// other fields are plain.
unsafe impl<T: Send> Send for Exported<T> {}

impl<T> Exported<T> {
    fn new(owner: T, start: *mut u8, length: usize) -> Mutex<Self> {
        Mutex::new(Self { owner: Some(owner), start, length, exports: 0 })
    }

    fn alive(&self, what: &str) -> PyResult<()> {
        if self.owner.is_some() { Ok(()) } else { Err(PyValueError::new_err(format!("operation on a {what}"))) }
    }

    /// Releases the memory, unless there are exports.
    fn give_up(&mut self, verb: &str) -> PyResult<Option<T>> {
        if self.exports > 0 {
            return Err(PyBufferError::new_err(format!(
                "cannot {verb} a buffer that {} memoryviews or arrays still see",
                self.exports
            )));
        }
        Ok(self.owner.take())
    }

    /// Fills in the fields that an exporter must set.
    ///
    /// # Safety
    /// `view` is what the interpreter gave to `__getbuffer__`, and `exporter` keeps `self`.
    unsafe fn export(
        &mut self,
        exporter: &Bound<'_, PyAny>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
        what: &str,
    ) -> PyResult<()> {
        if !view.is_null() {
            // SAFETY: the interpreter's own structure. A failing exporter must leave it like this: Python/C API, `bf_getbuffer`.
            unsafe { (*view).obj = std::ptr::null_mut() };
        }
        self.alive(what)?;
        let length = isize::try_from(self.length).expect("an allocation is no longer than isize::MAX");
        // SAFETY: `view` is the interpreter's; memory of `length` bytes lies at `start`, and stays there while
        // `exports` is above zero. The view takes a reference to `exporter`.
        let code = unsafe {
            ffi::PyBuffer_FillInfo(view, exporter.as_ptr(), self.start.cast(), length, 0 /* writable */, flags)
        };
        if code != 0 {
            return Err(PyErr::fetch(exporter.py()));
        }
        self.exports += 1;
        Ok(())
    }

    fn unexport(&mut self) {
        self.exports -= 1;
    }
}

const CLOSED: &str = "closed buffer";
const RELEASED: &str = "released buffer";

/// Zeroed memory whose address is a multiple of `align` bytes, a power of two.
///
/// It supports the buffer protocol, writable: `memoryview(buffer)`, `numpy.frombuffer(buffer, ...)` and
/// `os.preadv(fd, [buffer], 0)` see the memory itself, without a copy. A slice, `buffer[a:b]`, is a
/// memoryview of that part.
///
/// The memory is freed when the buffer and everything that sees it are gone, or by `close()`, which raises
/// BufferError while anything sees it. `with` closes it at the end. It cannot be resized.
///
/// Raises ValueError for a length of zero or an alignment that is not a power of two, and MemoryError where
/// there is no such memory.
#[pyclass(frozen, module = "trueio.direct")]
pub(crate) struct AlignedBuffer {
    state: Mutex<Exported<trueio_direct::AlignedBuffer>>,
    align_bytes: usize,
}

#[pymethods]
impl AlignedBuffer {
    #[new]
    #[pyo3(signature = (length, align = None))]
    fn new(py: Python<'_>, length: &Bound<'_, PyAny>, align: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let length = size("length", length)?;
        let align = align_of(align)?;
        // The allocator may have to clear many pages.
        let mut memory =
            py.detach(|| trueio_direct::AlignedBuffer::new(length, align)).map_err(|error| error::buffer(&error))?;
        let start = memory.as_mut_ptr();
        Ok(Self { state: Exported::new(memory, start, length), align_bytes: align })
    }

    /// The address of the first byte.
    #[getter]
    fn address(&self) -> PyResult<usize> {
        let state = locked(&self.state);
        state.alive(CLOSED)?;
        Ok(state.start.addr())
    }

    /// The requested alignment, in bytes.
    #[getter]
    fn align_bytes(&self) -> usize {
        self.align_bytes
    }

    /// True after the memory was freed.
    #[getter]
    fn closed(&self) -> bool {
        locked(&self.state).owner.is_none()
    }

    /// Frees the memory. Raises BufferError while a memoryview or an array sees it. Closing twice is no error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let memory = locked(&self.state).give_up("close")?;
        py.detach(|| drop(memory));
        Ok(())
    }

    fn __len__(&self) -> PyResult<usize> {
        let state = locked(&self.state);
        state.alive(CLOSED)?;
        Ok(state.length)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf.as_any())?.get_item(key)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        PyMemoryView::from(slf.as_any())?.try_iter()
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        PyMemoryView::from(slf.as_any())?.set_item(key, value)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        locked(&slf.get().state).alive(CLOSED)?;
        Ok(slf)
    }

    #[pyo3(signature = (*error))]
    fn __exit__(&self, py: Python<'_>, error: &Bound<'_, PyTuple>) -> PyResult<()> {
        unless_failing(error, self.close(py))
    }

    fn __repr__(&self) -> String {
        let state = locked(&self.state);
        match state.owner {
            Some(_) => {
                format!(
                    "<AlignedBuffer of {} bytes at {:#x}, aligned to {}>",
                    state.length,
                    state.start.addr(),
                    self.align_bytes
                )
            }
            None => "<AlignedBuffer, closed>".to_owned(),
        }
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: called by the interpreter with its own view; `slf` keeps the state.
        unsafe { locked(&slf.get().state).export(slf.as_any(), view, flags, CLOSED) }
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        locked(&self.state).unexport();
    }
}

/// Returns the result of leaving a `with`. An exception from its body is not replaced by ours: its traceback may hold
/// the last export, and the memory is freed with it.
fn unless_failing(error: &Bound<'_, PyTuple>, closed: PyResult<()>) -> PyResult<()> {
    let is_failing = error.get_item(0).is_ok_and(|kind| !kind.is_none());
    if is_failing { Ok(()) } else { closed }
}

/// Returns the requested alignment, or one that suits every sector size in use.
fn align_of(align: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    align.map_or(Ok(trueio_direct::ASSUMED_ALIGNMENT_BYTES as usize), |align| size("align", align))
}

/// What a pool and the buffers lent from it share.
struct Pool {
    state: Mutex<PoolState>,
    returned: Condvar,
    count: usize,
}

struct PoolState {
    /// [`None`] once the pool is closed, which no lent buffer outlives.
    memory: Option<trueio_direct::BufferPool>,
    /// Which buffers are in the pool.
    free: Vec<usize>,
}

/// A buffer's slot in a pool, returned to the pool on drop.
struct PoolSlot {
    pool: Arc<Pool>,
    index: usize,
}

impl Drop for PoolSlot {
    fn drop(&mut self) {
        locked(&self.pool.state).free.push(self.index);
        self.pool.returned.notify_one();
    }
}

impl Pool {
    /// Takes a free slot, with its address and length; [`None`] if there is none.
    fn take(self: &Arc<Self>, state: &mut PoolState) -> PyResult<Option<(PoolSlot, *mut u8, usize)>> {
        let PoolState { memory: Some(memory), free } = state else {
            return Err(PyValueError::new_err("operation on a closed pool"));
        };
        Ok(free.pop().map(|index| {
            let slot = PoolSlot { pool: Arc::clone(self), index };
            (slot, memory.buffer_ptr(index), memory.size_bytes())
        }))
    }
}

/// `count` aligned buffers of `size_bytes` bytes each, in one allocation whose pages are touched in advance.
///
/// `acquire()` lends one, and waits if all are lent. The buffer returns to the pool at the end of its `with`, by
/// `release()`, or by garbage collection. Threads may share a pool. `with` closes the pool at the end; while
/// a buffer is lent that raises BufferError.
///
/// Raises ValueError for a count or size of zero or an alignment that is not a power of two, and MemoryError
/// where there is no such memory.
#[pyclass(frozen, module = "trueio.direct")]
pub(crate) struct BufferPool {
    pool: Arc<Pool>,
    size_bytes: usize,
    stride_bytes: usize,
    align_bytes: usize,
}

#[pymethods]
impl BufferPool {
    #[new]
    #[pyo3(signature = (count, size_bytes, align = None))]
    fn new(
        py: Python<'_>,
        count: &Bound<'_, PyAny>,
        size_bytes: &Bound<'_, PyAny>,
        align: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (count, size_bytes, align) = (size("count", count)?, size("size_bytes", size_bytes)?, align_of(align)?);
        let memory = py
            .detach(|| trueio_direct::BufferPool::new(count, size_bytes, align))
            .map_err(|error| error::buffer(&error))?;
        let stride_bytes = memory.stride_bytes();
        // The first is lent first.
        let state = PoolState { memory: Some(memory), free: (0..count).rev().collect() };
        let pool = Arc::new(Pool { state: Mutex::new(state), returned: Condvar::new(), count });
        Ok(Self { pool, size_bytes, stride_bytes, align_bytes: align })
    }

    /// Number of buffers, lent or not.
    #[getter]
    fn count(&self) -> usize {
        self.pool.count
    }

    /// The size of one buffer, in bytes.
    #[getter]
    fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// From the start of one buffer to the start of the next, in bytes: the size rounded up to the alignment.
    #[getter]
    fn stride_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// The requested alignment, in bytes.
    #[getter]
    fn align_bytes(&self) -> usize {
        self.align_bytes
    }

    /// Number of buffers that can be lent now without waiting.
    #[getter]
    fn free_count(&self) -> usize {
        locked(&self.pool.state).free.len()
    }

    /// True after the memory was freed.
    #[getter]
    fn closed(&self) -> bool {
        locked(&self.pool.state).memory.is_none()
    }

    /// Lends a buffer. If all are lent, waits for one without a limit, or for at most `timeout` seconds. The content is
    /// that of its last use.
    ///
    /// Raises TimeoutError after that time, and ValueError if the pool is closed.
    #[pyo3(signature = (timeout = None))]
    fn acquire(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<PooledBuffer> {
        let until = match timeout {
            None => None,
            Some(seconds) => {
                let wait = Duration::try_from_secs_f64(seconds).map_err(|_| {
                    PyValueError::new_err(format!("timeout must be a number of seconds from 0 on, and is {seconds}"))
                })?;
                Instant::now().checked_add(wait)
            }
        };
        loop {
            // The search and the wait are one critical section, so that no return is missed between them.
            let taken = py.detach(|| {
                let mut state = locked(&self.pool.state);
                let taken = self.pool.take(&mut state);
                if !matches!(taken, Ok(None)) {
                    return taken.map(|taken| taken.map(lent));
                }
                let left = until.map_or(SIGNAL_PERIOD, |until| until.saturating_duration_since(Instant::now()));
                if left.is_zero() {
                    return Ok(None);
                }
                let waited = self.pool.returned.wait_timeout(state, left.min(SIGNAL_PERIOD));
                let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
                Ok(self.pool.take(&mut state)?.map(lent))
            })?;
            if let Some(state) = taken {
                return Ok(PooledBuffer { state });
            }
            py.check_signals()?;
            if until.is_some_and(|until| Instant::now() >= until) {
                let count = self.pool.count;
                return Err(PyTimeoutError::new_err(format!("all {count} buffers of the pool are lent")));
            }
        }
    }

    /// Lends a buffer; returns None if all are lent. Raises ValueError if the pool is closed.
    fn try_acquire(&self) -> PyResult<Option<PooledBuffer>> {
        let taken = self.pool.take(&mut locked(&self.pool.state))?;
        Ok(taken.map(|taken| PooledBuffer { state: lent(taken) }))
    }

    /// Frees the memory. Raises BufferError while a buffer is lent. Closing twice is no error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let memory = {
            let mut state = locked(&self.pool.state);
            let lent = self.pool.count - state.free.len();
            if lent > 0 && state.memory.is_some() {
                return Err(PyBufferError::new_err(format!("cannot close a pool of which {lent} buffers are lent")));
            }
            state.memory.take()
        };
        py.detach(|| drop(memory));
        // Wakes up the threads that wait for a buffer.
        self.pool.returned.notify_all();
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.pool.count
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if slf.get().closed() {
            return Err(PyValueError::new_err("operation on a closed pool"));
        }
        Ok(slf)
    }

    #[pyo3(signature = (*error))]
    fn __exit__(&self, py: Python<'_>, error: &Bound<'_, PyTuple>) -> PyResult<()> {
        unless_failing(error, self.close(py))
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { ", closed" } else { "" };
        format!(
            "<BufferPool of {} buffers of {} bytes, aligned to {}{closed}>",
            self.pool.count, self.size_bytes, self.align_bytes
        )
    }
}

fn lent((slot, start, length): (PoolSlot, *mut u8, usize)) -> Mutex<Exported<PoolSlot>> {
    Exported::new(slot, start, length)
}

/// A buffer lent from a BufferPool. It supports the buffer protocol, writable, and slices as AlignedBuffer does.
///
/// It returns to the pool at the end of its `with`, by `release()`, or by garbage collection. While a memoryview or an
/// array sees it, `release()` raises BufferError, because the memory would be lent again while it is in use.
#[pyclass(frozen, module = "trueio.direct")]
pub(crate) struct PooledBuffer {
    state: Mutex<Exported<PoolSlot>>,
}

#[pymethods]
impl PooledBuffer {
    /// The address of the first byte.
    #[getter]
    fn address(&self) -> PyResult<usize> {
        let state = locked(&self.state);
        state.alive(RELEASED)?;
        Ok(state.start.addr())
    }

    /// The number of this buffer in the pool, counted from 0.
    #[getter]
    fn index(&self) -> PyResult<usize> {
        let state = locked(&self.state);
        state.alive(RELEASED)?;
        Ok(state.owner.as_ref().map_or(0, |slot| slot.index))
    }

    /// True after it was returned to the pool.
    #[getter]
    fn released(&self) -> bool {
        locked(&self.state).owner.is_none()
    }

    /// Returns the buffer to the pool. Raises BufferError while a memoryview or an array sees it. Twice is no error.
    fn release(&self) -> PyResult<()> {
        // Dropped when the lock on this buffer is gone: the pool's own is taken then.
        let slot = locked(&self.state).give_up("release")?;
        drop(slot);
        Ok(())
    }

    fn __len__(&self) -> PyResult<usize> {
        let state = locked(&self.state);
        state.alive(RELEASED)?;
        Ok(state.length)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf.as_any())?.get_item(key)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        PyMemoryView::from(slf.as_any())?.try_iter()
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        PyMemoryView::from(slf.as_any())?.set_item(key, value)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        locked(&slf.get().state).alive(RELEASED)?;
        Ok(slf)
    }

    #[pyo3(signature = (*error))]
    fn __exit__(&self, error: &Bound<'_, PyTuple>) -> PyResult<()> {
        unless_failing(error, self.release())
    }

    fn __repr__(&self) -> String {
        let state = locked(&self.state);
        match &state.owner {
            Some(slot) => {
                format!("<PooledBuffer {} of {} bytes at {:#x}>", slot.index, state.length, state.start.addr())
            }
            None => "<PooledBuffer, released>".to_owned(),
        }
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: called by the interpreter with its own view; `slf` keeps the state, which keeps the pool's memory.
        unsafe { locked(&slf.get().state).export(slf.as_any(), view, flags, RELEASED) }
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        locked(&self.state).unexport();
    }
}
