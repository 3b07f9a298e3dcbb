//! What the reader of fio's language is told of this machine: files, variables, numbers.

use std::io::Read;
use trueio_job::fio::Surroundings;

/// Longest job file that is read, in bytes; the reader says so of a longer one.
const FILE_BYTES_MAX: u64 = (16 << 20) + 1;

/// This machine.
#[derive(Debug)]
pub(crate) struct Live;

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
