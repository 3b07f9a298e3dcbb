//! A record as text for a terminal.
//!
//! What the target is, one table with a row an operation, the reasons in words, what could not be
//! seen, errors, notes, and what the tool itself cost. The table has one unit a column, so that
//! figures can be compared down the column; where it does not fit the width, each row becomes two
//! lines. A contradicted row is followed by its reasons before anything else is printed.
//!
//! Colour repeats what the words say and adds nothing. Whether to use it (`NO_COLOR`, a pipe) is
//! the caller's decision.

use crate::summary::{Row, manner_of, plan_of, shape_of, summary};
use crate::text::{NOT_KNOWN, clean, counted, figure, width_of, wrap};
use trueio_model::{
    Check, CheckOutcome, DirectSupport, DiskFacts, EvidenceLevel, Fact, Histogram, Outcome, RunRecord, TargetFacts,
    TargetKind, Verdict, units,
};
use trueio_stats::minimum_count;

/// How text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal. Less than 40 is treated as 40; a figure is never cut off.
    pub width: usize,
    /// Use ANSI colours.
    pub color: bool,
    /// Use characters beyond ASCII (`µs`, `–`); without it they are written `us`, `-`.
    pub unicode: bool,
}

/// The record as text, ending with a line feed.
pub fn terminal(record: &RunRecord, style: &Style) -> String {
    let mut page = Page { style: Style { width: style.width.max(40), ..*style }, out: String::new() };
    page.header(record);
    page.table(record);
    page.reasons(record);
    page.not_seen(record);
    page.errors(record);
    page.jobs(record);
    page.notes(record);
    page.ruler(record);
    page.outcome(record);
    if style.unicode { page.out } else { to_ascii(&page.out) }
}

/// Our own marks in ASCII, one character for one, so that columns stay where they are.
fn to_ascii(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            'µ' => 'u',
            '–' | '−' => '-',
            '→' => '>',
            '×' => 'x',
            '≥' => '>',
            '…' => '.',
            '\u{a0}' => ' ',
            '\u{fffd}' => '?',
            other => other,
        })
        .collect()
}

/// ANSI colours, as the numbers of their escape sequence.
#[derive(Clone, Copy)]
enum Paint {
    Bold,
    Dim,
    Good,
    Doubtful,
    Bad,
}

impl Paint {
    fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Supported => Paint::Good,
            Verdict::Suspect => Paint::Doubtful,
            Verdict::Contradicted => Paint::Bad,
        }
    }
}

struct Page {
    style: Style,
    out: String,
}

impl Page {
    fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            _ if !self.style.color || text.is_empty() => return text.to_owned(),
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Good => "32",
            Paint::Doubtful => "33",
            Paint::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    fn heading(&mut self, text: &str) {
        let text = self.paint(Paint::Bold, text);
        self.out.push('\n');
        self.out.push_str(&text);
        self.out.push('\n');
    }

    /// A sentence under a heading, indented by two.
    fn item(&mut self, text: &str) {
        wrap(&mut self.out, "  ", 4, text, self.style.width);
    }

    /// A sentence that belongs to the item above.
    fn sub_item(&mut self, text: &str) {
        wrap(&mut self.out, "    ", 6, text, self.style.width);
    }

    /// A named line of the header.
    fn fact(&mut self, name: &str, text: &str) {
        const NAME_WIDTH: usize = 14;
        let first = format!("  {name:<0$}", NAME_WIDTH - 2);
        wrap(&mut self.out, &first, NAME_WIDTH, text, self.style.width);
    }

    fn header(&mut self, record: &RunRecord) {
        let title = format!("{} {}", clean(&record.tool.name), clean(&record.kind));
        let title = self.paint(Paint::Bold, &title);
        self.out.push_str(&title);
        let id: String = record.id.chars().take(8).collect();
        let when = record.started_at.replace('T', " ").replace('Z', " UTC");
        self.out.push_str(&format!("  {}  record {}\n", clean(&when), clean(&id)));
        if let Some(sentence) = outcome_sentence(&record.outcome) {
            let sentence = self.paint(Paint::Bad, &clean(&sentence));
            self.out.push_str(&sentence);
            self.out.push('\n');
        }
        self.out.push('\n');
        for target in &record.targets {
            self.target(target);
        }
        let machine = &record.environment;
        let mut text = format!("{} × {}", machine.cpu.usable_count, known(&machine.cpu.model, Clone::clone));
        text.push_str(&format!(", {} of memory", known(&machine.memory_bytes, |b| units::format_bytes(*b))));
        text.push_str(&format!(" ({} available)", known(&machine.memory_available_bytes, |b| units::format_bytes(*b))));
        self.fact("machine", &text);
        let mut text = machine.system.clone();
        if let Some(distribution) = &machine.distribution.value {
            text.push_str(&format!(", {distribution}"));
        }
        if let Some(hypervisor) = &machine.hypervisor.value {
            text.push_str(&format!(", virtual machine ({hypervisor})"));
        }
        if let Some(governor) = &machine.cpu.governor.value {
            text.push_str(&format!(", {governor} governor"));
        }
        self.fact("", &text);
    }

    fn target(&mut self, target: &TargetFacts) {
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
        self.fact("target", &text);
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
            self.fact("filesystem", &text);
        }
        if !target.stack.is_empty() {
            let mut text = String::new();
            for (i, layer) in target.stack.iter().enumerate() {
                if i > 0 {
                    // Layers of equal depth stand side by side: the members of a RAID.
                    text.push_str(if layer.depth == target.stack[i - 1].depth { " + " } else { " → " });
                }
                text.push_str(&layer.name);
            }
            self.fact("stack", &text);
        }
        if target.disks.is_empty() {
            self.fact("disk", "none under this target");
        }
        for disk in &target.disks {
            self.disk(disk);
        }
        self.fact("direct I/O", &direct_sentence(target));
    }

    fn disk(&mut self, disk: &DiskFacts) {
        let bytes = |fact: &Fact<u32>| known(fact, |b| units::format_bytes(u64::from(*b)));
        let text = format!(
            "{}: {}, {}, {}",
            disk.name,
            named("model", &disk.model),
            named("transport", &disk.transport),
            match disk.size_bytes.value {
                Some(size) => units::format_bytes(size),
                None => format!("size {NOT_KNOWN}"),
            },
        );
        self.fact("disk", &text);
        let text = format!(
            "sectors {} logical, {} physical; scheduler {}; write cache {}; FUA {}; {}",
            bytes(&disk.logical_sector_bytes),
            bytes(&disk.physical_sector_bytes),
            known(&disk.scheduler, Clone::clone),
            known(&disk.write_cache, |cache| match cache.as_str() {
                "write back" => "write back (volatile: only flushed data survives)".to_owned(),
                other => other.to_owned(),
            }),
            known(&disk.has_fua, |&yes| if yes { "yes" } else { "no" }.to_owned()),
            match disk.is_rotational.value {
                Some(true) => "rotates",
                Some(false) => "does not rotate",
                None => "rotation not known",
            },
        );
        self.fact("", &text);
    }

    fn table(&mut self, record: &RunRecord) {
        self.out.push('\n');
        let rows = summary(record);
        let scale = Scale::of(&rows);
        let cells: Vec<Cells> = rows.iter().map(|row| Cells::of(row, record, scale)).collect();
        let heads: [(&str, &str); FIGURES] = [
            ("bandwidth", "MiB/s"),
            ("IOPS", "1/s"),
            ("lat p50", scale.unit),
            ("p99", scale.unit),
            ("p99.9", scale.unit),
            ("max", scale.unit),
            ("CPU/IO", "µs"),
        ];
        let name_width = cells.iter().map(|c| width_of(&c.name)).max().unwrap_or(0);
        let mut widths = heads.map(|(a, b)| width_of(a).max(width_of(b)));
        for row in &cells {
            for (width, cell) in widths.iter_mut().zip(&row.figures) {
                *width = (*width).max(width_of(cell));
            }
        }
        let verdict_width = cells.iter().map(|c| width_of(&c.verdict)).max().unwrap_or(0);
        let figures_width: usize = widths.iter().map(|w| w + 2).sum();
        let is_wide = name_width + figures_width + 2 + verdict_width <= self.style.width;
        // In the narrow layout the name stands on a line of its own, the figures below it.
        let indent = if is_wide { name_width } else { 0 };

        for line in 0..2 {
            let mut text = " ".repeat(indent);
            for ((a, b), width) in heads.iter().zip(widths) {
                text.push_str(&format!("  {:>width$}", if line == 0 { a } else { b }));
            }
            if line == 0 && is_wide {
                text.push_str("  evidence");
            }
            let text = self.paint(if line == 0 { Paint::Bold } else { Paint::Dim }, text.trim_end());
            self.out.push_str(&text);
            self.out.push('\n');
        }
        for (i, row) in cells.iter().enumerate() {
            let mut figures = String::new();
            for (cell, width) in row.figures.iter().zip(widths) {
                figures.push_str(&format!("  {cell:>width$}"));
            }
            let verdict = self.paint(row.paint, &row.verdict);
            if is_wide {
                let name = &row.name;
                self.out.push_str(&format!("{name:name_width$}{figures}  {verdict}\n"));
            } else {
                let name = self.paint(Paint::Bold, &row.name);
                self.out.push_str(&format!("{name}  {verdict}\n{}\n", figures.trim_end()));
            }
            let phase_index = rows[i].phase_index;
            if rows.get(i + 1).is_none_or(|next| next.phase_index != phase_index) {
                self.contradictions(record, phase_index);
            }
        }
        for (index, phase) in record.phases.iter().enumerate() {
            if !rows.iter().any(|r| r.phase_index == index) {
                let text = format!("{}: nothing was measured", phase.name);
                self.item(&text);
                self.contradictions(record, index);
            }
        }
        if record.phases.is_empty() {
            self.item("Nothing was measured.");
        }
        self.footnotes(&rows);
        self.levels(record);
    }

    /// What the levels beside the verdicts mean; only those that occur.
    fn levels(&mut self, record: &RunRecord) {
        let mut levels: Vec<EvidenceLevel> = record.phases.iter().map(|p| p.level).collect();
        levels.sort_unstable();
        levels.dedup();
        if levels.is_empty() {
            return;
        }
        let text: Vec<String> = levels.iter().map(|l| format!("{l} {}", level_meaning(*l))).collect();
        let mut out = String::new();
        wrap(&mut out, "", 2, &format!("Evidence reaches: {}.", text.join("; ")), self.style.width);
        let out = self.paint(Paint::Dim, out.trim_end());
        self.out.push('\n');
        self.out.push_str(&out);
        self.out.push('\n');
    }

    /// The reasons of a contradicted phase, directly below its figures.
    fn contradictions(&mut self, record: &RunRecord, phase_index: usize) {
        let phase = &record.phases[phase_index];
        if phase.verdict != Verdict::Contradicted {
            return;
        }
        let mut has_reason = false;
        for check in phase.checks.iter().filter(|c| c.outcome == CheckOutcome::Contradicted) {
            let text = format!("contradicted by {}: {}", check.name, check_sentence(check));
            self.sub_item(&text);
            has_reason = true;
        }
        if !has_reason {
            self.sub_item("contradicted; the record does not hold the check that says so");
        }
    }

    fn footnotes(&mut self, rows: &[Row]) {
        let missing: Vec<String> = crate::summary::QUANTILES
            .iter()
            .enumerate()
            .filter(|(i, _)| rows.iter().any(|r| r.quantiles[*i].is_none()))
            .filter_map(|(_, &q)| Some(format!("{} {}", percentile_name(q), units::format_count(minimum_count(q)?))))
            .collect();
        if !missing.is_empty() {
            self.out.push('\n');
            let text = format!("– too few I/Os for this percentile; at least: {}.", missing.join(", "));
            wrap(&mut self.out, "", 2, &text, self.style.width);
        }
        let paced: Vec<&str> = rows.iter().filter(|r| r.is_from_intended).map(|r| r.label.as_str()).collect();
        if !paced.is_empty() {
            self.out.push('\n');
            let text = format!("Latencies of {} count from the moment each I/O was due.", paced.join(", "));
            wrap(&mut self.out, "", 2, &text, self.style.width);
        }
    }

    /// The sentences of suspect checks, and of phases that did not end as planned.
    fn reasons(&mut self, record: &RunRecord) {
        let mut is_first = true;
        for phase in &record.phases {
            let suspect: Vec<&Check> = phase.checks.iter().filter(|c| c.outcome == CheckOutcome::Suspect).collect();
            let outcome = outcome_sentence(&phase.outcome);
            if suspect.is_empty() && outcome.is_none() && phase.verdict != Verdict::Suspect {
                continue;
            }
            if std::mem::take(&mut is_first) {
                self.heading("Reasons");
            }
            self.item(&format!("{} ({} {}):", phase.name, phase.verdict, phase.level));
            for check in &suspect {
                let text = format!("{}: {}", check.name, check_sentence(check));
                self.sub_item(&text);
            }
            if let Some(sentence) = outcome {
                self.sub_item(&sentence);
            } else if suspect.is_empty() {
                self.sub_item("the record does not hold the check that says so");
            }
        }
    }

    /// What no check could see, each once.
    fn not_seen(&mut self, record: &RunRecord) {
        let mut found: Vec<(&str, &str, Vec<&str>)> = Vec::new();
        for phase in &record.phases {
            for check in phase.checks.iter().filter(|c| c.outcome == CheckOutcome::NotSeen) {
                match found.iter_mut().find(|f| f.0 == check.name && f.1 == check.sentence) {
                    Some(entry) => entry.2.push(&phase.name),
                    None => found.push((&check.name, &check.sentence, vec![&phase.name])),
                }
            }
        }
        if found.is_empty() {
            return;
        }
        self.heading("Not seen");
        for (name, sentence, phases) in found {
            let of =
                if phases.len() == record.phases.len() { String::new() } else { format!(" ({})", phases.join(", ")) };
            self.item(&format!("{name}{of}: {sentence}"));
        }
    }

    fn errors(&mut self, record: &RunRecord) {
        let jobs = || record.phases.iter().flat_map(|p| &p.jobs);
        if jobs().any(|j| !j.failures.is_empty()) {
            self.heading("Failed I/Os");
        }
        for job in jobs() {
            for failure in &job.failures {
                let what = if failure.errno == 0 {
                    format!(
                        "{} short, the first returned {} bytes",
                        counted(failure.count, &failure.op.to_string()),
                        units::format_count(failure.returned)
                    )
                } else {
                    format!("{} failed (os error {})", counted(failure.count, &failure.op.to_string()), failure.errno)
                };
                let text = format!(
                    "{}: {what}; the first: {}, offset {}, length {}, buffer at {:#x}",
                    job.name,
                    failure.path,
                    units::format_count(failure.offset),
                    units::format_count(failure.length),
                    failure.address,
                );
                self.item(&text);
                self.sub_item(&failure.explanation);
            }
        }
        if jobs().any(|j| j.verified_block_count > 0 || j.verify_failure_count > 0) {
            self.heading("Verification");
        }
        for job in jobs().filter(|j| j.verified_block_count > 0 || j.verify_failure_count > 0) {
            let text = format!(
                "{}: {} of {} differ from what was written",
                job.name,
                units::format_count(job.verify_failure_count),
                counted(job.verified_block_count, "block"),
            );
            self.item(&text);
            for failure in &job.verify_failures {
                let text = format!(
                    "{}, offset {}, length {}: expected {}; found {}",
                    failure.path,
                    units::format_count(failure.offset),
                    units::format_count(failure.length),
                    failure.expected,
                    failure.found,
                );
                self.sub_item(&text);
            }
            let shown = job.verify_failures.len() as u64;
            if job.verify_failure_count > shown {
                self.sub_item(&format!("and {} more", units::format_count(job.verify_failure_count - shown)));
            }
        }
    }

    /// How each job did it; jobs that did it alike share a line.
    fn jobs(&mut self, record: &RunRecord) {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for (index, phase) in record.phases.iter().enumerate() {
            for job in &phase.jobs {
                let Some(plan) = plan_of(record, index, job) else { continue };
                let shape = shape_of(plan);
                let name = if shape == job.name { shape } else { format!("{} ({shape})", job.name) };
                let manner = manner_of(plan);
                match groups.iter_mut().find(|g| g.0 == manner) {
                    Some(group) => group.1.push(name),
                    None => groups.push((manner, vec![name])),
                }
            }
        }
        if groups.is_empty() {
            return;
        }
        self.heading("How");
        for (manner, names) in groups {
            self.item(&format!("{}: {manner}", names.join(", ")));
        }
    }

    fn notes(&mut self, record: &RunRecord) {
        let mut notes: Vec<String> = record.plan.notes.clone();
        for job in record.phases.iter().flat_map(|p| &p.jobs) {
            for note in &job.engine_notes {
                notes.push(format!("{}: {note}", job.name));
            }
            if job.backlog_count > 0 {
                let due = counted(job.backlog_count, "I/O");
                notes
                    .push(format!("{}: {due} due but not issued when the job ended; the pace was not kept.", job.name));
            }
        }
        if notes.is_empty() {
            return;
        }
        self.heading("Notes");
        for note in notes {
            self.item(&note);
        }
    }

    fn ruler(&mut self, record: &RunRecord) {
        let ruler = &record.ruler;
        self.heading("The tool itself, here");
        self.item(&format!(
            "the clock ({}) costs {} ns a reading and steps by {} ns; the null engine takes {} ns of CPU an I/O and \
             reports a median of {} ns: nothing shorter can be told apart",
            ruler.clock,
            figure(ruler.clock_cost_ns),
            figure(ruler.clock_resolution_ns),
            figure(ruler.null_cpu_ns_per_io),
            units::format_count(ruler.null_latency_ns_p50),
        ));
        self.item(&format!("{} {}, {} build", record.tool.name, record.tool.version, record.tool.build));
        if record.tool.build != "release" {
            self.item("These figures measure an unoptimised build of the tool; use `cargo run --release`.");
        }
    }

    fn outcome(&mut self, record: &RunRecord) {
        if let Some(sentence) = outcome_sentence(&record.outcome) {
            let mut text = String::new();
            wrap(&mut text, "", 2, &sentence, self.style.width);
            let text = self.paint(Paint::Bad, text.trim_end());
            self.out.push('\n');
            self.out.push_str(&text);
            self.out.push('\n');
        }
    }
}

/// Figures of a row.
const FIGURES: usize = 7;

/// The unit of all latencies of a table.
#[derive(Clone, Copy)]
struct Scale {
    unit: &'static str,
    ns: f64,
}

impl Scale {
    /// µs, unless a median is below one (then ns), or everything is so long that ms reads better.
    fn of(rows: &[Row]) -> Self {
        let medians = || rows.iter().filter_map(|r| r.quantiles[0]).map(|q| q.value_ns);
        let longest = rows.iter().filter_map(|r| r.latency_ns_max).max().unwrap_or(0);
        let shortest = medians().min().unwrap_or(longest);
        if shortest < 1_000 && longest < 100_000_000 {
            Scale { unit: "ns", ns: 1.0 }
        } else if longest >= 10_000_000_000 || shortest >= 10_000_000 {
            Scale { unit: "ms", ns: 1e6 }
        } else {
            Scale { unit: "µs", ns: 1e3 }
        }
    }

    fn show(self, ns: u64) -> String {
        if self.ns == 1.0 { units::format_count(ns) } else { figure(ns as f64 / self.ns) }
    }
}

/// A row of the table, as text.
struct Cells {
    name: String,
    figures: [String; FIGURES],
    verdict: String,
    paint: Paint,
}

impl Cells {
    fn of(row: &Row, record: &RunRecord, scale: Scale) -> Self {
        let phase = &record.phases[row.phase_index];
        let number = |value: Option<f64>| value.map_or_else(String::new, figure);
        let [p50, p99, p999] = row.quantiles.map(|q| match q {
            Some(q) => scale.show(q.value_ns),
            None => "–".to_owned(),
        });
        let clipped = row.histogram(record).is_some_and(|h: &Histogram| h.overflow_count() > 0);
        Cells {
            name: clean(&row.label).into_owned(),
            figures: [
                number(row.bytes_per_s.map(|b| b / (1u64 << 20) as f64)),
                match row.ios_per_s {
                    Some(rate) if rate >= 99.95 => units::format_count(rate.round() as u64),
                    other => number(other),
                },
                p50,
                p99,
                p999,
                row.latency_ns_max.map_or_else(String::new, |ns| scale.show(ns)),
                number(row.cpu_ns_per_io.map(|ns| ns / 1e3)),
            ],
            verdict: {
                let verdict = match phase.verdict {
                    Verdict::Contradicted => "CONTRADICTED".to_owned(),
                    other => other.to_string(),
                };
                format!("{verdict} {}{}", phase.level, if clipped { ", over 73 min" } else { "" })
            },
            paint: Paint::of(phase.verdict),
        }
    }
}

/// What a level's witnesses are, in a few words.
pub(crate) fn level_meaning(level: EvidenceLevel) -> &'static str {
    match level {
        EvidenceLevel::E0 => "results of the calls only",
        EvidenceLevel::E1 => "the disk's counters",
        EvidenceLevel::E2 => "the disk's counters, the kernel's by process and by file",
        EvidenceLevel::E3 => "block requests traced by their place on the disk",
        EvidenceLevel::E4 => "verified through a loss of power",
    }
}

/// `p50`, `p99.9`.
pub(crate) fn percentile_name(q: f64) -> String {
    // 0.999 · 100 is 99.9 with an error in the last binary digit; six decimals are plenty.
    let text = format!("{:.6}", q * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// What a check says, with the two figures it compared.
pub(crate) fn check_sentence(check: &Check) -> String {
    match (check.expected.is_empty(), check.found.is_empty()) {
        (false, false) => format!("{} (expected {}; found {})", check.sentence, check.expected, check.found),
        _ => check.sentence.clone(),
    }
}

/// A fact's value as text, or that it is not known.
pub(crate) fn known<T>(fact: &Fact<T>, show: impl Fn(&T) -> String) -> String {
    fact.value.as_ref().map_or_else(|| NOT_KNOWN.to_owned(), show)
}

fn named(name: &str, fact: &Fact<String>) -> String {
    match &fact.value {
        Some(value) => value.clone(),
        None => format!("{name} {NOT_KNOWN}"),
    }
}

/// How the run ended, if not as planned.
pub(crate) fn outcome_sentence(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Complete => None,
        Outcome::Interrupted { signal } => {
            Some(format!("INTERRUPTED by {signal}: only what was measured until then is here."))
        }
        Outcome::Failed { reason } => Some(format!("FAILED: {reason}")),
    }
}

/// Whether direct I/O can be had, what it needs, and who says so.
pub(crate) fn direct_sentence(target: &TargetFacts) -> String {
    let direct = &target.direct;
    let bytes = |fact: &Fact<u32>| known(fact, |b| units::format_bytes(u64::from(*b)));
    let mut text = match direct.support {
        DirectSupport::Direct => "offered".to_owned(),
        DirectSupport::SilentlyBuffered => "accepted, and silently buffered".to_owned(),
        DirectSupport::Refused => "refused".to_owned(),
        DirectSupport::Unknown => "nobody says whether it is offered".to_owned(),
    };
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
            text.push_str(&format!(", says {}", direct.write_alignment_bytes.source));
        }
    }
    text
}
