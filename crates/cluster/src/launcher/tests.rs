use super::*;
use std::time::Duration;

fn of(table: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
    move |name| table.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

const LIMIT: Limit = Limit::new(Duration::from_secs(5));

/// The variables that Open MPI 4.1, Hydra, `srun --mpi=pmi2` and an Indexed Job set, as far as they matter.
const OPEN_MPI: &[(&str, &str)] = &[
    ("OMPI_COMM_WORLD_RANK", "1"),
    ("OMPI_COMM_WORLD_SIZE", "4"),
    ("PMIX_NAMESPACE", "3512008705"),
    ("PMIX_RANK", "1"),
];
const HYDRA: &[(&str, &str)] = &[("PMI_FD", "8"), ("PMI_RANK", "1"), ("PMI_SIZE", "4"), ("MPI_LOCALRANKID", "1")];
const HYDRA_PORT: &[(&str, &str)] = &[("PMI_PORT", "host:4242"), ("PMI_ID", "1")];
const INDEXED_JOB: &[(&str, &str)] = &[
    ("JOB_COMPLETION_INDEX", "3"),
    ("WORLD_SIZE", "4"),
    ("MASTER_ADDR", "trueio-0.t"),
    ("MASTER_PORT", "29517"),
    (TOKEN_VARIABLE, "secret"),
];
const SLURM_NONE: &[(&str, &str)] = &[("SLURM_PROCID", "1"), ("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "4")];

#[test]
fn each_launcher_is_recognised_by_its_variables() {
    let found = announced(&of(OPEN_MPI));
    assert!(found.has_pmix && found.pmi1.is_none() && found.variables.is_none());
    assert_eq!(found.signs, ["OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=1"]);

    let found = announced(&of(HYDRA));
    assert!(!found.has_pmix);
    assert_eq!(found.pmi1, Some(pmi1::Place::Descriptor { number: Ok(8), identity: Ok((1, 4)) }));

    let found = announced(&of(HYDRA_PORT));
    assert_eq!(found.pmi1, Some(pmi1::Place::Port { address: "host:4242".into(), id: "1".into() }));

    let found = announced(&of(INDEXED_JOB)).variables.expect("four variables").expect("all are valid");
    let expected = Rendezvous { rank: 3, size: 4, host: "trueio-0.t".into(), port: 29517, token: "secret".into() };
    assert_eq!(found, expected);
}

#[test]
fn a_process_without_a_launcher_or_the_only_one_is_alone() {
    for table in [
        &[][..],
        // A batch script of Slurm, and an Indexed Job whose pods measure by themselves.
        &[("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7")],
        &[("JOB_COMPLETION_INDEX", "3")],
        &[("WORLD_SIZE", "1")],
        &[("OMPI_COMM_WORLD_SIZE", "1"), ("PMIX_RANK", "0")],
        &[(LAUNCHER_VARIABLE, "alone"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "1")],
    ] {
        let launched = connect(&of(table), LIMIT).expect("no launcher");
        assert!(matches!(launched, Launched::Alone), "{table:?}: {launched:?}");
    }
}

#[test]
fn a_launched_process_without_a_way_to_the_others_is_refused_with_what_to_type() {
    let refusal = |table| connect(&of(table), LIMIT).expect_err("a launcher without a way").to_string();
    assert_eq!(
        refusal(SLURM_NONE),
        "this process was launched as one of several (SLURM_NTASKS=4), but it cannot reach the others\n  \
         because: the launcher offers neither PMIx nor PMI-1\n\n\
         hint: start it with `srun --mpi=pmi2 trueio …`, or with `srun --mpi=pmix trueio …` (`srun --mpi=list` prints \
         what this Slurm has)"
    );
    let cray = refusal(&[("PALS_RANKID", "3")]);
    assert!(cray.contains("(PALS_RANKID=3)") && cray.contains("set `RANK`"), "{cray}");
    // Hydra whose descriptor a container closed.
    let closed = refusal(&[("PMI_FD", "987"), ("PMI_RANK", "1"), ("PMI_SIZE", "4")]);
    assert!(closed.contains("PMI-1: descriptor PMI_FD is not open"), "{closed}");
}

#[test]
fn the_missing_one_of_four_variables_is_named() {
    for (table, sentence) in [
        (
            &[("WORLD_SIZE", "4"), ("MASTER_ADDR", "h"), ("MASTER_PORT", "1")][..],
            "variable `RANK` is not set, and neither is `JOB_COMPLETION_INDEX`",
        ),
        (&[("WORLD_SIZE", "4"), ("RANK", "1"), ("MASTER_PORT", "1")], "variable `MASTER_ADDR` is not set"),
        (&[("WORLD_SIZE", "4"), ("RANK", "1"), ("MASTER_ADDR", "h")], "variable `MASTER_PORT` is not set"),
        (
            &[("WORLD_SIZE", "4"), ("RANK", "4"), ("MASTER_ADDR", "h"), ("MASTER_PORT", "1")],
            "variable `RANK` is 4, and `WORLD_SIZE` is 4: ranks are 0 to 3",
        ),
        (
            &[("WORLD_SIZE", "4294967295"), ("RANK", "0"), ("MASTER_ADDR", "h"), ("MASTER_PORT", "1")],
            "the launcher announces 4294967295 ranks, and a run has at most 1048576",
        ),
        (&[("WORLD_SIZE", "four"), ("RANK", "1")], "variable `WORLD_SIZE` is `four`, which is no valid number"),
    ] {
        let refusal = connect(&of(table), LIMIT).expect_err("a variable is missing").to_string();
        assert!(refusal.contains(sentence), "{refusal}");
        assert!(refusal.contains("hint: set `RANK`, `WORLD_SIZE`"), "{refusal}");
    }
}
