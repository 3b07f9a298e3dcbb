//! `uas`: drives a USB disk with UAS (USB Attached SCSI) in user space, for kernels without the driver.
//!
//! Reads, writes, trims and flushes become SCSI commands; with `sync = dsync`, writes have FUA set. They pass neither the page cache nor the block layer, and no
//! kernel driver: the disk is claimed through usbfs while the job runs. A transfer that is longer than the disk or the
//! memory of usbfs permits becomes several commands, as the kernel splits one. The workers of a job share the disk's queue.
//!
//! The engine knows the disk only as a [`Disk`]; crate `run` opens it.
//!
//! Limits: one disk for each job.

use super::{Completion, Engine, EngineError, EngineSetup};
use crate::request::Request;
use std::io;
use std::sync::Arc;
use trueio_model::{EngineKind, OpKind};
use trueio_uas::queue::{Disk, Done, Io, Operation};

/// A queue of SCSI commands.
#[derive(Debug)]
pub struct UasEngine {
    disk: Arc<dyn Disk>,
    client: usize,
    write: Operation,
    queued: Vec<Io>,
    done: Box<[Done]>,
}

impl UasEngine {
    /// Joins the queue of the job's disk.
    ///
    /// # Errors
    /// There is no disk, or no descriptor is left.
    pub fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        let failed =
            |attempted: &str, source| EngineError { engine: EngineKind::Uas, attempted: attempted.to_owned(), source };
        let disk = setup.files.first().and_then(|file| file.disk.clone());
        let missing = || io::Error::new(io::ErrorKind::NotFound, "no USB disk is claimed for it");
        let disk = disk.ok_or_else(|| failed("using the disk", missing()))?;
        let client = disk.join(setup.depth).map_err(|source| failed("eventfd", source))?;
        let depth = setup.depth as usize;
        let write = if setup.is_synchronous { Operation::WriteThrough } else { Operation::Write };
        Ok(Self { disk, client, write, queued: Vec::with_capacity(depth), done: vec![Done::NONE; depth].into() })
    }
}

impl Drop for UasEngine {
    fn drop(&mut self) {
        // Waits for commands that are in flight: no transfer writes to a buffer after this.
        self.disk.leave(self.client);
    }
}

impl Engine for UasEngine {
    const KIND: EngineKind = EngineKind::Uas;
    const BLOCKS: bool = false;

    unsafe fn queue(&mut self, slot: u32, request: &Request, buffer: *mut u8) {
        let operation = match request.op {
            OpKind::Read => Operation::Read,
            OpKind::Write => self.write,
            OpKind::Trim => Operation::Trim,
            OpKind::Sync => unreachable!("the worker makes sync calls itself"),
        };
        self.queued.push(Io { slot, operation, offset: request.offset, bytes: request.length, buffer });
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        // SAFETY: the promise of `queue` is that of `Disk::submit`.
        unsafe { self.disk.submit(self.client, &self.queued) };
        self.queued.clear();
        Ok(())
    }

    fn reap(&mut self, min: usize, timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        let most = out.len().min(self.done.len());
        let count = self.disk.reap(self.client, min, timeout_ns, &mut self.done[..most]);
        for (out, done) in out.iter_mut().zip(&self.done[..count]) {
            *out = Completion { slot: done.slot, result: done.result };
        }
        Ok(count)
    }

    /// Flushes the disk's cache: the standard has no command that flushes data only.
    fn sync_file(&mut self, _file: u16, _data_only: bool) -> i64 {
        let io = Io { slot: 0, operation: Operation::Flush, offset: 0, bytes: 0, buffer: std::ptr::null_mut() };
        // SAFETY: a flush has no buffer. Nothing is in flight, so the slot is free.
        unsafe { self.disk.submit(self.client, &[io]) };
        let mut done = [Done::NONE];
        // A signal ends the wait early.
        while self.disk.reap(self.client, 1, None, &mut done) == 0 {}
        done[0].result
    }
}

/// Whether the engine works: usbfs is there. Whether a disk can be claimed shows when it is planned.
pub(super) fn probe() -> (bool, String) {
    let parameter = trueio_uas::usbfs::MEMORY_PARAMETER;
    match trueio_uas::usbfs::memory_bytes() {
        Ok(None) => (true, format!("usbfs is there, without a limit of memory ({parameter})")),
        Ok(Some(bytes)) => (true, format!("usbfs is there; all transfers share {} MiB ({parameter})", bytes >> 20)),
        Err(error) => (false, format!("usbfs is not there: {parameter}: {error}")),
    }
}
