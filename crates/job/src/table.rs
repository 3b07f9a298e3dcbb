//! The option table: every option of a job, once.
//!
//! One row is one option. Its name is fio's name if fio has the option; fio's synonyms are accepted, too. The
//! parsers, the flags, `--help`, `docs/job-options.md` and the names in a record are all derived from the
//! rows, and tests check the table as a whole: no name twice, every default valid, every row with an effect
//! on the plan.
//!
//! The row's `detail` describes differences from fio. The differences in meaning are few: `direct` is
//! `prefer` by default (fio: off), `unlink` is true (fio keeps files), an existing file is written only if
//! `overwrite_existing` names it, and `size` never truncates one, nor extends one that `extend_existing` does
//! not name.

use crate::option::{OptionRow, Section};
use crate::options;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;
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

/// Start of each section in the table, and the number of all rows.
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

/// Returns the position of a row in the table. The planner reads about a hundred options per job.
pub(crate) fn place_of(row: &OptionRow) -> usize {
    STARTS[row.section as usize] + usize::from(row.index)
}

/// The row of each name and synonym: of two rows with a name in common, the first in the table.
static BY_NAME: LazyLock<HashMap<&'static str, &'static OptionRow>> = LazyLock::new(|| {
    let mut rows = HashMap::with_capacity(2 * TABLE.len());
    for row in TABLE.iter().copied() {
        for name in std::iter::once(&row.name).chain(row.fio_names) {
            rows.entry(*name).or_insert(row);
        }
    }
    rows
});

/// Returns the row of a name or of one of its synonyms.
pub fn row(name: &str) -> Option<&'static OptionRow> {
    BY_NAME.get(name).copied()
}

/// Applies one level of options to a specification: a job's table over `[defaults]`, flags over both. An
/// option that one of these replaces (`bs` by `bssplit`) is removed first, so that the nearer one applies.
/// Two that contradict each other within the level both stay, and the plan refuses them.
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

/// Applies the options of a preset or a study to a specification, as one level, by their names in the table.
///
/// # Errors
/// A sentence about the first that is not an option or whose value is invalid; `spec` is unchanged.
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

/// Returns the remedy for a value that a row did not accept, given the `reason`: the nearest of its words;
/// else the accepted values, unless the reason contains them.
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

/// Builds the value of an option: canonical text, and origin.
pub(crate) fn spec_value(row: &OptionRow, text: &str, origin: Origin) -> Result<SpecValue, String> {
    Ok(SpecValue { text: row.canonical(text)?, origin })
}

/// Returns a hint for a name that is not in the table: its name here, or why it is not needed. `None` if no
/// name is similar.
pub fn suggestion(name: &str) -> Option<String> {
    let plain = name.trim().trim_start_matches('-').replace('-', "_").to_ascii_lowercase();
    if let Some(row) = row(&plain) {
        return Some(format!("did you mean `{}`?", row.name));
    }
    if let Some((_, sentence)) = ELSEWHERE.iter().find(|(word, _)| *word == plain) {
        return Some((*sentence).to_owned());
    }
    // A typing error changes at most a third of a word; a suggestion beyond that is not useful.
    let (distance, best) = TABLE
        .iter()
        .flat_map(|row| std::iter::once(row.name).chain(row.fio_names.iter().copied()).map(move |word| (word, row)))
        .map(|(word, row)| (strsim::osa_distance(&plain, word), row))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + plain.chars().count() / 4 && plain.chars().count() > 1)
        .then(|| format!("did you mean `{}`?", best.name))
}

/// Names that are not options here, and what to write instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("block_size", "the block size is `bs`, as in fio"),
    ("buffered", "write `direct = \"off\"` for I/O through the page cache"),
    ("depth", "the queue depth is `iodepth`, as in fio"),
    ("description", "write a TOML comment (`# …`); descriptions are not stored"),
    ("duration", "the time limit is `runtime`, as in fio"),
    ("engine", "the engine is `ioengine`, as in fio"),
    ("file", "the target is `filename`, as in fio"),
    ("iopoll", "polled completions are called `hipri`, as in fio"),
    ("job", "each job is a table: `[job.NAME]`"),
    ("mode", "the operations are called `rw`, as in fio"),
    ("name", "a job's name is part of its table's name: `[job.NAME]`"),
    ("path", "the target is `filename`, as in fio"),
    ("queue_depth", "the queue depth is `iodepth`, as in fio"),
    ("ramp", "the time before measuring is `ramp_time`, as in fio"),
    ("rwf", "each flag is an option: `rwf_dsync`, `uncached`, `atomic`, `hipri`"),
    ("seed", "the seed is `randseed`, as in fio"),
    ("sqpoll", "a polled submission queue is `sqthread_poll`, as in fio"),
    ("target", "the target is `filename`, as in fio"),
    ("thread", "not needed: workers are threads"),
    ("threads", "the number of workers is `numjobs`, as in fio"),
    ("time", "the time limit is `runtime`, as in fio"),
    ("workers", "the number of workers is `numjobs`, as in fio"),
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_position_of_each_row_is_its_index_in_the_table() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(place_of(row), place, "{}", row.name);
        }
    }

    use super::*;
    use crate::option::{DefaultValue, Remote};
    use std::collections::BTreeSet;

    #[test]
    fn no_name_is_listed_twice_in_the_table_with_its_aliases() {
        let mut seen = BTreeSet::new();
        for row in TABLE {
            for name in std::iter::once(&row.name).chain(row.fio_names) {
                assert!(seen.insert(*name), "`{name}` is listed twice");
            }
        }
        for (word, _) in ELSEWHERE {
            assert!(seen.insert(word), "`{word}` is an option and also listed as none");
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

    /// Goal: an option that names a file of the server is not added to what a remote client may set by oversight.
    #[test]
    fn of_options_that_name_files_a_remote_client_sets_targets_and_logs_only() {
        let is_allowed = |row: &&&OptionRow| row.names_path() && row.remote == Remote::Allowed;
        let allowed: Vec<&str> = TABLE.iter().filter(is_allowed).map(|row| row.name).collect();
        let targets = ["filename", "directory", "overwrite_existing"];
        let logs = ["write_bw_log", "write_iops_log", "write_lat_log", "write_hist_log"];
        assert_eq!(allowed, [&targets[..], &logs[..]].concat());
    }

    #[test]
    fn no_word_of_a_choice_is_listed_twice() {
        for row in TABLE {
            let mut seen = BTreeSet::new();
            for choice in row.choices() {
                for word in std::iter::once(&choice.name).chain(choice.aliases) {
                    assert!(seen.insert(*word), "{}: `{word}` is listed twice", row.name);
                }
            }
        }
    }

    #[test]
    fn replaced_options_are_rows_and_replace_each_other() {
        for row in TABLE {
            for replaced in row.replaces {
                let other = TABLE.iter().find(|other| other.name == *replaced);
                assert!(other.is_some_and(|o| o.replaces.contains(&row.name)), "{} and {replaced}", row.name);
            }
        }
    }

    #[test]
    fn a_similar_name_gets_a_suggestion_and_others_get_none() {
        let of = |name| suggestion(name);
        assert_eq!(of("iodpeth").as_deref(), Some("did you mean `iodepth`?"));
        assert_eq!(of("bfs").as_deref(), Some("did you mean `bs`?"));
        assert_eq!(of("--time-based").as_deref(), Some("did you mean `time_based`?"));
        assert_eq!(of("queue_depth").as_deref(), Some("the queue depth is `iodepth`, as in fio"));
        assert_eq!(of("zzzzzzzz"), None);
        assert_eq!(of("x"), None);
    }

    #[test]
    fn an_option_of_a_nearer_level_replaces_its_alternative_and_two_of_one_level_stay() {
        let value = |text: &str| SpecValue { text: text.into(), origin: Origin::Default };
        let mut spec = JobSpec::new("a");
        overlay(&mut spec, &BTreeMap::from([("bs", value("4k"))]));
        overlay(&mut spec, &BTreeMap::from([("bssplit", value("4k/50:8k/50"))]));
        assert_eq!(spec.options.keys().collect::<Vec<_>>(), ["bssplit"]);
        overlay(&mut spec, &BTreeMap::from([("bs", value("4k")), ("bsrange", value("4k-8k"))]));
        assert_eq!(spec.options.keys().collect::<Vec<_>>(), ["bs", "bsrange"]);
    }
}
