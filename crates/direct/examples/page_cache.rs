//! Prints how much of a file is in the page cache, evicts it, and reads past the cache: `cargo run --example
//! page_cache -- FILE`. *(not on Windows, which has no such call)*

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use trueio_direct::{FlushLevel, evict, flush, residency};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which file?")?);
    // For writing, too: the kernel then reports residency to other users than the owner.
    let file = File::options().read(true).write(true).open(path)?;
    let before = residency(&file, 0, 0)?;
    println!("{} of {} pages cached ({})", before.cached_pages, before.file_pages, before.source);
    if let Some(dirty) = before.dirty_pages {
        println!("{dirty} of them dirty");
    }
    // Dirty pages stay: they are written first.
    flush(&file, FlushLevel::Data)?;
    evict(&file, 0, 0)?;
    println!("{} pages left", residency(&file, 0, 0)?.cached_pages);
    Ok(())
}
