//! Each I/O on standard output while the jobs run, in the lines of fio's `--debug=io`.
//!
//! fio prints what it does to an I/O, step by step; scripts read offset, length, direction and file of it. The steps
//! `fill`, `prep` and `queue` are one moment here, when the I/O is issued; `complete` is when it is counted. What stands
//! for fio's address is the number of the worker and of the slot that the I/O has.
//!
//! Cannot see: what is read back at the end (`verify`), which is no I/O of the job.
//!
//! Source: what fio 3.33 prints.

use std::io::{self, ErrorKind, Write};
use trueio_engine::IssuedIo;
use trueio_model::{JobPlan, OpKind};

/// How one worker's I/Os are shown.
pub(crate) struct Shown {
    names: Vec<String>,
    process: u32,
    /// What the numbers of its slots begin with.
    base: u64,
    text: String,
}

impl Shown {
    pub(crate) fn new(job: &JobPlan, worker: u32) -> Self {
        let names = job.files.iter().map(|file| file.path.clone()).collect();
        let base = (u64::from(worker) + 1) << 32;
        Self { names, process: std::process::id(), base, text: String::new() }
    }

    /// Prints what a worker told.
    pub(crate) fn print(&mut self, ios: &[IssuedIo]) -> io::Result<()> {
        self.text.clear();
        for io in ios {
            self.write(io);
        }
        let mut out = io::stdout().lock();
        match out.write_all(self.text.as_bytes()).and_then(|()| out.flush()) {
            // Whoever read the lines has seen enough (`| head`).
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    fn write(&mut self, io: &IssuedIo) {
        use std::fmt::Write;
        let request = &io.request;
        let is_range = request.range_bytes().is_some();
        let direction = match request.op {
            OpKind::Read => 0,
            OpKind::Write => 1,
            OpKind::Trim => 2,
            OpKind::Sync if is_range => 5,
            OpKind::Sync if request.data_only => 4,
            OpKind::Sync => 3,
        };
        let length = if request.op == OpKind::Sync { 0 } else { request.length };
        let name = self.names.get(usize::from(request.file)).map_or("", String::as_str);
        let steps: &[&str] = if io.is_complete { &["complete"] } else { &["fill", "prep", "queue"] };
        for step in steps {
            // Writing to a String cannot fail.
            let _ = writeln!(
                self.text,
                "{:<8} {:<5} {step}: io_u {:#x}: off={:#x},len={length:#x},ddir={direction},file={name}",
                "io",
                self.process,
                self.base | u64::from(io.slot),
                request.offset,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_engine::Request;
    use trueio_model::EngineKind;

    #[test]
    fn lines_are_those_that_scripts_read_from_fio() {
        let mut shown = Shown::new(&JobPlan::plain(EngineKind::Psync, 1 << 20), 1);
        shown.names = vec!["a".into(), "b".into()];
        shown.process = 77;
        let request = Request { offset: 8192, length: 4096, file: 1, op: OpKind::Write, data_only: false };
        let io = |request, is_complete| IssuedIo { at_ns: 0, request, slot: 3, is_complete };
        shown.write(&io(request, false));
        shown.write(&io(request, true));
        let sync = Request { op: OpKind::Sync, length: 0, data_only: true, ..request };
        shown.write(&io(sync, true));
        let of = |step, rest| format!("io       77    {step}: io_u 0x200000003: off=0x2000,{rest},file=b\n");
        let written = "len=0x1000,ddir=1";
        let steps = ["fill", "prep", "queue", "complete"].map(|step| of(step, written)).concat();
        assert_eq!(shown.text, steps + &of("complete", "len=0x0,ddir=4"));
    }
}
