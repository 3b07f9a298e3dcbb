//! Reads columns of integers of a file, group by group.
//!
//! The description is read and checked when the file is opened: chunks follow one another within the file, and a group has at most
//! [`GROUP_ROWS_MAX`] rows. So neither a forged number of rows nor chunks that are named many times make memory or time grow beyond what
//! a file of that length can need.
//!
//! Limits: what the description says of statistics, indices and sizes is skipped; checksums of pages are not compared.

use super::delta;
use super::thrift::{BINARY, Damaged, I32, I64, LIST, Reader, STRUCT};
use super::{COMPRESSIONS, ENCODINGS, Encoding, GROUP_ROWS_MAX, Kind, MAGIC, ParquetError, named};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The most bytes of a chunk that are read. A million integers that differ in all bits take 8 MiB.
const CHUNK_BYTES_MAX: u64 = 64 << 20;

/// A file that is read.
#[derive(Debug)]
pub struct FileReader {
    file: File,
    columns: Vec<Element>,
    pairs: Vec<(String, String)>,
    groups: Vec<Group>,
    rows: u64,
}

#[derive(Debug)]
struct Group {
    rows: u64,
    /// One for each column.
    chunks: Vec<ChunkPlace>,
}

/// Where a chunk is.
#[derive(Debug, Clone, Copy, Default)]
struct ChunkPlace {
    kind: i32,
    compression: i32,
    begin: u64,
    bytes: u64,
    values: u64,
}

/// What the description of a file has.
#[derive(Debug, Default)]
struct Description {
    schema: Vec<Element>,
    rows: u64,
    groups: Vec<Group>,
    pairs: Vec<(String, String)>,
}

/// An element of the schema: a column, or a group of columns.
#[derive(Debug, Default)]
struct Element {
    name: String,
    /// The number of its type; `None`: it is a group.
    kind: Option<i32>,
    /// 0: required, 1: optional, 2: repeated.
    repetition: i32,
}

impl Element {
    /// Returns whether it is a column of 64 bits or of 32; of what is not read, what it has.
    fn is_wide(&self) -> Result<bool, &'static str> {
        match (self.kind, self.repetition) {
            (None, _) => Err("columns below it"),
            (Some(_), 1) => Err("optional values"),
            (Some(_), 2) => Err("repeated values"),
            (Some(number), _) if number == Kind::Int32.number() => Ok(false),
            (Some(number), _) if number == Kind::Int64.number() => Ok(true),
            _ => Err("values that are no integers"),
        }
    }
}

impl FileReader {
    /// Reads the description.
    ///
    /// # Errors
    /// It is no Parquet file, or it is damaged or incomplete.
    pub fn open(file: File) -> Result<Self, ParquetError> {
        let length = file.metadata()?.len();
        let tail = MAGIC.len() as u64 + 4;
        // The magic number, the description, its length and the magic number.
        let end = length.checked_sub(tail).filter(|end| *end >= MAGIC.len() as u64).ok_or(ParquetError::NotParquet)?;
        let (mut head, mut word, mut magic) = ([0; 4], [0; 4], [0; 4]);
        file.read_exact_at(&mut head, 0)?;
        file.read_exact_at(&mut word, end)?;
        file.read_exact_at(&mut magic, end + 4)?;
        if head != MAGIC || magic != MAGIC {
            return Err(ParquetError::NotParquet);
        }
        let damaged = |_| ParquetError::Damaged("description".to_owned());
        let size = u32::from_le_bytes(word);
        let begin = end.checked_sub(u64::from(size)).filter(|begin| *begin >= MAGIC.len() as u64);
        let begin = begin.ok_or_else(|| damaged(Damaged))?;
        let footer = read_at(&file, begin, size as usize)?;
        let description = description_of(&mut Reader(&footer), begin).map_err(damaged)?;
        let Description { schema: mut columns, rows, groups, pairs } = description;
        // The first is the root of the others.
        if columns.is_empty() || columns.remove(0).kind.is_some() {
            return Err(damaged(Damaged));
        }
        let reader = Self { file, columns, pairs, groups, rows };
        reader.check_groups()?;
        Ok(reader)
    }

    /// Compares what the description says of groups with what it says of columns.
    fn check_groups(&self) -> Result<(), ParquetError> {
        // A group has a place of its own among the columns, but no chunk.
        if let Some(group) = self.columns.iter().position(|column| column.kind.is_none()) {
            return Err(self.unsupported(group, "columns below it"));
        }
        let sum = self.groups.iter().map(|group| group.rows).fold(0, u64::saturating_add);
        if sum != self.rows || self.groups.iter().any(|group| group.chunks.len() != self.columns.len()) {
            return Err(ParquetError::Damaged("description".to_owned()));
        }
        for group in &self.groups {
            if group.rows > GROUP_ROWS_MAX {
                return Err(self.unsupported(0, &format!("{} rows in a group", group.rows)));
            }
            let too_large = group.chunks.iter().position(|chunk| chunk.bytes > CHUNK_BYTES_MAX);
            if let Some(column) = too_large {
                return Err(self.unsupported(column, &format!("{} bytes in a group", group.chunks[column].bytes)));
            }
        }
        Ok(())
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Returns the value of a key.
    pub fn value_of(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(of, _)| of == key).map(|(_, value)| value.as_str())
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> u64 {
        self.rows
    }

    /// Returns the number of row groups.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Reads a column of a group; values of 32 bits keep their sign.
    ///
    /// # Errors
    /// The kernel's, damage, and a column that is not of required integers or encoded otherwise.
    ///
    /// # Panics
    /// There is no such group or column.
    pub fn integers(&self, group: usize, column: usize) -> Result<Vec<i64>, ParquetError> {
        let Group { rows, chunks } = &self.groups[group];
        let chunk = chunks[column];
        let is_wide = self.columns[column].is_wide().map_err(|what| self.unsupported(column, what))?;
        if Some(chunk.kind) != self.columns[column].kind || chunk.values != *rows {
            return Err(self.damaged(group, column));
        }
        if chunk.compression != 0 {
            return Err(self.unsupported(column, &named("compression", &COMPRESSIONS, chunk.compression)));
        }
        // Numbers of rows and bytes are checked, and the chunk is in the file.
        let bytes = read_at(&self.file, chunk.begin, chunk.bytes as usize)?;
        let rows = *rows as usize;
        let mut values = Vec::with_capacity(rows);
        let mut reader = Reader(&bytes);
        while values.len() < rows {
            let page = next_page(&mut reader).map_err(|Damaged| self.damaged(group, column))?;
            if let Some(what) = page.unsupported() {
                return Err(self.unsupported(column, &what));
            }
            let most = rows - values.len();
            let count = usize::try_from(page.values).ok().filter(|count| *count <= most);
            count
                .ok_or(Damaged)
                .and_then(|count| delta::decode(page.body, count, is_wide, &mut values))
                .map_err(|Damaged| self.damaged(group, column))?;
        }
        Ok(values)
    }

    fn damaged(&self, group: usize, column: usize) -> ParquetError {
        ParquetError::Damaged(format!("column `{}` in row group {group}", self.columns[column].name))
    }

    fn unsupported(&self, column: usize, what: &str) -> ParquetError {
        let column = self.columns.get(column).map_or_else(String::new, |column| column.name.clone());
        ParquetError::Unsupported { column, what: what.to_owned() }
    }
}

/// Reads `count` bytes that are in the file.
fn read_at(file: &File, begin: u64, count: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(count).map_err(|_| std::io::Error::from(std::io::ErrorKind::OutOfMemory))?;
    bytes.resize(count, 0);
    file.read_exact_at(&mut bytes, begin)?;
    Ok(bytes)
}

/// A page and what its head says.
struct Page<'a> {
    /// 0: values, 1: an index, 2: a dictionary, 3: values of the second version.
    kind: i32,
    values: i32,
    encoding: i32,
    body: &'a [u8],
}

impl Page<'_> {
    /// Returns what is not read of it, if anything.
    fn unsupported(&self) -> Option<String> {
        match self.kind {
            0 if self.encoding == Encoding::DeltaBinaryPacked as i32 => None,
            0 => Some(named("encoding", &ENCODINGS, self.encoding)),
            1 => Some("a page with an index".to_owned()),
            2 => Some("the encoding RLE_DICTIONARY".to_owned()),
            3 => Some("pages of version 2".to_owned()),
            kind => Some(format!("pages of the unknown type {kind}")),
        }
    }
}

fn next_page<'a>(reader: &mut Reader<'a>) -> Result<Page<'a>, Damaged> {
    let (mut kind, mut size, mut values, mut encoding) = (None, None, None, None);
    let mut last = 0;
    while let Some((number, of)) = reader.field(&mut last)? {
        match (number, of) {
            (1, I32) => kind = Some(reader.i32()?),
            (3, I32) => size = Some(reader.size()?),
            (5, STRUCT) => {
                let mut last = 0;
                while let Some((number, of)) = reader.field(&mut last)? {
                    match (number, of) {
                        (1, I32) => values = Some(reader.i32()?),
                        (2, I32) => encoding = Some(reader.i32()?),
                        _ => reader.skip(of)?,
                    }
                }
            }
            _ => reader.skip(of)?,
        }
    }
    let kind = kind.ok_or(Damaged)?;
    let (values, encoding) = match kind {
        0 => (values.ok_or(Damaged)?, encoding.ok_or(Damaged)?),
        _ => (0, 0),
    };
    // A page without a value would never end.
    if kind == 0 && values < 1 {
        return Err(Damaged);
    }
    Ok(Page { kind, values, encoding, body: reader.bytes(size.ok_or(Damaged)?)? })
}

/// Reads the description, which begins at `end`, where the last chunk ends at the latest.
fn description_of(reader: &mut Reader<'_>, end: u64) -> Result<Description, Damaged> {
    let mut description = Description::default();
    // Where the next chunk begins at the earliest.
    let mut position = MAGIC.len() as u64;
    let mut last = 0;
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (2, LIST) => {
                for _ in 0..reader.structures()? {
                    description.schema.push(element_of(reader)?);
                }
            }
            (3, I64) => description.rows = reader.size()?,
            (4, LIST) => {
                for _ in 0..reader.structures()? {
                    description.groups.push(group_of(reader, &mut position, end)?);
                }
            }
            (5, LIST) => {
                for _ in 0..reader.structures()? {
                    description.pairs.push(pair_of(reader)?);
                }
            }
            _ => reader.skip(kind)?,
        }
    }
    Ok(description)
}

fn element_of(reader: &mut Reader<'_>) -> Result<Element, Damaged> {
    let (mut element, mut is_named, mut last) = (Element::default(), false, 0);
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (1, I32) => element.kind = Some(reader.i32()?),
            (3, I32) => element.repetition = reader.i32()?,
            (4, BINARY) => {
                is_named = true;
                element.name = reader.text()?.to_owned();
            }
            _ => reader.skip(kind)?,
        }
    }
    is_named.then_some(element).ok_or(Damaged)
}

fn pair_of(reader: &mut Reader<'_>) -> Result<(String, String), Damaged> {
    let (mut key, mut value, mut last) = (String::new(), String::new(), 0);
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (1, BINARY) => key = reader.text()?.to_owned(),
            (2, BINARY) => value = reader.text()?.to_owned(),
            _ => reader.skip(kind)?,
        }
    }
    Ok((key, value))
}

fn group_of(reader: &mut Reader<'_>, position: &mut u64, end: u64) -> Result<Group, Damaged> {
    let (mut chunks, mut rows, mut last) = (Vec::new(), None, 0);
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (1, LIST) => {
                for _ in 0..reader.structures()? {
                    let chunk = chunk_of(reader)?.ok_or(Damaged)?;
                    let after = chunk.begin.checked_add(chunk.bytes).filter(|after| *after <= end);
                    if chunk.begin < *position {
                        return Err(Damaged);
                    }
                    *position = after.ok_or(Damaged)?;
                    chunks.push(chunk);
                }
            }
            (3, I64) => rows = Some(reader.size()?),
            _ => reader.skip(kind)?,
        }
    }
    Ok(Group { rows: rows.ok_or(Damaged)?, chunks })
}

fn chunk_of(reader: &mut Reader<'_>) -> Result<Option<ChunkPlace>, Damaged> {
    let (mut chunk, mut last) = (None, 0);
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (3, STRUCT) => chunk = Some(place_of(reader)?),
            _ => reader.skip(kind)?,
        }
    }
    Ok(chunk)
}

fn place_of(reader: &mut Reader<'_>) -> Result<ChunkPlace, Damaged> {
    let (mut chunk, mut dictionary, mut found, mut last) = (ChunkPlace::default(), None, 0_u32, 0);
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (1, I32) => chunk.kind = reader.i32()?,
            (4, I32) => chunk.compression = reader.i32()?,
            (5, I64) => chunk.values = reader.size()?,
            (7, I64) => chunk.bytes = reader.size()?,
            (9, I64) => chunk.begin = reader.size()?,
            (11, I64) => dictionary = Some(reader.size()?),
            _ => {
                reader.skip(kind)?;
                continue;
            }
        }
        found |= 1 << number;
    }
    // All but the dictionary are required.
    if found & 0b10_1011_0010 != 0b10_1011_0010 {
        return Err(Damaged);
    }
    // Some writers give 0 where there is no dictionary.
    chunk.begin = dictionary.filter(|begin| (1..chunk.begin).contains(begin)).unwrap_or(chunk.begin);
    Ok(chunk)
}
