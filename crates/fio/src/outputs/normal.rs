//! fio's text for people, as scripts search it: `read: IOPS=…, BW=…`, ` lat (usec): min=…, avg=…`,
//! `READ: bw=…`.
//!
//! A number has four significant digits and a decimal or binary prefix. Latencies are nanoseconds until
//! all of them are large. A line `trueio` below each job has the verdict.

use super::buckets::{deviation_ns, percentiles};
use super::entry::{Document, Entry, Figures, LATENCY_LIMITS, Samples, Target};
use super::json::{ctime, outcome};
use super::steady::{self, mean};
use std::fmt::Write as _;
use trueio_model::{
    AnsweredPhase, CriterionPlan, CriterionSpan, CriterionVariable, Histogram, IoPriority, OpKind, Outcome, Unified,
};
use trueio_report::clean;

const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// Renders the text.
pub(super) fn normal(document: &Document<'_>) -> String {
    let mut text = String::new();
    // As in fio: an empty line before the first one, none between them.
    text.push('\n');
    for entry in &document.entries {
        job(&mut text, document, entry);
    }
    let mut group = None;
    for entry in &document.entries {
        if group != Some(entry.group) {
            group = Some(entry.group);
            run_status(&mut text, document, entry.group);
        }
    }
    if !document.disks.is_empty() && document.shows_disks() {
        text.push_str("\nDisk stats (read/write):\n");
        for disk in &document.disks {
            let c = &disk.counters;
            let _ = writeln!(
                text,
                "  {}: ios={}/{}, sectors={}/{}, merge={}/{}, ticks={}/{}, in_queue={}, util={:.2}%",
                clean(&disk.name),
                c.read_count,
                c.write_count,
                c.read_bytes / 512,
                c.write_bytes / 512,
                c.read_merge_count,
                c.write_merge_count,
                c.read_ms,
                c.write_ms,
                c.weighted_ms,
                disk.util_percent
            );
        }
    }
    if let Some(idleness) = &document.options.idleness {
        let _ = writeln!(text, "\nCPU idleness:\n  system: {:.2}%", idleness.percent);
        if !idleness.of_each.is_empty() {
            let each: Vec<String> = idleness.of_each.iter().map(|(_, percent)| format!("{percent:.2}%")).collect();
            let _ = writeln!(text, "  percpu: {}", each.join(", "));
        }
        text.push_str(&idleness.unit_line());
    }
    if document.record.outcome != Outcome::Complete && !document.is_interim {
        let (how, reason) = outcome(&document.record.outcome);
        let _ = writeln!(text, "\ntrueio: the run was {how}: {}", clean(reason.unwrap_or("")));
    }
    for warning in &document.options.warnings {
        let _ = writeln!(text, "trueio: {}", clean(warning));
    }
    text
}

/// The block of one job, or of all together.
pub(super) fn job(text: &mut String, document: &Document<'_>, entry: &Entry<'_>) {
    let _ = writeln!(
        text,
        "{}: (groupid={}, jobs={}): err={:2}{}: pid={}: {}",
        clean(entry.name),
        entry.group,
        entry.workers,
        entry.error,
        if entry.error == 0 { String::new() } else { format!(" (error={})", meaning(entry.error)) },
        // Each server has its own process.
        document.server.map_or(document.options.pid, |_| 0),
        ctime(document.ended_unix_ms / 1000)
    );
    if let Some(description) = document.description(entry.first).filter(|_| !entry.is_sum) {
        let _ = writeln!(text, "  Description  : [{}]", clean(description));
    }
    for (name, figures) in entry.reported() {
        // Writes that were only compared took no time.
        if figures.io_count > 0 && figures.elapsed_ns > 0 {
            direction(text, entry, Scale::of(document, entry.group), name, figures);
        }
    }
    latency_classes(text, entry);
    if !entry.sync.lat.is_empty() {
        text.push_str("  fsync/fdatasync/sync_file_range/syncfs:\n");
        latency(text, "sync", &entry.sync.lat);
        percentile_table(text, "sync", &entry.sync.lat, &entry.plan.output.percentiles);
    }
    let threads = &entry.threads;
    let percent = |ns: u64| if threads.elapsed_ns > 0 { ns as f64 * 100.0 / threads.elapsed_ns as f64 } else { 0.0 };
    let _ = writeln!(
        text,
        "  cpu          : usr={:.2}%, sys={:.2}%, ctx={}, majf={}, minf={}",
        percent(threads.user_ns),
        percent(threads.system_ns),
        threads.context_switch_count,
        threads.major_fault_count,
        threads.minor_fault_count
    );
    shares(text, "  IO depths    : ", &DEPTHS, &entry.depth);
    shares(text, "     submit    : ", &BATCHES, &entry.submit);
    shares(text, "     complete  : ", &BATCHES, &entry.complete);
    let [read, write, trim] = &entry.ops;
    let _ = writeln!(
        text,
        "     issued rwts: total={},{},{},{} short={},{},{},0 dropped=0,0,0,0",
        read.io_count,
        write.io_count,
        trim.io_count,
        entry.sync.io_count,
        read.short_count,
        write.short_count,
        trim.short_count
    );
    if entry.reports_failures {
        let (count, first) = (entry.failure_count, entry.first_error);
        let _ = writeln!(text, "     errors    : total={count}, first_error={first}/<{}>", meaning(first));
    }
    if entry.is_sum {
        return;
    }
    let Target { target_ns, window_us, percent, depth } = entry.latency_target(document.given_depth(entry.first));
    let (target, window) = (scaled(target_ns), scaled(window_us.saturating_mul(1_000)));
    let _ =
        writeln!(text, "     latency   : target={target}, window={window}, percentile={percent:.2}%, depth={depth}");
    if let (Some(plan), Some(record)) = (entry.criterion_plan, entry.criterion) {
        let scale = Scale::of(document, entry.group);
        let spans = steady::window(&plan, Some(record));
        let bytes_per_s = mean(&spans, |span| span.bytes_per_s);
        let variable = plan.criterion.name().replace("_slope", "");
        let _ = writeln!(
            text,
            "  steadystate  : attained={}, bw={} ({}), iops={}{}, {variable} {}={}",
            if record.is_attained { "yes" } else { "no" },
            scale.rate(bytes_per_s),
            scale.other_rate(bytes_per_s),
            short(mean(&spans, |span| span.ios_per_s), scale.digits, false),
            steady_latency(&plan, &spans, scale.digits),
            if plan.criterion.is_slope { "slope" } else { "mean dev" },
            steady::value(&plan, record.value, 3)
        );
    }
    evidence(text, document, entry);
}

/// The mean latency of the window, if the steady-state rule is about latency.
fn steady_latency(plan: &CriterionPlan, spans: &[CriterionSpan], digits: usize) -> String {
    if plan.criterion.variable != CriterionVariable::Latency {
        return String::new();
    }
    let mean_ns = mean(spans, |span| span.latency_ns);
    let (unit, ns) = unit(mean_ns, mean_ns, f64::INFINITY);
    format!(", lat={}{unit}", short(mean_ns / ns, digits, false))
}

/// Returns the system's text for an error number: `No space left on device`.
fn meaning(errno: i32) -> String {
    if errno == 0 {
        return "Success".to_owned();
    }
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Formats a time in the unit in which it is short: `10.00ms`.
fn scaled(ns: u64) -> String {
    let (by, unit) = match ns {
        2_000_000_000.. => (1e9, "s"),
        2_000_000.. => (1e6, "ms"),
        2_000.. => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{:.2}{unit}", ns as f64 / by)
}

/// The verdict of the job's phase, and its reasons.
fn evidence(text: &mut String, document: &Document<'_>, entry: &Entry<'_>) {
    let is_interim = document.is_interim;
    let Some(phase) = entry.phase else {
        text.push_str(if is_interim { "     trueio    : has not begun\n" } else { "     trueio    : did not run\n" });
        return;
    };
    if is_interim && document.record.phases.last().is_some_and(|last| std::ptr::eq(last, phase)) {
        text.push_str("     trueio    : not judged yet\n");
        return;
    }
    let judgement = AnsweredPhase::of(phase);
    let _ = write!(text, "     trueio    : {} {}", super::word(judgement.verdict), judgement.level);
    if entry.plan.is_paced() {
        text.push_str(", lat counts from the intended start");
    }
    if let Some((hostname, _)) = document.server {
        let _ = write!(text, ", at {}", clean(hostname));
    }
    if let Some((names, a_second)) = entry.names() {
        let _ = write!(text, ", {names} names, {} a second", short(a_second, 4, false));
    }
    text.push('\n');
    for found in &judgement.objections {
        let _ = writeln!(text, "                 {}: {}", clean(&found.check), clean(&found.sentence));
    }
}

fn direction(text: &mut String, entry: &Entry<'_>, scale: Scale, name: &str, figures: &Figures) {
    let bytes_per_s = figures.bytes_per_s();
    let _ = writeln!(
        text,
        "  {name}: IOPS={}, BW={} ({})({}B/{}msec){}",
        short(figures.ios_per_s(), scale.digits, false),
        scale.rate(bytes_per_s),
        scale.other_rate(bytes_per_s),
        short(figures.byte_count as f64, scale.digits, scale.is_binary),
        figures.runtime_ms(),
        match (name, entry.zone_resets) {
            ("write", Some(count)) => format!("; {count} zone resets"),
            _ => String::new(),
        }
    );
    for (name, histogram) in [("slat", &figures.slat), ("clat", &figures.clat), (" lat", &figures.lat)] {
        if !histogram.is_empty() {
            latency(text, name, histogram);
        }
    }
    let is_total = entry.plan.output.lat_percentiles;
    let of_priorities = figures.by_priority(is_total);
    let word = if is_total { "lat" } else { "clat" };
    let name_of = |priority: IoPriority| format!("prio {}/{}/{}", priority.class, priority.level, priority.hint);
    for (priority, histogram) in &of_priorities {
        latency(text, &format!("{word} {}", name_of(*priority)), histogram);
    }
    let percents = &entry.plan.output.percentiles;
    let histograms = [("slat", &figures.slat), ("clat", &figures.clat), ("lat", &figures.lat)];
    for ((name, histogram), is_wanted) in histograms.into_iter().zip(entry.percentiles()) {
        if is_wanted && !histogram.is_empty() {
            percentile_table(text, name, histogram, percents);
        }
    }
    let [_, clat, lat] = entry.percentiles();
    let all = of_priorities.iter().map(|(_, histogram)| histogram.count()).fold(0, u64::saturating_add);
    for (priority, histogram) in of_priorities.iter().filter(|_| clat || lat) {
        let percent = histogram.count() as f64 * 100.0 / all as f64;
        let name = format!("{} {} ({percent:.2}% of IOs)", word, name_of(*priority));
        percentile_table(text, &name, histogram, percents);
    }
    if figures.bw.count > 0 {
        let bw = &figures.bw;
        let (unit, by) = scale.kibibytes(bw.mean);
        let _ = writeln!(
            text,
            "   bw ({unit:>5}/s): min={:5.0}, max={:5.0}, per={:.2}%, avg={:5.2}, stdev={:5.2}, samples={}",
            (bw.min / by).trunc(),
            (bw.max / by).trunc(),
            figures.share_percent(),
            bw.mean / by,
            bw.dev / by,
            bw.count
        );
    }
    if figures.iops.count > 0 {
        let Samples { min, max, mean, dev, count } = &figures.iops;
        let _ = writeln!(
            text,
            "   iops        : min={:5.0}, max={:5.0}, avg={mean:5.2}, stdev={dev:5.2}, samples={count}",
            min.trunc(),
            max.trunc()
        );
    }
}

/// Returns the unit in which all values are short enough to read: its name and its length in nanoseconds.
fn unit(min: f64, max: f64, deviation: f64) -> (&'static str, f64) {
    if min > 2e6 && max > 99_999_999.0 && deviation > 1e6 {
        ("msec", 1e6)
    } else if min > 2e3 && max > 99_999.0 && deviation > 1e3 {
        ("usec", 1e3)
    } else {
        ("nsec", 1.0)
    }
}

fn latency(text: &mut String, name: &str, histogram: &Histogram) {
    let (min, max) = (histogram.min_ns().unwrap_or(0) as f64, histogram.max_ns().unwrap_or(0) as f64);
    let deviation = deviation_ns(histogram);
    let (unit, ns) = unit(min, max, deviation);
    let _ = writeln!(
        text,
        "    {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        short((min / ns).trunc(), 6, false),
        short((max / ns).trunc(), 6, false),
        histogram.mean_ns().unwrap_or(0.0) / ns,
        deviation / ns
    );
}

fn percentile_table(text: &mut String, name: &str, histogram: &Histogram, percents: &[f64]) {
    let found = percentiles(histogram, percents);
    let least = found.iter().map(|(_, ns)| *ns).min().unwrap_or(0) as f64;
    let most = found.iter().map(|(_, ns)| *ns).max().unwrap_or(0) as f64;
    let (unit, ns) = unit(least, most, f64::INFINITY);
    let values: Vec<String> = found.iter().map(|(_, value)| format!("{:.0}", *value as f64 / ns)).collect();
    let width = values.iter().map(String::len).max().unwrap_or(0).max(5);
    let per_line = (73 / (width + 13)).max(1);
    let decimals = percents.iter().map(|percent| decimals_of(*percent)).max().unwrap_or(2).max(2);
    let _ = writeln!(text, "    {name} percentiles ({unit}):");
    for (position, ((percent, _), value)) in found.iter().zip(&values).enumerate() {
        if position % per_line == 0 {
            text.push_str("     |");
        }
        let percent_width = decimals + 3;
        let _ = write!(text, " {percent:>percent_width$.decimals$}th=[{value:>width$}]");
        let is_last = position + 1 == found.len();
        if !is_last {
            text.push(',');
        }
        if is_last || (position + 1) % per_line == 0 {
            text.push('\n');
        }
    }
}

/// Returns the number of decimal places that a percentile needs, at most six.
fn decimals_of(percent: f64) -> usize {
    let text = format!("{percent:.6}");
    text.trim_end_matches('0').split_once('.').map_or(0, |(_, digits)| digits.len())
}

/// The classes that contain latencies, one line for each unit.
fn latency_classes(text: &mut String, entry: &Entry<'_>) {
    let limits = LATENCY_LIMITS.map(|limit| limit.to_string());
    let labels: Vec<&str> = limits.iter().map(String::as_str).chain(["2000", ">=2000"]).collect();
    for (unit, range) in [("nsec", 0..10), ("usec", 10..20), ("msec", 20..32)] {
        let found: Vec<(&str, f64)> = labels
            .iter()
            .zip(&entry.latency[range])
            .filter(|(_, share)| **share > 0.0)
            .map(|(label, share)| (*label, *share))
            .collect();
        for line in found.chunks(5) {
            let words: Vec<String> = line.iter().map(|(label, share)| format!("{label}={share:.2}%")).collect();
            let _ = writeln!(text, "  lat ({unit})   : {}", words.join(", "));
        }
    }
}

fn shares(text: &mut String, head: &str, labels: &[&str; 7], shares: &[f64; 7]) {
    let words: Vec<String> = labels.iter().zip(shares).map(|(label, share)| format!("{label}={share:.1}%")).collect();
    let _ = writeln!(text, "{head}{}", words.join(", "));
}

fn run_status(text: &mut String, document: &Document<'_>, group: u32) {
    let scale = Scale::of(document, group);
    let _ = writeln!(text, "\nRun status group {group} (all jobs):");
    let entries: Vec<&Entry<'_>> = document.entries.iter().filter(|entry| entry.group == group).collect();
    const ALL: [(&str, usize); 4] = [("READ", 0), ("WRITE", 1), ("TRIM", 2), ("MIXED", 3)];
    let unified = entries.first().map_or(Unified::No, |entry| entry.plan.output.unified);
    let directions = match unified {
        Unified::No => &ALL[..3],
        Unified::Both => &ALL[..],
        Unified::Mixed => &ALL[3..],
    };
    for (name, op) in directions {
        let of: Vec<&Figures> = entries
            .iter()
            .filter_map(|entry| entry.ops.get(*op).or(entry.mixed.as_ref()))
            .filter(|figures| figures.io_count > 0 && figures.elapsed_ns > 0)
            .collect();
        if of.is_empty() {
            continue;
        }
        let least = of.iter().map(|f| f.bytes_per_s()).fold(f64::INFINITY, f64::min);
        let most = of.iter().map(|f| f.bytes_per_s()).fold(0.0, f64::max);
        let bytes = of.iter().map(|f| f.byte_count).fold(0, u64::saturating_add) as f64;
        let shortest = of.iter().map(|f| f.runtime_ms()).min().unwrap_or(0);
        let longest = of.iter().map(|f| f.runtime_ms()).max().unwrap_or(0);
        let group = of[0].group_bytes_per_s;
        let _ = writeln!(
            text,
            "{name:>7}: bw={} ({}), {}-{} ({}-{}), io={}B ({}B), run={shortest}-{longest}msec",
            scale.rate(group),
            scale.other_rate(group),
            scale.rate(least),
            scale.rate(most),
            scale.other_rate(least),
            scale.other_rate(most),
            short(bytes, scale.digits, scale.is_binary),
            short(bytes, scale.digits, !scale.is_binary)
        );
    }
}

/// How rates are written: `significant_figures`, `unit_base` and `kb_base` of the jobs.
#[derive(Clone, Copy)]
struct Scale {
    digits: usize,
    is_bits: bool,
    /// Binary prefixes come first, decimal ones in parentheses; the other way round with `kb_base=1000`.
    is_binary: bool,
}

impl Scale {
    fn of(document: &Document<'_>, group: u32) -> Self {
        Self {
            digits: document.number_of(group, "significant_figures").map_or(4, |n| n.clamp(1, 10) as usize),
            is_bits: document.number_of(group, "unit_base") == Some(1),
            is_binary: document.number_of(group, "kb_base") != Some(1000),
        }
    }

    /// `7969MiB/s`; with `unit_base=1` bits: `66.8Gbit/s`.
    fn rate(self, bytes_per_s: f64) -> String {
        if self.is_bits {
            return format!("{}bit/s", short(bytes_per_s * 8.0, self.digits, self.is_binary));
        }
        format!("{}B/s", short(bytes_per_s, self.digits, self.is_binary))
    }

    /// The same with the other prefixes.
    fn other_rate(self, bytes_per_s: f64) -> String {
        Self { is_binary: !self.is_binary, ..self }.rate(bytes_per_s)
    }

    /// The unit of bandwidth over time, and how many KiB it is.
    fn kibibytes(self, mean_kib: f64) -> (&'static str, f64) {
        let kilo = if self.is_binary { 1024.0 } else { 1000.0 };
        let bits = if self.is_bits { 8.0 } else { 1.0 };
        if mean_kib * bits > kilo * kilo {
            return (if self.is_bits { "Mibit" } else { "MiB" }, kilo / bits);
        }
        let unit = match (self.is_binary, self.is_bits) {
            (true, true) => "Kibit",
            (true, false) => "KiB",
            (false, true) => "kbit",
            (false, false) => "kB",
        };
        (unit, 1.0 / bits)
    }
}

/// A number in at most `digits` digits and a prefix: `54.2k`, `7969Mi`.
fn short(value: f64, digits: usize, is_binary: bool) -> String {
    const PREFIXES: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    let base = if is_binary { 1024.0 } else { 1000.0 };
    let limit = 10f64.powi(digits as i32);
    let mut value = if value.is_finite() { value.max(0.0) } else { 0.0 };
    if value.trunc() < limit {
        return format!("{}", value.trunc());
    }
    let mut power = 0;
    while value.round() >= limit && power < PREFIXES.len() {
        value /= base;
        power += 1;
    }
    let whole = format!("{}", value.trunc()).len();
    let decimals = digits.saturating_sub(whole + 1);
    let prefix = PREFIXES[power.max(1) - 1];
    let i = if is_binary { "i" } else { "" };
    // Binary thousands are written with a capital letter.
    let prefix = if is_binary { prefix.to_uppercase() } else { prefix.to_owned() };
    format!("{value:.decimals$}{prefix}{i}")
}

/// Returns the line that fio prints for a job before it starts.
pub(super) fn banner(record: &trueio_model::Plan, index: usize) -> Option<String> {
    let job = record.jobs.get(index)?;
    let range = |sizes: &trueio_model::BlockSizes| {
        let bytes = |n: u64| format!("{}B", short(n as f64, 4, true));
        // Metadata operations have no size, but fio counts them in blocks.
        let of_names = job.output.names.map(|names| (names.block_bytes, names.block_bytes));
        let (least, most) = of_names.unwrap_or((sizes.min_bytes(), sizes.max_bytes()));
        format!("{}-{}", bytes(least), bytes(most))
    };
    let rand = if job.pattern.order == trueio_model::Order::Sequential { "" } else { "rand" };
    let rw = match job.pattern.mix {
        trueio_model::OpMix::Only(OpKind::Read) => "read",
        trueio_model::OpMix::Only(OpKind::Write) if job.pattern.steps.trims_first => "trimwrite",
        trueio_model::OpMix::Only(OpKind::Write) => "write",
        trueio_model::OpMix::Only(_) => "trim",
        trueio_model::OpMix::ReadWrite { .. } => "rw",
    };
    Some(format!(
        "{}: (g={}): rw={rand}{rw}, bs=(R) {}, (W) {}, (T) {}, ioengine={}, iodepth={}",
        clean(&job.name),
        job.phase,
        range(&job.pattern.read_sizes),
        range(&job.pattern.write_sizes),
        range(&job.pattern.trim_sizes),
        job.engine.name(),
        job.queue.depth
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_and_a_prefix_as_fio_writes_them() {
        for (value, is_binary, text) in [
            (8_355_840_000.0, true, "7969Mi"),
            (8_355_840_000.0, false, "8356M"),
            (33_423_360.0, true, "31.9Mi"),
            (2_040_000.0, false, "2040k"),
            (54_219.9, false, "54.2k"),
            (979.4, false, "979"),
            (223_100.0, true, "218Ki"),
            (12_394_444.0, true, "11.8Mi"),
            (0.0, true, "0"),
        ] {
            assert_eq!(short(value, 4, is_binary), text, "{value}");
        }
        assert_eq!(short(24_561.0, 6, false), "24561");
    }
}
