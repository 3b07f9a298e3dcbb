//! The integration tests of this crate: one program, one module a file.

mod any_calls;
mod asynchronous;
mod bindings_table;
mod cases;
mod copy;
mod end_of_file;
mod examples;
mod files;
mod filesystems;
mod fuse;
mod growing_files;
mod older_kernel;
mod operations;
mod properties;
mod several_writers;
mod streams;
mod support;
mod windows;
