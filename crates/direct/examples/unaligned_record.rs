//! Writes a record of any length at any offset of a file that requires whole blocks, and reads it back:
//! `cargo run --example unaligned_record -- NEW-FILE`.
//!
//! This reads blocks, changes them and writes them whole. It is not atomic: align records that must not affect each other.

use std::error::Error;
use std::path::PathBuf;
use trueio_direct::{OpenOptions, Policy, read_unaligned_by_copy_at, write_unaligned_by_read_modify_write_at};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which new file?")?);
    let file = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer).open(&path)?;
    let record = b"thirteen byte";
    let written = write_unaligned_by_read_modify_write_at(&file, record, 4090)?;
    println!("wrote {} bytes at 4090, in {} calls", written.bytes, written.calls);
    println!("the file has {} bytes", file.file().metadata()?.len());
    let mut word = [0; 4];
    read_unaligned_by_copy_at(&file, &mut word, 4099)?;
    println!("at 4099: {}", String::from_utf8_lossy(&word));
    Ok(())
}
