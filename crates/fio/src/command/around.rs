//! Files, variables and numbers of this machine, for the reader of fio's language.

use crate::language::Surroundings;
use std::cell::RefCell;
use std::io::Read;
use std::path::Path;
use trueio_files::TextFile;

/// The longest job file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Largest number of names below a directory of `opendir`, which is the largest number of files of a job.
const ENTRIES_MAX: u32 = 1 << 16;

/// Reads files, variables and facts of this machine.
#[derive(Debug)]
pub(crate) struct ThisMachine;

/// Reads this machine as [`ThisMachine`] does, and remembers the files that were read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    files: RefCell<Vec<String>>,
}

impl Reading {
    /// Returns the files that were read, without standard input.
    pub(crate) fn into_files(self) -> Vec<String> {
        self.files.into_inner()
    }
}

impl Surroundings for Reading {
    fn read_file(&self, path: &str) -> Result<String, String> {
        if path != "-" {
            self.files.borrow_mut().push(path.to_owned());
        }
        ThisMachine.read_file(path)
    }

    fn is_missing(&self, path: &str) -> bool {
        ThisMachine.is_missing(path)
    }

    fn read_bytes(&self, path: &str, most: usize) -> Result<(Vec<u8>, u64), String> {
        self.files.borrow_mut().push(path.to_owned());
        ThisMachine.read_bytes(path, most)
    }

    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String> {
        ThisMachine.files_below(directory)
    }

    fn variable(&self, name: &str) -> Option<String> {
        ThisMachine.variable(name)
    }

    fn page_bytes(&self) -> u64 {
        ThisMachine.page_bytes()
    }

    fn memory_bytes(&self) -> u64 {
        ThisMachine.memory_bytes()
    }

    fn processors(&self) -> u64 {
        ThisMachine.processors()
    }
}

impl Surroundings for ThisMachine {
    fn read_file(&self, path: &str) -> Result<String, String> {
        trueio_files::read_text(Path::new(path), FILE_BYTES_MAX).map_err(|error| error.to_string())
    }

    fn is_missing(&self, path: &str) -> bool {
        std::fs::metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    }

    fn read_bytes(&self, path: &str, most: usize) -> Result<(Vec<u8>, u64), String> {
        let text = TextFile::open(Path::new(path), u64::MAX).map_err(|error| error.to_string())?;
        let Some(file) = text.seekable() else { return Err("it is no regular file".to_owned()) };
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        Ok((bytes, metadata.len()))
    }

    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String> {
        files_below(directory)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    }

    fn page_bytes(&self) -> u64 {
        rustix::param::page_size() as u64
    }

    fn memory_bytes(&self) -> u64 {
        trueio_run::machine::memory_bytes().unwrap_or(0)
    }

    fn processors(&self) -> u64 {
        std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
    }
}

/// Returns the files below a directory that hold data, sorted by name, and the number of empty files. Does not follow
/// links.
fn files_below(directory: &str) -> Result<(Vec<String>, u64), String> {
    let (mut files, mut empty_count, mut seen) = (Vec::new(), 0, 0);
    let mut directories = vec![directory.trim_end_matches('/').to_owned()];
    if directory.starts_with('/') && directories[0].is_empty() {
        directories[0] = "/".to_owned();
    }
    while let Some(directory) = directories.pop() {
        let failed = |error: std::io::Error| format!("`{directory}` cannot be read: {error}");
        for entry in std::fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            seen += 1;
            if seen > ENTRIES_MAX {
                return Err(format!("there are more than {ENTRIES_MAX} names below it"));
            }
            let Ok(name) = entry.file_name().into_string() else {
                return Err(format!("`{directory}` holds a name that is not text (UTF-8)"));
            };
            let path = format!("{}/{name}", directory.trim_end_matches('/'));
            // The file was removed meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                directories.push(path);
            } else if metadata.is_file() && metadata.len() > 0 {
                files.push(path);
            } else if metadata.is_file() {
                empty_count += 1;
            }
        }
    }
    files.sort();
    Ok((files, empty_count))
}
