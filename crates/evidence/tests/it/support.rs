//! Phases built by hand, staged filesystems, and skips with their reason.
#![allow(unreachable_pub)]

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trueio_device::{System, environment, target_facts};
use trueio_direct::AlignedBuffer;
use trueio_evidence::{Observation, PhaseFacts, Timeline, Watch, judge};
use trueio_model::{
    BelowTrace, Check, CheckOutcome, CpuFacts, CpuTime, DeviceCounters, DeviceDelta, DirectFacts, DirectPolicy,
    DirectSupport, DiskFacts, DiskLimits, EngineKind, Environment, EvidenceLevel, Fact, FilePlan, FilesystemFacts,
    Histogram, IoFailure, JobPlan, JobRecord, LatencySet, Layer, OpKind, OpMix, OpRecord, Pattern, Prepare, Queue,
    RequestSum, Residency, Ruler, SampledIo, SteadyState, TargetFacts, TargetKind, ThreadUsage, TraceRecord, Verdict,
};

pub use trueio_testkit::{Loop, Mount, folder, skip, tool};

pub const MIB: u64 = 1 << 20;
pub const SECOND_NS: u64 = 1_000_000_000;

// ---------------------------------------------------------------------------------------------
// A phase from numbers alone
// ---------------------------------------------------------------------------------------------

/// A random job of depth 1 on one file, direct, with operations `mix` in blocks of 4 KiB.
pub fn job(path: &str, mix: OpMix, size_bytes: u64) -> JobPlan {
    let plain = JobPlan::plain(EngineKind::Sync, size_bytes);
    JobPlan {
        files: vec![FilePlan {
            path: path.to_owned(),
            prepare: Prepare::CreateFilled,
            remove_after: true,
            offset_bytes: 0,
            size_bytes,
            extends_from: None,
        }],
        pattern: Pattern { mix, ..plain.pattern.clone() },
        queue: Queue { submit_batch: None, ..plain.queue },
        direct: DirectPolicy::Require,
        ..plain
    }
}

pub fn reads(size_bytes: u64) -> JobPlan {
    job("/data/file", OpMix::Only(OpKind::Read), size_bytes)
}

pub fn writes(size_bytes: u64) -> JobPlan {
    job("/data/file", OpMix::Only(OpKind::Write), size_bytes)
}

pub fn op(op: OpKind, io_count: u64, byte_count: u64, latency_ns: u64) -> OpRecord {
    let mut total = Histogram::new();
    total.record_many(latency_ns, io_count);
    let empty = Histogram::new;
    let latency = LatencySet { submission: empty(), completion: total.clone(), total, from_intended: empty() };
    OpRecord {
        op,
        io_count,
        byte_count,
        short_count: 0,
        error_count: 0,
        latency,
        priorities: Vec::new(),
        percentiles: Vec::new(),
        dependence: None,
        mean_latency_ns: None,
        ios_per_s: None,
    }
}

pub fn record(ops: Vec<OpRecord>) -> JobRecord {
    JobRecord {
        name: "job".to_owned(),
        ops,
        series: Vec::new(),
        elapsed_ns: SECOND_NS,
        achieved_depth: None,
        pacing_lateness: Histogram::new(),
        backlog_count: 0,
        failures: Vec::new(),
        verify_failures: Vec::new(),
        verified_block_count: 0,
        verify_failure_count: 0,
        read_back: None,
        source_wait_ns: None,
        open_ns: None,
        close_ns: None,
        depth_searches: Vec::new(),
        criterion: None,
        zones: None,
        engine_notes: Vec::new(),
        threads: ThreadUsage::default(),
        queue: None,
        workers: Vec::new(),
    }
}

/// A file on ext4 on a virtio disk with a volatile cache and no FUA.
pub fn target() -> TargetFacts {
    let known = |bytes| Fact::known(bytes, "reported by statx");
    TargetFacts {
        path: "/data".to_owned(),
        kind: TargetKind::Directory,
        size_bytes: Fact::unknown("a directory"),
        filesystem: Some(FilesystemFacts {
            kind: "ext4".into(),
            mount_point: "/data".to_owned(),
            source: "/dev/vda".to_owned(),
            options: "rw,relatime".to_owned(),
            size_bytes: Fact::known(1 << 40, "statvfs"),
            available_bytes: Fact::known(1 << 39, "statvfs"),
            block_bytes: Fact::known(4096, "statvfs"),
            uuid: Fact::unknown("made by hand"),
        }),
        stack: vec![layer("file", "/data/file", 0), layer("filesystem", "ext4 on /data", 1), layer("disk", "vda", 2)],
        disks: vec![disk("vda", "virtio")],
        direct: DirectFacts {
            support: DirectSupport::Direct,
            reason: "statx reports it".to_owned(),
            memory_alignment_bytes: known(512),
            write_alignment_bytes: known(512),
            read_alignment_bytes: known(512),
            atomic_write: Fact::unknown("not asked"),
        },
        io_limits: Fact::known(Vec::new(), "by hand"),
        driven: None,
    }
}

pub fn layer(kind: &str, name: &str, depth: u32) -> Layer {
    Layer { kind: kind.into(), name: name.to_owned(), source: String::new(), depth, facts: Vec::new() }
}

pub fn disk(name: &str, transport: &str) -> DiskFacts {
    fn none<T>() -> Fact<T> {
        Fact::unknown("made by hand")
    }
    DiskFacts {
        name: name.to_owned(),
        device_number: (254, 0),
        model: none(),
        serial: none(),
        transport: Fact::known(transport.into(), "by hand"),
        size_bytes: none(),
        logical_sector_bytes: Fact::known(512, "by hand"),
        physical_sector_bytes: none(),
        is_rotational: none(),
        scheduler: none(),
        write_cache: Fact::known("write back".into(), "by hand"),
        has_fua: Fact::known(false, "by hand"),
        request_count: none(),
        max_request_bytes: none(),
        read_ahead_bytes: none(),
        counts_io: Fact::known(true, "by hand"),
        firmware: none(),
        wwid: none(),
        limits: DiskLimits::default(),
        usb: None,
        link: None,
    }
}

/// The counters of vda over a second, after an idle baseline of a quarter of a second.
pub fn delta(measured: DeviceCounters) -> DeviceDelta {
    DeviceDelta {
        disk: "vda".to_owned(),
        baseline: DeviceCounters { flush_count: Some(0), ..DeviceCounters::default() },
        baseline_ns: SECOND_NS / 4,
        measured,
        measured_ns: SECOND_NS,
    }
}

pub fn counted(read_bytes: u64, write_bytes: u64, flushes: u64) -> DeviceCounters {
    DeviceCounters {
        read_count: read_bytes / 4096,
        read_bytes,
        write_count: write_bytes / 4096 + flushes,
        write_bytes,
        flush_count: Some(flushes),
        ..DeviceCounters::default()
    }
}

pub fn residency(cached_bytes: u64, dirty_bytes: u64, region_bytes: u64) -> Option<Residency> {
    Some(Residency {
        cached_pages: cached_bytes / 4096,
        dirty_pages: Some(dirty_bytes / 4096),
        region_pages: region_bytes / 4096,
        page_bytes: 4096,
        source: "cachestat".to_owned(),
    })
}

/// A machine of four processors with 16 GiB of memory, without quotas. Not the one that the tests run on.
pub fn machine() -> Environment {
    fn none<T>() -> Fact<T> {
        Fact::unknown("made by hand")
    }
    Environment {
        system: "Linux".to_owned(),
        distribution: none(),
        cpu: CpuFacts { model: none(), usable_count: 4, governor: none(), quota: None },
        memory_bytes: Fact::known(16 << 30, "by hand"),
        memory_available_bytes: none(),
        memory_limit_bytes: None,
        hypervisor: none(),
        clock_source: none(),
        load_average: none(),
        is_root: false,
    }
}

pub fn ruler() -> Ruler {
    Ruler {
        clock: "tsc".to_owned(),
        clock_cost_ns: 12.0,
        clock_resolution_ns: 1.0,
        null_cpu_ns_per_io: 60.0,
        null_latency_ns_p50: 20,
    }
}

/// Owns everything that a phase's facts borrow. [`Phase::honest_reads`] and the other constructors build
/// phases that no check flags; a test changes one property.
#[derive(Clone)]
pub struct Phase {
    pub targets: Vec<TargetFacts>,
    pub jobs: Vec<JobPlan>,
    pub records: Vec<JobRecord>,
    pub observation: Observation,
    pub trace: Option<TraceRecord>,
    pub cpu: CpuTime,
    pub worker_cpu: CpuTime,
    pub environment: Environment,
    pub steady_state: Option<SteadyState>,
    pub accepted_checks: Vec<String>,
    pub elapsed_ns: u64,
}

impl Phase {
    /// 400 MiB read at random with direct I/O in a second.
    pub fn honest_reads() -> Self {
        let bytes = 400 * MIB;
        let mut phase = Self::new(reads(1024 * MIB), record(vec![op(OpKind::Read, bytes / 4096, bytes, 90_000)]));
        phase.observation.devices = vec![delta(counted(bytes, 0, 0))];
        phase.observation.process_read_bytes = Some(bytes);
        phase
    }

    /// 400 MiB written at random with direct I/O in a second, no sync.
    pub fn honest_writes() -> Self {
        let bytes = 400 * MIB;
        let mut phase = Self::new(writes(1024 * MIB), record(vec![op(OpKind::Write, bytes / 4096, bytes, 90_000)]));
        phase.observation.devices = vec![delta(counted(0, bytes, 0))];
        phase
    }

    /// 1,000 appends of 4 KiB through the page cache, each with an fdatasync.
    pub fn honest_log() -> Self {
        let bytes = 1000 * 4096;
        let ops = vec![op(OpKind::Write, 1000, bytes, 2_000), op(OpKind::Sync, 1000, 0, 150_000)];
        let mut phase = Self::new(writes(64 * MIB), record(ops));
        phase.jobs[0].direct = DirectPolicy::Off;
        phase.jobs[0].flush.fdatasync_every = 1;
        phase.jobs[0].files[0].prepare = Prepare::CreateEmpty;
        // Measured on ext4 without a journal: 3,872 writes, 11,488 KiB, 1,000 flushes.
        phase.observation.devices = vec![delta(counted(0, 11_488 * 1024, 1000))];
        phase.observation.residency = vec![("/data/file".to_owned(), residency(0, 0, 0), residency(bytes, 0, bytes))];
        phase
    }

    fn new(job: JobPlan, record: JobRecord) -> Self {
        let region = job.files[0].size_bytes;
        let path = job.files[0].path.clone();
        let map = trueio_evidence::FileMap {
            path: path.clone(),
            offset_bytes: 0,
            region_bytes: region,
            stored_bytes: region,
            unwritten_bytes: 0,
            hole_bytes: 0,
            holes: Vec::new(),
            unwritten: Vec::new(),
            encoded_bytes: 0,
            extent_count: 3,
            is_complete: true,
            source: "FIEMAP",
        };
        let observation = Observation {
            residency: vec![(path, residency(0, 0, region), residency(0, 0, region))],
            maps: vec![map.clone()],
            maps_after: vec![map],
            steal_share: Some(0.001),
            ..Observation::default()
        };
        let cpu = CpuTime { user_ns: SECOND_NS / 20, system_ns: SECOND_NS / 10 };
        Self {
            targets: vec![target()],
            jobs: vec![job],
            records: vec![record],
            observation,
            trace: None,
            cpu,
            worker_cpu: cpu,
            environment: machine(),
            elapsed_ns: SECOND_NS,
            steady_state: None,
            accepted_checks: Vec::new(),
        }
    }

    pub fn judge(&self) -> Judgement {
        let (verdict, level, checks) = self.with_facts(judge);
        // Every finding that objects has words that fit in a row, and no other has.
        for check in &checks {
            assert_eq!(!check.brief.is_empty(), check.objects(), "{check:?}");
            assert!(check.brief.chars().count() <= 60 && !check.brief.ends_with('.'), "{check:?}");
        }
        Judgement { verdict, level, checks, trace: self.trace.clone() }
    }

    fn with_facts<T>(&self, of: impl FnOnce(&PhaseFacts<'_>) -> T) -> T {
        let ruler = ruler();
        let facts = PhaseFacts {
            targets: &self.targets,
            jobs: &self.jobs,
            records: &self.records,
            observation: &self.observation,
            trace: self.trace.as_ref(),
            elapsed_ns: self.elapsed_ns,
            cpu: self.cpu,
            worker_cpu: self.worker_cpu,
            ruler: Some(&ruler),
            environment: Some(&self.environment),
            steady_state: self.steady_state.as_ref(),
            accepted_checks: &self.accepted_checks,
        };
        of(&facts)
    }
}

/// The result of `judge`.
pub struct Judgement {
    pub verdict: Verdict,
    pub level: EvidenceLevel,
    pub checks: Vec<Check>,
    pub trace: Option<TraceRecord>,
}

impl Judgement {
    pub fn check(&self, name: &str) -> &Check {
        self.checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no check `{name}`"))
    }

    /// Returns the names of the checks that flag the phase, with their outcomes.
    pub fn objections(&self) -> Vec<(&str, CheckOutcome)> {
        let objects = |outcome| matches!(outcome, CheckOutcome::Contradicted | CheckOutcome::Suspect);
        self.checks
            .iter()
            .filter(|check| objects(check.outcome))
            .map(|check| (check.name.as_str(), check.outcome))
            .collect()
    }

    /// Formats everything, for a failed assertion.
    pub fn report(&self) -> String {
        let mut text = format!("{} at {}\n", self.verdict, self.level);
        for check in &self.checks {
            text += &format!(
                "  {:20} {:?}: {} [{}; expected {}; found {}]\n",
                check.name, check.outcome, check.sentence, check.source, check.expected, check.found
            );
        }
        text += &format!("{:#?}\n", self.trace);
        text
    }

    #[track_caller]
    pub fn assert(&self, name: &str, outcome: CheckOutcome, words: &str) {
        let check = self.check(name);
        assert!(
            check.outcome == outcome && check.sentence.contains(words),
            "`{name}` was to be {outcome:?} with `{words}`:\n{}",
            self.report()
        );
    }

    /// Asserts that the table of docs/dev/staged-results.md lists the situation with what these checks print, or `no finding`
    /// for no check. The caller asserts that there is none.
    #[track_caller]
    pub fn assert_listed(&self, situation: &str, checks: &[&str]) {
        let file = std::panic::Location::caller().file();
        let by = file.rsplit("crates/").next().unwrap_or(file);
        let printed = |name: &&str| {
            let check = self.check(name);
            format!("{} (`{name}`): {}", check.outcome.word(), trueio_testkit::first_if_foreign(name, &check.sentence))
        };
        let printed: Vec<String> = checks.iter().map(printed).collect();
        let printed: Vec<&str> =
            if printed.is_empty() { vec!["no finding"] } else { printed.iter().map(String::as_str).collect() };
        trueio_testkit::assert_row(
            "docs/dev/staged-results.md",
            "tests",
            situation,
            &[&printed, &[&format!("`{by}`")]],
        );
    }
}

// ---------------------------------------------------------------------------------------------
// A phase that really runs
// ---------------------------------------------------------------------------------------------

/// Tests that read the disks' counters run one at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a file of random content, on the disk and out of the page cache.
pub fn stored_file(path: &Path, size_bytes: u64) -> File {
    let mut file = File::create_new(path).expect("a new file");
    let mut block = vec![0u8; MIB as usize];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..size_bytes / MIB {
        for word in block.chunks_exact_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word.copy_from_slice(&state.to_le_bytes());
        }
        std::io::Write::write_all(&mut file, &block).expect("space for a small file");
    }
    file.sync_all().expect("fsync");
    trueio_direct::evict(&file, 0, 0).expect("fadvise");
    file
}

pub fn open(path: &Path, flags: i32) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).expect("a file")
}

/// Counts the results of calls made by hand, as an engine counts them.
#[derive(Default)]
pub struct Calls {
    pub reads: Option<OpRecord>,
    pub writes: Option<OpRecord>,
    pub syncs: Option<OpRecord>,
    pub failures: Vec<IoFailure>,
    /// The number of the open window, and the I/Os sampled in windows.
    pub window: Option<Arc<AtomicU32>>,
    pub samples: Vec<SampledIo>,
    /// True if an I/O began and ended in the same window.
    pub is_sampled: bool,
    /// Delays every such transfer by that time before the call, as a library between program and kernel can.
    pub delay: Option<(u64, Duration)>,
    /// What each sync call is delayed by, before it reaches the kernel.
    pub sync_delay: Option<Duration>,
    /// Of a phase whose length is known, with its begin.
    timeline: Option<(Timeline, Instant)>,
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

impl Calls {
    /// Keeps the samples that a worker would keep: I/Os that began in the present window.
    fn sample(&mut self, op: OpKind, offset: u64, length: usize, issued_ns: u64, window: u32) {
        let (length, done_ns) = (length as u32, monotonic_ns());
        if window > 0 {
            self.samples.push(SampledIo { window, op, file: 0, offset, length, issued_ns, done_ns });
            self.is_sampled |= self.open_window() == window;
        }
    }

    /// A sync call that returned without doing anything.
    pub fn swallowed_sync(&mut self, file: &File) {
        let window = self.open_window();
        let issued_ns = monotonic_ns();
        file.metadata().expect("fstat");
        let record = self.syncs.get_or_insert_with(|| op(OpKind::Sync, 0, 0, 0));
        record.io_count += 1;
        self.sample(OpKind::Sync, 0, 0, issued_ns, window);
    }

    /// Looks for other programs, as the thread does that follows a phase.
    pub fn look(&mut self) {
        let (timeline, begin) = self.timeline.as_mut().expect("a phase of known length");
        timeline.look(|| begin.elapsed().as_nanos() as u64);
    }

    /// The number of the open trace window; 0 while none is open.
    pub fn open_window(&self) -> u32 {
        self.window.as_ref().map_or(0, |window| window.load(Ordering::Acquire))
    }

    /// Makes one `pread` or `pwrite` of `length` bytes at `offset` from `address`.
    ///
    /// `address` points to `length` bytes that may be read and written.
    pub fn transfer(&mut self, kind: OpKind, file: &File, path: &Path, address: *mut u8, length: usize, offset: u64) {
        let window = self.open_window();
        let issued_ns = monotonic_ns();
        let at = Instant::now();
        if let Some((every, time)) = self.delay.filter(|(every, _)| (offset / length as u64).is_multiple_of(*every)) {
            assert!(every > 0);
            std::thread::sleep(time);
        }
        // SAFETY: callers pass the address of a buffer of at least `length` bytes, which outlives this
        // blocking call.
        let returned = unsafe {
            match kind {
                OpKind::Read => libc::pread(file.as_raw_fd(), address.cast(), length, offset as libc::off_t),
                _ => libc::pwrite(file.as_raw_fd(), address.cast(), length, offset as libc::off_t),
            }
        };
        let error = std::io::Error::last_os_error();
        let slot = if kind == OpKind::Read { &mut self.reads } else { &mut self.writes };
        let record = slot.get_or_insert_with(|| op(kind, 0, 0, 0));
        if returned == length as isize {
            record.io_count += 1;
            record.byte_count += length as u64;
            record.latency.total.record(at.elapsed().as_nanos() as u64);
            return self.sample(kind, offset, length, issued_ns, window);
        }
        record.error_count += 1;
        match self.failures.first_mut() {
            Some(first) => first.count += 1,
            None => self.failures.push(IoFailure {
                op: kind,
                errno: error.raw_os_error().unwrap_or(0),
                path: path.display().to_string(),
                offset,
                length: length as u64,
                address: address as u64,
                returned: returned.max(0) as u64,
                count: 1,
                explanation: String::new(),
            }),
        }
    }

    /// Makes `count` transfers of 4 KiB, one after another, from an aligned buffer.
    pub fn blocks(&mut self, kind: OpKind, file: &File, path: &Path, count: u64) {
        let mut buffer = AlignedBuffer::new(4096, 4096).expect("a page");
        for block in 0..count {
            self.transfer(kind, file, path, buffer.as_mut_ptr(), 4096, block * 4096);
        }
    }

    pub fn fdatasync(&mut self, file: &File) {
        let window = self.open_window();
        let issued_ns = monotonic_ns();
        let at = Instant::now();
        self.sync_delay.into_iter().for_each(std::thread::sleep);
        file.sync_data().expect("fdatasync");
        let record = self.syncs.get_or_insert_with(|| op(OpKind::Sync, 0, 0, 0));
        record.io_count += 1;
        record.latency.total.record(at.elapsed().as_nanos() as u64);
        self.sample(OpKind::Sync, 0, 0, issued_ns, window);
    }
}

/// Runs `neighbour` repeatedly on a separate thread while `act` runs, and ends it even if `act` panics. `act`
/// can read how often it ran.
pub fn with_neighbour<T>(neighbour: impl Fn() + Sync, act: impl FnOnce(&AtomicU32) -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let (stop, times) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                neighbour();
                times.fetch_add(1, Ordering::Relaxed);
            }
        });
        act(&times)
    })
}

/// Runs `io` as the phase `job` on this machine and judges it. On a busy machine the first trace window may
/// end before the first I/O: `io` is then repeated until a window contains one.
///
/// So is the phase whose trace lost events, or followed no I/O to the disk of a loop device's file.
///
/// What other programs do on the disk of a loop device's file is not under test here, except with [`stage_with_users_below`].
pub fn stage(job: JobPlan, mut io: impl FnMut(&mut Calls)) -> Judgement {
    const TRIES_MAX: usize = 5;
    let mut tries = (0..TRIES_MAX).map(|_| stage_once(job.clone(), &mut io));
    let first = tries.next().expect("a try");
    if first.trace.as_ref().is_none_or(|trace| !is_incomplete(trace)) {
        return first;
    }
    tries.find(|judgement| judgement.trace.as_ref().is_none_or(|trace| !is_incomplete(trace))).unwrap_or(first)
}

/// Stages a phase whose trace may be incomplete.
pub fn stage_once(job: JobPlan, io: impl FnMut(&mut Calls)) -> Judgement {
    without_users_below(staged(job, None, io)).judge()
}

fn without_users_below(mut phase: Phase) -> Phase {
    if let Some(below) = phase.trace.as_mut().and_then(|trace| trace.below.as_mut()) {
        below.others = RequestSum::default();
    }
    phase
}

/// Returns true for a trace that lost events, or that found I/Os on a loop device and none in a window of the disk below.
fn is_incomplete(trace: &TraceRecord) -> bool {
    let below = trace.below.as_ref().filter(|below| below.missing.is_none() && !below.disks.is_empty());
    let is_unfollowed = |below: &BelowTrace| trace.transfers.sampled_count > 0 && below.transfers.sampled_count == 0;
    trace.lost_event_count > 0 || below.is_some_and(is_unfollowed)
}

/// The same with other programs on the disk of a loop device's file.
pub fn stage_with_users_below(job: JobPlan, io: impl FnMut(&mut Calls)) -> Judgement {
    staged(job, None, io).judge()
}

/// A phase whose length is known, and in which [`Calls::look`] looks for other programs.
pub fn stage_for(length: Duration, job: JobPlan, io: impl FnMut(&mut Calls)) -> Judgement {
    without_users_below(staged(job, Some(length), io)).judge()
}

fn staged(job: JobPlan, length: Option<Duration>, mut io: impl FnMut(&mut Calls)) -> Phase {
    let system = System::live();
    let targets: Vec<TargetFacts> = job
        .files
        .iter()
        .map(|file| target_facts(&system, Path::new(&file.path)).expect("facts of the staged file"))
        // Limits of the control group that the tests run in are not under test here, nor is its quota.
        .map(|facts| TargetFacts { io_limits: Fact::known(Vec::new(), "by hand"), ..facts })
        .collect();
    let mut watch = Watch::new(&system, &targets, &job.files);
    if job.pattern.mix != OpMix::Only(OpKind::Write) {
        watch.sample_content();
    }
    watch.baseline(Duration::from_millis(150));
    let mut calls = Calls { window: watch.sample_window(), ..Calls::default() };
    watch.before(length);
    let at = Instant::now();
    calls.timeline = length.map(|_| (watch.timeline(&[&job], &[]), at));
    io(&mut calls);
    while calls.window.is_some()
        && !calls.is_sampled
        && calls.failures.is_empty()
        && at.elapsed() < Duration::from_secs(10)
    {
        io(&mut calls);
    }
    let elapsed_ns = at.elapsed().as_nanos() as u64;
    let mut observation = watch.after();
    // Some milliseconds in which no other process needs the processor.
    assert!(observation.cost_ns < 20 * SECOND_NS, "watching took {} ns", observation.cost_ns);
    // A task that waits for a processor may be the cause of any delay, except of one that is staged.
    if calls.delay.is_some() || calls.sync_delay.is_some() {
        observation.cpu_pressure_share = None;
    }
    // Steal of the hypervisor is not under test here.
    observation.steal_share = None;
    let mut record = record([calls.reads, calls.writes, calls.syncs].into_iter().flatten().collect());
    record.failures = calls.failures;
    // The calls are made by hand, so their CPU time is not counted; half a core is not suspect.
    let cpu = CpuTime { user_ns: elapsed_ns / 4, system_ns: elapsed_ns / 4 };
    let mut environment = environment(&system);
    environment.cpu.quota = None;
    let traced = observation.traced.take();
    let mut phase = Phase {
        targets,
        jobs: vec![job],
        records: vec![record],
        observation,
        trace: None,
        cpu,
        worker_cpu: cpu,
        environment,
        elapsed_ns,
        steady_state: None,
        accepted_checks: Vec::new(),
    };
    phase.trace = traced.map(|traced| phase.with_facts(|facts| facts.match_trace(&traced, &[vec![calls.samples]])));
    phase
}

// ---------------------------------------------------------------------------------------------
// Targets
// Filesystems

/// Options of a loop device that reads and writes its file directly, or through the page cache.
pub const DIRECT: &[&str] = &["--direct-io=on"];
pub const BUFFERED: &[&str] = &["--direct-io=off"];

/// A filesystem on a loop device with direct I/O on the build directory's disk; `None`, with the reason
/// printed, if there is none.
pub fn mounted(kind: &str, options: &str) -> Option<Mount> {
    let size = if kind == "btrfs" { 256 * MIB } else { 128 * MIB };
    let below = Loop::create(size, DIRECT).inspect_err(|why| skip("loop", why)).ok()?;
    Mount::on(kind, below, options).inspect_err(|why| skip(kind, why)).ok()
}
