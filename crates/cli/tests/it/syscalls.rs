//! `--trace-syscalls` and `--strace` through the program: what an engine calls, counted exactly.

use crate::common::*;
use std::process::Stdio;
use trueio_model::{Outcome, PhaseRecord, RunRecord, SyscallIo, SyscallPlaces, SyscallRow, SyscallTrace};

/// Blocks of each job here: 8 MiB of 4 KiB.
const BLOCKS: u64 = 2048;

/// True if calls cannot be recorded here.
fn lacks_tracing() -> bool {
    lacks("root") || lacks("tracing")
}

fn run(sandbox: &Sandbox, flags: &str) -> (Ran, RunRecord) {
    let job = "run --no-history --no-evidence --bs 4k --size 8m";
    let arguments: Vec<&str> = job.split_whitespace().chain(flags.split_whitespace()).collect();
    let (ran, record) = sandbox.record(&arguments);
    ran.assert_code(0);
    (ran, record)
}

#[track_caller]
fn traced(phase: &PhaseRecord) -> &SyscallTrace {
    let trace = phase.syscalls.as_ref().expect("it was asked for");
    assert_eq!((&trace.missing, trace.lost_event_count), (&None, 0));
    trace
}

#[track_caller]
fn only<'a>(trace: &'a SyscallTrace, name: &str) -> &'a SyscallRow {
    let rows: Vec<_> = trace.calls(name).collect();
    assert_eq!(rows.len(), 1, "{name}: {trace:#?}");
    rows[0]
}

#[track_caller]
fn io(call: &SyscallRow) -> (&SyscallIo, SyscallPlaces) {
    let io = call.io.as_ref().expect("I/O");
    (io, io.places.expect("places"))
}

/// Goal: what is shown is what the engine did, all of it.
/// Method: jobs of 2,048 blocks; every call of the engine's kind is counted, with size, offset and flags.
#[test]
fn each_engines_calls_are_counted_one_by_one() {
    if lacks_tracing() {
        return;
    }
    let sandbox = Sandbox::new();
    let trace = |flags: &str| {
        let (_, record) = run(&sandbox, &format!("--trace-syscalls {flags}"));
        traced(&record.phases[0]).clone()
    };

    let psync = trace("--ioengine psync --rw randwrite --direct 1 --fdatasync 64 --end_fsync=1");
    let write = only(&psync, "pwrite64");
    assert_eq!((write.count, write.error_count(), write.latency.count()), (BLOCKS, 0, BLOCKS));
    let (of_write, places) = io(write);
    assert_eq!(of_write.asked.counts, [(4096, BLOCKS)]);
    assert_eq!(of_write.returned.counts, [(4096, BLOCKS)]);
    assert_eq!(of_write.opened, [("O_RDWR|O_DIRECT".to_owned(), BLOCKS)]);
    assert_eq!((places.placed_count, places.unique_count), (BLOCKS, BLOCKS));
    assert_eq!((places.begin_bytes, places.end_bytes), (0, 8 << 20));
    assert!(places.sequential_count < BLOCKS / 8, "{places:?}");
    assert_eq!((psync.count("fdatasync"), psync.count("fsync")), (BLOCKS / 64, 1));
    assert!(psync.calls("fsync").all(SyscallRow::is_flush));
    assert_eq!((psync.count("lseek"), psync.count("write"), psync.count("read")), (0, 0, 0));

    // fio's `sync` seeks only if the position differs.
    let sync = trace("--ioengine sync --rw randwrite --direct 1 --sync dsync");
    let (of_write, places) = io(only(&sync, "write"));
    assert_eq!(of_write.opened, [("O_RDWR|O_DIRECT|O_DSYNC".to_owned(), BLOCKS)]);
    assert_eq!((places.placed_count, places.unique_count), (BLOCKS, BLOCKS));
    assert_eq!(sync.count("lseek"), BLOCKS - places.sequential_count);
    let sync = trace("--ioengine sync --rw write --direct 1");
    let (_, places) = io(only(&sync, "write"));
    assert_eq!((places.following_count, places.sequential_count), (BLOCKS - 1, BLOCKS - 1));
    assert_eq!((sync.count("lseek"), sync.count("pwrite64")), (1, 0));

    let pvsync2 = trace("--ioengine pvsync2 --rw write --direct 1 --rwf_dsync --numjobs 2");
    let (of_write, _) = io(only(&pvsync2, "pwritev2"));
    assert_eq!((of_write.returned.sum, &of_write.flags[..]), (16 << 20, &[("RWF_DSYNC".to_owned(), 2 * BLOCKS)][..]));
    assert_eq!(pvsync2.jobs[0].thread_count, 2);

    // Its I/O is done by threads of its own.
    let posixaio = trace("--ioengine posixaio --rw randwrite --iodepth 4");
    assert_eq!((posixaio.count("pwrite64"), posixaio.jobs[0].thread_count), (BLOCKS, 5));

    let libaio = trace("--ioengine libaio --rw randread --direct 1 --iodepth 4");
    for name in ["io_submit", "io_getevents"] {
        assert_eq!(only(&libaio, name).io.as_ref().expect("I/O").returned.sum, BLOCKS, "{name}");
    }

    let uring = trace("--ioengine io_uring --rw randread --direct 1 --iodepth 4");
    assert_eq!(only(&uring, "io_uring_enter").io.as_ref().expect("I/O").returned.sum, BLOCKS);
}

/// Goal: only the workers of jobs with `trace_syscalls` are recorded.
/// Method: another process, and a job of the same phase without the option, make calls of the same kind
/// all the time.
#[test]
fn calls_of_other_processes_and_of_untraced_jobs_are_not_counted() {
    if lacks_tracing() {
        return;
    }
    let sandbox = Sandbox::new();
    let job = sandbox.write(
        "two.toml",
        "[defaults]\nrw = \"randwrite\"\nbs = \"4k\"\nsize = \"8m\"\nioengine = \"psync\"\n\
         [job.asks]\ntrace_syscalls = true\n[job.does-not]\nbs = \"8k\"\n",
    );
    let mut other = std::process::Command::new("dd");
    other.args(["if=/dev/zero", "of=/dev/null", "bs=4096"]).stderr(Stdio::null());
    let other = Running::start(&mut other);
    let page = sandbox.aside("page.html");
    let names = [&job, &page].map(|path| path.to_str().expect("UTF-8"));
    let (ran, record) = sandbox.record(&["run", "--no-history", names[0], "--html", names[1]]);
    drop(other);
    ran.assert_code(0);
    let trace = traced(&record.phases[0]);
    assert_eq!(trace.jobs.len(), 1);
    assert_eq!(trace.jobs[0].name, "asks");
    assert_eq!((trace.count("pwrite64"), trace.count("write"), trace.count("read")), (BLOCKS, 0, 0));
    assert_eq!(only(trace, "pwrite64").io.as_ref().expect("I/O").asked.counts, [(4096, BLOCKS)]);
    let text = ran.out_joined();
    assert!(text.contains("System calls asks: all calls of 1 thread in"), "{}", ran.out);
    assert!(text.contains("pwrite64 × 2,048:") && text.contains("requested and returned 4 KiB each"), "{}", ran.out);
    assert!(!text.contains("does-not: every call"), "{}", ran.out);
    let page = std::fs::read_to_string(&page).expect("a page");
    assert!(page.contains("System calls") && page.contains("pwrite64 × 2,048:"), "the page shows them");
}

#[test]
fn calls_are_not_recorded_by_default() {
    let sandbox = Sandbox::new();
    let (ran, record) = run(&sandbox, "--ioengine psync --rw write");
    assert_eq!(record.phases[0].syscalls, None);
    assert!(!ran.out.contains("System calls"), "{}", ran.out);
    assert!(!trueio_report::json(&record).contains("\"syscalls\""));
}

#[test]
fn tracing_without_permission_is_refused_before_anything_is_touched() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if lacks("root") {
        return;
    }
    let sandbox = Sandbox::new();
    std::fs::set_permissions(sandbox.root(), std::fs::Permissions::from_mode(0o777)).expect("a mode");
    let before = sandbox.listing();
    let mut command = sandbox.command(&["run", "--no-history", "--size", "1m", "--rw", "write", "--trace-syscalls"]);
    let Ok(output) = command.uid(65534).gid(65534).output() else {
        eprintln!("skipped: an ordinary user cannot reach the build directory");
        return;
    };
    Ran::of(output).assert_refused(&["its system calls cannot be recorded (`trace_syscalls`)", "only to root"]);
    assert_eq!(sandbox.listing(), before);
}

/// Goal: a job under strace is measured under strace, does the same, and is let go.
/// Method: reads from the page cache take a microsecond; each stop for strace takes several.
#[test]
fn a_job_under_strace_makes_the_same_calls_and_each_takes_longer() {
    if lacks("strace") || lacks_tracing() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 8 << 20);
    let median = |flags: &str| {
        let flags = format!(
            "--filename data --ioengine psync --rw randread --direct 0 --invalidate=0 --trace-syscalls {flags}"
        );
        let (_, record) = run(&sandbox, &flags);
        assert_eq!(record.outcome, Outcome::Complete);
        assert_eq!(only(traced(&record.phases[0]), "pread64").count, BLOCKS);
        let total = &only_job(&record).ops[0].latency.total;
        total.value_at_rank(total.count() / 2).expect("a median")
    };
    let (plain, under) = (median(""), median("--strace"));
    assert!(under > 2 * plain, "median {plain} ns without strace, {under} ns under it");
}

/// Goal: a comparison can measure the cost of recording, and shows the calls, too.
#[test]
fn a_comparison_of_recorded_and_plain_slices_shows_the_calls_of_the_recorded_side() {
    if lacks_tracing() {
        return;
    }
    let sandbox = Sandbox::new();
    let (json, html) = (sandbox.aside("comparison.json"), sandbox.aside("comparison.html"));
    let job = "compare --live --vary trace_syscalls=false,true --rw randread --bs 4k --size 4m --ioengine psync \
               --no-evidence --budget 4s --slice 100ms -v";
    let mut arguments: Vec<&str> = job.split_whitespace().collect();
    let paths = [json.to_str().expect("UTF-8"), html.to_str().expect("UTF-8")];
    arguments.extend(["--json", paths[0], "--html", paths[1]]);
    let ran = sandbox.run(&arguments);
    let text = std::fs::read_to_string(&json).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    let comparison = trueio_report::parse_comparison(&text).expect("a comparison");
    let [plain, recorded] = &comparison.parts[0].sides[..] else { panic!("two sides") };
    assert_eq!(plain.syscalls, None);
    let trace = recorded.syscalls.as_ref().expect("it was asked for");
    assert!(trace.missing.is_none() && trace.count("pread64") > 0, "{trace:?}");
    let text = ran.out_joined();
    assert!(text.contains("System calls of the last slice B "), "{text}");
    assert!(std::fs::read_to_string(&html).expect("a page").contains("pread64 × "), "the page shows them");
}
