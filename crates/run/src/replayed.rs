//! Opens what `read_iolog` names: a log of lines, or a trace.

use std::fs::File;
use std::io::{self, Read};
use trueio_iotrace::{IologText, TraceError, is_trace};

/// Opens a log, or a trace as the lines of a log; `-` is standard input.
///
/// # Errors
/// It cannot be read, or it is an incomplete trace.
pub(crate) fn open_log(path: &str) -> io::Result<Box<dyn Read + Send>> {
    let file = File::open(if path == "-" { "/dev/stdin" } else { path })?;
    if !is_trace(&file)? {
        return Ok(Box::new(file));
    }
    let text = IologText::of(file).map_err(|error| match error {
        TraceError::Io(error) => error,
        error => io::Error::other(error.to_string()),
    })?;
    Ok(Box::new(text))
}
