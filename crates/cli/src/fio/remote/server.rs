//! The server: listens, and starts a session for each connection.
//!
//! It ends with SIGINT, SIGTERM or SIGHUP; sessions that run then end, too, with the results until then.

use super::super::refused;
use super::session::SESSION;
use super::stream::Listener;
use crate::output;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, setsid, test_kill_process};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use trueio_fio::language::{Serve, Settings};
use trueio_fio::wire::Address;
use trueio_run::{create_output, watch_signals};

/// The first word of a server in the background; then what it was handed, its socket's path and its process number's
/// file (or nothing), and what it permits.
pub(in crate::fio) const LISTEN: &str = "--trueio-listen";
/// The beginning of a word that says where jobs may write.
pub(super) const ALLOW_WRITE: &str = "--allow-write=";
/// Most sessions at once. More than a few disturb each other anyway.
const SESSIONS_MAX: usize = 64;
/// How long the server waits for descriptors or memory to come back.
const SHORT_WAIT: std::time::Duration = std::time::Duration::from_millis(200);
/// This program, also if its file has been replaced since.
pub(super) const THIS_PROGRAM: &str = "/proc/self/exe";

/// `--server`.
pub(in crate::fio) fn serve(serve: &Serve, settings: &Settings) -> ExitCode {
    let address = match Address::parse(serve.address.as_deref().unwrap_or("")) {
        Ok(address) => address,
        Err(reason) => return refused(&format!("`--server`: {reason}")),
    };
    if let Some(path) = &serve.pid_file
        && let Some(pid) = running(Path::new(path))
    {
        return refused(&format!("`--daemonize={path}`: the process {pid} that it names is running"));
    }
    let listener = match Listener::bind(&address) {
        Ok(listener) => listener,
        Err(error) => return refused(&format!("the server cannot listen on {address}\n  because: {error}")),
    };
    let place = listener.place(&address);
    let mut permits = serve.permits.clone();
    permits.extend(serve.writable.iter().map(|path| format!("{ALLOW_WRITE}{path}")));
    permits.extend(settings.is_readonly.then(|| "--readonly".to_owned()));
    permits.extend(settings.allows_exec.then(|| "--allow-exec".to_owned()));
    let socket = if let Address::Socket(path) = &address { path.as_str() } else { "" };
    let said = output::print_all(&format!("fio: server listening on {place}\n"));
    if let Err(failure) = said {
        return failure.show();
    }
    match &serve.pid_file {
        None => attend(&listener, socket, "", &permits),
        Some(path) => match into_background(listener, socket, path, &permits) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                let _ = std::fs::remove_file(socket);
                refused(&format!("the server cannot go into the background\n  because: {reason}"))
            }
        },
    }
}

/// The process that a file names, if it runs.
fn running(path: &Path) -> Option<i32> {
    let pid = std::fs::read_to_string(path).ok()?.trim().parse::<i32>().ok()?;
    // A number below 1 is that of a group, or of all processes.
    let named = Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw)?;
    is_there(test_kill_process(named)).then_some(pid)
}

/// What an answer to a signal of nothing says: a process of another user is there, too.
fn is_there(answer: rustix::io::Result<()>) -> bool {
    matches!(answer, Ok(()) | Err(Errno::PERM))
}

fn into_background(listener: Listener, socket: &str, pid_file: &str, permits: &[String]) -> Result<(), String> {
    let absolute = |path: &str| std::path::absolute(path).map(|path| path.to_string_lossy().into_owned());
    let (socket, pid_path) = match socket {
        "" => (String::new(), absolute(pid_file)),
        socket => (absolute(socket).map_err(|error| error.to_string())?, absolute(pid_file)),
    };
    let pid_path = pid_path.map_err(|error| error.to_string())?;
    // What an earlier server left is replaced.
    let mut file = create_output(&pid_path).map_err(|error| format!("`{pid_file}` cannot be written: {error}"))?;
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
    Ok(())
}

/// A server in the background, which its first process has handed the listener to.
pub(in crate::fio) fn listen(words: &[String]) -> ExitCode {
    let [word, socket, pid_file, permits @ ..] = words else { return refused("this is no command for people") };
    let Some(listener) = stdin().and_then(|fd| Listener::from_fd(word, fd)) else {
        return refused("there is nothing to listen to");
    };
    // It leads no session of a terminal from now on. It fails only if that is so already.
    let _ = setsid();
    attend(&listener, socket, pid_file, permits)
}

/// What this process was handed as its standard input.
pub(super) fn stdin() -> Option<OwnedFd> {
    std::io::stdin().as_fd().try_clone_to_owned().ok()
}

/// Takes connections until a signal comes.
fn attend(listener: &Listener, socket: &str, pid_file: &str, permits: &[String]) -> ExitCode {
    let stop = watch_signals();
    if let Err(error) = listener.never_wait() {
        return refused(&format!("the server cannot listen\n  because: {error}"));
    }
    let mut sessions: Vec<Child> = Vec::new();
    let wait = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    while !stop.load(Relaxed) {
        sessions.retain_mut(|session| matches!(session.try_wait(), Ok(None)));
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&wait));
        let stream = match listener.accept() {
            Ok(stream) => stream,
            Err(error) => {
                // Nobody there after all, or gone already: that is no matter of the server's. Without a descriptor or
                // memory left the client stays at the door, which must not keep this loop busy.
                let is_short =
                    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM));
                if is_short {
                    std::thread::sleep(SHORT_WAIT);
                }
                continue;
            }
        };
        if sessions.len() >= SESSIONS_MAX {
            eprintln!("fio: a client was turned away: {SESSIONS_MAX} are there already");
            continue;
        }
        let (word, fd) = stream.into_fd();
        let session = Command::new(THIS_PROGRAM)
            .args(["fio", SESSION, word])
            .args(permits)
            .stdin(Stdio::from(fd))
            // A signal from the terminal is for the server, which tells its sessions.
            .process_group(0)
            .spawn();
        match session {
            Ok(session) => sessions.push(session),
            Err(error) => eprintln!("fio: a session cannot be started: {error}"),
        }
    }
    for session in &sessions {
        if let Some(pid) = i32::try_from(session.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
    for session in &mut sessions {
        let _ = session.wait();
    }
    for path in [socket, pid_file].into_iter().filter(|path| !path.is_empty()) {
        let _ = std::fs::remove_file(path);
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_a_running_process_only_by_a_number_of_one() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("pid");
        let of = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            running(&path)
        };
        let own = std::process::id() as i32;
        assert_eq!(of(&format!("{own}\n")), Some(own));
        // The group of this process, and all processes.
        assert_eq!(
            (of(&format!("-{own}")), of("-1"), of("0"), of("no number"), of("")),
            (None, None, None, None, None)
        );
        assert!(is_there(Ok(())) && is_there(Err(Errno::PERM)), "another user's is there");
        assert!(!is_there(Err(Errno::SRCH)));
    }
}
