//! Where the history lives.
//!
//! Source: XDG Base Directory Specification 0.8: `$XDG_DATA_HOME`, or `$HOME/.local/share` if it is
//! not set, empty or not absolute; directories are made with mode 0700.

use crate::{FILE_NAME, StoreError};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use trueio_files::{PathError, Problem, own_directory, own_file};

/// The directory of this user's history: `$XDG_DATA_HOME/trueio` or `~/.local/share/trueio`. It may not exist yet.
///
/// # Errors
/// [`StoreError::NoHome`] if neither variable holds an absolute path.
pub fn default_directory() -> Result<PathBuf, StoreError> {
    from_variables(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))
}

/// The files of this user's history: the database, and the journals that SQLite keeps next to it while it writes and after a
/// crash. Empty if no directory is known; a file may not exist.
pub fn default_files() -> Vec<PathBuf> {
    let Ok(directory) = default_directory() else { return Vec::new() };
    ["", "-journal", "-wal", "-shm"].map(|ending| directory.join(format!("{FILE_NAME}{ending}"))).into()
}

fn from_variables(data_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, StoreError> {
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(data_home)
        .or_else(|| absolute(home).map(|h| h.join(".local/share")))
        .map(|p| p.join("trueio"))
        .ok_or(StoreError::NoHome)
}

/// Opens a directory of this user's own below the history's, creates it if it is missing, and returns its path without
/// symbolic links.
///
/// # Errors
/// [`StoreError::NotOwn`] if another user could exchange or read its files; [`StoreError::Directory`] if it cannot be made.
pub fn private_directory(directory: &Path) -> Result<PathBuf, StoreError> {
    let made = |source| StoreError::Directory { path: directory.to_owned(), source };
    match own_directory(directory) {
        Ok(opened) => opened.path().map_err(made),
        Err(PathError { problem: Problem::Io(source), .. }) => Err(made(source)),
        Err(source) => Err(StoreError::NotOwn { path: directory.to_owned(), source }),
    }
}

/// Checks a file in such a directory: it is missing, or a regular file of this user.
///
/// # Errors
/// [`StoreError::NotOwn`].
pub fn check_private(path: &Path) -> Result<(), StoreError> {
    own_file(path).map(drop).map_err(|source| StoreError::NotOwn { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_xdg_directory_comes_first_then_home_then_an_error() {
        let found = |data: &str, home: &str| from_variables(Some(data.into()), Some(home.into())).ok();
        assert_eq!(found("/data", "/home/a"), Some("/data/trueio".into()));
        assert_eq!(found("", "/home/a"), Some("/home/a/.local/share/trueio".into()));
        assert_eq!(found("relative", "/home/a"), Some("/home/a/.local/share/trueio".into()));
        assert!(matches!(from_variables(None, None), Err(StoreError::NoHome)));
        assert!(matches!(from_variables(None, Some("".into())), Err(StoreError::NoHome)));
    }
}
