//! A lease on a file, which detects other programs that have it open for writing.
//!
//! The kernel grants a lease for reading only while no process has the file open for writing. A program that opens it
//! for writing afterwards waits until the lease is returned, at most `/proc/sys/fs/lease-break-time` seconds.
//!
//! Limits: filesystems without leases (many network filesystems), and files of other users without `CAP_LEASE`.
//!
//! Source: fcntl(2) `F_SETLEASE`.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Sets the signal of a broken lease (`asm-generic/fcntl.h`).
const F_SETSIG: libc::c_int = 10;

/// A lease, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease<'a>(&'a File);

/// The answer to a request for a lease.
#[derive(Debug)]
pub(crate) enum Leased<'a> {
    /// No program has the file open for writing.
    Granted(Lease<'a>),
    /// A program has.
    HasWriter,
    /// The filesystem has no leases.
    Impossible,
}

impl<'a> Lease<'a> {
    /// Takes a lease on a file that is open for reading only.
    pub(crate) fn take(file: &'a File) -> Leased<'a> {
        // The signal of a broken lease is one that does nothing: by default it would be SIGIO, which ends the process.
        // SAFETY: plain calls with a descriptor that is open, and numbers.
        let status = unsafe {
            libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG);
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK)
        };
        if status == 0 {
            return Leased::Granted(Self(file));
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN) => Leased::HasWriter,
            _ => Leased::Impossible,
        }
    }
}

impl Leased<'_> {
    /// Whether a program waits for the end of the lease, to open the file for writing.
    pub(crate) fn is_broken(&self) -> bool {
        let Self::Granted(Lease(file)) = self else { return false };
        // SAFETY: a plain call with a descriptor that is open.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) != libc::F_RDLCK }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // SAFETY: a plain call with a descriptor that is open, and a number.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}
