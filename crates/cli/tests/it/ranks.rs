//! Runs on several ranks: started by four variables, and by real launchers where they are installed.

use crate::common::*;
use crate::ranks_common::*;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trueio_model::{Cause, Check, CheckOutcome, Outcome, RunRecord};
use trueio_testkit::skip;

/// A short run without I/O.
const NULL: [&str; 8] = ["run", "--ioengine", "null", "--runtime", "300ms", "--time_based", "--no-history", "--json"];

fn null_run(path: &str) -> Vec<&str> {
    [&NULL[..], &[path]].concat()
}

#[test]
fn four_ranks_make_one_record_that_rank_0_writes() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let ran = run_ranks(&sandbox, 4, |_| null_run(path.to_str().expect("UTF-8")));
    for (number, ran) in ran.iter().enumerate() {
        ran.assert_code(0);
        assert_eq!(ran.out.is_empty(), number > 0, "only rank 0 prints: {ran:?}");
    }
    let record = record_at(&sandbox, "record.json");
    assert_sums(&record, 4);
    let cluster = record.cluster.as_ref().expect("several ranks");
    assert_eq!(cluster.launcher, "variables");
    let across = &cluster.phases[0];
    assert_eq!(across.nominal_ns, Some(300_000_000));
    let common = across.common.expect("all measured at the same time");
    let sum: f64 = across.ranks.iter().map(|span| span.common_io_count).sum();
    let rate = sum / (common.end_ns - common.begin_ns) as f64 * 1e9;
    assert!((rate - common.ios_per_s).abs() < rate * 1e-6, "{rate} {common:?}");
    let host = record.phases[0].checks.iter().find(|check| check.name == "same_host").expect("the check");
    assert_eq!(host.outcome, CheckOutcome::Passed);
    assert!(host.sentence.starts_with("ranks 0 and 1 run on one kernel"), "{}", host.sentence);
    assert!(ran[0].out_joined().contains("4 ranks; all measured together for"), "{:?}", ran[0]);
    assert!(sandbox.listing().is_empty());
}

#[test]
fn ranks_with_different_options_are_refused_with_the_option() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let ran = run_ranks(&sandbox, 3, |number| {
        let mut arguments = null_run(path.to_str().expect("UTF-8"));
        if number == 2 {
            arguments.extend(["--bs", "8k"]);
        }
        arguments
    });
    ran.iter().for_each(|ran| ran.assert_code(2));
    assert!(ran[0].err.contains("the ranks differ: rank 2 ("), "{:?}", ran[0]);
    assert!(ran[0].err.contains("has `bs = 8k` in job `job`, and rank 0"), "{:?}", ran[0]);
    assert_eq!((ran[1].err.as_str(), ran[2].err.as_str()), ("", ""));
    assert!(!path.exists(), "nothing was measured");
}

#[test]
fn a_refusal_of_one_rank_names_it_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("data-1", "an existing file");
    let before = sandbox.listing();
    let arguments =
        vec!["run", "--filename", "data-$rank", "--size", "1m", "--rw", "write", "--no-history", "--number_ios", "1"];
    let ran = run_ranks(&sandbox, 2, |_| arguments.clone());
    ran.iter().for_each(|ran| ran.assert_code(2));
    assert!(ran[0].err.contains("rank 1 (") && ran[0].err.contains("`data-1`"), "{:?}", ran[0]);
    assert_eq!(ran[0].err.matches("error:").count(), 1, "{:?}", ran[0]);
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn ranks_that_share_a_directory_write_files_of_their_own() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let json = path.to_str().expect("UTF-8");
    let arguments =
        vec!["run", "--size", "1m", "--rw", "write", "--bs", "64k", "--no-evidence", "--no-history", "--json", json];
    let ran = run_ranks(&sandbox, 3, |_| arguments.clone());
    ran.iter().for_each(|ran| ran.assert_code(0));
    let record = record_at(&sandbox, "record.json");
    assert_sums(&record, 3);
    assert_eq!(record.phases[0].jobs[0].ops[0].byte_count, 3 << 20);
    let cluster = record.cluster.as_ref().expect("several ranks");
    let names: Vec<&str> = cluster.ranks.iter().map(|rank| rank.record.plan.jobs[0].files[0].path.as_str()).collect();
    assert_eq!(names, ["trueio-job-rank0-0.dat", "trueio-job-rank1-0.dat", "trueio-job-rank2-0.dat"]);
    assert!(sandbox.listing().is_empty());
}

#[test]
fn ranks_share_one_file_and_each_reads_what_another_wrote() {
    let sandbox = Sandbox::new();
    let job = sandbox.aside("job.toml");
    std::fs::write(
        &job,
        "[defaults]\nfilename = \"all.dat\"\nsize = \"1m\"\nbs = \"64k\"\nshared_file = true\n\
         [job.write]\nrw = \"write\"\n[job.read]\nstonewall = true\nrw = \"read\"\nrank_shift = 1\n",
    )
    .expect("a job file");
    let path = sandbox.aside("record.json");
    let arguments =
        ["run", job.to_str().expect("UTF-8"), "--no-evidence", "--no-history", "--json", path.to_str().expect("UTF-8")];
    let ran = run_ranks(&sandbox, 3, |_| arguments.to_vec());
    ran.iter().for_each(|ran| ran.assert_code(0));
    let record = record_at(&sandbox, "record.json");
    assert_sums(&record, 3);
    let cluster = record.cluster.as_ref().expect("several ranks");
    let offsets = |job: usize| -> Vec<u64> {
        cluster.ranks.iter().map(|rank| rank.record.plan.jobs[job].files[0].offset_bytes >> 20).collect()
    };
    assert_eq!((offsets(0), offsets(1)), (vec![0, 1, 2], vec![1, 2, 0]));
    assert!(sandbox.listing().is_empty(), "rank 0 removes the file: {:?}", sandbox.listing());
}

/// Returns the check `same_blocks` of the last phase.
fn same_blocks(record: &RunRecord) -> &Check {
    let phase = record.phases.last().expect("a phase");
    phase.checks.iter().find(|check| check.name == "same_blocks").expect("the check")
}

/// Runs three ranks on files that stay, and returns the record and the content of the files.
fn written(sandbox: &Sandbox, more: &[&str]) -> (RunRecord, Vec<Vec<u8>>) {
    let path = sandbox.aside("record.json");
    let json = path.to_str().expect("UTF-8");
    let mut arguments = vec![
        "run",
        "--filename",
        "data-$rank",
        "--size",
        "256k",
        "--bs",
        "4k",
        "--rw",
        "write",
        "--unlink=false",
        "--no-evidence",
        "--no-history",
        "--json",
        json,
    ];
    arguments.extend_from_slice(more);
    let ran = run_ranks(sandbox, 3, |_| arguments.clone());
    ran.iter().for_each(|ran| ran.assert_code(0));
    let files = (0..3).map(|rank| {
        let path = sandbox.path(&format!("data-{rank}"));
        let content = std::fs::read(&path).expect("a file of each rank");
        std::fs::remove_file(path).expect("it can be removed");
        content
    });
    let files = files.collect();
    (record_at(sandbox, "record.json"), files)
}

/// Goal: three ranks do not write three equal files, which a store could keep as one.
/// Method: the files are compared; with `rank_streams = "equal"` they are equal, and a check reports it.
#[test]
fn ranks_write_other_content_unless_a_job_wants_equal_streams() {
    let sandbox = Sandbox::new();
    let (record, files) = written(&sandbox, &[]);
    let blocks: std::collections::BTreeSet<&[u8]> = files.iter().flat_map(|file| file.chunks(4096)).collect();
    assert_eq!(blocks.len(), 3 * 64, "each block is different");
    assert_eq!(same_blocks(&record).outcome, CheckOutcome::Passed, "{:?}", same_blocks(&record));
    let (record, files) = written(&sandbox, &["--rank_streams", "equal"]);
    assert!(files[0] == files[1] && files[1] == files[2]);
    let check = same_blocks(&record);
    assert_eq!((check.outcome, check.cause), (CheckOutcome::Suspect, Cause::Cache), "{check:?}");
    assert!(check.sentence.contains("wrote equal content") && check.sentence.contains("3 of 3 ranks"), "{check:?}");
}

/// Goal: ranks that read one shared file do not read the same blocks in the same order, and if a job lets them, a check reports it.
/// Method: random reads of a sixteenth of one file; twins: each rank its own region, and all sequentially the same.
#[test]
fn ranks_that_read_the_same_blocks_of_one_file_are_reported_and_others_are_not() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let json = path.to_str().expect("UTF-8");
    let run = |rw: &str, more: &[&str]| {
        let mut arguments = vec![
            "run",
            "--filename",
            "all.dat",
            "--shared_file",
            "--size",
            "4m",
            "--bs",
            "4k",
            "--number_ios",
            "64",
            "--rw",
            rw,
            "--no-evidence",
            "--no-history",
            "--json",
            json,
        ];
        arguments.extend_from_slice(more);
        let ran = run_ranks(&sandbox, 3, |_| arguments.clone());
        ran.iter().for_each(|ran| ran.assert_code(0));
        let check = same_blocks(&record_at(&sandbox, "record.json")).clone();
        (check.outcome, check.sentence)
    };
    let all = ["--shared_region", "all"];
    let passes =
        [run("randread", &all), run("randread", &[]), run("read", &[]), run("read", &["--shared_segments", "4"])];
    passes.iter().for_each(|(outcome, sentence)| assert_eq!(*outcome, CheckOutcome::Passed, "{sentence}"));
    let equal = [&all[..], &["--rank_streams", "equal"]].concat();
    for (outcome, sentence) in [run("randread", &equal), run("read", &all)] {
        assert_eq!(outcome, CheckOutcome::Suspect, "{sentence}");
        assert!(sentence.contains("read the same blocks in job `job` (64 of 64 sampled; 3 of 3 ranks"), "{sentence}");
    }
}

#[test]
fn a_shared_file_that_exists_is_refused_and_untouched() {
    let sandbox = Sandbox::new();
    sandbox.write("all.dat", "of another program");
    let before = sandbox.listing();
    let arguments = ["run", "--filename", "all.dat", "--size", "1m", "--rw", "write", "--shared_file", "--no-history"];
    let ran = run_ranks(&sandbox, 2, |_| arguments.to_vec());
    ran.iter().for_each(|ran| ran.assert_code(2));
    assert!(ran[0].err.contains("the shared file `all.dat` exists"), "{:?}", ran[0]);
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn a_job_of_some_ranks_is_waited_for_by_the_others() {
    let sandbox = Sandbox::new();
    let job = sandbox.aside("job.toml");
    std::fs::write(
        &job,
        "[defaults]\nioengine = \"null\"\nnumber_ios = 100\n[job.some]\nranks = \"1-2\"\n\
         [job.all]\nstonewall = true\n",
    )
    .expect("a job file");
    let path = sandbox.aside("record.json");
    let arguments = ["run", job.to_str().expect("UTF-8"), "--no-history", "--json", path.to_str().expect("UTF-8")];
    let ran = run_ranks(&sandbox, 3, |_| arguments.to_vec());
    ran.iter().for_each(|ran| ran.assert_code(0));
    let record = record_at(&sandbox, "record.json");
    let cluster = record.cluster.as_ref().expect("several ranks");
    let ranks = |phase: usize| cluster.phases[phase].ranks.iter().map(|span| span.rank).collect::<Vec<_>>();
    assert_eq!((ranks(0), ranks(1)), (vec![1, 2], vec![0, 1, 2]));
    assert_eq!(record.phases[0].jobs[0].ops[0].io_count, 200);
    assert_eq!(record.phases[1].jobs[0].ops[0].io_count, 300);
    let alone = sandbox.run(&["run", "--ioengine", "null", "--number_ios", "1", "--ranks", "1", "--no-history"]);
    alone.assert_refused(&["no job runs on rank 0, and this process is alone"]);
}

/// Goal: the clock of a host that is 1000 s ahead is compared within its bound, and the ranks begin together.
/// Method: rank 1 runs in a time namespace.
#[test]
fn a_rank_whose_clock_is_ahead_begins_with_the_others() {
    if lacks("root") {
        return;
    }
    let ahead = ["--time", "--fork", "--monotonic", "1000"];
    if let Err(reason) = tool("unshare", &[&ahead[..], &["true"]].concat()) {
        return println!("skipped: {reason}");
    }
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let port = free_port();
    let start = |number: usize| {
        let plain = rank(&sandbox, number, 2, port, &null_run(path.to_str().expect("UTF-8")));
        if number == 0 {
            let mut first = plain;
            return Running::start(&mut first);
        }
        let mut command = Command::new("unshare");
        command.args(ahead).arg(plain.get_program()).args(plain.get_args()).current_dir(sandbox.root());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Running::start(&mut command)
    };
    let started: Vec<Running> = (0..2).map(start).collect();
    started.into_iter().for_each(|running| running.wait().0.assert_code(0));
    let record = record_at(&sandbox, "record.json");
    assert_sums(&record, 2);
    let clock = record.cluster.as_ref().expect("two ranks").phases[0].ranks[1].clock_before;
    // To be added to times of rank 1: it is ahead. The namespace's own offset is exact to a few microseconds.
    let error_ns = clock.offset_ns + 1_000_000_000_000;
    assert!(error_ns.unsigned_abs() <= clock.bound_ns + 5_000, "{clock:?}");
}

/// Starts three ranks whose run would take a minute, and waits until each has done an I/O: a log of its own shows it.
fn long_run(sandbox: &Sandbox, json: &str) -> Vec<Running> {
    let port = free_port();
    let seen = sandbox.aside("seen-$rank");
    let arguments = ["run", "--ioengine", "null", "--runtime", "60", "--time_based", "--no-history", "--name", "long"];
    let logs = ["--rate_iops", "100", "--write_iops_log", seen.to_str().expect("UTF-8"), "--json", json];
    let arguments = [&arguments[..], &logs].concat();
    let started: Vec<Running> =
        (0..3).map(|number| Running::start(&mut rank(sandbox, number, 3, port, &arguments))).collect();
    for (number, running) in started.iter().enumerate() {
        running.wait_for_io(&sandbox.aside(&format!("seen-{number}_iops.1.log")));
    }
    started
}

#[test]
fn a_rank_that_is_killed_is_named_and_the_record_is_written() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let started = long_run(&sandbox, path.to_str().expect("UTF-8"));
    started[2].signal(libc::SIGKILL);
    let ended: Vec<(Ran, Option<i32>)> = started.into_iter().map(Running::wait).collect();
    assert_eq!(ended[2].1, Some(libc::SIGKILL));
    for (ran, _) in &ended[..2] {
        ran.assert_code(1);
    }
    let record = record_at(&sandbox, "record.json");
    let Outcome::Failed { reason } = &record.outcome else { panic!("{:?}", record.outcome) };
    assert!(reason.starts_with("rank 2 (") && reason.ends_with("): its connection ended"), "{reason}");
    let cluster = record.cluster.as_ref().expect("several ranks");
    assert_eq!(cluster.lost.iter().map(|lost| lost.rank).collect::<Vec<_>>(), [2]);
    let measured: Vec<u32> = cluster.phases[0].ranks.iter().map(|span| span.rank).collect();
    assert_eq!(measured, [0, 1], "what was measured is kept");
    assert!(record.phases[0].jobs[0].ops[0].io_count > 0);
}

#[test]
fn ctrl_c_on_any_rank_ends_all_and_keeps_what_was_measured() {
    for signalled in [0, 1] {
        let sandbox = Sandbox::new();
        let path = sandbox.aside("record.json");
        let started = long_run(&sandbox, path.to_str().expect("UTF-8"));
        started[signalled].signal(libc::SIGINT);
        for (ran, _) in started.into_iter().map(Running::wait) {
            ran.assert_code(1);
        }
        let record = record_at(&sandbox, "record.json");
        assert_eq!(record.outcome, Outcome::Interrupted { signal: "SIGINT".into() }, "rank {signalled}");
        let cluster = record.cluster.as_ref().expect("several ranks");
        assert_eq!((cluster.phases[0].ranks.len(), cluster.lost.len()), (3, 0));
    }
}

/// Goal: what outlives rank 0 prints that it is gone, and leaves no empty output.
/// Method: rank 0 is killed when it has reserved its output, which is after all ranks have agreed.
#[test]
fn ranks_that_outlive_rank_0_name_its_end_and_leave_no_empty_output() {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let json = path.to_str().expect("UTF-8");
    let options = "run --rw read --size 1m --bs 64k --runtime 60s --time_based --no-evidence --no-history --json";
    let arguments: Vec<&str> = options.split(' ').chain([json]).collect();
    let port = free_port();
    let mut first = rank(&sandbox, 0, 2, port, &arguments).spawn().expect("the program starts");
    let other = Running::start(&mut rank(&sandbox, 1, 2, port, &arguments));
    let until = Instant::now() + Duration::from_secs(60);
    while !path.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(path.exists(), "rank 0 reserves its output");
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    let ran = other.wait().0;
    ran.assert_code(1);
    assert!(ran.err.contains("rank 1 ") && ran.err.contains("rank 0 is gone: its connection"), "{ran:?}");
    assert!(!path.exists(), "an empty output stays");
}

#[test]
fn a_rank_with_another_token_ends_at_once_and_names_rank_0() {
    let sandbox = Sandbox::new();
    let arguments = ["run", "--ioengine", "null", "--number_ios", "1", "--no-history"];
    let port = free_port();
    let first = Running::start(rank(&sandbox, 0, 2, port, &arguments).env("TRUEIO_RANK_TIMEOUT", "4"));
    let other =
        Ran::of(rank(&sandbox, 1, 2, port, &arguments).env("TRUEIO_TOKEN", "another").output().expect("it starts"));
    other.assert_code(2);
    assert!(other.err.contains("has another TRUEIO_TOKEN than rank 1"), "{other:?}");
    let first = first.wait().0;
    first.assert_code(75);
    assert!(first.err.contains("rank 1 did not connect"), "{first:?}");
    assert!(first.err.contains("a process with another TRUEIO_TOKEN, as rank 1, at 127.0.0.1"), "{first:?}");
}

#[test]
fn a_launched_process_that_cannot_reach_the_others_ends_with_75() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["run", "--ioengine", "null", "--number_ios", "1", "--no-history"]);
    command.env("SLURM_PROCID", "1").env("SLURM_STEP_ID", "0").env("SLURM_NTASKS", "4");
    let ran = Ran::of(command.output().expect("the program starts"));
    ran.assert_code(75);
    assert!(ran.err.contains("hint: start it with `srun --mpi=pmi2"), "{ran:?}");
    assert_eq!(ran.out, "");

    let mut command = sandbox.command(&["run", "--ioengine", "null", "--number_ios", "1", "--no-history"]);
    command.env("RANK", "1").env("WORLD_SIZE", "2").env("MASTER_ADDR", "127.0.0.1");
    command.env("MASTER_PORT", free_port().to_string()).env("TRUEIO_RANK_TIMEOUT", "1");
    let ran = Ran::of(command.output().expect("the program starts"));
    ran.assert_code(75);
    assert!(ran.err.contains("rank 1 cannot connect to rank 0 at 127.0.0.1:"), "{ran:?}");
}

/// Goal: no command measures N times by itself without a word.
#[test]
fn commands_that_do_not_know_ranks_are_refused_under_a_launcher() {
    let sandbox = Sandbox::new();
    for arguments in [&["fio", "--server"][..], &["compare", "a", "b"], &["study", "list"]] {
        let mut command = sandbox.command(arguments);
        command.env("OMPI_COMM_WORLD_SIZE", "4");
        let ran = Ran::of(command.output().expect("the program starts"));
        ran.assert_code(75);
        assert!(ran.err.contains("does not run on several ranks"), "{ran:?}");
        assert_eq!(ran.out, "");
    }
    let mut command = sandbox.command(&["study", "list"]);
    command.env("OMPI_COMM_WORLD_SIZE", "1");
    Ran::of(command.output().expect("the program starts")).assert_code(0);
}

/// True, after a skip, if a launcher is not installed.
fn lacks_launcher(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => false,
        _ => {
            skip(program, &format!("`{program}` is not installed"));
            true
        }
    }
}

/// Starts the program with a launcher under a limit: some hang when a rank dies.
fn launched(sandbox: &Sandbox, launcher: &[&str], arguments: &[&str]) -> Ran {
    let program = sandbox.command(arguments);
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120"]).args(launcher).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(name, "1");
    }
    command.current_dir(sandbox.root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ran::of(command.output().expect("the launcher starts"))
}

/// What each launcher must do: one record of three ranks.
fn assert_launches(launcher: &[&str], source: &str) {
    let sandbox = Sandbox::new();
    let path = sandbox.aside("record.json");
    let ran = launched(&sandbox, launcher, &null_run(path.to_str().expect("UTF-8")));
    ran.assert_code(0);
    let record = record_at(&sandbox, "record.json");
    assert_sums(&record, 3);
    let found = &record.cluster.as_ref().expect("several ranks").launcher;
    assert!(found.starts_with(source), "{found}");
}

const OPEN_MPI: &[&str] = &["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n"];
const HYDRA: &[&str] = &["mpiexec.hydra", "-n"];

#[test]
fn open_mpi_starts_ranks_through_pmix() {
    if !lacks_launcher("mpirun.openmpi") {
        assert_launches(&[OPEN_MPI, &["3"]].concat(), "PMIx ");
    }
}

#[test]
fn hydra_starts_ranks_through_pmi_1_on_a_descriptor_and_on_a_port() {
    if !lacks_launcher("mpiexec.hydra") {
        assert_launches(&[HYDRA, &["3"]].concat(), "PMI-1");
        assert_launches(&["mpiexec.hydra", "-pmi-port", "-n", "3"], "PMI-1");
    }
}

#[test]
fn launchers_start_ior_on_all_ranks_and_one_summary_is_printed() {
    for (program, launcher) in [("mpirun.openmpi", OPEN_MPI), ("mpiexec.hydra", HYDRA)] {
        if lacks_launcher(program) {
            continue;
        }
        let sandbox = Sandbox::new();
        let arguments = ["ior", "--no-evidence", "--no-history", "-b", "256k", "-t", "64k", "-s", "2", "-C", "-e"];
        let ran = launched(&sandbox, &[launcher, &["3"]].concat(), &arguments);
        ran.assert_code(0);
        assert_eq!(ran.out.matches("Summary of all tests:").count(), 1, "{ran:?}");
        assert!(ran.out.contains("tasks               : 3\n"), "{ran:?}");
        assert!(ran.out.contains("\nMax Write: ") && ran.out.contains("\nMax Read:  "), "{ran:?}");
        assert!(sandbox.listing().is_empty(), "{:?}", sandbox.listing());
    }
}

#[test]
fn a_launcher_of_one_process_is_no_launcher() {
    for (program, launcher) in [("mpirun.openmpi", OPEN_MPI), ("mpiexec.hydra", HYDRA)] {
        if lacks_launcher(program) {
            continue;
        }
        let sandbox = Sandbox::new();
        let path = sandbox.aside("record.json");
        let ran = launched(&sandbox, &[launcher, &["1"]].concat(), &null_run(path.to_str().expect("UTF-8")));
        ran.assert_code(0);
        assert!(record_at(&sandbox, "record.json").cluster.is_none());
    }
}

#[test]
fn a_refusal_under_a_launcher_ends_it_with_one_sentence() {
    for (program, launcher) in [("mpirun.openmpi", OPEN_MPI), ("mpiexec.hydra", HYDRA)] {
        if lacks_launcher(program) {
            continue;
        }
        let sandbox = Sandbox::new();
        let arguments = ["run", "--ioengine", "null", "--iodepth", "none"];
        let ran = launched(&sandbox, &[launcher, &["3"]].concat(), &arguments);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.err.matches("iodepth").count().min(1), 1, "{ran:?}");
    }
}

/// Goal: without a secret no rank measures on another host's word: each ends with code 2 before it listens or connects.
#[test]
fn ranks_off_the_loopback_address_need_a_token() {
    let sandbox = Sandbox::new();
    for (token, reason) in [(None, "TRUEIO_TOKEN is not set"), (Some("short"), "TRUEIO_TOKEN has 5 bytes")] {
        for number in [0, 1] {
            let arguments = ["run", "--ioengine", "null", "--size", "1m", "--no-history"];
            let mut command = rank(&sandbox, number, 2, free_port(), &arguments);
            command.env("MASTER_ADDR", "192.0.2.1").env_remove("TRUEIO_TOKEN");
            if let Some(token) = token {
                command.env("TRUEIO_TOKEN", token);
            }
            let ran = Ran::of(command.output().expect("it starts"));
            ran.assert_code(2);
            assert!(ran.err.contains(reason) && ran.err.contains("openssl rand -hex 32"), "{ran:?}");
        }
    }
}
