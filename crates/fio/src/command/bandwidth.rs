//! `--bandwidth-log`: bandwidth of all jobs together, every half second, in three files of the working directory.
//!
//! A line is fio's: `time in ms, KiB a second, direction (0 read, 1 write, 2 trim), 0, 0`. Times count from the
//! beginning of the run, through all phases. Lines are written while the jobs run; logs of earlier runs are replaced. Jobs
//! that report all directions as one (`unified_rw_reporting`) are in the log of reads. Metadata operations count the
//! bytes that fio counts for them.
//!
//! Source: what fio 3.33 writes, and fio 3.42, which writes it whether progress is shown or not.

use std::io::Write;
use std::time::Duration;
use trueio_job::{Content, FileUse, Role};
use trueio_model::{Unified, error_chain};
use trueio_run::{BandwidthSpan, Before, GrowingFile, JobBytes, create_output};

/// Returns the names of the files, in the order of directions.
fn names(prefix: &str) -> [String; 3] {
    ["read", "write", "trim"].map(|direction| format!("{prefix}-{direction}_bw.log"))
}

/// Interval of lines.
pub(super) const EVERY: Duration = Duration::from_millis(500);

/// The three files with their names.
#[derive(Debug)]
pub(super) struct BandwidthLog(Vec<(GrowingFile, String)>);

impl BandwidthLog {
    /// Returns the files that it writes; their names begin with `prefix`.
    pub(super) fn files(prefix: &str) -> impl Iterator<Item = FileUse> {
        names(prefix).into_iter().map(|name| FileUse::new(name, "`--bandwidth-log`", Role::Output(Content::Log)))
    }

    /// Creates the files. The plan refuses them if a job measures or reads one.
    pub(super) fn create(prefix: &str) -> Result<Self, String> {
        let created = |name: &String| {
            create_output(name, Content::Log, Before::Unknown).and_then(|file| GrowingFile::new(file, name))
        };
        let open = |name: String| match created(&name) {
            Ok(file) => Ok((file, name)),
            Err(error) => Err(error_chain(&format!("`{name}` could not be made"), Some(&error))),
        };
        Ok(Self(names(prefix).into_iter().map(open).collect::<Result<_, _>>()?))
    }

    /// Writes a line to each file.
    pub(super) fn write(&mut self, span: &BandwidthSpan<'_>) -> Result<(), String> {
        for (direction, (file, name)) in self.0.iter_mut().enumerate() {
            let failed = |error: std::io::Error| format!("`{name}` could not be written: {error}");
            file.write_all(line(span, direction).as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    /// Checks that the names still refer to the files, and that no other program wrote to them.
    pub(super) fn end(mut self) -> Result<(), String> {
        self.0.iter_mut().try_for_each(|(file, name)| {
            let failed = |error: std::io::Error| format!("`{name}` could not be written: {error}");
            file.confirm().map_err(failed)
        })
    }
}

fn line(span: &BandwidthSpan<'_>, direction: usize) -> String {
    let bytes = span.jobs.iter().map(|job| bytes_of(job)[direction]).fold(0, u64::saturating_add);
    let kib = u128::from(bytes) * 1_000_000_000 / span.length.as_nanos().max(1) / 1024;
    format!("{}, {kib}, {direction}, 0, 0\n", span.end.as_millis())
}

/// Returns the bytes of a job in a span, by the direction that fio counts them for.
fn bytes_of(job: &JobBytes<'_>) -> [u64; 3] {
    let output = &job.plan.output;
    let mut counts = [0_u64; 3];
    for (op, (before, after)) in job.before.into_iter().zip(job.after).enumerate() {
        let direction = if output.unified == Unified::No { op } else { 0 };
        // Of the sums, not of their difference: rounded in each span, they would not add up.
        let fios = |bytes| output.names.map_or(bytes, |names| names.of(bytes).1);
        counts[direction] = counts[direction].saturating_add(fios(after).saturating_sub(fios(before)));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::{EngineKind, JobPlan, NameCounts};

    #[test]
    fn a_line_is_time_rate_and_direction() {
        let (one, other) = (JobPlan::plain(EngineKind::Null, 1), JobPlan::plain(EngineKind::Null, 1));
        let jobs = vec![
            JobBytes { plan: &one, before: [5, 0, 0], after: [5 + (1 << 20), 0, u64::MAX] },
            JobBytes { plan: &other, before: [0; 3], after: [0, 1023 / 4, 1] },
        ];
        let span = BandwidthSpan { end: Duration::from_micros(1_500_900), length: Duration::from_millis(250), jobs };
        let lines: Vec<String> = (0..3).map(|direction| line(&span, direction)).collect();
        assert_eq!(lines, ["1500, 4096, 0, 0, 0\n", "1500, 0, 1, 0, 0\n", "1500, 72057594037927935, 2, 0, 0\n"]);
    }

    #[test]
    fn all_directions_of_a_unified_job_are_reads() {
        let mut plan = JobPlan::plain(EngineKind::Null, 1);
        plan.output.unified = Unified::Mixed;
        assert_eq!(bytes_of(&JobBytes { plan: &plan, before: [1, 1, 1], after: [11, 21, 31] }), [60, 0, 0]);
    }

    #[test]
    fn metadata_operations_count_the_bytes_that_fio_counts() {
        let mut plan = JobPlan::plain(EngineKind::Filestat, 10);
        plan.output.names = Some(NameCounts { names: 5, ios: 20, block_bytes: 1024 });
        assert_eq!(bytes_of(&JobBytes { plan: &plan, before: [0; 3], after: [3, 0, 0] }), [12 << 10, 0, 0]);
        assert_eq!(bytes_of(&JobBytes { plan: &plan, before: [3, 0, 0], after: [5, 0, 0] }), [8 << 10, 0, 0]);
    }
}
