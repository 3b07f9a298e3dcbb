//! A file, directory or device that the server's command line permits its clients to use, as a descriptor.
//!
//! The server opens it when it starts, and its sessions inherit the descriptor. So another user who replaces the directory, or one above
//! it, by a link does not lead a later session elsewhere: no session resolves the path of the command line again.
//!
//! Source: openat2(2), open(2) `O_PATH`, proc_pid_fd(5).

use super::process::{ALLOW_READ, ALLOW_WRITE};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a path of the server's command line cannot be permitted.
#[derive(Debug, thiserror::Error)]
pub(super) enum PermitError {
    #[error("`{option}{path}` leads through a symbolic link, which another user may replace{}", named(.leads_to))]
    Link { option: &'static str, path: String, leads_to: Option<PathBuf> },
    #[error("`{option}{path}` does not exist\n\nhint: create it first; the server opens it when it starts")]
    Missing { option: &'static str, path: String },
    #[error("`{option}{path}` cannot be opened: {source}")]
    Open { option: &'static str, path: String, source: io::Error },
}

fn named(leads_to: &Option<PathBuf>) -> String {
    leads_to.as_ref().map_or_else(String::new, |path| format!("\n\nhint: name where it leads: `{}`", path.display()))
}

/// A permitted file, directory or device.
#[derive(Debug)]
pub(super) struct Permit {
    /// Open with `O_PATH`.
    descriptor: File,
    /// The path when the server started, for messages.
    named: PathBuf,
    is_directory: bool,
}

impl Permit {
    /// Opens a path of the command line. No link is followed, in any of its components.
    ///
    /// # Errors
    /// It does not exist, is a link, or cannot be opened.
    pub(super) fn open(option: &'static str, path: &str) -> Result<Self, PermitError> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let descriptor = match openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(descriptor) => File::from(descriptor),
            Err(error) => {
                let path = path.to_owned();
                return Err(match error {
                    Errno::LOOP => {
                        let leads_to = std::fs::canonicalize(&path).ok();
                        PermitError::Link { option, path, leads_to }
                    }
                    Errno::NOENT => PermitError::Missing { option, path },
                    error => PermitError::Open { option, path, source: error.into() },
                });
            }
        };
        let failed = |source| PermitError::Open { option, path: path.to_owned(), source };
        let named = current_path(&descriptor).map_err(failed)?;
        let is_directory = descriptor.metadata().map_err(failed)?.is_dir();
        Ok(Self { descriptor, named, is_directory })
    }

    /// Lets the processes that this one starts inherit the descriptor, and returns the word of their command lines that names it.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn bequeathed(&self, option: &str) -> io::Result<String> {
        fcntl_setfd(&self.descriptor, FdFlags::empty())?;
        Ok(format!("{option}{}:{}", self.descriptor.as_raw_fd(), self.named.display()))
    }

    /// Takes the inherited descriptor that a word without its option names. Programs that this process starts do not inherit it.
    pub(super) fn inherited(word: &str) -> Option<Self> {
        let (number, named) = word.split_once(':')?;
        let number = number.parse().ok().filter(|number| *number > 2)?;
        // SAFETY: a plain call, which fails if the number is not that of a descriptor.
        if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
            return None;
        }
        // SAFETY: the server that started this process left the descriptor to it. Nothing else here has it: the session reads its
        // words once, before it opens a file.
        let descriptor = File::from(unsafe { OwnedFd::from_raw_fd(number) });
        let is_directory = descriptor.metadata().ok()?.is_dir();
        Some(Self { descriptor, named: PathBuf::from(named), is_directory })
    }

    pub(super) fn descriptor(&self) -> &File {
        &self.descriptor
    }

    /// The path when the server started.
    pub(super) fn named(&self) -> &Path {
        &self.named
    }

    /// The path now; the one when the server started, if it cannot be read.
    pub(super) fn path(&self) -> PathBuf {
        current_path(&self.descriptor).unwrap_or_else(|_| self.named.clone())
    }

    /// Returns the path, and where it is now if it was moved, for a message.
    pub(super) fn in_words(&self) -> String {
        let named = format!("`{}`", self.named.display());
        match self.path() {
            now if now != self.named => format!("{named} (which was moved, and is `{}` now)", now.display()),
            _ => named,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Whether it is the root directory.
    pub(super) fn is_root(&self) -> bool {
        let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
        let root = std::fs::metadata("/").map(identity);
        root.is_ok_and(|root| self.descriptor.metadata().map(identity).is_ok_and(|own| own == root))
    }

    /// Opens an existing path without links, with `O_PATH`, if it is the permitted file, or below the permitted directory.
    pub(super) fn find(&self, path: &Path) -> Option<File> {
        let below = path.strip_prefix(current_path(&self.descriptor).ok()?).ok()?;
        let found = if below.as_os_str().is_empty() {
            self.descriptor.try_clone().ok()?
        } else {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
            // With `O_NOFOLLOW` the kernel returns a link as the last component instead of refusing it.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            openat2(&self.descriptor, below, flags, Mode::empty(), resolve).ok()?.into()
        };
        // The path may lead elsewhere by now, although it begins in the same way.
        let there = std::fs::symlink_metadata(path).ok()?;
        let own = found.metadata().ok()?;
        ((own.dev(), own.ino()) == (there.dev(), there.ino())).then_some(found)
    }
}

/// Returns the present path of a descriptor.
fn current_path(descriptor: &File) -> io::Result<PathBuf> {
    std::fs::read_link(trueio_device::path_of_descriptor(descriptor))
}

/// Opens the paths of the command line.
///
/// # Errors
/// The first that cannot be permitted.
pub(super) fn open_all(readable: &[String], writable: &[String]) -> Result<(Vec<Permit>, Vec<Permit>), PermitError> {
    let all = |option: &'static str, paths: &[String]| {
        paths.iter().map(|path| Permit::open(option, path)).collect::<Result<Vec<_>, _>>()
    };
    Ok((all(ALLOW_READ, readable)?, all(ALLOW_WRITE, writable)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn text(path: &Path) -> &str {
        path.to_str().expect("UTF-8")
    }

    #[test]
    fn links_in_any_component_and_missing_paths_are_refused_at_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let at = |name: &str| root.join(name);
        fs::create_dir(at("real")).expect("a directory");
        fs::create_dir(at("real/inner")).expect("a directory");
        symlink("real", at("link")).expect("a link");
        let open = |name: &str| Permit::open(ALLOW_WRITE, text(&at(name)));
        assert!(open("real/inner").is_ok_and(|permit| permit.is_directory()));
        let error = open("link").expect_err("a link").to_string();
        assert!(error.contains(text(&at("real"))), "{error}");
        assert!(matches!(open("link/inner"), Err(PermitError::Link { .. })));
        assert!(matches!(open("none"), Err(PermitError::Missing { .. })));
        assert!(matches!(Permit::open(ALLOW_READ, "/proc/self/fd/0"), Err(PermitError::Link { .. })));
    }

    /// Goal: the descriptor decides, not the name.
    /// Method: the directory is moved, and another one and then a link take its name.
    #[test]
    fn a_permit_is_the_directory_that_was_opened_whatever_its_name_leads_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let at = |name: &str| root.join(name);
        fs::create_dir(at("scratch")).expect("a directory");
        fs::write(at("scratch/own"), "").expect("a file");
        let permit = Permit::open(ALLOW_WRITE, text(&at("scratch"))).expect("a directory");
        assert!(permit.find(&at("scratch")).is_some() && permit.find(&at("scratch/own")).is_some());
        assert!(permit.find(&root).is_none());
        fs::rename(at("scratch"), at("moved")).expect("moved");
        fs::create_dir(at("scratch")).expect("a directory");
        fs::write(at("scratch/own"), "").expect("a file");
        assert!(permit.find(&at("scratch/own")).is_none(), "another directory");
        assert!(permit.find(&at("moved/own")).is_some(), "the same directory under its new name");
        fs::write(at("secret"), "").expect("a file");
        symlink(at("secret"), at("moved/link")).expect("a link");
        assert!(permit.find(&at("moved/link")).is_none() && permit.find(&at("secret")).is_none());
    }
}
