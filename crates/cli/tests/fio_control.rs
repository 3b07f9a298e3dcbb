//! What steers fio's jobs while they run: searches for a queue depth, and beside each the program that it is compared
//! with, where that is there.
//!
//! Cannot see: whether what was found is right for a disk (`crates/engine/tests/control.rs` has exact devices).

mod common;

use common::{Ran, Sandbox};
use serde_json::Value;
use std::process::Command;

/// Runs a command line of fio's, written as in a shell without quotes; it must be a success that says nothing.
fn fio(sandbox: &Sandbox, line: &str) -> Ran {
    let words: Vec<&str> = std::iter::once("fio").chain(line.split_whitespace()).collect();
    let ran = sandbox.run(&words);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
    ran
}

/// The document of a run.
fn json(sandbox: &Sandbox, line: &str) -> Value {
    serde_json::from_str(&fio(sandbox, &format!("{line} --output-format=json")).out).expect("JSON")
}

/// The document that the real fio writes for the same line; `None` where it is not installed.
fn real(sandbox: &Sandbox, line: &str) -> Option<Value> {
    let mut command = Command::new("fio");
    let words = line.split_whitespace().chain(["--output-format=json"]);
    let Ok(ran) = command.args(words).current_dir(sandbox.path(".")).output() else {
        println!("skipped: fio is not installed");
        return None;
    };
    assert!(ran.status.success(), "fio {line}: {}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let begin = text.find('{').expect("a document");
    Some(serde_json::from_str(&text[begin..]).expect("fio's JSON"))
}

/// The part of a job's entry that tells of the search, without the keys that fio 3.33 does not have.
fn latency(document: &Value) -> Vec<(String, Value)> {
    let job = document["jobs"][0].as_object().expect("an entry");
    let keys = job.iter().filter(|(key, _)| key.starts_with("latency_") && !key.ends_with('s'));
    keys.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Goal: a depth that keeps the target is found as by fio, and told under the same keys.
/// Method: nothing is as fast as an engine that does nothing, so the first window, with the job's own depth, keeps a
/// target of a second; and no I/O takes 1 ns or less, so another target is kept by none, and the job runs to its end.
#[test]
fn a_latency_target_ends_the_job_at_the_depth_that_keeps_it_as_in_fio() {
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
    let text = fio(&sandbox, line).out;
    assert!(
        text.contains("     latency   : target=1000.00ms, window=50.00ms, percentile=99.50%, depth=16\n"),
        "{text}"
    );
}

/// The depth goes down to one; if a share must keep the target, the job goes on, and if all must, it has failed.
#[test]
fn a_latency_target_that_nothing_keeps_runs_to_the_jobs_end_or_fails_as_in_fio() {
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
fn a_latency_target_without_a_window_is_refused_and_says_what_is_missing() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["fio", "--name=a", "--size=1m", "--latency_target=5ms"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("latency_window"), "{}", ran.err);
}

/// A document without its values: keys in their order, and of what type each value is.
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

/// Goal: a job ends when it is steady, and tells so as fio does.
/// Method: of two values none is further from their mean than the mean itself, unless one is 0: 100 % is always kept.
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
    let text = fio(&sandbox, line).out;
    let told = text.lines().find(|line| line.starts_with("  steadystate  : attained=yes, bw=")).expect("a line");
    assert!(told.contains(", iops=") && told.contains(", lat slope=") && told.ends_with('%'), "{told}");
    // What is not steady by its end says so: of many values not all are the same to a millionth of a byte.
    let never = "--name=a --ioengine=null --size=1g --time_based --runtime=500ms --norandommap --rw=randread \
                 --ss=bw:0.000001 --ss_dur=200ms --ss_interval=100ms";
    assert_eq!(json(&sandbox, never)["jobs"][0]["steadystate"]["attained"], 0);
}

#[test]
fn spans_that_make_no_window_and_groups_that_disagree_are_refused() {
    let sandbox = Sandbox::new();
    for (line, sentence) in [
        ("--name=a --size=1m --ioengine=null --ss_dur=1500ms", "no whole number"),
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
/// Method: the one that ends ends the other, before that could run on alone.
#[test]
fn the_ios_of_a_flow_stand_in_the_proportion_of_their_weights() {
    let sandbox = Sandbox::new();
    let line = "--ioengine=null --size=1g --bs=4k --rw=randread --norandommap --time_based --runtime=60 --name=a --flow=3 \
                --number_ios=6000 --exitall --name=b --flow=1 --name=c --flow=2 --flow_id=7";
    let ours = json(&sandbox, line);
    let count = |job: usize| number(&ours["jobs"][job]["read"]["total_ios"]);
    assert_eq!(count(0), 6_000);
    // Without a flow it would be as many as the first; the last I/Os are those until it learns that the first has ended.
    assert!(count(1).abs_diff(2_000) <= 200, "{}", count(1));
}

/// Goal: a job waits for all clones of one that stands before it, while others run on.
/// Method: the two that follow each other take a second each, and the one beside them is not held up.
#[test]
fn a_job_that_waits_for_another_lets_those_beside_it_go_on_as_in_fio() {
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

/// Goal: `exitall` of one job holds for all of them: whichever ends first ends those beside it.
#[test]
fn exitall_of_one_job_is_that_of_all_as_in_fio() {
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

/// Goal: a job that fails ends those beside it, if it was told to.
#[test]
fn a_job_that_fails_ends_those_beside_it_if_it_is_to() {
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
        assert!(runtime < 290_000, "nobody waited for the other's end: {runtime} ms");
    }
}

/// Goal: reads and writes of one job come at rates of their own.
/// Method: a count of I/Os ends the job, so that no clock has a part in it.
#[test]
fn reads_and_writes_come_at_their_own_rates_as_in_fio() {
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

/// Goal: a job without I/O neither keeps a group from being steady nor goes on when that has ended, and is waited for.
/// Method: without an end of the group the run takes a minute; the job that waits measures nothing if it begins before its
/// file is there.
#[test]
fn jobs_without_io_stand_beside_those_that_measure() {
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
    fio(&sandbox, line);
    let printed = std::fs::read_to_string(sandbox.path("c.stdout")).expect("what it printed");
    assert_eq!(printed, "it is there\n");
}

/// Goal: a rate of reads only leaves writes free, as in fio; and the other way round.
/// Method: a count of I/Os ends the job. What has no rate is made as fast as it can be, so few of the I/Os are those with one:
/// at 1 a second the first is due at once and the next ones seconds later.
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
            // As many as have seconds gone by, and one or two for the ends.
            let most = number(&document["jobs"][0]["job_runtime"]) / 1000 + 3;
            assert!((1..=most).contains(&few) && few + many >= 20_000, "{what}: {few} {paced}s, {many} {free}s");
        };
        check(&json(&sandbox, &line), "ours");
        real(&sandbox, &line).iter().for_each(|theirs| check(theirs, "fio"));
    }
}

/// Goal: `exit_what=all` ends the run with the job that ends first: what waits behind a stonewall does not begin.
#[test]
fn exit_what_says_whether_jobs_behind_a_stonewall_begin_as_in_fio() {
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
        let told = ours["trueio"]["warnings"].to_string().contains("it does not begin");
        assert_eq!(told, !begins, "{what}");
        real(&sandbox, &line).iter().for_each(|theirs| check(theirs, "fio"));
    }
}

/// Goal: what `io_size` says is reached by whole I/Os, one of them at least, as in fio.
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
