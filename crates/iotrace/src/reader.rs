//! Reads a trace, group by group.

use crate::format::{COLUMNS, HEADER_KEY, TraceError, TraceHeader, TraceRow, VERSION, op_of};
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

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
pub struct TraceReader {
    file: SerializedFileReader<File>,
    header: TraceHeader,
}

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader").field("header", &self.header).finish_non_exhaustive()
    }
}

impl TraceReader {
    /// Reads the header.
    ///
    /// # Errors
    /// The file is no trace, or it is incomplete: its run was killed.
    pub fn open(file: File) -> Result<Self, TraceError> {
        let file = SerializedFileReader::new(file)?;
        let metadata = file.metadata().file_metadata();
        let pairs = metadata.key_value_metadata().into_iter().flatten();
        let json = pairs.filter(|pair| pair.key == HEADER_KEY).find_map(|pair| pair.value.as_deref());
        let json = json.ok_or_else(|| TraceError::NotATrace(format!("its metadata has no `{HEADER_KEY}`")))?;
        let header: TraceHeader =
            serde_json::from_str(json).map_err(|error| TraceError::NotATrace(format!("`{HEADER_KEY}`: {error}")))?;
        if header.version != VERSION {
            let reason = format!("its version is {}, and this program reads {VERSION}", header.version);
            return Err(TraceError::NotATrace(reason));
        }
        let names = metadata.schema_descr().columns().iter().map(|column| column.name());
        if !names.eq(COLUMNS.iter().map(|(name, _)| *name)) {
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
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// Calls `visit` with every row, in the order of the file.
    ///
    /// # Errors
    /// A group that cannot be read.
    pub fn for_each(&self, mut visit: impl FnMut(TraceRow)) -> Result<(), TraceError> {
        for index in 0..self.file.num_row_groups() {
            self.read_group(index, &mut visit)?;
        }
        Ok(())
    }

    fn read_group(&self, index: usize, visit: &mut impl FnMut(TraceRow)) -> Result<(), TraceError> {
        let group = self.file.get_row_group(index)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut columns: Vec<Vec<i64>> = Vec::with_capacity(COLUMNS.len());
        for (column, (name, _)) in COLUMNS.iter().enumerate() {
            let mut values = Vec::with_capacity(rows);
            match group.get_column_reader(column)? {
                ColumnReader::Int64ColumnReader(mut reader) => {
                    reader.read_records(rows, None, None, &mut values)?;
                }
                ColumnReader::Int32ColumnReader(mut reader) => {
                    let mut narrow = Vec::with_capacity(rows);
                    reader.read_records(rows, None, None, &mut narrow)?;
                    values.extend(narrow.into_iter().map(i64::from));
                }
                _ => return Err(TraceError::NotATrace(format!("`{name}` is no column of integers"))),
            }
            if values.len() != rows {
                let reason = format!("`{name}` has {} of {rows} values", values.len());
                return Err(TraceError::NotATrace(reason));
            }
            columns.push(values);
        }
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
