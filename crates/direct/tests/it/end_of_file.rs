//! The end of a file, on every available kind of filesystem. *(Linux)*
//!
//! Goal: a read stops at the end of the file, also within a sector, and reports the number of bytes.
//! Method: files whose lengths lie around multiples of a sector, read at every aligned offset around their end into
//! aligned buffers, one and several; the result is compared with the bytes that were written.
//!
//! Needs root, `losetup` and `mkfs.*` except for the first test; prints why a part is skipped otherwise.
#![cfg(target_os = "linux")]

use crate::support;

use crate::support::{loop_of, on_each_filesystem, skip};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::Path;
use trueio_direct::{AlignedBuffer, DirectFile, OpenOptions, Policy, TransferError};

const MIB: u64 = 1 << 20;
const BLOCK: usize = 4096;

fn byte(position: usize) -> u8 {
    (position % 251) as u8 + 1
}

fn file_of(folder: &Path, length: usize) -> DirectFile {
    let path = folder.join("data");
    std::fs::write(&path, (0..length).map(byte).collect::<Vec<u8>>()).unwrap();
    // Out of the cache, so that the reads are direct where they can be.
    File::open(&path).and_then(|file| file.sync_all()).unwrap();
    OpenOptions::new().read(true).policy(Policy::Prefer).open(&path).unwrap()
}

/// Reads `blocks` blocks at block `first` in four ways and compares each with the model.
fn assert_reads(file: &DirectFile, length: usize, first: usize, blocks: usize) {
    let (offset, wanted) = (first * BLOCK, blocks * BLOCK);
    let expected: Vec<u8> = (offset..(offset + wanted).min(length)).map(byte).collect();
    let mut buffer = AlignedBuffer::new(wanted, BLOCK).unwrap();

    let read = file.read_at(&mut buffer, offset as u64).unwrap();
    assert_eq!(read.bytes, expected.len(), "{length} bytes, read from {offset}");
    assert!(buffer[..read.bytes] == expected);

    buffer.fill(0);
    match file.read_exact_at(&mut buffer, offset as u64) {
        Ok(read) => assert_eq!((read.bytes, expected.len()), (wanted, wanted)),
        Err(TransferError::EndOfFile { offset: at, wanted: all, done }) => {
            assert_eq!((at, all, done), (offset as u64, wanted, expected.len()));
            assert!(done < wanted);
        }
        Err(error) => panic!("{length} bytes, read from {offset}: {error:?}"),
    }
    assert!(buffer[..expected.len()] == expected);

    let mut halves = [AlignedBuffer::new(BLOCK, BLOCK).unwrap(), AlignedBuffer::new(wanted, BLOCK).unwrap()];
    let [one, other] = &mut halves;
    let mut parts = [IoSliceMut::new(one), IoSliceMut::new(other)];
    let read = file.read_vectored_at(&mut parts, offset as u64).unwrap();
    let expected: Vec<u8> = (offset..(offset + BLOCK + wanted).min(length)).map(byte).collect();
    assert_eq!(read.bytes, expected.len());
    let whole = [&*halves[0], &*halves[1]].concat();
    assert!(whole[..read.bytes] == expected);
}

/// Lengths around multiples of 512 and 4096 bytes, and offsets around the end.
fn assert_ends(folder: &Path) {
    let around = (0..24usize, -2..=2i64).prop_map(|(sectors, more)| (sectors as i64 * 512 + more).max(0) as usize);
    let mut runner = TestRunner::new(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() });
    runner
        .run(&(around, 0..5usize, 1..4usize), |(length, first, blocks)| {
            let file = file_of(folder, length);
            assert_reads(&file, length, first, blocks);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_file_of_1000_bytes_ends_after_1000_bytes() {
    let folder = support::folder();
    let file = file_of(folder.path(), 1000);
    let mut buffer = AlignedBuffer::new(4096, 4096).unwrap();
    let error = file.read_exact_at(&mut buffer, 0).unwrap_err();
    assert!(matches!(error, TransferError::EndOfFile { offset: 0, wanted: 4096, done: 1000 }), "{error:?}");
    assert_eq!(file.read_at(&mut buffer, 0).unwrap().bytes, 1000);
    assert_eq!(file.read_at(&mut buffer, 4096).unwrap().bytes, 0);
    assert_eq!(file.size().unwrap(), 1000);
    assert_ends(folder.path());
}

#[test]
fn every_filesystem_ends_where_its_file_does() {
    on_each_filesystem(assert_ends);
}

#[test]
fn a_disk_ends_after_its_last_sector() {
    for sector in [512, 4096] {
        let below = match loop_of(MIB + u64::from(sector), sector) {
            Ok(below) => below,
            Err(reason) => return skip("loop", &reason),
        };
        let length = MIB as usize + sector as usize;
        let bytes: Vec<u8> = (0..length).map(byte).collect();
        let raw = File::options().write(true).open(below.path()).unwrap();
        raw.write_all_at(&bytes, 0).unwrap();
        raw.sync_all().unwrap();
        let file = OpenOptions::new().read(true).open(below.path()).unwrap();
        assert_eq!(file.size().unwrap(), length as u64);
        let last = MIB as usize / BLOCK;
        for (first, blocks) in [(last - 2, 2), (last - 1, 3), (last, 1), (last + 1, 1)] {
            assert_reads(&file, length, first, blocks);
        }
    }
}

#[test]
fn vectored_writes_write_all_buffers_in_order() {
    let folder = support::folder();
    let path = folder.path().join("data");
    let options = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer);
    let file = options.open(&path).unwrap();
    let mut buffers: Vec<AlignedBuffer> = (0..3000).map(|_| AlignedBuffer::new(4096, 4096).unwrap()).collect();
    for (index, buffer) in buffers.iter_mut().enumerate() {
        buffer.fill(byte(index));
    }
    let mut parts: Vec<IoSlice> = buffers.iter().map(|buffer| IoSlice::new(buffer)).collect();
    let written = file.write_vectored_at(&mut parts, 8192).unwrap();
    assert_eq!((written.bytes, written.calls), (3000 * 4096, 3), "1,024 buffers a call");
    let back = std::fs::read(&path).unwrap();
    assert!(back[..8192].iter().all(|byte| *byte == 0));
    assert!(back[8192..].chunks(4096).enumerate().all(|(index, block)| block.iter().all(|b| *b == byte(index))));
    assert_eq!(file.write_vectored_at(&mut [], 0).unwrap().bytes, 0);
}
