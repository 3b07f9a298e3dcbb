//! Messages as bytes: first the magic, once in each direction, then frames. A frame is a length (32 bits, most
//! significant byte first) followed by that number of bytes of JSON.
//!
//! The peer is not trusted: a length above the limit is refused before anything is read, and memory grows with the
//! received bytes, not with the announced length.
//!
//! The first four bytes of fio's own protocol are its version and a command, 16 bits each, least significant
//! byte first; both are small, so the second and the fourth byte are zero, which no byte of our magic is.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};

/// The first bytes that each side sends.
pub const MAGIC: [u8; 16] = *b"trueio-fio-wire\n";
/// Longest message to a server, in bytes: its jobs. A job file of 100,000 lines has about 2 MiB.
pub const TO_SERVER_BYTES_MAX: u32 = 4 << 20;
/// Longest message to a server that holds no jobs, in bytes.
pub const SHORT_BYTES_MAX: u32 = 64 << 10;
/// Longest token, in bytes.
pub const TOKEN_BYTES_MAX: u32 = 1024;
/// Longest message to a client, in bytes: a record of thousands of jobs has thousands of histograms.
pub const TO_CLIENT_BYTES_MAX: u32 = 1 << 30;
/// fio's commands have numbers below this.
const FIO_COMMANDS: u8 = 64;

/// An error that ends a connection.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The peer closed the connection, possibly within a message.
    #[error("the connection was closed")]
    Closed,
    /// The peer sent nothing in time.
    #[error("no message arrived in time")]
    Late,
    /// The peer is fio itself.
    #[error("it is fio itself (protocol {version}), whose protocol is not supported")]
    Fio {
        /// The protocol version that it sent.
        version: u16,
    },
    /// The peer is another program.
    #[error("it is not trueio")]
    Stranger,
    /// A frame that is too long.
    #[error("a message of {bytes} bytes was announced, and at most {limit} bytes are accepted")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The largest accepted length.
        limit: u32,
    },
    /// A frame that is not a message.
    #[error("a message cannot be read")]
    Malformed(#[source] serde_json::Error),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => WireError::Closed,
            ErrorKind::ConnectionAborted => WireError::Closed,
            ErrorKind::WouldBlock | ErrorKind::TimedOut => WireError::Late,
            _ => WireError::Io(error),
        }
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
        _ if first[..count] == MAGIC[..count] => Err(WireError::Closed),
        _ => Err(WireError::Stranger),
    }
}

/// Sends a message.
///
/// # Errors
/// An error of the connection, or a message longer than `limit`.
pub fn send(to: &mut impl Write, message: &impl Serialize, limit: u32) -> Result<(), WireError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).map_err(WireError::Malformed)?;
    send_frame(to, bytes, limit)
}

/// Sends bytes that are no message: a token.
///
/// # Errors
/// An error of the connection, or more bytes than `limit`.
pub fn send_bytes(to: &mut impl Write, bytes: &[u8], limit: u32) -> Result<(), WireError> {
    send_frame(to, [&[0; 4], bytes].concat(), limit)
}

/// Sends a frame, whose first four bytes become its length.
fn send_frame(to: &mut impl Write, mut bytes: Vec<u8>, limit: u32) -> Result<(), WireError> {
    let length = bytes.len() - 4;
    let Some(length) = u32::try_from(length).ok().filter(|length| *length <= limit) else {
        return Err(WireError::TooLong { bytes: length as u64, limit });
    };
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    to.write_all(&bytes)?;
    Ok(to.flush()?)
}

/// Receives a message.
///
/// # Errors
/// [`WireError::Closed`] at the end of the connection, also within a message; an invalid message; an error of the
/// connection.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read, limit: u32) -> Result<T, WireError> {
    serde_json::from_slice(&receive_bytes(from, limit)?).map_err(WireError::Malformed)
}

/// Receives the bytes of a frame, and interprets nothing but its length.
///
/// # Errors
/// As [`receive`].
pub fn receive_bytes(from: &mut impl Read, limit: u32) -> Result<Vec<u8>, WireError> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > limit {
        return Err(WireError::TooLong { bytes: u64::from(length), limit });
    }
    let mut bytes = Vec::new();
    let came = from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if came < length as usize {
        return Err(WireError::Closed);
    }
    Ok(bytes)
}
