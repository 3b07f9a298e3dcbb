//! Reads the partition tables on a disk.
//!
//! The kernel may not list these partitions: loop devices are not scanned by default, and a kernel may lack the parser
//! of a table. Two tables are read: MBR with its chain of extended partitions, and GPT with its copy at the end.
//! Checksums are not compared: a partly overwritten table still shows where data is.
//!
//! Cannot see: partitions of other tables (`bsd`, `mac`, `sgi`, `sun`), each of which is a signature of its own;
//! partitions whose entry was removed.
//!
//! Source: UEFI specification 2.10, section 5 (GPT, legacy MBR); util-linux `libblkid/src/partitions/dos.c`.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// The maximum number of entries read from one table: more than any tool creates.
const ENTRIES_MAX: u32 = 1024;
/// The largest accepted size of a GPT entry, in bytes.
const ENTRY_BYTES_MAX: u32 = 4096;
/// MBR types of extended partitions.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// The MBR type of the protective entry on a GPT disk, which covers the whole disk.
const PROTECTIVE: u8 = 0xee;

/// Returns the partitions of a disk, in bytes, sorted; empty if it has no table. `sector_bytes` is the disk's logical
/// sector, the unit of the MBR.
///
/// # Errors
/// The disk cannot be read. A table that points beyond the end is not an error.
pub(crate) fn partitions(disk: &mut (impl Read + Seek), sector_bytes: u64) -> io::Result<Vec<Range<u64>>> {
    let size_bytes = disk.seek(SeekFrom::End(0))?;
    let mut found = BTreeSet::new();
    for sector_bytes in [512, 4096] {
        let last = (size_bytes / sector_bytes).saturating_sub(1);
        for header_sector in [1, last] {
            add_gpt(disk, size_bytes, (sector_bytes, header_sector), &mut found)?;
        }
    }
    add_dos(disk, size_bytes, sector_bytes, &mut found)?;
    Ok(found.into_iter().map(|(begin, end)| begin..end).collect())
}

/// Reads at most `length` bytes from `offset`; less at the end of the disk.
fn read(disk: &mut (impl Read + Seek), offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    disk.seek(SeekFrom::Start(offset))?;
    disk.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
}

fn short_number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes were taken")))
}

/// Adds sectors `first..end`, cut off at the end of the disk.
fn add(found: &mut BTreeSet<(u64, u64)>, size_bytes: u64, sector_bytes: u64, first: u64, end: u64) {
    let begin = first.saturating_mul(sector_bytes);
    let end = end.saturating_mul(sector_bytes).min(size_bytes);
    if first > 0 && begin < end {
        found.insert((begin, end));
    }
}

/// Adds the partitions of the GPT whose header is in this sector.
fn add_gpt(
    disk: &mut (impl Read + Seek),
    size_bytes: u64,
    (sector_bytes, header_sector): (u64, u64),
    found: &mut BTreeSet<(u64, u64)>,
) -> io::Result<()> {
    let header = read(disk, header_sector * sector_bytes, 92)?;
    if !header.starts_with(b"EFI PART") {
        return Ok(());
    }
    let (table, count, entry_bytes) = (number(&header, 72), short_number(&header, 80), short_number(&header, 84));
    let (count, table) = (count.min(ENTRIES_MAX), table.saturating_mul(sector_bytes));
    if !(56..=ENTRY_BYTES_MAX).contains(&entry_bytes) || table >= size_bytes {
        return Ok(());
    }
    let entries = read(disk, table, u64::from(count) * u64::from(entry_bytes))?;
    for entry in entries.chunks_exact(entry_bytes as usize).filter(|entry| entry[..16] != [0; 16]) {
        let (first, last) = (number(entry, 32), number(entry, 40));
        add(found, size_bytes, sector_bytes, first, last.saturating_add(1));
    }
    Ok(())
}

/// Adds the partitions of the MBR, including those in extended partitions.
fn add_dos(
    disk: &mut (impl Read + Seek),
    size_bytes: u64,
    sector_bytes: u64,
    found: &mut BTreeSet<(u64, u64)>,
) -> io::Result<()> {
    for entry in dos_entries(disk, 0)? {
        match entry.kind {
            PROTECTIVE => {}
            kind if EXTENDED.contains(&kind) => add_extended(disk, size_bytes, sector_bytes, entry.first, found)?,
            _ => add(found, size_bytes, sector_bytes, entry.first, entry.first + entry.count),
        }
    }
    Ok(())
}

/// Adds the partitions of a chain of tables: each table has one partition and the position of the next table.
fn add_extended(
    disk: &mut (impl Read + Seek),
    size_bytes: u64,
    sector_bytes: u64,
    begin: u64,
    found: &mut BTreeSet<(u64, u64)>,
) -> io::Result<()> {
    let (mut next, mut seen) = (Some(begin), BTreeSet::new());
    while let Some(table) = next.take().filter(|table| seen.len() < ENTRIES_MAX as usize && seen.insert(*table)) {
        if table.saturating_mul(sector_bytes) >= size_bytes {
            break;
        }
        for entry in dos_entries(disk, table * sector_bytes)? {
            if EXTENDED.contains(&entry.kind) {
                // Relative to the start of the chain.
                next.get_or_insert(begin.saturating_add(entry.first));
            } else {
                let first = table.saturating_add(entry.first);
                add(found, size_bytes, sector_bytes, first, first.saturating_add(entry.count));
            }
        }
    }
    Ok(())
}

/// An entry of the MBR, in sectors.
struct DosEntry {
    kind: u8,
    first: u64,
    count: u64,
}

/// Returns the used entries of a table; empty if the sector has none.
fn dos_entries(disk: &mut (impl Read + Seek), offset: u64) -> io::Result<Vec<DosEntry>> {
    let sector = read(disk, offset, 512)?;
    if sector.get(510..) != Some(b"\x55\xaa") {
        return Ok(Vec::new());
    }
    let entries = sector[446..510].chunks_exact(16).map(|entry| DosEntry {
        kind: entry[4],
        first: u64::from(short_number(entry, 8)),
        count: u64::from(short_number(entry, 12)),
    });
    Ok(entries.filter(|entry| entry.kind != 0 && entry.count > 0).collect())
}

/// A range of a disk that is read like a disk of its own.
#[derive(Debug)]
pub(crate) struct Part<'a, D> {
    disk: &'a mut D,
    range: Range<u64>,
    position: u64,
}

impl<'a, D: Read + Seek> Part<'a, D> {
    pub(crate) fn new(disk: &'a mut D, range: Range<u64>) -> Self {
        Self { disk, range, position: 0 }
    }
}

impl<D: Read + Seek> Read for Part<'_, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = (self.range.end - self.range.start).saturating_sub(self.position);
        let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.disk.seek(SeekFrom::Start(self.range.start + self.position))?;
        let read = self.disk.read(&mut buffer[..length])?;
        self.position += read as u64;
        Ok(read)
    }
}

impl<D: Read + Seek> Seek for Part<'_, D> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let size_bytes = self.range.end - self.range.start;
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => size_bytes.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const SIZE: u64 = 8 << 20;

    /// Writes an MBR at `offset`: (type, first sector, sectors) of up to four entries.
    fn write_table(image: &mut [u8], offset: u64, entries: &[(u8, u32, u32)]) {
        let sector = &mut image[offset as usize..offset as usize + 512];
        for ((kind, first, count), entry) in entries.iter().zip(sector[446..510].chunks_exact_mut(16)) {
            entry[4] = *kind;
            entry[8..12].copy_from_slice(&first.to_le_bytes());
            entry[12..16].copy_from_slice(&count.to_le_bytes());
        }
        sector[510..].copy_from_slice(b"\x55\xaa");
    }

    fn found(image: Vec<u8>, sector_bytes: u64) -> Vec<Range<u64>> {
        partitions(&mut Cursor::new(image), sector_bytes).expect("an image can be read")
    }

    #[test]
    fn primary_and_logical_partitions_of_the_pc_are_found() {
        let mut image = vec![0; SIZE as usize];
        write_table(&mut image, 0, &[(0x83, 64, 16), (0, 0, 0), (0x05, 2048, 8192), (0x07, 100, 4)]);
        write_table(&mut image, 2048 * 512, &[(0x83, 8, 100), (0x05, 1024, 1024)]);
        // The last table of the chain refers to itself.
        write_table(&mut image, 3072 * 512, &[(0x82, 16, 200), (0x05, 1024, 1024)]);
        let sectors = [64..80, 100..104, 2056..2156, 3088..3288];
        let expected: Vec<Range<u64>> = sectors.map(|range| range.start * 512..range.end * 512).into();
        assert_eq!(found(image.clone(), 512), expected);
        // The unit is the disk's sector size; a partition that begins beyond the end is dropped.
        assert_eq!(found(image, 4096), [64 * 4096..80 * 4096, 100 * 4096..104 * 4096]);
    }

    #[test]
    fn either_copy_of_gpt_is_enough_and_its_sectors_may_have_4096_bytes() {
        for (sector_bytes, is_copy) in [(512, false), (512, true), (4096, false), (4096, true)] {
            let mut image = vec![0; SIZE as usize];
            let last = SIZE / sector_bytes - 1;
            let (header, table) = if is_copy { (last, last - 32) } else { (1, 2) };
            let header = (header * sector_bytes) as usize;
            image[header..header + 8].copy_from_slice(b"EFI PART");
            image[header + 72..header + 80].copy_from_slice(&table.to_le_bytes());
            image[header + 80..header + 84].copy_from_slice(&128_u32.to_le_bytes());
            image[header + 84..header + 88].copy_from_slice(&128_u32.to_le_bytes());
            let entry = (table * sector_bytes) as usize + 128;
            image[entry..entry + 16].fill(7);
            image[entry + 32..entry + 40].copy_from_slice(&256_u64.to_le_bytes());
            image[entry + 40..entry + 48].copy_from_slice(&511_u64.to_le_bytes());
            write_table(&mut image, 0, &[(PROTECTIVE, 1, u32::MAX)]);
            let partition = 256 * sector_bytes..512 * sector_bytes;
            assert_eq!(found(image, 512), [partition], "{sector_bytes} {is_copy}");
        }
    }

    #[test]
    fn tables_that_make_no_sense_are_no_error() {
        assert_eq!(found(Vec::new(), 512), []);
        assert_eq!(found(vec![0xff; 4096], 512), []);
        let mut image = vec![0xff; SIZE as usize];
        write_table(&mut image, 0, &[(0x05, u32::MAX, u32::MAX), (0x83, u32::MAX, u32::MAX), (0x83, 0, 7)]);
        for at in [512, 4096] {
            image[at..at + 8].copy_from_slice(b"EFI PART");
        }
        assert_eq!(found(image, 512), []);
    }
}
