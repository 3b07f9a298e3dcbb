//! The queue that several threads share, with a simulated device.

use crate::device::{BLOCK, Device, Fault, identified};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use trueio_uas::host::Failure;
use trueio_uas::queue::{Disk, Done, Io, Operation, Queue};
use trueio_uas::serve::{Discard, Served};

fn queue(device: Device, change: impl FnOnce(&mut Served)) -> Queue<Device> {
    let (host, served) = identified(device, change);
    Queue::new(host, served, Box::new(()))
}

/// Runs one I/O and returns its result.
fn one(queue: &Queue<Device>, client: usize, operation: Operation, block: u64, buffer: &mut [u8]) -> i64 {
    let io = Io {
        slot: 0,
        operation,
        offset: block * BLOCK as u64,
        bytes: buffer.len() as u32,
        buffer: buffer.as_mut_ptr(),
    };
    let mut done = [Done::NONE];
    // SAFETY: the buffer outlives the wait for the I/O's end.
    unsafe { queue.submit(client, &[io]) };
    assert_eq!(queue.reap(client, 1, None, &mut done), 1);
    assert_eq!(done[0].slot, 0);
    done[0].result
}

/// Runs a case with streams and without.
fn both(case: impl Fn(Device)) {
    case(Device::new(true));
    case(Device::new(false));
}

#[test]
fn a_long_transfer_is_split_into_commands_that_the_disk_permits_and_is_whole() {
    both(|device| {
        let queue = queue(device, |served| served.request_bytes_max = 4 * BLOCK as u32);
        queue.permit_writes();
        let client = queue.join(4).expect("a descriptor");
        let before = queue.seen().counts.ended;
        let mut written: Vec<u8> = (0..32 * BLOCK).map(|at| (at / 7) as u8).collect();
        assert_eq!(one(&queue, client, Operation::Write, 8, &mut written), written.len() as i64);
        let mut read = vec![0; 32 * BLOCK];
        assert_eq!(one(&queue, client, Operation::Read, 8, &mut read), read.len() as i64);
        assert_eq!(read, written);
        let seen = queue.seen();
        assert_eq!(seen.moved.out_bytes, written.len() as u64);
        assert_eq!(seen.counts.ended, before + 16, "of at most four blocks each");
        queue.leave(client);
    });
}

#[test]
fn without_permission_nothing_that_writes_is_sent() {
    both(|device| {
        let queue = queue(device, |served| served.discard = Discard::Unmap(8));
        let client = queue.join(1).expect("a descriptor");
        let mut buffer = [1; BLOCK];
        assert_eq!(one(&queue, client, Operation::Write, 1, &mut buffer), -i64::from(libc::EROFS));
        assert_eq!(one(&queue, client, Operation::Trim, 1, &mut buffer), -i64::from(libc::EROFS));
        assert_eq!(one(&queue, client, Operation::Flush, 0, &mut []), 0);
        let before = queue.seen().counts.ended;
        queue.permit_writes();
        assert_eq!(one(&queue, client, Operation::Write, 1, &mut buffer), BLOCK as i64);
        assert_eq!(one(&queue, client, Operation::Flush, 0, &mut []), 0);
        assert_eq!(queue.seen().counts.ended, before + 2);
    });
}

#[test]
fn a_range_that_the_disk_does_not_have_is_refused_and_a_trim_runs_in_parts() {
    both(|device| {
        let queue = queue(device, |served| served.discard = Discard::Unmap(8));
        queue.permit_writes();
        let client = queue.join(1).expect("a descriptor");
        let mut buffer = [1; BLOCK];
        assert_eq!(one(&queue, client, Operation::Read, 64, &mut buffer), -i64::from(libc::EINVAL));
        assert_eq!(one(&queue, client, Operation::Read, 0, &mut buffer[..100]), -i64::from(libc::EINVAL));
        let before = queue.seen().counts.ended;
        assert_eq!(one(&queue, client, Operation::Trim, 0, &mut [0; 20 * BLOCK]), 20 * BLOCK as i64);
        assert_eq!(queue.seen().counts.ended, before + 3, "of at most 8 blocks each");
    });
}

#[test]
fn a_failed_part_fails_the_transfer_with_its_number_and_is_kept_with_its_sense() {
    both(|device| {
        let sense = vec![0xf0, 0, 3, 0, 0, 0, 9, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
        let device = device.with(0x28, Fault::Status(2, sense));
        let queue = queue(device, |served| served.request_bytes_max = 4 * BLOCK as u32);
        let client = queue.join(1).expect("a descriptor");
        assert_eq!(one(&queue, client, Operation::Read, 8, &mut [0; 64 * BLOCK][..32 * BLOCK]), -i64::from(libc::EIO));
        let seen = queue.seen();
        assert_eq!((seen.failed, seen.short), (1, 0));
        let last = seen.last.expect("a failure").to_string();
        assert_eq!(last, "an unrecovered read error at block 9 (medium error, 3/11/00)");
        // The slot is free, and the session goes on.
        assert_eq!(one(&queue, client, Operation::Read, 8, &mut [0; BLOCK]), BLOCK as i64);
    });
}

#[test]
fn an_unplugged_disk_ends_every_io_of_every_client() {
    both(|device| {
        let queue = queue(device.with(0x28, Fault::Hang).with(0x28, Fault::Unplug), |_| {});
        let clients = [queue.join(2).expect("a descriptor"), queue.join(2).expect("a descriptor")];
        let mut buffers = [[0u8; BLOCK]; 2];
        for (client, buffer) in clients.into_iter().zip(&mut buffers) {
            let io =
                Io { slot: 1, operation: Operation::Read, offset: 0, bytes: BLOCK as u32, buffer: buffer.as_mut_ptr() };
            // SAFETY: the buffers outlive the wait for the I/Os' ends.
            unsafe { queue.submit(client, &[io]) };
        }
        for client in clients {
            let mut done = [Done::NONE; 2];
            assert_eq!(queue.reap(client, 1, None, &mut done), 1);
            assert_eq!(done[0], Done { slot: 1, result: -i64::from(libc::ENODEV) });
            queue.leave(client);
        }
        assert_eq!(queue.seen().last, Some(Failure::Gone));
    });
}

/// Goal: each client gets its own I/Os, whichever thread reaps them, with more in flight than the session has slots.
/// Method: four threads read all blocks with eight I/Os each, fifteen slots for all; each buffer must hold its block.
#[test]
fn threads_share_the_slots_and_each_gets_its_own_completions() {
    both(|device| {
        let queue = Arc::new(queue(device, |_| {}));
        let ended = AtomicU32::new(0);
        let before = queue.seen().moved.in_bytes;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let client = queue.join(8).expect("a descriptor");
                    let mut buffers = [[0u8; BLOCK]; 8];
                    let mut blocks = [0; 8];
                    let mut free: Vec<u32> = (0..8).collect();
                    let (mut next, mut left) = (0, 64);
                    while left > 0 {
                        while let Some(slot) = free.pop().filter(|_| next < 64) {
                            let index = slot as usize;
                            blocks[index] = next;
                            let (offset, buffer) = (next * BLOCK as u64, buffers[index].as_mut_ptr());
                            next += 1;
                            let io = Io { slot, operation: Operation::Read, offset, bytes: BLOCK as u32, buffer };
                            // SAFETY: the buffers outlive the loop, which waits for all I/Os.
                            unsafe { queue.submit(client, &[io]) };
                        }
                        let mut done = [Done::NONE; 8];
                        let count = queue.reap(client, 1, None, &mut done);
                        for done in &done[..count] {
                            let index = done.slot as usize;
                            assert_eq!(done.result, BLOCK as i64);
                            assert_eq!(buffers[index], [blocks[index] as u8; BLOCK]);
                            free.push(done.slot);
                            left -= 1;
                            ended.fetch_add(1, Relaxed);
                        }
                    }
                    queue.leave(client);
                });
            }
        });
        assert_eq!(ended.load(Relaxed), 4 * 64);
        assert_eq!(queue.seen().moved.in_bytes - before, 4 * 64 * BLOCK as u64);
    });
}

#[test]
fn any_range_of_bytes_can_be_read() {
    both(|device| {
        let mut device = device;
        for (at, byte) in device.medium.iter_mut().enumerate() {
            *byte = (at % 251) as u8;
        }
        let queue = queue(device, |served| served.request_bytes_max = 4096);
        for (offset, length) in [(0usize, 1usize), (510, 4), (1, 511), (1000, 9000), (64 * BLOCK - 3, 3)] {
            let mut buffer = vec![0; length];
            queue.read_at(offset as u64, &mut buffer).expect("it is there");
            let expected: Vec<u8> = (offset..offset + length).map(|at| (at % 251) as u8).collect();
            assert_eq!(buffer, expected, "{offset}+{length}");
        }
    });
}
