//! A terminal for the program, as far as it can be tested: what the program writes to it. What a terminal draws of that
//! is not seen.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

/// What a program did on a terminal.
#[derive(Debug)]
pub struct OnTerminal {
    /// What was written to the terminal.
    pub text: String,
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// True if the terminal's settings (echo, line editing) are those from before.
    pub is_as_before: bool,
}

/// Runs a command with stdout and stderr on a terminal of 24 lines and `columns` columns; returns
/// what was written to the terminal, and the exit code.
///
/// # Panics
/// If there is no terminal, or the program does not start.
pub fn on_terminal(command: Command, columns: u16) -> (String, Option<i32>) {
    let ran = run_on_terminal(command, columns, None);
    (ran.text, ran.code)
}

/// Runs a command with stdin, too, on a terminal, and types: each text of `script` once the program has written the text
/// before it.
///
/// # Panics
/// If there is no terminal, or the program does not start.
pub fn typing_on_terminal(command: Command, columns: u16, script: &[(&str, &str)]) -> OnTerminal {
    run_on_terminal(command, columns, Some(script))
}

fn settings_of(terminal: &File) -> libc::termios {
    // SAFETY: tcgetattr fills the settings that are handed to it.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &mut settings), 0, "{}", std::io::Error::last_os_error());
        settings
    }
}

fn run_on_terminal(mut command: Command, columns: u16, script: Option<&[(&str, &str)]>) -> OnTerminal {
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the two numbers and the size are ours; null pointers skip the name and settings.
    let result = unsafe {
        libc::openpty(&mut master, &mut slave, std::ptr::null_mut(), std::ptr::null_mut(), (&raw const size).cast_mut())
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty made both descriptors, and nothing else owns them.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    // SAFETY: a plain call on our own descriptor.
    unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    // It stays open until the settings are read.
    let mut held = Some(slave.try_clone().expect("a descriptor"));
    if script.is_some() {
        command.stdin(slave.try_clone().expect("a descriptor"));
    }
    command.stdout(slave.try_clone().expect("a descriptor")).stderr(slave);
    let mut reader = File::from(master);
    let before = settings_of(&reader);
    let mut child = command.spawn().expect("the program starts");
    // The command holds the last copies of the other end of the terminal.
    drop(command);
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    let mut steps = script.unwrap_or_default().iter();
    let mut step = steps.next();
    let mut searched = 0;
    let mut is_as_before = true;
    loop {
        // The end is looked for while nothing is written: the held end keeps the terminal open.
        let mut waits = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure of ours.
        let has_text = unsafe { libc::poll(&mut waits, 1, 20) } > 0;
        if !has_text {
            if held.is_some() && child.try_wait().expect("its state").is_some() {
                let after = settings_of(&reader);
                is_as_before = after.c_lflag == before.c_lflag && after.c_cc == before.c_cc;
                held = None;
            }
            continue;
        }
        // EIO: the last writer has closed its end, pty(7).
        let Ok(n @ 1..) = reader.read(&mut piece) else { break };
        text.extend_from_slice(&piece[..n]);
        while let Some((awaited, typed)) = step {
            let found = text[searched..].windows(awaited.len().max(1)).position(|part| part == awaited.as_bytes());
            let Some(at) = found else { break };
            searched += at + awaited.len();
            reader.write_all(typed.as_bytes()).expect("it is typed");
            step = steps.next();
        }
    }
    let code = child.wait().expect("its end").code();
    OnTerminal { text: String::from_utf8_lossy(&text).into_owned(), code, is_as_before }
}
