//! Plans jobs: from a request to the actions of a run.
//!
//! ```text
//! TOML job file ─┐
//! flags ─────────┼─ JobSpec ── plan(specs, facts, machine) ── Plan, or a Refusal
//! presets ───────┘
//! ```
//!
//! [`table`] is the one list of options; everything else is made from it: the readers of job files
//! ([`toml`]) and flags ([`flags`]), the reference page and the help ([`mod@reference`]), and the list
//! of values with their origins that [`explain()`] prints. [`plan()`] is a pure function: the facts about
//! targets come in through [`FactsSource`], so nothing here opens, reads or touches a device.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod excerpt;
pub mod explain;
pub mod facts;
pub mod flags;
pub mod in_use;
mod input;
pub mod language;
pub mod option;
pub mod options;
pub mod outputs;
mod paths;
pub mod plan;
pub mod reference;
pub mod refusal;
pub mod schema;
pub mod table;
pub mod toml;
pub mod value;
pub mod values;

pub use excerpt::{Excerpt, printable};
pub use explain::{explain, explain_refusal, explain_refusal_in};
pub use facts::{
    CommandFiles, Content, EngineAvailability, EngineState, FactsSource, FileUse, Identity, Machine, PathUse, Role,
    Target,
};
pub use flags::{FlagError, apply_flags, spec_from_flags};
pub use in_use::{DeviceUse, InUse, Mark, UseKind};
pub use language::{Language, Native};
pub use option::{Opt, OptionRow};
pub use options::pattern::only_reads;
pub use outputs::check_outputs;
pub use plan::{GivenUser, given_user, memory_bytes, plan};
pub use reference::{names_sentence, render_help, render_reference};
pub use refusal::{Case, Refusal, Rule};
pub use schema::render_schema;
pub use table::{TABLE, row};
pub use toml::{JobFile, JobFileError, Problem, parse_job_file};
