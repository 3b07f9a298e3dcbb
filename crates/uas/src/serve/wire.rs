//! The protocol between the kernel's NBD client and a server.
//!
//! Source: Linux `include/uapi/linux/nbd.h`.

use super::front::{Asked, Command};

/// Bytes of a request without its data.
pub(crate) const REQUEST_BYTES: usize = 28;
/// Bytes of a reply without its data.
pub(crate) const REPLY_BYTES: usize = 16;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const FUA: u32 = 1 << 16;

/// What the kernel sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// A request and its handle.
    Request([u8; 8], Asked),
    /// The end.
    Disconnect,
}

/// Parses a request; `None`: it is none, so the stream is out of step.
pub(crate) fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Message> {
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if word(0) != REQUEST_MAGIC {
        return None;
    }
    let command = match word(4) & 0xffff {
        0 => Command::Read,
        1 => Command::Write { is_fua: word(4) & FUA != 0 },
        2 => return Some(Message::Disconnect),
        3 => Command::Flush,
        4 => Command::Discard,
        _ => Command::Unknown(word(4)),
    };
    let handle = bytes[8..16].try_into().ok()?;
    let offset = u64::from(word(16)) << 32 | u64::from(word(20));
    Some(Message::Request(handle, Asked { command, offset, bytes: word(24).into() }))
}

/// Returns a reply; `errno` 0 is success.
pub(crate) fn reply(handle: [u8; 8], errno: i32) -> [u8; REPLY_BYTES] {
    let mut bytes = [0; REPLY_BYTES];
    bytes[..4].copy_from_slice(&REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&(errno as u32).to_be_bytes());
    bytes[8..].copy_from_slice(&handle);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_the_kernel_are_parsed() {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&[0x25, 0x60, 0x95, 0x13]);
        bytes[5] = 1;
        bytes[7] = 1;
        bytes[8..16].copy_from_slice(b"handle 1");
        bytes[22] = 0x10;
        bytes[26] = 2;
        let mut asked = Asked { command: Command::Write { is_fua: true }, offset: 0x1000, bytes: 512 };
        assert_eq!(parse(&bytes), Some(Message::Request(*b"handle 1", asked)));
        bytes[7] = 9;
        asked.command = Command::Unknown(0x1_0009);
        assert_eq!(parse(&bytes), Some(Message::Request(*b"handle 1", asked)));
        bytes[7] = 2;
        assert_eq!(parse(&bytes), Some(Message::Disconnect));
        bytes[0] = 0;
        assert_eq!(parse(&bytes), None);
        assert_eq!(reply(*b"handle 1", 5)[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5]);
    }
}
