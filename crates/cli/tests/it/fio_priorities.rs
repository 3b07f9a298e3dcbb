//! Priorities of single I/Os, compared with the installed fio.
//!
//! Without an installed fio, only our side is tested, and a line reports that.

use crate::common::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

fn theirs(sandbox: &Sandbox, line: &str) -> Option<Ran> {
    real_fio(sandbox, line).map(|mut command| Ran::of(command.output().expect("fio starts")))
}

fn document(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let begin = ran.out.find('{').unwrap_or_else(|| panic!("no document: {ran:?}"));
    serde_json::from_str(&ran.out[begin..]).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// The lines of a log by their last column.
fn by_priority(sandbox: &Sandbox, name: &str) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(sandbox.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        *counts.entry(line.rsplit(", ").next().expect("a column").to_owned()).or_insert(0) += 1;
    }
    counts
}

const JOB: &str = "--name=a --filename=f --rw=randread --bs=4k --size=1m --iodepth=4 --loops=4";

/// Goal: the same keys in the same order as fio has them, for both engines and both latencies; fio 3.42 has one key more
/// than the installed 3.33, the hint.
#[test]
fn priorities_have_fios_keys_and_sum_to_the_total() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 1 << 20);
    for engine in ["libaio", "io_uring"] {
        for (latency, more) in [("clat_ns", ""), ("lat_ns", " --lat_percentiles=1")] {
            let line = format!(
                "{JOB} --ioengine={engine}{more} --prioclass=2 --prio=4 --cmdprio_percentage=30 --cmdprio_class=2 \
                 --cmdprio=1 --output-format=json+"
            );
            let ran = sandbox.fio(&line);
            assert_eq!(ran.err, "", "{line}");
            let us = document(&ran);
            let read = &us["jobs"][0]["read"];
            let prios = read["prios"].as_array().unwrap_or_else(|| panic!("{line}: {read}"));
            let named: Vec<_> = prios.iter().map(|of| (of["prioclass"].as_u64(), of["prio"].as_u64())).collect();
            assert_eq!(named, [(Some(2), Some(4)), (Some(2), Some(1))]);
            let counts: u64 = prios.iter().filter_map(|of| of[latency]["N"].as_u64()).sum();
            assert_eq!(Some(counts), read["total_ios"].as_u64());
            // 1,024 draws of 30 %: 5 deviations are 73.
            let share = prios[1][latency]["N"].as_u64().expect("a count");
            assert!((234..=380).contains(&share), "{share}");
            if let Some(them) = theirs(&sandbox, &line).map(|ran| document(&ran)) {
                let their_read = &them["jobs"][0]["read"];
                let their_prios = their_read["prios"].as_array().expect("fio has them");
                assert_eq!(prios.len(), their_prios.len());
                for (our, their) in prios.iter().zip(their_prios) {
                    let known: Vec<&str> = keys(our).into_iter().filter(|key| *key != "priohint").collect();
                    assert_eq!(known, keys(their));
                    assert_eq!(keys(&our[latency]), keys(&their[latency]));
                    assert_eq!((&our["prioclass"], &our["prio"]), (&their["prioclass"], &their["prio"]));
                }
                let place = |read| keys(read).iter().position(|key| *key == "prios");
                assert_eq!(place(read), place(their_read));
            }
        }
    }
}

/// Goal: a single priority is not listed; sizes have separate shares; normal text has fio's lines.
#[test]
fn a_single_priority_is_not_listed_and_sizes_have_separate_shares() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 1 << 20);
    let line = format!("{JOB} --ioengine=libaio --cmdprio_percentage=100 --cmdprio_class=3 --output-format=json");
    let read = document(&sandbox.fio(&line))["jobs"][0]["read"].clone();
    assert!(read.get("prios").is_none(), "{read}");
    if let Some(them) = theirs(&sandbox, &line).map(|ran| document(&ran)) {
        assert!(them["jobs"][0]["read"].get("prios").is_none());
    }
    let split = "--name=a --filename=f --rw=randread --bssplit=4k/50:8k/50 --size=1m --iodepth=4 --norandommap \
                 --ioengine=libaio --cmdprio_bssplit=4k/50/2/1:4k/50/2/2:8k/10/3/0 --output-format=json,normal";
    let ran = sandbox.fio(split);
    for text in [ran.out.clone()].into_iter().chain(theirs(&sandbox, split).map(|ran| ran.out)) {
        for (class, level) in [(0, 0), (2, 1), (2, 2), (3, 0)] {
            let head = format!("clat prio {class}/{level}");
            assert!(text.matches(&head).count() >= 2 && text.contains("% of IOs) percentiles ("), "{head}: {text}");
        }
    }
}

/// The last column: whether the class is real time, or with `log_prio` the kernel's number; averages have 0.
#[test]
fn logs_have_the_priority_of_each_io_in_fios_column() {
    let sandbox = Sandbox::new();
    sandbox.data_file("f", 1 << 20);
    let job = format!("{JOB} --ioengine=libaio --prioclass=2 --prio=4 --cmdprio_percentage=30 --cmdprio=2");
    // SAFETY: a plain call that cannot fail.
    let privileged = unsafe { libc::geteuid() } == 0;
    for (more, ours_has, needs) in [
        (" --cmdprio_class=2", &["0"][..], false),
        (" --cmdprio_class=1", &["0", "1"], true),
        (" --cmdprio_class=2 --log_prio=1", &["0x4002", "0x4004"], false),
        (" --cmdprio_class=2 --log_prio=1 --log_avg_msec=1", &["0x0000"], false),
        (" --cmdprio_class=2 --log_avg_msec=1", &["0"], false),
    ] {
        if needs && !privileged {
            println!("skipped: real time needs privilege");
            continue;
        }
        let ran = sandbox.fio(&format!("{job}{more} --write_lat_log=us"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{more}");
        let found = by_priority(&sandbox, "us_lat.1.log");
        assert_eq!(found.keys().collect::<Vec<_>>(), ours_has, "{more}");
        if !more.contains("avg") {
            assert_eq!(found.values().sum::<usize>(), 1024);
        }
        if theirs(&sandbox, &format!("{job}{more} --write_lat_log=them")).is_some() {
            assert_eq!(by_priority(&sandbox, "them_lat.1.log").keys().collect::<Vec<_>>(), ours_has, "{more}");
        }
    }
    // Compressed logs hold it too.
    let ran = sandbox.fio(&format!("{job} --cmdprio_class=2 --log_prio=1 --log_store_compressed=1 --write_lat_log=z"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = sandbox.fio("--inflate-log=z_lat.1.log.fz");
    assert!(ran.out.contains(", 0x4002\n") && ran.out.contains(", 0x4004\n"), "{ran:?}");
}

#[test]
fn priorities_that_fio_refuses_or_ignores_are_refused() {
    let sandbox = Sandbox::new();
    for (more, needle) in [
        ("--ioengine=libaio --cmdprio_percentage=10 --cmdprio_bssplit=4k/10", "contradict each other"),
        ("--ioengine=psync --cmdprio_percentage=10", "gives single I/Os no priority"),
        ("--ioengine=libaio --cmdprio_bssplit=4k/10/2/9", "from 0 to 7"),
    ] {
        let ran = sandbox.fio(&format!("--name=a --size=1m {more}"));
        assert_eq!(ran.code, Some(1), "{more}");
        assert!(ran.err.contains(needle), "{more}: {}", ran.err);
    }
}
