//! Writes a file: row groups of chunks, one chunk a column, and the description at the end.
//!
//! Of a group that was written only its part of the description is kept, about 50 bytes a column.

use super::thrift::{BINARY, Fields, I32, STRUCT, append_struct, append_text};
use super::{Column, Encoding, Kind, MAGIC};
use std::io::{self, Write};

/// The values of a column in the row group in the making, as pages.
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// Values, absent ones too.
    rows: u64,
    /// The length of the page before the others that is a dictionary, or 0.
    dictionary_bytes: u64,
    encodings: Vec<Encoding>,
}

impl Chunk {
    /// Appends a page of `rows` values, of which `encoded` are the levels and the values.
    ///
    /// # Errors
    /// It is longer than a page can be: 2 GiB.
    pub fn add_page(&mut self, rows: usize, encoding: Encoding, encoded: &[u8]) -> io::Result<()> {
        self.add(0, rows, encoding, encoded)?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Appends a page with the values of a dictionary, which comes before the pages that use it.
    ///
    /// # Errors
    /// It is longer than a page can be.
    pub(super) fn add_dictionary(&mut self, count: usize, values: &[u8]) -> io::Result<()> {
        assert!(self.bytes.is_empty(), "a dictionary is the first page");
        self.add(2, count, Encoding::Plain, values)?;
        self.dictionary_bytes = self.bytes.len() as u64;
        Ok(())
    }

    fn add(&mut self, kind: u8, count: usize, encoding: Encoding, body: &[u8]) -> io::Result<()> {
        let too_large = |_| io::Error::other("a page of the Parquet file would be larger than 2 GiB");
        let (length, count) = (i32::try_from(body.len()).map_err(too_large)?, i32::try_from(count).map_err(too_large)?);
        append_struct(&mut self.bytes, |page| {
            page.i32(1, i32::from(kind));
            // Without and with compression.
            page.i32(2, length);
            page.i32(3, length);
            // The header of a data page, or of a dictionary.
            page.structure(5 + kind, |values| {
                values.i32(1, count);
                values.i32(2, encoding as i32);
                if kind == 0 {
                    // The encodings of definition and repetition levels.
                    values.i32(3, Encoding::Rle as i32);
                    values.i32(4, Encoding::Rle as i32);
                }
            });
        });
        self.bytes.extend_from_slice(body);
        for encoding in [encoding, Encoding::Rle] {
            if !self.encodings.contains(&encoding) {
                self.encodings.push(encoding);
            }
        }
        Ok(())
    }

    /// Removes all pages, and keeps their memory for those of the next group: the kernel clears each page of new memory, which costs more than
    /// what is written to it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.encodings.clear();
        (self.rows, self.dictionary_bytes) = (0, 0);
    }

    /// Returns the address of the pages.
    #[cfg(test)]
    pub(crate) fn address(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct FileWriter<W> {
    out: W,
    /// Bytes that were written.
    position: u64,
    /// The name of the root of the schema.
    name: &'static str,
    columns: Vec<Column>,
    /// The descriptions of the groups.
    groups: Vec<u8>,
    group_count: usize,
    rows: u64,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file with these columns; `name` is that of the table.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(mut out: W, name: &'static str, columns: Vec<Column>) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        let position = MAGIC.len() as u64;
        Ok(Self { out, position, name, columns, groups: Vec::new(), group_count: 0, rows: 0 })
    }

    /// Writes a row group: one chunk for each column, in their order, all with the same number of rows.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_group<'a>(&mut self, chunks: impl ExactSizeIterator<Item = &'a Chunk> + Clone) -> io::Result<()> {
        let rows = chunks.clone().next().map_or(0, |chunk| chunk.rows);
        assert!(chunks.len() == self.columns.len() && chunks.clone().all(|chunk| chunk.rows == rows));
        let mut position = self.position;
        append_struct(&mut self.groups, |group| {
            let list = group.list(1, STRUCT, self.columns.len());
            for (column, chunk) in self.columns.iter().zip(chunks.clone()) {
                append_struct(list, |fields| {
                    // A file offset, which the format no longer uses.
                    fields.i64(2, 0);
                    fields.structure(3, |fields| describe(fields, column, chunk, position));
                });
                position += chunk.bytes.len() as u64;
            }
            let bytes = (position - self.position) as i64;
            group.i64(2, bytes);
            group.i64(3, rows as i64);
            group.i64(5, self.position as i64);
            group.i64(6, bytes);
        });
        for chunk in chunks {
            self.out.write_all(&chunk.bytes)?;
        }
        self.position = position;
        self.group_count += 1;
        self.rows += rows;
        Ok(())
    }

    /// Writes the description, with these pairs of a key and a value; returns what was written to.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self, pairs: &[(&str, &str)]) -> io::Result<W> {
        let mut footer = Vec::new();
        append_struct(&mut footer, |file| {
            file.i32(1, 1);
            append_schema(file, self.name, &self.columns);
            file.i64(3, self.rows as i64);
            file.list(4, STRUCT, self.group_count).append(&mut self.groups);
            if !pairs.is_empty() {
                let list = file.list(5, STRUCT, pairs.len());
                for (key, value) in pairs {
                    append_struct(list, |pair| {
                        pair.text(1, key);
                        pair.text(2, value);
                    });
                }
            }
            file.text(6, concat!("trueio version ", env!("CARGO_PKG_VERSION")));
        });
        let too_large = |_| io::Error::other("the description of the Parquet file would be larger than 2 GiB");
        let length = i32::try_from(footer.len()).map_err(too_large)?;
        footer.extend_from_slice(&length.to_le_bytes());
        footer.extend_from_slice(&MAGIC);
        self.out.write_all(&footer)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Appends the description of a chunk that begins at `position`.
fn describe(fields: &mut Fields<'_>, column: &Column, chunk: &Chunk, position: u64) {
    fields.i32(1, column.kind.number());
    let encodings = fields.list(2, I32, chunk.encodings.len());
    // As a number without a sign whose least bit would be the sign.
    encodings.extend(chunk.encodings.iter().map(|encoding| (*encoding as u8) << 1));
    append_text(fields.list(3, BINARY, 1), column.name);
    // No compression.
    fields.i32(4, 0);
    fields.i64(5, chunk.rows as i64);
    fields.i64(6, chunk.bytes.len() as i64);
    fields.i64(7, chunk.bytes.len() as i64);
    fields.i64(9, (position + chunk.dictionary_bytes) as i64);
    if chunk.dictionary_bytes > 0 {
        fields.i64(11, position as i64);
    }
}

/// Appends the schema: the root, then the columns.
fn append_schema(file: &mut Fields<'_>, name: &str, columns: &[Column]) {
    let list = file.list(2, STRUCT, columns.len() + 1);
    append_struct(list, |root| {
        root.text(4, name);
        root.i32(5, columns.len() as i32);
    });
    for column in columns {
        append_struct(list, |field| {
            field.i32(1, column.kind.number());
            field.i32(3, i32::from(column.is_optional));
            field.text(4, column.name);
            if column.kind == Kind::Text {
                // UTF8, as earlier and as later readers expect it.
                field.i32(6, 0);
                field.structure(10, |logical| logical.structure(1, |_| ()));
            }
        });
    }
}
