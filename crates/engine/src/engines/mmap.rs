//! `mmap`: copies to and from a mapping of the file.
//!
//! Always through the page cache. A sync call is `msync` over the whole mapping and then the file's
//! own, since `msync` alone need not flush the disk's cache on every filesystem.
//!
//! An I/O error under a mapping arrives as SIGBUS, and so does a file that shrinks under the run:
//! [`bus_error`] turns both into results, EIO or a short transfer. Pages that were lost once stay
//! lost, because they are replaced by empty ones.
//!
//! With `sync`, each I/O ends with `msync(MS_SYNC)` of its pages and unmaps them (`MADV_DONTNEED`), as fio does with `direct=1`. Two
//! copies to one block at the same time would mix their bytes, where the kernel lets one `write` follow the other; so in a job that
//! verifies, a file has one writer at a time.
//!
//! Cannot see: which error it was.

use super::bus_error;
use super::{Completion, Engine, EngineError, EngineSetup, TargetFile, negative_errno, sync_descriptor, trim};
use crate::request::Request;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use trueio_model::{Advice, EngineKind, OpKind};

/// The locks of writers that share a file, of all workers of the process; a file's is found by its device and inode. Two files may
/// have one.
static WRITERS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Pages of a mapping are as large on every system that this program supports, or a multiple of it.
const PAGE_BYTES: usize = 4096;

#[derive(Debug)]
struct Mapping {
    address: *mut u8,
    length: usize,
    /// Its file's place in [`WRITERS`].
    writers: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and no reference into it is left.
        unsafe { libc::munmap(self.address.cast(), self.length) };
    }
}

/// Copies to and from a mapping.
#[derive(Debug)]
pub struct MmapEngine {
    mappings: Vec<Mapping>,
    files: Vec<TargetFile>,
    request: Request,
    buffer: *mut u8,
    result: Option<i64>,
    /// Each I/O ends with `msync` of its pages.
    is_synchronous: bool,
    /// A file has one writer at a time.
    verifies: bool,
    /// Ranges of addresses that could not be had; empty unless something failed.
    lost: Vec<(usize, usize)>,
}

impl MmapEngine {
    /// Maps every file from its beginning to the end of its region.
    ///
    /// # Errors
    /// If the kernel refuses a mapping.
    pub fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        bus_error::watch();
        let protection = libc::PROT_READ | if setup.writes { libc::PROT_WRITE } else { 0 };
        let mut mappings = Vec::new();
        for target in setup.files {
            let length = target.end_bytes as usize;
            // A copy beyond the file's end would be a SIGBUS, not an error.
            let metadata = target.file.metadata();
            let writers =
                metadata.as_ref().map_or(0, |file| (file.ino() ^ file.dev() ^ file.rdev()) as usize % WRITERS.len());
            if let Ok(file) = metadata
                && file.is_file()
                && file.len() < target.end_bytes
            {
                return Err(EngineError {
                    engine: Self::KIND,
                    attempted: format!("mapping {length} bytes of `{}`, which has {}", target.path, file.len()),
                    source: std::io::Error::from_raw_os_error(libc::EINVAL),
                });
            }
            // SAFETY: a new shared mapping of an open file; nothing else is replaced by it.
            let address = unsafe {
                libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, target.file.as_raw_fd(), 0)
            };
            if address == libc::MAP_FAILED {
                return Err(EngineError::last(Self::KIND, &format!("mapping {length} bytes of `{}`", target.path)));
            }
            let mapping = Mapping { address: address.cast(), length, writers };
            let advice = match setup.advice {
                Advice::None | Advice::Noreuse => None,
                Advice::Random => Some(libc::MADV_RANDOM),
                Advice::Sequential => Some(libc::MADV_SEQUENTIAL),
            };
            // SAFETY: our own mapping; neither advice changes what is in it.
            if advice.is_some_and(|advice| unsafe { libc::madvise(address, length, advice) } != 0) {
                let attempted = format!("advising the kernel of {length} bytes of `{}`", target.path);
                return Err(EngineError::last(Self::KIND, &attempted));
            }
            mappings.push(mapping);
        }
        Ok(Self {
            mappings,
            files: setup.files.to_vec(),
            request: Request::NONE,
            buffer: std::ptr::null_mut(),
            result: None,
            is_synchronous: setup.is_synchronous,
            verifies: setup.verifies,
            lost: Vec::new(),
        })
    }

    /// Waits until no other worker writes to the file of the present I/O.
    #[cold]
    fn only_writer(&self) -> MutexGuard<'static, ()> {
        let mapping = &self.mappings[usize::from(self.request.file)];
        WRITERS[mapping.writers].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the pages of the present I/O back and unmaps them; returns its length, or the negative error number.
    #[cold]
    fn write_back(&self) -> i64 {
        let mapping = &self.mappings[usize::from(self.request.file)];
        let begin = self.request.offset as usize / PAGE_BYTES * PAGE_BYTES;
        let end = self.request.offset as usize + self.request.length as usize;
        // SAFETY: whole pages of our own mapping, which begins with a page; the assertion of `submit` keeps `end` inside. Both
        // calls keep what is in the file.
        let failed = unsafe {
            let address = mapping.address.add(begin).cast();
            libc::msync(address, end - begin, libc::MS_SYNC) != 0
                || libc::madvise(address, end - begin, libc::MADV_DONTNEED) != 0
        };
        if failed { negative_errno() } else { i64::from(self.request.length) }
    }

    /// The result of an I/O that touched what could not be had: short, if the file ends before it.
    #[cold]
    fn result_of_lost(&self) -> i64 {
        let request = &self.request;
        let end = request.offset + u64::from(request.length);
        match self.files[usize::from(request.file)].file.metadata() {
            Ok(file) if file.is_file() && file.len() < end => file.len().saturating_sub(request.offset) as i64,
            _ => -i64::from(libc::EIO),
        }
    }
}

impl Engine for MmapEngine {
    const KIND: EngineKind = EngineKind::Mmap;
    const BLOCKS: bool = true;
    const NEEDS_ORDERED_CLOCK: bool = true;

    #[inline(always)]
    unsafe fn queue(&mut self, _slot: u32, request: &Request, buffer: *mut u8) {
        self.request = *request;
        self.buffer = buffer;
    }

    #[inline(always)]
    fn submit(&mut self) -> Result<(), EngineError> {
        let request = &self.request;
        let mapping = &self.mappings[usize::from(request.file)];
        let (offset, length) = (request.offset as usize, request.length as usize);
        assert!(offset + length <= mapping.length, "the plan keeps every I/O inside the region");
        let begin = mapping.address as usize + offset;
        let end = begin + length;
        if !self.lost.is_empty() && self.lost.iter().any(|lost| lost.0 < end && begin < lost.1) {
            self.result = Some(self.result_of_lost());
            return Ok(());
        }
        let lost = match request.op {
            // SAFETY: the assertion keeps the range inside the mapping; the buffer is `length` bytes
            // by `queue`'s promise, and memory of ours never overlaps a file mapping.
            OpKind::Read => bus_error::guarded(begin, end, || unsafe {
                self.buffer.copy_from_nonoverlapping(mapping.address.add(offset), length)
            }),
            OpKind::Write => {
                let _writer = self.verifies.then(|| self.only_writer());
                // SAFETY: as above; the mapping is writable, because the job writes.
                bus_error::guarded(begin, end, || unsafe {
                    self.buffer.copy_to_nonoverlapping(mapping.address.add(offset), length)
                })
            }
            OpKind::Trim => {
                let target = &self.files[usize::from(request.file)];
                self.result = Some(trim(target.file.as_raw_fd(), &target.trim_call, request));
                return Ok(());
            }
            OpKind::Sync => unreachable!("the worker makes sync calls itself"),
        };
        self.result = Some(i64::from(request.length));
        if let Some(lost) = lost {
            self.lost.push(lost);
            self.result = Some(self.result_of_lost());
        } else if self.is_synchronous {
            self.result = Some(self.write_back());
        }
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
        let mapping = &self.mappings[usize::from(file)];
        // SAFETY: the whole mapping, which is ours.
        if unsafe { libc::msync(mapping.address.cast(), mapping.length, libc::MS_SYNC) } != 0 {
            return negative_errno();
        }
        sync_descriptor(self.files[usize::from(file)].file.as_raw_fd(), data_only)
    }
}
