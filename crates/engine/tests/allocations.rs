//! The loop allocates nothing, so memory does not grow with a run's length.
//!
//! This test binary uses a counting allocator. It counts the whole process, so there is only one test and only the
//! worker's thread, except the harness, which is not counted: it allocates to print that a test takes long.

#[path = "it/common.rs"]
mod common;

use common::{Job, KIB, MIB, MS, Open, assert_clean, filled, folder};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use trueio_engine::availability;
use trueio_model::{Arrivals, BlockPattern, BlockSizes, Checksum, EngineKind, OpKind};

/// The system's allocator, counted.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// The test has a thread of its own, and the harness waits in the first (it has not, with one test thread).
static IS_FIRST_THE_HARNESS: AtomicBool = AtomicBool::new(false);

fn count(bytes: usize) {
    if !(IS_FIRST_THE_HARNESS.load(Relaxed) && is_first_thread()) {
        CALLS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
}

fn is_first_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

// SAFETY: every call is passed unchanged to the system's allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// (calls, bytes) of a run's allocations.
fn allocated(job: &Job) -> (u64, u64) {
    let before = (CALLS.load(Relaxed), BYTES.load(Relaxed));
    let report = job.run();
    let after = (CALLS.load(Relaxed), BYTES.load(Relaxed));
    assert_clean(&report, &job.plan.name);
    (after.0 - before.0, after.1 - before.1)
}

/// A name, a number of I/Os, and the job that does a given number of them.
type Case<'a> = (&'a str, u64, Box<dyn Fn(u64) -> Job + 'a>);

/// Goal: a run of any length needs the memory of the shortest.
/// Method: each job at one length and at ten times (or more) of it; calls to the allocator and bytes are
/// the same. The longer null run passes several rows of 100 ms and several passes over its region.
#[test]
fn a_run_ten_times_as_long_allocates_not_once_more() {
    IS_FIRST_THE_HARNESS.store(!is_first_thread(), Relaxed);
    let folder = folder();
    let path = filled(folder.path(), "file", MIB);
    let works = availability();
    let mixed_sizes = || BlockSizes::Weighted(vec![(4 * KIB, 50), (16 * KIB, 50)]);
    // Allocations that a process makes once are made before.
    allocated(&Job::new(EngineKind::Null).ios(10));

    let mut jobs: Vec<Case<'_>> = vec![
        ("null, depth 1", 100_000, Box::new(|n| Job::new(EngineKind::Null).ios(n))),
        ("null, depth 32", 100_000, Box::new(|n| Job::new(EngineKind::Null).depth(32).ios(n))),
        ("null, mixed sizes", 20_000, Box::new(move |n| Job::new(EngineKind::Null).sizes(mixed_sizes()).ios(n))),
        ("null, mix", 20_000, Box::new(|n| Job::new(EngineKind::Null).mixed(50).sequential().ios(n))),
        ("null, paced", 200, Box::new(|n| Job::new(EngineKind::Null).rate(10_000.0, Arrivals::Poisson).ios(n))),
    ];
    for engine in EngineKind::ALL {
        // `simulated` is a case of its own; `e4defrag` needs ext4; names end with their number, and `cpuio` and `exec` do no I/O.
        if engine == EngineKind::Simulated
            || engine == EngineKind::E4defrag
            || engine.works_on_names()
            || !engine.does_io()
            || !works.iter().any(|a| a.engine == engine && a.works)
        {
            continue;
        }
        let path = &path;
        jobs.push((
            engine.name(),
            500,
            Box::new(move |n| {
                let job = Job::new(engine).on(&[path], MIB, Open::ReadWrite).op(OpKind::Write).ios(n);
                let job = if engine.touches_files() { job.verify(Checksum::Crc32c) } else { job };
                job.with(|p| p.flush.fdatasync_every = 100)
            }),
        ));
    }
    if works.iter().any(|a| a.engine == EngineKind::Psync && a.works) {
        let path = &path;
        let of = move |n| {
            let job = Job::new(EngineKind::Psync).on(&[path], MIB, Open::ReadWrite).op(OpKind::Write).ios(n);
            job.verify(Checksum::PatternHdr).with(|plan| {
                let verify = plan.verify.as_mut().expect("it verifies");
                verify.pattern = Some(BlockPattern { bytes: vec![0xaa, 0xbb, 0xcc], offset_places: Vec::new() });
            })
        };
        // More than the file holds: that it goes over the file again is noted once.
        jobs.push(("blocks compared with a pattern", 300, Box::new(of)));
    }
    for (name, ios, job) in jobs {
        // Counters of an interval are allocated when the first one ends. Of a run that lasts so long only at ten times the I/Os, a hundred
        // times as many show that nothing follows. What an I/O allocates differs each time.
        let mut differing = Vec::new();
        let is_equal = (0..5).any(|_| {
            let [short, long] = [ios, 10 * ios].map(|n| allocated(&job(n)));
            differing.push((short, long));
            short == long || long == allocated(&job(100 * ios))
        });
        assert!(is_equal, "{name}: (calls, bytes) of {ios} I/Os and of ten times as many: {differing:?}");
    }

    // On the modelled disk, an hour of rows: 36,000, and then some.
    let hours = |n: u64| allocated(&Job::simulated(200 * MS, 1).time(n * 3_600_000 * MS));
    assert_eq!(hours(1), hours(5), "one hour and five");
}
