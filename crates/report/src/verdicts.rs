//! The words of every output for verdicts and findings.
//!
//! A record holds a verdict, and findings with a cause each. A reader wants one word a load ("disturbed"), each reason
//! once, how much of the figure it can explain, and what to do next. Terminal, page, Markdown and fio's JSON take all of
//! that from here, so they say the same.
//!
//! Reasons are grouped by cause, the most serious cause first. Sentences are those of the record.

use crate::again::Again;
use crate::page::command_line;
use crate::summary::{name_of_phase, plan_of};
use crate::text::counted;
use crate::words::{check_sentence, level_meaning, level_words};
use trueio_model::{
    Cause, Check, CheckOutcome, DiskFacts, EvidenceLevel, FoundLoad, JobRecord, OpKind, PhaseRecord, RunRecord, STOPS,
    Transport, Verdict, finding_words, is_reason,
};
pub use trueio_model::{Mark, worst};

/// Returns the word of a phase.
pub fn mark(phase: &PhaseRecord) -> Mark {
    Mark::of(phase.verdict, &phase.checks)
}

/// Returns what a row of a table says of its load: `disturbed: dd wrote 335 MiB`.
pub fn row_words(phase: &PhaseRecord) -> String {
    finding_words(phase.verdict, &phase.checks)
}

/// Returns the word for the outcome of a check in details: `passed`, of one that objects the word of a load with this finding alone,
/// `withheld`, `not the disk, accepted`.
pub fn outcome_words(check: &Check) -> String {
    let word = if check.objects() { Mark::of_finding(check).word() } else { check.outcome.word() };
    if check.is_accepted { format!("{word}, accepted") } else { word.to_owned() }
}

/// A load with its findings: a phase, a row of a study.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its findings.
    pub checks: &'a [Check],
    /// True if it kept the rate that was set for it: then no finding explains its rate.
    pub has_kept_rate: bool,
}

/// Everything of one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The cause.
    pub cause: Cause,
    /// The worst word of its findings.
    pub mark: Mark,
    /// Names of the loads that it concerns, in the order of the record.
    pub loads: Vec<String>,
    /// How much of a figure its findings can explain at most, in percent; `None` if unknown.
    pub explained_percent: Option<u8>,
    /// Each load with the worst of its findings, the load of which most can be explained first.
    pub found: Vec<FoundLoad>,
    /// Its findings, each once, the worst first.
    pub findings: Vec<Finding>,
    /// What to do about it: one sentence without a full stop, which may begin with a command.
    pub next_step: String,
}

/// A finding, and the loads that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check.
    pub check: String,
    /// [`outcome_words`].
    pub outcome: String,
    /// Names of the loads.
    pub loads: Vec<String>,
    /// [`Check::brief`] of the load of which it explains most; the sentence if the record has none.
    pub brief: String,
    /// The sentence of that load, with the figures that were compared.
    pub sentence: String,
    /// Each sentence of the finding with the loads that have it: the figures differ from load to load.
    pub sentences: Vec<(Vec<String>, String)>,
    /// How much of a figure it can explain at most, in percent.
    pub explained_percent: Option<u8>,
    /// The processes that caused it.
    pub culprits: Vec<String>,
    /// What was found of each load.
    found: Vec<FoundLoad>,
    contradicts: bool,
}

impl Reason {
    /// Returns the reason in one line: `dd wrote 335 MiB; can explain at most 23 % of rr; wal: dd wrote 12 MiB (at most 7 %)`.
    pub fn headline(&self) -> String {
        let Some(first) = self.found.first() else { return String::new() };
        format!("{}; {}", first.brief, self.extent())
    }

    /// Returns which loads it concerns, and how much of them: `can explain at most 23 % of rr and wal`. A load of which something else
    /// was found than of the first one has its own words.
    pub fn extent(&self) -> String {
        let Some(first) = self.found.first() else { return String::new() };
        let key = |load: &FoundLoad| (load.brief.clone(), load.explained_percent, load.is_of_latencies);
        let is_same = |load: &&FoundLoad| key(load) == key(first);
        let (same, others): (Vec<&FoundLoad>, Vec<&FoundLoad>) = self.found.iter().partition(is_same);
        let names = same.iter().map(|load| load.load.as_str()).collect::<Vec<_>>();
        let of = match names.as_slice() {
            [] => String::new(),
            [one] => (*one).to_owned(),
            [one, two] => format!("{one} and {two}"),
            [one, ..] => format!("{one} and {} more", names.len() - 1),
        };
        let mut text = match first.explained_percent {
            Some(percent) if first.is_of_latencies => {
                format!("can explain at most {percent} % of the latencies of {of}, and not the rate, which was kept")
            }
            Some(percent) => format!("can explain at most {percent} % of {of}"),
            None => format!("concerns {of}"),
        };
        if let Some((other, more)) = others.split_first() {
            text.push_str(&format!("; {}: {}", other.load, other.brief));
            match other.explained_percent {
                Some(percent) if other.is_of_latencies => {
                    text.push_str(&format!(" (at most {percent} % of its latencies)"));
                }
                Some(percent) => text.push_str(&format!(" (at most {percent} %)")),
                None => {}
            }
            if !more.is_empty() {
                text.push_str(&format!("; and {} more", counted(more.len() as u64, "load")));
            }
        }
        text
    }
}

/// Returns the reasons why loads are not confirmed, by cause, the most serious cause first.
pub fn reasons_of<'a>(loads: impl Iterator<Item = Load<'a>>, again: &Again) -> Vec<Reason> {
    let mut all: Vec<(Cause, Finding, Mark)> = Vec::new();
    for load in loads {
        let is_shown = Mark::of(Verdict::of(load.checks), load.checks).is_shown();
        for check in load.checks.iter().filter(|check| check.objects()) {
            let check = &if is_shown { check.clone() } else { check.of_withheld() };
            let mark = Mark::of_finding(check);
            let is_same = |known: &&mut (Cause, Finding, Mark)| known.0 == check.cause && known.1.check == check.name;
            match all.iter_mut().find(is_same) {
                Some((_, finding, worst)) => {
                    finding.add(&load, check);
                    *worst = mark.max(*worst);
                }
                None => all.push((check.cause, Finding::new(&load, check), mark)),
            }
        }
    }
    let of_cause = |cause: Cause| {
        let mut findings: Vec<(Finding, Mark)> =
            all.iter().filter(|one| one.0 == cause).map(|one| (one.1.clone(), one.2)).collect();
        // Stable: findings of equal weight stay in the order of the record.
        findings.sort_by_key(|(finding, mark)| {
            // How long a stop was is measured; what waits explain is a limit, and they follow a stop.
            let is_stop = finding.check == STOPS;
            std::cmp::Reverse((
                finding.contradicts,
                *mark,
                is_stop,
                finding.explained_percent,
                is_reason(&finding.check),
            ))
        });
        let mark = findings.iter().map(|(_, mark)| *mark).max()?;
        let findings: Vec<Finding> = findings.into_iter().map(|(finding, _)| finding).collect();
        let mut loads: Vec<String> = Vec::new();
        for load in findings.iter().flat_map(|finding| &finding.loads) {
            if !loads.contains(load) {
                loads.push(load.clone());
            }
        }
        let explained_percent = findings.iter().filter_map(|finding| finding.explained_percent).max();
        let next_step = next_step(cause, &findings, again);
        let found = found_of(&findings);
        Some(Reason { cause, mark, loads, explained_percent, found, findings, next_step })
    };
    let mut reasons: Vec<Reason> = Cause::ALL.into_iter().filter_map(of_cause).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.mark));
    reasons
}

/// Returns the reasons why loads of a record are not confirmed.
pub fn reasons(record: &RunRecord) -> Vec<Reason> {
    let names: Vec<String> = (0..record.phases.len()).map(|index| name_of_phase(record, index)).collect();
    let loads = record.phases.iter().enumerate().map(|(index, phase)| Load {
        name: &names[index],
        checks: &phase.checks,
        has_kept_rate: has_kept_rate(record, index),
    });
    reasons_of(loads, &Again::of_record(record))
}

impl Finding {
    fn new(Load { name: load, has_kept_rate, .. }: &Load<'_>, check: &Check) -> Self {
        let brief = if check.brief.is_empty() { check.sentence.trim_end_matches('.') } else { &check.brief };
        Self {
            check: check.name.clone(),
            outcome: outcome_words(check),
            loads: vec![(*load).to_owned()],
            brief: brief.to_owned(),
            sentence: check_sentence(check),
            sentences: vec![(vec![(*load).to_owned()], check_sentence(check))],
            explained_percent: check.explained_percent,
            culprits: check.culprits.clone(),
            found: vec![FoundLoad {
                load: (*load).to_owned(),
                brief: brief.to_owned(),
                explained_percent: check.explained_percent,
                is_of_latencies: *has_kept_rate && check.explained_percent.is_some(),
            }],
            contradicts: check.outcome == CheckOutcome::Contradicted && !check.is_accepted,
        }
    }

    /// Adds a load; its words replace those of the others if it is worse.
    fn add(&mut self, found: &Load<'_>, check: &Check) {
        let (load, mut other) = (found.name, Self::new(found, check));
        self.found.append(&mut other.found);
        if !self.loads.iter().any(|known| known == load) {
            self.loads.push(load.to_owned());
        }
        for culprit in std::mem::take(&mut other.culprits) {
            if !self.culprits.contains(&culprit) {
                self.culprits.push(culprit);
            }
        }
        match self.sentences.iter_mut().find(|(_, sentence)| *sentence == other.sentence) {
            Some((loads, _)) => loads.push(load.to_owned()),
            None => self.sentences.append(&mut other.sentences),
        }
        if (other.contradicts, other.explained_percent) > (self.contradicts, self.explained_percent) {
            let (loads, culprits) = (std::mem::take(&mut self.loads), std::mem::take(&mut self.culprits));
            let (sentences, found) = (std::mem::take(&mut self.sentences), std::mem::take(&mut self.found));
            *self = Self { loads, culprits, sentences, found, ..other };
        }
    }
}

/// Returns each load of findings with the worst of them, the load of which most can be explained first: the findings are in the order
/// of their weight.
fn found_of(findings: &[Finding]) -> Vec<FoundLoad> {
    let mut found: Vec<FoundLoad> = Vec::new();
    for finding in findings {
        let mut loads = finding.found.clone();
        // Stable: loads of equal weight stay in the order of the record.
        loads.sort_by_key(|load| std::cmp::Reverse(load.explained_percent));
        loads.retain(|load| !found.iter().any(|known| known.load == load.load));
        found.append(&mut loads);
    }
    found
}

/// A load that has this part of the rate that was set for it or more has kept it.
const KEPT_MIN: f64 = 0.98;

/// Returns true if each job of a phase has a rate that was set, and kept it.
fn has_kept_rate(record: &RunRecord, phase_index: usize) -> bool {
    let phase = &record.phases[phase_index];
    let has_kept = |job: &JobRecord| {
        let Some(pace) = plan_of(record, phase_index, job).and_then(|plan| plan.pace) else { return false };
        let transfers = || job.ops.iter().filter(|op| op.op != OpKind::Sync);
        let seconds = job.elapsed_ns.max(1) as f64 / 1e9;
        let wanted = match (pace.ios_per_s, pace.bytes_per_s) {
            (Some(wanted), _) => (wanted, transfers().map(|op| op.io_count as f64).sum::<f64>()),
            (None, Some(wanted)) => (wanted, transfers().map(|op| op.byte_count as f64).sum()),
            (None, None) => return false,
        };
        // Of two rates, only the sum of both would be kept.
        pace.of_writes.is_none() && wanted.1 / seconds >= wanted.0 * KEPT_MIN
    };
    !phase.jobs.is_empty() && phase.jobs.iter().all(has_kept)
}

/// Returns one step that removes a cause.
fn next_step(cause: Cause, findings: &[Finding], again: &Again) -> String {
    // A device in memory stays one, whatever is written to it.
    let is_memory = cause == Cause::Setup && findings.iter().any(|finding| finding.check == "memory_backed");
    let first = if is_memory { "memory_backed" } else { findings.first().map_or("", |finding| finding.check.as_str()) };
    let culprits: Vec<&str> = findings.iter().flat_map(|finding| &finding.culprits).map(String::as_str).collect();
    let then = format!("then {}", again.words);
    let target = again.target.as_deref().unwrap_or("PATH");
    let device = format!("`{}`", command_line(&["trueio", "device", target].map(str::to_owned)));
    match (cause, first) {
        (Cause::Calls, "call_results") if findings.first().is_some_and(|finding| !finding.contradicts) => {
            format!("let at least one I/O complete: {}", again.words)
        }
        (Cause::Calls, _) => "read the failed I/Os in the details".to_owned(),
        (Cause::Cache, "direct_granted") => {
            format!("name a directory whose filesystem supports direct I/O ({device} prints whether it does)")
        }
        (Cause::Cache, _) => past_the_cache(again, &device),
        (Cause::Setup, "holes" | "zero_blocks") => format!("write the whole file first, {then}"),
        (Cause::Setup, "memory_backed") => "name a directory or file on a disk".to_owned(),
        (Cause::Setup, "io_limits") => format!("run outside of the control group, or raise its limit, {then}"),
        (Cause::Setup, "achieved_depth") => {
            format!("raise that limit of the disk, or set an iodepth that it holds, {then}")
        }
        (Cause::Setup, "content") => "write random content: remove the option that sets it".to_owned(),
        (Cause::Setup, "source") => "prepare the data on this machine, or use a faster source".to_owned(),
        (Cause::Setup, "common_window") => {
            "read the figures of the common window, or let all ranks work for the same time".to_owned()
        }
        (Cause::Setup, _) => format!("change the set-up, {then}"),
        (Cause::Device, "straggler") => "look at that host: its disk, network and processors".to_owned(),
        (Cause::Device, "heat") => format!("cool the device, {then}"),
        (Cause::Device, "usb_link") => "read `trueio usb explain`".to_owned(),
        (Cause::Device, "flushes" | "flush_order") => {
            "check the mount options and the device's cache: these writes may not survive a power cut".to_owned()
        }
        (Cause::Device, _) => format!("compare with {device} what the device declares"),
        (Cause::Neighbour, _) => {
            let runs = |culprit: &&&str| !culprit.contains(HAS_ENDED);
            match (culprits.iter().find(runs), culprits.first()) {
                (Some(culprit), _) => format!("stop {}, {then}", quoted(culprit)),
                (None, Some(culprit)) => format!("{}: {}", again.words, quoted(culprit)),
                (None, None) => format!("let the other I/O end (`iotop` lists it), {then}"),
            }
        }
        (Cause::Tool, "stops") => format!("let the program run without a stop: {}", again.words),
        (Cause::Tool, "latency_origin") => {
            format!("run without preloaded libraries and filters of system calls, {then}")
        }
        (Cause::Tool, "achieved_depth") => deeper(again, &then),
        (Cause::Tool, _) => format!("free processors for this program, or raise its quota, {then}"),
        (Cause::Unsteady, "pace") => "set a lower rate, which the device can sustain".to_owned(),
        (Cause::Unsteady, _) => again.steadier(),
    }
}

/// Returns how the I/O goes past the page cache.
fn past_the_cache(again: &Again, device: &str) -> String {
    // A baseline uses direct I/O wherever it can.
    if again.is_baseline() {
        return format!("name a directory whose filesystem supports direct I/O ({device} prints whether it does)");
    }
    again.direct().map_or_else(
        || "set direct I/O in the jobs, or use files larger than memory".to_owned(),
        |command| format!("{command}, or use files larger than memory"),
    )
}

/// Returns how the queue of a load is kept full.
fn deeper(again: &Again, then: &str) -> String {
    let limit = "look for a limit of the disk's queue (`nr_requests`) that came during the run";
    // A baseline chooses the engine.
    match again.with(&[("ioengine", "io_uring")], &[]).filter(|_| !again.is_baseline()) {
        Some(command) => format!("{command}, whose engine keeps a queue; if that was its engine, {limit}"),
        None => format!("{limit}, {then}"),
    }
}

/// After the process of a culprit that cannot be stopped any more.
const HAS_ENDED: &str = ", which has ended";

/// Quotes the name of a culprit: `` `dd` (pid 812) ``.
fn quoted(culprit: &str) -> String {
    let process = [" (pid ", " (thread "].iter().filter_map(|begin| culprit.rfind(begin)).max();
    match process.map(|at| culprit.split_at(at)) {
        Some((name, process)) => format!("`{name}`{process}"),
        None => format!("`{culprit}`"),
    }
}

/// Returns the advice to accept contradictions, and which were accepted, which stands after everything else; `None` if nothing is
/// contradicted, or if the record does not contain the check that contradicts.
pub fn accept_hint(record: &RunRecord) -> Option<String> {
    let contradicts = |check: &&Check| check.outcome == CheckOutcome::Contradicted && !check.is_accepted;
    let mut names: Vec<&str> = Vec::new();
    for check in record.phases.iter().flat_map(|phase| &phase.checks).filter(contradicts) {
        if !names.contains(&check.name.as_str()) {
            names.push(&check.name);
        }
    }
    let flags: Vec<String> = names.iter().map(|name| format!("`--accept {name}`")).collect();
    let withheld =
        (!flags.is_empty()).then(|| format!("Withheld (x): {} shows them in spite of the check.", flags.join(" ")));
    let sentences: Vec<String> = withheld.into_iter().chain(accepted(record)).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Returns which contradictions were accepted, of which loads, and what they found; `None` without one.
fn accepted(record: &RunRecord) -> Option<String> {
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for (index, phase) in record.phases.iter().enumerate() {
        let is_accepted = |check: &&Check| check.outcome == CheckOutcome::Contradicted && check.is_accepted;
        for check in phase.checks.iter().filter(is_accepted) {
            let brief = if check.brief.is_empty() { check.sentence.trim_end_matches('.') } else { &check.brief };
            let of = format!("{}: {brief}", name_of_phase(record, index));
            match found.iter_mut().find(|(name, _)| *name == check.name) {
                Some((_, loads)) => loads.push(of),
                None => found.push((&check.name, vec![of])),
            }
        }
    }
    let words = found.iter().map(|(name, loads)| match loads.as_slice() {
        [] => String::new(),
        [one] => format!("`--accept {name}` ({one})"),
        [first, more @ ..] => format!("`--accept {name}` ({first}; and {})", counted(more.len() as u64, "more load")),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("Shown because of {}, and else withheld.", words.join(" and ")))
}

/// Returns how many loads of a record are confirmed, and by what: one sentence. Its level is in the details.
pub fn conclusion(record: &RunRecord) -> String {
    let count: usize = record.phases.iter().map(|phase| phase.jobs.len()).sum();
    let confirmed: Vec<&PhaseRecord> = record.phases.iter().filter(|phase| mark(phase) == Mark::Confirmed).collect();
    let confirmed_count: usize = confirmed.iter().map(|phase| phase.jobs.len()).sum();
    let none =
        if count == 1 { "The load is not confirmed".to_owned() } else { format!("None of {count} loads confirmed") };
    let Some(level) = confirmed.iter().map(|phase| phase.level).min() else {
        let level = record.phases.iter().map(|phase| phase.level).min();
        let is_unseen = record.phases.iter().all(|phase| mark(phase) == Mark::Unverified);
        return match (level, is_unseen) {
            (None, _) => "Nothing was measured.".to_owned(),
            (Some(_), false) => format!("{none}."),
            (Some(level), true) => {
                let disks = || record.targets.iter().flat_map(|target| &target.disks);
                if let Some(disk) = disks().find(|disk| counts_nothing(disk) && is_memory(disk)) {
                    return format!("{none}: {} is memory, and the device is the processor.", disk.name);
                }
                let step = step_of(record, level).map_or_else(String::new, |step| format!(" (to see more: {step})"));
                format!("{none}: no counter of a disk shows the I/O{step}.")
            }
        };
    };
    let by = match level {
        EvidenceLevel::E0 | EvidenceLevel::E1 | EvidenceLevel::E2 => "the disk's own counters",
        EvidenceLevel::E3 | EvidenceLevel::E4 => "the disk's own counters and by traced requests",
    };
    match count {
        1 => format!("The load is confirmed by {by}."),
        count => format!("{confirmed_count} of {count} loads confirmed by {by}."),
    }
}

/// Explains the evidence levels that occur in the record; `None` without a phase.
pub(crate) fn levels(record: &RunRecord) -> Option<String> {
    let mut levels: Vec<EvidenceLevel> = record.phases.iter().map(|p| p.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let raise = raise(record);
    let words = |level: &EvidenceLevel| match raise.is_some() && *level == levels[0] {
        // The sentence at the end has the step with its reason.
        true => format!("{level} {}", level_meaning(*level)),
        false => level_words(*level, step_of(record, *level)),
    };
    let text: Vec<String> = levels.iter().map(words).collect();
    let raise = raise.as_ref().map_or_else(String::new, |step| format!(" To raise {}: {step}.", levels[0]));
    (!text.is_empty()).then(|| format!("Evidence level: {}.{raise}", text.join("; ")))
}

/// Returns what would raise the level of those phases that have it, in less than half a line; `None` if nothing known would.
fn step_of(record: &RunRecord, level: EvidenceLevel) -> Option<&'static str> {
    let phases = || record.phases.iter().filter(|phase| phase.level == level);
    let is_unseen =
        |name: &str| phases().flat_map(|p| &p.checks).any(|c| c.outcome == CheckOutcome::NotSeen && c.name == name);
    match level {
        EvidenceLevel::E0 if record.plan.idle_baseline_ns == 0 => Some("omit `--no-evidence`"),
        EvidenceLevel::E0 if record.targets.iter().flat_map(|target| &target.disks).any(counts_nothing) => {
            Some("1 in `queue/iostats`")
        }
        EvidenceLevel::E0 if is_unseen("block_layer_bytes") => Some("a disk that `/sys` shows"),
        EvidenceLevel::E0 => Some("I/O on a local disk"),
        EvidenceLevel::E1 | EvidenceLevel::E2 if !record.environment.is_root => Some("run as root"),
        EvidenceLevel::E1 | EvidenceLevel::E2 if is_unseen("traced_requests") => {
            let trace = phases().filter_map(|phase| phase.trace.as_ref()).find(|trace| trace.missing.is_none());
            Some(match trace.map(|trace| (trace.transfers.sampled_count, trace.ours.count)) {
                // The sentence of the check stands in the details: no tracefs, a filesystem on several disks, …
                None => "see `traced_requests`",
                Some((0, 0)) => "a longer run, direct I/O",
                Some((0, _)) => "direct I/O",
                Some(_) => "files at known disk offsets",
            })
        }
        EvidenceLevel::E1 | EvidenceLevel::E2 | EvidenceLevel::E3 | EvidenceLevel::E4 => None,
    }
}

/// Returns true for a disk that keeps its blocks in memory: the processor copies them.
pub(crate) fn is_memory(disk: &DiskFacts) -> bool {
    disk.transport.value.as_ref().is_some_and(Transport::is_volatile_memory)
}

fn counts_nothing(disk: &DiskFacts) -> bool {
    disk.counts_io.value == Some(false)
}

/// Returns what would raise the lowest level of evidence of a record, with the reason; `None` if nothing known would.
pub fn raise(record: &RunRecord) -> Option<String> {
    let level = record.phases.iter().map(|phase| phase.level).min()?;
    let not_seen = |name: &str| {
        let checks = record.phases.iter().flat_map(|phase| &phase.checks);
        checks.filter(|check| check.outcome == CheckOutcome::NotSeen).find(|check| check.name == name)
    };
    match level {
        EvidenceLevel::E0 if record.plan.idle_baseline_ns == 0 => {
            Some("run without `--no-evidence` to compare the figures with the disk's counters".to_owned())
        }
        EvidenceLevel::E0 if record.targets.iter().flat_map(|target| &target.disks).any(counts_nothing) => {
            not_seen("block_layer_bytes").map(|check| check.sentence.trim_end_matches('.').to_owned())
        }
        EvidenceLevel::E0 => not_seen("block_layer_bytes")
            .map(|check| format!("{} Make `/sys` visible, or name a target on a local disk", check.sentence)),
        EvidenceLevel::E1 | EvidenceLevel::E2 if !record.environment.is_root => {
            Some("run as root, or with CAP_DAC_OVERRIDE, to trace single requests (level E3)".to_owned())
        }
        EvidenceLevel::E1 | EvidenceLevel::E2 => {
            not_seen("traced_requests").map(|check| check.sentence.trim_end_matches('.').to_owned())
        }
        EvidenceLevel::E3 | EvidenceLevel::E4 => None,
    }
}
