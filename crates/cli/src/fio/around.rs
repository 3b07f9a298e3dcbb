//! What the reader of fio's language is told of this machine: files, variables, numbers.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use trueio_fio::language::Surroundings;

/// Longest job file that is read, in bytes; the reader says so of a longer one.
const FILE_BYTES_MAX: u64 = (16 << 20) + 1;

/// Most names below a directory of `opendir`: a job has no more files.
const ENTRIES_MAX: u32 = 1 << 16;

/// This machine.
#[derive(Debug)]
pub(crate) struct Live;

/// This machine, and the files that were read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    files: RefCell<Vec<String>>,
}

impl Reading {
    /// The files that were read, without standard input.
    pub(crate) fn into_files(self) -> Vec<String> {
        self.files.into_inner()
    }
}

impl Surroundings for Reading {
    fn read_file(&self, path: &str) -> Result<String, String> {
        if path != "-" {
            self.files.borrow_mut().push(path.to_owned());
        }
        Live.read_file(path)
    }

    fn read_bytes(&self, path: &str, most: usize) -> Result<(Vec<u8>, u64), String> {
        self.files.borrow_mut().push(path.to_owned());
        Live.read_bytes(path, most)
    }

    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String> {
        Live.files_below(directory)
    }

    fn variable(&self, name: &str) -> Option<String> {
        Live.variable(name)
    }

    fn page_bytes(&self) -> u64 {
        Live.page_bytes()
    }

    fn memory_bytes(&self) -> u64 {
        Live.memory_bytes()
    }

    fn processors(&self) -> u64 {
        Live.processors()
    }
}

impl Surroundings for Live {
    fn read_file(&self, path: &str) -> Result<String, String> {
        let mut bytes = Vec::new();
        let read = match path {
            "-" => std::io::stdin().take(FILE_BYTES_MAX).read_to_end(&mut bytes),
            _ => match std::fs::metadata(path) {
                // A pipe (`<(…)`) is as good as a file; a device is neither.
                Ok(metadata) if metadata.is_dir() => return Err("it is a directory".to_owned()),
                Ok(_) => std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)),
                Err(error) => return Err(error.to_string()),
            },
        };
        read.map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|_| "it is not text (UTF-8)".to_owned())
    }

    fn read_bytes(&self, path: &str, most: usize) -> Result<(Vec<u8>, u64), String> {
        // A pipe that nobody writes does not hold us up, and what has no end is not begun.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
        let file = opened.map_err(|error| error.to_string())?;
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if !metadata.is_file() {
            return Err("it is no regular file".to_owned());
        }
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
        crate::machine::memory_bytes().unwrap_or(0)
    }

    fn processors(&self) -> u64 {
        std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
    }
}

/// The files below a directory, in the order of their names, and how many more are empty. Links are not followed.
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
            // A file that went meanwhile is none.
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
