//! Confines a session, by the kernel (Landlock), to the directories that the server's command line names.
//!
//! The rules are made from the descriptors that the server opened when it started ([`Permit`]). Path checks refuse a client's job with a
//! message, while planning. The kernel's check needs no name: a link that is planted after planning leads nowhere, and neither an option
//! that is forgotten here nor an error in a path check reads or writes a file outside. It holds for the rest of the process, for its
//! threads and for the programs that it starts.
//!
//! A session may read and write where `--allow-read` and `--allow-write` permit it, and nowhere else: the working directory of
//! the server is no default. Relative names of jobs begin at the first directory that is named. For its evidence a session may read `/proc`, `/sys` and a few files that every program reads; path checks refuse these to jobs. With
//! `--allow-exec` it may read everything, because programs need their libraries and files; what it may write stays the same.
//!
//! Limits: a kernel before 6.2 does not confine truncate(2), and one before 6.10 no ioctl(2) on devices. Below the
//! directories that are named, a client's jobs may do what the server's user may do.
//!
//! Source: Linux `Documentation/userspace-api/landlock.rst`.

use super::permit::{Permit, PermitError, open_all};
use super::process::{ALLOW_READ, ALLOW_WRITE, NO_SANDBOX};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, path_beneath_rules,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

/// What the program itself reads: facts of the machine, counters, its own descriptors, shared libraries.
const OWN_READS: [&str; 10] = [
    "/proc",
    "/sys",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/etc/os-release",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
];
/// Devices without content.
const OWN_DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/urandom"];
/// Where evidence makes its instances of the kernel's tracing, as root.
const TRACING: [&str; 2] = ["/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"];

/// What a session's jobs may use.
#[derive(Debug)]
pub(super) struct Sandbox {
    readable: Vec<Permit>,
    /// Readable, too.
    writable: Vec<Permit>,
    is_readonly: bool,
    may_exec: bool,
    /// False with `--no-sandbox`: only the path checks hold.
    is_enforced: bool,
}

impl Sandbox {
    /// Opens the paths of the server's command line. Relative paths begin at the working directory of this process.
    ///
    /// # Errors
    /// The first path that cannot be permitted.
    pub(super) fn open(readable: &[String], writable: &[String], permits: &[String]) -> Result<Self, PermitError> {
        Ok(Self::of(open_all(readable, writable)?, permits))
    }

    /// Takes the descriptors that a session inherited, and reads the other permissions of its command line.
    ///
    /// # Errors
    /// A descriptor that was not inherited.
    pub(super) fn inherited(permits: &[String]) -> io::Result<Self> {
        let all = |prefix: &'static str| {
            let words = permits.iter().filter_map(move |word| word.strip_prefix(prefix));
            let missing = || io::Error::other("a descriptor of its permissions was not inherited");
            words.map(|word| Permit::inherited(word).ok_or_else(missing)).collect::<io::Result<Vec<_>>>()
        };
        Ok(Self::of((all(ALLOW_READ)?, all(ALLOW_WRITE)?), permits))
    }

    fn of((readable, writable): (Vec<Permit>, Vec<Permit>), permits: &[String]) -> Self {
        let has = |flag: &str| permits.iter().any(|word| word == flag);
        let (may_exec, is_enforced) = (has("--allow-exec"), !has(NO_SANDBOX));
        Self { readable, writable, is_readonly: has("--readonly"), may_exec, is_enforced }
    }

    /// Lets sessions inherit the descriptors, and returns the words of their command lines that name them.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn bequeathed(&self) -> io::Result<Vec<String>> {
        let readable = self.readable.iter().map(|permit| permit.bequeathed(ALLOW_READ));
        readable.chain(self.writable.iter().map(|permit| permit.bequeathed(ALLOW_WRITE))).collect()
    }

    /// Makes the first directory that jobs may write, else the first that they may read, the working directory, where their relative
    /// names begin.
    ///
    /// # Errors
    /// The kernel's error, and the directory.
    pub(super) fn enter_home(&self) -> Result<(), String> {
        let Some(home) = self.first_directory() else { return Ok(()) };
        rustix::process::fchdir(home.descriptor())
            .map_err(|error| format!("the server cannot use its directory `{}`: {error}", home.named().display()))
    }

    fn first_directory(&self) -> Option<&Permit> {
        self.writable.iter().chain(&self.readable).find(|permit| permit.is_directory())
    }

    /// Returns the path of the directory in which relative names begin.
    pub(super) fn home(&self) -> Option<PathBuf> {
        self.first_directory().map(Permit::path)
    }

    /// Returns the paths of what jobs may use: those when the server started, and those now.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let all = self.writable.iter().chain(&self.readable);
        all.flat_map(|permit| [permit.named().to_owned(), permit.path()]).collect()
    }

    /// Returns why a server cannot confine its sessions to these paths.
    pub(super) fn objection(&self) -> Option<String> {
        if self.readable.iter().chain(&self.writable).any(Permit::is_root) {
            return Some(
                "its clients could use every file below `/`\n\nhint: name a directory of its own with `--allow-read=PATH` or \
                 `--allow-write=PATH`"
                    .to_owned(),
            );
        }
        if self.is_enforced && !has_landlock() {
            return Some(
                "this kernel has no Landlock (Linux 5.13), with which it would confine its clients' jobs to their directories\n\n\
                 hint: with `--no-sandbox` only the names of files are checked; run it then as a separate user"
                    .to_owned(),
            );
        }
        None
    }

    /// Returns a note for a server whose clients may use no file: only jobs without files (`ioengine=null`, `cpuio`) run.
    pub(super) fn note(&self) -> Option<&'static str> {
        let has_files = !self.readable.is_empty() || !self.writable.is_empty();
        (!has_files).then_some(
            "the command line names no file that clients' jobs may use; jobs without files (`ioengine=null`) run. Name a \
             directory or a device with `--allow-read=PATH` or `--allow-write=PATH`; `--allow-write=.` is the working directory",
        )
    }

    /// Whether jobs may write to a path, and create it. Links are resolved.
    pub(super) fn may_write(&self, path: &Path) -> bool {
        !self.is_readonly && find(path, &self.writable).is_some()
    }

    /// Whether jobs may read a path.
    pub(super) fn may_read(&self, path: &Path) -> bool {
        self.find_readable(path).is_some()
    }

    /// Opens with `O_PATH` what a path leads to now, or its nearest existing directory, if jobs may read it.
    pub(super) fn find_readable(&self, path: &Path) -> Option<File> {
        find(path, &self.readable).or_else(|| find(path, &self.writable))
    }

    /// Returns where jobs may write, as a part of a sentence.
    pub(super) fn written(&self) -> String {
        only_below(self.writable.iter().filter(|_| !self.is_readonly))
    }

    /// Returns where jobs may read, as a part of a sentence.
    pub(super) fn read(&self) -> String {
        only_below(self.writable.iter().chain(&self.readable))
    }

    /// Adds to a refusal that the sandbox may be its reason: a confined session may not read a file's content, either.
    pub(super) fn explained(&self, refusal: String) -> String {
        if !self.is_enforced || !refusal.contains("Permission denied") {
            return refusal;
        }
        format!(
            "{}\nhint: this server's clients may read {}; for other files, start it with `--allow-read=PATH` or \
             `--allow-write=PATH`",
            refusal.trim_end(),
            self.read()
        )
    }

    /// Whether the sandbox would hide from the plan which processes have a device open: it shows no descriptors of other
    /// processes.
    pub(super) fn hides_openers(&self) -> bool {
        let is_device =
            |permit: &Permit| permit.descriptor().metadata().is_ok_and(|found| found.file_type().is_block_device());
        !self.is_readonly && self.writable.iter().any(|permit| is_device(permit) || permit.named().starts_with("/dev"))
    }

    /// Confines this thread, and all threads and processes that it will start. `private` is the session's own directory, which it
    /// will remove.
    ///
    /// # Errors
    /// The kernel did not confine it.
    pub(super) fn enforce(&self, private: &Path) -> Result<(), String> {
        if !self.is_enforced {
            return Ok(());
        }
        match self.restrict(private) {
            Ok(RulesetStatus::NotEnforced) => Err("the server's kernel does not confine this session".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("the server's kernel does not confine this session: {error}")),
        }
    }

    fn restrict(&self, private: &Path) -> Result<RulesetStatus, RulesetError> {
        let handled = handled();
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let write = handled & !(AccessFs::MakeChar | AccessFs::MakeBlock);
        let written = if self.is_readonly { read | AccessFs::IoctlDev } else { write };
        let beside: &[&str] = if self.may_exec { &["/"] } else { &[] };
        let status = Ruleset::default()
            .handle_access(handled)?
            .create()?
            .add_rules(path_beneath_rules(OWN_READS, read))?
            .add_rules(path_beneath_rules(beside, read))?
            .add_rules(path_beneath_rules(["/dev"], BitFlags::from(AccessFs::ReadDir)))?
            .add_rules(path_beneath_rules(OWN_DEVICES, read | AccessFs::WriteFile))?
            .add_rules(path_beneath_rules(TRACING, write))?
            .add_rules(path_beneath_rules(private.parent(), BitFlags::from(AccessFs::RemoveDir)))?
            .add_rules(path_beneath_rules([private], write))?
            .add_rules(self.readable.iter().map(|permit| rule(permit, read | AccessFs::IoctlDev)))?
            .add_rules(self.writable.iter().map(|permit| rule(permit, written)))?
            .restrict_self()?;
        Ok(status.ruleset)
    }
}

/// What is forbidden unless it is permitted: everything but starting programs, which needs `--allow-exec`.
fn handled() -> BitFlags<AccessFs> {
    AccessFs::from_all(ABI::V5) & !BitFlags::from(AccessFs::Execute)
}

/// Whether the kernel has Landlock.
fn has_landlock() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// Returns the rule of a descriptor. Rights of directories mean nothing for files and devices.
fn rule(permit: &Permit, access: BitFlags<AccessFs>) -> Result<PathBeneath<&File>, RulesetError> {
    let access = if permit.is_directory() { access } else { access & AccessFs::from_file(ABI::V5) };
    Ok(PathBeneath::new(permit.descriptor(), access))
}

/// Returns `only below` and the paths, or `nothing`.
fn only_below<'a>(permits: impl Iterator<Item = &'a Permit>) -> String {
    let named: Vec<String> = permits.map(Permit::in_words).collect();
    if named.is_empty() { "nothing".to_owned() } else { format!("only below {}", named.join(", ")) }
}

/// Opens with `O_PATH` what a path leads to now, or its nearest existing directory, if it is permitted.
fn find(path: &Path, permits: &[Permit]) -> Option<File> {
    let (existing, is_whole) = true_path(path)?;
    permits.iter().filter(|permit| is_whole || permit.is_directory()).find_map(|permit| permit.find(&existing))
}

/// Resolves the links of a path; of a path that does not exist, those of its nearest existing ancestor. Returns whether it is the whole
/// path. `None` for a dangling link, for a rest with `..`, and for a path through a descriptor (`/proc/self/fd/3`).
fn true_path(path: &Path) -> Option<(PathBuf, bool)> {
    for ancestor in path.ancestors() {
        let there = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        match there.canonicalize() {
            Ok(found) => {
                let resolve = ResolveFlags::NO_MAGICLINKS;
                openat2(CWD, there, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).ok()?;
                let rest = path.strip_prefix(ancestor).expect("an ancestor is the beginning");
                let is_plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
                return is_plain.then_some((found, rest.as_os_str().is_empty()));
            }
            // A dangling link.
            Err(_) if there.symlink_metadata().is_ok() => return None,
            Err(_) => {}
        }
    }
    None
}
