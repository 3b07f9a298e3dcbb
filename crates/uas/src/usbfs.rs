//! The transport of Linux: `/dev/bus/usb/BUS/DEVICE` (usbfs), with streams.
//!
//! The interface is claimed together with the disconnection of the kernel's driver (`USBDEVFS_DISCONNECT_CLAIM`), so no other
//! driver binds in between. It is given back when the transport is dropped: setting 0, release, and the kernel chooses a
//! driver. When the process dies without that (SIGKILL), the kernel ends the transfers and releases the interface, but binds
//! no driver; `echo INTERFACE > /sys/bus/usb/drivers_probe` does.
//!
//! Limits: Linux 3.15 or later (streams through usbfs). The memory of all transfers of all programs is limited by
//! `/sys/module/usbcore/parameters/usbfs_memory_mb`; a transfer beyond it fails with ENOMEM, so the caller plans with
//! [`memory_bytes`]. Data is copied once between the kernel's buffers and ours.
//!
//! Source: Linux `drivers/usb/core/devio.c`, `Documentation/driver-api/usb/usb.rst`.

mod abi;
mod wake;

use crate::host::{Ended, Moved, Transport};
use crate::request::{Pipe, Transfer, TransferError};
use abi::{Urb, ioctl};
use std::cell::UnsafeCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wake::Wake;

/// Where the limit of the memory of all transfers is.
pub const MEMORY_PARAMETER: &str = "/sys/module/usbcore/parameters/usbfs_memory_mb";

/// Returns how many bytes all transfers of usbfs may use together; `None`: without limit (the parameter is 0).
///
/// # Errors
/// The parameter cannot be read: usbcore is not there.
pub fn memory_bytes() -> io::Result<Option<u64>> {
    let text = std::fs::read_to_string(MEMORY_PARAMETER)?;
    let mib: u64 = text.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok((mib > 0).then_some(mib << 20))
}

/// The addresses of the four endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// Command pipe.
    pub command: u8,
    /// Status pipe.
    pub status: u8,
    /// Data-in pipe.
    pub data_in: u8,
    /// Data-out pipe.
    pub data_out: u8,
}

/// The interface of a device that offers UAS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// `/dev/bus/usb/BUS/DEVICE`.
    pub node: PathBuf,
    /// `bInterfaceNumber`.
    pub number: u8,
    /// The alternate setting that is UAS.
    pub setting: u8,
    /// Its endpoints.
    pub endpoints: Endpoints,
    /// Streams that the device offers; 0: the link has none (USB 2).
    pub stream_count: u32,
}

/// Why an interface was not claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// There is no usbfs.
    #[error("`{}` does not exist: the kernel has no usbfs, or the device was unplugged", node.display())]
    NoNode {
        /// The path.
        node: PathBuf,
    },
    /// The node cannot be opened.
    #[error("`{}` cannot be opened for writing; only root may, unless a udev rule allows it", node.display())]
    Permission {
        /// The path.
        node: PathBuf,
    },
    /// The node cannot be opened for another reason.
    #[error("`{}` cannot be opened", node.display())]
    Open {
        /// The path.
        node: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A program has claimed the interface.
    #[error("interface {number} of `{}` is claimed by another program (driver usbfs)", node.display())]
    Claimed {
        /// The path.
        node: PathBuf,
        /// `bInterfaceNumber` of the interface.
        number: u8,
    },
    /// The interface cannot be set up.
    #[error("interface {number} of `{}`: {step} failed", node.display())]
    Step {
        /// The path.
        node: PathBuf,
        /// `bInterfaceNumber` of the interface.
        number: u8,
        /// What failed.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The host controller has no streams.
    #[error(
        "`{}`: the device is on a USB 3 link, where UAS needs streams, and its host controller has none; use a port of another \
         controller, or a USB 2 port",
        node.display()
    )]
    NoStreams {
        /// The path.
        node: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

/// A claimed interface.
#[derive(Debug)]
pub struct Usbfs {
    file: File,
    epoll: OwnedFd,
    wake: Wake,
    interface: Interface,
    /// Streams that were allocated; 0 without them.
    streams: u16,
    is_claimed: bool,
    // One for each pipe of each slot: command, status, data.
    urbs: Box<[UnsafeCell<Urb>]>,
    slots: usize,
    clock: Instant,
    moved: Moved,
}

// SAFETY: the pointers in the URBs are addresses for the kernel; this type does not read through them.
unsafe impl Send for Usbfs {}

/// The most slots: more than any device has streams that are used here.
const SLOTS_MAX: u32 = 64;
/// Slots without streams, as Linux `uas` uses.
const SLOTS_WITHOUT_STREAMS: u16 = 32;

impl Usbfs {
    /// Opens and claims an interface.
    ///
    /// # Errors
    /// [`ClaimError`]; then the interface is as it was before.
    pub fn claim(interface: &Interface) -> Result<Self, ClaimError> {
        let node = || interface.node.clone();
        let file = open(&interface.node)?;
        let step = |step| move |source| ClaimError::Step { node: node(), number: interface.number, step, source };
        // SAFETY: epoll_create1 returns a descriptor without another owner.
        let epoll = match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            -1 => return Err(step("epoll_create1")(io::Error::last_os_error())),
            // SAFETY: it was created just now.
            descriptor => unsafe { OwnedFd::from_raw_fd(descriptor) },
        };
        // usbfs reports a transfer that has ended as writability.
        let mut event = libc::epoll_event { events: libc::EPOLLOUT as u32, u64: 0 };
        // SAFETY: plain call with an event that lives while it runs.
        if unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, file.as_raw_fd(), &raw mut event) } != 0 {
            return Err(step("epoll_ctl")(io::Error::last_os_error()));
        }
        let mut this = Self {
            file,
            epoll,
            wake: Wake::start().map_err(step("timerfd_create"))?,
            interface: interface.clone(),
            streams: 0,
            is_claimed: false,
            urbs: Box::new([]),
            slots: 0,
            clock: Instant::now(),
            moved: Moved::default(),
        };
        // If a step fails, dropping it gives the interface back.
        this.set_up()?;
        let slots = if this.streams > 0 { this.streams } else { SLOTS_WITHOUT_STREAMS };
        this.slots = usize::from(slots);
        this.urbs = (0..this.slots * 3).map(|_| UnsafeCell::new(Urb::NONE)).collect();
        Ok(this)
    }

    fn set_up(&mut self) -> Result<(), ClaimError> {
        let Interface { number, setting, endpoints, stream_count, ref node } = self.interface;
        let node = || node.clone();
        let step = |step| move |source| ClaimError::Step { node: node(), number, step, source };
        let driver = self.driver();
        if driver.as_deref() == Some("usbfs") {
            return Err(ClaimError::Claimed { node: node(), number });
        }
        self.disconnect_claim().map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => ClaimError::Claimed { node: node(), number },
            _ => step("claiming it")(error),
        })?;
        self.is_claimed = true;
        let mut setting = abi::SetInterface { interface: number.into(), setting: setting.into() };
        // SAFETY: as above.
        unsafe { ioctl(&self.file, abi::SET_INTERFACE, &raw mut setting) }.map_err(step("selecting UAS"))?;
        if stream_count == 0 {
            return Ok(());
        }
        let mut streams = self.stream_call(stream_count.min(SLOTS_MAX), endpoints);
        // SAFETY: as above; the call writes nothing.
        let granted = unsafe { ioctl(&self.file, abi::ALLOC_STREAMS, &raw mut streams) }
            .map_err(|source| ClaimError::NoStreams { node: node(), source })?;
        if granted < 2 {
            let source = io::Error::from_raw_os_error(libc::ENOSPC);
            return Err(ClaimError::NoStreams { node: node(), source });
        }
        self.streams = granted as u16;
        Ok(())
    }

    fn stream_call(&self, stream_count: u32, endpoints: Endpoints) -> abi::Streams {
        let Endpoints { status, data_in, data_out, .. } = endpoints;
        abi::Streams { stream_count, endpoint_count: 3, endpoints: [status, data_in, data_out] }
    }

    /// Returns the driver that is bound to the interface.
    fn driver(&self) -> Option<String> {
        let mut call = abi::GetDriver { interface: self.interface.number.into(), driver: [0; 256] };
        // SAFETY: the structure that the call fills.
        unsafe { ioctl(&self.file, abi::GET_DRIVER, &raw mut call) }.ok()?;
        let end = call.driver.iter().position(|byte| *byte == 0)?;
        String::from_utf8(call.driver[..end].to_vec()).ok()
    }

    /// The interface.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The number of commands that can be in flight: one slot is for task management.
    pub fn depth(&self) -> u16 {
        self.slots as u16 - 1
    }

    /// True if the interface has streams.
    pub fn has_streams(&self) -> bool {
        self.streams > 0
    }

    fn index(&self, pipe: Pipe, slot: u16) -> usize {
        let pipe = match pipe {
            Pipe::Command => 0,
            Pipe::Status => 1,
            Pipe::DataIn | Pipe::DataOut => 2,
        };
        pipe * self.slots + usize::from(slot)
    }

    /// Claims the interface again if the kernel has taken it, as it does at the end of a suspend; returns whether it is ours.
    ///
    /// The kernel lets its drivers bind then, in a thread that does not hold the lock of the device. A reset while a driver is half bound
    /// crashes Linux 6.1 (`usb_stor_pre_reset` without its data). So a driver gets time to bind, and is disconnected when it has bound.
    fn take_back(&mut self) -> bool {
        const TO_BIND: Duration = Duration::from_millis(500);
        const LIMIT: Duration = Duration::from_secs(5);
        let begin = Instant::now();
        loop {
            let driver = self.driver();
            if driver.as_deref() == Some("usbfs") {
                return true;
            }
            if driver.is_some() || begin.elapsed() >= TO_BIND {
                match self.disconnect_claim() {
                    Ok(()) => {
                        self.is_claimed = true;
                        return true;
                    }
                    // It is half bound.
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < LIMIT => {}
                    Err(_) => return false,
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Disconnects the driver of the interface, if it has one, and claims it.
    fn disconnect_claim(&self) -> io::Result<()> {
        let number = self.interface.number;
        let mut claim = abi::DisconnectClaim { interface: number.into(), flags: 0, driver: [0; 256] };
        // SAFETY: the structure that the call takes.
        unsafe { ioctl(&self.file, abi::DISCONNECT_CLAIM, &raw mut claim) }.map(drop)
    }

    /// Frees the streams, selects setting 0 and releases the interface. Errors mean that the device is gone.
    fn release(&mut self) {
        if !std::mem::take(&mut self.is_claimed) {
            return;
        }
        let number = self.interface.number;
        if self.streams > 0 {
            let mut streams = self.stream_call(0, self.interface.endpoints);
            // SAFETY: the structure that the call takes.
            let _ = unsafe { ioctl(&self.file, abi::FREE_STREAMS, &raw mut streams) };
            self.streams = 0;
        }
        let mut setting = abi::SetInterface { interface: number.into(), setting: 0 };
        // SAFETY: as above.
        let _ = unsafe { ioctl(&self.file, abi::SET_INTERFACE, &raw mut setting) };
        let mut number = u32::from(number);
        // SAFETY: as above.
        let _ = unsafe { ioctl(&self.file, abi::RELEASE_INTERFACE, &raw mut number) };
    }

    /// Lets the kernel bind a driver to the interface, which is released.
    fn connect(&self) {
        let number = i32::from(self.interface.number);
        let mut call = abi::DriverCall { interface: number, code: abi::CONNECT, data: std::ptr::null_mut() };
        // SAFETY: the structure that the call takes; CONNECT has no data.
        let _ = unsafe { ioctl(&self.file, abi::DRIVER_CALL, &raw mut call) };
    }

    /// Cancels every transfer and waits for their ends, so that no buffer is in use.
    fn discard_all(&mut self) {
        for index in 0..self.urbs.len() {
            // SAFETY: the address of an URB of ours. The call fails if it is not pending.
            let _ = unsafe { ioctl(&self.file, abi::DISCARD_URB, self.urbs[index].get()) };
        }
        // Discarding waits for the end of each; reaping takes them from the list.
        while let Ok(Some(_)) = self.reap_now() {}
    }

    fn reap_now(&mut self) -> Result<Option<Ended>, TransferError> {
        let mut urb: *mut Urb = std::ptr::null_mut();
        // SAFETY: the call writes the address of an URB that was submitted, which is one of `urbs`.
        match unsafe { ioctl(&self.file, abi::REAP_URB_NO_DELAY, &raw mut urb) } {
            Ok(_) => {}
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                    Some(libc::ENODEV) => Err(TransferError::Gone),
                    code => Err(TransferError::Bus(code.unwrap_or(libc::EIO))),
                };
            }
        }
        // SAFETY: the kernel has written the results and does not use it any more.
        let urb = unsafe { *urb };
        let (place, slot) = (urb.context / self.slots, (urb.context % self.slots) as u16);
        let pipe = match place {
            0 => Pipe::Command,
            1 => Pipe::Status,
            _ if urb.endpoint == self.interface.endpoints.data_in => Pipe::DataIn,
            _ => Pipe::DataOut,
        };
        let bytes = urb.actual_bytes.max(0) as u32;
        match pipe {
            Pipe::DataIn => self.moved.in_bytes += u64::from(bytes),
            Pipe::DataOut => self.moved.out_bytes += u64::from(bytes),
            Pipe::Command | Pipe::Status => {}
        }
        let result = match -urb.status {
            0 => Ok(bytes),
            libc::ENOENT | libc::ECONNRESET => Err(TransferError::Cancelled),
            libc::EPIPE => Err(TransferError::Stall),
            libc::ENODEV | libc::ESHUTDOWN => Err(TransferError::Gone),
            code => Err(TransferError::Bus(code)),
        };
        Ok(Some(Ended { pipe, slot, result }))
    }
}

fn open(node: &Path) -> Result<File, ClaimError> {
    OpenOptions::new().read(true).write(true).open(node).map_err(|source| {
        let node = node.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => ClaimError::NoNode { node },
            io::ErrorKind::PermissionDenied => ClaimError::Permission { node },
            _ => ClaimError::Open { node, source },
        }
    })
}

impl Drop for Usbfs {
    fn drop(&mut self) {
        self.discard_all();
        let was_claimed = self.is_claimed;
        self.release();
        if was_claimed {
            self.connect();
        }
    }
}

impl Transport for Usbfs {
    /// Readable also when the device is gone.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    fn now_ns(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    unsafe fn submit(&mut self, transfer: Transfer, buffer: *mut u8) -> Result<(), TransferError> {
        let Transfer { pipe, slot, stream, bytes } = transfer;
        let Endpoints { command, status, data_in, data_out } = self.interface.endpoints;
        let endpoint = match pipe {
            Pipe::Command => command,
            Pipe::Status => status,
            Pipe::DataIn => data_in,
            Pipe::DataOut => data_out,
        };
        let context = self.index(pipe, slot);
        let urb = self.urbs[context].get();
        // SAFETY: the kernel does not use this URB: it is submitted again only after it was reaped.
        unsafe {
            *urb = Urb { endpoint, buffer, buffer_bytes: bytes as i32, stream: stream.into(), context, ..Urb::NONE };
        }
        // SAFETY: the URB is in a box that lives until all are discarded; the buffer is valid by the caller's contract.
        match unsafe { ioctl(&self.file, abi::SUBMIT_URB, urb) } {
            Ok(_) => {
                self.moved.transfers += 1;
                Ok(())
            }
            Err(error) => Err(match error.raw_os_error() {
                Some(libc::ENODEV | libc::ESHUTDOWN) => TransferError::Gone,
                Some(libc::EPIPE) => TransferError::Stall,
                code => TransferError::Bus(code.unwrap_or(libc::EIO)),
            }),
        }
    }

    fn cancel(&mut self, pipe: Pipe, slot: u16) {
        let urb = self.urbs[self.index(pipe, slot)].get();
        // SAFETY: the address of an URB of ours. If it has ended, the call fails, and it is reaped as it ended.
        let _ = unsafe { ioctl(&self.file, abi::DISCARD_URB, urb) };
    }

    fn reset(&mut self) -> Option<u16> {
        if !self.take_back() {
            return None;
        }
        self.release();
        // SAFETY: the call has no argument.
        if unsafe { ioctl(&self.file, abi::RESET, std::ptr::null_mut::<u8>()) }.is_err() {
            return None;
        }
        self.set_up().ok()?;
        Some(self.streams)
    }

    fn reap(&mut self, wait_ns: u64) -> Result<Option<Ended>, TransferError> {
        let ended = self.reap_now()?;
        if ended.is_some() || wait_ns == 0 {
            return Ok(ended);
        }
        // Rounded up: waking early would make the caller spin.
        let wait_ms = Duration::from_nanos(wait_ns).as_nanos().div_ceil(1_000_000).min(1 << 30) as i32;
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event, which lives while the call runs.
        let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), &raw mut event, 1, wait_ms) };
        // After a signal (-1) the caller decides.
        if count > 0 { self.reap_now() } else { Ok(None) }
    }

    fn suspended_ns(&self) -> u64 {
        wake::suspended_ns()
    }

    fn wake_descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.as_fd())
    }

    fn clear_wake(&mut self) {
        self.wake.clear();
    }

    fn moved(&self) -> Moved {
        self.moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(node: &Path) -> Interface {
        let endpoints = Endpoints { command: 4, status: 0x83, data_in: 0x81, data_out: 2 };
        Interface { node: node.to_owned(), number: 0, setting: 1, endpoints, stream_count: 32 }
    }

    #[test]
    fn a_missing_node_and_a_file_that_is_none_end_in_one_sentence_each() {
        let error = Usbfs::claim(&interface(Path::new("/nowhere/001/002"))).expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "`/nowhere/001/002` does not exist: the kernel has no usbfs, or the device was unplugged"
        );
        let error = Usbfs::claim(&interface(Path::new("/dev/null"))).expect_err("no usbfs");
        assert_eq!(error.to_string(), "interface 0 of `/dev/null`: epoll_ctl failed");
    }
}
