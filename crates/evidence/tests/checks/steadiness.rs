//! Rates over time: `steadiness`, and a steady state that was not attained.

use crate::support::*;
use trueio_model::CheckOutcome::{NotSeen, Passed, Suspect};
use trueio_model::{SeriesRow, SteadyRound, SteadyState, SteadyVariable, Verdict};

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

#[test]
fn a_slowly_falling_rate_is_a_drift_and_one_stall_is_not() {
    let mut phase = Phase::honest_reads();
    phase.records[0].series = series((0..70).map(|i| honest_rate(i) * (140 - i) / 140));
    phase.judge().assert("steadiness", Suspect, "The rate");
    phase.records[0].series = series((0..70).map(|i| if i == 33 { 0 } else { honest_rate(i) }));
    phase.judge().assert("steadiness", Passed, "stayed at one level");
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
