//! The rows of a mode: the product of its axes, each a job.
//!
//! Levels of options, each over the ones before: the study's `set`, the mode's, the axes' values in the axes' order,
//! the study's rules, the mode's rules; with `--quick` its `set` and rules; then the user's options. A variable
//! (`${NAME}`) is filled in from the values of the row.

use crate::definition::{AxisSelection, Mode, Options, is_at};
use crate::study::Study;
use std::collections::BTreeMap;
use trueio_job::table::lay_over;
use trueio_model::{JobSpec, Origin, value_label};

/// A row: its values on the axes, and its job.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its name: its values, joined.
    pub name: String,
    /// Its values: (axis, value), in the axes' order.
    pub key: Vec<(String, String)>,
    /// The job.
    pub job: JobSpec,
    /// Checks that it contradicts on purpose.
    pub accepts: Vec<String>,
    /// Conditions before it is run.
    pub needs: BTreeMap<String, String>,
}

/// Variables that a study may use as `${NAME}`.
pub type Variables = BTreeMap<String, String>;

/// The rows of `mode`, in order.
///
/// # Errors
/// A sentence about the first row whose options are not acceptable.
pub fn rows(
    study: &Study,
    mode_name: &str,
    is_quick: bool,
    variables: &Variables,
    extra: &[(String, String)],
) -> Result<Vec<Row>, String> {
    let definition = &study.definition;
    let mode = definition.mode.get(mode_name).ok_or_else(|| no_mode(study, mode_name))?;
    let axes = study.axes(mode);
    let origin = Origin::Preset { name: format!("study {} {mode_name}", study.name) };
    let mut rows = Vec::new();
    let mut at = vec![0usize; axes.len()];
    loop {
        let values: Vec<_> = axes.iter().zip(&at).map(|(axis, &index)| (axis, &axis.value[index])).collect();
        let key: Vec<(String, String)> =
            values.iter().map(|(axis, value)| (axis.key.clone(), value.name.clone())).collect();
        if is_run(study, mode, is_quick, &key) {
            let plain = key.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ");
            let name = key.iter().map(|(axis, value)| value_label(axis, value)).collect::<Vec<_>>().join(" ");
            let mut known = variables.clone();
            for (_, value) in &values {
                known.extend(value.var.iter().map(|(name, text)| (name.clone(), text.to_string())));
            }
            let mut levels: Vec<&Options> = vec![&definition.set, &mode.set];
            levels.extend(values.iter().map(|(_, value)| &value.set));
            let rules = definition.rule.iter().chain(&mode.rule);
            levels.extend(rules.filter(|rule| is_at(&rule.when, &key)).map(|rule| &rule.set));
            if is_quick {
                levels.push(&definition.quick.set);
                levels.extend(definition.quick.rule.iter().filter(|rule| is_at(&rule.when, &key)).map(|r| &r.set));
            }
            let sizes = levels.iter().filter_map(|level| level.get("size")).map(ToString::to_string);
            let own = extra.iter().filter(|(option, _)| option == "size").map(|(_, text)| text.clone());
            let size = sizes.chain(own).last().and_then(|text| trueio_model::units::parse_bytes(&text).ok());
            known.extend(size.map(|bytes| ("size".to_owned(), bytes.to_string())));
            let mut job = JobSpec::new(job_name(&plain, &rows));
            let because = |why: String| format!("row `{name}` of mode `{mode_name}`: {why}");
            for level in levels {
                let filled: Vec<(&str, String)> = level
                    .iter()
                    .map(|(option, text)| Ok((option.as_str(), fill(&text.to_string(), &known)?)))
                    .collect::<Result<_, String>>()
                    .map_err(because)?;
                lay_over(&mut job, filled.iter().map(|(name, text)| (*name, text.as_str())), &origin)
                    .map_err(because)?;
            }
            for (option, text) in extra {
                // Another program's calls are not those of a worker: nothing can be recorded of them.
                if option == "trace_syscalls" && job.options.contains_key("command") {
                    continue;
                }
                lay_over(&mut job, [(option.as_str(), text.as_str())], &Origin::Flag { flag: format!("--{option}") })
                    .map_err(because)?;
            }
            let needs = values.iter().flat_map(|(_, value)| value.needs.clone()).collect();
            let accepts = values.iter().flat_map(|(_, value)| value.accepts.clone()).collect();
            rows.push(Row { name, key, job, accepts, needs });
        }
        // The last axis turns fastest.
        let Some(turning) = (0..at.len()).rev().find(|&axis| at[axis] + 1 < axes[axis].value.len()) else { break };
        at[turning] += 1;
        at[turning + 1..].fill(0);
    }
    if rows.is_empty() {
        return Err(format!("mode `{mode_name}` has no row left"));
    }
    Ok(rows)
}

/// A row's name as that of a job: letters, digits, `-`, `_` and `.`.
fn job_name(row: &str, before: &[Row]) -> String {
    let plain: String =
        row.chars().map(|c| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { ' ' }).collect();
    let mut name = plain.split_whitespace().collect::<Vec<_>>().join("-");
    if name.is_empty() || before.iter().any(|other| other.job.name == name) {
        name = format!("row-{}-{name}", before.len());
    }
    name
}

fn is_run(study: &Study, mode: &Mode, is_quick: bool, key: &[(String, String)]) -> bool {
    let stays = |place: &AxisSelection| {
        place.iter().all(|(axis, values)| !key.iter().any(|(name, value)| name == axis && !values.names(value)))
    };
    !study.definition.exclude.iter().chain(&mode.exclude).any(|place| is_at(place, key))
        && stays(&mode.only)
        && (!is_quick || stays(&study.definition.quick.only))
}

/// Returns the message about an unknown mode.
pub(crate) fn no_mode(study: &Study, name: &str) -> String {
    let known: Vec<&str> = study.definition.mode.keys().map(String::as_str).collect();
    format!("the study `{}` has no mode `{name}`; its modes are {}", study.name, known.join(", "))
}

/// Puts variables in.
fn fill(text: &str, known: &Variables) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let end = from.find('}').ok_or_else(|| format!("`{text}`: `${{` without `}}`"))?;
        let name = &from[2..end];
        let value = known.get(name).ok_or_else(|| {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            format!("`{text}`: unknown variable `{name}`; known are {}", names.join(", "))
        })?;
        out.push_str(before);
        out.push_str(value);
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}
