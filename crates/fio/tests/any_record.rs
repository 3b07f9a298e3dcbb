//! fio's formats of a record whose figures are extreme.

#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use proptest::prelude::*;
use serde_json::Value;
use trueio_fio::outputs::{FioOutput, Format, render};
use trueio_model::{Histogram, RunRecord};

/// Returns a record with few leaves, so that a random change often hits a figure of interest.
fn small() -> RunRecord {
    let mut record = fixture::troubled();
    for job in record.phases.iter_mut().flat_map(|p| &mut p.jobs) {
        job.series.truncate(2);
        for op in &mut job.ops {
            let mut few = Histogram::new();
            (0..10).for_each(|i| few.record_many(20_000 << i, 400 >> i));
            op.latency.total = few.clone();
            op.latency.completion = few;
            op.latency.submission.clear();
        }
    }
    record
}

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

/// Returns all measured figures of a record.
fn figures(record: &mut RunRecord) -> Vec<&mut u64> {
    let mut all = vec![&mut record.ruler.null_latency_ns_p50];
    for phase in &mut record.phases {
        all.extend([&mut phase.begin_ns, &mut phase.elapsed_ns, &mut phase.cpu.user_ns, &mut phase.cpu.system_ns]);
        for device in &mut phase.devices {
            let (b, m) = (&mut device.baseline, &mut device.measured);
            all.extend([&mut device.baseline_ns, &mut device.measured_ns]);
            all.extend([&mut b.read_bytes, &mut b.write_bytes, &mut m.read_bytes, &mut m.write_count, &mut m.busy_ms]);
        }
        for job in &mut phase.jobs {
            all.extend([&mut job.elapsed_ns, &mut job.backlog_count, &mut job.verified_block_count]);
            all.push(&mut job.verify_failure_count);
            for op in &mut job.ops {
                all.extend([&mut op.io_count, &mut op.byte_count, &mut op.short_count, &mut op.error_count]);
            }
            for r in &mut job.series {
                all.extend([&mut r.end_ns, &mut r.span_ns, &mut r.read_count, &mut r.read_bytes, &mut r.write_count]);
                all.extend([&mut r.write_bytes, &mut r.other_count, &mut r.latency_ns_p50, &mut r.latency_ns_p99]);
                all.push(&mut r.latency_ns_max);
            }
        }
    }
    all
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
        let mut record = small();
        let mut all = figures(&mut record);
        for (index, with) in &changes {
            let at = index.index(all.len());
            *all[at] = *with;
        }
        let total = &mut record.phases[0].jobs[0].ops[0].latency.total;
        latencies.iter().for_each(|(ns, n)| total.record_many(*ns, *n));
        render_all(&record);
    }
}
