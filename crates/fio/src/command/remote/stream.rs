//! Connections over IP and over Unix sockets.

use crate::wire::{Address, Family};
use rustix::process::Uid;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Time limit of connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Keepalive: idle time before the first probe, interval of probes, and time until the connection is given up.
const ALIVE_AFTER: Duration = Duration::from_secs(30);
const ALIVE_EVERY: Duration = Duration::from_secs(10);
const GIVEN_UP_AFTER: Duration = Duration::from_secs(90);

/// A connection.
#[derive(Debug)]
pub(super) enum Stream {
    Internet(TcpStream),
    Socket(UnixStream),
}

/// A listening socket.
#[derive(Debug)]
pub(super) enum Listener {
    Internet(TcpListener),
    Socket(UnixListener),
}

/// Arguments that name the kind of an inherited descriptor.
const INTERNET: &str = "internet";
const SOCKET: &str = "socket";

/// Resolves a host name; without a name returns the loopback address.
fn resolve(host: Option<&str>, port: u16, family: Family) -> io::Result<Vec<SocketAddr>> {
    let Some(host) = host else {
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        return Ok(vec![if family == Family::V6 { v6 } else { v4 }]);
    };
    let is_wanted = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.filter(is_wanted).collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no such address"));
    }
    Ok(found)
}

impl Stream {
    pub(super) fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Socket(path) => UnixStream::connect(path).map(Stream::Socket),
            Address::Internet { host, port, family } => {
                let mut last = None;
                for address in resolve(host.as_deref(), *port, *family)? {
                    match TcpStream::connect_timeout(&address, CONNECT) {
                        Ok(stream) => {
                            let stream = Stream::Internet(stream);
                            stream.watch();
                            return Ok(stream);
                        }
                        Err(error) => last = Some(error),
                    }
                }
                Err(last.unwrap_or_else(|| io::Error::from(io::ErrorKind::NotFound)))
            }
        }
    }

    /// Enables keepalive, which detects that the peer's machine is gone. Best effort.
    fn watch(&self) {
        use rustix::net::sockopt;
        let Stream::Internet(stream) = self else { return };
        let _ = stream.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(stream, true);
        let _ = sockopt::set_tcp_keepidle(stream, ALIVE_AFTER);
        let _ = sockopt::set_tcp_keepintvl(stream, ALIVE_EVERY);
        let _ = sockopt::set_tcp_user_timeout(stream, GIVEN_UP_AFTER.as_millis() as u32);
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Stream::Internet(stream) => stream.try_clone().map(Stream::Internet),
            Stream::Socket(stream) => stream.try_clone().map(Stream::Socket),
        }
    }

    /// Sets the time limit of reads; `None`: no limit.
    pub(super) fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Internet(stream) => stream.set_read_timeout(patience),
            Stream::Socket(stream) => stream.set_read_timeout(patience),
        }
    }

    /// Returns a reader that fails at a point in time, however slowly the bytes come.
    pub(super) fn until(&mut self, end: Instant) -> Until<'_> {
        Until { stream: self, end }
    }

    /// Returns the user of the process that connected to the Unix socket, as the kernel read it then; `None` if it is unknown.
    pub(super) fn peer_user(&self) -> Option<Uid> {
        match self {
            Stream::Internet(_) => None,
            Stream::Socket(stream) => rustix::net::sockopt::socket_peercred(stream).ok().map(|peer| peer.uid),
        }
    }

    /// Shuts the connection down in both directions, for all clones.
    pub(super) fn end(&self) {
        let _ = match self {
            Stream::Internet(stream) => stream.shutdown(Shutdown::Both),
            Stream::Socket(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Returns the address of the peer; `localhost` for a Unix socket.
    pub(super) fn peer(&self) -> String {
        match self {
            Stream::Internet(stream) => stream
                .peer_addr()
                .map_or_else(|_| "unknown".to_owned(), |address| address.ip().to_canonical().to_string()),
            Stream::Socket(_) => "localhost".to_owned(),
        }
    }

    /// Returns the address of the server to which this is a TCP connection.
    pub(super) fn server_address(&self) -> Option<SocketAddr> {
        match self {
            Stream::Internet(stream) => stream.peer_addr().ok(),
            Stream::Socket(_) => None,
        }
    }

    /// Returns the kind and the descriptor, for a process that inherits it.
    pub(super) fn into_fd(self) -> (&'static str, OwnedFd) {
        match self {
            Stream::Internet(stream) => (INTERNET, stream.into()),
            Stream::Socket(stream) => (SOCKET, stream.into()),
        }
    }

    /// Returns the connection that this process inherited.
    pub(super) fn from_fd(word: &str, fd: OwnedFd) -> Option<Self> {
        let stream = match word {
            INTERNET => Stream::Internet(fd.into()),
            SOCKET => Stream::Socket(fd.into()),
            _ => return None,
        };
        stream.watch();
        Some(stream)
    }
}

/// A connection that is read up to a point in time.
#[derive(Debug)]
pub(super) struct Until<'a> {
    stream: &'a mut Stream,
    end: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_patience(Some(left))?;
        self.stream.read(buffer)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Internet(stream) => stream.read(buffer),
            Stream::Socket(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Internet(stream) => stream.write(bytes),
            Stream::Socket(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Listener {
    /// Listens. A Unix socket is accessible only to this user, unless `is_shared`; a stale one is replaced.
    pub(super) fn bind(address: &Address, is_shared: bool) -> io::Result<Self> {
        match address {
            Address::Socket(path) => {
                use std::os::unix::fs::FileTypeExt;
                if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
                    && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
                {
                    std::fs::remove_file(path)?;
                }
                // The umask gives the socket its final permissions at once; no other thread creates files now.
                let mask = if is_shared { 0o111 } else { 0o177 };
                let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
                let listener = UnixListener::bind(path);
                rustix::process::umask(before);
                listener.map(Listener::Socket)
            }
            Address::Internet { host, port, family } => {
                TcpListener::bind(&resolve(host.as_deref(), *port, *family)?[..]).map(Listener::Internet)
            }
        }
    }

    /// Returns the address, as clients write it.
    pub(super) fn place(&self, address: &Address) -> String {
        match self {
            Listener::Internet(listener) => listener
                .local_addr()
                .map_or_else(|_| address.to_string(), |found| format!("{},{}", found.ip(), found.port())),
            Listener::Socket(_) => address.to_string(),
        }
    }

    /// Returns the TCP address on which it listens.
    pub(super) fn internet_address(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Listener::Internet(listener) => listener.local_addr().map(Some),
            Listener::Socket(_) => Ok(None),
        }
    }

    pub(super) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Internet(listener) => listener.accept().map(|(stream, _)| Stream::Internet(stream)),
            Listener::Socket(listener) => listener.accept().map(|(stream, _)| Stream::Socket(stream)),
        }
    }

    /// Makes `accept` return at once.
    pub(super) fn never_wait(&self) -> io::Result<()> {
        match self {
            Listener::Internet(listener) => listener.set_nonblocking(true),
            Listener::Socket(listener) => listener.set_nonblocking(true),
        }
    }

    pub(super) fn into_fd(self) -> (&'static str, OwnedFd) {
        match self {
            Listener::Internet(listener) => (INTERNET, listener.into()),
            Listener::Socket(listener) => (SOCKET, listener.into()),
        }
    }

    pub(super) fn from_fd(word: &str, fd: OwnedFd) -> Option<Self> {
        match word {
            INTERNET => Some(Listener::Internet(fd.into())),
            SOCKET => Some(Listener::Socket(fd.into())),
            _ => None,
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Internet(listener) => listener.as_fd(),
            Listener::Socket(listener) => listener.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a peer that sends a byte now and then does not hold a session.
    /// Method: bytes are there, and the end is over or far away.
    #[test]
    fn a_reader_gives_up_at_its_end_however_slowly_the_bytes_come() {
        let (ours, mut theirs) = UnixStream::pair().expect("two ends");
        theirs.write_all(b"slow").expect("there is room");
        let mut stream = Stream::Socket(ours);
        let mut bytes = [0; 2];
        stream.until(Instant::now() + Duration::from_secs(3600)).read_exact(&mut bytes).expect("they are there");
        let error = stream.until(Instant::now()).read_exact(&mut bytes).expect_err("it is over");
        assert_eq!((&bytes, error.kind()), (b"sl", io::ErrorKind::TimedOut));
    }
}
