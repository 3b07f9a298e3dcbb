//! The targets of the comparison with fio, created for it and removed afterwards.
//!
//! Three targets that cost the kernel little, so that the tool's share is large:
//!
//! - a file in the page cache of a disk's filesystem. A transfer completes within the call;
//! - a zram device whose pages were never written. The cheapest block device there is;
//! - a loop device over a file in memory. Its transfers are really asynchronous.
//!
//! io_uring on tmpfs and on zram is not asynchronous: neither can promise not to wait, so the kernel
//! passes each transfer to a worker thread (`iou-wrk-*`), so the measurement would be of that.
//!
//! Each goes away when its guard is dropped, also after a signal to stop. The loop device
//! is detached as soon as it is opened here, which the kernel carries out at the last close: it goes
//! away even if this process is killed. A zram device and files then stay (`/dev/zramN`,
//! `trueio-bench-*`).

use crate::workspace::is_root;
use anyhow::{Context, Error, Result, ensure};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trueio_testkit::Loop;

/// Size of the files, in bytes.
pub(crate) const FILE_BYTES: u64 = 256 << 20;
/// Size of the zram device, in bytes.
const ZRAM_BYTES: u64 = 1 << 30;

/// The target of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// Nothing is opened.
    Nothing,
    /// A file that is read into the page cache before every run.
    Cached,
    /// A zram device.
    Zram,
    /// A loop device over memory.
    Loop,
}

/// The targets in use, or the reason why one is not available.
pub(crate) struct Targets {
    cached: Option<Result<CachedFile, String>>,
    zram: Option<Result<Zram, String>>,
    loop_device: Option<Result<LoopDevice, String>>,
}

impl Targets {
    /// Creates the requested targets; the file in `folder`.
    pub(crate) fn new(wanted: &[TargetKind], folder: &Path) -> Self {
        fn make<T>(is_wanted: bool, make: impl FnOnce() -> Result<T>) -> Option<Result<T, String>> {
            is_wanted.then(|| make().map_err(|error| format!("{error:#}")))
        }
        Self {
            cached: make(wanted.contains(&TargetKind::Cached), || CachedFile::new(folder)),
            zram: make(wanted.contains(&TargetKind::Zram), Zram::new),
            loop_device: make(wanted.contains(&TargetKind::Loop), LoopDevice::new),
        }
    }

    /// Returns the path of a target, empty for [`TargetKind::Nothing`], or the reason why it does not exist.
    pub(crate) fn path(&self, kind: TargetKind) -> Result<&Path, &str> {
        fn of<T>(target: &Option<Result<T, String>>) -> Result<&T, &str> {
            target.as_ref().map_or(Err("was not made"), |target| target.as_ref().map_err(String::as_str))
        }
        match kind {
            TargetKind::Nothing => Ok(Path::new("")),
            TargetKind::Cached => of(&self.cached).map(|target| &*target.path),
            TargetKind::Zram => of(&self.zram).map(|target| &*target.path),
            TargetKind::Loop => of(&self.loop_device).map(|target| &*target.path),
        }
    }

    /// To be called before every run: reclaim may have dropped pages since the last.
    pub(crate) fn warm(&self, kind: TargetKind) -> Result<()> {
        match (kind, &self.cached) {
            (TargetKind::Cached, Some(Ok(file))) => file.warm(),
            _ => Ok(()),
        }
    }
}

/// The first bytes of files: random, so that nothing below can compress or share them.
fn fill(file: &mut File, bytes: u64) -> Result<()> {
    let mut random = File::open("/dev/urandom")?.take(bytes);
    let copied = std::io::copy(&mut random, file)?;
    ensure!(copied == bytes, "only {copied} of {bytes} bytes could be written");
    Ok(())
}

/// A file on a disk's filesystem, kept in the page cache.
struct CachedFile {
    path: PathBuf,
}

impl CachedFile {
    fn new(folder: &Path) -> Result<Self> {
        let path = folder.join(format!("trueio-bench-{}.dat", std::process::id()));
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path).context("making a file")?;
        let guard = Self { path };
        let kind = filesystem_magic(&file)?;
        // statfs(2): TMPFS_MAGIC and RAMFS_MAGIC; on both io_uring goes through worker threads.
        ensure!(
            kind != 0x0102_1994 && kind != 0x8584_58f6,
            "{} is on a filesystem in memory; set CARGO_TARGET_DIR to one on a disk",
            folder.display()
        );
        fill(&mut file, FILE_BYTES)?;
        // Written back now, so that nothing is written during a measurement.
        file.sync_all()?;
        Ok(guard)
    }

    fn warm(&self) -> Result<()> {
        let mut file = File::open(&self.path)?;
        let mut buffer = vec![0; 1 << 20];
        while file.read(&mut buffer)? > 0 {}
        Ok(())
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn filesystem_magic(file: &File) -> Result<u64> {
    // SAFETY: statfs is a plain C struct for which all zeros are a value; the descriptor is open
    // and the pointer is to a live variable.
    unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        ensure!(libc::fstatfs(file.as_raw_fd(), &mut stat) == 0, std::io::Error::last_os_error());
        Ok(stat.f_type as u64)
    }
}

/// A zram device of its own, nothing written to it.
struct Zram {
    number: u32,
    path: PathBuf,
}

impl Zram {
    fn new() -> Result<Self> {
        ensure!(is_root(), "zram needs root");
        let number: u32 = fs::read_to_string("/sys/class/zram-control/hot_add")
            .context("this kernel has no zram")?
            .trim()
            .parse()
            .context("hot_add")?;
        let zram = Self { number, path: format!("/dev/zram{number}").into() };
        fs::write(format!("/sys/block/zram{number}/disksize"), ZRAM_BYTES.to_string()).context("disksize")?;
        let deadline = Instant::now() + Duration::from_secs(5);
        while !zram.path.exists() {
            ensure!(Instant::now() < deadline, "{} did not appear", zram.path.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(zram)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let number = self.number;
        // Refused while anything has it open, udev's probing for instance.
        for _ in 0..50 {
            let _ = fs::write(format!("/sys/block/zram{number}/reset"), "1");
            if fs::write("/sys/class/zram-control/hot_remove", number.to_string()).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        eprintln!("/dev/zram{number} could not be removed");
    }
}

/// A loop device over a file in memory.
struct LoopDevice {
    path: PathBuf,
    _backing: MemoryFile,
    /// Keeps the device, which is detached at its last close.
    _open: File,
}

/// A file in /dev/shm, removed when dropped.
struct MemoryFile(PathBuf);

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl LoopDevice {
    fn new() -> Result<Self> {
        ensure!(is_root(), "a loop device needs root");
        let path = PathBuf::from(format!("/dev/shm/trueio-bench-{}.dat", std::process::id()));
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(&path).context("making a file in memory")?;
        let backing = MemoryFile(path);
        fill(&mut file, FILE_BYTES)?;
        let device = Loop::try_over(&backing.0, &[]).map_err(Error::msg)?;
        let path = device.path().to_owned();
        let open = File::open(&path).with_context(|| path.display().to_string())?;
        // While it is open this only marks it: the kernel detaches at the last close.
        device.detach().map_err(Error::msg)?;
        Ok(Self { path, _backing: backing, _open: open })
    }
}

/// Replaces `path` by `text` in one step.
pub(crate) fn replace_file(path: &Path, text: &str) -> Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary).with_context(|| temporary.display().to_string())?;
    file.write_all(text.as_bytes())?;
    fs::rename(&temporary, path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cached_file_is_gone_when_its_guard_is() {
        let folder = crate::workspace::target_dir().unwrap().join("tmp");
        let file = match CachedFile::new(&folder) {
            Ok(file) => file,
            Err(error) => return println!("Skipped(disk): {error:#}"),
        };
        file.warm().unwrap();
        let path = file.path.clone();
        assert_eq!(fs::metadata(&path).unwrap().len(), FILE_BYTES);
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn devices_are_gone_when_their_guards_are() {
        let targets = Targets::new(&[TargetKind::Zram, TargetKind::Loop], Path::new(""));
        let mut removed = Vec::new();
        for kind in [TargetKind::Zram, TargetKind::Loop] {
            match targets.path(kind) {
                Ok(path) => removed.push((kind, path.to_owned())),
                Err(reason) => println!("Skipped({kind:?}): {reason}"),
            }
        }
        drop(targets);
        for (kind, path) in removed {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // The node of a loop device stays, without a backing file.
            let trace = match kind {
                TargetKind::Loop => format!("/sys/block/{name}/loop"),
                _ => format!("/sys/block/{name}"),
            };
            // The kernel detaches a loop device after the close, in its own time.
            let deadline = Instant::now() + Duration::from_secs(5);
            while Path::new(&trace).exists() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(!Path::new(&trace).exists(), "{trace}");
        }
    }
}
