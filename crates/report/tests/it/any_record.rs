//! Reading and reporting a record never panics, whatever its content.

use crate::fixture;

use proptest::prelude::*;
use serde_json::Value;
use trueio_model::RunRecord;
use trueio_report::{Style, hdr_log, html, json, parse, terminal};

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
fn report(record: &RunRecord) {
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
    assert_eq!(parse(&json(record)).unwrap(), *record);
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
