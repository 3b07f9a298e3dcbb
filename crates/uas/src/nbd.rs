//! The kernel's NBD client: connects a block device `/dev/nbdN` to a socket.
//!
//! The client is in the module `nbd`. The call that runs the device (`NBD_DO_IT`) returns when the socket closes, so it has a
//! thread of its own.
//!
//! A thread that waits for the device must not hold the server's end of the socket open. If the process is killed, a thread of
//! the kernel may be sending a request: it holds a lock, and waits for room in a socket that nothing reads any more. The runner
//! waits for the lock. A process's descriptors are closed when the last thread that shares them exits, so both would wait
//! for ever. Therefore such threads have descriptors of their own, without the server's end (`leave_server_end`).
//!
//! The device is opened for reading, which all calls accept: it is not in use for writing because it is served.
//!
//! Limits: one connection. A suspend of the machine ends the device: the call that runs it is interrupted when the process is frozen.
//! The interface of netlink has no such call, but it does not end the requests of a dead server either.
//!
//! Source: Linux `drivers/block/nbd.c` (`sock_shutdown` takes the lock of `nbd_send_cmd`), `include/uapi/linux/nbd.h`;
//! unshare(2), `CLONE_FILES`.

use crate::serve::{Discard, Served};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

const SET_SOCKET: u64 = 0xab00;
const SET_BLOCK_BYTES: u64 = 0xab01;
const RUN: u64 = 0xab03;
const CLEAR_SOCKET: u64 = 0xab04;
const SET_BLOCK_COUNT: u64 = 0xab07;
const DISCONNECT: u64 = 0xab08;
const SET_FLAGS: u64 = 0xab0a;

const HAS_FLAGS: u64 = 1;
const READ_ONLY: u64 = 1 << 1;
const SEND_FLUSH: u64 = 1 << 2;
const SEND_FUA: u64 = 1 << 3;
const SEND_TRIM: u64 = 1 << 5;

/// Why a block device was not connected.
#[derive(Debug, thiserror::Error)]
pub enum NbdError {
    /// The module is not there.
    #[error("the kernel's NBD client is not loaded: /sys/block has no nbd0")]
    NoModule,
    /// All devices are taken.
    #[error("all {0} devices of the kernel's NBD client are in use")]
    AllTaken(usize),
    /// A step failed.
    #[error("`{}`: {step} failed", device.display())]
    Step {
        /// The device.
        device: PathBuf,
        /// The step.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A connected block device.
#[derive(Debug)]
pub struct Nbd {
    file: File,
    /// `/dev/nbdN`.
    device: PathBuf,
    /// The server's end of the socket, which its owner closes.
    server_end: RawFd,
    runner: Option<JoinHandle<io::Result<()>>>,
}

fn ioctl(file: &File, call: u64, argument: u64) -> io::Result<()> {
    // SAFETY: these calls take a number, or the number of an open descriptor.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), call as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the names of devices without a client, in the order of their numbers.
fn free() -> Result<Vec<String>, NbdError> {
    let entries = fs::read_dir("/sys/block").map_err(|_| NbdError::NoModule)?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut numbers: Vec<u32> = names.filter_map(|name| name.strip_prefix("nbd")?.parse().ok()).collect();
    if numbers.is_empty() {
        return Err(NbdError::NoModule);
    }
    numbers.sort_unstable();
    let count = numbers.len();
    // The file `pid` exists while a client runs.
    let is_free = |name: &String| !Path::new(&format!("/sys/block/{name}/pid")).exists();
    let found: Vec<String> = numbers.iter().map(|number| format!("nbd{number}")).filter(is_free).collect();
    if found.is_empty() { Err(NbdError::AllTaken(count)) } else { Ok(found) }
}

impl Nbd {
    /// Connects a free device to a disk that is served; returns it with the server's end of the socket.
    ///
    /// # Errors
    /// [`NbdError`]; then nothing is connected.
    pub fn connect(served: &Served) -> Result<(Self, UnixStream), NbdError> {
        let mut last = NbdError::NoModule;
        for name in free()? {
            match Self::connect_one(&name, served) {
                // Another program took it just now.
                Err(NbdError::Step { source, device, step }) if source.raw_os_error() == Some(libc::EBUSY) => {
                    last = NbdError::Step { device, step, source };
                }
                result => return result,
            }
        }
        Err(last)
    }

    fn connect_one(name: &str, served: &Served) -> Result<(Self, UnixStream), NbdError> {
        let device = PathBuf::from(format!("/dev/{name}"));
        let failed = |step| {
            let device = device.clone();
            move |source| NbdError::Step { device, step, source }
        };
        let file = File::open(&device).map_err(failed("opening it"))?;
        let (ours, theirs) = UnixStream::pair().map_err(failed("a socket pair"))?;
        ioctl(&file, SET_SOCKET, theirs.as_raw_fd() as u64).map_err(failed("NBD_SET_SOCK"))?;
        let this = Self { file, device: device.clone(), server_end: ours.as_raw_fd(), runner: None };
        // From here on, dropping it clears the socket. The kernel holds its own reference to it.
        drop(theirs);
        let mut flags = HAS_FLAGS;
        for (is_set, flag) in [
            (served.is_read_only, READ_ONLY),
            (served.has_cache, SEND_FLUSH),
            (served.has_cache && served.has_fua, SEND_FUA),
            (!served.is_read_only && served.discard != Discard::None, SEND_TRIM),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        ioctl(&this.file, SET_BLOCK_BYTES, served.block_bytes.into()).map_err(failed("NBD_SET_BLKSIZE"))?;
        ioctl(&this.file, SET_BLOCK_COUNT, served.block_count).map_err(failed("NBD_SET_SIZE_BLOCKS"))?;
        ioctl(&this.file, SET_FLAGS, flags).map_err(failed("NBD_SET_FLAGS"))?;
        // Before the device runs: no request is longer than the server's buffers.
        let limit = format!("/sys/block/{name}/queue/max_sectors_kb");
        let kib = served.request_bytes_max / 1024;
        fs::write(&limit, kib.to_string()).map_err(failed("setting queue/max_sectors_kb"))?;
        Ok((this, ours))
    }

    /// The device.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Lets the device run on a thread of its own: from now on the kernel sends requests.
    ///
    /// # Errors
    /// No thread or descriptor.
    pub fn run(&mut self) -> io::Result<()> {
        let (file, server_end) = (self.file.try_clone()?, self.server_end);
        let (name, (said, result)) = ("trueio-nbd".to_owned(), std::sync::mpsc::sync_channel(1));
        self.runner = Some(std::thread::Builder::new().name(name).spawn(move || {
            let left = leave_server_end(server_end);
            // A signal would end the call, and with it the device. SIGKILL cannot be blocked.
            block_signals();
            let may_run = left.is_ok();
            // The other end waits for it.
            let _ = said.send(left);
            if may_run { ioctl(&file, RUN, 0) } else { Ok(()) }
        })?);
        result.recv().unwrap_or_else(|_| Err(io::Error::other("the thread of the device has died")))
    }

    /// Prepares the calling thread for calls that wait for the device ([`is_claimed`](crate::block::is_claimed), [`Self::disconnect`]): if the
    /// process is killed meanwhile, the thread does not keep the server's end of the socket open.
    ///
    /// # Errors
    /// No memory for descriptors.
    pub fn prepare_thread(&self) -> io::Result<()> {
        leave_server_end(self.server_end)
    }

    /// Shuts the server's end of the socket down: the kernel fails every request, although the server hangs. The server still
    /// exists, and the calling thread shares its descriptors.
    pub fn fail(&self) {
        // SAFETY: plain call; the descriptor is open as long as the server exists.
        unsafe { libc::shutdown(self.server_end, libc::SHUT_RDWR) };
    }

    /// Writes what is cached, and asks the kernel to send a disconnect request after all others. The server's own thread must not
    /// call this.
    ///
    /// # Errors
    /// The kernel's. The device is disconnected although the cache could not be written.
    pub fn disconnect(&self) -> io::Result<()> {
        // The kernel's client writes nothing by itself. A program that closed the device has left its writes to the page cache.
        let written = self.file.sync_all();
        ioctl(&self.file, DISCONNECT, 0)?;
        written.map_err(|error| io::Error::new(error.kind(), format!("pending writes are lost: {error}")))
    }
}

/// Gives the calling thread a copy of the process's descriptors without the server's end of a socket. Other threads do not
/// notice.
fn leave_server_end(server_end: RawFd) -> io::Result<()> {
    // SAFETY: plain call; from here on this thread's descriptors are its own.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the copy belongs to this thread alone, and nothing on it uses the descriptor.
    if unsafe { libc::close(server_end) } != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Blocks every signal on the calling thread.
fn block_signals() {
    // SAFETY: a set of signals is plain data, which the first call fills; the second takes it.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

impl Drop for Nbd {
    fn drop(&mut self) {
        // The server's end of the socket is closed or about to be; both calls fail only if nothing is connected.
        let _ = ioctl(&self.file, DISCONNECT, 0);
        let _ = ioctl(&self.file, CLEAR_SOCKET, 0);
        if let Some(runner) = self.runner.take() {
            // Its result is that of a device that was disconnected.
            let _ = runner.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Goal: a thread that hangs in the kernel does not keep the socket open when the server's own descriptor is closed, as it
    /// is when the process is killed. The other descriptors stay.
    #[test]
    fn a_thread_without_the_servers_end_does_not_keep_the_socket_open() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let other = File::open("/dev/null").expect("it is there");
        let (server_end, other_end) = (ours.as_raw_fd(), other.as_raw_fd());
        let (left, has_left) = std::sync::mpsc::channel();
        let (end, may_end) = std::sync::mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || {
            leave_server_end(server_end).expect("descriptors of its own");
            // SAFETY: plain calls.
            let is_open = |descriptor| unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0;
            left.send((is_open(server_end), is_open(other_end))).expect("the test waits");
            let _ = may_end.recv();
        });
        assert_eq!(has_left.recv().expect("it answers"), (false, true));
        // SAFETY: plain call: it is still open here.
        assert!(unsafe { libc::fcntl(server_end, libc::F_GETFD) } >= 0);
        drop(ours);
        assert_eq!(theirs.read(&mut [0]).expect("the end of the stream"), 0);
        drop(end);
        waiting.join().expect("no panic");
    }
}
