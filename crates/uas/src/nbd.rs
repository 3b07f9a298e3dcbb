//! The kernel's NBD client: connects a block device `/dev/nbdN` to a socket.
//!
//! The client is in the module `nbd`. A device is connected by netlink and belongs to no process: it outlives a suspend of the machine. If its
//! server dies, new requests fail at once, and those under way when the device is disconnected ([`end`]), or at the latest after the
//! time limit of [`Nbd::connect`].
//!
//! Before Linux 4.12, and in a network namespace of its own, there is no such family of netlink. There a device is connected by ioctls: it ends with
//! its process, and in a suspend ([`Nbd::outlives_suspend`]).
//!
//! A thread that waits for the device has descriptors of its own ([`Nbd::prepare_thread`]).
//!
//! Limits: one connection.
//!
//! Source: Linux `drivers/block/nbd.c`, `include/uapi/linux/nbd-netlink.h`, `include/uapi/linux/nbd.h`.

mod ioctl;
mod netlink;
mod thread;

use crate::serve::{Discard, Served};
use ioctl::Ioctls;
use netlink::{Connection, Netlink};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HAS_FLAGS: u64 = 1;
const READ_ONLY: u64 = 1 << 1;
const SEND_FLUSH: u64 = 1 << 2;
const SEND_FUA: u64 = 1 << 3;
const SEND_TRIM: u64 = 1 << 5;

/// Why a block device was not connected.
#[derive(Debug, thiserror::Error)]
pub enum NbdError {
    /// The module is not there.
    #[error("the kernel's NBD client is not loaded: /sys/block has no nbd0")]
    NoModule,
    /// All devices are taken.
    #[error("all {0} devices of the kernel's NBD client are in use")]
    AllTaken(usize),
    /// A step failed.
    #[error("`{}`: {step} failed", device.display())]
    Step {
        /// The device.
        device: PathBuf,
        /// The step.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Identifies a device that was connected by netlink, for another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NbdId {
    /// The number of the device.
    pub number: u32,
    /// The process that connected it (`/sys/block/nbdN/pid`).
    pub pid: u32,
}

impl NbdId {
    /// Reads it from sysfs; `None`: the device is not connected.
    fn of(number: u32) -> Option<Self> {
        let pid = fs::read_to_string(format!("/sys/block/nbd{number}/pid")).ok()?.trim().parse().ok()?;
        Some(Self { number, pid })
    }
}

/// A connected block device. Dropping it disconnects it.
#[derive(Debug)]
pub struct Nbd {
    /// `/dev/nbdN`.
    device: PathBuf,
    /// The server's end of the socket, which its owner closes.
    server_end: RawFd,
    by: By,
}

/// How a device was connected.
#[derive(Debug)]
enum By {
    Netlink(Netlink, NbdId),
    Ioctls(Ioctls),
}

/// Returns the numbers of devices without a client, in their order.
fn free() -> Result<Vec<u32>, NbdError> {
    let entries = fs::read_dir("/sys/block").map_err(|_| NbdError::NoModule)?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut numbers: Vec<u32> = names.filter_map(|name| name.strip_prefix("nbd")?.parse().ok()).collect();
    if numbers.is_empty() {
        return Err(NbdError::NoModule);
    }
    numbers.sort_unstable();
    let count = numbers.len();
    // The file `pid` exists while a client runs.
    numbers.retain(|number| !Path::new(&format!("/sys/block/nbd{number}/pid")).exists());
    if numbers.is_empty() { Err(NbdError::AllTaken(count)) } else { Ok(numbers) }
}

impl Nbd {
    /// Connects a free device to a disk that is served; returns it with the server's end of the socket, where requests wait. `timeout`: the kernel
    /// ends the device when a request has not been answered for so long, in whole seconds.
    ///
    /// # Errors
    /// [`NbdError`]; then nothing is connected.
    pub fn connect(served: &Served, timeout: Duration) -> Result<(Self, UnixStream), NbdError> {
        let mut last = NbdError::NoModule;
        for number in free()? {
            match Self::connect_one(number, served, timeout) {
                // Another program took it just now, or has it open.
                Err(NbdError::Step { source, device, step }) if source.raw_os_error() == Some(libc::EBUSY) => {
                    last = NbdError::Step { device, step, source };
                }
                result => return result,
            }
        }
        Err(last)
    }

    fn connect_one(number: u32, served: &Served, timeout: Duration) -> Result<(Self, UnixStream), NbdError> {
        let device = PathBuf::from(format!("/dev/nbd{number}"));
        let failed = |step| {
            let device = device.clone();
            move |source| NbdError::Step { device, step, source }
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed("a socket pair"))?;
        let set_limit = || {
            // Before the device runs: no request is longer than the server's buffers.
            let kib = served.request_bytes_max / 1024;
            fs::write(format!("/sys/block/nbd{number}/queue/max_sectors_kb"), kib.to_string())
                .map_err(failed("setting queue/max_sectors_kb"))
        };
        let flags = flags_of(served);
        // In both cases the kernel holds its own reference to its end of the socket.
        let by = if let Some(netlink) = Netlink::open().map_err(failed("opening netlink"))? {
            set_limit()?;
            let connection = Connection {
                number,
                size_bytes: served.block_count * u64::from(served.block_bytes),
                block_bytes: served.block_bytes,
                timeout,
                flags,
                socket: theirs.as_fd(),
            };
            netlink.connect(&connection).map_err(failed("NBD_CMD_CONNECT"))?;
            let Some(id) = NbdId::of(number) else {
                // Best effort: it is not ours if it vanished.
                let _ = netlink.disconnect(number);
                return Err(failed("reading its process in /sys/block")(io::ErrorKind::NotFound.into()));
            };
            By::Netlink(netlink, id)
        } else {
            let ioctls = Ioctls::connect(&device, served, flags, theirs.as_fd())?;
            set_limit()?;
            By::Ioctls(ioctls)
        };
        let server_end = ours.as_raw_fd();
        Ok((Self { device, server_end, by }, ours))
    }

    /// The device.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Returns the device for [`end`], by which another process ends it when this one has died. `None`: the kernel ends it.
    pub fn id(&self) -> Option<NbdId> {
        match self.by {
            By::Netlink(_, id) => Some(id),
            By::Ioctls(_) => None,
        }
    }

    /// Whether it goes on after a suspend of the machine. One that was connected by ioctls ends with an error.
    pub fn outlives_suspend(&self) -> bool {
        self.id().is_some()
    }

    /// Lets the device run: from now on the kernel sends requests. One that was connected by netlink runs already.
    ///
    /// # Errors
    /// No thread or descriptor.
    pub fn run(&mut self) -> io::Result<()> {
        match &mut self.by {
            By::Netlink(..) => Ok(()),
            By::Ioctls(ioctls) => ioctls.run(),
        }
    }

    /// Lets the kernel read the partitions, which it does when the device is opened. Waits for the server, so its own thread must not call this.
    ///
    /// # Errors
    /// The device cannot be opened.
    pub fn scan_partitions(&self) -> io::Result<()> {
        File::open(&self.device).map(drop)
    }

    /// Prepares the calling thread for calls that wait for the device ([`is_claimed`](crate::block::is_claimed), [`Self::disconnect`]): if the
    /// process is killed meanwhile, the thread does not keep the server's end of the socket open, nor anything else of the process but
    /// standard input, output and error and the descriptors `kept`. It receives no signal any more.
    ///
    /// # Errors
    /// No memory for descriptors.
    pub fn prepare_thread(&self, kept: &[RawFd]) -> io::Result<()> {
        thread::leave_descriptors(kept)
    }

    /// Shuts the server's end of the socket down: the kernel fails every request, although the server hangs. The server still
    /// exists, and the calling thread shares its descriptors.
    pub fn fail(&self) {
        // SAFETY: plain call; the descriptor is open as long as the server exists.
        unsafe { libc::shutdown(self.server_end, libc::SHUT_RDWR) };
        self.close();
    }

    /// Fails every request that the server has not answered. Called when the server is gone, before anything waits for the device.
    pub fn close(&self) {
        if let By::Netlink(netlink, id) = &self.by
            && NbdId::of(id.number) == Some(*id)
        {
            // It fails only if the device is gone.
            let _ = netlink.disconnect(id.number);
        }
    }

    /// Writes what is cached, and asks the kernel to send a disconnect request after all others. The server's own thread must not call this.
    ///
    /// # Errors
    /// The kernel's. The device is disconnected although the cache could not be written.
    pub fn disconnect(&self) -> io::Result<()> {
        // The kernel's client writes nothing by itself. Programs that had it open have left it to the page cache.
        let file = File::open(&self.device)?;
        let written = file.sync_all();
        ioctl::disconnect(&file)?;
        written.map_err(|error| io::Error::new(error.kind(), format!("pending writes are lost: {error}")))
    }
}

impl Drop for Nbd {
    fn drop(&mut self) {
        self.close();
    }
}

/// Ends a device whose server has died: all its requests fail. Returns whether it was there.
///
/// # Errors
/// The kernel's.
pub fn end(id: NbdId) -> io::Result<bool> {
    // Another program may have the number by now.
    if NbdId::of(id.number) != Some(id) {
        return Ok(false);
    }
    let netlink = Netlink::open()?.ok_or_else(|| io::Error::other("netlink has no family nbd any more"))?;
    netlink.disconnect(id.number).map(|()| true)
}

/// Returns the flags of the connection for a disk.
fn flags_of(served: &Served) -> u64 {
    let flags = [
        (served.is_read_only, READ_ONLY),
        (served.has_cache, SEND_FLUSH),
        (served.has_cache && served.has_fua, SEND_FUA),
        (!served.is_read_only && served.discard != Discard::None, SEND_TRIM),
    ];
    flags.iter().fold(HAS_FLAGS, |all, (is_set, flag)| if *is_set { all | flag } else { all })
}
