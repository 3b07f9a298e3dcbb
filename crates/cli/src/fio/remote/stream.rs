//! A connection over the internet protocol or a socket of the file system.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use trueio_fio::wire::{Address, Family};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// After how long a silent connection is asked whether it is alive, how often, and when it is given up.
const ALIVE_AFTER: Duration = Duration::from_secs(30);
const ALIVE_EVERY: Duration = Duration::from_secs(10);
const GIVEN_UP_AFTER: Duration = Duration::from_secs(90);

/// A connection.
#[derive(Debug)]
pub(super) enum Stream {
    Internet(TcpStream),
    Socket(UnixStream),
}

/// Where connections come in.
#[derive(Debug)]
pub(super) enum Listener {
    Internet(TcpListener),
    Socket(UnixListener),
}

/// The words by which a process is told what it was handed.
const INTERNET: &str = "internet";
const SOCKET: &str = "socket";

/// The addresses that a name stands for; without a name those of this machine alone.
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

    /// A peer whose machine is gone is noticed. Best effort: without it, only what is sent tells.
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

    /// How long a read waits; `None`: as long as it takes.
    pub(super) fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Internet(stream) => stream.set_read_timeout(patience),
            Stream::Socket(stream) => stream.set_read_timeout(patience),
        }
    }

    /// Ends it in both directions, for all who hold it.
    pub(super) fn end(&self) {
        let _ = match self {
            Stream::Internet(stream) => stream.shutdown(Shutdown::Both),
            Stream::Socket(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// The other side's address; of a socket `localhost`.
    pub(super) fn peer(&self) -> String {
        match self {
            Stream::Internet(stream) => stream
                .peer_addr()
                .map_or_else(|_| "unknown".to_owned(), |address| address.ip().to_canonical().to_string()),
            Stream::Socket(_) => "localhost".to_owned(),
        }
    }

    /// To hand it to a process: the word that tells what it is, and it.
    pub(super) fn into_fd(self) -> (&'static str, OwnedFd) {
        match self {
            Stream::Internet(stream) => (INTERNET, stream.into()),
            Stream::Socket(stream) => (SOCKET, stream.into()),
        }
    }

    /// What was handed to this process.
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
    /// Listens. A socket is made for this user alone; one that nobody listens to any more is replaced.
    pub(super) fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Socket(path) => {
                use std::os::unix::fs::FileTypeExt;
                if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
                    && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
                {
                    std::fs::remove_file(path)?;
                }
                // The socket never exists with other permissions; no other thread makes files now.
                let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
                let listener = UnixListener::bind(path);
                rustix::process::umask(before);
                listener.map(Listener::Socket)
            }
            Address::Internet { host, port, family } => {
                TcpListener::bind(&resolve(host.as_deref(), *port, *family)?[..]).map(Listener::Internet)
            }
        }
    }

    /// Where it listens, as clients write it.
    pub(super) fn place(&self, address: &Address) -> String {
        match self {
            Listener::Internet(listener) => listener
                .local_addr()
                .map_or_else(|_| address.to_string(), |found| format!("{},{}", found.ip(), found.port())),
            Listener::Socket(_) => address.to_string(),
        }
    }

    pub(super) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Internet(listener) => listener.accept().map(|(stream, _)| Stream::Internet(stream)),
            Listener::Socket(listener) => listener.accept().map(|(stream, _)| Stream::Socket(stream)),
        }
    }

    /// `accept` no longer waits.
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
