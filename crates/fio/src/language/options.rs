//! The options of fio's language, by any of their names, and what the language does with each.
//!
//! An option is a row of the option table (`trueio_job::table`), which also holds fio's names and default, or a row of
//! [`super::rows`] if only fio's language has it. [`find`] accepts every name that fio 3.42 has, so no option of fio is
//! unknown here; what has no effect here leaves a note, and what is refused names a reason and the nearest alternative.

pub use super::rows::{Fate, Kind};
use super::rows::{FioRow, ROWS};
use trueio_job::option::{DefaultValue, FioUse, OptionRow};
use trueio_job::table::{TABLE, row};
use trueio_job::value::ValueKind;
use trueio_model::units::parse_bytes;

/// An option of fio's language.
#[derive(Debug, Clone, Copy)]
pub enum FioOption {
    /// A row of the option table.
    Row(&'static OptionRow),
    /// An option that only this language has.
    Own(&'static FioRow),
}

impl FioOption {
    /// Returns the name under which fio lists it.
    pub fn name(self) -> &'static str {
        match self {
            FioOption::Row(row) => row.fio_name(),
            FioOption::Own(own) => own.name,
        }
    }

    /// Returns its other names.
    pub fn aliases(self) -> Vec<&'static str> {
        match self {
            FioOption::Row(row) => {
                let names = std::iter::once(row.name).chain(row.fio_names.iter().copied());
                names.filter(|name| *name != row.fio_name()).collect()
            }
            FioOption::Own(own) => own.aliases.to_vec(),
        }
    }

    /// Returns its row of the option table.
    pub fn row(self) -> Option<&'static OptionRow> {
        match self {
            FioOption::Row(row) => Some(row),
            FioOption::Own(_) => None,
        }
    }

    /// Returns the values that it takes.
    pub fn kind(self) -> Kind {
        match self {
            FioOption::Row(row) => kind_of(row),
            FioOption::Own(own) => own.kind,
        }
    }

    /// Returns the words that it takes; empty: it takes other values.
    pub fn words(self) -> Vec<&'static str> {
        match self {
            FioOption::Row(row) => {
                row.choices().iter().flat_map(|c| std::iter::once(&c.name).chain(c.aliases)).copied().collect()
            }
            FioOption::Own(FioRow { kind: Kind::Text(words), .. }) => words.split_whitespace().collect(),
            FioOption::Own(_) => Vec::new(),
        }
    }

    /// Returns fio's default as fio writes it; empty: none.
    pub fn default_text(self) -> String {
        let row = match self {
            FioOption::Row(row) => row,
            FioOption::Own(own) => return own.default.to_owned(),
        };
        let text = match (row.fio_default(), row.default) {
            (Some(text), _) | (None, DefaultValue::Text(text)) => text,
            (None, DefaultValue::Unset(_)) => return String::new(),
        };
        match (row.kind, text) {
            (ValueKind::Bool, text) => if text == "true" { "1" } else { "0" }.to_owned(),
            (ValueKind::Bytes | ValueKind::BlockSizes, text) => {
                parse_bytes(text).map_or_else(|_| text.to_owned(), |bytes| bytes.to_string())
            }
            (ValueKind::Duration | ValueKind::DurationMicros, "0s") => "0".to_owned(),
            (_, text) => text.to_owned(),
        }
    }

    /// Returns what the language does with it.
    pub fn fate(self) -> Fate {
        match self {
            FioOption::Row(OptionRow { fio: FioUse::Rule(rule), .. }) => Fate::Rule(rule),
            FioOption::Row(OptionRow { fio: FioUse::Ignored(reason), .. }) => Fate::NoEffect(reason),
            FioOption::Row(_) => Fate::Row,
            FioOption::Own(own) => own.fate,
        }
    }

    /// Returns the engines whose own option it is; empty: an option of all jobs.
    pub fn engines(self) -> &'static [&'static str] {
        match self {
            FioOption::Row(row) => row.fio_engines,
            FioOption::Own(own) => own.engines,
        }
    }

    /// Returns true if fio has the option.
    pub fn is_in_fio(self) -> bool {
        self.row().is_none_or(OptionRow::is_in_fio)
    }

    /// Returns true if it may have no value in a job file.
    pub(super) fn may_stand_alone(self) -> bool {
        self.kind() == Kind::Flag || self.name().starts_with("write_") && self.name().ends_with("_log")
    }
}

/// Returns every option of the language, those that fio lacks included.
pub fn options() -> impl Iterator<Item = FioOption> {
    TABLE.iter().copied().map(FioOption::Row).chain(ROWS.iter().map(FioOption::Own))
}

/// Returns the options that fio has, by name.
pub fn options_of_fio() -> Vec<FioOption> {
    let mut options: Vec<FioOption> = options().filter(|option| option.is_in_fio()).collect();
    options.sort_unstable_by_key(|option| option.name());
    options
}

/// Returns the option of this name, which may have hyphens instead of underscores (`time-based`).
pub fn find(name: &str) -> Option<FioOption> {
    let has = |name: &str| {
        let own = || ROWS.iter().find(|own| own.name == name || own.aliases.contains(&name)).map(FioOption::Own);
        row(name).map(FioOption::Row).or_else(own)
    };
    has(name).or_else(|| has(&name.replace('-', "_")))
}

/// Returns the kind of a row of the option table.
fn kind_of(row: &OptionRow) -> Kind {
    match row.kind {
        ValueKind::Bool if row.is_flag_in_fio || !row.is_in_fio() => Kind::Flag,
        ValueKind::Bool => Kind::Bool,
        ValueKind::Count { .. } | ValueKind::Integer { .. } | ValueKind::Percent | ValueKind::Percents => Kind::Number,
        ValueKind::Bytes | ValueKind::BytesEach | ValueKind::BlockSizes => Kind::Number,
        ValueKind::RateBytes | ValueKind::RateIops => Kind::Number,
        ValueKind::Duration | ValueKind::DurationMicros => Kind::Time,
        ValueKind::BytesRange | ValueKind::BlockRanges => Kind::Range,
        ValueKind::Percentiles | ValueKind::Part => Kind::Floats,
        ValueKind::Extent => Kind::Size,
        _ => Kind::Text(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_is_listed_twice_in_the_language() {
        let mut seen = BTreeSet::new();
        for name in options().flat_map(|option| std::iter::once(option.name()).chain(option.aliases())) {
            assert!(seen.insert(name), "`{name}` is listed twice");
        }
    }

    #[test]
    fn fio_defaults_are_values_of_their_rows() {
        for row in TABLE {
            if let Some(text) = row.fio_default() {
                assert_eq!(row.canonical(text).as_deref(), Ok(text), "{}", row.name);
                assert_ne!(row.default, DefaultValue::Text(text), "{}: fio's default is ours", row.name);
            }
        }
    }
}
