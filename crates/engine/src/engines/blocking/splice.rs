//! `splice`: data moves between file and buffer through a pipe.
//!
//! A read splices from the file into the pipe and from there, by `vmsplice`, into the buffer; a write goes the
//! other way. A pipe holds a few pages at a time, so a large I/O takes several rounds. What an I/O that failed left
//! in the pipe goes away with the pipe.
//!
//! Source: splice(2), vmsplice(2), fcntl(2) `F_SETPIPE_SZ`; fio(1).

use super::Call;
use crate::engines::{EngineError, EngineSetup};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use trueio_model::EngineKind;

/// What an unprivileged user may make of a pipe (`/proc/sys/fs/pipe-max-size`).
const PIPE_BYTES: libc::c_int = 1 << 20;

/// `splice` and `vmsplice`.
#[derive(Debug)]
pub struct Splice {
    reader: PipeReader,
    writer: PipeWriter,
}

/// A pipe, as large as it may be; one that stays small only takes more rounds.
fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    // SAFETY: a plain call on an open descriptor.
    unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
    Ok((reader, writer))
}

impl Splice {
    /// Moves up to `length` bytes between the file and the pipe; what the call returned.
    fn of_file<const READ: bool>(&self, fd: RawFd, offset: i64, length: usize) -> isize {
        let mut offset = offset;
        let (pipe_out, pipe_in) = (self.reader.as_raw_fd(), self.writer.as_raw_fd());
        let none = std::ptr::null_mut();
        // SAFETY: the offset lives until the call returns; both descriptors are open.
        unsafe {
            if READ {
                libc::splice(fd, &mut offset, pipe_in, none, length, libc::SPLICE_F_MOVE)
            } else {
                libc::splice(pipe_out, none, fd, &mut offset, length, libc::SPLICE_F_MOVE)
            }
        }
    }

    /// Moves up to `length` bytes between the buffer and the pipe; what the call returned.
    ///
    /// # Safety
    /// `buffer` is valid for `length` bytes, to be written if `READ`, until the pipe is empty again.
    unsafe fn of_buffer<const READ: bool>(&self, buffer: *mut u8, length: usize) -> isize {
        let vector = libc::iovec { iov_base: buffer.cast(), iov_len: length };
        let end = if READ { self.reader.as_raw_fd() } else { self.writer.as_raw_fd() };
        // SAFETY: the vector names the caller's bytes and lives until the call returns.
        unsafe { libc::vmsplice(end, &vector, 1, 0) }
    }

    /// One way after the other until all is moved; how much arrived, and the first error.
    ///
    /// # Safety
    /// As for [`Call::transfer`].
    unsafe fn rounds<const READ: bool>(
        &self,
        fd: RawFd,
        buffer: *mut u8,
        length: usize,
        offset: i64,
    ) -> (usize, Option<i32>) {
        let errno = || io::Error::last_os_error().raw_os_error();
        let mut done = 0;
        while done < length {
            // SAFETY: within the buffer.
            let at = unsafe { buffer.add(done) };
            let entered = if READ {
                self.of_file::<READ>(fd, offset + done as i64, length - done)
            } else {
                // SAFETY: the caller's bytes; the pipe is emptied below, or given up.
                unsafe { self.of_buffer::<READ>(at, length - done) }
            };
            if entered <= 0 {
                return (done, if entered < 0 { errno() } else { None });
            }
            let mut left = 0;
            while left < entered as usize {
                let (from, rest) = (done + left, entered as usize - left);
                let came = if READ {
                    // SAFETY: as above.
                    unsafe { self.of_buffer::<READ>(buffer.add(from), rest) }
                } else {
                    self.of_file::<READ>(fd, offset + from as i64, rest)
                };
                if came <= 0 {
                    return (from, Some(if came < 0 { errno() } else { None }.unwrap_or(libc::EIO)));
                }
                left += came as usize;
            }
            done += entered as usize;
        }
        (done, None)
    }
}

impl Call for Splice {
    const KIND: EngineKind = EngineKind::Splice;

    fn new(_: &EngineSetup<'_>) -> Result<Self, EngineError> {
        let made =
            pipe().map_err(|source| EngineError { engine: Self::KIND, attempted: "making a pipe".into(), source });
        made.map(|(reader, writer)| Self { reader, writer })
    }

    unsafe fn transfer<const READ: bool>(
        &mut self,
        _: usize,
        fd: RawFd,
        buffer: *mut u8,
        length: usize,
        offset: i64,
    ) -> isize {
        // SAFETY: the caller's promise.
        let (done, error) = unsafe { self.rounds::<READ>(fd, buffer, length, offset) };
        let Some(error) = error else { return done as isize };
        // The pipe may hold a part of this I/O, which belongs to no other.
        if let Ok((reader, writer)) = pipe() {
            (self.reader, self.writer) = (reader, writer);
        }
        if done > 0 {
            return done as isize;
        }
        // SAFETY: the thread's own error number.
        unsafe { *libc::__errno_location() = error };
        -1
    }
}
