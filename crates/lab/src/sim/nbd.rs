//! Exports a simulated medium to QEMU as a network block device, for use as an NVMe,
//! virtio or SCSI disk.
//!
//! A disconnect of the client counts as a power loss: data that was not flushed is lost, and the medium stays for the
//! next client.
//!
//! Source: the NBD protocol, `doc/proto.md` of nbd: fixed newstyle negotiation, simple replies.
//!
//! Cannot do: structured replies, several clients at once; a trim is accepted and does nothing.

use super::device::lock;
use super::medium::{Failure, Medium};
use super::timing::Timing;
use super::{Control, Event, wait};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const OPT_EXPORT_NAME: u32 = 1;
const OPT_ABORT: u32 = 2;
const OPT_INFO: u32 = 6;
const OPT_GO: u32 = 7;
const REP_ACK: u32 = 1;
const REP_INFO: u32 = 3;
const REP_ERR_UNSUPPORTED: u32 = 0x8000_0001;
/// Flags are sent; flush, FUA and trim are understood.
const EXPORT_FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const FLAG_FUA: u16 = 1;
const EIO: u32 = 5;
const EINVAL: u32 = 22;
/// The longest accepted request.
const LONGEST_BYTES: u32 = 64 << 20;

/// QEMU's requests.
pub(super) struct Request {
    flags: u16,
    kind: u16,
    cookie: [u8; 8],
    offset: u64,
    length: u32,
    data: Vec<u8>,
}

fn read<const N: usize>(from: &mut UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn reply_to_option(to: &mut UnixStream, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let mut bytes = REPLY_MAGIC.to_be_bytes().to_vec();
    for number in [option, kind, data.len() as u32] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(data);
    to.write_all(&bytes)
}

/// The reply to the client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Export {
    size_bytes: u64,
    block_bytes: u32,
}

impl Export {
    pub(super) fn of(medium: &Medium) -> Self {
        Self { size_bytes: medium.on_medium().len() as u64, block_bytes: medium.block_bytes() as u32 }
    }
}

/// Sends the client the export's properties; returns false if it requested only these.
fn negotiate(stream: &mut UnixStream, Export { size_bytes, block_bytes }: Export) -> io::Result<bool> {
    stream.write_all(b"NBDMAGIC")?;
    stream.write_all(&OPTION_MAGIC.to_be_bytes())?;
    // Fixed newstyle, no zeros after the export.
    stream.write_all(&3u16.to_be_bytes())?;
    read::<4>(stream)?;
    let export = [&size_bytes.to_be_bytes()[..], &EXPORT_FLAGS.to_be_bytes()].concat();
    loop {
        read::<8>(stream)?;
        let option = u32::from_be_bytes(read(stream)?);
        let length = u32::from_be_bytes(read(stream)?).min(LONGEST_BYTES);
        stream.read_exact(&mut vec![0; length as usize])?;
        match option {
            OPT_EXPORT_NAME => {
                stream.write_all(&export)?;
                return Ok(true);
            }
            OPT_ABORT => return Ok(false),
            OPT_INFO | OPT_GO => {
                reply_to_option(stream, option, REP_INFO, &[&[0, 0], &export[..]].concat())?;
                // Block sizes: least, preferred, most.
                let mut sizes = 3u16.to_be_bytes().to_vec();
                for bytes in [block_bytes, block_bytes.max(4096), 32 << 20] {
                    sizes.extend(bytes.to_be_bytes());
                }
                reply_to_option(stream, option, REP_INFO, &sizes)?;
                reply_to_option(stream, option, REP_ACK, &[])?;
                if option == OPT_GO {
                    return Ok(true);
                }
            }
            _ => reply_to_option(stream, option, REP_ERR_UNSUPPORTED, &[])?,
        }
    }
}

/// Negotiates, then reads requests until the client is gone.
pub(super) fn listen(mut stream: UnixStream, export: Export, events: &Sender<Event<Request>>) {
    if negotiate(&mut stream, export).is_ok_and(|is_used| is_used) {
        while let Ok(request) = read_request(&mut stream) {
            let is_last = request.kind == DISCONNECT;
            if is_last || events.send(Event::Asked(request)).is_err() {
                break;
            }
        }
    }
    // The other side of the channel may be gone, too.
    let _ = events.send(Event::End);
}

fn read_request(stream: &mut UnixStream) -> io::Result<Request> {
    read::<4>(stream)?;
    let flags = u16::from_be_bytes(read(stream)?);
    let kind = u16::from_be_bytes(read(stream)?);
    let cookie = read(stream)?;
    let offset = u64::from_be_bytes(read(stream)?);
    let length = u32::from_be_bytes(read(stream)?);
    if length > LONGEST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut data = vec![0; if kind == WRITE { length as usize } else { 0 }];
    stream.read_exact(&mut data)?;
    Ok(Request { flags, kind, cookie, offset, length, data })
}

/// Serves one client until it is gone, and then the power is gone too.
pub(super) fn serve(
    medium: &Arc<Mutex<Medium>>,
    mut stream: UnixStream,
    events: &Receiver<Event<Request>>,
) -> io::Result<()> {
    let mut timing = Timing::default();
    let mut requests: HashMap<u64, Request> = HashMap::new();
    let mut next_tag = 0;
    let result = loop {
        match wait(events, timing.next()) {
            Some(Event::End) => break Ok(()),
            Some(Event::Asked(request)) => {
                let medium = &mut lock(medium);
                if !medium.takes_and_hangs(requests.len() as u64 + 1) {
                    next_tag += 1;
                    let takes_time = matches!(request.kind, READ | WRITE);
                    let latency = if takes_time { medium.behaviour.latency } else { Duration::ZERO };
                    timing.take(next_tag, Instant::now(), latency, medium.behaviour.channels);
                    requests.insert(next_tag, request);
                }
            }
            // It cannot be unplugged, but its power can be cut.
            Some(Event::Control(Control::Plug)) => {}
            Some(Event::Control(Control::Unplug { loses_power, done })) => {
                let lost = if loses_power { lock(medium).cut_power() } else { 0 };
                // The receiver may be gone.
                let _ = done.send(lost);
            }
            // It is time for a request.
            None => {}
        }
        let mut answered = Ok(());
        while let Some(tag) = timing.done(Instant::now()) {
            if let Some(request) = requests.remove(&tag) {
                let answer = carry_out(&mut lock(medium), &request);
                let (error, data) = answer.map_or_else(|error| (error, Vec::new()), |data| (0, data));
                let head = [&SIMPLE_REPLY_MAGIC.to_be_bytes()[..], &error.to_be_bytes(), &request.cookie].concat();
                answered = answered.and(stream.write_all(&[head, data].concat()));
            }
        }
        if answered.is_err() {
            break answered;
        }
    };
    lock(medium).cut_power();
    result
}

/// Returns the data read, or an error number.
fn carry_out(medium: &mut Medium, request: &Request) -> Result<Vec<u8>, u32> {
    let block_bytes = medium.block_bytes() as u64;
    if !request.offset.is_multiple_of(block_bytes) || !u64::from(request.length).is_multiple_of(block_bytes) {
        return Err(EINVAL);
    }
    let (first, count) = (request.offset / block_bytes, u64::from(request.length) / block_bytes);
    let number = |failure| if failure == Failure::OutOfRange { EINVAL } else { EIO };
    match request.kind {
        READ => medium.read(first, count).map_err(number),
        WRITE => medium.write(first, &request.data, request.flags & FLAG_FUA != 0).map(|()| Vec::new()).map_err(number),
        FLUSH => {
            medium.flush();
            Ok(Vec::new())
        }
        TRIM => Ok(Vec::new()),
        _ => Err(EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::super::medium::Behaviour;
    use super::*;

    fn request(kind: u16, offset: u64, length: u32, data: &[u8]) -> Request {
        Request { flags: 0, kind, cookie: [0; 8], offset, length, data: data.to_vec() }
    }

    #[test]
    fn errors_of_the_medium_become_error_numbers() {
        let behaviour = Behaviour { unwritable: Some(0..512), ..Behaviour::default() };
        let medium = &mut Medium::new(512, 8, behaviour);
        assert_eq!(carry_out(medium, &request(WRITE, 0, 512, &[1; 512])), Err(EIO));
        assert_eq!(carry_out(medium, &request(WRITE, 512, 512, &[1; 512])), Ok(Vec::new()));
        assert_eq!(carry_out(medium, &request(READ, 512, 512, &[])), Ok(vec![1; 512]));
        assert_eq!(carry_out(medium, &request(READ, 4096, 512, &[])), Err(EINVAL));
        assert_eq!(carry_out(medium, &request(READ, 1, 512, &[])), Err(EINVAL));
        assert_eq!(carry_out(medium, &request(99, 0, 0, &[])), Err(EINVAL));
    }
}
