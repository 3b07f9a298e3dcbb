//! Everything that exists only for fio's sake.
//!
//! - [`language`] reads fio's command lines and job files and lowers them to [`JobSpec`](trueio_model::JobSpec)s.
//! - [`outputs`] renders a record in fio's formats.
//! - [`results`] reads the JSON that fio writes.
//! - [`wire`] defines the messages between `--client` and `--server`.

pub mod language;
pub mod outputs;
pub mod results;
pub mod wire;
