//! Follows requests of loop devices to the disks of their files.
//!
//! A request is found below if requests of its direction to the file's places on the disks were issued and completed within it. A flush of a
//! loop device must have flushed the disks below, if they have a volatile cache, after the data and before it completed. A loop device that
//! declares no volatile cache gets no flush: what its user was told is durable must be so below when the call returns.
//!
//! What the file has no place for when the phase ends, a read finds in a hole, which no disk stores.
//!
//! Cannot see: what a buffered loop device reads ahead or serves from memory; such requests are missing below, which the record counts.

use super::carriers::Finder;
use super::format::Kind;
use super::loops::Loops;
use super::window::{Request, Window};

/// Where the data of requests of a loop device was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reached {
    /// On the disks of its file, and flushed there if that was asked.
    Yes,
    /// On no disk. A description.
    No(String),
    /// On no disk, because the file has a hole there. A description.
    Hole(String),
    /// On the disks of its file, and not flushed there. A description.
    Unflushed(String),
    /// The place of a part is unknown.
    Unknown,
}

impl Reached {
    /// Returns the worse one.
    fn and(self, other: Self) -> Self {
        let rank = |one: &Self| match one {
            Self::No(_) | Self::Hole(_) => 3,
            Self::Unflushed(_) => 2,
            Self::Unknown => 1,
            Self::Yes => 0,
        };
        if rank(&other) > rank(&self) { other } else { self }
    }
}

/// When written data must be durable on the disks below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DurableBy {
    pub(crate) until_ns: u64,
    /// True if the loop device completed a flush at that time; false if it declares no volatile cache, or the data carried forced unit access.
    pub(crate) is_flushed: bool,
}

/// The disks below the loop devices of a window.
#[derive(Clone, Copy)]
pub(crate) struct Below<'a> {
    loops: &'a Loops,
    window: &'a Window,
}

impl<'a> Below<'a> {
    pub(crate) fn new(loops: &'a Loops, window: &'a Window) -> Self {
        Self { loops, window }
    }

    /// Returns where the data of requests was found below; `None` if none is of a loop device, or the window has no more requests from below
    /// at that time.
    pub(crate) fn of_all(&self, requests: &[&Request]) -> Option<Reached> {
        self.is_known(requests)?;
        self.all(requests.iter().map(|request| (*request, None)))
    }

    /// The same for writes, each with the time at which it had to be durable.
    pub(crate) fn of_durable(&self, requests: &[(&Request, DurableBy)]) -> Option<Reached> {
        let writes: Vec<&Request> = requests.iter().map(|(request, _)| *request).collect();
        self.is_known(&writes)?;
        let is_in_time = requests.iter().all(|(_, durable)| durable.until_ns <= self.window.below_until_ns);
        is_in_time.then_some(())?;
        self.all(requests.iter().map(|(request, durable)| (*request, Some(*durable))))
    }

    fn all<'r>(&self, requests: impl Iterator<Item = (&'r Request, Option<DurableBy>)>) -> Option<Reached> {
        let of = |(request, durable): (&Request, Option<DurableBy>)| {
            if self.loops.unknown.contains(&request.device) { Reached::Unknown } else { self.of(request, durable) }
        };
        requests.map(of).reduce(Reached::and)
    }

    fn is_known(&self, requests: &[&Request]) -> Option<()> {
        let has_loop = requests.iter().any(|request| self.loops.has(request.device));
        let is_in_time = requests.iter().all(|request| request.completed_ns <= self.window.below_until_ns);
        (has_loop && is_in_time).then_some(())
    }

    fn of(&self, request: &Request, durable: Option<DurableBy>) -> Reached {
        // Also a loop device below another one whose own file is unknown: it is one of the named disks.
        let Some(file) = self.loops.file_of(request.device) else { return Reached::Yes };
        let begin = file.offset_bytes + request.begin;
        let is_hole = request.flags.kind == Kind::Read && file.is_hole_after(begin, request.end - request.begin);
        let hole = || {
            Reached::Hole(format!(
                "a read of {} bytes at byte {} of {} completed without a disk: `{}` has a hole there",
                request.end - request.begin,
                request.begin,
                file.name,
                file.extents.path
            ))
        };
        let Some((ranges, is_certain)) = file.extents.of_range(begin, request.end - request.begin) else {
            return if is_hole { hole() } else { Reached::Unknown };
        };
        let finder = Finder { layers: &self.loops.layers, window: self.window };
        let until_ns = durable.map_or(request.completed_ns, |durable| durable.until_ns);
        let span = (request.issued_ns, until_ns);
        let used = match finder.carried(request.flags.kind, &file.extents.space, &ranges, span) {
            Ok(Some(used)) => used,
            Ok(None) if is_certain && !file.extents.moves_on_write => {
                return Reached::No(format!(
                    "a request of {} bytes for byte {} of {} completed, but no request for its place in `{}` was traced on {} in that \
                     time",
                    request.end - request.begin,
                    request.begin,
                    file.name,
                    file.extents.path,
                    self.disks()
                ));
            }
            // It was punched during the phase, and read afterwards.
            Ok(None) if is_hole => return hole(),
            Ok(None) | Err(_) => return Reached::Unknown,
        };
        let mut reached = Reached::Yes;
        for below in used.iter().map(|carrier| carrier.request) {
            let needs_flush = !below.flags.is_fua && self.has_cache(below.device);
            let Some(by) = durable.filter(|_| needs_flush) else {
                reached = reached.and(self.of(below, durable.map(|by| DurableBy { is_flushed: false, ..by })));
                continue;
            };
            let Some(flushed) = finder.flush_between(below.device, below.completed_ns, by.until_ns) else {
                let (length, begin) = (request.end - request.begin, request.begin);
                let disk = self.loops.layers.name_of(below.device);
                let name = &file.name;
                return Reached::Unflushed(match by.is_flushed {
                    true => format!(
                        "{name} completed a flush after a write of {length} bytes at its byte {begin}, but {disk} received \
                         none after the data"
                    ),
                    false => format!(
                        "{name} declares no volatile cache and completed a write of {length} bytes at its byte {begin}, but \
                         {disk} below received no flush after the data"
                    ),
                });
            };
            reached = reached.and(self.of(below, Some(DurableBy { until_ns: flushed.completed_ns, is_flushed: true })));
        }
        reached
    }

    fn has_cache(&self, device: u32) -> bool {
        self.loops.layers.disk(device).is_some_and(|disk| disk.has_volatile_cache)
    }

    /// Returns the names of the disks below that are no loop devices.
    fn disks(&self) -> String {
        names_of_disks(self.loops).join(", ")
    }
}

/// Returns the names of the disks below loop devices that are no loop devices with a known file.
pub(crate) fn names_of_disks(loops: &Loops) -> Vec<String> {
    let disks = loops.layers.disks.iter().filter(|disk| loops.file_of(disk.device).is_none());
    disks.map(|disk| disk.name.clone()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::trace::extents::{FileExtents, MappedExtent};
    use crate::trace::format::Flags;
    use crate::trace::layers::{Layers, TracedDisk};
    use crate::trace::loops::LoopFile;
    use crate::trace::places::AddressSpace;

    const LOOP: u32 = 7 << 20;
    pub(crate) const DISK: u32 = 8 << 20;

    fn request(device: u32, rwbs: &str, begin: u64, length: u64, (issued_ns, completed_ns): (u64, u64)) -> Request {
        Request {
            device,
            begin,
            end: begin + length,
            flags: Flags::parse(rwbs.as_bytes()),
            is_own: false,
            is_rank: false,
            is_kernel: false,
            process: 0,
            name: 0,
            queued_ns: issued_ns,
            issued_ns,
            dispatched_ns: issued_ns,
            is_requeued: false,
            completed_ns,
            has_failed: false,
        }
    }

    /// A loop device that begins 1 MiB into its file, which is at 512 MiB of a disk with a volatile cache, in one piece.
    pub(crate) fn loops() -> Loops {
        let extents = vec![MappedExtent { logical: 0, physical: 512 << 20, length: 64 << 20 }];
        let disk = TracedDisk {
            name: "sda".to_owned(),
            device: DISK,
            has_volatile_cache: true,
            has_scheduler: false,
            has_paths: false,
        };
        Loops {
            files: vec![LoopFile {
                name: "loop0".to_owned(),
                device: LOOP,
                offset_bytes: 1 << 20,
                extents: FileExtents {
                    path: "/image".to_owned(),
                    space: AddressSpace::Device(DISK),
                    moves_on_write: false,
                    before: extents.clone(),
                    after: extents,
                },
                is_mapped: true,
            }],
            layers: Layers { disks: vec![disk], ..Layers::default() },
            ..Loops::default()
        }
    }

    fn window(below: Vec<Request>) -> Window {
        Window { below, below_until_ns: u64::MAX, ..Window::default() }
    }

    pub(crate) const PLACE: u64 = (512 << 20) + (1 << 20) + 8192;

    #[test]
    fn a_read_of_a_loop_device_is_found_at_its_files_place_and_in_its_time_only() {
        let loops = loops();
        let read = request(LOOP, "R", 8192, 4096, (10_000, 90_000));
        let seen = |below: Vec<Request>| Below::new(&loops, &window(below)).of_all(&[&read]);
        assert_eq!(seen(vec![request(DISK, "R", PLACE, 4096, (20_000, 80_000))]), Some(Reached::Yes));
        // As a part of a larger request, and in two parts.
        assert_eq!(seen(vec![request(DISK, "R", PLACE - 4096, 16_384, (20_000, 80_000))]), Some(Reached::Yes));
        let half = |n: u64, at| request(DISK, "R", PLACE + n * 2048, 2048, at);
        assert_eq!(seen(vec![half(0, (20_000, 30_000)), half(1, (25_000, 40_000))]), Some(Reached::Yes));
        for missing in [
            vec![],
            vec![request(DISK, "R", PLACE + (1 << 20), 4096, (20_000, 80_000))],
            vec![request(DISK, "W", PLACE, 4096, (20_000, 80_000))],
            vec![request(DISK, "R", PLACE, 4096, (20_000, 190_000))],
            vec![half(0, (20_000, 30_000))],
        ] {
            let Some(Reached::No(why)) = seen(missing) else { panic!("it is not there") };
            assert!(why.contains("byte 8192 of loop0") && why.contains("`/image` was traced on sda"), "{why}");
        }
        // A request that ended after the last known one from below, and one of another disk, say nothing.
        let early = Window { below_until_ns: 50_000, ..window(vec![]) };
        assert_eq!(Below::new(&loops, &early).of_all(&[&read]), None);
        let other = request(DISK, "R", 0, 4096, (10_000, 90_000));
        assert_eq!(Below::new(&loops, &window(vec![])).of_all(&[&other]), None);
    }

    #[test]
    fn bytes_without_a_certain_place_are_unknown_and_not_missing() {
        let read = request(LOOP, "R", 8192, 4096, (10_000, 90_000));
        let seen = |loops: &Loops| Below::new(loops, &window(vec![])).of_all(&[&read]);
        let mut sparse = loops();
        sparse.files[0].extents.before = vec![];
        assert_eq!(seen(&sparse), Some(Reached::Unknown), "its space came during the phase");
        sparse.files[0].extents.after = vec![];
        let Some(Reached::Hole(why)) = seen(&sparse) else { panic!("a hole") };
        assert!(why.contains("byte 8192 of loop0") && why.contains("`/image` has a hole there"), "{why}");
        let write = request(LOOP, "W", 8192, 4096, (10_000, 90_000));
        let written = Below::new(&sparse, &window(vec![])).of_all(&[&write]);
        assert_eq!(written, Some(Reached::Unknown), "a write gives it a place");
        sparse.files[0].is_mapped = false;
        assert_eq!(seen(&sparse), Some(Reached::Unknown), "the places at the end are unknown");
        let mut punched = loops();
        punched.files[0].extents.after = vec![];
        assert!(matches!(seen(&punched), Some(Reached::Hole(_))), "read after it was punched");
        let before = vec![request(DISK, "R", PLACE, 4096, (20_000, 80_000))];
        assert_eq!(Below::new(&punched, &window(before)).of_all(&[&read]), Some(Reached::Yes), "read before it was");
        let mut copied = loops();
        copied.files[0].extents.moves_on_write = true;
        assert_eq!(seen(&copied), Some(Reached::Unknown), "copy on write");
        let unknown = Loops { unknown: vec![LOOP], ..Loops::default() };
        assert_eq!(seen(&unknown), Some(Reached::Unknown));
    }

    /// Goal: a flush of a loop device counts only if it became one of the disk below, after the data.
    #[test]
    fn a_flush_of_a_loop_device_must_flush_the_disk_below_after_the_data() {
        let loops = loops();
        let write = request(LOOP, "WS", 8192, 4096, (10_000, 50_000));
        let flush = request(LOOP, "FF", 0, 0, (60_000, 90_000));
        let data = |at| request(DISK, "WS", PLACE, 4096, at);
        let below_flush = |at| request(DISK, "FF", 0, 0, at);
        let by = DurableBy { until_ns: flush.completed_ns, is_flushed: true };
        let seen = |below: Vec<Request>| Below::new(&loops, &window(below)).of_durable(&[(&write, by)]);
        assert_eq!(seen(vec![data((20_000, 30_000)), below_flush((65_000, 80_000))]), Some(Reached::Yes));
        // The page cache of the file may write it out as late as during the flush.
        assert_eq!(seen(vec![data((61_000, 63_000)), below_flush((65_000, 80_000))]), Some(Reached::Yes));
        for late in [vec![], vec![below_flush((25_000, 80_000))], vec![below_flush((65_000, 95_000))]] {
            let all: Vec<Request> = std::iter::once(data((20_000, 30_000))).chain(late).collect();
            let Some(Reached::Unflushed(why)) = seen(all) else { panic!("not flushed") };
            assert!(why.contains("loop0 completed a flush") && why.contains("but sda received none"), "{why}");
        }
        assert!(matches!(seen(vec![below_flush((65_000, 80_000))]), Some(Reached::No(_))));
        let mut uncached = loops.clone();
        uncached.layers.disks[0].has_volatile_cache = false;
        let window = window(vec![data((20_000, 30_000))]);
        assert_eq!(Below::new(&uncached, &window).of_durable(&[(&write, by)]), Some(Reached::Yes));
        // Direct writes with forced unit access.
        let fua = request(DISK, "WFS", PLACE, 4096, (20_000, 30_000));
        let window = self::window(vec![fua]);
        assert_eq!(Below::new(&loops, &window).of_durable(&[(&write, by)]), Some(Reached::Yes));
    }

    /// Goal: data on a loop device that declares no volatile cache, which gets no flush, is durable only if the disk below flushed it before
    /// the call returned; so is data below a second such device.
    #[test]
    fn what_a_loop_device_without_a_declared_cache_completed_must_be_flushed_below() {
        let loops = loops();
        let write = request(LOOP, "WS", 8192, 4096, (10_000, 50_000));
        let by = DurableBy { until_ns: 60_000, is_flushed: false };
        let data = || request(DISK, "WS", PLACE, 4096, (20_000, 30_000));
        let seen = |below: Vec<Request>| Below::new(&loops, &window(below)).of_durable(&[(&write, by)]);
        let Some(Reached::Unflushed(why)) = seen(vec![data()]) else { panic!("not flushed") };
        assert!(
            why.contains("loop0 declares no volatile cache") && why.contains("sda below received no flush"),
            "{why}"
        );
        let flush = |at| request(DISK, "FF", 0, 0, at);
        assert!(matches!(seen(vec![data(), flush((35_000, 65_000))]), Some(Reached::Unflushed(_))), "too late");
        assert_eq!(seen(vec![data(), flush((35_000, 55_000))]), Some(Reached::Yes));
        assert!(matches!(seen(vec![]), Some(Reached::No(_))), "the data is in the page cache of the file");
        // A second loop device between them, which declares no cache either.
        let upper = 7 << 20 | 1;
        let mut nested = loops.clone();
        let mut file = nested.files[0].clone();
        (file.name, file.device, file.offset_bytes) = ("loop1".to_owned(), upper, 0);
        file.extents.space = AddressSpace::Device(LOOP);
        file.extents.before[0].physical = 0;
        file.extents.after[0].physical = 0;
        nested.files.push(file);
        let middle = TracedDisk {
            name: "loop0".to_owned(),
            device: LOOP,
            has_volatile_cache: false,
            ..nested.layers.disks[0].clone()
        };
        nested.layers.disks.push(middle);
        let write = request(upper, "WS", 8192, 4096, (5_000, 55_000));
        let seen = |below: Vec<Request>| Below::new(&nested, &window(below)).of_durable(&[(&write, by)]);
        let through = || request(LOOP, "WS", 8192, 4096, (10_000, 50_000));
        assert!(matches!(seen(vec![through(), data()]), Some(Reached::Unflushed(_))));
        assert_eq!(seen(vec![through(), data(), flush((35_000, 55_000))]), Some(Reached::Yes));
    }
}
