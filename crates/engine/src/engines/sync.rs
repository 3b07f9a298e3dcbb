//! `sync`: one `pread` or `pwrite` at a time.

use super::{
    Completion, Engine, EngineError, EngineSetup, TargetFile, descriptors, negative_errno, sync_descriptor, trim,
};
use crate::request::Request;
use std::os::fd::RawFd;
use trueio_model::{EngineKind, OpKind};

/// `pread` and `pwrite`.
#[derive(Debug)]
pub struct SyncEngine {
    files: Vec<RawFd>,
    block_devices: Vec<bool>,
    request: Request,
    buffer: *mut u8,
    result: Option<i64>,
    /// Keeps the descriptors open as long as the engine lives.
    _open: Vec<TargetFile>,
}

impl SyncEngine {
    /// An engine over the setup's files.
    pub fn new(setup: &EngineSetup<'_>) -> Self {
        Self {
            files: descriptors(setup.files),
            block_devices: setup.files.iter().map(|f| f.is_block_device).collect(),
            request: Request::NONE,
            buffer: std::ptr::null_mut(),
            result: None,
            _open: setup.files.to_vec(),
        }
    }
}

impl Engine for SyncEngine {
    const KIND: EngineKind = EngineKind::Sync;
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
        let (length, offset) = (request.length as usize, request.offset as i64);
        let moved = match request.op {
            // SAFETY: `queue`'s caller promises `length` valid bytes at `buffer` until the completion
            // is reaped, and the call returns before that.
            OpKind::Read => unsafe { libc::pread(fd, self.buffer.cast(), length, offset) },
            // SAFETY: as above.
            OpKind::Write => unsafe { libc::pwrite(fd, self.buffer.cast(), length, offset) },
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
