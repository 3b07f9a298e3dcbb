//! One job's options, resolved: a value and an origin for each row of the table.

use crate::refusal::{Refusal, Rule};
use crate::table::{DefaultValue, OptionRow, TABLE, place_of, row, suggestion};
use crate::value::{Extent, Value};
use trueio_model::{
    BlockPattern, BlockSizes, Criterion, Distribution, FileSelection, JobSpec, MemoryPolicy, OpKind, OpMix, Origin,
    PlanValue, PriorityShare, RangeSync, SimulatedDevice, SourceAddress,
};

/// The options of one job, in the table's order.
pub(super) struct Values {
    pub(super) job: String,
    /// The job is written in fio's language.
    pub(super) is_fio: bool,
    items: Vec<Item>,
}

/// Rates, as they were said.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rates {
    /// One for all I/Os together.
    All(f64),
    /// Of reads, writes and trims.
    Each([f64; 3]),
}

impl Rates {
    /// What is left of them for a job's operations: a rate, and that of writes if they have one of their own.
    pub(super) fn of(self, mix: OpMix) -> (f64, Option<f64>) {
        match (self, mix) {
            (Rates::All(rate), _) => (rate, None),
            (Rates::Each([reads, ..]), OpMix::Only(OpKind::Read | OpKind::Sync)) => (reads, None),
            (Rates::Each([_, writes, _]), OpMix::Only(OpKind::Write)) => (writes, None),
            (Rates::Each([.., trims]), OpMix::Only(OpKind::Trim)) => (trims, None),
            (Rates::Each([reads, writes, _]), OpMix::ReadWrite { .. }) => (reads, Some(writes)),
        }
    }
}

struct Item {
    row: &'static OptionRow,
    /// `None` for a row without a default that nobody spoke about.
    value: Option<Value>,
    text: String,
    origin: Origin,
}

impl Values {
    /// Looks up every row: what was asked for, or the default.
    pub(super) fn resolve(spec: &JobSpec) -> Result<Self, Refusal> {
        let refuse = |origin: &Origin, rule: Rule| Refusal {
            job: Some(spec.name.clone()),
            origin: Some(origin.clone()),
            rule: Box::new(rule),
        };
        for (name, value) in &spec.options {
            if row(name).is_none_or(|row| row.name != name) {
                let rule = Rule::UnknownOption { option: name.clone(), suggestion: suggestion(name) };
                return Err(refuse(&value.origin, rule));
            }
        }
        let mut items = Vec::with_capacity(TABLE.len());
        for row in TABLE {
            let item = match (spec.options.get(row.name), row.default) {
                (Some(said), _) => match row.kind.read(&said.text) {
                    Ok(value) => {
                        let text = row.kind.write(&value);
                        Item { row, value: Some(value), text, origin: said.origin.clone() }
                    }
                    Err(reason) => return Err(refuse(&said.origin, Rule::BadValue { option: row.name, reason })),
                },
                (None, DefaultValue::Text(text)) => {
                    // The table's own tests read every default.
                    let value = row.kind.read(text).expect("a default is readable");
                    Item { row, value: Some(value), text: text.to_owned(), origin: Origin::Default }
                }
                (None, DefaultValue::Unset(_)) => {
                    Item { row, value: None, text: String::new(), origin: Origin::Default }
                }
            };
            items.push(item);
        }
        Ok(Self { job: spec.name.clone(), is_fio: spec.fio.is_some(), items })
    }

    /// The values of no job.
    pub(super) fn empty() -> Self {
        Self { job: String::new(), is_fio: false, items: Vec::new() }
    }

    fn item(&self, name: &str) -> &Item {
        // The items stand in the table's order.
        let item = place_of(name).and_then(|place| self.items.get(place));
        item.expect("the planner asks for rows of the table")
    }

    fn item_mut(&mut self, name: &str) -> &mut Item {
        let item = place_of(name).and_then(|place| self.items.get_mut(place));
        item.expect("the planner sets rows of the table")
    }

    /// True if somebody spoke about the option.
    pub(super) fn is_said(&self, name: &str) -> bool {
        !matches!(self.item(name).origin, Origin::Default | Origin::Derived { .. })
    }

    /// True if somebody spoke about the option for this job: not fio's defaults, which hold for all jobs, and of
    /// which it is no news that they have no effect.
    pub(super) fn is_asked(&self, name: &str) -> bool {
        let is_default = |name: &str| name == crate::fio::PRESET;
        self.is_said(name) && !matches!(&self.item(name).origin, Origin::Preset { name } if is_default(name))
    }

    /// The option and its value, for a message: `` `bs = 4k` (job.toml:3) ``.
    pub(super) fn quote(&self, name: &str) -> String {
        let item = self.item(name);
        match item.origin {
            Origin::Default => format!("`{name} = {}`", item.text),
            _ => format!("`{name} = {}` ({})", item.text, item.origin),
        }
    }

    /// A refusal because of one option.
    pub(super) fn refuse(&self, name: &str, rule: Rule) -> Refusal {
        let origin = match &self.item(name).origin {
            Origin::Default | Origin::Derived { .. } => None,
            origin => Some(origin.clone()),
        };
        Refusal { job: Some(self.job.clone()), origin, rule: Box::new(rule) }
    }

    /// Replaces what was said or the default by what the plan worked out.
    pub(super) fn derive(&mut self, name: &str, text: impl Into<String>, reason: impl Into<String>) {
        let item = self.item_mut(name);
        item.text = text.into();
        item.origin = Origin::Derived { reason: reason.into() };
    }

    /// Takes back what was said of an option: its default holds, and no reader of the value sees what was said.
    pub(super) fn forget(&mut self, name: &str, reason: &str) {
        if !self.is_said(name) {
            return;
        }
        let item = self.item_mut(name);
        (item.value, item.text) = match item.row.default {
            DefaultValue::Text(text) => (item.row.kind.read(text).ok(), text.to_owned()),
            DefaultValue::Unset(_) => (None, String::new()),
        };
        item.origin = Origin::Derived { reason: reason.to_owned() };
    }

    /// Gives an option that nobody spoke about the value that the plan worked out.
    pub(super) fn settle(&mut self, name: &str, value: Value, reason: impl Into<String>) {
        let item = self.item_mut(name);
        item.text = item.row.kind.write(&value);
        item.value = Some(value);
        item.origin = Origin::Derived { reason: reason.into() };
    }

    /// Says the value of an option in another way, whoever gave it.
    pub(super) fn replace(&mut self, name: &str, value: Value) {
        let item = self.item_mut(name);
        item.text = item.row.kind.write(&value);
        item.value = Some(value);
    }

    /// A number of zones, as long as it is no size yet.
    pub(super) fn zones(&self, name: &str) -> Option<u64> {
        match &self.item(name).value {
            Some(Value::Zones(count)) => Some(*count),
            _ => None,
        }
    }

    pub(super) fn choice(&self, name: &str) -> Option<&'static str> {
        match &self.item(name).value {
            Some(Value::Choice(word)) => Some(word),
            None => None,
            other => unreachable!("`{name}` is no choice: {other:?}"),
        }
    }

    pub(super) fn bool(&self, name: &str) -> bool {
        match &self.item(name).value {
            Some(Value::Bool(is)) => *is,
            other => unreachable!("`{name}` is no boolean with a default: {other:?}"),
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        match &self.item(name).value {
            Some(Value::Number(number)) => Some(*number),
            None => None,
            other => unreachable!("`{name}` is no number: {other:?}"),
        }
    }

    /// Numbers of reads, writes, trims.
    pub(super) fn numbers(&self, name: &str) -> Option<[u64; 3]> {
        match &self.item(name).value {
            Some(Value::Numbers(numbers)) => Some(*numbers),
            None => None,
            other => unreachable!("`{name}` is no list of numbers: {other:?}"),
        }
    }

    /// A number of a row whose bounds keep it within 32 bits.
    pub(super) fn small(&self, name: &str) -> Option<u32> {
        self.number(name).map(|number| u32::try_from(number).expect("the row's bounds keep it within 32 bits"))
    }

    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        match &self.item(name).value {
            Some(Value::Integer(number)) => Some(*number),
            None => None,
            other => unreachable!("`{name}` is no integer: {other:?}"),
        }
    }

    pub(super) fn extent(&self, name: &str) -> Option<Extent> {
        match &self.item(name).value {
            Some(Value::Extent(extent)) => Some(*extent),
            None => None,
            other => unreachable!("`{name}` is no extent: {other:?}"),
        }
    }

    /// A range of sizes in bytes.
    pub(super) fn range(&self, name: &str) -> Option<(u64, u64)> {
        match &self.item(name).value {
            Some(Value::Range(low, high)) => Some((*low, *high)),
            None => None,
            other => unreachable!("`{name}` is no range of sizes: {other:?}"),
        }
    }

    pub(super) fn sizes(&self, name: &str) -> Option<&[BlockSizes; 3]> {
        match &self.item(name).value {
            Some(Value::Sizes(sizes)) => Some(sizes),
            None => None,
            other => unreachable!("`{name}` is no list of block sizes: {other:?}"),
        }
    }

    /// A duration in nanoseconds; `None` for none and for zero.
    pub(super) fn duration_ns(&self, name: &str) -> Option<u64> {
        match &self.item(name).value {
            Some(Value::DurationNs(ns)) => Some(*ns).filter(|ns| *ns > 0),
            None => None,
            other => unreachable!("`{name}` is no duration: {other:?}"),
        }
    }

    /// A rate of all I/Os, or those of reads, writes and trims; `None` for none and where all are zero.
    /// A part of a whole, 0 to 1.
    pub(super) fn part(&self, name: &str) -> Option<f64> {
        match &self.item(name).value {
            Some(Value::Rate(part)) => Some(*part),
            None => None,
            other => unreachable!("`{name}` is no part: {other:?}"),
        }
    }

    pub(super) fn rates(&self, name: &str) -> Option<Rates> {
        match &self.item(name).value {
            Some(Value::Rate(rate)) => Some(Rates::All(*rate)).filter(|_| *rate > 0.0),
            Some(Value::Rates(rates)) => Some(Rates::Each(*rates)).filter(|_| rates.iter().any(|rate| *rate > 0.0)),
            None => None,
            other => unreachable!("`{name}` is no rate: {other:?}"),
        }
    }

    pub(super) fn distribution(&self, name: &str) -> Distribution {
        match &self.item(name).value {
            Some(Value::Distribution(distribution)) => distribution.clone(),
            other => unreachable!("`{name}` is no distribution: {other:?}"),
        }
    }

    pub(super) fn file_selection(&self, name: &str) -> FileSelection {
        match &self.item(name).value {
            Some(Value::FileSelection(selection)) => selection.clone(),
            other => unreachable!("`{name}` chooses no files: {other:?}"),
        }
    }

    pub(super) fn paths(&self, name: &str) -> Option<&[String]> {
        match &self.item(name).value {
            Some(Value::Paths(paths)) => Some(paths),
            None => None,
            other => unreachable!("`{name}` is no list of paths: {other:?}"),
        }
    }

    /// Error numbers of reads, and of writes and trims.
    pub(super) fn errors(&self, name: &str) -> Option<&[Vec<i32>; 2]> {
        match &self.item(name).value {
            Some(Value::Errors(lists)) => Some(lists),
            None => None,
            other => unreachable!("`{name}` is no list of errors: {other:?}"),
        }
    }

    pub(super) fn names(&self, name: &str) -> &[String] {
        match &self.item(name).value {
            Some(Value::Names(names)) => names,
            None => &[],
            other => unreachable!("`{name}` is no list of names: {other:?}"),
        }
    }

    pub(super) fn pattern(&self, name: &str) -> Option<&[u8]> {
        match &self.item(name).value {
            Some(Value::Pattern(bytes)) => Some(bytes),
            None => None,
            other => unreachable!("`{name}` is no pattern: {other:?}"),
        }
    }

    pub(super) fn percentiles(&self, name: &str) -> &[f64] {
        match &self.item(name).value {
            Some(Value::Percentiles(percents)) => percents,
            other => unreachable!("`{name}` is no list of percentages with a default: {other:?}"),
        }
    }

    /// A switch without a default: `None` if nobody spoke about it.
    pub(super) fn said_bool(&self, name: &str) -> Option<bool> {
        match &self.item(name).value {
            Some(Value::Bool(is)) => Some(*is),
            None => None,
            other => unreachable!("`{name}` is no boolean: {other:?}"),
        }
    }

    pub(super) fn block_pattern(&self, name: &str) -> Option<&BlockPattern> {
        match &self.item(name).value {
            Some(Value::BlockPattern(pattern)) => Some(pattern),
            None => None,
            other => unreachable!("`{name}` is no pattern of a block: {other:?}"),
        }
    }

    pub(super) fn cpus(&self, name: &str) -> Option<&[u32]> {
        match &self.item(name).value {
            Some(Value::Cpus(cpus)) => Some(cpus),
            None => None,
            other => unreachable!("`{name}` is no list of processors: {other:?}"),
        }
    }

    pub(super) fn range_sync(&self, name: &str) -> Option<RangeSync> {
        match &self.item(name).value {
            Some(Value::RangeSync(range)) => Some(*range),
            None => None,
            other => unreachable!("`{name}` is no range: {other:?}"),
        }
    }

    pub(super) fn criterion(&self, name: &str) -> Criterion {
        match &self.item(name).value {
            Some(Value::Criterion(criterion)) => *criterion,
            other => unreachable!("`{name}` is no criterion with a default: {other:?}"),
        }
    }

    /// Nodes of memory; none: all of them.
    pub(super) fn nodes(&self, name: &str) -> Option<&[u32]> {
        match &self.item(name).value {
            Some(Value::Nodes(nodes)) => Some(nodes),
            None => None,
            other => unreachable!("`{name}` is no list of nodes: {other:?}"),
        }
    }

    /// Where memory comes from.
    pub(super) fn memory_policy(&self, name: &str) -> Option<&MemoryPolicy> {
        match &self.item(name).value {
            Some(Value::MemoryPolicy(policy)) => Some(policy),
            None => None,
            other => unreachable!("`{name}` is no policy of memory: {other:?}"),
        }
    }

    /// Shares of the I/Os with priorities of their own.
    pub(super) fn priorities(&self, name: &str) -> Option<&[PriorityShare]> {
        match &self.item(name).value {
            Some(Value::Priorities(shares)) => Some(shares),
            None => None,
            other => unreachable!("`{name}` is no list of shares: {other:?}"),
        }
    }

    pub(super) fn words(&self, name: &str) -> Option<&[String]> {
        match &self.item(name).value {
            Some(Value::Words(words)) => Some(words),
            None => None,
            other => unreachable!("`{name}` is no list of words: {other:?}"),
        }
    }

    /// The options that somebody spoke about.
    pub(super) fn said(&self) -> impl Iterator<Item = &'static str> {
        self.items.iter().map(|item| item.row.name).filter(|name| self.is_said(name))
    }

    pub(super) fn address(&self, name: &str) -> Option<&SourceAddress> {
        match &self.item(name).value {
            Some(Value::Address(address)) => Some(address),
            None => None,
            other => unreachable!("`{name}` is no address: {other:?}"),
        }
    }

    pub(super) fn simulated(&self, name: &str) -> SimulatedDevice {
        match &self.item(name).value {
            Some(Value::Simulated(model)) => model.clone(),
            other => unreachable!("`{name}` is no model of a disk: {other:?}"),
        }
    }

    /// Every row's final value and origin, in the table's order.
    pub(super) fn into_plan_values(self) -> Vec<PlanValue> {
        self.items
            .into_iter()
            .map(|item| PlanValue { name: item.row.name.to_owned(), value: item.text, origin: item.origin })
            .collect()
    }
}
