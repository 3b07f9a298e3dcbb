//! Prints the facts that a disk reports, and whether it is in use: `cargo run --example disk -- /dev/sdX`.
//! It only reads, and needs permission to.

use std::error::Error;
use std::path::PathBuf;
use trueio_direct::{OpenError, OpenOptions, Policy, device_facts};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which disk?")?);
    let options = OpenOptions::new().read(true).policy(Policy::Prefer);
    let disk = options.open(&path)?;
    let facts = device_facts(disk.file())?;
    let or_unknown = |value: Option<u32>| value.map_or_else(|| "not known".to_owned(), |bytes| bytes.to_string());
    println!("size      {} bytes", facts.size_bytes);
    println!("sectors   {} logical, {} physical", facts.logical_sector_bytes, or_unknown(facts.physical_sector_bytes));
    println!("best I/O  {}", or_unknown(facts.optimal_io_bytes));
    println!("rotates   {}", facts.is_rotational.map_or("not known", |yes| if yes { "yes" } else { "no" }));
    match (&facts.serial, facts.serial_source) {
        (Some(serial), Some(source)) => println!("serial    {serial} ({source})"),
        _ => println!("serial    not reported"),
    }
    println!("direct    {}: {}", disk.granted(), disk.alignment());
    drop(disk);
    match options.exclusive(true).open(&path) {
        Ok(_) => println!("in use    no"),
        Err(OpenError::Busy { .. }) => println!("in use    yes"),
        Err(error) => println!("in use    not known: {error}"),
    }
    Ok(())
}
