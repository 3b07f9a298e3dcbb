//! Steady state before a measurement, and figures that the evidence does not allow.

use crate::common::*;
use trueio_model::{CheckOutcome, Outcome, Verdict};

/// A modelled disk in virtual time: the same in every round, so steady by construction.
const STEADY: &str = "\
[job.steady]
ioengine = \"simulated\"
simulated = \"service=100us,channels=4\"
rw = \"randread\"
bs = \"4k\"
size = \"64m\"
iodepth = 4
runtime = \"2s\"
time_based = true
steady_state = true
steady_state_round = \"1s\"
";

#[test]
fn a_phase_that_is_steady_is_measured_afresh_after_five_rounds() {
    let sandbox = Sandbox::new();
    sandbox.write("job.toml", STEADY);
    let (ran, record) = sandbox.record(&["run", "job.toml", "--no-history"]);
    ran.assert_code(0);
    let phase = &record.phases[0];
    let state = phase.steady_state.as_ref().expect("rounds");
    assert!(state.is_attained);
    assert_eq!(state.rounds.len(), 5, "the first window that is full");
    for round in &state.rounds {
        assert!((round.ios_per_s - 40_000.0).abs() < 400.0, "{round:?}");
        assert_eq!(round.latency_ns_p99.map(|ns| ns / 1_000), Some(100), "{round:?}");
        assert_eq!(round.elapsed_ns / 1_000_000, 1_000, "{round:?}");
    }
    assert_eq!(phase.jobs[0].elapsed_ns / 1_000_000, 2_000, "what is measured has its own length");
    assert!(ran.out.contains("reached after 5 rounds"), "{}", ran.out);
    let check = phase.checks.iter().find(|check| check.name == "steadiness").expect("a finding");
    assert_eq!(check.outcome, CheckOutcome::Passed, "{check:?}");
}

/// Goal: a phase whose steadiness is unknown is not reported as steady. Method: 20 I/Os a round cannot support a 99th
/// percentile.
#[test]
fn rounds_with_too_few_ios_end_and_the_phase_is_measured_and_suspect() {
    let sandbox = Sandbox::new();
    sandbox.write("job.toml", STEADY);
    let page = sandbox.aside("page.html");
    let page = page.to_str().expect("UTF-8");
    let (ran, record) = sandbox.record(&[
        "run",
        "job.toml",
        "--no-history",
        "--rate_iops",
        "20",
        "--steady_state_rounds",
        "6",
        "--html",
        page,
    ]);
    ran.assert_code(0);
    let phase = &record.phases[0];
    let state = phase.steady_state.as_ref().expect("rounds");
    assert!(!state.is_attained);
    assert_eq!(state.rounds.len(), 6);
    assert_eq!(state.rounds[0].latency_ns_p99, None);
    assert_eq!(phase.verdict, Verdict::Suspect);
    assert_eq!(phase.outcome, Outcome::Complete);
    assert!(ran.out.contains("NOT reached in 6 rounds"), "{}", ran.out);
    assert!(ran.out_joined().contains("use longer rounds"), "{}", ran.out);
    let html = std::fs::read_to_string(page).expect("a page");
    assert!(html.contains("Rounds: IOPS"), "the rounds are drawn");
}

#[test]
fn a_failed_round_ends_the_run_with_its_number() {
    let sandbox = Sandbox::new();
    sandbox.write("job.toml", STEADY.replace("channels=4", "channels=4,fail=300"));
    let (ran, record) = sandbox.record(&["run", "job.toml", "--no-history"]);
    ran.assert_code(1);
    let Outcome::Failed { reason } = &record.outcome else { panic!("{:?}", record.outcome) };
    assert!(reason.contains("steady-state round 1: a read of 4096 bytes"), "{reason}");
    assert!(record.phases[0].jobs[0].ops.iter().all(|op| op.io_count == 0), "nothing was measured");
}

#[test]
fn rounds_on_real_files_repeat_the_job_and_leave_nothing() {
    let sandbox = Sandbox::new();
    let before = sandbox.listing();
    let (ran, record) = sandbox.record(&[
        "run",
        "--rw",
        "randrw",
        "--bs",
        "4k",
        "--size",
        "8m",
        "--runtime",
        "300ms",
        "--time_based",
        "--steady_state",
        "--steady_state_round",
        "200ms",
        "--steady_state_rounds",
        "5",
        "--no-history",
    ]);
    ran.assert_code(0);
    let state = record.phases[0].steady_state.as_ref().expect("rounds");
    assert_eq!(state.rounds.len(), 5);
    assert!(state.rounds.iter().all(|round| round.ios_per_s > 0.0 && round.bytes_per_s > 0.0), "{state:?}");
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn steady_state_is_refused_if_rounds_would_change_the_load() {
    let sandbox = Sandbox::new();
    let flags = ["run", "--size", "8m", "--runtime", "1s", "--time_based", "--steady_state"];
    let refused = |more: &[&str], reason: &str| {
        let ran = sandbox.run(&[&flags[..], more].concat());
        ran.assert_refused(&[]);
        assert!(ran.err.contains(reason), "{}", ran.err);
    };
    refused(&["--rw", "write", "--verify", "crc32c"], "the rounds overwrite the data that would be compared");
    refused(&["--rw", "write", "--fallocate", "none"], "the job extends an empty file");
    refused(&["--rw", "read", "--steady_state_round", "10ms"], "a round shorter than 100 ms");
    sandbox.write(
        "two.toml",
        "[defaults]\nrw = \"read\"\nsize = \"1m\"\nruntime = \"1s\"\ntime_based = true\n[job.a]\nsteady_state = true\n[job.b]\n",
    );
    let ran = sandbox.run(&["run", "two.toml"]);
    ran.assert_refused(&[]);
    assert!(ran.err.contains("become steady together"), "{}", ran.err);
}

/// Goal: a figure that the kernel contradicts is not printed, unless the check is accepted by name.
/// Method: direct reads of a sparse file.
#[test]
fn contradicted_figures_are_withheld_unless_the_check_is_accepted() {
    let sandbox = Sandbox::new();
    let file = std::fs::File::create(sandbox.path("sparse")).expect("a file");
    file.set_len(8 << 20).expect("a length");
    let reads = ["run", "--name", "reads", "--filename", "sparse", "--rw", "randread", "--bs", "4k"];
    let job = [&reads[..], &["--size", "8m", "--no-history"]].concat();
    let (ran, record) = sandbox.record(&job);
    ran.assert_code(1);
    let phase = &record.phases[0];
    assert_eq!(phase.verdict, Verdict::Contradicted);
    let figures = |out: &str| {
        let row =
            out.lines().find_map(|line| line.split_once("  x withheld E").or(line.split_once("  * not the disk E")));
        row.unwrap_or_else(|| panic!("{out}")).0.to_owned()
    };
    let withheld = figures(&ran.out);
    assert!(!withheld.chars().any(|c| c.is_ascii_digit()), "a figure is left: {withheld}");
    assert_eq!(withheld.split_whitespace().filter(|word| *word == "x").count(), 7, "{withheld}");
    let contradicting: Vec<&str> = phase
        .checks
        .iter()
        .filter(|check| check.outcome == CheckOutcome::Contradicted)
        .map(|check| check.name.as_str())
        .collect();
    assert!(contradicting.contains(&"holes"), "{contradicting:?}");
    let accepts: Vec<&str> = contradicting.iter().flat_map(|name| ["--accept", name]).collect();
    let (ran, record) = sandbox.record(&[&job[..], &accepts].concat());
    ran.assert_code(0);
    assert_eq!(record.phases[0].verdict, Verdict::Suspect);
    assert!(ran.out.contains("not the disk, accepted by holes"), "the reason stays\n{}", ran.out);
    assert!(figures(&ran.out).chars().any(|c| c.is_ascii_digit()), "{}", ran.out);
    // A name that is no check is refused, with the names there are.
    let ran = sandbox.run(&[&job[..], &["--accept", "hole"]].concat());
    ran.assert_code(2);
    assert!(ran.err.contains("holes"), "{}", ran.err);
}

/// The jobs of the repository are planned as they stand, and the short form of each runs.
#[test]
fn the_repositorys_jobs_are_planned_and_run() {
    let sandbox = Sandbox::new();
    let jobs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs");
    let mut count = 0;
    for entry in std::fs::read_dir(jobs).expect("a folder of jobs") {
        let path = entry.expect("a job").path();
        let path = path.to_str().expect("UTF-8");
        if path.contains("io500") {
            // Of many files, in directories: `hpc.rs` plans and runs them.
            continue;
        }
        let size =
            ["--filename", "device", "--size", "8m", "--direct", "prefer", "--ioengine", "psync", "--iodepth", "1"];
        let ran = sandbox.run(&[&["explain", path][..], &size].concat());
        ran.assert_code(0);
        let short =
            ["--runtime", "200ms", "--steady_state_round", "100ms", "--steady_state_rounds", "5", "--no-history"];
        let (ran, record) = sandbox.record(&[&["run", path][..], &size, &short].concat());
        assert_eq!(record.outcome, Outcome::Complete, "{path}\n{ran:?}");
        count += 1;
    }
    assert_eq!(count, 2);
}
