//! The logs that servers send: where each is written, how much of a filesystem they may take, and whether another program changed one.

use super::Server;
use crate::wire::{Address, LogPart};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use trueio_job::{Content, FileUse, Role};
use trueio_model::{FileId, error_chain};
use trueio_report::{clean, clean_lines};
use trueio_run::planning::{PlanningError, check_files};
use trueio_run::{Before, GrowingFile, OutputFile};

/// Largest number of logs of one server: six for each of its jobs.
pub(super) const LOGS_MAX: usize = 6 * 4096;
/// Part of the free space of a filesystem that the logs of all servers together may take there.
const LOGS_PART: u64 = 2;
/// Logs that are kept open. A process may open 1024 files, or more.
const OPEN_LOGS_MAX: usize = 512;

/// Logs received from servers.
pub(super) struct LogFiles {
    /// Other files that this command reads and writes.
    used: Vec<FileUse>,
    server_count: usize,
    /// What the logs of one server may take on each filesystem, in bytes, by its device.
    shares: BTreeMap<u64, u64>,
    /// What the logs of each server, by the suffix of their names, have taken there.
    taken: BTreeMap<(String, u64), u64>,
    /// The logs that were created.
    begun: BTreeMap<PathBuf, BegunLog>,
}

/// A log that was created.
struct BegunLog {
    server: Address,
    /// The filesystem of its directory.
    device: u64,
    file: LogFile,
}

/// The file of a log.
enum LogFile {
    /// Kept open: if its name is taken, the content is not lost.
    Open(GrowingFile),
    /// Opened for each part, because a process may not open as many.
    Closed {
        /// Device and inode.
        identity: FileId,
        /// Its length after the last part.
        length_bytes: u64,
    },
}

impl LogFiles {
    pub(super) fn new(used: Vec<FileUse>, server_count: usize) -> Self {
        let (shares, taken, begun) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { used, server_count: server_count.max(1), shares, taken, begun }
    }

    /// Returns the path of a server's log.
    fn path(&self, server: &Server, name: &str) -> PathBuf {
        PathBuf::from(format!("{name}.{}", server.log_name))
    }

    /// Refuses results and logs that would replace a file that this command reads, or each other. Called before any
    /// server is contacted.
    pub(super) fn check(&self, servers: &[Server]) -> Result<(), PlanningError> {
        let logs = servers.iter().flat_map(|server| {
            let use_of = |name: &String| {
                FileUse::new(self.path(server, name).to_string_lossy(), log_of(server), Role::Output(Content::Log))
            };
            server.logs.iter().flatten().map(use_of)
        });
        check_files(&self.used.iter().cloned().chain(logs).collect::<Vec<_>>())
    }

    /// Appends to `PREFIX_KIND.N.log.HOST`. The server sends only the name of the log, which must be a possible name of
    /// its jobs' logs; if the job files are on the server, it must be a plain name in the directory for logs.
    pub(super) fn add(&mut self, server: &Server, part: &LogPart) -> Result<(), String> {
        let name = format!("{}{}", part.prefix, part.suffix);
        let is_plain = !part.prefix.starts_with('.') && !part.prefix.contains(['/', '\0']) && is_log(&part.suffix);
        let is_expected = server.logs.as_ref().map_or(is_plain, |names| names.contains(&name));
        if !is_expected {
            let name = clean(&name);
            return Err(format!("{} sent a log that no job asked for: `{name}`", server.address));
        }
        let path = self.path(server, &name);
        if !self.begun.contains_key(&path) {
            let log = self.begin(server, &path)?;
            self.begun.insert(path.clone(), log);
        }
        let Some(log) = self.begun.get_mut(&path) else { return Ok(()) };
        let taken = self.taken.entry((server.log_name.clone(), log.device)).or_default();
        *taken = taken.saturating_add(part.text.len() as u64);
        let share = self.shares.get(&log.device).copied().unwrap_or(0);
        if *taken > share {
            return Err(format!(
                "the logs of {} were cut: they are longer than its share of half of the free space of the filesystem of `{}` \
                 ({share} bytes)\n\nhint: `log_avg_msec` makes them shorter",
                server.address,
                path.display()
            ));
        }
        // A log is read in a terminal, too.
        let text = clean_lines(&part.text);
        let bytes = text.as_bytes();
        match &mut log.file {
            LogFile::Open(file) => file.write_all(bytes).map_err(|error| unwritten(&path, &error)),
            LogFile::Closed { identity, length_bytes } => {
                let written = reopen(&path, *identity, *length_bytes)?.write_all(bytes);
                *length_bytes += bytes.len() as u64;
                written.map_err(|error| unwritten(&path, &error))
            }
        }
    }

    /// Creates a log.
    fn begin(&mut self, server: &Server, path: &Path) -> Result<BegunLog, String> {
        if self.begun.values().filter(|begun| begun.server == server.address).count() >= LOGS_MAX {
            return Err(format!("{} sent more than {LOGS_MAX} logs", server.address));
        }
        let failed = |error: std::io::Error| unwritten(path, &error);
        let mut files = self.used.clone();
        files.push(FileUse::new(path.to_string_lossy(), log_of(server), Role::Output(Content::Log)));
        check_files(&files).map_err(PlanningError::into_text)?;
        let file = OutputFile::open(path, Content::Log, Before::Unknown).map_err(failed)?;
        let identity = file.identity().map_err(failed)?;
        // Unknown: the kernel limits it.
        let free_bytes = |file: &File| {
            rustix::fs::fstatvfs(file).map_or(u64::MAX, |found| found.f_bavail.saturating_mul(found.f_frsize))
        };
        let file = file.emptied(Content::Log).map_err(failed)?;
        let servers = self.server_count as u64;
        self.shares.entry(identity.device).or_insert_with(|| free_bytes(&file) / LOGS_PART / servers);
        let file = match self.begun.len() < OPEN_LOGS_MAX {
            true => LogFile::Open(GrowingFile::new(file, path).map_err(failed)?),
            false => LogFile::Closed { identity, length_bytes: 0 },
        };
        Ok(BegunLog { server: server.address.clone(), device: identity.device, file })
    }

    /// Checks at the end that all logs hold what was written to them and no more. Returns a sentence about each other one.
    pub(super) fn confirm(&mut self) -> Vec<String> {
        let check = |(path, log): (&PathBuf, &mut BegunLog)| match &mut log.file {
            LogFile::Open(file) => file.confirm().map_err(|error| unwritten(path, &error)).err(),
            LogFile::Closed { identity, length_bytes } => reopen(path, *identity, *length_bytes).err(),
        };
        self.begun.iter_mut().filter_map(check).collect()
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> String {
    error_chain(&format!("the log `{}` could not be written", path.display()), Some(error))
}

/// Opens a log that was not kept open, to append to it. It must be the same file, with what was written to it and no more.
fn reopen(path: &Path, identity: FileId, length_bytes: u64) -> Result<File, String> {
    let name = path.display();
    let failed = |error: std::io::Error| unwritten(path, &error);
    let taken = || format!("the log `{name}` was removed or replaced by another program while it was written");
    if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Err(taken());
    }
    let file = OutputFile::open(path, Content::Log, Before::Unknown).map_err(failed)?;
    if file.identity().map_err(failed)? != identity {
        return Err(taken());
    }
    let file = file.appended();
    let found_bytes = file.metadata().map_err(failed)?.len();
    if found_bytes != length_bytes {
        return Err(format!(
            "another program wrote to the log `{name}` or truncated it while it was written: it has {found_bytes} bytes, and \
             {length_bytes} were written; what is left of both is in it"
        ));
    }
    Ok(file)
}

/// Returns the name of a server's logs for messages.
fn log_of(server: &Server) -> String {
    format!("a log of {}", server.address)
}

/// Whether a name ends like a log's: `_bw.1.log`, `_clat_hist.log`.
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
