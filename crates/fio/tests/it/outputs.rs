//! fio's formats of a record: the same keys, types and order as fio's own, and the record's figures in them.
//!
//! `expected/fio-shape.txt` lists the keys of a json+ document of fio 3.42 with their types, in order. Of
//! options, percentiles and buckets, whose keys depend on the job, only the type is there.

use crate::fixture;

use serde_json::Value;
use std::fmt::Write as _;
use trueio_fio::outputs::{FioOutput, Format, bucket_middle, render};
use trueio_fio::results::parse as parse_fio;
use trueio_model::*;
use trueio_model::{ForeignDirection, ForeignLatencyKind};

/// Objects whose keys depend on the job.
const FREE: [&str; 4] = ["global options", "job options", "percentile", "bins"];

fn shape(path: &str, value: &Value, out: &mut String) {
    let kind = match value {
        Value::Object(_) => "object",
        Value::Array(_) => "list",
        Value::String(_) => "text",
        Value::Number(n) if n.is_f64() => "float",
        Value::Number(_) => "int",
        _ => "nothing of fio's",
    };
    if !path.is_empty() {
        let _ = writeln!(out, "{path}: {kind}");
    }
    match value {
        Value::Object(fields) if FREE.iter().any(|name| path.ends_with(name)) => {
            let all_text = fields.values().all(Value::is_string);
            let all_int = fields.values().all(Value::is_u64);
            let kind = if all_text { "text" } else { if all_int { "int" } else { "mixed" } };
            let _ = writeln!(out, "{path}.*: {kind}");
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                shape(&if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, value, out);
            }
        }
        Value::Array(items) => {
            if let Some(first) = items.first() {
                shape(&format!("{path}[]"), first, out);
            }
        }
        _ => {}
    }
}

fn latencies(from_ns: u64, count: u64) -> Histogram {
    let mut histogram = Histogram::new();
    (0..count).for_each(|i| histogram.record(from_ns + i * i % 900_001));
    histogram
}

fn op(op: OpKind, count: u64, bytes: u64) -> OpRecord {
    let of = |ns| if op == OpKind::Sync { Histogram::new() } else { latencies(ns, count) };
    let latency = LatencySet {
        submission: of(1_000),
        completion: latencies(20_000, count),
        total: latencies(21_000, count),
        from_intended: Histogram::new(),
    };
    OpRecord {
        op,
        io_count: count,
        byte_count: count * bytes,
        short_count: 0,
        error_count: 0,
        latency,
        priorities: Vec::new(),
        percentiles: Vec::new(),
        dependence: None,
        mean_latency_ns: None,
        ios_per_s: None,
    }
}

/// A randrw job at depth 8 with syncs, of 2.05 seconds.
fn mixed() -> RunRecord {
    let mut record = fixture::baseline(2);
    record.phases.truncate(1);
    record.plan.jobs.truncate(1);
    let plan = &mut record.plan.jobs[0];
    plan.name = "mix".into();
    plan.queue.depth = 8;
    plan.pattern.mix = OpMix::ReadWrite { read_percent: 70 };
    plan.output.slat_percentiles = true;
    plan.output.lat_percentiles = true;
    let given = vec![
        word("bs", "64K", true),
        word("time_based", "", true),
        word("rw", "randrw", false),
        word("bs", "2k", false),
        word("iodepth", "8", false),
        word("bs", "4K", false),
        word("description", "with a\ttab", true),
    ];
    record.spec = vec![fio_spec("mix", 0, given)];
    let phase = &mut record.phases[0];
    phase.elapsed_ns = 2_050_000_000;
    let job = &mut phase.jobs[0];
    job.elapsed_ns = 2_050_000_000;
    job.ops = vec![op(OpKind::Read, 7_000, 4096), op(OpKind::Write, 3_000, 4096), op(OpKind::Sync, 100, 0)];
    job.series = (1..=20)
        .map(|i| SeriesRow {
            end_ns: i * 100_000_000,
            span_ns: 100_000_000,
            read_count: 300 + i * 4,
            read_bytes: (300 + i * 4) * 4096,
            write_count: 150,
            write_bytes: 150 * 4096,
            other_count: 5,
            trim_count: 0,
            trim_bytes: 0,
            latency_ns_p50: 0,
            latency_ns_p99: 0,
            latency_ns_max: 0,
        })
        .collect();
    job.queue = Some(QueueCounts {
        depth: [1, 2, 4, 9_993, 0, 0, 0],
        submit: [0, 10_000, 0, 0, 0, 0, 0],
        complete: [0, 9_000, 500, 0, 0, 0, 0],
    });
    job.threads = ThreadUsage {
        user_ns: 205_000_000,
        system_ns: 410_000_000,
        context_switch_count: 77,
        major_fault_count: 1,
        minor_fault_count: 9,
        elapsed_ns: 2_050_000_000,
        waiting: None,
    };
    record
}

fn options(formats: &[Format]) -> FioOutput {
    FioOutput { formats: formats.to_vec(), ..FioOutput::default() }
}

fn word(name: &str, text: &str, is_global: bool) -> FioWord {
    FioWord { name: name.into(), spelled: None, text: text.into(), is_global, origin: Origin::Default }
}

/// A job's specification in fio's language.
fn fio_spec(name: &str, group: u32, given: Vec<FioWord>) -> JobSpec {
    let fio = FioJob { name: name.into(), clones: 1, number: 1, group, given, ..FioJob::default() };
    JobSpec { fio: Some(Box::new(fio)), ..JobSpec::new(name) }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn json_has_the_keys_types_and_order_of_fio_and_one_key_more() {
    let document = render(&mixed(), &options(&[Format::JsonPlus]));
    let mut found = String::new();
    let mut value = read(&document);
    assert!(value.as_object_mut().unwrap().shift_remove("trueio").is_some());
    shape("", &value, &mut found);
    assert_eq!(found, include_str!("../expected/fio-shape.txt"));
    assert!(document.starts_with("{\n  \"fio version\" : \"fio-3.42\",\n  \"timestamp\" : "));
    assert!(document.ends_with("\n}\n"));
}

#[test]
fn plain_json_is_the_same_without_buckets() {
    let plain = read(&render(&mixed(), &options(&[Format::Json])));
    let mut plus = read(&render(&mixed(), &options(&[Format::JsonPlus])));
    fn without_bins(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.shift_remove("bins");
                fields.values_mut().for_each(without_bins);
            }
            Value::Array(items) => items.iter_mut().for_each(without_bins),
            _ => {}
        }
    }
    without_bins(&mut plus);
    assert_eq!(plain, plus);
}

#[test]
fn keys_that_scripts_read_equal_the_record() {
    let record = mixed();
    let value = read(&render(&record, &options(&[Format::JsonPlus])));
    let job = &value["jobs"][0];
    // etcd's check of a disk.
    let sync = &job["sync"]["lat_ns"];
    let truth = record.phases[0].jobs[0].ops[2].latency.total.value_at_rank(99).unwrap();
    assert_eq!(sync["percentile"]["99.000000"].as_u64(), Some(bucket_middle(truth)));
    assert_eq!(job["sync"]["total_ios"], 100);
    assert_eq!(job["read"]["io_bytes"], 7_000 * 4096);
    assert_eq!(job["read"]["io_kbytes"], 28_000);
    assert_eq!(job["read"]["runtime"], 2_050);
    assert_eq!(job["read"]["iops"].as_f64(), Some(3414.634146));
    assert_eq!(job["read"]["bw_bytes"], 7_000u64 * 4096 * 1000 / 2_050);
    assert_eq!(job["read"]["bw"], 7_000u64 * 4096 * 1000 / 2_050 / 1024);
    // Four spans of 500 ms: 1560, 1660, 1760 and 1860 reads.
    assert_eq!(job["read"]["iops_min"], 3_120);
    assert_eq!(job["read"]["iops_max"], 3_720);
    assert_eq!(job["read"]["iops_mean"], 3_420.0);
    assert_eq!(job["read"]["iops_samples"], 4);
    assert_eq!(job["read"]["bw_mean"], 13_680.0);
    assert_eq!(job["usr_cpu"], 10.0);
    assert_eq!(job["sys_cpu"], 20.0);
    assert_eq!(job["ctx"], 77);
    assert_eq!(job["job_runtime"], 2_050);
    assert_eq!(job["iodepth_level"]["8"], 99.93);
    assert_eq!(job["iodepth_level"]["1"], 0.1, "what happened at all is never nothing");
    // A word that was typed twice counts once, and control characters do no harm.
    assert_eq!(job["job options"]["bs"], "4K");
    assert_eq!(value["global options"]["bs"], "64K");
    assert_eq!(job["desc"], "with a\ttab");
    assert_eq!(job["trim"]["total_ios"], 0);
}

#[test]
fn our_reader_of_fios_json_reads_back_the_same_figures() {
    let record = mixed();
    let run = parse_fio(&render(&record, &options(&[Format::JsonPlus]))).unwrap();
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    assert_eq!(run.jobs.len(), 1);
    let truth = &record.phases[0].jobs[0];
    for (kind, direction) in [(0, ForeignDirection::Read), (1, ForeignDirection::Write), (2, ForeignDirection::Sync)] {
        let op = &truth.ops[kind];
        let found = run.jobs[0].ops.iter().find(|op| op.direction == direction).unwrap();
        assert_eq!((found.io_count, found.byte_count), (op.io_count, op.byte_count), "{direction}");
        let total = found.latencies.iter().find(|l| l.kind == ForeignLatencyKind::Total).unwrap();
        assert_eq!(Some(total.min_ns), op.latency.total.min_ns());
        assert_eq!(Some(total.max_ns), op.latency.total.max_ns());
        assert!((total.mean_ns - op.latency.total.mean_ns().unwrap()).abs() < 1e-5);
        let histogram = total.histogram.as_ref().unwrap();
        assert_eq!(histogram.count(), op.latency.total.count());
        for rank in [1, op.io_count / 2, op.io_count] {
            let (ours, theirs) =
                (op.latency.total.value_at_rank(rank).unwrap() as f64, histogram.value_at_rank(rank).unwrap() as f64);
            assert!((theirs / ours - 1.0).abs() < 1.5 / 64.0, "{direction} {rank}: {ours} {theirs}");
        }
    }
}

/// Goal: `numjobs=3` gives three entries unless they are reported together, which is what scripts rely on.
#[test]
fn workers_kept_apart_are_entries_of_their_own_with_one_name() {
    let mut record = mixed();
    let whole = record.phases[0].jobs[0].clone();
    record.plan.jobs[0].workers = 3;
    record.plan.jobs[0].output.grouping = Grouping::Worker;
    record.phases[0].jobs[0].workers = (1..=3u64)
        .map(|i| {
            let mut worker = whole.clone();
            worker.ops = vec![op(OpKind::Read, 1_000 * i, 4096)];
            worker
        })
        .collect();
    let value = read(&render(&record, &options(&[Format::Json])));
    let jobs = value["jobs"].as_array().unwrap();
    assert_eq!(
        jobs.iter().map(|job| job["read"]["total_ios"].as_u64().unwrap()).collect::<Vec<_>>(),
        [1_000, 2_000, 3_000]
    );
    assert!(jobs.iter().all(|job| job["jobname"] == "mix" && job["groupid"] == 0));
    record.plan.jobs[0].output.grouping = Grouping::Job;
    record.phases[0].jobs[0].workers.clear();
    let value = read(&render(&record, &options(&[Format::Json])));
    assert_eq!(value["jobs"].as_array().unwrap().len(), 1);
}

/// Goal: jobs that are reported together are one entry: the first one's name, the last one's options,
/// percentiles of all their I/Os; a stonewall begins a new group.
#[test]
fn jobs_of_a_group_are_one_entry_and_a_stonewall_ends_it() {
    let mut record = mixed();
    let (plan, phase) = (record.plan.jobs[0].clone(), record.phases[0].clone());
    let mut second = JobPlan { name: "second".into(), ..plan.clone() };
    let third = JobPlan { name: "third".into(), phase: plan.phase + 1, ..plan };
    second.pattern.mix = OpMix::Only(OpKind::Write);
    record.plan.jobs.extend([second, third]);
    let mut job = phase.jobs[0].clone();
    job.ops = vec![op(OpKind::Write, 5_000, 8192)];
    record.phases[0].jobs.push(job);
    record.phases.push(phase);
    let given = |rw: &str| vec![word("group_reporting", "", true), word("rw", rw, false)];
    record.spec =
        vec![fio_spec("mix", 0, given("a")), fio_spec("second", 0, given("b")), fio_spec("third", 1, given("c"))];
    let value = read(&render(&record, &options(&[Format::Json])));
    let jobs = value["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    assert_eq!((&jobs[0]["jobname"], &jobs[0]["job options"]["rw"]), (&"mix".into(), &"b".into()));
    assert_eq!(jobs[0]["write"]["total_ios"], 8_000);
    assert_eq!(jobs[0]["write"]["clat_ns"]["N"], 8_000);
    assert_eq!((&jobs[1]["jobname"], &jobs[1]["groupid"]), (&"third".into(), &1.into()));
}

#[test]
fn what_is_switched_off_is_counted_as_none_and_unified_figures_are_those_of_all() {
    let mut record = mixed();
    let output = &mut record.plan.jobs[0].output;
    (output.hides_clat, output.hides_slat, output.hides_bw) = (true, true, true);
    output.unified = Unified::Both;
    let job = &read(&render(&record, &options(&[Format::JsonPlus])))["jobs"][0];
    assert_eq!(job["read"]["clat_ns"]["N"], 0);
    assert_eq!(job["read"]["lat_ns"]["N"], 7_000);
    assert_eq!(job["read"]["bw_samples"], 0);
    assert_eq!(job["mixed"]["total_ios"], 10_000);
    assert_eq!(job["mixed"]["lat_ns"]["N"], 10_000);
    let keys: Vec<&String> = job.as_object().unwrap().keys().skip_while(|key| *key != "read").take(5).collect();
    assert_eq!(keys, ["read", "write", "trim", "sync", "mixed"], "the order of fio's");
    record.plan.jobs[0].output.unified = Unified::Mixed;
    let value = read(&render(&record, &options(&[Format::JsonPlus])));
    let job = value["jobs"][0].as_object().unwrap();
    assert!(job.contains_key("mixed") && !job.contains_key("read") && !job.contains_key("sync"));
}

#[test]
fn with_a_rate_lat_counts_from_the_intended_start_with_a_note() {
    let mut record = mixed();
    record.plan.jobs[0].pace =
        Some(Pace { ios_per_s: Some(100.0), bytes_per_s: None, of_writes: None, arrivals: Arrivals::Linear });
    record.plan.jobs[0].output.lat_percentiles = false;
    let job = &mut record.phases[0].jobs[0];
    job.ops[0].latency.from_intended = latencies(5_000_000, 7_000);
    let value = read(&render(&record, &options(&[Format::Json])));
    let lat = &value["jobs"][0]["read"]["lat_ns"];
    assert!(lat["min"].as_u64().unwrap() >= 5_000_000);
    assert!(lat["percentile"]["99.000000"].as_u64().unwrap() >= 5_000_000);
    assert!(value["jobs"][0]["read"]["clat_ns"]["min"].as_u64().unwrap() < 30_000);
    assert_eq!(value["trueio"]["lat_ns counts from"][0], "the intended start");
}

#[test]
fn a_job_that_failed_has_its_error_number_and_one_that_never_ran_that_of_cancelled() {
    let mut record = mixed();
    let plan = record.plan.jobs[0].clone();
    record.plan.jobs.push(JobPlan { name: "never".into(), phase: plan.phase + 1, ..plan });
    record.phases[0].jobs[0].failures = vec![IoFailure {
        op: OpKind::Write,
        errno: 28,
        path: "f".into(),
        offset: 0,
        length: 4096,
        address: 0,
        returned: 0,
        count: 1,
        explanation: "full".into(),
    }];
    record.outcome = Outcome::Failed { reason: "it is full".into() };
    let value = read(&render(&record, &options(&[Format::Json])));
    assert_eq!((&value["jobs"][0]["error"], &value["jobs"][1]["error"]), (&28.into(), &125.into()));
    assert_eq!(value["trueio"]["reason"], "it is full");
    record.phases[0].jobs[0].verify_failure_count = 1;
    let value = read(&render(&record, &options(&[Format::Json])));
    assert_eq!(value["jobs"][0]["error"], 84);
}

#[test]
fn warnings_and_verdicts_stand_inside_of_the_json_and_nothing_before_it() {
    let mut record = fixture::troubled();
    record.plan.jobs.truncate(record.phases.len());
    let options = FioOutput { warnings: vec!["say it".into()], ..options(&[Format::Json]) };
    let text = render(&record, &options);
    assert!(text.starts_with("{\n"));
    let value = read(&text);
    assert_eq!(value["trueio"]["warnings"][0], "say it");
    let phases = value["trueio"]["phases"].as_array().unwrap();
    let contradicted = phases.iter().find(|phase| phase["verdict"] == "contradicted").unwrap();
    assert!(!contradicted["objections"].as_array().unwrap().is_empty());
}

/// Field `n`, counted from 1 as the manuals of its readers do.
fn field(line: &str, n: usize) -> &str {
    line.split(';').nth(n - 1).unwrap()
}

#[test]
fn terse_lines_have_fios_fields_in_every_version() {
    let mut record = mixed();
    // As many percentiles as fio writes by default, and no disks.
    record.phases[0].devices.clear();
    record.spec.clear();
    let line = |version| {
        let options = FioOutput { terse_version: version, ..options(&[Format::Terse]) };
        render(&record, &options)
    };
    for (version, fields) in [(2, 161), (3, 121), (4, 162), (5, 180)] {
        let text = line(version);
        assert_eq!(text.lines().count(), 1);
        assert_eq!(text.trim_end().split(';').count(), fields, "version {version}");
    }
    // What yabs cuts out of version 3.
    let text = line(3);
    let value = read(&render(&record, &options(&[Format::Json])));
    let job = &value["jobs"][0];
    assert_eq!(field(&text, 3), "mix");
    for (n, key) in [(7, "read"), (48, "write")] {
        assert_eq!(field(&text, n), job[key]["bw"].to_string());
        assert_eq!(field(&text, n + 1), format!("{}", job[key]["iops"].as_f64().unwrap() as u64));
    }
    assert_eq!(field(&text, 90), "77");
    assert_eq!(field(&text, 96), "99.9%");
}

/// Goal: scripts that search fio's text find the same figures. The patterns are those of dbench and of the
/// Phoronix test suite.
#[test]
fn normal_text_is_found_by_the_patterns_of_dbench_and_phoronix() {
    let text = render(&mixed(), &options(&[Format::Normal]));
    let line = |head: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(head));
        found.unwrap_or_else(|| panic!("{head}: {text}"))
    };
    assert!(line("read:").starts_with("  read: IOPS=3414, BW=13.3MiB/s (14.0MB/s)(27.3MiB/2050msec)"), "{text}");
    assert!(line("write:").starts_with("  write: IOPS=1463, BW="), "{text}");
    assert!(line("READ:").starts_with("   READ: bw=13.3MiB/s (14.0MB/s), "), "{text}");
    assert!(line("lat (").contains("avg="), "{text}");
    assert!(line("cpu").contains("usr=10.00%, sys=20.00%, ctx=77, majf=1, minf=9"));
    assert!(line("mix: (groupid=0, jobs=").contains("err= 0: pid=0: "));
    let of_a_process = render(&mixed(), &FioOutput { pid: 4321, ..options(&[Format::Normal]) });
    assert!(of_a_process.contains("err= 0: pid=4321: "), "{of_a_process}");
    assert!(text.contains("    clat percentiles ("));
    assert!(text.contains("| 99.99th=["));
    assert!(text.contains("     trueio    : "));
}

#[test]
fn several_formats_come_in_fios_order() {
    let text = render(&mixed(), &options(&[Format::Normal, Format::Json, Format::Terse]));
    let (terse, json, normal) = (text.find("3;fio-").unwrap(), text.find("{\n").unwrap(), text.find("mix: (").unwrap());
    assert!(terse == 0 && terse < json && json < normal);
}

/// A job of which a fifth of the reads had a priority of their own, and no write.
fn with_priorities() -> RunRecord {
    let mut record = mixed();
    let of = |class, level, hint, from_ns, count| PriorityRecord {
        priority: IoPriority { class, level, hint },
        latency: LatencySet {
            submission: Histogram::new(),
            completion: latencies(from_ns, count),
            total: latencies(from_ns + 1_000, count),
            from_intended: Histogram::new(),
        },
    };
    let ops = &mut record.phases[0].jobs[0].ops;
    ops[0].priorities = vec![of(0, 0, 0, 30_000, 5_600), of(2, 1, 3, 10_000, 1_400)];
    ops[1].priorities = vec![of(0, 0, 0, 30_000, 3_000), of(2, 1, 0, 10_000, 0)];
    record
}

/// fio lists priorities only if two or more had I/Os, by one latency: completion, or total with
/// `lat_percentiles`.
#[test]
fn json_has_the_latencies_of_each_priority_where_there_are_several() {
    let mut record = with_priorities();
    for (is_total, key, least) in [(true, "lat_ns", 11_000), (false, "clat_ns", 10_000)] {
        record.plan.jobs[0].output.lat_percentiles = is_total;
        let document = read(&render(&record, &options(&[Format::JsonPlus])));
        let read = &document["jobs"][0]["read"];
        let prios = read["prios"].as_array().expect("two priorities");
        assert_eq!(prios.len(), 2);
        let keys: Vec<&String> = prios[1].as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["prioclass", "prio", "priohint", key]);
        assert_eq!(
            (&prios[1]["prioclass"], &prios[1]["prio"], &prios[1]["priohint"]),
            (&2.into(), &1.into(), &3.into())
        );
        assert_eq!((&prios[1][key]["N"], &prios[1][key]["min"]), (&1_400.into(), &least.into()));
        assert!(prios[0][key]["percentile"].is_object() && prios[0][key]["bins"].is_object());
        let order: Vec<&String> = read.as_object().expect("an object").keys().collect();
        let at = order.iter().position(|name| *name == "prios").expect("it is there");
        assert_eq!((order[at - 1].as_str(), order[at + 1].as_str()), ("lat_ns", "bw_min"));
        assert!(document["jobs"][0]["write"].get("prios").is_none(), "all writes had one priority");
    }
}

#[test]
fn normal_text_has_each_priority_with_its_share_and_the_terse_line_has_none() {
    let mut record = with_priorities();
    let text = render(&record, &options(&[Format::Normal]));
    for line in [
        "    lat prio 0/0/0 (usec): min=31, max=",
        "    lat prio 2/1/3 (usec): min=11, max=",
        "    lat prio 0/0/0 (80.00% of IOs) percentiles (",
        "    lat prio 2/1/3 (20.00% of IOs) percentiles (",
    ] {
        assert_eq!(text.matches(line).count(), 1, "{line}: {text}");
    }
    record.plan.jobs[0].output.lat_percentiles = false;
    let text = render(&record, &options(&[Format::Normal]));
    assert!(text.contains("    clat prio 2/1/3 (20.00% of IOs) percentiles ("), "{text}");
    let terse = |record: &RunRecord| render(record, &options(&[Format::Terse]));
    let mut plain = record.clone();
    plain.phases[0].jobs[0].ops.iter_mut().for_each(|op| op.priorities.clear());
    assert_eq!(terse(&record), terse(&plain));
}

/// All jobs of a group together have all priorities of theirs together.
#[test]
fn unified_figures_have_the_priorities_of_both_directions() {
    let mut record = with_priorities();
    record.plan.jobs[0].output.unified = Unified::Both;
    let document = read(&render(&record, &options(&[Format::Json])));
    let prios = document["jobs"][0]["mixed"]["prios"].as_array().expect("several");
    let counts: Vec<u64> = prios.iter().map(|of| of["lat_ns"]["N"].as_u64().expect("a count")).collect();
    assert_eq!(counts, [8_600, 1_400]);
}

#[test]
fn our_own_reports_name_each_priority_with_its_share() {
    let record = with_priorities();
    let text = trueio_report::terminal(&record, &trueio_report::Style { width: 200, color: false, unicode: true });
    assert!(text.contains(" read, priority 2/1/3: 1,400 I/Os (20.0 %), p50 "), "{text}");
    assert!(text.contains(" read, the worker's own priority: 5,600 I/Os (80.0 %)"), "{text}");
    assert!(trueio_report::html(&record).contains("By priority"));
}

/// Goal: while one server runs, the results of a server that has ended are complete and have a verdict.
#[test]
fn a_server_that_has_ended_is_not_called_running_while_another_is() {
    use trueio_fio::outputs::{ServerResult, render_clients};
    let record = mixed();
    let server =
        |hostname, is_running| ServerResult { hostname, port: 1, is_running, record: Some(&record), problem: None };
    let servers = [server("ended", false), server("runs", true)];
    let interim = |format| FioOutput { is_interim: true, ..options(&[format]) };
    let document = read(&render_clients(&servers, &interim(Format::Json)));
    let clients = &document["trueio"]["clients"];
    let verdict = |index: usize| clients[index]["phases"][0]["verdict"].clone();
    assert_eq!((&clients[0]["outcome"], &clients[1]["outcome"]), (&"complete".into(), &"running".into()));
    assert_eq!((verdict(0) == "not judged yet", verdict(1) == "not judged yet"), (false, true), "{clients}");
    let text = render_clients(&servers, &interim(Format::Normal));
    assert_eq!(text.matches("trueio    : not judged yet").count(), 1, "{text}");
    let whole = read(&render_clients(&[server("ended", false)], &options(&[Format::Json])));
    assert_eq!(whole["trueio"]["clients"][0]["outcome"], "complete");
}

/// Goal: metadata operations are counted as fio counts them, in every format, and reported as files,
/// too; the record claims no transfer.
#[test]
fn metadata_operations_count_as_fios_ios_and_bytes_and_as_files() {
    let mut record = mixed();
    let kept = record.clone();
    let names: Vec<u64> = record.phases[0].jobs[0].ops.iter().map(|op| op.io_count).collect();
    let ops: Vec<OpKind> = record.phases[0].jobs[0].ops.iter().map(|op| op.op).collect();
    let at = ops.iter().position(|op| *op == OpKind::Read).expect("it reads");
    record.plan.jobs[0].output.names = Some(NameCounts { names: 10, ios: 25, block_bytes: 512 });
    let (ios, bytes) = (names[at] * 25 / 10, names[at] * 25 / 10 * 512);
    let document = read(&render(&record, &options(&[Format::Json])));
    let of = &document["jobs"][0]["read"];
    assert_eq!((of["total_ios"].as_u64(), of["io_bytes"].as_u64()), (Some(ios), Some(bytes)));
    assert_eq!(of["clat_ns"]["N"].as_u64(), Some(record.phases[0].jobs[0].ops[at].latency.completion.count()));
    let per_s = |key: &str| of[key].as_f64().expect("a number");
    assert!((per_s("bw_bytes") / per_s("iops") - 512.0).abs() < 1.0, "{of}");
    if per_s("bw_mean") > 0.0 {
        assert!((per_s("bw_mean") * 1024.0 / per_s("iops_mean") - 512.0).abs() < 1.0, "{of}");
    }
    let all: u64 = ops.iter().zip(&names).filter(|(op, _)| **op != OpKind::Sync).map(|(_, count)| count).sum();
    assert_eq!(document["trueio"]["names"][0]["names"].as_u64(), Some(all));
    let text = render(&record, &options(&[Format::Normal]));
    assert!(
        text.contains(&format!(", {all} names, ")) && text.contains(&format!("issued rwts: total={ios},")),
        "{text}"
    );
    let terse = render(&record, &options(&[Format::Terse]));
    assert_eq!(terse.split(';').nth(5), Some((bytes >> 10).to_string().as_str()), "{terse}");
    // Numbers that no plan has make nothing overflow.
    let absurd = NameCounts { names: 0, ios: u64::MAX, block_bytes: u64::MAX };
    assert_eq!((absurd.of(u64::MAX), absurd.of(0)), ((u64::MAX, u64::MAX), (0, 0)));
    // Others have no such key.
    assert!(read(&render(&kept, &options(&[Format::Json])))["trueio"].get("names").is_none());
}
