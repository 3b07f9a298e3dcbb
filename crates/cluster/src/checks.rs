//! Checks across ranks, and the findings of all ranks as one.
//!
//! Each check is a pure function of the figures across ranks. None contradicts: each rank's own figures stay true, and what
//! is doubtful is that they describe one load.

use crate::streams::{self, JobStreams, Same, Way};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use trueio_model::{
    Cause, Check, CheckOutcome, ClusterPhase, DirectPolicy, JobPlan, OpKind, OpMix, PhaseRecord, RankRecord, RankSpan,
};

/// The names of the checks, in the order of the findings. `docs/checks.md` has a section for each.
pub const NAMES: [&str; 6] =
    ["common_window", "straggler", "clock_agreement", "same_host", "late_start", "same_blocks"];

/// Smallest share of the nominal length in which all ranks must measure.
const COMMON_SHARE_MIN: f64 = 0.95;
/// Smallest rate of a rank, as a share of the median of the others.
const STRAGGLER_SHARE_MIN: f64 = 0.5;
/// Largest frequency error of a clock that NTP slews: 500 ppm (adjtimex(2)).
const SLEW_PPM_MAX: u64 = 500;
/// Shortest lateness and shortest clock error that count, in nanoseconds, however short the window is.
const FLOOR_NS: u64 = 1_000_000;

/// The source of all of them.
const SOURCE: &str = "the ranks' starts and ends in rank 0's clock";

/// Returns the findings across ranks for a phase. `index` is its position in the plan.
pub(crate) fn checks(
    phase: &ClusterPhase,
    ranks: &[RankRecord],
    index: usize,
    streams: &BTreeMap<u32, &[JobStreams]>,
) -> Vec<Check> {
    let names = Names(ranks);
    vec![
        common_window(phase, &names),
        straggler(phase, &names),
        clock_agreement(phase, &names),
        same_host(ranks, index),
        late_start(phase, &names),
        same_blocks(streams, &names),
    ]
}

/// Names ranks with their hosts.
struct Names<'a>(&'a [RankRecord]);

impl Names<'_> {
    fn of(&self, rank: u32) -> String {
        match self.0.iter().find(|known| known.rank == rank) {
            Some(known) => format!("rank {rank} ({})", known.host),
            None => format!("rank {rank}"),
        }
    }
}

fn finding(name: &str, outcome: CheckOutcome, expected: String, found: String, sentence: String) -> Check {
    Check {
        name: name.to_owned(),
        outcome,
        cause: Cause::usual_of(name).unwrap_or_default(),
        source: SOURCE.to_owned(),
        expected,
        brief: if outcome == CheckOutcome::Suspect {
            format!("{}: {found}", name.replace('_', " "))
        } else {
            String::new()
        },
        found,
        sentence,
        explained_percent: None,
        culprits: Vec::new(),
        is_accepted: false,
    }
}

fn not_applicable(name: &str) -> Check {
    let sentence = "one rank measured in this phase".to_owned();
    finding(name, CheckOutcome::NotApplicable, String::new(), String::new(), sentence)
}

fn seconds(ns: f64) -> String {
    if ns.abs() < 1e6 {
        format!("{:.1} µs", ns / 1e3)
    } else if ns.abs() < 1e9 {
        format!("{:.1} ms", ns / 1e6)
    } else {
        format!("{:.3} s", ns / 1e9)
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// All ranks must measure at the same time for nearly the whole phase.
fn common_window(phase: &ClusterPhase, names: &Names<'_>) -> Check {
    let name = NAMES[0];
    if phase.ranks.len() < 2 {
        return not_applicable(name);
    }
    let expected = format!("at least {}", percent(COMMON_SHARE_MIN));
    let last = phase.ranks.iter().max_by_key(|span| span.begin_ns).map_or(0, |span| span.rank);
    let first = phase.ranks.iter().min_by_key(|span| span.end_ns).map_or(0, |span| span.rank);
    let why = format!("{} began last and {} ended first", names.of(last), names.of(first));
    let Some(common) = phase.common else {
        let sentence = format!("there was no time in which all ranks measured: {why}");
        return finding(name, CheckOutcome::Suspect, expected, percent(0.0), sentence);
    };
    let length = seconds((common.end_ns - common.begin_ns) as f64);
    let found = percent(common.share);
    if common.share >= COMMON_SHARE_MIN {
        let sentence = format!("all ranks measured at the same time for {length}, {found} of the phase");
        return finding(name, CheckOutcome::Passed, expected, found, sentence);
    }
    let sentence = format!(
        "all ranks measured at the same time for {length} only, {found} of the phase: {why}; for the rest the load was \
         smaller than planned, so read the figures of the common window"
    );
    finding(name, CheckOutcome::Suspect, expected, found, sentence)
}

/// The rate of a rank for a comparison with others: bytes in the common window, or operations if none transfers any.
fn amount(span: &RankSpan) -> f64 {
    if span.common_bytes > 0.0 { span.common_bytes } else { span.common_io_count }
}

/// No rank may be much slower than the others that do the same.
fn straggler(phase: &ClusterPhase, names: &Names<'_>) -> Check {
    let name = NAMES[1];
    let jobs: BTreeMap<u32, Vec<&str>> = names
        .0
        .iter()
        .map(|known| {
            let own = known.record.phases.iter().find(|own| own.name == phase.name);
            (known.rank, own.into_iter().flat_map(|own| &own.jobs).map(|job| job.name.as_str()).collect())
        })
        .collect();
    let none = Vec::new();
    let jobs_of = |span: &RankSpan| jobs.get(&span.rank).unwrap_or(&none);
    // Sorted once for all ranks of the same jobs: a rank's others are these without itself.
    let mut rates_of: BTreeMap<&Vec<&str>, Vec<f64>> = BTreeMap::new();
    phase.ranks.iter().for_each(|span| rates_of.entry(jobs_of(span)).or_default().push(amount(span)));
    rates_of.values_mut().for_each(|rates| rates.sort_by(f64::total_cmp));
    let mut slowest: Option<(f64, u32)> = None;
    for span in &phase.ranks {
        let rates = &rates_of[jobs_of(span)];
        let own = rates.partition_point(|rate| *rate < amount(span));
        // Of an even number of others, the mean of the middle two.
        let other = |index: usize| rates.get(if index < own { index } else { index + 1 });
        let others = rates.len() - 1;
        let Some((low, high)) = others.checked_sub(1).and_then(|last| Some((other(last / 2)?, other(others / 2)?)))
        else {
            continue;
        };
        let median = f64::midpoint(*low, *high);
        if median <= 0.0 {
            continue;
        }
        let ratio = amount(span) / median;
        if slowest.is_none_or(|(least, _)| ratio < least) {
            slowest = Some((ratio, span.rank));
        }
    }
    let Some((ratio, rank)) = slowest.filter(|_| phase.common.is_some()) else { return not_applicable(name) };
    let expected = format!("at least {} of the median of the others", percent(STRAGGLER_SHARE_MIN));
    let found = percent(ratio);
    if ratio >= STRAGGLER_SHARE_MIN {
        let sentence = format!("the slowest, {}, reached {found} of the median of the others", names.of(rank));
        return finding(name, CheckOutcome::Passed, expected, found, sentence);
    }
    let sentence = format!(
        "{} reached {found} of the median of the others: the sum describes neither the slow host nor the others; look at \
         that host's disk, network and processors",
        names.of(rank)
    );
    finding(name, CheckOutcome::Suspect, expected, found, sentence)
}

/// The clocks must be comparable, and must not jump during the phase.
fn clock_agreement(phase: &ClusterPhase, names: &Names<'_>) -> Check {
    let name = NAMES[2];
    if phase.ranks.len() < 2 {
        return not_applicable(name);
    }
    let mut largest_bound_ns = 0;
    for span in &phase.ranks {
        let Some(after) = span.clock_after else {
            let sentence = format!("the clock of {} was not compared after the phase", names.of(span.rank));
            return finding(name, CheckOutcome::NotSeen, String::new(), String::new(), sentence);
        };
        let before = span.clock_before;
        let moved_ns = after.offset_ns.abs_diff(before.offset_ns);
        let elapsed_ns = (span.end_ns - span.begin_ns).unsigned_abs();
        // The pings are up to the margin before the start and the results' way after the end.
        let slew_ns = (elapsed_ns + 1_000_000_000) / 1_000_000 * SLEW_PPM_MAX;
        let allowed_ns = before.bound_ns + after.bound_ns + slew_ns;
        if moved_ns > allowed_ns {
            let (moved, allowed) = (seconds(moved_ns as f64), seconds(allowed_ns as f64));
            let sentence = format!(
                "the clock of {} moved by {moved} against rank 0's during the phase, and slewing explains {allowed}: its \
                 start and end are unknown by as much",
                names.of(span.rank)
            );
            return finding(name, CheckOutcome::Suspect, format!("at most {allowed}"), moved, sentence);
        }
        largest_bound_ns = largest_bound_ns.max(before.bound_ns).max(after.bound_ns);
        let limit_ns = FLOOR_NS.max(elapsed_ns / 100);
        if before.bound_ns.max(after.bound_ns) > limit_ns {
            let bound = seconds(before.bound_ns.max(after.bound_ns) as f64);
            let sentence = format!(
                "the clock of {} could be compared with rank 0's within ± {bound} only: the network or a processor delays \
                 every answer",
                names.of(span.rank)
            );
            let expected = format!("within ± {}", seconds(limit_ns as f64));
            return finding(name, CheckOutcome::Suspect, expected, format!("± {bound}"), sentence);
        }
    }
    let bound = seconds(largest_bound_ns as f64);
    let sentence = format!("the clocks were compared within ± {bound} before and after, and none moved");
    finding(name, CheckOutcome::Passed, String::new(), format!("± {bound}"), sentence)
}

/// Whether a job reads through the page cache.
fn reads_cached(job: &JobPlan) -> bool {
    let reads = !matches!(job.pattern.mix, OpMix::Only(OpKind::Write | OpKind::Trim));
    reads && job.direct == DirectPolicy::Off && job.engine.touches_files()
}

/// Two ranks on one kernel must not read one file through its page cache.
fn same_host(ranks: &[RankRecord], index: usize) -> Check {
    let name = NAMES[3];
    let source = "/proc/sys/kernel/random/boot_id of each rank";
    let of = |outcome, found: String, sentence: String| Check {
        source: source.to_owned(),
        ..finding(name, outcome, String::new(), found, sentence)
    };
    if ranks.iter().any(|rank| rank.boot_id.is_empty()) {
        return of(CheckOutcome::NotSeen, String::new(), "a rank could not identify its kernel".to_owned());
    }
    let cached_files = |rank: &RankRecord| -> Vec<String> {
        let jobs = rank.record.plan.jobs.iter().filter(|job| job.phase as usize == index && reads_cached(job));
        jobs.flat_map(|job| job.files.iter().map(|file| file.path.clone())).collect()
    };
    // The first rank of each kernel, and the first that reads a file there.
    let mut first_of: BTreeMap<&str, &RankRecord> = BTreeMap::new();
    let mut reader_of: BTreeMap<(&str, String), &RankRecord> = BTreeMap::new();
    let mut shared = None;
    for rank in ranks {
        match first_of.entry(rank.boot_id.as_str()) {
            Entry::Vacant(entry) => drop(entry.insert(rank)),
            Entry::Occupied(first) => drop(shared.get_or_insert((*first.get(), rank))),
        }
        let read: BTreeSet<String> = cached_files(rank).into_iter().collect();
        for path in read {
            let key = (rank.boot_id.as_str(), path);
            if let Some(reader) = reader_of.get(&key) {
                let path = key.1;
                let sentence = format!(
                    "ranks {} and {} run on one kernel ({}) and read `{path}` through its page cache: one may be served what \
                     the other has read; use `direct = true`, or one rank for each host",
                    reader.rank, rank.rank, reader.host
                );
                return of(CheckOutcome::Suspect, format!("ranks {} and {}", reader.rank, rank.rank), sentence);
            }
            reader_of.insert(key, rank);
        }
    }
    match shared {
        None => of(CheckOutcome::Passed, String::new(), "each rank runs on a kernel of its own".to_owned()),
        Some((rank, other)) => {
            let sentence = format!(
                "ranks {} and {} run on one kernel ({}), and share no file through its page cache",
                rank.rank, other.rank, rank.host
            );
            of(CheckOutcome::Passed, format!("ranks {} and {}", rank.rank, other.rank), sentence)
        }
    }
}

/// Every rank must be there at the agreed start.
fn late_start(phase: &ClusterPhase, names: &Names<'_>) -> Check {
    let name = NAMES[4];
    let Some(latest) = phase.ranks.iter().max_by_key(|span| span.late_ns).filter(|_| phase.ranks.len() > 1) else {
        return not_applicable(name);
    };
    let length_ns = (latest.end_ns - latest.begin_ns).unsigned_abs();
    let allowed_ns = FLOOR_NS.max(length_ns / 100);
    let (late, allowed) = (seconds(latest.late_ns as f64), format!("at most {}", seconds(allowed_ns as f64)));
    if latest.late_ns <= allowed_ns {
        let sentence = format!("every rank began within {late} of the agreed start");
        return finding(name, CheckOutcome::Passed, allowed, late, sentence);
    }
    let count = phase.ranks.iter().filter(|span| span.late_ns > allowed_ns).count();
    let sentence = format!(
        "{} began {late} after the agreed start ({count} of {} ranks were late): its host was busy, or the network slow",
        names.of(latest.rank),
        phase.ranks.len()
    );
    finding(name, CheckOutcome::Suspect, allowed, late, sentence)
}

/// Ranks must not read the same blocks, nor write equal content where it could be kept once.
fn same_blocks(streams: &BTreeMap<u32, &[JobStreams]>, names: &Names<'_>) -> Check {
    let name = NAMES[5];
    let source = "samples of each rank's first I/Os: offsets, and fingerprints of content";
    let of = |outcome, found: String, sentence: String| Check {
        source: source.to_owned(),
        ..finding(name, outcome, "I/Os of its own on each rank".to_owned(), found, sentence)
    };
    if streams.values().filter(|jobs| !jobs.is_empty()).count() < 2 {
        let sentence = "fewer than two ranks did I/O whose offsets or content can be compared".to_owned();
        return of(CheckOutcome::NotApplicable, String::new(), sentence);
    }
    for way in [Way::Reads, Way::Writes] {
        let Some(same) = streams::same_of(streams, way) else { continue };
        let Same { ranks: (one, other), jobs, sampled, common, rank_count } = same;
        let job =
            if jobs.0 == jobs.1 { format!("job `{}`", jobs.0) } else { format!("jobs `{}` and `{}`", jobs.0, jobs.1) };
        let (what, why, brief) = match way {
            Way::Reads => (
                "read the same blocks",
                "a cache that they share may have answered all but the first, and the sum of their rates is then not the \
                 disk's; give each rank a region of its own (`shared_region`), or files of its own",
                "ranks read the same blocks",
            ),
            Way::Writes => (
                "wrote equal content",
                "a store that removes duplicates keeps it once, and the sum of their rates is then not the disk's; leave out \
                 `rank_streams = \"equal\"`",
                "ranks wrote equal content",
            ),
        };
        let found = format!("{rank_count} of {} ranks", streams.len());
        let (one, other) = (names.of(one), names.of(other));
        let sentence = format!(
            "{one} and {other} {what} in {job} ({common} of {sampled} sampled; {found} did as another one): {why}"
        );
        return Check { brief: brief.to_owned(), ..of(CheckOutcome::Suspect, found, sentence) };
    }
    let sentence =
        "no two ranks read the same blocks or wrote equal content, as far as their first I/Os show".to_owned();
    of(CheckOutcome::Passed, "none in common".to_owned(), sentence)
}

/// How much an outcome matters where ranks differ.
fn weight(check: &Check) -> u8 {
    match check.outcome {
        CheckOutcome::Contradicted => 4,
        CheckOutcome::Suspect => 3,
        CheckOutcome::NotSeen => 2,
        CheckOutcome::Passed => 1,
        CheckOutcome::NotApplicable => 0,
    }
}

/// Returns the findings of all ranks, one for each check: that of the rank where it is worst, which is named if ranks
/// differ.
pub(crate) fn of_ranks(phases: &[(u32, &PhaseRecord)], ranks: &[RankRecord]) -> Vec<Check> {
    let names = Names(ranks);
    let Some((_, first)) = phases.first() else { return Vec::new() };
    first
        .checks
        .iter()
        .filter_map(|check| {
            let of_all: Vec<(u32, &Check)> = phases
                .iter()
                .filter_map(|(rank, phase)| Some((*rank, phase.checks.iter().find(|other| other.name == check.name)?)))
                .collect();
            // The first of the worst.
            let (rank, worst) = of_all.iter().rev().max_by_key(|(_, check)| weight(check))?;
            let mut check = (*worst).clone();
            let alike = of_all.iter().filter(|(_, other)| other.outcome == worst.outcome).count();
            let matters = weight(worst) > 1;
            if phases.len() > 1 && matters {
                let more = if alike > 1 {
                    format!(" (and {} more of {} ranks)", alike - 1, phases.len())
                } else {
                    String::new()
                };
                check.sentence = format!("{}{more}: {}", names.of(*rank), check.sentence);
            }
            Some(check)
        })
        .collect()
}

#[cfg(test)]
mod tests;
