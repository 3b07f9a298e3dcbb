//! Logs in fio's columns, written while the jobs run.
//!
//! Workers send the I/Os that they complete through [`log_channel`]; one thread computes averages and writes lines. It
//! keeps a few sums per worker and a buffer per file, however long the run is, and writes at least ten times a second,
//! so a run that is killed leaves its logs up to then.
//!
//! A line is `time in ms, value, direction (0 read, 1 write, 2 trim), bytes, priority`. With `log_offset` the offset
//! comes before the priority. With `log_issue_time` the time of submission comes last, in nanoseconds from the
//! beginning of the times; as in fio it is 0 but in the logs of slat and clat. The priority is 1 for the real-time class and 0 for others, or (`log_prio`) the kernel's
//! number; a line of averages has 0, because its I/Os have several priorities. Latencies are in nanoseconds, bandwidth in
//! KiB a second. Averages are at the ends of spans of equal length from the beginning; a span without I/O is a line with
//! 0 in the logs of bandwidth and IOPS, and no line in the logs of latencies. An incomplete span at the end has a line
//! only in the logs of latencies, with the time of its last I/O.
//!
//! Jobs whose logs are not per job (`per_job_logs=0`) write to one file in all phases, which replaces the log of an
//! earlier run. fio appends to it from run to run, so the beginning of a run cannot be found.
//!
//! Not logged: sync calls, as in fio, and I/Os of the ramp.
//!
//! Source: logs of fio 3.33 and 3.42.

use super::lines::{Around, Lines, Priority, Sample};
use super::packed::Packer;
use super::thread::join;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;
use trueio_engine::{LogChannel, LogChunk, LoggedIo, log_channel, operations};
use trueio_job::Content;
use trueio_model::{FileId, IoPriority, JobPlan, LogKind, LogPlan, LogWindow, OpKind, OpMix, OutputPlan};
use trueio_run::{Before, GrowingFile, LogError, OutputFile};

/// Columns of a line of histograms before any are joined: fio's buckets.
const HISTOGRAM_COLUMNS: usize = 1856;

/// The files of a run that several jobs share, by device and inode: later phases append to them.
#[derive(Debug, Default)]
pub(super) struct SharedFiles(Mutex<BTreeSet<FileId>>);

impl SharedFiles {
    /// Returns a file to append to, with its identity. What an earlier run left is removed when the file is seen
    /// for the first time in this run.
    fn begin(&self, file: OutputFile, content: Content) -> io::Result<(File, FileId)> {
        let identity = file.identity()?;
        let is_first = !self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&identity);
        let file = if is_first { file.emptied(content)? } else { file.appended() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(identity);
        Ok((file, identity))
    }
}

/// The logs of one phase.
#[derive(Debug)]
pub(super) struct Logs {
    channel: LogChannel,
    /// Time when the workers began, in milliseconds since 1970.
    began_unix_ms: Arc<AtomicU64>,
    writer: JoinHandle<Result<(), LogError>>,
}

impl Logs {
    /// Creates the files of the phase's jobs; `None` if no job has logs. `first` is the number of the phase's first
    /// worker in the run, from 1; `shared` holds the files that several jobs write to.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub(super) fn start(jobs: &[JobPlan], first: u32, shared: &SharedFiles) -> Result<Option<Self>, LogError> {
        if jobs.iter().all(|job| job.output.logs.is_empty()) {
            return Ok(None);
        }
        let mut files = LogFiles::default();
        let mut workers = Vec::new();
        let mut number = first;
        for job in jobs {
            for _ in 0..job.workers {
                // Sums are each worker's own; only the files may be shared.
                let of_worker = files.of(&job.output, number, shared)?;
                workers.push(WorkerLogs { files: of_worker, sums: Sums::new(job) });
                number += 1;
            }
        }
        let files = files.all;
        let began_unix_ms = Arc::new(AtomicU64::new(0));
        let (channel, chunks) = log_channel();
        let began = began_unix_ms.clone();
        let writer = std::thread::Builder::new()
            .name("logs".to_owned())
            .spawn(move || write_all(workers, files, &chunks, &began))
            .map_err(|source| LogError::new("of the phase".to_owned(), source))?;
        Ok(Some(Self { channel, began_unix_ms, writer }))
    }

    /// Returns the channel of a worker of the phase, counted from 0.
    pub(super) fn channel(&self, worker: u32) -> LogChannel {
        self.channel.of_worker(worker)
    }

    /// The workers begin now.
    pub(super) fn begin(&self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.began_unix_ms.store(since.as_millis() as u64, Relaxed);
    }

    /// All workers have ended: writes the rest.
    ///
    /// # Errors
    /// The first log that could not be written.
    pub(super) fn finish(self) -> Result<(), LogError> {
        drop(self.channel);
        join(self.writer)
    }
}

/// The logs of one worker.
struct WorkerLogs {
    /// Positions of its files among those of the phase, in the order of [`LogKind::ALL`]; `None`: no such log.
    files: [Option<usize>; LogKind::ALL.len()],
    sums: Sums,
}

struct LogFile {
    path: String,
    out: Out,
}

enum Out {
    Text(Box<Lines<GrowingFile>>),
    Packed(Packer<GrowingFile>),
}

impl LogFile {
    /// Checks that the path still refers to this log, and that no other program wrote to it.
    fn confirm(&mut self) -> Result<(), LogError> {
        let confirmed = match &mut self.out {
            Out::Text(lines) => lines.out_mut().confirm(),
            Out::Packed(packer) => packer.file_mut().confirm(),
        };
        confirmed.map_err(|source| LogError::new(self.path.clone(), source))
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), LogError> {
        let result = match &mut self.out {
            Out::Text(lines) => lines.write(sample),
            Out::Packed(packer) => packer.push(sample),
        };
        result.map_err(|source| LogError::new(self.path.clone(), source))
    }
}

/// The files of a phase.
#[derive(Default)]
struct LogFiles {
    all: Vec<LogFile>,
    /// The files that several workers write to.
    shared: BTreeMap<FileId, usize>,
}

impl LogFiles {
    /// Returns the files of a worker, created if needed.
    fn of(
        &mut self,
        output: &OutputPlan,
        number: u32,
        shared: &SharedFiles,
    ) -> Result<[Option<usize>; LogKind::ALL.len()], LogError> {
        let mut places = [None; LogKind::ALL.len()];
        for (place, kind) in places.iter_mut().zip(LogKind::ALL) {
            let Some(path) = output.logs.file(kind, number) else { continue };
            *place = Some(self.open(output, kind, &path, shared).map_err(|source| LogError::new(path, source))?);
        }
        Ok(places)
    }

    fn open(&mut self, output: &OutputPlan, kind: LogKind, path: &str, shared: &SharedFiles) -> io::Result<usize> {
        let logs = &output.logs;
        let place = self.all.len();
        let content = if logs.is_packed(kind) { Content::PackedLog } else { Content::Log };
        let file = OutputFile::open(path, content, Before::planned(output, Path::new(path)))?;
        let file = if logs.is_shared {
            let (file, identity) = shared.begin(file, content)?;
            let known = *self.shared.entry(identity).or_insert(place);
            if known < place {
                return Ok(known);
            }
            file
        } else {
            file.emptied(content)?
        };
        let file = GrowingFile::new(file, path)?;
        let out = match logs.is_packed(kind) {
            true => Out::Packed(Packer::new(file)),
            false => Out::Text(Box::new(Lines::new(file))),
        };
        self.all.push(LogFile { path: path.to_owned(), out });
        Ok(place)
    }
}

/// The files of a worker, opened.
struct Opened<'a> {
    places: [Option<usize>; LogKind::ALL.len()],
    all: &'a mut [LogFile],
}

impl Opened<'_> {
    fn file(&mut self, kind: LogKind) -> Option<&mut LogFile> {
        self.all.get_mut(self.places[kind as usize]?)
    }

    fn sample(&mut self, kind: LogKind, sample: &Sample) -> Result<(), LogError> {
        self.file(kind).map_or(Ok(()), |file| file.sample(sample))
    }

    fn histogram(&mut self, line: std::fmt::Arguments<'_>) -> Result<(), LogError> {
        let Some(file) = self.file(LogKind::Histogram) else { return Ok(()) };
        let Out::Text(lines) = &mut file.out else { return Ok(()) };
        lines.write_other(line).map_err(|source| LogError::new(file.path.clone(), source))
    }

    fn has(&self, kind: LogKind) -> bool {
        self.places[kind as usize].is_some()
    }

    /// Flushes text. Compressed samples are written in streams of a fixed size, and the rest at the end.
    fn flush(&mut self, is_end: bool) -> Result<(), LogError> {
        for place in self.places.into_iter().flatten() {
            let Some(file) = self.all.get_mut(place) else { continue };
            let result = match &mut file.out {
                Out::Text(lines) => lines.flush(),
                Out::Packed(packer) if is_end => packer.end_stream(),
                Out::Packed(_) => Ok(()),
            };
            result.map_err(|source| LogError::new(file.path.clone(), source))?;
        }
        Ok(())
    }
}

/// The sums of a span for one direction.
#[derive(Default, Clone, Copy)]
struct Sum {
    count: u64,
    bytes: u64,
    /// slat, clat, lat: sum and maximum. Synchronous engines have no slat.
    latencies: [Option<(u128, u64)>; 3],
}

/// The highest sum of a part of the current span, for the maxima of bandwidth and IOPS.
#[derive(Default, Clone, Copy)]
struct Peak {
    part: u64,
    sum: u64,
    most: u64,
}

impl Peak {
    fn add(&mut self, part: u64, amount: u64) {
        if part != self.part {
            (self.part, self.sum) = (part, 0);
        }
        self.sum += amount;
        self.most = self.most.max(self.sum);
    }
}

/// The logs that may have a line for each I/O.
const OF_ONE_IO: [LogKind; 5] = [LogKind::Bw, LogKind::Iops, LogKind::Slat, LogKind::Clat, LogKind::Lat];

/// A worker's sums of the current span, and the form of its lines.
struct Sums {
    logs: LogPlan,
    /// The text that the lines of one I/O share.
    around: Around,
    /// From the workers' beginning to the measured part, in milliseconds.
    delay_ms: u64,
    /// The directions of the job: number and largest block.
    directions: Vec<(usize, u64)>,
    span: u64,
    of_span: [Sum; 3],
    /// Of each direction, the peaks of bytes and of I/Os.
    peaks: [[Peak; 2]; 3],
    /// Lengths of their parts, in nanoseconds: `bwavgtime` and `iopsavgtime`, or the span if that is shorter.
    part_ns: [u64; 2],
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

/// Returns the span of a completion. A completion at the end of a span belongs to it.
fn span_of(end_ns: u64, span_ns: u64) -> u64 {
    end_ns.saturating_sub(1) / span_ns
}

/// Returns fio's bucket of a latency.
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
        let is_offline = job.verify.as_ref().is_some_and(|verify| verify.is_offline);
        let largest = |op| match op {
            OpKind::Read if !is_offline => &pattern.read_sizes,
            OpKind::Write => &pattern.write_sizes,
            // Trims and comparisons of written blocks have the size of the writes.
            _ if pattern.mix != OpMix::Only(OpKind::Trim) && job.replay.is_none() => &pattern.write_sizes,
            _ => &pattern.trim_sizes,
        };
        let mut directions: Vec<(usize, u64)> =
            operations(job).into_iter().filter_map(|op| Some((direction(op)?, largest(op).max_bytes()))).collect();
        directions.sort_unstable();
        Self {
            logs: job.output.logs.clone(),
            around: Around::default(),
            delay_ms: (job.limits.ramp_ns + job.limits.start_delay_ns) / 1_000_000,
            directions,
            span: 0,
            of_span: Default::default(),
            peaks: Default::default(),
            part_ns: [job.output.bw_average_ns, job.output.iops_average_ns]
                .map(|ns| ns.min(job.output.logs.average_ns).max(1)),
            histogram_span: 0,
            histograms: [None, None, None],
        }
    }

    fn add(&mut self, io: &LoggedIo, out: &mut Opened<'_>, base_ms: u64) -> Result<(), LogError> {
        let Some(direction) = direction(io.op) else { return Ok(()) };
        if self.logs.hist_ns > 0 && out.has(LogKind::Histogram) {
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
        for ((peak, part_ns), amount) in self.peaks[direction].iter_mut().zip(self.part_ns).zip([io.bytes, 1]) {
            peak.add(span_of(io.end_ns, part_ns), amount);
        }
        let latencies = [io.submission_ns, Some(io.completion_ns), Some(io.total_ns)];
        for (of, ns) in sum.latencies.iter_mut().zip(latencies) {
            let Some(ns) = ns else { continue };
            let (total, max) = of.unwrap_or_default();
            *of = Some((total + u128::from(ns), max.max(ns)));
        }
        Ok(())
    }

    /// Writes the lines of one I/O.
    fn one(&mut self, io: &LoggedIo, direction: usize, out: &mut Opened<'_>, base_ms: u64) -> Result<(), LogError> {
        let mut sample = Sample {
            ms: base_ms + io.end_ns / 1_000_000,
            value: 0,
            second: None,
            direction: direction as u32,
            bytes: io.bytes,
            offset: self.logs.has_offset.then_some(io.offset),
            priority: match self.logs.has_priority {
                true => Priority::Whole(io.priority.value()),
                false => Priority::IsRealTime(io.priority.class == IoPriority::REAL_TIME),
            },
            issue_ns: None,
        };
        let has_same_text = !self.logs.has_offset && !self.logs.has_issue_time;
        if has_same_text {
            self.around.set(&sample);
        }
        for kind in OF_ONE_IO {
            let Some(file) = out.file(kind) else { continue };
            sample.value = match kind {
                LogKind::Bw => {
                    let bandwidth = u128::from(io.bytes) * 1_000_000_000 / 1024 / u128::from(io.total_ns.max(1));
                    u64::try_from(bandwidth).unwrap_or(u64::MAX)
                }
                LogKind::Slat => match io.submission_ns {
                    Some(ns) => ns,
                    None => continue,
                },
                LogKind::Clat => io.completion_ns,
                LogKind::Lat => io.total_ns,
                _ => 1,
            };
            if let (Out::Text(lines), true) = (&mut file.out, has_same_text) {
                let written = lines.write_value(&self.around, sample.value);
                written.map_err(|source| LogError::new(file.path.clone(), source))?;
                continue;
            }
            if self.logs.has_issue_time {
                // As in fio, 0 in the logs that are not about one part of an I/O.
                let is_part = matches!(kind, LogKind::Slat | LogKind::Clat);
                let issued_ns = io.end_ns.saturating_sub(io.completion_ns);
                sample.issue_ns = Some(if is_part { issued_ns } else { 0 });
            }
            file.sample(&sample)?;
        }
        Ok(())
    }

    /// Writes the lines of a span; those of an incomplete span have the time of its last I/O.
    fn end_span(&mut self, out: &mut Opened<'_>, base_ms: u64, last_ns: Option<u64>) -> Result<(), LogError> {
        self.span += 1;
        let average_ns = self.logs.average_ns;
        let end_ns = last_ns.unwrap_or_else(|| self.span.saturating_mul(average_ns));
        let ms = base_ms + end_ns / 1_000_000;
        let offset = self.logs.has_offset.then_some(0);
        // A span has I/Os of all priorities.
        let priority = if self.logs.has_priority { Priority::Whole(0) } else { Priority::IsRealTime(false) };
        let issue_ns = self.logs.has_issue_time.then_some(0);
        let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        for (direction, _) in &self.directions {
            let sum = std::mem::take(&mut self.of_span[*direction]);
            let peaks = std::mem::take(&mut self.peaks[*direction]);
            let sample = |value: u128, second: Option<u64>| {
                let direction = *direction as u32;
                Sample { ms, value: whole(value), second, direction, bytes: 0, offset, priority, issue_ns }
            };
            if last_ns.is_none() {
                let a_second = |count: u64, ns: u64| u128::from(count) * 1_000_000_000 / u128::from(ns);
                let sums = [(LogKind::Bw, sum.bytes, 1024), (LogKind::Iops, sum.count, 1)];
                for (index, (kind, sum, unit)) in sums.into_iter().enumerate() {
                    let mean = a_second(sum, average_ns) / unit;
                    let most = a_second(peaks[index].most, self.part_ns[index]) / unit;
                    let sample = match self.logs.window {
                        LogWindow::Mean => sample(mean, None),
                        LogWindow::Max => sample(most, None),
                        LogWindow::Both => sample(mean, Some(whole(most))),
                    };
                    out.sample(kind, &sample)?;
                }
            }
            for (kind, latencies) in [LogKind::Slat, LogKind::Clat, LogKind::Lat].into_iter().zip(sum.latencies) {
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

    fn end_histograms(&mut self, out: &mut Opened<'_>, base_ms: u64) -> Result<(), LogError> {
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

    /// Writes the rest at the end. The last span counts as complete if only its last hundredth is missing.
    fn end(&mut self, last_ns: u64, out: &mut Opened<'_>, base_ms: u64) -> Result<(), LogError> {
        if self.logs.average_ns > 0 {
            let end_ns = u128::from(self.span + 1) * u128::from(self.logs.average_ns);
            let is_whole = u128::from(last_ns) + u128::from(self.logs.average_ns / 100) >= end_ns;
            self.end_span(out, base_ms, (!is_whole).then_some(last_ns))?;
        }
        if self.logs.hist_ns > 0 && out.has(LogKind::Histogram) && self.histograms.iter().any(Option::is_some) {
            self.end_histograms(out, base_ms)?;
        }
        Ok(())
    }
}

/// Writes logs until every worker has ended. After a failure it continues to receive, so that no worker blocks.
fn write_all(
    mut workers: Vec<WorkerLogs>,
    mut files: Vec<LogFile>,
    chunks: &Receiver<LogChunk>,
    began_unix_ms: &AtomicU64,
) -> Result<(), LogError> {
    let mut result = Ok(());
    let mut last_ns = vec![None; workers.len()];
    for chunk in chunks {
        let worker = chunk.worker as usize;
        if let (Ok(()), Some(WorkerLogs { files: places, sums })) = (&result, workers.get_mut(worker)) {
            last_ns[worker] = chunk.ios.last().map(|io| io.end_ns);
            let base_ms = base_of(sums, began_unix_ms);
            let mut out = Opened { places: *places, all: &mut files };
            let mut ios = chunk.ios.iter();
            result = ios.try_for_each(|io| sums.add(io, &mut out, base_ms)).and_then(|()| out.flush(false));
        }
        chunk.give_back();
    }
    for (WorkerLogs { files: places, sums }, last_ns) in workers.iter_mut().zip(last_ns) {
        let Some(last_ns) = last_ns.filter(|_| result.is_ok()) else { continue };
        let base_ms = base_of(sums, began_unix_ms);
        let mut out = Opened { places: *places, all: &mut files };
        result = sums.end(last_ns, &mut out, base_ms).and_then(|()| out.flush(true));
    }
    // Also of workers without an I/O.
    result.and_then(|()| files.iter_mut().try_for_each(LogFile::confirm))
}

/// Returns the offset of times, for `log_unix_epoch`.
fn base_of(sums: &Sums, began_unix_ms: &AtomicU64) -> u64 {
    if sums.logs.has_unix_time { began_unix_ms.load(Relaxed) + sums.delay_ms } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only operations of the job have lines.
    #[test]
    fn directions_are_those_of_the_jobs_operations() {
        use trueio_model::{BlockSizes, Checksum, EngineKind, TrimVerify, Verify};
        let mut plan = JobPlan::plain(EngineKind::Psync, 1 << 20);
        plan.pattern.read_sizes = BlockSizes::Fixed(1);
        plan.pattern.write_sizes = BlockSizes::Fixed(2);
        plan.pattern.trim_sizes = BlockSizes::Fixed(3);
        let of = |mix, change: &dyn Fn(&mut JobPlan)| {
            let mut plan = plan.clone();
            plan.pattern.mix = mix;
            change(&mut plan);
            Sums::new(&plan).directions
        };
        let writes = OpMix::Only(OpKind::Write);
        assert_eq!(of(OpMix::Only(OpKind::Read), &|_| {}), [(0, 1)]);
        assert_eq!(of(writes, &|plan| plan.flush.fsync_every = 1), [(1, 2)]);
        assert_eq!(of(OpMix::Only(OpKind::Trim), &|_| {}), [(2, 3)]);
        assert_eq!(of(OpMix::ReadWrite { read_percent: 50 }, &|_| {}), [(0, 1), (1, 2)]);
        assert_eq!(of(writes, &|plan| plan.pattern.steps.trims_first = true), [(1, 2), (2, 2)]);
        let verify = |change: &dyn Fn(&mut Verify)| {
            let mut verify = Verify::new(Checksum::Crc32c);
            change(&mut verify);
            of(writes, &|plan| plan.verify = Some(verify.clone()))
        };
        assert_eq!(verify(&|verify| verify.is_offline = true), [(0, 2)]);
        let trim = TrimVerify { percent: 10, backlog: 4, batch: 0, is_zero: false };
        assert_eq!(verify(&|verify| verify.trim = Some(trim)), [(1, 2), (2, 2)]);
    }

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
