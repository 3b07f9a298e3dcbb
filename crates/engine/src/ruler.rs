//! The ruler's own marks: what measuring costs on this machine, measured before anything else.

use crate::clock::{AnyClock, Clock};
use crate::{Progress, Start, WorkerContext, run_worker};
use std::sync::atomic::AtomicBool;
use trueio_model::{
    BlockSizes, Content, ContentKind, DirectPolicy, Distribution, EngineKind, FilePlan, FileSelection, Flush, JobPlan,
    Limits, OpKind, OpMix, Order, OutputPlan, Pattern, Prepare, Queue, Ruler, SyncMode, UringOptions, WriteFlags,
};

/// I/Os of the `null` run: at 30 ns each 0.03 ms, and 0.3 million instructions of every start.
const NULL_IOS: u64 = 1_024;

/// Measures clock and loop; takes about 0.3 ms.
pub fn measure_ruler(clock: AnyClock) -> Ruler {
    let (clock_cost_ns, clock_resolution_ns) = match clock {
        AnyClock::Tsc(clock) => clock_marks(&clock),
        AnyClock::Monotonic(clock) => clock_marks(&clock),
    };
    let plan = null_plan();
    let start = Start::new();
    start.open();
    let context = WorkerContext {
        plan: &plan,
        worker: 0,
        files: &[],
        stop: &AtomicBool::new(false),
        start: &start,
        progress: &Progress::default(),
        clock,
        sample_window: None,
        log: None,
        iolog: None,
        snapshot: None,
        judge: None,
        flow: None,
        waits_for: &[],
        gate: None,
    };
    let report = run_worker(&context);
    let reads = &report.ops[0].latency.total;
    Ruler {
        clock: clock.name().to_owned(),
        clock_cost_ns,
        clock_resolution_ns,
        // The loop never waits, so its time is its CPU time (unless it is interrupted).
        null_cpu_ns_per_io: report.elapsed_ns as f64 / NULL_IOS as f64,
        null_latency_ns_p50: reads.value_at_rank(reads.count().div_ceil(2)).unwrap_or(0),
    }
}

/// (cost of a reading, smallest step), in nanoseconds.
fn clock_marks<C: Clock>(clock: &C) -> (f64, f64) {
    const READINGS: u64 = 2_000;
    let first = clock.now();
    let mut last = first;
    let mut step = u64::MAX;
    for _ in 0..READINGS {
        let now = clock.now();
        if now > last {
            step = step.min(now - last);
        }
        last = now;
    }
    // A step is a difference of ticks; in nanoseconds with a fraction, since it may be below one.
    let ns_per_tick = clock.to_ns(1 << 20) as f64 / f64::from(1u32 << 20);
    let cost = (last - first) as f64 * ns_per_tick / READINGS as f64;
    (cost, if step == u64::MAX { cost } else { step as f64 * ns_per_tick })
}

/// 4 KiB random reads at depth 1, every block once, over 256 MiB of nothing.
fn null_plan() -> JobPlan {
    JobPlan {
        name: "ruler".to_owned(),
        phase: 0,
        engine: EngineKind::Null,
        workers: 1,
        files: vec![FilePlan {
            path: String::new(),
            prepare: Prepare::Nothing,
            remove_after: false,
            offset_bytes: 0,
            size_bytes: 256 << 20,
        }],
        file_selection: FileSelection::RoundRobin,
        pattern: Pattern {
            mix: OpMix::Only(OpKind::Read),
            order: Order::Random { distribution: Distribution::Uniform, each_block_once: true },
            read_sizes: BlockSizes::Fixed(4096),
            write_sizes: BlockSizes::Fixed(4096),
            trim_sizes: BlockSizes::Fixed(4096),
            steps: trueio_model::Steps::default(),
        },
        queue: Queue { depth: 1, submit_batch: Some(1), complete_min: 1, complete_max: 0, low: 0 },
        steady_state: None,
        limits: Limits {
            io_bytes: u64::MAX,
            loops: 1,
            io_count: Some(NULL_IOS),
            runtime_ns: None,
            is_time_based: true,
            ramp_ns: 0,
            start_delay_ns: 0,
        },
        direct: DirectPolicy::Off,
        sync: SyncMode::None,
        write_flags: WriteFlags::default(),
        flush: Flush::default(),
        pace: None,
        think: None,
        content: Content {
            kind: ContentKind::Random,
            pattern: Vec::new(),
            compressible_percent: 0,
            duplicate_percent: 0,
            refill: false,
        },
        source: None,
        replay: None,
        command: None,
        cpu_load: None,
        guard: trueio_model::Guard::default(),
        verify: None,
        uring: UringOptions {
            registered_buffers: false,
            registered_files: false,
            sqpoll: false,
            iopoll: false,
            drain: false,
            ..Default::default()
        },
        simulated: None,
        cpus: Vec::new(),
        nice: None,
        scheduling: Default::default(),
        handling: Default::default(),
        exec: None,
        invalidate: false,
        pre_read: false,
        seed: 1,
        buffer_alignment_bytes: 4096,
        buffer_offset_bytes: 0,
        continue_on_error: false,
        output: OutputPlan::default(),
        trace_syscalls: false,
        strace: false,
        control: Default::default(),
        values: Vec::new(),
    }
}
