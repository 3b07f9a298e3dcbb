//! Published experiments, repeated: data in `studies/`, and the interpreter that runs them.
//!
//! A study defines the jobs of a published experiment, the published figures of each job, and the questions about the
//! result. [`conduct`] runs the jobs in rounds, each as a phase with evidence, and compares the figures with the
//! published ones. No code here belongs to a single study.
//!
//! Not here: printing, storing, planning (the caller plans, because it shows the refusals).

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod answers;
mod bound;
mod catalog;
mod check;
mod choose;
mod conclude;
mod conduct;
mod definition;
mod figures;
mod journal;
mod measured;
mod order;
mod published;
mod row_format;
mod rows;
mod study;

pub use bound::{DiskSpeed, MODEST_DISK};
pub use catalog::{EMBEDDED, Embedded, embedded, from_folder};
pub use check::ROWS_MAX;
pub use choose::needs;
pub use conduct::conduct;
pub use definition::{
    Answer, AnswerKind, Assumption, Axis, AxisSelection, AxisValue, ContrastDefinition, DEFINITION_FORMAT, Definition,
    FigureColumn, Formula, Limit, Mode, NEEDS, OneOrMany, OptionText, Options, PublishedTable, Quick, RowOrder, Rule,
    Source, Unit, is_at,
};
pub use journal::{Head, JOURNAL_FORMAT, Journal, JournalError, Kept, Samples};
pub use order::{Brought, Order, Refused, Standing, Surroundings, Target, Watcher};
pub use published::{Entry, Published};
pub use rows::{Row, Variables, rows};
pub use study::{DefinitionError, Study, TEXT_BYTES_MAX};
