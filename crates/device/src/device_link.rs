//! Symbolic links below `/dev` that only root can change: `/dev/VG/LV`, `/dev/mapper/NAME`, `/dev/disk/by-id/ID`.
//!
//! Such a link is a name of its device like the device's own: between planning and opening, only root can lead it elsewhere.
//!
//! Limits: names with `.` or `..` are no such names. A directory with an access list that permits others to write shows that in its
//! group bits, and is refused, too.

use rustix::fs::{CWD, FileType, Mode};
use std::path::{Component, Path, PathBuf};

/// The most links on the way to a device.
const LINKS_MAX: usize = 8;

/// Returns the block device that a link below `/dev` leads to, if root owns each directory and link on the way and others cannot
/// write to the directories; `None` for everything else, the device's own name included.
pub fn device_of_link(path: &Path) -> Option<PathBuf> {
    let mut name = path.to_owned();
    for links in 0..=LINKS_MAX {
        let is_below_dev = name.starts_with("/dev") && name.components().count() > 2;
        if !is_below_dev || name.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir)) {
            return None;
        }
        let directory = name.parent()?;
        if !directory.ancestors().all(only_root_changes) {
            return None;
        }
        let found = rustix::fs::lstat(&name).ok()?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::BlockDevice => return (links > 0).then_some(name),
            FileType::Symlink if found.st_uid == 0 => {
                let target = rustix::fs::readlink(&name, Vec::new()).ok()?;
                name = joined(directory, Path::new(target.to_str().ok()?))?;
            }
            _ => return None,
        }
    }
    None
}

/// Returns true for a directory, no link to one, that only root can change.
fn only_root_changes(directory: &Path) -> bool {
    rustix::fs::statat(CWD, directory, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::Directory
            && found.st_uid == 0
            && !Mode::from_raw_mode(found.st_mode).intersects(Mode::WGRP | Mode::WOTH)
    })
}

/// Returns the target of a link in a directory. No directory on the way is a link, so `..` is the directory above.
fn joined(directory: &Path, target: &Path) -> Option<PathBuf> {
    let mut name = directory.to_owned();
    for part in target.components() {
        match part {
            Component::RootDir => name = PathBuf::from("/"),
            Component::ParentDir => {
                name.pop();
            }
            Component::CurDir => {}
            Component::Normal(part) => name.push(part),
            Component::Prefix(_) => return None,
        }
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_joined_to_the_directory_of_its_link() {
        let of = |target| joined(Path::new("/dev/disk/by-id"), Path::new(target)).expect("a path");
        assert_eq!(of("../../sda"), Path::new("/dev/sda"));
        assert_eq!(of("/dev/dm-0"), Path::new("/dev/dm-0"));
        assert_eq!(of("../../../etc"), Path::new("/etc"));
        assert_eq!(of("./x"), Path::new("/dev/disk/by-id/x"));
    }

    #[test]
    fn what_is_no_link_below_dev_is_no_name_of_a_device() {
        for path in ["/dev", "/dev/null", "/dev/fd", "/dev/stdin", "/etc/mtab", "sda", "/dev/../dev/sda", "/dev/shm/x"]
        {
            assert_eq!(device_of_link(Path::new(path)), None, "{path}");
        }
    }
}
