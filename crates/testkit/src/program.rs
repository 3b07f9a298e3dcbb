//! The harness of the built program: a sandbox to run it in, what it printed, and a program that still runs.

use crate::documents::validate_documents;
use crate::{Loop, Mount, folder, listing};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A working directory for the program, and a folder for its history and outputs.
///
/// Its methods panic where a file or the program cannot be had.
#[derive(Debug)]
pub struct Sandbox {
    directory: tempfile::TempDir,
    data: tempfile::TempDir,
}

impl Sandbox {
    /// A sandbox with two empty folders.
    pub fn new() -> Self {
        Self { directory: folder(), data: folder() }
    }

    /// The working directory of the program.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// A path in the working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A path for outputs outside of the working directory.
    pub fn aside(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    /// Writes a file of the working directory.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a file of the sandbox");
        path
    }

    /// A file of `bytes` bytes, written and flushed; no two of its blocks are equal.
    pub fn data_file(&self, name: &str, bytes: usize) -> PathBuf {
        let mut content = vec![0x5a; bytes];
        for (index, block) in content.chunks_mut(512).enumerate() {
            block[..8].copy_from_slice(&(index as u64).to_le_bytes());
        }
        let path = self.write(name, content);
        fs::File::open(&path).and_then(|f| f.sync_all()).expect("a flush");
        path
    }

    /// The program with arguments, in the sandbox, with a history of its own.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let program = std::env::var_os("CARGO_BIN_EXE_trueio")
            .expect("cargo names the program in integration tests of its crate");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.root())
            .env("XDG_DATA_HOME", self.data.path())
            .env("XDG_RUNTIME_DIR", self.data.path())
            .env("LC_ALL", "C.UTF-8")
            // A test suite keeps the processors busy: its honest runs wait for them, and are suspect, not withheld.
            .env("TRUEIO_ACCEPT", "processor_wait")
            .env_remove("NO_COLOR")
            // cargo's: below a directory that others can change, root loads no launcher's library with it.
            .env_remove("LD_LIBRARY_PATH")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end. Its documents are validated against `docs/schema/`.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let ran = Ran::of(self.command(arguments).output().expect("the program starts"));
        validate_documents(arguments, &ran.out, self.root());
        ran
    }

    /// Every name in the working directory with its size, time of change and content, sorted.
    pub fn listing(&self) -> Vec<String> {
        listing(self.root())
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Loop {
    /// A loop device over a new sparse file next to a sandbox.
    ///
    /// # Panics
    /// If there is none: the test calls [`crate::lacks`] first.
    #[track_caller]
    pub fn new(sandbox: &Sandbox, name: &str, bytes: u64) -> Self {
        let backing = sandbox.aside(name);
        fs::File::create(&backing).and_then(|file| file.set_len(bytes)).expect("a sparse file");
        Self::over(&backing, &[])
    }
}

/// Mounts in a sandbox; they panic, so the test calls [`crate::lacks`] first.
impl Mount {
    /// A tmpfs.
    #[track_caller]
    pub fn tmpfs(sandbox: &Sandbox, name: &str, size: &str) -> Self {
        Self::try_new("tmpfs", &format!("size={size}"), "none", &sandbox.path(name)).expect("a tmpfs")
    }

    /// A directory under a second name.
    #[track_caller]
    pub fn bind(sandbox: &Sandbox, name: &str, source: &Path) -> Self {
        Self::try_bind(&sandbox.path(name), source).expect("a mount")
    }

    /// The ext4 filesystem on a device.
    #[track_caller]
    pub fn ext4(sandbox: &Sandbox, name: &str, device: &str) -> Self {
        Self::try_new("ext4", "", device, &sandbox.path(name)).expect("a mount")
    }
}

/// A run of the program that has ended.
pub struct Ran {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// From what `std` collected.
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Asserts a refusal: exit code 2, nothing on stdout, and these sentences on stderr.
    #[track_caller]
    pub fn assert_refused(&self, sentences: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{self:?}");
        for sentence in sentences {
            assert!(self.err.contains(sentence), "`{sentence}` is missing\n{self:?}");
        }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:?}");
    }

    /// Standard output with its lines joined, to search for a sentence.
    pub fn out_joined(&self) -> String {
        joined(&self.out)
    }
}

/// Joins lines: line ends and indents become single spaces.
pub fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {:?}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// The program while it runs; killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Option<Child>,
}

impl Running {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        Self { child: Some(command.spawn().expect("the program starts")) }
    }

    /// The process number.
    pub fn id(&self) -> libc::pid_t {
        self.child.as_ref().expect("it runs").id() as libc::pid_t
    }

    /// Sends a signal.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: our own child, which is not reaped before `wait`.
        let result = unsafe { libc::kill(self.id(), signal) };
        assert_eq!(result, 0, "the program is gone already");
    }

    /// Waits until a job has done an I/O: `log` is one of its logs, which is written while it runs.
    pub fn wait_for_io(&self, log: &Path) {
        self.wait_until("an I/O in the log", || fs::metadata(log).is_ok_and(|log| log.len() > 0));
    }

    /// Waits until `count` workers with `name` in their names were seen, one after the other or together: where each
    /// slice or sample has its own worker, that is its progress.
    pub fn wait_for_workers(&self, name: &str, count: usize) {
        let threads = format!("/proc/{}/task", self.id());
        let seen = std::cell::RefCell::new(std::collections::BTreeSet::new());
        self.wait_until(&format!("worker number {count}"), || {
            let entries = fs::read_dir(&threads).into_iter().flatten().flatten();
            // The first thread has the name of the test's until the kernel has loaded the program.
            let entries = entries.filter(|entry| entry.file_name() != *self.id().to_string());
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
        // The state follows the name, which ends at the last parenthesis: proc_pid_stat(5).
        stat.rsplit(')')
            .next()
            .and_then(|rest| rest.trim_start().chars().next())
            .is_none_or(|state| "ZX".contains(state))
    }

    /// Waits until the program holds an unlinked file of at least `bytes` (its test file).
    pub fn wait_for_test_file(&self, bytes: u64) {
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
    pub fn wait_for_worker(&self, name: &str) {
        let threads = format!("/proc/{}/task", self.id());
        self.wait_until("a worker", || {
            let Ok(entries) = fs::read_dir(&threads) else { return false };
            entries.flatten().any(|entry| {
                fs::read_to_string(entry.path().join("comm")).is_ok_and(|comm| comm.trim().starts_with(name))
            })
        });
    }

    /// Waits for a condition; the limit is for a program that hangs, not for a machine that is busy.
    pub fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(180);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what} did not appear");
            assert!(!self.has_ended(), "the program ended before {what} appeared");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end; returns the signal that ended it, too.
    pub fn wait(mut self) -> (Ran, Option<i32>) {
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
