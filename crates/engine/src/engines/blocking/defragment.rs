//! `e4defrag`: exchanges the blocks of a file on ext4 for those of a donor, as defragmenting does.
//!
//! The donor is a new file without a name (`O_TMPFILE`) in the directory of the job's file. So no existing file is
//! changed, and nothing remains. The kernel copies the content of the job's file into the donor's blocks, and exchanges the two:
//! the content stays what it was, at another place of the disk.
//!
//! Limits: the blocks that the kernel reads and writes for it are not counted as I/O of the job.
//!
//! Source: Linux `fs/ext4/move_extent.c`, `fs/ext4/ioctl.c` (`EXT4_IOC_MOVE_EXT`), e4defrag(8).

use super::Call;
use crate::engines::{EngineError, EngineSetup, TargetFile};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use trueio_model::EngineKind;

/// What the kernel reads and writes for `EXT4_IOC_MOVE_EXT`: places and lengths are counted in blocks of the filesystem.
#[repr(C)]
#[derive(Debug)]
struct MoveExtent {
    reserved: u32,
    donor: u32,
    begin: u64,
    donor_begin: u64,
    length: u64,
    moved: u64,
}

const _: () = assert!(size_of::<MoveExtent>() == 40);

/// `_IOWR('f', 15, struct move_extent)`.
const EXT4_IOC_MOVE_EXT: u32 = 0xc028_660f;
/// The magic number of ext2, ext3 and ext4 (statfs(2)).
const EXT4_MAGIC: u64 = 0xef53;

/// `EXT4_IOC_MOVE_EXT`. `EACH`: the donor's blocks are allocated before each I/O and freed after it (`inplace`).
#[derive(Debug)]
pub struct E4defrag<const EACH: bool> {
    /// A donor for each file of the job.
    donors: Vec<Donor>,
}

#[derive(Debug)]
struct Donor {
    file: File,
    block_bytes: u64,
}

impl Donor {
    /// Creates the donor of a file, with `allocated_bytes` allocated.
    fn of(target: &TargetFile, allocated_bytes: u64) -> Result<Self, EngineError> {
        let failed = |what: &str| {
            let attempted = format!("{what} `{}`", target.path);
            move |source: io::Error| EngineError { engine: EngineKind::E4defrag, attempted, source }
        };
        let status = rustix::fs::fstatfs(&*target.file).map_err(io::Error::from).map_err(failed("the status of"))?;
        if u64::try_from(status.f_type) != Ok(EXT4_MAGIC) {
            let reason = io::Error::new(io::ErrorKind::Unsupported, "the file is not on ext4");
            return Err(failed("moving the blocks of")(reason));
        }
        let path = std::fs::read_link(format!("/proc/self/fd/{}", target.file.as_raw_fd()));
        let path = path.map_err(failed("finding the directory of"))?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)
            .map_err(io::Error::from)
            .map_err(failed("creating a file without a name in the directory of"))?;
        if allocated_bytes > 0 {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, allocated_bytes)
                .map_err(io::Error::from)
                .map_err(failed("allocating as many blocks as the region has in"))?;
        }
        Ok(Self { file: file.into(), block_bytes: u64::try_from(status.f_bsize).unwrap_or(4096).max(1) })
    }
}

impl<const EACH: bool> E4defrag<EACH> {
    /// Exchanges the blocks of a range; the bytes of the range that were moved.
    fn exchange(donor: &Donor, fd: RawFd, offset: u64, length: u64) -> io::Result<u64> {
        let begin = offset / donor.block_bytes;
        let mut range = MoveExtent {
            reserved: 0,
            donor: u32::try_from(donor.file.as_raw_fd()).unwrap_or(u32::MAX),
            begin,
            donor_begin: begin,
            length: (offset + length).div_ceil(donor.block_bytes) - begin,
            moved: 0,
        };
        // SAFETY: the kernel reads and writes the 40 bytes of `range`, which lives until the call returns.
        let result = unsafe { libc::ioctl(fd, EXT4_IOC_MOVE_EXT as _, &raw mut range) };
        match (result, range.moved * donor.block_bytes) {
            (0, moved) if moved > 0 => Ok(moved.min(length)),
            (0, _) => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl<const EACH: bool> Call for E4defrag<EACH> {
    const KIND: EngineKind = EngineKind::E4defrag;

    fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        let bytes = |target: &TargetFile| if EACH { 0 } else { target.end_bytes };
        let donors = setup.files.iter().map(|target| Donor::of(target, bytes(target)));
        Ok(Self { donors: donors.collect::<Result<_, _>>()? })
    }

    unsafe fn transfer<const READ: bool>(
        &mut self,
        file: usize,
        fd: RawFd,
        _: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize {
        assert!(!READ, "the plan gives this engine writes only");
        let donor = &self.donors[file];
        let (offset, length) = (offset as u64, length as u64);
        let mut result = Ok(());
        if EACH {
            result =
                rustix::fs::fallocate(&donor.file, FallocateFlags::empty(), offset, length).map_err(io::Error::from);
        }
        let mut moved = result.and_then(|()| Self::exchange(donor, fd, offset, length));
        if EACH && let Err(error) = donor.file.set_len(0) {
            moved = moved.and(Err(error));
        }
        match moved {
            Ok(bytes) => bytes as isize,
            Err(error) => {
                // SAFETY: the thread's own error number, from which the caller takes the reason.
                unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
                -1
            }
        }
    }
}
