//! One TCP connection from each rank to rank 0.
//!
//! Rank 0 listens; its addresses, port and a random token go through the launcher's key-value space, or are known from
//! four variables. A connection that does not send the token is closed without an answer. Every wait has a limit, and the
//! end of a connection names the rank that ended.
//!
//! A fence of a launcher cannot replace this: one that succeeds does not prove that all ranks live, and one that a dead
//! rank never reaches may not return (measured with Slurm and Open MPI 5).

pub mod address;
pub mod hub;
pub mod link;

use crate::Limit;
use crate::launcher::{KeySpace, LauncherError, Rendezvous, TOKEN_BYTES_MAX, TOKEN_BYTES_MIN, TOKEN_VARIABLE};
use hub::Hub;
use link::{Link, LinkError};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;
use trueio_run::random_id;

/// The first bytes of a rank's hello. The number changes with the protocol.
pub(crate) const MAGIC: [u8; 16] = *b"trueio-ranks-05\n";
/// What hellos of all versions begin with.
pub(crate) const MAGIC_OF_ALL: &[u8] = b"trueio-ranks-";
/// Rank 0's answer to a rank that it accepts.
pub(crate) const ACCEPTED: u8 = b'+';
/// Rank 0's answer to a rank that is there already.
pub(crate) const TAKEN: u8 = b'2';
/// Rank 0's answer to a rank beyond the size.
pub(crate) const BEYOND: u8 = b'>';
/// Rank 0's answer to a rank with another secret.
pub(crate) const OTHER_TOKEN: u8 = b'?';
/// Rank 0's answer to a rank of another version of the protocol.
pub(crate) const OTHER_PROTOCOL: u8 = b'v';

/// Longest wait for one attempt to connect; a wrong address may swallow packets.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// Why the ranks could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum StarError {
    /// The launcher failed.
    #[error("the launcher did not pass on the address of rank 0")]
    Launcher(#[from] LauncherError),
    /// Rank 0 cannot listen.
    #[error("rank 0 cannot listen on {0}")]
    Listen(String, #[source] std::io::Error),
    /// The text of rank 0 is not understood: another version of the program.
    #[error("rank 0 announced `{0}`, which this version cannot read; all ranks need the same version of trueio")]
    Announcement(String),
    /// Rank 0 has another secret.
    #[error("rank 0 at {0} has another {TOKEN_VARIABLE} than rank {1}")]
    OtherToken(SocketAddr, u32),
    /// Rank 0 is another version of the program.
    #[error(
        "rank 0 at {0} speaks another version of the protocol than rank {1}; all ranks need the same version of trueio"
    )]
    OtherProtocol(SocketAddr, u32),
    /// Some ranks did not connect.
    #[error("{ranks} did not connect to rank 0 within {seconds} s{refused}")]
    Missing {
        /// Which: `rank 3`, `ranks 3, 7 to 9`.
        ranks: String,
        /// The callers that were not accepted; empty: none.
        refused: String,
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// Two processes have the same rank.
    #[error("two processes have rank {0}: the launcher, or `RANK`, gave it twice")]
    Twice(u32),
    /// Rank 0 does not accept this rank.
    #[error("rank 0 has other ranks: it does not expect a rank {0}")]
    Unexpected(u32),
    /// No connection to rank 0.
    #[error("rank {rank} cannot connect to rank 0 at {tried} within {seconds} s: {reason}")]
    NoConnection {
        /// This rank.
        rank: u32,
        /// The addresses.
        tried: String,
        /// How long was waited, in seconds.
        seconds: u64,
        /// The last failure.
        reason: String,
    },
    /// Any process of the network could be a rank.
    #[error(
        "ranks on several hosts need a secret: {TOKEN_VARIABLE} {missing}, and `MASTER_ADDR={host}` is not the loopback address"
    )]
    NoToken {
        /// What is wrong with the secret: `is not set`.
        missing: String,
        /// The host of rank 0.
        host: String,
    },
    /// The limit of open files is too small for the connections.
    #[error("rank 0 needs {wanted} open files for {size} ranks, and may have {most} (`ulimit -Hn`)")]
    Descriptors {
        /// Number of ranks of the run.
        size: u32,
        /// What they need.
        wanted: u64,
        /// The hard limit of open files of this process (`RLIMIT_NOFILE`).
        most: u64,
    },
    /// Rank 0 cannot wait for connections.
    #[error("rank 0 cannot accept connections")]
    Accept(#[source] std::io::Error),
}

/// The connections of this rank.
#[derive(Debug)]
pub enum Star {
    /// Of rank 0: one for each other rank.
    Hub(Hub),
    /// Of every other rank: one to rank 0.
    Spoke(Link),
}

fn listen(port: u16) -> Result<TcpListener, StarError> {
    // A host without IPv6 has no `::`.
    TcpListener::bind(("::", port))
        .or_else(|_| TcpListener::bind(("0.0.0.0", port)))
        .map_err(|error| StarError::Listen(if port == 0 { "any port".into() } else { format!("port {port}") }, error))
}

/// The text that rank 0 shares: `PORT,TOKEN,ADDRESS,…`.
pub fn announcement(port: u16, token: &str, addresses: &[IpAddr]) -> String {
    let mut text = format!("{port},{token}");
    for address in addresses {
        let more = format!(",{address}");
        if text.len() + more.len() > crate::launcher::SHARED_BYTES_MAX {
            break;
        }
        text.push_str(&more);
    }
    text
}

/// Reads the text of rank 0: its addresses and the token.
///
/// # Errors
/// It has another form.
pub fn parse_announcement(text: &str) -> Result<(Vec<SocketAddr>, String), StarError> {
    let unknown = || StarError::Announcement(text.to_owned());
    let mut words = text.split(',');
    let port: u16 = words.next().and_then(|word| word.parse().ok()).ok_or_else(unknown)?;
    let token = words.next().filter(|token| !token.is_empty() && token.len() <= TOKEN_BYTES_MAX).ok_or_else(unknown)?;
    let addresses: Option<Vec<IpAddr>> = words.map(|word| word.parse().ok()).collect();
    let addresses = addresses.filter(|addresses| !addresses.is_empty()).ok_or_else(unknown)?;
    Ok((addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect(), token.to_owned()))
}

/// Connects all ranks through the launcher's key-value space. `notify` gets a sentence when ranks are late or not accepted.
///
/// # Errors
/// A rank is missing or there twice, or this rank finds no way to rank 0.
pub fn through_key_space(space: &mut dyn KeySpace, limit: Limit, notify: &dyn Fn(&str)) -> Result<Star, StarError> {
    if space.rank() == 0 {
        let listener = listen(0)?;
        let port = listener.local_addr().map_err(|e| StarError::Listen("any port".into(), e))?.port();
        let token = random_id();
        space.share(Some(&announcement(port, &token, &address::of_this_host())), limit)?;
        return Ok(Star::Hub(Hub::accept(&listener, space.size(), token.as_bytes(), limit, notify)?));
    }
    let (addresses, token) = parse_announcement(&space.share(None, limit)?)?;
    join(&|| addresses.clone(), space.rank(), token.as_bytes(), limit).map(Star::Spoke)
}

/// Connects all ranks as four variables say; `notify` as in [`through_key_space`].
///
/// # Errors
/// As [`through_key_space`].
pub fn by_variables(rendezvous: &Rendezvous, limit: Limit, notify: &dyn Fn(&str)) -> Result<Star, StarError> {
    let Rendezvous { rank, size, host, port, token } = rendezvous;
    let loopback = loopback_of(host, *port);
    if loopback.is_none() && token.len() < TOKEN_BYTES_MIN {
        let missing = match token.len() {
            0 => "is not set".to_owned(),
            length => format!("has {length} bytes instead of at least {TOKEN_BYTES_MIN}"),
        };
        return Err(StarError::NoToken { missing, host: host.clone() });
    }
    if *rank == 0 {
        let listener = match loopback {
            Some(addresses) => TcpListener::bind(&addresses[..])
                .map_err(|error| StarError::Listen(format!("port {port} of {host}"), error))?,
            None => listen(*port)?,
        };
        return Ok(Star::Hub(Hub::accept(&listener, *size, token.as_bytes(), limit, notify)?));
    }
    // A name in DNS appears when rank 0 has an address, so each attempt resolves it again.
    let resolve = || (host.as_str(), *port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    join(&resolve, *rank, token.as_bytes(), limit).map(Star::Spoke).map_err(|error| match error {
        StarError::NoConnection { rank, seconds, reason, .. } => {
            StarError::NoConnection { rank, tried: format!("{host}:{port}"), seconds, reason }
        }
        error => error,
    })
}

/// Returns the addresses of a host if no other host can reach them.
fn loopback_of(host: &str, port: u16) -> Option<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().ok()?.collect();
    let is_loopback = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    (!addresses.is_empty() && addresses.iter().all(is_loopback)).then_some(addresses)
}

/// Tries the addresses of rank 0 until one accepts. Another host may have the same private address: it does not accept the
/// token.
fn join(addresses: &dyn Fn() -> Vec<SocketAddr>, rank: u32, token: &[u8], limit: Limit) -> Result<Link, StarError> {
    let until = limit.begin();
    let mut reason = "its name cannot be resolved".to_owned();
    loop {
        let found = addresses();
        for address in &found {
            match hello(address, rank, token) {
                Ok((stream, ACCEPTED)) => {
                    return Link::new(stream, limit).map_err(StarError::Accept);
                }
                Ok((_, TAKEN)) => return Err(StarError::Twice(rank)),
                Ok((_, BEYOND)) => return Err(StarError::Unexpected(rank)),
                Ok((_, OTHER_TOKEN)) => return Err(StarError::OtherToken(*address, rank)),
                Ok((_, OTHER_PROTOCOL)) => return Err(StarError::OtherProtocol(*address, rank)),
                Ok((_, answer)) => reason = format!("{address} answered {answer}"),
                Err(error) => reason = format!("{address}: {error}"),
            }
        }
        if until.is_over() {
            let tried = found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(StarError::NoConnection { rank, tried, seconds: limit.seconds(), reason });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Joins rank 0 at one address.
#[cfg(test)]
pub(crate) fn join_at(address: SocketAddr, rank: u32, token: &[u8], limit: Limit) -> Result<Link, StarError> {
    join(&|| vec![address], rank, token, limit)
}

/// Connects and sends a rank's hello; returns rank 0's answer.
fn hello(address: &SocketAddr, rank: u32, token: &[u8]) -> std::io::Result<(TcpStream, u8)> {
    let mut stream = TcpStream::connect_timeout(address, ATTEMPT)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(ATTEMPT))?;
    // Rank 0 answers when it accepts, which may be after others.
    stream.set_read_timeout(Some(ATTEMPT * 2))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&rank.to_be_bytes());
    bytes.extend_from_slice(&(token.len() as u16).to_be_bytes());
    bytes.extend_from_slice(token);
    stream.write_all(&bytes)?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    Ok((stream, answer[0]))
}

/// Writes a list of ranks for a message: `rank 3`, `ranks 1, 3 to 5`.
pub fn rank_list(ranks: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *rank => *last = *rank,
            _ => parts.push((*rank, *rank)),
        }
    }
    let words: Vec<String> = parts
        .iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first} to {last}"),
        })
        .collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, words.join(", "))
}

impl From<LinkError> for StarError {
    fn from(error: LinkError) -> Self {
        StarError::Accept(std::io::Error::other(error))
    }
}

#[cfg(test)]
mod tests;
