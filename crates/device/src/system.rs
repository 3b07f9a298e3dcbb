//! The root of `/proc` and `/sys`: of this machine, or of a directory with a copy from another one.

use crate::identity::{self, PathIdentity};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use trueio_model::Fact;

/// The machine whose facts are read: this one, or a recorded one.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
    /// The paths of a recorded machine; `None` for the running one.
    paths: Option<BTreeMap<PathBuf, PathIdentity>>,
}

impl System {
    /// The running machine.
    pub fn live() -> Self {
        Self { root: PathBuf::from("/"), paths: None }
    }

    /// A copy of a machine's `/proc` and `/sys` under `root`.
    ///
    /// The identities of paths are read from `root/paths`, one line per path, four columns and the path: kind (`file`,
    /// `directory`, `block`, `character`), the filesystem's device number, its own device number (`-` unless it is a
    /// device), its size in bytes. Empty lines and lines that begin with `#` are skipped. Facts that only a running
    /// kernel provides (free space, direct I/O) are unknown on a recorded machine.
    ///
    /// # Errors
    /// `root/paths` cannot be read, or contains an invalid line.
    pub fn recorded(root: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(root)?;
        let text = fs::read_to_string(root.join("paths"))?;
        let paths = identity::parse_recorded(&text)
            .map_err(|line| io::Error::new(io::ErrorKind::InvalidData, format!("invalid line: `{line}`")))?;
        Ok(Self { root, paths: Some(paths) })
    }

    /// Returns whether this is the running machine.
    pub fn is_live(&self) -> bool {
        self.paths.is_none()
    }

    /// Returns where `path` of the machine is on this one.
    pub fn locate(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the identity of a path, as `stat` does.
    pub(crate) fn identify(&self, path: &Path) -> io::Result<PathIdentity> {
        match &self.paths {
            None => identity::live(path),
            Some(paths) => paths.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns the text of a file, without surrounding white space. Bytes that are no UTF-8, as in the name of a mount point, are replaced.
    pub(crate) fn read(&self, path: &str) -> io::Result<String> {
        let bytes = fs::read(self.locate(path))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Returns the path that a file contains: all bytes up to the newline at its end, also blanks.
    pub(crate) fn path_in(&self, path: &str) -> io::Result<PathBuf> {
        let mut bytes = fs::read(self.locate(path))?;
        bytes.pop_if(|last| *last == b'\n');
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }

    /// Returns the bytes of a file: a few files of sysfs are not text.
    pub(crate) fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.locate(path))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.locate(path).exists()
    }

    /// Returns the names in a directory, sorted; empty if it does not exist.
    pub(crate) fn list(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.locate(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Returns the canonical form of a path of the machine.
    pub(crate) fn resolve(&self, path: &str) -> io::Result<String> {
        let real = fs::canonicalize(self.locate(path))?;
        let below = real.strip_prefix(&self.root).unwrap_or(&real);
        Ok(format!("/{}", below.display()))
    }

    /// Parses a file's content as a fact, whose source is the file.
    pub(crate) fn fact<T>(&self, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
        match self.read(path) {
            Ok(text) => match parse(&text) {
                Some(value) => Fact::known(value, path),
                None if text.is_empty() => Fact::unknown(format!("{path} is empty")),
                None => Fact::unknown(format!("{path} contains `{text}`, which cannot be parsed")),
            },
            Err(error) => Fact::unknown(why_not(path, &error)),
        }
    }

    /// Parses a file's content as a number.
    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Fact<T> {
        self.fact(path, |text| text.parse().ok())
    }

    /// Returns a file's content as text; unknown if it is empty.
    pub(crate) fn text(&self, path: &str) -> Fact<String> {
        self.fact(path, |text| (!text.is_empty()).then(|| text.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

/// Returns why a file could not be read, in a sentence.
pub(crate) fn why_not(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{path} does not exist"),
        io::ErrorKind::PermissionDenied => format!("{path} may not be read by this user"),
        _ => format!("{path} could not be read ({error})"),
    }
}
