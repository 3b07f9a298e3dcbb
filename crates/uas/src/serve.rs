//! Serves a disk as a block device to the kernel of the same machine.
//!
//! Each request of the kernel becomes a command of the disk: read, write (FUA as asked for), SYNCHRONIZE CACHE, UNMAP or
//! WRITE SAME. A request is answered when its command has ended, never earlier. All memory is allocated before the first
//! request.
//!
//! Requests come through a [`Front`]: the socket of the kernel's NBD client ([`socket`]), or the queue of a ublk device
//! ([`crate::ublk`]). When the server ends, or its process dies, the kernel fails every request that was not answered.
//!
//! Limits: a request is at most [`Served::request_bytes_max`] long, which the caller sets as the device's limit
//! (`queue/max_sectors_kb`); a longer one fails.

mod front;
pub mod socket;
mod wire;

pub use front::{Asked, Command, Front, Received};

use crate::disk::Facts;
use crate::host::{Failure, Host, Transport};
use crate::request::{Data, Kind, Request};
use crate::scsi;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// How a disk is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Number of the logical unit, from 0.
    pub lun: u8,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes of a physical sector.
    pub physical_bytes: u32,
    /// Number of blocks.
    pub block_count: u64,
    /// Longest read or write, in bytes; a multiple of 4096.
    pub request_bytes_max: u32,
    /// Nothing is written.
    pub is_read_only: bool,
    /// The disk has a volatile cache.
    pub has_cache: bool,
    /// The disk supports forced unit access.
    pub has_fua: bool,
    /// How blocks are deallocated.
    pub discard: Discard,
    /// ATA commands are not passed through.
    pub has_no_ata: bool,
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
        let of_quirk = u64::from(facts.quirks.transfer_bytes_max.unwrap_or(u32::MAX));
        let bytes = u64::from(REQUEST_BYTES_MAX).min(share).min(of_disk).min(of_quirk) as u32 / REQUEST_BYTES_MIN
            * REQUEST_BYTES_MIN;
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
            found if found.has_write_same_unmap && !facts.quirks.no_write_same => Discard::WriteSame(same_max),
            _ => Discard::None,
        };
        (bytes >= REQUEST_BYTES_MIN.max(block_bytes)).then_some(Self {
            lun: facts.lun,
            block_bytes,
            physical_bytes: facts.capacity.physical_bytes,
            block_count: facts.capacity.block_count,
            request_bytes_max: bytes,
            is_read_only: is_read_only
                || (!facts.quirks.no_write_protection
                    && facts.caching.is_some_and(|caching| caching.is_write_protected)),
            has_cache: facts.caching.is_some_and(|caching| caching.has_write_cache),
            has_fua: !facts.quirks.broken_fua && facts.caching.is_some_and(|caching| caching.has_fua),
            discard,
            has_no_ata: facts.quirks.no_ata,
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
    /// The kernel's side failed.
    #[error("the kernel's side of the block device ended: {0}")]
    Kernel(io::Error),
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
    asked: Asked,
    /// The part of a discard that is still to be done, in blocks.
    next: u64,
    left: u64,
}

/// What a wait found.
#[derive(Debug, Clone, Copy, Default)]
struct Ready {
    /// There may be a request.
    kernel: bool,
    /// The machine was suspended.
    was_suspended: bool,
}

/// A server.
#[derive(Debug)]
pub struct Server<T, F> {
    // Dropped before the front, which has the buffers: it ends all transfers.
    host: Host<T>,
    served: Served,
    work: Box<[Option<Work>]>,
    front: F,
    tally: Tally,
    is_ending: bool,
    has_reported_fua: bool,
}

impl<T: Transport, F: Front> Server<T, F> {
    /// A server with a front of at most as many slots as the host.
    pub fn new(host: Host<T>, served: Served, front: F) -> Self {
        let work = vec![None; usize::from(host.depth())].into_boxed_slice();
        Self { host, served, work, front, tally: Tally::default(), is_ending: false, has_reported_fua: false }
    }

    /// What was done so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The host.
    pub fn host(&self) -> &Host<T> {
        &self.host
    }

    /// The front.
    pub fn front_mut(&mut self) -> &mut F {
        &mut self.front
    }

    /// Lets the kernel send requests, on the thread that calls [`Self::run`] next.
    ///
    /// # Errors
    /// The kernel's.
    pub fn begin(&mut self) -> io::Result<()> {
        self.front.begin()
    }

    /// Serves until the kernel's side ends or the disk is gone. `idle` is called after each wait, at least every second while
    /// no request comes; `warn` gets a sentence for each request that failed.
    ///
    /// Nothing on this thread may use the block device: it would wait for itself.
    pub fn run(&mut self, idle: &mut dyn FnMut(), warn: &mut dyn FnMut(&str)) -> End {
        loop {
            while let Some(outcome) = self.host.poll(Some(0)) {
                if let Err(error) = self.ended(outcome.user as usize, outcome.result, warn) {
                    return End::Kernel(error);
                }
            }
            if let Some(failure) = self.host.has_failed() {
                return End::Disk(failure);
            }
            if self.is_ending && self.work.iter().all(Option::is_none) {
                return self.last_flush();
            }
            if let Err(error) = self.turn(warn) {
                return End::Kernel(error);
            }
            idle();
        }
    }

    /// Answers every request with an error until the kernel's side ends; for a disk that is gone ([`End::Disk`]), while
    /// another thread ends the block device.
    ///
    /// # Errors
    /// The kernel's side cannot be used any more.
    pub fn refuse(&mut self, idle: &mut dyn FnMut()) -> io::Result<()> {
        while !self.is_ending {
            if self.wait()?.kernel {
                self.refuse_one()?;
                while self.front.has_more() {
                    self.refuse_one()?;
                }
            }
            idle();
        }
        Ok(())
    }

    fn refuse_one(&mut self) -> io::Result<()> {
        match self.front.receive()? {
            Received::Nothing => {}
            Received::Request(slot, _) => {
                self.tally.failed += 1;
                self.front.answer(slot, Err(libc::ENODEV))?;
            }
            Received::End => self.is_ending = true,
        }
        Ok(())
    }

    /// Waits, and receives what has come.
    fn turn(&mut self, warn: &mut dyn FnMut(&str)) -> io::Result<()> {
        let ready = self.wait()?;
        if ready.was_suspended {
            warn("the machine was suspended: the port of the disk is reset, and its interface claimed again");
        }
        if ready.kernel {
            self.receive(warn)?;
            while self.front.has_more() {
                self.receive(warn)?;
            }
        }
        Ok(())
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

    /// Waits for the disk, for a request, or for the end of a suspend.
    fn wait(&mut self) -> io::Result<Ready> {
        self.front.send()?;
        let entry = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let disk = self.host.transport().descriptor().map_or(-1, |descriptor| descriptor.as_raw_fd());
        let kernel = match self.is_ending {
            true => -1,
            false => self.front.descriptor().map_or(-1, |descriptor| descriptor.as_raw_fd()),
        };
        let wake = self.host.transport().wake_descriptor().map_or(-1, |descriptor| descriptor.as_raw_fd());
        let mut entries = [entry(kernel), entry(disk), entry(wake)];
        // Woken at times, so that the caller can look at its own affairs.
        let limit_ns = self.host.wait_limit_ns().min(1_000_000_000);
        // A transport without a descriptor is polled.
        let limit_ms = match limit_ns {
            _ if disk < 0 && !self.host.is_idle() => 0,
            ns => ns.div_ceil(1_000_000) as i32,
        };
        // SAFETY: the entries live while the call runs.
        let count = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, limit_ms) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(Ready::default()) } else { Err(error) };
        }
        let mut ready = Ready { kernel: entries[0].revents != 0, was_suspended: false };
        if entries[2].revents != 0 {
            self.host.transport_mut().clear_wake();
            ready.was_suspended = self.host.notice_suspend();
        }
        Ok(ready)
    }

    /// Receives a request and starts its command.
    fn receive(&mut self, warn: &mut dyn FnMut(&str)) -> io::Result<()> {
        let (slot, asked) = match self.front.receive()? {
            Received::Nothing => return Ok(()),
            Received::Request(slot, asked) => (slot, asked),
            Received::End => {
                self.is_ending = true;
                return Ok(());
            }
        };
        let block_bytes = u64::from(self.served.block_bytes);
        let (first, count) = (asked.offset / block_bytes, asked.bytes / block_bytes);
        let is_aligned = asked.offset.is_multiple_of(block_bytes) && asked.bytes.is_multiple_of(block_bytes);
        let is_inside = first.checked_add(count).is_some_and(|end| end <= self.served.block_count);
        let is_long = asked.bytes > u64::from(self.served.request_bytes_max);
        let refusal = match asked.command {
            Command::Flush => None,
            Command::Unknown(_) => Some(libc::EINVAL),
            Command::Write { .. } | Command::Discard if self.served.is_read_only => Some(libc::EPERM),
            Command::Discard if self.served.discard == Discard::None => Some(libc::EINVAL),
            _ if !is_aligned || !is_inside || count == 0 => Some(libc::EINVAL),
            Command::Read | Command::Write { .. } if is_long => Some(libc::EINVAL),
            _ => None,
        };
        if let Some(errno) = refusal {
            warn(&format!("a request was refused ({}): {asked:?}", io::Error::from_raw_os_error(errno)));
            self.tally.failed += 1;
            return self.front.answer(slot, Err(errno));
        }
        self.work[slot] = Some(Work { asked, next: first, left: count });
        self.start(slot);
        Ok(())
    }

    /// Starts the command of a slot's request, or its next part.
    fn start(&mut self, slot: usize) {
        let Served { lun, block_bytes, discard, .. } = self.served;
        let work = self.work[slot].as_mut().expect("a request");
        let (next, left) = (work.next, work.left);
        let mut list = None;
        let request = match work.asked.command {
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
            Command::Flush | Command::Unknown(_) => Request::flush(lun),
        };
        let buffer = self.front.buffer(slot);
        match (list, request.cdb[0]) {
            (Some(list), _) => buffer[..list.len()].copy_from_slice(&list),
            // The block of a WRITE SAME is zero.
            (None, 0x93) => buffer[..block_bytes as usize].fill(0),
            _ => {}
        }
        let data = buffer.as_mut_ptr();
        // SAFETY: the slot's buffer is as long as the longest request; it is used again only when its work is done, and the
        // front is dropped after the host.
        let started = unsafe { self.host.start(request, slot as u64, data) };
        started.expect("there are as many slots as requests");
    }

    /// Answers a request whose command has ended, or starts its next part.
    fn ended(&mut self, slot: usize, result: Result<u32, Failure>, warn: &mut dyn FnMut(&str)) -> io::Result<()> {
        let Work { asked, left, .. } = self.work[slot].expect("only its own commands");
        if result.is_ok() && asked.command == Command::Discard && left > 0 {
            self.start(slot);
            return Ok(());
        }
        self.work[slot] = None;
        if self.host.refuses_fua() && !std::mem::replace(&mut self.has_reported_fua, true) {
            warn("the disk refuses writes with FUA: each is sent without it and followed by a flush");
        }
        match result {
            Ok(_) => self.tally.done += 1,
            Err(failure) => {
                self.tally.failed += 1;
                let Asked { command, offset, bytes } = asked;
                warn(&format!("{command:?} of {bytes} bytes at {offset} failed: {failure}"));
            }
        }
        self.front.answer(slot, result.map(|_| ()).map_err(|failure| failure.errno()))
    }
}
