//! Runs a program in a folder of its own for a limited time, and ends all processes that it leaves there.
//!
//! `timeout` does not reach the processes of fio's jobs, which have sessions of their own and may hang: they would keep the
//! caller's pipes open. So output goes to files, and what still has the folder as its working directory is killed.
//!
//! Limits: leftovers are found in `/proc`, so only on Linux; a process that changed its directory stays.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs a command in `folder`, and returns its output; `None`: it did not end within `limit`, and was killed.
///
/// # Errors
/// If it cannot be started, or its output cannot be read.
pub fn output_within(command: &mut Command, folder: &Path, limit: Duration) -> io::Result<Option<Output>> {
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.current_dir(folder).stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
    let mut child = command.spawn()?;
    let began = Instant::now();
    let status = loop {
        match child.try_wait()? {
            None if began.elapsed() < limit => std::thread::sleep(Duration::from_millis(3)),
            status => break status,
        }
    };
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    end_processes_in(folder);
    let read = |file: &mut File| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let (stdout, stderr) = (read(&mut out)?, read(&mut err)?);
    Ok(status.map(|status| Output { status, stdout, stderr }))
}

/// Kills the processes whose working directory is `folder`.
fn end_processes_in(folder: &Path) {
    let Ok(folder) = fs::canonicalize(folder) else { return };
    // Again, because one of them may have started another.
    for _ in 0..10 {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let is_there = |process: &fs::DirEntry| fs::read_link(process.path().join("cwd")).is_ok_and(|at| at == folder);
        let left: Vec<i32> =
            processes.filter(is_there).filter_map(|process| process.file_name().to_str()?.parse().ok()).collect();
        if left.is_empty() {
            return;
        }
        // SAFETY: a call with numbers only.
        let kill = |process| unsafe { libc::kill(process, libc::SIGKILL) };
        left.into_iter().for_each(|process| _ = kill(process));
        std::thread::sleep(Duration::from_millis(3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a grandchild in a session of its own, which holds the output, neither blocks the caller nor goes on.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_hangs_in_another_session_is_killed() {
        let folder = crate::folder();
        let script = "echo begun; setsid sh -c 'sleep 60; :' & sleep 60";
        let began = Instant::now();
        let mut command = Command::new("sh");
        let ran = output_within(command.args(["-c", script]), folder.path(), Duration::from_millis(300));
        assert!(ran.expect("it starts").is_none());
        // One that ends itself, and leaves another.
        let script = "setsid sh -c 'sleep 60; :' & echo begun; exit 3";
        let mut command = Command::new("sh");
        let ran = output_within(command.args(["-c", script]), folder.path(), Duration::from_secs(50));
        let ran = ran.expect("it starts").expect("it ends");
        assert_eq!((ran.status.code(), &ran.stdout[..]), (Some(3), &b"begun\n"[..]));
        assert!(began.elapsed() < Duration::from_secs(50));
        let is_there = |process: &fs::DirEntry| {
            let at = fs::read_link(process.path().join("cwd"));
            at.is_ok_and(|at| Some(at) == fs::canonicalize(folder.path()).ok())
        };
        assert_eq!(fs::read_dir("/proc").expect("/proc").flatten().filter(is_there).count(), 0);
    }
}
