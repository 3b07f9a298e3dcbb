//! `libaio`: Linux native asynchronous I/O, by its system calls.
//!
//! Only direct I/O is really asynchronous: `io_submit` of a buffered transfer does it on the spot.
//! `io_submit` stops at the first request that the kernel rejects; that one becomes a completion
//! with the error, and the rest is submitted again.
//!
//! Source: io_submit(2), Linux `include/uapi/linux/aio_abi.h`.

use super::{Completion, Engine, EngineError, EngineSetup, TargetFile, rwf, sync_descriptor, trim};
use crate::priority::Chooser;
use crate::request::Request;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use trueio_model::{EngineKind, OpKind};

const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
/// `priority` counts.
const IOCB_FLAG_IOPRIO: u32 = 1 << 1;

/// `struct iocb`, little-endian layout (as on every architecture this is built for).
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: u16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}
const _: () = assert!(size_of::<Iocb>() == 64 && cfg!(target_endian = "little"));

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct IoEvent {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// `io_submit` and `io_getevents`.
#[derive(Debug)]
pub struct LibaioEngine {
    context: u64,
    files: Vec<TargetFile>,
    read_flags: i32,
    write_flags: i32,
    /// Chooses priorities of single I/Os, if the job sets them.
    chooser: Option<Box<Chooser>>,
    /// One a slot; the kernel copies it at `io_submit`, but its address must not move between.
    iocbs: Box<[Iocb]>,
    /// Addresses of the noted ones.
    noted: Vec<*const Iocb>,
    /// Trims noted. There is no asynchronous one: `submit` carries them out, and their latency contains that.
    trims: Vec<(u32, Request)>,
    /// Completions that are ours to report: rejected requests and trims.
    own: VecDeque<Completion>,
    events: Box<[IoEvent]>,
    in_flight: usize,
}

impl Drop for LibaioEngine {
    fn drop(&mut self) {
        // SAFETY: the context is ours; io_destroy waits until nothing is in flight, so the kernel
        // lets go of the buffers before they are freed.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

fn setup_context(depth: u32) -> io::Result<u64> {
    let mut context = 0u64;
    // SAFETY: the kernel writes one word through the pointer, which must hold 0 before.
    let result = unsafe { libc::syscall(libc::SYS_io_setup, depth as libc::c_ulong, &mut context) };
    if result == 0 { Ok(context) } else { Err(io::Error::last_os_error()) }
}

/// Does the kernel know the calls, and are contexts left. No context is made for it: giving one back
/// waits for a grace period of the kernel, some 30 ms.
pub(super) fn probe() -> (bool, String) {
    // SAFETY: a plain call; 0 names no context, so a kernel that has the call returns EINVAL.
    unsafe { libc::syscall(libc::SYS_io_destroy, 0) };
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::EINVAL) {
        return (false, format!("io_destroy is refused: {error}"));
    }
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    match (number("/proc/sys/fs/aio-nr"), number("/proc/sys/fs/aio-max-nr")) {
        (Some(used), Some(limit)) if used >= limit => {
            (false, format!("all {limit} requests of /proc/sys/fs/aio-max-nr are in use"))
        }
        _ => (true, "the kernel knows its calls".to_owned()),
    }
}

impl LibaioEngine {
    /// An engine over the setup's files.
    ///
    /// # Errors
    /// If the kernel refuses a context.
    pub fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        let context = setup_context(setup.depth).map_err(|source| EngineError {
            engine: Self::KIND,
            attempted: format!("io_setup for {} requests (limit: /proc/sys/fs/aio-max-nr)", setup.depth),
            source,
        })?;
        let depth = setup.depth as usize;
        Ok(Self {
            context,
            files: setup.files.to_vec(),
            read_flags: rwf(setup.flags, OpKind::Read),
            write_flags: rwf(setup.flags, OpKind::Write),
            chooser: Chooser::new(setup.priorities, setup.seed, setup.depth),
            iocbs: vec![Iocb::default(); depth].into(),
            noted: Vec::with_capacity(depth),
            trims: Vec::with_capacity(depth),
            own: VecDeque::with_capacity(depth),
            events: vec![IoEvent::default(); depth].into(),
            in_flight: 0,
        })
    }
}

impl Engine for LibaioEngine {
    const KIND: EngineKind = EngineKind::Libaio;
    const BLOCKS: bool = false;

    #[inline(always)]
    unsafe fn queue(&mut self, slot: u32, request: &Request, buffer: *mut u8) {
        let target = &self.files[usize::from(request.file)];
        let (opcode, rw_flags) = match request.op {
            OpKind::Read => (IOCB_CMD_PREAD, self.read_flags),
            OpKind::Write => (IOCB_CMD_PWRITE, self.write_flags),
            OpKind::Trim => {
                self.trims.push((slot, *request));
                return;
            }
            OpKind::Sync => unreachable!("the worker makes sync calls itself"),
        };
        let iocb = &mut self.iocbs[slot as usize];
        *iocb = Iocb {
            data: u64::from(slot),
            rw_flags,
            opcode,
            fd: target.file.as_raw_fd() as u32,
            buffer: buffer as u64,
            bytes: u64::from(request.length),
            offset: request.offset as i64,
            ..Iocb::default()
        };
        if let Some(chooser) = &mut self.chooser {
            iocb.priority = chooser.choose(slot, request.op, request.length);
            iocb.flags = if iocb.priority > 0 { IOCB_FLAG_IOPRIO } else { 0 };
        }
        self.noted.push(iocb);
    }

    #[inline(always)]
    fn submit(&mut self) -> Result<(), EngineError> {
        for (slot, request) in self.trims.drain(..) {
            let target = &self.files[usize::from(request.file)];
            let result = trim(target.file.as_raw_fd(), &target.trim_call, &request);
            self.own.push_back(Completion { slot, result });
        }
        let mut done = 0;
        while done < self.noted.len() {
            let rest = &self.noted[done..];
            // SAFETY: every pointer names an iocb of ours that lives in a box, and each iocb names a
            // buffer that `queue`'s caller keeps valid until its completion is reaped.
            let n = unsafe { libc::syscall(libc::SYS_io_submit, self.context, rest.len(), rest.as_ptr()) };
            if n > 0 {
                done += n as usize;
                self.in_flight += n as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The ring is full: reaping completions makes room.
                Some(libc::EAGAIN) if self.in_flight > 0 => {
                    let n = self.events_into_own(1)?;
                    self.in_flight -= n;
                }
                Some(errno) if errno != libc::EAGAIN => {
                    // The first of the rest was rejected: it completes with the error.
                    let slot = ((rest[0].addr() - self.iocbs.as_ptr().addr()) / size_of::<Iocb>()) as u32;
                    self.own.push_back(Completion { slot, result: -i64::from(errno) });
                    done += 1;
                }
                _ => return Err(EngineError { engine: Self::KIND, attempted: "io_submit".to_owned(), source: error }),
            }
        }
        self.noted.clear();
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, min: usize, timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        let mut count = 0;
        while count < out.len()
            && let Some(completion) = self.own.pop_front()
        {
            out[count] = completion;
            count += 1;
        }
        if self.in_flight == 0 || count == out.len() {
            return Ok(count);
        }
        let wait = min.saturating_sub(count).min(self.in_flight);
        let most = (out.len() - count).min(self.events.len());
        let n = self.get_events(wait, most, timeout_ns)?;
        for event in &self.events[..n] {
            out[count] = Completion { slot: event.data as u32, result: event.result };
            count += 1;
        }
        self.in_flight -= n;
        Ok(count)
    }

    #[inline(always)]
    fn has_ready(&mut self) -> bool {
        !self.own.is_empty()
    }

    fn share_of(&self, slot: u32) -> u8 {
        self.chooser.as_ref().map_or(0, |chooser| chooser.share_of(slot))
    }

    fn sync_file(&mut self, file: u16, data_only: bool) -> i64 {
        sync_descriptor(self.files[usize::from(file)].file.as_raw_fd(), data_only)
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

impl LibaioEngine {
    /// `io_getevents`; a signal gives 0.
    fn get_events(&mut self, min: usize, most: usize, timeout_ns: Option<u64>) -> Result<usize, EngineError> {
        let timeout_ns = if min == 0 { Some(0) } else { timeout_ns };
        let timeout = timeout_ns
            .map(|ns| libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
        let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the kernel writes at most `most` events into a box that long.
        let n = unsafe {
            libc::syscall(libc::SYS_io_getevents, self.context, min, most, self.events.as_mut_ptr(), pointer)
        };
        if n >= 0 {
            return Ok(n as usize);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::EINTR) {
            return Ok(0);
        }
        Err(EngineError { engine: Self::KIND, attempted: "io_getevents".to_owned(), source: error })
    }

    /// Moves completions to our own list, to make room in the kernel's ring.
    fn events_into_own(&mut self, min: usize) -> Result<usize, EngineError> {
        let n = self.get_events(min, self.events.len(), None)?;
        for event in &self.events[..n] {
            self.own.push_back(Completion { slot: event.data as u32, result: event.result });
        }
        Ok(n)
    }
}
