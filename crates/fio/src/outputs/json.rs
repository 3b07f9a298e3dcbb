//! fio's JSON, and JSON with histograms.

use super::buckets::{deviation_ns, middles, percentiles};
use super::entry::{Document, Entry, Figures, LATENCY_LIMITS};
use super::servers::Clients;
use super::tree::{Object, Tree};
use trueio_model::{AnsweredPhase, Histogram, Objection, Outcome};

/// The value that fio writes for an unknown remaining time.
const ETA_UNKNOWN: u64 = 2_147_483_647;

/// The labels of depths.
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// The labels of batches.
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// Renders the document.
pub(super) fn json(document: &Document<'_>, has_bins: bool) -> String {
    root(document, has_bins).document()
}

/// Renders the document on one line.
pub(super) fn json_line(document: &Document<'_>) -> String {
    let mut root = root(document, false);
    root.first("type", if document.is_interim { "interim" } else { "result" });
    root.line()
}

/// Renders the document of a client with several servers: fio's layout, without `jobs`, and each entry with its server.
pub(super) fn clients(all: &Clients<'_, '_>, has_bins: bool) -> Object {
    let mut root = Object::new();
    let documents = || all.servers.iter().filter_map(|server| server.document.as_ref());
    let ended_unix_ms = documents().map(|document| document.ended_unix_ms).max().unwrap_or(0);
    root.text("fio version", &all.options.version);
    root.int("timestamp", ended_unix_ms / 1000);
    root.text("time", ctime(ended_unix_ms / 1000));
    let with_server = |mut object: Object, document: &Document<'_>| {
        if let Some((hostname, port)) = document.server {
            object.text("hostname", hostname).int("port", port);
        }
        object
    };
    let globals = |document: &Document<'_>| options(&document.global_options());
    match all.servers {
        [server] => {
            root.object("global options", server.document.as_ref().map(globals).unwrap_or_default());
        }
        _ => {
            // As in fio, only of the servers whose jobs have any.
            let having = documents().filter(|document| !document.global_options().is_empty());
            let each = having.map(|document| Tree::Object(with_server(globals(document), document)));
            root.list("global options", each.collect());
        }
    }
    let mut stats: Vec<Tree> = Vec::new();
    for document in documents() {
        stats.extend(document.entries.iter().map(|entry| Tree::Object(job(document, entry, has_bins))));
    }
    if let (Some(sum), Some(last)) = (all.sum, documents().next_back()) {
        stats.push(Tree::Object(job(last, sum, has_bins)));
    }
    root.list("client_stats", stats);
    let mut disks = Vec::new();
    for document in documents().filter(|document| document.shows_disks()) {
        for of in &document.disks {
            if let Tree::Object(object) = disk(of) {
                disks.push(Tree::Object(with_server(object, document)));
            }
        }
    }
    root.list("disk_util", disks);
    let each = all.servers.iter().map(|server| {
        let mut object = server.document.as_ref().map(evidence).unwrap_or_default();
        if let Some(reason) = server.problem {
            object.text("problem", reason);
        }
        object.text("hostname", server.hostname).int("port", server.port);
        Tree::Object(object)
    });
    let mut own = Object::new();
    own.list("clients", each.collect());
    root.object("trueio", own);
    root
}

fn root(document: &Document<'_>, has_bins: bool) -> Object {
    let mut root = Object::new();
    root.text("fio version", &document.options.version);
    root.int("timestamp", document.ended_unix_ms / 1000);
    root.int("timestamp_ms", document.ended_unix_ms);
    root.text("time", ctime(document.ended_unix_ms / 1000));
    let global_options = document.global_options();
    if !global_options.is_empty() {
        root.object("global options", options(&global_options));
    }
    root.list("jobs", document.entries.iter().map(|e| Tree::Object(job(document, e, has_bins))).collect());
    if !document.disks.is_empty() && document.shows_disks() {
        root.list("disk_util", document.disks.iter().map(disk).collect());
    }
    if let Some(idleness) = &document.options.idleness {
        let mut of = Object::new();
        of.float("system", idleness.percent);
        for (cpu, percent) in &idleness.of_each {
            of.float(&format!("cpu-{cpu}"), *percent);
        }
        of.float("unit_mean", idleness.unit_us.0).float("unit_stddev", idleness.unit_us.1);
        root.object("cpu_idleness", of);
    }
    root.object("trueio", evidence(document));
    root
}

/// Options as typed. If one was typed twice, the last value counts, as it does for readers of the duplicate keys that fio
/// writes.
fn options(options: &[(&str, &str)]) -> Object {
    let mut object = Object::new();
    for (position, (name, text)) in options.iter().enumerate() {
        if options[..position].iter().any(|(earlier, _)| earlier == name) {
            continue;
        }
        let last = options.iter().rev().find(|(other, _)| other == name);
        object.text(name, last.map_or(*text, |(_, text)| *text));
    }
    object
}

fn job(document: &Document<'_>, entry: &Entry<'_>, has_bins: bool) -> Object {
    let mut object = Object::new();
    object.text("jobname", entry.name);
    object.int("groupid", entry.group);
    object.int("job_start", entry.began_unix_ms);
    object.int("error", entry.error);
    // fio's clients do not print these two.
    if document.server.is_none() {
        object.int("eta", eta_s(document, entry));
        object.int("elapsed", document.elapsed_s);
    }
    if !entry.is_sum {
        object.object("job options", options(&document.options_of(entry.last)));
    }
    let wanted = Wanted { percents: &entry.plan.output.percentiles, has_bins };
    // As in fio: sync calls are between the directions and their sum, and are left out if only the sum is printed.
    let reported = entry.reported();
    for (name, figures) in reported.iter().filter(|(name, _)| *name != "mixed") {
        object.object(name, direction(entry, figures, wanted));
    }
    if reported.iter().any(|(name, _)| *name != "mixed") {
        let mut sync = Object::new();
        sync.int("total_ios", entry.sync.io_count);
        sync.object("lat_ns", latency(&entry.sync.lat, entry.has_sync_percentiles(), wanted));
        object.object("sync", sync);
    }
    for (name, figures) in reported.iter().filter(|(name, _)| *name == "mixed") {
        object.object(name, direction(entry, figures, wanted));
    }
    let threads = &entry.threads;
    object.int("job_runtime", threads.elapsed_ns / 1_000_000);
    let percent = |ns: u64| if threads.elapsed_ns > 0 { ns as f64 * 100.0 / threads.elapsed_ns as f64 } else { 0.0 };
    object.float("usr_cpu", percent(threads.user_ns));
    object.float("sys_cpu", percent(threads.system_ns));
    object.int("ctx", threads.context_switch_count);
    object.int("majf", threads.major_fault_count);
    object.int("minf", threads.minor_fault_count);
    object.object("iodepth_level", labelled(&DEPTHS, &entry.depth));
    object.object("iodepth_submit", labelled(&BATCHES, &entry.submit));
    object.object("iodepth_complete", labelled(&BATCHES, &entry.complete));
    let limits = LATENCY_LIMITS.map(|limit| limit.to_string());
    let labels: Vec<&str> = limits.iter().map(String::as_str).chain(["2000", ">=2000"]).collect();
    object.object("latency_ns", labelled(&labels, &entry.latency[..10]));
    object.object("latency_us", labelled(&labels, &entry.latency[10..20]));
    object.object("latency_ms", labelled(&labels, &entry.latency[20..]));
    if entry.reports_failures {
        object.int("total_err", entry.failure_count);
        object.int("first_error", entry.first_error);
    }
    if !entry.is_sum {
        alone(&mut object, document, entry);
    }
    if let Some(resets) = entry.zone_resets {
        object.int("zone_resets", resets);
    }
    if let Some((hostname, port)) = document.server {
        object.text("hostname", hostname).int("port", port);
    }
    object
}

/// Keys of a single job, not of a sum: latency target, steady state, description.
fn alone(object: &mut Object, document: &Document<'_>, entry: &Entry<'_>) {
    let target = entry.latency_target(document.given_depth(entry.first));
    object.int("latency_depth", target.depth);
    object.int("latency_target", target.target_ns);
    object.int("latency_target_ns", target.target_ns);
    object.float("latency_percentile", target.percent);
    object.int("latency_window", target.window_us);
    object.int("latency_window_us", target.window_us);
    if let Some(description) = document.description(entry.first) {
        object.text("desc", description);
    }
    if let Some(steady) = super::steady::object(entry) {
        object.object("steadystate", steady);
    }
}

fn labelled(labels: &[&str], shares: &[f64]) -> Object {
    let mut object = Object::new();
    for (label, share) in labels.iter().zip(shares) {
        object.float(label, *share);
    }
    object
}

/// Remaining seconds: 0 at the end. Until then fio's largest number marks an unknown time.
fn eta_s(document: &Document<'_>, entry: &Entry<'_>) -> u64 {
    let runs = document.record.phases.last().filter(|_| document.is_interim);
    let is_over = |phase| !runs.is_some_and(|last| std::ptr::eq(last, phase));
    match (document.is_interim, entry.phase) {
        (false, _) => 0,
        (true, Some(phase)) if is_over(phase) => 0,
        (true, Some(phase)) => {
            let left_ns = entry.plan.limits.runtime_ns.map(|ns| ns.saturating_sub(phase.elapsed_ns));
            left_ns.map_or(ETA_UNKNOWN, |ns| ns.div_ceil(1_000_000_000))
        }
        (true, None) => ETA_UNKNOWN,
    }
}

/// The keys of a histogram that has percentiles.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    percents: &'a [f64],
    has_bins: bool,
}

fn direction(entry: &Entry<'_>, figures: &Figures, wanted: Wanted<'_>) -> Object {
    let mut object = Object::new();
    let bytes_per_s = figures.bytes_per_s();
    object.int("io_bytes", figures.byte_count);
    object.int("io_kbytes", figures.byte_count >> 10);
    object.int("bw_bytes", bytes_per_s as u64);
    object.int("bw", bytes_per_s as u64 >> 10);
    object.float("iops", figures.ios_per_s());
    object.int("runtime", figures.runtime_ms());
    object.int("total_ios", figures.io_count);
    object.int("short_ios", figures.short_count);
    object.int("drop_ios", 0);
    let [slat, clat, lat] = entry.percentiles();
    object.object("slat_ns", latency(&figures.slat, slat, wanted));
    object.object("clat_ns", latency(&figures.clat, clat, wanted));
    object.object("lat_ns", latency(&figures.lat, lat, wanted));
    let is_total = entry.plan.output.lat_percentiles;
    let of_priorities = figures.by_priority(is_total);
    if !of_priorities.is_empty() {
        let each = of_priorities.into_iter().map(|(priority, histogram)| {
            let mut of = Object::new();
            of.int("prioclass", priority.class).int("prio", priority.level).int("priohint", priority.hint);
            of.object(if is_total { "lat_ns" } else { "clat_ns" }, latency(histogram, clat || lat, wanted));
            Tree::Object(of)
        });
        object.list("prios", each.collect());
    }
    let (bw, iops) = (&figures.bw, &figures.iops);
    object.int("bw_min", bw.min as u64).int("bw_max", bw.max as u64).float("bw_agg", figures.share_percent());
    object.float("bw_mean", bw.mean).float("bw_dev", bw.dev).int("bw_samples", bw.count);
    object.int("iops_min", iops.min as u64).int("iops_max", iops.max as u64).float("iops_mean", iops.mean);
    object.float("iops_stddev", iops.dev).int("iops_samples", iops.count);
    object
}

fn latency(histogram: &Histogram, has_percentiles: bool, wanted: Wanted<'_>) -> Object {
    let mut object = Object::new();
    object.int("min", histogram.min_ns().unwrap_or(0));
    object.int("max", histogram.max_ns().unwrap_or(0));
    object.float("mean", histogram.mean_ns().unwrap_or(0.0));
    object.float("stddev", deviation_ns(histogram));
    object.int("N", histogram.count());
    if !has_percentiles || histogram.is_empty() {
        return object;
    }
    let mut percents = Object::new();
    for (percent, ns) in percentiles(histogram, wanted.percents) {
        percents.int(&format!("{percent:.6}"), ns);
    }
    object.object("percentile", percents);
    if wanted.has_bins {
        let mut bins = Object::new();
        for (middle, count) in middles(histogram) {
            bins.int(&middle.to_string(), count);
        }
        object.object("bins", bins);
    }
    object
}

fn disk(disk: &super::entry::Disk) -> Tree {
    let counters = &disk.counters;
    let mut object = Object::new();
    object.text("name", &disk.name);
    object.int("read_ios", counters.read_count).int("write_ios", counters.write_count);
    object.int("read_sectors", counters.read_bytes / 512).int("write_sectors", counters.write_bytes / 512);
    object.int("read_merges", counters.read_merge_count).int("write_merges", counters.write_merge_count);
    object.int("read_ticks", counters.read_ms).int("write_ticks", counters.write_ms);
    object.int("in_queue", counters.weighted_ms).float("util", disk.util_percent);
    Tree::Object(object)
}

/// The key `trueio`, which fio does not have: the writer, the verdicts and the notes.
fn evidence(document: &Document<'_>) -> Object {
    let record = document.record;
    let mut object = Object::new();
    object.text("version", &record.tool.version).text("build", &record.tool.build).text("record", &record.id);
    let (how, reason) = outcome(&record.outcome);
    object.text("outcome", if document.is_interim { "running" } else { how });
    if let Some(reason) = reason {
        object.text("reason", reason);
    }
    let of_names = document.entries.iter().filter_map(|entry| {
        let (names, a_second) = entry.names()?;
        let mut of = Object::new();
        of.text("jobname", entry.name).int("names", names).float("names_per_s", a_second);
        Some(Tree::Object(of))
    });
    let of_names: Vec<Tree> = of_names.collect();
    if !of_names.is_empty() {
        object.list("names", of_names);
    }
    let mut phases = Vec::new();
    for (position, phase) in record.phases.iter().enumerate() {
        let mut of = Object::new();
        of.text("name", &phase.name);
        let is_running = document.is_interim && position + 1 == record.phases.len();
        let verdict = if is_running { "not judged yet".to_owned() } else { phase.verdict.to_string() };
        of.text("verdict", verdict).text("level", phase.level.to_string());
        let judgement = AnsweredPhase::of(phase);
        if !is_running {
            of.text("word", super::word(judgement.verdict)).text("words", &judgement.words);
        }
        let objection = |found: &Objection| {
            let mut of = Object::new();
            of.text("check", &found.check).text("outcome", found.outcome.to_string());
            of.text("cause", found.cause.to_string()).text("sentence", &found.sentence);
            Tree::Object(of)
        };
        of.list("objections", judgement.objections.iter().map(objection).collect());
        phases.push(Tree::Object(of));
    }
    object.list("phases", phases);
    let from: Vec<Tree> = document
        .entries
        .iter()
        .map(|entry| {
            let start = if entry.plan.is_paced() { "the intended start" } else { "the submission" };
            Tree::Text(start.to_owned())
        })
        .collect();
    object.list("lat_ns counts from", from);
    let engine_notes = record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.engine_notes);
    let warnings = document.options.warnings.iter().chain(&record.plan.notes).chain(engine_notes);
    object.list("warnings", warnings.map(|warning| Tree::Text(warning.clone())).collect());
    object
}

/// How the run ended, and why.
pub(super) fn outcome(outcome: &Outcome) -> (&'static str, Option<&str>) {
    match outcome {
        Outcome::Complete => ("complete", None),
        Outcome::Interrupted { signal } => ("interrupted", Some(signal)),
        Outcome::Failed { reason } => ("failed", Some(reason)),
    }
}

/// Formats a time as C's `ctime` does, in UTC: `Sun Nov 22 00:29:26 2026`.
pub(super) fn ctime(unix_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // A record may contain any value; `ctime` has no text for years after 9999.
    let unix_s = unix_s.min(253_402_300_799);
    let text = trueio_model::format_utc(unix_s);
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or("");
    let month = part(5..7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    let day: u32 = part(8..10).parse().unwrap_or(0);
    let week_day = DAYS[(unix_s / 86_400 % 7) as usize];
    format!("{week_day} {} {day:>2} {} {}", month.unwrap_or(&""), part(11..19), part(0..4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_format_of_ctime() {
        assert_eq!(ctime(1_795_197_326), "Fri Nov 20 17:55:26 2026");
        assert_eq!(ctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(ctime(u64::MAX).len(), 24);
    }
}
