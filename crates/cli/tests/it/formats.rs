//! `--csv`, `--prom` and `--markdown` of a run: the figures of the record, in each format, and the same from `trueio report`; and each
//! kind of document in each output of `trueio report`.

use crate::common::*;
use std::fs;

const RUN: &[&str] = &[
    "run",
    "--name",
    "mixed",
    "--ioengine",
    "null",
    "--rw",
    "randrw",
    "--bs",
    "4k",
    "--size",
    "8m",
    "--number_ios",
    "2000",
];
const FORMATS: [&str; 3] = ["csv", "prom", "markdown"];

/// Splits CSV without quoted cells.
fn csv_rows(text: &str) -> Vec<Vec<&str>> {
    assert!(!text.contains('"'), "a quoted cell: {text}");
    text.lines().map(|line| line.split(',').collect()).collect()
}

/// Returns the samples of a text in Prometheus' format: name, labels, value. Each name has its HELP and TYPE before its first
/// sample, once, and its samples follow each other.
fn samples(text: &str) -> Vec<(String, String, f64)> {
    let mut found = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').expect("a name and its help");
            assert!(!known.contains(&name) && words.ends_with('.'), "{line}");
            assert_eq!(lines.next(), Some(format!("# TYPE {name} gauge").as_str()));
            known.push(name);
            continue;
        }
        let (head, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = head.split_once('{').unwrap_or((head, "}"));
        assert_eq!(Some(&name), known.last(), "{line}");
        found.push((name.to_owned(), labels.trim_end_matches('}').to_owned(), value.parse().expect("a number")));
    }
    found
}

#[test]
fn csv_prometheus_and_markdown_hold_the_figures_of_the_record() {
    let sandbox = Sandbox::new();
    let files = FORMATS.map(|format| sandbox.aside(&format!("run.{format}")));
    let mut line = RUN.to_vec();
    let flags = FORMATS.map(|format| format!("--{format}"));
    for (flag, file) in flags.iter().zip(&files) {
        line.extend([flag.as_str(), file.to_str().expect("UTF-8")]);
    }
    let (ran, record) = sandbox.record(&line);
    ran.assert_code(0);
    let [csv, prom, markdown] = files.map(|file| fs::read_to_string(file).expect("an output"));
    let ops = &only_job(&record).ops;

    let rows = csv_rows(&csv);
    assert_eq!(rows.len(), 1 + ops.len(), "{csv}");
    let column =
        |name: &str| rows[0].iter().position(|head| *head == name).unwrap_or_else(|| panic!("no `{name}`: {csv}"));
    for (row, op) in rows[1..].iter().zip(ops) {
        assert_eq!(row.len(), rows[0].len());
        assert_eq!((row[column("op")], row[column("job")]), (op.op.to_string().as_str(), "mixed"));
        assert_eq!(row[column("io_count")], op.io_count.to_string());
        assert_eq!(row[column("verdict")], "unverified");
        assert_eq!(row[column("run_id")], record.id);
        let rate: f64 = row[column("ios_per_s")].parse().expect("a rate");
        let elapsed_s = record.phases[0].jobs[0].elapsed_ns as f64 / 1e9;
        assert!((rate * elapsed_s - op.io_count as f64).abs() < 1.0, "{rate} for {elapsed_s} s");
    }

    let samples = samples(&prom);
    let value = |name: &str, labels: &[&str]| {
        let is_it =
            |sample: &&(String, String, f64)| sample.0 == name && labels.iter().all(|label| sample.1.contains(label));
        samples.iter().find(is_it).unwrap_or_else(|| panic!("no {name} {labels:?}\n{prom}")).2
    };
    assert_eq!(value("trueio_run_started_timestamp_seconds", &["kind=\"run\""]), record.started_unix_s as f64);
    for op in ops {
        let labels = ["job=\"mixed\"", &format!("op=\"{}\"", op.op)];
        assert_eq!(value("trueio_errors", &labels), 0.0);
        assert_eq!(value("trueio_confirmed", &labels), 0.0, "no device is involved");
        assert!(value("trueio_operations_per_second", &labels) > 0.0);
        assert!(value("trueio_latency_seconds", &[labels[0], labels[1], "quantile=\"0.99\""]) < 1.0);
    }
    assert!(markdown.contains("| mixed") && markdown.contains("unverified"), "{markdown}");

    // The same later, of the history.
    for (format, before) in FORMATS.iter().zip([csv, prom, markdown]) {
        let again = sandbox.aside(&format!("again.{format}"));
        let again = again.to_str().expect("UTF-8");
        sandbox.run(&["report", &record.id, &format!("--{format}"), again]).assert_code(0);
        assert_eq!(fs::read_to_string(again).expect("an output"), before, "--{format}");
    }
}

/// Goal: the command in a page's footer prints the page's own record.
/// Method: the page of a run, small and packed, stands alone: neither the history nor a JSON file has the record.
#[test]
fn a_page_is_printed_again_by_the_command_in_its_footer() {
    let sandbox = Sandbox::new();
    let page = sandbox.aside("page.html");
    let page = page.to_str().expect("UTF-8");
    for jobs in [1, 12] {
        let mut line = RUN.to_vec();
        let count = jobs.to_string();
        line.extend(["--numjobs", &count, "--no-history", "--html", page]);
        let (_, record) = sandbox.record(&line);
        let text = fs::read_to_string(page).expect("a page");
        assert!(text.contains("<code>trueio report PAGE.html</code>"), "the footer");
        let again = sandbox.run(&["report", page, "--json", "-"]);
        again.assert_code(0);
        assert_eq!(trueio_report::parse(&again.out).expect("a record").id, record.id);
        sandbox.run(&["compare", page, page]).assert_code(0);
    }
    fs::write(page, "<!doctype html><p>of another program</p>").expect("a page");
    sandbox.run(&["report", page]).assert_refused(&["is not a valid page", "holds no document of trueio"]);
}

/// Returns the labels that a query selects (`{name="value"}`) and the label that `label_values` lists, each with its value.
fn labels_of(query: &str) -> Vec<(String, Option<String>)> {
    let selected = query.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(inside, _)| inside);
    let pairs = selected.split(',').filter_map(|pair| pair.split_once('='));
    let mut found: Vec<_> = pairs
        .map(|(name, value)| (name.to_owned(), (!value.starts_with('~')).then(|| value.trim_matches('"').to_owned())))
        .collect();
    let listed = query.strip_prefix("label_values(").and_then(|rest| rest.split_once(','));
    found.extend(listed.map(|(_, name)| (name.trim().trim_end_matches(')').to_owned(), None)));
    found
}

/// Returns every text below a key of a JSON document.
fn texts_of<'a>(value: &'a serde_json::Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(name, value)| match value.as_str() {
            Some(text) if name == key => found.push(text),
            _ => texts_of(value, key, found),
        }),
        serde_json::Value::Array(values) => values.iter().for_each(|value| texts_of(value, key, found)),
        _ => {}
    }
}

/// Returns the names of metrics in a text.
fn metrics_of(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("trueio_")).collect()
}

/// Goal: the dashboard, the timer and the documentation use what `--prom` writes.
/// Method: the output of a run is the scrape; `instance` is the label that Prometheus adds.
#[test]
fn the_dashboard_queries_metrics_and_labels_of_a_scrape() {
    let sandbox = Sandbox::new();
    let file = sandbox.aside("run.prom");
    sandbox.run(&[RUN, &["--prom", file.to_str().expect("UTF-8"), "--no-history"]].concat()).assert_code(0);
    let scrape = samples(&fs::read_to_string(file).expect("an output"));
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let exists = |metric: &str, label: &str, value: Option<&str>| {
        let wanted = value.map_or_else(|| format!("{label}=\""), |value| format!("{label}=\"{value}\""));
        scrape.iter().any(|(name, labels, _)| name == metric && (label.is_empty() || labels.contains(&wanted)))
    };
    let dashboard: serde_json::Value = serde_json::from_str(&read("examples/prometheus/grafana.json")).expect("JSON");
    let (mut queries, mut legends) = (Vec::new(), Vec::new());
    ["expr", "query"].iter().for_each(|key| texts_of(&dashboard, key, &mut queries));
    queries.retain(|query| query.contains("trueio"));
    assert!(queries.len() >= 7, "{queries:?}");
    for query in queries {
        let metrics = metrics_of(query);
        assert_eq!(metrics.len(), 1, "{query}");
        assert!(exists(metrics[0], "", None), "`{}` of the dashboard is not in a scrape", metrics[0]);
        for (label, value) in labels_of(query).iter().filter(|(label, _)| label != "instance") {
            assert!(exists(metrics[0], label, value.as_deref()), "{query}: no sample has {label} {value:?}");
        }
    }
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("queries") {
            let metric = metrics_of(target["expr"].as_str().expect("a query"))[0];
            legends.extend(target["legendFormat"].as_str().map(|legend| (metric, legend)));
        }
    }
    for (metric, legend) in legends {
        for label in legend.split("{{").skip(1).filter_map(|rest| rest.split_once("}}")).map(|(label, _)| label) {
            assert!(label == "instance" || exists(metric, label, None), "{metric} has no label `{label}`");
        }
    }
    for page in ["docs/outputs.md", "docs/history.md", "README.md", "docs/ci.md"] {
        for metric in metrics_of(&read(page)) {
            assert!(exists(metric, "", None), "`{metric}` of {page} is not in a scrape");
        }
    }
    let service = read("examples/prometheus/trueio-textfile.service");
    assert!(service.contains("--prom") && !service.contains("--no-history"), "{service}");
}

/// Goal: a figure that the evidence contradicts is in none of them. Method: a hole, read with direct I/O.
#[test]
fn a_contradicted_figure_is_in_no_format() {
    let sandbox = Sandbox::new();
    let probe = sandbox.run(&["device", ".", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&probe.out).unwrap_or_default();
    if facts["direct"]["support"] != "direct" {
        return println!("skipped: the build directory has no direct I/O");
    }
    fs::File::create(sandbox.path("sparse")).and_then(|file| file.set_len(8 << 20)).expect("a hole");
    let files = FORMATS.map(|format| sandbox.aside(&format!("hole.{format}")));
    let mut line =
        "run --filename sparse --rw randread --bs 4k --ioengine psync --direct require --number_ios 200 --no-history"
            .split(' ')
            .collect::<Vec<_>>();
    let flags = FORMATS.map(|format| format!("--{format}"));
    for (flag, file) in flags.iter().zip(&files) {
        line.extend([flag.as_str(), file.to_str().expect("UTF-8")]);
    }
    sandbox.run(&line).assert_code(1);
    let [csv, prom, markdown] = files.map(|file| fs::read_to_string(file).expect("an output"));
    let head: Vec<&str> = csv.lines().next().expect("a header").split(',').collect();
    let row: Vec<&str> = csv.lines().nth(1).expect("a row").split(',').collect();
    for name in ["io_count", "bytes_per_s", "ios_per_s", "latency_ns_p50", "latency_ns_max"] {
        let at = head.iter().position(|known| *known == name).expect("a column");
        assert_eq!(row[at], "", "{name}: {csv}");
    }
    assert!(csv.contains(",withheld,E"), "{csv}");
    let names: Vec<String> = samples(&prom).into_iter().map(|sample| sample.0).collect();
    assert!(names.iter().all(|name| !name.contains("latency") && !name.contains("per_second")), "{prom}");
    assert!(names.iter().any(|name| name == "trueio_confirmed"), "{prom}");
    assert!(markdown.contains("withheld"), "{markdown}");
}

/// A study of one row, which takes no time.
const STUDY: &str = r#"
format = 1
title = "one way"
question = "is it fast?"
row_format = "{way<8}|{bandwidth MB/s>12}"
[source]
title = "a test"
by = "nobody"
date = "2020"
setting = "a machine"
[published]
keys = { way = "way" }
[[published.figure]]
column = "seconds"
metric = "elapsed"
unit = "s"
[set]
rw = "read"
bs = "4k"
size = "1m"
ioengine = "null"
number_ios = 64
[[axis]]
key = "way"
value = [{ name = "only", set = { iodepth = 1 } }]
[mode.faithful]
title = "as it was"
place = 1
"#;

/// Goal: `report` accepts each document that this program writes, in each output.
/// Method: a record, a comparison, a study and a trend are written, and each is reported in each output. Studies and trends hold no
/// histograms, so `--hdr` of them is refused with that reason.
#[test]
fn every_document_is_reported_in_every_output() {
    let sandbox = Sandbox::new();
    let file = |name: &str| sandbox.aside(name).to_str().expect("UTF-8").to_owned();
    for name in ["record", "other"] {
        sandbox.run(&[RUN, &["--json", &file(name)]].concat()).assert_code(0);
    }
    sandbox.run(&["compare", &file("record"), &file("other"), "--json", &file("comparison")]).assert_code(0);
    let folder = sandbox.aside("one-way");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("study.toml"), STUDY).expect("a definition");
    fs::write(folder.join("published.csv"), "way,seconds\nonly,0.1\n").expect("figures");
    let study = format!("{}/", folder.display());
    sandbox.run(&["study", &study, ".", "--json", &file("study")]).assert_code(0);
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/records/v1.json");
    sandbox.run(&["history", "import", kept]).assert_code(0);
    let trend = sandbox.run(&["history", "trend", "#1", "--json"]);
    trend.assert_code(0);
    fs::write(file("trend"), trend.out).expect("a trend");

    let beginnings = [
        ("json", "{"),
        ("html", "<!doctype html>"),
        ("markdown", "## "),
        ("csv", ""),
        ("prom", "# HELP trueio_"),
        ("junit", "<?xml version=\"1.0\""),
        ("hdr", "#["),
    ];
    for document in ["record", "comparison", "study", "trend"] {
        let printed = sandbox.run(&["report", &file(document)]);
        printed.assert_code(0);
        assert!(printed.out.lines().count() > 1, "{document}: {printed:?}");
        for (format, beginning) in beginnings {
            let output = file(&format!("{document}.{format}"));
            let ran = sandbox.run(&["report", &file(document), &format!("--{format}"), &output]);
            if format == "hdr" && matches!(document, "study" | "trend") {
                ran.assert_code(2);
                let reason = format!("a {document} contains figures and no latency histograms");
                assert!(ran.err.contains(&reason) && !std::path::Path::new(&output).exists(), "{ran:?}");
                continue;
            }
            ran.assert_code(0);
            let text = fs::read_to_string(&output).expect("an output");
            assert!(text.starts_with(beginning) && text.lines().count() > 1, "--{format} of a {document}: {text}");
            if format == "junit" {
                assert!(text.contains("<testcase ") && text.ends_with("</testsuites>\n"), "{document}: {text}");
            }
        }
    }
}
