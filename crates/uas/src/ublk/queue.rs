//! The queue of a ublk device as the front of a server.
//!
//! Each slot is a tag of the kernel. A command for each tag waits in a ring until the kernel has a request; the answer to a
//! request waits for the next one with the same call. The kernel copies data into a slot's buffer before it reports a write, and
//! out of it when a read is answered.
//!
//! Source: Linux `Documentation/block/ublk.rst`, `drivers/block/ublk_drv.c`.

use super::abi::{self, IoCommand, IoDescriptor};
use crate::serve::{Asked, Command, Front, Received};
use io_uring::{IoUring, opcode, types};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The queue of a device.
pub struct Queue {
    ring: IoUring,
    descriptors: Descriptors,
    device: File,
    buffers: Box<[u8]>,
    /// Bytes of a buffer.
    stride: usize,
    /// For each tag the bytes of its request.
    bytes: Box<[u32]>,
    /// Tags for which the kernel will send no request.
    ended: usize,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("device", &self.device).field("tags", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Queue {
    /// Opens the queue of device `number`. All memory is allocated here.
    pub(super) fn open(number: u32, depth: u16, request_bytes_max: u32) -> io::Result<Self> {
        let device = OpenOptions::new().read(true).write(true).open(format!("/dev/ublkc{number}"))?;
        let descriptors = Descriptors::map(&device, depth)?;
        let ring = IoUring::new(u32::from(depth).next_power_of_two())?;
        let stride = request_bytes_max as usize;
        // Touched, so that the first write to each page needs no memory later.
        let buffers = vec![1; usize::from(depth) * stride].into_boxed_slice();
        let bytes = vec![0; usize::from(depth)].into_boxed_slice();
        Ok(Self { ring, descriptors, device, buffers, stride, bytes, ended: 0 })
    }

    /// Queues a command for a tag.
    fn push(&mut self, code: u32, tag: usize, result: i32) {
        let address = self.buffers[tag * self.stride..].as_mut_ptr() as u64;
        let command = IoCommand { queue: 0, tag: tag as u16, result, address };
        let entry = opcode::UringCmd16::new(types::Fd(self.device.as_raw_fd()), code).cmd(command.bytes());
        // SAFETY: the buffer lives until the kernel has ended the commands of all tags, or for ever (`drop`), and is used by
        // others only while the tag has a request that was not answered.
        let pushed = unsafe { self.ring.submission().push(&entry.build().user_data(tag as u64)) };
        pushed.expect("the ring has an entry for each tag");
    }

    fn submit(&mut self) -> io::Result<()> {
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.ended < self.bytes.len() {
            // The kernel cancels the commands some time after the ring was closed, and may copy data until then.
            Box::leak(std::mem::take(&mut self.buffers));
        }
    }
}

/// Returns what a request asks for.
fn asked(descriptor: &IoDescriptor) -> Asked {
    const SECTOR_BYTES: u64 = 512;
    let command = match descriptor.operation & 0xff {
        abi::READ_BLOCKS => Command::Read,
        abi::WRITE_BLOCKS => Command::Write { is_fua: descriptor.operation & abi::FUA != 0 },
        abi::FLUSH => Command::Flush,
        abi::DISCARD => Command::Discard,
        _ => Command::Unknown(descriptor.operation),
    };
    let (offset, bytes) =
        (descriptor.first_sector.saturating_mul(SECTOR_BYTES), u64::from(descriptor.sectors) * SECTOR_BYTES);
    Asked { command, offset, bytes }
}

// SAFETY: the buffers are in a box, and each tag has a part of its own. The kernel uses it only between the answer to a request
// and the next request of the tag.
unsafe impl Front for Queue {
    fn begin(&mut self) -> io::Result<()> {
        for tag in 0..self.bytes.len() {
            self.push(abi::FETCH, tag, 0);
        }
        self.submit()?;
        // A command that the kernel does not take ends at once; the others wait for a request.
        match self.ring.completion().next() {
            None => Ok(()),
            Some(ended) => Err(io::Error::from_raw_os_error(-ended.result().min(0))),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the ring's descriptor is open as long as the ring, which is borrowed.
        Some(unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) })
    }

    fn receive(&mut self) -> io::Result<Received> {
        while let Some(ended) = self.ring.completion().next() {
            let tag = ended.user_data() as usize;
            match ended.result() {
                0 => {
                    let asked = asked(&self.descriptors.read(tag));
                    self.bytes[tag] = asked.bytes.min(u64::from(u32::MAX)) as u32;
                    return Ok(Received::Request(tag, asked));
                }
                // The device is being stopped.
                result if result == -libc::ENODEV => {
                    self.ended += 1;
                    if self.ended == self.bytes.len() {
                        return Ok(Received::End);
                    }
                }
                result => return Err(io::Error::from_raw_os_error(-result.min(0))),
            }
        }
        Ok(Received::Nothing)
    }

    fn has_more(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        &mut self.buffers[slot * self.stride..(slot + 1) * self.stride]
    }

    fn answer(&mut self, slot: usize, result: Result<(), i32>) -> io::Result<()> {
        // The bytes of a read or write that were transferred; the others ignore it.
        let result = match result {
            Ok(()) => i32::try_from(self.bytes[slot]).unwrap_or(0),
            Err(errno) => -errno,
        };
        self.push(abi::COMMIT_AND_FETCH, slot, result);
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        self.submit()
    }
}

/// The requests, in memory that the kernel writes.
struct Descriptors {
    address: *const IoDescriptor,
    bytes: usize,
    count: usize,
}

// SAFETY: memory that the kernel shares with this process; nothing belongs to a thread.
unsafe impl Send for Descriptors {}

impl Descriptors {
    fn map(device: &File, depth: u16) -> io::Result<Self> {
        // SAFETY: plain call.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let bytes = (usize::from(depth) * size_of::<IoDescriptor>()).next_multiple_of(page);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let address = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, device.as_raw_fd(), 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { address: address.cast(), bytes, count: depth.into() })
    }

    fn read(&self, tag: usize) -> IoDescriptor {
        assert!(tag < self.count, "a tag of this queue");
        // SAFETY: inside of the mapping. The kernel writes it before it reports the request, and not again before the answer.
        unsafe { self.address.add(tag).read_volatile() }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, which nothing uses any more.
        unsafe { libc::munmap(self.address.cast_mut().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_the_kernel_are_requests() {
        let of =
            |operation, first_sector, sectors| asked(&IoDescriptor { operation, sectors, first_sector, address: 0 });
        assert_eq!(of(0, 8, 8), Asked { command: Command::Read, offset: 4096, bytes: 4096 });
        let write = |is_fua| Asked { command: Command::Write { is_fua }, offset: 512, bytes: 1024 };
        assert_eq!((of(1, 1, 2), of(1 | 1 << 13, 1, 2)), (write(false), write(true)));
        assert_eq!(of(2, 0, 0).command, Command::Flush);
        // Up to 2 TiB, more than a length of 32 bits.
        assert_eq!(of(3, 0, u32::MAX).bytes, u64::from(u32::MAX) * 512);
        assert_eq!(of(5, 0, 8).command, Command::Unknown(5), "write zeroes is not offered");
    }
}
