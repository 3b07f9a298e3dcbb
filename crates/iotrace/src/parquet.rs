//! The part of the Parquet format that trueio writes and reads.
//!
//! | what                    | written                                                            | read                  |
//! |-------------------------|--------------------------------------------------------------------|-----------------------|
//! | columns                 | flat; INT32, INT64, DOUBLE, texts; required or optional            | required INT32, INT64 |
//! | pages                   | version 1                                                          | version 1             |
//! | encodings               | DELTA_BINARY_PACKED; PLAIN and RLE_DICTIONARY for optional columns | DELTA_BINARY_PACKED   |
//! | compression, statistics | none                                                               | none, skipped         |
//!
//! That is what a trace and a table of the history need; a library of the whole format was 1.3 MB of a program of 15 MB. Other files are
//! refused with the name of the column and of what is not read.
//!
//! [`FileWriter`] writes row groups from [`Chunk`]s, [`FileReader`] reads columns of integers group by group. Bytes of a file are not
//! trusted: what a length demands is compared with the length of the file, and the rows of a group with the most that are read (a
//! million), before memory is taken.
//!
//! Source: Apache Parquet, `README.md` and `src/main/thrift/parquet.thrift` (the numbers of fields, types and encodings), `Encodings.md`.

pub(crate) mod delta;
mod read;
mod thrift;
mod values;
mod write;

pub use read::FileReader;
pub use values::{Value, chunk_of};
pub use write::{Chunk, FileWriter};

/// Bytes at the begin and at the end of a file.
const MAGIC: [u8; 4] = *b"PAR1";
/// The most rows of a group that is read. Those of a trace have 131,072.
const GROUP_ROWS_MAX: u64 = 1 << 20;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers of 32 bits.
    Int32,
    /// Integers of 64 bits.
    Int64,
    /// Floating-point numbers of 64 bits.
    Double,
    /// Texts in UTF-8.
    Text,
}

impl Kind {
    /// Returns the number of the physical type.
    fn number(self) -> i32 {
        match self {
            Self::Int32 => 1,
            Self::Int64 => 2,
            Self::Double => 5,
            Self::Text => 6,
        }
    }
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether values may be absent.
    pub is_optional: bool,
}

/// How the values of a page are encoded; the number is that of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// One after the other.
    Plain = 0,
    /// Runs of the same number; of levels.
    Rle = 3,
    /// Differences to the value before.
    DeltaBinaryPacked = 5,
    /// Numbers of values in a page of their own, the dictionary.
    RleDictionary = 8,
}

/// The names of all encodings, by number.
const ENCODINGS: [&str; 10] = [
    "PLAIN",
    "GROUP_VAR_INT",
    "PLAIN_DICTIONARY",
    "RLE",
    "BIT_PACKED",
    "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY",
    "BYTE_STREAM_SPLIT",
];
/// The names of all compressions, by number.
const COMPRESSIONS: [&str; 8] = ["UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"];

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    /// The kernel's reason.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is another file, or the rest of it is missing.
    #[error("it does not begin and end as a Parquet file does")]
    NotParquet,
    /// It contradicts itself or the format.
    #[error("its {0} is damaged")]
    Damaged(String),
    /// It may be sound, but is none that trueio writes.
    #[error(
        "column `{column}` has {what}; only required, uncompressed integers with the encoding DELTA_BINARY_PACKED are read, as in every \
         trace of trueio: use the file that `trueio run --trace` wrote"
    )]
    Unsupported {
        /// The column.
        column: String,
        /// What it has.
        what: String,
    },
}

/// Returns what has the number `number`, in words.
fn named(what: &str, names: &[&str], number: i32) -> String {
    match usize::try_from(number).ok().and_then(|number| names.get(number)) {
        Some(name) => format!("the {what} {name}"),
        None => format!("the unknown {what} {number}"),
    }
}
