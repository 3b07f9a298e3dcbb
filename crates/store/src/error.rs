//! What can be wrong with a history, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Why the history could not be read or written. Nothing was deleted or replaced.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Neither `XDG_DATA_HOME` nor a home directory is known.
    #[error("no place for the history is known: neither XDG_DATA_HOME nor HOME is set to an absolute path")]
    NoHome,
    /// The directory cannot be made.
    #[error("the history's directory `{}` cannot be made", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another user could exchange its files.
    #[error(
        "the history in `{}` is not used, because another user could exchange its files; set XDG_DATA_HOME to a directory of \
         this user (`sudo -H` sets root's HOME)",
        path.display()
    )]
    NotOwn {
        /// The directory, or a file in it.
        path: PathBuf,
        /// The part of its path that is another user's.
        #[source]
        source: trueio_files::PathError,
    },
    /// Another process holds it.
    #[error(
        "the history `{}` is locked by another process; wait for it, or end it, and try again",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: rusqlite::Error,
    },
    /// It is no database, or a damaged one.
    #[error(
        "the history `{0}` is damaged or is not a database; move it aside (`mv {0} {0}.damaged`) to begin a new \
         one; `sqlite3 {0}.damaged .recover` may save its records",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: rusqlite::Error,
    },
    /// It is a database of another program.
    #[error("`{}` is a database of another program; it is left as it is", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer trueio made it.
    #[error(
        "the history `{}` has version {found}; this program supports up to version {known}: use the newer trueio, or \
         move the file aside to begin a new one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the database (`PRAGMA user_version`).
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// There is no room for it.
    #[error("there is no room left for the history `{}`", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: rusqlite::Error,
    },
    /// It cannot be opened, read or written.
    #[error("the history `{}` cannot be opened, read or written", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: rusqlite::Error,
    },
    /// The record cannot be written as JSON.
    #[error("record {id} cannot be written as JSON")]
    Record {
        /// The record's id.
        id: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A record of this id is there already.
    #[error("the history already holds record {id}")]
    AlreadyThere {
        /// The record's id.
        id: String,
    },
    /// It cannot be written: read-only, or another user's.
    #[error("the history `{}` may not be written here", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        #[source]
        source: rusqlite::Error,
    },
    /// It cannot be a tag.
    #[error("`{tag}` cannot be a tag: a tag has 1 to 64 characters and no blanks, commas or control characters")]
    Tag {
        /// The request.
        tag: String,
    },
    /// No run's id begins so.
    #[error("no run in the history `{}` has an id that begins with `{id}`", path.display())]
    NotFound {
        /// The request.
        id: String,
        /// The file.
        path: PathBuf,
    },
    /// Several runs' ids begin so.
    #[error("`{id}` is the beginning of several ids: {}", several(candidates))]
    Ambiguous {
        /// The request.
        id: String,
        /// Some of those that begin so.
        candidates: Vec<String>,
    },
}

/// At most five ids, shortened as the list shows them.
fn several(candidates: &[String]) -> String {
    let mut text: Vec<&str> = candidates.iter().take(5).map(|id| id.get(..12).unwrap_or(id)).collect();
    if candidates.len() > text.len() {
        text.push("…");
    }
    text.join(", ")
}

impl StoreError {
    /// Classifies an error of SQLite by its remedy.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked { path, source },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged { path, source },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly { path, source },
            Some(ErrorCode::DiskFull) => StoreError::Full { path, source },
            _ => StoreError::Unusable { path, source },
        }
    }
}
