//! The cases of the comparison with fio: the runs of each side, the figures, and the bars.
//!
//! All are random reads of 4 KiB unless stated otherwise. The bars are the goals of the project
//! (docs/dev/performance.md); the figures published for fio 3.42 were taken on another machine.

use super::table::{Bar, Reading};
use super::targets::TargetKind::{self, Cached, Loop, Nothing, Zram};
use super::tools::Sample;
use super::tools::Tool::{self, Fio, FioParse, Trueio, TrueioParse, UringLimit};

/// A run, and the cost of the tool before its first I/O.
pub(crate) struct Run {
    pub(crate) sample: Sample,
    /// Median CPU time of the same tool with a single I/O, in user mode and in the kernel.
    pub(crate) start_ns: [f64; 2],
}

impl Run {
    fn user(&self) -> f64 {
        self.sample.cost.user_ns as f64 - self.start_ns[0]
    }

    fn cpu(&self) -> f64 {
        self.user() + self.sample.cost.system_ns as f64 - self.start_ns[1]
    }

    fn io_count(&self) -> f64 {
        self.sample.answer.io_count as f64
    }
}

/// A figure of a run; `None` if the run does not have it.
type Figure = fn(&Run) -> Option<f64>;

const CPU: Figure = |run| Some(run.cpu() / run.io_count());
const USER: Figure = |run| Some(run.user() / run.io_count());
const IOPS: Figure = |run| Some(run.sample.answer.iops);
const P50: Figure = |run| run.sample.answer.latency_ns_p50.map(|ns| ns as f64);
const PEAK_KIB: Figure = |run| Some(run.sample.cost.peak_rss_kib as f64);
const WALL_MS: Figure = |run| Some(run.sample.cost.wall_ns as f64 / 1e6);
/// Bytes of the files that the run wrote, by I/O.
const OUTPUT_BYTES: Figure = |run| Some(run.sample.answer.output_bytes as f64 / run.io_count());
/// CPU time including the start, for the cases about the start.
const WHOLE_CPU_MS: Figure = |run| Some((run.sample.cost.user_ns + run.sample.cost.system_ns) as f64 / 1e6);

/// One of the programs that a case runs in turn.
pub(crate) struct Side {
    pub(crate) tool: Tool,
    pub(crate) flags: String,
}

/// Computes the figures of one turn of a case's sides.
type Read = Box<dyn Fn(&[Run]) -> Option<Reading>>;

/// A figure to be judged.
pub(crate) struct Measure {
    pub(crate) goal: &'static str,
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) bar: Bar,
    pub(crate) published: Option<f64>,
    pub(crate) read: Read,
}

impl Measure {
    fn new(goal: &'static str, what: &'static str, unit: &'static str, bar: Bar, read: Read) -> Self {
        Self { goal, what, unit, bar, published: None, read }
    }

    /// The figure of the first of `sides` divided by that of the second.
    fn ratio(
        goal: &'static str,
        what: &'static str,
        unit: &'static str,
        figure: Figure,
        sides: [usize; 2],
        bar: Bar,
    ) -> Self {
        let read: Read = Box::new(move |runs| {
            let [ours, other] = sides.map(|side| figure(&runs[side]));
            Some(Reading { value: ours? / other?, ours: ours?, other })
        });
        Self::new(goal, what, unit, bar, read)
    }

    /// The figure of side 0, next to that of side 1.
    fn absolute(goal: &'static str, what: &'static str, unit: &'static str, figure: Figure, bar: Bar) -> Self {
        let read: Read = Box::new(move |runs| {
            let ours = figure(&runs[0])?;
            Some(Reading { value: ours, ours, other: figure(&runs[1]) })
        });
        Self::new(goal, what, unit, bar, read)
    }

    /// The cost of fio 3.42 in the same case on the machine where the goals were set.
    fn published(mut self, figure: f64) -> Self {
        self.published = Some(figure);
        self
    }
}

fn cpu(goal: &'static str, must: f64, stretch: f64) -> Measure {
    Measure::ratio(goal, "CPU an I/O", "ns", CPU, [0, 1], Bar::AtMost(must, stretch))
}

fn user(goal: &'static str, must: f64, stretch: f64) -> Measure {
    Measure::ratio(goal, "user CPU an I/O", "ns", USER, [0, 1], Bar::AtMost(must, stretch))
}

fn iops(goal: &'static str, bar: Bar) -> Measure {
    Measure::ratio(goal, "IOPS", "", IOPS, [0, 1], bar)
}

/// A comparison.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) target: TargetKind,
    /// Whether it is pinned to one processor, because no other takes part in the work.
    pub(crate) is_pinned: bool,
    pub(crate) sides: Vec<Side>,
    pub(crate) measures: Vec<Measure>,
}

/// The same flags for both.
fn both(flags: &str) -> Vec<Side> {
    sides(&[(Trueio, flags), (Fio, flags)])
}

fn sides(sides: &[(Tool, &str)]) -> Vec<Side> {
    sides.iter().map(|&(tool, flags)| Side { tool, flags: flags.into() }).collect()
}

fn pinned(name: &'static str, target: TargetKind, sides: Vec<Side>, measures: Vec<Measure>) -> Case {
    Case { name, target, is_pinned: true, sides, measures }
}

fn roaming(name: &'static str, target: TargetKind, sides: Vec<Side>, measures: Vec<Measure>) -> Case {
    Case { name, target, is_pinned: false, sides, measures }
}

const BATCH_1: &str = "--iodepth_batch=1 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=1";
const BATCH_8: &str = "--iodepth_batch=8 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=8";
const BATCH_16: &str = "--iodepth_batch=16 --iodepth_batch_complete_min=16 --iodepth_batch_complete_max=16";
/// fio's defaults, set for both.
const PLAIN: &str = "--registerfiles=0 --fixedbufs=0";
const REGISTERED: &str = "--registerfiles=1 --fixedbufs=1";
const URING: &str = "--ioengine=io_uring --iodepth=32";
/// fio reports percentiles of the total latency only if set; trueio always does.
const FIO_P50: &str = "--lat_percentiles=1";

/// A single I/O, so the cost is that of start and end.
pub(crate) const START: &str = "--ioengine=null --rw=randread --bs=4k --size=4k";

/// All cases; `path` returns the path of a kind of target.
pub(crate) fn all(seconds: u32, has_limit: bool, path: impl Fn(TargetKind) -> String) -> Vec<Case> {
    let mut cases = null_cases(seconds);
    cases.extend(many_cases());
    // invalidate=0: otherwise both would drop the cached pages first.
    let read = format!("--rw=randread --bs=4k --time_based --runtime={seconds}s --size=256m --invalidate=0");
    let [cached, zram, loop_device] = [Cached, Zram, Loop].map(|kind| format!("{read} --filename={}", path(kind)));
    cases.extend(log_cases(&format!("{cached} --direct=0 --norandommap")));
    cases.extend(memory_cases(seconds, has_limit, &format!("{cached} --direct=0"), &path(Cached)));
    cases.extend(device_cases(&format!("{zram} --direct=1"), &format!("{loop_device} --direct=1")));
    cases
}

fn null_cases(seconds: u32) -> Vec<Case> {
    let null = |flags: &str| format!("--ioengine=null --rw=randread --bs=4k --time_based --runtime={seconds}s {flags}");
    let terabyte = null("--size=1t");
    let map = null("--size=1g");
    let no_map = null("--size=1g --norandommap");
    let batches = format!("{no_map} --iodepth=32 {BATCH_16}");
    let writes = no_map.replace("randread", "randwrite");
    let refills = format!("{writes} --refill_buffers=1");
    let two = format!("{map} --numjobs=2");

    let map_memory: Read = Box::new(|runs| {
        let [ours, small] = [0, 2].map(|side| PEAK_KIB(&runs[side]));
        // The run with the larger map may by chance use less memory.
        let grown = (ours? - small?).max(0.0);
        Some(Reading { value: grown, ours: grown, other: Some((PEAK_KIB(&runs[1])? - PEAK_KIB(&runs[3])?).max(0.0)) })
    });
    let fill: Read = Box::new(|runs| {
        let [ours, other] = [0, 2].map(|side| Some(CPU(&runs[side])? - CPU(&runs[side + 1])?));
        Some(Reading { value: ours? / other?, ours: ours?, other })
    });
    vec![
        pinned("null_qd1_map", Nothing, both(&map), vec![cpu("P1", 0.28, 0.17).published(164.0)]),
        pinned(
            "null_qd1_1t_map",
            Nothing,
            sides(&[(Trueio, &terabyte), (Fio, &terabyte), (Trueio, &map), (Fio, &map)]),
            vec![
                cpu("P1b", 1.0 / 6.0, 1.0 / 8.0).published(328.0),
                Measure::new("P1b", "memory over that of 1 GiB", "KiB", Bar::AtMost(1024.0, 64.0), map_memory),
            ],
        ),
        pinned("null_qd1", Nothing, both(&no_map), vec![cpu("P2", 1.0 / 3.0, 1.0 / 6.0).published(141.0)]),
        pinned(
            "null_qd32",
            Nothing,
            both(&format!("{no_map} --iodepth=32 {BATCH_1}")),
            vec![cpu("P3", 1.0 / 5.0, 1.0 / 6.0).published(237.0)],
        ),
        pinned("null_qd32_b16", Nothing, both(&batches), vec![cpu("P4", 1.0 / 8.0, 1.0 / 15.0).published(130.0)]),
        // Our full histograms, compared with a fio that reads no clock.
        pinned(
            "null_qd1_gtod",
            Nothing,
            sides(&[(Trueio, &no_map), (Fio, &format!("{no_map} --gtod_reduce=1"))]),
            vec![cpu("P5", 1.0 / 1.7, 1.0 / 3.0).published(79.5)],
        ),
        pinned(
            "null_qd32_b16_gtod",
            Nothing,
            sides(&[(Trueio, &batches), (Fio, &format!("{batches} --gtod_reduce=1"))]),
            vec![cpu("P5", 1.0 / 5.0, 1.0 / 10.0).published(81.0)],
        ),
        pinned(
            "null_refill",
            Nothing,
            sides(&[(Trueio, &refills), (Trueio, &writes), (Fio, &refills), (Fio, &writes)]),
            vec![Measure::new("P21", "CPU of filling 4 KiB", "ns", Bar::AtMost(0.35, 0.18), fill).published(555.0)],
        ),
        roaming(
            "null_2jobs",
            Nothing,
            sides(&[(Trueio, &two), (Trueio, &map), (Fio, &format!("{two} --thread")), (Fio, &map)]),
            vec![
                Measure::ratio("P22", "IOPS of 2 threads / of 1", "", IOPS, [0, 1], Bar::AtLeast(1.85, 1.95)),
                Measure::ratio("", "fio's IOPS of 2 threads / of 1", "", IOPS, [2, 3], Bar::None),
            ],
        ),
        roaming(
            "start",
            Nothing,
            both(START),
            vec![
                Measure::absolute("P16", "wall time of 1 I/O", "ms", WALL_MS, Bar::AtMost(25.0, 5.0)).published(388.0),
                Measure::ratio("P16", "wall time of 1 I/O", "ms", WALL_MS, [0, 1], Bar::AtMost(0.1, 0.02)),
                Measure::ratio("P16", "CPU of 1 I/O", "ms", WHOLE_CPU_MS, [0, 1], Bar::AtMost(0.1, 0.05))
                    .published(140.0),
            ],
        ),
    ]
}

/// Many jobs, and job files with many sections.
fn many_cases() -> Vec<Case> {
    let thousand = format!("{START} --numjobs=1000");
    let section: Read = Box::new(|runs| {
        let cpu = |side: usize| WHOLE_CPU_MS(&runs[side]);
        let [ours, other] = [0, 2].map(|side| Some((cpu(side)? - cpu(side + 1)?) * 1e3 / 1_900.0));
        Some(Reading { value: ours?, ours: ours?, other })
    });
    vec![
        roaming(
            "start_1000jobs",
            Nothing,
            sides(&[(Trueio, &thousand), (Fio, &format!("{thousand} --thread"))]),
            vec![
                Measure::ratio(
                    "P17",
                    "wall time of 1,000 jobs",
                    "ms",
                    WALL_MS,
                    [0, 1],
                    Bar::AtMost(1.0 / 3.0, 1.0 / 6.0),
                ),
                Measure::ratio(
                    "P17",
                    "resident memory of 1,000 jobs",
                    "KiB",
                    PEAK_KIB,
                    [0, 1],
                    Bar::AtMost(0.25, 0.06),
                ),
                Measure::ratio("", "CPU of 1,000 jobs", "ms", WHOLE_CPU_MS, [0, 1], Bar::None),
            ],
        ),
        roaming(
            "parse_2000",
            Nothing,
            sides(&[
                (TrueioParse, "{jobs:2000}"),
                (TrueioParse, "{jobs:100}"),
                (FioParse, "{jobs:2000}"),
                (FioParse, "{jobs:100}"),
            ]),
            vec![Measure::new("P20", "CPU of a section of a job file", "µs", Bar::AtMost(15.0, 5.0), section)],
        ),
    ]
}

/// Logs and traces of every I/O. Judged are whole runs of a million I/Os on the null engine, as the goal is stated; a run whose
/// trace lacks rows is refused. What they add to reads of the file in the page cache is shown next to it.
fn log_cases(cached: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let null = "--ioengine=null --rw=randread --bs=4k --size=1g --io_size=100g --number_ios=1000000 --norandommap";
    let both_depths = [
        (["trace_qd1", "latlog_qd1", "trace_cached_qd1", "latlog_cached_qd1"], "--iodepth=1", "--ioengine=psync"),
        (["trace_qd32", "latlog_qd32", "trace_cached_qd32", "latlog_cached_qd32"], "--iodepth=32", URING),
    ];
    for ([trace, log, cached_trace, cached_log], depth, engine) in both_depths {
        let logged = |plain: &str| format!("{plain} --write_lat_log={{out}}/log");
        let traced = |plain: &str| format!("{plain} --trace={{out}}/trace.parquet");
        let whole = format!("{null} {depth}");
        let bytes = Measure::absolute("P19", "bytes an I/O", "B", OUTPUT_BYTES, Bar::AtMost(16.0, 8.0));
        let sides_of = |ours: &str| sides(&[(Trueio, ours), (Fio, &logged(&whole))]);
        cases.push(roaming(trace, Nothing, sides_of(&traced(&whole)), vec![cpu("P19", 0.15, 0.08), bytes]));
        cases.push(roaming(log, Nothing, sides_of(&logged(&whole)), vec![cpu("P19", 0.25, 0.15)]));

        let plain = format!("{cached} {engine}");
        for (name, ours) in [(cached_trace, traced(&plain)), (cached_log, logged(&plain))] {
            let added: Read = Box::new(|runs| {
                let [ours, other] = [0, 2].map(|side| Some(CPU(&runs[side])? - CPU(&runs[side + 1])?));
                Some(Reading { value: ours? / other?, ours: ours?, other })
            });
            let measure = Measure::new("", "CPU an I/O, above a run without", "ns", Bar::None, added);
            let sides = sides(&[(Trueio, &ours), (Trueio, &plain), (Fio, &logged(&plain)), (Fio, &plain)]);
            cases.push(roaming(name, Cached, sides, vec![measure]));
        }
    }
    cases
}

/// The file in the page cache.
fn memory_cases(seconds: u32, has_limit: bool, cached: &str, path: &str) -> Vec<Case> {
    let once = format!("{cached} --norandommap");
    let one_by_one = format!("{once} {URING} {PLAIN} {BATCH_1}");
    let by_eight = format!("{once} {URING} {REGISTERED} {BATCH_8}");
    let default = format!("{cached} {URING}");
    let fio_default = format!("{default} {FIO_P50}");
    let sync = format!("{cached} --ioengine=psync");
    let fio_sync = format!("{sync} {FIO_P50}");

    // -O0: through the page cache. -p0: no polling. The rest is depth and batches of 8. It runs one
    // second longer (-r), because it does not report the rate of its last second.
    let limit = format!("-d32 -s8 -c8 -p0 -O0 -r{} {path}", seconds + 1);
    let mut eight = both(&by_eight);
    let mut eight_measures = vec![user("P9b", 0.20, 0.09).published(181.0), cpu("P9b", 0.85, 0.79).published(1093.0)];
    if has_limit {
        eight.push(Side { tool: UringLimit, flags: limit });
        let bar = Bar::AtMost(1.10, 1.0);
        let measure = Measure::ratio("P10", "CPU an I/O / t/io_uring's", "ns", CPU, [0, 2], bar);
        eight_measures.push(measure.published(818.0));
    } else {
        // t/io_uring is rarely installed. In the published run fio 3.42 cost 1102 ns and t/io_uring
        // 818 ns per I/O with these settings; the ratio differs for other versions, so this is an estimate.
        let estimate: Read = Box::new(|runs| {
            let [ours, fio] = [0, 1].map(|side| CPU(&runs[side]));
            let limit = fio? * 818.0 / 1102.0;
            Some(Reading { value: ours? / limit, ours: ours?, other: Some(limit) })
        });
        let what = "CPU an I/O / t/io_uring's, estimated";
        eight_measures.push(Measure::new("P10", what, "ns", Bar::None, estimate).published(818.0));
    }
    vec![
        pinned(
            "cache_sync",
            Cached,
            both(&format!("{once} --ioengine=psync")),
            vec![cpu("P7", 0.90, 0.80).published(1364.0), iops("", Bar::None)],
        ),
        pinned(
            "cache_uring_qd32",
            Cached,
            both(&one_by_one),
            vec![user("P8", 0.40, 0.29).published(274.0), cpu("P8", 0.85, 0.78).published(1538.0)],
        ),
        pinned("cache_uring_qd32_b8", Cached, eight, eight_measures),
        pinned(
            "cache_uring_default",
            Cached,
            both(&default),
            vec![cpu("P9", 0.70, 0.56).published(1422.0), user("P9", 0.15, 0.07).published(266.0), iops("", Bar::None)],
        ),
        pinned(
            "cache_latency",
            Cached,
            sides(&[(Trueio, &default), (Trueio, &sync), (Fio, &fio_default), (Fio, &fio_sync)]),
            vec![
                Measure::ratio("P15", "p50, io_uring / pread", "ns", P50, [0, 1], Bar::AtMost(1.5, 1.1)),
                Measure::ratio("", "fio's p50, io_uring / pread", "ns", P50, [2, 3], Bar::None),
            ],
        ),
    ]
}

fn device_cases(zram: &str, loop_device: &str) -> Vec<Case> {
    let loop_default = format!("{loop_device} {URING}");
    let zram_once = format!("{zram} --norandommap");
    let own_account: Read = Box::new(|runs| {
        let (own, actual) = (runs[0].sample.answer.own_cpu_ns? as f64, runs[0].cpu());
        let [ours, other] = [own, actual].map(|ns| ns / runs[0].io_count());
        Some(Reading { value: (own / actual - 1.0).abs(), ours, other: Some(other) })
    });
    vec![
        pinned(
            "zram_sync",
            Zram,
            both(&format!("{zram_once} --ioengine=psync")),
            vec![cpu("P6", 0.80, 0.72).published(604.0), iops("P6", Bar::AtLeast(1.2, 1.39))],
        ),
        pinned(
            "zram_uring_qd32_b16",
            Zram,
            both(&format!("{zram_once} {URING} {REGISTERED} {BATCH_16}")),
            vec![cpu("P11", 0.90, 0.82).published(785.0)],
        ),
        // The workers of io-wq run on the other processor, and their CPU time is not the thread's.
        roaming(
            "zram_account",
            Zram,
            sides(&[(Trueio, &format!("{zram_once} {URING}"))]),
            vec![Measure::new(
                "P23",
                "CPU an I/O as reported, off wait4's by",
                "ns",
                Bar::AtMost(0.03, 0.01),
                own_account,
            )],
        ),
        roaming(
            "loop_uring_default",
            Loop,
            sides(&[
                (Trueio, &loop_default),
                (Fio, &format!("{loop_default} {FIO_P50}")),
                (Trueio, &format!("{loop_default} --iodepth_batch=1")),
            ]),
            vec![
                cpu("P12", 0.85, 0.65).published(1843.0),
                iops("P12", Bar::AtLeast(0.95, 1.0)),
                Measure::ratio("P12", "p50", "ns", P50, [0, 1], Bar::AtMost(1.05, 1.0)),
                Measure::ratio("P14", "p50 / p50 of one a submit", "ns", P50, [0, 2], Bar::AtMost(1.05, 1.02)),
            ],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tools::Answer;
    use super::*;
    use crate::process::Cost;
    use std::collections::BTreeSet;

    fn run(cpu_ns: u64, io_count: u64) -> Run {
        let cost = Cost {
            wall_ns: 0,
            user_ns: cpu_ns,
            system_ns: 0,
            others_cpu_ns: 0,
            peak_rss_kib: 3_000,
            exit_code: Some(0),
            stdout: Vec::new(),
            stderr: String::new(),
        };
        let answer = Answer { io_count, own_cpu_ns: Some(cpu_ns - 1_000), ..Answer::default() };
        Run { sample: Sample { answer, cost }, start_ns: [1_000.0, 0.0] }
    }

    fn case(name: &str) -> Case {
        all(2, false, |_| "/x".into()).into_iter().find(|case| case.name == name).unwrap()
    }

    #[test]
    fn every_case_has_its_own_name_and_reads_only_sides_that_it_runs() {
        let mut names = BTreeSet::new();
        for case in [all(2, false, |_| "/x".into()), all(2, true, |_| "/x".into())].into_iter().flatten() {
            names.insert(case.name);
            let runs: Vec<Run> = case.sides.iter().map(|_| run(2_000, 10)).collect();
            for measure in &case.measures {
                (measure.read)(&runs);
            }
        }
        assert_eq!(names.len(), all(2, false, |_| "/x".into()).len());
    }

    #[test]
    fn every_goal_of_this_comparison_has_a_case() {
        let cases = all(2, false, |_| "/x".into());
        let goals: BTreeSet<_> = cases.iter().flat_map(|case| &case.measures).map(|measure| measure.goal).collect();
        for goal in "P1 P1b P2 P3 P4 P5 P6 P7 P8 P9 P9b P10 P11 P12 P14 P15 P16 P17 P19 P20 P21 P22 P23".split(' ') {
            assert!(goals.contains(goal), "{goal}");
        }
    }

    #[test]
    fn start_up_is_taken_off_before_the_division() {
        // 1,000 of each are start-up: 10 ns an I/O against 40.
        let reading = (case("null_qd1").measures[0].read)(&[run(2_000, 100), run(5_000, 100)]).unwrap();
        assert_eq!((reading.value, reading.ours, reading.other), (0.25, 10.0, Some(40.0)));
    }

    #[test]
    fn the_cost_of_filling_is_what_filling_adds() {
        let runs = [run(3_000, 100), run(2_000, 100), run(9_000, 100), run(5_000, 100)];
        assert_eq!((case("null_refill").measures[0].read)(&runs).unwrap().value, 0.25);
    }

    #[test]
    fn an_account_that_matches_wait4_is_off_by_nothing() {
        assert_eq!((case("zram_account").measures[0].read)(&[run(9_000, 10)]).unwrap().value, 0.0);
    }
}
