//! Messages as bytes: a length (32 bits, most significant byte first) followed by that number of bytes of JSON.
//!
//! The peer is not trusted: a length above the limit is refused before anything is read, and memory grows with the
//! received bytes, not with the announced length. Ranks and fio's client and server use these frames.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};

/// Why a message could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The peer closed the connection, possibly within a message.
    #[error("the connection was closed")]
    Closed,
    /// The peer sent nothing in time.
    #[error("no message arrived in time")]
    Late,
    /// A frame that is too long.
    #[error("a message of {bytes} bytes was announced, and at most {limit} bytes are accepted")]
    TooLong {
        /// Length in its header, in bytes.
        bytes: u64,
        /// The largest accepted length.
        limit: u32,
    },
    /// A message whose value would take too much memory.
    #[error("a message would take at least {bytes} bytes of memory, and at most {limit} bytes are kept")]
    TooLarge {
        /// Memory that it needs, in bytes.
        bytes: u64,
        /// The largest accepted one.
        limit: u64,
    },
    /// A frame that is not a message.
    #[error("a message cannot be read")]
    Malformed(#[source] serde_json::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => FrameError::Closed,
            ErrorKind::ConnectionAborted => FrameError::Closed,
            ErrorKind::WouldBlock | ErrorKind::TimedOut => FrameError::Late,
            _ => FrameError::Io(error),
        }
    }
}

/// Returns a message as a frame.
///
/// # Errors
/// A message that is not JSON, or longer than `limit`.
pub fn encode(message: &impl Serialize, limit: u32) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).map_err(FrameError::Malformed)?;
    with_length(bytes, limit)
}

/// Sends a message.
///
/// # Errors
/// An error of the connection, or a message longer than `limit`.
pub fn send(to: &mut impl Write, message: &impl Serialize, limit: u32) -> Result<(), FrameError> {
    to.write_all(&encode(message, limit)?)?;
    Ok(to.flush()?)
}

/// Sends bytes that are no message: a token.
///
/// # Errors
/// An error of the connection, or more bytes than `limit`.
pub fn send_bytes(to: &mut impl Write, bytes: &[u8], limit: u32) -> Result<(), FrameError> {
    to.write_all(&with_length([&[0; 4], bytes].concat(), limit)?)?;
    Ok(to.flush()?)
}

/// Writes the length of a frame into its first four bytes.
fn with_length(mut bytes: Vec<u8>, limit: u32) -> Result<Vec<u8>, FrameError> {
    let length = bytes.len() - 4;
    let Some(length) = u32::try_from(length).ok().filter(|length| *length <= limit) else {
        return Err(FrameError::TooLong { bytes: length as u64, limit });
    };
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Receives a message.
///
/// # Errors
/// [`FrameError::Closed`] at the end of the connection, also within a message; an invalid message; an error of the
/// connection.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read, limit: u32) -> Result<T, FrameError> {
    parse(&receive_bytes(from, limit)?)
}

/// Receives a message whose value takes at most `memory` bytes.
///
/// # Errors
/// As [`receive`]; [`FrameError::TooLarge`] before the value is read.
pub fn receive_within<T: DeserializeOwned>(from: &mut impl Read, limit: u32, memory: u64) -> Result<T, FrameError> {
    let bytes = receive_bytes(from, limit)?;
    let weight = weight(&bytes, memory)?;
    if weight > memory {
        return Err(FrameError::TooLarge { bytes: weight, limit: memory });
    }
    parse(&bytes)
}

/// Reads the bytes of a frame as text: one more source of bytes would double the code that reads a record.
fn text(bytes: &[u8]) -> Result<&str, FrameError> {
    std::str::from_utf8(bytes).map_err(|error| FrameError::Malformed(serde::de::Error::custom(error)))
}

/// Reads the message of a frame.
///
/// # Errors
/// It is not a message.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
    serde_json::from_str(text(bytes)?).map_err(FrameError::Malformed)
}

/// Returns the memory that the message of a frame takes at most, in bytes; counted to soon after `most`.
///
/// # Errors
/// It is not JSON.
pub(crate) fn weight(bytes: &[u8], most: u64) -> Result<u64, FrameError> {
    crate::weight::of_json(text(bytes)?, most).map_err(FrameError::Malformed)
}

/// Receives the bytes of a frame, and interprets nothing but its length.
///
/// # Errors
/// As [`receive`].
pub fn receive_bytes(from: &mut impl Read, limit: u32) -> Result<Vec<u8>, FrameError> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > limit {
        return Err(FrameError::TooLong { bytes: u64::from(length), limit });
    }
    let mut bytes = Vec::new();
    let came = from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if came < length as usize {
        return Err(FrameError::Closed);
    }
    Ok(bytes)
}
