//! `--parse-only`: refuses what a run would refuse on every machine.
//!
//! The jobs are planned without a look at the machine: as if no file existed, as if each one were large, and as if each were an
//! idle block device. A refusal counts if every one of these plans is refused for the same reason, and if that reason is
//! about options alone. The first plan that is made ends the search, so most jobs are planned once.
//!
//! Limits: what depends on files, processors, users or logs is only found by a run.

use crate::language::{FioRequest, Written, meet_targets};
use std::cell::RefCell;
use std::collections::BTreeSet;
use trueio_job::options::durability::rows::DIRECT;
use trueio_job::options::engine::rows::{HIPRI, IOENGINE};
use trueio_job::options::pattern::rows::{ZONEMODE, ZONESIZE, ZoneMode};
use trueio_job::plan::directory_of;
use trueio_job::{Case, FactsSource, InUse, Machine, Refusal, Rule, Target, explain_refusal_in, plan};
use trueio_model::{DirectFacts, DirectPolicy, DirectSupport, Fact, TargetFacts, TargetKind};

/// The size of each file and device that is imagined: any job fits.
const SIZE_BYTES: u64 = 1 << 50;

/// Targets that are imagined.
#[derive(Debug)]
struct Imagined {
    /// What each target is; `None`: it does not exist.
    kind: Option<TargetKind>,
    /// The directories of missing targets.
    directories: RefCell<BTreeSet<String>>,
}

impl FactsSource for Imagined {
    fn look(&self, path: &str) -> Target {
        let is_directory = self.directories.borrow().contains(path);
        let kind = match self.kind {
            _ if is_directory => TargetKind::Directory,
            Some(kind) => kind,
            None => {
                self.directories.borrow_mut().insert(directory_of(path).to_owned());
                return Target::Missing;
            }
        };
        let reason = "imagined";
        let size_bytes = match kind {
            TargetKind::Directory => Fact::unknown(reason),
            _ => Fact::known(SIZE_BYTES, reason),
        };
        let alignment = || Fact::known(1, reason);
        Target::Present(Box::new(TargetFacts {
            path: path.to_owned(),
            kind,
            size_bytes,
            filesystem: None,
            stack: Vec::new(),
            disks: Vec::new(),
            direct: DirectFacts {
                support: DirectSupport::Direct,
                reason: reason.to_owned(),
                memory_alignment_bytes: alignment(),
                write_alignment_bytes: alignment(),
                read_alignment_bytes: alignment(),
                atomic_write: Fact::unknown(reason),
            },
            io_limits: Fact::unknown(reason),
            driven: None,
        }))
    }

    fn in_use(&self, _path: &str) -> Result<InUse, String> {
        Ok(InUse { uses: Vec::new(), marks: Vec::new(), unseen: Vec::new() })
    }
}

/// Returns why no machine runs the jobs.
pub(super) fn refusal(request: &FioRequest) -> Option<String> {
    let mut reasons: Vec<Reason> = Vec::new();
    for kind in [None, Some(TargetKind::File), Some(TargetKind::BlockDevice)] {
        let reason = imagined(request, kind)?;
        if reasons.first().is_some_and(|first| *first != reason) {
            return None;
        }
        reasons.push(reason);
    }
    match reasons.pop()? {
        Reason::Language(text) => Some(text),
        Reason::Plan(refusal) => {
            is_about_options(&refusal.rule).then(|| explain_refusal_in(&refusal, &Written(&request.jobs)))
        }
    }
}

/// Why a plan is refused.
#[derive(Debug, PartialEq)]
enum Reason {
    Language(String),
    Plan(Box<Refusal>),
}

/// Plans the jobs with targets of a kind; returns why that is refused.
fn imagined(request: &FioRequest, kind: Option<TargetKind>) -> Option<Reason> {
    let facts = Imagined { kind, directories: RefCell::default() };
    let mut jobs = request.jobs.clone();
    for spec in &mut jobs {
        // fio's first I/O fails then. (Of another engine `hipri` is no option, and fio refuses it here, too.)
        let polls = IOENGINE.value_in(spec).is_some_and(|engine| HIPRI.row().fio_engines.contains(&engine.name()));
        if DIRECT.value_in(spec) == DirectPolicy::Off && polls {
            spec.options.remove(HIPRI.name);
        }
        // fio refuses it, too, but only when it runs.
        if ZONEMODE.value_in(spec) == ZoneMode::None {
            spec.options.remove(ZONESIZE.name);
        }
    }
    // Which disk a job has, and its scheduler, are facts of a machine.
    for given in jobs.iter_mut().filter_map(|spec| Some(&mut spec.fio.as_mut()?.given)) {
        given.retain(|word| word.name != "ioscheduler");
    }
    if let Err(error) = meet_targets(&mut jobs, &facts, &request.settings) {
        return Some(Reason::Language(error.render()));
    }
    plan(&jobs, &facts, &Machine::unknown()).err().map(|refusal| Reason::Plan(Box::new(refusal)))
}

fn is_about_options(rule: &Rule) -> bool {
    matches!(
        rule,
        Rule::Contradiction { .. }
            | Rule::BadValue { .. }
            | Rule::Incomplete { .. }
            | Rule::BlockBeyondSize { .. }
            | Rule::EngineLacks { case: Case::EnginePolls, .. }
    )
}
