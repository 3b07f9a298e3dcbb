//! Logs in fio's columns, written while the jobs run.
//!
//! Workers hand over what they completed ([`log_channel`]); one thread adds up what is to be averaged and
//! writes lines. It holds a few sums a worker and a file's buffer, however long the run is, and writes at least
//! ten times a second, so that a run that is killed leaves its logs up to then.
//!
//! A line is `time in ms, value, direction (0 read, 1 write, 2 trim), bytes, priority`, with the offset before
//! the priority if it was asked for. The priority is 1 if its class is real time and 0 if not, or (`log_prio`) the
//! kernel's number; a span of averages has I/Os of all priorities, and 0. Latencies are nanoseconds, bandwidth KiB a second. Averages stand at the
//! ends of spans of equal length from the beginning on; a span without I/O is a line with 0 in the logs of
//! bandwidth and IOPS, and no line in those of latencies. What does not fill a span at the end has a line
//! in the logs of latencies only, with the time of its last I/O.
//!
//! Cannot see: sync calls, which fio does not log either, and I/Os of the ramp.
//!
//! Source: logs of fio 3.33 and 3.42.

use crate::packed::{Packer, Priority, Sample};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::SystemTime;
use trueio_engine::{LogChunk, LogDoor, LoggedIo, log_channel};
use trueio_model::{IoPriority, JobPlan, LogPlan, LogWindow, OpKind, OpMix};

/// Columns of a line of histograms before any are joined: fio's buckets.
const HISTOGRAM_COLUMNS: usize = 1856;

/// A log that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the log `{path}` cannot be written")]
pub struct LogError {
    path: String,
    #[source]
    source: io::Error,
}

impl LogError {
    pub(crate) fn new(path: String, source: io::Error) -> Self {
        Self { path, source }
    }
}

/// The logs of one phase.
#[derive(Debug)]
pub(crate) struct Logs {
    door: LogDoor,
    /// When the workers began, in milliseconds since 1970.
    began_unix_ms: Arc<AtomicU64>,
    writer: JoinHandle<Result<(), LogError>>,
}

impl Logs {
    /// Makes the files of the phase's jobs; `None` if no job wants any. `first` is the number of the phase's
    /// first worker among all of the run, from 1.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub(crate) fn start(jobs: &[JobPlan], first: u32) -> Result<Option<Self>, LogError> {
        if jobs.iter().all(|job| job.output.logs.is_empty()) {
            return Ok(None);
        }
        let mut workers = Vec::new();
        let mut number = first;
        for job in jobs {
            let mut shared: Option<usize> = None;
            for _ in 0..job.workers {
                let logs = &job.output.logs;
                // Sums are each worker's own; only the files may be shared.
                let files = match shared {
                    Some(with) => Files::SharedWith(with),
                    None => Files::Own(Box::new(Opened::new(logs, number, jobs)?)),
                };
                if logs.is_shared && shared.is_none() {
                    shared = Some(workers.len());
                }
                workers.push(WorkerLogs { files, sums: Sums::new(job) });
                number += 1;
            }
        }
        let began_unix_ms = Arc::new(AtomicU64::new(0));
        let (door, chunks) = log_channel();
        let began = began_unix_ms.clone();
        let writer = std::thread::Builder::new()
            .name("logs".to_owned())
            .spawn(move || write_all(workers, &chunks, &began))
            .map_err(|source| LogError { path: "of the phase".to_owned(), source })?;
        Ok(Some(Self { door, began_unix_ms, writer }))
    }

    /// The door of a worker of the phase, counted from 0.
    pub(crate) fn door(&self, worker: u32) -> LogDoor {
        self.door.of_worker(worker)
    }

    /// The workers begin now.
    pub(crate) fn begin(&self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.began_unix_ms.store(since.as_millis() as u64, Relaxed);
    }

    /// All workers have ended: writes what is left.
    ///
    /// # Errors
    /// The first log that could not be written.
    pub(crate) fn finish(self) -> Result<(), LogError> {
        drop(self.door);
        self.writer.join().unwrap_or(Ok(()))
    }
}

/// One worker's.
struct WorkerLogs {
    files: Files,
    sums: Sums,
}

/// Where a worker's lines go.
enum Files {
    Own(Box<Opened>),
    /// The files of this worker of the phase.
    SharedWith(usize),
}

/// The kinds of logs, in the order of [`Opened::files`].
#[derive(Clone, Copy)]
enum Kind {
    Bw,
    Iops,
    Slat,
    Clat,
    Lat,
    Histogram,
}

/// A worker's files; those that nobody asked for are not there.
struct Opened {
    files: [Option<LogFile>; 6],
}

struct LogFile {
    path: String,
    out: Out,
}

enum Out {
    Text(BufWriter<File>),
    Packed(Packer),
}

impl Opened {
    fn new(logs: &LogPlan, number: u32, jobs: &[JobPlan]) -> Result<Self, LogError> {
        let open = |prefix: &Option<String>, word: &str| -> Result<Option<LogFile>, LogError> {
            let Some(prefix) = prefix else { return Ok(None) };
            let number = if logs.is_shared { String::new() } else { format!(".{number}") };
            // Histograms stay text: fio stores none.
            let is_packed = logs.is_compressed && word != "clat_hist";
            let path = format!("{prefix}_{word}{number}.log{}", if is_packed { ".fz" } else { "" });
            if jobs.iter().flat_map(|job| &job.files).any(|file| file.path == path) {
                let source = io::Error::new(io::ErrorKind::InvalidInput, "a job uses a file of that name");
                return Err(LogError { path, source });
            }
            match File::create(&path) {
                Ok(file) if is_packed => Ok(Some(LogFile { path, out: Out::Packed(Packer::new(file)) })),
                Ok(file) => Ok(Some(LogFile { path, out: Out::Text(BufWriter::new(file)) })),
                Err(source) => Err(LogError { path, source }),
            }
        };
        Ok(Self {
            files: [
                open(&logs.bw, "bw")?,
                open(&logs.iops, "iops")?,
                open(&logs.lat, "slat")?,
                open(&logs.lat, "clat")?,
                open(&logs.lat, "lat")?,
                open(&logs.hist, "clat_hist")?,
            ],
        })
    }

    fn sample(&mut self, kind: Kind, sample: &Sample) -> Result<(), LogError> {
        let Some(file) = &mut self.files[kind as usize] else { return Ok(()) };
        let result = match &mut file.out {
            Out::Text(out) => sample.line(out),
            Out::Packed(packer) => packer.push(sample),
        };
        result.map_err(|source| LogError { path: file.path.clone(), source })
    }

    fn histogram(&mut self, line: std::fmt::Arguments<'_>) -> Result<(), LogError> {
        let Some(file) = &mut self.files[Kind::Histogram as usize] else { return Ok(()) };
        let Out::Text(out) = &mut file.out else { return Ok(()) };
        writeln!(out, "{line}").map_err(|source| LogError { path: file.path.clone(), source })
    }

    fn has(&self, kind: Kind) -> bool {
        self.files[kind as usize].is_some()
    }

    /// Writes what is there. What is compressed is written in pieces of some size, and the rest at the end.
    fn flush(&mut self, is_end: bool) -> Result<(), LogError> {
        for file in self.files.iter_mut().flatten() {
            let result = match &mut file.out {
                Out::Text(out) => out.flush(),
                Out::Packed(packer) if is_end => packer.end_stream(),
                Out::Packed(_) => Ok(()),
            };
            result.map_err(|source| LogError { path: file.path.clone(), source })?;
        }
        Ok(())
    }
}

/// What a span has had of one direction.
#[derive(Default, Clone, Copy)]
struct Sum {
    count: u64,
    bytes: u64,
    /// slat, clat, lat: sum and maximum. Engines that block have no slat.
    latencies: [Option<(u128, u64)>; 3],
}

/// A worker's sums of the present span, and what its lines look like.
struct Sums {
    logs: LogPlan,
    /// From the workers' beginning to the measured part, in milliseconds.
    delay_ms: u64,
    /// Which directions the job has: number and largest block.
    directions: Vec<(usize, u64)>,
    span: u64,
    of_span: [Sum; 3],
    histogram_span: u64,
    histograms: [Option<Box<[u64; HISTOGRAM_COLUMNS]>>; 3],
}

fn direction(op: OpKind) -> Option<usize> {
    match op {
        OpKind::Read => Some(0),
        OpKind::Write => Some(1),
        OpKind::Trim => Some(2),
        OpKind::Sync => None,
    }
}

/// The span in which something ended: what ends where a span does belongs to it.
fn span_of(end_ns: u64, span_ns: u64) -> u64 {
    end_ns.saturating_sub(1) / span_ns
}

/// fio's bucket of a latency.
fn column(ns: u64) -> usize {
    if ns < 128 {
        return ns as usize;
    }
    let shift = ns.ilog2() - 6;
    (((shift as usize + 1) << 6) + (ns >> shift & 63) as usize).min(HISTOGRAM_COLUMNS - 1)
}

impl Sums {
    fn new(job: &JobPlan) -> Self {
        let pattern = &job.pattern;
        let directions = match pattern.mix {
            OpMix::Only(OpKind::Read) => vec![(0, pattern.read_sizes.max_bytes())],
            OpMix::Only(OpKind::Write) => vec![(1, pattern.write_sizes.max_bytes())],
            OpMix::Only(OpKind::Trim | OpKind::Sync) => vec![(2, pattern.trim_sizes.max_bytes())],
            OpMix::ReadWrite { .. } => vec![(0, pattern.read_sizes.max_bytes()), (1, pattern.write_sizes.max_bytes())],
        };
        Self {
            logs: job.output.logs.clone(),
            delay_ms: (job.limits.ramp_ns + job.limits.start_delay_ns) / 1_000_000,
            directions,
            span: 0,
            of_span: Default::default(),
            histogram_span: 0,
            histograms: [None, None, None],
        }
    }

    fn add(&mut self, io: &LoggedIo, out: &mut Opened, base_ms: u64) -> Result<(), LogError> {
        let Some(direction) = direction(io.op) else { return Ok(()) };
        if self.logs.hist_ns > 0 && out.has(Kind::Histogram) {
            let span = span_of(io.end_ns, self.logs.hist_ns);
            if span > self.histogram_span {
                self.end_histograms(out, base_ms)?;
                self.histogram_span = span;
            }
            let counts = self.histograms[direction].get_or_insert_with(|| Box::new([0; HISTOGRAM_COLUMNS]));
            counts[column(io.completion_ns)] += 1;
        }
        if self.logs.average_ns == 0 {
            return self.one(io, direction, out, base_ms);
        }
        let span = span_of(io.end_ns, self.logs.average_ns);
        while self.span < span {
            self.end_span(out, base_ms, None)?;
        }
        let sum = &mut self.of_span[direction];
        sum.count += 1;
        sum.bytes += io.bytes;
        let latencies = [io.submission_ns, Some(io.completion_ns), Some(io.total_ns)];
        for (of, ns) in sum.latencies.iter_mut().zip(latencies) {
            let Some(ns) = ns else { continue };
            let (total, max) = of.unwrap_or_default();
            *of = Some((total + u128::from(ns), max.max(ns)));
        }
        Ok(())
    }

    /// A line of its own.
    fn one(&self, io: &LoggedIo, direction: usize, out: &mut Opened, base_ms: u64) -> Result<(), LogError> {
        let ms = base_ms + io.end_ns / 1_000_000;
        let offset = self.logs.has_offset.then_some(io.offset);
        let priority = match self.logs.has_priority {
            true => Priority::Whole(io.priority.value()),
            false => Priority::IsRealTime(io.priority.class == IoPriority::REAL_TIME),
        };
        let bandwidth = u128::from(io.bytes) * 1_000_000_000 / 1024 / u128::from(io.total_ns.max(1));
        let values = [
            (Kind::Bw, Some(bandwidth)),
            (Kind::Iops, Some(1)),
            (Kind::Slat, io.submission_ns.map(u128::from)),
            (Kind::Clat, Some(u128::from(io.completion_ns))),
            (Kind::Lat, Some(u128::from(io.total_ns))),
        ];
        for (kind, value) in values {
            let Some(value) = value else { continue };
            let value = u64::try_from(value).unwrap_or(u64::MAX);
            let direction = direction as u32;
            out.sample(kind, &Sample { ms, value, second: None, direction, bytes: io.bytes, offset, priority })?;
        }
        Ok(())
    }

    /// The lines of a span; of one that is not whole with its last I/O's time.
    fn end_span(&mut self, out: &mut Opened, base_ms: u64, last_ns: Option<u64>) -> Result<(), LogError> {
        self.span += 1;
        let average_ns = self.logs.average_ns;
        let end_ns = last_ns.unwrap_or_else(|| self.span.saturating_mul(average_ns));
        let ms = base_ms + end_ns / 1_000_000;
        let offset = self.logs.has_offset.then_some(0);
        // A span has I/Os of all priorities.
        let priority = if self.logs.has_priority { Priority::Whole(0) } else { Priority::IsRealTime(false) };
        let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        for (direction, _) in &self.directions {
            let sum = std::mem::take(&mut self.of_span[*direction]);
            let sample = |value: u128, second: Option<u64>| {
                let direction = *direction as u32;
                Sample { ms, value: whole(value), second, direction, bytes: 0, offset, priority }
            };
            if last_ns.is_none() {
                let a_second = |count: u64| u128::from(count) * 1_000_000_000 / u128::from(average_ns);
                out.sample(Kind::Bw, &sample(a_second(sum.bytes) / 1024, None))?;
                out.sample(Kind::Iops, &sample(a_second(sum.count), None))?;
            }
            for (kind, latencies) in [Kind::Slat, Kind::Clat, Kind::Lat].into_iter().zip(sum.latencies) {
                let Some((total, max)) = latencies else { continue };
                let mean = total / u128::from(sum.count);
                out.sample(
                    kind,
                    &match self.logs.window {
                        LogWindow::Mean => sample(mean, None),
                        LogWindow::Max => sample(u128::from(max), None),
                        LogWindow::Both => sample(mean, Some(max)),
                    },
                )?;
            }
        }
        Ok(())
    }

    fn end_histograms(&mut self, out: &mut Opened, base_ms: u64) -> Result<(), LogError> {
        let end_ns = u128::from(self.histogram_span + 1) * u128::from(self.logs.hist_ns);
        let ms = base_ms + (end_ns / 1_000_000) as u64;
        for (direction, block_bytes) in &self.directions {
            let Some(counts) = &mut self.histograms[*direction] else { continue };
            let joined: Vec<String> = counts
                .chunks(1 << self.logs.hist_coarseness)
                .map(|counts| counts.iter().sum::<u64>().to_string())
                .collect();
            out.histogram(format_args!("{ms}, {direction}, {block_bytes}, {}", joined.join(", ")))?;
            counts.fill(0);
        }
        Ok(())
    }

    /// What is left at the end; the last span counts as whole if nothing but its last hundredth is missing.
    fn end(&mut self, last_ns: u64, out: &mut Opened, base_ms: u64) -> Result<(), LogError> {
        if self.logs.average_ns > 0 {
            let end_ns = u128::from(self.span + 1) * u128::from(self.logs.average_ns);
            let is_whole = u128::from(last_ns) + u128::from(self.logs.average_ns / 100) >= end_ns;
            self.end_span(out, base_ms, (!is_whole).then_some(last_ns))?;
        }
        if self.logs.hist_ns > 0 && out.has(Kind::Histogram) && self.histograms.iter().any(Option::is_some) {
            self.end_histograms(out, base_ms)?;
        }
        Ok(())
    }
}

/// Writes what comes until every worker has ended. After a failure it goes on taking, so that nobody waits.
fn write_all(
    mut workers: Vec<WorkerLogs>,
    chunks: &Receiver<LogChunk>,
    began_unix_ms: &AtomicU64,
) -> Result<(), LogError> {
    let mut result = Ok(());
    let mut last_ns = vec![None; workers.len()];
    for chunk in chunks {
        let worker = chunk.worker as usize;
        if result.is_ok() && worker < workers.len() {
            last_ns[worker] = chunk.ios.last().map(|io| io.end_ns);
            let base_ms = base_of(&workers[worker].sums, began_unix_ms);
            result = with_files(&mut workers, worker, |sums, out| {
                chunk.ios.iter().try_for_each(|io| sums.add(io, out, base_ms))?;
                out.flush(false)
            });
        }
        chunk.give_back();
    }
    for (worker, last_ns) in last_ns.into_iter().enumerate() {
        let Some(last_ns) = last_ns.filter(|_| result.is_ok()) else { continue };
        let base_ms = base_of(&workers[worker].sums, began_unix_ms);
        result = with_files(&mut workers, worker, |sums, out| {
            sums.end(last_ns, out, base_ms)?;
            out.flush(true)
        });
    }
    result
}

/// What is added to times.
fn base_of(sums: &Sums, began_unix_ms: &AtomicU64) -> u64 {
    if sums.logs.has_unix_time { began_unix_ms.load(Relaxed) + sums.delay_ms } else { 0 }
}

/// A worker's sums and the files its lines go to.
fn with_files(
    workers: &mut [WorkerLogs],
    worker: usize,
    body: impl FnOnce(&mut Sums, &mut Opened) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let with = match workers[worker].files {
        Files::Own(_) => worker,
        Files::SharedWith(with) => with,
    };
    // A worker shares the files of an earlier one.
    let (before, from) = workers.split_at_mut(worker);
    let WorkerLogs { files, sums } = &mut from[0];
    let files = if with == worker { files } else { &mut before[with].files };
    match files {
        Files::Own(out) => body(sums, out),
        Files::SharedWith(_) => unreachable!("files are shared with a worker that has its own"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_fios_buckets() {
        assert_eq!((column(0), column(127), column(128), column(130)), (0, 127, 128, 129));
        assert_eq!((column(255), column(256), column(260)), (191, 192, 193));
        // The last one is open.
        assert_eq!((column((1 << 34) - 1), column(1 << 34), column(u64::MAX)), (1855, 1855, 1855));
        // Each column's values have one middle in the JSON too; see report's bucket_middle.
        assert_eq!(column(23_457_999), column(23_461_888));
    }
}
