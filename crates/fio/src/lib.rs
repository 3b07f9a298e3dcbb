//! Everything that is specific to fio: its language, outputs, logs, result files, command, client and server.
//!
//! - [`command`] is `trueio fio`: runs jobs, serves clients, and is a client.
//! - [`language`] reads fio's command lines and job files and lowers them to [`JobSpec`](trueio_model::JobSpec)s.
//! - [`logs`] writes logs in fio's formats while jobs run.
//! - [`outputs`] renders a record in fio's formats.
//! - [`results`] reads the JSON that fio writes.
//! - [`wire`] defines the messages between `--client` and `--server`.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod command;
pub mod differences;
pub mod language;
pub mod logs;
pub mod outputs;
pub mod results;
pub mod wire;
