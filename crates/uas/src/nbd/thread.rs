//! Threads that wait for a block device of their own process.
//!
//! If the process is killed, such a thread may wait in the kernel for a request, which fails only when the server's end of the socket is
//! closed and the keeper has noticed that. A process's descriptors are closed when the last thread that shares them exits.
//! Therefore such threads have descriptors of their own, without that socket, the disk, and the pipe of the keeper.
//!
//! Source: unshare(2), `CLONE_FILES`; proc(5), `/proc/PID/task/TID/fd`.

use std::io;
use std::os::fd::RawFd;

/// Gives the calling thread descriptors of its own: standard input, output and error, and the named ones. Other threads do not
/// notice. It receives no signal from here on: a handler might use other descriptors, and a signal would end a call that waits for the
/// device.
///
/// # Errors
/// No memory for descriptors, or no `/proc`.
pub(super) fn leave_descriptors(kept: &[RawFd]) -> io::Result<()> {
    block_signals();
    // SAFETY: plain call; from here on this thread's descriptors are its own.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let number = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let all: Vec<RawFd> = std::fs::read_dir(own_descriptors())?.filter_map(number).collect();
    for descriptor in all {
        if descriptor > libc::STDERR_FILENO && !kept.contains(&descriptor) {
            // SAFETY: the copy belongs to this thread alone, and nothing on it uses the descriptor. That of the folder was closed before.
            let _ = unsafe { libc::close(descriptor) };
        }
    }
    Ok(())
}

/// The folder of the calling thread's descriptors.
fn own_descriptors() -> String {
    // SAFETY: plain call.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    format!("/proc/self/task/{thread}/fd")
}

/// Blocks every signal on the calling thread. SIGKILL cannot be blocked.
fn block_signals() {
    // SAFETY: a set of signals is plain data, which the first call fills; the second takes it.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    /// Goal: a thread that hangs in the kernel does not keep the socket open when the server's own descriptor is closed, as it
    /// is when the process is killed. The descriptors that it needs stay, and those of other threads.
    #[test]
    fn a_thread_without_the_servers_end_does_not_keep_the_socket_open() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let kept = File::open("/dev/null").expect("it is there");
        let (server_end, kept_end) = (ours.as_raw_fd(), kept.as_raw_fd());
        let (left, has_left) = std::sync::mpsc::channel();
        let (end, may_end) = std::sync::mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || {
            leave_descriptors(&[kept_end]).expect("descriptors of its own");
            // SAFETY: plain calls.
            let is_open = |descriptor| unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0;
            let are_open = [server_end, kept_end, libc::STDERR_FILENO].map(is_open);
            left.send((are_open, std::fs::read_dir(own_descriptors()).expect("proc").count())).expect("the test waits");
            let _ = may_end.recv();
        });
        let (are_open, count) = has_left.recv().expect("it answers");
        assert_eq!(are_open, [false, true, true]);
        assert!(count <= 5, "three, the kept one, and the folder itself: {count}");
        // SAFETY: plain call: it is still open here.
        assert!(unsafe { libc::fcntl(server_end, libc::F_GETFD) } >= 0);
        drop(ours);
        assert_eq!(theirs.read(&mut [0]).expect("the end of the stream"), 0);
        drop(end);
        waiting.join().expect("no panic");
    }
}
