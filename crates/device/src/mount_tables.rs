//! The mount tables of all processes, each different one once.
//!
//! A process sees the mounts of its mount namespace that are below its root directory. So one process of each namespace would not
//! suffice, and all tables are read. Most are equal.
//!
//! Source: proc_pid_mountinfo(5), proc_pid_root(5).

use crate::mounts::{self, Mount};
use crate::system::System;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// The mount table of a process.
#[derive(Debug)]
pub(crate) struct MountTable {
    /// The lowest ID of a process with this table.
    pub(crate) process: u32,
    pub(crate) mounts: Vec<Mount>,
}

impl MountTable {
    /// Returns the path that leads to `path` of this process; only on the running machine.
    pub(crate) fn in_root(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix("/").unwrap_or(path);
        PathBuf::from(format!("/proc/{}/root", self.process)).join(below)
    }

    /// Returns the file with this table.
    pub(crate) fn source(&self) -> String {
        format!("/proc/{}/mountinfo", self.process)
    }
}

/// All different tables, read when they are first needed.
#[derive(Debug)]
pub(crate) struct MountTables<'a> {
    system: &'a System,
    read: OnceCell<(Vec<MountTable>, Vec<String>)>,
}

impl<'a> MountTables<'a> {
    pub(crate) fn new(system: &'a System) -> Self {
        Self { system, read: OnceCell::new() }
    }

    pub(crate) fn all(&self) -> &[MountTable] {
        &self.read.get_or_init(|| read(self.system)).0
    }

    /// What could not be read, one sentence each.
    pub(crate) fn unseen(&self) -> &[String] {
        &self.read.get_or_init(|| read(self.system)).1
    }
}

fn read(system: &System) -> (Vec<MountTable>, Vec<String>) {
    let mut processes: Vec<u32> = system.list("/proc").iter().filter_map(|name| name.parse().ok()).collect();
    processes.sort_unstable();
    let (mut tables, mut unseen) = (Vec::new(), Vec::new());
    let mut texts: Vec<String> = Vec::new();
    let mut refused_count = 0;
    for process in processes {
        let text = match system.read(&format!("/proc/{process}/mountinfo")) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                refused_count += 1;
                continue;
            }
            // The process has ended.
            Err(_) => continue,
        };
        if !texts.contains(&text) {
            tables.push(MountTable { process, mounts: text.lines().filter_map(mounts::parse_line).collect() });
            texts.push(text);
        }
    }
    if refused_count > 0 {
        unseen.push(format!("this user may not read the mounts of {refused_count} processes"));
    }
    if texts.is_empty() {
        unseen.push("no mount table could be read".to_owned());
    }
    (tables, unseen)
}
