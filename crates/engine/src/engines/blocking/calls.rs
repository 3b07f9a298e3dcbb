//! The calls of the engines that transfer data or make room for it, one type each.

use super::Call;
use crate::engines::{EngineError, EngineSetup, rwf};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io;
use std::os::fd::RawFd;
use trueio_model::{EngineKind, OpKind};

/// `pread` and `pwrite`.
#[derive(Debug)]
pub struct Psync;

impl Call for Psync {
    const KIND: EngineKind = EngineKind::Psync;

    fn new(_: &EngineSetup<'_>) -> Result<Self, EngineError> {
        Ok(Self)
    }

    #[inline(always)]
    unsafe fn transfer<const READ: bool>(
        &mut self,
        _: usize,
        fd: RawFd,
        buffer: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize {
        // SAFETY: the caller's promise.
        unsafe {
            if READ {
                libc::pread(fd, buffer.cast(), length, offset)
            } else {
                libc::pwrite(fd, buffer.cast(), length, offset)
            }
        }
    }
}

/// `preadv` and `pwritev`.
#[derive(Debug)]
pub struct Pvsync;

impl Call for Pvsync {
    const KIND: EngineKind = EngineKind::Pvsync;

    fn new(_: &EngineSetup<'_>) -> Result<Self, EngineError> {
        Ok(Self)
    }

    #[inline(always)]
    unsafe fn transfer<const READ: bool>(
        &mut self,
        _: usize,
        fd: RawFd,
        buffer: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize {
        let vector = libc::iovec { iov_base: buffer.cast(), iov_len: length };
        // SAFETY: the vector names the caller's bytes and lives until the call returns.
        unsafe { if READ { libc::preadv(fd, &vector, 1, offset) } else { libc::pwritev(fd, &vector, 1, offset) } }
    }
}

/// `preadv2` and `pwritev2`, with the RWF flags.
#[derive(Debug)]
pub struct Pvsync2 {
    read_flags: i32,
    write_flags: i32,
    polled: Option<Polled>,
}

/// Which I/Os are polled for, where it is not all of them.
#[derive(Debug)]
struct Polled {
    percent: u8,
    rng: Xoshiro256PlusPlus,
}

impl Polled {
    fn new(percent: u8, seed: u64) -> Self {
        Self { percent, rng: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x9011) }
    }

    /// The flags of the next I/O.
    fn flags(&mut self, all: i32) -> i32 {
        if self.rng.random_range(0..100u8) < self.percent { all } else { all & !libc::RWF_HIPRI }
    }
}

impl Pvsync2 {
    #[inline(always)]
    fn flags(&mut self, all: i32) -> i32 {
        match &mut self.polled {
            None => all,
            Some(polled) => polled.flags(all),
        }
    }
}

impl Call for Pvsync2 {
    const KIND: EngineKind = EngineKind::Pvsync2;

    fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        let polled = setup.flags.hipri_percent.filter(|_| setup.flags.hipri);
        Ok(Self {
            read_flags: rwf(setup.flags, OpKind::Read),
            write_flags: rwf(setup.flags, OpKind::Write),
            polled: polled.map(|percent| Polled::new(percent, setup.seed)),
        })
    }

    #[inline(always)]
    unsafe fn transfer<const READ: bool>(
        &mut self,
        _: usize,
        fd: RawFd,
        buffer: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize {
        let vector = libc::iovec { iov_base: buffer.cast(), iov_len: length };
        let flags = self.flags(if READ { self.read_flags } else { self.write_flags });
        let number = if READ { libc::SYS_preadv2 } else { libc::SYS_pwritev2 };
        // SAFETY: the vector names the caller's bytes and lives until the call returns.
        unsafe { vectored2(number, fd, std::slice::from_ref(&vector), offset, flags) }
    }
}

/// preadv2(2) or pwritev2(2), by its number: glibc has the functions since 2.26, and a release is linked for 2.17.
///
/// # Safety
/// As for the call.
#[inline(always)]
unsafe fn vectored2(number: libc::c_long, fd: RawFd, vectors: &[libc::iovec], offset: i64, flags: i32) -> isize {
    // The kernel takes the offset in two halves; on 64 bits the upper one has no effect.
    let (low, high) = (offset as libc::c_long, (offset >> 32) as libc::c_long);
    // SAFETY: the caller's.
    unsafe { libc::syscall(number, fd, vectors.as_ptr(), vectors.len(), low, high, flags) as isize }
}

/// Does the kernel know the calls: with a bad descriptor it must answer EBADF, not ENOSYS.
pub(in crate::engines) fn probe_pvsync2() -> (bool, String) {
    // SAFETY: no memory is passed.
    unsafe { vectored2(libc::SYS_preadv2, -1, &[], 0, 0) };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EBADF) => (true, "preadv2 is there".to_owned()),
        _ => (false, format!("preadv2 is refused: {error}")),
    }
}

/// Where each file's position is; −1 where it is not known.
#[derive(Debug)]
struct Positions(Vec<i64>);

impl Positions {
    fn new(setup: &EngineSetup<'_>) -> Self {
        Self(vec![-1; setup.files.len()])
    }

    /// Moves the position to `offset` unless it is there; false if that failed.
    #[inline(always)]
    fn seek(&mut self, file: usize, fd: RawFd, offset: i64) -> bool {
        if self.0[file] == offset {
            return true;
        }
        self.0[file] = -1;
        // SAFETY: a plain call on an open descriptor.
        unsafe { libc::lseek(fd, offset, libc::SEEK_SET) == offset }
    }

    /// Notes what a transfer at `offset` did to the position.
    #[inline(always)]
    fn moved(&mut self, file: usize, offset: i64, moved: isize) {
        self.0[file] = if moved >= 0 { offset + moved as i64 } else { -1 };
    }
}

/// `lseek`, then `read` or `write`.
#[derive(Debug)]
pub struct SyncCall(Positions);

impl Call for SyncCall {
    const KIND: EngineKind = EngineKind::Sync;

    fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        Ok(Self(Positions::new(setup)))
    }

    #[inline(always)]
    unsafe fn transfer<const READ: bool>(
        &mut self,
        file: usize,
        fd: RawFd,
        buffer: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize {
        if !self.0.seek(file, fd, offset) {
            return -1;
        }
        // SAFETY: the caller's promise.
        let moved = unsafe {
            if READ { libc::read(fd, buffer.cast(), length) } else { libc::write(fd, buffer.cast(), length) }
        };
        self.0.moved(file, offset, moved);
        moved
    }
}

/// `lseek`, then `readv` or `writev`.
#[derive(Debug)]
pub struct Vsync(Positions);

impl Call for Vsync {
    const KIND: EngineKind = EngineKind::Vsync;

    fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        Ok(Self(Positions::new(setup)))
    }

    #[inline(always)]
    unsafe fn transfer<const READ: bool>(
        &mut self,
        file: usize,
        fd: RawFd,
        buffer: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize {
        if !self.0.seek(file, fd, offset) {
            return -1;
        }
        let vector = libc::iovec { iov_base: buffer.cast(), iov_len: length };
        // SAFETY: the vector names the caller's bytes and lives until the call returns.
        let moved = unsafe { if READ { libc::readv(fd, &vector, 1) } else { libc::writev(fd, &vector, 1) } };
        self.0.moved(file, offset, moved);
        moved
    }
}

/// `fallocate`: a read allocates and keeps the file's length, a write allocates and lengthens it.
#[derive(Debug)]
pub struct Falloc;

impl Call for Falloc {
    const KIND: EngineKind = EngineKind::Falloc;

    fn new(_: &EngineSetup<'_>) -> Result<Self, EngineError> {
        Ok(Self)
    }

    #[inline(always)]
    unsafe fn transfer<const READ: bool>(
        &mut self,
        _: usize,
        fd: RawFd,
        _: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize {
        let mode = if READ { libc::FALLOC_FL_KEEP_SIZE } else { 0 };
        // SAFETY: a plain call on an open descriptor.
        if unsafe { libc::fallocate(fd, mode, offset, length as i64) } == 0 { length as isize } else { -1 }
    }
}

/// `ftruncate`: a write gives the file the length at which the write would begin.
#[derive(Debug)]
pub struct Ftruncate;

impl Call for Ftruncate {
    const KIND: EngineKind = EngineKind::Ftruncate;

    fn new(_: &EngineSetup<'_>) -> Result<Self, EngineError> {
        Ok(Self)
    }

    #[inline(always)]
    unsafe fn transfer<const READ: bool>(
        &mut self,
        _: usize,
        fd: RawFd,
        _: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize {
        assert!(!READ, "the plan gives this engine writes only");
        // SAFETY: a plain call on an open descriptor.
        if unsafe { libc::ftruncate(fd, offset) } == 0 { length as isize } else { -1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_is_asked_for_is_polled_for_and_other_flags_stay() {
        let all = libc::RWF_HIPRI | libc::RWF_DSYNC;
        for percent in [0, 30, 100] {
            let mut polled = Polled::new(percent, 7);
            let flags: Vec<i32> = (0..10_000).map(|_| polled.flags(all)).collect();
            assert!(flags.iter().all(|flags| flags & libc::RWF_DSYNC != 0));
            let count = flags.iter().filter(|flags| **flags & libc::RWF_HIPRI != 0).count();
            // Four deviations of 30 % are 183.
            assert!(count.abs_diff(usize::from(percent) * 100) <= if percent == 30 { 183 } else { 0 }, "{count}");
        }
    }
}
