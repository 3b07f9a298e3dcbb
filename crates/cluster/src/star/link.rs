//! One connection between a rank and rank 0: frames of JSON, and the raw bytes of clock pings.

use crate::Limit;
use crate::frame::{self, FrameError};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

/// Longest frame, in bytes: the record of one phase of one rank with its histograms, series and traced requests.
pub const FRAME_BYTES_MAX: u32 = 64 << 20;

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The other side closed it: its process ended.
    #[error("its connection ended")]
    Closed,
    /// Nothing arrived in time.
    #[error("it did not answer within {0} s")]
    Late(u64),
    /// A message that is not understood.
    #[error("it sent a message that cannot be read")]
    Malformed(#[source] FrameError),
    /// The connection failed.
    #[error("its connection failed")]
    Io(#[source] io::Error),
}

impl LinkError {
    fn of(error: FrameError, limit: Limit) -> Self {
        match error {
            FrameError::Closed => LinkError::Closed,
            FrameError::Late => LinkError::Late(limit.seconds()),
            FrameError::Io(error) => LinkError::Io(error),
            error => LinkError::Malformed(error),
        }
    }
}

/// A connection. The socket does not block; each operation waits at most for the limit.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    limit: Limit,
    /// Bytes of messages, without clock pings.
    traffic: Traffic,
}

/// What went over a connection in messages, without clock pings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages in both directions.
    pub message_count: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Bytes that were received.
    pub received_bytes: u64,
}

/// Reads and writes with a limit in total.
struct Waiting<'a> {
    stream: &'a TcpStream,
    until: crate::limit::Until,
    byte_count: u64,
}

impl Waiting<'_> {
    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        loop {
            let mut waiting = [PollFd::new(self.stream, flags)];
            match rustix::event::poll(&mut waiting, Some(&self.until.left())) {
                Ok(0) => return Err(ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Waiting<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&mut &*self.stream).read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::IN)?,
                result => return result.inspect(|count| self.byte_count += *count as u64),
            }
        }
    }
}

impl Write for Waiting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match (&mut &*self.stream).write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::OUT)?,
                result => return result.inspect(|count| self.byte_count += *count as u64),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Link {
    /// Takes over a connected stream.
    ///
    /// # Errors
    /// The stream failed.
    pub fn new(stream: TcpStream, limit: Limit) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        // A host that loses its power sends no end of file: probes of the kernel find that within a minute.
        rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
        let (idle, every) = (std::time::Duration::from_secs(30), std::time::Duration::from_secs(10));
        rustix::net::sockopt::set_tcp_keepidle(&stream, idle)?;
        rustix::net::sockopt::set_tcp_keepintvl(&stream, every)?;
        rustix::net::sockopt::set_tcp_keepcnt(&stream, 3)?;
        Ok(Self { stream, limit, traffic: Traffic::default() })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The connection is over, or takes nothing for as long as the limit.
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), LinkError> {
        let frame = frame::encode(message, FRAME_BYTES_MAX).map_err(|error| LinkError::of(error, self.limit))?;
        self.send_encoded(&frame)
    }

    /// Sends a message that was encoded before.
    ///
    /// # Errors
    /// As [`Link::send`].
    pub fn send_encoded(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.write_raw(frame)?;
        self.traffic.message_count += 1;
        self.traffic.sent_bytes += frame.len() as u64;
        Ok(())
    }

    /// Receives a message; waits at most for `limit`.
    ///
    /// # Errors
    /// The connection is over, nothing arrived in time, or the message is not understood.
    pub fn receive<T: DeserializeOwned>(&mut self, limit: Limit) -> Result<T, LinkError> {
        let mut from = Waiting { stream: &self.stream, until: limit.begin(), byte_count: 0 };
        let received = frame::receive(&mut from, FRAME_BYTES_MAX).map_err(|error| LinkError::of(error, limit));
        self.traffic.message_count += 1;
        self.traffic.received_bytes += from.byte_count;
        received
    }

    /// Returns what went over the connection in messages.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Returns true if a message, or the end of the connection, can be read now.
    pub fn is_readable(&self) -> bool {
        let mut waiting = [PollFd::new(&self.stream, PollFlags::IN)];
        rustix::event::poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
    }

    /// Reads exactly these bytes without sleeping: a sleeping thread wakes later on one side than on the other, and that is
    /// the error of a clock comparison.
    pub(crate) fn spin_read(&mut self, bytes: &mut [u8]) -> Result<(), LinkError> {
        let until = self.limit.begin();
        let mut count = 0;
        let mut tries = 0u32;
        while count < bytes.len() {
            match self.stream.read(&mut bytes[count..]) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(more) => count += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    tries = tries.wrapping_add(1);
                    // On a host with fewer processors than ranks the other side may need this one.
                    if tries.is_multiple_of(256) {
                        std::thread::yield_now();
                        if until.is_over() {
                            return Err(LinkError::Late(self.limit.seconds()));
                        }
                    }
                    std::hint::spin_loop();
                }
                Err(error) => return Err(LinkError::of(error.into(), self.limit)),
            }
        }
        Ok(())
    }

    /// Writes these bytes at once.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        let mut to = Waiting { stream: &self.stream, until: self.limit.begin(), byte_count: 0 };
        to.write_all(bytes).map_err(|error| LinkError::of(error.into(), self.limit))
    }

    /// Returns the limit of each operation.
    pub(crate) fn limit(&self) -> Limit {
        self.limit
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
