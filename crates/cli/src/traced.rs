//! `--trace` and `trueio report TRACE`: a Parquet file with every I/O of a run.

use crate::failure::Failure;
use crate::output::{self, Outputs};
use clap::ArgMatches;
use std::fs::File;
use std::path::{Path, PathBuf};
use trueio_engine::TraceChannel;
use trueio_files::TextFile;
use trueio_iotrace::{Dropped, TraceError, TraceHeader, TraceReader, TraceRow, TraceWriter, TracedJob};
use trueio_model::{OpKind, Plan, error_line, units};
use trueio_report::{TracePicture, TracePoint, TraceRange, message, trace_html, trace_terminal};
use trueio_run::{AsideOutput, ReservedOutput};

/// A trace that is being written.
pub(crate) struct Trace {
    path: PathBuf,
    output: AsideOutput,
    writer: TraceWriter,
}

/// Starts the trace of a run; returns the channel of its workers, too.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn start(reserved: ReservedOutput, plan: &Plan) -> Result<(Trace, TraceChannel), Failure> {
    let path = reserved.path().to_owned();
    let failed = |error: TraceError| unwritable(&path, &error);
    let output = reserved.write_aside().map_err(|error| failed(error.into()))?;
    let file = output.file().try_clone().map_err(|error| failed(error.into()))?;
    let mut first_worker = 1;
    let jobs = plan.jobs.iter().map(|job| {
        let first = first_worker;
        first_worker += job.workers;
        let files = job.files.iter().map(|file| file.path.clone()).collect();
        TracedJob { name: job.name.clone(), first_worker: first, workers: job.workers, files }
    });
    let (writer, channel) = TraceWriter::start(file, jobs.collect()).map_err(failed)?;
    Ok((Trace { path, output, writer }, channel))
}

impl Trace {
    /// Writes the rest of the trace, and reports what it holds.
    ///
    /// # Errors
    /// A row could not be written, or another program took the name of the trace.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let summary = self.writer.finish().map_err(|error| unwritable(&self.path, &error))?;
        self.output.finish().map_err(|error| unwritable(&self.path, &error.into()))?;
        let missing = missing(&summary.dropped).unwrap_or_default();
        message!("trace: {} ({} I/Os{missing})", self.path.display(), units::format_count(summary.rows));
        Ok(())
    }
}

fn unwritable(path: &Path, error: &TraceError) -> Failure {
    Failure::failed(format!("the trace `{}` could not be written", path.display()), error)
}

/// Returns what is missing in a trace, as the end of a list; `None`: nothing.
fn missing(dropped: &[Dropped]) -> Option<String> {
    let rows = dropped.iter().fold(0_u64, |sum, of| sum.saturating_add(of.rows));
    let workers: Vec<String> = dropped.iter().take(8).map(|of| of.worker.to_string()).collect();
    let more = if dropped.len() > workers.len() { ", …" } else { "" };
    (rows > 0).then(|| {
        format!(
            "; {} rows are missing, of worker {}{more}: the file was written more slowly than I/O was done",
            units::format_count(rows),
            workers.join(", ")
        )
    })
}

/// Opens a trace; `None`: the file is none, or does not exist.
pub(crate) fn open(path: &Path) -> Option<File> {
    let text = TextFile::open(path, u64::MAX).ok()?;
    let file = text.seekable()?.try_clone().ok()?;
    trueio_iotrace::is_trace(&file).ok()?.then_some(file)
}

/// Draws a trace: on the terminal, as a page (`--html`), or its figures as JSON (`--json`).
///
/// # Errors
/// The file is no trace or is incomplete; an output that cannot be written; `--hdr`, which is for records.
pub(crate) fn report(name: &Path, file: File, mut outputs: Outputs, matches: &ArgMatches) -> Result<(), Failure> {
    for (name, _) in trueio_report::Format::ALL.into_iter().filter(|(name, _)| !matches!(*name, "json" | "html")) {
        if outputs.take(name).is_some() {
            return Err(Failure::refused(format!(
                "--{name} cannot show a trace\n\nhint: --html draws it, and any Parquet reader reads its rows"
            )));
        }
    }
    let unreadable = |error: TraceError| {
        Failure::refused(format!(
            "the trace `{}` cannot be read\n  because: {}\n\nhint: the trace of a run that was killed is incomplete",
            name.display(),
            error_line(&error)
        ))
    };
    let reader = TraceReader::open(file).map_err(unreadable)?;
    let mut range = TraceRange::default();
    reader.for_each(|row| range.include(&point(&row))).map_err(unreadable)?;
    let mut picture = TracePicture::new(&name.display().to_string(), sentences(&reader), range);
    reader.for_each(|row| picture.add(&point(&row))).map_err(unreadable)?;
    let json = || {
        let header = serde_json::to_string(reader.header())
            .map_err(|error| Failure::failed("the trace cannot be written as JSON", &error))?;
        Ok(format!("{{\"rows\":{},\"header\":{header}}}\n", reader.row_count()))
    };
    if matches.get_one::<PathBuf>("json").is_some_and(|path| path == Path::new("-")) {
        output::print_all(&json()?)?;
    } else {
        output::print_all(&trace_terminal(&picture, &output::style_of(&std::io::stdout())))?;
    }
    outputs.write(|name| if name == "json" { json() } else { Ok(trace_html(&picture)) })
}

fn point(row: &TraceRow) -> TracePoint {
    TracePoint {
        op: row.op,
        time_ns: row.time_ns,
        offset: (row.op != OpKind::Sync).then_some(row.offset),
        latency_ns: row.slat_ns.saturating_add(row.clat_ns),
        is_error: row.error != 0,
    }
}

/// Returns sentences about what a trace is of.
fn sentences(reader: &TraceReader) -> Vec<String> {
    let TraceHeader { jobs, dropped, .. } = reader.header();
    let mut sentences = vec![format!(
        "{} I/Os{}",
        units::format_count(reader.row_count()),
        missing(dropped).unwrap_or_else(|| "; no row is missing".to_owned())
    )];
    for job in jobs.iter().take(20) {
        let workers = if job.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", job.workers) };
        let files = match &job.files[..] {
            [] => "no file".to_owned(),
            [one] => format!("`{one}`"),
            [first, rest @ ..] => format!("`{first}` and {} more", rest.len()),
        };
        sentences.push(format!("job `{}`: {workers}, {files}", job.name));
    }
    sentences
}
