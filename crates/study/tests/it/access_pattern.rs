//! `access-pattern` against the procedure of the source: three commands of fio 2.2.10, two of them under strace.

use trueio_model::StudyMetric;
use trueio_study::{Row, Variables, embedded, rows};

fn of(mode: &str, is_quick: bool) -> Vec<Row> {
    rows(&embedded("access-pattern").unwrap(), mode, is_quick, &Variables::new(), &[]).unwrap()
}

fn option_text<'a>(row: &'a Row, option: &str) -> &'a str {
    row.job.options.get(option).map_or("", |value| value.text.as_str())
}

fn at<'a>(row: &'a Row, axis: &str) -> &'a str {
    row.key.iter().find(|(name, _)| name == axis).map_or("", |(_, value)| value.as_str())
}

#[test]
fn faithful_repeats_the_three_commands_in_their_order_and_strace_where_it_was() {
    let rows = of("faithful", false);
    let commands: Vec<_> = rows
        .iter()
        .map(|row| (option_text(row, "rw"), option_text(row, "ioengine"), option_text(row, "strace")))
        .collect();
    assert_eq!(commands, [("randwrite", "sync", "true"), ("write", "sync", "true"), ("write", "libaio", "")]);
    for row in &rows {
        let options = ["bs", "size", "direct", "iodepth", "fallocate", "trace_syscalls", "runtime", "fsync", "sync"];
        let texts = options.map(|option| option_text(row, option));
        assert_eq!(texts, ["4k", "1g", "require", "1", "native", "", "", "", ""], "{}", row.name);
    }
    let published = &embedded("access-pattern").unwrap().published;
    for (index, row) in rows.iter().enumerate() {
        let of_row: Vec<_> = published.entries.iter().filter(|entry| entry.is_of(&row.key)).collect();
        assert_eq!(of_row.len(), if index == 2 { 13 } else { 12 }, "{}: slat was printed for libaio only", row.name);
    }
    let random = |metric| {
        let is_it = |entry: &&trueio_study::Entry| entry.is_of(&rows[0].key) && entry.metric == metric;
        published.entries.iter().find(is_it).map(|entry| entry.value).expect("it was published")
    };
    let spread = [StudyMetric::ClatMin, StudyMetric::ClatMax, StudyMetric::ClatStdev].map(random);
    assert_eq!(spread.map(|seconds| (seconds * 1e8).round()), [4_200.0, 1_862_000.0, 16_479.0]);
    let disk = [StudyMetric::DiskRequests, StudyMetric::DiskMerges, StudyMetric::DiskWait].map(random);
    assert_eq!(disk, [262_177.0, 25.0, 7.5]);
    assert!(published.corrections.iter().any(|text| text.contains("KB/s, which is KiB/s")), "{published:?}");
}

#[test]
fn improved_is_the_whole_grid_with_nothing_looking_on_and_calls_has_each_engine_three_times() {
    let grid = of("improved", false);
    // Blocking engines hold one I/O, the others four depths; by four patterns.
    assert_eq!(grid.len(), 4 * (2 + 2 * 4));
    assert!(
        grid.iter().all(|row| option_text(row, "trace_syscalls").is_empty() && option_text(row, "strace").is_empty())
    );
    let calls = of("calls", false);
    assert_eq!(calls.len(), 2 * 4 * 3);
    for row in &calls {
        let options = (option_text(row, "trace_syscalls"), option_text(row, "strace"));
        let expected = match at(row, "watched") {
            "recorded" => ("true", ""),
            "strace" => ("", "true"),
            _ => ("", ""),
        };
        assert_eq!(options, expected, "{}", row.name);
    }
    assert_eq!((of("improved", true).len(), of("calls", true).len()), (4 * 5, 2 * 3 * 3));
}
