//! Messages as bytes: first the magic, once in each direction, then frames ([`trueio_cluster::frame`]).
//!
//! The first four bytes of fio's own protocol are its version and a command, 16 bits each, least significant
//! byte first; both are small, so the second and the fourth byte are zero, which no byte of our magic is.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};
use trueio_cluster::frame;
pub use trueio_cluster::frame::FrameError;
pub use trueio_cluster::token::TOKEN_BYTES_MAX;

/// The first bytes that each side sends.
pub const MAGIC: [u8; 16] = *b"trueio-fio-wire\n";
/// Longest message to a server, in bytes: its jobs. A job file of 100,000 lines has about 2 MiB.
pub const TO_SERVER_BYTES_MAX: u32 = 4 << 20;
/// Longest message to a server that holds no jobs, in bytes.
pub const SHORT_BYTES_MAX: u32 = 64 << 10;
/// Longest message to a client, in bytes: a record of thousands of jobs has thousands of histograms. A client takes less, by its jobs.
pub const TO_CLIENT_BYTES_MAX: u32 = 256 << 20;
/// Longest plan for a client, in bytes: a line for each job.
pub const PLAN_BYTES_MAX: u32 = 4 << 20;
/// fio's commands have numbers below this.
const FIO_COMMANDS: u8 = 64;

/// An error that ends a connection.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A frame could not be sent or received.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer is fio itself.
    #[error("it is fio itself (protocol {version}), whose protocol is not supported")]
    Fio {
        /// The protocol version that it sent.
        version: u16,
    },
    /// The peer is another program.
    #[error("it is not trueio")]
    Stranger,
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        WireError::Frame(error.into())
    }
}

/// Sends the magic.
///
/// # Errors
/// An error of the connection.
pub fn write_magic(to: &mut impl Write) -> Result<(), WireError> {
    to.write_all(&MAGIC)?;
    Ok(to.flush()?)
}

/// Receives the magic.
///
/// # Errors
/// [`WireError::Fio`] and [`WireError::Stranger`] if it is something else.
pub fn read_magic(from: &mut impl Read) -> Result<(), WireError> {
    let mut first = [0; MAGIC.len()];
    let mut count = 0;
    while count < first.len() {
        match from.read(&mut first[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        // A peer that is not trueio may wait for an answer instead of sending more.
        if first[..count] != MAGIC[..count] && count >= 4 {
            break;
        }
    }
    match first[..count] {
        _ if first == MAGIC => Ok(()),
        [low, 0, command, 0, ..] if low > 0 && command < FIO_COMMANDS => {
            Err(WireError::Fio { version: u16::from(low) })
        }
        _ if first[..count] == MAGIC[..count] => Err(FrameError::Closed.into()),
        _ => Err(WireError::Stranger),
    }
}

/// Sends a message.
///
/// # Errors
/// An error of the connection, or a message longer than `limit`.
pub fn send(to: &mut impl Write, message: &impl Serialize, limit: u32) -> Result<(), WireError> {
    Ok(frame::send(to, message, limit)?)
}

/// Sends bytes that are no message: a token.
///
/// # Errors
/// An error of the connection, or more bytes than `limit`.
pub fn send_bytes(to: &mut impl Write, bytes: &[u8], limit: u32) -> Result<(), WireError> {
    Ok(frame::send_bytes(to, bytes, limit)?)
}

/// Receives a message.
///
/// # Errors
/// The end of the connection, also within a message; an invalid message; an error of the connection.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read, limit: u32) -> Result<T, WireError> {
    Ok(frame::receive(from, limit)?)
}

/// Receives a message whose value takes at most `memory` bytes.
///
/// # Errors
/// As [`receive`], and a message that would take more, before it is read.
pub fn receive_within<T: DeserializeOwned>(from: &mut impl Read, limit: u32, memory: u64) -> Result<T, WireError> {
    Ok(frame::receive_within(from, limit, memory)?)
}

/// Receives the bytes of a frame, and interprets nothing but its length.
///
/// # Errors
/// As [`receive`].
pub fn receive_bytes(from: &mut impl Read, limit: u32) -> Result<Vec<u8>, WireError> {
    Ok(frame::receive_bytes(from, limit)?)
}
