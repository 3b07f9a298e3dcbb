//! A record in the format of IOR 4.0: the table of results, `Max Write`, and the summary of all tests.
//!
//! Times of opening and closing are `-`: they are not part of the measured time. A figure is preceded by a warning for each
//! check that objects to it.
//!
//! Source: IOR 4.0, `ior-output.c`.

use super::Ior;
use crate::figures::{self, Figures, Spread};
use std::fmt::Write;
use trueio_model::RunRecord;

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
        rate(self.figures.byte_count as f64, self.figures.elapsed_s)
    }

    fn ios_per_s(self) -> f64 {
        rate(self.figures.io_count as f64, self.figures.elapsed_s)
    }
}

fn rate(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

impl Ior {
    /// Prints a record of the jobs of this command line.
    pub fn print(&self, record: &RunRecord) -> String {
        let phases: Vec<Phase> = [("write", self.writes), ("read", self.reads)]
            .into_iter()
            .filter(|(_, is_there)| *is_there)
            .map(|(name, _)| Phase { name, runs: self.runs(record, name) })
            .collect();
        let mut out = self.header(record);
        out.push_str(&figures::warnings(record));
        self.results(&mut out, &phases);
        for phase in &phases {
            let most = phase.runs.iter().map(|run| run.bytes_per_s()).fold(0.0, f64::max);
            let name = if phase.name == "write" { "Max Write: " } else { "Max Read:  " };
            let _ = writeln!(out, "{name}{:.2} MiB/sec ({:.2} MB/sec)", most / MIB, most / MB);
        }
        self.summary(&mut out, record, &phases);
        out
    }

    fn runs(&self, record: &RunRecord, phase: &str) -> Vec<Measured> {
        let of = |repetition| {
            let figures = figures::of(record, &self.name(phase, repetition))?;
            if phase != "write" || !self.wears_out {
                return Some(Measured { figures, before: None });
            }
            let rest = figures::of(record, &self.name("write-rest", repetition)).unwrap_or_default();
            let sum = Figures {
                io_count: figures.io_count + rest.io_count,
                byte_count: figures.byte_count + rest.byte_count,
                elapsed_s: figures.elapsed_s + rest.elapsed_s,
                io_s_min: figures.io_s_min,
            };
            Some(Measured { figures: sum, before: Some(figures) })
        };
        (0..self.repetitions).filter_map(of).collect()
    }

    fn header(&self, record: &RunRecord) -> String {
        let (tasks, nodes, on_first) = figures::tasks(record);
        let mut out = format!("trueio {}: results in the format of IOR 4.0\n", record.tool.version);
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(out, "{key:<20}: {value}");
        };
        line("Began", &record.started_at);
        line("Command line", &record.command.join(" "));
        out.push_str("\nOptions: \n");
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(out, "{key:<20}: {value}");
        };
        line("api", "POSIX");
        line("test filename", &self.file);
        line("access", if self.file_per_task { "file-per-process" } else { "single-shared-file" });
        line("type", "independent");
        line("segments", &self.segments.to_string());
        line("ordering in a file", if self.random { "random" } else { "sequential" });
        match self.reorder {
            Some(distance) => {
                line("ordering inter file", "constant task offset");
                line("task offset", &distance.to_string());
            }
            None => line("ordering inter file", "no tasks offsets"),
        }
        line("nodes", &nodes.to_string());
        line("tasks", &tasks.to_string());
        line("clients per node", &on_first.to_string());
        line("repetitions", &self.repetitions.to_string());
        line("xfersize", &readable(self.transfer_bytes));
        line("blocksize", &readable(self.block_bytes));
        let aggregate = self.block_bytes.saturating_mul(self.segments).saturating_mul(tasks as u64);
        line("aggregate filesize", &readable(aggregate));
        if self.deadline_s > 0 {
            line("stonewallingTime", &self.deadline_s.to_string());
            line("stoneWallingWearOut", if self.wears_out { "1" } else { "0" });
        }
        out.push_str("\nResults: \n");
        out
    }

    /// The table with a line for each phase of each repetition.
    fn results(&self, out: &mut String, phases: &[Phase]) {
        out.push_str(
            "\naccess    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   \
             iter\n------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   \
             --------   ----\n",
        );
        for repetition in 0..self.repetitions as usize {
            for phase in phases {
                let Some(run) = phase.runs.get(repetition) else { continue };
                let seconds = run.figures.elapsed_s;
                let _ = write!(out, "{:<10}", phase.name);
                let kib = |bytes: u64| bytes as f64 / 1024.0;
                for (value, end) in [
                    (run.bytes_per_s() / MIB, " "),
                    (run.ios_per_s(), " "),
                    (run.figures.io_s_min, "  "),
                    (kib(self.block_bytes), " "),
                    (kib(self.transfer_bytes), " "),
                    (-1.0, " "),
                    (seconds, " "),
                    (-1.0, " "),
                    (seconds, " "),
                ] {
                    out.push_str(&cell(value, end));
                }
                let _ = writeln!(out, "{repetition:<4}");
            }
        }
    }

    fn summary(&self, out: &mut String, record: &RunRecord, phases: &[Phase]) {
        let (tasks, _, on_first) = figures::tasks(record);
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
            let values = |of: fn(Measured) -> f64| phase.runs.iter().map(|run| of(*run)).collect::<Vec<f64>>();
            let count = phase.runs.len() as f64;
            let _ = write!(out, "{:<9} ", phase.name);
            for (values, unit) in [(values(Measured::bytes_per_s), MIB), (values(Measured::ios_per_s), 1.0)] {
                let spread = Spread::of(&values);
                // Of the whole population, as IOR computes it.
                let deviation = (spread.squares / count).sqrt();
                for value in [spread.max, spread.min, spread.mean, deviation] {
                    let _ = write!(out, "{:>10.2} ", value / unit);
                }
            }
            let _ = write!(out, "{:>10.5} ", Spread::of(&values(|run| run.figures.elapsed_s)).mean);
            let before: Vec<Figures> = phase.runs.iter().filter_map(|run| run.before).collect();
            if before.is_empty() {
                let _ = write!(out, "{:>10} {:>13} ", "NA", "NA");
            } else {
                let seconds: f64 = before.iter().map(|figures| figures.elapsed_s).sum();
                // The mean of the tasks, as IOR prints it.
                let bytes = before.iter().map(|figures| figures.byte_count).sum::<u64>() as f64 / tasks as f64;
                let _ = write!(out, "{:>10.2} {:>13.2} ", seconds / count, rate(bytes, seconds) / MIB);
            }
            let _ = write!(out, "{:>5} {tasks:>6} {on_first:>3} {:>4} ", 0, self.repetitions);
            let _ = write!(out, "{:>3} {:>5} ", u8::from(self.file_per_task), u8::from(self.reorder.is_some()));
            let _ = write!(out, "{:>8} {:>9} {:>4} ", self.reorder.unwrap_or(1), 0, 0);
            let _ = write!(out, "{:>6} {:>8} {:>8} ", self.segments, self.block_bytes, self.transfer_bytes);
            let _ = writeln!(out, "{:>9.1} POSIX {:>6}", phase.runs[0].figures.byte_count as f64 / MIB, self.reference);
        }
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
