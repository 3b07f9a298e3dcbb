//! A live comparison on several ranks: each runs every slice, in the order that all draw from one seed.
//!
//! A slice begins on all ranks at an agreed instant. Its figures are the sums of the ranks', with the latencies put together; every
//! rank gets these sums, and comes to the same decisions by them. So nothing is sent while a slice is measured, and all ranks end after the
//! same round. Rank 0 prints the comparison.

use super::{Asked, LiveSide, code_of, deliver, head, joined, request, take_syscalls};
use crate::failure::Failure;
use crate::output::{self, Outputs};
use crate::{progress, ranks};
use clap::ArgMatches;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use trueio_cluster::{Member, begin_together, for_rank, guarded, ready, wait_through};
use trueio_compare::{Bench, Interleaved, Quiet, Sample, SessionBench, SliceOrder};
use trueio_compare::{from_rounds, interleave, precondition};
use trueio_job::Machine;
use trueio_model::{Comparison, Histogram, JobSpec, Limit, Origin, Outcome, Plan, units};
use trueio_run::planning::{may_run, planned_and_claimed};
use trueio_run::{Session, Targets, machine, watch_signals};

/// What one rank prepared.
struct Planned {
    asked: Asked,
    spec: Vec<JobSpec>,
    plan: Plan,
    targets: Targets,
    notes: Vec<String>,
    outputs: Outputs,
}

/// Compares on all ranks; `asked` is what this rank read.
pub(super) fn command(
    member: Member,
    asked: Result<Asked, Failure>,
    gates: &[Limit],
    matches: &ArgMatches,
) -> Result<ExitCode, Failure> {
    let work = |member: &mut Member, known: &mut Option<Comparison>| whole(member, known, asked, gates, matches);
    let rescue = |known: Option<Comparison>, reason: &str| Err(super::rescue(known, reason));
    ranks::ended(guarded(member, work, rescue))
}

/// Does this rank's work; `known` is rank 0's comparison as soon as there is one.
fn whole(
    member: &mut Member,
    known: &mut Option<Comparison>,
    asked: Result<Asked, Failure>,
    gates: &[Limit],
    matches: &ArgMatches,
) -> (u8, Result<Option<ExitCode>, Failure>) {
    let asked = asked.and_then(|asked| {
        crate::run::refuse_of_one_rank(matches)?;
        // What is refused for one side is refused before the ranks agree.
        joined(&asked.sides, "")?;
        if member.is_first() {
            output::check(matches, asked.read.iter().map(Path::new))?;
        }
        Ok(asked)
    });
    let (specs, asked) = match asked {
        Ok(asked) => (Ok(in_common(&asked)), Some(asked)),
        Err(failure) => (Err(failure.into_text()), None),
    };
    let has_evidence = !matches.get_flag("no-evidence");
    let plan = |member: &Member, specs: Vec<JobSpec>| {
        let asked = asked.expect("a rank whose jobs were refused does not plan");
        let planned = planned(member, asked, specs, has_evidence, matches).map_err(Failure::into_text)?;
        let phases = ranks::phase_count(&planned.plan);
        Ok((planned, phases))
    };
    let (planned, shared) = match ready(member, "compare", specs, plan) {
        Ok(ready) => ready,
        Err(refused) => return ranks::stop(refused),
    };
    let (comparison, outputs) = measured(member, planned, has_evidence, gates);
    drop(shared);
    if !member.is_first() {
        return (1, Ok(None));
    }
    let comparison = known.insert(comparison);
    let delivered = deliver(comparison, outputs, matches);
    let code = if delivered.is_ok() { code_of(comparison) } else { 1 };
    (code, delivered.map(|()| None))
}

/// Returns what all ranks must have in common: the jobs of all sides, and the comparison's own settings as another job.
fn in_common(asked: &Asked) -> Vec<JobSpec> {
    let mut specs: Vec<JobSpec> = asked.sides.iter().flat_map(|side| side.jobs.iter().cloned()).collect();
    let mut settings = JobSpec::new("of the comparison itself");
    let jobs: Vec<String> = asked.sides.iter().map(|side| side.jobs.len().to_string()).collect();
    let or_chosen = |value: Option<u64>| value.map_or_else(|| "chosen".to_owned(), |value| value.to_string());
    for (name, value) in [
        ("jobs of each side", jobs.join(", ")),
        ("budget in nanoseconds", asked.budget_ns.to_string()),
        ("slice in nanoseconds", or_chosen(asked.slice_ns)),
        ("order-seed", or_chosen(asked.seed)),
        ("margin", asked.margin.to_string()),
        ("until", format!("{:?}", asked.until)),
    ] {
        settings.set(name, value, Origin::Default);
    }
    specs.push(settings);
    specs
}

/// Plans this rank's part. `specs` are those of [`in_common`], with the regions of shared files.
fn planned(
    member: &Member,
    mut asked: Asked,
    specs: Vec<JobSpec>,
    has_evidence: bool,
    matches: &ArgMatches,
) -> Result<Planned, Failure> {
    let mut specs = specs.into_iter();
    for LiveSide { jobs, .. } in &mut asked.sides {
        *jobs = specs.by_ref().take(jobs.len()).collect();
    }
    let mut spec = joined(&asked.sides, &format!("-rank{}", member.rank()))?;
    for_rank(&mut spec, &member.place());
    let rank = Some(member.rank());
    let command_files = ranks::command_files(rank, matches, &asked.read);
    let idle_ns = if has_evidence { super::IDLE_NS } else { 0 };
    let machine = Machine { command_files, rank, ..machine::machine(idle_ns) };
    let (mut plan, targets) = planned_and_claimed(&spec, &machine, may_run)?;
    let mut notes = precondition(&mut plan);
    notes.extend(plan.notes.iter().cloned());
    asked.check_budget(&asked.settings(&plan, 0), &plan, idle_ns)?;
    let outputs = ranks::outputs(member, matches, asked.read.iter().map(Path::new))?;
    Ok(Planned { asked, spec, plan, targets, notes, outputs })
}

/// Runs the slices; the comparison is meant for rank 0 only.
fn measured(member: &mut Member, planned: Planned, has_evidence: bool, gates: &[Limit]) -> (Comparison, Outputs) {
    let Planned { asked, spec, plan, targets, mut notes, outputs } = planned;
    let stop = watch_signals();
    member.watch(stop);
    let described = asked.described(&plan);
    let draw = |_: &Member, drawn: BTreeMap<u32, u64>| drawn.get(&0).copied();
    let drawn = member.combine(&machine::entropy(), Duration::ZERO, |_| true, draw).flatten();
    let settings = asked.settings(&plan, drawn.unwrap_or_default());
    let session = Session::new(request(spec, plan, targets, has_evidence), stop);
    let started_at = session.record().started_at.clone();
    let mut line = if member.is_first() { progress::Line::new() } else { progress::Line::hidden() };
    let (prepared, _) = begin_together(member, &mut line, |observer| SessionBench::new(session, observer));
    let unmeasured = |outcome| (Interleaved::unmeasured(&settings, outcome), None, Vec::new());
    let (mut found, setting, syscalls) = match prepared {
        Err(outcome) => {
            member.fail(&outcome);
            unmeasured(member.early_end().unwrap_or(outcome))
        }
        Ok(bench) => {
            let mut bench = RankBench { bench, member, elapsed_ns: 0, across: Across::of(settings.sides) };
            let found = interleave(&mut bench, &settings, &mut |standing| line.show_standing(standing));
            let RankBench { bench, across, member, .. } = bench;
            if matches!(found.outcome, Outcome::Failed { .. }) {
                // A panic between two slices; a failure of a slice is known already.
                member.fail(&found.outcome);
            }
            notes.splice(0..0, across.notes(member, &asked.sides));
            let (session, syscalls) = bench.into_parts();
            (found, Some(Box::new(session.finish(Outcome::Complete))), syscalls)
        }
    };
    line.clear();
    found.notes.splice(0..0, notes);
    let head = head(asked.margin, setting, started_at);
    let mut comparison = from_rounds(head, &described, &settings, found, gates);
    take_syscalls(&mut comparison, &syscalls);
    (comparison, outputs)
}

/// Largest time of a rank's clock, and longest comparison, in nanoseconds: 18 years. Sums and differences of four of them fit.
const TIME_NS_MAX: i64 = 1 << 59;
/// Most I/Os of a rank in a slice.
const COUNT_MAX: u64 = 1 << 48;
/// Most sentences of a rank's checks about a slice.
const OBJECTIONS_MAX: usize = 64;

/// A slice of one rank.
#[derive(Debug, Serialize, Deserialize)]
struct Part {
    /// `None`: the rank has no job of this side.
    sample: Option<(Sample, Histogram)>,
    /// When its measured part began, in its own clock.
    begin_ns: Option<i64>,
    /// Since the rank's comparison began.
    elapsed_ns: u64,
}

impl Part {
    /// Whether the figures are such that sums and differences of those of all ranks fit.
    fn is_in_range(&self) -> bool {
        let is_rate = |rate: f64| rate.is_finite() && (0.0..=1e18).contains(&rate);
        let fits = |(sample, latency): &(Sample, Histogram)| {
            [sample.iops, sample.bytes_per_s, sample.cpu_ns_per_io.unwrap_or(0.0)].into_iter().all(is_rate)
                && sample.io_count <= COUNT_MAX
                && latency.count() <= COUNT_MAX
                && sample.objections.len() <= OBJECTIONS_MAX
        };
        self.sample.as_ref().is_none_or(fits)
            && self.begin_ns.is_none_or(|ns| (-TIME_NS_MAX..=TIME_NS_MAX).contains(&ns))
            && self.elapsed_ns <= TIME_NS_MAX as u64
    }
}

/// A slice of all ranks.
#[derive(Debug, Serialize, Deserialize)]
struct Whole {
    /// `None`: no rank has a job of this side.
    sample: Option<(Sample, Histogram)>,
    /// By rank 0's clock.
    elapsed_ns: u64,
}

/// The slices of all ranks as one bench.
struct RankBench<'a, 'm> {
    bench: SessionBench<'a>,
    member: &'m mut Member,
    /// Of rank 0, so that all ranks decide alike.
    elapsed_ns: u64,
    across: Across,
}

impl Bench for RankBench<'_, '_> {
    fn slice(&mut self, side: usize, order: &SliceOrder) -> Result<(Sample, Histogram), Outcome> {
        let Self { bench, member, elapsed_ns, across } = self;
        let (mut sample, mut begin_ns) = (None, None);
        if bench.has_work(side) {
            let (slice, span) = begin_together(member, &mut Quiet, |observer| bench.slice_with(side, order, observer));
            match slice {
                Ok(slice) => (sample, begin_ns) = (Some(slice), span.map(|(begin_ns, _)| begin_ns)),
                Err(outcome) => {
                    member.fail(&outcome);
                    return Err(member.early_end().unwrap_or(outcome));
                }
            }
        } else {
            wait_through(member);
        }
        let part = Part { sample, begin_ns, elapsed_ns: bench.elapsed_ns() };
        // A rank without a job of this side waits for the others.
        let within = Duration::from_nanos(order.head_ns + order.slice_ns);
        let whole: Option<Whole> =
            member.combine(&part, within, Part::is_in_range, |member, parts| across.join(member, side, parts));
        let ended = || Outcome::Interrupted { signal: "the end of another rank".to_owned() };
        let whole = whole.ok_or_else(|| member.early_end().unwrap_or_else(ended))?;
        *elapsed_ns = whole.elapsed_ns;
        let (mut sample, latency) = whole.sample.ok_or_else(|| Outcome::Failed {
            reason: format!("no rank has a job of side {}", trueio_model::side_letter(side)),
        })?;
        sample.use_latencies(&latency);
        Ok((sample, latency))
    }

    fn elapsed_ns(&self) -> u64 {
        self.elapsed_ns
    }
}

/// What rank 0 learns of the other ranks.
struct Across {
    /// For each slice, from the first rank's start to the last one's.
    skews_ns: Vec<u64>,
    /// For each side, the sum of each rank's rates, and the number of its slices.
    rates: Vec<BTreeMap<u32, (f64, u32)>>,
}

impl Across {
    fn of(sides: usize) -> Self {
        Self { skews_ns: Vec::new(), rates: vec![BTreeMap::new(); sides] }
    }

    /// Makes one slice of those of all ranks.
    fn join(&mut self, member: &Member, side: usize, parts: BTreeMap<u32, Part>) -> Whole {
        let begins: Vec<i64> =
            parts.iter().filter_map(|(rank, part)| Some(part.begin_ns? + member.offset_ns(*rank))).collect();
        if let (Some(first), Some(last)) = (begins.iter().min(), begins.iter().max()) {
            self.skews_ns.push(last.abs_diff(*first));
        }
        let elapsed_ns = parts.get(&0).map_or(0, |part| part.elapsed_ns);
        let hosts = member.hosts();
        let mut named = Vec::new();
        for (rank, part) in parts {
            let Some((sample, latency)) = part.sample else { continue };
            let (sum, count) = self.rates[side].entry(rank).or_default();
            *sum += sample.iops;
            *count += 1;
            let host = hosts.get(&rank).map_or("", String::as_str);
            named.push((format!("rank {rank} ({host})"), sample, latency));
        }
        Whole { sample: Sample::of_ranks(named), elapsed_ns }
    }

    /// Returns sentences about the ranks, for the notes of the comparison.
    fn notes(mut self, member: &Member, sides: &[LiveSide]) -> Vec<String> {
        let hosts = member.hosts();
        let distinct: std::collections::BTreeSet<&String> = hosts.values().collect();
        let mut notes = Vec::new();
        self.skews_ns.sort_unstable();
        if let Some(median) = self.skews_ns.get(self.skews_ns.len() / 2) {
            let last = self.skews_ns.last().copied().unwrap_or_default();
            notes.push(format!(
                "{} ranks on {} host{}; a slice is the sum of all ranks, which began it within {} of each other (median; at most {})",
                member.size(),
                distinct.len(),
                if distinct.len() == 1 { "" } else { "s" },
                units::format_duration_ns(*median),
                units::format_duration_ns(last),
            ));
        }
        for (side, rates) in sides.iter().zip(&self.rates) {
            let mean = |(rank, (sum, count)): (&u32, &(f64, u32))| (*rank, sum / f64::from((*count).max(1)));
            let mut means: Vec<(u32, f64)> = rates.iter().map(mean).collect();
            means.sort_by(|a, b| a.1.total_cmp(&b.1));
            let (Some(slowest), Some(median)) = (means.first(), means.get(means.len() / 2)) else { continue };
            if means.len() > 1 {
                notes.push(format!(
                    "`{}`: the slowest rank is {} ({}) with {:.0} IOPS; the median of the ranks has {:.0}",
                    side.name,
                    slowest.0,
                    hosts.get(&slowest.0).map_or("", String::as_str),
                    slowest.1,
                    median.1
                ));
            }
        }
        notes
    }
}
