//! A queue of I/Os on one disk that several threads share.
//!
//! An interface has one session, and its commands come from several threads. Each thread is a client with slots of its
//! own. An I/O is split into commands that the disk and the memory of usbfs permit; commands that find no free slot wait,
//! the oldest first, as requests wait in the kernel's queue of a block device. Whichever client reaps carries out the
//! session's work and leaves completions to their clients; a client that waits is woken.
//!
//! Nothing is allocated between the first and the last I/O of a client. Until [`Queue::permit_writes`] was called, no
//! command that writes is sent.
//!
//! Limits: transfers and trims of whole blocks; 2^32 clients with 2^32 slots each.

use crate::ata::Ata;
use crate::host::{Failure, Host, Moved, Transport};
use crate::request::{Data, Kind, Outcome, Request};
use crate::scsi::{self, UNMAP_BYTES};
use crate::serve::{Discard, Served};
use crate::session::Counts;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads blocks into the buffer.
    Read,
    /// Writes the buffer to blocks.
    Write,
    /// Writes the buffer to blocks, past the disk's cache (FUA, if the disk has a cache).
    WriteThrough,
    /// Deallocates blocks; has no buffer.
    Trim,
    /// Flushes the disk's cache; has no range.
    Flush,
}

/// An I/O.
#[derive(Debug, Clone, Copy)]
pub struct Io {
    /// A slot of the client that is free.
    pub slot: u32,
    /// What it does.
    pub operation: Operation,
    /// First byte; a multiple of the block.
    pub offset: u64,
    /// Length in bytes; a multiple of the block.
    pub bytes: u32,
    /// The data.
    pub buffer: *mut u8,
}

/// An I/O that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The slot, which is free now.
    pub slot: u32,
    /// Bytes that were transferred, or the negative error number.
    pub result: i64,
}

impl Done {
    /// The content of an unused entry.
    pub const NONE: Done = Done { slot: 0, result: 0 };
}

/// What was seen of a disk since it was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Recoveries and conditions of the session.
    pub counts: Counts,
    /// What the transport moved.
    pub moved: Moved,
    /// Writes with FUA.
    pub durable_writes: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Commands that the disk reported as successful with fewer bytes than asked for.
    pub short: u64,
    /// The last failure.
    pub last: Option<Failure>,
}

/// A disk that an I/O engine drives by commands.
///
/// A client is joined, submits and reaps on one thread, and leaves.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Adds a client with a number of slots and returns its number.
    ///
    /// # Errors
    /// The process has no descriptor left.
    fn join(&self, slots: u32) -> io::Result<usize>;

    /// Removes a client; waits until its I/Os have ended.
    fn leave(&self, client: usize);

    /// Submits I/Os. Does not wait.
    ///
    /// # Safety
    /// Until the I/O is reaped, the `bytes` bytes at `buffer` are valid: a read writes to them, a write reads them. Nothing
    /// else uses them meanwhile.
    unsafe fn submit(&self, client: usize, ios: &[Io]);

    /// Collects I/Os of a client that have ended; waits until there are `min` of them, `timeout_ns` has passed (`None`: no
    /// limit), or a signal came. Returns how many were written to `out`.
    fn reap(&self, client: usize, min: usize, timeout_ns: Option<u64>, out: &mut [Done]) -> usize;

    /// Returns what was seen since the disk was claimed.
    fn seen(&self) -> Seen;
}

/// An address that belongs to a client.
#[derive(Debug, Clone, Copy)]
struct Buffer(*mut u8);

// SAFETY: an address that is passed to the transport and not read through here; its owner keeps it valid on whichever
// thread the transport runs (`Disk::submit`).
unsafe impl Send for Buffer {}

/// The I/O in a slot of a client.
#[derive(Debug, Clone, Copy)]
struct Slot {
    is_taken: bool,
    /// Its number is in `State::waiting`.
    is_waiting: bool,
    operation: Operation,
    /// The part that is not started yet, in blocks; 1 for a flush.
    next: u64,
    left: u64,
    buffer: Buffer,
    /// Commands that have not ended.
    running: u32,
    bytes: u64,
    errno: Option<i32>,
    /// The parameter list of an UNMAP.
    list: [u8; UNMAP_BYTES],
}

impl Slot {
    const FREE: Slot = Slot {
        is_taken: false,
        is_waiting: false,
        operation: Operation::Flush,
        next: 0,
        left: 0,
        buffer: Buffer(std::ptr::null_mut()),
        running: 0,
        bytes: 0,
        errno: None,
        list: [0; UNMAP_BYTES],
    };

    /// True if nothing of its I/O is running or waiting.
    fn is_over(&self) -> bool {
        self.is_taken && self.running == 0 && self.left == 0 && !self.is_waiting
    }
}

#[derive(Debug)]
struct Client {
    is_free: bool,
    slots: Box<[Slot]>,
    done: VecDeque<Done>,
    /// Wakes it while it waits.
    wake: File,
    is_asleep: bool,
}

#[derive(Debug)]
struct State<T> {
    // Dropped first: it ends all transfers.
    host: Host<T>,
    clients: Vec<Client>,
    /// I/Os with commands that are not started yet, the oldest first: client and slot in one number.
    waiting: VecDeque<u64>,
    durable_writes: u64,
    failed: u64,
    short: u64,
    last: Option<Failure>,
}

/// A disk's queue.
pub struct Queue<T> {
    state: Mutex<State<T>>,
    served: Served,
    /// The block of a WRITE SAME that deallocates.
    zeros: Box<[u8]>,
    may_write: AtomicBool,
    /// Dropped after the transport.
    _after: Box<dyn Any + Send + Sync>,
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("served", &self.served).finish_non_exhaustive()
    }
}

/// An error with the failure's sentence and the kind of its error number.
fn in_words(failure: Failure) -> io::Error {
    io::Error::new(io::Error::from_raw_os_error(failure.errno()).kind(), failure.to_string())
}

fn number(client: usize, slot: u32) -> u64 {
    (client as u64) << 32 | u64::from(slot)
}

fn parts(number: u64) -> (usize, usize) {
    ((number >> 32) as usize, (number & 0xffff_ffff) as usize)
}

impl<T: Transport + Send> Queue<T> {
    /// A queue on a host without commands in flight. `after` is dropped when the transport is gone.
    pub fn new(host: Host<T>, served: Served, after: Box<dyn Any + Send + Sync>) -> Self {
        let (clients, waiting) = (Vec::new(), VecDeque::new());
        let state = State { host, clients, waiting, durable_writes: 0, failed: 0, short: 0, last: None };
        Self {
            state: Mutex::new(state),
            served,
            zeros: vec![0; served.block_bytes as usize].into(),
            may_write: AtomicBool::new(false),
            _after: after,
        }
    }

    /// How the disk is used.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// From now on commands that write are sent.
    pub fn permit_writes(&self) {
        self.may_write.store(true, Relaxed);
    }

    /// Reads a range of bytes, whole blocks or not. No I/O may be in flight.
    ///
    /// # Errors
    /// The disk's failure.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let block_bytes = u64::from(self.served.block_bytes);
        let longest = u64::from(self.served.request_bytes_max.min(crate::host::EXECUTE_BYTES as u32));
        let mut scratch = vec![0; longest as usize];
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let first = at / block_bytes;
            let within = (at % block_bytes) as usize;
            let whole = (within as u64 + rest.len() as u64).min(longest).next_multiple_of(block_bytes).min(longest);
            let blocks = (whole / block_bytes) as u32;
            let request = Request::read(self.served.lun, first, blocks, self.served.block_bytes);
            self.lock().host.execute(request, &mut scratch[..whole as usize]).map_err(in_words)?;
            let piece = rest.len().min(whole as usize - within);
            let (now, later) = rest.split_at_mut(piece);
            now.copy_from_slice(&scratch[within..within + piece]);
            (at, rest) = (at + piece as u64, later);
        }
        Ok(())
    }

    /// Reads the identity and the SMART data of the disk behind a bridge; `None`: it does not pass ATA commands on, or must not get them. No I/O may be
    /// in flight.
    ///
    /// # Errors
    /// The disk's failure.
    pub fn ata(&self) -> Result<Option<Ata>, Failure> {
        if self.served.has_no_ata {
            return Ok(None);
        }
        crate::ata::read(&mut self.lock().host, self.served.lun)
    }

    /// Flushes the disk's cache, if commands that write were permitted. No I/O may be in flight.
    ///
    /// # Errors
    /// The disk's failure.
    pub fn flush(&self) -> io::Result<()> {
        if !self.may_write.load(Relaxed) || !self.served.has_cache {
            return Ok(());
        }
        let flushed = self.lock().host.execute(Request::flush(self.served.lun), &mut []);
        flushed.map(|_| ()).map_err(in_words)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("no thread panics while it holds the queue")
    }

    /// Returns the error number of an I/O that is not sent to the disk; 0: success.
    fn answer_without_disk(&self, io: &Io) -> Option<i32> {
        let Served { block_bytes, block_count, discard, has_cache, has_fua, .. } = self.served;
        let (block_bytes, may_write) = (u64::from(block_bytes), self.may_write.load(Relaxed));
        let end = io.offset.checked_add(u64::from(io.bytes));
        let is_whole = io.offset.is_multiple_of(block_bytes) && u64::from(io.bytes).is_multiple_of(block_bytes);
        let is_inside = io.bytes > 0 && end.is_some_and(|end| end <= block_count.saturating_mul(block_bytes));
        match io.operation {
            // Nothing was written, or nothing stays in a cache.
            Operation::Flush if !may_write || !has_cache => Some(0),
            Operation::Flush => None,
            Operation::Write | Operation::WriteThrough | Operation::Trim if !may_write => Some(libc::EROFS),
            _ if !is_whole || !is_inside => Some(libc::EINVAL),
            Operation::WriteThrough if has_cache && !has_fua => Some(libc::EOPNOTSUPP),
            Operation::Trim if discard == Discard::None => Some(libc::EOPNOTSUPP),
            _ => None,
        }
    }
}

impl<T: Transport> State<T> {
    fn slot(&mut self, number: u64) -> &mut Slot {
        let (client, slot) = parts(number);
        &mut self.clients[client].slots[slot]
    }

    /// Starts commands as long as there is room.
    fn launch(&mut self, served: &Served, zeros: &[u8]) {
        while let Some(&number) = self.waiting.front() {
            let (client, index) = parts(number);
            let slot = &mut self.clients[client].slots[index];
            if slot.left == 0 {
                self.waiting.pop_front();
                slot.is_waiting = false;
                self.conclude(number);
                continue;
            }
            let (request, data, blocks) = command(slot, served, zeros);
            // SAFETY: the client's buffer is valid until its I/O is reaped (`Disk::submit`), which is after all its commands
            // have ended; the slot's list and the block of zeros outlive the host's use of them: clients are never removed,
            // and their slots are not moved.
            if unsafe { self.host.start(request, number, data) }.is_err() {
                return;
            }
            self.durable_writes += u64::from(request.kind == Kind::Write { is_fua: true });
            slot.running += 1;
            slot.next += blocks;
            slot.left -= blocks;
            if matches!(slot.operation, Operation::Read | Operation::Write | Operation::WriteThrough) {
                // Within the client's buffer, or just after its end when nothing is left.
                slot.buffer.0 = slot.buffer.0.wrapping_add(blocks as usize * served.block_bytes as usize);
            }
            // The parts of a trim share one list, so they run one after the other.
            if slot.left == 0 || slot.operation == Operation::Trim {
                self.waiting.pop_front();
                slot.is_waiting = false;
            }
        }
    }

    /// Carries out what is due, waiting for at most `wait_ns` for the first event.
    fn work(&mut self, wait_ns: u64, served: &Served, zeros: &[u8]) {
        let mut wait_ns = wait_ns;
        loop {
            self.launch(served, zeros);
            let Some(outcome) = self.host.poll(Some(wait_ns)) else { return };
            self.ended(outcome);
            wait_ns = 0;
        }
    }

    fn ended(&mut self, Outcome { user, result }: Outcome) {
        if let Err(failure) = result {
            self.failed += 1;
            self.short += u64::from(matches!(failure, Failure::Short { .. }));
            self.last = Some(failure);
        }
        let slot = self.slot(user);
        slot.running -= 1;
        match result {
            Ok(_) if slot.operation == Operation::Trim => {}
            Ok(bytes) => slot.bytes += u64::from(bytes),
            Err(failure) => {
                slot.errno.get_or_insert(failure.errno());
                slot.left = 0;
            }
        }
        if slot.left > 0 && !slot.is_waiting {
            slot.is_waiting = true;
            self.waiting.push_front(user);
        }
        self.conclude(user);
    }

    /// Reports an I/O that is over to its client.
    fn conclude(&mut self, number: u64) {
        let (client, index) = parts(number);
        let Client { slots, done, wake, is_asleep, .. } = &mut self.clients[client];
        let slot = &mut slots[index];
        if !slot.is_over() {
            return;
        }
        slot.is_taken = false;
        let result = slot.errno.map_or(slot.bytes as i64, |errno| -i64::from(errno));
        done.push_back(Done { slot: index as u32, result });
        if *is_asleep {
            // The counter of an eventfd is full only after 2^64 - 2 calls.
            let _ = wake.write(&1u64.to_ne_bytes());
        }
    }

    fn take(&mut self, client: usize, out: &mut [Done]) -> usize {
        let done = &mut self.clients[client].done;
        let count = done.len().min(out.len());
        for (out, done) in out.iter_mut().zip(done.drain(..count)) {
            *out = done;
        }
        count
    }
}

/// Returns the next command of a slot's I/O, its data, and the number of its blocks.
fn command(slot: &mut Slot, served: &Served, zeros: &[u8]) -> (Request, *mut u8, u64) {
    let Served { lun, block_bytes, request_bytes_max, discard, has_cache, .. } = *served;
    let most = u64::from(request_bytes_max / block_bytes);
    match slot.operation {
        Operation::Read => {
            let blocks = slot.left.min(most);
            (Request::read(lun, slot.next, blocks as u32, block_bytes), slot.buffer.0, blocks)
        }
        Operation::Write | Operation::WriteThrough => {
            let blocks = slot.left.min(most);
            let is_fua = slot.operation == Operation::WriteThrough && has_cache;
            (Request::write(lun, slot.next, blocks as u32, block_bytes, is_fua), slot.buffer.0, blocks)
        }
        Operation::Flush => (Request::flush(lun), std::ptr::null_mut(), 1),
        Operation::Trim => {
            let kind = Kind::Write { is_fua: false };
            match discard {
                Discard::Unmap(most) => {
                    let blocks = slot.left.min(most.into());
                    let (cdb, list) = scsi::unmap(slot.next, blocks as u32);
                    slot.list = list;
                    let data = Data::Out(UNMAP_BYTES as u32);
                    (Request { lun, cdb, data, kind }, slot.list.as_mut_ptr(), blocks)
                }
                Discard::WriteSame(most) => {
                    let blocks = slot.left.min(most.into());
                    let cdb = scsi::write_same(slot.next, blocks as u32, true);
                    (Request { lun, cdb, data: Data::Out(block_bytes), kind }, zeros.as_ptr().cast_mut(), blocks)
                }
                Discard::None => unreachable!("refused when it was submitted"),
            }
        }
    }
}

/// Waits until one of two descriptors is readable, or for `wait_ns`. Returns whether the second is; `None` after a signal.
fn wait_for(descriptors: [RawFd; 2], wait_ns: u64) -> Option<bool> {
    let mut entries = descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let wait = Duration::from_nanos(wait_ns.min(1_000_000_000));
    let wait = libc::timespec { tv_sec: wait.as_secs() as _, tv_nsec: wait.subsec_nanos().into() };
    // SAFETY: two entries and a time that live while the call runs; no signal mask.
    let count = unsafe { libc::ppoll(entries.as_mut_ptr(), 2, &raw const wait, std::ptr::null()) };
    let is_signal = count < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
    (!is_signal).then_some(entries[1].revents != 0)
}

impl<T: Transport + Send> Disk for Queue<T> {
    fn join(&self, slots: u32) -> io::Result<usize> {
        // SAFETY: a plain call; the descriptor has no other owner.
        let wake = match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: it was created just now.
            descriptor => unsafe { File::from_raw_fd(descriptor) },
        };
        let slots = slots as usize;
        let client = Client {
            is_free: false,
            slots: vec![Slot::FREE; slots].into(),
            done: VecDeque::with_capacity(slots),
            wake,
            is_asleep: false,
        };
        let mut state = self.lock();
        state.waiting.reserve(slots);
        let free = state.clients.iter().position(|client| client.is_free);
        Ok(match free {
            Some(free) => {
                state.clients[free] = client;
                free
            }
            None => {
                state.clients.push(client);
                state.clients.len() - 1
            }
        })
    }

    fn leave(&self, client: usize) {
        let mut done = [Done::NONE; 16];
        let is_busy = || self.lock().clients[client].slots.iter().any(|slot| slot.is_taken);
        while is_busy() {
            // The session's time limits end every command.
            self.reap(client, 1, None, &mut done);
        }
        let mut state = self.lock();
        state.clients[client].done.clear();
        state.clients[client].is_free = true;
    }

    unsafe fn submit(&self, client: usize, ios: &[Io]) {
        let block_bytes = u64::from(self.served.block_bytes);
        let mut state = self.lock();
        for io in ios {
            let slot = &mut state.clients[client].slots[io.slot as usize];
            assert!(!slot.is_taken, "slot {} has an I/O", io.slot);
            if let Some(errno) = self.answer_without_disk(io) {
                let done = Done { slot: io.slot, result: -i64::from(errno) };
                state.clients[client].done.push_back(done);
                continue;
            }
            let (next, left) = match io.operation {
                Operation::Flush => (0, 1),
                _ => (io.offset / block_bytes, u64::from(io.bytes) / block_bytes),
            };
            let (operation, buffer) = (io.operation, Buffer(io.buffer));
            // A trim transfers no data: it is whole when all its commands have succeeded.
            let bytes = if operation == Operation::Trim { io.bytes.into() } else { 0 };
            *slot = Slot { is_taken: true, is_waiting: true, operation, next, left, buffer, bytes, ..Slot::FREE };
            state.waiting.push_back(number(client, io.slot));
        }
        state.launch(&self.served, &self.zeros);
    }

    fn reap(&self, client: usize, min: usize, timeout_ns: Option<u64>, out: &mut [Done]) -> usize {
        let until = timeout_ns.map(|ns| Instant::now() + Duration::from_nanos(ns));
        let min = min.min(out.len());
        let mut count = 0;
        loop {
            let mut state = self.lock();
            state.clients[client].is_asleep = false;
            state.work(0, &self.served, &self.zeros);
            count += state.take(client, &mut out[count..]);
            let left_ns = match until {
                None => u64::MAX,
                Some(until) => until.saturating_duration_since(Instant::now()).as_nanos() as u64,
            };
            let is_busy = state.clients[client].slots.iter().any(|slot| slot.is_taken);
            if count >= min || left_ns == 0 || !is_busy {
                return count;
            }
            let wait_ns = left_ns.min(state.host.wait_limit_ns());
            let Some(disk) = state.host.transport().descriptor().map(|descriptor| descriptor.as_raw_fd()) else {
                state.work(wait_ns, &self.served, &self.zeros);
                continue;
            };
            let own = &mut state.clients[client];
            own.is_asleep = true;
            let wake = own.wake.as_raw_fd();
            drop(state);
            let woken = wait_for([disk, wake], wait_ns);
            let mut state = self.lock();
            let own = &mut state.clients[client];
            own.is_asleep = false;
            if woken == Some(true) {
                // It holds a number, or another client's I/O that is reaped below has been counted already.
                let _ = own.wake.read(&mut [0; 8]);
            }
            if woken.is_none() {
                state.work(0, &self.served, &self.zeros);
                return count + state.take(client, &mut out[count..]);
            }
        }
    }

    fn seen(&self) -> Seen {
        let state = self.lock();
        let (counts, moved) = (state.host.counts(), state.host.transport().moved());
        let State { durable_writes, failed, short, last, .. } = *state;
        Seen { counts, moved, durable_writes, failed, short, last }
    }
}
