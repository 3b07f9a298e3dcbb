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
use crate::zones::{Member, Place, Wish, ZoneMap, finish_zone, reset_zone};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use trueio_model::{JobPlan, OpKind, OpMix, Order, ZonePlan, ZoneUse};

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
    /// What a random read's place is a multiple of.
    unit: u64,
    /// Passes of a sequential job over each file.
    passes_max: u64,
    /// Writes since the last reset of a zone that was not full.
    since_reset: u64,
    pub(super) reset_count: u64,
    pub(super) finish_count: u64,
    /// Something was read or trimmed.
    has_found: bool,
    /// The last write to each place that was not reset since: file, offset; number. Only of jobs that verify.
    written: BTreeMap<(u16, u64), u64>,
}

#[derive(Debug)]
struct ZonedFile {
    map: Arc<ZoneMap>,
    /// Zones and bytes of the region.
    zones: Range<u32>,
    bytes: Range<u64>,
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
        let mut files = Vec::with_capacity(maps.len());
        for (map, file) in maps.iter().zip(&job.files) {
            let bytes = file.offset_bytes..file.offset_bytes + file.size_bytes;
            let zones = map.number_at(bytes.start)..map.number_at(bytes.end - 1) + 1;
            if map.zone_bytes() != plan.zone_bytes {
                return Err(format!(
                    "the zones of `{}` are {} bytes long ({}), and the plan says {}",
                    file.path,
                    map.zone_bytes(),
                    map.source(),
                    plan.zone_bytes
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
            files.push(ZonedFile { map: map.clone(), zones, bytes, open_max, cursors: [cursor; 3] });
        }
        assert_eq!(files.len(), job.files.len(), "every file of a zoned job has its zones");
        let region_bytes: u64 = job.files.iter().map(|file| file.size_bytes).sum();
        let is_mixed = matches!(job.pattern.mix, OpMix::ReadWrite { .. });
        let has_passes = !is_mixed && !job.limits.is_time_based && job.limits.io_bytes <= region_bytes;
        Ok(Some(Box::new(Self {
            member: Member::new(),
            plan,
            files,
            is_random: matches!(job.pattern.order, Order::Random { .. }),
            is_mixed,
            unit,
            passes_max: if has_passes { job.limits.loops } else { u64::MAX },
            since_reset: 0,
            reset_count: 0,
            finish_count: 0,
            has_found: false,
            written: BTreeMap::new(),
        })))
    }

    /// Remembers what was written where.
    pub(super) fn remember(&mut self, request: &Request, sequence: u64) {
        self.written.insert((request.file, request.offset), sequence);
    }

    /// The places whose last write is known, with its number.
    pub(super) fn written(&self) -> Vec<((u16, u64), u64)> {
        self.written.iter().map(|(place, sequence)| (*place, *sequence)).collect()
    }

    /// The worker uses no zone any more.
    pub(super) fn leave(&self) {
        self.files.iter().for_each(|file| file.map.leave(self.member));
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

    /// True if the cursors of every file have made all their passes.
    fn is_over(&self, op: usize) -> bool {
        self.files.iter().all(|file| file.cursors[op].pass >= self.passes_max)
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
                Some(Wait::No)
            }
            Found::Over | Found::Nothing => {
                if matches!(found, Found::Nothing) && !zoned.has_found {
                    let path = self.plan_path(request.file);
                    self.fatal.get_or_insert(format!(
                        "no zone of `{path}` holds data to {}, as far as the write pointers tell ({}); write it \
                         first, in a job before with `stonewall`, or read anywhere with `read_beyond_wp`",
                        request.op,
                        zoned.files[usize::from(request.file)].map.source()
                    ));
                }
                self.is_done = true;
                self.is_exhausted = true;
                Some(Wait::Everything)
            }
        };
        self.zoned = Some(zoned);
        wait
    }

    fn plan_path(&self, file: u16) -> &str {
        self.context.plan.files.get(usize::from(file)).map_or("", |file| &file.path)
    }

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
                Place::At(offset, length) => {
                    (request.offset, request.length) = (offset, length);
                    cursor.is_entered |= file.map.number_at(offset) == cursor.zone;
                    zoned.since_reset += 1;
                    return Found::Placed;
                }
                // A write that its own zone does not take now stays among those that are written in order: otherwise a
                // deep queue would end in the few zones that take any write at any time.
                Place::Anywhere if held > 0 => {
                    held += 1;
                    random = file.after(random);
                }
                Place::Anywhere => {
                    let bounds = file.map.bounds(zone);
                    let last = bounds.end.saturating_sub(u64::from(request.length));
                    let offset = match (zoned.is_random, cursor.is_entered) {
                        (true, _) => request.offset.clamp(bounds.start, last),
                        (false, true) => cursor.at,
                        (false, false) => bounds.start,
                    };
                    if offset > last {
                        passed_over += 1;
                        cursor.advance(&file.zones, zoned.plan.skip_zones);
                        continue;
                    }
                    let placed = Request { offset, ..*request };
                    if self.verifier.is_some() && self.overlaps_in_flight(&placed) {
                        return Found::Wait(Wait::Everything);
                    }
                    *request = placed;
                    if !zoned.is_random {
                        (cursor.at, cursor.is_entered) = (offset + u64::from(request.length), true);
                    }
                    return Found::Placed;
                }
                // A random job need not wait for this one.
                Place::Held { .. } if zoned.is_random && held < HELD_MAX.min(file.zones.len()) => {
                    held += 1;
                    random = file.after(random);
                }
                Place::Held { by_oneself: true } => return Found::Wait(Wait::Everything),
                Place::Held { by_oneself: false } => return Found::Wait(Wait::Flow),
                Place::Reset(number) => {
                    if !self.reset_held(zoned, request.file, number) {
                        return Found::Wait(Wait::Everything);
                    }
                }
                Place::Finish(number) => {
                    if !self.finish_held(zoned, request.file, number) {
                        return Found::Wait(Wait::Everything);
                    }
                }
                Place::Full => {
                    passed_over += 1;
                    if zoned.is_random {
                        random = file.after(random);
                    } else {
                        cursor.advance(&file.zones, zoned.plan.skip_zones);
                    }
                }
                Place::Stuck => {
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

    fn place_read(&mut self, zoned: &mut Zoned, request: &mut Request) -> Found {
        let length = u64::from(request.length);
        let reads_beyond = zoned.plan.reads_beyond;
        let file = &mut zoned.files[usize::from(request.file)];
        let within = |range: Range<u64>, bytes: &Range<u64>| range.start.max(bytes.start)..range.end.min(bytes.end);
        if zoned.is_random {
            let zone = file.map.number_at(request.offset);
            if let Some((_, range)) = file.map.next_readable(zone, &file.zones, length, reads_beyond) {
                let range = within(range, &file.bytes);
                if let Some(room) = range.end.checked_sub(range.start + length) {
                    let inner = request.offset % zoned.plan.zone_bytes % (room + 1);
                    request.offset = range.start + inner - inner % zoned.unit;
                    return Found::Placed;
                }
            }
        } else {
            for _ in 0..=file.zones.len() {
                let cursor = &mut file.cursors[0];
                if cursor.pass >= zoned.passes_max {
                    return if zoned.has_found { Found::Over } else { Found::Nothing };
                }
                let range = within(file.map.readable(cursor.zone, reads_beyond), &file.bytes);
                let at = if cursor.is_entered { cursor.at } else { range.start };
                if at + length <= range.end {
                    request.offset = at;
                    (cursor.at, cursor.is_entered) = (at + length, true);
                    return Found::Placed;
                }
                cursor.advance(&file.zones, zoned.plan.skip_zones);
            }
        }
        if zoned.is_mixed {
            // Nothing was written yet: the job begins with that.
            request.op = OpKind::Write;
            return self.place_write(zoned, request);
        }
        Found::Nothing
    }

    fn place_trim(&mut self, zoned: &mut Zoned, request: &mut Request) -> Found {
        let file = &mut zoned.files[usize::from(request.file)];
        let taken = if zoned.is_random {
            let zone = file.map.number_at(request.offset);
            file.map.take(zoned.member, zone, &file.zones, false)
        } else {
            loop {
                let cursor = &mut file.cursors[2];
                if cursor.pass >= zoned.passes_max {
                    return Found::Over;
                }
                let taken = file.map.take(zoned.member, cursor.zone, &(cursor.zone..cursor.zone + 1), true);
                if taken.is_ok() {
                    cursor.advance(&file.zones, zoned.plan.skip_zones);
                }
                // Zones without a pointer are not trimmed; a region of nothing else comes to its end.
                if !matches!(taken, Ok(None)) {
                    break taken;
                }
                if cursor.pass > 0 && !zoned.has_found {
                    return Found::Nothing;
                }
            }
        };
        let number = match taken {
            Ok(Some(number)) => number,
            Ok(None) => return Found::Nothing,
            Err(by_oneself) => return Found::Wait(if by_oneself { Wait::Everything } else { Wait::Flow }),
        };
        let bounds = file.map.bounds(number);
        request.offset = bounds.start;
        request.length = (bounds.end - bounds.start) as u32;
        Found::Placed
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
        self.forget(zoned, file, &map.bounds(number));
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
    fn forget(&mut self, zoned: &mut Zoned, file: u16, bounds: &Range<u64>) {
        if zoned.written.is_empty() {
            return;
        }
        let mut from = zoned.written.split_off(&(file, bounds.start));
        let mut behind = from.split_off(&(file, bounds.end));
        zoned.written.append(&mut behind);
        if let Some(verifier) = &mut self.verifier {
            verifier.forget(file, bounds);
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
                self.forget(&mut zoned, request.file, &map.bounds(number));
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
