//! fio's JSON as fio writes it, and invalid variants.

use proptest::prelude::*;
use trueio_fio::results::{ResultError, parse as parse_fio, parse_all};
use trueio_model::{ForeignDirection, ForeignLatencyKind, ForeignRun};

fn sample(name: &str) -> String {
    let path = format!("{}/tests/results/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).expect(&path)
}

fn read(name: &str) -> ForeignRun {
    parse_fio(&sample(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// name, direction, I/Os, bytes of every row.
fn rows(run: &ForeignRun) -> Vec<(&str, ForeignDirection, u64, u64)> {
    run.jobs
        .iter()
        .flat_map(|job| job.ops.iter().map(|op| (job.name.as_str(), op.direction, op.io_count, op.byte_count)))
        .collect()
}

#[test]
fn a_result_with_buckets_gives_histograms_whose_percentiles_are_fios() {
    let run = read("json+-3.42.json");
    assert_eq!((run.version.as_str(), run.timestamp_unix_s), ("fio-3.42", 1_795_197_257));
    assert_eq!(run.notes, [""; 0]);
    let job = &run.jobs[0];
    assert_eq!(job.option(&run, "iodepth"), Some("8"));
    assert_eq!(job.option(&run, "ioengine"), Some("libaio"), "a global option holds for the job");
    let read = &job.ops[0];
    assert_eq!((read.direction, read.io_count, read.byte_count), (ForeignDirection::Read, 108_494, 444_391_424));
    assert_eq!((read.elapsed_ns, read.ios_per_s), (2_001_000_000, Some(54_219.890_055)));
    let lat = read.headline().expect("a latency");
    assert_eq!((lat.kind, lat.count, lat.max_ns), (ForeignLatencyKind::Total, 108_494, 24_563_136));
    assert_eq!((lat.percentile_ns(99.0), lat.percentile_ns(95.0)), (Some(806_912), None));
    let histogram = lat.histogram.as_ref().expect("json+ has buckets");
    assert_eq!(histogram.count(), lat.count);
    for &(percent, ns) in &lat.percentiles {
        let rank = (percent / 100.0 * lat.count as f64).ceil() as u64;
        let ours = histogram.value_at_rank(rank).expect("a rank");
        assert!(ours.abs_diff(ns) as f64 <= ns as f64 / 128.0, "p{percent}: {ours} for fio's {ns}");
    }
    let sync = job.ops.last().expect("sync calls");
    assert_eq!((sync.direction, sync.io_count, sync.ios_per_s), (ForeignDirection::Sync, 2913, None));
    // 3.475 % + 14.325 % of 4 s.
    assert!((job.cpu_ns.expect("CPU time") - 0.178 * 4e9).abs() < 1e3);
}

#[test]
fn plain_json_has_percentiles_and_no_histogram() {
    let run = read("cli_global_two_jobs.json");
    assert_eq!(
        rows(&run).iter().map(|r| (r.0, r.1, r.2)).collect::<Vec<_>>(),
        [
            ("a", ForeignDirection::Read, 972),
            ("a", ForeignDirection::Write, 1028),
            ("b", ForeignDirection::Write, 1000)
        ]
    );
    let lat = run.jobs[0].ops[0].headline().expect("a latency");
    assert_eq!((lat.kind, lat.histogram.is_none()), (ForeignLatencyKind::Completion, true));
    assert!(lat.percentile_ns(99.9).is_some());
}

#[test]
fn a_failed_job_keeps_its_error_number() {
    let run = read("err_enospc.json");
    assert_eq!(run.jobs[0].error, 28);
    assert_eq!(rows(&run), [("err", ForeignDirection::Write, 1, 0)]);
}

#[test]
fn a_unified_report_is_one_mixed_row_and_never_counted_twice() {
    assert_eq!(
        rows(&read("unified_mixed.json")).iter().map(|r| (r.1, r.2)).collect::<Vec<_>>(),
        [(ForeignDirection::Mixed, 16_384)]
    );
    assert_eq!(
        rows(&read("unified_both.json")).iter().map(|r| (r.1, r.2)).collect::<Vec<_>>(),
        [(ForeignDirection::Read, 8160), (ForeignDirection::Write, 8224)]
    );
}

#[test]
fn results_of_clients_are_read_without_their_sum_and_banners() {
    let run = read("client_server.json");
    assert_eq!(rows(&run).len(), 2);
    assert_eq!(run.notes.len(), 2, "{:?}", run.notes);
    assert!(run.json.starts_with('{') && run.json.ends_with('}'));
}

#[test]
fn of_several_cumulative_results_the_last_is_taken() {
    let run = read("status_interval.json");
    let first =
        parse_fio(sample("status_interval.json").split_inclusive("\n}").next().expect("one")).expect("the first");
    assert!(rows(&run)[0].2 > rows(&first)[0].2);
    assert!(run.notes[0].contains("the last was taken"), "{:?}", run.notes);
}

/// Removes the lines of these fields, and a comma that is then the last of its object.
fn without(text: &str, fields: &[&str]) -> String {
    let is_left = |line: &&str| !fields.iter().any(|field| line.trim_start().starts_with(&format!("\"{field}\"")));
    let mut left: Vec<String> = text.lines().filter(is_left).map(str::to_owned).collect();
    for at in 1..left.len() {
        if left[at].trim_start().starts_with('}') {
            left[at - 1] = left[at - 1].trim_end_matches(',').to_owned();
        }
    }
    left.join("\n") + "\n"
}

/// Goal: the figures that fio 3.1 to 3.16 lack are derived. Method: today's documents without these fields.
#[test]
fn results_of_old_versions_have_the_same_figures() {
    for name in ["json+-3.42.json", "cli_global_two_jobs.json", "unified_mixed.json", "client_server.json"] {
        let whole = read(name);
        let new = sample(name);
        for (version, fields) in [
            ("fio-3.16", &["N", "job_runtime"][..]),
            ("fio-3.7", &["N", "job_runtime", "timestamp_ms"]),
            ("fio-3.1", &["N", "job_runtime", "bw_bytes", "bw_min", "iops_min", "iops_samples", "bw_samples"]),
        ] {
            let old =
                without(&new, fields).replace("\"percentile\" : {", "\"percentile\" : {\n\"0.00\" : 0,\n\"0.00\" : 0,");
            let old = old.replace(&whole.version, version);
            let run = parse_fio(&old).unwrap_or_else(|error| panic!("{name} as {version}: {error}"));
            assert_eq!((run.version.as_str(), rows(&run)), (version, rows(&whole)), "{name}");
            let ops = |run: &ForeignRun| run.jobs.iter().flat_map(|job| job.ops.clone()).collect::<Vec<_>>();
            for (old, new) in ops(&run).iter().zip(ops(&whole)) {
                let (old_bw, new_bw) = (old.bytes_per_s.unwrap_or(0.0), new.bytes_per_s.unwrap_or(0.0));
                assert!((old_bw - new_bw).abs() <= 1.0, "{name} as {version}: {old_bw} {new_bw}");
                let (old, new) = (old.headline(), new.headline());
                let figures = |of: &trueio_model::ForeignLatency| (of.count, of.max_ns, of.percentiles.clone());
                assert_eq!(old.map(figures), new.map(figures), "{name} as {version}");
            }
        }
    }
}

/// Goal: a result of an old version gives its figures. Method: documents with the keys, in the order, of `show_thread_status_json` and
/// `add_ddir_status_json` of that version; the figures are round numbers.
#[test]
fn results_in_the_form_of_old_versions_give_their_figures() {
    for (version, syncs) in [("3.1", 0), ("3.7", 0), ("3.16", 20)] {
        let run = read(&format!("json-{version}.json"));
        assert_eq!(run.version, format!("fio-{version}"));
        let mut expected =
            vec![("old", ForeignDirection::Read, 1000, 4_096_000), ("old", ForeignDirection::Write, 500, 2_048_000)];
        expected.extend((syncs > 0).then_some(("old", ForeignDirection::Sync, syncs, 0)));
        assert_eq!(rows(&run), expected, "{version}");
        let read = &run.jobs[0].ops[0];
        assert_eq!((read.ios_per_s, read.elapsed_ns), (Some(1000.0), 1_000_000_000), "{version}");
        // 3.1 has KiB a second only.
        let rate = read.bytes_per_s.expect("a bandwidth");
        assert!((rate - 4_096_000.0).abs() < 1024.0, "{version}: {rate}");
        let lat = read.headline().expect("a latency");
        assert_eq!((lat.count, lat.max_ns, lat.percentile_ns(99.0)), (1000, 90_000, Some(44_800)), "{version}");
        assert_eq!(lat.percentiles.len(), 4, "{version}: the zeros of unused places are none");
        assert_eq!(run.jobs[0].option(&run, "bs"), Some("4k"), "{version}");
        assert_eq!(run.jobs[0].cpu_ns.map(f64::round), Some(57_500_000.0), "{version}: 5.75 % of a second");
        let both = format!("{0}{0}", sample(&format!("json-{version}.json")).replacen("1600000000", "1600000060", 1));
        assert_eq!(parse_all(&(sample("err_enospc.json") + &both)).expect(version).len(), 2, "{version}");
    }
}

/// Goal: every run in a text of old versions is read, with the right figures. Method: what fio 3.1, 3.7 and 3.16 printed, in a file each: a
/// group in `normal,json`, a job with `fsync` in `json+`, three cumulative documents of `--status-interval`, and a client.
#[test]
fn what_old_versions_print_is_read_with_every_run() {
    for version in ["3.1", "3.7", "3.16"] {
        let runs = parse_all(&sample(&format!("runs-{version}.txt"))).unwrap_or_else(|e| panic!("{version}: {e}"));
        let found: Vec<_> = runs.iter().flat_map(rows).filter(|row| row.1 != ForeignDirection::Sync).collect();
        let (read, write) = (ForeignDirection::Read, ForeignDirection::Write);
        let expected = [
            ("group", read, 15, 61_440),
            ("group", write, 17, 69_632),
            ("buckets", write, 16, 65_536),
            ("status", read, 16, 65_536),
            ("127.0.0.1: cs", read, 10, 40_960),
            ("127.0.0.1: cs", write, 6, 24_576),
        ];
        assert_eq!(found, expected, "{version}");
        for op in runs.iter().flat_map(|run| &run.jobs).flat_map(|job| &job.ops) {
            if op.direction == ForeignDirection::Sync {
                // 3.1 does not report them.
                assert_eq!((op.io_count, version == "3.1"), (3, false), "{version}");
                continue;
            }
            let lat = op.headline().unwrap_or_else(|| panic!("{version}: no latency"));
            assert_eq!((lat.count, lat.percentile_ns(99.0).is_some()), (op.io_count, true), "{version}");
            let by_time = op.byte_count as f64 / (op.elapsed_ns as f64 / 1e9);
            let rate = op.bytes_per_s.expect("a bandwidth");
            assert!((rate / by_time - 1.0).abs() < 0.001, "{version}: {rate} {by_time}");
        }
        let buckets = runs[1].jobs[0].ops[0].headline().and_then(|lat| lat.histogram.as_ref());
        assert_eq!(buckets.map(|histogram| histogram.count()), Some(16), "{version}");
        let notes: Vec<&str> = runs.iter().flat_map(|run| &run.notes).map(String::as_str).collect();
        assert!(notes[0].starts_with("3 results follow each other (`--status-interval`)"), "{version}: {notes:?}");
    }
}

#[test]
fn every_run_of_a_text_is_read_and_what_is_none_is_named() {
    let (one, other) = (sample("err_enospc.json"), sample("cli_global_two_jobs.json"));
    let runs = parse_all(&format!("run 1\n{one}\n{other}\n{{\"a\": 1}}\n")).unwrap();
    assert_eq!(runs.iter().map(|run| run.jobs[0].name.as_str()).collect::<Vec<_>>(), ["err", "a"]);
    assert!(runs[0].notes.is_empty() && runs[1].notes[0].starts_with("document 3 of 3 was left out"), "{runs:?}");
    // The same job twice, one minute apart, is two runs.
    let at = parse_fio(&one).unwrap().timestamp_unix_s;
    let later = one.replace(&format!("\"timestamp\" : {at},"), &format!("\"timestamp\" : {},", at + 60));
    assert_eq!(parse_all(&format!("{one}{later}")).unwrap().len(), 2);
    // Two jobs of one name that follow each other within a second, with other options, are two runs.
    let whole = sample("json+-3.42.json");
    let changed = whole.replacen("\"job options\" : {", "\"job options\" : {\"bs\" : \"other\",", 1);
    assert!(changed != whole && parse_all(&format!("{whole}{whole}")).unwrap().len() == 1);
    assert_eq!(parse_all(&format!("{whole}{changed}")).unwrap().len(), 2);
    // A document that is cut off does not take the whole ones with it.
    let cut = format!("{one}{}", &other[..other.len() / 2]);
    let runs = parse_all(&cut).unwrap();
    assert!(runs.len() == 1 && runs[0].notes[0].contains("document 2 of 2 was left out"), "{:?}", runs[0].notes);
    // A banner may be on the line of the first brace.
    assert_eq!(parse_fio(&format!("--- Running fio ---{one}")).unwrap().jobs[0].name, "err");
}

#[test]
fn the_elements_of_an_array_are_read_like_results_that_follow_each_other() {
    let (one, other) = (sample("err_enospc.json"), sample("cli_global_two_jobs.json"));
    let in_one_line = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap().to_string();
    let (short, shorter) = (in_one_line(&one), in_one_line(&other));
    for array in [
        format!("[{one},{other}]"),
        format!("[\n  {one},\n  {other}\n]\n"),
        format!("[{short}, {shorter}]"),
        format!("[ {short}\n, {shorter} ]"),
    ] {
        let runs = parse_all(&array).expect("an array of results");
        assert_eq!(runs.iter().map(|run| run.jobs[0].name.as_str()).collect::<Vec<_>>(), ["err", "a"]);
        assert!(runs.iter().all(|run| run.notes.is_empty() && run.json.starts_with('{')), "{runs:?}");
    }
    assert!(matches!(parse_all("[]"), Err(ResultError::NoJson)));
    let runs = parse_all(&format!("[{{\"a\": 1}}, {short}]")).unwrap();
    assert!(runs.len() == 1 && runs[0].notes[0].starts_with("document 1 of 2 was left out"), "{runs:?}");
}

#[test]
fn a_result_without_jobs_is_refused_with_the_reason() {
    for key in ["jobs", "client_stats"] {
        let text = format!("{{\"fio version\": \"fio-3.42\", \"{key}\": []}}");
        let error = parse_fio(&text).expect_err("no job").to_string();
        assert_eq!(
            error,
            format!("this result of fio has no job: its `{key}` is empty, as when fio ended before a job began")
        );
        let runs = parse_all(&format!("{text}\n{}", sample("err_enospc.json"))).unwrap();
        assert!(runs.len() == 1 && runs[0].notes[0].contains("has no job"), "{runs:?}");
    }
}

#[test]
fn a_warning_before_the_json_is_skipped_with_a_note() {
    let run = read("warn_stdout.txt");
    assert_eq!(run.jobs[0].name, "warn");
    assert_eq!(run.notes, ["text around the JSON (banners, warnings, other formats) was skipped"]);
}

#[test]
fn what_is_no_result_of_fio_3_is_refused_by_its_name() {
    let refused = |text: &str| parse_fio(text).expect_err(text).to_string();
    assert_eq!(refused("hello"), "there is no JSON in this text");
    assert_eq!(refused(""), "there is no JSON in this text");
    assert!(refused("{\"format\": \"trueio-record\"}").contains("no \"fio version\""));
    assert!(refused("{\"fio version\": \"fio-2.99\", \"jobs\": []}").contains("fio-2.99"));
    assert!(refused("{\"fio version\": \"fio-4.0\", \"jobs\": []}").contains("fio-4.0"));
    assert!(refused("{\"fio version\": \"fio-3.1\"}").contains("`jobs`"));
    let whole = sample("json+-3.42.json");
    assert!(matches!(parse_fio(&whole[..whole.len() / 2]), Err(ResultError::Damaged(_))));
    for (from, to, path) in [
        ("\"total_ios\" : 108494", "\"total_ios\" : -1", "jobs[0].read.total_ios"),
        ("\"iops\" : 54219.890055", "\"iops\" : \"many\"", "jobs[0].read.iops"),
        // One I/O less in a bucket than fio counted: the histogram would not be the whole.
        ("\"1012\" : 1,", "", "jobs[0].read.slat_ns.bins"),
    ] {
        assert!(whole.contains(from), "{from}");
        let error = refused(&whole.replacen(from, to, 1));
        assert!(error.contains(&format!("`{path}`")), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_text_makes_the_reader_panic(at in 0usize..6000, with in "\\PC{0,4}", length in 0usize..40) {
        let mut text = sample("err_enospc.json").into_bytes();
        let at = at % text.len();
        let end = (at + length).min(text.len());
        text.splice(at..end, with.into_bytes());
        let _ = parse_fio(&String::from_utf8_lossy(&text));
    }
}
