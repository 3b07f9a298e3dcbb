//! The time that tasks waited for processors and for memory (pressure stall information, PSI).
//!
//! `some` counts the time in which at least one task of the machine waited, `full` the time in which all tasks waited.
//! Both concern the whole machine: a compiler next to a benchmark increases them, and so does a benchmark with more
//! threads than processors.
//!
//! Source: Linux `Documentation/accounting/psi.rst` (4.20). The files are missing if the kernel was built without PSI or
//! it is disabled.

use crate::system::System;

/// Time waited since boot, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// Time in which a task waited for a processor.
    pub cpu_some_us: u64,
    /// Time in which all tasks waited for memory; `None` if the kernel does not count it.
    pub memory_full_us: Option<u64>,
}

/// Reads `/proc/pressure/{cpu,memory}`; `None` if the kernel does not count it.
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
