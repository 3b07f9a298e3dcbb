//! The facts of targets and of the machine that the planner reads.

use crate::in_use::InUse;
use crate::paths::plain;
use trueio_model::{EngineKind, IologSummary, ReplaySettings, SourceAddress, TargetFacts, TargetIdentity, UserPlan};

/// No space left on the device, as in errno(3).
pub(crate) const ENOSPC: i32 = 28;
/// The quota is used up, as in errno(3).
pub(crate) const EDQUOT: i32 = 122;

/// The target of a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// An existing file, directory or device.
    Present(Box<TargetFacts>),
    /// A missing path.
    Missing,
    /// A path that could not be examined, with the reason (`Permission denied (os error 13)`).
    Unreadable(String),
}

/// A job's use of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// Reads the file.
    Read,
    /// Reads and writes the file.
    Write,
    /// Creates files in the directory.
    MakeFilesIn,
}

impl PathUse {
    /// Describes the use, after "may not".
    pub fn verb(self) -> &'static str {
        match self {
            PathUse::Read => "read",
            PathUse::Write => "write",
            PathUse::MakeFilesIn => "create files in",
        }
    }
}

/// The source of facts about paths. For plans that write no block device, a closure `Fn(&str) -> Target` is
/// sufficient.
pub trait FactsSource {
    /// Returns the target of `path`. Called once for each path of a plan, or for the directory of a missing
    /// one, and again for a `name_directory`. A dangling symbolic link is `Unreadable`: creating a file through it is never intended.
    fn look(&self, path: &str) -> Target;

    /// Returns the device that a link below `/dev` leads to, if only root can lead it elsewhere; `None`: it is no such link.
    fn device_of_link(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }

    /// Waits while a file that is shorter than `end_bytes` grows, because another run creates it. Returns true if it waited. Called
    /// before the first fact about the file.
    fn await_filled(&self, path: &str, end_bytes: u64) -> bool {
        let _ = (path, end_bytes);
        false
    }

    /// Returns the identity of the file or device at `path`, which the run compares. Called once for each path of a plan,
    /// before all other facts about it. `None`: there is none, or it is unknown, and the run does not compare it.
    fn target_identity(&self, path: &str) -> Option<TargetIdentity> {
        let _ = path;
        None
    }

    /// Returns the UID of the file's owner if it is neither root nor the user who runs the program; `None`: it is, or is unknown.
    fn other_owner(&self, path: &str) -> Option<u32> {
        let _ = path;
        None
    }

    /// Returns the users and signatures of the file or block device at `path`. Called for existing targets
    /// that a job would write and is permitted to.
    ///
    /// # Errors
    /// The reason why they are unknown. A block device is then not written.
    fn in_use(&self, path: &str) -> Result<InUse, String> {
        let _ = path;
        Err("it was not examined".to_owned())
    }

    /// Returns the length of the body at an address, in bytes. Called for a `source` if the job sets no
    /// `size`.
    ///
    /// # Errors
    /// The reason why it is unknown.
    fn source_length(&self, address: &SourceAddress) -> Result<u64, String> {
        let _ = address;
        Err("the server was not queried".to_owned())
    }

    /// Returns the machine's memory nodes with their processors. Called if a job names any.
    ///
    /// # Errors
    /// The reason why they are unknown.
    fn memory_nodes(&self) -> Result<Vec<(u32, Vec<u32>)>, String> {
        Err("it was not examined".to_owned())
    }

    /// Returns a summary of a log's replay.
    ///
    /// # Errors
    /// The reason why the log cannot be replayed, with the line.
    fn iolog(&self, log: &str, settings: &ReplaySettings) -> Result<IologSummary, String> {
        let _ = (log, settings);
        Err("it was not read".to_owned())
    }

    /// Returns the user of a job that sets these numbers of a user and a group; `None`: the user of this
    /// process.
    ///
    /// # Errors
    /// The reason why this process may not act as that user.
    fn user(&self, uid: Option<u32>, gid: Option<u32>) -> Result<Option<UserPlan>, String> {
        let _ = (uid, gid);
        Err("the system was not queried".to_owned())
    }

    /// Checks whether a user may use a path in this way. Called for the paths of jobs that act as another
    /// user.
    ///
    /// # Errors
    /// The reason why not.
    fn may_use(&self, user: UserPlan, path: &str, usage: PathUse) -> Result<(), String> {
        let _ = (user, path, usage);
        Ok(())
    }

    /// Returns the identity of the file at a path. Called where two names of one file matter: for outputs,
    /// and for files that are verified.
    fn identity(&self, path: &str) -> Identity {
        Identity::Name(plain(path))
    }

    /// Returns the reason why a path cannot or must not be an output; `None`: it is a regular file that may
    /// be replaced, or does not exist. For a document, links are followed, and a pipe or a terminal is
    /// accepted.
    fn obstacle(&self, path: &str, is_document: bool) -> Option<String> {
        let _ = (path, is_document);
        None
    }

    /// Returns true if a file exists at a path and holds something else than this content: it must not be
    /// replaced.
    ///
    /// # Errors
    /// The reason why its content cannot be read.
    fn holds_other(&self, path: &str, content: Content) -> Result<bool, String> {
        let _ = (path, content);
        Ok(false)
    }
}

impl<F: Fn(&str) -> Target> FactsSource for F {
    fn look(&self, path: &str) -> Target {
        self(path)
    }
}

/// The facts of the machine that the planner needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Memory that this process may use, in bytes: the machine's, or the limit of a control group. `None`: unknown, and
    /// rules about it do not apply.
    pub memory_bytes: Option<u64>,
    /// Numbers of the processors that this process may use; empty: unknown, and rules about them do not
    /// apply.
    pub cpus: Vec<u32>,
    /// The engines that work.
    pub engines: EngineAvailability,
    /// A number that differs between runs, for `randrepeat = false`.
    pub entropy: u64,
    /// True if this process may give I/Os the real-time class; `None`: unknown, and the rule does not apply.
    pub may_be_real_time: Option<bool>,
    /// Length of the idle baseline before each phase, in nanoseconds; passed to the plan.
    pub idle_baseline_ns: u64,
    /// The programs that a `command` may start, by the names in the command. A study sets them; otherwise
    /// empty.
    pub programs: Vec<String>,
    /// The files that the command reads and writes in addition to the jobs.
    pub command_files: CommandFiles,
    /// The rank of this process in a run of several: generated names contain it. `None`: the process is alone.
    pub rank: Option<u32>,
}

impl Machine {
    /// A machine of which only is known that every engine works, so that no other rule about it applies.
    pub fn unknown() -> Self {
        Self {
            memory_bytes: None,
            cpus: Vec::new(),
            engines: EngineAvailability::all(),
            entropy: 1,
            may_be_real_time: None,
            idle_baseline_ns: 0,
            programs: Vec::new(),
            command_files: CommandFiles::default(),
            rank: None,
        }
    }
}

/// The engines that work here, and the reasons why others do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAvailability {
    /// One entry per engine. An engine without an entry works.
    pub engines: Vec<EngineState>,
}

/// One engine on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineState {
    /// The engine.
    pub engine: EngineKind,
    /// The reason why it does not work here; `None`: it works.
    pub unavailable: Option<String>,
    /// True if it can trim.
    pub can_trim: bool,
}

impl EngineState {
    /// An engine that works and trims; engines without an operation for it make the plain call.
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

    /// Returns what is known of one engine.
    pub fn of(&self, engine: EngineKind) -> EngineState {
        self.engines.iter().find(|state| state.engine == engine).cloned().unwrap_or_else(|| EngineState::works(engine))
    }
}

/// The identity of a file. Two names of one file have the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// An existing file.
    Inode {
        /// Number of its filesystem.
        device: u64,
        /// Inode number, as stat(2) reports it.
        inode: u64,
    },
    /// A missing file: a path that is the same for every spelling.
    Name(String),
}

/// The role of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Measured.
    Target,
    /// Read.
    Input,
    /// Written for the user who typed its name: links are followed, and a pipe or a terminal is accepted.
    Document,
    /// Written by a job: a regular file.
    Output(Content),
    /// The same; several jobs write lines to it.
    SharedLog(Content),
}

/// The content of an output of a job. Only a file that is empty or holds the same kind of content is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Lines of numbers in fio's columns.
    Log,
    /// The same, compressed.
    PackedLog,
    /// Issued I/Os, for a replay.
    Iolog,
    /// The progress of a verification.
    VerifyState,
    /// What a program prints. It cannot be recognised, so any file is replaced: the program itself could do the same.
    Printed,
}

impl Content {
    /// Returns the name of the content, as a message uses it.
    pub fn name(self) -> &'static str {
        match self {
            Content::Log => "a log",
            Content::PackedLog => "a compressed log",
            Content::Iolog => "an iolog",
            Content::VerifyState => "a verify state",
            Content::Printed => "the output of a program",
        }
    }
}

impl Role {
    pub(crate) fn is_written(self) -> bool {
        matches!(self, Role::Document | Role::Output(_) | Role::SharedLog(_))
    }

    /// Returns the content of a job's output.
    pub(crate) fn content(self) -> Option<Content> {
        match self {
            Role::Output(content) | Role::SharedLog(content) => Some(content),
            Role::Target | Role::Input | Role::Document => None,
        }
    }

    pub(crate) fn verb(self) -> &'static str {
        match self {
            Role::Target => "uses",
            Role::Input => "reads",
            Role::Document | Role::Output(_) | Role::SharedLog(_) => "writes",
        }
    }
}

/// A file, its user and its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// The path.
    pub path: String,
    /// The user, as a message names it: `` job `a` ``, `--json`, `` `write_iolog` of job `a` ``.
    pub by: String,
    /// The role.
    pub role: Role,
}

impl FileUse {
    /// Creates a use of a file.
    pub fn new(path: impl Into<String>, by: impl Into<String>, role: Role) -> Self {
        Self { path: path.into(), by: by.into(), role }
    }
}

/// The files that a command reads and writes in addition to its jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandFiles {
    /// The files.
    pub files: Vec<FileUse>,
    /// True if the jobs' logs are not created under the names that the jobs set: a server stores and sends
    /// them.
    pub sends_logs: bool,
    /// True if outputs that jobs name may replace those of earlier runs.
    pub may_replace: bool,
}
