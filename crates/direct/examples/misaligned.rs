//! Prints the error of a misaligned direct transfer: `cargo run --example misaligned -- NEW-FILE`.
//!
//! The same call would fail with a bare `EINVAL` on one filesystem, be buffered in silence on the next, and work by
//! chance on a third.

use std::error::Error;
use std::path::PathBuf;
use trueio_direct::{AlignedBuffer, OpenOptions, Policy, TransferError};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which new file?")?);
    let file = OpenOptions::new().write(true).create_new(true).policy(Policy::Prefer).open(&path)?;
    println!("{}: {}", file.granted(), file.alignment());
    let buffer = AlignedBuffer::new(16384, 4096)?;
    for (what, slice, offset) in [
        ("from the second byte of the buffer", &buffer[1..4097], 0),
        ("100 bytes", &buffer[..100], 0),
        ("at offset 1", &buffer[..4096], 1),
        ("as it should be", &buffer[..4096], 4096),
    ] {
        match file.write_all_at(slice, offset) {
            Ok(written) => println!("{what}: {} bytes written", written.bytes),
            Err(TransferError::Misaligned(wrong)) => {
                println!("{what}: {} is {}, needed is a multiple of {}", wrong.part, wrong.value, wrong.needed_bytes);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
