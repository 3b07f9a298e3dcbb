//! The server allocates nothing between the first request and the last: an allocation may wait for the disk that it serves.
//!
//! This test binary uses an allocator that counts the calls of the thread that asks for it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use trueio_uas::host::{Ended, Host, Transport};
use trueio_uas::request::{Pipe, Transfer, TransferError};
use trueio_uas::serve::socket::Socket;
use trueio_uas::serve::{Discard, End, Served, Server};
use trueio_uas::session::Limits;

/// The system's allocator, counted.
struct Counting;

thread_local! {
    /// The calls of this thread.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call is passed unchanged to the system's allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DEPTH: u16 = 15;
const BLOCK: u64 = 512;
const BLOCKS: u64 = 4096;
const REQUEST_BYTES: u32 = 4096;

/// A disk with streams that answers each command at once, in fixed memory.
struct Quick {
    now_ns: u64,
    /// For each slot the transfers on its stream: the status, and the data with its length.
    statuses: [*mut u8; DEPTH as usize + 1],
    data: [Option<(Pipe, u32)>; DEPTH as usize + 1],
    ended: [Option<Ended>; 64],
    first: usize,
    count: usize,
}

// SAFETY: the pointers belong to the host, which moves together with this.
unsafe impl Send for Quick {}

impl Quick {
    fn end(&mut self, pipe: Pipe, slot: u16, bytes: u32) {
        let at = (self.first + self.count) % self.ended.len();
        self.ended[at] = Some(Ended { pipe, slot, result: Ok(bytes) });
        self.count += 1;
    }
}

impl Transport for Quick {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    unsafe fn submit(&mut self, transfer: Transfer, buffer: *mut u8) -> Result<(), TransferError> {
        let Transfer { pipe, slot, bytes, .. } = transfer;
        let index = usize::from(slot);
        match pipe {
            Pipe::Status => self.statuses[index] = buffer,
            Pipe::DataIn | Pipe::DataOut => self.data[index] = Some((pipe, bytes)),
            Pipe::Command => {
                // SAFETY: a COMMAND unit is at least this long.
                let tag = unsafe { [*buffer.add(2), *buffer.add(3)] };
                let unit = [3, 0, tag[0], tag[1], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                // SAFETY: the buffer of a status has room for a SENSE unit.
                unsafe { self.statuses[index].copy_from(unit.as_ptr(), unit.len()) };
                self.end(Pipe::Command, slot, bytes);
                if let Some((pipe, bytes)) = self.data[index].take() {
                    self.end(pipe, slot, bytes);
                }
                self.end(Pipe::Status, slot, unit.len() as u32);
            }
        }
        Ok(())
    }

    fn cancel(&mut self, _: Pipe, _: u16) {
        unreachable!("nothing is cancelled");
    }

    fn reset(&mut self) -> Option<u16> {
        unreachable!("nothing fails");
    }

    fn reap(&mut self, _: u64) -> Result<Option<Ended>, TransferError> {
        self.now_ns += 1000;
        let ended = self.ended[self.first].take();
        if ended.is_some() {
            self.first = (self.first + 1) % self.ended.len();
            self.count -= 1;
        }
        Ok(ended)
    }
}

/// Serves `rounds` times each kind of request, many at once; returns how often the server's thread called the allocator, and the requests
/// that it answered.
fn calls_of(rounds: u64) -> (u64, u64) {
    let served = Served {
        lun: 0,
        block_bytes: BLOCK as u32,
        physical_bytes: BLOCK as u32,
        block_count: BLOCKS,
        request_bytes_max: REQUEST_BYTES,
        is_read_only: false,
        has_cache: true,
        has_fua: true,
        discard: Discard::Unmap(4),
        has_no_ata: false,
    };
    let (kernel, theirs) = UnixStream::pair().expect("a socket pair");
    let server = std::thread::spawn(move || {
        let disk = Quick {
            now_ns: 1,
            statuses: [std::ptr::null_mut(); DEPTH as usize + 1],
            data: [None; DEPTH as usize + 1],
            ended: [None; 64],
            first: 0,
            count: 0,
        };
        let host = Host::new(disk, DEPTH, true, Limits::default());
        let mut server = Server::new(host, served, Socket::new(theirs, DEPTH, REQUEST_BYTES));
        let before = CALLS.with(Cell::get);
        assert!(before > 0, "its memory was counted");
        let end = server.run(&mut || {}, &mut |sentence| panic!("{sentence}"));
        let calls = CALLS.with(Cell::get) - before;
        assert!(matches!(end, End::Disconnected), "{end}");
        (calls, server.tally().done)
    });
    // Reads, writes, writes with FUA, flushes, and discards in three parts.
    let kinds = [(0u32, 4096u32), (1, 4096), (1 | 1 << 16, 512), (3, 0), (4, 12 * 512)];
    let mut sender = kernel.try_clone().expect("a descriptor");
    let sending = std::thread::spawn(move || {
        for round in 0..rounds {
            for (kind, bytes) in kinds {
                let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
                request.extend(kind.to_be_bytes());
                request.extend(round.to_be_bytes());
                request.extend((round * 8 % (BLOCKS - 16) * BLOCK).to_be_bytes());
                request.extend(bytes.to_be_bytes());
                if kind & 0xffff == 1 {
                    request.resize(request.len() + bytes as usize, 7);
                }
                sender.write_all(&request).expect("the server reads");
            }
        }
    });
    // Each request has a reply, and each read its data.
    let mut answers = vec![0; rounds as usize * (kinds.len() * 16 + 4096)];
    (&kernel).read_exact(&mut answers).expect("the server answers");
    sending.join().expect("all were sent");
    let mut end = 0x2560_9513u32.to_be_bytes().to_vec();
    end.extend(2u32.to_be_bytes());
    end.resize(28, 0);
    (&kernel).write_all(&end).expect("the server reads");
    server.join().expect("it ends")
}

#[test]
fn a_server_allocates_nothing_while_it_serves() {
    for rounds in [1, 3000] {
        assert_eq!(calls_of(rounds), (0, rounds * 5));
    }
}
