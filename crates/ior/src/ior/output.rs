//! A record in the formats of IOR 4.0: text, JSON and CSV (`-O summaryFormat`).
//!
//! Times and rates are with opening and closing, as IOR defines them; the time of the transfers alone gives the column `IOPS`.
//! Opening is timed when the files are created and opened before the measured part, closing after it. Times of day are UTC.
//!
//! Limit: the line `FS` (size and inodes of the filesystem) is not printed.
//!
//! Source: IOR 4.0, `ior-output.c`.

use super::{Format, Ior};
use crate::figures::{self, Figures, Spread};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use trueio_model::{RunRecord, format_utc_as};

/// The version of IOR whose output this is.
pub(crate) const VERSION: &str = "4.0.0";

const MIB: f64 = 1_048_576.0;
const MB: f64 = 1e6;

/// The results of a phase in each repetition.
struct Phase {
    name: &'static str,
    runs: Vec<Measured>,
}

/// One repetition.
#[derive(Clone, Copy)]
struct Measured {
    figures: Figures,
    /// Of the part before the deadline, if work was completed after it.
    before: Option<Figures>,
}

impl Measured {
    fn bytes_per_s(self) -> f64 {
        rate(self.figures.byte_count as f64, self.figures.total_s())
    }

    /// I/Os per second with opening and closing, as in the summary.
    fn ios_per_s(self) -> f64 {
        rate(self.figures.io_count as f64, self.figures.total_s())
    }

    /// I/Os per second of the transfers, as in the table of results.
    fn transfers_per_s(self) -> f64 {
        rate(self.figures.io_count as f64, self.figures.elapsed_s)
    }
}

fn rate(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// The figures of a phase over all repetitions.
struct Summary {
    bytes_per_s: Spread,
    ios_per_s: Spread,
    mean_s: f64,
    /// Seconds until the deadline, and bytes per second of a task until then.
    stonewall: Option<(f64, f64)>,
}

impl Phase {
    fn summary(&self, tasks: usize) -> Summary {
        let values = |of: fn(Measured) -> f64| Spread::of(&self.runs.iter().map(|run| of(*run)).collect::<Vec<f64>>());
        let before: Vec<Figures> = self.runs.iter().filter_map(|run| run.before).collect();
        let seconds: f64 = before.iter().map(|figures| figures.elapsed_s).sum();
        // The mean of the tasks, as IOR prints it.
        let bytes = before.iter().map(|figures| figures.byte_count).sum::<u64>() as f64 / tasks as f64;
        Summary {
            bytes_per_s: values(Measured::bytes_per_s),
            ios_per_s: values(Measured::ios_per_s),
            mean_s: values(|run| run.figures.total_s()).mean,
            stonewall: (!before.is_empty()).then(|| (seconds / self.runs.len() as f64, rate(bytes, seconds))),
        }
    }

    fn max_bytes_per_s(&self) -> f64 {
        self.runs.iter().map(|run| run.bytes_per_s()).fold(0.0, f64::max)
    }
}

/// The deviation of the whole population, as IOR computes it.
fn deviation(spread: &Spread, count: usize) -> f64 {
    (spread.squares / count as f64).sqrt()
}

/// A time as ctime(3) writes it.
fn ctime(unix_s: u64) -> String {
    format_utc_as(unix_s, "%a %b %e %H:%M:%S %Y")
}

impl Ior {
    /// Prints a record of the jobs of this command line. `host` is the name of the host of rank 0.
    pub fn print(&self, record: &RunRecord, host: &str) -> String {
        let phases: Vec<Phase> = [("write", self.writes), ("read", self.reads)]
            .into_iter()
            .filter(|(_, is_there)| *is_there)
            .map(|(name, _)| Phase { name, runs: self.runs(record, name) })
            .collect();
        match self.format {
            Format::Text => self.text(record, host, &phases),
            Format::Json => self.json(record, host, &phases),
            Format::Csv => self.csv(record, &phases),
        }
    }

    fn text(&self, record: &RunRecord, host: &str, phases: &[Phase]) -> String {
        let mut out = self.header(record, host);
        self.results(&mut out, phases);
        for phase in phases {
            let most = phase.max_bytes_per_s();
            let name = if phase.name == "write" { "Max Write: " } else { "Max Read:  " };
            let _ = writeln!(out, "{name}{:.2} MiB/sec ({:.2} MB/sec)", most / MIB, most / MB);
        }
        self.summary(&mut out, record, phases);
        let _ = writeln!(out, "{:<20}: {}", "Finished", ctime(figures::finished_unix_s(record)));
        out
    }

    fn runs(&self, record: &RunRecord, phase: &str) -> Vec<Measured> {
        let of = |repetition| {
            let figures = figures::of(record, &self.name(phase, repetition))?;
            if phase != "write" || !self.wears_out {
                return Some(Measured { figures, before: None });
            }
            let rest = figures::of(record, &self.name("write-rest", repetition)).unwrap_or_default();
            Some(Measured { figures: figures.and_then(rest), before: Some(figures) })
        };
        (0..self.repetitions).filter_map(of).collect()
    }

    /// Returns the number of tasks that took part and of hosts, and the tasks on the host of the first one.
    fn tasks(&self, record: &RunRecord) -> (usize, usize, usize) {
        let (tasks, nodes, on_first) = figures::tasks(record);
        let most = if self.task_count == 0 { tasks } else { self.task_count as usize };
        (tasks.min(most), nodes.min(most), on_first.min(most))
    }

    /// Returns the lines of the section `Options`.
    fn options(&self, record: &RunRecord) -> Vec<(&'static str, Value)> {
        let (tasks, nodes, on_first) = self.tasks(record);
        let mut lines = vec![
            ("api", json!("POSIX")),
            ("apiVersion", json!("")),
            ("test filename", json!(self.file)),
            ("access", json!(if self.file_per_task { "file-per-process" } else { "single-shared-file" })),
            ("type", json!("independent")),
            ("segments", json!(self.segments)),
            ("ordering in a file", json!(if self.random { "random" } else { "sequential" })),
        ];
        if self.reorder.is_some() {
            lines.push(("ordering inter file", json!("constant task offset")));
            lines.push(("task offset", json!(self.distance)));
        } else if let Some(seed) = self.reorder_random {
            lines.push(("ordering inter file", json!("random task offset")));
            lines.push(("task offset", json!(self.distance)));
            lines.push(("reorder random seed", json!(seed)));
        } else {
            lines.push(("ordering inter file", json!("no tasks offsets")));
        }
        let aggregate = self.block_bytes.saturating_mul(self.segments).saturating_mul(tasks as u64);
        lines.extend([
            ("nodes", json!(nodes)),
            ("tasks", json!(tasks)),
            ("clients per node", json!(on_first)),
            ("repetitions", json!(self.repetitions)),
            ("xfersize", json!(readable(self.transfer_bytes))),
            ("blocksize", json!(readable(self.block_bytes))),
            ("aggregate filesize", json!(readable(aggregate))),
        ]);
        if self.deadline_s > 0 {
            lines.push(("stonewallingTime", json!(self.deadline_s)));
            lines.push(("stoneWallingWearOut", json!(u8::from(self.wears_out))));
        }
        lines
    }

    fn header(&self, record: &RunRecord, host: &str) -> String {
        let mut out = format!("IOR-{VERSION}: MPI Coordinated Test of Parallel I/O\n");
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(out, "{key:<20}: {value}");
        };
        let began = ctime(record.started_unix_s);
        line("Began", &began);
        line("Command line", &record.command.join(" "));
        line("Machine", &format!("Linux {host}"));
        line("TestID", "0");
        line("StartTime", &began);
        line("Path", &self.files_of_rank(0)[0]);
        out.push_str("\nOptions: \n");
        for (key, value) in self.options(record) {
            let _ = match value {
                Value::String(text) => writeln!(out, "{key:<20}: {text}"),
                number => writeln!(out, "{key:<20}: {number}"),
            };
        }
        out.push_str("\nResults: \n");
        out
    }

    /// Calls `each` with the results in the order of the table: those of each repetition, and its number.
    fn in_order(&self, phases: &[Phase], mut each: impl FnMut(&'static str, Measured, usize)) {
        for repetition in 0..self.repetitions as usize {
            for phase in phases {
                if let Some(run) = phase.runs.get(repetition) {
                    each(phase.name, *run, repetition);
                }
            }
        }
    }

    /// The table with a line for each phase of each repetition.
    fn results(&self, out: &mut String, phases: &[Phase]) {
        out.push_str(
            "\naccess    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   \
             iter\n------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   \
             --------   ----\n",
        );
        self.in_order(phases, |name, run, repetition| {
            let _ = write!(out, "{name:<10}");
            for (column, value) in self.columns(run).into_iter().enumerate() {
                out.push_str(&cell(value, if column == 2 { "  " } else { " " }));
            }
            let _ = writeln!(out, "{repetition:<4}");
        });
    }

    /// Returns the numbers of a line of the table: from `bw(MiB/s)` to `total(s)`.
    fn columns(&self, run: Measured) -> [f64; 9] {
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        let Figures { io_s_min, open_s, elapsed_s, close_s, .. } = run.figures;
        [
            run.bytes_per_s() / MIB,
            run.transfers_per_s(),
            io_s_min,
            kib(self.block_bytes),
            kib(self.transfer_bytes),
            open_s,
            elapsed_s,
            close_s,
            run.figures.total_s(),
        ]
    }

    fn summary(&self, out: &mut String, record: &RunRecord, phases: &[Phase]) {
        let (tasks, _, on_first) = self.tasks(record);
        out.push_str("\nSummary of all tests:\n");
        let heads = ["Max(MiB)", "Min(MiB)", "Mean(MiB)", "StdDev", "Max(OPs)", "Min(OPs)", "Mean(OPs)", "StdDev"];
        let _ = write!(out, "{:<9}", "Operation");
        for head in heads.into_iter().chain(["Mean(s)", "Stonewall(s)"]) {
            let _ = write!(out, " {head:>10}");
        }
        let _ = write!(out, " {:>13}", "Stonewall(MiB)");
        out.push_str(" Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt ");
        let _ = writeln!(out, "{:>8} {:>8} {:>9} {:>5} RefNum", " blksiz", "xsize", "aggs(MiB)", "API");
        for phase in phases.iter().filter(|phase| !phase.runs.is_empty()) {
            let summary = phase.summary(tasks);
            let _ = write!(out, "{:<9} ", phase.name);
            for (spread, unit) in [(&summary.bytes_per_s, MIB), (&summary.ios_per_s, 1.0)] {
                for value in [spread.max, spread.min, spread.mean, deviation(spread, phase.runs.len())] {
                    let _ = write!(out, "{:>10.2} ", value / unit);
                }
            }
            let _ = write!(out, "{:>10.5} ", summary.mean_s);
            let _ = match summary.stonewall {
                None => write!(out, "{:>10} {:>13} ", "NA", "NA"),
                Some((seconds, bytes_per_s)) => write!(out, "{seconds:>10.2} {:>13.2} ", bytes_per_s / MIB),
            };
            let _ = write!(out, "{:>5} {tasks:>6} {on_first:>3} {:>4} ", 0, self.repetitions);
            let _ = write!(out, "{:>3} {:>5} ", u8::from(self.file_per_task), u8::from(self.reorder.is_some()));
            let random = u8::from(self.reorder_random.is_some());
            let _ = write!(out, "{:>8} {random:>9} {:>4} ", self.distance, self.reorder_random.unwrap_or(0));
            let _ = write!(out, "{:>6} {:>8} {:>8} ", self.segments, self.block_bytes, self.transfer_bytes);
            let _ = writeln!(out, "{:>9.1} POSIX {:>6}", phase.runs[0].figures.byte_count as f64 / MIB, self.reference);
        }
    }

    fn csv(&self, record: &RunRecord, phases: &[Phase]) -> String {
        let (tasks, ..) = self.tasks(record);
        let mut out =
            "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n"
                .to_owned();
        self.in_order(phases, |name, run, repetition| {
            out.push_str(name);
            for value in self.columns(run) {
                let _ = write!(out, ",{value:.4}");
            }
            let _ = writeln!(out, ",{tasks},{repetition}");
        });
        out
    }

    fn json(&self, record: &RunRecord, host: &str, phases: &[Phase]) -> String {
        let (tasks, _, on_first) = self.tasks(record);
        let began = ctime(record.started_unix_s);
        let mut results = Vec::new();
        self.in_order(phases, |name, run, _| {
            let [bw, iops, latency, block, xfer, open, transfer, close, total] = self.columns(run);
            results.push(json!({
                "access": name, "bwMiB": bw, "blockKiB": block, "xferKiB": xfer, "iops": iops, "latency": latency,
                "openTime": open, "wrRdTime": transfer, "closeTime": close, "totalTime": total,
            }));
        });
        let summary = |phase: &Phase| {
            let Summary { bytes_per_s, ios_per_s, mean_s, stonewall } = phase.summary(tasks);
            let count = phase.runs.len();
            let mut out = json!({
                "operation": phase.name, "API": "POSIX", "TestID": 0, "ReferenceNumber": self.reference,
                "segmentCount": self.segments, "blockSize": self.block_bytes, "transferSize": self.transfer_bytes,
                "numTasks": tasks, "tasksPerNode": on_first, "repetitions": self.repetitions,
                "filePerProc": u8::from(self.file_per_task), "reorderTasks": u8::from(self.reorder.is_some()),
                "taskPerNodeOffset": self.distance, "reorderTasksRandom": u8::from(self.reorder_random.is_some()),
                "reorderTasksRandomSeed": self.reorder_random.unwrap_or(0),
                "bwMaxMIB": bytes_per_s.max / MIB, "bwMinMIB": bytes_per_s.min / MIB, "bwMeanMIB": bytes_per_s.mean / MIB,
                "bwStdMIB": deviation(&bytes_per_s, count) / MIB, "OPsMax": ios_per_s.max, "OPsMin": ios_per_s.min,
                "OPsMean": ios_per_s.mean, "OPsSD": deviation(&ios_per_s, count), "MeanTime": mean_s,
                "xsizeMiB": phase.runs[0].figures.byte_count as f64 / MIB,
            });
            if let Some((seconds, bytes_per_s)) = stonewall {
                out["StoneWallTime"] = json!(seconds);
                out["StoneWallbwMeanMIB"] = json!(bytes_per_s / MIB);
            }
            out
        };
        let options: Map<String, Value> =
            self.options(record).into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let max: Map<String, Value> = phases
            .iter()
            .flat_map(|phase| {
                let most = phase.max_bytes_per_s();
                [(format!("{}MiB", phase.name), json!(most / MIB)), (format!("{}MB", phase.name), json!(most / MB))]
            })
            .collect();
        let text = serde_json::to_string_pretty(&json!({
            "Version": VERSION,
            "Began": began,
            "Command line": record.command.join(" "),
            "Machine": format!("Linux {host}"),
            "tests": [{
                "TestID": 0,
                "StartTime": began,
                "Path": self.files_of_rank(0)[0],
                "Parameters": self.parameters(on_first),
                "Options": options,
                "Results": results,
                "max": max,
            }],
            "summary": phases.iter().filter(|phase| !phase.runs.is_empty()).map(summary).collect::<Vec<Value>>(),
            "Finished": ctime(figures::finished_unix_s(record)),
        }));
        format!("{}\n", text.expect("numbers and texts are JSON"))
    }

    /// Returns the section `Parameters` of the JSON.
    fn parameters(&self, on_first: usize) -> Value {
        json!({
            "testID": 0, "refnum": self.reference, "api": "POSIX", "testFileName": self.file,
            "deadlineForStonewall": self.deadline_s, "stoneWallingWearOut": u8::from(self.wears_out),
            "tasksPerNode": on_first, "repetitions": self.repetitions, "fsync": u8::from(self.fsync),
            "fsyncperwrite": u8::from(self.fsync_per_write), "useExistingTestFile": u8::from(self.uses_existing),
            "readFile": u8::from(self.reads), "writeFile": u8::from(self.writes),
            "filePerProc": u8::from(self.file_per_task), "reorderTasks": u8::from(self.reorder.is_some()),
            "reorderTasksRandom": u8::from(self.reorder_random.is_some()),
            "reorderTasksRandomSeed": self.reorder_random.unwrap_or(0),
            "randomOffset": u8::from(self.random) + u8::from(self.overlaps), "multiFile": u8::from(self.multi_file),
            "uniqueDir": u8::from(self.unique_directory), "interTestDelay": self.delay_s,
            "checkWrite": u8::from(self.checks_writes), "checkRead": u8::from(self.checks_reads),
            "keepFile": u8::from(self.keeps), "collective": 0, "segmentCount": self.segments,
            "transferSize": self.transfer_bytes, "blockSize": self.block_bytes,
        })
    }
}

/// A number of the table of results: ten columns, fewer digits for larger ones; `-` if it is negative.
fn cell(number: f64, end: &str) -> String {
    match number {
        number if number < 0.0 => format!("   -      {end}"),
        number if number < 1.0 => format!("{number:<10.6}{end}"),
        number if number < 3600.0 => format!("{number:<10.2}{end}"),
        number => format!("{number:<10.0}{end}"),
    }
}

/// A size as IOR prints it: `1 MiB`, `1.50 GiB`.
fn readable(bytes: u64) -> String {
    for (unit, name) in [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")] {
        if bytes >= unit {
            return match bytes % unit {
                0 => format!("{} {name}", bytes / unit),
                _ => format!("{:.2} {name}", bytes as f64 / unit as f64),
            };
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: lines that IOR 4.0 printed, as its documentation shows them.
    #[test]
    fn numbers_are_laid_out_as_iors() {
        assert_eq!(cell(2.5, " "), "2.50       ");
        assert_eq!(cell(0.25, " "), "0.250000   ");
        assert_eq!(cell(4096.4, " "), "4096       ");
        assert_eq!(cell(-1.0, " "), "   -       ");
        assert_eq!([8, 1 << 20, 3 << 29, 16 << 30].map(readable), ["8 bytes", "1 MiB", "1.50 GiB", "16 GiB"]);
    }
}
