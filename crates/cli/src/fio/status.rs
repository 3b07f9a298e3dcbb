//! Results, at the end and, with `--status-interval`, while the jobs run.
//!
//! As in fio, what is printed meanwhile are whole documents, each from the beginning of the run on, one behind
//! the other. The format `jsonl`, which is ours, gives a line for each interval with what was done in
//! it, one for the rest of each phase, and a line with the result at the end.

use super::format_of;
use super::idle::Idle;
use crate::failure::Failure;
use crate::output;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use trueio_fio::language::{FIO_VERSION, Settings};
use trueio_fio::outputs::{FioOutput, Format, Told, banner, interval_lines, render};
use trueio_model::{JobSpec, Plan, RunRecord};

/// Where results go, and what was written there already.
#[derive(Debug)]
pub(super) struct Results {
    options: FioOutput,
    every: Option<Duration>,
    path: Option<PathBuf>,
    file: Option<File>,
    has_banner: bool,
    /// What lines have told already.
    told: Told,
    failed: Option<Failure>,
    /// How idle the processors are, if that is asked for.
    idle: Option<Idle>,
}

impl Results {
    pub(super) fn new(settings: &Settings) -> Self {
        let formats: Vec<Format> = match settings.formats.is_empty() {
            true => vec![Format::Normal],
            false => settings.formats.iter().copied().map(format_of).collect(),
        };
        Self {
            options: FioOutput {
                formats,
                terse_version: settings.terse_version.unwrap_or(3),
                version: FIO_VERSION.to_owned(),
                pid: std::process::id(),
                ..FioOutput::default()
            },
            every: settings.status_interval_ns.map(Duration::from_nanos).filter(|every| !every.is_zero()),
            path: settings.output.as_ref().map(PathBuf::from),
            file: None,
            has_banner: false,
            told: Told::default(),
            failed: None,
            idle: settings.idle_prof.map(Idle::new),
        }
    }

    /// The measured time begins, or goes on.
    pub(super) fn measuring(&mut self) {
        if let Some(idle) = &mut self.idle {
            idle.begin();
        }
    }

    /// The measured time ends for now.
    pub(super) fn measured(&mut self) {
        if let Some(idle) = &mut self.idle {
            idle.end();
        }
    }

    /// How often results are wanted meanwhile.
    pub(super) fn every(&self) -> Option<Duration> {
        self.every
    }

    /// The results so far of a run that goes on.
    pub(super) fn meanwhile(&mut self, so_far: &RunRecord) {
        if self.failed.is_some() {
            return;
        }
        let mut text = self.banner(so_far);
        let others: Vec<Format> =
            self.options.formats.iter().copied().filter(|format| *format != Format::JsonLines).collect();
        if others.len() < self.options.formats.len() {
            text.push_str(&interval_lines(so_far, &mut self.told, false));
        }
        text.push_str(&render(so_far, &FioOutput { formats: others, is_interim: true, ..self.options.clone() }));
        self.failed = self.write(&text).err();
    }

    /// The results of the whole run.
    pub(super) fn end(mut self, record: &RunRecord) -> Result<(), Failure> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        self.options.idleness = self.idle.take().and_then(Idle::result);
        let mut text = self.banner(record);
        if self.every.is_some() && self.options.formats.contains(&Format::JsonLines) {
            text.push_str(&interval_lines(record, &mut self.told, true));
        }
        text.push_str(&render(record, &self.options));
        self.write(&text)
    }

    /// Normal text alone begins with a line for each job, the version, and how many workers start, as in fio.
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

    /// How they are written.
    pub(super) fn options(&self) -> &FioOutput {
        &self.options
    }

    /// Adds text to the results.
    pub(super) fn write(&mut self, text: &str) -> Result<(), Failure> {
        let Some(path) = self.path.clone() else { return output::print_all(text) };
        let failed = |e: std::io::Error| Failure::failed(format!("`{}` could not be written", path.display()), &e);
        self.open().and_then(|file| file.write_all(text.as_bytes())).map_err(failed)
    }

    /// The file for them.
    fn open(&mut self) -> std::io::Result<&mut File> {
        match (&mut self.file, &self.path) {
            (Some(file), _) => Ok(file),
            (file, Some(path)) => Ok(file.insert(File::create(path)?)),
            (None, None) => Err(std::io::ErrorKind::NotFound.into()),
        }
    }

    /// The same for what is shown while the jobs run, which stands before them; `None`: it is standard output.
    pub(super) fn shown_in(&mut self) -> Option<File> {
        let path = self.path.clone()?;
        let shared = self.open().and_then(|file| file.try_clone());
        let failed = |e: std::io::Error| Failure::failed(format!("`{}` could not be written", path.display()), &e);
        shared.map_err(|error| self.failed = Some(failed(error))).ok()
    }
}

/// A line for each job, as fio writes it before they start: dots for its clones.
pub(super) fn banner_lines(specs: &[JobSpec], plan: &Plan) -> Vec<String> {
    let line = |(index, spec): (usize, &JobSpec)| {
        let fio = spec.fio.as_ref()?;
        match fio.clone {
            // The banner knows the plan, where each clone has a name of its own.
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
