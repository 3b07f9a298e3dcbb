//! The maximum duration of a study, from its definition alone.
//!
//! Each sample is taken to move its bytes at the speed of a disk, one I/O after the other, whatever its depth; to wait
//! for each flush that it requests; and to end at its time limit. So on a disk of that speed the real study is
//! faster. Not included: other load of the machine, and the cost of a debug build.

use crate::rows::{Row, Variables, rows};
use crate::study::{DefinitionError, Study};
use std::time::Duration;
use trueio_model::units::{parse_bytes, parse_duration_ns};

/// The assumed speed of a disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskSpeed {
    /// Bytes a second, written or read in order.
    pub bytes_per_s: f64,
    /// One I/O by itself, however small, in seconds.
    pub io_s: f64,
    /// One flush, in seconds.
    pub flush_s: f64,
}

/// A disk of modest speed: that of an old or cheap laptop. `--quick` is to be quick even there.
pub const MODEST_DISK: DiskSpeed = DiskSpeed { bytes_per_s: 100e6, io_s: 200e-6, flush_s: 4e-3 };

/// The time of a sample in addition to its I/O: opening, the idle baseline, judging; in seconds.
const SAMPLE_S: f64 = 0.1;
/// Starting and ending strace, in seconds.
const STRACE_S: f64 = 0.3;
/// Moving a disk to another transport, in seconds; at most twice a round.
const SWITCH_S: f64 = 3.0;

impl DiskSpeed {
    /// In words: `100 MB/s, 0.2 ms an I/O, 4 ms a flush`.
    pub fn words(&self) -> String {
        let DiskSpeed { bytes_per_s, io_s, flush_s } = *self;
        format!("{} MB/s, {} ms an I/O, {} ms a flush", bytes_per_s / 1e6, io_s * 1e3, flush_s * 1e3)
    }
}

impl Study {
    /// The most that these modes take on such a disk.
    ///
    /// # Errors
    /// A row's options are not acceptable.
    pub fn longest(&self, modes: &[&str], is_quick: bool, disk: DiskSpeed) -> Result<Duration, DefinitionError> {
        let mut seconds = 0.0;
        for name in modes {
            let variables = Variables::from([("server".to_owned(), "http://127.0.0.1:1".to_owned())]);
            let rows = rows(self, name, is_quick, &variables, &[])
                .map_err(|message| DefinitionError { place: self.name.clone(), message })?;
            let mode = &self.definition.mode[*name];
            let samples = f64::from(self.samples(mode, is_quick));
            let fill = rows.iter().map(|row| fill_s(row, disk)).fold(0.0, f64::max);
            seconds += fill * if mode.fresh_files { samples * rows.len() as f64 } else { 1.0 };
            seconds += samples * rows.iter().map(|row| sample_s(row, disk)).sum::<f64>();
            if rows.iter().any(|row| !row.needs.is_empty()) {
                seconds += samples * 2.0 * SWITCH_S;
            }
        }
        Ok(Duration::from_secs_f64(seconds))
    }
}

fn option_text<'a>(row: &'a Row, option: &str) -> Option<&'a str> {
    row.job.options.get(option).map(|value| value.text.as_str()).filter(|text| !["false", "none", "0"].contains(text))
}

fn bytes(row: &Row, option: &str) -> Option<f64> {
    option_text(row, option).and_then(|text| parse_bytes(text).ok()).map(|bytes| bytes as f64)
}

fn seconds(row: &Row, option: &str) -> Option<f64> {
    option_text(row, option).and_then(|text| parse_duration_ns(text).ok()).map(|ns| ns as f64 / 1e9)
}

/// Writing the file before the first row.
fn fill_s(row: &Row, disk: DiskSpeed) -> f64 {
    // A transport switch needs a disk, on which no files are created.
    let is_filled =
        row.needs.is_empty() && (option_text(row, "overwrite").is_some() || !row.job.options.contains_key("fallocate"));
    let size = bytes(row, "size").unwrap_or(0.0);
    if is_filled { size / disk.bytes_per_s + disk.flush_s } else { 0.0 }
}

/// One sample of a row.
fn sample_s(row: &Row, disk: DiskSpeed) -> f64 {
    let block = bytes(row, "bs").unwrap_or(4096.0).max(1.0);
    let size = bytes(row, "size").unwrap_or(0.0);
    let count = bytes(row, "number_ios").unwrap_or((size / block).ceil());
    let reads_only = trueio_job::only_reads(&row.job);
    let each = disk.io_s.max(block / disk.bytes_per_s);
    let mut flushes = 0.0;
    if !reads_only {
        for option in ["fsync", "fdatasync"] {
            flushes += bytes(row, option).map_or(0.0, |every| count / every);
        }
        flushes += if option_text(row, "sync").is_some() { count } else { 0.0 };
        let at_end = ["end_fsync", "end_fdatasync", "fsync_on_close"];
        flushes += at_end.iter().filter(|option| option_text(row, option).is_some()).count() as f64;
    }
    let mut measured = count * each + flushes * disk.flush_s;
    if let Some(limit) = seconds(row, "runtime") {
        measured = if option_text(row, "time_based").is_some() { limit } else { measured.min(limit) };
        measured += seconds(row, "ramp_time").unwrap_or(0.0);
    }
    // Before and after the measured time: reading into the cache, flushing, comparing.
    let moved = count * block / disk.bytes_per_s;
    let mut overhead = SAMPLE_S + if reads_only { 0.0 } else { disk.flush_s };
    overhead += if option_text(row, "pre_read").is_some() { size / disk.bytes_per_s } else { 0.0 };
    overhead += if option_text(row, "verify").is_some() { moved } else { 0.0 };
    overhead += if option_text(row, "strace").is_some() { STRACE_S } else { 0.0 };
    measured + overhead
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EMBEDDED, embedded};

    /// Two rows of 100 MB: one written in order, one flushed after each of its 100 writes.
    const TWO: &str = r#"
        format = 1
        title = "t"
        question = "q"
        source = { title = "s", by = "b", date = "d", setting = "m" }
        [published]
        keys = { way = "way" }
        figure = [{ column = "s", metric = "elapsed", unit = "s" }]
        [set]
        rw = "write"
        bs = "1MB"
        size = "100MB"
        fallocate = "none"
        [[axis]]
        key = "way"
        value = [{ name = "plain" }, { name = "flushed", set = { fsync = 1 } }]
        [mode.faithful]
        title = "t"
        place = 1
        samples = 2
        [mode.improved]
        title = "t"
        place = 2
        samples = 3
        set = { overwrite = true, runtime = "500ms", verify = "xxhash" }
        [quick]
        set = { size = "10MB" }
        samples = 1
    "#;

    fn longest(modes: &[&str], is_quick: bool) -> f64 {
        let study = Study::read("t", "t", TWO, "way,s\nplain,1\n").expect("a study");
        let disk = DiskSpeed { bytes_per_s: 100e6, io_s: 1e-3, flush_s: 10e-3 };
        study.longest(modes, is_quick, disk).expect("its rows").as_secs_f64()
    }

    #[test]
    fn bytes_flushes_limits_and_samples_add_up() {
        let overhead = SAMPLE_S + 0.01;
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
        // 1 s each, and 100 flushes of 10 ms; twice.
        near(longest(&["faithful"], false), 2.0 * (1.0 + 2.0 + 2.0 * overhead));
        // Cut at half a second; filled once, compared after each sample.
        near(longest(&["improved"], false), 1.01 + 3.0 * 2.0 * (0.5 + 1.0 + overhead));
        // A tenth of the size, one sample.
        near(longest(&["faithful"], true), 0.1 + 0.2 + 2.0 * overhead);
        near(
            longest(&["faithful", "improved"], true),
            0.1 + 0.2 + 2.0 * overhead + 0.11 + 0.1 + 0.2 + 2.0 * (0.1 + overhead),
        );
    }

    /// The promise of `--quick`, for each study and each mode that is run by default.
    #[test]
    fn every_study_of_the_program_is_quick_on_a_modest_disk() {
        for one in EMBEDDED {
            let study = embedded(one.name).expect("a study");
            let modes = study.usual_modes();
            let took = study.longest(&modes, true, MODEST_DISK).expect("its rows").as_secs_f64();
            println!("{}: {took:.0} s", one.name);
            assert!(took < 120.0, "{}: {took:.0} s on a disk of {}", one.name, MODEST_DISK.words());
            let whole = study.longest(&modes, false, MODEST_DISK).expect("its rows").as_secs_f64();
            assert!(whole > 2.0 * took, "{}: quick takes {took:.0} s, the whole {whole:.0} s", one.name);
        }
    }
}
