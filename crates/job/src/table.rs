//! The option table: what may be asked of a job, once.
//!
//! One row is one option. Its name is fio's name wherever fio has the option; further names that
//! fio accepts are accepted here too. The readers, the flags, `--help`, `docs/job-options.md` and
//! the names in a record are all made from the rows, and tests speak about the table as a whole:
//! no name twice, every default readable, every row with an effect on the plan.
//!
//! Where we differ from fio the row's `detail` says so. The differences of meaning are few:
//! `direct` is `prefer` by default (fio: off), `unlink` is true (fio keeps files), an existing file
//! is written only if `overwrite_existing` names it, and `size` never truncates one, nor extends one that
//! `extend_existing` does not name.

use crate::option::{OptionRow, Section};
use crate::options;
use std::collections::BTreeMap;
use trueio_model::{JobSpec, Origin, SpecValue};

/// Every option, in the order of the documentation.
pub const TABLE: &[&OptionRow] = &JOINED;

const SECTIONS: [&[&OptionRow]; Section::ALL.len()] = [
    options::pattern::rows::ROWS,
    options::target::rows::ROWS,
    options::limits::rows::ROWS,
    options::engine::rows::ROWS,
    options::durability::rows::ROWS,
    options::pace::rows::ROWS,
    options::content::rows::ROWS,
    options::process::rows::ROWS,
    options::output::rows::ROWS,
];

/// Where each section begins in the table, and the number of all rows.
const STARTS: [usize; SECTIONS.len() + 1] = {
    let mut starts = [0; SECTIONS.len() + 1];
    let mut section = 0;
    while section < SECTIONS.len() {
        starts[section + 1] = starts[section] + SECTIONS[section].len();
        section += 1;
    }
    starts
};

const JOINED: [&OptionRow; STARTS[SECTIONS.len()]] = {
    let mut rows = [SECTIONS[0][0]; STARTS[SECTIONS.len()]];
    let mut section = 0;
    while section < SECTIONS.len() {
        let mut index = 0;
        while index < SECTIONS[section].len() {
            rows[STARTS[section] + index] = SECTIONS[section][index];
            index += 1;
        }
        section += 1;
    }
    rows
};

/// Returns the position of a row in the table. The planner reads some hundred options a job.
pub(crate) fn place_of(row: &OptionRow) -> usize {
    STARTS[row.section as usize] + usize::from(row.index)
}

/// The row of a name or of one of its aliases.
pub fn row(name: &str) -> Option<&'static OptionRow> {
    TABLE.iter().copied().find(|row| row.name == name || row.fio_names.contains(&name))
}

/// Lays one level of words over a specification: a job's table over `[defaults]`, flags over both.
/// An option that one of these words replaces (`bs` by `bssplit`) is dropped first, so that the
/// nearer word wins; two that contradict each other within the level both stay, for the plan to
/// refuse.
pub fn overlay(spec: &mut JobSpec, level: &BTreeMap<&'static str, SpecValue>) {
    for name in level.keys() {
        for replaced in row(name).map_or(&[][..], |row| row.replaces) {
            spec.options.remove(*replaced);
        }
    }
    for (name, value) in level {
        spec.set(name, value.text.clone(), value.origin.clone());
    }
}

/// Lays options over a specification, as one level of words: those of a preset or a study, by their names in the
/// table.
///
/// # Errors
/// A sentence about the first that is not an option or whose value is not acceptable; `spec` is unchanged.
pub fn lay_over<'a>(
    spec: &mut JobSpec,
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
    origin: &Origin,
) -> Result<(), String> {
    let mut level = BTreeMap::new();
    for (name, text) in options {
        let row = row(name).ok_or_else(|| format!("`{name}` is not an option"))?;
        let value = spec_value(row, text, origin.clone()).map_err(|why| format!("`{name}`: {why}"))?;
        level.insert(row.name, value);
    }
    overlay(spec, &level);
    Ok(())
}

/// What to do about a value that a row did not accept, for the `reason` it gave: the nearest of its
/// words; else what it takes, unless the reason says that already.
pub fn value_hint(row: &OptionRow, text: &str, reason: &str) -> Option<String> {
    let nearest = row
        .choices()
        .iter()
        .map(|choice| (strsim::osa_distance(text, choice.name), choice.name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .map(|(_, name)| format!("did you mean `{name}`?"));
    let takes = row.kind.takes();
    nearest.or_else(|| (!reason.contains(&takes)).then(|| format!("it takes {takes}")))
}

/// An option as it was given: the row's name, canonical text, and origin.
pub(crate) fn spec_value(row: &OptionRow, text: &str, origin: Origin) -> Result<SpecValue, String> {
    Ok(SpecValue { text: row.canonical(text)?, origin })
}

/// What to say about a name that is not in the table: what it is called here, or why it is not
/// needed. `None` if nothing comes close.
pub fn suggestion(name: &str) -> Option<String> {
    let plain = name.trim().trim_start_matches('-').replace('-', "_").to_ascii_lowercase();
    if let Some(row) = row(&plain) {
        return Some(format!("did you mean `{}`?", row.name));
    }
    if let Some((_, sentence)) = ELSEWHERE.iter().find(|(word, _)| *word == plain) {
        return Some((*sentence).to_owned());
    }
    // A slip of the finger changes a third of a word at most; beyond that a suggestion is noise.
    let (distance, best) = TABLE
        .iter()
        .flat_map(|row| std::iter::once(row.name).chain(row.fio_names.iter().copied()).map(move |word| (word, row)))
        .map(|(word, row)| (strsim::osa_distance(&plain, word), row))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + plain.chars().count() / 4 && plain.chars().count() > 1)
        .then(|| format!("did you mean `{}`?", best.name))
}

/// Words that are not options here, and what to write instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("block_size", "the block size is called `bs`, as in fio"),
    ("buffered", "write `direct = \"off\"` for I/O through the page cache"),
    ("depth", "the queue depth is called `iodepth`, as in fio"),
    ("description", "write a TOML comment (`# …`); descriptions are not kept"),
    ("duration", "the time limit is called `runtime`, as in fio"),
    ("engine", "the engine is called `ioengine`, as in fio"),
    ("file", "the target is called `filename`, as in fio"),
    ("iopoll", "polled completions are called `hipri`, as in fio"),
    ("job", "a job is a table of its own: `[job.NAME]`"),
    ("mode", "the operations are called `rw`, as in fio"),
    ("name", "a job's name stands in its table: `[job.NAME]`"),
    ("offset_increment", "not supported: the workers of a job share its files and offsets"),
    ("path", "the target is called `filename`, as in fio"),
    ("queue_depth", "the queue depth is called `iodepth`, as in fio"),
    ("ramp", "the time before measuring is called `ramp_time`, as in fio"),
    ("rwf", "each flag is an option: `rwf_dsync`, `uncached`, `atomic`, `hipri`"),
    ("seed", "the seed is called `randseed`, as in fio"),
    ("sqpoll", "a polled submission queue is called `sqthread_poll`, as in fio"),
    ("target", "the target is called `filename`, as in fio"),
    ("thread", "not needed: workers are threads"),
    ("threads", "the number of workers is called `numjobs`, as in fio"),
    ("time", "the time limit is called `runtime`, as in fio"),
    ("workers", "the number of workers is called `numjobs`, as in fio"),
];

#[cfg(test)]
mod tests {
    #[test]
    fn each_row_knows_its_position_in_the_table() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(place_of(row), place, "{}", row.name);
        }
    }

    use super::*;
    use crate::option::DefaultValue;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_stands_twice_in_the_table_aliases_and_other_words_included() {
        let mut seen = BTreeSet::new();
        for row in TABLE {
            for name in std::iter::once(&row.name).chain(row.fio_names) {
                assert!(seen.insert(*name), "`{name}` stands twice");
            }
        }
        for (word, _) in ELSEWHERE {
            assert!(seen.insert(word), "`{word}` is an option and explained as none");
        }
    }

    #[test]
    fn every_row_has_a_unit_a_default_and_a_sentence_without_full_stop() {
        for row in TABLE {
            assert!(!row.unit.is_empty(), "{}", row.name);
            assert!(!row.default_text().is_empty(), "{}", row.name);
            assert!(row.summary.len() > 10 && !row.summary.ends_with('.'), "{}", row.name);
            assert!(row.detail.is_empty() || row.detail.ends_with('.'), "{}", row.name);
            for choice in row.choices() {
                assert!(!choice.sentence.is_empty() && !choice.sentence.ends_with('.'), "{}", row.name);
            }
        }
    }

    #[test]
    fn every_default_is_accepted_by_its_own_row_in_canonical_text() {
        for row in TABLE {
            if let DefaultValue::Text(text) = row.default {
                assert_eq!(row.canonical(text).as_deref(), Ok(text), "{}", row.name);
            }
        }
    }

    #[test]
    fn no_word_of_a_choice_stands_twice() {
        for row in TABLE {
            let mut seen = BTreeSet::new();
            for choice in row.choices() {
                for word in std::iter::once(&choice.name).chain(choice.aliases) {
                    assert!(seen.insert(*word), "{}: `{word}` stands twice", row.name);
                }
            }
        }
    }

    #[test]
    fn replacement_names_rows_of_the_table_and_is_mutual() {
        for row in TABLE {
            for replaced in row.replaces {
                let other = TABLE.iter().find(|other| other.name == *replaced);
                assert!(other.is_some_and(|o| o.replaces.contains(&row.name)), "{} and {replaced}", row.name);
            }
        }
    }

    #[test]
    fn a_near_miss_gets_the_option_that_was_meant_and_a_far_one_nothing() {
        let of = |name| suggestion(name);
        assert_eq!(of("iodpeth").as_deref(), Some("did you mean `iodepth`?"));
        assert_eq!(of("bfs").as_deref(), Some("did you mean `bs`?"));
        assert_eq!(of("--time-based").as_deref(), Some("did you mean `time_based`?"));
        assert_eq!(of("queue_depth").as_deref(), Some("the queue depth is called `iodepth`, as in fio"));
        assert_eq!(of("zzzzzzzz"), None);
        assert_eq!(of("x"), None);
    }

    #[test]
    fn a_nearer_word_replaces_its_alternative_and_two_at_one_place_both_stay() {
        let value = |text: &str| SpecValue { text: text.into(), origin: Origin::Default };
        let mut spec = JobSpec::new("a");
        overlay(&mut spec, &BTreeMap::from([("bs", value("4k"))]));
        overlay(&mut spec, &BTreeMap::from([("bssplit", value("4k/50:8k/50"))]));
        assert_eq!(spec.options.keys().collect::<Vec<_>>(), ["bssplit"]);
        overlay(&mut spec, &BTreeMap::from([("bs", value("4k")), ("bsrange", value("4k-8k"))]));
        assert_eq!(spec.options.keys().collect::<Vec<_>>(), ["bs", "bsrange"]);
    }
}
