//! A terminal for the program, as far as it can be tested: what the program writes to it. What a terminal draws of that
//! is not seen.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

/// Runs a command with stdout and stderr on a terminal of 24 lines and `columns` columns; returns
/// what was written to the terminal, and the exit code.
///
/// # Panics
/// If there is no terminal, or the program does not start.
pub fn on_terminal(mut command: Command, columns: u16) -> (String, Option<i32>) {
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
    command.stdout(slave.try_clone().expect("a descriptor")).stderr(slave);
    let mut child = command.spawn().expect("the program starts");
    // The command holds the last copies of the other end of the terminal.
    drop(command);
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    let mut reader = File::from(master);
    // EIO: the last writer has closed its end, pty(7).
    while let Ok(n) = reader.read(&mut piece) {
        if n == 0 {
            break;
        }
        text.extend_from_slice(&piece[..n]);
    }
    let code = child.wait().expect("its end").code();
    (String::from_utf8_lossy(&text).into_owned(), code)
}
