//! Options that control fio's jobs while they run: searches for a queue depth, steady states, flows, rates, `exitall`.
//! Each is compared with the installed fio, if there is one.
//!
//! Limit: whether a result is right for a disk is not tested here (`crates/engine/tests/it/control.rs` has exact devices).

use crate::common::{Running, Sandbox};
use serde_json::Value;
use std::process::Command;

/// The document of a run.
fn json(sandbox: &Sandbox, line: &str) -> Value {
    serde_json::from_str(&sandbox.fio_done(&format!("{line} --output-format=json")).out).expect("JSON")
}

/// The document that the real fio writes for the same line; `None` where it is not installed.
fn real(sandbox: &Sandbox, line: &str) -> Option<Value> {
    let text = sandbox.real_fio_done(&format!("{line} --output-format=json"))?.out;
    let begin = text.find('{').expect("a document");
    Some(serde_json::from_str(&text[begin..]).expect("fio's JSON"))
}

/// Returns the keys of a job's entry about the search, without those that fio 3.33 does not have.
fn latency(document: &Value) -> Vec<(String, Value)> {
    let job = document["jobs"][0].as_object().expect("an entry");
    let keys = job.iter().filter(|(key, _)| key.starts_with("latency_") && !key.ends_with('s'));
    keys.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Goal: the depth that meets the target is found as by fio, and reported under the same keys.
/// Method: nothing is as fast as an engine that does nothing, so the first window, with the job's own depth, keeps a
/// target of a second; and no I/O takes 1 ns or less, so another target is kept by none, and the job runs to its end.
#[test]
fn a_latency_target_ends_the_job_at_the_depth_that_meets_it_as_in_fio() {
    let sandbox = Sandbox::new();
    let line = "--name=a --ioengine=null --size=1g --bs=4k --rw=randread --norandommap --iodepth=16 --time_based \
                --runtime=300 --latency_target=1s --latency_window=50ms --latency_percentile=99.5";
    let ours = json(&sandbox, line);
    let job = &ours["jobs"][0];
    assert_eq!(job["latency_depth"], 16);
    assert_eq!(
        (&job["latency_target"], &job["latency_target_ns"]),
        (&1_000_000_000_u64.into(), &1_000_000_000_u64.into())
    );
    assert_eq!((&job["latency_window"], &job["latency_percentile"]), (&50_000.into(), &99.5.into()));
    let runtime = job["read"]["runtime"].as_u64().expect("a number");
    assert!((50..290_000).contains(&runtime), "it ended with its first window, not with its runtime: {runtime} ms");
    let warnings = ours["trueio"]["warnings"].to_string();
    assert!(warnings.contains("the queue depth of 16 that the job asks for keeps it"), "{warnings}");
    if let Some(theirs) = real(&sandbox, line) {
        let without_units = |of: &Value| -> Vec<_> {
            latency(of)
                .into_iter()
                .filter(|(key, _)| !matches!(&key[..], "latency_target_ns" | "latency_window_us"))
                .collect()
        };
        assert_eq!(without_units(&ours), without_units(&theirs));
    }
    let text = sandbox.fio_done(line).out;
    assert!(
        text.contains("     latency   : target=1000.00ms, window=50.00ms, percentile=99.50%, depth=16\n"),
        "{text}"
    );
}

/// The depth goes down to one. If a share of the I/Os must meet the target, the job continues; if all must, it fails.
#[test]
fn a_latency_target_that_no_depth_meets_runs_to_the_end_or_fails_as_in_fio() {
    let sandbox = Sandbox::new();
    let line = "--name=a --ioengine=posixaio --size=1m --bs=4k --rw=randread --filename=f --iodepth=8 --time_based \
                --runtime=1 --latency_target=1ns --latency_window=20ms";
    let share = format!("{line} --latency_percentile=90");
    let ours = json(&sandbox, &share);
    let job = &ours["jobs"][0];
    assert_eq!(job["latency_depth"], 1, "{job}");
    let runtime = job["read"]["runtime"].as_u64().expect("a number");
    assert!(runtime >= 990, "{runtime} ms");
    let warnings = ours["trueio"]["warnings"].to_string();
    assert!(warnings.contains("no queue depth that was tried keeps it"), "{warnings}");
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ran = sandbox.run(&words);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("longer than the `latency_target`"), "{}", ran.err);
    // fio rounds a target below a microsecond to none.
    if let Some(theirs) = real(&sandbox, &share.replace("1ns", "1us")) {
        assert_eq!(theirs["jobs"][0]["latency_depth"], 1);
        let line = line.replace("1ns", "1us");
        let ran = Command::new("fio").args(line.split_whitespace()).current_dir(sandbox.path(".")).output();
        assert_eq!(ran.expect("it is installed").status.code(), Some(1));
    }
}

#[test]
fn a_latency_target_without_a_window_is_refused_with_the_missing_option() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["fio", "--name=a", "--size=1m", "--latency_target=5ms"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("latency_window"), "{}", ran.err);
}

/// Returns a document without its values: the keys in order, and the type of each value.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let parts: Vec<String> = object.iter().map(|(key, value)| format!("{key}: {}", shape(value))).collect();
            format!("{{{}}}", parts.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(shape).collect::<Vec<_>>().join(", ")),
        Value::Number(number) if number.is_f64() => "float".to_owned(),
        Value::Number(_) => "int".to_owned(),
        other => format!("{other:?}").chars().take_while(|c| c.is_alphabetic()).collect(),
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// Goal: a job ends when it is steady, and reports it as fio does.
/// Method: the distance of two positive values from their mean is at most the mean, so a limit of 100 % is always met.
#[test]
fn a_job_that_is_steady_ends_and_its_document_is_fios() {
    let sandbox = Sandbox::new();
    let line = "--name=a --ioengine=null --size=1g --bs=4k --rw=randrw --norandommap --time_based --runtime=300 \
                --ss=iops:100% --ss_dur=2";
    let ours = json(&sandbox, line);
    let steady = &ours["jobs"][0]["steadystate"];
    assert_eq!(steady["ss"], "iops:100.000000%");
    assert_eq!((number(&steady["duration"]), number(&steady["attained"])), (2, 1));
    let of = |name: &str| -> Vec<u64> { steady["data"][name].as_array().expect("a list").iter().map(number).collect() };
    let (iops, bw) = (of("iops"), of("bw"));
    assert!(number(&steady["data"]["iops_mean"]).abs_diff((iops[0] + iops[1]) / 2) <= 1, "{steady}");
    assert!((bw[0] / 4096).abs_diff(iops[0]) <= 1, "{steady}");
    let deviation = steady["max_deviation"].as_f64().expect("a number");
    assert!((deviation - iops[0].abs_diff(iops[1]) as f64 / 2.0).abs() <= 1.0, "{steady}");
    let runtime = number(&ours["jobs"][0]["read"]["runtime"]);
    assert!((1_990..290_000).contains(&runtime), "its own time did not end it: {runtime} ms");
    if let Some(theirs) = real(&sandbox, line) {
        assert_eq!(shape(steady), shape(&theirs["jobs"][0]["steadystate"]));
        assert_eq!(steady["ss"], theirs["jobs"][0]["steadystate"]["ss"]);
        assert_eq!(theirs["jobs"][0]["steadystate"]["attained"], 1);
    }
}

#[test]
fn jobs_of_one_group_are_steady_together_and_latency_can_be_what_is_steady() {
    let sandbox = Sandbox::new();
    let line = "--ioengine=null --size=1g --bs=4k --rw=randread --norandommap --time_based --runtime=60 \
                --group_reporting --numjobs=2 --ss=lat_slope:1000000% --steadystate_duration=300ms --ss_interval=100ms \
                --ss_ramp=50ms --name=a";
    let ours = json(&sandbox, line);
    assert_eq!(ours["jobs"].as_array().map(Vec::len), Some(1));
    let steady = &ours["jobs"][0]["steadystate"];
    let keys: Vec<&str> = steady["data"].as_object().expect("data").keys().map(String::as_str).collect();
    assert_eq!(keys.len(), 6, "{keys:?}");
    assert_eq!(steady["attained"], 1);
    assert_eq!(steady["data"]["lat_ns"].as_array().map(Vec::len), Some(3));
    let text = sandbox.fio_done(line).out;
    let line = text.lines().find(|line| line.starts_with("  steadystate  : attained=yes, bw=")).expect("a line");
    assert!(line.contains(", iops=") && line.contains(", lat slope=") && line.ends_with('%'), "{line}");
    // A window that is not full has zeros, as in fio.
    let early = "--name=a --ioengine=null --size=1g --time_based --runtime=500ms --norandommap --rw=randread --ss=bw:1% --ss_dur=10";
    let ours = json(&sandbox, early);
    let data = &ours["jobs"][0]["steadystate"]["data"];
    for key in ["bw", "iops"] {
        let values = data[key].as_array().expect("a list");
        assert!(values.len() == 10 && values.iter().all(|value| value == 0), "{data}");
    }
    assert_eq!(data["bw_mean"], 0);
    // A job that is not steady at its end reports it: many values are never equal to a millionth of a byte.
    let never = "--name=a --ioengine=null --size=1g --time_based --runtime=500ms --norandommap --rw=randread \
                 --ss=bw:0.000001 --ss_dur=200ms --ss_interval=100ms";
    assert_eq!(json(&sandbox, never)["jobs"][0]["steadystate"]["attained"], 0);
}

#[test]
fn too_short_windows_and_inconsistent_groups_are_refused() {
    let sandbox = Sandbox::new();
    for (line, sentence) in [
        ("--name=a --size=1m --ioengine=null --ss_dur=1500ms", "not a whole number"),
        ("--name=a --size=1m --ioengine=null --ss=iops --ss_dur=5", "a limit: `iops:0.3%`"),
        ("--group_reporting --size=1m --ioengine=null --ss_dur=5 --name=a --name=b --ss_dur=6", "judged together"),
        ("--size=1m --ioengine=null --name=a --name=b --wait_for=c", "names no job before this one"),
    ] {
        let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
        let ran = sandbox.run(&words);
        assert_eq!(ran.code, Some(1), "{line}");
        assert!(ran.err.contains(sentence), "{line}: {}", ran.err);
    }
}

/// Goal: jobs of one flow keep their proportions.
/// Method: the end of one job ends the other, so that it cannot continue alone.
#[test]
fn the_ios_of_a_flow_are_in_the_proportion_of_their_weights() {
    let sandbox = Sandbox::new();
    let line = "--ioengine=null --size=1g --bs=4k --rw=randread --norandommap --name=a --flow=3 --number_ios=6000 --exitall \
                --name=b --flow=1 --time_based --runtime=60 --name=c --flow=2 --flow_id=7 --time_based --runtime=60";
    let ours = json(&sandbox, line);
    let count = |job: usize| number(&ours["jobs"][job]["read"]["total_ios"]);
    assert_eq!(count(0), 6_000);
    // Without a flow both would do the same number. The job does a few more I/Os until the end of the first takes effect.
    assert!(count(1).abs_diff(2_000) <= 200, "{}", count(1));
}

/// Goal: a job waits for all clones of an earlier job, while others continue.
/// Method: the two jobs in sequence take a second each, and the parallel one is not delayed.
#[test]
fn a_job_with_wait_for_does_not_stop_parallel_jobs_as_in_fio() {
    let sandbox = Sandbox::new();
    let line = "--ioengine=null --size=1g --bs=4k --rw=randread --norandommap --time_based --runtime=1 --name=a --numjobs=2 \
                --name=b --name=c --wait_for=a";
    let check = |document: &Value, what: &str| {
        for job in 0..4 {
            let runtime = number(&document["jobs"][job]["read"]["runtime"]);
            assert!(runtime >= 950, "{what}: job {job} ran for {runtime} ms");
        }
        assert!(number(&document["jobs"][3]["elapsed"]) >= 2, "{what}: one second after the other");
    };
    check(&json(&sandbox, line), "ours");
    if let Some(theirs) = real(&sandbox, line) {
        check(&theirs, "fio");
    }
}

/// Goal: `exitall` of one job applies to all: the first job that ends also ends the parallel ones.
#[test]
fn exitall_of_one_job_applies_to_all_as_in_fio() {
    let sandbox = Sandbox::new();
    let line = "--ioengine=null --size=1g --bs=4k --rw=randread --norandommap --time_based --name=a --runtime=1 --name=b \
                --runtime=300 --exitall --exit_what=stonewall";
    let check = |document: &Value| {
        let runtime = number(&document["jobs"][1]["read"]["runtime"]);
        assert!(runtime < 290_000, "its own time did not end it: {runtime} ms");
    };
    check(&json(&sandbox, line));
    real(&sandbox, line).iter().for_each(check);
}

/// Goal: with `exitall_on_error` a job that fails ends the parallel ones.
#[test]
fn exitall_on_error_ends_the_parallel_jobs() {
    let sandbox = Sandbox::new();
    let line = "fio --ioengine=null --size=1g --rw=randread --norandommap --time_based --runtime=300 --name=a --name=b \
                --rate_iops_min=1000000000000 --exitall_on_error --output-format=json";
    let words: Vec<&str> = line.split_whitespace().collect();
    let ran = sandbox.run(&words);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("`rate_iops_min`"), "{}", ran.err);
    let document: Value = serde_json::from_str(&ran.out).expect("a document");
    for job in document["jobs"].as_array().expect("two jobs") {
        let runtime = number(&job["read"]["runtime"]);
        assert!(runtime < 290_000, "the run did not wait for the other job's end: {runtime} ms");
    }
}

/// Goal: reads and writes of one job have separate rates.
/// Method: a number of I/Os ends the job, so the result does not depend on a clock.
#[test]
fn reads_and_writes_have_separate_rates_as_in_fio() {
    let sandbox = Sandbox::new();
    let line =
        "--name=a --ioengine=null --size=1g --bs=4k --rw=randrw --norandommap --rate_iops=300,100 --number_ios=400";
    let check = |document: &Value, slack: u64, what: &str| {
        let count = |op: &str| number(&document["jobs"][0][op]["total_ios"]);
        assert!(count("read").abs_diff(300) <= slack && count("write").abs_diff(100) <= slack, "{what}: {document}");
    };
    check(&json(&sandbox, line), 1, "ours");
    if let Some(theirs) = real(&sandbox, line) {
        check(&theirs, 30, "fio");
    }
}

/// Goal: a job without I/O does not prevent its group from being steady, ends with the group, and `wait_for` waits for it.
/// Method: without the end of the group the run takes a minute; the waiting job measures nothing if it begins before its
/// file exists.
#[test]
fn jobs_without_io_run_next_to_measured_ones() {
    let sandbox = Sandbox::new();
    let line = "--group_reporting --exitall --name=load --ioengine=cpuio --cpuload=5 --runtime=60 --name=a --ioengine=null \
                --size=1g --norandommap --rw=randread --time_based --runtime=60 --ss=iops:100% --ss_dur=300ms \
                --ss_interval=100ms";
    let ours = json(&sandbox, line);
    let steady = &ours["jobs"].as_array().expect("jobs").iter().find_map(|job| job.get("steadystate")).expect("a rule");
    assert_eq!(steady["attained"], 1, "{ours}");
    let line = "--allow-exec --name=e --ioengine=exec --program=/bin/sh --arguments=make.sh --name=b --ioengine=null --size=1m \
                --name=c --ioengine=exec --program=/bin/cat --arguments=made --wait_for=e";
    sandbox.write("make.sh", "sleep 0.3\necho it is there > made\n");
    sandbox.fio_done(line);
    let printed = std::fs::read_to_string(sandbox.path("c.stdout")).expect("what it printed");
    assert_eq!(printed, "it is there\n");
}

/// Goal: a rate of reads only does not limit writes, as in fio, and the reverse.
/// Method: a number of I/Os ends the job. Operations without a rate are issued without waiting, so few I/Os have the rate:
/// at 1 per second the first is due at once and the next ones seconds later.
#[test]
fn a_rate_of_one_direction_leaves_the_other_free_as_in_fio() {
    let sandbox = Sandbox::new();
    for (rate, paced, free) in [("1,", "read", "write"), (",1", "write", "read")] {
        let line = format!(
            "--name=a --ioengine=null --size=1g --bs=4k --rw=randrw --norandommap --rate_iops={rate} --number_ios=20000"
        );
        let check = |document: &Value, what: &str| {
            let count = |op: &str| number(&document["jobs"][0][op]["total_ios"]);
            let (few, many) = (count(paced), count(free));
            // One for each second, and one or two at the ends.
            let most = number(&document["jobs"][0]["job_runtime"]) / 1000 + 3;
            assert!((1..=most).contains(&few) && few + many >= 20_000, "{what}: {few} {paced}s, {many} {free}s");
        };
        check(&json(&sandbox, &line), "ours");
        real(&sandbox, &line).iter().for_each(|theirs| check(theirs, "fio"));
    }
}

/// Goal: `exit_what=all` ends the run with the first job that ends: jobs after a stonewall do not start.
#[test]
fn exit_what_decides_whether_jobs_after_a_stonewall_start_as_in_fio() {
    let sandbox = Sandbox::new();
    for (what, begins) in [("all", false), ("group", true), ("stonewall", true)] {
        let line = format!(
            "--ioengine=null --size=1g --bs=4k --rw=randread --norandommap --name=a --exitall --exit_what={what} \
             --number_ios=100 --name=b --stonewall --number_ios=100"
        );
        let check = |document: &Value, who: &str| {
            let count = |index: usize| number(&document["jobs"][index]["read"]["total_ios"]);
            assert_eq!((count(0), count(1)), (100, if begins { 100 } else { 0 }), "{who}: {what}");
        };
        let ours = json(&sandbox, &line);
        check(&ours, "ours");
        let is_noted = ours["trueio"]["warnings"].to_string().contains("it does not start");
        assert_eq!(is_noted, !begins, "{what}");
        real(&sandbox, &line).iter().for_each(|theirs| check(theirs, "fio"));
    }
}

/// Goal: `io_size` is reached by whole I/Os, at least one, as in fio.
#[test]
fn io_size_is_reached_by_whole_blocks_as_in_fio() {
    let sandbox = Sandbox::new();
    for (index, (words, ios)) in [
        ("--bs=64k --size=1m --io_size=4k", 1),
        ("--bs=64k --size=1m --io_size=100k", 2),
        ("--bs=64k --size=1m --io_size=128k", 2),
        ("--bs=64k --size=100k", 1),
        ("--bsrange=4k-64k --size=1m --io_size=1k --rw=randwrite", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let line = format!("--name=a{index} --rw=write {words}");
        let check = |document: &Value, who: &str| {
            assert_eq!(number(&document["jobs"][0]["write"]["total_ios"]), ios, "{who}: {words}");
        };
        check(&json(&sandbox, &line), "ours");
        real(&sandbox, &line).iter().for_each(|theirs| check(theirs, "fio"));
    }
}

/// Goal: a job that fails ends only itself: those after a `stonewall` run, and each has its own error, as in fio.
/// Method: the first job compares a file that holds no headers (84 is EILSEQ).
#[test]
fn jobs_after_a_failed_one_run_and_each_has_its_own_error_as_in_fio() {
    let sandbox = Sandbox::new();
    sandbox.data_file("data", 65_536);
    let line = "--ioengine=psync --bs=4k --size=64k --filename=data --rw=read --name=bad --verify=crc32c --name=good \
                --stonewall --output-format=json";
    let results = |document: &Value| {
        let job = |index: usize| {
            let job = &document["jobs"][index];
            (job["error"].as_i64(), job["read"]["total_ios"].as_u64().is_some_and(|ios| ios == 16))
        };
        (job(0).0, job(1))
    };
    let parsed = |text: &str| -> Value { serde_json::from_str(&text[text.find('{').expect("JSON")..]).expect("JSON") };
    let ran = sandbox.run(&std::iter::once("fio").chain(line.split_whitespace()).collect::<Vec<_>>());
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(results(&parsed(&ran.out)), (Some(84), (Some(0), true)), "{}", ran.out);
    let mut theirs = Command::new("fio");
    match theirs.args(line.split_whitespace()).current_dir(sandbox.path(".")).output() {
        Ok(ran) => {
            let text = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert_eq!(results(&parsed(&text)), (Some(84), (Some(0), true)), "{text}");
        }
        Err(_) => println!("skipped: fio is not installed"),
    }
}

/// Goal: a trigger ends the run as a success, with results, and its command runs when the verify states are saved.
/// Method: the command marks that it found the state. A file that exists already ends the run at once, and
/// stays; one that appears is removed.
#[test]
fn a_trigger_ends_the_run_and_runs_its_command_when_states_are_saved() {
    let sandbox = Sandbox::new();
    let endless = "--time_based --runtime=300";
    let job = json(&sandbox, &format!("--trigger-timeout=1 --name=a --ioengine=null --size=1g {endless}"));
    let runtime = job["jobs"][0]["read"]["runtime"].as_u64().expect("a number");
    assert!(runtime < 290_000, "{runtime}");
    sandbox.write("go", "");
    let there = ["fio", "--trigger-file=go", "--name=a", "--ioengine=null", "--size=1g"];
    let there = sandbox.run(&there.into_iter().chain(endless.split(' ')).collect::<Vec<_>>());
    there.assert_code(0);
    assert_eq!(there.err, "note: the trigger file `go` existed before the run, so it is not removed\n");
    assert!(sandbox.path("go").exists(), "it may be any file: {there:?}");
    let mut command = sandbox.command(&["fio", "--trigger-file=appears", "--name=a", "--ioengine=null", "--size=1g"]);
    let running = Running::start(command.args(endless.split(' ')));
    running.wait_for_workers("a", 1);
    sandbox.write("appears", "");
    let (ran, _) = running.wait();
    ran.assert_code(0);
    assert!(!sandbox.path("appears").exists(), "the file is removed: {ran:?}");
    let write = "--name=a --filename=f --rw=write --size=1m --verify=crc32c --do_verify=0 --rate=64k";
    let words: Vec<&str> = std::iter::once("fio").chain(write.split_whitespace()).collect();
    let command = "--trigger=test -s local-a-0-verify.state && touch found";
    let ran =
        sandbox.run(&[&words[..], &endless.split(' ').collect::<Vec<_>>(), &["--trigger-timeout=1", command]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert!(sandbox.path("found").exists(), "the state was there before the command");
    let ran = sandbox.run(&[
        "fio",
        "--trigger-timeout=1",
        "--trigger=exit 3",
        "--name=a",
        "--ioengine=null",
        "--size=1g",
        "--time_based",
        "--runtime=300",
    ]);
    assert!(ran.code == Some(1) && ran.err.contains("`--trigger` failed"), "{ran:?}");
}

/// Goal: what only options decide is found without a look at the machine, and what the machine decides is left to the run.
#[test]
fn parse_only_refuses_what_no_machine_runs() {
    let sandbox = Sandbox::new();
    let parsed = |line: &str| {
        let words: Vec<&str> = ["fio", "--parse-only"].into_iter().chain(line.split_whitespace()).collect();
        sandbox.run(&words)
    };
    for line in ["--name=a --size=2k --bs=4k --rw=write", "--readonly --name=a --size=1m --rw=write"] {
        let ran = parsed(line);
        assert!(ran.code == Some(1) && !ran.err.is_empty(), "{line}: {ran:?}");
    }
    for line in [
        "--name=a --rw=randread",
        "--name=a --filename=/dev/nosuch --rw=randwrite --direct=1 --bs=512",
        "--name=a --filename=/dev/nosuch --rw=randread --size=50% --offset=10%",
        "--name=a --size=1m --allow_file_create=0 --rw=randread",
        "--name=a --read_iolog=nosuch",
        "--name=a --filename=/dev/nosuch --rw=read --ioscheduler=none",
    ] {
        let ran = parsed(line);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}: {ran:?}");
    }
}
