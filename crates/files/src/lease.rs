//! A lease on a file, which detects its other users.
//!
//! The kernel grants a lease for reading only while nothing has the file open for writing, and one for writing only while the file is open
//! nowhere else: not in a process, not through a mapping, and not in the kernel, which keeps the files of loop devices, swap, file-backed
//! filesystems and targets of SCSI or NVMe open. A program that opens the file afterwards waits until the lease is returned, at most
//! `/proc/sys/fs/lease-break-time` seconds; with `O_NONBLOCK` it gets EAGAIN.
//!
//! Limits: filesystems without leases (NFS, most of FUSE); files of other users, without CAP_LEASE; a file below overlayfs that is used
//! under its name above, and the reverse.
//!
//! Source: fcntl(2), section "Leases"; Linux `fs/locks.c` (`check_conflicting_open`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Sets the signal of a broken lease (`asm-generic/fcntl.h`).
const F_SETSIG: libc::c_int = 10;

/// A lease, returned when it is dropped.
#[derive(Debug)]
pub struct Lease<'a> {
    file: &'a File,
    kind: LeaseKind,
}

/// Which other users prevent a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseKind {
    /// Those that write. The file of the lease is open for reading only.
    Read,
    /// All.
    Write,
}

impl LeaseKind {
    fn number(self) -> libc::c_int {
        match self {
            LeaseKind::Read => libc::F_RDLCK,
            LeaseKind::Write => libc::F_WRLCK,
        }
    }
}

/// The answer to a request for a lease.
#[derive(Debug)]
pub enum Leased<'a> {
    /// There is no such user.
    Granted(Lease<'a>),
    /// There is one.
    Refused,
    /// The kernel does not grant leases to this user, or on this filesystem.
    Impossible(io::Error),
}

impl<'a> Lease<'a> {
    /// Takes a lease on an open file.
    pub fn take(file: &'a File, kind: LeaseKind) -> Leased<'a> {
        // The signal of a broken lease is one that is ignored by default: SIGIO would end the process.
        let taken = fcntl(file, F_SETSIG, libc::SIGURG).and_then(|_| fcntl(file, libc::F_SETLEASE, kind.number()));
        match taken {
            Ok(_) => Leased::Granted(Self { file, kind }),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => Leased::Refused,
            Err(error) => Leased::Impossible(error),
        }
    }
}

impl Leased<'_> {
    /// Returns true if a program waits for the end of the lease to use the file.
    pub fn is_broken(&self) -> bool {
        let Self::Granted(lease) = self else { return false };
        fcntl(lease.file, libc::F_GETLEASE, 0).ok() != Some(lease.kind.number())
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // Closing the file returns the lease, too.
        let _ = fcntl(self.file, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

fn fcntl(file: &File, command: libc::c_int, value: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: a plain call with an integer argument on a descriptor that is open.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, value) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    /// Goal: the lease is refused for as long as anything of its kind has the file open, also only by a mapping.
    #[test]
    fn a_lease_is_granted_only_on_a_file_that_is_open_nowhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, [0; 4096]).expect("a file");
        let is_granted = |kind| {
            let file = File::open(&path).expect("a file");
            match Lease::take(&file, kind) {
                Leased::Granted(_) => true,
                Leased::Refused => false,
                Leased::Impossible(error) => panic!("{error}"),
            }
        };
        let granted = || [LeaseKind::Read, LeaseKind::Write].map(is_granted);
        assert_eq!(granted(), [true, true]);
        let reader = File::open(&path).expect("a file");
        assert_eq!(granted(), [true, false], "a reader");
        drop(reader);
        let writer = File::options().write(true).open(&path).expect("a file");
        assert_eq!(granted(), [false, false], "a writer");
        drop(writer);
        let file = File::open(&path).expect("a file");
        // SAFETY: a new mapping at an address that the kernel chooses; it is removed below and not used otherwise.
        let mapping =
            unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
        assert_ne!(mapping, libc::MAP_FAILED);
        drop(file);
        assert_eq!(granted(), [true, false], "a mapping");
        // SAFETY: the mapping of above, to which nothing points.
        unsafe { libc::munmap(mapping, 4096) };
        assert_eq!(granted(), [true, true]);
    }

    #[test]
    fn a_lease_is_broken_by_a_program_that_opens_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "").expect("a file");
        let file = File::open(&path).expect("a file");
        let lease = Lease::take(&file, LeaseKind::Read);
        assert!(!lease.is_broken());
        let mut without_wait = File::options();
        without_wait.append(true).custom_flags(libc::O_NONBLOCK);
        assert_eq!(without_wait.open(&path).expect_err("a lease").kind(), io::ErrorKind::WouldBlock);
        assert!(lease.is_broken());
        drop(lease);
        without_wait.open(&path).expect("the lease was returned");
    }
}
