//! Copies a file or disk past the page cache, with progress: `cargo run --release --example copy -- FROM TO`.
//! TO must not exist.

use std::error::Error;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use trueio_direct::{CopyOptions, copy_file};

fn main() -> Result<(), Box<dyn Error>> {
    let mut names = std::env::args_os().skip(1);
    let (from, to) = (names.next().ok_or("copy what?")?, names.next().ok_or("copy to where?")?);
    let begin = Instant::now();
    let mut printed = begin;
    let copied = copy_file(&from, &to, &CopyOptions::new(), |progress| {
        if printed.elapsed() >= Duration::from_secs(1) {
            printed = Instant::now();
            println!("{} of {} bytes", progress.done_bytes, progress.total_bytes);
        }
        ControlFlow::Continue(())
    })?;
    println!("read {}, written {}", copied.source, copied.destination);
    println!("{} bytes of data, {} bytes of holes", copied.data_bytes, copied.hole_bytes);
    println!("durable after {:.3} s", begin.elapsed().as_secs_f64());
    Ok(())
}
