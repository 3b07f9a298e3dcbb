//! Where `/proc` and `/sys` are: on this machine, or in a folder that holds a copy of another's.

use crate::identity::{self, PathIdentity};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use trueio_model::Fact;

/// A machine to be asked: this one, or a recorded one.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
    /// Paths of a recorded machine; `None` on the running one, where the kernel is asked.
    paths: Option<BTreeMap<PathBuf, PathIdentity>>,
}

impl System {
    /// The running machine.
    pub fn live() -> Self {
        Self { root: PathBuf::from("/"), paths: None }
    }

    /// A copy of a machine's `/proc` and `/sys` under `root`.
    ///
    /// What `stat` would say of paths is read from `root/paths`, one line a path, four columns and
    /// the path: kind (`file`, `directory`, `block`, `character`), the filesystem's device number,
    /// its own device number (`-` unless it is a device), its size in bytes. Empty lines and lines
    /// that begin with `#` are skipped. What else only a running kernel knows (free space, direct
    /// I/O) is unknown on a recorded machine.
    ///
    /// # Errors
    /// `root/paths` could not be read, or a line of it was not understood.
    pub fn recorded(root: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(root)?;
        let text = fs::read_to_string(root.join("paths"))?;
        let paths = identity::parse_recorded(&text)
            .map_err(|line| io::Error::new(io::ErrorKind::InvalidData, format!("not understood: `{line}`")))?;
        Ok(Self { root, paths: Some(paths) })
    }

    /// True on the running machine.
    pub fn is_live(&self) -> bool {
        self.paths.is_none()
    }

    /// Where `path` of the machine is found on this one.
    pub fn locate(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// What `stat` says of a path.
    pub(crate) fn identify(&self, path: &Path) -> io::Result<PathIdentity> {
        match &self.paths {
            None => identity::live(path),
            Some(paths) => paths.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }

    /// The whole text of a file, without the white space around it.
    pub(crate) fn read(&self, path: &str) -> io::Result<String> {
        fs::read_to_string(self.locate(path)).map(|text| text.trim().to_owned())
    }

    /// The bytes of a file: a few of sysfs are not text.
    pub(crate) fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.locate(path))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.locate(path).exists()
    }

    /// Names in a directory, sorted; empty if there is no such directory.
    pub(crate) fn list(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.locate(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// A path of the machine with every link followed.
    pub(crate) fn resolve(&self, path: &str) -> io::Result<String> {
        let real = fs::canonicalize(self.locate(path))?;
        let below = real.strip_prefix(&self.root).unwrap_or(&real);
        Ok(format!("/{}", below.display()))
    }

    /// A file's content as a fact; the file is its source.
    pub(crate) fn fact<T>(&self, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
        match self.read(path) {
            Ok(text) => match parse(&text) {
                Some(value) => Fact::known(value, path),
                None if text.is_empty() => Fact::unknown(format!("{path} is empty")),
                None => Fact::unknown(format!("{path} holds `{text}`, which is not understood")),
            },
            Err(error) => Fact::unknown(why_not(path, &error)),
        }
    }

    /// A file's content as a number.
    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Fact<T> {
        self.fact(path, |text| text.parse().ok())
    }

    /// A file's content as text; empty text is no answer.
    pub(crate) fn text(&self, path: &str) -> Fact<String> {
        self.fact(path, |text| (!text.is_empty()).then(|| text.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

/// Why a file gave no fact.
pub(crate) fn why_not(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{path} does not exist"),
        io::ErrorKind::PermissionDenied => format!("{path} may not be read by this user"),
        _ => format!("{path} could not be read ({error})"),
    }
}
