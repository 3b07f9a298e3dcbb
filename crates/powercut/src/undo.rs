//! The journal: what blocks held before they were written, so that they can be written back, also after a kill.
//!
//! | bytes | content |
//! |---|---|
//! | 0..24 | `trueio-capacity-undo-1` and two line feeds |
//! | 24..28 | length of the head |
//! | … | the head: JSON |
//! | for each record: 0..8 | the first block |
//! | 8..16 | the number of blocks |
//! | 16..24 | XXH3 of the fields before, and of the blocks |
//! | … | the blocks |
//!
//! Integers are little-endian. A record is durable before its blocks are written, so an incomplete one at the end belongs to
//! blocks that were not written, and is left out. Records are written back last first: on a disk that wraps, what a later record
//! holds may be a test block in the place of an earlier one.

use crate::examine::{Disk, Keeper};
use crate::layout::Extent;
use crate::sector::BLOCK_BYTES;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom, Write};
use twox_hash::XxHash3_64;

const MAGIC: &[u8; 24] = b"trueio-capacity-undo-1\n\n";
const RECORD_HEAD_BYTES: usize = 24;
const HEAD_BYTES_MAX: usize = 1 << 20;
/// Blocks of a record; a longer one is damaged.
const RECORD_BLOCKS_MAX: u64 = 256;

/// Which disk it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskIdentity {
    /// Size, in bytes.
    pub size_bytes: u64,
    /// Model, if it is known.
    pub model: Option<String>,
    /// Serial number, if it is known.
    pub serial: Option<String>,
    /// World-wide identifier, if it is known.
    pub wwid: Option<String>,
    /// Inode, if the target is a file.
    pub inode: Option<u64>,
}

/// What a journal states about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalHead {
    /// The path of the disk when it was tested.
    pub path: String,
    /// The disk.
    pub disk: DiskIdentity,
    /// The number of the run that wrote test blocks.
    pub run: u64,
    /// Signatures on the disk before the test.
    pub signatures: Vec<String>,
}

/// A journal that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file is something else, or its head is damaged.
    #[error("it is not a journal of `trueio capacity`")]
    NotAJournal,
    /// Reading it failed.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
    /// A record differs from its checksum.
    #[error("it is damaged at byte {offset}")]
    Damaged {
        /// Where the record begins.
        offset: u64,
    },
    /// The disk did not flush its cache.
    #[error("the disk did not flush its cache")]
    Flush(#[source] io::Error),
}

/// A file that can be made durable.
pub trait Durable: Write {
    /// Makes everything that was written durable.
    ///
    /// # Errors
    /// The kernel's error.
    fn make_durable(&mut self) -> io::Result<()>;
}

impl Durable for std::fs::File {
    fn make_durable(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Writes a journal.
#[derive(Debug)]
pub struct Journal<W> {
    file: W,
}

impl<W: Durable> Journal<W> {
    /// Begins a journal in an empty file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(mut file: W, head: &JournalHead) -> io::Result<Self> {
        let head = serde_json::to_vec(head)?;
        file.write_all(MAGIC)?;
        file.write_all(&(head.len() as u32).to_le_bytes())?;
        file.write_all(&head)?;
        file.make_durable()?;
        Ok(Self { file })
    }

    /// Returns the file.
    pub fn into_file(self) -> W {
        self.file
    }
}

impl<W: Durable> Keeper for Journal<W> {
    fn keep(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        let mut head = [0; RECORD_HEAD_BYTES];
        head[..8].copy_from_slice(&block.to_le_bytes());
        head[8..16].copy_from_slice(&((data.len() / BLOCK_BYTES) as u64).to_le_bytes());
        let hash = hash_of(&head[..16], data);
        head[16..].copy_from_slice(&hash.to_le_bytes());
        self.file.write_all(&head)?;
        self.file.write_all(data)
    }

    fn commit(&mut self) -> io::Result<()> {
        self.file.make_durable()
    }
}

fn hash_of(fields: &[u8], data: &[u8]) -> u64 {
    let mut hash = XxHash3_64::new();
    hash.write(fields);
    hash.write(data);
    hash.finish()
}

/// Reads the head of a journal.
///
/// # Errors
/// As [`JournalError`].
pub fn read_head(file: &mut impl Read) -> Result<JournalHead, JournalError> {
    let mut begin = [0; MAGIC.len() + 4];
    file.read_exact(&mut begin).map_err(|_| JournalError::NotAJournal)?;
    let length = u32::from_le_bytes(begin[MAGIC.len()..].try_into().expect("four bytes")) as usize;
    if begin[..MAGIC.len()] != *MAGIC || length > HEAD_BYTES_MAX {
        return Err(JournalError::NotAJournal);
    }
    let mut head = vec![0; length];
    file.read_exact(&mut head).map_err(|_| JournalError::NotAJournal)?;
    serde_json::from_slice(&head).map_err(|_| JournalError::NotAJournal)
}

/// Blocks that were written back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// Blocks that were written back.
    pub block_count: u64,
    /// Blocks that could not be written.
    pub failed_count: u64,
}

/// Writes all blocks of a journal back, the last record first, and flushes the disk's cache. `progress` gets the blocks that are
/// done, and all.
///
/// # Errors
/// As [`JournalError`]. Records are examined before anything is written.
pub fn restore(
    file: &mut (impl Read + Seek),
    disk: &mut dyn Disk,
    mut progress: impl FnMut(u64, u64),
) -> Result<Restored, JournalError> {
    let records = records(file)?;
    let total = records.iter().map(|(_, extent)| extent.count).sum();
    let mut restored = Restored::default();
    let mut data = Vec::new();
    for (offset, extent) in records.into_iter().rev() {
        read_blocks(file, offset, extent, &mut data)?;
        if disk.write(extent.start, &data).is_ok() {
            restored.block_count += extent.count;
        } else {
            for (block, content) in (extent.start..).zip(data.chunks_exact(BLOCK_BYTES)) {
                match disk.write(block, content) {
                    Ok(()) => restored.block_count += 1,
                    Err(_) => restored.failed_count += 1,
                }
            }
        }
        progress(restored.block_count + restored.failed_count, total);
    }
    disk.flush().map_err(JournalError::Flush)?;
    Ok(restored)
}

/// Returns the records with their offsets, oldest first, without an incomplete one at the end.
fn records(file: &mut (impl Read + Seek)) -> Result<Vec<(u64, Extent)>, JournalError> {
    let end = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let disk_blocks = read_head(file)?.disk.size_bytes / BLOCK_BYTES as u64;
    let (mut offset, mut records, mut data) = (file.stream_position()?, Vec::new(), Vec::new());
    while end - offset >= RECORD_HEAD_BYTES as u64 {
        let mut fields = [0; 16];
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut fields)?;
        let field = |from: usize| u64::from_le_bytes(fields[from..from + 8].try_into().expect("eight bytes"));
        let extent = Extent { start: field(0), count: field(8) };
        let is_last = |count: u64| end - offset <= RECORD_HEAD_BYTES as u64 + count * BLOCK_BYTES as u64;
        if extent.count == 0 || extent.count > RECORD_BLOCKS_MAX {
            // A kill of the machine may leave zeros at the end of a file.
            return if is_last(RECORD_BLOCKS_MAX) { Ok(records) } else { Err(JournalError::Damaged { offset }) };
        }
        let length = RECORD_HEAD_BYTES as u64 + extent.count * BLOCK_BYTES as u64;
        if end - offset < length {
            break;
        }
        match read_blocks(file, offset, extent, &mut data) {
            Err(JournalError::Damaged { .. }) if is_last(extent.count) => break,
            result => result?,
        }
        // No test writes beyond the disk.
        if extent.start.checked_add(extent.count).is_none_or(|end| end > disk_blocks) {
            return Err(JournalError::Damaged { offset });
        }
        records.push((offset, extent));
        offset += length;
    }
    Ok(records)
}

/// Reads the blocks of the record at `offset`.
fn read_blocks(
    file: &mut (impl Read + Seek),
    offset: u64,
    extent: Extent,
    data: &mut Vec<u8>,
) -> Result<(), JournalError> {
    let mut head = [0; RECORD_HEAD_BYTES];
    data.resize(extent.count as usize * BLOCK_BYTES, 0);
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut head)?;
    file.read_exact(data)?;
    let hash = u64::from_le_bytes(head[16..].try_into().expect("eight bytes"));
    if hash == hash_of(&head[..16], data) { Ok(()) } else { Err(JournalError::Damaged { offset }) }
}
