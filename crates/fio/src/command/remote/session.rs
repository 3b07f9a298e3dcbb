//! A session: a process that runs one client's jobs, with the connection as its standard input.
//!
//! It reads only what the client sent, except for job files of the server (`--remote-config`): these and their includes
//! are read as the server's user. Errors in them are printed only on the server, because a client could name any file,
//! and an error message quotes lines of the file.

use super::ledger::{Ledger, Share};
use super::names::{self, Names};
use super::process::{
    ALLOW_CONTENTS, ALLOW_PRIORITY, ALLOW_READ, ALLOW_USER, ALLOW_WRITE, NO_SANDBOX, OWN_TOKEN, TOKEN, stdin,
};
use super::sandbox::Sandbox;
use super::stream::Stream;
use super::{ADMISSION, ALIVE_EVERY, HANDSHAKE, NO_PATTERN_FILE, REFUSAL_BYTES_MAX, hello, note};
use crate::command::around::ThisMachine;
use crate::command::program::{Hidden, Program};
use crate::command::trigger::Waiting;
use crate::command::{exec, planned, refused, status};
use crate::language::{Action, FioRequest, Settings, Surroundings, Trigger, read};
use crate::logs::FioLogs;
use crate::wire::frame::{SHORT_BYTES_MAX, TO_CLIENT_BYTES_MAX, TO_SERVER_BYTES_MAX, TOKEN_BYTES_MAX};
use crate::wire::{
    FrameError, Jobs, LogPart, Planned, Progress, ToClient, ToServer, WireError, read_magic, receive, receive_bytes,
    send, write_magic,
};
use rustix::process::{Signal, Uid, geteuid, getpid, kill_process, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trueio_cluster::token::Token;
use trueio_device::{identity_of, path_of_descriptor};
use trueio_job::CommandFiles;
use trueio_job::option;
use trueio_job::options::target::rows::RANK_PLACE;
use trueio_model::{
    EngineKind, FilePlan, JobPlan, LogPlan, Origin, Plan, Prepare, RunRecord, TargetIdentity, error_line,
};
use trueio_report::clean_lines;
use trueio_report::message;
use trueio_run::planning::{PlanningError, descriptors_needed};
use trueio_run::{Event, Observer, Reporting, Request, Targets, watch_signals};

/// How long a client may wait for other servers' plans before it starts its jobs.
const START_WAIT: Duration = Duration::from_secs(300);
/// Largest part of a log in one message, in bytes.
const LOG_BYTES: u64 = 64 << 10;
/// Interval at which logs are read.
const LOG_EVERY: Duration = Duration::from_millis(200);
/// Largest number of messages that wait for a slow client.
const WAITING_MAX: usize = 16;

/// What a session may use while it reads and plans jobs. A session that needs more memory aborts, and no other.
const PLANNING: Share = Share { memory_bytes: 512 << 20, locked_bytes: 0, files: 1024 };
/// Memory of a session without its buffers, in bytes: records, histograms, results for a slow client.
const SESSION_BYTES: u64 = 192 << 20;
/// Locked memory of a session without its buffers, in bytes: rings.
const RINGS_BYTES: u64 = 8 << 20;
/// Memory of a worker without its buffers, in bytes: the stack of its thread, its histograms and its time series.
const WORKER_BYTES: u64 = 4 << 20;

/// The command in a record, without the paths of the server's command line.
const OWN_COMMAND: [&str; 3] = ["trueio", "fio", "--server"];

/// Runs a session.
pub(in crate::command) fn command(words: &[String], program: &Program) -> ExitCode {
    let [word, number, slot, directory, permits @ ..] = words else {
        return refused("this is an internal command of the server");
    };
    let (Some(ledger), Ok(slot)) = (Ledger::inherited(number), slot.parse::<usize>()) else {
        return refused("this is an internal command of the server");
    };
    // Ends this process with the server.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    be_first_to_go();
    let Some(stream) = stdin().and_then(|fd| Stream::from_fd(word, fd)) else {
        return refused("standard input is not a connection");
    };
    let peer = stream.peer();
    let place = Place { ledger, slot, directory: PathBuf::from(directory) };
    let sandbox = match Sandbox::inherited(permits) {
        Ok(sandbox) => sandbox,
        Err(error) => return refused(&format!("the session was not started\n  because: {error}")),
    };
    match attend(stream, &peer, (permits, &sandbox), program, &place) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Refused(text)) => {
            note(&place.ledger, &format!("fio: the client {peer} was refused: {text}"));
            ExitCode::FAILURE
        }
        Err(Ended::Wire(WireError::Frame(FrameError::Closed))) => ExitCode::FAILURE,
        Err(Ended::Wire(error)) => {
            note(&place.ledger, &format!("fio: the client {peer}: {}", error_line(&error)));
            ExitCode::FAILURE
        }
    }
}

/// What the server gave this session.
struct Place {
    ledger: Ledger,
    /// Its place in the ledger.
    slot: usize,
    /// The directory for its logs, which it makes, and the server removes.
    directory: PathBuf,
}

impl Place {
    /// Takes what a plan needs from the budget of all sessions.
    fn take(&self, plan: &Plan) -> Result<Share, String> {
        let buffers = trueio_job::memory_bytes(&plan.jobs);
        let workers = plan.jobs.iter().map(|job| u64::from(job.workers)).sum::<u64>();
        let memory_bytes = buffers.saturating_add(workers.saturating_mul(WORKER_BYTES)).saturating_add(SESSION_BYTES);
        // Buffers that io_uring registers count as locked.
        let rings: Vec<JobPlan> = plan.jobs.iter().filter(|job| job.engine == EngineKind::IoUring).cloned().collect();
        let locked_bytes = trueio_job::memory_bytes(&rings).saturating_add(RINGS_BYTES);
        let share = Share { memory_bytes, locked_bytes, files: descriptors_needed(plan) };
        self.ledger.take(self.slot, share).map(|()| share)
    }
}

/// Lets the kernel end this session, and no other process of the machine, if memory is short.
fn be_first_to_go() {
    // Raising the own value needs no privilege; without /proc there is none.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Gives up the privilege to go before other processes, also for the programs that this session starts.
fn never_go_first() {
    let Ok(mut own) = capabilities(None) else { return };
    for set in [&mut own.effective, &mut own.permitted, &mut own.inheritable] {
        set.remove(CapabilitySet::SYS_NICE);
    }
    let _ = remove_capability_from_bounding_set(CapabilitySet::SYS_NICE);
    let _ = set_capabilities(None, own);
}

/// Why a session ended before its jobs did.
enum Ended {
    Refused(String),
    Wire(WireError),
}

impl From<WireError> for Ended {
    fn from(error: WireError) -> Self {
        Ended::Wire(error)
    }
}

impl From<std::io::Error> for Ended {
    fn from(error: std::io::Error) -> Self {
        Ended::Wire(error.into())
    }
}

fn attend(
    mut stream: Stream,
    peer: &str,
    (permits, sandbox): (&[String], &Sandbox),
    program: &Program,
    place: &Place,
) -> Result<(), Ended> {
    // A peer that sends byte after byte does not hold a session for longer.
    let end = Instant::now() + HANDSHAKE;
    let admission = Instant::now() + ADMISSION;
    read_magic(&mut stream.until(admission))?;
    let objection = objection_to_peer(&mut stream, admission, permits)?;
    write_magic(&mut stream)?;
    if let Some(objection) = objection {
        return turn_away(&mut stream, objection);
    }
    if matches!(stream, Stream::Internet(_)) {
        send(&mut stream, &ToClient::Admitted, TO_CLIENT_BYTES_MAX)?;
    }
    let ToServer::Hello(theirs) = receive(&mut stream.until(end), SHORT_BYTES_MAX)? else {
        return Err(WireError::Stranger.into());
    };
    if let Some(objection) = hello().objection(&theirs) {
        return turn_away(&mut stream, objection);
    }
    send(&mut stream, &ToClient::Hello(hello()), TO_CLIENT_BYTES_MAX)?;
    let ToServer::Jobs(jobs) = receive(&mut stream.until(end), TO_SERVER_BYTES_MAX)? else {
        return Err(WireError::Stranger.into());
    };
    stream.set_patience(None)?;
    // From here on a signal ends the session in order, so that its directory is removed.
    let stop = watch_signals();
    if !permits.iter().any(|word| word == ALLOW_PRIORITY) {
        never_go_first();
    }
    if let Err(reason) = place.ledger.take(place.slot, PLANNING) {
        return turn_away(&mut stream, format!("{reason}\n\nhint: try again when one of them has ended"));
    }
    let private = match PrivateDirectory::create(&place.directory) {
        Ok(private) => private,
        Err(error) => return turn_away(&mut stream, format!("the server cannot create a directory for logs: {error}")),
    };
    let (mut request, (mut plan, targets), commands) =
        match confined(*jobs, peer, permits, (sandbox, &private.path), place) {
            Ok(prepared) => prepared,
            Err(text) => return turn_away(&mut stream, text),
        };
    let sends_contents = permits.iter().any(|word| word == ALLOW_CONTENTS);
    let interim_every = request.settings.status_interval_ns.map(Duration::from_nanos);
    let logs = Logs::divert(&mut plan, &private.path);
    let lines = status::banner_lines(&request.jobs, &plan);
    send(&mut stream, &ToClient::Planned(Planned { lines }), TO_CLIENT_BYTES_MAX)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let begin = listen(stream.try_clone()?, is_over.clone())?;
    match wait_for_start(&begin, || stop.load(Relaxed), START_WAIT) {
        Ok(()) => {}
        Err(NotBegun::Gone) => return Err(WireError::Frame(FrameError::Closed).into()),
        Err(why) => return turn_away(&mut stream, why.sentence()),
    }
    let (tx, writer) = talk(stream.try_clone()?)?;
    let tail = logs.as_ref().map(|logs| logs.follow(tx.clone())).transpose()?;
    let whole = Request {
        kind: "fio".to_owned(),
        command: if sends_contents { (program.command_line)() } else { OWN_COMMAND.map(str::to_owned).to_vec() },
        spec: std::mem::take(&mut request.jobs),
        has_evidence: true,
        plan,
        targets,
        reporting: Reporting {
            interim_every,
            hides_contents: !sends_contents,
            logs: Some(FioLogs::writer()),
            ..Reporting::default()
        },
    };
    let results = match status::Results::new(&Settings::default(), *program) {
        Ok(results) => results,
        Err(text) => return turn_away(&mut stream, text),
    };
    let around = exec::Around::new(Box::new(Hidden), commands, results, None, Waiting::new(&Trigger::default(), stop));
    let originals = logs.as_ref().map(|logs| logs.originals.clone()).unwrap_or_default();
    let mut observer = Remote { around, tx, phase: String::new(), originals };
    let mut record = trueio_run::run(whole, stop, &mut observer);
    let Remote { around, tx, originals, .. } = observer;
    let (failed_command, ..) = around.finish();
    put_back(&mut record, &originals);
    if let (Some(logs), Some((is_written, tail))) = (logs, tail) {
        is_written.store(true, Relaxed);
        let _ = tail.join();
        drop(logs);
    }
    drop(private);
    let problem = failed_command.map(|message| format!("error: {message}\n"));
    let _ = tx.send(ToClient::Done { record: Box::new(record), problem });
    drop(tx);
    let _ = writer.join();
    is_over.store(true, Relaxed);
    stream.end();
    Ok(())
}

/// Returns why the peer may not connect: over TCP it must send the server's token, and a Unix socket is for the server's
/// user, for root and for the users of the server's command line.
/// Nothing that the peer sent is parsed before.
fn objection_to_peer(stream: &mut Stream, end: Instant, permits: &[String]) -> Result<Option<String>, Ended> {
    if let Stream::Socket(_) = stream {
        let is_listed = |user: &Uid| {
            let mut listed = permits.iter().filter_map(|word| word.strip_prefix(ALLOW_USER)?.parse::<u32>().ok());
            listed.any(|number| number == user.as_raw())
        };
        let user = stream.peer_user();
        let is_known = user.is_some_and(|user| user.is_root() || user == geteuid() || is_listed(&user));
        let number = user.map_or_else(|| "unknown".to_owned(), |user| user.to_string());
        return Ok((!is_known).then(|| {
            format!(
                "this socket is not for processes of the user {number}\n\nhint: `--allow-user=UID` at the server adds a user"
            )
        }));
    }
    let sent = receive_bytes(&mut stream.until(end), TOKEN_BYTES_MAX)?;
    let path = permits.iter().find_map(|word| word.strip_prefix(TOKEN).or_else(|| word.strip_prefix(OWN_TOKEN)));
    let token = path
        .ok_or_else(|| "the server has no token".to_owned())
        .and_then(|path| Token::read(Path::new(path)).map_err(|error| error.explained(None)));
    Ok(match token {
        Ok(token) if token.is_equal(&sent) => None,
        Ok(_) if sent.is_empty() => Some("this server requires a token, and none was sent".to_owned()),
        Ok(_) => Some("the token is not the server's".to_owned()),
        Err(reason) => {
            message!("fio: {}", clean_lines(&reason));
            Some("the server cannot read its token".to_owned())
        }
    })
}

/// Confines this session to the paths that the server's command line names, and plans the jobs, with a limit of memory.
fn confined(
    jobs: Jobs,
    peer: &str,
    permits: &[String],
    (sandbox, private): (&Sandbox, &Path),
    place: &Place,
) -> Result<(FioRequest, (Plan, Targets), exec::Commands), String> {
    let names = Names::new(sandbox.paths(), sandbox.home(), permits.iter().any(|word| word == ALLOW_PRIORITY));
    sandbox.enter_home()?;
    // Whether other programs have a device open is asked while planning, and the kernel hides it from the confined.
    let is_late = sandbox.hides_openers();
    if !is_late {
        sandbox.enforce(private)?;
    }
    PLANNING.enforce();
    let (share, prepared) = prepare(jobs, peer, permits, (sandbox, &names), place)?;
    share.enforce();
    if is_late {
        sandbox.enforce(private)?;
    }
    Ok(prepared)
}

/// Why a client's jobs do not start.
#[derive(Debug, PartialEq, Eq)]
enum NotBegun {
    /// The client disconnected.
    Gone,
    /// The server is ending.
    Ended,
    /// The client did not start them in time.
    Late,
}

impl NotBegun {
    fn sentence(&self) -> String {
        match self {
            NotBegun::Gone => "the client disconnected".to_owned(),
            NotBegun::Ended => "the server is being ended".to_owned(),
            NotBegun::Late => format!("the client did not begin within {} s", START_WAIT.as_secs()),
        }
    }
}

/// Waits until the client starts its jobs. The time is limited, because a waiting session takes a place from other
/// clients.
fn wait_for_start(begin: &Receiver<()>, is_ended: impl Fn() -> bool, wait: Duration) -> Result<(), NotBegun> {
    let until = Instant::now() + wait;
    loop {
        match begin.recv_timeout(Duration::from_millis(200).min(until.saturating_duration_since(Instant::now()))) {
            Ok(()) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(NotBegun::Gone),
            Err(RecvTimeoutError::Timeout) if is_ended() => return Err(NotBegun::Ended),
            Err(RecvTimeoutError::Timeout) if Instant::now() >= until => return Err(NotBegun::Late),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Sends the refusal to the client.
fn turn_away(stream: &mut Stream, text: String) -> Result<(), Ended> {
    // It may repeat what the client sent, and the client takes a short message here.
    let sent = text[..text.floor_char_boundary(REFUSAL_BYTES_MAX)].to_owned();
    let _ = send(stream, &ToClient::Refused { text: sent }, TO_CLIENT_BYTES_MAX);
    Err(Ended::Refused(text))
}

/// The client's files and variables, for the reader of fio's language.
struct Sent<'a> {
    jobs: &'a Jobs,
    client: &'a str,
    sandbox: &'a Sandbox,
    /// With `--allow-contents`.
    sends_contents: bool,
}

impl Surroundings for Sent<'_> {
    fn read_file(&self, path: &str) -> Result<String, String> {
        match self.jobs.texts.get(path) {
            Some(text) => Ok(text.clone()),
            None if self.jobs.files_there.is_empty() => Err("the client did not send it".to_owned()),
            None if path == "-" => Err("a server has no standard input".to_owned()),
            None => read_there(path, self.sandbox),
        }
    }

    fn is_missing(&self, path: &str) -> bool {
        // What the client names and does not send is missing there, or the client refused it. Here, a path outside of the sandbox is refused.
        self.jobs.files_there.is_empty() || (self.sandbox.may_read(Path::new(path)) && ThisMachine.is_missing(path))
    }

    fn read_bytes(&self, _path: &str, _most: usize) -> Result<(Vec<u8>, u64), String> {
        // Does not reveal whether the file exists.
        Err(NO_PATTERN_FILE.to_owned())
    }

    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String> {
        if !self.sandbox.may_read(Path::new(directory)) {
            return Err(not_readable(directory, self.sandbox));
        }
        if !self.sends_contents {
            return Err("the results would tell the client which files there are, and the server was started without \
                        `--allow-contents`"
                .to_owned());
        }
        ThisMachine.files_below(directory)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.jobs.variables.get(name).cloned()
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

    fn client(&self) -> Option<String> {
        Some(self.client.to_owned())
    }
}

/// Reads a job file that lies at the server.
fn read_there(path: &str, sandbox: &Sandbox) -> Result<String, String> {
    let name = Path::new(path);
    let Some(file) = sandbox.find_readable(name) else { return Err(not_readable(path, sandbox)) };
    if !name.exists() {
        return Err(std::io::Error::from(std::io::ErrorKind::NotFound).to_string());
    }
    // A pipe would keep this session waiting for a writer.
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is no regular file".to_owned());
    }
    // Read through the descriptor: the path may lead elsewhere by now.
    ThisMachine.read_file(&path_of_descriptor(&file).to_string_lossy())
}

/// Returns why a client may not read a path, and what to do.
fn not_readable(path: &str, sandbox: &Sandbox) -> String {
    format!(
        "it would read `{path}`, and this server's clients may read {}\n\nhint: if that is intended, start the server with \
         `--allow-read={path}`",
        sandbox.read()
    )
}

/// What a session runs.
type Prepared = (FioRequest, (Plan, Targets), exec::Commands);

/// Reads and plans the jobs, and takes their share of the server's budget, or returns the refusal.
fn prepare(
    jobs: Jobs,
    peer: &str,
    permits: &[String],
    (sandbox, permitted): (&Sandbox, &Names),
    place: &Place,
) -> Result<(Share, Prepared), String> {
    let words = [&jobs.files, &jobs.files_there, &jobs.sections].into_iter().flatten();
    if words.chain(jobs.texts.keys()).chain(jobs.variables.values()).any(|text| text.contains(char::is_control)) {
        return Err("the name of a job file or section, or the value of a variable, has a control character\n\nhint: use another name \
                    or value"
            .to_owned());
    }
    for path in &jobs.files_there {
        read_there(path, sandbox)
            .map_err(|reason| format!("the job file `{path}` at the server cannot be read: {reason}"))?;
    }
    let sends_contents = permits.iter().any(|word| word == ALLOW_CONTENTS);
    let may_exec = permits.iter().any(|word| word == "--allow-exec");
    let is_of_reader = |word: &&String| {
        let of_server = [ALLOW_WRITE, ALLOW_READ, ALLOW_USER, TOKEN, OWN_TOKEN];
        !["--allow-exec", NO_SANDBOX, ALLOW_CONTENTS, ALLOW_PRIORITY].contains(&word.as_str())
            && !of_server.iter().any(|prefix| word.starts_with(prefix))
    };
    let mut words: Vec<String> = permits.iter().filter(is_of_reader).cloned().collect();
    words.extend((jobs.allows_exec && may_exec).then(|| "--allow-exec".to_owned()));
    words.extend(jobs.is_readonly.then(|| "--readonly".to_owned()));
    words.extend(jobs.are_warnings_fatal.then(|| "--warnings-fatal".to_owned()));
    words.extend(jobs.sections.iter().map(|section| format!("--section={section}")));
    words.push("--".to_owned());
    words.extend(jobs.files_there.iter().chain(&jobs.files).cloned());
    let mut request = read(&words, &Sent { jobs: &jobs, client: peer, sandbox, sends_contents }).map_err(|error| {
        let text = error.render();
        if !jobs.files_there.is_empty() {
            message!("{}", clean_lines(text.trim_end()));
            return format!(
                "`{}` at the server cannot be run\n\nhint: the server printed the reason on its standard error; \
                 clients do not get the content of its files",
                jobs.files_there.join("`, `")
            );
        }
        match jobs.allows_exec && !may_exec && text.contains("would run a command") {
            true => format!("{}\nhint: the server was started without `--allow-exec`", text),
            false => text,
        }
    })?;
    if request.action != Action::Run {
        return Err("the client sent no jobs".to_owned());
    }
    stays_with_clients(&request)?;
    let (read, written) = (sandbox.read(), sandbox.written());
    permitted
        .check(&request, &format!("this server's clients may read {read}, and its clients may write {written}"))?;
    names::check_links(&request, sandbox).map_err(|error| error.to_string())?;
    request.settings.status_interval_ns = jobs.status_interval_ns;
    if jobs.place > 0 {
        // Otherwise the servers would read the same blocks in the same order, and write the same content.
        let reason = "the server's number among those of the client".to_owned();
        let origin = Origin::Derived { reason };
        request.jobs.iter_mut().for_each(|job| job.set(RANK_PLACE.name, jobs.place.to_string(), origin.clone()));
    }
    let commands = exec::Commands::of(&request).map_err(|error| error.render())?;
    let command_files = CommandFiles { files: commands.files(), sends_logs: true, may_replace: true };
    let is_readonly = request.settings.is_readonly;
    let share = Cell::new(PLANNING);
    let planned = planned(&mut request, command_files, |plan| {
        keep_within(plan, sandbox).and_then(|()| keep_nothing(plan, is_readonly)).map_err(PlanningError::new)?;
        let taken = place.take(plan).map_err(|reason| {
            PlanningError::new(format!(
                "nothing was started\n  because: {reason}\n\nhint: use less, or try again later"
            ))
        })?;
        share.set(taken);
        Ok(())
    })
    .map_err(|text| sandbox.explained(if sends_contents { text } else { without_link_targets(text) }))?;
    Ok((share.get(), (request, planned, commands)))
}

/// Removes from a refusal where symbolic links lead.
fn without_link_targets(text: String) -> String {
    const BEFORE: &str = " is a symbolic link";
    let Some((before, after)) = text.split_once(BEFORE) else { return text };
    let rest = after.strip_prefix(" to `").and_then(|named| named.split_once('`')).map_or(after, |(_, rest)| rest);
    // The hint names the target, too.
    let rest = rest.split_once("\n\nhint:").map_or(rest, |(reason, _)| reason);
    format!("{before}{BEFORE}{}\n\nhint: name the link's target", rest.trim_end())
}

/// Refuses options that name further files of this machine, before such a file is read: an error message about an I/O
/// log quotes its lines, and a client could name any file as a log.
fn stays_with_clients(request: &FioRequest) -> Result<(), String> {
    for job in &request.jobs {
        for (name, value) in &job.options {
            let is_asked = !["", "0", "false"].contains(&value.text.as_str());
            if let (true, Some(option::Remote::Refused(why))) = (is_asked, trueio_job::row(name).map(|row| row.remote))
            {
                return Err(format!(
                    "job `{}` was not started\n  because: `{name}` {why}\n\nhint: run the job on that machine, without \
                     `--client`",
                    job.name
                ));
            }
        }
    }
    Ok(())
}

/// Refuses jobs that would use files outside of the paths of the server's command line.
/// Otherwise every client could do what the server's user can do.
fn keep_within(plan: &Plan, sandbox: &Sandbox) -> Result<(), String> {
    for job in &plan.jobs {
        let is_writing = job.modifies_files() || job.engine.works_on_names();
        let is_touched = |prepare: &Prepare| {
            !matches!(prepare, Prepare::Nothing) && (is_writing || *prepare != Prepare::UseExisting)
                || job.engine.works_on_names()
        };
        // A directory that is created for a file may be outside, even if the file itself is not.
        let touched = job.files.iter().filter(|file| is_touched(&file.prepare)).map(|file| &file.path);
        if let Some(path) = touched.chain(&job.directories).find(|path| !sandbox.may_write(Path::new(path))) {
            return Err(format!(
                "job `{}` was not started\n  because: it would write to `{path}`, and this server's clients may write {}\n\n\
                 hint: if that is intended, start the server with `--allow-write={path}`",
                job.name,
                sandbox.written(),
            ));
        }
        let is_read = |file: &&FilePlan| !matches!(file.prepare, Prepare::Nothing) || job.engine.opens_files();
        for FilePlan { path, .. } in job.files.iter().filter(is_read) {
            let refused = |reason: String| Err(format!("job `{}` was not started\n  because: {reason}", job.name));
            let Some(found) = sandbox.find_readable(Path::new(path)) else {
                return refused(not_readable(path, sandbox));
            };
            // What the planner examined, and the run holds open, must be what is permitted, not only have had its name meanwhile.
            let is_examined = |planned: &TargetIdentity| identity_of(&found).is_ok_and(|found| planned.is_same(&found));
            if !plan.identities.get(path).is_none_or(is_examined) {
                return refused(format!("`{path}` leads to another file than a moment ago"));
            }
        }
    }
    Ok(())
}

/// Refuses jobs that would keep files of their verification on a server with `--readonly`.
fn keep_nothing(plan: &Plan, is_readonly: bool) -> Result<(), String> {
    let keeps = |job: &JobPlan| {
        let verify = job.verify.as_ref()?;
        let asked = [("verify_dump", verify.dumps), ("verify_state_save", verify.saves_state)];
        asked.into_iter().find(|(_, is_asked)| *is_asked).map(|(name, _)| (job.name.clone(), name))
    };
    match plan.jobs.iter().find_map(keeps).filter(|_| is_readonly) {
        None => Ok(()),
        Some((job, name)) => Err(format!(
            "job `{job}` was not started\n  because: `{name}` would make files at the server, and `--readonly` forbids \
             that\n\nhint: leave it out"
        )),
    }
}

/// Receives the client's messages while the jobs wait and run: `Start` starts them; `Stop`, or the end of the
/// connection, ends them.
fn listen(mut stream: Stream, is_over: Arc<AtomicBool>) -> Result<Receiver<()>, std::io::Error> {
    let (begin, began): (Sender<()>, _) = channel();
    std::thread::Builder::new().name("client".to_owned()).spawn(move || {
        let mut begin = Some(begin);
        loop {
            let signal = match receive::<ToServer>(&mut stream, SHORT_BYTES_MAX) {
                Ok(ToServer::Start) => {
                    if let Some(begin) = begin.take() {
                        let _ = begin.send(());
                    }
                    continue;
                }
                Ok(ToServer::Stop) => Signal::INT,
                Ok(_) => continue,
                Err(_) if is_over.load(Relaxed) || begin.is_some() => return,
                Err(_) => Signal::TERM,
            };
            let has_ended = signal == Signal::TERM;
            // Like a signal from a terminal: the run ends with a record of what it measured. Only once: a second signal
            // would end the process without a record.
            if !watch_signals().load(Relaxed) {
                let _ = kill_process(getpid(), signal);
            }
            if has_ended {
                return;
            }
        }
    })?;
    Ok(began)
}

/// Starts a thread that sends messages, so that a slow client does not delay the run. It ends when all senders are
/// dropped.
fn talk(mut stream: Stream) -> Result<(SyncSender<ToClient>, JoinHandle<()>), std::io::Error> {
    let (tx, rx) = sync_channel::<ToClient>(WAITING_MAX);
    let writer = std::thread::Builder::new().name("answers".to_owned()).spawn(move || {
        let mut is_gone = false;
        loop {
            let message = match rx.recv_timeout(ALIVE_EVERY) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => ToClient::Alive,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // After a failure it continues to receive, so that no sender blocks.
            if !is_gone && let Err(error) = send(&mut stream, &message, TO_CLIENT_BYTES_MAX) {
                is_gone = true;
                if let WireError::Frame(FrameError::TooLong { .. }) = error {
                    message!("fio: results cannot be sent: {error}");
                }
                stream.end();
            }
        }
    })?;
    Ok((tx, writer))
}

/// Sends the events of the run to the client.
struct Remote {
    around: exec::Around,
    tx: SyncSender<ToClient>,
    phase: String,
    originals: Vec<LogPlan>,
}

impl Observer for Remote {
    fn notify(&mut self, event: Event<'_>) {
        if let Event::PhaseBegins { index, count, name } = event {
            self.phase = format!("{}/{count} {name}", index + 1);
        }
        match event {
            // A message that the client is too slow for is dropped; the next one has newer figures.
            Event::Progress(tick) => drop(self.tx.try_send(ToClient::Progress(Progress {
                phase: self.phase.clone(),
                fraction: tick.fraction,
                bytes_per_s: tick.bytes_per_s,
                ios_per_s: tick.ios_per_s,
                latency_ns_p50: tick.latency_ns_p50,
                latency_ns_p99: tick.latency_ns_p99,
                left_ns: tick.left_ns,
            }))),
            Event::Interim(so_far) => {
                let mut record = so_far.clone();
                put_back(&mut record, &self.originals);
                let _ = self.tx.try_send(ToClient::Interim(Box::new(record)));
            }
            // The client makes its own results.
            Event::MeasuringBegins | Event::MeasuringEnds | Event::Bandwidth(_) => {}
            event => self.around.notify(event),
        }
    }
}

/// Logs of a client's jobs, written to a directory of their own while they are sent to the client: a client's job
/// cannot replace files of the server.
struct Logs {
    directory: PathBuf,
    /// The prefixes of the jobs' logs; the position of a prefix is the name of its files in the directory.
    prefixes: Vec<String>,
    /// The original log plans of all jobs.
    originals: Vec<LogPlan>,
}

/// Restores the jobs' own log plans in the record.
fn put_back(record: &mut RunRecord, originals: &[LogPlan]) {
    for (job, original) in record.plan.jobs.iter_mut().zip(originals) {
        job.output.logs = original.clone();
    }
}

impl Logs {
    /// Redirects the logs of a plan to a directory; `None` if there are no logs.
    fn divert(plan: &mut Plan, directory: &Path) -> Option<Self> {
        if plan.jobs.iter().all(|job| job.output.logs.is_empty()) {
            return None;
        }
        let mut logs = Self { directory: directory.to_owned(), prefixes: Vec::new(), originals: Vec::new() };
        for job in &mut plan.jobs {
            let of = &mut job.output.logs;
            logs.originals.push(of.clone());
            for prefix in [&mut of.bw, &mut of.iops, &mut of.lat, &mut of.hist].into_iter().flatten() {
                let known = logs.prefixes.iter().position(|known| known == prefix);
                let place = known.unwrap_or_else(|| {
                    logs.prefixes.push(prefix.clone());
                    logs.prefixes.len() - 1
                });
                *prefix = logs.directory.join(place.to_string()).to_string_lossy().into_owned();
            }
        }
        Some(logs)
    }

    /// Starts a thread that sends the logs as they grow. It ends after the returned flag is set and everything is sent.
    fn follow(&self, tx: SyncSender<ToClient>) -> std::io::Result<(Arc<AtomicBool>, JoinHandle<()>)> {
        let is_written = Arc::new(AtomicBool::new(false));
        let (directory, prefixes, until) = (self.directory.clone(), self.prefixes.clone(), is_written.clone());
        let tail = std::thread::Builder::new().name("log tail".to_owned()).spawn(move || {
            let mut sent: BTreeMap<String, u64> = BTreeMap::new();
            loop {
                let is_last = until.load(Relaxed);
                for name in names(&directory) {
                    let Some((place, suffix)) = name.split_once('_') else { continue };
                    let Some(prefix) = place.parse::<usize>().ok().and_then(|place| prefixes.get(place)) else {
                        continue;
                    };
                    let suffix = format!("_{suffix}");
                    let is_first = !sent.contains_key(&name);
                    let offset = sent.entry(name.clone()).or_default();
                    let part = |text| ToClient::Log(LogPart { prefix: prefix.clone(), suffix: suffix.clone(), text });
                    if is_first {
                        let _ = tx.send(part(String::new()));
                    }
                    while let Some(text) = more(&directory.join(&name), *offset) {
                        *offset += text.len() as u64;
                        let _ = tx.send(part(text));
                    }
                }
                if is_last {
                    return;
                }
                std::thread::sleep(LOG_EVERY);
            }
        })?;
        Ok((is_written, tail))
    }
}

/// A directory of this session, removed with everything in it when it is dropped. It is locked as long as the session lives.
#[derive(Debug)]
struct PrivateDirectory {
    path: PathBuf,
    _lock: File,
}

impl PrivateDirectory {
    /// Creates it where the server said, with mode 0700.
    fn create(path: &Path) -> std::io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        let lock = File::open(path)?;
        lock.try_lock_shared()?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Reads the next part of a log from an offset; `None` at the end.
fn more(path: &Path, offset: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut bytes).ok()?;
    // Logs contain only digits, commas and spaces.
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_if_its_client_does_not_start_it_in_time_or_disconnects() {
        let (begin, began) = channel();
        let now = Duration::ZERO;
        assert_eq!(wait_for_start(&began, || false, now), Err(NotBegun::Late));
        assert_eq!(wait_for_start(&began, || true, Duration::from_secs(3600)), Err(NotBegun::Ended));
        begin.send(()).expect("the main thread waits");
        assert_eq!(wait_for_start(&began, || false, Duration::from_secs(3600)), Ok(()));
        drop(begin);
        assert_eq!(wait_for_start(&began, || false, Duration::from_secs(3600)), Err(NotBegun::Gone));
    }
}
