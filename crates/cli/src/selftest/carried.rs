//! A queue on a loop device over a file in memory: the kernel's threads copy the data on the processors that the workers need, so the
//! workers wait for them. These threads carry the job's own I/O, and no other program is to blame.
//!
//! Whether another program used the processors, too, is seen from its own counters.

use super::rows::Row;
use super::stage::{Staged, findings_of, iops_text};
use super::{READS, REQUIRE, Selftest, naming, row_of};
use crate::failure::Failure;
use std::path::Path;
use trueio_model::RunRecord;

const NAME: &str = "reads on it that the kernel's own threads carry, which use the processors";
/// The words of `processor_wait` for other programs.
pub(super) const OTHERS: &str = "other programs used the processors";
/// Part of one processor's time above which other programs may be named.
const OTHERS_SHARE_MAX: f64 = 0.25;
const RUNTIME_S: f64 = 0.6;
const TICKS_PER_S: f64 = 100.0;

impl Selftest {
    /// Direct reads in a queue that keeps the threads of the loop device under `at` busy.
    pub(super) fn carried(&mut self, at: &Path) -> Result<(), Failure> {
        if !self.continues() {
            return Ok(());
        }
        let deep = [
            READS,
            REQUIRE,
            ("bs", "128k"),
            ("size", "16m"),
            ("ioengine", "io_uring"),
            ("iodepth", "32"),
            ("numjobs", "2"),
            ("runtime", "600ms"),
            ("time_based", "true"),
        ];
        let before = ticks_of_others();
        let staged: Staged = self.stage.run("carried", at, &deep, None);
        let others = ticks_of_others().saturating_sub(before) as f64 / TICKS_PER_S / RUNTIME_S;
        let row = |record: &RunRecord| {
            let named = naming(findings_of(record), "processor_wait", OTHERS);
            let row = Row::correct(NAME, iops_text(record), &named, &["processor_wait"]);
            row.disturbed_if(others > OTHERS_SHARE_MAX)
        };
        self.add(row_of(true, NAME, staged, &row))
    }
}

/// Returns the processor time of all other programs so far, in ticks of 1/100 s, without the threads of the kernel.
fn ticks_of_others() -> u64 {
    /// `PF_KTHREAD` of a task's flags.
    const KERNEL: u64 = 0x0020_0000;
    let own = std::process::id();
    let ticks = |entry: std::fs::DirEntry| -> Option<u64> {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok().filter(|_| process != own)?;
        // After the name, flags, utime and stime are the 7th, 12th and 13th value; those of ended children follow.
        let values: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().take(15).collect();
        let value = |index: usize| values.get(index)?.parse::<u64>().ok();
        (value(6)? & KERNEL == 0).then_some((11..15).filter_map(value).sum())
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(ticks).sum()
}
