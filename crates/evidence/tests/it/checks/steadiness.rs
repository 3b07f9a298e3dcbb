//! Rates over time: `steadiness`, and a steady state that was not attained.

use crate::support::*;
use trueio_evidence::{LimitSpan, Stop};
use trueio_model::CheckOutcome::{NotSeen, Passed, Suspect};
use trueio_model::{
    Arrivals, IoLimit, IoLimitKind, Pace, SeriesRow, SteadyRound, SteadyState, SteadyVariable, Verdict,
};

/// A series of 100 ms intervals with `ios` I/Os of 4 KiB each.
fn series(counts: impl IntoIterator<Item = u64>) -> Vec<SeriesRow> {
    let row = |(index, read_count): (usize, u64)| SeriesRow {
        end_ns: (index as u64 + 1) * 100_000_000,
        span_ns: 100_000_000,
        read_count,
        read_bytes: read_count * 4096,
        write_count: 0,
        write_bytes: 0,
        other_count: 0,
        trim_count: 0,
        trim_bytes: 0,
        latency_ns_p50: 90_000,
        latency_ns_p99: 150_000,
        latency_ns_max: 200_000,
    };
    counts.into_iter().enumerate().map(row).collect()
}

/// Varies by up to 15 % around 10,000, as a normal disk does.
fn honest_rate(index: u64) -> u64 {
    let swing = [0, 7, -4, 11, -9, 3, 15, -6, -15, 5, 9, -2, -11, 1, 13, -8][(index % 16) as usize];
    (10_000 + swing * 100) as u64
}

#[test]
fn a_constant_rate_is_steady() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..70).map(honest_rate));
    let judgement = phase.judge();
    judgement.assert("steadiness", Passed, "stayed at one level");
    assert_eq!(judgement.verdict, Verdict::Supported);
}

#[test]
fn a_full_write_cache_is_reported_with_time_and_amount() {
    let mut phase = Phase::honest_writes();
    let counts = (0..70).map(|i| if i < 30 { honest_rate(i) } else { honest_rate(i) / 4 });
    phase.records[0].series = series(counts)
        .into_iter()
        .map(|row| SeriesRow {
            write_count: row.read_count,
            write_bytes: row.read_bytes,
            read_count: 0,
            read_bytes: 0,
            ..row
        })
        .collect();
    let judgement = phase.judge();
    judgement.assert("steadiness", Suspect, "after 3.0 s and 1.15 GiB. Possible causes: a full write cache");
    assert_eq!(judgement.verdict, Verdict::Suspect);
}

/// Goal: a cloud volume whose burst credit is exhausted is named as a limit, a full write cache is not.
/// Method: the rate falls to a quarter; then it is flat within 1 %, or varies by 10 %.
#[test]
fn a_fall_to_a_flat_plateau_is_named_a_limit() {
    let mut phase = Phase::honest_reads();
    let fallen = |after: fn(u64) -> u64| series((0..70).map(|i| if i < 30 { honest_rate(i) } else { after(i) }));
    phase.records[0].series = fallen(|i| 2_400 + i % 3 * 12);
    phase.judge().assert("steadiness", Suspect, "stayed within ±0.5 %, as under a limit: exhausted burst credits");
    phase.records[0].series = fallen(|i| 2_400 + i % 3 * 240);
    phase.judge().assert("steadiness", Suspect, "Possible causes: exhausted burst credits, throttling, other I/O");
}

/// Goal: a rate that changes when limits of control groups do has that cause; one that changes at another time has not.
/// Method: a limit up to 2 s, another one from 5 s on; the rate changes then, or a second later; or the limits are on writes.
#[test]
fn a_change_at_the_time_of_a_limit_is_the_limits() {
    let span = |kind, from_s: u64, until_s: u64| LimitSpan {
        limit: IoLimit {
            group: "/jobs".to_owned(),
            device: "vda".to_owned(),
            device_number: (254, 0),
            kind,
            value: 1 << 20,
            source: "by hand".to_owned(),
        },
        from_ns: from_s * SECOND_NS,
        until_ns: until_s * SECOND_NS,
        first_seen_ns: from_s * SECOND_NS,
        last_seen_ns: until_s * SECOND_NS,
    };
    let changed = |at: u64, kinds: [IoLimitKind; 2]| {
        let mut phase = Phase::honest_reads();
        let rate = |i: u64| {
            if i < at {
                honest_rate(i) / 8
            } else if i < at + 30 {
                honest_rate(i)
            } else {
                honest_rate(i) / 2
            }
        };
        phase.records[0].series = series((0..70).map(rate));
        phase.elapsed_ns = 7 * SECOND_NS;
        phase.observation.limit_spans = Some(vec![span(kinds[0], 0, 2), span(kinds[1], 5, 7)]);
        phase.judge()
    };
    let on_reads = [IoLimitKind::ReadBytes, IoLimitKind::ReadCount];
    let judgement = changed(20, on_reads);
    judgement.assert("steadiness", Suspect, "The rate changed 2 times and stayed at the last level: from ");
    judgement.assert("steadiness", Suspect, "A limit of a control group was set or lifted at that time.");
    changed(30, on_reads).assert("steadiness", Suspect, "Possible causes: ");
    // The rate returns when the limit is lifted.
    let mut passing = Phase::honest_reads();
    passing.elapsed_ns = 7 * SECOND_NS;
    passing.records[0].series = series((0..70).map(|i| honest_rate(i) / if (20..50).contains(&i) { 8 } else { 1 }));
    let mut set = |from_s, until_s| {
        passing.observation.limit_spans = Some(vec![span(IoLimitKind::ReadBytes, from_s, until_s)]);
        passing.judge()
    };
    set(2, 5).assert("steadiness", Suspect, "for 3.0 s, from 2.0 s on, and then returned to ");
    set(2, 5).assert("steadiness", Suspect, "A limit of a control group was set or lifted at that time.");
    set(2, 4).assert("steadiness", Suspect, "Possible causes: a stall of the disk, other I/O.");
    let on_writes = [IoLimitKind::WriteBytes, IoLimitKind::WriteCount];
    changed(20, on_writes).assert("steadiness", Suspect, "Possible causes: ");
}

/// Goal: a job with a rate that makes up for a stop has not become faster; one that stays faster has.
/// Method: 200 I/Os a second and a stop from 1 to 3 s of 6; then twice that rate for two seconds, or to the end, or without a stop.
#[test]
fn a_job_that_makes_up_for_a_stop_is_not_unsteady() {
    let paced = |until: u64| {
        let mut phase = Phase::honest_reads();
        let arrivals = Arrivals::Linear;
        phase.jobs[0].pace = Some(Pace { ios_per_s: Some(200.0), bytes_per_s: None, of_writes: None, arrivals });
        let count = |i: u64| if (10..30).contains(&i) { 0 } else { 20 * (1 + u64::from((30..until).contains(&i))) };
        phase.records[0].series = series((0..70).map(count));
        phase.observation.stops = Some(vec![Stop {
            from_ns: 1_000_000_000,
            until_ns: 3_000_000_000,
            least_ns: 1_990_000_000,
            most_ns: 2_000_000_000,
        }]);
        phase
    };
    paced(50).judge().assert("steadiness", Passed, "one level, apart from the time for which this tool was stopped");
    paced(70).judge().assert("steadiness", Suspect, "The rate changed once and stayed there");
    let mut without = paced(50);
    without.jobs[0].pace = None;
    without.judge().assert("steadiness", Suspect, "The rate ");
    let mut without = paced(50);
    without.observation.stops = None;
    without.judge().assert("steadiness", Suspect, "The rate ");
}

/// Goal: a disk that stands still for two seconds and goes on has not changed permanently.
/// Method: 2 s without I/O of 7; then the same of a run whose tool was stopped; then one that stops for good.
#[test]
fn a_freeze_of_two_seconds_is_not_permanent() {
    let frozen = |until: u64| series((0..70).map(|i| if (20..until).contains(&i) { 0 } else { honest_rate(i) }));
    let mut phase = Phase::honest_reads();
    phase.records[0].series = frozen(40);
    let judgement = phase.judge();
    judgement.assert("steadiness", Suspect, "No I/O completed for 2.0 s, from 2.0 s on; before and after that");
    judgement.assert("steadiness", Suspect, "Possible causes: a stall of the disk, other I/O.");
    phase.records[0].series = frozen(25);
    phase.judge().assert("steadiness", Suspect, "No I/O completed for 0.5 s");
    // The rest drifts: both are said, and no share is above all of it.
    let drifting = |i: u64| if (20..32).contains(&i) { 0 } else { honest_rate(i) * (80 - i) / 80 };
    phase.records[0].series = series((0..70).map(drifting));
    let judgement = phase.judge();
    judgement.assert("steadiness", Suspect, "No I/O completed for 1.2 s, from 2.0 s on");
    judgement.assert("steadiness", Suspect, "The rate ");
    assert!(!judgement.check("steadiness").found.contains('%'), "{:?}", judgement.check("steadiness"));
    phase.records[0].series = frozen(24);
    phase.judge().assert("steadiness", Passed, "stayed at one level");
    // Pauses of the job are no stalls.
    phase.records[0].series = frozen(25);
    let arrivals = Arrivals::Linear;
    phase.jobs[0].pace = Some(Pace { ios_per_s: Some(1e5), bytes_per_s: None, of_writes: None, arrivals });
    assert!(!phase.judge().report().contains("No I/O completed"));
    phase.jobs[0].pace = None;
    phase.records[0].series = frozen(40);
    let (from_ns, until_ns) = (1_950_000_000, 4_000_000_000);
    let (least_ns, most_ns) = (1_850_000_000, 2_050_000_000);
    phase.observation.stops = Some(vec![Stop { from_ns, until_ns, least_ns, most_ns }]);
    phase.judge().assert("steadiness", Passed, "one level, apart from the time for which this tool was stopped");
    phase.observation.stops = None;
    // The sync that ends a job transfers nothing.
    phase.records[0].series = frozen(70);
    phase.records[0].series.truncate(60);
    phase.jobs[0].flush.end_fsync = true;
    phase.judge().assert("steadiness", Passed, "The rate stayed at one level.");
    phase.jobs[0].flush.end_fsync = false;
    phase.records[0].series = frozen(70);
    let judgement = phase.judge();
    judgement.assert("steadiness", Suspect, "No I/O completed for 5.0 s, from 2.0 s on, until the end; before that");
    assert!(!judgement.report().contains("stayed there"));
}

/// Goal: one I/O that hangs at the end is no level, at a slow rate, too; a rate that falls to a low level is.
/// Method: 5 I/Os an interval and then none for 2.5 s, or one I/O in it; 10,000 and none for 1.5 s; 100 and then 10 until the end.
#[test]
fn one_hung_io_at_the_end_is_no_level() {
    let ending = |before: u64, after: fn(u64) -> u64, from: u64| {
        let mut phase = Phase::honest_reads();
        phase.records[0].series = series((0..70).map(|i| if i < from { before + i % 2 } else { after(i) }));
        phase.judge()
    };
    for judgement in [ending(5, |_| 0, 45), ending(5, |i| u64::from(i == 69), 45), ending(10_000, |_| 0, 55)] {
        judgement.assert("steadiness", Suspect, "No I/O completed for ");
    }
    ending(100, |i| 10 + i % 2, 40).assert("steadiness", Suspect, "changed once and stayed there");
    // What is left of the phase is too short for a level, and the stall is not.
    let early = ending(10_000, |_| 0, 15);
    early.assert("steadiness", Suspect, "for 5.5 s, from 1.5 s on, until the end. Possible causes: I/Os that hang");
    assert_eq!(early.check("steadiness").explained_percent, Some(79));
}

/// Goal: of a job of a few I/Os a second, one I/O more or less in a fifth of the run is no drift; of a fast one, half is.
/// Method: 2 I/Os a second for 4 s, the last of which falls out of the run; then 200, and 100 from the middle on, little by little.
#[test]
fn one_io_of_a_slow_job_is_no_drift() {
    let of = |rows: fn(u64) -> u64| {
        let mut phase = Phase::honest_reads();
        phase.records[0].series = series((0..40).map(rows));
        phase.judge().check("steadiness").outcome
    };
    assert_eq!(of(|i| u64::from(i % 5 == 0 && i < 35)), Passed);
    assert_eq!(of(|i| u64::from(i % 10 == 0 && i < 30)), Passed);
    assert_eq!(of(|i| 20 - i / 4), Suspect);
}

/// Goal: a throttle of a second in the middle is not a drift from start to end.
/// Method: 4 s with a second at 5 % of the rate, early or late; then a true drift, whose words stay below 100 %.
#[test]
fn a_throttle_for_a_second_is_an_episode_and_not_a_drift() {
    for from in [4, 8, 18, 26] {
        let mut phase = Phase::honest_reads();
        let rate = |i: u64| if (from..from + 10).contains(&i) { honest_rate(i) / 20 } else { honest_rate(i) };
        phase.records[0].series = series((0..40).map(rate));
        let judgement = phase.judge();
        judgement.assert("steadiness", Suspect, "returned");
        let sentence = &judgement.check("steadiness").sentence;
        assert!(sentence.contains(" for 1.0 s, from") || sentence.contains(" for 1.1 s, from"), "{sentence}");
        assert!(!judgement.report().contains("from start to end"), "{}", judgement.report());
    }
    let mut falling = Phase::honest_reads();
    falling.records[0].series = series((0..40u64).map(|i| 40 * (40 - i).pow(3) / 64));
    let judgement = falling.judge();
    let sentence = &judgement.check("steadiness").sentence;
    assert!(!sentence.contains(" by 1") && sentence.contains("from "), "{}", judgement.report());
}

#[test]
fn a_rate_that_returns_to_its_level_has_not_changed_permanently() {
    let mut phase = Phase::honest_reads();
    let slow = |i: u64| if (60..160).contains(&i) { honest_rate(i) / 3 } else { honest_rate(i) };
    phase.records[0].series = series((0..240).map(slow));
    let judgement = phase.judge();
    judgement.assert("steadiness", Suspect, "for 10.0 s, from 6.0 s on, and then returned to 39");
    judgement.assert("steadiness", Suspect, "The rate fell from 39");
}

/// Goal: a short phase is not said to have the length that is needed.
#[test]
fn a_phase_of_almost_two_seconds_is_not_called_two_seconds_long() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..20).map(honest_rate));
    for (index, row) in phase.records[0].series.iter_mut().enumerate() {
        (row.end_ns, row.span_ns) = ((index as u64 + 1) * 98_000_000, 98_000_000);
    }
    phase.judge().assert("steadiness", NotSeen, "1.9 s of intervals; 2 s are needed");
    phase.records[0].series = series((0..9).map(honest_rate));
    for (index, row) in phase.records[0].series.iter_mut().enumerate() {
        (row.end_ns, row.span_ns) = ((index as u64 + 1) * 400_000_000, 400_000_000);
    }
    phase.judge().assert("steadiness", NotSeen, "9 intervals; 10 are needed");
}

#[test]
fn a_slowly_falling_rate_is_a_drift_and_one_stall_is_not() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..70).map(|i| honest_rate(i) * (140 - i) / 140));
    phase.judge().assert("steadiness", Suspect, "The rate");
    phase.records[0].series = series((0..70).map(|i| if i == 33 { 0 } else { honest_rate(i) }));
    phase.judge().assert("steadiness", Passed, "stayed at one level");
}

/// Goal: of a drift whose first and last fifth are equal, the sentence names the slowest and the fastest fifth.
#[test]
fn a_drift_that_begins_and_ends_alike_did_not_rise_or_fall() {
    let mut phase = Phase::honest_reads();
    let wave = |i: u64| if (8..32).contains(&i) { ((i - 8) as f64 / 24.0 * std::f64::consts::TAU).sin() } else { 0.0 };
    // Every other interval has hardly any I/O, so that no level is found.
    let rate = |i: u64| 4_000.0 * (1.0 - 0.55 * wave(i)) * if i.is_multiple_of(2) { 1.9 } else { 0.1 };
    phase.records[0].series = series((0..40).map(|i| rate(i) as u64));
    phase.judge().assert("steadiness", Suspect, "The rate varied from ");
}

#[test]
fn rates_of_jobs_are_summed_until_the_first_one_ends() {
    let mut phase = Phase::honest_reads();
    // One falls while the other rises, until the first ends after 4 s.
    phase.records[0].series = series((0..40).map(|i| honest_rate(i) + 20_000 - i * 500));
    let mut other = Phase::honest_reads();
    other.records[0].series = series((0..70).map(|i| if i < 40 { honest_rate(i) + i * 500 } else { 100 }));
    phase.jobs.append(&mut other.jobs);
    phase.records.append(&mut other.records);
    phase.judge().assert("steadiness", Passed, "stayed at one level");
}

#[test]
fn a_phase_too_short_for_steadiness_is_not_judged() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..15).map(honest_rate));
    phase.judge().assert("steadiness", NotSeen, "1.5 s of intervals");
    // Shorter than a tick of the clock.
    phase.records[0].series = series([1]);
    (phase.records[0].series[0].end_ns, phase.records[0].series[0].span_ns) = (0, 0);
    phase.judge().assert("steadiness", NotSeen, "0.0 s of intervals");
}

fn rounds_until(is_attained: bool, drift: f64) -> SteadyState {
    let variable = |name: &str, drift: Option<f64>| SteadyVariable {
        name: name.to_owned(),
        range_percent: drift.map(f64::abs),
        excursion_percent: drift,
        is_steady: is_attained,
    };
    let round =
        SteadyRound { elapsed_ns: 10_000_000_000, ios_per_s: 1e4, bytes_per_s: 4e7, latency_ns_p99: Some(150_000) };
    SteadyState {
        window_rounds: 5,
        range_percent_max: 20.0,
        excursion_percent_max: 10.0,
        rounds: vec![round; 7],
        is_attained,
        variables: vec![variable("throughput", Some(drift)), variable("latency_p99", Some(drift))],
    }
}

#[test]
fn a_steady_state_that_was_not_reached_is_suspect_with_its_drift() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..70).map(honest_rate));
    phase.steady_state = Some(rounds_until(false, -31.0));
    let judgement = phase.judge();
    judgement.assert("steadiness", Suspect, "No steady state after 7 rounds");
    assert!(
        judgement.check("steadiness").found.contains("throughput range 31 %, drift -31 %"),
        "{}",
        judgement.report()
    );
    phase.steady_state = Some(rounds_until(true, -3.0));
    phase.judge().assert("steadiness", Passed, "SNIA rule, 7 rounds");
    let mut unknown = rounds_until(false, 0.0);
    unknown.variables[1].range_percent = None;
    phase.steady_state = Some(unknown);
    phase.judge().assert("steadiness", Suspect, "use longer rounds");
}
