//! The protocol between the host and the agent inside the machine.
//!
//! One request at a time, each answered. Numbers are little-endian, byte strings carry their length
//! in four bytes. The line between them is a virtio serial port, which keeps order and loses nothing.

use std::io::{self, Read, Write};
use std::time::Duration;

/// The name of the virtio serial port.
pub const PORT_NAME: &str = "trueio.lab";

/// The longest byte string, so that a broken line cannot ask for all memory.
const LONGEST: u32 = 1 << 30;

/// A request to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Lines for busybox's shell.
    pub script: String,
    /// What the shell reads from its standard input.
    pub stdin: Vec<u8>,
    /// After this time its process group is killed.
    pub limit: Duration,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The exit code; 128 and the signal's number if a signal ended it; [`Reply::LATE`] if its time was over.
    pub code: i32,
    /// What it wrote to standard output.
    pub out: Vec<u8>,
    /// What it wrote to standard error.
    pub err: Vec<u8>,
}

impl Reply {
    /// The code of a step that was killed because its time was over.
    pub const LATE: i32 = -1;
}

impl Request {
    /// Sends it.
    ///
    /// # Errors
    /// Those of the line.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&u32::try_from(self.limit.as_millis()).unwrap_or(u32::MAX).to_le_bytes());
        put(&mut bytes, self.script.as_bytes())?;
        put(&mut bytes, &self.stdin)?;
        to.write_all(&bytes)?;
        to.flush()
    }

    /// Receives one.
    ///
    /// # Errors
    /// Those of the line; `InvalidData` if it is not a request.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let limit = Duration::from_millis(number(from)?.into());
        let script = String::from_utf8(take(from)?).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        Ok(Self { limit, script, stdin: take(from)? })
    }
}

impl Reply {
    /// Sends it.
    ///
    /// # Errors
    /// Those of the line.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.code.to_le_bytes());
        put(&mut bytes, &self.out)?;
        put(&mut bytes, &self.err)?;
        to.write_all(&bytes)?;
        to.flush()
    }

    /// Receives one.
    ///
    /// # Errors
    /// Those of the line; `InvalidData` if it is not a reply.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let code = number(from)?.cast_signed();
        Ok(Self { code, out: take(from)?, err: take(from)? })
    }
}

fn put(bytes: &mut Vec<u8>, string: &[u8]) -> io::Result<()> {
    let length = u32::try_from(string.len()).ok().filter(|n| *n <= LONGEST);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "more than 1 GiB"))?;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(string);
    Ok(())
}

fn number(from: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn take(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = number(from)?;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a byte string of {length} bytes")));
    }
    let mut bytes = Vec::new();
    if from.take(length.into()).read_to_end(&mut bytes)? != length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_what_is_heard() {
        let request = Request { script: "exit 3".into(), stdin: vec![0, 255], limit: Duration::from_secs(9) };
        let reply = Reply { code: -1, out: b"out".to_vec(), err: Vec::new() };
        let mut line = Vec::new();
        request.write(&mut line).unwrap();
        reply.write(&mut line).unwrap();
        let mut line = &line[..];
        assert_eq!(Request::read(&mut line).unwrap(), request);
        assert_eq!(Reply::read(&mut line).unwrap(), reply);
        assert!(line.is_empty());
    }

    #[test]
    fn a_line_that_breaks_or_lies_is_an_error() {
        let mut line = Vec::new();
        Reply { code: 0, out: b"out".to_vec(), err: Vec::new() }.write(&mut line).unwrap();
        for length in 0..line.len() {
            assert!(Reply::read(&mut &line[..length]).is_err(), "{length} bytes");
        }
        line[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Reply::read(&mut &line[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
