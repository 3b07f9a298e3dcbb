//! Progress for programs: one JSON object a line, on a descriptor that the caller opened (`--progress-fd`).
//!
//! A reader that is too slow or gone does not slow the run down: what does not fit into its pipe is dropped, by whole lines.
//!
//! Source: pipe(7), "PIPE_BUF"; unix(7).

use crate::failure::Failure;
use clap::{Arg, ArgMatches, value_parser};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use trueio_compare::Standing;
use trueio_run::{Event, Tick};

/// Returns the option `--progress-fd`.
pub(crate) fn argument() -> Arg {
    Arg::new("progress-fd")
        .long("progress-fd")
        .value_name("NUMBER")
        .help("Write progress to this open descriptor, a pipe or socket, as one JSON object a line")
        .help_heading("Output")
        .value_parser(value_parser!(i32).range(3..))
}

/// The writer of events.
#[derive(Debug)]
pub(crate) struct Events {
    out: File,
    /// The rest of a line of which a socket took only the beginning.
    rest: Vec<u8>,
    phase: String,
    index: usize,
    count: usize,
}

impl Events {
    /// Takes the descriptor of `--progress-fd`; `None` if the option is not set. This is called before the command opens
    /// anything, so the number cannot be that of a file of its own.
    ///
    /// # Errors
    /// The descriptor is not open, or neither a pipe nor a socket: a run writes only to files that were planned.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Option<Self>, Failure> {
        let Some(&number) = matches.get_one::<i32>("progress-fd") else { return Ok(None) };
        let refused = |why: String| {
            Failure::refused(format!(
                "--progress-fd {number} cannot be used\n  because: {why}\n\nhint: pass the writing end of a pipe to the program under this number"
            ))
        };
        // SAFETY: fcntl accepts any number and returns a new descriptor or −1.
        let own = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
        if own < 0 {
            return Err(refused(std::io::Error::last_os_error().to_string()));
        }
        // SAFETY: the descriptor is new and has no other owner.
        let out = unsafe { File::from_raw_fd(own) };
        // Programs that jobs start do not inherit the caller's descriptor. It is open, so this cannot fail.
        // SAFETY: a plain call on a number.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        let error = |error: rustix::io::Errno| refused(std::io::Error::from(error).to_string());
        let kind = FileType::from_raw_mode(fstat(&out).map_err(error)?.st_mode);
        if !matches!(kind, FileType::Fifo | FileType::Socket) {
            return Err(refused("it is neither a pipe nor a socket".to_owned()));
        }
        let flags = fcntl_getfl(&out).map_err(error)?;
        fcntl_setfl(&out, flags | OFlags::NONBLOCK).map_err(error)?;
        Ok(Some(Self { out, rest: Vec::new(), phase: String::new(), index: 0, count: 0 }))
    }

    /// Writes an event, if programs can use it.
    pub(crate) fn notify(&mut self, event: &Event<'_>) {
        let line = match event {
            Event::Preparing { path, done_bytes, size_bytes } => {
                json!({ "event": "preparing", "path": path, "done_bytes": done_bytes, "size_bytes": size_bytes })
            }
            Event::PhaseBegins { index, count, name } => {
                (self.index, self.count) = (*index, *count);
                (*name).clone_into(&mut self.phase);
                self.of_phase("phase", json!({}))
            }
            Event::RoundBegins { round, rounds_max, .. } => {
                self.of_phase("round", json!({ "round": round, "rounds_max": rounds_max }))
            }
            Event::Progress(tick) => self.of_phase("progress", progress(tick)),
            _ => return,
        };
        self.write(format!("{line}\n").into_bytes());
    }

    /// Writes how a comparison stands after a round.
    pub(crate) fn standing(&mut self, standing: &Standing) {
        let answers = standing.answers.iter().map(|answer| {
            let ratio = answer.ratio.as_ref();
            json!({
                "side": answer.side,
                "metric": answer.metric,
                "conclusion": answer.conclusion,
                "ratio": ratio.map(|ratio| ratio.estimate),
                "low": ratio.map(|ratio| ratio.low),
                "high": ratio.map(|ratio| ratio.high),
            })
        });
        let line = json!({
            "event": "comparison",
            "round": standing.round,
            "rounds_max": standing.round_max,
            "left_ns": standing.left_ns,
            "answers": answers.collect::<Vec<_>>(),
        });
        self.write(format!("{line}\n").into_bytes());
    }

    /// Adds the phase to the fields of an event.
    fn of_phase(&self, event: &str, mut fields: Value) -> Value {
        fields["event"] = Value::from(event);
        fields["phase"] = Value::from(self.phase.as_str());
        fields["index"] = Value::from(self.index);
        fields["count"] = Value::from(self.count);
        fields
    }

    fn write(&mut self, line: Vec<u8>) {
        if self.rest.is_empty() {
            self.rest = line;
        }
        // A pipe takes a line of up to 4096 bytes whole or not at all, a socket may take a part. Errors other than a full
        // buffer mean that the reader is gone, which is no error of the run.
        match self.out.write(&self.rest) {
            Ok(count) => drop(self.rest.drain(..count)),
            Err(_) if self.rest.starts_with(b"{") => self.rest.clear(),
            Err(_) => {}
        }
    }
}

fn progress(tick: &Tick) -> Value {
    let known = |ns: u64| (ns > 0).then_some(ns);
    json!({
        "fraction": tick.fraction,
        "bytes_per_s": tick.bytes_per_s,
        "ios_per_s": tick.ios_per_s,
        "latency_ns_p50": known(tick.latency_ns_p50),
        "latency_ns_p99": known(tick.latency_ns_p99),
        "left_ns": tick.left_ns,
    })
}
