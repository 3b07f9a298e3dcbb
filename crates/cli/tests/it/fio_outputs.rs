//! Outputs of `trueio fio`, parsed in the ways in which scripts parse fio's outputs.
//!
//! Limit: the figures are not compared with fio's (`cargo xtask bench fio-agreement` does that).

use crate::common::{Ran, Sandbox, real_fio, tool};
use serde_json::Value;
use std::fs;
use trueio_fio::results::parse as parse_fio;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Goal: fio's formats have a place for each figure, so none is withheld; the word says what it describes. Method: a file of holes.
#[test]
fn a_figure_that_is_shown_is_not_called_withheld() {
    let sandbox = Sandbox::new();
    fs::File::create(sandbox.path("holes")).and_then(|file| file.set_len(1 << 20)).expect("a file");
    let line = "--name=a --filename=holes --rw=randread --bs=4k --size=1m";
    assert!(sandbox.fio_done(line).out.contains("trueio    : not the disk "));
    let document = json(&sandbox.fio_done(&format!("{line} --output-format=json")).out);
    assert_eq!(document["trueio"]["phases"][0]["word"], "not the disk", "{:#}", document["trueio"]);
}

/// The check of etcd's and OpenShift's documentation: a small log, fdatasync after each write.
#[test]
fn the_99th_percentile_of_fdatasync_has_the_key_of_etcds_check() {
    let sandbox = Sandbox::new();
    let ran = sandbox.fio_done(
        "--rw=write --ioengine=sync --fdatasync=1 --directory=. --size=230k --bs=2300 --name=etcd --output-format=json",
    );
    assert!(ran.out.starts_with("{\n"), "nothing stands before the document");
    let document = json(&ran.out);
    let job = &document["jobs"][0];
    let sync = &job["sync"];
    assert!(sync["lat_ns"]["percentile"]["99.000000"].as_u64().unwrap() > 0);
    assert_eq!((&sync["total_ios"], &sync["lat_ns"]["N"]), (&102.into(), &102.into()));
    assert_eq!(job["write"]["total_ios"], 102, "the last partial block is not written");
    assert_eq!(job["iodepth_level"]["1"], 100.0, "sync calls are not counted as depth; fio prints 200 %");
    assert_eq!(document["global options"]["size"], "230k", "before the name, so of all jobs");
    // Python's reader is stricter than some.
    if let Err(reason) = tool("python3", &["-c", "pass"]) {
        eprintln!("skipped: {reason}");
        return;
    }
    fs::write(sandbox.path("o.json"), &ran.out).unwrap();
    let path = sandbox.path("o.json").display().to_string();
    let script = "import json, sys; d = json.load(open(sys.argv[1])); print(d['jobs'][0]['jobname'])";
    assert_eq!(tool("python3", &["-c", script, &path]).unwrap().trim(), "etcd");
}

/// yabs: four sizes, `--minimal`, fields 7, 8, 48 and 49 of the line with the job's name.
#[test]
fn the_fields_that_yabs_cuts_out_are_bandwidth_and_iops() {
    let sandbox = Sandbox::new();
    let ran = sandbox.fio_done(
        "--name=rand_rw_4k --ioengine=libaio --rw=randrw --rwmixread=50 --bs=4k --iodepth=64 --numjobs=2 --size=4m \
         --runtime=300ms --gtod_reduce=1 --direct=1 --filename=t --group_reporting --minimal",
    );
    let line = ran.out.lines().find(|line| line.contains("rand_rw_4k")).unwrap();
    let field = |n: usize| line.split(';').nth(n - 1).unwrap().parse::<u64>().unwrap();
    let (read_kib, read_iops, write_kib, write_iops) = (field(7), field(8), field(48), field(49));
    assert!(read_iops > 0 && write_iops > 0, "{line}");
    assert!(read_kib.abs_diff(read_iops * 4) <= 4 && write_kib.abs_diff(write_iops * 4) <= 4, "{line}");
    assert!(line.starts_with("3;fio-3."), "{line}");
}

/// dbench and kubestr: fio's normal text searched for `read: IOPS=`, `BW=`, `lat … avg=`.
#[test]
fn dbench_finds_its_figures_in_the_text() {
    let sandbox = Sandbox::new();
    let ran = sandbox.fio_done(
        "--randrepeat=0 --verify=0 --ioengine=libaio --direct=1 --name=read_latency --filename=t --bs=4K --iodepth=4 \
         --size=4M --readwrite=randread --time_based --ramp_time=50ms --runtime=200ms",
    );
    let line = |head: &str| ran.out.lines().find(|line| line.contains(head)).unwrap_or_else(|| panic!("{}", ran.out));
    assert!(line("read: IOPS=").contains(", BW="));
    assert!(line(" lat (").contains(", avg="));
    assert!(line("READ: bw=").contains("B/s ("));
    assert!(ran.out.starts_with("read_latency: (g=0): rw=randread, bs=(R) 4096B-4096B, "), "{}", ran.out);
    let trimmed = ran.out.trim_end();
    assert!(!trimmed.is_empty());
}

/// Goal: clones are separate entries unless they are reported together, and logs are numbered by clone.
#[test]
fn clones_are_three_entries_or_one_and_their_logs_have_consecutive_numbers() {
    let sandbox = Sandbox::new();
    let line = "--ioengine=null --size=64k --bs=4k --name=a --rw=randread --numjobs=3 --write_lat_log=x --name=b --rw=read \
                --stonewall --write_lat_log=x --output-format=json";
    let document = json(&sandbox.fio_done(line).out);
    let jobs = document["jobs"].as_array().unwrap();
    let of = |key: &str| jobs.iter().map(|job| job[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("jobname"), ["a", "a", "a", "b"]);
    assert_eq!(of("groupid"), [0, 0, 0, 1]);
    assert!(jobs.iter().all(|job| job["read"]["total_ios"] == 16));
    assert_eq!(jobs[2]["job options"]["numjobs"], "3");
    for number in 1..=4 {
        let log = fs::read_to_string(sandbox.path(&format!("x_lat.{number}.log"))).unwrap();
        assert_eq!(log.lines().count(), 16, "{number}");
    }
    let grouped = format!("--group_reporting {line}");
    let document = json(&sandbox.fio_done(&grouped).out);
    let jobs = document["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0]["read"]["clat_ns"]["N"], 48, "percentiles are those of all clones");
    assert_eq!(document["global options"]["group_reporting"], "");
}

#[test]
fn fios_output_of_a_run_is_parsed_with_equal_figures() {
    let sandbox = Sandbox::new();
    let ran = sandbox.fio_done("--name=a --ioengine=libaio --rw=randrw --bs=4k --size=1m --iodepth=4 --lat_percentiles=1 --output-format=json+",
    );
    let run = parse_fio(&ran.out).unwrap();
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    let document = json(&ran.out);
    let bytes: u64 = run.jobs[0].ops.iter().map(|op| op.byte_count).sum();
    assert_eq!(bytes, 1 << 20);
    for op in &run.jobs[0].ops {
        let of = &document["jobs"][0][op.direction.to_string()];
        assert_eq!(op.io_count, of["total_ios"].as_u64().unwrap());
        let headline = op.headline().unwrap();
        assert_eq!(headline.histogram.as_ref().unwrap().count(), of["lat_ns"]["N"].as_u64().unwrap());
    }
}

/// Goal: `--status-interval` prints whole documents in sequence while the job runs, as fio does, and each has larger counts
/// than the previous one.
#[test]
fn status_intervals_are_documents_that_grow_and_the_last_is_the_result() {
    let sandbox = Sandbox::new();
    let line = "--name=a --ioengine=null --rw=randread --bs=4k --size=1g --time_based --runtime=1300ms --status-interval=400ms \
                --rate_iops=5000 --output-format=json";
    let text = sandbox.fio_done(line).out;
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect();
    // At least one during the run, also on a busy machine.
    assert!(documents.len() >= 2, "{}", documents.len());
    let ios: Vec<u64> = documents.iter().map(|d| d["jobs"][0]["read"]["total_ios"].as_u64().unwrap()).collect();
    // The last interim document may have the final counts.
    assert!(ios.windows(2).all(|pair| pair[0] <= pair[1]) && ios[0] < ios[ios.len() - 1] && ios[0] > 0, "{ios:?}");
    let (first, last) = (&documents[0], documents.last().unwrap());
    assert_eq!((&first["trueio"]["outcome"], &last["trueio"]["outcome"]), (&"running".into(), &"complete".into()));
    assert_eq!(first["trueio"]["phases"][0]["verdict"], "not judged yet");
    assert!(first["jobs"][0]["eta"].as_u64().unwrap() <= 2 && last["jobs"][0]["eta"] == 0);
    assert_eq!(first["jobs"][0]["read"]["clat_ns"]["N"], first["jobs"][0]["read"]["total_ios"]);
    // To a file, and with our own reader: the last document counts.
    sandbox.fio_done(&format!("{line} --output=o"));
    let run = parse_fio(&fs::read_to_string(sandbox.path("o")).unwrap()).unwrap();
    assert!(run.jobs[0].ops[0].io_count > 5_000);
}

/// Goal: the lines add up to the result, I/O by I/O, for each job and phase.
/// Method: jobs that end at different times, and a phase that is shorter than an interval.
#[test]
fn json_lines_have_each_interval_and_then_the_result() {
    let sandbox = Sandbox::new();
    let line = "--ioengine=null --rw=randrw --bs=4k --size=1g --status-interval=300ms --output-format=jsonl --time_based \
                --name=a --runtime=1300ms --rate_iops=5000 --name=b --runtime=400ms --rate_iops=3 \
                --name=c --stonewall --runtime=50ms";
    let text = sandbox.fio_done(line).out;
    let lines: Vec<Value> = text.lines().map(json).collect();
    let (result, intervals) = lines.split_last().unwrap();
    assert_eq!(result["type"], "result");
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"));
    for (job, phase) in [("a", "a+b"), ("b", "a+b"), ("c", "c")] {
        let entry = |line: &Value| line["jobs"].as_array().unwrap().iter().find(|of| of["jobname"] == job).cloned();
        let total = entry(result).unwrap();
        for direction in ["read", "write"] {
            let sum = |key: &str| {
                let of_job = intervals.iter().filter_map(entry);
                of_job.map(|entry| number(&entry[direction][key])).sum::<u64>()
            };
            let (ios, bytes) = (number(&total[direction]["total_ios"]), number(&total[direction]["io_bytes"]));
            assert_eq!((sum("ios"), sum("bytes")), (ios, bytes), "{job}: {text}");
        }
        assert!(number(&total["read"]["total_ios"]) > 0, "{text}");
        assert!(intervals.iter().any(|line| line["phase"] == phase), "{text}");
    }
    assert!(intervals.iter().filter(|line| line["phase"] == "a+b").count() >= 2, "{text}");
    for line in intervals {
        assert_eq!(line["type"], "interval");
        // Each interval has its own rate, not that since the beginning.
        for job in line["jobs"].as_array().unwrap().iter().filter(|job| number(&job["interval_ms"]) >= 100) {
            let of = |key: &str| job["read"][key].as_f64().unwrap();
            let by_hand = of("ios") * 1e3 / job["interval_ms"].as_f64().unwrap();
            assert!((of("iops") - by_hand).abs() <= by_hand * 0.02, "{line}");
        }
    }
}

/// Goal: SIGUSR1 prints the results so far, as in fio, and the run goes on.
/// Method: the signal is sent as soon as the kernel shows its handler, and SIGINT once the results are there.
#[test]
fn sigusr1_prints_the_results_so_far_and_the_run_goes_on() {
    let sandbox = Sandbox::new();
    let line = "fio --name=a --ioengine=null --rw=read --bs=4k --size=1g --rate_iops=1000 --runtime=300 --time_based \
                --output-format=json --output=out --eta=never";
    let mut child = sandbox.command(&line.split_whitespace().collect::<Vec<_>>()).spawn().unwrap();
    let caught = |signal: i32| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(mask.trim(), 16).unwrap_or(0) >> (signal - 1) & 1 == 1
    };
    let documents = || {
        let text = std::fs::read_to_string(sandbox.path("out")).unwrap_or_default();
        let all = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        all.filter_map(Result::ok).collect::<Vec<_>>()
    };
    let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
    while !caught(libc::SIGUSR1) || !caught(libc::SIGINT) {
        pause();
    }
    // SAFETY: kill only sends a signal to the child, which has not been waited for.
    let send = |signal: i32| assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    send(libc::SIGUSR1);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while documents().is_empty() {
        assert!(std::time::Instant::now() < deadline, "no results in `out` while the run goes on");
        pause();
    }
    send(libc::SIGINT);
    let code = child.wait().unwrap().code();
    let documents = documents();
    assert_eq!((documents.len(), code.is_some()), (2, true), "{code:?}");
    let ios = |document: &Value| document["jobs"][0]["read"]["total_ios"].as_u64().unwrap();
    assert!(ios(&documents[0]) <= ios(&documents[1]), "{documents:?}");
}

/// Goal: a job that has ended is in every later document with its figures.
#[test]
fn an_ended_job_is_complete_in_later_status_documents() {
    let sandbox = Sandbox::new();
    let line = "--ioengine=null --rw=randread --bs=4k --size=1g --status-interval=300ms --output-format=json \
                --name=short --number_ios=777 --name=long --runtime=1300ms --time_based --rate_iops=5000";
    let text = sandbox.fio_done(line).out;
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect();
    assert!(documents.len() >= 2, "{}", documents.len());
    for document in documents {
        assert_eq!(document["jobs"][0]["read"]["total_ios"], 777, "{document}");
    }
}

#[test]
fn options_of_the_output_format_are_applied() {
    let sandbox = Sandbox::new();
    let base = "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m";
    let document =
        json(&sandbox.fio_done(&format!("{base} --disk_util=0 --percentile_list=50:99.9 --output-format=json")).out);
    assert!(document.get("disk_util").is_none());
    let percentiles = document["jobs"][0]["read"]["clat_ns"]["percentile"].as_object().unwrap();
    assert_eq!(percentiles.keys().collect::<Vec<_>>(), ["50.000000", "99.900000"]);
    let document = json(&sandbox.fio_done(&format!("{base} --unified_rw_reporting=1 --output-format=json")).out);
    assert_eq!(document["jobs"][0]["mixed"]["total_ios"], 256);
    let document = json(&sandbox.fio_done(&format!("{base} --name=b --size=1m --stats=0 --output-format=json")).out);
    assert_eq!(document["jobs"].as_array().unwrap().len(), 1, "a job with stats=0 is not reported");
    let text = sandbox.fio_done(&format!("{base} --unit_base=1 --significant_figures=5")).out;
    assert!(text.contains("bit/s ("), "{text}");
    let ran = sandbox.run(&["fio", "--name=a", "--ioengine=null", "--size=1m", "--end_syncfs=1"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("end_syncfs=1` is not done here: a whole filesystem is not flushed"), "{}", ran.err);
}

/// Goal: `--idle-prof` has fio's keys and lines, reports a busy machine as busy, and prints nothing without the option.
/// Method: a load on each processor; a short job with the installed fio for comparison.
#[test]
fn idle_prof_has_fios_keys_and_decreases_with_load() {
    let sandbox = Sandbox::new();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let load = format!("--name=a --ioengine=null --rw=read --size=1t --numjobs={cpus} --time_based --runtime=1");
    let ran = sandbox.fio_done(&format!("{load} --idle-prof=percpu --output-format=json,normal"));
    let (document, text) = ran.out.split_at(ran.out.find("\n}\n").expect("a document") + 3);
    let idleness = &json(document)["cpu_idleness"];
    let percent = |key: &str| idleness[key].as_f64().unwrap_or_else(|| panic!("{key}: {idleness}"));
    // Others on this machine only make it busier; where not all its processors may be used, the others may idle.
    let is_whole = idleness.as_object().unwrap().len() - 3 == cpus;
    assert!((0.0..if is_whole { 60.0 } else { 100.1 }).contains(&percent("system")), "{idleness}");
    assert!(percent("unit_mean") > 0.0 && percent("unit_stddev") >= 0.0, "{idleness}");
    let each: Vec<f64> = (0..cpus).filter_map(|cpu| idleness[format!("cpu-{cpu}")].as_f64()).collect();
    assert!(each.iter().all(|percent| (0.0..=100.0).contains(percent)), "{idleness}");
    let begin = text.find("\nCPU idleness:\n  system: ").expect("fio's line");
    let lines: Vec<&str> = text[begin + 1..].lines().take(4).collect();
    // The document has six decimals and the text two, each rounded from the measured value: a tie may go either way.
    let is_rounded = |text: &str, key: &str| (text.parse::<f64>().expect(text) - percent(key)).abs() < 0.005_001;
    let system = lines[1].strip_prefix("  system: ").and_then(|rest| rest.strip_suffix('%')).expect(lines[1]);
    assert!(is_rounded(system, "system"), "{system}: {idleness}");
    assert_eq!(lines[2].matches('%').count(), idleness.as_object().unwrap().len() - 3, "{lines:?}");
    let unit = lines[3].strip_prefix("  unit work: mean=").and_then(|rest| rest.split_once("us, stddev="));
    let (mean, stddev) = unit.expect(lines[3]);
    assert!(is_rounded(mean, "unit_mean") && is_rounded(stddev, "unit_stddev"), "{}: {idleness}", lines[3]);
    // As fio lays it out, and only if it is asked for.
    // Nothing is printed about processors without a tick.
    let short = "--name=a --ioengine=null --size=64k --time_based --runtime=300ms --output-format=json";
    let keys = |document: &Value| -> Vec<String> {
        document["cpu_idleness"].as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default()
    };
    assert!(keys(&json(&sandbox.fio_done(short).out)).is_empty());
    for what in ["system", "percpu"] {
        let line = format!("{short} --idle-prof={what}");
        let ours = keys(&json(&sandbox.fio_done(&line).out));
        let Some(mut theirs) = real_fio(&sandbox, &line) else { continue };
        let theirs = Ran::of(theirs.output().expect("fio starts"));
        assert_eq!(ours, keys(&json(&theirs.out[theirs.out.find('{').expect("JSON")..])), "{what}");
    }
    let calibrated = sandbox.fio_done("--idle-prof=calibrate").out;
    assert!(calibrated.starts_with("CPU idleness:\n  unit work: mean="), "{calibrated}");
    let refused = sandbox.run(&["fio", "--idle-prof=all", "--name=a", "--ioengine=null", "--size=64k"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("`all` is not one of system, percpu, calibrate"), "{}", refused.err);
    let remote = sandbox.run(&["fio", "--client=127.0.0.1", "a.fio", "--idle-prof=system"]);
    assert!(remote.err.contains("is of the machine where jobs run"), "{}", remote.err);
}
