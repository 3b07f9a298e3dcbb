//! `io_uring`: submission and completion through rings shared with the kernel.
//!
//! The ring is made for one thread (`SINGLE_ISSUER`, `DEFER_TASKRUN`, `NO_SQARRAY`), with files,
//! buffers and the ring's own descriptor registered; each is given up alone, with a note in the
//! record, where the kernel or a limit refuses it. `SQPOLL` and `IOPOLL` only if set.
//!
//! `submit` is one `io_uring_enter` that also collects what has completed meanwhile (with deferred
//! task work the kernel only publishes completions inside an enter). `reap` looks at the ring and
//! calls the kernel only to wait.
//!
//! Source: io_uring_setup(2), io_uring_enter(2), io_uring_register(2).

use super::{Completion, Engine, EngineError, EngineSetup, TargetFile, TrimCall, rwf, sync_descriptor, trim};
use crate::priority::Chooser;
use crate::request::Request;
use io_uring::{IoUring, opcode, squeue, types};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};
use trueio_model::{EngineKind, OpKind};

const ENTER_GETEVENTS: u32 = 1 << 0;
const ENTER_SQ_WAKEUP: u32 = 1 << 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_REGISTERED_RING: u32 = 1 << 4;
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// The most entries that a ring can have (Linux `io_uring/io_uring.h`, `IORING_MAX_ENTRIES`).
const ENTRIES_MAX: u32 = 32_768;

/// For how long completions are looked for without a system call where a kernel thread submits, in nanoseconds.
const POLL_NS: u64 = 1_000_000;

/// How often in a row an `io_uring_enter` may take nothing, with nothing to be collected, before the
/// engine gives up: the kernel has no memory for a request, and may have some later.
const REFUSALS_MAX: u32 = 10_000;

// An entry's `user_data` holds the slot in bits 0 to 23. The result of a trim is 0 and not its length,
// so that stands next to the slot: bit 63 marks it, bit 62 that it is an error number, bits 24 to 55
// hold it.
const DATA_HAS_RESULT: u64 = 1 << 63;
const DATA_IS_ERROR: u64 = 1 << 62;
const DATA_RESULT_SHIFT: u32 = 24;
const DATA_SLOT_MASK: u64 = (1 << DATA_RESULT_SHIFT) - 1;

/// The `user_data` of an I/O whose result is `result` if the kernel returns 0.
fn data_with_result(slot: u32, result: i64) -> u64 {
    let error = if result < 0 { DATA_IS_ERROR } else { 0 };
    DATA_HAS_RESULT | error | (result.unsigned_abs() << DATA_RESULT_SHIFT) | u64::from(slot)
}

/// The completion that an entry of the ring stands for.
#[inline(always)]
fn completion(data: u64, result: i32) -> Completion {
    let mut result = i64::from(result);
    if data & DATA_HAS_RESULT != 0 && result == 0 {
        result = i64::from((data >> DATA_RESULT_SHIFT) as u32);
        if data & DATA_IS_ERROR != 0 {
            result = -result;
        }
    }
    Completion { slot: (data & DATA_SLOT_MASK) as u32, result }
}

/// io_uring.
pub struct IoUringEngine {
    ring: IoUring,
    files: Vec<TargetFile>,
    descriptors: Vec<RawFd>,
    has_fixed_files: bool,
    /// What every entry of a transfer carries: that its file is registered, that it waits for those before it.
    entry_flags: squeue::Flags,
    transfers: Transfers,
    has_sqpoll: bool,
    read_flags: i32,
    write_flags: i32,
    /// What `io_uring_enter` is called with: the registered index or the descriptor.
    enter_fd: i32,
    enter_flags: u32,
    noted: u32,
    /// Trims of block devices noted: `BLKDISCARD` has no entry of its own before Linux 6.12, and a hole
    /// punched in a device writes zeros instead. `submit` makes the call, and the latency contains it.
    discards: Vec<(u32, Request)>,
    notes: Vec<String>,
}

/// How transfers are submitted.
enum Transfers {
    /// From registered buffers: `READ_FIXED`, `WRITE_FIXED`.
    Fixed,
    /// By address: `READ`, `WRITE`.
    Plain,
    /// With options that a job sets: rare, and after the one check that the others need anyway.
    Custom(Box<Custom>),
}

/// Options of single transfers.
struct Custom {
    /// From registered buffers.
    has_fixed_buffers: bool,
    /// One piece for each slot, if transfers are `READV` and `WRITEV`; it stays until the slot's next I/O.
    pieces: Option<Box<[libc::iovec]>>,
    /// Every Nth transfer is submitted with `IOSQE_ASYNC`; 0: none.
    async_every: u32,
    /// Transfers submitted since the last such one.
    since_async: u32,
    /// Chooses priorities of single I/Os, if the job sets them.
    chooser: Option<Box<Chooser>>,
}

impl Drop for IoUringEngine {
    fn drop(&mut self) {
        if self.enter_flags & ENTER_REGISTERED_RING != 0 {
            // The registration keeps the ring (and its buffers locked) until the thread ends.
            let mut update = [self.enter_fd as u64, 0];
            // SAFETY: the kernel reads one 16-byte structure, which lives until the call returns.
            unsafe {
                let fd = self.ring.as_raw_fd();
                libc::syscall(libc::SYS_io_uring_register, fd, UNREGISTER_RING_FDS, update.as_mut_ptr(), 1);
            }
        }
    }
}

impl std::fmt::Debug for IoUringEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IoUringEngine").field("notes", &self.notes).finish_non_exhaustive()
    }
}

/// Does io_uring work here, and if not, what is the likely cause.
pub(super) fn probe() -> (bool, String) {
    match IoUring::new(2) {
        Ok(_) => (true, "io_uring_setup works".to_owned()),
        Err(error) => {
            let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
            let cause = match (error.raw_os_error(), disabled.trim()) {
                (Some(libc::EPERM), setting @ ("1" | "2")) => {
                    format!("; likely cause: kernel.io_uring_disabled is {setting}")
                }
                (Some(libc::EPERM), _) => "; likely cause: a seccomp filter (containers often have one)".to_owned(),
                (Some(libc::ENOSYS), _) => "; the kernel was built without it".to_owned(),
                _ => String::new(),
            };
            (false, format!("io_uring_setup is refused: {error}{cause}"))
        }
    }
}

/// Builds the ring with everything that makes it fast for one thread, giving up what an older
/// kernel does not know, newest first.
fn build_ring(setup: &EngineSetup<'_>, notes: &mut Vec<String>) -> Result<IoUring, EngineError> {
    let entries = setup.depth.next_power_of_two();
    let mut last = None;
    for attempt in 0..3 {
        let mut builder = IoUring::builder();
        builder.setup_cqsize((entries * 2).max(2)).setup_clamp();
        if setup.uring.sqpoll {
            builder.setup_sqpoll(1000);
            if let Some(cpu) = setup.uring.sqpoll_cpu {
                builder.setup_sqpoll_cpu(cpu);
            }
        } else if attempt < 2 {
            builder.setup_coop_taskrun().setup_single_issuer().setup_defer_taskrun();
        }
        if setup.uring.iopoll {
            builder.setup_iopoll();
        }
        if attempt == 0 {
            builder.setup_no_sqarray();
        }
        match builder.build(entries) {
            Ok(ring) => {
                match attempt {
                    1 => notes.push("io_uring without NO_SQARRAY (Linux 6.6)".to_owned()),
                    2 => notes.push("io_uring without SINGLE_ISSUER and DEFER_TASKRUN (Linux 6.1)".to_owned()),
                    _ => {}
                }
                return Ok(ring);
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = Some(error),
            Err(error) => {
                last = Some(error);
                break;
            }
        }
    }
    Err(EngineError {
        engine: EngineKind::IoUring,
        attempted: format!("io_uring_setup with {entries} entries ({})", probe().1),
        source: last.expect("an attempt failed"),
    })
}

impl IoUringEngine {
    /// A ring over the setup's files and buffers.
    ///
    /// # Errors
    /// If the kernel refuses a ring. Refused registrations are noted, not errors.
    pub fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        let mut notes = Vec::new();
        if setup.depth > ENTRIES_MAX {
            return Err(EngineError {
                engine: Self::KIND,
                attempted: format!("a ring of {} entries (the kernel's limit is {ENTRIES_MAX})", setup.depth),
                source: io::Error::from_raw_os_error(libc::EINVAL),
            });
        }
        let ring = build_ring(setup, &mut notes)?;
        let descriptors = super::descriptors(setup.files);
        let submitter = ring.submitter();
        let mut has_fixed_files = false;
        if setup.uring.registered_files && !descriptors.is_empty() {
            match submitter.register_files(&descriptors) {
                Ok(()) => has_fixed_files = true,
                Err(error) => notes.push(format!("registered files refused: {error}")),
            }
        }
        let mut has_fixed_buffers = false;
        let (address, length) = setup.buffers;
        if setup.uring.registered_buffers && length > 0 {
            let region = [libc::iovec { iov_base: address.cast(), iov_len: length }];
            // SAFETY: the region belongs to the worker's pool, which is freed after the ring was closed
            // with nothing in flight, or never. (A closed ring may keep the pages pinned for a short time
            // longer; without an I/O no code writes to them.)
            match unsafe { submitter.register_buffers(&region) } {
                Ok(()) => has_fixed_buffers = true,
                Err(error) => {
                    notes.push(format!("registered buffers refused: {error} (limit of locked memory: `ulimit -l`)"))
                }
            }
        }
        let (enter_fd, enter_flags) = match register_ring(ring.as_raw_fd()) {
            Some(index) => (index, ENTER_REGISTERED_RING),
            None => (ring.as_raw_fd(), 0),
        };
        let mut entry_flags = squeue::Flags::empty();
        if has_fixed_files {
            entry_flags |= squeue::Flags::FIXED_FILE;
        }
        if setup.uring.drain {
            entry_flags |= squeue::Flags::IO_DRAIN;
        }
        Ok(Self {
            entry_flags,
            ring,
            files: setup.files.to_vec(),
            descriptors,
            has_fixed_files,
            transfers: Transfers::of(setup, has_fixed_buffers),
            has_sqpoll: setup.uring.sqpoll,
            read_flags: rwf(setup.flags, OpKind::Read),
            write_flags: rwf(setup.flags, OpKind::Write),
            enter_fd,
            enter_flags,
            noted: 0,
            discards: Vec::with_capacity(setup.depth as usize),
            notes,
        })
    }

    /// Looks for `min` completions without a system call, as fio does: where a kernel thread submits, it brings them to the ring, too.
    /// Ends after [`POLL_NS`], because of a slow disk or a thread that needs this processor.
    #[cold]
    fn poll(&mut self, min: usize, timeout_ns: Option<u64>, out: &mut [Completion]) -> usize {
        let limit = Duration::from_nanos(timeout_ns.unwrap_or(POLL_NS).min(POLL_NS));
        looked_for(min, limit, |count| self.collect(&mut out[count..]))
    }

    /// `io_uring_enter`. EINTR, ETIME and (with something to collect first) EBUSY and EAGAIN give 0.
    #[inline(always)]
    fn enter(&self, submit: u32, min: u32, flags: u32, timeout_ns: Option<u64>) -> Result<u32, EngineError> {
        let mut flags = flags | self.enter_flags;
        let timespec;
        let argument;
        let (pointer, size): (*const libc::c_void, usize) = match timeout_ns {
            None => (std::ptr::null(), 0),
            Some(ns) => {
                timespec = types::Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
                // struct io_uring_getevents_arg: sigmask, sigmask_sz, min_wait_usec, ts.
                argument = [0u64, 0, std::ptr::from_ref(&timespec) as u64];
                flags |= ENTER_EXT_ARG;
                (argument.as_ptr().cast(), size_of_val(&argument))
            }
        };
        // SAFETY: the descriptor is our ring; the argument, if any, lives until the call returns.
        // Every submitted entry names memory that `queue`'s caller keeps valid.
        let n = unsafe { libc::syscall(libc::SYS_io_uring_enter, self.enter_fd, submit, min, flags, pointer, size) };
        if n >= 0 {
            return Ok(n as u32);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(0),
            _ => Err(EngineError { engine: Self::KIND, attempted: "io_uring_enter".to_owned(), source: error }),
        }
    }
}

/// Registers the ring's descriptor with itself, so that an enter need not look it up (Linux 5.18).
fn register_ring(fd: RawFd) -> Option<i32> {
    // struct io_uring_rsrc_update: offset (−1: any), resv, data.
    let mut update = [u64::from(u32::MAX), fd as u64];
    // SAFETY: the kernel reads and writes one 16-byte structure, which lives until it returns.
    let n = unsafe { libc::syscall(libc::SYS_io_uring_register, fd, REGISTER_RING_FDS, update.as_mut_ptr(), 1) };
    (n == 1).then(|| (update[0] & u64::from(u32::MAX)) as i32)
}

impl Engine for IoUringEngine {
    const KIND: EngineKind = EngineKind::IoUring;
    const BLOCKS: bool = false;

    #[inline(always)]
    unsafe fn queue(&mut self, slot: u32, request: &Request, buffer: *mut u8) {
        let mut data = u64::from(slot);
        let entry = match request.op {
            OpKind::Read => self.transfer::<true>(slot, request, buffer),
            OpKind::Write => self.transfer::<false>(slot, request, buffer),
            OpKind::Trim if !matches!(self.files[usize::from(request.file)].trim_call, TrimCall::PunchHole) => {
                self.discards.push((slot, *request));
                return;
            }
            OpKind::Trim => {
                data = data_with_result(slot, i64::from(request.length));
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                let fd = types::Fd(self.descriptors[usize::from(request.file)]);
                opcode::Fallocate::new(fd, u64::from(request.length)).offset(request.offset).mode(mode).build()
            }
            OpKind::Sync => unreachable!("the worker makes sync calls itself"),
        };
        self.push(entry.user_data(data));
    }

    #[inline(always)]
    fn submit(&mut self) -> Result<(), EngineError> {
        if !self.discards.is_empty() {
            self.discard();
        }
        if self.has_sqpoll {
            // The kernel's thread takes the entries by itself, unless it went to sleep. The fence orders the
            // published tail before the look at the flag (io_uring_setup(2), IORING_SQ_NEED_WAKEUP).
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            if self.ring.submission().need_wakeup() {
                self.enter(self.noted, 0, ENTER_SQ_WAKEUP, None)?;
            }
            self.noted = 0;
            return Ok(());
        }
        let mut refusals = 0;
        while self.noted > 0 {
            let n = self.enter(self.noted, 0, ENTER_GETEVENTS, None)?;
            self.noted -= n;
            if n == 0 {
                if !self.ring.completion().is_empty() {
                    // Busy until completions are taken: the worker reaps, and calls again with the next.
                    break;
                }
                refusals += 1;
                if refusals == REFUSALS_MAX {
                    return Err(EngineError {
                        engine: Self::KIND,
                        attempted: format!("io_uring_enter ({} entries, {refusals} times)", self.noted),
                        source: io::Error::from_raw_os_error(libc::EAGAIN),
                    });
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, min: usize, timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        let mut count = self.collect(out);
        // A wait of no length: with deferred task work, completions reach the ring only within an enter.
        if count < min || timeout_ns == Some(0) {
            if self.has_sqpoll {
                count += self.poll(min.saturating_sub(count), timeout_ns, &mut out[count..]);
                if count >= min {
                    return Ok(count);
                }
            }
            let missing = min.saturating_sub(count) as u32;
            let n = self.enter(self.noted, missing, ENTER_GETEVENTS, timeout_ns)?;
            self.noted -= n.min(self.noted);
            count += self.collect(&mut out[count..]);
        }
        Ok(count)
    }

    #[inline(always)]
    fn has_ready(&mut self) -> bool {
        // Looking is as cheap as taking: the rings are in our memory.
        true
    }

    fn share_of(&self, slot: u32) -> u8 {
        match &self.transfers {
            Transfers::Custom(custom) => custom.chooser.as_ref().map_or(0, |chooser| chooser.share_of(slot)),
            _ => 0,
        }
    }

    fn sync_file(&mut self, file: u16, data_only: bool) -> i64 {
        sync_descriptor(self.files[usize::from(file)].file.as_raw_fd(), data_only)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

impl Transfers {
    fn of(setup: &EngineSetup<'_>, has_fixed_buffers: bool) -> Self {
        let vectored = setup.uring.vectored && !has_fixed_buffers;
        let chooser = Chooser::new(setup.priorities, setup.seed, setup.depth);
        if !vectored && setup.uring.async_every == 0 && chooser.is_none() {
            return if has_fixed_buffers { Self::Fixed } else { Self::Plain };
        }
        let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self::Custom(Box::new(Custom {
            has_fixed_buffers,
            pieces: vectored.then(|| vec![none; setup.depth as usize].into()),
            async_every: setup.uring.async_every,
            since_async: 0,
            chooser,
        }))
    }
}

impl Custom {
    /// The entry of a read (`READ`) or a write of `piece`; `flags` are RWF flags.
    #[cold]
    fn transfer<const READ: bool>(
        &mut self,
        slot: u32,
        fd: types::Fd,
        piece: libc::iovec,
        offset: u64,
        flags: i32,
        mut entry_flags: squeue::Flags,
    ) -> squeue::Entry {
        use opcode::{Read, ReadFixed, Readv, Write, WriteFixed, Writev};
        if self.async_every > 0 {
            self.since_async += 1;
            if self.since_async == self.async_every {
                self.since_async = 0;
                entry_flags |= squeue::Flags::ASYNC;
            }
        }
        let (buffer, length) = (piece.iov_base.cast::<u8>(), piece.iov_len as u32);
        let op = if READ { OpKind::Read } else { OpKind::Write };
        // 0 leaves an I/O the priority of the thread.
        let priority = self.chooser.as_mut().map_or(0, |chooser| chooser.choose(slot, op, length));
        let entry = match (READ, &mut self.pieces, self.has_fixed_buffers) {
            (_, Some(pieces), _) => {
                let kept = &mut pieces[slot as usize];
                *kept = piece;
                // A polling kernel thread looks at it later; the slot has no other I/O before its completion.
                let kept = std::ptr::from_ref(kept);
                match READ {
                    true => Readv::new(fd, kept, 1).offset(offset).rw_flags(flags).ioprio(priority).build(),
                    false => Writev::new(fd, kept, 1).offset(offset).rw_flags(flags).ioprio(priority).build(),
                }
            }
            (true, None, true) => {
                ReadFixed::new(fd, buffer, length, 0).offset(offset).rw_flags(flags).ioprio(priority).build()
            }
            (true, None, false) => {
                Read::new(fd, buffer, length).offset(offset).rw_flags(flags).ioprio(priority).build()
            }
            (false, None, true) => {
                WriteFixed::new(fd, buffer, length, 0).offset(offset).rw_flags(flags).ioprio(priority).build()
            }
            (false, None, false) => {
                Write::new(fd, buffer, length).offset(offset).rw_flags(flags).ioprio(priority).build()
            }
        };
        entry.flags(entry_flags)
    }
}

impl IoUringEngine {
    /// Notes an entry for the next submission.
    #[inline(always)]
    fn push(&mut self, entry: squeue::Entry) {
        // SAFETY: what the entry points to stays valid until its completion is reaped (`queue`'s
        // promise), and no other thread pushes.
        let pushed = unsafe { self.ring.submission_shared().push(&entry) };
        if pushed.is_err() {
            self.push_when_consumed(&entry);
        }
        self.noted += 1;
    }

    /// Notes an entry once the kernel's thread has published that it consumed earlier ones.
    ///
    /// A slot has one entry at a time, and the ring has at least as many entries as slots. But the thread publishes the
    /// ring's head after a batch of submissions, so completions of that batch may be reaped before it does (Linux
    /// `io_uring/sqpoll.c`, `io_submit_sqes`). Without that thread the ring is never full.
    #[cold]
    fn push_when_consumed(&mut self, entry: &squeue::Entry) {
        assert!(self.has_sqpoll, "the ring has as many entries as slots");
        loop {
            std::thread::yield_now();
            // SAFETY: as in `push`.
            if unsafe { self.ring.submission_shared().push(entry) }.is_ok() {
                return;
            }
        }
    }

    /// Discards on block devices; an entry that does nothing brings each result to the ring.
    #[cold]
    fn discard(&mut self) {
        for i in 0..self.discards.len() {
            let (slot, request) = self.discards[i];
            let call = &self.files[usize::from(request.file)].trim_call;
            let result = trim(self.descriptors[usize::from(request.file)], call, &request);
            self.push(opcode::Nop::new().build().user_data(data_with_result(slot, result)));
        }
        self.discards.clear();
    }

    /// The entry of a read (`READ`) or a write.
    #[inline(always)]
    fn transfer<const READ: bool>(&mut self, slot: u32, request: &Request, buffer: *mut u8) -> squeue::Entry {
        let (length, offset) = (request.length, request.offset);
        let flags = if READ { self.read_flags } else { self.write_flags };
        // A registered file is named by its index, with a flag of the entry.
        let fd = types::Fd(if self.has_fixed_files {
            i32::from(request.file)
        } else {
            self.descriptors[usize::from(request.file)]
        });
        let entry = match (READ, &mut self.transfers) {
            (true, Transfers::Fixed) => {
                opcode::ReadFixed::new(fd, buffer, length, 0).offset(offset).rw_flags(flags).build()
            }
            (true, Transfers::Plain) => opcode::Read::new(fd, buffer, length).offset(offset).rw_flags(flags).build(),
            (false, Transfers::Fixed) => {
                opcode::WriteFixed::new(fd, buffer, length, 0).offset(offset).rw_flags(flags).build()
            }
            (false, Transfers::Plain) => opcode::Write::new(fd, buffer, length).offset(offset).rw_flags(flags).build(),
            (_, Transfers::Custom(custom)) => {
                let piece = libc::iovec { iov_base: buffer.cast(), iov_len: length as usize };
                return custom.transfer::<READ>(slot, fd, piece, offset, flags, self.entry_flags);
            }
        };
        entry.flags(self.entry_flags)
    }

    /// Takes what is in the completion ring.
    #[inline(always)]
    fn collect(&mut self, out: &mut [Completion]) -> usize {
        let mut count = 0;
        let mut ring = self.ring.completion();
        while count < out.len()
            && let Some(entry) = ring.next()
        {
            out[count] = completion(entry.user_data(), entry.result());
            count += 1;
        }
        count
    }
}

/// Calls `collect` with the number of completions so far until there are `min`, or `limit` has passed. Returns how many there are.
fn looked_for(min: usize, limit: Duration, mut collect: impl FnMut(usize) -> usize) -> usize {
    let began = Instant::now();
    let mut count = 0;
    while count < min && began.elapsed() < limit {
        std::hint::spin_loop();
        count += collect(count);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{Advice, UringOptions, WriteFlags};

    #[test]
    fn a_completion_carries_slot_and_result_of_every_size() {
        for slot in [0, 1, 77, (1 << 24) - 1] {
            for result in [0, 1, 4096, i64::from(u32::MAX), -22, -5] {
                assert_eq!(completion(data_with_result(slot, result), 0), Completion { slot, result });
                assert_eq!(completion(data_with_result(slot, result), -95).result, -95);
                assert_eq!(completion(u64::from(slot), 512), Completion { slot, result: 512 });
            }
        }
    }

    /// Goal: under `sqthread_poll` completions are taken from the ring without a system call, and the look-up is bounded.
    /// Method: the ring gives one completion at each third look, or none.
    #[test]
    fn completions_are_looked_for_until_they_are_there_or_the_time_is_over() {
        let hour = Duration::from_secs(3600);
        let mut looks = 0;
        let count = looked_for(2, hour, |_| {
            looks += 1;
            usize::from(looks % 3 == 0)
        });
        assert_eq!((count, looks), (2, 6));
        assert_eq!(looked_for(0, hour, |_| unreachable!("there is nothing to look for")), 0);
        let limit = Duration::from_millis(5);
        let began = Instant::now();
        assert_eq!(looked_for(1, limit, |_| 0), 0, "a completion that is not there is left to the kernel");
        assert!(began.elapsed() >= limit);
    }

    /// Goal: each way of submitting a transfer has its own kind of entry, and every Nth transfer has its flag.
    #[test]
    fn entries_are_of_the_kind_and_have_the_flag_that_was_asked_for() {
        use io_uring::opcode::{Read, Readv, Write, Writev};
        let mut buffer = vec![0u8; 4096];
        let mut custom = |vectored, async_every| {
            let setup = EngineSetup {
                is_synchronous: false,
                verifies: false,
                files: &[],
                depth: 4,
                buffers: (buffer.as_mut_ptr(), buffer.len()),
                flags: WriteFlags::default(),
                uring: UringOptions { vectored, async_every, ..UringOptions::default() },
                writes: true,
                priorities: &[],
                seed: 0,
                advice: Advice::None,
            };
            let Transfers::Custom(mut custom) = Transfers::of(&setup, false) else { panic!("no option is set") };
            let piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 512 };
            let none = squeue::Flags::empty();
            let entries: Vec<String> = (0..6)
                .map(|i| match i % 2 {
                    0 => custom.transfer::<true>(i % 4, types::Fd(1), piece, 0, 0, none),
                    _ => custom.transfer::<false>(i % 4, types::Fd(1), piece, 0, 0, none),
                })
                .map(|entry| format!("{entry:?}"))
                .collect();
            entries
        };
        let has = |entries: &[String], at: usize, code: u8, is_async: bool| {
            let flags = if is_async { squeue::Flags::ASYNC.bits() } else { 0 };
            let text = &entries[at];
            text.contains(&format!("op_code: {code},")) && text.contains(&format!("flags: {flags},"))
        };
        let pieces = custom(true, 0);
        assert!(has(&pieces, 0, Readv::CODE, false) && has(&pieces, 1, Writev::CODE, false), "{pieces:?}");
        let some = custom(false, 3);
        for (at, code) in [Read::CODE, Write::CODE].into_iter().cycle().take(6).enumerate() {
            assert!(has(&some, at, code, at % 3 == 2), "{at}: {some:?}");
        }
    }

    /// Goal: many workers one after another on one thread get registered rings, and leave nothing.
    /// Method: the kernel registers at most 16 rings a thread (`IO_RINGFD_REG_MAX`); 40 are made.
    #[test]
    fn a_closed_ring_gives_its_registration_back() {
        if !probe().0 {
            println!("Skipped(io_uring): {}", probe().1);
            return;
        }
        let mut buffer = vec![0u8; 4096];
        for i in 0..40 {
            let setup = EngineSetup {
                is_synchronous: false,
                verifies: false,
                files: &[],
                depth: 4,
                buffers: (buffer.as_mut_ptr(), buffer.len()),
                flags: WriteFlags::default(),
                uring: UringOptions {
                    registered_buffers: true,
                    registered_files: true,
                    sqpoll: false,
                    iopoll: false,
                    drain: false,
                    ..Default::default()
                },
                writes: false,
                priorities: &[],
                seed: 0,
                advice: Advice::None,
            };
            let engine = IoUringEngine::new(&setup).unwrap();
            assert_ne!(engine.enter_flags & ENTER_REGISTERED_RING, 0, "ring {i}");
        }
    }

    #[test]
    fn a_depth_beyond_the_kernels_rings_is_refused_in_words() {
        let setup = EngineSetup {
            is_synchronous: false,
            verifies: false,
            files: &[],
            depth: ENTRIES_MAX + 1,
            buffers: (std::ptr::null_mut(), 0),
            flags: WriteFlags::default(),
            uring: UringOptions {
                registered_buffers: false,
                registered_files: false,
                sqpoll: false,
                iopoll: false,
                drain: false,
                ..Default::default()
            },
            writes: false,
            priorities: &[],
            seed: 0,
            advice: Advice::None,
        };
        let error = IoUringEngine::new(&setup).unwrap_err();
        assert!(error.attempted.contains("32768"), "{error}");
    }
}
