//! Background work of the system on disks: initialising a new ext4, rebuilding an array, trimming, scrubbing,
//! defragmenting.
//!
//! Limits: the disk that a thread works on is unknown, except for arrays, which report it.
//!
//! Source: names of threads: `fs/ext4/super.c` (`ext4lazyinit`), `drivers/md/md.c` (`sync_action`);
//! of programs: util-linux, xfsprogs, btrfs-progs, e2fsprogs.

use crate::system::System;

/// Names of threads and programs that access disks in the background, and their work.
const KNOWN: &[(&str, &str)] = &[
    ("ext4lazyinit", "a new ext4 initialises its inode tables"),
    ("fstrim", "a filesystem is trimmed"),
    ("xfs_fsr", "an XFS is defragmented"),
    ("xfs_scrub", "an XFS is checked"),
    ("e4defrag", "an ext4 is defragmented"),
    ("btrfs-balance", "a btrfs is balanced"),
    ("updatedb", "a file index is rebuilt"),
];

/// Returns the background work in progress, one sentence without a full stop each.
pub fn background_work(system: &System) -> Vec<String> {
    let mut found: Vec<String> = system
        .list("/sys/block")
        .into_iter()
        .filter(|disk| disk.starts_with("md"))
        .filter_map(|disk| {
            let action = system.read(&format!("/sys/block/{disk}/md/sync_action")).ok()?;
            (action != "idle" && action != "frozen").then(|| format!("the array {disk} runs a {action}"))
        })
        .collect();
    for process in system.list("/proc").into_iter().filter(|name| name.bytes().all(|b| b.is_ascii_digit())) {
        // The process has ended.
        let Ok(name) = system.read(&format!("/proc/{process}/comm")) else { continue };
        if let Some((name, what)) = KNOWN.iter().find(|(known, _)| *known == name) {
            found.push(format!("{what} ({name}, process {process})"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_rebuilding_array_and_a_lazy_initialisation_are_named_and_a_shell_is_not() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("paths"), "").unwrap();
        for (path, text) in [
            ("proc/1/comm", "systemd\n"),
            ("proc/77/comm", "ext4lazyinit\n"),
            ("proc/self/comm", "fstrim\n"),
            ("sys/block/md0/md/sync_action", "resync\n"),
            ("sys/block/md1/md/sync_action", "idle\n"),
            ("sys/block/sda/size", "8\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let system = System::recorded(root.path()).unwrap();
        assert_eq!(
            background_work(&system),
            ["the array md0 runs a resync", "a new ext4 initialises its inode tables (ext4lazyinit, process 77)"]
        );
    }
}
