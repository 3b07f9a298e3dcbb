//! Chooses the rows of a mode: those that the user named, and of these the ones that the target permits.

use crate::check::check_place;
use crate::definition::{AxisSelection, OneOrMany};
use crate::order::{Order, Refused, Surroundings, Target};
use crate::rows::{Row, rows};
use crate::study::Study;
use std::collections::BTreeSet;

/// Returns the rows of a mode that are run, and notes about those that are not.
pub(crate) fn chosen_rows(study: &Study, order: &Order, name: &str) -> Result<(Vec<Row>, Vec<String>), Refused> {
    let mode = study.definition.mode.get(name).ok_or_else(|| Refused(crate::rows::no_mode(study, name)))?;
    let mut rows = rows(study, name, order.is_quick, &order.variables, &order.extra).map_err(Refused)?;
    let mut notes = Vec::new();
    for (axis, value) in &order.only {
        let place = AxisSelection::from([(axis.clone(), OneOrMany::One(value.clone()))]);
        check_place("--only", &place, study.axes(mode)).map_err(Refused)?;
    }
    rows.retain(|row| {
        row.key.iter().all(|(axis, value)| {
            let mut named = order.only.iter().filter(|(chosen, _)| chosen == axis).peekable();
            named.peek().is_none() || named.any(|(_, chosen)| chosen == value)
        })
    });
    if rows.is_empty() {
        return Err(Refused(format!("mode `{name}` has no row with the values of --only; choose another with --mode")));
    }
    let may_not_write = matches!(&order.target, Target::Existing { overwrite: false, .. });
    if study.definition.reads_alone && may_not_write {
        let count = rows.len();
        rows.retain(|row| trueio_job::only_reads(&row.job));
        if rows.is_empty() {
            let why = "every chosen row writes, and the target may not be written: name it with --overwrite";
            return Err(Refused(format!("mode `{name}`: {why}")));
        }
        if rows.len() < count {
            notes.push(format!(
                "{} rows that write were left out: without --overwrite the target is only read.",
                count - rows.len()
            ));
        }
    }
    Ok((rows, notes))
}

/// Returns the rows that can run on this machine, and a sentence for each reason why others cannot.
pub(crate) fn without_lacking(all: Vec<Row>, surroundings: &mut dyn Surroundings) -> (Vec<Row>, Vec<String>) {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    let mut rows = Vec::new();
    for row in all {
        match surroundings.lacks(&row.job) {
            None => rows.push(row),
            Some(reason) => match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(row.name),
                None => reasons.push((reason, vec![row.name])),
            },
        }
    }
    let sentence = |(reason, names): (String, Vec<String>)| format!("Left out here: {}: {reason}.", names.join(", "));
    (rows, reasons.into_iter().map(sentence).collect())
}

/// Returns the needs of the rows of all modes, each once, before anything is touched.
///
/// # Errors
/// [`Refused`], as from [`crate::conduct`].
pub fn needs(study: &Study, order: &Order) -> Result<BTreeSet<(String, String)>, Refused> {
    let mut all = BTreeSet::new();
    let modes = study.definition.mode.values().flat_map(|mode| study.axes(mode));
    if modes.flat_map(|axis| &axis.value).all(|value| value.needs.is_empty()) {
        return Ok(all);
    }
    for name in &order.modes {
        let (rows, _) = chosen_rows(study, order, name)?;
        all.extend(rows.into_iter().flat_map(|row| row.needs));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded;
    use crate::rows::Variables;

    fn order(overwrite: bool, only: &[(&str, &str)]) -> Order {
        Order {
            modes: vec!["faithful".to_owned(), "improved".to_owned()],
            is_quick: false,
            samples: None,
            seed: 0,
            target: Target::Existing { path: "/dev/sdz".to_owned(), overwrite, signatures: None },
            others: Vec::new(),
            extra: Vec::new(),
            only: only.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect(),
            variables: Variables::new(),
            may_start_programs: false,
            has_evidence: true,
            interim_every: None,
            command: Vec::new(),
        }
    }

    fn names(order: &Order, mode: &str) -> Result<(Vec<String>, Vec<String>), Refused> {
        let study = embedded("usb-transport").expect("it is in the program");
        let (rows, notes) = chosen_rows(&study, order, mode)?;
        Ok((rows.into_iter().map(|row| row.name).collect(), notes))
    }

    #[test]
    fn without_overwrite_only_rows_that_read_are_run_with_a_note() {
        let (rows, notes) = names(&order(false, &[]), "improved").unwrap();
        let reads = ["read_throughput", "read_iops", "read_depth_1"];
        let expected: Vec<String> =
            ["bot", "uas"].iter().flat_map(|t| reads.iter().map(move |job| format!("{t} {job}"))).collect();
        assert_eq!(rows, expected);
        assert!(notes[0].starts_with("6 rows that write were left out: without --overwrite"), "{notes:?}");
        let (rows, notes) = names(&order(true, &[]), "improved").unwrap();
        assert_eq!((rows.len(), notes.len()), (12, 0));
    }

    #[test]
    fn only_chooses_rows_by_axis_values_and_an_unknown_value_is_refused() {
        let (rows, _) =
            names(&order(true, &[("job", "write_iops"), ("job", "read_iops"), ("transport", "uas")]), "faithful")
                .unwrap();
        assert_eq!(rows, ["uas write_iops", "uas read_iops"]);
        let Refused(why) = names(&order(true, &[("job", "fast")]), "faithful").unwrap_err();
        assert!(why.contains("value `fast`"), "{why}");
        let Refused(why) = names(&order(false, &[("job", "write_iops")]), "faithful").unwrap_err();
        assert!(why.contains("name it with --overwrite"), "{why}");
        let Refused(why) = names(&order(true, &[("job", "read_depth_1")]), "faithful").unwrap_err();
        assert!(why.contains("no row with the values of --only"), "{why}");
    }

    #[test]
    fn needs_of_the_chosen_rows_are_known_before_the_run() {
        let study = embedded("usb-transport").expect("it is in the program");
        let all = |only: &[(&str, &str)]| {
            let found = needs(&study, &order(false, only)).unwrap();
            found.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert_eq!(all(&[]), ["bot", "uas"]);
        assert_eq!(all(&[("transport", "uas")]), ["uas"]);
    }
}
