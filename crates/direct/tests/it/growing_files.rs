//! Reads of a file that another writer makes longer. *(Linux)*
//!
//! Goal: a read at the end of a growing file returns what the file holds at the time of the call, and never an error.
//! Method: a thread appends records of odd lengths while others read the tail, the whole file, and a stream. Which
//! read meets an append is up to the scheduler; unit tests of `transfer.rs` stage each order.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions as PlainOptions;
use std::io::{IoSliceMut, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use trueio_direct::{AlignedBuffer, DirectReader, OpenOptions, Policy, TransferError, read_unaligned_by_copy_at};
use trueio_testkit::folder;

const BLOCK: usize = 4096;
/// The log has at most this many bytes.
const LOG_BYTES: usize = 1 << 20;
const RECORD_BYTES: usize = 97;

fn byte(position: usize) -> u8 {
    (position % 251) as u8 + 1
}

fn assert_bytes(bytes: &[u8], from: usize) {
    let wrong = bytes.iter().enumerate().find(|(index, found)| **found != byte(from + index));
    assert!(wrong.is_none(), "{wrong:?} of {} bytes read from {from}", bytes.len());
}

#[test]
fn reads_of_a_growing_file_are_short_only_at_its_end() {
    let folder = folder();
    let path = folder.path().join("log");
    let whole: Vec<u8> = (0..LOG_BYTES).map(byte).collect();
    std::fs::write(&path, &whole[..10]).unwrap();
    let is_complete = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = PlainOptions::new().append(true).open(&path).unwrap();
            for record in whole[10..].chunks(RECORD_BYTES) {
                log.write_all(record).unwrap();
                std::thread::yield_now();
            }
            is_complete.store(true, Ordering::Relaxed);
        });
        let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path).unwrap();
        let mut buffer = AlignedBuffer::new(16 * BLOCK, BLOCK).unwrap();
        let mut known = 0;
        while !is_complete.load(Ordering::Relaxed) {
            // The tail, from the block in which the last read ended.
            let (least, start) = (file.size().unwrap() as usize, known / BLOCK * BLOCK);
            let read = file.read_at(&mut buffer, start as u64).unwrap().bytes;
            assert_bytes(&buffer[..read], start);
            assert!(start + read >= least.min(start + buffer.len()), "shorter than the file was before the call");
            known = start + read;

            let (one, other) = buffer.split_at_mut(BLOCK);
            let least = file.size().unwrap() as usize;
            let start = least.saturating_sub(2 * BLOCK) / BLOCK * BLOCK;
            let mut parts = [IoSliceMut::new(one), IoSliceMut::new(other)];
            let read = file.read_vectored_at(&mut parts, start as u64).unwrap().bytes;
            assert_bytes(&buffer[..read], start);
            assert!(start + read >= least, "shorter than the file was before the call");

            let mut tail = [0; 300];
            let start = least.saturating_sub(7);
            match read_unaligned_by_copy_at(&file, &mut tail, start as u64) {
                Ok(_) => assert_bytes(&tail, start),
                Err(TransferError::EndOfFile { done, .. }) => {
                    assert!(done >= least - start);
                    assert_bytes(&tail[..done], start);
                }
                Err(error) => panic!("{error:?}"),
            }

            let again = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path).unwrap();
            let mut stream = DirectReader::with_capacity(BLOCK, again).unwrap();
            let mut read = Vec::new();
            stream.read_to_end(&mut read).unwrap();
            assert!(read.len() >= least);
            assert_bytes(&read, 0);
        }
    });
    let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path).unwrap();
    let mut read = AlignedBuffer::new(LOG_BYTES, BLOCK).unwrap();
    file.read_exact_at(&mut read, 0).unwrap();
    assert_bytes(&read, 0);
}
