//! The arguments of a study: the order, its target, and the traits that the caller implements.

use crate::rows::Variables;
use std::collections::BTreeMap;
use std::time::Duration;
use trueio_model::{EngineKind, JobSpec, Plan, UsbTargetName};
use trueio_run::Observer;

/// The order: what to run, and on which target.
#[derive(Debug, Clone)]
pub struct Order {
    /// The modes, in order.
    pub modes: Vec<String>,
    /// True if sizes are reduced (`--quick`).
    pub is_quick: bool,
    /// Samples per row; `None`: as the mode defines.
    pub samples: Option<u32>,
    /// The seed of orders and offsets.
    pub seed: u64,
    /// The target of all rows that need no other.
    pub target: Target,
    /// Other targets on which rows may run ([`Surroundings::bring`]). They are planned with the first, so that refusals
    /// come before anything is touched.
    pub others: Vec<Target>,
    /// Job options of the user, which override all others.
    pub extra: Vec<(String, String)>,
    /// Axis values to run: (axis, value). With several of one axis, rows with any of them are run.
    pub only: Vec<(String, String)>,
    /// Variables of the study: `${NAME}`.
    pub variables: Variables,
    /// True if the study may start the programs that it names.
    pub may_start_programs: bool,
    /// True if evidence is collected.
    pub has_evidence: bool,
    /// Interval at which the watcher gets the results so far of the row that is measured, and what other programs do to the disks;
    /// `None`: it gets neither.
    pub interim_every: Option<Duration>,
    /// The words of the command line, the program first; the record keeps them.
    pub command: Vec<String>,
}

/// The target of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A new file, removed afterwards.
    NewFile {
        /// Its path.
        path: String,
    },
    /// An existing file or device.
    Existing {
        /// Its path.
        path: String,
        /// True if it may be written.
        overwrite: bool,
        /// Signatures on it that may be overwritten.
        signatures: Option<String>,
    },
}

impl Target {
    /// Returns the target as job options.
    pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
        let escaped = |path: &str| path.replace(':', "\\:");
        match self {
            Target::NewFile { path } => vec![("filename", escaped(path))],
            Target::Existing { path, overwrite, signatures } => {
                let mut options = vec![("filename", escaped(path))];
                if UsbTargetName::parse(path).is_some() {
                    options.push(("ioengine", EngineKind::Uas.name().to_owned()));
                }
                if *overwrite {
                    options.push(("overwrite_existing", escaped(path)));
                }
                if let Some(signatures) = signatures {
                    options.push(("overwrite_signature", signatures.clone()));
                }
                options
            }
        }
    }
}

/// Refusal of a study, before anything was touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Operations that the caller provides to a study.
pub trait Surroundings {
    /// Plans jobs, or refuses them. A `command` may start only these programs.
    ///
    /// # Errors
    /// The refusal, as text.
    fn plan(&mut self, jobs: &[JobSpec], programs: &[String]) -> Result<Plan, Refused>;

    /// Returns why a job cannot run on this machine (its calls cannot be recorded, its program is not installed). Its row
    /// is then left out, with a note. `None`: the job can run.
    fn lacks(&mut self, job: &JobSpec) -> Option<String> {
        let _ = job;
        None
    }

    /// Checks whether the needs of a row ([`crate::NEEDS`]) are met on `target`. Called before each sample with needs.
    /// `None`: they are not met.
    ///
    /// # Errors
    /// Why that cannot be determined; the row then fails.
    fn holds(&mut self, needs: &BTreeMap<String, String>, target: &Target) -> Result<Option<Brought>, String> {
        let _ = (needs, target);
        Ok(None)
    }

    /// Meets the needs of a row, and verifies that. Called after [`Surroundings::holds`] returned `None`, while nothing
    /// of the target is open.
    ///
    /// # Errors
    /// Why they could not be met; the row then fails.
    fn bring(&mut self, needs: &BTreeMap<String, String>, target: &Target) -> Result<Brought, String> {
        let _ = target;
        match needs.keys().next() {
            Some(need) => Err(format!("this machine cannot meet the need `{need}`")),
            None => Ok(Brought::default()),
        }
    }
}

/// The state of the target after its needs were met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Brought {
    /// The target under its new name, if that changed.
    pub target: Option<Target>,
    /// Sentences for the user.
    pub notes: Vec<String>,
    /// Needs and the values that were found.
    pub conditions: Vec<(String, String)>,
}

/// Progress of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing<'a> {
    /// The mode.
    pub mode: &'a str,
    /// The row that is measured next.
    pub row: &'a str,
    /// Number of samples done, of all modes.
    pub done: usize,
    /// Number of samples in total.
    pub count: usize,
    /// Estimated time left in nanoseconds, from the samples so far; `None` before the first.
    pub left_ns: Option<u64>,
}

/// Observes the progress of a study.
pub trait Watcher: Observer {
    /// Called before each sample.
    fn standing(&mut self, standing: &Standing<'_>);
}
