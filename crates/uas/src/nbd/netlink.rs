//! Messages to the kernel's NBD client by generic netlink: a device is connected and disconnected by one message each.
//!
//! Source: Linux `include/uapi/linux/nbd-netlink.h`, `netlink.h`, `genetlink.h`; netlink(7).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The name of the client's family.
const FAMILY: &[u8] = b"nbd\0";

// Of any family.
const REQUEST_AND_ACK: u16 = 1 | 4;
const ERROR: u16 = 2;
const HEADER_BYTES: usize = 16;
const COMMAND_BYTES: usize = 4;
const NESTED: u16 = 1 << 15;

// Of the family that names the others.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

// Of the client.
const CONNECT: u8 = 1;
const DISCONNECT: u8 = 2;
const INDEX: u16 = 1;
const SIZE_BYTES: u16 = 2;
const BLOCK_BYTES: u16 = 3;
const TIMEOUT: u16 = 4;
const SERVER_FLAGS: u16 = 5;
const SOCKETS: u16 = 7;
const SOCKET_ITEM: u16 = 1;
const SOCKET_DESCRIPTOR: u16 = 1;

/// How a device is connected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connection<'a> {
    /// The number of the device.
    pub(super) number: u32,
    /// Its length in bytes.
    pub(super) size_bytes: u64,
    /// Bytes of a block.
    pub(super) block_bytes: u32,
    /// The kernel ends the device when a request or a full socket waits longer.
    pub(super) timeout: Duration,
    /// What the server can do.
    pub(super) flags: u64,
    /// The kernel's end of the socket.
    pub(super) socket: BorrowedFd<'a>,
}

/// A connection to the kernel's NBD client.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
    family: u16,
}

impl Netlink {
    /// Opens it. `None`: there is no such family, as before Linux 4.12, and in a network namespace of its own.
    pub(super) fn open() -> io::Result<Option<Self>> {
        // SAFETY: plain call.
        let socket =
            unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_GENERIC) };
        if socket < 0 {
            let error = io::Error::last_os_error();
            let is_missing = matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT));
            return if is_missing { Ok(None) } else { Err(error) };
        }
        // SAFETY: it is new, and belongs to nothing else.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let mut attributes = Vec::new();
        push(&mut attributes, FAMILY_NAME, FAMILY);
        match exchange(&socket, CONTROL, GET_FAMILY, &attributes) {
            Ok(answer) => {
                let family = answer.and_then(|attributes| u16_of(&attributes, FAMILY_ID));
                let family = family.ok_or_else(|| io::Error::other("netlink named no number of the family nbd"))?;
                Ok(Some(Self { socket, family }))
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Connects a device that nothing has open: it exists with its size when this returns.
    ///
    /// # Errors
    /// The kernel's; EBUSY: the device is connected or open.
    pub(super) fn connect(&self, connection: &Connection) -> io::Result<()> {
        exchange(&self.socket, self.family, CONNECT, &attributes_of(connection)).map(drop)
    }

    /// Disconnects a device: all its requests fail. One that is not connected is no error. Waits while the server's end of the
    /// socket is open and full, and no other user of generic netlink is served then.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn disconnect(&self, number: u32) -> io::Result<()> {
        let mut attributes = Vec::new();
        push(&mut attributes, INDEX, &number.to_ne_bytes());
        exchange(&self.socket, self.family, DISCONNECT, &attributes).map(drop)
    }
}

fn attributes_of(connection: &Connection) -> Vec<u8> {
    let Connection { number, size_bytes, block_bytes, timeout, flags, socket } = *connection;
    let (mut item, mut sockets, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
    push(&mut item, SOCKET_DESCRIPTOR, &socket.as_raw_fd().to_ne_bytes());
    push(&mut sockets, SOCKET_ITEM | NESTED, &item);
    push(&mut attributes, INDEX, &number.to_ne_bytes());
    push(&mut attributes, SIZE_BYTES, &size_bytes.to_ne_bytes());
    push(&mut attributes, BLOCK_BYTES, &u64::from(block_bytes).to_ne_bytes());
    push(&mut attributes, TIMEOUT, &timeout.as_secs().to_ne_bytes());
    push(&mut attributes, SERVER_FLAGS, &flags.to_ne_bytes());
    push(&mut attributes, SOCKETS | NESTED, &sockets);
    attributes
}

/// Appends an attribute: length and kind, the value, and zeros up to a multiple of four bytes.
fn push(attributes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let bytes = u16::try_from(4 + value.len()).expect("short values");
    attributes.extend_from_slice(&bytes.to_ne_bytes());
    attributes.extend_from_slice(&kind.to_ne_bytes());
    attributes.extend_from_slice(value);
    attributes.resize(attributes.len().next_multiple_of(4), 0);
}

/// Returns the value of an attribute of two bytes.
fn u16_of(mut attributes: &[u8], wanted: u16) -> Option<u16> {
    while attributes.len() >= 4 {
        let (bytes, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        if kind & !NESTED == wanted && bytes == 6 {
            return u16_at(attributes, 4);
        }
        attributes = attributes.get(bytes.max(4).next_multiple_of(4)..)?;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A message: its header, the command, and the attributes.
fn message(family: u16, command: u8, attributes: &[u8]) -> Vec<u8> {
    let bytes = u32::try_from(HEADER_BYTES + COMMAND_BYTES + attributes.len()).expect("a short message");
    let mut message = Vec::with_capacity(bytes as usize);
    message.extend_from_slice(&bytes.to_ne_bytes());
    message.extend_from_slice(&family.to_ne_bytes());
    message.extend_from_slice(&REQUEST_AND_ACK.to_ne_bytes());
    // One message at a time needs no number, and the kernel knows the socket.
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&[command, 1, 0, 0]);
    message.extend_from_slice(attributes);
    message
}

/// What a datagram of the kernel holds.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The attributes of an answer; the acknowledgement follows.
    Attributes(Vec<u8>),
    /// The end: the result of the command, with attributes that came before it in the same datagram.
    Ended(i32, Option<Vec<u8>>),
}

/// Reads a datagram; `None`: it is none of netlink.
fn parse(mut datagram: &[u8]) -> Option<Answer> {
    let mut attributes = None;
    while !datagram.is_empty() {
        let bytes = u32_at(datagram, 0)? as usize;
        let message = datagram.get(..bytes)?;
        if u16_at(message, 4)? == ERROR {
            return Some(Answer::Ended(u32_at(message, HEADER_BYTES)?.cast_signed(), attributes));
        }
        attributes = Some(message.get(HEADER_BYTES + COMMAND_BYTES..)?.to_vec());
        datagram = datagram.get(bytes.next_multiple_of(4)..).unwrap_or(&[]);
    }
    attributes.map(Answer::Attributes)
}

/// Sends a command and waits for its end; returns the attributes of its answer, if there was one.
fn exchange(socket: &OwnedFd, family: u16, command: u8, attributes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let message = message(family, command, attributes);
    // SAFETY: the bytes live while the call runs. A socket without an address talks to the kernel.
    let sent = unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut buffer, mut answer) = ([0; 8192], None);
    loop {
        // SAFETY: as above; the call writes into the buffer only.
        let received = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let Ok(received) = usize::try_from(received) else {
            match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => continue,
                error => return Err(error),
            }
        };
        match parse(&buffer[..received]) {
            Some(Answer::Attributes(attributes)) => answer = Some(attributes),
            Some(Answer::Ended(0, attributes)) => return Ok(answer.or(attributes)),
            Some(Answer::Ended(result, _)) => return Err(io::Error::from_raw_os_error(-result)),
            None => return Err(io::Error::new(io::ErrorKind::InvalidData, "netlink sent no message")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_connection_is_one_message_with_all_that_the_kernel_needs() {
        let file = std::fs::File::open("/dev/null").expect("it is there");
        let connection = Connection {
            number: 3,
            size_bytes: 1 << 42,
            block_bytes: 4096,
            timeout: Duration::from_secs(600),
            flags: 0x2d,
            socket: file.as_fd(),
        };
        let descriptor = file.as_raw_fd().to_ne_bytes();
        let mut expected = vec![8, 0, 1, 0, 3, 0, 0, 0];
        for (kind, value) in [(2, 1u64 << 42), (3, 4096), (4, 600), (5, 0x2d)] {
            expected.extend_from_slice(&[12, 0, kind, 0]);
            expected.extend_from_slice(&value.to_le_bytes());
        }
        expected.extend_from_slice(&[16, 0, 7, 0x80, 12, 0, 1, 0x80, 8, 0, 1, 0]);
        expected.extend_from_slice(&descriptor);
        if cfg!(target_endian = "little") {
            assert_eq!(attributes_of(&connection), expected);
            let message = message(0x1c, CONNECT, &expected);
            assert_eq!(message[..8], [92, 0, 0, 0, 0x1c, 0, 5, 0]);
            assert_eq!((&message[16..20], message.len()), (&[1, 1, 0, 0][..], 92));
        }
    }

    #[test]
    fn answers_are_read_and_everything_else_is_an_error() {
        let mut attributes = Vec::new();
        push(&mut attributes, FAMILY_NAME, FAMILY);
        push(&mut attributes, FAMILY_ID, &31u16.to_ne_bytes());
        assert_eq!(u16_of(&attributes, FAMILY_ID), Some(31));
        assert_eq!(u16_of(&attributes[..9], FAMILY_ID), None);
        assert_eq!(u16_of(&[0; 12], FAMILY_ID), None, "attributes without a length end");
        let answer = message(CONTROL, 1, &attributes);
        assert_eq!(parse(&answer), Some(Answer::Attributes(attributes.clone())));
        let mut ended = message(ERROR, 0, &[]);
        ended.truncate(HEADER_BYTES);
        ended.extend_from_slice(&(-libc::EBUSY).to_ne_bytes());
        assert_eq!(parse(&ended), Some(Answer::Ended(-libc::EBUSY, None)));
        let both = [answer, ended].concat();
        assert_eq!(parse(&both), Some(Answer::Ended(-libc::EBUSY, Some(attributes))));
        for bytes in [&both[..10], &[][..], &[0; 16][..]] {
            assert_eq!(parse(bytes), None);
        }
    }

    /// Goal: what this kernel answers is understood, with and without the client: a device that no client has is disconnected
    /// without an error, or there is no such family.
    #[test]
    fn the_kernel_is_asked_for_the_family() {
        let found = Netlink::open().expect("netlink answers");
        let is_loaded = std::path::Path::new("/sys/module/nbd").exists();
        assert!(found.is_none() || is_loaded, "{found:?}");
    }
}
