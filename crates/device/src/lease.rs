//! Whether a file has another user, by a write lease.
//!
//! The kernel grants a write lease only on a file that is open nowhere else: not in a process, not through a mapping, and not in the kernel,
//! which keeps the files of loop devices, swap, file-backed filesystems and targets of SCSI or NVMe open. The lease is given back at once.
//!
//! Limits: filesystems without leases (NFS, most of FUSE); files of other users, without CAP_LEASE; a file below overlayfs that is used
//! under its name above, and the reverse. A program that opens the file with `O_NONBLOCK` in the microseconds of the lease gets EAGAIN.
//!
//! Source: fcntl(2), section "Leases"; Linux `fs/locks.c` (`check_conflicting_open`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The result of taking a lease.
#[derive(Debug)]
pub(crate) enum Lease {
    /// The file was open nowhere else.
    Granted,
    /// It is open elsewhere.
    Refused,
    /// The kernel does not grant leases to this user, or on this filesystem.
    Unknown(io::Error),
}

/// Takes a write lease on the regular file at a path, and gives it back.
pub(crate) fn try_lease(path: &Path) -> Lease {
    /// linux/fcntl.h. The signal of a broken lease: SIGIO, the default, would end this process; SIGURG is ignored by default.
    const F_SETSIG: libc::c_int = 10;
    // Not blocking: if another program has a lease, the kernel would wait until it is given back.
    let file = match File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => return Lease::Refused,
        Err(error) => return Lease::Unknown(error),
    };
    let fcntl = |command: libc::c_int, value: libc::c_int| {
        // SAFETY: a plain call with an integer argument on a descriptor that is open.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, value) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    let taken = fcntl(F_SETSIG, libc::SIGURG).and_then(|()| fcntl(libc::F_SETLEASE, libc::F_WRLCK));
    match taken {
        Ok(()) => {
            // Closing the file gives it back, too.
            let _ = fcntl(libc::F_SETLEASE, libc::F_UNLCK);
            Lease::Granted
        }
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => Lease::Refused,
        Err(error) => Lease::Unknown(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the lease is refused for as long as anything has the file open: for reading, for writing, or only by a mapping.
    #[test]
    fn a_lease_is_granted_only_on_a_file_that_is_open_nowhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, [0; 4096]).expect("a file");
        let is_granted = || match try_lease(&path) {
            Lease::Granted => true,
            Lease::Refused => false,
            Lease::Unknown(error) => panic!("{error}"),
        };
        assert!(is_granted());
        let reader = File::open(&path).expect("a file");
        assert!(!is_granted(), "a reader");
        drop(reader);
        let writer = File::options().write(true).open(&path).expect("a file");
        assert!(!is_granted(), "a writer");
        drop(writer);
        let file = File::open(&path).expect("a file");
        // SAFETY: a new mapping at an address that the kernel chooses; it is removed below and not used otherwise.
        let mapping =
            unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
        assert_ne!(mapping, libc::MAP_FAILED);
        drop(file);
        assert!(!is_granted(), "a mapping");
        // SAFETY: the mapping of above, to which nothing points.
        unsafe { libc::munmap(mapping, 4096) };
        assert!(is_granted());
    }
}
