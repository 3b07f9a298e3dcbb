//! What the planner is told of this machine and its paths.

use std::path::Path;
use trueio_device::System;
use trueio_engine::availability;
use trueio_job::{EngineAvailability, EngineState, Machine, Target};

/// How long disks are watched idle before each phase, in nanoseconds.
pub(crate) const IDLE_BASELINE_NS: u64 = 250_000_000;

/// This machine, for the planner.
pub(crate) fn machine(idle_baseline_ns: u64) -> Machine {
    let engines = availability()
        .into_iter()
        .map(|a| if a.works { EngineState::works(a.engine) } else { EngineState::fails(a.engine, a.reason) })
        .collect();
    Machine {
        memory_bytes: memory_bytes(),
        cpus: usable_cpus(),
        engines: EngineAvailability { engines },
        entropy: entropy(),
        idle_baseline_ns,
    }
}

/// 64 bits that differ from run to run.
pub(crate) fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds its hasher from the system's randomness.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn usable_cpus() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..1024).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

/// What a path names, for the planner.
pub(crate) fn look(path: &str) -> Target {
    let path = Path::new(path);
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Target::Missing,
        Err(error) => return Target::Unreadable(error.to_string()),
        Ok(metadata) if metadata.is_symlink() && !path.exists() => {
            return Target::Unreadable("a symbolic link to nothing".to_owned());
        }
        Ok(_) => {}
    }
    match trueio_device::target_facts(&System::live(), path) {
        Ok(facts) => Target::Present(Box::new(facts)),
        Err(error) => Target::Unreadable(error.to_string()),
    }
}
