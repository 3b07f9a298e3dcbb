//! The I/O engines: one file each, with one small trait.
//!
//! | engine      | calls                                   | holds a queue | page cache, direct, RWF flags |
//! |-------------|-----------------------------------------|---------------|-------------------------------|
//! | `psync`     | `pread`, `pwrite`                       | no            | as opened; no flags           |
//! | `sync`      | `lseek` if need be, `read`, `write`     | no            | as opened; no flags           |
//! | `vsync`     | `lseek` if need be, `readv`, `writev`   | no            | as opened; no flags           |
//! | `pvsync`    | `preadv`, `pwritev`                     | no            | as opened; no flags           |
//! | `pvsync2`   | `preadv2`, `pwritev2`                   | no            | as opened; all flags          |
//! | `splice`    | `splice`, `vmsplice` through a pipe     | no            | as opened; no flags           |
//! | `posixaio`  | `pread`, `pwrite` on threads            | yes           | as opened; no flags           |
//! | `libaio`    | `io_submit`, `io_getevents`             | yes           | only direct I/O is really asynchronous |
//! | `io_uring`  | `io_uring_enter`                        | yes           | as opened; all flags          |
//! | `mmap`      | copies to and from a mapping, `msync`   | no            | page cache only               |
//! | `falloc`    | `fallocate`                             | no            | moves no data                 |
//! | `ftruncate` | `ftruncate`                             | no            | moves no data                 |
//! | `e4defrag`  | `ioctl` (`EXT4_IOC_MOVE_EXT`)           | no            | moves no data                 |
//! | `filecreate` and others | calls on names: [`names`]   | no            | moves no data                 |
//! | `page_fault` | copies to and from new memory           | no            | –                             |
//! | `cpuio`     | none; keeps a processor busy            | no            | –                             |
//! | `exec`      | none; runs another program              | no            | –                             |
//! | `uas`       | USB transfers (usbfs)                   | yes           | no page cache; no flags       |
//! | `null`      | none                                    | yes           | –                             |
//! | `simulated` | none; time is virtual                   | yes           | –                             |
//!
//! An engine works on slots: `queue` adds an I/O of a slot, `submit` submits everything queued to
//! the kernel, `reap` returns what has completed. A blocking engine has one slot and does its I/O
//! in `submit`. Sync calls are plain system calls on every engine (`fdatasync` through io_uring is
//! given to a kernel thread, which costs more and orders no better); the worker makes them when
//! nothing else is in flight.

mod blocking;
mod bus_error;
mod io_uring;
mod libaio;
mod mmap;
mod names;
mod null;
mod page_fault;
mod posixaio;
mod simulated;
mod uas;

pub use blocking::{
    BlockingEngine, Call, E4defrag, Falloc, Ftruncate, Psync, Pvsync, Pvsync2, Splice, SyncCall, Vsync,
};
pub use io_uring::IoUringEngine;
pub use libaio::LibaioEngine;
pub use mmap::MmapEngine;
pub(crate) use names::content as name_content;
pub use names::{Dircreate, Dirdelete, Dirstat, Filecreate, Filedelete, Fileread, Filestat, NameCall, NamesEngine};
pub use null::NullEngine;
pub(crate) use page_fault::PageFaultEngine;
pub use posixaio::PosixaioEngine;
pub use simulated::SimulatedEngine;
pub use uas::UasEngine;

use crate::request::Request;
use crate::target::{TargetFile, TrimCall};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use trueio_model::{Advice, EngineKind, OpKind, PriorityShare, UringOptions, WriteFlags, WriteHint};

/// What an engine is made from.
#[derive(Debug)]
pub struct EngineSetup<'a> {
    /// The job's files; [`Request::file`] is an index into it.
    pub files: &'a [TargetFile],
    /// Slots.
    pub depth: u32,
    /// All buffers, as one region: (address, bytes). Lives as long as the engine.
    pub buffers: (*mut u8, usize),
    /// Flags of each I/O.
    pub flags: WriteFlags,
    /// io_uring's choices.
    pub uring: UringOptions,
    /// True if each write is durable when it completes (`sync`): the engine `uas` has no file that was opened so, and to a mapping the
    /// flags of its file do not apply.
    pub is_synchronous: bool,
    /// True if what is written is verified: `mmap` lets one writer of a file follow the other.
    pub verifies: bool,
    /// True if the job writes: `mmap` needs a writable mapping.
    pub writes: bool,
    /// Shares of the I/Os with priorities of their own; only `libaio` and `io_uring` can give an I/O one.
    pub priorities: &'a [PriorityShare],
    /// The worker's seed, for priorities and polling.
    pub seed: u64,
    /// Advice to the kernel about files that the engine opens again or maps.
    pub advice: Advice,
}

/// Advises the kernel how a file will be used, from `offset` on for `length` bytes.
///
/// # Errors
/// If the kernel does not take it (a pipe).
pub fn advise(file: &File, advice: Advice, offset: u64, length: u64) -> io::Result<()> {
    use rustix::fs::Advice as Kernels;
    let advice = match advice {
        Advice::None => return Ok(()),
        Advice::Random => Kernels::Random,
        Advice::Sequential => Kernels::Sequential,
        Advice::Noreuse => Kernels::NoReuse,
    };
    Ok(rustix::fs::fadvise(file, offset, std::num::NonZero::new(length), advice)?)
}

/// Sets the expected lifetime of what is written to a file.
///
/// # Errors
/// If the kernel does not keep hints (before Linux 4.13), or the file belongs to another user.
pub fn hint_writes(file: &File, hint: WriteHint) -> io::Result<()> {
    // `F_SET_RW_HINT` and `RWH_WRITE_LIFE_*` of fcntl(2), which libc does not have.
    const F_SET_RW_HINT: libc::c_int = 1024 + 12;
    let hint: u64 = match hint {
        WriteHint::Unchanged => return Ok(()),
        WriteHint::None => 1,
        WriteHint::Short => 2,
        WriteHint::Medium => 3,
        WriteHint::Long => 4,
        WriteHint::Extreme => 5,
    };
    // SAFETY: the descriptor is open, and the kernel reads 64 bits, which outlive the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), F_SET_RW_HINT, &raw const hint) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A completed I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot of the queue that the I/O had, from 0 to the depth − 1.
    pub slot: u32,
    /// Bytes transferred, or the negative error number.
    pub result: i64,
}

impl Completion {
    /// What an unused entry holds.
    pub const NONE: Completion = Completion { slot: 0, result: 0 };
}

/// The engine itself failed (not an I/O).
#[derive(Debug, thiserror::Error)]
#[error("engine `{}`: {attempted} failed", engine.name())]
pub struct EngineError {
    /// Which engine.
    pub engine: EngineKind,
    /// What was attempted.
    pub attempted: String,
    /// Why it failed.
    #[source]
    pub source: io::Error,
}

impl EngineError {
    pub(crate) fn last(engine: EngineKind, attempted: &str) -> Self {
        Self { engine, attempted: attempted.to_owned(), source: io::Error::last_os_error() }
    }
}

/// Performs I/O. All methods are called from the thread that made the engine.
pub trait Engine: Sized {
    /// Which engine it is.
    const KIND: EngineKind;
    /// True if `submit` returns only when the I/O is done: one slot, no separate submission.
    const BLOCKS: bool;
    /// True if the I/O is a memory copy, which the processor may still be doing when the clock is
    /// read.
    const NEEDS_ORDERED_CLOCK: bool = false;

    /// Notes an I/O for `slot`, which is free.
    ///
    /// # Safety
    /// Until the slot's completion was reaped, the first `request.length` bytes at `buffer` are valid for the transfer (to be
    /// written by a read, to be read by a write; a trim uses none), and no reference to them exists. If the engine goes
    /// before, that holds until the process ends: a closed io_uring ends its I/Os in the background.
    unsafe fn queue(&mut self, slot: u32, request: &Request, buffer: *mut u8);

    /// Submits everything that was queued. Does not wait, unless the engine blocks.
    ///
    /// # Errors
    /// Only for failures of the engine; an I/O that fails is a completion with an error number.
    fn submit(&mut self) -> Result<(), EngineError>;

    /// Collects completions, waiting until there are `min` of them or `timeout_ns` has passed
    /// (`None`: no limit) or a signal came. Returns how many were written to `out`. With a `min` of 0 and a limit of 0 it also
    /// collects those that only the kernel knows of yet; without a limit it may only look at memory.
    ///
    /// # Errors
    /// Only for failures of the engine.
    fn reap(&mut self, min: usize, timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError>;

    /// Makes a file's data (and metadata, unless `data_only`) durable; 0 or the negative error
    /// number. Called with nothing in flight.
    fn sync_file(&mut self, file: u16, data_only: bool) -> i64;

    /// The number of the priority share that the slot's I/O belongs to, from 1; 0: none.
    fn share_of(&self, _slot: u32) -> u8 {
        0
    }

    /// Files that it opened once more and does its I/O on; none if it uses those of its setup.
    fn opened_again(&self) -> &[TargetFile] {
        &[]
    }

    /// True if completions that `submit` already brought about may be there to be reaped without a
    /// system call: the time at which `submit` returned is then also the time at which they completed.
    fn has_ready(&mut self) -> bool {
        false
    }

    /// What the engine noticed while it was set up, one sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Whether an engine works on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    /// Which.
    pub engine: EngineKind,
    /// Does it work.
    pub works: bool,
    /// Why, or why not.
    pub reason: String,
}

/// Tries every engine on this machine, without touching a disk.
pub fn availability() -> Vec<Availability> {
    EngineKind::ALL
        .into_iter()
        .map(|engine| {
            let (works, reason) = match engine {
                EngineKind::Psync => (true, "pread and pwrite are always there".to_owned()),
                EngineKind::Sync => (true, "lseek, read and write are always there".to_owned()),
                EngineKind::Vsync => (true, "lseek, readv and writev are always there".to_owned()),
                EngineKind::Pvsync => (true, "preadv and pwritev are always there".to_owned()),
                EngineKind::Pvsync2 => blocking::probe_pvsync2(),
                EngineKind::Posixaio => (true, "pread and pwrite on threads".to_owned()),
                EngineKind::Splice => (true, "splice and vmsplice are always there".to_owned()),
                EngineKind::Falloc => (true, "fallocate is there; the filesystem may lack it".to_owned()),
                EngineKind::Ftruncate => (true, "ftruncate is always there".to_owned()),
                EngineKind::E4defrag => (true, "the kernel moves extents of files on ext4".to_owned()),
                EngineKind::Libaio => libaio::probe(),
                EngineKind::IoUring => io_uring::probe(),
                EngineKind::Mmap => (true, "mmap is always there".to_owned()),
                EngineKind::Filecreate | EngineKind::Filestat | EngineKind::Fileread | EngineKind::Filedelete => {
                    (true, "files can be made wherever the user may".to_owned())
                }
                EngineKind::Dircreate | EngineKind::Dirstat | EngineKind::Dirdelete => {
                    (true, "directories can be made wherever the user may".to_owned())
                }
                EngineKind::Exec => (true, "does no I/O; runs another program that was allowed".to_owned()),
                EngineKind::PageFault => (true, "memory is always there, as far as it goes".to_owned()),
                EngineKind::Cpuio => (true, "does no I/O; keeps a processor busy".to_owned()),
                EngineKind::Uas => uas::probe(),
                EngineKind::Null => (true, "does no I/O".to_owned()),
                EngineKind::Simulated => (true, "does no I/O; its time is virtual".to_owned()),
                EngineKind::Command => (true, "another program".to_owned()),
            };
            Availability { engine, works, reason }
        })
        .collect()
}

/// File descriptors, in the order of the job's files.
fn descriptors(files: &[TargetFile]) -> Vec<RawFd> {
    files.iter().map(|f| f.file.as_raw_fd()).collect()
}

/// The last system call's error as a completion's result.
fn negative_errno() -> i64 {
    -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// `fsync` or `fdatasync`.
fn sync_descriptor(fd: RawFd, data_only: bool) -> i64 {
    // SAFETY: plain calls on a descriptor that its `TargetFile` keeps open.
    let result = unsafe { if data_only { libc::fdatasync(fd) } else { libc::fsync(fd) } };
    if result == 0 { 0 } else { negative_errno() }
}

/// `sync_file_range` of a file; its length 0: to the end.
pub(crate) fn sync_range(fd: RawFd, offset: u64, bytes: u64, flags: u32) -> i64 {
    // SAFETY: a plain call on a descriptor that its `TargetFile` keeps open.
    let result = unsafe { libc::sync_file_range(fd, offset as i64, bytes as i64, flags) };
    if result == 0 { 0 } else { negative_errno() }
}

/// Discards a range, as the file has it. The length, or the negative error number.
fn trim(fd: RawFd, call: &TrimCall, request: &Request) -> i64 {
    const BLKDISCARD: u64 = 0x1277;
    let (offset, length) = (request.offset, u64::from(request.length));
    let result = match call {
        TrimCall::PunchHole => {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: a plain call on an open descriptor.
            unsafe { libc::fallocate(fd, mode, offset as i64, length as i64) }
        }
        TrimCall::Discard(claim) => {
            let fd = claim.as_ref().map_or(fd, |claim| claim.as_raw_fd());
            let range = [offset, length];
            // SAFETY: BLKDISCARD reads two 64-bit words from the pointer, and they live until it returns.
            unsafe { libc::ioctl(fd, BLKDISCARD as _, range.as_ptr()) }
        }
        TrimCall::ResetZone => match crate::zones::reset_zone(fd, &(offset..offset + length)) {
            Ok(()) => 0,
            Err(error) => return -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        },
    };
    if result == 0 { length as i64 } else { negative_errno() }
}

/// The RWF flags of one I/O. `RWF_DSYNC` and `RWF_ATOMIC` are for writes only.
fn rwf(flags: WriteFlags, op: OpKind) -> i32 {
    let mut bits = 0;
    if flags.hipri {
        bits |= libc::RWF_HIPRI;
    }
    if flags.nowait {
        bits |= libc::RWF_NOWAIT;
    }
    if flags.dontcache {
        bits |= libc::RWF_DONTCACHE;
    }
    if op == OpKind::Write {
        if flags.dsync {
            bits |= libc::RWF_DSYNC;
        }
        if flags.atomic {
            bits |= libc::RWF_ATOMIC;
        }
    }
    bits
}
