//! What the planner reads of targets and of the machine.

use crate::in_use::InUse;
use crate::paths::plain;
use trueio_model::{EngineKind, IologSummary, ReplaySettings, SourceAddress, TargetFacts, UserPlan};

/// No space left on the device, as in errno(3).
pub(crate) const ENOSPC: i32 = 28;
/// The quota is used up, as in errno(3).
pub(crate) const EDQUOT: i32 = 122;

/// What a path names.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Something that exists.
    Present(Box<TargetFacts>),
    /// Nothing.
    Missing,
    /// Nobody can say; the reason (`Permission denied (os error 13)`).
    Unreadable(String),
}

/// What a job does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// It reads the file.
    Read,
    /// It reads and writes the file.
    Write,
    /// It makes files in the directory.
    MakeFilesIn,
}

impl PathUse {
    /// It in words: may not ….
    pub fn verb(self) -> &'static str {
        match self {
            PathUse::Read => "read",
            PathUse::Write => "write",
            PathUse::MakeFilesIn => "make files in",
        }
    }
}

/// Who knows what a path names. For plans that write no block device, a closure `Fn(&str) -> Target`
/// will do.
pub trait FactsSource {
    /// What `path` names. Asked once for each path of a plan, or for the directory of one that is
    /// missing. A dangling symbolic link is `Unreadable`: creating through it is nobody's wish.
    fn look(&self, path: &str) -> Target;

    /// Who uses the file or block device at `path`, and what is on it. Asked of existing targets
    /// that a job would write and may.
    ///
    /// # Errors
    /// Why it could not be learnt. A block device is then not written.
    fn in_use(&self, path: &str) -> Result<InUse, String> {
        let _ = path;
        Err("nobody looked".to_owned())
    }

    /// The length of the body at an address, in bytes. Asked of a `source` whose job says no `size`.
    ///
    /// # Errors
    /// Why it could not be learnt.
    fn source_length(&self, address: &SourceAddress) -> Result<u64, String> {
        let _ = address;
        Err("nobody asked the server".to_owned())
    }

    /// The machine's nodes of memory with their processors. Asked if a job names any.
    ///
    /// # Errors
    /// Why it could not be learnt.
    fn memory_nodes(&self) -> Result<Vec<(u32, Vec<u32>)>, String> {
        Err("nobody looked".to_owned())
    }

    /// What the replay of a log would do.
    ///
    /// # Errors
    /// Why it could not be learnt, with the line.
    fn iolog(&self, log: &str, settings: &ReplaySettings) -> Result<IologSummary, String> {
        let _ = (log, settings);
        Err("nobody read it".to_owned())
    }

    /// Whom a job acts as that asks for these numbers of a user and a group; `None`: as this process does anyway.
    ///
    /// # Errors
    /// Why this process may not act so.
    fn user(&self, uid: Option<u32>, gid: Option<u32>) -> Result<Option<UserPlan>, String> {
        let _ = (uid, gid);
        Err("nobody asked the system".to_owned())
    }

    /// Whether a user may use a path so. Asked of what jobs use that act as another user.
    ///
    /// # Errors
    /// Why not.
    fn may_use(&self, user: UserPlan, path: &str, usage: PathUse) -> Result<(), String> {
        let _ = (user, path, usage);
        Ok(())
    }

    /// Which file a path leads to. Asked where two names of one file matter: of outputs, and of files that are
    /// verified.
    fn identity(&self, path: &str) -> Identity {
        Identity::Name(plain(path))
    }

    /// Why nothing may or can be written to a path beside what is measured; `None`: it is a regular file that may be
    /// replaced, or nothing yet. A document is written for whoever typed its name: links are followed, and a pipe or a
    /// terminal will do.
    fn obstacle(&self, path: &str, is_document: bool) -> Option<String> {
        let _ = (path, is_document);
        None
    }
}

impl<F: Fn(&str) -> Target> FactsSource for F {
    fn look(&self, path: &str) -> Target {
        self(path)
    }
}

/// What the planner must know of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Memory, in bytes; `None`: not known, and rules about it do not apply.
    pub memory_bytes: Option<u64>,
    /// Numbers of the processors that this process may use; empty: not known, and rules about them
    /// do not apply.
    pub cpus: Vec<u32>,
    /// Which engines work.
    pub engines: EngineAvailability,
    /// A number that differs from run to run, for `randrepeat = false`.
    pub entropy: u64,
    /// Whether this process may give I/Os the class real time; `None`: not known, and no rule.
    pub may_be_real_time: Option<bool>,
    /// How long disks are watched idle before each phase, in nanoseconds; handed on to the plan.
    pub idle_baseline_ns: u64,
    /// The programs that a `command` may start, as the command names them. A study fills it; otherwise nobody.
    pub programs: Vec<String>,
    /// What the command reads and writes beside the jobs.
    pub beside: Beside,
}

impl Machine {
    /// A machine of which nothing is known but that every engine works, so that no rule about it applies.
    pub fn unknown() -> Self {
        Self {
            memory_bytes: None,
            cpus: Vec::new(),
            engines: EngineAvailability::all(),
            entropy: 1,
            may_be_real_time: None,
            idle_baseline_ns: 0,
            programs: Vec::new(),
            beside: Beside::default(),
        }
    }
}

/// Which engines work here, and why the others do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAvailability {
    /// One entry an engine. An engine without an entry works.
    pub engines: Vec<EngineState>,
}

/// One engine on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineState {
    /// Which.
    pub engine: EngineKind,
    /// Why it does not work here; `None`: it works.
    pub unavailable: Option<String>,
    /// Whether it can trim.
    pub can_trim: bool,
}

impl EngineState {
    /// An engine that works and trims; those without an operation for it make the plain call.
    pub fn works(engine: EngineKind) -> Self {
        Self { engine, unavailable: None, can_trim: true }
    }

    /// An engine that does not work here.
    pub fn fails(engine: EngineKind, reason: impl Into<String>) -> Self {
        Self { unavailable: Some(reason.into()), ..Self::works(engine) }
    }
}

impl EngineAvailability {
    /// Every engine works.
    pub fn all() -> Self {
        Self { engines: Vec::new() }
    }

    /// What is known of one engine.
    pub fn of(&self, engine: EngineKind) -> EngineState {
        self.engines.iter().find(|state| state.engine == engine).cloned().unwrap_or_else(|| EngineState::works(engine))
    }
}

/// Which file a name leads to. Two names of one file have the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// Something that exists.
    Inode {
        /// The number of its filesystem.
        device: u64,
        /// Its number there.
        inode: u64,
    },
    /// Nothing yet: a name that is the same for every path to it.
    Name(String),
}

/// What becomes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Measured.
    Target,
    /// Read.
    Input,
    /// Written for whoever typed its name: links are followed, and a pipe or a terminal will do.
    Document,
    /// Written by a job: a regular file.
    Output,
    /// The same, and several write lines to it.
    SharedLog,
}

impl Role {
    pub(crate) fn is_written(self) -> bool {
        matches!(self, Role::Document | Role::Output | Role::SharedLog)
    }

    pub(crate) fn verb(self) -> &'static str {
        match self {
            Role::Target => "uses",
            Role::Input => "reads",
            Role::Document | Role::Output | Role::SharedLog => "writes",
        }
    }
}

/// A file, and who does what with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// The file.
    pub path: String,
    /// Who, as a message names it: `` job `a` ``, `--json`, `` `write_iolog` of job `a` ``.
    pub by: String,
    /// What.
    pub role: Role,
}

impl FileUse {
    /// A use of a file.
    pub fn new(path: impl Into<String>, by: impl Into<String>, role: Role) -> Self {
        Self { path: path.into(), by: by.into(), role }
    }
}

/// What a command reads and writes beside its jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside {
    /// Its files.
    pub files: Vec<FileUse>,
    /// The jobs' logs are not made under the names that the jobs say: a server keeps and sends them.
    pub sends_logs: bool,
}
