//! Direct I/O on Linux, macOS, FreeBSD and Windows: open a file past the page cache, learn what was
//! really granted, keep to its alignment, transfer exactly, and make data durable to a stated level.
//!
//! That `open` accepts `O_DIRECT` proves nothing. tmpfs and ext4 with `data=journal` accept the flag and use the page
//! cache; btrfs does so for writes. A misaligned buffer fails with `EINVAL` on one filesystem, is silently
//! buffered on the next, and works by chance on a third. This crate probes first, checks each transfer before the
//! call, and reports each answer with its source. Where no source answers, the result is "unknown": never "no", and
//! never "yes".
//!
//! # A tour
//!
//! **Probe.** [`probe()`] reports whether direct I/O is available, at which alignment, and from which source that is
//! known. It writes nothing. [`probe_directory`] answers before the file exists.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("data");
//! # std::fs::write(&path, b"x").unwrap();
//! let probe = trueio_direct::probe(&path)?;
//! println!("{}: {} ({})", path.display(), probe.reason, probe.alignment);
//! # Ok::<(), trueio_direct::ProbeError>(())
//! ```
//!
//! **Open, write, make durable.** [`Policy::Require`] opens the file for direct I/O or fails. [`Policy::Prefer`]
//! falls back to the page cache and reports that. [`AlignedBuffer`] allocates suitable memory. A new file is
//! durable when its data *and* its name are.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let (folder, path) = (folder.path(), folder.path().join("log"));
//! use trueio_direct::{AlignedBuffer, FlushLevel, OpenOptions, Policy, sync_directory};
//!
//! let file = OpenOptions::new().write(true).create_new(true).policy(Policy::Prefer).open(&path)?;
//! println!("{}: {}", file.granted(), file.reason());
//!
//! let mut buffer = AlignedBuffer::new(64 * 1024, 4096)?;
//! buffer[..6].copy_from_slice(b"record");
//! file.write_all_at(&buffer, 0)?;
//! let flushed = file.flush(FlushLevel::Device)?;
//! assert!(flushed.device_cache_flushed);
//! # #[cfg(unix)]
//! sync_directory(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Read with several buffers.** A [`BufferPool`] is one allocation whose pages are touched in advance. It can be
//! registered with io_uring, and the first read causes no page fault.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("data");
//! # std::fs::write(&path, vec![7; 32 * 4096]).unwrap();
//! use trueio_direct::{BufferPool, OpenOptions, Policy};
//!
//! let file = OpenOptions::new().read(true).policy(Policy::Prefer).open(&path)?;
//! let mut pool = BufferPool::new(32, 4096, 4096)?;
//! for index in 0..pool.count() {
//!     file.read_exact_at(pool.slice_mut(index), index as u64 * 4096)?;
//! }
//! assert_eq!(pool.slice(31)[0], 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Threads share a [`SharedBufferPool`]: a guard owns its buffer and returns it on drop.
//!
//! **Find misalignment before the call.** The error names the part (address, length or offset), its value, the
//! required multiple, and the source of that requirement.
//!
//! ```
//! use trueio_direct::{Alignment, AlignmentSource, check_transfer};
//!
//! let alignment = Alignment::uniform(4096, AlignmentSource::Statx);
//! assert_eq!(
//!     check_transfer(&alignment, 0x7f00_1000, 512, 0, true).unwrap_err().to_string(),
//!     "the length of this write, 512, is not a multiple of 4096 bytes (reported by statx)"
//! );
//! ```
//!
//! **Read and write as a stream.** [`DirectReader`] and [`DirectWriter`] are `Read`, `BufRead`, `Write` and `Seek` over
//! aligned blocks; [`DirectWriter::finish`] writes the unaligned tail and returns the file.
//!
//! **Copy.** [`copy_file`] copies a file, a disk or a range of one past the cache, keeps holes, reports progress and
//! flushes; it refuses to overwrite a file unless that is set, and to copy a file onto itself.
//!
//! **Write at any offset.** [`write_unaligned_by_read_modify_write_at`] writes whole blocks directly and parts of blocks so
//! that concurrent writers lose nothing. Its documentation states how, and the cost.
//!
//! **Write without tearing.** [`write_atomic_at`] writes all or nothing, within the limits that [`probe()`] reports.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("data");
//! use trueio_direct::{AlignedBuffer, OpenOptions, Policy, probe_file, write_atomic_at};
//!
//! let file = OpenOptions::new().read(true).write(true).create_new(true).policy(Policy::Prefer).open(&path)?;
//! match probe_file(file.file())?.atomic_write {
//!     Some(limits) => {
//!         let page = AlignedBuffer::new(limits.min_bytes as usize, 4096)?;
//!         write_atomic_at(&file, &limits, &page, 0)?;
//!     }
//!     None => println!("atomic writes are not available"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Inspect the page cache.** [`residency()`] counts the pages of a file that are cached, dirty or under
//! writeback; [`evict`] asks the kernel to drop them.
//!
//! ```
//! # #[cfg(target_os = "linux")] {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("data");
//! # std::fs::write(&path, vec![7; 32 * 4096]).unwrap();
//! use trueio_direct::{FlushLevel, evict, flush, residency};
//!
//! let file = std::fs::File::open(&path)?;
//! flush(&file, FlushLevel::Data)?;
//! evict(&file, 0, 0)?;
//! let left = residency(&file, 0, 0)?;
//! println!("{} of {} pages ({})", left.cached_pages, left.file_pages, left.source);
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Query a disk.** [`device_facts`] returns size, sector sizes and, if the disk reports one, the serial number.
//! **Lock.** [`OpenOptions::exclusive`], [`try_lock`], [`try_lock_range`], [`lock_volume`].
//! **Reserve space.** [`preallocate`].
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `tokio` | `AsyncDirectFile`: each call on tokio's threads for blocking work, with buffers that are passed by value |
//! | `compio` | [`AlignedBuffer`] and [`PooledBuffer`] are `IoBuf` and `IoBufMut` of compio-buf 0.8, which needs a newer compiler than 1.88 |
//! | `tokio-uring` | the same for tokio-uring 0.5 *(Linux)* |
//!
//! # What each call does on each system
//!
//! | task | Linux | macOS | FreeBSD | Windows | source |
//! |---|---|---|---|---|---|
//! | bypass the cache: file | `O_DIRECT` | `F_NOCACHE`: not kept | `O_DIRECT`: not kept | `FILE_FLAG_NO_BUFFERING` | open(2) of Linux and FreeBSD; macOS fcntl(2); Microsoft "File Buffering" |
//! | bypass the cache: disk | `O_DIRECT` | `/dev/rdiskN` | every disk | `FILE_FLAG_NO_BUFFERING` | the same; `<sys/disk.h>` |
//! | source of support | `statx`, `statfs`, mount options | none | none | the call itself; Wine is recognised | statx(2), statfs(2), proc_pid_mountinfo(5) |
//! | source of alignment | `statx`, `XFS_IOC_DIOINFO`, sector | `DKIOCGETBLOCKSIZE` | `DIOCGSECTORSIZE` | `FileStorageInfo`, storage query, `GetDiskFreeSpaceW` | statx(2), xfsctl(3), `<sys/disk.h>`; "FILE_STORAGE_INFO" |
//! | adopt an open file | `F_GETFL` | not reported | `F_GETFL` | `FileModeInformation` | fcntl(2); "FILE_MODE_INFORMATION" |
//! | holes of a copied file | `SEEK_DATA`, `SEEK_HOLE` | the same | the same | all is data | lseek(2) |
//! | every write durable | `O_DSYNC`, `O_SYNC` | `O_DSYNC`, `O_SYNC` (not through the drive's cache) | `O_DSYNC`, `O_SYNC` | `FILE_FLAG_WRITE_THROUGH` | open(2); "CreateFileW" |
//! | flush | see [`FlushLevel`] | | | |  |
//! | names durable | `fsync` of the directory | the same | the same | no documented call | fsync(2) |
//! | reserve | `fallocate` | `F_PREALLOCATE`, a zero at the end | `posix_fallocate` | a zero at the end | fallocate(2), posix_fallocate(2), macOS fcntl(2) |
//! | parts of blocks of a file | second descriptor, `sync_file_range` | every alignment is accepted | second descriptor (14.0), `fdatasync` | `ReOpenFile` | open(2), sync_file_range(2), FreeBSD open(2) `O_EMPTY_PATH`; "ReOpenFile" |
//! | residency | `cachestat`, `mincore` | `mincore` | `mincore` if `vm.mincore_mapped` is 0 | no call | Linux `mm/filemap.c`, mincore(2) |
//! | evict | `posix_fadvise` | `msync(MS_INVALIDATE)` | `posix_fadvise` | no call | posix_fadvise(2), msync(2) |
//! | lock a file | `flock` | `flock` | `flock` | `LockFileEx`, mandatory | flock(2); "LockFileEx" |
//! | lock a range | `F_OFD_SETLK` | `F_OFD_SETLK` | no call | `LockFileEx`, mandatory | fcntl_locking(2); "LockFileEx" |
//! | exclusive use of a disk | `O_EXCL` | `O_EXLOCK`, advisory | `O_EXLOCK`, advisory | share mode 0, `FSCTL_LOCK_VOLUME` | open(2); "CreateFileW", "FSCTL_LOCK_VOLUME" |
//! | atomic, uncached, durable writes | `RWF_ATOMIC`, `RWF_DONTCACHE`, `RWF_DSYNC` | no call | no call | no call | pwritev2(2), Linux `include/uapi/linux/fs.h` |
//! | huge pages for large buffers | `MADV_HUGEPAGE` | not requested | made by the system itself | not requested | madvise(2) |
//! | serial number | SCSI page 0x80, sysfs | none (IOKit only) | `DIOCGIDENT` | `StorageDeviceProperty` | SPC-4 7.8.15, `<sys/disk.h>`; "STORAGE_DEVICE_DESCRIPTOR" |
//!
//! Where a system has no call, the function fails with [`std::io::ErrorKind::Unsupported`] and a message. It never
//! substitutes a weaker operation.
//!
//! # What was tested where
//!
//! Linux: on ext4, ext4 with `data=journal`, XFS, btrfs, tmpfs, ramfs, overlayfs, FUSE, and loop devices with sectors of
//! 512 and 4,096 bytes. Windows: under Wine 8.0, which lacks several of the calls; never on Windows itself. macOS and
//! FreeBSD: type-checked and linked, never run; each call cites its manual page. Serial numbers were not tested: no
//! disk with one was available on any system. `docs/dev/direct-calls.md` of the repository lists each call with its test.
//!
//! Each system has one file, `os/{linux,macos,freebsd,windows}.rs`, with the same functions.
#![deny(missing_docs)]

mod alignment;
#[cfg(any(feature = "tokio", feature = "compio", feature = "tokio-uring"))]
mod asynchronous;
mod block_locks;
mod buffer;
mod cache;
mod convert;
mod copy;
mod device;
mod flush;
mod lock;
mod open;
mod os;
mod pool;
mod probe;
mod reader;
mod special;
mod transfer;
mod types;
mod unaligned;
mod window;
mod writer;

pub use alignment::{
    ASSUMED_ALIGNMENT_BYTES, Alignment, AlignmentSource, Misaligned, TransferPart, check_transfer, round_down, round_up,
};
#[cfg(feature = "tokio")]
pub use asynchronous::AsyncDirectFile;
pub use buffer::{AlignedBuffer, BufferError, BufferPool};
pub use cache::{evict, residency, set_nocache};
pub use copy::{Copied, CopyError, CopyOptions, CopyProgress, copy_file};
pub use device::device_facts;
pub use flush::{flush, preallocate, sync_directory};
pub use lock::{lock_volume, try_lock, try_lock_range, unlock, unlock_range, unlock_volume};
pub use pool::{PooledBuffer, SharedBufferPool};
pub use probe::{probe, probe_directory, probe_file};
pub use reader::DirectReader;
pub use special::{AtomicError, read_uncached_at, write_atomic_at, write_dsync_at, write_uncached_at};
pub use transfer::{
    Transfer, TransferError, read_at, read_exact_at, read_vectored_at, write_all_at, write_vectored_at,
};
pub use types::{
    Answer, AtomicWrite, DeviceError, DeviceFacts, DirectFile, FlushLevel, Flushed, Granted, LockError, LockMode,
    OpenError, OpenOptions, Policy, Probe, ProbeError, Residency, Support, SyncMode,
};
pub use unaligned::{read_unaligned_by_copy_at, write_unaligned_by_read_modify_write_at};
pub use writer::{DirectWriter, FinishError};
