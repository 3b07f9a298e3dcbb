//! fio's language: the jobs that it is lowered to, and its error messages.

mod command_line;
mod job_files;
mod options;
mod rules;
mod values;

use std::collections::BTreeMap;
use trueio_fio::language::{FioError, FioRequest, Surroundings, read, read_job_file};
use trueio_model::JobSpec;

/// Files and variables that are only described.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) variables: BTreeMap<String, String>,
}

impl World {
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { files, ..Self::default() }
    }
}

impl Surroundings for World {
    fn read_file(&self, path: &str) -> Result<String, String> {
        self.files.get(path).cloned().ok_or_else(|| "there is none".to_owned())
    }
    fn read_bytes(&self, path: &str, most: usize) -> Result<(Vec<u8>, u64), String> {
        let bytes = self.read_file(path)?.into_bytes();
        Ok((bytes[..most.min(bytes.len())].to_vec(), bytes.len() as u64))
    }
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
    fn page_bytes(&self) -> u64 {
        4096
    }
    fn memory_bytes(&self) -> u64 {
        8 << 30
    }
    fn processors(&self) -> u64 {
        4
    }
    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String> {
        match directory {
            "tree" => Ok((vec!["tree/a".into(), "tree/b:c".into()], 1)),
            "bare" => Ok((Vec::new(), 3)),
            _ => Err("there is none".to_owned()),
        }
    }
}

pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn line(text: &str) -> FioRequest {
    read(&words(text), &World::default()).unwrap_or_else(|error| panic!("{text}\n{}", error.render()))
}

pub(crate) fn wrong(text: &str) -> FioError {
    match read(&words(text), &World::default()) {
        Err(error) => error,
        Ok(request) => panic!("{text} was accepted: {request:?}"),
    }
}

pub(crate) fn wrong_file(text: &str) -> String {
    match read_job_file("job.fio", text, &World::default()) {
        Err(error) => error.render(),
        Ok(request) => panic!("{text} was accepted: {request:?}"),
    }
}

pub(crate) fn text<'a>(job: &'a JobSpec, option: &str) -> &'a str {
    job.options.get(option).map_or("", |value| value.text.as_str())
}
