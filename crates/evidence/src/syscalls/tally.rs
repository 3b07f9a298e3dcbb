//! Counts system calls from entry and return events.
//!
//! A thread is in one call at a time, so its entries and returns alternate. If one of the two is missing (the
//! recording began or ended within the call, or the buffer was full), the call is counted without a duration.
//!
//! Cannot see: the bytes of a vector, an iocb or an entry of a ring, which are in memory and not in
//! arguments.

use super::events::{Event, What};
use super::files::{Descriptor, Lookup};
use super::names::{self, OffsetSource, Shape};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use trueio_model::{
    Histogram, JobSyscalls, SyscallError, SyscallIo, SyscallPlaces, SyscallRow, SyscallSizes, SyscallTrace,
};

/// A job whose workers' system calls are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedJob {
    /// Its name.
    pub name: String,
    /// Thread IDs of its workers, and of threads that work for them.
    pub threads: Vec<i32>,
}

/// Maximum number of distinct sizes that are kept for a call.
const SIZES_MAX: usize = 32;
/// Maximum number of distinct offsets that are kept for a call: 16 bytes each, and as much again for the
/// table.
const UNIQUE_MAX: usize = 1 << 20;

/// The calls of a phase.
#[derive(Debug)]
pub(super) struct Tally<L> {
    jobs: Vec<Job>,
    /// The job of each thread.
    owners: HashMap<i32, usize>,
    pending: HashMap<i32, Pending>,
    descriptors: HashMap<i32, Option<Descriptor>>,
    /// The end of a thread's last transfer on a descriptor.
    ends: HashMap<(i32, i32), u64>,
    lookup: L,
}

#[derive(Debug)]
struct Job {
    name: String,
    thread_count: u32,
    calls: BTreeMap<i64, Call>,
}

#[derive(Debug)]
struct Pending {
    at_ns: u64,
    number: i64,
    arguments: [u64; 6],
}

#[derive(Debug, Default)]
struct Call {
    count: u64,
    unfinished_count: u64,
    latency: Histogram,
    errors: BTreeMap<i32, u64>,
    io: Option<Io>,
}

#[derive(Debug, Default)]
struct Io {
    document: SyscallIo,
    asked: BTreeMap<u64, u64>,
    returned: BTreeMap<u64, u64>,
    opened: HashMap<Arc<str>, u64>,
    flags: BTreeMap<&'static str, u64>,
    offsets: HashSet<((u64, u64), u64)>,
}

impl<L: Lookup> Tally<L> {
    /// Creates a tally for jobs, given their workers' threads and the descriptors that are open before the
    /// first call.
    pub(super) fn new(jobs: &[TracedJob], open: HashMap<i32, Descriptor>, lookup: L) -> Self {
        let owners =
            jobs.iter().enumerate().flat_map(|(index, job)| job.threads.iter().map(move |thread| (*thread, index)));
        Self {
            owners: owners.collect(),
            jobs: jobs
                .iter()
                .map(|job| Job {
                    name: job.name.clone(),
                    thread_count: job.threads.len() as u32,
                    calls: BTreeMap::new(),
                })
                .collect(),
            pending: HashMap::new(),
            descriptors: open.into_iter().map(|(number, descriptor)| (number, Some(descriptor))).collect(),
            ends: HashMap::new(),
            lookup,
        }
    }

    /// Counts one event. The events of a thread must come in their order.
    pub(super) fn take(&mut self, event: &Event) {
        let Some(&job) = self.owners.get(&event.thread) else { return };
        match event.what {
            What::Enter(arguments) => {
                let pending = Pending { at_ns: event.at_ns, number: event.number, arguments };
                if let Some(lost) = self.pending.insert(event.thread, pending) {
                    self.count(job, lost.number).unfinished_count += 1;
                }
            }
            What::Exit(result) => {
                let pending = self.pending.remove(&event.thread);
                let (call, rest) = match pending {
                    Some(pending) if pending.number == event.number => {
                        let call = self.count(job, event.number);
                        call.latency.record(event.at_ns.saturating_sub(pending.at_ns));
                        (call, Some(pending))
                    }
                    other => {
                        if let Some(lost) = other {
                            self.count(job, lost.number).unfinished_count += 1;
                        }
                        let call = self.count(job, event.number);
                        call.unfinished_count += 1;
                        (call, None)
                    }
                };
                if let Some(errno) = errno_of(result) {
                    *call.errors.entry(errno).or_default() += 1;
                }
                if let Some(pending) = rest {
                    self.follow(job, event.thread, &pending, result);
                }
            }
        }
    }

    fn count(&mut self, job: usize, number: i64) -> &mut Call {
        let call = self.jobs[job].calls.entry(number).or_default();
        call.count += 1;
        call
    }

    fn descriptor(&mut self, number: i32) -> Option<&mut Descriptor> {
        let lookup = &self.lookup;
        // The descriptor was opened meanwhile, so its position before its first call is unknown.
        let look = || lookup.look(number).map(|found| Descriptor { position: None, ..found });
        self.descriptors.entry(number).or_insert_with(look).as_mut()
    }

    /// Returns the I/O of a call that has returned.
    fn follow(&mut self, job: usize, thread: i32, call: &Pending, result: i64) {
        let Pending { number, arguments, .. } = *call;
        match number {
            libc::SYS_lseek if result >= 0 => {
                if let Some(descriptor) = self.descriptor(arguments[0] as i32) {
                    descriptor.position = Some(result as u64);
                }
            }
            libc::SYS_close => drop(self.descriptors.remove(&(arguments[0] as i32))),
            libc::SYS_dup3 => drop(self.descriptors.remove(&(arguments[1] as i32))),
            _ => {}
        }
        let Some(shape) = names::shape(number) else { return };
        let file = shape.file.map(|index| arguments[index] as i32);
        let descriptor = file.and_then(|file| self.descriptor(file)).cloned();
        let range = self.range(&shape, thread, &arguments, result, descriptor.as_ref());
        let row = self.jobs[job].calls.entry(number).or_default();
        row.io.get_or_insert_with(Io::default).add(&shape, &arguments, result, descriptor, range);
    }

    /// Returns offset and end of a transfer, and whether an earlier one is known (and ended where this one
    /// began).
    fn range(
        &mut self,
        shape: &Shape,
        thread: i32,
        arguments: &[u64; 6],
        result: i64,
        descriptor: Option<&Descriptor>,
    ) -> Option<TransferRange> {
        let file = arguments[shape.file?] as i32;
        let (offset, uses_position) = match shape.offset {
            OffsetSource::None => return None,
            OffsetSource::Position => (descriptor?.position?, true),
            OffsetSource::ArgumentOrPosition(index) if arguments[index] == u64::MAX => (descriptor?.position?, true),
            OffsetSource::Argument(index) | OffsetSource::ArgumentOrPosition(index) => (arguments[index], false),
        };
        let moved = if shape.returns_amount { u64::try_from(result).ok()? } else { arguments[shape.asked?] };
        let end = offset.saturating_add(moved);
        if uses_position && let Some(descriptor) = self.descriptor(file) {
            descriptor.position = Some(end);
        }
        let before = self.ends.insert((thread, file), end);
        Some(TransferRange { offset, end, before })
    }

    /// Returns everything counted so far.
    pub(super) fn into_trace(mut self) -> SyscallTrace {
        for (thread, pending) in std::mem::take(&mut self.pending) {
            let job = self.owners[&thread];
            self.count(job, pending.number).unfinished_count += 1;
        }
        let jobs = self.jobs.into_iter().map(|job| {
            let mut calls: Vec<SyscallRow> =
                job.calls.into_iter().map(|(number, call)| call.into_row(number)).collect();
            calls.sort_by(|a, b| b.latency.sum_ns().cmp(&a.latency.sum_ns()).then(a.number.cmp(&b.number)));
            JobSyscalls { name: job.name, thread_count: job.thread_count, calls }
        });
        SyscallTrace { jobs: jobs.collect(), ..SyscallTrace::default() }
    }
}

/// The position of a transfer.
#[derive(Debug, Clone, Copy)]
struct TransferRange {
    offset: u64,
    end: u64,
    /// The end of the previous transfer.
    before: Option<u64>,
}

/// Returns the error number of a result; `None` if the call succeeded.
fn errno_of(result: i64) -> Option<i32> {
    // The kernel's errors, including those that it never returns to programs.
    (-4095..0).contains(&result).then_some(-result as i32)
}

impl Call {
    fn into_row(self, number: i64) -> SyscallRow {
        SyscallRow {
            name: names::name(number),
            number,
            count: self.count,
            unfinished_count: self.unfinished_count,
            latency: self.latency,
            errors: self.errors.into_iter().map(|(errno, count)| SyscallError { errno, count }).collect(),
            io: self.io.map(Io::into_document),
        }
    }
}

impl Io {
    fn add(
        &mut self,
        shape: &Shape,
        arguments: &[u64; 6],
        result: i64,
        descriptor: Option<Descriptor>,
        placed: Option<TransferRange>,
    ) {
        self.document.unit = shape.unit;
        if let Some(index) = shape.asked {
            add_size(&mut self.document.asked, &mut self.asked, arguments[index]);
        }
        if let (true, Ok(amount)) = (shape.returns_amount, u64::try_from(result)) {
            add_size(&mut self.document.returned, &mut self.returned, amount);
        }
        for flag in names::set_flags(shape, arguments) {
            *self.flags.entry(flag).or_default() += 1;
        }
        let file = descriptor.as_ref().map_or((u64::MAX, 0), |descriptor| descriptor.file);
        if let Some(descriptor) = descriptor {
            *self.opened.entry(descriptor.flags).or_default() += 1;
        }
        let Some(TransferRange { offset, end, before }) = placed else { return };
        let places = self.document.places.get_or_insert(SyscallPlaces { begin_bytes: u64::MAX, ..Default::default() });
        places.placed_count += 1;
        places.following_count += u64::from(before.is_some());
        places.sequential_count += u64::from(before == Some(offset));
        places.begin_bytes = places.begin_bytes.min(offset);
        places.end_bytes = places.end_bytes.max(end);
        if self.offsets.len() < UNIQUE_MAX {
            self.offsets.insert((file, offset));
        } else if !self.offsets.contains(&(file, offset)) {
            places.is_unique_least = true;
        }
    }

    fn into_document(mut self) -> SyscallIo {
        let sorted = |map: BTreeMap<u64, u64>| map.into_iter().collect::<Vec<_>>();
        self.document.asked.counts = sorted(self.asked);
        self.document.returned.counts = sorted(self.returned);
        let mut opened: Vec<(String, u64)> =
            self.opened.into_iter().map(|(flags, count)| (flags.to_string(), count)).collect();
        opened.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        self.document.opened = opened;
        self.document.flags = self.flags.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        if let Some(places) = &mut self.document.places {
            places.unique_count = self.offsets.len() as u64;
        }
        self.document
    }
}

fn add_size(sizes: &mut SyscallSizes, counts: &mut BTreeMap<u64, u64>, size: u64) {
    sizes.sum = sizes.sum.saturating_add(size);
    if let Some(count) = counts.get_mut(&size) {
        *count += 1;
    } else if counts.len() < SIZES_MAX {
        counts.insert(size, 1);
    } else {
        sizes.other_count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Descriptor 3 is a file at its beginning; 4 was opened meanwhile; others do not exist.
    struct Staged;

    impl Lookup for Staged {
        fn look(&self, descriptor: i32) -> Option<Descriptor> {
            let flags = "O_RDWR|O_DIRECT".into();
            (descriptor == 4).then_some(Descriptor { flags, position: Some(1 << 20), file: (1, 4) })
        }
    }

    fn tally() -> Tally<Staged> {
        let file = Descriptor { flags: "O_WRONLY|O_SYNC".into(), position: Some(0), file: (1, 3) };
        let job = |name: &str, threads: &[i32]| TracedJob { name: name.to_owned(), threads: threads.to_vec() };
        let jobs = [job("one", &[10, 11]), job("two", &[20])];
        Tally::new(&jobs, HashMap::from([(3, file)]), Staged)
    }

    fn enter(at_ns: u64, thread: i32, number: i64, arguments: &[u64]) -> Event {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        Event { at_ns, thread, number, what: What::Enter(all) }
    }

    fn exit(at_ns: u64, thread: i32, number: i64, result: i64) -> Event {
        Event { at_ns, thread, number, what: What::Exit(result) }
    }

    fn trace(events: &[Event]) -> SyscallTrace {
        let mut tally = tally();
        events.iter().for_each(|event| tally.take(event));
        tally.into_trace()
    }

    fn row(trace: &SyscallTrace, name: &str) -> SyscallRow {
        trace.calls(name).next().cloned().expect("a row")
    }

    #[test]
    fn calls_of_jobs_are_counted_with_time_and_errors_and_calls_of_other_threads_are_not() {
        let write = libc::SYS_pwrite64;
        let trace = trace(&[
            enter(100, 10, write, &[3, 0, 4096, 0]),
            enter(110, 20, write, &[3, 0, 512, 8192]),
            // A thread of no job.
            enter(111, 99, write, &[3, 0, 4096, 0]),
            exit(112, 99, write, 4096),
            exit(150, 10, write, 4096),
            exit(410, 20, write, -22),
            enter(500, 11, write, &[3, 0, 4096, 4096]),
            exit(600, 11, write, 1024),
        ]);
        let [one, two] = &trace.jobs[..] else { panic!("two jobs") };
        assert_eq!((one.name.as_str(), one.thread_count, two.thread_count), ("one", 2, 1));
        let call = &one.calls[0];
        assert_eq!((call.name.as_str(), call.count, call.error_count()), ("pwrite64", 2, 0));
        assert_eq!((call.latency.min_ns(), call.latency.max_ns()), (Some(50), Some(100)));
        let io = call.io.as_ref().expect("I/O");
        assert_eq!((&io.asked.counts[..], io.asked.sum), (&[(4096, 2)][..], 8192));
        assert_eq!(io.returned.counts, [(1024, 1), (4096, 1)]);
        assert_eq!(io.opened, [("O_WRONLY|O_SYNC".to_owned(), 2)]);
        let places = io.places.expect("places");
        // Two threads: neither follows the other.
        assert_eq!((places.placed_count, places.following_count, places.unique_count), (2, 0, 2));
        assert_eq!((places.begin_bytes, places.end_bytes), (0, 5120));
        let failed = &two.calls[0];
        assert_eq!(failed.errors, [SyscallError { errno: 22, count: 1 }]);
        assert_eq!(failed.io.as_ref().expect("I/O").places, None, "a failed call has no position");
    }

    #[test]
    fn a_call_without_entry_or_return_is_counted_without_a_time() {
        let (fsync, write) = (libc::SYS_fsync, libc::SYS_write);
        let trace = trace(&[
            // It was entered before the recording began.
            exit(10, 10, fsync, 0),
            enter(20, 10, fsync, &[3]),
            // Its return was lost, and so was the next entry.
            exit(40, 10, write, 512),
            enter(50, 10, fsync, &[3]),
            enter(60, 10, fsync, &[3]),
            exit(65, 10, fsync, 0),
            // It is in progress when the recording ends.
            enter(70, 10, fsync, &[3]),
        ]);
        let flush = row(&trace, "fsync");
        assert!(flush.is_flush());
        assert_eq!((flush.count, flush.unfinished_count, flush.latency.count()), (5, 4, 1));
        assert_eq!((row(&trace, "write").count, row(&trace, "write").unfinished_count), (1, 1));
    }

    #[test]
    fn plain_writes_get_the_position_of_their_descriptor() {
        let (seek, write, close) = (libc::SYS_lseek, libc::SYS_write, libc::SYS_close);
        let call = |at: u64, number, arguments: &[u64], result| {
            [enter(at, 10, number, arguments), exit(at + 5, 10, number, result)]
        };
        let trace = trace(
            &[
                call(0, write, &[3, 0, 4096], 4096),
                call(10, write, &[3, 0, 4096], 4096),
                call(20, seek, &[3, 65536, 0], 65536),
                call(30, write, &[3, 0, 4096], 4096),
                call(40, seek, &[3, 0, 0], 0),
                call(50, write, &[3, 0, 4096], 4096),
                // The position of a descriptor that was opened meanwhile is unknown until it is set.
                call(60, write, &[4, 0, 4096], 4096),
                call(70, seek, &[4, 0, 2], 1 << 20),
                call(80, write, &[4, 0, 4096], 4096),
                // The number now belongs to another file, or to none.
                call(90, close, &[3], 0),
                call(95, write, &[3, 0, 4096], -9),
            ]
            .concat(),
        );
        let call = row(&trace, "write");
        assert_eq!((call.count, call.error_count()), (7, 1));
        let io = call.io.expect("I/O");
        assert_eq!(io.opened, [("O_WRONLY|O_SYNC".to_owned(), 4), ("O_RDWR|O_DIRECT".to_owned(), 2)]);
        let places = io.places.expect("places");
        assert_eq!((places.placed_count, places.following_count, places.sequential_count), (5, 3, 1));
        // 0, 4096, 65536 of one file, 1 MiB of the other; 0 occurred twice.
        assert_eq!((places.unique_count, places.is_unique_least, places.end_bytes), (4, false, (1 << 20) + 4096));
    }

    #[test]
    fn vectors_are_sized_by_what_they_return_and_batches_count_ios() {
        let trace = trace(&[
            enter(0, 10, libc::SYS_pwritev2, &[3, 0, 1, 4096, 0, 2]),
            exit(9, 10, libc::SYS_pwritev2, 8192),
            enter(10, 10, libc::SYS_io_submit, &[7, 32]),
            exit(12, 10, libc::SYS_io_submit, 31),
        ]);
        let vector = row(&trace, "pwritev2").io.expect("I/O");
        assert_eq!((vector.asked.counts.len(), &vector.returned.counts[..]), (0, &[(8192, 1)][..]));
        assert_eq!(vector.flags, [("RWF_DSYNC".to_owned(), 1)]);
        assert_eq!(vector.places.expect("places").begin_bytes, 4096);
        let batch = row(&trace, "io_submit").io.expect("I/O");
        assert_eq!(batch.unit, trueio_model::SyscallUnit::Ios);
        assert_eq!((batch.asked.sum, batch.returned.sum, batch.places), (32, 31, None));
    }

    #[test]
    fn sizes_beyond_the_limit_are_counted() {
        let events = (0..40u64).flat_map(|size| {
            let write = libc::SYS_pwrite64;
            [enter(size * 10, 10, write, &[3, 0, size, 0]), exit(size * 10 + 5, 10, write, size as i64)]
        });
        let io = row(&trace(&events.collect::<Vec<_>>()), "pwrite64").io.expect("I/O");
        assert_eq!((io.asked.counts.len(), io.asked.other_count, io.asked.sum), (32, 8, (0..40).sum()));
    }
}
