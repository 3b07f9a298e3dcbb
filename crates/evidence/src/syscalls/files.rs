//! Reads flags, position and identity of an open descriptor of this process.
//!
//! Source: proc(5), `/proc/PID/fdinfo`.

use super::names::open_flags;
use std::collections::HashMap;
use std::sync::Arc;

/// One open descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// `O_RDWR|O_DIRECT`.
    pub(super) flags: Arc<str>,
    /// Position of the next plain read or write; `None` if unknown.
    pub(super) position: Option<u64>,
    /// Equal for all descriptors of a file.
    pub(super) file: (u64, u64),
}

/// Looks up descriptors; tests implement it.
pub(super) trait Lookup {
    /// Returns the descriptor's present state; `None` if it is not open.
    fn look(&self, descriptor: i32) -> Option<Descriptor>;
}

/// This process.
#[derive(Debug)]
pub(super) struct ProcSelf;

impl Lookup for ProcSelf {
    fn look(&self, descriptor: i32) -> Option<Descriptor> {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
        let line = |key: &str| info.lines().find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()));
        let flags = i32::from_str_radix(&line("flags:")?, 8).ok()?;
        let position = line("pos:").and_then(|text| text.parse().ok());
        let file =
            std::fs::metadata(format!("/proc/self/fd/{descriptor}")).map_or((u64::MAX, descriptor as u64), |found| {
                use std::os::unix::fs::MetadataExt;
                (found.dev(), found.ino())
            });
        Some(Descriptor { flags: open_flags(flags).into(), position, file })
    }
}

/// Returns every descriptor that is open now, with its position.
pub(super) fn all_open(lookup: &impl Lookup) -> HashMap<i32, Descriptor> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return HashMap::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number| Some((number, lookup.look(number)?))).collect()
}
