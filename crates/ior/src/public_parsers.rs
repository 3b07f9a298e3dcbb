//! The expressions with which public programs read the output of IOR and mdtest.
//!
//! Each is from the file that is named, and matches what IOR 4.0 or mdtest 4.0 print. Left out is what reads only earlier versions
//! (`api = POSIX` of IOR 3.0, the colon after the operation of mdtest 3).

use crate::ior::Ior;
use crate::mdtest::Mdtest;
use regex::Regex;
use trueio_model::{Document, OpKind, RunRecord};

/// An expression, and what it finds: the groups that are not empty, in their order.
type Row = (&'static str, String, &'static [&'static str]);

/// Returns a record with a phase for each job: bytes, I/Os and nanoseconds.
fn record_of(jobs: &[(&str, u64, u64, u64)]) -> RunRecord {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/records/v3.json"));
    let mut record = RunRecord::from_json(&text.expect("a stored record")).expect("it is read");
    let template = record.phases[0].clone();
    record.cluster = None;
    record.started_unix_s = 1_700_000_000;
    record.command = ["trueio", "ior", "-w"].map(str::to_owned).to_vec();
    record.phases = jobs
        .iter()
        .map(|(name, bytes, ios, nanoseconds)| {
            let mut phase = template.clone();
            phase.name = (*name).to_owned();
            (phase.begin_ns, phase.elapsed_ns) = (0, *nanoseconds);
            phase.jobs.truncate(1);
            let job = &mut phase.jobs[0];
            job.name = (*name).to_owned();
            (job.open_ns, job.close_ns) = (Some(2_000_000), Some(1_000_000));
            job.ops.truncate(1);
            (job.ops[0].op, job.ops[0].io_count, job.ops[0].byte_count) = (OpKind::Write, *ios, *bytes);
            phase
        })
        .collect();
    record
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn assert_found(text: &str, rows: &[Row]) {
    for (source, expression, expected) in rows {
        let expression = Regex::new(expression).unwrap_or_else(|error| panic!("{source}: {error}"));
        let found = expression.captures(text).unwrap_or_else(|| panic!("{source}: {expression}\n{text}"));
        let groups: Vec<&str> = found.iter().skip(1).flatten().map(|group| group.as_str()).collect();
        assert_eq!(groups.iter().take(expected.len()).copied().collect::<Vec<_>>(), *expected, "{source}");
    }
}

/// The text of IOR: 16 transfers of 1 MiB in 97 ms, and 3 ms of opening and closing; reading takes 47 ms.
fn ior_text() -> String {
    let ior = Ior::read(&words("-b 4m -t 1m -s 4 -F -o /mnt/f"), &mut Vec::new()).expect("it is read");
    let bytes = 16 << 20;
    ior.print(&record_of(&[("write", bytes, 16, 97_000_000), ("read", bytes, 16, 47_000_000)]), "node1")
}

#[test]
fn public_parsers_of_ior_find_its_figures() {
    let float = |name: &str| format!(r"\s+(?P<{name}>[0-9]+\.[0-9]+)");
    // `ior/application.py` of Ramble builds both from lists of columns.
    let mut of_iteration = String::from("(?m)(?P<access>(?:read|write))");
    of_iteration.extend(["bw", "IOPS", "latency"].map(float));
    of_iteration.push_str(r"\s+(?P<block>[0-9]+)");
    of_iteration.extend(["xfer", "open", "wrrd", "close", "total"].map(float));
    of_iteration.push_str(r"\s+(?P<iter>[0-9]+)\s*$");
    let mut of_summary = String::from("(?P<Operation>(?:read|write))");
    of_summary.extend((0..9).map(|column| float(&format!("f{column}"))));
    of_summary.extend((0..2).map(|column| format!(r"\s+(?P<s{column}>\w+)")));
    of_summary.extend((0..12).map(|column| format!(r"\s+(?P<i{column}>[0-9]+)")));
    of_summary.push_str(r"\s+(?P<aggs>[0-9]+\.[0-9]+)\s+(?P<API>\w+)\s+(?P<RefNum>[0-9]+)");
    let line = |access: &str| {
        format!(
            r"(?m)^{access}\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)"
        )
    };
    let written: &[&str] = &["160.00", "164.95", "0.006063", "4096", "1024.00", "0.002000", "0.097000", "0.001000"];
    let rows: Vec<Row> = vec![
        ("PerfKitBenchmarker ior.py", r"(?s)Summary of all tests:\n(.*?)Finished".into(), &[]),
        ("AKRR ior_parser.py", r"(?m)^IOR-([3-9]\.[0-9]+\.[0-9]+): MPI Coordinated Test of Parallel I/O".into(), &["4.0.0"]),
        ("AKRR ior_detailed_parser.py, version", r"(?m)^IOR-([3-9])\.([0-9])+\.[0-9]\S*: MPI Coordinated Test of Parallel I/O".into(), &["4", "0"]),
        ("AKRR ior_detailed_parser.py, options", r"(?m)^Options:\s*$".into(), &[]),
        (
            "AKRR ior_detailed_parser.py, table",
            r"(?m)^access\s+bw\(MiB/s\)\s+IOPS\s+Latency\(s\)\s+block\(KiB\)\s+xfer\(KiB\)\s+open\(s\)\s+wr/rd\(s\)\s+close\(s\)\s+total\(s\)\s+iter".into(),
            &[],
        ),
        ("AKRR ior_detailed_parser.py, write", line("write"), written),
        ("AKRR ior_detailed_parser.py, read", line("read"), &["320.00", "340.43"]),
        ("CSCS ReFrame ior_check.py, write", r"(?m)^Max Write:\s+(?P<write_bw>\S+) MiB/sec".into(), &["160.00"]),
        ("CSCS ReFrame ior_check.py, read", r"(?m)^Max Read:\s+(?P<read_bw>\S+) MiB/sec".into(), &["320.00"]),
        ("USC reframe-tests ior-scratch1.py", r"Max Write:\s+(?P<W_ret>\S+)".into(), &["160.00"]),
        ("USC reframe-tests ior-scratch1.py, end", "Finished".into(), &[]),
        ("Benchpark ior/application.py", r"Max Write:\s+(?P<fom>[0-9]+\.[0-9]*([0-9]*)?)".into(), &["160.00"]),
        ("Ramble ior/application.py, iteration", of_iteration, &["write", "160.00", "164.95", "0.006063", "4096"]),
        ("Ramble ior/application.py, summary", of_summary, &["write", "160.00"]),
        ("Xperior IOR.pm", r"write\s+([\d\.]+)\s+([\d\.]+)\s+([\d\.]+)\s+([\d\.]+)".into(), &["160.00"]),
        ("IOR_MDTest_FIO_Scripts run_ior_mdtest.py", r"Max Read:\s+([\d\.]+)\s+(\w+/s)".into(), &["320.00", "MiB/s"]),
    ];
    assert_found(&ior_text(), &rows);
}

/// Goal: what parsers do without expressions works, too.
/// Method: PerfKitBenchmarker, HPCBench and the parsers of `pytokio` split the summary into as many fields as its head has.
#[test]
fn the_summary_has_a_field_for_each_head_and_the_dates_are_those_of_ctime() {
    let text = ior_text();
    let summary = text.split("Summary of all tests:\n").nth(1).expect("a summary");
    let rows: Vec<Vec<&str>> = summary.lines().take(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows[0].len(), rows[1].len(), rows[2].len()), (27, 27, 27), "{rows:?}");
    let of = |row: usize, head: &str| rows[row][rows[0].iter().position(|known| *known == head).expect("a head")];
    assert_eq!((of(1, "Mean(MiB)"), of(1, "Mean(OPs)"), of(2, "Mean(s)")), ("160.00", "160.00", "0.05000"));
    assert!(text.contains("\nBegan               : Tue Nov 14 22:13:20 2023\n"), "{text}");
    assert!(text.contains("\nMachine             : Linux node1\n"), "{text}");
    assert!(text.ends_with("\nFinished            : Tue Nov 14 22:13:20 2023\n"), "{text}");
    assert!(!text.contains("WARNING"), "{text}");
}

#[test]
fn the_json_and_csv_of_ior_have_its_keys_and_the_same_figures() {
    let jobs = [("write", 16 << 20, 16, 97_000_000)];
    let print = |format: &str| {
        let line = format!("-w -b 4m -t 1m -s 4 -o f -O summaryFormat={format}");
        Ior::read(&words(&line), &mut Vec::new()).expect("it is read").print(&record_of(&jobs), "node1")
    };
    let json: serde_json::Value = serde_json::from_str(&print("JSON")).expect("JSON");
    assert_eq!(json["tests"][0]["Results"][0]["bwMiB"], 160.0);
    assert_eq!(json["tests"][0]["Results"][0]["openTime"], 0.002);
    assert_eq!((&json["summary"][0]["operation"], &json["summary"][0]["bwMaxMIB"]), (&"write".into(), &160.0.into()));
    assert_eq!(json["tests"][0]["Parameters"]["transferSize"], 1 << 20);
    let csv = print("CSV");
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter")
    );
    assert_eq!(
        lines.next(),
        Some("write,160.0000,164.9485,0.0061,4096.0000,1024.0000,0.0020,0.0970,0.0010,0.1000,1,0")
    );
    assert_eq!(lines.next(), None);
}

#[test]
fn public_parsers_of_mdtest_find_its_figures() {
    let mdtest = Mdtest::read(&words("-n 40 -d /mnt/out"), &mut Vec::new()).expect("it is read");
    let text = mdtest.print(&record_of(&[("file-create", 0, 40, 40_000_000), ("tree-remove", 0, 1, 2_000_000)]));
    let c3se = |operation: &str| format!(r"(?m)^\s+{operation}\s+:?\s+[0-9.]+\s+[0-9.]+\s+(?P<rate>\S+)\s+");
    let rows: Vec<Row> = vec![
        ("AKRR mdtest_parser.py, tasks", r"([0-9]+) tasks, ([0-9]+) files/directories".into(), &["1", "40"]),
        ("AKRR mdtest_parser.py, end", "finished at".into(), &[]),
        ("JUBE mdtest_specs.xml, start", r"-- started at \S+ (\S+) --".into(), &["22:13:20"]),
        ("JUBE mdtest_specs.xml, end", r"-- finished at \S+ (\S+) --".into(), &["22:13:20"]),
        ("JUBE mdtest_specs.xml, files", r"(?m)^\s*[+-]?\d+\s+tasks,\s+([+-]?\d+)\s+files".into(), &["40"]),
        ("C3SE ReFrame mdtest, creation", c3se("File creation"), &["1000.000"]),
        ("C3SE ReFrame mdtest, removal", c3se("Tree removal"), &["500.000"]),
        ("C3SE ReFrame mdtest, end", r"(?m)^\s+Tree removal\s+:?\s".into(), &[]),
        (
            "IOPS mdtest parser",
            r"(?is)SUMMARY rate:.*?\n.*?Operation.*?Max.*?Min.*?Mean.*?Std Dev.*?\n.*?-+.*?\n(.*?)(?:\n\n|--\s+finished|\z)".into(),
            &[],
        ),
        (
            "parsers of benchmark outputs, mdtest",
            r"(?m)^mdtest-([\d.]+) was launched with (\d+) total task\(s\) on (\d+) node\(s\)\s*$".into(),
            &["4.0.0", "1", "1"],
        ),
        ("IOR_MDTest_FIO_Scripts run_ior_mdtest.py", r"(?m)^ +File creation\s{2,}(\S+)\s{2,}(\S+)".into(), &["1000.000", "1000.000"]),
    ];
    assert_found(&text, &rows);
    assert!(
        text.contains("\nCommand line used: trueio ior '-w'\nPath                : /mnt/out\nNodemap: 1\n"),
        "{text}"
    );
}
