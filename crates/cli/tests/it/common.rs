//! What the end-to-end tests share: the harness of `trueio-testkit`, and records of runs.

use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use trueio_model::{Check, JobRecord, PhaseRecord, RunRecord};
pub(crate) use trueio_testkit::{ControlGroup, Loop, Mount, Ran, Running, hash, joined, listing, on_terminal, tool};

/// True, after its reason is printed, if this machine lacks `need`: those of the testkit, and `tracing`. The test then
/// returns.
#[track_caller]
pub(crate) fn lacks(need: &str) -> bool {
    if need != "tracing" {
        return trueio_testkit::lacks(need);
    }
    trueio_testkit::lacks("root")
        || trueio_evidence::why_no_syscall_trace().inspect(|reason| trueio_testkit::skip(need, reason)).is_some()
}

/// True, with the reason printed, if the build directory has no direct I/O or no disk is visible below it.
pub(crate) fn has_no_disk(sandbox: &Sandbox) -> bool {
    let probe = sandbox.run(&["device", ".", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&probe.out).unwrap_or_default();
    let has_disk = facts["disks"].as_array().is_some_and(|disks| !disks.is_empty());
    let is_missing = !has_disk || facts["direct"]["support"] != "direct";
    if is_missing {
        println!("skipped: the build directory has no direct I/O, or no disk is visible below it");
    }
    is_missing
}

/// A sandbox of the testkit whose runs can return their record.
#[derive(Debug, Default)]
pub(crate) struct Sandbox(trueio_testkit::Sandbox);

impl Deref for Sandbox {
    type Target = trueio_testkit::Sandbox;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Runs a command line of fio's language, written as in a shell without quotes.
    pub(crate) fn fio(&self, line: &str) -> Ran {
        let words = line.split_whitespace().filter(|word| *word != "\\");
        self.run(&std::iter::once("fio").chain(words).collect::<Vec<_>>())
    }

    /// Runs a command line of fio's language, which succeeds and prints nothing on standard error.
    #[track_caller]
    pub(crate) fn fio_done(&self, line: &str) -> Ran {
        let ran = self.fio(line);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}\n{}", ran.out);
        ran
    }

    /// Runs the installed fio, which succeeds; `None`, with the reason printed, where there is none.
    #[track_caller]
    pub(crate) fn real_fio_done(&self, line: &str) -> Option<Ran> {
        let ran = Ran::of(real_fio(self, line)?.output().expect("fio starts"));
        assert_eq!(ran.code, Some(0), "fio {line}: {}", ran.err);
        Some(ran)
    }

    /// Runs jobs (`run`, `baseline`), prints all details, and returns the record, too.
    pub(crate) fn record(&self, arguments: &[&str]) -> (Ran, RunRecord) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let path = self.aside(&format!("record-{}.json", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let text = path.to_str().expect("UTF-8").to_owned();
        let has_detail = !["run", "baseline"].contains(&arguments[0]) || arguments.contains(&"-v");
        let detail: &[&str] = if has_detail { &[] } else { &["-v"] };
        let ran = self.run(&[arguments, &["--json", &text], detail].concat());
        assert!(path.exists(), "no record was written\n{ran:?}");
        (ran, read_record(&path))
    }
}

pub(crate) fn read_record(path: &Path) -> RunRecord {
    let text = std::fs::read_to_string(path).expect("a record");
    trueio_report::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Asserts that the table of docs/dev/staged-results.md lists a situation with what a check prints for it; `None`: `no finding`.
#[track_caller]
pub(crate) fn assert_listed(situation: &str, check: Option<&Check>) {
    let file = std::panic::Location::caller().file();
    let by = format!("`{}`", file.rsplit("crates/").next().unwrap_or(file));
    let printed = check.map(|check| format!("{} (`{}`): {}", check.outcome.word(), check.name, check.sentence));
    let printed = printed.unwrap_or_else(|| "no finding".to_owned());
    trueio_testkit::assert_row("docs/dev/staged-results.md", "tests", situation, &[&[&printed], &[&by]]);
}

/// The only job of the only phase.
#[track_caller]
pub(crate) fn only_job(record: &RunRecord) -> &JobRecord {
    assert_eq!(record.phases.len(), 1, "{:?}", record.outcome);
    assert_eq!(record.phases[0].jobs.len(), 1);
    &record.phases[0].jobs[0]
}

/// I/Os and bytes of one operation in a phase.
pub(crate) fn totals(phase: &PhaseRecord, op: trueio_model::OpKind) -> (u64, u64) {
    let ops = phase.jobs.iter().flat_map(|job| &job.ops).filter(|record| record.op == op);
    ops.fold((0, 0), |sum, op| (sum.0 + op.io_count, sum.1 + op.byte_count))
}

/// Every histogram holds every I/O, and no count is lost.
#[track_caller]
pub(crate) fn assert_every_io_is_recorded(record: &RunRecord) {
    for job in record.phases.iter().flat_map(|phase| &phase.jobs) {
        for op in &job.ops {
            let (latency, ios) = (&op.latency, op.io_count);
            let counts = (latency.submission.count(), latency.completion.count(), latency.total.count());
            assert_eq!(counts.2, ios, "{} {}: lat", job.name, op.op);
            assert!(counts.1 == 0 || counts.1 == ios, "{} {}: clat holds {} of {ios}", job.name, op.op, counts.1);
            // An I/O that failed was submitted, too.
            let submitted = ios..=ios + op.error_count;
            assert!(counts.0 == 0 || submitted.contains(&counts.0), "{} {}: slat holds {}", job.name, op.op, counts.0);
        }
    }
}

/// The installed fio, to be run in the sandbox; `None`, with the reason printed, where there is none.
pub(crate) fn real_fio(sandbox: &Sandbox, line: &str) -> Option<Command> {
    if let Err(reason) = tool("fio", &["--version"]) {
        println!("skipped: {reason}");
        return None;
    }
    let mut command = Command::new("fio");
    command.args(line.split_whitespace()).current_dir(sandbox.root());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

/// The lines of a trace of `strace -f -o`. A call during which another thread made one stands in two lines; they are joined.
pub(crate) fn strace_lines(trace: &Path) -> Vec<String> {
    const BROKEN: &str = " <unfinished ...>";
    let text = std::fs::read_to_string(trace).expect("a trace");
    let mut lines: Vec<String> = Vec::new();
    let mut open: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for line in text.lines() {
        let (process, rest) = line.split_once(' ').unwrap_or((line, ""));
        let resumed = rest.trim_start().strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"));
        match (resumed, open.remove(process)) {
            (Some((_, end)), Some(at)) => lines[at].push_str(end),
            _ => {
                let begin = line.strip_suffix(BROKEN);
                if begin.is_some() {
                    open.insert(process, lines.len());
                }
                lines.push(begin.unwrap_or(line).to_owned());
            }
        }
    }
    lines
}
