//! Prints each I/O while the jobs run, in the lines of fio's `--debug`.
//!
//! fio prints the steps of each I/O; scripts read its offset, length, direction and file.
//!
//! - `io`: the steps `fill`, `prep` and `queue` are printed together when the I/O is issued, `complete` when it is
//!   counted. The number of the worker and of the I/O's slot takes the place of fio's address.
//! - `random`: the block that was drawn. fio draws a number, derives a block from it, and draws again if the block is
//!   taken; here only free blocks are drawn.
//! - `verify`: the content of a written block and the checksum that it is compared by, for each header.
//! - `file`: the file of each I/O, and when a job's files are opened and closed. fio's lines about its reference counts
//!   are left out.
//!
//! The read back at the end (`verify`) is not an I/O of the job: only its comparisons are printed.
//!
//! Source: what fio 3.33 prints.

use std::fmt::{Arguments, Write as _};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use trueio_engine::{IoEvent, IssuedIo, Step};
use trueio_model::{JobPlan, OpKind, OutputPlan, Verify};
use trueio_report::escaped;

/// Prints the I/Os of one worker.
pub(super) struct Shown {
    /// The parts that are printed.
    output: OutputPlan,
    verify: Option<Verify>,
    names: Vec<String>,
    has_files: bool,
    worker: u32,
    process: u32,
    /// The high bits of its slots' numbers.
    base: u64,
    text: String,
    /// The destination; `None`: standard output.
    out: Option<Arc<File>>,
}

impl Shown {
    /// Creates the printer of a worker: its number in the phase, and in the job.
    pub(super) fn new(job: &JobPlan, (worker, of_job): (u32, u32), out: Option<Arc<File>>) -> Self {
        Self {
            output: job.output.clone(),
            verify: job.verify.clone(),
            names: job.files.iter().map(|file| file.path.clone()).collect(),
            has_files: job.engine.touches_files(),
            worker: of_job,
            process: std::process::id(),
            base: (u64::from(worker) + 1) << 32,
            text: String::new(),
            out,
        }
    }

    /// Prints I/Os of the worker.
    pub(super) fn print(&mut self, ios: &[IssuedIo]) -> io::Result<()> {
        for io in ios {
            self.write(io);
        }
        self.flush()
    }

    /// The files of the job are open.
    pub(super) fn opened(&mut self) -> io::Result<()> {
        self.files("fd open")
    }

    /// The files of the job are closed.
    pub(super) fn closed(&mut self) -> io::Result<()> {
        if self.output.shows_files && self.worker == 0 {
            self.line("file", format_args!("close files"));
        }
        self.files("fd close")
    }

    /// Prints a line for each file. Only the first worker does: a job opens its files once for all workers.
    fn files(&mut self, what: &str) -> io::Result<()> {
        if self.output.shows_files && self.has_files && self.worker == 0 {
            for name in self.names.clone() {
                self.line("file", format_args!("{what} {name}"));
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        // Names of files are among the lines.
        let text = escaped(&self.text, false);
        let bytes = text.as_bytes();
        let written = match &self.out {
            Some(file) => (&**file).write_all(bytes),
            None => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
        };
        self.text.clear();
        match written {
            // The reader closed the pipe (`| head`).
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    fn line(&mut self, part: &str, what: Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{part:<8} {:<5} {what}", self.process);
    }

    fn write(&mut self, io: &IssuedIo) {
        let request = io.step.request();
        let slot = self.base | u64::from(io.slot);
        let is_issued = io.event == IoEvent::Issued;
        if io.event == IoEvent::Compared {
            if let Some((name, length, count)) = self.headers(request.length) {
                for _ in 0..count {
                    self.line("verify", format_args!("{name} verify io_u {slot:#x}, len {length}"));
                }
            }
            return;
        }
        let file = usize::from(request.file);
        if is_issued && self.output.shows_files && request.op != OpKind::Sync && file < self.names.len() {
            let name = self.names[file].clone();
            self.line("file", format_args!("get_next_file: {:#x} [{name}]", self.base | (file as u64 + 1) << 16));
        }
        if let Some(block) = io.drawn {
            self.line("random", format_args!("off rand {block}"));
        }
        let shows_ios = self.output.shows_ios;
        if is_issued && shows_ios {
            self.step("fill", io, slot);
            self.step("prep", io, slot);
        }
        if is_issued && request.op == OpKind::Write {
            self.filled(request.length, slot);
        }
        if shows_ios {
            self.step(if is_issued { "queue" } else { "complete" }, io, slot);
        }
    }

    /// Prints a step of an I/O.
    fn step(&mut self, step: &str, io: &IssuedIo, slot: u64) {
        let request = io.step.request();
        let direction = match request.op {
            OpKind::Read => 0,
            OpKind::Write => 1,
            OpKind::Trim => 2,
            OpKind::Sync if matches!(io.step, Step::SyncRange { .. }) => 5,
            OpKind::Sync if matches!(io.step, Step::Sync { data_only: true, .. }) => 4,
            OpKind::Sync => 3,
        };
        let length = if request.op == OpKind::Sync { 0 } else { request.length };
        let offset = request.offset;
        let name = self.names.get(usize::from(request.file)).cloned().unwrap_or_default();
        let what = format_args!("{step}: io_u {slot:#x}: off={offset:#x},len={length:#x},ddir={direction},file={name}");
        self.line("io", what);
    }

    /// Prints the content of a block that is written for a later comparison.
    fn filled(&mut self, length: u32, slot: u64) {
        let Some(verify) = self.verify.as_ref().filter(|_| self.output.shows_verify) else { return };
        match verify.pattern.as_ref().map(|pattern| pattern.bytes.len()) {
            Some(bytes) => self.line("verify", format_args!("fill verify pattern b={bytes} len={length}")),
            None => self.line("verify", format_args!("fill random bytes len={length}")),
        }
        if let Some((name, length, count)) = self.headers(length) {
            for _ in 0..count {
                self.line("verify", format_args!("fill {name} io_u {slot:#x}, len {length}"));
            }
        }
    }

    /// Returns the name of the checksum, and the length and number of the parts of a block that each have a header;
    /// `None`: no checksum.
    fn headers(&self, length: u32) -> Option<(&'static str, u32, u32)> {
        let verify = self.verify.as_ref().filter(|verify| verify.checksum.has_checksum())?;
        let part = match verify.interval_bytes {
            0 => length,
            bytes => length.min(u32::try_from(bytes).unwrap_or(u32::MAX)),
        };
        Some((verify.checksum.name(), part, length / part.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_engine::Request;
    use trueio_model::{Checksum, EngineKind};

    fn shown(of: fn(&mut JobPlan)) -> Shown {
        let mut job = JobPlan::plain(EngineKind::Psync, 1 << 20);
        of(&mut job);
        let mut shown = Shown::new(&job, (1, 0), None);
        shown.names = vec!["a".into(), "b".into()];
        shown.process = 77;
        shown
    }

    const WRITE: Request = Request { offset: 8192, length: 4096, file: 1, op: OpKind::Write };

    fn io(request: Request, event: IoEvent) -> IssuedIo {
        IssuedIo { at_ns: 0, step: Step::Io(request), slot: 3, event, drawn: None }
    }

    #[test]
    fn lines_have_the_form_of_fios() {
        let mut shown = shown(|job| job.output.shows_ios = true);
        shown.write(&io(WRITE, IoEvent::Issued));
        shown.write(&io(WRITE, IoEvent::Complete));
        let sync = Step::Sync { file: 1, data_only: true };
        shown.write(&IssuedIo { step: sync, ..io(WRITE, IoEvent::Complete) });
        let of = |step, rest| format!("io       77    {step}: io_u 0x200000003: off=0x2000,{rest},file=b\n");
        let written = "len=0x1000,ddir=1";
        let steps = ["fill", "prep", "queue", "complete"].map(|step| of(step, written)).concat();
        assert_eq!(shown.text, steps + &of("complete", "len=0x0,ddir=4").replace("0x2000,", "0x0,"));
    }

    #[test]
    fn only_requested_parts_are_printed_and_each_header_has_a_line() {
        let mut shown = shown(|job| {
            job.output.shows_draws = true;
            job.output.shows_verify = true;
            job.output.shows_files = true;
            let mut verify = Verify::new(Checksum::Md5);
            verify.interval_bytes = 2048;
            job.verify = Some(verify);
        });
        shown.write(&IssuedIo { drawn: Some(2), ..io(WRITE, IoEvent::Issued) });
        shown.write(&io(WRITE, IoEvent::Complete));
        shown.write(&io(Request { op: OpKind::Read, ..WRITE }, IoEvent::Compared));
        let lines = [
            "file     77    get_next_file: 0x200020000 [b]",
            "random   77    off rand 2",
            "verify   77    fill random bytes len=4096",
            "verify   77    fill md5 io_u 0x200000003, len 2048",
            "verify   77    fill md5 io_u 0x200000003, len 2048",
            "verify   77    md5 verify io_u 0x200000003, len 2048",
            "verify   77    md5 verify io_u 0x200000003, len 2048",
        ];
        assert_eq!(shown.text.lines().collect::<Vec<_>>(), lines);
    }
}
