//! Rank 0's side of the connections.

use super::link::{Link, LinkError, Traffic};
use super::{ACCEPTED, BEYOND, MAGIC, MAGIC_OF_ALL, OTHER_PROTOCOL, OTHER_TOKEN, StarError, TAKEN, rank_list};
use crate::Limit;
use crate::budget::{Account, Budget};
use crate::frame::{self, FrameError};
use crate::launcher::{TOKEN_BYTES_MAX, TOKEN_VARIABLE};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Longest wait for the hello of a connection: a stranger that sends nothing is dropped.
const HELLO: Duration = Duration::from_secs(10);
/// After this time rank 0 prints which ranks it waits for.
const LATE: Duration = Duration::from_secs(5);
/// Callers with another secret or version that are named.
const REFUSED_MAX: usize = 8;
/// Connections without a hello that are kept at a time, in addition to one for each rank.
const STRANGERS_MAX: usize = 64;

/// A connection that has not sent its hello.
struct Caller {
    stream: TcpStream,
    received: Vec<u8>,
    since: Instant,
}

/// What a caller's bytes are.
enum Hello {
    Incomplete,
    Stranger,
    Rank(u32),
    /// A rank of ours with another secret.
    OtherToken(u32),
    /// A rank of another version: the bytes that name it.
    OtherProtocol(String),
}

impl Caller {
    /// Reads what is there.
    fn hello(&mut self, token: &[u8]) -> Hello {
        let mut bytes = [0; MAGIC.len() + 6 + TOKEN_BYTES_MAX];
        let missing = MAGIC.len() + 6 + token.len() - self.received.len();
        match self.stream.read(&mut bytes[..missing]) {
            Ok(0) => return Hello::Stranger,
            Ok(count) => self.received.extend_from_slice(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Hello::Stranger,
        }
        let known = self.received.len().min(MAGIC.len());
        if self.received[..known] != MAGIC[..known] {
            let is_ours = known == MAGIC.len() && self.received.starts_with(MAGIC_OF_ALL);
            let number = self.received[MAGIC_OF_ALL.len().min(known)..known].iter();
            let number: String = number.map(|byte| char::from(*byte)).filter(char::is_ascii_digit).collect();
            return if is_ours { Hello::OtherProtocol(number) } else { Hello::Stranger };
        }
        let Some((head, sent)) = self.received.split_at_checked(MAGIC.len() + 6) else { return Hello::Incomplete };
        let length = u16::from_be_bytes([head[20], head[21]]);
        let rank = u32::from_be_bytes([head[16], head[17], head[18], head[19]]);
        if usize::from(length) != token.len() {
            return Hello::OtherToken(rank);
        }
        if sent.len() < token.len() {
            return Hello::Incomplete;
        }
        // The time of the comparison does not depend on where the first difference is.
        let difference = sent.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
        if difference == 0 { Hello::Rank(rank) } else { Hello::OtherToken(rank) }
    }

    /// Sends one byte; whether it arrives is the caller's business.
    fn answer(mut self, answer: u8) -> Option<TcpStream> {
        self.stream.write_all(&[answer]).ok()?;
        Some(self.stream)
    }
}

/// A rank that is no longer there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Which.
    pub rank: u32,
    /// Why: `its connection ended`.
    pub reason: String,
}

/// A message of a rank.
#[derive(Debug, PartialEq, Eq)]
pub struct Message<T> {
    /// What it holds.
    pub content: T,
    /// The memory that it takes at most, in bytes.
    pub(crate) weight: u64,
}

/// The connections to all other ranks.
#[derive(Debug)]
pub struct Hub {
    /// By rank less 1; `None` for a rank that is lost.
    links: Vec<Option<Link>>,
    lost: Vec<Lost>,
    limit: Limit,
    /// What each rank has used, by rank less 1.
    accounts: Vec<Account>,
    /// What each may use.
    budget: Budget,
    step_began: Instant,
}

impl Hub {
    /// Accepts one connection of each other rank that sends the token. A caller with another secret or version gets an answer,
    /// so that it ends at once, and rank 0 goes on waiting: any process of the network could be one. `notify` gets a sentence
    /// about it, and about ranks that are late.
    ///
    /// # Errors
    /// A rank is missing after the limit, or there twice.
    pub fn accept(
        listener: &TcpListener,
        size: u32,
        token: &[u8],
        limit: Limit,
        notify: &dyn Fn(&str),
    ) -> Result<Self, StarError> {
        let until = limit.begin();
        provide_descriptors(size)?;
        let (mut late_at, mut refused) = (Some(Instant::now() + LATE), Vec::new());
        let mut refuse = |caller: Caller, answer: u8, what: String| {
            let from =
                caller.stream.peer_addr().map_or_else(|_| "an unknown address".to_owned(), |at| at.ip().to_string());
            drop(caller.answer(answer));
            if refused.len() < REFUSED_MAX {
                let sentence = format!("{what}, at {from}, was not accepted");
                notify(&sentence);
                refused.push(sentence);
            }
        };
        listener.set_nonblocking(true).map_err(StarError::Accept)?;
        let mut links: Vec<Option<Link>> = (1..size).map(|_| None).collect();
        let mut callers: Vec<Caller> = Vec::new();
        let mut missing = links.len();
        while missing > 0 {
            wait_for_callers(listener, &callers, until)?;
            while let Some(stream) = next_caller(listener)? {
                if stream.set_nonblocking(true).is_ok() {
                    callers.push(Caller { stream, received: Vec::new(), since: Instant::now() });
                }
                if callers.len() > size as usize + STRANGERS_MAX {
                    callers.remove(0);
                }
            }
            let mut waiting = Vec::new();
            for mut caller in callers.drain(..) {
                match caller.hello(token) {
                    Hello::Incomplete if caller.since.elapsed() < HELLO => waiting.push(caller),
                    Hello::Incomplete | Hello::Stranger => {}
                    Hello::OtherToken(rank) => {
                        refuse(caller, OTHER_TOKEN, format!("a process with another {TOKEN_VARIABLE}, as rank {rank}"));
                    }
                    Hello::OtherProtocol(number) => {
                        let ours = String::from_utf8_lossy(&MAGIC[MAGIC_OF_ALL.len()..]).trim().to_owned();
                        let what = format!("a rank with version {number} of the protocol instead of {ours}");
                        refuse(caller, OTHER_PROTOCOL, what);
                    }
                    Hello::Rank(rank) => match links.get_mut((rank as usize).wrapping_sub(1)) {
                        None => drop(caller.answer(BEYOND)),
                        Some(Some(_)) => {
                            drop(caller.answer(TAKEN));
                            return Err(StarError::Twice(rank));
                        }
                        Some(place) => {
                            let Some(stream) = caller.answer(ACCEPTED) else { continue };
                            *place = Some(Link::new(stream, limit).map_err(StarError::Accept)?);
                            missing -= 1;
                        }
                    },
                }
            }
            callers = waiting;
            let absent = || (1..size).filter(|rank| links[*rank as usize - 1].is_none()).collect::<Vec<u32>>();
            if missing > 0 && late_at.is_some_and(|at| Instant::now() >= at) {
                late_at = None;
                notify(&format!("waiting for {} of {size}, at most {} s", rank_list(&absent()), limit.seconds()));
            }
            if missing > 0 && until.is_over() {
                let refused = refused.iter().map(|sentence| format!("; {sentence}")).collect();
                return Err(StarError::Missing { ranks: rank_list(&absent()), refused, seconds: limit.seconds() });
            }
        }
        let accounts = vec![Account::default(); links.len()];
        Ok(Self { links, lost: Vec::new(), limit, accounts, budget: Budget::default(), step_began: Instant::now() })
    }

    /// Begins a step: the messages of each rank are counted from now on.
    pub(crate) fn begin_step(&mut self) {
        self.step_began = Instant::now();
        self.accounts.iter_mut().for_each(Account::begin_step);
    }

    /// Counts results of rank 0: those of the others may take a multiple of their memory.
    pub(crate) fn add_own(&mut self, own: &impl Serialize) {
        let text = serde_json::to_string(own).unwrap_or_default();
        self.budget.add_own(crate::weight::of_json(&text, u64::MAX).unwrap_or(0));
    }

    /// Returns the number of ranks, rank 0 included.
    pub fn size(&self) -> u32 {
        self.links.len() as u32 + 1
    }

    /// Returns the ranks that are no longer there, in the order of their loss.
    pub fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// Returns the ranks that are there, without rank 0.
    pub fn living(&self) -> Vec<u32> {
        (1..self.size()).filter(|rank| self.links[*rank as usize - 1].is_some()).collect()
    }

    /// Returns the connection of a rank; `None`: it is lost.
    pub fn link(&mut self, rank: u32) -> Option<&mut Link> {
        self.links.get_mut(rank as usize - 1)?.as_mut()
    }

    /// Returns what went over each connection in messages, by rank.
    pub fn traffic(&self) -> Vec<Traffic> {
        self.links.iter().flatten().map(Link::traffic).collect()
    }

    /// Gives up a rank: it is listed as lost, and its connection is closed.
    pub fn lose(&mut self, rank: u32, reason: impl Into<String>) {
        if self.links[rank as usize - 1].take().is_some() {
            self.lost.push(Lost { rank, reason: reason.into() });
        }
    }

    /// Sends a message to all ranks; one that does not take it is lost.
    pub fn broadcast(&mut self, message: &impl Serialize) {
        let frame = frame::encode(message, u32::MAX).expect("a message of rank 0 can be encoded");
        // Ranks that read nothing delay the others once, and not each of them.
        let until = self.limit.begin();
        for rank in self.living() {
            if let Some(Err(error)) = self.link(rank).map(|link| link.send_encoded(&frame, until)) {
                self.lose(rank, reason_of(&error));
            }
        }
    }

    /// Waits until a message of one of these ranks, or the end of its connection, can be read; returns those ranks, none
    /// after the time.
    pub fn readable(&self, ranks: &[u32], wait: Duration) -> Vec<u32> {
        let links: Vec<(u32, &Link)> =
            ranks.iter().filter_map(|rank| Some((*rank, self.links.get(*rank as usize - 1)?.as_ref()?))).collect();
        let mut waiting: Vec<PollFd<'_>> = links.iter().map(|(_, link)| PollFd::new(*link, PollFlags::IN)).collect();
        let time = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        if rustix::event::poll(&mut waiting, Some(&time)).is_err() {
            return Vec::new();
        }
        let found = links.iter().zip(&waiting).filter(|(_, waiting)| !waiting.revents().is_empty());
        found.map(|((rank, _), _)| *rank).collect()
    }

    /// Receives a message of a rank, if all of it has arrived. A rank whose connection is over, or that leaves its budget, is lost.
    pub fn receive<T: DeserializeOwned>(&mut self, rank: u32) -> Option<Message<T>> {
        let bytes_max = self.budget.frame_bytes_max();
        let frame = self.link(rank)?.receive_now(bytes_max).transpose()?;
        let received = frame.and_then(|frame| self.admit(rank, &frame));
        received.map_err(|error| self.lose(rank, reason_of(&error))).ok()
    }

    /// Counts a message, and reads it if its memory is within the budget.
    fn admit<T: DeserializeOwned>(&mut self, rank: u32, frame: &[u8]) -> Result<Message<T>, LinkError> {
        let elapsed_s = self.step_began.elapsed().as_secs();
        let (limit, budget) = (self.limit, self.budget);
        let account = &mut self.accounts[rank as usize - 1];
        account.receive(frame.len() as u64, elapsed_s, &budget)?;
        let malformed = |error| LinkError::of(error, limit);
        let weight = frame::weight(frame, budget.kept_max()).map_err(malformed)?;
        account.check(weight, &budget)?;
        Ok(Message { content: frame::parse(frame).map_err(malformed)?, weight })
    }

    /// Checks the memory of a text of a rank that is JSON itself; a rank whose text takes too much is lost.
    pub(crate) fn admits(&mut self, rank: u32, text: &str) -> bool {
        let (limit, most) = (self.limit, self.budget.kept_max());
        let weight = crate::weight::of_json(text, most);
        let weight = weight.map_err(|error| LinkError::of(FrameError::Malformed(error), limit));
        let account = &self.accounts[rank as usize - 1];
        match weight.and_then(|weight| Ok(account.check(weight, &self.budget)?)) {
            Ok(()) => true,
            Err(error) => {
                self.lose(rank, reason_of(&error));
                false
            }
        }
    }

    /// Counts a message that is kept until the end of the run.
    pub(crate) fn keep(&mut self, rank: u32, weight: u64) {
        self.accounts[rank as usize - 1].keep(weight);
    }

    /// Returns the limit of each operation.
    pub fn limit(&self) -> Limit {
        self.limit
    }
}

/// Raises the limit of open files for the connections of all ranks.
fn provide_descriptors(size: u32) -> Result<(), StarError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Next to the connections: strangers, and what the program has open.
    let wanted = u64::from(size) + STRANGERS_MAX as u64 + 256;
    let found = getrlimit(Resource::Nofile);
    if found.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let most = found.maximum.unwrap_or(u64::MAX);
    let raised = Rlimit { current: Some(wanted.min(most)), maximum: found.maximum };
    if most < wanted || setrlimit(Resource::Nofile, raised).is_err() {
        return Err(StarError::Descriptors { size, wanted, most });
    }
    Ok(())
}

/// Accepts a caller, if there is one.
fn next_caller(listener: &TcpListener) -> Result<Option<TcpStream>, StarError> {
    match listener.accept() {
        Ok((stream, _)) => Ok(Some(stream)),
        // Without a descriptor no rank can join: waiting would hide it.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) => {
            Err(StarError::Accept(error))
        }
        Err(_) => Ok(None),
    }
}

/// Returns the reason of a loss. The parser repeats parts of what it cannot read.
fn reason_of(error: &LinkError) -> String {
    crate::range::cut(&trueio_model::error_line(error))
}

/// Waits for a connection or for bytes of a caller, at most a second: callers that send nothing are dropped by time.
fn wait_for_callers(listener: &TcpListener, callers: &[Caller], until: crate::limit::Until) -> Result<(), StarError> {
    let mut waiting = vec![PollFd::new(listener, PollFlags::IN)];
    waiting.extend(callers.iter().map(|caller| PollFd::new(&caller.stream, PollFlags::IN)));
    let left = until.left();
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    match rustix::event::poll(&mut waiting, Some(if left.tv_sec >= 1 { &second } else { &left })) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(StarError::Accept(error.into())),
    }
}
