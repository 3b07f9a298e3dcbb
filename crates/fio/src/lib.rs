//! Everything that exists only for fio's sake.
//!
//! [`language`] reads fio's command lines and job files and lowers them to [`JobSpec`](trueio_model::JobSpec)s.

pub mod language;
