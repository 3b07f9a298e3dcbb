//! `page_fault`: copies to and from new anonymous memory.
//!
//! Measures how fast the kernel provides memory: the first access to each page is a page fault. A read copies
//! from the memory to the I/O's buffer, a write the other way. There is no file and no device, and nothing to
//! make durable.
//!
//! Limits: faults and copies are not told apart; later passes over the same memory cause no faults.
//!
//! Source: fio's HOWTO of 3.42, `page_fault`.

use super::{Completion, Engine, EngineError};
use crate::request::Request;
use std::io;
use trueio_model::{EngineKind, JobPlan, OpKind};

/// Copies to and from memory of its own. One slot.
#[derive(Debug)]
pub(crate) struct PageFaultEngine {
    address: *mut u8,
    bytes: usize,
    done: Option<Completion>,
}

impl Drop for PageFaultEngine {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no reference into it is left.
        unsafe { libc::munmap(self.address.cast(), self.bytes) };
    }
}

impl PageFaultEngine {
    /// Maps as much memory as the job's region reaches; no page of it is there yet.
    ///
    /// # Errors
    /// If the kernel refuses the mapping.
    pub(crate) fn new(plan: &JobPlan) -> Result<Self, EngineError> {
        let end = plan.files.iter().map(|file| file.offset_bytes.saturating_add(file.size_bytes)).max().unwrap_or(0);
        let attempted = || format!("mapping {end} bytes of memory");
        let bytes = usize::try_from(end).ok().filter(|bytes| *bytes > 0).ok_or_else(|| EngineError {
            engine: Self::KIND,
            attempted: attempted(),
            source: io::ErrorKind::InvalidInput.into(),
        })?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping; nothing else is replaced by it.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(EngineError::last(Self::KIND, &attempted()));
        }
        Ok(Self { address: address.cast(), bytes, done: None })
    }
}

impl Engine for PageFaultEngine {
    const KIND: EngineKind = EngineKind::PageFault;
    const BLOCKS: bool = true;
    const NEEDS_ORDERED_CLOCK: bool = true;

    unsafe fn queue(&mut self, slot: u32, request: &Request, buffer: *mut u8) {
        let (offset, length) = (request.offset as usize, request.length as usize);
        let result = if offset.checked_add(length).is_none_or(|end| end > self.bytes) {
            -i64::from(libc::EINVAL)
        } else {
            // SAFETY: the range lies in the mapping, which no other thread uses, and `queue`'s caller promises `length`
            // valid bytes at `buffer`, which is no part of the mapping.
            unsafe {
                let memory = self.address.add(offset);
                match request.op {
                    OpKind::Read => std::ptr::copy_nonoverlapping(memory, buffer, length),
                    OpKind::Write => std::ptr::copy_nonoverlapping(buffer, memory, length),
                    OpKind::Trim | OpKind::Sync => {}
                }
            }
            length as i64
        };
        self.done = Some(Completion { slot, result });
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn reap(&mut self, _min: usize, _timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        let done = self.done.take();
        let count = usize::from(done.is_some());
        if let (Some(done), Some(out)) = (done, out.first_mut()) {
            *out = done;
        }
        Ok(count)
    }

    fn has_ready(&mut self) -> bool {
        self.done.is_some()
    }

    fn sync_file(&mut self, _file: u16, _data_only: bool) -> i64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{FilePlan, Prepare};

    #[test]
    fn what_was_written_is_read_and_nothing_beyond_the_region() {
        let file = FilePlan {
            path: "made up".into(),
            prepare: Prepare::Nothing,
            remove_after: false,
            offset_bytes: 4096,
            size_bytes: 4096,
            extends_from: None,
        };
        let plan = JobPlan { files: vec![file], ..JobPlan::plain(EngineKind::PageFault, 4096) };
        let mut engine = PageFaultEngine::new(&plan).expect("memory");
        let mut buffer = vec![7_u8; 4096];
        let mut run = |op, offset| {
            let request = Request { op, file: 0, offset, length: 4096 };
            // SAFETY: the buffer has 4096 bytes and lives until the I/O was reaped.
            unsafe { engine.queue(3, &request, buffer.as_mut_ptr()) };
            let mut out = [Completion::NONE];
            assert_eq!(engine.reap(1, None, &mut out).expect("it completes"), 1);
            assert_eq!(out[0].slot, 3);
            (out[0].result, buffer[0], buffer[4095])
        };
        assert_eq!(run(OpKind::Write, 4096), (4096, 7, 7));
        assert_eq!(run(OpKind::Read, 0), (4096, 0, 0));
        assert_eq!(run(OpKind::Read, 4096), (4096, 7, 7));
        assert_eq!(run(OpKind::Read, 8192).0, -i64::from(libc::EINVAL));
    }
}
