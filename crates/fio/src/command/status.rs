//! Writes the results at the end and, with `--status-interval`, while the jobs run.
//!
//! As in fio, interim results are whole documents, each from the beginning of the run, one after the other. The format
//! `jsonl`, which fio does not have, writes a line for each interval, one for the rest of each phase, and a line with
//! the result at the end.

use super::format_of;
use super::idle::Idle;
use super::program::Program;
use crate::language::{FIO_VERSION, Settings};
use crate::outputs::{FioOutput, Format, ReportedSoFar, banner, interval_lines, render};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trueio_model::{JobSpec, Plan, RunRecord, error_chain};
use trueio_run::{PlacedOutput, ReservedOutput, contained};

/// The destination of the results, and what was written already.
#[derive(Debug)]
pub(super) struct Results {
    program: Program,
    options: FioOutput,
    every: Option<Duration>,
    path: Option<PathBuf>,
    /// The file of the results until it is opened.
    reserved: Option<ReservedOutput>,
    /// What is written to it at the end.
    text: String,
    /// Results, or lines about I/Os, are written meanwhile.
    is_followed: bool,
    file: Option<PlacedOutput>,
    /// What was written to it; `None`: lines about I/Os are, too, and are not counted.
    written_bytes: Option<u64>,
    has_banner: bool,
    /// The intervals that were written already.
    reported: ReportedSoFar,
    failed: Option<String>,
    /// Idle time of the processors, with `--idle-prof`.
    idle: Option<Idle>,
}

impl Results {
    /// Reserves the file of `--output`.
    pub(super) fn new(settings: &Settings, program: Program) -> Result<Self, String> {
        let reserved = settings.output.as_ref().map(|path| {
            ReservedOutput::reserve(path)
                .map_err(|e| error_chain(&format!("`--output={path}`: results cannot be written to it"), Some(&e)))
        });
        let formats: Vec<Format> = match settings.formats.is_empty() {
            true => vec![Format::Normal],
            false => settings.formats.iter().copied().map(format_of).collect(),
        };
        Ok(Self {
            program,
            options: FioOutput {
                formats,
                terse_version: settings.terse_version.unwrap_or(3),
                version: FIO_VERSION.to_owned(),
                pid: std::process::id(),
                ..FioOutput::default()
            },
            every: settings.status_interval_ns.map(Duration::from_nanos).filter(|every| !every.is_zero()),
            path: settings.output.as_ref().map(PathBuf::from),
            reserved: reserved.transpose()?,
            text: String::new(),
            is_followed: settings.status_interval_ns.is_some(),
            file: None,
            written_bytes: Some(0),
            has_banner: false,
            reported: ReportedSoFar::default(),
            failed: None,
            idle: settings.idle_prof.map(Idle::new),
        })
    }

    /// The measured time begins, or continues.
    pub(super) fn measuring(&mut self) {
        if let Some(idle) = &mut self.idle {
            idle.begin();
        }
    }

    /// The measured time pauses or ends.
    pub(super) fn measured(&mut self) {
        if let Some(idle) = &mut self.idle {
            idle.end();
        }
    }

    /// Returns the interval of interim results.
    pub(super) fn every(&self) -> Option<Duration> {
        self.every
    }

    /// Writes the results so far.
    pub(super) fn meanwhile(&mut self, so_far: &RunRecord) {
        if self.failed.is_some() {
            return;
        }
        let mut text = self.banner(so_far);
        let others: Vec<Format> =
            self.options.formats.iter().copied().filter(|format| *format != Format::JsonLines).collect();
        if others.len() < self.options.formats.len() {
            text.push_str(&interval_lines(so_far, &mut self.reported, false));
        }
        text.push_str(&render(so_far, &FioOutput { formats: others, is_interim: true, ..self.options.clone() }));
        self.failed = self.follow().and_then(|()| self.write(&text)).err();
    }

    /// Writes the results of the whole run.
    pub(super) fn end(mut self, record: &RunRecord) -> Result<(), String> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        self.options.idleness = self.idle.take().and_then(Idle::result);
        let text = contained(|| {
            let mut text = self.banner(record);
            if self.every.is_some() && self.options.formats.contains(&Format::JsonLines) {
                text.push_str(&interval_lines(record, &mut self.reported, true));
            }
            text + &render(record, &self.options)
        });
        match text {
            Ok(text) => self.write(&text)?,
            Err(reason) => {
                self.write(&format!("{}\n", trueio_report::json(record)))?;
                return Err(format!(
                    "the results could not be made, and the record is written instead\n  because: {reason}"
                ));
            }
        }
        self.finish()
    }

    /// Completes the file of the results.
    pub(super) fn finish(self) -> Result<(), String> {
        let Some(path) = self.path else { return Ok(()) };
        let finished = match (self.reserved, self.file) {
            (Some(reserved), _) => reserved.write(self.text.as_bytes()),
            (None, Some(file)) => file.confirm(self.written_bytes),
            (None, None) => Ok(()),
        };
        finished.map_err(|error| unwritable(&path, &error))
    }

    /// Returns the head of normal text, as fio writes it: a line for each job, the version, and the number of workers.
    /// Empty for other formats, and after the first call.
    fn banner(&mut self, record: &RunRecord) -> String {
        let mut text = String::new();
        if self.options.formats != [Format::Normal] || std::mem::replace(&mut self.has_banner, true) {
            return text;
        }
        for line in banner_lines(&record.spec, &record.plan) {
            text.push_str(&line);
            text.push('\n');
        }
        let count: u32 = record.plan.jobs.iter().map(|job| job.workers).sum();
        text.push_str(&format!("{FIO_VERSION}\nStarting {count} thread{}\n", if count == 1 { "" } else { "s" }));
        text
    }

    /// Returns the formats and their settings.
    pub(super) fn options(&self) -> &FioOutput {
        &self.options
    }

    /// Adds text to the results.
    pub(super) fn write(&mut self, text: &str) -> Result<(), String> {
        let Some(path) = self.path.clone() else { return (self.program.print)(text) };
        if !self.is_followed {
            self.text.push_str(text);
            return Ok(());
        }
        self.open().and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| unwritable(&path, &error))?;
        self.written_bytes = self.written_bytes.map(|bytes| bytes + text.len() as u64);
        Ok(())
    }

    /// Returns the file for the results, created if needed.
    fn open(&mut self) -> std::io::Result<&File> {
        match (&mut self.file, self.reserved.take()) {
            (Some(file), _) => Ok(file.file()),
            (file, Some(reserved)) => Ok(file.insert(reserved.write_in_place()?).file()),
            (None, None) => Err(std::io::ErrorKind::NotFound.into()),
        }
    }

    /// From now on texts are written at once, because another program reads them while the run goes on.
    fn follow(&mut self) -> Result<(), String> {
        if std::mem::replace(&mut self.is_followed, true) {
            return Ok(());
        }
        let text = std::mem::take(&mut self.text);
        self.write(&text)
    }

    /// Returns the file for the lines about I/Os, which come before the results; `None`: standard output.
    pub(super) fn shown_in(&mut self) -> Option<File> {
        let path = self.path.clone()?;
        self.failed = self.follow().err();
        let shared = self.open().and_then(File::try_clone);
        self.written_bytes = None;
        shared.map_err(|error| self.failed = Some(unwritable(&path, &error))).ok()
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    error_chain(&format!("`{}` could not be written", path.display()), Some(error))
}

/// Returns a line for each job, as fio writes it before the jobs start, with dots for clones.
pub(super) fn banner_lines(specs: &[JobSpec], plan: &Plan) -> Vec<String> {
    let line = |(index, spec): (usize, &JobSpec)| {
        let fio = spec.fio.as_ref()?;
        match fio.clone {
            // In the plan each clone has a name of its own; the line has the name that was typed.
            0 => {
                let banner = banner(plan, index).unwrap_or_default();
                let rest = banner.split_once("): ").map_or("", |(_, rest)| rest);
                Some(format!("{}: (g={}): {rest}", fio.name, fio.group))
            }
            1 => Some("...".to_owned()),
            _ => None,
        }
    };
    specs.iter().enumerate().filter_map(line).collect()
}
