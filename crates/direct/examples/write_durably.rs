//! Writes a new file so that it survives a power loss, and reads it back:
//! `cargo run --example write_durably -- /srv/data/new-file`.
//!
//! Durable are the data, when the device has emptied its cache, and the name, when its folder was flushed.

use std::error::Error;
use std::path::PathBuf;
use trueio_direct::{AlignedBuffer, FlushLevel, OpenOptions, Policy, preallocate, sync_directory};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which new file?")?);
    let file = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer).open(&path)?;
    println!("granted {}: {}", file.granted(), file.reason());

    let mut buffer = AlignedBuffer::new(1 << 20, 4096)?;
    // Space first, so that a full disk is found before the data is half written.
    match preallocate(file.file(), 0, buffer.len() as u64) {
        Ok(()) => println!("reserved {} bytes", buffer.len()),
        Err(error) => println!("not reserved: {error}"),
    }
    buffer.iter_mut().enumerate().for_each(|(index, byte)| *byte = (index % 251) as u8);
    let written = file.write_all_at(&buffer, 0)?;
    println!("wrote {} bytes in {} calls", written.bytes, written.calls);
    let flushed = file.flush(FlushLevel::Device)?;
    println!("flushed by {}, device cache emptied: {}", flushed.call, flushed.device_cache_flushed);
    // Windows has no such call.
    if cfg!(unix) {
        sync_directory(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(".".as_ref()))?;
        println!("the name is durable");
    }

    let mut back = AlignedBuffer::new(buffer.len(), 4096)?;
    file.read_exact_at(&mut back, 0)?;
    println!("read back: {}", if *back == *buffer { "equal" } else { "DIFFERENT" });
    Ok(())
}
