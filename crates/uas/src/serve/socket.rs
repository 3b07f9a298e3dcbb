//! The kernel's NBD client as the front: requests and answers go through a socket.
//!
//! A request that arrives while all slots are taken waits in the socket.
//!
//! Source: Linux `drivers/block/nbd.c`; the protocol's document is `doc/proto.md` of the NBD project.

use super::front::{Asked, Command, Front, Received};
use super::wire::{self, Message, REPLY_BYTES, REQUEST_BYTES};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The request in a slot.
#[derive(Debug, Clone, Copy)]
struct Held {
    handle: [u8; 8],
    asked: Asked,
}

/// The server's end of a socket whose other end the kernel has.
#[derive(Debug)]
pub struct Socket {
    socket: UnixStream,
    held: Box<[Option<Held>]>,
    /// For each slot the head of the reply, then the data.
    buffers: Box<[u8]>,
    /// Bytes of a slot in `buffers`.
    stride: usize,
}

impl Socket {
    /// With `slots` slots, and buffers of `request_bytes_max`. All memory is allocated here.
    pub fn new(socket: UnixStream, slots: u16, request_bytes_max: u32) -> Self {
        let slots = usize::from(slots);
        let stride = REPLY_BYTES + request_bytes_max as usize;
        // Touched, so that the first write to each page needs no memory later.
        let buffers = vec![1; slots * stride].into_boxed_slice();
        Self { socket, held: vec![None; slots].into_boxed_slice(), buffers, stride }
    }

    fn free_slot(&self) -> Option<usize> {
        self.held.iter().position(Option::is_none)
    }
}

// SAFETY: the buffers are in a box, and each slot has a part of its own, which is read or written for its request only.
unsafe impl Front for Socket {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.free_slot().map(|_| self.socket.as_fd())
    }

    fn receive(&mut self) -> io::Result<Received> {
        let Some(slot) = self.free_slot() else { return Ok(Received::Nothing) };
        let mut head = [0; REQUEST_BYTES];
        self.socket.read_exact(&mut head)?;
        let (handle, asked) = match wire::parse(&head) {
            Some(Message::Request(handle, asked)) => (handle, asked),
            Some(Message::Disconnect) => return Ok(Received::End),
            None => return Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel sent no request")),
        };
        if let Command::Write { .. } = asked.command {
            // The kernel sends the data with the request, whether it is accepted or not.
            let buffer = &mut self.buffers[slot * self.stride + REPLY_BYTES..(slot + 1) * self.stride];
            let mut left = asked.bytes as usize;
            while left > 0 {
                let piece = left.min(buffer.len());
                self.socket.read_exact(&mut buffer[..piece])?;
                left -= piece;
            }
        }
        self.held[slot] = Some(Held { handle, asked });
        Ok(Received::Request(slot, asked))
    }

    /// The socket is asked each time.
    fn has_more(&mut self) -> bool {
        false
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        &mut self.buffers[slot * self.stride + REPLY_BYTES..(slot + 1) * self.stride]
    }

    fn answer(&mut self, slot: usize, result: Result<(), i32>) -> io::Result<()> {
        let Held { handle, asked } = self.held[slot].take().expect("a request that was received");
        let data = if result.is_ok() && asked.command == Command::Read { asked.bytes as usize } else { 0 };
        let reply = &mut self.buffers[slot * self.stride..][..REPLY_BYTES + data];
        reply[..REPLY_BYTES].copy_from_slice(&wire::reply(handle, result.err().unwrap_or(0)));
        self.socket.write_all(reply)
    }

    fn send(&mut self) -> io::Result<()> {
        Ok(())
    }
}
