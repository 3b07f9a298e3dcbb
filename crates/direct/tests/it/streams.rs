//! `DirectReader` and `DirectWriter` on every available kind of filesystem. *(Linux)*
//!
//! Goal: what is written in any pieces at any positions is in the file, which is as long as the data; what is read
//! in any pieces is what the file holds; an error is returned by a call or stops the program, and is never lost.
//! Method: pieces whose lengths and positions lie around multiples of a sector, through buffers of one block and more,
//! next to a `Vec`. Errors come from a full filesystem and from a file that cannot be read.
//!
//! Needs root, `losetup` and `mkfs.*` for the other filesystems; prints why a part is skipped otherwise.
#![cfg(target_os = "linux")]

use crate::support;

use crate::support::{Mount, around_sectors, loop_of, on_each_filesystem, skip};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::io::{BufRead, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use trueio_direct::{AlignedBuffer, DirectFile, DirectReader, DirectWriter, OpenOptions, Policy};

fn options() -> OpenOptions {
    OpenOptions::new().read(true).write(true).policy(Policy::Prefer)
}

fn new_file(folder: &Path) -> DirectFile {
    let path = folder.join("data");
    let _ = std::fs::remove_file(&path);
    options().create_new(true).open(&path).unwrap()
}

/// One write: where, how much, and whether it is followed by a flush.
type Piece = (usize, usize, bool);

/// Writes the pieces through a writer with this capacity and into the model.
fn write(file: DirectFile, model: &mut Vec<u8>, capacity: usize, pieces: &[Piece]) -> DirectFile {
    let mut writer = DirectWriter::with_capacity(capacity, file).unwrap();
    for (number, (offset, length, is_flushed)) in pieces.iter().enumerate() {
        let data: Vec<u8> = (0..*length).map(|index| (index % 251 + number) as u8 | 1).collect();
        writer.seek(SeekFrom::Start(*offset as u64)).unwrap();
        writer.write_all(&data).unwrap();
        assert_eq!(writer.stream_position().unwrap(), (offset + length) as u64);
        if !data.is_empty() {
            model.resize(model.len().max(offset + length), 0);
            model[*offset..offset + length].copy_from_slice(&data);
        }
        if *is_flushed {
            writer.flush().unwrap();
            assert_eq!((writer.unwritten_bytes(), writer.file().size().unwrap()), (0, model.len() as u64));
        }
        assert_eq!(writer.seek(SeekFrom::End(0)).unwrap(), model.len() as u64);
    }
    writer.finish().unwrap()
}

fn assert_reads(file: DirectFile, model: &[u8], capacity: usize, parts: &[(usize, usize)]) {
    let mut reader = DirectReader::with_capacity(capacity, file).unwrap();
    let mut whole = Vec::new();
    reader.read_to_end(&mut whole).unwrap();
    assert!(whole == model, "the stream differs from the model");
    for (offset, length) in parts {
        reader.seek(SeekFrom::Start(*offset as u64)).unwrap();
        let mut part = AlignedBuffer::new((*length).max(1), 4096).unwrap();
        let mut done = 0;
        while done < part.len() {
            match reader.read(&mut part[done..]).unwrap() {
                0 => break,
                bytes => done += bytes,
            }
        }
        let expected = model.get(*offset..(offset + part.len()).min(model.len())).unwrap_or_default();
        assert!(part[..done] == *expected, "{length} bytes at {offset}");
    }
}

fn assert_streams(folder: &Path, cases: u32) {
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..Default::default() });
    let pieces = prop::collection::vec((around_sectors(40), around_sectors(40), any::<bool>()), 1..7);
    let parts = prop::collection::vec((around_sectors(40), around_sectors(40)), 4);
    let capacity = prop::sample::select(vec![1, 4096, 10_000, 65_536]);
    runner
        .run(&(pieces, parts, capacity), |(pieces, parts, capacity)| {
            let mut model = Vec::new();
            let file = write(new_file(folder), &mut model, capacity, &pieces);
            assert_eq!(file.size().unwrap(), model.len() as u64);
            assert!(std::fs::read(folder.join("data")).unwrap() == model, "the file differs from the model");
            assert_reads(file, &model, capacity, &parts);
            Ok(())
        })
        .unwrap();
}

#[test]
fn streams_hold_what_is_written() {
    assert_streams(support::folder().path(), 64);
}

#[test]
fn streams_hold_what_is_written_on_every_filesystem() {
    on_each_filesystem(|folder| assert_streams(folder, 16));
}

/// Goal: a disk keeps its other bytes when parts of sectors are written, and streams end at its capacity.
#[test]
fn streams_change_parts_of_a_disks_sectors() {
    for sector in [512, 4096] {
        let below = match loop_of(64 * 1024, sector) {
            Ok(below) => below,
            Err(reason) => return skip("loop", &reason),
        };
        let mut model: Vec<u8> = (0..64 * 1024).map(|index| (index % 253) as u8).collect();
        std::fs::write(below.path(), &model).unwrap();
        let pieces =
            [(100, 300, false), (4095, 4098, true), (0, 512, false), (65_000, 536, false), (9000, 9000, false)];
        let file = write(options().open(below.path()).unwrap(), &mut model, 8192, &pieces);
        assert_reads(file, &model, 8192, &[(0, 700), (4000, 5000), (65_535, 10), (65_536, 10)]);
        let mut writer = DirectWriter::new(options().open(below.path()).unwrap()).unwrap();
        writer.seek(SeekFrom::Start(64 * 1024)).unwrap();
        writer.write_all(b"beyond").unwrap();
        assert!(writer.finish().is_err(), "a write beyond the last sector");
    }
}

#[test]
fn a_file_written_from_its_start_need_not_be_readable() {
    let folder = support::folder();
    let path = folder.path().join("data");
    let file = OpenOptions::new().write(true).create_new(true).policy(Policy::Prefer).open(&path).unwrap();
    let mut writer = DirectWriter::with_capacity(4096, file).unwrap();
    for _ in 0..1000 {
        writer.write_all(b"thirteen byte").unwrap();
        writer.flush().unwrap();
    }
    assert_eq!(writer.finish().unwrap().size().unwrap(), 13_000);
    assert!(std::fs::read(&path).unwrap().chunks(13).all(|record| record == b"thirteen byte"));
}

#[test]
fn a_block_of_a_disk_that_is_changed_in_part_needs_a_readable_disk() {
    let below = match loop_of(64 * 1024, 512) {
        Ok(below) => below,
        Err(reason) => return skip("loop", &reason),
    };
    std::fs::write(below.path(), [7; 64 * 1024]).unwrap();
    let disk = OpenOptions::new().write(true).open(below.path()).unwrap();
    let mut writer = DirectWriter::new(disk).unwrap();
    writer.seek(SeekFrom::Start(100)).unwrap();
    writer.write_all(b"changed").unwrap();
    let failed = writer.finish().unwrap_err();
    assert!(failed.error().to_string().starts_with("reading"), "{}", failed.error());
    assert_eq!(failed.into_writer().unwritten_bytes(), 7, "the data is still there");
    assert_eq!(std::fs::read(below.path()).unwrap(), [7; 64 * 1024]);
}

/// Goal: bytes that were written and then changed by another writer are not written again.
#[test]
fn a_writer_writes_no_byte_twice() {
    let folder = support::folder();
    let mut writer = DirectWriter::new(new_file(folder.path())).unwrap();
    writer.write_all(&[1; 100]).unwrap();
    writer.flush().unwrap();
    writer.seek(SeekFrom::Start(10)).unwrap();
    writer.write_all(&[2; 5]).unwrap();
    let other = std::fs::File::options().write(true).open(folder.path().join("data")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&other, &[3; 20], 40).unwrap();
    writer.seek(SeekFrom::Start(90)).unwrap();
    writer.write_all(&[4; 5]).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(folder.path().join("data")).unwrap();
    assert_eq!((bytes[9], bytes[12], bytes[15], bytes[92], bytes.len()), (1, 2, 1, 4, 100));
    assert_eq!(bytes[40..60], [3; 20]);
}

#[test]
fn an_error_of_the_last_block_is_returned_by_finish_and_never_panics_on_drop() {
    let mount = match Mount::create("tmpfs", "tmpfs", "size=64k") {
        Ok(mount) => mount,
        Err(reason) => return skip("mount", &reason),
    };
    let full = || {
        let mut writer = DirectWriter::new(new_file(&mount.path)).unwrap();
        writer.write_all(&[1; 512 * 1024]).unwrap();
        writer
    };
    let failed = full().finish().unwrap_err();
    assert_eq!(failed.error().kind(), ErrorKind::StorageFull);
    assert_eq!(failed.to_string(), "the last 524288 bytes could not be written");
    // Returned already, so dropping the writer again is silent.
    drop(failed.into_writer());
    assert_eq!(full().flush().unwrap_err().kind(), ErrorKind::StorageFull);
    // A destructor has no way to return the error.
    drop(full());
}

#[test]
fn a_dropped_writer_writes_what_is_buffered() {
    let folder = support::folder();
    let mut writer = DirectWriter::new(new_file(folder.path())).unwrap();
    writer.write_all(b"buffered").unwrap();
    drop(writer);
    assert_eq!(std::fs::read(folder.path().join("data")).unwrap(), b"buffered");
}

#[test]
fn a_reader_goes_on_where_a_file_grew() {
    let folder = support::folder();
    let file = write(new_file(folder.path()), &mut Vec::new(), 1, &[(0, 1000, false)]);
    let mut reader = DirectReader::new(options().open(folder.path().join("data")).unwrap()).unwrap();
    assert_eq!(reader.by_ref().bytes().count(), 1000);
    assert!(reader.fill_buf().unwrap().is_empty());
    write(file, &mut vec![0; 1000], 1, &[(1000, 77, false)]);
    assert_eq!(reader.by_ref().bytes().count(), 77);
}

#[test]
fn positions_before_the_start_and_beyond_the_largest_offset_are_refused() {
    let folder = support::folder();
    let mut writer = DirectWriter::new(new_file(folder.path())).unwrap();
    for target in [SeekFrom::Current(-1), SeekFrom::End(-1), SeekFrom::Start(1 << 63)] {
        assert_eq!(writer.seek(target).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    writer.seek(SeekFrom::Start(i64::MAX as u64)).unwrap();
    assert_eq!(writer.write(&[1]).unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut reader = DirectReader::new(writer.finish().unwrap()).unwrap();
    reader.seek(SeekFrom::Start(i64::MAX as u64)).unwrap();
    assert_eq!(reader.read(&mut [0; 10]).unwrap(), 0);
}
