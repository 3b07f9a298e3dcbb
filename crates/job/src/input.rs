//! The input of the planner of a section, and its result in addition to its part of the plan.
//!
//! A planner reads a [`JobInput`], which it cannot change, and returns its part with its [`Decisions`]:
//! derived option values, notes for the user, and files that the run will create. Planning a job applies the
//! decisions of each section before the next section reads the input.

use crate::facts::{FactsSource, Machine, Target};
use crate::option::OptionRow;
use crate::value::Value;
use crate::values::{Change, Values};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use trueio_model::{Prepare, TargetIdentity};

/// What is known of a path.
#[derive(Debug, Clone)]
pub(crate) struct Looked {
    pub(crate) target: Target,
    pub(crate) identity: Option<TargetIdentity>,
}

/// One job's options, the machine and the targets.
pub(crate) struct JobInput<'a> {
    /// The options, with the decisions of earlier sections applied.
    pub(crate) values: &'a Values,
    /// The job's position in the run, counted from 0.
    pub(crate) index: usize,
    /// The machine.
    pub(crate) machine: &'a Machine,
    /// The source of facts about paths.
    pub(crate) facts: &'a dyn FactsSource,
    /// The files that this job and earlier ones create.
    pub(crate) ledger: &'a Ledger,
    /// Notes of the run so far.
    pub(crate) notes: &'a [String],
    /// Paths that were looked up: a plan examines each once.
    pub(crate) looked: &'a RefCell<BTreeMap<String, Looked>>,
}

impl Deref for JobInput<'_> {
    type Target = Values;

    fn deref(&self) -> &Values {
        self.values
    }
}

impl JobInput<'_> {
    /// Returns the target of a path.
    pub(crate) fn look(&self, path: &str) -> Target {
        if let Some(looked) = self.looked.borrow().get(path) {
            return looked.target.clone();
        }
        // Before the other facts: the run compares the target with this identity.
        let identity = self.facts.target_identity(path);
        let target = self.facts.look(path);
        self.looked.borrow_mut().insert(path.to_owned(), Looked { target: target.clone(), identity });
        target
    }

    /// Returns true if the identity of the target at a path is known.
    pub(crate) fn is_identified(&self, path: &str) -> bool {
        self.looked.borrow().get(path).is_some_and(|looked| looked.identity.is_some())
    }

    /// Returns the part of generated names that differs between jobs, and between ranks of a run: they may share a
    /// directory.
    pub(crate) fn name_part(&self) -> String {
        match self.machine.rank {
            Some(rank) => format!("{}-rank{rank}", self.values.job),
            None => self.values.job.clone(),
        }
    }

    /// Returns where a path leads, if its last component is a symbolic link.
    pub(crate) fn link_of(&self, path: &str) -> Option<String> {
        self.looked.borrow().get(path)?.identity.as_ref()?.link_to.clone()
    }
}

/// A file that the run will create.
#[derive(Clone)]
pub(crate) struct Created {
    /// The way of creation; of several jobs that share the file, the most thorough.
    pub(crate) prepare: Prepare,
    /// The length of an existing file that is extended; the added part is created.
    pub(crate) extends_from: Option<u64>,
    /// True if it is removed at the end: only if no job keeps it.
    pub(crate) remove_after: bool,
    /// Its length: the largest end of the regions in it, in bytes.
    pub(crate) length_bytes: u64,
    /// Mount point of its filesystem.
    pub(crate) mount_point: String,
    /// The free space there, in bytes.
    pub(crate) available_bytes: Option<u64>,
}

impl Created {
    fn thoroughness(&self) -> u32 {
        match self.prepare {
            Prepare::CreateFilled => 4,
            Prepare::CreateAllocated => 3,
            Prepare::CreateSparse => 2,
            Prepare::CreateReserved => 1,
            _ => 0,
        }
    }
}

/// The files that jobs create, over all jobs of a run.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The files, by path.
    pub(crate) created: BTreeMap<String, Created>,
    /// The first spelling of each path, by the path in its plain form.
    pub(crate) spellings: BTreeMap<String, String>,
}

impl Ledger {
    /// Returns the name of a path in the plan: several spellings are one file, named by the first.
    pub(crate) fn name_of(&self, plain: &str, path: &str) -> String {
        self.spellings.get(plain).cloned().unwrap_or_else(|| path.to_owned())
    }

    /// Returns true if an earlier job creates the file in a less thorough way.
    pub(crate) fn is_promoted(&self, path: &str, wanted: &Created) -> bool {
        self.created.get(path).is_some_and(|created| wanted.thoroughness() > created.thoroughness())
    }

    fn create(&mut self, path: String, wanted: Created) {
        let is_promoted = self.is_promoted(&path, &wanted);
        let created = self.created.entry(path).or_insert_with(|| wanted.clone());
        if is_promoted {
            created.prepare = wanted.prepare;
        }
        created.remove_after &= wanted.remove_after;
        created.length_bytes = created.length_bytes.max(wanted.length_bytes);
    }
}

/// The decisions of a section's planner.
#[derive(Default)]
pub(crate) struct Decisions {
    changes: Vec<(&'static OptionRow, Change)>,
    notes: Vec<String>,
    created: Vec<(String, Created)>,
    spellings: Vec<(String, String)>,
    directories: BTreeSet<String>,
}

impl Decisions {
    /// Derives the value of an option that was not set or is not possible: `explain` prints the text and the
    /// reason.
    pub(crate) fn derive(
        &mut self,
        option: impl Into<&'static OptionRow>,
        text: impl Into<String>,
        reason: impl Into<String>,
    ) {
        self.changes.push((option.into(), Change::Derive(text.into(), reason.into())));
    }

    /// Sets the value of an option for the sections that follow.
    pub(crate) fn settle(&mut self, option: impl Into<&'static OptionRow>, value: Value, reason: impl Into<String>) {
        self.changes.push((option.into(), Change::Settle(value, reason.into())));
    }

    /// Resets an option to its default.
    pub(crate) fn forget(&mut self, option: impl Into<&'static OptionRow>, reason: &str) {
        self.changes.push((option.into(), Change::Forget(reason.to_owned())));
    }

    /// Replaces the value of an option by an equivalent one; its origin stays.
    pub(crate) fn replace(&mut self, option: impl Into<&'static OptionRow>, value: Value) {
        self.changes.push((option.into(), Change::Replace(value)));
    }

    /// Adds a note about the job.
    pub(crate) fn note(&mut self, sentence: impl AsRef<str>) {
        self.notes.push(sentence.as_ref().to_owned());
    }

    /// Adds a note for each of these options that was set for the job and has no effect.
    pub(crate) fn note_unused(&mut self, values: &Values, rows: &[&'static OptionRow], because: &str) {
        for row in rows.iter().copied().filter(|row| values.is_explicit(row)) {
            self.note(format!("{} has no effect: {because}", values.quote(row)));
        }
    }

    /// Creates a file, or a part of one.
    pub(crate) fn create(&mut self, path: &str, wanted: Created) {
        self.created.push((path.to_owned(), wanted));
    }

    /// Names a path, by its plain form.
    pub(crate) fn spell(&mut self, plain: String, name: &str) {
        self.spellings.push((plain, name.to_owned()));
    }

    /// Creates a directory for the job's files, given in plain form.
    pub(crate) fn make_directory(&mut self, plain: String) {
        self.directories.insert(plain);
    }

    /// Applies the decisions; the directories are added to `directories`.
    pub(crate) fn apply(
        self,
        values: &mut Values,
        ledger: &mut Ledger,
        notes: &mut Vec<String>,
        directories: &mut BTreeSet<String>,
    ) {
        for (row, change) in self.changes {
            values.change(row, change);
        }
        notes.extend(self.notes.into_iter().map(|note| format!("job `{}`: {note}", values.job)));
        for (path, wanted) in self.created {
            ledger.create(path, wanted);
        }
        for (plain, name) in self.spellings {
            ledger.spellings.entry(plain).or_insert(name);
        }
        directories.extend(self.directories);
    }
}
