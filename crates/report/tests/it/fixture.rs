//! A fictitious record that resembles a real one: a baseline of seven phases on an NVMe disk.
//!
//! Everything is generated from one seed, so the record is the same on every machine. The disk, its figures
//! and the machine are invented; no product was measured.

#![allow(dead_code, unreachable_pub, reason = "an example and the tests of other crates use a part")]

use trueio_model::*;

/// splitmix64: small, and the same on every machine.
pub struct Draws(pub u64);

impl Draws {
    /// Returns the next draw from 0 to 1.
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a standard normal draw (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.next()).ln()).sqrt() * (std::f64::consts::TAU * self.next()).cos()
    }
}

/// The distribution of one operation of a phase.
struct Shape {
    op: OpKind,
    io_bytes: u64,
    io_count: u64,
    p50_us: f64,
    /// Standard deviation of the logarithm.
    spread: f64,
    /// Share of I/Os that take `tail_us` instead.
    tail_share: f64,
    tail_us: f64,
}

/// Requests of a phase that were traced: most of the time in the device, and a neighbour at the end of the disk.
fn trace() -> TraceRecord {
    let times = |mean_ns, p50_ns, p99_ns| PartTimes { mean_ns, p50_ns, p99_ns };
    let cells = (0..16u32).flat_map(|row| (0..40).map(move |column| row * 40 + column));
    let index: Vec<u32> = cells.filter(|cell| cell / 40 < 10 || cell / 40 == 15 && cell % 40 > 25).collect();
    TraceRecord {
        disks: vec!["nvme0n1".to_owned()],
        window_count: 4,
        window_ns: 40_000_000,
        ours: RequestSum { count: 1_536, bytes: 1_536 * 4096 },
        others: RequestSum { count: 14, bytes: 14 * 4096 },
        transfers: TransferMatch { sampled_count: 512, matched_count: 512, ..TransferMatch::default() },
        latency: vec![LatencyParts {
            op: OpKind::Read,
            io_count: 512,
            total: times(92_300, 88_000, 241_000),
            scheduler: times(400, 0, 9_200),
            device: times(80_100, 77_000, 220_000),
            rest: times(11_800, 9_900, 38_000),
        }],
        places: Some(RequestPlaces {
            disk: "nvme0n1".to_owned(),
            begin_bytes: 0,
            end_bytes: 1 << 40,
            span_ns: 3_000_000_000,
            column_count: 40,
            row_count: 16,
            outside_count: 0,
            own_count: index.iter().map(|cell| if cell / 40 < 10 { 1 + cell % 13 } else { 0 }).collect(),
            other_count: index.iter().map(|cell| u32::from(cell / 40 == 15)).collect(),
            index,
        }),
        ..TraceRecord::default()
    }
}

/// Draws at most this many latencies; each represents several I/Os.
const DRAW_COUNT: u64 = 20_000;

fn latency(shape: &Shape, draws: &mut Draws, holds_a_queue: bool) -> LatencySet {
    let mut set = LatencySet {
        submission: Histogram::new(),
        completion: Histogram::new(),
        total: Histogram::new(),
        from_intended: Histogram::new(),
    };
    let each = shape.io_count.div_ceil(DRAW_COUNT).max(1);
    let mut left = shape.io_count;
    while left > 0 {
        let n = each.min(left);
        left -= n;
        let (center, spread) =
            if draws.next() < shape.tail_share { (shape.tail_us, 0.5) } else { (shape.p50_us, shape.spread) };
        let total = (center * (spread * draws.normal()).exp() * 1e3) as u64;
        let submission = if holds_a_queue { 900 + (draws.next() * 700.0) as u64 } else { 0 };
        set.total.record_many(total, n);
        if holds_a_queue {
            set.submission.record_many(submission, n);
            set.completion.record_many(total.saturating_sub(submission), n);
        } else {
            set.completion.record_many(total, n);
        }
    }
    set
}

fn series(shapes: &[Shape], row_count: u64, draws: &mut Draws) -> Vec<SeriesRow> {
    (0..row_count)
        .map(|i| {
            // Occasional dips, as garbage collection causes them.
            let pace = if i % 23 == 17 { 0.62 } else { 1.0 + 0.03 * draws.normal() };
            let share = |op: OpKind| {
                shapes.iter().filter(|s| s.op == op).fold((0, 0), |(count, bytes), s| {
                    let n = (s.io_count as f64 / row_count as f64 * pace).max(0.0) as u64;
                    (count + n, bytes + n * s.io_bytes)
                })
            };
            let (read_count, read_bytes) = share(OpKind::Read);
            let (write_count, write_bytes) = share(OpKind::Write);
            let slow = shapes.iter().map(|s| s.p50_us).fold(0.0, f64::max);
            let tail = shapes.iter().map(|s| s.tail_us).fold(0.0, f64::max);
            SeriesRow {
                end_ns: (i + 1) * 100_000_000,
                span_ns: 100_000_000,
                read_count,
                read_bytes,
                write_count,
                write_bytes,
                other_count: share(OpKind::Sync).0,
                trim_count: 0,
                trim_bytes: 0,
                latency_ns_p50: (slow / pace * 1e3 * (1.0 + 0.02 * draws.normal())) as u64,
                latency_ns_p99: (slow * 1.7 / pace * 1e3 * (1.0 + 0.06 * draws.normal())) as u64,
                latency_ns_max: (tail * (0.35 * draws.normal()).exp() * 1.4 / pace * 1e3) as u64,
            }
        })
        .collect()
}

fn check(name: &str, outcome: CheckOutcome, source: &str, expected: &str, found: &str, sentence: &str) -> Check {
    Check {
        is_accepted: false,
        name: name.into(),
        outcome,
        cause: Cause::usual_of(name).unwrap_or_default(),
        brief: String::new(),
        explained_percent: None,
        culprits: Vec::new(),
        source: source.into(),
        expected: expected.into(),
        found: found.into(),
        sentence: sentence.into(),
    }
}

fn preset(name: &'static str, value: impl Into<std::borrow::Cow<'static, str>>) -> PlanValue {
    PlanValue { name: name.into(), value: value.into(), origin: Origin::Preset { name: "baseline".into() } }
}

struct Phase {
    name: &'static str,
    engine: EngineKind,
    mix: OpMix,
    order: Order,
    block_bytes: u64,
    depth: u32,
    fdatasync_every: u64,
    cpu_us_per_io: f64,
    shapes: Vec<Shape>,
}

fn random() -> Order {
    Order::Random { distribution: Distribution::Uniform, each_block_once: true }
}

#[expect(clippy::too_many_lines, reason = "one table of rows")]
fn phases(seconds: u64) -> Vec<Phase> {
    let read = |io_bytes, per_s: u64, p50_us, spread, tail_share, tail_us| Shape {
        op: OpKind::Read,
        io_bytes,
        io_count: per_s * seconds,
        p50_us,
        spread,
        tail_share,
        tail_us,
    };
    let write = |io_bytes, per_s: u64, p50_us, spread, tail_share, tail_us| Shape {
        op: OpKind::Write,
        ..read(io_bytes, per_s, p50_us, spread, tail_share, tail_us)
    };
    let ring = |name, mix, order, block_bytes, depth, cpu_us_per_io, shapes| Phase {
        name,
        engine: EngineKind::IoUring,
        mix,
        order,
        block_bytes,
        depth,
        fdatasync_every: 0,
        cpu_us_per_io,
        shapes,
    };
    const MIB: u64 = 1 << 20;
    let only = OpMix::Only;
    vec![
        ring(
            "seq-read-1m",
            only(OpKind::Read),
            Order::Sequential,
            MIB,
            8,
            61.0,
            vec![read(MIB, 3_287, 2_400.0, 0.08, 0.004, 5_200.0)],
        ),
        ring(
            "seq-write-1m",
            only(OpKind::Write),
            Order::Sequential,
            MIB,
            8,
            74.0,
            vec![write(MIB, 2_702, 2_870.0, 0.15, 0.01, 9_800.0)],
        ),
        ring(
            "rand-read-4k-q1",
            only(OpKind::Read),
            random(),
            4096,
            1,
            3.9,
            vec![read(4096, 13_420, 71.0, 0.06, 0.002, 240.0)],
        ),
        ring(
            "rand-read-4k-q32",
            only(OpKind::Read),
            random(),
            4096,
            32,
            2.1,
            vec![read(4096, 371_000, 84.2, 0.12, 0.003, 410.0)],
        ),
        ring(
            "rand-write-4k-q32",
            only(OpKind::Write),
            random(),
            4096,
            32,
            2.4,
            vec![write(4096, 262_000, 96.0, 0.3, 0.006, 2_900.0)],
        ),
        ring(
            "rand-mix-4k-q32",
            OpMix::ReadWrite { read_percent: 70 },
            random(),
            4096,
            32,
            2.3,
            vec![read(4096, 171_000, 112.0, 0.2, 0.006, 900.0), write(4096, 73_000, 34.0, 0.35, 0.004, 1_900.0)],
        ),
        Phase {
            name: "append-4k-fdatasync",
            engine: EngineKind::Psync,
            mix: only(OpKind::Write),
            order: Order::Sequential,
            block_bytes: 4096,
            depth: 1,
            fdatasync_every: 1,
            cpu_us_per_io: 14.0,
            shapes: vec![
                write(4096, 612, 19.0, 0.2, 0.002, 130.0),
                Shape { op: OpKind::Sync, ..write(0, 612, 1_540.0, 0.16, 0.012, 6_400.0) },
            ],
        },
    ]
}

/// A complete baseline with `seconds` per phase.
#[expect(clippy::too_many_lines, reason = "one table of rows")]
pub fn baseline(seconds: u64) -> RunRecord {
    let mut draws = Draws(42);
    let file = "/mnt/data/trueio-3f9c21ab.tmp";
    let mut jobs = Vec::new();
    let mut phase_records = Vec::new();
    let mut begin_ns = 4_100_000_000;
    for (index, phase) in phases(seconds).into_iter().enumerate() {
        let elapsed_ns = seconds * 1_000_000_000 + 412_331;
        let is_append = phase.fdatasync_every > 0;
        let has_writes = phase.shapes.iter().any(|s| s.op == OpKind::Write);
        let plain = JobPlan::plain(phase.engine, 4 << 30);
        jobs.push(JobPlan {
            name: phase.name.into(),
            phase: index as u32,
            files: vec![FilePlan {
                path: if is_append { "/mnt/data/trueio-3f9c21ab-log.tmp".into() } else { file.into() },
                prepare: if is_append { Prepare::CreateEmpty } else { Prepare::CreateFilled },
                remove_after: true,
                offset_bytes: 0,
                size_bytes: 4 << 30,
                extends_from: None,
            }],
            pattern: Pattern {
                mix: phase.mix,
                order: phase.order.clone(),
                read_sizes: BlockSizes::Fixed(phase.block_bytes),
                write_sizes: BlockSizes::Fixed(phase.block_bytes),
                trim_sizes: BlockSizes::Fixed(phase.block_bytes),
                ..plain.pattern.clone()
            },
            queue: Queue { depth: phase.depth, submit_batch: None, ..plain.queue },
            limits: Limits {
                runtime_ns: Some(seconds * 1_000_000_000),
                is_time_based: true,
                ramp_ns: 500_000_000,
                ..plain.limits
            },
            direct: DirectPolicy::Require,
            flush: Flush { fdatasync_every: phase.fdatasync_every, end_fsync: has_writes, ..Flush::default() },
            uring: UringOptions { registered_buffers: true, registered_files: true, ..UringOptions::default() },
            invalidate: true,
            seed: 2026,
            values: vec![
                preset("rw", if matches!(phase.order, Order::Sequential) { "read" } else { "randread" }),
                preset("bs", if phase.block_bytes == 4096 { "4k" } else { "1m" }),
                preset("iodepth", phase.depth.to_string()),
                PlanValue {
                    name: "ioengine".into(),
                    value: phase.engine.name().into(),
                    origin: Origin::Derived { reason: "io_uring works here and holds a queue".into() },
                },
                PlanValue {
                    name: "size".into(),
                    value: "4g".into(),
                    origin: Origin::Derived { reason: "not above 4 GiB, not above a tenth of 412 GiB free".into() },
                },
                PlanValue {
                    name: "runtime".into(),
                    value: format!("{seconds}s").into(),
                    origin: Origin::Flag { flag: "--default".into() },
                },
                PlanValue { name: "seed".into(), value: "2026".into(), origin: Origin::Default },
            ],
            ..plain
        });
        let mut measured = DeviceCounters::default();
        for shape in &phase.shapes {
            match shape.op {
                OpKind::Read => {
                    measured.read_count += shape.io_count;
                    measured.read_bytes += shape.io_count * shape.io_bytes;
                }
                OpKind::Write => {
                    measured.write_count += shape.io_count;
                    measured.write_bytes += shape.io_count * shape.io_bytes;
                }
                _ => measured.flush_count = Some(shape.io_count + 2),
            }
        }
        let issued = measured.read_bytes + measured.write_bytes;
        let io_count: u64 = phase.shapes.iter().filter(|s| s.op != OpKind::Sync).map(|s| s.io_count).sum();
        let cpu_ns = (io_count as f64 * phase.cpu_us_per_io * 1e3) as u64;
        let mut checks = vec![
            check(
                "call_results",
                CheckOutcome::Passed,
                "return values of the calls",
                "no error, no short transfer",
                "0 errors, 0 short",
                "Every call returned what was asked of it.",
            ),
            check(
                "block_layer_bytes",
                CheckOutcome::Passed,
                "/sys/block/nvme0n1/stat",
                &format!("at least {}", units::format_bytes(issued)),
                &format!("{} above an idle baseline of 0 B", units::format_bytes(issued + 212_992)),
                "The disk transferred what the calls said they transferred.",
            ),
            check(
                "page_cache_residency",
                CheckOutcome::Passed,
                "cachestat(2)",
                "no page of the region cached",
                "0 of 1,048,576 pages before and after",
                "The page cache held nothing of the file.",
            ),
            check(
                "power_loss",
                CheckOutcome::NotSeen,
                "",
                "",
                "",
                "Whether flushed data survives a power cut is not visible from software alone; `trueio powercut` tests it.",
            ),
        ];
        if has_writes && !is_append {
            checks.push(check(
                "flush_count",
                CheckOutcome::NotApplicable,
                "/sys/block/nvme0n1/stat",
                "",
                "",
                "The job asked for no flush but the one at its end.",
            ));
        }
        let (verdict, level) = if index == 1 {
            checks.push(check(
                "device_cache",
                CheckOutcome::Suspect,
                "size of the region against the disk's cache",
                "a region of at least 24 GiB",
                "4 GiB",
                "The file of 4 GiB may fit in the disk's write buffer (an SLC cache is commonly tens of GiB): sustained \
                 writing may be slower than this.",
            ));
            (Verdict::Suspect, EvidenceLevel::E2)
        } else {
            (Verdict::Supported, EvidenceLevel::E2)
        };
        let holds_a_queue = phase.engine.holds_a_queue();
        phase_records.push(PhaseRecord {
            steady_state: None,
            syscalls: None,
            disturbances: Vec::new(),
            name: phase.name.into(),
            begin_ns,
            elapsed_ns,
            cpu: CpuTime { user_ns: cpu_ns / 5, system_ns: cpu_ns - cpu_ns / 5 },
            worker_cpu: CpuTime { user_ns: cpu_ns / 5, system_ns: cpu_ns - cpu_ns / 5 - cpu_ns / 50 },
            jobs: vec![JobRecord {
                name: phase.name.into(),
                ops: phase
                    .shapes
                    .iter()
                    .map(|shape| OpRecord {
                        op: shape.op,
                        io_count: shape.io_count,
                        byte_count: shape.io_count * shape.io_bytes,
                        short_count: 0,
                        error_count: 0,
                        latency: latency(shape, &mut draws, holds_a_queue),
                        priorities: Vec::new(),
                        percentiles: Vec::new(),
                        dependence: (seconds >= 5).then(|| Dependence {
                            slice_count: 50,
                            span_ns: elapsed_ns,
                            inflations: [0.5, 0.1, 0.01, 0.001]
                                .map(|share_above| Inflation { share_above, factor: 3.0 })
                                .to_vec(),
                            mean_factor: Some(3.0),
                        }),
                        mean_latency_ns: None,
                        ios_per_s: None,
                    })
                    .collect(),
                series: series(&phase.shapes, seconds * 10, &mut draws),
                elapsed_ns,
                achieved_depth: holds_a_queue.then(|| f64::from(phase.depth) * 0.991),
                pacing_lateness: Histogram::new(),
                backlog_count: 0,
                failures: vec![],
                verify_failures: vec![],
                verified_block_count: 0,
                verify_failure_count: 0,
                read_back: None,
                source_wait_ns: None,
                open_ns: None,
                close_ns: None,
                depth_searches: Vec::new(),
                criterion: None,
                zones: None,
                engine_notes: vec![],
                threads: ThreadUsage::default(),
                queue: None,
                workers: Vec::new(),
            }],
            devices: vec![DeviceDelta {
                disk: "nvme0n1".into(),
                baseline: DeviceCounters { flush_count: Some(0), ..DeviceCounters::default() },
                baseline_ns: 500_000_000,
                measured,
                measured_ns: elapsed_ns,
            }],
            trace: (phase.name == "rand-read-4k-q1").then(trace),
            residency: vec![(
                file.into(),
                Some(Residency {
                    cached_pages: 0,
                    dirty_pages: Some(0),
                    region_pages: 1 << 20,
                    page_bytes: 4096,
                    source: "cachestat".into(),
                }),
                Some(Residency {
                    cached_pages: 0,
                    dirty_pages: Some(0),
                    region_pages: 1 << 20,
                    page_bytes: 4096,
                    source: "cachestat".into(),
                }),
            )],
            verdict,
            level,
            checks,
            outcome: Outcome::Complete,
        });
        begin_ns += elapsed_ns + 1_000_000_000;
    }
    let from = |file: &str| format!("/sys/block/nvme0n1/{file}");
    RunRecord {
        format: RECORD_FORMAT.into(),
        version: RECORD_VERSION,
        id: "3f9c21ab77d04e5c8b1f6a2d90e3c457".into(),
        started_unix_s: 1_795_206_512,
        started_unix_ms: 1_795_206_512_345,
        started_at: "2026-11-20T20:28:32Z".into(),
        kind: "baseline".into(),
        cluster: None,
        power_loss: None,
        answer: None,
        command: vec!["trueio".into(), "baseline".into(), "/mnt/data".into()],
        tool: ToolFacts { name: "trueio".into(), version: "0.1.0".into(), build: "release".into() },
        spec: vec![JobSpec::new("rand-read-4k-q32")],
        plan: Plan {
            accepted_checks: Vec::new(),
            limits: None,
            identities: Default::default(),
            jobs,
            idle_baseline_ns: 500_000_000,
            idle_wait_ns: None,
            notes: vec![
                "The test file has 4 GiB, less than this machine's memory (31.2 GiB): direct I/O keeps the page cache \
                 out of the way, and the evidence says whether it did."
                    .into(),
            ],
        },
        targets: vec![TargetFacts {
            path: "/mnt/data".into(),
            kind: TargetKind::Directory,
            size_bytes: Fact::unknown("a directory has no size of its own"),
            filesystem: Some(FilesystemFacts {
                kind: "ext4".into(),
                mount_point: "/mnt/data".into(),
                source: "/dev/nvme0n1p2".into(),
                options: "rw,relatime,errors=remount-ro".into(),
                size_bytes: Fact::known(929 << 30, "statvfs(3)"),
                available_bytes: Fact::known(412 << 30, "statvfs(3)"),
                block_bytes: Fact::known(4096, "statvfs(3)"),
                uuid: Fact::unknown("not asked"),
            }),
            stack: [
                ("directory", "/mnt/data", "the command line"),
                ("filesystem", "ext4 on /mnt/data", "/proc/self/mountinfo"),
                ("partition", "nvme0n1p2", "/sys/dev/block/259:2"),
                ("disk", "nvme0n1", "/sys/dev/block/259:0"),
            ]
            .into_iter()
            .zip(0..)
            .map(|((kind, name, source), depth)| Layer {
                kind: kind.into(),
                name: name.into(),
                source: source.into(),
                depth,
                facts: Vec::new(),
            })
            .collect(),
            disks: vec![DiskFacts {
                name: "nvme0n1".into(),
                device_number: (259, 0),
                model: Fact::known("Example NVMe SSD 1TB".into(), from("device/model")),
                serial: Fact::known("EX0000000001".into(), from("device/serial")),
                transport: Fact::known("nvme".into(), from("device/subsystem")),
                size_bytes: Fact::known(1_000_204_886_016, from("size")),
                logical_sector_bytes: Fact::known(512, from("queue/logical_block_size")),
                physical_sector_bytes: Fact::known(4096, from("queue/physical_block_size")),
                is_rotational: Fact::known(false, from("queue/rotational")),
                scheduler: Fact::known("none".into(), from("queue/scheduler")),
                write_cache: Fact::known("write back".into(), from("queue/write_cache")),
                has_fua: Fact::known(true, from("queue/fua")),
                request_count: Fact::known(1023, from("queue/nr_requests")),
                max_request_bytes: Fact::known(131_072, from("queue/max_sectors_kb")),
                read_ahead_bytes: Fact::known(131_072, from("queue/read_ahead_kb")),
                counts_io: Fact::known(true, from("queue/iostats")),
                firmware: Fact::known("EXA7301Q".into(), from("device/firmware_rev")),
                wwid: Fact::known("eui.0000000000000001".into(), from("wwid")),
                limits: DiskLimits::default(),
                usb: None,
                link: None,
            }],
            direct: DirectFacts {
                support: DirectSupport::Direct,
                reason: "ext4 states a direct I/O alignment".into(),
                memory_alignment_bytes: Fact::known(4, "statx(2) STATX_DIOALIGN"),
                write_alignment_bytes: Fact::known(512, "statx(2) STATX_DIOALIGN"),
                read_alignment_bytes: Fact::known(512, "statx(2) STATX_DIOALIGN"),
                atomic_write: Fact::unknown("statx(2) STATX_WRITE_ATOMIC says nothing of it here"),
            },
            io_limits: Fact::not_recorded(),
            driven: None,
        }],
        environment: Environment {
            memory_limit_bytes: None,
            system: "Linux 6.18.44 x86_64".into(),
            distribution: Fact::known("Debian GNU/Linux 13".into(), "/etc/os-release"),
            cpu: CpuFacts {
                model: Fact::known("Example CPU 8-Core".into(), "/proc/cpuinfo"),
                usable_count: 8,
                governor: Fact::known("performance".into(), "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
                quota: None,
            },
            memory_bytes: Fact::known(33_500_000_000, "/proc/meminfo MemTotal"),
            memory_available_bytes: Fact::known(28_100_000_000, "/proc/meminfo MemAvailable"),
            hypervisor: Fact::unknown("/proc/cpuinfo has no hypervisor flag"),
            clock_source: Fact::known("tsc".into(), "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load_average: Fact::known([0.31, 0.42, 0.40], "/proc/loadavg"),
            is_root: false,
        },
        ruler: Ruler {
            clock: "tsc".into(),
            clock_cost_ns: 10.6,
            clock_resolution_ns: 0.4,
            null_cpu_ns_per_io: 61.2,
            null_latency_ns_p50: 24,
        },
        phases: phase_records,
        outcome: Outcome::Complete,
    }
}

/// A disturbance of each cause.
fn disturbances() -> Vec<DisturbedSpan> {
    let tenths = |from: u64, until: u64, cause, what: &str| DisturbedSpan {
        from_ns: from * 100_000_000,
        until_ns: until * 100_000_000,
        cause,
        what: what.into(),
    };
    vec![
        tenths(2, 5, Cause::Neighbour, "dd wrote 12 MiB in the traced windows"),
        tenths(7, 12, Cause::Tool, "waited for a processor 62 % of the time"),
        tenths(14, 18, Cause::Device, "nvme0n1 reached its limit of 82 °C"),
    ]
}

/// A run with many failures: contradicted reads, failed and short writes, blocks that differ, an engine that
/// was replaced, and an interrupt; with a path and sentences that contain markup.
pub fn troubled() -> RunRecord {
    let mut record = baseline(2);
    record.phases.truncate(5);
    record.kind = "run".into();
    record.tool.build = "debug".into();
    record.command = ["trueio", "run", "jobs.toml", "--label", "</script><b>x</b>"].map(String::from).to_vec();
    record.outcome = Outcome::Interrupted { signal: "SIGINT".into() };
    record.targets[0].path = "/mnt/<data> & \"more\"".into();
    record.targets[0].direct.support = DirectSupport::SilentlyBuffered;
    record.targets[0].direct.reason = "ext4 mounted with data=journal buffers every transfer".into();

    record.phases[0].disturbances = disturbances();
    let phase = &mut record.phases[3];
    phase.verdict = Verdict::Contradicted;
    phase.level = EvidenceLevel::E1;
    phase.checks[1] = check(
        "block_layer_bytes",
        CheckOutcome::Contradicted,
        "/sys/block/nvme0n1/stat",
        "at least 2.83 GiB read",
        "12 KiB read",
        "The disk read 12 KiB while the calls returned 2.83 GiB: these reads came from memory, not from the disk.",
    );
    let phase = &mut record.phases[4];
    phase.verdict = Verdict::Contradicted;
    phase.level = EvidenceLevel::E0;
    phase.checks[0] = check(
        "call_results",
        CheckOutcome::Contradicted,
        "return values of the calls",
        "no error, no short transfer",
        "3 errors, 1 short",
        "4 of the calls did not do what was asked, so these figures are not those of the job.",
    );
    phase.outcome = Outcome::Failed { reason: "3 writes failed with EIO (os error 5) on `/mnt/data/x`".into() };
    let job = &mut phase.jobs[0];
    job.ops[0].error_count = 3;
    job.ops[0].short_count = 1;
    job.failures = vec![
        IoFailure {
            op: OpKind::Write,
            errno: 5,
            path: "/mnt/data/trueio-3f9c21ab.tmp".into(),
            offset: 1_073_741_824,
            length: 4096,
            address: 0x7f3a_c000_1000,
            returned: 0,
            count: 3,
            explanation: "The device reported an error (EIO). `dmesg` says which sector.".into(),
        },
        IoFailure {
            op: OpKind::Write,
            errno: 0,
            path: "/mnt/data/trueio-3f9c21ab.tmp".into(),
            offset: 4_294_963_200,
            length: 4096,
            address: 0x7f3a_c000_2000,
            returned: 512,
            count: 1,
            explanation: "The transfer was short: 512 of 4,096 bytes.".into(),
        },
    ];
    job.verified_block_count = 524_000;
    job.verify_failure_count = 2;
    job.verify_failures = vec![VerifyFailure {
        path: "/mnt/data/trueio-3f9c21ab.tmp".into(),
        offset: 8192,
        length: 4096,
        expected: "offset 8192, write 17, crc32c 0x5a1b2c3d".into(),
        found: "offset 12288, write 17, crc32c 0x5a1b2c3d: the block of another offset".into(),
        part: BlockPart::Offset,
        numbers: Some([12_288, 8192]),
        pattern_byte: None,
    }];
    job.engine_notes = vec!["Registered buffers were refused (ENOMEM; RLIMIT_MEMLOCK is 64 KiB).".into()];

    // 300 reads: enough for p50 (6), too few for p99 (368).
    let op = &mut record.phases[2].jobs[0].ops[0];
    let mut draws = Draws(7);
    let shape = Shape {
        op: OpKind::Read,
        io_bytes: 4096,
        io_count: 300,
        p50_us: 71.0,
        spread: 0.06,
        tail_share: 0.01,
        tail_us: 240.0,
    };
    op.io_count = 300;
    op.byte_count = 300 * 4096;
    op.latency = latency(&shape, &mut draws, true);
    record
}

/// Returns a record with few leaves, so that a random change often hits a figure of interest.
pub fn small() -> RunRecord {
    let mut record = troubled();
    for job in record.phases.iter_mut().flat_map(|p| &mut p.jobs) {
        job.series.truncate(2);
        for op in &mut job.ops {
            let mut few = Histogram::new();
            (0..10).for_each(|i| few.record_many(20_000 << i, 400 >> i));
            op.latency.total = few.clone();
            op.latency.completion = few;
            op.latency.submission.clear();
        }
    }
    record
}

/// Returns all measured figures of a record.
pub fn figures(record: &mut RunRecord) -> Vec<&mut u64> {
    let mut all = vec![&mut record.ruler.null_latency_ns_p50];
    for phase in &mut record.phases {
        all.extend([&mut phase.begin_ns, &mut phase.elapsed_ns, &mut phase.cpu.user_ns, &mut phase.cpu.system_ns]);
        for device in &mut phase.devices {
            let (b, m) = (&mut device.baseline, &mut device.measured);
            all.extend([&mut device.baseline_ns, &mut device.measured_ns]);
            all.extend([&mut b.read_bytes, &mut b.write_bytes, &mut m.read_bytes, &mut m.write_count, &mut m.busy_ms]);
        }
        for job in &mut phase.jobs {
            all.extend([&mut job.elapsed_ns, &mut job.backlog_count, &mut job.verified_block_count]);
            all.push(&mut job.verify_failure_count);
            for op in &mut job.ops {
                all.extend([&mut op.io_count, &mut op.byte_count, &mut op.short_count, &mut op.error_count]);
            }
            for r in &mut job.series {
                all.extend([&mut r.end_ns, &mut r.span_ns, &mut r.read_count, &mut r.read_bytes, &mut r.write_count]);
                all.extend([&mut r.write_bytes, &mut r.other_count, &mut r.latency_ns_p50, &mut r.latency_ns_p99]);
                all.push(&mut r.latency_ns_max);
            }
        }
    }
    all
}

/// Returns a finding of a check of today.
pub fn finding(name: &str, outcome: CheckOutcome, brief: &str, percent: Option<u8>) -> Check {
    Check {
        name: name.to_owned(),
        outcome,
        cause: Cause::usual_of(name).expect("a check of today"),
        source: "a source".to_owned(),
        expected: String::new(),
        found: String::new(),
        sentence: format!("The sentence of {name}."),
        brief: brief.to_owned(),
        explained_percent: percent,
        culprits: Vec::new(),
        is_accepted: false,
    }
}
