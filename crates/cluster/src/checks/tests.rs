//! Each check with a staged false result, and with a correct run.

use super::*;
use crate::testing::{head, null_plan};
use trueio_model::{ClockOffset, CommonWindow, FilePlan, Prepare};

const S: i64 = 1_000_000_000;

fn clock(offset_ns: i64, bound_ns: u64) -> ClockOffset {
    ClockOffset { offset_ns, bound_ns, round_trip_ns_median: bound_ns * 2, ping_count: 200 }
}

/// An honest phase of four ranks: one second each, within a few microseconds.
fn honest() -> ClusterPhase {
    let span = |rank: u32| RankSpan {
        rank,
        begin_ns: i64::from(rank) * 4_000,
        end_ns: S + i64::from(rank) * 9_000,
        late_ns: 5_000,
        clock_before: clock(i64::from(rank) * 1000 * S, 3_000),
        clock_after: Some(clock(i64::from(rank) * 1000 * S + 20_000, 3_000)),
        io_count: 1000 + u64::from(rank),
        byte_count: 4_096_000,
        common_io_count: 1000.0,
        common_bytes: 4_096_000.0 + f64::from(rank) * 1e5,
    };
    let mut phase = ClusterPhase {
        name: "a".into(),
        nominal_ns: Some(S as u64),
        ranks: (0..4).map(span).collect(),
        start_skew_ns: 12_000,
        end_skew_ns: 27_000,
        common: None,
    };
    phase.common = Some(window(&phase));
    phase
}

fn window(phase: &ClusterPhase) -> CommonWindow {
    let begin_ns = phase.ranks.iter().map(|span| span.begin_ns).max().expect("ranks");
    let end_ns = phase.ranks.iter().map(|span| span.end_ns).min().expect("ranks");
    let share = (end_ns - begin_ns) as f64 / phase.nominal_ns.expect("by time") as f64;
    CommonWindow { begin_ns, end_ns, share, ios_per_s: 4000.0, bytes_per_s: 16e6 }
}

/// Four ranks on hosts of their own.
fn hosts() -> Vec<RankRecord> {
    (0..4)
        .map(|rank| {
            let (host, boot_id) = (format!("h{rank}"), format!("kernel-{rank}"));
            RankRecord { rank, host, boot_id, record: Box::new(head(null_plan())) }
        })
        .collect()
}

/// What honest ranks send: each reads blocks of its own.
fn streams(ranks: &[RankRecord]) -> BTreeMap<u32, &'static [JobStreams]> {
    let own = |rank: u32| streams::of_reads(u64::from(rank) * 1000..u64::from(rank + 1) * 1000);
    ranks.iter().map(|rank| (rank.rank, &*own(rank.rank).leak())).collect()
}

fn found(phase: &ClusterPhase, ranks: &[RankRecord], name: &str) -> Check {
    checks(phase, ranks, 0, &streams(ranks)).into_iter().find(|check| check.name == name).expect(name)
}

#[track_caller]
fn assert_suspect(phase: &ClusterPhase, ranks: &[RankRecord], name: &str, sentence: &str) {
    let all = checks(phase, ranks, 0, &streams(ranks));
    for check in &all {
        let expected = if check.name == name { CheckOutcome::Suspect } else { CheckOutcome::Passed };
        assert_eq!(check.outcome, expected, "{check:?}");
    }
    let check = found(phase, ranks, name);
    assert!(check.sentence.contains(sentence), "{}", check.sentence);
}

#[test]
fn an_honest_run_passes_every_check() {
    let all = checks(&honest(), &hosts(), 0, &streams(&hosts()));
    assert_eq!(all.iter().map(|check| check.name.as_str()).collect::<Vec<_>>(), NAMES);
    for check in all {
        assert_eq!(check.outcome, CheckOutcome::Passed, "{check:?}");
    }
}

#[test]
fn a_phase_of_one_rank_is_not_compared() {
    let mut phase = honest();
    phase.ranks.truncate(1);
    for name in ["common_window", "straggler", "clock_agreement", "late_start"] {
        assert_eq!(found(&phase, &hosts(), name).outcome, CheckOutcome::NotApplicable, "{name}");
    }
}

#[test]
fn a_rank_that_ends_early_leaves_too_short_a_common_window() {
    let mut phase = honest();
    phase.ranks[2].end_ns = S * 94 / 100;
    phase.common = Some(window(&phase));
    assert_suspect(
        &phase,
        &hosts(),
        "common_window",
        "94.0 % of the phase: rank 3 (h3) began last and rank 2 (h2) ended first",
    );
    phase.ranks[2].end_ns = S * 96 / 100;
    phase.common = Some(window(&phase));
    assert_eq!(found(&phase, &hosts(), "common_window").outcome, CheckOutcome::Passed);
}

#[test]
fn ranks_that_measure_one_after_the_other_have_no_common_window() {
    let mut phase = honest();
    (phase.ranks[1].begin_ns, phase.ranks[1].end_ns, phase.common) = (2 * S, 3 * S, None);
    let check = found(&phase, &hosts(), "common_window");
    assert_eq!(check.outcome, CheckOutcome::Suspect);
    assert!(
        check.sentence.starts_with("there was no time in which all ranks measured: rank 1 (h1) began last"),
        "{check:?}"
    );
}

#[test]
fn a_rank_with_a_third_of_the_others_rate_is_a_straggler() {
    let mut phase = honest();
    phase.ranks[3].common_bytes = 1_400_000.0;
    assert_suspect(&phase, &hosts(), "straggler", "rank 3 (h3) reached 33.4 % of the median of the others");
    phase.ranks[3].common_bytes = 2_200_000.0;
    assert_eq!(found(&phase, &hosts(), "straggler").outcome, CheckOutcome::Passed);
}

#[test]
fn a_clock_that_jumps_during_the_phase_is_named() {
    let mut phase = honest();
    phase.ranks[1].clock_after = Some(clock(1000 * S + 5_000_000, 3_000));
    assert_suspect(&phase, &hosts(), "clock_agreement", "the clock of rank 1 (h1) moved by 5.0 ms");
    // NTP may slew a clock by 500 ppm: 0.5 ms in a second.
    phase.ranks[1].clock_after = Some(clock(1000 * S + 400_000, 3_000));
    assert_eq!(found(&phase, &hosts(), "clock_agreement").outcome, CheckOutcome::Passed);
}

#[test]
fn clocks_that_cannot_be_compared_closely_enough_are_named() {
    let mut phase = honest();
    phase.ranks[2].clock_before.bound_ns = 30_000_000;
    assert_suspect(&phase, &hosts(), "clock_agreement", "could be compared with rank 0's within ± 30.0 ms only");
    phase.ranks[2].clock_after = None;
    assert_eq!(found(&phase, &hosts(), "clock_agreement").outcome, CheckOutcome::NotSeen);
}

#[test]
fn ranks_on_one_kernel_that_read_one_file_through_its_cache_are_named() {
    let mut ranks = hosts();
    ranks[2].boot_id = ranks[1].boot_id.clone();
    assert_eq!(found(&honest(), &ranks, "same_host").outcome, CheckOutcome::Passed);
    for rank in &mut ranks {
        let job = &mut rank.record.plan.jobs[0];
        job.engine = trueio_model::EngineKind::Psync;
        job.direct = DirectPolicy::Off;
        job.files = vec![FilePlan {
            path: "/shared/file".into(),
            prepare: Prepare::UseExisting,
            remove_after: false,
            offset_bytes: 0,
            size_bytes: 4096,
            extends_from: None,
        }];
    }
    assert_suspect(&honest(), &ranks, "same_host", "ranks 1 and 2 run on one kernel (h1) and read `/shared/file`");
    for rank in &mut ranks {
        rank.record.plan.jobs[0].direct = DirectPolicy::Require;
    }
    assert_eq!(found(&honest(), &ranks, "same_host").outcome, CheckOutcome::Passed);
}

#[test]
fn a_rank_that_begins_late_is_named() {
    let mut phase = honest();
    phase.ranks[3].late_ns = 25_000_000;
    assert_suspect(
        &phase,
        &hosts(),
        "late_start",
        "rank 3 (h3) began 25.0 ms after the agreed start (1 of 4 ranks were late)",
    );
    phase.ranks[3].late_ns = 9_000_000;
    assert_eq!(found(&phase, &hosts(), "late_start").outcome, CheckOutcome::Passed);
}

/// The page must have a section for each check, and none for a removed check.
#[test]
fn the_page_describes_every_check() {
    let page = include_str!("../../../../docs/checks.md");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("#### `")?.strip_suffix('`')).collect();
    assert_eq!(sections, NAMES);
}

/// Goal: ranks that read the same blocks are named, and ranks that read others, or write others, pass.
#[test]
fn ranks_that_read_the_same_blocks_are_suspect() {
    let hosts = hosts();
    let mut all = streams(&hosts);
    all.insert(3, all[&1]);
    let check = checks(&honest(), &hosts, 0, &all).pop().expect("the last check");
    assert_eq!((check.name.as_str(), check.outcome, check.cause), ("same_blocks", CheckOutcome::Suspect, Cause::Cache));
    let begin = "rank 1 (h1) and rank 3 (h3) read the same blocks in job `a` (64 of 64 sampled; 2 of 4 ranks did as another one)";
    assert!(check.sentence.starts_with(begin), "{}", check.sentence);
    let none = hosts.iter().map(|rank| (rank.rank, &[][..])).collect();
    let check = checks(&honest(), &hosts, 0, &none).pop().expect("the last check");
    assert_eq!(check.outcome, CheckOutcome::NotApplicable);
}

/// Goal: the median of an even number of ranks is the mean of the middle two, not the smaller one.
#[test]
fn the_median_of_two_others_is_their_mean() {
    let mut phase = honest();
    phase.ranks.truncate(3);
    for (span, bytes) in phase.ranks.iter_mut().zip([40e6, 60e6, 100e6]) {
        span.common_bytes = bytes;
    }
    assert_eq!(found(&phase, &hosts(), "straggler").found, "50.0 %");
}
