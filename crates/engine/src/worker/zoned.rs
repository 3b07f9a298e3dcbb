//! Jobs on zoned files: where each request really goes, and what must be done with its zone first.
//!
//! The generator knows nothing of zones. Of its requests a random job keeps the zone, and a sequential one only the
//! operation and the length: it goes through the zones by cursors of its own.
//!
//! Resets and finishes that a write asks for are plain calls between two I/Os, in nobody's latency. While they last,
//! completions are noticed late. A trim empties a whole zone, and is an I/O as any other.

use super::{Wait, Worker};
use crate::clock::Clock;
use crate::engines::Engine;
use crate::request::Request;
use crate::zones::{Member, Placement, View, Wish, ZoneMap, finish_zone, reset_zone};
use std::collections::TryReserveError;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use trueio_model::{JobPlan, OpKind, OpMix, Order, ZonePlan, ZoneUse};
pub(super) use written::Written;

mod finding;
mod written;

/// Zones in use that a random write passes over before it waits.
const HELD_MAX: usize = 64;

/// What a worker needs to write zones by their rules.
#[derive(Debug)]
pub(super) struct Zoned {
    member: Member,
    plan: ZonePlan,
    files: Vec<ZonedFile>,
    is_random: bool,
    /// Reads that find nothing become writes.
    is_mixed: bool,
    /// No two I/Os that touch the same bytes are in flight together, unless both read.
    is_ordered: bool,
    /// It counts among those that write.
    is_writer: bool,
    is_counted: bool,
    /// What a random I/O's place is a multiple of.
    unit: u64,
    /// Passes of a sequential job over each file.
    passes_max: u64,
    /// Writes since the last reset of a zone that was not full.
    since_reset: u64,
    pub(super) reset_count: u64,
    pub(super) finish_count: u64,
    /// Something was read or trimmed.
    has_found: bool,
    /// Nothing was there to be read or trimmed for a while.
    has_waited: bool,
    /// Of a job that compares at its end.
    written: Option<Written>,
}

#[derive(Debug)]
struct ZonedFile {
    map: Arc<ZoneMap>,
    /// Zones of the region.
    zones: Range<u32>,
    view: View,
    /// Zones that may be open at a time; 0: no limit.
    open_max: u32,
    /// Of reads, writes and trims.
    cursors: [Cursor; 3],
}

impl ZonedFile {
    /// The next of its zones, around its end.
    fn after(&self, zone: u32) -> u32 {
        if zone + 1 < self.zones.end { zone + 1 } else { self.zones.start }
    }
}

/// Where a sequential job is.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    zone: u32,
    /// The next byte in the zone, once it was entered.
    at: u64,
    is_entered: bool,
    pass: u64,
}

impl Cursor {
    fn advance(&mut self, zones: &Range<u32>, skip: u64) {
        self.is_entered = false;
        let next = (u64::from(self.zone) + 1).saturating_add(skip);
        if next < u64::from(zones.end) {
            self.zone = next as u32;
        } else {
            self.zone = zones.start;
            self.pass += 1;
        }
    }
}

impl Zoned {
    /// # Errors
    /// A sentence, if the job asks for more than a device gives.
    pub(super) fn new(job: &JobPlan, maps: &[Arc<ZoneMap>], unit: u64) -> Result<Option<Box<Self>>, String> {
        let Some(plan) = job.zones else { return Ok(None) };
        let is_mixed = matches!(job.pattern.mix, OpMix::ReadWrite { .. });
        let is_writer = is_mixed || job.pattern.mix == OpMix::Only(OpKind::Write);
        let mut files = Vec::with_capacity(maps.len());
        for (map, file) in maps.iter().zip(&job.files) {
            let bytes = file.offset_bytes..file.offset_bytes + file.size_bytes;
            if (map.zone_bytes(), map.capacity_bytes()) != (plan.zone_bytes, plan.capacity_bytes) {
                let of = |capacity| if capacity > 0 { format!(", {capacity} of them used") } else { String::new() };
                return Err(format!(
                    "the zones of `{}` are {} bytes long{} ({}), and the job's plan says {}{}",
                    file.path,
                    map.zone_bytes(),
                    of(map.capacity_bytes()),
                    map.source(),
                    plan.zone_bytes,
                    of(plan.capacity_bytes)
                ));
            }
            let there = map.counts().0 * plan.zone_bytes;
            if bytes.end > there {
                return Err(format!(
                    "the zones of `{}` end at byte {there} ({}), and the job goes on to byte {}",
                    file.path,
                    map.source(),
                    bytes.end
                ));
            }
            let zones = map.number_at(bytes.start)..map.number_at(bytes.end - 1) + 1;
            // A mixed job writes where there is nothing to read, as much as it would have read.
            let reads = if is_mixed { job.pattern.read_sizes.max_bytes() } else { 0 };
            let block = job.pattern.write_sizes.max_bytes().max(reads);
            if let Some(room) = map.room_least(&zones).filter(|room| is_writer && block > *room) {
                return Err(format!(
                    "a block of {block} bytes does not fit into each zone of `{}`: of some {room} bytes can be written \
                     ({}); use smaller blocks",
                    file.path,
                    map.source()
                ));
            }
            let device = if plan.ignores_device_limits { 0 } else { map.device_open_max() };
            if device > 0 && plan.open_max > device {
                return Err(format!(
                    "`max_open_zones = {}` is more than the {device} that `{}` allows; `ignore_zone_limits` tries it",
                    plan.open_max, file.path
                ));
            }
            if job.pattern.mix == OpMix::Only(OpKind::Trim) && plan.zone_bytes > u64::from(u32::MAX) {
                return Err(format!(
                    "`{}` has zones of {} bytes, and one I/O moves less than 4 GiB: they cannot be trimmed; \
                     `blkzone reset` empties them",
                    file.path, plan.zone_bytes
                ));
            }
            if plan.early_resets.is_some() {
                map.watch(&zones);
            }
            let open_max = if plan.open_max > 0 { plan.open_max } else { device };
            let cursor = Cursor { zone: zones.start, at: 0, is_entered: false, pass: 0 };
            let view = View { bytes, unit, reads_beyond: plan.reads_beyond };
            files.push(ZonedFile { map: map.clone(), zones, view, open_max, cursors: [cursor; 3] });
        }
        assert_eq!(files.len(), job.files.len(), "every file of a zoned job has its zones");
        let region_bytes: u64 = job.files.iter().map(|file| file.size_bytes).sum();
        let has_passes = !is_mixed && !job.limits.is_time_based && job.limits.io_bytes <= region_bytes;
        Ok(Some(Box::new(Self {
            member: Member::new(),
            plan,
            files,
            is_random: matches!(job.pattern.order, Order::Random { .. }),
            is_mixed,
            is_ordered: job.verify.is_some() || job.queue.serializes_overlap,
            is_writer,
            is_counted: false,
            unit,
            passes_max: if has_passes { job.limits.loops } else { u64::MAX },
            since_reset: 0,
            reset_count: 0,
            finish_count: 0,
            has_found: false,
            has_waited: false,
            written: job.verify.as_ref().filter(|verify| verify.reads_back).map(|_| {
                // A job that verifies has blocks of one size.
                Written::new(job.pattern.write_sizes.max_bytes())
            }),
        })))
    }

    /// The worker begins soon, with nobody to wait for: who finds nothing to read waits for what it writes.
    pub(super) fn begin(&mut self) {
        if self.is_writer && !std::mem::replace(&mut self.is_counted, true) {
            self.files.iter().for_each(|file| file.map.count_writer(true));
        }
    }

    /// Remembers what was written where.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn remember(&mut self, request: &Request, sequence: u64) -> Result<(), TryReserveError> {
        let Some(written) = &mut self.written else { return Ok(()) };
        let map = &self.files[usize::from(request.file)].map;
        written.remember(map, (request.file, request.offset), sequence)
    }

    /// What was remembered, for good.
    pub(super) fn take_written(&mut self) -> Option<Written> {
        self.written.take()
    }

    /// The worker uses no zone any more.
    pub(super) fn leave(&mut self) {
        self.files.iter().for_each(|file| file.map.leave(self.member));
        self.end();
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_counted) {
            self.files.iter().for_each(|file| file.map.count_writer(false));
        }
    }

    /// What goes into the record.
    pub(super) fn record(&self) -> ZoneUse {
        let counts: Vec<(u64, u64)> = self.files.iter().map(|file| file.map.counts()).collect();
        ZoneUse {
            reset_count: self.reset_count,
            finish_count: self.finish_count,
            zone_bytes: self.plan.zone_bytes,
            zone_count: counts.iter().map(|count| count.0).sum(),
            sequential_count: counts.iter().map(|count| count.1).sum(),
            source: self.files.first().map_or_else(String::new, |file| file.map.source().to_owned()),
        }
    }

    /// True if the zone of the next write is to be reset whatever room it has.
    fn resets_now(&self, file: &ZonedFile) -> bool {
        self.plan.early_resets.is_some_and(|early| {
            self.since_reset >= early.every && file.map.written_part(&file.zones) >= early.threshold
        })
    }

    /// The numbers of its files, from `first` on and around.
    fn files_from(&self, first: u16) -> impl Iterator<Item = u16> + use<> {
        // Up to 65,536: their count does not fit where each number does.
        let last = (self.files.len() - 1) as u16;
        (first..=last).chain(0..first)
    }

    /// True if the cursors of every file have made all their passes.
    fn is_over(&self, op: usize) -> bool {
        self.files.iter().all(|file| file.cursors[op].pass >= self.passes_max)
    }
}

/// Whoever waits for what the worker writes, or for a zone that it holds, goes on, in whatever way it ends.
impl Drop for Zoned {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A call on one zone of a device.
type ZoneCall = fn(RawFd, &Range<u64>) -> io::Result<()>;

/// What became of a request.
enum Found {
    /// It has its place.
    Placed,
    /// It must wait.
    Wait(Wait),
    /// The file has no more for it.
    Over,
    /// There is nothing to be read or trimmed.
    Nothing,
}

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// Gives a request its place in the zones; `None`: it may be issued.
    #[cold]
    pub(super) fn settle_in_zone(&mut self, request: &mut Request) -> Option<Wait> {
        let mut zoned = self.zoned.take()?;
        let was_reading = request.op == OpKind::Read;
        // Asked before it is looked: what the last of them wrote is seen then.
        let has_writers = zoned.files.iter().any(|file| file.map.has_writers());
        let found = match request.op {
            OpKind::Read => self.place_read(&mut zoned, request),
            OpKind::Write => self.place_write(&mut zoned, request),
            OpKind::Trim => self.place_trim(&mut zoned, request),
            OpKind::Sync => Found::Placed,
        };
        let wait = match found {
            Found::Placed => {
                zoned.has_found |= was_reading || request.op == OpKind::Trim;
                None
            }
            Found::Wait(wait) => Some(wait),
            Found::Over if !zoned.is_over(op_index(request.op)) => {
                self.block_at += 1;
                // Nothing is in flight that would make the loop look at the time.
                let now = self.clock.now();
                if now >= self.next_event {
                    self.handle_events(now);
                }
                Some(Wait::No)
            }
            Found::Over => self.end_in_zones(),
            Found::Nothing => Some(self.wait_or_end(&mut zoned, request, has_writers)),
        };
        self.zoned = Some(zoned);
        wait
    }

    /// The job has done all that it was to do.
    fn end_in_zones(&mut self) -> Option<Wait> {
        self.is_done = true;
        self.is_exhausted = true;
        Some(Wait::Everything)
    }

    /// True if a read of these bytes of a file is in flight.
    fn reads_in_flight(&self, file: u16, bytes: &Range<u64>) -> bool {
        self.any_in_flight(file, bytes, |op| op == OpKind::Read)
    }

    fn plan_path(&self, file: u16) -> &str {
        self.context.plan.files.get(usize::from(file)).map_or("", |file| &file.path)
    }

    #[expect(clippy::too_many_lines, reason = "until it is split")]
    fn place_write(&mut self, zoned: &mut Zoned, request: &mut Request) -> Found {
        let index = usize::from(request.file);
        let mut random = zoned.files[index].map.number_at(request.offset);
        let (mut passed_over, mut held) = (0, 0);
        loop {
            let file = &mut zoned.files[index];
            let cursor = &mut file.cursors[1];
            if !zoned.is_random && cursor.pass >= zoned.passes_max {
                return Found::Over;
            }
            if passed_over > file.zones.len() {
                let path = self.plan_path(request.file);
                self.fatal.get_or_insert(format!("no zone of `{path}` that the job uses can be written"));
                self.is_done = true;
                return Found::Wait(Wait::Everything);
            }
            let zone = if zoned.is_random { random } else { cursor.zone };
            let resets_full = zoned.is_random || !cursor.is_entered;
            let file = &zoned.files[index];
            let wish = Wish {
                zone,
                length: request.length,
                region: file.zones.clone(),
                resets_full,
                resets_now: zoned.resets_now(file),
                writes_remainder: zoned.plan.writes_remainder,
                open_max: file.open_max,
                own_open_max: zoned.plan.worker_open_max,
                pick: request.offset / zoned.unit,
            };
            let place = file.map.place(zoned.member, &wish);
            let file = &mut zoned.files[index];
            let cursor = &mut file.cursors[1];
            match place {
                Placement::At(offset, length) => {
                    let placed = Request { offset, length, ..*request };
                    if zoned.is_ordered && self.overlaps_in_flight(&placed) {
                        file.map.give_back(file.map.number_at(offset));
                        return Found::Wait(Wait::Everything);
                    }
                    *request = placed;
                    cursor.is_entered |= file.map.number_at(offset) == cursor.zone;
                    zoned.since_reset += 1;
                    return Found::Placed;
                }
                // A write that its own zone does not take now stays among those that are written in order: otherwise a
                // deep queue would end in the few zones that take any write at any time.
                Placement::Anywhere if held > 0 => {
                    held += 1;
                    random = file.after(random);
                }
                Placement::Anywhere => {
                    let bounds = file.map.bounds(zone);
                    let last = bounds.end.saturating_sub(u64::from(request.length));
                    let offset = match (zoned.is_random, cursor.is_entered) {
                        // On the grid that begins with the zone, where reads look for it.
                        (true, _) => {
                            let inner = request.offset.min(last).saturating_sub(bounds.start);
                            bounds.start + inner - inner % zoned.unit
                        }
                        (false, true) => cursor.at,
                        (false, false) => bounds.start,
                    };
                    if offset > last {
                        passed_over += 1;
                        cursor.advance(&file.zones, zoned.plan.skip_zones);
                        continue;
                    }
                    let placed = Request { offset, ..*request };
                    if zoned.is_ordered && self.overlaps_in_flight(&placed) {
                        return Found::Wait(Wait::Everything);
                    }
                    *request = placed;
                    if !zoned.is_random {
                        (cursor.at, cursor.is_entered) = (offset + u64::from(request.length), true);
                    }
                    return Found::Placed;
                }
                // A random job need not wait for this one.
                Placement::Held { .. } if zoned.is_random && held < HELD_MAX.min(file.zones.len()) => {
                    held += 1;
                    random = file.after(random);
                }
                Placement::Held { by_oneself: true } => return Found::Wait(Wait::Everything),
                Placement::Held { by_oneself: false } => return Found::Wait(Wait::Flow),
                Placement::Reset(number) => {
                    // Else a read would find nothing, or what is written next.
                    if zoned.is_mixed && self.reads_in_flight(request.file, &file.map.bounds(number)) {
                        file.map.give_back(number);
                        return Found::Wait(Wait::Everything);
                    }
                    if !self.reset_held(zoned, request.file, number) {
                        return Found::Wait(Wait::Everything);
                    }
                }
                Placement::Finish(number) => {
                    if !self.finish_held(zoned, request.file, number) {
                        return Found::Wait(Wait::Everything);
                    }
                }
                Placement::Full => {
                    passed_over += 1;
                    if zoned.is_random {
                        random = file.after(random);
                    } else {
                        cursor.advance(&file.zones, zoned.plan.skip_zones);
                    }
                }
                Placement::Stuck => {
                    let open_max = file.open_max;
                    let path = self.plan_path(request.file);
                    self.fatal.get_or_insert(format!(
                        "`{path}`: as many zones as may be open ({open_max}) were left open by others, none of them \
                         among those that the job uses; reset or finish them first (`blkzone`)"
                    ));
                    self.is_done = true;
                    return Found::Wait(Wait::Everything);
                }
            }
        }
    }

    /// Empties the zones of a device before a job writes to them with `verify`: behind what stood there before nobody
    /// could compare all of a zone.
    #[cold]
    pub(super) fn empty_zones(&mut self) {
        let verifies = self.context.plan.verify.as_ref().is_some_and(|verify| !verify.is_offline);
        let Some(mut zoned) = self.zoned.take_if(|zoned| verifies && zoned.is_writer) else { return };
        for index in 0..zoned.files.len() {
            let ZonedFile { map, zones, .. } = &zoned.files[index];
            let (map, zones) = (map.clone(), zones.clone());
            for number in zones.filter(|_| !map.is_emulated()) {
                let is_held = map.take(zoned.member, number, &(number..number + 1), false) == Ok(Some(number));
                if is_held && !self.reset_held(&mut zoned, index as u16, number) {
                    break;
                }
            }
        }
        self.zoned = Some(zoned);
        self.started = self.clock.now();
    }

    /// Empties a zone that is held; false if that failed.
    fn reset_held(&mut self, zoned: &mut Zoned, file: u16, number: u32) -> bool {
        let map = zoned.files[usize::from(file)].map.clone();
        if !self.call_zone("resetting", reset_zone, &map, file, number) {
            return false;
        }
        map.was_reset(number);
        zoned.since_reset = 0;
        zoned.reset_count += 1;
        self.forget(zoned, file, number);
        true
    }

    /// Closes a zone that is held and has room; false if that failed.
    fn finish_held(&mut self, zoned: &mut Zoned, file: u16, number: u32) -> bool {
        let map = zoned.files[usize::from(file)].map.clone();
        if !self.call_zone("finishing", finish_zone, &map, file, number) {
            return false;
        }
        map.was_finished(number);
        zoned.finish_count += 1;
        true
    }

    /// Makes a call on a zone that is held, if the device has zones itself; false if that failed.
    fn call_zone(&mut self, verb: &str, call: ZoneCall, map: &ZoneMap, file: u16, number: u32) -> bool {
        let Some(target) = self.context.files.get(usize::from(file)).filter(|_| !map.is_emulated()) else {
            return true;
        };
        let bounds = map.bounds(number);
        let Err(error) = call(target.file.as_raw_fd(), &bounds) else { return true };
        map.failed(number, Some(target));
        let (start, path) = (bounds.start, &target.path);
        self.fatal.get_or_insert(format!("{verb} the zone at byte {start} of `{path}` failed: {error}"));
        self.is_done = true;
        false
    }

    /// What was written to a zone is gone, and is not compared.
    fn forget(&mut self, zoned: &mut Zoned, file: u16, number: u32) {
        if let Some(written) = &mut zoned.written {
            written.forget(file, number);
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.forget(file, &zoned.files[usize::from(file)].map.bounds(number));
        }
    }

    /// An I/O has completed: its zone is free for the next.
    pub(super) fn leave_zone(&mut self, request: &Request) {
        let Some(mut zoned) = self.zoned.take() else { return };
        let map = zoned.files[usize::from(request.file)].map.clone();
        let number = map.number_at(request.offset);
        match request.op {
            OpKind::Write if map.is_sequential(number) => map.wrote(number, u64::from(request.length)),
            OpKind::Trim => {
                map.was_reset(number);
                self.forget(&mut zoned, request.file, number);
            }
            _ => {}
        }
        self.zoned = Some(zoned);
    }

    /// An I/O has failed, or moved only `byte_count` bytes.
    pub(super) fn fail_zone(&mut self, request: &Request, byte_count: u64) {
        let Some(zoned) = &self.zoned else { return };
        let map = &zoned.files[usize::from(request.file)].map;
        let number = map.number_at(request.offset);
        match request.op {
            OpKind::Write if map.is_sequential(number) && map.is_emulated() => map.wrote(number, byte_count),
            OpKind::Write if map.is_sequential(number) => {
                map.failed(number, self.context.files.get(usize::from(request.file)));
            }
            OpKind::Trim => map.failed(number, self.context.files.get(usize::from(request.file))),
            _ => {}
        }
    }
}

fn op_index(op: OpKind) -> usize {
    match op {
        OpKind::Read | OpKind::Sync => 0,
        OpKind::Write => 1,
        OpKind::Trim => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{Checksum, EngineKind, FilePlan, Prepare, Verify};

    fn job() -> JobPlan {
        let file = FilePlan {
            path: "made up".into(),
            prepare: Prepare::Nothing,
            remove_after: false,
            offset_bytes: 0,
            size_bytes: 1 << 20,
            extends_from: None,
        };
        let zones = Some(ZonePlan::emulated(1 << 16, 1 << 16));
        JobPlan { zones, files: vec![file], ..JobPlan::plain(EngineKind::Null, 1 << 20) }
    }

    #[test]
    fn files_are_gone_through_from_any_of_them_on_however_many_there_are() {
        let map = Arc::new(ZoneMap::emulated(1 << 16, 1 << 16, 1 << 16));
        let mut job = job();
        job.files[0].size_bytes = 1 << 16;
        job.files = vec![job.files[0].clone(); 1 << 16];
        let zoned = Zoned::new(&job, &vec![map; 1 << 16], 4096).expect("zones").expect("it has zones");
        let files: Vec<u16> = zoned.files_from(65_534).collect();
        assert_eq!((files.len(), &files[..3], files.last()), (1 << 16, &[65_534, 65_535, 0][..], Some(&65_533)));
    }

    #[test]
    fn only_what_is_compared_at_the_end_is_remembered() {
        let map = Arc::new(ZoneMap::emulated(1 << 16, 1 << 16, 1 << 20));
        let mut job = job();
        for (reads_back, remembers) in [(None, false), (Some(true), true), (Some(false), false)] {
            job.verify = reads_back.map(|reads_back| Verify { reads_back, ..Verify::new(Checksum::Crc32c) });
            let zoned = Zoned::new(&job, std::slice::from_ref(&map), 4096).expect("zones").expect("it has zones");
            assert_eq!(zoned.written.is_some(), remembers, "{reads_back:?}");
        }
    }

    #[test]
    fn a_writer_counts_until_it_leaves_or_is_dropped() {
        let map = Arc::new(ZoneMap::emulated(1 << 16, 1 << 16, 1 << 20));
        let mut job = job();
        let begun = |job: &JobPlan| {
            let mut zoned = Zoned::new(job, std::slice::from_ref(&map), 4096).expect("zones").expect("it has zones");
            (0..2).for_each(|_| zoned.begin());
            zoned
        };
        let reader = begun(&job);
        assert!(!map.has_writers());
        job.pattern.mix = OpMix::Only(OpKind::Write);
        let (mut one, other) = (begun(&job), begun(&job));
        (0..2).for_each(|_| one.leave());
        assert!(map.has_writers());
        drop((one, reader));
        assert!(map.has_writers());
        // A zone that is held is not lost with its worker.
        assert_eq!(map.take(other.member, 0, &(0..1), true), Ok(Some(0)));
        assert_eq!(map.take(Member::new(), 0, &(0..1), true), Err(false));
        drop(other);
        assert!(!map.has_writers());
        assert_eq!(map.take(Member::new(), 0, &(0..1), true), Ok(Some(0)));
    }
}
