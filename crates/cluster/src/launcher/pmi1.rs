//! The PMI-1 wire protocol: lines of `cmd=NAME key=value …`, one answer for each request.
//!
//! Spoken by MPICH's and Intel MPI's `mpiexec.hydra`, by `srun --mpi=pmi2` and by Flux. It needs no library, so a static
//! build works, too.
//!
//! Limits: a request is one write of at most 1024 bytes with its line feed, because Slurm reads a request with one read
//! of that length (`src/plugins/mpi/pmi2/pmi1.c`). Values hold neither spaces nor `=`, `;` and line feeds.
//!
//! Source: MPICH `src/pmi/src/pmi_v1.c`; lines of four servers are recorded in the tests.

use super::{KeySpace, LauncherError, SHARED_BYTES_MAX, Variables, number};
use crate::Limit;
use rustix::event::{PollFd, PollFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{FromRawFd, OwnedFd};

/// Longest request with its line feed, in bytes.
const REQUEST_BYTES_MAX: usize = 1024;
/// Longest answer, in bytes. The longest recorded is 4096 bytes of value with its keys.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The key of the shared text.
const KEY: &str = "trueio-rank0";

/// Where the server of the protocol is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// An inherited descriptor.
    Descriptor {
        /// `PMI_FD`.
        number: Result<i32, String>,
        /// `PMI_RANK` and `PMI_SIZE`.
        identity: Result<(u32, u32), String>,
    },
    /// A TCP port.
    Port {
        /// `PMI_PORT`: `HOST:PORT`.
        address: String,
        /// `PMI_ID`.
        id: String,
    },
}

/// Returns the place that the variables announce.
pub fn place(variable: Variables<'_>) -> Option<Place> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if set("PMI_FD").is_some() {
        let words = |error: LauncherError| error.to_string();
        let identity = number(variable, "PMI_RANK").and_then(|rank| Ok((rank, number(variable, "PMI_SIZE")?)));
        return Some(Place::Descriptor {
            number: number(variable, "PMI_FD").map_err(words),
            identity: identity.map_err(words),
        });
    }
    Some(Place::Port { address: set("PMI_PORT")?, id: set("PMI_ID")? })
}

/// Returns the value of a field of a line. Fields are found by name: servers order them differently.
pub fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// Returns whether a descriptor is a socket. The standard streams are not the launcher's.
fn is_socket(descriptor: i32) -> std::io::Result<bool> {
    if descriptor < 3 {
        return Err(std::io::Error::from_raw_os_error(libc::EBADF));
    }
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the room has the size of the structure; a number that is no descriptor fails with EBADF.
    if unsafe { libc::fstat(descriptor, found.as_mut_ptr()) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it filled the structure.
    Ok(unsafe { found.assume_init() }.st_mode & libc::S_IFMT == libc::S_IFSOCK)
}

/// A connection to a server of the protocol.
#[derive(Debug)]
pub struct Pmi1 {
    stream: File,
    received: Vec<u8>,
    rank: u32,
    size: u32,
    space: String,
    value_bytes_max: usize,
}

impl Pmi1 {
    /// Connects to the server.
    ///
    /// # Errors
    /// There is no such descriptor or port, or the server does not answer as the protocol says.
    pub fn connect(place: &Place, limit: Limit) -> Result<Self, LauncherError> {
        match place {
            Place::Descriptor { number, identity } => {
                let refused =
                    |reason: &String| LauncherError::Refused { what: "PMI_FD".into(), answer: reason.clone() };
                let descriptor = *number.as_ref().map_err(refused)?;
                let (rank, size) = *identity.as_ref().map_err(refused)?;
                let is_launchers = is_socket(descriptor).map_err(|source| {
                    let what = "descriptor PMI_FD is not open; a container may have closed it (`mpiexec.hydra -pmi-port` helps)";
                    LauncherError::Io { what, source }
                })?;
                if !is_launchers {
                    let answer = format!("descriptor {descriptor} is not a socket, so no launcher passed it");
                    return Err(LauncherError::Refused { what: "PMI_FD".into(), answer });
                }
                // SAFETY: a plain call with a number.
                unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
                // SAFETY: the descriptor is open, and the launcher passed it to this process for this protocol, so nothing
                // else in it owns the descriptor.
                let stream = unsafe { OwnedFd::from_raw_fd(descriptor) };
                Self::over(stream, rank, size, limit)
            }
            Place::Port { address, id } => {
                let failed = |source| LauncherError::Io { what: "connecting to PMI_PORT", source };
                let stream = TcpStream::connect(address).map_err(failed)?;
                let mut this = Self::unopened(stream.into(), 0, 0);
                this.ask(&format!("cmd=initack pmiid={id}"), "initack", limit)?;
                // The server sends size, rank and debug, one line each.
                for _ in 0..3 {
                    let line = this.line("initack", limit)?;
                    let number = |name| field(&line, name).and_then(|value| value.parse().ok());
                    this.size = number("size").unwrap_or(this.size);
                    this.rank = number("rank").unwrap_or(this.rank);
                }
                this.open(limit)
            }
        }
    }

    /// Speaks the protocol over an open descriptor, as this rank of this size.
    ///
    /// # Errors
    /// As [`Pmi1::connect`].
    pub fn over(stream: OwnedFd, rank: u32, size: u32, limit: Limit) -> Result<Self, LauncherError> {
        Self::unopened(stream, rank, size).open(limit)
    }

    fn unopened(stream: OwnedFd, rank: u32, size: u32) -> Self {
        Self { stream: stream.into(), received: Vec::new(), rank, size, space: String::new(), value_bytes_max: 0 }
    }

    fn open(mut self, limit: Limit) -> Result<Self, LauncherError> {
        if self.rank >= self.size {
            let answer = format!("rank {} of {} ranks", self.rank, self.size);
            return Err(LauncherError::Refused { what: "PMI-1".into(), answer });
        }
        let line = self.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", limit)?;
        accepted("init", &line)?;
        let line = self.ask("cmd=get_maxes", "maxes", limit)?;
        let value_bytes = field(&line, "vallen_max").and_then(|value| value.parse().ok());
        self.value_bytes_max = value_bytes.unwrap_or(0);
        let line = self.ask("cmd=get_my_kvsname", "my_kvsname", limit)?;
        let refused = || LauncherError::Refused { what: "get_my_kvsname".into(), answer: line.clone() };
        self.space = field(&line, "kvsname").ok_or_else(refused)?.to_owned();
        Ok(self)
    }

    /// Sends a request in one write.
    fn send(&mut self, request: &str) -> Result<(), LauncherError> {
        assert!(request.len() < REQUEST_BYTES_MAX, "Slurm reads at most 1024 bytes of a request");
        let failed = |source| LauncherError::Io { what: "sending a request to the launcher", source };
        self.stream.write_all(format!("{request}\n").as_bytes()).map_err(failed)
    }

    /// Receives one line.
    fn line(&mut self, what: &'static str, limit: Limit) -> Result<String, LauncherError> {
        let until = limit.begin();
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.received.len() > ANSWER_BYTES_MAX {
                let answer = format!("more than {ANSWER_BYTES_MAX} bytes without a line feed");
                return Err(LauncherError::Refused { what: what.into(), answer });
            }
            let failed = |source| LauncherError::Io { what: "receiving an answer of the launcher", source };
            let mut waiting = [PollFd::new(&self.stream, PollFlags::IN)];
            match rustix::event::poll(&mut waiting, Some(&until.left())) {
                Ok(0) => return Err(LauncherError::Late { what, seconds: limit.seconds() }),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(failed(error.into())),
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(LauncherError::Closed),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Err(LauncherError::Closed),
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Sends a request and returns its answer, which begins with `cmd=` and this name.
    fn ask(&mut self, request: &str, answer: &'static str, limit: Limit) -> Result<String, LauncherError> {
        self.send(request)?;
        let line = self.line(answer, limit)?;
        if field(&line, "cmd") == Some(answer) {
            return Ok(line);
        }
        Err(LauncherError::Refused { what: format!("`{answer}` was expected"), answer: line })
    }

    fn fence(&mut self, limit: Limit) -> Result<(), LauncherError> {
        let line = self.ask("cmd=barrier_in", "barrier_out", limit)?;
        accepted("barrier", &line)
    }
}

/// Checks the result code of an answer; some servers send none where nothing can fail.
fn accepted(what: &str, line: &str) -> Result<(), LauncherError> {
    match field(line, "rc") {
        None | Some("0") => Ok(()),
        Some(_) => Err(LauncherError::Refused { what: what.into(), answer: line.into() }),
    }
}

impl KeySpace for Pmi1 {
    fn launcher(&self) -> String {
        "PMI-1".to_owned()
    }

    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn share(&mut self, text: Option<&str>, limit: Limit) -> Result<String, LauncherError> {
        let space = self.space.clone();
        if let Some(text) = text {
            assert!(text.len() <= SHARED_BYTES_MAX, "the caller limits the text");
            let request = format!("cmd=put kvsname={space} key={KEY} value={text}");
            // A server counts the terminating zero of a value.
            let is_short = text.len() < self.value_bytes_max && request.len() < REQUEST_BYTES_MAX;
            if !is_short {
                let answer = format!("a value of {} bytes is too long for this launcher", text.len());
                return Err(LauncherError::Refused { what: "put".into(), answer });
            }
            accepted("put", &self.ask(&request, "put_result", limit)?)?;
        }
        self.fence(limit)?;
        let line = self.ask(&format!("cmd=get kvsname={space} key={KEY}"), "get_result", limit)?;
        accepted("get", &line)?;
        let refused = || LauncherError::Refused { what: "get".into(), answer: line.clone() };
        field(&line, "value").map(str::to_owned).ok_or_else(refused)
    }

    fn abort(&mut self, code: u8) {
        // There is no answer; the launcher ends this process.
        let _ = self.send(&format!("cmd=abort exitcode={code}"));
    }

    fn finish(&mut self, limit: Limit) -> Result<(), LauncherError> {
        self.ask("cmd=finalize", "finalize_ack", limit).map(drop)
    }
}

#[cfg(test)]
mod tests;
