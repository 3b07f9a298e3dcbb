//! Attributes traced requests: to the job, the filesystem, the kernel, or other programs by name, direction and disk.
//!
//! A request in the measured files is the job's, unless another program submitted it itself: that one is a neighbour. Threads of the kernel
//! (`kworker`) and of filesystems (`jbd2`) submit requests for others, in the measured files for the job.
//!
//! What threads of the kernel submitted is named by what they do: the programs whose dirty pages are written back are named where events of
//! those pages show them ([`super::write_back`]).
//!
//! Cannot see: who dirtied pages before the trace; requests between windows. Sums are what was seen, and not scaled.

use super::extents::FileExtents;
use super::format::Kind;
use super::layers::Layers;
use super::phase_trace::PhaseTrace;
use super::places::{AddressSpace, Hops};
use super::window::{Request, Window};
use super::write_back::{DirtiedFile, Dirtiers, PageFile};
use std::collections::BTreeMap;
use trueio_model::units::format_bytes;
use trueio_model::{Cause, DisturbedSpan, RequestSum, TraceRecord, TracedProcess};

/// Maximum number of names of other processes that are kept.
const NAMES_MAX: usize = 4;

const OTHERS_COUNT_MIN: u64 = 8;
const OTHERS_BYTES_MIN: u64 = 1 << 20;
const OTHERS_SHARE_MAX: f64 = 0.05;

/// A request, and to whom it belongs.
pub(super) struct Attributed<'w> {
    pub(super) request: &'w Request,
    /// Its thread.
    name: &'w str,
    pub(super) party: Party,
    /// True if it is in the measured files.
    is_in_files: bool,
    /// True if a thread of the kernel submitted it.
    is_of_kernel: bool,
}

/// To whom a request belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    Ours,
    Filesystem,
    OwnElsewhere,
    Kernel,
    Others,
}

/// The ranges of our files: on disks, and on devices that pass I/O on. They are joined, so that only the last one that begins
/// before a request can contain it.
pub(super) struct Ranges<'a> {
    layers: &'a Layers,
    of_files: Vec<(u32, u64, u64)>,
    runs_programs: bool,
}

/// Sorts ranges and joins those that overlap.
fn joined(mut ranges: Vec<(u32, u64, u64)>) -> Vec<(u32, u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u32, u64, u64)> = Vec::new();
    for (device, begin, end) in ranges {
        match joined.last_mut() {
            Some(last) if last.0 == device && begin <= last.2 => last.2 = last.2.max(end),
            _ => joined.push((device, begin, end)),
        }
    }
    joined
}

/// Returns the ranges of files, sorted and joined.
pub(super) fn ranges_of<'f>(files: impl Iterator<Item = &'f FileExtents>) -> Vec<(u32, u64, u64)> {
    let mut ranges: Vec<(u32, u64, u64)> = Vec::new();
    for file in files {
        for (begin, end) in file.ranges() {
            match &file.space {
                AddressSpace::Device(device) => ranges.push((*device, begin, end)),
                AddressSpace::Btrfs(chunks) => {
                    let pieces = chunks.pieces(begin, end).unwrap_or_default();
                    ranges.extend(pieces.iter().map(|piece| (piece.device, piece.begin, piece.end())));
                }
            }
        }
    }
    joined(ranges)
}

/// Returns true if a request touches one of some ranges, which are sorted and joined.
pub(super) fn contains(ranges: &[(u32, u64, u64)], request: &Request) -> bool {
    let next = ranges.partition_point(|range| (range.0, range.1) < (request.device, request.end));
    next > 0 && ranges[next - 1].0 == request.device && ranges[next - 1].2 > request.begin
}

impl<'a> Ranges<'a> {
    pub(super) fn of(traced: &'a PhaseTrace) -> Self {
        Self { layers: &traced.layers, of_files: ranges_of(traced.files.iter()), runs_programs: traced.runs_programs }
    }

    /// Returns the data requests issued within a window, and to whom they belong. Those in the measured files are ours, unless another program
    /// submitted them itself; threads of the kernel and of filesystems may have done so for us.
    pub(super) fn requests<'w>(&self, window: &'w Window) -> Vec<Attributed<'w>> {
        let below = Hops { layers: self.layers, window }.below(&self.of_files);
        let below = joined(below);
        let within = |request: &&Request| (window.begin_ns..window.end_ns).contains(&request.issued_ns);
        let requests = window.requests.iter().filter(within).filter(|request| request.end > request.begin);
        let attributed = requests.map(|request| {
            let name = window.names[usize::from(request.name)].as_str();
            let is_in_files = contains(&self.of_files, request) || contains(&below, request);
            let is_of_kernel = request.is_kernel || is_of_kernel(name);
            let is_of_filesystem = request.flags.is_metadata || is_of_filesystem(name);
            let is_for_us = is_of_kernel || is_of_filesystem || self.runs_programs;
            let may_be_ours = request.is_own || request.is_rank || is_for_us;
            let party = if is_in_files && may_be_ours {
                Party::Ours
            } else if is_of_filesystem {
                Party::Filesystem
            } else if request.is_own || request.is_rank {
                Party::OwnElsewhere
            } else if is_of_kernel {
                Party::Kernel
            } else {
                Party::Others
            };
            Attributed { request, name, party, is_in_files, is_of_kernel }
        });
        attributed.collect()
    }
}

/// Attributes each request to the job, the filesystem, the kernel or other processes.
pub(super) fn attribute(traced: &PhaseTrace, record: &mut TraceRecord) {
    let ranges = Ranges::of(traced);
    let mut seen = Seen::default();
    for window in &traced.windows {
        let mut busy: Vec<(u64, u64)> = Vec::new();
        for attributed in ranges.requests(window) {
            let Attributed { request, party, is_of_kernel, .. } = attributed;
            seen.add(&attributed);
            let sum = match party {
                Party::Ours => {
                    if is_of_kernel {
                        add(&mut record.ours_by_kernel, request);
                    }
                    &mut record.ours
                }
                Party::Filesystem => &mut record.filesystem,
                Party::OwnElsewhere => &mut record.own_elsewhere,
                Party::Kernel => &mut record.unattributed,
                Party::Others => &mut record.others,
            };
            add(sum, request);
            if matches!(party, Party::Kernel | Party::Others) {
                busy.push((request.issued_ns, request.completed_ns.min(window.end_ns)));
            }
        }
        record.others_busy_ns += union_ns(busy);
    }
    // What others did outside of the drawn windows is named and counts for no sum.
    let (count, bytes) =
        (record.others.count + record.unattributed.count, record.others.bytes + record.unattributed.bytes);
    let is_seen = count >= OTHERS_COUNT_MIN || bytes >= OTHERS_BYTES_MIN;
    let windows = if is_seen { traced.windows.iter().collect() } else { traced.all_windows() };
    for window in windows.iter().filter(|window| window.is_asked) {
        ranges.requests(window).iter().for_each(|attributed| seen.add(attributed));
    }
    record.other_processes = busiest_first(seen.processes(traced));
    record.kernel_work = busiest_first(seen.kernel_work(traced));
    record.write_back = busiest_first(written_back(traced, &windows));
}

/// What other programs and the kernel's threads were seen to do.
#[derive(Default)]
struct Seen<'w> {
    /// By name, process and disk.
    processes: BTreeMap<(&'w str, i32, u32), TracedProcess>,
    /// By work and disk.
    kernel: BTreeMap<(&'static str, u32), TracedProcess>,
}

impl<'w> Seen<'w> {
    fn add(&mut self, attributed: &Attributed<'w>) {
        let Attributed { request, name, party, is_in_files, .. } = *attributed;
        let sum = match party {
            Party::Kernel => self.kernel.entry((work_of(name, request.flags.kind), request.device)).or_default(),
            Party::Others => self.processes.entry((name, request.process, request.device)).or_default(),
            _ => return,
        };
        add_to_process(sum, request, is_in_files);
    }

    fn processes(&self, traced: &PhaseTrace) -> Vec<TracedProcess> {
        let named = self.processes.iter().map(|(&(name, process, device), sum)| TracedProcess {
            name: name.to_owned(),
            process,
            disk: traced.layers.name_of(device).to_owned(),
            has_ended: traced.ended.contains(&process),
            ..sum.clone()
        });
        named.collect()
    }

    fn kernel_work(&self, traced: &PhaseTrace) -> Vec<TracedProcess> {
        let named = self.kernel.iter().map(|(&(work, device), sum)| TracedProcess {
            name: work.to_owned(),
            disk: traced.layers.name_of(device).to_owned(),
            ..sum.clone()
        });
        named.collect()
    }
}

pub(super) fn busiest_first(mut processes: Vec<TracedProcess>) -> Vec<TracedProcess> {
    processes.sort_by_key(|process| std::cmp::Reverse(process.read_bytes + process.write_bytes));
    processes.truncate(NAMES_MAX);
    processes
}

/// Returns the programs whose dirty pages the kernel wrote back to the disks of a trace, and those that dirtied pages of the measured files: these may be
/// written by the job's own threads, whose direct I/O to the same place waits for it. Of the measured files only what drawn windows saw counts.
fn written_back(traced: &PhaseTrace, windows: &[&Window]) -> Vec<TracedProcess> {
    let mut dirtiers = Dirtiers::default();
    let mut sums: BTreeMap<(String, i32, u32), TracedProcess> = BTreeMap::new();
    for window in windows {
        let pages = &window.pages;
        let is_measured = |file: &PageFile, device: u32| {
            traced.inodes.iter().any(|(disks, inode)| *inode == file.inode && disks.contains(&device))
        };
        let written_back = dirtiers.written_back(pages);
        let written = written_back.iter().map(|dirtied| (dirtied, false));
        // The program may be that of a job.
        let counts_in_files = !traced.runs_programs && !window.is_asked;
        let in_files = pages.dirtied.iter().filter(|_| counts_in_files).map(|dirtied| (dirtied, true));
        for (DirtiedFile { file, process, name, bytes }, is_in_files) in written.chain(in_files) {
            let below = traced.backing.get(&file.backing).into_iter().flatten().copied();
            let ours = below.filter(|device| traced.layers.disk(*device).is_some());
            for device in ours.filter(|device| is_measured(file, *device) == is_in_files) {
                let sum = sums.entry((name.clone(), *process, device)).or_default();
                sum.write_bytes += bytes;
                sum.in_files_bytes += if is_in_files { *bytes } else { 0 };
            }
        }
    }
    let named = sums.into_iter().map(|((name, process, device), sum)| TracedProcess {
        name,
        process,
        disk: traced.layers.name_of(device).to_owned(),
        has_ended: traced.ended.contains(&process),
        ..sum
    });
    named.collect()
}

/// What threads of the kernel write for programs.
pub(crate) const WRITE_BACK: &str = "write-back of dirty pages";

/// Returns what a thread of the kernel does when it submits a request, by its name and the request.
pub(super) fn work_of(name: &str, kind: Kind) -> &'static str {
    let named = [
        ("jbd2/", "the journal of ext4"),
        ("xfsaild/", "the log of XFS"),
        ("xfs-", "the log of XFS"),
        ("btrfs-", "trees of btrfs"),
        ("dmcrypt_write", "encrypted writes of dm-crypt"),
        ("kswapd", "swapping"),
        ("md", "an array of md"),
    ];
    let found = named.iter().find(|(begin, _)| name.starts_with(begin));
    match (found, kind) {
        (Some((_, work)), _) => work,
        (None, Kind::Write) => WRITE_BACK,
        (None, Kind::Read) => "reads of the kernel for others",
        (None, Kind::Discard) => "discards of a filesystem",
        (None, Kind::Flush | Kind::Other) => "flushes",
    }
}

/// Returns true if a process or thread has ended.
pub(super) fn ended(number: i32) -> bool {
    let process = rustix::process::Pid::from_raw(number);
    process.is_some_and(|process| matches!(rustix::process::test_kill_process(process), Err(rustix::io::Errno::SRCH)))
}

pub(super) fn add_to_process(process: &mut TracedProcess, request: &Request, is_in_files: bool) {
    let bytes = request.end - request.begin;
    match request.flags.kind {
        Kind::Read => process.read_bytes += bytes,
        _ => process.write_bytes += bytes,
    }
    process.in_files_bytes += if is_in_files { bytes } else { 0 };
}

/// Returns the time that spans cover together.
pub(super) fn union_ns(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (begin, end) in spans {
        sum += end.saturating_sub(begin.max(until));
        until = until.max(end);
    }
    sum
}

/// Returns the times from the first to the last of successive windows in which other programs made a considerable part of
/// the requests, since the measured part began.
///
/// Thresholds, for each window: at least [`OTHERS_COUNT_MIN`] requests or [`OTHERS_BYTES_MIN`], and 5 % of all
/// requests or bytes.
pub(crate) fn others_in(traced: &PhaseTrace) -> Vec<DisturbedSpan> {
    let Some(first) = traced.windows.first().filter(|_| traced.inseparable.is_none()) else { return Vec::new() };
    let ranges = Ranges::of(traced);
    let mut spans: Vec<DisturbedSpan> = Vec::new();
    let mut growing: Option<(u64, u64, BTreeMap<&str, TracedProcess>)> = None;
    let finish = |(from_ns, until_ns, names): (u64, u64, BTreeMap<&str, TracedProcess>)| {
        let busiest = names.into_iter().max_by_key(|(_, sum)| sum.read_bytes + sum.write_bytes);
        let (name, sum) = busiest.map_or_else(|| ("others", TracedProcess::default()), |(name, sum)| (name, sum));
        DisturbedSpan {
            from_ns: from_ns - first.begin_ns,
            until_ns: until_ns - first.begin_ns,
            cause: Cause::Neighbour,
            what: format!("{name} {} in the traced windows", moved_words(&sum)),
        }
    };
    for window in traced.all_windows() {
        let (mut all, mut others) = (RequestSum::default(), RequestSum::default());
        let mut names: BTreeMap<&str, TracedProcess> = BTreeMap::new();
        for Attributed { request, name, party, is_in_files, .. } in ranges.requests(window) {
            add(&mut all, request);
            if party == Party::Others {
                add(&mut others, request);
                add_to_process(names.entry(name).or_default(), request, is_in_files);
            }
        }
        let share = |of: u64, all: u64| of as f64 / all.max(1) as f64;
        let is_seen = (others.count >= OTHERS_COUNT_MIN || others.bytes >= OTHERS_BYTES_MIN)
            && share(others.count, all.count).max(share(others.bytes, all.bytes)) > OTHERS_SHARE_MAX;
        if !is_seen {
            spans.extend(growing.take().map(finish));
            continue;
        }
        let (_, until_ns, sums) = growing.get_or_insert_with(|| (window.begin_ns, window.end_ns, BTreeMap::new()));
        *until_ns = window.end_ns;
        for (name, more) in names {
            let sum = sums.entry(name).or_default();
            sum.read_bytes += more.read_bytes;
            sum.write_bytes += more.write_bytes;
        }
    }
    spans.extend(growing.map(finish));
    spans
}

/// Returns what a process did: `read 3 MiB`, `read 3 MiB and wrote 1 MiB`.
pub(crate) fn moved_words(process: &TracedProcess) -> String {
    let (read, written) = (format_bytes(process.read_bytes), format_bytes(process.write_bytes));
    match (process.read_bytes, process.write_bytes) {
        (_, 0) => format!("read {read}"),
        (0, _) => format!("wrote {written}"),
        _ => format!("read {read} and wrote {written}"),
    }
}

pub(super) fn add(sum: &mut RequestSum, request: &Request) {
    sum.count += 1;
    sum.bytes += request.end - request.begin;
}

/// Returns true for threads that write the own structures of a filesystem or a layer, such as the parity of an array.
pub(super) fn is_of_filesystem(name: &str) -> bool {
    let is_array = || {
        // `md0_raid5`
        let rest = name.strip_prefix("md").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        rest.is_some_and(|rest| rest.starts_with("_raid") || rest.starts_with("_resync"))
    };
    ["jbd2/", "xfsaild/", "xfs-", "btrfs-", "dmcrypt_write"].iter().any(|prefix| name.starts_with(prefix)) || is_array()
}

/// Returns true for kernel threads that submit requests for other threads, and for the names that are
/// recorded when an interrupt submits one.
pub(super) fn is_of_kernel(name: &str) -> bool {
    ["kworker/", "swapper/", "ksoftirqd/", "kswapd", "kcompactd", "migration/", "irq/"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::trace::extents::MappedExtent;
    use crate::trace::format::Flags;
    use crate::trace::{FileExtents, TracedDisk};

    /// Returns a window of 10 ms that begins at `begin_ms`: ten reads of our file, and `others` writes of 64 KiB by `dd`.
    pub(crate) fn window(begin_ms: u64, others: u64) -> Window {
        let request = |begin: u64, length: u64, name: u16| Request {
            device: 1,
            begin,
            end: begin + length,
            flags: Flags::parse(if name == 0 { b"R" } else { b"W" }),
            is_own: name == 0,
            is_rank: false,
            is_kernel: false,
            process: 12,
            name,
            queued_ns: begin_ms * 1_000_000 + 1,
            issued_ns: begin_ms * 1_000_000 + 1,
            dispatched_ns: begin_ms * 1_000_000 + 1,
            is_requeued: false,
            completed_ns: begin_ms * 1_000_000 + 2,
            has_failed: false,
        };
        let ours = (0..10).map(|n| request(n * 4096, 4096, 0));
        Window {
            begin_ns: begin_ms * 1_000_000,
            end_ns: (begin_ms + 10) * 1_000_000,
            requests: ours.chain((0..others).map(|n| request((1 << 30) + (n << 16), 65536, 1))).collect(),
            names: vec!["worker".to_owned(), "dd".to_owned()],
            ..Window::default()
        }
    }

    pub(crate) fn disk(device: u32) -> TracedDisk {
        TracedDisk { name: "vda".to_owned(), device, has_volatile_cache: true, has_scheduler: true, has_paths: false }
    }

    pub(crate) fn traced(windows: Vec<Window>) -> PhaseTrace {
        let extents = vec![MappedExtent { logical: 0, physical: 0, length: 1 << 20 }];
        PhaseTrace {
            layers: Layers { disks: vec![disk(1)], ..Layers::default() },
            files: vec![FileExtents {
                path: "file".to_owned(),
                space: AddressSpace::Device(1),
                moves_on_write: false,
                before: extents.clone(),
                after: extents,
            }],
            windows,
            ..PhaseTrace::default()
        }
    }

    #[test]
    fn threads_of_arrays_and_filesystems_are_known_by_name() {
        for name in ["md0_raid5", "md127_resync", "jbd2/loop0-8", "btrfs-transacti", "dmcrypt_write/25"] {
            assert!(is_of_filesystem(name), "{name}");
        }
        for name in ["mdadm", "md5sum", "dd", "kworker/0:1"] {
            assert!(!is_of_filesystem(name), "{name}");
        }
    }

    /// Goal: what another program did is counted for it, by direction and disk, also in the measured files; a kernel thread there works for us.
    /// Method: `dd` writes behind the file; a program reads it, and a thread of the kernel writes it back.
    #[test]
    fn a_program_that_uses_the_measured_file_is_a_neighbour_and_a_kernel_thread_is_not() {
        let mut one = window(0, 16);
        one.names.extend(["reader".to_owned(), "flusher".to_owned()]);
        let template = one.requests[0];
        let other = |index: u64, rwbs: &str, name, process| Request {
            begin: index * 4096,
            end: (index + 1) * 4096,
            flags: Flags::parse(rwbs.as_bytes()),
            is_own: false,
            name,
            process,
            ..template
        };
        one.requests.extend((20..30).map(|index| other(index, "R", 2, 77)));
        one.requests.push(Request { is_kernel: true, ..other(40, "W", 3, 5) });
        one.requests.push(Request { is_rank: true, ..other(41, "R", 3, 6) });
        // In a file of that rank.
        one.requests.push(Request { is_rank: true, ..other(100_000, "R", 3, 6) });
        let mut trace = traced(vec![one]);
        trace.ended = vec![77];
        let mut record = TraceRecord::default();
        attribute(&trace, &mut record);
        assert_eq!((record.ours.count, record.others.count), (12, 26));
        let dd = TracedProcess {
            name: "dd".to_owned(),
            process: 12,
            disk: "vda".to_owned(),
            write_bytes: 16 << 16,
            ..TracedProcess::default()
        };
        let reader = TracedProcess {
            name: "reader".to_owned(),
            process: 77,
            disk: "vda".to_owned(),
            read_bytes: 10 << 12,
            in_files_bytes: 10 << 12,
            has_ended: true,
            ..TracedProcess::default()
        };
        assert_eq!(record.other_processes, [dd, reader]);
        assert_eq!(record.others_busy_ns, 1, "all were in flight at once");
        // The program may be that of a job.
        let mut record = TraceRecord::default();
        attribute(&PhaseTrace { runs_programs: true, ..trace }, &mut record);
        assert_eq!((record.ours.count, record.others.count), (22, 16));
        assert_eq!(union_ns(vec![(5, 9), (0, 2), (1, 3), (8, 12)]), 10);
    }

    /// Goal: a window that was asked for names programs and counts for no sum; where drawn windows show others, it adds nothing to them.
    #[test]
    fn a_window_that_was_asked_for_names_programs_and_counts_for_no_sum() {
        let asked = |others| Window { is_asked: true, ..window(700, others) };
        for (seen, in_asked, moved_bytes) in [(0, 16, 16 << 16), (16, 16, 16 << 16), (0, 0, 0)] {
            let trace = PhaseTrace { asked: vec![asked(in_asked)], ..traced(vec![window(0, seen), window(1_000, 0)]) };
            let mut record = TraceRecord::default();
            attribute(&trace, &mut record);
            let moved: u64 = record.other_processes.iter().map(|process| process.write_bytes).sum();
            assert_eq!(moved, moved_bytes, "{seen} {in_asked}");
            assert_eq!((record.ours.count, record.others.count), (20, seen), "{seen} {in_asked}");
            assert_eq!(record.others_busy_ns, seen.min(1), "{seen} {in_asked}");
            // It shows when, in the order of time.
            let spans = others_in(&trace);
            assert_eq!(spans.iter().any(|span| span.from_ns == 700_000_000), in_asked > 0 && seen == 0, "{spans:?}");
        }
    }

    /// Goal: what the kernel writes back is named by that, and by the program that dirtied it, with its name at that time; a program that dirtied other files is
    /// not. Method: `dd` dirties a file and ends, a shell dirties the measured file and becomes `sleep`, `log` dirties a file that is not written back, and
    /// a thread of this program one that is. The kernel writes in the next window.
    #[test]
    fn write_back_is_named_by_the_programs_that_dirtied_the_pages() {
        use crate::trace::write_back::{PageEvent, PageWhat, PageWindow};
        let file = |inode| PageFile { backing: "254:0".to_owned(), inode };
        let event = |at_ns, thread, what| PageEvent { at_ns, thread, what };
        let name_of = |thread: i32| (thread != 10).then(|| if thread == 11 { "sleep" } else { "log" }.to_owned());
        let join = |events| PageWindow::of(events, name_of, |_| None, |thread| thread != 1, |thread| thread == 5);
        let mut first = window(0, 0);
        first.pages = join(vec![
            event(9, 10, PageWhat::WasNamed("dd".to_owned())),
            event(1, 10, PageWhat::Dirtied(file(70))),
            event(2, 10, PageWhat::Dirtied(file(70))),
            event(3, 11, PageWhat::Dirtied(file(71))),
            event(4, 11, PageWhat::WasNamed("sh".to_owned())),
            event(5, 12, PageWhat::Dirtied(file(72))),
            event(6, 1, PageWhat::Dirtied(file(70))),
            event(7, 12, PageWhat::Written(file(72))),
        ]);
        let mut second = window(500, 16);
        second.names[1] = "kworker/u8:1".to_owned();
        second.pages = join(vec![event(20, 5, PageWhat::Written(file(70)))]);
        let mut trace = traced(vec![first, second]);
        trace.backing = BTreeMap::from([("254:0".to_owned(), vec![1])]);
        trace.inodes = vec![(vec![1], 71)];
        trace.ended = vec![10];
        let mut record = TraceRecord::default();
        attribute(&trace, &mut record);
        let seen = |all: &[TracedProcess]| -> Vec<(String, i32, u64, u64, bool)> {
            let one =
                |of: &TracedProcess| (of.name.clone(), of.process, of.write_bytes, of.in_files_bytes, of.has_ended);
            all.iter().map(one).collect()
        };
        let unit = 64 * rustix::param::page_size() as u64;
        let expected = [("dd".to_owned(), 10, 2 * unit, 0, true), ("sh".to_owned(), 11, unit, unit, false)];
        assert_eq!(seen(&record.write_back), expected);
        assert_eq!(seen(&record.kernel_work), [(WRITE_BACK.to_owned(), 0, 16 << 16, 0, false)]);
        assert_eq!(record.unattributed, RequestSum { count: 16, bytes: 16 << 16 });
        // On another disk they are no neighbours.
        trace.backing = BTreeMap::from([("254:0".to_owned(), vec![9])]);
        let mut record = TraceRecord::default();
        attribute(&trace, &mut record);
        assert_eq!(record.write_back, []);
    }

    #[test]
    fn threads_of_the_kernel_are_named_by_what_they_do() {
        for (name, kind, work) in [
            ("kworker/u8:1", Kind::Write, WRITE_BACK),
            ("kworker/0:2", Kind::Read, "reads of the kernel for others"),
            ("jbd2/vda1-8", Kind::Write, "the journal of ext4"),
            ("kswapd0", Kind::Write, "swapping"),
            ("md0_resync", Kind::Read, "an array of md"),
        ] {
            assert_eq!(work_of(name, kind), work, "{name}");
        }
    }

    /// Goal: a neighbour is shown from the first to the last of successive windows that saw it, and a phase alone has no span.
    #[test]
    fn successive_windows_with_requests_of_others_are_one_span() {
        let windows = vec![window(500, 0), window(1_000, 16), window(1_500, 16), window(2_000, 0), window(2_500, 7)];
        let disturbed = traced(windows);
        let found: Vec<_> = others_in(&disturbed);
        let what = "dd wrote 2 MiB in the traced windows".to_owned();
        let span = DisturbedSpan { from_ns: 500_000_000, until_ns: 1_010_000_000, cause: Cause::Neighbour, what };
        assert_eq!(found, [span], "seven small requests are too few");
        assert_eq!(others_in(&traced(vec![window(0, 0), window(500, 0)])), []);
        let inseparable = PhaseTrace { inseparable: Some("moved".to_owned()), ..disturbed };
        assert_eq!(others_in(&inseparable), [], "requests elsewhere may be ours");
    }
}
