//! Places the I/Os of jobs on zoned files (`zonemode = zbd`), and resets and finishes zones for them.
//!
//! The generator ignores zones. Of its requests a random job keeps the zone, and a sequential one only the operation
//! and the length: it goes through the zones by cursors of its own.
//!
//! Resets and finishes that a write needs are plain calls between two I/Os, and part of no latency. While they last,
//! completions are noticed late. A trim empties a whole zone, and is an I/O like any other.

use super::{Admission, Done, Hooks, Stage};
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::recorder::WorkerReport;
use crate::request::Request;
use crate::view::View;
use crate::zones::{Member, Placement, View as ZoneView, Wish, ZoneMap, finish_zone, reset_zone};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use trueio_model::{JobPlan, OpKind, OpMix, Order, ZonePlan, ZoneUse};

mod finding;

/// Zones in use that a random write passes over before it waits.
const HELD_MAX: usize = 64;

/// What a worker needs to write zones by their rules.
#[derive(Debug)]
pub(crate) struct Zoned {
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
    /// The unit of a random I/O's offset.
    unit: u64,
    /// Passes of a sequential job over each file.
    passes_max: u64,
    /// Writes since the last reset of a zone that was not full.
    since_reset: u64,
    reset_count: u64,
    finish_count: u64,
    /// Something was read or trimmed.
    has_found: bool,
    /// Nothing was there to be read or trimmed for a while.
    has_waited: bool,
}

#[derive(Debug)]
struct ZonedFile {
    map: Arc<ZoneMap>,
    /// Zones of the region.
    zones: Range<u32>,
    view: ZoneView,
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
    /// A sentence, if the job needs more than a device offers.
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>, unit: u64) -> Result<Option<Box<dyn Stage + 'a>>, String> {
        Ok(Self::new(context.plan, context.zones, unit)?.map(|zoned| zoned as Box<dyn Stage>))
    }

    fn new(job: &JobPlan, maps: &[Arc<ZoneMap>], unit: u64) -> Result<Option<Box<Self>>, String> {
        let Some(plan) = job.zones else { return Ok(None) };
        let is_mixed = matches!(job.pattern.mix, OpMix::ReadWrite { .. });
        let is_writer = is_mixed || job.pattern.mix == OpMix::Only(OpKind::Write);
        let mut files = Vec::with_capacity(maps.len());
        for (map, file) in maps.iter().zip(&job.files) {
            let bytes = file.offset_bytes..file.offset_bytes + file.size_bytes;
            if (map.zone_bytes(), map.capacity_bytes()) != (plan.zone_bytes, plan.capacity_bytes) {
                let of = |capacity| if capacity > 0 { format!(", {capacity} of them used") } else { String::new() };
                return Err(format!(
                    "the zones of `{}` are {} bytes long{} ({}), but the job's plan has {}{}",
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
            let view = ZoneView { bytes, unit, reads_beyond: plan.reads_beyond };
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
        })))
    }

    /// Counts the worker among those that write, once: a job that finds nothing to read waits for what it writes.
    fn count_writer(&mut self) {
        if self.is_writer && !std::mem::replace(&mut self.is_counted, true) {
            self.files.iter().for_each(|file| file.map.count_writer(true));
        }
    }

    /// The worker uses no zone any more.
    fn leave_zones(&mut self) {
        self.files.iter().for_each(|file| file.map.leave(self.member));
        self.end();
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_counted) {
            self.files.iter().for_each(|file| file.map.count_writer(false));
        }
    }

    /// What goes into the record.
    fn record(&self) -> ZoneUse {
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

/// In whatever way the worker ends, no other waits for what it writes, or for a zone that it holds.
impl Drop for Zoned {
    fn drop(&mut self) {
        self.leave_zones();
    }
}

/// A call on one zone of a device.
type ZoneCall = fn(RawFd, &Range<u64>) -> io::Result<()>;

/// What became of a request.
enum Found {
    /// It is placed.
    Placed,
    /// It must wait.
    Wait(Admission),
    /// The file has no more for it.
    Over,
    /// There is nothing to be read or trimmed.
    Nothing,
}

impl Zoned {
    /// Returns the request to the zone map for a write to a zone.
    fn wish(&self, zone: u32, request: &Request) -> Wish {
        let file = &self.files[usize::from(request.file)];
        Wish {
            zone,
            length: request.length,
            region: file.zones.clone(),
            resets_full: self.is_random || !file.cursors[1].is_entered,
            resets_now: self.resets_now(file),
            writes_remainder: self.plan.writes_remainder,
            open_max: file.open_max,
            own_open_max: self.plan.worker_open_max,
            pick: request.offset / self.unit,
        }
    }

    /// Places a write in a conventional zone; finds nothing if it does not fit there any more.
    fn place_anywhere(&mut self, zone: u32, request: &mut Request, view: &View<'_, '_>) -> Found {
        let file = &mut self.files[usize::from(request.file)];
        let cursor = &mut file.cursors[1];
        let bounds = file.map.bounds(zone);
        let last = bounds.end.saturating_sub(u64::from(request.length));
        let offset = match (self.is_random, cursor.is_entered) {
            // On the grid that begins with the zone, where reads look for it.
            (true, _) => {
                let inner = request.offset.min(last).saturating_sub(bounds.start);
                bounds.start + inner - inner % self.unit
            }
            (false, true) => cursor.at,
            (false, false) => bounds.start,
        };
        if offset > last {
            cursor.advance(&file.zones, self.plan.skip_zones);
            return Found::Nothing;
        }
        let placed = Request { offset, ..*request };
        if self.is_ordered && view.state.queue.overlaps(&placed) {
            return Found::Wait(Admission::Drain);
        }
        *request = placed;
        if !self.is_random {
            (cursor.at, cursor.is_entered) = (offset + u64::from(request.length), true);
        }
        Found::Placed
    }

    /// Places a write in the zone that the generator drew, or that the file's cursor is in, or in one after it.
    fn place_write(&mut self, request: &mut Request, view: &mut View<'_, '_>) -> Found {
        let index = usize::from(request.file);
        let mut random = self.files[index].map.number_at(request.offset);
        let (mut passed_over, mut held) = (0, 0);
        loop {
            let file = &mut self.files[index];
            let cursor = &mut file.cursors[1];
            if !self.is_random && cursor.pass >= self.passes_max {
                return Found::Over;
            }
            if passed_over > file.zones.len() {
                let path = plan_path(view, request.file);
                view.state.outcome.fail(format!("no zone of `{path}` that the job uses can be written"));
                return Found::Wait(Admission::Drain);
            }
            let zone = if self.is_random { random } else { cursor.zone };
            let wish = self.wish(zone, request);
            let file = &mut self.files[index];
            let cursor = &mut file.cursors[1];
            match file.map.place(self.member, &wish) {
                Placement::At(offset, length) => {
                    let placed = Request { offset, length, ..*request };
                    if self.is_ordered && view.state.queue.overlaps(&placed) {
                        file.map.give_back(file.map.number_at(offset));
                        return Found::Wait(Admission::Drain);
                    }
                    *request = placed;
                    cursor.is_entered |= file.map.number_at(offset) == cursor.zone;
                    self.since_reset += 1;
                    return Found::Placed;
                }
                // A write that its own zone does not take now stays among those that are written in order: otherwise a
                // deep queue would end in the few zones that take any write at any time.
                Placement::Anywhere if held > 0 => {
                    held += 1;
                    random = file.after(random);
                }
                Placement::Anywhere => match self.place_anywhere(zone, request, view) {
                    Found::Nothing => passed_over += 1,
                    found => return found,
                },
                // A random job need not wait for this one.
                Placement::Held { .. } if self.is_random && held < HELD_MAX.min(file.zones.len()) => {
                    held += 1;
                    random = file.after(random);
                }
                Placement::Held { by_oneself: true } => return Found::Wait(Admission::Drain),
                Placement::Held { by_oneself: false } => return Found::Wait(Admission::Outside),
                Placement::Reset(number) => {
                    // Else a read would find nothing, or what is written next.
                    if self.is_mixed && reads_in_flight(view, request.file, &file.map.bounds(number)) {
                        file.map.give_back(number);
                        return Found::Wait(Admission::Drain);
                    }
                    if !self.reset_held(request.file, number, view) {
                        return Found::Wait(Admission::Drain);
                    }
                }
                Placement::Finish(number) => {
                    if !self.finish_held(request.file, number, view) {
                        return Found::Wait(Admission::Drain);
                    }
                }
                Placement::Full => {
                    passed_over += 1;
                    if self.is_random {
                        random = file.after(random);
                    } else {
                        cursor.advance(&file.zones, self.plan.skip_zones);
                    }
                }
                Placement::Stuck => {
                    let open_max = file.open_max;
                    let path = plan_path(view, request.file);
                    view.state.outcome.fail(format!(
                        "`{path}`: as many zones as may be open ({open_max}) were left open by others, none of them \
                         among those that the job uses; reset or finish them first (`blkzone`)"
                    ));
                    return Found::Wait(Admission::Drain);
                }
            }
        }
    }

    /// Empties the zones of a device before a job writes to them with `verify`: what stood there before could not be
    /// compared, so a zone could not be compared whole.
    fn empty_zones(&mut self, view: &mut View<'_, '_>) {
        let plan = view.state.context.plan;
        if !self.is_writer || plan.verify.as_ref().is_none_or(|verify| verify.is_offline) {
            return;
        }
        for index in 0..self.files.len() {
            let ZonedFile { map, zones, .. } = &self.files[index];
            let (map, zones) = (map.clone(), zones.clone());
            for number in zones.filter(|_| !map.is_emulated()) {
                let is_held = map.take(self.member, number, &(number..number + 1), false) == Ok(Some(number));
                if is_held && !self.reset_held(index as u16, number, view) {
                    break;
                }
            }
        }
        view.state.time.started = view.clock.now();
    }

    /// Empties a zone that is held; false if that failed.
    fn reset_held(&mut self, file: u16, number: u32, view: &mut View<'_, '_>) -> bool {
        let map = self.files[usize::from(file)].map.clone();
        if !call_zone("resetting", reset_zone, &map, file, number, view) {
            return false;
        }
        map.was_reset(number);
        self.since_reset = 0;
        self.reset_count += 1;
        view.state.emptied.push((file, map.bounds(number)));
        true
    }

    /// Closes a zone that is held and has room; false if that failed.
    fn finish_held(&mut self, file: u16, number: u32, view: &mut View<'_, '_>) -> bool {
        let map = self.files[usize::from(file)].map.clone();
        if !call_zone("finishing", finish_zone, &map, file, number, view) {
            return false;
        }
        map.was_finished(number);
        self.finish_count += 1;
        true
    }
}

/// Makes a call on a zone that is held, if the device has zones itself; false if that failed.
fn call_zone(verb: &str, call: ZoneCall, map: &ZoneMap, file: u16, number: u32, view: &mut View<'_, '_>) -> bool {
    let Some(target) = view.state.context.files.get(usize::from(file)).filter(|_| !map.is_emulated()) else {
        return true;
    };
    let bounds = map.bounds(number);
    let Err(error) = call(target.file.as_raw_fd(), &bounds) else { return true };
    map.failed(number, Some(target));
    let (start, path) = (bounds.start, &target.path);
    view.state.outcome.fail(format!("{verb} the zone at byte {start} of `{path}` failed: {error}"));
    false
}

/// Returns true if a read of these bytes of a file is in flight.
fn reads_in_flight(view: &View<'_, '_>, file: u16, bytes: &Range<u64>) -> bool {
    view.state.queue.any_in_flight(file, bytes, |op| op == OpKind::Read)
}

/// Returns a file's path as the plan has it.
fn plan_path<'a>(view: &View<'_, 'a>, file: u16) -> &'a str {
    view.state.context.plan.files.get(usize::from(file)).map_or("", |file| &file.path)
}

/// The job has done all that it was to do.
fn end_job(view: &mut View<'_, '_>) -> Admission {
    view.state.outcome.is_done = true;
    view.state.steps.exhaust();
    Admission::Drain
}

impl Stage for Zoned {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: true, is_completing: true, ..Hooks::default() }
    }

    fn prepare(&mut self, view: &mut View<'_, '_>) {
        // A job that waits for others to end does not count as a writer that they could wait for.
        if view.state.context.waits_for.is_empty() {
            self.count_writer();
        }
    }

    fn begin(&mut self, view: &mut View<'_, '_>) {
        self.empty_zones(view);
        self.count_writer();
    }

    fn measure(&mut self, _now: u64, view: &mut View<'_, '_>) {
        // Calls during a ramp are not measured. Without one, those that emptied the zones before the first write count.
        if view.state.context.plan.limits.ramp_ns > 0 {
            (self.reset_count, self.finish_count) = (0, 0);
        }
    }

    fn admit(&mut self, request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        let was_reading = request.op == OpKind::Read;
        // Read before the zones are: what the last writer wrote is seen then.
        let has_writers = self.files.iter().any(|file| file.map.has_writers());
        let found = match request.op {
            OpKind::Read => self.place_read(request, view),
            OpKind::Write => self.place_write(request, view),
            OpKind::Trim => self.place_trim(request),
            OpKind::Sync => Found::Placed,
        };
        Ok(match found {
            Found::Placed => {
                self.has_found |= was_reading || request.op == OpKind::Trim;
                Admission::Ready
            }
            Found::Wait(wait) => wait,
            Found::Over if !self.is_over(op_index(request.op)) => Admission::Skip,
            Found::Over => end_job(view),
            Found::Nothing => self.wait_or_end(request, has_writers, view),
        })
    }

    fn wait(&mut self, view: &mut View<'_, '_>) {
        if view.state.queue.in_flight() == 0 {
            std::thread::yield_now();
        }
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        let request = view.state.queue.slot(done.slot).request;
        let map = &self.files[usize::from(request.file)].map;
        let number = map.number_at(request.offset);
        let target = view.state.context.files.get(usize::from(request.file));
        match request.op {
            OpKind::Write if !map.is_sequential(number) => {}
            OpKind::Write if done.is_whole || map.is_emulated() => map.wrote(number, done.moved()),
            OpKind::Write => map.failed(number, target),
            OpKind::Trim if done.is_whole => {
                map.was_reset(number);
                view.state.emptied.push((request.file, map.bounds(number)));
            }
            OpKind::Trim => map.failed(number, target),
            OpKind::Read | OpKind::Sync => {}
        }
    }

    fn leave(&mut self, _view: &mut View<'_, '_>) {
        self.leave_zones();
    }

    fn report(&mut self, report: &mut WorkerReport, _view: &mut View<'_, '_>) {
        report.zones = Some(self.record());
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
    use trueio_model::{EngineKind, FilePlan, Prepare};

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
    fn a_writer_counts_until_it_leaves_or_is_dropped() {
        let map = Arc::new(ZoneMap::emulated(1 << 16, 1 << 16, 1 << 20));
        let mut job = job();
        let begun = |job: &JobPlan| {
            let mut zoned = Zoned::new(job, std::slice::from_ref(&map), 4096).expect("zones").expect("it has zones");
            (0..2).for_each(|_| zoned.count_writer());
            zoned
        };
        let reader = begun(&job);
        assert!(!map.has_writers());
        job.pattern.mix = OpMix::Only(OpKind::Write);
        let (mut one, other) = (begun(&job), begun(&job));
        (0..2).for_each(|_| one.leave_zones());
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
