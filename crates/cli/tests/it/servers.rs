//! Servers and clients of `trueio fio` for tests: a server that ends on drop, and waits with a limit.

use crate::common::*;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A job with 500 I/Os per second on the engine `null`, which runs until it is stopped.
pub(crate) const ENDLESS: &str = "[long]\nioengine=null\nrw=read\nsize=1g\nrate_iops=500\nruntime=1h\ntime_based\n";

/// Time limit of waits: only a machine that stands still exceeds it.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn signal(pid: u32, signal: libc::c_int) {
    // SAFETY: a plain call; the process is one that a test started and has not waited for.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

/// Returns true if a process has a handler for a signal.
pub(crate) fn catches(pid: u32, signal: libc::c_int) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Returns the running child processes of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let is_running = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_running).collect()
}

/// A server in a separate directory, ended on drop.
pub(crate) struct Server {
    pub(crate) sandbox: Sandbox,
    /// The directory of the socket, which needs a short path, and of logs until they are sent.
    pub(crate) place: tempfile::TempDir,
    pub(crate) child: Child,
    /// The address, as clients write it.
    pub(crate) address: String,
    /// The file with its token, if it listens on a TCP address.
    pub(crate) token: Option<String>,
    pub(crate) errors: PathBuf,
}

impl Server {
    /// Starts a server on a socket, with further options; its clients may write below its directory.
    pub(crate) fn start(words: &str) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let address = format!("sock:{}", place.path().join("s").display());
        Self::at(place, &address, words)
    }

    /// Starts a server on an address, whose clients may write below its directory.
    pub(crate) fn at(place: tempfile::TempDir, address: &str, words: &str) -> Self {
        Self::of(Sandbox::new(), place, address, &format!("--allow-write=. {words}"))
    }

    /// Starts a server on an address, in a directory with files, with these permissions only.
    pub(crate) fn of(sandbox: Sandbox, place: tempfile::TempDir, address: &str, words: &str) -> Self {
        Self::begun(sandbox, place, address, words, |command| command)
    }

    /// Starts a server on a socket. It and its sessions together are permitted this number of descriptors.
    pub(crate) fn with_descriptors(count: u64) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let address = format!("sock:{}", place.path().join("s").display());
        Self::begun(Sandbox::new(), place, &address, "--allow-write=.", |command| {
            let limit = libc::rlimit { rlim_cur: count, rlim_max: count };
            // SAFETY: one system call, on a value that the closure owns.
            unsafe {
                command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                })
            }
        })
    }

    fn begun(
        sandbox: Sandbox,
        place: tempfile::TempDir,
        address: &str,
        words: &str,
        prepare: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let server = format!("--server={address}");
        let mut arguments = vec!["fio", &server];
        arguments.extend(words.split_whitespace());
        let errors = place.path().join("errors");
        let mut command = sandbox.command(&arguments);
        let mut child = prepare(&mut command)
            .env("TMPDIR", place.path())
            .stderr(fs::File::create(&errors).expect("a file"))
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let error_text = fs::read_to_string(&errors).unwrap_or_default();
        let address =
            line.trim().strip_prefix("fio: server listening on ").unwrap_or_else(|| panic!("{line}{error_text}"));
        let (address, token) = match address.strip_suffix(')').and_then(|line| line.split_once(" (token: ")) {
            Some((address, token)) => (address, Some(token.to_owned())),
            None => (address, None),
        };
        Self { address: address.to_owned(), token, sandbox, place, child, errors }
    }

    pub(crate) fn client(&self) -> String {
        format!("--client={}", self.address)
    }

    /// The option with its token, for a client.
    pub(crate) fn with_token(&self) -> String {
        format!("--token={}", self.token.as_deref().expect("it listens on a TCP address"))
    }

    /// The name of the server in results.
    pub(crate) fn hostname(&self) -> &str {
        self.address.strip_prefix("sock:").unwrap_or(&self.address)
    }

    /// The suffix of the names of its logs.
    pub(crate) fn log_name(&self) -> String {
        self.hostname().replace('/', "_")
    }

    /// The text that it printed on stderr.
    pub(crate) fn error_text(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    pub(crate) fn sessions(&self) -> Vec<u32> {
        children(self.child.id())
    }

    /// The existing directories of logs.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        listing(self.place.path()).into_iter().filter(|name| name.contains("trueio-session")).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        signal(self.child.id(), libc::SIGTERM);
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > LIMIT {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub(crate) fn fio(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    sandbox.run(&[&["fio"], arguments].concat())
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(crate) fn stats(document: &Value) -> &Vec<Value> {
    document["client_stats"].as_array().expect("client_stats")
}

/// Starts a client with a long job, and waits until its logs grow.
pub(crate) fn begin_long(here: &Sandbox, servers: &[&Server], words: &[&str]) -> Child {
    begin_job(here, ENDLESS, servers, words)
}

/// The same with a job that runs until it is stopped.
pub(crate) fn begin_job(here: &Sandbox, job: &str, servers: &[&Server], words: &[&str]) -> Child {
    here.write("long.fio", format!("{job}write_lat_log=l\n"));
    let clients: Vec<String> = servers.iter().map(|server| server.client()).collect();
    let mut arguments = vec!["fio", "long.fio"];
    arguments.extend(clients.iter().map(String::as_str));
    arguments.extend(words);
    let client = here.command(&arguments).spawn().expect("the client starts");
    for server in servers {
        let log = here.path(&format!("l_lat.1.log.{}", server.log_name()));
        wait_until("the log grows while the job runs", || {
            fs::read_to_string(&log).is_ok_and(|text| text.lines().count() > 20)
        });
    }
    client
}

/// Waits for a client to end and returns its output.
pub(crate) fn ended(mut client: Child) -> Ran {
    wait_until("the client ends", || !matches!(client.try_wait(), Ok(None)));
    Ran::of(client.wait_with_output().expect("its output"))
}
