//! A session: one client's jobs, in a process of its own, whose standard input is the connection.
//!
//! What the client sent is all that is read, but for job files that lie here (`--remote-config`): those, and what they
//! include, are read as this user. What is wrong in them is told on this side only, since any file of this machine
//! could be named, and a report shows lines of it.

use super::super::around::Live;
use super::super::{exec, planned, status};
use super::server::{ALLOW_WRITE, stdin};
use super::stream::Stream;
use super::{HANDSHAKE, NO_PATTERN_FILE, hello};
use crate::failure::Failure;
use crate::progress;
use rustix::process::{Signal, getpid, kill_process, set_parent_process_death_signal};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trueio_fio::language::{Action, FioRequest, Settings, Surroundings, read};
use trueio_fio::wire::frame::{TO_CLIENT_BYTES_MAX, TO_SERVER_BYTES_MAX};
use trueio_fio::wire::{
    Jobs, LogPart, Planned, Progress, ToClient, ToServer, WireError, read_magic, receive, send, write_magic,
};
use trueio_job::{Beside, OptionRow};
use trueio_model::{JobPlan, LogPlan, PhaseRecord, Plan, Prepare, RunRecord, SteadyState, error_line};
use trueio_run::{Observer, Request, Tick, watch_signals};

/// The first word of a session's command line; then what it was handed, and what its server permits.
pub(in crate::fio) const SESSION: &str = "--trueio-session";
/// How long a client may wait for the plans of other servers before its jobs begin.
const START_WAIT: Duration = Duration::from_secs(300);
/// How much of a log is sent at once.
const LOG_BYTES: u64 = 64 << 10;
/// How often logs are looked at.
const LOG_EVERY: Duration = Duration::from_millis(200);
/// How many messages may wait for a client that is slow.
const WAITING_MAX: usize = 16;

/// The whole session.
pub(in crate::fio) fn command(words: &[String]) -> ExitCode {
    let Some((word, permits)) = words.split_first() else {
        return super::super::refused("this is no command for people");
    };
    // The server's end is this one's.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let Some(stream) = stdin().and_then(|fd| Stream::from_fd(word, fd)) else {
        return super::super::refused("there is no client");
    };
    let peer = stream.peer();
    match attend(stream, &peer, permits) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Refused(text)) => {
            eprintln!("fio: the client {peer} was refused: {}", text.trim_end());
            ExitCode::FAILURE
        }
        Err(Ended::Wire(WireError::Closed)) => ExitCode::FAILURE,
        Err(Ended::Wire(error)) => {
            eprintln!("fio: the client {peer}: {}", error_line(&error));
            ExitCode::FAILURE
        }
    }
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

fn attend(mut stream: Stream, peer: &str, permits: &[String]) -> Result<(), Ended> {
    let hear = |stream: &mut Stream| receive::<ToServer>(stream, TO_SERVER_BYTES_MAX);
    stream.set_patience(Some(HANDSHAKE))?;
    read_magic(&mut stream)?;
    write_magic(&mut stream)?;
    let ToServer::Hello(theirs) = hear(&mut stream)? else { return Err(WireError::Stranger.into()) };
    if let Some(objection) = hello().objection(&theirs) {
        return turn_away(&mut stream, objection);
    }
    send(&mut stream, &ToClient::Hello(hello()), TO_CLIENT_BYTES_MAX)?;
    let ToServer::Jobs(jobs) = hear(&mut stream)? else { return Err(WireError::Stranger.into()) };
    stream.set_patience(None)?;
    let (mut request, mut plan, commands) = match prepare(*jobs, peer, permits) {
        Ok(prepared) => prepared,
        Err(text) => return turn_away(&mut stream, text),
    };
    let stop = watch_signals();
    let status_every = request.settings.status_interval_ns.map(Duration::from_nanos);
    let logs = match Logs::divert(&mut plan) {
        Ok(logs) => logs,
        Err(error) => return turn_away(&mut stream, format!("the server has no place for logs: {error}")),
    };
    let lines = status::banner_lines(&request.jobs, &plan);
    send(&mut stream, &ToClient::Planned(Planned { lines }), TO_CLIENT_BYTES_MAX)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let begin = listen(stream.try_clone()?, is_over.clone())?;
    match wait_for_start(&begin, || stop.load(Relaxed), START_WAIT) {
        Ok(()) => {}
        Err(NotBegun::Gone) => return Err(WireError::Closed.into()),
        Err(why) => return turn_away(&mut stream, why.sentence()),
    }
    let (tx, writer) = talk(stream.try_clone()?)?;
    let tail = logs.as_ref().map(|logs| logs.follow(tx.clone())).transpose()?;
    let whole = Request {
        kind: "fio".to_owned(),
        command: crate::flags::as_typed(),
        spec: std::mem::take(&mut request.jobs),
        has_evidence: true,
        plan,
    };
    let around =
        exec::Around::new(progress::Line::hidden(), commands, status::Results::new(&Settings::default()), None);
    let originals = logs.as_ref().map(|logs| logs.originals.clone()).unwrap_or_default();
    let mut observer = Remote { around, tx, every: status_every, phase: String::new(), originals };
    let mut record = trueio_run::run(whole, stop, &mut observer);
    let Remote { around, tx, originals, .. } = observer;
    let (failed_command, _) = around.finish();
    put_back(&mut record, &originals);
    if let (Some(logs), Some((is_written, tail))) = (logs, tail) {
        is_written.store(true, Relaxed);
        let _ = tail.join();
        drop(logs);
    }
    let problem = failed_command.map(|error| error.render());
    let _ = tx.send(ToClient::Done { record: Box::new(record), problem });
    drop(tx);
    let _ = writer.join();
    is_over.store(true, Relaxed);
    stream.end();
    Ok(())
}

/// Why a client's jobs do not begin.
#[derive(Debug, PartialEq, Eq)]
enum NotBegun {
    /// The client is gone.
    Gone,
    /// The server ends.
    Ended,
    /// The client did not say so in time.
    Late,
}

impl NotBegun {
    fn sentence(&self) -> String {
        match self {
            NotBegun::Gone => "the client is gone".to_owned(),
            NotBegun::Ended => "the server is being ended".to_owned(),
            NotBegun::Late => format!("the client did not begin within {} s", START_WAIT.as_secs()),
        }
    }
}

/// Waits until the client lets its jobs begin, for as long as other servers may plan. A client that never does keeps a
/// place from others.
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

/// Tells the client why nothing is done.
fn turn_away(stream: &mut Stream, text: String) -> Result<(), Ended> {
    let _ = send(stream, &ToClient::Refused { text: text.clone() }, TO_CLIENT_BYTES_MAX);
    Err(Ended::Refused(text))
}

/// What the client sent, as the reader of fio's language sees it.
struct Sent<'a> {
    jobs: &'a Jobs,
    client: &'a str,
}

impl Surroundings for Sent<'_> {
    fn read_file(&self, path: &str) -> Result<String, String> {
        match self.jobs.texts.get(path) {
            Some(text) => Ok(text.clone()),
            None if self.jobs.files_there.is_empty() => Err("the client did not send it".to_owned()),
            None if path == "-" => Err("a server has no standard input".to_owned()),
            None => Live.read_file(path),
        }
    }

    fn read_bytes(&self, _path: &str, _most: usize) -> Result<(Vec<u8>, u64), String> {
        // Not even whether it is there is told.
        Err(NO_PATTERN_FILE.to_owned())
    }

    fn files_below(&self, directory: &str) -> Result<(Vec<String>, u64), String> {
        Live.files_below(directory)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.jobs.variables.get(name).cloned()
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

    fn client(&self) -> Option<String> {
        Some(self.client.to_owned())
    }
}

/// Reads and plans the jobs, or says why not.
fn prepare(jobs: Jobs, peer: &str, permits: &[String]) -> Result<(FioRequest, Plan, exec::Commands), String> {
    for path in &jobs.files_there {
        Live.read_file(path)
            .map_err(|reason| format!("the job file `{path}` at the server cannot be read: {reason}"))?;
    }
    let may_exec = permits.iter().any(|word| word == "--allow-exec");
    let is_of_reader = |word: &&String| *word != "--allow-exec" && !word.starts_with(ALLOW_WRITE);
    let mut words: Vec<String> = permits.iter().filter(is_of_reader).cloned().collect();
    words.extend((jobs.allows_exec && may_exec).then(|| "--allow-exec".to_owned()));
    words.extend(jobs.is_readonly.then(|| "--readonly".to_owned()));
    words.extend(jobs.are_warnings_fatal.then(|| "--warnings-fatal".to_owned()));
    words.extend(jobs.sections.iter().map(|section| format!("--section={section}")));
    words.push("--".to_owned());
    words.extend(jobs.files_there.iter().chain(&jobs.files).cloned());
    let mut request = read(&words, &Sent { jobs: &jobs, client: peer }).map_err(|error| {
        let text = error.render();
        if !jobs.files_there.is_empty() {
            eprintln!("{}", text.trim_end());
            return format!(
                "`{}` at the server cannot be run\n\nhint: the server has said why on its standard error: what stands in \
                 its files is not told to clients",
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
    request.settings.status_interval_ns = jobs.status_interval_ns;
    let commands = exec::Commands::of(&request).map_err(|error| error.render())?;
    let beside = Beside { files: commands.files(), sends_logs: true };
    let is_readonly = request.settings.is_readonly;
    let plan = planned(&mut request, beside, |plan| {
        keep_within(plan, permits).and_then(|()| keep_nothing(plan, is_readonly)).map_err(Failure::refused)
    })?;
    Ok((request, plan, commands))
}

/// Options that name files and may come from a client: targets, which [`keep_within`] looks at, and logs, which are sent.
const PATHS_OF_CLIENTS: [&str; 7] = [
    "filename",
    "directory",
    "overwrite_existing",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
];

/// Why an option does not come from a client; `None`: it may.
fn why_local(row: &OptionRow) -> Option<&'static str> {
    match row.name {
        "read_iolog" => Some("would read a file of the server"),
        "write_iolog" => Some("would write a file at the server"),
        "log_store_compressed" => Some("is for logs of this machine; those of a client are sent as text"),
        name => (row.names_path() && !PATHS_OF_CLIENTS.contains(&name)).then_some("names a file of the server"),
    }
}

/// Refuses options that name files of this machine beside what is measured, before anything is read of them: what is
/// wrong in an I/O log is told with its lines, and any file of this machine could be named as one.
fn stays_with_clients(request: &FioRequest) -> Result<(), String> {
    for job in &request.jobs {
        for (name, value) in &job.options {
            let is_asked = !["", "0", "false"].contains(&value.text.as_str());
            if let Some(why) = trueio_job::row(name).and_then(why_local).filter(|_| is_asked) {
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

/// Refuses jobs that would write or make anything outside of the working directory and of what the server's command
/// line names. Whoever can connect would else be whoever runs the server.
fn keep_within(plan: &Plan, permits: &[String]) -> Result<(), String> {
    let here = std::env::current_dir().map_err(|error| format!("the server has no working directory: {error}"))?;
    let named = permits.iter().filter_map(|word| word.strip_prefix(ALLOW_WRITE)).map(PathBuf::from);
    let allowed: Vec<PathBuf> =
        std::iter::once(here.clone()).chain(named).filter_map(|path| true_path(&path)).collect();
    for job in &plan.jobs {
        let is_writing = job.modifies_files() || job.engine.works_on_names();
        let touched = job.files.iter().filter(|file| {
            !matches!(file.prepare, Prepare::Nothing) && (is_writing || file.prepare != Prepare::UseExisting)
                || job.engine.works_on_names()
        });
        // A directory that is made for a file may lie outside of what is allowed, though the file itself is named.
        for path in touched.map(|file| &file.path).chain(&job.directories) {
            let found = true_path(Path::new(path));
            if found.is_some_and(|found| allowed.iter().any(|place| found.starts_with(place))) {
                continue;
            }
            return Err(format!(
                "job `{}` was not started\n  because: it would write to `{path}`, and this server's clients may write below \
                 its working directory `{}` only\n\nhint: if that is meant, start the server with `--allow-write={path}`",
                job.name,
                here.display(),
            ));
        }
    }
    Ok(())
}

/// Refuses jobs that would leave something of what they verify here, where nothing may be made.
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

/// A path without links; of what does not exist, that of the nearest directory which does, with the rest behind it.
/// `None` for what leads nowhere, or out of a directory that is still to be made.
fn true_path(path: &Path) -> Option<PathBuf> {
    for ancestor in path.ancestors() {
        let there = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        match there.canonicalize() {
            Ok(found) => {
                let rest = path.strip_prefix(ancestor).expect("an ancestor is the beginning");
                let is_plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
                return is_plain.then(|| found.join(rest));
            }
            // A link to nothing is there.
            Err(_) if there.symlink_metadata().is_ok() => return None,
            Err(_) => {}
        }
    }
    None
}

/// Hears what the client says while the jobs wait and run: the first word lets them begin. When it goes away, or says
/// so, they end.
fn listen(mut stream: Stream, is_over: Arc<AtomicBool>) -> Result<Receiver<()>, std::io::Error> {
    let (begin, began): (Sender<()>, _) = channel();
    std::thread::Builder::new().name("client".to_owned()).spawn(move || {
        let mut begin = Some(begin);
        loop {
            let signal = match receive::<ToServer>(&mut stream, TO_SERVER_BYTES_MAX) {
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
            // As if it had come from a terminal: what was measured until then becomes a record. Only once: a second
            // signal would end the process, and with it the record.
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

/// A thread that sends, so that a slow client does not hold the run; it ends when nobody has anything to say.
fn talk(mut stream: Stream) -> Result<(SyncSender<ToClient>, JoinHandle<()>), std::io::Error> {
    let (tx, rx) = sync_channel::<ToClient>(WAITING_MAX);
    let writer = std::thread::Builder::new().name("answers".to_owned()).spawn(move || {
        let mut is_gone = false;
        for message in rx {
            // After a failure it goes on taking, so that nobody waits.
            if !is_gone && let Err(error) = send(&mut stream, &message, TO_CLIENT_BYTES_MAX) {
                is_gone = true;
                if let WireError::TooLong { .. } = error {
                    eprintln!("fio: results cannot be sent: {error}");
                }
                stream.end();
            }
        }
    })?;
    Ok((tx, writer))
}

/// Tells the client how the run goes.
struct Remote {
    around: exec::Around,
    tx: SyncSender<ToClient>,
    every: Option<Duration>,
    phase: String,
    originals: Vec<LogPlan>,
}

impl Observer for Remote {
    fn preparing(&mut self, path: &str, done_bytes: u64, size_bytes: u64) {
        self.around.preparing(path, done_bytes, size_bytes);
    }

    fn before_phase(&mut self, index: usize) -> Result<(), String> {
        self.around.before_phase(index)
    }

    fn after_phase(&mut self, index: usize) {
        self.around.after_phase(index);
    }

    fn phase_begins(&mut self, index: usize, count: usize, name: &str) {
        self.around.phase_begins(index, count, name);
        self.phase = format!("{}/{count} {name}", index + 1);
    }

    fn settling(&mut self, round: u32, rounds_max: u32, so_far: &SteadyState) {
        self.around.settling(round, rounds_max, so_far);
    }

    fn settled(&mut self, state: &SteadyState) {
        self.around.settled(state);
    }

    fn progress(&mut self, tick: &Tick) {
        // Of one that is not taken the next tells more.
        let _ = self.tx.try_send(ToClient::Progress(Progress {
            phase: self.phase.clone(),
            fraction: tick.fraction,
            bytes_per_s: tick.bytes_per_s,
            ios_per_s: tick.ios_per_s,
            latency_ns_p50: tick.latency_ns_p50,
            latency_ns_p99: tick.latency_ns_p99,
            left_ns: tick.left_ns,
        }));
    }

    fn status_every(&self) -> Option<Duration> {
        self.every
    }

    fn status(&mut self, so_far: &RunRecord) {
        let mut record = so_far.clone();
        put_back(&mut record, &self.originals);
        let _ = self.tx.try_send(ToClient::Interim(Box::new(record)));
    }

    fn phase_ends(&mut self, phase: &PhaseRecord) {
        self.around.phase_ends(phase);
    }
}

/// Logs that are written here, in a directory of their own, while their client gets them: a stranger's job names no
/// file of this machine to be replaced.
struct Logs {
    directory: PathBuf,
    /// What the jobs call their logs; a prefix's place is the name of its files here.
    prefixes: Vec<String>,
    /// The plans of all jobs as they were.
    originals: Vec<LogPlan>,
}

/// What the jobs said of their logs stands in the record again.
fn put_back(record: &mut RunRecord, originals: &[LogPlan]) {
    for (job, original) in record.plan.jobs.iter_mut().zip(originals) {
        job.output.logs = original.clone();
    }
}

impl Logs {
    /// Lets the jobs of a plan write here; `None` if they have no logs.
    fn divert(plan: &mut Plan) -> std::io::Result<Option<Self>> {
        if plan.jobs.iter().all(|job| job.output.logs.is_empty()) {
            return Ok(None);
        }
        let directory = (0..100)
            .find_map(|number| {
                let name = format!("trueio-session-{}-{number}", std::process::id());
                let path = std::env::temp_dir().join(name);
                match DirBuilder::new().mode(0o700).create(&path) {
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
                    made => Some(made.map(|()| path)),
                }
            })
            .unwrap_or_else(|| Err(std::io::Error::from(std::io::ErrorKind::AlreadyExists)))?;
        let mut logs = Self { directory, prefixes: Vec::new(), originals: Vec::new() };
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
        Ok(Some(logs))
    }

    /// Sends what is written until all is; the flag says so.
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

impl Drop for Logs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// What stands in a log from an offset on, as much as is sent at once; `None`: nothing.
fn more(path: &Path, offset: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut bytes).ok()?;
    // Logs are digits, commas and spaces.
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_begin_in_time_or_goes_away_keeps_no_place() {
        let (begin, began) = channel();
        let now = Duration::ZERO;
        assert_eq!(wait_for_start(&began, || false, now), Err(NotBegun::Late));
        assert_eq!(wait_for_start(&began, || true, Duration::from_secs(3600)), Err(NotBegun::Ended));
        begin.send(()).expect("somebody waits");
        assert_eq!(wait_for_start(&began, || false, Duration::from_secs(3600)), Ok(()));
        drop(begin);
        assert_eq!(wait_for_start(&began, || false, Duration::from_secs(3600)), Err(NotBegun::Gone));
    }
}
