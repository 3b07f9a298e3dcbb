//! The modes of `file-writers` against the procedure of the source (go_disk_benchmarks at 0a54484).

use trueio_study::{Row, Variables, embedded, rows};

const OVERWRITE: u64 = 5 << 30;
const DOWNLOAD: u64 = 1_474_873_344;

fn of(mode: &str, is_quick: bool) -> Vec<Row> {
    let variables = Variables::from([("server".to_owned(), "http://127.0.0.1:1".to_owned())]);
    rows(&embedded("file-writers").unwrap(), mode, is_quick, &variables, &[]).unwrap()
}

fn option_text<'a>(row: &'a Row, option: &str) -> &'a str {
    row.job.options.get(option).map_or("", |value| value.text.as_str())
}

fn at<'a>(row: &'a Row, axis: &str) -> &'a str {
    row.key.iter().find(|(name, _)| name == axis).map_or("", |(_, value)| value.as_str())
}

fn bytes(row: &Row, option: &str) -> u64 {
    trueio_model::units::parse_bytes(option_text(row, option)).unwrap()
}

#[test]
fn the_rows_are_those_of_main_in_its_order_a_hundred_times_each() {
    let names: Vec<String> = of("faithful", false).into_iter().map(|row| row.name).collect();
    let expected = [
        "io_uring download",
        "io_uring overwrite",
        "io_uring-direct overwrite",
        "control download",
        "control overwrite",
        "o_direct download",
        "o_direct overwrite",
        "dd overwrite",
    ];
    assert_eq!(names, expected);
    let study = embedded("file-writers").unwrap();
    let mode = &study.definition.mode["faithful"];
    assert_eq!((mode.samples, mode.fresh_files), (100, true));
    // Four percentiles of seven tests; the eighth is in the code and not in the README.
    assert_eq!(study.published.entries.len(), 28);
    for entry in &study.published.entries {
        assert_eq!(of("faithful", false).iter().filter(|row| entry.is_of(&row.key)).count(), 1, "{entry:?}");
    }
    let p50 = study
        .published
        .entries
        .iter()
        .find(|e| e.is_of(&of("faithful", false)[7].key) && e.statistic.name() == "median");
    assert_eq!(p50.map(|e| e.value), Some(56.772));
}

#[test]
fn each_writes_as_much_in_the_same_pieces_by_the_same_calls_and_flushes_nothing() {
    for row in of("faithful", false) {
        let (writer, operation) = (at(&row, "writer"), at(&row, "operation"));
        let (size, block) = (bytes(&row, "size"), bytes(&row, "bs"));
        let (expected_size, expected_writes) = match (writer, operation) {
            ("o_direct", "download") => (DOWNLOAD, 180_039),
            (_, "download") => (DOWNLOAD, 45_010),
            ("dd", _) => (OVERWRITE, 10_240),
            _ => (OVERWRITE, 163_840),
        };
        assert_eq!((size, size.div_ceil(block)), (expected_size, expected_writes), "{}", row.name);
        for sync in ["fsync", "fdatasync", "end_fsync", "end_fdatasync", "fsync_on_close", "sync"] {
            assert_eq!(option_text(&row, sync), "", "{}: nothing is flushed within the time", row.name);
        }
        assert_eq!(option_text(&row, "direct") == "require", writer.contains("direct"), "{}", row.name);
        match writer {
            "dd" => {
                assert_eq!(option_text(&row, "command"), "dd if=/dev/zero of={file} bs={bs} count={count} conv=notrunc")
            }
            "control" | "o_direct" => {
                assert_eq!((option_text(&row, "ioengine"), option_text(&row, "iodepth")), ("sync", "1"))
            }
            _ => {
                assert_eq!((option_text(&row, "ioengine"), option_text(&row, "iodepth")), ("io_uring", "1024"));
                assert_eq!(option_text(&row, "registerfiles"), "true", "{}", row.name);
                assert_eq!(
                    option_text(&row, "drain") == "true",
                    operation == "download",
                    "{}: IOSQE_IO_DRAIN",
                    row.name
                );
            }
        }
        match operation {
            "download" => {
                assert_eq!(
                    (option_text(&row, "fallocate"), option_text(&row, "verify")),
                    ("none", "source"),
                    "{}",
                    row.name
                );
                assert_eq!(option_text(&row, "source"), format!("http://127.0.0.1:1/{DOWNLOAD}"));
            }
            _ => {
                assert_eq!(
                    (option_text(&row, "fallocate"), option_text(&row, "zero_buffers")),
                    ("truncate", "true"),
                    "{}",
                    row.name
                )
            }
        }
    }
}

#[test]
fn done_right_all_flush_within_the_time_over_written_blocks_in_the_same_block_sizes() {
    let rows = of("improved", false);
    for row in &rows {
        assert_eq!((option_text(row, "end_fsync"), option_text(row, "overwrite")), ("true", "true"), "{}", row.name);
        let verified = match (at(row, "operation"), at(row, "writer")) {
            ("download", _) => ("source", ""),
            (_, "dd") => ("pattern", "0x00"),
            _ => ("xxhash", ""),
        };
        assert_eq!((option_text(row, "verify"), option_text(row, "verify_pattern")), verified, "{}", row.name);
    }
    for block in ["32k", "512k", "1m"] {
        let of_block =
            |writer: &str| rows.iter().filter(|row| at(row, "block") == block && at(row, "writer") == writer).count();
        let counts = ["control", "o_direct", "io_uring", "io_uring-direct", "dd"].map(of_block);
        assert_eq!(counts, [2, 2, 6, 3, 1], "{block}");
    }
}

#[test]
fn in_quick_mode_the_body_has_the_set_size() {
    for row in of("faithful", true).iter().chain(&of("improved", true)) {
        assert_eq!(bytes(row, "size"), 8 << 20, "{}", row.name);
        if at(row, "operation") == "download" {
            assert_eq!(option_text(row, "source"), format!("http://127.0.0.1:1/{}", 8 << 20), "{}", row.name);
        }
    }
}

/// Goal: a size that the user sets holds for the download, too: the body and the file have the same length.
#[test]
fn a_size_of_the_user_is_that_of_the_body_as_well() {
    let variables = Variables::from([("server".to_owned(), "http://127.0.0.1:1".to_owned())]);
    let study = embedded("file-writers").unwrap();
    let extra = [("size".to_owned(), "4m".to_owned())];
    for (is_quick, extra, expected) in [(false, &[][..], DOWNLOAD), (true, &[], 8 << 20), (true, &extra, 4 << 20)] {
        for mode in ["faithful", "improved"] {
            let rows = rows(&study, mode, is_quick, &variables, extra).unwrap();
            let downloads: Vec<&Row> = rows.iter().filter(|row| at(row, "operation") == "download").collect();
            assert!(!downloads.is_empty());
            for row in downloads {
                assert_eq!(option_text(row, "source"), format!("http://127.0.0.1:1/{expected}"), "{}", row.name);
                assert_eq!(bytes(row, "size"), expected, "{}", row.name);
            }
        }
    }
}
