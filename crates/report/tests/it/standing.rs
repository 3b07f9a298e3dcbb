//! Where figures stand: classes, link, history, and what limits them.

use crate::fixture;

use trueio_model::{Cause, CheckOutcome, DirectPolicy, DiskLink, Fact, Mark, RunRecord, StatementKind, Verdict};
use trueio_report::{ClassFigure, PastRun, Position, answer, class_values, standing};

/// Returns the sentences of a kind, each with its first load.
fn stated(record: &RunRecord, past: &[PastRun], kind: StatementKind) -> Vec<(String, String)> {
    let statements = answer(record, past).statements;
    let of_kind = statements.iter().filter(|one| one.kind() == kind);
    of_kind.map(|one| (one.rests_on()[0].load.clone(), one.sentence().to_owned())).collect()
}

fn linked(gt_per_s: f64, lanes: u32) -> RunRecord {
    let mut record = fixture::baseline(6);
    record.targets[0].disks[0].link =
        Some(DiskLink::Pcie { gt_per_s, lanes, gt_per_s_max: Some(16.0), lanes_max: Some(4), source: String::new() });
    record
}

/// Multiplies everything that a phase transferred.
fn scaled(record: &mut RunRecord, phase: usize, factor: f64) {
    for op in &mut record.phases[phase].jobs[0].ops {
        op.io_count = (op.io_count as f64 * factor) as u64;
        op.byte_count = (op.byte_count as f64 * factor) as u64;
    }
}

#[test]
fn a_baseline_is_placed_among_device_classes_and_described_in_one_sentence() {
    let record = fixture::baseline(6);
    let placed = standing(&record, &[]);
    let figures: Vec<ClassFigure> = placed.placements.iter().map(|placement| placement.value.figure).collect();
    let withheld: Vec<ClassFigure> = placed.withheld.iter().map(|withheld| withheld.figure).collect();
    assert_eq!((figures.as_slice(), withheld), (&ClassFigure::ALL[..], Vec::new()));
    let writes = placed.of(ClassFigure::SeqWrite).unwrap();
    assert_eq!((writes.value.mark, writes.is_confirmed()), (Mark::NotTheDisk, false), "shown, and like no class");
    let class = stated(&record, &[], StatementKind::Class);
    assert_eq!(class[0].1, "Reads and answers a random read like an NVMe SSD; commits like a consumer SSD.");
    assert_eq!(placed.of(ClassFigure::SeqRead).unwrap().value.mark, Mark::Confirmed);
    let uses = stated(&record, &[], StatementKind::Database)[0].1.clone();
    assert!(
        uses.starts_with("A database with one writer that waits for each commit makes at most 612 commits"),
        "{uses}"
    );
    assert!(uses.contains("etcd's guideline of less than 10 ms at p99 is met"), "{uses}");
}

#[test]
fn a_value_between_below_and_beyond_the_ranges_is_described_by_its_neighbours() {
    let at = |factor: f64| {
        let mut record = fixture::baseline(6);
        scaled(&mut record, 0, factor);
        standing(&record, &[]).of(ClassFigure::SeqRead).unwrap().position.clone()
    };
    assert_eq!(at(1.0), Position::Within(vec!["NVMe SSD"]));
    assert_eq!(at(0.3), Position::Between("SATA SSD", "NVMe SSD"));
    assert_eq!(at(0.16), Position::Within(vec!["SATA SSD"]));
    assert_eq!(at(0.01), Position::WorseThan("disk"));
    assert_eq!(at(10.0), Position::BetterThan("NVMe SSD"));
    assert_eq!(at(0.3).words(), "faster than a SATA SSD and slower than an NVMe SSD");
}

#[test]
fn the_link_is_named_as_the_limit_only_if_the_figure_is_near_it() {
    let near = standing(&linked(8.0, 4), &[]);
    let link = near.of(ClassFigure::SeqRead).unwrap().link.clone().unwrap();
    assert_eq!((link.name.as_str(), link.bytes_per_s), ("PCIe 3.0 x4", 3_940_000_000.0));
    assert_eq!(link.supported.as_deref(), Some("the device supports PCIe 4.0 x4"));
    let is_link =
        |limit: &(String, String)| limit.1.starts_with("The link PCIe 3.0 x4 limits it: 3.21 GiB/s of 3.67 GiB/s");
    let limits = stated(&linked(8.0, 4), &[], StatementKind::Limit);
    assert!(limits.iter().any(|limit| limit.0 == "seq-read-1m" && is_link(limit)), "{limits:?}");

    let far = standing(&linked(16.0, 4), &[]);
    assert!(far.of(ClassFigure::SeqRead).unwrap().link.is_some());
    let limits = stated(&linked(16.0, 4), &[], StatementKind::Limit);
    assert!(!limits.iter().any(|limit| limit.1.contains("The link")), "{limits:?}");
    // A link that was exceeded is emulated and limits nothing.
    let exceeded = standing(&linked(2.5, 1), &[]);
    assert_eq!(exceeded.of(ClassFigure::SeqRead).unwrap().link, None);
    // A latency has no share of a link.
    assert_eq!(near.of(ClassFigure::RandReadLatency).unwrap().link, None);
}

#[test]
fn a_figure_that_is_withheld_buffered_paced_or_short_is_not_placed() {
    let count = |change: &dyn Fn(&mut RunRecord)| {
        let mut record = fixture::baseline(6);
        change(&mut record);
        class_values(&record).len()
    };
    assert_eq!(count(&|_| {}), 6);
    assert_eq!(count(&|record| record.phases[0].verdict = Verdict::Contradicted), 5);
    assert_eq!(count(&|record| record.plan.jobs[0].direct = DirectPolicy::Off), 5);
    assert_eq!(count(&|record| record.phases[0].jobs[0].elapsed_ns = 400_000_000), 5);
    assert_eq!(count(&|record| record.phases[0].jobs[0].ops[0].io_count = 63), 5);
    assert_eq!(count(&|record| record.plan.jobs[0].pattern.read_sizes = trueio_model::BlockSizes::Fixed(65_536)), 5);
    // What is in doubt keeps its place, and is like no class.
    assert_eq!(
        count(&|record| {
            record.phases[0].checks[2].name = "page_cache".into();
            record.phases[0].checks[2].outcome = CheckOutcome::Suspect;
            record.phases[0].checks[2].cause = Cause::Cache;
            record.phases[0].verdict = Verdict::Suspect;
        }),
        6
    );
}

#[test]
fn earlier_runs_of_the_same_load_form_the_range_and_disturbed_ones_do_not() {
    let record = fixture::baseline(6);
    let earlier = |id: &str, factor: f64, verdict| {
        let mut earlier = fixture::baseline(6);
        earlier.id = id.to_owned();
        scaled(&mut earlier, 0, factor);
        earlier.phases[0].verdict = verdict;
        PastRun::of(&earlier)
    };
    let mut past = vec![
        earlier("a", 0.9, Verdict::Supported),
        earlier("b", 1.1, Verdict::Supported),
        earlier("c", 1.0, Verdict::Supported),
        earlier("d", 0.2, Verdict::Suspect),
    ];
    // The run itself may be in the history already.
    past.push(PastRun::of(&record));
    let placed = standing(&record, &past);
    let range = placed.of(ClassFigure::SeqRead).unwrap().past.unwrap();
    let value = placed.of(ClassFigure::SeqRead).unwrap().value.value;
    assert_eq!(range.count, 3);
    assert!((range.low / value - 0.9).abs() < 0.01 && (range.high / value - 1.1).abs() < 0.01);
    assert!((range.median / value - 1.0).abs() < 0.01);

    let said =
        |past: &[PastRun]| stated(&record, past, StatementKind::Past).into_iter().map(|(_, sentence)| sentence).next();
    assert_eq!(said(&past).unwrap(), "4 earlier runs of this device: all confirmed figures are within their range.");
    assert!(said(&[]).is_none(), "no history, no sentence");
    let words = said(&past[1..2]).unwrap();
    assert!(words.starts_with("The earlier run of this device: Sequential read "), "{words}");
    assert!(words.contains(", was ") && words.ends_with("; the others are within their range."), "{words}");

    let mut other = earlier("e", 0.5, Verdict::Supported);
    other.values.iter_mut().for_each(|value| value.load = "read 128k q8".to_owned());
    assert_eq!(standing(&record, &[other]).of(ClassFigure::SeqRead).unwrap().past, None);
}

#[test]
fn busy_workers_and_a_write_rate_that_falls_are_limits_of_confirmed_figures() {
    let mut record = fixture::baseline(6);
    record.phases[3].worker_cpu.user_ns = 5_900_000_000;
    for row in record.phases[1].jobs[0].series.iter_mut().skip(25) {
        row.write_bytes /= 3;
    }
    let fell = |record: &RunRecord| {
        let limits = stated(record, &[], StatementKind::Limit);
        limits.into_iter().find(|(load, _)| load == "seq-write-1m").map(|(_, sentence)| sentence)
    };
    assert_eq!(fell(&record), None, "the writes are suspect");
    record.phases[1].checks.iter_mut().for_each(|check| check.outcome = CheckOutcome::Passed);
    record.phases[1].verdict = Verdict::Supported;
    assert!(fell(&record).is_some_and(|sentence| sentence.contains("after 2.50 s and stayed there")));
    let limits = stated(&record, &[], StatementKind::Limit);
    assert!(
        limits.iter().any(|(load, text)| load == "rand-read-4k-q32" && text.starts_with("The processor limits it"))
    );

    // The honest run has dips, and neither of these limits.
    let honest = stated(&fixture::baseline(6), &[], StatementKind::Limit);
    assert!(honest.iter().all(|(_, text)| text.starts_with("One ")), "{honest:?}");
}

#[test]
fn cloud_classes_are_shown_only_where_there_may_be_a_cloud() {
    let bands = |record: &RunRecord| {
        standing(record, &[]).of(ClassFigure::SeqRead).unwrap().bands.iter().map(|band| band.name).collect::<Vec<_>>()
    };
    let mut record = fixture::baseline(6);
    record.environment.hypervisor = Fact::unknown("none");
    assert_eq!(bands(&record), ["disk", "SATA SSD", "NVMe SSD"]);
    record.environment.hypervisor = Fact::known("kvm".into(), "cpuid");
    assert_eq!(bands(&record), ["disk", "SATA SSD", "cloud", "NVMe SSD"]);
}
