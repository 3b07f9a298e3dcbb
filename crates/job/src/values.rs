//! One job's options, resolved: a value and an origin for each row of the table.

use crate::option::{DefaultValue, Opt, OptionRow, Read, Scope};
use crate::refusal::{Refusal, Rule};
use crate::table::{TABLE, place_of, row, suggestion};
use crate::value::Value;
use std::borrow::Cow;
use std::sync::LazyLock;
use trueio_model::{JobSpec, Origin, PlanValue, SpecValue};

/// The options of one job.
pub struct Values {
    pub(crate) job: String,
    /// In the table's order; `None`: the row has its default. Most rows have, and a file may have thousands of jobs.
    given: Vec<Option<Box<Given>>>,
}

/// The value of a row that was set or decided.
struct Given {
    /// `None`: that of [`DEFAULTS`].
    value: Option<Value>,
    /// As the plan has it.
    shown: PlanValue,
}

/// A decision about the value of one option.
pub(crate) enum Change {
    /// `explain` shows this text and reason.
    Derive(String, String),
    /// It has this value, for this reason.
    Settle(Value, String),
    /// It is reset to its default, for this reason, if it was set.
    Forget(String),
    /// It has this equivalent value.
    Replace(Value),
}

/// The default of each row of the table: of a file with thousands of jobs each is read once.
static DEFAULTS: LazyLock<Vec<Option<Value>>> = LazyLock::new(|| {
    // The table's own tests parse every default.
    let read = |row: &OptionRow, text| row.kind.read(text).expect("a default is readable");
    let default = |row: &&'static OptionRow| match row.default {
        DefaultValue::Text(text) => Some(read(row, text)),
        DefaultValue::Unset(_) => None,
    };
    TABLE.iter().map(default).collect()
});

/// The rows of a plan whose job sets nothing.
static SHOWN_DEFAULTS: LazyLock<Vec<PlanValue>> = LazyLock::new(|| TABLE.iter().copied().map(default_of).collect());

fn default_of(row: &'static OptionRow) -> PlanValue {
    PlanValue { name: row.name.into(), value: Cow::Borrowed(default_text(row)), origin: Origin::Default }
}

impl Values {
    /// Looks up every row: the set value, or the default.
    pub(crate) fn resolve(spec: &JobSpec) -> Result<Self, Refusal> {
        let refuse = |origin: &Origin, rule: Rule| Refusal {
            job: Some(spec.name.clone()),
            origin: Some(origin.clone()),
            rule: Box::new(rule),
        };
        let mut given: Vec<(&OptionRow, &SpecValue)> = Vec::with_capacity(spec.options.len());
        for (name, value) in &spec.options {
            match row(name) {
                Some(row) if row.name == name => given.push((row, value)),
                _ => {
                    let rule = Rule::UnknownOption { option: name.clone(), suggestion: suggestion(name) };
                    return Err(refuse(&value.origin, rule));
                }
            }
        }
        given.sort_unstable_by_key(|(row, _)| place_of(row));
        let mut values = Self { job: spec.name.clone(), given: Vec::new() };
        values.given.resize_with(TABLE.len(), || None);
        for (row, given) in given {
            let value = row.kind.read(&given.text);
            let value = value.map_err(|reason| refuse(&given.origin, Rule::BadValue { option: row.name, reason }))?;
            let shown =
                PlanValue { name: row.name.into(), value: row.kind.write(&value).into(), origin: given.origin.clone() };
            values.given[place_of(row)] = Some(Box::new(Given { value: Some(value), shown }));
        }
        Ok(values)
    }

    /// Returns the value of the row at a place of the table; `None`: it is not set, and has no default.
    fn value(&self, place: usize) -> Option<&Value> {
        self.given[place].as_ref().and_then(|given| given.value.as_ref()).or(DEFAULTS[place].as_ref())
    }

    /// Returns the value of an option, as its type.
    pub fn get<T: Read>(&self, option: Opt<T>) -> T::Out<'_> {
        let row = option.row();
        T::read(row, self.value(place_of(row)))
    }

    fn shown(&self, row: &OptionRow) -> &PlanValue {
        let place = place_of(row);
        self.given[place].as_ref().map_or_else(|| &SHOWN_DEFAULTS[place], |given| &given.shown)
    }

    /// Returns true if the option was set, in any way: it has neither its default nor a derived value.
    pub(crate) fn is_set(&self, option: impl Into<&'static OptionRow>) -> bool {
        self.is_set_row(option.into())
    }

    /// Returns true if the option has a value of this job, set or derived before planning, and not its default.
    pub(crate) fn has_value(&self, option: impl Into<&'static OptionRow>) -> bool {
        self.shown(option.into()).origin != Origin::Default
    }

    fn is_set_row(&self, row: &OptionRow) -> bool {
        !matches!(self.shown(row).origin, Origin::Default | Origin::Derived { .. })
    }

    /// Returns true if the option was set for this job itself, and not by a preset, whose values apply to all
    /// its jobs: it needs no note if one of those has no effect in a job.
    pub(crate) fn is_explicit(&self, option: impl Into<&'static OptionRow>) -> bool {
        let row = option.into();
        self.is_set(row) && !matches!(self.shown(row).origin, Origin::Preset { .. })
    }

    /// Formats the option and its value, for a message: `` `bs = 4k` (job.toml:3) ``.
    pub(crate) fn quote(&self, option: impl Into<&'static OptionRow>) -> String {
        let PlanValue { name, value, origin } = self.shown(option.into());
        match origin {
            Origin::Default => format!("`{name} = {value}`"),
            _ => format!("`{name} = {value}` ({origin})"),
        }
    }

    /// Builds a refusal because of one option.
    pub(crate) fn refuse(&self, option: impl Into<&'static OptionRow>, rule: Rule) -> Refusal {
        let origin = match &self.shown(option.into()).origin {
            Origin::Default | Origin::Derived { .. } => None,
            origin => Some(origin.clone()),
        };
        Refusal { job: Some(self.job.clone()), origin, rule: Box::new(rule) }
    }

    /// Applies a decision about one option.
    pub(crate) fn change(&mut self, row: &OptionRow, change: Change) {
        let is_set = self.is_set_row(row);
        if matches!(change, Change::Forget(_)) && !is_set {
            return;
        }
        let place = place_of(row);
        let given = self.given[place]
            .get_or_insert_with(|| Box::new(Given { value: None, shown: SHOWN_DEFAULTS[place].clone() }));
        let Given { value, shown } = &mut **given;
        match change {
            Change::Derive(text, reason) => {
                shown.value = text.into();
                shown.origin = Origin::Derived { reason };
            }
            Change::Settle(settled, reason) => {
                shown.value = row.kind.write(&settled).into();
                *value = Some(settled);
                shown.origin = Origin::Derived { reason };
            }
            Change::Forget(reason) => {
                *value = None;
                shown.value = default_text(row).into();
                shown.origin = Origin::Derived { reason };
            }
            Change::Replace(equivalent) => {
                shown.value = row.kind.write(&equivalent).into();
                *value = Some(equivalent);
            }
        }
    }

    /// Returns a number of zones that is not converted to a size yet.
    pub(crate) fn zones(&self, row: &OptionRow) -> Option<u64> {
        match self.value(place_of(row)) {
            Some(Value::Zones(count)) => Some(*count),
            _ => None,
        }
    }

    /// Returns the rows that have an effect in this scope.
    pub(crate) fn rows_of(&self, scope: Scope) -> Vec<&'static OptionRow> {
        TABLE.iter().copied().filter(|row| row.scope.contains(&scope)).collect()
    }

    /// Returns the options that are set.
    pub(crate) fn all_set(&self) -> impl Iterator<Item = &'static OptionRow> {
        TABLE.iter().copied().filter(|row| self.is_set_row(row))
    }

    /// Every row's final value and origin, in the table's order.
    pub(crate) fn into_plan_values(self) -> Vec<PlanValue> {
        let mut shown = Vec::with_capacity(TABLE.len());
        for (row, given) in TABLE.iter().copied().zip(self.given) {
            shown.push(given.map_or_else(|| default_of(row), |given| given.shown));
        }
        shown
    }
}

/// The default as text; empty: there is none.
fn default_text(row: &OptionRow) -> &'static str {
    match row.default {
        DefaultValue::Text(text) => text,
        DefaultValue::Unset(_) => "",
    }
}
