//! The study `usb-transport`: its jobs are those of the source's benchmark.sh, and its figures those of the raw logs.

use trueio_model::{OpKind, StudyMetric};
use trueio_study::{Row, Variables, embedded, rows};

fn mode(name: &str, is_quick: bool) -> Vec<Row> {
    rows(&embedded("usb-transport").unwrap(), name, is_quick, &Variables::new(), &[]).unwrap()
}

fn option_text<'a>(row: &'a Row, option: &str) -> &'a str {
    row.job.options.get(option).map_or("", |value| value.text.as_str())
}

fn at<'a>(row: &'a Row, axis: &str) -> &'a str {
    row.key.iter().find(|(name, _)| name == axis).map_or("", |(_, value)| value.as_str())
}

#[test]
fn the_faithful_mode_runs_the_five_fio_commands_on_bot_and_then_on_uas() {
    // benchmark.sh: name, rw, bs, iodepth and both batches, numjobs (1 if it is not set).
    let published = [
        ("write_throughput", "write", "1m", "64", "8"),
        ("write_iops", "randwrite", "4k", "256", ""),
        ("read_throughput", "read", "1m", "64", "8"),
        ("read_iops", "randread", "4k", "256", ""),
        ("rw_iops", "randrw", "4k", "256", ""),
    ];
    let rows = mode("faithful", false);
    assert_eq!(rows.len(), 10);
    for (transport, rows) in ["bot", "uas"].iter().zip(rows.chunks(5)) {
        for (row, (name, rw, bs, depth, numjobs)) in rows.iter().zip(published) {
            assert_eq!((at(row, "transport"), at(row, "job")), (*transport, name));
            assert_eq!(row.needs.get("transport").map(String::as_str), Some(*transport));
            assert_eq!(
                (option_text(row, "rw"), option_text(row, "bs"), option_text(row, "numjobs")),
                (rw, bs, numjobs),
                "{name}"
            );
            for option in ["iodepth", "iodepth_batch", "iodepth_batch_complete_max"] {
                assert_eq!(option_text(row, option), depth, "{name}: {option}");
            }
            // fio lays out a file for each of the jobs.
            let distance = if numjobs == "8" { "10g" } else { "" };
            assert_eq!(option_text(row, "offset_increment"), distance, "{name}");
            let common = [
                ("ioengine", "libaio"),
                ("direct", "require"),
                ("size", "10g"),
                ("runtime", "60s"),
                ("ramp_time", "2s"),
                ("time_based", "true"),
            ];
            for (option, text) in common {
                assert_eq!(option_text(row, option), text, "{name}: {option}");
            }
        }
    }
}

#[test]
fn the_improved_mode_adds_a_control_at_depth_one_and_enough_samples_for_intervals() {
    let study = embedded("usb-transport").unwrap();
    assert!(study.definition.mode["improved"].samples >= 6);
    for is_quick in [false, true] {
        let rows = mode("improved", is_quick);
        for transport in ["bot", "uas"] {
            let of = |job: &str| {
                let is_it = |row: &&Row| at(row, "job") == job && at(row, "transport") == transport;
                rows.iter().find(is_it).unwrap_or_else(|| panic!("no {job} on {transport}"))
            };
            assert_eq!(
                (option_text(of("read_depth_1"), "iodepth"), option_text(of("read_depth_1"), "rw")),
                ("1", "randread")
            );
            assert_eq!(
                (option_text(of("read_iops"), "iodepth"), option_text(of("read_iops"), "rw")),
                ("256", "randread")
            );
        }
    }
}

/// Goal: the table is that of the raw logs, in base units, each figure at its row.
/// Method: the two that the source is about, and the count.
#[test]
fn the_published_figures_are_those_of_the_raw_logs() {
    let study = embedded("usb-transport").unwrap();
    assert_eq!(study.published.entries.len(), 60);
    assert!(study.published.entries.iter().all(|entry| entry.impossible.is_none()));
    let figure = |transport: &str, job: &str, op, metric| {
        let key = [("transport".to_owned(), transport.to_owned()), ("job".to_owned(), job.to_owned())];
        let is_it = |e: &&trueio_study::Entry| e.is_of(&key) && e.op == Some(op) && e.metric == metric;
        study.published.entries.iter().find(is_it).map(|entry| entry.value).expect("it was published")
    };
    let iops = |transport| figure(transport, "read_iops", OpKind::Read, StudyMetric::Iops);
    assert_eq!((iops("bot"), iops("uas")), (192.0, 608.0));
    assert_eq!(figure("uas", "rw_iops", OpKind::Write, StudyMetric::Bandwidth), 1168.0 * 1024.0);
    assert!((figure("uas", "rw_iops", OpKind::Write, StudyMetric::LatMean) - 0.394_66).abs() < 1e-9);
    let p50 = |transport| figure(transport, "read_throughput", OpKind::Read, StudyMetric::ClatP50);
    assert!((p50("bot") - 23e-6).abs() < 1e-12 && (p50("uas") - 1_045e-6).abs() < 1e-12);
}
