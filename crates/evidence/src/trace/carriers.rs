//! Finds the requests that carried an I/O: on any place for a read, on every place for a write.
//!
//! Cannot see: which of two equal I/Os in flight at once a request belongs to; it counts for both.

use super::format::Kind;
use super::layers::Layers;
use super::piece::Piece;
use super::places::{AddressSpace, Hops};
use super::window::{Request, Window};

/// Maximum difference between the worker's clock and the trace's, in nanoseconds. Both are CLOCK_MONOTONIC;
/// the worker's is interpolated from a counter that it read together with it before and after the I/O, within
/// a microsecond.
pub(crate) const CLOCKS_DIFFER_NS: u64 = 2_000;

/// A request, and the part of an I/O's addresses that it carries.
#[derive(Clone, Copy)]
pub(crate) struct Carrier<'a> {
    pub(crate) request: &'a Request,
    /// Index of the piece.
    piece: usize,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// True if it carries more than the piece.
    pub(crate) is_wider: bool,
}

/// The requests of a window, and the devices between which I/O is passed on.
#[derive(Clone, Copy)]
pub(crate) struct Finder<'a> {
    pub(crate) layers: &'a Layers,
    pub(crate) window: &'a Window,
}

impl<'a> Finder<'a> {
    /// Returns the requests that were issued in a span: those of the measured disks, then those of disks below loop devices.
    fn issued(&self, (from_ns, to_ns): (u64, u64)) -> impl Iterator<Item = &'a Request> + use<'a> {
        let within = |requests: &'a [Request]| {
            let first = requests.partition_point(|request| request.issued_ns < from_ns);
            requests[first..].iter().take_while(move |request| request.issued_ns <= to_ns)
        };
        within(&self.window.requests).chain(within(&self.window.below))
    }

    /// Returns the requests of a kind that carry a part of one of the pieces and were issued and completed in a span,
    /// in order of completion.
    fn carriers(&self, kind: Kind, pieces: &[Piece], span: (u64, u64)) -> Vec<Carrier<'a>> {
        let mut found = Vec::new();
        let is_in_time = |r: &&Request| r.flags.kind == kind && !r.has_failed && r.completed_ns <= span.1;
        for request in self.issued(span).filter(is_in_time) {
            for (index, piece) in pieces.iter().enumerate() {
                let (begin, end) = (request.begin.max(piece.begin), request.end.min(piece.end()));
                if request.device == piece.device && begin < end {
                    let from = |at: u64| piece.from + (at - piece.begin);
                    let is_wider = request.begin < piece.begin || piece.end() < request.end;
                    found.push(Carrier { request, piece: index, begin: from(begin), end: from(end), is_wider });
                }
            }
        }
        found.sort_by_key(|carrier| carrier.request.completed_ns);
        found
    }

    /// Returns the requests that carried an I/O, in order of completion. `Ok(None)` if a part was not carried, on any place for
    /// a read, on every place for a write.
    ///
    /// # Errors
    /// A layer does not report where it passes I/O on to.
    pub(crate) fn carried(
        &self,
        kind: Kind,
        space: &AddressSpace,
        ranges: &[(u64, u64)],
        (from_ns, to_ns): (u64, u64),
    ) -> Result<Option<Vec<Carrier<'a>>>, String> {
        let span = (from_ns.saturating_sub(CLOCKS_DIFFER_NS), to_ns + CLOCKS_DIFFER_NS);
        let hops = Hops { layers: self.layers, window: self.window };
        let pieces = hops.pieces(space, ranges, kind, span)?;
        let carriers = self.carriers(kind, &pieces, span);
        let Some(mut used) = covering(ranges, &carriers) else { return Ok(None) };
        if kind == Kind::Write {
            used.clear();
            for (index, piece) in pieces.iter().enumerate() {
                let of_piece: Vec<Carrier<'a>> = carriers.iter().filter(|one| one.piece == index).copied().collect();
                let Some(of_piece) = covering(&[(piece.from, piece.from + piece.length)], &of_piece) else {
                    return Ok(None);
                };
                used.extend(of_piece);
            }
            used.sort_by_key(|carrier| carrier.request.completed_ns);
        }
        Ok(Some(used))
    }

    /// Returns a flush of a disk that was issued and completed between two times.
    pub(crate) fn flush_between(&self, device: u32, from_ns: u64, until_ns: u64) -> Option<&'a Request> {
        let is_it = |r: &&Request| r.device == device && r.flags.kind == Kind::Flush && !r.has_failed;
        self.issued((from_ns, until_ns)).filter(is_it).find(|flush| flush.completed_ns <= until_ns)
    }
}

/// Returns the requests that together cover all ranges, in order of completion, without those that add
/// nothing. `None` if they do not cover them.
fn covering<'a>(ranges: &[(u64, u64)], carriers: &[Carrier<'a>]) -> Option<Vec<Carrier<'a>>> {
    let mut open: Vec<(u64, u64)> = ranges.to_vec();
    let mut used = Vec::new();
    for carrier in carriers {
        let mut rest = Vec::new();
        let mut has_helped = false;
        for (begin, end) in open {
            if carrier.end <= begin || end <= carrier.begin {
                rest.push((begin, end));
                continue;
            }
            has_helped = true;
            if begin < carrier.begin {
                rest.push((begin, carrier.begin));
            }
            if carrier.end < end {
                rest.push((carrier.end, end));
            }
        }
        if has_helped {
            used.push(*carrier);
        }
        open = rest;
        if open.is_empty() {
            return Some(used);
        }
    }
    None
}
