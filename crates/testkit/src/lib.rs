//! What the tests of all crates share: requirements and skips, folders, loop devices and mounts that
//! are removed on drop, and the harness that runs the built program.
//!
//! Only tests and `xtask` depend on it. It depends on no other crate of the workspace, so the tests of every crate
//! may use it, those of `direct` on other systems too (there without devices and programs).

#[cfg(unix)]
mod bounded;
#[cfg(unix)]
mod control_group;
mod devices;
#[cfg(unix)]
mod documents;
mod folders;
#[cfg(unix)]
mod json_schema;
mod needs;
#[cfg(unix)]
mod program;
mod rendered;
mod tables;
#[cfg(unix)]
mod terminal;
mod tools;
#[cfg(target_os = "linux")]
mod users;

#[cfg(unix)]
pub use bounded::output_within;
#[cfg(unix)]
pub use control_group::ControlGroup;
pub use devices::{Loop, Mount, loop_of, make_filesystem, on_loop};
pub use folders::{folder, hash, listing, roots_folder};
#[cfg(unix)]
pub use json_schema::Schema;
pub use needs::{is_root, lacks, skip};
#[cfg(unix)]
pub use program::{Ran, Running, Sandbox, joined};
pub use rendered::assert_rendered;
pub use tables::{assert_row, first_if_foreign, table_rows};
#[cfg(unix)]
pub use terminal::{OnTerminal, on_terminal, typing_on_terminal};
pub use tools::{copy_program, tool};
#[cfg(target_os = "linux")]
pub use users::{NOBODY, Sysctl, as_user};
