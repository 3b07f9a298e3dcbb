//! The engines that make one system call for each I/O and wait for it: `psync`, `sync`, `vsync`,
//! `pvsync`, `pvsync2`, `splice`, `falloc`, `ftruncate`, `e4defrag`. They differ in the call alone.
//!
//! | engine    | calls                                                    |
//! |-----------|----------------------------------------------------------|
//! | `psync`   | `pread`, `pwrite`                                        |
//! | `pvsync`  | `preadv`, `pwritev`, with one piece                      |
//! | `pvsync2` | `preadv2`, `pwritev2`, with one piece and the RWF flags  |
//! | `sync`    | `lseek`, then `read`, `write`                            |
//! | `vsync`   | `lseek`, then `readv`, `writev`, with one piece          |
//! | `splice`  | `splice`, `vmsplice` through a pipe                      |
//! | `falloc`  | `fallocate`; moves no data                               |
//! | `ftruncate` | `ftruncate`; moves no data                             |
//! | `e4defrag`  | `EXT4_IOC_MOVE_EXT`; the kernel moves the data         |
//!
//! `sync` and `vsync` call `lseek` only where the file's position is not the I/O's offset already, so
//! sequential I/O has one call and random I/O two, as fio's have. A position belongs to an open file
//! and is shared by all its descriptors: these two engines open each file again.
//!
//! fio's `vsync` joins neighbouring I/Os of a deeper queue into one call; ours makes one call for
//! each, and a plan with a deeper queue is refused.
//!
//! Source: pread(2), readv(2), lseek(2); `RWF_DONTCACHE` Linux 6.14, `RWF_ATOMIC` Linux 6.11; fio(1).

mod calls;
mod defragment;
mod splice;

pub(super) use calls::probe_pvsync2;
pub use calls::{Falloc, Ftruncate, Psync, Pvsync, Pvsync2, SyncCall, Vsync};
pub use defragment::E4defrag;
pub use splice::Splice;

use super::{
    Completion, Engine, EngineError, EngineSetup, TargetFile, TrimCall, advise, descriptors, negative_errno,
    sync_descriptor, trim,
};
use crate::request::Request;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use trueio_model::{EngineKind, OpKind};

/// The call that an engine makes.
pub trait Call: Sized + std::fmt::Debug {
    /// Which engine it makes.
    const KIND: EngineKind;

    /// What the call needs to remember.
    ///
    /// # Errors
    /// If the kernel refuses what the call needs in addition to the files.
    fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError>;

    /// Reads (`READ`) or writes `length` bytes at `offset` of file number `file`, whose descriptor is `fd`; what
    /// the call returned.
    ///
    /// # Safety
    /// `buffer` is valid for `length` bytes, to be written if `READ`, until the call returns.
    unsafe fn transfer<const READ: bool>(
        &mut self,
        file: usize,
        fd: RawFd,
        buffer: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize;
}

/// One I/O at a time, by `C`'s call.
#[derive(Debug)]
pub struct BlockingEngine<C> {
    call: C,
    files: Vec<RawFd>,
    trim_calls: Vec<TrimCall>,
    request: Request,
    buffer: *mut u8,
    result: Option<i64>,
    /// Keeps the descriptors open as long as the engine lives.
    open: Vec<TargetFile>,
}

impl<C: Call> BlockingEngine<C> {
    /// An engine over the setup's files.
    ///
    /// # Errors
    /// If one that needs a position of its own cannot open a file once more.
    pub fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        let mut open = setup.files.to_vec();
        if C::KIND.moves_position() {
            for target in &mut open {
                let failed = |attempted| {
                    let attempted = format!("{attempted} `{}` once more, for a position of its own,", target.path);
                    move |source| EngineError { engine: C::KIND, attempted, source }
                };
                let file = opened_again(&target.file).map_err(failed("opening"))?;
                // Advice belongs to the open file, as a position does.
                advise(&file, setup.advice, 0, target.end_bytes).map_err(failed("advising the kernel of"))?;
                target.file = Arc::new(file);
            }
        }
        Ok(Self {
            call: C::new(setup)?,
            files: descriptors(&open),
            trim_calls: open.iter().map(|f| f.trim_call.clone()).collect(),
            request: Request::NONE,
            buffer: std::ptr::null_mut(),
            result: None,
            open,
        })
    }
}

/// The same file opened once more with the same flags, whether it still has a name or not.
fn opened_again(file: &File) -> io::Result<File> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    let mode = flags & rustix::fs::OFlags::ACCMODE;
    let writes = mode != rustix::fs::OFlags::RDONLY;
    std::fs::OpenOptions::new()
        .read(mode != rustix::fs::OFlags::WRONLY)
        .write(writes)
        .custom_flags((flags - rustix::fs::OFlags::ACCMODE).bits() as i32)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

impl<C: Call> Engine for BlockingEngine<C> {
    const KIND: EngineKind = C::KIND;
    const BLOCKS: bool = true;

    #[inline(always)]
    unsafe fn queue(&mut self, _slot: u32, request: &Request, buffer: *mut u8) {
        self.request = *request;
        self.buffer = buffer;
    }

    #[inline(always)]
    fn submit(&mut self) -> Result<(), EngineError> {
        let request = &self.request;
        let file = usize::from(request.file);
        let fd = self.files[file];
        let (length, offset) = (request.length as usize, request.offset as i64);
        let moved = match request.op {
            // SAFETY: `queue`'s caller promises `length` valid bytes at `buffer` until the completion
            // is reaped, and the call returns before that.
            OpKind::Read => unsafe { self.call.transfer::<true>(file, fd, self.buffer, length, offset) },
            // SAFETY: as above.
            OpKind::Write => unsafe { self.call.transfer::<false>(file, fd, self.buffer, length, offset) },
            OpKind::Trim => {
                self.result = Some(trim(fd, &self.trim_calls[file], request));
                return Ok(());
            }
            OpKind::Sync => unreachable!("the worker makes sync calls itself"),
        };
        self.result = Some(if moved >= 0 { moved as i64 } else { negative_errno() });
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, _min: usize, _timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        match self.result.take() {
            Some(result) => {
                out[0] = Completion { slot: 0, result };
                Ok(1)
            }
            None => Ok(0),
        }
    }

    #[inline(always)]
    fn has_ready(&mut self) -> bool {
        self.result.is_some()
    }

    fn opened_again(&self) -> &[TargetFile] {
        if C::KIND.moves_position() { &self.open } else { &[] }
    }

    fn sync_file(&mut self, file: u16, data_only: bool) -> i64 {
        sync_descriptor(self.files[usize::from(file)], data_only)
    }
}
