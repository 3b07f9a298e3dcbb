//! What the program provides to the command: its progress line, its standard output, its command line.

use crate::language::OwnHelp;
use std::fmt::Debug;
use std::process::ExitCode;
use std::time::Duration;
use trueio_cluster::Member;
use trueio_job::FileUse;
use trueio_model::Plan;
use trueio_run::Observer;

/// What the program provides to the command.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Returns the command line as typed; the record keeps it.
    pub command_line: fn() -> Vec<String>,
    /// Writes text to standard output, or returns why that failed. A closed pipe is no failure.
    pub print: fn(&str) -> Result<(), String>,
    /// Returns the files of this user's history, which no output of the command replaces.
    pub history: fn() -> Vec<FileUse>,
    /// Returns this process's place among the ranks that a launcher started; `None`: it is alone. An error was printed.
    pub join: fn() -> Result<Option<Member>, ExitCode>,
    /// Refuses a client or server if a launcher started several processes. An error was printed.
    pub refuse_several: fn() -> Result<(), ExitCode>,
    /// Returns true if the command line sets limits (`--fail-if`), which are no option of fio's.
    pub has_limits: fn() -> bool,
    /// Puts the limits of the command line into a plan, or returns why they cannot be judged.
    pub set_limits: fn(&mut Plan) -> Result<(), String>,
    /// Returns true if the command line asks for the view on the whole terminal (`--live`), which is no option of fio's; or why this
    /// terminal cannot be taken over.
    pub wants_live: fn() -> Result<bool, String>,
    /// Interval of the results so far that the view draws.
    pub live_every: Duration,
    /// Takes over the terminal until the view is dropped, or returns why that failed.
    pub live: fn() -> Result<Box<dyn ProgressLine>, String>,
    /// Returns what the program adds to fio's help; `None` if it is called `fio`.
    pub own_help: fn() -> Option<OwnHelp>,
    /// Creates a progress line. The argument is true if disks are watched idle before each phase.
    pub progress_line: fn(bool) -> Box<dyn ProgressLine>,
}

/// A line on the terminal that is redrawn in place.
pub trait ProgressLine: Observer + Debug {
    /// Shows a text.
    fn show(&self, text: &str);

    /// Removes the line.
    fn clear(&self);
}

/// A progress line that draws nothing.
#[derive(Debug)]
pub(super) struct Hidden;

impl Observer for Hidden {}

impl ProgressLine for Hidden {
    fn show(&self, _text: &str) {}

    fn clear(&self) {}
}
