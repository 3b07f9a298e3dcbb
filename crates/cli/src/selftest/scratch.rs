//! Files and filesystems in which false results are staged; all are gone when the process ends.
//!
//! Nothing created here has a name that is visible to other processes. Files are created without one
//! (`O_TMPFILE`). Filesystems are mounted in a mount namespace of this process alone, on a tmpfs that covers
//! the directory under test in that namespace only. Loop devices use files without a name and detach
//! themselves (`LO_FLAGS_AUTOCLEAR`). So the kernel removes everything when the process ends, in any way; the
//! guards below only do it earlier.
//!
//! Limits: without root, only files can be created.
//!
//! Source: mount_namespaces(7), loop(4), open(2) `O_TMPFILE`.

use rustix::fs::{Mode, OFlags};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// `struct loop_info64` of `<linux/loop.h>`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}
const _: () = assert!(size_of::<LoopInfo>() == 232);

/// `struct loop_config` of `<linux/loop.h>`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}
const _: () = assert!(size_of::<LoopConfig>() == 304);

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4c82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4c0a;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Creates a file without a name in a directory.
pub(crate) fn nameless(directory: impl AsFd, flags: OFlags) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | flags;
    Ok(rustix::fs::openat(directory, ".", flags, Mode::RUSR | Mode::WUSR).map(File::from)?)
}

/// Returns the reason why this process cannot mount; `None` if it may try.
fn why_not_root() -> Option<String> {
    // SAFETY: a plain call without arguments.
    (unsafe { libc::geteuid() } != 0).then(|| "mounting needs root".to_owned())
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

fn mount(source: &str, target: &Path, kind: &str, flags: libc::c_ulong, options: &str) -> io::Result<()> {
    let c = |text: &str| CString::new(text).map_err(io::Error::from);
    let (source, target, kind, options) = (c(source)?, c_path(target)?, c(kind)?, c(options)?);
    // SAFETY: four strings that end with a zero and outlive the call.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) })
}

/// A mounted filesystem; unmounted when dropped.
#[derive(Debug)]
pub(crate) struct Mounted {
    pub(crate) path: PathBuf,
}

impl Mounted {
    fn new(source: &str, path: &Path, kind: &str, flags: libc::c_ulong, options: &str) -> io::Result<Self> {
        mount(source, path, kind, flags, options)?;
        Ok(Self { path: path.to_owned() })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let Ok(path) = c_path(&self.path) else { return };
        // A closed io_uring releases its files a moment later.
        for _ in 0..50 {
            // SAFETY: a string that ends with a zero.
            if check(unsafe { libc::umount2(path.as_ptr(), 0) }).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // SAFETY: as above.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
}

/// A tmpfs that is visible only to this process, with mount points.
#[derive(Debug)]
pub(crate) struct Scratch {
    tmpfs: Mounted,
    /// The directory that the tmpfs covers.
    below: File,
}

impl Scratch {
    /// Covers `directory` with a tmpfs, in a mount namespace of this process alone. From then on this process
    /// cannot access the directory itself.
    ///
    /// # Errors
    /// The reason why nothing can be mounted.
    pub(crate) fn new(directory: &Path) -> Result<Self, String> {
        if let Some(why) = why_not_root() {
            return Err(why);
        }
        let below = File::open(directory).map_err(|e| format!("`{}` cannot be opened: {e}", directory.display()))?;
        let failed = |what: &str, error: io::Error| format!("{what}: {error}");
        // SAFETY: the calling thread leaves the mount namespace that it shares with other processes. It is
        // the only thread: workers of earlier jobs are joined, and later ones inherit the new namespace.
        check(unsafe { libc::unshare(libc::CLONE_NEWNS) })
            .map_err(|e| failed("a separate mount namespace was refused", e))?;
        mount("none", Path::new("/"), "", libc::MS_REC | libc::MS_PRIVATE, "")
            .map_err(|e| failed("mounts could not be made private", e))?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        let tmpfs = Mounted::new("trueio-selftest", directory, "tmpfs", flags, "size=192m,mode=700")
            .map_err(|e| failed("a tmpfs could not be mounted", e))?;
        // `/` cannot be covered: files created below it would be real.
        let seen = rustix::fs::statfs(directory).map_err(|e| failed("statfs", e.into()))?;
        if seen.f_type as u64 != TMPFS_MAGIC || same_file(&below, directory) {
            return Err(format!("`{}` cannot be covered by a mount", directory.display()));
        }
        Ok(Self { tmpfs, below })
    }

    /// Returns the tmpfs.
    pub(crate) fn path(&self) -> &Path {
        &self.tmpfs.path
    }

    /// Creates a filesystem on a new loop device over a file without a name on the disk.
    pub(crate) fn filesystem(&self, name: &str, kind: &str, size_bytes: u64) -> Result<Disk, String> {
        let image =
            nameless(&self.below, OFlags::empty()).map_err(|e| format!("cannot create a file without a name: {e}"))?;
        self.filesystem_on(&image, name, kind, size_bytes, LO_FLAGS_DIRECT_IO)
    }

    /// Creates a filesystem on a new loop device over a file on the tmpfs.
    pub(crate) fn filesystem_in_memory(&self, name: &str, kind: &str, size_bytes: u64) -> Result<Disk, String> {
        // With a name, so that the devices below the loop device are visible.
        let path = self.path().join(format!("{name}.image"));
        let image = File::options().read(true).write(true).create_new(true).open(&path);
        let image = image.map_err(|e| format!("`{}`: {e}", path.display()))?;
        self.filesystem_on(&image, name, kind, size_bytes, 0)
    }

    fn filesystem_on(&self, image: &File, name: &str, kind: &str, size_bytes: u64, flags: u32) -> Result<Disk, String> {
        image.set_len(size_bytes).map_err(|e| format!("cannot create a sparse file: {e}"))?;
        let (device, path) = attach(image, flags).map_err(|e| format!("cannot set up a loop device: {e}"))?;
        let quiet: &[&str] = match kind {
            "ext4" => &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
            _ => &["-q", "-f"],
        };
        let made = Command::new(format!("mkfs.{kind}")).args(quiet).arg(&path).stdin(Stdio::null()).output();
        let made = made.map_err(|e| format!("mkfs.{kind}: {e}"))?;
        if !made.status.success() {
            return Err(format!("mkfs.{kind}: {}", String::from_utf8_lossy(&made.stderr).trim()));
        }
        let mount_point = self.path().join(name);
        std::fs::create_dir(&mount_point).map_err(|e| format!("`{}`: {e}", mount_point.display()))?;
        Ok(Disk { path, kind: kind.to_owned(), mount_point, _device: device })
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: io::Result<std::fs::Metadata>| metadata.ok().map(|m| (m.dev(), m.ino()));
    identity(file.metadata()) == identity(std::fs::metadata(path))
}

/// A filesystem on a loop device, which is detached at its last close.
#[derive(Debug)]
pub(crate) struct Disk {
    path: PathBuf,
    kind: String,
    mount_point: PathBuf,
    _device: File,
}

impl Disk {
    /// Mounts it; one mount at a time.
    pub(crate) fn mount(&self, options: &str) -> Result<Mounted, String> {
        let source = self.path.to_string_lossy();
        Mounted::new(&source, &self.mount_point, &self.kind, libc::MS_NOATIME, options)
            .map_err(|e| format!("mount -t {} -o {options}: {e}", self.kind))
    }
}

/// Attaches a file to a free loop device, and returns the device and its path.
fn attach(image: &File, flags: u32) -> io::Result<(File, PathBuf)> {
    let control = File::open("/dev/loop-control")?;
    let mut last = io::Error::other("no loop device is free");
    for _ in 0..16 {
        // SAFETY: this request takes no argument and returns a number.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = File::options().read(true).write(true).open(&path)?;
        // SAFETY: the structure contains only integers, for which zeros are valid.
        let mut config: LoopConfig = unsafe { std::mem::zeroed() };
        config.fd = image.as_raw_fd() as u32;
        config.info.flags = flags | LO_FLAGS_AUTOCLEAR;
        // SAFETY: the kernel reads the structure, which outlives the call.
        match check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) }) {
            Ok(()) => return Ok((device, path)),
            // Another process took it: try the next one.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}
