//! Published experiments, repeated: data in `studies/`, and the interpreter that runs them.
//!
//! A study says which jobs a published experiment comes down to, what was published of each, and what to ask of the
//! result; [`conduct`] runs the jobs, round by round, each as a phase with evidence, and puts theirs beside ours. There
//! is no code of any single study here.
//!
//! Cannot do: print, store, plan (the caller plans, because refusals are his to show).

mod bound;
mod catalog;
mod choose;
mod conclude;
mod conduct;
mod definition;
mod figures;
mod journal;
mod measured;
mod published;
mod row_format;
mod rows;

pub use bound::{DiskSpeed, MODEST_DISK};
pub use catalog::{EMBEDDED, Embedded, embedded, from_folder};
pub use choose::needs;
pub use conduct::{Brought, Order, Refused, Standing, Surroundings, Target, Watcher, conduct};
pub use definition::{
    Answer, AnswerKind, Axis, AxisValue, ContrastDefinition, DEFINITION_FORMAT, Definition, DefinitionError,
    FigureColumn, Formula, Limit, Mode, NEEDS, OneOrMany, OptionText, Options, Place, PublishedTable, Quick, ROWS_MAX,
    RowOrder, Rule, Source, Study, TEXT_BYTES_MAX, Unit, is_at,
};
pub use journal::{Head, JOURNAL_FORMAT, Journal, JournalError, Kept, Samples};
pub use published::{Entry, Published};
pub use rows::{Row, Variables, rows};
