//! The native functions of `promises.js`: probes, and files with a policy.
//!
//! A file is shared by JavaScript's object and by every transfer in it; the last owner closes it. In `promises.js`,
//! `close` waits for the transfers, so the file is closed when its promise is resolved.

use crate::descriptor;
use crate::failure::Failure;
use crate::memory::{self, Access, Block, Claim, MemoryRange};
use crate::work::{self, Cancel};
use napi::bindgen_prelude::{Env, JsValue, Unknown};
use napi::sys;
use napi_derive::napi;
use std::path::Path;
use std::sync::Arc;
use trueio_direct::{
    Alignment, AlignmentSource, Answer, DirectFile, FlushLevel, Flushed, Granted, LockMode, OpenOptions, Policy, Probe,
    SyncMode, TransferError, check_transfer,
};

/// The alignment that direct I/O requires, in bytes; absent: unknown.
#[napi(object)]
pub struct AlignmentFacts {
    /// Alignment of the address of every buffer.
    pub memory_bytes: Option<u32>,
    /// Alignment of offset and length of every write.
    pub write_offset_bytes: Option<u32>,
    /// Alignment of offset and length of every read.
    pub read_offset_bytes: Option<u32>,
    /// The source of these numbers.
    pub source: String,
    /// The same, as a sentence without a full stop.
    pub explanation: String,
}

impl From<&Alignment> for AlignmentFacts {
    fn from(alignment: &Alignment) -> Self {
        let source = match alignment.source {
            AlignmentSource::Statx => "statx",
            AlignmentSource::XfsDioInfo => "xfs",
            AlignmentSource::SectorSize => "sector-size",
            AlignmentSource::FilesystemBlock => "filesystem-block",
            AlignmentSource::StorageQuery => "storage-query",
            AlignmentSource::Assumed => "assumed",
            AlignmentSource::NotNeeded => "not-needed",
            _ => "unknown",
        };
        Self {
            memory_bytes: alignment.memory_bytes,
            write_offset_bytes: alignment.write_offset_bytes,
            read_offset_bytes: alignment.read_offset_bytes,
            source: source.into(),
            explanation: alignment.source.to_string(),
        }
    }
}

/// Limits of atomic writes, in bytes.
#[napi(object)]
pub struct AtomicLimits {
    /// The smallest.
    pub min_bytes: u32,
    /// The largest.
    pub max_bytes: u32,
    /// The largest that needs no slower path; 0: not reported.
    pub max_fast_bytes: u32,
    /// The largest number of buffers in one write.
    pub segments_max: u32,
}

/// The result of a probe.
#[napi(object)]
pub struct ProbeFacts {
    /// `direct`, `silently-buffered`, `refused` or `unknown`.
    pub support: String,
    /// The source of that answer.
    pub reason: String,
    /// The required alignment.
    pub alignment: AlignmentFacts,
    /// `support` for a file that is only read.
    pub read_support: String,
    /// The alignment that its reads require.
    pub read_alignment: AlignmentFacts,
    /// `yes`, `no` or `unknown`.
    pub atomic_write_answer: String,
    /// Absent unless the answer is `yes`.
    pub atomic_write: Option<AtomicLimits>,
    /// `yes`, `no` or `unknown`.
    pub uncached_buffered: String,
    /// The type of the filesystem.
    pub filesystem: String,
}

impl From<Probe> for ProbeFacts {
    fn from(probe: Probe) -> Self {
        let answer = |answer| match answer {
            Answer::Yes => "yes".to_owned(),
            Answer::No => "no".to_owned(),
            Answer::Unknown => "unknown".to_owned(),
        };
        Self {
            support: probe.support.name().to_owned(),
            reason: probe.reason,
            alignment: (&probe.alignment).into(),
            read_support: probe.read_support.name().to_owned(),
            read_alignment: (&probe.read_alignment).into(),
            atomic_write_answer: answer(probe.atomic_write_answer),
            atomic_write: probe.atomic_write.map(|limits| AtomicLimits {
                min_bytes: limits.min_bytes,
                max_bytes: limits.max_bytes,
                max_fast_bytes: limits.max_fast_bytes,
                segments_max: limits.segments_max,
            }),
            uncached_buffered: answer(probe.uncached_buffered),
            filesystem: probe.filesystem,
        }
    }
}

/// Probes the file or disk at `path`.
#[napi]
pub fn probe(env: Env, path: String, done: Unknown) -> napi::Result<()> {
    let job = move || Ok(trueio_direct::probe(Path::new(&path))?);
    work::start(env, &done, None, job, |_, _, probe| Ok(ProbeFacts::from(probe)))
}

/// Probes the support for new files in the folder at `path`.
#[napi]
pub fn probe_directory(env: Env, path: String, done: Unknown) -> napi::Result<()> {
    let job = move || Ok(trueio_direct::probe_directory(Path::new(&path))?);
    work::start(env, &done, None, job, |_, _, probe| Ok(ProbeFacts::from(probe)))
}

/// Makes the names in the folder at `path` durable.
#[napi]
pub fn sync_directory(env: Env, path: String, done: Unknown) -> napi::Result<()> {
    let job = move || {
        trueio_direct::sync_directory(Path::new(&path)).map_err(|error| Failure {
            path: Some(path.clone()),
            ..Failure::of_io(&format!("making the names in `{path}` durable"), &error, "fsync")
        })
    };
    work::start(env, &done, None, job, |_, _, ()| Ok(()))
}

/// Options for opening a file. JavaScript has checked the words.
#[napi(object)]
pub struct OpenRequest {
    /// Opens for reading.
    pub read: bool,
    /// Opens for writing.
    pub write: bool,
    /// Creates the file if it does not exist.
    pub create: bool,
    /// Creates a new file; the name must not exist.
    pub create_new: bool,
    /// `require`, `prefer` or `off`.
    pub policy: String,
    /// `none`, `dsync` or `sync`.
    pub sync: String,
    /// Exclusive use.
    pub exclusive: bool,
    /// Permissions of a new file.
    pub mode: u32,
}

/// Returns the policy of a word.
pub(crate) fn policy_of(word: &str) -> napi::Result<Policy> {
    match word {
        "require" => Ok(Policy::Require),
        "prefer" => Ok(Policy::Prefer),
        "off" => Ok(Policy::Off),
        other => Err(napi::Error::from_reason(format!("`{other}` is not a policy"))),
    }
}

/// Returns the flush level of a word.
pub(crate) fn flush_level(word: &str) -> napi::Result<FlushLevel> {
    match word {
        "barrier" => Ok(FlushLevel::Barrier),
        "data" => Ok(FlushLevel::Data),
        "file" => Ok(FlushLevel::File),
        "device" => Ok(FlushLevel::Device),
        other => Err(napi::Error::from_reason(format!("`{other}` is not a flush level"))),
    }
}

/// Returns the word for what was granted.
pub(crate) fn granted_word(granted: Granted) -> &'static str {
    match granted {
        Granted::Direct => "direct",
        Granted::Unconfirmed => "unconfirmed",
        Granted::NotKept => "not-kept",
        _ => "buffered",
    }
}

/// Opens `path`; the value is a [`NativeFile`].
#[napi]
pub fn open(env: Env, path: String, request: OpenRequest, done: Unknown, cancel: Option<&Cancel>) -> napi::Result<()> {
    let policy = policy_of(&request.policy)?;
    let sync = match request.sync.as_str() {
        "none" => SyncMode::None,
        "dsync" => SyncMode::Dsync,
        "sync" => SyncMode::Sync,
        other => return Err(napi::Error::from_reason(format!("`{other}` is not a sync mode"))),
    };
    let options = OpenOptions::new()
        .read(request.read)
        .write(request.write)
        .create(request.create)
        .create_new(request.create_new)
        .policy(policy)
        .sync(sync)
        .exclusive(request.exclusive)
        .mode(request.mode);
    let job = move || Ok(options.open(path)?);
    work::start_cancellable(env, &done, cancel, None, job, |_, _, file| Ok(NativeFile { file: Some(Arc::new(file)) }))
}

/// Makes a [`NativeFile`] from a copy of the descriptor `fd`, which stays open.
#[napi]
pub fn from_fd(env: Env, fd: i32, done: Unknown) -> napi::Result<()> {
    let job = move || {
        let copy = descriptor::file_of(fd)?.try_clone();
        let file = copy.map_err(|error| Failure::of_io("copying the descriptor", &error, "dup"))?;
        Ok(DirectFile::from_file(file)?)
    };
    work::start(env, &done, None, job, |_, _, file| Ok(NativeFile { file: Some(Arc::new(file)) }))
}

/// The result of a completed transfer.
#[napi(object)]
pub struct TransferFacts {
    /// Number of bytes; fewer than requested only from `read-to-end`, where the file ended.
    pub bytes: f64,
    /// Number of system calls.
    pub calls: u32,
    /// Whether it was made in a copy, because the buffer's memory was not allocated here.
    pub is_copied: bool,
}

/// The result of a flush.
#[napi(object)]
pub struct FlushFacts {
    /// The level that was reached.
    pub level: String,
    /// Whether the call is also specified to flush the device's volatile cache.
    pub is_device_cache_flushed: bool,
    /// The system call.
    pub call: String,
}

impl From<Flushed> for FlushFacts {
    fn from(flushed: Flushed) -> Self {
        Self {
            level: flushed.level.name().into(),
            is_device_cache_flushed: flushed.device_cache_flushed,
            call: flushed.call.into(),
        }
    }
}

/// Pages of a file in the page cache; absent: unknown.
#[napi(object)]
pub struct ResidencyFacts {
    /// In the cache.
    pub cached_pages: f64,
    /// Of these, dirty.
    pub dirty_pages: Option<f64>,
    /// Of these, under writeback.
    pub writeback_pages: Option<f64>,
    /// In bytes.
    pub page_size_bytes: f64,
    /// In the range.
    pub file_pages: f64,
    /// The source of the counts.
    pub source: String,
}

/// Facts that a disk reports; absent: not reported.
#[napi(object)]
pub struct DiskFacts {
    /// In bytes.
    pub size_bytes: f64,
    /// In bytes.
    pub logical_sector_bytes: u32,
    /// In bytes.
    pub physical_sector_bytes: Option<u32>,
    /// In bytes.
    pub minimum_io_bytes: Option<u32>,
    /// In bytes.
    pub optimal_io_bytes: Option<u32>,
    /// Whether the disk rotates.
    pub is_rotational: Option<bool>,
    /// Its serial number.
    pub serial: Option<String>,
    /// The source of the serial number.
    pub serial_source: Option<String>,
}

/// A kind of transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    /// Reads up to the end of the file.
    ReadToEnd,
    ReadUncached,
    ReadUnaligned,
    Write,
    WriteDsync,
    WriteUncached,
    WriteUnaligned,
    WriteAtomic,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "read" => Self::Read,
            "read-to-end" => Self::ReadToEnd,
            "read-uncached" => Self::ReadUncached,
            "read-unaligned" => Self::ReadUnaligned,
            "write" => Self::Write,
            "write-dsync" => Self::WriteDsync,
            "write-uncached" => Self::WriteUncached,
            "write-unaligned" => Self::WriteUnaligned,
            "write-atomic" => Self::WriteAtomic,
            _ => return None,
        })
    }

    fn access(self) -> Access {
        match self {
            Self::Read | Self::ReadToEnd | Self::ReadUncached | Self::ReadUnaligned => Access::Filled,
            _ => Access::Taken,
        }
    }

    fn is_strict(self) -> bool {
        !matches!(self, Self::ReadUnaligned | Self::WriteUnaligned)
    }
}

/// A failed transfer, with its likely cause.
pub(crate) fn failed(file: &DirectFile, error: TransferError) -> Failure {
    let likely = file.likely_cause(&error);
    let mut failure = Failure::from(error);
    if let Some(likely) = likely {
        failure.message += &format!(" (likely: {likely})");
    }
    failure
}

/// Makes the transfer. On the pool's thread.
fn carry_out(file: &DirectFile, kind: Kind, memory: &mut Claim, offset: u64) -> Result<TransferFacts, Failure> {
    use trueio_direct as direct;
    if matches!(kind, Kind::ReadUncached | Kind::WriteUncached) && file.granted() != Granted::Buffered {
        return Err(Failure::own(
            "ENOTSUP",
            format!(
                "an uncached transfer goes through the page cache, and this file is open as \"{}\"",
                file.granted()
            ),
        ));
    }
    let length = memory.bytes().len();
    let transfer = match kind {
        Kind::Read => file.read_exact_at(memory.bytes_mut(), offset),
        Kind::ReadToEnd => file.read_at(memory.bytes_mut(), offset),
        Kind::ReadUncached => direct::read_uncached_at(file.file(), memory.bytes_mut(), offset),
        Kind::ReadUnaligned => direct::read_unaligned_by_copy_at(file, memory.bytes_mut(), offset),
        Kind::Write => file.write_all_at(memory.bytes(), offset),
        Kind::WriteDsync => direct::write_dsync_at(file, memory.bytes(), offset),
        Kind::WriteUncached => direct::write_uncached_at(file.file(), memory.bytes(), offset),
        Kind::WriteUnaligned => direct::write_unaligned_by_read_modify_write_at(file, memory.bytes(), offset),
        Kind::WriteAtomic => {
            let probe = direct::probe_file(file.file())?;
            let Some(limits) = probe.atomic_write else {
                let why = match probe.atomic_write_answer {
                    Answer::No => "this file has no atomic writes",
                    _ => "it is unknown whether this file has atomic writes",
                };
                return Err(Failure::own("ENOTSUP", why));
            };
            direct::write_atomic_at(file, &limits, memory.bytes(), offset)?;
            return Ok(TransferFacts { bytes: length as f64, calls: 1, is_copied: false });
        }
    };
    let transfer = transfer.map_err(|error| failed(file, error))?;
    Ok(TransferFacts { bytes: transfer.bytes as f64, calls: transfer.calls, is_copied: false })
}

/// An open file.
#[napi]
pub struct NativeFile {
    /// [`None`] after `close`.
    file: Option<Arc<DirectFile>>,
}

#[napi]
impl NativeFile {
    pub(crate) fn open_file(&self) -> napi::Result<Arc<DirectFile>> {
        self.file.clone().ok_or_else(|| napi::Error::from_reason("the file is closed"))
    }

    /// What was granted: `direct`, `unconfirmed`, `not-kept` or `buffered`.
    #[napi(getter)]
    pub fn granted(&self) -> napi::Result<String> {
        Ok(granted_word(self.open_file()?.granted()).into())
    }

    /// The reason for `granted`.
    #[napi(getter)]
    pub fn reason(&self) -> napi::Result<String> {
        Ok(self.open_file()?.reason().to_owned())
    }

    /// The alignment that transfers require.
    #[napi(getter)]
    pub fn alignment(&self) -> napi::Result<AlignmentFacts> {
        Ok(self.open_file()?.alignment().into())
    }

    /// Releases the file. It is closed when its last transfer has ended.
    #[napi]
    pub fn close(&mut self, env: Env, done: Unknown) -> napi::Result<()> {
        // Closing may wait for the disk, so the last owner must not be this thread.
        let file = self.file.take();
        work::start(
            env,
            &done,
            None,
            move || {
                drop(file);
                Ok(())
            },
            |_, _, ()| Ok(()),
        )
    }

    /// Returns the reason why a transfer of `buffer` at `offset` would be refused; absent: none.
    #[napi]
    pub fn check(&self, env: Env, buffer: Unknown, offset: f64, is_write: bool) -> napi::Result<Option<Failure>> {
        let file = self.open_file()?;
        let memory = match memory::range_of(&env, buffer.raw()) {
            Ok(memory) => memory,
            Err(failure) => return Ok(Some(failure)),
        };
        Ok(check_memory(&file, memory, offset as u64, is_write).err())
    }

    /// Reads or writes all of `buffer` at `offset`, as set by `kind`.
    #[napi]
    pub fn transfer(
        &self,
        env: Env,
        kind: String,
        buffer: Unknown,
        offset: f64,
        done: Unknown,
        cancel: Option<&Cancel>,
    ) -> napi::Result<Option<Failure>> {
        let file = self.open_file()?;
        let Some(kind) = Kind::of(&kind) else {
            return Err(napi::Error::from_reason(format!("`{kind}` is not a kind of transfer")));
        };
        // What the check in JavaScript lets through: 0 to 2^53 - 1.
        let offset = offset as u64;
        match claim(&env, &file, kind.access(), kind.is_strict(), buffer.raw(), offset) {
            Err(failure) => Ok(Some(failure)),
            Ok((mut memory, is_copied)) => {
                let job = move || Ok((carry_out(&file, kind, &mut memory, offset), memory));
                let settle = move |env: &Env, kept: Option<sys::napi_value>, (moved, memory): (Moved, Claim)| {
                    if is_copied && kind.access() == Access::Filled {
                        copy_back(env, kept, &memory, moved_bytes(&moved))?;
                    }
                    moved.map(|facts| TransferFacts { is_copied, ..facts })
                };
                work::start_cancellable(env, &done, cancel, Some(&buffer), job, settle)?;
                Ok(None)
            }
        }
    }

    /// Makes earlier writes durable up to `level`.
    #[napi]
    pub fn flush(&self, env: Env, level: String, done: Unknown, cancel: Option<&Cancel>) -> napi::Result<()> {
        let file = self.open_file()?;
        let level = flush_level(&level)?;
        let job = move || file.flush(level).map_err(|error| Failure::of_io("flushing", &error, "fsync"));
        work::start_cancellable(env, &done, cancel, None, job, |_, _, flushed| Ok(FlushFacts::from(flushed)))
    }

    /// Reserves space.
    #[napi]
    pub fn preallocate(&self, env: Env, offset: f64, length: f64, done: Unknown) -> napi::Result<()> {
        let file = self.open_file()?;
        let job = move || {
            trueio_direct::preallocate(file.file(), offset as u64, length as u64)
                .map_err(|error| Failure::of_io("reserving space", &error, "fallocate"))
        };
        work::start(env, &done, None, job, |_, _, ()| Ok(()))
    }

    /// Sets the length of the file, in bytes.
    #[napi]
    pub fn truncate(&self, env: Env, length: f64, done: Unknown) -> napi::Result<()> {
        let file = self.open_file()?;
        let job = move || {
            file.truncate(length as u64).map_err(|error| Failure::of_io("setting the length", &error, "ftruncate"))
        };
        work::start(env, &done, None, job, |_, _, ()| Ok(()))
    }

    /// The length of the file, or the capacity of the disk, in bytes.
    #[napi]
    pub fn size(&self, env: Env, done: Unknown) -> napi::Result<()> {
        let file = self.open_file()?;
        let job = move || {
            let size = file.size().map_err(|error| Failure::of_io("reading the size", &error, "fstat"))?;
            Ok(size as f64)
        };
        work::start(env, &done, None, job, |_, _, size| Ok(size))
    }

    /// Returns the facts that the disk reports.
    #[napi]
    pub fn device_facts(&self, env: Env, done: Unknown) -> napi::Result<()> {
        let file = self.open_file()?;
        let job = move || Ok(trueio_direct::device_facts(file.file())?);
        work::start(env, &done, None, job, |_, _, facts| {
            Ok(DiskFacts {
                size_bytes: facts.size_bytes as f64,
                logical_sector_bytes: facts.logical_sector_bytes,
                physical_sector_bytes: facts.physical_sector_bytes,
                minimum_io_bytes: facts.minimum_io_bytes,
                optimal_io_bytes: facts.optimal_io_bytes,
                is_rotational: facts.is_rotational,
                serial: facts.serial,
                serial_source: facts.serial_source.map(str::to_owned),
            })
        })
    }

    /// Locks the file without waiting, `shared` or `exclusive`; `none` releases the lock.
    #[napi]
    pub fn lock(&self, env: Env, mode: String, done: Unknown) -> napi::Result<()> {
        let file = self.open_file()?;
        let mode = lock_mode(&mode)?;
        let job = move || match mode {
            Some(mode) => Ok(trueio_direct::try_lock(file.file(), mode)?),
            None => Ok(trueio_direct::unlock(file.file())?),
        };
        work::start(env, &done, None, job, |_, _, ()| Ok(()))
    }

    /// Locks a range without waiting, `shared` or `exclusive`; `none` releases the lock.
    #[napi]
    pub fn lock_range(&self, env: Env, mode: String, offset: f64, length: f64, done: Unknown) -> napi::Result<()> {
        let file = self.open_file()?;
        let mode = lock_mode(&mode)?;
        let (offset, length) = (offset as u64, length as u64);
        let job = move || match mode {
            Some(mode) => Ok(trueio_direct::try_lock_range(file.file(), mode, offset, length)?),
            None => Ok(trueio_direct::unlock_range(file.file(), offset, length)?),
        };
        work::start(env, &done, None, job, |_, _, ()| Ok(()))
    }

    /// Counts the file's pages in the page cache; a length of 0 means up to the end.
    #[napi]
    pub fn residency(&self, env: Env, offset: f64, length: f64, done: Unknown) -> napi::Result<()> {
        let file = self.open_file()?;
        let job = move || {
            trueio_direct::residency(file.file(), offset as u64, length as u64)
                .map_err(|error| Failure::of_io("counting cached pages", &error, "cachestat"))
        };
        work::start(env, &done, None, job, |_, _, found| {
            Ok(ResidencyFacts {
                cached_pages: found.cached_pages as f64,
                dirty_pages: found.dirty_pages.map(|pages| pages as f64),
                writeback_pages: found.writeback_pages.map(|pages| pages as f64),
                page_size_bytes: found.page_size_bytes as f64,
                file_pages: found.file_pages as f64,
                source: found.source.into(),
            })
        })
    }

    /// Requests that clean pages of the file are dropped; a length of 0 means up to the end.
    #[napi]
    pub fn evict(&self, env: Env, offset: f64, length: f64, done: Unknown) -> napi::Result<()> {
        let file = self.open_file()?;
        let job = move || {
            trueio_direct::evict(file.file(), offset as u64, length as u64)
                .map_err(|error| Failure::of_io("evicting cached pages", &error, "fadvise"))
        };
        work::start(env, &done, None, job, |_, _, ()| Ok(()))
    }
}

/// Returns the lock mode of a word; [`None`]: no lock.
fn lock_mode(word: &str) -> napi::Result<Option<LockMode>> {
    match word {
        "shared" => Ok(Some(LockMode::Shared)),
        "exclusive" => Ok(Some(LockMode::Exclusive)),
        "none" => Ok(None),
        other => Err(napi::Error::from_reason(format!("`{other}` is not a lock mode"))),
    }
}

/// Checks the alignment of a strict transfer of the bytes at `memory`.
pub(crate) fn check_memory(file: &DirectFile, memory: MemoryRange, offset: u64, is_write: bool) -> Result<(), Failure> {
    check_transfer(file.alignment(), memory.address.addr(), memory.length, offset, is_write)
        .map_err(|misaligned| Failure::from(&misaligned))
}

/// Claims the memory for a transfer, and returns whether it is a copy.
pub(crate) fn claim(
    env: &Env,
    file: &DirectFile,
    access: Access,
    is_strict: bool,
    buffer: sys::napi_value,
    offset: u64,
) -> Result<(Claim, bool), Failure> {
    let memory = memory::range_of(env, buffer)?;
    if let Some((block, range)) = memory::block_at(memory) {
        return Ok((block.claim(range, access)?, false));
    }
    // A copy is aligned whatever the user's buffer is, so the user's must be checked here.
    if is_strict && memory.length > 0 {
        check_memory(file, memory, offset, access == Access::Taken)?;
    }
    let align = file.alignment().or_assumed().memory_bytes.unwrap_or(1).max(4096) as usize;
    // A transfer of no bytes still has an address.
    let block = Block::new(memory.length.max(1), align.next_power_of_two())?;
    if access == Access::Taken && memory.length > 0 {
        let mut whole = block.claim(0..memory.length, Access::Filled)?;
        // SAFETY: the buffer's bytes, in place until JavaScript runs again, and not this block's.
        unsafe { std::ptr::copy_nonoverlapping(memory.address, whole.bytes_mut().as_mut_ptr(), memory.length) };
    }
    Ok((block.claim(0..memory.length, access)?, true))
}

/// The end of a transfer, which may have moved bytes before it failed.
pub(crate) type Moved = Result<TransferFacts, Failure>;

/// Returns the bytes that were moved, also before a failure.
pub(crate) fn moved_bytes(moved: &Moved) -> usize {
    let bytes = match moved {
        Ok(facts) => facts.bytes,
        Err(failure) => failure.done_bytes.unwrap_or(0.0),
    };
    bytes as usize
}

/// Copies the first `length` bytes, which were read, to the buffer that they were read for.
pub(crate) fn copy_back(
    env: &Env,
    kept: Option<sys::napi_value>,
    memory: &Claim,
    length: usize,
) -> Result<(), Failure> {
    let buffer = memory::range_of(env, kept.unwrap_or(std::ptr::null_mut()))?;
    let bytes = memory.bytes();
    if buffer.length != bytes.len() {
        return Err(Failure::own(
            "ERR_TRUEIO_BUFFER_DETACHED",
            "the buffer's memory was given away (transferred or resized) while it was being read into",
        ));
    }
    assert!(length <= buffer.length);
    if length == 0 {
        return Ok(());
    }
    // SAFETY: the buffer's bytes, in place until JavaScript runs again, and not this block's.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.address, length) };
    Ok(())
}
