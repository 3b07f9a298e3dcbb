//! The client: job files to servers, and their results together.
//!
//! First all servers plan; if one refuses, none begins. Then they begin at once. A server that goes away is an error;
//! what the others measured is printed all the same. SIGINT and SIGTERM end the runs, and their results come; a second
//! one ends this process, and with it the runs.

use super::super::around::Live;
use super::super::{ended, refused, status};
use super::stream::Stream;
use super::{HANDSHAKE, NO_PATTERN_FILE, hello};
use crate::failure::Failure;
use crate::{output, progress};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use trueio_fio::language::{Client, Eta, FIO_VERSION, FioRequest, Settings, Surroundings, read};
use trueio_fio::outputs::{FioOutput, Format, ServerResult, render_clients};
use trueio_fio::wire::frame::{TO_CLIENT_BYTES_MAX, TO_SERVER_BYTES_MAX};
use trueio_fio::wire::{
    Address, Jobs, LogPart, Progress, ToClient, ToServer, WireError, read_magic, receive, send, write_magic,
};
use trueio_job::{FileUse, Role};
use trueio_model::{RunRecord, error_line};
use trueio_report::progress_line;
use trueio_run::{create_output, open_output, watch_signals};

/// Most servers of one client.
const SERVERS_MAX: usize = 1024;
/// Longest file of hosts, in bytes.
const HOSTS_BYTES_MAX: u64 = 1 << 20;
/// Most logs of one server: six of each job that it may have.
const LOGS_MAX: usize = 6 * 4096;
/// How many messages of servers may wait.
const WAITING_MAX: usize = 64;

/// A server and what is known of it.
struct Server {
    address: Address,
    jobs: Jobs,
    /// The names that the logs of its jobs can have; `None`: its jobs lie at the server.
    logs: Option<BTreeSet<String>>,
    /// What is put behind the names of its logs.
    log_name: String,
    stream: Option<Stream>,
    /// What its machine is called.
    machine: String,
    lines: Vec<String>,
    progress: Option<Progress>,
    interim: Option<Box<RunRecord>>,
    /// Whether that came since the last document.
    is_fresh: bool,
    record: Option<Box<RunRecord>>,
    problem: Option<String>,
    is_over: bool,
}

/// `--client`.
pub(in crate::fio) fn command(clients: &[Client], request: &FioRequest) -> ExitCode {
    let settings = &request.settings;
    let (mut servers, read) = match servers_of(clients, settings) {
        Ok(found) => found,
        Err(text) => return refused(&text),
    };
    let inputs = read.into_iter().map(|path| FileUse::new(path, "this command", Role::Input));
    let outputs = settings.output.iter().map(|path| FileUse::new(path, "--output", Role::Document));
    let used: Vec<FileUse> = inputs.chain(outputs).collect();
    let mut logs = LogFiles::new(settings.aux_path.as_ref().map(PathBuf::from), used);
    if let Err(failure) = logs.check(&servers) {
        failure.show();
        return ExitCode::FAILURE;
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
            eprintln!("error: {}: {reason}", server.address);
        }
        if refusals.len() < servers.len() {
            eprintln!("\nhint: the other servers were not asked to begin");
        }
        return ExitCode::FAILURE;
    }
    let mut results = status::Results::new(settings);
    if results.options().formats == [Format::Normal]
        && let Err(failure) = results.write(&banner(&servers))
    {
        failure.show();
        return ExitCode::FAILURE;
    }
    let failed = converse(&mut servers, settings, &mut results, &mut logs, || stop.load(Relaxed));
    deliver(&servers, results, failed)
}

// ---- what is asked of whom ----------------------------------------------------------------------

/// The servers with their jobs and the files that were read, or what is wrong with what was asked.
fn servers_of(clients: &[Client], settings: &Settings) -> Result<(Vec<Server>, Vec<String>), String> {
    let files = Files::default();
    let mut lists = Vec::new();
    let mut servers: Vec<Server> = Vec::new();
    for client in clients {
        let (jobs, logs) = files.of(client, settings)?;
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
                jobs: jobs.clone(),
                logs: logs.clone(),
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
    // Logs of two servers on one host, or of one that is named twice, stand in files of their own.
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

/// A host, or those that a file of that name lists.
fn hosts(text: &str) -> Result<Vec<String>, String> {
    let path = Path::new(text);
    if !path.is_file() {
        return Ok(vec![text.to_owned()]);
    }
    let bad = |reason: &str| Err(format!("the file of hosts `{text}` cannot be used: {reason}"));
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > HOSTS_BYTES_MAX => return bad("it is too long"),
        Err(error) => return bad(&error.to_string()),
        Ok(_) => {}
    }
    let content = match std::fs::read_to_string(path) {
        Ok(content) => content,
        Err(error) => return bad(&error.to_string()),
    };
    let lines = content.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let found: Vec<String> = lines.map(str::to_owned).collect();
    if found.is_empty() { bad("it lists none") } else { Ok(found) }
}

/// Job files, and what they include and ask for, read once.
#[derive(Default)]
struct Files {
    /// Everything that was read so far.
    known: RefCell<BTreeMap<String, Result<String, String>>>,
    /// What the files of the present client needed.
    texts: RefCell<BTreeMap<String, String>>,
    variables: RefCell<BTreeMap<String, String>>,
}

impl Files {
    /// What is sent to a client's server, and the names that the logs of its jobs can have, if all its jobs are here.
    /// What is wrong with a job file is told before anybody is asked.
    fn of(&self, client: &Client, settings: &Settings) -> Result<(Jobs, Option<BTreeSet<String>>), String> {
        self.texts.borrow_mut().clear();
        self.variables.borrow_mut().clear();
        let mut logs = None;
        if !client.files.is_empty() {
            let mut words: Vec<String> = settings.sections.iter().map(|name| format!("--section={name}")).collect();
            words.extend(settings.allows_exec.then(|| "--allow-exec".to_owned()));
            words.extend(settings.are_warnings_fatal.then(|| "--warnings-fatal".to_owned()));
            words.push("--".to_owned());
            words.extend(client.files.iter().cloned());
            let request = read(&words, self).map_err(|error| error.render())?;
            let names = trueio_fio::language::log_files(&request.jobs).into_iter().collect();
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
            status_interval_ns: settings.status_interval_ns,
        };
        Ok((jobs, logs))
    }
}

impl Surroundings for Files {
    fn read_file(&self, path: &str) -> Result<String, String> {
        let mut known = self.known.borrow_mut();
        let text = known.entry(path.to_owned()).or_insert_with(|| Live.read_file(path)).clone()?;
        self.texts.borrow_mut().insert(path.to_owned(), text.clone());
        Ok(text)
    }

    fn read_bytes(&self, _path: &str, _most: usize) -> Result<(Vec<u8>, u64), String> {
        Err(NO_PATTERN_FILE.to_owned())
    }

    /// The server looks; any file will do here.
    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String> {
        Ok((vec![format!("{directory}/file")], 0))
    }

    fn variable(&self, name: &str) -> Option<String> {
        let text = Live.variable(name)?;
        self.variables.borrow_mut().insert(name.to_owned(), text.clone());
        Some(text)
    }

    fn page_bytes(&self) -> u64 {
        Live.page_bytes()
    }

    fn memory_bytes(&self) -> u64 {
        Live.memory_bytes()
    }

    fn processors(&self) -> u64 {
        Live.processors()
    }
}

// ---- the conversation ---------------------------------------------------------------------------

/// Connects, and lets the server plan; or why that cannot be.
fn meet(server: &mut Server) -> Result<(), String> {
    let told = |error: WireError| match error {
        WireError::Closed => {
            "it closed the connection without a word, as fio's own server does (whose protocol is not \
                              spoken here); the server must be `trueio fio --server` of this version"
                .to_owned()
        }
        WireError::Late => format!("it did not answer within {} s", HANDSHAKE.as_secs()),
        error => error_line(&error),
    };
    let mut stream = Stream::connect(&server.address)
        .map_err(|error| format!("the server cannot be reached\n  because: {error}"))?;
    stream.set_patience(Some(HANDSHAKE)).map_err(|error| error.to_string())?;
    write_magic(&mut stream)
        .and_then(|()| send(&mut stream, &ToServer::Hello(hello()), TO_SERVER_BYTES_MAX))
        .and_then(|()| read_magic(&mut stream))
        .map_err(told)?;
    let hear = |stream: &mut Stream| receive::<ToClient>(stream, TO_CLIENT_BYTES_MAX);
    match hear(&mut stream).map_err(told)? {
        ToClient::Hello(theirs) => {
            if let Some(objection) = hello().objection(&theirs) {
                return Err(objection);
            }
            server.machine = theirs.machine;
        }
        ToClient::Refused { text } => return Err(text),
        _ => return Err("it did not say who it is".to_owned()),
    }
    // Planning looks at disks, which may take its time.
    stream.set_patience(None).map_err(|error| error.to_string())?;
    let jobs = ToServer::Jobs(Box::new(server.jobs.clone()));
    send(&mut stream, &jobs, TO_SERVER_BYTES_MAX).map_err(|error| error_line(&error))?;
    match hear(&mut stream).map_err(|error| error_line(&error))? {
        ToClient::Planned(planned) => server.lines = planned.lines,
        ToClient::Refused { text } => return Err(text),
        _ => return Err("it did not say what it is going to do".to_owned()),
    }
    server.stream = Some(stream);
    Ok(())
}

/// The jobs before they start, each with its server's machine, as fio writes it.
fn banner(servers: &[Server]) -> String {
    let mut text = String::new();
    for server in servers {
        for line in &server.lines {
            text.push_str(&format!("<{}> {}\n", plain(&server.machine), plain(line)));
        }
    }
    text.push_str(&format!("{FIO_VERSION}\n"));
    text
}

/// Another machine's text without control characters, which a terminal might obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

type Event = (usize, Result<ToClient, WireError>);

/// Lets the servers begin, and hears them until all have ended. What could not be written here is returned.
fn converse(
    servers: &mut [Server],
    settings: &Settings,
    results: &mut status::Results,
    logs: &mut LogFiles,
    is_stopped: impl Fn() -> bool,
) -> Option<Failure> {
    let (tx, events) = sync_channel::<Event>(WAITING_MAX);
    for (index, server) in servers.iter_mut().enumerate() {
        let begun = begin(index, server, tx.clone());
        if let Err(error) = begun {
            lose(server, &error);
        }
    }
    drop(tx);
    let bar = if settings.eta == Eta::Never { progress::Line::hidden() } else { progress::Line::new() };
    let every = settings.status_interval_ns.map(Duration::from_nanos).filter(|every| !every.is_zero());
    let mut told = Instant::now();
    let mut was_stopped = false;
    let mut failed = None;
    while servers.iter().any(|server| !server.is_over) {
        if is_stopped() && !std::mem::replace(&mut was_stopped, true) {
            for server in servers.iter_mut().filter(|server| !server.is_over) {
                if let Some(stream) = &mut server.stream {
                    // A server that is gone is noticed by who hears it.
                    let _ = send(stream, &ToServer::Stop, TO_SERVER_BYTES_MAX);
                }
            }
        }
        if let Err(failure) = take(&events, servers, logs) {
            failed.get_or_insert(failure);
        }
        bar.show(&together(servers));
        if every.is_some_and(|every| is_due(servers, told.elapsed(), every)) {
            told = Instant::now();
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

/// Lets a server begin, and a thread hear it.
fn begin(index: usize, server: &mut Server, tx: SyncSender<Event>) -> Result<(), WireError> {
    let Some(stream) = &mut server.stream else { return Err(WireError::Closed) };
    send(stream, &ToServer::Start, TO_SERVER_BYTES_MAX)?;
    let mut ear = stream.try_clone()?;
    std::thread::Builder::new().name(format!("server {index}")).spawn(move || {
        loop {
            let heard = receive::<ToClient>(&mut ear, TO_CLIENT_BYTES_MAX);
            let is_last = matches!(heard, Err(_) | Ok(ToClient::Done { .. } | ToClient::Refused { .. }));
            if tx.send((index, heard)).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(())
}

/// A server that is gone before its results came.
fn lose(server: &mut Server, error: &WireError) {
    server.is_over = true;
    server.problem = Some(format!("the server went away before its results came\n  because: {}", error_line(error)));
    if let Some(stream) = &server.stream {
        stream.end();
    }
}

/// One event, if there is one soon.
fn take(events: &Receiver<Event>, servers: &mut [Server], logs: &mut LogFiles) -> Result<(), Failure> {
    let (index, heard) = match events.recv_timeout(Duration::from_millis(100)) {
        Ok(event) => event,
        Err(RecvTimeoutError::Timeout) => return Ok(()),
        Err(RecvTimeoutError::Disconnected) => {
            // Whoever heard them has ended; so have they.
            servers.iter_mut().filter(|server| !server.is_over).for_each(|server| lose(server, &WireError::Closed));
            return Ok(());
        }
    };
    let server = &mut servers[index];
    match heard {
        Ok(ToClient::Progress(progress)) => server.progress = Some(progress),
        Ok(ToClient::Interim(record)) => {
            server.interim = Some(record);
            server.is_fresh = true;
        }
        Ok(ToClient::Log(part)) => logs.add(server, &part)?,
        Ok(ToClient::Done { record, problem }) => {
            server.record = Some(record);
            server.problem = problem;
            server.is_over = true;
        }
        Ok(ToClient::Refused { text }) => {
            server.problem = Some(text);
            server.is_over = true;
        }
        Ok(ToClient::Hello(_) | ToClient::Planned(_)) => {}
        Err(error) => lose(server, &error),
    }
    Ok(())
}

/// All servers in one line: rates added, the one that is least far, the slowest latencies.
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
        &plain(&phase),
        least.fraction,
        running.iter().map(|p| p.bytes_per_s).sum(),
        running.iter().map(|p| p.ios_per_s).sum(),
        known(|p| p.latency_ns_p50),
        known(|p| p.latency_ns_p99),
        running.iter().map(|p| p.left_ns).max().flatten(),
    )
}

// ---- logs ---------------------------------------------------------------------------------------

/// Logs that come in.
struct LogFiles {
    aux_path: Option<PathBuf>,
    /// What this command reads and writes beside them.
    used: Vec<FileUse>,
    /// Those that were begun, with the server they are of. None is kept open: there may be more than a process may open.
    begun: BTreeMap<PathBuf, Address>,
}

impl LogFiles {
    fn new(aux_path: Option<PathBuf>, used: Vec<FileUse>) -> Self {
        Self { aux_path, used, begun: BTreeMap::new() }
    }

    /// Where a server's log goes.
    fn path(&self, server: &Server, name: &str) -> PathBuf {
        let name = format!("{name}.{}", server.log_name);
        self.aux_path.as_ref().map_or_else(|| PathBuf::from(&name), |directory| directory.join(&name))
    }

    /// Refuses, before anybody is asked, results and logs that would replace what this command reads, or each other.
    fn check(&self, servers: &[Server]) -> Result<(), Failure> {
        let logs = servers.iter().flat_map(|server| {
            let use_of =
                |name: &String| FileUse::new(self.path(server, name).to_string_lossy(), log_of(server), Role::Output);
            server.logs.iter().flatten().map(use_of)
        });
        output::check_files(&self.used.iter().cloned().chain(logs).collect::<Vec<_>>())
    }

    /// Adds to `PREFIX_KIND.N.log.HOST`. The server is not asked where: it only says which log it is, and it must be one
    /// that its jobs can have; of jobs that lie there, one in the directory for logs.
    fn add(&mut self, server: &Server, part: &LogPart) -> Result<(), Failure> {
        let name = format!("{}{}", part.prefix, part.suffix);
        let is_plain = !part.prefix.starts_with('.') && !part.prefix.contains(['/', '\0']) && is_log(&part.suffix);
        let is_expected = server.logs.as_ref().map_or(is_plain, |names| names.contains(&name));
        if !is_expected {
            let name = plain(&name);
            return Err(Failure::refused(format!("{} sent a log that no job asked for: `{name}`", server.address)));
        }
        let path = self.path(server, &name);
        let failed = |e: std::io::Error| Failure::failed(format!("the log `{}` cannot be written", path.display()), &e);
        let mut file = if self.begun.contains_key(&path) {
            open_output(&path).map_err(failed)?
        } else {
            if self.begun.values().filter(|address| **address == server.address).count() >= LOGS_MAX {
                return Err(Failure::refused(format!("{} sent more than {LOGS_MAX} logs", server.address)));
            }
            let mut files = self.used.clone();
            files.push(FileUse::new(path.to_string_lossy(), log_of(server), Role::Output));
            output::check_files(&files)?;
            let file = create_output(&path).map_err(failed)?;
            self.begun.insert(path.clone(), server.address.clone());
            file
        };
        file.write_all(part.text.as_bytes()).map_err(failed)
    }
}

/// A log, as a message names it.
fn log_of(server: &Server) -> String {
    format!("a log of {}", server.address)
}

/// Whether a name ends as logs do: `_bw.1.log`, `_clat_hist.log`.
fn is_log(suffix: &str) -> bool {
    let kinds = ["_bw", "_iops", "_slat", "_clat", "_lat", "_clat_hist"];
    let Some(name) = suffix.strip_suffix(".log") else { return false };
    match name.split_once('.') {
        Some((kind, number)) => {
            kinds.contains(&kind) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => kinds.contains(&name),
    }
}

// ---- the results --------------------------------------------------------------------------------

/// Whether there is a document to write: each server that runs has sent results since the last one, or two intervals are over.
/// None is written without those of all that run: each server's clock begins with its own measured part.
fn is_due(servers: &[Server], since_last: Duration, every: Duration) -> bool {
    let mut running = servers.iter().filter(|server| !server.is_over).peekable();
    let is_late = since_last >= every.saturating_mul(2);
    running.peek().is_some() && running.all(|server| server.is_fresh || (is_late && server.interim.is_some()))
}

/// What is known so far.
fn interim<'a>(servers: &'a [Server]) -> Vec<ServerResult<'a>> {
    let of = |server: &'a Server| result(server, server.record.as_deref().or(server.interim.as_deref()));
    servers.iter().map(of).collect()
}

fn result<'a>(server: &'a Server, record: Option<&'a RunRecord>) -> ServerResult<'a> {
    ServerResult {
        is_running: server.record.is_none(),
        hostname: server.address.hostname(),
        port: server.address.port(),
        record,
        problem: server.problem.as_deref(),
    }
}

/// Prints what came, then what did not; the exit code of the worst.
fn deliver(servers: &[Server], mut results: status::Results, failed: Option<Failure>) -> ExitCode {
    let mut code = 0;
    if servers.iter().any(|server| server.record.is_some()) {
        let all: Vec<ServerResult<'_>> =
            servers.iter().map(|server| result(server, server.record.as_deref())).collect();
        let text = render_clients(&all, results.options());
        if let Err(failure) = results.write(&text) {
            failure.show();
            code = 1;
        }
    }
    if let Some(failure) = failed {
        failure.show();
        code = 1;
    }
    for server in servers {
        if let Some(problem) = &server.problem {
            eprintln!("error: {}: {}", server.address, problem.trim_end());
            code = code.max(1);
        }
        let Some(record) = &server.record else { continue };
        let (of_run, reason) = ended(record);
        if let Some(reason) = reason {
            eprintln!("error: {}: {reason}", server.address);
        }
        code = code.max(of_run);
    }
    ExitCode::from(code)
}
