//! The server with a simulated disk: what the kernel's NBD client sends, and when it is answered.

use crate::device::{BLOCK, Device, Fault, identified};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use trueio_uas::serve::socket::Socket;
use trueio_uas::serve::{Asked, Command, Discard, End, Front, Received, Served, Server};

const FUA: u32 = 1 << 16;

/// The kernel's side.
struct Kernel {
    socket: UnixStream,
    server: JoinHandle<(End, Vec<u16>, Vec<u8>)>,
}

fn serve(device: Device, change: impl FnOnce(&mut Served)) -> Kernel {
    let (host, served) = identified(device, change);
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let server = std::thread::spawn(move || {
        let front = Socket::new(theirs, host.depth(), served.request_bytes_max);
        let mut server = Server::new(host, served, front);
        let end = server.run(&mut || {}, &mut |_| {});
        let device = server.host().transport();
        (end, device.log.clone(), device.medium.clone())
    });
    Kernel { socket: ours, server }
}

/// The head of a request.
fn request(kind: u32, handle: u8, offset: u64, bytes: u32) -> Vec<u8> {
    let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
    request.extend(kind.to_be_bytes());
    request.extend([handle; 8]);
    request.extend(offset.to_be_bytes());
    request.extend(bytes.to_be_bytes());
    request
}

impl Kernel {
    fn send(&mut self, kind: u32, handle: u8, offset: u64, bytes: u32, data: &[u8]) {
        let mut request = request(kind, handle, offset, bytes);
        request.extend(data);
        self.socket.write_all(&request).expect("the server reads");
    }

    /// The error number of the next reply, and its handle.
    fn reply(&mut self) -> (u32, u8) {
        let mut head = [0; 16];
        self.socket.read_exact(&mut head).expect("a reply");
        assert_eq!(head[..4], 0x6744_6698u32.to_be_bytes());
        (u32::from_be_bytes([head[4], head[5], head[6], head[7]]), head[8])
    }

    fn end(mut self) -> (End, Vec<u16>, Vec<u8>) {
        self.send(2, 0, 0, 0, &[]);
        self.server.join().expect("the server ends")
    }
}

#[test]
fn requests_become_commands_and_the_end_is_flushed() {
    for has_streams in [true, false] {
        let mut kernel = serve(Device::new(has_streams), |_| {});
        kernel.send(1, 1, 4 * BLOCK as u64, BLOCK as u32, &[0xaa; BLOCK]);
        assert_eq!(kernel.reply(), (0, 1));
        kernel.send(1 | FUA, 2, 5 * BLOCK as u64, BLOCK as u32, &[0xbb; BLOCK]);
        assert_eq!(kernel.reply(), (0, 2));
        kernel.send(3, 3, 0, 0, &[]);
        assert_eq!(kernel.reply(), (0, 3));
        kernel.send(0, 4, 4 * BLOCK as u64, 2 * BLOCK as u32, &[]);
        assert_eq!(kernel.reply(), (0, 4));
        let mut data = [0; 2 * BLOCK];
        kernel.socket.read_exact(&mut data).expect("the data");
        assert_eq!((data[0], data[BLOCK]), (0xaa, 0xbb));
        let (end, log, medium) = kernel.end();
        assert!(matches!(end, End::Disconnected), "{end}");
        assert_eq!(log, [0x2a, 0x2a, 0x35, 0x28, 0x35]);
        assert_eq!(medium[5 * BLOCK], 0xbb);
    }
}

/// Goal: after a suspend an idle server resets the port before it sends a command: the kernel may have bound a driver of its own. A clock that was
/// only set is nothing.
#[test]
fn a_suspend_is_followed_by_a_reset_before_the_next_command() {
    let (mut clock, wake) = UnixStream::pair().expect("a socket pair");
    let (mut kernel, theirs) = UnixStream::pair().expect("a socket pair");
    let mut device = Device::new(true);
    device.wake = Some(wake);
    let server = std::thread::spawn(move || {
        let (host, served) = identified(device, |_| {});
        let front = Socket::new(theirs, host.depth(), served.request_bytes_max);
        let (mut server, mut said) = (Server::new(host, served, front), Vec::new());
        let end = server.run(&mut || {}, &mut |sentence| said.push(sentence.to_owned()));
        (end, server.host().counts().port_resets, server.host().transport().log_at_resets.clone(), said)
    });
    let mut read = |block: u64| {
        kernel.write_all(&request(0, block as u8, block * BLOCK as u64, BLOCK as u32)).expect("the server reads");
        let mut answer = [0; 16 + BLOCK];
        kernel.read_exact(&mut answer).expect("a reply");
        assert_eq!((answer[7], answer[16]), (0, block as u8));
    };
    read(1);
    clock.write_all(&40_000_000u64.to_ne_bytes()).expect("it is read");
    read(2);
    clock.write_all(&20_000_000_000u64.to_ne_bytes()).expect("it is read");
    read(3);
    kernel.write_all(&request(2, 0, 0, 0)).expect("the server reads");
    let (end, resets, log_at_resets, said) = server.join().expect("the server ends");
    assert!(matches!(end, End::Disconnected), "{end}");
    assert_eq!((resets, said.len()), (1, 1), "{said:?}");
    assert!(said[0].contains("the machine was suspended"), "{said:?}");
    assert_eq!(log_at_resets, [2], "the third read was not sent before");
}

/// A write is answered when its command has ended: the device holds it until after the read that follows.
#[test]
fn no_request_is_answered_before_its_command_has_ended() {
    let mut kernel = serve(Device::new(true).with(0x2a, Fault::Slow(1_000_000)), |_| {});
    kernel.send(1, 1, 0, BLOCK as u32, &[1; BLOCK]);
    kernel.send(0, 2, 7 * BLOCK as u64, BLOCK as u32, &[]);
    let (errno, first) = kernel.reply();
    assert_eq!(errno, 0);
    if first == 2 {
        kernel.socket.read_exact(&mut [0; BLOCK]).expect("the data");
        assert_eq!(kernel.reply(), (0, 1));
    } else {
        // The server may have been waiting for the slow command before the read arrived.
        assert_eq!(kernel.reply(), (0, 2));
        kernel.socket.read_exact(&mut [0; BLOCK]).expect("the data");
    }
    let (_, log, _) = kernel.end();
    assert_eq!(log, [0x2a, 0x28, 0x35]);
}

#[test]
fn an_error_of_the_disk_is_an_error_of_the_request_and_serving_goes_on() {
    let sense = vec![0x70, 0, 4, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x03, 0, 0, 0, 0, 0];
    let mut kernel = serve(Device::new(true).with(0x2a, Fault::Status(2, sense)), |_| {});
    kernel.send(1, 1, 0, BLOCK as u32, &[1; BLOCK]);
    assert_eq!(kernel.reply(), (5, 1), "EIO");
    kernel.send(1, 2, 0, BLOCK as u32, &[1; BLOCK]);
    assert_eq!(kernel.reply(), (0, 2));
    assert!(matches!(kernel.end().0, End::Disconnected));
}

#[test]
fn senseless_and_forbidden_requests_are_refused_and_never_reach_the_disk() {
    let mut kernel = serve(Device::new(true), |served| served.is_read_only = true);
    kernel.send(1, 1, 0, BLOCK as u32, &[1; BLOCK]);
    assert_eq!(kernel.reply(), (1, 1), "EPERM");
    for (handle, kind, offset, bytes) in [
        (2, 4, 0, 512),
        (3, 0, 64 * BLOCK as u64, 512),
        (4, 0, 100, 512),
        (5, 0, 0, 100),
        (6, 9, 0, 0),
        (7, 0, u64::MAX - 511, 512),
    ] {
        kernel.send(kind, handle, offset, bytes, &[]);
        let (errno, answered) = kernel.reply();
        assert!(errno == 22 || errno == 1, "{errno}");
        assert_eq!(answered, handle);
    }
    let (end, log, _) = kernel.end();
    assert!(matches!(end, End::Disconnected));
    assert_eq!(log, [0u16; 0], "not even a flush: nothing was written");
}

#[test]
fn a_write_longer_than_the_limit_is_refused_and_the_stream_stays_in_step() {
    let mut kernel = serve(Device::new(true), |served| served.request_bytes_max = 4096);
    kernel.send(1, 1, 0, 10_000 / 512 * 512, &vec![9; 10_000 / 512 * 512]);
    assert_eq!(kernel.reply(), (22, 1));
    kernel.send(0, 2, 0, BLOCK as u32, &[]);
    assert_eq!(kernel.reply(), (0, 2));
    kernel.socket.read_exact(&mut [0; BLOCK]).expect("the data");
    assert!(matches!(kernel.end().0, End::Disconnected));
}

#[test]
fn a_discard_is_split_by_the_limit_of_the_disk() {
    for (discard, operation) in [(Discard::Unmap(10), 0x42), (Discard::WriteSame(10), 0x93)] {
        let mut kernel = serve(Device::new(true), |served| served.discard = discard);
        kernel.send(4, 1, 0, 25 * BLOCK as u32, &[]);
        assert_eq!(kernel.reply(), (0, 1));
        let (_, log, _) = kernel.end();
        assert_eq!(log, [operation, operation, operation, 0x35]);
    }
}

#[test]
fn an_unplugged_disk_ends_the_server_and_what_was_pending_is_answered_with_an_error() {
    let mut kernel = serve(Device::new(true).with(0x2a, Fault::Unplug), |_| {});
    kernel.send(1, 1, 0, BLOCK as u32, &[1; BLOCK]);
    assert_eq!(kernel.reply(), (19, 1), "ENODEV");
    let (end, ..) = kernel.server.join().expect("the server ends");
    assert_eq!(end.to_string(), "the device was unplugged");
    assert_eq!(kernel.socket.read(&mut [0; 1]).expect("the end of the stream"), 0);
}

#[test]
fn a_kernel_that_vanishes_or_is_out_of_step_ends_the_server() {
    let kernel = serve(Device::new(true), |_| {});
    drop(kernel.socket);
    assert!(matches!(kernel.server.join().expect("the server ends").0, End::Kernel(_)));
    let mut kernel = serve(Device::new(true), |_| {});
    kernel.socket.write_all(&[7; 28]).expect("the server reads");
    let (end, ..) = kernel.server.join().expect("the server ends");
    assert!(end.to_string().contains("sent no request"), "{end}");
}

/// A front whose slots the kernel chooses, as ublk's tags, and that has several requests at once.
struct Tags {
    waiting: Vec<(usize, Asked)>,
    is_ended: bool,
    answers: Vec<(usize, Result<(), i32>)>,
    buffers: Vec<u8>,
    /// A descriptor that is always readable.
    readable: UnixStream,
    _other: UnixStream,
}

impl Tags {
    fn new(waiting: Vec<(usize, Asked)>) -> Self {
        let (readable, mut other) = UnixStream::pair().expect("a socket pair");
        other.write_all(&[0]).expect("there is room");
        Self { waiting, is_ended: false, answers: Vec::new(), buffers: vec![7; 16 * 4096], readable, _other: other }
    }
}

// SAFETY: the buffers are in a vector that does not grow, and each slot has a part of its own.
unsafe impl Front for Tags {
    fn begin(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.readable.as_fd())
    }

    fn receive(&mut self) -> std::io::Result<Received> {
        match self.waiting.pop() {
            Some((slot, asked)) => Ok(Received::Request(slot, asked)),
            None if self.answers.len() == 3 && !std::mem::replace(&mut self.is_ended, true) => Ok(Received::End),
            None => Ok(Received::Nothing),
        }
    }

    fn has_more(&mut self) -> bool {
        !self.waiting.is_empty()
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        &mut self.buffers[slot * 4096..(slot + 1) * 4096]
    }

    fn answer(&mut self, slot: usize, result: Result<(), i32>) -> std::io::Result<()> {
        self.answers.push((slot, result));
        Ok(())
    }

    fn send(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn three_requests() -> Vec<(usize, Asked)> {
    let of = |command, block: usize| Asked { command, offset: (block * BLOCK) as u64, bytes: BLOCK as u64 };
    vec![(3, of(Command::Read, 9)), (9, of(Command::Write { is_fua: false }, 5)), (14, of(Command::Read, 4))]
}

/// Goal: requests keep the slots that the kernel chose, and those that come together are under way together.
#[test]
fn a_front_chooses_its_slots_and_may_have_several_requests_at_once() {
    let (host, served) = identified(Device::new(true), |served| served.request_bytes_max = 4096);
    let mut server = Server::new(host, served, Tags::new(three_requests()));
    server.begin().expect("it begins");
    let end = server.run(&mut || {}, &mut |_| {});
    assert!(matches!(end, End::Disconnected), "{end}");
    assert_eq!((server.tally().done, server.tally().failed), (3, 0));
    let medium = &server.host().transport().medium;
    assert_eq!(medium[5 * BLOCK..6 * BLOCK], [7; BLOCK], "the data was in the buffer of slot 9");
}

/// Goal: when the disk is gone, every request that comes is answered with an error until the kernel's side ends.
#[test]
fn requests_for_a_disk_that_is_gone_are_refused_until_the_end() {
    let device = Device::new(true).with(0x2a, Fault::Unplug).with(0x28, Fault::Unplug);
    let (host, served) = identified(device, |served| served.request_bytes_max = 4096);
    let mut requests = three_requests();
    let late = requests.split_off(1);
    let mut server = Server::new(host, served, Tags::new(requests));
    assert!(matches!(server.run(&mut || {}, &mut |_| {}), End::Disk(_)));
    server.front_mut().waiting = late;
    server.refuse(&mut || {}).expect("the front works");
    let mut answers = server.front_mut().answers.clone();
    answers.sort_unstable();
    assert_eq!(answers, [3, 9, 14].map(|slot| (slot, Err(19))), "ENODEV");
    assert_eq!(server.tally().failed, 3);
}
