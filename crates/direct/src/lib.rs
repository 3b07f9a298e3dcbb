//! Direct I/O on Linux, macOS, FreeBSD and Windows: open a file past the page cache, know what was
//! really granted, keep to its alignment, transfer exactly, and make it durable as far as you mean.
//!
//! That `open` accepts `O_DIRECT` proves nothing. tmpfs and ext4 with `data=journal` take the flag and use the page
//! cache, btrfs does so for writes; a misaligned buffer fails with `EINVAL` on one filesystem, is quietly
//! buffered on the next, and works by chance on a third. This crate asks first, checks before each
//! call, and hands on the answer with the name of who gave it. What nobody says is "unknown", and is
//! never taken for "no" or for "yes".
//!
//! # A tour
//!
//! **Ask.** [`probe()`] says whether direct I/O can be had, at which alignment, and who says so. Nothing
//! is written. [`probe_directory`] asks before there is a file.
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
//! **Open, write, make durable.** [`Policy::Require`] gives direct I/O or no file, [`Policy::Prefer`]
//! gives what can be had and says what that is. Memory comes from [`AlignedBuffer`]. A new file is
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
//! **Read with several buffers.** A [`BufferPool`] is one allocation, its pages touched in advance, so
//! that it can be registered with io_uring and the first read pays for no page fault.
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
//! **Be told what is wrong.** Misalignment is found before the call, and named: which of address,
//! length and offset, what it is, what is needed, who says so.
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
//! **Write what does not fit.** [`write_unaligned_by_read_modify_write_at`] does what its name says, and
//! its documentation says what that costs and endangers.
//!
//! **Write what must not tear.** [`write_atomic_at`], within the limits that [`probe()`] reports.
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
//!     None => println!("no atomic writes here"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Look into the page cache.** [`residency()`] counts the pages of a file that are cached, dirty or
//! being written; [`evict`] asks for them to be dropped.
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
//! println!("{} of {} pages, says {}", left.cached_pages, left.file_pages, left.source);
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Ask a disk.** [`device_facts`]: size, sectors, serial number; a missing serial costs nothing else.
//! **Keep others out.** [`OpenOptions::exclusive`], [`try_lock`], [`try_lock_range`], [`lock_volume`].
//! **Reserve space.** [`preallocate`].
//!
//! # What each call does on each system
//!
//! | task | Linux | macOS | FreeBSD | Windows | source |
//! |---|---|---|---|---|---|
//! | past the cache: file | `O_DIRECT` | `F_NOCACHE`: not kept | `O_DIRECT`: not kept | `FILE_FLAG_NO_BUFFERING` | open(2) of Linux and FreeBSD; macOS fcntl(2); Microsoft "File Buffering" |
//! | past the cache: disk | `O_DIRECT` | `/dev/rdiskN` | every disk | `FILE_FLAG_NO_BUFFERING` | the same; `<sys/disk.h>` |
//! | who tells support | `statx`, `statfs`, mount options | nobody | nobody | the call itself; Wine is recognised | statx(2), statfs(2), proc_pid_mountinfo(5) |
//! | who tells alignment | `statx`, `XFS_IOC_DIOINFO`, sector | `DKIOCGETBLOCKSIZE` | `DIOCGSECTORSIZE` | `FileStorageInfo`, storage query, `GetDiskFreeSpaceW` | statx(2), xfsctl(3), `<sys/disk.h>`; "FILE_STORAGE_INFO" |
//! | every write durable | `O_DSYNC`, `O_SYNC` | `O_DSYNC`, `O_SYNC` (not through the drive's cache) | `O_DSYNC`, `O_SYNC` | `FILE_FLAG_WRITE_THROUGH` | open(2); "CreateFileW" |
//! | flush | see [`FlushLevel`] | | | |  |
//! | names durable | `fsync` of the folder | the same | the same | no call is documented | fsync(2) |
//! | reserve | `fallocate` | `F_PREALLOCATE`, `ftruncate` | `posix_fallocate` | `FileAllocationInfo`, end of file | fallocate(2), posix_fallocate(2), macOS fcntl(2); "FILE_ALLOCATION_INFO" |
//! | residency | `cachestat`, `mincore` | `mincore` | `mincore` if `vm.mincore_mapped` is 0 | no call | Linux `mm/filemap.c`, mincore(2) |
//! | evict | `posix_fadvise` | `msync(MS_INVALIDATE)` | `posix_fadvise` | no call | posix_fadvise(2), msync(2) |
//! | lock a file | `flock` | `flock` | `flock` | `LockFileEx`, mandatory | flock(2); "LockFileEx" |
//! | lock a range | `F_OFD_SETLK` | `F_OFD_SETLK` | no call | `LockFileEx`, mandatory | fcntl_locking(2); "LockFileEx" |
//! | alone on a disk | `O_EXCL` | `O_EXLOCK`, advisory | `O_EXLOCK`, advisory | share mode 0, `FSCTL_LOCK_VOLUME` | open(2); "CreateFileW", "FSCTL_LOCK_VOLUME" |
//! | atomic, uncached, durable writes | `RWF_ATOMIC`, `RWF_DONTCACHE`, `RWF_DSYNC` | no call | no call | no call | pwritev2(2), Linux `include/uapi/linux/fs.h` |
//! | huge pages for large buffers | `MADV_HUGEPAGE` | not asked for | made by the system itself | not asked for | madvise(2) |
//! | serial number | SCSI page 0x80, sysfs | none (IOKit only) | `DIOCGIDENT` | `StorageDeviceProperty` | SPC-4 7.8.15, `<sys/disk.h>`; "STORAGE_DEVICE_DESCRIPTOR" |
//!
//! Where a system has no call, the function fails with [`std::io::ErrorKind::Unsupported`] and a
//! sentence, and does not do something else.
//!
//! # What was tested where
//!
//! Linux: for real, on ext4, ext4 with `data=journal`, XFS, btrfs, tmpfs, ramfs, overlayfs, and loop
//! devices of both sector sizes. Windows: under Wine 8.0, which lacks several of the calls; never on
//! Windows itself. macOS and FreeBSD: type-checked and linked, never run; each call names the manual page
//! it rests on. On no system was a disk with a serial number at hand. Call by call, with the test that would fail:
//! `docs/platforms.md` of the repository.
//!
//! One door, one file per system: `os/{linux,macos,freebsd,windows}.rs` offer the same functions.
#![deny(missing_docs)]

mod alignment;
mod buffer;
mod cache;
mod convert;
mod device;
mod flush;
mod lock;
mod open;
mod os;
mod probe;
mod special;
mod transfer;
mod unaligned;

#[cfg(all(test, target_os = "linux"))]
#[path = "../tests/support/mod.rs"]
mod test_support;

pub use alignment::{
    ASSUMED_ALIGNMENT_BYTES, Alignment, AlignmentSource, Misaligned, TransferPart, check_transfer, round_down, round_up,
};
pub use buffer::{AlignedBuffer, BufferError, BufferPool};
pub use cache::{Residency, evict, residency, set_nocache};
pub use device::{DeviceError, DeviceFacts, device_facts};
pub use flush::{FlushLevel, Flushed, flush, preallocate, sync_directory};
pub use lock::{LockError, LockMode, lock_volume, try_lock, try_lock_range, unlock, unlock_range, unlock_volume};
pub use open::{DirectFile, Granted, OpenError, OpenOptions, Policy, SyncMode};
pub use probe::{Answer, AtomicWrite, Probe, ProbeError, Support, probe, probe_directory, probe_file};
pub use special::{AtomicError, read_uncached_at, write_atomic_at, write_dsync_at, write_uncached_at};
pub use transfer::{
    Transfer, TransferError, read_at, read_exact_at, read_vectored_at, write_all_at, write_vectored_at,
};
pub use unaligned::{read_unaligned_by_copy_at, write_unaligned_by_read_modify_write_at};
