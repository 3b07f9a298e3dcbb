//! How long work had to wait for processors and for memory, as the kernel adds it up (PSI).
//!
//! `some` counts the time in which at least one task of the machine waited, `full` the time in
//! which nothing else ran meanwhile. Both are of the whole machine: a compiler beside a benchmark
//! raises them, and so does a benchmark with more threads than processors.
//!
//! Source: Linux `Documentation/accounting/psi.rst` (4.20); a kernel may be built without it or have
//! it switched off, and then the files are missing.

use crate::system::System;

/// Time lost since boot, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// In which a task waited for a processor.
    pub cpu_some_us: u64,
    /// In which all tasks waited for memory; `None` where the kernel does not count it.
    pub memory_full_us: Option<u64>,
}

/// Reads `/proc/pressure/{cpu,memory}`; `None` where the kernel does not count it.
pub fn pressure(system: &System) -> Option<Pressure> {
    let total = |file: &str, line: &str| {
        let text = system.read(file).ok()?;
        let found = text.lines().find_map(|l| l.strip_prefix(line))?;
        found.split_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok())
    };
    Some(Pressure {
        cpu_some_us: total("/proc/pressure/cpu", "some ")?,
        memory_full_us: total("/proc/pressure/memory", "full "),
    })
}
