//! A server in the background: a process of its own session, whose messages go to the kernel's log.
//!
//! The process that was called starts it, prints its messages until it serves, and ends. Nothing of the background process refers to the terminal
//! then, so that a remote shell can end.
//!
//! Source: kernel documentation, `Documentation/ABI/testing/dev-kmsg`.

use crate::failure::Failure;
use clap::ArgMatches;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::process::{Command, ExitCode, Stdio};

/// The hidden option of the background process.
pub(super) const OPTION: &str = "detached";

/// The kernel's log.
const LOG: &str = "/dev/kmsg";

/// Starts this command again as a process in the background, and waits until it serves.
pub(super) fn start(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let failed = |error: io::Error| Failure::failed("the process in the background cannot be started", &error);
    let mut command = Command::new("/proc/self/exe");
    command.args(with_option(std::env::args_os().skip(1))).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = command.spawn().map_err(failed)?;
    let mut device = String::new();
    BufReader::new(process.stdout.take().expect("it is piped")).read_line(&mut device).map_err(failed)?;
    if device.is_empty() {
        // The reason is on standard error already.
        let code = process.wait().map_err(failed)?.code();
        return Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)));
    }
    super::print_device(device.trim_end(), matches)?;
    Ok(ExitCode::SUCCESS)
}

/// Inserts the option behind the name of the command, where it is an option whatever follows.
fn with_option(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let usb = arguments.iter().position(|word| word == "usb").unwrap_or(0);
    let serve = arguments[usb..].iter().position(|word| word == "serve").map_or(arguments.len(), |at| usb + at + 1);
    arguments.insert(serve, format!("--{OPTION}").into());
    arguments
}

/// What a process in the background needs to leave its terminal.
#[derive(Debug)]
pub(super) struct Detached {
    log: RawFd,
    null: File,
}

impl Detached {
    /// Opens the log, and leaves the session of the terminal.
    pub(super) fn prepare(name: &str) -> Result<Self, Failure> {
        // It fails for the leader of a session, which has left others already.
        let _ = rustix::process::setsid();
        let log = OpenOptions::new().write(true).open(LOG).map_err(|error| {
            let failure = Failure::failed(format!("`{LOG}` cannot be opened, to which messages would go"), &error);
            Failure::refused(format!("{}\n\nhint: `--foreground` prints them", failure.into_text()))
        })?;
        let null = OpenOptions::new().read(true).write(true).open("/dev/null");
        let null = null.map_err(|error| Failure::failed("`/dev/null` cannot be opened", &error))?;
        let descriptor = log.as_raw_fd();
        trueio_report::prepare_log(log, &format!("<4>trueio: {name}: "));
        Ok(Self { log: descriptor, null })
    }

    /// The descriptors that it needs.
    pub(super) fn descriptors(&self) -> [RawFd; 2] {
        [self.log, self.null.as_raw_fd()]
    }

    /// Prints the device to the process that waits for it, and leaves the terminal.
    ///
    /// # Errors
    /// The command that waits has ended.
    pub(super) fn announce(&self, device: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{device}")?;
        out.flush()?;
        drop(out);
        self.leave_terminal();
        Ok(())
    }

    /// Sends messages to the log, and closes the output of the calling thread's descriptors.
    pub(super) fn leave_terminal(&self) {
        trueio_report::log_messages();
        // They fail only without memory; then the output stays open.
        let _ = rustix::stdio::dup2_stdout(&self.null);
        let _ = rustix::stdio::dup2_stderr(&self.null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_inserted_where_it_is_one() {
        let with = |words: &str| {
            let words = with_option(words.split(' ').map(OsString::from));
            words.iter().map(|word| word.to_str().expect("text")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(with("usb serve 2-1"), "usb serve --detached 2-1");
        assert_eq!(with("--color never usb serve -- serve"), "--color never usb serve --detached -- serve");
    }
}
