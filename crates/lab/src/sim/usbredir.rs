//! Connects a simulated USB disk to QEMU's `usb-redir` device.
//!
//! This module is the side that has the device ("usb-host"), QEMU the side that uses it. Packets have a
//! header of type, length and id, little-endian; both sides begin by sending their capabilities.
//!
//! Source: the usbredir protocol 0.7, `docs/usb-redirection-protocol.md` of usbredir.
//!
//! Cannot do: isochronous and interrupt transfers, several interfaces, filters.

use super::descriptors::Speed;
use super::device::Device;
use super::pipes::{Ending, Transfer};
use super::{Control, Event, wait};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

/// Streams, device version, packet sizes in endpoint info, ids of 64 bits, bulk lengths of 32 bits.
const CAPABILITIES: u32 = 1 | 1 << 1 | 1 << 4 | IDS_64 | LENGTHS_32;
const IDS_64: u32 = 1 << 5;
const LENGTHS_32: u32 = 1 << 6;

const HELLO: u32 = 0;
const DEVICE_CONNECT: u32 = 1;
const DEVICE_DISCONNECT: u32 = 2;
const RESET: u32 = 3;
const INTERFACE_INFO: u32 = 4;
const ENDPOINT_INFO: u32 = 5;
const SET_CONFIGURATION: u32 = 6;
const GET_CONFIGURATION: u32 = 7;
const CONFIGURATION_STATUS: u32 = 8;
const SET_SETTING: u32 = 9;
const GET_SETTING: u32 = 10;
const SETTING_STATUS: u32 = 11;
const ALLOCATE_STREAMS: u32 = 18;
const FREE_STREAMS: u32 = 19;
const STREAMS_STATUS: u32 = 20;
const CANCEL: u32 = 21;
const CONTROL: u32 = 100;
const BULK: u32 = 101;

const SUCCESS: u8 = 0;
const CANCELLED: u8 = 1;
const STALL: u8 = 4;

/// What QEMU sends.
pub(super) struct Packet {
    kind: u32,
    id: u64,
    body: Vec<u8>,
}

/// The line to QEMU.
struct Line {
    stream: UnixStream,
    /// The capabilities of both sides.
    capabilities: u32,
    is_plugged: bool,
}

impl Line {
    fn send(&mut self, kind: u32, id: u64, body: &[u8]) -> io::Result<()> {
        let mut packet = kind.to_le_bytes().to_vec();
        packet.extend((body.len() as u32).to_le_bytes());
        if self.capabilities & IDS_64 != 0 && kind != HELLO {
            packet.extend(id.to_le_bytes());
        } else {
            packet.extend((id as u32).to_le_bytes());
        }
        packet.extend(body);
        self.stream.write_all(&packet)
    }

    fn hello(&mut self) -> io::Result<()> {
        let mut body = [0; 68];
        body[..10].copy_from_slice(b"trueio lab");
        body[64..].copy_from_slice(&CAPABILITIES.to_le_bytes());
        self.send(HELLO, 0, &body)
    }

    /// Sends the interface and the endpoints of the chosen setting: arrays of 32 entries, the upper half for IN
    /// endpoints.
    fn info(&mut self, device: &Device) -> io::Result<()> {
        let array = |value: u8| [&[value][..], &[0; 31]].concat();
        let protocol = if device.is_uas() { 0x62 } else { 0x50 };
        let interface = [1u32.to_le_bytes().to_vec(), array(0), array(8), array(6), array(protocol)].concat();
        self.send(INTERFACE_INFO, 0, &interface)?;
        // 255: no such endpoint; 0: control; 2: bulk.
        let (mut kinds, mut packets, mut streams) = ([255u8; 32], [0u16; 32], [0u32; 32]);
        (kinds[0], kinds[16]) = (0, 0);
        for endpoint in device.usb.endpoints(device.is_uas()) {
            let index = usize::from((endpoint & 0x80) >> 3 | endpoint & 15);
            kinds[index] = 2;
            packets[index] = device.usb.packet_bytes();
            streams[index] = device.usb.streams(device.is_uas(), *endpoint);
        }
        // Kinds, intervals, interfaces, packet sizes, streams.
        let mut body = [kinds.as_slice(), &[0; 32], &[0; 32]].concat();
        body.extend(packets.iter().flat_map(|bytes| bytes.to_le_bytes()));
        body.extend(streams.iter().flat_map(|count| count.to_le_bytes()));
        self.send(ENDPOINT_INFO, 0, &body)
    }

    fn plug(&mut self, device: &Device) -> io::Result<()> {
        self.info(device)?;
        let speed = if device.usb.speed == Speed::Super { 3 } else { 2 };
        let mut body = vec![speed, 0, 0, 0];
        for number in [device.usb.vendor_id, device.usb.product_id, device.usb.device_version] {
            body.extend(number.to_le_bytes());
        }
        self.is_plugged = true;
        self.send(DEVICE_CONNECT, 0, &body)
    }

    fn unplug(&mut self, device: &mut Device) -> io::Result<()> {
        device.reset();
        if std::mem::replace(&mut self.is_plugged, false) { self.send(DEVICE_DISCONNECT, 0, &[]) } else { Ok(()) }
    }

    fn answer(&mut self, transfer: &Transfer) -> io::Result<()> {
        let status = match transfer.ending {
            Ending::Done => SUCCESS,
            Ending::Cancelled => CANCELLED,
            Ending::Stalled => STALL,
        };
        let bytes = if transfer.endpoint & 0x80 != 0 { transfer.data.len() } else { transfer.taken_bytes };
        let mut body = vec![transfer.endpoint, status];
        body.extend((bytes as u16).to_le_bytes());
        body.extend(u32::from(transfer.stream).to_le_bytes());
        if self.capabilities & LENGTHS_32 != 0 {
            body.extend(((bytes >> 16) as u16).to_le_bytes());
        }
        body.extend(&transfer.data);
        self.send(BULK, transfer.id, &body)
    }

    fn packet(&mut self, device: &mut Device, kind: u32, id: u64, body: &[u8]) -> io::Result<()> {
        match (kind, body) {
            (HELLO, _) => {
                let theirs = capabilities_of(body);
                self.capabilities = theirs & CAPABILITIES;
                self.plug(device)
            }
            (RESET, _) => {
                device.reset_by_host();
                Ok(())
            }
            (SET_CONFIGURATION, [number, ..]) => {
                device.configure(*number);
                self.info(device)?;
                self.send(CONFIGURATION_STATUS, id, &[SUCCESS, *number])
            }
            (GET_CONFIGURATION, _) => self.send(CONFIGURATION_STATUS, id, &[SUCCESS, device.configuration()]),
            (SET_SETTING, [interface, setting, ..]) => {
                let status = if device.choose(*setting) { SUCCESS } else { STALL };
                self.info(device)?;
                self.send(SETTING_STATUS, id, &[status, *interface, device.setting()])
            }
            (GET_SETTING, [interface, ..]) => self.send(SETTING_STATUS, id, &[SUCCESS, *interface, device.setting()]),
            // The endpoints and how many; all are granted.
            (ALLOCATE_STREAMS, [asked @ .., _, _, _, _]) | (FREE_STREAMS, asked) if asked.len() >= 4 => {
                let count = if kind == ALLOCATE_STREAMS { &body[4..8] } else { &[0; 4] };
                self.send(STREAMS_STATUS, id, &[&body[..4], count, &[SUCCESS]].concat())
            }
            (CANCEL, _) => {
                device.cancel(id);
                Ok(())
            }
            (CONTROL, [endpoint, request, request_type, _, v0, v1, i0, i1, l0, l1, ..]) => {
                let is_in = endpoint & 0x80 != 0;
                let direction = if is_in { 0x80 } else { 0 };
                let setup = [request_type | direction, *request, *v0, *v1, *i0, *i1, *l0, *l1];
                let answer = device.control(setup);
                let status = if answer.is_some() { SUCCESS } else { STALL };
                let data = answer.filter(|_| is_in).unwrap_or_default();
                let length = if is_in { (data.len() as u16).to_le_bytes() } else { [*l0, *l1] };
                let mut head = body[..10].to_vec();
                head[3] = status;
                head[8..].copy_from_slice(&length);
                self.send(CONTROL, id, &[head, data].concat())
            }
            (BULK, [endpoint, _, l0, l1, s0, s1, _, _, rest @ ..]) => {
                let stream = u16::from_le_bytes([*s0, *s1]);
                let (high, data) = match rest {
                    [h0, h1, data @ ..] if self.capabilities & LENGTHS_32 != 0 => {
                        (u16::from_le_bytes([*h0, *h1]), data)
                    }
                    data => (0, data),
                };
                let length = usize::from(high) << 16 | usize::from(u16::from_le_bytes([*l0, *l1]));
                if endpoint & 0x80 != 0 {
                    device.want(id, *endpoint, stream, length);
                } else {
                    device.receive(id, *endpoint, stream, data.to_vec());
                }
                Ok(())
            }
            // Filters and other packets that do not concern a disk.
            _ => Ok(()),
        }
    }
}

fn capabilities_of(hello: &[u8]) -> u32 {
    hello.get(64..68).map_or(0, |bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Reads packets until QEMU is gone.
pub(super) fn listen(mut stream: UnixStream, events: &Sender<Event<Packet>>) {
    let mut has_long_ids = false;
    while let Ok((kind, id, body)) = read_packet(&mut stream, has_long_ids) {
        if kind == HELLO {
            has_long_ids = capabilities_of(&body) & IDS_64 != 0;
        }
        if events.send(Event::Asked(Packet { kind, id, body })).is_err() {
            return;
        }
    }
    // The other side of the channel may be gone, too.
    let _ = events.send(Event::End);
}

fn read_packet(stream: &mut UnixStream, has_long_ids: bool) -> io::Result<(u32, u64, Vec<u8>)> {
    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let mut id = [0; 8];
    stream.read_exact(if has_long_ids && kind != HELLO { &mut id } else { &mut id[..4] })?;
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body)?;
    Ok((kind, u64::from_le_bytes(id), body))
}

/// Serves the disk until QEMU is gone.
pub(super) fn serve(mut device: Device, stream: UnixStream, events: &Receiver<Event<Packet>>) -> io::Result<()> {
    let mut line = Line { stream, capabilities: 0, is_plugged: false };
    line.hello()?;
    loop {
        match wait(events, device.next()) {
            Some(Event::End) => return Ok(()),
            Some(Event::Asked(Packet { kind, id, body })) => line.packet(&mut device, kind, id, &body)?,
            Some(Event::Control(Control::Plug)) if line.is_plugged => {}
            Some(Event::Control(Control::Plug)) => line.plug(&device)?,
            Some(Event::Control(Control::Unplug { loses_power, done })) => {
                let lost = if loses_power { device.cut_power() } else { 0 };
                line.unplug(&mut device)?;
                // The receiver may be gone.
                let _ = done.send(lost);
            }
            // It is time for a command.
            None => {}
        }
        for transfer in device.run(Instant::now()) {
            line.answer(&transfer)?;
        }
    }
}
