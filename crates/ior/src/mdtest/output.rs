//! A record in the format of mdtest 4.0: the summary of all iterations.
//!
//! As in mdtest, the rate of a phase is the number of all tasks' items divided by the time from the first start to the last
//! end, and a phase that was not run is 0.
//!
//! Source: mdtest 4.0, `summarize_results`.

use super::{FILE_CREATE, FILE_CREATE_REST, Mdtest};
use crate::figures::{self, Spread};
use crate::ior::output::VERSION;
use std::fmt::Write;
use trueio_model::{RunRecord, format_utc_as};

/// The lines of the table, with the jobs that they are of. `None`: no job does this.
const DIRECTORIES: [(&str, Option<&str>); 4] = [
    ("Directory creation", Some("directory-create")),
    ("Directory stat", Some("directory-stat")),
    ("Directory rename", None),
    ("Directory removal", Some("directory-remove")),
];
const FILES: [(&str, Option<&str>); 4] = [
    ("File creation", Some(FILE_CREATE)),
    ("File stat", Some("file-stat")),
    ("File read", Some("file-read")),
    ("File removal", Some("file-remove")),
];
const TREES: [(&str, Option<&str>); 2] =
    [("Tree creation", Some("tree-create")), ("Tree removal", Some("tree-remove"))];

impl Mdtest {
    /// Prints a record of the jobs of this command line.
    pub fn print(&self, record: &RunRecord) -> String {
        let (tasks, nodes, _) = figures::tasks(record);
        let time = |unix_s| format_utc_as(unix_s, "%m/%d/%Y %H:%M:%S");
        let mut out = String::new();
        let _ = writeln!(out, "-- started at {} --\n", time(record.started_unix_s));
        let _ = writeln!(out, "mdtest-{VERSION} was launched with {tasks} total task(s) on {nodes} node(s)");
        // `trueio mdtest` as it is, and the arguments in quotation marks as in mdtest.
        let (program, arguments) = record.command.split_at(record.command.len().min(2));
        let arguments: String = arguments.iter().map(|argument| format!(" '{argument}'")).collect();
        let _ = writeln!(out, "Command line used: {}{arguments}", program.join(" "));
        let _ = writeln!(out, "{:<20}: {}", "Path", self.directory);
        let _ = writeln!(out, "Nodemap: {}", figures::node_map(record));
        let what = match (self.files, self.directories) {
            (true, true) => "files/directories",
            (true, false) => "files",
            _ => "directories",
        };
        let _ = writeln!(out, "{tasks} tasks, {} {what}", self.items.saturating_mul(tasks as u64));
        if self.prints_rate {
            self.summary(&mut out, record, false);
        }
        if self.prints_time {
            self.summary(&mut out, record, true);
        }
        let _ = writeln!(out, "-- finished at {} --\n", time(figures::finished_unix_s(record)));
        out
    }

    /// The table: of rates, or of times.
    fn summary(&self, out: &mut String, record: &RunRecord, is_time: bool) {
        let what = if is_time { "time" } else { "rate" };
        let _ = writeln!(out, "\nSUMMARY {what}: (of {} iterations)", self.iterations);
        out.push_str("   Operation                     Max            Min           Mean        Std Dev\n");
        out.push_str("   ---------                     ---            ---           ----        -------\n");
        let mut lines: Vec<(&str, Option<&str>, usize)> = Vec::new();
        let of = |(name, job): (&'static str, Option<&'static str>)| (name, job, 18);
        if self.directories {
            lines.extend(DIRECTORIES.map(of));
        }
        if self.files {
            lines.extend(FILES.map(of));
        }
        lines.extend(TREES.map(|(name, job)| (name, job, 22)));
        for (name, job, width) in lines {
            let values: Vec<f64> =
                (0..self.iterations).map(|iteration| self.value(record, job, iteration, is_time)).collect();
            let spread = Spread::of(&values);
            // Of a sample, as mdtest computes it.
            let deviation = if values.len() > 1 { (spread.squares / (values.len() - 1) as f64).sqrt() } else { 0.0 };
            let gap = if width == 18 { "    " } else { "" };
            let _ = writeln!(
                out,
                "   {name:<width$} {gap}{:>14.3} {:>14.3} {:>14.3} {deviation:>14.3}",
                spread.max, spread.min, spread.mean
            );
        }
    }

    /// The rate or time of a phase in an iteration; 0 if it was not run.
    fn value(&self, record: &RunRecord, job: Option<&str>, iteration: u64, is_time: bool) -> f64 {
        let mut figures = job.and_then(|job| figures::of(record, &self.name(job, iteration)));
        if job == Some(FILE_CREATE) && self.deadline_s > 0 {
            let rest = figures::of(record, &self.name(FILE_CREATE_REST, iteration)).unwrap_or_default();
            figures = figures.map(|first| first.and_then(rest));
        }
        match figures {
            Some(figures) if is_time => figures.elapsed_s,
            Some(figures) if figures.elapsed_s > 0.0 => figures.io_count as f64 / figures.elapsed_s,
            _ => 0.0,
        }
    }
}
