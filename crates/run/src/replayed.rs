//! Opens what `read_iolog` names: a log of lines, or a trace.

use std::io::{self, Read};
use std::path::Path;
use trueio_files::TextFile;
use trueio_iotrace::{IologText, TraceError, is_trace};

/// Opens a log, or a trace as the lines of a log; `-` is standard input.
///
/// # Errors
/// It cannot be read, or it is an incomplete trace.
pub(crate) fn open_log(path: &str) -> io::Result<Box<dyn Read + Send>> {
    // Opened, not duplicated: a log is read twice, and each time from its beginning.
    let text = TextFile::open(Path::new(if path == "-" { "/dev/stdin" } else { path }), u64::MAX)?;
    let Some(file) = text.seekable() else { return Ok(Box::new(text)) };
    if !is_trace(file)? {
        return Ok(Box::new(text));
    }
    let file = file.try_clone()?;
    let text = IologText::of(file).map_err(|error| match error {
        TraceError::Io(error) => error,
        error => io::Error::other(error.to_string()),
    })?;
    Ok(Box::new(text))
}
