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
    /// In the table's order; `None` for a row without a default that is not set.
    values: Vec<Option<Value>>,
    /// In the table's order, as the plan has them.
    shown: Vec<PlanValue>,
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

impl Values {
    /// Looks up every row: the set value, or the default.
    pub(crate) fn resolve(spec: &JobSpec) -> Result<Self, Refusal> {
        let refuse = |origin: &Origin, rule: Rule| Refusal {
            job: Some(spec.name.clone()),
            origin: Some(origin.clone()),
            rule: Box::new(rule),
        };
        let mut given: Vec<Option<&SpecValue>> = vec![None; TABLE.len()];
        for (name, value) in &spec.options {
            match row(name) {
                Some(row) if row.name == name => given[place_of(row)] = Some(value),
                _ => {
                    let rule = Rule::UnknownOption { option: name.clone(), suggestion: suggestion(name) };
                    return Err(refuse(&value.origin, rule));
                }
            }
        }
        let mut values = Vec::with_capacity(TABLE.len());
        let mut shown = Vec::with_capacity(TABLE.len());
        for ((row, default), given) in TABLE.iter().copied().zip(DEFAULTS.iter()).zip(given) {
            let (value, text, origin) = match given {
                Some(given) => match row.kind.read(&given.text) {
                    Ok(value) => {
                        let text = row.kind.write(&value).into();
                        (Some(value), text, given.origin.clone())
                    }
                    Err(reason) => return Err(refuse(&given.origin, Rule::BadValue { option: row.name, reason })),
                },
                None => (default.clone(), Cow::Borrowed(default_text(row)), Origin::Default),
            };
            values.push(value);
            shown.push(PlanValue { name: row.name.into(), value: text, origin });
        }
        Ok(Self { job: spec.name.clone(), values, shown })
    }

    /// Returns the value of an option, as its type.
    pub fn get<T: Read>(&self, option: Opt<T>) -> T::Out<'_> {
        let row = option.row();
        T::read(row, self.values[place_of(row)].as_ref())
    }

    fn shown(&self, row: &OptionRow) -> &PlanValue {
        &self.shown[place_of(row)]
    }

    /// Returns true if the option was set, in any way: it has neither its default nor a derived value.
    pub(crate) fn is_set(&self, option: impl Into<&'static OptionRow>) -> bool {
        self.is_set_row(option.into())
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
        let (value, shown) = (&mut self.values[place_of(row)], &mut self.shown[place_of(row)]);
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
            Change::Forget(reason) if is_set => {
                value.clone_from(&DEFAULTS[place_of(row)]);
                shown.value = default_text(row).into();
                shown.origin = Origin::Derived { reason };
            }
            Change::Forget(_) => {}
            Change::Replace(equivalent) => {
                shown.value = row.kind.write(&equivalent).into();
                *value = Some(equivalent);
            }
        }
    }

    /// Returns a number of zones that is not converted to a size yet.
    pub(crate) fn zones(&self, row: &OptionRow) -> Option<u64> {
        match &self.values[place_of(row)] {
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
        self.shown
    }
}

/// The default as text; empty: there is none.
fn default_text(row: &OptionRow) -> &'static str {
    match row.default {
        DefaultValue::Text(text) => text,
        DefaultValue::Unset(_) => "",
    }
}
