//! Writes the I/Os that jobs issue in fio's iolog format, for a replay, or as the lines of `--debug` ([`Shown`]).
//!
//! Workers send the I/Os that they issue through [`log_channel`]; one thread writes lines, so memory does not grow with
//! the run, and a run that is killed leaves its log up to then.
//!
//! The format is version 3: each line has its time in microseconds since the worker began, so a ramp is included and a
//! start delay is not. An existing iolog is replaced; fio appends, which yields a log with two beginnings.
//!
//! Not logged: sync calls at the end of the job, which have no time in a replay.

use super::io_lines::Shown;
use super::thread::join;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use trueio_engine::{IoEvent, IssuedIo, LogChannel, LogChunk, Step, log_channel};
use trueio_job::Content;
use trueio_model::{IOLOG_HEADER, JobPlan, OpKind};
use trueio_run::{Before, GrowingFile, LogError, create_output};

/// The name of the lines about I/Os in an error.
const NOT_SHOWN: &str = "--debug";

/// The iologs of one phase.
#[derive(Debug)]
pub(super) struct Iologs {
    channel: LogChannel<IssuedIo>,
    writer: JoinHandle<Result<(), LogError>>,
}

/// Receives the I/Os of one worker.
struct Reader {
    log: Option<Iolog>,
    shown: Option<Shown>,
}

impl Reader {
    fn read(&mut self, ios: &[IssuedIo]) -> Result<(), LogError> {
        if let Some(log) = &mut self.log {
            // The format has no range sync.
            let is_logged = |io: &&IssuedIo| io.event == IoEvent::Issued && !matches!(io.step, Step::SyncRange { .. });
            let mut ios = ios.iter().filter(is_logged);
            let written = ios.try_for_each(|io| log.write(io)).and_then(|()| log.out.flush());
            written.map_err(|source| LogError::new(log.path.clone(), source))?;
        }
        match &mut self.shown {
            Some(shown) => shown.print(ios).map_err(|source| LogError::new(NOT_SHOWN.to_owned(), source)),
            None => Ok(()),
        }
    }
}

/// One worker's log.
struct Iolog {
    path: String,
    out: BufWriter<GrowingFile>,
    names: Vec<String>,
    last_us: u64,
}

impl Iologs {
    /// Creates the files of the phase's jobs; `None` if no job has any.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub(super) fn start(jobs: &[JobPlan], shown_in: Option<&Arc<File>>) -> Result<Option<Self>, LogError> {
        if jobs.iter().all(|job| job.output.logs.iolog.is_none() && !job.output.shows_any()) {
            return Ok(None);
        }
        let mut workers = Vec::new();
        for job in jobs {
            // The plan refuses several workers with one log.
            for of_job in 0..job.workers {
                let log = match &job.output.logs.iolog {
                    Some(path) => Some(Iolog::new(path, job)?),
                    None => None,
                };
                let number = workers.len() as u32;
                let shown = job.output.shows_any().then(|| Shown::new(job, (number, of_job), shown_in.cloned()));
                workers.push(Reader { log, shown });
            }
        }
        let (channel, chunks) = log_channel();
        let writer = std::thread::Builder::new()
            .name("iologs".to_owned())
            .spawn(move || write_all(workers, &chunks))
            .map_err(|source| LogError::new("of the phase".to_owned(), source))?;
        Ok(Some(Self { channel, writer }))
    }

    /// Returns the channel of a worker of the phase, counted from 0.
    pub(super) fn channel(&self, worker: u32) -> LogChannel<IssuedIo> {
        self.channel.of_worker(worker)
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

impl Iolog {
    fn new(path: &str, job: &JobPlan) -> Result<Self, LogError> {
        let failed = |source| LogError::new(path.to_owned(), source);
        // The plan refuses a log that a job measures or reads.
        let before = Before::planned(&job.output, Path::new(path));
        let file = create_output(path, Content::Iolog, before)
            .and_then(|file| GrowingFile::new(file, path))
            .map_err(failed)?;
        let mut out = BufWriter::with_capacity(64 << 10, file);
        let names: Vec<String> = job.files.iter().map(|file| file.path.clone()).collect();
        let mut begin = || -> io::Result<()> {
            writeln!(out, "{IOLOG_HEADER}")?;
            names.iter().try_for_each(|name| writeln!(out, "0 {name} add"))?;
            names.iter().try_for_each(|name| writeln!(out, "0 {name} open"))?;
            out.flush()
        };
        begin().map_err(failed)?;
        Ok(Self { path: path.to_owned(), out, names, last_us: 0 })
    }

    fn write(&mut self, io: &IssuedIo) -> io::Result<()> {
        let request = io.step.request();
        let word = match request.op {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Trim => "trim",
            OpKind::Sync if matches!(io.step, Step::Sync { data_only: true, .. }) => "datasync",
            OpKind::Sync => "sync",
        };
        self.last_us = io.at_ns / 1_000;
        let name = &self.names[usize::from(request.file)];
        writeln!(self.out, "{} {name} {word} {} {}", self.last_us, request.offset, request.length)
    }

    fn end(&mut self) -> io::Result<()> {
        for name in &self.names {
            writeln!(self.out, "{} {name} close", self.last_us)?;
        }
        self.out.flush()?;
        self.out.get_mut().confirm()
    }
}

/// Writes logs until every worker has ended. After a failure it continues to receive, so that no worker blocks.
fn write_all(mut workers: Vec<Reader>, chunks: &Receiver<LogChunk<IssuedIo>>) -> Result<(), LogError> {
    let mut result = each_shown(&mut workers, Shown::opened);
    for chunk in chunks {
        if let (Ok(()), Some(reader)) = (&result, workers.get_mut(chunk.worker as usize)) {
            result = reader.read(&chunk.ios);
        }
        chunk.give_back();
    }
    for log in workers.iter_mut().filter_map(|reader| reader.log.as_mut()) {
        if result.is_ok() {
            result = log.end().map_err(|source| LogError::new(log.path.clone(), source));
        }
    }
    result.and_then(|()| each_shown(&mut workers, Shown::closed))
}

/// Prints lines of each worker that are not about an I/O.
fn each_shown(workers: &mut [Reader], show: fn(&mut Shown) -> io::Result<()>) -> Result<(), LogError> {
    let mut all = workers.iter_mut().filter_map(|reader| reader.shown.as_mut());
    all.try_for_each(show).map_err(|source| LogError::new(NOT_SHOWN.to_owned(), source))
}
