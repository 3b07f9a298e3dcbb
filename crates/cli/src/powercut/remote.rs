//! `trueio powercut arm` and `verify`: the machine whose power goes, and its witness.
//!
//! The load never waits for a single answer: numbers go out in batches, and each region may be ahead of the witness by a window. If
//! the witness stops answering, the load stops.

use super::record;
use super::witness::{MAGIC, OWN_TOKENS, token_file};
use super::{Request, open, read_regions, request_of};
use crate::failure::Failure;
use crate::output::{self, Outputs};
use crate::powercut::subject::Subject;
use crate::progress::Line;
use clap::{Arg, ArgMatches, Command};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_cluster::frame::{self, FrameError};
use trueio_cluster::token::{TOKEN_BYTES_MAX, Token, TokenError, own_path};
use trueio_model::PowercutWay;
use trueio_model::units::format_count;
use trueio_powercut::cut::{FromWitness, Load, MESSAGE_BYTES_MAX, Region, Stamp, ToWitness, Verdict, window_of};
use trueio_report::{clean_lines, message};
use trueio_run::machine::entropy;
use trueio_run::watch_signals;

pub(super) const ABOUT_ARM: &str = "Write until the power of this machine goes, with a witness on another one";
pub(super) const ABOUT_VERIFY: &str = "Read back what the witness knows to be acknowledged, after the power went";
/// Longest wait for the witness; then the load stops.
const PATIENCE: Duration = Duration::from_secs(5);
/// Distance of batches.
const EVERY: Duration = Duration::from_millis(5);
/// A batch goes out at least this often, also without new numbers.
const ALIVE: Duration = Duration::from_secs(1);

/// Adds the options that name a witness.
pub(super) fn with_witness(command: Command) -> Command {
    let witness = Arg::new("witness")
        .long("witness")
        .value_name("HOST:PORT")
        .required(true)
        .help("Where `trueio powercut witness` listens");
    command.arg(witness).arg(token_file())
}

/// A connection to a witness.
struct Connection(TcpStream);

/// Why the witness gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
enum WitnessError {
    /// The connection failed.
    #[error("the witness cannot be reached")]
    Io(#[from] std::io::Error),
    /// It did not accept the token.
    #[error("the witness did not accept the token, or is another program")]
    NotAccepted,
    /// No answer.
    #[error("the witness gave no answer")]
    Frame(#[from] FrameError),
    /// A refusal.
    #[error("{0}")]
    Refused(String),
    /// An answer to something else.
    #[error("the witness gave another answer than expected")]
    Unexpected,
}

impl Connection {
    /// Connects, and sends the token.
    fn open(matches: &ArgMatches) -> Result<Self, Failure> {
        let host = matches.get_one::<String>("witness").expect("clap requires it");
        let failed = |error: &(dyn std::error::Error + 'static)| {
            Failure::failed(format!("the witness `{host}` cannot be used"), error)
        };
        let addresses =
            host.to_socket_addrs().map_err(|error| Failure::failed(format!("`{host}` cannot be resolved"), &error))?;
        let refused = |error: TokenError| Failure::refused(error.explained(None));
        let named =
            matches.get_one::<PathBuf>("token-file").map(|path| Token::read(path).map_err(refused)).transpose()?;
        // A name has several addresses (`localhost`: ::1 and 127.0.0.1), and the witness listens on one.
        let mut problem = Failure::refused(format!("`{host}` has no address"));
        for address in addresses {
            let own = if named.is_none() { own_token(address).map(Some) } else { Ok(None) };
            let greeted = own.and_then(|own| {
                let token = named.as_ref().or(own.as_ref()).expect("one of them is there");
                Self::greet(address, token).map_err(|error| failed(&error))
            });
            match greeted {
                Ok(stream) => return Ok(Self(stream)),
                Err(failure) => problem = failure,
            }
        }
        Err(problem)
    }

    fn greet(address: SocketAddr, token: &Token) -> Result<TcpStream, WitnessError> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&MAGIC)?;
        frame::send_bytes(&mut stream, token.bytes(), TOKEN_BYTES_MAX)?;
        let mut magic = [0; MAGIC.len()];
        stream.read_exact(&mut magic).map_err(|_| WitnessError::NotAccepted)?;
        if magic == MAGIC { Ok(stream) } else { Err(WitnessError::NotAccepted) }
    }

    fn ask(&mut self, message: &ToWitness) -> Result<FromWitness, WitnessError> {
        frame::send(&mut self.0, message, MESSAGE_BYTES_MAX)?;
        match frame::receive(&mut self.0, MESSAGE_BYTES_MAX)? {
            FromWitness::Refused { text } => Err(WitnessError::Refused(text)),
            answer => Ok(answer),
        }
    }
}

/// Returns the token that a witness of this user on this machine created.
fn own_token(address: SocketAddr) -> Result<Token, Failure> {
    let path = own_path(OWN_TOKENS, address).filter(|_| address.ip().to_canonical().is_loopback());
    match path.filter(|path| path.exists()) {
        Some(path) => Token::read_own(&path).map_err(|error| Failure::refused(error.explained(None))),
        None => Err(Failure::refused(format!(
            "no token for the witness at {address} is known\n\nhint: name a copy of the witness's token with `--token-file FILE`"
        ))),
    }
}

/// Returns a refusal of the witness with code 2, another error with code 1.
fn failure_of(what: &str, error: &WitnessError) -> Failure {
    match error {
        WitnessError::Refused(text) => Failure::refused(clean_lines(text)),
        error => Failure::failed(what, error),
    }
}

/// `trueio powercut arm`.
pub(super) fn arm(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let request = request_of(matches);
    output::check(matches, std::iter::once(Path::new(&request.target)))?;
    let mut witness = Connection::open(matches)?;
    let run = entropy();
    let mut subject = open(&request, run, matches)?;
    let stop = watch_signals();
    let armed = write_with(&mut witness, &subject, &request, run, matches, stop);
    subject.release();
    if let Err(error) = subject.clean_up() {
        message!("warning: the folder of this run cannot be removed: {error}");
    }
    armed.map(|()| ExitCode::FAILURE)
}

/// Writes until the power goes; returns only if it does not.
fn write_with(
    witness: &mut Connection,
    subject: &Subject,
    request: &Request,
    run: u64,
    matches: &ArgMatches,
    stop: &'static AtomicBool,
) -> Result<(), Failure> {
    let (parts, unsupported) = subject.parts()?;
    for method in unsupported {
        message!("note: `{}` is left out: the filesystem has no direct I/O", method.name());
    }
    let regions: Vec<Region> = parts.iter().map(|(region, _)| *region).collect();
    let windows: Vec<u64> = regions.iter().map(window_of).collect();
    let plan = subject.plan(run, regions);
    let arm = ToWitness::Arm { plan, discards: matches.get_flag("discard") };
    let round = match witness.ask(&arm).map_err(|error| failure_of("the machine is not armed", &error))? {
        FromWitness::Armed { round } => round,
        _ => return Err(failure_of("the machine is not armed", &WitnessError::Unexpected)),
    };
    let json = || format!("{:#}\n", serde_json::json!({ "round": round, "target": request.target }));
    // The machine is armed: what waits for the document fails, and not the test.
    if let Err(failure) = output::print_json(matches, json) {
        message!("{}", failure.into_text());
    }
    message!("round {round}: writing");
    let load = Load::start(Stamp { run }, parts, window_of);
    let line = Line::new();
    let confirmed = confirm(witness, &load, round, &windows, request, &line, stop);
    let ended = load.finish();
    line.clear();
    confirmed.map_err(|error| {
        let what = "the load was stopped: what the witness does not know is not acknowledged";
        failure_of(what, &error)
    })?;
    if let Some(error) = ended.errors.first() {
        return Err(Failure::failed(format!("`{}` failed: the test ends", request.target), error));
    }
    witness.ask(&ToWitness::Disarm { round }).map_err(|error| failure_of("the round was not ended", &error))?;
    message!("the power did not go: round {round} is not counted");
    Ok(())
}

/// Sends the numbers of the load until it fails or a signal arrives.
fn confirm(
    witness: &mut Connection,
    load: &Load,
    round: u64,
    windows: &[u64],
    request: &Request,
    line: &Line,
    stop: &AtomicBool,
) -> Result<(), WitnessError> {
    let (mut sent, mut at, mut is_prompted) = (Vec::new(), Instant::now(), false);
    while !stop.load(Relaxed) && !load.has_failed() {
        let through = load.acknowledged();
        if through != sent || at.elapsed() >= ALIVE {
            if witness.ask(&ToWitness::Acknowledged { round, through: through.clone() })? != FromWitness::Noted {
                return Err(WitnessError::Unexpected);
            }
            for (index, (number, window)) in through.iter().zip(windows).enumerate() {
                load.permit(index, number + window);
            }
            (sent, at) = (through, Instant::now());
        }
        let (elapsed, acknowledged) = (load.elapsed(), format_count(sent.iter().sum()));
        if !is_prompted && elapsed >= request.load {
            is_prompted = true;
            let seconds = request.load.as_secs();
            message!("round {round}: cut the power now (at least {seconds} s of load have passed)");
        }
        line.show(&format!("writing for {} s: {acknowledged} writes acknowledged", elapsed.as_secs()));
        std::thread::sleep(EVERY);
    }
    Ok(())
}

/// `trueio powercut verify`.
pub(super) fn verify(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let target = matches.get_one::<PathBuf>("target").expect("clap requires it").to_string_lossy().into_owned();
    let what = "the round cannot be verified";
    output::check(matches, std::iter::once(Path::new(&target)))?;
    let answer = Connection::open(matches)?.ask(&ToWitness::Verify);
    let round = match answer.map_err(|error| failure_of(what, &error))? {
        FromWitness::Round(round) if round.through.len() == round.plan.regions.len() => round,
        _ => return Err(failure_of(what, &WitnessError::Unexpected)),
    };
    let stop = watch_signals();
    let mut subject = Subject::of_round(&target, &round.plan)?;
    let outputs = Outputs::reserve(matches, std::iter::once(Path::new(&target)))?;
    let started = record::started();
    // The witness knows the last number that was not at risk; the log has no other times.
    let Some(cut) = read_regions(&mut subject, Stamp { run: round.plan.run }, &round.logs(), |_| 0, stop)? else {
        return Err(Failure::with_code(1, "the check was interrupted: the round can be verified again"));
    };
    let is_lost = cut.checked.iter().any(|(method, checked)| method.is_durable() && checked.lost.total() > 0);
    // Reading back may take longer than a connection lasts without a message.
    let verified = ToWitness::Verified { round: round.number, checked: cut.checked };
    let answer =
        Connection::open(matches)?.ask(&verified).map_err(|error| failure_of("the round is not counted", &error))?;
    let FromWitness::Total { cuts, standings } = answer else {
        return Err(failure_of("the round is not counted", &WitnessError::Unexpected));
    };
    let [_, methods @ ..] = &standings[..] else {
        return Err(failure_of("the round is not counted", &WitnessError::Unexpected));
    };
    subject.release();
    if !is_lost && let Err(error) = subject.clean_up() {
        message!("warning: the folder of the run cannot be removed: {error}");
    }
    let record = record::record_of(subject.facts.clone(), PowercutWay::Witness, started, cuts, methods);
    record::deliver(&record, "", outputs, matches)?;
    Ok(if record.verdict == Verdict::Kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
