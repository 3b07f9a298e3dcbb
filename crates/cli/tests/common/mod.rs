//! What the end-to-end tests share: a sandbox, the program, loop devices and mounts that are gone
//! afterwards, and skips that say why.
//!
//! Cannot see: whether a terminal really draws what the program sends to it.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use trueio_model::{JobRecord, PhaseRecord, RunRecord};

/// True if a test cannot run here, after saying why: it then returns. Fails where `TRUEIO_REQUIRE`
/// lists the need.
pub(crate) fn lacks(need: &str) -> bool {
    let Err(reason) = have(need) else { return false };
    let required = std::env::var("TRUEIO_REQUIRE").unwrap_or_default();
    assert!(!required.split([',', ' ']).any(|listed| listed == need), "TRUEIO_REQUIRE lists `{need}`, but {reason}");
    eprintln!("skipped: {reason}");
    true
}

/// Whether this machine has `root`, `loop`, `tmpfs`, `tracing` (where there is root) or `strace`; otherwise why not.
fn have(need: &str) -> Result<(), String> {
    if need == "strace" {
        return tool("strace", &["-o", "/dev/null", "true"]).map(drop);
    }
    // SAFETY: a plain call without arguments.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        return Err(format!("`{need}` needs root"));
    }
    match need {
        "root" => Ok(()),
        "tracing" => trueio_evidence::why_no_syscall_trace().map_or(Ok(()), Err),
        "loop" if Path::new("/dev/loop-control").exists() => Ok(()),
        "loop" => Err("there are no loop devices".to_owned()),
        "tmpfs" => {
            let sandbox = Sandbox::new();
            let made = Mount::try_new("tmpfs", "size=1m", "none", &sandbox.path("probe"));
            made.map(drop).map_err(|e| format!("a tmpfs cannot be mounted: {e}"))
        }
        other => panic!("`{other}` is no need that is known"),
    }
}

/// A directory on the disk under the build, and a history of its own elsewhere.
#[derive(Debug)]
pub(crate) struct Sandbox {
    directory: tempfile::TempDir,
    data: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let make =
            || tempfile::Builder::new().prefix("e2e-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        Self { directory: make(), data: make() }
    }

    /// The working directory of the program.
    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A place for outputs that is not the program's working directory.
    pub(crate) fn aside(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a file of the sandbox");
        path
    }

    /// A file of so many bytes that is really written; no two of its blocks are alike.
    pub(crate) fn data_file(&self, name: &str, bytes: usize) -> PathBuf {
        let mut content = vec![0x5a; bytes];
        for (index, block) in content.chunks_mut(512).enumerate() {
            block[..8].copy_from_slice(&(index as u64).to_le_bytes());
        }
        let path = self.write(name, content);
        fs::File::open(&path).and_then(|f| f.sync_all()).expect("a flush");
        path
    }

    /// The program, in the sandbox, with a history of its own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trueio"));
        command
            .args(arguments)
            .current_dir(self.root())
            .env("XDG_DATA_HOME", self.data.path())
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().expect("the program starts"))
    }

    /// Runs jobs (`run`) and gives the record, too.
    pub(crate) fn record(&self, arguments: &[&str]) -> (Ran, RunRecord) {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = self.aside(&format!("record-{number}.json"));
        let mut all = arguments.to_vec();
        let text = path.to_str().expect("UTF-8").to_owned();
        all.extend(["--json", &text]);
        let ran = self.run(&all);
        assert!(path.exists(), "no record was written\n{ran:?}");
        (ran, read_record(&path))
    }

    /// Every name in the working directory with its size, time of change and content, sorted.
    pub(crate) fn listing(&self) -> Vec<String> {
        listing(self.root())
    }
}

/// Every name under a directory with its size, time of change and content, sorted.
pub(crate) fn listing(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        let metadata = entry.metadata().expect("metadata");
        let content = if metadata.is_file() { hash(&fs::read(entry.path()).expect("content")) } else { 0 };
        let changed = metadata.modified().expect("a time");
        names.push(format!("{:?} {} {changed:?} {content:016x}", entry.file_name(), metadata.len()));
    }
    names.sort();
    names
}

pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn read_record(path: &Path) -> RunRecord {
    let text = fs::read_to_string(path).expect("a record");
    trueio_report::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// How the program ended, and what it said.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Asserts a refusal: exit code 2, nothing on stdout, and what stderr holds.
    #[track_caller]
    pub(crate) fn assert_refused(&self, sentences: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{self:?}");
        for sentence in sentences {
            assert!(self.err.contains(sentence), "`{sentence}` is not said\n{self:?}");
        }
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:?}");
    }

    /// The text of stdout with its lines joined, so that a sentence may be looked for.
    pub(crate) fn out_joined(&self) -> String {
        joined(&self.out)
    }
}

/// Lines and indents become single spaces.
pub(crate) fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {:?}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
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
            // An I/O that failed was handed over, too.
            let handed_over = ios..=ios + op.error_count;
            assert!(
                counts.0 == 0 || handed_over.contains(&counts.0),
                "{} {}: slat holds {}",
                job.name,
                op.op,
                counts.0
            );
        }
    }
}

pub(crate) fn tool(name: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(name).args(arguments).output().map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{name} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// The installed fio, to be run in the sandbox; `None`, with the reason printed, where there is none.
pub(crate) fn real_fio(sandbox: &Sandbox, line: &str) -> Option<Command> {
    if let Err(reason) = tool("fio", &["--version"]) {
        eprintln!("skipped: {reason}");
        return None;
    }
    let mut command = Command::new("fio");
    command.args(line.split_whitespace()).current_dir(sandbox.root());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

/// A loop device over a sparse file; detached when dropped.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) device: String,
    pub(crate) backing: PathBuf,
}

impl Loop {
    pub(crate) fn new(sandbox: &Sandbox, name: &str, bytes: u64) -> Self {
        let backing = sandbox.aside(name);
        fs::File::create(&backing).and_then(|f| f.set_len(bytes)).expect("a sparse file");
        Self::over(&backing, &[])
    }

    /// A loop device over a file or device that exists.
    pub(crate) fn over(backing: &Path, options: &[&str]) -> Self {
        let all = [&["--find", "--show"], options, &[backing.to_str().expect("UTF-8")]].concat();
        let device = tool("losetup", &all).expect("a loop device");
        Self { device, backing: backing.to_owned() }
    }

    /// What its backing file holds, as a number that changes with it.
    pub(crate) fn content(&self) -> u64 {
        hash(&fs::read(&self.backing).expect("content"))
    }

    pub(crate) fn make_ext4(&self) {
        // What is left for later, the kernel would write while a test measures.
        let at_once = "lazy_itable_init=0,lazy_journal_init=0";
        tool("mkfs.ext4", &["-q", "-F", "-E", at_once, &self.device]).expect("a filesystem");
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Err(error) = tool("losetup", &["--detach", &self.device]) {
            eprintln!("{error}");
        }
    }
}

/// A mount; unmounted when dropped.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) path: PathBuf,
}

impl Mount {
    pub(crate) fn try_new(kind: &str, options: &str, source: &str, path: &Path) -> Result<Self, String> {
        fs::create_dir_all(path).expect("a mount point");
        tool("mount", &["-t", kind, "-o", options, source, path.to_str().expect("UTF-8")])?;
        Ok(Self { path: path.to_owned() })
    }

    pub(crate) fn tmpfs(sandbox: &Sandbox, name: &str, size: &str) -> Self {
        Self::try_new("tmpfs", &format!("size={size}"), "none", &sandbox.path(name)).expect("a tmpfs")
    }

    pub(crate) fn bind(sandbox: &Sandbox, name: &str, source: &Path) -> Self {
        let path = sandbox.path(name);
        fs::create_dir_all(&path).expect("a mount point");
        tool("mount", &["--bind", source.to_str().expect("UTF-8"), path.to_str().expect("UTF-8")]).expect("a mount");
        Self { path }
    }

    pub(crate) fn ext4(sandbox: &Sandbox, name: &str, device: &str) -> Self {
        Self::try_new("ext4", "defaults", device, &sandbox.path(name)).expect("a mount")
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let path = self.path.to_str().expect("UTF-8");
        if let Err(error) = tool("umount", &[path]).or_else(|_| tool("umount", &["--lazy", path])) {
            eprintln!("{error}");
        }
    }
}

/// The program while it runs; killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self { child: Some(command.spawn().expect("the program starts")) }
    }

    /// The process.
    pub(crate) fn id(&self) -> libc::pid_t {
        self.child.as_ref().expect("it runs").id() as libc::pid_t
    }

    pub(crate) fn signal(&self, signal: libc::c_int) {
        // SAFETY: our own child, which is not reaped before `wait`.
        let result = unsafe { libc::kill(self.id(), signal) };
        assert_eq!(result, 0, "the program is gone already");
    }

    /// Waits until a job has done an I/O: `log` is one of its logs, which is written while it runs.
    pub(crate) fn wait_for_io(&self, log: &Path) {
        self.wait_until("an I/O in the log", || fs::metadata(log).is_ok_and(|log| log.len() > 0));
    }

    /// Waits until so many workers with `name` in their names were seen, one after the other or beside each other: where each
    /// slice or sample has a worker of its own, this says how far it came.
    pub(crate) fn wait_for_workers(&self, name: &str, count: usize) {
        let threads = format!("/proc/{}/task", self.id());
        let seen = std::cell::RefCell::new(std::collections::BTreeSet::new());
        self.wait_until("so many workers", || {
            let entries = fs::read_dir(&threads).into_iter().flatten().flatten();
            seen.borrow_mut().extend(entries.filter_map(|entry| {
                let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
                comm.contains(name).then(|| entry.file_name())
            }));
            seen.borrow().len() >= count
        });
    }

    /// True if it has ended; it is reaped only by `wait`.
    fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        // The state stands behind the name, which ends at the last parenthesis: proc_pid_stat(5).
        stat.rsplit(')')
            .next()
            .and_then(|rest| rest.trim_start().chars().next())
            .is_none_or(|state| "ZX".contains(state))
    }

    /// Waits until the program holds an unlinked file of at least `bytes` (its test file).
    pub(crate) fn wait_for_test_file(&self, bytes: u64) {
        let descriptors = format!("/proc/{}/fd", self.id());
        self.wait_until("a test file", || {
            let Ok(entries) = fs::read_dir(&descriptors) else { return false };
            entries.flatten().any(|entry| {
                let deleted = fs::read_link(entry.path()).is_ok_and(|p| p.to_string_lossy().ends_with(" (deleted)"));
                deleted && fs::metadata(entry.path()).is_ok_and(|m| m.len() >= bytes)
            })
        });
    }

    /// Waits until a worker's thread runs: threads are named after their job.
    pub(crate) fn wait_for_worker(&self, name: &str) {
        let threads = format!("/proc/{}/task", self.id());
        self.wait_until("a worker", || {
            let Ok(entries) = fs::read_dir(&threads) else { return false };
            entries.flatten().any(|entry| {
                fs::read_to_string(entry.path().join("comm")).is_ok_and(|comm| comm.trim().starts_with(name))
            })
        });
    }

    /// Waits for a condition; the limit is for a program that hangs, not for a machine that is busy.
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(180);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what} did not appear");
            assert!(!self.has_ended(), "the program ended before {what} appeared");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end; the signal that ended it, if one did.
    pub(crate) fn wait(mut self) -> (Ran, Option<i32>) {
        use std::os::unix::process::ExitStatusExt;
        let output = self.child.take().expect("it runs").wait_with_output().expect("its end");
        let signal = output.status.signal();
        (Ran::of(output), signal)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a command with stdout and stderr on a terminal of 24 lines and `columns` columns; returns
/// what the terminal got, and the exit code.
pub(crate) fn on_terminal(mut command: Command, columns: u16) -> (String, Option<i32>) {
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the two numbers and the size are ours; a name and settings are not asked for.
    let result = unsafe {
        libc::openpty(&mut master, &mut slave, std::ptr::null_mut(), std::ptr::null_mut(), (&raw const size).cast_mut())
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty made both descriptors for us, and nobody else has them.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    // SAFETY: a plain call on our own descriptor.
    unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    command.stdout(slave.try_clone().expect("a descriptor")).stderr(slave);
    let mut child = command.spawn().expect("the program starts");
    // The command holds the last copies of our end of the terminal.
    drop(command);
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    let mut reader = fs::File::from(master);
    // EIO says that nobody writes any more: pty(7).
    while let Ok(n) = reader.read(&mut piece) {
        if n == 0 {
            break;
        }
        text.extend_from_slice(&piece[..n]);
    }
    let code = child.wait().expect("its end").code();
    (String::from_utf8_lossy(&text).into_owned(), code)
}
