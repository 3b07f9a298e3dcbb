//! Matches sampled I/Os with traced requests.
//!
//! A direct transfer is found if requests of its direction cover every byte of its disk range, and were
//! issued and completed between the worker's two clock readings. Where layers passed it on, the ranges on the disks are those
//! that the layers named meanwhile ([`super::places`]): a write must be found on every mirror. A durable write is in order if the requests
//! of its range completed, then a flush was issued and completed, and then the call returned; the flush may
//! come from any process. Requests with forced unit access need no flush, and a disk that declares no
//! volatile cache gets none. Each disk with a part of the data needs its own flush.
//!
//! Cannot see: whether the content was ours (a range that two I/Os write at the same time counts for both);
//! which of several flushes in flight completed: one completion counts for all of them. Only I/Os that lie
//! wholly within a window without lost events are examined.
//!
//! Source: Linux `Documentation/block/writeback_cache_control.rst`.

use super::attribution::{Party, Ranges, attribute, union_ns};
use super::below::{Below, DurableBy, Reached, names_of_disks};
use super::below_users::count_users;
use super::carriers::{CLOCKS_DIFFER_NS, Carrier, Finder};
use super::extents::FileExtents;
use super::format::Kind;
use super::layers::Layers;
use super::loops::Loops;
use super::phase_trace::PhaseTrace;
use super::places::AddressSpace;
use super::window::{Request, Window};
use std::collections::BTreeMap;
use trueio_model::{
    BelowTrace, EngineKind, JobPlan, LatencyParts, OpKind, OpMix, PartTimes, RequestPlaces, SampledIo, SyncMode,
    TraceRecord,
};

/// A job of the phase and the samples of each of its workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobSamples<'a> {
    pub(crate) job: &'a JobPlan,
    /// True if its transfers bypass the page cache.
    pub(crate) is_direct: bool,
    /// One list per worker, in the order of completion.
    pub(crate) workers: &'a [Vec<SampledIo>],
}

/// Matches the samples of all jobs and attributes all requests.
pub(crate) fn match_samples(traced: &PhaseTrace, jobs: &[JobSamples<'_>]) -> TraceRecord {
    let mut record = TraceRecord {
        missing: traced.missing.clone(),
        disks: traced.layers.disks.iter().map(|disk| disk.name.clone()).collect(),
        window_count: traced.windows.len() as u64,
        window_ns: traced.windows.iter().map(Window::length_ns).sum(),
        thread_cpu_ns: traced.thread_cpu_ns,
        lost_event_count: traced.windows.iter().map(|window| window.lost_count).sum(),
        inseparable: traced.inseparable.clone(),
        ..TraceRecord::default()
    };
    record.below = below_of(traced);
    record.requeued_count = traced.windows.iter().map(|window| window.requeue_count).sum();
    attribute(traced, &mut record);
    let mut matching =
        Matching { traced, phase_writes: jobs.iter().any(writes), record: &mut record, parts: Vec::new() };
    for samples in jobs.iter().filter(|samples| samples.job.engine != EngineKind::Mmap) {
        samples.workers.iter().for_each(|ios| matching.assess_worker(samples, ios));
    }
    let parts = matching.parts;
    record.places = places(traced);
    let ops = [OpKind::Read, OpKind::Write, OpKind::Sync];
    record.latency = ops.into_iter().filter_map(|op| parts_of(op, &parts)).collect();
    record
}

/// Returns the start of the match below loop devices; `None` if no disk is one.
fn below_of(traced: &PhaseTrace) -> Option<BelowTrace> {
    let loops = traced.layers.disks.iter().filter(|disk| traced.loops.has(disk.device));
    let mut below = BelowTrace {
        loops: loops.map(|disk| disk.name.clone()).collect(),
        disks: names_of_disks(&traced.loops),
        files: traced.loops.files.iter().map(|file| file.extents.path.clone()).collect(),
        missing: traced.loops.missing.clone(),
        ..BelowTrace::default()
    };
    if below.loops.is_empty() {
        return None;
    }
    count_users(traced, &mut below);
    Some(below)
}

/// Returns true if a job may write.
fn writes(samples: &JobSamples<'_>) -> bool {
    match samples.job.pattern.mix {
        OpMix::Only(op) => op != OpKind::Read,
        OpMix::ReadWrite { read_percent } => read_percent < 100,
    }
}

/// The parts of the latency of one I/O, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    op: OpKind,
    scheduler_ns: u64,
    device_ns: u64,
    rest_ns: u64,
}

impl Parts {
    /// Splits the latency of an I/O by its request that completed last.
    ///
    /// A request that this I/O joined may have been queued before: that time is not this I/O's.
    fn of(io: &SampledIo, last: &Request) -> Self {
        let total_ns = io.done_ns.saturating_sub(io.issued_ns);
        let dispatched_ns = last.dispatched_ns.max(io.issued_ns);
        let device_ns = last.completed_ns.saturating_sub(dispatched_ns).min(total_ns);
        let scheduler_ns = dispatched_ns.saturating_sub(last.queued_ns.max(io.issued_ns)).min(total_ns - device_ns);
        Self { op: io.op, scheduler_ns, device_ns, rest_ns: total_ns - device_ns - scheduler_ns }
    }

    /// Splits the latency of a call that waits for several requests, also those of a journal: while the driver had any request of the disks,
    /// while only the scheduler had one, and the rest.
    fn while_in_flight(io: &SampledIo, requests: &[Request]) -> Self {
        let total_ns = io.done_ns.saturating_sub(io.issued_ns);
        let within = |from: fn(&Request) -> u64| {
            let clipped = requests.iter().map(|one| (from(one).max(io.issued_ns), one.completed_ns.min(io.done_ns)));
            union_ns(clipped.collect())
        };
        let device_ns = within(|request| request.dispatched_ns);
        let scheduler_ns = within(|request| request.queued_ns) - device_ns;
        Self { op: io.op, scheduler_ns, device_ns, rest_ns: total_ns - device_ns - scheduler_ns }
    }
}

/// Columns and rows of the grid in which requests are counted.
const PLACE_COLUMNS: u64 = 40;
const PLACE_ROWS: u64 = 16;

/// Most of the requests, in percent, that may lie outside of the grid.
const OUTSIDE_PERCENT_MAX: usize = 2;

/// Returns the range in which the requests of a grid begin, the last one included: without at most [`OUTSIDE_PERCENT_MAX`] of them if
/// that makes it at most half as long. A single request of a journal at the other end of the disk would leave one row for all others.
/// What is at most a length of that range away belongs to it.
fn begins_of(mut begins: Vec<u64>) -> Option<(u64, u64)> {
    begins.sort_unstable();
    let whole = (*begins.first()?, *begins.last()?);
    let count = begins.len() - begins.len() * OUTSIDE_PERCENT_MAX / 100;
    let length = |(first, last): &(u64, u64)| last - first;
    let dense = begins.windows(count).map(|part| (part[0], part[count - 1])).min_by_key(length)?;
    if length(&dense) > length(&whole) / 2 {
        return Some(whole);
    }
    let (least, most) = (dense.0.saturating_sub(length(&dense)), dense.1.saturating_add(length(&dense)));
    let mut near = begins.into_iter().filter(|begin| (least..=most).contains(begin));
    let first = near.next()?;
    Some((first, near.next_back().unwrap_or(first)))
}

/// Counts the requests of the disk with the most of them by time and position.
fn places(traced: &PhaseTrace) -> Option<RequestPlaces> {
    let ranges = Ranges::of(traced);
    let all: Vec<(&Request, Party)> = traced
        .windows
        .iter()
        .flat_map(|window| ranges.requests(window))
        .map(|found| (found.request, found.party))
        .collect();
    let count_on = |device: u32| all.iter().filter(|(request, _)| request.device == device).count();
    let disk = traced.layers.disks.iter().max_by_key(|disk| count_on(disk.device))?;
    let on_disk = || all.iter().filter(|(request, _)| request.device == disk.device);
    let (begin_bytes, last_bytes) = begins_of(on_disk().map(|(request, _)| request.begin).collect())?;
    let is_inside = |request: &Request| (begin_bytes..=last_bytes).contains(&request.begin);
    let end_bytes = on_disk().filter(|(request, _)| is_inside(request)).map(|(request, _)| request.end).max()?;
    let begin_ns = traced.windows.first()?.begin_ns;
    let span_ns = traced.windows.last()?.end_ns.saturating_sub(begin_ns).max(1);
    let part = |of: u64, whole: u64, count: u64| {
        (u128::from(of) * u128::from(count) / u128::from(whole.max(1))).min(u128::from(count - 1)) as u32
    };
    let mut cells: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for (request, party) in on_disk().filter(|(request, _)| is_inside(request)) {
        let column = part(request.issued_ns.saturating_sub(begin_ns), span_ns, PLACE_COLUMNS);
        let row = part(request.begin - begin_bytes, end_bytes - begin_bytes, PLACE_ROWS);
        let cell = cells.entry(row * PLACE_COLUMNS as u32 + column).or_default();
        match party {
            Party::Ours | Party::Filesystem | Party::OwnElsewhere => cell.0 += 1,
            Party::Kernel | Party::Others => cell.1 += 1,
        }
    }
    Some(RequestPlaces {
        disk: disk.name.clone(),
        begin_bytes,
        end_bytes,
        span_ns,
        column_count: PLACE_COLUMNS as u32,
        row_count: PLACE_ROWS as u32,
        index: cells.keys().copied().collect(),
        outside_count: on_disk().filter(|(request, _)| !is_inside(request)).count() as u64,
        own_count: cells.values().map(|cell| cell.0).collect(),
        other_count: cells.values().map(|cell| cell.1).collect(),
    })
}

/// Returns the parts of all sampled I/Os of one operation; `None` if there is none.
fn parts_of(op: OpKind, all: &[Parts]) -> Option<LatencyParts> {
    let of: Vec<&Parts> = all.iter().filter(|parts| parts.op == op).collect();
    let times = |value: fn(&Parts) -> u64| {
        let mut sorted: Vec<u64> = of.iter().map(|parts| value(parts)).collect();
        sorted.sort_unstable();
        let at = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).clamp(1, sorted.len()) - 1];
        PartTimes { mean_ns: sorted.iter().sum::<u64>() / sorted.len() as u64, p50_ns: at(50), p99_ns: at(99) }
    };
    (!of.is_empty()).then(|| LatencyParts {
        op,
        io_count: of.len() as u64,
        total: times(|parts| parts.scheduler_ns + parts.device_ns + parts.rest_ns),
        scheduler: times(|parts| parts.scheduler_ns),
        device: times(|parts| parts.device_ns),
        rest: times(|parts| parts.rest_ns),
    })
}

/// The matching of a phase's samples, and its results so far.
struct Matching<'a, 'r> {
    traced: &'a PhaseTrace,
    /// True if any job of the phase writes.
    phase_writes: bool,
    record: &'r mut TraceRecord,
    parts: Vec<Parts>,
}

impl<'a> Matching<'a, '_> {
    fn assess_worker(&mut self, samples: &JobSamples<'a>, ios: &[SampledIo]) {
        let is_durable_at_once = samples.job.sync != SyncMode::None || samples.job.write_flags.dsync;
        // Writes of the present window that no sync call has followed yet, for each file.
        let mut waiting: BTreeMap<u16, Vec<&SampledIo>> = BTreeMap::new();
        let mut number = 0;
        for io in ios {
            if io.window != number {
                number = io.window;
                waiting.clear();
            }
            let window = self.traced.windows.iter().find(|window| window.number == number);
            // A window with a loss, on any processor, proves nothing.
            let is_known = |w: &&Window| w.lost_count == 0 && w.begin_ns <= io.issued_ns && io.done_ns <= w.end_ns;
            let Some(window) = window.filter(is_known) else { continue };
            let context = self.context(samples.job, window, io.file);
            match io.op {
                OpKind::Sync => {
                    self.parts.push(Parts::while_in_flight(io, &window.requests));
                    for write in waiting.remove(&io.file).unwrap_or_default() {
                        let found = context.as_ref().map(|seen| seen.durable(write, io.done_ns, samples.is_direct));
                        self.count_durable(found);
                    }
                }
                OpKind::Trim => {}
                OpKind::Read | OpKind::Write => {
                    let is_durable = io.op == OpKind::Write && is_durable_at_once;
                    if samples.is_direct {
                        let parts = self.count_transfer(context.as_ref().map(|seen| seen.transfer(io)));
                        self.parts.extend(parts.filter(|_| !is_durable));
                    }
                    if is_durable {
                        self.parts.push(Parts::while_in_flight(io, &window.requests));
                        let found = context.as_ref().map(|seen| seen.durable(io, io.done_ns, samples.is_direct));
                        self.count_durable(found);
                    } else if io.op == OpKind::Write {
                        waiting.entry(io.file).or_default().push(io);
                    }
                }
            }
        }
    }

    fn context(&self, job: &'a JobPlan, window: &'a Window, file: u16) -> Option<SampleContext<'a>> {
        let path = &job.files.get(usize::from(file))?.path;
        let extents = self.traced.files.iter().find(|file| file.path == *path)?;
        let may_move = extents.moves_on_write && self.phase_writes;
        Some(SampleContext { layers: &self.traced.layers, loops: &self.traced.loops, window, extents, may_move, path })
    }

    /// Notes that a layer does not report its hops: then it is unknown to whom the requests below it belong.
    fn note_unplaced(&mut self, why: Option<String>) {
        if let Some(why) = why {
            self.record.inseparable.get_or_insert(why);
        }
    }

    /// Returns the parts of the latency of a transfer that was found.
    fn count_transfer(&mut self, found: Option<Transfer>) -> Option<Parts> {
        let sum = &mut self.record.transfers;
        sum.sampled_count += 1;
        match found {
            Some(Transfer::Found { is_split, is_merged, parts, below }) => {
                sum.matched_count += 1;
                sum.split_count += u64::from(is_split);
                sum.merged_count += u64::from(is_merged);
                self.count_transfer_below(below);
                return Some(parts);
            }
            Some(Transfer::Missing(words)) => {
                sum.missing_count += 1;
                sum.missing_example.get_or_insert(words);
            }
            Some(Transfer::Unplaced(why)) => {
                sum.unplaced_count += 1;
                self.note_unplaced(why);
            }
            None => sum.unplaced_count += 1,
        }
        None
    }

    fn count_transfer_below(&mut self, found: Option<Reached>) {
        let (Some(below), Some(found)) = (&mut self.record.below, found) else { return };
        let sum = &mut below.transfers;
        sum.sampled_count += 1;
        match found {
            Reached::Yes => sum.matched_count += 1,
            Reached::Unknown => sum.unplaced_count += 1,
            Reached::Hole(words) => {
                sum.missing_count += 1;
                below.hole_count += 1;
                below.hole_example.get_or_insert(words);
            }
            Reached::No(words) | Reached::Unflushed(words) => {
                sum.missing_count += 1;
                sum.missing_example.get_or_insert(words);
            }
        }
    }

    fn count_flush_below(&mut self, found: Option<Reached>) {
        let (Some(below), Some(found)) = (&mut self.record.below, found) else { return };
        let sum = &mut below.syncs;
        sum.sampled_count += 1;
        match found {
            Reached::Yes => sum.flushed_count += 1,
            Reached::Unknown => sum.unplaced_count += 1,
            Reached::No(words) | Reached::Hole(words) => {
                sum.unwritten_count += 1;
                sum.failure_example.get_or_insert(words);
            }
            Reached::Unflushed(words) => {
                sum.unflushed_count += 1;
                sum.failure_example.get_or_insert(words);
            }
        }
    }

    fn count_durable(&mut self, found: Option<Durable>) {
        let sum = &mut self.record.syncs;
        sum.sampled_count += 1;
        match found {
            Some(Durable::Flushed { below }) => {
                sum.flushed_count += 1;
                self.count_flush_below(below);
            }
            Some(Durable::Fua { below }) => {
                sum.fua_count += 1;
                self.count_flush_below(below);
            }
            Some(Durable::Uncached { below }) => {
                sum.uncached_count += 1;
                self.count_flush_below(below);
            }
            Some(Durable::Unflushed(words)) => {
                sum.unflushed_count += 1;
                sum.failure_example.get_or_insert(words);
            }
            Some(Durable::Unwritten(words)) => {
                sum.unwritten_count += 1;
                sum.failure_example.get_or_insert(words);
            }
            Some(Durable::Unplaced(why)) => {
                sum.unplaced_count += 1;
                self.note_unplaced(why);
            }
            None => sum.unplaced_count += 1,
        }
    }
}

enum Transfer {
    Found {
        is_split: bool,
        is_merged: bool,
        parts: Parts,
        /// Where it was found below loop devices; `None` without one.
        below: Option<Reached>,
    },
    Missing(String),
    /// The reason, if it is a layer's.
    Unplaced(Option<String>),
}

enum Durable {
    Flushed {
        /// Where it was found below loop devices; `None` without one.
        below: Option<Reached>,
    },
    Fua {
        below: Option<Reached>,
    },
    Uncached {
        below: Option<Reached>,
    },
    Unflushed(String),
    Unwritten(String),
    /// The reason, if it is a layer's.
    Unplaced(Option<String>),
}

/// A sampled I/O's window and file.
struct SampleContext<'a> {
    layers: &'a Layers,
    loops: &'a Loops,
    window: &'a Window,
    extents: &'a FileExtents,
    /// True if the file's places may have changed more than once.
    may_move: bool,
    path: &'a str,
}

impl<'a> SampleContext<'a> {
    fn finder(&self) -> Finder<'a> {
        Finder { layers: self.layers, window: self.window }
    }

    /// See [`Finder::carried`].
    fn carried(&self, kind: Kind, ranges: &[(u64, u64)], span: (u64, u64)) -> Result<Option<Vec<Carrier<'a>>>, String> {
        self.finder().carried(kind, &self.extents.space, ranges, span)
    }

    fn transfer(&self, io: &SampledIo) -> Transfer {
        let Some((ranges, is_certain)) = self.extents.of_range(io.offset, u64::from(io.length)) else {
            return Transfer::Unplaced(None);
        };
        let kind = if io.op == OpKind::Read { Kind::Read } else { Kind::Write };
        let used = match self.carried(kind, &ranges, (io.issued_ns, io.done_ns)) {
            Ok(Some(used)) => used,
            Ok(None) if !is_certain || self.may_move => return Transfer::Unplaced(None),
            Ok(None) => return Transfer::Missing(self.missing(io, ranges[0].0)),
            Err(why) => return Transfer::Unplaced(Some(why)),
        };
        let Some(last) = used.last() else { return Transfer::Unplaced(None) };
        let is_whole = |one: &Carrier<'_>| ranges.iter().all(|(begin, end)| one.begin <= *begin && *end <= one.end);
        let requests: Vec<&Request> = used.iter().map(|one| one.request).collect();
        Transfer::Found {
            is_split: !used.iter().all(is_whole),
            is_merged: used.iter().any(|one| one.is_wider),
            parts: Parts::of(io, last.request),
            below: Below::new(self.loops, self.window).of_all(&requests),
        }
    }

    fn missing(&self, io: &SampledIo, address: u64) -> String {
        let SampledIo { op, length, offset, .. } = io;
        let took = (io.done_ns - io.issued_ns) / 1000;
        let what = match &self.extents.space {
            AddressSpace::Device(device) if self.layers.passes_on(*device) => {
                format!("{} did not pass it on to its disks", self.layers.name_of(*device))
            }
            AddressSpace::Device(_) => format!("no request for sector {} was traced in that time", address / 512),
            AddressSpace::Btrfs(_) => {
                format!("no request for its address {address} of the btrfs was traced in that time")
            }
        };
        format!("a {op} of {length} bytes at offset {offset} of `{}` took {took} µs, but {what}", self.path)
    }

    /// Returns whether a write was durable when its sync call returned.
    fn durable(&self, io: &SampledIo, returned_ns: u64, is_direct: bool) -> Durable {
        let Some((ranges, is_certain)) = self.extents.of_range(io.offset, u64::from(io.length)) else {
            return Durable::Unplaced(None);
        };
        // Data that was only copied to memory is written later, at the latest by the sync call.
        let written_by_ns = if is_direct { io.done_ns } else { returned_ns };
        let what = || format!("a write of {} bytes at offset {} of `{}`", io.length, io.offset, self.path);
        let used = match self.carried(Kind::Write, &ranges, (io.issued_ns, written_by_ns)) {
            Ok(Some(used)) => used,
            Ok(None) if !is_certain || self.may_move => return Durable::Unplaced(None),
            Ok(None) => {
                return Durable::Unwritten(format!("{} was reported durable, but no request had written it", what()));
            }
            Err(why) => return Durable::Unplaced(Some(why)),
        };
        let below = |by: &dyn Fn(&Request) -> DurableBy| {
            let requests: Vec<(&Request, DurableBy)> =
                used.iter().map(|carrier| (carrier.request, by(carrier.request))).collect();
            Below::new(self.loops, self.window).of_durable(&requests)
        };
        let at_return = DurableBy { until_ns: returned_ns + CLOCKS_DIFFER_NS, is_flushed: false };
        if used.iter().all(|carrier| carrier.request.flags.is_fua) {
            return Durable::Fua { below: below(&|_| at_return) };
        }
        let has_cache = |device| self.layers.disk(device).is_some_and(|disk| disk.has_volatile_cache);
        // Of each disk with a volatile cache: when the last of the data without forced unit access completed.
        let mut written: BTreeMap<u32, u64> = BTreeMap::new();
        for request in used.iter().map(|carrier| carrier.request).filter(|r| !r.flags.is_fua && has_cache(r.device)) {
            let last_ns = written.entry(request.device).or_default();
            *last_ns = request.completed_ns.max(*last_ns);
        }
        let Some(written_ns) = written.values().max().copied() else {
            return Durable::Uncached { below: below(&|_| at_return) };
        };
        let until_ns = returned_ns + CLOCKS_DIFFER_NS;
        let flush_of = |device: u32, from_ns| self.finder().flush_between(device, from_ns, until_ns);
        let flushes: Option<Vec<&Request>> =
            written.iter().map(|(device, written_ns)| flush_of(*device, *written_ns)).collect();
        if let Some(flushes) = flushes {
            let by = |request: &Request| {
                let flush = flushes.iter().find(|flush| flush.device == request.device);
                flush.map_or(at_return, |flush| DurableBy { until_ns: flush.completed_ns, is_flushed: true })
            };
            return Durable::Flushed { below: below(&by) };
        }
        Durable::Unflushed(format!(
            "{} was on the disk after {} µs and reported durable after {} µs, but no flush was issued and completed in \
             between",
            what(),
            written_ns.saturating_sub(io.issued_ns) / 1000,
            returned_ns.saturating_sub(io.issued_ns) / 1000
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::FileExtents;
    use crate::trace::attribution::tests::{disk, traced, window};
    use crate::trace::format::Flags;
    use crate::trace::layers::PassingDevice;
    use crate::trace::window::Remap;

    /// Goal: the parts of a latency add up to it, and each is where the time was.
    /// Method: a read of 100 µs: 5 µs before the scheduler, 15 µs in it, 70 µs in the device, 10 µs until the worker saw it. Then
    /// the same read joined a request that had been queued before it began; and one of two requests, of which the later counts.
    #[test]
    fn the_parts_of_a_latency_add_up_and_each_is_where_the_time_was() {
        let io = SampledIo {
            window: 1,
            op: OpKind::Read,
            file: 0,
            offset: 0,
            length: 8192,
            issued_ns: 1_000,
            done_ns: 101_000,
        };
        let request = |queued_ns, dispatched_ns, completed_ns| Request {
            queued_ns,
            issued_ns: dispatched_ns,
            dispatched_ns,
            completed_ns,
            ..window(0, 0).requests[0]
        };
        let parts = |scheduler_ns, device_ns, rest_ns| Parts { op: OpKind::Read, scheduler_ns, device_ns, rest_ns };
        let own = request(6_000, 21_000, 91_000);
        assert_eq!(Parts::of(&io, &own), parts(15_000, 70_000, 15_000));
        let joined = request(500, 21_000, 91_000);
        assert_eq!(Parts::of(&io, &joined), parts(20_000, 70_000, 10_000));
        let all = [parts(0, 60, 40), parts(10, 80, 10), parts(0, 70, 30)];
        let sum = parts_of(OpKind::Read, &all).expect("three reads");
        assert_eq!((sum.io_count, sum.total.mean_ns, sum.total.p50_ns, sum.total.p99_ns), (3, 100, 100, 100));
        assert_eq!((sum.device.mean_ns, sum.device.p50_ns, sum.device.p99_ns), (70, 70, 80));
        assert_eq!((sum.scheduler.mean_ns, sum.rest.p50_ns), (3, 30));
        assert_eq!(parts_of(OpKind::Write, &all), None);
    }

    /// Goal: of a sync call, the time in which the disk had nothing to do is not the disk's. Method: a call of 100 µs: data and a journal's write
    /// overlap from 10 to 40 µs, a flush waits from 50 to 55 and takes until 65, an older request ends at 5; one of the window is outside.
    #[test]
    fn a_sync_call_waits_for_the_disk_while_any_request_is_in_flight() {
        let (issued_ns, done_ns) = (1_000_000, 1_100_000);
        let io = SampledIo { window: 1, op: OpKind::Sync, file: 0, offset: 0, length: 0, issued_ns, done_ns };
        let request = |queued_us: u64, dispatched_us: u64, completed_us: u64| {
            let at = |us| 900_000 + us * 1_000;
            let (queued_ns, dispatched_ns, completed_ns) = (at(queued_us), at(dispatched_us), at(completed_us));
            Request { queued_ns, issued_ns: dispatched_ns, dispatched_ns, completed_ns, ..window(0, 0).requests[0] }
        };
        let requests = [
            request(80, 80, 105),
            request(110, 110, 130),
            request(120, 120, 140),
            request(150, 155, 165),
            request(10, 20, 30),
        ];
        let parts = Parts::while_in_flight(&io, &requests);
        assert_eq!((parts.device_ns, parts.scheduler_ns, parts.rest_ns), (45_000, 5_000, 50_000));
        let endless = [Request { completed_ns: u64::MAX, ..request(100, 100, 0) }];
        assert_eq!(Parts::while_in_flight(&io, &endless).device_ns, 100_000);
    }

    /// Goal: each request is counted once, in the cell of its time and position, and ours apart from others'.
    /// Method: two windows; ten reads at the start of the disk in each, and `dd` at 1 GiB in the second.
    #[test]
    fn requests_are_counted_by_time_and_position_and_ours_apart_from_others() {
        let places = places(&traced(vec![window(0, 0), window(1_000, 16)])).expect("requests");
        assert_eq!((places.disk.as_str(), places.begin_bytes, places.end_bytes), ("vda", 0, (1 << 30) + (16 << 16)));
        assert_eq!((places.span_ns, places.column_count, places.row_count), (1_010_000_000, 40, 16));
        // Ours in the first row, first and last column; `dd` in the last row and column.
        let (first, last, other) = (0, 39, 15 * 40 + 39);
        assert_eq!(
            (places.index, places.own_count, places.other_count),
            (vec![first, last, other], vec![10, 10, 0], vec![0, 0, 16])
        );
        assert_eq!(super::places(&traced(vec![])), None);
    }

    /// Goal: a single request far away does not leave one row for all others, and a neighbour's part of the requests stays.
    /// Method: 100 begins in 100 KiB and one at 1 TiB; three at 1 TiB; a range that one request makes a third longer.
    #[test]
    fn a_grid_of_requests_leaves_a_single_one_far_away_outside() {
        let near = || (0..100u64).map(|at| at * 1024);
        assert_eq!(begins_of(near().chain([1 << 40]).collect()), Some((0, 99 << 10)));
        assert_eq!(begins_of(near().chain([1 << 40; 3]).collect()), Some((0, 1 << 40)));
        assert_eq!(begins_of(near().chain([132 << 10]).collect()), Some((0, 132 << 10)));
        assert_eq!((begins_of(vec![7]), begins_of(vec![])), (Some((7, 7)), None));
        let mut window = window(0, 0);
        window.requests = window.requests.iter().cycle().take(99).cloned().collect();
        let end_bytes = window.requests.iter().map(|request| request.end).max().expect("some");
        let far = Request { begin: 1 << 40, end: (1 << 40) + 4096, ..window.requests[0] };
        window.requests.push(far);
        let places = super::places(&traced(vec![window])).expect("requests");
        assert_eq!((places.end_bytes, places.outside_count), (end_bytes, 1));
        assert_eq!(places.own_count.iter().chain(&places.other_count).sum::<u32>(), 99);
    }

    /// Returns a window in which a mirror (device 5) passed a write of 4 KiB at offset 0 on to two disks; on each the given flags of
    /// its request, and whether a flush followed.
    fn mirrored(disks: [(u32, Option<&str>, bool); 2]) -> PhaseTrace {
        let base = window(0, 0).requests[0];
        let mut window =
            Window { number: 1, begin_ns: 0, end_ns: 1_000, names: vec!["w".to_owned()], ..Window::default() };
        for (at_ns, (device, rwbs, has_flush)) in (10..).zip(disks) {
            window.remaps.push(Remap {
                at_ns,
                kind: Kind::Write,
                process: 1,
                from_device: 5,
                from_begin: 0,
                length: 4096,
                device,
                begin: 1 << 20,
            });
            let request = |flags: &str, begin: u64, length: u64, issued_ns| Request {
                device,
                begin,
                end: begin + length,
                flags: Flags::parse(flags.as_bytes()),
                queued_ns: issued_ns,
                issued_ns,
                dispatched_ns: issued_ns,
                completed_ns: issued_ns + 10,
                ..base
            };
            window.requests.extend(rwbs.map(|rwbs| request(rwbs, 1 << 20, 4096, 20 + u64::from(device))));
            window.requests.extend(has_flush.then(|| request("FF", 0, 0, 60 + u64::from(device))));
        }
        window.requests.sort_by_key(|request| request.issued_ns);
        let plain = traced(vec![window]);
        let layers = Layers {
            disks: vec![disk(1), disk(2)],
            passing: vec![PassingDevice { name: "md0".to_owned(), device: 5 }],
            ..Layers::default()
        };
        let files = plain.files.iter().map(|file| FileExtents { space: AddressSpace::Device(5), ..file.clone() });
        PhaseTrace { layers, files: files.collect(), ..plain }
    }

    /// Goal: a durable write to a mirror needs its data, and a flush after it, on every disk that the mirror named; a read needs one.
    #[test]
    fn a_write_to_a_mirror_must_be_found_and_flushed_on_every_disk() {
        let write =
            SampledIo { window: 1, op: OpKind::Write, file: 0, offset: 0, length: 4096, issued_ns: 5, done_ns: 200 };
        let judge = |trace: &PhaseTrace| {
            let context = SampleContext {
                layers: &trace.layers,
                loops: &trace.loops,
                window: &trace.windows[0],
                extents: &trace.files[0],
                may_move: false,
                path: "file",
            };
            let found = match context.transfer(&write) {
                Transfer::Found { is_split, .. } => format!("found {is_split}"),
                Transfer::Missing(why) => why,
                Transfer::Unplaced(why) => format!("unplaced {why:?}"),
            };
            let durable = match context.durable(&write, 200, true) {
                Durable::Flushed { .. } => "flushed",
                Durable::Fua { .. } => "fua",
                Durable::Uncached { .. } => "uncached",
                Durable::Unflushed(_) => "unflushed",
                Durable::Unwritten(_) => "unwritten",
                Durable::Unplaced(_) => "unplaced",
            };
            (found, durable)
        };
        let found = || "found false".to_owned();
        assert_eq!(judge(&mirrored([(1, Some("WS"), true), (2, Some("WS"), true)])), (found(), "flushed"));
        assert_eq!(judge(&mirrored([(1, Some("WFS"), false), (2, Some("WFS"), false)])), (found(), "fua"));
        assert_eq!(judge(&mirrored([(1, Some("WFS"), false), (2, Some("WS"), true)])), (found(), "flushed"));
        assert_eq!(judge(&mirrored([(1, Some("WS"), true), (2, Some("WS"), false)])), (found(), "unflushed"));
        let (why, durable) = judge(&mirrored([(1, Some("WS"), true), (2, None, true)]));
        assert!(why.contains("md0 did not pass it on to its disks"), "{why}");
        assert_eq!(durable, "unwritten");
        let mut silent = mirrored([(1, Some("WS"), true), (2, Some("WS"), true)]);
        silent.windows[0].remaps.clear();
        assert!(judge(&silent).0.contains("md0 does not report"), "no hop is known: that is no accusation");
        // All requests below the mirror are ours, though its disks have no file.
        let both = mirrored([(1, Some("WS"), true), (2, Some("WS"), true)]);
        let mut record = TraceRecord::default();
        attribute(&both, &mut record);
        assert_eq!((record.ours.count, record.others.count + record.own_elsewhere.count), (2, 0));
    }
}
