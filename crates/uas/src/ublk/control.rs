//! `/dev/ublk-control`: commands that make, start, stop and delete devices. Each waits for its end.

use super::abi::{ControlCommand, Info};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

/// The file of the driver.
pub(super) const PATH: &str = "/dev/ublk-control";

/// A connection to the driver.
pub(super) struct Control {
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    file: File,
}

impl Control {
    pub(super) fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(PATH)?;
        Ok(Self { ring: IoUring::builder().build(2)?, file })
    }

    /// Runs a command on a device.
    pub(super) fn run(&mut self, code: u32, device: u32, data: u64) -> io::Result<()> {
        let command = ControlCommand { device, queue: u16::MAX, data, ..ControlCommand::default() };
        // SAFETY: without a structure.
        unsafe { self.call(code, command) }
    }

    /// Runs a command that reads or writes a structure.
    ///
    /// # Safety
    /// `T` has the layout that the command expects, and every content of it is valid.
    pub(super) unsafe fn exchange<T>(&mut self, code: u32, device: u32, structure: &mut T) -> io::Result<()> {
        let address = std::ptr::from_mut(structure) as u64;
        let bytes = size_of::<T>() as u16;
        let command = ControlCommand { device, queue: u16::MAX, bytes, address, ..ControlCommand::default() };
        // SAFETY: the structure is borrowed until the command has ended.
        unsafe { self.call(code, command) }
    }

    /// What the driver says about a device; ENODEV if it does not exist.
    pub(super) fn info(&mut self, device: u32) -> io::Result<Info> {
        let mut info = Info::default();
        // SAFETY: the structure of this command: numbers.
        unsafe { self.exchange(super::abi::GET_INFO, device, &mut info) }?;
        Ok(info)
    }

    /// # Safety
    /// The memory at `command.address` is valid for the command until it has ended.
    unsafe fn call(&mut self, code: u32, command: ControlCommand) -> io::Result<()> {
        let entry = opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), code).cmd(command.bytes()).build();
        // SAFETY: by the contract of this function; the call returns when the command has ended.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if let Some(ended) = self.ring.completion().next() {
                let result = ended.result();
                return if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) };
            }
        }
    }
}
