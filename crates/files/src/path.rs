//! Opens a path and compares the owners of what it leads through.
//!
//! A user who owns a symbolic link, or a directory, decides where a name in it leads. If the program runs as another
//! user, root above all, such a name must not decide where it writes, what it loads and what it executes.
//! Each component is opened relative to the one before, without following it (`O_PATH | O_NOFOLLOW`), and owner and
//! mode are read from that descriptor: an exchange of names between check and use changes nothing.
//!
//! Limits: in a user namespace all users outside of it have one ID (`/proc/sys/kernel/overflowuid`). Directories and
//! links with that owner are accepted there, because `/` has it.
//!
//! Source: path_resolution(7), user_namespaces(7), proc(5) `/proc/PID/fd`.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// As many symbolic links as the kernel follows in one path.
const LINKS_MAX: u32 = 40;
/// The owner of a file outside of the user namespace, unless the kernel has another number.
const OVERFLOW_UID: u32 = 65_534;
/// Write permission of the group and of others.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// In a directory with this bit only owners rename and remove names.
const STICKY: u32 = 0o1000;

/// Why a path is not used.
#[derive(Debug, thiserror::Error)]
#[error("`{}` {problem}", path.display())]
pub struct PathError {
    /// The component, as far as links before it were resolved.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a component of a path.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A symbolic link of another user, who decides where it leads.
    #[error("is a symbolic link of another user (UID {0})")]
    ForeignLink(u32),
    /// A file or directory of another user.
    #[error("belongs to another user (UID {0})")]
    Foreign(u32),
    /// Other users may write to it.
    #[error("can be changed by other users (mode {0:04o})")]
    Writable(u32),
    /// A symbolic link where none is followed.
    #[error("is a symbolic link")]
    Link,
    /// Neither a regular file nor, where one is expected, a directory.
    #[error("is neither a regular file nor missing")]
    NotRegular,
    /// The kernel's error.
    #[error("cannot be opened: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for Problem {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl From<PathError> for io::Error {
    fn from(error: PathError) -> Self {
        match error.problem {
            Problem::Io(error) => error,
            _ => io::Error::new(io::ErrorKind::PermissionDenied, error),
        }
    }
}

/// A path that was opened (`O_PATH`).
#[derive(Debug)]
pub struct Opened {
    /// Refers to the object and gives no access to its content.
    pub descriptor: OwnedFd,
    /// Its type, owner and mode.
    pub stat: Stat,
    /// The last component is a link of `/proc/PID/fd`: the object was passed to a process as a descriptor.
    pub is_descriptor: bool,
}

impl Opened {
    /// Returns the path of the object, without symbolic links.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn path(&self) -> io::Result<PathBuf> {
        std::fs::read_link(self.through_descriptor())
    }

    /// Returns the path that opens this object and no other: `/proc/self/fd/N`.
    pub fn through_descriptor(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()))
    }
}

/// Opens what an output's name refers to, or its directory. Symbolic links are followed only if they belong to root or
/// to the effective user.
///
/// # Errors
/// A link of another user; the kernel's.
pub fn open_for_output(path: &Path) -> Result<Opened, PathError> {
    walk(path, Rule::Output, Missing::IsError)
}

/// Opens a directory of the effective user's own, for files with default names. Missing directories are created with
/// mode 0700.
///
/// # Errors
/// The directory is another user's, or others may write to it; a directory above it or a link belongs to neither root nor
/// the effective user, or is writable by all and not sticky; the kernel's. No directory is created below one that is
/// refused.
pub fn own_directory(path: &Path) -> Result<Opened, PathError> {
    let opened = walk(path, Rule::Own, Missing::IsCreated)?;
    let refused = |problem| PathError { path: path.to_owned(), problem };
    if FileType::from_raw_mode(opened.stat.st_mode) != FileType::Directory {
        return Err(refused(Errno::NOTDIR.into()));
    }
    if opened.stat.st_uid != geteuid().as_raw() {
        return Err(refused(Problem::Foreign(opened.stat.st_uid)));
    }
    if opened.stat.st_mode & WRITABLE_BY_OTHERS != 0 {
        return Err(refused(Problem::Writable(opened.stat.st_mode & 0o7777)));
    }
    Ok(opened)
}

/// Checks a file with a default name, in a directory of [`own_directory`]. Returns false if it is missing.
///
/// # Errors
/// It is a symbolic link, another user's or not a regular file.
pub fn own_file(path: &Path) -> Result<bool, PathError> {
    let refused = |problem| Err(PathError { path: path.to_owned(), problem });
    let found = match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(false),
        Err(error) => return refused(error.into()),
    };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile if found.st_uid == geteuid().as_raw() => Ok(true),
        FileType::RegularFile => refused(Problem::Foreign(found.st_uid)),
        FileType::Symlink => refused(Problem::Link),
        _ => refused(Problem::NotRegular),
    }
}

/// Opens a directory in which no other user can exchange the names of this user's files, as `/tmp` is. Others may create
/// names in it.
///
/// # Errors
/// As [`own_directory`], except that the directory may be root's, and sticky and writable by all.
pub fn shared_directory(path: &Path) -> Result<Opened, PathError> {
    walk(path, Rule::Own, Missing::IsError)
}

/// Returns the path, without symbolic links, of a file or directory that only root can change or exchange: it, all
/// directories above it and all links to it belong to root, and no group or other user may write to them.
///
/// # Errors
/// The first component that another user can change; the kernel's.
pub fn changed_by_root_only(path: &Path) -> Result<PathBuf, PathError> {
    let opened = walk(path, Rule::Root, Missing::IsError)?;
    opened.path().map_err(|error| PathError { path: path.to_owned(), problem: error.into() })
}

/// Which owners and modes are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Links of root and of the effective user; any directory.
    Output,
    /// Links and directories of root and of the effective user. In one that all may write to, names are only safe if
    /// it is sticky.
    Own,
    /// Links, directories and files of root that nobody else may write to.
    Root,
}

impl Rule {
    fn check_link(self, found: &Stat) -> Result<(), Problem> {
        match self.trusts(found.st_uid) {
            true => Ok(()),
            false => Err(Problem::ForeignLink(found.st_uid)),
        }
    }

    fn check(self, found: &Stat) -> Result<(), Problem> {
        let mode = found.st_mode & 0o7777;
        let is_changeable = match self {
            Rule::Output => return Ok(()),
            Rule::Own => mode & 0o002 != 0 && mode & STICKY == 0,
            Rule::Root => mode & WRITABLE_BY_OTHERS != 0,
        };
        if !self.trusts(found.st_uid) {
            return Err(Problem::Foreign(found.st_uid));
        }
        if is_changeable { Err(Problem::Writable(mode)) } else { Ok(()) }
    }

    fn trusts(self, uid: u32) -> bool {
        uid == 0 || self != Rule::Root && uid == geteuid().as_raw() || uid == overflow_uid() && is_in_user_namespace()
    }
}

fn overflow_uid() -> u32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap_or_default();
    text.trim().parse().unwrap_or(OVERFLOW_UID)
}

/// Whether some users have no number here. The first user namespace maps all numbers to themselves.
fn is_in_user_namespace() -> bool {
    let text = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    !text.is_empty() && !text.split_whitespace().eq(["0", "0", "4294967295"])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    IsError,
    IsCreated,
}

/// Opens a path component by component.
fn walk(path: &Path, rule: Rule, missing: Missing) -> Result<Opened, PathError> {
    let mut walk = Walk { rule, missing, link_count: 0, left: Vec::new(), typed: PathBuf::new() };
    let mut at = walk.begin(path)?;
    while let Some(name) = walk.left.pop() {
        at = walk.step(at, &name)?;
    }
    Ok(at)
}

struct Walk {
    rule: Rule,
    missing: Missing,
    link_count: u32,
    /// The components that are left, the last one first.
    left: Vec<OsString>,
    /// The components so far, for errors.
    typed: PathBuf,
}

impl Walk {
    fn failed<E: Into<Problem>>(&self) -> impl Fn(E) -> PathError + use<E> {
        let path = if self.typed.as_os_str().is_empty() { PathBuf::from(".") } else { self.typed.clone() };
        move |problem| PathError { path: path.clone(), problem: problem.into() }
    }

    /// Opens `/` or the working directory, and sets the components that are left.
    fn begin(&mut self, path: &Path) -> Result<Opened, PathError> {
        self.typed = if path.is_absolute() { PathBuf::from("/") } else { PathBuf::new() };
        self.add(path);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let start = if path.is_absolute() { "/" } else { "." };
        let descriptor = rustix::fs::openat(CWD, start, flags, Mode::empty()).map_err(self.failed())?;
        self.accept(descriptor, false)
    }

    fn add(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
        self.left.extend(names);
    }

    /// Opens a name in a directory; a link is replaced by what it leads to.
    fn step(&mut self, at: Opened, name: &OsStr) -> Result<Opened, PathError> {
        self.typed.push(name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&at.descriptor, name, flags, Mode::empty());
        let descriptor = match open() {
            Err(Errno::NOENT) if self.missing == Missing::IsCreated => {
                match rustix::fs::mkdirat(&at.descriptor, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => open(),
                    Err(error) => Err(error),
                }
            }
            opened => opened,
        };
        let descriptor = descriptor.map_err(self.failed())?;
        let found = rustix::fs::fstat(&descriptor).map_err(self.failed())?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
            return self.accept(descriptor, false);
        }
        // The links of `/proc` lead to objects, and their text is only a description.
        let system = rustix::fs::fstatfs(&descriptor).map_err(self.failed())?;
        if system.f_type == libc::PROC_SUPER_MAGIC {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let object = rustix::fs::openat(&at.descriptor, name, flags, Mode::empty()).map_err(self.failed())?;
            let is_last = self.left.is_empty();
            return self.accept(object, is_last);
        }
        self.rule.check_link(&found).map_err(self.failed())?;
        self.link_count += 1;
        if self.link_count > LINKS_MAX {
            return Err(self.failed()(Errno::LOOP));
        }
        let target = rustix::fs::readlinkat(&descriptor, "", Vec::new()).map_err(self.failed())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            return self.begin(&target);
        }
        self.typed.pop();
        self.add(&target);
        Ok(at)
    }

    fn accept(&self, descriptor: OwnedFd, is_descriptor: bool) -> Result<Opened, PathError> {
        let stat = rustix::fs::fstat(&descriptor).map_err(self.failed())?;
        self.rule.check(&stat).map_err(self.failed())?;
        Ok(Opened { descriptor, stat, is_descriptor })
    }
}
