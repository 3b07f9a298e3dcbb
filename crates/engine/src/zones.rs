//! Write pointers of zoned files, shared by all workers that use a file.
//!
//! A zone that can only be written in order is written at its write pointer, one write at a time: neither the kernel
//! nor the device keeps the order of two. A worker that writes requests the zone, holds it until the write has
//! completed, and the pointer moves then. So nothing is ever read that was not completely written, and no write is
//! submitted that the device would refuse.
//!
//! A file without zones can have them all the same (emulated): the pointers are kept here and begin at the zones'
//! starts.
//!
//! Cannot see: what another process writes to the device, or resets. After a failed write the pointer is read
//! again. Nor what others read: a zone is reset although another worker has a read in flight there.

pub(crate) use kernel::{finish_zone, reset_zone};

use crate::target::TargetFile;
use kernel::report;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

mod kernel;
#[cfg(test)]
mod tests;

/// No worker holds the zone.
const NO_ONE: u32 = 0;
/// Open before the run began: by others.
const OTHERS: u32 = u32::MAX;

/// What may be done with a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Written anywhere.
    Conventional,
    /// Written at its pointer.
    Sequential,
    /// Read only, or offline: left alone.
    Unusable,
}

#[derive(Debug, Clone)]
struct Zone {
    start: u64,
    /// First byte after the zone.
    end: u64,
    /// First byte after the writable part.
    limit: u64,
    pointer: u64,
    /// First byte after the written part: the pointer, but in a zone that was finished.
    data: u64,
    kind: Kind,
    /// The member that writes, resets or finishes it now.
    holder: u32,
    /// Partly written: the worker that wrote first; `NO_ONE`: empty, full or left.
    opener: u32,
    is_open: bool,
}

/// The zones of one file.
#[derive(Debug)]
pub struct ZoneMap {
    zone_bytes: u64,
    /// Bytes of a zone that can be written, if they are emulated; a device reports it for each.
    capacity_bytes: u64,
    /// Source of the zones' places.
    source: String,
    is_emulated: bool,
    /// Zones that may be open at a time, as the device reports; 0: no limit.
    device_open_max: u32,
    /// Workers that write and have not ended.
    writers: AtomicU32,
    state: Mutex<ZoneTable>,
}

#[derive(Debug)]
struct ZoneTable {
    zones: Vec<Zone>,
    open: Vec<u32>,
    /// Bytes written in watched parts of the file.
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    zones: Range<u32>,
    byte_count: u64,
    /// What can be written there.
    capacity_bytes: u64,
}

/// Numbers of the users of zones.
static MEMBERS: AtomicU32 = AtomicU32::new(1);

/// A user of the zones of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member(u32);

impl Member {
    pub(crate) fn new() -> Self {
        Self(MEMBERS.fetch_add(1, Relaxed))
    }
}

/// What a job reads of a file.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) bytes: Range<u64>,
    /// Blocks begin at multiples of it from a zone's start on.
    pub(crate) unit: u64,
    /// Also what was never written.
    pub(crate) reads_beyond: bool,
}

/// A request for an offset to write at.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) zone: u32,
    pub(crate) length: u32,
    /// The zones that may be used.
    pub(crate) region: Range<u32>,
    /// A full zone is reset; otherwise the answer is [`Placement::Full`].
    pub(crate) resets_full: bool,
    /// The zone is reset if anything was written to it.
    pub(crate) resets_now: bool,
    pub(crate) writes_remainder: bool,
    /// Zones open at a time, of all users and of this one; 0: no limit.
    pub(crate) open_max: u32,
    pub(crate) own_open_max: u32,
    /// Any number: which of the open zones is taken if no other may be opened.
    pub(crate) pick: u64,
}

/// Where a write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// At this offset, with this length; the zone is held.
    At(u64, u32),
    /// Anywhere in the zone.
    Anywhere,
    /// A member holds the zone: the requesting one, or another.
    Held { by_oneself: bool },
    /// This zone must be reset first, and is held for it.
    Reset(u32),
    /// This zone must be finished first, and is held for it.
    Finish(u32),
    /// There is no room in the zone, or it cannot be used.
    Full,
    /// No zone may be opened, and none that is open will ever be closed.
    Stuck,
}

impl ZoneMap {
    /// Zones of a file that has none: of `zone_bytes`, `capacity_bytes` of each used, up to `length_bytes`.
    pub fn emulated(zone_bytes: u64, capacity_bytes: u64, length_bytes: u64) -> Self {
        let zones = (0..length_bytes.div_ceil(zone_bytes))
            .map(|number| {
                let start = number * zone_bytes;
                let end = (start + zone_bytes).min(length_bytes);
                // A last zone that the file cuts short is never written.
                let kind = if end - start < zone_bytes { Kind::Unusable } else { Kind::Sequential };
                let limit = (start + capacity_bytes).min(end);
                Zone { limit, kind, ..Zone::empty(start, end) }
            })
            .collect();
        let source = "emulated: the file has none".to_owned();
        Self { capacity_bytes, is_emulated: true, ..Self::new(zone_bytes, source, 0, zones) }
    }

    /// The zones that a device reports.
    ///
    /// `open_max` and `active_max` are its limits; 0: none.
    ///
    /// # Errors
    /// If it reports none, or zones of several lengths.
    pub fn of_device(device: &File, open_max: u32, active_max: u32) -> io::Result<Self> {
        let zones = report(device, 0, usize::MAX)?;
        let invalid = |sentence: &str| io::Error::new(io::ErrorKind::InvalidData, sentence.to_owned());
        let zone_bytes =
            zones.first().map(|zone| zone.end - zone.start).ok_or_else(|| invalid("it reports no zones"))?;
        let is_even = zones.iter().zip(0..).all(|(zone, number)| zone.start == number * zone_bytes);
        if zone_bytes == 0 || !is_even {
            return Err(invalid("its zones differ in length"));
        }
        let device_open_max = [open_max, active_max].into_iter().filter(|max| *max > 0).min().unwrap_or(0);
        Ok(Self::new(zone_bytes, "BLKREPORTZONE".to_owned(), device_open_max, zones))
    }

    fn new(zone_bytes: u64, source: String, device_open_max: u32, zones: Vec<Zone>) -> Self {
        let open = zones.iter().zip(0..).filter(|(zone, _)| zone.is_open).map(|(_, number)| number).collect();
        let state = Mutex::new(ZoneTable { zones, open, watched: Vec::new() });
        let writers = AtomicU32::new(0);
        Self { zone_bytes, capacity_bytes: 0, source, is_emulated: false, device_open_max, writers, state }
    }

    /// Length of a zone, in bytes.
    pub fn zone_bytes(&self) -> u64 {
        self.zone_bytes
    }

    /// Bytes of a zone that can be written, if zones are emulated; 0: the device reports it for each.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// The least that can be written of a zone among those that are written at their pointers; `None`: there is none.
    pub(crate) fn room_least(&self, zones: &Range<u32>) -> Option<u64> {
        let state = self.lock();
        let zones = state.zones[zones.start as usize..zones.end as usize].iter();
        zones.filter(|zone| zone.kind == Kind::Sequential).map(|zone| zone.limit - zone.start).min()
    }

    /// A worker will write, or (`false`) does not any more.
    pub(crate) fn count_writer(&self, comes: bool) {
        match comes {
            true => self.writers.fetch_add(1, Relaxed),
            false => self.writers.fetch_sub(1, Release),
        };
    }

    /// Returns true if a member may still write.
    pub(crate) fn has_writers(&self) -> bool {
        self.writers.load(Acquire) > 0
    }

    /// Source of the zones' places.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Zones that may be open at a time, as the device reports; 0: no limit.
    pub fn device_open_max(&self) -> u32 {
        self.device_open_max
    }

    pub(crate) fn is_emulated(&self) -> bool {
        self.is_emulated
    }

    /// Zones, and those of them that are written at their pointers.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.lock();
        let sequential = state.zones.iter().filter(|zone| zone.kind == Kind::Sequential).count();
        (state.zones.len() as u64, sequential as u64)
    }

    /// The write pointer of the zone at `offset`; `None` if it has none.
    pub fn pointer_at(&self, offset: u64) -> Option<u64> {
        let zone = &self.lock().zones[self.number_at(offset) as usize];
        (zone.kind == Kind::Sequential).then_some(zone.pointer)
    }

    pub(crate) fn number_at(&self, offset: u64) -> u32 {
        (offset / self.zone_bytes) as u32
    }

    /// From the zone's first byte to the first one after it.
    pub(crate) fn bounds(&self, zone: u32) -> Range<u64> {
        let zone = &self.lock().zones[zone as usize];
        zone.start..zone.end
    }

    /// True if the zone is written at its pointer.
    pub(crate) fn is_sequential(&self, zone: u32) -> bool {
        self.lock().zones[zone as usize].kind == Kind::Sequential
    }

    /// What can be read of a zone: whole blocks of what was written.
    pub(crate) fn readable(&self, zone: u32, view: &View) -> Range<u64> {
        self.lock().zones[zone as usize].readable(view)
    }

    /// What can be read of the next zone from `zone` on, within `region` and around it, that has `length` bytes.
    pub(crate) fn next_readable(&self, zone: u32, region: &Range<u32>, length: u64, view: &View) -> Option<Range<u64>> {
        let state = self.lock();
        let mut ranges = around(zone, region).map(|number| state.zones[number as usize].readable(view));
        ranges.find(|range| range.end - range.start >= length)
    }

    /// Bytes written in a part of the file, from now on kept up to date. Zones that are written anywhere do not count:
    /// what they hold is unknown.
    pub(crate) fn watch(&self, zones: &Range<u32>) {
        let mut state = self.lock();
        if !state.watched.iter().any(|watched| watched.zones == *zones) {
            let of_region = state.zones[zones.start as usize..zones.end as usize].iter();
            let (byte_count, capacity_bytes) = of_region
                .filter(|zone| zone.kind == Kind::Sequential)
                .fold((0, 0), |sum, zone| (sum.0 + zone.pointer - zone.start, sum.1 + zone.limit - zone.start));
            state.watched.push(Watched { zones: zones.clone(), byte_count, capacity_bytes });
        }
    }

    /// The part of a watched part's capacity that is written.
    pub(crate) fn written_part(&self, zones: &Range<u32>) -> f64 {
        let state = self.lock();
        let watched = state.watched.iter().find(|watched| watched.zones == *zones);
        watched.map_or(0.0, |watched| watched.byte_count as f64 / watched.capacity_bytes.max(1) as f64)
    }

    /// Returns where the write of `who` goes. The zone of an offset, a reset or a finish is held until it is released.
    pub(crate) fn place(&self, who: Member, wish: &Wish) -> Placement {
        let mut state = self.lock();
        let zone = &state.zones[wish.zone as usize];
        match zone.kind {
            Kind::Conventional => return Placement::Anywhere,
            Kind::Unusable => return Placement::Full,
            Kind::Sequential => {}
        }
        let mut number = wish.zone;
        let is_writable = !zone.is_full(wish) || wish.resets_full && zone.pointer > zone.start;
        if !zone.is_open && zone.holder == NO_ONE && is_writable {
            // It would have to be opened.
            let own = || state.open.iter().filter(|open| state.zones[**open as usize].opener == who.0).count();
            let is_own_limit = wish.own_open_max > 0 && own() >= wish.own_open_max as usize;
            if is_own_limit || (wish.open_max > 0 && state.open.len() >= wish.open_max as usize) {
                let opener = is_own_limit.then_some(who.0);
                match state.instead(who, wish, opener) {
                    Ok(open) => number = open,
                    Err(place) => {
                        if let Placement::Finish(number) = place {
                            state.zones[number as usize].holder = who.0;
                        }
                        return place;
                    }
                }
            }
        }
        let zone = &mut state.zones[number as usize];
        if zone.holder != NO_ONE {
            return Placement::Held { by_oneself: zone.holder == who.0 };
        }
        if zone.is_full(wish) {
            let has_room = zone.pointer < zone.limit;
            if zone.is_open && has_room && zone.pointer > zone.start && !self.is_emulated {
                zone.holder = who.0;
                return Placement::Finish(number);
            }
            let is_empty = zone.pointer == zone.start;
            if zone.is_open && !is_empty {
                state.close(number);
            }
            // A reset makes no room in a zone that is empty.
            if !wish.resets_full || is_empty {
                return Placement::Full;
            }
            state.zones[number as usize].holder = who.0;
            return Placement::Reset(number);
        }
        if wish.resets_now && zone.pointer > zone.start {
            zone.holder = who.0;
            return Placement::Reset(number);
        }
        zone.holder = who.0;
        if matches!(zone.opener, NO_ONE | OTHERS) {
            zone.opener = who.0;
        }
        let place = Placement::At(zone.pointer, zone.room(wish));
        if !std::mem::replace(&mut zone.is_open, true) {
            state.open.push(number);
        }
        place
    }

    /// Holds the next zone from `zone` on that no worker uses, and that holds data if it must, to be trimmed as a whole.
    /// `Ok(None)`: there is none. `Err`: those that there are are in use; whether all of them by oneself.
    pub(crate) fn take(
        &self,
        who: Member,
        zone: u32,
        region: &Range<u32>,
        even_empty: bool,
    ) -> Result<Option<u32>, bool> {
        let mut state = self.lock();
        let mut in_use = None;
        for number in around(zone, region) {
            let zone = &mut state.zones[number as usize];
            let has_data = match zone.kind {
                Kind::Sequential => even_empty || zone.pointer > zone.start || zone.holder != NO_ONE,
                _ => false,
            };
            if !has_data {
                continue;
            }
            if zone.holder == NO_ONE {
                zone.holder = who.0;
                return Ok(Some(number));
            }
            in_use = Some(in_use.unwrap_or(true) && zone.holder == who.0);
        }
        in_use.map_or(Ok(None), Err)
    }

    /// A zone that was held for a write or a reset is not used after all.
    pub(crate) fn give_back(&self, zone: u32) {
        let mut state = self.lock();
        let it = &mut state.zones[zone as usize];
        it.holder = NO_ONE;
        if it.pointer == it.start {
            state.close(zone);
        }
    }

    /// A write of `byte_count` bytes has completed.
    pub(crate) fn wrote(&self, zone: u32, byte_count: u64) {
        let mut state = self.lock();
        let it = &mut state.zones[zone as usize];
        it.holder = NO_ONE;
        it.pointer = (it.pointer + byte_count).min(it.limit);
        it.data = it.pointer;
        let is_over = it.pointer >= it.limit || it.pointer == it.start;
        state.count(zone, byte_count as i64);
        if is_over {
            state.close(zone);
        }
    }

    /// The zone is empty now.
    pub(crate) fn was_reset(&self, zone: u32) {
        let mut state = self.lock();
        let it = &mut state.zones[zone as usize];
        it.holder = NO_ONE;
        let written = it.pointer - it.start;
        (it.pointer, it.data) = (it.start, it.start);
        state.count(zone, -(written as i64));
        state.close(zone);
    }

    /// The zone takes no more; after its last write there is nothing to read. (One that is emulated is only not open
    /// any more.)
    pub(crate) fn was_finished(&self, zone: u32) {
        let mut state = self.lock();
        let it = &mut state.zones[zone as usize];
        it.holder = NO_ONE;
        if !self.is_emulated {
            let rest = it.limit - it.pointer;
            it.pointer = it.limit;
            state.count(zone, rest as i64);
        }
        state.close(zone);
    }

    /// An operation on the zone failed; the pointer is read from the device again.
    pub(crate) fn failed(&self, zone: u32, target: Option<&TargetFile>) {
        let start = self.bounds(zone).start;
        let asked = match target.filter(|_| !self.is_emulated) {
            Some(target) => report(&target.file, start, 1).ok().and_then(|zones| zones.into_iter().next()),
            None => None,
        };
        let mut state = self.lock();
        let it = &mut state.zones[zone as usize];
        it.holder = NO_ONE;
        let before = it.pointer;
        if let Some(asked) = asked {
            (it.pointer, it.data, it.kind) = (asked.pointer, asked.data, asked.kind);
        }
        let moved = it.pointer as i64 - before as i64;
        let is_over = it.pointer >= it.limit || it.pointer == it.start || it.kind != Kind::Sequential;
        state.count(zone, moved);
        if is_over {
            state.close(zone);
        }
    }

    /// Ends the use of zones by `who`: those it opened belong to no worker, and may be finished for others.
    pub(crate) fn leave(&self, who: Member) {
        // A worker that panics leaves, too.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for zone in &mut state.zones {
            if zone.holder == who.0 {
                zone.holder = NO_ONE;
            }
            if zone.opener == who.0 {
                zone.opener = NO_ONE;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ZoneTable> {
        self.state.lock().expect("no thread panics while holding the zones")
    }
}

impl Zone {
    /// One that is written in order, all of it, and holds nothing.
    fn empty(start: u64, end: u64) -> Self {
        let (holder, opener) = (NO_ONE, NO_ONE);
        let kind = Kind::Sequential;
        Self { start, end, limit: end, pointer: start, data: start, kind, holder, opener, is_open: false }
    }

    fn readable(&self, view: &View) -> Range<u64> {
        let end = match self.kind {
            Kind::Unusable => self.start,
            Kind::Conventional => self.end,
            Kind::Sequential if view.reads_beyond => self.limit,
            Kind::Sequential => self.data,
        };
        let start = self.start + view.bytes.start.saturating_sub(self.start).next_multiple_of(view.unit);
        start..end.min(view.bytes.end).max(start)
    }

    fn is_full(&self, wish: &Wish) -> bool {
        self.room(wish) == 0
    }

    /// Bytes that the wish may write at the pointer; 0: none.
    fn room(&self, wish: &Wish) -> u32 {
        let left = self.limit - self.pointer;
        match left >= u64::from(wish.length) {
            true => wish.length,
            false if wish.writes_remainder => left as u32,
            false => 0,
        }
    }
}

impl ZoneTable {
    /// No further zone may be opened: one that is open and has room, in the region; of `opener`, if its own limit
    /// is reached.
    fn instead(&self, who: Member, wish: &Wish, opener: Option<u32>) -> Result<u32, Placement> {
        let zone = |number: &u32| &self.zones[*number as usize];
        let suits = |number: &&u32| {
            let zone = zone(number);
            wish.region.contains(*number)
                && opener.is_none_or(|opener| zone.opener == opener)
                && (!zone.is_full(wish) || zone.holder != NO_ONE)
        };
        let is_idle = |number: &&u32| zone(number).holder == NO_ONE && suits(number);
        for among in [&is_idle as &dyn Fn(&&u32) -> bool, &suits] {
            let count = self.open.iter().filter(among).count();
            if count > 0 {
                let at = (wish.pick % count as u64) as usize;
                return self.open.iter().filter(among).nth(at).copied().ok_or(Placement::Stuck);
            }
        }
        // Left by the worker that opened it, or with too little room for this write.
        let is_left = |number: &&u32| {
            let zone = zone(number);
            zone.holder == NO_ONE && (zone.opener == NO_ONE || zone.opener == who.0 && zone.is_full(wish))
        };
        if let Some(number) = self.open.iter().find(is_left) {
            return Err(Placement::Finish(*number));
        }
        match self.open.iter().all(|number| zone(number).opener == OTHERS) {
            true => Err(Placement::Stuck),
            false => Err(Placement::Held { by_oneself: false }),
        }
    }

    fn close(&mut self, zone: u32) {
        let it = &mut self.zones[zone as usize];
        it.opener = NO_ONE;
        if std::mem::take(&mut it.is_open)
            && let Some(at) = self.open.iter().position(|open| *open == zone)
        {
            self.open.swap_remove(at);
        }
    }

    fn count(&mut self, zone: u32, bytes: i64) {
        for watched in self.watched.iter_mut().filter(|watched| watched.zones.contains(&zone)) {
            watched.byte_count = watched.byte_count.saturating_add_signed(bytes);
        }
    }
}

/// The zones of a region from `zone` on, and then from its begin.
fn around(zone: u32, region: &Range<u32>) -> impl Iterator<Item = u32> + use<> {
    (zone..region.end).chain(region.start..zone)
}
