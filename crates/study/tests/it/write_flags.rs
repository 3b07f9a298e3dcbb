//! The faithful mode of `write-flags` against the procedure of the source (benchmark.js of @ronomon/direct-io 3.0.1).

use std::collections::BTreeSet;
use trueio_study::{Row, Variables, embedded, rows};

const SIZE: u64 = 128 << 20;

fn faithful() -> Vec<Row> {
    rows(&embedded("write-flags").unwrap(), "faithful", false, &Variables::new(), &[]).unwrap()
}

fn option_text<'a>(row: &'a Row, option: &str) -> &'a str {
    row.job.options.get(option).map_or("", |value| value.text.as_str())
}

fn at<'a>(row: &'a Row, axis: &str) -> &'a str {
    row.key.iter().find(|(name, _)| name == axis).map_or("", |(_, value)| value.as_str())
}

#[test]
fn it_has_fourteen_block_sizes_by_twenty_one_methods_in_the_order_of_the_source() {
    let rows = faithful();
    assert_eq!(rows.len(), 294);
    let methods: BTreeSet<&str> = rows.iter().map(|row| at(row, "method")).collect();
    assert_eq!(methods.len(), 21);
    for (index, block) in rows.chunks(21).enumerate() {
        let bytes = 4096u64 << index;
        assert!(block.iter().all(|row| trueio_model::units::parse_bytes(option_text(row, "bs")) == Ok(bytes)));
        assert!(block.iter().map(|row| at(row, "method")).eq(rows[..21].iter().map(|row| at(row, "method"))));
    }
    let published = &embedded("write-flags").unwrap().published.entries;
    assert_eq!(published.len(), 294);
    // The published table is in the order in which the source ran.
    for (row, entry) in rows.iter().zip(published) {
        assert!(entry.is_of(&row.key), "{}", row.name);
    }
}

#[test]
fn it_makes_as_many_writes_as_the_source_with_its_flags_and_flushes() {
    for row in faithful() {
        let method = at(&row, "method");
        let block = trueio_model::units::parse_bytes(option_text(&row, "bs")).unwrap();
        let all = SIZE.div_ceil(block);
        let is_flushed_each = ["FDATASYNC", "FSYNC", "O_DSYNC", "O_SYNC"].iter().any(|m| method.starts_with(m));
        let writes = if is_flushed_each { all.min(block / 32) } else { all };
        assert_eq!(option_text(&row, "number_ios"), writes.to_string(), "{}", row.name);
        assert_eq!(option_text(&row, "direct") == "require", method.contains("O_DIRECT"), "{}", row.name);
        assert_eq!(option_text(&row, "fdatasync") == "1", method.starts_with("FDATASYNC"), "{}", row.name);
        assert_eq!(option_text(&row, "fsync") == "1", method.starts_with("FSYNC"), "{}", row.name);
        assert_eq!(
            option_text(&row, "end_fdatasync") == "true",
            method.starts_with("AMORTIZED_FDATASYNC"),
            "{}",
            row.name
        );
        assert_eq!(option_text(&row, "end_fsync") == "true", method.starts_with("AMORTIZED_FSYNC"), "{}", row.name);
        let sync = if method.starts_with("O_DSYNC") {
            "dsync"
        } else if method.starts_with("O_SYNC") {
            "sync"
        } else {
            ""
        };
        assert_eq!(option_text(&row, "sync"), sync, "{}", row.name);
        // The source's unaligned buffer begins at byte 1; aligned and direct rows use the aligned one.
        let is_unaligned = !method.contains("ALIGNED") && !method.contains("O_DIRECT");
        assert_eq!(option_text(&row, "buffer_offset") == "1", is_unaligned, "{}", row.name);
        assert_eq!(option_text(&row, "ioengine"), "psync");
        assert_eq!(option_text(&row, "buffer_pattern"), "0xff");
    }
}
