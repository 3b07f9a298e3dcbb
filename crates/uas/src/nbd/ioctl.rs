//! The kernel's NBD client by ioctl: the way of kernels and network namespaces without its family of netlink.
//!
//! The call that runs a device (`NBD_DO_IT`) returns when the socket closes, so it has a thread of its own. It is interrupted when the process
//! is frozen, which ends the device.
//!
//! Source: Linux `drivers/block/nbd.c` (`sock_shutdown` takes the lock of `nbd_send_cmd`), `include/uapi/linux/nbd.h`.

use super::NbdError;
use super::thread::leave_descriptors;
use crate::serve::Served;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::thread::JoinHandle;

const SET_SOCKET: u64 = 0xab00;
const SET_BLOCK_BYTES: u64 = 0xab01;
const RUN: u64 = 0xab03;
const CLEAR_SOCKET: u64 = 0xab04;
const SET_BLOCK_COUNT: u64 = 0xab07;
const DISCONNECT: u64 = 0xab08;
const SET_FLAGS: u64 = 0xab0a;

/// A device that is connected by ioctls.
#[derive(Debug)]
pub(super) struct Ioctls {
    file: File,
    runner: Option<JoinHandle<io::Result<()>>>,
}

fn ioctl(file: &File, call: u64, argument: u64) -> io::Result<()> {
    // SAFETY: these calls take a number, or the number of an open descriptor.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), call as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Ioctls {
    /// Connects a device to the kernel's end of a socket. It is opened for reading, which all calls accept: it is not in use for writing
    /// because it is served.
    pub(super) fn connect(device: &Path, served: &Served, flags: u64, socket: BorrowedFd) -> Result<Self, NbdError> {
        let failed = |step| move |source| NbdError::Step { device: device.to_owned(), step, source };
        let file = File::open(device).map_err(failed("opening it"))?;
        ioctl(&file, SET_SOCKET, socket.as_raw_fd() as u64).map_err(failed("NBD_SET_SOCK"))?;
        // From here on, dropping it clears the socket.
        let this = Self { file, runner: None };
        ioctl(&this.file, SET_BLOCK_BYTES, served.block_bytes.into()).map_err(failed("NBD_SET_BLKSIZE"))?;
        ioctl(&this.file, SET_BLOCK_COUNT, served.block_count).map_err(failed("NBD_SET_SIZE_BLOCKS"))?;
        ioctl(&this.file, SET_FLAGS, flags).map_err(failed("NBD_SET_FLAGS"))?;
        Ok(this)
    }

    /// Lets the device run on a thread of its own: from now on the kernel sends requests.
    ///
    /// # Errors
    /// No thread or descriptor.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let file = self.file.try_clone()?;
        let (name, (said, result)) = ("trueio-nbd".to_owned(), std::sync::mpsc::sync_channel(1));
        self.runner = Some(std::thread::Builder::new().name(name).spawn(move || {
            let left = leave_descriptors(&[file.as_raw_fd()]);
            let may_run = left.is_ok();
            // The other end waits for it.
            let _ = said.send(left);
            if may_run { ioctl(&file, RUN, 0) } else { Ok(()) }
        })?);
        result.recv().unwrap_or_else(|_| Err(io::Error::other("the thread of the device has died")))
    }
}

impl Drop for Ioctls {
    fn drop(&mut self) {
        // The server's end of the socket is closed or about to be; both calls fail only if nothing is connected.
        let _ = ioctl(&self.file, DISCONNECT, 0);
        let _ = ioctl(&self.file, CLEAR_SOCKET, 0);
        if let Some(runner) = self.runner.take() {
            // Its result is that of a device that was disconnected.
            let _ = runner.join();
        }
    }
}

/// Asks the kernel to send a disconnect request after all others. Devices that were connected by netlink accept it, too.
///
/// # Errors
/// The kernel's.
pub(super) fn disconnect(file: &File) -> io::Result<()> {
    ioctl(file, DISCONNECT, 0)
}
