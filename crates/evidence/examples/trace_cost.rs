//! What tracing costs its own thread here, as root:
//! `cargo run --release -p trueio-evidence --example trace_cost FILE [SECONDS]`.
//!
//! Reads FILE (or a block device) at random past the page cache for SECONDS (5) while its requests are
//! traced, as in any phase. What the tracepoints add to each read is not in the figure; `cargo xtask bench
//! evidence` has both.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};
use trueio_device::{System, target_facts};
use trueio_direct::AlignedBuffer;
use trueio_evidence::Watch;
use trueio_model::{FilePlan, Prepare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let seconds = std::env::args().nth(2).map_or(Ok(5), |text| text.parse())?;
    let system = System::live();
    let targets = [target_facts(&system, Path::new(&path))?];
    let size_bytes = targets[0].size_bytes.value.ok_or("its size is not known")?;
    let file = FilePlan {
        path: path.clone(),
        prepare: Prepare::UseExisting,
        remove_after: false,
        offset_bytes: 0,
        size_bytes,
        extends_from: None,
    };
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path)?;
    let mut buffer = AlignedBuffer::new(4096, 4096)?;
    let mut watch = Watch::new(&system, &targets, [&file]);
    watch.baseline(Duration::ZERO);
    watch.before(Some(Duration::from_secs(seconds)));
    let (began, mut count, mut place) = (Instant::now(), 0u64, 1u64);
    while began.elapsed() < Duration::from_secs(seconds) {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        opened.read_exact_at(&mut buffer, (place >> 20) % (size_bytes / 4096) * 4096)?;
        count += 1;
    }
    let elapsed = began.elapsed();
    let traced = watch.after().traced.ok_or("nothing was prepared")?;
    if let Some(why) = traced.missing {
        return Err(why.into());
    }
    let share = traced.thread_cpu_ns as f64 / elapsed.as_nanos() as f64;
    println!("{path}: {:.0} reads a second for {seconds} s", count as f64 / elapsed.as_secs_f64());
    println!("the tracing thread took {:.3} % of a processor", share * 100.0);
    Ok(())
}
