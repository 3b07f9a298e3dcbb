//! Files for what programs print: it goes through a pipe, so that what other programs write to the file is found.
//!
//! Limits: a process that a program leaves running may print after the end of the program; what has not arrived by then is lost.

use crate::output_file::{Before, GrowingFile, create_or_next_to};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use trueio_job::Content;

/// How often an idle pipe is looked at after the end of its program.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A file that a program fills through a pipe.
#[derive(Debug)]
pub struct PrintedFile {
    path: String,
    /// Why the file has another name.
    problem: Option<String>,
    has_ended: Arc<AtomicBool>,
    copier: JoinHandle<io::Result<()>>,
}

impl PrintedFile {
    /// Creates the file; returns it with the end of the pipe for the program. If the name was taken, the file is next to it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn create(path: &str, before: Before) -> io::Result<(Self, OwnedFd)> {
        let created = create_or_next_to(Path::new(path), Content::Printed, before)?;
        let file = GrowingFile::new(created.file, &created.path)?;
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let flag = has_ended.clone();
        let copier = std::thread::Builder::new().name("printed".to_owned()).spawn(move || copy(reader, file, &flag))?;
        Ok((Self { path: path.to_owned(), problem: created.problem, has_ended, copier }, writer.into()))
    }

    /// Writes the rest after the program has ended.
    ///
    /// # Errors
    /// A sentence: the file could not be written, or another program removed, replaced, wrote or truncated it.
    pub fn finish(self) -> Result<(), String> {
        self.has_ended.store(true, Relaxed);
        let panicked = |_| Err(io::Error::other("the thread that writes it panicked: a bug of trueio"));
        let copied = self.copier.join().unwrap_or_else(panicked).map_err(|error| error.to_string());
        self.problem.map_or(Ok(()), Err).and(copied).map_err(|error| format!("`{}`: {error}", self.path))
    }
}

/// Copies what arrives until no process has the pipe open, or the program has ended. After a failure it goes on reading, so that the program
/// does not wait.
fn copy(mut reader: PipeReader, mut file: GrowingFile, has_ended: &AtomicBool) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    let mut result = Ok(());
    loop {
        match reader.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) if result.is_ok() => result = file.write_all(&bytes[..count]),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            Err(_) if has_ended.load(Relaxed) => break,
            Err(_) => {
                let _ = rustix::event::poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&LOOK));
            }
        }
    }
    result.and_then(|()| file.confirm())
}
