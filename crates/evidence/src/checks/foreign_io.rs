//! Detects I/O of other programs on the same disks.
//!
//! - **Reads** the disks' counters over an idle span before the phase, and I/O in the other direction during it: a phase that only
//!   reads causes no writes, and direct writes cause no reads. As root also single requests.
//! - **Sees** programs that were active before, or whose I/O differs in kind from the job's; as root any program, with name, process,
//!   direction, disk and bytes ("about" marks extrapolated ones), also in the measured files and on the disk of a loop device's file.
//!   Kernel threads are named by what they do: "write-back of dirty pages, by dd (thread 812, which has ended, dirtied about 8 MiB of
//!   them)".
//! - **Misses** programs that start during the phase and do the same I/O as the job (as root: between windows; others' I/O in the other
//!   direction opens a window); who dirtied pages
//!   before or between windows; guests of the host or volumes of an array below the disk; on the disk of a loop device's file those
//!   that use the page cache or another loop device.
//! - **Thresholds**: in the baseline 8 requests, and requests or bytes per second above 5 % of the phase's, or the disk busy for 10 %
//!   of the time; in the other direction 10 % of ours, and 256 requests or 4 MiB. In the traced windows 8 requests or 1 MiB, and 5 % of
//!   all requests or bytes by others, or 10 % by kernel threads, if that can explain 1 % of the figure (their part of the bytes or of
//!   the time, whichever is smaller); 1 MiB of the measured files, and 5 % of the job's bytes there, dirtied by others; on the disk of
//!   a loop device's file 10 %, in flight for a quarter of the windows. Suspect. Three windows with 32 requests and less than that of
//!   others outweigh a busy baseline.
//! - **Cost**: the baseline's length, once per phase.
//! - **By hand**: run `dd if=/dev/zero of=neighbour bs=64k count=100000 oflag=direct` next to a measurement on the same disk, or
//!   without `oflag` and then `sync -f neighbour`.
//!
//! Where counters show writes of a phase that only reads, any part of the measured files that others dirtied counts. Other ranks of the
//! run on this host are no other programs; counters do not separate them, so with them only traced requests count. Lost events prove
//! nothing, so no window with one outweighs the baseline.

use crate::facts::{PhaseFacts, finding, not_applicable, not_seen};
use crate::trace::{WRITE_BACK, moved_words};
use trueio_model::units::{format_bandwidth, format_bytes, format_count};
use trueio_model::{
    BelowTrace, Check, CheckOutcome, DeviceCounters, DeviceDelta, OpKind, RequestSum, TraceRecord, TracedProcess,
};

pub(crate) const NAME: &str = "foreign_io";

const BASELINE_REQUEST_COUNT_MIN: u64 = 8;
const RATE_SHARE_MAX: f64 = 0.05;
const BUSY_SHARE_MAX: f64 = 0.10;
const TRACED_REQUEST_COUNT_MIN: u64 = 8;
/// Fewer requests count, too, if they are large.
const TRACED_BYTES_MIN: u64 = 1 << 20;
const OTHERS_SHARE_MAX: f64 = 0.05;
const UNATTRIBUTED_SHARE_MAX: f64 = 0.10;
/// Requests that can explain a smaller part of the figure disturb nothing, however many they are.
const EXPLAINED_SHARE_MIN: f64 = 0.01;
const BELOW_SHARE_MAX: f64 = 0.10;
/// A process that moved a smaller part of what others did is not to be stopped.
const CULPRIT_SHARE_MIN: f64 = 0.1;
const BELOW_BUSY_SHARE_MAX: f64 = 0.25;
/// The minimum trace that can stand for a whole phase.
const WINDOW_COUNT_MIN: u64 = 3;
const ALL_COUNT_MIN: u64 = 32;
const OTHER_WAY_SHARE_MAX: f64 = 0.10;
const OTHER_WAY_REQUEST_COUNT_MIN: u64 = 256;
const OTHER_WAY_BYTES_MIN: u64 = 4 << 20;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    if !facts.jobs.iter().any(|job| job.engine.touches_files()) {
        return not_applicable(NAME, facts.why_no_calls());
    }
    if let Some(why) = facts.why_no_counters() {
        return not_seen(NAME, facts.counter_files(), why);
    }
    let devices = facts.devices();
    if devices.iter().any(|delta| delta.baseline_ns == 0) {
        let sentence = "No idle baseline was taken, so the I/O of other processes cannot be separated from this \
                        phase's.";
        return not_seen(NAME, facts.counter_files(), sentence);
    }
    let report = |outcome, found: String, sentence: String| {
        finding(NAME, outcome, facts.counter_files(), "no other I/O", found, sentence)
    };
    let disturbed_by = |found: Disturbance, culprits: Vec<String>| {
        report(CheckOutcome::Suspect, found.found, found.sentence)
            .with_brief(found.brief)
            .explaining(Some(found.share))
            .with_culprits(culprits)
    };
    let disturbed = |found: Disturbance| disturbed_by(found, culprits_of(facts, None));
    let trace = facts.traced().ok();
    if let Some(found) = trace.and_then(|trace| others_traced(facts, trace)) {
        return disturbed(found);
    }
    if let Some((found, culprits)) = trace.and_then(others_below) {
        return disturbed_by(found, culprits);
    }
    let is_free = trace.is_some_and(|trace| sees_no_others(facts, trace));
    for delta in &devices {
        let before = if is_free { None } else { busy_before(delta) };
        let is_before = before.is_some();
        if let Some(found) = before.or_else(|| other_way(facts, delta)) {
            if facts.observation.has_peers {
                return not_seen(NAME, facts.counter_files(), PEERS_SENTENCE);
            }
            // The disk was written while the phase only read: any traced part of those writes shows whose they are.
            let is_written = !is_before && only_reads(facts);
            let through_cache = trace.filter(|trace| is_written && trace.inseparable.is_none());
            if let Some(seen) = through_cache.and_then(|trace| through_page_cache(facts, trace, 1)) {
                return disturbed(Disturbance { found: found.found, share: found.share, ..seen });
            }
            let unsure = trace.and_then(|trace| trace.inseparable.as_deref());
            let unsure = unsure.map(|why| format!(" Traced requests could not be attributed: {why}."));
            let sentence = format!("{}{}{}", found.sentence, unsure.unwrap_or_default(), suspects(facts));
            return disturbed(Disturbance { sentence, ..found });
        }
    }
    if let Some(trace) = trace.filter(|_| is_free) {
        let others = trace.others.count + trace.unattributed.count;
        let found = format!("{} of {} traced requests", format_count(others), format_count(all(trace).count));
        let sentence = format!(
            "No other process used {} significantly while requests were traced.{}",
            the_disk(facts),
            unexamined(facts)
        );
        return report(CheckOutcome::Passed, found, sentence);
    }
    let found: Vec<String> = devices.iter().map(|delta| format!("{} idle: {}", delta.disk, activity(delta))).collect();
    let sentence = format!("No other process used {} significantly.{}", the_disk(facts), unexamined(facts));
    report(CheckOutcome::Passed, found.join(", "), sentence)
}

/// Returns the loop devices of the targets.
fn loops<'a>(facts: &PhaseFacts<'a>) -> Vec<&'a str> {
    let disks = facts.disks().into_iter();
    disks.filter(|disk| disk.name.starts_with("loop")).map(|disk| disk.name.as_str()).collect()
}

/// `the disk`; the name of a loop device, below which is another one.
fn the_disk(facts: &PhaseFacts<'_>) -> String {
    let loops = loops(facts);
    if loops.is_empty() { "the disk".to_owned() } else { loops.join(" and ") }
}

/// Returns what was not examined: the disks of a loop device's file, where they were not traced.
fn unexamined(facts: &PhaseFacts<'_>) -> &'static str {
    let is_traced = facts.traced().is_ok_and(|trace| trace.below.as_ref().is_some_and(is_known));
    if loops(facts).is_empty() || is_traced { "" } else { " Who used the disk of its file was not examined." }
}

/// Returns true if the requests of the disks below all loop devices were traced.
fn is_known(below: &BelowTrace) -> bool {
    below.missing.is_none() && !below.disks.is_empty() && below.window_ns > 0
}

/// Returns what other programs did on the disks of a loop device's file, and their names.
fn others_below(trace: &TraceRecord) -> Option<(Disturbance, Vec<String>)> {
    let below = trace.below.as_ref().filter(|below| below.ours.count > 0)?;
    let all = RequestSum { count: below.ours.count + below.others.count, bytes: below.ours.bytes + below.others.bytes };
    let busy = share_of(below.others_busy_ns, below.window_ns);
    if !exceeds(all, below.others, BELOW_SHARE_MAX) || busy <= BELOW_BUSY_SHARE_MAX {
        return None;
    }
    let (disks, loops) = (below.disks.join(", "), below.loops.join(" and "));
    let names: Vec<String> = below.other_processes.iter().map(words_of).collect();
    let first = below.other_processes.first()?;
    let window_ms = below.window_ns / 1_000_000;
    let found = Disturbance {
        found: format!(
            "{} in {} of {} requests traced below {loops} in {window_ms} ms",
            format_bytes(below.others.bytes),
            format_count(below.others.count),
            format_count(all.count),
        ),
        sentence: format!("Other processes used {disks}, below {loops}, at the same time: {}.", names.join(", ")),
        brief: format!("{} {} of {} in {window_ms} ms", first.name, moved_words(first), first.disk),
        share: share_of(below.others.bytes, all.bytes).min(busy),
    };
    let processes: Vec<&TracedProcess> = below.other_processes.iter().collect();
    Some((found, culprits_among(&processes, None, below.others.bytes)))
}

/// Returns true if enough requests were traced without a loss, and hardly any was of others, or may have been. (Lost events are of one
/// processor, so they may be all that another process did.)
pub(crate) fn sees_no_others(facts: &PhaseFacts<'_>, trace: &TraceRecord) -> bool {
    // Our own threads write the filesystem's metadata, and may do other I/O, so a large amount proves nothing.
    let all = all(trace);
    let is_ours = facts.observation.has_peers || !exceeds(all, trace.own_elsewhere, UNATTRIBUTED_SHARE_MAX);
    let is_long = trace.window_count >= WINDOW_COUNT_MIN && all.count >= ALL_COUNT_MIN;
    let is_others =
        exceeds(all, trace.others, OTHERS_SHARE_MAX) || exceeds(all, trace.unattributed, UNATTRIBUTED_SHARE_MAX);
    trace.inseparable.is_none() && is_ours && is_long && !is_others && trace.lost_event_count == 0
}

/// Why counters give no verdict about other processes.
pub(crate) const PEERS_SENTENCE: &str = "Other ranks of this run are on this host and may use the same disks, whose counters \
                                         include them, so the I/O of other processes cannot be separated.";

/// I/O of other processes.
struct Disturbance {
    found: String,
    sentence: String,
    brief: String,
    /// Their part of the disk's bytes or time, whichever is smaller, from 0 to 1: an upper limit of what they took from the figure.
    share: f64,
}

/// Returns the background work that may have caused the I/O, and the programs whose requests were traced.
fn suspects(facts: &PhaseFacts<'_>) -> String {
    let background = &facts.observation.background;
    let written_back = facts.traced().ok().map(programs_behind_write_back).filter(|programs| !programs.is_empty());
    let written_back = written_back.map(|by| format!(" Traced: {WRITE_BACK}, by {by}."));
    let traced = culprits(facts, None);
    let traced = if traced.is_empty() { traced } else { format!(" Traced{traced}.") };
    let traced = traced + &written_back.unwrap_or_default();
    if background.is_empty() { traced } else { format!(" Active on this machine: {}.{traced}", background.join("; ")) }
}

/// Returns the traced processes of others, busiest first; none if requests could not be attributed.
fn processes<'a>(facts: &PhaseFacts<'a>) -> impl Iterator<Item = &'a TracedProcess> + use<'a> {
    let trace = facts.traced().ok().filter(|trace| trace.inseparable.is_none());
    trace.into_iter().flat_map(|trace| &trace.other_processes)
}

/// Returns the programs whose dirty pages were written back, busiest first; none if requests could not be attributed.
fn writers_behind<'a>(facts: &PhaseFacts<'a>) -> impl Iterator<Item = &'a TracedProcess> + use<'a> {
    let trace = facts.traced().ok().filter(|trace| trace.inseparable.is_none());
    trace.into_iter().flat_map(|trace| &trace.write_back)
}

/// Returns what a process moved in one direction, or in both.
fn bytes_of(process: &TracedProcess, op: Option<OpKind>) -> u64 {
    match op {
        Some(OpKind::Read) => process.read_bytes,
        Some(_) => process.write_bytes,
        None => process.read_bytes + process.write_bytes,
    }
}

/// Returns the processes that moved a noted part of what others did in a direction, or in any, as a list: `dd (pid 812)`.
pub(crate) fn culprits_of(facts: &PhaseFacts<'_>, op: Option<OpKind>) -> Vec<String> {
    let of_kernel = facts.traced().map_or(0, |trace| trace.kernel_work.iter().map(|work| bytes_of(work, op)).sum());
    let mut all: Vec<&TracedProcess> = processes(facts).collect();
    let seen: u64 = all.iter().map(|process| bytes_of(process, op)).sum();
    all.extend(writers_behind(facts));
    culprits_among(&all, op, seen + of_kernel)
}

/// Returns those of some processes that moved a noted part of `total` bytes: to stop another one would change nothing.
fn culprits_among(all: &[&TracedProcess], op: Option<OpKind>, total: u64) -> Vec<String> {
    let mut culprits: Vec<String> = Vec::new();
    let is_noted = |bytes: u64| bytes > 0 && bytes as f64 >= total as f64 * CULPRIT_SHARE_MIN;
    for culprit in all.iter().filter(|process| is_noted(bytes_of(process, op))).map(|process| culprit_of(process)) {
        if !culprits.contains(&culprit) {
            culprits.push(culprit);
        }
    }
    culprits
}

/// `dd (pid 812)`; `dd (thread 812, which has ended)`: of what has ended, the kernel's trace knows the thread only.
fn culprit_of(process: &TracedProcess) -> String {
    match (process.process, process.has_ended) {
        (0, _) => process.name.clone(),
        (number, true) => format!("{} (thread {number}, which has ended)", process.name),
        (number, false) => format!("{} (pid {number})", process.name),
    }
}

/// Returns who moved `total` bytes in a direction, which counters show, in a few words: `dd wrote about 24 MiB` if the trace shows at least
/// 1 MiB by it and hardly anything by other programs; else `others wrote 24 MiB`.
pub(crate) fn moved_by_others(facts: &PhaseFacts<'_>, op: OpKind, total: u64) -> String {
    const SHARE_MIN: f64 = 0.9;
    let verb = if op == OpKind::Read { "read" } else { "wrote" };
    let seen: u64 = processes(facts).map(|process| bytes_of(process, Some(op))).sum();
    let busiest = processes(facts).max_by_key(|process| bytes_of(process, Some(op)));
    let busiest = busiest.filter(|process| {
        let own = bytes_of(process, Some(op));
        own >= TRACED_BYTES_MIN && own as f64 >= seen as f64 * SHARE_MIN
    });
    match (busiest, facts.traced()) {
        (Some(process), Ok(_)) => format!("{} {verb} about {}", process.name, format_bytes(total)),
        _ => format!("others {verb} {}", format_bytes(total)),
    }
}

/// Returns what other processes and the kernel moved besides the job, extrapolated from the traced windows, in bytes.
pub(crate) fn seen_of_others(facts: &PhaseFacts<'_>, trace: &TraceRecord) -> u64 {
    scaled(facts, trace, trace.others.bytes + trace.unattributed.bytes)
}

/// Extrapolates bytes from the traced windows to the phase.
fn scaled(facts: &PhaseFacts<'_>, trace: &TraceRecord, bytes: u64) -> u64 {
    (bytes as f64 * facts.elapsed_ns as f64 / trace.window_ns.max(1) as f64).min(u64::MAX as f64) as u64
}

/// Returns the programs whose requests in a direction, or in any, were traced, after a colon, with what was seen of each; empty if there are none.
pub(crate) fn culprits(facts: &PhaseFacts<'_>, op: Option<OpKind>) -> String {
    let words: Vec<String> = processes(facts).filter(|process| bytes_of(process, op) > 0).map(words_of).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) }
}

/// `dd (thread 812, which has ended, dirtied about 3 MiB of them)` for each program whose dirty pages were written back; empty if none is known.
fn programs_behind_write_back(trace: &TraceRecord) -> String {
    let word = |process: &TracedProcess| {
        let files = if process.in_files_bytes > 0 { ", also of the measured files" } else { "" };
        let about = format_bytes(process.write_bytes);
        format!("{} ({}dirtied about {about} of them{files})", process.name, number_words(process))
    };
    trace.write_back.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Returns what threads of the kernel did, and for whom, with what was seen of it, as a list.
fn kernel_words(trace: &TraceRecord) -> String {
    let programs = programs_behind_write_back(trace);
    let word = |work: &TracedProcess| {
        let by = match work.name == WRITE_BACK {
            true if programs.is_empty() => {
                " of programs that were not seen to write, or tables of the filesystem".to_owned()
            }
            true => format!(", by {programs}"),
            false => String::new(),
        };
        format!("{}{by} ({} in the traced windows)", work.name, moved_words(work))
    };
    trace.kernel_work.iter().map(word).collect::<Vec<_>>().join("; ")
}

/// `thread 812, which has ended, `; empty without a number.
fn number_words(process: &TracedProcess) -> String {
    match (process.process, process.has_ended) {
        (0, _) => String::new(),
        (number, true) => format!("thread {number}, which has ended, "),
        (number, false) => format!("process {number}, "),
    }
}

/// `dd (process 812, wrote 3 MiB in the traced windows)`.
fn words_of(process: &TracedProcess) -> String {
    let files = if process.in_files_bytes > 0 { ", also of the measured files" } else { "" };
    format!("{} ({}{} in the traced windows{files})", process.name, number_words(process), moved_words(process))
}

/// Returns everything that was traced.
fn all(trace: &TraceRecord) -> RequestSum {
    let sums = [trace.ours, trace.filesystem, trace.own_elsewhere, trace.others, trace.unattributed];
    RequestSum { count: sums.iter().map(|sum| sum.count).sum(), bytes: sums.iter().map(|sum| sum.bytes).sum() }
}

/// Returns true if `sum` exceeds a share of all requests or bytes.
fn exceeds(all: RequestSum, sum: RequestSum, most: f64) -> bool {
    let of = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let share = of(sum.count, all.count).max(of(sum.bytes, all.bytes));
    (sum.count >= TRACED_REQUEST_COUNT_MIN || sum.bytes >= TRACED_BYTES_MIN) && share > most
}

/// Returns what the trace attributes to other processes, or cannot attribute.
fn others_traced(facts: &PhaseFacts<'_>, trace: &TraceRecord) -> Option<Disturbance> {
    // Without all positions, our own requests would be attributed to others.
    if trace.inseparable.is_some() {
        return None;
    }
    let all = all(trace);
    let disks = trace.disks.join(", ");
    let found = |sum: RequestSum| {
        format!(
            "{} in {} of {} requests traced in {} ms",
            format_bytes(sum.bytes),
            format_count(sum.count),
            format_count(all.count),
            trace.window_ns / 1_000_000
        )
    };
    // What they can explain is bounded by their bytes and by the time of their requests: the smaller one counts.
    let share = |sum: RequestSum| {
        let by_bytes = share_of_bytes(facts, trace, sum.bytes);
        // Records of earlier versions have no time.
        if trace.others_busy_ns == 0 { by_bytes } else { by_bytes.min(share_of(trace.others_busy_ns, trace.window_ns)) }
    };
    let in_windows = |what: String| format!("{what} in {} ms", trace.window_ns / 1_000_000);
    let explains = |sum: RequestSum| share(sum) >= EXPLAINED_SHARE_MIN;
    if exceeds(all, trace.others, OTHERS_SHARE_MAX) && explains(trace.others) {
        let names = culprits(facts, None);
        let is_in_files = trace.other_processes.iter().any(|process| process.in_files_bytes > 0);
        let files = if is_in_files { "also in the measured files" } else { "outside the measured files" };
        let sentence = format!("Other processes used {disks} at the same time, {files}{names}.");
        let brief = match trace.other_processes.first() {
            Some(process) => format!("{} {}", process.name, moved_words(process)),
            None => format!("others moved {}", format_bytes(trace.others.bytes)),
        };
        return Some(Disturbance {
            found: found(trace.others),
            sentence,
            brief: in_windows(brief),
            share: share(trace.others),
        });
    }
    if let Some(found) = through_page_cache(facts, trace, TRACED_BYTES_MIN) {
        return Some(found);
    }
    let is_kernel = exceeds(all, trace.unattributed, UNATTRIBUTED_SHARE_MAX) && explains(trace.unattributed);
    is_kernel.then(|| {
        let work = trace.kernel_work.first();
        let what = work.map_or("the kernel", |work| work.name.as_str());
        let is_write_back = what == WRITE_BACK;
        let by = trace.write_back.first().filter(|_| is_write_back);
        let by = by.map_or_else(String::new, |process| format!(", by {},", process.name));
        let moved = work.map_or_else(|| format!("moved {}", format_bytes(trace.unattributed.bytes)), moved_words);
        Disturbance {
            found: found(trace.unattributed),
            sentence: format!(
                "The kernel used {disks} outside the measured files at the same time: {}.",
                kernel_words(trace)
            ),
            brief: in_windows(format!("{what}{by} {moved}")),
            share: share(trace.unattributed),
        }
    })
}

/// Returns what wrote the measured files through the page cache, if that was at least `bytes_min` and a twentieth of what was traced of ours.
fn through_page_cache(facts: &PhaseFacts<'_>, trace: &TraceRecord, bytes_min: u64) -> Option<Disturbance> {
    let in_files: Vec<&TracedProcess> = trace.write_back.iter().filter(|process| process.in_files_bytes > 0).collect();
    let bytes: u64 = in_files.iter().map(|process| process.in_files_bytes).sum();
    if bytes < bytes_min || bytes as f64 <= trace.ours.bytes as f64 * OTHERS_SHARE_MAX {
        return None;
    }
    let mut names: Vec<&str> = in_files.iter().map(|process| process.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let about = format_bytes(bytes);
    let programs = programs_behind_write_back(trace);
    let window_ms = trace.window_ns / 1_000_000;
    Some(Disturbance {
        found: format!("about {about} of dirty pages of others in the measured files"),
        sentence: format!(
            "Other programs wrote the measured files at the same time, through the page cache: {programs}."
        ),
        brief: format!("{} wrote about {about} of the measured files in {window_ms} ms", names.join(", ")),
        // The job's own threads may submit those requests.
        share: share_of_bytes(facts, trace, bytes),
    })
}

fn share_of(part: u64, whole: u64) -> f64 {
    (part as f64 / whole.max(1) as f64).min(1.0)
}

/// Returns the share of traced bytes in all that the disk moved, in the traced windows or in the phase, whichever is smaller.
fn share_of_bytes(facts: &PhaseFacts<'_>, trace: &TraceRecord, bytes: u64) -> f64 {
    let about = scaled(facts, trace, bytes);
    share_of(bytes, all(trace).bytes).min(share_of(about, about.saturating_add(moved_by_jobs(facts))))
}

/// Returns the bytes that the jobs read and wrote.
fn moved_by_jobs(facts: &PhaseFacts<'_>) -> u64 {
    facts.works().map(|work| work.bytes(OpKind::Read).saturating_add(work.bytes(OpKind::Write))).sum()
}

fn requests(counters: &DeviceCounters) -> u64 {
    counters.read_count + counters.write_count + counters.discard_count
}

fn bytes(counters: &DeviceCounters) -> u64 {
    counters.read_bytes + counters.write_bytes
}

/// `12 requests/s, 48 KiB/s`.
fn activity(delta: &DeviceDelta) -> String {
    let seconds = delta.baseline_ns as f64 / 1e9;
    format!(
        "{:.0} requests/s, {}",
        requests(&delta.baseline) as f64 / seconds,
        format_bandwidth(bytes(&delta.baseline) as f64 / seconds)
    )
}

fn busy_before(delta: &DeviceDelta) -> Option<Disturbance> {
    if requests(&delta.baseline) < BASELINE_REQUEST_COUNT_MIN {
        return None;
    }
    let share = |value: fn(&DeviceCounters) -> u64| {
        let idle = value(&delta.baseline) as f64 / delta.baseline_ns as f64;
        let measured = value(&delta.measured) as f64 / delta.measured_ns.max(1) as f64;
        if measured > 0.0 { idle / measured } else { f64::INFINITY }
    };
    let busy = delta.baseline.busy_ms as f64 * 1e6 / delta.baseline_ns as f64;
    let rate = share(requests).max(share(bytes));
    if rate <= RATE_SHARE_MAX && busy <= BUSY_SHARE_MAX {
        return None;
    }
    let found = format!("{} before the phase: {}, busy {:.0} %", delta.disk, activity(delta), busy * 100.0);
    let sentence = format!("Other processes used {} just before the phase and may have continued.", delta.disk);
    let brief = format!("others: {} just before", activity(delta));
    Some(Disturbance { found, sentence, brief, share: share(bytes).min(busy).min(1.0) })
}

fn only_reads(facts: &PhaseFacts<'_>) -> bool {
    facts.file_works().iter().all(|work| work.reads() && !work.writes())
}

/// Finds writes in a phase that only reads, or reads in one that only writes past the page cache.
fn other_way(facts: &PhaseFacts<'_>, delta: &DeviceDelta) -> Option<Disturbance> {
    let only_reads = only_reads(facts);
    let only_writes = facts.file_works().iter().all(|work| {
        work.writes()
            && !work.reads()
            && work.job.verify.is_none()
            && work.bytes(OpKind::Write) > 0
            && facts.way(work.job) == crate::facts::Way::Direct
    });
    let counters = &delta.measured;
    // RAID 5 and copy on write add reads to direct writes.
    let (verb, others, ours) = if only_reads {
        ("wrote", (counters.write_count, counters.write_bytes), (counters.read_count, counters.read_bytes))
    } else if only_writes && !facts.amplifies() {
        ("read", (counters.read_count, counters.read_bytes), (counters.write_count, counters.write_bytes))
    } else {
        return None;
    };
    let exceeds = |others: u64, ours: u64, min: u64| others >= min && others as f64 > ours as f64 * OTHER_WAY_SHARE_MAX;
    if !exceeds(others.0, ours.0, OTHER_WAY_REQUEST_COUNT_MIN) && !exceeds(others.1, ours.1, OTHER_WAY_BYTES_MIN) {
        return None;
    }
    let found = format!("{} {verb} {} in {} requests", delta.disk, format_bytes(others.1), format_count(others.0));
    let did = if only_reads { "only read" } else { "only wrote" };
    let sentence = format!(
        "The phase {did}, so other processes used {} at the same time, or an earlier phase left work to do.",
        delta.disk
    );
    let (op, in_flight_ms) =
        if only_reads { (OpKind::Write, counters.write_ms) } else { (OpKind::Read, counters.read_ms) };
    let brief = moved_by_others(facts, op, others.1);
    let by_bytes = others.1 as f64 / (others.1 + ours.1).max(1) as f64;
    let by_time = in_flight_ms as f64 * 1e6 / delta.measured_ns.max(1) as f64;
    Some(Disturbance { found, sentence, brief, share: by_bytes.min(by_time) })
}
