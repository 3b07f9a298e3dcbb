//! `trueio compare`: live and over records, its answers, gates and exit codes, and its messages for bad input.

use crate::common::*;
use std::fs;
use std::time::{Duration, Instant};
use trueio_model::{Comparison, Conclusion, GateVerdict, Metric, Outcome, Verdict};

/// A modelled disk with the given latency: exact, and quick.
const MODEL: &[&str] = &[
    "compare",
    "--no-evidence",
    "--ioengine",
    "simulated",
    "--rw",
    "randread",
    "--size",
    "16m",
    "--slice",
    "300ms",
    "--budget",
    "1s",
];

fn compared(sandbox: &Sandbox, arguments: &[&str]) -> (Ran, Comparison) {
    let path = sandbox.aside("comparison.json");
    let mut all = arguments.to_vec();
    all.extend(["--json", path.to_str().expect("UTF-8")]);
    let ran = sandbox.run(&all);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("no comparison was written: {e}\n{ran:?}"));
    let comparison = trueio_report::parse_comparison(&text).expect("a comparison");
    (ran, comparison)
}

fn with<'a>(first: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [first, more].concat()
}

fn answer(comparison: &Comparison, side: usize, metric: Metric) -> &trueio_model::Answer {
    let answers = &comparison.parts[0].answers;
    answers.iter().find(|a| a.side == side && a.metric == metric).expect("an answer for every side and metric")
}

#[test]
fn a_disk_10_percent_slower_is_reported_in_every_output_and_equal_ones_are_not() {
    let sandbox = Sandbox::new();
    let vary = ["--vary", "simulated=service=100us,service=110us,service=100us"];
    let outputs = ["--html", "page.html", "--markdown", "summary.md", "--junit", "tests.xml"];
    let (ran, comparison) = compared(&sandbox, &with(&with(&with(MODEL, &vary), &outputs), &["-v"]));
    ran.assert_code(0);
    let slower = answer(&comparison, 1, Metric::Iops);
    assert_eq!(slower.conclusion, Conclusion::Worse, "{slower:?}");
    let ratio = slower.ratio.expect("a ratio");
    assert!((ratio.estimate - 1.0 / 1.1).abs() < 1e-3 && ratio.low <= ratio.estimate && ratio.estimate <= ratio.high);
    assert_eq!(answer(&comparison, 1, Metric::P99).conclusion, Conclusion::Worse);
    assert_eq!(answer(&comparison, 2, Metric::Iops).conclusion, Conclusion::Same);
    assert!(
        ran.out.contains("slower by more than 5 %") && ran.out.contains("no difference larger than 5 %"),
        "{ran:?}"
    );
    let read = |name: &str| fs::read_to_string(sandbox.path(name)).expect("an output");
    let (page, summary, tests) = (read("page.html"), read("summary.md"), read("tests.xml"));
    for text in [
        "slower by more than 5 %",
        "<svg",
        "Latency by percentile",
        "Latency compared with A",
        "over time",
        "Change of each metric",
    ] {
        assert!(page.contains(text), "`{text}` is not on the page");
    }
    assert!(summary.contains("| IOPS |") && summary.contains("slower by more than 5 %"), "{summary}");
    assert!(tests.contains("<testcase classname=\"trueio.compare\" name=\"B IOPS\">"), "{tests}");
    assert_eq!(comparison.parts[0].sides[1].name, "simulated=service=110us");
    assert!(sandbox.listing().iter().all(|line| !line.contains(".dat")), "files remain");
}

#[test]
fn a_gate_exits_with_1_if_shown_0_if_absent_and_3_if_undecided() {
    let sandbox = Sandbox::new();
    let vary = ["--vary", "simulated=service=100us,service=110us"];
    // It ends when the answer is clear, or after 20 s, in which 970 rounds fit and 7 suffice. A budget of a second had
    // too few on a machine with other work.
    let model = with(&MODEL[..MODEL.len() - 2], &["--budget", "20s"]);
    for (condition, code, verdict) in [
        ("p50 > +5%", 1, GateVerdict::Shown),
        ("p50 > +20%", 0, GateVerdict::Absent),
        ("iops < -5%", 1, GateVerdict::Shown),
        // The model uses too little CPU time for a difference to show in so few I/Os.
        ("iops < 0.5x", 0, GateVerdict::Absent),
    ] {
        let gate = ["--fail-if", condition, "--junit", "tests.xml"];
        let (ran, comparison) = compared(&sandbox, &with(&with(&model, &vary), &gate));
        ran.assert_code(code);
        assert_eq!(comparison.gates[0].verdict, verdict, "{condition}: {:?}", comparison.gates);
        let tests = fs::read_to_string(sandbox.path("tests.xml")).expect("XML");
        assert_eq!(tests.contains("<failure"), verdict == GateVerdict::Shown, "{tests}");
    }
    // Ten I/Os a slice have no p99.9, and resampling needs 30 rounds.
    let few = ["--fail-if", "p99.9 > +5%", "--vary", "simulated=service=30ms,service=31ms", "--budget", "10ms"];
    let mut arguments = MODEL[..MODEL.len() - 2].to_vec();
    arguments.extend(few);
    let (ran, comparison) = compared(&sandbox, &arguments);
    ran.assert_code(3);
    assert_eq!(comparison.gates[0].verdict, GateVerdict::CannotTell);
    assert!(ran.out.contains("undecided: p99.9 > +5%"), "{ran:?}");
}

#[test]
fn invalid_requests_are_refused_before_anything_is_touched() {
    let sandbox = Sandbox::new();
    let cases: &[(&[&str], &str)] = &[
        (&["compare"], "at least two sides"),
        (&["compare", "--vary", "iodepth=1,2"], "--vary creates the sides from one job"),
        (&["compare", "--rw", "read", "--size", "1m", "--vary", "iodepth"], "an option and its values are expected"),
        (&["compare", "--rw", "read", "--size", "1m", "--vary", "iodepth=1"], "at least two values"),
        (&["compare", "--rw", "read", "--size", "1m", "--vary", "iodepht=1,2"], "iodepth"),
        (&["compare", "--rw", "read", "--size", "1m", "--vary", "bs=1k,2k", "--vary", "bs=1k,2k"], "is given twice"),
        (&["compare", "a", "b", "--fail-if", "p98 > +5%"], "column 1: a figure is expected, not `p98`"),
        (&["compare", "a", "b", "--margin", "none"], "--margin `none`"),
        (&["compare", "a", "b", "--until", "speed"], "is not a metric"),
        (&["compare", "--live", "baseline:none", "baseline:none"], "is not a preset"),
        (&["compare", "--live", "missing.toml", "other.toml"], "cannot be read"),
        (
            &["compare", "--rw", "read", "--size", "1m", "--vary", "bs=4k,8k", "--budget", "1s"],
            "--budget 1.00 s is too short for an answer",
        ),
    ];
    for (arguments, sentence) in cases {
        // With --until the sides are looked at first.
        if arguments.contains(&"--until") {
            let all = ["compare", "--rw", "read", "--size", "1m", "--vary", "bs=4k,8k", "--until", "speed"];
            sandbox.run(&all).assert_refused(&[sentence]);
            continue;
        }
        sandbox.run(arguments).assert_refused(&[sentence]);
    }
    assert_eq!(sandbox.listing(), [""; 0]);
}

#[test]
fn two_job_files_on_one_real_file_have_evidence_and_a_verdict_each() {
    let sandbox = Sandbox::new();
    sandbox.write("a.toml", "[job.direct]\nrw = \"randread\"\nbs = \"4k\"\nsize = \"8m\"\nioengine = \"sync\"\n");
    sandbox.write("b.toml", "[job.large]\nrw = \"randread\"\nbs = \"64k\"\nsize = \"8m\"\nioengine = \"sync\"\n");
    let before = sandbox.listing();
    let (ran, comparison) = compared(
        &sandbox,
        &["compare", "a.toml", "b.toml", "--live", "--budget", "20s", "--slice", "50ms", "--order-seed", "7"],
    );
    ran.assert_code(0);
    assert_eq!(comparison.outcome, Outcome::Complete);
    let setting = comparison.setting.as_ref().expect("what was planned");
    let files: Vec<&str> = setting.plan.jobs.iter().map(|job| job.files[0].path.as_str()).collect();
    assert_eq!(files[0], files[1], "both sides use one file");
    let sides = &comparison.parts[0].sides;
    assert!(sides.iter().all(|side| side.slices.len() >= 6 && !side.latency.is_empty()));
    let orders: Vec<u32> = sides[0].slices.iter().map(|slice| slice.place).collect();
    assert!(orders.contains(&0) && orders.contains(&1), "the order never changed: {orders:?}");
    // The same on every machine: 64 KiB reads move more bytes.
    let bandwidth = answer(&comparison, 1, Metric::Bandwidth);
    assert!(bandwidth.ratio.is_some_and(|ratio| ratio.estimate > 1.0), "{bandwidth:?}\n{ran:?}");
    assert_eq!(sandbox.listing(), before, "files remain");
}

#[test]
fn a_contradicted_side_gives_no_winner_however_fast_it_is() {
    let sandbox = Sandbox::new();
    sandbox.data_file("full.dat", 8 << 20);
    fs::File::create(sandbox.path("sparse.dat")).and_then(|f| f.set_len(8 << 20)).expect("a file of nothing");
    let (ran, comparison) = compared(
        &sandbox,
        &[
            "compare",
            "--rw",
            "randread",
            "--bs",
            "4k",
            "--ioengine",
            "psync",
            "--direct",
            "prefer",
            "--vary",
            "filename=full.dat,sparse.dat",
            "--budget",
            "4s",
            "--slice",
            "50ms",
            "--fail-if",
            "iops < -5%",
        ],
    );
    assert_eq!(comparison.parts[0].sides[1].verdict, Verdict::Contradicted, "{ran:?}");
    for metric in Metric::ALL {
        let answer = answer(&comparison, 1, metric);
        assert_eq!((answer.conclusion, answer.ratio), (Conclusion::CannotTell, None), "{metric}");
        assert!(answer.reason.as_deref().is_some_and(|r| r.contains("withheld because of")), "{answer:?}");
    }
    ran.assert_code(3);
    assert!(!ran.out.contains("faster by"), "{ran:?}");
}

#[test]
fn an_interrupt_prints_the_answer_so_far() {
    let sandbox = Sandbox::new();
    let json = sandbox.aside("comparison.json");
    let mut command = sandbox.command(&[
        "compare",
        "--rw",
        "randread",
        "--bs",
        "4k",
        "--size",
        "8m",
        "--ioengine",
        "psync",
        "--vary",
        "bs=4k,8k",
        "--budget",
        "10m",
        "--slice",
        "20ms",
    ]);
    let running = Running::start(command.arg("--json").arg(&json));
    // Each slice has a worker of its own; the first ones only warm up.
    running.wait_for_workers("job-", 24);
    let sent = Instant::now();
    running.signal(libc::SIGINT);
    let (ran, by_signal) = running.wait();
    assert!(sent.elapsed() < Duration::from_secs(60), "it took {:?}", sent.elapsed());
    assert_eq!(by_signal, None);
    ran.assert_code(1);
    assert!(ran.out.contains("INTERRUPTED by SIGINT") && ran.out.contains("B to A"), "{ran:?}");
    let comparison = trueio_report::parse_comparison(&fs::read_to_string(&json).expect("JSON")).expect("a comparison");
    assert_eq!(comparison.outcome, Outcome::Interrupted { signal: "SIGINT".to_owned() });
    assert!(!comparison.parts[0].sides[0].slices.is_empty());
    assert_eq!(sandbox.listing(), [""; 0]);
}

// ---- records ----------------------------------------------------------------------------------

fn run_record(sandbox: &Sandbox, name: &str, more: &[&str]) -> String {
    let path = sandbox.aside(name);
    let text = path.to_str().expect("UTF-8").to_owned();
    let base =
        ["run", "--ioengine", "simulated", "--rw", "randread", "--size", "16m", "--no-history", "--runtime", "30s"];
    let mut all = with(&with(&base, &["--time_based", "--json", &text]), more);
    if !more.iter().any(|m| m.starts_with("service")) {
        all.extend(["--simulated", "service=100us"]);
    }
    sandbox.run(&all).assert_code(0);
    text
}

#[test]
fn two_records_are_compared_in_the_past_tense_and_a_gate_on_them_is_undecided() {
    let sandbox = Sandbox::new();
    let a = run_record(&sandbox, "a.json", &[]);
    let b = run_record(&sandbox, "b.json", &["--simulated", "service=120us"]);
    let (ran, comparison) = compared(&sandbox, &["compare", "-v", &a, &b]);
    ran.assert_code(0);
    let found = answer(&comparison, 1, Metric::Iops);
    assert!((found.ratio.expect("a ratio").estimate - 1.0 / 1.2).abs() < 1e-3, "{found:?}");
    let text = joined(&ran.out);
    assert!(text.contains("B (b) was slower than A (a)") && text.contains("One run a side"), "{ran:?}");
    // The error rate of interleaved comparisons is not claimed.
    assert!(text.contains("in up to 13 % of comparisons") && !text.contains("wrong winner"), "{ran:?}");
    assert!(comparison.differences.iter().any(|d| d.name == "simulated"), "{:?}", comparison.differences);
    sandbox.run(&["compare", &a, &b, "--fail-if", "iops < -5%"]).assert_code(3);
    sandbox.run(&["compare", &a, &a]).assert_code(0);
}

#[test]
fn records_of_different_loads_are_refused_unless_the_difference_is_accepted() {
    let sandbox = Sandbox::new();
    let a = run_record(&sandbox, "a.json", &[]);
    let b = run_record(&sandbox, "b.json", &["--bs", "64k"]);
    sandbox.run(&["compare", &a, &b]).assert_refused(&["bs differs: 4k in", "64k in", "--accept-difference bs"]);
    let ran = sandbox.run(&["compare", "-v", &a, &b, "--accept-difference", "bs"]);
    ran.assert_code(0);
    assert!(ran.out.contains("bs: 4k in A, 64k in B"), "{ran:?}");
}

#[test]
fn bad_records_are_described_in_the_error() {
    let sandbox = Sandbox::new();
    let good = run_record(&sandbox, "good.json", &[]);
    let text = fs::read_to_string(&good).expect("a record");
    let empty_run = {
        let mut record = trueio_report::parse(&text).expect("a record");
        record.phases.clear();
        trueio_report::json(&record)
    };
    let cases = [
        ("truncated", text[..text.len() / 2].to_owned(), "not JSON"),
        ("foreign", "{\"results\": [1, 2]}".to_owned(), "not a trueio record"),
        ("future", text.replacen("\"version\": 3", "\"version\": 999", 1), "version 999"),
        ("edited", text.replacen("\"sub_bits\": 7", "\"sub_bits\": 6", 1), "damaged"),
        ("empty", String::new(), "not JSON"),
        ("nothing", empty_run, "nothing was measured"),
        ("fio-broken", "{\"fio version\" : \"fio-3.42\", \"jobs\" : [".to_owned(), "is not a valid result of fio"),
        ("fio-without-jobs", "{\"fio version\" : \"fio-3.42\", \"jobs\" : []}".to_owned(), "has no job"),
        (
            "fio-idle",
            "{\"fio version\" : \"fio-3.42\", \"jobs\" : [{\"jobname\": \"j\", \"error\": 0}]}".to_owned(),
            "no I/O",
        ),
    ];
    for (name, content, sentence) in cases {
        let path = sandbox.aside(&format!("{name}.json"));
        fs::write(&path, content).expect("a file");
        let bad = path.to_str().expect("UTF-8");
        for sides in [[good.as_str(), bad], [bad, good.as_str()]] {
            sandbox.run(&["compare", sides[0], sides[1]]).assert_refused(&[sentence]);
        }
    }
    sandbox.run(&["compare", &good, "no-such-record"]).assert_refused(&["no-such-record"]);
}

#[test]
fn one_io_zero_variance_and_missing_figures_give_no_ratio() {
    let sandbox = Sandbox::new();
    let long = run_record(&sandbox, "long.json", &[]);
    let one = sandbox.aside("one.json");
    let one = one.to_str().expect("UTF-8");
    let base =
        ["run", "--ioengine", "simulated", "--rw", "randread", "--size", "16m", "--no-history", "--number_ios", "1"];
    sandbox.run(&with(&base, &["--json", one])).assert_code(0);
    let (ran, comparison) = compared(&sandbox, &["compare", one, &long]);
    ran.assert_code(0);
    for found in &comparison.parts[0].answers {
        assert_eq!(found.conclusion, Conclusion::CannotTell, "{found:?}");
        assert!(found.reason.is_some(), "{found:?}");
    }
    // Without variance: the interval is a point, and equals are equal.
    let (_, comparison) = compared(&sandbox, &["compare", &long, &long]);
    let found = answer(&comparison, 1, Metric::Iops);
    assert_eq!(found.conclusion, Conclusion::Same, "{found:?}");
    assert!(!ran.out.contains("NaN") && !ran.out.contains("inf"), "{ran:?}");
}

const FIO: &str = r#"fio: a warning before the JSON
{"fio version" : "fio-3.42", "time" : "Fri Nov 20 17:54:17 2026", "global options" : {"bs" : "4k", "direct" : "1"},
 "jobs" : [{"jobname" : "j", "error" : 0, "job options" : {"rw" : "randread"}, "usr_cpu" : 10.0, "sys_cpu" : 20.0, "job_runtime" : 2000,
  "read" : {"io_bytes" : 409600000, "total_ios" : 100000, "short_ios" : 0, "runtime" : 2000, "bw_bytes" : 204800000, "iops" : IOPS,
  "clat_ns" : {"min" : 9000, "max" : 300000, "mean" : 16000.0, "stddev" : 1.0, "N" : 100000, "percentile" : {"50.000000" : 15000, "99.000000" : 90000, "99.900000" : 200000}}}}]}"#;

#[test]
fn results_of_fio_are_shown_next_to_each_other_without_an_interval() {
    let sandbox = Sandbox::new();
    let (a, b) = (sandbox.aside("a.json"), sandbox.aside("b.json"));
    fs::write(&a, FIO.replace("IOPS", "50000.0")).expect("a file");
    fs::write(&b, FIO.replace("IOPS", "60000.0")).expect("a file");
    let (a, b) = (a.to_str().expect("UTF-8"), b.to_str().expect("UTF-8"));
    let (ran, comparison) = compared(&sandbox, &["compare", "-v", a, b]);
    ran.assert_code(0);
    assert!(comparison.parts[0].answers.iter().all(|a| a.ratio.is_none() && a.conclusion == Conclusion::CannotTell));
    assert!(ran.out.contains("50,000 1/s") && ran.out.contains("60,000 1/s") && ran.out.contains("90.0 µs"), "{ran:?}");
    assert!(joined(&ran.out).contains("there is no series"), "{ran:?}");
    sandbox.run(&["compare", a, b, "--fail-if", "iops < -1%"]).assert_code(3);
}
