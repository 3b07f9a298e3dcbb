//! Confines a session, by the kernel (Landlock), to the directories that the server's command line names.
//!
//! Path checks refuse a client's job with a message, while planning. The kernel's check needs no name: a link that is
//! planted after planning leads nowhere, and neither an option that is forgotten here nor an error in a path check reads or
//! writes a file outside. It holds for the rest of the process, for its threads and for the programs that it starts.
//!
//! A session may read and write where `--allow-read` and `--allow-write` permit it, and nowhere else: the working directory of
//! the server is no default. Relative names of jobs begin at the first directory that is named. For its evidence a session may read `/proc`, `/sys` and a few files that every program reads; path checks refuse these to jobs. With
//! `--allow-exec` it may read everything, because programs need their libraries and files; what it may write stays the same.
//!
//! Limits: a kernel before 6.2 does not confine truncate(2), and one before 6.10 no ioctl(2) on devices. Below the
//! directories that are named, a client's jobs may do what the server's user may do.
//!
//! Source: Linux `Documentation/userspace-api/landlock.rst`.

use super::process::{ALLOW_READ, ALLOW_WRITE, NO_SANDBOX};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, path_beneath_rules,
};
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

/// The paths that a session's jobs may use.
#[derive(Debug)]
pub(super) struct Sandbox {
    /// The first directory that jobs may write, else the first that they may read: their working directory.
    pub(super) home: Option<PathBuf>,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    may_exec: bool,
    /// False with `--no-sandbox`: only the path checks hold.
    is_enforced: bool,
}

impl Sandbox {
    /// Reads the permissions of the server's command line. Relative paths begin at the working directory of this process.
    pub(super) fn of(permits: &[String]) -> Self {
        let named = |prefix: &'static str| {
            let words = permits.iter().filter_map(move |word| word.strip_prefix(prefix));
            words.filter_map(|path| true_path(Path::new(path)))
        };
        let has = |flag: &str| permits.iter().any(|word| word == flag);
        let (mut readable, mut writable): (Vec<_>, Vec<_>) =
            (named(ALLOW_READ).collect(), named(ALLOW_WRITE).collect());
        let home = writable.iter().chain(&readable).find(|path| path.is_dir()).cloned();
        if has("--readonly") {
            readable.append(&mut writable);
        }
        Self { home, readable, writable, may_exec: has("--allow-exec"), is_enforced: !has(NO_SANDBOX) }
    }

    /// Returns why a server cannot confine its sessions to these paths.
    pub(super) fn objection(&self) -> Option<String> {
        let is_root = |path: &PathBuf| path.parent().is_none();
        if self.readable.iter().chain(&self.writable).any(is_root) {
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
        is_below(path, &self.writable)
    }

    /// Whether jobs may read a path.
    pub(super) fn may_read(&self, path: &Path) -> bool {
        is_below(path, &self.readable) || self.may_write(path)
    }

    /// Returns where jobs may write, as a part of a sentence.
    pub(super) fn written(&self) -> String {
        only_below(self.writable.iter())
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
        let is_device = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
        self.writable.iter().any(|path| is_device(path) || path.starts_with("/dev"))
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
            .add_rules(path_beneath_rules(&self.readable, read | AccessFs::IoctlDev))?
            .add_rules(path_beneath_rules(&self.writable, write))?
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

/// Returns `only below` and the paths, or `nothing`.
fn only_below<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    let named: Vec<String> = paths.map(|path| format!("`{}`", path.display())).collect();
    if named.is_empty() { "nothing".to_owned() } else { format!("only below {}", named.join(", ")) }
}

fn is_below(path: &Path, places: &[PathBuf]) -> bool {
    true_path(path).is_some_and(|path| places.iter().any(|place| path.starts_with(place)))
}

/// Resolves the links of a path. If the path does not exist, resolves its nearest existing ancestor and appends the rest.
/// Returns `None` for a dangling link, and for a rest with `..`.
fn true_path(path: &Path) -> Option<PathBuf> {
    for ancestor in path.ancestors() {
        let there = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        match there.canonicalize() {
            Ok(found) => {
                let rest = path.strip_prefix(ancestor).expect("an ancestor is the beginning");
                let is_plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
                // Joined with nothing, a file would become the name of a directory.
                let is_whole = rest.as_os_str().is_empty();
                return is_plain.then(|| if is_whole { found } else { found.join(rest) });
            }
            // A dangling link.
            Err(_) if there.symlink_metadata().is_ok() => return None,
            Err(_) => {}
        }
    }
    None
}
