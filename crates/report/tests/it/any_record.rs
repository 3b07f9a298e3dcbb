//! Reading and reporting a record never panics, whatever its content.

use crate::fixture;

use proptest::prelude::*;
use serde_json::{Value, json};
use trueio_model::RunRecord;
use trueio_report::{Style, hdr_log, html, parse, terminal};

/// Returns every path to a number, a string or a list in the value, in order.
fn count_leaves(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_leaves).sum::<usize>(),
        Value::Object(fields) => fields.values().map(count_leaves).sum(),
        _ => 1,
    }
}

/// Replaces the `at`-th leaf.
fn replace_leaf(value: &mut Value, at: &mut usize, with: &Value) {
    match value {
        Value::Array(items) => {
            if *at == 0 {
                *at = usize::MAX;
                items.clear();
                return;
            }
            *at -= 1;
            items.iter_mut().for_each(|v| {
                if *at != usize::MAX {
                    replace_leaf(v, at, with)
                }
            });
        }
        Value::Object(fields) => {
            fields.values_mut().for_each(|v| {
                if *at != usize::MAX {
                    replace_leaf(v, at, with)
                }
            });
        }
        leaf => {
            if *at == 0 {
                *at = usize::MAX;
                *leaf = with.clone();
            } else {
                *at -= 1;
            }
        }
    }
}

/// The record with few leaves, as a value.
fn small() -> Value {
    serde_json::to_value(fixture::small()).unwrap()
}

/// Renders every output of a record; the plots must be well-formed.
fn report(record: &RunRecord) -> String {
    for width in [0, 80, usize::MAX / 4] {
        terminal(record, &Style { width, color: true, unicode: false });
    }
    let page = html(record);
    for (begin, _) in page.match_indices("<svg") {
        let end = begin + page[begin..].find("</svg>").unwrap() + 6;
        let plot = roxmltree::Document::parse(&page[begin..end]).unwrap();
        assert!(!plot.descendants().any(|n| n.attributes().any(|a| a.value().contains("NaN"))));
    }
    // A count above 2^63 is an error there, which is accepted.
    let _ = hdr_log(record);
    assert_eq!(parse(&trueio_report::json(record)).unwrap(), *record);
    page
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_record_with_absurd_numbers_is_refused_or_reported(
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![
            Value::from(0), Value::from(1), Value::from(u64::MAX), Value::from(u64::MAX / 2), Value::from(i64::MIN),
            Value::from(1e308), Value::from(-1e308), Value::from(5e-324), Value::Null, Value::from("\u{0}\u{1b}<x>&"), Value::from(""),
            Value::from("contradicted"), Value::from(u32::MAX),
        ])), 1..6),
    ) {
        let mut value = small();
        for (index, with) in &changes {
            let mut at = index.index(count_leaves(&value));
            replace_leaf(&mut value, &mut at, with);
        }
        if let Ok(record) = parse(&value.to_string()) {
            report(&record);
        }
    }

    #[test]
    fn extreme_measurements_are_reported(
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![
            0, 1, 999, 1 << 42, u64::MAX / 2, u64::MAX - 1, u64::MAX,
        ])), 1..40),
        latencies in prop::collection::vec((prop::sample::select(vec![0, 1, 500, 10_u64.pow(9), 1 << 42, u64::MAX]), 1u64..1 << 50), 0..4),
    ) {
        let mut record = fixture::small();
        let mut all = fixture::figures(&mut record);
        for (index, with) in &changes {
            let at = index.index(all.len());
            *all[at] = *with;
        }
        let total = &mut record.phases[0].jobs[0].ops[0].latency.total;
        latencies.iter().for_each(|(ns, n)| total.record_many(*ns, *n));
        report(&record);
    }

    #[test]
    fn a_damaged_text_is_refused_or_read(at in any::<prop::sample::Index>(), with in any::<char>(), cut in any::<bool>()) {
        let mut text = small().to_string();
        let at = (0..=at.index(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap();
        if cut { text.truncate(at) } else { text.insert(at, with) }
        let _ = parse(&text);
    }

    #[test]
    fn any_text_is_refused(text in ".{0,200}") {
        prop_assert!(parse(&text).is_err());
    }
}

/// A run of two ranks, one of which was lost, as a value.
fn of_ranks() -> Value {
    let mut record = fixture::small();
    record.phases.truncate(1);
    let name = record.phases[0].name.clone();
    let own = RunRecord { phases: Vec::new(), ..record.clone() };
    let mut value = serde_json::to_value(&record).unwrap();
    let own = serde_json::to_value(own).unwrap();
    let clock = json!({"offset_ns": 5, "bound_ns": 7, "round_trip_ns_median": 14, "ping_count": 20});
    let span = json!({"rank": 1, "begin_ns": 0, "end_ns": 1_000_000, "late_ns": 3, "clock_before": clock, "clock_after": clock,
        "io_count": 256, "byte_count": 1 << 20, "common_io_count": 250.0, "common_bytes": 1e6});
    value["cluster"] = json!({
        "launcher": "PMI-1", "rank_count": 3, "ranks": [{"rank": 1, "host": "a", "boot_id": "b", "record": own}],
        "lost": [{"rank": 2, "host": "b", "reason": "its connection ended"}],
        "phases": [{"name": name, "nominal_ns": 1_000_000, "ranks": [span], "start_skew_ns": 1, "end_skew_ns": 2,
            "common": {"begin_ns": 0, "end_ns": 1_000_000, "share": 1.0, "ios_per_s": 250e3, "bytes_per_s": 1e9}}]
    });
    value
}

/// Goal: whatever ranks wrote into a record, it is refused or reported, and none of their names controls a terminal or a page.
/// Method: each value of the part of the ranks, but for their own records, replaced by extreme ones; and the same in all spans at once.
#[test]
fn a_record_of_ranks_with_absurd_figures_is_refused_or_reported() {
    let original = of_ranks();
    let honest = parse(&original.to_string()).expect("it is a record");
    report(&honest);
    assert!(terminal(&honest, &Style { width: 80, color: false, unicode: false }).contains("its connection ended"));
    let values = [
        json!(0),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e308),
        json!(-1e308),
        Value::Null,
        json!("\u{1b}]0;x\u{7}\n<script>&\"'\u{202e}"),
        json!([]),
    ];
    let mut pointers = Vec::new();
    let mut left = vec![("/cluster".to_owned(), &original["cluster"])];
    while let Some((pointer, value)) = left.pop() {
        match value {
            Value::Object(fields) => left.extend(
                fields
                    .iter()
                    .filter(|(name, _)| *name != "record")
                    .map(|(name, value)| (format!("{pointer}/{name}"), value)),
            ),
            Value::Array(items) => {
                left.extend(items.iter().enumerate().map(|(index, value)| (format!("{pointer}/{index}"), value)));
                pointers.push(pointer);
            }
            _ => pointers.push(pointer),
        }
    }
    assert!(pointers.len() > 30, "{pointers:?}");
    let mut read_count = 0;
    let mut check = |value: &Value| {
        let Ok(record) = parse(&value.to_string()) else { return };
        read_count += 1;
        let text = terminal(&record, &Style { width: 80, color: false, unicode: false });
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text}");
        assert!(!report(&record).contains("<script>&"), "{value}");
    };
    for pointer in &pointers {
        for with in &values {
            let mut value = original.clone();
            *value.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = with.clone();
            check(&value);
        }
    }
    for with in &values {
        let mut value = original.clone();
        for pointer in
            pointers.iter().filter(|pointer| pointer.contains("/phases/0/ranks/0/") || pointer.contains("/common/"))
        {
            *value.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = with.clone();
        }
        check(&value);
    }
    assert!(read_count > 60, "{read_count} were read");
}

/// A record of an earlier version: facts that it lacks are unknown, with the reason.
#[test]
fn a_record_without_the_newer_facts_of_a_disk_is_read_and_reported() {
    let mut value = serde_json::to_value(fixture::baseline(10)).expect("a record is JSON");
    let target = &mut value["targets"][0];
    for name in ["firmware", "wwid", "limits"] {
        assert!(target["disks"][0].as_object_mut().expect("a disk").remove(name).is_some(), "{name}");
    }
    assert!(target["direct"].as_object_mut().expect("direct").remove("atomic_write").is_some());
    let record = parse(&value.to_string()).expect("an older record");
    let disk = &record.targets[0].disks[0];
    for source in [&disk.firmware.source, &disk.limits.can_poll.source, &record.targets[0].direct.atomic_write.source] {
        assert_eq!(source, "not recorded by the version that wrote this");
    }
    assert!(html(&record).contains("not recorded by the version that wrote this"));
}
