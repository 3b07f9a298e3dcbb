//! The kernel's ublk driver: a block device `/dev/ublkbN` whose requests a process answers.
//!
//! The thread that calls [`Front::begin`](crate::serve::Front::begin) of the queue must answer all requests. Starting and stopping
//! the device read and flush it, so they wait for that thread and belong on another one.
//!
//! When the process dies, the kernel fails the requests and removes the block device. A resumable device stays: its requests wait,
//! those that were not answered are sent again, and another process takes it over ([`Ublk::resume`]), or deletes it
//! ([`delete`]). Nothing in the kernel limits that time.
//!
//! If every request that the kernel permits is under way when the process dies, the kernel notices it only at the next timeout of a
//! request, so that is set to five seconds. A server that lives may take longer.
//!
//! A kernel before Linux 6.15 can crash when a server is killed while it is being sent a request ([`may_crash`]).
//!
//! Limits: one queue. The driver needs Linux 6.4 or later and its module `ublk_drv`.
//!
//! Source: Linux `drivers/block/ublk_drv.c`, `Documentation/block/ublk.rst`.

mod abi;
mod control;
mod queue;

pub use queue::Queue;

use crate::serve::{Discard, Served};
use abi::{Info, Parameters};
use control::Control;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The kernel looks after this time whether the server of a request lives.
const TIMEOUT_MS: u32 = 5000;

/// Why a block device was not made, or not taken over.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// The driver cannot be used.
    #[error("the kernel's ublk driver cannot be used: `{}`", control::PATH)]
    Driver(#[source] io::Error),
    /// There is no such device.
    #[error("/dev/ublkb{0} does not exist any more")]
    Missing(u32),
    /// It has a server.
    #[error("/dev/ublkb{number} has a server: process {pid}")]
    HasServer {
        /// N of `/dev/ublkbN`.
        number: u32,
        /// Process ID of the server.
        pid: i32,
    },
    /// A server of this size cannot answer what the device may send.
    #[error(
        "/dev/ublkb{number} sends up to {wanted_depth} requests of {wanted_bytes} bytes, and {depth} of {bytes} bytes are possible now"
    )]
    TooSmall {
        /// N of `/dev/ublkbN`.
        number: u32,
        /// Its requests at a time.
        wanted_depth: u16,
        /// Its longest request, in bytes.
        wanted_bytes: u32,
        /// Requests at a time that are possible.
        depth: u16,
        /// The longest request that is possible.
        bytes: u32,
    },
    /// A step failed.
    #[error("{step} failed")]
    Step {
        /// The step.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Whether the driver is loaded, in a kernel that has all that is needed of it.
pub fn is_there() -> bool {
    Path::new(control::PATH).exists() && version().is_some_and(|version| version >= (6, 4))
}

/// Looks whether this process can use the driver: it needs io_uring, which an administrator may have disabled.
///
/// # Errors
/// [`UblkError::Driver`].
pub fn check() -> Result<(), UblkError> {
    Control::open().map(drop).map_err(UblkError::Driver)
}

/// Whether this kernel can crash when a server is killed under load: it ends a command that is about to deliver a request, and then
/// uses it. Debian's 6.12.95 did in one or two of about ninety kills (a null pointer in `io_fallback_tw`), and in none of some 800
/// later ones. Linux 6.15 should have a fix, which was not tested here. A release that cannot be read may.
pub fn may_crash() -> bool {
    version().is_none_or(|version| version < (6, 15))
}

/// The first two numbers of the kernel's release.
fn version() -> Option<(u32, u32)> {
    parse_version(&std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
}

fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(|text| text.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// A block device of this process. Dropping it deletes the device, as soon as nothing uses it.
#[derive(Debug)]
pub struct Ublk {
    number: u32,
    device: PathBuf,
    is_resumed: bool,
}

impl Ublk {
    /// Makes a device that sends up to `depth` requests at a time. `is_resumable`: it outlives this process.
    ///
    /// # Errors
    /// [`UblkError`]; then there is no device.
    pub fn add(served: &Served, depth: u16, is_resumable: bool) -> Result<(Self, Queue), UblkError> {
        let failed = |step| move |source| UblkError::Step { step, source };
        let mut control = Control::open().map_err(UblkError::Driver)?;
        let recovery = if is_resumable { abi::USER_RECOVERY | abi::USER_RECOVERY_REISSUE } else { 0 };
        let mut info = Info {
            queue_count: 1,
            queue_depth: depth,
            request_bytes_max: served.request_bytes_max,
            device: u32::MAX,
            flags: abi::IOCTL_ENCODE | recovery,
            ..Info::default()
        };
        // SAFETY: the structure of this command: numbers.
        unsafe { control.exchange(abi::ADD, u32::MAX, &mut info) }.map_err(failed("UBLK_U_CMD_ADD_DEV"))?;
        // From here on, dropping it deletes the device.
        let this = Self::of(info.device, false);
        if info.flags & recovery != recovery {
            let source = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            return Err(UblkError::Step { step: "UBLK_F_USER_RECOVERY_REISSUE", source });
        }
        let mut parameters = parameters(served);
        // SAFETY: as above; the structure begins with its length.
        unsafe { control.exchange(abi::SET_PARAMETERS, info.device, &mut parameters) }
            .map_err(failed("UBLK_U_CMD_SET_PARAMS"))?;
        let queue = Queue::open(info.device, info.queue_depth, served.request_bytes_max)
            .map_err(failed("opening the queue of requests"))?;
        Ok((this, queue))
    }

    /// Takes over a resumable device whose server has died. Waits for at most `limit` until the kernel has noticed that.
    /// `served.request_bytes_max` becomes that of the device.
    ///
    /// # Errors
    /// [`UblkError`]; then the device is as it was before.
    pub fn resume(number: u32, served: &mut Served, depth: u16, limit: Duration) -> Result<(Self, Queue), UblkError> {
        const LOOK: Duration = Duration::from_millis(100);
        let failed = |step| move |source| UblkError::Step { step, source };
        let mut control = Control::open().map_err(UblkError::Driver)?;
        let found = info(&mut control, number)?;
        let (wanted_depth, wanted_bytes) = (found.queue_depth, found.request_bytes_max);
        if wanted_depth > depth || wanted_bytes > served.request_bytes_max {
            let bytes = served.request_bytes_max;
            return Err(UblkError::TooSmall { number, wanted_depth, wanted_bytes, depth, bytes });
        }
        let begin = Instant::now();
        loop {
            // Its server has not ended wholly, or it lives.
            match control.run(abi::START_RECOVERY, number, 0) {
                Ok(()) => break,
                Err(error) if error.raw_os_error() != Some(libc::EBUSY) => {
                    return Err(failed("UBLK_U_CMD_START_USER_RECOVERY")(error));
                }
                Err(_) => {}
            }
            let found = info(&mut control, number)?;
            if begin.elapsed() >= limit {
                return Err(UblkError::HasServer { number, pid: found.server_pid });
            }
            std::thread::sleep(LOOK);
        }
        served.request_bytes_max = wanted_bytes;
        let queue = Queue::open(number, wanted_depth, wanted_bytes).map_err(failed("opening the queue of requests"))?;
        Ok((Self::of(number, true), queue))
    }

    fn of(number: u32, is_resumed: bool) -> Self {
        Self { number, device: PathBuf::from(format!("/dev/ublkb{number}")), is_resumed }
    }

    /// The device.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Starts the device, after the server has begun: the block device appears, or its requests go on. The server's own thread
    /// must not call this.
    ///
    /// # Errors
    /// The kernel's; the device is deleted when this is dropped.
    pub fn start(&self) -> io::Result<()> {
        let code = if self.is_resumed { abi::END_RECOVERY } else { abi::START };
        Control::open()?.run(code, self.number, std::process::id().into())?;
        // An older kernel may not have it; then its default of 30 s holds.
        let _ = std::fs::write(format!("/sys/block/ublkb{}/queue/io_timeout", self.number), TIMEOUT_MS.to_string());
        Ok(())
    }

    /// Stops the device: the kernel writes what is cached, removes the block device, and the queue ends. The server's own thread
    /// must not call this.
    ///
    /// # Errors
    /// The kernel's.
    pub fn stop(&self) -> io::Result<()> {
        Control::open()?.run(abi::STOP, self.number, 0)
    }
}

impl Drop for Ublk {
    fn drop(&mut self) {
        // It fails only if the device is gone.
        let _ = delete(self.number);
    }
}

/// Returns what the driver says about a device that is not stopped.
fn info(control: &mut Control, number: u32) -> Result<Info, UblkError> {
    match control.info(number) {
        Ok(info) if info.state != abi::DEAD => Ok(info),
        Err(error) if error.raw_os_error() != Some(libc::ENODEV) => {
            Err(UblkError::Step { step: "UBLK_U_CMD_GET_DEV_INFO", source: error })
        }
        _ => Err(UblkError::Missing(number)),
    }
}

/// Deletes a device, as soon as nothing uses it: its requests fail, and its block device vanishes. One that is gone is no error.
///
/// # Errors
/// The kernel's.
pub fn delete(number: u32) -> io::Result<()> {
    let mut control = Control::open()?;
    let result = match control.run(abi::DELETE_LATER, number, 0) {
        // Before Linux 6.9 there is only the command that waits until nothing uses the device.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            let delete = move || control.run(abi::DELETE, number, 0);
            std::thread::Builder::new().name("trueio-ublk".to_owned()).spawn(delete).map(drop)
        }
        result => result,
    };
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        result => result,
    }
}

fn parameters(served: &Served) -> Parameters {
    const DISCARD_BYTES_MAX: u32 = 1 << 30;
    let block_bytes = served.block_bytes;
    let mut attributes = 0;
    for (is_set, attribute) in [
        (served.is_read_only, abi::IS_READ_ONLY),
        (served.has_cache, abi::HAS_VOLATILE_CACHE),
        (served.has_cache && served.has_fua, abi::HAS_FUA),
    ] {
        attributes |= if is_set { attribute } else { 0 };
    }
    let shift = block_bytes.trailing_zeros() as u8;
    let physical_shift = shift.max(served.physical_bytes.trailing_zeros() as u8);
    let mut parameters = Parameters {
        bytes: size_of::<Parameters>() as u32,
        types: abi::TYPE_BASIC,
        attributes,
        logical_shift: shift,
        physical_shift,
        optimal_shift: physical_shift,
        minimal_shift: physical_shift,
        sectors_max: served.request_bytes_max / 512,
        sectors: served.block_count * u64::from(block_bytes) / 512,
        ..Parameters::default()
    };
    if !served.is_read_only && served.discard != Discard::None {
        parameters.types |= abi::TYPE_DISCARD;
        parameters.discard_granularity = block_bytes;
        parameters.discard_sectors_max = DISCARD_BYTES_MAX / 512;
        parameters.discard_segments_max = 1;
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> Served {
        Served {
            lun: 0,
            block_bytes: 4096,
            physical_bytes: 8192,
            block_count: 1 << 31,
            request_bytes_max: 128 << 10,
            is_read_only: false,
            has_cache: true,
            has_fua: true,
            discard: Discard::Unmap(16),
            has_no_ata: false,
        }
    }

    #[test]
    fn the_kernel_is_told_what_the_disk_has() {
        let found = parameters(&served());
        assert_eq!((found.attributes, found.types), (abi::HAS_VOLATILE_CACHE | abi::HAS_FUA, 3));
        assert_eq!((found.logical_shift, found.physical_shift), (12, 13));
        assert_eq!((found.sectors, found.sectors_max), (1 << 34, 256));
        assert_eq!((found.discard_granularity, found.discard_segments_max), (4096, 1));
    }

    #[test]
    fn a_disk_without_a_cache_is_sent_no_flush_and_one_that_is_read_only_no_discard() {
        let found = parameters(&Served { has_cache: false, is_read_only: true, ..served() });
        assert_eq!((found.attributes, found.types), (abi::IS_READ_ONLY, abi::TYPE_BASIC));
        assert_eq!(found.discard_sectors_max, 0);
    }

    #[test]
    fn the_version_is_read_from_a_release() {
        for (release, expected) in [
            ("6.12.95+deb12-amd64", Some((6, 12))),
            ("6.15.0-rc5", Some((6, 15))),
            ("6.4", Some((6, 4))),
            ("", None),
            ("6", None),
            ("x", None),
        ] {
            assert_eq!(parse_version(release), expected, "{release}");
        }
    }

    /// Without the driver each call ends in an error that names it; with it, on a device that does not exist.
    #[test]
    fn without_a_device_there_is_a_clear_error() {
        if is_there() {
            return;
        }
        let error = Ublk::add(&served(), 8, false).expect_err("no driver");
        assert_eq!(error.to_string(), "the kernel's ublk driver cannot be used: `/dev/ublk-control`");
        let error = Ublk::resume(0, &mut served(), 8, Duration::ZERO).expect_err("no driver");
        assert!(matches!(error, UblkError::Driver(_)));
        assert!(delete(0).is_err());
    }
}
