//! Signals in the middle of a run: a record with what was measured until then, and no file.

use crate::common::*;
use std::time::{Duration, Instant};
use trueio_model::Outcome;

const LONG_JOB: &[&str] = &[
    "run",
    "--rw",
    "randread",
    "--size",
    "16m",
    "--runtime",
    "60s",
    "--time_based",
    "--no-evidence",
    "--name",
    "long",
];

fn interrupted_by(signal: libc::c_int, name: &str) {
    let sandbox = Sandbox::new();
    let json = sandbox.aside("record.json");
    let mut command = sandbox.command(LONG_JOB);
    let prefix = sandbox.aside("seen");
    let running = Running::start(command.arg("--json").arg(&json).arg("--write_iops_log").arg(&prefix));
    running.wait_for_io(&sandbox.aside("seen_iops.1.log"));
    let sent = Instant::now();
    running.signal(signal);
    let (ran, by_signal) = running.wait();
    assert!(sent.elapsed() < Duration::from_secs(30), "it took {:?}", sent.elapsed());
    assert_eq!(by_signal, None);
    ran.assert_code(1);
    let record = read_record(&json);
    assert_eq!(record.outcome, Outcome::Interrupted { signal: name.to_owned() });
    let job = only_job(&record);
    assert!(job.ops[0].io_count > 0, "what was measured until then is lost");
    assert_every_io_is_recorded(&record);
    assert!(ran.out.contains(&format!("INTERRUPTED by {name}")), "{ran:?}");
    assert_eq!(sandbox.listing(), [""; 0]);
    assert_eq!(sandbox.run(&["history"]).out.lines().count(), 1, "it is not in the history");
}

#[test]
fn sigint_leaves_a_record_and_no_file() {
    interrupted_by(libc::SIGINT, "SIGINT");
}

#[test]
fn sigterm_leaves_a_record_and_no_file() {
    interrupted_by(libc::SIGTERM, "SIGTERM");
}

#[test]
fn sighup_leaves_a_record_and_no_file() {
    interrupted_by(libc::SIGHUP, "SIGHUP");
}

/// Goal: phases that ended before the signal keep their figures, and later ones do not begin.
/// Method: three jobs separated by stonewalls; the signal arrives in the second.
#[test]
fn phases_before_the_interrupt_stay_in_the_record() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "jobs.toml",
        "[defaults]\nsize = \"4m\"\n[job.first]\n[job.second]\nstonewall = true\nruntime = \"60s\"\ntime_based = true\n\
         [job.third]\nstonewall = true\n",
    );
    let before = sandbox.listing();
    let json = sandbox.aside("record.json");
    let mut command = sandbox.command(&["run", "jobs.toml", "--no-history", "--no-evidence", "--json"]);
    let running = Running::start(command.arg(&json));
    running.wait_for_worker("second-0");
    running.signal(libc::SIGINT);
    running.wait().0.assert_code(1);
    let record = read_record(&json);
    let phases: Vec<_> = record.phases.iter().map(|p| (p.name.as_str(), &p.outcome)).collect();
    let interrupted = Outcome::Interrupted { signal: "SIGINT".to_owned() };
    assert_eq!(phases, [("first", &Outcome::Complete), ("second", &interrupted)]);
    assert_eq!(record.outcome, interrupted);
    assert_eq!(sandbox.listing(), before);
}

/// The same of the command that most people stop half way.
#[test]
fn an_interrupted_baseline_prints_and_stores_the_earlier_phases() {
    let sandbox = Sandbox::new();
    let json = sandbox.aside("record.json");
    let mut command = sandbox.command(&["baseline", "--quick", "--no-evidence", ".", "-v", "--json"]);
    let running = Running::start(command.arg(&json));
    running.wait_for_worker("rand-read-4k-q1");
    running.signal(libc::SIGTERM);
    let (ran, _) = running.wait();
    ran.assert_code(1);
    let record = read_record(&json);
    let interrupted = Outcome::Interrupted { signal: "SIGTERM".to_owned() };
    let phases: Vec<_> = record.phases.iter().map(|p| (p.name.as_str(), p.outcome == Outcome::Complete)).collect();
    assert_eq!(phases, [("seq-read-1m", true), ("seq-write-1m", true), ("rand-read-4k-q1", false)]);
    assert_eq!(record.outcome, interrupted);
    assert!(ran.out.contains("seq-write-1m") && ran.out.contains("INTERRUPTED by SIGTERM"), "{ran:?}");
    assert_eq!(sandbox.listing(), [""; 0]);
    assert_eq!(sandbox.run(&["history"]).out.lines().count(), 1, "it is not in the history");
}

#[test]
fn an_interrupt_while_the_test_file_is_written_leaves_a_record_without_phases_and_no_file() {
    let sandbox = Sandbox::new();
    let json = sandbox.aside("record.json");
    let mut command = sandbox.command(&["run", "--rw", "read", "--size", "4g", "--no-history", "--json"]);
    let running = Running::start(command.arg(&json));
    running.wait_for_test_file(8 << 20);
    running.signal(libc::SIGINT);
    let (ran, _) = running.wait();
    ran.assert_code(1);
    let record = read_record(&json);
    assert_eq!(record.outcome, Outcome::Interrupted { signal: "SIGINT".to_owned() });
    assert_eq!(record.phases.len(), 0);
    assert_eq!(sandbox.listing(), [""; 0]);
}

/// A file that is to stay is not left half written under its final name.
#[test]
fn an_interrupt_leaves_no_half_written_file_even_if_files_are_kept() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["run", "--rw", "read", "--size", "4g", "--unlink=false", "--no-history"]);
    let running = Running::start(&mut command);
    let file = sandbox.path("trueio-job-0.dat");
    running.wait_until("a test file", || std::fs::metadata(&file).is_ok_and(|m| m.len() >= 8 << 20));
    running.signal(libc::SIGTERM);
    running.wait().0.assert_code(1);
    assert_eq!(sandbox.listing(), [""; 0]);
}

#[test]
fn a_killed_run_leaves_no_file() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(LONG_JOB);
    let running = Running::start(&mut command);
    running.wait_for_worker("long-0");
    running.signal(libc::SIGKILL);
    assert_eq!(running.wait().1, Some(libc::SIGKILL));
    assert_eq!(sandbox.listing(), [""; 0]);
    assert_eq!(sandbox.run(&["history"]).out, "");
}

/// Goal: a second Ctrl-C ends the program at once.
/// Method: both signals are sent while the program is stopped, so that it meets them together.
/// Which handler runs last, and so gives the exit code, is the kernel's choice.
#[test]
fn a_second_interrupt_ends_the_program_at_once() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(LONG_JOB);
    let running = Running::start(command.args(["--no-history"]));
    running.wait_for_worker("long-0");
    running.signal(libc::SIGSTOP);
    running.signal(libc::SIGTERM);
    running.signal(libc::SIGINT);
    let sent = Instant::now();
    running.signal(libc::SIGCONT);
    let (ran, by_signal) = running.wait();
    assert!(sent.elapsed() < Duration::from_secs(30), "it took {:?}", sent.elapsed());
    assert_eq!((ran.code.is_some_and(|c| c == 130 || c == 143), by_signal), (true, None), "{ran:?}");
    assert_eq!((ran.out.as_str(), sandbox.listing().len()), ("", 0), "{ran:?}");
}

#[test]
fn an_interrupt_ends_a_pause_at_once() {
    let sandbox = Sandbox::new();
    for pause in [["--thinktime", "300s"], ["--startdelay", "300s"], ["--rate", "10"]] {
        let job = ["run", "--size", "4m", "--name", "slow", "--no-history", "--no-evidence"];
        let mut command = sandbox.command(&job);
        let running = Running::start(command.args(pause));
        running.wait_for_worker("slow-0");
        std::thread::sleep(Duration::from_millis(100));
        let sent = Instant::now();
        running.signal(libc::SIGINT);
        let (ran, _) = running.wait();
        assert!(sent.elapsed() < Duration::from_secs(30), "{pause:?} held it up for {:?}", sent.elapsed());
        ran.assert_code(1);
        assert_eq!(sandbox.listing(), [""; 0]);
    }
}

/// Goal: an output name that refers to another file at the end of the run than at its start is not followed.
/// Method: the run reserves the name; while it measures, a link to another file takes the name.
#[test]
fn an_output_whose_name_was_taken_by_a_link_during_the_run_is_kept_next_to_it() {
    let sandbox = Sandbox::new();
    let thesis = sandbox.data_file("thesis.txt", 4096);
    let before = std::fs::read(&thesis).expect("content");
    let json = sandbox.path("record.json");
    let mut command = sandbox.command(LONG_JOB);
    let prefix = sandbox.aside("seen");
    let running = Running::start(command.args(["--json", "record.json", "--write_iops_log"]).arg(&prefix));
    running.wait_for_io(&sandbox.aside("seen_iops.1.log"));
    assert_eq!(std::fs::read(&json).expect("the reserved file"), b"");
    std::fs::remove_file(&json).expect("removed");
    std::os::unix::fs::symlink("thesis.txt", &json).expect("a link");
    running.signal(libc::SIGINT);
    let (ran, _) = running.wait();
    ran.assert_code(1);
    assert!(ran.err.contains("another program replaced it"), "{ran:?}");
    assert_eq!(std::fs::read(&thesis).expect("content"), before);
    let names = std::fs::read_dir(sandbox.root()).expect("the directory").map(|entry| entry.expect("an entry").path());
    let kept = names.into_iter().find(|path| path.extension().is_some_and(|e| e == "tmp")).expect("the record is kept");
    assert_eq!(read_record(&kept).phases.len(), 1);
}
