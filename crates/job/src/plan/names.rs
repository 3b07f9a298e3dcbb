//! Jobs that make, ask for and remove names: where, and how many.

use super::files::{JobFile, directory_facts};
use super::job::note_unused;
use super::values::Values;
use super::{Planner, Target};
use crate::refusal::{Refusal, Rule};
use trueio_model::{EngineKind, FilePlan, Prepare};

/// The directory of the names. Each worker has one of its own, under this name and a number.
pub(super) fn plan_names(planner: &mut Planner, values: &mut Values, engine: EngineKind) -> Result<JobFile, Refusal> {
    let lacks = |option: &str, lack: &str, hint| {
        Err(values.refuse(option, Rule::EngineLacks { engine, lack: lack.to_owned(), hint }))
    };
    if values.is_said("filename") {
        return lacks("filename", "works on names of its own", "say `directory` and `nrfiles`");
    }
    if engine.uses_names_up() {
        let hint = "leave it out, or say more `nrfiles`";
        let repeats = [
            ("loops", values.number("loops").unwrap_or(1) > 1),
            ("time_based", values.bool("time_based")),
            ("norandommap", values.bool("norandommap")),
            ("random_distribution", values.is_said("random_distribution")),
            ("steady_state", values.bool("steady_state")),
        ];
        if let Some((option, _)) = repeats.into_iter().find(|(_, is_set)| *is_set) {
            return lacks(option, "uses each name once", hint);
        }
    }
    note_unused(planner, values, &["size", "filesize", "offset", "io_size"], "what is counted is names (`nrfiles`)");
    let directory = values.paths("directory").map_or(".", |paths| paths[0].as_str()).trim_end_matches('/').to_owned();
    let path = match directory.as_str() {
        "." => format!("trueio-{}-names", values.job),
        directory => format!("{directory}/trueio-{}-names", values.job),
    };
    directory_facts(planner, values, &path)?;
    for worker in 0..values.small("numjobs").unwrap_or(1) {
        let path = if worker == 0 { path.clone() } else { format!("{path}-{worker}") };
        if planner.look(&path) != Target::Missing {
            return Err(values.refuse("directory", Rule::GeneratedNameTaken { path }));
        }
    }
    let count = values.number("nrfiles").unwrap_or(1);
    values.derive("filename", path.clone(), "a directory of its own, removed at the end");
    values.derive("size", count.to_string(), "one for each name");
    let plan = FilePlan {
        path,
        prepare: Prepare::Nothing,
        remove_after: true,
        offset_bytes: 0,
        size_bytes: count,
        extends_from: None,
    };
    Ok(JobFile { plan, facts: None })
}
