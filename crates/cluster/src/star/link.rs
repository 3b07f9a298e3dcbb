//! One connection between a rank and rank 0: frames of JSON, and the raw bytes of clock pings.

use crate::Limit;
use crate::frame::{self, FrameError};
use crate::limit::Until;
use crate::range::OutOfRange;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

/// Longest message of rank 0, in bytes.
pub(crate) const TO_RANK_BYTES_MAX: u32 = 64 << 20;
/// Longest time for which sent data may stay without an acknowledgement, in milliseconds: as long as the probes of an idle connection.
const UNACKNOWLEDGED_MS: u32 = 60_000;
/// Longest part of a message that is read at a time, in bytes.
const PART_BYTES: usize = 64 << 10;

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
    /// More than the budget of a step.
    #[error("it sent more than it may")]
    Beyond(#[source] OutOfRange),
    /// The connection failed.
    #[error("its connection failed")]
    Io(#[source] io::Error),
}

impl From<OutOfRange> for LinkError {
    fn from(error: OutOfRange) -> Self {
        LinkError::Beyond(error)
    }
}

impl LinkError {
    pub(crate) fn of(error: FrameError, limit: Limit) -> Self {
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
    /// The beginning of the next message.
    partial: Vec<u8>,
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
    until: Until,
}

/// Waits until a stream can be read or written.
fn wait(stream: &TcpStream, flags: PollFlags, until: Until) -> io::Result<()> {
    loop {
        let mut waiting = [PollFd::new(stream, flags)];
        match rustix::event::poll(&mut waiting, Some(&until.left())) {
            Ok(0) => return Err(ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Write for Waiting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match (&mut &*self.stream).write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(self.stream, PollFlags::OUT, self.until)?,
                result => return result,
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
        // Probes are not sent while data waits for an acknowledgement, so that has a limit of its own.
        rustix::net::sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED_MS)?;
        Ok(Self { stream, limit, traffic: Traffic::default(), partial: Vec::new() })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The connection is over, or takes nothing for as long as the limit.
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), LinkError> {
        // The receiver has a budget; here is no other limit than that of a frame.
        let frame = frame::encode(message, u32::MAX).map_err(|error| LinkError::of(error, self.limit))?;
        self.send_encoded(&frame, self.limit.begin())
    }

    /// Sends a message that was encoded before.
    ///
    /// # Errors
    /// As [`Link::send`].
    pub(crate) fn send_encoded(&mut self, frame: &[u8], until: Until) -> Result<(), LinkError> {
        self.write_raw(frame, until)?;
        self.traffic.message_count += 1;
        self.traffic.sent_bytes += frame.len() as u64;
        Ok(())
    }

    /// Receives a message; waits at most for `limit`.
    ///
    /// # Errors
    /// The connection is over, nothing arrived in time, or the message is not understood.
    pub fn receive<T: DeserializeOwned>(&mut self, limit: Limit) -> Result<T, LinkError> {
        let until = limit.begin();
        loop {
            if let Some(frame) = self.receive_now(TO_RANK_BYTES_MAX)? {
                return frame::parse(&frame).map_err(|error| LinkError::of(error, limit));
            }
            wait(&self.stream, PollFlags::IN, until).map_err(|error| LinkError::of(error.into(), limit))?;
        }
    }

    /// Returns the bytes of a message if all of them have arrived. Does not wait, so that a rank that sends a part of a message
    /// delays no other one; memory grows with what arrives, not with what is announced.
    ///
    /// # Errors
    /// The connection is over, or the message is longer than `bytes_max`.
    pub(crate) fn receive_now(&mut self, bytes_max: u32) -> Result<Option<Vec<u8>>, LinkError> {
        const LENGTH: usize = size_of::<u32>();
        loop {
            let whole = match self.partial.first_chunk::<LENGTH>() {
                None => LENGTH,
                Some(length) => {
                    let length = u32::from_be_bytes(*length);
                    if length > bytes_max {
                        let error = FrameError::TooLong { bytes: length.into(), limit: bytes_max };
                        return Err(LinkError::Malformed(error));
                    }
                    LENGTH + length as usize
                }
            };
            let begin = self.partial.len();
            if begin >= LENGTH && begin == whole {
                self.traffic.message_count += 1;
                self.traffic.received_bytes += whole as u64;
                let mut frame = std::mem::take(&mut self.partial);
                frame.drain(..LENGTH);
                return Ok(Some(frame));
            }
            self.partial.resize(whole.min(begin + PART_BYTES), 0);
            let read = self.stream.read(&mut self.partial[begin..]);
            self.partial.truncate(begin + read.as_ref().map_or(0, |count| *count));
            match read {
                Ok(0) => return Err(LinkError::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(LinkError::of(error.into(), self.limit)),
            }
        }
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
    pub(crate) fn spin_read(&mut self, bytes: &mut [u8], until: Until) -> Result<(), LinkError> {
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
    pub(crate) fn write_raw(&mut self, bytes: &[u8], until: Until) -> Result<(), LinkError> {
        let mut to = Waiting { stream: &self.stream, until };
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
