//! The formats of fio's outputs, compared with the installed fio: the same jobs with both, and the outputs compared line by line
//! with all measured numbers masked.
//!
//! Compared are normal text, terse 2 to 5 and JSON with buckets: lines, keys, fields, their order, whole numbers or number of
//! decimal places, the words of options, and that buckets are named by fio's middles; of logs their names, columns, directions
//! and sizes. Every difference must be listed here with its reason; a listed difference that does not occur is a failure, too.
//! The installed fio may be older than the reference (3.42): differences between the two are listed as such.
//!
//! Limits: numbers are not compared (`cargo xtask bench fio-agreement` does that), nor the lines of latency classes, which
//! depend on them.

use crate::common::*;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A difference: a masked line that only one of the two has. With a trailing `*` it matches each line that begins so, with a
/// leading one each line that contains it. A line without a star that a job has several times is listed as often.
#[derive(Clone, Copy)]
enum Known {
    /// Only fio's.
    Fios(&'static str, &'static str),
    /// Only ours.
    Ours(&'static str, &'static str),
}

impl Known {
    fn is_of(self, line: &str) -> bool {
        let (sign, known) = match self {
            Self::Fios(known, _) => ('-', known),
            Self::Ours(known, _) => ('+', known),
        };
        let Some(line) = line.strip_prefix(sign) else { return false };
        match (known.strip_prefix('*'), known.strip_suffix('*')) {
            (Some(part), _) => line.contains(part),
            (None, Some(begin)) => line.starts_with(begin),
            (None, None) => line == known,
        }
    }

    /// Returns true if it matches any number of lines.
    fn is_many(self) -> bool {
        let (Self::Fios(known, _) | Self::Ours(known, _)) = self;
        known.contains('*')
    }
}

use Known::{Fios, Ours};

/// A reason: newer versions of fio do it like this.
const NEWER: &str = "fio 3.33 is older";

/// Differences that every run may have.
const EVERYWHERE: &[Known] = &[
    Ours("      \"job_start\" : N", NEWER),
    Ours("      \"latency_target_ns\" : N", NEWER),
    Ours("      \"latency_window_us\" : N", NEWER),
    Ours("     latency   : target=*", NEWER),
    Fios("     latency   : target=*", NEWER),
    Fios("*; N zone resets", NEWER),
    Ours("  write: IOPS=#, BW=#*", NEWER),
    Ours("        \"group_reporting\" : \"\"", FLAG),
    Ours("        \"time_based\" : \"\"", FLAG),
    Ours("        \"stonewall\" : \"\"", FLAG),
    Ours("        \"new_group\" : \"\"", FLAG),
];
const BITS: &str = "fio forgets `unit_base` in the lines of samples";
const UNSEEN: &str = "fio does not see it";
const FLAG: &str = "fio 3.33 drops options without a value";

/// A job, and its further differences.
struct Case {
    line: &'static str,
    known: &'static [Known],
}

const fn case(line: &'static str, known: &'static [Known]) -> Case {
    Case { line, known }
}

/// Differences of a job with sync calls.
const SYNCED: [Known; 2] =
    [Fios("  fsync/fdatasync/sync_file_range:", NEWER), Ours("  fsync/fdatasync/sync_file_range/syncfs:", NEWER)];
const PREPARED: Known = Fios("*Laying out IO file", "only results are printed, no progress");

/// One run of each with all formats at once.
const CASES: &[Case] = &[
    case("--name=a --filename=f --rw=read --bs=4k --size=256k", &[]),
    case(
        "--name=a --ioengine=libaio --iodepth=4 --rw=randrw --bs=4k,8k --size=256k --numjobs=3 --group_reporting --filename=f",
        &[],
    ),
    case("--name=a --rw=randread --bs=4k --size=64k --numjobs=2 --filename=f --randrepeat=0", &[]),
    case(
        "--size=128k --bs=4k --ioengine=null --name=a --rw=write --description=words --name=b --stonewall --rw=read --name=c \
         --stonewall --rw=randtrim --name=d --new_group",
        &[],
    ),
    case("--name=a --filename=f --rw=randrw --bs=4k --size=256k --unified_rw_reporting=mixed", &[]),
    case(
        "--name=a --filename=f --rw=randrw --bs=4k --size=256k --unified_rw_reporting=both",
        &[
            Fios("  mixed: IOPS=#, BW=N (N)(#B/Nmsec)", "fio forgets unit and IOPS of the sum"),
            Ours("  mixed: IOPS=#, BW=#iB/s (#kB/s)(#iB/Nmsec)", "fio forgets unit and IOPS of the sum"),
        ],
    ),
    case("--name=a --rw=write --bs=4k --size=128k --fsync=4", &SYNCED),
    case("--name=a --rw=write --bs=4k --size=128k --fdatasync=1 --end_fsync=1", &SYNCED),
    case(
        "--name=a --rw=write --bs=4k --size=128k --fsync_on_close=1",
        &[
            Ours("  fsync/fdatasync/sync_file_range/syncfs:", UNSEEN),
            Ours("    sync (#): min=#, max=#, avg=#, stdev=#", UNSEEN),
            Ours("    sync percentiles (#):", UNSEEN),
            Ours("          \"percentile\" : {", UNSEEN),
            Ours("            \"1.000000\" : N", UNSEEN),
            Ours("            \"5.000000\" : N", UNSEEN),
            Ours("            \"10.000000\" : N", UNSEEN),
            Ours("            \"20.000000\" : N", UNSEEN),
            Ours("            \"30.000000\" : N", UNSEEN),
            Ours("            \"40.000000\" : N", UNSEEN),
            Ours("            \"50.000000\" : N", UNSEEN),
            Ours("            \"60.000000\" : N", UNSEEN),
            Ours("            \"70.000000\" : N", UNSEEN),
            Ours("            \"80.000000\" : N", UNSEEN),
            Ours("            \"90.000000\" : N", UNSEEN),
            Ours("            \"95.000000\" : N", UNSEEN),
            Ours("            \"99.000000\" : N", UNSEEN),
            Ours("            \"99.500000\" : N", UNSEEN),
            Ours("            \"99.900000\" : N", UNSEEN),
            Ours("            \"99.950000\" : N", UNSEEN),
            Ours("            \"99.990000\" : N", UNSEEN),
            Ours("          }", UNSEEN),
            Ours("          \"bins\" : {", UNSEEN),
            Ours("          }", UNSEEN),
            Ours(
                "percentiles 1.00 5.00 10.00 20.00 30.00 40.00 50.00 60.00 70.00 80.00 90.00 95.00 99.00 99.50 99.90 99.95 99.99",
                UNSEEN,
            ),
        ],
    ),
    case("--name=a --rw=randrw --bs=4k --size=256k --gtod_reduce=1 --filename=f", &[]),
    case("--name=a --ioengine=libaio --rw=read --bs=4k --size=64k --disable_lat=1 --disable_slat=1 --filename=f", &[]),
    case("--name=a --ioengine=libaio --rw=read --bs=4k --size=64k --disable_clat=1 --filename=f", &[]),
    case("--name=a --rw=read --bs=4k --size=64k --disable_bw_measurement=1 --disk_util=0 --filename=f", &[]),
    case(
        "--name=a --ioengine=libaio --rw=randrw --bs=4k --size=256k --lat_percentiles=1 --slat_percentiles=1 --filename=f",
        &[],
    ),
    case("--name=a --rw=write --bs=4k --size=64k --clat_percentiles=0 --lat_percentiles=1 --fsync=8", &SYNCED),
    case("--name=a --rw=write --bs=4k --size=64k --clat_percentiles=0 --fsync=8", &SYNCED),
    case("--name=a --rw=read --bs=4k --size=256k --percentile_list=50:99:99.99999 --filename=f", &[]),
    case("--name=a --rw=read --bsrange=4k-16k --size=256k --continue_on_error=all --filename=f", &[]),
    case(
        "--name=a --rw=read --bs=4k --size=64k --zonemode=strided --zonerange=64k --zonesize=16k --zoneskip=0 --filename=f",
        &[],
    ),
    case("job.fio", &[]),
    // Reads of `verify` count as reads.
    case("--name=a --ioengine=libaio --iodepth=4 --rw=write --bs=4k --size=64k --verify=crc32c", &[]),
    case("--name=a --rw=randrw --bs=4k --size=256k --verify=md5 --verify_backlog=8", &[]),
    case("--name=a --ioengine=mmap --rw=read --bs=4k --size=64k --filename=f --pre_read=1", &[]),
    case("--name=a --rw=write --bs=4k --size=64k --fill_device=1 --description=words", &[]),
    case("--name=a --ioengine=null --rw=read --bs=4k --size=1m --kb_base=1000", &[]),
    case("--name=a --ioengine=null --rw=read --bs=4k --kb_base=1000 --size=1m --unit_base=1", &[]),
    // The last job of a group sets its units.
    case("--ioengine=null --rw=read --bs=4k --name=a --size=1m --name=b --kb_base=1000 --size=1m", &[]),
    case("--ioengine=null --rw=read --bs=4k --name=a --kb_base=1000 --size=1m --name=b --size=1m", &[]),
];

/// A job file whose options fio prints in another order.
const JOB_FILE: &str = "\
; a comment
[global]
filename=f
ioengine=null
unit_base=8
size=256k
blocksize=4K
kb_base=1024
description=a \"quoted\" word
readwrite=randrw

[one]
filename=g:h
iodepth_batch_submit=1
iodepth=2

[a/b c]
stonewall
name=other
buffered=1
directory=.
";

/// The outputs of both programs for one job.
struct Pair {
    fios: String,
    ours: String,
}

/// Runs both, each in a directory of its own in memory, with a file `f` of 1 MiB; both succeed. `None` without fio.
fn both(sandbox: &Sandbox, line: &str) -> Option<Pair> {
    let ran = both_ran(sandbox, line)?;
    for ran in &ran {
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}\n{}", ran.out);
    }
    let [fios, ours] = ran.map(|ran| ran.out);
    Some(Pair { fios, ours })
}

/// Runs both, which may fail: fio, and ours.
fn both_ran(sandbox: &Sandbox, line: &str) -> Option<[Ran; 2]> {
    both_in(sandbox, line, |_| ()).map(|both| both.map(|(ran, ())| ran))
}

/// Runs both, and calls `look` on the directory of each.
fn both_in<T>(sandbox: &Sandbox, line: &str, look: impl Fn(&Path) -> T) -> Option<[(Ran, T); 2]> {
    let run = |mut command: Command| {
        let directory = tempfile::tempdir_in("/dev/shm").expect("a directory");
        fs::write(directory.path().join("f"), vec![0x5a; 1 << 20]).expect("a file");
        fs::write(directory.path().join("job.fio"), JOB_FILE).expect("a job file");
        let ran = Ran::of(command.current_dir(directory.path()).output().expect("it starts"));
        let seen = look(directory.path());
        (ran, seen)
    };
    let fios = run(real_fio(sandbox, line)?);
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    Some([fios, run(sandbox.command(&words))])
}

/// The findings of all cases.
#[derive(Default)]
struct Findings {
    /// Differences that are not listed, and listed ones that did not occur.
    complaints: String,
    /// All differences.
    seen: Vec<String>,
}

impl Findings {
    fn add(&mut self, line: &str, fios: &[String], ours: &[String], known: &[Known]) {
        let differences = differences(fios, ours);
        let is_known = |line: &String| EVERYWHERE.iter().chain(known).any(|known| known.is_of(line));
        let unknown: Vec<&String> = differences.iter().filter(|line| !is_known(line)).collect();
        let mut gone = missing(known, &differences);
        for one in known.iter().filter(|known| !known.is_many()) {
            let (Fios(line, _) | Ours(line, _)) = *one;
            let named = known
                .iter()
                .filter(|other| matches!((one, other), (Fios(..), Fios(l, _)) | (Ours(..), Ours(l, _)) if *l == line));
            let (named, found) = (named.count(), differences.iter().filter(|line| one.is_of(line)).count());
            if found > named {
                gone.push(format!("{found} times, and named {named} times: {line}"));
            }
        }
        if !unknown.is_empty() || !gone.is_empty() {
            let _ = writeln!(self.complaints, "{line}");
        }
        for line in unknown.into_iter().chain(&gone) {
            let _ = writeln!(self.complaints, "    {line}");
        }
        self.seen.extend(differences);
    }

    fn end(self) {
        assert!(self.complaints.is_empty(), "{}", self.complaints);
    }
}

/// Returns the known differences that are not among these.
fn missing(known: &[Known], differences: &[String]) -> Vec<String> {
    let gone = known.iter().filter(|known| !differences.iter().any(|line| known.is_of(line)));
    let text = |known: &Known| match known {
        Fios(part, reason) | Ours(part, reason) => format!("no difference any more: {part} ({reason})"),
    };
    gone.map(text).collect()
}

/// Lines that only one of them has, after the longest common sequence: `-` fio's, `+` ours.
fn differences(fios: &[String], ours: &[String]) -> Vec<String> {
    let mut longest = vec![vec![0u32; ours.len() + 1]; fios.len() + 1];
    for i in (0..fios.len()).rev() {
        for j in (0..ours.len()).rev() {
            longest[i][j] =
                if fios[i] == ours[j] { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while i < fios.len() || j < ours.len() {
        if i < fios.len() && j < ours.len() && fios[i] == ours[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == ours.len() || (i < fios.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            found.push(format!("-{}", fios[i]));
            i += 1;
        } else {
            found.push(format!("+{}", ours[j]));
            j += 1;
        }
    }
    found
}

/// The three documents of a run that printed all: terse lines, JSON, normal text.
fn parts(text: &str) -> [Vec<&str>; 3] {
    let lines: Vec<&str> = text.lines().collect();
    let at = |mark: &str| lines.iter().position(|line| *line == mark).unwrap_or_else(|| panic!("no {mark}: {text}"));
    let (begin, end) = (at("{"), at("}"));
    // fio prints lines for each job before all results.
    let first = lines.iter().position(|line| line.split(';').count() > 50).expect("a terse line");
    [lines[first..begin].to_vec(), lines[begin..=end].to_vec(), lines[end + 1..].to_vec()]
}

/// Replaces numbers by `N`, with the number of decimal places: `N.2`.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = digits(rest);
        if whole == 0 {
            masked.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        rest = &rest[whole..];
        masked.push('N');
        if let Some(fraction) = rest.strip_prefix('.').map(digits).filter(|count| *count > 0) {
            let _ = write!(masked, ".{fraction}");
            rest = &rest[1 + fraction..];
        }
    }
    masked
}

/// Returns JSON by lines: keys, kinds of numbers, words; of buckets only whether their names are fio's middles.
fn json(lines: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut bins = false;
    // Only ours has this, at the end.
    for line in lines.iter().take_while(|line| !line.starts_with("  \"trueio\"")) {
        let line = line.trim_end_matches(',');
        let Some((key, value)) = line.split_once(" : ") else {
            bins &= !line.trim_start().starts_with('}');
            // Lists of steady spans have no fixed length.
            let is_number = !line.trim().is_empty() && line.trim().bytes().all(|b| b.is_ascii_digit());
            if !is_number {
                found.push(line.to_owned());
            }
            continue;
        };
        if bins {
            let middle: u64 = key.trim().trim_matches('"').parse().unwrap_or_else(|e| panic!("{line}: {e}"));
            assert_eq!(trueio_fio::outputs::bucket_middle(middle), middle, "{line}");
            assert!(value.bytes().all(|b| b.is_ascii_digit()), "{line}");
            continue;
        }
        bins = key.trim() == "\"bins\"";
        let is_measured = ["\"time\"", "\"fio version\"", "\"criterion\""].contains(&key.trim());
        let value = if is_measured || !value.starts_with('"') { masked(value) } else { value.to_owned() };
        found.push(format!("{key} : {}", if key.trim() == "\"time\"" { "DATE" } else { &value }));
    }
    if found.last().is_some_and(|line| line == "}") {
        found.pop();
    }
    found
}

/// Terse fields, one each; the first percentiles by name.
fn terse(lines: &[&str]) -> Vec<String> {
    let field = |(position, field): (usize, &str)| {
        let value = match field.split_once("%=") {
            Some((percent, value)) => format!("{percent}%={}", masked(value)),
            None => masked(field),
        };
        format!("field {}: {value}", position + 1)
    };
    lines.iter().flat_map(|line| line.split(';').enumerate().map(field)).collect()
}

/// Returns normal text without parts that depend on measured times: units, prefixes, classes of latencies. `has_samples`: the
/// jobs run long enough for samples of bandwidth.
fn normal(lines: &[&str], has_samples: bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in lines {
        let is_evidence = line.starts_with("     trueio    :") || line.starts_with(&" ".repeat(17));
        let is_class = ["  lat (nsec)", "  lat (usec)", "  lat (msec)"].iter().any(|head| line.starts_with(head));
        // So do the lines of samples, unless samples are certain.
        let is_sample = ["   bw (", "   iops        :"].iter().any(|head| line.starts_with(head));
        if is_evidence || is_class || (is_sample && !has_samples) {
            continue;
        }
        // A table of percentiles becomes one line with its percents.
        if let Some(cells) = line.strip_prefix("     |") {
            let percents = cells.split(',').filter_map(|cell| Some(cell.split_once("th=[")?.0.trim().to_owned()));
            let percents = percents.collect::<Vec<_>>().join(" ");
            match found.last_mut().filter(|last| last.starts_with("percentiles ")) {
                Some(last) => *last = format!("{last} {percents}"),
                None => found.push(format!("percentiles {percents}")),
            }
            continue;
        }
        found.push(line_of_text(line));
    }
    found
}

fn line_of_text(line: &str) -> String {
    let mut text = match line.split_once(": pid=") {
        Some((head, _)) => masked(&format!("{head}: PID DATE")),
        None => masked(line),
    };
    for unit in ["nsec", "usec", "msec"] {
        text = text
            .replace(&format!("({unit}): min="), "(#): min=")
            .replace(&format!("percentiles ({unit})"), "percentiles (#)");
    }
    // Prefixes are masked, but not whether they are binary, nor bytes and bits.
    for (unit, kind) in
        [("  KiB", "iB"), ("  MiB", "iB"), ("   kB", "B"), ("Kibit", "ibit"), ("Mibit", "ibit"), (" kbit", "bit")]
    {
        text = text.replace(&format!("bw ({unit}/s)"), &format!("bw (#{kind}/s)"));
    }
    for key in ["min=", "max=", "avg=", "stdev=", "IOPS=", "iops=", "attained="] {
        text = blanked(&text, key);
    }
    // `N.1KiB`, `N.2MiB` are one, and `N.1kB`, `NMB`, and so bits.
    for digits in ["N.3", "N.2", "N.1", "N"] {
        for (prefixes, mask) in [(["Ki", "Mi", "Gi", "Ti"], "#i"), (["k", "M", "G", "T"], "#k")] {
            for unit in ["B", "bit"] {
                for prefix in prefixes {
                    text = text.replace(&format!("{digits}{prefix}{unit}"), &format!("{mask}{unit}"));
                }
            }
        }
        text = text.replace(&format!("{digits}B"), "#B");
    }
    text
}

/// Replaces the text after each `key`, up to a comma or the end, by `#`.
fn blanked(text: &str, key: &str) -> String {
    let mut pieces = text.split(key);
    let mut blanked = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(',').unwrap_or(piece.len());
        let _ = write!(blanked, "{key}#{}", &piece[end..]);
    }
    blanked
}

/// Checks that the document is valid JSON.
fn assert_is_json(lines: &[&str]) {
    let text = lines.join("\n");
    serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
}

fn has_shared_memory() -> bool {
    let is_there = Path::new("/dev/shm").is_dir();
    if !is_there {
        eprintln!("skipped: there is no /dev/shm");
    }
    is_there
}

/// Compares all formats of some cases; `None` without an installed fio or shared memory.
fn compare(cases: &[Case]) -> Option<Findings> {
    if !has_shared_memory() {
        return None;
    }
    let sandbox = Sandbox::new();
    let mut findings = Findings::default();
    for case in cases {
        let pair = both(&sandbox, &format!("--output-format=json+,terse,normal {}", case.line))?;
        let (fios, ours) = (parts(&pair.fios), parts(&pair.ours));
        assert_is_json(&ours[1]);
        let lines = |parts: &[Vec<&str>; 3]| {
            [terse(&parts[0]), json(&parts[1]), normal(&parts[2], case.line.contains("--runtime"))].concat()
        };
        findings.add(case.line, &lines(&fios), &lines(&ours), case.known);
    }
    Some(findings)
}

#[test]
fn all_formats_of_many_jobs_have_fios_lines_keys_and_fields() {
    let Some(findings) = compare(CASES) else { return };
    // Each general difference occurs in some case; the others occur in jobs that run for a while.
    let gone = missing(EVERYWHERE, &findings.seen);
    assert_eq!(gone.iter().filter(|line| !line.contains("time_based")).count(), 0, "{gone:?}");
    findings.end();
}

/// Goal: the same for jobs whose results need a second.
#[test]
fn long_jobs_have_fios_lines_too() {
    let findings = compare(&[
        case(
            "--name=a --ioengine=null --rw=randrw --bs=4k --size=1g --time_based --runtime=1300ms --ramp_time=200ms \
             --group_reporting --numjobs=2 --kb_base=1000 --thinktime=1ms",
            &[],
        ),
        case(
            "--name=a --ioengine=null --rw=randrw --bs=4k --size=1g --time_based --runtime=1300ms --thinktime=1ms --kb_base=1000 \
             --unit_base=1",
            &[Fios("   bw (#B/s): min=#*", BITS), Ours("   bw (#bit/s): min=#*", BITS)],
        ),
        case(
            "--name=a --ioengine=null --rw=randrw --bs=4k --size=1g --time_based --runtime=1300ms --thinktime=1ms --unit_base=1",
            &[Fios("   bw (#iB/s): min=#*", BITS), Ours("   bw (#ibit/s): min=#*", BITS)],
        ),
        case(
            "--name=a --ioengine=null --rw=read --bs=4k --size=1g --runtime=3 --time_based --ss=iops:90% --ss_dur=2",
            &[],
        ),
        case(
            "--idle-prof=percpu --name=a --ioengine=libaio --rw=randread --bs=4k --size=1m --filename=f --latency_target=10ms \
             --latency_window=100ms --latency_percentile=90 --iodepth=8 --runtime=1 --time_based",
            &[],
        ),
    ]);
    if let Some(findings) = findings {
        findings.end();
    }
}

/// Goal: each terse version has fio's fields, and normal text alone its first lines.
#[test]
fn terse_versions_and_the_lines_before_normal_text_are_fios() {
    if !has_shared_memory() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut findings = Findings::default();
    for job in [
        "--name=a --ioengine=null --rw=randtrim --bs=4k --size=64k --description=words",
        "--name=a --ioengine=null --rw=randrw --bs=4k --size=64k --unified_rw_reporting=mixed --continue_on_error=all",
        "--name=a --ioengine=null --rw=randrw --bs=4k --size=64k --unified_rw_reporting=both --lat_percentiles=1",
        "--name=a --filename=f --rw=read --bs=4k --size=64k --gtod_reduce=1 --group_reporting --numjobs=2",
    ] {
        for version in [2, 4, 5] {
            let line = format!("{job} --output-format=terse --terse-version={version}");
            let Some(pair) = both(&sandbox, &line) else { return };
            // fio writes other lines before these.
            let lines = |text: &str| -> Vec<String> {
                let from = text.find(&format!("{version};")).unwrap_or_else(|| panic!("{line}: {text}"));
                terse(&text[from..].lines().collect::<Vec<_>>())
            };
            findings.add(&line, &lines(&pair.fios), &lines(&pair.ours), &[]);
        }
    }
    // Lines before the results are printed only if normal text is the only format.
    const STARTED: [Known; 2] =
        [Fios("Starting N process*", "workers are threads"), Ours("Starting N thread*", "workers are threads")];
    const FLUSHED: &str = "fio does not count the flush at the end";
    let flushed = ["  fsync/fdatasync*", "    sync *", "percentiles 1.00*"].map(|part| Ours(part, FLUSHED));
    for (job, known) in [
        ("--name=a --ioengine=libaio --iodepth=4 --rw=randread --bs=4k --size=64k --numjobs=3 --filename=f", &[][..]),
        ("--name=a --ioengine=null --rw=trimwrite --bsrange=4k-8k --size=64k", &[]),
        ("--name=b --rw=randrw --bs=4k,8k --size=64k", &[PREPARED]),
        ("--name=a --rw=write --bs=4k,8k --size=64k --end_fsync=1", &[&[PREPARED], &flushed[..]].concat()),
    ] {
        let Some(pair) = both(&sandbox, job) else { return };
        let lines = |text: &str| normal(&text.lines().collect::<Vec<_>>(), false);
        findings.add(job, &lines(&pair.fios), &lines(&pair.ours), &[&STARTED, known].concat());
    }
    findings.end();
}

/// Goal: disks and errors are printed as fio prints them.
/// Method: a loop device, and one whose backing file is on a tmpfs with too little space.
#[test]
fn disks_and_failed_jobs_are_printed_in_fios_lines() {
    if !has_shared_memory() || lacks("loop") || lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Loop::new(&sandbox, "disk.img", 8 << 20);
    let small = Mount::tmpfs(&sandbox, "small", "64k");
    let backing = small.path.join("image");
    fs::File::create(&backing).and_then(|file| file.set_len(4 << 20)).expect("a sparse file");
    let full = Loop::over(&backing, &[]);
    let sectors = [
        Ours("      \"read_sectors\" : N", NEWER),
        Ours("      \"write_sectors\" : N", NEWER),
        Ours("*ios=N/N, sectors=N/N, merge=", NEWER),
        Fios("*ios=N/N, merge=", NEWER),
    ];
    const WORDS: &str = "fio names a place in its source";
    const REASON: &str = "the reason of a failed run is printed once more";
    let errors =
        [Fios("*(groupid=N, jobs=N): err=N (file:", WORDS), Ours("*(groupid=N, jobs=N): err=N (error=No space", WORDS)];
    let reason = [Ours("trueio: the run was failed: job `a`: a write of*", REASON), Ours("", REASON)];
    let (disk, full) = (&disk.device, format!("--filename={} --direct=1 --rw=write --bs=64k --size=1m", full.device));
    let mut findings = Findings::default();
    for (line, code, known) in [
        (
            format!("--name=a --filename={disk} --ioengine=libaio --direct=1 --rw=randread --bs=4k --size=256k"),
            0,
            vec![],
        ),
        (
            format!(
                "--name=a --filename={disk} --direct=1 --rw=write --bs=4k --size=64k --name=b --stonewall --rw=trim --filename={disk}"
            ),
            0,
            vec![],
        ),
        (format!("--name=a {full}"), 1, [errors, reason].concat()),
        (format!("--name=a {full} --continue_on_error=all"), 1, [errors, reason].concat()),
        (format!("--name=a {full} --ignore_error=,EIO:ENOSPC"), 0, errors.to_vec()),
    ] {
        let Some(ran) = both_ran(&sandbox, &format!("--output-format=json+,terse,normal {line}")) else { return };
        for ran in &ran {
            assert_eq!((ran.code, ran.err.is_empty()), (Some(code), code == 0), "{line}: {ran:?}");
        }
        let [fios, ours] = ran.each_ref().map(|ran| {
            let [lines, document, text] = parts(&ran.out);
            [terse(&lines), json(&document), normal(&text, false)].concat()
        });
        findings.add(&line, &fios, &ours, &[sectors.to_vec(), known].concat());
    }
    findings.end();
}

/// Returns the name of each log and its kinds of lines. Only the columns direction, block size and priority count.
fn shapes(directory: &Path, has_offsets: bool) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let name = entry.file_name().into_string().expect("UTF-8");
        if !name.ends_with(".log") {
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a log");
        let shape = |line: &str| {
            let columns: Vec<&str> = line.split(", ").collect();
            assert!(
                columns.iter().all(|column| column.bytes().all(|b| b.is_ascii_hexdigit() || b == b'x')),
                "{name}: {line}"
            );
            if name.contains("hist") {
                return format!("{} columns, {}, {}", columns.len(), columns[1], columns[2]);
            }
            let rest = columns[2..].iter().enumerate();
            let rest = rest.map(|(i, column)| if i == 2 && has_offsets { "OFFSET" } else { column });
            format!("TIME VALUE {}", rest.collect::<Vec<_>>().join(" "))
        };
        let kinds: std::collections::BTreeSet<String> = text.lines().map(shape).collect();
        found.push(format!("{name}: {}", kinds.into_iter().collect::<Vec<_>>().join("; ")));
    }
    found.sort();
    found
}

/// Goal: the same logs, with the same columns, directions, sizes and priorities.
#[test]
fn logs_have_fios_names_and_columns() {
    if !has_shared_memory() {
        return;
    }
    let sandbox = Sandbox::new();
    let all = "--write_bw_log=x --write_iops_log=x --write_lat_log=x --output=o";
    let long = "--name=a --ioengine=null --rw=randrw --bs=4k --size=1g --time_based --runtime=700ms --output=o";
    for line in [
        format!("--name=a --ioengine=null --iodepth=4 --rw=randrw --bs=4k --size=256k {all}"),
        format!(
            "--name=a --filename=f --ioengine=libaio --iodepth=4 --rw=randrw --bs=4k --size=256k {all} --log_offset=1"
        ),
        format!("--name=a --filename=f --rw=write --bs=4k --size=64k --fsync=2 {all} --log_unix_epoch=1"),
        format!("--name=a --ioengine=null --rw=randtrim --bs=4k --size=64k {all} --name=b --size=64k --rw=write"),
        format!("--name=a --ioengine=null --rw=randread --bs=4k --size=64k --numjobs=2 {all} --per_job_logs=0"),
        format!("--name=a --ioengine=null --rw=randread --bs=4k --size=64k --numjobs=2 --group_reporting {all}"),
        format!(
            "--name=a --filename=f --ioengine=libaio --rw=read --bs=4k --size=64k {all} --log_prio=1 --prio=3 --prioclass=2"
        ),
        format!("--name=a --ioengine=null --rw=randrw --bs=4k --size=64k --unified_rw_reporting=1 {all}"),
        format!("--name=a --ioengine=null --iodepth=4 --rw=read --bs=4k --size=64k {all} --disable_lat=1"),
        format!(
            "--name=a --ioengine=null --iodepth=4 --rw=read --bs=4k --size=64k {all} --disable_slat=1 --disable_clat=1"
        ),
        format!("{long} {all} --log_avg_msec=100"),
        format!("{long} {all} --log_avg_msec=100 --log_max_value=1 --log_offset=1"),
        format!("{long} --write_hist_log=x --log_hist_msec=200 --log_hist_coarseness=3"),
        format!("{long} --write_hist_log=x --log_hist_msec=200"),
    ] {
        let look = |directory: &Path| shapes(directory, line.contains("--log_offset"));
        let Some([fios, ours]) = both_in(&sandbox, &line, look) else { return };
        assert_eq!((fios.0.code, ours.0.code, ours.0.err.as_str()), (Some(0), Some(0), ""), "{line}");
        assert!(!fios.1.is_empty(), "{line}");
        assert_eq!(fios.1, ours.1, "fio's, ours: {line}");
    }
}
