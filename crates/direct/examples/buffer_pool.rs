//! Reads the beginning of a file through every buffer of a pool: `cargo run --example buffer_pool -- FILE`.
//!
//! A pool is one allocation that never moves, its pages touched in advance: what io_uring can register, and what pays
//! for no page fault in the first read.

use std::error::Error;
use std::path::PathBuf;
use trueio_direct::{BufferPool, OpenOptions, Policy};

const BLOCK_BYTES: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which file?")?);
    let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path)?;
    let mut pool = BufferPool::new(8, BLOCK_BYTES, 4096)?;
    let (_, length) = pool.region();
    println!("{} buffers, {} bytes apart, {length} bytes in all", pool.count(), pool.stride_bytes());
    for index in 0..pool.count() {
        let read = file.read_at(pool.slice_mut(index), (index * BLOCK_BYTES) as u64)?;
        if read.bytes < BLOCK_BYTES {
            println!("block {index}: {} bytes, then the file ended", read.bytes);
            break;
        }
        println!("block {index}: {} bytes, the first is {}", read.bytes, pool.slice(index)[0]);
    }
    Ok(())
}
