//! Rank, size, and the way to the other ranks, from the launcher that started this process.
//!
//! Sources, in this order: PMIx (`PMIX_NAMESPACE`, `PMIX_RANK`), the PMI-1 wire protocol (`PMI_FD`, or `PMI_PORT` with
//! `PMI_ID`), and four variables (`RANK` or `JOB_COMPLETION_INDEX`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`). Without
//! any sign of a launcher the process is alone.
//!
//! A process that was launched but cannot reach the other ranks is refused: N processes that each measure as "rank 0 of
//! 1" print N results that all are wrong.
//!
//! MPI itself is neither linked nor opened: it would have to match the site's, and it polls.

mod authority;
mod hint;
mod loader;
pub mod pmi1;
pub mod pmix;

pub use authority::{environment, has_more_rights};

use crate::Limit;
use std::fmt;
use trueio_files::PathError;

/// Variable that selects the source of rank and size (`alone`, `pmix`, `pmi1`, `variables`) instead of what the
/// environment announces.
pub const LAUNCHER_VARIABLE: &str = "TRUEIO_LAUNCHER";

/// Variable with the secret of a run that four variables connect: rank 0 accepts only ranks that send it.
pub const TOKEN_VARIABLE: &str = "TRUEIO_TOKEN";

/// Shortest token of ranks on several hosts, in bytes. A hexadecimal digit has 4 bits, so 16 of them have 64.
pub const TOKEN_BYTES_MIN: usize = 16;

/// Longest token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 256;

/// Reads a variable of the environment. Tests pass a table.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the launcher gives: rank, size, and a space through which rank 0 shares one short text.
pub trait KeySpace: fmt::Debug + Send {
    /// Returns a description for the record: `PMIx 4.2.2`.
    fn launcher(&self) -> String;

    /// Returns the rank of this process, from 0.
    fn rank(&self) -> u32;

    /// Returns the number of ranks.
    fn size(&self) -> u32;

    /// Shares a text of rank 0 with all ranks. Rank 0 passes it, the others `None`; collective. The text holds only
    /// letters, digits and `.:,-_` and is at most [`SHARED_BYTES_MAX`] long.
    ///
    /// # Errors
    /// The launcher refused or closed the connection, or the limit passed.
    fn share(&mut self, text: Option<&str>, limit: Limit) -> Result<String, LauncherError>;

    /// Ends all ranks with an exit code. For errors only; returns if the launcher does not end this process.
    fn abort(&mut self, code: u8);

    /// Tells the launcher that this process ends as planned.
    ///
    /// # Errors
    /// The launcher refused, or the limit passed.
    fn finish(&mut self, limit: Limit) -> Result<(), LauncherError>;
}

/// Longest text that [`KeySpace::share`] accepts, in bytes. A request of PMI-1 is one write of at most 1024 bytes: Slurm
/// reads it with one read of that length.
pub const SHARED_BYTES_MAX: usize = 640;

/// Why a launcher could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// A call or the connection to the launcher failed.
    #[error("{what}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The launcher closed its connection.
    #[error("the launcher closed the connection")]
    Closed,
    /// The launcher did not answer in time.
    #[error("{what} was not answered within {seconds} s; a rank may have ended before it")]
    Late {
        /// What was requested.
        what: &'static str,
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// An answer that means failure, or is not understood.
    #[error("{what}: {answer}")]
    Refused {
        /// What was requested.
        what: String,
        /// The launcher's answer.
        answer: String,
    },
    /// A variable leads root to code or settings that another user can change.
    #[error("root does not load what another user can change, and `{name}` is `{value}`")]
    NotRoots {
        /// The variable's name.
        name: String,
        /// Its value.
        value: String,
        /// The part of the path that is not root's.
        source: PathError,
    },
    /// The launcher announces more ranks than a run can have.
    #[error("the launcher announces {size} ranks, and a run has at most {RANKS_MAX}")]
    TooManyRanks {
        /// The number of ranks.
        size: u32,
    },
    /// A variable that the launcher should have set.
    #[error("variable `{name}` {reason}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// A process that was launched as one of several, and has no way to the others.
#[derive(Debug)]
pub struct Unreachable {
    signs: Vec<String>,
    reasons: Vec<String>,
    hint: String,
}

impl std::error::Error for Unreachable {}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signs = if self.signs.is_empty() { String::new() } else { format!(" ({})", self.signs.join(" ")) };
        write!(f, "this process was launched as one of several{signs}, but it cannot reach the others")?;
        for reason in &self.reasons {
            write!(f, "\n  because: {reason}")?;
        }
        write!(f, "\n\nhint: {}", self.hint)
    }
}

/// The address of rank 0, given by four variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendezvous {
    /// Rank of this process.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
    /// Host name or address of rank 0.
    pub host: String,
    /// TCP port of rank 0, in host byte order.
    pub port: u16,
    /// The secret; empty: any process of this host may join.
    pub token: String,
}

/// What the environment announces.
#[derive(Debug, Default)]
pub struct Announced {
    /// PMIx.
    pub has_pmix: bool,
    /// The PMI-1 wire protocol.
    pub pmi1: Option<pmi1::Place>,
    /// Four variables; an error names the one that is missing or malformed.
    pub variables: Option<Result<Rendezvous, LauncherError>>,
    /// Signs of a launcher that started several processes, as `NAME=VALUE`.
    pub signs: Vec<String>,
}

/// How this process was started.
#[derive(Debug)]
pub enum Launched {
    /// By no launcher, or as the only process.
    Alone,
    /// By a launcher with a key-value space.
    InKeySpace(Box<dyn KeySpace>),
    /// As four variables say.
    ByVariables(Rendezvous),
}

/// Returns what the environment announces. Reads nothing else.
pub fn announced(variable: Variables<'_>) -> Announced {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let forced = variable(LAUNCHER_VARIABLE).filter(|value| !value.is_empty());
    if forced.as_deref() == Some("alone") {
        return Announced::default();
    }
    let is_wanted = |name: &str, is_announced: bool| forced.as_deref().map_or(is_announced, |forced| forced == name);
    Announced {
        has_pmix: is_wanted("pmix", is_set("PMIX_NAMESPACE") && is_set("PMIX_RANK")),
        pmi1: pmi1::place(variable).filter(|_| is_wanted("pmi1", true)),
        variables: is_wanted("variables", is_set("WORLD_SIZE") && variable("WORLD_SIZE").as_deref() != Some("1"))
            .then(|| rendezvous(variable)),
        signs: signs(variable),
    }
}

/// Variables that launchers set for each process of several.
fn signs(variable: Variables<'_>) -> Vec<String> {
    let is_several = |name: &str| variable(name).is_some_and(|value| !value.is_empty() && value != "1");
    // `salloc` and `sbatch` set SLURM_NTASKS for the script, too; only a process of a step has the other two.
    let is_slurm_step =
        is_several("SLURM_NTASKS") && ["SLURM_PROCID", "SLURM_STEP_ID"].iter().all(|n| variable(n).is_some());
    let is_sign = |name: &&str| match *name {
        "SLURM_NTASKS" => is_slurm_step,
        "OMPI_COMM_WORLD_SIZE" | "PMI_SIZE" => is_several(name),
        // They name a rank, and the size is elsewhere: a launcher of one process sets them, too.
        _ => variable(name).is_some_and(|value| !value.is_empty()) && !has_single_size(variable),
    };
    let names = ["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "PALS_RANKID", "SLURM_NTASKS"];
    let found = names.into_iter().filter(is_sign);
    found.filter_map(|name| Some(format!("{name}={}", variable(name)?))).collect()
}

/// Returns true if a launcher states that it started one process.
fn has_single_size(variable: Variables<'_>) -> bool {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"].iter().any(|name| variable(name).as_deref() == Some("1"))
}

/// Reads the four variables.
fn rendezvous(variable: Variables<'_>) -> Result<Rendezvous, LauncherError> {
    let rank_name = if variable("RANK").is_some_and(|v| !v.is_empty()) { "RANK" } else { "JOB_COMPLETION_INDEX" };
    let size: u32 = number(variable, "WORLD_SIZE")?;
    let rank = number(variable, rank_name).map_err(|error| match error {
        // Both names lead to one sentence.
        LauncherError::Variable { name: "JOB_COMPLETION_INDEX", reason } if reason == MISSING => {
            LauncherError::Variable { name: "RANK", reason: "is not set, and neither is `JOB_COMPLETION_INDEX`".into() }
        }
        error => error,
    })?;
    check_size(size)?;
    if rank >= size {
        let reason = format!("is {rank}, and `WORLD_SIZE` is {size}: ranks are 0 to {}", size.saturating_sub(1));
        return Err(LauncherError::Variable { name: rank_name, reason });
    }
    let host = text(variable, "MASTER_ADDR")?;
    let port = number(variable, "MASTER_PORT")?;
    let token = variable(TOKEN_VARIABLE).unwrap_or_default();
    if token.len() > TOKEN_BYTES_MAX {
        let reason = format!("is longer than {} bytes", TOKEN_BYTES_MAX);
        return Err(LauncherError::Variable { name: TOKEN_VARIABLE, reason });
    }
    Ok(Rendezvous { rank, size, host, port, token })
}

/// The most ranks of a run. Rank 0 keeps about 80 bytes for each before it has come.
const RANKS_MAX: u32 = 1 << 20;

/// Refuses more ranks than a run can have.
fn check_size(size: u32) -> Result<(), LauncherError> {
    if size > RANKS_MAX { Err(LauncherError::TooManyRanks { size }) } else { Ok(()) }
}

const MISSING: &str = "is not set";

fn text(variable: Variables<'_>, name: &'static str) -> Result<String, LauncherError> {
    let missing = || LauncherError::Variable { name, reason: MISSING.into() };
    variable(name).filter(|value| !value.is_empty()).ok_or_else(missing)
}

/// Reads a number from a variable.
pub(crate) fn number<T: std::str::FromStr>(variable: Variables<'_>, name: &'static str) -> Result<T, LauncherError> {
    let value = text(variable, name)?;
    value
        .parse()
        .map_err(|_| LauncherError::Variable { name, reason: format!("is `{value}`, which is no valid number") })
}

/// Connects to the launcher that the environment announces.
///
/// # Errors
/// This process was launched as one of several and cannot reach the others.
pub fn connect(variable: Variables<'_>, limit: Limit) -> Result<Launched, Unreachable> {
    let Announced { has_pmix, pmi1, variables, signs } = announced(variable);
    let mut reasons = Vec::new();
    let mut space: Option<Box<dyn KeySpace>> = None;
    if has_pmix {
        match pmix::Pmix::connect(variable, limit) {
            Ok(found) => space = Some(Box::new(found)),
            Err(error) => reasons.push(format!("PMIx: {}", trueio_model::error_line(&error))),
        }
    }
    if let (None, Some(place)) = (&space, pmi1) {
        match pmi1::Pmi1::connect(&place, limit) {
            Ok(found) => space = Some(Box::new(found)),
            Err(error) => reasons.push(format!("PMI-1: {}", trueio_model::error_line(&error))),
        }
    }
    if let Some(mut space) = space {
        if let Err(error) = check_size(space.size()) {
            let hint = "start fewer ranks".to_owned();
            return Err(Unreachable { signs, reasons: vec![error.to_string()], hint });
        }
        if space.size() > 1 {
            return Ok(Launched::InKeySpace(space));
        }
        // The only process needs nothing more; one that cannot say so measures all the same.
        let _ = space.finish(limit);
        return Ok(Launched::Alone);
    }
    match variables {
        Some(Ok(rendezvous)) if rendezvous.size > 1 => return Ok(Launched::ByVariables(rendezvous)),
        Some(Ok(_)) => return Ok(Launched::Alone),
        Some(Err(error)) => reasons.push(error.to_string()),
        None => {}
    }
    if reasons.is_empty() && signs.is_empty() {
        return Ok(Launched::Alone);
    }
    if reasons.is_empty() {
        reasons.push("the launcher offers neither PMIx nor PMI-1".to_owned());
    }
    let hint = hint::hint(variable, &reasons);
    Err(Unreachable { signs, reasons, hint })
}

#[cfg(test)]
mod tests;
