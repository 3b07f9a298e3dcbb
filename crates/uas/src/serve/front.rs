//! The kernel's side of a block device that is served: where requests come from, and where answers go.

use std::io;
use std::os::fd::BorrowedFd;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// To read.
    Read,
    /// To write; with FUA, past the disk's cache.
    Write {
        /// Forced unit access.
        is_fua: bool,
    },
    /// To write the disk's cache to its medium.
    Flush,
    /// To deallocate.
    Discard,
    /// Something that is not served.
    Unknown(u32),
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// What it asks for.
    pub command: Command,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its length, in bytes.
    pub bytes: u64,
}

/// What [`Front::receive`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// No request.
    Nothing,
    /// A request, with the number of its slot. The data of a write is in the slot's buffer, if it fits.
    Request(usize, Asked),
    /// The kernel sends no request any more.
    End,
}

/// The kernel's side of a block device. It owns a buffer for each of its slots, and has a slot for each request that was
/// received and not answered.
///
/// # Safety
/// A slot's buffer ([`Self::buffer`]) keeps its place and its length as long as this exists, also if this is moved; nothing but
/// the calls here uses it, and between [`Self::receive`] and [`Self::answer`] of its slot they leave it alone.
pub unsafe trait Front {
    /// Lets the kernel send requests. Called once, on the thread of all later calls.
    ///
    /// # Errors
    /// The kernel's.
    fn begin(&mut self) -> io::Result<()>;

    /// A descriptor that is readable when there is something to receive; `None`: every slot is taken.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Receives a request. May be called when there is none; waits only for the rest of a request.
    ///
    /// # Errors
    /// The kernel's side cannot be used any more.
    fn receive(&mut self) -> io::Result<Received>;

    /// Returns whether [`Self::receive`] finds something without a wait.
    fn has_more(&mut self) -> bool;

    /// The buffer of a slot.
    fn buffer(&mut self, slot: usize) -> &mut [u8];

    /// Answers the request of a slot, which is free then: with success, or an error number. The data of a read is in the slot's
    /// buffer.
    ///
    /// # Errors
    /// The kernel's side cannot be used any more.
    fn answer(&mut self, slot: usize, result: Result<(), i32>) -> io::Result<()>;

    /// Sends the answers that were given so far, if they wait for more.
    ///
    /// # Errors
    /// The kernel's side cannot be used any more.
    fn send(&mut self) -> io::Result<()>;
}
