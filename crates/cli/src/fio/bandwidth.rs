//! `--bandwidth-log`: what all jobs together move, each half second, in three files of the working directory.
//!
//! A line is fio's: `time in ms, KiB a second, direction (0 read, 1 write, 2 trim), 0, 0`. Times count from the
//! beginning of the run, and go on over all phases. Lines are written while the jobs run; files of the names are
//! replaced. Jobs that report all as one (`unified_rw_reporting`) have it in the log of reads.
//!
//! Source: what fio 3.33 writes, and fio 3.42, which writes it whether progress is shown or not.

use crate::failure::Failure;
use std::fs::File;
use std::io::Write;
use std::time::Duration;
use trueio_job::{FileUse, Role};
use trueio_run::{BandwidthSpan, create_output};

/// In the order of directions.
const NAMES: [&str; 3] = ["agg-read_bw.log", "agg-write_bw.log", "agg-trim_bw.log"];

/// From line to line.
pub(super) const EVERY: Duration = Duration::from_millis(500);

/// The three files.
#[derive(Debug)]
pub(super) struct BandwidthLog(Vec<File>);

impl BandwidthLog {
    /// What it writes.
    pub(super) fn files() -> impl Iterator<Item = FileUse> {
        NAMES.into_iter().map(|name| FileUse::new(name, "`--bandwidth-log`", Role::Output))
    }

    /// Makes the files; the plan made sure that nobody measures or reads them.
    pub(super) fn create() -> Result<Self, Failure> {
        let open = |name| create_output(name).map_err(|e| Failure::failed(format!("`{name}` could not be made"), &e));
        Ok(Self(NAMES.into_iter().map(open).collect::<Result<_, _>>()?))
    }

    /// Writes a line to each, or says why not.
    pub(super) fn write(&mut self, span: &BandwidthSpan) -> Result<(), String> {
        for (direction, (mut file, name)) in self.0.iter().zip(NAMES).enumerate() {
            let failed = |error: std::io::Error| format!("`{name}` could not be written: {error}");
            file.write_all(line(span, direction).as_bytes()).map_err(failed)?;
        }
        Ok(())
    }
}

fn line(span: &BandwidthSpan, direction: usize) -> String {
    let kib = u128::from(span.byte_counts[direction]) * 1_000_000_000 / span.length.as_nanos().max(1) / 1024;
    format!("{}, {kib}, {direction}, 0, 0\n", span.end.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_time_rate_and_direction() {
        let span = BandwidthSpan {
            end: Duration::from_micros(1_500_900),
            length: Duration::from_millis(250),
            byte_counts: [1 << 20, 1023 / 4, u64::MAX],
        };
        let lines: Vec<String> = (0..3).map(|direction| line(&span, direction)).collect();
        assert_eq!(lines, ["1500, 4096, 0, 0, 0\n", "1500, 0, 1, 0, 0\n", "1500, 72057594037927935, 2, 0, 0\n"]);
    }
}
