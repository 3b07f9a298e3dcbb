//! Bytes that come over HTTP instead of from a generator.
//!
//! A [`HttpSource`] is one connection from which a worker takes what it writes, in order. It never waits by
//! itself: it gives what has arrived, and the worker decides whether it waits or looks after the I/Os in
//! flight. What it does not do: redirects (nothing but the host that was named is contacted), encryption,
//! compression, bodies whose length the server does not say. Each is an error that says so.
//!
//! [`compare_with_source`] fetches the body once more and holds it against a file; [`BodyServer`] is a server
//! on this machine whose body is known.
//!
//! Sources: RFC 9110 (semantics), RFC 9112 (HTTP/1.1 on the wire); the response's head is parsed by `httparse`.

mod compare;
mod server;

pub use compare::{SourceComparison, compare_with_source};
pub use server::{Body, BodyServer};

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use trueio_model::SourceAddress;

/// A connection must be there within this time.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A server that sends nothing for so long has failed.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
/// The longest head that is read, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The most header lines.
const HEADERS_MAX: usize = 64;

/// A body could not be fetched.
#[derive(Debug, thiserror::Error)]
#[error("the source `{address}`: {reason}")]
pub struct SourceError {
    /// Whose body.
    address: String,
    /// What went wrong, and what to do where that is not plain.
    reason: String,
    /// The system's reason.
    #[source]
    source: Option<io::Error>,
}

impl SourceError {
    fn new(address: &SourceAddress, reason: impl Into<String>) -> Self {
        Self { address: address.to_string(), reason: reason.into(), source: None }
    }

    fn io(address: &SourceAddress, reason: &str, source: io::Error) -> Self {
        Self { address: address.to_string(), reason: reason.to_owned(), source: Some(source) }
    }
}

/// The length of a body as its server says it, in bytes. One request (`HEAD`); nothing of the body is fetched.
///
/// # Errors
/// The server cannot be reached, answers something else than 200, or does not say the length.
pub fn source_length(address: &SourceAddress) -> Result<u64, SourceError> {
    let mut stream = connect(address)?;
    let limit = |e| SourceError::io(address, "setting a time limit failed", e);
    stream.set_read_timeout(Some(CONNECT_LIMIT)).map_err(limit)?;
    stream.write_all(&request("HEAD", address)).map_err(|e| SourceError::io(address, "asking for it failed", e))?;
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Err(SourceError::new(address, "the server closed the connection without an answer")),
            Ok(n) => head.extend_from_slice(&piece[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(SourceError::io(address, "waiting for its answer failed", error)),
        }
        if let Some((_, length)) = parse_head(address, &head)? {
            return Ok(length);
        }
    }
}

fn connect(address: &SourceAddress) -> Result<TcpStream, SourceError> {
    let found = (address.host.as_str(), address.port)
        .to_socket_addrs()
        .map_err(|e| SourceError::io(address, "the host is not known", e))?;
    let mut last = None;
    for socket in found {
        match TcpStream::connect_timeout(&socket, CONNECT_LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    let error = last.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(SourceError::io(address, "it cannot be reached", error))
}

fn request(method: &str, address: &SourceAddress) -> Vec<u8> {
    format!(
        "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: trueio/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n\
         Connection: close\r\n\r\n",
        address.path,
        address.authority(),
        env!("CARGO_PKG_VERSION")
    )
    .into_bytes()
}

/// Reads a response's head: where the body begins and its length. `None`: there is more to come.
fn parse_head(address: &SourceAddress, head: &[u8]) -> Result<Option<(usize, u64)>, SourceError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let body_at = match response.parse(head) {
        Ok(httparse::Status::Complete(at)) => at,
        Ok(httparse::Status::Partial) if head.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => {
            return Err(SourceError::new(address, format!("its head is longer than {HEAD_BYTES_MAX} bytes")));
        }
        Err(error) => return Err(SourceError::new(address, format!("its answer is no HTTP/1.1 ({error})"))),
    };
    let text = |name: &str| {
        let mut found = response.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        found.next().map(|header| String::from_utf8_lossy(header.value).into_owned())
    };
    let code = response.code.unwrap_or(0);
    if (300..400).contains(&code) {
        let place = text("location").unwrap_or_else(|| "nowhere".to_owned());
        return Err(SourceError::new(
            address,
            format!("the server points to `{place}` ({code}); redirects are not followed: name that address"),
        ));
    }
    if code != 200 {
        let words = response.reason.unwrap_or("");
        return Err(SourceError::new(address, format!("the server answers {code} {words}").trim_end()));
    }
    if let Some(coding) = text("transfer-encoding") {
        return Err(SourceError::new(
            address,
            format!(
                "it comes in pieces (`Transfer-Encoding: {coding}`), so its length is not known before its end; \
                     a body with `Content-Length` is needed"
            ),
        ));
    }
    let lengths: Vec<&[u8]> = response
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("content-length"))
        .map(|header| header.value)
        .collect();
    let length = match lengths[..] {
        [] => return Err(SourceError::new(address, "the server does not say its length (`Content-Length`)")),
        [one] => std::str::from_utf8(one).ok().and_then(|text| text.trim().parse().ok()),
        _ => None,
    };
    match length {
        Some(length) => Ok(Some((body_at, length))),
        None => Err(SourceError::new(address, "the server's `Content-Length` is no number")),
    }
}

/// How far an exchange has come.
#[derive(Debug)]
enum State {
    /// Connected, nothing asked.
    Idle,
    /// The request is sent, the head has not ended.
    Head(Vec<u8>),
    /// The body; these bytes of it came with the head, from this index on.
    Body(Vec<u8>, usize),
}

/// A body on its way.
#[derive(Debug)]
pub(crate) struct HttpSource {
    address: SourceAddress,
    stream: TcpStream,
    state: State,
    length: u64,
    left: u64,
    /// Since when nothing comes although it is waited for.
    silent_since: Option<Instant>,
}

impl HttpSource {
    /// Connects. Nothing is asked before the first [`HttpSource::take`], so the server sends nothing before.
    pub(crate) fn connect(address: &SourceAddress, length: u64) -> Result<Self, SourceError> {
        let stream = connect(address)?;
        stream.set_nodelay(true).map_err(|e| SourceError::io(address, "setting TCP_NODELAY failed", e))?;
        let address = address.clone();
        Ok(Self { address, stream, state: State::Idle, length, left: length, silent_since: None })
    }

    /// Puts the next bytes of the body into `out`, as many as are there; 0: none at present.
    ///
    /// # Errors
    /// The connection fails or is silent for too long, the body is not what was planned, or ends too early.
    pub(crate) fn take(&mut self, out: &mut [u8]) -> Result<usize, SourceError> {
        if matches!(self.state, State::Idle) {
            self.ask()?;
        }
        if let State::Head(head) = &mut self.state {
            let mut piece = [0; 4096];
            let Some(n) = received(&self.address, self.stream.read(&mut piece))? else { return self.nothing() };
            if n == 0 {
                return Err(SourceError::new(&self.address, "the server closed the connection without an answer"));
            }
            head.extend_from_slice(&piece[..n]);
            self.silent_since = None;
            let Some((body_at, length)) = parse_head(&self.address, head)? else { return Ok(0) };
            if length != self.length {
                let reason = format!("it has {length} bytes now, and {} were planned", self.length);
                return Err(SourceError::new(&self.address, reason));
            }
            let head = std::mem::take(head);
            self.state = State::Body(head, body_at);
        }
        let most = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let out = &mut out[..most];
        if let State::Body(ahead, at) = &mut self.state
            && *at < ahead.len()
        {
            let n = (ahead.len() - *at).min(out.len());
            out[..n].copy_from_slice(&ahead[*at..*at + n]);
            *at += n;
            self.left -= n as u64;
            return Ok(n);
        }
        if out.is_empty() {
            return Ok(0);
        }
        match received(&self.address, self.stream.read(out))? {
            None => self.nothing(),
            Some(0) => {
                let had = self.length - self.left;
                let reason = format!("it ended after {had} of {} bytes", self.length);
                Err(SourceError::new(&self.address, reason))
            }
            Some(n) => {
                self.silent_since = None;
                self.left -= n as u64;
                Ok(n)
            }
        }
    }

    /// Waits until something has arrived or `limit` has passed.
    pub(crate) fn wait(&self, limit: Duration) {
        let mut waiting = libc::pollfd { fd: self.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let limit = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ };
        // SAFETY: the kernel reads and writes one structure that lives until it returns, and reads the limit.
        // What it says is not looked at: the next `take` finds out.
        unsafe { libc::ppoll(&mut waiting, 1, &limit, std::ptr::null()) };
    }

    fn ask(&mut self) -> Result<(), SourceError> {
        let address = &self.address;
        let failed = |e| SourceError::io(address, "asking for it failed", e);
        self.stream.write_all(&request("GET", address)).map_err(failed)?;
        self.stream.set_nonblocking(true).map_err(failed)?;
        self.state = State::Head(Vec::with_capacity(4096));
        Ok(())
    }

    /// Nothing came; for too long is an error.
    fn nothing(&mut self) -> Result<usize, SourceError> {
        if self.silent_since.get_or_insert_with(Instant::now).elapsed() < SILENCE_LIMIT {
            return Ok(0);
        }
        let had = self.length - self.left;
        let reason = format!("nothing came for {} s, after {had} of {} bytes", SILENCE_LIMIT.as_secs(), self.length);
        Err(SourceError::new(&self.address, reason))
    }
}

/// What a read brought; `None`: nothing yet.
fn received(address: &SourceAddress, result: io::Result<usize>) -> Result<Option<usize>, SourceError> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(SourceError::io(address, "the connection failed", error)),
    }
}

#[cfg(test)]
mod tests;
