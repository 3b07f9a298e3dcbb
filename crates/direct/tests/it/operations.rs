//! Any bytes as calls of the library on one file, held against a plain `Vec<u8>`.
//!
//! The first byte selects how the file is opened; then each operation takes what it needs, until the bytes end. What
//! must hold for all of them: no panic; a misaligned transfer is refused by name and changes nothing; an
//! aligned one gives the model's bytes; a number beyond every file is an error; and in the end the file holds
//! what the model holds.
//!
//! Used by `tests/it/any_calls.rs` (random bytes, on stable), `tests/it/filesystems.rs` (each filesystem) and
//! `fuzz/fuzz_targets/direct_calls.rs` (libFuzzer). The check of alignment is written out again here, from statx(2).
// Each user takes a part of it.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::path::Path;
use trueio_direct::{
    AlignedBuffer, DirectFile, FlushLevel, OpenOptions, Policy, SyncMode, TransferError, evict, preallocate,
    read_unaligned_by_copy_at, residency, write_unaligned_by_read_modify_write_at,
};

/// Transfers begin below this, so that thousands of cases take seconds.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// One transfer is at most this long.
const TRANSFER_BYTES_MAX: usize = 32 << 10;
/// Operations on one file.
const OPERATIONS_MAX: usize = 64;

/// Hands out the bytes; zeros when there are no more.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().map_or((0, self.0), |(byte, rest)| (*byte, rest));
        self.0 = rest;
        byte
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes([0; 8].map(|_: u8| self.byte()))
    }

    /// A number below `end`, aligned in three cases of four: random ones hardly ever are. In half the cases it is
    /// small, so that operations meet in the same blocks and at the end of the file.
    fn below(&mut self, end: u64) -> u64 {
        let kind = self.byte();
        let end = if kind & 4 == 0 { end } else { end.min(10_000) };
        let value = (u64::from(self.byte()) << 16 | u64::from(self.byte()) << 8 | u64::from(self.byte())) % end;
        match kind % 4 {
            0 => value,
            1 => value & !511,
            _ => value & !4095,
        }
    }

    /// Where a transfer begins: anywhere, or a little before the end of the file, which is where mistakes live.
    fn offset(&mut self, model: &[u8]) -> u64 {
        match self.byte() % 4 {
            0 => (model.len() as u64).saturating_sub(u64::from(self.byte()) * 3),
            _ => self.below(FILE_BYTES_MAX - TRANSFER_BYTES_MAX as u64),
        }
    }
}

/// Runs the operations of `input` on a new file in `folder`. Returns their number.
///
/// # Panics
/// If anything is not as the model has it.
pub fn run(input: &[u8], folder: &Path) -> usize {
    let mut source = Source(input);
    let how = source.byte();
    let path = folder.join("calls");
    let options = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .policy(if how & 1 == 0 { Policy::Prefer } else { Policy::Off })
        .sync(match how >> 1 & 7 {
            0 => SyncMode::Dsync,
            1 => SyncMode::Sync,
            _ => SyncMode::None,
        })
        .exclusive(how & 16 != 0);
    let file = options.open(&path).expect("a new file can be had under `Prefer` and `Off`");
    assert!(options.open(&path).is_err(), "an existing file was made anew");
    let mut model: Vec<u8> = Vec::new();
    // Room to begin off a page, and transfers that begin with another byte each.
    let mut memory = AlignedBuffer::new(TRANSFER_BYTES_MAX + 4096, 4096).unwrap();
    let mut operations = 0;
    while !source.0.is_empty() && operations < OPERATIONS_MAX {
        operations += 1;
        let operation = source.byte();
        let skew = source.below(4096) as usize;
        let length = match source.byte() % 4 {
            0 => usize::from(source.byte()),
            _ => source.below(TRANSFER_BYTES_MAX as u64) as usize,
        };
        let buffer = &mut memory[skew..skew + length];
        match operation % 10 {
            0..=2 => {
                fill(buffer, operations);
                let offset = source.offset(&model);
                write(&file, &mut model, buffer, offset);
            }
            3 | 4 => read(&file, &model, buffer, source.offset(&model)),
            5 => {
                fill(buffer, operations);
                let offset = source.offset(&model);
                let done = write_unaligned_by_read_modify_write_at(&file, buffer, offset).unwrap();
                assert_eq!(done.bytes, length);
                change(&mut model, buffer, offset);
            }
            6 => {
                let offset = source.offset(&model);
                let known = known(&model, offset, length);
                match read_unaligned_by_copy_at(&file, buffer, offset) {
                    Ok(done) => assert!(done.bytes == length && known.len() == length),
                    Err(TransferError::EndOfFile { done, .. }) => assert!(done == known.len() && done < length),
                    Err(error) => panic!("{error:?}"),
                }
                assert!(buffer[..known.len()] == *known, "an unaligned read differs from the model");
            }
            7 => match preallocate(file.file(), source.offset(&model), length as u64) {
                Ok(()) => assert!(length > 0, "a reservation of zero bytes was made"),
                Err(error) => assert!(length == 0 || error.kind() == std::io::ErrorKind::Unsupported, "{error}"),
            },
            8 => other_calls(&file, &mut source),
            _ => beyond_every_file(&file, buffer, source.number() | 1 << 63),
        }
        if operation % 10 == 7 {
            // A reservation may be unsupported, so the file's length is read.
            model.resize(file.file().metadata().unwrap().len() as usize, 0);
        }
        assert_eq!(file.file().metadata().unwrap().len(), model.len() as u64, "after operation {operation}");
    }
    // Windows shares no file that is open for one alone.
    drop(file);
    let back = std::fs::read(&path).unwrap();
    assert!(back == model, "the file differs from the model");
    std::fs::remove_file(&path).unwrap();
    operations
}

/// Fills a buffer with bytes that differ by operation and by index.
fn fill(buffer: &mut [u8], operation: usize) {
    buffer.iter_mut().enumerate().for_each(|(index, byte)| *byte = (index % 251) as u8 ^ operation as u8);
}

/// What a plain write does.
fn change(model: &mut Vec<u8>, data: &[u8], offset: u64) {
    if !data.is_empty() {
        let (start, end) = (offset as usize, offset as usize + data.len());
        model.resize(model.len().max(end), 0);
        model[start..end].copy_from_slice(data);
    }
}

/// What of `length` bytes from `offset` is in the model.
fn known(model: &[u8], offset: u64, length: usize) -> &[u8] {
    let rest = model.get(offset as usize..).unwrap_or_default();
    &rest[..rest.len().min(length)]
}

/// Whether direct I/O on this file allows it: statx(2).
fn is_aligned(file: &DirectFile, buffer: &[u8], offset: u64, write: bool) -> bool {
    // A transfer of no bytes is made wherever it is.
    if buffer.is_empty() {
        return true;
    }
    let alignment = file.alignment();
    let unit = u64::from(if write { alignment.write_offset_bytes } else { alignment.read_offset_bytes }.unwrap_or(1));
    let memory = alignment.memory_bytes.unwrap_or(1) as usize;
    buffer.as_ptr().addr() & (memory - 1) == 0
        && buffer.len() as u64 == buffer.len() as u64 / unit * unit
        && offset == offset / unit * unit
}

fn write(file: &DirectFile, model: &mut Vec<u8>, buffer: &[u8], offset: u64) {
    match file.write_all_at(buffer, offset) {
        Ok(done) => {
            assert!(is_aligned(file, buffer, offset, true), "a misaligned write was made");
            assert_eq!(done.bytes, buffer.len());
            change(model, buffer, offset);
        }
        Err(TransferError::Misaligned(wrong)) => {
            assert!(!is_aligned(file, buffer, offset, true), "{wrong}");
            assert!(wrong.write && !wrong.value.is_multiple_of(wrong.needed_bytes.into()));
        }
        Err(error) => panic!("{error:?}"),
    }
}

fn read(file: &DirectFile, model: &[u8], buffer: &mut [u8], offset: u64) {
    let aligned = is_aligned(file, buffer, offset, false);
    let known = known(model, offset, buffer.len());
    let done = match file.read_exact_at(buffer, offset) {
        Ok(done) => {
            assert_eq!((done.bytes, known.len()), (buffer.len(), buffer.len()));
            done.bytes
        }
        Err(TransferError::Misaligned(wrong)) => {
            assert!(!aligned && !wrong.write, "{wrong}");
            return;
        }
        Err(TransferError::EndOfFile { done, .. }) => {
            assert!(done < buffer.len());
            done
        }
        Err(error) => panic!("{error:?}"),
    };
    assert!(aligned, "a misaligned read was made");
    assert_eq!(done, known.len());
    assert!(buffer[..done] == *known, "a read differs from the model");
}

/// Calls that do not change the model.
fn other_calls(file: &DirectFile, source: &mut Source<'_>) {
    let level = [FlushLevel::Barrier, FlushLevel::Data, FlushLevel::File, FlushLevel::Device];
    match source.byte() % 3 {
        0 => {
            let level = level[usize::from(source.byte() % 4)];
            assert!(file.flush(level).unwrap().level >= level);
        }
        1 => {
            // Any range, however absurd; what the system makes of it must be no panic.
            let (offset, length) = (source.number(), source.number());
            if let Ok(counted) = residency(file.file(), offset, length) {
                assert!(counted.cached_pages <= counted.file_pages);
            }
            let _ = evict(file.file(), offset, length);
        }
        _ => {
            let alignment = file.alignment().or_assumed();
            assert!(alignment.memory_bytes.is_some_and(|bytes| bytes > 0));
            // Beyond the address space: what is only beyond the memory, a sanitizer's allocator ends the program for.
            assert!(AlignedBuffer::new(source.number() as usize | 1 << 63, 4096).is_err());
        }
    }
}

/// An offset beyond the largest is an error of every transfer, and nothing is transferred.
fn beyond_every_file(file: &DirectFile, buffer: &mut [u8], offset: u64) {
    for error in [
        file.write_all_at(buffer, offset).err(),
        file.read_exact_at(buffer, offset).err(),
        write_unaligned_by_read_modify_write_at(file, buffer, offset).err().filter(|_| !buffer.is_empty()),
        read_unaligned_by_copy_at(file, buffer, offset).err().filter(|_| !buffer.is_empty()),
    ] {
        match error {
            Some(error) => assert_eq!(error.done(), 0),
            None => assert!(buffer.is_empty(), "{} bytes at {offset} were transferred", buffer.len()),
        }
    }
    assert!(preallocate(file.file(), offset, 4096).is_err());
}
