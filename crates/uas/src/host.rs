//! Runs a session on a transport: submits what it needs, reports what ended, and waits no longer than the next time limit.

use crate::iu::{COMMAND_BYTES, STATUS_BYTES};
use crate::request::{Action, Data, Outcome, Request, Transfer};
use crate::session::{Counts, Full, Limits, Session};
use std::fmt;
use std::os::fd::BorrowedFd;

pub use crate::request::{Failure, Pipe, TransferError};

/// A transfer that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its pipe.
    pub pipe: Pipe,
    /// The slot that the request had, from 0.
    pub slot: u16,
    /// Bytes that were transferred, or why not.
    pub result: Result<u32, TransferError>,
}

/// What a transport has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Bytes on the data pipes from the device.
    pub in_bytes: u64,
    /// Bytes on the data pipes to the device.
    pub out_bytes: u64,
    /// Transfers that were submitted, on all pipes.
    pub transfers: u64,
}

/// Carries transfers to a device.
pub trait Transport {
    /// A descriptor that is readable when a transfer has ended; `None`: it cannot be waited for.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// A clock that only goes forward, in nanoseconds.
    fn now_ns(&self) -> u64;

    /// Submits a transfer.
    ///
    /// # Errors
    /// The transport did not take it; it will not be reported as ended.
    ///
    /// # Safety
    /// `buffer` is valid for `transfer.bytes` bytes, to be written by the pipes from the device and read by the others, until
    /// the transfer was reaped or the transport was dropped.
    unsafe fn submit(&mut self, transfer: Transfer, buffer: *mut u8) -> Result<(), TransferError>;

    /// Cancels a pending transfer, which is reaped nevertheless. One that has ended already is no error.
    fn cancel(&mut self, pipe: Pipe, slot: u16);

    /// Resets the port and sets the interface up again; returns the number of streams, 0 without them; `None`: the device is
    /// gone. No transfer is pending.
    fn reset(&mut self) -> Option<u16>;

    /// Returns a transfer that has ended; waits for it for at most `wait_ns`. `Ok(None)`: none did in that time, or a signal
    /// came.
    ///
    /// # Errors
    /// The transport cannot be used any more.
    fn reap(&mut self, wait_ns: u64) -> Result<Option<Ended>, TransferError>;

    /// Returns for how long the machine was suspended so far, in nanoseconds, to a few milliseconds. A disk may lose power meanwhile.
    fn suspended_ns(&self) -> u64 {
        0
    }

    /// A descriptor that is readable after a suspend of the machine, and at times without one, until [`Self::clear_wake`]; `None`: a suspend is
    /// noticed when a command ends.
    fn wake_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Makes [`Self::wake_descriptor`] wait for the next suspend.
    fn clear_wake(&mut self) {}

    /// Returns what it has moved so far; zeros if it does not count.
    fn moved(&self) -> Moved {
        Moved::default()
    }
}

/// A session on a transport.
pub struct Host<T> {
    // Dropped first: the transport ends all transfers, then their buffers may go.
    transport: T,
    session: Session,
    commands: Box<[[u8; COMMAND_BYTES]]>,
    statuses: Box<[[u8; STATUS_BYTES]]>,
    data: Box<[*mut u8]>,
    own: Box<[u8]>,
    suspended_ns: u64,
}

// SAFETY: the pointers in `data` are addresses handed to the kernel; they are not read here, and their owner keeps them valid
// on whichever thread the host runs.
unsafe impl<T: Send> Send for Host<T> {}

impl<T: fmt::Debug> fmt::Debug for Host<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("transport", &self.transport).field("counts", &self.session.counts()).finish()
    }
}

/// The longest data of [`Host::execute`], in bytes.
pub const EXECUTE_BYTES: usize = 64 << 10;

/// `user` of a command that [`Host::execute`] runs.
const OWN: u64 = u64::MAX;

impl<T: Transport> Host<T> {
    /// A host with `depth` slots.
    pub fn new(transport: T, depth: u16, has_streams: bool, limits: Limits) -> Self {
        let slots = usize::from(depth) + 1;
        let suspended_ns = transport.suspended_ns();
        Self {
            suspended_ns,
            transport,
            session: Session::new(depth, has_streams, limits),
            commands: vec![[0; COMMAND_BYTES]; slots].into_boxed_slice(),
            statuses: vec![[0; STATUS_BYTES]; slots].into_boxed_slice(),
            data: vec![std::ptr::null_mut(); slots].into_boxed_slice(),
            own: vec![0; EXECUTE_BYTES].into_boxed_slice(),
        }
    }

    /// The transport.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// The transport.
    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// What was seen so far.
    pub fn counts(&self) -> Counts {
        self.session.counts()
    }

    /// Reports that another session went before this one and ended without a flush ([`Session::follow`]). Before the first
    /// command.
    pub fn follow(&mut self) {
        self.session.follow();
    }

    /// Resets the port, so that the device forgets the commands of another session. No command may be in flight.
    ///
    /// # Errors
    /// The device is gone, or does not come back.
    pub fn reset(&mut self) -> Result<(), Failure> {
        let now_ns = self.transport.now_ns();
        self.session.reset(now_ns);
        // Transfers that are left are cancelled first; that has a time limit.
        while self.session.is_recovering() {
            assert!(self.poll(None).is_none(), "no command is in flight");
        }
        self.session.ended().map_or(Ok(()), Err)
    }

    /// The time from now until the next time limit has an effect, in nanoseconds; `u64::MAX`: none.
    pub fn wait_limit_ns(&self) -> u64 {
        let deadline_ns = self.session.next_deadline_ns();
        if deadline_ns == u64::MAX { u64::MAX } else { deadline_ns.saturating_sub(self.transport.now_ns()) }
    }

    /// True if the disk refused a write with FUA and then did one without it, so that a flush follows each
    /// ([`Session::refuses_fua`]).
    pub fn refuses_fua(&self) -> bool {
        self.session.refuses_fua()
    }

    /// Sets whether the medium can be removed ([`Session::set_removable`]).
    pub fn set_removable(&mut self, is_removable: bool) {
        self.session.set_removable(is_removable);
    }

    /// Why the session has ended, if it has.
    pub fn has_failed(&self) -> Option<Failure> {
        self.session.ended()
    }

    /// The number of commands that can be in flight.
    pub fn depth(&self) -> u16 {
        self.session.depth()
    }

    /// True if no command is in flight.
    pub fn is_idle(&self) -> bool {
        self.session.is_idle()
    }

    /// Takes a command; `user` is returned with its outcome.
    ///
    /// # Errors
    /// [`Full`]: every slot has a command.
    ///
    /// # Safety
    /// `data` is valid for the command's data, to be written by [`Data::In`] and read by [`Data::Out`], and nobody else uses it,
    /// until the outcome was returned or the host was dropped.
    pub unsafe fn start(&mut self, request: Request, user: u64, data: *mut u8) -> Result<(), Full> {
        let now_ns = self.transport.now_ns();
        let slot = self.session.start(request, user, now_ns)?;
        self.data[usize::from(slot)] = data;
        self.carry_out();
        Ok(())
    }

    /// Returns a command that has ended; waits for it for at most `wait_ns` (`None`: without limit). Returns `None` if there
    /// is none in that time, or if none is in flight, or after a signal.
    pub fn poll(&mut self, wait_ns: Option<u64>) -> Option<Outcome> {
        let mut now_ns = self.transport.now_ns();
        let end_ns = wait_ns.map_or(u64::MAX, |wait| now_ns.saturating_add(wait));
        loop {
            self.carry_out();
            if let Some(outcome) = self.session.next_outcome() {
                return Some(outcome);
            }
            if self.session.is_idle() && !self.session.is_recovering() {
                return None;
            }
            let until_ns = end_ns.min(self.session.next_deadline_ns());
            match self.transport.reap(until_ns.saturating_sub(now_ns)) {
                Ok(Some(ended)) => {
                    now_ns = self.transport.now_ns();
                    self.ended(ended, now_ns);
                }
                Ok(None) => {
                    now_ns = self.transport.now_ns();
                    let is_due = self.session.next_deadline_ns() <= now_ns;
                    self.session.tick(now_ns);
                    self.carry_out();
                    if let Some(outcome) = self.session.next_outcome() {
                        return Some(outcome);
                    }
                    if !is_due || now_ns >= end_ns {
                        return None;
                    }
                }
                Err(TransferError::Gone) => self.session.fail(Failure::Gone),
                Err(_) => self.session.fail(Failure::NoAnswer),
            }
        }
    }

    fn ended(&mut self, ended: Ended, now_ns: u64) {
        let Ended { pipe, slot, result } = ended;
        // A suspend breaks transfers, or its first answer reports the power-on. Before either is handled.
        if result != Err(TransferError::Cancelled) && !matches!(pipe, Pipe::DataIn | Pipe::DataOut | Pipe::Command) {
            self.notice_suspend();
        }
        let received = match (pipe, result) {
            (Pipe::Status, Ok(bytes)) => bytes as usize,
            _ => 0,
        };
        let unit = &self.statuses[usize::from(slot)][..received.min(STATUS_BYTES)];
        self.session.ended_transfer(pipe, slot, result, unit, now_ns);
    }

    /// Looks whether the machine was suspended since the last call. If it was, the port will be reset before anything else: the kernel may
    /// have bound a driver of its own to the interface.
    pub fn notice_suspend(&mut self) -> bool {
        // Clocks that are read one after the other differ by less.
        const LEAST_NS: u64 = 50_000_000;
        let suspended_ns = self.transport.suspended_ns();
        let was_suspended = suspended_ns >= self.suspended_ns + LEAST_NS;
        if was_suspended {
            self.suspended_ns = suspended_ns;
            self.session.suspended(self.transport.now_ns());
        }
        was_suspended
    }

    /// Does what the session needs.
    fn carry_out(&mut self) {
        while let Some(action) = self.session.next_action() {
            match action {
                Action::Submit(transfer) => self.submit(transfer),
                Action::Cancel { pipe, slot } => self.transport.cancel(pipe, slot),
                Action::Reset => {
                    let streams = self.transport.reset();
                    self.session.ended_reset(streams, self.transport.now_ns());
                }
            }
        }
    }

    fn submit(&mut self, transfer: Transfer) {
        let Transfer { pipe, slot, bytes, .. } = transfer;
        let index = usize::from(slot);
        let (buffer, bytes) = match pipe {
            Pipe::Command => {
                let bytes = self.session.outgoing(slot, &mut self.commands[index]);
                (self.commands[index].as_mut_ptr(), bytes as u32)
            }
            Pipe::Status => (self.statuses[index].as_mut_ptr(), bytes),
            Pipe::DataIn | Pipe::DataOut => (self.data[index], bytes),
        };
        // SAFETY: `commands` and `statuses` live as long as the transport, and a slot's transfer on a pipe is submitted again
        // only after it was reaped. `data` is valid by the contract of `start`: the session ends a command only when its
        // transfers were reaped.
        if let Err(error) = unsafe { self.transport.submit(Transfer { bytes, ..transfer }, buffer) } {
            let now_ns = self.transport.now_ns();
            self.ended(Ended { pipe, slot, result: Err(error) }, now_ns);
        }
    }

    /// Runs one command and waits for its end. `data` is sent, or receives.
    ///
    /// # Errors
    /// The command's failure.
    ///
    /// # Panics
    /// If other commands are in flight, or `data` is longer than [`EXECUTE_BYTES`].
    pub fn execute(&mut self, request: Request, data: &mut [u8]) -> Result<u32, Failure> {
        assert!(self.is_idle(), "commands are in flight");
        assert_eq!(request.data.bytes() as usize, data.len());
        if matches!(request.data, Data::Out(_)) {
            self.own[..data.len()].copy_from_slice(data);
        }
        let buffer = self.own.as_mut_ptr();
        assert!(data.len() <= self.own.len());
        // SAFETY: the host owns the buffer, and uses it for one command at a time.
        let started = unsafe { self.start(request, OWN, buffer) };
        started.expect("an idle session has free slots");
        loop {
            // Without a limit it returns early only after a signal; the command's own limits end it.
            if let Some(outcome) = self.poll(None) {
                if matches!(request.data, Data::In(_)) {
                    let received = outcome.result.unwrap_or(0) as usize;
                    data[..received].copy_from_slice(&self.own[..received]);
                }
                return outcome.result;
            }
        }
    }
}
