//! Outputs that jobs name replace outputs of earlier runs, and nothing else.

use crate::common::*;
use std::fs;

const THESIS: &str = "Chapter 1\n\nIn 2019, 3 of 4 disks lied about flushes.\n";

/// Goal: no job destroys a file by naming it as a log, iolog or state.
/// Method: for each option, a text under the name that it writes, in both languages. The refusal names option, file and
/// remedy, and nothing is touched.
#[test]
fn a_file_with_other_content_is_not_replaced_by_a_log() {
    let sandbox = Sandbox::new();
    let cases = [
        ("write_iolog", "thesis.txt", "thesis.txt"),
        ("write_bw_log", "t", "t_bw.1.log"),
        ("write_iops_log", "t", "t_iops.1.log"),
        ("write_lat_log", "t", "t_clat.1.log"),
    ];
    for (option, value, file) in cases {
        sandbox.write(file, THESIS);
        sandbox.write("job.toml", format!("[job.a]\nioengine = \"null\"\nsize = \"64k\"\n{option} = \"{value}\"\n"));
        sandbox.write("job.fio", format!("[a]\nioengine=null\nsize=64k\n{option}={value}\n"));
        let before = sandbox.listing();
        let words = [
            &format!("`{option}` of job `a` would replace `{file}`, which is not a"),
            "rule: output_unrecognised",
            "hint: its content would be lost: name another file, or move this one away",
        ];
        sandbox.run(&["run", "job.toml"]).assert_refused(&words);
        let ran = sandbox.run(&["fio", "job.fio"]);
        ran.assert_code(1);
        words.iter().for_each(|words| assert!(ran.err.contains(words), "{ran:?}"));
        assert_eq!(sandbox.listing(), before);
        assert_eq!(fs::read_to_string(sandbox.path(file)).expect("a file"), THESIS);
        fs::remove_file(sandbox.path(file)).expect("a file");
    }
    let others = [
        ("agg-write_bw.log", "--bandwidth-log --name=a --ioengine=null --size=64k"),
        (
            "t_lat.1.log.fz",
            "--name=a --ioengine=null --size=64k --write_lat_log=t --log_compression=64k --log_store_compressed=1",
        ),
        ("t_bw.log", "--name=a --ioengine=null --size=64k --write_bw_log=t --per_job_logs=0"),
        ("t_clat_hist.1.log", "--name=a --ioengine=null --size=64k --write_hist_log=t --log_hist_msec=100"),
        ("local-a-0-verify.state", "--name=a --filename=f --rw=write --size=64k --verify=md5 --verify_state_save=1"),
    ];
    for (file, line) in others {
        sandbox.write(file, THESIS);
        let before = sandbox.listing();
        let ran = sandbox.run(&[&["fio"][..], &line.split(' ').collect::<Vec<_>>()].concat());
        ran.assert_code(1);
        assert!(ran.err.contains(&format!("would replace `{file}`")), "{file}: {ran:?}");
        assert_eq!(sandbox.listing(), before, "{file}");
        assert_eq!(fs::read_to_string(sandbox.path(file)).expect("a file"), THESIS);
        fs::remove_file(sandbox.path(file)).expect("a file");
    }
}

/// Goal: a job that is run twice replaces its own outputs, as before.
/// Method: every kind of output, three times, over an empty file the first time.
#[test]
fn outputs_of_earlier_runs_are_replaced() {
    let sandbox = Sandbox::new();
    let lines = [
        "--name=a --filename=f --size=64k --rw=write --write_iolog=trace --write_bw_log=t --write_iops_log=t \
         --write_lat_log=t --write_hist_log=t --log_hist_msec=1 --log_prio=1 --log_offset=1 --bandwidth-log \
         --verify=md5 --verify_state_save=1",
        "--name=b --ioengine=null --size=64k --write_lat_log=c --log_compression=64k --log_store_compressed=1",
        "--name=c --ioengine=null --size=64k --write_bw_log=s --per_job_logs=0 --log_avg_msec=1 --log_window_value=both",
    ];
    sandbox.write("trace", "");
    sandbox.write("t_bw.1.log", "");
    for line in lines {
        let mut lengths = Vec::new();
        for _ in 0..3 {
            let ran = sandbox.run(&[&["fio"][..], &line.split_whitespace().collect::<Vec<_>>()].concat());
            ran.assert_code(0);
            let length = |name: &str| fs::read_to_string(sandbox.path(name)).map_or(0, |text| text.lines().count());
            lengths.push([length("trace"), length("t_bw.1.log"), length("t_lat.1.log")]);
        }
        // The I/Os of one run, not of three.
        assert!(lengths.iter().all(|now| *now == lengths[0]), "{lengths:?}");
    }
}

/// Goal: in TOML, and in fio's job files that `trueio run` runs, an existing output of a job needs `--replace`, which replaces
/// outputs and nothing else. What an option of the command line names needs no more.
#[test]
fn an_existing_output_of_a_job_is_replaced_only_with_the_option_replace() {
    let sandbox = Sandbox::new();
    let toml = "[job.a]\nioengine = \"null\"\nsize = \"64k\"\n";
    for (option, value, file) in [("write_iolog", "trace", "trace"), ("write_bw_log", "t", "t_bw.1.log")] {
        sandbox.write("job.toml", format!("{toml}{option} = \"{value}\"\n"));
        sandbox.write("job.fio", format!("[a]\nioengine=null\nsize=64k\n{option}={value}\n"));
        sandbox.run(&["run", "job.toml"]).assert_code(0);
        for job in ["job.toml", "job.fio"] {
            let first = fs::read(sandbox.path(file)).expect("a log");
            assert!(!first.is_empty());
            let before = sandbox.listing();
            let words = [
                &format!("`{option}` of job `a` would replace `{file}`, which exists"),
                "rule: output_exists",
                "hint: name another file, move this one away, or permit it on the command line: `--replace`",
            ];
            sandbox.run(&["run", job]).assert_refused(&words);
            sandbox.run(&["explain", job]).assert_refused(&words);
            assert_eq!(sandbox.listing(), before);
            sandbox.run(&["explain", job, "--replace"]).assert_code(0);
            assert_eq!(sandbox.listing(), before);
            sandbox.run(&["run", job, "--replace"]).assert_code(0);
            assert_ne!(sandbox.listing(), before, "it was not replaced");
            let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines(&fs::read(sandbox.path(file)).expect("a log")), lines(&first), "the log of one run");
        }
        // fio's own command line repeats runs as fio does.
        sandbox.run(&["fio", "job.fio"]).assert_code(0);
        sandbox.write(file, THESIS);
        sandbox.run(&["run", "job.toml", "--replace"]).assert_refused(&["rule: output_unrecognised"]);
        assert_eq!(fs::read_to_string(sandbox.path(file)).expect("a file"), THESIS);
        fs::remove_file(sandbox.path(file)).expect("a file");
    }
    sandbox.write("job.toml", toml);
    sandbox.write("out.json", THESIS);
    sandbox.run(&["run", "job.toml", "--json", "out.json"]).assert_code(0);
    assert!(fs::read_to_string(sandbox.path("out.json")).expect("a record").starts_with('{'));
    let slices =
        ["compare", "job.toml", "job.toml", "--live", "--budget", "4", "--slice", "50ms", "--write_bw_log", "s"];
    let ran = sandbox.run(&slices);
    assert!(!ran.err.contains("cannot be written"), "a slice does not take its own log for another's: {ran:?}");
    assert!(sandbox.path("s_bw.1.log").exists(), "{ran:?}");
}

/// Goal: what was checked is what is replaced, however long the log's phase waits.
/// Method: phase 1 is a program that moves a text, or a log of somebody else, to the name of phase 2's log: a name without a
/// file, or one whose log of an earlier run the plan has accepted.
#[test]
fn a_file_that_took_the_name_of_a_log_during_phase_1_ends_the_run() {
    const LOG: &str = "1, 2, 0, 4096, 0\n";
    const TRACE: &str = "fio version 3 iolog\n";
    for (option, value, file, earlier) in [
        ("write_iolog", "trace", "trace", TRACE),
        ("write_bw_log", "t", "t_bw.2.log", LOG),
        ("write_bw_log", "t\nper_job_logs=0", "t_bw.log", LOG),
    ] {
        for (was_there, theirs) in [(true, THESIS), (false, THESIS), (true, earlier), (false, earlier)] {
            let sandbox = Sandbox::new();
            if was_there {
                sandbox.write(file, earlier);
            }
            sandbox.write("theirs", theirs);
            sandbox.write("swap.sh", format!("mv theirs {file}\n"));
            sandbox.write(
                "job.fio",
                format!(
                    "[swap]\nioengine=exec\nprogram=/bin/sh\narguments=swap.sh\n\
                     [a]\nstonewall\nioengine=null\nsize=64k\n{option}={value}\n"
                ),
            );
            let ran = sandbox.run(&["fio", "--allow-exec", "--output-format=json", "job.fio"]);
            ran.assert_code(1);
            assert!(!sandbox.path("theirs").exists(), "nothing was staged: {ran:?}");
            assert!(ran.err.contains(&format!("the log `{file}` cannot be written")), "{ran:?}");
            assert!(ran.err.contains("another program created or replaced this file"), "{ran:?}");
            assert_eq!(fs::read_to_string(sandbox.path(file)).expect("a file"), theirs);
            assert!(ran.out.contains("\"jobname\""), "the first phase is not in the output: {ran:?}");
        }
    }
}
