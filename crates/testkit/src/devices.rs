//! Loop devices and mounts that are removed on drop. *(Linux, as root)*
//!
//! A test either calls [`crate::lacks`] first and uses the constructors that panic, or uses those that return the
//! reason and skips with it.

use crate::{folder, hash, tool};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Creates a loop device over a new sparse file, with sectors of a given size.
///
/// # Errors
/// Why there is none.
pub fn loop_of(size_bytes: u64, sector_bytes: u32) -> Result<Loop, String> {
    Loop::create(size_bytes, &["--sector-size", &sector_bytes.to_string()])
}

/// Makes a filesystem on a new loop device, and mounts it.
///
/// # Errors
/// Why there is none.
pub fn on_loop(kind: &str, size_bytes: u64, sector_bytes: u32, options: &str) -> Result<Mount, String> {
    Mount::on(kind, loop_of(size_bytes, sector_bytes)?, options)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of the tests is UTF-8")
}

/// A loop device; detached on drop.
#[derive(Debug)]
pub struct Loop {
    /// `/dev/loopN`.
    pub device: String,
    /// The file or device below it.
    pub backing: PathBuf,
    is_attached: AtomicBool,
    _folder: Option<tempfile::TempDir>,
}

impl Loop {
    /// A device over a new sparse file, with options of losetup.
    ///
    /// # Errors
    /// Why there is none.
    pub fn create(size_bytes: u64, options: &[&str]) -> Result<Self, String> {
        Self::create_in(folder(), size_bytes, options)
    }

    /// The same with its file in a given folder.
    ///
    /// # Errors
    /// Why there is none.
    pub fn create_in(folder: tempfile::TempDir, size_bytes: u64, options: &[&str]) -> Result<Self, String> {
        let backing = folder.path().join("image");
        File::create_new(&backing).and_then(|file| file.set_len(size_bytes)).map_err(|e| e.to_string())?;
        let mut device = Self::try_over(&backing, options)?;
        device._folder = Some(folder);
        Ok(device)
    }

    /// A device with one partition, which begins at 1 MiB.
    ///
    /// # Errors
    /// Why there is none.
    pub fn create_partitioned(size_bytes: u64) -> Result<Self, String> {
        let device = Self::create(size_bytes, &["--partscan", "--direct-io=on"])?;
        // The kernel gets the partition by a call: not every kernel reads partition tables.
        tool("addpart", &[&device.device, "1", "2048", &(size_bytes / 512 - 2048).to_string()])?;
        Ok(device)
    }

    /// A device over a file or device that exists.
    ///
    /// # Panics
    /// If there is none: the test calls [`crate::lacks`] first.
    #[track_caller]
    pub fn over(backing: &Path, options: &[&str]) -> Self {
        Self::try_over(backing, options).expect("a loop device")
    }

    /// The same with an error.
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_over(backing: &Path, options: &[&str]) -> Result<Self, String> {
        let device = tool("losetup", &[&["--find", "--show"], options, &[text(backing)]].concat())?;
        if !device.starts_with("/dev/loop") {
            return Err(format!("losetup printed `{device}`, which is not a loop device"));
        }
        Ok(Self { device, backing: backing.to_owned(), is_attached: AtomicBool::new(true), _folder: None })
    }

    /// Detaches the device now. While it is open or mounted, the kernel only marks it, and detaches it at its last close.
    ///
    /// # Errors
    /// What losetup printed.
    pub fn detach(self) -> Result<(), String> {
        self.mark_detached()
    }

    /// The same of a device that somebody holds open, and of which the test still needs the names.
    ///
    /// # Errors
    /// What losetup printed.
    pub fn mark_detached(&self) -> Result<(), String> {
        // Not again on drop: the number may belong to another device by then.
        self.is_attached.store(false, Relaxed);
        tool("losetup", &["--detach", &self.device]).map(drop)
    }

    /// Detaches the device and attaches its number again, to another file.
    ///
    /// The kernel detaches at the last close: whoever looks through the machine's devices, such as another test, may hold it
    /// for a moment, so it is tried again for as long as that lasts.
    ///
    /// # Errors
    /// What losetup printed last, after 10 s; or that somebody else attached the number meanwhile.
    pub fn attach_again(&mut self, other: &Path) -> Result<(), String> {
        self.mark_detached()?;
        let backing = format!("/sys/block/{}/loop/backing_file", self.name());
        for attempts_left in (0..1000).rev() {
            match tool("losetup", &[&self.device, text(other)]) {
                Ok(_) => break,
                Err(error) if attempts_left == 0 => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
            let now = fs::read_to_string(&backing).unwrap_or_default();
            let now = Path::new(now.trim_end());
            // Seen once: losetup fails although the kernel has attached the file for it.
            if now == other {
                break;
            }
            if !now.as_os_str().is_empty() && now != self.backing {
                return Err(format!("{} was attached to {} meanwhile", self.device, now.display()));
            }
        }
        self.is_attached.store(true, Relaxed);
        Ok(())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        Path::new(&self.device)
    }

    /// Its name without `/dev/`.
    pub fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    /// A hash of what its backing file holds.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn content(&self) -> u64 {
        hash(&fs::read(&self.backing).expect("content"))
    }

    /// A hash of its first 4 KiB, as [`Loop::content`].
    ///
    /// # Panics
    /// If the file cannot be read.
    #[track_caller]
    pub fn head(&self) -> u64 {
        hash(&fs::read(&self.backing).expect("content")[..4096])
    }

    /// Makes an ext4 filesystem on it.
    ///
    /// # Panics
    /// If mkfs.ext4 fails.
    #[track_caller]
    pub fn make_ext4(&self) {
        make_filesystem("ext4", &self.device).expect("a filesystem");
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // Once only: a busy device is detached at its last close, and by a second attempt the number may belong to
        // another device.
        if self.is_attached.load(Relaxed)
            && let Err(error) = tool("losetup", &["--detach", &self.device])
        {
            println!("not removed: {error}");
        }
    }
}

/// Makes a filesystem of `kind` (ext2, ext3, ext4, xfs, btrfs) on a device.
///
/// # Errors
/// What mkfs printed.
pub fn make_filesystem(kind: &str, device: &str) -> Result<(), String> {
    // What mkfs leaves for later, the kernel writes while a test measures.
    let options: &[&str] = match kind {
        "ext2" | "ext3" | "ext4" => &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        _ => &["-q", "-f"],
    };
    tool(&format!("mkfs.{kind}"), &[options, &[device]].concat()).map(drop)
}

/// A mount; unmounted on drop, before the device below it is detached.
#[derive(Debug)]
pub struct Mount {
    /// The mount point.
    pub path: PathBuf,
    _folder: Option<tempfile::TempDir>,
    /// The loop device that it was made on.
    pub below: Option<Loop>,
}

impl Mount {
    /// A mount at a new folder.
    ///
    /// # Errors
    /// Why there is none.
    pub fn create(kind: &str, source: &str, options: &str) -> Result<Self, String> {
        let folder = folder();
        let mut mount = Self::try_new(kind, options, source, folder.path())?;
        mount._folder = Some(folder);
        Ok(mount)
    }

    /// A new filesystem on a loop device, mounted at a new folder.
    ///
    /// # Errors
    /// Why there is none.
    pub fn on(kind: &str, below: Loop, options: &str) -> Result<Self, String> {
        let device = below.device.clone();
        Self::on_device(kind, below, &device, options)
    }

    /// The same in the only partition of a loop device.
    ///
    /// # Errors
    /// Why there is none.
    pub fn in_partition(kind: &str, below: Loop, options: &str) -> Result<Self, String> {
        let device = format!("{}p1", below.device);
        Self::on_device(kind, below, &device, options)
    }

    fn on_device(kind: &str, below: Loop, device: &str, options: &str) -> Result<Self, String> {
        make_filesystem(kind, device)?;
        let mut mount = Self::create(kind, device, options)?;
        mount.below = Some(below);
        Ok(mount)
    }

    /// A mount at `path`, which is made.
    ///
    /// # Errors
    /// What mount printed.
    ///
    /// # Panics
    /// If the mount point cannot be made.
    pub fn try_new(kind: &str, options: &str, source: &str, path: &Path) -> Result<Self, String> {
        fs::create_dir_all(path).expect("a mount point");
        let options = if options.is_empty() { "defaults" } else { options };
        tool("mount", &["-t", kind, "-o", options, source, text(path)])?;
        Ok(Self { path: path.to_owned(), _folder: None, below: None })
    }

    /// A directory mounted at `path`, which is made, too.
    ///
    /// # Errors
    /// What mount printed.
    ///
    /// # Panics
    /// If the mount point cannot be made.
    pub fn try_bind(path: &Path, source: &Path) -> Result<Self, String> {
        fs::create_dir_all(path).expect("a mount point");
        tool("mount", &["--bind", text(source), text(path)])?;
        Ok(Self { path: path.to_owned(), _folder: None, below: None })
    }

    /// Mounts it again, read-only.
    ///
    /// # Panics
    /// If mount fails.
    #[track_caller]
    pub fn make_read_only(&self) {
        tool("mount", &["-o", "remount,ro", text(&self.path)]).expect("a remount");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Busy for a short time: a closed io_uring releases its files later, and a child that another test has forked
        // holds our open files until it calls exec.
        for _ in 0..100 {
            if tool("umount", &[text(&self.path)]).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Err(error) = tool("umount", &["--lazy", text(&self.path)]) {
            println!("not removed: {error}");
        }
    }
}
