//! A rank that has the token and sends what no rank of this program sends.
//!
//! Each case plays rank 1 by hand, message by message, against the real rank 0, which must end with a reason within a few seconds, name the
//! rank, and panic nowhere, also when it merges what it has.

use super::*;
use crate::figures::Measured;
use crate::message::{PhaseCount, ToHub, ToRank};
use crate::sample::RankSample;
use crate::star::link::Link;
use crate::testing::{done, head, measured, null_plan};
use serde_json::{Value, json};
use std::time::Instant;
use trueio_model::RunRecord;

/// The limit of the steps in tests that reach it.
const SHORT: Limit = Limit::new(Duration::from_millis(1_500));
/// The same in tests that end by another reason: only a machine that stands still reaches it.
const LONG: Limit = Limit::new(Duration::from_secs(100));
/// What was a wait of hours. No case takes as long, even if each of a few steps reaches the limit.
const BOUND: Duration = Duration::from_secs(90);

/// The steps at which a rank can leave the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Hello,
    Planned,
    Head,
    Ready,
    Pings,
    Clock,
    Armed,
    Measuring,
    Done,
}

/// What is sent instead of the honest message.
type Attack = Box<dyn FnOnce(&mut Rank) + Send>;

/// Rank 1, by hand.
struct Rank {
    link: Link,
}

impl Rank {
    fn send(&mut self, message: &Value) {
        // Rank 0 may have closed the connection already.
        let _ = self.link.send(message);
    }

    fn write(&mut self, bytes: &[u8]) {
        let _ = self.link.write_raw(bytes, LONG.begin());
    }

    /// Waits for a message of rank 0; `None`: it closed the connection.
    fn hear(&mut self) -> Option<ToRank> {
        self.link.receive(LONG).ok()
    }

    /// Waits for a message of a kind, and skips others.
    fn until(&mut self, is_it: impl Fn(&ToRank) -> bool) -> bool {
        while let Some(message) = self.hear() {
            if is_it(&message) {
                return true;
            }
        }
        false
    }

    /// Waits until rank 0 closes the connection, as long as it lives.
    fn linger(&mut self) {
        while self.hear().is_some() {}
    }
}

fn hello() -> Value {
    json!({"Hello": {"version": env!("CARGO_PKG_VERSION"), "host": "a\n\u{1b}b", "boot_id": "b", "process": {"pid_namespace": 1, "number": 1}, "size": 2, "kind": "run", "jobs": {"Ok": []}}})
}

fn clock(offset_ns: i64, bound_ns: u64, round_trip_ns: u64) -> Value {
    json!({"Clock": {"offset_ns": offset_ns, "bound_ns": bound_ns, "round_trip_ns_median": round_trip_ns, "ping_count": 200}})
}

/// The honest results of a phase, as JSON.
fn honest_done() -> Value {
    let results = Done { phase: Some(Box::new(Measured::own(measured()))), ..done() };
    json!({"Done": serde_json::to_value(results).expect("JSON")})
}

/// Plays rank 1 honestly until a step, attacks there, and then reads until rank 0 closes. `after` goes on if it is set.
fn attack(mut rank: Rank, at: At, attack: Attack, goes_on: bool) {
    let mut attack = Some(attack);
    let done = honest_done();
    // Returns true if the rank ends here.
    let mut step = |rank: &mut Rank, here: At, honest: &dyn Fn(&mut Rank)| {
        if here != at {
            honest(rank);
            return false;
        }
        attack.take().expect("one attack")(rank);
        !goes_on
    };
    let pings = |rank: &mut Rank| {
        for count in 1..=20_i64 {
            rank.write(&count.to_be_bytes());
            let _ = rank.link.spin_read(&mut [0; 16], LONG.begin());
        }
        rank.write(&[0; 8]);
    };
    let is_over = step(&mut rank, At::Hello, &|rank| rank.send(&hello()))
        || !rank.until(|message| matches!(message, ToRank::Go { .. }))
        || step(&mut rank, At::Planned, &|rank| rank.send(&json!({"Planned": {"refusal": null, "phase_count": 1}})))
        || !rank.until(|message| matches!(message, ToRank::Go { .. }))
        || step(&mut rank, At::Head, &|rank| rank.send(&json!({"Head": head(null_plan())})))
        || step(&mut rank, At::Ready, &|rank| rank.send(&json!("Ready")))
        || !rank.until(|message| matches!(message, ToRank::Ping { .. }))
        || step(&mut rank, At::Pings, &|rank| {
            rank.send(&json!("Pinging"));
            pings(rank);
        })
        || step(&mut rank, At::Clock, &|rank| rank.send(&clock(5, 10, 20)))
        || !rank.until(|message| matches!(message, ToRank::Proceed))
        || step(&mut rank, At::Armed, &|rank| rank.send(&json!("Armed")))
        || !rank.until(|message| matches!(message, ToRank::Start { .. }))
        || step(&mut rank, At::Measuring, &|_| ())
        || !rank.until(|message| matches!(message, ToRank::Collect))
        || step(&mut rank, At::Done, &|rank| rank.send(&done));
    if !is_over && rank.until(|message| matches!(message, ToRank::Ping { .. })) {
        rank.send(&json!("Pinging"));
        pings(&mut rank);
        rank.send(&clock(5, 10, 20));
    }
    rank.linger();
}

/// Runs rank 0 against an attack. Returns the record, and why the run ended early.
fn against(at: At, attacks: Attack, goes_on: bool, limit: Limit) -> (RunRecord, Option<String>) {
    watched(at, attacks, goes_on, limit, (None, None))
}

/// The same; `seen` gets what a live view gets, and the phase lasts until it gets something. `stop` is what a signal to rank 0 sets.
fn watched(
    at: At,
    attacks: Attack,
    goes_on: bool,
    limit: Limit,
    (seen, stop): (Option<&mut Vec<RankSample>>, Option<&'static AtomicBool>),
) -> (RunRecord, Option<String>) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    let hub = std::thread::spawn(move || {
        star::hub::Hub::accept(&listener, 2, b"token", limit, &|_| ()).expect("rank 1 comes")
    });
    let link = star::join_at(address, 1, b"token", LONG).expect("it has the token");
    let mut first = rank_0(hub.join().expect("no panic"), limit);
    first.shared.stop = stop.or(first.shared.stop);
    let evil = std::thread::spawn(move || attack(Rank { link }, at, attacks, goes_on));
    let begin = Instant::now();
    let own = Done { phase: Some(Box::new(Measured::own(measured()))), ..done() };
    let refused = play(&mut first, own, seen).err();
    let record = record_of(&mut first);
    let reason = refused.and_then(|refused| refused.text).or_else(|| first.shared.stopping.clone());
    assert!(begin.elapsed() < BOUND, "{at:?}: rank 0 needed {:?}", begin.elapsed());
    // Closes the connections.
    first.end(1);
    evil.join().expect("no panic");
    (record, reason)
}

/// Rank 0 of these connections.
pub(super) fn rank_0(hub: star::hub::Hub, limit: Limit) -> Member {
    let shared = shared_of(0, hub.size(), limit);
    Member { shared, role: Role::First(First::new(hub)), space: None }
}

/// What a rank has before it has agreed on anything.
pub(super) fn shared_of(rank: u32, size: u32, limit: Limit) -> Shared {
    Shared {
        rank,
        size,
        host: "good".to_owned(),
        boot_id: "g".to_owned(),
        launcher: "test".to_owned(),
        clock: Clock::monotonic(),
        limit,
        stop: Some(Box::leak(Box::new(AtomicBool::new(false)))),
        stopping: None,
        phase_count: 0,
        neighbours: 1,
        host_stride: 1,
        reached: BTreeMap::new(),
    }
}

/// Plays rank 0's part of a run with one phase.
fn play(first: &mut Member, own: Done, mut seen: Option<&mut Vec<RankSample>>) -> Result<(), Refused> {
    first.agree("run", Ok(&[]))?;
    first.planned(Ok(1))?;
    let Role::First(role) = &mut first.role else { panic!("rank 0") };
    role.gather_heads(&mut first.shared, head(null_plan()));
    first.meet();
    let late_ns = first.start();
    let begin_ns = first.now_ns();
    let begin = Instant::now();
    for count in 0.. {
        std::thread::sleep(Duration::from_millis(5));
        first.look();
        let is_awaited = seen.as_ref().is_some_and(|seen| seen.is_empty()) && begin.elapsed() < BOUND;
        if count >= 4 && !is_awaited {
            break;
        }
        let Role::First(role) = &mut first.role else { panic!("rank 0") };
        seen.iter_mut().for_each(|seen| seen.extend(role.take_samples()));
    }
    let span = Some(OwnSpan { begin_ns, end_ns: first.now_ns(), late_ns });
    first.finish_phase(0, Done { span, ..own }, None, true);
    Ok(())
}

/// The record of what rank 0 knows, and what reports make of it.
fn record_of(first: &mut Member) -> RunRecord {
    let Role::First(role) = &mut first.role else { panic!("rank 0") };
    role.collected.heads.entry(0).or_insert_with(|| head(null_plan()));
    crate::merge::merge(&first.shared, role)
}

/// Asserts that an attack ends the run with a reason that names the rank and holds a word.
#[track_caller]
fn ends(at: At, word: &str, attacks: impl FnOnce(&mut Rank) + Send + 'static) -> RunRecord {
    let limit = if word.contains("did not answer") { SHORT } else { LONG };
    let (record, reason) = against(at, Box::new(attacks), false, limit);
    let reason = reason.unwrap_or_else(|| panic!("{at:?} {word}: the run ended as planned"));
    assert!(reason.contains("rank 1") && reason.contains(word), "{at:?}: {reason}");
    assert!(reason.len() < 1_000, "{at:?}: {} bytes are echoed", reason.len());
    record
}

/// Sends honest results with one value replaced.
fn results_with(pointer: &'static str, value: Value) -> impl FnOnce(&mut Rank) + Send {
    move |rank| {
        let mut done = honest_done();
        *done.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}: no such value")) = value;
        rank.send(&done);
    }
}

#[test]
fn the_honest_rank_of_these_tests_is_accepted() {
    let (record, reason) = against(At::Measuring, Box::new(|_| ()), true, LONG);
    assert_eq!(reason, None);
    let cluster = record.cluster.expect("two ranks");
    assert_eq!((cluster.ranks.len(), cluster.lost.len(), cluster.phases[0].ranks.len()), (2, 0, 2));
}

/// Goal: figures that leave their range, with which sums and differences would overflow, end the run with their name.
#[test]
fn figures_out_of_range_are_refused_and_panic_nowhere() {
    const JOB: &str = "/Done/phase/jobs/0";
    let max = json!(u64::MAX);
    for (pointer, value) in [
        ("/Done/span/begin_ns", json!(i64::MIN)),
        ("/Done/span/end_ns", json!(i64::MAX)),
        ("/Done/span/end_ns", json!(-1)),
        ("/Done/span/late_ns", max.clone()),
        ("/Done/phase/begin_ns", max.clone()),
        ("/Done/phase/elapsed_ns", max.clone()),
        ("/Done/phase/cpu/user_ns", max.clone()),
        ("/Done/phase/worker_cpu/system_ns", max.clone()),
        ("/Done/phase/jobs/0/ops/0/io_count", max.clone()),
        ("/Done/phase/jobs/0/ops/0/byte_count", max.clone()),
        ("/Done/phase/jobs/0/ops/0/short_count", max.clone()),
        ("/Done/phase/jobs/0/ops/0/error_count", max.clone()),
        ("/Done/phase/jobs/0/elapsed_ns", max.clone()),
        // Each is in its range, and no phase can have it next to the other figures.
        ("/Done/phase/jobs/0/elapsed_ns", json!(10_u64 * 86_400 * 1_000_000_000)),
        ("/Done/phase/elapsed_ns", json!(10_u64 * 86_400 * 1_000_000_000)),
        ("/Done/phase/jobs/0/ops/0/byte_count", json!(1_u64 << 50)),
        ("/Done/phase/jobs/0/ops/0/byte_count", json!(257 * 4096)),
        ("/Done/phase/jobs/0/ops/0/io_count", json!(257)),
        ("/Done/phase/jobs/0/ops/0/io_count", json!(255)),
        ("/Done/phase/jobs/0/name", json!("of no plan")),
        ("/Done/phase/jobs/0/achieved_depth", json!(1e6)),
        ("/Done/phase/jobs/0/verify_failure_count", json!(1)),
        ("/Done/phase/jobs/0/ops/0/latency/total/sum_ns", json!("0")),
        ("/Done/phase/jobs/0/ops/0/latency/total/sum_ns", json!("99999999999999")),
        ("/Done/phase/jobs/0/ops/0/latency/total/max_ns", json!(1_u64 << 41)),
        ("/Done/phase/jobs/0/ops/0/percentiles/0/latency_ns", json!(u64::MAX)),
        ("/Done/phase/jobs/0/ops/0/percentiles/0/percent", json!(101.0)),
        ("/Done/phase/jobs/0/series/0/read_count", json!(1_000)),
        ("/Done/phase/jobs/0/series/0/read_bytes", json!(1_u64 << 40)),
        ("/Done/phase/jobs/0/series/0/write_count", json!(1)),
        ("/Done/phase/jobs/0/series/0/other_count", json!(1)),
        ("/Done/phase/jobs/0/series/0/latency_ns_max", json!(1_u64 << 41)),
        ("/Done/phase/jobs/0/series/0/latency_ns_p50", json!(1_u64 << 41)),
        ("/Done/phase/jobs/0/series/0/span_ns", json!(1_u64 << 41)),
        ("/Done/phase/jobs/0/ops/0/short_count", json!(257)),
        ("/Done/phase/jobs/0/ops/0/io_count", json!(7)),
        ("/Done/phase/jobs/0/backlog_count", max.clone()),
        ("/Done/phase/jobs/0/verified_block_count", max.clone()),
        ("/Done/phase/jobs/0/verify_failure_count", max.clone()),
    ] {
        assert!(pointer.starts_with("/Done/span") || pointer.starts_with("/Done/phase") || pointer.starts_with(JOB));
        ends(At::Done, "and must be", results_with(pointer, value));
    }
}

/// Goal: the same of figures that only some phases have.
#[test]
fn rare_figures_out_of_range_are_refused_and_panic_nowhere() {
    let max = u64::MAX;
    let row = |name: &'static str| {
        let mut row = json!({
            "end_ns": 1_000, "span_ns": 1_000, "read_count": 1, "read_bytes": 1, "write_count": 1, "write_bytes": 1,
            "other_count": 0, "trim_count": 1, "trim_bytes": 1, "latency_ns_p50": 1, "latency_ns_p99": 1, "latency_ns_max": 1
        });
        row[name] = json!(max);
        ("/Done/phase/jobs/0/series", json!([row]))
    };
    let failure = json!([{"op": "read", "errno": 5, "path": "p", "offset": 0, "length": 1, "address": 0, "returned": 0,
        "count": max, "explanation": ""}]);
    let disturbed = json!([{"from_ns": max, "until_ns": max, "cause": "device", "what": "w"}]);
    let reversed = json!([{"from_ns": 2, "until_ns": 1, "cause": "device", "what": "w"}]);
    let device = |name: &str| {
        let mut measured = json!(trueio_model::DeviceCounters::default());
        measured[name] = json!(max);
        let baseline = trueio_model::DeviceCounters::default();
        json!([{"disk": "d", "baseline": baseline, "baseline_ns": 1, "measured": measured, "measured_ns": 1}])
    };
    let histogram = json!({"sub_bits": 7, "total": max, "overflow": 0, "sum_ns": "1", "min_ns": 5, "max_ns": 5, "index": [5],
        "count": [max]});
    let mut cases = vec![
        ("/Done/phase/jobs/0/failures", failure),
        ("/Done/phase/disturbances", disturbed),
        ("/Done/phase/disturbances", reversed),
        ("/Done/phase/devices", device("read_count")),
        ("/Done/phase/devices", device("write_bytes")),
        ("/Done/phase/devices", device("weighted_ms")),
        ("/Done/phase/jobs/0/ops/0/latency/total", histogram.clone()),
        ("/Done/phase/jobs/0/ops/0/latency/submission", histogram.clone()),
        ("/Done/phase/jobs/0/pacing_lateness", histogram),
        ("/Done/reached", json!({"a": max})),
        ("/Done/outcome", json!({"how": "failed", "reason": "x".repeat(1 << 20)})),
    ];
    cases.extend(
        [
            "end_ns",
            "span_ns",
            "read_count",
            "write_count",
            "other_count",
            "trim_count",
            "read_bytes",
            "write_bytes",
            "trim_bytes",
        ]
        .map(row),
    );
    for (pointer, value) in cases {
        let attack = move |rank: &mut Rank| {
            let mut done = honest_done();
            let (parent, name) = pointer.rsplit_once('/').expect("a path");
            done.pointer_mut(parent).unwrap_or_else(|| panic!("{parent}"))[name] = value;
            rank.send(&done);
        };
        ends(At::Done, "and must be", attack);
    }
}

/// Goal: results so far, which a live view adds and subtracts, have ranges, too.
#[test]
fn samples_out_of_range_are_refused() {
    let max = json!(u64::MAX);
    let latency = json!({"sub_bits": 7, "total": 2, "overflow": 0, "sum_ns": "10", "min_ns": 5, "max_ns": 5, "index": [5], "count": [2]});
    let sample = json!({"elapsed_ns": 1, "jobs": [{"name": "", "ios": 2, "bytes": 2, "latency": latency, "depth": 1.0,
        "depth_max": 1, "waited_share": 0.0}]});
    for (pointer, value) in [
        ("/elapsed_ns", max.clone()),
        ("/jobs/0/ios", max.clone()),
        ("/jobs/0/ios", json!(1)),
        ("/jobs/0/bytes", max.clone()),
        ("/jobs/0/latency/sum_ns", json!("11")),
        ("/jobs/0/depth", json!(-1.0)),
        ("/jobs/0/depth_max", max.clone()),
        ("/jobs/0/waited_share", json!(2e18)),
    ] {
        let mut sample = sample.clone();
        *sample.pointer_mut(pointer).expect("a value") = value;
        ends(At::Measuring, "and must be", move |rank| rank.send(&json!({"Sample": sample})));
    }
}

/// Goal: what a rank sends for a live view takes bounded memory, and a view draws what it gets.
/// Method: samples of jobs that were not agreed on, of one job many times, and samples without end.
#[test]
fn samples_of_a_live_view_are_of_the_agreed_jobs_once_each_and_bounded() {
    let job = |name: &str| {
        json!({"name": name, "ios": 0, "bytes": 0, "latency": {"sub_bits": 7, "total": 0, "overflow": 0, "sum_ns": "0",
            "min_ns": null, "max_ns": null, "index": [], "count": []}, "depth": null, "depth_max": 1_u64 << 48, "waited_share": null})
    };
    let sample = |jobs: Vec<Value>| json!({"Sample": {"elapsed_ns": 1, "jobs": jobs}});
    let twice = sample(vec![job(""), job("")]);
    ends(At::Measuring, "the number of results of one job", move |rank| rank.send(&twice));
    let many = sample((0..100_000).map(|count| job(&count.to_string())).collect());
    ends(At::Measuring, "and must be", move |rank| rank.send(&many));
    let endless = sample(vec![job("")]);
    ends(At::Measuring, "in one step", move |rank| {
        for _ in 0..20_000 {
            rank.send(&endless);
        }
    });
    let others = sample(["", "of no plan", "\u{1b}[2J", "a\nb"].map(job).to_vec());
    let mut seen = Vec::new();
    let (record, reason) =
        watched(At::Measuring, Box::new(move |rank| rank.send(&others)), true, LONG, (Some(&mut seen), None));
    assert_eq!((reason, record.phases.len()), (None, 1));
    // The ranks of these tests agreed on no job.
    assert!(!seen.is_empty() && seen.iter().all(|one| one.sample.jobs.is_empty()), "{seen:?}");
    assert!(seen.iter().all(|one| one.rank == 1 && !one.host.contains(char::is_control)), "{seen:?}");
}

/// Goal: a value for a comparison that is none ends the run, and is repeated in part and in one line.
#[test]
fn a_value_of_another_kind_is_refused_in_one_line() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    let hub = std::thread::spawn(move || {
        star::hub::Hub::accept(&listener, 2, b"token", LONG, &|_| ()).expect("rank 1 comes")
    });
    let link = star::join_at(address, 1, b"token", LONG).expect("it has the token");
    let mut first = rank_0(hub.join().expect("no panic"), LONG);
    let evil = std::thread::spawn(move || {
        let mut rank = Rank { link };
        rank.until(|message| matches!(message, ToRank::Collect));
        rank.send(&json!({"Value": json!(format!("\n\u{1b}[2J{}", "x".repeat(1 << 20))).to_string()}));
        rank.linger();
    });
    assert_eq!(first.combine::<u64, u64>(&1, Duration::ZERO, |_| true, |_, _| 1), None);
    let reason = first.shared.stopping.clone().expect("it ends");
    assert!(reason.starts_with("rank 1: it sent a value that cannot be read: "), "{reason}");
    assert!(reason.len() < 1_000 && !reason.contains(char::is_control), "{} bytes", reason.len());
    first.end(1);
    evil.join().expect("no panic");
}

/// Goal: figures at the ends of their ranges are summed, or their rank is left out by name: no sum of any number of ranks panics.
#[test]
fn sums_at_the_ends_of_the_ranges_do_not_overflow() {
    let attack = |rank: &mut Rank| {
        let mut done = honest_done();
        done["Done"]["span"] = json!({"begin_ns": -(1_i64 << 59), "end_ns": 1_i64 << 59, "late_ns": 1_u64 << 56});
        done["Done"]["phase"]["cpu"] = json!({"user_ns": 1_u64 << 56, "system_ns": 1_u64 << 56});
        let op = &mut done["Done"]["phase"]["jobs"][0]["ops"][0];
        (op["io_count"], op["byte_count"]) = (json!(1_u64 << 48), json!(1_u64 << 58));
        // Figures of a job that fit each other.
        op["percentiles"] = json!([]);
        op["latency"]["total"] = json!({"sub_bits": 7, "total": 1_u64 << 48, "overflow": 0, "sum_ns": (5_u64 << 48).to_string(),
            "min_ns": 5, "max_ns": 5, "index": [5], "count": [1_u64 << 48]});
        let job = &mut done["Done"]["phase"]["jobs"][0];
        (job["series"], job["achieved_depth"]) = (json!([]), Value::Null);
        rank.send(&done);
    };
    let (record, _) = against(At::Done, Box::new(attack), true, LONG);
    let cluster = record.cluster.expect("two ranks");
    assert_eq!(cluster.phases[0].ranks.len(), 2);
    assert_eq!(record.phases[0].jobs[0].ops[0].io_count, (1 << 48) + 256);
}

/// Goal: results of a rank that did not agree on the jobs are in no sum.
/// Method: complete results at each step before they are due.
#[test]
fn results_before_they_are_due_are_refused() {
    for at in [At::Hello, At::Planned, At::Head, At::Ready, At::Armed] {
        let record = ends(at, "before they were due", |rank| rank.send(&honest_done()));
        let sums: u64 =
            record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.ops).map(|op| op.io_count).sum();
        assert!(sums == 0 || sums == 256, "{at:?}: {sums} I/Os");
    }
}

/// Goal: clocks that cannot be: a round trip of 1,000 s made rank 0 wait for three hours, and offsets overflowed.
#[test]
fn clocks_out_of_range_are_refused() {
    for (offset_ns, bound_ns, round_trip_ns) in [
        (0, 1, 1_000_000_000_000),
        (0, 1, u64::MAX),
        (0, u64::MAX, 1),
        (i64::MAX, 1, 1),
        (i64::MIN, 1, 1),
        (1 << 60, 1, 1),
    ] {
        ends(At::Clock, "and must be", move |rank| rank.send(&clock(offset_ns, bound_ns, round_trip_ns)));
    }
}

/// Goal: the longest round trip that a message may hold does not keep the ranks waiting.
#[test]
fn a_long_round_trip_delays_the_start_by_seconds_only() {
    let begin = Instant::now();
    against(At::Clock, Box::new(|rank| rank.send(&clock(0, 1, 119_000_000_000))), true, LONG);
    assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
}

#[test]
fn pings_without_end_are_cut_off() {
    ends(At::Pings, "the number of pings", |rank| {
        rank.send(&json!("Pinging"));
        for _ in 0..1_000 {
            rank.write(&7_i64.to_be_bytes());
        }
        // Closing with answers unread would reset the connection, and rank 0 may not have read the pings.
        while rank.link.spin_read(&mut [0; 16], LONG.begin()).is_ok() {}
    });
    // One that begins to ping and stops.
    ends(At::Pings, "did not answer within", |rank| {
        rank.send(&json!("Pinging"));
        rank.write(&7_i64.to_be_bytes()[..3]);
    });
}

/// Goal: a number of phases that no job has is refused: rank 0 would go through 2^64 of them.
#[test]
fn a_number_of_phases_beyond_the_jobs_is_refused() {
    for count in [u64::MAX, 1 << 32, (1 << 16) + 1, 2, 1_000] {
        ends(At::Planned, "", move |rank| rank.send(&json!({"Planned": {"refusal": null, "phase_count": count}})));
    }
    assert_eq!(PhaseCount::try_from(1 << 16).map(PhaseCount::get), Ok(1 << 16));
}

/// Goal: a rank that does not answer at any step is cut off at the limit, also where others may work for long.
#[test]
fn a_rank_that_is_silent_at_any_step_is_cut_off_at_the_limit() {
    for at in [At::Hello, At::Planned, At::Head, At::Ready, At::Pings, At::Clock, At::Armed, At::Done] {
        ends(at, "did not answer within", |_| ());
    }
}

/// Goal: a signal to rank 0 ends its wait for a silent rank, long before the limit.
#[test]
fn an_interrupted_rank_0_does_not_wait_for_a_silent_rank() {
    let interrupted = |at: At| {
        let stop: &AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let interrupts = Box::new(|_: &mut Rank| stop.store(true, Relaxed));
        let (record, _) = watched(at, interrupts, false, LONG, (None, Some(stop)));
        assert_eq!(record.outcome, Outcome::Interrupted { signal: "a request".to_owned() }, "{at:?}");
    };
    std::thread::scope(|scope| {
        for at in [At::Head, At::Ready, At::Done] {
            scope.spawn(move || interrupted(at));
        }
    });
}

/// Goal: a rank that reports work without coming forward, or comes forward for ever, is cut off.
#[test]
fn reports_of_work_renew_the_time_only_if_it_comes_forward() {
    ends(At::Ready, "did not answer within", |rank| {
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(300));
            rank.send(&json!({"Working": {"done": 1}}));
        }
    });
    ends(At::Ready, "the number of its messages in one step", |rank| {
        for done in 1..5_000 {
            rank.send(&json!({"Working": {"done": done}}));
        }
    });
}

/// Goal: messages that no rank sends, at each step: more than a step has, others than it awaits, and none at all.
#[test]
fn a_flood_of_messages_is_cut_off() {
    for at in [At::Hello, At::Ready, At::Measuring, At::Done] {
        ends(at, "the number of its messages in one step", |rank| {
            for _ in 0..20_000 {
                rank.send(&json!("Armed"));
            }
        });
    }
}

/// Goal: a message that is sent byte by byte delays neither the limit nor another rank.
#[test]
fn a_message_that_never_ends_is_cut_off_at_the_limit() {
    ends(At::Planned, "did not answer within", |rank| {
        rank.write(&1_000_u32.to_be_bytes());
        for _ in 0..30 {
            rank.write(b" ");
            std::thread::sleep(Duration::from_millis(100));
        }
    });
}

/// Goal: texts that take much memory are refused before they are parsed, and long ones before they are read.
#[test]
fn messages_that_take_much_memory_are_refused() {
    ends(At::Head, "bytes was announced", |rank| rank.write(&(1_u32 << 30).to_be_bytes()));
    // 2 bytes of text, and 24 of a text in a list.
    ends(At::Hello, "the memory of its results", |rank| {
        let jobs = vec![json!({"name": "", "options": {}}); 500_000];
        let mut hello = hello();
        hello["Hello"]["jobs"] = json!({"Ok": jobs});
        rank.send(&hello);
    });
    // 100 bytes of text, and 36 KiB of counters.
    ends(At::Done, "the memory of its results", |rank| {
        let mut done = honest_done();
        let op = done["Done"]["phase"]["jobs"][0]["ops"][0].clone();
        done["Done"]["phase"]["jobs"][0]["ops"] = json!(vec![op; 2_000]);
        rank.send(&done);
    });
    // Small messages, many of them: what is kept counts over the whole run.
    ends(At::Measuring, "in one step", |rank| {
        let text = "x".repeat(1 << 20);
        for _ in 0..600 {
            rank.send(&json!({"Value": text}));
        }
    });
}

/// Goal: long names are refused, and no message repeats them.
#[test]
fn long_names_are_refused_and_not_repeated() {
    for name in ["version", "host", "boot_id", "kind"] {
        ends(At::Hello, "must be", move |rank| {
            let mut hello = hello();
            hello["Hello"][name] = json!("n".repeat(1 << 16));
            rank.send(&hello);
        });
    }
    ends(At::Planned, "rank 1 (ab): ", |rank| rank.send(&json!({"Planned": {"refusal": "no", "phase_count": 0}})));
    let other = ends(At::Hello, "the ranks differ", |rank| {
        let mut hello = hello();
        hello["Hello"]["jobs"] = json!({"Ok": [{"name": "n".repeat(1 << 16), "options": {}}]});
        rank.send(&hello);
    });
    assert!(other.phases.is_empty());
}

/// Goal: bytes that are no message, and JSON that is none of ours.
#[test]
fn what_is_no_message_is_refused() {
    let frame = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
    for bytes in
        [&b"\xff\xfe"[..], b"", b"{}", b"[1]", b"\"Nothing\"", b"{\"Done\":null}", b"null", &b"[".repeat(100_000)[..]]
    {
        let bytes = frame(bytes);
        ends(At::Head, "cannot be read", move |rank| rank.write(&bytes));
    }
}

/// Goal: a head that holds phases, ranks or phases of jobs that cannot be is refused.
#[test]
fn a_head_is_the_record_before_its_phases() {
    for (pointer, value) in [
        ("/phases", json!([measured()])),
        ("/plan/jobs/0/phase", json!(u32::MAX)),
        ("/plan/jobs/0/limits/runtime_ns", json!(u64::MAX)),
    ] {
        ends(At::Head, "and must be", move |rank| {
            let mut record = json!(head(null_plan()));
            *record.pointer_mut(pointer).expect("a value") = value;
            rank.send(&json!({"Head": record}));
        });
    }
}

/// Goal: a panic of rank 0 keeps what is known: the record of its phases, with the reason.
#[test]
fn a_panic_of_rank_0_leaves_the_record_of_what_is_known() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let hub = star::hub::Hub::accept(&listener, 1, b"token", LONG, &|_| ()).expect("it is alone");
    let mut first = rank_0(hub, LONG);
    let own = Done { phase: Some(Box::new(Measured::own(measured()))), ..done() };
    play(&mut first, own, None).expect("a run");
    let Role::First(role) = &mut first.role else { panic!("rank 0") };
    role.fail_by(&mut first.shared, &"staged".to_owned());
    let record = crate::merge::merge(&first.shared, role);
    assert_eq!(record.phases.len(), 1);
    assert!(
        matches!(&record.outcome, Outcome::Failed { reason } if reason.contains("staged (this is a bug of trueio)"))
    );
    let record = crate::merge::without_others(&first.shared, record, &"merge");
    assert_eq!(record.phases.len(), 1);
    assert!(matches!(&record.outcome, Outcome::Failed { reason } if reason.contains("could not be merged: merge")));
}

/// Messages of a rank are read only within their ranges, whatever their kind.
#[test]
fn an_honest_message_is_read_as_it_was_sent() {
    let results = Done { phase: Some(Box::new(Measured::own(measured()))), ..done() };
    let text = serde_json::to_string(&ToHub::Done(Box::new(results.clone()))).expect("JSON");
    let ToHub::Done(read) = serde_json::from_str(&text).expect("it is ours") else { panic!("results") };
    assert_eq!(*read, results);
}
