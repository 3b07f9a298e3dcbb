//! Plans, files and runs for the engine's tests.
//!
//! A [`Job`] is the smallest plan there is (4 KiB random reads over 1 MiB, each block once, one at
//! a time); a test changes what it is about and runs it.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the tests of other crates, and `allocations`, use a part"
)]

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use trueio_engine::{
    AnyClock, Flow, Gate, IssuedIo, LogChannel, LoggedIo, Progress, Snapshot, Start, TargetFile, TrimCall,
    WorkerContext, WorkerReport, availability, choose_clock, log_channel, run_worker,
};
use trueio_model::{
    Arrivals, BlockSizes, EngineKind, FilePlan, Histogram, IoPriority, JobPlan, OpKind, OpMix, OpRecord, Order, Pace,
    Prepare, PriorityShare, ReplayPlan, ReplaySettings, SimulatedDevice, Think, UringOptions, Verify, scan_iolog,
};
pub use trueio_testkit::{Loop, Mount, folder, skip};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;

/// How a job's files are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    ReadWrite,
    ReadOnly,
    Direct,
}

/// A plan, its files, and the flag that stops it.
pub struct Job {
    pub plan: JobPlan,
    pub files: Vec<TargetFile>,
    pub stop: Arc<AtomicBool>,
    pub worker: u32,
    pub log: Option<LogChannel>,
    pub iolog: Option<LogChannel<IssuedIo>>,
    pub snapshot: Option<Arc<Snapshot>>,
    pub judge: Option<Arc<dyn trueio_engine::SpanJudge>>,
    pub flow: Option<Arc<trueio_engine::Flow>>,
    pub zones: Vec<Arc<trueio_engine::ZoneMap>>,
    /// Runs a worker: the engine's function, or that of crate `run` for jobs without measured I/O.
    pub runner: fn(&WorkerContext<'_>) -> WorkerReport,
    pub host: trueio_engine::Host,
}

impl Job {
    pub fn new(engine: EngineKind) -> Self {
        let plan = JobPlan {
            files: vec![file_plan("", 0, MIB)],
            uring: UringOptions { registered_buffers: true, registered_files: true, ..UringOptions::default() },
            seed: 7,
            ..JobPlan::plain(engine, MIB)
        };
        Self {
            plan,
            files: Vec::new(),
            stop: Arc::default(),
            worker: 0,
            log: None,
            iolog: None,
            snapshot: None,
            judge: None,
            flow: None,
            zones: Vec::new(),
            runner: run_worker,
            host: trueio_engine::Host::default(),
        }
    }

    /// A job on a modelled disk.
    pub fn simulated(service_ns: u64, channels: u32) -> Self {
        let mut job = Self::new(EngineKind::Simulated);
        job.plan.simulated = Some(SimulatedDevice {
            service_ns,
            channels,
            stalls: Vec::new(),
            slowdowns: Vec::new(),
            failing_ios: Vec::new(),
        });
        job
    }

    pub fn device(&mut self) -> &mut SimulatedDevice {
        self.plan.simulated.as_mut().expect("a simulated job")
    }

    pub fn on(mut self, paths: &[&Path], region: u64, open: Open) -> Self {
        self.files = paths.iter().map(|path| target(path, region, open)).collect();
        self.plan.files = paths.iter().map(|path| file_plan(&path.display().to_string(), 0, region)).collect();
        self.plan.limits.io_bytes = region * paths.len() as u64;
        self
    }

    pub fn op(mut self, op: OpKind) -> Self {
        self.plan.pattern.mix = OpMix::Only(op);
        self
    }

    pub fn mixed(mut self, read_percent: u8) -> Self {
        self.plan.pattern.mix = OpMix::ReadWrite { read_percent };
        self
    }

    pub fn sequential(mut self) -> Self {
        self.plan.pattern.order = Order::Sequential;
        self
    }

    pub fn sizes(mut self, sizes: BlockSizes) -> Self {
        self.plan.pattern.read_sizes = sizes.clone();
        self.plan.pattern.write_sizes = sizes.clone();
        self.plan.pattern.trim_sizes = sizes;
        self
    }

    pub fn region(mut self, bytes: u64) -> Self {
        self.plan.files[0].size_bytes = bytes;
        self.plan.limits.io_bytes = bytes;
        self
    }

    pub fn depth(mut self, depth: u32) -> Self {
        self.plan.queue.depth = depth;
        self
    }

    pub fn verify(mut self, checksum: trueio_model::Checksum) -> Self {
        self.plan.verify = Some(Verify::new(checksum));
        self
    }

    pub fn seed(mut self, seed: u64) -> Self {
        self.plan.seed = seed;
        self
    }

    pub fn ios(mut self, count: u64) -> Self {
        self.plan.limits.io_count = Some(count);
        self.plan.limits.is_time_based = true;
        self
    }

    pub fn time(mut self, runtime_ns: u64) -> Self {
        self.plan.limits.runtime_ns = Some(runtime_ns);
        self.plan.limits.is_time_based = true;
        self
    }

    pub fn rate(mut self, ios_per_s: f64, arrivals: Arrivals) -> Self {
        self.plan.pace = Some(Pace { ios_per_s: Some(ios_per_s), bytes_per_s: None, of_writes: None, arrivals });
        self
    }

    pub fn think(mut self, time_ns: u64, every: u64) -> Self {
        self.plan.think = Some(Think { time_ns, every, after_ns: 0, spin_ns: 0 });
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut JobPlan)) -> Self {
        change(&mut self.plan);
        self
    }

    /// Runs the job on a thread of its own, as the runner does.
    pub fn run(&self) -> WorkerReport {
        let start = Start::new();
        start.open();
        self.run_from(&start)
    }

    /// Runs the job and collects its log.
    pub fn run_logged(mut self) -> (WorkerReport, Vec<LoggedIo>) {
        let (channel, chunks) = log_channel();
        self.log = Some(channel);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut ios = Vec::new();
                for chunk in chunks {
                    ios.extend_from_slice(&chunk.ios);
                    chunk.give_back();
                }
                ios
            });
            let report = self.run();
            self.log = None;
            (report, reader.join().expect("the reader does not panic"))
        })
    }

    /// Runs the job and collects what it issued.
    pub fn run_issued(mut self) -> (WorkerReport, Vec<IssuedIo>) {
        let (channel, chunks) = log_channel();
        self.iolog = Some(channel);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || chunks.into_iter().flat_map(|chunk| chunk.ios).collect());
            let report = self.run();
            self.iolog = None;
            (report, reader.join().expect("the reader does not panic"))
        })
    }

    /// Makes it replay a log of the files that it has.
    pub fn replaying(mut self, log: &std::path::Path, settings: ReplaySettings) -> Self {
        let summary = scan_iolog(std::fs::File::open(log).unwrap(), &settings).unwrap();
        let ops = [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::Sync];
        let length = |op| summary.of(op).length_bytes_max;
        self.plan.replay = Some(Box::new(ReplayPlan {
            log: log.to_str().unwrap().to_owned(),
            settings,
            names: summary.files.iter().map(|(name, _)| name.clone()).collect(),
            ops: ops.into_iter().filter(|op| summary.of(*op).count > 0).collect(),
            length_bytes_max: length(OpKind::Read).max(length(OpKind::Write)),
        }));
        self.plan.pattern.mix = OpMix::ReadWrite { read_percent: 50 };
        self
    }

    /// Runs the job on a thread of its own, from a given start.
    pub fn run_from(&self, start: &Start) -> WorkerReport {
        self.run_sampled(start, None)
    }

    /// The same, with windows in which I/Os are sampled.
    pub fn run_sampled(&self, start: &Start, sample_window: Option<&AtomicU32>) -> WorkerReport {
        let progress = Progress::default();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                (self.runner)(&WorkerContext {
                    worker: self.worker,
                    sample_window,
                    log: self.log.clone(),
                    iolog: self.iolog.clone(),
                    snapshot: self.snapshot.as_deref(),
                    judge: self.judge.as_deref(),
                    flow: self.flow.as_deref(),
                    zones: &self.zones,
                    host: self.host,
                    ..WorkerContext::new(&self.plan, &self.files, &self.stop, start, &progress, clock())
                })
            });
            worker.join().expect("the worker does not panic")
        })
    }

    /// Runs the job and asks it to stop after `delay`; returns how long it took to obey.
    pub fn run_and_stop(&self, delay: Duration) -> (WorkerReport, Duration) {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| self.run());
            std::thread::sleep(delay);
            let asked = Instant::now();
            self.stop.store(true, Relaxed);
            (worker.join().expect("the worker does not panic"), asked.elapsed())
        })
    }
}

/// Runs workers side by side, which share a flow and a flag that ends them; if `waits`, each waits for those before it.
/// Where they do not end, the test has failed.
pub fn side_by_side(jobs: &[Job], waits: bool) -> Vec<WorkerReport> {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (start, stop, flow, clock) = (Start::new(), AtomicBool::new(false), Flow::default(), choose_clock());
    let gates: Vec<Gate> = jobs.iter().map(|_| Gate::new(1)).collect();
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let (start, stop, flow, progress, gates) = (&start, &stop, &flow, &progress, &gates);
        let run = move |index: usize, job: &Job| {
            let before: Vec<&Gate> = gates[..index].iter().filter(|_| waits).collect();
            let does_io = |(other, _): &(usize, &Gate)| jobs[*other].plan.engine.does_io();
            let others: Vec<&Gate> = gates.iter().enumerate().filter(does_io).map(|(_, gate)| gate).collect();
            (job.runner)(&WorkerContext {
                flow: Some(flow),
                waits_for: &before,
                ends_with: &others,
                gate: Some(&gates[index]),
                ..WorkerContext::new(&job.plan, &[], stop, start, progress, clock)
            })
        };
        let threads: Vec<_> =
            jobs.iter().enumerate().map(|(index, job)| scope.spawn(move || run(index, job))).collect();
        let watcher = scope.spawn(move || {
            let is_stuck = receiver.recv_timeout(Duration::from_secs(100)) == Err(RecvTimeoutError::Timeout);
            if is_stuck {
                stop.store(true, Relaxed);
            }
            is_stuck
        });
        start.wait_for(jobs.len() as u32);
        start.open();
        let reports: Vec<WorkerReport> =
            threads.into_iter().map(|thread| thread.join().expect("no worker panics")).collect();
        drop(sender);
        assert!(!watcher.join().expect("it does not panic"), "they do not end: {reports:?}");
        reports
    })
}

/// A share of the I/Os of `op`, in percent, with an I/O priority of its own.
pub fn share(op: OpKind, percent: u8, class: u8, level: u8) -> PriorityShare {
    PriorityShare { op, length_bytes: None, percent, priority: IoPriority { class, level, hint: 0 } }
}

/// The engines that give single I/Os priorities, where they work.
pub fn engines_with_priorities() -> Vec<EngineKind> {
    let has = |engine: &EngineKind| matches!(engine, EngineKind::Libaio | EngineKind::IoUring);
    let works = availability().into_iter().filter(|found| found.works);
    let engines: Vec<EngineKind> = works.map(|found| found.engine).filter(has).collect();
    if engines.len() < 2 {
        skip("io_uring", "an engine that gives I/Os priorities does not work here");
    }
    engines
}

fn clock() -> AnyClock {
    static CLOCK: OnceLock<AnyClock> = OnceLock::new();
    *CLOCK.get_or_init(choose_clock)
}

pub fn file_plan(path: &str, offset_bytes: u64, size_bytes: u64) -> FilePlan {
    FilePlan {
        path: path.to_owned(),
        prepare: Prepare::UseExisting,
        remove_after: false,
        offset_bytes,
        size_bytes,
        extends_from: None,
    }
}

/// Opens `path` for a job.
pub fn target(path: &Path, end_bytes: u64, open: Open) -> TargetFile {
    try_target(path, end_bytes, open).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn try_target(path: &Path, end_bytes: u64, open: Open) -> std::io::Result<TargetFile> {
    let file = OpenOptions::new()
        .read(true)
        .write(open != Open::ReadOnly)
        .custom_flags(if open == Open::Direct { libc::O_DIRECT } else { 0 })
        .open(path)?;
    let trim_call = {
        use std::os::unix::fs::FileTypeExt;
        if file.metadata()?.file_type().is_block_device() { TrimCall::Discard(None) } else { TrimCall::PunchHole }
    };
    Ok(TargetFile {
        file: Arc::new(file),
        path: path.display().to_string(),
        trim_call,
        end_bytes,
        lock: None,
        disk: None,
    })
}

/// A file of `size` bytes of ones, really written.
pub fn filled(folder: &Path, name: &str, size: u64) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, vec![1u8; size as usize]).unwrap();
    path
}

/// Returns true if `path`, which is not empty, supports direct I/O; prints it if not. Where a transfer of
/// 513 bytes is not refused (tmpfs), the flag is taken and the page cache used.
pub fn has_direct(path: &Path) -> bool {
    use std::os::unix::fs::FileExt;
    let answer = try_target(path, 0, Open::Direct).map(|t| t.file.read_at(&mut [0; 513], 0));
    match answer {
        Ok(Err(error)) if error.raw_os_error() == Some(libc::EINVAL) => return true,
        Ok(_) => skip("direct", &format!("direct I/O on {} goes through the page cache", path.display())),
        Err(error) => skip("direct", &format!("no direct I/O on {}: {error}", path.display())),
    }
    false
}

/// The figures of one operation.
pub fn op(report: &WorkerReport, op: OpKind) -> &OpRecord {
    report.ops.iter().find(|r| r.op == op).unwrap_or_else(|| panic!("no {op} in {report:?}"))
}

/// Asserts a complete run: no error, no failure, and consistent figures.
#[track_caller]
pub fn assert_clean(report: &WorkerReport, name: &str) {
    assert_eq!(report.fatal, None, "{name}");
    assert_eq!(report.failures, Vec::new(), "{name}");
    assert_eq!(report.verify_failures, Vec::new(), "{name}");
    assert_eq!(report.verify_failure_count, 0, "{name}");
    assert_consistent(report, name);
}

/// Every I/O is in every histogram it belongs to, and the rows add up to the totals.
#[track_caller]
pub fn assert_consistent(report: &WorkerReport, name: &str) {
    let mut sums = (0, 0, 0);
    for record in &report.ops {
        let count = |h: &Histogram| h.count();
        assert_eq!(count(&record.latency.total), record.io_count, "{name}: {} total", record.op);
        assert_eq!(count(&record.latency.completion), record.io_count, "{name}: {} completion", record.op);
        // Engines that block, and sync calls, have no separate submission.
        let submissions = count(&record.latency.submission);
        if submissions > 0 && report.fatal.is_none() {
            assert_eq!(submissions, record.io_count + record.error_count, "{name}: {} submission", record.op);
        }
        match record.op {
            OpKind::Read => sums.0 += record.io_count,
            OpKind::Write => sums.1 += record.io_count,
            _ => sums.2 += record.io_count,
        }
    }
    let rows = report
        .series
        .iter()
        .fold((0, 0, 0), |sum, row| (sum.0 + row.read_count, sum.1 + row.write_count, sum.2 + row.other_count));
    assert_eq!(rows, sums, "{name}: the rows are the totals");
    let bytes: u64 = report.series.iter().map(|row| row.read_bytes + row.write_bytes).sum();
    let all = report.ops.iter().filter(|r| matches!(r.op, OpKind::Read | OpKind::Write)).map(|r| r.byte_count);
    assert_eq!(bytes, all.sum::<u64>(), "{name}: the rows' bytes are the totals");
    let spans: u64 = report.series.iter().map(|row| row.span_ns).sum();
    // Converting ticks rounds each row down, by less than a nanosecond.
    assert!(
        spans.abs_diff(report.elapsed_ns) <= report.series.len() as u64 + 1,
        "{name}: rows of {spans} ns together, elapsed {} ns",
        report.elapsed_ns
    );
}

/// A verified block's header in its format on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub offset: u64,
    pub sequence: u64,
    pub length: u64,
}

/// Reads the header at `at`, if there is one.
pub fn header(content: &[u8], at: usize) -> Option<Header> {
    let word = |from: usize| u64::from_le_bytes(content[from..from + 8].try_into().unwrap());
    (&content[at..at + 6] == b"TRUEIO").then(|| Header {
        offset: word(at + 16),
        sequence: word(at + 24),
        length: word(at + 32) & 0xffff_ffff,
    })
}

/// A small tmpfs; `None`, with the reason printed, where that is not allowed.
pub fn tmpfs(size: u64) -> Option<Mount> {
    Mount::create("tmpfs", "none", &format!("size={size}")).inspect_err(|reason| skip("root", reason)).ok()
}
