//! Finds dependencies that no code names, by cargo-machete.
//!
//! Where it is not installed, cargo builds this version into the build directory.
//!
//! Limits: it compares names with the text of the sources, so a dependency that is named in a comment or behind another
//! feature only counts as used.

use crate::step::{Outcome, of};
use crate::workspace::{self, cargo, command, has_program};

/// The version that is installed, with its own lock file.
const VERSION: &str = "0.9.2";

/// Checks every manifest of the repository; skipped if the program cannot be installed.
pub(crate) fn run() -> Outcome {
    let program = match program() {
        Ok(program) => program,
        Err(why) => return Outcome::optional(&format!("no cargo-machete (`cargo install cargo-machete`): {why}")),
    };
    of(command(&program).arg(workspace::root()))
}

/// Returns the program: the installed one, or that of the build directory, which is built once.
fn program() -> Result<String, String> {
    if has_program("cargo-machete") {
        return Ok("cargo-machete".into());
    }
    let folder = workspace::target_dir().map_err(|error| format!("{error:#}"))?.join("machete");
    let program = folder.join("bin/cargo-machete");
    if !program.exists() {
        let mut install = cargo();
        install.args(["install", "--quiet", "--locked", "cargo-machete", "--version", VERSION, "--root"]).arg(&folder);
        // A directory of its own: in the workspace's, cargo would wait for other builds.
        install.env("CARGO_TARGET_DIR", folder.join("build"));
        match of(&mut install) {
            Outcome::Failed(why) => return Err(why),
            _ => drop(std::fs::remove_dir_all(folder.join("build"))),
        }
    }
    Ok(program.to_string_lossy().into_owned())
}
