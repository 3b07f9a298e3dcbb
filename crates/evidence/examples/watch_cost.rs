//! What watching a phase costs here: `cargo run --release -p trueio-evidence --example watch_cost [FILE]`.
//!
//! Takes the witnesses before and after an empty phase 1,000 times, of FILE and the disks under it.

use std::path::Path;
use trueio_device::{System, target_facts};
use trueio_evidence::Watch;
use trueio_model::{FilePlan, Prepare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "Cargo.lock".to_owned());
    let system = System::live();
    let targets = [target_facts(&system, Path::new(&path))?];
    let file = FilePlan {
        path: path.clone(),
        prepare: Prepare::UseExisting,
        remove_after: false,
        offset_bytes: 0,
        size_bytes: std::fs::metadata(&path)?.len(),
        extends_from: None,
    };
    let mut watch = Watch::new(&system, &targets, [&file]);
    let mut costs: Vec<u64> = (0..1000)
        .map(|_| {
            watch.before(None);
            watch.after().cost_ns
        })
        .collect();
    costs.sort_unstable();
    println!("{path}: {} disks, {} bytes", targets[0].disks.len(), file.size_bytes);
    println!("before and after together: median {} ns, 99 % below {} ns", costs[500], costs[990]);
    Ok(())
}
