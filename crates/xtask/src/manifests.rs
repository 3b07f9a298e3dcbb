//! Checks the manifests in `deploy/` with the schemas of Kubernetes. A step of `cargo xtask ci`.
//!
//! The schemas come with kubernetes-validate from PyPI, which is installed into a separate environment in the build directory;
//! `manifests.py` has the checks. It has no schema of MPIJob, whose pods are checked as pods and whose own fields are
//! listed there.

use crate::fio_plot::environment;
use crate::python;
use crate::step::Outcome;
use crate::workspace::{self, command};

/// The version that is installed.
const VERSION: &str = "1.37.0";

/// Checks all manifests, and that mistakes in them are found.
pub(crate) fn run() -> Outcome {
    let Some(python) = python::interpreter() else {
        return Outcome::skipped("no Python of version 3.11 or later that can make environments");
    };
    let build = match workspace::target_dir() {
        Ok(target) => target.join("manifests"),
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    let root = workspace::root();
    if let Err(why) = environment(python, &build, "kubernetes-validate", VERSION) {
        return Outcome::skipped(&format!("kubernetes-validate could not be had: {why}"));
    }
    let mut check = command(&build.join("venv/bin/python").to_string_lossy());
    check.arg("-I").arg(root.join("crates/xtask/src/manifests.py")).arg(root.join("deploy"));
    match check.output() {
        Ok(output) if output.status.success() => {
            Outcome::Passed(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => Outcome::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Outcome::Failed(format!("{}: {error}", build.display())),
    }
}
