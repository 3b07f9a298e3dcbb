//! A trace as fio's iolog, version 3, so that `read_iolog` replays it.
//!
//! The I/Os of all workers become one sequence in the order in which they were submitted, at times in microseconds since the
//! first of them. A row takes 72 bytes until all lines were read.
//!
//! Not replayed: rows of I/Os that were dropped, and the workers: one queue issues the I/Os of all.

use crate::format::{TraceError, TraceHeader, TraceRow};
use crate::reader::TraceReader;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use trueio_model::{IOLOG_HEADER, OpKind};

/// Rows that are formatted at a time.
const ROWS: usize = 1024;

/// The lines of a trace.
#[derive(Debug)]
pub struct IologText {
    header: TraceHeader,
    rows: std::vec::IntoIter<TraceRow>,
    began_ns: u64,
    text: Vec<u8>,
    /// Bytes of `text` that were read.
    at: usize,
    is_over: bool,
}

impl IologText {
    /// Reads a trace.
    ///
    /// # Errors
    /// It is no trace, or it has names that a log cannot have.
    pub fn of(file: File) -> Result<Self, TraceError> {
        let reader = TraceReader::open(file)?;
        let mut rows = Vec::new();
        let count = usize::try_from(reader.row_count()).unwrap_or(usize::MAX);
        rows.try_reserve_exact(count).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        reader.for_each(|row| rows.push(row))?;
        let header = reader.header().clone();
        let files: BTreeSet<&String> = header.jobs.iter().flat_map(|job| &job.files).collect();
        let mut text = format!("{IOLOG_HEADER}\n").into_bytes();
        for name in &files {
            if name.contains(|c: char| c.is_ascii_whitespace()) {
                return Err(TraceError::NotATrace(format!("`{name}` has a blank, which a log cannot name")));
            }
            writeln!(text, "0 {name} add\n0 {name} open")?;
        }
        if files.is_empty() {
            return Err(TraceError::NotATrace("its jobs have no files, so nothing can be replayed".to_owned()));
        }
        rows.sort_by_key(TraceRow::submitted_ns);
        let began_ns = rows.first().map_or(0, TraceRow::submitted_ns);
        Ok(Self { header, rows: rows.into_iter(), began_ns, text, at: 0, is_over: false })
    }

    /// Formats the next lines.
    fn format(&mut self) -> io::Result<()> {
        self.text.clear();
        self.at = 0;
        for row in self.rows.by_ref().take(ROWS) {
            let file = self.header.job(row.worker).and_then(|job| job.files.get(row.file as usize));
            let name = file.ok_or_else(|| io::Error::other(format!("a row of an unknown file: {row:?}")))?;
            let at_us = (row.submitted_ns() - self.began_ns) / 1_000;
            match row.op {
                OpKind::Sync => writeln!(self.text, "{at_us} {name} sync 0 0")?,
                op => writeln!(self.text, "{at_us} {name} {} {} {}", word(op), row.offset, row.length)?,
            }
        }
        self.is_over = self.text.is_empty();
        Ok(())
    }
}

fn word(op: OpKind) -> &'static str {
    match op {
        OpKind::Read => "read",
        OpKind::Write => "write",
        OpKind::Trim => "trim",
        OpKind::Sync => "sync",
    }
}

impl Read for IologText {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() && !self.is_over {
            self.format()?;
        }
        let count = out.len().min(self.text.len() - self.at);
        out[..count].copy_from_slice(&self.text[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
