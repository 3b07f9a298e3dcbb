//! The client: sends job files to servers, and prints their results together.
//!
//! First all servers plan; if one refuses, none starts. Then all start at once. A lost connection is an error; the
//! results of the other servers are printed. SIGINT and SIGTERM end the runs, and their results are printed; a second
//! signal ends this process, and with it the runs.

mod logs;

use super::stream::Stream;
use super::{HANDSHAKE, NO_PATTERN_FILE, REFUSAL_BYTES_MAX, SILENCE, hello};
use crate::command::around::ThisMachine;
use crate::command::program::{Hidden, Program, ProgressLine};
use crate::command::{ended, print_warnings, refused, show_verify_errors, status};
use crate::language::{Client, Eta, FIO_VERSION, FioRequest, Settings, Surroundings, read};
use crate::outputs::{FioOutput, Format, ServerResult, render_clients};
use crate::wire::frame::{PLAN_BYTES_MAX, SHORT_BYTES_MAX, TO_CLIENT_BYTES_MAX, TO_SERVER_BYTES_MAX, TOKEN_BYTES_MAX};
use crate::wire::{
    Address, FrameError, Jobs, LogPart, Progress, ToClient, ToServer, WireError, read_magic, receive_within, send,
    send_bytes, write_magic,
};
use logs::{LOGS_MAX, LogFiles};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use trueio_cluster::range::cut;
use trueio_cluster::token::{Token, own_path};
use trueio_job::options::limits::rows::{RAMP_TIME, RUNTIME, STARTDELAY};
use trueio_job::{FileUse, Role};
use trueio_model::{JobSpec, RunRecord, error_line, units};
use trueio_report::message;
use trueio_report::{clean, clean_lines, progress_line};
use trueio_run::watch_signals;

/// Largest number of servers of one client.
const SERVERS_MAX: usize = 1024;
/// Largest size of a file of hosts, in bytes.
const HOSTS_BYTES_MAX: u64 = 1 << 20;
/// Largest number of messages of servers that wait: each may be a record.
const WAITING_MAX: usize = 2;
/// Memory of a message of a server, in bytes: of all servers together, at least and at most of one, and in addition for each of its jobs.
const MESSAGES_BYTES: u64 = 256 << 20;
const MESSAGE_BYTES_MIN: u64 = 4 << 20;
const MESSAGE_BYTES: u64 = 32 << 20;
const JOB_BYTES: u64 = 8 << 20;
/// Messages of a server that are no parts of logs: in addition to those of each second.
const MESSAGES_MAX: u64 = 1_000;
const MESSAGES_PER_S: u64 = 32;
/// How long a server may run, in addition to the times that its jobs set.
const SESSION: Duration = Duration::from_secs(24 * 3600);
/// Jobs of a server whose job files are there: as many are assumed.
const JOBS_THERE: u64 = 64;

/// A server, its jobs and its results.
struct Server {
    address: Address,
    /// The file with its token, as typed.
    token: Option<String>,
    jobs: Jobs,
    /// The number of its jobs, or of those that are assumed.
    job_count: u64,
    /// How long it may run.
    time: Duration,
    /// When the request to end was sent, because its time was over.
    ended: Option<Instant>,
    /// The possible names of its jobs' logs; `None`: the job files are on the server.
    logs: Option<BTreeSet<String>>,
    /// The suffix of its logs' names.
    log_name: String,
    /// Its messages since it was started.
    message_count: u64,
    started: Instant,
    stream: Option<Stream>,
    /// The host name of its machine.
    machine: String,
    lines: Vec<String>,
    progress: Option<Progress>,
    interim: Option<Box<RunRecord>>,
    /// Whether `interim` arrived since the last document.
    is_fresh: bool,
    record: Option<Box<RunRecord>>,
    problem: Option<String>,
    is_over: bool,
}

/// `--client`.
pub(in crate::command) fn command(clients: &[Client], request: &FioRequest, program: &Program) -> ExitCode {
    let settings = &request.settings;
    let (mut servers, read) = match servers_of(clients, settings) {
        Ok(found) => found,
        Err(text) => return refused(&text),
    };
    let inputs = read.into_iter().map(|path| FileUse::new(path, "this command", Role::Input));
    let outputs = settings.output.iter().map(|path| FileUse::new(path, "--output", Role::Document));
    let used: Vec<FileUse> = inputs.chain(outputs).chain((program.history)()).collect();
    let mut logs = LogFiles::new(used, servers.len());
    if let Err(error) = logs.check(&servers) {
        return refused(&error.into_text());
    }
    let stop = watch_signals();
    std::thread::scope(|scope| {
        for server in &mut servers {
            scope.spawn(|| {
                if let Err(reason) = meet(server) {
                    server.problem = Some(reason);
                }
            });
        }
    });
    let refusals: Vec<&Server> = servers.iter().filter(|server| server.problem.is_some()).collect();
    if !refusals.is_empty() {
        for server in &refusals {
            let reason = server.problem.as_deref().unwrap_or_default();
            let reason = reason.trim_end().strip_prefix("error: ").unwrap_or(reason.trim_end());
            message!("error: {}: {}", server.address, told(reason));
        }
        if refusals.len() < servers.len() {
            message!("\nhint: the other servers were not started");
        }
        return ExitCode::FAILURE;
    }
    let mut results = match status::Results::new(settings, *program) {
        Ok(results) => results,
        Err(text) => return refused(&text),
    };
    if results.options().formats == [Format::Normal]
        && let Err(text) = results.write(&banner(&servers))
    {
        return refused(&text);
    }
    let bar = if settings.eta == Eta::Never { Box::new(Hidden) } else { (program.progress_line)(true) };
    let failed = converse(&mut servers, settings, &mut results, &mut logs, &*bar, || stop.load(Relaxed));
    let failed = failed.into_iter().chain(logs.confirm()).collect();
    deliver(&servers, results, failed)
}

// ---- servers and their jobs ----------------------------------------------------------------------

/// Returns the servers with their jobs, and the files that were read; or what is wrong with the request.
fn servers_of(clients: &[Client], settings: &Settings) -> Result<(Vec<Server>, Vec<String>), String> {
    let files = Files::default();
    let mut lists = Vec::new();
    let mut servers: Vec<Server> = Vec::new();
    for client in clients {
        let found = files.of(client, settings)?;
        if Path::new(&client.host).is_file() {
            lists.push(client.host.clone());
        }
        for host in hosts(&client.host)? {
            let address = Address::parse(&host).map_err(|reason| format!("`--client={host}`: {reason}"))?;
            if servers.len() >= SERVERS_MAX {
                return Err(format!("there are more than {SERVERS_MAX} servers"));
            }
            servers.push(Server {
                log_name: address.hostname().replace('/', "_"),
                address,
                token: client.token.clone(),
                jobs: Jobs { place: servers.len() as u32, ..found.jobs.clone() },
                job_count: found.job_count,
                time: SESSION.saturating_add(found.time),
                ended: None,
                logs: found.logs.clone(),
                message_count: 0,
                started: Instant::now(),
                stream: None,
                machine: String::new(),
                lines: Vec::new(),
                progress: None,
                interim: None,
                is_fresh: false,
                record: None,
                problem: None,
                is_over: false,
            });
        }
    }
    // Two servers on one host, or one that is named twice, have logs with different names.
    for index in 0..servers.len() {
        let name = servers[index].log_name.clone();
        if servers[..index].iter().any(|other| other.log_name == name) {
            let with_port = format!("{name},{}", servers[index].address.port());
            let is_taken = servers[..index].iter().any(|other| other.log_name == with_port);
            servers[index].log_name = if is_taken { format!("{with_port}.{index}") } else { with_port };
        }
    }
    let read = files.known.into_inner().into_keys().filter(|path| path != "-");
    Ok((servers, lists.into_iter().chain(read).collect()))
}

/// Returns the hosts of an argument: the hosts that a file of that name lists, or the argument itself.
fn hosts(text: &str) -> Result<Vec<String>, String> {
    let path = Path::new(text);
    if !path.is_file() {
        return Ok(vec![text.to_owned()]);
    }
    let bad = |reason: &str| Err(format!("the file of hosts `{text}` cannot be used: {reason}"));
    let content = match trueio_files::read_text(path, HOSTS_BYTES_MAX) {
        Ok(content) => content,
        Err(error) => return bad(&error.to_string()),
    };
    let lines = content.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let found: Vec<String> = lines.map(str::to_owned).collect();
    if found.is_empty() { bad("it lists none") } else { Ok(found) }
}

/// The jobs of a server.
struct FoundJobs {
    /// What is sent to it.
    jobs: Jobs,
    /// The possible names of its jobs' logs; `None`: not all job files are local.
    logs: Option<BTreeSet<String>>,
    /// The number of jobs, or of those that are assumed.
    job_count: u64,
    /// The sum of the times that local jobs set.
    time: Duration,
}

/// Returns the sum of the times that jobs set: how long they take if they run one after the other.
fn time_of(jobs: &[JobSpec]) -> Duration {
    let ns = |job: &JobSpec, name: &str| units::parse_duration_ns(&job.options.get(name)?.text).ok();
    let of_job = |job| [RUNTIME.name, RAMP_TIME.name, STARTDELAY.name].map(|name| ns(job, name).unwrap_or(0));
    Duration::from_nanos(jobs.iter().flat_map(of_job).fold(0, u64::saturating_add))
}

/// Job files with their includes and variables, each read once.
#[derive(Default)]
struct Files {
    /// All files read so far.
    known: RefCell<BTreeMap<String, Result<String, String>>>,
    /// The files of the current client.
    texts: RefCell<BTreeMap<String, String>>,
    variables: RefCell<BTreeMap<String, String>>,
}

impl Files {
    /// Reads the jobs of a client's server. Refuses a wrong job file before any server is contacted.
    fn of(&self, client: &Client, settings: &Settings) -> Result<FoundJobs, String> {
        self.texts.borrow_mut().clear();
        self.variables.borrow_mut().clear();
        let mut time = Duration::ZERO;
        let (mut logs, mut job_count) = (None, if client.files_there.is_empty() { 0 } else { JOBS_THERE });
        if !client.files.is_empty() {
            let mut words: Vec<String> = settings.sections.iter().map(|name| format!("--section={name}")).collect();
            words.extend(settings.allows_exec.then(|| "--allow-exec".to_owned()));
            words.extend(settings.are_warnings_fatal.then(|| "--warnings-fatal".to_owned()));
            words.push("--".to_owned());
            words.extend(client.files.iter().cloned());
            let request = read(&words, self).map_err(|error| error.render())?;
            print_warnings(&request);
            job_count += request.jobs.len() as u64;
            time = time_of(&request.jobs);
            let names = crate::language::log_files(&request.jobs).into_iter().collect();
            logs = Some(names).filter(|_| client.files_there.is_empty());
        }
        let jobs = Jobs {
            files: client.files.clone(),
            files_there: client.files_there.clone(),
            texts: self.texts.take(),
            variables: self.variables.take(),
            sections: settings.sections.clone(),
            is_readonly: settings.is_readonly,
            allows_exec: settings.allows_exec,
            are_warnings_fatal: settings.are_warnings_fatal,
            place: 0,
            status_interval_ns: settings.status_interval_ns,
        };
        Ok(FoundJobs { jobs, logs, job_count, time })
    }
}

impl Surroundings for Files {
    fn read_file(&self, path: &str) -> Result<String, String> {
        let mut known = self.known.borrow_mut();
        let text = known.entry(path.to_owned()).or_insert_with(|| ThisMachine.read_file(path)).clone()?;
        self.texts.borrow_mut().insert(path.to_owned(), text.clone());
        Ok(text)
    }

    fn is_missing(&self, path: &str) -> bool {
        ThisMachine.is_missing(path)
    }

    fn read_bytes(&self, _path: &str, _most: usize) -> Result<(Vec<u8>, u64), String> {
        Err(NO_PATTERN_FILE.to_owned())
    }

    /// The server reads the directory; here any file serves.
    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String> {
        Ok((vec![format!("{directory}/file")], 0))
    }

    fn variable(&self, name: &str) -> Option<String> {
        let text = ThisMachine.variable(name)?;
        self.variables.borrow_mut().insert(name.to_owned(), text.clone());
        Some(text)
    }

    fn page_bytes(&self) -> u64 {
        ThisMachine.page_bytes()
    }

    fn memory_bytes(&self) -> u64 {
        ThisMachine.memory_bytes()
    }

    fn processors(&self) -> u64 {
        ThisMachine.processors()
    }
}

// ---- the conversation ---------------------------------------------------------------------------

/// Connects to a server and lets it plan, or returns why that failed.
fn meet(server: &mut Server) -> Result<(), String> {
    let explain = |error: WireError| match error {
        WireError::Frame(FrameError::Closed) => {
            "it closed the connection without a word, as fio's own server does (whose protocol is not \
                              spoken here); the server must be `trueio fio --server` of this version"
                .to_owned()
        }
        WireError::Frame(FrameError::Late) => format!("it did not answer within {} s", HANDSHAKE.as_secs()),
        error => error_line(&error),
    };
    let mut stream = Stream::connect(&server.address)
        .map_err(|error| format!("the server cannot be reached\n  because: {error}"))?;
    stream.set_patience(Some(HANDSHAKE)).map_err(|error| error.to_string())?;
    let hear = |stream: &mut Stream, most: u32| receive_within::<ToClient>(stream, most, MESSAGE_BYTES);
    if let Some(address) = stream.server_address() {
        let found = token_for(address, server.token.as_deref())?;
        let (token, reason) = found.map_or_else(|reason| (None, Some(reason)), |token| (Some(token), None));
        let bytes = token.as_ref().map_or(&[][..], Token::bytes);
        write_magic(&mut stream)
            .and_then(|()| send_bytes(&mut stream, bytes, TOKEN_BYTES_MAX))
            .and_then(|()| read_magic(&mut stream))
            .map_err(explain)?;
        match hear(&mut stream, SHORT_BYTES_MAX).map_err(explain)? {
            ToClient::Admitted => {}
            ToClient::Refused { text } => return Err(reason.map_or(text.clone(), |reason| format!("{text}{reason}"))),
            ToClient::Hello(theirs) => {
                let objection = hello().objection(&theirs);
                return Err(objection.unwrap_or_else(|| "it did not read the token".to_owned()));
            }
            _ => return Err("it did not complete the handshake".to_owned()),
        }
        send(&mut stream, &ToServer::Hello(hello()), TO_SERVER_BYTES_MAX).map_err(explain)?;
    } else {
        let sent =
            write_magic(&mut stream).and_then(|()| send(&mut stream, &ToServer::Hello(hello()), TO_SERVER_BYTES_MAX));
        // A server that refuses this user answers and closes without reading: its answer counts, and not that nobody reads the greeting.
        read_magic(&mut stream).map_err(|error| explain(sent.err().unwrap_or(error)))?;
    }
    match hear(&mut stream, SHORT_BYTES_MAX).map_err(explain)? {
        ToClient::Hello(theirs) => {
            if let Some(objection) = hello().objection(&theirs) {
                return Err(objection);
            }
            server.machine = cut(&theirs.machine);
        }
        ToClient::Refused { text } => return Err(text),
        _ => return Err("it did not complete the handshake".to_owned()),
    }
    // Planning reads from disks, which may be slow.
    stream.set_patience(Some(SILENCE)).map_err(|error| error.to_string())?;
    let jobs = ToServer::Jobs(Box::new(server.jobs.clone()));
    send(&mut stream, &jobs, TO_SERVER_BYTES_MAX).map_err(|error| error_line(&error))?;
    match hear(&mut stream, PLAN_BYTES_MAX).map_err(silent)? {
        ToClient::Planned(planned) => server.lines = planned.lines,
        ToClient::Refused { text } => return Err(text),
        _ => return Err("it sent no plan".to_owned()),
    }
    server.stream = Some(stream);
    Ok(())
}

/// Returns a server's text for the terminal. Lines that could be taken for this program's are indented.
fn told(text: &str) -> String {
    let mut told = String::new();
    for line in clean_lines(text).lines() {
        let is_own = told.is_empty() || line.is_empty() || line.starts_with("  ") || line.starts_with("hint: ");
        told.push_str(if told.is_empty() { "" } else { "\n" });
        told.push_str(if is_own { "" } else { "  " });
        told.push_str(line);
    }
    told
}

/// Returns the token for a server, or why there is none: the server then refuses, unless it is another program.
///
/// # Errors
/// A token that may not be used, or that `--token` names and cannot be read.
fn token_for(address: SocketAddr, named: Option<&str>) -> Result<Result<Token, String>, String> {
    if let Some(path) = named {
        return Token::read(Path::new(path)).map(Ok).map_err(|error| error.explained(None));
    }
    let hint =
        "hint: name a copy of the server's token file with `--token FILE`; the server prints its name when it starts";
    match own_path(super::OWN_TOKENS, address).filter(|_| address.ip().to_canonical().is_loopback()) {
        None => Ok(Err(format!("\n\n{hint}"))),
        Some(path) if !path.exists() => Ok(Err(format!("\n  because: there is no `{}`\n\n{hint}", path.display()))),
        Some(path) => Token::read_own(&path).map(Ok).map_err(|error| error.explained(None)),
    }
}

/// Returns the lines of the jobs before they start, each with the name of its machine, as fio writes them.
fn banner(servers: &[Server]) -> String {
    let mut text = String::new();
    for server in servers {
        for line in &server.lines {
            text.push_str(&format!("<{}> {}\n", clean(&server.machine), clean(line)));
        }
    }
    text.push_str(&format!("{FIO_VERSION}\n"));
    text
}

type Event = (usize, Result<ToClient, WireError>);

/// Starts the servers and receives their messages until all have ended. Returns the first failure to write.
fn converse(
    servers: &mut [Server],
    settings: &Settings,
    results: &mut status::Results,
    logs: &mut LogFiles,
    bar: &dyn ProgressLine,
    is_stopped: impl Fn() -> bool,
) -> Option<String> {
    let (tx, events) = sync_channel::<Event>(WAITING_MAX);
    let count = servers.len();
    for (index, server) in servers.iter_mut().enumerate() {
        let begun = begin(index, server, count, tx.clone());
        if let Err(error) = begun {
            lose(server, error);
        }
    }
    drop(tx);
    let every = settings.status_interval_ns.map(Duration::from_nanos).filter(|every| !every.is_zero());
    let mut last = Instant::now();
    let mut was_stopped = false;
    let mut failed = None;
    while servers.iter().any(|server| !server.is_over) {
        if is_stopped() && !std::mem::replace(&mut was_stopped, true) {
            for server in servers.iter_mut().filter(|server| !server.is_over) {
                if let Some(stream) = &mut server.stream {
                    // The receiving thread notices a lost connection.
                    let _ = send(stream, &ToServer::Stop, TO_SERVER_BYTES_MAX);
                }
            }
        }
        servers.iter_mut().filter(|server| !server.is_over).for_each(end_in_time);
        if let Err(failure) = take(&events, servers, logs) {
            failed.get_or_insert(failure);
        }
        bar.show(&together(servers));
        if every.is_some_and(|every| is_due(servers, last.elapsed(), every)) {
            last = Instant::now();
            servers.iter_mut().for_each(|server| server.is_fresh = false);
            let options = FioOutput { is_interim: true, ..results.options().clone() };
            let text = render_clients(&interim(servers), &options);
            if let Err(failure) = results.write(&text) {
                failed.get_or_insert(failure);
            }
        }
    }
    bar.clear();
    failed
}

/// Returns the sentence about a server that failed while it planned or ran.
fn silent(error: WireError) -> String {
    match error {
        WireError::Frame(FrameError::Late) => format!("it sent nothing for {} s", SILENCE.as_secs()),
        error => cut(&error_line(&error)),
    }
}

/// Returns the memory that a message of one of so many servers may take, in bytes.
fn memory_of(server: &Server, servers: usize) -> u64 {
    let share = (MESSAGES_BYTES / servers.max(1) as u64).clamp(MESSAGE_BYTES_MIN, MESSAGE_BYTES);
    share.saturating_add(server.job_count.saturating_mul(JOB_BYTES))
}

/// Starts a server, and a thread that receives its messages.
fn begin(index: usize, server: &mut Server, servers: usize, tx: SyncSender<Event>) -> Result<(), WireError> {
    let memory = memory_of(server, servers);
    let bytes_max = u32::try_from(memory).map_or(TO_CLIENT_BYTES_MAX, |memory| memory.min(TO_CLIENT_BYTES_MAX));
    let Some(stream) = &mut server.stream else { return Err(WireError::Frame(FrameError::Closed)) };
    send(stream, &ToServer::Start, TO_SERVER_BYTES_MAX)?;
    (server.message_count, server.started) = (0, Instant::now());
    let mut ear = stream.try_clone()?;
    std::thread::Builder::new().name(format!("server {index}")).spawn(move || {
        loop {
            let heard = receive_within::<ToClient>(&mut ear, bytes_max, memory);
            let is_last = matches!(heard, Err(_) | Ok(ToClient::Done { .. } | ToClient::Refused { .. }));
            if tx.send((index, heard)).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(())
}

/// Marks a server whose connection was lost before its results arrived.
fn lose(server: &mut Server, error: WireError) {
    end(server, &silent(error));
}

/// Gives up a server before its results arrived.
fn end(server: &mut Server, why: &str) {
    server.is_over = true;
    server.problem = Some(format!("the server went away before its results came\n  because: {why}"));
    if let Some(stream) = &server.stream {
        stream.end();
    }
}

/// What is done with a server by its time.
#[derive(Debug, PartialEq, Eq)]
enum InTime {
    GoesOn,
    /// It gets a request to end, and sends its results.
    IsEnded,
    /// It did not end.
    IsGivenUp,
}

/// Decides that by how long a server has run, may run, and has had since the request to end.
fn in_time(has_run: Duration, time: Duration, since_request: Option<Duration>) -> InTime {
    match since_request {
        Some(since) if since >= SILENCE => InTime::IsGivenUp,
        None if has_run >= time => InTime::IsEnded,
        _ => InTime::GoesOn,
    }
}

/// Ends a server whose time is over: messages within its budget would keep this process for ever.
fn end_in_time(server: &mut Server) {
    let since_request = server.ended.map(|ended| ended.elapsed());
    match in_time(server.started.elapsed(), server.time, since_request) {
        InTime::GoesOn => {}
        InTime::IsEnded => {
            server.ended = Some(Instant::now());
            message!(
                "note: {} is ended after {} s: a day, and what `runtime`, `ramp_time` and `startdelay` of its jobs set",
                server.address,
                server.time.as_secs()
            );
            if let Some(stream) = &mut server.stream {
                // The receiving thread notices a lost connection.
                let _ = send(stream, &ToServer::Stop, TO_SERVER_BYTES_MAX);
            }
        }
        InTime::IsGivenUp => end(server, "its time was over, and it did not end when it was requested to"),
    }
}

/// Handles the next message, if one arrives soon.
fn take(events: &Receiver<Event>, servers: &mut [Server], logs: &mut LogFiles) -> Result<(), String> {
    let (index, heard) = match events.recv_timeout(Duration::from_millis(100)) {
        Ok(event) => event,
        Err(RecvTimeoutError::Timeout) => return Ok(()),
        Err(RecvTimeoutError::Disconnected) => {
            // All receiving threads have ended, and with them the connections.
            servers
                .iter_mut()
                .filter(|server| !server.is_over)
                .for_each(|server| lose(server, WireError::Frame(FrameError::Closed)));
            return Ok(());
        }
    };
    let server = &mut servers[index];
    if server.is_over {
        return Ok(());
    }
    let is_empty_part = |part: &LogPart| part.text.is_empty();
    server.message_count += u64::from(!matches!(&heard, Ok(ToClient::Log(part)) if !is_empty_part(part)));
    let most = MESSAGES_MAX + LOGS_MAX as u64 + MESSAGES_PER_S.saturating_mul(server.started.elapsed().as_secs());
    if server.message_count > most {
        end(server, "it sent more messages than a run has");
        return Ok(());
    }
    match heard {
        Ok(ToClient::Progress(progress)) => server.progress = Some(progress),
        Ok(ToClient::Interim(record)) => {
            server.interim = Some(record);
            server.is_fresh = true;
        }
        Ok(ToClient::Log(part)) => logs.add(server, &part)?,
        Ok(ToClient::Done { record, problem }) => {
            server.record = Some(record);
            server.problem = problem.map(short);
            server.is_over = true;
        }
        Ok(ToClient::Refused { text }) => {
            server.problem = Some(short(text));
            server.is_over = true;
        }
        Ok(ToClient::Alive) => {}
        Ok(ToClient::Admitted | ToClient::Hello(_) | ToClient::Planned(_)) => {
            end(server, "it sent a message that does not belong to a run");
        }
        Err(error) => lose(server, error),
    }
    Ok(())
}

/// Returns the beginning of a text that a server sent.
fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(REFUSAL_BYTES_MAX));
    text
}

/// Returns the progress of all servers in one line: the sum of the rates, the smallest fraction, the largest latencies.
fn together(servers: &[Server]) -> String {
    let running: Vec<&Progress> =
        servers.iter().filter(|server| !server.is_over).filter_map(|server| server.progress.as_ref()).collect();
    let Some(least) = running.iter().min_by(|a, b| a.fraction.total_cmp(&b.fraction)) else { return String::new() };
    let known = |of: fn(&Progress) -> u64| running.iter().map(|p| of(p)).max().filter(|ns| *ns > 0);
    let phase = match running.len() {
        1 => least.phase.clone(),
        count => format!("{count} servers, {}", least.phase),
    };
    progress_line(
        &clean(&phase),
        least.fraction,
        running.iter().map(|p| p.bytes_per_s).sum(),
        running.iter().map(|p| p.ios_per_s).sum(),
        known(|p| p.latency_ns_p50),
        known(|p| p.latency_ns_p99),
        running.iter().map(|p| p.left_ns).max().flatten(),
    )
}

// ---- the results --------------------------------------------------------------------------------

/// Whether an interim document is due: each running server has sent results since the last one, or two intervals have
/// passed. It needs results of all running servers, because each server's clock begins with its own measured part.
fn is_due(servers: &[Server], since_last: Duration, every: Duration) -> bool {
    let mut running = servers.iter().filter(|server| !server.is_over).peekable();
    let is_late = since_last >= every.saturating_mul(2);
    running.peek().is_some() && running.all(|server| server.is_fresh || (is_late && server.interim.is_some()))
}

/// Returns the results so far.
fn interim<'a>(servers: &'a [Server]) -> Vec<ServerResult<'a>> {
    let of = |server: &'a Server| result(server, server.record.as_deref().or(server.interim.as_deref()));
    servers.iter().map(of).collect()
}

fn result<'a>(server: &'a Server, record: Option<&'a RunRecord>) -> ServerResult<'a> {
    ServerResult {
        is_running: server.record.is_none(),
        hostname: server.address.typed_hostname(),
        port: server.address.port(),
        record,
        problem: server.problem.as_deref(),
    }
}

/// Prints the results, then the errors; returns the highest exit code.
fn deliver(servers: &[Server], mut results: status::Results, failed: Vec<String>) -> ExitCode {
    let mut code = 0;
    if servers.iter().any(|server| server.record.is_some()) {
        let all: Vec<ServerResult<'_>> =
            servers.iter().map(|server| result(server, server.record.as_deref())).collect();
        let text = render_clients(&all, results.options());
        if let Err(text) = results.write(&text).and_then(|()| results.finish()) {
            refused(&text);
            code = 1;
        }
    }
    for text in failed {
        refused(&text);
        code = 1;
    }
    for server in servers {
        if let Some(problem) = &server.problem {
            message!("error: {}: {}", server.address, told(problem.trim_end()));
            code = code.max(1);
        }
        let Some(record) = &server.record else { continue };
        show_verify_errors(record);
        let (of_run, reason) = ended(record);
        if let Some(reason) = reason {
            message!("error: {}: {}", server.address, told(reason));
        }
        code = code.max(of_run);
    }
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_server_is_taken_for_one_of_this_program() {
        let text = "no\n  because: it is\nerror: the disk is lost\n\nhint: wait\nwarning:\tx\x1b[2J";
        let shown = "no\n  because: it is\n  error: the disk is lost\n\nhint: wait\n  warning:\tx\u{fffd}[2J";
        assert_eq!(told(text), shown);
    }
    use trueio_model::Origin;

    /// Goal: a server has a day, and the times that its jobs set, also if the sum does not fit.
    #[test]
    fn a_server_has_a_day_and_the_times_of_its_jobs() {
        let job = |options: &[(&str, &str)]| {
            let mut job = JobSpec::new("j");
            options.iter().for_each(|(name, text)| job.set(name, (*text).to_owned(), Origin::Default));
            job
        };
        let jobs = [job(&[(RUNTIME.name, "60s"), (RAMP_TIME.name, "5s")]), job(&[]), job(&[(STARTDELAY.name, "2s")])];
        assert_eq!(time_of(&jobs), Duration::from_secs(67));
        let long = job(&[(RUNTIME.name, "580y")]);
        assert!(SESSION.saturating_add(time_of(&[long.clone(), long])) >= SESSION);
        let (day, second) = (SESSION, Duration::from_secs(1));
        assert_eq!(in_time(day - second, day, None), InTime::GoesOn);
        assert_eq!(in_time(day, day, None), InTime::IsEnded);
        assert_eq!(in_time(day, day, Some(SILENCE - second)), InTime::GoesOn);
        assert_eq!(in_time(day, day, Some(SILENCE)), InTime::IsGivenUp);
    }
}
