//! The trace of every I/O of a run: a Parquet file with one row an I/O.
//!
//! [`format`] describes the columns and is used by the writer and the reader. [`TraceWriter`] runs on a thread of its own
//! and takes chunks of I/Os from the workers; it needs the same memory however long the run is. [`TraceReader`] returns the
//! rows; [`IologText`] returns them as lines of fio's iolog, so that a trace is replayed by what replays a log.
//!
//! [`parquet`] is the part of the file format that is needed for that, and for tables of the history.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod format;
pub mod parquet;
mod reader;
mod replay;
mod writer;

pub use format::{COLUMNS, Dropped, TraceError, TraceHeader, TraceRow, TracedJob};
pub use reader::{TraceReader, is_trace};
pub use replay::IologText;
pub use writer::{TraceSummary, TraceWriter};
