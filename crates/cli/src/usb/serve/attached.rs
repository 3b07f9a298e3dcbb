//! The kernel's block device of a served disk: of its NBD client, or of its ublk driver.

use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use trueio_uas::nbd::Nbd;
use trueio_uas::ublk::Ublk;

/// A block device that this process serves.
#[derive(Debug)]
pub(super) enum Attached {
    Nbd(Nbd),
    Ublk(Ublk),
}

impl Attached {
    /// Returns the path of the block device (`/dev/nbd0`).
    pub(super) fn device(&self) -> &Path {
        match self {
            Self::Nbd(nbd) => nbd.device(),
            Self::Ublk(ublk) => ublk.device(),
        }
    }

    /// Does what has to be done before the server begins.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        match self {
            Self::Nbd(nbd) => nbd.run(),
            Self::Ublk(_) => Ok(()),
        }
    }

    /// Prepares a thread for calls that wait for the device. Of the process's descriptors it may use standard output and error and
    /// those `kept`.
    pub(super) fn prepare_thread(&self, kept: &[RawFd]) -> io::Result<()> {
        match self {
            Self::Nbd(nbd) => nbd.prepare_thread(kept),
            Self::Ublk(_) => Ok(()),
        }
    }

    /// Starts the device, with its partitions. Waits for the server, so it is called on another thread.
    pub(super) fn start(&self) -> io::Result<()> {
        match self {
            // It runs since it was connected.
            Self::Nbd(nbd) => nbd.scan_partitions(),
            Self::Ublk(ublk) => ublk.start(),
        }
    }

    /// Ends the device: what is cached is written first. Waits for the server.
    pub(super) fn end(&self) -> io::Result<()> {
        match self {
            Self::Nbd(nbd) => nbd.disconnect(),
            Self::Ublk(ublk) => ublk.stop(),
        }
    }

    /// Whether ending the device needs a server that answers its requests, also when the disk is gone.
    pub(super) fn needs_answers(&self) -> bool {
        matches!(self, Self::Ublk(_))
    }

    /// Fails every request that the server has not answered, after the server has ended. The kernel does that itself for a ublk device.
    pub(super) fn close(&self) {
        if let Self::Nbd(nbd) = self {
            nbd.close();
        }
    }

    /// Fails every request, although the server hangs. A ublk device fails them when the process ends.
    pub(super) fn fail(&self) {
        if let Self::Nbd(nbd) = self {
            nbd.fail();
        }
    }
}
