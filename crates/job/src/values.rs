//! One job's options, resolved: a value and an origin for each row of the table.

use crate::option::{DefaultValue, Opt, OptionRow, Read, Scope};
use crate::refusal::{Refusal, Rule};
use crate::table::{TABLE, place_of, row, suggestion};
use crate::value::Value;
use std::sync::LazyLock;
use trueio_model::{JobSpec, Origin, PlanValue, SpecValue};

/// The options of one job, in the table's order.
pub struct Values {
    pub(crate) job: String,
    items: Vec<Item>,
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

struct Item {
    row: &'static OptionRow,
    /// `None` for a row without a default that is not set.
    value: Option<Value>,
    text: String,
    origin: Origin,
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
        let mut items = Vec::with_capacity(TABLE.len());
        for ((row, default), given) in TABLE.iter().copied().zip(DEFAULTS.iter()).zip(given) {
            let item = match (given, row.default) {
                (Some(given), _) => match row.kind.read(&given.text) {
                    Ok(value) => {
                        let text = row.kind.write(&value);
                        Item { row, value: Some(value), text, origin: given.origin.clone() }
                    }
                    Err(reason) => return Err(refuse(&given.origin, Rule::BadValue { option: row.name, reason })),
                },
                (None, DefaultValue::Text(text)) => {
                    Item { row, value: default.clone(), text: text.to_owned(), origin: Origin::Default }
                }
                (None, DefaultValue::Unset(_)) => {
                    Item { row, value: None, text: String::new(), origin: Origin::Default }
                }
            };
            items.push(item);
        }
        Ok(Self { job: spec.name.clone(), items })
    }

    /// Returns the value of an option, as its type.
    pub fn get<T: Read>(&self, option: Opt<T>) -> T::Out<'_> {
        let item = self.item(option.row());
        T::read(item.row, item.value.as_ref())
    }

    // The items are in the table's order.
    fn item(&self, row: &OptionRow) -> &Item {
        &self.items[place_of(row)]
    }

    fn item_mut(&mut self, row: &OptionRow) -> &mut Item {
        &mut self.items[place_of(row)]
    }

    /// Returns true if the option was set, in any way: it has neither its default nor a derived value.
    pub(crate) fn is_set(&self, option: impl Into<&'static OptionRow>) -> bool {
        self.is_set_row(option.into())
    }

    fn is_set_row(&self, row: &OptionRow) -> bool {
        !matches!(self.item(row).origin, Origin::Default | Origin::Derived { .. })
    }

    /// Returns true if the option was set for this job itself, and not by a preset, whose values apply to all
    /// its jobs: it needs no note if one of those has no effect in a job.
    pub(crate) fn is_explicit(&self, option: impl Into<&'static OptionRow>) -> bool {
        let row = option.into();
        self.is_set(row) && !matches!(self.item(row).origin, Origin::Preset { .. })
    }

    /// Formats the option and its value, for a message: `` `bs = 4k` (job.toml:3) ``.
    pub(crate) fn quote(&self, option: impl Into<&'static OptionRow>) -> String {
        let item = self.item(option.into());
        let name = item.row.name;
        match item.origin {
            Origin::Default => format!("`{name} = {}`", item.text),
            _ => format!("`{name} = {}` ({})", item.text, item.origin),
        }
    }

    /// Builds a refusal because of one option.
    pub(crate) fn refuse(&self, option: impl Into<&'static OptionRow>, rule: Rule) -> Refusal {
        let origin = match &self.item(option.into()).origin {
            Origin::Default | Origin::Derived { .. } => None,
            origin => Some(origin.clone()),
        };
        Refusal { job: Some(self.job.clone()), origin, rule: Box::new(rule) }
    }

    /// Applies a decision about one option.
    pub(crate) fn change(&mut self, row: &OptionRow, change: Change) {
        let is_set = self.is_set_row(row);
        let item = self.item_mut(row);
        match change {
            Change::Derive(text, reason) => {
                item.text = text;
                item.origin = Origin::Derived { reason };
            }
            Change::Settle(value, reason) => {
                item.text = item.row.kind.write(&value);
                item.value = Some(value);
                item.origin = Origin::Derived { reason };
            }
            Change::Forget(reason) if is_set => {
                (item.value, item.text) = match item.row.default {
                    DefaultValue::Text(text) => (item.row.kind.read(text).ok(), text.to_owned()),
                    DefaultValue::Unset(_) => (None, String::new()),
                };
                item.origin = Origin::Derived { reason };
            }
            Change::Forget(_) => {}
            Change::Replace(value) => {
                item.text = item.row.kind.write(&value);
                item.value = Some(value);
            }
        }
    }

    /// Returns a number of zones that is not converted to a size yet.
    pub(crate) fn zones(&self, row: &OptionRow) -> Option<u64> {
        match &self.item(row).value {
            Some(Value::Zones(count)) => Some(*count),
            _ => None,
        }
    }

    /// Returns the rows that have an effect in this scope.
    pub(crate) fn rows_of(&self, scope: Scope) -> Vec<&'static OptionRow> {
        self.items.iter().map(|item| item.row).filter(|row| row.scope.contains(&scope)).collect()
    }

    /// Returns the options that are set.
    pub(crate) fn all_set(&self) -> impl Iterator<Item = &'static OptionRow> {
        self.items.iter().map(|item| item.row).filter(|row| self.is_set(*row))
    }

    /// Every row's final value and origin, in the table's order.
    pub(crate) fn into_plan_values(self) -> Vec<PlanValue> {
        self.items
            .into_iter()
            .map(|item| PlanValue { name: item.row.name.to_owned(), value: item.text, origin: item.origin })
            .collect()
    }
}
