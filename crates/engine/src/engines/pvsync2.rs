//! `pvsync2`: one `preadv2` or `pwritev2` at a time, with the RWF flags.
//!
//! Source: preadv2(2); `RWF_DONTCACHE` Linux 6.14, `RWF_ATOMIC` Linux 6.11.

use super::{
    Completion, Engine, EngineError, EngineSetup, TargetFile, descriptors, negative_errno, rwf, sync_descriptor, trim,
};
use crate::request::Request;
use std::os::fd::RawFd;
use trueio_model::{EngineKind, OpKind};

/// `preadv2` and `pwritev2`.
#[derive(Debug)]
pub struct Pvsync2Engine {
    files: Vec<RawFd>,
    block_devices: Vec<bool>,
    read_flags: i32,
    write_flags: i32,
    request: Request,
    buffer: *mut u8,
    result: Option<i64>,
    /// Keeps the descriptors open as long as the engine lives.
    _open: Vec<TargetFile>,
}

impl Pvsync2Engine {
    /// An engine over the setup's files.
    pub fn new(setup: &EngineSetup<'_>) -> Self {
        Self {
            files: descriptors(setup.files),
            block_devices: setup.files.iter().map(|f| f.is_block_device).collect(),
            read_flags: rwf(setup.flags, OpKind::Read),
            write_flags: rwf(setup.flags, OpKind::Write),
            request: Request::NONE,
            buffer: std::ptr::null_mut(),
            result: None,
            _open: setup.files.to_vec(),
        }
    }
}

/// Does the kernel know the calls: with a bad descriptor it must answer EBADF, not ENOSYS.
pub(super) fn probe() -> (bool, String) {
    // SAFETY: no memory is handed over: the vector count is 0.
    unsafe { libc::preadv2(-1, std::ptr::null(), 0, 0, 0) };
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EBADF) => (true, "preadv2 is there".to_owned()),
        _ => (false, format!("preadv2 is refused: {error}")),
    }
}

impl Engine for Pvsync2Engine {
    const KIND: EngineKind = EngineKind::Pvsync2;
    const BLOCKS: bool = true;

    #[inline(always)]
    fn queue(&mut self, _slot: u32, request: &Request, buffer: *mut u8) {
        self.request = *request;
        self.buffer = buffer;
    }

    #[inline(always)]
    fn submit(&mut self) -> Result<(), EngineError> {
        let request = &self.request;
        let fd = self.files[usize::from(request.file)];
        let vector = libc::iovec { iov_base: self.buffer.cast(), iov_len: request.length as usize };
        let offset = request.offset as i64;
        let moved = match request.op {
            // SAFETY: the vector names `length` bytes that `queue`'s caller keeps valid until the
            // completion is reaped, and the call returns before that.
            OpKind::Read => unsafe { libc::preadv2(fd, &vector, 1, offset, self.read_flags) },
            // SAFETY: as above.
            OpKind::Write => unsafe { libc::pwritev2(fd, &vector, 1, offset, self.write_flags) },
            OpKind::Trim => {
                self.result = Some(trim(fd, self.block_devices[usize::from(request.file)], request));
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

    fn sync_file(&mut self, file: u16, data_only: bool) -> i64 {
        sync_descriptor(self.files[usize::from(file)], data_only)
    }
}
