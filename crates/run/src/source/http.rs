//! Fetches a body over HTTP while a job writes it.
//!
//! A thread of its own reads the response into pieces of 64 KiB; at most sixteen of them wait for the worker, so a
//! slow disk slows the connection down and memory stays bounded. Connection and request begin with the worker's first
//! [`take`](BodySource::take), so that the server sends nothing before the measured part.
//!
//! Limits: no redirects (no host but the named one is contacted), no proxy, no encryption, no compression, no body
//! without `Content-Length`. Each is an error that names the reason.
//!
//! Source: RFC 9110 (semantics); the protocol is spoken by crate `ureq`.

use super::SourceError;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::time::Duration;
use trueio_engine::BodySource;
use trueio_model::{SourceAddress, error_line};
use ureq::http::{Response, header};
use ureq::{Agent, Body, Error, Timeout};

/// Longest time until a connection is established.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Longest time without a byte from the server.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
/// Longest response header, in bytes.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that wait for the worker at most: 1 MiB.
const PIECES_MAX: usize = 16;
/// The thread's stack: reading a socket needs little.
const STACK_BYTES: usize = 256 << 10;

/// Returns the length of a body in bytes, as its server reports it. Sends one `HEAD` request and fetches no body.
///
/// # Errors
/// The server cannot be reached, answers with another status than 200, or does not report the length.
pub fn source_length(address: &SourceAddress) -> Result<u64, SourceError> {
    let agent = agent(CONNECT_LIMIT);
    let answer = agent.head(address.to_string()).header(header::CONNECTION, "close").call();
    let response = answer.map_err(|error| failed(address, error, CONNECT_LIMIT))?;
    length_of(address, &response)
}

/// An agent that contacts the named host only and reports every status as a response.
fn agent(silence_limit: Duration) -> Agent {
    let config = Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .no_delay(true)
        .timeout_connect(Some(CONNECT_LIMIT))
        .timeout_per_read(Some(silence_limit))
        .timeout_per_write(Some(silence_limit))
        .max_response_header_size(HEADER_BYTES_MAX)
        .input_buffer_size(PIECE_BYTES)
        .user_agent(concat!("trueio/", env!("CARGO_PKG_VERSION")))
        .accept("*/*")
        .accept_encoding("identity");
    Agent::new_with_config(config.build())
}

/// Returns the length that a response reports, in bytes.
fn length_of(address: &SourceAddress, response: &Response<Body>) -> Result<u64, SourceError> {
    let text = |name| response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let status = response.status();
    if status.is_redirection() {
        let location = text(header::LOCATION).unwrap_or_else(|| "nowhere".to_owned());
        return Err(SourceError::new(
            address,
            format!(
                "the server points to `{location}` ({}); redirects are not followed: name that address",
                status.as_u16()
            ),
        ));
    }
    if status != 200 {
        let reason = format!("the server answers {} {}", status.as_u16(), status.canonical_reason().unwrap_or(""));
        return Err(SourceError::new(address, reason.trim_end()));
    }
    if let Some(coding) = text(header::TRANSFER_ENCODING) {
        return Err(SourceError::new(
            address,
            format!(
                "it comes in pieces (`Transfer-Encoding: {coding}`), so its length is not known before its end; \
                 a body with `Content-Length` is needed"
            ),
        ));
    }
    let Some(length) = text(header::CONTENT_LENGTH) else {
        return Err(SourceError::new(address, "the server does not report its length (`Content-Length`)"));
    };
    length.trim().parse().map_err(|_| SourceError::new(address, format!("`Content-Length: {length}` is no number")))
}

/// What a failed request means for the user.
fn failed(address: &SourceAddress, error: Error, silence_limit: Duration) -> SourceError {
    use io::ErrorKind as Kind;
    match error {
        Error::HostNotFound => SourceError::new(address, "the host is not known"),
        Error::Timeout(Timeout::Connect) => SourceError::io(address, "it cannot be reached", Kind::TimedOut.into()),
        Error::Timeout(_) => SourceError::new(address, format!("nothing came for {} s", silence_limit.as_secs())),
        Error::LargeResponseHeader(..) => {
            SourceError::new(address, format!("its header is longer than {HEADER_BYTES_MAX} bytes"))
        }
        Error::Io(error) => match error.kind() {
            Kind::UnexpectedEof => SourceError::new(address, "the server closed the connection without an answer"),
            Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::AddrNotAvailable => SourceError::io(address, "it cannot be reached", error),
            _ => SourceError::io(address, "the connection failed", error),
        },
        Error::Protocol(error) => SourceError::new(address, format!("its answer is not valid HTTP/1.1 ({error})")),
        error => SourceError::new(address, error.to_string()),
    }
}

/// A body that a thread fetches.
#[derive(Debug)]
pub(super) struct HttpBody {
    address: SourceAddress,
    agent: Agent,
    /// Starts the request; `None` once it has been started.
    begin: Option<Sender<()>>,
    pieces: Receiver<Result<Piece, SourceError>>,
    empty: Sender<Box<[u8]>>,
    /// The piece that the worker takes bytes from.
    current: Option<Piece>,
    /// What ended the fetching thread, until the bytes before it are taken.
    failure: Option<SourceError>,
}

/// Bytes of the body, in their order.
#[derive(Debug)]
struct Piece {
    bytes: Box<[u8]>,
    filled: usize,
    taken: usize,
}

impl HttpBody {
    /// Starts the thread, which waits for the first [`take`](BodySource::take).
    pub(super) fn new(address: &SourceAddress, length_bytes: u64) -> io::Result<Self> {
        let agent = agent(SILENCE_LIMIT);
        let (begin, begun) = channel();
        let (filled, pieces) = sync_channel(PIECES_MAX);
        let (empty, empties) = channel();
        let fetching = Fetching { address: address.clone(), length_bytes, agent: agent.clone(), filled, empties };
        std::thread::Builder::new().name("source".to_owned()).stack_size(STACK_BYTES).spawn(move || {
            // No message: the body was closed before its first byte was taken.
            if begun.recv().is_ok()
                && let Err(error) = fetching.run()
            {
                let _ = fetching.filled.send(Err(error));
            }
        })?;
        let address = address.clone();
        Ok(Self { address, agent, begin: Some(begin), pieces, empty, current: None, failure: None })
    }

    fn arrived(&mut self, piece: Result<Piece, SourceError>) {
        match piece {
            Ok(piece) => self.current = Some(piece),
            Err(error) => self.failure = Some(error),
        }
    }

    fn thread_ended(&mut self) {
        self.failure = Some(SourceError::new(&self.address, "nothing follows its last byte"));
    }
}

impl BodySource for HttpBody {
    fn take(&mut self, out: &mut [u8]) -> Result<usize, String> {
        if let Some(begin) = self.begin.take() {
            let _ = begin.send(());
        }
        if self.current.is_none() && self.failure.is_none() {
            match self.pieces.try_recv() {
                Ok(piece) => self.arrived(piece),
                Err(TryRecvError::Empty) => return Ok(0),
                Err(TryRecvError::Disconnected) => self.thread_ended(),
            }
        }
        if let Some(error) = &self.failure {
            return Err(error_line(error));
        }
        let Some(piece) = &mut self.current else { return Ok(0) };
        let count = out.len().min(piece.filled - piece.taken);
        out[..count].copy_from_slice(&piece.bytes[piece.taken..][..count]);
        piece.taken += count;
        if piece.taken == piece.filled
            && let Some(piece) = self.current.take()
        {
            let _ = self.empty.send(piece.bytes);
        }
        Ok(count)
    }

    fn wait(&mut self, limit: Duration) {
        if self.current.is_some() || self.failure.is_some() {
            return;
        }
        match self.pieces.recv_timeout(limit) {
            Ok(piece) => self.arrived(piece),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.thread_ended(),
        }
    }
}

impl Drop for HttpBody {
    fn drop(&mut self) {
        // The thread may wait for the server; it ends with the connection.
        self.agent.clone().shutdown();
    }
}

/// What the thread has.
struct Fetching {
    address: SourceAddress,
    length_bytes: u64,
    agent: Agent,
    filled: SyncSender<Result<Piece, SourceError>>,
    empties: Receiver<Box<[u8]>>,
}

impl Fetching {
    /// Sends the request and passes the body on, piece by piece, until its end or until the receiver is gone.
    fn run(&self) -> Result<(), SourceError> {
        let (address, length) = (&self.address, self.length_bytes);
        let answer = self.agent.get(address.to_string()).header(header::CONNECTION, "close").call();
        let response = answer.map_err(|error| failed(address, error, SILENCE_LIMIT))?;
        let found = length_of(address, &response)?;
        if found != length {
            let reason = format!("it has {found} bytes now, and {length} were planned");
            return Err(SourceError::new(address, reason));
        }
        let mut body = response.into_body().into_reader();
        let mut at = 0;
        while at < length {
            let mut bytes = self.empties.try_recv().unwrap_or_else(|_| vec![0; PIECE_BYTES].into());
            let filled = match body.read(&mut bytes) {
                Ok(0) => return Err(self.ended_early(at)),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.broken(error, at)),
            };
            at += filled as u64;
            if self.filled.send(Ok(Piece { bytes, filled, taken: 0 })).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn ended_early(&self, at: u64) -> SourceError {
        SourceError::new(&self.address, format!("it ended after {at} of {} bytes", self.length_bytes))
    }

    /// The connection failed after `at` bytes of the body.
    fn broken(&self, error: io::Error, at: u64) -> SourceError {
        let length = self.length_bytes;
        match Error::from(error) {
            Error::Timeout(_) => {
                let seconds = SILENCE_LIMIT.as_secs();
                SourceError::new(&self.address, format!("nothing came for {seconds} s, after {at} of {length} bytes"))
            }
            Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.ended_early(at),
            error => failed(&self.address, error, SILENCE_LIMIT),
        }
    }
}
