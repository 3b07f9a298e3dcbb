//! Reads a trace, group by group.

use crate::format::{COLUMNS, HEADER_KEY, TraceError, TraceHeader, TraceRow, VERSION, op_of};
use crate::parquet::FileReader;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use trueio_model::error_line;

/// Returns true if a file begins as a Parquet file does.
///
/// # Errors
/// It cannot be read.
pub fn is_trace(file: &File) -> io::Result<bool> {
    let mut magic = [0; 4];
    match file.read_exact_at(&mut magic, 0) {
        Ok(()) => Ok(magic == *b"PAR1"),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// A trace that is read.
#[derive(Debug)]
pub struct TraceReader {
    file: FileReader,
    header: TraceHeader,
}

impl TraceReader {
    /// Reads the header.
    ///
    /// # Errors
    /// The file is no trace, or it is incomplete: its run was killed.
    pub fn open(file: File) -> Result<Self, TraceError> {
        let file = FileReader::open(file)?;
        let json = file.value_of(HEADER_KEY);
        let json = json.ok_or_else(|| TraceError::NotATrace(format!("its metadata has no `{HEADER_KEY}`")))?;
        let header: TraceHeader = serde_json::from_str(json)
            .map_err(|error| TraceError::NotATrace(format!("`{HEADER_KEY}`: {}", error_line(&error))))?;
        if header.version != VERSION {
            let reason = format!("its version is {}, and this program reads {VERSION}", header.version);
            return Err(TraceError::NotATrace(reason));
        }
        if !file.names().eq(COLUMNS.iter().map(|(name, _)| *name)) {
            return Err(TraceError::NotATrace("it has other columns".to_owned()));
        }
        Ok(Self { file, header })
    }

    /// Returns what the trace tells of its run.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> u64 {
        self.file.row_count()
    }

    /// Calls `visit` with every row, in the order of the file.
    ///
    /// # Errors
    /// A group that cannot be read.
    pub fn for_each(&self, mut visit: impl FnMut(TraceRow)) -> Result<(), TraceError> {
        (0..self.file.group_count()).try_for_each(|index| self.read_group(index, &mut visit))
    }

    fn read_group(&self, index: usize, visit: &mut impl FnMut(TraceRow)) -> Result<(), TraceError> {
        let columns = (0..COLUMNS.len()).map(|column| self.file.integers(index, column));
        let columns = columns.collect::<Result<Vec<Vec<i64>>, _>>()?;
        for (row, op) in columns[2].iter().enumerate() {
            let number = |column: usize| columns[column][row] as u64;
            let op = i32::try_from(*op).ok().and_then(op_of);
            let op = op.ok_or_else(|| TraceError::NotATrace(format!("row {row} has an unknown operation")))?;
            visit(TraceRow {
                time_ns: number(0),
                worker: number(1) as u32,
                op,
                file: number(3) as u32,
                offset: number(4),
                length: number(5) as u32,
                slat_ns: number(6),
                clat_ns: number(7),
                intended_ns: number(8),
                error: number(9) as u32,
            });
        }
        Ok(())
    }
}
