//! A stall while the job has a rate: an I/O that was due meanwhile waited before it was submitted, which a latency from the submission
//! does not contain, and a latency of the sync calls neither.
//!
//! On a simulated disk, in virtual time. Not a check: the first screen prints the latency from the time each I/O was due, of the slowest
//! operation.

use super::Selftest;
use super::rows::{Finding, Row};
use super::stage::{findings_of, naive_quantile};
use crate::failure::Failure;
use std::path::Path;
use trueio_model::{OpKind, RunRecord, units};
use trueio_report::{Style, screen_table};

pub(super) const STALLED: &str =
    "a stall of 2 s at 200 durable writes a second, with the latency of the sync calls (a simulated disk)";
const EVEN: &str = "the same writes without a stall";
/// The latency of the I/Os that were due during the stall; others take 2 ms.
const LATE_NS: u64 = 1_000_000_000;

/// Returns the p99 of the first screen's only line.
fn printed_p99(record: &RunRecord) -> Option<(String, u64)> {
    let table = screen_table(record, &Style { width: 120, color: false, unicode: true });
    let (_, rest) = table.split_once(" p99 ")?;
    let mut words = rest.split_whitespace();
    let text = format!("{} {}", words.next()?, words.next()?);
    let known: Vec<u64> = record
        .phases
        .iter()
        .flat_map(|phase| &phase.jobs)
        .flat_map(|job| &job.ops)
        .flat_map(|op| {
            let histograms = [&op.latency.total, &op.latency.from_intended];
            histograms.into_iter().filter_map(|histogram| {
                let rank = (histogram.count() * 99).div_ceil(100).max(1);
                histogram.value_at_rank(rank)
            })
        })
        .collect();
    let value = known.into_iter().find(|ns| units::format_duration_ns(*ns) == text)?;
    Some((text, value))
}

impl Selftest {
    /// Writes at a rate, each made durable, on a disk that stalls and on one that does not.
    pub(super) fn paced_and_stalled(&mut self, at: &Path) -> Result<(), Failure> {
        let model = |simulated| {
            [
                ("ioengine", "simulated"),
                ("simulated", simulated),
                ("bs", "4k"),
                ("size", "1g"),
                ("rw", "randwrite"),
                ("rate_iops", "200"),
                ("fdatasync", "1"),
                ("runtime", "10s"),
                ("time_based", "true"),
            ]
        };
        let row = |record: &RunRecord| {
            let ops = record.phases.iter().flat_map(|phase| &phase.jobs).flat_map(|job| &job.ops);
            let sync =
                ops.clone().find(|op| op.op == OpKind::Sync).map_or_else(String::new, |op| naive_quantile(op, 990));
            let mut findings = findings_of(record);
            if let Some((text, _)) = printed_p99(record).filter(|(_, ns)| *ns >= LATE_NS) {
                let sentence = format!("p99 {text}, from the time each write was due.");
                findings.push(Finding::new("printed", "due time", sentence));
            }
            Row::false_result(STALLED, format!("p99 {sync}"), findings, &[&["due time"]])
        };
        let stalled = model("service=1ms,channels=1,stall=4s+2s");
        self.job(false, STALLED, ("due", at), &[&stalled], None, row)?;
        let row = |record: &RunRecord| {
            let printed = printed_p99(record);
            let mut findings = Vec::new();
            if printed.as_ref().is_none_or(|(_, ns)| *ns >= LATE_NS) {
                findings.push(Finding::new("printed", "due time", "The p99 is missing or too long."));
            }
            let text = printed.map_or_else(String::new, |(text, _)| text);
            Row::correct(EVEN, format!("p99 {text}"), &findings, &["due time"])
        };
        self.job(true, EVEN, ("due", at), &[&model("service=1ms,channels=1")], None, row)
    }
}
