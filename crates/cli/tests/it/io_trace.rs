//! `run --trace`, `report TRACE` and `run --replay`: every I/O of a run, kept, drawn and repeated.

use crate::common::*;
use std::fs::File;
use trueio_iotrace::{TraceReader, TraceRow};
use trueio_model::OpKind;

fn rows(sandbox: &Sandbox, name: &str) -> Vec<TraceRow> {
    let reader = TraceReader::open(File::open(sandbox.path(name)).expect("a trace")).expect("a whole trace");
    assert_eq!(reader.header().dropped, [], "no row is missing");
    let mut rows = Vec::new();
    reader.for_each(|row| rows.push(row)).expect("all rows");
    rows
}

/// Goal: a trace has one row for each I/O of the record, with its latencies; two workers and sync calls are distinguished;
/// and a replay of it does the same I/O.
#[test]
fn every_io_is_traced_and_replayed() {
    let sandbox = Sandbox::new();
    let run = "run --ioengine psync --rw randrw --bs 4k,8k --size 256k --filename data --unlink=false --numjobs 2 --fsync 16 \
               --number_ios 48 --no-evidence --no-history --trace t.parquet --json record.json";
    let ran = sandbox.run(&run.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("trace: t.parquet ("), "{ran:?}");
    let record = read_record(&sandbox.path("record.json"));
    let traced = rows(&sandbox, "t.parquet");
    for op in &record.phases[0].jobs[0].ops {
        let of_op: Vec<&TraceRow> = traced.iter().filter(|row| row.op == op.op).collect();
        assert_eq!(of_op.len() as u64, op.io_count, "{:?}", op.op);
        assert_eq!(of_op.iter().map(|row| u64::from(row.length)).sum::<u64>(), op.byte_count, "{:?}", op.op);
        // The record's figures are exact, too.
        assert_eq!(of_op.iter().map(|row| row.clat_ns).max(), op.latency.total.max_ns(), "{:?}", op.op);
        assert_eq!(
            of_op.iter().map(|row| u128::from(row.clat_ns)).sum::<u128>(),
            op.latency.total.sum_ns(),
            "{:?}",
            op.op
        );
    }
    assert!([1, 2].iter().all(|worker| traced.iter().any(|row| row.worker == *worker)));
    assert!(traced.iter().all(|row| row.error == 0 && row.slat_ns == 0 && row.time_ns >= row.clat_ns));

    let drawn = sandbox.run(&["report", "t.parquet", "--html", "t.html"]);
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    assert!(drawn.out.contains("latency over time") && drawn.out.contains("latency over offset"), "{drawn:?}");
    assert!(drawn.out.contains("; no row is missing"), "{drawn:?}");
    let page = std::fs::read_to_string(sandbox.path("t.html")).expect("a page");
    assert_eq!(page.matches("<svg").count(), 2, "{page}");

    let again = "run --ioengine psync --replay t.parquet --overwrite_existing data --no-evidence --no-history --trace again.parquet";
    let ran = sandbox.run(&again.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let key = |row: &TraceRow| (row.op as u8, row.offset, row.length);
    let sorted = |rows: &[TraceRow]| {
        let mut keys: Vec<_> = rows.iter().filter(|row| row.op != OpKind::Sync).map(key).collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(sorted(&rows(&sandbox, "again.parquet")), sorted(&traced));
}

/// Goal: an incomplete trace, as of a run that was killed, is refused with a reason by the report and by a replay.
#[test]
fn an_incomplete_trace_is_refused() {
    let sandbox = Sandbox::new();
    let run = "run --ioengine null --rw randread --bs 4k --size 1m --number_ios 10 --no-evidence --no-history --trace t.parquet";
    assert_eq!(sandbox.run(&run.split_whitespace().collect::<Vec<_>>()).code, Some(0));
    let file = File::options().write(true).open(sandbox.path("t.parquet")).expect("a trace");
    let length = file.metadata().expect("a length").len();
    file.set_len(length - 1).expect("shorter");
    let ran = sandbox.run(&["report", "t.parquet"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("the trace of a run that was killed is incomplete"), "{ran:?}");
    let ran = sandbox.run(&["run", "--ioengine", "null", "--replay", "t.parquet", "--no-history"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("the log `t.parquet` cannot be used"), "{ran:?}");
}
