//! The server with a simulated disk: what the kernel's NBD client sends, and when it is answered.

mod device;

use device::{BLOCK, Device, Fault, identified};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use trueio_uas::serve::{Discard, End, Served, Server};

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
        let mut server = Server::new(host, served, theirs);
        let end = server.run(&mut || {}, &mut |_| {});
        let device = server.host().transport();
        (end, device.log.clone(), device.medium.clone())
    });
    Kernel { socket: ours, server }
}

impl Kernel {
    fn send(&mut self, kind: u32, handle: u8, offset: u64, bytes: u32, data: &[u8]) {
        let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
        request.extend(kind.to_be_bytes());
        request.extend([handle; 8]);
        request.extend(offset.to_be_bytes());
        request.extend(bytes.to_be_bytes());
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
    let sense = vec![0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x0c, 0, 0, 0, 0, 0];
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
    assert!(matches!(kernel.server.join().expect("the server ends").0, End::Socket(_)));
    let mut kernel = serve(Device::new(true), |_| {});
    kernel.socket.write_all(&[7; 28]).expect("the server reads");
    let (end, ..) = kernel.server.join().expect("the server ends");
    assert!(end.to_string().contains("sent no request"), "{end}");
}
