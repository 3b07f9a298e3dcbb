//! fio's formats of a record whose figures are extreme.

use crate::fixture;

use proptest::prelude::*;
use serde_json::Value;
use trueio_fio::outputs::{FioOutput, Format, render};
use trueio_model::RunRecord;

/// Renders a record in each of fio's formats and checks the histograms of `json+`.
fn render_all(record: &RunRecord) {
    for terse_version in 2..=5 {
        let options = FioOutput { formats: vec![Format::Terse, Format::Normal], terse_version, ..FioOutput::default() };
        assert!(!render(record, &options).contains("NaN"));
    }
    // fio's JSON is JSON whatever stands in the record, and its buckets hold all that was measured.
    let document = render(record, &FioOutput { formats: vec![Format::JsonPlus], ..FioOutput::default() });
    let document: Value = serde_json::from_str(&document).unwrap();
    for job in document["jobs"].as_array().unwrap() {
        for direction in ["read", "write", "trim"] {
            let clat = &job[direction]["clat_ns"];
            let Some(bins) = clat["bins"].as_object() else { continue };
            assert_eq!(bins.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), clat["N"].as_u64().unwrap());
            for percentile in clat["percentile"].as_object().unwrap().values() {
                assert!(percentile.as_u64() >= clat["min"].as_u64() && percentile.as_u64() <= clat["max"].as_u64());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn extreme_measurements_are_rendered_in_fios_formats(
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
        render_all(&record);
    }
}
