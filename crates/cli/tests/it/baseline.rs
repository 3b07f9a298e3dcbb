//! `trueio baseline`, as a user with a new disk runs it.

use crate::common::*;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use trueio_model::{CheckOutcome, OpKind, Outcome, RunRecord, Verdict};

struct Whole {
    ran: Ran,
    record: RunRecord,
    page: String,
    /// CSV, Prometheus, Markdown.
    texts: [String; 3],
    left: Vec<String>,
}

/// One `baseline --quick` of a directory, for all tests that only look.
fn whole() -> &'static Whole {
    static WHOLE: OnceLock<Whole> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let sandbox = Sandbox::new();
        let page = sandbox.aside("page.html");
        let files = ["csv", "prom", "markdown"].map(|format| sandbox.aside(&format!("baseline.{format}")));
        let [csv, prom, markdown] = files.each_ref().map(|file| file.to_str().expect("UTF-8"));
        let outputs = ["--html", page.to_str().expect("UTF-8"), "--csv", csv, "--prom", prom, "--markdown", markdown];
        let (ran, record) = sandbox.record(&[&["baseline", "--quick", "."], &outputs[..]].concat());
        let texts = files.map(|file| fs::read_to_string(file).expect("an output"));
        Whole { ran, record, page: fs::read_to_string(page).expect("a page"), texts, left: sandbox.listing() }
    })
}

#[test]
fn a_directory_is_measured_in_eight_phases_and_nothing_is_left() {
    let whole = whole();
    whole.ran.assert_code(0);
    assert_eq!(whole.left, [""; 0]);
    let record = &whole.record;
    assert_eq!((record.kind.as_str(), &record.outcome), ("baseline", &Outcome::Complete));
    let names: Vec<&str> = record.phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "seq-read-1m",
            "seq-write-1m",
            "rand-read-4k-q1",
            "rand-read-4k-q32",
            "rand-write-4k-q1",
            "rand-write-4k-q32",
            "rand-mix-4k-q32",
            "append-4k-fdatasync",
        ]
    );
    for phase in &record.phases {
        assert_eq!(phase.outcome, Outcome::Complete, "{}", phase.name);
        assert!(!phase.checks.is_empty(), "{} was not judged", phase.name);
        let objections =
            phase.checks.iter().filter(|c| matches!(c.outcome, CheckOutcome::Suspect | CheckOutcome::Contradicted));
        assert_eq!(phase.verdict == Verdict::Supported, objections.count() == 0, "{}", phase.name);
        let ios: u64 = phase.jobs.iter().flat_map(|job| &job.ops).map(|op| op.io_count).sum();
        assert!(ios > 0, "{} did nothing", phase.name);
        assert!(phase.jobs.iter().all(|job| !job.series.is_empty()), "{} has no series", phase.name);
    }
}

/// The file's size follows from how fast it can be made here, which in a debug build is slow.
#[test]
fn the_test_file_of_a_quick_baseline_takes_seconds_to_write() {
    let begin_ns = whole().record.phases[0].begin_ns;
    assert!(begin_ns < 60_000_000_000, "the first phase began after {begin_ns} ns");
}

#[test]
fn every_io_of_a_baseline_is_in_its_histograms() {
    assert_every_io_is_recorded(&whole().record);
    for job in whole().record.phases.iter().flat_map(|phase| &phase.jobs) {
        let rows = |of: fn(&trueio_model::SeriesRow) -> u64| job.series.iter().map(of).sum::<u64>();
        let ops = |of: OpKind| job.ops.iter().filter(|op| op.op == of).map(|op| op.io_count).sum::<u64>();
        assert_eq!(rows(|r| r.read_count), ops(OpKind::Read), "{}: reads in the series", job.name);
        assert_eq!(rows(|r| r.write_count), ops(OpKind::Write), "{}: writes in the series", job.name);
    }
}

#[test]
fn a_log_is_flushed_after_every_append_and_writes_are_flushed_once_at_the_end() {
    let phases = &whole().record.phases;
    let (writes, _) = totals(&phases[7], OpKind::Write);
    let (syncs, _) = totals(&phases[7], OpKind::Sync);
    assert!(writes > 0 && (syncs == writes || syncs + 1 == writes), "{writes} writes, {syncs} sync calls");
    for phase in [&phases[1], &phases[4], &phases[5], &phases[6]] {
        assert_eq!(totals(phase, OpKind::Sync).0, 1, "{}", phase.name);
    }
}

#[test]
fn the_page_is_self_contained_and_has_plots() {
    let page = &whole().page;
    assert!(page.contains("<svg"), "no plot");
    for phase in &whole().record.phases {
        assert!(page.contains(&phase.name), "{} is not on the page", phase.name);
    }
    // A namespace is a name, not an address that is fetched.
    let page = page.replace("http://www.w3.org/2000/svg", "").replace("http://www.w3.org/1999/xlink", "");
    for reference in ["http://", "https://", "src=\"//", "@import", "<link"] {
        assert!(!page.contains(reference), "the page refers to `{reference}`");
    }
}

/// Goal: the other formats of a baseline hold the figures of its record. Method: each row, each gauge and each line of the table is
/// looked up; a contradicted load has none.
#[test]
fn csv_prometheus_and_markdown_of_a_baseline_hold_its_figures() {
    let Whole { record, texts: [csv, prom, markdown], .. } = whole();
    let head: Vec<&str> = csv.lines().next().expect("a header").split(',').collect();
    let column = |name: &str| head.iter().position(|known| *known == name).expect("a column");
    let mut rows = csv.lines().skip(1);
    let table: Vec<&str> = markdown.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let mut op_count = 0;
    for phase in &record.phases {
        let is_withheld = phase.verdict == Verdict::Contradicted;
        for job in &phase.jobs {
            // A flush at the end of a job is no row.
            let ops = job.ops.iter().filter(|op| op.op != OpKind::Sync || op.io_count > 1);
            for op in ops {
                let row: Vec<&str> = rows.next().expect("a row for each operation").split(',').collect();
                assert_eq!(
                    (row[column("phase")], row[column("op")]),
                    (phase.name.as_str(), op.op.to_string().as_str())
                );
                assert_eq!(row[column("io_count")], op.io_count.to_string());
                assert_eq!(row[column("ios_per_s")].is_empty(), is_withheld, "{row:?}");
                let labels = format!("job=\"{}\",op=\"{}\"", job.name, op.op);
                let has = |name: &str| prom.lines().any(|line| line.starts_with(name) && line.contains(&labels));
                assert!(has("trueio_confirmed{"), "{labels}: {prom}");
                assert_eq!(has("trueio_operations_per_second{"), !is_withheld, "{labels}: {prom}");
                op_count += 1;
            }
        }
    }
    assert_eq!((rows.next(), op_count, table.len()), (None, 10, 10), "{csv}\n{markdown}");
    assert!(prom.contains("kind=\"baseline\""), "{prom}");
}

#[test]
fn stdout_has_the_table_and_stderr_only_the_path_of_the_page() {
    let ran = &whole().ran;
    for word in ["bandwidth", "IOPS", "p50", "p99.9", "max", "evidence", "seq-read-1m", "append-4k-fdatasync"] {
        assert!(ran.out.contains(word), "`{word}` is missing\n{ran:?}");
    }
    assert!(!ran.out.contains('\x1b'), "colours in a pipe\n{ran:?}");
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines.len(), 1, "{ran:?}");
    assert!(lines[0].starts_with("page: ") && lines[0].ends_with("page.html"), "{ran:?}");
}

/// Goal: a baseline without `--overwrite` does not change an existing target.
/// Method: content, size and times of the file before and after; links to it too.
#[test]
fn an_existing_file_is_only_read() {
    let sandbox = Sandbox::new();
    let path = sandbox.data_file("data.img", 32 << 20);
    let before = (hash(&fs::read(&path).expect("content")), times(&path));
    let (ran, record) = sandbox.record(&["baseline", "--quick", "data.img"]);
    ran.assert_code(0);
    assert_eq!((hash(&fs::read(&path).expect("content")), times(&path)), before);
    assert_eq!(record.phases.len(), 3);
    for phase in &record.phases {
        assert_eq!((totals(phase, OpKind::Write).0, totals(phase, OpKind::Trim).0), (0, 0), "{}", phase.name);
        assert!(totals(phase, OpKind::Read).0 > 0, "{}", phase.name);
    }
    assert!(ran.out_joined().contains("`data.img` exists and is only read"), "{ran:?}");
    assert_eq!(fs::read_dir(sandbox.root()).expect("a directory").count(), 1);
}

/// Size, modification and change times: all but the time of access.
fn times(path: &std::path::Path) -> (u64, i64, i64, i64, i64) {
    let m = fs::metadata(path).expect("metadata");
    (m.size(), m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec())
}

#[test]
fn a_block_device_is_only_read() {
    if lacks("loop") {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk.img", 64 << 20);
    device.make_ext4();
    let before = hash(&fs::read(&device.backing).expect("content"));
    let (ran, record) = sandbox.record(&["baseline", "--quick", &device.device]);
    ran.assert_code(0);
    assert_eq!(hash(&fs::read(&device.backing).expect("content")), before);
    assert_eq!(record.phases.len(), 3);
    assert!(record.phases.iter().all(|phase| totals(phase, OpKind::Write).0 == 0));
}

#[test]
fn overwriting_needs_the_exact_name_of_the_target() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data.img", 16 << 20);
    let before = sandbox.listing();
    for other in ["./data.img", "data.img/", "other.img", "."] {
        let ran = sandbox.run(&["baseline", "--quick", "data.img", "--overwrite", other]);
        ran.assert_refused(&[&format!("--overwrite names `{other}`"), "spelled the same"]);
    }
    sandbox.run(&["baseline", "--quick", ".", "--overwrite", "."]).assert_refused(&["`.` is a directory"]);
    assert_eq!(sandbox.listing(), before);
}

/// Goal: a colon in a target's name does not make two targets of it.
/// Method: the plan is accepted, and the output that comes after it is what is refused.
#[test]
fn a_target_with_a_colon_in_its_name_is_one_target() {
    let sandbox = Sandbox::new();
    sandbox.data_file("a:b", 16 << 20);
    let before = sandbox.listing();
    let ran = sandbox.run(&["baseline", "--quick", "a:b", "--overwrite", "a:b", "--json", "a:b"]);
    ran.assert_refused(&["--json would replace `a:b`"]);
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn missing_targets_and_targets_that_are_no_disk_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.run(&["baseline", "nowhere"]).assert_refused(&["`nowhere` does not exist", "hint: "]);
    sandbox.run(&["baseline", "/dev/null"]).assert_refused(&["`/dev/null` is a character device"]);
    sandbox.write("small", "x");
    sandbox.run(&["baseline", "small"]).assert_refused(&["the size of `small` is 1 B", "at least 16 MiB"]);
    std::os::unix::fs::symlink("gone", sandbox.path("link")).expect("a link");
    sandbox.run(&["baseline", "link"]).assert_refused(&["a symbolic link to nothing"]);
    assert_eq!(sandbox.run(&["history"]).out, "");
}

#[test]
fn a_directory_with_too_little_space_is_refused() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "small", "8m");
    sandbox
        .run(&["baseline", "--quick", "small"])
        .assert_refused(&["`small` has 8 MiB free", "hint: at least 160 MiB"]);
    assert_eq!(listing(&mount.path), [""; 0]);
}

/// tmpfs accepts O_DIRECT since Linux 6.6 and stays in memory: its figures are of memory, and must
/// not be taken for a disk's.
#[test]
fn a_directory_in_memory_is_never_supported_and_the_reason_is_printed() {
    if lacks("tmpfs") {
        return;
    }
    let sandbox = Sandbox::new();
    let mount = Mount::tmpfs(&sandbox, "memory", "200m");
    let json = sandbox.run(&["baseline", "--quick", "memory", "--json", "-"]);
    json.assert_code(0);
    let mut documents = serde_json::Deserializer::from_str(&json.out).into_iter::<serde_json::Value>();
    documents.next().expect("a document").expect("JSON");
    assert!(documents.next().is_none(), "more than one document on stdout");
    let record = trueio_report::parse(&json.out).expect("a record");
    assert_eq!(record.phases.len(), 8);
    for phase in &record.phases {
        assert_ne!(phase.verdict, Verdict::Supported, "{}", phase.name);
        let found = |name: &str| phase.checks.iter().any(|c| c.name == name && c.outcome != CheckOutcome::Passed);
        assert!(found("direct_granted") && found("memory_backed"), "{}", phase.name);
    }
    assert_eq!(json.err, "", "JSON goes to stdout, and nothing else anywhere");
    let talk = sandbox.run(&["report", "-v", &record.id]).out_joined();
    assert!(talk.contains("is in memory") && talk.contains("no disk was measured"), "{json:?}");
    assert_eq!(listing(&mount.path), [""; 0]);
}

/// Goal: loads, their time and the size of the file are chosen by flags. Method: two loads of 0.3 s on a file of 16 MiB, and what does not exist.
#[test]
fn loads_runtime_and_size_are_chosen_by_flags() {
    let sandbox = Sandbox::new();
    let chosen = ["--loads", "rand-write-4k-q1,rand-read-4k-q1", "--runtime", "300ms", "--size", "16m"];
    let (_, record) = sandbox.record(&[&["baseline", "--quick", "."], &chosen[..]].concat());
    let names: Vec<&str> = record.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["rand-read-4k-q1", "rand-write-4k-q1"]);
    for job in &record.plan.jobs {
        assert_eq!((job.limits.runtime_ns, job.files[0].size_bytes), (Some(300_000_000), 16 << 20));
    }
    sandbox
        .run(&["baseline", "--loads", "seq-raed"])
        .assert_refused(&["`seq-raed`", "hint: its loads are seq-read-1m, "]);
    sandbox
        .run(&["baseline", "--size", "1m"])
        .assert_refused(&["a test file of 1 MiB (`--size`) is not possible here", "at least 16 MiB"]);
    // Without the word `baseline`: an option of it, and a path.
    let without = sandbox.run(&["--quick", "--loads", "seq-raed"]);
    without.assert_refused(&["`seq-raed`"]);
    sandbox.run(&["--quik"]).assert_refused(&["did you mean `--quick`?"]);
}

/// Goal: the program alone prints how to start, in about ten lines.
#[test]
fn the_program_alone_prints_how_to_start() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&[]);
    ran.assert_code(0);
    assert!(ran.out.lines().count() <= 10 && ran.out.lines().all(|line| line.chars().count() <= 84), "{}", ran.out);
    for word in ["proves what it measured", "trueio baseline ", "trueio baseline --quick", "trueio run ", "--help"] {
        assert!(ran.out.contains(word), "{}", ran.out);
    }
}
