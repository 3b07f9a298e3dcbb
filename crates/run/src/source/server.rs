//! A server on this machine with a known body, for studies that download and for tests.
//!
//! It listens on the loopback address only, answers `GET` and `HEAD` of `/body` with one body and of `/LENGTH` with a
//! body of that many bytes, each connection on a thread of its own, and ends when it is dropped. The body is
//! pseudo-random, generated from a seed while it is sent, so it needs no memory and no disk: a reader waits for the
//! loopback network and this generator.
//!
//! Limits: nothing else of HTTP.

use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use trueio_engine::RandomFill;

/// Bytes made and sent at once. A constant, because the body depends on it.
const PIECE_BYTES: usize = 64 << 10;
/// The longest request that is read, in bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Time limit of one read or write.
const PATIENCE: Duration = Duration::from_millis(200);
/// Time limits that may pass in a row: ten minutes, as a slow disk may keep a reader from reading.
const PATIENCE_TIMES: u32 = 3000;

/// The bytes of a body, in order.
#[derive(Debug)]
pub struct Body {
    fill: RandomFill,
    piece: Box<[u8]>,
    at: usize,
    left: u64,
}

impl Body {
    /// The body of a seed and a length in bytes.
    pub fn new(seed: u64, length_bytes: u64) -> Self {
        Self { fill: RandomFill::new(seed), piece: vec![0; PIECE_BYTES].into(), at: PIECE_BYTES, left: length_bytes }
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() {
            self.fill.fill(&mut self.piece);
            self.at = 0;
        }
        let n = (self.piece.len() - self.at).min(usize::try_from(self.left).unwrap_or(usize::MAX));
        Ok(&self.piece[self.at..self.at + n])
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount;
        self.left -= amount as u64;
    }
}

impl Read for Body {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(out)?;
        self.consume(n);
        Ok(n)
    }
}

/// A server of one body; it ends when it is dropped.
#[derive(Debug)]
pub struct BodyServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BodyServer {
    /// Serves the body of a seed and a length, in bytes, on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port is free, or no thread can be started.
    pub fn start(seed: u64, length_bytes: u64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("body-server".to_owned()).spawn(move || {
            std::thread::scope(|scope| {
                for stream in listener.incoming() {
                    if is_over.load(Relaxed) {
                        break;
                    }
                    let Ok(stream) = stream else { continue };
                    let is_over = &is_over;
                    // A client that disconnects or sends garbage sees that itself; a silent one blocks no other.
                    let body = move || drop(serve(stream, seed, length_bytes, is_over));
                    let _ = std::thread::Builder::new().name("body".to_owned()).spawn_scoped(scope, body);
                }
            });
        })?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Returns the address of the body: `http://127.0.0.1:PORT/body`.
    pub fn url(&self) -> String {
        format!("{}/body", self.origin())
    }

    /// Returns the address of the server: `http://127.0.0.1:PORT`. Below it, `/LENGTH` is a body of that many bytes.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for BodyServer {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // Wakes it if it waits for a client.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers one request.
fn serve(mut stream: TcpStream, seed: u64, length: u64, stop: &AtomicBool) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut asked = Vec::new();
    let mut piece = [0; 1024];
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
        let n = patiently(stop, || stream.read(&mut piece))?;
        asked.extend_from_slice(&piece[..n]);
        if n == 0 || asked.len() > REQUEST_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let is_head = asked.starts_with(b"HEAD ");
    let length = requested_length(&asked).unwrap_or(length);
    let answer = match is_head || asked.starts_with(b"GET ") {
        true => format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        ),
        false => "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nContent-Length: 0\r\n\
                  Connection: close\r\n\r\n"
            .to_owned(),
    };
    send(&mut stream, answer.as_bytes(), stop)?;
    if is_head || answer.contains(" 405 ") {
        return Ok(());
    }
    let mut body = Body::new(seed, length);
    loop {
        let piece = body.fill_buf()?;
        let n = piece.len();
        if n == 0 {
            return Ok(());
        }
        send(&mut stream, piece, stop)?;
        body.consume(n);
    }
}

/// Returns the length that a request's path names, if it is a number: `GET /4096 HTTP/1.1`.
fn requested_length(request: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(request).ok()?.lines().next()?;
    line.split(' ').nth(1)?.strip_prefix('/')?.parse().ok()
}

fn send(stream: &mut TcpStream, mut bytes: &[u8], stop: &AtomicBool) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = patiently(stop, || stream.write(bytes))?;
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[n..];
    }
    Ok(())
}

/// Repeats a call that timed out, until the server stops.
fn patiently(stop: &AtomicBool, mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    for _ in 0..PATIENCE_TIMES {
        if stop.load(Relaxed) {
            break;
        }
        match call() {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}
