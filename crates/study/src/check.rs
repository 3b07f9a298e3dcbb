//! Checks a definition, without access to the machine.

use crate::definition::{
    Answer, Axis, AxisSelection, ContrastDefinition, DEFINITION_FORMAT, Definition, Limit, Mode, NEEDS, OneOrMany,
    Options, Sum,
};
use std::collections::BTreeSet;
use trueio_model::StudyMetric;

/// Most rows of a mode; the longest published one has 294.
pub const ROWS_MAX: usize = 10_000;

/// Checks a definition; the error is a sentence about the first fault.
pub(crate) fn check(definition: &Definition) -> Result<(), String> {
    if definition.format != DEFINITION_FORMAT {
        return Err(format!("its format is {}; this version reads format {DEFINITION_FORMAT}", definition.format));
    }
    check_options("[set]", &definition.set)?;
    check_options("[quick.set]", &definition.quick.set)?;
    check_axes("", &definition.axis)?;
    check_modes(definition)?;
    // Sections of the whole study may name the axes of any mode.
    let all: Vec<Axis> = definition.mode.values().flat_map(|m| &m.axis).chain(&definition.axis).cloned().collect();
    for rule in definition.rule.iter().chain(&definition.quick.rule) {
        check_options("[[rule]]", &rule.set)?;
        check_place("[[rule]]", &rule.when, &all)?;
    }
    for place in &definition.exclude {
        check_place("[[exclude]]", place, &all)?;
    }
    check_place("[quick.only]", &definition.quick.only, &all)?;
    if definition.quick.samples == Some(0) {
        return Err("[quick]: at least one sample is needed".to_owned());
    }
    for contrast in &definition.contrast {
        check_mode_names(definition, &contrast.modes)?;
        check_contrast(contrast, &all)?;
    }
    for answer in &definition.answer {
        check_mode_names(definition, &answer.modes)?;
        check_answer(answer, &all)?;
    }
    definition.sum.iter().try_for_each(check_sum)?;
    if let Some(format) = &definition.row_format {
        crate::row_format::check(format, &all)?;
    }
    definition.limit.iter().try_for_each(check_limit)
}

fn check_modes(definition: &Definition) -> Result<(), String> {
    if definition.mode.is_empty() {
        return Err("it has no mode: write `[mode.NAME]`".to_owned());
    }
    if definition.mode.values().all(|mode| mode.place.is_none()) {
        return Err("no mode has a `place`, so none is run by default".to_owned());
    }
    if definition.axis.is_empty() && definition.mode.values().any(|mode| mode.axis.is_empty()) {
        return Err("nothing is varied: write `[[axis]]`".to_owned());
    }
    definition.mode.iter().try_for_each(|(name, mode)| check_mode(name, mode, definition))
}

fn check_mode(name: &str, mode: &Mode, definition: &Definition) -> Result<(), String> {
    check_options(&format!("[mode.{name}.set]"), &mode.set)?;
    check_axes(&format!("mode.{name}."), &mode.axis)?;
    if !(1..=10_000).contains(&mode.samples) {
        return Err(format!("mode `{name}`: {} samples; 1 to 10000 are possible", mode.samples));
    }
    let axes = if mode.axis.is_empty() { &definition.axis } else { &mode.axis };
    let rows = axes.iter().try_fold(1usize, |rows, axis| rows.checked_mul(axis.value.len()));
    if rows.is_none_or(|rows| rows > ROWS_MAX) {
        return Err(format!("mode `{name}` would have more than {ROWS_MAX} rows"));
    }
    check_place(&format!("[mode.{name}.only]"), &mode.only, axes)?;
    for place in &mode.exclude {
        check_place(&format!("[[mode.{name}.exclude]]"), place, axes)?;
    }
    for rule in &mode.rule {
        check_options(&format!("[[mode.{name}.rule]]"), &rule.set)?;
        check_place(&format!("[[mode.{name}.rule]]"), &rule.when, axes)?;
    }
    Ok(())
}

fn check_mode_names(definition: &Definition, names: &[String]) -> Result<(), String> {
    match names.iter().find(|name| !definition.mode.contains_key(*name)) {
        Some(name) => Err(format!("unknown mode `{name}`")),
        None => Ok(()),
    }
}

fn check_contrast(contrast: &ContrastDefinition, axes: &[Axis]) -> Result<(), String> {
    let what = format!("contrast `{}`", contrast.title);
    check_place(&what, &contrast.when, axes)?;
    let values = [&contrast.of, &contrast.against].map(|value| (&contrast.axis, value));
    for (axis, value) in values.into_iter().chain(&contrast.against_at) {
        check_place(&what, &AxisSelection::from([(axis.clone(), OneOrMany::One(value.clone()))]), axes)?;
    }
    if contrast.against_at.contains_key(&contrast.axis) {
        return Err(format!("{what}: `against_at` may not name the axis `{}` itself", contrast.axis));
    }
    Ok(())
}

fn check_answer(answer: &Answer, axes: &[Axis]) -> Result<(), String> {
    for axis in [&answer.among, &answer.by] {
        if !axes.iter().any(|known| known.key == *axis) {
            return Err(format!("[[answer]]: unknown axis `{axis}`"));
        }
    }
    if answer.among == answer.by {
        return Err("[[answer]]: `among` and `by` are the same axis".to_owned());
    }
    Ok(())
}

fn check_sum(sum: &Sum) -> Result<(), String> {
    if sum.parts.len() < 2 || sum.parts.contains(&sum.whole) {
        return Err(format!("[[sum]] of `{}` needs at least two parts other than itself", sum.whole.name()));
    }
    if !(0.0..=1.0).contains(&sum.tolerance) {
        return Err("[[sum]]: `tolerance` is a share from 0 to 1".to_owned());
    }
    Ok(())
}

fn check_limit(limit: &Limit) -> Result<(), String> {
    match (limit.metric, limit.bytes) {
        (StudyMetric::Elapsed, Some(1..)) | (StudyMetric::Bandwidth, None) => {}
        (StudyMetric::Elapsed, _) => return Err("[[limit]] of `elapsed` needs `bytes`".to_owned()),
        (StudyMetric::Bandwidth, Some(_)) => return Err("[[limit]] of `bandwidth` needs no `bytes`".to_owned()),
        (other, _) => {
            return Err(format!("[[limit]] is of `elapsed` or `bandwidth`, not of `{}`", other.name()));
        }
    }
    if limit.assumes.as_ref().is_some_and(|assumption| limit.bytes.is_none() || assumption.call_bytes == 0) {
        return Err("[[limit]]: `assumes` is about `bytes`, and `call_bytes` is 1 or more".to_owned());
    }
    if !(limit.mb_per_s_max.is_finite() && limit.mb_per_s_max > 0.0) {
        return Err("[[limit]]: `mb_per_s_max` is a number above 0".to_owned());
    }
    Ok(())
}

fn check_axes(of: &str, axes: &[Axis]) -> Result<(), String> {
    let mut keys = BTreeSet::new();
    for axis in axes {
        let name = format!("{of}axis `{}`", axis.key);
        if axis.key.is_empty() || ["op", "setting"].contains(&axis.key.as_str()) || !keys.insert(&axis.key) {
            return Err(format!("{name}: an axis has a name of its own, other than `op` and `setting`"));
        }
        if axis.value.is_empty() {
            return Err(format!("{name} has no value"));
        }
        let mut names = BTreeSet::new();
        for value in &axis.value {
            if value.name.is_empty() || !names.insert(&value.name) {
                return Err(format!("{name}: the value `{}` is defined twice, or has no name", value.name));
            }
            check_options(&format!("{name}, value `{}`", value.name), &value.set)?;
            if let Some(check) =
                value.accepts.iter().find(|name| !trueio_evidence::CHECKS.iter().any(|(known, _)| known == name))
            {
                return Err(format!(
                    "{name}, value `{}`: `{check}` is not a check (docs/checks.md lists them)",
                    value.name
                ));
            }
            if value.var.contains_key("server") {
                return Err(format!("{name}: the variable `server` is the study's own server and cannot be set"));
            }
            for (need, wanted) in &value.needs {
                let Some((_, known)) = NEEDS.iter().find(|(name, _)| name == need) else {
                    let all: Vec<&str> = NEEDS.iter().map(|(name, _)| *name).collect();
                    return Err(format!("{name}: unknown need `{need}`; known are {}", all.join(", ")));
                };
                if !known.contains(&wanted.as_str()) {
                    return Err(format!("{name}: `{need}` can be {}, not `{wanted}`", known.join(" or ")));
                }
            }
        }
    }
    Ok(())
}

/// Checks that options exist. Values with variables are read when the variables are known.
fn check_options(place: &str, options: &Options) -> Result<(), String> {
    for (name, value) in options {
        let Some(row) = trueio_job::table::row(name) else {
            let hint = trueio_job::table::suggestion(name).map_or_else(String::new, |hint| format!("; {hint}"));
            return Err(format!("{place}: `{name}` is not a job option{hint}"));
        };
        if row.name != name {
            return Err(format!("{place}: write `{}` for `{name}`", row.name));
        }
        if is_reserved(row) {
            return Err(format!("{place}: `{name}` is reserved for the user and cannot be set by a study"));
        }
        let text = value.to_string();
        // A study from elsewhere must not make this machine connect to another.
        if row.name == "source" && text.strip_prefix("${server}/").is_none_or(|rest| rest.contains("${server}")) {
            return Err(format!(
                "{place}: `source`: a study fetches from its own server only, `${{server}}/LENGTH`; the user may name \
                 another with `--set source=…`"
            ));
        }
        if !text.contains("${") {
            row.canonical(&text).map_err(|why| format!("{place}: `{name}`: {why}"))?;
        }
    }
    Ok(())
}

/// Options that a study may not set, in addition to names of files: they create, keep or replace files without naming
/// them, or permit that.
const RESERVED: [&str; 6] =
    ["overwrite_signature", "stonewall", "unlink", "verify_dump", "verify_state_save", "verify_state_load"];

/// Returns whether an option is reserved for the user, who decides which files are touched.
fn is_reserved(row: &trueio_job::OptionRow) -> bool {
    row.names_path() || RESERVED.contains(&row.name)
}

pub(crate) fn check_place(what: &str, place: &AxisSelection, axes: &[Axis]) -> Result<(), String> {
    for (key, values) in place {
        let known: Vec<&Axis> = axes.iter().filter(|axis| axis.key == *key).collect();
        if known.is_empty() {
            return Err(format!("{what}: unknown axis `{key}`"));
        }
        for value in values.values() {
            if !known.iter().any(|axis| axis.value.iter().any(|v| v.name == value)) {
                return Err(format!("{what}: the axis `{key}` has no value `{value}`"));
            }
        }
    }
    Ok(())
}
