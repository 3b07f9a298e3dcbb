//! Files for what programs print: it goes through a pipe, so that what other programs write to the file is found.
//!
//! A process that a program leaves running (`iostat 1 &`) goes on printing to the file as long as this process runs; what others write to the file is
//! looked for until its program has ended.
//!
//! Limits: when this process ends, such a process has no reader any more, and the kernel ends it at its next write (SIGPIPE).

use crate::output_file::{Before, GrowingFile, create_or_next_to};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use trueio_job::Content;

/// How often an idle pipe is looked at.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The longest wait for the rest of what an ended program printed. A pipe that is read later is filled by a process that it left running.
const REST: Duration = Duration::from_secs(2);

/// A file that a program fills through a pipe.
#[derive(Debug)]
pub struct PrintedFile {
    path: String,
    /// Why the file has another name.
    problem: Option<String>,
    has_ended: Arc<AtomicBool>,
    /// Receives how the copy went when the program has ended.
    copied: Receiver<io::Result<()>>,
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
        let (flag, (report, copied)) = (has_ended.clone(), channel());
        std::thread::Builder::new().name("printed".to_owned()).spawn(move || copy(reader, file, &flag, &report))?;
        Ok((Self { path: path.to_owned(), problem: created.problem, has_ended, copied }, writer.into()))
    }

    /// Writes the rest after the program has ended.
    ///
    /// # Errors
    /// A sentence: the file could not be written, or another program removed, replaced, wrote or truncated it.
    pub fn finish(self) -> Result<(), String> {
        self.has_ended.store(true, Relaxed);
        let panicked = |_| Err(io::Error::other("the thread that writes it panicked: a bug of trueio"));
        let copied = self.copied.recv().unwrap_or_else(panicked).map_err(|error| error.to_string());
        self.problem.map_or(Ok(()), Err).and(copied).map_err(|error| format!("`{}`: {error}", self.path))
    }
}

/// Copies what arrives until no process has the pipe open, and reports how that went once the program has ended. After a failure it goes on
/// reading, so that the program does not wait.
fn copy(mut reader: PipeReader, mut file: GrowingFile, has_ended: &AtomicBool, report: &Sender<io::Result<()>>) {
    let mut bytes = vec![0; 64 << 10];
    let mut result = Ok(());
    let (mut is_failed, mut is_reported, mut rest_until) = (false, false, None);
    loop {
        let was_ended = has_ended.load(Relaxed);
        let is_idle = match reader.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => {
                if !is_failed && let Err(error) = file.write_all(&bytes[..count]) {
                    (is_failed, result) = (true, Err(error));
                }
                false
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => false,
            Err(error) if error.kind() == ErrorKind::WouldBlock => true,
            Err(error) => {
                result = Err(error);
                break;
            }
        };
        if was_ended && !is_reported {
            let until = *rest_until.get_or_insert_with(|| Instant::now() + REST);
            if is_idle || Instant::now() >= until {
                is_reported = true;
                let _ = report.send(std::mem::replace(&mut result, Ok(())).and_then(|()| file.confirm()));
            }
        }
        if is_idle {
            let _ = rustix::event::poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&LOOK));
        }
    }
    if !is_reported {
        let _ = report.send(result.and_then(|()| file.confirm()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Runs a script that prints to a file; returns how the file ended, and how long that took.
    fn printed(path: &Path, script: &str) -> (Result<(), String>, Duration) {
        let (file, pipe) = PrintedFile::create(path.to_str().expect("a name"), Before::Unknown).expect("a file");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]).stdin(Stdio::null()).stdout(pipe).stderr(Stdio::null());
        assert!(shell.status().expect("a shell").success());
        drop(shell);
        let begin = Instant::now();
        (file.finish(), begin.elapsed())
    }

    /// Goal: a process that a command leaves running neither keeps the run waiting, silent or printing without end, nor is it killed, and what it
    /// prints later is in the file.
    #[test]
    fn a_process_that_a_command_leaves_running_goes_on_printing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("job.prerun.txt");
        let go = folder.path().join("go");
        let script = format!("echo first; (while [ ! -e {} ]; do sleep 0.01; done; echo later) & exit 0", go.display());
        let (ended, _) = printed(&path, &script);
        assert_eq!((ended, std::fs::read_to_string(&path).expect("a file").as_str()), (Ok(()), "first\n"));
        std::fs::write(&go, "").expect("a file");
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::fs::read_to_string(&path).expect("a file") != "first\nlater\n" {
            assert!(Instant::now() < deadline, "what it printed later is lost");
            std::thread::sleep(Duration::from_millis(5));
        }
        let endless = folder.path().join("endless");
        let pid = folder.path().join("pid");
        let (ended, took) = printed(&endless, &format!("yes & echo $! > {}", pid.display()));
        let number = std::fs::read_to_string(&pid).expect("its number");
        assert!(Command::new("kill").arg(number.trim()).status().expect("kill").success(), "it was still running");
        assert_eq!(ended, Ok(()));
        assert!(took < Duration::from_secs(60), "{took:?}");
    }
}
