//! The operations of a switch that need a running machine: writing to sysfs, claiming and reading a disk,
//! waiting.
//!
//! Cannot see: the effect of a write to sysfs; the caller reads sysfs again.

use crate::state::SwitchState;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;
use trueio_device::System;

/// Bytes that are read at each end of a disk.
const END_BYTES: u64 = 64 << 10;
/// Time limit for reading both ends of a disk.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Default time limit for a disk to return.
pub const WAIT: Duration = Duration::from_secs(30);

/// The operations of a switch on a machine.
pub trait Hands {
    /// Writes a file of sysfs with one call.
    ///
    /// # Errors
    /// The kernel's error: ENXIO and ENODEV if a driver does not accept the interface.
    fn write(&mut self, path: &str, text: &str) -> io::Result<()>;

    /// Opens a disk (`sda`) with `O_EXCL`, which prevents mounting, and keeps it open.
    ///
    /// # Errors
    /// EBUSY: another program has claimed it.
    fn claim(&mut self, block: &str) -> io::Result<()>;

    /// Flushes the cache of a claimed disk.
    ///
    /// # Errors
    /// The disk refused the flush, or is gone.
    fn flush(&mut self, block: &str) -> io::Result<()>;

    /// Returns a checksum of both ends of a disk.
    ///
    /// # Errors
    /// The disk cannot be read, or not within the time limit.
    fn ends(&mut self, block: &str) -> io::Result<u64>;

    /// Closes the claimed disks.
    fn release(&mut self);

    /// Time limit for a disk to return on a transport.
    fn wait(&self) -> Duration {
        WAIT
    }

    /// Waits.
    fn pause(&mut self, time: Duration);

    /// Records the state of the switch.
    ///
    /// # Errors
    /// The file cannot be written.
    fn save(&mut self, state: &SwitchState) -> io::Result<()>;

    /// Removes the recorded state of an interface.
    ///
    /// # Errors
    /// The file cannot be removed.
    fn clear(&mut self, interface: &str) -> io::Result<()>;
}

/// The implementation on this machine.
#[derive(Debug)]
pub struct LiveHands {
    claimed: BTreeMap<String, File>,
    states: PathBuf,
    wait: Duration,
}

impl LiveHands {
    /// Keeps states in `states`; `wait` is the time limit for a disk to return.
    pub fn new(states: PathBuf, wait: Duration) -> Self {
        Self { claimed: BTreeMap::new(), states, wait }
    }
}

impl Hands for LiveHands {
    fn wait(&self) -> Duration {
        self.wait
    }

    fn write(&mut self, path: &str, text: &str) -> io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).open(System::live().locate(path))?;
        // A write of no bytes has no effect in the kernel; it ignores a newline.
        let bytes = if text.is_empty() { b"\n" } else { text.as_bytes() };
        let written = file.write(bytes)?;
        if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn claim(&mut self, block: &str) -> io::Result<()> {
        let file = open(block, OFlags::EXCL)?;
        self.claimed.insert(block.to_owned(), file);
        Ok(())
    }

    fn flush(&mut self, block: &str) -> io::Result<()> {
        match self.claimed.get(block) {
            // fsync of a block device sends SYNCHRONIZE CACHE.
            Some(file) => file.sync_all(),
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("{block} is not claimed"))),
        }
    }

    fn ends(&mut self, block: &str) -> io::Result<u64> {
        let file = match self.claimed.get(block) {
            Some(file) => file.try_clone()?,
            None => open(block, OFlags::empty())?,
        };
        let (sender, receiver) = mpsc::channel();
        // A disk that hangs blocks its reader in the kernel, so the thread is not joined.
        std::thread::spawn(move || {
            let _ = sender.send(read_ends(&file));
        });
        receiver.recv_timeout(READ_TIMEOUT).unwrap_or_else(|_| {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("{block} did not complete a read within {} s", READ_TIMEOUT.as_secs()),
            ))
        })
    }

    fn release(&mut self) {
        self.claimed.clear();
    }

    fn pause(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn save(&mut self, state: &SwitchState) -> io::Result<()> {
        state.save(&self.states)
    }

    fn clear(&mut self, interface: &str) -> io::Result<()> {
        SwitchState::clear(&self.states, interface)
    }
}

/// Opens the device node of a disk for reading and compares its number with sysfs: a stale node of another
/// disk must not be used.
fn open(block: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(format!("/dev/{block}"), flags, Mode::empty())?);
    let number = file.metadata()?.rdev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let expected = std::fs::read_to_string(format!("/sys/block/{block}/dev"))?;
    if expected.trim() == number {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("/dev/{block} has device number {number}, but {block} is {expected}"),
        ))
    }
}

fn read_ends(file: &File) -> io::Result<u64> {
    use std::io::{Seek, SeekFrom};
    let size = (&mut &*file).seek(SeekFrom::End(0))?;
    let mut bytes = vec![0; END_BYTES.min(size) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let mut hash = fnv(0xcbf2_9ce4_8422_2325, &bytes);
    let last = size - bytes.len() as u64;
    file.read_exact_at(&mut bytes, last)?;
    hash = fnv(hash, &bytes);
    Ok(fnv(hash, &size.to_le_bytes()))
}

/// FNV-1a. The state file holds the value, and another build may read it, so it must not change.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
