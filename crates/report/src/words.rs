//! Sentences about facts, evidence and plan, shared by terminal and HTML.

use crate::summary::{QUANTILES, Row, end_flush_of, manner_of, name_of, name_of_phase, plan_of, shape_of};
use crate::text::{UNKNOWN, counted, figure};
use crate::verdicts::mark;
use trueio_model::{
    Check, CheckOutcome, DirectSupport, DiskFacts, Environment, EvidenceLevel, Fact, Objection, Outcome, RunRecord,
    TargetFacts, TargetKind, UsbTransport, WriteCache, shown_checks, units,
};
use trueio_stats::minimum_count;

/// A sentence and its details.
pub(crate) type Item = (String, Vec<String>);

/// Returns the lines that describe a target, as name and text. A line without a name continues the previous
/// one.
pub(crate) fn target_lines(target: &TargetFacts) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let mut text = target.path.clone();
    text.push_str(match target.kind {
        TargetKind::Directory => ", a directory",
        TargetKind::File => ", a file",
        TargetKind::BlockDevice => ", a block device",
        TargetKind::CharacterDevice => ", a character device",
    });
    if let Some(size) = target.size_bytes.value {
        text.push_str(&format!(" of {}", units::format_bytes(size)));
    }
    lines.push(("target", text));
    if let Some(fs) = &target.filesystem {
        let text = format!(
            "{} ({}), {} mounted at {}; {} of {} available",
            fs.kind,
            fs.options,
            fs.source,
            fs.mount_point,
            known(&fs.available_bytes, |b| units::format_bytes(*b)),
            known(&fs.size_bytes, |b| units::format_bytes(*b)),
        );
        lines.push(("filesystem", text));
    }
    if !target.stack.is_empty() {
        let mut text = String::new();
        for (i, layer) in target.stack.iter().enumerate() {
            if i > 0 {
                // Layers of equal depth are listed together: the members of a RAID.
                text.push_str(if layer.depth == target.stack[i - 1].depth { " + " } else { " → " });
            }
            text.push_str(&layer.name);
        }
        lines.push(("stack", text));
    }
    if target.disks.is_empty() {
        lines.push(("disk", "none under this target".to_owned()));
    }
    for disk in &target.disks {
        lines.extend([("disk", disk_name(disk)), ("", disk_sentence(disk))]);
    }
    for limit in target.io_limits.value.iter().flatten() {
        lines.push(("I/O limit", format!("control group {} limits {}", limit.group, limit.describe())));
    }
    lines.push(("direct I/O", direct_sentence(target)));
    lines
}

fn disk_name(disk: &DiskFacts) -> String {
    format!(
        "{}: {}, {}, {}",
        disk.name,
        named("model", &disk.model),
        transport_words(disk),
        match disk.size_bytes.value {
            Some(size) => units::format_bytes(size),
            None => format!("size {UNKNOWN}"),
        },
    )
}

/// Adds transport and speed for USB disks.
fn transport_words(disk: &DiskFacts) -> String {
    let Some(usb) = &disk.usb else { return named("transport", &disk.transport) };
    let link = usb.link_mbit_per_s.value.map_or_else(String::new, |mbit| format!(" at {mbit} Mbit/s"));
    match usb.transport {
        UsbTransport::Uas | UsbTransport::Bot => format!("usb on {}{link}", usb.transport),
        _ => format!("usb{link}"),
    }
}

fn disk_sentence(disk: &DiskFacts) -> String {
    let bytes = |fact: &Fact<u32>| known(fact, |b| units::format_bytes(u64::from(*b)));
    format!(
        "sectors {} logical, {} physical; scheduler {}; write cache {}; FUA {}; {}",
        bytes(&disk.logical_sector_bytes),
        bytes(&disk.physical_sector_bytes),
        known(&disk.scheduler, Clone::clone),
        known(&disk.write_cache, |cache| match cache {
            WriteCache::WriteBack => "write back (volatile: only flushed data survives)".to_owned(),
            other => other.to_string(),
        }),
        known(&disk.has_fua, |&yes| if yes { "yes" } else { "no" }.to_owned()),
        match disk.is_rotational.value {
            Some(true) => "rotates",
            Some(false) => "does not rotate",
            None => "rotation unknown",
        },
    )
}

/// Returns the lines that describe the machine, in the form of [`target_lines`].
pub(crate) fn machine_lines(machine: &Environment) -> Vec<(&'static str, String)> {
    let first = format!(
        "{} × {}, {} of memory ({} available)",
        machine.cpu.usable_count,
        known(&machine.cpu.model, Clone::clone),
        known(&machine.memory_bytes, |b| units::format_bytes(*b)),
        known(&machine.memory_available_bytes, |b| units::format_bytes(*b)),
    );
    let mut second = machine.system.clone();
    if let Some(distribution) = &machine.distribution.value {
        second.push_str(&format!(", {distribution}"));
    }
    if let Some(hypervisor) = &machine.hypervisor.value {
        second.push_str(&format!(", virtual machine ({hypervisor})"));
    }
    if let Some(governor) = &machine.cpu.governor.value {
        second.push_str(&format!(", {governor} governor"));
    }
    vec![("machine", first), ("", second)]
}

/// Why latencies of buffered writes are not the disk's.
pub(crate) const MEMORY_LATENCY: &str = "the write calls returned once the data was in memory";

/// Returns the footnotes of the summary table.
pub(crate) fn footnotes(record: &RunRecord, rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    let missing: Vec<String> = QUANTILES
        .iter()
        .enumerate()
        .filter(|(i, _)| rows.iter().any(|r| r.quantiles[*i].is_none() && !r.withholds_latencies()))
        .filter_map(|(_, &q)| Some(format!("{} {}", percentile_name(q), units::format_count(minimum_count(q)?))))
        .collect();
    if !missing.is_empty() {
        notes.push(format!("– too few I/Os for this percentile; it needs at least: {}.", missing.join(", ")));
    }
    let of_memory: Vec<&str> = rows.iter().filter(|r| r.has_memory_latency).map(|r| r.label.as_str()).collect();
    if !of_memory.is_empty() {
        notes.push(format!("Latencies of {} are withheld: {MEMORY_LATENCY}.", of_memory.join(", ")));
    }
    let paced: Vec<&str> = rows.iter().filter(|r| r.is_from_intended).map(|r| r.label.as_str()).collect();
    if !paced.is_empty() {
        notes.push(format!("Latencies of {} count from the time each I/O was due.", paced.join(", ")));
    }
    let flushes: Vec<String> = record
        .phases
        .iter()
        .enumerate()
        .filter(|(_, phase)| mark(phase).is_shown())
        .flat_map(|(index, phase)| phase.jobs.iter().map(move |job| (index, job)))
        .filter_map(|(index, job)| {
            let max_ns = end_flush_of(record, index, job)?.latency.total.max_ns()?;
            Some(format!("{} {}", name_of(record, index, job), units::format_duration_ns(max_ns)))
        })
        .collect();
    if !flushes.is_empty() {
        notes.push(format!("The fsync at the end, which is part of the measured time, took: {}.", flushes.join(", ")));
    }
    notes
}

/// Returns one sentence per phase with a steady state.
pub(crate) fn steady_states(record: &RunRecord) -> Vec<String> {
    let phases = record.phases.iter().enumerate();
    let steady = phases.filter_map(|(index, phase)| Some((name_of_phase(record, index), phase.steady_state.as_ref()?)));
    steady
        .map(|(name, state)| {
            let spent_ns = state.rounds.iter().map(|round| round.elapsed_ns).sum();
            let (count, spent) = (state.rounds.len(), units::format_duration_ns(spent_ns));
            let percent = |value: Option<f64>| value.map_or_else(|| UNKNOWN.to_owned(), |v| format!("{v:.1} %"));
            let variables: Vec<String> = state
                .variables
                .iter()
                .map(|v| {
                    let drift = v.excursion_percent.map_or_else(|| UNKNOWN.to_owned(), |e| format!("{e:+.1} %"));
                    format!("{} range {}, drift {drift}", v.name.replace('_', " "), percent(v.range_percent))
                })
                .collect();
            let how = if state.is_attained { "reached after" } else { "NOT reached in" };
            let rule = format!(
                "SNIA rule: over {} rounds, at most {:.0} % range and {:.0} % drift",
                state.window_rounds, state.range_percent_max, state.excursion_percent_max
            );
            let last = if variables.is_empty() {
                String::new()
            } else {
                format!("; in the last window: {}", variables.join("; "))
            };
            format!("{name}: {how} {count} rounds, {spent}{last} ({rule}). The figures above were measured after that.")
        })
        .collect()
}

/// Returns the sentences of checks that could not observe anything, each once, with its phases if not all.
pub(crate) fn not_seen(record: &RunRecord) -> Vec<String> {
    let mut found: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for phase in &record.phases {
        for check in phase.checks.iter().filter(|c| c.outcome == CheckOutcome::NotSeen) {
            match found.iter_mut().find(|f| f.0 == check.name && f.1 == check.sentence) {
                Some(entry) => entry.2.push(&phase.name),
                None => found.push((&check.name, &check.sentence, vec![&phase.name])),
            }
        }
    }
    found
        .into_iter()
        .map(|(name, sentence, phases)| {
            let of =
                if phases.len() == record.phases.len() { String::new() } else { format!(" ({})", phases.join(", ")) };
            format!("{name}{of}: {sentence}")
        })
        .collect()
}

/// Returns one item per kind of failed or short I/O.
pub(crate) fn failed_ios(record: &RunRecord) -> Vec<Item> {
    let mut items = Vec::new();
    for job in record.phases.iter().flat_map(|p| &p.jobs) {
        let plan = record.plan.jobs.iter().find(|plan| plan.name == job.name);
        let unexpected: Vec<_> = plan.map_or_else(Vec::new, |plan| plan.unexpected(&job.failures).collect());
        for failure in &job.failures {
            let is_ignored = plan.is_some() && !unexpected.contains(&failure);
            let name = if is_ignored { format!("{} (ignored as set by the job)", job.name) } else { job.name.clone() };
            let ios = counted(failure.count, &failure.op.to_string());
            let what = if failure.errno == 0 {
                format!("{ios} short, the first one returned {} bytes", units::format_count(failure.returned))
            } else {
                format!("{ios} failed (os error {})", failure.errno)
            };
            let text = format!(
                "{name}: {what}; first: {}, offset {}, length {}, buffer at {:#x}",
                failure.path,
                units::format_count(failure.offset),
                units::format_count(failure.length),
                failure.address,
            );
            items.push((text, vec![failure.explanation.clone()]));
        }
    }
    items
}

/// Returns the results of verification, one item per job.
pub(crate) fn verification(record: &RunRecord) -> Vec<Item> {
    let jobs = record.phases.iter().flat_map(|p| &p.jobs);
    jobs.filter(|j| j.verified_block_count > 0 || j.verify_failure_count > 0)
        .map(|job| {
            let text = format!(
                "{}: {} of {} differ from what was written",
                job.name,
                units::format_count(job.verify_failure_count),
                counted(job.verified_block_count, "block"),
            );
            let mut shown: Vec<String> = job
                .verify_failures
                .iter()
                .map(|failure| {
                    format!(
                        "{}, offset {}, length {}: expected {}; found {}",
                        failure.path,
                        units::format_count(failure.offset),
                        units::format_count(failure.length),
                        failure.expected,
                        failure.found,
                    )
                })
                .collect();
            let more = job.verify_failure_count.saturating_sub(shown.len() as u64);
            if more > 0 {
                shown.push(format!("and {} more", units::format_count(more)));
            }
            (text, shown)
        })
        .collect()
}

/// Returns how each job did its I/O; jobs with the same description share a sentence.
pub(crate) fn manners(record: &RunRecord) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (index, phase) in record.phases.iter().enumerate() {
        for job in &phase.jobs {
            let Some(plan) = plan_of(record, index, job) else { continue };
            let shape = shape_of(plan);
            let name = name_of(record, index, job);
            let name = if is_same(&shape, &name) { name } else { format!("{name} ({shape})") };
            let manner = manner_of(plan);
            match groups.iter_mut().find(|g| g.0 == manner) {
                Some(group) => group.1.push(name),
                None => groups.push((manner, vec![name])),
            }
        }
    }
    groups.into_iter().map(|(manner, names)| format!("{}: {manner}", names.join(", "))).collect()
}

/// Returns true if a job's name matches its shape: `rand-read-4k-q32` and `randread 4k q32`.
pub(crate) fn is_same(shape: &str, name: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    letters(shape) == letters(name)
}

/// Returns the notes of the plan, the checks and the engines.
pub(crate) fn notes(record: &RunRecord) -> Vec<String> {
    let mut notes: Vec<String> = record.plan.notes.clone();
    // A declaration that the measurement refutes is reported even if it does not affect the verdict.
    for check in record.phases.iter().flat_map(shown_checks) {
        let is_remark = check.name == "declared_values" && check.outcome == CheckOutcome::Passed;
        if is_remark && check.sentence.contains(" declares ") && !notes.contains(&check.sentence) {
            notes.push(check.sentence);
        }
    }
    for job in record.phases.iter().flat_map(|p| &p.jobs) {
        notes.extend(job.engine_notes.iter().map(|note| format!("{}: {note}", job.name)));
        if job.backlog_count > 0 {
            let due = counted(job.backlog_count, "I/O");
            notes.push(format!(
                "{}: {due} due but not issued when the job ended; the job did not keep its \
                                pace.",
                job.name
            ));
        }
    }
    notes
}

/// Returns the measured cost of the tool on this machine.
pub(crate) fn ruler_sentences(record: &RunRecord) -> Vec<String> {
    let ruler = &record.ruler;
    let mut sentences = vec![
        format!(
            "the clock ({}) takes {} ns per reading and has a resolution of {} ns; the null engine takes {} ns of CPU \
             per I/O and reports a median latency of {} ns: shorter latencies cannot be measured",
            ruler.clock,
            figure(ruler.clock_cost_ns),
            figure(ruler.clock_resolution_ns),
            figure(ruler.null_cpu_ns_per_io),
            units::format_count(ruler.null_latency_ns_p50),
        ),
        format!("{} {}, {} build", record.tool.name, record.tool.version, record.tool.build),
    ];
    if record.tool.build != "release" {
        sentences.push(
            "These figures come from an unoptimised build of the tool; use `cargo run \
                        --release`."
                .to_owned(),
        );
    }
    sentences
}

/// Describes what an evidence level is based on.
pub(crate) fn level_meaning(level: EvidenceLevel) -> &'static str {
    match level {
        EvidenceLevel::E0 => "only the results of the calls",
        EvidenceLevel::E1 => "the disk's counters",
        EvidenceLevel::E2 => "counters of disk, process and file",
        EvidenceLevel::E3 => "block requests traced by their offset",
        EvidenceLevel::E4 => "verified by a power cut",
    }
}

/// Describes in half a line what would raise a level; `step` is the step that would, if one is known. `None` if nothing is known.
pub(crate) fn level_step(level: EvidenceLevel, step: Option<&str>) -> Option<String> {
    match (level, step) {
        (EvidenceLevel::E3 | EvidenceLevel::E4, _) => Some("the highest of a run".to_owned()),
        (_, Some(step)) => Some(format!("to raise it: {step}")),
        (_, None) => None,
    }
}

/// Explains a level in two halves of a line: what it is based on, and what would raise it.
pub(crate) fn level_words(level: EvidenceLevel, step: Option<&str>) -> String {
    let step = level_step(level, step).map_or_else(String::new, |step| format!(" ({step})"));
    format!("{level} {}{step}", level_meaning(level))
}

/// Formats `p50`, `p99.9`.
pub(crate) fn percentile_name(q: f64) -> String {
    // 0.999 · 100 is 99.9 with an error in the last binary digit; six decimals are enough.
    let text = format!("{:.6}", q * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns a check's sentence with the two figures it compared.
pub(crate) fn check_sentence(check: &Check) -> String {
    Objection::of(check).whole_sentence()
}

/// Returns a fact's value as text, or `unknown`.
pub(crate) fn known<T>(fact: &Fact<T>, show: impl Fn(&T) -> String) -> String {
    fact.value.as_ref().map_or_else(|| UNKNOWN.to_owned(), show)
}

fn named<T: std::fmt::Display>(name: &str, fact: &Fact<T>) -> String {
    match &fact.value {
        Some(value) => value.to_string(),
        None => format!("{name} {UNKNOWN}"),
    }
}

/// Describes how the run ended, if not as planned.
pub(crate) fn outcome_sentence(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Complete => None,
        Outcome::Interrupted { signal } => {
            Some(format!("INTERRUPTED by {signal}: the figures cover the time until then."))
        }
        Outcome::Failed { reason } => Some(format!("FAILED: {reason}")),
    }
}

/// Describes whether direct I/O is supported.
pub(crate) fn support_words(support: DirectSupport) -> String {
    match support {
        DirectSupport::Direct => "supported",
        DirectSupport::SilentlyBuffered => "accepted, but silently buffered",
        DirectSupport::Refused => "refused",
        DirectSupport::Unknown => "unknown whether it is supported",
    }
    .to_owned()
}

/// Describes whether direct I/O is supported, its alignment, and the source of both.
pub(crate) fn direct_sentence(target: &TargetFacts) -> String {
    let direct = &target.direct;
    let bytes = |fact: &Fact<u32>| known(fact, |b| units::format_bytes(u64::from(*b)));
    let mut text = support_words(direct.support);
    if !direct.reason.is_empty() {
        text.push_str(&format!(" ({})", direct.reason));
    }
    if matches!(direct.support, DirectSupport::Direct | DirectSupport::Unknown) {
        text.push_str(&format!(
            "; buffers aligned to {}, reads to {}, writes to {}",
            bytes(&direct.memory_alignment_bytes),
            bytes(&direct.read_alignment_bytes),
            bytes(&direct.write_alignment_bytes),
        ));
        if direct.write_alignment_bytes.value.is_some() {
            text.push_str(&format!(" ({})", direct.write_alignment_bytes.source));
        }
    }
    text
}

/// Returns what was measured, for a title: the device, and what it is and where it is mounted; never a temporary file.
pub(crate) fn title_of(record: &RunRecord) -> (String, String) {
    let mut disks: Vec<&DiskFacts> = Vec::new();
    for disk in record.targets.iter().flat_map(|target| &target.disks) {
        if !disks.iter().any(|known| known.name == disk.name) {
            disks.push(disk);
        }
    }
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    let mut about: Vec<String> = Vec::new();
    if let [disk] = disks.as_slice() {
        about.extend(disk.model.value.clone());
        about.extend(disk.transport.value.as_ref().map(ToString::to_string));
        about.extend(disk.size_bytes.value.map(units::format_bytes));
    }
    let mut places: Vec<String> = Vec::new();
    for fs in record.targets.iter().filter_map(|target| target.filesystem.as_ref()) {
        let place = format!("{} on {}", fs.kind, fs.mount_point);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let paths = || record.targets.iter().map(|target| target.path.clone()).collect::<Vec<_>>().join(", ");
    let name = match names.as_slice() {
        [] if record.targets.is_empty() => record.kind.clone(),
        [] => paths(),
        all => all.join(" + "),
    };
    let about = [about.join(", "), places.join(", ")].into_iter().filter(|part| !part.is_empty());
    (name, about.map(|part| format!("· {part}")).collect::<Vec<_>>().join(" "))
}
