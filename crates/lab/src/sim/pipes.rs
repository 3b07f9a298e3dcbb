//! The bulk pipes of a simulated USB device: requests that wait for data, and transfers that are over.

use std::collections::{HashMap, VecDeque};

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    Cancelled,
    /// The device refused it; the endpoint is halted until the host clears that.
    Stalled,
}

/// A transfer that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transfer {
    /// The host's number for it.
    pub(super) id: u64,
    pub(super) endpoint: u8,
    pub(super) stream: u16,
    pub(super) ending: Ending,
    /// What the device sent.
    pub(super) data: Vec<u8>,
    /// How many bytes the device took.
    pub(super) taken_bytes: usize,
}

/// Requests of the host for data, in order, for each endpoint and stream.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    /// The host's number and the most bytes that it takes.
    waiting: HashMap<(u8, u16), VecDeque<(u64, usize)>>,
    over: Vec<Transfer>,
}

impl Pipes {
    /// The host wants data.
    pub(super) fn want(&mut self, id: u64, endpoint: u8, stream: u16, bytes: usize) {
        self.waiting.entry((endpoint, stream)).or_default().push_back((id, bytes));
    }

    /// How many bytes the next request takes; `None`: there is no request.
    pub(super) fn wanted(&self, endpoint: u8, stream: u16) -> Option<usize> {
        self.waiting.get(&(endpoint, stream))?.front().map(|(_, bytes)| *bytes)
    }

    /// Answers the next request; one must be there.
    pub(super) fn give(&mut self, endpoint: u8, stream: u16, data: Vec<u8>) {
        let queue = self.waiting.get_mut(&(endpoint, stream));
        let (id, _) = queue.and_then(VecDeque::pop_front).expect("`wanted` returned a request");
        self.over.push(Transfer { id, endpoint, stream, ending: Ending::Done, data, taken_bytes: 0 });
    }

    /// Refuses the next request; returns false if there is none.
    pub(super) fn stall(&mut self, endpoint: u8, stream: u16) -> bool {
        let queue = self.waiting.get_mut(&(endpoint, stream));
        let Some((id, _)) = queue.and_then(VecDeque::pop_front) else { return false };
        let (ending, data) = (Ending::Stalled, Vec::new());
        self.over.push(Transfer { id, endpoint, stream, ending, data, taken_bytes: 0 });
        true
    }

    /// The device took what the host sent, or refused it.
    pub(super) fn took(&mut self, id: u64, endpoint: u8, stream: u16, bytes: usize, ending: Ending) {
        let taken_bytes = if ending == Ending::Done { bytes } else { 0 };
        self.over.push(Transfer { id, endpoint, stream, ending, data: Vec::new(), taken_bytes });
    }

    /// The host takes a request back.
    pub(super) fn cancel(&mut self, id: u64) {
        for ((endpoint, stream), queue) in &mut self.waiting {
            if let Some(position) = queue.iter().position(|(waiting, _)| *waiting == id) {
                queue.remove(position);
                let (endpoint, stream) = (*endpoint, *stream);
                let (ending, data) = (Ending::Cancelled, Vec::new());
                self.over.push(Transfer { id, endpoint, stream, ending, data, taken_bytes: 0 });
                return;
            }
        }
    }

    /// Drops all requests, as a reset does.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The transfers that are over since the last call.
    pub(super) fn take_over(&mut self) -> Vec<Transfer> {
        std::mem::take(&mut self.over)
    }
}
