//! The server: listens, and starts a session for each connection.
//!
//! SIGINT, SIGTERM and SIGHUP end it, and the running sessions with it; these send their results until then. They are held
//! from before the first file is created until they are handled, so that the server removes its socket, its token and
//! the file of its process number whenever they arrive.

use super::ledger::{Ledger, SESSIONS_MAX, Share};
use super::process::{
    ALLOW_CONTENTS, ALLOW_PRIORITY, ALLOW_USER, LISTEN, NO_SANDBOX, OWN_TOKEN, SESSION, TOKEN, stdin,
};
use super::sandbox::Sandbox;
use super::stream::{Listener, Stream};
use crate::command::program::Program;
use crate::command::refused;
use crate::language::{Serve, Settings};
use crate::wire::Address;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, geteuid, kill_process, setsid, test_kill_process};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use trueio_cluster::token::Token;
use trueio_files::shared_directory;
use trueio_job::Content;
use trueio_report::message;
use trueio_run::{Before, OutputFile, hold_signals, random_id, watch_signals};

/// Pause after `accept` fails for lack of descriptors or memory.
const SHORT_WAIT: Duration = Duration::from_millis(200);
/// A process number has fewer bytes than this, also with a newline.
const PID_BYTES_MAX: u64 = 32;
/// This program, even if its file was replaced since.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// `--server`.
pub(in crate::command) fn serve(serve: &Serve, settings: &Settings, program: &Program) -> ExitCode {
    let address = match Address::parse(serve.address.as_deref().unwrap_or("")) {
        Ok(address) => address,
        Err(reason) => return refused(&format!("`--server`: {reason}")),
    };
    if let Some(path) = &serve.pid_file
        && let Some(pid) = running(Path::new(path))
    {
        return refused(&format!("`--daemonize={path}`: the process {pid} that it names is running"));
    }
    let mut permits = permits_of(serve, settings);
    let sandbox = match Sandbox::open(&serve.readable, &serve.writable, &permits) {
        Ok(sandbox) => sandbox,
        Err(error) => return refused(&format!("the server was not started\n  because: {error}")),
    };
    if let Some(reason) = sandbox.objection() {
        return refused(&format!("the server was not started\n  because: {reason}"));
    }
    if let Some(note) = sandbox.note() {
        message!("note: {note}");
    }
    if serve.token.is_some() && matches!(address, Address::Socket(_)) {
        return refused(
            "`--token` is for TCP addresses\n  because: a socket in the file system is for processes of the server's user, \
             without a token\n\nhint: leave it out",
        );
    }
    if let Some(reason) = objection_to_users(serve, &address) {
        return refused(&reason);
    }
    // The descriptors stay open, as `sandbox`, as long as this process; a server in the background inherits them, too.
    match sandbox.bequeathed() {
        Ok(words) => permits.extend(words),
        Err(error) => return refused(&format!("the server was not started\n  because: {error}")),
    }
    let signals = hold_signals();
    let listener = match Listener::bind(&address, !serve.users.is_empty()) {
        Ok(listener) => listener,
        Err(error) => return refused(&format!("the server cannot listen on {address}\n  because: {error}")),
    };
    let place = listener.place(&address);
    let socket = if let Address::Socket(path) = &address { path.as_str() } else { "" };
    let token = match token_word(serve, &listener) {
        Ok(token) => token,
        Err(reason) => {
            remove_own(socket, "", std::process::id(), &permits);
            return refused(&format!("the server was not started on {place}\n  because: {reason}"));
        }
    };
    let at = token.as_ref().and_then(|word| word.split_once('=')).map(|(_, path)| format!(" (token: {path})"));
    permits.extend(token);
    if let Err(text) = (program.print)(&format!("fio: server listening on {place}{}\n", at.unwrap_or_default())) {
        remove_own(socket, "", std::process::id(), &permits);
        return refused(&text);
    }
    match &serve.pid_file {
        None => attend(&listener, socket, "", &permits),
        Some(path) => match into_background(listener, socket, path, &permits) {
            Ok(mut server) => {
                // It was meant for both: the server may have got it, or may have ended before its number was written.
                if signals.has_arrived() {
                    terminate(&server);
                    let _ = server.wait();
                    remove_own(socket, path, server.id(), &permits);
                }
                ExitCode::SUCCESS
            }
            Err(reason) => {
                remove_own(socket, "", std::process::id(), &permits);
                refused(&format!("the server cannot go into the background\n  because: {reason}"))
            }
        },
    }
}

/// Returns what is wrong with the users of the command line.
fn objection_to_users(serve: &Serve, address: &Address) -> Option<String> {
    if let Some(user) = serve.users.iter().find(|user| user.parse::<u32>().is_err()) {
        return Some(format!("`--allow-user={user}`: it is not the number of a user\n\nhint: `id -u NAME` prints it"));
    }
    (!serve.users.is_empty() && !matches!(address, Address::Socket(_))).then(|| {
        "`--allow-user` is for a socket\n  because: over TCP the user of a client is unknown\n\nhint: use \
         `--server=sock:PATH`, or give the token's file to that user"
            .to_owned()
    })
}

/// Returns the word that names the file with the token, after it was read or created; `None` for a Unix socket.
fn token_word(serve: &Serve, listener: &Listener) -> Result<Option<String>, String> {
    let Some(address) = listener.internet_address().map_err(|error| error.to_string())? else { return Ok(None) };
    if let Some(path) = &serve.token {
        Token::read(Path::new(path)).map_err(|error| error.explained(None))?;
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        return Ok(Some(format!("{TOKEN}{}", path.display())));
    }
    if !address.ip().to_canonical().is_loopback() {
        return Err("clients of other machines need a token\n\nhint: create one with \
                    `(umask 077; openssl rand -hex 32 > FILE)`, start the server with `--token FILE`, and copy the file to \
                    its clients"
            .to_owned());
    }
    let created = Token::create(super::OWN_TOKENS, address)
        .map_err(|error| error.explained(Some("name a token with `--token FILE`")))?;
    Ok(Some(format!("{OWN_TOKEN}{}", created.display())))
}

/// Returns what sessions may do besides using files, as words of their command lines.
fn permits_of(serve: &Serve, settings: &Settings) -> Vec<String> {
    let mut permits = serve.permits.clone();
    permits.extend(serve.users.iter().map(|user| format!("{ALLOW_USER}{user}")));
    permits.extend(serve.sends_contents.then(|| ALLOW_CONTENTS.to_owned()));
    permits.extend(serve.allows_priority.then(|| ALLOW_PRIORITY.to_owned()));
    permits.extend(serve.is_unconfined.then(|| NO_SANDBOX.to_owned()));
    permits.extend(settings.is_readonly.then(|| "--readonly".to_owned()));
    permits.extend(settings.allows_exec.then(|| "--allow-exec".to_owned()));
    permits
}

/// Returns the process that a PID file names, if it is running.
fn running(path: &Path) -> Option<i32> {
    let pid = trueio_files::read_text(path, PID_BYTES_MAX).ok()?.trim().parse::<i32>().ok()?;
    // A number below 1 names a group, or all processes.
    let named = Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
    is_there(test_kill_process(named)).then_some(pid)
}

/// Interprets the result of kill(2) with signal 0: a process of another user exists, too.
fn is_there(answer: rustix::io::Result<()>) -> bool {
    matches!(answer, Ok(()) | Err(Errno::PERM))
}

/// Starts the server in the background, with the listener, and writes its process number.
fn into_background(listener: Listener, socket: &str, pid_file: &str, permits: &[String]) -> Result<Child, String> {
    let absolute = |path: &str| std::path::absolute(path).map(|path| path.to_string_lossy().into_owned());
    let (socket, pid_path) = match socket {
        "" => (String::new(), absolute(pid_file)),
        socket => (absolute(socket).map_err(|error| error.to_string())?, absolute(pid_file)),
    };
    let pid_path = pid_path.map_err(|error| error.to_string())?;
    let mut file = pid_file_at(&pid_path).map_err(|error| format!("`{pid_file}` cannot be written: {error}"))?;
    let (word, fd) = listener.into_fd();
    let mut child = Command::new(THIS_PROGRAM)
        .args(["fio", LISTEN, word, &socket, &pid_path])
        .args(permits)
        .stdin(Stdio::from(fd))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Err(error) = writeln!(file, "{}", child.id()) {
        let _ = child.kill();
        return Err(format!("`{pid_file}` cannot be written: {error}"));
    }
    Ok(child)
}

/// Opens the file for the process number: a new one, or the empty one or the number that an earlier server left.
fn pid_file_at(path: &str) -> std::io::Result<File> {
    let file = OutputFile::open(path, Content::Printed, Before::Unknown)?.appended();
    // Read through the descriptor: the name may refer to another file by now.
    let mut text = String::new();
    let readable = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let is_text = readable.take(PID_BYTES_MAX).read_to_string(&mut text).is_ok();
    if !is_text || !(text.trim().is_empty() || text.trim().parse::<i32>().is_ok()) {
        let why = "it holds something other than a process number; name another file, or remove it";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
    }
    file.set_len(0)?;
    Ok(file)
}

/// Removes a server's socket, the token that it created and the file with its process number `pid`, and no other file that
/// took the name meanwhile.
fn remove_own(socket: &str, pid_file: &str, pid: u32, permits: &[String]) {
    for path in permits.iter().filter_map(|word| word.strip_prefix(OWN_TOKEN)) {
        let _ = std::fs::remove_file(path);
    }
    let is_socket = std::fs::symlink_metadata(socket).is_ok_and(|found| found.file_type().is_socket());
    if is_socket {
        let _ = std::fs::remove_file(socket);
    }
    let is_ours = std::fs::symlink_metadata(pid_file).is_ok_and(|found| found.is_file() && found.len() < PID_BYTES_MAX)
        && std::fs::read_to_string(pid_file).is_ok_and(|text| text.trim() == pid.to_string());
    if is_ours {
        let _ = std::fs::remove_file(pid_file);
    }
}

/// Runs a server in the background, which inherits the listener from the first process.
pub(in crate::command) fn listen(words: &[String]) -> ExitCode {
    let [word, socket, pid_file, permits @ ..] = words else {
        return refused("this is an internal command of the server");
    };
    let Some(listener) = stdin().and_then(|fd| Listener::from_fd(word, fd)) else {
        return refused("standard input is not a listening socket");
    };
    // Leaves the terminal's session. It fails only if this process already leads a session.
    let _ = setsid();
    attend(&listener, socket, pid_file, permits)
}

/// The beginning of the name of a session's directory.
const OF_SESSION: &str = "trueio-session-";
/// A session locks its directory sooner after its creation.
const UNLOCKED: Duration = Duration::from_secs(60);

/// A running session.
struct Session {
    child: Child,
    /// Its place in the ledger.
    slot: usize,
    /// Its directory, if it has made it.
    directory: PathBuf,
}

/// The sessions of a server.
struct Sessions {
    running: Vec<Session>,
    ledger: Ledger,
}

impl Sessions {
    fn new() -> std::io::Result<Self> {
        let ledger = Ledger::create(Share::of_machine())?;
        Ok(Self { running: Vec::new(), ledger })
    }

    /// Starts a session for a connection.
    fn begin(&mut self, stream: Stream, permits: &[String]) {
        let is_free = |slot: &usize| self.running.iter().all(|session| session.slot != *slot);
        let Some(slot) = (0..SESSIONS_MAX).find(is_free) else {
            self.note(&format!("fio: a client was turned away: {SESSIONS_MAX} sessions are running already"));
            return;
        };
        // Nobody can guess it, and take it before the session does.
        let name = format!("{OF_SESSION}{}", random_id());
        let directory = match directory_of_sessions() {
            Ok(directory) => directory.join(name),
            Err(error) => return self.note(&format!("fio: a session cannot be started: {error}")),
        };
        let (word, fd) = stream.into_fd();
        let child = Command::new(THIS_PROGRAM)
            .args(["fio", SESSION, word, &self.ledger.number().to_string(), &slot.to_string()])
            .arg(&directory)
            .args(permits)
            .stdin(Stdio::from(fd))
            // Only the server gets the terminal's signals; it ends its sessions.
            .process_group(0)
            .spawn();
        match child {
            Ok(child) => self.running.push(Session { child, slot, directory }),
            Err(error) => self.note(&format!("fio: a session cannot be started: {error}")),
        }
    }

    /// Prints a line about a client, unless there were too many.
    fn note(&self, line: &str) {
        super::note(&self.ledger, line);
    }

    /// Reaps the sessions that have ended.
    fn reap(&mut self) {
        let Self { running, ledger } = self;
        running.retain_mut(|session| match session.child.try_wait() {
            Ok(None) => true,
            _ => {
                clear(session, ledger);
                false
            }
        });
    }

    /// Ends all sessions, and waits for them.
    fn end(&mut self) {
        self.running.iter().for_each(|session| terminate(&session.child));
        for session in &mut self.running {
            let _ = session.child.wait();
            clear(session, &self.ledger);
        }
    }
}

/// Returns the directory of the sessions' directories, where no other user can exchange them. Absolute: a session changes its working
/// directory.
fn directory_of_sessions() -> std::io::Result<PathBuf> {
    shared_directory(&std::env::temp_dir()).map_err(Into::into).and_then(|found| found.path())
}

/// Removes the directories of sessions that were killed together with their server.
fn remove_abandoned(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(OF_SESSION.as_bytes())) {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(opened) = rustix::fs::open(entry.path(), flags, Mode::empty()).map(File::from) else { continue };
        let is_old = |found: std::fs::Metadata| {
            let age = found.modified().ok().and_then(|then| then.elapsed().ok());
            found.uid() == geteuid().as_raw() && age.is_some_and(|age| age > UNLOCKED)
        };
        if opened.metadata().is_ok_and(is_old) && opened.try_lock().is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns what an ended session took: its share, and its directory, which it could not remove if it crashed or was killed.
fn clear(session: &Session, ledger: &Ledger) {
    ledger.give_back(session.slot);
    let is_ours = |found: std::fs::Metadata| found.is_dir() && found.uid() == geteuid().as_raw();
    // A link of that name is not followed.
    if std::fs::symlink_metadata(&session.directory).is_ok_and(is_ours) {
        let _ = std::fs::remove_dir_all(&session.directory);
    }
}

/// Accepts connections until a signal arrives.
fn attend(listener: &Listener, socket: &str, pid_file: &str, permits: &[String]) -> ExitCode {
    let stop = watch_signals();
    if let Ok(directory) = directory_of_sessions() {
        remove_abandoned(&directory);
    }
    let mut sessions = match listener.never_wait().and_then(|()| Sessions::new()) {
        Ok(sessions) => sessions,
        Err(error) => {
            remove_own(socket, pid_file, std::process::id(), permits);
            return refused(&format!("the server cannot listen\n  because: {error}"));
        }
    };
    let wait = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    while !stop.load(Relaxed) {
        sessions.reap();
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&wait));
        match listener.accept() {
            Ok(stream) => sessions.begin(stream, permits),
            Err(error) => {
                // The client is gone already: nothing to do. Without a free descriptor or memory the client stays in
                // the queue, and this loop must not spin.
                let is_short =
                    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM));
                if is_short {
                    std::thread::sleep(SHORT_WAIT);
                }
            }
        }
    }
    sessions.end();
    remove_own(socket, pid_file, std::process::id(), permits);
    ExitCode::SUCCESS
}

/// Sends SIGTERM to a process that was not waited for.
fn terminate(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only directories that no session has are removed.
    #[test]
    fn directories_of_killed_sessions_are_removed_and_no_others() {
        let folder = tempfile::tempdir().expect("a directory");
        let make = |name: &str, is_old: bool| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).expect("a directory");
            std::fs::write(path.join("log"), "1").expect("a file");
            let opened = File::open(&path).expect("a directory");
            if is_old {
                opened.set_modified(std::time::SystemTime::now() - 2 * UNLOCKED).expect("a time");
            }
            opened
        };
        let killed = make("trueio-session-killed", true);
        drop(killed);
        let running = make("trueio-session-running", true);
        running.try_lock_shared().expect("it is free");
        make("trueio-session-begins", false);
        make("another", true);
        std::os::unix::fs::symlink("another", folder.path().join("trueio-session-link")).expect("a link");
        remove_abandoned(folder.path());
        let mut left: Vec<_> = std::fs::read_dir(folder.path()).expect("a directory").flatten().collect();
        left.sort_by_key(std::fs::DirEntry::file_name);
        let left: Vec<_> = left.iter().map(|entry| entry.file_name().into_string().expect("a name")).collect();
        assert_eq!(left, ["another", "trueio-session-begins", "trueio-session-link", "trueio-session-running"]);
        assert!(folder.path().join("another/log").exists());
    }

    #[test]
    fn a_pid_file_names_a_running_process_only_by_a_positive_number() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("pid");
        let of = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            running(&path)
        };
        let own = std::process::id() as i32;
        assert_eq!(of(&format!("{own}\n")), Some(own));
        // Negative numbers name the group of this process, and all processes.
        assert_eq!(
            (of(&format!("-{own}")), of("-1"), of("0"), of("no number"), of("")),
            (None, None, None, None, None)
        );
        assert!(is_there(Ok(())) && is_there(Err(Errno::PERM)), "another user's is there");
        assert!(!is_there(Err(Errno::SRCH)));
    }

    #[test]
    fn a_file_that_holds_something_else_is_neither_truncated_nor_removed() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("pid");
        let name = path.to_str().expect("a path");
        for text in ["", "1234\n"] {
            std::fs::write(&path, text).expect("a file");
            pid_file_at(name).expect("it may be replaced");
            assert_eq!(std::fs::read(&path).expect("it exists"), b"", "{text:?}");
        }
        for text in ["A thesis\n", "1234 and more\n", &"1".repeat(100)] {
            std::fs::write(&path, text).expect("a file");
            assert!(pid_file_at(name).is_err(), "{text:?}");
            remove_own(name, name, std::process::id(), &[]);
            assert_eq!(std::fs::read_to_string(&path).expect("it exists"), text);
        }
        std::fs::write(&path, format!("{}\n", std::process::id())).expect("a file");
        remove_own("", name, std::process::id(), &[]);
        assert!(!path.exists());
    }
}
