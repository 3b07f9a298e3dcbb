//! The disk space of a run, and what an earlier run left behind.
//!
//! The tests make their folders in `target/tmp` and put their process number into the name (`trueio_testkit::folder`). A folder
//! whose process has ended is a leftover of a test that was killed: its mounts and loop devices are ended, and it is removed.
//! Nothing else is touched.

use crate::step::Outcome;
use crate::workspace::{command, target_dir};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// What a whole run needs, in bytes.
const NEEDED: u64 = 8 << 30;

/// Removes leftovers, and checks that enough space is free.
pub(super) fn check() -> Outcome {
    let found = || -> Result<Outcome> {
        let target = target_dir()?;
        let removed = remove_leftovers(&target.join("tmp"))?;
        let free = free_bytes(&target)?;
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        let text = format!("{:.1} GiB free, {removed} leftovers removed", gib(free));
        Ok(match free >= NEEDED {
            true => Outcome::Passed(text),
            false => Outcome::Failed(format!("{text}; a run needs {:.0} GiB below {}", gib(NEEDED), target.display())),
        })
    };
    found().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
}

/// Free bytes for this user where `path` is.
fn free_bytes(path: &Path) -> Result<u64> {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: statvfs is plain numbers, for which zeros are valid.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut found) } != 0 {
        return Err(std::io::Error::last_os_error()).context("statvfs");
    }
    Ok(found.f_bavail * found.f_frsize)
}

/// Returns the number of removed folders.
fn remove_leftovers(tmp: &Path) -> Result<usize> {
    let Ok(entries) = std::fs::read_dir(tmp) else { return Ok(0) };
    let left: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| is_leftover(path)).collect();
    for folder in &left {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").context("mountinfo")?;
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(Path::new);
        // The last mounted first: it may be in one before it.
        for point in points.filter(|point| point.starts_with(folder)).collect::<Vec<_>>().into_iter().rev() {
            let _ = command("umount").arg(point).status();
        }
        let list = command("losetup").args(["--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"]).output();
        let list = list.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        for (device, file) in list.lines().filter_map(|line| line.split_once(' ')) {
            if Path::new(file.trim()).starts_with(folder) {
                let _ = command("losetup").args(["--detach", device]).status();
            }
        }
        // What is still mounted must not be emptied.
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").context("mountinfo")?;
        if !mounts.lines().filter_map(|line| line.split(' ').nth(4)).any(|point| Path::new(point).starts_with(folder)) {
            std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
    }
    Ok(left.len())
}

/// True if the name is that of a test's folder, `test-PROCESS-…`, whose process has ended.
fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let process = name.strip_prefix("test-").and_then(|rest| rest.split_once('-')).map(|(process, _)| process);
    process.is_some_and(|process| process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_ended_tests_are_leftovers() {
        let tmp = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let names = [format!("test-{}-abc", ended.id()), format!("test-{}-abc", std::process::id())];
        for name in names.iter().map(String::as_str).chain(["test-abc", "mine", "test--x"]) {
            std::fs::create_dir(tmp.path().join(name)).unwrap();
        }
        assert_eq!(remove_leftovers(tmp.path()).unwrap(), 1);
        assert!(!tmp.path().join(&names[0]).exists() && tmp.path().join(&names[1]).exists());
        assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 4);
        assert!(free_bytes(tmp.path()).unwrap() > 0);
    }
}
