//! The calls of the engines that transfer data or make room for it, one type each.

use super::Call;
use crate::engines::{EngineError, EngineSetup, rwf};
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
}

impl Call for Pvsync2 {
    const KIND: EngineKind = EngineKind::Pvsync2;

    fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        Ok(Self { read_flags: rwf(setup.flags, OpKind::Read), write_flags: rwf(setup.flags, OpKind::Write) })
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
        unsafe {
            if READ {
                libc::preadv2(fd, &vector, 1, offset, self.read_flags)
            } else {
                libc::pwritev2(fd, &vector, 1, offset, self.write_flags)
            }
        }
    }
}

/// Does the kernel know the calls: with a bad descriptor it must answer EBADF, not ENOSYS.
pub(in crate::engines) fn probe_pvsync2() -> (bool, String) {
    // SAFETY: no memory is handed over: the vector count is 0.
    unsafe { libc::preadv2(-1, std::ptr::null(), 0, 0, 0) };
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
pub struct Sync(Positions);

impl Call for Sync {
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
