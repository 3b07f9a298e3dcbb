//! The other ranks of this run on this kernel: their I/O is the run's, not a neighbour's.
//!
//! A process is identified by its kernel, its PID namespace and its number there. Counters of disks do not separate ranks, so checks that
//! would blame other processes by counters alone give no verdict while there are peers; traced requests of peers are the run's own.
//!
//! Cannot do: subtract what a peer transferred from the counters of a disk that both use.
//!
//! Source: pid_namespaces(7), proc_pid_status(5) (`Tgid`, `NSpid`).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;

/// A process of this kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Inode number of its PID namespace; 0: unknown.
    pub pid_namespace: u64,
    /// Its number in that namespace.
    pub number: i32,
}

impl Process {
    /// Returns this process.
    pub fn own() -> Self {
        Self { pid_namespace: namespace_of("self").unwrap_or(0), number: std::process::id() as i32 }
    }

    /// Returns its number as this process sees it; `None`: it does not see it.
    fn number_here(self) -> Option<i32> {
        if self.pid_namespace == Self::own().pid_namespace {
            return Some(self.number);
        }
        let numbers =
            fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        numbers.into_iter().find(|number| {
            let is_there = namespace_of(&number.to_string()) == Some(self.pid_namespace);
            // The last number is that in the innermost namespace.
            is_there
                && status(*number, "NSpid:").and_then(|text| text.split_whitespace().last()?.parse().ok())
                    == Some(self.number)
        })
    }
}

fn namespace_of(process: &str) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{process}/ns/pid")).ok()?.ino())
}

fn status(number: i32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{number}/status")).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

/// The peers of this process, as it sees them.
#[derive(Debug, Default)]
struct Peers {
    /// How many there are, those that this process does not see included.
    count: usize,
    numbers: Vec<i32>,
}

static PEERS: Mutex<Peers> = Mutex::new(Peers { count: 0, numbers: Vec::new() });

/// Sets the other ranks of this run on this kernel, for all phases that follow.
pub fn set_peers(peers: &[Process]) {
    let own = Process::own();
    let others = || peers.iter().filter(|peer| **peer != own);
    let numbers = others().filter_map(|peer| peer.number_here()).collect();
    *PEERS.lock().expect("no holder panics") = Peers { count: others().count(), numbers };
}

/// Returns true if other ranks of this run are on this kernel.
pub(crate) fn has_peers() -> bool {
    PEERS.lock().expect("no holder panics").count > 0
}

/// Returns the threads of the peers, as this process sees them.
pub(crate) fn threads_of_peers() -> BTreeSet<i32> {
    let numbers = PEERS.lock().expect("no holder panics").numbers.clone();
    let mut threads: BTreeSet<i32> = numbers.iter().copied().collect();
    for number in numbers {
        let tasks = fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
        threads.extend(tasks.filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok()));
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_namespace_and_number() {
        let own = Process::own();
        assert_eq!(own.number_here(), Some(std::process::id() as i32));
        assert!(own.pid_namespace == 0 || Process { pid_namespace: 1, ..own }.number_here().is_none());
    }
}
