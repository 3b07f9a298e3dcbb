//! A device that answers as a list of bytes demands, and what must hold of a UAS session with it.

use trueio_uas::host::{Ended, Host, Pipe, TransferError, Transport};
use trueio_uas::request::{Request, Transfer};
use trueio_uas::session::Limits;

/// The device: each decision takes bytes from the front; without bytes it is unplugged.
struct Chaos<'a> {
    now_ns: u64,
    bytes: std::slice::Iter<'a, u8>,
    held: Vec<(Transfer, *mut u8)>,
    has_streams: bool,
}

impl Chaos<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.bytes.next().copied()
    }

    /// A unit: mostly one that fits the transfer.
    fn unit(&mut self, transfer: Transfer) -> Vec<u8> {
        let kind = self.byte().unwrap_or(3);
        let value = self.byte().unwrap_or(0);
        let tag = if self.has_streams { transfer.stream } else { u16::from(self.byte().unwrap_or(1) % 6) };
        let [high, low] = tag.to_be_bytes();
        match kind % 8 {
            0..=2 => vec![3, 0, high, low, 0, 0, 0, 0],
            3 => {
                let (asc, ascq) = (self.byte().unwrap_or(0x29), self.byte().unwrap_or(0));
                let mut unit = vec![3, 0, high, low, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 14];
                unit.extend([0x70 | value >> 7, 0, value & 15, 0, 0, 0, 0, 6, 0, 0, 0, 0, asc, ascq]);
                unit
            }
            4 => vec![3, 0, high, low, 0, 0, value],
            5 => vec![4, 0, high, low, 0, 0, 0, value % 12],
            6 => vec![6 + value % 2, 0, high, low],
            _ => (0..value % 20).map(|_| self.byte().unwrap_or(0)).collect(),
        }
    }
}

impl Transport for Chaos<'_> {
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    unsafe fn submit(&mut self, transfer: Transfer, buffer: *mut u8) -> Result<(), TransferError> {
        let is_same = |(held, _): &(Transfer, *mut u8)| {
            let is_data = |pipe| matches!(pipe, Pipe::DataIn | Pipe::DataOut);
            held.slot == transfer.slot && (held.pipe == transfer.pipe || (is_data(held.pipe) && is_data(transfer.pipe)))
        };
        assert!(!self.held.iter().any(is_same), "{transfer:?} is pending already");
        self.held.push((transfer, buffer));
        Ok(())
    }

    fn cancel(&mut self, pipe: Pipe, slot: u16) {
        // Reaped first.
        if let Some(at) = self.held.iter().position(|(held, _)| (held.pipe, held.slot) == (pipe, slot)) {
            let mut found = self.held.remove(at);
            found.0.bytes = u32::MAX;
            self.held.insert(0, found);
        }
    }

    fn reset(&mut self) -> Option<u16> {
        assert!(self.held.is_empty(), "transfers are pending at a reset");
        match self.byte()? % 8 {
            0 => None,
            1 => Some(2),
            _ => Some(if self.has_streams { 5 } else { 0 }),
        }
    }

    fn reap(&mut self, wait_ns: u64) -> Result<Option<Ended>, TransferError> {
        if let Some((transfer, _)) = self.held.first().filter(|(held, _)| held.bytes == u32::MAX) {
            let (pipe, slot) = (transfer.pipe, transfer.slot);
            self.held.remove(0);
            return Ok(Some(Ended { pipe, slot, result: Err(TransferError::Cancelled) }));
        }
        let (Some(choice), Some(how)) = (self.byte(), self.byte()) else {
            if self.held.is_empty() {
                return Err(TransferError::Gone);
            }
            let (Transfer { pipe, slot, .. }, _) = self.held.remove(0);
            return Ok(Some(Ended { pipe, slot, result: Err(TransferError::Gone) }));
        };
        if self.held.is_empty() || how == 0 {
            assert_ne!(wait_ns, u64::MAX, "it would wait for ever");
            self.now_ns += wait_ns;
            return Ok(None);
        }
        let (transfer, buffer) = self.held.remove(usize::from(choice) % self.held.len());
        let Transfer { pipe, slot, bytes, .. } = transfer;
        let result = match how {
            1 => Err(TransferError::Stall),
            2 => Err(TransferError::Bus(71)),
            _ if pipe == Pipe::Status => {
                let unit = self.unit(transfer);
                // SAFETY: the host's buffer is valid while the transfer is held, and longer than any unit here.
                unsafe { std::ptr::copy_nonoverlapping(unit.as_ptr(), buffer, unit.len()) };
                Ok(unit.len() as u32)
            }
            3 => Ok(bytes / 2),
            _ => Ok(bytes),
        };
        Ok(Some(Ended { pipe, slot, result }))
    }
}

/// Runs commands on such a device: every command ends exactly once, no transfer is submitted twice, nothing panics.
pub(crate) fn run(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let has_streams = first & 1 == 0;
    let device = Chaos { now_ns: 1, bytes: rest.iter(), held: Vec::new(), has_streams };
    let mut host = Host::new(device, 4, has_streams, Limits::default());
    let mut data = vec![[0u8; 512]; 16];
    let mut ended = [false; 16];
    let mut next = 0;
    let mut steps = 0;
    while ended.iter().any(|is| !is) {
        while next < 16 {
            let request = match next % 4 {
                0 | 1 => Request::read(0, next as u64, 1, 512),
                2 => Request::write(0, next as u64, 1, 512, false),
                _ => Request::flush(0),
            };
            // SAFETY: the buffers outlive the host's use of them: the loop ends when all outcomes were returned.
            if unsafe { host.start(request, next as u64, data[next].as_mut_ptr()) }.is_err() {
                break;
            }
            next += 1;
        }
        if let Some(outcome) = host.poll(Some(1 << 40)) {
            assert!(!std::mem::replace(&mut ended[outcome.user as usize], true), "it ended twice");
        }
        steps += 1;
        assert!(steps < 100_000, "it does not end");
    }
}
