//! `cargo xtask lab cluster`: runs of several ranks on four hosts of this machine, under the launchers that are installed.
//!
//! The cases are in `cluster.sh`: network and time namespaces as hosts, Slurm with four slurmd, and Open MPI 5, MPICH 5 and Intel MPI
//! from their Python wheels (kept in `target/launchers`). The test files of the
//! program start launchers on one host only, because CI may run without these privileges.

use crate::setup;
use crate::step::Outcome;
use crate::workspace::{cargo, command, is_root, target_dir};
use anyhow::{Context, Result, bail};
use std::path::Path;

const SCRIPT: &str = include_str!("cluster.sh");

/// A package, and the program by which it is recognised.
const PACKAGES: [(&str, &str); 6] = [
    ("openmpi-bin", "mpirun.openmpi"),
    ("mpich", "mpiexec.hydra"),
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("slurm-client", "srun"),
    ("munge", "munged"),
];

/// Runs all cases with a build for development; `false`: a case failed.
pub(crate) fn run() -> Result<bool> {
    if is_root() {
        // The cases print what they lack.
        match setup::install(&PACKAGES) {
            Ok(what) => println!("{what}"),
            Err(why_not) => println!("{why_not}"),
        }
    }
    if !cargo().args(["build", "--package", "trueio-cli"]).status()?.success() {
        bail!("the build failed");
    }
    let target = target_dir()?;
    let program = target.join("debug/trueio");
    let status = command("bash").args(["-c", SCRIPT, "cluster.sh"]).arg(program).arg(target.join("launchers")).status();
    Ok(status.context("bash cannot be started")?.success())
}

/// Runs the cases of the launchers that are Python wheels, which need no privileges.
pub(crate) fn in_ci(program: &Path) -> Outcome {
    let found = || -> Result<Outcome> {
        let launchers = target_dir()?.join("launchers");
        let output =
            command("bash").args(["-c", SCRIPT, "cluster.sh"]).arg(program).arg(launchers).arg("wheels").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{text}");
        let count = |begin: &str| text.lines().filter(|line| line.starts_with(begin)).count();
        let (passed, skipped) = (count("ok "), text.lines().filter(|line| line.starts_with("skipped")));
        let skipped = skipped.collect::<Vec<_>>().join("; ");
        Ok(match (output.status.success(), passed) {
            (false, _) => Outcome::Failed(format!("{} cases failed", count("FAILED"))),
            (true, 0) => Outcome::optional(&skipped),
            (true, _) => {
                Outcome::Passed(format!("{passed} cases{}{skipped}", if skipped.is_empty() { "" } else { "; " }))
            }
        })
    };
    found().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
}
