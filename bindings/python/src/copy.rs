//! Copies of files, with the caller's function told how far they are.
//!
//! The copy runs without the interpreter. From time to time it is attached, for pending signals (Ctrl-C) and for
//! `progress`. What either raises stops the copy, and is raised in the end.

use crate::argument::{count, path, size, word};
use crate::error;
use crate::fact::Copied;
use crate::file::{POLICIES, flush_level};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};
use trueio_direct::{CopyOptions, CopyProgress};

/// The shortest time between two reports, but for the last. Attaching may take as long as another thread of Python keeps
/// the interpreter (5 ms by default), and blocks are copied in less.
const INTERVAL: Duration = Duration::from_millis(100);

/// Copies `source` to `destination`, each a file or a disk, past the page cache, in large aligned blocks.
///
/// `overwrite`: a destination that exists is written. A file is emptied first, unless `destination_offset` is set; a
/// disk keeps what is not written.
///
/// `policy`, on both sides: "require" grants direct I/O or raises, "prefer" falls back to buffered I/O, "off" uses the page
/// cache. `source` and `destination` of the result report what was granted.
///
/// `flush`: how durable the copy, and the name of a new file, are at the end: "barrier", "data", "file", "device", or None
/// for no flush.
///
/// `buffer_bytes`: the size of the blocks, rounded up to the alignment; None: 4 MiB.
///
/// `range`: a tuple (start, end), aligned or not: only these bytes of the source are copied. `destination_offset`: where
/// in the destination they begin; an existing file then keeps its other bytes.
///
/// `keep_holes`: holes of the source are not read, and stay holes in a new file. False: they are written as zeros.
///
/// `progress(done_bytes, total_bytes)` is called in this thread after the first block, then at most ten times a second,
/// and when all bytes are copied, before the flush. It is not called if there is nothing to copy. What it raises stops the
/// copy and is raised here, as is KeyboardInterrupt. After any exception, a destination that the copy created is
/// removed, unless `destination_offset` is set; any other is left half written.
///
/// Raises FileExistsError without `overwrite`, CopyError if source and destination are the same file, a range ends beyond
/// the source, a disk is too small, or the system reports an error; otherwise as `open`.
#[pyfunction]
#[pyo3(
    signature = (source, destination, *, overwrite = false, policy = "prefer", flush = Some("device"), buffer_bytes = None, range = None, destination_offset = None, keep_holes = true, progress = None),
    // pyo3 would show the default of `flush` as an ellipsis.
    text_signature = "(source, destination, *, overwrite=False, policy='prefer', flush='device', buffer_bytes=None, range=None, destination_offset=None, keep_holes=True, progress=None)"
)]
#[allow(clippy::too_many_arguments, reason = "they are the keyword arguments of a Python function")]
pub(crate) fn copy_file(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    destination: &Bound<'_, PyAny>,
    overwrite: bool,
    policy: &str,
    flush: Option<&str>,
    buffer_bytes: Option<&Bound<'_, PyAny>>,
    range: Option<&Bound<'_, PyAny>>,
    destination_offset: Option<&Bound<'_, PyAny>>,
    keep_holes: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Copied> {
    let paths = (path(source)?, path(destination)?);
    let mut options = CopyOptions::new()
        .overwrite(overwrite)
        .policy(word("policy", policy, &POLICIES)?)
        .flush(flush.map(flush_level).transpose()?)
        .keep_holes(keep_holes);
    if let Some(bytes) = buffer_bytes {
        options = options.buffer_bytes(size("buffer_bytes", bytes)?);
    }
    if let Some(range) = range {
        options = options.range(range_of(range)?);
    }
    if let Some(offset) = destination_offset {
        options = options.destination_offset(count("destination_offset", offset)?);
    }
    if let Some(function) = progress.filter(|function| !function.is_callable()) {
        let kind = function.get_type().name()?;
        return Err(PyTypeError::new_err(format!("progress must be callable or None, not {kind}")));
    }
    let mut reports =
        Reports { progress: progress.map(|function| function.clone().unbind()), last: None, raised: None };
    let copied =
        py.detach(|| trueio_direct::copy_file(&paths.0, &paths.1, &options, |progress| reports.report(progress)));
    match reports.raised {
        Some(raised) => Err(raised),
        None => copied.map(Copied::from).map_err(|error| error::copy(py, &error, &paths)),
    }
}

fn range_of(range: &Bound<'_, PyAny>) -> PyResult<Range<u64>> {
    let pair = range.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let pair = pair.ok_or_else(|| PyTypeError::new_err("range must be a tuple (start, end) or None"))?;
    let (start, end) = (count("start", &pair.get_item(0)?)?, count("end", &pair.get_item(1)?)?);
    if start > end {
        return Err(PyValueError::new_err(format!("range must not end before it starts, and is ({start}, {end})")));
    }
    Ok(start..end)
}

/// Reports to the caller's function.
struct Reports {
    progress: Option<Py<PyAny>>,
    /// When the last report was made.
    last: Option<Instant>,
    /// What stopped the copy.
    raised: Option<PyErr>,
}

impl Reports {
    /// Attaches the interpreter, if it is time, for signals and for the caller's function.
    fn report(&mut self, progress: CopyProgress) -> ControlFlow<()> {
        let CopyProgress { done_bytes, total_bytes, .. } = progress;
        if done_bytes < total_bytes && self.last.is_some_and(|last| last.elapsed() < INTERVAL) {
            return ControlFlow::Continue(());
        }
        let reported = Python::try_attach(|py| {
            py.check_signals()?;
            self.progress.as_ref().map_or(Ok(()), |function| function.call1(py, (done_bytes, total_bytes)).map(drop))
        });
        self.last = Some(Instant::now());
        match reported {
            Some(Ok(())) => ControlFlow::Continue(()),
            Some(Err(raised)) => {
                self.raised = Some(raised);
                ControlFlow::Break(())
            }
            // The interpreter is ending, and no caller waits for this thread.
            None => ControlFlow::Break(()),
        }
    }
}
