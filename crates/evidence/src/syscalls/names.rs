//! Names of system calls, and the meaning of their arguments.
//!
//! The numbers are those of the C library's headers for the target architecture. Only calls that a worker may
//! make are listed; any other is shown by its number.
//!
//! Source: the manual page of each call (section 2); Linux `include/linux/syscalls.h`.

use trueio_model::SyscallUnit;

/// Source of a call's file offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffsetSource {
    /// The call has no offset, or does not expose it.
    None,
    /// The descriptor's position, which advances by the transferred length.
    Position,
    /// This argument.
    Argument(usize),
    /// This argument, or the descriptor's position if it is −1.
    ArgumentOrPosition(usize),
}

/// The meaning of the arguments of a call on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) unit: SyscallUnit,
    /// The argument that is a descriptor of a file.
    pub(super) file: Option<usize>,
    /// The argument that holds the length or count.
    pub(super) asked: Option<usize>,
    /// True if the result is a length or count.
    pub(super) returns_amount: bool,
    pub(super) offset: OffsetSource,
    /// The argument that holds `RWF_*` flags.
    pub(super) rwf: Option<usize>,
    /// The argument that holds `SYNC_FILE_RANGE_*` flags.
    pub(super) range_flags: Option<usize>,
}

const FLUSH: Shape = Shape {
    unit: SyscallUnit::Bytes,
    file: Some(0),
    asked: None,
    returns_amount: false,
    offset: OffsetSource::None,
    rwf: None,
    range_flags: None,
};
const TRANSFER: Shape = Shape { returns_amount: true, ..FLUSH };
const BATCH: Shape = Shape { unit: SyscallUnit::Ios, file: None, ..TRANSFER };

/// Returns the arguments of a call that moves, submits or flushes data; `None` for all others.
pub(super) fn shape(number: i64) -> Option<Shape> {
    Some(match number {
        libc::SYS_read | libc::SYS_write => Shape { asked: Some(2), offset: OffsetSource::Position, ..TRANSFER },
        libc::SYS_pread64 | libc::SYS_pwrite64 => {
            Shape { asked: Some(2), offset: OffsetSource::Argument(3), ..TRANSFER }
        }
        // The length of a vector is in memory, not in the arguments.
        libc::SYS_readv | libc::SYS_writev => Shape { offset: OffsetSource::Position, ..TRANSFER },
        libc::SYS_preadv | libc::SYS_pwritev => Shape { offset: OffsetSource::Argument(3), ..TRANSFER },
        libc::SYS_preadv2 | libc::SYS_pwritev2 => {
            Shape { offset: OffsetSource::ArgumentOrPosition(3), rwf: Some(5), ..TRANSFER }
        }
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_syncfs => FLUSH,
        libc::SYS_sync_file_range => {
            Shape { asked: Some(2), offset: OffsetSource::Argument(1), range_flags: Some(3), ..FLUSH }
        }
        libc::SYS_fallocate => Shape { asked: Some(3), offset: OffsetSource::Argument(2), ..FLUSH },
        libc::SYS_io_submit => Shape { asked: Some(1), ..BATCH },
        // The minimum and the maximum number of completions; the minimum shows the purpose of the call.
        libc::SYS_io_getevents => Shape { asked: Some(1), ..BATCH },
        libc::SYS_io_uring_enter => Shape { asked: Some(1), ..BATCH },
        _ => return None,
    })
}

/// Returns the names of the set flags of one call.
pub(super) fn set_flags(shape: &Shape, arguments: &[u64; 6]) -> Vec<&'static str> {
    const RWF: [(u64, &str); 7] = [
        (1, "RWF_HIPRI"),
        (2, "RWF_DSYNC"),
        (4, "RWF_SYNC"),
        (8, "RWF_NOWAIT"),
        (0x10, "RWF_APPEND"),
        (0x40, "RWF_ATOMIC"),
        (0x80, "RWF_DONTCACHE"),
    ];
    const RANGE: [(u64, &str); 3] =
        [(1, "SYNC_FILE_RANGE_WAIT_BEFORE"), (2, "SYNC_FILE_RANGE_WRITE"), (4, "SYNC_FILE_RANGE_WAIT_AFTER")];
    let of = |argument: Option<usize>, names: &[(u64, &'static str)]| {
        let bits = argument.map_or(0, |index| arguments[index]);
        names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect::<Vec<_>>()
    };
    [of(shape.rwf, &RWF), of(shape.range_flags, &RANGE)].concat()
}

/// Returns the open flags of a file, from the number in `fdinfo`.
pub(super) fn open_flags(bits: i32) -> String {
    let mut names = vec![match bits & libc::O_ACCMODE {
        libc::O_RDONLY => "O_RDONLY",
        libc::O_WRONLY => "O_WRONLY",
        _ => "O_RDWR",
    }];
    // O_SYNC holds the bit of O_DSYNC.
    let is_sync = bits & libc::O_SYNC == libc::O_SYNC;
    let set = [
        (bits & libc::O_DIRECT != 0, "O_DIRECT"),
        (is_sync, "O_SYNC"),
        (!is_sync && bits & libc::O_DSYNC != 0, "O_DSYNC"),
        (bits & libc::O_APPEND != 0, "O_APPEND"),
        (bits & libc::O_NONBLOCK != 0, "O_NONBLOCK"),
    ];
    names.extend(set.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name));
    names.join("|")
}

/// Returns the name of a call.
pub(super) fn name(number: i64) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("syscall {number}"), |(_, name)| (*name).to_owned())
}

/// Builds rows of number and name from the C library's constants.
macro_rules! names {
    ($($constant:ident $name:literal),* $(,)?) => { &[$((libc::$constant, $name)),*] };
}

const NAMES: &[(i64, &str)] = names![
    SYS_read "read", SYS_write "write", SYS_pread64 "pread64", SYS_pwrite64 "pwrite64",
    SYS_readv "readv", SYS_writev "writev", SYS_preadv "preadv", SYS_pwritev "pwritev",
    SYS_preadv2 "preadv2", SYS_pwritev2 "pwritev2", SYS_lseek "lseek",
    SYS_fsync "fsync", SYS_fdatasync "fdatasync", SYS_sync_file_range "sync_file_range",
    SYS_syncfs "syncfs", SYS_sync "sync", SYS_msync "msync",
    SYS_io_setup "io_setup", SYS_io_destroy "io_destroy", SYS_io_submit "io_submit",
    SYS_io_getevents "io_getevents", SYS_io_cancel "io_cancel",
    SYS_io_uring_setup "io_uring_setup", SYS_io_uring_enter "io_uring_enter",
    SYS_io_uring_register "io_uring_register",
    SYS_openat "openat", SYS_close "close", SYS_dup "dup", SYS_dup3 "dup3", SYS_fcntl "fcntl", SYS_ioctl "ioctl",
    SYS_fstat "fstat", SYS_newfstatat "newfstatat", SYS_statx "statx", SYS_ftruncate "ftruncate", SYS_fallocate "fallocate",
    SYS_fadvise64 "fadvise64", SYS_sendfile "sendfile", SYS_splice "splice", SYS_vmsplice "vmsplice", SYS_pipe2 "pipe2", SYS_copy_file_range "copy_file_range",
    SYS_sendto "sendto", SYS_recvfrom "recvfrom", SYS_sendmsg "sendmsg", SYS_recvmsg "recvmsg", SYS_ppoll "ppoll",
    SYS_mmap "mmap", SYS_munmap "munmap", SYS_mremap "mremap", SYS_mprotect "mprotect", SYS_madvise "madvise",
    SYS_mlock "mlock", SYS_brk "brk",
    SYS_futex "futex", SYS_nanosleep "nanosleep", SYS_clock_nanosleep "clock_nanosleep",
    SYS_clock_gettime "clock_gettime", SYS_gettimeofday "gettimeofday",
    SYS_sched_yield "sched_yield", SYS_getrusage "getrusage", SYS_gettid "gettid", SYS_prctl "prctl",
    SYS_rt_sigaction "rt_sigaction", SYS_rt_sigprocmask "rt_sigprocmask", SYS_rt_sigreturn "rt_sigreturn",
    SYS_sigaltstack "sigaltstack", SYS_restart_syscall "restart_syscall", SYS_exit "exit",
    SYS_getrandom "getrandom", SYS_rseq "rseq", SYS_membarrier "membarrier",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_described_call_has_a_name_and_numbers_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for (number, name) in NAMES {
            assert!(seen.insert(number), "{name}");
        }
        for number in 0..1024 {
            assert!(shape(number).is_none() || !name(number).starts_with("syscall "), "{number}");
        }
        assert_eq!(name(99_999), "syscall 99999");
    }

    #[test]
    fn o_sync_is_distinguished_from_o_dsync_whose_bit_it_contains() {
        assert_eq!(open_flags(libc::O_RDWR | libc::O_DIRECT | libc::O_SYNC), "O_RDWR|O_DIRECT|O_SYNC");
        assert_eq!(open_flags(libc::O_WRONLY | libc::O_DSYNC), "O_WRONLY|O_DSYNC");
        assert_eq!(open_flags(libc::O_RDONLY), "O_RDONLY");
    }

    #[test]
    fn flags_of_a_call_are_named() {
        let pwritev2 = shape(libc::SYS_pwritev2).expect("a shape");
        assert_eq!(set_flags(&pwritev2, &[3, 0, 1, 0, 0, 2 | 0x40]), ["RWF_DSYNC", "RWF_ATOMIC"]);
        let write = shape(libc::SYS_write).expect("a shape");
        assert!(set_flags(&write, &[3, 0, 1, 2, 2, 2]).is_empty());
    }
}
