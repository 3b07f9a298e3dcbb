//! Times sequential writes in 21 ways for each block size: `cargo run --release --example benchmark -- FILE`.
//!
//! Options before the name: `--block-min=BYTES` (4096), `--block-max=BYTES` (1048576), `--size=BYTES` a row (16777216),
//! `--seconds=S` at most a row (0.5), `--overwrite-disk` for a disk, whose contents are lost.
//!
//! The ways are those of the benchmark of `@ronomon/direct-io`: buffered from unaligned memory, buffered from aligned
//! memory, and direct; each with no flush, one flush at the end, a flush after each write, and O_DSYNC or O_SYNC. A file
//! must be new: it is written once before the first row, so that no row pays for its allocation, and is removed at the
//! end. A disk is opened exclusively. Rows that are cut short by `--seconds` report the rate until then.
//!
//! One sample a row, in one order, from one place in memory: a demonstration of the library, not a measurement.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trueio_direct::{AlignedBuffer, DirectFile, FlushLevel, OpenOptions, Policy, SyncMode};

#[derive(Clone, Copy)]
enum Flush {
    Never,
    AtEnd(FlushLevel),
    EachWrite(FlushLevel),
}

const FLUSHES: [(&str, Flush, SyncMode); 7] = [
    ("", Flush::Never, SyncMode::None),
    ("AMORTIZED_FDATASYNC", Flush::AtEnd(FlushLevel::Data), SyncMode::None),
    ("AMORTIZED_FSYNC", Flush::AtEnd(FlushLevel::File), SyncMode::None),
    ("FDATASYNC", Flush::EachWrite(FlushLevel::Data), SyncMode::None),
    ("FSYNC", Flush::EachWrite(FlushLevel::File), SyncMode::None),
    ("O_DSYNC", Flush::Never, SyncMode::Dsync),
    ("O_SYNC", Flush::Never, SyncMode::Sync),
];

struct Settings {
    block_min: usize,
    block_max: usize,
    size: usize,
    limit: Duration,
    overwrite_disk: bool,
    path: PathBuf,
}

fn settings() -> Result<Settings, Box<dyn Error>> {
    let mut settings = Settings {
        block_min: 4096,
        block_max: 1 << 20,
        size: 16 << 20,
        limit: Duration::from_millis(500),
        overwrite_disk: false,
        path: PathBuf::new(),
    };
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("--block-min", bytes)) => settings.block_min = bytes.parse()?,
            Some(("--block-max", bytes)) => settings.block_max = bytes.parse()?,
            Some(("--size", bytes)) => settings.size = bytes.parse()?,
            Some(("--seconds", seconds)) => settings.limit = Duration::try_from_secs_f64(seconds.parse()?)?,
            None if argument == "--overwrite-disk" => settings.overwrite_disk = true,
            _ if argument.starts_with("--") => return Err(format!("unknown option `{argument}`").into()),
            _ => settings.path = argument.into(),
        }
    }
    let Settings { block_min, block_max, size, .. } = settings;
    if settings.path.as_os_str().is_empty() {
        return Err("which file?".into());
    }
    let is_block = |bytes: usize| bytes.is_power_of_two() && (512..=32 << 20).contains(&bytes);
    if !is_block(block_min) || !is_block(block_max) || block_min > block_max || size < block_max {
        return Err("blocks are powers of two from 512 bytes to 32 MiB, and a row is at least one block".into());
    }
    Ok(settings)
}

/// Writes one row; returns how many bytes were written in which time.
fn row(file: &DirectFile, data: &[u8], settings: &Settings, flush: Flush) -> Result<(usize, Duration), Box<dyn Error>> {
    let begin = Instant::now();
    let mut done = 0;
    while done < settings.size && begin.elapsed() < settings.limit {
        file.write_all_at(data, done as u64)?;
        done += data.len();
        if let Flush::EachWrite(level) = flush {
            file.flush(level)?;
        }
    }
    if let Flush::AtEnd(level) = flush {
        file.flush(level)?;
    }
    let elapsed = begin.elapsed();
    // Not timed, as in the original: nothing of this row is left for the next one to write.
    file.flush(FlushLevel::Data)?;
    Ok((done, elapsed))
}

fn run(settings: &Settings, file: &OpenOptions) -> Result<(), Box<dyn Error>> {
    let path: &Path = &settings.path;
    let first = file.clone().policy(Policy::Prefer).open(path)?;
    println!("{}: {}, {}", path.display(), first.granted(), first.reason());
    let mut memory = AlignedBuffer::new(settings.block_max + 1, 4096)?;
    memory.fill(0xff);
    for offset in (0..settings.size).step_by(settings.block_max) {
        first.write_all_at(&memory[..settings.block_max], offset as u64)?;
    }
    drop(first);
    let mut block = settings.block_min;
    while block <= settings.block_max {
        for (name, flush, sync) in FLUSHES {
            for (memory_name, policy, skipped) in
                [("BUFFERED", Policy::Off, 1), ("ALIGNED", Policy::Off, 0), ("O_DIRECT + ALIGNED", Policy::Prefer, 0)]
            {
                let file = file.clone().policy(policy).sync(sync).open(path)?;
                let (bytes, elapsed) = row(&file, &memory[skipped..skipped + block], settings, flush)?;
                let rate = bytes as f64 / f64::from(1 << 20) / elapsed.as_secs_f64();
                let names = if name.is_empty() { memory_name.to_owned() } else { format!("{name} + {memory_name}") };
                println!("{block:>10} | {:22} | {names:38} | {rate:>10.2} MiB/s", file.granted().to_string());
            }
        }
        block *= 2;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let settings = settings()?;
    let options = OpenOptions::new().read(true).write(true);
    match std::fs::metadata(&settings.path) {
        Ok(metadata) if metadata.is_file() => Err("the file exists; name a new one".into()),
        Ok(_) if settings.overwrite_disk => run(&settings, &options.exclusive(true)),
        Ok(_) => Err("this is not a regular file; --overwrite-disk writes to a disk, and its contents are lost".into()),
        Err(_) => {
            drop(options.clone().create_new(true).policy(Policy::Off).open(&settings.path)?);
            let outcome = run(&settings, &options);
            std::fs::remove_file(&settings.path)?;
            outcome
        }
    }
}
