//! The published figures: `published.csv`, tied to axes and metrics, in base units.
//!
//! Each column must be a key, a figure, or listed as unused. A cell is a figure as the source prints it: `58,265`,
//! `14.610`, `0.112*` (the author's mark, which `asterisk` explains), `190 MiB/s` (another unit than its column's). Any
//! other text is an error; an empty cell is no figure.

use crate::definition::{Definition, FigureColumn, Unit};
use std::collections::BTreeMap;
use trueio_model::units::{format_bandwidth, format_bytes, format_count};
use trueio_model::{Impossible, OpKind, Statistic, StudyMetric};

/// The published figures, row by row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Published {
    /// The figures.
    pub entries: Vec<Entry>,
    /// Units that the source misnames.
    pub corrections: Vec<String>,
}

/// One published figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its values on the axes: axis to the value's name in the study.
    pub place: BTreeMap<String, String>,
    /// Its position in the source: (column, value), in the table's order.
    pub source_place: Vec<(String, String)>,
    /// The operation.
    pub op: Option<OpKind>,
    /// The source's machine.
    pub setting: String,
    /// The metric.
    pub metric: StudyMetric,
    /// The statistic that the source computed from its samples.
    pub statistic: Statistic,
    /// The value, in base units.
    pub value: f64,
    /// As the source prints it, with its unit and asterisk.
    pub printed: String,
    /// Why the figure is impossible.
    pub impossible: Option<Impossible>,
}

impl Entry {
    /// Returns whether it applies to a row at `key`.
    pub fn is_of(&self, key: &[(String, String)]) -> bool {
        self.place.iter().all(|(axis, value)| key.iter().any(|(name, at)| name == axis && at == value))
    }
}

/// Reads the table with the rules of the definition.
pub(crate) fn read_published(definition: &Definition, text: &str) -> Result<Published, String> {
    let table = &definition.published;
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let columns: Vec<String> =
        reader.headers().map_err(|e| e.to_string())?.iter().map(|name| name.trim().to_owned()).collect();
    let position = |name: &str| {
        columns.iter().position(|column| column == name).ok_or_else(|| format!("there is no column `{name}`"))
    };
    for (index, name) in columns.iter().enumerate() {
        let uses = usize::from(table.keys.contains_key(name))
            + usize::from(table.figure.iter().any(|f| f.column == *name))
            + usize::from(table.unused.contains(name));
        if uses != 1 || columns[..index].contains(name) {
            return Err(format!(
                "the column `{name}` must be named exactly once: in `keys`, as a `figure`, or in `unused`"
            ));
        }
    }
    for figure in &table.figure {
        if !figure.unit.fits(figure.metric) {
            return Err(format!("`{}` cannot be in {}", figure.metric.name(), figure.unit.name()));
        }
        if figure.printed.is_some() != figure.why.is_some() {
            return Err(format!("column `{}`: a corrected unit has `printed` and `why`", figure.column));
        }
    }
    let keys: Vec<(usize, &String, &String)> =
        table.keys.iter().map(|(column, axis)| Ok((position(column)?, column, axis))).collect::<Result<_, String>>()?;
    let mut figures: Vec<(usize, &FigureColumn)> = Vec::new();
    for figure in &table.figure {
        figures.push((position(&figure.column)?, figure));
    }
    let (mut entries, mut has_asterisk) = (Vec::new(), false);
    for (index, record) in reader.records().enumerate() {
        let line = index + 2;
        let record = record.map_err(|e| format!("line {line}: {e}"))?;
        let cell = |at: usize| record.get(at).unwrap_or_default().trim();
        let mut common = Common::default();
        for &(at, column, axis) in &keys {
            common.take(definition, column, axis, cell(at)).map_err(|why| format!("line {line}: {why}"))?;
        }
        for &(at, figure) in &figures {
            if cell(at).is_empty() {
                continue;
            }
            let printed = Printed::read(cell(at), figure).map_err(|why| format!("line {line}: {why}"))?;
            if printed.has_asterisk && table.asterisk.is_none() {
                return Err(format!(
                    "line {line}: `{}`: [published] has no `asterisk` with the author's note",
                    cell(at)
                ));
            }
            has_asterisk |= printed.has_asterisk;
            let mut place = common.place.clone();
            for (axis, value) in &figure.at {
                place.insert(axis.clone(), value_named(definition, axis, value)?);
            }
            let mut entry = Entry {
                place,
                source_place: common.source_place.clone(),
                op: common.op,
                setting: common.setting.clone(),
                metric: figure.metric,
                statistic: figure.statistic,
                value: printed.value,
                printed: printed.text(),
                impossible: None,
            };
            if !figure.at.is_empty() {
                entry.source_place.push(("column".to_owned(), figure.column.clone()));
            }
            entry.impossible = impossible(definition, &entry);
            entries.push(entry);
        }
    }
    if table.asterisk.is_some() && !has_asterisk {
        return Err("[published] `asterisk`: no figure has one".to_owned());
    }
    let corrections = table.figure.iter().filter_map(|figure| {
        let (printed, why) = (figure.printed.as_ref()?, figure.why.as_ref()?);
        Some(format!("`{}`: printed as {printed}, which is {}: {why}", figure.column, figure.unit.name()))
    });
    let mut corrections: Vec<String> = corrections.collect();
    corrections.dedup();
    Ok(Published { entries, corrections })
}

/// A cell of the table.
struct Printed<'a> {
    /// Its digits, as printed.
    digits: &'a str,
    has_asterisk: bool,
    /// The unit as the source prints it.
    unit: &'a str,
    /// In base units.
    value: f64,
}

impl<'a> Printed<'a> {
    fn read(cell: &'a str, figure: &'a FigureColumn) -> Result<Self, String> {
        let (number, own_unit) = match cell.split_once(' ') {
            Some((number, name)) => {
                let unit = Unit::ALL.into_iter().find(|unit| unit.name() == name && unit.fits(figure.metric));
                (number, Some(unit.ok_or_else(|| format!("`{cell}`: `{name}` is no unit of this figure"))?))
            }
            None => (cell, None),
        };
        let digits = number.strip_suffix('*').unwrap_or(number);
        let number = plain(digits).and_then(|text| text.parse::<f64>().ok()).filter(|n| n.is_finite() && *n >= 0.0);
        let number = number.ok_or_else(|| format!("`{cell}` is not a number of 0 or more"))?;
        let unit = own_unit.unwrap_or(figure.unit);
        let shown = match (own_unit, unit) {
            (_, Unit::PerSecond) => "IOPS",
            (_, Unit::Microsecond) => "µs",
            (Some(own), _) => own.name(),
            (None, unit) => figure.printed.as_deref().unwrap_or(unit.name()),
        };
        let has_asterisk = cell.split(' ').next().is_some_and(|number| number.ends_with('*'));
        Ok(Self { digits, has_asterisk, unit: shown, value: number * unit.in_base() })
    }

    /// Formats `0.112* s`.
    fn text(&self) -> String {
        format!("{}{} {}", self.digits, if self.has_asterisk { "*" } else { "" }, self.unit)
    }
}

/// Removes thousands separators; `None` if they do not separate groups of three digits.
fn plain(digits: &str) -> Option<String> {
    let whole = digits.split('.').next().unwrap_or(digits);
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let is_grouped = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
    (!digits.contains(',') || (is_grouped && !digits[whole.len()..].contains(','))).then(|| digits.replace(',', ""))
}

/// The parts that all figures of a line share.
#[derive(Default)]
struct Common {
    place: BTreeMap<String, String>,
    source_place: Vec<(String, String)>,
    op: Option<OpKind>,
    setting: String,
}

impl Common {
    fn take(&mut self, definition: &Definition, column: &str, axis: &str, text: &str) -> Result<(), String> {
        self.source_place.push((column.to_owned(), text.to_owned()));
        match axis {
            "setting" => text.clone_into(&mut self.setting),
            "op" => {
                self.op = Some(match text {
                    "read" => OpKind::Read,
                    "write" => OpKind::Write,
                    "trim" => OpKind::Trim,
                    _ => return Err(format!("`{text}` is not an operation: read, write or trim")),
                });
            }
            axis => {
                self.place.insert(axis.to_owned(), value_named(definition, axis, text)?);
            }
        }
        Ok(())
    }
}

/// Returns the name of the axis value that the source writes as `text`.
fn value_named(definition: &Definition, axis: &str, text: &str) -> Result<String, String> {
    let axes = definition.mode.values().flat_map(|mode| &mode.axis).chain(&definition.axis);
    let mut values = axes.filter(|known| known.key == axis).flat_map(|known| &known.value);
    let is_it = |value: &&crate::definition::AxisValue| value.published.as_deref().unwrap_or(&value.name) == text;
    values
        .find(is_it)
        .map(|value| value.name.clone())
        .ok_or_else(|| format!("the axis `{axis}` has no value that the source writes as `{text}`"))
}

/// Checks a figure against the limits.
fn impossible(definition: &Definition, entry: &Entry) -> Option<Impossible> {
    let limit = definition.limit.iter().find(|limit| {
        limit.metric == entry.metric
            && limit.place.iter().all(|(column, values)| {
                entry.source_place.iter().any(|(name, value)| name == column && values.names(value))
            })
    })?;
    let limit_bytes_per_s = limit.mb_per_s_max * 1e6;
    let implied_bytes_per_s = match limit.bytes {
        Some(bytes) if entry.value > 0.0 => bytes as f64 / entry.value,
        Some(_) => f64::MAX,
        None => entry.value,
    };
    if implied_bytes_per_s <= limit_bytes_per_s {
        return None;
    }
    let place: Vec<&str> = entry.source_place.iter().map(|(_, value)| value.as_str()).collect();
    let assumes = limit.assumes.as_ref();
    let possible = assumes.map(|of| (limit_bytes_per_s * entry.value / of.call_bytes as f64) as u64);
    let implied = match limit.bytes {
        Some(bytes) => format!(
            "{} for {} {} {}",
            entry.printed,
            format_bytes(bytes),
            if assumes.is_some() { "would be" } else { "is" },
            format_bandwidth(implied_bytes_per_s)
        ),
        None => entry.printed.clone(),
    };
    let mut sentence = format!("{}: {implied}, but {}.", place.join(", "), limit.why);
    if let (Some(of), Some(possible)) = (assumes, possible) {
        let possible = format_count(possible);
        sentence.push_str(&format!(" Assumed: {}, {}; up to {possible} calls would be possible.", of.what, of.why));
    }
    Some(Impossible {
        place: entry.source_place.clone(),
        metric: entry.metric,
        value: entry.value,
        implied_bytes_per_s,
        limit_bytes_per_s,
        assumption: assumes.map(|of| of.what.clone()),
        possible_count_max: possible,
        sentence,
    })
}
