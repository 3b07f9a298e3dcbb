//! What to type where a launcher offers no way to the other ranks.

use super::Variables;

/// Returns one sentence with a command for the launcher at hand.
pub(super) fn hint(variable: Variables<'_>, reasons: &[String]) -> String {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let lacks_library = reasons.iter().any(|reason| reason.contains("libpmix"));
    if is_set("SLURM_STEP_ID") && !is_set("OMPI_COMM_WORLD_SIZE") {
        return "start it with `srun --mpi=pmi2 trueio …`, or with `srun --mpi=pmix trueio …` (`srun --mpi=list` prints \
                what this Slurm has)"
            .to_owned();
    }
    if lacks_library {
        return "install libpmix on each host (Debian: `apt install libpmix2`), or set `PMIX_PREFIX` to the directory \
                with the launcher's `lib/libpmix.so.2`; a static build cannot load it and needs a launcher with PMI-1 \
                (`mpiexec.hydra`, `srun --mpi=pmi2`)"
            .to_owned();
    }
    if reasons.iter().any(|reason| reason.starts_with("variable ")) {
        return "set `RANK`, `WORLD_SIZE`, `MASTER_ADDR` (host of rank 0) and `MASTER_PORT` for each process, or unset \
                `WORLD_SIZE` to measure alone"
            .to_owned();
    }
    "set `RANK`, `WORLD_SIZE`, `MASTER_ADDR` (host of rank 0) and `MASTER_PORT` for each process, or set \
     `TRUEIO_LAUNCHER=alone` if each process is meant to measure by itself"
        .to_owned()
}
