//! The journal of a study: its samples so far, so that an interrupted study can be resumed.
//!
//! A text file: a line that identifies the study, then a line per sample with its whole phase record. A last line
//! that was cut off by a crash is left out; anything else that cannot be read is an error, because going on from a
//! damaged file would mix two experiments.
//!
//! The writer holds a lock on it (flock(2)), so that two processes that resume the same attempt do not mix their
//! samples. The lock ends with the process, however that ends.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use trueio_model::{FilePlan, PhaseRecord, TargetFacts};

/// The first line: the properties that must be equal to resume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Always `trueio-study-journal`.
    pub format: String,
    /// The version of the writer; only the same one goes on.
    pub version: u32,
    /// The study.
    pub study: String,
    /// The whole definition, as a hash.
    pub definition: String,
    /// The target as it was named.
    pub target: String,
    /// The modes.
    pub modes: Vec<String>,
    /// Whether sizes were made smaller.
    pub is_quick: bool,
    /// Options that the user added.
    pub extra: Vec<(String, String)>,
    /// Values of axes to which the user kept it: (axis, value).
    #[serde(default)]
    pub only: Vec<(String, String)>,
    /// Samples per row, if the user set it.
    pub samples: Option<u32>,
    /// The seed of orders and offsets.
    pub seed: u64,
}

impl Head {
    /// Returns the first property that must be equal to resume, but differs. The seed is taken over from the journal
    /// that is resumed with.
    pub fn differs(&self, other: &Head) -> Option<&'static str> {
        let differs = [
            ("study", self.study != other.study),
            ("definition of the study", self.definition != other.definition),
            ("target", self.target != other.target),
            ("list of modes", self.modes != other.modes),
            ("size (`--quick`)", self.is_quick != other.is_quick),
            ("list of added options", self.extra != other.extra),
            ("choice of rows (`--only`)", self.only != other.only),
            ("number of samples", self.samples != other.samples),
        ];
        differs.into_iter().find(|(_, differs)| *differs).map(|(what, _)| what)
    }
}

/// The `format` of the first line.
pub const JOURNAL_FORMAT: &str = "trueio-study-journal";

/// A line after the first.
#[derive(Debug, Serialize, Deserialize)]
struct Line<P> {
    mode: String,
    row: String,
    round: u32,
    #[serde(default)]
    conditions: Vec<(String, String)>,
    #[serde(default)]
    files: Vec<FilePlan>,
    #[serde(default)]
    targets: Vec<TargetFacts>,
    phase: P,
}

/// A sample of an earlier attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The phase record.
    pub phase: PhaseRecord,
    /// The conditions, and what was found.
    pub conditions: Vec<(String, String)>,
    /// The files that it used, by the names that they had then.
    pub files: Vec<FilePlan>,
    /// Facts of their disks at that time, for example whether they declare a volatile cache.
    pub targets: Vec<TargetFacts>,
}

/// The samples of an earlier attempt: mode, row, round.
pub type Samples = BTreeMap<(String, String, u32), Kept>;

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file could not be made, read or written.
    #[error("the journal `{}` could not be {verb}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read`, `written`.
        verb: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a journal, or it is damaged.
    #[error("`{}`, line {line}, is not a journal of a study that can be read here: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// Another process is writing it.
    #[error("the journal `{}` is in use: a study that is running now writes it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It is gone: the study that it belonged to was completed meanwhile.
    #[error("the journal `{}` is gone: its study has been completed", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// It belongs to another study, or to another run of it.
    #[error("the journal `{}` is of another run: its {what} differs", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The difference.
        what: &'static str,
    },
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Begins a new one; the file must not exist.
    ///
    /// # Errors
    /// It could not be made.
    pub fn create(path: &Path, head: &Head) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), verb: "written", source };
        let file = File::options().write(true).create_new(true).open(path).map_err(io)?;
        lock(&file, path)?;
        let mut journal = Self { path: path.to_owned(), file };
        journal.line(head)?;
        Ok(journal)
    }

    /// Reads the first line of a journal.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn head(path: &Path) -> Result<Head, JournalError> {
        let file =
            File::open(path).map_err(|source| JournalError::Io { path: path.to_owned(), verb: "read", source })?;
        let mut text = String::new();
        BufReader::new(file).read_line(&mut text).map_err(|source| JournalError::Io {
            path: path.to_owned(),
            verb: "read",
            source,
        })?;
        let damaged = |reason: String| JournalError::Damaged { path: path.to_owned(), line: 1, reason };
        let head: Head = serde_json::from_str(&text).map_err(|e| damaged(trueio_model::error_line(&e)))?;
        if head.format != JOURNAL_FORMAT || head.version != trueio_model::STUDY_VERSION {
            return Err(damaged(format!("`{}` version {}", head.format, head.version)));
        }
        Ok(head)
    }

    /// Resumes a journal: reads its samples, and opens the file after its last whole line.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or belongs to another run.
    pub fn resume(path: &Path, head: &Head) -> Result<(Self, Samples), JournalError> {
        let found = Self::head(path)?;
        if let Some(what) = found.differs(head) {
            return Err(JournalError::Other { path: path.to_owned(), what });
        }
        let io = |verb| move |source| JournalError::Io { path: path.to_owned(), verb, source };
        let mut file = File::options().read(true).write(true).open(path).map_err(io("read"))?;
        lock(&file, path)?;
        let mut reader = BufReader::new(&file);
        let mut samples = Samples::new();
        let (mut text, mut end, mut number) = (String::new(), 0u64, 0);
        loop {
            text.clear();
            let length = reader.read_line(&mut text).map_err(io("read"))?;
            number += 1;
            // Without its line feed a line was not finished.
            if length == 0 || !text.ends_with('\n') {
                break;
            }
            if number > 1 {
                let line: Line<PhaseRecord> = serde_json::from_str(&text).map_err(|e| JournalError::Damaged {
                    path: path.to_owned(),
                    line: number,
                    reason: trueio_model::error_line(&e),
                })?;
                let kept =
                    Kept { phase: line.phase, conditions: line.conditions, files: line.files, targets: line.targets };
                samples.insert((line.mode, line.row, line.round), kept);
            }
            end += length as u64;
        }
        file.set_len(end).map_err(io("written"))?;
        file.seek(std::io::SeekFrom::End(0)).map_err(io("written"))?;
        Ok((Self { path: path.to_owned(), file }, samples))
    }

    /// Returns the newest of these journals that `head` can resume. Unreadable journals are skipped.
    ///
    /// # Errors
    /// Returns the difference from the newest journal of the same study, if possible with the same target; `None` if
    /// there is
    /// no such journal.
    pub fn newest(paths: impl IntoIterator<Item = PathBuf>, head: &Head) -> Result<PathBuf, Option<JournalError>> {
        let mut found: Vec<(Option<SystemTime>, PathBuf, Option<&'static str>)> = paths
            .into_iter()
            .filter_map(|path| {
                let other = Self::head(&path).ok().filter(|other| other.study == head.study)?;
                let changed = std::fs::metadata(&path).and_then(|m| m.modified()).ok();
                Some((changed, path, other.differs(head)))
            })
            .collect();
        found.sort_by_key(|(changed, ..)| std::cmp::Reverse(*changed));
        if let Some(at) = found.iter().position(|(_, _, what)| what.is_none()) {
            return Ok(found.swap_remove(at).1);
        }
        // Differences are reported for an attempt on the same target.
        let at = found.iter().position(|(_, _, what)| *what != Some("target")).unwrap_or(0);
        Err(found.into_iter().nth(at).and_then(|(_, path, what)| Some(JournalError::Other { path, what: what? })))
    }

    /// Adds a sample.
    ///
    /// # Errors
    /// It could not be written.
    pub fn add(&mut self, mode: &str, row: &str, round: u32, kept: &Kept) -> Result<(), JournalError> {
        self.line(&Line {
            mode: mode.to_owned(),
            row: row.to_owned(),
            round,
            conditions: kept.conditions.clone(),
            files: kept.files.clone(),
            targets: kept.targets.clone(),
            phase: &kept.phase,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn line(&mut self, what: &impl Serialize) -> Result<(), JournalError> {
        let io = |source| JournalError::Io { path: self.path.clone(), verb: "written", source };
        let mut text = serde_json::to_string(what).map_err(|e| io(e.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(io)
    }
}

/// Takes the lock of a journal, or reports its holder.
fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => {
            // A filesystem without locks: two at once are then not noticed.
            if source.kind() != std::io::ErrorKind::Unsupported {
                return Err(JournalError::Io { path: path.to_owned(), verb: "locked", source });
            }
        }
    }
    // The file was opened before another run completed and removed it.
    if !path.exists() {
        return Err(JournalError::Gone { path: path.to_owned() });
    }
    Ok(())
}
