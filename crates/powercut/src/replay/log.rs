//! A log of the writes, flushes and discards of a block device, as dm-log-writes and QEMU's `blklogwrites` write it.
//!
//! | where | what, little endian |
//! |---|---|
//! | sector 0 | magic `0x6a736677736872`, version 1, number of entries (64 bits each), bytes of a sector (32 bits) |
//! | a sector for each entry | first sector, number of sectors, flags, length of a mark (64 bits each); the mark's text |
//! | after it, unless it is a discard, a mark, or has no sectors | the data |
//!
//! Limits: dm-log-writes logs a write without FUA when the next flush completes, and one with FUA at once. A write with FUA may stand
//! before earlier ones without; overlapping writes are then applied in another order.
//!
//! Source: Linux `drivers/md/dm-log-writes.c`, `Documentation/admin-guide/device-mapper/log-writes.rst`; QEMU
//! `block/blklogwrites.c`.

use std::io::{self, Read, Seek, SeekFrom, Write};

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
const FUA: u64 = 1 << 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;
/// Metadata of a filesystem: only a remark.
const METADATA: u64 = 1 << 4;
/// Bytes of an entry before the text of a mark.
const HEAD_BYTES: usize = 32;
/// Entries that are read at most.
pub const ENTRIES_MAX: u64 = 1 << 24;

/// A log that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be read.
    #[error("the log cannot be read")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is no log of dm-log-writes or blklogwrites: its first bytes are others")]
    NotALog,
    /// Another version.
    #[error("it has version {0} of the format; this program reads version {VERSION}")]
    Version(u64),
    /// An impossible size of sectors.
    #[error("its sectors have {0} bytes; 512 to 65,536 bytes, a power of two, are possible")]
    SectorBytes(u32),
    /// More entries than are read.
    #[error("it has {0} entries; at most {ENTRIES_MAX} are read")]
    Entries(u64),
    /// The file ends within an entry.
    #[error("it ends within entry {entry} of {count}: it was cut off, or its writer was ended")]
    Truncated {
        /// Number of the entry, from 0.
        entry: u64,
        /// Entries by the head.
        count: u64,
    },
    /// An entry with figures that are impossible.
    #[error("entry {entry} is impossible: {why}")]
    Impossible {
        /// Number of the entry, from 0.
        entry: u64,
        /// Why.
        why: &'static str,
    },
}

/// An entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 0.
    pub number: u64,
    /// The first sector that it writes.
    pub sector: u64,
    /// Number of sectors; 0: it writes nothing.
    pub sector_count: u64,
    /// Everything that completed before it is stored first.
    pub flushes: bool,
    /// It is stored when it completes.
    pub is_fua: bool,
    /// Its sectors become zeros.
    pub is_discard: bool,
    /// The text of a mark.
    pub mark: Option<String>,
    /// Where its data begin in the log.
    pub data_at: u64,
}

impl Entry {
    /// Returns whether it changes sectors.
    pub fn writes(&self) -> bool {
        self.sector_count > 0 && self.mark.is_none()
    }
}

/// When a crash happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointKind {
    /// Before a flush completes.
    Flush,
    /// Before a write with FUA completes.
    Fua,
    /// After the last entry.
    End,
}

/// A moment of a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Kind.
    pub kind: PointKind,
    /// Entries before this index are stored.
    pub flushed: usize,
    /// Entries from this index on were not begun.
    pub end: usize,
}

/// A log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteLog {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// The entries.
    pub entries: Vec<Entry>,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

impl WriteLog {
    /// Reads a log. Memory grows with the entries that are in the file, not with what they state about themselves.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn read(file: &mut (impl Read + Seek)) -> Result<Self, LogError> {
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        let mut head = [0; 28];
        if length < 512 {
            return Err(LogError::NotALog);
        }
        file.read_exact(&mut head)?;
        if word(&head, 0) != MAGIC {
            return Err(LogError::NotALog);
        }
        let (version, count) = (word(&head, 8), word(&head, 16));
        let sector_bytes = u32::from_le_bytes(head[24..28].try_into().expect("4 bytes"));
        if version != VERSION {
            return Err(LogError::Version(version));
        }
        if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
            return Err(LogError::SectorBytes(sector_bytes));
        }
        if count > ENTRIES_MAX {
            return Err(LogError::Entries(count));
        }
        let sector = u64::from(sector_bytes);
        let (mut entries, mut at) = (Vec::new(), sector);
        let mut buffer = vec![0; sector_bytes as usize];
        for number in 0..count {
            if at.checked_add(sector).is_none_or(|end| end > length) {
                return Err(LogError::Truncated { entry: number, count });
            }
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut buffer)?;
            let entry = entry_of(number, &buffer, at + sector)?;
            let has_data = entry.writes() && !entry.is_discard;
            let data_bytes = if has_data { entry.sector_count.checked_mul(sector) } else { Some(0) };
            at = match data_bytes.and_then(|bytes| entry.data_at.checked_add(bytes)) {
                Some(end) if end <= length => end,
                _ => return Err(LogError::Truncated { entry: number, count }),
            };
            if entry.sector.checked_add(entry.sector_count).and_then(|end| end.checked_mul(sector)).is_none() {
                return Err(LogError::Impossible { entry: number, why: "its sectors are beyond any device" });
            }
            entries.push(entry);
        }
        Ok(Self { sector_bytes, entries })
    }

    /// Returns the end of the last sector that is written, in bytes.
    pub fn end_bytes(&self) -> u64 {
        let ends = self.entries.iter().filter(|entry| entry.writes());
        ends.map(|entry| (entry.sector + entry.sector_count) * u64::from(self.sector_bytes)).max().unwrap_or(0)
    }

    /// Returns the moments at which a crash differs, oldest first. `from` is the first entry after which one may happen.
    pub fn points(&self, from: usize) -> Vec<Point> {
        let (mut points, mut flushed) = (Vec::new(), 0);
        let mut add = |kind, flushed: usize, end: usize| {
            if end >= from && self.entries[flushed..end].iter().any(Entry::writes) {
                points.push(Point { kind, flushed, end });
            }
        };
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.flushes {
                add(PointKind::Flush, flushed, index);
                flushed = index;
            }
            if entry.is_fua && entry.writes() {
                add(PointKind::Fua, flushed, index + 1);
            }
        }
        add(PointKind::End, flushed, self.entries.len());
        // A write with FUA at the end of the log is a point of its own.
        points.dedup_by_key(|point| (point.flushed, point.end));
        points
    }

    /// Returns the writes that may be lost at a point, by index, oldest first.
    pub fn at_risk(&self, point: &Point) -> Vec<usize> {
        let is_last = |index: usize| point.kind == PointKind::Fua && index + 1 == point.end;
        let may_be_lost = |index: &usize| {
            let entry = &self.entries[*index];
            entry.writes() && (!entry.is_fua || is_last(*index))
        };
        (point.flushed..point.end).filter(may_be_lost).collect()
    }

    /// Returns the text of the last mark before a point.
    pub fn mark_before(&self, point: &Point) -> Option<&str> {
        self.entries[..point.end].iter().rev().find_map(|entry| entry.mark.as_deref())
    }
}

/// Reads an entry from its sector.
fn entry_of(number: u64, sector: &[u8], data_at: u64) -> Result<Entry, LogError> {
    let impossible = |why| LogError::Impossible { entry: number, why };
    let (first, count, flags, mark_bytes) = (word(sector, 0), word(sector, 8), word(sector, 16), word(sector, 24));
    if flags & !(FLUSH | FUA | DISCARD | MARK | METADATA) != 0 {
        return Err(impossible("it has an unknown flag"));
    }
    let mark = if flags & MARK != 0 {
        let text = usize::try_from(mark_bytes).ok().and_then(|length| sector[HEAD_BYTES..].get(..length));
        let text = text.ok_or_else(|| impossible("its mark is longer than its sector"))?;
        Some(String::from_utf8_lossy(text).trim_end_matches(['\0', '\n']).to_owned())
    } else {
        None
    };
    Ok(Entry {
        number,
        sector: first,
        sector_count: count,
        flushes: flags & FLUSH != 0,
        is_fua: flags & FUA != 0,
        is_discard: flags & DISCARD != 0,
        mark,
        data_at,
    })
}

/// Writes a log.
#[derive(Debug)]
pub struct LogWriter<W> {
    file: W,
    sector_bytes: u32,
    count: u64,
}

impl<W: Write + Seek> LogWriter<W> {
    /// Begins a log in an empty file.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(mut file: W, sector_bytes: u32) -> io::Result<Self> {
        file.seek(SeekFrom::Start(u64::from(sector_bytes)))?;
        let mut writer = Self { file, sector_bytes, count: 0 };
        writer.write_head()?;
        Ok(writer)
    }

    /// Appends a write; `data` are whole sectors.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn write(&mut self, sector: u64, data: &[u8], is_fua: bool) -> io::Result<()> {
        let sector_count = data.len() as u64 / u64::from(self.sector_bytes);
        self.entry(sector, sector_count, if is_fua { FUA } else { 0 }, b"")?;
        self.file.write_all(data)
    }

    /// Appends a flush.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn flush(&mut self) -> io::Result<()> {
        self.entry(0, 0, FLUSH, b"")
    }

    /// Appends a discard.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn discard(&mut self, sector: u64, sector_count: u64) -> io::Result<()> {
        self.entry(sector, sector_count, DISCARD, b"")
    }

    /// Appends a mark; text that does not fit in a sector is cut off.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn mark(&mut self, text: &str) -> io::Result<()> {
        let room = self.sector_bytes as usize - HEAD_BYTES;
        self.entry(0, 0, MARK, &text.as_bytes()[..text.len().min(room)])
    }

    /// Writes the number of entries into the head, and returns the file. The number is what a reader takes.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_head()?;
        Ok(self.file)
    }

    /// Writes the number of entries into the head, so that a reader takes those so far.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn write_head(&mut self) -> io::Result<()> {
        let end = self.file.stream_position()?;
        let mut head = vec![0; self.sector_bytes as usize];
        for (at, value) in [(0, MAGIC), (8, VERSION), (16, self.count)] {
            head[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        head[24..28].copy_from_slice(&self.sector_bytes.to_le_bytes());
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head)?;
        self.file.seek(SeekFrom::Start(end)).map(drop)
    }

    fn entry(&mut self, sector: u64, sector_count: u64, flags: u64, mark: &[u8]) -> io::Result<()> {
        let mut bytes = vec![0; self.sector_bytes as usize];
        for (at, value) in [sector, sector_count, flags, mark.len() as u64].into_iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes[HEAD_BYTES..HEAD_BYTES + mark.len()].copy_from_slice(mark);
        self.count += 1;
        self.file.write_all(&bytes)
    }
}
