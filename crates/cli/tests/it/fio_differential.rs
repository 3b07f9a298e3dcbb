//! Drawn sets of options, run with fio and with this program: exit codes, errors, counts, log columns and files are the same,
//! but for the differences that `trueio_fio::differences` lists.
//!
//! Method: a set has a pattern, a size and up to five options of those that public jobs use most; by its number it is drawn
//! again. Each program runs it in a folder of its own, over the same files. A set that differs loses its options one by one
//! as long as it differs, and is printed as a command line.
//!
//! By hand: `TRUEIO_DIFFERENTIAL=FIRST-LAST` runs these sets, several at a time, instead of as many as CI's time allows; `--nocapture`
//! prints the sums so far, which add up over runs. `TRUEIO_FIO` names another fio than the installed one.
//!
//! Limits: what time decides (runtimes, rates) is only compared by exit code; in mixed jobs only the sums of reads and writes
//! are, and what is read back of blocks that may be written twice is not; of a file the written sectors are compared where the
//! set determines them, and the data where it is fixed (`zero_buffers`, `buffer_pattern`); keys of the JSON must be there with
//! fio's types, and their values are not compared.

use crate::common::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_fio::differences::DIFFERENCES;
use trueio_model::mix64;
use trueio_testkit::output_within;

/// The time that CI has for it.
const CI: Duration = Duration::from_secs(40);
/// The last set that CI runs; more are run by hand.
const LAST: u64 = 150;
/// Bytes of the files that are there before: `a`, `b`.
const FILE_BYTES: usize = 1 << 20;
/// A set that runs longer in one of the programs is left out.
const LONGEST: Duration = Duration::from_secs(20);

const PATTERNS: &[&str] =
    &["read", "write", "randread", "randwrite", "rw", "randrw", "read", "randwrite", "write", "randread", "randtrim"];
const SIZES: &[&str] = &["64k", "256k", "1m", "100k", "50000"];

/// The options, with values.
const OPTIONS: &[(&str, &[&str])] = &[
    ("bs", &["4k", "16k", "512", "1k", "3000", "8k,4k"]),
    ("bsrange", &["1k-8k", "4k-16k", "512-4k"]),
    ("bssplit", &["4k/50:8k/50", "1k/10:4k/90", "4k/60:16k/"]),
    ("ioengine", &["sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "mmap", "posixaio", "null"]),
    ("iodepth", &["1", "4", "16", "64"]),
    ("iodepth_batch", &["1", "4"]),
    ("iodepth_batch_complete_min", &["0", "1", "4"]),
    ("iodepth_low", &["1", "2"]),
    ("direct", &["0", "1"]),
    ("buffered", &["0", "1"]),
    ("filename", &["a", "b", "n", "a:b", "n:m", "d/n"]),
    ("nrfiles", &["1", "2", "3"]),
    ("filesize", &["64k", "128k"]),
    ("openfiles", &["1", "2"]),
    ("file_service_type", &["roundrobin", "random", "sequential", "roundrobin:4"]),
    ("numjobs", &["1", "2", "3"]),
    ("group_reporting", &["1"]),
    ("thread", &["1"]),
    ("loops", &["1", "2"]),
    ("io_size", &["32k", "128k", "2m"]),
    ("number_ios", &["1", "10"]),
    ("offset", &["0", "64k", "4k"]),
    ("offset_increment", &["64k"]),
    ("norandommap", &["1"]),
    ("randrepeat", &["0", "1"]),
    ("randseed", &["7"]),
    ("random_generator", &["tausworthe", "lfsr", "tausworthe64"]),
    ("random_distribution", &["random", "zipf:1.2", "pareto:0.2", "normal:20", "zoned:60/10:40/90"]),
    ("percentage_random", &["100", "50"]),
    ("rwmixread", &["0", "30", "100"]),
    ("rwmixwrite", &["20"]),
    ("rw_sequencer", &["sequential", "identical"]),
    ("fsync", &["0", "1", "8"]),
    ("fdatasync", &["4"]),
    ("end_fsync", &["1"]),
    ("fsync_on_close", &["1"]),
    ("sync", &["0", "1", "dsync"]),
    ("overwrite", &["0", "1"]),
    ("fallocate", &["none", "native", "posix", "keep"]),
    ("create_on_open", &["0", "1"]),
    ("create_only", &["1"]),
    ("create_serialize", &["0", "1"]),
    ("create_fsync", &["0"]),
    ("allow_file_create", &["0", "1"]),
    ("pre_read", &["0", "1"]),
    ("invalidate", &["0", "1"]),
    ("unlink", &["1"]),
    ("fadvise_hint", &["0", "1", "random", "sequential"]),
    ("zero_buffers", &["1"]),
    ("refill_buffers", &["1"]),
    ("scramble_buffers", &["0", "1"]),
    ("buffer_pattern", &["0xdeadbeef", "\"abcd\""]),
    ("buffer_compress_percentage", &["0", "50"]),
    ("dedupe_percentage", &["0", "30"]),
    ("verify", &["0", "md5", "crc32c", "meta", "xxhash", "sha256", "null"]),
    ("do_verify", &["0", "1"]),
    ("verify_fatal", &["0", "1"]),
    ("verify_backlog", &["8"]),
    ("verify_async", &["1"]),
    ("verify_interval", &["512", "1k", "4k"]),
    ("verify_state_save", &["0", "1"]),
    ("verify_only", &["1"]),
    ("verify_pattern", &["0xff"]),
    ("continue_on_error", &["none", "all", "verify", "io"]),
    ("gtod_reduce", &["0", "1"]),
    ("disable_lat", &["1"]),
    ("disable_clat", &["1"]),
    ("disable_slat", &["1"]),
    ("disable_bw_measurement", &["1"]),
    ("lat_percentiles", &["1"]),
    ("slat_percentiles", &["1"]),
    ("clat_percentiles", &["0"]),
    ("percentile_list", &["50:99", "1:10:99.9"]),
    ("unified_rw_reporting", &["0", "mixed", "both"]),
    ("write_bw_log", &["x"]),
    ("write_iops_log", &["x"]),
    ("write_lat_log", &["x"]),
    ("log_avg_msec", &["0", "100"]),
    ("log_offset", &["1"]),
    ("log_prio", &["1"]),
    ("log_issue_time", &["1"]),
    ("log_window_value", &["avg", "max"]),
    ("per_job_logs", &["0", "1"]),
    ("thinktime", &["0", "100"]),
    ("thinktime_blocks", &["8"]),
    ("rate", &["50m"]),
    ("rate_iops", &["5000"]),
    ("runtime", &["1"]),
    ("ramp_time", &["0"]),
    ("startdelay", &["0"]),
    ("stonewall", &["1"]),
    ("exitall", &["1"]),
    ("nice", &["0", "5"]),
    ("prio", &["4"]),
    ("cpus_allowed", &["0"]),
    ("mem", &["malloc", "mmap", "shm"]),
    ("iomem_align", &["512"]),
    ("blockalign", &["4k", "8k"]),
    ("bs_unaligned", &["1"]),
    ("kb_base", &["1000", "1024"]),
    ("clocksource", &["clock_gettime"]),
    ("description", &["text"]),
    ("lockfile", &["none", "exclusive", "readwrite"]),
    ("filename_format", &["f.$jobnum.$filenum"]),
    ("directory", &["d"]),
    ("zonemode", &["none"]),
    ("flow", &["2"]),
    ("max_latency", &["10s"]),
    ("latency_target", &["0"]),
    ("rate_process", &["linear", "poisson"]),
    ("write_hint", &["none", "short", "medium", "long", "extreme"]),
    ("ignore_error", &["EIO"]),
    ("error_dump", &["0", "1"]),
    ("serialize_overlap", &["1"]),
    ("io_submit_mode", &["inline", "offload"]),
    ("blocksize", &["8k", "2k,4k"]),
    ("ba", &["4k", "8k"]),
    ("io_limit", &["64k", "3m"]),
    ("zonesize", &["64k"]),
    ("zonerange", &["128k"]),
    ("zoneskip", &["32k"]),
    ("iodepth_batch_submit", &["2"]),
    ("iodepth_batch_complete_max", &["8"]),
    ("softrandommap", &["1"]),
    ("allrandrepeat", &["0", "1"]),
    ("verify_offset", &["0", "64"]),
    ("verify_dump", &["0", "1"]),
    ("verify_pattern_interval", &["512"]),
    ("verify_backlog_batch", &["4"]),
    ("experimental_verify", &["0", "1"]),
    ("buffer_compress_chunk", &["512", "4k"]),
    ("dedupe_mode", &["repeat", "working_set"]),
    ("dedupe_working_set_percentage", &["10"]),
    ("rate_min", &["1k"]),
    ("rate_iops_min", &["1"]),
    ("rate_cycle", &["500"]),
    ("thinktime_spin", &["50"]),
    ("thinktime_iotime", &["1"]),
    ("file_append", &["0", "1"]),
    ("fill_device", &["0"]),
    ("unlink_each_loop", &["0"]),
    ("write_hist_log", &["x"]),
    ("log_hist_msec", &["100"]),
    ("log_hist_coarseness", &["2"]),
    ("log_max_value", &["0", "1"]),
    ("log_alternate_epoch", &["0", "1"]),
    ("log_compression", &["64k"]),
    ("bwavgtime", &["100"]),
    ("iopsavgtime", &["100"]),
    ("exitall_on_error", &["1"]),
    ("exit_what", &["group", "all"]),
    ("new_group", &["1"]),
    ("wait_for_previous", &["1"]),
    ("prioclass", &["2"]),
    ("cpus_allowed_policy", &["shared", "split"]),
    ("cpumask", &["1"]),
    ("sync_file_range", &["write:8"]),
    ("write_barrier", &["1"]),
    ("unit_base", &["0", "8"]),
    ("significant_figures", &["5"]),
    ("disk_util", &["0", "1"]),
    ("trim_percentage", &["0"]),
    ("trim_backlog", &["0"]),
    ("latency_percentile", &["99"]),
    ("uid", &["0"]),
    ("gid", &["0"]),
];

/// How a program ended.
#[derive(Debug, PartialEq)]
struct Ending {
    code: Option<i32>,
    /// Of each job its error, I/Os and bytes of reads and writes, of trims, and of writes alone.
    jobs: Vec<(u64, [u64; 6])>,
    /// Files that it left.
    files: BTreeMap<String, File>,
    /// Keys of the document with their types.
    keys: BTreeSet<(String, &'static str)>,
}

/// A file that a program left.
#[derive(Debug, PartialEq, Clone)]
struct File {
    /// 0 for logs and verify states.
    length: u64,
    /// Columns of a log.
    columns: usize,
    /// The sectors that were written, as ranges: those of `a` and `b` that are not as before, of others those that are not zero.
    written: String,
    /// A hash of the content.
    content: u64,
}

/// Draws the set of a number, as words `name=value`.
fn drawn(number: u64) -> Vec<String> {
    let mut state = mix64(number ^ 0x5eed);
    let mut below = |count: usize| {
        state = mix64(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        (state % count as u64) as usize
    };
    let mut set =
        vec![format!("rw={}", PATTERNS[below(PATTERNS.len())]), format!("size={}", SIZES[below(SIZES.len())])];
    for _ in 0..1 + below(5) {
        let (name, values) = OPTIONS[below(OPTIONS.len())];
        if !set.iter().any(|word| word.split('=').next() == Some(name)) {
            set.push(format!("{name}={}", values[below(values.len())]));
        }
    }
    set
}

/// Runs a set in a folder of its own; `None`: it took too long.
fn ending(program: &[&str], set: &[String]) -> Option<Ending> {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        sandbox.data_file(name, FILE_BYTES);
    }
    fs::create_dir(sandbox.path("d")).expect("a directory");
    let mut command = match program {
        [] => sandbox.command(&["fio"]),
        [fio, ..] => Command::new(fio),
    };
    command.args(["--name=j", "--output-format=json"]).args(set.iter().map(|word| format!("--{word}")));
    let ran = Ran::of(output_within(&mut command, sandbox.root(), LONGEST).expect("it starts")?);
    let document: Option<Value> = ran.out.find('{').and_then(|begin| serde_json::from_str(&ran.out[begin..]).ok());
    let jobs = document.as_ref().and_then(|document| document["jobs"].as_array()).cloned().unwrap_or_default();
    let mut keys = BTreeSet::new();
    jobs.iter().for_each(|job| note_keys("", job, &mut keys));
    let of = |job: &Value| {
        let sum = |ops: &[&str], key| ops.iter().map(|op| job[*op][key].as_u64().unwrap_or(0)).sum::<u64>();
        let data = ["read", "write", "mixed"];
        let kinds = [&data[..], &["trim"], &["write"]];
        let counts = kinds.map(|ops| [(ops, "total_ios"), (ops, "io_bytes")]);
        let counts: [_; 6] = counts.concat().try_into().expect("two of each");
        (job["error"].as_u64().unwrap_or(u64::MAX), counts.map(|(ops, key)| sum(ops, key)))
    };
    let mut files = BTreeMap::new();
    note_files(&sandbox, "", &mut files);
    Some(Ending { code: ran.code, jobs: jobs.iter().map(of).collect(), files, keys })
}

/// Notes the files in a folder of a sandbox, and below it.
fn note_files(sandbox: &Sandbox, folder: &str, files: &mut BTreeMap<String, File>) {
    for entry in fs::read_dir(sandbox.path(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = folder.to_owned() + &entry.file_name().to_string_lossy();
        let metadata = entry.metadata().expect("metadata");
        if metadata.is_dir() {
            note_files(sandbox, &format!("{name}/"), files);
            continue;
        }
        let is_log = name.ends_with(".log");
        let first = is_log.then(|| fs::read_to_string(entry.path()).ok()).flatten();
        let columns = first.and_then(|text| Some(text.lines().next()?.split(',').count())).unwrap_or(0);
        // A log is as long as its I/Os took, and fio's versions have verify states of different lengths.
        let has_length = !is_log && !name.ends_with(".state");
        let mut file = File { length: 0, columns, written: String::new(), content: 0 };
        if has_length {
            let content = fs::read(entry.path()).unwrap_or_default();
            let was_there = ["a", "b"].contains(&&name[..]);
            file.length = metadata.len();
            file.written = written(&content, was_there);
            let mut hasher = DefaultHasher::new();
            hasher.write(&content);
            file.content = hasher.finish();
        }
        files.insert(name, file);
    }
}

/// Returns the sectors of a file that were written, as ranges: `0-7 16-23`.
fn written(content: &[u8], was_there: bool) -> String {
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    for (index, sector) in content.chunks(512).enumerate() {
        // As `Sandbox::data_file` writes it.
        let is_as_before = match was_there {
            true => sector[..8] == (index as u64).to_le_bytes() && sector[8..] == [0x5a; 512][8..sector.len()],
            false => *sector == [0; 512][..sector.len()],
        };
        match ranges.last_mut() {
            _ if is_as_before => {}
            Some([_, last]) if *last + 1 == index => *last = index,
            _ => ranges.push([index; 2]),
        }
    }
    ranges.iter().map(|[first, last]| format!("{first}-{last}")).collect::<Vec<_>>().join(" ")
}

/// Notes the keys of a job with their types, but for those that only some samples have.
fn note_keys(path: &str, value: &Value, keys: &mut BTreeSet<(String, &'static str)>) {
    let Value::Object(object) = value else { return };
    for (key, value) in object {
        if ["job options", "percentile", "bins", "iodepth_level"].contains(&&key[..]) {
            continue;
        }
        let kind = match value {
            Value::Number(_) => "number",
            Value::String(_) => "text",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
            Value::Bool(_) | Value::Null => "other",
        };
        keys.insert((format!("{path}/{key}"), kind));
        note_keys(&format!("{path}/{key}"), value, keys);
    }
}

/// Returns what differs, in words; `None`: nothing, or one of the programs took too long.
fn difference(fio: &str, set: &[String]) -> Option<String> {
    let (theirs, ours) = (ending(&[fio], set)?, ending(&[], set)?);
    let is_timed = ["runtime", "rate", "rate_iops", "exitall", "flow"]
        .iter()
        .any(|name| set.iter().any(|word| word.split('=').next() == Some(name)));
    if ours.code != Some(0) && ours.jobs.is_empty() && theirs.code != Some(0) {
        // Refused before the jobs, where fio fails in them.
        return None;
    }
    if theirs.code != ours.code {
        return Some(format!("exit code: fio {:?}, here {:?}", theirs.code, ours.code));
    }
    let errors = |ending: &Ending| ending.jobs.iter().map(|job| job.0).collect::<Vec<_>>();
    if errors(&theirs) != errors(&ours) {
        return Some(format!("errors of jobs: fio {:?}, here {:?}", errors(&theirs), errors(&ours)));
    }
    let missing: Vec<_> = theirs.keys.difference(&ours.keys).collect();
    if !missing.is_empty() {
        return Some(format!("keys that are missing or have another type here: {missing:?}"));
    }
    let is_failed = theirs.code != Some(0);
    let counts = |ending: &Ending| ending.jobs.iter().map(|job| job.1).collect::<Vec<_>>();
    if !is_timed && !is_failed && !are_alike(set, &counts(&theirs), &counts(&ours)) {
        return Some(format!("I/Os and bytes: fio {:?}, here {:?}", counts(&theirs), counts(&ours)));
    }
    if !is_failed {
        let mut compared = compared(set);
        if is_timed && compared > Compared::Lengths {
            compared = Compared::Lengths;
        }
        let (theirs, mut ours) = (compared.of(&theirs.files), compared.of(&ours.files));
        // Of a run that is shorter than the interval of a log, fio logs nothing: a matter of time.
        for (name, file) in &mut ours {
            if theirs.get(name).is_some_and(|other| other.columns == 0 && other.length == 0) {
                file.columns = 0;
            }
        }
        if theirs != ours {
            let only = |one: &BTreeMap<String, File>, other: &BTreeMap<String, File>| {
                let more = one.iter().filter(|(name, file)| other.get(*name) != Some(file));
                more.map(|(name, file)| format!("{name} {file:?}")).collect::<Vec<_>>()
            };
            return Some(format!("files: fio {:?}, here {:?}", only(&theirs, &ours), only(&ours, &theirs)));
        }
    }
    None
}

/// What of the files is compared.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Compared {
    /// Columns of logs.
    Columns,
    /// Lengths, and columns of logs.
    Lengths,
    /// The sectors that were written, too.
    Written,
    /// The content, too.
    Content,
}

impl Compared {
    /// Returns files without what is not compared.
    fn of(self, files: &BTreeMap<String, File>) -> BTreeMap<String, File> {
        let mut files = files.clone();
        for file in files.values_mut() {
            if self <= Compared::Lengths {
                file.written.clear();
            }
            if self == Compared::Columns {
                file.length = 0;
            }
            if self != Compared::Content {
                file.content = 0;
            }
        }
        files
    }
}

/// Returns what a set determines of the files: which blocks are written, unless they are drawn and not all of them are, and
/// the data, if it is fixed.
fn compared(set: &[String]) -> Compared {
    let has = |beginning: &str| set.iter().any(|word| word.starts_with(beginning));
    let is_random = has("rw=rand") || has("percentage_random=50");
    let is_mixed = (has("rw=rw") || has("rw=randrw")) && !has("rwmixread=0") && !has("rwmixread=100");
    let sizes_are_drawn = has("bsrange=") || has("bssplit=") || has("bs=8k,4k");
    let is_part = [
        "norandommap=1",
        "random_distribution=",
        "io_size=",
        "io_limit=",
        "number_ios=",
        "rw_sequencer=",
        "softrandommap=1",
        // Not all places of the file are taken, or not by whole blocks.
        "filesize=",
        "ba=",
        "blockalign=",
    ];
    // A file that grows with its writes ends where the last one does.
    let grows = ["create_on_open=1", "fallocate=keep", "fallocate=none"].into_iter().any(has);
    let is_drawn_twice = has("rw=rand") && has("percentage_random=50");
    if grows && (sizes_are_drawn || is_drawn_twice || (is_random && is_part.into_iter().any(has))) {
        return Compared::Columns;
    }
    if is_mixed || sizes_are_drawn || has("percentage_random=50") || (is_random && is_part.into_iter().any(has)) {
        return Compared::Lengths;
    }
    let is_fixed = has("zero_buffers=1") || has("buffer_pattern=");
    let is_varied = ["verify", "experimental_verify=1", "dedupe_", "buffer_compress_"];
    match is_fixed && !is_varied.into_iter().any(has) {
        true => Compared::Content,
        false => Compared::Written,
    }
}

/// Returns true if counts agree: those of drawn sizes by their bytes, to the largest block of each job.
fn are_alike(set: &[String], theirs: &[[u64; 6]], ours: &[[u64; 6]]) -> bool {
    let begins = |beginning: &str| set.iter().any(|word| word.starts_with(beginning));
    let is_drawn = set.iter().any(|word| {
        ["bsrange", "bssplit"].contains(&word.split('=').next().unwrap_or_default()) || word.starts_with("bs=8k,4k")
    });
    // How many blocks of a mixed job are read back is drawn, too.
    let is_mixed = set.iter().any(|word| ["rw=rw", "rw=randrw"].contains(&&word[..]));
    // (`verify_pattern` sets `verify`, too.)
    let is_verified = begins("verify=") || begins("verify_pattern=");
    if is_mixed && is_verified {
        return theirs.len() == ours.len();
    }
    // A block that was drawn twice is read back once.
    // (fio draws without a map where `blockalign` is set.)
    let draws_twice =
        ["norandommap=1", "random_distribution=", "percentage_random=50", "rw_sequencer=", "ba=", "blockalign="];
    if is_verified && draws_twice.into_iter().any(begins) && !is_drawn {
        let but_reads = |counts: &[[u64; 6]]| counts.iter().map(|counts| counts[2..].to_vec()).collect::<Vec<_>>();
        return but_reads(theirs) == but_reads(ours);
    }
    if !is_drawn {
        let sums = |counts: &[[u64; 6]]| counts.iter().map(|counts| counts[..4].to_vec()).collect::<Vec<_>>();
        return sums(theirs) == sums(ours);
    }
    let near = |(one, other): (&[u64; 6], &[u64; 6])| {
        one[1].abs_diff(other[1]) <= 32 << 10 && one[3].abs_diff(other[3]) <= 32 << 10
    };
    theirs.len() == ours.len() && theirs.iter().zip(ours).all(near)
}

/// Leaves out options as long as the set differs.
fn minimised(fio: &str, mut set: Vec<String>) -> (Vec<String>, String) {
    let mut what = difference(fio, &set).unwrap_or_else(|| "it differs only sometimes".to_owned());
    let mut at = set.len();
    while at > 2 {
        at -= 1;
        let mut less = set.clone();
        less.remove(at);
        // Not one that is listed: that would hide what the whole set differs in.
        if DIFFERENCES.iter().any(|listed| listed.covers(&less)) {
            continue;
        }
        if let Some(difference) = difference(fio, &less) {
            (set, what) = (less, difference);
        }
    }
    (set, what)
}

/// Goal: the lie is found that a runner without a comparison would pass: another number of I/Os is a difference, and so is
/// another exit code.
#[test]
fn a_difference_is_found_and_minimised() {
    let Ok(fio) = installed() else { return };
    let word = |text: &str| text.to_owned();
    let (read, size) = (word("rw=read"), word("size=64k"));
    let set = [read.clone(), size.clone()];
    assert_eq!(difference(&fio, &set), None);
    // fio's own language, in which each program runs another set.
    let ours = ending(&[], &[read.clone(), word("size=128k")]).expect("it ends");
    let theirs = ending(&[&fio], &set).expect("it ends");
    assert_ne!(ours.jobs, theirs.jobs);
    assert_eq!(theirs.files["j.0.0"].length, 64 << 10, "{:?}", theirs.files);
    assert_ne!(ours.files, theirs.files);
    let log = [read.clone(), word("size=64k"), word("write_bw_log=d/x"), word("filename=d/n")];
    let logged = ending(&[&fio], &log).expect("it ends");
    assert!(logged.files.contains_key("d/n") && logged.files["d/x_bw.1.log"].columns > 3, "{:?}", logged.files);
    // Data elsewhere, and other data in the same place.
    let write = ["rw=write", "filename=a", "size=64k", "offset=64k", "zero_buffers=1"].map(str::to_owned);
    let wrote = ending(&[&fio], &write).expect("it ends");
    assert_eq!(wrote.files["a"].written, "128-255");
    let mut others = [write.clone(), write.clone()];
    others[0][3] = word("offset=128k");
    others[1][4] = word("buffer_pattern=0x01");
    for (other, compared) in others.iter().zip([Compared::Written, Compared::Content]) {
        let ours = ending(&[], other).expect("it ends");
        assert_ne!(compared.of(&wrote.files), compared.of(&ours.files), "{other:?}");
        assert_eq!(Compared::Lengths.of(&wrote.files), Compared::Lengths.of(&ours.files), "{other:?}");
    }
    // Where a grown file ends is drawn with the places of its blocks, and not without.
    let grown = |rw: &str| compared(&[rw, "percentage_random=50", "create_on_open=1"].map(str::to_owned));
    assert_eq!([grown("rw=randwrite"), grown("rw=write")], [Compared::Columns, Compared::Lengths]);
    // A wanted difference, with an option that has nothing to do with it.
    let refused = [word("rw=write"), size, word("allow_mounted_write=0"), word("thp=1")];
    let wanted = vec![refused[0].clone(), refused[1].clone(), word("ioengine=mmap"), word("thp=1"), word("loops=1")];
    let (less, what) = minimised(&fio, wanted);
    assert!(what.starts_with("exit code") && !less.contains(&word("loops=1")), "{less:?}: {what}");
}

/// Returns the options of the table that a fio does not have, because it is older.
fn unknown(fio: &str) -> BTreeSet<&'static str> {
    let help = Command::new(fio).arg("--cmdhelp=all").output().expect("fio starts");
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    let known: BTreeSet<&str> = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    OPTIONS.iter().map(|option| option.0).filter(|name| !known.contains(name)).collect()
}

/// Returns the fio to compare with.
fn installed() -> Result<String, ()> {
    let fio = std::env::var("TRUEIO_FIO").unwrap_or_else(|_| "fio".to_owned());
    match tool(&fio, &["--version"]) {
        Ok(_) => Ok(fio),
        Err(reason) => {
            println!("skipped: {reason}");
            Err(())
        }
    }
}

/// What the comparison of a set found.
enum Outcome {
    Same,
    /// The list of wanted differences covers it.
    Documented,
    /// It differed once or twice, and then not: a busy machine may end a job.
    Unsteady,
    /// It differs each time: the minimised set and what differs.
    Other(String),
}

/// The outcomes of all sets so far.
#[derive(Default)]
struct Found {
    same: u64,
    documented: u64,
    unsteady: u64,
    other: Vec<String>,
}

impl Found {
    /// Adds an outcome, and prints the sums now and then, so that a run that is interrupted has a result.
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Same => self.same += 1,
            Outcome::Documented => self.documented += 1,
            Outcome::Unsteady => self.unsteady += 1,
            Outcome::Other(line) => {
                println!("{line}");
                self.other.push(line);
            }
        }
        let Found { same, documented, unsteady, other } = self;
        if (*same + *documented + *unsteady + other.len() as u64).is_multiple_of(100) {
            println!("so far: {same} same, {documented} documented, {} other, {unsteady} unsteady", other.len());
        }
    }
}

/// Compares a set.
fn outcome(fio: &str, number: u64, set: &[String]) -> Outcome {
    let Some(first) = difference(fio, set) else { return Outcome::Same };
    if let Some(listed) = DIFFERENCES.iter().find(|difference| difference.covers(set)) {
        // An order that is listed must not hide what the set differs in otherwise.
        return match listed.reversed(set).map(|reversed| outcome(fio, number, &reversed)) {
            None | Some(Outcome::Same) => Outcome::Documented,
            Some(other) => other,
        };
    }
    if (0..2).any(|_| difference(fio, set).is_none()) {
        println!("set {number} differs only sometimes: {} ({first})", set.join(" "));
        return Outcome::Unsteady;
    }
    let (set, what) = minimised(fio, set.to_vec());
    let words: Vec<String> = set.iter().map(|word| format!("--{word}")).collect();
    Outcome::Other(format!("set {number}: --name=j {}\n    {what}", words.join(" ")))
}

/// Goal: no drawn set of options ends, counts or leaves files otherwise than with fio, but for the listed differences.
#[test]
fn drawn_options_behave_as_in_fio() {
    let Ok(fio) = installed() else { return };
    let by_hand = std::env::var("TRUEIO_DIFFERENTIAL").ok();
    let (first, last) = by_hand.as_deref().and_then(|range| range.split_once('-')).map_or((0, LAST), |(from, to)| {
        (from.parse().expect("the first number"), to.parse().expect("the last number"))
    });
    let unknown = unknown(&fio);
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let found = Mutex::new(Found::default());
    let compare_sets = || {
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number > last || (by_hand.is_none() && began.elapsed() > CI) {
                return;
            }
            let mut set = drawn(number);
            set.retain(|word| !unknown.contains(word.split('=').next().unwrap_or_default()));
            let outcome = outcome(&fio, number, &set);
            found.lock().expect("no thread panics").add(outcome);
        }
    };
    // By hand several at a time: fio sleeps for most of a short run.
    let count = if by_hand.is_some() { 4 * std::thread::available_parallelism().map_or(1, usize::from) } else { 1 };
    std::thread::scope(|scope| (0..count).for_each(|_| drop(scope.spawn(compare_sets))));
    let Found { same, documented, unsteady, other } = found.into_inner().expect("no thread panics");
    println!("{same} same, {documented} documented, {} other, {unsteady} unsteady", other.len());
    assert!(other.is_empty(), "{}", other.join("\n"));
    assert!(same > 5, "{same} sets were compared");
}
