//! Messages as bytes: first the magic, once in each direction, then frames. A frame is a length (32 bits, most
//! significant byte first) and so many bytes of JSON.
//!
//! The other side may be anybody: a length beyond the limit is refused before anything is read, and memory
//! grows with what has come, not with what was announced.
//!
//! The first four bytes of fio's own protocol are its version and a command, 16 bits each, least significant
//! byte first; both are small, so the second and the fourth byte are zero, which no byte of our magic is.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};

/// What each side says first.
pub const MAGIC: [u8; 16] = *b"trueio-fio-wire\n";
/// Longest message to a server, in bytes: job files are no longer than 16 MiB each.
pub const TO_SERVER_BYTES_MAX: u32 = 64 << 20;
/// Longest message to a client, in bytes: a record of thousands of jobs has thousands of histograms.
pub const TO_CLIENT_BYTES_MAX: u32 = 1 << 30;
/// fio's commands have numbers below this.
const FIO_COMMANDS: u8 = 64;

/// What ends a conversation.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The other side went away, perhaps in the middle of a message.
    #[error("the connection was closed")]
    Closed,
    /// It did not say a word in time.
    #[error("nothing came in time")]
    Late,
    /// A fio of its own.
    #[error("it is fio itself (protocol {version}), whose protocol is not spoken here")]
    Fio {
        /// The version that it sent.
        version: u16,
    },
    /// Something else.
    #[error("it is no trueio")]
    Stranger,
    /// A frame that is too long.
    #[error("a message of {bytes} bytes was announced, and {limit} are the most")]
    TooLong {
        /// How long it is.
        bytes: u64,
        /// How long it may be.
        limit: u32,
    },
    /// A frame that is no message.
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

/// Says the magic.
///
/// # Errors
/// The connection's.
pub fn write_magic(to: &mut impl Write) -> Result<(), WireError> {
    to.write_all(&MAGIC)?;
    Ok(to.flush()?)
}

/// Hears the magic.
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
        // Who is no trueio may wait for an answer instead of sending more.
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
/// The connection's, or a message longer than `limit`.
pub fn send(to: &mut impl Write, message: &impl Serialize, limit: u32) -> Result<(), WireError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).map_err(WireError::Malformed)?;
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
/// [`WireError::Closed`] if there is none any more, or only a part of one; what is no message; the connection's.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read, limit: u32) -> Result<T, WireError> {
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
    serde_json::from_slice(&bytes).map_err(WireError::Malformed)
}
