//! Huge values of options, and limits of the process: each is refused while planning or runs, and none ends the program for
//! lack of memory or threads.

use crate::common::*;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use trueio_job::table::TABLE;
use trueio_job::value::ValueKind;

/// Added to the machine's memory for what a process maps without using it: stacks and libraries.
const MAPPED_BYTES: u64 = 4 << 30;

/// The memory of this machine, in bytes.
fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("MemTotal");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Lets a command map no more than the machine's memory, so that an allocation beyond it fails.
fn limit_memory(command: &mut Command) {
    let bytes = memory_bytes() + MAPPED_BYTES;
    let limit = move || {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: setrlimit is async-signal-safe and reads the structure only.
        match unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(limit) };
}

/// Whether an option's value is a number of things or bytes, so that memory may depend on it. A time only delays or prolongs.
fn is_amount(kind: ValueKind) -> bool {
    matches!(
        kind,
        ValueKind::Bytes
            | ValueKind::BytesRange
            | ValueKind::Extent
            | ValueKind::BlockSizes
            | ValueKind::BlockRanges
            | ValueKind::BlockSplits
            | ValueKind::Count { .. }
            | ValueKind::Integer { .. }
            | ValueKind::BytesEach
            | ValueKind::RateIops
            | ValueKind::RateBytes
    )
}

/// Runs a job of a few milliseconds that transfers nothing, with further options, and returns whether it was accepted.
#[track_caller]
fn runs(sandbox: &Sandbox, base: &[&str], more: &[&str]) -> bool {
    let common = ["run", "--ioengine", "null", "--runtime", "5ms", "--no-history", "--no-evidence"];
    let mut command = sandbox.command(&[&common, base, more].concat());
    limit_memory(&mut command);
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.signal(), None, "{base:?} {more:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}

/// Goal: every allocation that depends on an option is bounded while planning.
/// Method: each option with an amount, at its largest value, at sizes and counts that fit into no memory, and in front of loads
/// that use memory for it: random blocks of several sizes, a set of contents, logs. The process may map
/// no more than the machine has.
#[test]
fn no_huge_value_of_an_option_aborts_the_program() {
    let loads: [&[&str]; 3] = [
        &["--size", "8191p", "--bsrange", "512-64k", "--rw", "randread", "--norandommap=1"],
        &["--size", "64k", "--rw", "randwrite", "--bs", "512", "--dedupe_percentage", "50"],
        &[
            "--size",
            "1g",
            "--rw",
            "randrw",
            "--log_avg_msec=1",
            "--log_hist_msec=1",
            "--write_hist_log",
            "h",
            "--replace",
        ],
    ];
    let sandbox = Sandbox::new();
    let (mut option_count, mut accepted_count) = (0, 0);
    for row in TABLE.iter().filter(|row| is_amount(row.kind)) {
        option_count += 1;
        for value in ["18446744073709551615", "8191p", "4294967295"] {
            let value = match row.kind {
                ValueKind::BytesRange | ValueKind::BlockRanges => format!("512-{value}"),
                ValueKind::BlockSplits => format!("512/50:{value}/50"),
                _ => value.to_owned(),
            };
            for load in loads {
                // A load that sets the option itself has it twice, and the last one counts.
                accepted_count += u32::from(runs(&sandbox, load, &[&format!("--{}", row.name), &value]));
            }
        }
    }
    assert!(option_count > 40, "{option_count} options");
    assert!(accepted_count > 40, "{accepted_count} jobs ran: nothing but refusals shows little");
}

/// The same for amounts that are harmless alone.
#[test]
fn no_product_of_large_values_aborts_the_program() {
    let sandbox = Sandbox::new();
    let refused: [&[&str]; 6] = [
        &["--size", "8191p", "--bsrange", "512-64k", "--rw", "randread"],
        &["--size", "8191p", "--bssplit", "512/50:64k/50", "--rw", "randrw"],
        &["--size", "1t", "--iodepth", "1000000", "--bs", "1m"],
        &["--size", "1t", "--iodepth", "4096", "--numjobs", "4096", "--bs", "1m"],
        &["--size", "1t", "--numjobs", "60000", "--bsrange", "512-64k", "--rw", "randread"],
        &["--size", "8191p", "--bs", "8191p"],
    ];
    for load in refused {
        assert!(!runs(&sandbox, load, &[]), "{load:?}");
    }
    let accepted: [&[&str]; 3] = [
        &["--size", "8191p", "--bsrange", "512-64k", "--rw", "read"],
        &["--size", "8191p", "--bs", "512", "--rw", "randread"],
        &["--size", "1t", "--iodepth", "32768", "--bs", "512"],
    ];
    for load in accepted {
        assert!(runs(&sandbox, load, &[]), "{load:?}");
    }
}

/// Runs jobs of the null engine in a control group; returns the exit code and the message in one line. `None` if there is
/// no such group here.
fn run_in_group(controller: &str, file: (&str, &str), more: &[&str]) -> Option<(Option<i32>, String)> {
    let group = match ControlGroup::create(controller, &[file]) {
        Ok(group) => group,
        Err(why) => {
            println!("skipped: {why}");
            return None;
        }
    };
    let sandbox = Sandbox::new();
    let base = ["run", "--ioengine", "null", "--size", "1g", "--number_ios", "1", "--no-history", "--no-evidence"];
    let mut command = sandbox.command(&[&base, more].concat());
    group.hold(&mut command);
    let ran = Ran::of(command.output().expect("the program starts"));
    Some((ran.code, ran.err.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Goal: more workers than a control group allows threads are refused while planning, with the numbers; as many as it
/// allows run.
#[test]
fn workers_beyond_a_control_groups_threads_are_refused() {
    if lacks("root") {
        return;
    }
    let Some((code, text)) = run_in_group("pids", ("pids.max", "60"), &["--numjobs", "100"]) else { return };
    assert_eq!(code, Some(2), "{text}");
    let expected = "a phase has 100 workers, each a thread, and the control group of this process may have 60 threads, of \
                    which 1 exist; use fewer workers, or raise its `pids.max`";
    assert!(text.contains(expected), "{text}");
    let (code, text) = run_in_group("pids", ("pids.max", "120"), &["--numjobs", "100"]).expect("the group is there");
    assert_eq!(code, Some(0), "{text}");
}

/// Goal: buffers beyond the memory of a control group are refused while planning, instead of being killed later.
#[test]
fn buffers_beyond_a_control_groups_memory_are_refused() {
    if lacks("root") {
        return;
    }
    let memory = ("memory.limit_in_bytes", "67108864");
    let Some((code, text)) = run_in_group("memory", memory, &["--iodepth", "32", "--bs", "4m"]) else { return };
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("need 128 MiB, but only 64 MiB can be used here")
            || text.contains("need 128.1 MiB, but only 64 MiB can be used here"),
        "{text}"
    );
    let (code, text) = run_in_group("memory", memory, &["--iodepth", "8", "--bs", "4m"]).expect("the group is there");
    assert_eq!(code, Some(0), "{text}");
}
