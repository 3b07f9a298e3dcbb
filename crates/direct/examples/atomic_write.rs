//! Overwrites a page so that a power loss leaves the old one or the new one, if atomic writes are supported:
//! `cargo run --example atomic_write -- NEW-FILE`. *(Linux 6.11 or later; XFS does it on any disk since 6.16)*
//!
//! Atomic is not durable: a flush comes after it.

use std::error::Error;
use std::path::PathBuf;
use trueio_direct::{AlignedBuffer, FlushLevel, OpenOptions, Policy, probe_file, write_atomic_at};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which new file?")?);
    let file = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer).open(&path)?;
    let answer = probe_file(file.file())?;
    let Some(limits) = answer.atomic_write else {
        println!("no atomic writes on {}: {:?}", answer.filesystem, answer.atomic_write_answer);
        return Ok(());
    };
    println!("atomic writes of {} to {} bytes", limits.min_bytes, limits.max_bytes);
    let mut page = AlignedBuffer::new(limits.min_bytes as usize, 4096)?;
    page.fill(1);
    file.write_all_at(&page, 0)?;
    page.fill(2);
    write_atomic_at(&file, &limits, &page, 0)?;
    file.flush(FlushLevel::Device)?;
    println!("one page was overwritten atomically and flushed");
    match write_atomic_at(&file, &limits, &page, 512) {
        Ok(()) => println!("an unnatural offset was taken"),
        Err(error) => println!("refused: {error}"),
    }
    Ok(())
}
