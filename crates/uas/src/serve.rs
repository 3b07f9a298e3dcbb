//! Serves a disk as a network block device to the kernel of the same machine.
//!
//! Each request of the kernel becomes a command of the disk: read, write (FUA as asked for), SYNCHRONIZE CACHE, UNMAP or
//! WRITE SAME. A request is answered when its command has ended, never earlier. A request that arrives while all slots are
//! taken waits in the socket. All memory is allocated before the first request.
//!
//! When the server ends, or its process dies, the socket closes, and the kernel fails every request that was not answered.
//!
//! Limits: a request is at most [`Served::request_bytes_max`] long, which the caller sets as the device's limit
//! (`queue/max_sectors_kb`); a longer one fails.
//!
//! Source: Linux `drivers/block/nbd.c`; the protocol's document is `doc/proto.md` of the NBD project.

mod wire;

use crate::disk::Facts;
use crate::host::{Failure, Host, Transport};
use crate::request::{Data, Kind, Request};
use crate::scsi;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use wire::{Command, NbdRequest, REPLY_BYTES, REQUEST_BYTES};

/// How a disk is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// The logical unit.
    pub lun: u8,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Number of blocks.
    pub block_count: u64,
    /// Longest read or write, in bytes; a multiple of 4096.
    pub request_bytes_max: u32,
    /// Nothing is written.
    pub is_read_only: bool,
    /// The disk has a volatile cache, or may have one.
    pub has_cache: bool,
    /// The disk supports forced unit access.
    pub has_fua: bool,
    /// How blocks are deallocated.
    pub discard: Discard,
}

/// How blocks are deallocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    /// Not at all.
    None,
    /// By UNMAP with at most this many blocks.
    Unmap(u32),
    /// By WRITE SAME with the UNMAP bit and at most this many blocks.
    WriteSame(u32),
}

/// The longest request without another limit.
const REQUEST_BYTES_MAX: u32 = 512 << 10;
/// The shortest limit that Linux accepts for a block device.
const REQUEST_BYTES_MIN: u32 = 4096;

impl Served {
    /// Decides how a disk is served. `memory_bytes`: what all transfers may use together (`None`: without limit); half of it
    /// is left to others. `None`: the memory is too small.
    pub fn of(facts: &Facts, depth: u16, memory_bytes: Option<u64>, is_read_only: bool) -> Option<Self> {
        let block_bytes = facts.capacity.block_bytes;
        let share = memory_bytes.map_or(u64::MAX, |bytes| bytes / 2 / u64::from(depth));
        let of_disk = match facts.limits.transfer_blocks_max {
            0 => u64::MAX,
            blocks => u64::from(blocks) * u64::from(block_bytes),
        };
        let bytes = u64::from(REQUEST_BYTES_MAX).min(share).min(of_disk) as u32 / REQUEST_BYTES_MIN * REQUEST_BYTES_MIN;
        let same_max = match facts.limits.write_same_blocks_max {
            // Without a limit, one that a command can express and a disk ends within its time.
            0 => 1 << 20,
            blocks => blocks.min(u64::from(u32::MAX)) as u32,
        };
        let discard = match facts.provisioning {
            _ if !facts.capacity.can_unmap => Discard::None,
            found if found.has_unmap && facts.limits.unmap_blocks_max > 0 => {
                Discard::Unmap(facts.limits.unmap_blocks_max)
            }
            found if found.has_write_same_unmap => Discard::WriteSame(same_max),
            _ => Discard::None,
        };
        (bytes >= REQUEST_BYTES_MIN.max(block_bytes)).then_some(Self {
            lun: facts.lun,
            block_bytes,
            block_count: facts.capacity.block_count,
            request_bytes_max: bytes,
            is_read_only: is_read_only || facts.caching.is_some_and(|caching| caching.is_write_protected),
            has_cache: facts.caching.is_none_or(|caching| caching.has_write_cache),
            has_fua: facts.caching.is_some_and(|caching| caching.has_fua),
            discard,
        })
    }
}

/// Why a server ended.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// The kernel disconnected: everything is flushed.
    #[error("the block device was disconnected")]
    Disconnected,
    /// The session with the disk is over.
    #[error("{0}")]
    Disk(Failure),
    /// The last flush failed.
    #[error("the last flush failed: {0}")]
    LastFlush(Failure),
    /// The socket to the kernel failed.
    #[error("the kernel's side of the block device ended: {0}")]
    Socket(io::Error),
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Requests that were answered with success.
    pub done: u64,
    /// Requests that were answered with an error.
    pub failed: u64,
}

/// The request in a slot.
#[derive(Debug, Clone, Copy)]
struct Work {
    request: NbdRequest,
    /// The part of a discard that is still to be done, in blocks.
    next: u64,
    left: u64,
}

/// A server.
#[derive(Debug)]
pub struct Server<T> {
    // Dropped before the buffers: it ends all transfers.
    host: Host<T>,
    served: Served,
    work: Box<[Option<Work>]>,
    /// For each slot the head of the reply, then the data.
    buffers: Box<[u8]>,
    socket: UnixStream,
    tally: Tally,
    is_ending: bool,
}

impl<T: Transport> Server<T> {
    /// A server on a socket whose other end the kernel gets. All memory is allocated here.
    pub fn new(host: Host<T>, served: Served, socket: UnixStream) -> Self {
        let slots = usize::from(host.depth());
        let bytes = slots * (REPLY_BYTES + served.request_bytes_max as usize);
        // Touched, so that the first write to each page needs no memory later.
        let buffers = vec![1; bytes].into_boxed_slice();
        let work = vec![None; slots].into_boxed_slice();
        Self { host, served, work, buffers, socket, tally: Tally::default(), is_ending: false }
    }

    /// What was done so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The host.
    pub fn host(&self) -> &Host<T> {
        &self.host
    }

    /// Serves until the kernel disconnects or the disk is gone. `idle` is called after each wait, at least every second while
    /// no request comes; `warn` gets a sentence for each request that failed.
    ///
    /// Nothing on this thread may use the block device: it would wait for itself.
    pub fn run(&mut self, idle: &mut dyn FnMut(), warn: &mut dyn FnMut(&str)) -> End {
        loop {
            while let Some(outcome) = self.host.poll(Some(0)) {
                if let Err(error) = self.ended(outcome.user as usize, outcome.result, warn) {
                    return End::Socket(error);
                }
            }
            if let Some(failure) = self.host.has_failed() {
                return End::Disk(failure);
            }
            let is_busy = self.work.iter().any(Option::is_some);
            if self.is_ending && !is_busy {
                return self.last_flush();
            }
            let has_room = !self.is_ending && self.work.iter().any(Option::is_none);
            match self.wait(has_room) {
                Ok(true) => {
                    if let Err(error) = self.receive(warn) {
                        return End::Socket(error);
                    }
                }
                Ok(false) => {}
                Err(error) => return End::Socket(error),
            }
            idle();
        }
    }

    fn last_flush(&mut self) -> End {
        if self.served.is_read_only || !self.served.has_cache {
            return End::Disconnected;
        }
        match self.host.execute(Request::flush(self.served.lun), &mut []) {
            Ok(_) => End::Disconnected,
            Err(failure) => End::LastFlush(failure),
        }
    }

    /// Waits for the disk or, if there is room, for a request; returns whether there is one.
    fn wait(&mut self, has_room: bool) -> io::Result<bool> {
        let entry = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let disk = self.host.transport().descriptor().map_or(-1, |descriptor| descriptor.as_raw_fd());
        let socket = if has_room { self.socket.as_raw_fd() } else { -1 };
        let mut entries = [entry(socket), entry(disk)];
        // Woken at times, so that the caller can look at its own affairs.
        let limit_ns = self.host.wait_limit_ns().min(1_000_000_000);
        // A transport without a descriptor is polled.
        let limit_ms = match limit_ns {
            _ if disk < 0 && !self.host.is_idle() => 0,
            ns => ns.div_ceil(1_000_000) as i32,
        };
        // SAFETY: two entries that live while the call runs.
        let count = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, limit_ms) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
        }
        Ok(entries[0].revents != 0)
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        let bytes = REPLY_BYTES + self.served.request_bytes_max as usize;
        &mut self.buffers[slot * bytes..(slot + 1) * bytes]
    }

    /// Reads a request and starts its command.
    fn receive(&mut self, warn: &mut dyn FnMut(&str)) -> io::Result<()> {
        let mut head = [0; REQUEST_BYTES];
        read_whole(&self.socket, &mut head)?;
        let Some(request) = wire::parse(&head) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel sent no request"));
        };
        let slot = self.work.iter().position(Option::is_none).expect("a request is read only if there is room");
        let is_long = request.bytes > self.served.request_bytes_max;
        if let Command::Write { .. } = request.command {
            // The kernel sends the data with the request, whether it is accepted or not.
            let mut left = request.bytes as usize;
            while left > 0 {
                let piece = left.min(self.served.request_bytes_max as usize);
                let bytes = REPLY_BYTES + self.served.request_bytes_max as usize;
                let buffer = &mut self.buffers[slot * bytes + REPLY_BYTES..][..piece];
                read_whole(&self.socket, buffer)?;
                left -= piece;
            }
        }
        let block_bytes = u64::from(self.served.block_bytes);
        let (first, count) = (request.offset / block_bytes, u64::from(request.bytes) / block_bytes);
        let is_aligned =
            request.offset.is_multiple_of(block_bytes) && u64::from(request.bytes).is_multiple_of(block_bytes);
        let is_inside = first.checked_add(count).is_some_and(|end| end <= self.served.block_count);
        let refusal = match request.command {
            Command::Disconnect => {
                self.is_ending = true;
                return Ok(());
            }
            Command::Flush => None,
            Command::Unknown(_) => Some(libc::EINVAL),
            Command::Write { .. } | Command::Discard if self.served.is_read_only => Some(libc::EPERM),
            Command::Discard if self.served.discard == Discard::None => Some(libc::EINVAL),
            _ if !is_aligned || !is_inside || count == 0 => Some(libc::EINVAL),
            Command::Read | Command::Write { .. } if is_long => Some(libc::EINVAL),
            _ => None,
        };
        if let Some(errno) = refusal {
            warn(&format!("a request was refused ({}): {request:?}", io::Error::from_raw_os_error(errno)));
            return self.answer(slot, &request, Err(errno));
        }
        self.work[slot] = Some(Work { request, next: first, left: count });
        self.start(slot);
        Ok(())
    }

    /// Starts the command of a slot's request, or its next part.
    fn start(&mut self, slot: usize) {
        let Served { lun, block_bytes, discard, .. } = self.served;
        let work = self.work[slot].as_mut().expect("a request");
        let (next, left) = (work.next, work.left);
        let mut list = None;
        let request = match work.request.command {
            Command::Read => Request::read(lun, next, left as u32, block_bytes),
            Command::Write { is_fua } => Request::write(lun, next, left as u32, block_bytes, is_fua),
            Command::Discard => {
                let most = match discard {
                    Discard::Unmap(blocks) | Discard::WriteSame(blocks) => u64::from(blocks),
                    Discard::None => unreachable!("refused before"),
                };
                let count = left.min(most);
                (work.next, work.left) = (next + count, left - count);
                if let Discard::Unmap(_) = discard {
                    let (cdb, parameters) = scsi::unmap(next, count as u32);
                    list = Some(parameters);
                    let data = Data::Out(scsi::UNMAP_BYTES as u32);
                    Request { lun, cdb, data, kind: Kind::Write { is_fua: false } }
                } else {
                    let cdb = scsi::write_same(next, count as u32, true);
                    Request { lun, cdb, data: Data::Out(block_bytes), kind: Kind::Write { is_fua: false } }
                }
            }
            _ => Request::flush(lun),
        };
        let buffer = self.buffer(slot);
        match (list, request.cdb[0]) {
            (Some(list), _) => buffer[REPLY_BYTES..][..list.len()].copy_from_slice(&list),
            // The block of a WRITE SAME is zero.
            (None, 0x93) => buffer[REPLY_BYTES..][..block_bytes as usize].fill(0),
            _ => {}
        }
        let data = buffer[REPLY_BYTES..].as_mut_ptr();
        // SAFETY: the slot's buffer is as long as the longest request; it is used again only when its work is done, and it is
        // dropped after the host.
        let started = unsafe { self.host.start(request, slot as u64, data) };
        started.expect("there are as many slots as requests");
    }

    /// Answers a request whose command has ended, or starts its next part.
    fn ended(&mut self, slot: usize, result: Result<u32, Failure>, warn: &mut dyn FnMut(&str)) -> io::Result<()> {
        let Work { request, left, .. } = self.work[slot].expect("only its own commands");
        if result.is_ok() && request.command == Command::Discard && left > 0 {
            self.start(slot);
            return Ok(());
        }
        self.work[slot] = None;
        if let Err(failure) = result {
            let NbdRequest { command, offset, bytes, .. } = request;
            warn(&format!("{command:?} of {bytes} bytes at {offset} failed: {failure}"));
        }
        self.answer(slot, &request, result.map(|_| ()).map_err(|failure| failure.errno()))
    }

    fn answer(&mut self, slot: usize, request: &NbdRequest, result: Result<(), i32>) -> io::Result<()> {
        let head = wire::reply(request.handle, result.err().unwrap_or(0));
        let data = if result.is_ok() && request.command == Command::Read { request.bytes as usize } else { 0 };
        match result {
            Ok(()) => self.tally.done += 1,
            Err(_) => self.tally.failed += 1,
        }
        let bytes = REPLY_BYTES + self.served.request_bytes_max as usize;
        let buffer = &mut self.buffers[slot * bytes..][..REPLY_BYTES + data];
        buffer[..REPLY_BYTES].copy_from_slice(&head);
        (&self.socket).write_all(buffer)
    }
}

/// Reads the whole buffer; the end of the stream is an error.
fn read_whole(mut socket: &UnixStream, buffer: &mut [u8]) -> io::Result<()> {
    socket.read_exact(buffer)
}
