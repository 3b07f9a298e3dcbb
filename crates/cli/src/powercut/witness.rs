//! `trueio powercut witness`: listens on a machine that keeps its power, and notes what another one has acknowledged.
//!
//! A connection that does not send the magic and the token is closed without an answer. Each message is bounded in length and
//! in number, and numbers that no machine of this program sends end the connection. One machine is armed at a time.

use crate::failure::Failure;
use crate::output;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use trueio_cluster::frame;
use trueio_cluster::range::cut;
use trueio_cluster::token::{TOKEN_BYTES_MAX, Token, TokenError};
use trueio_model::PowercutMethod;
use trueio_model::units::format_count;
use trueio_powercut::cut::{FromWitness, MESSAGE_BYTES_MAX, Standing, ToWitness, Witness};
use trueio_report::{message, powercut_verdicts};
use trueio_run::machine::entropy;
use trueio_run::watch_signals;

pub(super) const ABOUT: &str = "Listen on another machine for what a machine acknowledges before its power goes";
/// The first bytes of each side. They change with the protocol.
pub(super) const MAGIC: [u8; 16] = *b"trueio-powercut\n";
/// The word in the name of a token that a witness creates.
pub(super) const OWN_TOKENS: &str = "powercut";
/// Where a witness listens by default.
pub(super) const ADDRESS: &str = "127.0.0.1:7470";
/// A machine sends a message at least each second; one without power sends none.
const SILENCE: Duration = Duration::from_secs(10);
/// Longest wait for the magic and the token.
const HELLO: Duration = Duration::from_secs(3);
/// Connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// Messages of a connection in a second: a machine sends at most 200.
const MESSAGES_PER_S: u32 = 1000;
/// Load before `--cut-with`, and the random time after it, in ms.
const LOAD_MS: u64 = 20_000;
const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS:PORT")
                .help("Where to listen; other than on a loopback address, a token is needed")
                .default_value(ADDRESS),
        )
        .arg(token_file())
        .arg(crate::flags::json(
            "Write the address and the token's file as JSON when it listens; without FILE to standard output",
        ))
        .arg(
            Arg::new("cut-with")
                .long("cut-with")
                .value_name("COMMAND")
                .help("Run this with `sh -c` to cut the power of the machine, 20 to 40 s after its load began"),
        )
}

/// The option that names a token, of the witness and of the machines.
pub(super) fn token_file() -> Arg {
    Arg::new("token-file")
        .long("token-file")
        .value_name("FILE")
        .help("The file with the token: one word, readable by its user only; on loopback the witness creates one")
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
}

/// A witness that listens.
struct Listening {
    witness: Mutex<Witness>,
    token: Token,
    began: Instant,
    connections: AtomicUsize,
}

impl Listening {
    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }
}

/// `trueio powercut witness`.
pub(super) fn command(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let text = matches.get_one::<String>("listen").expect("it has a default");
    let failed = |error: &std::io::Error| Failure::failed(format!("the witness cannot listen on `{text}`"), error);
    let listener = TcpListener::bind(text).map_err(|error| failed(&error))?;
    let address = listener.local_addr().map_err(|error| failed(&error))?;
    listener.set_nonblocking(true).map_err(|error| failed(&error))?;
    let stop = watch_signals();
    let named = matches.get_one::<PathBuf>("token-file");
    let (token, created) = token_of(named, address)?;
    let shown = named.or(created.as_ref()).map(|path| path.display().to_string()).unwrap_or_default();
    let json = || format!("{:#}\n", serde_json::json!({ "address": address.to_string(), "token_file": shown }));
    if !output::print_json(matches, json)? {
        output::print_all(&format!("witness: listening on {address} (token: {shown})\n"))?;
    }
    let listening = Arc::new(Listening {
        witness: Mutex::default(),
        token,
        began: Instant::now(),
        connections: AtomicUsize::new(0),
    });
    let command = matches.get_one::<String>("cut-with");
    let (mut number, mut cut_round, mut wait_ms) = (0, 0, LOAD_MS);
    while !stop.load(Relaxed) {
        match listener.accept() {
            Ok((stream, peer)) => {
                number += 1;
                admit(&listening, stream, peer, number);
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
        if let Some(command) = command {
            cut_when_due(&listening, command, &mut cut_round, &mut wait_ms);
        }
    }
    if let Some(path) = created {
        // Another witness may have replaced it; it is of no use without this one.
        let _ = std::fs::remove_file(path);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the token, and the file if it was created.
fn token_of(named: Option<&PathBuf>, address: SocketAddr) -> Result<(Token, Option<PathBuf>), Failure> {
    if let Some(path) = named {
        return Ok((Token::read(path).map_err(|error| Failure::refused(error.explained(None)))?, None));
    }
    if !address.ip().to_canonical().is_loopback() {
        return Err(Failure::refused(
            "machines on other hosts need a token\n\nhint: create one with `(umask 077; openssl rand -hex 32 > FILE)`, start the \
             witness with `--token-file FILE`, and copy the file to the machine",
        ));
    }
    let refused = |error: TokenError| Failure::refused(error.explained(Some("name a token with `--token-file FILE`")));
    let path = Token::create(OWN_TOKENS, address).map_err(refused)?;
    Ok((Token::read_own(&path).map_err(refused)?, Some(path)))
}

/// Starts a thread for a connection, unless there are too many.
fn admit(listening: &Arc<Listening>, stream: TcpStream, peer: SocketAddr, number: u64) {
    if listening.connections.fetch_add(1, Relaxed) >= CONNECTIONS_MAX {
        listening.connections.fetch_sub(1, Relaxed);
        return;
    }
    let listening = Arc::clone(listening);
    std::thread::spawn(move || {
        let reason = converse(&listening, stream, number);
        let round = listening.witness.lock().expect("no panic").closed(number);
        if let Some(reason) = reason {
            message!("the connection from {peer} is closed: {}", cut(&reason));
        }
        if let Some(round) = round {
            message!(
                "round {round}: the machine no longer answers; `trueio powercut verify` checks it when it is back"
            );
        }
        listening.connections.fetch_sub(1, Relaxed);
    });
}

/// Reads exactly these bytes before a deadline, so that a stranger who sends byte by byte does not stay.
fn has_hello(listening: &Listening, stream: &mut TcpStream) -> bool {
    let deadline = Instant::now() + HELLO;
    let mut read = |bytes: &mut [u8]| {
        let mut done = 0;
        while done < bytes.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
                return false;
            }
            match stream.read(&mut bytes[done..]) {
                Ok(0) => return false,
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    };
    let (mut magic, mut length) = ([0; MAGIC.len()], [0; 4]);
    if !read(&mut magic) || magic != MAGIC || !read(&mut length) {
        return false;
    }
    let length = u32::from_be_bytes(length);
    let mut sent = vec![0; length.min(TOKEN_BYTES_MAX) as usize];
    length <= TOKEN_BYTES_MAX && read(&mut sent) && listening.token.is_equal(&sent)
}

/// Serves a connection until it ends; returns why it was closed, unless its peer closed it or is a stranger.
fn converse(listening: &Listening, mut stream: TcpStream, number: u64) -> Option<String> {
    stream.set_nonblocking(false).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_write_timeout(Some(SILENCE)).ok()?;
    if !has_hello(listening, &mut stream) {
        return None;
    }
    stream.set_read_timeout(Some(SILENCE)).ok()?;
    stream.write_all(&MAGIC).ok()?;
    let (mut second, mut messages) = (Instant::now(), 0);
    loop {
        let message: ToWitness = match frame::receive(&mut stream, MESSAGE_BYTES_MAX) {
            Ok(message) => message,
            Err(frame::FrameError::Closed) => return None,
            Err(error) => return Some(trueio_model::error_line(&error)),
        };
        if second.elapsed() >= Duration::from_secs(1) {
            (second, messages) = (Instant::now(), 0);
        }
        messages += 1;
        if messages > MESSAGES_PER_S {
            return Some(format!("it sent more than {MESSAGES_PER_S} messages in a second"));
        }
        let is_armed = matches!(message, ToWitness::Arm { .. });
        let answer = listening.witness.lock().expect("no panic").handle(number, message, listening.now_ms());
        let answer = match answer {
            Ok(answer) => answer,
            Err(offence) => return Some(offence.to_string()),
        };
        announce(&answer, is_armed);
        if let Err(error) = frame::send(&mut stream, &answer, MESSAGE_BYTES_MAX) {
            return Some(trueio_model::error_line(&error));
        }
    }
}

/// Prints what a round has come to.
fn announce(answer: &FromWitness, is_armed: bool) {
    match answer {
        FromWitness::Armed { round } if is_armed => message!("round {round}: a machine is armed"),
        FromWitness::Total { cuts, standings } => {
            if let [disk, methods @ ..] = &standings[..] {
                let methods: Vec<PowercutMethod> = methods.iter().filter_map(Standing::record).collect();
                let text = format!("after {cuts} cuts\n{}", powercut_verdicts(disk.verdict, &disk.sentence, &methods));
                // The round counts even if nothing reads this.
                let _ = output::print_all(&trueio_report::clean_lines(&text));
            }
        }
        _ => {}
    }
}

/// Runs the command of `--cut-with` once in each round, at a random moment after the load began.
fn cut_when_due(listening: &Listening, command: &str, cut_round: &mut u64, wait_ms: &mut u64) {
    let witness = listening.witness.lock().expect("no panic");
    let (Some((round, acknowledged)), Some(writing_ms)) =
        (witness.open_round(), witness.writing_ms(listening.now_ms()))
    else {
        return;
    };
    drop(witness);
    if round == *cut_round || writing_ms < *wait_ms {
        return;
    }
    (*cut_round, *wait_ms) = (round, LOAD_MS + entropy() % LOAD_MS);
    message!("round {round}: {} writes are acknowledged; cutting the power", format_count(acknowledged));
    match std::process::Command::new("sh").args(["-c", command]).status() {
        Ok(status) if status.success() => {}
        Ok(status) => message!("warning: `--cut-with`: the command ended with {status}"),
        Err(error) => message!("warning: `--cut-with`: the command cannot be started: {error}"),
    }
}
