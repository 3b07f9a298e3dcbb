//! Reads a file with several reads in flight and sums its bytes: `cargo run --example read_with_threads -- FILE`.
//!
//! Threads may share a file, because every read has an offset of its own; each has its own buffer. What is left
//! beyond the last full chunk is read by copying.

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use trueio_direct::{
    AlignedBuffer, DirectFile, OpenOptions, Policy, TransferError, read_unaligned_by_copy_at, round_down,
};

const THREADS: usize = 4;
const CHUNK_BYTES: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which file?")?);
    let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path)?;
    let size_bytes = file.file().metadata()?.len();
    // What can be read directly, and the rest of a last block that is not full.
    let whole = round_down(size_bytes, CHUNK_BYTES);
    println!("{THREADS} threads, {}", file.alignment());

    let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| read_chunks(&file, whole, &next, &sum))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    let mut rest = vec![0; usize::try_from(size_bytes - whole)?];
    read_unaligned_by_copy_at(&file, &mut rest, whole)?;
    let total = sum.into_inner() + rest.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    println!("{size_bytes} bytes, sum {total}");
    Ok(())
}

/// Takes chunk after chunk until there are no more.
fn read_chunks(file: &DirectFile, whole: u64, next: &AtomicU64, sum: &AtomicU64) -> Result<(), TransferError> {
    let mut buffer = AlignedBuffer::new(CHUNK_BYTES as usize, 4096).expect("a mebibyte of memory");
    loop {
        let offset = next.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
        if offset >= whole {
            return Ok(());
        }
        file.read_exact_at(&mut buffer, offset)?;
        sum.fetch_add(buffer.iter().map(|byte| u64::from(*byte)).sum::<u64>(), Ordering::Relaxed);
    }
}
