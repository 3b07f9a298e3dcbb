//! Whatever stands in a record that can be read: it is compared without a panic, and no figure is none.
//!
//! Method: the oldest record of the store's tests, with numbers in it replaced by others, absurd ones too. The fuzz target
//! `comparison` feeds the same functions with any bytes.

use proptest::prelude::*;
use trueio_compare::{Named, StoredRun, compare_runs};
use trueio_model::RunRecord;

const RECORD: &str = include_str!("../../../store/tests/records/v1.json");

/// Replaces some of the numbers by others.
fn edited(edits: &[(usize, &str)]) -> Option<RunRecord> {
    let mut text = String::with_capacity(RECORD.len());
    let mut number = 0;
    let mut rest = RECORD;
    let count = RECORD.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).count();
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[start..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| start + end);
        text.push_str(&rest[..start]);
        match edits.iter().find(|edit| edit.0 % count == number) {
            Some(edit) => text.push_str(edit.1),
            None => text.push_str(&rest[start..end]),
        }
        number += 1;
        rest = &rest[end..];
    }
    text.push_str(rest);
    serde_json::from_str(&text).ok()
}

proptest! {
    #[test]
    fn an_edited_record_is_compared_without_a_panic_and_without_a_figure_that_is_none(
        edits in prop::collection::vec((any::<usize>(), prop::sample::select(vec!["0", "1", "7", "4294967295", "18446744073709551615"])), 0..6),
    ) {
        let Some(record) = edited(&edits) else { return Ok(()) };
        let original: RunRecord = serde_json::from_str(RECORD).expect("the record");
        let named = |name: &str, record: &RunRecord| Named { name: name.to_owned(), run: StoredRun::Record(Box::new(record.clone())) };
        for (a, b) in [(&record, &record), (&record, &original), (&original, &record)] {
            let Ok(found) = compare_runs(&[named("a", a), named("b", b)], 0.05) else { continue };
            for answer in found.parts.iter().flat_map(|part| &part.answers) {
                if let Some(ratio) = answer.ratio {
                    prop_assert!(ratio.low > 0.0 && ratio.low <= ratio.estimate && ratio.estimate <= ratio.high && ratio.high.is_finite(), "{:?}", ratio);
                } else {
                    prop_assert!(answer.reason.is_some());
                }
                prop_assert!(!std::ptr::eq(a, b) || !answer.conclusion.is_difference(), "a run differs from itself: {:?}", answer);
            }
            for figure in found.parts.iter().flat_map(|part| &part.sides).flat_map(|side| &side.figures) {
                prop_assert!(figure.value.is_finite() && figure.value > 0.0);
            }
        }
    }
}
