//! Keeps a second opener out, in three ways: `cargo run --example lock -- NEW-FILE`.

use std::error::Error;
use std::path::PathBuf;
use trueio_direct::{LockMode, OpenError, OpenOptions, Policy, try_lock, try_lock_range, unlock};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which new file?")?);
    let options = OpenOptions::new().read(true).write(true).policy(Policy::Off);
    let first = options.clone().create_new(true).open(&path)?;
    let second = options.open(&path)?;

    try_lock(first.file(), LockMode::Exclusive)?;
    println!("whole file: {}", try_lock(second.file(), LockMode::Shared).unwrap_err());
    unlock(first.file())?;

    // FreeBSD has no lock of a range that belongs to the open file.
    match try_lock_range(first.file(), LockMode::Exclusive, 0, 100) {
        Ok(()) => {
            println!("bytes 50..60: {}", try_lock_range(second.file(), LockMode::Exclusive, 50, 10).unwrap_err());
            try_lock_range(second.file(), LockMode::Exclusive, 100, 10)?;
            println!("bytes 100..110: locked");
        }
        Err(error) => println!("no locks of ranges here: {error}"),
    }
    drop((first, second));

    let _alone = options.clone().exclusive(true).open(&path)?;
    match options.exclusive(true).open(&path) {
        Err(OpenError::Busy { .. }) => println!("exclusive: busy"),
        other => println!("exclusive: {other:?}"),
    }
    Ok(())
}
