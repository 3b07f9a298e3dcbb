//! What the tests need of the machine: a skip that says why, loop devices, mounts.
// Each test program uses a part of it.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Says why a test did not run; fails where `TRUEIO_REQUIRE` lists the need ("loop,btrfs").
pub fn skip(need: &str, reason: &str) {
    let required = std::env::var("TRUEIO_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|word| word.trim() == need), "`{need}` is required: {reason}");
    println!("Skipped({need}): {reason}");
}

/// A new folder on the filesystem of the build directory; unit tests, which are not told where that
/// is, take the system's folder for such things.
pub fn folder() -> tempfile::TempDir {
    match option_env!("CARGO_TARGET_TMPDIR") {
        Some(place) => tempfile::tempdir_in(place).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Unmounts, again while it is refused: a child that another test has forked holds our open files
/// until it becomes its program, and keeps the mount busy for that moment.
fn unmount(folder: &Path) {
    let mut failure = String::new();
    for _ in 0..100 {
        match run("umount", &[folder.to_str().unwrap()]) {
            Ok(_) => return,
            Err(error) => failure = error,
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    left_behind(&failure);
}

fn left_behind(failure: &str) {
    if std::thread::panicking() {
        println!("left behind: {failure}");
    } else {
        panic!("left behind: {failure}");
    }
}

/// A loop device over a new sparse file; detached on drop.
pub struct Loop {
    pub device: PathBuf,
    _folder: tempfile::TempDir,
}

impl Loop {
    pub fn new(size_bytes: u64, sector_bytes: u32) -> Result<Self, String> {
        let folder = folder();
        let image = folder.path().join("image");
        std::fs::File::create_new(&image).and_then(|file| file.set_len(size_bytes)).map_err(|e| e.to_string())?;
        let sector = sector_bytes.to_string();
        let arguments = ["--find", "--show", "--sector-size", &sector, image.to_str().unwrap()];
        let device = run("losetup", &arguments)?;
        Ok(Self { device: device.into(), _folder: folder })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // Once only: a busy device is detached when its last user goes, and by a second attempt the number
        // may belong to somebody else.
        if let Err(error) = run("losetup", &["--detach", self.device.to_str().unwrap()]) {
            left_behind(&error);
        }
    }
}

/// A mounted filesystem; unmounted on drop, before the device below it is detached.
pub struct Mount {
    pub folder: tempfile::TempDir,
    pub below: Option<Loop>,
}

impl Mount {
    pub fn new(kind: &str, source: &str, options: &str) -> Result<Self, String> {
        let folder = folder();
        let mut arguments = vec!["-t", kind];
        if !options.is_empty() {
            arguments.extend(["-o", options]);
        }
        arguments.extend([source, folder.path().to_str().unwrap()]);
        run("mount", &arguments)?;
        Ok(Self { folder, below: None })
    }

    /// A new filesystem on a new loop device.
    pub fn on_loop(kind: &str, size_bytes: u64, sector_bytes: u32, options: &str) -> Result<Self, String> {
        let below = Loop::new(size_bytes, sector_bytes)?;
        let device = below.device.to_str().unwrap();
        run(&format!("mkfs.{kind}"), &[if kind == "ext4" { "-q" } else { "-f" }, device])?;
        let mut mount = Self::new(kind, device, options)?;
        mount.below = Some(below);
        Ok(mount)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        unmount(self.folder.path());
    }
}
